"""Annotation of text and feed items, compared with a naive reference implementation."""

from __future__ import annotations

import re
import string
import unicodedata
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.annotation.annotate import Annotator, Label, LabelForm
from semantic.annotation.languages import STOP_WORDS
from semantic.annotation.words import folded
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import CONTENT, DC, RSS, TYPE

ITEM = NamedNode("http://example.org/item")
CHANNEL = BlankNode()
plain_text = Annotator([]).plain_text


def concept(name: str) -> NamedNode:
    return NamedNode(f"http://example.org/concept/{name}")


def label(text: str, language: str | None = None, name: str = "c") -> Label:
    return Label(text, language, concept(name))


def found(text: str, *labels: str, language: str | None = None) -> list[str]:
    """Return the text spans that match labels without a language."""
    annotator = Annotator([label(each) for each in labels])
    return [text[m.start : m.end] for m in annotator.find(text, language)]


# --- Words and folding ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted", "surfaces"),
    [
        ("Climate policy", "climate", ["Climate"]),
        ("acclimated climate", "climate", ["climate"]),
        ("climate_change", "climate change", ["climate_change"]),
        ("climate,\n change", "climate change", ["climate,\n change"]),
        ("of covid 19, COVID-19 and COVID19", "COVID-19", ["covid 19", "COVID-19", "COVID19"]),
        ("De l\u2019énergie", "l'énergie", ["l\u2019énergie"]),
        ("America's turn", "america", ["America"]),
        ("IN THE STRASSE", "Straße", ["STRASSE"]),
        ("die STRAẞE", "strasse", ["STRAẞE"]),
        ("the ﬁnance ministry", "finance", ["ﬁnance"]),
        ("\uff23limate now", "climate", ["\uff23limate"]),
        ("in İSTANBUL, in istanbul, in Istanbul", "İstanbul", ["İSTANBUL", "istanbul", "Istanbul"]),
        ("un cafe\u0301 noir", "café", ["cafe\u0301"]),
        ("un café noir", "cafe\u0301", ["café"]),
        ("un cafe noir", "café", []),
        ("ΟΔΥΣΣΕΥΣ και", "οδυσσευς", ["ΟΔΥΣΣΕΥΣ"]),
        (
            "\u0399\u0308\u0301\u03a3\u039f\u03a3",
            "\u0390\u03c3\u03bf\u03c2",
            ["\u0399\u0308\u0301\u03a3\u039f\u03a3"],
        ),
        ("cli\u00admate", "climate", ["cli\u00admate"]),
        ("मैं हिन्दी में", "हिन्दी", ["हिन्दी"]),
        ("मैं हिन्दी में", "हिन", []),
        ("全球气候变化问题", "气候变化", ["气候变化"]),
        ("ｶﾞﾗｽの街", "ガラス", ["ｶﾞﾗｽ"]),
        ("カ\u3099ラスの街", "カラス", []),
        ("การเปลี่ยนแปลง", "เปลี่ยน", ["เปลี่ยน"]),
        ("การเปลี่ยนแปลง", "เปลีย", []),
        ("in 5G网络 and", "网络", ["网络"]),
        ("😀climate😀", "climate", ["climate"]),
    ],
)
def test_words_are_folded_and_whole(text: str, wanted: str, surfaces: list[str]) -> None:
    assert found(text, wanted) == surfaces


def test_no_label_goes_across_a_paragraph_or_an_address() -> None:
    assert found("climate\n \nchange, climate\nchange", "climate change") == ["climate\nchange"]
    assert found("climate\u2029change ä", "climate change") == []
    assert found("climate https://example.org/climate-change change", "climate change") == []
    assert found("See WWW.climate.org or (http://climate.org/?q=é)", "climate") == []
    assert found("see http://example.org/a climate", "HTTP://example.org/a") == [
        "http://example.org/a"
    ]
    assert found('"http://example.org/"climate<', "climate") == ["climate"]


def test_signs_are_part_of_names() -> None:
    assert found("net gains in .NET", ".NET") == [".NET"]
    assert found("NOTEPAD++ and notepad", "Notepad++") == ["NOTEPAD++"]
    assert found("solar+storage", "solar") == ["solar"]
    assert found("wait...net", "net", ".net") == ["net"]


