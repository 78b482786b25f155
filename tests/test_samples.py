"""The samples in `ontologies/` and `data/`: each subscription matches as its comment says.

The tables do not come from the engine. They were derived by hand from docs/reference/semantics.md
and state the matches that a reader of the samples should expect.
"""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
ONTOLOGIES = (
    "ontologies/news.ttl",
    "ontologies/academic.ttl",
    "ontologies/products.ttl",
    "ontologies/measures.ttl",
    "ontologies/jobs.ttl",
    "ontologies/synonyms.csv",
    "ontologies/experience.rq",
    "ontologies/full-name.rq",
    "ontologies/price-class.rq",
)
SUBSCRIPTIONS = ROOT / "data/subscriptions"
SOURCES = ("data/feeds", "data/publications")

PUBLICATIONS: set[str] = {
    "data/publications/paper17.ttl",
    "data/publications/people.ttl",
    "https://graphmatch.example/candidates/toronto",
    "https://graphmatch.example/candidates/nairobi",
    "https://graphmatch.example/candidates/lisbon",
    "https://graphmatch.example/candidates/later",
    "https://graphmatch.example/machines/quantity",
    "https://graphmatch.example/machines/tera",
    "https://graphmatch.example/machines/node",
    "https://graphmatch.example/machines/plain",
    "https://graphmatch.example/machines/small",
    "https://graphmatch.example/offers/john",
    "https://graphmatch.example/offers/laptop-350",
    "https://graphmatch.example/offers/notebook-380",
    "https://graphmatch.example/offers/ultrabook-1400",
    "https://graphmatch.example/offers/laptop-euro",
    "https://graphmatch.example/offers/phone-90",
    "https://graphmatch.example/offers/taishiji",
    "https://graphmatch.example/offers/wanted-computer",
    "https://graphmatch.example/sensors/morning",
    "https://graphmatch.example/sensors/noon",
    "https://graphmatch.example/sensors/afternoon",
    "https://graphmatch.example/sensors/network",
    "https://graphmatch.example/sensors/network-repaired",
    "https://graphmatch.example/sensors/calibration",
    "https://graphmatch.example/sensors/installation",
    "https://graphmatch.example/sensors/new-device",
    "https://daily.example/2025/11/sea-walls",
    "https://daily.example/2025/11/valmora-solar",
    "https://daily.example/2025/11/rates",
    "https://daily.example/2025/11/northmark-live",
    "https://daily.example/2025/11/carbon-tax",
    "https://daily.example/2025/11/half-marathon",
    "https://daily.example/2025/11/chip-plant",
    "https://daily.example/2025/11/soups",
    "https://notebook.example/almen",
    "https://notebook.example/raumsonde",
    "https://notebook.example/electricite-verte",
    "https://notebook.example/malaria-vaccine",
    "https://notebook.example/iron-world",
    "https://notebook.example/brieftauben",
    "https://podcast.example/41-missed",
    "https://podcast.example/42-bearing",
    "https://podcast.example/43-vina",
    "https://podcast.example/44-rooftop",
    "https://podcast.example/45-velodrome",
    "https://podcast.example/trailer",
    "https://library.example/new/counting",
    "https://library.example/new/moving-taxonomies",
    "https://library.example/new/warm-houses",
    "https://library.example/new/call-graphs",
    "https://library.example/new/call-notes",
    "https://library.example/new/reading-room",
}
"""All publications: the IRI of a named graph, the link of a feed item, or a file name."""

