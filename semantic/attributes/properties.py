"""The properties of an ontology by the names of steps, synonyms included.

A step means every property of its local name, and every property one of whose other names (in the
ontology, or a file of synonyms) has that local name: where ``shop:mobile`` is a name of
``shop:cellphoneNumber``, the attributes ``seller.mobile`` and ``seller.cellphoneNumber`` are one.

Cost: linear in the properties, when the first step is looked up; a dictionary look-up then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from pyoxigraph import NamedNode

from semantic.attributes.names import step_names
from semantic.ontology.ontology import Ontology
from semantic.terms import Term


class AttributeProperties:
    """What steps mean under one ontology.

    Parameters
    ----------
    ontology
        What is known.

    Examples
    --------
    >>> from semantic.vocabulary import SUBPROPERTY
    >>> email, contact = NamedNode("http://e/email"), NamedNode("http://e/contact")
    >>> properties = AttributeProperties(Ontology([(email, SUBPROPERTY, contact)]))
    >>> properties.called("email")
    (<NamedNode value=http://e/email>,)
    >>> sorted(properties.names(email))
    ['<http://e/email>', 'email']
    """

    def __init__(self, ontology: Ontology) -> None:
        self._ontology = ontology
        self._names: dict[Term, frozenset[str]] = {}

    def called(self, step: str) -> tuple[NamedNode, ...]:
        """Return the properties that a step means, roots of synonyms; none where none is known."""
        if step.startswith("<"):
            root = self._ontology.root(NamedNode(step[1:-1]))
            return (root,) if isinstance(root, NamedNode) else ()
        return self._by_name.get(step, ())

    def names(self, property_: NamedNode) -> frozenset[str]:
        """Return the names of the steps that go along a property (a root of synonyms)."""
        found = self._names.get(property_)
        if found is None:
            others = self._ontology.roots.names(property_)
            named = (term for term in others if isinstance(term, NamedNode))
            found = self._names[property_] = step_names((property_, *named))
        return found

    @cached_property
    def _by_name(self) -> Mapping[str, tuple[NamedNode, ...]]:
        found: defaultdict[str, dict[NamedNode, None]] = defaultdict(dict)
        for property_ in self._known():
            for name in self.names(property_):
                found[name][property_] = None
        return {name: tuple(properties) for name, properties in found.items()}

    def _known(self) -> Iterator[NamedNode]:
        schema = self._ontology.schema
        places: Iterable[Iterable[Term]] = (
            self._ontology.properties,
            schema.domains,
            schema.ranges,
            schema.inverses,
        )
        for place in places:
            yield from (term for term in place if isinstance(term, NamedNode))
