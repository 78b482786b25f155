"""The picture of a neighbourhood: which terms it has, where they stand, what is written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from xml.etree import ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode

from graphmatch.command.ontology_graph import (
    GAP,
    INSTANCES,
    LEVEL,
    Neighbourhood,
    draw,
    neighbourhood,
    place,
)
from graphmatch.command.terms import View
from semantic.ontology.ontology import Ontology
from semantic.terms import Triple
from semantic.vocabulary import LABEL, SUBCLASS, TYPE

SVG = "{http://www.w3.org/2000/svg}"


def iri(name: object) -> NamedNode:
    return NamedNode(f"http://example.org/{name}")


def around(
    below: Mapping[str, Sequence[str]],
    centre: str,
    radius: int = 2,
    *,
    types: Mapping[str, Sequence[str]] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Neighbourhood:
    """Return a neighbourhood; `below` has each class's subclasses, `types` its instances."""
    triples: list[Triple] = [(iri(c), SUBCLASS, iri(p)) for p, cs in below.items() for c in cs]
    triples += [(iri(i), TYPE, iri(c)) for c, several in (types or {}).items() for i in several]
    triples += [(iri(n), LABEL, Literal(text)) for n, text in (labels or {}).items()]
    return neighbourhood(View(Ontology(triples)), iri(centre), radius)


def levels(shown: Neighbourhood) -> dict[str, int]:
    return {box.name: box.level for box in shown.boxes}


CHAIN = {"a": ["b"], "b": ["c"], "c": ["d"], "d": ["e"], "e": ["f"], "f": ["g"]}


def test_levels_up_and_down() -> None:
    assert levels(around(CHAIN, "d")) == {"d": 0, "c": -1, "b": -2, "e": 1, "f": 2}
    assert levels(around(CHAIN, "d", radius=0)) == {"d": 0}
    assert levels(around(CHAIN, "a", radius=9)) == {n: "abcdefg".index(n) for n in "abcdefg"}


def test_what_is_left_out_is_counted() -> None:
    more = {box.name: box.more for box in around(CHAIN, "d").boxes}
    assert more == {"d": 0, "c": 0, "b": 1, "e": 0, "f": 1}
    wide = around({"top": [f"n{n:02}" for n in range(45)]}, "top")
    assert len(wide.boxes) == 1 + LEVEL
    assert wide.boxes[0].more == 45 - LEVEL
    assert "… 37 more" in draw(wide)


def test_terms_with_most_children_come_first() -> None:
    below = {"top": [f"n{n:02}" for n in range(20)], "n19": ["x", "y"], "n18": ["z"]}
    names = [box.name for box in around(below, "top", radius=1).boxes]
    assert names[1:4] == ["n19", "n18", "n00"]


def test_a_term_stands_below_all_its_parents() -> None:
    shown = around({"top": ["a", "b"], "a": ["b"], "b": ["c"], "up": ["top"]}, "top")
    assert levels(shown) == {"top": 0, "up": -1, "a": 1, "b": 2, "c": 3}
    assert {(link.lower, link.upper) for link in shown.links} == {
        (iri(a), iri(b))
        for a, b in [("top", "up"), ("a", "top"), ("b", "top"), ("b", "a"), ("c", "b")]
    }


def test_instances_are_dashed_and_few() -> None:
    below = {"top": [f"n{n}" for n in range(20)]}
    shown = around(below, "top", types={"top": [f"i{n}" for n in range(9)]})
    instances = [box.name for box in shown.boxes if box.is_instance]
    assert instances == [f"i{n}" for n in range(INSTANCES)]
    assert shown.boxes[0].more == 20 + 9 - LEVEL
    drawn = ET.fromstring(draw(shown))
    dashed = [g for g in drawn.iter(f"{SVG}g") if g.get("class") == "box instance"]
    types = [path for path in drawn.iter(f"{SVG}path") if path.get("class") == "link type"]
    assert len(dashed) == len(types) == INSTANCES


def test_an_instance_stands_under_its_class() -> None:
    shown = around({"top": ["a"]}, "i", types={"a": ["i"]})
    assert levels(shown) == {"i": 0, "a": -1, "top": -2}
    assert [link.is_type for link in shown.links] == [True, False]


