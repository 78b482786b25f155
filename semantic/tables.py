"""Publications from Arrow tables: a row a triple, its terms as N-Triples writes them.

Columns are ``publication`` (the publication's id), ``subject``, ``predicate`` and ``object``; they
may be dictionary-encoded. Rows of a publication need not stand together. Blank nodes of one
publication with one name are one node.

Cost: each distinct text of a part of the table is looked up once (`semantic.term_texts`), a row
then costs a few look-ups of numbers: half of what parsing it as N-Triples takes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import BlankNode, NamedNode

from semantic.attributes.arrow import ArrowArray, ArrowBatch, ArrowTable, batches
from semantic.errors import InputError, OnProblem, Place, Problem, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.numbering import Numbering
from semantic.publication import Publication
from semantic.term_texts import TermTexts
from semantic.terms import Term

COLUMNS = ("publication", "subject", "predicate", "object")
_TABLE = "<table>"
_SHOWN = 40
_WRITING = 'Write <IRI>, _:name, "text", "text"@en or "5"^^<IRI of a datatype>.'
_KINDS: Sequence[tuple[type, ...]] = ((NamedNode, BlankNode), (NamedNode,), (object,))
"""What a subject, a predicate and an object may be."""
_REMEDIES = (
    "Give the publication an id.",
    "A subject is an IRI or a blank node.",
    "A predicate is an IRI.",
    _WRITING,
)

_Numbers: TypeAlias = NDArray[np.int64]


def publications_of_table(
    table: ArrowTable | ArrowBatch,
    *,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
    texts: TermTexts | None = None,
    names: str | None = None,
) -> Iterator[Publication]:
    """Yield the publications of an Arrow table, in the order in which they first appear.

    Parameters
    ----------
    table
        A ``pyarrow.Table`` or ``RecordBatch`` with the columns `COLUMNS`, of texts; see the module.
    on_problem
        Called with each row that says no triple; it is passed over. Rows are counted from 1.
    limits
        ``nesting`` and ``publication_triples`` hold.
    texts
        Remembers the texts of terms from one table to the next; new ones by default.
    names
        What blank nodes' names begin with; by default what no other table's do.

    Raises
    ------
    InputError
        When a column is missing.
    """
    prefix = f"b{uuid4().hex}" if names is None else names
    rows = _Rows(TermTexts() if texts is None else texts, prefix, on_problem, limits)
    parts = [part for batch in batches(table) if len(part := rows.of(batch))]
    if not parts:
        return
    every = np.concatenate(parts)
    every = every[np.argsort(every[:, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(every[:, 0], prepend=-1)).tolist()
    ids, places = list(rows.ids), every[:, 1:].ravel().tolist()
    for start, end in zip(starts, [*starts[1:], len(every)], strict=True):
        id = ids[int(every[start, 0])]
        if end - start > limits.publication_triples:
            on_problem(_too_large(id, limits))
        else:
            yield _publication(id, places[3 * start : 3 * end], rows.terms_of)


def _publication(
    id: str, places: list[int], terms: Callable[[Collection[int]], Sequence[Term]]
) -> Publication:
    flat = iter(places)
    distinct = dict.fromkeys(zip(flat, flat, flat, strict=True))
    if 3 * len(distinct) < len(places):
        places = list(chain.from_iterable(distinct))
    numbering = Numbering.by_keys(places, terms)
    return Publication(id, numbering, source=Place(_TABLE, item=id))


def _too_large(id: str, limits: Limits) -> Problem:
    what = f"a publication of more than {limits.publication_triples:,} rows"
    remedy = "Raise the limit `publication_triples`, or cut it into smaller publications."
    return Problem(what, Place(_TABLE, item=id), remedy)


class _Rows:
    """The rows of a table as numbers of publications and of terms."""

    def __init__(
        self, texts: TermTexts, prefix: str, on_problem: OnProblem, limits: Limits
    ) -> None:
        self._texts = texts
        self._on_problem = on_problem
        self._nesting = limits.nesting
        self._prefix = prefix
        self._numbers: dict[Term, int] = {}
        self._terms: list[Term] = []
        self._read = 0
        self.ids: dict[str, int] = {}
        """The publications' ids, with their numbers."""

    def terms_of(self, numbers: Iterable[int]) -> list[Term]:
        """Return the terms that have numbers."""
        return list(map(self._terms.__getitem__, numbers))

    def of(self, batch: ArrowBatch) -> _Numbers:
        """Return the good rows of a part: publication, subject, predicate, object.

        Raises
        ------
        InputError
            When a column is missing.
        """
        names = batch.schema.names
        for name in COLUMNS:
            if name not in names:
                remedy = f"The columns are {', '.join(COLUMNS)}."
                raise InputError(Problem(f"no column {name!r}", Place(_TABLE), remedy))
        columns = [_Column.of(batch.column(names.index(name)), name) for name in COLUMNS]
        graph, *places = columns
        found = [graph.numbers([self.ids.setdefault(t, len(self.ids)) for t in graph.texts])]
        for column, kinds in zip(places, _KINDS, strict=True):
            found.append(column.numbers(self._numbered(column.texts, kinds)))
        rows = np.stack(found, axis=1)
        bad = np.flatnonzero((rows < 0).any(axis=1)).tolist()
        for row in bad:
            self._report(row, columns, rows[row].tolist())
        self._read += len(rows)
        return np.delete(rows, bad, axis=0) if bad else rows

    def _numbered(self, texts: Sequence[str], kinds: tuple[type, ...]) -> list[int]:
        """Return the numbers of terms by their texts; -1 for what is none, or of another kind."""
        numbers = []
        for term in self._parsed([text.encode("utf-8", "replace") for text in texts]):
            if term is None or not isinstance(term, kinds):
                numbers.append(-1)
                continue
            number = self._numbers.setdefault(term, len(self._terms))
            if number == len(self._terms):
                self._terms.append(term)
            numbers.append(number)
        return numbers

    def _parsed(self, texts: Sequence[bytes]) -> Sequence[Term | None]:
        try:
            return self._texts.terms(texts, self._prefix, self._nesting)
        except SyntaxError:
            return [self._parsed_alone(text) for text in texts]

    def _parsed_alone(self, text: bytes) -> Term | None:
        try:
            return self._texts.terms([text], self._prefix, self._nesting)[0]
        except SyntaxError:
            return None

    def _report(self, row: int, columns: Sequence[_Column], numbers: Sequence[int]) -> None:
        place = next(place for place, number in enumerate(numbers) if number < 0)
        name, text, remedy = COLUMNS[place], columns[place].text(row), _REMEDIES[place]
        if text is None:
            what = f"no {name}"
        elif self._parsed_alone(text.encode("utf-8", "replace")) is None:
            what, remedy = f"the {name} {text[:_SHOWN]!r} is no term of N-Triples", _WRITING
        else:
            what = f"{text[:_SHOWN]} cannot be a {name}"
        where = Place(_TABLE, item=f"row {self._read + row + 1}")
        self._on_problem(Problem(what, where, remedy))


