"""Queries read faster than the lexer reads them, where they are written as others were.

A text is cut by one regular expression into constants and rests (`semantic.sparql.cuts`).
The rests are looked up among the ways of writing that were met before, the constants
among those met before, both under the prefixes in force. What was not met before, and
whatever is not certain to come to the same, is read the slow way, which alone decides
what a query means. So the result is always that of the slow way: the same skeleton, the
same constants, the same error.

A way of writing is remembered when the slow way has read a text of it, the rests keep
their constants apart, and each cut is the constant of one slot. Constants that are not
cut (booleans, numbers behind signs that add, the property before a list) stay in the rests
and are remembered with them; a constant that is no slot (the number behind LIMIT, what
is called) has to be there, too. Comments behind the prologue, escapes in IRIs and names,
called IRIs, BASE and quantities go the slow way always.

The cost of a known way of writing is that of the regular expression and as much again
(docs/decisions/skeletons.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import TypeAlias

from semantic.limits import Limits
from semantic.sparql.cuts import constant, cut, prologue, separate, sign_of
from semantic.sparql.lexer import Lexer, LexicalError
from semantic.sparql.query import Query, Skeleton
from semantic.sparql.slots import slot_of_text
from semantic.terms import Term

Kinds: TypeAlias = tuple[type[Term], ...]
"""The classes of a text's constants: an IRI and a literal make different skeletons."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What the slow way makes of a text.

    Parameters
    ----------
    query
        Its skeleton and constants.
    pieces
        The skeleton's text, piece by piece.
    offsets
        Where in the text each piece begins, in characters from 0; a number behind its sign.
    """

    query: Query
    pieces: Sequence[str]
    offsets: Sequence[int]

    def places(self) -> list[int]:
        """Return where the constant of each slot begins."""
        slotted = zip(self.pieces, self.offsets, strict=True)
        found = {n: offset for piece, offset in slotted for n in slot_of_text(piece)}
        return [found[number] for number in sorted(found)]


@dataclass(frozen=True, slots=True)
class Way:
    """The skeleton of a way of writing, and the constants of it that are not cut.

    `fixed` has these by their slots, in ascending order.
    """

    skeleton: Skeleton
    fixed: tuple[tuple[int, Term], ...]


@dataclass(frozen=True, slots=True)
class Rests:
    """Ways of writing that differ in the kinds of their constants only.

    Parameters
    ----------
    cuts
        How many constants are cut.
    signs
        Which of them have a sign before them.
    ways
        By the kinds of the constants.
    """

    cuts: int
    signs: tuple[tuple[int, str], ...]
    ways: dict[Kinds, Way] = field(default_factory=dict)


class Environment:
    """What is remembered under one set of prefixes."""

    def __init__(self, prefixes: Mapping[str, str], on_new: Callable[[], None]) -> None:
        self.prefixes = prefixes
        self.terms = _Terms(prefixes, on_new)
        self.rests: dict[str, Rests] = {}


class _Terms(dict[str, Term]):
    """Constants as they are written to the terms that they are, read when first asked for.

    Raises
    ------
    KeyError
        Where it is not certain that a text is a constant.
    """

    def __init__(self, prefixes: Mapping[str, str], on_new: Callable[[], None]) -> None:
        super().__init__()
        self._prefixes = prefixes
        self._on_new = on_new

    def __missing__(self, text: str) -> Term:
        term = constant(text, self._prefixes)
        if term is None:
            raise KeyError(text)
        self._on_new()
        self[text] = term
        return term


class Ways:
    """The ways of writing that were met, and the constants.

    Parameters
    ----------
    prefixes
        Those that hold without being declared.
    limits
        Bounds on a subscription, and on what is remembered.
    slowly
        Reads any text, or raises `SubscriptionError`.
    """

    def __init__(
        self,
        prefixes: Mapping[str, str],
        limits: Limits,
        slowly: Callable[[str, str], Reading],
    ) -> None:
        self._prefixes = prefixes
        self._limits = limits
        self._slowly = slowly
        self.lexed = 0
        """How many texts were read the slow way, those that were refused included."""
        self._forget()

    def _forget(self) -> None:
        self._environments: dict[str, Environment | None] = {}
        self._shared: dict[frozenset[tuple[str, str]], Environment] = {}
        self._constants = self._writings = 0

    def query(self, id: str, text: str) -> Query:
        """Return the query of a text.

        Raises
        ------
        SubscriptionError
            When the slow way does.
        """
        if (found := self.find(text)) is not None:
            environment, rests, written = found
            try:
                constants = tuple(map(environment.terms.__getitem__, written))
            except KeyError:
                return self.learn(id, text)
            way = rests.ways.get(tuple(map(type, constants)))
            if way is not None:
                return Query(way.skeleton, _with_fixed(constants, way) if way.fixed else constants)
        return self.learn(id, text)

    def find(self, text: str) -> tuple[Environment, Rests, list[str]] | None:
        """Return what is remembered of a text's way of writing, and its constants as written."""
        if len(text) > self._limits.document_bytes:
            return None
        declared = prologue(text)
        environment = self._environments.get(declared)
        if environment is None:
            return None
        parts = cut(text[len(declared) :])
        rests = environment.rests.get("\0".join(parts[::2]))
        written = parts[1::2]
        if rests is None or len(written) != rests.cuts:  # with a NUL in it, a text has fewer
            return None
        for number, sign in rests.signs:
            written[number] = sign + written[number]
        return environment, rests, written

    def learn(self, id: str, text: str) -> Query:
        """Return the query of a text, read the slow way, and remember its way of writing.

        Raises
        ------
        SubscriptionError
            When the text cannot be a subscription.
        """
        self.lexed += 1
        reading = self._slowly(id, text)
        declared = prologue(text)
        parts = cut(text[len(declared) :])
        if separate(parts[::2]):
            self._remember(declared, parts, reading)
        return reading.query

    def _remember(self, declared: str, parts: list[str], reading: Reading) -> None:
        environment = self._environment(declared)
        if environment is None:
            return
        starts = list(accumulate(map(len, parts), initial=len(declared)))[1:-1:2]
        signs = [(n, sign) for n, rest in enumerate(parts[:-1:2]) if (sign := sign_of(rest))]
        written = parts[1::2]
        for number, sign in signs:
            written[number] = sign + written[number]
        try:
            terms = [environment.terms[text] for text in written]
        except KeyError:
            return
        way = _way(reading, dict(zip(starts, terms, strict=True)))
        if way is not None:
            rests = Rests(len(written), tuple(signs))
            rests = environment.rests.setdefault("\0".join(parts[::2]), rests)
            rests.ways[tuple(map(type, terms))] = way
            self._count_writing()

    def _environment(self, declared: str) -> Environment | None:
        """Return what is remembered under a prologue; ``None`` where it is not certain."""
        if declared not in self._environments:
            prefixes = _declared(declared, self._prefixes)
            environment = None
            if prefixes is not None:
                key = frozenset(prefixes.items())
                environment = self._shared.get(key)
                if environment is None:
                    environment = self._shared[key] = Environment(prefixes, self._count_constant)
            self._count_writing()
            self._environments[declared] = environment
        return self._environments[declared]

    def _count_writing(self) -> None:
        self._writings += 1
        if self._writings > self._limits.writings_remembered:
            self._forget()

    def _count_constant(self) -> None:
        self._constants += 1
        if self._constants > self._limits.constants_remembered:
            self._forget()


def _with_fixed(constants: Sequence[Term], way: Way) -> tuple[Term, ...]:
    filled = list(constants)
    for slot, term in way.fixed:
        filled.insert(slot, term)
    return tuple(filled)


def _declared(declared: str, prefixes: Mapping[str, str]) -> Mapping[str, str] | None:
    """Return the prefixes behind a prologue, where it is one and has no BASE."""
    lexer = Lexer(declared, prefixes)
    try:
        tokens = list(lexer.tokens())
    except LexicalError:
        return None
    return None if tokens or lexer.base is not None else lexer.prefixes


def _way(reading: Reading, cuts: Mapping[int, Term]) -> Way | None:
    """Return the way of writing of a text, where each cut is the constant of one slot.

    Parameters
    ----------
    reading
        What the slow way made of the text.
    cuts
        The constants that were cut, by where they begin.
    """
    constants, places = reading.query.constants, reading.places()
    if len(places) != len(constants) or not cuts.keys() <= set(places):
        return None
    fixed = []
    for slot, (place, term) in enumerate(zip(places, constants, strict=True)):
        if place not in cuts:
            fixed.append((slot, term))
        elif cuts[place] != term:
            return None
    return Way(reading.query.skeleton, tuple(fixed))