def test_a_label_without_words_is_never_found() -> None:
    assert found("?! 😀 \n\n", "?!", "😀", "", "  ", "\n\n") == []


# --- Overlaps ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "labels", "surfaces"),
    [
        ("climate change policy", ["climate", "climate change"], ["climate change"]),
        ("climate change", ["climate", "change"], ["climate", "change"]),
        ("new york city council", ["new york", "york city council"], ["york city council"]),
        ("aaa bbb ccc", ["aaa bbb", "bbb ccc"], ["aaa bbb"]),
        ("energy energy energy", ["energy energy", "energy"], ["energy energy", "energy"]),
        # The longer label requires an exact match, so it does not match.
        ("at t-mobile of us", ["AT&T", "mobile"], ["mobile"]),
        ("go to war", ["Go To", "to war"], ["to war"]),
    ],
)
def test_the_longest_label_wins(text: str, labels: list[str], surfaces: list[str]) -> None:
    assert found(text, *labels) == surfaces


def test_a_longer_label_of_another_language_hides_nothing() -> None:
    annotator = Annotator([label("plan climat", "fr"), label("climat", "en")])
    assert [m.label.text for m in annotator.find("plan climat", "en")] == ["climat"]
    assert [m.label.text for m in annotator.find("plan climat", "fr")] == ["plan climat"]


def test_every_concept_of_a_label_is_found_once() -> None:
    labels = [
        label("Bank", "en", "river"),
        label("bank", "de", "money"),
        label("BANK", None, "river"),
    ]
    mentions = Annotator(labels).find("a bank")
    assert [m.label for m in mentions] == labels[:2]
    assert [m.label for m in Annotator(labels).find("a bank", "de")] == labels[1:]


# --- Short labels and stop words --------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted", "surfaces"),
    [
        ("US tells us, Us", "US", ["US"]),
        ("The U.S. and the u.s. and US", "U.S.", ["U.S."]),
        ("C++ and c++ and C", "C++", ["C++"]),
        ("C++, C# and C", "C", ["C"]),
        ("at T-Mobile, AT&T", "AT&T", ["AT&T"]),
        ("who heard The Who?", "The Who", ["The Who"]),
        ("the Band", "The Band", ["the Band"]),
        ("J.R.R. Tolkien uses R, not 'R-2'", "R", ["R"]),
        ("T-shirt T", "T", ["T"]),
        ("中国 国, 国", "国", ["国", "国"]),
        ("大学", "大学", ["大学"]),
        ("ที่国", "国", []),
        ("国ที่", "国", []),
        ("か\u3099き", "が", []),
        ("ｶﾞｷ ｷ", "ｷ", ["ｷ"]),
        ("いえと いえ", "いえ", ["いえ"]),
        ("ÇA va, c\u0327a", "ça", ["c\u0327a"]),
        ("(US)", " US ", ["US"]),
    ],
)
def test_a_label_without_a_telling_word_is_found_exactly(
    text: str, wanted: str, surfaces: list[str]
) -> None:
    assert found(text, wanted) == surfaces


def test_stop_words_are_those_of_the_labels_language() -> None:
    annotator = Annotator([label("war", "en"), label("war", "de", "d")])
    assert [m.label.language for m in annotator.find("War, war")] == ["en", "en", "de"]


# --- Spellings --------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", ["COP30", "COP-30", "COP 30"])
def test_spellings_of_letters_and_digits_match_each_other(wanted: str) -> None:
    text = "COP30, COP-30, COP 30, COP\u201130 and cop30"
    assert found(text, wanted) == ["COP30", "COP-30", "COP 30", "COP\u201130", "cop30"]
    assert found("The cop 30 and the cop, 30; COP, 30. COP_30 COP300 COP 3", wanted) == []


