"""Insight into stored publications equals the results of matching them one by one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode
from typer.testing import CliRunner

from graphmatch import Engine, SubscriptionParser, read_subscriptions
from graphmatch.broker.insight import what_if as what_if_module
from graphmatch.broker.insight.backtest import BacktestResult, Scan, backtest
from graphmatch.broker.insight.explanations import readable, reasons
from graphmatch.broker.insight.query_by_example import (
    Fact,
    Sort,
    count_facts,
    facts,
    generalisations,
    query_of,
)
from graphmatch.broker.insight.subscription_health import (
    LIMIT_SECONDS,
    sink_findings,
    subscription_findings,
)
from graphmatch.broker.insight.what_if import ChangedSubscription, what_if
from graphmatch.broker.models.findings import Finding, FindingKind
from graphmatch.broker.models.stored_publication import StoredPublication
from graphmatch.broker.models.times import millis
from graphmatch.broker.service.backtester import Backtester
from graphmatch.cli import app
from graphmatch.explain.conditions import conditions
from graphmatch.lint import CODES
from graphmatch.operators.operator import operator
from semantic import Ontology, Publication, read_publications
from semantic.errors import GraphMatchError, Place, Problem, SubscriptionError
from semantic.ontology.taxonomy import Taxonomy
from semantic.reading import SplitBy
from semantic.terms import Term, Triple, written
from semantic.vocabulary import BROADER, DC, DCTERMS, PREFIXES, RSS, SUBCLASS, SUBPROPERTY, TYPE
from tests.oracle import to_sparql
from tests.strategies import CLASSES, PROPERTIES, Profile, Scenario, pairs_of, scenarios

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
PARSER = SubscriptionParser()
NEWS = "https://graphmatch.example/news#"
HOUR = timedelta(hours=1)
MINUTE = 60.0


def lines(triples: Sequence[Triple]) -> bytes:
    return "".join(f"{' '.join(map(written, t))} .\n" for t in triples).encode()


def stored_of(publications: Sequence[Publication]) -> list[StoredPublication]:
    """Return publications with one received every seven hours, the last one first."""
    return [
        StoredPublication(p.id, lines(p.triples), NOW - 7 * n * HOUR, p.title, p.link)
        for n, p in enumerate(publications)
    ]


@cache
def samples() -> tuple[StoredPublication, ...]:
    found = read_publications(ROOT / "data/feeds", on_problem=lambda _: None)
    return tuple(stored_of(list(found)))


@cache
def news() -> Ontology:
    return Ontology.load(ROOT / "ontologies/news.ttl")


def texts() -> dict[str, str]:
    read = read_subscriptions(ROOT / "data/subscriptions")
    return {s.id: s.query.text for s in read if s.id.startswith("feeds")}


@cache
def backtester() -> Backtester:
    return Backtester(Engine(news()))


def tried(query: str) -> BacktestResult:
    kept = backtester()
    return backtest(kept.engine, query, samples(), MINUTE, kept)


def parts(query: str) -> dict[str, str]:
    """Return the conditions of a query, each with the query without it."""
    found = conditions(PARSER.query("q", query), news().prefixes)
    return {one.describe(news().shown_names.shown): one.without for one in found}


def scan(stored: Sequence[StoredPublication]) -> Scan:
    return Scan(stored, MINUTE, lambda: 0.0)


def live(
    engine: Engine, stored: Sequence[StoredPublication], clock: list[datetime]
) -> list[tuple[str, ...]]:
    """Match publications as a broker does; return the subscriptions of each."""
    found = []
    for one in stored:
        clock[0] = one.received
        reports = engine.filter(one.text, "nt", SplitBy.DOCUMENT, name=one.id)
        found.append(tuple(id for report in reports for id in report.subscriptions))
    return found


def matching(query: str, ontology: Ontology, stored: Sequence[StoredPublication]) -> list[str]:
    """Match one query with its own engine; return the publications' ids."""
    clock = [NOW]
    engine = Engine(ontology, clock=lambda: clock[0], on_problem=lambda _: None)
    engine.subscribe("q", query)
    return [one.id for one, ids in zip(stored, live(engine, stored, clock), strict=True) if ids]


# -- Backtests --------------------------------------------------------------------------------


