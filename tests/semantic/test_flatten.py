"""Events of graphs: roots, paths and values; and the asked ones against all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch import Engine
from semantic import Ontology, Problem, Publication, read_publications
from semantic.attributes.asked import Asked
from semantic.attributes.derive import AttributeRules
from semantic.attributes.names import attribute
from semantic.attributes.subscription import AttributeParser
from semantic.flatten import flatten
from semantic.limits import DEFAULT_LIMITS
from semantic.terms import Term, Triple
from semantic.vocabulary import SUBCLASS, SUBPROPERTY, TYPE, Namespace

EX, OTHER = Namespace("http://example.org/"), Namespace("http://other.example/")
NODES: tuple[Term, ...] = (EX["a"], EX["b"], EX["c"], BlankNode("d"), BlankNode("e"))
PROPERTIES = (EX["p"], EX["q"], OTHER["p"], TYPE)
VALUES: tuple[Term, ...] = (Literal("1"), Literal("2"), EX["Class"])
PARSER = AttributeParser()


def fail(problem: Problem) -> None:
    raise AssertionError(problem)


def attributes(publication: Publication) -> list[dict[str, list[str]]]:
    return [
        {
            name: [getattr(v, "value", "") for v in values]
            for name, values in event.attributes.items()
        }
        for event in flatten(publication, on_problem=fail)
    ]


# --- Values and paths -------------------------------------------------------------------------


def test_ctps_figure_2() -> None:
    """The paper's pairs; those that name a type where the attribute tells it are kept, too."""
    (offer,) = [
        publication
        for publication in read_publications("data/publications/offers.nq")
        if publication.id.endswith("/john")
    ]
    shop = "https://graphmatch.example/shop#"
    units = "https://graphmatch.example/units#"
    assert attributes(offer) == [
        {
            "seller.name": ["John"],
            "seller.cellphoneNumber": ["123456789"],
            "price": [f"{shop}MoneyValue"],
            "price.type": [f"{shop}MoneyValue"],
            "price.value": ["450"],
            "price.currency": [f"{units}USD"],
            "target": [f"{shop}DesktopPC"],
            "target.type": [f"{shop}DesktopPC"],
            "target.manufacture.name": ["HP"],
            "target.hardDisk.size.value": ["40"],
            "target.hardDisk.size.units": [f"{units}G"],
            "target.hardDisk.manufacture.name": ["IBM"],
        }
    ]


def test_properties_of_one_local_name_are_one_attribute() -> None:
    item = EX["item"]
    publication = Publication.of(
        "p", [(item, EX["name"], Literal("a")), (item, OTHER["name"], Literal("b"))]
    )
    assert attributes(publication) == [{"name": ["a", "b"]}]
    engine = Engine()
    engine.subscribe(PARSER.subscription("both", {"name": "b"}))
    engine.subscribe(PARSER.subscription("one", {"<http://example.org/name>": "b"}))
    engine.subscribe(PARSER.subscription("other", {"<http://other.example/name>": "b"}))
    assert [m.subscription for m in engine.match(publication)] == ["both", "other"]


def test_a_circle_ends() -> None:
    one, two = EX["one"], EX["two"]
    publication = Publication.of("p", [(one, EX["next"], two), (two, EX["next"], one)])
    assert attributes(publication) == [
        {"next": [two.value], "next.next": [one.value]},
        {"next": [one.value], "next.next": [two.value]},
    ]


# --- Roots ------------------------------------------------------------------------------------


def roots(publication: Publication) -> list[Term]:
    return [event.subject for event in flatten(publication, on_problem=fail)]


def test_roots() -> None:
    a, b, c = EX["a"], EX["b"], EX["c"]
    p = EX["p"]
    apart = [(a, p, b), (c, p, b), (b, p, Literal("x"))]
    assert roots(Publication.of("p", apart)) == [a, c]
    assert roots(Publication.of(b.value, apart)) == [b]
    behind = [(a, p, b), (b, p, a), (b, p, c), (c, p, Literal("x"))]
    assert roots(Publication.of("p", behind)) == [a, b, c]
    assert roots(Publication.of("p", [(a, p, a), (a, p, b)])) == [a]


def test_what_is_derived_makes_no_root() -> None:
    """The seller sells the offer, by an inverse property; the offer is still the root."""
    offer, seller = EX["offer"], EX["seller"]
    publication = Publication.of("p", [(offer, EX["soldBy"], seller)])
    assert roots(publication.with_derived([(seller, EX["sells"], offer)])) == [offer]


def test_the_item_of_a_feed_is_the_root() -> None:
    for item in read_publications("data/feeds/daily.rss"):
        (event,) = flatten(item, on_problem=fail)
        assert event.subject == NamedNode(item.id)
        assert event.attributes["title"]


# --- Limits -----------------------------------------------------------------------------------


def test_limits_are_told_once() -> None:
    chain = [(EX[f"n{i}"], EX["p"], EX[f"n{i + 1}"]) for i in range(6)]
    told: list[Problem] = []
    limits = replace(DEFAULT_LIMITS, attribute_steps=3)
    (event,) = flatten(Publication.of("p", chain), limits, told.append)
    assert list(event.attributes) == ["p", "p.p", "p.p.p"]
    assert [problem.what for problem in told] == [
        "as an event it is incomplete: it has paths of more than 3 steps"
    ]
    told.clear()
    limits = replace(DEFAULT_LIMITS, event_paths=2)
    (event,) = flatten(Publication.of("p", chain), limits, told.append)
    assert list(event.attributes) == ["p", "p.p"]
    assert [problem.what for problem in told] == [
        "as an event it is incomplete: it has more than 2 steps"
    ]