@pytest.mark.parametrize(
    ("text", "wanted", "surfaces"),
    [
        ("email, e-mail, E mail, e, mail", "e-mail", ["email", "e-mail", "E mail"]),
        ("emails and e-mails", "E-mail", ["emails", "e-mails"]),
        ("e-mail, email", "e mail", ["e-mail"]),
        ("e-mail, email", "email", ["email"]),
        ("climatechange", "climate change", []),
        ("CO2, CO 2, CO-2, co2, co 2", "CO2", ["CO2", "CO 2", "CO-2", "co2"]),
        ("F16, F-16, F 16, f-16, F.16", "F-16", ["F16", "F-16", "F 16"]),
        ("G7, G-7, g7, g 7", "G7", ["G7", "G-7"]),
        ("web2.0 and Web 2.0", "Web 2.0", ["web2.0", "Web 2.0"]),
        ("F16A, F-16-A, F 16A", "F-16A", ["F16A", "F-16-A", "F 16A"]),
        ("a1b-2c, a-1-b-2-c, a1b2c", "a1b2c", ["a1b-2c", "a-1-b-2-c", "a1b2c"]),
        # A label with more than four such places has one spelling.
        ("a1b2c3, a-1b2c3", "a1b2c3", ["a1b2c3"]),
        ("-climate climate-", "-climate-", ["climate", "climate"]),
    ],
)
def test_a_label_matches_with_a_space_a_hyphen_or_nothing(
    text: str, wanted: str, surfaces: list[str]
) -> None:
    assert found(text, wanted) == surfaces


@pytest.mark.parametrize(
    ("text", "wanted", "surfaces"),
    [
        ("de l'eau, Eau, EAU", "EAU", ["EAU"]),
        ("usa, USA, Usa", "USA", ["USA"]),
        ("nato, NATO", "NATO", ["nato", "NATO"]),
        ("eau claire", "EAU CLAIRE", ["eau claire"]),
    ],
)
def test_a_label_of_up_to_three_capitals_needs_them(
    text: str, wanted: str, surfaces: list[str]
) -> None:
    assert found(text, wanted) == surfaces


@pytest.mark.parametrize(
    ("text", "wanted", "surfaces"),
    [
        ("turkey, Turkey, TURKEY", "Turkey", ["Turkey", "TURKEY"]),
        ("la réunion, la Réunion, La Réunion", "la Réunion", ["la Réunion", "La Réunion"]),
        ("los turcos, Turcos", "turco", ["turcos", "Turcos"]),
        ("new york, New york, New York", "New York", ["New York"]),
        ("dominicanos, Dominicanos", "Dominicano", ["Dominicanos"]),
    ],
)
def test_proper_names_need_their_initial_capitals(
    text: str, wanted: str, surfaces: list[str]
) -> None:
    annotator = Annotator([Label(wanted, None, concept("c"), is_proper=True)])
    assert [mention.text for mention in annotator.find(text, "es")] == surfaces


