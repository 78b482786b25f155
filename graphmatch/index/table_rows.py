"""What constraint tables are about: rows of constraints, and the values that they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ids: TypeAlias = NDArray[np.int32]
Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as they are written: NaN as a low end and -1 as an id mean *not constrained*.

    Parameters
    ----------
    lows, highs
        Closed ends, shape ``(n, k)``.
    ids
        Shape ``(n, m)``.
    """

    lows: Floats
    highs: Floats
    ids: Ids

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self.lows)

    def __getitem__(self, part: slice | NDArray[np.bool_] | Ids) -> Rows:
        """Return some of the rows."""
        return Rows(self.lows[part], self.highs[part], self.ids[part])

    def put(self, part: slice | NDArray[np.intp], rows: Rows) -> None:
        """Write rows over some of these."""
        self.lows[part], self.highs[part], self.ids[part] = rows.lows, rows.highs, rows.ids

    def frozen(self) -> Rows:
        """Return the rows read-only, as compiled loops want them."""
        views = self.lows.view(), self.highs.view(), self.ids.view()
        for view in views:
            view.flags.writeable = False
        return Rows(*views)

    def widened(self, intervals: int, ids: int) -> Rows:
        """Return the rows with so many columns; they do not constrain the new ones."""
        more, other = intervals - self.lows.shape[1], ids - self.ids.shape[1]
        if not more and not other:
            return self
        free = np.full((len(self), more), np.nan)
        return Rows(
            np.hstack((self.lows, free)),
            np.hstack((self.highs, free)),
            np.hstack((self.ids, np.full((len(self), other), -1, np.int32))),
        )

    @staticmethod
    def joined(parts: Sequence[Rows]) -> Rows:
        """Return the rows of all parts, which have the same columns."""
        return Rows(
            np.concatenate([part.lows for part in parts]),
            np.concatenate([part.highs for part in parts]),
            np.concatenate([part.ids for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Values:
    """What a publication has in each column of a table: no value, one, or several.

    Parameters
    ----------
    interval_starts, interval_values
        Those of interval column *c* are ``interval_values[starts[c]:starts[c + 1]]``; ``k + 1``
        starts for ``k`` columns. NaN is no value.
    id_starts, id_values
        The same for columns of ids. Ids that no row knows are allowed.
    interval_ends
        Where values are known to be within a range only, ``interval_values`` are its low ends, and
        these are its high ends: then rows whose interval meets the range are found. By default
        values are exact.

    Raises
    ------
    ValueError
        The types are others than int32 and float64, or the starts do not fit the values.

    Examples
    --------
    >>> values = Values.of([[20.0], []], [[3, 4]])
    >>> values.interval_starts, values.id_values
    (array([0, 1, 1], dtype=int32), array([3, 4], dtype=int32))
    """

    interval_starts: Ids
    interval_values: Floats
    id_starts: Ids
    id_values: Ids
    interval_ends: Floats | None = None
    highs: Floats = field(init=False)
    """The high ends of all ranges."""

    def __post_init__(self) -> None:
        _check(self.interval_starts, self.interval_values, np.float64)
        _check(self.id_starts, self.id_values, np.int32)
        if self.interval_ends is not None:
            _check(self.interval_starts, self.interval_ends, np.float64)
        highs = self.interval_values if self.interval_ends is None else self.interval_ends
        object.__setattr__(self, "highs", highs)

    @classmethod
    def of(cls, intervals: Sequence[Sequence[float]], ids: Sequence[Sequence[int]]) -> Values:
        """Return the values that are given column by column."""
        return cls(
            np.cumsum([0, *map(len, intervals)], dtype=np.int32),
            np.array([value for values in intervals for value in values], np.float64),
            np.cumsum([0, *map(len, ids)], dtype=np.int32),
            np.array([value for values in ids for value in values], np.int32),
        )


def _check(starts: Ids, values: NDArray[Any], kind: type[np.generic]) -> None:
    """Refuse what a compiled loop would trip over."""
    if starts.dtype != np.int32 or values.dtype != kind:
        raise ValueError(
            f"starts are int32 and values {kind.__name__}, not {starts.dtype} and {values.dtype}"
        )
    if starts.ndim != 1 or values.ndim != 1 or not starts.size:
        raise ValueError("starts and values are flat arrays, with one start more than columns")
    if not (starts.flags.c_contiguous and values.flags.c_contiguous):
        raise ValueError("starts and values have gaps in memory: see numpy.ascontiguousarray")
    places = starts.tolist()
    if places[0] != 0 or places[-1] != values.size or places != sorted(places):
        raise ValueError(f"starts ascend from 0 to the {values.size} values, these are {places}")
