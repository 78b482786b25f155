"""A part of a graph as a worker has it: distinct terms, and triples as their numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch.spark.graph.keys import Rows
from semantic.ontology.ontology import Ontology
from semantic.ontology.relevance import Relevance
from semantic.terms import Term, Triple, compact, read_terms
from semantic.units.numbers import UnitError

PLACES = ("subject", "predicate", "object")
_KINDS: Sequence[tuple[type, ...]] = ((NamedNode, BlankNode), (NamedNode,), (object,))
_SHOWN = 60


@dataclass
class Batch:
    """Triples as numbers of terms.

    Parameters
    ----------
    terms
        Distinct ones.
    rows
        Shape (triples, 3): the numbers of each triple's terms.
    faults
        What is wrong with rows that are none, and with units.
    unusable
        Properties of triples whose meaning another triple decides.
    """

    terms: list[Term] = field(default_factory=list)
    rows: Rows = field(default_factory=lambda: np.zeros((0, 3), np.int64))
    faults: list[str] = field(default_factory=list)
    unusable: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._numbers = {term: number for number, term in enumerate(self.terms)}

    @classmethod
    def of(cls, batch: pa.RecordBatch) -> Batch:
        """Read Arrow's rows of N-Triples' texts; those that are no triples are faults."""
        read = cls()
        columns = [read._column(batch, place) for place in range(3)]
        rows = np.stack(columns, axis=1)
        bad = (rows < 0).any(axis=1)
        for row in np.flatnonzero(bad).tolist():
            place = int(np.argmax(rows[row] < 0))
            said = batch.column(PLACES[place])[row].as_py()
            shown = "nothing" if said is None else said[:_SHOWN]
            read.faults.append(f"{shown} cannot be a triple's {PLACES[place]}")
        read.rows = rows[~bad]
        return read

    def _column(self, batch: pa.RecordBatch, place: int) -> Rows:
        column = batch.column(PLACES[place]).dictionary_encode()
        said = [str(text) for text in column.dictionary.to_pylist()]
        numbers = [
            self._number(term) if term is not None and isinstance(term, _KINDS[place]) else -1
            for term in read_terms(said)
        ]
        places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
        return np.array([*numbers, -1], np.int64)[places]

    def _number(self, term: Term) -> int:
        number = self._numbers.setdefault(term, len(self.terms))
        if number == len(self.terms):
            self.terms.append(term)
        return number

    @property
    def triples(self) -> Iterator[Triple]:
        """The triples as terms."""
        return self._of(self.rows)

    def _of(self, rows: Rows) -> Iterator[Triple]:
        terms = self.terms
        return ((terms[s], terms[p], terms[o]) for s, p, o in rows.tolist())

    def extended(self, triples: Iterable[Triple]) -> Batch:
        """Take more triples in, and return the batch."""
        number = self._number
        more = [(number(s), number(p), number(o)) for s, p, o in triples]
        self.rows = np.concatenate([self.rows, np.array(more, np.int64).reshape(-1, 3)])
        return self

    def rooted(self, ontology: Ontology) -> Batch:
        """Return the batch with roots put in, in base units."""
        units = ontology.units
        terms = [ontology.root(term) for term in self.terms]
        rooted = Batch(faults=self.faults)
        numbers = np.array([rooted._number(term) for term in terms], np.int64)
        rooted.rows = numbers[self.rows] if len(terms) else self.rows
        concerned = {number for number, t in enumerate(rooted.terms) if units.concerns(t)}
        if not concerned:
            return rooted
        used = [rooted.terms[n] for n in set(rooted.rows[:, 1].tolist()) & concerned]
        rooted.unusable += [compact(term) for term in used if not isinstance(term, Literal)]

        def report(attribute: Term, error: UnitError) -> None:
            rooted.faults.append(f"{compact(attribute)}: {error.what}")

        normal = None if rooted.unusable else units.normal_triples(rooted.triples, report)
        return rooted if normal is None else Batch(faults=rooted.faults).extended(normal.triples)

    def leading(self, ontology: Ontology, rules: Relevance) -> Iterator[Triple]:
        """Yield the triples from which anything may follow that is asked for."""
        is_name = ontology.inference.is_name
        of_object = np.zeros(len(self.terms), bool)
        of_property = np.zeros(len(self.terms), bool)
        for number in np.unique(self.rows[:, 2]).tolist():
            term = self.terms[number]
            of_object[number] = (
                rules.stands_for_more(term) or rules.is_subclass(term) or is_name(term)
            )
        for number in np.unique(self.rows[:, 1]).tolist():
            of_property[number] = rules.leads(self.terms[number])
        leading = self.rows[of_object[self.rows[:, 2]] | of_property[self.rows[:, 1]]]
        return self._of(leading)