# --- Inflected forms --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "text", "wanted", "surfaces"),
    [
        ("en", "Five soups, and a Soup", "soup", ["soups", "Soup"]),
        ("en", "solar panels in Universities", "Solar panel", ["solar panels"]),
        ("en", "the universe, marketing, news and a booking", "university", []),
        ("en", "marketing", "market", []),
        ("en", "Attorneys general", "attorney general", ["Attorneys general"]),
        ("en", "aids", "AID", []),
        ("en", "NATOs", "NATO", []),
        ("en", "iPhones", "iPhone", []),
        (
            "en",
            "two new york times, New York Time",
            "New York Times",
            ["new york times", "New York Time"],
        ),
        ("en", "cries of the Whos", "The Who", []),
        ("de", "Häuser, der Häuser, häuser", "Haus", ["Häuser", "Häuser"]),
        ("de", "Arbeiter, Arbeiten", "Arbeit", ["Arbeiten"]),
        ("de", "Erneuerbaren Energien", "Erneuerbare Energie", ["Erneuerbaren Energien"]),
        ("fr", "les énergies renouvelables", "énergie renouvelable", ["énergies renouvelables"]),
        ("fr", "les ports, les journaux", "journal", ["journaux"]),
        ("es", "las elecciones", "elección", ["elecciones"]),
        ("it", "le macchine", "macchina", ["macchine"]),
        ("pt", "os incêndios florestais", "incêndio florestal", ["incêndios florestais"]),
        ("pt", "ações, pães, mãos, mães", "ação", ["ações"]),
        ("pt", "ação, pão e pães", "pães", ["pão", "pães"]),
        ("pt", "cães, mãe e mães", "mãe", ["mãe", "mães"]),
        ("pt", "irmão, irmãos, irmã", "irmão", ["irmão", "irmãos"]),
        ("pt", "papéis, animais, hotéis", "animal", ["animais"]),
        ("pt", "combustíveis fósseis", "combustível fóssil", ["combustíveis fósseis"]),
        ("pt", "lençóis, civis e fuzis", "fuzil", ["fuzis"]),
        ("pt", "mais pais, leis e reis", "rei", ["reis"]),
        ("pt", "lençol, sol", "lençóis", ["lençol"]),
        ("pt", "homens, nuvens", "nuvem", ["nuvens"]),
        ("sv", "flickorna", "flicka", ["flickorna"]),
        ("xx", "soups", "soup", []),
    ],
)
def test_plurals_and_cases_are_forms_of_a_label(
    language: str, text: str, wanted: str, surfaces: list[str]
) -> None:
    mentions = Annotator([label(wanted, language)]).find(text, language)
    assert [mention.text for mention in mentions] == surfaces
    assert [mention.text for mention in Annotator([label(wanted)]).find(text, language)] == surfaces
    without = Annotator([label(wanted, language)], stem=False).find(text, language)
    assert without == [mention for mention in mentions if mention.form is LabelForm.SAME]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Klimapolitik", ["Politik", "Klima"]),
        ("Solaranlagen", ["Anlage"]),
        ("Sprachschule", ["Schule", "Sprache"]),
        ("Gegenstand gegenstand", []),
        ("klimapolitik", []),
        ("Klimapolitik-Rat", ["Politik", "Klima"]),
        ("KlimaPolitik", []),
    ],
)
def test_german_compounds_have_parts(text: str, wanted: list[str]) -> None:
    names = ("Klima", "Politik", "Anlage", "Sprache", "Schule", "Stand", "Rat", "Politik der Mitte")
    annotator = Annotator([label(name, "de", name[:3] + name[-3:]) for name in names])
    parts = [m for m in annotator.find(text, "de") if m.form is LabelForm.COMPOUND]
    assert {mention.label.text for mention in parts} == set(wanted)
    assert annotator.find(text, "en") == []


def test_the_same_word_is_found_before_other_forms_and_parts() -> None:
    labels = [label("Arm", "de", "arm"), label("Arme", "de", "poor")]
    assert [m.label.text for m in Annotator(labels).find("Arme", "de")] == ["Arme"]
    assert [m.label.text for m in Annotator(labels).find("Arm", "de")] == ["Arm"]
    labels = [label("Klima", "de", "climate"), label("Klimapolitik", "de", "policy")]
    assert [m.label.text for m in Annotator(labels).find("Klimapolitik", "de")] == ["Klimapolitik"]
    assert [m.label.text for m in Annotator(labels).find("Klimapolitik", "en")] == []


def test_forms_are_those_of_the_texts_language_or_of_english() -> None:
    labels = [label("soup", "en", "en"), label("soup", "de", "de"), label("soup", None, "any")]
    mentions = Annotator(labels).find("soups")
    assert {m.label.language for m in mentions} == {"en", None}
    labels = [label("Haus", "en", "en"), label("Haus", "de", "de"), label("Haus", None, "any")]
    assert Annotator(labels).find("Häuser") == []
    mentions = Annotator(labels).find("Häuser", "de")
    assert {m.label.language for m in mentions} == {"de", None}


# --- Languages --------------------------------------------------------------------------

LANGUAGES = [label("pays", "fr", "fr"), label("pays", "en-GB", "en"), label("PAYS", None, "any")]


