"""Names for new blank nodes, made of what is said about them.

A template with blank nodes gives other ones whenever it is filled in. Named by what
they stand next to, they are the same ones when the same is said of them again, so
that asking twice adds nothing.

A name is a digest of the triples that a node is in, its new neighbours put in by their own
digests, as often as there are new nodes. This is colour refinement; where it cannot tell
two nodes apart, all nodes keep the names that they have. Costs O(nodes · triples).

Source: A. Hogan, "Canonical Forms for Isomorphic and Equivalent RDF Graphs"
(ACM Transactions on the Web 11(4), 2017), section 4.1: its hashes, without its search
for the cases in which these do not tell nodes apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b

from pyoxigraph import BlankNode

from semantic.terms import Term, Triple

_SIZE = 16


def named_by_content(
    triples: Sequence[Triple], is_new: Callable[[BlankNode], bool]
) -> Sequence[Triple]:
    """Return the triples with each new blank node named by what they say of it.

    Parameters
    ----------
    is_new
        Whether nothing but these triples can speak of a blank node.

    Examples
    --------
    >>> from pyoxigraph import Literal, NamedNode
    >>> x, p = NamedNode("urn:x"), NamedNode("urn:p")
    >>> one = [(x, p, BlankNode("a")), (BlankNode("a"), p, Literal("1"))]
    >>> two = [(x, p, BlankNode("b")), (BlankNode("b"), p, Literal("1"))]
    >>> named_by_content(one, lambda _: True) == named_by_content(two, lambda _: True)
    True
    """
    found = {term for triple in triples for term in triple if isinstance(term, BlankNode)}
    new = {node for node in found if is_new(node)}
    if not new:
        return triples
    about: defaultdict[BlankNode, list[Triple]] = defaultdict(list)
    for triple in triples:
        for term in {term for term in triple if isinstance(term, BlankNode)} & new:
            about[term].append(triple)
    names: dict[Term, Term] = {}
    for part in _parts(about):
        names |= _names({node: about[node] for node in part})
    return tuple(
        dict.fromkeys((names.get(s, s), names.get(p, p), names.get(o, o)) for s, p, o in triples)
    )


def _parts(about: Mapping[BlankNode, Iterable[Triple]]) -> list[list[BlankNode]]:
    """Return the nodes in groups, those together that triples hold together."""
    parts: list[list[BlankNode]] = []
    seen: set[BlankNode] = set()
    for start in about:
        if start in seen:
            continue
        seen.add(start)
        part = [start]
        for node in part:
            for triple in about[node]:
                for term in triple:
                    if isinstance(term, BlankNode) and term in about and term not in seen:
                        seen.add(term)
                        part.append(term)
        parts.append(part)
    return parts


def _names(about: Mapping[BlankNode, Iterable[Triple]]) -> dict[Term, Term]:
    """Return the names of the nodes of one group; none where two would be called the same."""
    colours: dict[Term, str] = dict.fromkeys(about, "")
    for _ in about:
        colours = {node: _colour(node, triples, colours) for node, triples in about.items()}
    if len(set(colours.values())) != len(colours):
        return {}
    whole = "".join(sorted(colours.values()))  # like nodes of unlike groups are two
    return {node: BlankNode(f"gm{_digest(colour + whole)}") for node, colour in colours.items()}


def _colour(node: BlankNode, triples: Iterable[Triple], colours: Mapping[Term, str]) -> str:
    def shown(term: Term) -> str:
        if term == node:
            return "self"
        return f"new {colours[term]}" if term in colours else str(term)

    return _digest("\n".join(sorted(" ".join(map(shown, triple)) for triple in triples)))


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=_SIZE).hexdigest()
