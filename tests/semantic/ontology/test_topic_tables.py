"""Topics from CSV tables."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine
from graphmatch.topics import Topics, known_concepts
from semantic import Ontology
from semantic.errors import OntologyError, Problem
from semantic.publication import Publication
from semantic.terms import Term
from semantic.vocabulary import BROADER, GM, RSS, SKOS, TYPE

NEWS = """
@prefix news: <http://example.org/news#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
news:Politics a skos:Concept ; skos:prefLabel "Politics"@en .
news:Bank a skos:Concept ; skos:prefLabel "Bank"@en .
news:Shore a skos:Concept ; skos:prefLabel "Bank"@de .
"""
NAMES = NamedNode("http://example.org/news#Politics")


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


def topic(name: str) -> NamedNode:
    return GM[f"topic:{name}"]


def load(
    folder: Path, table: str | bytes, problems: list[Problem] | None = None, *more: str
) -> Ontology:
    """Load the table `topics.csv`, with the file `news.ttl`."""
    file, news = folder / "topics.csv", folder / "news.ttl"
    file.write_bytes(table.encode() if isinstance(table, str) else table)
    news.write_text(NEWS)
    on_problem = unexpected if problems is None else problems.append
    return Ontology.load(file, news, *more, on_problem=on_problem)


def labels(ontology: Ontology, term: NamedNode, kind: str) -> list[Term]:
    return [o for s, p, o in ontology.stated if s == term and p == SKOS[kind]]


def test_rows_give_labels_and_broader_topics(tmp_path: Path) -> None:
    ontology = load(
        tmp_path,
        "topic,label,language,broader\n"
        "Climate policy,climate policy,en,Climate\n"
        "Climate policy,Klimapolitik,de,politics\n"
        "Climate policy,carbon tax,en,\n"
        "Climate policy,carbon tax,en,news:Bank\n"
        "Climate,,,\n"
        "news:Energy,energy,,http://example.org/x\n",
    )
    policy, climate = topic("Climate%20policy"), topic("Climate")
    assert labels(ontology, policy, "prefLabel") == [
        Literal("climate policy", language="en"),
        Literal("Klimapolitik", language="de"),
    ]
    assert labels(ontology, policy, "altLabel") == [Literal("carbon tax", language="en")]
    assert labels(ontology, climate, "prefLabel") == [Literal("Climate")]
    energy, bank = (NamedNode(f"http://example.org/news#{name}") for name in ("Energy", "Bank"))
    assert set(ontology.concepts.parents(policy)) == {climate, NAMES, bank}
    assert ontology.concepts.parents(energy) == (NamedNode("http://example.org/x"),)
    assert all((each, TYPE, SKOS["Concept"]) in ontology.stated for each in (policy, energy))
    concepts = known_concepts(ontology)
    assert concepts is not None
    for name in ("Climate policy", "climate policy", "KLIMAPOLITIK", "carbon tax"):
        assert concepts.find(name) == policy


@pytest.mark.parametrize(
    "table",
    [
        b"\xef\xbb\xbfTopic;Label;Language;Broader;Notes\r\n"
        b'"Food; drink";"soup";en;;x\r\n;;;;\r\nSoup;;;"Food; drink";\r\n',
        b"broader\ttopic\tlabel\tlanguage\n\tFood; drink\tsoup\ten\nFood; drink\tSoup\t\t\n",
        b'label,topic\nsoup,Food; drink\n"Soup",Soup\n',
    ],
)
def test_semicolons_tabs_and_columns_in_any_order(table: bytes, tmp_path: Path) -> None:
    ontology = load(tmp_path, table)
    food, soup = topic("Food%3B%20drink"), topic("Soup")
    assert {food, soup} <= set(ontology.concepts)
    if b"broader" in table.lower():
        assert (soup, BROADER, food) in ontology.stated


def test_every_bad_row_is_reported_and_the_rest_is_used(tmp_path: Path) -> None:
    problems: list[Problem] = []
    ontology = load(
        tmp_path,
        "topic,label,language,broader\n"
        ",soup,en,\n"
        "Soup,soup,English,\n"
        "Soup,soup, hot,en,\n"
        "Soup,soup,en,Food\n"
        "Soup,soups,en,Bank\n"
        "Stew,stew,en-GB,Soup\n",
        problems,
    )
    assert [(problem.where.line, problem.what) for problem in problems] == [
        (4, "the row has more fields than the first line"),
        (2, "the row has no topic"),
        (3, "'English' is not a language tag, such as `en`"),
        (5, "no topic is called 'Food'"),
        (6, "2 topics are called 'Bank'"),
    ]
    assert {problem.where.source for problem in problems} == {str(tmp_path / "topics.csv")}
    assert all(problem.remedy for problem in problems)
    assert ontology.concepts.parents(topic("Stew")) == (topic("Soup"),)
    assert len(labels(ontology, topic("Soup"), "altLabel")) == 1


def test_a_table_that_is_neither_topics_nor_synonyms(tmp_path: Path) -> None:
    with pytest.raises(OntologyError, match=r"topics.csv:1: .*Write `term,root`, or `topic,label"):
        load(tmp_path, "name,label\na,b\n")


def test_a_topic_needs_only_a_preferred_label(tmp_path: Path) -> None:
    file = tmp_path / "t.ttl"
    file.write_text(
        "@prefix s: <http://www.w3.org/2004/02/skos/core#> ."
        "@prefix o: <http://www.w3.org/2002/07/owl#> ."
        '<urn:a> s:prefLabel "climate" . <urn:b> a o:Class ; s:prefLabel "class" .'
        '<urn:c> a o:ObjectProperty ; s:prefLabel "property" .'
        '<urn:d> a s:ConceptScheme ; s:prefLabel "scheme" .'
    )
    ontology = Ontology.load(file)
    assert list(ontology.concepts) == [NamedNode("urn:a")]


def test_topics_of_a_table_find_items(tmp_path: Path) -> None:
    ontology = load(tmp_path, "topic,label,language,broader\nHome,,,\nSoup,Suppe,de,Home\n")
    engine = Engine(ontology)
    engine.subscribe("home", Topics(("Home",)).query(known_concepts(ontology)))
    item = NamedNode("urn:item")
    for text, count in (("Gute Suppen", 1), ("Good stew", 0)):
        title = (item, RSS["title"], Literal(text, language="de"))
        assert (
            len(engine.match(Publication.of("urn:p", [(item, TYPE, RSS["item"]), title]))) == count
        )


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ('topic,label\nSoup,soup\nStew,"stew\nBread,bread\n', 3),
        ('topic,label\n"a\nb",soup\n\nStew,"stew\nBread,"bread"\n', 5),
        ('topic,label\nStew,"stew"s\n', 2),
        ('topic,"label\nStew,stew\n', 1),
        ("topic,label\nStew," + 131_073 * "x", 2),
    ],
)
def test_a_quotation_mark_too_many_or_too_few(table: str, line: int, tmp_path: Path) -> None:
    with pytest.raises(OntologyError, match=rf"topics.csv:{line}: not CSV: .*quotation mark"):
        load(tmp_path, table, [])


def test_texts_with_control_characters(tmp_path: Path) -> None:
    """A text with a line break hides rows if a quotation mark is missing."""
    problems: list[Problem] = []
    table = 'topic,label,note\nSoup,"soup\nStew,stew"\nBread,br\0ead\nTea,tea,"a\nb"\nRice\n'
    found = load(tmp_path, table, problems).concepts
    assert {topic("Tea"), topic("Rice")} == {one for one in found if "topic:" in str(one)}
    assert [problem.where.line for problem in problems] == [2, 4]
    assert all("a control character, such as a tab" in problem.what for problem in problems)


def test_proper_names(tmp_path: Path) -> None:
    problems: list[Problem] = []
    table = "topic,label,language,proper_name\nTurkey,,,Yes\nBread,,,no\nTea,tea,,maybe\n"
    labels = load(tmp_path, table, problems).labels()
    assert {label.text for label in labels if label.is_proper} == {"Turkey"}
    assert "Bread" in {label.text for label in labels}
    assert [str(one.where)[-5:] + one.what for one in problems] == [
        "csv:4`proper_name` is 'maybe', but must be yes or no"
    ]


def test_a_topic_is_displayed_by_its_name(tmp_path: Path) -> None:
    """Its first label may be one of many words."""
    table = 'topic,label,language,broader\n"Events, tourism/€",concert,en,politics\nLaw,,,\n'
    names = load(tmp_path, table).shown_names
    assert names.shown(topic("Events%2C%20tourism%2F%E2%82%AC")) == "Events, tourism/€"
    assert names.shown(topic("Law")) == "Law"
    assert names.shown(NAMES) == "news:Politics"


@pytest.mark.parametrize("tag", ["xx-12", "en-x", "en-1", "en-a", "English", "e"])
def test_a_tag_that_is_no_language_tag_is_reported(tag: str, tmp_path: Path) -> None:
    problems: list[Problem] = []
    load(tmp_path, f"topic,label,language\nSoup,soup,{tag}\n", problems)
    assert [one.what for one in problems] == [f"{tag!r} is not a language tag, such as `en`"]


def test_a_broader_topic_in_another_case(tmp_path: Path) -> None:
    table = "topic,label,broader\nClimate,climate change,\nCarbon,,climate\n"
    parents = load(tmp_path, table).concepts.parents
    assert parents(topic("Carbon")) == (topic("Climate"),)


def test_a_byte_far_from_the_beginning_that_is_not_utf8(tmp_path: Path) -> None:
    table = b"\xef\xbb\xbftopic\n" + 20_000 * "€\n".encode() + b"ab\xe9\n"
    with pytest.raises(OntologyError, match="csv:20002:3: not UTF-8"):
        load(tmp_path, table)


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    with pytest.raises(OntologyError, match="csv:2: two columns are called `label`"):
        load(tmp_path, "\ntopic,label,Label\nSoup,soup,Suppe\n")


def test_empty_lines_before_the_names_of_columns(tmp_path: Path) -> None:
    problems: list[Problem] = []
    ontology = load(tmp_path, "\n;;\n \ntopic;label;language\nSoup;Suppe;de\n;x;\n", problems)
    assert labels(ontology, topic("Soup"), "prefLabel") == [Literal("Suppe", language="de")]
    assert [problem.where.line for problem in problems] == [6]


def test_any_text_in_angle_brackets_is_an_iri(tmp_path: Path) -> None:
    iris = ["tag:e@example.org,2025:a", "mailto:a@example.org", "did:example:1"]
    concepts = load(tmp_path, "topic\n" + "".join(f'"<{iri}>"\n' for iri in iris)).concepts
    assert set(map(NamedNode, iris)) <= set(concepts)
