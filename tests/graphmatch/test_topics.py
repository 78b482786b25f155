"""Topics and words: their matches and errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, SubscriptionParser, read_subscriptions
from graphmatch.explain.evidence import distinct_reasons
from graphmatch.published import make
from graphmatch.subscription_files import subscribe_files, subscribe_topics
from graphmatch.topics import Topics, known_concepts
from semantic import Ontology, Publication
from semantic.errors import Place, Problem, SubscriptionError
from semantic.mapping import MappingFunction
from semantic.terms import Triple
from semantic.vocabulary import BROADER, CONTENT, DC, GM, LABEL, RSS, SAME_AS, SKOS, TYPE

FOOD, SOUP = NamedNode("http://e/food#Food"), NamedNode("http://e/food#Soup")
KNOWN = Ontology(
    [
        (SOUP, BROADER, FOOD),
        (SOUP, LABEL, Literal("soup", language="en")),
        (FOOD, LABEL, Literal("Food", language="en")),
    ],
    prefixes={"my": "http://e/food#"},
)
TEXTS = {"title": RSS["title"], "description": RSS["description"], "content": CONTENT["encoded"]}
TEXTS["category"] = DC["subject"]


def item(said: Mapping[str, str]) -> Publication:
    node = NamedNode("http://e/1")
    triples: list[Triple] = [(node, TYPE, RSS["item"])]
    triples += [(node, TEXTS[name], Literal(text)) for name, text in said.items()]
    triples.append((NamedNode("http://e/"), RSS["title"], Literal("Channel of onions")))
    return Publication.of("http://e/1", triples)


def matches(topics: Topics, ontology: Ontology | None = None, **said: str) -> bool:
    engine = Engine(ontology)
    subscribe_topics(engine, topics)
    report = engine.match(item(said))
    for match in report:
        assert [dict(solution) for solution in match.solutions] == [
            {"item": NamedNode("http://e/1")}
        ]
    return bool(report)


@pytest.mark.parametrize(
    ("word", "text", "expected"),
    [
        ("soup", "A Soup.", True),
        ("soup", "soups", False),
        ("soup", "<p>soup</p>", True),
        ("hot soup", "Hot\n  soup", True),
        ("hot soup", "hot, soup", True),
        ("hot soup", "<li>hot</li><li>soup</li>", False),
        ("soup", "so\N{SOFT HYPHEN}up, s&shy;oup", True),
        ("so\N{SOFT HYPHEN}up", "soup", True),
        ("soup", "<b>S</b>oup", True),
        ("soup", '<a href="https://e.org/soup">here</a> https://e.org/soup', False),
        ("pa\u0302te\u0301", "PÂTÉ", True),
        ("pâté", "p&acirc;te\u0301", True),
        ("straße", "STRASSE", True),
        ("finance", "\ufb01nance", True),
        ("C++", "learn c++ today", True),
        ("a.b", "axb", False),
        ("pâté", "Pâté de campagne", True),
        ("caf", "cafe\u0301", False),
        ("cafe", "cafe\u0301", False),
        ("花園", "屋頂上的花園裡", True),
        ('say "hi"', 'they say "hi" there', True),
        ("a\\b", "a\\b", True),
    ],
)
def test_words(word: str, text: str, expected: bool) -> None:
    for place in ("title", "description", "content"):
        assert matches(Topics(words=(word,)), **{place: text}) == expected
        assert matches(Topics(words=(word,)), title="x", description="") is False
    assert matches(Topics(words=("x",), not_words=(word,)), title="x", content=text) != expected


@pytest.mark.parametrize("ontology", [None, KNOWN])
def test_words_are_derived_if_a_subscription_needs_them(
    ontology: Ontology | None, tmp_path: Path
) -> None:
    """A query can name ``gm:words`` however it was subscribed, and after a restore."""
    said = item({"title": "Hot <i>S</i>oup"})
    text = 'ASK { ?i gm:words ?w FILTER(CONTAINS(?w, " soup ")) }'
    engine = Engine(ontology)
    assert not [t for t in engine.enrich(said).triples if t[1] == GM["words"]]
    engine.subscribe("a", "ASK { ?i a rss:channel }")
    engine.replace("a", text)
    engine.subscribe_many([("b", "ASK { ?i a rss:item FILTER NOT EXISTS { ?i gm:words ?w } }")])
    assert engine.match(said).subscriptions == ("a",)
    engine.save(tmp_path / "saved")
    assert Engine.open(tmp_path / "saved").match(said).subscriptions == ("a",)
    engine.replace_ontology(Ontology())
    assert engine.match(said).subscriptions == ("a",)
    other = Engine(ontology)
    other.subscribe_many([("b", "ASK { ?i a rss:item FILTER NOT EXISTS { ?i gm:words ?w } }")])
    other.save(tmp_path / "other")
    assert not Engine.open(tmp_path / "other").match(said)
    assert "because “soup” is in rss:title" in str(engine.explain("a", said))
    engine.subscribe("c", "ASK { ?i gm:words ?w FILTER(STRLEN(?w) > 5) }")
    assert "because these are the words of rss:title" in str(engine.explain("c", said))
    naive = make("naive", ontology or Ontology())
    naive.subscribe(SubscriptionParser().parse("a", text))
    assert naive.match(said)


def test_words_are_seen_by_those_who_name_them() -> None:
    engine = Engine()
    engine.subscribe("any", "SELECT ?p { ?i a rss:item ; ?p ?o }")
    engine.subscribe("path", "SELECT ?o { ?i a rss:item ; !rdf:type ?o }")
    said = item({"title": "Soup"})
    before = [match.solutions for match in engine.match(said).matches]
    engine.subscribe("named", "SELECT ?w { ?i gm:words ?w OPTIONAL { ?i ?p ?w } }")
    *after, named = (match.solutions for match in engine.match(said).matches)
    assert after == before
    assert [list(map(str, solution.values())) for solution in named] == [['" soup "']]


@pytest.mark.parametrize("name", ["engine", "naive"])
def test_words_and_mapping_functions(name: str) -> None:
    """Functions can add public ``gm:words``, but cannot see the words of texts."""
    functions = [
        MappingFunction("give", 'CONSTRUCT { ?i gm:words " tag " } { ?i rss:title ?t }'),
        MappingFunction("see", "CONSTRUCT { ?i <urn:seen> ?w } { ?i gm:words ?w }"),
    ]
    known = Ontology(mapping=functions)
    matcher = Engine(known) if name == "engine" else make("naive", known)
    for id, text in {
        "named": "SELECT ?o { ?i a rss:item ; gm:words ?o }",
        "any": "SELECT ?o { ?i a rss:item ; ?p ?o FILTER(?p = gm:words) }",
        "seen": "SELECT ?o { ?i <urn:seen> ?o }",
    }.items():
        matcher.subscribe(SubscriptionParser().parse(id, text))
    found = {
        match.subscription: {solution["o"].value for solution in match.solutions}
        for match in matcher.match(item({"title": "Soup"})).matches
    }
    assert found == {"named": {" tag ", " soup "}, "any": {" tag "}, "seen": {" tag "}}


def test_an_engine_that_was_opened_makes_words_for_its_first_subscription(tmp_path: Path) -> None:
    engine = Engine()
    engine.subscribe("a", "ASK { ?i a rss:channel }")
    engine.save(tmp_path / "saved")
    opened = Engine.open(tmp_path / "saved")
    opened.subscribe("b", 'ASK { ?i gm:words ?w FILTER(CONTAINS(?w, " soup ")) }')
    assert opened.match(item({"title": "Soup"})).subscriptions == ("b",)


@pytest.mark.parametrize("name", ["engine", "naive"])
def test_words_of_an_item_with_a_synonym(name: str) -> None:
    same = Ontology([(NamedNode("http://e/1"), SAME_AS, NamedNode("http://a/alias"))])
    text = 'ASK { ?i a rss:item ; gm:words ?w FILTER(CONTAINS(?w, " soup ")) }'
    matcher = Engine(same) if name == "engine" else make("naive", same)
    matcher.subscribe(SubscriptionParser().parse("a", text))
    assert matcher.match(item({"title": "Soup"}))


def test_the_channel_is_not_searched() -> None:
    assert not matches(Topics(words=("onions",)), title="Soup")


@pytest.mark.parametrize("any_of", [False, True])
def test_all_or_any(any_of: bool) -> None:
    wanted = Topics(("Food",), ("soup", "hot"), not_words=("cold",), any_of=any_of)
    assert matches(wanted, category="food", title="Hot", content="soup")
    assert matches(wanted, title="Hot", content="soup") == any_of
    assert matches(wanted, category="FOOD") == any_of
    assert matches(wanted, content="hot") == any_of
    assert not matches(wanted, category="food", title="Hot", content="soup", description="cold")
    assert not matches(wanted, category="foods")


@pytest.mark.parametrize("name", ["Food", "food", "my:Food", "http://e/food#Food"])
def test_a_topic_is_found_by_label_name_and_iri(name: str) -> None:
    assert matches(Topics((name,)), KNOWN, title="Soup of the day")
    assert not matches(Topics((name,)), KNOWN, title="Bread")


def test_an_unknown_topic() -> None:
    with pytest.raises(SubscriptionError, match=r"called 'suop'. Is my:Soup meant\?"):
        subscribe_topics(Engine(KNOWN), Topics(("suop",)))
    with pytest.raises(SubscriptionError, match=r"called 'http://e/food#Suop'. Is my:Soup meant"):
        subscribe_topics(Engine(KNOWN), Topics(("http://e/food#Suop",)))


@pytest.mark.parametrize(
    ("topics", "said"),
    [
        (Topics(not_words=("a",)), "no topic and no word is given"),
        (Topics(words=("a or",)), "words: a text is missing in 'a or'"),
        (Topics(not_topics=("or a",), words=("b",)), "not-topics: a text is missing in 'or a'"),
        (Topics(words=(" ",)), "a text is missing in"),
        (Topics(words=("x",), not_words=(";",)), "“;” has no letter or digit"),
        (Topics(words=("so\ud800up",)), "a topic or word has a lone surrogate"),
        (Topics(words=("soup or  or bread",)), "a text is missing in"),
        (Topics(topics=("a",), not_topics=(" or b",)), "a text is missing in"),
        (Topics(words=("soup or ;",)), "“;” has no letter or digit"),
    ],
)
def test_nothing_to_look_for(topics: Topics, said: str) -> None:
    with pytest.raises(SubscriptionError, match=said):
        topics.query()


# --- Alternatives and exclusions -----------------------------------------------------------------

HARM, TEA = NamedNode("http://e/food#Harm"), NamedNode("http://e/food#Tea")
LARGER = Ontology(
    [
        *KNOWN.triples,
        (TEA, LABEL, Literal("tea", language="en")),
        (HARM, LABEL, Literal("Death or injury", language="en")),
        *((one, TYPE, SKOS["Concept"]) for one in (FOOD, SOUP, TEA, HARM)),
    ],
    prefixes={"my": "http://e/food#"},
)


@pytest.mark.parametrize("ontology", [None, LARGER])
def test_alternatives_of_topics(ontology: Ontology | None) -> None:
    wanted = Topics(("Soup OR\n tea", "food"), not_topics=("death or injury",))
    assert matches(wanted, ontology, category="tea", title="Food") == (ontology is not None)
    both = item({"category": "Tea"})
    engine = Engine(ontology)
    subscribe_topics(engine, Topics(("Soup or tea",)), "either")
    subscribe_topics(engine, Topics(("Soup or tea", "Tea")), "both")
    subscribe_topics(engine, Topics(("Soup or tea", "Soup")), "none")
    subscribe_topics(engine, Topics(("Soup or food", "Tea"), any_of=True), "any")
    subscribe_topics(engine, Topics(("Tea",), not_topics=("soup or tea",)), "excluded")
    subscribe_topics(engine, Topics(("Tea",), not_topics=("soup", "food")), "not excluded")
    assert sorted(engine.match(both).subscriptions) == ["any", "both", "either", "not excluded"]


def test_a_name_with_or_is_one_topic() -> None:
    named = Topics(("death or injury",)).query(known_concepts(LARGER))
    assert "dcterms:subject <http://e/food#Harm> ." in named
    assert "UNION" not in named
    with pytest.raises(SubscriptionError, match="no term called 'Death'"):
        Topics(("Death or Food",)).query(known_concepts(LARGER))


def test_narrower_topics_are_excluded() -> None:
    wanted = Topics(words=("hot",), not_topics=("Food",))
    assert matches(wanted, LARGER, title="Hot tea")
    assert not matches(wanted, LARGER, title="Hot tea", content="and soup")


@pytest.mark.parametrize("place", ["title", "description", "content", "category"])
def test_topics_are_found_in_every_text(place: str) -> None:
    assert matches(Topics(("Food",)), LARGER, **{place: "Soups"})
    assert not matches(Topics(words=("x",), not_topics=("Food",)), LARGER, **{place: "soup x"})


def test_alternatives_of_words() -> None:
    wanted = Topics(words=("law or peace treaty", "Or"), not_words=("live or breaking news",))
    assert matches(wanted, title="Law, or not")
    assert matches(wanted, title="A peace treaty", content="or")
    assert not matches(wanted, title="A treaty or peace")
    assert not matches(wanted, title="Law")
    assert not matches(wanted, title="Law or not", description="Breaking news")


@pytest.mark.parametrize("ontology", [None, LARGER])
def test_the_index_decides_alternatives(ontology: Ontology | None) -> None:
    engine = Engine(ontology)
    subscribe_topics(engine, Topics(("soup or tea", "Food"), ("hot or cold", "bowl")), "all")
    assert engine.index_plan("all").exact
    assert len(engine.index_plan("all").entries) == 1
    many = tuple(f"w{n} or x{n}" for n in range(30))
    subscribe_topics(engine, Topics(("soup", "tea"), many, any_of=True), "any")
    assert engine.index_plan("any").residual == ("UNION",)
    assert len(engine.index_plan("any").entries) == 2


def test_reasons_name_the_words_and_labels() -> None:
    engine = Engine(LARGER)
    subscribe_topics(engine, Topics(("Food or Tea",), ("hot or cold", "of the day"), any_of=False))
    report = engine.match(item({"title": "Hot and cold soup", "content": "Soup of the day"}))
    [evidence] = engine.evidence(report).values()
    assert distinct_reasons(evidence) == [
        "my:Soup ⊑ my:Food",
        "“soup” in rss:title names my:Soup",
        "“hot” and “cold” are in rss:title",
        "“of the day” is in content:encoded",
    ]


@pytest.mark.parametrize(
    ("topics", "failure", "why"),
    [
        (
            Topics(words=("hot",), not_topics=("Tea or Food",)),
            "excluded by the topic my:Tea or my:Food",
            "my:Soup ⊑ my:Food; “soup” in rss:title names my:Soup",
        ),
        (
            Topics(("Food",), not_words=("cold", "very hot or warm")),
            "excluded by the word “very hot” or “warm”",
            "“very hot” is in rss:title",
        ),
    ],
)
def test_what_excluded_an_item_is_explained(topics: Topics, failure: str, why: str) -> None:
    engine = Engine(LARGER)
    subscribe_topics(engine, topics, "s")
    explanation = engine.explain("s", item({"title": "Very hot soup"}))
    assert explanation.failure == failure
    assert [near.why for near in explanation.nearest] == [why]
    assert f"but {why}" in str(explanation)


# --- Files ---------------------------------------------------------------------------------------

LINES = """\
{"id": "a", "topics": ["Soup"], "words": "hot", "comment": "Hot soup."}
{"id": "b", "words": ["x"], "not-word": ["y"]}
{"id": "c", "topics": ["Soop"]}
{"id": "d", "words": [1]}
{"id": "e", "words": ["x"], "match": "some"}
{"words": ["x"]}
{"id": "f", "topics": "Food or Soup", "not-topics": ["Food"], "not-words": "cold or iced"}
"""
TABLES = """\
seen = "seen.db"