@pytest.mark.parametrize(
    ("text", "tag", "concepts"),
    [
        ("pays", "fr-CA", ["fr", "any"]),
        ("pays", "EN_us", ["en", "any"]),
        ("pays", "de", ["any"]),
        ("pays", None, ["fr", "en", "any"]),
        ("pays", "und", ["fr", "en", "any"]),
        ("it pays for the bridge of the city", None, ["en", "any"]),
        ("it pays for the bridge of the city", "fr", ["fr", "any"]),
    ],
)
def test_labels_of_the_texts_language_are_found(
    text: str, tag: str | None, concepts: list[str]
) -> None:
    mentions = Annotator(LANGUAGES).find(text, tag)
    assert [m.label.concept for m in mentions] == [concept(name) for name in concepts]


# --- Publications -----------------------------------------------------------------------


def publication(*triples: tuple[Term, NamedNode, Term]) -> Publication:
    return Publication.of("http://example.org/item", [(ITEM, TYPE, RSS["item"]), *triples])


def concepts_of(annotator: Annotator, *triples: tuple[Term, NamedNode, Term]) -> list[NamedNode]:
    return [found.occurrence.label.concept for found in annotator.annotate(publication(*triples))]


def test_title_description_and_categories_are_looked_at_in_order() -> None:
    html = "<p>On <b>cli</b>mate &amp; <a title='energy'>sun</a></p><p>climate</p>"
    annotations = Annotator(
        [label("climate", "en", "climate"), label("energy", "en", "energy")]
    ).annotate(
        publication(
            (ITEM, DC["subject"], Literal("Energy")),
            (ITEM, RSS["description"], Literal(html)),
            (ITEM, RSS["title"], Literal("energy &amp; climate")),
            (ITEM, RSS["link"], Literal("climate")),
            (ITEM, CONTENT["encoded"], Literal("<p>Energy.</p>Read more about climate")),
        )
    )
    texts = {
        DC["subject"]: "Energy",
        RSS["description"]: plain_text(html),
        RSS["title"]: "energy & climate",
        CONTENT["encoded"]: "\n\nEnergy.\n\n",
    }
    places = [(a.property, a.occurrence) for a in annotations]
    assert [(p, texts[p][found.start : found.end]) for p, found in places] == [
        (DC["subject"], "Energy"),
        (RSS["description"], "climate"),
        (RSS["description"], "climate"),
        (RSS["title"], "energy"),
        (RSS["title"], "climate"),
        (CONTENT["encoded"], "Energy"),
    ]
    assert annotations[0].item == ITEM
    assert annotations[0].occurrence.label.concept == concept("energy")
    assert annotations[1].occurrence.label == label("climate", "en", "climate")


def test_content_that_is_the_description_is_looked_at_once() -> None:
    texts = [
        (ITEM, RSS["description"], Literal("climate")),
        (ITEM, CONTENT["encoded"], Literal("climate")),
    ]
    assert len(concepts_of(Annotator([label("climate")]), *texts)) == 1
    other = (ITEM, CONTENT["encoded"], Literal("the climate"))
    assert len(concepts_of(Annotator([label("climate")]), *texts, other)) == 2


def test_only_items_are_annotated() -> None:
    title = RSS["title"]
    triples: list[Triple] = [
        (CHANNEL, TYPE, RSS["channel"]),
        (CHANNEL, title, Literal("climate")),
        (ITEM, title, Literal("climate")),
        (ITEM, RSS["description"], NamedNode("urn:climate")),
    ]
    annotator = Annotator([label("climate")])
    assert annotator.annotate(Publication.of("urn:p", triples)) == []
    triples.append((ITEM, TYPE, RSS["item"]))  # The order of the triples must not matter.
    assert [a.item for a in annotator.annotate(Publication.of("urn:p", triples))] == [ITEM]


def test_nearer_statements_of_language_win() -> None:
    annotator = Annotator(LANGUAGES[:2])
    title = (ITEM, RSS["title"], Literal("pays"))
    channel: list[tuple[Term, NamedNode, Term]] = [
        (CHANNEL, TYPE, RSS["channel"]),
        (CHANNEL, DC["language"], Literal("en-us")),
    ]
    item = (ITEM, DC["language"], Literal("fr"))
    tagged = (ITEM, RSS["title"], Literal("pays", language="en"))
    french, english = concept("fr"), concept("en")
    assert concepts_of(annotator, title) == [french, english]
    assert concepts_of(annotator, title, *channel) == [english]
    assert concepts_of(annotator, title, *channel, item) == [french]
    assert concepts_of(annotator, tagged, *channel, item) == [english]
    assert concepts_of(annotator, title, item, (ITEM, DC["language"], Literal("en"))) == [
        french,
        english,
    ]