@settings(max_examples=12)
@given(scenarios(Profile(everything=True)))
def test_a_backtest_equals_matching_one_by_one(scenario: Scenario) -> None:
    ontology = Ontology(scenario.ontology, pairs_of(scenario.synonyms), on_problem=lambda _: None)
    stored = stored_of(scenario.publications)
    kept = Backtester(Engine(ontology))
    for query in map(to_sparql, scenario.queries):
        expected = matching(query, ontology, stored)
        trial = backtest(kept.engine, query, stored, MINUTE, kept)
        assert [hit.id for hit in trial.newest] == expected
        assert trial.matched == len(expected)
        for missed in trial.relaxations:
            rest = parts(query)[missed.condition]
            more = set(matching(rest, ontology, stored)) - set(expected)
            assert missed.count == len(more)


def test_a_backtest_gives_reasons() -> None:
    trial = tried(f"SELECT ?item {{ ?item dcterms:subject <{NEWS}Climate> }}")
    assert len(trial.newest) == min(trial.matched, 10)
    assert trial.matched > 2
    assert any("⊑" in reason for hit in trial.newest for reason in hit.because)


def test_now_is_the_time_at_which_a_publication_arrived() -> None:
    item = NamedNode("http://e/1")
    date = Literal("2026-05-20T00:00:00Z", datatype=NamedNode(f"{XSD}dateTime"))
    text = lines([(item, TYPE, RSS["item"]), (item, DC["date"], date)])
    late = StoredPublication("late", text, datetime(2026, 6, 20, tzinfo=UTC))
    early = StoredPublication("early", text, datetime(2026, 5, 21, tzinfo=UTC))
    query = 'ASK { ?i dc:date ?d FILTER(?d > NOW() - "P7D"^^xsd:dayTimeDuration) }'
    trial = backtest(Engine(), query, [late, early], MINUTE)
    assert [hit.id for hit in trial.newest] == ["early"]


XSD = "http://www.w3.org/2001/XMLSchema#"


def test_no_prefix_of_a_query_crashes() -> None:
    text = texts()["feeds-elections-with-audio"] + "GROUP BY ?item HAVING(COUNT(*) > 1)"
    refused = 0
    for end in range(len(text)):
        if end % 5 == 0:
            try:
                tried(text[:end])
            except SubscriptionError as error:
                refused += 1
                assert error.problem.where.line is not None or end < 3  # noqa: PT017 - not always
    assert refused > 50


def test_undecided_publications_are_counted() -> None:
    @operator("urn:op:fails")
    def fails(_: Term) -> bool:
        raise ValueError("no")

    engine = Engine(operators=[fails], on_problem=lambda _: None)
    query = "ASK { ?x a rss:item FILTER(<urn:op:fails>(?x)) }"
    trial = backtest(engine, query, samples()[:3], MINUTE)
    assert (trial.matched, trial.undecided) == (0, 3)


# -- Saved backtests --------------------------------------------------------------------------


def test_words_are_found_after_a_query_without_words() -> None:
    engine = Engine(news())
    kept = Backtester(engine)
    query = 'SELECT ?item { ?item gm:words ?w FILTER(CONTAINS(?w, " home win ")) }'

    def matched(query: str) -> int:
        found = backtest(engine, query, samples(), limit_seconds=MINUTE, backtester=kept)
        return found.matched

    assert matched("ASK { ?x a rss:item }") == len(samples())
    assert matched(query) == len(matching(query, news(), samples())) > 0


def test_a_new_ontology_is_applied() -> None:
    engine = Engine(Ontology())
    kept = Backtester(engine)
    query = f"SELECT ?item {{ ?item dcterms:subject <{NEWS}Climate> }}"

    def matched() -> int:
        found = backtest(engine, query, samples(), limit_seconds=MINUTE, backtester=kept)
        return found.matched

    assert matched() == 0
    engine.replace_ontology(news())
    assert matched() == len(matching(query, news(), samples())) > 0


# -- Near misses ------------------------------------------------------------------------------


def test_near_misses_fail_by_one_condition_only() -> None:
    seen = 0
    for text in texts().values():
        trial = tried(text)
        whole = set(matching(text, news(), samples()))
        rests = parts(text)
        for miss in trial.relaxed_matches:
            seen += 1
            one = [s for s in samples() if s.id == miss.id]
            assert miss.id not in whole
            assert matching(rests[miss.condition], news(), one) == [miss.id]
            assert miss.failure
    assert seen > 40


