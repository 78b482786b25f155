"""Read publications from Arrow tables: one triple per row, with terms in N-Triples syntax.

The columns are ``publication`` (the publication's id), ``subject``, ``predicate`` and ``object``,
and may be dictionary-encoded. Rows of a publication need not be adjacent. Within a publication,
blank nodes with the same name are one node.

Arrow itself joins the texts of a row to a line, so that the rows of a publication form an N-Triples
document, which is parsed like any other. No Python object is made per row. Needs ``pyarrow``, which
users of such tables have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyoxigraph import BlankNode, NamedNode, RdfFormat

from graphmatch import _native
from semantic.arrow import ArrowStream, to_table
from semantic.errors import InputError, OnProblem, Place, Problem, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.reading import read_rdf
from semantic.terms import Term, written

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

COLUMNS = ("publication", "subject", "predicate", "object")
_TABLE = "<table>"
_SHOWN = 40
_WRITING = 'Write <IRI>, _:name, "text", "text"@en or "5"^^<IRI of a datatype>.'
_KINDS: tuple[tuple[type, ...], ...] = ((NamedNode, BlankNode), (NamedNode,), (object,))
"""Term types allowed as subject, predicate and object."""
_BETWEEN = "\r"
_REMEDIES = ("A subject is an IRI or a blank node.", "A predicate is an IRI.", _WRITING)


class TripleTable:
    """The rows of a table with the columns `COLUMNS`, grouped by publication.

    Raise `InputError` if a column is missing, or has values other than texts.
    """

    def __init__(self, source: ArrowStream) -> None:
        whole = to_table(source)
        self._columns = [_texts(whole, name) for name in COLUMNS]

    def publications(
        self, on_problem: OnProblem = warn_problem
    ) -> Iterator[tuple[str, bytes, NDArray[np.int64]]]:
        """Yield each publication's id, its lines of N-Triples, and each line's row (from 0).

        Publications are ordered by their first rows. Invalid rows are reported and skipped.
        """
        import numpy as np
        import pyarrow as pa

        has_id = np.array(self._columns[0].is_valid(), np.bool_)
        for row in np.flatnonzero(~has_id).tolist():
            if (fault := self.problem(row)) is not None:
                on_problem(fault)
        numbers = np.flatnonzero(has_id)
        ids = self._columns[0].dictionary_encode()
        places = ids.indices.to_numpy(zero_copy_only=False)[numbers].astype(np.int64)
        order = np.argsort(places, kind="stable")
        places, numbers = places[order], numbers[order]
        ends, data = _rows([column.take(pa.array(numbers)) for column in self._columns[1:]])
        begins = np.flatnonzero(np.diff(places, prepend=-1)).tolist()
        for first, last in pairwise([*begins, len(places)]):
            rows = data[int(ends[first]) : int(ends[last])].to_pybytes()
            own = numbers[first:last]

            def problem(number: int, _: str, own: NDArray[np.int64] = own) -> Problem | None:
                return self.problem(int(own[number]))

            lines, bad = lines_of_rows(rows, problem)
            if bad:
                for fault in bad.values():
                    on_problem(fault)
                own = np.delete(own, list(bad))
            if lines:
                yield ids.dictionary[int(places[first])].as_py(), lines, own

    def problem(self, row: int) -> Problem | None:
        """Return the problem of a row, or ``None`` if it is a triple of a publication."""
        where = Place(_TABLE, item=f"row {row + 1}")
        id, *texts = (column[row].as_py() for column in self._columns)
        if id is None:
            return Problem(f"no {COLUMNS[0]}", where, "Give the publication an id.")
        return problem_of_terms(texts, where)

    def fault(self, numbers: NDArray[np.int64], fault: Problem) -> Problem:
        """Return a fault of an N-Triples line with the row of the table as its place.

        `numbers` are the rows of the lines. If the row is not a valid triple, return its own
        problem. A fault without a line concerns the whole publication, so its place is the
        publication's id.
        """
        line = fault.where.line
        if line is None:
            return replace(fault, where=Place(_TABLE, item=fault.where.source))
        row = int(numbers[line - 1])
        return self.problem(row) or replace(fault, where=Place(_TABLE, item=f"row {row + 1}"))


def lines_of_rows(
    rows: bytes, problem: Callable[[int, str], Problem | None]
) -> tuple[bytes, dict[int, Problem]]:
    r"""Convert rows to lines of N-Triples; return them and the problems by row number (from 0).

    Parameters
    ----------
    rows
        Each row has three terms, separated by carriage returns, and ends with a line feed. A text
        therefore cannot be read as several terms.
    problem
        Returns the problem of a row that may be invalid, or ``None``, given its number and text.

    Examples
    --------
    >>> lines_of_rows(b'<urn:a>\r<urn:b>\r"c"\n', lambda number, row: None)
    (b'<urn:a> <urn:b> "c" .\n', {})
    """
    lines, others = _native.lines_of_rows(rows)
    bad: dict[int, Problem] = {}
    parts, begin = [], 0
    for number, place, text in others:
        row = text.decode()
        if (fault := problem(number, row)) is not None:
            bad[number] = fault
        else:  # It is a triple, although it looked like something else.
            parts += [lines[begin:place], f"{row.replace(_BETWEEN, ' ')} .\n".encode()]
            begin = place
    return b"".join([*parts, lines[begin:]]) if parts else lines, bad


def problem_of_row(text: str, where: Place) -> Problem | None:
    """Return the problem of a row of `lines_of_rows`, or ``None`` if it is a triple."""
    terms = text.split(_BETWEEN)
    if len(terms) == len(_KINDS):
        return problem_of_terms([term or None for term in terms], where)
    what = f"a term has a line break: {text[:_SHOWN]!r}"
    return Problem(what, where, r"Write it as \n or \r.")


def problem_of_terms(texts: Sequence[str | None], where: Place) -> Problem | None:
    """Return the problem of a subject, predicate and object, or ``None`` if they are a triple.

    `texts` are terms in N-Triples syntax, ``None`` if missing.

    Examples
    --------
    >>> print(problem_of_terms(["<urn:a>", "<urn:b>", None], Place("<table>", item="row 1")))
    <table> (row 1): no object. Write <IRI>, _:name, "text", "text"@en or "5"^^<IRI of a datatype>.
    """
    for name, text, kinds, remedy in zip(COLUMNS[1:], texts, _KINDS, _REMEDIES, strict=True):
        if text is None:
            return Problem(f"no {name}", where, remedy)
        term = _term(text)
        if term is None:
            what = f"the {name} {text[:_SHOWN]!r} is not a term in N-Triples syntax"
            return Problem(what, where, _WRITING)
        if not isinstance(term, kinds):
            return Problem(f"{text[:_SHOWN]} cannot be a {name}", where, remedy)
    return None


def _term(text: str) -> Term | None:
    """Parse a term in N-Triples syntax; return ``None`` if it is invalid."""
    if not text.startswith(("<", "_:", '"')) or "\n" in text or "\r" in text:
        return None
    try:
        term: Term = _native.term(text)
    except ValueError:
        return None
    has_comment = text.startswith("<<") and "#" in text and written(term) != text
    return None if has_comment else term


def _texts(table: pa.Table, name: str) -> Any:
    """Return the texts of a column; raise `InputError` if it is missing or has other values."""
    import pyarrow as pa

    if name not in table.schema.names:
        remedy = f"The columns are {', '.join(COLUMNS)}."
        raise InputError(Problem(f"there is no column {name!r}", Place(_TABLE), remedy))
    column: Any = table.column(name)
    kind = column.type
    while pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (str(kind) in {"string", "large_string", "string_view"} or pa.types.is_null(kind)):
        what = f"the column {name!r} has values that are not strings"
        raise InputError(Problem(what, Place(_TABLE), "Give terms in N-Triples syntax."))
    whole = column.cast(kind).cast(pa.large_string()).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def _rows(columns: Sequence[Any]) -> tuple[NDArray[np.int64], Any]:
    """Join columns to rows of `lines_of_rows`; return the offsets of the rows, and their buffer."""
    import numpy as np
    import pyarrow as pa

    pc: Any = import_module("pyarrow.compute")
    between, end = (pa.scalar(text, pa.large_string()) for text in (_BETWEEN, "\n"))
    while True:
        several = [pc.fill_null(column, "") for column in columns]
        joined = pc.binary_join_element_wise(*several, between)
        joined = pc.binary_join_element_wise(joined, end, pa.scalar("", pa.large_string()))
        _, offsets, data = joined.buffers()
        ends = np.frombuffer(offsets, np.int64)[: len(joined) + 1]
        if not len(joined) or data[: int(ends[-1])].to_pybytes().count(b"\n") == len(joined):
            return ends, data
        columns = [pc.replace_substring(column, "\n", _BETWEEN) for column in several]


def publications_from_arrow(
    table: ArrowStream,
    *,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
    names: str | None = None,
) -> Iterator[Publication]:
    """Yield the publications of an Arrow table, ordered by their first rows.

    Parameters
    ----------
    table
        A table of pyarrow, pandas or polars with the text columns `COLUMNS`; see the module.
    on_problem
        Called with each invalid row, which is skipped. Rows are counted from 1.
    limits
        ``nesting`` and ``publication_triples`` apply.
    names
        Prefix of blank node names; the default is unique to this table.

    Raises
    ------
    InputError
        If a column is missing, or has values other than texts.
    """
    prefix = f"b{uuid4().hex}" if names is None else names
    rows = TripleTable(table)
    for id, lines, numbers in rows.publications(on_problem):

        def report(fault: Problem, numbers: NDArray[np.int64] = numbers) -> None:
            on_problem(rows.fault(numbers, fault))

        read = read_rdf(
            [lines], RdfFormat.N_TRIPLES, id, on_problem=report, limits=limits, names=prefix
        )
        for publication in read:
            yield Publication.of(publication.id, publication.given, Place(_TABLE, item=id))
