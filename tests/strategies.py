"""Hypothesis strategies: ontologies, publications, and subscriptions that often match.

One small vocabulary serves everything, so that patterns and triples often match. A subscription
is derived from true triples of the world (`oracle.World`): some terms become variables, most
filters hold, and sometimes a change makes it fail. A constant is any name of a term, not only its
root.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, permutations, product
from typing import TypeVar

from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, Variable

from semantic.errors import Place
from semantic.ontology.synonyms import SynonymPairs, SynonymRow, SynonymRows, merged
from semantic.publication import Publication
from semantic.terms import Node, Term, Triple
from semantic.vocabulary import (
    BROADER,
    DOMAIN,
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    INVERSE_OF,
    NARROWER,
    OWL,
    RANGE,
    SAME_AS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
    Namespace,
)
from tests.oracle import (
    NUMBERS,
    OPERATORS,
    QUANTITY,
    TAXONOMIC,
    TEXT_FUNCTIONS,
    UNIT_PROPERTIES,
    UNITS,
    And,
    Bound,
    Compare,
    Entailment,
    Filter,
    Group,
    In,
    Isa,
    Minus,
    Not,
    NotExists,
    Optional,
    Or,
    Pair,
    Part,
    Pattern,
    Query,
    Text,
    TextView,
    Union,
    World,
    compare,
    text_truth,
    variables_of,
)

EX = Namespace("http://example.org/")
RESOURCES = tuple(EX[name] for name in ("ann", "bob", "cat", "dan", "eve", "fay", "gus"))
PROPERTIES = tuple(EX[name] for name in ("p", "q", "r", "s", "t"))
CLASSES = tuple(EX[name] for name in ("A", "B", "C", "D", "E", "F"))
CONCEPTS = tuple(EX[name] for name in ("art", "jazz", "music", "opera"))
TEXT_SYNONYMS: tuple[tuple[Pair, ...], ...] = (
    ((Literal("US"), Literal("United States")),),
    ((Literal("US"), Literal("USA")), (Literal("USA"), Literal("United States"))),
    ((Literal("US"), Literal("United States")), (Literal("US"), Literal("ultrasound"))),
)
"""A pair, a chain, and a name with two roots."""

# Some have equal values but differ as terms: the ones, the truths, the first two dateTimes.
LITERALS = (
    Literal("1", datatype=XSD["integer"]),
    Literal("01", datatype=XSD["integer"]),
    Literal("1.0", datatype=XSD["decimal"]),
    Literal("1", datatype=XSD["double"]),
    Literal("2", datatype=XSD["integer"]),
    Literal("-3.5", datatype=XSD["decimal"]),
    Literal("US"),
    Literal("US", language="en"),
    Literal("United States"),
    Literal("true", datatype=XSD["boolean"]),
    Literal("1", datatype=XSD["boolean"]),
    Literal("2024-01-01T00:00:00Z", datatype=XSD["dateTime"]),
    Literal("2024-01-01T01:00:00+01:00", datatype=XSD["dateTime"]),
    Literal("2024-01-03T00:00:00", datatype=XSD["dateTime"]),
    Literal("2024-01-01", datatype=XSD["date"]),
)
NODES = (*RESOURCES, *CLASSES, *CONCEPTS)
TERMS: tuple[Term, ...] = (*NODES, *PROPERTIES, *LITERALS)
ORDERED = tuple(literal for literal in LITERALS if literal.language is None)
"""Constants for ``<`` and similar operators. SPARQL 1.1 does not order IRIs and tagged strings,
but implementations do, so the tests omit them."""

TEXTS = (
    *map(Literal, ("US", "us", "U", "States", "united states", "United", "en", "EN", "*", "")),
    *map(Literal, ("1", "01", "true", "2024-01", "http://example.org/", "ann", "ultra")),
    *(Literal(text, language="en") for text in ("US", "s")),
)
"""Constants for string functions."""
PATTERNS = tuple(
    map(Literal, ("US", "nit.d", "^us$", "(States|US)", "[U]", "t+es", "ex?ample", ""))
)
"""Regular expressions with the same meaning in Python and the evaluator."""
VIEWS: tuple[tuple[TextView, ...], ...] = (
    *((), ("STR",), ("LANG",), ("LCASE",), ("UCASE",)),
    *(("STR", "LCASE"), ("STR", "UCASE"), ("LCASE", "STR")),
)

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Case:
    """One publication and one subscription, with their ontology and synonyms."""

    ontology: tuple[Triple, ...]
    synonyms: tuple[Pair, ...]
    publication: Publication
    query: Query

    def world(self, entailment: Entailment = "rdfs") -> World:
        return World.of(
            self.ontology, self.publication.triples, self.synonyms, entailment=entailment
        )


@dataclass(frozen=True, slots=True)
class Scenario:
    """Several publications and subscriptions under one ontology."""

    ontology: tuple[Triple, ...]
    synonyms: tuple[Pair, ...]
    publications: tuple[Publication, ...]
    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """Features of generated subscriptions."""

    patterns: int = 4
    variable_properties: bool = True
    blank_nodes: bool = True
    comparisons: bool = True
    taxonomic: bool = True
    texts: bool = True  # String and language tests, IN, || of one variable, !=
    forms: bool = True  # Projections, DISTINCT and ASK; otherwise SELECT *, even without variables
    everything: bool = False  # OPTIONAL, UNION, MINUS, NOT EXISTS, && || !, BOUND


# --------------------------------------------------------------------------------------
# Ontologies and publications


def _chance(draw: st.DrawFn, percent: int) -> bool:
    return draw(st.integers(0, 99)) >= 100 - percent


def _some(items: Sequence[_T], most: int, least: int = 0) -> st.SearchStrategy[list[_T]]:
    most = min(most, len(items))
    return st.integers(least, most).flatmap(
        lambda size: st.lists(st.sampled_from(items), min_size=size, max_size=size, unique=True)
    )


def _links_of(members: Sequence[Term], link: Term) -> list[Triple]:
    return [(a, link, b) for a, b in permutations(members, 2)]


def _stated(
    subjects: Sequence[Term], predicate: Term, objects: Sequence[Term], most: int
) -> st.SearchStrategy[list[Triple]]:
    triples = [(s, predicate, o) for s, o in product(subjects, objects) if s != o]
    return _some(triples, most)


def _dag(members: Sequence[Term], link: Term, most: int) -> st.SearchStrategy[list[Triple]]:
    return _some([(a, link, b) for a, b in combinations(members, 2)], most)


def _knot(members: Sequence[Term], link: Term) -> st.SearchStrategy[list[Triple]]:
    """Return a link against the direction of the others, which may close a cycle."""
    return _some([(b, link, a) for a, b in combinations(members, 2)], 1, 1)


@st.composite
def ontologies(draw: st.DrawFn) -> tuple[Triple, ...]:
    """Draw an ontology: taxonomies, schema, equivalences, instances and a little data."""
    outside: tuple[Term, ...] = (*RESOURCES, BlankNode("o0"))
    parts: list[st.SearchStrategy[list[Triple]]] = [
        _dag(CLASSES, SUBCLASS, 7),
        _dag(PROPERTIES, SUBPROPERTY, 3),
        _stated(PROPERTIES, DOMAIN, CLASSES, 2),
        _stated(PROPERTIES, RANGE, CLASSES, 2),
        _dag(CONCEPTS, BROADER, 3),
        _stated(RESOURCES, TYPE, CLASSES, 4),
        _data(outside, most=5),
    ]
    now_and_then: list[tuple[int, st.SearchStrategy[list[Triple]]]] = [
        (40, _stated(PROPERTIES, INVERSE_OF, PROPERTIES, 2)),
        (30, _knot(CONCEPTS, NARROWER)),
        (15, _knot(CLASSES, SUBCLASS)),
        (10, _knot(PROPERTIES, SUBPROPERTY)),
        (10, _knot(CONCEPTS, BROADER)),
        (20, _stated(CLASSES, EQUIVALENT_CLASS, CLASSES, 2)),
        (15, _stated(PROPERTIES, EQUIVALENT_PROPERTY, PROPERTIES, 1)),
        (25, _stated(RESOURCES, SAME_AS, RESOURCES, 2)),
        (20, _stated(CLASSES, TYPE, (OWL["Class"],), 3)),
        (20, _some([(p, INVERSE_OF, p) for p in PROPERTIES], 1)),
        (30, _stated(RESOURCES, PROPERTIES[0], CONCEPTS, 2)),
    ]
    parts += [part for percent, part in now_and_then if _chance(draw, percent)]
    return tuple(dict.fromkeys(triple for part in parts for triple in draw(part)))


@st.composite
def synonyms(draw: st.DrawFn) -> tuple[Pair, ...]:
    """Draw pairs (synonym, root) of a synonym file: IRIs of one kind, and strings."""
    pairs: list[Pair] = []
    if _chance(draw, 30):
        kind = draw(st.sampled_from((RESOURCES, CLASSES, PROPERTIES, CONCEPTS)))
        pairs += draw(_some(list(permutations(kind, 2)), 3))
    if _chance(draw, 30):
        pairs += draw(st.sampled_from(TEXT_SYNONYMS))
    return tuple(pairs)


def pairs_of(synonyms: Iterable[Pair]) -> SynonymPairs:
    """Convert rows of a synonym file to the package's type."""
    where = Place("generated")
    terms = [SynonymRow(a, b, where) for a, b in synonyms if isinstance(a, NamedNode)]
    texts = [SynonymRow(a.value, b.value, where) for a, b in synonyms if isinstance(a, Literal)]
    return merged([SynonymRows(tuple(terms), tuple(texts))], lambda _: None)