def test_a_graph_with_very_many_paths_is_bounded() -> None:
    """Asked for, too: ten steps through ten nodes, each linked to each."""
    nodes = [EX[f"n{i}"] for i in range(10)]
    dense = [(a, EX["p"], b) for a in nodes for b in nodes if a != b]
    told: list[Problem] = []
    asked = Asked({attribute(".".join("p" * 10)): ()})
    rules = AttributeRules(Ontology(), replace(DEFAULT_LIMITS, event_paths=1000))
    publication = Publication.of("http://example.org/n0", dense)
    rules.attributes(publication, asked, {}, told.append)
    assert len(told) == 1
    assert "`event_paths`" in told[0].remedy


# --- What is asked for, and everything ----------------------------------------------------------


@st.composite
def publications(draw: st.DrawFn) -> Publication:
    triples = st.tuples(
        st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from((*NODES, *VALUES))
    )
    drawn: list[Triple] = draw(st.lists(triples, min_size=1, max_size=9))
    return Publication.of(draw(st.sampled_from(("p", "http://example.org/a"))), drawn)


def naive(publication: Publication) -> Iterator[tuple[Term, str, Term]]:
    """Yield subject, name and value, by following every path that passes no resource twice."""
    triples = publication.triples
    subjects = list(dict.fromkeys(s for s, _, _ in triples))

    def follow(node: Term, path: Sequence[Term], name: str) -> Iterator[tuple[Term, str, Term]]:
        for s, p, o in triples:
            if s != node:
                continue
            assert isinstance(p, NamedNode)
            step = p.value.rpartition("/")[2].rpartition("#")[2]
            full = f"{name}.{step}" if name else step
            if isinstance(o, BlankNode):
                yield from ((path[0], full, c) for b, q, c in triples if b == o and q == TYPE)
            else:
                yield path[0], full, o
            if o not in path:
                yield from follow(o, (*path, o), full)

    def leads(start: Term) -> set[Term]:
        found = {start}
        for _ in triples:
            found |= {o for s, _, o in triples if s in found}
        return found

    tops = [s for s in subjects if not any(o == s for b, _, o in triples if b != s)]
    reached = {term for top in tops for term in leads(top)}
    tops += [s for s in subjects if s not in reached]
    own = NamedNode("http://example.org/a")
    if publication.id == own.value and own in subjects:
        tops = [own]
    for top in tops:
        yield from follow(top, (top,), "")


@given(publications())
def test_events_are_what_every_path_says(publication: Publication) -> None:
    events = flatten(publication, on_problem=fail)
    found = {
        (e.subject, n, v) for e in events for n, values in e.attributes.items() for v in values
    }
    assert found == set(naive(publication))


@given(publications(), st.lists(st.sampled_from(["p", "q", "p.p", "p.q.type", "type"]), min_size=1))
def test_what_is_asked_for_is_found(publication: Publication, names: list[str]) -> None:
    asked = Asked({attribute(name): () for name in names})
    found = AttributeRules(Ontology()).attributes(publication, asked, {}, fail)
    every = [
        triple for event in flatten(publication, on_problem=fail) for triple in event.triples()
    ]
    wanted = {attribute(name) for name in names}
    assert set(found) == {triple for triple in every if triple[1] in wanted}


@given(publications(), st.sampled_from(["p", "p.p", "q.p", "super", "q.super"]))
def test_relevance_changes_nothing(publication: Publication, name: str) -> None:
    """The engine derives only what is asked for; attributes ask for their properties."""
    ontology = Ontology([(EX["p"], SUBPROPERTY, EX["super"]), (EX["Class"], SUBCLASS, EX["Top"])])
    engine = Engine(ontology)
    exists = PARSER.subscription("exists", {name: {"exists": True}})
    engine.subscribe(exists)
    engine.subscribe(PARSER.subscription("isa", {name: {"isa": "Top"}}))
    everything = engine.enrich(publication)
    expected = [
        triple
        for event in flatten(everything, on_problem=fail)
        for triple in event.triples()
        if triple[1] == attribute(name)
    ]
    found = {m.subscription: m for m in engine.match(publication)}
    assert ("exists" in found) is bool(expected)
    assert ("isa" in found) is _is_top(publication, everything, name)


def _is_top(publication: Publication, enriched: Publication, name: str) -> bool:
    """Whether a path ends at what is of the class, or is the class or below it."""
    step = {"p": ("p",), "super": ("p",), "q": ("q",)}
    tops = {e.subject for e in flatten(enriched, on_problem=lambda _: None)}
    for top in tops:
        paths: list[tuple[Term, ...]] = [(top,)]
        for part in name.split("."):
            along = [
                p
                for p in PROPERTIES
                if p.value.rpartition("/")[2] in step[part] and (part != "super" or p == EX["p"])
            ]
            paths = [
                (*path, o)
                for path in paths
                for s, p, o in publication.triples
                if s == path[-1] and path[-1] not in path[:-1] and p in along
            ]
        ends = {path[-1] for path in paths}
        below: set[Term] = {EX["Class"]}  # is-a goes up from type to type
        while more := {s for s, p, o in publication.triples if p == TYPE and o in below} - below:
            below |= more
        if ends & below:
            return True
    return False
