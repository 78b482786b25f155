"""A neighbourhood as SVG: boxes, with arrows from each term up to what is above it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from unicodedata import combining, east_asian_width

from graphmatch.command.console import visible
from graphmatch.command.layout import place
from graphmatch.command.neighbourhood import Box, Neighbourhood

MARGIN, LAYER_GAP, PADDING = 16.0, 46.0, 12.0
"""Around the picture, between two layers, and inside a box; in pixels."""
LABEL, SMALL = 14.0, 11.0
"""The sizes of letters, in pixels."""
LONGEST = 30
"""How many characters of a label are shown; a tooltip has all of them."""

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
    first = min(box.level for box in boxes)
    layers = [box.level - first for box in boxes]
    texts = [tuple(_texts(box)) for box in boxes]
    widths, heights = list(map(_width, texts)), list(map(_height, texts))
    position = {box.term: number for number, box in enumerate(boxes)}
    links = [(position[link.lower], position[link.upper]) for link in shown.links]
    placed = place(layers, widths, links)
    rows = _rows(layers, heights)
    areas = [
        _Area(MARGIN + x, (rows[layer][0] + rows[layer][1]) / 2, width, height)
        for x, layer, width, height in zip(placed.centres, layers, widths, heights, strict=True)
    ]
    lines: list[str] = []
    for link, (lower, upper), bends in zip(shown.links, links, placed.bends, strict=True):
        ways = [(layers[lower], areas[lower].x)]
        ways += [(layer, MARGIN + x) for layer, x in bends]
        ways.append((layers[upper], areas[upper].x))
        curve = _curve(areas[lower].top, areas[upper].bottom, ways, rows)
        says = "is a" if link.is_type else "is under"
        tip = f"{boxes[lower].name} {says} {boxes[upper].name}"
        lines.append(
            f'<path class="{"link type" if link.is_type else "link"}" '
            f'marker-end="url(#arrow)" d="{curve}"><title>{_safe(tip)}</title></path>'
        )
    for box, several, area in zip(boxes, texts, areas, strict=True):
        lines += _box(box, several, area)
    right = max(
        [area.x + area.width / 2 for area in areas]
        + [MARGIN + x for bends in placed.bends for _, x in bends]
    )
    about = boxes[0].label or boxes[0].name
    return "\n".join([*_head(about, right + MARGIN, rows[-1][1] + MARGIN), *lines, "</svg>", ""])


@dataclass(frozen=True, slots=True)
class _Area:
    """Where a box is: its middle, width and height."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


def _head(about: str, width: float, height: float) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
    )
    yield f"<title>{_safe(f'What is around {about}')}</title>"
    yield f"<style>{_STYLE}</style>"
    yield _ARROW
    yield '<rect class="page" width="100%" height="100%"/>'


def _rows(layers: Sequence[int], heights: Sequence[float]) -> list[tuple[float, float]]:
    """Return each layer's top and bottom."""
    tallest = [0.0] * (max(layers) + 1)
    for layer, height in zip(layers, heights, strict=True):
        tallest[layer] = max(tallest[layer], height)
    rows, top = [], MARGIN
    for height in tallest:
        rows.append((top, top + height))
        top += height + LAYER_GAP
    return rows


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


def _width(texts: Sequence[tuple[str, str, float]]) -> float:
    return max(_text_width(text) * size for _, text, size in texts) + 2 * PADDING


def _height(texts: Sequence[tuple[str, str, float]]) -> float:
    return sum(size + 4 for _, _, size in texts) + PADDING


def _text_width(text: str) -> float:
    """Estimate a text's width in multiples of its letters' size, rather too wide."""
    return sum(map(_letter_width, text))


def _letter_width(letter: str) -> float:
    if combining(letter):
        return 0.0
    if east_asian_width(letter) in "WF":
        return 1.05
    if letter in "iljtfrI.,:;'|!()[] ":
        return 0.39
    if letter in "mwMW@%—…":
        return 0.95
    return 0.72 if letter.isupper() or letter in "<>" else 0.61


def _curve(
    start: float,
    end: float,
    ways: Sequence[tuple[int, float]],
    rows: Sequence[tuple[float, float]],
) -> str:
    """Return a path from a box's top to a box's bottom, through layers upright, else bent.

    Parameters
    ----------
    ways
        The layers from the lower to the upper, each with its horizontal place.
    """
    (layer, x), *rest = ways
    y = rows[layer][0]
    path = f"M{x:.1f} {start:.1f}" + _upright(start, y)
    for layer, to_x in rest:
        top, bottom = rows[layer]
        middle = (y + bottom) / 2
        path += f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {bottom:.1f}"
        x, y = to_x, (end if layer == ways[-1][0] else top)
        path += _upright(bottom, y)
    return path


def _upright(start: float, end: float) -> str:
    """Return a piece of a path; one without length would leave an arrow without direction."""
    return f"V{end:.1f}" if abs(start - end) > 0.05 else ""


def _box(box: Box, texts: Sequence[tuple[str, str, float]], area: _Area) -> Iterator[str]:
    kind = "box centre" if box.level == 0 else "box instance" if box.is_instance else "box"
    yield f'<g class="{kind}">'
    yield f"<title>{_safe(f'{box.label or box.name} — {box.term.value}')}</title>"
    yield (
        f'<rect x="{area.x - area.width / 2:.1f}" y="{area.top:.1f}" '
        f'width="{area.width:.1f}" height="{area.height:.1f}" rx="7"/>'
    )
    line = area.top + PADDING / 2
    for name, text, size in texts:
        line += size + 4
        yield f'<text class="{name}" x="{area.x:.1f}" y="{line - 4:.1f}">{_safe(text)}</text>'
    yield "</g>"


def _safe(text: str) -> str:
    return escape(visible(text), quote=False)
