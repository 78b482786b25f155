"""``graphmatch bench paper``: the figures of papers, measured again with every algorithm here.

`EXPERIMENTS` has the figures in experiments.toml. Each point of a figure is a run of
`graphmatch.bench.runner` in a process of its own; figures with the same points share them. If exact
algorithms report different matches, the point is in no curve, and the status is 2.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import product
from math import comb
from pathlib import Path
from typing import Any, TypeAlias

from graphmatch.bench import report
from graphmatch.bench.process import Row
from graphmatch.bench.results import add_results, machine, read_results, write_bytes
from graphmatch.bench.runner import Scale, asked
from graphmatch.bench.workloads import Size, workload_class
from graphmatch.console import CommandConsole, styled

Record: TypeAlias = tuple[str, str, str, float, float]
"""Quantity, variant, algorithm, place on the axis, and measured value."""

SCALES: Sequence[Scale] = ("small", "full")
SECONDS: Mapping[Scale, float] = {"small": 0.7, "full": 2.0}
"""The time limit of an algorithm at a point."""
PASSES = 3
QUANTITIES: Mapping[str, tuple[str, str]] = {
    "time": ("median_microseconds_per_event", "µs an event (median)"),
    "memory": ("bytes", "bytes (index, or process)"),
    "subscribing": ("build_seconds", "s to subscribe all"),
    "steps": ("steps_per_event", "steps an event"),
    "deviation of steps": ("deviation_steps", "steps, standard deviation of events"),
    "nodes": ("counters.probes", "nodes visited an event"),
    "evaluations": ("counters.evaluated", "evaluations an event"),
}
"""The key of a row (a dot leads to a nested value) and the axis label of each quantity."""
IMPLEMENTATION_BOUND = ("time", "memory", "subscribing")
"""The quantities that are compared only among algorithms of one kind of `IMPLEMENTED_WITH`."""
VERDICTS = ("holds", "holds in part", "does not hold", "not comparable")
SEED = 1
BOUND = "bound"
HERE = Path(__file__).parent
RESULTS = HERE / "results.json"
"""The results of the last large run, of which the documentation draws its figures."""


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure of a paper; experiments.toml documents the fields."""

    name: str
    paper: str
    figure: str
    claim: str
    verdict: str
    measure: Mapping[str, Sequence[str]]
    finding: str
    workload: str
    algorithms: Mapping[str, str]
    small: Sequence[float]
    full: Sequence[float]
    subscriptions: Sequence[int]
    events: Sequence[int]
    axis: str = "subscriptions"
    quantities: Sequence[str] = ("time", "steps")
    parameters: Mapping[str, Any] = field(default_factory=dict)
    variants: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"": {}})
    most: Mapping[str, int] = field(default_factory=dict)
    bound: bool = False
    printed: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def measure_text(self) -> str:
        """`measure` as text, such as ``time of gtopss; steps of gtopss, ops``."""
        return "; ".join(f"{name} of {', '.join(of)}" for name, of in self.measure.items())

    def points(self, scale: Scale) -> Iterator[tuple[str, float, Row]]:
        """Yield variant, place and arguments of `graphmatch.bench.runner.asked` for each point."""
        count, events = (both[SCALES.index(scale)] for both in (self.subscriptions, self.events))
        of_size = self.axis == "subscriptions"
        for variant, x in product(self.variants, getattr(self, scale)):
            size = int(x) if of_size else count
            able = [c for label, c in self.algorithms.items() if size <= self.most.get(label, size)]
            varied = {} if of_size else {self.axis: x}
            whole = Size(size, events, SEED)
            point: Row = {"workload": self.workload, "columns": able, "size": whole}
            point["parameters"] = {**self.parameters, **self.variants[variant], **varied}
            yield variant, x, {**point, "seconds": SECONDS[scale], "passes": PASSES}

    def records(self, variant: str, x: float, found: Row) -> Iterator[Record]:
        """Yield the quantities of each row of a point as records, and the bound, if any."""
        labels = {column: label for label, column in self.algorithms.items()}
        for row, quantity in product(found["rows"], self.quantities):
            value: Any = row
            for part in QUANTITIES[quantity][0].split("."):
                value = value.get(part)
            if value is not None:
                yield quantity, variant, labels[row["column"]], x, float(value)
        if self.bound:
            of: Any = workload_class(self.workload)
            bound = expected_bound(of.attributes, of.values, int(x))
            yield self.quantities[0], variant, BOUND, x, bound


