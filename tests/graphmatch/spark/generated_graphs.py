"""One big graph and patterns over it, generated from a seed, and a reference store.

The graph has people, works and places, under the given taxonomy of classes or a small one. A
pattern stores its triple patterns and filters, so delta solutions are found without the parser.
A plain loop over the rules derives triples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from pyoxigraph import DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Variable

from semantic.terms import Node, Term, Triple
from semantic.vocabulary import (
    DOMAIN,
    INVERSE_OF,
    RANGE,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
    XSD,
    Namespace,
)

EX = Namespace("http://example.org/")
KNOWS, FRIEND, MADE, MAKER, PLACE, AGE, NAME, SIZE = (
    EX[name] for name in ("knows", "friend", "made", "maker", "place", "age", "name", "size")
)
PROPERTIES = (
    (FRIEND, SUBPROPERTY, KNOWS),
    (MADE, INVERSE_OF, MAKER),
    (MADE, RANGE, EX["Work"]),
    (PLACE, DOMAIN, EX["Placed"]),
)
CLASSES = tuple(EX[f"C{number}"] for number in range(40))
TREE = tuple((CLASSES[n], SUBCLASS, CLASSES[(n - 1) // 2]) for n in range(1, len(CLASSES)))
"""A tree in which each class has two subclasses."""
SMALL = (*TREE, *PROPERTIES)
"""The same tree, and some rules."""
TEXTS = tuple(Literal(f"text {number}") for number in range(4))
NEWS, KNOWN = EX["news"], DefaultGraph()


def graph(size: int, classes: Sequence[Term], random: Random) -> list[Triple]:
    """Return about `size` triples; some subjects are blank nodes, some classes are common."""
    people = [NamedNode(f"{EX.iri}{number}") for number in range(size // 6)]
    works = [NamedNode(f"{EX.iri}work/{number}") for number in range(size // 12)]
    places = [NamedNode(f"{EX.iri}place/{number}") for number in range(30)]
    common = random.sample(list(classes), min(12, len(classes)))
    found: dict[Triple, None] = {}
    while len(found) < size:
        person, other = random.choice(people), random.choice(people)
        work = random.choice(works)
        number = Literal(str(random.randrange(100)), datatype=XSD["integer"])
        half = Literal(f"{random.randrange(100)}.5", datatype=XSD["decimal"])
        some = (
            (person, TYPE, random.choice(common)),
            (work, TYPE, random.choice(classes)),
            (person, random.choice((KNOWS, FRIEND, FRIEND)), other),
            (person, MADE, work),
            (work, MAKER, other),
            (person, PLACE, random.choice(places)),
            (person, AGE, random.choice((number, half))),
            (work, SIZE, half),
            (person, NAME, Literal(f"Name {random.randrange(400)}", language="en")),
        )
        found[random.choice(some)] = None
    return list(found)


@dataclass(frozen=True)
class Pattern:
    """A query with its parts.

    Parameters
    ----------
    patterns
        Triple patterns.
    filters
        SPARQL expressions.
    names
        Selected variables; ``None`` is ASK.
    is_distinct
        Whether equal solutions count once.
    """

    patterns: tuple[tuple[Node, Node, Node], ...]
    filters: tuple[str, ...]
    names: tuple[str, ...] | None
    is_distinct: bool

    @property
    def where(self) -> str:
        triples = " . ".join(" ".join(map(str, pattern)) for pattern in self.patterns)
        return "{ " + triples + "".join(f" FILTER({test})" for test in self.filters) + " }"

    @property
    def text(self) -> str:
        if self.names is None:
            return f"ASK {self.where}"
        selected = " ".join(f"?{name}" for name in self.names)
        return f"SELECT {'DISTINCT ' * self.is_distinct}{selected} {self.where}"


@dataclass(frozen=True)
class Writer:
    """Writer of patterns that match walks through a graph, sometimes with other constants."""

    triples: Sequence[Triple]
    classes: Sequence[Term]
    random: Random

    @cached_property
    def _about(self) -> Mapping[Term, Sequence[Triple]]:
        return _by_subject(self.triples)

    def pattern(self) -> Pattern:
        random = self.random
        variables: dict[Term, Variable] = {}
        patterns: list[tuple[Node, Node, Node]] = []
        filters: list[str] = []
        subject: Term = random.choice(self.triples)[0]
        for _ in range(random.choice((1, 2, 2, 3, 3, 4))):
            if subject not in self._about:
                break
            _, property_, object_ = random.choice(self._about[subject])
            node = variables.setdefault(subject, Variable(f"v{len(variables)}"))
            if property_ == TYPE:
                others = random.sample(self.classes, 2)
                patterns.append((node, TYPE, random.choice((object_, *others))))
            elif isinstance(object_, Literal) and random.random() < 0.8:
                value = Variable(f"n{len(patterns)}")
                patterns.append((node, property_, value))
                filters.append(_test(value, property_, random))
            elif random.random() < 0.15:
                patterns.append((node, property_, object_))
            else:
                known = random.choice((property_, KNOWS)) if property_ == FRIEND else property_
                other = variables.setdefault(object_, Variable(f"v{len(variables)}"))
                patterns.append((node, known, other))
                subject = random.choice((subject, object_, object_))
        names = sorted({n.value for p in patterns for n in p if isinstance(n, Variable)})
        chosen = tuple(random.sample(names, random.randint(1, len(names))))
        form = random.random()
        return Pattern(tuple(patterns), tuple(filters), None if form < 0.1 else chosen, form > 0.8)


def _by_subject(triples: Iterable[Triple]) -> dict[Term, list[Triple]]:
    about: dict[Term, list[Triple]] = {}
    for triple in triples:
        about.setdefault(triple[0], []).append(triple)
    return about


def _test(value: Variable, property_: Term, random: Random) -> str:
    if property_ == NAME:
        return f'CONTAINS({value}, "{random.randrange(40)}")'
    number = random.randrange(5, 95)
    return random.choice(
        (
            f"{value} > {number}",
            f"{value} <= {number}.5",
            f"{value} > {number} && {value} < {number + 9}",
            f"{value} = {number}.0",
            f"{value} != {number}",
            f"{value} IN ({number}, {number + 1})",
        )
    )


def closed(ontology: Iterable[Triple], triples: Iterable[Triple]) -> Iterable[Triple]:
    """Return triples and their closure under the ontology's rules."""
    stated: dict[Term, dict[Term, list[Term]]] = {}
    for s, p, o in ontology:
        stated.setdefault(p, {}).setdefault(s, []).append(o)
        if p == INVERSE_OF:
            stated[p].setdefault(o, []).append(s)

    def said(property_: Term, term: Term) -> list[Term]:
        return stated.get(property_, {}).get(term, [])

    found = dict.fromkeys(triples)
    agenda = list(found)
    for x, p, y in agenda:
        new = [(x, q, y) for q in said(SUBPROPERTY, p)]
        new += [(x, TYPE, c) for c in said(DOMAIN, p)]
        new += [(x, TYPE, c) for c in said(SUBCLASS, y) if p == TYPE]
        if not isinstance(y, Literal):
            new += [(y, TYPE, c) for c in said(RANGE, p)]
            new += [(y, q, x) for q in said(INVERSE_OF, p)]
        for triple in new:
            if triple not in found and isinstance(triple[1], NamedNode):
                found[triple] = None
                agenda.append(triple)
    return found


