"""Workloads: subscriptions and events, generated from a seed; `WORKLOADS` names them.

A workload consists of arrays. SPARQL texts, Arrow tables, documents and publications are made of
them on demand. The same class, size and parameters give the same workload.

An event has a number. A *new* event also has a serial number: terms that are not necessary for the
wanted matches get unique names that depend on the serial number.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from semantic.publication import Publication
from semantic.vocabulary import GM

if TYPE_CHECKING:
    import pyarrow as pa

    from semantic.ontology.ontology import Ontology

_PLACES = {
    "graph": "graph:GraphWorkload",
    "attributes": "attributes:AttributeWorkload",
    "concepts": "concepts:ConceptWorkload",
    "keywords": "keywords:KeywordWorkload",
    "ranges": "attributes:RangeWorkload",
    "trees": "concepts:ConceptWorkload",
    "equalities": "attributes:EqualityWorkload",
}
WORKLOADS: Mapping[str, str] = {name: f"{__name__}.{place}" for name, place in _PLACES.items()}
"""The path of each class; the last three have the names in the papers' experiments."""
UNBOUNDED = (int(np.iinfo(np.int32).min), int(np.iinfo(np.int32).max))
"""The interval that constrains nothing."""


def parameters_of(class_: type[Workload]) -> list[str]:
    """Return the names of a workload's parameters: its fields besides the size."""
    return [field.name for field in fields(class_) if field.name != "size"]


def workload_class(name: str) -> type[Workload]:
    """Return a workload's class by its name; raise `KeyError` if it is not in `WORKLOADS`."""
    found: type[Workload] = resolve_name(WORKLOADS[name])
    return found


