"""Stage 1: each triple of the graph, and what follows from it, looked up among the atoms.

Every rule of docs/reference/semantics.md has one premise among data and at most one in a schema. So
what follows from a triple follows from it alone, as long as the schema is known whole: that of the
ontology, and what the graph itself states of the kind (`graphmatch.spark.graph.schema`). Workers
therefore close their batches by themselves, and closures put together are the closure of the graph.

Columns arrive dictionary-encoded or are made so, and each distinct text is parsed once a batch.
What leaves a worker is rows of binding tables: an atom, and the terms of its variables. A row that
is no triple leaves as one of atom -1, with what is wrong in the place of its first term.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from graphmatch.spark.graph.atoms import Atom
from graphmatch.spark.graph.batch import PLACES, Batch
from graphmatch.spark.graph.keys import AtomKeys, Rows
from semantic.mentions import Mentions
from semantic.ontology.entailment import SCHEMA
from semantic.ontology.ontology import Ontology
from semantic.ontology.relevance import Relevance
from semantic.terms import Triple
from semantic.vocabulary import NARROWER

COLUMNS = ("v0", "v1", "v2")
BINDINGS = "atom int, v0 string, v1 string, v2 string"
"""The columns of binding tables."""
LINKS = "below string, above string"
TRIPLES = "subject string, predicate string, object string"
FAULTY, UNUSABLE = -1, -2
"""The atoms of rows that say what is wrong with a row of the graph, or cannot be decided here."""


@dataclass(frozen=True)
class Probe:
    """What workers have to know; it is sent to each of them once.

    Parameters
    ----------
    ontology
        What is known.
    atoms
        What is asked, by number.
    mentions
        What is asked of entailment.
    entailment
        Whether roots, units and rules are applied.
    stated
        What the graph itself states as a schema, with all that follows of the kind.
    """

    ontology: Ontology
    atoms: tuple[Atom, ...]
    mentions: Mentions
    entailment: bool
    stated: tuple[Triple, ...] = ()

    @cached_property
    def _keys(self) -> AtomKeys:
        return AtomKeys(self.atoms)

    def bindings(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of binding tables that a graph's triples and their consequences give."""
        relevance = Relevance(self.ontology.schema, self.mentions)
        for read in self._read(batches):
            closed = self._closed(read, relevance) if self.entailment else read
            yield from self.met(closed)
            for atom, told in ((FAULTY, read.faults), (UNUSABLE, read.unusable)):
                if told:
                    nothing = pa.nulls(len(told), pa.string())
                    numbers = pa.array([atom] * len(told), pa.int32())
                    yield _record("atom", [numbers, pa.array(told), nothing, nothing])

    def links(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the is-a links that a graph states: what is below, and what is above."""
        for read in self._read(batches, rooted=True):
            found = self.ontology.stated_links(read.triples)
            pairs = [(o, s) if p == NARROWER else (s, o) for s, p, o in found]
            yield pa.RecordBatch.from_arrays(
                [pa.array([str(pair[n]) for pair in pairs], pa.string()) for n in range(2)],
                names=["below", "above"],
            )

    def schema(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the triples of a schema that follow from a graph's, but those known already."""
        known = frozenset(self.stated)
        for read in self._read(batches):
            given = tuple(dict.fromkeys((*self.stated, *read.triples)))
            closed = self.ontology.inference.follow(given)
            new = [t for t in closed if t[1] in SCHEMA and t not in known]
            yield pa.RecordBatch.from_arrays(
                [pa.array([str(t[n]) for t in new], pa.string()) for n in range(3)],
                names=list(PLACES),
            )

    def met(self, batch: Batch) -> Iterator[pa.RecordBatch]:
        """Yield the rows that triples give as they are."""
        atoms: list[Rows] = []
        columns: list[Rows] = []
        for number, rows in self._keys.met(batch.rows, batch.terms):
            of_atom = np.full((len(rows), 3), -1)
            for slot, place in enumerate(self.atoms[number].places):
                of_atom[:, slot] = batch.rows[rows, place]
            atoms.append(np.full(len(rows), number))
            columns.append(of_atom)
        if not atoms:
            return
        used, places = np.unique(np.concatenate(columns), return_inverse=True)
        said = [None if n < 0 else str(batch.terms[n]) for n in used.tolist()]
        written = pa.array(said, pa.string()).take(places.ravel())
        slots = [written.take(np.arange(n, len(written), 3)) for n in range(3)]
        yield _record("atom", [pa.array(np.concatenate(atoms), pa.int32()), *slots])

    def _read(self, batches: Iterable[pa.RecordBatch], *, rooted: bool = False) -> Iterator[Batch]:
        for batch in batches:
            read = Batch.of(batch)
            yield read.rooted(self.ontology) if self.entailment or rooted else read

    def _closed(self, read: Batch, relevance: Relevance) -> Batch:
        """Return a batch with all that follows from its triples and that is asked for."""
        follow = self.ontology.inference.follow
        if self.stated:
            given = tuple(dict.fromkeys((*self.stated, *read.triples)))
            return Batch().extended(follow(given, relevance))
        agenda = tuple(dict.fromkeys(read.leading(self.ontology, relevance)))
        return read.extended(follow(agenda, relevance, agenda)) if agenda else read


def _record(first: str, columns: Sequence[pa.Array[Any]]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(columns), names=[first, *COLUMNS])
