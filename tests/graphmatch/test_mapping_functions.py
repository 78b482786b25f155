"""Mapping functions: their results, their runs, and their failures.

The reference, `naive`, runs functions written in plain Python on sets of triples, all of them
in every round, until nothing is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch import Engine, _native
from graphmatch.enrichment import Enricher
from graphmatch.mapping import MappingFunctions, MappingResult
from graphmatch.subscription import Query
from semantic import Limits, Ontology, Problem, Publication
from semantic.errors import OntologyError, Severity
from semantic.mapping import MappingFunction
from semantic.terms import Triple
from semantic.units.units import Units
from semantic.vocabulary import (
    BROADER,
    DOMAIN,
    EQUIVALENT_PROPERTY,
    GM,
    INVERSE_OF,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    Namespace,
)

EX = Namespace("urn:ex:")
X, Y = EX["x"], EX["y"]
NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
PREFIX = "PREFIX ex: <urn:ex:> "

EXPERIENCE = """CONSTRUCT { ?x ex:experience ?years }
WHERE { ?x ex:graduated ?year BIND(YEAR(NOW()) - ?year AS ?years) }"""
SENIOR = "CONSTRUCT { ?x a ex:Senior } WHERE { ?x ex:experience ?years FILTER(?years >= 20) }"
NEXT = "CONSTRUCT { ?x ex:n ?next } WHERE { ?x ex:n ?n BIND(?n + 1 AS ?next) }"


def function(name: str, text: str) -> MappingFunction:
    return MappingFunction(name, PREFIX + text, f"{name}.rq")


@dataclass
class Setting:
    """Mapping functions and their ontology."""

    functions: MappingFunctions
    ontology: Ontology
    evaluator: Enricher
    problems: list[Problem]

    def run(self, triples: Sequence[Triple], now: datetime = NOW) -> MappingResult:
        rooted = self.ontology.rewrite(Publication.of("urn:p", triples))
        return self.functions.run(rooted, self.evaluator, now, self.problems.append)


def setting(*texts: str, ontology: Sequence[Triple] = (), limits: Limits | None = None) -> Setting:
    """Return functions named f0, f1, …, and an ontology."""
    known = Ontology(ontology)
    functions = MappingFunctions(
        [function(f"f{number}", text) for number, text in enumerate(texts)],
        known.root,
        limits or Limits(),
    )
    return Setting(functions, known, Enricher(known), [])


def added(mapped: MappingResult) -> set[str]:
    """Return the mapped triples, without subjects."""
    return {f"{p.value} {o.value}".replace("urn:ex:", "") for _, p, o in mapped.mapped}


# --- Results ---------------------------------------------------------------------------------


def test_experience_is_counted_from_the_clock() -> None:
    known = setting(EXPERIENCE)
    graduated: Triple = (X, EX["graduated"], Literal(2003))
    for year in (2013, 2026):
        mapped = known.run([graduated], datetime(year, 5, 1, tzinfo=UTC))
        experience: Triple = (X, EX["experience"], Literal(year - 2003))
        assert mapped.mapped == {experience: "f0"}
        assert mapped.closed == {graduated: None, experience: None}


@pytest.mark.parametrize(
    ("now", "years"),
    [
        pytest.param(datetime(2025, 12, 31, 23, 30, tzinfo=UTC), "22", id="utc"),
        pytest.param(
            datetime(2026, 1, 1, 0, 30, tzinfo=timezone(timedelta(hours=1))), "23", id="east"
        ),
        pytest.param(
            datetime(2025, 12, 31, 18, 30, tzinfo=timezone(timedelta(hours=-5))), "22", id="west"
        ),
    ],
)
def test_the_year_is_that_of_the_clocks_own_zone(now: datetime, years: str) -> None:
    """Test one instant in three time zones."""
    mapped = setting(EXPERIENCE).run([(X, EX["graduated"], Literal(2003))], now)
    assert added(mapped) == {f"experience {years}"}


def test_functions_feed_each_other_through_rules() -> None:
    """Experience implies a senior, a senior an employee, and an employee gets a badge."""
    badge = 'CONSTRUCT { ?x ex:badge "yes" } WHERE { ?x a ex:Employee }'
    known = setting(
        badge,
        SENIOR.replace("ex:experience", "ex:years"),
        EXPERIENCE,
        ontology=[
            (EX["experience"], SUBPROPERTY, EX["years"]),
            (EX["Senior"], SUBCLASS, EX["Employee"]),
        ],
    )
    mapped = known.run([(X, EX["graduated"], Literal(2003))])
    assert mapped.mapped == {
        (X, EX["experience"], Literal(23)): "f2",
        (X, TYPE, EX["Senior"]): "f1",
        (X, EX["badge"], Literal("yes")): "f0",
    }
    years: Triple = (X, EX["years"], Literal(23))
    assert mapped.closed[years] == ("rdfs7", (X, EX["experience"], Literal(23)))
    assert (X, TYPE, EX["Employee"]) in mapped.closed
    assert mapped.runs == 3


def test_functions_read_and_return_root_terms() -> None:
    same = [
        (EX["alumnus"], EQUIVALENT_PROPERTY, EX["graduated"]),
        (EX["experience"], EQUIVALENT_PROPERTY, EX["a"]),
    ]
    known = setting(EXPERIENCE, SENIOR, ontology=same)
    mapped = known.run([(X, EX["alumnus"], Literal(2003))])
    assert added(mapped) == {"a 23", f"{TYPE.value} Senior"}


@pytest.mark.parametrize("read", ["alumnus", "graduated"])
@pytest.mark.parametrize("said", ["alumnus", "graduated"])
def test_they_run_in_the_engine_whichever_name_the_publication_says(read: str, said: str) -> None:
    same = [(EX["alumnus"], EQUIVALENT_PROPERTY, EX["graduated"])]
    senior = function("senior", f"CONSTRUCT {{ ?x a ex:Senior }} {{ ?x ex:{read} ?year }}")
    engine = Engine(Ontology(same, mapping=[senior]))
    engine.subscribe("seniors", "ASK { ?x a <urn:ex:Senior> }")
    publication = Publication.of("urn:p", [(X, EX[said], Literal(1990))])
    assert engine.match(publication).subscriptions == ("seniors",)


def test_what_the_ontology_says_alone_is_not_the_publications() -> None:
    known = setting(EXPERIENCE, ontology=[(Y, EX["graduated"], Literal(1990))])
    mapped = known.run([(X, EX["graduated"], Literal(2003))])
    assert set(mapped.mapped) == {(X, EX["experience"], Literal(23))}


def test_the_ontology_may_be_looked_up() -> None:
    country = "CONSTRUCT { ?x ex:country ?c } WHERE { ?x ex:city ?y . ?y ex:in ?c }"
    known = setting(country, ontology=[(Y, EX["in"], EX["Kenya"])])
    assert added(known.run([(X, EX["city"], Y)])) == {"country Kenya"}


def test_the_first_of_two_functions_is_named() -> None:
    known = setting(SENIOR, SENIOR)
    mapped = known.run([(X, EX["experience"], Literal(20))])
    assert mapped.mapped == {(X, TYPE, EX["Senior"]): "f0"}


def test_invalid_triples_are_left_out() -> None:
    known = setting("CONSTRUCT { ?o ex:of ?x . ?x ex:has ?o } WHERE { ?x ex:p ?o }")
    assert added(known.run([(X, EX["p"], Literal("text"))])) == {"has text"}
    assert known.problems == []


def test_an_error_in_an_expression_leaves_a_solution_out() -> None:
    known = setting(EXPERIENCE)
    triples: list[Triple] = [
        (X, EX["graduated"], Literal("long ago")),
        (Y, EX["graduated"], Literal(2006)),
    ]
    assert added(known.run(triples)) == {"experience 20"}
    assert known.problems == []


def test_terms_keep_how_they_are_written() -> None:
    """The store would change ``01`` into ``1``."""
    number = Literal("01", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))
    known = setting("CONSTRUCT { ?x ex:copy ?o } WHERE { ?x ex:p ?o }")
    assert list(known.run([(X, EX["p"], number)]).mapped) == [(X, EX["copy"], number)]


def test_new_blank_nodes_are_the_same_when_a_function_is_run_again() -> None:
    """The second run, caused by the other function, repeats the first address."""
    known = setting(
        "CONSTRUCT { ?x ex:address [ ex:in ?c ] } WHERE { ?x ex:city ?c }",
        "CONSTRUCT { ?x ex:city ex:Rome } WHERE { ?x ex:town ?c }",
    )
    mapped = known.run([(X, EX["city"], EX["Pisa"]), (X, EX["town"], EX["Lucca"])])
    addresses = [t for t in mapped.mapped if t[1] == EX["address"]]
    assert len(addresses) == 2
    assert {o for s, p, o in mapped.mapped if p == EX["in"]} == {EX["Pisa"], EX["Rome"]}
    assert mapped.runs == 3
    assert known.problems == []


def test_blank_nodes_that_are_there_stay_themselves() -> None:
    known = setting("CONSTRUCT { ?x ex:q ?o } WHERE { ?x ex:p ?o }")
    assert list(known.run([(X, EX["p"], BlankNode("b"))]).mapped) == [(X, EX["q"], BlankNode("b"))]


def test_two_new_blank_nodes_that_look_the_same_stay_two() -> None:
    known = setting("CONSTRUCT { _:a ex:q _:b . _:b ex:q _:a } WHERE { ?x ex:p ?o }")
    mapped = known.run([(X, EX["p"], Literal(1))])
    assert len({term for triple in mapped.mapped for term in triple}) == 3
    assert len(mapped.mapped) == 2


# --- Runs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("triples", "runs"),
    [
        pytest.param([(X, EX["colour"], Literal("red"))], 0, id="nothing that it reads"),
        pytest.param([(X, TYPE, EX["Junior"])], 0, id="another class"),
        pytest.param([(X, TYPE, EX["Senior"])], 1, id="the class"),
        pytest.param([(X, EX["graduated"], Literal(1990))], 3, id="each once"),
        pytest.param(
            [(X, EX["graduated"], Literal(1990)), (Y, EX["graduated"], Literal(2020))],
            3,
            id="each once for two people",
        ),
        pytest.param(
            [(X, EX["graduated"], Literal(1990)), (X, EX["experience"], Literal(3))],
            4,
            id="one again for what is new",
        ),
    ],
)
def test_how_many_times_functions_are_run(triples: list[Triple], runs: int) -> None:
    badge = "CONSTRUCT { ?x ex:badge true } WHERE { ?x a ex:Senior }"
    assert setting(EXPERIENCE, SENIOR, badge).run(triples).runs == runs


@pytest.mark.parametrize(
    ("rule", "stated", "reads"),
    [
        ((EX["alumnus"], SUBPROPERTY, EX["graduated"]), EX["alumnus"], "ex:graduated ?o"),
        ((EX["graduated"], DOMAIN, EX["Person"]), EX["graduated"], "a ex:Person"),
        ((EX["taught"], INVERSE_OF, EX["graduated"]), EX["taught"], "^ex:graduated ?o"),
        ((Y, BROADER, EX["city"]), EX["near"], "ex:near ex:city"),
    ],
)
def test_derived_triples_run_a_function_even_if_only_it_needs_them(
    rule: Triple, stated: NamedNode, reads: str
) -> None:
    engine = Engine(
        Ontology(
            [rule], mapping=[function("f", f"CONSTRUCT {{ ?x ex:met 1 }} WHERE {{ ?x {reads} }}")]
        )
    )
    engine.subscribe("a", PREFIX + "SELECT ?x { ?x ex:met 1 }")
    assert engine.match(Publication.of("urn:p", [(X, stated, Y)])).subscriptions == ("a",)


def test_an_optional_part_that_comes_later_runs_a_function_again() -> None:
    known = setting(
        """CONSTRUCT { ?x ex:label ?l } WHERE { ?x ex:given ?g OPTIONAL { ?x ex:title ?t }
        BIND(CONCAT(COALESCE(?t, "-"), ?g) AS ?l) }""",
        'CONSTRUCT { ?x ex:title "Dr " } WHERE { ?x ex:degree ?d }',
    )
    mapped = known.run([(X, EX["given"], Literal("Ada")), (X, EX["degree"], Literal("PhD"))])
    assert added(mapped) == {"label -Ada", "title Dr ", "label Dr Ada"}
    assert mapped.runs == 3


def test_what_may_not_be_there_does_not_start_a_function() -> None:
    known = setting(
        'CONSTRUCT { ?x ex:n "none" } WHERE { ?x ex:p ?o FILTER NOT EXISTS { ?x ex:n ?n } }',
        EXPERIENCE,
    )
    assert known.run([(X, EX["n"], Literal(1))]).runs == 0
    assert known.run([(X, EX["n"], Literal(1)), (X, EX["graduated"], Literal(2003))]).runs == 1
    assert added(known.run([(X, EX["p"], Literal(1))])) == {"n none"}


def test_the_comment_is_that_at_the_head() -> None:
    text = "# Years since\n# graduation.\n" + PREFIX + EXPERIENCE + "# not this"
    told = MappingFunction("f", text)
    assert told.comment == "Years since graduation."


# --- Failure ---------------------------------------------------------------------------------

P_TRIPLES: list[Triple] = [(X, EX["n"], Literal(0)), (X, EX["graduated"], Literal(2003))]


def test_a_loop_is_left_out_and_the_rest_goes_on() -> None:
    known = setting(NEXT, EXPERIENCE)
    mapped = known.run(P_TRIPLES)
    assert added(mapped) == {"experience 23"}
    assert set(mapped.closed) == {*P_TRIPLES, (X, EX["experience"], Literal(23))}
    (problem,) = known.problems
    assert problem.severity is Severity.WARNING
    assert str(problem) == (
        "f0.rq (urn:p): the mapping function `f0` is left out: it still gives new triples after "
        "`mapping_rounds` (10) rounds. The publication is matched without it. Change it so that "
        "it does not read its own results, or raise the limit."
    )


@pytest.mark.parametrize(("start", "lost"), [(0, True), (1, False)])
def test_the_number_of_rounds_is_bounded(start: int, lost: bool) -> None:
    """From 0, counting to ten takes ten rounds; from 1, nine."""
    known = setting(
        "CONSTRUCT { ?x ex:n ?m } WHERE { ?x ex:n ?n FILTER(?n < 10) BIND(?n + 1 AS ?m) }",
        limits=Limits(mapping_rounds=9),
    )
    mapped = known.run([(X, EX["n"], Literal(start))])
    assert bool(known.problems) == lost
    assert len(mapped.mapped) == (0 if lost else 9)


def test_a_template_with_blank_nodes_that_feeds_itself_is_left_out() -> None:
    known = setting("CONSTRUCT { ?x ex:part [ a ex:Part ] } WHERE { ?x a ex:Part }")
    assert known.run([(X, TYPE, EX["Part"])]).mapped == {}
    assert len(known.problems) == 1


def test_of_two_functions_that_loop_through_each_other_one_is_left_out() -> None:
    known = setting(
        "CONSTRUCT { ?x ex:m ?n } WHERE { ?x ex:n ?n }",
        "CONSTRUCT { ?x ex:n ?m } WHERE { ?x ex:m ?n BIND(?n + 1 AS ?m) }",
    )
    mapped = known.run(P_TRIPLES)
    assert [problem.what.split("`")[1] for problem in known.problems] == ["f0"]
    assert added(mapped) == set()


def test_a_loop_through_a_rule_is_one() -> None:
    known = setting(
        "CONSTRUCT { ?x ex:next ?m } WHERE { ?x ex:n ?n BIND(?n + 1 AS ?m) }",
        "CONSTRUCT { ?x ex:seen ?n } WHERE { ?x ex:n ?n }",
        ontology=[(EX["next"], SUBPROPERTY, EX["n"])],
    )
    assert added(known.run(P_TRIPLES)) == set()
    assert [problem.what.split("`")[1] for problem in known.problems] == ["f0", "f1"]


def test_a_function_that_gives_too_much_is_left_out() -> None:
    pairs = "CONSTRUCT { ?x ex:with ?y } WHERE { ?x ex:n ?a . ?y ex:n ?b }"
    triples: list[Triple] = [(EX[f"x{n}"], EX["n"], Literal(0)) for n in range(4)]
    known = setting(pairs, limits=Limits(mapping_triples=15))
    assert known.run(triples).mapped == {}
    (problem,) = known.problems
    assert problem.what == (
        "the mapping function `f0` is left out: it adds more than `mapping_triples` (15)"
    )
    enough = setting(pairs, limits=Limits(mapping_triples=16))
    assert len(enough.run(triples).mapped) == 16
    assert enough.problems == []


@dataclass
class GivingUp:
    """An evaluation that fails for queries about seniors."""

    evaluation: _native.Evaluation

    def answer(self, query: Query, *, resting: bool, most: int) -> object:
        if EX["Senior"] in [term for term, _ in query.constants()]:
            raise _native.EvaluationFailedError("out of memory")
        return self.evaluation.answer(query, resting, most)


class Failing(Enricher):
    def evaluation(self, publication: Publication, now: datetime) -> _native.Evaluation:
        return cast("_native.Evaluation", GivingUp(super().evaluation(publication, now)))


def test_a_function_that_cannot_be_evaluated_is_left_out() -> None:
    known = setting(EXPERIENCE, SENIOR)
    known.evaluator = Failing(known.ontology)
    mapped = known.run(P_TRIPLES)
    assert added(mapped) == {"experience 23"}
    (problem,) = known.problems
    assert problem.what == (
        "the mapping function `f1` is left out: it cannot be evaluated: out of memory"
    )
    assert mapped.runs == 3  # Experience and senior run, then experience again.


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(
            "SELECT ?x { ?x ex:p ?o }",
            "f.rq: a mapping function is a CONSTRUCT query, not SELECT. "
            "Write CONSTRUCT { what it adds } WHERE { what it reads }.",
            id="no CONSTRUCT",
        ),
        pytest.param(
            "\nCONSTRUCT { ?x ex:p ?o } WHERE { SERVICE <urn:s> { ?x ex:p ?o } }",
            "f.rq:2:34: SERVICE: a subscription cannot read other data. "
            "Remove it. The data are the publication and the ontology.",
            id="SERVICE",
        ),
        pytest.param(
            "CONSTRUCT { ?x ex:p ?o WHERE { ?x ex:p ?o }",
            "f.rq:1:45: not SPARQL: “WHERE” is out of place. "
            "Correct the query there, or just before.",
            id="syntax",
        ),
        pytest.param(
            "CONSTRUCT { ex:a ex:p ?now } WHERE { BIND(NOW() AS ?now) }",
            "f.rq: it matches an empty graph, so it would match every publication. "
            "Add a triple pattern that is not optional.",
            id="nothing to wait for",
        ),
    ],
)
def test_invalid_mapping_functions_are_refused(text: str, told: str) -> None:
    with pytest.raises(OntologyError) as caught:
        MappingFunctions([function("f", text)])
    assert str(caught.value) == told


# --- Units -----------------------------------------------------------------------------------

LARGE = """PREFIX cdt: <https://w3id.org/cdt/>
CONSTRUCT { ?x a ex:Large } WHERE { ?x ex:size ?s FILTER(?s > "1 TB"^^cdt:ucum) }"""


def with_base_unit(unit: str) -> MappingFunctions:
    known = Ontology()
    declared: list[Triple] = [(EX["size"], GM["baseUnit"], Literal(unit))]
    units = Units(declared, known.properties, pytest.fail)
    return MappingFunctions([function("large", LARGE)], known.root, units=units)


@pytest.mark.parametrize(("number", "large"), [(900, False), (1100, True)])
def test_quantities_in_a_query_are_brought_to_the_base_unit(number: int, large: bool) -> None:
    known = setting()
    known.functions = with_base_unit("GB")
    assert bool(known.run([(X, EX["size"], Literal(number))]).mapped) == large


def test_a_unit_that_does_not_fit_is_refused() -> None:
    with pytest.raises(OntologyError, match=r"^large\.rq: "):
        with_base_unit("kg")


# --- Against the naive reference -------------------------------------------------------------

Triples = frozenset[Triple]


def integers(triples: Triples, name: str) -> Iterator[tuple[NamedNode, int]]:
    for subject, predicate, object_ in triples:
        if predicate == EX[name]:
            assert isinstance(subject, NamedNode)
            yield subject, int(object_.value)


def plus_one(triples: Triples) -> set[Triple]:
    return {(s, EX["b"], Literal(n + 1)) for s, n in integers(triples, "a") if n < 4}


def total(triples: Triples) -> set[Triple]:
    return {
        (s, EX["c"], Literal(n + m))
        for s, n in integers(triples, "a")
        for other, m in integers(triples, "b")
        if s == other and n + m < 8
    }


def big(triples: Triples) -> set[Triple]:
    return {(s, TYPE, EX["Big"]) for s, n in integers(triples, "d") if n > 3}


def back(triples: Triples) -> set[Triple]:
    large = {s for s, p, o in triples if (p, o) == (TYPE, EX["Large"])}
    return {(s, EX["a"], Literal(3)) for s in large}


def only_one(triples: Triples) -> set[Triple]:
    """Results stay even if their condition no longer holds."""
    named = {s for s, p, _ in triples if p == EX["name"]}
    return {
        (s, EX["name"], Literal("none")) for s, p, _ in triples if p == EX["a"] and s not in named
    }


FUNCTIONS: dict[str, Callable[[Triples], set[Triple]]] = {
    "CONSTRUCT { ?x ex:b ?m } { ?x ex:a ?n FILTER(?n < 4) BIND(?n + 1 AS ?m) }": plus_one,
    """CONSTRUCT { ?x ex:c ?k } { ?x ex:a ?n ; ex:b ?m BIND(?n + ?m AS ?k) FILTER(?k < 8) }""": (
        total
    ),
    "CONSTRUCT { ?x a ex:Big } { ?x ex:d ?n FILTER(?n > 3) }": big,
    "CONSTRUCT { ?x ex:a 3 } { ?x a ex:Large }": back,
    'CONSTRUCT { ?x ex:name "none" } { ?x ex:a ?n FILTER NOT EXISTS { ?x ex:name ?o } }': only_one,
}
RULES: list[Triple] = [
    (EX["b"], SUBPROPERTY, EX["d"]),
    (EX["c"], SUBPROPERTY, EX["d"]),
    (EX["c"], SUBPROPERTY, EX["b"]),
    (EX["Big"], SUBCLASS, EX["Large"]),
]


def naive(
    triples: Triples, rules: Sequence[Triple], functions: Sequence[Callable[[Triples], set[Triple]]]
) -> Triples:
    """Return the fixpoint: apply all rules, then all functions, and repeat."""
    closed = triples
    while True:
        more = closed | {
            (s, high, o) if kind == SUBPROPERTY else (s, p, high)
            for low, kind, high in rules
            for s, p, o in closed
            if (p == low if kind == SUBPROPERTY else (p, o) == (TYPE, low))
        }
        if more == closed:
            more = closed.union(*(function(closed) for function in functions))
        if more == closed:
            return closed
        closed = more


publications = st.lists(
    st.one_of(
        st.tuples(
            st.sampled_from([X, Y]),
            st.sampled_from([EX["a"], EX["b"], EX["c"]]),
            st.integers(0, 5).map(Literal),
        ),
        st.tuples(st.just(X), st.just(EX["name"]), st.just(Literal("Ada"))),
        st.tuples(st.sampled_from([X, Y]), st.just(TYPE), st.just(EX["Big"])),
    ),
    max_size=5,
)


@given(
    publications,
    st.lists(st.sampled_from(RULES), unique=True),
    st.lists(st.sampled_from(sorted(FUNCTIONS)), unique=True),
)
def test_the_closure_is_that_of_running_all_in_every_round(
    triples: list[Triple], rules: list[Triple], texts: list[str]
) -> None:
    known = setting(*texts, ontology=rules)
    mapped = known.run(triples)
    expected = naive(frozenset(triples), rules, [FUNCTIONS[text] for text in texts])
    assert set(mapped.closed) == expected
    assert set(mapped.mapped) <= expected - set(triples)
    assert known.problems == []


def test_a_function_that_names_no_property_is_run_for_every_publication() -> None:
    any_number = "CONSTRUCT { ?s ex:number ?o } WHERE { ?s ?p ?o FILTER(isNumeric(?o)) }"
    engine = Engine(Ontology(mapping=[function("any number", any_number)]))
    engine.subscribe("a", PREFIX + "SELECT ?o { ?s ex:number ?o }")
    said = Publication.of("urn:p", [(X, EX["size"], Literal(3))])
    assert engine.match(said).subscriptions == ("a",)
