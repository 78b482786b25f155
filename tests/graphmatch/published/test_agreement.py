"""Every published algorithm gives the oracle's answers on every workload that it supports.

`configurations` lists the algorithms with their options, and the generated scenarios of each.
`EDGES` lists fixed scenarios of edge cases, which every algorithm gets: it must reject a
subscription with `UnsupportedError`, or match as the oracle does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import inf, nextafter
from random import Random
from typing import Any, TypeAlias

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Variable

from graphmatch import SubscriptionParser
from graphmatch.matcher import Matcher, UnsupportedError
from graphmatch.published import MATCHERS, make
from graphmatch.published.attribute_matcher import (
    AttributeEvent,
    AttributeMatcher,
    Below,
    Conjunction,
    Equal,
    Interval,
    Present,
    Tally,
)
from graphmatch.published.naive import Naive
from graphmatch.report import MatchReport
from semantic import Ontology, Publication
from semantic.mapping import MappingFunction
from semantic.terms import Term, Triple
from semantic.vocabulary import (
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
)
from tests.graphmatch.published.conjunctions import (
    ATTRIBUTES,
    CLASSES,
    DOMAIN,
    EVENT,
    TREE,
    conjunctions,
)
from tests.oracle import (
    OPERATORS,
    Answer,
    Compare,
    Entailment,
    Filter,
    Group,
    Isa,
    Pattern,
    Query,
    World,
    answer_in,
    to_sparql,
)
from tests.strategies import EX, FULL, Profile, Scenario, pairs_of, scenarios

Options: TypeAlias = dict[str, Any]

PARSER = SubscriptionParser()
P, Q, R, S, T = ATTRIBUTES
D = CLASSES[3]
KINDS = [Interval, Equal, Below, Present]
ATTRIBUTE_TREE: tuple[Triple, ...] = ((Q, SUBPROPERTY, P), (R, SUBPROPERTY, P))
HIERARCHY: tuple[Triple, ...] = (
    *TREE,
    (Q, SUBPROPERTY, P),
    (S, SUBPROPERTY, R),
    (S, SUBPROPERTY, Q),
    (D, SUBCLASS, CLASSES[2]),
    (CLASSES[6], EQUIVALENT_CLASS, CLASSES[4]),
    (T, EQUIVALENT_PROPERTY, EX["tee"]),
)
MORE: tuple[Triple, ...] = (
    *HIERARCHY[-4:],
    (R, SUBPROPERTY, P),
    (S, SUBPROPERTY, R),
    (T, SUBPROPERTY, P),
    (CLASSES[5], EQUIVALENT_CLASS, EX["Z"]),
)
"""Optional additional parents and synonyms."""


@st.composite
def concepts(draw: st.DrawFn) -> Scenario:
    """Draw trees with extra parents and synonyms, and instances in place of some classes."""
    more = draw(st.lists(st.sampled_from(MORE), unique=True))
    scenario = draw(conjunctions(KINDS, (*TREE, ATTRIBUTE_TREE[0], *more)))
    chosen = draw(st.lists(st.sampled_from(CLASSES), max_size=2))
    instances: dict[Term, Term] = {class_: EX[f"of-{class_.value[-1]}"] for class_ in chosen}

    def renamed(triple: Triple) -> tuple[Triple, ...]:
        subject, attribute, value = triple
        instance = instances.get(value)
        if instance is None:
            return (triple,)
        return (subject, attribute, instance), (instance, TYPE, value)

    publications = tuple(
        Publication.of(p.id, dict.fromkeys(new for t in p.triples for new in renamed(t)))
        for p in scenario.publications
    )
    return replace(scenario, publications=publications)


GRAPHS = scenarios(Profile(variable_properties=False), entailment="none")
"""Basic graph patterns with comparisons, string tests and taxonomy operators."""
RANGES = conjunctions([Interval])
DEXIN = ("dexin", "dexin-exclusive", "dexin-inclusive", "dexin-optimal")


def configurations() -> Iterator[tuple[str, Options, st.SearchStrategy[Scenario]]]:
    """Return each algorithm with its options and the generated scenarios that it must solve."""
    for entailment in ("rdfs", "none"):
        options = {"entailment": entailment == "rdfs"}
        yield "naive", options, scenarios(FULL, entailment=entailment)
    yield from ((name, {}, GRAPHS) for name in ("gtopss", "ops", "mic"))
    for ontology in (TREE, HIERARCHY):
        yield "stopss", {}, conjunctions(KINDS, ontology)
    for cells in (1, 3, 10):
        yield "ctps", {"domain": DOMAIN, "cells": cells}, concepts()
    yield "opindex", {}, RANGES
    ranges: list[tuple[str, Options]] = [
        *(("tama", {"layers": layers}) for layers in (1, 3, 13)),
        *(("rein", {"buckets": buckets}) for buckets in (1, 4, 1000)),
        *((name, {"slots": 4}) for name in DEXIN),
        ("dexin", {"slots": 1}),
        ("dexin", {"slots": 1500}),
        ("htree", {}),
        ("htree", {"levels": 1, "cells": 1}),
        ("htree", {"levels": 2, "cells": 5, "copies": 4}),
        ("htree", {"levels": 5, "cells": 13, "copies": 5000}),
        ("htree", {"indexed": ATTRIBUTES[3:], "cells": 4}),
    ]
    for name, options in ranges:
        yield name, {"domain": DOMAIN, **options}, RANGES
    for capacity, atom in ((None, None), (1, 0.25), (2, 5), (1, 100)):
        options = {"capacity": capacity, "atom": atom} if capacity else {}
        yield "betree", {"domain": DOMAIN, **options}, conjunctions([Interval, Equal, Present])
    for index, attributes, collapse, successors in product(
        (0, 1, 2), (0, 5), (True, False), (True, False)
    ):
        options = {"index": ATTRIBUTES[:index], "attributes": ATTRIBUTES[:attributes]}
        options |= {"collapse": collapse, "successors": successors}
        yield "gryphon", options, conjunctions([Equal])
    for kinds in ([Interval], [Equal], [Interval, Interval, Equal, Present]):
        for order in ((), ATTRIBUTES[::-1]):
            yield "gryphon-general", {"attributes": order}, conjunctions(kinds)


def answers(report: MatchReport) -> dict[str, Answer]:
    return {
        match.subscription: Counter(frozenset(s.items()) for s in match.solutions)
        for match in report
    }


def entailment_of(name: str, options: Options) -> Entailment:
    is_rdfs = name.startswith(("ctps", "stopss")) or options.get("entailment")
    return "rdfs" if is_rdfs else "none"


def expected(
    scenario: Scenario,
    publication: Publication,
    queries: dict[str, Query],
    matcher: Matcher,
    entailment: Entailment,
) -> dict[str, Answer]:
    """Return the oracle's answers. Only `Naive` knows the ontology's own triples."""
    world = World.of(
        scenario.ontology, publication.triples, scenario.synonyms, entailment=entailment
    )
    if not isinstance(matcher, Naive):
        world = replace(world, background=frozenset())
    found = {id: answer_in(query, world) for id, query in queries.items()}
    return {id: answer for id, answer in found.items() if answer}


def filled(
    name: str, options: Options, scenario: Scenario
) -> tuple[Matcher, dict[str, Query], int]:
    """Return a matcher, its subscriptions, and the number of those that it rejects."""
    pairs = pairs_of(scenario.synonyms)
    matcher = make(name, Ontology(scenario.ontology, pairs, on_problem=lambda _: None), **options)
    queries: dict[str, Query] = {}
    for number, query in enumerate(scenario.queries):
        subscription = PARSER.parse(str(number), to_sparql(query))
        try:
            matcher.subscribe(subscription)
        except UnsupportedError:
            continue
        queries[subscription.id] = query
    return matcher, queries, len(scenario.queries) - len(queries)


def compare(
    matcher: Matcher, scenario: Scenario, queries: dict[str, Query], entailment: Entailment
) -> None:
    for publication in scenario.publications:
        report = matcher.match(publication)
        right = expected(scenario, publication, queries, matcher, entailment)
        found = answers(report)
        if not matcher.capabilities.exact:
            for id, answer in right.items():
                assert answer <= found[id]
            assert found.keys() <= queries.keys()
            continue
        assert found == right
        if isinstance(matcher, AttributeMatcher) and len({s for s, *_ in publication.triples}) == 1:
            # No candidate was rejected.
            assert report.counters.verified == report.counters.matched


def test_the_table_has_every_algorithm() -> None:
    assert {name for name, *_ in configurations()} == set(MATCHERS)


@pytest.mark.parametrize(("name", "options", "strategy"), list(configurations()))
@given(data=st.data())
def test_every_algorithm_agrees_with_the_oracle(
    name: str, options: Options, strategy: st.SearchStrategy[Scenario], data: st.DataObject
) -> None:
    """Compare first all subscriptions, then only some of them, then all again."""
    scenario = data.draw(strategy)
    entailment = entailment_of(name, options)
    matcher, queries, rejected = filled(name, options, scenario)
    event(f"{rejected} of {len(scenario.queries)} rejected")
    if not matcher.capabilities.full_sparql:
        exact = [PARSER.parse("", to_sparql(query)).exact for query in scenario.queries]
        assert rejected == exact.count(False)
    gone = [id for id in queries if data.draw(st.booleans())]
    compare(matcher, scenario, queries, entailment)
    for id in gone:
        matcher.unsubscribe(id)
    left = {id: query for id, query in queries.items() if id not in gone}
    compare(matcher, scenario, left, entailment)
    for id in reversed(gone):
        matcher.subscribe(PARSER.parse(id, to_sparql(queries[id])))
    compare(matcher, scenario, queries, entailment)


# --- Edge cases -----------------------------------------------------------------------------------

ANN = EX["ann"]
DOUBLE = XSD["double"]
Constraint: TypeAlias = tuple[NamedNode, str, Term | None]


def query(*constraints: Constraint) -> Query:
    """Make a conjunction; ``is`` compares with a term, ``isa`` with a class."""
    patterns: list[Pattern] = []
    filters: list[Filter] = []
    variables: dict[NamedNode, Variable] = {}
    for attribute, operator, value in constraints:
        if operator == "is":
            assert value is not None
            patterns.append(Pattern(EVENT, attribute, value))
            continue
        if attribute not in variables:
            variables[attribute] = Variable(f"v{len(variables)}")
            patterns.append(Pattern(EVENT, attribute, variables[attribute]))
        if operator == "isa":
            assert isinstance(value, NamedNode)
            filters.append(Isa(variables[attribute], "descendantOf", value))
        elif value is not None:
            filters.append(Compare(variables[attribute], OPERATOR[operator], value))
    return Query(Group(tuple(patterns), tuple(filters)))


OPERATOR = {operator: operator for operator in OPERATORS}
NUMBERS = tuple(
    Literal(text, datatype=DOUBLE)
    for number in (
        0.0,
        -0.0,
        5.0,
        nextafter(5, 6),
        nextafter(5, 4),
        10.0,
        -1.0,
        11.0,
        1e300,
        5e-324,
    )
    for text in [repr(number)]
)
ENDS = tuple(map(Literal, (0, 5, 10, -1, 11)))


def events(*values: Term, attribute: NamedNode = P) -> tuple[Publication, ...]:
    """Make a publication for each value."""
    return tuple(
        Publication.of(f"urn:{number}", [(ANN, attribute, value)])
        for number, value in enumerate(values)
    )


def edge(
    publications: tuple[Publication, ...], *queries: Query, ontology: tuple[Triple, ...] = ()
) -> Scenario:
    return Scenario(ontology, (), publications, queries)


SEVERAL = Publication.of(
    "urn:several",
    [
        *((ANN, P, Literal(number)) for number in (1, 5, 9)),
        (ANN, Q, Literal(2)),
        (EX["bob"], P, Literal(5)),
        (EX["bob"], Q, Literal("text")),
        (EX["eve"], Q, Literal(2)),
    ],
)
TERMS = (*map(Literal, ("", "a", "A", "é", "e\u0301", "1")), Literal("a", language="en"), D, ANN)
RANGE = query((P, ">=", Literal(2)), (P, "<=", Literal(5)))
EDGES = {
    "ends of ranges, inside and outside the domain": edge(
        events(*NUMBERS),
        *(query((P, sign, end)) for end in ENDS for sign in ("<", "<=", ">", ">=", "=")),
    ),
    "ranges of one number, of all numbers, and of none": edge(
        events(*ENDS),
        query((P, ">=", Literal(5)), (P, "<=", Literal(5))),
        query((P, ">", Literal(5)), (P, "<", Literal(5))),
        query((P, ">", Literal(9)), (P, "<", Literal(1))),
        query((P, ">=", Literal(-(10**9))), (P, "<=", Literal(10**9))),
        query((P, ">=", Literal(0)), (P, "!=", Literal(5))),
    ),
    "the same number in several datatypes": edge(
        events(
            *(
                Literal(text, datatype=XSD[name])
                for text, name in (
                    ("5", "integer"),
                    ("5.0", "decimal"),
                    ("5e0", "double"),
                    ("5", "string"),
                    ("INF", "double"),
                    ("NaN", "double"),
                )
            )
        ),
        *(query((P, sign, Literal(5))) for sign in ("=", "<=", ">")),
        query((P, "is", Literal(5))),
    ),
    "several values, and several subjects": edge(
        (SEVERAL,),
        RANGE,
        query((P, "=", Literal(5)), (Q, "=", Literal(2))),
        query((P, ">", Literal(8)), (Q, "<", Literal(3))),
        query((Q, "is", Literal("text")), (P, "=", Literal(5))),
        query((Q, "any", None)),
    ),
    "no subscriptions": edge(events(*ENDS)),
    "empty and unrelated publications": edge(
        (Publication.of("urn:empty", []), *events(*ENDS, attribute=T)),
        RANGE,
        query((P, "any", None)),
        query((P, "is", Literal(5))),
    ),
    "many equal subscriptions": edge(
        events(*ENDS), *[RANGE] * 40, *[query((P, "is", ENDS[1]))] * 9
    ),
    "one subscription on all attributes": edge(
        (
            Publication.of("urn:all", [(ANN, one, Literal(5)) for one in ATTRIBUTES]),
            Publication.of("urn:some", [(ANN, one, Literal(5)) for one in ATTRIBUTES[1:]]),
        ),
        query(*((one, ">=", Literal(5)) for one in ATTRIBUTES)),
        query(*((one, "is", Literal(5)) for one in ATTRIBUTES)),
    ),
    "similar terms": edge(events(*TERMS), *(query((P, "is", term)) for term in TERMS)),
    "classes": edge(
        events(*CLASSES, EX["other"]),
        *(query((P, "isa", one)) for one in CLASSES[:4]),
        *(query((P, "is", one)) for one in CLASSES[:4]),
        ontology=TREE,
    ),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize(
    ("name", "options"), [(name, options) for name, options, _ in configurations()]
)
def test_every_algorithm_agrees_in_edge_cases(name: str, options: Options, edge: str) -> None:
    scenario = EDGES[edge]
    matcher, queries, _ = filled(name, options, scenario)
    compare(matcher, scenario, queries, entailment_of(name, options))
    for id in queries:
        matcher.unsubscribe(id)
    compare(matcher, scenario, {}, entailment_of(name, options))


# --- Mapping functions ----------------------------------------------------------------------------


FUNCTIONS = {
    "class": f"CONSTRUCT {{ ?x {S} {D} }} {{ ?x {R} ?n FILTER(?n < 5) }}",
    "more": f"CONSTRUCT {{ ?x {R} ?more }} {{ ?x {T} ?n BIND(?n + 1 AS ?more) }}",
}


@given(conjunctions(KINDS, HIERARCHY))
def test_stopss_agrees_if_functions_feed_each_other(scenario: Scenario) -> None:
    """The oracle lacks mapping functions, but `Naive` has them, and evaluates all as SPARQL."""
    functions = [MappingFunction(name, text) for name, text in FUNCTIONS.items()]
    ontology = Ontology(scenario.ontology, mapping=functions)
    stopss, naive = make("stopss", ontology), Naive(ontology)
    for number, query in enumerate(scenario.queries):
        for matcher in (stopss, naive):
            matcher.subscribe(PARSER.parse(str(number), to_sparql(query)))
    for publication in scenario.publications:
        found, right = (answers(one.match(publication)) for one in (stopss, naive))
        assert found == right


# --- Many subscriptions ---------------------------------------------------------------------------


ON_RANGES = sorted(MATCHERS.keys() - {"naive", "gryphon", "gtopss", "ops", "mic"})


@pytest.mark.parametrize("name", ON_RANGES)
def test_many_subscriptions_match_as_each_alone(name: str) -> None:
    """Cells hold several subscriptions, and arrays grow."""
    without = ("gryphon-general", "opindex", "stopss")
    options: Options = {} if name in without else {"domain": DOMAIN}
    made = make(name, Ontology(), **options)
    assert isinstance(made, AttributeMatcher)
    random = Random(5)
    rows: list[dict[NamedNode, Interval]] = []
    for number in range(300):
        asked = {*[P] * (number < 100), *random.sample([P, Q, R], random.randint(1, 3))}
        ends = {attribute: sorted(random.choices(range(11), k=2)) for attribute in sorted(asked)}
        rows.append(
            {
                attribute: Interval(
                    random.choice([low, low, -inf]), random.choice([high, high, inf])
                )
                for attribute, (low, high) in ends.items()
            }
        )
        made.add(Conjunction(str(number), P, (rows[-1],)))
    for _ in range(50):
        numbers = {a: random.uniform(-1, 11) for a in (P, Q, R) if random.random() < 0.9}
        right = [
            number
            for number, row in enumerate(rows)
            if all(a in numbers and i.holds(numbers[a]) for a, i in row.items())
        ]
        terms = {attribute: Literal(number) for attribute, number in numbers.items()}
        found = sorted(made.matched(AttributeEvent.of(terms), Tally()))
        assert found == right if made.capabilities.exact else set(found) >= set(right)
