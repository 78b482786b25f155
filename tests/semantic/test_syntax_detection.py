"""Syntax detection, and limits on nesting depth."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from pyoxigraph import RdfFormat

from semantic.errors import InputError, Place, Problem
from semantic.limits import Limits
from semantic.reading import read_publications, read_rdf
from semantic.syntax_detection import format_of_content, refuse_foreign, tell_syntax

RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("@prefix a: <urn:a> .", RdfFormat.TRIG),
        ("PREFIX a: <urn:a>", RdfFormat.TRIG),
        ("prefix : <urn:a>", RdfFormat.TRIG),
        ("@base <urn:a> .", RdfFormat.TRIG),
        ("BASE <urn:a>", RdfFormat.TRIG),
        ('VERSION "1.2"', RdfFormat.TRIG),
        ("# a comment\n\n  # another\n@prefix a: <urn:a> .", RdfFormat.TRIG),
        ("ex:a ex:b 5 .", RdfFormat.TRIG),
        (":a :b 5 .", RdfFormat.TRIG),
        ("_:a <urn:b> 5 .", RdfFormat.TRIG),
        ("GRAPH <urn:g> { }", RdfFormat.TRIG),
        ("<urn:g> { <urn:a> <urn:b> <urn:c> }", RdfFormat.TRIG),
        ('[ <urn:p> "text" ] .', RdfFormat.TRIG),
        ('[] <urn:p> "text" .', RdfFormat.TRIG),
        ('{ <urn:a> <urn:b> "text" }', RdfFormat.TRIG),
        ("( 1 2 ) <urn:p> 5 .", RdfFormat.TRIG),
        ("<urn:a> <urn:b> <urn:c>, <urn:d> ;", RdfFormat.TRIG),
        ("<urn:a> <urn:b> <urn:c> .", RdfFormat.N_QUADS),
        ('<urn:a> <urn:b> "text" <urn:g> .\n<urn:a>', RdfFormat.N_QUADS),
        ("# a comment\n_:a <urn:b> _:c .", RdfFormat.N_QUADS),
        (
            '<urn:a> <urn:b> "1"^^<urn:c> . # said\n\n# again\ngarbage\n<urn:a> <urn:b> "a"@de .\n',
            RdfFormat.N_QUADS,
        ),
        ("<urn:a> <urn:b> <urn:c> . <urn:a> <urn:b> 5 .", RdfFormat.TRIG),
        ("<urn:a> <urn:b> <urn:c> .\n<urn:a> a <urn:b> .\n<urn:a> a <urn:c> .", RdfFormat.TRIG),
        ('{"@id": "urn:a"}', RdfFormat.JSON_LD),
        ('\n[{"@id": "urn:a"}]', RdfFormat.JSON_LD),
        ("{}", RdfFormat.JSON_LD),
        ("[1, 2]", RdfFormat.JSON_LD),
        (f"<rdf:RDF {RDF}/>", RdfFormat.RDF_XML),
        (f"<?xml version='1.0'?>\n<!-- a --><skos:ConceptScheme {RDF}/>", RdfFormat.RDF_XML),
        ("<!DOCTYPE html><html>", None),
        ('<svg xmlns="http://www.w3.org/2000/svg"/>', None),
        ("<opml><head></head></opml>", None),
        ("just some prose, dear reader.", None),
        ("Base metals rose.", None),
        ("Prefix: : <urn:a>", None),  # It is OWL's Manchester syntax.
        ("SELECT * { ?s ?p ?o }", None),
        ("term,root", None),
        ("5", None),
        ("", None),
        ("\x00\x01\x02", None),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_format_of_content(head: str, expected: RdfFormat | None, encoding: str) -> None:
    assert format_of_content(head.encode(encoding)) == expected


def test_rdf_xml_in_utf_16_is_recognised() -> None:
    assert format_of_content(f"<rdf:RDF {RDF}/>".encode("utf-16")) == RdfFormat.RDF_XML


@pytest.mark.parametrize(
    ("head", "what"),
    [
        (b"<!DOCTYPE html><p>", "an HTML page, not RDF or a feed"),
        (b"\n<HTML lang='en'>", "an HTML page, not RDF or a feed"),
        (f"<!-- --><html {RDF}>".encode(), "an HTML page, not RDF or a feed"),
        (b"<?xml version='1.0'?><svg x='1'>", "XML, but neither RDF/XML nor a feed: its root is"),
        (b"<Ontology xmlns='http://www.w3.org/2002/07/owl#'>", "OWL/XML is not an RDF syntax"),
        (b"PK\x03\x04....", "a ZIP archive"),
        (b"\x1f\x8b\x08", "compressed with gzip"),
        (b"BZh9", "compressed with bzip2"),
        (b"\xfd7zXZ\x00", "compressed with xz"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
        ("<urn:a> <urn:b> 5 .".encode("utf-16"), "the encoding is UTF-16 or UTF-32"),
        ("<urn:a> <urn:b> 5 .".encode("utf-16-le"), "the encoding is UTF-16 or UTF-32"),
        ("<urn:a> <urn:b> 5 .".encode("utf-16-be"), "the encoding is UTF-16 or UTF-32"),
        ('{"@id": "urn:a"}'.encode("utf-32"), "the encoding is UTF-16 or UTF-32"),
    ],
)
def test_other_formats_are_named(head: bytes, what: str) -> None:
    with pytest.raises(InputError) as caught:
        refuse_foreign(head, "a.ttl")
    assert caught.value.problem.what.startswith(what)
    assert caught.value.problem.where == Place("a.ttl")


@pytest.mark.parametrize(
    "head",
    [b"<urn:a> <urn:b> 5 .", b"x", b"\0", b"", b"\0\0\0\0", f"<rdf:RDF {RDF}>".encode("utf-16")],
)
def test_what_may_be_rdf_is_let_through(head: bytes) -> None:
    refuse_foreign(head, "a")


ELEMENT = '<?xml version="1.0"?>\n<e:Laptop xmlns:e="urn:e:"><e:p>x</e:p></e:Laptop>'


@pytest.mark.parametrize(("name", "format"), [("a.xml", "rdf"), ("a.rdf", None), ("a.owl", None)])
def test_rdf_xml_may_be_one_element(name: str, format: str | None, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(ELEMENT)
    problems: list[Problem] = []
    (found,) = read_publications(path, format=format, on_problem=problems.append)
    assert ([p.value for _, p, _ in found.triples][1:], problems) == (["urn:e:p"], [])


def test_a_single_element_needs_a_named_format() -> None:
    with pytest.raises(InputError, match="its root is <e:Laptop>"):
        tell_syntax(ELEMENT.encode(), "a.xml")
    for other in ("<!DOCTYPE html><p>", "<html lang='en'/>", "<opml version='2.0'/>"):
        with pytest.raises(InputError, match="not"):
            refuse_foreign(other.encode(), "a.rdf", RdfFormat.RDF_XML)


def test_name_before_content() -> None:
    assert tell_syntax(b"<urn:a> <urn:b> <urn:c> .", "a.ttl") == RdfFormat.TURTLE
    assert tell_syntax(b"<urn:a> <urn:b> <urn:c> .", "a.txt") == RdfFormat.N_QUADS
    assert tell_syntax(b"null", "a.json") == RdfFormat.JSON_LD


# --- Nesting -------------------------------------------------------------------------------------


TERM = b"<<( <urn:a> <urn:b> " * 20 + b"5" + b" )>>" * 20


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_triple_terms_are_counted_across_pieces(size: int) -> None:
    document = b"<urn:a> <urn:b> " + TERM + b" ."

    def read(nesting: int) -> tuple[int, list[str]]:
        problems: list[str] = []
        pieces = (document[i : i + size] for i in range(0, len(document), size))
        found = read_rdf(
            pieces,
            RdfFormat.TURTLE,
            "a",
            on_problem=lambda problem: problems.append(str(problem)),
            limits=Limits(nesting=nesting),
        )
        return len(list(found)), problems

    assert read(20) == (1, [])
    count, (problem,) = read(19)
    assert (count, problem.split(": ")[1][:42]) == (0, "the brackets are nested more than 19 deep.")


def test_prefixes_are_those_of_the_document() -> None:
    prefixes: dict[str, str] = {}
    document = b"@prefix e: <urn:e:> . e:a e:b e:c ."
    list(read_rdf([document], RdfFormat.TURTLE, "a", on_problem=print, prefixes=prefixes))
    assert prefixes == {"e": "urn:e:"}


def test_byte_order_mark_of_xml_wins_over_its_declaration() -> None:
    text = f"<?xml version='1.0' encoding='iso-8859-1'?><rdf:RDF {RDF} xmlns:e='urn:e:'>"
    text += "<rdf:Description rdf:about='urn:a'><e:p>é</e:p></rdf:Description></rdf:RDF>"
    (publication,) = read_publications(io.BytesIO(text.encode("utf-8-sig")))
    assert str(publication.triples[0][2]) == '"é"'
