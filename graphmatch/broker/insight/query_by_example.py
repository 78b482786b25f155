"""A query from an example: facts of an item to choose from, generalised up the ontology.

`facts` lists the facts of an item, including terms that its texts mention. `generalisations` lists
the steps up from a fact, `count_facts` counts the publications that have each fact, and `query_of`
writes chosen facts as a query.

A fact is a value that properties lead to from the item. A value that follows from another one by a
rule is not a fact, because it is a step up from that one. Steps up lead from a type to its
superclasses, from a concept to broader concepts, from a property to its superproperties, and from a
class as a topic to its superclasses. Steps that no rule derives use ``gm:descendantOf``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from hashlib import sha256
from itertools import chain, islice

from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch.broker.insight.backtest import Scan, Scanned
from graphmatch.broker.models.stored_publication import PublicationRef, Result, StoredPublication
from graphmatch.broker.service.backtester import Backtester
from graphmatch.engine import Engine
from graphmatch.enrichment import Entailment
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.terms import Term, compact, expanded
from semantic.vocabulary import DC, DCTERMS, PREFIXES, RESERVED, TYPE

LANGUAGE = "en"
"""Language of labels and of the page."""
MAX_FACTS = 200
"""Maximum number of facts of an item."""
SHOWN_FACTS = 30
"""Maximum number of facts of an item that are shown with their generalisations."""
VALUE_CHARACTERS = 100
"""Maximum length of a text or IRI that is a fact."""
_MAX_STEPS = 3
"""Maximum number of properties from an item to a value."""
_LOCAL_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)


def _terms(names: str) -> list[NamedNode]:
    return [expanded(name, PREFIXES) for name in names.split()]


_UNIQUE = frozenset(
    _terms(
        "rss:title rss:description rss:link content:encoded dc:date dcterms:identifier "
        "dcterms:modified dcterms:description enc:url enc:length owl:sameAs"
    )
)
"""Properties whose values differ in each item."""


class Sort(Enum):
    """The kinds of facts, in the order in which they are shown."""

    CONCEPT = "concept"
    CATEGORY = "category"
    AUTHOR = "author"
    PUBLISHER = "publisher"
    LANGUAGE = "language"
    VALUE = "value"
    TYPE = "type"


_SORTS = {
    TYPE: Sort.TYPE,
    DC["subject"]: Sort.CATEGORY,
    **dict.fromkeys(_terms("dc:creator dcterms:creator foaf:maker dc:contributor"), Sort.AUTHOR),
    **dict.fromkeys(_terms("dc:publisher dcterms:publisher dcterms:isPartOf"), Sort.PUBLISHER),
    **dict.fromkeys(_terms("dc:language dcterms:language"), Sort.LANGUAGE),
}
"""The sort of the facts of a property."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value of an item that a query can ask for.

    Parameters
    ----------
    path
        The properties that lead from the item to the value.
    below
        Whether terms below the value match too, by ``gm:descendantOf``.
    """

    path: tuple[NamedNode, ...]
    value: NamedNode | Literal
    sort: Sort
    below: bool = False

    @property
    def key(self) -> str:
        """The key of the fact in forms and requests."""
        return sha256(self.pattern().encode()).hexdigest()[:16]

    def pattern(self, number: int = 1, prefixes: Mapping[str, str] = PREFIXES) -> str:
        """Return the fact as a pattern in SPARQL; `number` distinguishes its variable.

        Examples
        --------
        >>> print(Fact((DC["subject"],), Literal("Food"), Sort.CATEGORY).pattern())
        ?item dc:subject "Food" .
        >>> print(Fact((DCTERMS["subject"],), NamedNode("urn:a"), Sort.CONCEPT, True).pattern())
        ?item dcterms:subject ?value1 . FILTER(gm:descendantOf(?value1, <urn:a>))
        """
        path = "/".join("a" if p == TYPE else _written(p, prefixes) for p in self.path)
        value = _written(self.value, prefixes)
        if not self.below:
            return f"?item {path} {value} ."
        test = f"gm:descendantOf(?value{number}, {value})"
        return f"?item {path} ?value{number} . FILTER({test})"


class Step(Result):
    """A fact, or a more general one."""

    key: str
    """The key to choose it by."""
    label: str
    property: str
    """Label of the property."""
    pattern: str
    count: int | None
    """Number of examined publications that have it; null if they were not counted."""


class FactHierarchy(Result):
    """A fact of a publication with its generalisations. The first step is the fact."""

    sort: Sort
    common: bool
    """Whether all examined publications have it."""
    steps: list[Step]


class FactHierarchies(Scanned):
    """The facts of a publication that a subscription can ask for."""

    publication: PublicationRef
    facts: list[FactHierarchy]


def facts(engine: Engine, publication: Publication) -> list[Fact]:
    """Return the facts of a feed item, or of another publication about one thing.

    Examples
    --------
    >>> from semantic.vocabulary import RSS
    >>> item = NamedNode("http://e/1")
    >>> triples = [(item, TYPE, RSS["item"]), (item, DC["subject"], Literal("Food"))]
    >>> for fact in facts(Engine(), Publication.of("http://e/1", triples)):
    ...     print(fact.sort.value, "|", fact.pattern())
    category | ?item dc:subject "Food" .
    type | ?item a rss:item .
    """
    by_subject: defaultdict[Term, dict[NamedNode, list[Term]]] = defaultdict(dict)
    for subject, property_, object_ in engine.enrich(publication).visible_to_all:
        if isinstance(property_, NamedNode):
            by_subject[subject].setdefault(property_, []).append(object_)
    ontology = engine.ontology
    values = _values(_main_subject(publication, ontology), by_subject, ontology)
    candidates = (Fact(path, value, _sort(path, value, ontology)) for path, value in values)
    order = list(Sort)
    distinct = dict.fromkeys(islice(candidates, MAX_FACTS))
    return sorted(distinct, key=lambda fact: order.index(fact.sort))


def _main_subject(publication: Publication, ontology: Ontology) -> Term:
    """Return the subject with the publication's IRI, or the first without a triple to it."""
    subjects = dict.fromkeys(s for s, _, _ in publication.triples)
    objects = {o for s, _, o in publication.triples if o != s}
    named = subjects.keys() & {publication.graph_name()}
    roots = (subject for subject in subjects if subject not in objects)
    return ontology.root(next(chain(named, roots, subjects)))


