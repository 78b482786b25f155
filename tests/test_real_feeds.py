"""Feeds as published by their sites, and an ontology as published by its editors."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from graphmatch import Engine, read_subscriptions
from graphmatch.published.naive import Naive
from semantic import Ontology, Problem, Publication, read_publications
from semantic.annotation.annotate import Annotator
from semantic.errors import Severity
from tests.real_data import DATA

FEEDS = sorted((DATA / "feeds").glob("*.*"))
SUBSCRIPTIONS = Path(__file__).parent / "dbpedia"

pytestmark = pytest.mark.data


@cache
def everything() -> tuple[tuple[Publication, ...], tuple[Problem, ...]]:
    problems: list[Problem] = []
    publications = tuple(read_publications(*FEEDS, on_problem=problems.append))
    return publications, tuple(problems)


@cache
def engine() -> Engine:
    told: list[Problem] = []
    made = Engine(Ontology.load(DATA / "ontologies" / "dbpedia.owl", on_problem=told.append))
    assert not told
    for subscription in read_subscriptions(SUBSCRIPTIONS):
        made.subscribe(subscription)
    return made


def test_that_no_feed_is_lost_silently() -> None:
    publications, problems = everything()
    assert len(FEEDS) == 70
    spoken_of = {p.source.source for p in publications} | {p.where.source for p in problems}
    assert spoken_of == {str(feed) for feed in FEEDS}
    assert all(problem.where.source and problem.what and problem.remedy for problem in problems)


def test_that_every_feed_gives_items() -> None:
    publications, problems = everything()
    items = Counter(publication.source.source for publication in publications)
    assert set(items) == {str(feed) for feed in FEEDS}
    assert sum(items.values()) == 1437
    assert [p for p in problems if p.severity is Severity.REFUSED] == []


def test_that_ids_are_distinct_within_a_feed() -> None:
    publications, _ = everything()
    found = Counter((p.source.source, p.id) for p in publications)
    assert [key for key, count in found.items() if count > 1] == []


def test_that_every_subscription_is_taken_in() -> None:
    assert len(engine()) == len(list(SUBSCRIPTIONS.glob("*.rq"))) >= 20


@pytest.mark.parametrize(
    ("subscription", "title"),
    [
        ("politics", "First German politician enters Gaza since October 7 attack"),
        ("animals", "2026 Year of the Horse: Humans and horses go way back"),
        ("transport", "Germany braces for more strikes in 2026"),
        ("volcano", "The hidden money behind deep-sea mining"),
        ("two-events", "Winter Olympics begin quietly with curling"),
        ("disease-or-drug", "How the Epstein-Barr virus triggers MS in some people"),
        ("trump", "Canada Is Becoming a Fentanyl Exporter, and a Target for Trump"),
    ],
)
def test_that_an_item_is_found_by_its_meaning(subscription: str, title: str) -> None:
    publications, _ = everything()
    (item,) = {p.id: p for p in publications if any(_is(o, title) for *_, o in p.triples)}.values()
    assert subscription in {match.subscription for match in engine().match(item)}


def _is(term: object, text: str) -> bool:
    return " ".join(str(getattr(term, "value", "")).split()) == text


def test_that_the_engine_agrees_with_the_naive_matcher() -> None:
    """Compare complete answers on every third item."""
    ontology = engine().ontology
    naive = Naive(ontology, annotator=Annotator(ontology.labels()))
    for subscription in engine().subscriptions:
        naive.subscribe(subscription)
    matched = 0
    for publication in everything()[0][::3]:
        found, expected = engine().match(publication), naive.match(publication)
        assert _answers(found.matches) == _answers(expected.matches), publication.id
        assert found.counters.evaluated < len(engine())
        matched += len(found)
    assert matched > 300


def _answers(matches: tuple[object, ...]) -> dict[str, object]:
    return {
        m.subscription: (Counter(frozenset(s.items()) for s in m.solutions), _set(m.graph))
        for m in matches
    }


def _set(graph: object) -> object:
    return None if graph is None else frozenset(graph)