@settings(max_examples=25)
@given(scenarios(Profile(blank_nodes=False), publications=1))
def test_a_condition_is_one_pattern_or_filter(scenario: Scenario) -> None:
    for query in map(to_sparql, scenario.queries):
        (branch,) = PARSER.parse("q", query).branches
        whole = Counter(map(str, branch.patterns)) + Counter(f.write({}) for f in branch.filters)
        found = parts(query)
        assert found
        for condition, without in found.items():
            try:
                less = PARSER.parse("q", without)
            except SubscriptionError:
                continue  # It was the only condition.
            if not less.branches:
                continue
            (other,) = less.branches
            rest = Counter(map(str, other.patterns)) + Counter(f.write({}) for f in other.filters)
            unbound = [f for f in branch.filters if f.variable not in other.variables]
            assert rest <= whole
            is_twice = len(found) > whole.total() or query.count(condition) > 1
            assert (whole - rest).total() in range(1 - is_twice, 2 + len(unbound))


@pytest.mark.parametrize(
    ("group", "texts", "last"),
    [
        ("?x a ex:C . # no . here\n ?x ex:p 1.5, '}.' .", 3, '?x ex:p "}."'),
        ("?x ex:p/^ex:q* ?y ; !(ex:r|ex:s) ?z", 3, "?x !(ex:r | ex:s) ?z"),
        ("?x ex:p [ ex:q ?y ; ex:r 2 ]", 3, None),
        ("?x ex:p ?y FILTER(?y > 1 || ?y < 0 && true)", 2, None),
        ("?x ex:p ?y FILTER(?y > 1 && (?y < 0 || true) && ?y)", 4, "FILTER(?y)"),
        ("?x ex:p ?y FILTER regex(?y, 'a && b') ?y ex:q ?z", 3, 'FILTER(REGEX(?y, "a && b"))'),
        ("{ ?x ex:p ?y } UNION { ?x ex:q ?y } UNION { ?x ex:r ?y } ?x ex:s 2", 2, "?x ex:s 2"),
        (
            "VALUES (?x ?y) { (ex:a 1) } ?x ex:p ?y MINUS { ?x ex:q ?y }",
            3,
            "MINUS { ?x ex:q ?y . }",
        ),
        ("?x ex:p ?y OPTIONAL { ?x ex:q ?z } BIND(?y AS ?w) FILTER(?y<3)", 2, "FILTER(?y < 3)"),
        ("GRAPH ?g { ?x ex:p ?y } ?x ex:p 'a'@en-GB, 'b'^^xsd:string", 3, '?x ex:p "b"'),
        ("?x ex:p ?y FILTER NOT EXISTS { ?x ex:q ?y FILTER(?y > 1) }", 2, None),
        ("?x ex:p -1, +2 ; ex:q ex:a.b ; . FILTER(?x != 'a.b;c')", 4, 'FILTER(?x != "a.b;c")'),
        ("?x ex:p ?y . FILTER EXISTS { ?y a ex:C } . ?y ex:q '#', <http://e/#a>", 4, None),
        ("?x ex:p ?y { ?x ex:q ?y FILTER(?y = '{') }", 2, '{ ?x ex:q ?y . FILTER((?y = "{")) }'),
    ],
)
@pytest.mark.parametrize("form", ["SELECT * WHERE", "ASK", "CONSTRUCT { ?x ex:made ?y } WHERE"])
def test_a_query_without_a_condition_is_valid(
    form: str, group: str, texts: int, last: str | None
) -> None:
    query = f"PREFIX ex: <http://e/>\n{form} {{ {group} }} LIMIT 5"
    query = query.removesuffix(" LIMIT 5") if form == "ASK" else query
    found = conditions(PARSER.query("q", query), {"ex": "http://e/", **PREFIXES})
    assert len(found) == texts
    assert last is None or found[-1].text == last
    for condition in found:
        try:
            PARSER.query("q", condition.without)
        except SubscriptionError as error:
            assert "it matches an empty graph" in str(error)  # noqa: PT017 - not always


