"""The oracle: a slow definition of a match, in the words of docs/reference/semantics.md.

It shares no code with the code under test: it imports only data types and the names of vocabulary
terms. Entailment is a fixpoint over all pairs of triples, a basic graph pattern is a nested loop
over all triples, and taxonomies are walked link by link.

A query is a small tree (`Query`, `Group`, `Pattern`, filters) that knows its own truth (`answer`)
and its own text (`to_sparql`).

Source: SPARQL 1.1 section 18 (algebra), 17.2 and 17.3 (three-valued logic, operators).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from typing import Literal as OneOf
from typing import TypeAlias, TypeGuard, get_args
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode, Variable

from semantic.terms import Node, Term, Triple
from semantic.vocabulary import (
    BROADER,
    BROADER_TRANSITIVE,
    DOMAIN,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    GM,
    INVERSE_OF,
    NARROWER,
    OWL,
    RANGE,
    RDF,
    RDFS,
    SAME_AS,
    SKOS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
)

# --------------------------------------------------------------------------------------
# The query tree


@dataclass(frozen=True, slots=True)
class Pattern:
    """A triple pattern; a blank node in it is a hidden variable of the query."""

    subject: Node
    predicate: Node
    object: Node

    def __iter__(self) -> Iterator[Node]:
        yield self.subject
        yield self.predicate
        yield self.object


Operator = OneOf["=", "!=", "<", "<=", ">", ">="]
Taxonomic = OneOf["descendantOf", "ancestorOf", "childOf"]
TextFunction = OneOf["CONTAINS", "STRSTARTS", "STRENDS", "LANGMATCHES", "=", "REGEX"]
TextView = OneOf["STR", "LANG", "LCASE", "UCASE"]
Entailment = OneOf["rdfs", "none"]
OPERATORS: tuple[Operator, ...] = get_args(Operator)
TAXONOMIC: tuple[Taxonomic, ...] = get_args(Taxonomic)
TEXT_FUNCTIONS: tuple[TextFunction, ...] = get_args(TextFunction)


@dataclass(frozen=True, slots=True)
class Compare:
    variable: Variable
    operator: Operator
    constant: NamedNode | Literal


@dataclass(frozen=True, slots=True)
class Isa:
    """``gm:descendantOf(?variable, constant)`` and similar operators."""

    variable: Variable
    which: Taxonomic
    constant: NamedNode | Literal


@dataclass(frozen=True, slots=True)
class Text:
    """``CONTAINS(LCASE(STR(?variable)), constant)`` and similar functions.

    ``view`` holds the functions around the variable, innermost first. Regular expressions must mean
    the same in Python.
    """

    variable: Variable
    function: TextFunction
    view: tuple[TextView, ...]
    constant: Literal
    caseless: bool = False


@dataclass(frozen=True, slots=True)
class In:
    """``?variable IN (…)``."""

    variable: Variable
    constants: tuple[NamedNode | Literal, ...]


@dataclass(frozen=True, slots=True)
class Bound:
    variable: Variable


@dataclass(frozen=True, slots=True)
class Not:
    operand: Filter


@dataclass(frozen=True, slots=True)
class And:
    left: Filter
    right: Filter


@dataclass(frozen=True, slots=True)
class Or:
    left: Filter
    right: Filter


@dataclass(frozen=True, slots=True)
class NotExists:
    """NOT EXISTS of patterns and filters only, because SPARQL is ambiguous beyond that."""

    group: Group

    def __post_init__(self) -> None:
        if self.group.parts:
            raise ValueError("NOT EXISTS holds patterns and filters only")


Filter: TypeAlias = Compare | Isa | Text | In | Bound | Not | And | Or | NotExists


@dataclass(frozen=True, slots=True)
class Optional:
    group: Group


@dataclass(frozen=True, slots=True)
class Union:
    branches: tuple[Group, ...]


@dataclass(frozen=True, slots=True)
class Minus:
    group: Group


Part: TypeAlias = Optional | Union | Minus


@dataclass(frozen=True, slots=True)
class Group:
    """``{ patterns . parts, in order . FILTERs }``."""

    patterns: tuple[Pattern, ...] = ()
    filters: tuple[Filter, ...] = ()
    parts: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """SELECT (``projection=None`` is ``*``) or ASK."""

    where: Group
    projection: tuple[Variable, ...] | None = None
    distinct: bool = False
    ask: bool = False


def to_sparql(query: Query) -> str:
    """Write the query as SPARQL 1.1."""
    if query.ask:
        return f"ASK {_text(query.where)}"
    names = "*" if query.projection is None else " ".join(map(str, query.projection))
    return f"SELECT {'DISTINCT ' * query.distinct}{names} WHERE {_text(query.where)}"


def _text(node: Group | Part | Pattern | Filter) -> str:
    match node:
        case Group(patterns, filters, parts):
            constraints = [f"FILTER({_text(constraint)})" for constraint in filters]
            return "{ " + " ".join([*map(_text, (*patterns, *parts)), *constraints]) + " }"
        case Pattern():
            return " ".join(map(str, node)) + " ."
        case Optional(group):
            return f"OPTIONAL {_text(group)}"
        case Union(branches):
            return " UNION ".join(map(_text, branches))
        case Minus(group):
            return f"MINUS {_text(group)}"
        case Compare(variable, operator, constant):
            return f"({variable} {operator} {constant})"
        case Isa(variable, which, constant):
            return f"{GM[which]}({variable}, {constant})"
        case Text():
            return _text_of_text(node)
        case In(variable, constants):
            return f"({variable} IN ({', '.join(map(str, constants))}))"
        case Bound(variable):
            return f"BOUND({variable})"
        case Not(operand):
            return f"(!{_text(operand)})"
        case And(left, right):
            return f"({_text(left)} && {_text(right)})"
        case Or(left, right):
            return f"({_text(left)} || {_text(right)})"
        case NotExists(group):
            return f"(NOT EXISTS {_text(group)})"


def _text_of_text(node: Text) -> str:
    text = str(node.variable)
    for function in node.view:
        text = f"{function}({text})"
    if node.function == "=":
        return f"({text} = {node.constant})"
    flags = ', "i"' if node.caseless else ""
    return f"{node.function}({text}, {node.constant}{flags})"


def variables_of(group: Group) -> frozenset[Variable]:
    """Return the variables that solutions of the group may bind: those of ``*``."""
    found = {node for pattern in group.patterns for node in pattern if isinstance(node, Variable)}
    for part in group.parts:
        match part:
            case Optional(inner):
                found |= variables_of(inner)
            case Union(branches):
                found |= {variable for branch in branches for variable in variables_of(branch)}
    return frozenset(found)


# --------------------------------------------------------------------------------------
# Section 1: roots

Pair: TypeAlias = tuple[Term, Term]
_EQUIVALENCES = frozenset({SAME_AS, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY})


def _key(term: Term) -> Term:
    """Return a synonym's key: for a string, the string without its language tag."""
    if isinstance(term, Literal) and (term.language or term.datatype == XSD["string"]):
        return Literal(term.value)
    return term