[[subscription]]
id = "a"
topics = ["Soup"]
words = "hot"
comment = "Hot soup."

[[subscription]]
id = "b"
query = "ASK { ?s ?p }"
"""


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "topics.jsonl"
    path.write_text(LINES)
    engine, problems = Engine(KNOWN), list[Problem]()
    subscribe_files(engine, [path], problems.append)
    subscription, other = engine.subscriptions
    assert other.query.text.count("NOT EXISTS") == 2
    assert (subscription.id, subscription.comment) == ("a", "Hot soup.")
    assert engine.match(item({"title": "hot soup"})).subscriptions == ("a",)
    assert [str(problem).removeprefix(f"{path}:") for problem in problems] == [
        "2 (b): a subscription by topics and words has no field `not-word`. "
        "There are id, topics, words, not-topics, not-words, match, comment.",
        "3 (c): the ontology has no term called 'Soop'. Is my:Soup meant?",
        '4 (d): the field `words` is not a list of strings. Write ["…", "…"].',
        "5 (e): the field `match` is neither `all` nor `any`. Write `all` or `any`.",
        '6: the field `id` is missing. Write {"id": "…", "query": "…"} on one line.',
    ]


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(TABLES)
    problems: list[Problem] = []
    found = list(read_subscriptions(path, on_problem=problems.append))
    assert [(one.id, one.comment) for one in found] == [("a", "Hot soup.")]
    # There is no ontology, so this is a category.
    assert "dc/elements/1.1/subject" in found[0].query.text
    (problem,) = problems
    assert (problem.where.source, problem.where.line) == (str(path), 9)
    # Folders are not searched.
    assert list(read_subscriptions(tmp_path, on_problem=problems.append)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a =", ": not TOML: Invalid value (at end of document). Correct"),
        ("a = 1\nb : 2", ":2:3: not TOML: Expected '='"),
        ("a = 1", ": the file has no [[subscription]]"),
        ("subscription = 1", ": `subscription` is not an array of tables"),
        ("[[subscription]]\nid = 'a'\nnot-words = 'b'", ":1 (a): no topic and no word is given"),
    ],
)
def test_invalid_toml_is_refused(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(text)
    problems: list[Problem] = []
    assert list(read_subscriptions(path, on_problem=problems.append)) == []
    assert str(problems[0]).startswith(f"{path}{said}")


def test_place_of_a_row() -> None:
    with pytest.raises(SubscriptionError, match=r"^a\.jsonl:3: .* has no field `topic`"):
        Topics.of_row({"topic": ["x"]}, Place("a.jsonl", 3))


BOOK, ITEM, SOUPS = "<urn:book>", "<http://e/1>", '" soup "'


@pytest.mark.parametrize("known", [(), (("urn:a", "urn:in", "urn:b"),)])
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("(<urn:in>|gm:words)+", [(BOOK, ITEM), (BOOK, SOUPS), (ITEM, SOUPS)]),
        ("<urn:in>*/gm:words", [(BOOK, SOUPS), (ITEM, SOUPS)]),
        ("(<urn:in>/gm:words?)+", [(BOOK, ITEM), (BOOK, SOUPS)]),
        ("(^gm:words/gm:words)+", [(SOUPS, SOUPS)]),
    ],
)
def test_words_at_the_ends_of_a_path(
    known: tuple[tuple[str, str, str], ...], path: str, expected: list[tuple[str, str]]
) -> None:
    """Words are hidden from paths that do not name them; the ontology does not matter."""
    stated = [(NamedNode(s), NamedNode(p), NamedNode(o)) for s, p, o in known]
    said = item({"title": "Soup"})
    triple = NamedNode("urn:book"), NamedNode("urn:in"), NamedNode("http://e/1")
    publication = Publication.of(said.id, [*said.triples, triple])
    subscription = SubscriptionParser().parse("s", f"SELECT ?a ?b {{ ?a {path} ?b }}")
    for matcher in (Engine(Ontology(stated)), make("naive", Ontology(stated))):
        matcher.subscribe(subscription)
        (match,) = matcher.match(publication)
        found = [(str(s["a"]), str(s["b"])) for s in match.solutions]
        assert sorted(found) == sorted(expected)
