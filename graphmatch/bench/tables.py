"""What people read: the rows of one run as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from graphmatch.bench.process import Row

Columns = tuple[tuple[str, str], ...]

MICROS = "median_microseconds_per_event"

MATCHING: Columns = (
    ("engine", "engine"),
    ("given", "form"),
    ("", "documents"),
    ("built in s", "build_seconds"),
    ("bytes each", "bytes_per_subscription"),
    ("µs an event", MICROS),
    ("times", "ratio"),
    ("matches", "matches_per_event"),
)
SPARK: Columns = (
    ("engine", "engine"),
    ("cores", "cores"),
    ("publications a second", "publications_per_second"),
    ("reading", "reading"),
    ("matching", "matching"),
    ("writing", "writing"),
    ("shipping", "shipping"),
    ("matches each", "matches_per_event"),
)
_TEXTS = ("engine", "form", "documents")


def table_of(rows: Sequence[Row], columns: Columns) -> Table:
    """Return the rows of one run as a table."""
    first = rows[0]
    parameters = ", ".join(f"{name} {value}" for name, value in first["parameters"].items())
    title = f"{first['workload']}, {first['subscriptions']:,} subscriptions ({parameters})"
    table = Table(title=title, title_justify="left")
    for heading, name in columns:
        text = name in _TEXTS
        table.add_column(heading, justify="left" if text else "right", no_wrap=text)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for _, name in columns))
    return table


def with_ratio(rows: Sequence[Row]) -> list[Row]:
    """Add to each row how many times as long an event takes as in the first row."""
    return [{**row, "ratio": row[MICROS] / rows[0][MICROS]} for row in rows]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
