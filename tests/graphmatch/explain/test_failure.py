"""The first failure and the nearest miss, compared with the oracle and plain loops."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from itertools import product

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from graphmatch import AttributeSubscription, Engine
from graphmatch.explain.explanation import Explanation
from semantic import Ontology, Publication
from semantic.attributes.events import event as event_of
from semantic.branch import Branch, TriplePattern
from semantic.terms import Node, Term, Triple
from semantic.vocabulary import SUBCLASS, TYPE, XSD
from tests.graphmatch.explain.test_distance import CLASSES, edges, ways
from tests.oracle import Filter, Group, Pattern, Query, all_solutions, to_sparql
from tests.strategies import BASIC, Case, cases, pairs_of

FEW = settings(max_examples=settings().max_examples // 4)
A, P, Q = (NamedNode(f"urn:{name}") for name in "apq")
NO_PREFIXES: dict[str, str] = {}

NODES = tuple(NamedNode(f"urn:n{n}") for n in range(4))
PROPERTIES = tuple(NamedNode(f"urn:p{n}") for n in range(3))
LITERALS = (
    Literal("1", datatype=XSD["integer"]),
    Literal("0.1", datatype=XSD["double"]),
    Literal("2026-01-01Z", datatype=XSD["date"]),
    Literal("climate"),
    Literal("climate", language="en"),
)
publications = st.lists(
    st.tuples(
        st.sampled_from((*NODES, BlankNode("b"))),
        st.sampled_from(PROPERTIES),
        st.sampled_from((*NODES, BlankNode("b"), *LITERALS)),
    ),
    max_size=14,
    unique=True,
)


def solutions_of(branch: Branch, publication: Sequence[Triple]) -> bool:
    """Return whether some choice of triples satisfies all patterns of a branch."""
    for chosen in product(publication, repeat=len(branch.patterns)):
        binding: dict[Node, Term] = {}
        pairs = [
            (node, term)
            for pattern, triple in zip(branch.patterns, chosen, strict=True)
            for node, term in zip(pattern, triple, strict=True)
        ]
        if all(
            binding.setdefault(node, term) == term if isinstance(node, Variable) else node == term
            for node, term in pairs
        ):
            return True
    return False


def explained(
    text: str, triples: Sequence[Triple], ontology: Ontology | None = None
) -> Explanation:
    engine = Engine(ontology)
    engine.subscribe("s", text)
    return engine.explain("s", Publication.of("urn:p", triples))


# --- The failure -------------------------------------------------------------------------------


@FEW
@given(cases(BASIC))
def test_the_first_thing_that_fails(case: Case) -> None:
    """Ask the oracle: add the patterns one by one, then the filters."""
    pairs = pairs_of(case.synonyms)
    engine = Engine(Ontology(case.ontology, pairs, on_problem=lambda _: None))
    engine.subscribe("s", to_sparql(case.query))
    explanation = engine.explain("s", case.publication)
    (branch,) = engine.index_plan("s").subscription.branches
    where, world = case.query.where, case.world()
    if explanation.match is not None:
        return

    def fails(patterns: Sequence[TriplePattern], filters: tuple[Filter, ...] = ()) -> bool:
        group = Group(tuple(Pattern(*pattern) for pattern in patterns), filters)
        return not all_solutions(Query(group), world)

    for n, pattern in enumerate(branch.patterns):
        written = pattern.write(explanation.prefixes)
        if fails([pattern]):
            assert explanation.failure == f"no triple matches {written}"
            event("a pattern")
            return
        if fails(branch.patterns[: n + 1]):
            assert explanation.failure.startswith(f"{written} matches, but not together with ")
            event("a join")
            return
    if len(branch.filters) != len(where.filters):
        event("a filter that is left to the evaluator")
        return
    for n in range(len(where.filters)):
        if fails(branch.patterns, where.filters[: n + 1]):
            written = branch.filters[n].write(explanation.prefixes)
            assert explanation.failure.startswith(f"FILTER({written}) is not true: ")
            assert explanation.nearest
            event("a filter")
            return
    event("news")
    assert "FILTER" not in explanation.failure
    assert "no triple meets" not in explanation.failure


patterns = st.builds(
    TriplePattern,
    st.sampled_from([Variable("x"), Variable("y"), NamedNode("urn:n0")]),
    st.sampled_from([NamedNode("urn:p0"), NamedNode("urn:p1")]),
    st.sampled_from([Variable("x"), Variable("z"), Variable("y"), NamedNode("urn:n1")]),
)


@FEW
@given(st.lists(patterns, min_size=2, max_size=3, unique=True), publications)
def test_the_two_patterns_that_do_not_meet(
    asked: list[TriplePattern], triples: list[Triple]
) -> None:
    """Compare with nested loops over all triples."""
    text = " . ".join(" ".join(map(str, pattern)) for pattern in asked)
    engine = Engine()
    engine.subscribe("s", f"ASK {{ {text} }}")
    explanation = engine.explain("s", Publication.of("urn:p", triples))
    asked = list(engine.index_plan("s").subscription.branches[0].patterns)
    if "not together with" not in explanation.failure:
        return
    met, _, rest = explanation.failure.partition(" matches, but not together with ")
    (pattern,) = (p for p in asked if p.write(NO_PREFIXES) == met)
    before = asked[: asked.index(pattern)]
    apart = [p for p in before if not solutions_of(Branch((p, pattern)), triples)]
    event("two" if apart else "all")
    if not apart:
        assert rest == "all of " + " . ".join(p.write(NO_PREFIXES) for p in before)
        return
    assert rest.startswith(f"{apart[0].write(NO_PREFIXES)}: ")
    shared = [
        v
        for v in (Variable("x"), Variable("y"), Variable("z"))
        if v in pattern.variables & apart[0].variables
    ]
    alone = []
    for variable in shared:
        values = [
            {
                dict(zip(map(str, p), t, strict=True))[str(variable)]
                for t in triples
                if solutions_of(Branch((p,)), [t])
            }
            for p in (pattern, apart[0])
        ]
        alone += [variable] if not values[0] & values[1] else []
    said = rest.partition(": ")[2]
    if alone:
        assert said.startswith(f"{alone[0]} is ")
    else:
        assert said == "no two triples have the same values of all shared variables"


# --- Exclusions ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("exclusion", "failure", "near"),
    [
        (
            "FILTER NOT EXISTS { ?x <urn:q> ?z FILTER(?z > 5) }",
            "excluded by FILTER(NOT EXISTS { ?x <urn:q> ?z . FILTER((?z > 5)) })",
            [(A, Q, Literal(6))],
        ),
        ("MINUS { ?x <urn:q> ?z }", "excluded by MINUS { ?x <urn:q> ?z . }", [(A, Q, Literal(6))]),
        (
            "FILTER(!EXISTS { { ?x <urn:r> 1 } UNION { ?x <urn:q> 6 ; <urn:p> 1 } } && ?y = 1)",
            None,
            [(A, Q, Literal(6)), (A, P, Literal(1))],
        ),
        (
            "FILTER NOT EXISTS { ?x <urn:q> ?z FILTER(ABS(?z) > 5) }",
            "the indexed part of the query matches, but the whole query has no solution; "
            "not indexed: FILTER NOT EXISTS",
            [],
        ),
    ],
)
def test_what_excludes_a_publication(
    exclusion: str, failure: str | None, near: list[Triple]
) -> None:
    triples = [(A, P, Literal(1)), (A, Q, Literal(6))]
    explanation = explained(f"ASK {{ ?x <urn:p> ?y {exclusion} }}", triples)
    assert failure in (None, explanation.failure)
    assert [one.triple for one in explanation.nearest] == near
    assert explanation.held[0].triple == triples[0]


# --- The nearest miss --------------------------------------------------------------------------


@FEW
@given(st.lists(st.integers(0, 100), min_size=1, max_size=6, unique=True), st.integers(0, 100))
def test_the_nearest_number(prices: list[int], bound: int) -> None:
    triples = [(A, P, Literal(price)) for price in prices]
    explanation = explained(f"ASK {{ ?x <urn:p> ?price FILTER(?price < {bound}) }}", triples)
    if explanation.match is not None:
        assert min(prices) < bound
        return
    nearest = sorted(prices)[:3]
    assert explanation.failure.endswith(f"?price is {nearest[0]}")
    assert [near.triple[2] for near in explanation.nearest] == [Literal(n) for n in nearest]


@FEW
@given(edges(), st.sets(st.integers(0, 5), min_size=1, max_size=3), st.integers(0, 5))
def test_the_nearest_class(links: list[tuple[int, int]], own: set[int], wanted: int) -> None:
    """The nearest class is the stated one with the shortest path over a common superclass."""
    steps = ways(links)
    ontology = Ontology([(CLASSES[a], SUBCLASS, CLASSES[b]) for a, b in links])
    triples = [(A, TYPE, CLASSES[n]) for n in sorted(own)]
    explanation = explained(f"ASK {{ ?x a {CLASSES[wanted]} }}", triples, ontology)
    if explanation.match is not None:
        assert any(steps[n][wanted] < float("inf") for n in own)
        (piece,) = explanation.evidence
        if wanted not in own:
            (way,) = piece.reasons
            terms = [CLASSES.index(NamedNode(t[1:-1])) for t in way.split(" ⊑ ")]
            assert terms[0] in own
            assert terms[-1] == wanted
            assert all((a, b) in links for a, b in itertools.pairwise(terms))
        return
    assert not any(steps[n][wanted] < float("inf") for n in own)
    over = {n: min(a + b for a, b in zip(steps[n], steps[wanted], strict=True)) for n in own}
    if not links or not any(wanted in link for link in links):
        return  # The ontology does not contain the class, so nothing is near.
    found = [CLASSES.index(near.triple[2]) for near in explanation.nearest]
    assert found[0] in own
    assert over[found[0]] == min(over.values())
    assert explanation.nearest[0].why.startswith(
        f"{CLASSES[found[0]]} is not below {CLASSES[wanted]}"
    )


@pytest.mark.parametrize(
    ("asked", "given", "why"),
    [
        ('"Sea"', Literal("sea"), "the strings differ only in upper and lower case"),
        ('"Sea"', Literal("Sea", language="en"), "but not their languages"),
        ("5", Literal("5.0", datatype=XSD["decimal"]), "the values are equal, but"),
        ("5", Literal(6), ""),
    ],
)
def test_literals_that_nearly_meet_a_pattern(asked: str, given: Literal, why: str) -> None:
    explanation = explained(f"ASK {{ ?x <urn:p> {asked} }}", [(A, P, given), (A, Q, given)])
    assert explanation.failure == f"no triple matches ?x <urn:p> {asked}"
    assert explanation.nearest[0].triple == (A, P, given)
    assert why in explanation.nearest[0].why
    assert bool(why) is bool(explanation.nearest[0].why)


# --- Attributes --------------------------------------------------------------------------------

KNOWN = Ontology(
    [
        (NamedNode(f"urn:e:{a}"), SUBCLASS, NamedNode(f"urn:e:{b}"))
        for a, b in [("Laptop", "Computer"), ("Computer", "Product"), ("Phone", "Product")]
    ]
)


@pytest.mark.parametrize(
    ("where", "failure", "near"),
    [
        ({"price": {"<=": 400}}, "price <= 400 is not true: price is 412", ""),
        ({"price": {"in": [1, 400]}}, "price IN (1, 400) is not true: price is 412", ""),
        (
            {"target": {"isa": "Computer"}},
            "target isa <urn:e:Computer> is not true",
            "<urn:e:Phone> is not below <urn:e:Computer>: both are below <urn:e:Product>",
        ),
        ({"brand": "acme"}, 'brand = "acme" is not true', "upper and lower case"),
        ({"brand": {"contains": "x"}}, 'CONTAINS(brand, "x") is not true: brand is "Acme"', ""),
        ({"seller.name": {"exists": True}}, "seller.name exists is not true", ""),
        ({"price": {">": 1}, "weight": 3}, "weight exists is not true", ""),
    ],
)
def test_attributes_in_their_own_words(where: dict[str, object], failure: str, near: str) -> None:
    engine = Engine(KNOWN)
    engine.subscribe(AttributeSubscription.of("s", where))
    one = event_of("e", {"price": 412, "target": "Phone", "brand": "Acme", "seller.id": 7})
    explanation = engine.explain("s", one)
    assert explanation.match is None
    assert explanation.failure == failure
    assert bool(near) is bool(explanation.nearest and explanation.nearest[0].why)
    assert not near or near in explanation.nearest[0].why


@pytest.mark.parametrize("entailment", ["rdfs", "none"])
def test_the_way_of_an_attribute_s_class(entailment: str) -> None:
    engine = Engine(KNOWN, entailment=entailment)
    engine.subscribe(AttributeSubscription.of("s", {"target": {"isa": "Product"}}))
    (piece,) = engine.explain("s", event_of("e", {"target": "Laptop"})).evidence
    assert piece.reasons == (
        "<urn:e:Laptop> ⊑ <urn:e:Computer> ⊑ <urn:e:Product>",
        '"Laptop" names <urn:e:Laptop>',
    )


@pytest.mark.parametrize("entailment", ["rdfs", "none"])
@pytest.mark.parametrize(
    ("test", "ways_"),
    [
        ("gm:descendantOf(?c, <urn:e:Product>)", ["Laptop ⊑ Computer ⊑ Product"]),
        ("gm:childOf(?c, <urn:e:Computer>)", ["Laptop ⊑ Computer"]),
        ("gm:descendantOf(?c, <urn:e:Laptop>)", []),
        (
            "gm:childOf(?c, <urn:e:Product>) || gm:descendantOf(?c, <urn:e:Computer>)",
            ["Laptop ⊑ Computer"],
        ),
    ],
)
def test_the_way_that_makes_an_operator_true(entailment: str, test: str, ways_: list[str]) -> None:
    engine = Engine(KNOWN, entailment=entailment)
    engine.subscribe("s", f"ASK {{ ?x <urn:p> ?c FILTER({test}) }}")
    laptop = NamedNode("urn:e:Laptop")
    explanation = engine.explain("s", Publication.of("urn:p", [(A, P, laptop)]))
    piece = explanation.evidence[-1]
    assert (piece.triple, piece.value) == (None, laptop)
    shown = [reason.replace("<urn:e:", "").replace(">", "") for reason in piece.reasons]
    assert shown == ways_