def test_a_language_is_guessed_from_all_texts_of_an_item() -> None:
    title = (ITEM, RSS["title"], Literal("pays"))
    text = (ITEM, RSS["description"], Literal("<p>Who will build the bridge over the river?</p>"))
    assert concepts_of(Annotator(LANGUAGES[:2]), title, text) == [concept("en")]
    tagged = (ITEM, RSS["description"], Literal("pays", language="fr"))
    assert concepts_of(Annotator(LANGUAGES[:2]), title, text, tagged) == [
        concept("en"),
        concept("fr"),
    ]


# --- Naive reference --------------------------------------------------------------------

SCRIPTS = ("CJK UNIFIED", "HIRAGANA LETTER", "KATAKANA LETTER", "THAI CHARACTER")
Word = tuple[str, int, int]
Hit = tuple[int, int, NamedNode]


def naive_kind(text: str, i: int, last: str) -> str:
    before, letter, after = text[i - 1] if i else "", text[i], text[i + 1 : i + 2]
    if unicodedata.category(letter).startswith("M"):
        return last if last in ("letter", "unspaced") else ""
    if letter.isalnum():
        return "unspaced" if unicodedata.name(letter).startswith(SCRIPTS) else "letter"
    if letter in "+#" and (last in ("letter", "unspaced", "sign") or before == "_"):
        return "sign"
    in_word = last in ("letter", "unspaced") or before in ("_", ".")
    return "dot" if letter == "." and after.isalnum() and not in_word else ""


def naive_words(text: str) -> list[Word]:
    """Split a paragraph into (folded word, start, end), letter by letter."""
    words: list[Word] = []
    kind = ""
    for i, letter in enumerate(text):
        last, kind = kind, naive_kind(text, i, kind)
        goes_on = unicodedata.category(letter).startswith("M") or (
            kind == last and kind in ("letter", "sign")
        )
        if kind and goes_on:
            words[-1] = (words[-1][0] + letter, words[-1][1], i + 1)
        elif kind:
            words.append((letter, i, i + 1))
    return [(naive_fold(word), start, end) for word, start, end in words]


def naive_fold(word: str) -> str:
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", word).casefold())


def naive_is_telling(words: list[str], language: str | None) -> bool:
    stops = set(chain(*STOP_WORDS.values()) if language is None else STOP_WORDS[language])
    letters = [[letter for letter in word if letter.isalnum()] for word in words]
    names = [unicodedata.name(letter) for word in letters for letter in word]
    if any(name.startswith(SCRIPTS) for name in names):
        return len(names) + sum(name.startswith("CJK UNIFIED") for name in names) >= 3
    return any(len(word) >= 3 and "".join(word) not in stops for word in letters)


def naive_span(text: str, each: Label, start: int, end: int) -> tuple[int, int] | None:
    """Return the span of a label, or None if it requires an exact match and has none."""
    wanted = each.text
    words = naive_words(wanted)
    if naive_is_telling([word for word, _, _ in words], each.language):
        return start, end
    start, end = start - words[0][1], end + len(wanted) - words[-1][2]
    around = [text[start - 1] if start > 0 else " ", text[end] if end < len(text) else " "]
    composed = [unicodedata.normalize("NFC", each) for each in (text[max(start, 0) : end], wanted)]
    if len(naive_spellings(wanted)) > 1:
        composed = [re.sub(r"[\s-]", "", each) for each in composed]
    if start < 0 or composed[0] != composed[1] or around[1] in "+#":
        return None
    if end - start == 1 and set(around) & set("-._+#"):
        return None
    for place in (start, end):
        bare = [each for each in text[:place] if not unicodedata.category(each).startswith("M")]
        sides = ["".join(bare[-1:]), text[place : place + 1]]
        if all(each and unicodedata.name(each, "").startswith(SCRIPTS) for each in sides):
            return None
    return start, end


