"""Where the boxes of a layered picture stand.

The order in each layer is found by the barycentre heuristic of Sugiyama, Tagawa and Toda
(“Methods for visual understanding of hierarchical system structures”, 1981), as igraph has it;
links that span several layers get a point in each layer between. Then boxes move to the mean of
their neighbours as far as their widths and the order allow: for one layer that is isotonic
regression, solved by pooling adjacent violators.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

SWEEPS = 12
"""How often boxes move: down the layers by those above, up by those below, in turns; the last
time up, so that a box stands in the middle over those below it."""
TO_BOTH_SIDES = (8, 9)
"""The sweeps that go by both."""
GAP = 22.0
"""Between two boxes of a layer, in pixels."""


@dataclass(frozen=True, slots=True)
class Placed:
    """The result.

    Parameters
    ----------
    centres
        The horizontal middle of each box, in pixels from the left.
    bends
        For each link, from its lower end to its upper one, the layers that it passes between,
        each with a horizontal place.
    """

    centres: list[float]
    bends: list[list[tuple[int, float]]]


def place(
    layers: Sequence[int], widths: Sequence[float], links: Sequence[tuple[int, int]]
) -> Placed:
    """Place boxes.

    Parameters
    ----------
    layers
        Each box's layer, from 0 at the top.
    widths
        Each box's width in pixels.
    links
        Pairs of the positions of a lower and an upper box.

    Examples
    --------
    >>> placed = place([0, 1, 1], [100, 60, 60], [(1, 0), (2, 0)])
    >>> sorted(placed.centres[1:]), placed.centres[0]
    ([30.0, 112.0], 71.0)
    """
    all_layers, all_widths = list(layers), list(widths)
    short: list[tuple[int, int]] = []
    points: list[list[int]] = []
    for lower, upper in links:
        passed = list(range(layers[lower] - 1, layers[upper], -1))
        new = list(range(len(all_layers), len(all_layers) + len(passed)))
        all_layers += passed
        all_widths += [1.0] * len(passed)
        points.append(new)
        chain = [lower, *new, upper]
        short += pairwise(chain)
    x = _spread(_ordered(all_layers, short), all_widths, short, len(layers))
    left = min(place - width / 2 for place, width in zip(x, all_widths, strict=True))
    x = [place - left for place in x]
    bends = [[(all_layers[point], x[point]) for point in several] for several in points]
    return Placed(x[: len(layers)], bends)


def _ordered(layers: Sequence[int], links: Sequence[tuple[int, int]]) -> list[list[int]]:
    """Return the positions of each layer from left to right."""
    import igraph  # type: ignore[import-untyped]

    graph = igraph.Graph(len(layers), [(b, a) for a, b in links if a != b], directed=True)
    found = graph.layout_sugiyama(layers=list(layers), maxiter=200)
    rows: list[list[int]] = [[] for _ in range(max(layers) + 1)]
    for position in sorted(range(len(layers)), key=lambda each: (found[each][0], each)):
        rows[layers[position]].append(position)
    return rows


def _spread(
    rows: Sequence[Sequence[int]],
    widths: Sequence[float],
    links: Sequence[tuple[int, int]],
    boxes: int,
) -> list[float]:
    near: list[list[int]] = [[] for _ in widths]
    for lower, upper in links:
        near[lower].append(upper)
        near[upper].append(lower)
    row_of = {position: number for number, row in enumerate(rows) for position in row}
    x = [0.0] * len(widths)
    for sweep in range(SWEEPS):
        down = sweep % 2 == 0
        for number in range(len(rows)) if down else reversed(range(len(rows))):
            targets, weights = [], []
            for position in rows[number]:
                wanted = [
                    x[each]
                    for each in near[position]
                    if sweep in TO_BOTH_SIDES or (row_of[each] < number) == down
                ]
                targets.append(sum(wanted) / len(wanted) if wanted else x[position])
                weights.append((1.0 if position < boxes else 4.0) if wanted else 0.05)
            for position, at in zip(
                rows[number],
                _apart(targets, weights, [widths[each] for each in rows[number]]),
                strict=True,
            ):
                x[position] = at
    return x


def _apart(
    targets: Sequence[float], weights: Sequence[float], widths: Sequence[float]
) -> Iterable[float]:
    """Return the places nearest to the targets (least squares) at which no boxes overlap."""
    offsets = [0.0]
    for one, other in pairwise(widths):
        offsets.append(offsets[-1] + (one + other) / 2 + GAP)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, how many
    for target, offset, weight in zip(targets, offsets, weights, strict=True):
        mean, heavy, count = target - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            before, weight_before, count_before = blocks.pop()
            mean = (mean * heavy + before * weight_before) / (heavy + weight_before)
            heavy, count = heavy + weight_before, count + count_before
        blocks.append((mean, heavy, count))
    means = [mean for mean, _, count in blocks for _ in range(count)]
    return (mean + offset for mean, offset in zip(means, offsets, strict=True))
