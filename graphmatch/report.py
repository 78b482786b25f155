"""The results of matching: matches, counters, operator calls, and the reports that hold them.

`MatchReport` is the report of any matcher. The matches of the engine (`CoreMatches`) are created on
access from a few arrays of the core: the numbers of the subscriptions are one array, and their ids
are strings that reports share. `Results` converts reports to rows and data frames.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, overload

from pyoxigraph import Literal, NamedNode

from graphmatch import _native
from graphmatch.enrichment import CONSTRUCTS, EnrichedPublication, Enricher, incomplete
from semantic import html
from semantic.errors import OnProblem, Place, Problem, Severity, listed, plural, require_frames
from semantic.publication import Publication
from semantic.reading import publication_of
from semantic.terms import Solution, Term, Triple, compact, written
from semantic.vocabulary import PREFIXES, TYPE, XSD

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    from numpy.typing import NDArray

    from semantic.arrow import Texts

    _Row: TypeAlias = tuple[str, list[dict[str, Any]], list[Triple] | None, bool]

_AT_ONCE = 64
_LONG = 60
_FAILED = "Simplify the query, or raise the limit. The other subscriptions are not affected."
_COLUMNS = ("publication", "subscription")
_FEW, _MANY = 4, 1000
"""Solutions or triples that notebooks show of a match, with "…"; and that end the reading."""
_VALUE = 100
_TRUNCATED = "Narrow the query, or raise the limits `match_solutions` and `publication_seconds`."


@dataclass(frozen=True, slots=True)
class Match:
    """A subscription that a publication matches, with the result of its query.

    Parameters
    ----------
    subscription, publication
        The ids.
    solutions
        One mapping per solution of SELECT (with repetitions, as in SPARQL); one empty mapping for
        ASK; empty for CONSTRUCT and DESCRIBE.
    graph
        The result of CONSTRUCT or DESCRIBE; ``None`` for the other forms.
    """

    subscription: str
    publication: str
    solutions: tuple[Solution, ...]
    graph: tuple[Triple, ...] | None = None

    def lines(self, prefixes: Mapping[str, str] = PREFIXES) -> list[str]:
        """Return the distinct solutions and the triples of the graph for people, as lines.

        A binding that is the publication is left out; long literals are shortened.
        """
        publication = f"<{self.publication}>"
        lines = dict.fromkeys(
            "  ".join(
                f"?{name} = {_shown(term, prefixes)}"
                for name, term in solution.items()
                if str(term) != publication
            )
            for solution in self.solutions
        )
        lines |= dict.fromkeys(" ".join(_shown(t, prefixes) for t in s) for s in self.graph or ())
        return [line for line in lines if line]


def _shown(term: Term, prefixes: Mapping[str, str]) -> str:
    """Return a term as text; shorten a long literal inside its quotation marks."""
    if not isinstance(term, Literal) or len(term.value) <= _VALUE:
        return compact(term, prefixes)
    value = shorten(term.value, _VALUE)
    if term.language is not None:
        return compact(Literal(value, language=term.language), prefixes)
    return compact(Literal(value, datatype=term.datatype), prefixes)


def shorten(text: str, width: int) -> str:
    """Return a text in one line of at most `width` characters."""
    text = " ".join(text.split())
    return text if len(text) <= width else f"{text[: width - 1]}…"


class Results:
    """Conversions of reports to rows: one row per solution.

    The columns are ``publication``, ``subscription``, and one for each variable that is bound in a
    row. A match of ASK is one row without variables. A match of CONSTRUCT or DESCRIBE is one row
    with its triples in the column ``graph``, as lines of N-Triples. A variable with the name of one
    of these columns has a question mark before its name: ``?graph``. All rows are in memory at
    once.
    """

    __slots__ = ()

    @abstractmethod
    def _reports(self) -> Iterable[MatchReport]:
        """Return the reports to convert."""

    def to_dicts(self, *, plain: bool = False) -> list[dict[str, str]]:
        """Return the rows as dictionaries of strings, without unbound variables.

        Parameters
        ----------
        plain
            Whether terms are written as in SPARQL's CSV results: IRIs and the text of literals
            alone. Otherwise they are in N-Triples syntax, which keeps types and languages.

        References
        ----------
        SPARQL 1.1 Query Results CSV and TSV Formats, section 3.2.
        """
        write = _plain if plain else written
        rows = []
        for report in self._reports():
            for match in report.matches:
                ids = dict(zip(_COLUMNS, (report.publication, match.subscription), strict=True))
                if match.graph is not None:
                    lines = (f"{' '.join(map(written, triple))} .\n" for triple in match.graph)
                    rows.append(ids | {"graph": "".join(lines)})
                for solution in match.solutions:
                    terms = {_column(name): write(term) for name, term in solution.items()}
                    rows.append(ids | terms)
        return rows

    def _by_column(self, plain: bool) -> dict[str, list[str | None]]:
        rows = self.to_dicts(plain=plain)
        names = dict.fromkeys(_COLUMNS) | {name: None for row in rows for name in row}
        return {name: [row.get(name) for row in rows] for name in names}

    def to_arrow(self, *, plain: bool = False) -> pa.Table:
        """Return the rows as a table of strings; see `to_dicts`. Needs ``pyarrow``."""
        require_frames("pyarrow")
        import pyarrow as pa

        columns = self._by_column(plain)
        return pa.table({name: pa.array(each, pa.string()) for name, each in columns.items()})

    def to_polars(self, *, plain: bool = False) -> pl.DataFrame:
        """Return the rows as a data frame of strings; see `to_dicts`. Needs ``polars``."""
        require_frames("polars")
        import polars as pl

        columns = self._by_column(plain)
        return pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))

    def to_pandas(self, *, plain: bool = False) -> pd.DataFrame:
        """Return the rows as a data frame of strings; see `to_dicts`.

        Needs ``pandas`` and ``pyarrow``.
        """
        require_frames("pandas")
        return self.to_arrow(plain=plain).to_pandas()


def _column(variable: str) -> str:
    return f"?{variable}" if variable in (*_COLUMNS, "graph") else variable


def _plain(term: Term) -> str:
    return term.value if isinstance(term, NamedNode | Literal) else written(term)


class Counters(NamedTuple):
    """Counters of the work for one publication; tests assert these instead of times.

    Parameters
    ----------
    probes
        Look-ups in the index.
    index_hits
        Entries that look-ups found in the posting lists of the index.
    candidates
        Subscriptions (or shared parts of several) that were checked one by one.
    joins
        Rows of the index that had at least one solution; in G-ToPSS, natural joins of two binding
        tables.
    verified
        Solutions with a filter that was decided outside the index.
    mapped
        Mapping functions that were run.
    evaluated
        Subscriptions that were evaluated as SPARQL.
    matched
        Subscriptions that matched.
    called
        Operator calls that were made.
    recalled
        Operator calls that were not made, because an earlier result was cached.
    triples
        Stated triples of the publication; engine only.
    """

    probes: int = 0
    index_hits: int = 0
    candidates: int = 0
    joins: int = 0
    verified: int = 0
    mapped: int = 0
    evaluated: int = 0
    matched: int = 0
    called: int = 0
    recalled: int = 0
    triples: int = 0


@dataclass(frozen=True, slots=True)
class Call:
    """An operator call for a publication.

    Parameters
    ----------
    operator
        The operator's IRI.
    arguments
        The arguments.
    result
        The result; ``None`` if it is unknown.
    seconds
        The duration.
    why
        Why the result is unknown.
    cached
        Whether the result was cached from an earlier publication.
    """

    operator: str
    arguments: tuple[Term, ...]
    result: Term | None
    seconds: float
    why: str = ""
    cached: bool = False

    def __str__(self) -> str:
        """Return the call and its result as one line."""
        said = ", ".join(map(_short, self.arguments))
        given = f"unknown: {self.why}" if self.result is None else _short(self.result)
        took = "cached" if self.cached else f"{1000 * self.seconds:.3g} ms"
        return f"{compact(NamedNode(self.operator))}({said}) is {given}; {took}"


def _short(term: Term) -> str:
    """Return a term as text, cut after 60 characters."""
    if isinstance(term, Literal) and term.datatype in (XSD["boolean"], XSD["double"]):
        return term.value
    text = compact(term)
    return text if len(text) <= _LONG else f"{text[:_LONG]} …"


@dataclass(frozen=True, slots=True)
class UndecidedSubscription:
    """A subscription left undecided by failed calls.

    Parameters
    ----------
    subscription
        The id.
    calls
        The failed calls.
    matched
        Whether it matches nevertheless, perhaps with fewer solutions.
    """

    subscription: str
    calls: tuple[Call, ...]
    matched: bool


class Matches(Sequence[Match]):
    """Matches that are created on access. They are equal to any sequence of equal matches."""

    @property
    @abstractmethod
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions that match, in order."""

    @property
    @abstractmethod
    def numbers(self) -> NDArray[np.uint32]:
        """The engine's numbers of the subscriptions that match; see `Engine.ids_of`."""

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(mine == theirs for mine, theirs in zip(self, other, strict=True))
        )

    def __repr__(self) -> str:
        return repr(tuple(self))