DIGITS = tuple(string.digits)
GAP = re.compile("[\\s\\-]*")
PIECE = re.compile("[0-9]+|[^0-9]+")


def naive_pieces(label: str) -> list[tuple[str, bool]]:
    """Return words, digits apart, each with whether a text may join it to the one before."""
    pieces: list[tuple[str, bool]] = []
    last, end = "", 0
    for _, start, stop in naive_words(label):
        for piece in PIECE.finditer(label[start:stop]):
            gap = label[end : start + piece.start()]
            border = (last[:1] in DIGITS) != (piece[0][0] in DIGITS)
            is_gap = last != "" and GAP.fullmatch(gap) is not None
            pieces.append((piece[0], is_gap and (border or "-" in gap)))
            last, end = piece[0], start + piece.end()
    return pieces


def naive_spellings(label: str) -> list[list[tuple[str, bool]]]:
    """Return the ways to spell a label: its words, and whether only a gap may be before each."""
    pieces = naive_pieces(label)
    if sum(is_loose for _, is_loose in pieces) > 4:
        return [[(label[start:end], False) for _, start, end in naive_words(label)]]
    spellings: list[list[tuple[str, bool]]] = [[]]
    for piece, is_loose in pieces:
        joined = [
            [*spelling[:-1], (spelling[-1][0] + piece, spelling[-1][1])]
            for spelling in spellings
            if is_loose
        ]
        spellings = [[*spelling, (piece, is_loose)] for spelling in spellings] + joined
    return spellings


def naive_fits(text: str, each: Label, spelling: list[tuple[str, bool]], run: list[Word]) -> bool:
    """Return whether the gaps and capitals of a run of words fit those of a label."""
    words = [word for word, _, _ in naive_words(each.text)]
    if not naive_is_telling(words, each.language):
        return True  # The spelling is compared letter by letter.
    needs = len(naive_pieces(each.text)) == 1 or any(c in DIGITS for c in each.text)
    for number, ((written, free), (_, start, end)) in enumerate(zip(spelling, run, strict=True)):
        if free and not GAP.fullmatch(text[run[number - 1][2] : start]):
            return False
        is_short = len(written) <= 3 and all(c.isupper() for c in written)
        if needs and is_short and any(c.islower() for c in text[start:end]):
            return False
    return True


def naive_find(text: str, labels: list[Label], language: str) -> set[Hit]:
    """Compare each spelling of each label with each run of words, longest first."""
    words = naive_words(text)
    candidates: dict[tuple[int, int, int], dict[NamedNode, Hit]] = {}
    usable = [e for e in labels if e.language in (None, language) and naive_words(e.text)]
    for each, spelling in ((e, spelling) for e in usable for spelling in naive_spellings(e.text)):
        wanted = [naive_fold(word) for word, _ in spelling]
        for first in range(len(words)):
            run = words[first : first + len(wanted)]
            if [word for word, _, _ in run] == wanted and naive_fits(text, each, spelling, run):
                span = naive_span(text, each, run[0][1], run[-1][2])
                if span is not None:
                    key = (-len(" ".join(wanted)), first, first + len(wanted))
                    here = candidates.setdefault(key, {})
                    here.setdefault(each.concept, (*span, each.concept))
    hits: set[Hit] = set()
    free = set(range(len(words)))
    for (_, first, last), here in sorted(candidates.items(), key=lambda item: item[0]):
        if set(range(first, last)) <= free:
            free -= set(range(first, last))
            hits |= set(here.values())
    return hits


