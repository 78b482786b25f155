"""The names of attributes, and the properties that represent them.

An attribute is a path of steps, ``target.hardDisk.size.value``. A step is a *local name*, the
last part of a property's IRI, and denotes every property with that local name in any vocabulary. A
step in angle brackets, ``<https://schema.org/name>``, denotes only the property with that IRI. The
meaning of an attribute therefore depends neither on the publication nor on the other vocabularies
in use.

The property of the attribute ``a.b`` is ``urn:graphmatch:attribute:a.b``. The objects of
``urn:graphmatch:isa:a.b`` are the classes of its values. If a subscription gives the name of a
class as text, the class is ``urn:graphmatch:concept:NAME`` until the ontology is known. Characters
that are invalid in an IRI are percent-encoded.

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
"""The ASCII characters, besides letters and digits, that are not percent-encoded."""
_CONCEPT = GM["concept:"].value
_CACHED = 65_536


class AttributeNameError(UnplacedError):
    """An invalid name of an attribute."""

    def __init__(self, what: str) -> None:
        super().__init__(what, "Separate the steps with dots: target.hardDisk.size.value.")


def encoded(text: str) -> str:
    """Encode a text as part of an IRI; `urllib.parse.unquote` decodes it.

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
    """Split the name of an attribute into steps.

    Raises `AttributeNameError` if a step is empty, a bracket is unbalanced, or the name has more
    steps than the limit ``attribute_steps``.

    Examples
    --------
    >>> steps("target.<https://schema.org/name>")
    ('target', '<https://schema.org/name>')
    """
    if _PATH.fullmatch(name) is None or not name.isprintable():
        raise AttributeNameError(f"{name!r} is not a valid attribute name")
    found = tuple(_STEP.findall(name))
    if len(found) > DEFAULT_LIMITS.attribute_steps:
        what = f"{name!r} has more than {DEFAULT_LIMITS.attribute_steps} steps"
        raise AttributeNameError(f"{what} (the limit `attribute_steps`)")
    return found


def canonical(name: str) -> str:
    """Return an attribute's name with prefixed names written as IRIs in angle brackets.

    A prefixed name such as ``foaf:name`` is therefore one property. Raises the errors of `steps`,
    and `AttributeNameError` if angle brackets hold an invalid IRI.

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
            raise AttributeNameError(f"{step} is not a valid IRI") from error
    return step


@lru_cache(maxsize=_CACHED)
def attribute(name: str) -> NamedNode:
    """Return the property of an attribute, ``urn:graphmatch:attribute:NAME``.

    Raises the errors of `canonical`.
    """
    return _property(ATTRIBUTE.iri, canonical(name))


@lru_cache(maxsize=_CACHED)
def isa(name: str) -> NamedNode:
    """Return the property for the classes of an attribute's values, ``urn:graphmatch:isa:NAME``.

    Raises the errors of `canonical`.
    """
    return _property(ISA.iri, canonical(name))


def _property(namespace: str, name: str) -> NamedNode:
    try:
        return NamedNode(namespace + encoded(name))
    except (UnicodeEncodeError, ValueError) as error:
        raise AttributeNameError(f"{name!r} cannot be written in an IRI") from error


def name_of(property_: object) -> str | None:
    """Return the attribute's name in a property that `attribute` made, otherwise ``None``."""
    return _after(ATTRIBUTE.iri, property_)


def isa_name_of(property_: object) -> str | None:
    """Return the attribute's name in a property that `isa` made, otherwise ``None``."""
    return _after(ISA.iri, property_)


@lru_cache(maxsize=_CACHED)
def is_derived(property_: object) -> bool:
    """Return whether a property comes from an attribute: `attribute` or `isa` returned it."""
    return name_of(property_) is not None or isa_name_of(property_) is not None


def _after(namespace: str, property_: object) -> str | None:
    if isinstance(property_, NamedNode) and property_.value.startswith(namespace):
        return unquote(property_.value[len(namespace) :])
    return None


def step_names(properties: Iterable[NamedNode]) -> frozenset[str]:
    """Return all step names that denote at least one of the properties.

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
    """Return a placeholder for the name of a class until an ontology is known.

    An IRI, with or without angle brackets, is returned unchanged.

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
            pass  # An invalid IRI is treated as a name, which will be unknown.
    return NamedNode(_CONCEPT + encoded(name))


def concept_name_of(term: object) -> str | None:
    """Return the name in a placeholder that `concept` made, otherwise ``None``."""
    return _after(_CONCEPT, term)
