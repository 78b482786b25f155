"""The sample topics about climate policy, with the places, in three languages."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, Topics, subscribe_topics
from semantic import Ontology, Publication
from semantic.terms import Triple
from semantic.vocabulary import RSS, TYPE

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "data/climate-topics.csv"
ITEM = NamedNode("https://reader.example/item")


@pytest.fixture(scope="module")
def engine() -> Engine:
    engine = Engine(Ontology.load(TABLE, ROOT / "ontologies/places.ttl"))
    topics = ("Climate", "Climate policy or Government", "Latin America")
    not_topics = ("Sport or Events and tourism",)
    subscribe_topics(engine, Topics(topics=topics, not_topics=not_topics))
    return engine


@pytest.mark.parametrize(
    ("language", "title", "expected"),
    [
        ("en", "Chile's ministers agree on a law to phase out coal and protect the climate", True),
        ("en", "Deforestation in Bolivia falls for a second year", True),
        ("es", "El gobierno argentino prepara un plan de adaptación climática", True),
        ("es", "Uruguay emite bonos verdes por mil millones", True),
        ("pt", "Senado aprova projeto sobre energias renováveis na Amazônia", True),
        ("pt", "Governo do Pará combate as queimadas", True),
        # No policy: a study, an event, or sport.
        ("en", "How a warming climate changes the birds of Ecuador", False),
        ("pt", "Belém abre um hotel para a conferência climática COP30", False),
        ("pt", "Ministro fala da política climática no campeonato brasileiro de futebol", False),
        ("es", "El presidente de Colombia lleva la acción climática al fútbol", False),
        # Another place, or another law.
        ("en", "Germany's government raises the carbon tax", False),
        ("es", "El Senado de Perú vota una ley de pensiones", False),
    ],
)
def test_items_in_three_languages(
    engine: Engine, language: str, title: str, expected: bool
) -> None:
    triples: list[Triple] = [(ITEM, TYPE, RSS["item"])]
    triples.append((ITEM, RSS["title"], Literal(title, language=language)))
    assert bool(engine.match(Publication.of(ITEM.value, triples))) is expected


def test_table_has_three_languages_and_no_unusable_row() -> None:
    """Warnings are errors in tests, so an unusable row would fail."""
    rows = [line.split(",") for line in TABLE.read_text(encoding="utf-8").splitlines()]
    assert rows[0] == ["topic", "label", "language", "broader"]
    assert {len(row) for row in rows} == {4}
    assert {row[2] for row in rows[1:]} == {"", "en", "es", "pt"}