@st.composite
def _data(draw: st.DrawFn, nodes: Sequence[Term], most: int, least: int = 0) -> list[Triple]:
    """Draw data triples, including loops and multiple edges between two nodes."""
    kinds = (nodes, LITERALS, nodes, LITERALS, nodes, LITERALS, CONCEPTS, (*CLASSES, *PROPERTIES))
    triples: list[Triple] = []
    for _ in range(draw(st.integers(least, most))):
        if triples and _chance(draw, 20):
            s, _, o = draw(st.sampled_from(triples))
        else:
            s = draw(st.sampled_from(nodes))
            o = s if _chance(draw, 6) else draw(st.sampled_from(draw(st.sampled_from(kinds))))
        triples.append((s, draw(st.sampled_from(PROPERTIES)), o))
    return triples


@st.composite
def publications(
    draw: st.DrawFn, ontology: Sequence[Triple] = (), name: str = "http://example.org/publication"
) -> Publication:
    """Draw a publication: data with blank nodes, types, and sometimes schema."""
    here = draw(st.permutations(RESOURCES))[:4]
    nodes: tuple[Term, ...] = (*here, BlankNode("b0"), BlankNode("b1"))
    triples = draw(_data(nodes, most=7, least=1))
    triples += draw(_stated(nodes, TYPE, CLASSES, 3))
    schema = (
        _links_of(CLASSES, SUBCLASS),
        _links_of(PROPERTIES, SUBPROPERTY),
        list(product(PROPERTIES, (DOMAIN, RANGE), CLASSES)),
        _links_of(PROPERTIES, INVERSE_OF),
        _links_of(CONCEPTS, BROADER),
        _links_of(CONCEPTS, NARROWER),
    )
    same = (
        _links_of(CLASSES, EQUIVALENT_CLASS),
        _links_of(PROPERTIES, EQUIVALENT_PROPERTY),
        _links_of(nodes, SAME_AS),
    )
    if _chance(draw, 25):
        kinds = draw(_some(range(len(schema)), 3, 1))
        triples += [draw(st.sampled_from(schema[kind])) for kind in kinds]
    if _chance(draw, 20):
        triples.append(draw(st.sampled_from(draw(st.sampled_from(same)))))
    if ontology and _chance(draw, 15):
        sayable = [t for t in ontology if not any(isinstance(term, BlankNode) for term in t)]
        triples += draw(_some(sayable, 2)) if sayable else []
    return Publication.of(name, draw(st.permutations(triples)))