@dataclass(frozen=True, slots=True)
class Roots:
    """A map from terms to roots; calling it with any other term returns that term."""

    of: Mapping[Term, Term]

    def __call__(self, term: Term) -> Term:
        return self.of.get(_key(term), term)

    def triples(self, triples: Iterable[Triple]) -> frozenset[Triple]:
        return frozenset((self(s), self(p), self(o)) for s, p, o in triples)

    def query(self, query: Query) -> Query:
        return Query(self._group(query.where), query.projection, query.distinct, query.ask)

    def _group(self, group: Group) -> Group:
        return Group(
            tuple(Pattern(*map(self._node, pattern)) for pattern in group.patterns),
            tuple(map(self._filter, group.filters)),
            tuple(map(self._part, group.parts)),
        )

    def _node(self, node: Node) -> Node:
        return node if isinstance(node, Variable) else self(node)

    def _constant(self, constant: NamedNode | Literal) -> NamedNode | Literal:
        root = self(constant)
        assert isinstance(root, NamedNode | Literal)
        return root

    def _part(self, part: Part) -> Part:
        if isinstance(part, Union):
            return Union(tuple(map(self._group, part.branches)))
        return type(part)(self._group(part.group))

    def _filter(self, constraint: Filter) -> Filter:
        match constraint:
            case Compare(variable, "=" | "!=" as operator, constant):
                return Compare(variable, operator, self._constant(constant))
            case Isa(variable, which, constant):
                return Isa(variable, which, self._constant(constant))
            case Text(variable, "=", view, constant):
                root = self._constant(constant)
                assert isinstance(root, Literal)
                return Text(variable, "=", view, root)
            case In(variable, constants):
                return In(variable, tuple(map(self._constant, constants)))
            case Not(operand):
                return Not(self._filter(operand))
            case And(left, right) | Or(left, right):
                return type(constraint)(self._filter(left), self._filter(right))
            case NotExists(group):
                return NotExists(self._group(group))
        return constraint


