"""Rows of what workers say: matches, what was refused, fragments of publications, and counts.

One task says all four, in one table whose column ``kind`` tells them apart, so that nothing is
read twice and each row is there once, however often Spark runs a task again. A *fragment* is a part
of a publication of which other parts are elsewhere: its triples as N-Triples.

Blank nodes in solutions are called by their places in the publication: the same publication gives
the same rows each time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from itertools import chain
from typing import TYPE_CHECKING

import pyarrow as pa
from pyoxigraph import BlankNode, Triple

from graphmatch.matcher import Match, MatchReport
from semantic.errors import Place, Problem, Severity
from semantic.publication import Publication
from semantic.terms import Term

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MATCH, REFUSED, FRAGMENT, COUNTS = "match", "refused", "fragment", "counts"
ARRIVED, DROPPED = "arrived", "dropped"
"""Of streams: how many publications were read, and how many of them were dropped."""
SAID = pa.schema(
    [
        ("kind", pa.string()),
        ("publication", pa.string()),
        ("subscription", pa.string()),
        ("solution", pa.map_(pa.string(), pa.string())),
        ("graph", pa.string()),
        ("part", pa.int64()),
        ("lines", pa.binary()),
        ("detail", pa.string()),
    ]
)
SQL = (
    "kind string, publication string, subscription string, solution map<string,string>, "
    "graph string, part bigint, lines binary, detail string"
)
"""The same, as Spark writes it."""

MATCHES = ("publication", "subscription", "solution", "graph")
"""The columns of matches."""
PROBLEM = "source string, line int, column int, item string, what string, remedy string"
"""The columns of what was refused."""

_ROWS = 8192
"""So many rows go to Spark at once."""


@dataclass(slots=True)
class Counts:
    """What tasks did.

    Parameters
    ----------
    publications, triples, matches, refused, warnings
        How many there were. A match is a publication and a subscription.
    reading, matching, writing
        Seconds of processor time, of all tasks together.
    """

    publications: int = 0
    triples: int = 0
    matches: int = 0
    refused: int = 0
    warnings: int = 0
    reading: float = 0.0
    matching: float = 0.0
    writing: float = 0.0

    def add(self, other: Counts) -> None:
        """Count what another one counted, too."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))


class Rows:
    """Rows on their way to Spark.

    Examples
    --------
    >>> rows = Rows()
    >>> rows.fragment("urn:p", 3, b"<urn:a> <urn:b> <urn:c> .")
    >>> [(row["kind"], row["part"]) for batch in rows.rest(Counts()) for row in batch.to_pylist()]
    [('fragment', 3), ('counts', None)]
    """

    def __init__(self) -> None:
        self._columns: dict[str, list[object]] = {name: [] for name in SAID.names}

    def matched(self, publication: Publication, report: MatchReport) -> None:
        """Add the matches of one publication: a row for each solution."""
        names = Names(publication)
        for match in report:
            for solution, graph in _answers(match, names):
                self._add(MATCH, publication.id, match.subscription, solution, graph)

    def problem(self, problem: Problem) -> None:
        """Add what was refused, or used with a warning."""
        self.told(detail_of(problem))

    def told(self, detail: str) -> None:
        """Add what `detail_of` made of a problem."""
        self._add(REFUSED, detail=detail)

    def dropped(self, publications: int) -> None:
        """Add how many publications were dropped."""
        self._add(DROPPED, part=publications)

    def fragment(self, publication: str, part: int, lines: bytes) -> None:
        """Add a part of a publication; parts are put together in the order of their numbers."""
        self._add(FRAGMENT, publication, part=part, lines=lines)

    def full(self) -> Iterator[pa.RecordBatch]:
        """Yield what there is, as soon as it is worth it."""
        if len(self._columns["kind"]) >= _ROWS:
            yield self._taken()

    def rest(self, counts: Counts) -> Iterator[pa.RecordBatch]:
        """Yield what is left, and what the task did."""
        self._add(COUNTS, detail=json.dumps(asdict(counts)))
        yield self._taken()

    def _add(
        self,
        kind: str,
        publication: str | None = None,
        subscription: str | None = None,
        solution: list[tuple[str, str]] | None = None,
        graph: str | None = None,
        part: int | None = None,
        lines: bytes | None = None,
        detail: str | None = None,
    ) -> None:
        row = (kind, publication, subscription, solution, graph, part, lines, detail)
        for column, value in zip(self._columns.values(), row, strict=True):
            column.append(value)

    def _taken(self) -> pa.RecordBatch:
        made = pa.RecordBatch.from_pydict(self._columns, schema=SAID)
        for column in self._columns.values():
            column.clear()
        return made


