"""The different constants of very many subscriptions, and what has to be known of each once.

Cost: some microseconds for each different constant, a third of one for a plain number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal, NamedNode

from graphmatch.index.numbers import DATE, DATE_TIME, NUMBER, TEXT, scales_of
from graphmatch.index.runs import Ids
from graphmatch.knowledge import Knowledge
from semantic.errors import UnknownNameError
from semantic.evaluation import Evaluator
from semantic.sparql.query import Skeleton
from semantic.terms import Term
from semantic.units.vocabulary import is_quantity

Mask: TypeAlias = NDArray[np.bool_]

_ORDERED = (NUMBER, DATE, DATE + 1, DATE_TIME, DATE_TIME + 1, TEXT)


class Constants:
    """The different constants of many subscriptions, under one state of knowledge.

    Parameters
    ----------
    terms
        As the subscriptions say them.
    knowledge
        What is known.

    Attributes
    ----------
    terms
        The same, and behind them their roots.
    roots
        By place: the place of its root.
    is_iri
        By place: whether it is an IRI, which always is replaced by its root.
    scales
        By place: what the term is compared by (`graphmatch.index.numbers`).
    odd
        By place: whether a subscription that says it is filed by itself.
    """

    def __init__(self, terms: Sequence[Term], knowledge: Knowledge) -> None:
        self.terms = list(terms)
        self.scales = scales_of(terms)
        plain = np.isin(self.scales[:, 0], _ORDERED).tolist()
        roots, odd, iris = list(range(len(terms))), [], [False] * len(terms)
        measured = knowledge.units.measured if knowledge.units else frozenset()
        renames, has_units = knowledge.renames_texts, knowledge.units is not None
        for place, (term, is_plain) in enumerate(zip(terms, plain, strict=True)):
            if is_plain and not renames:
                continue
            iris[place] = isinstance(term, NamedNode)
            root = term
            if iris[place] or renames:
                try:
                    root = knowledge.root(term)
                except UnknownNameError:
                    odd.append(place)
                if root != term:
                    roots[place] = len(self.terms)
                    self.terms.append(root)
            is_measured = is_quantity(root) if isinstance(root, Literal) else root in measured
            if is_measured and has_units:
                odd.append(place)
        more = scales_of(self.terms[len(terms) :])
        self.scales = np.concatenate((self.scales, more))
        self.roots = np.array(roots, np.int32)
        self.is_iri = np.array(iris, np.bool_)
        self.odd = np.zeros(len(terms), np.bool_)
        self.odd[odd] = True
        self._places: dict[Term, int] = {}

    def filed(self, skeleton: Skeleton, said: Ids) -> Ids:
        """Return constants with roots put in: shape (subscriptions, slots)."""
        rooted: Ids = self.roots[said]
        for slot in range(said.shape[1]):
            if slot not in skeleton.rewritten:
                rooted[:, slot] = np.where(
                    self.is_iri[said[:, slot]], rooted[:, slot], said[:, slot]
                )
        return rooted

    def place(self, term: Term) -> int:
        """Return the place of a term that stands in every query of a skeleton."""
        if term not in self._places:
            self._places[term] = len(self.terms)
            self.terms.append(term)
        return self._places[term]

    def occurring(self, background: Evaluator, chosen: Mask) -> Mask:
        """Say where the ontology has some terms: shape (3, terms), as subject, property, object."""
        found = np.zeros((3, len(chosen)), np.bool_)
        for place in np.flatnonzero(chosen).tolist():
            term = self.terms[place]
            found[:, place] = [term in known for known in background.terms]
        return found

    def ordered(self, places: Ids) -> bool:
        """Whether all of some constants are numbers, times or texts, which have an order."""
        return bool(np.isin(self.scales[places, 0], _ORDERED).all())
