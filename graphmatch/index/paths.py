"""Paths: the properties and directions of walks, by number.

A column of a table is named by one integer, whether its values are one step from the root or
several: a walk of several steps is known by the number of its path. Paths are never forgotten:
what is no longer mentioned is a sequence of integers that may come again.

Cost: a sort of the rows when many come whose paths differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.arrays import distinct, grown
from graphmatch.index.terms import Ids

Longs: TypeAlias = NDArray[np.int64]


class Paths:
    """Paths by number.

    Examples
    --------
    >>> paths = Paths()
    >>> paths.numbers((0, 1), np.array([[7, 8], [7, 9], [7, 8]], np.int32)).tolist()
    [1, 0, 1]
    >>> paths.steps(0), paths.properties(0)
    (((7, 0), (9, 1)), [7, 9])
    """

    def __init__(self) -> None:
        self.starts = np.zeros(16, np.int32)
        """By number: where its steps begin; one more says where the last ones end."""
        self.walked = np.zeros((16, 2), np.int32)
        """Properties and directions of all steps."""
        self._numbers: dict[tuple[tuple[int, int], ...], int] = {}

    def steps(self, number: int) -> tuple[tuple[int, int], ...]:
        """Return property and direction of each step."""
        own = self.walked[self.starts[number] : self.starts[number + 1]].tolist()
        return tuple((property_, direction) for property_, direction in own)

    def properties(self, number: int) -> list[int]:
        """Return the properties of a path, in their order."""
        own: list[int] = self.walked[self.starts[number] : self.starts[number + 1], 0].tolist()
        return own

    def numbers(self, directions: Iterable[int], properties: Ids) -> Longs:
        """Return the numbers of paths that have the same directions.

        Parameters
        ----------
        properties
            Shape (paths, steps).
        """
        directions = tuple(directions)
        some, inverse = distinct(properties.astype(np.int64))
        numbers = [self._number(tuple(zip(own, directions, strict=True))) for own in some.tolist()]
        return np.array(numbers, np.int64)[inverse]

    def _number(self, steps: tuple[tuple[int, int], ...]) -> int:
        number = self._numbers.get(steps)
        if number is None:
            number = self._numbers[steps] = len(self._numbers)
            start = int(self.starts[number])
            self.starts = grown(self.starts, number + 2)
            self.walked = grown(self.walked, start + len(steps))
            self.walked[start : start + len(steps)] = steps
            self.starts[number + 1] = start + len(steps)
        return number

    # -- saving -----------------------------------------------------------------------------

    def arrays(self) -> dict[str, Ids]:
        """Return all that is to be saved; `of_arrays` makes the same of it."""
        count = len(self._numbers)
        return {
            "starts": self.starts[: count + 1],
            "walked": self.walked[: self.starts[count]],
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Ids]) -> Paths:
        """Return the paths that gave these arrays."""
        paths = cls()
        paths.starts, paths.walked = arrays["starts"], arrays["walked"]
        for number in range(len(paths.starts) - 1):
            paths._numbers[paths.steps(number)] = number
        return paths