def test_text_is_escaped_and_shortened() -> None:
    label = "<script>&\"\x1b'" + "long " * 50
    drawn = ET.fromstring(draw(around({"top": ["a"]}, "a", labels={"a": label})))
    (box,) = (g for g in drawn.iter(f"{SVG}g") if g.get("class") == "box centre")
    title, text = box.findtext(f"{SVG}title"), box.findtext(f"{SVG}text")
    assert title is not None
    assert title.startswith("<script>&\"\\x1b'long")
    assert title.endswith(" — http://example.org/a")
    assert text is not None
    assert len(text) <= 30
    assert "…" in text


def rectangles(svg: str) -> dict[str, tuple[float, float, float, float]]:
    """Return each box's left, top, right and bottom by its tooltip."""
    found = {}
    for group in ET.fromstring(svg).iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        assert rect is not None
        x, y, width, height = (float(rect.get(k, "nan")) for k in ("x", "y", "width", "height"))
        found[str(group.findtext(f"{SVG}title"))] = (x, y, x + width, y + height)
    return found


def assert_is_sound(shown: Neighbourhood) -> None:
    """Assert that no two boxes overlap, all are inside, and arrows go from box to box, up."""
    svg = draw(shown)
    boxes = rectangles(svg)
    assert len(boxes) == len(shown.boxes)
    for one, other in combinations(boxes.values(), 2):
        apart = one[2] < other[0] or other[2] < one[0] or one[3] < other[1] or other[3] < one[1]
        assert apart, (one, other)
    root = ET.fromstring(svg)
    width, height = float(root.get("width", "0")), float(root.get("height", "0"))
    for left, top, right, bottom in boxes.values():
        assert min(left, top) > 0
        assert right < width
        assert bottom < height
    by_iri = {title.rpartition(" — ")[2]: box for title, box in boxes.items()}
    arrows = [p for p in root.iter(f"{SVG}path") if p.get("marker-end")]
    assert len(arrows) == len(shown.links)
    for link, arrow in zip(shown.links, arrows, strict=True):
        lower, upper = by_iri[link.lower.value], by_iri[link.upper.value]
        numbers = [float(n) for n in re.findall(r"-?\d+\.\d", arrow.get("d", ""))]
        assert abs(numbers[0] - (lower[0] + lower[2]) / 2) < 0.2
        assert abs(numbers[1] - lower[1]) < 0.2
        assert abs(numbers[-1] - upper[3]) < 0.2
        assert lower[1] > upper[3]


EDGES = st.dictionaries(
    st.integers(0, 14), st.lists(st.integers(0, 14), max_size=5, unique=True), max_size=10
)


@given(EDGES, st.integers(0, 14), st.integers(0, 4))
def test_no_boxes_overlap(edges: dict[int, list[int]], centre: int, radius: int) -> None:
    below = {f"n{p}": [f"n{c}" for c in children if c > p] for p, children in edges.items()}
    below["n0"] = [*below.get("n0", []), f"n{centre or 1}"]
    assert_is_sound(around(below, f"n{centre}", radius))


@given(
    st.lists(st.integers(0, 3), min_size=1, max_size=12),
    st.floats(20, 300),
    st.sets(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=15),
)
def test_boxes_of_a_layer_keep_their_distance(
    boxes: list[int], width: float, pairs: set[tuple[int, int]]
) -> None:
    used = sorted(set(boxes))
    layers = [used.index(layer) for layer in boxes]
    links = [
        (a, b)
        for a, b in sorted(pairs)
        if a < len(boxes) and b < len(boxes) and layers[a] > layers[b]
    ]
    centres, bends = place(layers, width, links)
    for layer in range(len(used)):
        row = [centre for centre, own in zip(centres, layers, strict=True) if own == layer]
        row += [x for several in bends for at, x in several if at == layer]
        for x, to_x in pairwise(sorted(row)):
            assert to_x - x > width + GAP - 1e-6
    assert min(centres) > width / 2 - 1e-6
    assert [len(several) for several in bends] == [layers[a] - layers[b] - 1 for a, b in links]