EXPECTED: dict[str, set[str]] = {
    "bulk-cheap": {"https://graphmatch.example/offers/phone-90"},
    "bulk-cool": {"https://graphmatch.example/sensors/morning"},
    "bulk-economy": {"https://daily.example/2025/11/rates"},
    "bulk-gateway": {
        "https://graphmatch.example/sensors/network",
        "https://graphmatch.example/sensors/network-repaired",
    },
    "bulk-health": {"https://notebook.example/malaria-vaccine"},
    "bulk-noor-haddad": {
        "https://podcast.example/41-missed",
        "https://podcast.example/42-bearing",
        "https://podcast.example/44-rooftop",
        "https://podcast.example/45-velodrome",
        "https://podcast.example/trailer",
    },
    "bulk-sport": {
        "https://daily.example/2025/11/half-marathon",
        "https://podcast.example/45-velodrome",
    },
    "bulk-ultrabooks": {"https://graphmatch.example/offers/ultrabook-1400"},
    "ctps-figure-3": {
        "https://graphmatch.example/offers/laptop-350",
        "https://graphmatch.example/offers/notebook-380",
    },
    "feeds-any-property": {"https://podcast.example/42-bearing"},
    "feeds-audio": {
        "https://podcast.example/41-missed",
        "https://podcast.example/42-bearing",
        "https://podcast.example/43-vina",
    },
    "feeds-climate-french-name": {
        "https://daily.example/2025/11/carbon-tax",
        "https://daily.example/2025/11/sea-walls",
        "https://library.example/new/warm-houses",
        "https://notebook.example/almen",
        "https://podcast.example/43-vina",
        "https://podcast.example/44-rooftop",
    },
    "feeds-climate-german": {"https://notebook.example/almen"},
    "feeds-elections-to-read": {
        "https://daily.example/2025/11/carbon-tax",
        "https://daily.example/2025/11/northmark-live",
    },
    "feeds-elections-with-audio": {
        "https://daily.example/2025/11/carbon-tax",
        "https://daily.example/2025/11/northmark-live",
        "https://podcast.example/41-missed",
    },
    "feeds-energy-path": {
        "https://daily.example/2025/11/valmora-solar",
        "https://notebook.example/electricite-verte",
    },
    "feeds-environment": {
        "https://daily.example/2025/11/carbon-tax",
        "https://daily.example/2025/11/sea-walls",
        "https://daily.example/2025/11/valmora-solar",
        "https://library.example/new/warm-houses",
        "https://notebook.example/almen",
        "https://notebook.example/electricite-verte",
        "https://podcast.example/43-vina",
        "https://podcast.example/44-rooftop",
    },
    "feeds-environment-not-politics": {
        "https://daily.example/2025/11/valmora-solar",
        "https://library.example/new/warm-houses",
        "https://notebook.example/almen",
        "https://notebook.example/electricite-verte",
        "https://podcast.example/43-vina",
        "https://podcast.example/44-rooftop",
    },
    "feeds-inflation-alarm": {"https://daily.example/2025/11/rates"},
    "feeds-keyword": {
        "https://daily.example/2025/11/chip-plant",
        "https://daily.example/2025/11/sea-walls",
    },
    "feeds-live": {"https://daily.example/2025/11/northmark-live"},
    "feeds-machines-or-stars": {
        "https://daily.example/2025/11/chip-plant",
        "https://notebook.example/iron-world",
        "https://notebook.example/raumsonde",
        "https://podcast.example/42-bearing",
    },
    "feeds-many-categories": {"https://podcast.example/41-missed"},
    "feeds-numbers-in-title": {"https://daily.example/2025/11/soups"},
    "feeds-reading-list": {
        "https://notebook.example/iron-world",
        "https://notebook.example/raumsonde",
    },
    "feeds-recent-technology": {
        "https://daily.example/2025/11/chip-plant",
        "https://notebook.example/raumsonde",
        "https://podcast.example/42-bearing",
    },
    "feeds-same-two-authors": {
        "https://library.example/new/moving-taxonomies",
        "https://podcast.example/42-bearing",
    },
    "feeds-space-described": {
        "https://notebook.example/iron-world",
        "https://notebook.example/raumsonde",
    },
    "feeds-sport-or-health": {
        "https://daily.example/2025/11/half-marathon",
        "https://notebook.example/malaria-vaccine",
        "https://podcast.example/45-velodrome",
    },
    "feeds-summits": {"https://daily.example/2025/11/sea-walls"},
    "feeds-two-authors": {
        "https://daily.example/2025/11/rates",
        "https://daily.example/2025/11/sea-walls",
        "https://notebook.example/iron-world",
        "https://notebook.example/raumsonde",
    },
    "feeds-united-states": {
        "https://daily.example/2025/11/chip-plant",
        "https://daily.example/2025/11/rates",
        "https://notebook.example/electricite-verte",
        "https://podcast.example/41-missed",
    },
    "feeds-weekend": {
        "https://daily.example/2025/11/half-marathon",
        "https://daily.example/2025/11/northmark-live",
        "https://daily.example/2025/11/soups",
        "https://notebook.example/almen",
        "https://podcast.example/45-velodrome",
    },
    "gtopss-figure-5a": {"data/publications/paper17.ttl"},
    "gtopss-figure-5b": {"data/publications/paper17.ttl"},
    "jobs-experienced": {
        "https://graphmatch.example/candidates/nairobi",
        "https://graphmatch.example/candidates/toronto",
    },
    "jobs-okafor": {"https://graphmatch.example/candidates/toronto"},
    "papers-climate-reports": {"https://library.example/new/warm-houses"},
    "papers-constants": {"data/publications/paper17.ttl"},
    "papers-jacobsens-own": {"data/publications/paper17.ttl"},
    "papers-nairobi": {"https://library.example/new/counting"},
    "papers-one-variable": {"data/publications/paper17.ttl"},
    "papers-proceedings": {"https://library.example/new/counting"},
    "papers-titles": {
        "data/publications/paper17.ttl",
        "https://library.example/new/counting",
        "https://library.example/new/moving-taxonomies",
        "https://library.example/new/warm-houses",
    },
    "papers-where-to-submit": {"https://library.example/new/call-graphs"},
    "people-alias": {"data/publications/people.ttl"},
    "people-friends-of-friends": {"data/publications/people.ttl"},
    "people-interests": {"data/publications/people.ttl"},
    "people-within-reach": {"data/publications/people.ttl"},
    "sensors-as-expected": {"https://graphmatch.example/sensors/calibration"},
    "sensors-back-and-forth": {"https://graphmatch.example/sensors/network"},
    "sensors-control-loop": {"https://graphmatch.example/sensors/installation"},
    "sensors-heat": {
        "https://graphmatch.example/sensors/afternoon",
        "https://graphmatch.example/sensors/noon",
    },
    "sensors-jump": {
        "https://graphmatch.example/sensors/afternoon",
        "https://graphmatch.example/sensors/noon",
    },
    "sensors-mean": {"https://graphmatch.example/sensors/noon"},
    "sensors-new-kinds": {"https://graphmatch.example/sensors/new-device"},
    "sensors-self-loop": {"https://graphmatch.example/sensors/network"},
    "shop-complete-offers": {
        "https://graphmatch.example/offers/john",
        "https://graphmatch.example/offers/notebook-380",
        "https://graphmatch.example/offers/ultrabook-1400",
    },
    "shop-contact": {
        "https://graphmatch.example/offers/john",
        "https://graphmatch.example/offers/notebook-380",
        "https://graphmatch.example/offers/ultrabook-1400",
        "https://graphmatch.example/offers/wanted-computer",
    },
    "shop-desktop-category": {"https://graphmatch.example/offers/taishiji"},
    "shop-ibm": {"https://graphmatch.example/offers/notebook-380"},
    "shop-forty-gigabytes": {
        "https://graphmatch.example/machines/quantity",
        "https://graphmatch.example/machines/tera",
        "https://graphmatch.example/machines/node",
        "https://graphmatch.example/machines/plain",
    },
    "shop-ibm-disk": {"https://graphmatch.example/offers/john"},
    "shop-in-euros": {
        "https://graphmatch.example/offers/laptop-350",
        "https://graphmatch.example/offers/phone-90",
    },
    "shop-laptops": {
        "https://graphmatch.example/offers/laptop-350",
        "https://graphmatch.example/offers/laptop-euro",
        "https://graphmatch.example/offers/notebook-380",
        "https://graphmatch.example/offers/ultrabook-1400",
    },
    "shop-light": {
        "https://graphmatch.example/machines/quantity",
        "https://graphmatch.example/machines/plain",
    },
    "shop-luxury": {"https://graphmatch.example/offers/ultrabook-1400"},
    "shop-offers": {
        "https://graphmatch.example/offers/john",
        "https://graphmatch.example/offers/laptop-350",
        "https://graphmatch.example/offers/laptop-euro",
        "https://graphmatch.example/offers/notebook-380",
        "https://graphmatch.example/offers/phone-90",
        "https://graphmatch.example/offers/ultrabook-1400",
    },
    "shop-sellers": {
        "https://graphmatch.example/offers/john",
        "https://graphmatch.example/offers/notebook-380",
        "https://graphmatch.example/offers/ultrabook-1400",
    },
    "shop-wanted": {"https://graphmatch.example/offers/wanted-computer"},
    "shop-which-publication": {"https://graphmatch.example/offers/laptop-euro"},
    "stopss-example": {"https://graphmatch.example/candidates/toronto"},
}
"""For each subscription, the only publications that it matches."""