def _values(
    item: Term,
    by_subject: Mapping[Term, Mapping[NamedNode, Sequence[Term]]],
    ontology: Ontology,
    path: tuple[NamedNode, ...] = (),
    passed: frozenset[Term] = frozenset(),
) -> Iterator[tuple[tuple[NamedNode, ...], NamedNode | Literal]]:
    """Yield the values that properties lead to, without those that follow from another value."""
    properties = by_subject.get(item, {})
    passed |= {item}
    for property_, objects in properties.items():
        if property_ in _UNIQUE or (property_.value.startswith(RESERVED) and property_ != TYPE):
            continue
        tree = ontology.classes if property_ == TYPE else ontology.concepts
        implied = {above for term in objects for above in tree.ancestors(term) if above != term}
        for lower in ontology.properties.descendants(property_):
            if isinstance(lower, NamedNode) and lower != property_:
                implied.update(properties.get(lower, ()))
        extended = (*path, property_)
        for value in objects:
            if value in implied:
                continue
            if isinstance(value, NamedNode | Literal) and len(value.value) <= VALUE_CHARACTERS:
                yield extended, value
            is_end = property_ == TYPE or value in passed or len(extended) == _MAX_STEPS
            if not is_end:
                yield from _values(value, by_subject, ontology, extended, passed)


def _sort(path: Sequence[NamedNode], value: Term, ontology: Ontology) -> Sort:
    is_known = value in ontology.concepts or value in ontology.classes
    default = Sort.CONCEPT if is_known or path[0] == DCTERMS["subject"] else Sort.VALUE
    return _SORTS.get(path[0], default)


def label_of(ontology: Ontology, term: Term) -> str:
    """Return the label of a term; without one, its value or its IRI with a prefix."""
    if isinstance(term, Literal):
        return term.value
    if isinstance(term, BlankNode):
        return "(no name)"
    labels = ontology.shown_names.labels(term, LANGUAGE)
    return labels[0].value if labels else compact(term, ontology.prefixes).strip("<>")


# -- up the ontology ------------------------------------------------------------------------


def generalisations(engine: Engine, fact: Fact) -> list[Fact]:
    """Return a fact and the steps up from it: values above, nearest first, then properties above.

    A publication that has a fact has each of its generalisations.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("http://e/Laptop"), NamedNode("http://e/Computer")
    >>> engine = Engine(Ontology([(laptop, SUBCLASS, computer)]))
    >>> [step.value.value for step in generalisations(engine, Fact((TYPE,), laptop, Sort.TYPE))]
    ['http://e/Laptop', 'http://e/Computer']
    """
    ontology, has_rules = engine.ontology, engine.entailment is not Entailment.NONE
    steps = [fact]
    if isinstance(fact.value, NamedNode):
        tree = ontology.classes if fact.path[-1] == TYPE else ontology.concepts
        derived = frozenset(tree.ancestors(ontology.root(fact.value))) if has_rules else ()
        steps += (
            replace(fact, value=term, below=fact.below or term not in derived)
            for term in ontology.ancestors(fact.value)
            if isinstance(term, NamedNode) and not term.value.startswith(RESERVED)
        )
    if has_rules and fact.path[-1] != TYPE:
        above = ontology.properties.ancestors(ontology.root(fact.path[-1]))
        properties = (p for p in above if isinstance(p, NamedNode))
        steps += (replace(fact, path=(*fact.path[:-1], property_)) for property_ in properties)
    return list(dict.fromkeys(steps))


