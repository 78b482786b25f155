"""The command ``graphmatch``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Literal, NoReturn

import typer

Ontologies = Annotated[
    list[Path] | None,
    typer.Option("--ontology", "-o", help="RDF files, and CSV files of synonyms; repeatable."),
]
Subscriptions = Annotated[
    list[Path],
    typer.Option("--subscriptions", "-s", help=".rq and .jsonl files, or folders; repeatable."),
]
Publications = Annotated[
    list[str],
    typer.Argument(help="Feeds and RDF files, folders of them, or - for standard input."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")]
CutOption = Annotated[
    Literal["auto", "document", "graph", "item", "subject", "component"],
    typer.Option("--cut", help="What of a document is one publication."),
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="The RDF syntax, where nothing else tells it.")
]
BaseOption = Annotated[
    str | None, typer.Option("--base", help="What relative IRIs are resolved against.")
]
EntailmentOption = Annotated[
    Literal["rdfs", "none"],
    typer.Option("--entailment", help="none: take publications as they are."),
]
AnnotateOption = Annotated[bool, typer.Option(help="Look for the ontology's labels in feed items.")]

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Says which standing SPARQL subscriptions a new RDF graph or feed item matches.",
)


@app.command()
def filter(
    publications: Publications,
    subscriptions: Subscriptions,
    ontology: Ontologies = None,
    json: Json = False,
    cut: CutOption = "auto",
    format: FormatOption = None,
    base: BaseOption = None,
    entailment: EntailmentOption = "rdfs",
    annotate: AnnotateOption = True,
) -> None:
    """Match publications against subscriptions, and show the matches.

    Example: `graphmatch filter data/feeds -o ontologies/news.ttl -s data/subscriptions`
    """
    from graphmatch.command.filter import Reading, run

    reading = Reading(publications, cut, format, base)
    _exit(
        lambda: run(
            reading, subscriptions, ontology or [], entailment, annotate=annotate, json=json
        )
    )


@app.command()
def check(
    subscriptions: Annotated[list[Path], typer.Argument(help=".rq and .jsonl files, or folders.")],
    ontology: Ontologies = None,
    json: Json = False,
    entailment: EntailmentOption = "rdfs",
) -> None:
    """Say of each subscription what is indexed, what is evaluated, and what is wrong with it.

    Example: `graphmatch check data/subscriptions -o ontologies/news.ttl`
    """
    from graphmatch.command.check import run

    _exit(lambda: run(subscriptions, ontology or [], entailment, json=json))


@app.command()
def ontology(
    files: Annotated[list[Path], typer.Argument(help="RDF files, and CSV files of synonyms.")],
    json: Json = False,
    depth: Annotated[int, typer.Option(help="How many levels of the trees to show.")] = 4,
) -> None:
    """Show an ontology: its trees, counts, cycles and conflicts.

    Example: `graphmatch ontology ontologies/products.ttl ontologies/synonyms.csv`
    """
    from graphmatch.command.ontology import run

    _exit(lambda: run(files, depth, json=json))


@app.command()
def explain(
    subscription: Annotated[str, typer.Argument(help="The subscription's id.")],
    publications: Publications,
    subscriptions: Subscriptions,
    ontology: Ontologies = None,
    publication: Annotated[
        str | None, typer.Option("--publication", "-p", help="Only the one with this id.")
    ] = None,
    json: Json = False,
    cut: CutOption = "auto",
    format: FormatOption = None,
    base: BaseOption = None,
    entailment: EntailmentOption = "rdfs",
) -> None:
    """Say why a subscription matches publications, or what fails first.

    Example: `graphmatch explain ctps-figure-3 data/publications/offers.nq
    -s data/subscriptions -o ontologies/products.ttl`
    """
    from graphmatch.command.explain import run
    from graphmatch.command.filter import Reading

    reading = Reading(publications, cut, format, base)
    _exit(
        lambda: run(
            subscription,
            reading,
            subscriptions,
            ontology or [],
            entailment,
            publication=publication,
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
    from graphmatch.command.demo import run

    _exit(lambda: run(folder))


def _exit(run: Callable[[], int]) -> NoReturn:
    """Run a command, and end with its status; an output that is closed early is no error."""
    try:
        status = run()
        sys.stdout.flush()
    except BrokenPipeError:
        status = 0
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at the end
    except OSError as error:
        status = 2
        typer.echo(f"error    the output cannot be written: {error.strerror}", err=True)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        status = 130
        typer.echo("interrupted", err=True)
    raise SystemExit(status)


def main() -> None:
    """Run the command; what an output's encoding cannot write is written as an escape."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    app()


if __name__ == "__main__":
    main()
