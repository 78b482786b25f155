"""``equalities``: the simulated load of the Gryphon matching tree.

Aguilera, Strom, Sturman, Astley, Chandra: "Matching events in a content-based subscription system",
PODC 1999, section on performance. A schema has attributes with the same number of values each. The
first attribute is the most popular one: that is the probability that a subscription tests it; each
further one is less popular by a factor. The values that are tested follow Zipf's law; events have
any value of each attribute, all as often.

The numbers of the paper are not in the text at hand; those here are ours. A subscription that would
test nothing tests the first attribute.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from pyoxigraph import Literal, NamedNode

from graphmatch.bench.paper.workloads.flat import FlatWorkload
from graphmatch.bench.workloads.workload import Size, ids
from graphmatch.published.base import Equal, Event
from semantic.publication import Publication

if TYPE_CHECKING:
    import pyarrow as pa

ATTRIBUTES, VALUES = 10, 5
POPULAR, FALLING = 0.95, 0.85

UNTESTED = -1


@dataclass(frozen=True, slots=True)
class EqualityParameters:
    """What can be chosen.

    Parameters
    ----------
    attributes, values
        How many attributes there are, and how many values each has.
    popular
        How likely the first attribute is tested.
    falling
        By which factor each further one is less likely to be.
    """

    attributes: int = ATTRIBUTES
    values: int = VALUES
    popular: float = POPULAR
    falling: float = FALLING


class EqualityWorkload(FlatWorkload):
    """Equalities with one of few values.

    Parameters
    ----------
    size
        How much is generated.
    parameters
        See `EqualityParameters`.

    Attributes
    ----------
    tested
        Shape ``(subscriptions, attributes)``: the value that is asked for, or `UNTESTED`.
    values
        Shape ``(events, attributes)``.

    Examples
    --------
    >>> made = EqualityWorkload(Size(100, 5), EqualityParameters(attributes=3))
    >>> made.tested.shape, made.values.shape, len(made.publication(0).triples)
    ((100, 3), (5, 3), 3)
    """

    name: ClassVar = "equalities"
    parameters_class: ClassVar = EqualityParameters
    tabular: ClassVar = True
    kinds: ClassVar = frozenset({Equal})
    parameters: EqualityParameters

    def __init__(self, size: Size, parameters: EqualityParameters) -> None:
        super().__init__(size, parameters)
        random = np.random.default_rng(size.seed)
        columns, count = parameters.attributes, parameters.values
        weights = 1 / np.arange(1, count + 1)
        shape = size.subscriptions, columns
        drawn = random.choice(count, shape, p=weights / weights.sum())
        popular = parameters.popular * parameters.falling ** np.arange(columns)
        tests = random.random(shape) < popular
        tests[~tests.any(axis=1), 0] = True
        self.tested = np.where(tests, drawn, UNTESTED)
        self.values = random.integers(0, count, (size.events, columns))
        self._attributes = [NamedNode(f"urn:a:{column}") for column in range(columns)]
        self._texts = [f"v{value}" for value in range(count)]

    def texts(self) -> list[str]:
        """Return the subscriptions: a pattern with a text for each test."""
        return [
            f"SELECT ?e WHERE {{ {' . '.join(self._patterns(row))} }}"
            for row in self.tested.tolist()
        ]

    def table(self) -> pa.Table:
        """Return the subscriptions: a column of texts for each attribute."""
        import pyarrow as pa

        columns: dict[str, pa.Array[Any]] = {"id": pa.array(ids(self.size.subscriptions))}
        texts = np.array(self._texts, object)
        for column, values in enumerate(self.tested.T):
            columns[f"a{column}"] = pa.array(texts[values], mask=values == UNTESTED)
        return pa.table(columns)

    def attributes(self, number: int) -> dict[str, object]:
        """Return an event as attributes and values."""
        values = enumerate(self.values[number].tolist())
        return {f"a{column}": self._texts[value] for column, value in values}

    def _patterns(self, row: list[int]) -> Iterator[str]:
        for column, value in enumerate(row):
            if value != UNTESTED:
                yield f'?e <urn:a:{column}> "{self._texts[value]}"'

    def constrained(self) -> Iterator[dict[NamedNode, Equal]]:
        """Yield the tests."""
        equal = [Equal(Literal(text)) for text in self._texts]
        for row in self.tested.tolist():
            pairs = zip(self._attributes, row, strict=True)
            yield {attribute: equal[value] for attribute, value in pairs if value != UNTESTED}

    def event(self, number: int) -> Event:
        """Return an event as its values."""
        return Event(dict(self._valued(number)))

    def publication(self, number: int) -> Publication:
        """Return an event as triples."""
        event = NamedNode(f"urn:e:{number}")
        triples = [(event, attribute, text) for attribute, text in self._valued(number)]
        return Publication.of(event.value, triples)

    def _valued(self, number: int) -> Iterator[tuple[NamedNode, Literal]]:
        for attribute, value in zip(self._attributes, self.values[number].tolist(), strict=True):
            yield attribute, Literal(self._texts[value])
