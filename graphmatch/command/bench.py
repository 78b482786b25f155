"""``graphmatch bench``: the options of its workloads, and who measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import typer

from graphmatch.command.options import Json, grouped

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

What: TypeAlias = Literal[
    "all",
    "graph",
    "attributes",
    "concepts",
    "keywords",
    "ontology",
    "spark",
    "paper",
]

_MATCHING = "Matching"
_SCALED = "The whole list, and the papers' experiments"
_FIGURES = Path("figures")


@dataclass(frozen=True, slots=True)
class Figures:
    """How much of the list and of the papers' experiments is measured."""

    scale: Annotated[
        Literal["small", "full", "paper"],
        typer.Option(
            help="all: small or full; paper: small or paper (as large as a machine allows).",
            rich_help_panel=_SCALED,
        ),
    ] = "small"
    output: Annotated[
        Path,
        typer.Option(
            metavar="FOLDER",
            help="paper: where results.json and figures are written.",
            rich_help_panel=_SCALED,
        ),
    ] = _FIGURES


def _numbers(text: str, option: str) -> tuple[int, ...]:
    from semantic.errors import InputError, Place, Problem

    parts = text.replace("_", "").split(",")
    if not all(part.isascii() and part.isdecimal() and int(part) for part in parts):
        what = f"'{text}' is no number of {option.removeprefix('--')}"
        remedy = "Give numbers, with commas between them: 1000,10000."
        raise InputError(Problem(what, Place(option), remedy))
    return tuple(map(int, parts))


def _option(help: str, metavar: str | None = None, **more: Any) -> Any:
    return typer.Option(metavar=metavar, help=help, rich_help_panel=_MATCHING, **more)


@dataclass(frozen=True, slots=True)
class Measuring:
    """How much is generated, which engines are measured, and what they are given."""

    subscriptions: Annotated[
        str, _option("How many subscriptions; several numbers are several runs.", "N[,N…]")
    ] = "10000"
    events: Annotated[int, _option("How many events.", min=1)] = 200
    seed: Annotated[int, _option("What is generated.", min=0)] = 1
    engines: Annotated[str | None, _option("Only these, whatever they take.", "A[,B…]")] = None
    forms: Annotated[
        str | None,
        _option(
            "Publications as nt, turtle, rdfxml, jsonld, feed, objects, arrow, dicts.", "A[,B…]"
        ),
    ] = None
    documents: Annotated[
        Literal["again", "new", "both"], _option("graph: documents that come again, or new ones.")
    ] = "both"
    core: Annotated[
        bool, typer.Option("--core", help="The core alone, too.", rich_help_panel=_MATCHING)
    ] = False

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


@dataclass(frozen=True, slots=True)
class Generating:
    """What can be chosen of a workload; each has its own defaults."""

    edges: Annotated[int | None, _option("graph: edges of a subscription.", min=4, max=12)] = None
    shapes: Annotated[
        int | None,
        _option("graph: how many shapes subscriptions have; 0 for one each.", min=0),
    ] = None
    matching: Annotated[
        float | None,
        _option("graph, attributes, concepts: the share that matches an event.", min=1e-6, max=0.5),
    ] = None
    matches: Annotated[
        int | None,
        _option("graph, concepts: how many match, instead of a share.", min=0),
    ] = None
    attributes: Annotated[
        int | None, _option("attributes: how many an event has.", min=1, max=1000)
    ] = None
    values: Annotated[
        Literal["uniform", "zipf"] | None, _option("attributes: how values are spread.")
    ] = None
    height: Annotated[int | None, _option("concepts: the height of the trees.", min=1, max=20)] = (
        None
    )
    heard: Annotated[
        int | None,
        _option("keywords: how many have only words that are in the feeds; all by default.", min=0),
    ] = None
    topics: Annotated[
        float | None, _option("keywords: the share of subscriptions that are topics.", min=0, max=1)
    ] = None
    feeds: Annotated[Path | None, _option("keywords, all: where the feeds are.", "FOLDER")] = None


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
            "paper: names of figures, ALL, or LIST."
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Measure how long things take, and how much memory.

    Example: `graphmatch bench ontology ontologies/products.ttl`
    """
    return run(what, files or [], measuring, generating, figures, json=json)


def run(
    what: What,
    files: Sequence[Path],
    measuring: Measuring,
    generating: Generating,
    figures: Figures,
    *,
    json: bool,
) -> int:
    """Measure, and return the exit status."""
    names = [str(name) for name in files]
    scale: Literal["small", "full"] = "small" if figures.scale == "small" else "full"
    given = {n: v for group in (measuring, generating, figures) for n, v in _given(group).items()}
    _require("pandas", *(("matplotlib", "numba") if what == "paper" else ()))
    match what:
        case "paper":
            _refuse(what, given, {"scale", "output"}, names=True)
            from graphmatch.bench import experiments

            return experiments.run(names, scale, figures.output, json=json)
        case "ontology":
            _refuse(what, given, set(), names=True)
            from graphmatch.bench import ontology

            return ontology.run(files, json=json)
        case "all":
            _refuse(what, given, {"scale", "seed", "feeds"}, names=True)
            from graphmatch.bench import suite

            return suite.run(names, scale, measuring.seed, generating.feeds, json=json)
        case "spark":
            _refuse(what, given, {"subscriptions", "events", "seed"}, names=not names)
            from graphmatch.bench import spark

            events = given.get("events", spark.PUBLICATIONS)
            return spark.run(measuring.sizes(), events, measuring.seed, json=json)
    from graphmatch.bench import matching
    from graphmatch.bench.workloads import workload_class

    class_ = workload_class(what)
    known = {field.name for field in fields(class_.parameters_class)}
    own = {field.name for field in fields(measuring)} - (set() if class_.renews else {"documents"})
    _refuse(what, given, known | own, names=not names)
    asked = matching.Asked(
        what,
        measuring.sizes(),
        measuring.events,
        measuring.seed,
        _list(measuring.engines),
        _list(measuring.forms),
        measuring.core,
        measuring.documents,
        {name: value for name, value in _given(generating).items() if name in known},
    )
    return matching.run(asked, json=json)


def _require(*modules: str) -> None:
    """Raise where libraries of the extra are not installed."""
    from importlib.util import find_spec

    from semantic.errors import InputError, Place, Problem

    missing = [module for module in modules if find_spec(module) is None]
    if missing:
        remedy = 'Install the extra: pip install "graphmatch[bench]".'
        raise InputError(Problem(f"it needs {', '.join(missing)}", Place("bench"), remedy))


def _list(text: str | None) -> tuple[str, ...] | None:
    return None if text is None else tuple(text.replace(" ", "").split(","))


def _given(group: Any) -> dict[str, Any]:
    """Return the options of a group that differ from their defaults."""
    return {
        field.name: getattr(group, field.name)
        for field in fields(group)
        if getattr(group, field.name) != field.default
    }


def _refuse(what: str, given: dict[str, Any], known: set[str], *, names: bool) -> None:
    """Refuse options, and names of files, that say nothing to a workload."""
    from semantic.errors import InputError, Place, Problem

    for name in [*([] if names else ["FILES"]), *(name for name in given if name not in known)]:
        written = name if name.isupper() else f"--{name}"
        remedy = "Leave it out; `graphmatch bench --help` says what each option is for."
        raise InputError(Problem(f"bench {what} takes no {written}", Place(written), remedy))
