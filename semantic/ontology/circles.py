"""Terms that equivalence puts above themselves.

``A ⊑ B`` and ``A ≡ B`` make one term of both, and the link a loop, which says nothing. It is
legal, and often a mistake: the link was meant to be narrower than it is. Circles of links alone
are found by `taxonomy.find_cycles`, before and after roots are put in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from pyoxigraph import NamedNode

from semantic.ontology.statements import LINKS, edges_of
from semantic.ontology.synonyms import Roots
from semantic.ontology.taxonomy import Taxonomy
from semantic.terms import Term, Triple, compact


def report_own_ancestors(
    stated: Iterable[Triple],
    roots: Roots,
    cycles: Iterable[Sequence[Term]],
    report: Callable[[str, str], None],
) -> None:
    """Report each class, property or concept that is above itself because two names are one.

    Parameters
    ----------
    stated
        The is-a links as they are stated, before roots are put in; other triples do no harm.
    roots
        The roots that were found in the end.
    cycles
        Members of the cycles that were reported already: what became of one is not told twice.
    report
        Takes what is wrong, and what to do.

    Examples
    --------
    >>> from semantic.ontology.synonyms import SynonymPairs
    >>> from semantic.vocabulary import SUBCLASS, Namespace
    >>> ex = Namespace("http://example.org/")
    >>> roots = Roots([(ex["Car"], ex["Auto"])], SynonymPairs(), frozenset())
    >>> stated = [(ex["Car"], SUBCLASS, ex["Auto"])]
    >>> report_own_ancestors(stated, roots, [], lambda what, remedy: print(what))
    <http://example.org/Car> is its own ancestor through equivalence: \
<http://example.org/Auto> is above it, and means the same
    """
    if not len(roots):
        return
    root = roots.root
    told = {root(term) for cycle in cycles for term in cycle}
    for edges in edges_of(stated, LINKS).values():
        for child, parent in edges:
            if child == parent or (one := root(child)) != root(parent) or one in told:
                continue
            told.add(one)
            what = (
                f"{compact(child)} is its own ancestor through equivalence: "
                f"{compact(parent)} is above it, and means the same"
            )
            report(what, "They are taken as one term; remove the link if it says something else.")


def report_circles(
    trees: Iterable[tuple[str, Taxonomy]], report: Callable[[str, str], None]
) -> None:
    """Report the circles that are left when those of RDFS's and SKOS's own links are folded.

    They are of links that the ontology says by properties of its own (a declared taxonomy); their
    terms stay apart, and each is above the others.
    """
    for kind, taxonomy in trees:
        for circle in taxonomy.cycles:
            names = [term for term in circle if isinstance(term, NamedNode)]
            if len(names) > 1:
                listed = ", ".join(map(compact, names))
                report(
                    f"a circle of {kind}: {listed} are all above each other",
                    "They stay terms of their own; remove a link if they are not.",
                )