def roots(ontology: Iterable[Triple], synonyms: Iterable[Pair] = ()) -> Roots:
    """Find the root of every term. A synonym pair is (synonym, root).

    Replacing terms may close a cycle and so merge more terms, so the search repeats until nothing
    changes.
    """
    ontology, synonyms = frozenset(ontology), unambiguous(synonyms)
    named = {_key(root): root for _, root in synonyms}
    final = {_end(_key(name), synonyms) for name, _ in synonyms}
    declared = {s for s, p, _ in ontology if p == TYPE}
    pairs = {(_key(synonym), _key(root)) for synonym, root in synonyms}
    while True:
        mapping: dict[Term, Term] = {}
        for members in _partition(pairs):
            best = members & final or members & declared or members
            root = min(best, key=_written)
            mapping |= dict.fromkeys(members, named.get(root, root))
        result = Roots(mapping)
        rewritten = result.triples(ontology)
        new: set[Pair] = {
            (s, o)
            for s, p, o in rewritten
            if p in _EQUIVALENCES and isinstance(s, NamedNode) and isinstance(o, NamedNode)
        }
        for kind in ({SUBCLASS}, {SUBPROPERTY}, {BROADER, NARROWER, BROADER_TRANSITIVE}):
            new |= _cycles(_links(t for t in rewritten if t[1] in kind))
        new = {(a, b) for a, b in new if a != b}
        if not new:
            return result
        pairs |= new


def unambiguous(synonyms: Iterable[Pair]) -> tuple[Pair, ...]:
    """Remove rows that map a name to itself, or that give it several roots."""
    saying = [(name, root) for name, root in synonyms if _key(name) != _key(root)]
    return tuple(
        (name, root)
        for name, root in saying
        if len({_key(b) for a, b in saying if _key(a) == _key(name)}) == 1
    )


def _end(name: Term, synonyms: Iterable[Pair]) -> Term:
    """Return the end of a name's chain, or the first name of a cycle."""
    following = {_key(a): _key(b) for a, b in synonyms}
    way = [name]
    while following.get(way[-1], way[0]) not in way:
        way.append(following[way[-1]])
    if way[-1] not in following:
        return way[-1]
    return min(way[way.index(following[way[-1]]) :], key=_written)


def _written(term: Term) -> str:
    assert isinstance(term, NamedNode | Literal)
    return term.value


def _partition(pairs: Iterable[Pair]) -> list[frozenset[Term]]:
    classes: list[frozenset[Term]] = []
    for pair in pairs:
        touched = [members for members in classes if members & set(pair)]
        classes = [members for members in classes if members not in touched]
        classes.append(frozenset(pair).union(*touched))
    return classes


def _links(triples: Iterable[Triple]) -> frozenset[Pair]:
    """Return the stated is-a links, from narrower to broader."""
    found = set()
    for s, p, o in triples:
        if p in (SUBCLASS, SUBPROPERTY, BROADER, BROADER_TRANSITIVE, TYPE):
            found.add((s, o))
        elif p == NARROWER:
            found.add((o, s))
    return frozenset(found)


def _reachable(start: Term, links: Iterable[Pair]) -> frozenset[Term]:
    """Return the terms that one or more links lead to."""
    found: set[Term] = set()
    while new := {b for a, b in links if a == start or a in found} - found:
        found |= new
    return frozenset(found)


def _cycles(links: frozenset[Pair]) -> set[Pair]:
    nodes = {node for link in links for node in link if isinstance(node, NamedNode)}
    reach = {node: _reachable(node, links) for node in nodes}
    return {(a, b) for a, b in combinations(nodes, 2) if a in reach[b] and b in reach[a]}


# --------------------------------------------------------------------------------------
# Sections 2 and 3: entailment

_RESERVED = (RDF.iri, RDFS.iri, OWL.iri, SKOS.iri)
Conclusion: TypeAlias = tuple[str, Triple]


def _from_one(triple: Triple) -> Iterator[Conclusion]:
    c, p, d = triple
    if p == NARROWER:
        yield "narrower", (d, BROADER, c)
    if p == BROADER:
        yield "narrower", (d, NARROWER, c)
        yield "broader", (c, BROADER_TRANSITIVE, d)