# --------------------------------------------------------------------------------------
# Subscriptions


class _Writer:
    """Convert true triples to patterns, and record the term behind each variable."""

    def __init__(self, draw: st.DrawFn, world: World, profile: Profile) -> None:
        self.draw, self.world, self.profile = draw, world, profile
        self.witness: dict[Variable, Term] = {}
        self._names: dict[Term, Node | None] = {}  # None keeps it constant.
        self._free = 2  # Variables for properties, or for repeated terms
        self._used: list[Triple] = []
        self._blanks = 0

    def chance(self, percent: int) -> bool:
        return _chance(self.draw, percent)

    def pick(self, items: Sequence[_T]) -> _T:
        return self.draw(st.sampled_from(items))

    def triple(self) -> Triple:
        """Pick a triple, usually one that shares a term with earlier ones."""
        news, everything = _listed(self.world.news), _listed(self.world.graph)
        data = [t for t in news if t[1] in PROPERTIES or t[1] == TYPE]
        pool = self.pick([data or news, news, news, everything])
        if self._used and not (self._free and self.chance(12)):
            last = self.pick(self._used)
            ends = {term for triple in self._used for term in (triple[0], triple[2])}
            between = [t for t in everything if (t[0], t[2]) == (last[0], last[2])]
            meeting = [t for t in pool if {t[0], t[2]} & ends]
            meeting = meeting or [t for t in everything if {t[0], t[2]} & ends]
            pool = between if self.chance(12) else meeting
        elif self._used:
            self._free -= 1
        loops = [t for t in pool if t[0] == t[2]]
        chosen = self.pick(loops) if loops and self.chance(8) else self.pick(pool)
        self._used.append(chosen)
        return chosen

    def pattern(self) -> Pattern:
        s, p, o = self.triple()
        return Pattern(self._node(s), self._property(p), self._node(o))

    def _variable(self, term: Term) -> Variable:
        variable = Variable(f"v{len(self.witness)}")
        self.witness[variable] = term
        return variable

    def _blank(self) -> BlankNode:
        self._blanks += 1
        return BlankNode(f"n{self._blanks}")

    def _constant(self, term: Term) -> Term:
        """Name the term by itself or by any term with the same root."""
        same = [t for t in TERMS if self.world.roots(t) == term]
        if self.world.entailment != "none" and same and self.chance(50):
            return self.pick(same)
        return term

    def _node(self, term: Term) -> Node:
        if term not in self._names:
            name: Node | None = None
            if isinstance(term, BlankNode) or self.chance(80):
                hidden = self.profile.blank_nodes and self.chance(10)
                name = self._blank() if hidden else self._variable(term)
            self._names[term] = name
        name = self._names[term]
        if name is None or (not isinstance(term, BlankNode) and self.chance(5)):
            return self._constant(term)
        if self._free and self.chance(5):
            self._free -= 1
            return self._variable(term)
        return name

    def _property(self, term: Term) -> Node:
        if self.profile.variable_properties and self._free and self.chance(10):
            self._free -= 1
            name = self._names.get(term)
            if not isinstance(name, Variable):
                name = self._names[term] = self._variable(term)
            return name
        return self._constant(term)

    def fresh_part(self) -> None:
        """Forget the query's blank nodes, which are local to one basic graph pattern."""
        self._names = {
            term: name for term, name in self._names.items() if not isinstance(name, BlankNode)
        }

    def spoilt(self, patterns: list[Pattern]) -> list[Pattern]:
        """Change one position, so that the patterns may have no solution."""
        at = self.draw(st.integers(0, len(patterns) - 1))
        changed, variables = patterns[at], sorted(self.witness, key=str)
        place = self.pick(("subject", "predicate", "object", "object"))
        choices: dict[str, tuple[Node, ...]] = {
            "subject": (*NODES, *variables),
            "predicate": (*PROPERTIES, TYPE),
            "object": (*NODES, *LITERALS, *variables),
        }
        if isinstance(changed.predicate, Variable) and place == "predicate":
            return patterns
        return [
            *patterns[:at],
            replace(changed, **{place: self.pick(choices[place])}),
            *patterns[at + 1 :],
        ]

    def test(self, variables: Sequence[Variable]) -> Filter:
        """Write a comparison or taxonomy operator that usually holds for the witness."""
        values = [v for v in variables if isinstance(self.witness[v], Literal)]
        variable = self.pick(values if values and self.chance(70) else variables)
        if self.profile.texts and self.chance(15):
            return Or(self._test(variable), self._test(variable))
        return self._test(variable)

    def _test(self, variable: Variable) -> Filter:
        term = self.witness[variable]
        if self.profile.texts and self.chance(22):
            return self._text(variable, term)
        if self.profile.texts and self.profile.comparisons and self.chance(12):
            return self._in(variable, term)
        taxonomic = self.profile.taxonomic and not (
            isinstance(term, Literal) and self.profile.comparisons
        )
        if taxonomic and (not self.profile.comparisons or self.chance(65)):
            return self._isa(variable, term)
        return self._compare(variable, term)

    def _isa(self, variable: Variable, term: Term) -> Isa:
        which = self.pick(TAXONOMIC)
        constants = (*CLASSES, *CONCEPTS, *PROPERTIES, *RESOURCES)
        true = [c for c in constants if self.world.isa(which, term, c)]
        return Isa(variable, which, self.pick(true if true and self.chance(55) else constants))

    def _in(self, variable: Variable, term: Term) -> In:
        constants = self.draw(_some((*LITERALS, *NODES), 3, 1))
        if isinstance(term, NamedNode | Literal) and self.chance(50):
            constants.append(term)
        return In(variable, tuple(constants))

    def _text(self, variable: Variable, term: Term) -> Text:
        """Write a string test, nearly always with a constant that some term contains."""
        function, view = self.pick(TEXT_FUNCTIONS), self.pick(VIEWS)
        constants = PATTERNS if function == "REGEX" else TEXTS
        tests = [Text(variable, function, view, constant) for constant in constants]
        if function == "REGEX":
            tests += [replace(test, caseless=True) for test in tests]
        true = [test for test in tests if text_truth(test, term)]
        return self.pick(true if true and self.chance(60) else tests)

    def _compare(self, variable: Variable, term: Term) -> Compare:
        full = self.profile.everything or self.profile.texts
        operator = self.pick([sign for sign in OPERATORS if full or sign != "!="])
        constants: Sequence[NamedNode | Literal] = ORDERED
        if operator in ("=", "!="):
            constants = LITERALS if isinstance(term, Literal) else NODES
        true = [c for c in constants if compare(term, operator, c)]
        return Compare(
            variable, operator, self.pick(true if true and self.chance(55) else constants)
        )


