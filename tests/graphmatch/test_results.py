"""Reports as rows and data frames, and engines, ontologies, reports and explanations as HTML."""

from __future__ import annotations

import json
import sys
from operator import methodcaller
from xml.etree import ElementTree

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyoxigraph import Literal, NamedNode

from graphmatch import (
    Engine,
    Match,
    MatchReport,
    MatchReports,
    Results,
    SubscriptionParser,
    UndecidedSubscription,
)
from graphmatch.published.naive import Naive
from semantic import GraphMatchError, Ontology, Place, Problem, Publication
from semantic.vocabulary import OWL, SUBCLASS, TYPE

DATA = b"""
<urn:g1> { <urn:a> <urn:p> 5, "five"@en ; <urn:q> [] }
<urn:g2> { <urn:b> <urn:p> 6 }
<urn:g3> { <urn:c> <urn:r> 7 }
"""
GRAPH = "<urn:a> <urn:s> <urn:p> .\n"


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.subscribe("select", "SELECT ?x ?graph { ?x <urn:p> ?graph }")
    engine.subscribe("optional", "SELECT ?x ?y { ?x <urn:p> 6 OPTIONAL { ?x <urn:q> ?y } }")
    engine.subscribe("ask", "ASK { ?x <urn:q> ?y }")
    engine.subscribe("construct", "CONSTRUCT { ?x <urn:s> <urn:p> } { ?x <urn:p> 5 }")
    return engine


def rows(results: Results) -> set[tuple[tuple[str, str], ...]]:
    return {tuple(sorted(row.items())) for row in results.to_dicts()}


def row(publication: str, subscription: str, **terms: str) -> tuple[tuple[str, str], ...]:
    names = {name.replace("_", "?"): term for name, term in terms.items()}
    whole = {"publication": publication, "subscription": subscription, **names}
    return tuple(sorted(whole.items()))


INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
ROWS = {
    row("urn:g1", "select", x="<urn:a>", _graph=f'"5"^^{INTEGER}'),
    row("urn:g1", "select", x="<urn:a>", _graph='"five"@en'),
    row("urn:g1", "ask"),
    row("urn:g1", "construct", graph=GRAPH),
    row("urn:g2", "select", x="<urn:b>", _graph=f'"6"^^{INTEGER}'),
    row("urn:g2", "optional", x="<urn:b>"),
}


def test_each_solution_is_a_row_of_its_publication_and_subscription(engine: Engine) -> None:
    assert rows(engine.filter(DATA, "trig")) == ROWS
    reports = [*engine.filter(DATA, "trig")]
    assert set[object]().union(*map(rows, reports)) == ROWS
    assert rows(MatchReports(reports)) == ROWS
    assert json.loads(json.dumps(reports[0].to_dicts())) == reports[0].to_dicts()


def test_frames_have_the_same_rows(engine: Engine) -> None:
    reports = [*engine.filter(DATA, "trig")]
    table = MatchReports(reports).to_arrow()
    assert {str(kind) for kind in table.schema.types} == {"string"}
    assert table.column_names[:2] == ["publication", "subscription"]
    frames = MatchReports(reports).to_polars(), MatchReports(reports).to_pandas()
    assert isinstance(frames[0], pl.DataFrame)
    assert isinstance(frames[1], pd.DataFrame)
    known = frames[1].where(frames[1].notna(), None).to_dict("records")
    for found in (table.to_pylist(), frames[0].to_dicts(), known):
        assert {
            tuple(sorted((str(name), value) for name, value in one.items() if value is not None))
            for one in found
        } == ROWS


def test_plain_terms_have_no_syntax(engine: Engine) -> None:
    frame = engine.filter(DATA, "trig").to_pandas(plain=True)
    selected = frame[frame["subscription"] == "select"]
    assert sorted(selected["?graph"]) == ["5", "6", "five"]
    assert set(selected["x"]) == {"urn:a", "urn:b"}