def _from_two(schema: Triple, triple: Triple) -> Iterator[Conclusion]:
    a, says, b = schema
    x, p, y = triple
    if says == DOMAIN and p == a:
        yield "rdfs2", (x, TYPE, b)
    if says == RANGE and p == a and not isinstance(y, Literal):
        yield "rdfs3", (y, TYPE, b)
    if says == SUBPROPERTY:
        if p == SUBPROPERTY and x == b:
            yield "rdfs5", (a, SUBPROPERTY, y)
        if p == a:
            yield "rdfs7", (x, b, y)
    if says == SUBCLASS:
        if p == TYPE and y == a:
            yield "rdfs9", (x, TYPE, b)
        if p == SUBCLASS and x == b:
            yield "rdfs11", (a, SUBCLASS, y)
    if says == INVERSE_OF and not isinstance(y, Literal):
        if p == a:
            yield "inverse", (y, b, x)
        if p == b:
            yield "inverse", (y, a, x)
    if says == BROADER_TRANSITIVE:
        if p == BROADER_TRANSITIVE and x == b:
            yield "broader", (a, BROADER_TRANSITIVE, y)
        if y == a and not (isinstance(p, NamedNode) and p.value.startswith(_RESERVED)):
            yield "topic", (x, p, b)


def _heard_from_one(triple: Triple) -> Iterator[Conclusion]:
    """Apply a publication's equivalences; those of the ontology define roots."""
    a, says, b = triple
    if says == EQUIVALENT_CLASS:
        yield "own equivalentClass", (a, SUBCLASS, b)
        yield "own equivalentClass", (b, SUBCLASS, a)
    if says == EQUIVALENT_PROPERTY:
        yield "own equivalentProperty", (a, SUBPROPERTY, b)
        yield "own equivalentProperty", (b, SUBPROPERTY, a)


def _heard_from_two(same: Triple, triple: Triple) -> Iterator[Conclusion]:
    a, says, b = same
    x, p, y = triple
    if says == SAME_AS and a != b and not isinstance(b, Literal):
        for one, other in ((a, b), (b, a)):
            if x == one:
                yield "own sameAs", (other, p, y)
            if y == one:
                yield "own sameAs", (x, p, other)


def _may_be(triple: Triple) -> bool:
    return not isinstance(triple[0], Literal) and isinstance(triple[1], NamedNode)


def conclusions(c: frozenset[Triple], e: frozenset[Triple] | None) -> Iterator[Conclusion]:
    """Yield all conclusions of one step, each with its rule.

    If *e* is ``None``, use only *c*; otherwise use at least one premise of *e*.
    """
    everything = c if e is None else c | e
    for first in everything:
        yield from _from_one(first) if e is None or first in e else ()
        if e is not None and first in e:
            yield from _heard_from_one(first)
            for second in everything:
                yield from _heard_from_two(first, second)
        if first[1] not in _SCHEMA:
            continue
        for second in everything if e is None or first in e else e:
            yield from _from_two(first, second)


_SCHEMA = frozenset({DOMAIN, RANGE, SUBPROPERTY, SUBCLASS, INVERSE_OF, BROADER_TRANSITIVE})


def _saturated(c: frozenset[Triple], e: frozenset[Triple] | None) -> frozenset[Triple]:
    known = c if e is None else e
    while True:
        step = conclusions(known, None) if e is None else conclusions(c, known)
        new = {triple for _, triple in step if _may_be(triple)} - known
        if not new:
            return known
        known |= new


def closure(
    ontology: Iterable[Triple], publication: Iterable[Triple]
) -> tuple[frozenset[Triple], frozenset[Triple]]:
    """Return *C(O)* and *E(P)* of triples that consist of roots."""
    c = _saturated(frozenset(ontology), None)
    return c, _saturated(c, frozenset(publication))


# --------------------------------------------------------------------------------------
# The graph that a subscription sees


