"""Costs of the algorithms for graph patterns, by examples from their papers."""

from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import SubscriptionParser
from graphmatch.matcher import Matcher
from graphmatch.published import make
from semantic import Ontology, Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import SUBCLASS, TYPE

BELOW = "SELECT * { ?x :p ?y FILTER(gm:descendantOf(?y, :C1)) }"


def node(name: str) -> NamedNode:
    return NamedNode(f"urn:{name}")


def edges(*written: str | tuple[str, str, str | Term]) -> Publication:
    """Make a publication of edges, such as ``ApB``; a string names a node."""
    triples: list[Triple] = [
        (node(s), node(p), node(o) if isinstance(o, str) else o) for s, p, o in written
    ]
    return Publication.of("urn:publication", triples)


def tree(height: int) -> Ontology:
    """Make a tree of classes with C1 as root, C2 and C3 below it, and so on."""
    classes = range(2, 2 ** (height + 1))
    return Ontology((node(f"C{k}"), SUBCLASS, node(f"C{k // 2}")) for k in classes)


def index(name: str, *queries: str, ontology: Ontology | None = None) -> Matcher:
    """Subscribe queries with their numbers as ids; ``:`` is short for ``urn:``."""
    made = make(name, ontology or Ontology())
    for number, query in enumerate(queries):
        made.subscribe(SubscriptionParser().parse(str(number), f"PREFIX : <urn:> {query}"))
    return made


def test_a_publication_may_state_the_class_of_a_resource() -> None:
    made = index("mic", BELOW, ontology=tree(2))
    stated: Triple = (node("i"), TYPE, node("C5"))
    (match,) = made.match(Publication.of("p", [*edges("Api").triples, stated]))
    assert match.solutions == ({"x": node("A"), "y": node("i")},)
    assert not made.match(edges("Api")).matches


# --- G-ToPSS --------------------------------------------------------------------------------------


def test_gtopss_joins_as_in_figure_8() -> None:
    """A *1 holds AB, AC, AE; *1 B holds AB, DB, CB, EB, GB: *1 is C or E."""
    made = index("gtopss", "SELECT ?x { :A :p ?x . ?x :p :B }")
    (match,) = made.match(edges("ApB", "ApC", "ApE", "DpB", "CpB", "EpB", "GpB"))
    assert {solution["x"] for solution in match.solutions} == {node("C"), node("E")}


def probes_of_an_edge(stars: int) -> int:
    """Section 4.2: the matcher tries v1 v2, v1 *i, *i v2 and *i *j."""
    return 1 + 2 * stars + stars * (stars - 1)


def test_gtopss_shares_stars_between_subscriptions() -> None:
    """Section 4.1: ?x and ?z are both *1, so one edge of G_M serves both subscriptions."""
    counters = index("gtopss", "ASK { :A :p ?x }", "ASK { :A :p ?z }").match(edges("ApB")).counters
    assert (counters.probes, counters.candidates, counters.matched) == (probes_of_an_edge(1), 2, 2)


@pytest.mark.parametrize("stars", [0, 2, 3, 5])
def test_gtopss_probes_grow_with_the_square_of_the_stars(stars: int) -> None:
    chain = " . ".join(f"?v{i} :p ?v{i + 1}" for i in range(stars - 1)) or ":Z :p :Z"
    made = index("gtopss", f"ASK {{ {chain} }}")
    assert made.match(edges("ApB", "BpC")).counters.probes == 2 * probes_of_an_edge(stars)


def test_gtopss_probes_do_not_grow_with_the_subscriptions() -> None:
    few, many = (
        index("gtopss", *(f"ASK {{ :A{n} :p ?x }}" for n in range(count))) for count in (3, 300)
    )
    publication = edges("ApB", "BpC", "CpD")
    assert few.match(publication).counters == many.match(publication).counters


