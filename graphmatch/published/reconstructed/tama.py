"""TAMA: ranges are rounded to cells of layers that halve each other, and cells are counted.

Zhao, Wu: "Towards approximate event processing in a large-scale content-based network", ICDCS 2011;
reconstructed from Fan, Liu, Tang (DEXIN, sections 1.1 and 4.1.3), and from the abstract of Zhao and
Wu: a hierarchical table whose size sets the rate of false positives.

Each attribute's range is bisected layer by layer: the first layer is one cell, the last has the
most and smallest cells. A constraint is rounded outwards to cells of the last layer. Its
subscription is placed into the fewest cells, of any layers, that cover it: at most two per layer.
With four layers over 0 to 8, ``[1.5, 6.2]`` is in the cells marked ``*``. A value is in one cell of
each layer::

    1  |               .               |
    2  |       .       |       .       |
    3  |   .   | * 2-3 | * 4-5 |   .   |
    4  | 0 |*1 | 2 | 3 | 4 | 5 |*6 | 7 |

The subscriptions in an event's cells are counted. A subscription matches if its count is its number
of attributes. The result may have too many matches, never too few: values and ends in one cell of
the last layer are not distinguished. More layers are more exact, and need more memory and time.

Cost: O(layers + constraints that hold) per attribute, and one read of each counter; an entry for
each cell that covers a constraint, at most two per layer.

Notes
-----
- That a constraint goes into the fewest cells after it was rounded is inferred.
- The number of layers is open. It is 13 here, as in another implementation
  (github.com/csalg/pubsub): 4,096 cells in the last one.
- Cells are numbered as a heap: the halves of cell c are 2c and 2c + 1.
- Values outside of the domain count as in its first or last cell.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import ClassVar

import numpy as np
from pyoxigraph import NamedNode

from graphmatch.published.attribute_matcher import (
    DOMAIN,
    RANGES,
    AttributeEvent,
    AttributeMatcher,
    Row,
    Tally,
    all_ends,
)
from semantic.ontology.ontology import Ontology


class Tama(AttributeMatcher):
    """TAMA (Zhao, Wu 2011): approximate matching by counting a subscription's cells that are hit.

    The last of the `layers` has ``2 ** (layers - 1)`` cells.

    Examples
    --------
    >>> from graphmatch.published.attribute_matcher import Conjunction, Interval
    >>> tama, price = Tama(Ontology(), domain=(0, 800), layers=4), NamedNode("urn:price")
    >>> tama.add(Conjunction("s", price, ({price: Interval(100.0, 350.0)},)))
    >>> [tama.matched(AttributeEvent({}, {price: v}), Tally()) for v in (99.0, 399.0, 400.0)]
    [[], [0], []]
    """

    capabilities: ClassVar = replace(RANGES, exact=False)

    def __init__(
        self, ontology: Ontology, *, domain: tuple[float, float] = DOMAIN, layers: int = 13
    ) -> None:
        self._layers = layers
        super().__init__(ontology, domain)

    def clear(self) -> None:
        self.cells: dict[NamedNode, defaultdict[int, array[int]]] = {}
        """The numbers of the subscriptions in each cell of an attribute."""
        self._asks = array("q")
        """The number of attributes of each subscription."""

    def insert(self, number: int, row: Row) -> None:
        self._asks.append(len(row))
        for attribute, low, high in all_ends(row):
            if attribute not in self.cells:
                self.cells[attribute] = defaultdict(lambda: array("q"))
            cells = self.cells[attribute]
            for cell in self._covering(low, high):
                cells[cell].append(number)

    def matched(self, event: AttributeEvent, tally: Tally) -> list[int]:
        counted = [array("q")]
        for attribute, value in event.numbers.items():
            if (cells := self.cells.get(attribute)) is None:
                continue
            cell = self._leaf(value)
            while cell:
                if cell in cells:
                    counted.append(cells[cell])
                cell //= 2
            tally.probes += self._layers
        tally.index_hits += len(counted) - 1
        tally.candidates += sum(map(len, counted))
        counts = np.bincount(np.concatenate(counted), minlength=len(self._asks))
        found: list[int] = np.flatnonzero(counts == np.array(self._asks)).tolist()
        return found

    def _covering(self, low: float, high: float) -> Iterator[int]:
        """Yield the fewest cells of any layers that cover a range, rounded to the last layer."""
        first, last = self._leaf(low), self._leaf(high)
        while first <= last:  # a cell whose parent is not covered as a whole
            if first % 2 == 1:
                yield first
                first += 1
            if last % 2 == 0 and first <= last:
                yield last
                last -= 1
            first //= 2
            last //= 2

    def _leaf(self, value: float) -> int:
        """Return the cell of the last layer that contains a number."""
        leaves = 1 << (self._layers - 1)
        return leaves + self.cell(value, leaves)