@dataclass(frozen=True)
class World:
    """Everything that one match depends on: *C(O)*, *E(P)*, the stated links and the roots.

    Attributes belong to *E(P)*, but only for patterns that name their property; so do numbers in
    named units, in *E(P)* or *C(O)*.
    """

    background: frozenset[Triple]
    news: frozenset[Triple]
    links: frozenset[Pair]
    roots: Roots
    entailment: Entailment = "rdfs"
    attributes: frozenset[Triple] = frozenset()
    background_attributes: frozenset[Triple] = frozenset()

    @classmethod
    def of(
        cls,
        ontology: Iterable[Triple],
        publication: Iterable[Triple],
        synonyms: Iterable[Pair] = (),
        *,
        entailment: Entailment = "rdfs",
    ) -> World:
        o, p = frozenset(ontology), frozenset(publication)
        root = roots(o, synonyms)
        links = _links(root.triples(o | p))
        if entailment == "none":
            return cls(o, p, links, root, entailment)
        rooted_o, rooted_p = root.triples(o), root.triples(p)
        c, e = closure(rooted_o, rooted_p)
        measured = in_all_units(rooted_p, c), in_all_units(rooted_o, c)
        return cls(c, e, links, root, entailment, *measured)

    @cached_property
    def graph(self) -> frozenset[Triple]:
        return self.background | self.news

    def seen(self, pattern: Pattern) -> frozenset[Triple]:
        """Return the triples that a pattern can match."""
        return self.graph | self.background_attributes | self.published(pattern)

    def published(self, pattern: Pattern) -> frozenset[Triple]:
        """Return the triples of *E(P)* that a pattern can match."""
        named = isinstance(pattern.predicate, NamedNode)
        return self.news | self.attributes if named else self.news

    def isa(self, which: Taxonomic, x: Term, c: Term) -> bool:
        """Decide a taxonomy operator by walking the stated links."""
        x, c = self.roots(x), self.roots(c)
        match which:
            case "descendantOf":
                return x == c or c in _reachable(x, self.links)
            case "ancestorOf":
                return x == c or x in _reachable(c, self.links)
            case "childOf":
                return x != c and (x, c) in self.links


# --------------------------------------------------------------------------------------
# Units: the numbers of QUDT's nodes

Unit: TypeAlias = tuple[str, Fraction, Fraction]
"""A dimension, and the factor and offset that give the number in its base unit."""
_KG, _G = ("mass", Fraction(1), Fraction(0)), ("mass", Fraction(1, 1000), Fraction(0))
_K, _C = ("heat", Fraction(1), Fraction(0)), ("heat", Fraction(1), Fraction("273.15"))
_QUDT, _UNIT = "http://qudt.org/schema/qudt/", "http://qudt.org/vocab/unit/"
UNITS: Mapping[Term, Unit] = {
    NamedNode(f"{_UNIT}KiloGM"): _KG,
    NamedNode(f"{_UNIT}GM"): _G,
    NamedNode(f"{_UNIT}K"): _K,
    NamedNode(f"{_UNIT}DEG_C"): _C,
    Literal("kg"): _KG,
    Literal("g"): _G,
}
NUMBERS = tuple(NamedNode(_QUDT + name) for name in ("numericValue", "value"))
UNIT_PROPERTIES = tuple(NamedNode(_QUDT + name) for name in ("unit", "hasUnit"))
QUANTITY = NamedNode("https://w3id.org/cdt/ucum")


def _named(property_: Term, unit: Term) -> NamedNode:
    """Return a property for the values of another one in a unit."""
    return NamedNode("urn:oracle:" + quote(f"{property_} {unit}"))


def _number(value: Fraction) -> Literal:
    if value.denominator == 1:
        return Literal(str(value.numerator), datatype=XSD["integer"])
    text = f"{Decimal(value.numerator) / Decimal(value.denominator):f}"
    return Literal(text, datatype=XSD["decimal"])


def _is_number(term: object) -> TypeGuard[Literal]:
    return isinstance(term, Literal) and term.datatype in _NUMBERS


def _is_quantity(term: Term) -> TypeGuard[Literal]:
    return isinstance(term, Literal) and term.datatype == QUANTITY


def _above(property_: Term, c: Iterable[Triple]) -> set[Term]:
    return {property_, *(o for s, p, o in c if s == property_ and p == SUBPROPERTY)}


def in_all_units(triples: frozenset[Triple], c: Iterable[Triple]) -> frozenset[Triple]:
    """Return each number with exactly one unit, and this unit, in all units of the dimension."""
    found: set[Triple] = set()
    for subject, value, number in triples:
        if not _is_number(number) or _above(value, c).isdisjoint(NUMBERS):
            continue
        stated = [t for t in triples if t[0] == subject and t[1] in UNIT_PROPERTIES]
        if len({UNITS[unit] for _, _, unit in stated}) != 1:
            continue
        dimension, factor, offset = UNITS[stated[0][2]]
        base = Fraction(number.value) * factor + offset
        for unit, (other, own_factor, own_offset) in UNITS.items():
            if other == dimension:
                own = _number((base - own_offset) / own_factor)
                found |= {(subject, _named(p, unit), own) for p in _above(value, c)}
                found |= {(subject, _named(p, unit), unit) for p in UNIT_PROPERTIES}
    return frozenset(found)


