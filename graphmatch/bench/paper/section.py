"""An experiment as a section of a page: the claim, what holds of it, and the last figures."""

from __future__ import annotations

from collections.abc import Iterator

from graphmatch.bench.paper.results import Measured, Results, value_of
from graphmatch.bench.process import Row

_TIME = "median_microseconds"


def section_of(results: Results) -> str:
    """Return a section in Markdown, with the picture beside it."""
    of = results.experiment
    figure = f"{of.figure[0].upper()}{of.figure[1:]}. {of.claim}"
    said = [f"*{results.scale.capitalize()} scale.*", *_verdicts(results), *_last(results)]
    picture = f"![{of.name}]({of.name}.svg)"
    return "\n\n".join([f"### `{of.name}`", figure, " ".join(said), picture]) + "\n"


def _verdicts(results: Results) -> Iterator[str]:
    """Yield what holds, what does not, and what was not measured."""
    verdicts = results.verdicts()
    for holds, word in ((True, "Holds"), (False, "Does not hold")):
        found = [f"{v.asks} ({v.saw})" for v in verdicts if v.holds is holds]
        if found:
            yield f"{word}: {'; '.join(found)}."
    missing = [v.asks for v in verdicts if v.holds is None]
    if missing:
        yield f"Not measured: {'; '.join(missing)}."


def _last(results: Results) -> Iterator[str]:
    """Yield the figures of the last point that says something."""
    last = next((one for one in reversed(results.measured) if one.said()), None)
    if last is not None:
        key = results.experiment.panels[0].y.key
        cells = "; ".join(_cell(row, key) for row in last.said())
        yield f"At the last point ({_where(results, last)}): {cells}."


def _where(results: Results, one: Measured) -> str:
    point = one.point
    many = f"{point.subscriptions:,} subscriptions"
    if point.x != point.subscriptions:
        axis = point.sweep or results.experiment.panels[0].x.label
        many = f"{axis} {point.x:g}, {many}"
    return ", ".join(filter(None, (many, point.variant)))


def _cell(row: Row, key: str) -> str:
    """Write what the figure shows of a row; its time, where it has none.

    Examples
    --------
    >>> _cell({"label": "rein", "median_microseconds": 1520.0}, "median_microseconds")
    'rein 1.52 ms'
    """
    value = value_of(row, key)
    if value is None:
        key, value = _TIME, value_of(row, _TIME)
    assert value is not None
    if "bytes" in key:
        return f"{row['label']} {value / 1e6:.2g} MB"
    if "microseconds" in key:
        return f"{row['label']} {value / 1000:.3g} ms" if value >= 1000 else _small(row, value)
    return f"{row['label']} {value:,.3g}" + (" s" if "seconds" in key else "")


def _small(row: Row, micros: float) -> str:
    return f"{row['label']} {micros:.3g} µs"
