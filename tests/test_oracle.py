"""The oracle, compared with other evaluators and with the contract's examples."""

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
from semantic.vocabulary import (
    GM,
    OWL,
    PREFIXES,
    RDF,
    RDFS,
    SKOS,
    TYPE,
    XSD,
)
from tests.oracle import (
    OPERATORS,
    TAXONOMIC,
    TEXT_FUNCTIONS,
    And,
    Answer,
    Bound,
    Compare,
    Filter,
    Group,
    Isa,
    Minus,
    Not,
    NotExists,
    Optional,
    Or,
    Pattern,
    Query,
    Roots,
    Text,
    Union,
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
from tests.second_opinion import by_owlrl, ours, spoken
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
X, Y, Z = Variable("x"), Variable("y"), Variable("z")
A, B, C, D = (EX[name] for name in "ABCD")
P, Q, R = (EX[name] for name in "pqr")
ANN, BOB, CAT = (EX[name] for name in ("ann", "bob", "cat"))


def triples(turtle: str) -> tuple[Triple, ...]:
    known = {**PREFIXES, "": EX.iri}
    head = "".join(f"PREFIX {prefix}: <{iri}> " for prefix, iri in known.items())
    quads = parse(head + turtle, format=RdfFormat.TURTLE)
    return tuple((quad.subject, quad.predicate, quad.object) for quad in quads)


def rows(*solutions: dict[str, Term]) -> Answer:
    return Counter(frozenset(solution.items()) for solution in solutions)


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


def test_store_keeps_values_and_not_terms() -> None:
    for literal in LITERALS:
        (quad,) = _store([(ANN, P, literal)])
        assert quad.object == _STORED.get(literal, literal)


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
def test_no_news_no_match(case: Case) -> None:
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
# Examples of roots


@pytest.mark.parametrize(
    ("ontology", "pairs", "term", "root"),
    [
        (":B owl:equivalentClass :A", (), B, A),
        (":B owl:equivalentClass :A . :B a owl:Class", (), A, B),
        (":B owl:equivalentClass :A . :A a owl:Class", ((A, B),), A, B),
        (":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :C rdfs:subClassOf :A", (), C, A),
        (":A rdfs:subClassOf :B . :B rdfs:subClassOf :A . :D rdfs:subClassOf :A", (), D, D),
        (":A skos:broader :B . :A skos:narrower :B", (), B, A),
        (":A owl:equivalentClass [ a owl:Restriction ]", (), A, A),
        # A synonym closes a cycle: A ⊑ B, C ⊑ A, and C is B.
        (":A rdfs:subClassOf :B . :C rdfs:subClassOf :A", ((B, C),), A, C),
        ("", ((A, B), (B, C)), A, C),
        ("", ((Literal("US"), Literal("USA")),), Literal("US", language="en"), Literal("USA")),
        ("", ((Literal("US"), Literal("USA")),), Literal("in the US"), Literal("in the US")),
    ],
)
def test_roots(ontology: str, pairs: tuple[tuple[Term, Term], ...], term: Term, root: Term) -> None:
    assert roots(triples(ontology + " ." if ontology else ""), pairs)(term) == root


def test_constants_become_roots_but_operands_of_order_do_not() -> None:
    root = roots(triples(":B owl:equivalentClass :A ."), [(Literal("US"), Literal("USA"))])
    us = Literal("US")
    where = Group(
        (Pattern(X, B, us),),
        (Compare(X, "=", us), Compare(X, "<", us), Not(Isa(X, "childOf", B))),
        (Optional(Group((Pattern(X, P, B),))), Minus(Group((Pattern(B, P, X),)))),
    )
    usa = Literal("USA")
    assert root.query(Query(where)).where == Group(
        (Pattern(X, A, usa),),
        (Compare(X, "=", usa), Compare(X, "<", us), Not(Isa(X, "childOf", A))),
        (Optional(Group((Pattern(X, P, A),))), Minus(Group((Pattern(A, P, X),)))),
    )


def test_solutions_bind_roots() -> None:
    ontology = triples(":bob owl:sameAs :ann .")
    query = select(Pattern(X, P, BOB))
    assert answer(query, ontology, triples(":bob :p :bob .")) == rows({"x": ANN})
    assert answer(query, ontology, triples(":ann :p :ann .")) == rows({"x": ANN})
    assert not answer(query, ontology, triples(":ann :p :ann ."), entailment="none")


# --------------------------------------------------------------------------------------
# Examples of entailment


@pytest.mark.parametrize(
    ("ontology", "publication", "news"),
    [
        (":p rdfs:domain :A", ":ann :p 1", ":ann a :A"),
        (":p rdfs:range :A", ":ann :p 1, :bob", ":bob a :A"),
        (":p rdfs:subPropertyOf [] . :q owl:inverseOf []", ":ann :p :bob ; :q :bob", ""),
        (":p owl:inverseOf :q", ":ann :p :bob, 1 . :cat :q :ann", ":bob :q :ann . :ann :p :cat"),
        # A publication's schema applies to the ontology's data, and vice versa.
        (":ann a :A", ":A rdfs:subClassOf :B", ":ann a :B"),
        (":A rdfs:subClassOf :B", ":ann a :A", ":ann a :B"),
        (":ann a :A", ":B owl:equivalentClass :A",
         ":A rdfs:subClassOf :A, :B . :B rdfs:subClassOf :A, :B . :ann a :A, :B"),
        # The ontology's triples about one name also hold for the other, so they are new.
        (":ann :p 1", ":bob owl:sameAs :ann",
         ":ann owl:sameAs :ann, :bob . :bob owl:sameAs :bob . :ann :p 1 . :bob :p 1"),
        # A concept implies its broader ones, but not with properties of RDF and RDFS.
        (":jazz skos:broader :music", ":ann :p :jazz ; rdfs:seeAlso :jazz ; a :jazz",
         ":ann :p :music"),
        (":jazz skos:broaderTransitive :music . :music skos:broaderTransitive :art",
         ":ann :p :jazz", ":ann :p :music, :art"),
        # The ontology's own triples are not new, unless the publication repeats a premise.
        (":A rdfs:subClassOf :B . :ann a :A", ":bob :p 1", ""),
        (":A rdfs:subClassOf :B . :ann a :A", ":ann a :A", ":ann a :B"),
    ],
)  # fmt: skip
def test_news(ontology: str, publication: str, news: str) -> None:
    stated = set(triples(publication + " ."))
    derived = set(triples(news + " .")) if news else set()
    assert closure(triples(ontology + " ."), stated)[1] == stated | derived


# --------------------------------------------------------------------------------------
# Examples of delta solutions


def test_a_solution_of_the_ontology_alone_is_no_match() -> None:
    ontology = triples(":ann :p :bob . :bob :p :cat .")
    publication = triples(":cat :p :ann .")
    query = select(Pattern(X, P, Y))
    assert answer(query, ontology, publication) == rows({"x": CAT, "y": ANN})
    assert not answer(replace(query, ask=True), ontology, triples(":ann :q :bob ."))
    joined = select(Pattern(X, P, Y), Pattern(Y, P, Z))
    assert answer(joined, ontology, publication) == rows(
        {"x": BOB, "y": CAT, "z": ANN}, {"x": CAT, "y": ANN, "z": BOB}
    )


def test_a_triple_that_is_repeated_or_derived_is_the_publications() -> None:
    ontology = triples(":A rdfs:subClassOf :B . :ann a :A . :bob a :A .")
    query = select(Pattern(X, TYPE, B))
    assert answer(query, ontology, triples(":ann a :A .")) == rows({"x": ANN})
    assert not answer(query, ontology, triples(":ann :p :bob ."))
    everyone = rows({"x": ANN}, {"x": BOB})
    assert answer(query, ontology, triples(":A rdfs:subClassOf :B .")) == everyone


def test_a_blank_node_of_the_query_may_be_any_term_that_fits() -> None:
    ontology = triples(":ann :p :bob . :ann :p :cat .")
    hidden = BlankNode("n")
    query = select(Pattern(X, P, hidden), Pattern(hidden, Q, Y))
    one = Literal("1", datatype=XSD["integer"])
    # The two solutions differ in a hidden variable, and one is a delta solution.
    publication = triples(":bob :q 1 .")
    both = (*ontology, *triples(":cat :q 1 ."))
    assert answer(query, both, publication) == rows({"x": ANN, "y": one})
    # A triple must match a pattern together with the other patterns.
    assert not answer(query, both, triples(":ann :p :dan ."))
    assert not answer(query, (*both, *triples(":bob :q 1 .")), triples(":dan :q 1 ."))


def test_optional_patterns_support_a_solution_and_minus_does_not() -> None:
    ontology = triples(":ann :p :bob .")
    publication = triples(":bob :q :cat .")
    known = Group((Pattern(X, P, Y),))
    news = Group((Pattern(Y, Q, Z),))
    optional = Query(replace(known, parts=(Optional(news),)))
    assert answer(optional, ontology, publication) == rows({"x": ANN, "y": BOB, "z": CAT})
    assert not answer(optional, ontology, triples(":cat :q :bob ."))
    exists = Query(replace(known, filters=(Not(NotExists(news)),)))
    assert all_solutions(exists, World.of(ontology, publication)).total() == 1
    assert not answer(exists, ontology, publication)
    unrelated = Group((Pattern(Y, R, Z),))
    assert not answer(Query(replace(known, parts=(Minus(unrelated),))), ontology, publication)


def test_a_pattern_of_the_other_branch_supports_a_solution_too() -> None:
    """The page requires only *a* triple pattern of the query with the bindings inserted."""
    branches = Union((Group((Pattern(X, P, Y),)), Group((Pattern(X, Q, Y),))))
    query = Query(Group(parts=(branches,)))
    both = rows({"x": ANN, "y": BOB}, {"x": ANN, "y": BOB})
    assert answer(query, triples(":ann :p :bob ."), triples(":ann :q :bob .")) == both


def test_hidden_variables_count_before_they_are_projected_away() -> None:
    ontology, publication = triples(":ann :p :bob ."), triples(":ann :p :cat .")
    query = Query(Group((Pattern(X, P, Y),)), (X,))
    assert answer(query, ontology, publication) == rows({"x": ANN})
    assert answer(query, (), (*ontology, *publication)) == rows({"x": ANN}, {"x": ANN})
    distinct = replace(query, distinct=True)
    assert answer(distinct, (), (*ontology, *publication)) == rows({"x": ANN})


# --------------------------------------------------------------------------------------
# Examples of taxonomy operators, comparisons, three-valued logic


def test_taxonomy_operators_walk_stated_links() -> None:
    ontology = triples(
        ":A rdfs:subClassOf :B . :B rdfs:subClassOf :C . :q rdfs:subPropertyOf :p ."
        ":jazz skos:broader :music . :art skos:narrower :music . :D owl:equivalentClass :C ."
        ":p rdfs:domain :A ."
    )
    for entailment in ("rdfs", "none"):
        world = World.of(ontology, triples(":ann a :A ; :p :bob ."), entailment=entailment)
        for above in (A, B, C, D, ANN):
            assert world.isa("descendantOf", ANN, above)
            assert world.isa("ancestorOf", above, ANN)
        assert world.isa("descendantOf", EX["jazz"], EX["art"])
        assert world.isa("descendantOf", Q, P)
        assert world.isa("childOf", ANN, A)
        assert world.isa("childOf", B, D)
        assert not world.isa("childOf", A, A)
        assert not world.isa("childOf", A, C)
        assert not world.isa("childOf", B, A)
    # Derived triples are not links: the range of p makes bob an A.
    world = World.of((*ontology, *triples(":p rdfs:range :A .")), triples(":ann :p :bob ."))
    assert (BOB, TYPE, A) in world.news
    assert not world.isa("descendantOf", BOB, A)


def test_terms_in_patterns_values_in_filters() -> None:
    one = Literal("1", datatype=XSD["integer"])
    publication = triples(':ann :p "01"^^xsd:integer . :bob :p 1.0 . :cat :p "1" .')
    assert not answer(select(Pattern(X, P, one)), (), publication)
    found = answer(select(Pattern(X, P, Y), filters=[Compare(Y, "=", one)]), (), publication)
    assert {dict(row)["x"] for row in found} == {ANN, BOB}


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


@pytest.mark.parametrize(
    ("left", "right", "truth"),
    [
        (":ann :p 1", ":ann :p 1.0", True),
        (":ann :p 1", ":ann :p 2", False),
        (":ann :p 1", ":bob :p 1", False),
        (":ann :p 1", ":ann :q 1", False),
        (":ann :p <<( :ann :p 1 )>>", ":ann :p <<( :ann :p 01 )>>", True),
        (":ann :p 1", ":ann :p :ann", False),
    ],
)
def test_triple_terms_are_compared_part_by_part(left: str, right: str, truth: bool) -> None:
    ((_, _, a), (_, _, b)) = triples(f":x :p <<( {left} )>> . :y :p <<( {right} )>> .")
    assert compare(a, "=", b) is truth
    assert compare(a, "!=", b) is not truth
    (solution,) = _rows(
        _store([(ANN, P, a), (BOB, P, b)]),
        f"""
        SELECT (?a = ?b AS ?is) {{ {ANN} {P} ?a . {BOB} {P} ?b }}""",
    )
    assert solution["is"] == (TRUE if truth else FALSE)


def test_an_error_is_neither_true_nor_false() -> None:
    one = Literal("1", datatype=XSD["integer"])
    error = Compare(X, "<", one)  # The value is a string.
    holds, fails = Bound(X), Not(Bound(X))
    expected: dict[Filter, int] = {
        error: 0, Not(error): 0, Or(error, holds): 1, Or(error, fails): 0, And(error, holds): 0,
        Not(And(error, fails)): 1, Not(Or(error, holds)): 0, Not(Isa(Y, "childOf", A)): 0,
    }  # fmt: skip
    for constraint, count in expected.items():
        query = select(Pattern(Z, P, X), filters=[constraint])
        assert answer(query, (), triples(':ann :p "text" .')).total() == count, constraint


def test_to_sparql() -> None:
    where = Group(
        (Pattern(X, P, BlankNode("n")),),
        (Or(Compare(X, "!=", ANN), NotExists(Group((Pattern(X, Q, X),)))),),
        (Optional(Group((Pattern(X, Q, Y),), (Isa(Y, "childOf", A),))),),
    )
    ex = EX.iri
    assert to_sparql(Query(where, (X, Y), distinct=True)) == (
        f"SELECT DISTINCT ?x ?y WHERE {{ ?x <{ex}p> _:n . OPTIONAL {{ ?x <{ex}q> ?y . "
        f"FILTER(<urn:graphmatch:childOf>(?y, <{ex}A>)) }} "
        f"FILTER(((?x != <{ex}ann>) || (NOT EXISTS {{ ?x <{ex}q> ?x . }}))) }}"
    )
