"""The places that the project ships."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from semantic import Ontology
from semantic.annotation.annotate import Annotator
from semantic.vocabulary import Namespace

PLACE = Namespace("urn:graphmatch:place:")
FILE = Path(__file__).resolve().parents[3] / "ontologies/places.ttl"


@pytest.fixture(scope="module")
def places() -> Ontology:
    return Ontology.load(FILE)


@pytest.fixture(scope="module")
def annotator(places: Ontology) -> Annotator:
    return Annotator(places.labels())


def test_continents_regions_and_countries(places: Ontology) -> None:
    codes = [
        term.value.rpartition(":")[2] for term in places.concepts if isinstance(term, NamedNode)
    ]
    countries = [code for code in codes if code.isalpha() and code != "EU"]
    assert len(countries) >= 249
    assert len(codes) - len(countries) >= 28
    assert places.problems == []
    for code in codes:
        known = {label.language for label in places.shown_names.labels(PLACE[code])}
        assert known == {"de", "en", "es", "fr", "pt"}, code
    for code in countries:
        if code != "AQ":
            above = places.concepts.ancestors(PLACE[code])
            assert {PLACE[each] for each in ("002", "009", "019", "142", "150")} & set(above), code
    latin = set(places.concepts.descendants(PLACE["419"]))
    assert {PLACE[code] for code in ("BR", "MX", "CU", "013", "005", "029")} <= latin
    assert not {PLACE[code] for code in ("US", "CA", "ES", "PT")} & latin


@pytest.mark.parametrize(
    ("language", "text", "codes"),
    [
        ("en", "Brazilian talks in Latin America", "BR 419"),
        ("en", "The U.S. and the UK, as the EU, met us", "US GB EU"),
        ("en", "Polish and Czech voters; North Korea and South Africa", "PL CZ KP ZA"),
        ("en", "New Mexico and Mexico", "US MX"),
        ("es", "La política climática en América Latina: México y los argentinos", "419 MX AR"),
        ("es", "Una empresa chilena en EE. UU. usa agua", "CL US"),
        ("es", "Centroamérica, el Caribe y Sudamérica", "013 029 005"),
        ("pt", "Governo brasileiro e a União Europeia; peru no Peru", "BR EU PE"),
        ("pt", "16 GB de RAM", ""),
        ("fr", "La Colombie, l'Amérique du Sud et les Péruviennes", "CO 005 PE"),
        ("fr", "Maurice boit de l'eau à la réunion", ""),
        ("fr", "Etats-Unis, États-Unis et EAU", "US US AE"),
        ("de", "Brasilianische Regierung, mexikanischer Präsident, Lateinamerika", "BR MX 419"),
        ("en", "A turkey, a jersey, china, chile and guinea pigs", ""),
    ],
)
def test_names_in_texts(annotator: Annotator, language: str, text: str, codes: str) -> None:
    found = [mention.label.concept for mention in annotator.find(text, language)]
    assert found == [PLACE[code] for code in codes.split()]
