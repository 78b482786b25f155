"""The matches of one publication, made when somebody looks at them.

A report of ten thousand matches is a few arrays. Whoever wants only the ids of the
subscriptions gets these; a `Match` with its solutions is made for each place that is
looked at. Nothing here changes when subscriptions come and go afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias, overload

from graphmatch.index.found import Found
from graphmatch.index.ids import Written
from graphmatch.index.runs import Ids
from graphmatch.matcher import Match, Matches
from semantic.evaluation import Answer
from semantic.pattern import Form
from semantic.sparql.query import Skeleton
from semantic.terms import Solution, Term

Decided: TypeAlias = Mapping[int, Sequence[Sequence[Term]]]
"""By place of a row that was found: its solutions, where some had to be decided."""


class Answers(Matches):
    """Matches in the order of subscribing.

    Parameters
    ----------
    publication
        Its id.
    subscriptions
        The ids of those that it matches.
    sources
        By match: the place of its row in `found`, or -1 less the place of its answer.
    skeletons
        By match: the number of its query's skeleton.
    shapes
        By number: the skeleton.
    found
        What the index found.
    decided
        The solutions of the rows of which some had to be decided.
    answers
        What was evaluated.
    """

    def __init__(
        self,
        publication: str,
        subscriptions: Written,
        sources: Ids,
        skeletons: Ids,
        shapes: Sequence[Skeleton | None],
        found: Found,
        decided: Decided,
        answers: Sequence[Answer],
    ) -> None:
        self._publication, self._subscriptions = publication, subscriptions
        self._sources, self._skeletons, self._shapes = sources, skeletons, shapes
        self._found, self._decided, self._answers = found, decided, answers

    def __len__(self) -> int:
        return len(self._subscriptions)

    @overload
    def __getitem__(self, place: int) -> Match: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Match]: ...
    def __getitem__(self, place: int | slice) -> Match | Sequence[Match]:
        if isinstance(place, slice):
            return [self[n] for n in range(len(self))[place]]
        return self._match(place, self._subscriptions[place])

    def __iter__(self) -> Iterator[Match]:
        """Yield all matches, faster than one by one."""
        return (self._match(place, id) for place, id in enumerate(self._subscriptions))

    @property
    def subscriptions(self) -> Sequence[str]:
        """The ids of the subscriptions."""
        return self._subscriptions

    def _match(self, place: int, id: str) -> Match:
        source = int(self._sources[place])
        if source < 0:
            return Match.of(id, self._publication, self._answers[-1 - source])
        found = self._decided.get(source)
        solutions = self._found[source].solutions if found is None else found
        skeleton = self._shapes[int(self._skeletons[place])]
        assert skeleton is not None
        return Match(id, self._publication, tuple(_projected(skeleton, solutions)))


def _projected(skeleton: Skeleton, solutions: Iterable[Sequence[Term]]) -> Iterator[Solution]:
    """Yield solutions as a query's form says."""
    once = skeleton.distinct or skeleton.form is Form.ASK
    seen: set[tuple[Term, ...]] = set()
    for solution in solutions:
        projected = {name: solution[place] for name, place in skeleton.projected}
        if once:
            values = tuple(projected.values())
            if values in seen:
                continue
            seen.add(values)
        yield projected
