"""A hierarchy as lines, one a term."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pyoxigraph import NamedNode
from rich.text import Text

from graphmatch.command.console import styled
from graphmatch.command.view import View, by_name, named
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term

SIBLINGS = 40
"""How many terms of one level are shown."""


class Tree:
    """A taxonomy as lines, however wide: an IRI is not cut at the terminal's edge.

    Parameters
    ----------
    depth
        How many levels are shown.
    """

    def __init__(self, taxonomy: Taxonomy, view: View, depth: int) -> None:
        self._taxonomy = taxonomy
        self._view = view
        self._depth = depth

    def lines(self) -> Iterator[Text]:
        """Yield the lines from the tops down."""
        yield from self._branch(_tops(self._taxonomy), "", 1)

    def _branch(
        self, terms: Sequence[NamedNode], indent: str, level: int, above: tuple[NamedNode, ...] = ()
    ) -> Iterator[Text]:
        more = len(terms) - SIBLINGS
        for number, term in enumerate(terms[:SIBLINGS], 1):
            is_last = number == len(terms)
            yield styled(indent + ("└── " if is_last else "├── "), *self._term(term))
            line = (*above, term)
            below = [t for t in by_name(self._taxonomy.children(term)) if t not in line]
            inner = indent + ("    " if is_last else "│   ")
            if level < self._depth:
                yield from self._branch(below, inner, level + 1, line)
            elif below:
                count = sum(1 for _ in named(self._taxonomy.descendants(term)))
                yield styled(f"{inner}└── ", (f"… {count:,} below", "dim"))
        if more > 0:
            yield styled(f"{indent}└── ", (f"… and {more:,} more", "dim"))

    def _term(self, term: NamedNode) -> Iterator[str | tuple[str, str]]:
        yield self._view.compact(term)
        if label := self._view.label(term):
            yield f"  {label}", "dim"
        if others := self._view.ontology.roots.names(term):
            yield f"  = {', '.join(map(self._view.compact, others))}", "cyan"


def _tops(taxonomy: Taxonomy) -> list[NamedNode]:
    """Return the named terms with no named parent, those with children first.

    Of a circle that nothing is above, it is the first term.
    """
    free = (t for t in named(taxonomy) if not any(named(taxonomy.parents(t))))
    heads = (next(named(circle), None) for circle in taxonomy.cycles if _is_top(circle, taxonomy))
    tops = by_name([*free, *filter(None, heads)])
    return sorted(tops, key=lambda term: not taxonomy.children(term))


def _is_top(circle: Sequence[Term], taxonomy: Taxonomy) -> bool:
    above = (parent for term in circle for parent in named(taxonomy.parents(term)))
    return all(parent in circle for parent in above)
