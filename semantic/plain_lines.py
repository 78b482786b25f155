"""Lines of N-Triples and N-Quads that are written plainly are looked up, not parsed.

N-Triples and N-Quads mostly come as programs write them: a statement a line, one space between two
terms. Such a line is cut at its spaces, and its texts are looked up (`semantic.text_table`): that
takes a quarter of what parsing it takes, and says which terms are the same. Any other line is left
to the parser (`semantic.lines`), with the lines around it; what is read is the same.

Cost: 2 to 3 ns a byte, and 100 ns a triple that is made; the parser's where texts are new.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pyoxigraph import BlankNode, DefaultGraph, NamedNode

from semantic.limits import DEFAULT_LIMITS
from semantic.line_kernels import UNKNOWN
from semantic.numbering import Known, Numbering
from semantic.runs import GraphName, Run
from semantic.term_texts import Lexicon, TermTexts
from semantic.terms import Term
from semantic.text_table import CutRun, Lines

_NEW, _PATIENCE = 1.3, 3
"""Where there are more new texts a line than so, parsing them is no faster than parsing the lines.
After so many pieces in turn of which this is true, or that are written otherwise, no more are
tried."""


class PlainLines:
    r"""Reads pieces of whole lines that are written plainly.

    Parameters
    ----------
    has_graphs
        Whether a line says its graph: whether it is one of N-Quads.
    texts
        Remembers texts.
    prefix
        Gives what blank nodes' names begin with, so that no other document has them.
    nesting
        How deep triple terms may nest.

    Examples
    --------
    >>> lines = PlainLines(False, TermTexts(), lambda: "b1")
    >>> [run.triples[0][2].value for run in lines.runs(b"<urn:a> <urn:b> _:c .\n")]
    ['b1c']
    >>> lines.runs(b"<urn:a>  <urn:b>  <urn:c>.\n") is None
    True
    """

    def __init__(
        self,
        has_graphs: bool,
        texts: TermTexts,
        prefix: Callable[[], str],
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
        learned = self._texts.learned
        block = block if block.endswith(b"\n") else block + b"\n"
        lines = self._texts.lexicon.table.cut(block, has_graphs=self._has_graphs)
        try:
            found = None if lines is None else self._found(block, lines)
        except SyntaxError:
            found = None
        if lines is None or found is None:
            self._refused += 1
            return None
        new = self._texts.learned - learned
        self._refused = self._refused + 1 if new > _NEW * len(lines) else 0
        return found

    def _found(self, block: bytes, lines: Lines) -> list[Run]:
        """Return the runs of lines that were cut; learn the texts that are new."""
        texts, others, is_doubtful = self._texts, dict[int, Term](), False
        if lines.new:
            if not texts.has_room(lines.new):
                texts.forget()
                again = texts.lexicon.table.cut(block, has_graphs=self._has_graphs)
                assert again is not None
                lines = again
            aliased = len(texts.lexicon.aliased)
            others = self._learned(lines)
            is_doubtful = len(texts.lexicon.aliased) > aliased or any(
                type(term) is not BlankNode for term in others.values()
            )
        return [_run(texts.lexicon, lines, run, others, is_doubtful) for run in lines.runs()]

    def _learned(self, lines: Lines) -> dict[int, Term]:
        """Learn the texts that are new; return the terms of those that are not kept, by place."""
        places = dict(lines.unknown())
        new = dict.fromkeys(places.values())
        prefix = self._prefix() if any(b"_:" in text for text in new) else ""
        terms = dict(zip(new, self._texts.terms(new, prefix, self._nesting), strict=True))
        numbers, others = self._texts.lexicon.numbers, {}
        for place, text in places.items():
            number = lines.numbers[place] = numbers.get(text, UNKNOWN)
            if number == UNKNOWN:
                others[place] = terms[text]
        return others


def _run(
    lexicon: Lexicon, lines: Lines, run: CutRun, others: Mapping[int, Term], is_doubtful: bool
) -> Run:
    """Return a run's triples.

    Parameters
    ----------
    others
        The terms that the lexicon does not have, by their places among the texts of all lines.
    is_doubtful
        Whether two texts may say one term, although the lexicon did not say so.
    """
    begin, end = run.texts
    numbers = lines.numbers[begin:end].copy()
    own = {n - begin: term for n, term in others.items() if begin <= n < end} if others else {}
    known = Known(lexicon, numbers, own)
    graph: GraphName = DefaultGraph()
    if run.graph is not None:
        number = int(lines.numbers[run.graph])
        name = others[run.graph] if number == UNKNOWN else lexicon.terms[number]
        assert isinstance(name, NamedNode | BlankNode)
        graph = name
    if not is_doubtful and run.is_distinct:
        return Run(graph, Numbering(run.places, known))
    terms = known.terms()
    numbering = Numbering(run.places, known, terms)
    is_distinct = run.is_distinct and len(set(terms)) == len(terms)
    return Run(graph, numbering if is_distinct else numbering.triples)
