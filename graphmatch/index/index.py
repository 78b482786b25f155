"""The engine's index: which branches a publication meets, and with which bindings.

The way of a publication: its terms become ids (`encoding`); each of its triples probes the
gates that it could be (`gates`); the rows filed there whose second pattern may be met are joined
(`kernels.match`), those in a gate's table are asked for all at once (`tables`). A subscription
whose gate is not met costs nothing; those that differ in constants only share a plan, those that do
not differ share a row.

Tests of text are looked for in a publication's terms in one pass for all subscriptions
(`semantic.text.index`); that a term passes one is a triple more, so a test can be a gate, too.
A filter that the kernels cannot decide (text in its order, an is-a test, a decimal that is nearly
the constant) leaves a solution undecided; it is decided here, once a term and filter.

Cost: a look-up for each triple and kind of gate in use, then a join for each row that is left.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Any

import numpy as np

from graphmatch.index import joins, kernels
from graphmatch.index.all_rows import AllRows
from graphmatch.index.comparing import ASK, Values
from graphmatch.index.encoding import Encoded
from graphmatch.index.found import Found, RowMatch
from graphmatch.index.kernels import MATCH, Output, Work
from graphmatch.index.plans import Compiled, Program, filter_of, texts_of
from graphmatch.index.runs import Array, part
from graphmatch.index.spelling import read, spelled
from graphmatch.index.terms import Ids, Mentioned, Terms
from semantic.numbering import Numbering
from semantic.pattern import Filter
from semantic.terms import Term, Triple
from semantic.text.index import TextIndex

Decide = Callable[[Filter, Term], bool]
"""Whether a filter is true of a term."""

_COUNTERS = 6
_OFTEN, _SELDOM = 1000, 16
"""The first publications are all counted as seen, of later ones every so manieth."""


@dataclass(frozen=True, slots=True)
class IndexCounters:
    """What the index did for one publication.

    Parameters
    ----------
    probes
        Look-ups of gates.
    gates
        Gates that the publication meets.
    filed
        Rows filed there.
    candidates
        Those of them that were looked at.
    joined
        Those that have a solution, certain or not.
    """

    probes: int = 0
    gates: int = 0
    filed: int = 0
    candidates: int = 0
    joined: int = 0


class Index:
    """Branches of subscriptions, ready to be matched.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from graphmatch.index.plans import compiled
    >>> from semantic.sparql.parse import SubscriptionParser
    >>> branch = SubscriptionParser().parse("s", "ASK { <urn:a> <urn:p> ?x }").branches[0]
    >>> index = Index()
    >>> row = index.add(compiled(branch))
    >>> triple = (NamedNode("urn:a"), NamedNode("urn:p"), NamedNode("urn:b"))
    >>> matches, counters = index.match([triple])
    >>> [match.solutions[0][0].value for match in matches], counters.probes
    (['urn:b'], 1)
    """

    def __init__(self) -> None:
        self.terms = Terms()
        self.rows = AllRows(self.terms)
        self._texts = TextIndex()
        self._tests: dict[Mentioned, int] = {}
        self._published = 0
        self._own = threading.local()

    def __len__(self) -> int:
        return len(self.rows)

    # -- coming and going -------------------------------------------------------------------

    def add(self, branch: Compiled, *, any_will_do: bool = False) -> int:
        """Take a branch in and return its row: equal branches have the same.

        Parameters
        ----------
        any_will_do
            Whether one solution is as good as all.
        """
        ids = self.take(branch.constants)
        (row,) = self.add_many(branch.program, ids.reshape(1, -1), any_will_do=any_will_do)
        self.release(ids)
        return int(row)

    def add_many(self, program: Program, constants: Ids, *, any_will_do: bool = False) -> Ids:
        """Take branches of one program in and return their rows.

        Parameters
        ----------
        constants
            Their ids, of terms that are taken: shape (branches, constants).
        """
        self.terms.hold(constants)
        return self.rows.add_many(program, constants, any_will_do=any_will_do)

    def remove(self, row: int) -> None:
        """Take a branch away that was taken in, once."""
        ids = self.rows.held(row)
        self.rows.remove(row)
        self.release(ids)

    def take(self, constants: Sequence[Mentioned]) -> Ids:
        """Return the ids of what branches mention; they are kept until they are released."""
        self._watch(constants)
        return self.terms.take(constants)

    def release(self, ids: Ids) -> None:
        """Give ids back that were taken, each as often as it is there."""
        mentioned = [self.terms.term(id) for id in ids.tolist()] if self._tests else ()
        self.terms.release(ids)
        self._forget(mentioned)

    def _watch(self, constants: Sequence[Mentioned]) -> None:
        """Look for tests in publications from now on."""
        for constant in constants:
            if constant not in self.terms.ids and (tests := texts_of(constant)):
                (id,) = self.terms.take([constant])
                for test in tests:
                    self._texts.add(test, int(id))
                self._tests[constant] = int(id)

    def _forget(self, constants: Sequence[Mentioned]) -> None:
        """Look no longer for tests that nobody mentions any more."""
        for constant in dict.fromkeys(constants):
            id = self._tests.get(constant, -1)
            if id >= 0 and self.terms.mentions(id) == 1:
                self.terms.release(np.array([self._tests.pop(constant)], np.int32))
                for test in texts_of(constant):
                    self._texts.remove(test, id)

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Array]:
        """Return the arrays of all that is to be saved."""
        parts = {"terms": self.terms.arrays(), "rows": self.rows.arrays()}
        return {f"{part}.{name}": a for part, own in parts.items() for name, a in own.items()}

    def documents(self) -> dict[str, Any]:
        """Return the rest of it, as JSON can hold it."""
        terms = [None if term is None else spelled(term) for term in self.terms.all()]
        tests = list(self._tests.values())
        return {"terms": terms, "tests": tests, "rows": self.rows.document()}

    @classmethod
    def of_saved(cls, arrays: Mapping[str, Array], documents: Mapping[str, Any]) -> Index:
        """Return the index that gave these arrays, which are written on, and documents.

        Raises
        ------
        SpellingError
            When a term in them is none.
        """
        index = cls()
        terms = [None if term is None else read(term) for term in documents["terms"]]
        index.terms = Terms.of_arrays(terms, part(arrays, "terms"))
        index.rows = AllRows.of_saved(index.terms, documents["rows"], part(arrays, "rows"))
        for id in documents["tests"]:
            constant = index.terms.term(id)
            index._tests[constant] = id
            for test in texts_of(constant):
                index._texts.add(test, id)
        return index

    # -- matching ---------------------------------------------------------------------------

    def match(
        self, triples: Sequence[Triple] | Numbering, apart: int = 0
    ) -> tuple[Found, IndexCounters]:
        """Return the rows that a publication's triples meet, or those that are numbered.

        Parameters
        ----------
        apart
            How many of the triples, the last ones, a variable property is not met by.
        """
        return self.find(self.encoded(triples, apart))

    def encoded(self, triples: Sequence[Triple] | Numbering, apart: int = 0) -> Encoded:
        """Return a publication's triples as ids, with the tests of text that their terms pass."""
        return Encoded(
            triples,
            self.terms,
            self.rows.kinds,
            self._texts.satisfied if len(self._texts) else None,
            compared=self.rows.compare,
            apart=apart,
        )

    def find(self, encoded: Encoded) -> tuple[Found, IndexCounters]:
        """Return the rows that a publication meets."""
        out = self._matched(encoded)
        *counts, count = out.counters.tolist()
        matches = out.matches[: MATCH * count].reshape(-1, MATCH).copy()
        solutions = out.solutions[: out.solutions[0]].copy()
        tabled = self.rows.match_tables(encoded)
        counters = map(add, counts, tabled.counts)
        return Found(encoded, matches, solutions, tabled), IndexCounters(*counters)

    def _matched(self, encoded: Encoded) -> Output:
        """Run the kernel; its last counter is the number of matches."""
        self._published += 1
        sampled = self._published <= _OFTEN or self._published % _SELDOM == 0
        rows = self.rows.arena
        values = Values(self.terms.numbers, encoded.local)
        while True:
            work, out = self._scratch()
            out.counters[:] = 0
            out.counters[kernels.SAMPLED] = sampled
            out.solutions[0] = 1
            count = kernels.match(
                encoded.graph, rows.gates, rows.arena, rows.plans.code, values, work, out
            )
            if count >= 0:
                out.counters[-1] = count
                return out
            sampled = False
            self._more()

    def _scratch(self) -> tuple[Work, Output]:
        """Return what this thread's matching writes on."""
        code = self.rows.arena.plans.code
        needed = int(code[joins.VARIABLES]) + joins.STATE * (int(code[0]) + 2)
        own = self._own
        if not hasattr(own, "size"):
            own.size = 1024
        if not hasattr(own, "work") or len(own.work.stack) < needed:
            own.work = Work(np.empty(own.size, np.int32), np.empty(2 * needed, np.int32))
            own.out = Output(
                np.empty(MATCH * own.size, np.int32),
                np.empty(4 * own.size, np.int32),
                np.zeros(_COUNTERS, np.int64),
            )
        return own.work, own.out

    def _more(self) -> None:
        """Give this thread's matching more to write on."""
        self._own.size *= 4
        del self._own.work

    # -- filters ----------------------------------------------------------------------------

    def decided(self, match: RowMatch, decide: Decide) -> tuple[tuple[Term, ...], ...]:
        """Return a match's solutions, the undecided ones too of which all filters are true."""
        if not (match.left or match.undecided):
            return match.solutions
        filters = list(self._filters(match.row, every=bool(match.undecided)))
        left = [(variable, filter_) for variable, filter_, left in filters if left]
        every = [(variable, filter_) for variable, filter_, _ in filters]
        return match.solutions + tuple(
            solution
            for solutions, open_ in ((match.left, left), (match.undecided, every))
            for solution in solutions
            if all(decide(filter_, solution[variable]) for variable, filter_ in open_)
        )

    def _filters(self, row: int, *, every: bool) -> Iterator[tuple[int, Filter, bool]]:
        """Yield a row's filters, each with the number of its variable, and if it is left to here.

        Parameters
        ----------
        every
            Whether comparisons are wanted, too.
        """
        constants = self.rows.held(row)
        for variable, operator, constant in self.rows.program(row).checks:
            left = operator == ASK
            if left or every:
                term = self.terms.term(int(constants[constant]))
                yield variable, filter_of(operator, term), left
