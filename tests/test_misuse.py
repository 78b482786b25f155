"""Wrong calls of the library raise an error that names the mistake and the right call."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
import rdflib
from pyoxigraph import NamedNode, RdfFormat, parse

from graphmatch import Engine, SubscriptionParser, Topics
from semantic import Ontology, Publication, read_publications
from semantic.errors import GraphMatchError, Problem, SubscriptionError

TURTLE = "<urn:a> a <urn:B> ."
TRIG = f"{TURTLE} GRAPH <urn:g1> {{ <urn:a> a <urn:C> }} GRAPH <urn:g2> {{ <urn:a> a <urn:D> }}"
A = NamedNode("urn:a")
TRIPLES = "Give triples of pyoxigraph's terms: (NamedNode('urn:a'), NamedNode('urn:p'), Literal"


def engine() -> Engine:
    made = Engine()
    made.subscribe("alice", "SELECT ?x { ?x a ?class }")
    return made


def graph(text: str, format: str, kind: type[rdflib.Graph] = rdflib.Graph) -> rdflib.Graph:
    return kind().parse(data=text, format=format)


MISUSE: dict[str, tuple[Callable[[], object], str]] = {
    "triples of texts": (
        lambda: Publication.of("p", [("urn:a", "urn:b", "urn:c")]),  # type: ignore[list-item]
        f"p: triple 1: the str 'urn:a' is not an RDF term. {TRIPLES}",
    ),
    "a text for triples": (
        lambda: Publication.of("p", TURTLE),  # type: ignore[arg-type]
        f"p: triple 1: the str '<' is not a tuple of three. {TRIPLES}",
    ),
    "triples of rdflib": (
        lambda: Publication.of("p", graph(TURTLE, "turtle")),
        "the URIRef rdflib.term.URIRef('urn:a') is not an RDF term.",
    ),
    "quads for triples": (
        lambda: Publication.of("p", parse(TURTLE, format=RdfFormat.TURTLE)),  # type: ignore[arg-type]
        "p: triple 1: the Quad <Quad subject=",
    ),
    "one bad triple of several": (
        lambda: Publication.of("p", [(A, A, A), (A, A, "b")]),  # type: ignore[list-item]
        "p: triple 2: the str 'b' is not an RDF term.",
    ),
    "a text that is matched": (
        lambda: engine().match("text"),  # type: ignore[arg-type]
        "match takes a Publication or an Event, not the str 'text'. Make one by Publication.of(",
    ),
    "a graph of rdflib that is matched": (
        lambda: engine().match(graph(TURTLE, "turtle")),  # type: ignore[arg-type]
        "Publication.from_rdflib(graph); filter(source) and read_publications(source) read",
    ),
    "a publication for a report": (
        lambda: engine().evidence(Publication.of("p", [])),  # type: ignore[arg-type]
        "not the Publication Publication(id='p', triples=(), derived=frozenset(),",
    ),
    "a file's name for an ontology": (
        lambda: Engine("news.ttl"),  # type: ignore[arg-type]
        "the ontology is the str 'news.ttl'. Load it from its files: Engine(Ontology.load(",
    ),
    "a file's name for triples": (
        lambda: Ontology("news.ttl"),  # type: ignore[arg-type]
        "Ontology takes triples. Load a file: Ontology.load('news.ttl').",
    ),
    "a subscription without an id": (
        lambda: engine().subscribe("SELECT ?x { ?x a ?y }"),
        "a subscription is an id and a query, not the str 'SELECT ?x { ?x a ?y }' and None. "
        "Write subscribe('alice', 'SELECT …').",
    ),
    "many subscriptions without ids": (
        lambda: engine().subscribe_many(["SELECT ?x { ?x a ?y }"]),  # type: ignore[list-item]
        "a subscription is an id and a query, not the str 'SELECT ?x { ?x a ?y }' and None.",
    ),
    "a number for an id": (
        lambda: engine().subscribe(3, "ASK { ?x a ?y }"),  # type: ignore[arg-type]
        "a subscription is an id and a query, not the int 3 and the str 'ASK {",
    ),
    "a file that is missing": (
        lambda: engine().filter("missing.ttl"),
        "missing.ttl: cannot be read: No such file or directory. Check the name and permissions.",
    ),
    "a text that is filtered": (
        lambda: engine().filter(TURTLE),
        f"<str>: '{TURTLE}' looks like the content of a document, not like a file name. "
        "Give bytes: text.encode().",
    ),
    "a name with a NUL": (lambda: engine().filter("a\0b"), "cannot be read: embedded null byte."),
    "a list of files that is filtered": (
        lambda: engine().filter(["a.ttl"]),  # type: ignore[arg-type]
        "the list ['a.ttl'] cannot be read. Give the name of a file or folder, bytes, an open",
    ),
    "a file of text": (
        lambda: list(engine().filter(io.StringIO(TURTLE))),  # type: ignore[arg-type]
        "a file in text mode cannot be read. Open it in binary mode: open(name, 'rb').",
    ),
    "a number that is read": (
        lambda: list(read_publications(3)),  # type: ignore[arg-type]
        "the int 3 cannot be read. Give the name of a file or folder, bytes, an open binary file",
    ),
    "an unknown entailment": (
        lambda: Engine(entailment="owl"),
        "entailment: 'owl' is unknown. Use one of: rdfs, owl-rl, none.",
    ),
    "an unknown cut": (
        lambda: engine().filter(b"", split_by="file"),
        "split_by: 'file' is unknown. Use one of: auto, document, graph, item, subject, component.",
    ),
    "an unknown format": (
        lambda: engine().filter(b"", format="turtel"),
        "format: 'turtel' is unknown. Use one of: nt, nq, ttl, trig, n3, rdf, jsonld.",
    ),
    "an unknown reasoner": (
        lambda: Ontology.load(reason="elk"),
        "reasoner_name: 'elk' is unknown. Use one of: hermit, pellet.",
    ),
    "one topic that is a text": (
        lambda: Topics("Energy"),  # type: ignore[arg-type]
        "Topics takes a tuple of strings, not 'Energy'. Write ('Energy',).",
    ),
    "a dataset for a graph": (
        lambda: Publication.from_rdflib(graph(TRIG, "trig", rdflib.Dataset)),
        "a dataset has several graphs, each of them a publication. Use `read_publications(data",
    ),
}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("call", "said"), MISUSE.values(), ids=MISUSE)
def test_the_error_of_a_wrong_call_names_the_right_one(
    call: Callable[[], object], said: str
) -> None:
    with pytest.raises((TypeError, GraphMatchError)) as raised:
        call()
    assert said in str(raised.value)


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("SELEC ?x { ?x a ?y }", "1:1", "SELEC"),
        ("PREFIX e: <urn:e:> # a comment\n  SELEC ?x { ?x a ?y }", "2:3", "SELEC"),
        ("{ ?x a ?y }", "1:1", "{"),
        ("urn:a", "1:1", "urn"),
        ("PREFX e: <urn:e:> SELECT ?x { ?x a e:y }", "1:1", "PREFX"),
    ],
)
def test_the_error_of_a_misspelt_query_form_names_the_valid_ones(
    text: str, place: str, word: str
) -> None:
    said = (
        f"s:{place}: not SPARQL: a query cannot begin with “{word}”. "
        "Begin it with SELECT, ASK, CONSTRUCT or DESCRIBE, after any PREFIX and BASE."
    )
    with pytest.raises(SubscriptionError) as raised:
        engine().subscribe("s", text)
    assert str(raised.value) == said
    assert [str(error) for error in engine().subscribe_many([("s", text)])] == [said]
    with pytest.raises(SubscriptionError) as raised:
        SubscriptionParser().parse("s", text)
    assert str(raised.value) == said


def test_a_text_is_reported_where_files_are_read() -> None:
    problems: list[Problem] = []
    assert not list(read_publications(TURTLE, on_problem=problems.append))
    assert [problem.remedy for problem in problems] == ["Give bytes: text.encode()."]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_each_graph_of_a_dataset_is_a_publication() -> None:
    dataset = graph(TRIG, "trig", rdflib.Dataset)
    found = {one.id: [o.value for _, _, o in one.triples] for one in read_publications(dataset)}
    assert found == {"urn:g1": ["urn:C"], "urn:g2": ["urn:D"], "urn:x-rdflib:default": ["urn:B"]}
    assert {report.publication for report in engine().filter(dataset)} == set(found)
    named = graph(TRIG.removeprefix(TURTLE), "trig", rdflib.Dataset)
    assert sorted(one.id for one in read_publications(named)) == ["urn:g1", "urn:g2"]


def test_the_library_speaks_of_parameters(tmp_path: Path) -> None:
    problems: list[Problem] = []
    for name, content in [
        ("a.rq", "ASK { ?x a ?y }"),
        ("a.csv", "a,b"),
        ("a.txt", "What is this?"),
        ("a.ttl", "<urn:a> a"),
        ("b.ttl", "<a> a <b> ."),
        ("a.nt", "bad\n" * 200),
    ]:
        (tmp_path / name).write_text(content)
        list(read_publications(tmp_path / name, on_problem=problems.append))
    remedies = {problem.remedy for problem in problems if "--" in problem.remedy}
    assert remedies == {
        "Subscribe to it (`read_subscriptions` or `--subscriptions`).",
        "Load it with the ontology (`Ontology.load` or `--ontology`).",
        "Name the syntax (`format=` or `--format`): for example ttl, nq, jsonld, rdf.",
        "Correct the document there, or name its format (`format=` or `--format`).",
        "Write the full IRI, or give the document a base: in it, or with `base=` or `--base`.",
        "Name its syntax (`format=` or `--format`).",
    }
