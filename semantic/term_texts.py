"""Terms by the texts that say them in N-Triples: each text is parsed once.

What arrives says the same terms over and over: properties and classes in every publication, a
subject in each of its triples. A text that was read before costs a look-up of its bytes, a fifth of
what parsing takes; the term is the same object each time. Parsing itself is pyoxigraph's.

Cost: of a new text that of parsing a triple. At most so many texts are remembered, none of them
long.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TypeVar

from pyoxigraph import BlankNode, DefaultGraph, RdfFormat, Triple, parse

from semantic.limits import DEFAULT_LIMITS
from semantic.nesting import triple_term_depth
from semantic.terms import Term

_Term = TypeVar("_Term")

_MOST, _LONG = 65_536, 500
"""So many texts are remembered; longer ones, in bytes, hardly come again, and take room."""
_BEFORE, _AFTER = b"<urn:s> <urn:p> ", b" .\n"


class TermTexts:
    """Remembers texts of terms, for one reader or several, one after the other.

    Blank nodes are not remembered: what they are called means something in one document only.

    Parameters
    ----------
    most
        So many texts are remembered; when there are more, all are forgotten.

    Examples
    --------
    >>> texts = TermTexts()
    >>> texts.terms([b"<urn:a>", b'"b"@en'])
    [<NamedNode value=urn:a>, <Literal value=b language=en>]
    >>> texts.terms([b"<urn:a>"])[0] is texts.terms([b"<urn:a>"])[0]
    True
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._known: dict[bytes, Term] = {}
        self._terms: set[Term] = set()
        self._odd: set[bytes] = set()
        self.learned = 0
        """How many texts were parsed."""

    def __len__(self) -> int:
        """Return how many texts are remembered."""
        return len(self._known)

    def terms(
        self, texts: Collection[bytes], prefix: str = "", nesting: int = DEFAULT_LIMITS.nesting
    ) -> list[Term]:
        """Return the terms of distinct texts.

        Parameters
        ----------
        prefix
            Comes before the names of blank nodes.
        nesting
            How deep triple terms may nest.

        Raises
        ------
        SyntaxError
            When any of them is no term.
        """
        known = self._known
        try:
            return list(map(known.__getitem__, texts))
        except KeyError:
            new = [text for text in texts if text not in known]
        if len(known) + len(new) > self._most:
            for kept in (known, self._terms, self._odd):
                kept.clear()
            new = list(texts)
        found = parsed(new, prefix, nesting)
        self._remember(new, found)
        self.learned += len(new)
        terms = list(map(known.__getitem__, texts))
        self._forget([text for text in new if len(text) > _LONG or b"_:" in text])
        return terms

    def _remember(self, texts: Sequence[bytes], terms: Sequence[Term]) -> None:
        before = len(self._terms)
        self._terms.update(terms)
        if len(self._terms) < before + len(texts):
            self._odd.update(t for t, term in zip(texts, terms, strict=True) if not _says(t, term))
        self._known.update(zip(texts, terms, strict=True))

    def _forget(self, texts: Iterable[bytes]) -> None:
        for text in texts:
            self._terms.discard(self._known.pop(text))

    def are_distinct(self, texts: Iterable[bytes]) -> bool:
        """Whether different texts among these, which were read, are different terms for sure."""
        return not self._odd or self._odd.isdisjoint(texts)


def _says(text: bytes, term: Term) -> bool:
    """Whether a text is the one of all texts of its term that pyoxigraph writes."""
    return str(term).encode() == text


def parsed(
    texts: Sequence[bytes], prefix: str = "", nesting: int = DEFAULT_LIMITS.nesting
) -> list[Term]:
    r"""Return the terms that texts say, each one as the object of a triple of N-Triples.

    Parameters
    ----------
    prefix
        Comes before the names of blank nodes.
    nesting
        How deep triple terms may nest.

    Raises
    ------
    SyntaxError
        When any of them is no term.

    Examples
    --------
    >>> parsed([b"<urn:a>", b"_:b"], "x")
    [<NamedNode value=urn:a>, <BlankNode value=xb>]
    >>> parsed([b"<urn:a> .\n<urn:a> <urn:b> <urn:c>"])
    Traceback (most recent call last):
    SyntaxError: not one term each
    """
    document = b"".join((_BEFORE, (_AFTER + _BEFORE).join(texts), _AFTER))
    if triple_term_depth(document)[0] > nesting:
        raise SyntaxError(f"triple terms nest more than {nesting} deep")
    terms = [quad.object for quad in parse(document, format=RdfFormat.N_TRIPLES)]
    if len(terms) != len(texts):
        raise SyntaxError("not one term each")
    for text, term in zip(texts, terms, strict=True):
        if b"#" in text and not _says(text, term) and _has_comment(text):
            raise SyntaxError("a comment")
    return [renamed(term, prefix) for term in terms] if prefix and b"_:" in document else terms


def _has_comment(text: bytes) -> bool:
    """Whether what comes after a text would be a part of its comment."""
    (quad,) = parse(_BEFORE + text + b" <urn:g>" + _AFTER, format=RdfFormat.N_QUADS)
    return isinstance(quad.graph_name, DefaultGraph)


def renamed(term: _Term, prefix: str) -> _Term:
    """Return a term with other names of its blank nodes.

    Examples
    --------
    >>> renamed(BlankNode("b"), "x")
    <BlankNode value=xb>
    """
    if isinstance(term, BlankNode):
        return type(term)(prefix + term.value)
    if isinstance(term, Triple):
        subject, object_ = renamed(term.subject, prefix), renamed(term.object, prefix)
        return type(term)(subject, term.predicate, object_)
    return term