EVENTS = tuple(
    f"https://graphmatch.example/events/{name}"
    for name in ("john", "laptop", "taishiji", "phone", "candidate", "graduate", "stock")
)
JOHN, LAPTOP, TAISHIJI, PHONE, CANDIDATE, _, STOCK = EVENTS
ATTRIBUTES: dict[str, set[str]] = {
    "ctps-section-3": {
        LAPTOP,
        TAISHIJI,
        "https://graphmatch.example/offers/laptop-350",
        "https://graphmatch.example/offers/notebook-380",
    },
    "stopss-attributes": {CANDIDATE, "https://graphmatch.example/candidates/toronto"},
    "gryphon-stock": {STOCK},
    "attributes-contact": {
        JOHN,
        LAPTOP,
        "https://graphmatch.example/offers/john",
        "https://graphmatch.example/offers/notebook-380",
        "https://graphmatch.example/offers/ultrabook-1400",
    },
    "attributes-large-disk": {TAISHIJI},
    "attributes-fine": {PHONE},
    "attributes-recent-brand": {LAPTOP},
}
"""For each attribute subscription, the only events and graphs that it matches."""

NO_NEWS: set[str] = {
    "https://notebook.example/brieftauben",
    "https://library.example/new/call-notes",
    "https://library.example/new/reading-room",
    "https://graphmatch.example/candidates/lisbon",
    "https://graphmatch.example/candidates/later",
    "https://graphmatch.example/machines/small",
}
"""Publications that no subscription matches."""

