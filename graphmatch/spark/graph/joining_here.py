"""Stage 2 where tables are small: the same joins as `graphmatch.spark.graph.joining`, by Arrow.

Spark plans, compiles and starts every join by itself, some tenths of a second each; Arrow joins
tables of some hundred thousand rows in less time. So tables that one process holds easily are
fetched, terms become numbers, and the tree of steps is joined here.

Cost: memory for the tables and the answers; of a join that gives too many rows nothing is kept, and
Spark does it all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from graphmatch.spark.graph.asked import Question
from graphmatch.spark.graph.steps import End, Node, Steps
from graphmatch.spark.graph.tables import BindingTables

FEW = 2_000_000
"""So many rows of binding tables are fetched."""
MOST = 20_000_000
"""A table that is joined here has so many rows at most."""
_COLUMNS = ("v0", "v1", "v2")

Longs: TypeAlias = NDArray[np.int64]
Solutions: TypeAlias = "dict[int, list[Longs]]"
"""By question: numbers of terms, a row a solution and a column a name; -1 for none."""


class TooManyError(Exception):
    """A table would be too large to be joined here."""


def joined_here(
    tables: BindingTables, steps: Steps, questions: Sequence[Question]
) -> pa.Table | None:
    """Return the answers to questions: subscription and solution; ``None`` where they are too many.

    Parameters
    ----------
    tables
        Of which there are few rows: `FEW`.
    """
    rows, terms = _fetched(tables)
    try:
        found = _solutions(rows, steps, questions, resting=bool(tables.known))
    except TooManyError:
        return None
    parts = [
        _answers(questions[question], solutions, terms)
        for question, several in found.items()
        for solutions in several
        if len(solutions)
    ]
    return pa.concat_tables(parts) if parts else _ANSWERS.empty_table()


_ANSWERS = pa.schema(
    [("subscription", pa.string()), ("solution", pa.map_(pa.string(), pa.string()))]
)


def _fetched(tables: BindingTables) -> tuple[pa.Table, pa.Array[Any]]:
    """Fetch binding tables; return them with terms as numbers, and the terms."""
    table = tables.rows.where("atom >= 0").select("atom", *_COLUMNS, "news").toArrow()
    every = pa.chunked_array([chunk for name in _COLUMNS for chunk in table.column(name).chunks])
    encoded = every.combine_chunks().dictionary_encode()
    numbers = encoded.indices.fill_null(-1).cast(pa.int64())
    size = len(table)
    columns: dict[str, Any] = {
        "atom": table.column("atom").cast(pa.int64()),
        "more": table.column("news"),
    }
    for place, name in enumerate(_COLUMNS):
        columns[name] = numbers.slice(place * size, size)
    return pa.table(columns), encoded.dictionary


def _solutions(
    rows: pa.Table, steps: Steps, questions: Sequence[Question], *, resting: bool
) -> Solutions:
    of_node: dict[int, pa.Table] = {}
    found: Solutions = {}
    once: Solutions = {}
    for node in steps:
        table = of_node[node.number] = _table(rows, node, of_node)
        for end, solutions in _ended(table, node, resting=resting):
            (once if end.is_once else found).setdefault(end.question, []).append(solutions)
    for question, several in once.items():
        width = len(questions[question].names)
        every = np.concatenate([part.reshape(len(part), width) for part in several])
        found[question] = [np.unique(every, axis=0) if width else every[:1]]
    return found


def _table(rows: pa.Table, node: Node, of_node: dict[int, pa.Table]) -> pa.Table:
    """Join the table above with the rows of the atoms that follow on its prefixes."""
    follows = pa.table(
        {
            "above": pa.array([above for above, _ in node.prefixes], pa.int64()),
            "atom": pa.array([atom for _, atom in node.prefixes], pa.int64()),
            "next": pa.array(list(node.prefixes.values()), pa.int64()),
        }
    )
    names = [f"x{number}" for number in node.step]
    own = rows.select(["atom", *_COLUMNS[: len(names)], "more"])
    own = own.rename_columns(["atom", *names, "more"])
    below = own.join(follows, "atom", join_type="inner")
    if node.above is None:
        return below.select(["next", *names, "more"]).rename_columns(["prefix", *names, "news"])
    above = of_node[node.above.number].join(
        follows.select(["above", "next"]), "prefix", "above", join_type="inner"
    )
    shared = [f"x{number}" for number in node.step if number < node.known]
    if not shared:
        _check(_pairs(above, below))
    both = above.join(below.drop_columns(["atom", "above"]), ["next", *shared], join_type="inner")
    _check(len(both))
    news = pc.or_(both.column("news"), both.column("more"))
    kept = [f"x{number}" for number in range(node.width)]
    made = both.select(["next", *kept]).rename_columns(["prefix", *kept])
    return made.append_column("news", news)


def _pairs(above: pa.Table, below: pa.Table) -> int:
    """Return how many rows there are when no variable is shared."""
    one, other = (
        np.bincount(table.column("next").to_numpy(), minlength=1) for table in (above, below)
    )
    size = min(len(one), len(other))
    return int(one[:size] @ other[:size])


def _check(size: int) -> None:
    if size > MOST:
        raise TooManyError


def _ended(table: pa.Table, node: Node, *, resting: bool) -> Iterator[tuple[End, Longs]]:
    """Yield the solutions of the branches that end at a node."""
    if not node.ends:
        return
    table = table.sort_by("prefix")
    prefixes = table.column("prefix").to_numpy()
    columns = [table.column(f"x{number}").to_numpy() for number in range(node.width)]
    values = np.stack(columns, axis=1) if columns else np.zeros((len(table), 0), np.int64)
    news = table.column("news").to_numpy()
    for end in node.ends:
        begin, stop = np.searchsorted(prefixes, [end.prefix, end.prefix + 1])
        own, new = values[begin:stop], news[begin:stop]
        if resting:
            own = own[_rests(own[:, list(end.visible)], new)]
        picked = np.full((len(own), len(end.places)), -1, np.int64)
        for column, place in enumerate(end.places):
            if place >= 0:
                picked[:, column] = own[:, place]
        yield end, picked


def _rests(visible: Longs, news: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Say which rows are alike, as far as the query's text sees them, with one that is news."""
    if not len(visible) or news.all():
        return news
    if not visible.shape[1]:
        return np.full(len(news), bool(news.any()))
    _, alike = np.unique(visible, axis=0, return_inverse=True)
    found = np.zeros(int(alike.max()) + 1, bool)
    found[alike[news]] = True
    return found[alike]


def _answers(question: Question, solutions: Longs, terms: pa.Array[Any]) -> pa.Table:
    """Return solutions as maps of texts."""
    there = solutions >= 0
    names = pa.array(question.names, pa.string()).take(_numbers(np.nonzero(there)[1]))
    said = terms.take(_numbers(solutions[there])).cast(pa.string())
    ends = np.cumsum(there.sum(axis=1))
    offsets: Any = pa.array(np.concatenate([[0], ends]), pa.int32())
    maps = pa.MapArray.from_arrays(offsets, names, said)
    ids = pa.array([question.id], pa.string()).take(_numbers(np.zeros(len(solutions))))
    return pa.table([ids, maps], schema=_ANSWERS)


def _numbers(numbers: NDArray[Any]) -> pa.Int64Array:
    return pa.array(numbers.astype(np.int64), pa.int64())
