"""Publications from Arrow tables: a row a triple, its terms as N-Triples writes them.

Columns are ``publication`` (the publication's id), ``subject``, ``predicate`` and ``object``; they
may be dictionary-encoded. Rows of a publication need not stand together. Blank nodes of one
publication with one name are one node.

Cost: each distinct text of a column of a batch is parsed once; a row then costs a few look-ups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from uuid import uuid4

from pyoxigraph import BlankNode, NamedNode

from semantic.attributes.arrow import ArrowBatch, ArrowTable, batches
from semantic.errors import InputError, OnProblem, Place, Problem, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.publication import Publication
from semantic.terms import Term, Triple, read_terms

COLUMNS = ("publication", "subject", "predicate", "object")
_TABLE = "<table>"
_SHOWN = 40
_WRITING = 'Write <IRI>, _:name, "text", "text"@en or "5"^^<IRI of a datatype>.'
_KINDS: Sequence[tuple[type, ...]] = ((NamedNode, BlankNode), (NamedNode,), (object,))
"""What a subject, a predicate and an object may be."""
_REMEDIES = ("A subject is an IRI or a blank node.", "A predicate is an IRI.", _WRITING)


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
        When a column is missing.
    """
    prefix = f"b{uuid4().hex}" if names is None else names
    found: dict[str, list[Triple]] = {}
    read = 0
    for batch in batches(table):
        ids, *places = (_texts(batch, name) for name in COLUMNS)
        terms = [_terms(texts, prefix, limits) for texts in places]
        for row, (id, *texts) in enumerate(zip(ids, *places, strict=True)):
            triple = [column.get(text) for column, text in zip(terms, texts, strict=True)]
            s, p, o = (t if isinstance(t, k) else None for t, k in zip(triple, _KINDS, strict=True))
            own = [] if id is None else found.setdefault(id, [])
            if id is not None and s is not None and p is not None and o is not None:
                own.append((s, p, o))
            else:
                on_problem(_fault(read + row + 1, [id, *texts], triple))
        read += len(ids)
    for id, triples in found.items():
        if len(triples) > limits.publication_triples:
            on_problem(_too_large(id, limits))
        elif triples:
            yield Publication.of(id, triples, Place(_TABLE, item=id))


def _texts(batch: ArrowBatch, name: str) -> list[str | None]:
    """Return the texts of a column.

    Raises
    ------
    InputError
        When it is missing, or has something else.
    """
    names = batch.schema.names
    if name not in names:
        remedy = f"The columns are {', '.join(COLUMNS)}."
        raise InputError(Problem(f"no column {name!r}", Place(_TABLE), remedy))
    column = batch.column(names.index(name)).dictionary_encode()
    values = column.dictionary.to_pylist()
    texts = [None if place is None else values[place] for place in column.indices.to_pylist()]
    if not all(text is None or isinstance(text, str) for text in texts):
        what = f"the column {name!r} has values that are no texts"
        raise InputError(Problem(what, Place(_TABLE), "Give terms as N-Triples has them."))
    return texts


def _terms(texts: Iterable[str | None], prefix: str, limits: Limits) -> dict[str | None, Term]:
    """Return the terms of texts; what is none is left out."""
    distinct = [text for text in dict.fromkeys(texts) if text is not None]
    terms = zip(distinct, read_terms(distinct, prefix, limits.nesting), strict=True)
    return {text: term for text, term in terms if term is not None}


def _fault(row: int, texts: Sequence[str | None], triple: Sequence[Term | None]) -> Problem:
    """Return what is wrong with a row that is no triple of a publication."""
    where = Place(_TABLE, item=f"row {row}")
    if texts[0] is None:
        return Problem(f"no {COLUMNS[0]}", where, "Give the publication an id.")
    for name, text, term, kinds, remedy in zip(
        COLUMNS[1:], texts[1:], triple, _KINDS, _REMEDIES, strict=True
    ):
        if text is None:
            return Problem(f"no {name}", where, remedy)
        if term is None:
            what = f"the {name} {text[:_SHOWN]!r} is no term of N-Triples"
            return Problem(what, where, _WRITING)
        if not isinstance(term, kinds):
            return Problem(f"{text[:_SHOWN]} cannot be a {name}", where, remedy)
    raise AssertionError(texts)


def _too_large(id: str, limits: Limits) -> Problem:
    what = f"a publication of more than {limits.publication_triples:,} rows"
    remedy = "Raise the limit `publication_triples`, or cut it into smaller publications."
    return Problem(what, Place(_TABLE, item=id), remedy)