@dataclass(frozen=True, slots=True)
class Size:
    """The numbers of generated subscriptions and events (at least one of each), and the seed."""

    subscriptions: int
    events: int
    seed: int = 1

    def planted(self, matching: float, matches: int | None) -> tuple[int, int]:
        """Return how many subscriptions are taken from an event, and from how many events.

        At most half of the subscriptions are taken from events. Further events repeat the first
        ones. `matching` is a share of the subscriptions; `matches`, if given, is their number.

        Examples
        --------
        >>> Size(30_000, 200).planted(0.001, None), Size(30_000, 1000).planted(0.001, None)
        ((30, 200), (30, 500))
        >>> Size(1_000_000, 1000).planted(0.001, 30), Size(1000, 20).planted(0.001, 0)
        ((30, 1000), (0, 20))
        """
        wanted = max(1, round(matching * self.subscriptions)) if matches is None else matches
        cut = min(wanted, max(1, self.subscriptions // 2))
        return cut, min(self.events, max(1, self.subscriptions // (2 * max(cut, 1))))


@dataclass(eq=False)
class Workload(ABC):
    """Generates subscriptions and events; all fields besides the size are parameters.

    `renews`: whether it can make events with unseen terms.
    """

    size: Size
    renews: ClassVar[bool] = False

    @abstractmethod
    def texts(self) -> list[str]:
        """Return the subscriptions as SPARQL, in order."""

    @abstractmethod
    def publications(self, number: int, serial: int | None = None) -> list[Publication]:
        """Return the publications of the event `number`.

        If `serial` is given and the workload `renews`, they have terms of their own.
        """

    def document(self, number: int, syntax: str, serial: int | None = None) -> bytes:
        """Return the event `number` as bytes in a syntax; with `serial` as in `publications`."""
        raise NotImplementedError

    def ontology(self) -> Ontology:
        """Return the ontology; by default an empty one."""
        from semantic.ontology.ontology import Ontology

        return Ontology()

    def described(self) -> dict[str, object]:
        """Return the parameters that have a value, for the output."""
        chosen = {name: getattr(self, name) for name in parameters_of(type(self))}
        return {name: value for name, value in chosen.items() if value is not None}


@dataclass(frozen=True, slots=True)
class TabularData:
    """Subscriptions as rows of closed intervals that match events as rows of numbers, all int32.

    `low` and `high` have shape ``(columns, subscriptions)``, `values` has ``(events, columns)``.
    """

    low: NDArray[np.int32]
    high: NDArray[np.int32]
    values: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Column:
    """An attribute of a table: its name, and the values that its numbers stand for.

    `names` has the text or IRI of each; it is empty if they are plain numbers. If they are
    `classes`, the interval of a class contains its descendants, and begins with its own number.
    """

    name: str
    names: Sequence[str] = ()
    classes: bool = False

    @property
    def iri(self) -> NamedNode:
        """The property in texts and publications."""
        return NamedNode(f"urn:{self.name[0]}:{self.name[1:]}")

    def value(self, number: int) -> object:
        """Return an event's value as a Python object."""
        named = self.names[number] if self.names else number
        return {"iri": named} if self.classes else named

    def term(self, number: int) -> NamedNode | Literal:
        """Return an event's value as a term."""
        named = self.names[number] if self.names else number
        return NamedNode(str(named)) if self.classes else Literal(named)

    def pattern(self, low: int, high: int) -> str:
        """Return a subscription's interval from `low` to `high` as a SPARQL pattern and filter."""
        if self.names and not self.classes:
            return f"?e {self.iri} {self.term(low)} ."
        test = f"?{self.name} >= {low} && ?{self.name} <= {high}"
        if self.classes:
            test = f"{GM['descendantOf']}(?{self.name}, {self.term(low)})"
        return f"?e {self.iri} ?{self.name} FILTER({test})"

    def arrow(self, low: NDArray[np.int32], high: NDArray[np.int32]) -> dict[str, Any]:
        """Return subscriptions' intervals as columns of an Arrow table; null if unconstrained."""
        import pyarrow as pa

        if not self.names:
            bounds = ((">=", low, UNBOUNDED[0]), ("<=", high, UNBOUNDED[1]))
            return {f"{self.name} {op}": pa.array(b, mask=b == none) for op, b, none in bounds}
        untold = low == UNBOUNDED[0]
        texts = np.array(self.names, object)[np.where(untold, 0, low)]
        return {f"{self.name} isa" if self.classes else self.name: pa.array(texts, mask=untold)}


class TabularWorkload(Workload):
    """Subscriptions and events as tables: `rows` has numbers, and `columns` their meaning."""

    rows: TabularData
    columns: Sequence[Column]
    _conjunctions: list[Any] | None = None

    def texts(self) -> list[str]:
        """Return the subscriptions as SPARQL: a triple pattern for each constrained attribute."""
        return [self._text(row) for row in self.intervals()]

    def _text(self, row: Sequence[tuple[int, int]]) -> str:
        asked = zip(self.columns, row, strict=True)
        where = " ".join(c.pattern(*ends) for c, ends in asked if ends != UNBOUNDED)
        return f"SELECT ?e WHERE {{ {where} }}"

    def intervals(self) -> list[list[tuple[int, int]]]:
        """Return the lowest and the highest number of each column, for each subscription."""
        pairs = zip(self.rows.low.T.tolist(), self.rows.high.T.tolist(), strict=True)
        return [list(zip(low, high, strict=True)) for low, high in pairs]

    def table(self) -> pa.Table:
        """Return the subscriptions as an Arrow table of constraints on attributes."""
        import pyarrow as pa

        found: dict[str, Any] = {"id": pa.array(ids(self.size.subscriptions))}
        for column, low, high in zip(self.columns, self.rows.low, self.rows.high, strict=True):
            found |= column.arrow(low, high)
        return pa.table(found)

    def conjunctions(self, read: Callable[[str], Any]) -> list[Any]:
        """Return the subscriptions as published algorithms on attributes read them; cached.

        `read` reads a SPARQL text, or raises `UnsupportedError`. It only reads one that constrains
        every attribute. The others are made of the same parts, because reading a million texts
        takes longer than the whole measurement.
        """
        sample = read(self._text([(0, 1)] * len(self.columns)))
        if self._conjunctions is None:
            parts = [(c.iri, type(sample.rows[0][c.iri]), c) for c in self.columns]
            made = [[of(c.term(n)) for n in range(len(c.names))] for _, of, c in parts]
            self._conjunctions = []
            for number, intervals in enumerate(self.intervals()):
                row = {
                    iri: terms[low] if terms else of(float(low), float(high))
                    for (iri, of, _), terms, (low, high) in zip(parts, made, intervals, strict=True)
                    if (low, high) != UNBOUNDED
                }
                self._conjunctions.append(type(sample)(str(number), sample.subject, (row,)))
        return self._conjunctions

    def event(self, number: int) -> dict[str, object]:
        """Return an event as attributes and values."""
        values = self.rows.values[number].tolist()
        return {c.name: c.value(value) for c, value in zip(self.columns, values, strict=True)}

    def events_table(self, numbers: Sequence[int]) -> pa.Table:
        """Return events as an Arrow table: a row each, and columns ``id`` and the attributes."""
        import pyarrow as pa

        rows = [{"id": f"urn:e:{number}", **self.event(number)} for number in numbers]
        return pa.Table.from_pylist(rows)

    def publications(self, number: int, serial: int | None = None) -> list[Publication]:  # noqa: ARG002
        """Return an event as one publication: one subject with its attributes."""
        event = NamedNode(f"urn:e:{number}")
        pairs = zip(self.columns, self.rows.values[number].tolist(), strict=True)
        return [Publication.of(event.value, [(event, c.iri, c.term(v)) for c, v in pairs])]


def ids(count: int) -> list[str]:
    """Return the ids of `count` subscriptions: their positions as text, from 0."""
    return list(map(str, range(count)))


def distinct_rows(
    random: np.random.Generator, count: int, width: int, below: int
) -> NDArray[np.int32]:
    """Draw `count` rows of `width` different numbers below `below`."""
    rows = random.integers(0, below, (count, width), dtype=np.int32)
    again = np.arange(count)
    while again.size:
        ordered = np.sort(rows[again], axis=1)
        again = again[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)]
        rows[again] = random.integers(0, below, (again.size, width), dtype=np.int32)
    return rows