class _Column:
    """A column as numbers of distinct texts; only texts that some row has."""

    def __init__(self, places: _Numbers, texts: Sequence[str]) -> None:
        self._places = places
        self.texts = texts

    @classmethod
    def of(cls, column: ArrowArray, name: str) -> _Column:
        encoded = column.dictionary_encode()
        values = encoded.dictionary.to_pylist()
        places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        is_used = np.zeros(len(values) + 1, bool)
        is_used[places] = True
        number_of = np.full(len(values) + 1, -1)
        texts: list[str] = []
        for place in np.flatnonzero(is_used[:-1]).tolist():
            value = values[place]
            if value is None:
                continue
            if not isinstance(value, str):
                what = f"the column {name!r} has values that are no texts"
                raise InputError(Problem(what, Place(_TABLE), "Give terms as N-Triples has them."))
            number_of[place] = len(texts)
            texts.append(value)
        return cls(number_of[places], texts)

    def numbers(self, numbers: Sequence[int]) -> _Numbers:
        """Return by row the number that its text has among some; -1 where there is no text."""
        return np.array([*numbers, -1], np.int64)[self._places]

    def text(self, row: int) -> str | None:
        """Return a row's text, if it has one."""
        place = int(self._places[row])
        return None if place < 0 else self.texts[place]
