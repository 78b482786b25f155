"""The operators of an engine: the calls for each publication, and their results.

The core finds candidates and returns the calls that they need (`_native.CallRequest`).
`OperatorEvaluator` makes the calls that can still decide a candidate. Then the core matches the
publication again with the results, until no call is missing. Each call is made once per
publication. Results of pure operators are cached.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import blake2b
from operator import index as as_index
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias, overload
from weakref import finalize

from pyoxigraph import NamedNode

from graphmatch import _native
from graphmatch.operators.operator import Operator, OperatorIndex
from graphmatch.operators.runner import ABANDONED, OVER, Arguments, Runner
from graphmatch.operators.schedule import Schedule, Statistics
from graphmatch.report import Call, UndecidedSubscription
from graphmatch.subscription import Query, Subscription
from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.limits import Limits
from semantic.publication import Publication
from semantic.reading import publication_of
from semantic.terms import Term, compact, written

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

_CACHED = 100_000
"""Maximum number of cached results of pure operators."""
_LONG = 200


class CallSession:
    """The calls for one publication and their results.

    Parameters
    ----------
    publication
        The publication, if it exists already.
    source
        The document that the publication comes from.
    until
        The end of the time for operators, on the clock of `perf_counter`.
    """

    __slots__ = ("_publication", "_source", "made", "native", "recalled", "spent", "until", "why")

    def __init__(self, publication: Publication | None, source: str, until: float) -> None:
        self._publication, self._source = publication, source
        self.native = _native.Calls()
        self.made: list[_Made] = []
        """The calls of this session in order, except repeated ones."""
        self.why: dict[str, str] = {}
        """The reasons why calls failed."""
        self.recalled = 0
        self.spent: defaultdict[str, float] = defaultdict(float)
        """Seconds that each operator has used; each has an equal share of the time."""
        self.until = until

    def put(
        self, call: str, result: Term | None, seconds: float, why: str = "", *, cached: bool = False
    ) -> None:
        """Record a call and its result; ``None`` if it failed, for the reason `why`."""
        self.native.put(call, result)
        self.made.append((call, result, seconds, why, cached))
        self.recalled += cached
        if result is None:
            self.why[call] = why

    def publication(self, request: _native.CallRequest | None) -> Publication:
        """Return the publication with its stated triples.

        If the session has none yet, create it from `request`, and keep it.
        """
        if self._publication is None:
            assert request is not None
            self._publication = publication_of(request.id, request.triples(), self._source)
        return self._publication

    def repeat(self, calls: Iterable[Call]) -> None:
        """Give the core the results of earlier calls; do not record them in `made`."""
        for call in calls:
            said = "\n".join([call.operator, *map(written, call.arguments)])
            self.native.put(said, call.result)


class Calls(Sequence[Call]):
    """A sequence of calls whose objects are created on access."""

    __slots__ = ("_made",)

    def __init__(self, made: Sequence[_Made]) -> None:
        self._made = made

    def __len__(self) -> int:
        return len(self._made)

    @overload
    def __getitem__(self, place: int) -> Call: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Call]: ...
    def __getitem__(self, place: int | slice) -> Call | Sequence[Call]:
        if isinstance(place, slice):
            return Calls(self._made[place])
        return _call(*self._made[place])


_Made: TypeAlias = tuple[str, Term | None, float, str, bool]
"""The call, the result, the seconds, the reason if it failed, and whether it was cached."""


def _call(call: str, result: Term | None, seconds: float, why: str, kept: bool = False) -> Call:
    operator, *texts = call.split("\n")
    return Call(operator, tuple(map(_native.term, texts)), result, seconds, why, kept)


class _IndexedOperator:
    """An operator's index, and the mapping between its keys and the core's ids of constants."""

    def __init__(self, operator: Operator, make: Callable[[], OperatorIndex]) -> None:
        import numpy as np

        self.operator, self.index, self.lock = operator, make(), Lock()
        self.failure: str = ""
        self._keys: dict[int, int] = {}
        self._taken: set[int] = set()
        self._ids: NDArray[np.uint32] = np.zeros(64, np.uint32)

    def follow(self, id: int, constants: Sequence[Term] | None) -> None:
        """Add constants to the index under the core's `id`; remove them if `constants` is ``None``.

        Raises
        ------
        Exception
            Any exception of the index. `ValueError` if it returns a number that is in use.
        """
        import numpy as np

        with self.lock:
            if constants is None:
                key = self._keys.pop(id, None)
                if key is not None:
                    self._taken.discard(key)
                    self._ids[key] = 0
                    self.index.remove(key)
                return
            key = as_index(self.index.add(constants))
            if key < 0 or key in self._taken:
                raise ValueError(f"its index returned the number {key}, which is in use")
            self._taken.add(key)
            self._keys[id] = key
            if key >= len(self._ids):
                self._ids = np.concatenate([self._ids, np.zeros(key + 1, np.uint32)])
            self._ids[key] = id

    def ask(self, arguments: Iterable[str]) -> list[list[int]]:
        """Return the core's ids of the constants that each argument, in N-Triples, matches."""
        with self.lock:
            found = map(self.index.matches, map(_native.term, arguments))
            return [self._found(keys).tolist() for keys in found]

    def _found(self, keys: ArrayLike) -> NDArray[np.uint32]:
        import numpy as np

        numbers = np.asarray(keys)
        if not numbers.size:
            return self._ids[:0]
        if numbers.ndim != 1 or numbers.dtype.kind not in "iu":
            raise TypeError("it did not return an array of numbers")
        ids: NDArray[np.uint32] = self._ids[numbers]
        return ids


