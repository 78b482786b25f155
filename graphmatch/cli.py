"""The command ``graphmatch``."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated

import typer

from graphmatch.command.bench import Figures, Generating, Measuring, What
from graphmatch.command.options import (
    AnnotateOption,
    BaseOption,
    Config,
    ConfiguredCommand,
    CutOption,
    Delivering,
    EntailmentOption,
    Events,
    FormatOption,
    Json,
    Loading,
    NowOption,
    Ontologies,
    OntologyFiles,
    Publications,
    Quiet,
    SavedEngine,
    Seeing,
    StemOption,
    Subscribing,
    Verbose,
    Wanting,
    ended,
    grouped,
)
from graphmatch.command.spark import spark_app

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Says which standing SPARQL subscriptions a new RDF graph or feed item matches.",
)

app.add_typer(spark_app, name="spark")


def _show_version(wanted: bool) -> None:
    if wanted:
        import graphmatch

        typer.echo(f"graphmatch {graphmatch.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_show_version, help="The version.")
    ] = False,
) -> None:
    """Says which standing SPARQL subscriptions a new RDF graph or feed item matches."""


@app.command(cls=ConfiguredCommand)
@grouped
def filter(
    subscribing: Subscribing,
    delivering: Delivering,
    loading: Loading,
    publications: Publications = None,
    events: Events = None,
    ontology: Ontologies = None,
    engine: SavedEngine = None,
    config: Config = None,  # noqa: ARG001  (read by ConfiguredCommand)
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
    knowing = Knowing(
        ontology or [], loading, entailment, annotate=annotate, stem=stem, now=now, saved=engine
    )
    ended(lambda: run(reading, subscribing, knowing, delivering))


@app.command()
@grouped
def index(
    subscribing: Subscribing,
    loading: Loading,
    output: Annotated[Path, typer.Option(metavar="FILE", help="The file that is written.")],
    ontology: Ontologies = None,
    entailment: EntailmentOption = "rdfs",
    annotate: AnnotateOption = True,
    stem: StemOption = True,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Save ontology and subscriptions as one file, which `filter --engine` opens at once.

    Example: `graphmatch index -o ontologies/news.ttl -s data/subscriptions --output news.gm`
    """
    from graphmatch.command.filter import index as run
    from graphmatch.command.session import Knowing

    knowing = Knowing(ontology or [], loading, entailment, annotate=annotate, stem=stem)
    ended(lambda: run(subscribing, knowing, output, quiet=quiet, verbose=verbose))


@app.command()
@grouped
def check(
    wanting: Wanting,
    loading: Loading,
    subscriptions: Annotated[
        list[Path] | None, typer.Argument(help=".rq, .jsonl and .toml files, or folders.")
    ] = None,
    ontology: Ontologies = None,
    sparql: Annotated[bool, typer.Option("--sparql", help="Show the queries, too.")] = False,
    json: Json = False,
    entailment: EntailmentOption = "rdfs",
    strict: Annotated[
        bool, typer.Option("--strict", help="End with status 1 if there are warnings.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Say of each subscription what is indexed, what is evaluated, and what is wrong with it.

    No feed is read, so it does not matter how labels are found: that is `explain --no-stem`.

    Example: `graphmatch check data/subscriptions -o ontologies/news.ttl`
    """
    from graphmatch.command.check import run
    from graphmatch.command.session import Knowing

    subscribing = Subscribing.to(subscriptions or [], wanting)
    knowing = Knowing(ontology or [], loading, entailment)
    ended(
        lambda: run(
            subscribing,
            knowing,
            json=json,
            sparql=sparql,
            strict=strict,
            quiet=quiet,
            verbose=verbose,
        )
    )


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
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Show an ontology: its trees and counts, or one of its terms, ways and problems.

    A TERM is an IRI, a prefixed name, the last part of an IRI, or a label.

    Example: `graphmatch ontology ontologies/products.ttl ontologies/synonyms.csv --search laptop`
    """
    from graphmatch.command.ontology import run

    ended(
        lambda: run(
            files, loading, seeing, depth, around, radius, json=json, quiet=quiet, verbose=verbose
        )
    )


@app.command(cls=ConfiguredCommand)
@grouped
def explain(
    subscription: Annotated[str, typer.Argument(help="The subscription's id.")],
    subscribing: Subscribing,
    loading: Loading,
    publications: Publications = None,
    events: Events = None,
    ontology: Ontologies = None,
    publication: Annotated[
        str | None, typer.Option("--publication", "-p", help="Only the one with this id.")
    ] = None,
    engine: SavedEngine = None,
    config: Config = None,  # noqa: ARG001  (read by ConfiguredCommand)
    quiet: Quiet = False,
    verbose: Annotated[
        bool,
        typer.Option(
            "--verbose", "-v", help="Say how the subscription is indexed, too; list each warning."
        ),
    ] = False,
    json: Json = False,
    cut: CutOption = "auto",
    format: FormatOption = None,
    base: BaseOption = None,
    entailment: EntailmentOption = "rdfs",
    annotate: AnnotateOption = True,
    stem: StemOption = True,
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
    knowing = Knowing(
        ontology or [], loading, entailment, annotate=annotate, stem=stem, now=now, saved=engine
    )
    ended(
        lambda: run(
            subscription,
            reading,
            subscribing,
            knowing,
            publication=publication,
            quiet=quiet,
            verbose=verbose,
            json=json,
        )
    )


@app.command()
def demo(
    folder: Annotated[Path, typer.Argument(help="Where `ontologies/` and `data/` are.")] = Path(),
) -> None:
    """Filter the sample feeds and publications with the sample ontologies.

    Example: `graphmatch demo`
    """
    from graphmatch.command.filter import demo as run

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
