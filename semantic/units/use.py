"""Where a constant of a query is used: which attribute's value it is, and what stands beside it."""

from __future__ import annotations

from dataclasses import dataclass

from semantic.terms import Term


@dataclass(frozen=True, slots=True)
class Use:
    """One place of a constant: an attribute's value, or compared with one.

    Parameters
    ----------
    attribute
        The property whose object the constant is, or the variable that it is compared with.
    siblings
        The properties of the same subject, each with a constant that is its object or equal to
        it; ``None`` where the query leaves it open.
    """

    attribute: Term
    siblings: tuple[tuple[Term, Term | None], ...] = ()