def count_facts(backtester: Backtester, facts: Iterable[Fact], scan: Scan) -> dict[str, int]:
    """Count the publications that have each of some facts, by the keys of the facts.

    Examples
    --------
    >>> from datetime import UTC, datetime
    >>> line = b'<urn:1> <http://purl.org/dc/elements/1.1/subject> "Food" .'
    >>> stored = [StoredPublication("urn:1", line, datetime(2026, 1, 1, tzinfo=UTC))]
    >>> backtester, subject = Backtester(Engine()), (DC["subject"],)
    >>> facts = [Fact(subject, Literal(text), Sort.CATEGORY) for text in ("Food", "x")]
    >>> scan = Scan(stored, backtester.timer() + 1, backtester.timer)
    >>> [*count_facts(backtester, facts, scan).values()], scan.scanned, scan.complete
    ([1, 0], 1, True)
    """
    queries = {fact.key: query_of([fact]) for fact in facts}
    counts = dict.fromkeys(queries, 0)
    with backtester.subscribed(queries.items()):
        for _, report in backtester.reports(scan):
            for key in report.subscriptions:
                counts[key] += 1
    return counts


def hierarchies(engine: Engine, publication: StoredPublication) -> list[list[Fact]]:
    """Return the first facts of a publication, each with its generalisations."""
    shown = facts(engine, publication.read())[:SHOWN_FACTS]
    return [generalisations(engine, fact) for fact in shown]


def describe(
    ontology: Ontology,
    publication: StoredPublication,
    groups: Iterable[Sequence[Fact]],
    counts: Mapping[str, int],
    scan: Scan,
) -> FactHierarchies:
    """Return the hierarchies of a publication with labels, common facts last.

    Parameters
    ----------
    counts
        The result of `count_facts` for `scan`; empty if the facts were not counted.
    """
    result: list[FactHierarchy] = []
    for steps in groups:
        views = [
            Step(
                key=fact.key,
                label=label_of(ontology, fact.value),
                property=" / ".join(label_of(ontology, property_) for property_ in fact.path),
                pattern=fact.pattern(prefixes=ontology.prefixes),
                count=counts.get(fact.key),
            )
            for fact in steps
        ]
        common = views[0].count == scan.scanned
        result.append(FactHierarchy(sort=steps[0].sort, common=common, steps=views))
    return FactHierarchies(
        publication=PublicationRef(**publication.fields),
        facts=sorted(result, key=lambda fact: fact.common),
        scanned=scan.scanned,
        complete=scan.complete,
    )


# -- as a query -----------------------------------------------------------------------------


def query_of(facts: Iterable[Fact], prefixes: Mapping[str, str] = PREFIXES) -> str:
    """Return a query for facts; their order does not affect it.

    Parameters
    ----------
    prefixes
        Prefixes for IRIs, such as those of an ontology. The query declares those that it uses.

    Examples
    --------
    >>> from semantic.vocabulary import RSS
    >>> chosen = [Fact((DC["subject"],), Literal("Food"), Sort.CATEGORY)]
    >>> print(query_of([*chosen, Fact((TYPE,), RSS["item"], Sort.TYPE)]))
    PREFIX dc: <http://purl.org/dc/elements/1.1/>
    PREFIX rss: <http://purl.org/rss/1.0/>
    <BLANKLINE>
    SELECT DISTINCT ?item
    WHERE {
      ?item a rss:item .
      ?item dc:subject "Food" .
    }
    """
    chosen = sorted(set(facts), key=Fact.pattern)
    body = "\n".join(f"  {fact.pattern(number, prefixes)}" for number, fact in enumerate(chosen, 1))
    used = (name for name in sorted(prefixes) if re.search(rf"(?<![\w.-]){re.escape(name)}:", body))
    head = "".join(f"PREFIX {name}: <{prefixes[name]}>\n" for name in used)
    return f"{head}\nSELECT DISTINCT ?item\nWHERE {{\n{body}\n}}".lstrip()


def _written(term: NamedNode | Literal, prefixes: Mapping[str, str]) -> str:
    """Write a term, with a prefix if the local name is valid in each syntax."""
    name = compact(term, prefixes) if isinstance(term, NamedNode) else ""
    return name if _LOCAL_NAME.fullmatch(name.partition(":")[2]) else str(term)