@dataclass(slots=True)
class MatchReport(Results):
    """The matches of one publication, in the order of subscribing, with counters.

    It is iterable: ``for match in matcher.match(publication)``. `Results` describes its conversions
    to rows. Notebooks show its first matches.

    Parameters
    ----------
    publication
        The id.
    matches
        One match per matching subscription. The engine creates them on access; `subscriptions` is
        enough for their ids.
    counters
        The counters of the work done.
    problems
        The unusable parts of the publication, and failed mapping functions.
    """

    publication: str
    matches: Sequence[Match]
    counters: Counters = field(default_factory=Counters)
    problems: tuple[Problem, ...] = ()
    undecided: tuple[UndecidedSubscription, ...] = ()
    """Subscriptions that failed calls leave undecided, or whose solutions may be incomplete."""
    calls: Sequence[Call] = field(default=(), repr=False, compare=False)
    """The operator calls that were made or cached, in order."""
    origin: Callable[[], Publication | None] | None = field(default=None, repr=False, compare=False)
    """Returns the publication, or ``None`` if it is no longer available."""

    def read(self) -> Publication:
        """Return the publication with the stated triples.

        Raises
        ------
        LookupError
            If nothing matched, or the matcher keeps no publications.
        """
        found = None if self.origin is None else self.origin()
        if found is None:
            raise LookupError(f"the publication {self.publication} is not available")
        return found

    def __iter__(self) -> Iterator[Match]:
        """Yield the matches."""
        return iter(self.matches)

    def __len__(self) -> int:
        """Return the number of matching subscriptions."""
        return len(self.matches)

    @property
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions that matched."""
        if isinstance(self.matches, Matches):
            return self.matches.subscriptions
        return tuple(match.subscription for match in self.matches)

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The engine's numbers of the matching subscriptions, stable as long as these exist.

        `Engine.ids_of` returns their ids. Other matchers have no such numbers; then they are 0, 1,
        2, …: the places of the matches in this report.
        """
        return self.matches.numbers if isinstance(self.matches, Matches) else _places(self)

    def _reports(self) -> Iterable[MatchReport]:
        return (self,)

    def _repr_html_(self) -> str:
        rows: list[tuple[str, str]] = []
        read = 0
        for match in self._first(html.FIRST):
            graph = match.graph or ()
            few = replace(match, solutions=match.solutions[:_FEW], graph=graph[:_FEW])
            count = len(match.solutions) + len(graph)
            lines = [*few.lines()[: _FEW - 1], *["…"] * (count >= _FEW)]
            rows.append((match.subscription, "\n".join(lines)))
            read += count
            if read > _MANY:
                break
        problems = [(str(problem),) for problem in self.problems[: html.FIRST]]
        return html.block(
            self.publication,
            [plural(len(self), "match", "matches"), f"{len(self.undecided):,} undecided"],
            html.table(("subscription", "solutions"), rows, len(self)),
            html.table(("problem",), problems, len(self.problems)),
        )

    def _first(self, count: int) -> Iterator[Match]:
        if not isinstance(self.matches, CoreMatches):
            yield from self.matches[:count]
            return
        for place in range(min(count, len(self))):
            yield from self.matches.made(place, place + 1, _FEW)


