"""Loading ontologies from files in every syntax."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, serialize
from pyoxigraph import Triple as Statement

from semantic.errors import InputError, OntologyError, Problem, Severity
from semantic.ontology.documents import read_file
from semantic.ontology.loading import Sources, read_sources
from semantic.ontology.ontology import Ontology
from semantic.terms import Triple
from semantic.vocabulary import (
    EQUIVALENT_CLASS,
    GM,
    LABEL,
    OWL,
    RDF,
    RDFS,
    SAME_AS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
)

EX = "http://example.org/o#"
A, B, C, P = (NamedNode(EX + name) for name in "ABCp")


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


def read(*paths: Path) -> Sources:
    return read_sources(paths, unexpected)


@pytest.mark.parametrize(
    ("name", "syntax"),
    [
        ("o.ttl", RdfFormat.TURTLE),
        ("o.nt", RdfFormat.N_TRIPLES),
        ("o.nq", RdfFormat.N_QUADS),
        ("o.trig", RdfFormat.TRIG),
        ("o.n3", RdfFormat.N3),
        ("o.owl", RdfFormat.RDF_XML),
        ("o.rdf", RdfFormat.RDF_XML),
        ("o.jsonld", RdfFormat.JSON_LD),
        ("o.json", RdfFormat.JSON_LD),
        ("o.xml", RdfFormat.RDF_XML),
        ("o", RdfFormat.TURTLE),
    ],
)
def test_every_rdf_syntax_gives_the_same(tmp_path: Path, name: str, syntax: RdfFormat) -> None:
    triples = [(A, SUBCLASS, B), (A, LABEL, Literal("à", language="fr"))]
    quads = [Quad(*triple) for triple in triples]
    serialize(quads, tmp_path / name, format=syntax)
    assert set(read(tmp_path / name).triples) == set(triples)


def test_kinds_of_files_are_recognised(tmp_path: Path) -> None:
    texts = {
        "a.ttl": f"@prefix ex: <{EX}> . ex:A <{SUBCLASS.value}> ex:B .",
        "b.csv": "term,root\nUS,United States\n",
        "d.rq": "CONSTRUCT { ?x a ?y } WHERE { ?x a ?y }",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    found = read(*(tmp_path / name for name in texts))
    assert found.triples == [(A, SUBCLASS, B)]
    assert found.prefixes == {"ex": EX}
    assert found.rules == [(tmp_path / "d.rq", texts["d.rq"])]
    roots = Ontology((), found.synonyms, on_problem=unexpected).roots
    assert {roots.root(Literal(t)).value for t in ("US", "us")} == {"United States", "us"}


def test_a_file_named_twice_is_read_once(tmp_path: Path) -> None:
    one, other = tmp_path / "a.ttl", tmp_path / "b.ttl"
    one.write_text(f"[] a <{A.value}> .", encoding="utf-8")
    other.symlink_to(one)
    assert len(read(one, other, one).triples) == 1


def test_declared_taxonomies_are_stated(tmp_path: Path) -> None:
    path = tmp_path / "o.ttl"
    path.write_text(f"<{A.value}> <{P.value}> <{B.value}> .", encoding="utf-8")
    ontology = Ontology.load(path, taxonomies=[P], on_problem=unexpected)
    assert (P, TYPE, GM["Taxonomy"]) in ontology.stated


def test_a_rule_that_is_not_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "r.rq"
    path.write_bytes(b"# caf\xe9")
    with pytest.raises(OntologyError, match=r"r\.rq:1:6: not UTF-8\. Save"):
        read(path)


def test_an_unknown_reasoner() -> None:
    with pytest.raises(InputError, match="'elk' is unknown"):
        Ontology.load(reason="elk")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("o é.ttl", f"<> a <{OWL.iri}Ontology> . <#A> a <B> ."),
        (
            "o é.owl",
            f'<rdf:RDF xmlns:rdf="{RDF.iri}" xmlns:owl="{OWL.iri}"><owl:Ontology rdf:about=""/>'
            '<rdf:Description rdf:ID="A"><rdf:type rdf:resource="B"/></rdf:Description></rdf:RDF>',
        ),
    ],
)
def test_relative_names_are_the_file_s_own(
    tmp_path: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    own = (tmp_path / name).as_uri()
    assert set(read(Path(name)).triples) == {
        (NamedNode(own), TYPE, OWL["Ontology"]),
        (NamedNode(own + "#A"), TYPE, NamedNode(tmp_path.as_uri() + "/B")),
    }


# --- OWL/XML -------------------------------------------------------------------------------------

OWLXML = f"""<?xml version="1.0"?>
<!DOCTYPE Ontology [<!ENTITY xsd "http://www.w3.org/2001/XMLSchema#">]>
<Ontology xmlns="http://www.w3.org/2002/07/owl#" xml:base="http://example.org/o"
    xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" ontologyIRI="http://example.org/o">
  <Prefix name="ex" IRI="{EX}"/>
  %s
