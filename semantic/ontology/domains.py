"""The values that an attribute has, by the ontology: CTPS's ``domain(attribute)``.

CTPS (section 3.1) lets the attribute's name determine the type of its values: a class of a
concept tree, a string or a number. What it calls the domain is RDF's *range*
(``rdfs:range``); ``rdfs:domain``, what has the attribute, is something else. An attribute
has the ranges of the properties above it, too (rule rdfs7 then rdfs3), and all of several
ranges hold at once.

Cost: the look-up of the ranges of the attribute and of each property above it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum

from pyoxigraph import NamedNode

from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term
from semantic.vocabulary import OWL, RDF, RDFS, XSD


class Kind(Enum):
    """What sort of values an attribute has."""

    CLASS = "class"
    STRING = "string"
    NUMBER = "number"
    DATE = "date"
    BOOLEAN = "boolean"


_NUMBERS = (
    "decimal integer long int short byte nonNegativeInteger positiveInteger nonPositiveInteger "
    "negativeInteger unsignedLong unsignedInt unsignedShort unsignedByte float double"
)
_STRINGS = "string normalizedString token language Name NCName NMTOKEN anyURI"
_DATES = "date dateTime dateTimeStamp gYear gYearMonth"
_KINDS: Mapping[Term, Kind] = {
    **{XSD[name]: Kind.NUMBER for name in _NUMBERS.split()},
    **{XSD[name]: Kind.STRING for name in _STRINGS.split()},
    **{XSD[name]: Kind.DATE for name in _DATES.split()},
    XSD["boolean"]: Kind.BOOLEAN,
    RDF["langString"]: Kind.STRING,
    RDF["HTML"]: Kind.STRING,
    RDF["XMLLiteral"]: Kind.STRING,
    RDF["PlainLiteral"]: Kind.STRING,
    OWL["real"]: Kind.NUMBER,
    OWL["rational"]: Kind.NUMBER,
}
_SAYS_NOTHING = frozenset({RDFS["Literal"], RDFS["Resource"], OWL["Thing"]})
"""Ranges that nearly every value is in."""


@dataclass(frozen=True, slots=True)
class Domain:
    """One thing that is known of an attribute's values.

    Parameters
    ----------
    kind
        What sort of values they are.
    range
        The class that they are instances of, or their datatype.
    """

    kind: Kind
    range: NamedNode

    def __str__(self) -> str:
        """Return the kind and the IRI."""
        return f"{self.kind.value} {self.range.value}"


def domain(
    attribute: Term,
    ranges: Mapping[Term, Collection[Term]],
    properties: Taxonomy,
    datatypes: Collection[Term] = (),
) -> tuple[Domain, ...]:
    """Return what is known of the values of an attribute: CTPS's ``domain``, RDF's range.

    Parameters
    ----------
    attribute
        A property, with roots put in.
    ranges
        Property to the objects of its ``rdfs:range`` (`entailment.Schema.ranges`).
    properties
        The taxonomy of properties.
    datatypes
        Terms that the ontology declares as ``rdfs:Datatype``. What literals of one of those look
        like is not known, so it is left out.

    Returns
    -------
    tuple of Domain
        Its own ranges first, then those of the properties above it, nearest first, each once.
        Several hold at once. Empty where nothing is known: no range, ``rdfs:Literal``,
        ``rdfs:Resource``, ``owl:Thing``, a class without a name, or a datatype that is none of
        the five kinds (a duration).

    Examples
    --------
    The trees of CTPS's figure 1: email is contact information, which is a string.

    >>> from semantic.vocabulary import Namespace
    >>> ex = Namespace("http://example.org/")
    >>> properties = Taxonomy([(ex["email"], ex["contact"])], members=[ex["target"]])
    >>> ranges = {ex["target"]: (ex["Product"],), ex["contact"]: (XSD["string"],)}
    >>> [str(found) for found in domain(ex["target"], ranges, properties)]
    ['class http://example.org/Product']
    >>> [str(found) for found in domain(ex["email"], ranges, properties)]
    ['string http://www.w3.org/2001/XMLSchema#string']
    >>> domain(ex["unheard-of"], ranges, properties)
    ()
    """
    found: dict[Domain, None] = {}
    for property_ in (attribute, *properties.ancestors(attribute)):
        for range_ in ranges.get(property_, ()):
            if (kind := _kind(range_, datatypes)) is not None:
                assert isinstance(range_, NamedNode)
                found[Domain(kind, range_)] = None
    return tuple(found)


def _kind(range_: Term, datatypes: Collection[Term]) -> Kind | None:
    if range_ in _KINDS:
        return _KINDS[range_]
    foreign = isinstance(range_, NamedNode) and range_.value.startswith((XSD.iri, RDF.iri))
    is_class = isinstance(range_, NamedNode) and not foreign
    if not is_class or range_ in _SAYS_NOTHING or range_ in datatypes:
        return None
    return Kind.CLASS
