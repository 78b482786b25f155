"""The same rules as `semantic.ontology.entailment`, as data, for publications with schema.

A publication that states ``rdfs:subClassOf`` or its kin is a premise of rules whose
other premise may be anywhere in the ontology, so compiled tables do not do. Here
the rules are pairs of patterns, applied semi-naively: a rule fires when one of its
premises is new, with the other looked up in what is new or in the ontology's
closure. Slow (tens of microseconds a triple) and general; rarely taken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from semantic.ontology.entailment import SCHEMA, is_reserved
from semantic.terms import Node, Term, Triple
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    DOMAIN,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    INVERSE_OF,
    NARROWER,
    RANGE,
    SAME_AS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)

_Pattern: TypeAlias = tuple[Node, Node, Node]
_Bindings: TypeAlias = dict[Variable, Term]
Lookup: TypeAlias = Callable[[Term | None, Term | None, Term | None], Iterable[Triple]]
"""Yields the triples of a graph that have the given terms; ``None`` stands for any."""


@dataclass(frozen=True, slots=True)
class Rule:
    """If all premises hold, the conclusion does.

    Parameters
    ----------
    name
        The rule's, in docs/reference/semantics.md.
    premises, conclusion
        One or two patterns, and one.
    guard
        What else has to hold.
    heard
        Whether the first premise counts only where the publication says it: what the ontology
        says of the kind are its roots.
    link
        Which premise is a link of a hierarchy, that need not be one that only transitivity gave:
        the links that it was made of lead as far, step by step.
    transitive
        Whether the rule only says that a hierarchy is transitive.
    """

    name: str
    premises: tuple[_Pattern, ...]
    conclusion: _Pattern
    guard: Callable[[_Bindings], bool] = lambda _: True
    heard: bool = False
    link: int | None = None
    transitive: bool = False


_C, _D, _E = Variable("c"), Variable("d"), Variable("e")
_P, _Q, _R = Variable("p"), Variable("q"), Variable("r")
_X, _Y = Variable("x"), Variable("y")


def _differ(bindings: _Bindings) -> bool:
    return bindings[_X] != bindings[_Y]


RULES: tuple[Rule, ...] = (
    Rule("rdfs2", ((_P, DOMAIN, _C), (_X, _P, _Y)), (_X, TYPE, _C)),
    Rule("rdfs3", ((_P, RANGE, _C), (_X, _P, _Y)), (_Y, TYPE, _C)),
    Rule(
        "rdfs5",
        ((_P, SUBPROPERTY, _Q), (_Q, SUBPROPERTY, _R)),
        (_P, SUBPROPERTY, _R),
        link=1,
        transitive=True,
    ),
    Rule("rdfs7", ((_P, SUBPROPERTY, _Q), (_X, _P, _Y)), (_X, _Q, _Y), link=0),
    Rule("rdfs9", ((_C, SUBCLASS, _D), (_X, TYPE, _C)), (_X, TYPE, _D), link=0),
    Rule(
        "rdfs11",
        ((_C, SUBCLASS, _D), (_D, SUBCLASS, _E)),
        (_C, SUBCLASS, _E),
        link=1,
        transitive=True,
    ),
    Rule("inverse", ((_P, INVERSE_OF, _Q), (_X, _P, _Y)), (_Y, _Q, _X)),
    Rule("inverse", ((_P, INVERSE_OF, _Q), (_X, _Q, _Y)), (_Y, _P, _X)),
    Rule("narrower", ((_C, NARROWER, _D),), (_D, BROADER, _C)),
    Rule("narrower", ((_C, BROADER, _D),), (_D, NARROWER, _C)),
    Rule("broader", ((_C, BROADER, _D),), (_C, BROADER_TRANSITIVE, _D)),
    Rule(
        "broader",
        ((_C, BROADER_TRANSITIVE, _D), (_D, BROADER_TRANSITIVE, _E)),
        (_C, BROADER_TRANSITIVE, _E),
        link=1,
        transitive=True,
    ),
    Rule(
        "topic",
        ((_C, BROADER_TRANSITIVE, _D), (_X, _P, _C)),
        (_X, _P, _D),
        lambda bindings: not is_reserved(bindings[_P]),
        link=0,
    ),
    Rule("class", ((_C, EQUIVALENT_CLASS, _D),), (_C, SUBCLASS, _D)),
    Rule("class", ((_C, EQUIVALENT_CLASS, _D),), (_D, SUBCLASS, _C)),
    Rule("property", ((_P, EQUIVALENT_PROPERTY, _Q),), (_P, SUBPROPERTY, _Q)),
    Rule("property", ((_P, EQUIVALENT_PROPERTY, _Q),), (_Q, SUBPROPERTY, _P)),
    Rule("same", ((_X, SAME_AS, _Y),), (_Y, SAME_AS, _X)),
    Rule("same", ((_X, SAME_AS, _Y), (_X, _P, _C)), (_Y, _P, _C), _differ, heard=True),
    Rule("same", ((_X, SAME_AS, _Y), (_C, _P, _X)), (_C, _P, _Y), _differ, heard=True),
)


class _Graph:
    """Triples that can be looked up by any of their terms."""

    def __init__(self) -> None:
        self._triples: dict[Triple, None] = {}
        self._by: defaultdict[tuple[int, Term], list[Triple]] = defaultdict(list)

    def __contains__(self, triple: Triple) -> bool:
        return triple in self._triples

    def add(self, triple: Triple) -> bool:
        """Add a triple; return whether it is new."""
        if triple in self._triples:
            return False
        self._triples[triple] = None
        for place, term in enumerate(triple):
            self._by[place, term].append(triple)
        return True

    def lookup(self, s: Term | None, p: Term | None, o: Term | None) -> Iterator[Triple]:
        """Yield the triples with the given terms."""
        wanted = (s, p, o)
        fixed = [(place, term) for place, term in enumerate(wanted) if term is not None]
        rows = [self._by.get(key, []) for key in fixed]
        for triple in min(rows, key=len).copy() if rows else list(self._triples):
            if all(triple[place] == term for place, term in fixed):
                yield triple


def extend(publication: Iterable[Triple], ontology: Lookup) -> dict[Triple, Triple | None]:
    """Return the publication's triples and all that follows with one of them as a premise.

    Each is mapped to the triple that it was derived from; a given one to ``None``.

    Parameters
    ----------
    publication
        What is new.
    ontology
        Look-up in the ontology's closure.
    """
    new = _Graph()
    agenda = [triple for triple in publication if new.add(triple)]
    derived_from: dict[Triple, Triple | None] = dict.fromkeys(agenda)
    linked = _Graph()  # the publication's triples, without what only transitivity gave
    for triple in agenda:
        linked.add(triple)
    known = _Known(new.lookup, linked.lookup, ontology)
    for triple in agenda:
        for rule, consequence in tuple(_consequences(triple, triple not in linked, known)):
            if new.add(consequence):
                derived_from[consequence] = triple
                agenda.append(consequence)
                if not rule.transitive:
                    linked.add(consequence)
    return derived_from


@dataclass(frozen=True, slots=True)
class _Known:
    """What the other premise of a rule is looked up in.

    Parameters
    ----------
    new
        The publication's triples so far.
    links
        The same, without what only transitivity gave.
    old
        The ontology's closure.
    """

    new: Lookup
    links: Lookup
    old: Lookup


def _consequences(triple: Triple, is_pair: bool, known: _Known) -> Iterator[tuple[Rule, Triple]]:
    for rule in RULES:
        for position, premise in enumerate(rule.premises):
            if is_pair and position == rule.link:
                continue
            if (bindings := _unify(premise, triple, {})) is None:
                continue
            for full in _complete(rule, position, bindings, known):
                conclusion = _instantiate(rule.conclusion, full)
                if rule.guard(full) and _is_triple(conclusion):
                    yield rule, conclusion


def _complete(rule: Rule, position: int, bindings: _Bindings, known: _Known) -> Iterator[_Bindings]:
    if len(rule.premises) == 1:
        yield bindings
        return
    other = rule.premises[1 - position]
    wanted = [bindings.get(n) if isinstance(n, Variable) else n for n in other]
    new = known.links if rule.link == 1 - position else known.new
    for lookup in (new,) if rule.heard and position == 1 else (new, known.old):
        for triple in lookup(*wanted):
            if (full := _unify(other, triple, bindings)) is not None:
                yield full


def _unify(pattern: _Pattern, triple: Triple, bindings: _Bindings) -> _Bindings | None:
    if pattern[1] in SCHEMA and isinstance(triple[2], Literal):
        return None  # a literal is no class, property or concept
    result = dict(bindings)
    for node, term in zip(pattern, triple, strict=True):
        if isinstance(node, Variable):
            if result.setdefault(node, term) != term:
                return None
        elif node != term:
            return None
    return result


def _instantiate(pattern: _Pattern, bindings: _Bindings) -> Triple:
    s, p, o = (bindings[n] if isinstance(n, Variable) else n for n in pattern)
    return s, p, o


def _is_triple(triple: Triple) -> bool:
    return isinstance(triple[0], NamedNode | BlankNode) and isinstance(triple[1], NamedNode)


def all_of(triples: Iterable[Triple]) -> Lookup:
    """Return a look-up over the given triples.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS, TYPE
    >>> a, b, x = (NamedNode(f"urn:{n}") for n in "abx")
    >>> closed = extend([(a, SUBCLASS, b)], all_of([(x, TYPE, a)]))
    >>> (x, TYPE, b) in closed
    True
    """
    graph = _Graph()
    for triple in triples:
        graph.add(triple)
    return graph.lookup
