"""The command ``graphmatch``."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from graphmatch.command.bench import Figures, Generating, Measuring, What
from graphmatch.command.ending import ended
from graphmatch.command.options import (
    AnnotateOption,
    BaseOption,
    CutOption,
    EntailmentOption,
    Events,
    FormatOption,
    Json,
    Loading,
    NowOption,
    Ontologies,
    OntologyFiles,
    Publications,
    Seeing,
    StemOption,
    Subscriptions,
    grouped,
)
from graphmatch.command.spark import spark_app

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Says which standing SPARQL subscriptions a new RDF graph or feed item matches.",
)

app.add_typer(spark_app, name="spark")


@app.command()
@grouped
def filter(
    subscriptions: Subscriptions,
    loading: Loading,
    publications: Publications = None,
    events: Events = None,
    ontology: Ontologies = None,
    json: Json = False,
    cut: CutOption = "auto",
    format: FormatOption = None,
    base: BaseOption = None,
    entailment: EntailmentOption = "rdfs",
    annotate: AnnotateOption = True,
    stem: StemOption = True,
    now: NowOption = None,
) -> None:
    """Match publications against subscriptions, and show the matches.

    Example: `graphmatch filter data/feeds -o ontologies/news.ttl -s data/subscriptions`
    """
    from graphmatch.command.filter import Reading, run
    from graphmatch.command.session import Knowing

    reading = Reading(publications or [], cut, format, base, events or [])
    knowing = Knowing(ontology or [], loading, entailment, annotate, stem, now)
    ended(lambda: run(reading, subscriptions, knowing, json=json))


@app.command()
@grouped
def check(
    subscriptions: Annotated[list[Path], typer.Argument(help=".rq and .jsonl files, or folders.")],
    loading: Loading,
    ontology: Ontologies = None,
    json: Json = False,
    entailment: EntailmentOption = "rdfs",
) -> None:
    """Say of each subscription what is indexed, what is evaluated, and what is wrong with it.

    Example: `graphmatch check data/subscriptions -o ontologies/news.ttl`
    """
    from graphmatch.command.check import run
    from graphmatch.command.session import Knowing

    knowing = Knowing(ontology or [], loading, entailment)
    ended(lambda: run(subscriptions, knowing, json=json))


@app.command()
@grouped
def ontology(
    files: OntologyFiles,
    seeing: Seeing,
    loading: Loading,
    json: Json = False,
    depth: Annotated[int, typer.Option(min=1, help="How many levels of the trees to show.")] = 4,
    around: Annotated[
        str | None, typer.Option(metavar="TERM", help="The term in the middle of the picture.")
    ] = None,
    radius: Annotated[
        int, typer.Option(min=0, max=10, help="How many links the picture goes up and down.")
    ] = 2,
) -> None:
    """Show an ontology: its trees and counts, or one of its terms, ways and problems.

    A TERM is an IRI, a prefixed name, the last part of an IRI, or a label.

    Example: `graphmatch ontology ontologies/products.ttl ontologies/synonyms.csv --search laptop`
    """
    from graphmatch.command.ontology import run

    ended(lambda: run(files, loading, seeing, depth, around, radius, json=json))


@app.command()
@grouped
def explain(
    subscription: Annotated[str, typer.Argument(help="The subscription's id.")],
    subscriptions: Subscriptions,
    loading: Loading,
    publications: Publications = None,
    events: Events = None,
    ontology: Ontologies = None,
    publication: Annotated[
        str | None, typer.Option("--publication", "-p", help="Only the one with this id.")
    ] = None,
    json: Json = False,
    cut: CutOption = "auto",
    format: FormatOption = None,
    base: BaseOption = None,
    entailment: EntailmentOption = "rdfs",
    now: NowOption = None,
) -> None:
    """Say why a subscription matches publications, or what fails first.

    Example: `graphmatch explain ctps-figure-3 data/publications/offers.nq
    -s data/subscriptions -o ontologies/products.ttl`
    """
    from graphmatch.command.explain import run
    from graphmatch.command.filter import Reading
    from graphmatch.command.session import Knowing

    reading = Reading(publications or [], cut, format, base, events or [])
    knowing = Knowing(ontology or [], loading, entailment, now=now)
    ended(
        lambda: run(
            subscription, reading, subscriptions, knowing, publication=publication, json=json
        )
    )


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where `ontologies/` and `data/` are.")] = Path(),
) -> None:
    """Filter the sample feeds and publications with the sample ontologies.

    Example: `graphmatch demo`
    """
    from graphmatch.command.demo import run

    ended(lambda: run(folder))


@app.command()
@grouped
def bench(
    what: Annotated[What, typer.Argument(help="What to measure.")],
    measuring: Measuring,
    generating: Generating,
    figures: Figures,
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Ontology files; those of one ontology joined by +. "
            "paper: names of experiments, or LIST."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Measure how long things take, and how much memory.

    Example: `graphmatch bench ontology ontologies/products.ttl`
    """
    from graphmatch.command.bench import run

    ended(lambda: run(what, files or [], measuring, generating, figures, json=json))


def main() -> None:
    """Run the command; what an output's encoding cannot write is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()


if __name__ == "__main__":
    main()
