"""Terms by the texts that say them in N-Triples: each text is parsed once.

What arrives says the same terms over and over: properties and classes in every publication, a
subject in each of its triples. A text that was read before costs a look-up of its bytes, a fifth of
what parsing takes; the term is the same object each time. Parsing itself is pyoxigraph's.

Cost: of a new text that of parsing a triple. At most so many texts are remembered, none of them
long.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from pyoxigraph import BlankNode, DefaultGraph, RdfFormat, Triple, parse

from semantic.limits import DEFAULT_LIMITS
from semantic.nesting import triple_term_depth
from semantic.terms import Term

if TYPE_CHECKING:
    from semantic.text_table import TextTable

_Term = TypeVar("_Term")

_MOST, _LONG = 65_536, 500
"""So many texts are remembered; longer ones, in bytes, hardly come again, and take room."""
_BEFORE, _AFTER = b"<urn:s> <urn:p> ", b" .\n"


class Lexicon:
    """Terms by number, each as one text says it; it only grows.

    Two texts of one term have two numbers. What is known of terms may be kept by these numbers,
    beside the lexicon, instead of by terms, which are hashed letter by letter.

    Attributes
    ----------
    terms
        The terms by number.
    numbers
        The number of each text.
    aliased
        The numbers of texts whose terms other texts say, too, in the order in which that was found.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> lexicon = Lexicon()
    >>> lexicon.add([b"<urn:a>"], [NamedNode("urn:a")])
    >>> lexicon.terms[lexicon.numbers[b"<urn:a>"]], len(lexicon)
    (<NamedNode value=urn:a>, 1)
    """

    __slots__ = ("__dict__", "__weakref__", "_first", "_texts", "aliased", "numbers", "terms")

    def __init__(self) -> None:
        self.terms: list[Term] = []
        self.numbers: dict[bytes, int] = {}
        self.aliased: list[int] = []
        self._texts: list[bytes] = []
        self._first: dict[Term, int] = {}

    def __len__(self) -> int:
        return len(self.terms)

    @cached_property
    def table(self) -> TextTable:
        """The texts as compiled loops look them up."""
        from semantic.text_table import TextTable

        return TextTable(self._texts, self.aliased)

    def add(self, texts: Sequence[bytes], terms: Sequence[Term]) -> None:
        """Give new texts numbers."""
        for number, (text, term) in enumerate(zip(texts, terms, strict=True), len(self.terms)):
            self.numbers[text] = number
            if (first := self._first.setdefault(term, number)) != number:
                self.aliased += (first, number)
        self._texts += texts
        self.terms += terms


class TermTexts:
    """Remembers texts of terms, for one reader or several, one after the other.

    Blank nodes are not remembered: what they are called means something in one document only.

    Parameters
    ----------
    most
        So many texts are remembered; when there are more, all are forgotten.

    Attributes
    ----------
    lexicon
        What is remembered; when all is forgotten, there is a new one.
    learned
        How many texts were parsed.

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
        self.lexicon = Lexicon()
        self.learned = 0

    def __len__(self) -> int:
        """Return how many texts are remembered."""
        return len(self.lexicon)

    def has_room(self, more: int) -> bool:
        """Whether so many more texts can be remembered without forgetting any."""
        return not len(self) or len(self) + more <= self._most

    def forget(self) -> None:
        """Forget all."""
        self.lexicon = Lexicon()

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
        known = self.lexicon.numbers
        try:
            return [self.lexicon.terms[number] for number in map(known.__getitem__, texts)]
        except KeyError:
            new = [text for text in texts if text not in known]
        if not self.has_room(len(new)):
            self.forget()
            known, new = self.lexicon.numbers, list(texts)
        found = dict(zip(new, parsed(new, prefix, nesting), strict=True))
        self.learned += len(new)
        kept = [text for text in new if len(text) <= _LONG and b"_:" not in text]
        self.lexicon.add(kept, [found[text] for text in kept])
        terms = self.lexicon.terms
        return [terms[known[text]] if text in known else found[text] for text in texts]


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
