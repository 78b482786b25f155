"""The names of attributes, and the properties that stand for them.

An attribute is a path of steps, ``target.hardDisk.size.value``. A step is a *local name*, the
last part of a property's IRI, and means every property of that local name, whatever vocabulary it
is of; or it is one property's IRI in angle brackets, ``<https://schema.org/name>``, and means that
property alone. So what an attribute means depends neither on the publication nor on which
other vocabularies are in use.

The attribute ``a.b`` is the property ``urn:graphmatch:attribute:a.b`` of an event, and
``urn:graphmatch:isa:a.b`` has the classes that its values belong to as its objects. A class that a
subscription names by a text is ``urn:graphmatch:concept:NAME`` until the ontology is known. What an
IRI cannot hold is percent-encoded.

Source: CTPS (Zhang, Wang, Huang and Yung), section 3.2, on names of attributes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import quote, unquote

from pyoxigraph import NamedNode

from semantic.errors import UnplacedError
from semantic.limits import DEFAULT_LIMITS
from semantic.terms import local_name
from semantic.vocabulary import ATTRIBUTE, GM, ISA, PREFIXES

_STEP = re.compile(r"<[^<>]*>|[^.<>]+")
_PATH = re.compile(rf"(?:{_STEP.pattern})(?:\.(?:{_STEP.pattern}))*")
_KEPT = "-._~:/@!$&'()*+,;="
"""The characters of ASCII, beside letters and digits, that stand in an IRI as they are."""
_CONCEPT = GM["concept:"].value
_CACHED = 65_536


class AttributeNameError(UnplacedError):
    """Text that names no attribute."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "Write steps with points between them: target.hardDisk.size.value.")


def encoded(text: str) -> str:
    """Return a text as a part of an IRI; `urllib.parse.unquote` gives it back.

    Examples
    --------
    >>> encoded("weight (kg)"), encoded("größe"), encoded("100%")
    ('weight%20(kg)', 'größe', '100%25')
    """
    written = "".join(c if ord(c) > 159 else quote(c, safe=_KEPT) for c in text)
    try:
        NamedNode(f"urn:{written}")
    except ValueError:
        return quote(text, safe=_KEPT, errors="surrogatepass")
    return written


def steps(name: str) -> tuple[str, ...]:
    """Return the steps of an attribute's name.

    Raises `AttributeNameError` where a step is empty or a bracket is alone, and at more steps than
    the limit ``attribute_steps``.

    Examples
    --------
    >>> steps("target.<https://schema.org/name>")
    ('target', '<https://schema.org/name>')
    """
    if _PATH.fullmatch(name) is None or not name.isprintable():
        raise AttributeNameError(f"{name!r} is no name of an attribute")
    found = tuple(_STEP.findall(name))
    if len(found) > DEFAULT_LIMITS.attribute_steps:
        what = f"{name!r} has more than {DEFAULT_LIMITS.attribute_steps} steps"
        raise AttributeNameError(f"{what} (the limit `attribute_steps`)")
    return found


def canonical(name: str) -> str:
    """Return a name with its prefixed names written out: ``foaf:name`` is one property.

    Raises `AttributeNameError` as `steps`, and where what stands in angle brackets is no IRI.

    Examples
    --------
    >>> canonical("maker.foaf:name")
    'maker.<http://xmlns.com/foaf/0.1/name>'
    """
    return ".".join(map(_written_out, steps(name)))


def _written_out(step: str) -> str:
    prefix, colon, local = step.partition(":")
    if colon and local and prefix in PREFIXES:
        step = f"<{PREFIXES[prefix]}{local}>"
    if step.startswith("<"):
        try:
            NamedNode(step[1:-1])
        except ValueError as error:
            raise AttributeNameError(f"{step} is no IRI") from error
    return step


@lru_cache(maxsize=_CACHED)
def attribute(name: str) -> NamedNode:
    """Return the property that stands for an attribute; errors are those of `canonical`."""
    return _property(ATTRIBUTE.iri, canonical(name))


@lru_cache(maxsize=_CACHED)
def isa(name: str) -> NamedNode:
    """Return the property whose objects are the classes of an attribute's values, likewise."""
    return _property(ISA.iri, canonical(name))


def _property(namespace: str, name: str) -> NamedNode:
    try:
        return NamedNode(namespace + encoded(name))
    except (UnicodeEncodeError, ValueError) as error:
        raise AttributeNameError(f"{name!r} cannot be written in an IRI") from error


def name_of(property_: object) -> str | None:
    """Return the name of the attribute that a property stands for; ``None`` for another term."""
    return _after(ATTRIBUTE.iri, property_)


def isa_name_of(property_: object) -> str | None:
    """Return the name of the attribute whose values' classes a property has, likewise."""
    return _after(ISA.iri, property_)


@lru_cache(maxsize=_CACHED)
def is_derived(property_: object) -> bool:
    """Whether a property is an attribute, or has the classes of an attribute's values."""
    return name_of(property_) is not None or isa_name_of(property_) is not None


def _after(namespace: str, property_: object) -> str | None:
    if isinstance(property_, NamedNode) and property_.value.startswith(namespace):
        return unquote(property_.value[len(namespace) :])
    return None


def step_names(properties: Iterable[NamedNode]) -> frozenset[str]:
    """Return what a step may be called that goes along any of some properties.

    Examples
    --------
    >>> sorted(step_names([NamedNode("https://schema.org/name")]))
    ['<https://schema.org/name>', 'name']
    """
    names: set[str] = set()
    for property_ in properties:
        own = name_of(property_)
        names.update((local_name(property_), str(property_)) if own is None else (own,))
    return frozenset(names)


@lru_cache(maxsize=_CACHED)
def concept(name: str) -> NamedNode:
    """Return the term that stands for a class's name until an ontology is known.

    An IRI, in angle brackets or not, is itself.

    Examples
    --------
    >>> concept("laptop PC").value, concept("http://example.org/Laptop").value
    ('urn:graphmatch:concept:laptop%20PC', 'http://example.org/Laptop')
    """
    iri = name.removeprefix("<").removesuffix(">")
    if "://" in iri or iri.startswith("urn:"):
        try:
            return NamedNode(iri)
        except ValueError:
            pass  # an odd name: no term is called so
    return NamedNode(_CONCEPT + encoded(name))


def concept_name_of(term: object) -> str | None:
    """Return the name that a term stands for until an ontology is known; ``None`` of others."""
    return _after(_CONCEPT, term)