def _listed(triples: frozenset[Triple]) -> list[Triple]:
    return sorted(triples, key=str)


@st.composite
def queries(draw: st.DrawFn, world: World, profile: Profile) -> Query:
    """Draw a query from true triples of the world."""
    writer = _Writer(draw, world, profile)
    size = draw(st.sampled_from([n for n in (1, 1, 2, 2, 2, 3, 3, 4) if n <= profile.patterns]))
    patterns = [writer.pattern() for _ in range(size)]
    if writer.chance(45 if profile.everything else 65):
        patterns = writer.spoilt(patterns)
    where = Group(tuple(dict.fromkeys(patterns)))
    if profile.everything:
        where = _with_parts(writer, where)
    where = _with_filters(writer, where)
    shown = sorted(variables_of(where), key=str)
    if profile.forms and (not shown or writer.chance(10)):
        return Query(where, ask=True)
    if not profile.forms or writer.chance(50):
        return Query(where)
    return Query(where, tuple(draw(_some(shown, len(shown), 1))), distinct=writer.chance(40))


def _with_filters(writer: _Writer, where: Group) -> Group:
    variables = sorted(variables_of(where) & writer.witness.keys(), key=str)
    profile = writer.profile
    filters: list[Filter] = []
    if variables and (profile.comparisons or profile.taxonomic or profile.texts):
        for _ in range(writer.pick((0, 1, 1, 2))):
            test = writer.test(variables)
            filters.append(_combined(writer, test, variables) if profile.everything else test)
    if profile.everything and writer.chance(15):
        filters.append(_not_exists(writer))
    return replace(where, filters=tuple(filters))


