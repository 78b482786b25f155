"""Language detection: the stated language, or a guess from function words."""

from __future__ import annotations

import pytest
from pyoxigraph import NamedNode

from semantic.annotation.annotate import Annotator, Label
from semantic.annotation.languages import STOP_WORDS, primary_subtag
from semantic.annotation.words import folded

SENTENCES = {
    "en": "Ministers have agreed on a plan to cut emissions before the end of the year",
    "de": "Die Regierung hat sich auf einen Plan geeinigt, mit dem die Emissionen sinken sollen",
    "fr": "Le gouvernement a trouvé un accord sur un plan pour réduire les émissions du pays",
    "es": "El gobierno ha llegado a un acuerdo sobre un plan para reducir las emisiones del país",
    "it": "Il governo ha trovato un accordo su un piano per ridurre le emissioni nel paese",
    "nl": "De regering is het eens geworden over een plan om de uitstoot van het land te verlagen",
    "pt": "O governo chegou a um acordo sobre um plano para reduzir as emissões do país",
}
OTHERS = (
    "Klimaet forandrer sig hurtigere end man troede, og det er en udfordring for de lande",
    "Klimatet förändras snabbare än man trodde och det är en utmaning för de länder",
    "El canvi climàtic és un dels reptes més importants de la nostra època, i les ciutats",
    "Zmiany klimatu to jedno z najważniejszych wyzwań naszych czasów, mówią naukowcy",
    "全球气候变化问题",
    "Climate change",
    "The end of history",
    "Emissions targets: ministers agree plan; industry groups criticise cost of measures "
    "as markets across Europe fall to lowest level this year",  # It has too few function words.
    "",
)


def label(text: str, language: str) -> Label:
    return Label(text, language, NamedNode("urn:concept"))


NAMED = Annotator(
    Label("Cumulonimbus", language, NamedNode(f"urn:{language}")) for language in STOP_WORDS
)


def guessed(text: str) -> set[str | None]:
    """Return the languages of the labels to look for, or all if the language is unclear."""
    return {found.label.language for found in NAMED.find(f"{text} cumulonimbus")}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_sentence_tells_its_language(language: str) -> None:
    assert guessed(SENTENCES[language]) == {language}


@pytest.mark.parametrize("text", OTHERS)
def test_an_unclear_language_stays_unknown(text: str) -> None:
    assert guessed(text) == set(STOP_WORDS)


def test_a_text_half_and_half_is_left_open() -> None:
    assert guessed(SENTENCES["en"] + " " + SENTENCES["de"]) == set(STOP_WORDS)


@pytest.mark.parametrize(
    ("tag", "primary"),
    [("en", "en"), ("EN-us", "en"), (" pt_BR ", "pt"), ("und", None), ("", None), (None, None)],
)
def test_primary_subtag(tag: str | None, primary: str | None) -> None:
    assert primary_subtag(tag) == primary


@pytest.mark.parametrize("language", STOP_WORDS)
def test_stop_words_are_folded_words(language: str) -> None:
    for word in STOP_WORDS[language]:
        assert folded(word) == f" {word} "


def test_words_that_only_look_like_compounds() -> None:
    annotator = Annotator([label("Sport", "de"), label("Strom", "de")])
    words = ("Transport", "Gütertransporte", "Maelstrom", "Wassersport", "Stromnetz")
    found = [[one.label.text for one in annotator.find(word, "de")] for word in words]
    assert found == [[], [], [], ["Sport"], ["Strom"]]


@pytest.mark.parametrize("language", ["xx", "\ufffd", "日本"])
def test_a_language_without_a_stemmer(language: str) -> None:
    annotator = Annotator([label("soup", language)])
    assert [one.text for one in annotator.find("soup soups", language)] == ["soup"]
