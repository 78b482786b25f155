"""Topics from CSV tables.

The columns are ``topic``, ``label``, ``language``, ``broader`` and ``proper_name``.

Each topic is a SKOS concept. It is written as a name, an IRI, or an IRI with a prefix that another
file of the ontology declares. A row gives a label, a broader topic, or both. Several rows of a
topic give it several labels and broader topics. The first label in a language is the preferred one.
A topic without labels is labelled with its name. If one row of a topic says that it is a proper
name, its labels match only with their initial capitals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from urllib.parse import quote

from pyoxigraph import Literal, NamedNode

from semantic.errors import OnProblem, Place, Problem
from semantic.ontology.csv_tables import SKIPPED, CsvTable, iri_of
from semantic.ontology.names import LABELS, TOPIC
from semantic.terms import Term, Triple
from semantic.vocabulary import BROADER, GM, SKOS, TYPE

_PROPER = {"yes": True, "true": True, "no": False, "false": False, "": False}


def topic_triples(
    tables: Iterable[CsvTable],
    stated: Iterable[Triple],
    prefixes: Mapping[str, str],
    on_problem: OnProblem,
) -> list[Triple]:
    """Return the triples of topics in tables; report and skip unusable rows and broader topics.

    A broader topic is an IRI, a prefixed name, or, regardless of case, the name or a label of a
    topic of the tables, or a label of a term in `stated`.
    """
    topics: dict[str, NamedNode] = {}
    labels: defaultdict[NamedNode, list[Literal]] = defaultdict(list)
    links: list[tuple[NamedNode, str, Place]] = []
    found: list[Triple] = []
    for table, line, row in ((t, line, row) for t in tables for line, row in t.rows.items()):
        name, text, tag = (row.get(column, "") for column in ("topic", "label", "language"))
        is_proper = _PROPER.get(row.get("proper_name", "").lower())
        wrong = None
        try:
            label = Literal(text, language=tag or None)
            is_tag = len(tag.split("-")[0]) <= 3
        except ValueError:
            label, is_tag = Literal(text), False
        if not name:
            wrong = "the row has no topic"
        elif not is_tag:
            wrong = f"{tag!r} is not a language tag, such as `en`"
        elif is_proper is None:
            wrong = f"`proper_name` is {row['proper_name']!r}, but must be yes or no"
        if wrong is not None:
            on_problem(Problem(wrong, Place(table.path, line), SKIPPED))
            continue
        if (topic := topics.get(name)) is None:
            topic = topics[name] = iri_of(name, prefixes) or TOPIC[quote(name, safe="")]
        if text:
            labels[topic].append(label)
        if broader := row.get("broader"):
            links.append((topic, broader, Place(table.path, line)))
        if is_proper:
            found.append((topic, GM["properName"], Literal(True)))
    for name, topic in topics.items():
        found.append((topic, TYPE, SKOS["Concept"]))
        languages: set[str | None] = set()
        if not labels[topic] and iri_of(name, prefixes) is None:
            labels[topic].append(Literal(name))
        for label in dict.fromkeys(labels[topic]):
            kind = "altLabel" if label.language in languages else "prefLabel"
            found.append((topic, SKOS[kind], label))
            languages.add(label.language)
    named: defaultdict[str, set[Term]] = defaultdict(set)
    for name, topic in topics.items():
        named[name.casefold()].add(topic)
    for s, p, o in (*stated, *found) if links else ():
        if p in LABELS and isinstance(o, Literal):
            named[o.value.casefold()].add(s)
    for topic, name, where in links:
        known = topics.get(name) or iri_of(name, prefixes)
        several = {known} if known else named[name.casefold()]
        if len(several) == 1:
            found += ((topic, BROADER, term) for term in several)
            continue
        what, remedy = f"no topic is called {name!r}", "Add a row for it, or write its IRI."
        if several:
            what, remedy = f"{len(several)} topics are called {name!r}", "Write the IRI of one."
        on_problem(Problem(what, where, f"The broader topic was left out. {remedy}"))
    return found