def _combined(writer: _Writer, test: Filter, variables: Sequence[Variable]) -> Filter:
    match writer.pick(("test", "test", "or", "and", "not", "bound")):
        case "or":
            return Or(writer.test(variables), test)
        case "and":
            return And(test, Or(writer.test(variables), Not(writer.test(variables))))
        case "not":
            return Not(Not(test)) if writer.chance(60) else Not(test)
        case "bound":
            bound = Bound(writer.pick(variables))
            return Or(Not(bound), test) if writer.chance(50) else And(bound, test)
    return test


def _more(writer: _Writer, *, spoilt: int) -> Group:
    """Write a group that joins the query; `spoilt` is the percentage of groups that may fail."""
    writer.fresh_part()
    patterns = [writer.pattern() for _ in range(writer.pick((1, 1, 2)))]
    if writer.chance(spoilt):
        patterns = writer.spoilt(patterns)
    group = Group(tuple(dict.fromkeys(patterns)))
    inside = sorted(variables_of(group) & writer.witness.keys(), key=str)
    if inside and writer.chance(25):
        group = replace(group, filters=(writer.test(inside),))
    return group


def _not_exists(writer: _Writer) -> Filter:
    exists = _more(writer, spoilt=75)
    return Not(NotExists(exists)) if writer.chance(25) else NotExists(exists)


