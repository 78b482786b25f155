"""What people read: the rows of one run as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from graphmatch.bench.process import Row

Columns = tuple[tuple[str, str], ...]

_BUILT: Columns = (
    ("built in s", "build_seconds"),
    ("bytes a subscription", "bytes_per_subscription"),
)
_MATCHED: Columns = (
    ("µs an event", "median_microseconds_per_event"),
    ("matches an event", "matches_per_event"),
)
_COLUMNS: Columns = (("engine", "engine"), ("events", "events"), *_BUILT, *_MATCHED)
_INGEST: Columns = (
    ("engine", "engine"),
    *_BUILT,
    ("bytes an event", "bytes_per_event"),
    *_MATCHED,
    ("times parsing", "ratio"),
)
_SUBSCRIBE: Columns = (
    ("engine", "engine"),
    ("way", "way"),
    ("subscriptions", "held"),
    ("in s", "build_seconds"),
    ("a second", "subscriptions_per_second"),
    ("bytes a subscription", "bytes_per_subscription"),
)
_SPARK: Columns = (
    ("engine", "engine"),
    ("cores", "cores"),
    ("publications a second", "publications_per_second"),
    ("reading", "reading"),
    ("matching", "matching"),
    ("writing", "writing"),
    ("shipping", "shipping"),
    ("matches each", "matches_per_event"),
)
_ONE_GRAPH: Columns = (
    ("engine", "engine"),
    ("triples", "triples"),
    ("built in s", "build_seconds"),
    ("patterns", "patterns"),
    ("ms a pattern", "milliseconds_per_pattern"),
    ("solutions", "solutions"),
)
_OF = {"one big graph": _ONE_GRAPH, "ingest": _INGEST, "spark": _SPARK, "subscribe": _SUBSCRIBE}
_TEXTS = ("engine", "way")


def table_of(rows: Sequence[Row]) -> Table:
    """Return the rows of one run as a table."""
    first = rows[0]
    parameters = ", ".join(f"{name} {value}" for name, value in first["parameters"].items())
    title = f"{first['workload']}, {first['subscriptions']:,} subscriptions ({parameters})"
    table = Table(title=title, title_justify="left")
    columns = _OF.get(first["workload"], _COLUMNS)
    for heading, name in columns:
        text = name in _TEXTS
        table.add_column(heading, justify="left" if text else "right", no_wrap=text)
    for row in _with_ratio(rows):
        table.add_row(*(_cell(row.get(name)) for _, name in columns))
    return table


def _with_ratio(rows: Sequence[Row]) -> list[Row]:
    """Say of each row how many times as long an event takes as parsing it, if that was measured."""
    name = "median_microseconds_per_event"
    floor = next((row[name] for row in rows if row["engine"] == "parse"), None)
    return [{**row, "ratio": None if floor is None else row[name] / floor} for row in rows]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