def _answers(
    match: Match, names: Names
) -> Iterator[tuple[list[tuple[str, str]] | None, str | None]]:
    """Yield what a match says: solutions, or one graph."""
    if match.graph is not None:
        triples = (" ".join(map(names.said, triple)) for triple in match.graph)
        yield None, "".join(f"{triple} .\n" for triple in triples)
        return
    for solution in match.solutions:
        yield [(name, names.said(term)) for name, term in solution.items()], None


class Names:
    """What terms of one publication are called where they are told elsewhere.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> node = BlankNode()
    >>> publication = Publication.of("urn:p", [(node, NamedNode("urn:p"), node)])
    >>> Names(publication).said(node)
    '_:b0'
    """

    def __init__(self, publication: Publication) -> None:
        self._publication = publication
        self._blank: Mapping[Term, str] | None = None
        self._more: dict[Term, str] = {}

    def said(self, term: Term) -> str:
        """Return a term as N-Triples writes it."""
        if isinstance(term, BlankNode):
            return self._called(term)
        if isinstance(term, Triple):
            parts = (term.subject, term.predicate, term.object)
            return f"<<( {' '.join(map(self.said, parts))} )>>"
        return str(term)

    def _called(self, node: BlankNode) -> str:
        if self._blank is None:
            own = (
                t
                for t in dict.fromkeys(chain.from_iterable(self._publication.triples))
                if isinstance(t, BlankNode)
            )
            self._blank = {term: f"_:b{number}" for number, term in enumerate(own)}
        known = self._blank.get(node)
        return known or self._more.setdefault(node, f"_:d{len(self._more)}")


def counted(rows: Iterable[str]) -> Counts:
    """Return what tasks did together, by the details of their rows."""
    counts = Counts()
    for row in rows:
        counts.add(Counts(**json.loads(row)))
    return counts


def detail_of(problem: Problem) -> str:
    """Return what a row says of a problem; `problem_of` goes back."""
    said = {**asdict(problem.where), "what": problem.what, "remedy": problem.remedy}
    return json.dumps({**said, "severity": problem.severity.value})


def problem_of(detail: str) -> Problem:
    """Return the problem of a row.

    Examples
    --------
    >>> rows = Rows()
    >>> rows.problem(Problem("not a line", Place("a.nq", 3), "Correct it."))
    >>> (batch,) = rows.rest(Counts())
    >>> print(problem_of(batch.to_pylist()[0]["detail"]))
    a.nq:3: not a line. Correct it.
    """
    said = json.loads(detail)
    where = Place(said["source"], said["line"], said["column"], said["item"])
    return Problem(said["what"], where, said["remedy"], Severity(said["severity"]))


def problem_row(problem: Problem) -> tuple[str, int | None, int | None, str | None, str, str]:
    """Return a problem as a row of `PROBLEM`."""
    where = problem.where
    return where.source, where.line, where.column, where.item, problem.what, problem.remedy


def matches_of(rows: DataFrame) -> DataFrame:
    """Return the rows that are matches."""
    return rows.where(rows["kind"] == MATCH).select(*MATCHES)


def refused_of(rows: DataFrame) -> DataFrame:
    """Return what was refused: file, line and reason."""
    from pyspark.sql.functions import col, from_json

    told = rows.where(rows["kind"] == REFUSED)
    parsed = told.select(from_json("detail", f"{PROBLEM}, severity string").alias("told"))
    return parsed.select("told.*").where(col("severity") == Severity.REFUSED.value).drop("severity")