def _with_parts(writer: _Writer, where: Group) -> Group:
    parts: list[Part] = []
    for _ in range(writer.pick((0, 1, 1, 2))):
        match writer.pick(("optional", "optional", "union", "union", "minus")):
            case "optional":
                inner = _more(writer, spoilt=35)
                if writer.chance(30):  # The filter sees variables from outside.
                    seen = sorted(writer.witness.keys() & variables_of(where), key=str)
                    inner = replace(inner, filters=(writer.test(seen),)) if seen else inner
                if writer.chance(20):
                    inner = replace(inner, parts=(Optional(_more(writer, spoilt=35)),))
                parts.append(Optional(inner))
            case "union":
                branches = [_more(writer, spoilt=20), _more(writer, spoilt=50)]
                parts.append(Union(tuple(writer.draw(st.permutations(branches)))))
            case "minus":
                parts.append(Minus(_more(writer, spoilt=75)))
    group = replace(where, parts=tuple(parts))
    if any(isinstance(part, Union) for part in parts) and writer.chance(25):
        union = next(part for part in parts if isinstance(part, Union))
        return Group(parts=(union, *(part for part in parts if part is not union)))
    return group


# --------------------------------------------------------------------------------------
# Complete cases

BASIC = Profile()
FULL = Profile(everything=True)


@st.composite
def cases(draw: st.DrawFn, profile: Profile = BASIC, entailment: Entailment = "rdfs") -> Case:
    """Draw one publication and one subscription under an ontology.

    The subscription is derived from triples that hold under that entailment.
    """
    scenario = draw(scenarios(profile, publications=1, queries=1, entailment=entailment))
    return Case(scenario.ontology, scenario.synonyms, scenario.publications[0], scenario.queries[0])


@st.composite
def scenarios(
    draw: st.DrawFn,
    profile: Profile = BASIC,
    *,
    publications: int = 3,
    queries: int = 6,
    entailment: Entailment = "rdfs",
) -> Scenario:
    """Draw publications and subscriptions, up to given numbers, under one ontology."""
    ontology = draw(ontologies())
    pairs = draw(synonyms())
    published = [
        draw(_publications(ontology, f"http://example.org/publication/{number}"))
        for number in range(draw(st.integers(1, publications)))
    ]
    worlds = [World.of(ontology, p.triples, pairs, entailment=entailment) for p in published]
    asked = [
        draw(_queries(draw(st.sampled_from(worlds)), profile))
        for _ in range(draw(st.integers(1, queries)))
    ]
    return Scenario(ontology, pairs, tuple(published), tuple(asked))


_publications, _queries = publications, queries


# --------------------------------------------------------------------------------------
# Quantities

MASS, HOLDS, CRATE, WEIGHS = EX["mass"], EX["holds"], EX["crate"], EX["weighs"]
_AMOUNTS = tuple(
    Literal(text, datatype=XSD["decimal" if "." in text else "integer"])
    for text in ("0", "2", "2.0", "2.5", "33", "306.15", "2000", "-40")
)
_UNIT_TERMS = tuple(UNITS)


@st.composite
def _quantity(draw: st.DrawFn, node: NamedNode) -> list[Triple]:
    number = draw(st.sampled_from((*NUMBERS, MASS))), draw(st.sampled_from(_AMOUNTS))
    unit = draw(st.sampled_from(UNIT_PROPERTIES)), draw(st.sampled_from(_UNIT_TERMS))
    stated: list[Triple] = [(EX["item"], WEIGHS, node), (node, *number), (node, *unit)]
    return stated[: draw(st.sampled_from((2, 3, 3, 3)))]


@st.composite
def _quantity_queries(draw: st.DrawFn) -> Query:
    item, node, number, unit = map(Variable, ("x", "q", "v", "u"))
    value = draw(st.sampled_from((number, number, number, *_AMOUNTS)))
    patterns = [Pattern(node, draw(st.sampled_from(NUMBERS)), value)]
    named = draw(st.sampled_from((None, unit, *_UNIT_TERMS)))
    filters: list[Filter] = []
    if named is not None:
        patterns.append(Pattern(node, draw(st.sampled_from(UNIT_PROPERTIES)), named))
    if named is unit and draw(st.booleans()):
        filters.append(Compare(unit, "=", draw(st.sampled_from(_UNIT_TERMS))))
    if draw(st.booleans()):
        patterns.append(Pattern(item, WEIGHS, node))
        if draw(st.booleans()):
            patterns.append(Pattern(Variable("y"), HOLDS, item))
    if value is number and draw(st.booleans()):
        amounts = _AMOUNTS
        if named in (None, *_UNIT_TERMS[:2]):
            masses = (Literal(text, datatype=QUANTITY) for text in ("2 kg", "2000 g"))
            amounts = *_AMOUNTS, *masses
        operator = draw(st.sampled_from(OPERATORS))
        filters.append(Compare(number, operator, draw(st.sampled_from(amounts))))
    if draw(st.booleans()):
        return Query(Group(tuple(patterns), tuple(filters)))
    inner = Group(tuple(patterns[:1]), tuple(filters[-1:]) if value is number else ())
    rest = Pattern(node, draw(st.sampled_from(UNIT_PROPERTIES)), Variable("w"))
    if draw(st.booleans()):
        return Query(Group((*patterns[1:], rest), parts=(Optional(inner),)))
    return Query(Group((*patterns[1:], rest), (NotExists(inner),)))