AC = "https://graphmatch.example/academic#"
OFFERS = "https://graphmatch.example/offers/"
NEWS = "https://graphmatch.example/news#"
SENSORS = "https://graphmatch.example/sensors#"
PAPER_17 = "data/publications/paper17.ttl"

SampleMatches = dict[str, dict[str, Any]]
"""Matches by subscription and publication."""


def subscriptions() -> dict[str, str]:
    """Return the sample subscriptions, id to SPARQL."""
    texts = {
        path.stem: path.read_text(encoding="utf-8") for path in sorted(SUBSCRIPTIONS.glob("*.rq"))
    }
    for line in (ROOT / "data/subscriptions.jsonl").read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        assert entry.keys() == {"id", "query", "comment"}
        assert entry["id"] not in texts
        texts[entry["id"]] = entry["query"]
    return texts


def solutions(match: Any) -> list[dict[str, str]]:
    """Return a match's solutions as names and strings."""
    return [
        {str(variable).lstrip("?"): term.value for variable, term in solution.items()}
        for solution in match.solutions
    ]


@pytest.fixture(scope="module")
def sample_matches() -> SampleMatches:
    """Match all sample publications with all sample subscriptions."""
    from graphmatch import Engine
    from semantic import Ontology, read_publications

    found: SampleMatches = {name: {} for name in subscriptions()}
    read: list[str] = []
    with chdir(ROOT):
        engine = Engine(Ontology.load(*ONTOLOGIES))
        for name, text in subscriptions().items():
            engine.subscribe(name, text)
        for source in SOURCES:
            for publication in read_publications(source):
                read.append(publication.id)
                for match in engine.match(publication):
                    found[match.subscription][publication.id] = match
    assert sorted(read) == sorted(PUBLICATIONS)
    return found


# --- The tables ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_matches_what_it_should_and_nothing_else(name: str, sample_matches: SampleMatches) -> None:
    assert set(sample_matches[name]) == EXPECTED[name]


def test_tables_are_complete() -> None:
    assert set(EXPECTED) == set(subscriptions())
    assert set().union(*EXPECTED.values()) == PUBLICATIONS - NO_NEWS


@pytest.mark.parametrize("name", sorted(path.name for path in SUBSCRIPTIONS.iterdir()))
def test_sample_starts_with_its_purpose(name: str) -> None:
    assert name.endswith(".rq")
    lines = (SUBSCRIPTIONS / name).read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("# ")
    assert lines[1].startswith("# ")
    assert all(len(line) <= 100 for line in lines)


# --- Examples from the papers ----------------------------------------------------------------


def test_gtopss_figure_5a(sample_matches: SampleMatches) -> None:
    (solution,) = solutions(sample_matches["gtopss-figure-5a"][PAPER_17])
    assert solution == {"z": "2001"}


def test_gtopss_figure_5b(sample_matches: SampleMatches) -> None:
    (solution,) = solutions(sample_matches["gtopss-figure-5b"][PAPER_17])
    assert solution == {"y": f"{AC}ArnosPaper17", "x": "2001"}


def test_ctps_figure_3_finds_the_laptop_for_350_dollars(sample_matches: SampleMatches) -> None:
    (solution,) = solutions(sample_matches["ctps-figure-3"][f"{OFFERS}laptop-350"])
    assert solution == {"offer": f"{OFFERS}laptop-350#offer", "amount": "350"}


@pytest.mark.parametrize(
    "offer",
    [
        pytest.param("john", id="450 dollars"),
        pytest.param("ultrabook-1400", id="1400 dollars"),
        pytest.param("laptop-euro", id="300 euros"),
        pytest.param("phone-90", id="no computer"),
        pytest.param("taishiji", id="no price"),
    ],
)
def test_ctps_figure_3_leaves_out(offer: str, sample_matches: SampleMatches) -> None:
    assert f"{OFFERS}{offer}" not in sample_matches["ctps-figure-3"]


