"""A picture of an ontology, as SVG: the terms around one term, with arrows to what is above each.

Some levels up, some levels down, so many terms of each; what is left out is counted on the box that
it belongs to. Boxes stand in layers, ordered and placed by igraph (the method of Sugiyama, Tagawa
and Toda: "Methods for visual understanding of hierarchical system structures", 1981).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, pairwise, zip_longest
from typing import TypeAlias
from unicodedata import combining, east_asian_width

from pyoxigraph import NamedNode

from graphmatch.command.console import visible
from graphmatch.command.terms import View, depths

MARGIN, GAP, LAYER_GAP, PADDING = 16.0, 22.0, 46.0, 12.0
"""Around the picture, between two boxes, between two layers, and inside a box; in pixels."""
LABEL, SMALL = 14.0, 11.0
"""The sizes of letters, in pixels."""
LONGEST = 30
"""How many characters of a label are shown; a tooltip has all of them."""
LEVEL = 8
"""How many boxes one level may have."""
INSTANCES = 3
"""How many of them may be instances."""
Near: TypeAlias = Callable[[NamedNode], Sequence[NamedNode]]


@dataclass(frozen=True, slots=True)
class Box:
    """A term of the picture; its level is negative above the centre, and positive below.

    `more` is how many of its neighbours, farther from the centre, are not shown.
    """

    term: NamedNode
    label: str | None
    name: str
    level: int
    is_instance: bool
    more: int


@dataclass(frozen=True, slots=True)
class Link:
    """From a term up to one that is directly above it; `is_type` from an instance to its class."""

    lower: NamedNode
    upper: NamedNode
    is_type: bool


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """Boxes, the centre first, and the links between them."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]


def neighbourhood(view: View, centre: NamedNode, radius: int) -> Neighbourhood:
    """Choose what is shown so many links up and down; terms with the most children come first."""

    def below(term: NamedNode) -> Sequence[NamedNode]:
        several = sorted(view.children(term), key=lambda child: -len(view.children(child)))
        if term != centre:
            return several
        instances = [each for each in view.instances(term) if each not in several]
        return (*several[: LEVEL - min(INSTANCES, len(instances))], *instances[:INSTANCES])

    def every(term: NamedNode) -> Sequence[NamedNode]:
        return (*view.children(term), *view.instances(term))

    above = _walk(centre, view.parents, radius, {centre})
    under = _walk(centre, below, radius, {centre, *above})
    levels = _depths({centre, *under}, view.parents)
    levels |= {term: -depth for term, depth in _depths({centre, *above}, every).items()}
    shown = (centre, *above, *under)
    return Neighbourhood(
        tuple(_box_of(view, term, levels[term], frozenset(shown)) for term in shown),
        tuple(
            Link(term, parent, parent in view.types(term))
            for term in shown
            for parent in view.parents(term)
            if parent in levels and parent != term
        ),
    )


def _walk(
    start: NamedNode,
    near: Near,
    radius: int,
    seen: set[NamedNode],
) -> list[NamedNode]:
    """Return what is reached level by level, each term of a level having its turn."""
    found: list[NamedNode] = []
    level = [start]
    for _ in range(radius):
        turns = chain.from_iterable(zip_longest(*(near(term) for term in level)))
        new = dict.fromkeys(term for term in turns if term is not None and term not in seen)
        level = list(new)[:LEVEL]
        seen.update(level)
        found += level
    return found


def _depths(shown: Collection[NamedNode], near: Near) -> dict[NamedNode, int]:
    """Return how far from the centre terms are, by the longest way among them."""
    return depths({term: [one for one in near(term) if one in shown] for term in shown})


def _box_of(view: View, term: NamedNode, level: int, shown: frozenset[NamedNode]) -> Box:
    if level < 0:
        near: set[NamedNode] = set(view.parents(term))
    else:
        near = {*view.children(term), *view.instances(term)}
    return Box(
        term=term,
        label=view.label(term),
        name=view.brief(term),
        level=level,
        is_instance="instance" in view.kinds(term) and len(view.kinds(term)) == 1,
        more=len(near - shown),
    )


