"""A subscription from an example: an item's facts to click, generalised up the ontology.

`facts` lists what an item says and what its texts name, `generalisations` the ways up from one
fact, `volumes` how much each would bring, and `subscription_of` writes the facts that were chosen
as a query.

A fact is a value that is reached from the item by properties; of what follows by rules, only what
is nearest to the data is a fact, as the rest is above it. Way up: a type to its superclasses, a
concept to broader ones, a class that the item is about to its superclasses (by
``gm:descendantOf``, for being about a class is not being about those above it), and a property to
those above it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice

from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch.broker.insight.backtest import Scan
from graphmatch.broker.models.stored_publication import Stored
from graphmatch.broker.service.backtester import Backtester
from graphmatch.engine import Engine
from graphmatch.enrichment import Entailment
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term, compact
from semantic.vocabulary import (
    CONTENT,
    DC,
    DCTERMS,
    ENCLOSURE,
    FOAF,
    PREFIXES,
    RESERVED,
    RSS,
    SAME_AS,
    TYPE,
    XSD,
)

MOST = 200
"""So many facts of an item are listed."""
LONGEST = 100
"""A longer text is no fact to click."""
_DEEP = 2
"""So many properties lead from an item to a value, and one more for each blank node between."""
_DEEPEST = 50
"""Maximum number of properties from an item to a value."""
_TEXTS = frozenset(
    {
        *(RSS["title"], RSS["description"], CONTENT["encoded"], RSS["link"], DC["date"]),
        *(DCTERMS["identifier"], DCTERMS["modified"], DCTERMS["description"]),
        *(ENCLOSURE["url"], ENCLOSURE["length"], SAME_AS),
    }
)
"""What is different in each item."""
_INTEGER = re.compile(r"-?[0-9]+")
_LOCAL = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


class Sort(Enum):
    """What a fact is about, in the order in which facts are listed."""

    TYPE = "type"
    CONCEPT = "concept"
    CATEGORY = "category"
    AUTHOR = "author"
    PUBLISHER = "publisher"
    LANGUAGE = "language"
    VALUE = "value"


_SORTS: Mapping[NamedNode, Sort] = {
    TYPE: Sort.TYPE,
    DC["subject"]: Sort.CATEGORY,
    DC["creator"]: Sort.AUTHOR,
    DCTERMS["creator"]: Sort.AUTHOR,
    FOAF["maker"]: Sort.AUTHOR,
    DC["contributor"]: Sort.AUTHOR,
    DC["publisher"]: Sort.PUBLISHER,
    DCTERMS["publisher"]: Sort.PUBLISHER,
    DCTERMS["isPartOf"]: Sort.PUBLISHER,
    DC["language"]: Sort.LANGUAGE,
    DCTERMS["language"]: Sort.LANGUAGE,
}


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that an item has, and that a subscription can ask for.

    Parameters
    ----------
    path
        The properties that lead from the item to the value.
    value
        A term that is no blank node.
    sort
        What it is about.
    below
        Whether what is below the value will do: ``gm:descendantOf``.
    label
        What the value is called in the reader's language.
    property_label
        What the properties are called.
    """

    path: tuple[NamedNode, ...]
    value: NamedNode | Literal
    sort: Sort
    below: bool = False
    label: str = ""
    property_label: str = ""

    def pattern(self, number: int = 1, prefixes: Mapping[str, str] = PREFIXES) -> str:
        """Write the pattern that it stands for; `number` makes its variable.

        Examples
        --------
        >>> print(Fact((DC["subject"],), Literal("Food"), Sort.CATEGORY).pattern())
        ?item dc:subject "Food" .
        >>> print(Fact((DCTERMS["subject"],), NamedNode("urn:a"), Sort.CONCEPT, True).pattern())
        ?item dcterms:subject ?value1 . FILTER(gm:descendantOf(?value1, <urn:a>))
        """
        path = "/".join("a" if p == TYPE else _named(p, prefixes) for p in self.path)
        value = _written(self.value, prefixes)
        if not self.below:
            return f"?item {path} {value} ."
        test = f"gm:descendantOf(?value{number}, {value})"
        return f"?item {path} ?value{number} . FILTER({test})"


