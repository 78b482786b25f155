"""All that an ontology says of one term."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pyoxigraph import Literal, NamedNode
from rich.text import Text

from graphmatch.command.console import styled
from graphmatch.command.statistics import depths
from graphmatch.command.view import View, by_name, named
from semantic.terms import Term
from semantic.vocabulary import DOMAIN, RANGE, RDFS, SKOS

SHOWN = 12
"""How many terms of one line are shown as text."""

_COMMENTS = (SKOS["definition"], RDFS["comment"], SKOS["scopeNote"])


@dataclass(frozen=True, slots=True)
class Description:
    """What is known of a term.

    Parameters
    ----------
    names
        The other names that the term is the root of.
    ancestors, descendants
        How many named terms are above and below, instances left out.
    depth
        The longest way down to it from a top, in links.
    attributes
        The properties that have the term as their domain.
    instances, all_instances
        How many named instances it has, and how many with those of the terms below.
    """

    term: NamedNode
    kinds: tuple[str, ...]
    labels: tuple[Literal, ...]
    comments: tuple[str, ...]
    names: tuple[Term, ...]
    parents: tuple[NamedNode, ...]
    children: tuple[NamedNode, ...]
    ancestors: int
    descendants: int
    depth: int
    domain: tuple[NamedNode, ...]
    range: tuple[NamedNode, ...]
    attributes: tuple[NamedNode, ...]
    instances: int
    all_instances: int

    @classmethod
    def of(cls, view: View, term: NamedNode) -> Description:
        """Collect what is known of a term."""
        triples = view.ontology.triples
        about = [(p, o) for s, p, o in triples if s == term]
        above = _above(view, term)
        below = {t for taxonomy in view.taxonomies.values() for t in taxonomy.descendants(term)}
        instances = {each: view.instances(each) for each in (term, *named(below))}
        comments = [o for p, o in about if p in _COMMENTS and isinstance(o, Literal)]
        comments.sort(key=lambda each: each.language not in ("en", None))
        return cls(
            term=term,
            kinds=view.kinds(term),
            labels=view.labels(term),
            comments=tuple(comment.value for comment in comments),
            names=view.ontology.roots.names(term),
            parents=view.parents(term),
            children=view.children(term),
            ancestors=len(above) - 1,
            descendants=len(set(named(below)) - {term}),
            depth=depths(above)[term],
            domain=tuple(named(o for p, o in about if p == DOMAIN)),
            range=tuple(named(o for p, o in about if p == RANGE)),
            attributes=by_name(s for s, p, o in triples if p == DOMAIN and o == term),
            instances=len(instances[term]),
            all_instances=len({each for several in instances.values() for each in several}),
        )

    def as_json(self) -> dict[str, object]:
        """Return the description for JSON, its terms as N-Triples writes them."""
        return {
            "term": str(self.term),
            "kinds": list(self.kinds),
            "labels": list(map(str, self.labels)),
            "comments": list(self.comments),
            "names": list(map(str, self.names)),
            "parents": list(map(str, self.parents)),
            "children": list(map(str, self.children)),
            "ancestors": self.ancestors,
            "descendants": self.descendants,
            "depth": self.depth,
            "domain": list(map(str, self.domain)),
            "range": list(map(str, self.range)),
            "attributes": list(map(str, self.attributes)),
            "instances": self.instances,
            "all instances": self.all_instances,
        }

    def lines(self, view: View) -> Iterator[Text]:
        """Yield the description for people; what is empty is left out."""
        yield styled((view.compact(self.term), "bold"), "  ", (self.term.value, "blue"))
        rows: list[tuple[str, Sequence[str]]] = [
            ("kind", self.kinds),
            ("labels", [str(label) for label in self.labels]),
            ("comment", [" ".join(comment.split()) for comment in self.comments[:1]]),
            ("other names", [view.compact(name) for name in self.names]),
            ("parents", [view.compact(parent) for parent in self.parents]),
            ("children", [view.compact(child) for child in self.children]),
            ("domain", [view.compact(each) for each in self.domain]),
            ("range", [view.compact(each) for each in self.range]),
            ("attributes", [view.compact(each) for each in self.attributes]),
        ]
        for name, several in rows:
            if several:
                more = f" and {len(several) - SHOWN:,} more" if len(several) > SHOWN else ""
                yield styled(f"  {name:<12}", ", ".join(several[:SHOWN]), (more, "dim"))
        yield styled(f"  {'depth':<12}", f"{self.depth:,}")
        yield styled(f"  {'above':<12}", f"{self.ancestors:,}")
        yield styled(f"  {'below':<12}", f"{self.descendants:,}")
        if self.all_instances:
            counts = f"{self.instances:,}, with those of terms below {self.all_instances:,}"
            yield styled(f"  {'instances':<12}", counts)


def _above(view: View, term: NamedNode) -> dict[NamedNode, tuple[NamedNode, ...]]:
    """Return the term and all above it, each with its parents."""
    above: dict[NamedNode, tuple[NamedNode, ...]] = {}
    queue = [term]
    for current in queue:
        if current not in above:
            above[current] = view.parents(current)
            queue.extend(above[current])
    return above
