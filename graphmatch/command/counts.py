"""What an ontology holds, counted, as lines and as JSON."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from graphmatch.command.console import styled
from graphmatch.command.statistics import Shape
from graphmatch.command.view import View, by_name, named
from semantic.errors import Problem
from semantic.ontology.taxonomy import Taxonomy


def count_line(name: str, count: object) -> Text:
    """Return a count of anything as a line."""
    if isinstance(count, dict):
        listed = ", ".join(f"{key} {number:,}" for key, number in count.items())
        return styled(f"          {name}: {listed or 'none'}")
    number = count if isinstance(count, int) else len(count) if isinstance(count, list) else 0
    return styled(f"{number:>8,}  {name}")


def count_all(view: View, problems: Sequence[Problem]) -> dict[str, object]:
    """Count what there is; the keys are those of docs/reference/command.md."""
    counts: dict[str, object] = {"triples": len(view.ontology.triples)}
    for kind, taxonomy in view.taxonomies.items():
        counts[kind] = len(by_name(taxonomy))
        counts[f"{kind}: is-a links"] = _links(taxonomy)
    counts["instances"] = _instances(view)
    counts["labels"] = sum(view.labels_by_language.values())
    counts["labels by language"] = view.labels_by_language
    counts["names with another root"] = len(view.ontology.roots)
    counts["problems"] = [str(problem) for problem in problems]
    return counts


def _links(taxonomy: Taxonomy) -> int:
    return sum(1 for term in named(taxonomy) for _ in named(taxonomy.parents(term)))


def _instances(view: View) -> int:
    classes = by_name(view.ontology.classes)
    found = {instance for class_ in classes for instance in view.ontology.instances(class_)}
    return len(found.difference(view.ontology.classes, view.ontology.properties))


def shape_as_json(shape: Shape) -> dict[str, object]:
    """Return a shape for JSON."""
    most = shape.most_children
    return {
        "terms": shape.terms,
        "links": shape.links,
        "tops": shape.tops,
        "leaves": shape.leaves,
        "several parents": shape.several_parents,
        "depth": shape.depth,
        "widest level": {"level": shape.widest[1], "terms": shape.widest[0]},
        "most children": most and {"term": str(most[0]), "children": most[1]},
    }


def problem_as_json(problem: Problem) -> dict[str, object]:
    """Return a problem for JSON."""
    where = problem.where
    return {
        "severity": problem.severity.value,
        "source": where.source,
        "line": where.line,
        "column": where.column,
        "item": where.item,
        "what": problem.what,
        "remedy": problem.remedy,
    }
