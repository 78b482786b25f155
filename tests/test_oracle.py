"""The oracle, compared with other evaluators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import TypeAlias

import pytest
from hypothesis import HealthCheck, given, settings
from pyoxigraph import (
    BlankNode,
    Literal,
    NamedNode,
    Quad,
    QuerySolutions,
    RdfFormat,
    Store,
    Variable,
    parse,
)

from semantic.publication import Publication
from semantic.terms import Node, Term, Triple
from semantic.vocabulary import GM, OWL, PREFIXES, RDF, RDFS, SKOS, XSD
from tests.oracle import (
    OPERATORS,
    TAXONOMIC,
    TEXT_FUNCTIONS,
    Answer,
    Filter,
    Group,
    Not,
    Pattern,
    Query,
    Roots,
    Text,
    World,
    all_solutions,
    answer,
    answer_in,
    closure,
    compare,
    conclusions,
    roots,
    text_truth,
    to_sparql,
)
from tests.owlrl_reference import by_owlrl, ours, spoken
from tests.strategies import (
    BASIC,
    EX,
    FULL,
    LITERALS,
    PATTERNS,
    TEXTS,
    VIEWS,
    Case,
    Profile,
    cases,
    features,
    ontologies,
    publications,
    synonyms,
)

TRUE, FALSE = (Literal(text, datatype=XSD["boolean"]) for text in ("true", "false"))
X, Y, P = Variable("x"), Variable("y"), EX["p"]
ANN, BOB = EX["ann"], EX["bob"]


def triples(turtle: str) -> tuple[Triple, ...]:
    known = {**PREFIXES, "": EX.iri}
    head = "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in known.items())
    quads = parse(head + turtle, format=RdfFormat.TURTLE)
    return tuple((quad.subject, quad.predicate, quad.object) for quad in quads)


def select(*patterns: Pattern, filters: Iterable[Filter] = ()) -> Query:
    return Query(Group(patterns, tuple(filters)))


# --------------------------------------------------------------------------------------
# Second opinion: pyoxigraph's evaluator

_STORED: dict[Term, Term] = {
    Literal("01", datatype=XSD["integer"]): Literal("1", datatype=XSD["integer"]),
    Literal("1.0", datatype=XSD["decimal"]): Literal("1", datatype=XSD["decimal"]),
    Literal("1", datatype=XSD["boolean"]): TRUE,
}
"""Literals as the Store returns them: it keeps values, but not lexical forms."""


def _store(graph: Iterable[Triple]) -> Store:
    store = Store()
    store.extend(Quad(*triple) for triple in graph)  # type: ignore[arg-type]
    return store


def _rows(store: Store, text: str) -> QuerySolutions:
    results = store.query(text)
    assert isinstance(results, QuerySolutions)
    return results


def _functions(world: World) -> dict[NamedNode, Callable[..., Term | None]]:
    return {
        GM["descendantOf"]: lambda x, c: TRUE if world.isa("descendantOf", x, c) else FALSE,
        GM["ancestorOf"]: lambda x, c: TRUE if world.isa("ancestorOf", x, c) else FALSE,
        GM["childOf"]: lambda x, c: TRUE if world.isa("childOf", x, c) else FALSE,
    }


def _asked_of_store(query: Query, world: World, graph: Iterable[Triple]) -> Answer:
    results = _store(graph).query(to_sparql(query), custom_functions=_functions(world))
    if not isinstance(results, QuerySolutions):
        return Counter([frozenset()] if results else [])
    names = [variable.value for variable in results.variables]
    return Counter(
        frozenset((name, solution[name]) for name in names if solution[name] is not None)
        for solution in results
    )


def _renamed(case: Case, names: dict[Term, Term]) -> Case:
    rename = Roots(names)

    def exactly(term: Term) -> Term:
        return names.get(term, term)

    def each(graph: Iterable[Triple]) -> tuple[Triple, ...]:
        return tuple((s, p, exactly(o)) for s, p, o in graph)

    return replace(
        case,
        ontology=each(case.ontology),
        publication=Publication.of(case.publication.id, each(case.publication.triples)),
        query=rename.query(case.query),
    )


@pytest.mark.parametrize("profile", [BASIC, FULL], ids=["basic", "full"])
def test_store_agrees_without_entailment(profile: Profile) -> None:
    @settings(deadline=None)
    @given(cases(profile, "none"))
    def check(case: Case) -> None:
        case = _renamed(case, _STORED)
        world = case.world("none")
        expected = _asked_of_store(case.query, world, world.graph)
        assert all_solutions(case.query, world) == expected, to_sparql(case.query)

    check()


@pytest.mark.parametrize("profile", [BASIC, FULL], ids=["basic", "full"])
def test_store_agrees_on_the_closure(profile: Profile) -> None:
    @settings(deadline=None)
    @given(cases(profile))
    def check(case: Case) -> None:
        case = _renamed(case, _STORED)
        world = case.world()
        expected = _asked_of_store(world.roots.query(case.query), world, world.graph)
        assert all_solutions(case.query, world) == expected, to_sparql(case.query)

    check()


@settings(deadline=None)
@given(cases(Profile(comparisons=False, taxonomic=False, texts=False)))
def test_store_agrees_on_terms(case: Case) -> None:
    """IRIs replace the literals, so that the store preserves their lexical forms."""
    world = case.world()
    aliases: dict[Term, Term] = {lit: EX[f"literal{n}"] for n, lit in enumerate(LITERALS)}
    graph = [(s, p, aliases.get(o, o)) for s, p, o in world.graph]
    nodes: dict[Node, Node] = dict(aliases.items())
    query = world.roots.query(case.query)
    patterns = tuple(
        Pattern(p.subject, p.predicate, nodes.get(p.object, p.object)) for p in query.where.patterns
    )
    found = _asked_of_store(replace(query, where=Group(patterns)), world, graph)
    back = {alias: literal for literal, alias in aliases.items()}
    expected: Answer = Counter()
    for row, times in found.items():
        expected[frozenset((name, back.get(term, term)) for name, term in row)] += times
    assert all_solutions(case.query, world) == expected


def test_store_agrees_on_every_comparison() -> None:
    """One exception: the store finds a term without an order ``<=`` itself."""
    terms: tuple[Term, ...] = (*LITERALS, ANN, BOB, BlankNode("b"))
    graph = [(EX[f"n{number}"], P, term) for number, term in enumerate(terms)]
    store = _store(graph)
    for operator in OPERATORS:
        query = f"SELECT * {{ ?a {P} ?left . ?b {P} ?right BIND(?left {operator} ?right AS ?is) }}"
        found = {}
        for solution in _rows(store, query):
            truth = solution["is"]
            found[solution["a"], solution["b"]] = None if truth is None else truth == TRUE
        for (a, _, left), (b, _, right) in product(graph, graph):
            ours = compare(left, operator, right)
            tagged = isinstance(left, Literal) and left.language
            unordered = left == right and (tagged or not isinstance(left, Literal))
            if unordered and operator in ("<=", ">="):
                assert (ours, found[a, b]) == (None, True)
            elif unordered and operator in ("<", ">"):
                assert (ours, found[a, b]) == (None, False)
            else:
                assert ours == found[a, b], (left, operator, right)


def test_store_agrees_on_every_test_of_text() -> None:
    terms: tuple[Term, ...] = (*LITERALS, ANN, Literal("en"), Literal(""), BlankNode("b"))
    terms = tuple(_STORED.get(term, term) for term in terms)
    graph = [(EX[f"n{number}"], P, term) for number, term in enumerate(terms)]
    store = _store(graph)
    tests = [
        Text(X, function, view, constant, caseless)
        for function, view, caseless in product(TEXT_FUNCTIONS, VIEWS, (False, True))
        for constant in (PATTERNS if function == "REGEX" else TEXTS)
        if function == "REGEX" or not caseless
    ]
    for test in tests:
        filtered = to_sparql(select(Pattern(Y, P, X), filters=[test]))
        found = {row["y"] for row in _rows(store, filtered)}
        assert found == {s for s, _, term in graph if text_truth(test, term)}, filtered
        negated = to_sparql(select(Pattern(Y, P, X), filters=[Not(test)]))
        found = {row["y"] for row in _rows(store, negated)}
        assert found == {s for s, _, term in graph if text_truth(test, term) is False}, negated


# --------------------------------------------------------------------------------------
# Second opinions: owlrl, and the rules as SPARQL updates


@settings(deadline=None, max_examples=50)
@given(ontologies(), publications())
def test_owlrl_agrees_on_rdfs(ontology: tuple[Triple, ...], publication: Publication) -> None:
    graph = spoken((*ontology, *publication.triples))
    c, e = closure(graph, ())
    assert not e
    assert ours(c) == ours(by_owlrl(graph))


_Rule: TypeAlias = tuple[tuple[str, ...], str, str]
"""Premises, guard, conclusion."""

_NOT_RESERVED = " && ".join(
    f"!STRSTARTS(STR(?p), '{vocabulary.iri}')" for vocabulary in (RDF, RDFS, OWL, SKOS)
)
_RULES: tuple[_Rule, ...] = (
    (("?p rdfs:domain ?c", "?x ?p ?y"), "", "?x a ?c"),
    (("?p rdfs:range ?c", "?x ?p ?y"), "!isLiteral(?y)", "?y a ?c"),
    (("?p rdfs:subPropertyOf ?q", "?q rdfs:subPropertyOf ?r"), "", "?p rdfs:subPropertyOf ?r"),
    (("?p rdfs:subPropertyOf ?q", "?x ?p ?y"), "isIRI(?q)", "?x ?q ?y"),
    (("?c rdfs:subClassOf ?d", "?x a ?c"), "", "?x a ?d"),
    (("?c rdfs:subClassOf ?d", "?d rdfs:subClassOf ?e"), "", "?c rdfs:subClassOf ?e"),
    (("?p owl:inverseOf ?q", "?x ?p ?y"), "!isLiteral(?y) && isIRI(?q)", "?y ?q ?x"),
    (("?p owl:inverseOf ?q", "?x ?q ?y"), "!isLiteral(?y) && isIRI(?p)", "?y ?p ?x"),
    (("?c skos:narrower ?d",), "!isLiteral(?d)", "?d skos:broader ?c"),
    (("?c skos:broader ?d",), "!isLiteral(?d)", "?d skos:narrower ?c"),
    (("?c skos:broader ?d",), "", "?c skos:broaderTransitive ?d"),
    (
        ("?c skos:broaderTransitive ?d", "?d skos:broaderTransitive ?e"),
        "",
        "?c skos:broaderTransitive ?e",
    ),
    (("?c skos:broaderTransitive ?d", "?x ?p ?c"), _NOT_RESERVED, "?x ?p ?d"),
)
_OWN_RULES: tuple[_Rule, ...] = (
    (("?c owl:equivalentClass ?d",), "", "?c rdfs:subClassOf ?d . ?d rdfs:subClassOf ?c"),
    (("?p owl:equivalentProperty ?q",), "", "?p rdfs:subPropertyOf ?q . ?q rdfs:subPropertyOf ?p"),
    (("?a owl:sameAs ?b", "?a ?p ?y"), "?a != ?b", "?b ?p ?y"),
    (("?a owl:sameAs ?b", "?b ?p ?y"), "?a != ?b", "?a ?p ?y"),
    (("?a owl:sameAs ?b", "?x ?p ?a"), "?a != ?b", "?x ?p ?b"),
    (("?a owl:sameAs ?b", "?x ?p ?b"), "?a != ?b", "?x ?p ?a"),
)
_NEWS = NamedNode("urn:news")


def _background_updates() -> Iterator[str]:
    for premises, guard, then in _RULES:
        yield f"INSERT {{ {then} }} WHERE {{ {' . '.join(premises)} FILTER({guard or 'true'}) }}"


def _news_updates() -> Iterator[str]:
    for premises, guard, then in (*_RULES, *_OWN_RULES):
        for fresh in premises if (premises, guard, then) in _RULES else premises[:1]:
            body = " ".join(
                f"GRAPH {_NEWS} {{ {premise} }}"
                if premise is fresh
                else f"{{ {premise} }} UNION {{ GRAPH {_NEWS} {{ {premise} }} }}"
                for premise in premises
            )
            insert = f"INSERT {{ GRAPH {_NEWS} {{ {then} }} }}"
            yield f"{insert} WHERE {{ {body} FILTER({guard or 'true'}) }}"


def _exhaust(store: Store, updates: Iterable[str]) -> None:
    updates, size = list(updates), -1
    while size != len(store):
        size = len(store)
        for update in updates:
            store.update(update, prefixes=PREFIXES)


@settings(deadline=None, max_examples=50)
@given(cases())
def test_rules_as_updates_agree(case: Case) -> None:
    case = _renamed(case, _STORED)
    root = roots(case.ontology, case.synonyms)
    store = _store(root.triples(case.ontology))
    _exhaust(store, _background_updates())
    news = root.triples(case.publication.triples)
    store.extend(Quad(*triple, _NEWS) for triple in news)  # type: ignore[arg-type]
    _exhaust(store, _news_updates())
    found: dict[bool, set[Triple]] = {False: set(), True: set()}
    for quad in store:
        found[quad.graph_name == _NEWS].add((quad.subject, quad.predicate, quad.object))
    world = case.world()
    assert world.background == found[False]
    assert world.news == found[True]


@settings(deadline=None, max_examples=50)
@given(ontologies(), publications())
def test_news_and_background_are_the_closure_of_both(
    ontology: tuple[Triple, ...], publication: Publication
) -> None:
    makes_same = ("sameAs", "equivalentClass", "equivalentProperty")
    stated = [t for t in publication.triples if not str(t[1]).rstrip(">").endswith(makes_same)]
    c, e = closure(ontology, stated)
    assert c | e == closure((*ontology, *stated), ())[0]
    assert e >= set(stated)


# --------------------------------------------------------------------------------------
# Generated cases


def _counted(profile: Profile) -> tuple[Counter[str], Counter[str]]:
    """Count the features and the fired rules of generated cases (``*``: with new triples)."""
    asked: Counter[str] = Counter()
    rules: Counter[str] = Counter()

    @settings(
        deadline=None,
        max_examples=300,
        derandomize=True,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases(profile))
    def count(case: Case) -> None:
        world = case.world()
        rules.update({rule for rule, _ in conclusions(world.background, None)})
        rules.update({f"{rule}*" for rule, _ in conclusions(world.background, world.news)})
        rules.update({"roots"} if world.roots.of else ())
        asked.update(features(case.query))
        found, everything = answer_in(case.query, world), all_solutions(case.query, world)
        asked["generated"] += 1
        asked["matches"] += bool(found)
        asked["left out"] += found.total() < everything.total()
        asked["several solutions"] += found.total() > 1

    count()
    return asked, rules


@pytest.mark.parametrize("profile", [BASIC, FULL], ids=["basic", "full"])
def test_generated_cases_match_often_and_use_every_rule(profile: Profile) -> None:
    asked, rules = _counted(profile)
    assert 0.3 < asked["matches"] / asked["generated"] < 0.6, asked
    wanted = {"loop", "repeated in one pattern", "several edges", "disconnected"}
    wanted |= {"variable property", "blank node", "literal", "left out", "ASK", "DISTINCT"}
    wanted |= {"several solutions", *OPERATORS, *TAXONOMIC, *TEXT_FUNCTIONS, "IN", "||"}
    wanted |= {"STR", "LANG", "LCASE", "UCASE"}
    if profile.everything:
        wanted |= {"OPTIONAL", "UNION", "MINUS", "NOT EXISTS", "&&", "!", "BOUND"}
    assert wanted <= asked.keys(), wanted - asked.keys()
    names = [*(f"rdfs{number}" for number in (2, 3, 5, 7, 9, 11)), "inverse", "narrower"]
    names += ["broader", "topic"]
    own = ("own equivalentClass*", "own equivalentProperty*", "own sameAs*", "roots")
    fired = {*names, *(f"{name}*" for name in names), *own}
    assert fired <= rules.keys(), fired - rules.keys()


@settings(deadline=None, max_examples=50)
@given(cases(FULL))
def test_nothing_matches_an_empty_publication(case: Case) -> None:
    assert not answer(case.query, case.ontology, (), case.synonyms)


@settings(deadline=None, max_examples=50)
@given(ontologies(), synonyms())
def test_roots_are_their_own_roots(
    ontology: tuple[Triple, ...], pairs: tuple[tuple[Term, Term], ...]
) -> None:
    root = roots(ontology, pairs)
    assert all(root(root(term)) == root(term) for term in root.of)
    assert roots(root.triples(ontology)).of == {}


# --------------------------------------------------------------------------------------
# Examples of comparisons


@pytest.mark.parametrize(
    ("left", "operator", "right", "truth"),
    [
        ("2024-01-01T00:00:00Z", "=", "2024-01-01T01:00:00+01:00", True),
        ("2024-01-01T00:00:00Z", "=", "2024-01-01T00:00:00", False),
        ("2024-01-01T00:00:00Z", "<", "2024-01-01T13:59:59", None),
        ("2024-01-01T00:00:00Z", "<", "2024-01-01T14:00:00", None),
        ("2024-01-01T00:00:00Z", "<", "2024-01-01T14:00:01", True),
        ("2024-01-01T14:00:01", ">=", "2024-01-01T00:00:00Z", True),
    ],
)
def test_times_with_and_without_a_zone(
    left: str, operator: str, right: str, truth: bool | None
) -> None:
    a, b = (Literal(text, datatype=XSD["dateTime"]) for text in (left, right))
    sign = next(known for known in OPERATORS if known == operator)
    assert compare(a, sign, b) is truth
    (solution,) = _rows(Store(), f"SELECT ({a} {operator} {b} AS ?is) {{}}")
    assert solution["is"] == {True: TRUE, False: FALSE, None: None}[truth]