def expected_bound(attributes: int, values: int, subscriptions: int) -> float:
    """Return an upper bound of the average number of nodes that a random event visits.

    The theorem of Aguilera and others (PODC 1999, section 4), counted as in its proof:
    docs/benchmarks-papers.md. Nodes with few values on their path come first.

    Examples
    --------
    >>> [round(expected_bound(10, 5, n)) for n in (1000, 10_000, 100_000)]
    [276, 648, 1236]
    """
    left, visited = 1 + attributes * subscriptions, 0.0
    for j in range(attributes + 1):
        nodes = min(left, comb(attributes + 1, j + 1) * values**j)
        visited += nodes / values**j
        left -= nodes
    return visited


def _experiments() -> Iterator[Experiment]:
    said = tomllib.loads((HERE / "experiments.toml").read_text(encoding="utf-8"))
    for name, own in said["figure"].items():
        defaults = dict(said["paper"][name.partition("-")[0]])
        title, lists = defaults.pop("title"), defaults.pop("lists")
        fields = {"algorithms": "matching", **defaults, **own}
        if isinstance(fields["algorithms"], str):
            fields["algorithms"] = lists[fields["algorithms"]]
        yield Experiment(name=name, paper=title, **fields)


EXPERIMENTS: Mapping[str, Experiment] = {one.name: one for one in _experiments()}
"""The experiments by name."""


def run(names: Sequence[str], scale: Scale, output: Path, *, json: bool = False) -> int:
    """Measure figures, print their curves and write them to a folder; return the exit status.

    ``ALL`` means every figure. Without names, or with ``LIST``, only print a list of the figures.
    Raise `InputError` for an unknown name.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    if not names or "LIST" in names:
        _list(out, json=json)
        return 0
    chosen = EXPERIMENTS if "ALL" in names else report.named(names, EXPERIMENTS, "figure")
    read_results(output / RESULTS.name)  # A damaged file is an error before the runs.
    known: dict[str, Row] = {}
    status = 0
    for of in map(EXPERIMENTS.__getitem__, chosen):
        with err.status(of.name) if err.is_terminal else nullcontext():
            records, rows, wrong = measured(of, scale, known)
        for problem in wrong:
            err.print(styled((f"{of.name}: ", "red"), problem))
        write(of, scale, records, output)
        if json:
            for row in rows:
                out.write_json({"experiment": of.name, "scale": scale, **row})
        else:
            out.print(styled((of.name, "bold"), f": {of.claim}"))
            out.print(report.curves(records, of.axis))
        status = 2 if wrong else status
    return status


def _list(out: CommandConsole, *, json: bool) -> None:
    for of in EXPERIMENTS.values():
        if json:
            row = {"experiment": of.name, "paper": of.paper, "figure": of.figure, "claim": of.claim}
            out.write_json({**row, "algorithms": list(of.algorithms)})
        else:
            out.print(styled((of.name, "bold"), f"  {of.paper}, {of.figure}"))
            out.print(styled(f"    {of.claim}"))


def measured(
    of: Experiment, scale: Scale, known: dict[str, Row]
) -> tuple[list[Record], list[Row], list[str]]:
    """Measure all points of a figure: return its curves, all rows, and errors.

    Points in `known` are not measured again; new points are added to it.
    """
    records: list[Record] = []
    rows: list[Row] = []
    wrong: list[str] = []
    for variant, x, point in of.points(scale):
        found = known[str(point)] = known.get(str(point)) or asked(**point)
        rows += [{"variant": variant, "x": x, **row} for row in found["rows"]]
        if "wrong" in found:
            wrong.append(f"{of.axis} {x:g} {variant}: {found['wrong']}")
        else:
            records += of.records(variant, x, found)
    if scale == "full":
        first = next(iter(of.variants))
        for algorithm, values in of.printed.items():
            label = f"{algorithm}, printed"
            records += [(of.quantities[0], first, label, float(x), y) for x, y in values.items()]
    return records, rows, wrong


def write(of: Experiment, scale: Scale, records: Sequence[Record], output: Path) -> None:
    """Add a figure's curves to results.json in a folder, and draw it there as SVG."""
    short = [(*of_point, float(f"{value:.5g}")) for *of_point, value in records]
    figure = {"scale": scale, "machine": machine(), "records": short}
    add_results(output / RESULTS.name, {of.name: figure})
    write_bytes(output / f"{of.name}.svg", report.draw(of, records))
