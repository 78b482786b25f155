"""``graphmatch bench``: the options of its workloads, and who measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

What: TypeAlias = Literal[
    "ontology",
    "graph",
    "attributes",
    "concepts",
    "keywords",
    "ingest",
    "subscribe",
    "spark",
    "paper",
]

_MATCHING = "Matching and subscribing"
_PAPERS = "The papers' experiments"
_CLASSES = 1_000_000


@dataclass(frozen=True, slots=True)
class Taxonomies:
    """What ``bench ontology`` measures beside its files."""

    classes: Annotated[
        int, typer.Option(min=21, help="How many classes the generated taxonomies have.")
    ] = _CLASSES


def _numbers(text: str, option: str) -> tuple[int, ...]:
    from semantic.errors import InputError, Place, Problem

    parts = text.replace("_", "").split(",")
    if not all(part.isascii() and part.isdecimal() and int(part) for part in parts):
        what = f"'{text}' is no number of {option.removeprefix('--')}"
        remedy = "Give numbers, with commas between them: 1000,10000."
        raise InputError(Problem(what, Place(option), remedy))
    return tuple(map(int, parts))


_FIGURES = Path("figures")


@dataclass(frozen=True, slots=True)
class Figures:
    """What can be chosen of the papers' experiments."""

    scale: Annotated[
        Literal["small", "paper"],
        typer.Option(
            help="paper: a minute, or as large as a machine allows.", rich_help_panel=_PAPERS
        ),
    ] = "small"
    output: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="paper: where figures and JSON are written.",
            rich_help_panel=_PAPERS,
        ),
    ] = _FIGURES


@dataclass(frozen=True, slots=True)
class Measuring:
    """How much is generated, and which engines are measured."""

    subscriptions: Annotated[
        str,
        typer.Option(
            metavar="N[,N…]",
            help="How many subscriptions; several numbers are several runs.",
            rich_help_panel=_MATCHING,
        ),
    ] = "10000"
    events: Annotated[
        int, typer.Option(min=1, help="How many events.", rich_help_panel=_MATCHING)
    ] = 200
    seed: Annotated[
        int, typer.Option(min=0, help="What is generated.", rich_help_panel=_MATCHING)
    ] = 1
    engines: Annotated[
        str | None,
        typer.Option(
            metavar="A[,B…]", help="Only these, whatever they take.", rich_help_panel=_MATCHING
        ),
    ] = None

    def sizes(self) -> tuple[int, ...]:
        """Return the numbers of subscriptions.

        Raises
        ------
        InputError
            When they are none.

        Examples
        --------
        >>> Measuring("1000,1_000_000").sizes()
        (1000, 1000000)
        """
        return _numbers(self.subscriptions, "--subscriptions")

    def names(self) -> tuple[str, ...] | None:
        """Return the names of engines, if any were given."""
        return None if self.engines is None else tuple(self.engines.replace(" ", "").split(","))