</Ontology>
"""
ONTOLOGY: Triple = (NamedNode("http://example.org/o"), TYPE, OWL["Ontology"])


def owlxml(folder: Path, axioms: str) -> Path:
    path = folder / "o.owx"
    path.write_text(OWLXML % axioms, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("axioms", "triples"),
    [
        ('<Declaration><Class IRI="#A"/></Declaration>', [(A, TYPE, OWL["Class"])]),
        (
            '<SubClassOf><Class abbreviatedIRI="ex:A"/><Class IRI="#B"/></SubClassOf>',
            [(A, SUBCLASS, B)],
        ),
        (
            '<SubObjectPropertyOf><ObjectProperty IRI="#p"/><ObjectProperty IRI="#A"/>'
            "</SubObjectPropertyOf>",
            [(P, SUBPROPERTY, A)],
        ),
        (
            '<ClassAssertion><Class IRI="#A"/><NamedIndividual IRI="#B"/></ClassAssertion>',
            [(B, TYPE, A)],
        ),
        (  # An IRI without an authority is absolute, and a slash at the end belongs to the IRI.
            '<SubClassOf><Class IRI="urn:c:A"/><Class IRI="http://example.org/B/"/></SubClassOf>',
            [(NamedNode("urn:c:A"), SUBCLASS, NamedNode("http://example.org/B/"))],
        ),
        (  # An axiom with more than two members keeps all of them.
            '<EquivalentClasses><Class IRI="#A"/><Class IRI="#B"/><Class IRI="#C"/>'
            "</EquivalentClasses>",
            [(B, EQUIVALENT_CLASS, A), (C, EQUIVALENT_CLASS, A)],
        ),
        (
            '<SameIndividual><NamedIndividual IRI="#A"/><NamedIndividual IRI="#B"/>'
            '<NamedIndividual IRI="#C"/></SameIndividual>',
            [(A, SAME_AS, B), (A, SAME_AS, C)],
        ),
        (  # Numbers keep their lexical form.
            '<DataPropertyAssertion><DataProperty IRI="#p"/><NamedIndividual IRI="#A"/>'
            '<Literal datatypeIRI="&xsd;decimal">1.10</Literal></DataPropertyAssertion>',
            [(A, P, Literal("1.10", datatype=XSD["decimal"]))],
        ),
        (
            '<AnnotationAssertion><AnnotationProperty IRI="http://www.w3.org/2000/01/rdf-schema'
            '#label"/><IRI>#A</IRI><Literal xml:lang="fr">été &amp; hiver</Literal>'
            "</AnnotationAssertion>",
            [(A, LABEL, Literal("été & hiver", language="fr"))],
        ),
        (
            "<Import>http://example.org/other</Import>",
            [(ONTOLOGY[0], OWL["imports"], NamedNode("http://example.org/other"))],
        ),
    ],
)
def test_owl_xml(tmp_path: Path, axioms: str, triples: list[Triple]) -> None:
    found = read_file(owlxml(tmp_path, axioms), unexpected)
    assert set(found.triples) == {ONTOLOGY, *triples}
    assert found.prefixes == {"ex": EX}


def test_owl_xml_with_a_class_expression(tmp_path: Path) -> None:
    axioms = (
        '<SubClassOf><Class IRI="#A"/><ObjectSomeValuesFrom><ObjectProperty IRI="#p"/>'
        '<Class IRI="#B"/></ObjectSomeValuesFrom></SubClassOf>'
    )
    found = set(read_file(owlxml(tmp_path, axioms), unexpected).triples)
    (node,) = (o for _, p, o in found if p == SUBCLASS)
    assert isinstance(node, BlankNode)
    assert found == {
        ONTOLOGY,
        (A, SUBCLASS, node),
        (node, TYPE, OWL["Restriction"]),
        (node, OWL["onProperty"], P),
        (node, OWL["someValuesFrom"], B),
    }


def test_owl_xml_without_a_name(tmp_path: Path) -> None:
    path = tmp_path / "o.owl"
    path.write_text(f'<Ontology xmlns="{OWL.iri}"/>', encoding="utf-8")
    document = read_file(path, unexpected)
    ((subject, *rest),) = document.triples
    assert isinstance(subject, BlankNode)
    assert (*rest,) == (TYPE, OWL["Ontology"])
    assert document.names == ()


def test_an_rdf_document_of_one_ontology_element_is_read_as_rdf(tmp_path: Path) -> None:
    path = tmp_path / "o.owl"
    path.write_text(
        f'<owl:Ontology xmlns:owl="{OWL.iri}" xmlns:rdf="{RDF.iri}" rdf:about="urn:o"/>',
        encoding="utf-8",
    )
    assert read_file(path, unexpected).names == ("urn:o",)


def test_axioms_that_are_not_read_are_named(tmp_path: Path) -> None:
    path = owlxml(tmp_path, '<HasKey><Class IRI="#A"/><DataProperty IRI="#p"/></HasKey>' * 2)
    problems: list[Problem] = []
    assert read_file(path, problems.append).triples == [ONTOLOGY]
    (problem,) = problems
    assert problem.severity is Severity.WARNING
    assert problem.what == "unsupported axioms of OWL/XML: HasKey (2)"


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (OWLXML % "<SubClassOf>", r":7:3: not valid XML: mismatched tag"),
        (OWLXML % "<no:SubClassOf/>", r":6:3: not valid XML: unbound prefix"),
        (OWLXML % '<SubClassOf><Class IRI="#A"/></SubClassOf>', r":6:\d+: not valid OWL/XML: "),
        (OWLXML % '<SubClassOf><Class abbreviatedIRI="no:A"/></SubClassOf>', "KeyError: 'no'"),
        (
            f'<!DOCTYPE Ontology [<!ENTITY e0 "0123456789">{BOMB}]>'
            f'<Ontology xmlns="{OWL.iri}">&e9;</Ontology>',
            ": the entities expand to more than",
        ),
        (
            '<!DOCTYPE Ontology [<!ENTITY e SYSTEM "file:///etc/passwd">]>'
            f'<Ontology xmlns="{OWL.iri}">&e;</Ontology>',
            "the entity 'e' is outside the document",
        ),
        (f'<Ontology xmlns="{OWL.iri}">' + "<Class>" * 300, " more than 256 deep"),
    ],
)
def test_bad_owl_xml(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "o.owl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(OntologyError, match=message):
        read(path)


def test_owl_xml_that_is_not_in_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "o.owl"
    text = f'<?xml version="1.0" encoding="utf-8"?><Ontology xmlns="{OWL.iri}"><!--é--></Ontology>'
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(OntologyError, match=r"not valid XML|not in the declared encoding"):
        read(path)


def test_a_broken_owl_file(tmp_path: Path) -> None:
    path = tmp_path / "o.owl"
    path.write_text(
        f'<rdf:RDF xmlns:rdf="{RDF.iri}" xmlns:rdfs="{RDFS.iri}">\n<rdf:Description>\n</rdf:RDF>',
        encoding="utf-8",
    )
    with pytest.raises(
        OntologyError, match=r"o\.owl:3:1: not valid XML: .* `</rdf:RDF>` was found\. Correct"
    ):
        read(path)


def test_statements_are_what_they_are(tmp_path: Path) -> None:
    """The reader preserves triple terms."""
    term = Statement(A, P, B)
    serialize([Quad(A, P, term)], tmp_path / "o.nt", format=RdfFormat.N_TRIPLES)
    assert read(tmp_path / "o.nt").triples == [(A, P, term)]


def test_prefixes_of_rdf_xml_are_those_that_its_parser_sees(tmp_path: Path) -> None:
    """A late root element and entities change nothing; a prefix must have a valid IRI."""
    entities = '<!ENTITY base "http://e/"> <!ENTITY own "&base;own#">'
    declared = f'xmlns:rdf="{RDF.iri}" xmlns:own="&own;" xmlns:q="urn:q?a=1&amp;b=" xmlns:no="a b"'
    text = (
        f"<!DOCTYPE rdf:RDF [ {entities} ]> <!-- {'late ' * 5000} -->"
        f'<rdf:RDF {declared}><own:C rdf:about="urn:a"/></rdf:RDF>'
    )
    path = tmp_path / "o.rdf"
    path.write_text(text, encoding="utf-8")
    document = read_file(path, unexpected)
    assert document.prefixes == {"rdf": RDF.iri, "own": "http://e/own#", "q": "urn:q?a=1&b="}
    assert document.triples == [(NamedNode("urn:a"), TYPE, NamedNode("http://e/own#C"))]


def test_prefixes_of_rdf_xml_with_entities_that_nest_deep(tmp_path: Path) -> None:
    """Some versions of expat expand these entities by recursion."""
    nested = "".join(f'<!ENTITY e{n} "&e{n - 1};">' for n in range(1, 150_000))
    path = tmp_path / "o.rdf"
    path.write_text(
        f'<!DOCTYPE rdf:RDF [ <!ENTITY e0 "x"> {nested} ]>'
        f'<rdf:RDF xmlns:rdf="{RDF.iri}" xmlns:e="urn:e" e:p="&e149999;">'
        '<e:C rdf:about="urn:a"/></rdf:RDF>',
        encoding="utf-8",
    )
    assert read_file(path, unexpected).prefixes == {}


def test_prefixes_of_owl_xml_are_iris(tmp_path: Path) -> None:
    path = tmp_path / "o.owx"
    path.write_text(
        f'<Ontology xmlns="{OWL.iri}" ontologyIRI="urn:o"><Prefix name="e" IRI="{EX}"/>'
        '<Prefix name="no" IRI="a b"/></Ontology>',
        encoding="utf-8",
    )
    assert read_file(path, unexpected).prefixes == {"e": EX}
