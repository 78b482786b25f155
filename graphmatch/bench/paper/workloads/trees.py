"""``trees``: the workload of CTPS, with classes themselves as values.

Zhang, Wang, Huang, Yung: CTPS, section 6. As `graphmatch.bench.workloads.concepts`, where an
event's value is an instance of a class; here it is the class, as in the paper's events, and a
subscription asks for a class with all that is below it (section 3.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from pyoxigraph import Literal, NamedNode

from graphmatch.bench.paper.workloads.flat import FlatWorkload
from graphmatch.bench.workloads.concepts import RANGES, STRINGS, TREES, ConceptWorkload
from graphmatch.published.base import Below, Constraint, Equal, Event, Interval
from semantic.publication import Publication
from semantic.vocabulary import GM

_CLASSES = tuple(NamedNode(f"urn:c:{i}") for i in range(TREES))
_STRINGS = tuple(NamedNode(f"urn:s:{i}") for i in range(STRINGS))
_RANGES = tuple(NamedNode(f"urn:r:{i}") for i in range(RANGES))


class TreeWorkload(ConceptWorkload, FlatWorkload):
    """Classes, strings and ranges.

    Parameters
    ----------
    size
        How much is generated.
    parameters
        See `graphmatch.bench.workloads.concepts.ConceptParameters`.

    Examples
    --------
    >>> from graphmatch.bench.workloads.concepts import ConceptParameters
    >>> from graphmatch.bench.workloads.workload import Size
    >>> made = TreeWorkload(Size(100, 5), ConceptParameters(height=2))
    >>> len(made.conjunctions[0].rows[0]), len(made.event(0).terms), len(made.event(0).numbers)
    (7, 7, 2)
    """

    name: ClassVar = "trees"
    kinds: ClassVar = frozenset({Below, Equal, Interval})

    def texts(self) -> list[str]:
        """Return the subscriptions, all of one form."""
        parts = [
            f"?e <urn:c:{i}> ?c{i} FILTER(gm:descendantOf(?c{i}, <urn:t:{i}:%d>))"
            for i in range(TREES)
        ]
        parts += [f'?e <urn:s:{i}> "s%d" .' for i in range(STRINGS)]
        parts += [f"?e <urn:r:{i}> ?r{i} FILTER(?r{i} >= %d && ?r{i} <= %d)" for i in range(RANGES)]
        form = f"PREFIX gm: <{GM.iri}> SELECT ?e WHERE {{ {' '.join(parts)} }}"
        low, high = self.rows.low[-RANGES:].tolist(), self.rows.high[-RANGES:].tolist()
        bounds = (bound for pair in zip(low, high, strict=True) for bound in pair)
        columns = [*self.classes.T.tolist(), *self.strings.T.tolist(), *bounds]
        return [form % row for row in zip(*columns, strict=True)]

    def constrained(self) -> Iterator[dict[NamedNode, Constraint]]:
        """Yield seven constraints for each."""
        low, high = (
            bound[-RANGES:].astype(float).T.tolist() for bound in (self.rows.low, self.rows.high)
        )
        rows = zip(self.classes.tolist(), self.strings.tolist(), low, high, strict=True)
        for classes, strings, lows, highs in rows:
            row: dict[NamedNode, Constraint] = {
                _CLASSES[i]: Below(NamedNode(f"urn:t:{i}:{class_}"))
                for i, class_ in enumerate(classes)
            }
            for attribute, text in zip(_STRINGS, strings, strict=True):
                row[attribute] = Equal(Literal(f"s{text}"))
            for attribute, first, last in zip(_RANGES, lows, highs, strict=True):
                row[attribute] = Interval(first, last)
            yield row

    def event(self, number: int) -> Event:
        """Return an event as its values."""
        terms = {p: o for _, p, o in self._valued(number)}
        return Event.of(terms)

    def publication(self, number: int) -> Publication:
        """Return an event as triples."""
        return Publication.of(f"urn:e:{number}", self._valued(number))

    def _valued(self, number: int) -> list[tuple[NamedNode, NamedNode, NamedNode | Literal]]:
        of = number % len(self._classes)
        event = NamedNode(f"urn:e:{number}")
        classes = enumerate(self.event_classes(number))
        texts = zip(_STRINGS, self._strings[of].tolist(), strict=True)
        numbers = zip(_RANGES, self._numbers[of].tolist(), strict=True)
        return [
            *((event, _CLASSES[i], NamedNode(f"urn:t:{i}:{class_}")) for i, class_ in classes),
            *((event, attribute, Literal(f"s{text}")) for attribute, text in texts),
            *((event, attribute, Literal(value)) for attribute, value in numbers),
        ]