def test_blank_nodes_and_triple_terms_are_written_in_either_form() -> None:
    engine = Engine()
    engine.subscribe("all", "SELECT ?y { <urn:a> <urn:q> ?y }")
    for text, begin in ((b"[]", "_:"), (b"<<( <urn:s> <urn:p> 1 )>>", "<<( <urn:s>")):
        (report,) = engine.filter(b"<urn:a> <urn:q> " + text + b" .", "ttl")
        for plain in (False, True):
            assert report.to_dicts(plain=plain)[0]["y"].startswith(begin)


def test_events_have_rows() -> None:
    engine = Engine()
    engine.subscribe("cheap", "SELECT ?p { ?e attribute:price ?p FILTER(?p < 400) }")
    table = pa.table({"id": ["e1", "e2"], "price": [399, 500]})
    found = engine.match_events(table)
    expected = [{"publication": "e1", "subscription": "cheap", "p": "399"}]
    assert found.to_dicts(plain=True) == found[0].to_dicts(plain=True) == expected


def test_a_report_without_matches_has_no_rows_and_two_columns() -> None:
    report = Engine().match(Publication.of("urn:p", []))
    assert report.to_dicts() == []
    columns = ["publication", "subscription"]
    assert report.to_arrow().column_names == list(report.to_polars().columns) == columns
    assert list(report.to_pandas().columns) == columns


def test_reports_of_other_matchers_have_rows_and_html() -> None:
    matcher = Naive(Ontology())
    matcher.subscribe(SubscriptionParser().parse("all", "SELECT ?x { ?x <urn:p> 5 }"))
    triple = NamedNode("urn:a"), NamedNode("urn:p"), Literal(5)
    publications = [Publication.of("urn:g", [triple]), Publication.of("urn:h", [])]
    found = MatchReports(matcher.match_many(publications)).to_dicts()
    assert found == [{"publication": "urn:g", "subscription": "all", "x": "<urn:a>"}]
    assert "?x = <urn:a>" in text_of(matcher.match(publications[0]))


def test_reports_are_an_iterator_that_conversions_use_up(engine: Engine) -> None:
    reports = engine.filter(DATA, "trig")
    assert next(reports).publication == "urn:g1"
    assert {found["publication"] for found in reports.to_dicts()} == {"urn:g2"}
    assert list(reports) == []