def in_named_units(query: Query) -> Query:
    """Return a query that asks for numbers in the units that it names for their subjects."""
    patterns, filters = list(_patterns(query.where)), list(_filters(query.where))
    numbers = {one.object: one.subject for one in patterns if one.predicate in NUMBERS}
    units: dict[Node, Term] = {}
    naming: set[Pattern] = set()
    for one in patterns:
        equal = [f.constant for f in filters if f.variable == one.object and f.operator == "="]
        unit = equal[0] if equal else one.object
        if (
            one.predicate in UNIT_PROPERTIES
            and not isinstance(unit, Variable)
            and unit in UNITS
            and one.subject in numbers.values()
        ):
            units[one.subject] = unit
            naming.add(one)
    quantities: dict[Node, Term] = {}
    for test in filters:
        if test.variable in numbers and _is_quantity(test.constant):
            quantities.setdefault(test.variable, Literal(test.constant.value.split()[1]))

    def pattern(one: Pattern) -> Pattern:
        unit = units.get(one.subject) or quantities.get(one.object)
        if unit is None or not (one.predicate in NUMBERS or one in naming):
            return one
        object_ = _number(Fraction(one.object.value)) if _is_number(one.object) else one.object
        return Pattern(one.subject, _named(one.predicate, unit), object_)

    def constraint(one: Filter) -> Filter:
        if isinstance(one, NotExists):
            return NotExists(group(one.group))
        if isinstance(one, Compare) and _is_quantity(one.constant):
            number, text = one.constant.value.split()
            _, factor, offset = UNITS[Literal(text)]
            unit = units.get(numbers[one.variable]) or quantities[one.variable]
            _, own_factor, own_offset = UNITS[unit]
            own = (Fraction(number) * factor + offset - own_offset) / own_factor
            return Compare(one.variable, one.operator, _number(own))
        return one

    def part(one: Part) -> Part:
        if isinstance(one, Union):
            return Union(tuple(map(group, one.branches)))
        return type(one)(group(one.group))

    def group(one: Group) -> Group:
        filters, parts = map(constraint, one.filters), map(part, one.parts)
        return Group(tuple(map(pattern, one.patterns)), tuple(filters), tuple(parts))

    return replace(query, where=group(query.where)) if units or quantities else query


def _groups(group: Group) -> Iterator[Group]:
    yield group
    for part in group.parts:
        for inner in part.branches if isinstance(part, Union) else (part.group,):
            yield from _groups(inner)
    for constraint in group.filters:
        if isinstance(constraint, NotExists):
            yield from _groups(constraint.group)


def _patterns(group: Group) -> Iterator[Pattern]:
    return (pattern for one in _groups(group) for pattern in one.patterns)


def _filters(group: Group) -> Iterator[Compare]:
    return (f for one in _groups(group) for f in one.filters if isinstance(f, Compare))


# --------------------------------------------------------------------------------------
# Comparisons by value

Truth: TypeAlias = bool | None
"""``None`` is SPARQL's type error."""

_NUMBERS = {XSD["integer"]: int, XSD["decimal"]: Decimal, XSD["double"]: float}


def _value(literal: Literal) -> tuple[str, object]:
    if literal.datatype in _NUMBERS:
        return "number", _NUMBERS[literal.datatype](literal.value)
    if literal.datatype == XSD["string"]:
        return "string", literal.value
    if literal.datatype == XSD["boolean"]:
        return "boolean", {"true": True, "1": True, "false": False, "0": False}[literal.value]
    if literal.datatype == XSD["dateTime"]:
        return "dateTime", datetime.fromisoformat(literal.value)
    if literal.datatype == XSD["date"]:
        return "date", date.fromisoformat(literal.value)
    if literal.language:
        return "tagged", (literal.value, literal.language)
    raise NotImplementedError(f"the oracle knows no values of {literal.datatype}")


