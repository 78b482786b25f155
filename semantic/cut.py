"""How a document is cut into publications.

| cut | a publication is |
| --- | --- |
| `document` | the whole document |
| `graph` | a named graph, and the default graph as one more |
| `item` | a feed item, with its channel |
| `subject` | the concise bounded description of an IRI that is a subject |
| `component` | a weakly connected part |
| `auto` | an item of a feed, a graph where there are named ones, else the document |

The concise bounded description is W3C's submission of 2005: the subject's triples,
and those of blank nodes reached from it. In a component, two triples belong together
when they share a subject or object that is an IRI or a blank node; the object of
``rdf:type`` is shared vocabulary and connects nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import groupby
from operator import attrgetter

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from semantic.errors import OnProblem, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import DCTERMS, RSS, TYPE


class Cut(Enum):
    """What of a document becomes one publication; see the module's table."""

    AUTO = "auto"
    DOCUMENT = "document"
    GRAPH = "graph"
    ITEM = "item"
    SUBJECT = "subject"
    COMPONENT = "component"


def by_graph(
    quads: Iterable[Quad],
    source: str,
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Publication]:
    """Yield a publication for each graph whose statements stand together; others are reported."""
    seen: set[str] = set()
    for name, several in groupby(quads, key=attrgetter("graph_name")):
        id = source if isinstance(name, DefaultGraph) else _graph_id(name, source)
        place = Place(source, item=None if isinstance(name, DefaultGraph) else id)
        if id in seen:
            what = "the graph's statements do not stand together: it was read as several"
            remedy = "Sort the file by graph, so that each graph is one publication."
            on_problem(Problem(what, place, remedy, Severity.WARNING))
        seen.add(id)
        yield from _bounded(id, several, place, on_problem, limits)


def _graph_id(name: NamedNode | BlankNode, source: str) -> str:
    return name.value if isinstance(name, NamedNode) else f"{source}#{name.value}"


def by_document(
    quads: Iterable[Quad],
    source: str,
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Publication]:
    """Yield the whole document, its graphs put together."""
    yield from _bounded(source, quads, Place(source), on_problem, limits)


def _bounded(
    id: str, quads: Iterable[Quad], place: Place, on_problem: OnProblem, limits: Limits
) -> Iterator[Publication]:
    """Yield one publication, unless it is empty, or larger than ``limits.publication_triples``.

    Too many triples are not held: what comes after the limit is not read into memory.
    """
    distinct: dict[Triple, None] = {}
    for triple in _triples(quads):
        distinct[triple] = None
        if len(distinct) > limits.publication_triples:
            on_problem(too_large(place, limits))
            return
    if distinct:
        yield Publication(id, tuple(distinct), source=place)


def too_large(place: Place, limits: Limits, size: int | None = None) -> Problem:
    """Return the problem of a publication with too many triples; of its size, where it is known."""
    most = f"{limits.publication_triples:,}"
    what = f"a publication of more than {most} triples"
    if size is not None:
        what = f"a publication of {size:,} triples, more than {most}"
    remedy = "Raise the limit `publication_triples`, or cut the document into smaller publications."
    return Problem(what, place, remedy)


def by_subject(quads: Iterable[Quad], source: str) -> Iterator[Publication]:
    """Yield the concise bounded description of each IRI that is a subject."""
    about = _about(_triples(quads))
    for subject in about:
        if isinstance(subject, NamedNode):
            place = Place(source, item=subject.value)
            yield Publication.of(subject.value, describe(subject, about), place)


def by_item(quads: Iterable[Quad], source: str) -> Iterator[Publication]:
    """Yield each ``rss:item`` of a document with the description of its channel."""
    about = _about(_triples(quads))
    for subject, triples in about.items():
        if isinstance(subject, NamedNode) and (subject, TYPE, RSS["item"]) in triples:
            channels = [o for _, p, o in triples if p == DCTERMS["isPartOf"]]
            described = [t for s in (subject, *channels) for t in describe(s, about)]
            yield Publication.of(subject.value, described, Place(source, item=subject.value))


def by_component(quads: Iterable[Quad], source: str) -> Iterator[Publication]:
    """Yield the weakly connected parts, in the order of their first triples."""
    triples = list(dict.fromkeys(_triples(quads)))
    joined: dict[Term, Term] = {}  # a disjoint-set forest

    def root(term: Term) -> Term:
        while (above := joined.setdefault(term, term)) != term:
            joined[term] = joined[above]  # halves the way for those who come next
            term = above
        return term

    for subject, predicate, object_ in triples:
        if predicate != TYPE and not isinstance(object_, Literal):
            joined[root(object_)] = root(subject)
    parts: defaultdict[Term, list[Triple]] = defaultdict(list)
    for triple in triples:
        parts[root(triple[0])].append(triple)
    for count, part in enumerate(parts.values(), 1):
        id = source if len(parts) == 1 else f"{source}#{count}"
        yield Publication.of(id, part, Place(source, item=f"component {count}"))


def describe(subject: Term, about: Mapping[Term, Sequence[Triple]]) -> Iterator[Triple]:
    """Yield the concise bounded description of a subject."""
    seen, queue = {subject}, [subject]
    for node in queue:
        for triple in about.get(node, ()):
            yield triple
            if isinstance(triple[2], BlankNode) and triple[2] not in seen:
                seen.add(triple[2])
                queue.append(triple[2])


def _triples(quads: Iterable[Quad]) -> Iterator[Triple]:
    return ((quad.subject, quad.predicate, quad.object) for quad in quads)


def _about(triples: Iterable[Triple]) -> dict[Term, list[Triple]]:
    about: defaultdict[Term, list[Triple]] = defaultdict(list)
    for triple in triples:
        about[triple[0]].append(triple)
    return dict(about)