def test_the_other_values_of_a_property_stay() -> None:
    found = parts("ASK { ?x <urn:p> <urn:1>, <urn:2> ; <urn:q> <urn:4> }")
    assert {condition: " ".join(rest.split()) for condition, rest in found.items()} == {
        "?x <urn:p> <urn:1>": "ASK WHERE { ?x <urn:p> <urn:2> . ?x <urn:q> <urn:4> . }",
        "?x <urn:p> <urn:2>": "ASK WHERE { ?x <urn:p> <urn:1> . ?x <urn:q> <urn:4> . }",
        "?x <urn:q> <urn:4>": "ASK WHERE { ?x <urn:p> <urn:1> . ?x <urn:p> <urn:2> . }",
    }


def test_the_other_operands_of_a_filter_stay() -> None:
    found = parts("ASK { ?x <urn:p> ?y FILTER(?y > ?a && BOUND(?y) && ?y < ?b) }")
    assert [" ".join(rest.split()) for rest in list(found.values())[1:]] == [
        "ASK WHERE { ?x <urn:p> ?y . FILTER(( BOUND(?y) && (?y < ?b))) }",
        "ASK WHERE { ?x <urn:p> ?y . FILTER(((?y > ?a) && (?y < ?b))) }",
        "ASK WHERE { ?x <urn:p> ?y . FILTER(((?y > ?a) && BOUND(?y) )) }",
    ]


def test_a_subquery_is_one_condition() -> None:
    query = "SELECT * { ?x <urn:q> ?y { SELECT ?x { ?x <urn:p> <urn:C>, <urn:D> } } }"
    assert list(parts(query)) == [
        "?x <urn:q> ?y",
        "{ SELECT ?x WHERE { ?x <urn:p> <urn:C> . ?x <urn:p> <urn:D> . } }",
    ]


# -- Ontology updates -------------------------------------------------------------------------


def both(
    queries: dict[str, str], old: Ontology, new: Ontology, stored: Sequence[StoredPublication]
) -> dict[str, tuple[set[str], set[str]]]:
    """Return each query's gains and losses, with one engine per query and ontology."""
    found = {}
    for id, query in queries.items():
        before, after = (set(matching(query, o, stored)) for o in (old, new))
        if before != after:
            found[id] = after - before, before - after
    return found