def compare(left: Term, operator: Operator, right: Term) -> Truth:
    """Compare two terms with a SPARQL operator.

    Literals of two known kinds are unequal; SPARQL 1.1's table calls this an error, but allows
    extensions (17.3.1). A dateTime with a zone never equals one without, and the two have an order
    only if it holds for every zone (XML Schema 1.1, 3.3.7).
    """
    if operator == "!=":
        equal = compare(left, "=", right)
        return None if equal is None else not equal
    if not (isinstance(left, Literal) and isinstance(right, Literal)):
        return left == right if operator == "=" else None
    (kind, a), (other_kind, b) = _value(left), _value(right)
    if kind == other_kind == "number" and (a != a or b != b):
        return False  # NaN equals nothing and has no order.
    if operator == "=":
        return kind == other_kind and _sign(a, b) == 0
    if kind != other_kind or kind == "tagged":
        return None
    sign = _sign(a, b)
    if sign is None:
        return None
    return {"<": sign < 0, "<=": sign <= 0, ">": sign > 0, ">=": sign >= 0}[operator]


def _sign(a: object, b: object) -> int | None:
    """Return -1, 0 or 1 for two values of one kind, or ``None`` if they have no order."""
    if isinstance(a, datetime) and isinstance(b, datetime):
        if (a.tzinfo is None) == (b.tzinfo is None):
            return (a > b) - (a < b)
        if a.tzinfo is not None:
            reverse = _sign(b, a)
            return None if reverse is None else -reverse
        earliest, latest = (a.replace(tzinfo=UTC) + timedelta(hours=shift) for shift in (-14, 14))
        return -1 if latest < b else 1 if earliest > b else None
    if isinstance(a, float) or isinstance(b, float):
        a, b = float(a), float(b)  # type: ignore[arg-type]
    return int(a > b) - int(a < b)  # type: ignore[operator]


# --------------------------------------------------------------------------------------
# String functions (SPARQL 1.1, 17.4.2 and 17.4.3)


def _viewed(term: Term | None, view: TextView) -> Literal | None:
    """Apply one function; ``None`` is an error."""
    match view:
        case "STR":
            return Literal(term.value) if isinstance(term, NamedNode | Literal) else None
        case "LANG":
            return Literal(term.language or "") if isinstance(term, Literal) else None
    if not _is_text(term):
        return None
    text = term.value.lower() if view == "LCASE" else term.value.upper()
    return Literal(text, language=term.language) if term.language else Literal(text)


def _is_text(term: Term | None) -> TypeGuard[Literal]:
    return isinstance(term, Literal) and (bool(term.language) or term.datatype == XSD["string"])


def text_truth(test: Text, term: Term | None) -> Truth:
    """Evaluate a string test on a term or on an unbound variable."""
    for view in test.view:
        term = _viewed(term, view)
    wanted = test.constant
    if test.function == "=":
        return None if term is None else compare(term, "=", wanted)
    if not _is_text(term):
        return None
    text, constant = term.value, wanted.value
    if test.function == "LANGMATCHES":
        if term.language or wanted.language:
            return None
        subtags, asked = text.lower().split("-"), constant.lower().split("-")
        return text != "" if constant == "*" else subtags[: len(asked)] == asked
    if test.function == "REGEX":
        flags = re.IGNORECASE if test.caseless else re.NOFLAG
        return None if wanted.language else re.search(constant, text, flags) is not None
    if wanted.language and wanted.language != term.language:
        return None
    match test.function:
        case "CONTAINS":
            return constant in text
        case "STRSTARTS":
            return text.startswith(constant)
        case "STRENDS":
            return text.endswith(constant)


# --------------------------------------------------------------------------------------
# Evaluation

Binding: TypeAlias = dict[Node, Term]
Row: TypeAlias = frozenset[tuple[str, Term]]
"""A solution: a (variable name, term) pair for each bound variable."""

Answer: TypeAlias = Counter[Row]
"""A multiset of solutions."""


def _basic(patterns: Iterable[Pattern], world: World, given: Binding) -> Iterator[Binding]:
    """Yield each extension of *given*, including the query's blank nodes."""
    match list(patterns):
        case []:
            yield given
        case [first, *rest]:
            for triple in world.seen(first):
                extended = _extended(given, first, triple)
                if extended is not None:
                    yield from _basic(rest, world, extended)


def _extended(given: Binding, pattern: Pattern, triple: Triple) -> Binding | None:
    extended = given
    for node, term in zip(pattern, triple, strict=True):
        if isinstance(node, NamedNode | Literal):
            if node != term:
                return None
        elif node not in extended:
            extended = extended | {node: term}
        elif extended[node] != term:
            return None
    return extended


def _compatible(a: Binding, b: Binding) -> bool:
    return all(a[node] == b[node] for node in a.keys() & b.keys())


def _solutions(group: Group, world: World, given: Binding) -> list[Binding]:
    return [
        solution
        for solution in _unfiltered(group, world, given)
        if _holds(group.filters, solution, world)
    ]