class OperatorEvaluator:
    """Makes the operator calls that the core requests, and caches the results of pure operators.

    Parameters
    ----------
    operators
        The operators; their IRIs must differ.
    on_problem
        Called with constants that an operator cannot use, indexes that fail, and operators that
        are suspended.

    Raises
    ------
    InputError
        If two operators have the same IRI.
    """

    def __init__(self, operators: Iterable[Operator], on_problem: OnProblem) -> None:
        self.all = tuple(operators)
        self.by_iri = {one.iri: one for one in self.all}
        if len(self.by_iri) < len(self.all):
            remedy = "Give each operator a unique IRI."
            iris = [one.iri for one in self.all]
            where = Place(next(iri for iri in iris if iris.count(iri) > 1))
            raise InputError(Problem("two operators have this IRI", where, remedy))
        self.statistics = Statistics()
        for one in self.all:
            self.statistics.expect(one.iri, one.cost)
        self._seconds = 0.0
        self._on_problem = on_problem
        self._runners = {one.iri: Runner(one) for one in self.all}
        self._indexes = [
            _IndexedOperator(one, one.index) for one in self.all if one.index is not None
        ]
        self._cache: OrderedDict[str, Term] = OrderedDict()
        self._lock = Lock()
        self._problems: list[Problem] = []
        self._told: set[str] = set()
        self.close = finalize(self, _close, tuple(self._runners.values()))
        """Ends the threads that wait for calls."""

    @property
    def rows(self) -> list[tuple[str, bool]]:
        """The IRI of each operator and whether it has an index, for the core."""
        return [one.row for one in self.all]

    def attach(self, core: _native.Core, limits: Limits) -> None:
        """Adopt the engine's time limit, and let its core query the indexes.

        Add the constants of existing subscriptions to the indexes, and report problems.
        """
        self._seconds = limits.operator_seconds
        if self._indexes:
            core.ask_by(self._ask)
            self.follow(core)
            self.report_problems()

    def follow(self, core: _native.Core) -> None:
        """Add the constants of new subscriptions to the indexes, and remove those of removed ones.

        Problems are kept for `report_problems`.
        """
        if not self._indexes:
            return
        for number, id, constants in core.index_changes():
            one = self._indexes[number]
            try:
                one.follow(id, constants)
            except Exception as error:  # noqa: BLE001 - an index may raise anything
                said = ", ".join(map(written, constants or ()))[:_LONG] or "no constant"
                why = str(error) if isinstance(error, ValueError) else repr(error)[:_LONG]
                what = f"the operator cannot use {said} ({why}); no publication will match"
                remedy = "Correct the subscriptions with this constant."
                if constants is None:
                    what = f"its index cannot remove constants ({why})"
                    remedy = "Fix its method `remove`."
                problem = Problem(what, Place(one.operator.iri), remedy, Severity.WARNING)
                self._problems.append(problem)

    def report_problems(self) -> None:
        """Pass the problems of index updates (`follow`) to `on_problem`, and forget them.

        The lock is not held then, so `on_problem` may call the engine.
        """
        with self._lock:
            problems, self._problems = self._problems, []
        for problem in problems:
            self._on_problem(problem)

    def _ask(self, questions: Sequence[tuple[int, Sequence[str]]]) -> list[list[list[int]] | None]:
        answers: list[list[list[int]] | None] = []
        for number, arguments in questions:
            one = self._indexes[number]
            try:
                answers.append(one.ask(arguments))
            except Exception as error:  # noqa: BLE001 - an index may raise anything
                one.failure = f"{type(error).__name__}: {error}"[:500]
                answers.append(None)
        return answers

    def begin(self, publication: Publication | None, source: str) -> CallSession:
        """Return an empty session for the operator calls of a publication; their time starts now.

        `publication` is ``None`` if it does not exist yet. `source` is the name of its document.
        """
        return CallSession(publication, source, perf_counter() + self._seconds)

    def make(self, request: _native.CallRequest, session: CallSession) -> None:
        """Make the calls that decide a request's candidates, and put the results into `session`.

        Use cached results first. Then make the most useful calls, until none can decide a candidate
        any more. If an operator's time is over, its calls fail. Update statistics and cache, and
        report an operator that is suspended.
        """
        rows = request.solutions()
        tests = list({test: None for *_, row in rows for test in row})
        calls = list({test[0]: None for test in tests})
        numbers = {text: number for number, text in enumerate(calls)}
        places = {test: place for place, test in enumerate(tests)}
        names = [call.partition("\n")[0] for call in calls]
        of_test = [(text.partition("\n")[0], _short(predicate)) for text, predicate in tests]
        of_call: list[list[int]] = [[] for _ in calls]
        for test, place in places.items():
            of_call[numbers[test[0]]].append(place)
        statistics = self.statistics
        costs = [
            statistics.cost(name, of_test[several[0]][1])
            for name, several in zip(names, of_call, strict=True)
        ]
        fails = [1 - statistics.true(*one) for one in of_test]
        pending = [(candidate, [places[t] for t in row], once) for candidate, once, row in rows]
        schedule = Schedule(costs, [numbers[text] for text, _ in tests], fails, pending)

        def decide(several: Iterable[int], *, is_new: bool) -> None:
            for call in several:
                passed = request.passed(session.native, [tests[place] for place in of_call[call]])
                schedule.decide(call, dict(zip(of_call[call], passed, strict=True)))
                for test, truth in zip(of_call[call], passed, strict=True):
                    if is_new and truth is not None:
                        statistics.note(*of_test[test], truth)

        decide(self._put_cached(calls, names, session), is_new=False)
        sizes = {name: runner.together for name, runner in self._runners.items()}
        share = self._seconds / max(1, len(set(names)))
        while taken := schedule.take(lambda call: sizes[names[call]], names):
            operator, runner = self.by_iri[names[taken[0]]], self._runners[names[taken[0]]]
            left = min(session.until - perf_counter(), share - session.spent[operator.iri])
            if left <= 0:
                late = [call for call in schedule.left() if names[call] == operator.iri]
                for call in late:
                    session.put(calls[call], None, 0.0, OVER)
                decide(late, is_new=False)
                continue
            arguments = [self._arguments(operator, calls[n], request, session) for n in taken]
            begin = perf_counter()
            outcomes = runner.run(arguments, left)
            session.spent[operator.iri] += perf_counter() - begin
            for call, outcome in zip(taken, outcomes, strict=True):
                session.put(calls[call], outcome.result, outcome.seconds, outcome.why)
                predicate = of_test[of_call[call][0]][1]
                statistics.time(operator.iri, predicate, outcome.seconds)
                if operator.pure and outcome.result is not None:
                    self._cache_result(calls[call], outcome.result)
            decide(taken, is_new=True)
            if runner.abandoned >= ABANDONED:
                self._give_up(operator)

    def _arguments(
        self,
        operator: Operator,
        call: str,
        request: _native.CallRequest | None,
        session: CallSession,
    ) -> Arguments:
        terms = tuple(map(_native.term, call.split("\n")[1:]))
        return (session.publication(request), *terms) if operator.publication else terms

    def miss(self, session: CallSession, evaluation: _native.Evaluation, query: Query) -> bool:
        """Evaluate a query, make the operator calls that it lacks; return whether there were any.

        Do nothing if the query has no operator. The results are in `session`. The caller repeats
        this with a new evaluation, because results may lead to further calls.
        """
        if not any(f"<{one.iri}>" in query.text for one in self.all):
            return False
        evaluation.rows(query, 1)
        missing = evaluation.missing()
        for call in missing:
            operator = self.by_iri[call.partition("\n")[0]]
            left = max(session.until - perf_counter(), 0.0)
            arguments = self._arguments(operator, call, None, session)
            [outcome] = self._runners[operator.iri].run([arguments], left)
            session.put(call, outcome.result, outcome.seconds, outcome.why)
        return bool(missing)

    def _put_cached(
        self, calls: Sequence[str], names: Sequence[str], session: CallSession
    ) -> list[int]:
        """Put cached results into the session; return the positions of their calls in `calls`."""
        found = []
        with self._lock:
            for number, call in enumerate(calls):
                short = _short(call)
                is_pure = self.by_iri[names[number]].pure
                if is_pure and (result := self._cache.get(short)) is not None:
                    self._cache.move_to_end(short)
                    session.put(call, result, 0.0, cached=True)
                    found.append(number)
        return found

    def _cache_result(self, call: str, result: Term) -> None:
        with self._lock:
            self._cache[_short(call)] = result
            if len(self._cache) > _CACHED:
                self._cache.popitem(last=False)

    def _give_up(self, operator: Operator) -> None:
        if operator.iri not in self._told:
            self._told.add(operator.iri)
            what = f"{ABANDONED} of its calls have not returned; it is suspended until they do"
            remedy = "Fix it, or give it a longer timeout."
            self._on_problem(Problem(what, Place(operator.iri), remedy, Severity.WARNING))

    def calls_of(self, subscription: Subscription, calls: Iterable[Call]) -> tuple[str, ...]:
        """Return lines that describe those of `calls` that concern a subscription, with results.

        Operators of the subscription that were not called also get a line, with the reason.
        """
        constants = {term for term, _ in subscription.query.constants()}
        lines: list[str] = []
        several = list(calls) if self.all else []
        for one in self._of(subscription):
            own = [call for call in several if call.operator == one.iri]
            near = [call for call in own if not constants.isdisjoint(call.arguments)]
            lines += map(str, near or own)
            if not own:
                how = "its index decides" if one.index is not None else "no match depends on it"
                lines.append(f"{compact(NamedNode(one.iri))} was not called: {how}")
        return tuple(lines)

    def _of(self, subscription: Subscription) -> list[Operator]:
        text = subscription.query.text
        return [one for one in self.all if f"<{one.iri}>" in text]

    def describe(self, subscription: Subscription) -> Iterator[str]:
        """Yield a line for each operator of a subscription: its cost, and how often it is true."""
        for one in self._of(subscription):
            cost, true = self.statistics.cost(one.iri, ""), self.statistics.true(one.iri, "")
            how = "its index is queried once per publication; " if one.index is not None else ""
            how += f"{1000 * cost:.3g} ms per call, true for {true:.0%} of candidates"
            yield f"calls {compact(NamedNode(one.iri))}: {how}"

    def undecided(
        self, found: _native.Report, session: CallSession | None
    ) -> tuple[UndecidedSubscription, ...]:
        """Return the subscriptions that failed calls leave undecided, with these calls."""
        if not self.all:
            return ()
        failures = {one.operator.iri: one.failure for one in self._indexes if one.failure}

        def call(text: str) -> Call:
            why = session.why.get(text, "") if session is not None else ""
            return _call(text, None, 0.0, why or f"its index failed: {failures.get(text, '')}")

        return tuple(
            UndecidedSubscription(id, tuple(map(call, calls)), is_matched)
            for id, calls, is_matched in found.undecided
        )


def _close(runners: Iterable[Runner]) -> None:
    for runner in runners:
        runner.close()


def _short(text: str) -> str:
    """Return a call or a predicate as a cache key, with a hash instead of long arguments."""
    if len(text) <= _LONG:
        return text
    operator = text.partition("\n")[0]
    return f"{operator}\n{blake2b(text.encode(), digest_size=16).hexdigest()}"
