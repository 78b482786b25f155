"""Publications from Arrow tables: a row a triple, its terms as N-Triples writes them.

Columns are ``publication`` (the publication's id), ``subject``, ``predicate`` and ``object``; they
may be dictionary-encoded. Rows of a publication need not stand together. Blank nodes of one
publication with one name are one node.

Arrow itself joins the texts of a row to a line, so that the rows of a publication are a document of
N-Triples, which is read like any other: no object of Python is made for a row. Needs ``pyarrow``,
which whoever has such a table has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyoxigraph import BlankNode, NamedNode, RdfFormat

from graphmatch import _native
from semantic.arrow import ArrowBatch, ArrowTable
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
"""What a subject, a predicate and an object may be."""
_IRI = r'^<[^<>"\x00-\x20]*>$'
_NODE = rf'{_IRI}|^_:[^<>"\x00-\x20]*$'
_MORE = r"[\r\n]|(^|[\x00-\x20.])#"
"""What an object has that may be more than one term: another line, a comment."""
_REMEDIES = ("A subject is an IRI or a blank node.", "A predicate is an IRI.", _WRITING)


class TripleTable:
    """The rows of a table with the columns `COLUMNS`, publication by publication.

    Raises `InputError` when a column is missing, or has something else than texts.
    """

    def __init__(self, table: ArrowTable | ArrowBatch) -> None:
        import pyarrow as pa

        given: Any = table
        whole = pa.Table.from_batches([given]) if isinstance(given, pa.RecordBatch) else given
        self._columns = [_texts(whole, name) for name in COLUMNS]

    def publications(
        self, on_problem: OnProblem = warn_problem
    ) -> Iterator[tuple[str, bytes, NDArray[np.int64]]]:
        """Yield ids, lines of N-Triples, and which row each line is (from 0).

        Publications come in the order in which they first appear. A row that cannot be a line is
        reported, and passed over.
        """
        import numpy as np
        import pyarrow as pa

        pc: Any = import_module("pyarrow.compute")
        is_line = self._is_line()
        for row in np.flatnonzero(~is_line).tolist():
            if (problem := self.problem(row)) is not None:
                on_problem(problem)
            else:  # a term, though it looked like something else
                is_line[row] = True
        numbers = np.flatnonzero(is_line)
        ids = self._columns[0].dictionary_encode()
        places = ids.indices.to_numpy(zero_copy_only=False)[numbers].astype(np.int64)
        order = np.argsort(places, kind="stable")
        places, numbers = places[order], numbers[order]
        texts = [column.take(pa.array(numbers)) for column in self._columns[1:]]
        end, between = (pa.scalar(text, pa.large_string()) for text in (".\n", " "))
        joined = pc.binary_join_element_wise(*texts, end, between)
        _, offsets, data = joined.buffers()
        ends = np.frombuffer(offsets, np.int64)
        begins = np.flatnonzero(np.diff(places, prepend=-1)).tolist()
        for first, last in pairwise([*begins, len(places)]):
            lines = data[int(ends[first]) : int(ends[last])].to_pybytes()
            yield ids.dictionary[int(places[first])].as_py(), lines, numbers[first:last]

    def _is_line(self) -> NDArray[np.bool_]:
        """Say which rows are a line that is read as their three texts, or not at all."""
        import numpy as np

        pc: Any = import_module("pyarrow.compute")
        id, subject, predicate, object_ = self._columns
        found = id.is_valid()
        for fits in (
            pc.match_substring_regex(subject, _NODE),
            pc.match_substring_regex(predicate, _IRI),
            pc.invert(pc.match_substring_regex(object_, _MORE)),
            pc.greater(pc.binary_length(object_), 0),
        ):
            found = pc.and_(found, fits.fill_null(False))
        return np.array(found, np.bool_)

    def problem(self, row: int) -> Problem | None:
        """Return what is wrong with a row that is no triple of a publication, if anything is."""
        where = Place(_TABLE, item=f"row {row + 1}")
        id, *texts = (column[row].as_py() for column in self._columns)
        if id is None:
            return Problem(f"no {COLUMNS[0]}", where, "Give the publication an id.")
        return problem_of_terms(texts, where)

    def fault(self, numbers: NDArray[np.int64], fault: Problem) -> Problem:
        """Return what is wrong with a publication, or with a line of it, said of its row."""
        line = fault.where.line
        if line is None:
            return replace(fault, where=Place(_TABLE, item=fault.where.source))
        row = int(numbers[line - 1])
        return self.problem(row) or replace(fault, where=Place(_TABLE, item=f"row {row + 1}"))


def problem_of_terms(texts: Sequence[str | None], where: Place) -> Problem | None:
    """Return what is wrong with subject, predicate and object, if anything is.

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
            what = f"the {name} {text[:_SHOWN]!r} is no term of N-Triples"
            return Problem(what, where, _WRITING)
        if not isinstance(term, kinds):
            return Problem(f"{text[:_SHOWN]} cannot be a {name}", where, remedy)
    return None


def _term(text: str) -> Term | None:
    """Return the term that a text says, as N-Triples writes it; ``None`` where it is none."""
    if not text.startswith(("<", "_:", '"')) or "\n" in text or "\r" in text:
        return None
    try:
        term: Term = _native.term(text)
    except ValueError:
        return None
    has_comment = text.startswith("<<") and "#" in text and written(term) != text
    return None if has_comment else term


def _texts(table: pa.Table, name: str) -> Any:
    """Return the texts of a column; an `InputError` where it is missing, or has something else."""
    import pyarrow as pa

    if name not in table.schema.names:
        remedy = f"The columns are {', '.join(COLUMNS)}."
        raise InputError(Problem(f"no column {name!r}", Place(_TABLE), remedy))
    column: Any = table.column(name)
    kind = column.type
    while pa.types.is_dictionary(kind):
        kind = kind.value_type
    if not (str(kind) in {"string", "large_string", "string_view"} or pa.types.is_null(kind)):
        what = f"the column {name!r} has values that are no texts"
        raise InputError(Problem(what, Place(_TABLE), "Give terms as N-Triples has them."))
    whole = column.cast(kind).cast(pa.large_string()).combine_chunks()
    return pa.concat_arrays(whole.chunks) if isinstance(whole, pa.ChunkedArray) else whole


def publications_of_table(
    table: ArrowTable | ArrowBatch,
    *,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
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
    names
        What blank nodes' names begin with; by default what no other table's do.

    Raises
    ------
    InputError
        When a column is missing, or has something else than texts.
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
