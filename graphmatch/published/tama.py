"""TAMA: ranges are rounded to cells of layers that halve each other, and cells are counted.

Zhao, Wu: "Towards approximate event processing in a large-scale content-based network", ICDCS 2011;
here as Fan, Liu, Tang (DEXIN, section 1.1) describe it.

Each attribute's range is bisected layer by layer: the first layer is one cell, the last has the
most and smallest. A constraint is rounded outwards to cells of the last layer, and its subscription
is placed into the fewest cells, of any layers, that cover it: two a layer at most. An event's value
is in one cell of each layer. Whatever subscriptions are there are counted, and one that is counted
for as many attributes as it asks for matches.

It may report too many, never too few: values and ends in one cell of the last layer are not told
apart. More layers are more exact, and take more room and time.

Cost: O(layers + constraints that hold) an attribute; an entry for each cell that covers a
constraint, where wide ones take more. Compiled.

Notes
-----
- The original is not at hand. That a constraint goes into the fewest cells after it was rounded is
  inferred from DEXIN, and from its abstract (a hierarchical table whose size sets the rate of false
  positives). Whether ends are rounded before or after is the same to every answer.
- The number of layers is open. It is 13 here, as an implementation by others has it
  (github.com/csalg/pubsub): 4,096 cells in the last one.
- Cells are numbered as a heap: the halves of cell c are 2c and 2c + 1. So the cells of a constraint
  are found from the last layer upwards, and those of a value by halving its last.
- Values beyond the domain are in the first or last cell, as are ends: what is too high or too low
  for the domain is not told apart either.
- Counters are counted down, so that what is at zero matches without a look at the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

from graphmatch.published.base import (
    DOMAIN,
    RANGES,
    Domain,
    Event,
    FlatMatcher,
    Row,
    Tally,
    all_ends,
)
from graphmatch.published.flat.postings import Numbers, Places, Postings, Sizes
from graphmatch.published.jit import kernel, part
from semantic.ontology.ontology import Ontology

Counts: TypeAlias = NDArray[np.int32]
Values: TypeAlias = NDArray[np.float64]

LAYERS = 13


class Tama(FlatMatcher):
    """The TAMA index.

    Parameters
    ----------
    domain
        Between what most values of an attribute are; others are not told apart.
    layers
        How many there are; the last has ``2 ** (layers - 1)`` cells.

    Attributes
    ----------
    cells
        The subscriptions of each cell; an attribute's cells follow each other.

    Examples
    --------
    >>> from graphmatch.subscription import SubscriptionParser
    >>> tama = Tama(Ontology(), domain=(0, 800), layers=4)
    >>> text = "SELECT ?e { ?e <urn:price> ?v FILTER(?v >= 100 && ?v < 350) }"
    >>> tama.subscribe(SubscriptionParser().parse("s", text))
    >>> price = NamedNode("urn:price")
    >>> [list(tama.matched(Event({}, {price: value}), Tally())) for value in (99.0, 399.0, 400.0)]
    [[], [0], []]
    """

    capabilities: ClassVar = replace(RANGES, exact=False)

    def __init__(
        self, ontology: Ontology, *, domain: Domain = DOMAIN, layers: int = LAYERS
    ) -> None:
        super().__init__(ontology)
        self._domain = float(domain[0]), float(domain[1])
        self._layers, self._leaves = layers, 1 << (layers - 1)
        self.cells = Postings(0)
        self._first: dict[NamedNode, int] = {}
        """Attribute to where its cells begin; they are twice as many as the last layer's."""
        self._free_cells: list[int] = []
        self._counts: Counts = np.zeros(64, np.int32)
        self._found: Counts = np.zeros(64, np.int32)

    @property
    def nbytes(self) -> int:
        """How large the index is."""
        return self.cells.nbytes + self._counts.nbytes + self._found.nbytes

    def insert(self, number: int, row: Row) -> None:
        """Place a subscription into the cells that cover its constraints."""
        if number >= self._counts.size:
            self._counts = np.concatenate([self._counts, np.zeros_like(self._counts)])
            self._found = np.zeros_like(self._counts)
        self._counts[number] = len(row)
        for attribute in row:
            if attribute not in self._first:
                self._first[attribute] = self._new_cells()
        self.cells.append(self._covering(row), number)

    def remove(self, number: int, row: Row) -> None:
        """Take a subscription out of its cells; those of an attribute may be used again."""
        self.cells.discard(self._covering(row), number)
        for attribute in row:
            if self.asked[attribute] == 1:
                self._free_cells.append(self._first.pop(attribute))

    def matched(self, event: Event, tally: Tally) -> Iterable[int]:
        """Count the subscriptions in the cells of the event's values."""
        pairs = [(a, v) for a, v in event.numbers.items() if a in self._first]
        if not pairs:
            return ()
        cells = self.cells
        matched, held, counted = _count(
            (cells.begin, cells.size, cells.numbers),
            np.array([self._first[attribute] for attribute, _ in pairs]),
            np.array([value for _, value in pairs]),
            self._domain,
            self._leaves,
            self._counts.copy(),
            self._found,
        )
        tally.probes += len(pairs) * self._layers
        tally.gates += held
        tally.candidates += counted
        found: list[int] = self._found[:matched].tolist()
        return found

    def _new_cells(self) -> int:
        if self._free_cells:
            return self._free_cells.pop()
        self.cells.extend(2 * self._leaves)
        return len(self.cells) - 2 * self._leaves

    def _covering(self, row: Row) -> Places:
        """Return the cells of all constraints of a row."""
        ends = [(low, high) for _, low, high in all_ends(row)]
        first = np.array([self._first[attribute] for attribute in row])
        cells = np.empty(2 * self._layers * len(row), np.int64)
        return cells[: _cover(first, np.array(ends), self._domain, self._leaves, cells)]


@kernel
def _cover(first: Places, ends: Values, domain: Domain, leaves: int, cells: Places) -> int:
    """Write the fewest cells that cover each range; return how many they are."""
    count = 0
    for place in range(first.size):
        low = leaves + _leaf(ends[place, 0], domain, leaves)
        high = leaves + _leaf(ends[place, 1], domain, leaves)
        while low <= high:  # of this layer, what no cell of the layer above has whole
            if low % 2 == 1:
                cells[count] = first[place] + low
                count += 1
                low += 1
            if high % 2 == 0 and low <= high:
                cells[count] = first[place] + high
                count += 1
                high -= 1
            low //= 2
            high //= 2
    return count


@kernel
def _count(
    cells: tuple[Places, Sizes, Numbers],
    first: Places,
    values: Values,
    domain: Domain,
    leaves: int,
    left: Counts,
    found: Counts,
) -> tuple[int, int, int]:
    """Take one off for each subscription in the values' cells; what is at zero then is found.

    Returns how many are found, how many cells had something, and how many numbers.
    """
    begin, size, numbers = cells
    matched, held, counted = 0, 0, 0
    for place in range(first.size):
        leaf = leaves + _leaf(values[place], domain, leaves)
        while leaf > 0:
            cell = first[place] + leaf
            leaf //= 2
            held += size[cell] > 0
            counted += size[cell]
            for at in range(begin[cell], begin[cell] + size[cell]):
                number = numbers[at]
                left[number] -= 1
                if left[number] == 0:
                    found[matched] = number
                    matched += 1
    return matched, held, counted


@part
def _leaf(value: float, domain: Domain, leaves: int) -> int:
    """Return the cell of the last layer that a number is in."""
    low, high = domain
    share = (min(max(value, low), high) - low) / (high - low)
    return min(int(share * leaves), leaves - 1)
