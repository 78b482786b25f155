"""What people read of experiments: their list, a table of what was measured, and verdicts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.table import Table
from rich.text import Text

from graphmatch.bench.paper.claims import Verdict
from graphmatch.bench.paper.experiment import Experiment, Point
from graphmatch.bench.paper.results import Results
from graphmatch.bench.process import Row
from graphmatch.command.console import styled

_COLUMNS = (
    ("algorithm", "label"),
    ("µs", "median_microseconds"),
    ("±", "deviation_microseconds"),
    ("bytes", "bytes"),
    ("of", "bytes_of"),
    ("in s", "subscribe_seconds"),
    ("matches", "matches_per_event"),
)
"""Time of an event, its deviation from event to event, memory, subscribing, matches an event."""

HOLDS = {
    True: ("holds", "green"),
    False: ("does not hold", "red"),
    None: ("not measured", "yellow"),
}
"""How a verdict is said, and in which colour."""


def rows_of(experiments: Iterable[Experiment]) -> Iterator[Row]:
    """Yield each experiment as an object."""
    for of in experiments:
        algorithms = [line.algorithm for line in of.lines]
        yield {
            "experiment": of.name,
            "paper": of.paper,
            "figure": of.figure,
            "claim": of.claim,
            "algorithms": list(dict.fromkeys(algorithms)),
        }


def list_of(experiments: Iterable[Experiment]) -> Iterator[Text]:
    """Yield the experiments, two lines each."""
    for of in experiments:
        yield styled((of.name, "bold"), f"  {of.paper}, {of.figure}")
        yield styled(f"    {of.claim}")


def table_of(results: Results) -> Table:
    """Return what was measured: a row for each point and algorithm."""
    of = results.experiment
    title = f"{of.name} ({of.paper}, {of.figure}; {results.scale}): {of.claim}"
    table = Table(title=title, title_justify="left")
    table.add_column("point", no_wrap=True)
    for heading, name in _COLUMNS:
        text = name in ("label", "bytes_of")
        table.add_column(heading, justify="left" if text else "right", no_wrap=True)
    for one in results.measured:
        point = one.point
        where = called(point)
        for place, row in enumerate(one.said()):
            cells = [_cell(row.get(name)) for _, name in _COLUMNS]
            table.add_row(where if place == 0 else "", *cells)
    return table


def called(point: Point) -> str:
    """Return what a point is called.

    Examples
    --------
    >>> called(Point(0.5, 1000, sweep="width", variant="zipf"))
    'width 0.5 zipf'
    """
    return " ".join(filter(None, (point.sweep, f"{point.x:g}", point.variant)))


def verdict_line(verdict: Verdict) -> Text:
    """Return a verdict as a line."""
    word, colour = HOLDS[verdict.holds]
    saw = "" if verdict.holds is None else f" ({verdict.saw})"
    return styled((f"{word}: ", colour), verdict.asks + saw)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
