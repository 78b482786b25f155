"""Read OWL/XML, which is not RDF: it writes an ontology's axioms as XML elements.

owlready2 converts the axioms to triples, after two changes. It reads only two members of an
equivalence, so longer ones are written as pairs. It would parse numbers, so their datatypes are
hidden from it to keep the text unchanged. Axioms that it cannot convert are reported.

Source: W3C, OWL 2 Web Ontology Language XML Serialization (Second Edition); the triples are those
of OWL 2 Mapping to RDF Graphs, section 2.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable
from importlib import import_module
from xml.etree import ElementTree

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.safe_xml import decode_xml, parse_xml, recode_xml
from semantic.terms import Term, Triple
from semantic.vocabulary import OWL, RDF, XSD

_BEFORE_ROOT = re.compile(
    r"(?:\s+|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*(?:\[.*?\]\s*)?>)*", re.DOTALL | re.IGNORECASE
)
_ROOT = re.compile(r"<(?:[\w.-]+:)?Ontology(?=[\s/>])(?![^>]*\brdf:(?:about|ID|nodeID)\s*=)")
_POSITION = re.compile(r"line (\d+), column (\d+)")

_ANONYMOUS = "urn:graphmatch:anonymous-ontology"
_AS_WRITTEN = "urn:graphmatch:as-written:"
_PAIRED = frozenset(
    f"{{{OWL.iri}}}{name}"
    for name in (
        "EquivalentClasses",
        "EquivalentObjectProperties",
        "EquivalentDataProperties",
        "SameIndividual",
    )
)
_UNREAD = frozenset(
    f"{{{OWL.iri}}}{name}"
    for name in (
        "DLSafeRule",
        "DatatypeDefinition",
        "HasKey",
        "NegativeDataPropertyAssertion",
        "NegativeObjectPropertyAssertion",
    )
)
_ANNOTATION = f"{{{OWL.iri}}}Annotation"
_LITERAL = f"{{{OWL.iri}}}Literal"
_PREFIX = f"{{{OWL.iri}}}Prefix"
_WHOLE = "graphmatch-whole-iri"
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PLAIN = frozenset({"", XSD["string"].value, RDF["PlainLiteral"].value})


def is_owlxml(head: bytes) -> bool:
    """Return whether a document begins like OWL/XML, with the root ``Ontology`` in OWL's namespace.

    Examples
    --------
    >>> is_owlxml(b'<Ontology xmlns="http://www.w3.org/2002/07/owl#" ontologyIRI="urn:o">')
    True
    >>> is_owlxml(b'<owl:Ontology xmlns:owl="http://www.w3.org/2002/07/owl#" rdf:about="urn:o"/>')
    False
    """
    try:
        text = decode_xml(head)
    except (UnicodeDecodeError, LookupError):
        text = head.decode("latin-1")
    before = _BEFORE_ROOT.match(text)
    root = _ROOT.match(text, before.end() if before else 0)
    return root is not None and OWL.iri in text


def read_owlxml(
    data: bytes,
    source: str,
    on_problem: OnProblem,
    prefixes: dict[str, str],
    limits: Limits = DEFAULT_LIMITS,
) -> list[Triple]:
    """Return the triples of an OWL/XML document, and add its prefixes to `prefixes`.

    Unsupported axioms are reported and skipped. Raise `InputError` if it is not well-formed, or not
    OWL/XML.
    """
    root = parse_xml(data, source, limits)
    for prefix in root.iter(_PREFIX):
        prefixes[prefix.get("name", "")] = prefix.get("IRI", "")
    if len(data) > limits.text_characters:
        said = (len(one or "") for e in root.iter() for one in (e.text, *e.attrib.values()))
        if max(said) > limits.text_characters:
            raise InputError(too_long("a text", Place(source), limits))
    _report_unread(root, source, on_problem)
    _prepare(root)
    collected = _Triples()
    try:
        collected.read(ElementTree.tostring(root))
    except _parsing_error() as error:
        raise InputError(_invalid(error, recode_xml(data, source), source)) from error
    return collected.found


def _parsing_error() -> type[Exception]:
    error: type[Exception] = import_module("owlready2.base").OwlReadyOntologyParsingError
    return error


def _invalid(error: Exception, utf8: bytes, source: str) -> Problem:
    """Return the problem of an error in OWL/XML, with the line in the original document.

    The original is parsed again for this, because rewriting moves lines.
    """
    line = column = None
    try:
        _Triples().read(utf8)
    except _parsing_error() as first:
        if found := _POSITION.search(str(first)):
            line, column = int(found[1]), int(found[2]) + 1
    reason = error.__cause__ or error
    what = f"not valid OWL/XML: {type(reason).__name__}: {reason}"
    remedy = "Correct the axiom that ends there, or save the ontology as RDF/XML or Turtle."
    return Problem(what, Place(source, line, column), remedy)


def _report_unread(root: ElementTree.Element, source: str, on_problem: OnProblem) -> None:
    unread = Counter(child.tag for child in root if child.tag in _UNREAD)
    if unread:
        kinds = ", ".join(f"{tag.rpartition('}')[2]} ({n})" for tag, n in sorted(unread.items()))
        what = f"unsupported axioms of OWL/XML: {kinds}"
        remedy = "They were skipped. If they matter, save the ontology as RDF/XML or Turtle."
        on_problem(Problem(what, Place(source), remedy, Severity.WARNING))


def _prepare(root: ElementTree.Element) -> None:
    """Change the elements of a document in place, so that owlready2 loses no information."""
    root.attrib.setdefault("ontologyIRI", _ANONYMOUS)
    for literal in root.iter(_LITERAL):
        datatype = literal.get("datatypeIRI", "")
        if datatype not in _PLAIN:
            literal.set("datatypeIRI", _AS_WRITTEN + datatype)
    # It joins IRIs without "//" with the default prefix, and removes a slash at the end of others.
    for element in root.iter():
        if element.tag != _PREFIX and _SCHEME.match(element.get("IRI", "")):
            element.set("abbreviatedIRI", f"{_WHOLE}:{element.attrib.pop('IRI')}")
    root.insert(0, ElementTree.Element(_PREFIX, name=_WHOLE, IRI=""))
    axioms = list(root)
    for axiom in axioms:
        if axiom.tag in _UNREAD:
            root.remove(axiom)
        elif axiom.tag in _PAIRED:
            for pair in _pairs(axiom):
                root.append(pair)


def _pairs(axiom: ElementTree.Element) -> list[ElementTree.Element]:
    """Shorten an axiom to its first two members; return pairs of the first and each removed one."""
    members = [child for child in axiom if child.tag != _ANNOTATION]
    rest = []
    for member in members[2:]:
        axiom.remove(member)
        pair = ElementTree.Element(axiom.tag)
        pair.extend((members[0], member))
        rest.append(pair)
    return rest


class _Triples:
    """Collects the triples that owlready2's parser finds, as terms, in `found`."""

    def __init__(self) -> None:
        self.found: list[Triple] = []
        self._blank: dict[str, BlankNode] = {}

    def read(self, document: bytes) -> None:
        parse: Callable[..., object] = import_module("owlready2.owlxml_2_ntriples").parse
        parse(io.BytesIO(document), self._resource, self._literal)

    def _resource(self, subject: str, predicate: str, object_: str) -> None:
        self.found.append((self._node(subject), NamedNode(predicate), self._node(object_)))

    def _literal(self, subject: str, predicate: str, value: str, kind: str) -> None:
        self.found.append((self._node(subject), NamedNode(predicate), _literal(value, kind)))

    def _node(self, name: str) -> Term:
        if name.startswith("_:") or name == _ANONYMOUS:
            return self._blank.setdefault(name, BlankNode())
        return NamedNode(name)


def _literal(value: str, kind: str) -> Literal:
    if kind.startswith("@"):
        return Literal(value, language=kind[1:])
    datatype = kind.removeprefix(_AS_WRITTEN)
    return Literal(value) if datatype in _PLAIN else Literal(value, datatype=NamedNode(datatype))