class MatchReports(Results, Iterator[MatchReport]):
    """An iterator of reports with the conversions of `Results`, which use up the iterator.

    `reports` are any reports, such as a list of results of `Engine.match`.

    Examples
    --------
    >>> from graphmatch import Engine
    >>> engine = Engine()
    >>> engine.subscribe("alice", "SELECT ?x { ?x <urn:p> 5 }")
    >>> engine.filter(b"<urn:a> <urn:p> 5 .", "ttl").to_dicts()
    [{'publication': '<memory>', 'subscription': 'alice', 'x': '<urn:a>'}]
    """

    __slots__ = ("_rest",)

    def __init__(self, reports: Iterable[MatchReport]) -> None:
        self._rest = iter(reports)

    def __iter__(self) -> Iterator[MatchReport]:
        """Return the inner iterator, which is faster."""
        return self._rest

    def __next__(self) -> MatchReport:
        return next(self._rest)

    def _reports(self) -> Iterable[MatchReport]:
        return self._rest


def _places(report: MatchReport) -> NDArray[np.uint32]:
    import numpy as np

    return np.arange(len(report), dtype=np.uint32)


class CoreMatches(Matches):
    """The matches of the engine, created on access from the report of the core.

    They are in the order of subscribing.

    Parameters
    ----------
    publication
        The id.
    found
        The report of the core.
    core
        The core that made it.
    on_problem
        Called for each match whose solutions are incomplete, when they are read.
    enriched
        The publication enriched by Python, if it was.
    """

    __slots__ = ("_enriched", "_ids", "_on_problem", "_publication", "_reported", "core", "found")

    def __init__(
        self,
        publication: str,
        found: _native.Report,
        core: _native.Core,
        on_problem: OnProblem,
        enriched: EnrichedPublication | None = None,
    ) -> None:
        self._publication, self.found, self._on_problem = publication, found, on_problem
        self.core = core
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

    def enriched(self) -> tuple[Enricher, EnrichedPublication]:
        """Return the enricher of the match, and the publication that it enriched."""
        enricher, stated, rows, read = self.found.enrichment()
        origins = dict(rows)
        if self._enriched is not None:
            return enricher, replace(self._enriched, origins=origins | self._enriched.origins)
        derived = frozenset(stated).difference(self.found.triples() or ())
        own = Publication(self._publication, tuple(stated), derived)
        whole = own.extended(tuple(triple for triple, origin in rows if origin is not None))
        return enricher, EnrichedPublication(whole, own, {row[0]: row[1:] for row in read}, origins)

    def texts(self, most: int | None = None) -> Iterator[_Row]:
        """Yield for each match: id, solutions, graph, and whether the solutions are complete.

        Terms of solutions are N-Triples. Triples of graphs are objects. The id names the
        subscription.

        Parameters
        ----------
        most
            Maximum number of solutions that the index searches for. It does not limit the
            solutions that the evaluation of a query found.
        """
        yield from self._rows(0, len(self), most, texts=True)

    def made(self, begin: int, end: int, most: int | None = None) -> Iterator[Match]:
        """Yield the matches at the places `begin` to ``end - 1``; `most` is that of `texts`."""
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
        """The ids of the subscriptions that match, in order; cached."""
        if self._ids is None:
            self._ids = self.found.ids()
        return self._ids

    @property
    def failed(self) -> Sequence[tuple[str, str]]:
        """The ids of the subscriptions whose evaluation failed, and why."""
        return self.found.failed

    @property
    def numbers(self) -> NDArray[np.uint32]:
        """The engine's numbers of the subscriptions, stable as long as these exist."""
        return self.found.numbers()


