"""Where to cut a column into cells, so that few rows begin or end inside one.

Whether a row holds for a value changes at its low end and right after its high end. A cell from one
cut up to the next says of a row *yes*, *no*, or, when a change lies strictly inside, *perhaps*.
Changes at a cut itself cost nothing; so places where many rows change become cuts of their own, and
the rest is cut at quantiles.

Cost: a sort of a sample of the column.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLE = 16_384
"""So many rows of a column are looked at."""


def quantile_cuts(
    lows: NDArray[np.float64], highs: NDArray[np.float64], cells: int
) -> NDArray[np.float64]:
    """Return at most ``cells - 1`` cuts in ascending order.

    Parameters
    ----------
    lows, highs
        The closed ends of intervals, shape ``(n,)``, none of them NaN.
    cells
        How many cells there may be.

    Examples
    --------
    Five is asked for by many, so a cell holds nothing but five:

    >>> lows = np.array([5.0, 5.0, 5.0, 5.0, 1.0, 2.0, 3.0, 4.0])
    >>> quantile_cuts(lows, np.where(lows == 5, 5.0, np.inf), 4).round(3)
    array([2., 5., 5.])
    """
    step = max(1, lows.size // SAMPLE)
    begins, ends = lows[::step], highs[::step]
    changes = np.concatenate((begins[begins > -np.inf], next_after(ends[ends < np.inf])))
    places, counts = np.unique(changes, return_counts=True)
    if places.size < cells:
        return places
    heavy = counts * cells >= counts.sum()
    if int(heavy.sum()) >= cells:
        heavy[np.argsort(-counts, kind="stable")[cells - 1 :]] = False
    light, weights = places[~heavy], counts[~heavy].cumsum()
    left = cells - int(heavy.sum())  # cells that the rest is cut into
    wanted = np.arange(1, left) * (weights[-1] / left) if light.size else np.empty(0)
    chosen = light[np.minimum(np.searchsorted(weights, wanted), light.size - 1)]
    return np.unique(np.concatenate((places[heavy], chosen)))


def next_after(highs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return for each number the next one, which is infinite after the largest."""
    with np.errstate(over="ignore"):
        return np.nextafter(highs, np.inf)
