"""Terms by what a person calls them: one that is meant, and those that a text is found in."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from pyoxigraph import NamedNode

from graphmatch.command.view import Name, View, by_name
from semantic.errors import GraphMatchError, Place, Problem

CANDIDATES = 10
"""How many terms a message names."""

_CASE = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[_\-.]+")


def resolve(view: View, text: str) -> NamedNode:
    """Return the term that a text names.

    Tried in this order: an IRI, a prefixed name, the last part of an IRI, a label, and the last
    two in any case. The first that names something decides.

    Raises
    ------
    GraphMatchError
        When it names nothing, or several terms.
    """
    if (term := _iri(view, text)) is not None:
        return term
    same: Sequence[Callable[[Name], bool]] = (
        lambda name: name.local and name.text == text,
        lambda name: not name.local and name.text == text,
        lambda name: folded(name.text) == folded(text),
    )
    for is_meant in same:
        found = by_name({name.term for name in view.names if is_meant(name)})
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(map(view.compact, found[:CANDIDATES]))
            more = f" and {len(found) - CANDIDATES} more" if len(found) > CANDIDATES else ""
            what = f"{len(found)} terms are called so: {listed}{more}"
            remedy = "Give one of these, or its IRI."
            raise GraphMatchError(Problem(what, Place(text), remedy))
    raise GraphMatchError(Problem("no term is called so", Place(text), _advice(view, text)))


def _iri(view: View, text: str) -> NamedNode | None:
    iri = text.removeprefix("<").removesuffix(">")
    prefix, colon, local = text.partition(":")
    if colon and prefix in view.ontology.prefixes:
        iri = view.ontology.prefixes[prefix] + local
    try:
        term = view.ontology.root(NamedNode(iri))
    except ValueError:
        return None
    return term if isinstance(term, NamedNode) and view.kinds(term) else None


def _advice(view: View, text: str) -> str:
    names = {folded(name.text): name for name in view.names}
    near = get_close_matches(folded(text.rpartition(":")[2]), names, 3)
    meant = dict.fromkeys(view.compact(names[each].term) for each in near)
    return f"Is {' or '.join(meant)} meant?" if meant else "Look for it with --search."


@dataclass(frozen=True, slots=True)
class Found:
    """A term, its name that the text was found in, and how.

    Parameters
    ----------
    how
        ``exact``, ``prefix``, ``word`` (a word of the name begins so) or ``part``.
    """

    term: NamedNode
    name: Name
    how: str


HOW = ("exact", "prefix", "word", "part")
"""The ways a text is found in a name, the best first."""


def search(view: View, text: str) -> list[Found]:
    """Return the terms with a name in which the text stands, in any case, the best first."""
    wanted = folded(text)
    if not wanted:
        return []
    by_term: defaultdict[NamedNode, list[tuple[int, Name]]] = defaultdict(list)
    for name in view.names:
        rank = min(_rank(form, wanted) for form in _forms(name))
        if rank < len(HOW):
            by_term[name.term].append((rank, name))
    best = [(*min(several, key=_preference), term) for term, several in by_term.items()]
    best.sort(key=lambda each: (each[0], len(each[1].text), str(each[2])))
    return [Found(term, name, HOW[rank]) for rank, name, term in best]


def _preference(found: tuple[int, Name]) -> tuple[object, ...]:
    """Order the names of one term: as well found as can be, labels, English, short."""
    rank, name = found
    return rank, name.local, name.language not in ("en", None), len(name.text), str(name)


def _rank(form: str, wanted: str) -> int:
    if form == wanted:
        return 0
    if form.startswith(wanted):
        return 1
    if wanted not in form:
        return len(HOW)
    return 2 if re.search(rf"\b{re.escape(wanted)}", form) else 3


def _forms(name: Name) -> tuple[str, ...]:
    """Return a name in one case; ``SolarPower`` is also "solar power"."""
    if not name.local:
        return (folded(name.text),)
    return folded(name.text), folded(_CASE.sub(" ", name.text))


def folded(text: str) -> str:
    """Return a text in one case, with single spaces.

    Examples
    --------
    >>> folded(" Solar  Power")
    'solar power'
    """
    return " ".join(text.casefold().split())