def facts(engine: Engine, publication: Publication, *, language: str = "en") -> list[Fact]:
    """Return the facts of an item that a subscription can be made of.

    Parameters
    ----------
    publication
        One feed item, or a publication about one thing.
    language
        The reader's: in which labels are shown.

    Examples
    --------
    >>> item = NamedNode("http://e/1")
    >>> said = [(item, TYPE, RSS["item"]), (item, DC["subject"], Literal("Food"))]
    >>> for fact in facts(Engine(), Publication.of("http://e/1", said)):
    ...     print(fact.sort.value, fact.label, "|", fact.pattern())
    type rss:item | ?item a rss:item .
    category Food | ?item dc:subject "Food" .
    """
    enriched = engine.enrich(publication)
    by_subject: defaultdict[Term, dict[NamedNode, list[Term]]] = defaultdict(dict)
    for subject, property_, object_ in enriched.visible_to_all:
        if isinstance(property_, NamedNode):
            by_subject[subject].setdefault(property_, []).append(object_)
    ontology = engine.ontology
    found: dict[Fact, None] = {}
    values = _values(_about(publication, ontology), by_subject, ontology)
    for path, value in islice(values, MOST):
        fact = Fact(path, value, _sort(path, value, ontology))
        found[_labelled(fact, ontology, language)] = None
    order = list(Sort)
    return sorted(found, key=lambda fact: order.index(fact.sort))


def _about(publication: Publication, ontology: Ontology) -> Term:
    """Return what a publication is about: the item, what it is named by, or its first root."""
    triples = publication.triples
    items = [s for s, p, o in triples if p == TYPE and o == RSS["item"]]
    subjects = dict.fromkeys(s for s, _, _ in triples)
    if items:
        return ontology.root(items[0])
    if publication.graph_name() in subjects:
        return ontology.root(publication.graph_name())
    objects = {o for s, _, o in triples if o != s}
    roots = [subject for subject in subjects if subject not in objects]
    return ontology.root(next(iter(roots or subjects)))


def _values(
    item: Term,
    by_subject: Mapping[Term, Mapping[NamedNode, Sequence[Term]]],
    ontology: Ontology,
    path: tuple[NamedNode, ...] = (),
    passed: frozenset[Term] = frozenset(),
) -> Iterator[tuple[tuple[NamedNode, ...], NamedNode | Literal]]:
    """Yield the values that properties lead to.

    A value that follows from another one, or from a property below, is left out.
    """
    said = by_subject.get(item, {})
    passed |= {item}
    for property_, objects in said.items():
        if property_ in _TEXTS or (property_.value.startswith(RESERVED) and property_ != TYPE):
            continue
        tree = ontology.classes if property_ == TYPE else ontology.concepts
        implied = {above for one in objects for above in tree.ancestors(one) if above != one}
        for lower in ontology.properties.descendants(property_):
            if isinstance(lower, NamedNode) and lower != property_:
                implied.update(said.get(lower, ()))
        for value in objects:
            if value in implied:
                continue
            further = (*path, property_)
            if isinstance(value, NamedNode) or (
                isinstance(value, Literal) and len(value.value) <= LONGEST
            ):
                yield further, value
            steps = _DEEP + sum(isinstance(node, BlankNode) for node in (*passed, value))
            steps = min(steps, _DEEPEST)
            if property_ != TYPE and value not in passed and len(further) < steps:
                yield from _values(value, by_subject, ontology, further, passed)


def _sort(path: Sequence[NamedNode], value: Term, ontology: Ontology) -> Sort:
    if path[0] in _SORTS:
        return _SORTS[path[0]]
    known = value in ontology.concepts or value in ontology.classes
    return Sort.CONCEPT if known or path[0] == DCTERMS["subject"] else Sort.VALUE


def _labelled(fact: Fact, ontology: Ontology, language: str) -> Fact:
    """Return a fact with its labels."""
    properties = " / ".join(_label(p, ontology, language) for p in fact.path)
    label = _label(fact.value, ontology, language)
    return replace(fact, label=label, property_label=properties)


def _label(term: NamedNode | Literal, ontology: Ontology, language: str) -> str:
    if isinstance(term, Literal):
        return term.value
    labels = ontology.shown_names.labels(term, language)
    return labels[0].value if labels else compact(term, ontology.prefixes)


# -- up the ontology ------------------------------------------------------------------------


def generalisations(engine: Engine, fact: Fact, *, language: str = "en") -> list[Fact]:
    """Return a fact and the steps up from it: values above, nearest first, then properties above.

    Whatever matches a fact matches each of its steps.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("http://e/Laptop"), NamedNode("http://e/Computer")
    >>> engine = Engine(Ontology([(laptop, SUBCLASS, computer)]))
    >>> [step.label for step in generalisations(engine, Fact((TYPE,), laptop, Sort.TYPE))]
    ['<http://e/Laptop>', '<http://e/Computer>']
    """
    ontology, has_rules = engine.ontology, engine.entailment is Entailment.RDFS
    steps = [fact]
    if isinstance(fact.value, NamedNode):
        broader = ontology.classes if fact.path[-1] == TYPE else ontology.concepts
        direct = frozenset(broader.ancestors(ontology.root(fact.value)))
        for term in ontology.ancestors(fact.value):
            if isinstance(term, NamedNode) and not term.value.startswith(RESERVED):
                below = fact.below or term not in direct or not has_rules
                steps.append(replace(fact, value=term, below=below))
    if has_rules and fact.path[-1] != TYPE:
        above = ontology.properties.ancestors(ontology.root(fact.path[-1]))
        named = (p for p in above if isinstance(p, NamedNode))
        steps += (replace(fact, path=(*fact.path[:-1], property_)) for property_ in named)
    return [_labelled(step, ontology, language) for step in dict.fromkeys(steps)]


