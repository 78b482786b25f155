"""The shapes of tabled rows, by number: what rows have in common that differ in numbers and ids.

A number lives as long as there are rows of its shape. What was matched before keeps the list of
shapes that it has seen: a number is given to another shape in a new list only.

Cost: a Python object a shape.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmatch.index.arrays import grown
from graphmatch.index.plans import Program
from graphmatch.index.stars import Star, star_of

MOST_SHAPES = 2**16
"""There are no more shapes at a time."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What rows of a table have in common: all but their numbers and ids.

    Parameters
    ----------
    table
        The number of their table.
    program, star
        What they ask.
    any_will_do
        Whether one solution is as good as all.
    inexact
        Whether they have a bound that may be off.
    columns
        By leaf, its column: that of intervals, or below zero, -1 less that of ids.
    """

    table: int
    program: Program
    star: Star
    any_will_do: bool
    inexact: bool
    columns: tuple[int, ...]


class ShapeTable:
    """Shapes by number, with how many rows each has.

    Examples
    --------
    >>> shapes = ShapeTable()
    >>> shape = Shape(0, Program(((0, -1, 1),), (), 2), Star(0, 2, (), ()), True, False, (-1,))
    >>> shapes.number(shape), shapes.number(shape), len(shapes)
    (0, 0, 1)
    >>> shapes.take(np.array([0, 0]))
    >>> shapes.release(0)
    >>> shapes.release(0)
    >>> len(shapes)
    0
    """

    def __init__(self) -> None:
        self.known: list[Shape | None] = []
        """By number; a list that was read here stays what it was, but for shapes at its end."""
        self.inexact = np.zeros(16, np.bool_)
        """By number: `Shape.inexact`."""
        self._numbers: dict[Shape, int] = {}
        self._counts: list[int] = []
        self._free: list[int] = []

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, number: int) -> Shape:
        """Return the shape that has a number."""
        shape = self.known[number]
        assert shape is not None
        return shape

    def all(self) -> Iterable[Shape]:
        """Return all shapes that have a number."""
        return self._numbers

    def number(self, shape: Shape) -> int:
        """Return a shape's number, which it is to get rows for; -1 when there are too many."""
        number = self._numbers.get(shape)
        if number is not None:
            return number
        if self._free:
            number = self._free.pop()
            self.known = [*self.known]
            self.known[number] = shape
        elif len(self.known) < MOST_SHAPES:
            number = len(self.known)
            self.known.append(shape)
            self._counts.append(0)
            self.inexact = grown(self.inexact, number + 1)
        else:
            return -1
        self._numbers[shape] = number
        self.inexact[number] = shape.inexact
        return number

    def document(self) -> list[list[Any] | None]:
        """Return all shapes by number, with how many rows each has, as JSON can hold them."""
        return [
            None
            if shape is None or self._numbers.get(shape) != number
            else [
                self._counts[number],
                shape.table,
                [shape.program.patterns, shape.program.checks, shape.program.variables],
                shape.any_will_do,
                shape.inexact,
                shape.columns,
            ]
            for number, shape in enumerate(self.known)
        ]

    @classmethod
    def of_document(cls, document: Sequence[Sequence[Any] | None]) -> ShapeTable:
        """Return the shapes that gave this document."""
        shapes = cls()
        shapes.known, shapes._counts = [None] * len(document), [0] * len(document)
        shapes.inexact = grown(shapes.inexact, len(document))
        for number, saved in enumerate(document):
            if saved is None:
                shapes._free.append(number)
                continue
            count, table, (patterns, checks, variables), any_will_do, inexact, columns = saved
            program = Program(tuple(map(tuple, patterns)), tuple(map(tuple, checks)), variables)
            star = star_of(program)
            if star is None:
                raise ValueError("a shape is no star")
            shape = Shape(table, program, star, any_will_do, inexact, tuple(columns))
            shapes.known[number], shapes._counts[number] = shape, count
            shapes._numbers[shape], shapes.inexact[number] = number, inexact
        return shapes

    def take(self, numbers: NDArray[np.integer]) -> None:
        """Note that rows have come, of these shapes."""
        counts = np.bincount(numbers)
        for number in np.flatnonzero(counts).tolist():
            self._counts[number] += int(counts[number])

    def release(self, number: int) -> None:
        """Note that a row of a shape has gone."""
        self._counts[number] -= 1
        if not self._counts[number]:
            del self._numbers[self[number]]
            self._free.append(number)