def names(ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return rows with the names of subscriptions, which are their ids."""
    return {id: {"id": id, "name": id} for id in ids}


def changes(
    subscriptions: Sequence[ChangedSubscription],
) -> dict[str, tuple[set[str], set[str]]]:
    """Return the gains and losses in the result of a what-if question."""
    return {
        item.subscription: (
            {ref.id for ref in item.newest_gained},
            {r.id for r in item.newest_lost},
        )
        for item in subscriptions
    }


@settings(max_examples=10)
@given(scenarios(Profile(everything=True)), st.data())
def test_what_if_equals_matching_with_both_ontologies(
    scenario: Scenario, data: st.DataObject
) -> None:
    taken = data.draw(st.integers(0, len(scenario.ontology)))
    pairs = pairs_of(scenario.synonyms)
    full = Ontology(scenario.ontology, pairs, on_problem=lambda _: None)
    less = Ontology(scenario.ontology[:taken], on_problem=lambda _: None)
    stored = stored_of(scenario.publications)
    queries = {str(n): to_sparql(query) for n, query in enumerate(scenario.queries)}
    for old, new in ((full, less), (less, full)):
        engine = Engine(old, on_problem=lambda _: None)
        for id, query in queries.items():
            engine.subscribe(id, query)
        difference = what_if(engine, new, stored, names, limit_seconds=MINUTE)
        expected = both(queries, old, new, stored)
        assert difference.complete
        assert difference.changed == len(expected)
        assert changes(difference.subscriptions) == expected
        assert engine.ontology is old
        assert len(engine) == len(queries)


def test_what_if_finds_the_effect_of_a_link(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what_if_module, "NEWEST", 100)
    links = [t for t in news().stated if t[1] == BROADER and str(t[0]) == f"<{NEWS}ClimateChange>"]
    assert links
    queries = texts()
    engine = Engine(news())
    for id, text in queries.items():
        engine.subscribe(id, text)
    new = news().update(removed=links)
    difference = what_if(engine, new, samples(), names, limit_seconds=MINUTE)
    found = changes(difference.subscriptions)
    assert found == both(queries, news(), new, samples())
    assert "feeds-environment" in found
    assert difference.scanned == len(samples())
    assert difference.matches_before > difference.matches_after > 0


def test_what_if_has_a_time_limit() -> None:
    seconds = iter(range(1_000))
    engine = Engine(news())
    engine.subscribe("q", "ASK { ?x a rss:item }")
    difference = what_if(
        engine, Ontology(), samples(), names, limit_seconds=20, timer=lambda: float(next(seconds))
    )
    assert 0 < difference.scanned < 20
    assert not difference.complete
    assert difference.matches_before == difference.matches_after == difference.scanned


# -- Explanations -----------------------------------------------------------------------------


def test_reasons_agree_with_matching() -> None:
    kept = backtester()
    matched = 0
    for id, text in list(texts().items())[::3]:
        expected = matching(text, news(), samples()[:12])
        for one in samples()[:12]:
            found = reasons(kept, id, text, one)
            assert json.loads(found.model_dump_json())["subscription"] == id
            assert found.publication == one.id
            assert found.matches is (one.id in expected)
            assert bool(found.failure) is not found.matches
            matched += one.id in expected
    assert matched > 3


def test_reasons_name_held_and_failed_conditions() -> None:
    item = NamedNode("http://e/1")
    triples: list[Triple] = [
        (item, TYPE, RSS["item"]),
        (item, RSS["title"], Literal("Soup <b>")),
        (item, DCTERMS["subject"], NamedNode(f"{NEWS}ClimateChange")),
    ]
    stored = StoredPublication(item.value, lines(triples), NOW)
    query = f"ASK {{ ?i dcterms:subject <{NEWS}Climate> ; rss:title ?t FILTER(?t = 'Stew') }}"
    found = reasons(backtester(), "alice", query, stored)
    assert [each["triple"] for each in found.held] == [
        f"{item} {DCTERMS['subject']} <{NEWS}Climate>",
        f'{item} {RSS["title"]} "Soup <b>"',
    ]
    assert "Stew" in str(found.failure)
    shown = readable(found, news().prefixes)
    assert [each["triple"] for each in shown.held] == [
        "the item dcterms:subject news:Climate",
        'the item rss:title "Soup <b>"',
    ]
    assert shown.held[0]["pattern"] == "?i dcterms:subject news:Climate"


def test_a_query_that_the_ontology_refuses_matches_nothing() -> None:
    query = 'ASK { ?x <urn:p> ?y FILTER(gm:compare(?y, "<", "5 nosuchunit"^^cdt:ucum)) }'
    found = reasons(backtester(), "alice", query, samples()[0])
    assert not found.matches
    assert str(found.failure).endswith("matches nothing with the current ontology")


# -- Query by example -------------------------------------------------------------------------


def climate() -> StoredPublication:
    query = f"ASK {{ ?x dcterms:subject <{NEWS}Climate> }}"
    ids = matching(query, news(), samples())
    return next(s for s in samples() if s.id == ids[0])


def all_facts() -> Iterator[tuple[StoredPublication, Fact]]:
    engine = Engine(news())
    for one in samples():
        for fact in facts(engine, one.read()):
            yield one, fact


@pytest.mark.parametrize(
    "objects",
    [
        ",".join(["[]"] * 20_000),
        ",".join(f"<urn:{n}>" for n in range(20_000)),
        "[ <urn:p> " * 200 + "1" + " ]" * 200,
    ],
    ids=["blank nodes", "values", "depth"],
)
def test_facts_of_large_and_deep_items_are_bounded(
    objects: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (publication,) = read_publications(f"<urn:a> <urn:p> {objects} .".encode(), format="ttl")
    ancestors, asked = Taxonomy.ancestors, Counter[str]()

    def counted(self: Taxonomy, term: Term) -> Any:
        asked["ancestors"] += 1
        return ancestors(self, term)

    monkeypatch.setattr(Taxonomy, "ancestors", counted)
    found = facts(Engine(), publication)
    assert len(found) <= 200
    assert all(len(fact.path) <= 50 for fact in found)
    assert asked.total() < 100_000


def test_an_item_has_each_of_its_facts() -> None:
    found = list(all_facts())
    assert {fact.sort for _, fact in found} >= {
        Sort.TYPE,
        Sort.CONCEPT,
        Sort.CATEGORY,
        Sort.PUBLISHER,
    }
    for one in samples()[::4]:
        own = [fact for other, fact in found if other is one]
        whole = query_of(own, news().prefixes)
        assert matching(whole, news(), [one]) == [one.id], whole


def test_facts_are_as_specific_as_the_data() -> None:
    shown = {f.pattern(prefixes=news().prefixes) for f in facts(Engine(news()), climate().read())}
    topics = [text for text in shown if "dcterms:subject" in text and "isPartOf" not in text]
    assert topics
    concepts = news().concepts
    values = [
        f.value for f in facts(Engine(news()), climate().read()) if f.path == (DCTERMS["subject"],)
    ]
    assert not any(a in concepts.ancestors(b) for a in values for b in values if a != b)


def test_volumes_equal_counting_one_by_one() -> None:
    engine, kept = Engine(news()), backtester()
    steps = [
        step
        for fact in facts(engine, climate().read())
        if fact.sort in (Sort.CONCEPT, Sort.CATEGORY, Sort.PUBLISHER)
        for step in generalisations(engine, fact)
    ][:14]
    whole = scan(samples())
    found = count_facts(kept, steps, whole)
    counted = [len(matching(query_of([s]), news(), samples())) for s in steps]
    assert [found[step.key] for step in steps] == counted
    assert (whole.scanned, whole.complete) == (len(samples()), True)
    assert min(counted) > 0


@settings(max_examples=20)
@given(scenarios(publications=2, queries=1), st.sampled_from(("rdfs", "none")))
def test_each_generalisation_matches_at_least_as_much(scenario: Scenario, entailment: str) -> None:
    ontology = Ontology(scenario.ontology, pairs_of(scenario.synonyms), on_problem=lambda _: None)
    engine = Engine(ontology, entailment=entailment, on_problem=lambda _: None)
    stored = stored_of(scenario.publications)
    for publication in scenario.publications:
        for fact in facts(engine, publication):
            steps = generalisations(engine, fact)
            found = count_facts(Backtester(engine), steps, scan(stored))
            counts = [found[step.key] for step in steps]
            assert all(counts[0] <= count for count in counts), (fact, steps, counts)
            assert counts[0] > 0 or fact.path[0] in (SUBCLASS, SUBPROPERTY), fact


def test_types_topics_and_properties_are_generalised() -> None:
    a, b, c = CLASSES[:3]
    p, q = PROPERTIES[:2]
    ontology = Ontology([(a, SUBCLASS, b), (b, SUBCLASS, c), (p, SUBPROPERTY, q)])
    engine = Engine(ontology)
    up = [s.pattern() for s in generalisations(engine, Fact((TYPE,), a, Sort.TYPE))]
    assert up == [f"?item a {x} ." for x in (a, b, c)]
    about = generalisations(engine, Fact((p,), a, Sort.CONCEPT))
    assert [(s.path, s.value, s.below) for s in about] == [
        ((p,), a, False),
        ((p,), b, True),
        ((p,), c, True),
        ((q,), a, False),
    ]


def test_derived_triples_are_not_facts() -> None:
    a, b = CLASSES[:2]
    p, q = PROPERTIES[:2]
    x, y = NamedNode("urn:x"), NamedNode("urn:y")
    engine = Engine(Ontology([(a, SUBCLASS, b), (p, SUBPROPERTY, q)]))
    found = facts(engine, Publication.of("urn:x", [(x, TYPE, a), (x, p, y)]))
    assert [fact.pattern() for fact in found] == [f"?item {p} {y} .", f"?item a {a} ."]


def test_a_generated_subscription_passes_the_check(tmp_path: Path) -> None:
    engine = Engine(news())
    chosen = [f for f in facts(engine, climate().read()) if f.sort is not Sort.VALUE]
    steps = [generalisations(engine, fact)[-1] for fact in chosen]
    for number, several in enumerate((chosen, steps, chosen[::-1])):
        path = tmp_path / f"made-{number}.rq"
        path.write_text(query_of(several, news().prefixes), encoding="utf-8")
        options = ["check", str(path), "-o", str(ROOT / "ontologies/news.ttl")]
        result = CliRunner().invoke(app, options)
        assert result.exit_code == 0, result.output
        assert "1 accepted, 0 refused, 0 warnings" in result.output
    assert query_of(chosen) == query_of(chosen[::-1])


@pytest.mark.parametrize(
    "value",
    [
        Literal('a "quoted"\nline \\'),
        Literal("Klima", language="de"),
        Literal("007", datatype=NamedNode(f"{XSD}integer")),
        Literal("+7", datatype=NamedNode(f"{XSD}integer")),
        Literal("none", datatype=NamedNode(f"{XSD}integer")),
        Literal("1.5", datatype=NamedNode("http://e/own")),
        NamedNode("https://schema.org/A_(b),c."),
        NamedNode("http://e/x?y=1#z"),
        NamedNode(f"{NEWS}Climate"),
    ],
)
def test_a_subscription_can_ask_for_any_value(value: NamedNode | Literal) -> None:
    item = NamedNode("http://e/1")
    stored = StoredPublication("p", lines([(item, DC["subject"], value)]), NOW)
    fact = Fact((DC["subject"],), value, Sort.CATEGORY)
    query = query_of([fact], news().prefixes)
    (branch,) = PARSER.parse("q", query).branches
    assert branch.patterns[0].object == value
    assert matching(query, Ontology(), [stored]) == ["p"]


# -- Health -----------------------------------------------------------------------------------


def found_by(kind: FindingKind, findings: Sequence[Finding]) -> list[tuple[str, ...]]:
    return [finding.subscriptions for finding in findings if finding.kind is kind]


def row_of(number: int, id: str, began: datetime, last: datetime | None = None) -> dict[str, Any]:
    """Return the row of a subscription in the store."""
    matched = None if last is None else millis(last)
    return {"number": number, "id": id, "created_at": millis(began), "last_matched_at": matched}


def test_health_names_each_kind_of_finding() -> None:
    engine = Engine(news())
    engine.subscribe("1", f"ASK {{ ?x dcterms:subject <{NEWS}Climate> }}")
    engine.subscribe("2", f"ASK {{ ?other dcterms:subject <{NEWS}Climate> }}")
    engine.subscribe("3", f"ASK {{ ?x dcterms:subject <{NEWS}Climat> }}")
    counted = "HAVING (COUNT(?i) > 3)"
    engine.subscribe("4", f"SELECT ?s {{ ?i a rss:item ; dc:subject ?s }} GROUP BY ?s {counted}")
    old, new = NOW - timedelta(days=40), NOW - timedelta(days=5)
    rows = [
        row_of(1, "good", old, new),
        row_of(2, "same", old, old - HOUR),
        row_of(3, "typo", old),
        row_of(4, "all", new),
        row_of(5, "gone", old),
    ]
    first = {"since": millis(NOW - 3 * HOUR), "attempts": 4, "status": 503, "error": None}
    last = {"since": millis(NOW - 2 * HOUR), "attempts": 3, "status": None, "error": "timed out"}
    sinks = [
        {"subscription": 4, "host": "a.example", **last},
        {"subscription": 1, "host": "a.example", **first},
        {"subscription": 99, "host": "b.example", **first},
        {"subscription": 3, "host": "c.example", **first},
    ]
    findings = [*sink_findings(sinks, rows), *subscription_findings(engine, rows, NOW)]
    assert found_by(FindingKind.SINK, findings) == [("good", "all"), ("typo",)]
    assert found_by(FindingKind.NEVER, findings) == [("typo",)]
    assert found_by(FindingKind.DUPLICATE, findings) == [("good", "same")]
    assert found_by(FindingKind.SILENT, findings) == [("same",), ("typo",)]
    assert found_by(FindingKind.DOUBTFUL, findings) == [("all",)]
    assert [finding.text for finding in findings[:2]] == [
        "a.example has accepted nothing since 2026-06-01 09:00 UTC, 7 attempts: timed out",
        "c.example has accepted nothing since 2026-06-01 09:00 UTC, 4 attempts: status 503",
    ]


def test_only_some_warnings_mean_that_a_query_never_matches() -> None:
    """A new code of the linter needs a decision in `subscription_health`."""
    assert set(CODES) == {
        *("unknown-term", "unbound-variable", "never-comparable", "no-arithmetic"),
        *("invalid-literal", "invalid-regex", "two-graphs"),
        *("aggregate-of-one-item", "number-without-unit", "duplicate", "not-examined"),
    }


def test_health_has_a_time_limit() -> None:
    engine = Engine()
    for number in range(9):
        engine.subscribe(str(number), "ASK { ?x a <urn:C> }")
    rows, ticks = [row_of(number, str(number), NOW) for number in range(9)], count()
    timer = lambda: next(ticks) * LIMIT_SECONDS / 4  # noqa: E731
    findings = list(subscription_findings(engine, rows, NOW, timer))
    assert len(found_by(FindingKind.DUPLICATE, findings)) == 2
    (last,) = [f for f in findings if f.kind is FindingKind.NOT_EXAMINED]
    assert last.text == "there was no time to examine 6 subscriptions"


def test_a_backtest_names_the_limits_that_ended_it() -> None:
    ticks = count()
    line = b"<urn:a> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:C> ."
    began = datetime(2026, 1, 1, tzinfo=UTC)
    several = [StoredPublication(f"urn:{n}", line, began) for n in range(20)]
    engine, query = Engine(), "ASK { ?s a <urn:C> }"
    trial = backtest(engine, query, several, 10, Backtester(engine, timer=lambda: next(ticks)))
    assert (trial.complete, trial.scanned) == (False, 9)
    assert trial.truncated == ["the time limit of 10 s", "reasons for which there was no time"]
    trial = backtest(engine, query, several, MINUTE)
    assert (trial.complete, trial.truncated) == (True, [])
    assert (trial.matched, [hit.because for hit in trial.newest]) == (20, [()] * 10)


@pytest.mark.parametrize("filter_", ["", "FILTER(?c = ?f && ?f = 'no')", "FILTER(?c + ?f > ?i)"])
def test_a_cross_product_of_a_large_publication_is_an_answer(filter_: str) -> None:
    """A query that exceeds a limit is counted, and never an error."""
    text = "".join(f'<urn:{n}> <urn:p{n % 50}> "{n}" .\n' for n in range(3_000)).encode()
    stored = [StoredPublication(f"urn:item:{n}", text, NOW) for n in range(3)]
    query = f"SELECT * {{ ?a ?b ?c . ?d ?e ?f . ?g ?h ?i {filter_} }}"
    trial = backtest(Engine(), query, stored, limit_seconds=1)
    assert trial.matched == (0 if filter_ else trial.scanned)
    assert trial.scanned > 0
    assert trial.complete or trial.truncated[0] == "the time limit of 1 s"


def test_reasons_that_exceed_a_limit_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise GraphMatchError(Problem("too many solutions", Place("p"), "Simplify the query."))

    monkeypatch.setattr(Engine, "explain", fail)
    item = NamedNode("http://e/1")
    stored = [
        StoredPublication(p, lines([(item, TYPE, NamedNode(p))]), NOW) for p in ("a:a", "a:b")
    ]
    trial = backtest(Engine(), "ASK { ?x ?p <a:a> . ?x a ?c }", stored, MINUTE)
    assert [(hit.id, hit.because) for hit in trial.newest] == [("a:a", ())]
    assert [(near.id, near.failure) for near in trial.relaxed_matches] == [("a:b", "")]
    assert trial.truncated == ["reasons that exceed the limits of a query"]


def test_a_publication_near_by_two_conditions_stands_under_the_rarer_one() -> None:
    texts = {
        "p-only": b'<a:a> <a:p> "1" .',
        "also p-only": b'<a:a> <a:p> "1" .',
        "both": b'<a:a> <a:p> "1" . <a:a> <a:q> "2" .',
    }
    stored = [
        StoredPublication(id, text.replace(b" . ", b" .\n"), NOW) for id, text in texts.items()
    ]
    query = "ASK { ?x <a:p> ?v . ?x <a:q> ?v }"
    trial = backtest(Engine(), query, stored, MINUTE)
    assert [(c.condition, c.count) for c in trial.relaxations] == [
        ("?x <a:p> ?v", 1),
        ("?x <a:q> ?v", 3),
    ]
    assert [(near.id, near.condition) for near in trial.relaxed_matches] == [
        ("both", "?x <a:p> ?v"),
        ("p-only", "?x <a:q> ?v"),
        ("also p-only", "?x <a:q> ?v"),
    ]
