"""``graphmatch bench``: the options of its workloads, and the choice of the measurement."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeAlias

import typer

from graphmatch.command.options import Json, grouped, option, require

if TYPE_CHECKING:
    from graphmatch.bench.workloads import Size

app = typer.Typer(add_completion=False, rich_markup_mode="markdown")

What: TypeAlias = Literal["all", "graph", "attributes", "concepts", "keywords", "broker", "paper"]

_FIGURES = Path("figures")
_PUBLICATIONS = 2_000
"""The default number of events of `broker`: some seconds of work."""


@dataclass(frozen=True, slots=True)
class SuiteOptions:
    """The options for ``bench all`` (the whole list) and ``bench paper`` (the experiments)."""

    panel: ClassVar = "The whole list, and the papers' experiments"
    scale: Literal["small", "full", "paper"] = option(
        "small", "all: small or full; paper: small or paper (as large as a machine allows)."
    )
    output: Path | None = option(
        None,
        "paper: folder for results.json and figures, default figures; all: folder for suite.json.",
        metavar="FOLDER",
    )


def _listed(text: str | None) -> list[str]:
    return text.replace(" ", "").split(",") if text else []


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """The options for the generated data, the engines, and their forms of events."""

    panel: ClassVar = "Matching"
    subscriptions: str = option(
        "10000", "Number of subscriptions; several numbers make several runs.", metavar="N[,N…]"
    )
    events: int = option(200, "Number of events, or publications; broker: 2,000.", min=1)
    seed: int = option(1, "Seed of the generated data.", min=0)
    engines: str | None = option(None, "Measure only these engines.", metavar="A[,B…]")
    forms: str | None = option(
        None,
        "Forms of events: nt, turtle, rdfxml, jsonld, feed, objects, arrow, dicts, core.",
        metavar="A[,B…]",
    )

    def sizes(self) -> list[Size]:
        """Return the size of each run; raise `InputError` if a number is invalid.

        Examples
        --------
        >>> [size.subscriptions for size in BenchOptions("1000,1_000_000").sizes()]
        [1000, 1000000]
        """
        from graphmatch.bench.workloads import Size
        from semantic.errors import InputError, Place, Problem

        numbers = self.subscriptions.replace("_", "").split(",")
        if not all(n.isascii() and n.isdecimal() and int(n) for n in numbers):
            what = f"'{self.subscriptions}' is not a number of subscriptions"
            remedy = "Give numbers, with commas between them: 1000,10000."
            raise InputError(Problem(what, Place("--subscriptions"), remedy))
        return [Size(int(number), self.events, self.seed) for number in numbers]


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """The parameters of workloads; ``None`` stands for a workload's own default."""

    panel: ClassVar = "Matching"
    edges: int | None = option(None, "graph: edges per subscription; default 8.", min=4, max=12)
    shapes: int | None = option(
        None, "graph (default 100), broker (0): query shapes; 0 for one each.", min=0
    )
    matching: float | None = option(
        None,
        "Share of subscriptions that an event matches: graph, concepts (0.001), attributes (0.01).",
        min=1e-06,
        max=0.5,
    )
    matches: int | None = option(
        None, "graph, concepts: number of subscriptions that match, instead of a share.", min=0
    )
    attributes: int | None = option(
        None, "attributes: number of attributes per event; default 10.", min=1, max=1000
    )
    values: Literal["uniform", "zipf"] | None = option(None, "attributes: distribution of values.")
    height: int | None = option(None, "concepts: height of the trees; default 5.", min=1, max=20)
    heard: int | None = option(
        None,
        "keywords: number of subscriptions whose words occur in the feeds; default all.",
        min=0,
    )
    topics: float | None = option(
        None, "keywords: share of subscriptions that are topics; default 0.", min=0, max=1
    )
    whole: bool = option(False, "keywords: whole words, and items with only a title.")
    feeds: Path | None = option(None, "keywords, all: folder of feeds.", metavar="FOLDER")


@app.command()
@grouped
def bench(
    what: Annotated[What, typer.Argument(help="What to measure.")],
    bench_options: BenchOptions,
    workload_options: WorkloadOptions,
    suite_options: SuiteOptions,
    files: Annotated[
        list[Path] | None,
        typer.Argument(help="all: names of runs. paper: names of figures, ALL, or LIST."),
    ] = None,
    json: Json = False,
) -> int:
    """Measure time and memory.

    Example: `graphmatch bench graph --subscriptions 1000`
    """
    names = [str(name) for name in files or ()]
    scale: Literal["small", "full"] = "small" if suite_options.scale == "small" else "full"
    given = _given(bench_options) | _given(workload_options) | _given(suite_options)
    require("graphmatch bench", "bench")
    match what:
        case "paper":
            _refuse(what, given, {"scale", "output"}, names=True)
            from graphmatch.bench import experiments

            return experiments.run(names, scale, suite_options.output or _FIGURES, json=json)
        case "all":
            _refuse(what, given, {"scale", "seed", "feeds", "output"}, names=True)
            from graphmatch.bench import suite

            feeds, output = workload_options.feeds, suite_options.output
            return suite.run(names, scale, bench_options.seed, feeds, output, json=json)
    from graphmatch.bench import matching

    if what == "broker":
        _refuse(what, given, {"subscriptions", "events", "seed", "shapes"}, names=not names)
        if "events" not in given:
            bench_options = replace(bench_options, events=_PUBLICATIONS)
        require("graphmatch bench broker", "broker")
        from graphmatch.bench import broker

        return broker.run(bench_options.sizes(), workload_options.shapes or 0, json=json)
    from graphmatch.bench.workloads import parameters_of, workload_class

    class_ = workload_class(what)
    known = set(parameters_of(class_))
    own = {field.name for field in fields(bench_options)}
    _refuse(what, given, known | own, names=not names)
    parameters = {name: value for name, value in given.items() if name in known}
    engines, forms = _listed(bench_options.engines), _listed(bench_options.forms)
    return matching.run(what, bench_options.sizes(), parameters, engines, forms, json=json)


def _given(group: Any) -> dict[str, Any]:
    """Return the options of a group that differ from their defaults."""
    return {
        field.name: getattr(group, field.name)
        for field in fields(group)
        if getattr(group, field.name) != field.default
    }


def _refuse(what: str, given: dict[str, Any], known: set[str], *, names: bool) -> None:
    """Raise `InputError` for an option in `given` that is not in `known`.

    Also raise it if `names` is false: file names were given that the workload does not use.
    """
    from semantic.errors import InputError, Place, Problem

    for name in [*([] if names else ["FILES"]), *(name for name in given if name not in known)]:
        written = name if name.isupper() else f"--{name}"
        remedy = "Leave it out; `graphmatch bench --help` says what each option is for."
        raise InputError(Problem(f"bench {what} takes no {written}", Place(written), remedy))