def test_stopss_example_needs_the_mapping_function(sample_matches: SampleMatches) -> None:
    """The CV gives school and graduation year; the subscription uses neither word."""
    candidate = "https://graphmatch.example/candidates/toronto"
    (solution,) = solutions(sample_matches["stopss-example"][candidate])
    assert solution == {"person": f"{candidate}#me"}


def test_units_are_those_of_the_attribute(sample_matches: SampleMatches) -> None:
    """All notations of forty gigabytes match; a weight is in pounds, as the query names."""
    machine = "https://graphmatch.example/machines/"
    for name in ("quantity", "tera", "node", "plain"):
        (solution,) = solutions(sample_matches["shop-forty-gigabytes"][machine + name])
        assert solution == {"computer": f"{machine}{name}-pc", "size": "40"}
    (solution,) = solutions(sample_matches["shop-light"][machine + "quantity"])
    assert solution == {"laptop": f"{machine}quantity-pc", "weight": "4"}


# --- Surprising bindings ----------------------------------------------------------------------


def test_german_item_on_climate_is_about_the_environment(sample_matches: SampleMatches) -> None:
    item = "https://notebook.example/almen"
    (solution,) = solutions(sample_matches["feeds-environment"][item])
    assert solution == {"item": item, "title": "Der Klimawandel erreicht die Almen"}


def test_topic_is_named_in_french_by_the_ontology(sample_matches: SampleMatches) -> None:
    item = "https://notebook.example/almen"
    (solution,) = solutions(sample_matches["feeds-climate-french-name"][item])
    assert solution == {
        "item": item,
        "topic": f"{NEWS}ClimateChange",
        "name": "Changement climatique",
    }


def test_optional_part_binds_only_if_it_matches(sample_matches: SampleMatches) -> None:
    matches = sample_matches["feeds-elections-with-audio"]
    (heard,) = solutions(matches["https://podcast.example/41-missed"])
    assert heard["address"] == "https://podcast.example/audio/41.mp3"
    (read,) = solutions(matches["https://daily.example/2025/11/northmark-live"])
    assert "address" not in read


def test_repeated_variable_is_one_term_not_one_value(sample_matches: SampleMatches) -> None:
    (match,) = sample_matches["sensors-as-expected"].values()
    assert solutions(match) == [{"instrument": f"{SENSORS}barometer1", "reading": "1013.0"}]


def test_graph_is_named_after_the_publication(sample_matches: SampleMatches) -> None:
    (solution,) = solutions(sample_matches["shop-which-publication"][f"{OFFERS}laptop-euro"])
    assert solution == {
        "publication": f"{OFFERS}laptop-euro",
        "offer": f"{OFFERS}laptop-euro#offer",
    }


def test_name_is_made_of_its_parts(sample_matches: SampleMatches) -> None:
    candidate = "https://graphmatch.example/candidates/nairobi"
    (solution,) = solutions(sample_matches["jobs-experienced"][candidate])
    assert solution == {"person": f"{candidate}#me", "name": "Wanjiru Kamau"}


def test_mean_is_computed_over_one_publication(sample_matches: SampleMatches) -> None:
    (match,) = sample_matches["sensors-mean"].values()
    (solution,) = solutions(match)
    assert solution["sensor"] == f"{SENSORS}thermo1"
    assert float(solution["mean"]) == 35.5


# --- Attributes -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def attribute_matches() -> dict[str, set[str]]:
    """Match all sample events and graphs with all sample attribute subscriptions."""
    from graphmatch import Engine, read_subscriptions
    from semantic import Ontology, read_publications
    from semantic.attributes.events import read_events

    found: dict[str, set[str]] = {}
    with chdir(ROOT):
        engine = Engine(Ontology.load(*ONTOLOGIES))
        for subscription in read_subscriptions("data/attributes.jsonl"):
            found[subscription.id] = set()
            assert subscription.comment
            engine.subscribe(subscription)
        events = list(read_events("data/events.jsonl"))
        assert tuple(event.id for event in events) == EVENTS
        for publication in (*events, *read_publications("data/publications")):
            for match in engine.match(publication):
                found[match.subscription].add(publication.id)
    return found


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_match_what_they_should(
    name: str, attribute_matches: dict[str, set[str]]
) -> None:
    assert attribute_matches[name] == ATTRIBUTES[name]


def test_table_of_attributes_is_complete(attribute_matches: dict[str, set[str]]) -> None:
    assert list(attribute_matches) == list(ATTRIBUTES)
