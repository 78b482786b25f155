"""Runs: triples of one graph that stand together in a document.

N-Triples and N-Quads mostly come as programs write them: a statement a line, one space between two
terms. Such a line is cut at its spaces, and its texts are looked up (`semantic.term_texts`): that
takes half of what parsing it takes, and says which terms are the same. Any other line is left to
the parser (`semantic.lines`), with the lines around it; what is read is the same.

Cost: a look-up a term, and a triple; the parser's where texts are new.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter
from typing import TypeAlias

from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

from semantic.limits import DEFAULT_LIMITS
from semantic.numbering import Numbering
from semantic.term_texts import TermTexts
from semantic.terms import Term, Triple

GraphName: TypeAlias = NamedNode | BlankNode | DefaultGraph

_PIECE = 10_000
"""A run of quads has at most so many triples; the next one has the rest."""
_NEW, _PATIENCE = 1.3, 3
"""Where there are more new texts a line than so, parsing them is no faster than parsing the lines.
After so many pieces in turn of which this is true, or that are written otherwise, no more are
tried."""


@dataclass(frozen=True, slots=True)
class Run:
    """Triples of one graph.

    Parameters
    ----------
    graph
        Its name.
    triples
        In the order of the document.
    numbering
        That of the triples; only where they are known to be distinct.
    """

    graph: GraphName
    triples: tuple[Triple, ...]
    numbering: Numbering | None = None


def runs_of(quads: Iterable[Quad]) -> Iterator[Run]:
    """Yield the runs of quads.

    Examples
    --------
    >>> a, b = NamedNode("urn:a"), NamedNode("urn:b")
    >>> [len(run.triples) for run in runs_of([Quad(a, a, a), Quad(a, a, b), Quad(a, a, a, b)])]
    [2, 1]
    """
    for graph, run in groupby(quads, key=lambda quad: quad.graph_name):
        triples = ((quad.subject, quad.predicate, quad.object) for quad in run)
        while piece := tuple(islice(triples, _PIECE)):
            yield Run(graph, piece)


class PlainLines:
    r"""Reads pieces of whole lines that are written plainly.

    Parameters
    ----------
    has_graphs
        Whether a line says its graph: whether it is one of N-Quads.
    texts
        Remembers texts.
    prefix
        What blank nodes' names begin with, so that no other document has them.
    nesting
        How deep triple terms may nest.

    Examples
    --------
    >>> lines = PlainLines(False, TermTexts(), "b1")
    >>> [run.triples[0][2].value for run in lines.runs(b"<urn:a> <urn:b> _:c .\n")]
    ['b1c']
    >>> lines.runs(b"<urn:a>  <urn:b>  <urn:c>.\n") is None
    True
    """

    def __init__(
        self,
        has_graphs: bool,
        texts: TermTexts,
        prefix: str,
        nesting: int = DEFAULT_LIMITS.nesting,
    ) -> None:
        self._has_graphs = has_graphs
        self._texts = texts
        self._prefix = prefix
        self._nesting = nesting
        self._refused = 0

    def runs(self, block: bytes) -> list[Run] | None:
        """Return the runs of a piece; ``None`` where not all of it is written plainly."""
        if self._refused == _PATIENCE:
            return None
        lines = (block.replace(b"\r\n", b"\n") if b"\r" in block else block).split(b" .\n")
        if last := lines.pop():
            lines.append(last.removesuffix(b" ."))
        known = self._texts.learned
        try:
            found = list(self._graphs(lines) if self._has_graphs else [self._run(lines)])
        except SyntaxError:
            self._refused += 1
            return None
        new = self._texts.learned - known
        self._refused = self._refused + 1 if new > _NEW * len(lines) else 0
        return found

    def _graphs(self, lines: Iterable[bytes]) -> Iterator[Run]:
        pairs = [line.rsplit(b" ", 1) for line in lines]
        for name, run in groupby(pairs, key=itemgetter(-1)):
            yield self._run([pair[0] for pair in run], self._graph(name))

    def _graph(self, text: bytes) -> GraphName:
        (name,) = self._terms([text])
        if isinstance(name, NamedNode | BlankNode):
            return name
        raise SyntaxError("not the name of a graph")

    def _run(self, lines: Sequence[bytes], graph: GraphName | None = None) -> Run:
        texts = [text for line in lines for text in line.split(b" ", 2)]
        if len(texts) != 3 * len(lines):
            raise SyntaxError("not three terms a line")
        numbering = Numbering.by_keys(texts, self._terms)
        _check(numbering)
        distinct = len(set(lines)) == len(lines) and self._texts.are_distinct(texts)
        return Run(graph or DefaultGraph(), numbering.triples, numbering if distinct else None)

    def _terms(self, texts: Collection[bytes]) -> list[Term]:
        return self._texts.terms(texts, self._prefix, self._nesting)


def _check(numbering: Numbering) -> None:
    """Raise a `SyntaxError` where a term is in a place where it cannot be."""
    terms, places = numbering.terms, numbering.places
    others = {number for number, term in enumerate(terms) if type(term) is not NamedNode}
    if not others:
        return
    if not others.isdisjoint(places[1::3]):
        raise SyntaxError("not a property")
    if any(not isinstance(terms[n], BlankNode) for n in others.intersection(places[::3])):
        raise SyntaxError("not a subject")
