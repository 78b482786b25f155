"""``graphmatch ontology``: what an ontology holds."""

from __future__ import annotations

import json as json_
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyoxigraph import NamedNode
from rich.markup import escape
from rich.tree import Tree

from graphmatch.command.session import Session
from semantic.errors import GraphMatchError
from semantic.ontology.ontology import Ontology
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, compact

SIBLINGS = 40
"""How many terms of one level are shown."""


def run(files: Sequence[Path], depth: int, *, json: bool) -> int:
    """Load, show; return the exit status."""
    session = Session()
    try:
        with session.waiting("Loading the ontology"):
            ontology = Ontology.load(*files, on_problem=session.report)
    except GraphMatchError as error:
        return session.fail(error)
    if json:
        session.out.print(json_.dumps(_counts(ontology, session), ensure_ascii=False), markup=False)
        return session.status
    names = _labels(ontology)
    for kind, taxonomy in _taxonomies(ontology).items():
        if _named(taxonomy):
            session.out.print(_tree(kind, taxonomy, ontology, names, depth))
    for name, count in _counts(ontology, session).items():
        session.out.print(f"{count:>8,}  {name}" if isinstance(count, int) else f"{name}: {count}")
    return session.status


def _taxonomies(ontology: Ontology) -> dict[str, Taxonomy]:
    return {
        "classes": ontology.classes,
        "properties": ontology.properties,
        "concepts": ontology.concepts,
    }


def _named(taxonomy: Taxonomy) -> list[Term]:
    return [term for term in taxonomy if isinstance(term, NamedNode)]


def _counts(ontology: Ontology, session: Session) -> dict[str, object]:
    counts: dict[str, object] = {"triples": len(ontology.triples)}
    for kind, taxonomy in _taxonomies(ontology).items():
        counts[kind] = len(_named(taxonomy))
        counts[f"{kind}: is-a links"] = sum(
            isinstance(parent, NamedNode)
            for term in _named(taxonomy)
            for parent in taxonomy.parents(term)
        )
    labels = ontology.labels()
    counts["instances"] = len(_instances(ontology))
    counts["labels"] = len(labels)
    by_language = Counter(label.language or "without language" for label in labels)
    counts["labels by language"] = dict(by_language.most_common())
    counts["names with another root"] = len(ontology.roots)
    counts["problems"] = [str(problem) for problem in session.problems]
    return counts


def _instances(ontology: Ontology) -> set[Term]:
    classes = _named(ontology.classes)
    found = {instance for class_ in classes for instance in ontology.instances(class_)}
    return found.difference(ontology.classes, ontology.properties)


def _labels(ontology: Ontology) -> Mapping[Term, str]:
    """Return one label a term: English where there is one."""
    best: dict[Term, str] = {}
    for label in sorted(ontology.labels(), key=lambda found: found.language not in ("en", None)):
        best.setdefault(label.concept, label.text)
    return best


def _tree(
    kind: str, taxonomy: Taxonomy, ontology: Ontology, names: Mapping[Term, str], depth: int
) -> Tree:
    tree = Tree(f"[bold]{kind}[/]")

    def grow(branch: Tree, terms: Sequence[Term], level: int) -> None:
        for term in terms[:SIBLINGS]:
            twig = branch.add(_line(term, ontology, names))
            below = _sorted(taxonomy.children(term))
            if level < depth:
                grow(twig, below, level + 1)
            elif below:
                twig.add(f"[dim]… {len(taxonomy.descendants(term)):,} below[/]")
        if len(terms) > SIBLINGS:
            branch.add(f"[dim]… and {len(terms) - SIBLINGS:,} more[/]")

    grow(tree, _tops(taxonomy), 1)
    return tree


def _tops(taxonomy: Taxonomy) -> list[Term]:
    """Return the named terms with no named parent, those with children first."""
    tops = [
        term
        for term in _named(taxonomy)
        if not any(isinstance(parent, NamedNode) for parent in taxonomy.parents(term))
    ]
    return sorted(_sorted(tops), key=lambda term: not taxonomy.children(term))


def _sorted(terms: Sequence[Term]) -> list[Term]:
    return sorted((term for term in terms if isinstance(term, NamedNode)), key=str)


def _line(term: Term, ontology: Ontology, names: Mapping[Term, str]) -> str:
    line = escape(compact(term, ontology.prefixes))
    if label := names.get(term):
        line += f"  [dim]{escape(label)}[/]"
    others = ontology.roots.names(term)
    if others:
        listed = ", ".join(compact(other, ontology.prefixes) for other in others)
        line += f"  [cyan]= {escape(listed)}[/]"
    return line