@pytest.mark.parametrize("library", ["pyarrow", "polars", "pandas"])
def test_the_error_of_a_missing_library_names_the_command(
    library: str, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    convert = {
        "pyarrow": MatchReport.to_arrow, "polars": MatchReport.to_polars,
        "pandas": MatchReport.to_pandas,
    }  # fmt: skip
    with pytest.raises(GraphMatchError, match=rf"{library} is not installed.*\[frames\]"):
        convert[library](engine.match(Publication.of("urn:p", [])))
    if library == "pyarrow":
        with pytest.raises(GraphMatchError, match=rf"{library} is not installed.*\[frames\]"):
            engine.match_events(pl.DataFrame({"id": ["e"]}))


# --- HTML ----------------------------------------------------------------------------------------

HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"


def text_of(shown: object) -> str:
    """Return the text of an object's HTML, which must be well-formed and self-contained."""
    html: str = methodcaller("_repr_html_")(shown)
    element = ElementTree.fromstring(html)
    tags = {each.tag for each in element.iter()}
    assert not tags & {"script", "style", "link", "img", "a"}
    assert not set("\x1b\u202e") & set(html)
    return "\n".join(element.itertext())


def test_html_shows_the_engine_and_escapes_its_subscriptions() -> None:
    engine = Engine(Ontology([(NamedNode("urn:a"), SUBCLASS, NamedNode("urn:b"))]))
    engine.subscribe(HOSTILE, "ASK { ?s ?p '<script>' }")
    engine.subscribe_many((f"s{number}", "ASK { ?s ?p 5 }") for number in range(20))
    text = text_of(engine)
    assert "21 subscriptions" in text
    assert "2 classes" in text
    assert "<script>alert(1)</script>\\x1b[31m\\u202e" in text
    assert "s8" in text
    assert "s9" not in text
    assert "… and 11 more" in text


def test_html_of_a_large_engine_shows_some_subscriptions() -> None:
    engine = Engine()
    engine.subscribe_many((f"s{number}", "ASK { ?s ?p 5 }") for number in range(8193))
    for number in range(5):
        engine.unsubscribe(f"s{number}")
    engine.subscribe("again", "ASK { ?s ?p 6 }")
    assert "… and 8,179 more" in text_of(engine)
    for number in range(5, 8192):
        engine.unsubscribe(f"s{number}")
    assert "s8192" in text_of(engine)


def test_html_counts_the_terms_of_an_ontology() -> None:
    names = [NamedNode(f"http://e/c/{number}") for number in range(1000)]
    ontology = Ontology((name, TYPE, OWL["Class"]) for name in names)
    assert "1,000 classes" in text_of(ontology)


def test_html_shows_the_first_matches_of_a_report() -> None:
    engine = Engine()
    engine.subscribe_many((f"s{n}", "SELECT ?y { <urn:a> <urn:p> ?y }") for n in range(10_000))
    publication = Publication.of(
        "urn:g",
        [(NamedNode("urn:a"), NamedNode("urn:p"), Literal(f"{HOSTILE}{n}")) for n in range(9)],
    )
    report = engine.match(publication)
    text = text_of(report)
    assert "10,000 matches" in text
    assert "… and 9,990 more" in text
    assert text.count("?y = ") == 30
    assert len(report._repr_html_()) < 20_000
    assert "0 matches" in text_of(Engine().match(publication))


FORMS = ("SELECT ?x ?y {} ORDER BY ?x", "CONSTRUCT {{ ?x <urn:q> ?y }} WHERE {}")


@pytest.mark.parametrize("form", FORMS)
def test_html_reads_few_of_very_many_evaluated_solutions(form: str) -> None:
    engine = Engine()
    for name in "ab":
        engine.subscribe(name, form.format("{ ?x <urn:p> 1 . ?y <urn:p> 1 }"))
    subjects = [NamedNode(f"urn:{number}") for number in range(50)]
    report = engine.match(
        Publication.of("urn:g", [(each, NamedNode("urn:p"), Literal(1)) for each in subjects])
    )
    text = text_of(report)
    assert text.count("\n…\n… and 1 more") == 1
    assert len(text.splitlines()) == 10


def test_html_says_that_there_are_more_solutions_if_the_first_are_equal() -> None:
    solutions = tuple({"y": Literal(number // 4)} for number in range(5))
    text = text_of(MatchReport("urn:g", (Match("s", "urn:g", solutions),)))
    assert "?y = 0\n…" in text


def test_html_shows_problems_and_undecided_subscriptions() -> None:
    problems = tuple(Problem(f"bad {HOSTILE} {n}", Place("urn:g"), "Fix it.") for n in range(12))
    undecided = (UndecidedSubscription("a", (), matched=False),)
    text = text_of(MatchReport("urn:g", (), problems=problems, undecided=undecided))
    assert "1 undecided" in text
    assert "Fix it." in text
    assert "… and 2 more" in text


def test_html_shows_why_a_subscription_matches_or_fails() -> None:
    engine = Engine()
    engine.subscribe("all", "SELECT ?y { <urn:a> <urn:p> ?y FILTER(?y = '<script>') }")
    for value, mark in (("<script>", "✓"), ("<b>", "✗")):
        triple = NamedNode("urn:a"), NamedNode("urn:p"), Literal(value)
        explanation = engine.explain("all", Publication.of("urn:g", [triple]))
        text = text_of(explanation)
        assert all(line.strip() in text for line in str(explanation).splitlines())
        assert mark in text


def test_html_of_a_long_explanation_shows_its_first_lines() -> None:
    engine = Engine()
    patterns = " . ".join(f"?x <urn:p{number}> ?y{number}" for number in range(200))
    engine.subscribe("all", f"ASK {{ {patterns} }}")
    triples = [(NamedNode("urn:x"), NamedNode(f"urn:p{n}"), Literal(n)) for n in range(200)]
    text = text_of(engine.explain("all", Publication.of("urn:g", triples)))
    assert text.count("✓") == 50
    assert "… and 300 more" in text