Solutions = Counter[frozenset[tuple[str, str]]]


class Reference:
    """A store with an ontology, a graph and the derived triples.

    Parameters
    ----------
    ontology, triples
        Stated triples.
    """

    def __init__(self, ontology: Sequence[Triple], triples: Iterable[Triple]) -> None:
        self.store = Store()
        self.store.bulk_extend(Quad(s, p, o) for s, p, o in ontology)
        self.store.bulk_extend(Quad(s, p, o, NEWS) for s, p, o in closed(ontology, triples))

    def answer(self, pattern: Pattern) -> Solutions:
        """Answer over both, with delta solutions only."""
        found = self.store.query(
            f"SELECT * {pattern.where}", default_graph=[KNOWN, NEWS], prefixes={}
        )
        assert isinstance(found, QuerySolutions)
        names = [variable.value for variable in found.variables]
        kept = [
            solution
            for row in found
            if self._rests(pattern, solution := {name: row[name] for name in names})
        ]
        if pattern.names is None:
            return Counter([frozenset()]) if kept else Counter()
        rows = [frozenset((name, str(row[name])) for name in pattern.names) for row in kept]
        return Counter(set(rows) if pattern.is_distinct else rows)

    def _rests(self, pattern: Pattern, solution: Mapping[str, Term]) -> bool:
        return any(
            Quad(*(solution[n.value] if isinstance(n, Variable) else n for n in p), NEWS)
            in self.store
            for p in pattern.patterns
        )
