"""The command ``graphmatch``."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import asdict
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from graphmatch.command.options import (
    CONFIG,
    Config,
    ConfiguredCommand,
    EngineOptions,
    InputOptions,
    Json,
    OntologyFiles,
    OntologyOptions,
    ResultOptions,
    SubscriptionOptions,
    TopicOptions,
    Verbosity,
    ViewOptions,
    end,
    grouped,
)

_LATER = ("bench", "serve", "spark", "watch")
"""Commands with many options. Modules of their names in `graphmatch.command` define them."""


class Commands(TyperGroup):
    """The group of all commands; it imports the modules of those in `_LATER` when it needs them."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands."""
        return list(dict.fromkeys((*super().list_commands(ctx), *_LATER)))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command, or ``None`` if unknown; import its module if it is in `_LATER`."""
        if cmd_name in _LATER and cmd_name not in self.commands:
            module = import_module(f"graphmatch.command.{cmd_name}")
            self.commands[cmd_name] = typer.main.get_command(module.app)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    help="Find the standing SPARQL subscriptions that a new RDF graph or feed item matches.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        import graphmatch

        typer.echo(f"graphmatch {graphmatch.__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    """Find the standing SPARQL subscriptions that a new RDF graph or feed item matches."""


@app.command()
@grouped
def init(
    path: Annotated[Path, typer.Argument(help="File to write, FILE.toml.")] = Path(CONFIG),
) -> int:
    """Write a configuration file with the main options and an example of a subscription.

    Example: `graphmatch init`
    """
    from graphmatch.command.config import write_config

    write_config(path)
    config = "" if path == Path(CONFIG) else f" --config {shlex.quote(str(path))}"
    typer.echo(
        f"{path} is written. Put feeds into the folder {path.parent / 'feeds'}, and run\n"
        f"    graphmatch filter{config}\n"
        "Or write addresses of feeds into the file, and run\n"
        f"    graphmatch watch{config}",
        err=True,
    )
    return 0


@app.command(cls=ConfiguredCommand)
@grouped
def filter(
    subscription_options: SubscriptionOptions,
    result_options: ResultOptions,
    verbosity: Verbosity,
    engine_options: EngineOptions,
    input_options: InputOptions,
    config: Config = None,  # read by ConfiguredCommand
) -> int:
    """Match publications against subscriptions, and show the matches.

    Example: `graphmatch filter data/feeds -o ontologies/news.ttl -s data/subscriptions`
    """
    from graphmatch.command.filter import run

    return run(
        input_options, subscription_options, engine_options, result_options, verbosity, config
    )


@app.command()
@partial(grouped, without={"saved", "now"})
def index(
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
    output: Annotated[
        Path, typer.Option(metavar="FILE", help="File to write; only a snapshot is replaced.")
    ],
) -> int:
    """Save an ontology and subscriptions as one file, which `filter --engine` opens quickly.

    Example: `graphmatch index -o ontologies/news.ttl -s data/subscriptions --output news.gm`
    """
    from graphmatch.command.filter import index as run

    return run(subscription_options, engine_options, output, verbosity)


@app.command()
@partial(grouped, without={"saved", "now", "annotate", "stem"})
def check(
    topic_options: TopicOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
    subscriptions: Annotated[
        list[Path] | None, typer.Argument(help=".rq, .jsonl and .toml files, or folders.")
    ] = None,
    json: Json = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with status 1 if a subscription has warnings.")
    ] = False,
) -> int:
    """Show how each subscription is indexed and evaluated, and warn of probable mistakes.

    No feed is read. To see how labels are found in one, use `explain`.

    Example: `graphmatch check data/subscriptions -o ontologies/news.ttl`
    """
    from graphmatch.command.check import run

    subscription_options = SubscriptionOptions(**asdict(topic_options), subscriptions=subscriptions)
    return run(subscription_options, engine_options, verbosity, json=json, strict=strict)


@app.command()
@grouped
def ontology(
    files: OntologyFiles,
    view_options: ViewOptions,
    ontology_options: OntologyOptions,
    verbosity: Verbosity,
    json: Json = False,
) -> int:
    """Show an ontology: its trees and counts, one of its terms, or its problems.

    A TERM is an IRI, a prefixed name, the last part of an IRI, or a label.

    Example: `graphmatch ontology ontologies/products.ttl ontologies/synonyms.csv --search laptop`
    """
    from graphmatch.command.ontology import run

    return run(files, ontology_options, view_options, verbosity, json=json)


@app.command(cls=ConfiguredCommand)
@grouped
def explain(
    subscription: Annotated[str, typer.Argument(help="The subscription's id.")],
    subscription_options: SubscriptionOptions,
    engine_options: EngineOptions,
    verbosity: Verbosity,
    input_options: InputOptions,
    publication: Annotated[
        str | None,
        typer.Option(
            "--publication", "-p", help="Explain only the publication with this id or link."
        ),
    ] = None,
    config: Config = None,  # noqa: ARG001  (read by ConfiguredCommand)
    json: Json = False,
) -> int:
    """Explain why a subscription matches publications, or which part fails first.

    Example: `graphmatch explain ctps-figure-3 data/publications/offers.nq
    -s data/subscriptions -o ontologies/products.ttl`
    """
    from graphmatch.command.explain import run

    return run(
        subscription,
        input_options,
        subscription_options,
        engine_options,
        verbosity,
        publication=publication,
        json=json,
    )


@app.command()
@grouped
def demo(
    folder: Annotated[Path, typer.Argument(help="Folder with `ontologies/` and `data/`.")] = Path(),
) -> int:
    """Filter the sample feeds and publications with the sample ontologies.

    Example: `graphmatch demo`
    """
    from graphmatch.command.filter import demo as run

    return run(folder)


def main() -> None:
    """Run the command line; escape characters that the encoding of the output lacks."""
    if sys.stdout is None:  # Writing to a closed output must fail, as to any other.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    end(app)


if __name__ == "__main__":
    main()
