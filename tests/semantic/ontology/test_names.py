from __future__ import annotations

import pytest
from pyoxigraph import Literal, NamedNode

from semantic.ontology.names import TermNames
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import SynonymPairs
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import local_name
from semantic.vocabulary import LABEL, RDF, SKOS, TYPE, Namespace

EX = Namespace("http://example.org/")


def test_that_a_name_of_several_terms_gives_them_all() -> None:
    art, craft = EX["a/jazz"], EX["b/jazz"]
    names = TermNames(
        [Taxonomy([(art, EX["music"])]), Taxonomy([(craft, EX["dance"]), (art, EX["art"])])],
        [("jazz", art), ("Jazz", craft), ("Jazz", craft)],
    )
    assert names.terms("jazz") == (art, craft)
    assert names.terms("Jazz") == (craft,)
    assert names.terms("x") == ()
    assert set(names) == {"jazz", "Jazz", "music", "dance", "art"}


def test_that_names_know_synonyms() -> None:
    shop = Namespace("https://graphmatch.example/shop#")
    ontology = Ontology.load("ontologies/products.ttl", "ontologies/synonyms.csv")
    names = ontology.value_names
    assert names.terms("Notebook") == names.terms("LaptopPC") == (shop["LaptopPC"],)


def test_labels_have_the_texts_of_synonym_files_for_topics_but_not_for_properties() -> None:
    topic, property_ = NamedNode("urn:topic"), NamedNode("urn:property")
    texts = (("jazz", topic), ("played by", property_), ("other", NamedNode("urn:unstated")))
    triples = [(property_, TYPE, RDF["Property"]), (topic, TYPE, SKOS["Concept"])]
    ontology = Ontology(triples, SynonymPairs(labels=texts))
    assert {label.text for label in ontology.labels()} == {"jazz", "other"}
    assert ontology.value_names.terms("jazz") == (topic,)


def test_that_a_term_is_shown_by_the_preferred_label_of_the_readers_language() -> None:
    sun, labels = (
        EX["4711"],
        [
            (SKOS["altLabel"], "Sonnenstrom", "de"),
            (LABEL, "Solarenergie", "de-AT"),
            (SKOS["prefLabel"], "Solarstrom", "de"),
            (LABEL, "énergie solaire", "fr"),
            (LABEL, "solar", None),
            (SKOS["hiddenLabel"], "sun power", "en"),
        ],
    )
    stated = [(sun, property_, Literal(text, language=tag)) for property_, text, tag in labels]
    names = Ontology(stated, prefixes={"ex": EX.iri}).shown_names
    shown = {language: names.shown(sun, language) for language in ("de", "en", "fr", "it")}
    assert shown == {
        "de": "Solarstrom (ex:4711)",
        "en": "solar (ex:4711)",
        "fr": "énergie solaire (ex:4711)",
        "it": "solar (ex:4711)",
    }
    assert [label.value for label in names.labels(sun, "de")] == [
        "Solarstrom",
        "Solarenergie",
        "solar",
        "énergie solaire",
        "Sonnenstrom",
        "sun power",
    ]
    assert names.shown(EX["4712"]) == "ex:4712"


@pytest.mark.parametrize(
    ("iri", "name"),
    [
        ("http://example.org/shop#LaptopPC", "LaptopPC"),
        ("http://example.org/a/b", "b"),
        ("http://example.org/a/b/", "b"),
        ("urn:isbn:1", "1"),
        ("x:", "x:"),
    ],
)
def test_local_names(iri: str, name: str) -> None:
    assert local_name(NamedNode(iri)) == name
