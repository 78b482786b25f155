"""``graphmatch ontology``: the contents of an ontology."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from pyoxigraph import Literal, NamedNode
from rich.text import Text

from graphmatch.command.options import OntologyOptions, Verbosity, ViewOptions
from graphmatch.command.session import Session
from graphmatch.command.terms import OntologyView, TermMatch, by_name, named, resolve, search
from graphmatch.console import reader_language, styled
from graphmatch.mapping import MappingFunctions
from semantic.errors import InputError, Place, Problem, plural
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Mention
from semantic.vocabulary import DOMAIN, RANGE, RDFS, SKOS

SIBLINGS = 40
"""The maximum number of siblings shown in a tree."""
FOUND = 40
"""The maximum number of search results shown as text."""
LISTED = 12
"""The maximum number of terms in one line of a description."""
_Output: TypeAlias = tuple[Iterable[Mapping[str, object]], Iterable[Text]]
"""The rows of JSON Lines, and the lines of text."""
_COMMENTS = (SKOS["definition"], RDFS["comment"], SKOS["scopeNote"])


def run(
    files: Sequence[Path],
    ontology_options: OntologyOptions,
    view_options: ViewOptions,
    verbosity: Verbosity,
    *,
    json: bool,
) -> int:
    """Load an ontology; print its trees, one term or search results; return the exit status."""
    problems: list[Problem] = []
    with Session(verbosity, problems=problems) as session:
        if view_options.search is not None and view_options.term is not None:
            what = "--search and --term are given together"
            raise InputError(Problem(what, Place("--term"), "Leave one of them out."))
        view = OntologyView(session.ontology(files, ontology_options), reader_language(os.environ))
        session.show_warnings()
        if view_options.search is not None:
            found = search(view, view_options.search)
            rows, lines = _found(view, found)
            if not json:
                session.note(f"{plural(len(found), 'term')} found")
        elif view_options.term is not None:
            rows, lines = _term(view, view_options.term)
        else:
            rows, lines = _trees(view, view_options.depth, problems)
        if json:
            for row in rows:
                session.out.write_json(row)
        else:
            for line in lines:
                session.out.print(line)
        return session.status


def _trees(view: OntologyView, depth: int, problems: Sequence[Problem]) -> _Output:
    """Return the hierarchies (only as text), mapping functions, base units, and the counts."""
    counts, declared = count_all(view, problems), _declared(view)
    trees = (
        [styled((kind, "bold")), *tree_lines(taxonomy, view, depth)]
        for kind, taxonomy in view.taxonomies.items()
        if any(named(taxonomy))
    )
    ends = (count_line(name, count) for name, count in counts.items())
    lines = chain(chain.from_iterable(trees), _declared_lines(declared), ends)
    return [counts | declared], lines


def _found(view: OntologyView, found: Sequence[TermMatch]) -> _Output:
    """Return the terms with a name that contains a text; as text, at most `FOUND`."""
    rows = (_found_as_json(view, each) for each in found)
    lines = [_found_line(view, each) for each in found[:FOUND]]
    if len(found) > FOUND:
        lines.append(styled((f"… and {len(found) - FOUND:,} more", "dim")))
    return rows, lines


def _found_line(view: OntologyView, found: TermMatch) -> Text:
    term = found.term
    says = [", ".join(view.kinds(term))]
    if parents := view.parents(term):
        says.append("under " + " and ".join(map(view.compact, parents)))
    if below := view.count_below(term):
        says.append(f"{below:,} below")
    shown = (f"  {found.name}", "green")
    return styled(view.compact(term), shown, ("  " + ", ".join(says), "dim"))


def _found_as_json(view: OntologyView, found: TermMatch) -> dict[str, object]:
    return {
        "term": str(found.term),
        "name": found.name.text,
        "language": found.name.language,
        "found": found.how,
        "kinds": list(view.kinds(found.term)),
        "parents": list(map(str, view.parents(found.term))),
        "below": view.count_below(found.term),
    }


def _term(view: OntologyView, text: str) -> _Output:
    """Return the description of the term with a name or IRI (`resolve`)."""
    description = describe(view, resolve(view, text))
    row = {key: _plain(value) for key, value in description.items()}
    return [row], _description_lines(view, description)


def tree_lines(taxonomy: Taxonomy, view: OntologyView, depth: int) -> Iterator[Text]:
    """Yield a hierarchy as lines, one per term, `depth` levels from the tops down."""

    def branch(
        terms: Sequence[NamedNode], indent: str, level: int, above: tuple[NamedNode, ...] = ()
    ) -> Iterator[Text]:
        more = len(terms) - SIBLINGS
        for number, term in enumerate(terms[:SIBLINGS], 1):
            is_last = number == len(terms)
            yield styled(indent + ("└── " if is_last else "├── "), *_named(term, view))
            line = (*above, term)
            below = [t for t in by_name(taxonomy.children(term)) if t not in line]
            inner = indent + ("    " if is_last else "│   ")
            if level < depth:
                yield from branch(below, inner, level + 1, line)
            elif below:
                count = sum(1 for _ in named(taxonomy.descendants(term)))
                yield styled(f"{inner}└── ", (f"… {count:,} below", "dim"))
        if more > 0:
            yield styled(f"{indent}└── ", (f"… and {more:,} more", "dim"))

    return branch(_tops(taxonomy), "", 1)


def _named(term: NamedNode, view: OntologyView) -> Iterator[str | tuple[str, str]]:
    yield view.compact(term)
    if label := view.label(term):
        yield f"  {label}", "dim"
    if others := view.ontology.roots.names(term):
        yield f"  = {', '.join(map(view.compact, others))}", "cyan"


def _tops(taxonomy: Taxonomy) -> list[NamedNode]:
    """Return the named terms with no named parent, those with children first.

    A cycle without a parent outside of it is represented by its first term.
    """
    free = (t for t in named(taxonomy) if not any(named(taxonomy.parents(t))))
    heads = (
        next(named(circle), None)
        for circle in taxonomy.cycles
        if all(above in circle for term in circle for above in named(taxonomy.parents(term)))
    )
    tops = by_name([*free, *filter(None, heads)])
    return sorted(tops, key=lambda term: not taxonomy.children(term))


def describe(view: OntologyView, term: NamedNode) -> dict[str, Any]:
    """Return the names, related terms and counts of one term, by the keys of the JSON output."""
    triples = view.ontology.triples
    about = [(p, o) for s, p, o in triples if s == term]
    direct = (term, *view.types(term))
    trees = view.taxonomies.values()
    above = {*direct, *named(a for t in trees for each in direct for a in t.ancestors(each))}
    below = {t for taxonomy in trees for t in taxonomy.descendants(term)}
    instances = {each: view.instances(each) for each in (term, *named(below))}
    comments = [o for p, o in about if p in _COMMENTS and isinstance(o, Literal)]
    comments.sort(key=lambda each: each.language not in ("en", None))
    return {
        "term": term,
        "kinds": view.kinds(term),
        "labels": view.labels(term),
        "comments": [comment.value for comment in comments],
        "names": view.ontology.roots.names(term),
        "parents": view.parents(term),
        "children": view.children(term),
        "ancestors": len(above) - 1,
        "descendants": len(set(named(below)) - {term}),
        "domain": [*named(o for p, o in about if p == DOMAIN)],
        "range": [*named(o for p, o in about if p == RANGE)],
        "attributes": by_name(s for s, p, o in triples if p == DOMAIN and o == term),
        "instances": len(instances[term]),
        "all instances": len({each for several in instances.values() for each in several}),
    }


def _description_lines(view: OntologyView, found: Mapping[str, Any]) -> Iterator[Text]:
    """Yield the lines of a description (`describe`) for people, without its empty parts."""
    yield styled((view.compact(found["term"]), "bold"), "  ", (found["term"].value, "blue"))
    lines = {"kinds": "kind", "labels": "labels", "comments": "comment", "names": "other names"}
    same = ("parents", "children", "domain", "range", "attributes")
    for key, name in (lines | {key: key for key in same}).items():
        several = found[key][:1] if key == "comments" else found[key]
        shown = (
            view.compact(each) if isinstance(each, NamedNode) else " ".join(str(each).split())
            for each in several[:LISTED]
        )
        more = f" and {len(several) - LISTED:,} more" if len(several) > LISTED else ""
        if several:
            yield styled(f"  {name:<12}", ", ".join(shown), (more, "dim"))
    for key, name in {"ancestors": "above", "descendants": "below"}.items():
        yield styled(f"  {name:<12}", f"{found[key]:,}")
    if found["all instances"]:
        counts = f"{found['instances']:,}, with those of terms below {found['all instances']:,}"
        yield styled(f"  {'instances':<12}", counts)


def _plain(value: object) -> object:
    """Return a value of a description (`describe`) for JSON, with terms as N-Triples."""
    if isinstance(value, list | tuple):
        return [*map(str, value)]
    return value if isinstance(value, int) else str(value)


def count_line(name: str, count: object) -> Text:
    """Return a line with a count and its name; `count` is a number, a list, or counts by name."""
    if isinstance(count, dict):
        listed = ", ".join(f"{key} {number:,}" for key, number in count.items())
        return styled(f"          {name}: {listed or 'none'}")
    number = count if isinstance(count, int) else len(count) if isinstance(count, list) else 0
    return styled(f"{number:>8,}  {name}")


def count_all(view: OntologyView, problems: Sequence[Problem]) -> dict[str, object]:
    """Count triples, terms, links and labels, by the keys of docs/reference/command.md."""
    ontology = view.ontology
    counts: dict[str, object] = {"triples": len(ontology.triples)}
    for kind, taxonomy in view.taxonomies.items():
        counts[kind] = len(by_name(taxonomy))
        links = (parent for term in named(taxonomy) for parent in named(taxonomy.parents(term)))
        counts[f"{kind}: is-a links"] = sum(1 for _ in links)
    instances = {each for class_ in named(ontology.classes) for each in ontology.instances(class_)}
    counts["instances"] = len(instances.difference(ontology.classes, ontology.properties))
    labels = Counter(label.language or "without language" for label in ontology.labels())
    counts["labels"] = labels.total()
    counts["labels by language"] = dict(labels.most_common())
    counts["names with another root"] = len(ontology.roots)
    for entailment in ("rdfs", "owl-rl"):
        counts[f"axioms not used by {entailment}"] = ontology.unused_axioms(entailment).kinds
    counts["problems"] = [str(problem) for problem in problems]
    return counts


# --- Mapping functions and base units ------------------------------------------------------------


def _declared(view: OntologyView) -> dict[str, Any]:
    """Return the mapping functions and base units for JSON.

    The keys are those of docs/reference/command.md.
    """
    functions = [
        {
            "name": analysed.function.name,
            "reads": list(_written(view, analysed.reads)),
            "adds": list(_written(view, analysed.adds)),
            "comment": analysed.function.comment,
        }
        for analysed in MappingFunctions(view.ontology.mapping)
    ]
    units = view.ontology.units.declarations.base_units
    bases = {view.compact(attribute): view.compact(base.term) for attribute, base in units.items()}
    return {"mapping functions": functions, "base units": bases}


def _declared_lines(declared: Mapping[str, Any]) -> Iterator[Text]:
    if declared["mapping functions"]:
        yield styled(("mapping functions", "bold"))
    for one in declared["mapping functions"]:
        does = f"  {', '.join(one['reads'])} → {', '.join(one['adds'])}"
        yield styled("    ", one["name"], does, (f"  {one['comment']}", "dim"))
    if declared["base units"]:
        yield styled(("base units", "bold"))
    for attribute, unit in declared["base units"].items():
        yield styled(f"    {attribute}  {unit}")


def _written(view: OntologyView, mentions: Iterable[Mention]) -> Iterator[str]:
    for property_, object_ in mentions:
        written = "anything" if property_ is None else view.compact(property_)
        yield written if object_ is None else f"{written} {view.compact(object_)}"