def report_of(
    publication: str,
    found: _native.Report,
    core: _native.Core,
    on_problem: OnProblem,
    enriched: EnrichedPublication | None = None,
    origin: Callable[[], Publication | None] | None = None,
    calls: Sequence[Call] = (),
    recalled: int = 0,
    undecided: tuple[UndecidedSubscription, ...] = (),
    prefixes: Mapping[str, str] = PREFIXES,
) -> MatchReport:
    """Return the report of a publication, made from the report (`found`) of the core.

    Its problems are returned in it, and not passed to `on_problem`.

    Parameters
    ----------
    on_problem
        Called for each match whose solutions are incomplete, when they are read.
    enriched
        The publication enriched by Python, if it was.
    origin
        Returns the publication again; by default from the report.
    calls, recalled, undecided
        The operator calls, the number of cached ones, and the undecided subscriptions.
    prefixes
        The prefixes of the ontology, for problems.
    """
    probes, index_hits, candidates, joins, evaluated, triples = found.counters()
    problems = () if enriched is None else enriched.problems
    mapped = 0 if enriched is None else enriched.runs
    did = probes, index_hits, candidates, joins, 0, mapped, evaluated, len(found)
    counters = Counters(*did, len(calls) - recalled, recalled, triples)
    if undecided:
        problems += tuple(_left_open(publication, one) for one in undecided)
    if failed := found.failed:
        problems += tuple(
            Problem(f"{id}: {why}", Place(publication), _FAILED, Severity.WARNING)
            for id, why in failed
        )
    if found.is_truncated:
        problems += (incomplete(Place(publication)),)
    if contradictions := found.contradictions:
        stated = found.triples() or ()
        place = Place(publication)
        problems += tuple(contradictory(place, one, stated, prefixes) for one in contradictions)
    matches = CoreMatches(publication, found, core, on_problem, enriched)
    origin = origin or partial(read_again, found, publication)
    return MatchReport(publication, matches, counters, problems, undecided, calls, origin)