@dataclass(frozen=True, slots=True)
class FactCounts:
    """How many of the publications that were looked at have each of some facts."""

    counts: tuple[int, ...]
    scanned: int
    complete: bool


def count_facts(
    engine: Engine,
    steps: Sequence[Fact],
    stored: Iterable[Stored],
    *,
    limit_seconds: float,
    beside: Sequence[Fact] = (),
    backtester: Backtester | None = None,
) -> FactCounts:
    """Count the publications that have each of some facts, all in one pass.

    Parameters
    ----------
    steps
        Facts, those of several ways up together, say.
    stored
        Publications, the newest first.
    limit_seconds
        After this time no more are looked at.
    beside
        Facts that are chosen already, and that publications have to have, too.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> line, food = b'<urn:1> <http://purl.org/dc/elements/1.1/subject> "Food" .', Literal("Food")
    >>> stored = [Stored("urn:1", line, datetime(2026, 1, 1, tzinfo=UTC))]
    >>> steps = [Fact((DC["subject"],), value, Sort.CATEGORY) for value in (food, Literal("x"))]
    >>> volumes(Engine(), steps, stored, limit_seconds=1)
    Volumes(counts=(1, 0), scanned=1, complete=True)
    """
    backtester = backtester or Backtester(engine)
    scan = Scan(stored, backtester.timer() + limit_seconds, backtester.timer)
    queries = ((str(n), subscription_of((*beside, step))) for n, step in enumerate(steps))
    counts = [0] * len(steps)
    with backtester.subscribed(queries):
        for _, report in backtester.reports(scan):
            for number in map(int, report.subscriptions):
                counts[number] += 1
    return FactCounts(tuple(counts), scan.scanned, scan.complete)


# -- as a query -----------------------------------------------------------------------------


def subscription_of(facts: Iterable[Fact], prefixes: Mapping[str, str] = PREFIXES) -> str:
    """Write facts as a query: the same facts in any order give the same text.

    Parameters
    ----------
    prefixes
        Those to write IRIs with, an ontology's for instance; the query declares what it uses.

    Examples
    --------
    >>> chosen = [Fact((DC["subject"],), Literal("Food"), Sort.CATEGORY)]
    >>> print(subscription_of([*chosen, Fact((TYPE,), RSS["item"], Sort.TYPE)]))
    PREFIX dc: <http://purl.org/dc/elements/1.1/>
    PREFIX rss: <http://purl.org/rss/1.0/>
    <BLANKLINE>
    SELECT DISTINCT ?item
    WHERE {
      ?item a rss:item .
      ?item dc:subject "Food" .
    }
    """
    known = {**prefixes, "gm": PREFIXES["gm"]}
    order = list(Sort)
    distinct = dict.fromkeys(replace(fact, label="", property_label="") for fact in facts)
    chosen = sorted(distinct, key=lambda fact: (order.index(fact.sort), fact.pattern()))
    lines = [fact.pattern(number, known) for number, fact in enumerate(chosen, 1)]
    terms = (term for fact in chosen for term in (*fact.path, fact.value))
    used = {_prefix(term, known) for term in terms}
    used |= {"gm"} if any(fact.below for fact in chosen) else set()
    head = [f"PREFIX {name}: <{known[name]}>" for name in sorted(filter(None, used))]
    body = [f"  {line}" for line in lines]
    return "\n".join(
        (*head, *([""] if head else []), "SELECT DISTINCT ?item", "WHERE {", *body, "}")
    )


def _named(term: NamedNode, prefixes: Mapping[str, str]) -> str:
    """Write an IRI: with a prefix, where what is behind it can be written so anywhere."""
    written = compact(term, prefixes)
    _, _, local = written.partition(":")
    return written if written[0] == "<" or _LOCAL.fullmatch(local) else str(term)


def _written(term: NamedNode | Literal, prefixes: Mapping[str, str]) -> str:
    if isinstance(term, NamedNode):
        return _named(term, prefixes)
    if term.datatype == XSD["integer"] and _INTEGER.fullmatch(term.value):
        return term.value
    if term.language is not None or term.datatype == XSD["string"]:
        return str(term)
    return f"{Literal(term.value)}^^{_named(term.datatype, prefixes)}"


def _prefix(term: NamedNode | Literal, prefixes: Mapping[str, str]) -> str | None:
    """Return the prefix that a term is written with."""
    if term == TYPE:
        return None
    written = _written(term, prefixes)
    if isinstance(term, Literal):
        _, mark, written = written.rpartition('"^^')
        if not mark:
            return None
    return None if written[0] == "<" else written.partition(":")[0]