ATOMS = [
    *[
        "climate",
        "Change",
        "US",
        "us",
        "C",
        "c",
        "the",
        "Who",
        "1",
        "30",
        "COP",
        "_",
        "\uff35\uff33",
        "½",
        "ﬁ",
        "fi",
    ],
    *[
        "ß",
        "SS",
        "ss",
        "e\u0301",
        "é",
        "É",
        "气",
        "候",
        "国",
        "ア",
        "か\u3099",
        "が",
        "ไ",
        "ที่",
        "हि",
    ],
]
JOINS = st.sampled_from(["", " ", " ", " ", "-", ", ", "+", "++", "#", ".", ". ", "'", "\n"])
WORDS = st.sampled_from(ATOMS)
PHRASES = st.lists(st.tuples(WORDS, JOINS), min_size=1, max_size=4).map(
    lambda pairs: "".join(word + join for word, join in pairs).strip()
)
LABELS = st.builds(
    Label,
    PHRASES,
    st.sampled_from([None, "en", "fr"]),
    st.sampled_from([concept("a"), concept("b")]),
)
TEXTS = st.lists(st.tuples(WORDS, JOINS), max_size=12).map(
    lambda pairs: "".join(word + join for word, join in pairs)
)


@st.composite
def texts_with_labels(draw: st.DrawFn) -> tuple[str, list[Label]]:
    """Draw a text and labels that are mostly parts of it, so that most examples match."""
    text = draw(TEXTS)
    labels = draw(st.lists(LABELS, max_size=5))
    for _ in range(draw(st.integers(0, 4)) if text else 0):
        start = draw(st.integers(0, len(text) - 1))
        part = text[start : draw(st.integers(start + 1, len(text)))].strip()
        # A combining mark cannot begin a label.
        part = part.lstrip("\u0301\u3099\u0e35\u0e48\u093f").strip()
        labels.append(label(part.swapcase() if draw(st.booleans()) else part, None, str(start)))
    return text, labels


@settings(max_examples=500)
@given(texts_with_labels())
@example(("US US.", [label("US."), label("us")]))
def test_finds_what_the_naive_reference_finds(example: tuple[str, list[Label]]) -> None:
    text, labels = example
    mentions = Annotator(labels, stem=False).find(text, "en")
    expected = naive_find(text, labels, "en")
    assert {(m.start, m.end, m.label.concept) for m in mentions} == expected
    assert len(mentions) == len(expected)
    assert [m.start for m in mentions] == sorted(m.start for m in mentions)
    assert all(m.label in labels for m in mentions)


@given(texts_with_labels(), texts_with_labels())
def test_paragraphs_are_found_in_one_by_one(
    one: tuple[str, list[Label]], other: tuple[str, list[Label]]
) -> None:
    annotator = Annotator(one[1] + other[1])
    first, second = one[0].strip("\n"), other[0].strip("\n")
    offset = len(first) + 2
    # Without "en", the annotator would guess one language for both parts.
    whole = f"{first}\n\n{second}"
    assert [(m.label, m.start, m.end) for m in annotator.find(whole, "en")] == [
        *((m.label, m.start, m.end) for m in annotator.find(first, "en")),
        *((m.label, m.start + offset, m.end + offset) for m in annotator.find(second, "en")),
    ]


# --- Size -------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["B" + "a" * 200_000, "ay" * 200_000, "soup " * 100_000])
@pytest.mark.parametrize("language", ["de", "en"])
def test_long_words_and_texts_take_linear_time(text: str, language: str) -> None:
    annotator = Annotator([label("Klima", language), label("soups", language)])
    # A quadratic search would take hours.
    assert len(annotator.find(text, language)) in (0, 100_000)


def test_very_many_stated_languages() -> None:
    annotator = Annotator([label("soup", "en")])
    triples: list[Triple] = [(CHANNEL, TYPE, RSS["channel"])]
    triples += [(CHANNEL, DC["language"], Literal(f"x{number}")) for number in range(5000)]
    for number in range(1000):
        node = NamedNode(f"http://example.org/{number}")
        triples += [(node, TYPE, RSS["item"]), (node, RSS["title"], Literal("Soup"))]
    items = Publication.of("urn:items", triples)
    assert len(annotator.annotate(items)) == 1000  # The language is unknown.


def test_that_every_combining_mark_belongs_to_a_word() -> None:
    codes = [*range(0x300, 0xD800), *range(0xE000, 0x110000)]
    marks = [chr(c) for c in codes if unicodedata.category(chr(c)).startswith("M")]
    assert len(marks) > 2000
    assert [mark for mark in marks if folded(f"b{mark}b").count(" ") > 2] == []