@dataclass(frozen=True, slots=True)
class Generating:
    """What can be chosen of a workload; each has its own defaults."""

    edges: Annotated[
        int | None,
        typer.Option(
            min=4,
            max=12,
            help="graph, ingest: edges of a subscription.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    shapes: Annotated[
        int | None,
        typer.Option(
            min=2,
            help="graph, attributes, ingest, subscribe: how many shapes subscriptions have.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    matching: Annotated[
        float | None,
        typer.Option(
            min=1e-6,
            max=0.5,
            help="graph, attributes, concepts, ingest: the share that matches an event.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    matches: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="graph, concepts, keywords, ingest: how many match, instead of a share.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    attributes: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1000,
            help="attributes, subscribe: how many an event has.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    absent: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            help="attributes, subscribe: the share of them that a subscription leaves out.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    values: Annotated[
        Literal["uniform", "zipf"] | None,
        typer.Option(help="attributes: how values are spread.", rich_help_panel=_MATCHING),
    ] = None
    height: Annotated[
        int | None,
        typer.Option(
            min=1, max=20, help="concepts: the height of the trees.", rich_help_panel=_MATCHING
        ),
    ] = None
    feeds: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="keywords, ingest, subscribe: where the items are.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    syntax: Annotated[
        Literal["nt", "turtle", "rss"] | None,
        typer.Option(help="ingest: only this one.", rich_help_panel=_MATCHING),
    ] = None
    triples: Annotated[
        str | None,
        typer.Option(
            metavar="N[,N…]",
            help="spark: how many one big graph has; 0 for none; 100000 and 1000000 by default.",
            rich_help_panel=_MATCHING,
        ),
    ] = None
    source: Annotated[
        Literal["graph", "keywords", "lines", "arrow"] | None,
        typer.Option(
            help="subscribe: only from there: texts of a workload, or rows of constraints.",
            rich_help_panel=_MATCHING,
        ),
    ] = None


def run(
    what: What,
    files: Sequence[Path],
    taxonomies: Taxonomies,
    measuring: Measuring,
    generating: Generating,
    figures: Figures,
    *,
    json: bool,
) -> int:
    """Measure, and return the exit status."""
    from graphmatch.command.session import Session
    from semantic.errors import InputError

    try:
        if what == "paper":
            _refuse(what, [*_given(taxonomies), *_given(measuring), *_given(generating)])
            from graphmatch.bench.paper.running import run as run_paper

            return run_paper(
                [str(name) for name in files], figures.scale, figures.output, json=json
            )
        _refuse(what, [*_given(figures)])
        if what == "ontology":
            _refuse(what, [*_given(measuring), *_given(generating)])
            from graphmatch.bench.ontology import run as run_ontology

            return run_ontology(files, taxonomies.classes, json=json)
        if what == "spark":
            _refuse(what, [*(["FILES"] if files else []), *_given(taxonomies)])
            _refuse(what, [*_given(generating).keys() - {"triples"}])
            _refuse(what, [*_given(measuring).keys() & {"engines"}])
            return _run_spark(measuring, generating, json=json)
        return _run_matching(what, files, taxonomies, measuring, generating, json=json)
    except InputError as error:
        return Session().fail(error)


def _run_spark(measuring: Measuring, generating: Generating, *, json: bool) -> int:
    from graphmatch.bench.spark import GRAPHS, PUBLICATIONS
    from graphmatch.bench.spark import run as run_spark

    events = _given(measuring).get("events", PUBLICATIONS)
    graphs: Sequence[int] = GRAPHS
    if generating.triples is not None:
        graphs = () if generating.triples == "0" else _numbers(generating.triples, "--triples")
    return run_spark(measuring.sizes(), events, graphs, measuring.seed, json=json)


def _run_matching(
    what: str,
    files: Sequence[Path],
    taxonomies: Taxonomies,
    measuring: Measuring,
    generating: Generating,
    *,
    json: bool,
) -> int:
    from graphmatch.bench.matching import Asked
    from graphmatch.bench.matching import run as run_matching

    known = {field.name for field in fields(_parameters_class(what))}
    chosen = _given(generating)
    _refuse(what, ["FILES"] if files else [])
    _refuse(what, [*_given(taxonomies), *(name for name in chosen if name not in known)])
    if what == "subscribe":
        _refuse(what, [name for name in _given(measuring) if name == "events"])
    names = measuring.names()
    asked = Asked(what, measuring.sizes(), measuring.events, measuring.seed, names, chosen)
    return run_matching(asked, json=json)


def _parameters_class(what: str) -> type[Any]:
    """Return what can be chosen of a workload."""
    if what == "subscribe":
        from graphmatch.bench.subscribing import SubscribeParameters

        return SubscribeParameters
    from graphmatch.bench.workloads import workload_class

    return workload_class(what).parameters_class


def _given(group: Any) -> dict[str, Any]:
    """Return the options of a group that differ from their defaults."""
    return {
        field.name: getattr(group, field.name)
        for field in fields(group)
        if getattr(group, field.name) != field.default
    }


def _refuse(what: str, names: Sequence[str]) -> None:
    """Refuse options that say nothing to a workload."""
    from semantic.errors import InputError, Place, Problem

    for name in names:
        written = name if name.isupper() else f"--{name}"
        remedy = "Leave it out; `graphmatch bench --help` says what each option is for."
        raise InputError(Problem(f"bench {what} takes no {written}", Place(written), remedy))