def test_gtopss_skips_unused_stars() -> None:
    made = index("gtopss", "ASK { ?a :p ?b . ?b :p ?c }", "ASK { :A :p ?x }")
    assert made.match(edges("ApB")).counters.probes == probes_of_an_edge(stars=3)
    made.unsubscribe("0")
    assert made.match(edges("ApB")).counters.probes == probes_of_an_edge(stars=1)


def test_gtopss_counts_more_hits_than_16_bits_hold() -> None:
    """12,000 edges hit 6 of a subscription's 7 edges: 72,000 hits in all."""
    pairs = " . ".join(f"?v{i} :p ?v{j}" for i in range(3) for j in range(3) if i != j)
    made = index("gtopss", f"ASK {{ {pairs} . ?v0 :q ?v1 }}")
    counters = made.match(edges(*((f"s{n}", "p", f"o{n}") for n in range(12_000)))).counters
    assert (counters.index_hits, counters.candidates, counters.matched) == (6, 1, 0)


# --- OPS ------------------------------------------------------------------------------------------


def test_ops_finds_edges_by_their_label_alone() -> None:
    """Each of two edges labelled q is combined with all three edges labelled p, joined or not.

    G-ToPSS, section 5: any node of a publication can match any node of a subscription.
    """
    made = index("ops", "SELECT * { ?x :q :B . :A :p ?x }")
    counters = made.match(edges("CpD", "EpF", "ApG", "GqB", "HqB", "GrB")).counters
    assert (counters.probes, counters.index_hits, counters.matched) == (2 + 2 * 3, 2 + 1, 1)


def test_ops_tries_subscriptions_one_by_one() -> None:
    one, many = (index("ops", *["ASK { ?x :p :B }"] * count) for count in (1, 20))
    found, expected = (made.match(edges("ApB", "ApC")).counters for made in (many, one))
    assert (found.candidates, found.probes) == (20, 20 * expected.probes)


def test_ops_finds_many_solutions() -> None:
    made = index("ops", "SELECT * { :A :p ?x . :A :p ?y }", "ASK { :A :p ?x }")
    first, second = made.match(edges(*(f"Ap{letter}" for letter in "abcdefghijklmnop")))
    assert len({tuple(s.items()) for s in first.solutions}) == len(first.solutions) == 16 * 16
    assert second.solutions == ({},)


# --- MIC ------------------------------------------------------------------------------------------


def test_mic_walks_no_hierarchy_when_it_matches() -> None:
    """A label and four pairs are looked up for every height."""
    for height in (1, 3, 5):
        report = index("mic", BELOW, ontology=tree(height)).match(
            edges(("A", "p", f"C{2**height}"))
        )
        counters = report.counters
        assert (counters.probes, counters.matched, counters.verified) == (1 + 4, 1, 0)


@pytest.mark.parametrize(
    ("queries", "written", "counted"),
    [
        # One edge of the first is hit three times, the other is not; the second is complete.
        (
            ["SELECT * { ?x :p ?y . ?y :q ?z }", "SELECT * { ?x :p ?y }"],
            ["ApB", "ApC", "BpD"],
            (2, 0, 1),
        ),
        # Both edges are hit, with different vertices for ?y.
        (["SELECT * { ?x :p ?y . ?y :q ?z }"], ["ApB", "CqD"], (1, 1, 0)),
    ],
)
def test_mic_counts_edges_and_joins_candidates(
    queries: list[str], written: list[str], counted: tuple[int, int, int]
) -> None:
    counters = index("mic", *queries).match(edges(*written)).counters
    assert (counters.candidates, counters.joins, counters.matched) == counted


def test_mic_finds_the_ranges_around_a_number() -> None:
    several = (f"SELECT * {{ ?x :p ?y FILTER(?y >= {n} && ?y < {n + 10}) }}" for n in range(50))
    made = index("mic", *several)
    for number in range(70):
        counters = made.match(edges(("A", "p", Literal(number)))).counters
        assert counters.matched == max(0, min(number, 49) - max(number - 9, 0) + 1)
        assert 0 <= counters.candidates - counters.matched <= 1  # One end is rounded.
