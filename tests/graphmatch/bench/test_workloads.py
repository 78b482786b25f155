"""The workloads of `graphmatch bench`, checked against docs/benchmarks.md."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from pyoxigraph import parse

from graphmatch.bench.workloads import UNBOUNDED, Size, TabularWorkload, Workload, workload_class
from graphmatch.bench.workloads.attributes import (
    LARGEST,
    AttributeWorkload,
    EqualityWorkload,
    RangeWorkload,
)
from graphmatch.bench.workloads.concepts import ConceptWorkload
from graphmatch.bench.workloads.graph import SYNTAXES, GraphWorkload
from graphmatch.bench.workloads.keywords import KeywordWorkload
from graphmatch.published import make as published
from graphmatch.subscription import SubscriptionParser
from semantic.errors import InputError

NAMES = ["graph", "attributes", "concepts", "keywords", "ranges", "equalities"]
FEEDS = Path(__file__).parents[3] / "data/feeds"


def make(name: str, size: Size, **parameters: Any) -> Workload:
    class_ = workload_class(name)
    given: dict[str, Any] = {"feeds": FEEDS, **parameters} if name == "keywords" else parameters
    return class_(size, **given)


def skeletons(texts: list[str]) -> set[str]:
    return {re.sub(r"(?<=[:s ])\d+", "#", text) for text in texts}


@pytest.mark.parametrize("name", NAMES)
def test_the_seed_makes_the_workload(name: str) -> None:
    first, again, other = (make(name, Size(300, 8, seed)) for seed in (1, 1, 2))
    assert first.texts() == again.texts() != other.texts()
    assert len(first.texts()) == 300
    publications = [[made.publications(n)[0].triples for n in range(8)] for made in (first, again)]
    if name == "keywords":  # Blank node labels differ each time.
        assert [first.document(n, "feed") for n in range(3)] == [
            again.document(n, "feed") for n in range(3)
        ]
        return
    assert publications[0] == publications[1]
    assert publications[0] != [other.publications(n)[0].triples for n in range(8)]


# --- Graph ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("edges", [4, 8, 12])
def test_graphs_are_those_of_the_paper(edges: int) -> None:
    made = GraphWorkload(Size(1000, 20), edges=edges)
    for number in range(20):
        triples = made.graph(number).tolist()
        nodes = {node for s, _, o in triples for node in (s, o)}
        assert len(nodes) == 35
        assert len(set(map(tuple, triples))) == 90
        assert len(made.publications(number)[0].triples) == 90
        links = nx.DiGraph((s, o) for s, _, o in triples)
        assert nx.is_weakly_connected(links)
        assert max(nodes) < 2000
        assert {p for _, p, _ in triples} <= set(range(50))


@pytest.mark.parametrize("edges", [4, 8, 12])
def test_graph_subscriptions_are_those_of_the_paper(edges: int) -> None:
    made = GraphWorkload(Size(1000, 20), edges=edges)
    variables = Counter()
    for rows in made.patterns.tolist():
        nodes = {node for s, _, o in rows for node in (s, o)}
        assert len(nodes) == 5
        assert len({(s, o) for s, _, o in rows}) == edges
        assert nx.is_connected(nx.Graph((s, o) for s, _, o in rows))
        own = {node for node in nodes if node < 0}
        assert own in (set(), {-1, -2})
        variables[len(own)] += 1
    assert variables == {2: 900, 0: 100}


@pytest.mark.parametrize(("shapes", "least"), [(2, 2), (100, 100), (2000, 1000)])
def test_texts_have_as_many_skeletons_as_there_are_shapes(shapes: int, least: int) -> None:
    made = GraphWorkload(Size(20_000, 5), shapes=shapes)
    assert least <= len(skeletons(made.texts())) <= shapes


def test_each_subscription_has_a_shape_of_its_own() -> None:
    made = GraphWorkload(Size(5000, 5), shapes=0)
    assert len(skeletons(made.texts())) == 5000
    variables = Counter(len(set(rows[rows < 0])) for rows in made.patterns[:, :, ::2])
    assert sorted(variables) == [2, 3]
    with pytest.raises(ValueError, match="too few for 9,000 subscriptions"):
        GraphWorkload(Size(9000, 5), shapes=0, edges=4)


@pytest.mark.parametrize("syntax", SYNTAXES)
@pytest.mark.parametrize("serial", [None, 5])
def test_documents_are_the_graphs(syntax: str, serial: int | None) -> None:
    made = GraphWorkload(Size(500, 6, 4), matches=3)
    quads = list(parse(made.document(2, syntax, serial), format=SYNTAXES[syntax]))
    read = {tuple(term.value for term in quad.triple) for quad in quads}  # type: ignore[union-attr]
    graph = made.graph(2, serial).tolist()
    assert read == {(f"urn:n:{s}", f"urn:p:{p}", f"urn:n:{o}") for s, p, o in graph}


def test_new_publications_keep_only_the_names_that_must_match() -> None:
    made = GraphWorkload(Size(500, 6, 4), matches=2)
    first, again, other = (set(made.graph(2, n)[:, ::2].ravel().tolist()) for n in (1, 1, 2))
    assert first == again
    kept = first & other
    assert kept == {name for name in first if name < 2000}
    assert len(kept) <= 10 < len(first - kept)
    every = GraphWorkload(Size(500, 6, 4), matches=0)
    assert every.graph(2, 1)[:, ::2].min() >= 2000


# --- Attributes ----------------------------------------------------------------------------------


@pytest.mark.parametrize("values", ["uniform", "zipf"])
@pytest.mark.parametrize("attributes", [10, 2, 22])
@pytest.mark.parametrize("matching", [0.01, 0.001])
def test_attributes_match_as_often_as_they_are_to(
    values: Any, attributes: int, matching: float
) -> None:
    made = AttributeWorkload(Size(20_000, 30), attributes, matching, values)
    low, high, events = made.rows.low, made.rows.high, made.rows.values
    assert low.shape == high.shape == (attributes, 20_000)
    assert events.shape == (30, attributes)
    assert ((low >= 0) & (low <= high) & (high <= LARGEST)).all()
    assert ((events >= 0) & (events <= LARGEST)).all()
    values_of = events.T[:, None, :]
    share = ((low[:, :, None] <= values_of) & (values_of <= high[:, :, None])).all(axis=0).mean()
    assert matching / 2.5 < share < matching * 2.5


# --- Concepts ------------------------------------------------------------------------------------


def test_concepts_have_a_complete_tree_for_each_attribute() -> None:
    made = ConceptWorkload(Size(10, 3), height=4)
    links = nx.DiGraph((s.value, o.value) for s, _, o in made.ontology().stated)  # type: ignore
    assert links.number_of_nodes() == 3 * 31
    assert nx.number_weakly_connected_components(links) == 3
    assert Counter(d for _, d in links.in_degree()) == {0: 3 * 16, 2: 3 * 15}
    assert len(made.publications(0)[0].triples) == 7


# --- Ranges and equalities -----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ranges", "equalities", "concepts"])
def test_that_conjunctions_say_what_the_texts_say(name: str) -> None:
    """Published algorithms get the constraints that they would have parsed."""
    made, parser = make(name, Size(40, 3)), SubscriptionParser()
    assert isinstance(made, TabularWorkload)
    reader: Any = published("gryphon-general" if name != "concepts" else "ctps", made.ontology())
    found = made.conjunctions(lambda text: reader.read(parser.parse("", text)))
    for number, (conjunction, text) in enumerate(zip(found, made.texts(), strict=True)):
        read = reader.read(parser.parse(str(number), text))
        assert (read.id, read.rows) == (conjunction.id, conjunction.rows)


@pytest.mark.parametrize("values", ["uniform", "zipf"])
@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_that_the_matching_rate_is_exact(rate: float, values: Any) -> None:
    """Each event matches exactly the subscriptions drawn from it."""
    rows = RangeWorkload(Size(1000, 30), matching=rate, values=values).rows
    low, high = rows.low[:, :, None], rows.high[:, :, None]
    met = ((low <= rows.values.T[:, None]) & (rows.values.T[:, None] <= high)).all(axis=0)
    assert (met.sum(axis=0) == 1000 * rate).all()


def test_widths_points_and_cardinality() -> None:
    rows = RangeWorkload(Size(4000, 500), 2, width=0.5, points=0.3, cardinality=100).rows
    length = rows.high - rows.low
    assert (length == 0).mean() == pytest.approx(0.3, abs=0.03)
    assert length[length > 0].mean() == pytest.approx(LARGEST / 2, rel=0.03)
    assert set(np.unique(rows.values % (LARGEST // 100))) == {0}
    assert len(np.unique(rows.values)) == 100
    anywhere = RangeWorkload(Size(4000, 1), points=0.0).rows
    widths = (anywhere.high - anywhere.low) / LARGEST
    assert 0.19 < widths.min() < 0.21
    assert 0.79 < widths.max() < 0.81


def test_popularity_of_attributes() -> None:
    rows = EqualityWorkload(Size(4000, 4000), attributes=4).rows
    tests = rows.low != UNBOUNDED[0]
    assert tests[1:].mean(axis=1) == pytest.approx([0.81, 0.69, 0.58], abs=0.03)
    assert tests.any(axis=0).all()
    asked = np.bincount(rows.low[tests])
    assert asked[0] / asked[4] == pytest.approx(5, rel=0.2)
    assert np.bincount(rows.values[:, 0]) == pytest.approx([800] * 5, rel=0.15)


# --- Keywords ------------------------------------------------------------------------------------


def test_keywords_are_words_of_titles() -> None:
    made = KeywordWorkload(Size(3000, 5), FEEDS)
    lengths = Counter(map(len, made.subscriptions))
    assert sorted(lengths) == [1, 2, 3]
    assert min(lengths.values()) > 900
    text = "\n".join(
        t for n in range(3) for item in made.publications(n) for t in made.titles(item)
    )
    for words in made.subscriptions:
        assert len(set(words)) == len(words)
        assert all(len(word) >= 3 and word in text for word in words)


def test_the_parameter_limits_the_keywords_that_occur() -> None:
    made = KeywordWorkload(Size(2000, 5), FEEDS, heard=500)
    whole = KeywordWorkload(Size(2000, 5), FEEDS)
    assert made.subscriptions[:500] == whole.subscriptions[:500]
    text = "\n".join(
        t for n in range(3) for item in made.publications(n) for t in made.titles(item)
    )
    assert all(word in text for words in made.subscriptions[:500] for word in words)
    assert not any(words[0] in text for words in made.subscriptions[500:])


def test_topics() -> None:
    made = KeywordWorkload(Size(1000, 3), FEEDS, topics=0.5)
    topics = [text for text in made.texts() if "urn:topic:" in text]
    assert 400 < len(topics) < 600
    assert len(topics) == made.subscriptions.count(())
    assert len(made.ontology().stated) > 20


# --- Feeds ---------------------------------------------------------------------------------------


def test_feeds_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        KeywordWorkload(Size(10, 1), tmp_path / "none")
    (tmp_path / "empty.rss").write_text(
        "<rss version='2.0'><channel><title>a</title><item><title>b</title></item></channel></rss>",
        encoding="utf-8",
    )
    with pytest.raises(InputError, match="have no words"):
        KeywordWorkload(Size(10, 1), tmp_path)
