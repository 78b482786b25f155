"""``graphmatch ontology``: what an ontology holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pyoxigraph import NamedNode
from rich.text import Text

from graphmatch.command.console import styled
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
        session.out.write_json(_counts(ontology, session))
        return session.status
    names = _labels(ontology)
    for kind, taxonomy in _taxonomies(ontology).items():
        if _named(taxonomy):
            session.out.print(styled((kind, "bold")))
            for line in _Tree(taxonomy, ontology, names, depth).lines():
                session.out.print(line)
    for name, count in _counts(ontology, session).items():
        session.out.print(_count(name, count))
    return session.status


def _count(name: str, count: object) -> Text:
    if isinstance(count, dict):
        listed = ", ".join(f"{key} {number:,}" for key, number in count.items())
        return styled(f"          {name}: {listed or 'none'}")
    number = count if isinstance(count, int) else len(count) if isinstance(count, list) else 0
    return styled(f"{number:>8,}  {name}")


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


class _Tree:
    """A taxonomy as lines, however wide: an IRI is not cut at the terminal's edge."""

    def __init__(
        self, taxonomy: Taxonomy, ontology: Ontology, names: Mapping[Term, str], depth: int
    ) -> None:
        self._taxonomy = taxonomy
        self._ontology = ontology
        self._names = names
        self._depth = depth

    def lines(self) -> Iterator[Text]:
        yield from self._branch(_tops(self._taxonomy), "", 1)

    def _branch(self, terms: Sequence[Term], indent: str, level: int) -> Iterator[Text]:
        more = len(terms) - SIBLINGS
        for number, term in enumerate(terms[:SIBLINGS], 1):
            is_last = number == len(terms)
            yield styled(indent + ("└── " if is_last else "├── "), *self._term(term))
            below = _sorted(self._taxonomy.children(term))
            inner = indent + ("    " if is_last else "│   ")
            if level < self._depth:
                yield from self._branch(below, inner, level + 1)
            elif below:
                count = len(self._taxonomy.descendants(term))
                yield styled(f"{inner}└── ", (f"… {count:,} below", "dim"))
        if more > 0:
            yield styled(f"{indent}└── ", (f"… and {more:,} more", "dim"))

    def _term(self, term: Term) -> Iterator[str | tuple[str, str]]:
        yield compact(term, self._ontology.prefixes)
        if label := self._names.get(term):
            yield f"  {label}", "dim"
        if others := self._ontology.roots.names(term):
            listed = ", ".join(compact(other, self._ontology.prefixes) for other in others)
            yield f"  = {listed}", "cyan"


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