@st.composite
def quantity_scenarios(draw: st.DrawFn) -> Scenario:
    """Draw publications and an ontology with QUDT's quantities, and queries that name units."""
    ontology: list[Triple] = [(MASS, SUBPROPERTY, NUMBERS[0])]
    if draw(st.booleans()):
        own = draw(_quantity(EX["q0"]))
        ontology += [(CRATE, WEIGHS, EX["q0"]), *own[1:]]
    published = []
    for number in range(draw(st.integers(1, 3))):
        stated: list[Triple] = [(EX["box"], HOLDS, draw(st.sampled_from((CRATE, EX["item"]))))]
        for node in range(draw(st.integers(1, 2))):
            stated += draw(_quantity(EX[f"q{node + 1}"]))
        published.append(Publication.of(f"http://example.org/publication/{number}", stated))
    asked = draw(st.lists(_quantity_queries(), min_size=1, max_size=6))
    return Scenario(tuple(ontology), (), tuple(published), tuple(asked))


def features(query: Query) -> frozenset[str]:
    """Name the query's features, for statistics of the generated cases."""
    found: set[str] = set()
    _group_features(query.where, found)
    if query.ask:
        found.add("ASK")
    if query.distinct:
        found.add("DISTINCT")
    if query.projection is not None:
        found.add("projection")
    return frozenset(found)


def _group_features(group: Group, found: set[str]) -> None:
    for pattern in group.patterns:
        for place, node in zip(("subject", "property", "object"), pattern, strict=True):
            kind = "variable" if isinstance(node, Variable) else "constant"
            found.add("blank node" if isinstance(node, BlankNode) else f"{kind} {place}")
            if isinstance(node, Literal):
                found.add("literal")
        if len(set(pattern)) < 3:
            found.add("repeated in one pattern")
        if pattern.subject == pattern.object:
            found.add("loop")
    for a, b in combinations(group.patterns, 2):
        if (a.subject, a.object) == (b.subject, b.object):
            found.add("several edges")
    if not _connected(group.patterns):
        found.add("disconnected")
    for constraint in group.filters:
        _filter_features(constraint, found)
    for part in group.parts:
        found.add(type(part).__name__.upper())
        for inner in part.branches if isinstance(part, Union) else (part.group,):
            _group_features(inner, found)


def _connected(patterns: Sequence[Pattern]) -> bool:
    open_ends = [
        {n for n in pattern if not isinstance(n, NamedNode | Literal)} for pattern in patterns
    ]
    while len(open_ends) > 1:
        first, *rest = open_ends
        met = next((ends for ends in rest if ends & first), None)
        if met is None:
            return False
        rest.remove(met)
        open_ends = [first | met, *rest]
    return True


def _filter_features(constraint: Filter, found: set[str]) -> None:
    match constraint:
        case Compare(_, operator, constant):
            found |= (
                {operator, "compares an IRI"} if isinstance(constant, NamedNode) else {operator}
            )
        case Isa(_, which, _):
            found.add(which)
        case Text(_, function, view, _):
            found |= {f"{function} of text" if function == "=" else function, *view}
        case In():
            found.add("IN")
        case Not(operand):
            found.add("!")
            _filter_features(operand, found)
        case And(left, right) | Or(left, right):
            found.add("&&" if isinstance(constraint, And) else "||")
            _filter_features(left, found)
            _filter_features(right, found)
        case Bound():
            found.add("BOUND")
        case NotExists(group):
            found.add("NOT EXISTS")
            _group_features(group, found)
