"""The report of the compiled core, with matches created on access.

A report of ten thousand matches consists of a few arrays. The numbers of the subscriptions are one
array, their ids are strings that reports share, and a `Match` is created only on access.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from graphmatch import _native
from graphmatch.knowledge import Enriched, Knowledge, incomplete
from graphmatch.matcher import Call, Counters, Match, Matches, MatchReport, Unknown
from semantic.errors import OnProblem, Place, Problem, Severity
from semantic.publication import Publication
from semantic.reading import publication_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semantic.arrow import Texts
    from semantic.terms import Triple

    _Row: TypeAlias = tuple[str, list[dict[str, Any]], list[Triple] | None, bool]

_AT_ONCE = 64
_FAILED = "Simplify the query, or raise the limit. The other subscriptions are not affected."
_TRUNCATED = (
    "Narrow the query, or raise the limits `match_solutions` and `publication_seconds`. Read"
    " solutions before you change subscriptions or the ontology."
)


class CoreMatches(Matches):
    """Matches in the order of subscribing.

    Parameters
    ----------
    publication
        The id.
    found
        The report of the core.
    on_problem
        Called for each match whose solutions are incomplete, when they are read.
    enriched
        The publication enriched by Python, if it was.
    """

    __slots__ = ("_enriched", "_ids", "_on_problem", "_publication", "_reported", "found")

    def __init__(
        self,
        publication: str,
        found: _native.Report,
        on_problem: OnProblem,
        enriched: Enriched | None = None,
    ) -> None:
        self._publication, self.found, self._on_problem = publication, found, on_problem
        self._enriched = enriched
        self._ids: tuple[str, ...] | None = None
        self._reported: set[str] = set()

    def __len__(self) -> int:
        return len(self.found)

    @overload
    def __getitem__(self, place: int) -> Match: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Match]: ...
    def __getitem__(self, place: int | slice) -> Match | Sequence[Match]:
        if isinstance(place, slice):
            return [self[n] for n in range(len(self))[place]]
        number = range(len(self))[place]
        return next(self.made(number, number + 1))

    def __iter__(self) -> Iterator[Match]:
        """Yield all matches, faster than one by one."""
        yield from self.made(0, len(self))

    def enriched(self) -> tuple[Knowledge, Enriched]:
        """Return the enricher of the match, and the publication that it enriched."""
        knowledge, stated, rows, read = self.found.enrichment()
        origins = dict(rows)
        if self._enriched is not None:
            return knowledge, replace(self._enriched, origins=origins | self._enriched.origins)
        derived = frozenset(stated).difference(self.found.triples() or ())
        own = Publication(self._publication, tuple(stated), derived)
        whole = own.extended(tuple(triple for triple, origin in rows if origin is not None))
        return knowledge, Enriched(whole, own, {row[0]: row[1:] for row in read}, origins)

    def texts(self, most: int | None = None) -> Iterator[_Row]:
        """Yield ids, solutions, graphs, and whether the solutions are complete.

        Terms of solutions are N-Triples; triples of graphs are objects.

        Parameters
        ----------
        most
            Maximum number of solutions to search for; evaluations may return more.
        """
        yield from self._rows(0, len(self), most, texts=True)

    def made(self, begin: int, end: int, most: int | None = None) -> Iterator[Match]:
        """Yield some matches, with at most `most` solutions each."""
        for id, solutions, graph, _ in self._rows(begin, end, most, texts=False):
            triples = None if graph is None else tuple(graph)
            yield Match(id, self._publication, tuple(solutions), triples)

    def _rows(self, begin: int, end: int, most: int | None, *, texts: bool) -> Iterator[_Row]:
        while begin < end:
            rows = self.found.matches(begin, min(begin + _AT_ONCE, end), texts=texts, most=most)
            begin += len(rows)
            for row in rows:
                id, solutions, _, is_whole = row
                if most is None and not is_whole and id not in self._reported:
                    self._reported.add(id)
                    what = f"{id}: only the first {len(solutions):,} solutions are given"
                    place = Place(self._publication)
                    self._on_problem(Problem(what, place, _TRUNCATED, Severity.WARNING))
                yield row

    @property
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions."""
        if self._ids is None:
            self._ids = self.found.ids()
        return self._ids

    @property
    def failed(self) -> Sequence[tuple[str, str]]:
        """The ids of the subscriptions whose evaluation failed, and why."""
        return self.found.failed

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The numbers of the subscriptions, stable as long as these exist."""
        return self.found.numbers()


def report_of(
    publication: str,
    found: _native.Report,
    on_problem: OnProblem,
    enriched: Enriched | None = None,
    origin: Callable[[], Publication | None] | None = None,
    calls: Sequence[Call] = (),
    recalled: int = 0,
    unknown: tuple[Unknown, ...] = (),
) -> MatchReport:
    """Return the report of a publication.

    Parameters
    ----------
    on_problem
        Called for each match whose solutions are incomplete, when they are read.
    enriched
        The publication enriched by Python, if it was.
    origin
        Returns the publication again; by default from the report.
    calls, recalled, unknown
        The operator calls, the number of cached ones, and the undecided subscriptions.
    """
    probes, gates, candidates, joins, evaluated, triples = found.counters()
    problems = () if enriched is None else enriched.problems
    mapped = 0 if enriched is None else enriched.runs
    did = probes, gates, candidates, joins, 0, mapped, evaluated, len(found)
    counters = Counters(*did, len(calls) - recalled, recalled, triples)
    if unknown:
        problems += tuple(_left_open(publication, one) for one in unknown)
    failed = found.failed
    if failed:
        problems += tuple(
            Problem(f"{id}: {why}", Place(publication), _FAILED, Severity.WARNING)
            for id, why in failed
        )
    if found.is_truncated:
        problems += (incomplete(Place(publication)),)
    matches = CoreMatches(publication, found, on_problem, enriched)
    origin = origin or partial(read_again, found, publication)
    return MatchReport(publication, matches, counters, problems, unknown, calls, origin)


def read_again(found: _native.Report, source: str) -> Publication | None:
    """Return the publication of a report, if it is still available."""
    triples = found.triples()
    return None if triples is None else publication_of(found.publication, triples, source)


def _left_open(publication: str, unknown: Unknown) -> Problem:
    """Return the problem of a subscription that failed calls leave undecided."""
    some = "; ".join(map(str, unknown.calls[:3]))
    what = "other solutions" if unknown.matched else "whether it matches"
    said = f"{unknown.subscription}: {what} could not be determined: {some}"
    remedy = "Fix the operator, or raise the limit `operator_seconds`."
    return Problem(said, Place(publication), remedy, Severity.WARNING)


class EventReports(Sequence[MatchReport]):
    """The reports of a table's events, one per row, created on access.

    Parameters
    ----------
    parts
        Batches of rows: the ids, the core's results, and the reports by row for events that Python
        had to prepare.

    Attributes
    ----------
    numbers
        The numbers of the subscriptions that rows match, row after row; `Engine.names` returns
        their ids.
    offsets
        The start of each row in `numbers`, and the end of the last, shape ``(rows + 1,)``.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Texts, _native.Batch, Mapping[int, MatchReport]]],
        on_problem: OnProblem,
    ) -> None:
        import numpy as np

        self._parts, self._on_problem = parts, on_problem
        self._ends = list(accumulate(len(batch) for _, batch, _ in parts))
        if len(parts) == 1 and not parts[0][2]:
            self.numbers, self.offsets = parts[0][1].numbers()
            return
        numbers: list[NDArray[np.uint32]] = [np.empty(0, np.uint32)]
        counts: list[NDArray[np.int64]] = [np.zeros(1, np.int64)]
        for _, batch, others in parts:
            found, offsets = batch.numbers()
            before, several = 0, np.diff(offsets)
            for row, report in sorted(others.items()):
                assert isinstance(report.matches, CoreMatches)
                more = report.matches.numbers
                numbers += [found[before : offsets[row]], more]
                before, several[row] = int(offsets[row]), len(more)
            numbers.append(found[before:])
            counts.append(several)
        self.numbers = np.concatenate(numbers)
        self.offsets = np.cumsum(np.concatenate(counts))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, place: int) -> MatchReport: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[MatchReport]: ...
    def __getitem__(self, place: int | slice) -> MatchReport | Sequence[MatchReport]:
        if isinstance(place, slice):
            return [self[n] for n in range(len(self))[place]]
        number = range(len(self))[place]
        part = bisect_right(self._ends, number)
        ids, batch, others = self._parts[part]
        row = number - (self._ends[part] - len(batch))
        found = batch.report(row)
        return others[row] if found is None else report_of(ids.get(row), found, self._on_problem)