def contradictory(
    place: Place, found: str, triples: Iterable[Triple], prefixes: Mapping[str, str]
) -> Problem:
    """Return the problem to report for a contradiction: a triple and a rule, as the core writes.

    If the triple is about a class, add the other classes that `triples` state.
    """
    text, _, rule = found.rpartition(" (rule ")
    subject, property_, object_ = map(_native.term, text.split(" ", 2))
    others = dict.fromkeys(o for s, p, o in triples if s == subject and p == property_ == TYPE)
    classes = [compact(term, prefixes) for term in others if term != object_]
    shown = " ".join(compact(term, prefixes) for term in (subject, property_, object_))
    if classes:
        shown += f", and it is stated as {listed(classes, 10)}"
    construct = CONSTRUCTS.get(rule.split()[0], "a rule")
    what = f"it contradicts the ontology: {construct} excludes {shown} (rule {rule}"
    remedy = "Correct the data or the ontology."
    return Problem(what, place, remedy, Severity.WARNING)


def read_again(found: _native.Report, source: str) -> Publication | None:
    """Return the publication of a core report; ``None`` if the core no longer has its triples."""
    triples = found.triples()
    return None if triples is None else publication_of(found.publication, triples, source)


def _left_open(publication: str, undecided: UndecidedSubscription) -> Problem:
    """Return the problem to report for a subscription that failed calls leave undecided."""
    some = "; ".join(map(str, undecided.calls[:3]))
    what = "other solutions" if undecided.matched else "whether it matches"
    said = f"{undecided.subscription}: {what} could not be determined: {some}"
    remedy = "Fix the operator, or raise the limit `operator_seconds`."
    return Problem(said, Place(publication), remedy, Severity.WARNING)


class EventReports(Results, Sequence[MatchReport]):
    """The reports of a table's events, one per row, created on access; `Results` converts them.

    Parameters
    ----------
    parts
        Batches of rows: the ids, the core's results, and the reports by row for events that Python
        had to prepare.
    core
        The core of the engine.
    on_problem
        Called for each match whose solutions are incomplete, when they are read.

    Attributes
    ----------
    numbers
        The numbers of the subscriptions that rows match, row after row; `Engine.ids_of` returns
        their ids.
    offsets
        The start of each row in `numbers`, and the end of the last, shape ``(rows + 1,)``.
    """

    def __init__(
        self,
        parts: Sequence[tuple[Texts, _native.Batch, Mapping[int, MatchReport]]],
        core: _native.Core,
        on_problem: OnProblem,
    ) -> None:
        import numpy as np

        self._parts, self._core, self._on_problem = parts, core, on_problem
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

    def _reports(self) -> Iterable[MatchReport]:
        return self

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
        if found is None:
            return others[row]
        return report_of(ids.get(row), found, self._core, self._on_problem)