_STYLE = """
  text { font-family: system-ui, "Segoe UI", "Helvetica Neue", Arial, sans-serif;
    text-anchor: middle; }
  .page { fill: #ffffff; }
  .box rect { fill: #f3f5f8; stroke: #8796a8; }
  .box .label { font-size: 14px; fill: #17202b; }
  .box .name, .box .more { font-size: 11px; fill: #566476; }
  .box .more { font-style: italic; }
  .centre rect { fill: #ffe7a8; stroke: #b07a00; stroke-width: 2; }
  .centre .label { font-weight: 600; }
  .centre .name, .centre .more { fill: #5f4a12; }
  .instance rect { fill: #ffffff; stroke-dasharray: 5 3; }
  .link { fill: none; stroke: #8796a8; stroke-width: 1.3; }
  .type { stroke-dasharray: 5 3; }
  .arrow { fill: #8796a8; }
  @media (prefers-color-scheme: dark) {
    .page { fill: #14181d; }
    .box rect { fill: #242b34; stroke: #74859a; }
    .box .label { fill: #eef2f6; }
    .box .name, .box .more { fill: #a5b2c1; }
    .centre rect { fill: #5a4300; stroke: #e0a92b; }
    .centre .name, .centre .more { fill: #f0d796; }
    .instance rect { fill: #14181d; }
    .link { stroke: #74859a; }
    .arrow { fill: #74859a; }
  }
"""
_ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" '
    'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
    '<path class="arrow" d="M0 0.5 8 4 0 7.5z"/></marker></defs>'
)


def draw(shown: Neighbourhood) -> str:
    """Return a neighbourhood as an SVG document, as wide and high as it has to be.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> box = Box(NamedNode("urn:a"), "A & B", "<urn:a>", 0, False, 3)
    >>> svg = draw(Neighbourhood((box,), ()))
    >>> "A &amp; B" in svg, "… 3 more" in svg
    (True, True)
    """
    boxes = shown.boxes
    texts = [tuple(_texts(box)) for box in boxes]
    widths = [max(_text_width(t) * size for _, t, size in s) + 2 * PADDING for s in texts]
    height = max(sum(size + 4 for _, _, size in several) for several in texts) + PADDING
    first = min(box.level for box in boxes)
    layers = [box.level - first for box in boxes]
    position = {box.term: number for number, box in enumerate(boxes)}
    links = [(position[link.lower], position[link.upper]) for link in shown.links]
    centres, bends_of = place(layers, max(widths), links)

    def point(layer: int, x: float) -> tuple[float, float]:
        return MARGIN + x, MARGIN + layer * (height + LAYER_GAP)

    tops = list(map(point, layers, centres))
    lines: list[str] = []
    for link, (lower, upper), bends in zip(shown.links, links, bends_of, strict=True):
        curve = _curve([tops[lower], *(point(*bend) for bend in bends), tops[upper]], height)
        says = "is a" if link.is_type else "is under"
        tip = f"{boxes[lower].name} {says} {boxes[upper].name}"
        lines.append(
            f'<path class="{"link type" if link.is_type else "link"}" '
            f'marker-end="url(#arrow)" d="{curve}"><title>{_safe(tip)}</title></path>'
        )
    for box, several, top, width in zip(boxes, texts, tops, widths, strict=True):
        lines += _box(box, several, top, width, height)
    bent = [MARGIN + x for bends in bends_of for _, x in bends]
    right = max([x + width / 2 for (x, _), width in zip(tops, widths, strict=True)] + bent)
    bottom = max(y for _, y in tops) + height
    about = boxes[0].label or boxes[0].name
    return "\n".join([*_head(about, right + MARGIN, bottom + MARGIN), *lines, "</svg>", ""])


