"""Generated taxonomies, and pairs of classes to ask about.

A taxonomy has one top and `HEIGHT` levels below it, each larger than the one above by the same
factor, so that about half of all classes are leaves, as in published taxonomies. A class has 1, 2
or 3 parents on the level above, each number as often. In the flavour ``near`` these are
drawn from its neighbourhood, so that branches overlap and stay apart otherwise, as real ones do;
in ``far`` they are drawn from the whole level, so that everything is below almost everything
that is far enough up: the hardest case for an index.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

Flavour: TypeAlias = Literal["near", "far"]
FLAVOURS: tuple[Flavour, ...] = ("near", "far")

HEIGHT = 20
"""How many links the longest way up has; levels are 0 to 20."""

NEAR = 8
"""How many classes to either side a parent may be away."""


@dataclass(frozen=True, slots=True)
class Generated:
    """A taxonomy of integers.

    Parameters
    ----------
    levels
        Shape ``(HEIGHT + 2,)``: the first class of each level, and the number of classes.
    children, parents
        Shape ``(links,)``, int32: class ``children[i]`` is below class ``parents[i]``.
        Ordered by child; a link may come twice.
    """

    levels: NDArray[np.int64]
    children: NDArray[np.int32]
    parents: NDArray[np.int32]

    @property
    def size(self) -> int:
        """How many classes there are."""
        return int(self.levels[-1])


def generate(classes: int, flavour: Flavour, seed: int = 1) -> Generated:
    """Generate a taxonomy; the same for the same arguments.

    Raises
    ------
    ValueError
        When there are fewer classes than levels.

    Examples
    --------
    >>> made = generate(1000, "near")
    >>> made.size, len(made.levels)
    (1000, 22)
    """
    if classes <= HEIGHT:
        raise ValueError(f"a taxonomy of height {HEIGHT} has more than {HEIGHT} classes")
    random = np.random.default_rng(seed)
    levels = _levels(classes)
    count = random.integers(1, 4, classes)
    count[0] = 0
    children = np.repeat(np.arange(classes), count)
    level = np.repeat(np.arange(HEIGHT + 1), np.diff(levels))[children]
    above, own = levels[level - 1], levels[level]
    width = own - above
    if flavour == "far":
        place = (random.random(children.size) * width).astype(np.int64)
    else:
        place = (children - own) * width // (levels[level + 1] - own)
        place += _apart(count, random)
    parents = above + np.clip(place, 0, width - 1)
    return Generated(levels, children.astype(np.int32), parents.astype(np.int32))


def _apart(count: NDArray[np.int64], random: np.random.Generator) -> NDArray[np.int64]:
    """Return, for each link, how far from over its class the parent is; other for each of a class.

    Steps around a circle of a prime number of places never meet the same one twice.
    """
    around = 2 * NEAR + 1
    which = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    first, step = random.integers(0, around, count.size), random.integers(1, around, count.size)
    turned: NDArray[np.int64] = np.repeat(first, count) + which * np.repeat(step, count)
    return turned % around - NEAR


def _levels(classes: int) -> NDArray[np.int64]:
    """Return where each level begins: sizes grow by one factor, which is found by halving."""
    low, high = 1.0, float(classes)
    for _ in range(100):
        factor = (low + high) / 2
        low, high = (
            (factor, high) if (factor ** np.arange(HEIGHT + 1)).sum() < classes else (low, factor)
        )
    starts = np.concatenate([[0], np.cumsum(low ** np.arange(HEIGHT + 1))]).round()
    starts = np.maximum(starts.astype(np.int64), np.arange(HEIGHT + 2))
    starts[-1] = classes
    found: NDArray[np.int64] = np.minimum(starts, classes - np.arange(HEIGHT + 1, -1, -1))
    return found


def random_pairs(made: Generated, count: int, seed: int = 2) -> NDArray[np.int32]:
    """Return pairs of any two classes, shape ``(2, count)``; few of them are true."""
    random = np.random.default_rng(seed)
    return random.integers(0, made.size, (2, count), dtype=np.int32)


def half_true_pairs(made: Generated, count: int, seed: int = 3) -> NDArray[np.int32]:
    """Return pairs of which half are of a class and the end of a random walk up from it.

    All lengths of walk that the class has room for are as likely.
    """
    random = np.random.default_rng(seed)
    pairs = random_pairs(made, count, seed)
    below = pairs[0]
    depth = np.searchsorted(made.levels, below, side="right") - 1
    steps = np.where(random.random(count) < 0.5, random.integers(1, depth + 1, endpoint=True), 0)
    start = np.searchsorted(made.children, np.arange(made.size + 1))
    end = below.copy()
    for step in range(HEIGHT):
        going = np.flatnonzero((steps > step) & (end > 0))
        first, degree = start[end[going]], np.diff(start)[end[going]]
        end[going] = made.parents[first + (random.random(going.size) * degree).astype(np.int64)]
    walked = steps > 0
    pairs[1, walked] = end[walked]
    return pairs


def is_a(made: Generated, below: int, above: int) -> bool:
    """Answer by a plain search: the reference."""
    seen, agenda = {below}, [below]
    while agenda:
        node = agenda.pop()
        if node == above:
            return True
        first = bisect_left(made.children, node)
        for place in range(first, bisect_left(made.children, node + 1, first)):
            parent = int(made.parents[place])
            if parent not in seen:
                seen.add(parent)
                agenda.append(parent)
    return False


def save(made: Generated, folder: Path) -> None:
    """Write a taxonomy's arrays, for `restore` in another process."""
    for name in ("levels", "children", "parents"):
        np.save(folder / f"{name}.npy", getattr(made, name))


def restore(folder: Path) -> Generated:
    """Return what was written by `save`."""
    return Generated(
        *(np.load(folder / f"{name}.npy") for name in ("levels", "children", "parents"))
    )