def _unfiltered(group: Group, world: World, given: Binding) -> list[Binding]:
    omega: list[Binding] = list(_basic(group.patterns, world, given))
    for part in group.parts:
        match part:
            case Optional(inner):
                omega = _left_join(omega, inner, world)
            case Union(branches):
                right = [b for branch in branches for b in _solutions(branch, world, {})]
                omega = [a | b for a in omega for b in right if _compatible(a, b)]
            case Minus(inner):
                right = _solutions(inner, world, {})
                omega = [
                    a
                    for a in omega
                    if not any(a.keys() & b.keys() and _compatible(a, b) for b in right)
                ]
    return omega


def _left_join(omega: list[Binding], inner: Group, world: World) -> list[Binding]:
    right = _unfiltered(inner, world, {})
    joined: list[Binding] = []
    for a in omega:
        more = [a | b for b in right if _compatible(a, b)]
        joined += [both for both in more if _holds(inner.filters, both, world)] or [a]
    return joined


def _holds(filters: Iterable[Filter], solution: Binding, world: World) -> bool:
    return all(_truth(constraint, solution, world) is True for constraint in filters)


def _truth(constraint: Filter, solution: Binding, world: World) -> Truth:
    match constraint:
        case Compare(variable, operator, constant):
            term = solution.get(variable)
            return None if term is None else compare(term, operator, constant)
        case Isa(variable, which, constant):
            term = solution.get(variable)
            return None if term is None else world.isa(which, term, constant)
        case Text():
            return text_truth(constraint, solution.get(constraint.variable))
        case In(variable, constants):
            term = solution.get(variable)
            found = {None if term is None else compare(term, "=", c) for c in constants}
            return True if True in found else None if None in found else False
        case Bound(variable):
            return variable in solution
        case Not(operand):
            truth = _truth(operand, solution, world)
            return None if truth is None else not truth
        case And(left, right):
            both = {_truth(left, solution, world), _truth(right, solution, world)}
            return False if False in both else None if None in both else True
        case Or(left, right):
            both = {_truth(left, solution, world), _truth(right, solution, world)}
            return True if True in both else None if None in both else False
        case NotExists(group):
            return not _solutions(group, world, solution)


# --------------------------------------------------------------------------------------
# Section 4: delta solutions


def _basic_graph_patterns(group: Group) -> Iterator[tuple[Pattern, ...]]:
    """Yield the query's patterns except those in MINUS and NOT EXISTS."""
    yield group.patterns
    for part in group.parts:
        match part:
            case Optional(inner):
                yield from _basic_graph_patterns(inner)
            case Union(branches):
                for branch in branches:
                    yield from _basic_graph_patterns(branch)


def rests(where: Group, solution: Binding, world: World) -> bool:
    """Return whether the solution makes some triple pattern a triple of *E(P)*."""
    return any(
        all(isinstance(node, NamedNode | Literal) or node in solution for node in pattern)
        and tuple(solution.get(node, node) for node in pattern) in world.published(pattern)
        for patterns in _basic_graph_patterns(where)
        for pattern in patterns
    )


# --------------------------------------------------------------------------------------
# The answer


def all_solutions(query: Query, world: World) -> Answer:
    """Return all solutions, as SPARQL does."""
    return _answer(query, world, resting=False)


def answer_in(query: Query, world: World) -> Answer:
    """Return only the solutions that use the publication: the matches."""
    return _answer(query, world, resting=True)


def answer(
    query: Query,
    ontology: Iterable[Triple],
    publication: Iterable[Triple],
    synonyms: Iterable[Pair] = (),
    *,
    entailment: Entailment = "rdfs",
) -> Answer:
    """Answer the query from stated triples. It matches if the answer is not empty."""
    return answer_in(query, World.of(ontology, publication, synonyms, entailment=entailment))


def _answer(query: Query, world: World, *, resting: bool) -> Answer:
    if world.entailment != "none":
        query = in_named_units(world.roots.query(query))
    kept = [
        solution
        for solution in _solutions(query.where, world, {})
        if not resting or rests(query.where, solution, world)
    ]
    if query.ask:
        return Counter([frozenset()] if kept else [])
    shown = variables_of(query.where) if query.projection is None else query.projection
    rows = [
        frozenset(
            (variable.value, kept_one[variable]) for variable in shown if variable in kept_one
        )
        for kept_one in kept
    ]
    return Counter(set(rows) if query.distinct else rows)