def place(
    layers: Sequence[int], width: float, links: Sequence[tuple[int, int]]
) -> tuple[list[float], list[list[tuple[int, float]]]]:
    """Place boxes beside each other.

    Parameters
    ----------
    layers
        Each box's layer, from 0 at the top.
    width
        That of the widest box, in pixels.
    links
        Pairs of the positions of a lower and an upper box.

    Returns
    -------
    centres
        The horizontal middle of each box, in pixels.
    bends
        For each link, from its lower end to its upper one, the layers that it passes between, each
        with a horizontal place.

    Examples
    --------
    >>> centres, _ = place([0, 1, 1], 100, [(1, 0), (2, 0)])
    >>> sorted(centres[1:]), centres[0]
    ([50.0, 172.0], 111.0)
    """
    import igraph  # type: ignore[import-untyped]

    rows = [*layers]
    edges: list[tuple[int, int]] = []
    passed: list[list[int]] = []
    for lower, upper in links:
        between = range(layers[lower] - 1, layers[upper], -1)
        points = [*range(len(rows), len(rows) + len(between))]
        rows += between
        edges += pairwise([lower, *points, upper])
        passed.append(points)
    graph = igraph.Graph(len(rows), [(b, a) for a, b in edges if a != b], directed=True)
    found = graph.layout_sugiyama(layers=rows, hgap=width + GAP, maxiter=200)
    left = min(found[position][0] for position in range(len(rows))) - width / 2
    x = [found[position][0] - left for position in range(len(rows))]
    bends = [[(rows[point], x[point]) for point in points] for points in passed]
    return x[: len(layers)], bends


def _head(about: str, width: float, height: float) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    )
    yield f"<title>{_safe(f'What is around {about}')}</title>"
    yield f"<style>{_STYLE}</style>"
    yield _ARROW
    yield '<rect class="page" width="100%" height="100%"/>'


def _texts(box: Box) -> Iterator[tuple[str, str, float]]:
    """Yield the lines of a box: class, text and size of letters."""
    if box.label is not None:
        yield "label", _short(box.label), LABEL
        if box.name != box.label:
            yield "name", _short(box.name, LONGEST + 10), SMALL
    else:
        yield "label", _short(box.name, LONGEST + 10), LABEL
    if box.more:
        yield "more", f"… {box.more:,} more", SMALL


def _short(text: str, length: int = LONGEST) -> str:
    """Return a text cut in its middle: an IRI's end says most."""
    text = visible(" ".join(text.split()))
    half = length // 2
    return text if len(text) <= length else f"{text[: half - 1]}…{text[len(text) - half :]}"


def _text_width(text: str) -> float:
    """Estimate a text's width in multiples of its letters' size, rather too wide."""
    return sum(0.0 if combining(c) else 1.05 if east_asian_width(c) in "WF" else 0.65 for c in text)


def _curve(tops: Sequence[tuple[float, float]], height: float) -> str:
    """Return a path through layers of a height, upright, and bent between them.

    `tops` are points at the tops of the layers, from the lowest to the uppermost.
    """
    (x, y), *rest = tops
    path = f"M{x:.1f} {y:.1f}"
    for number, (to_x, top) in enumerate(rest, 1):
        bottom = top + height
        middle = (y + bottom) / 2
        path += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {bottom:.1f}"
        path += f"V{top:.1f}" if number < len(rest) else ""
        x, y = to_x, top
    return path


def _box(
    box: Box,
    texts: Sequence[tuple[str, str, float]],
    top: tuple[float, float],
    width: float,
    height: float,
) -> Iterator[str]:
    kind = "box centre" if box.level == 0 else "box instance" if box.is_instance else "box"
    x, y = top
    yield f'<g class="{kind}">'
    yield f"<title>{_safe(f'{box.label or box.name} — {box.term.value}')}</title>"
    yield (
        f'<rect x="{x - width / 2:.1f}" y="{y:.1f}" '
        f'width="{width:.1f}" height="{height:.1f}" rx="7"/>'
    )
    line = y + (height - sum(size + 4 for _, _, size in texts)) / 2
    for name, text, size in texts:
        line += size + 4
        yield f'<text class="{name}" x="{x:.1f}" y="{line - 4:.1f}">{_safe(text)}</text>'
    yield "</g>"


def _safe(text: str) -> str:
    return escape(visible(text), quote=False)
