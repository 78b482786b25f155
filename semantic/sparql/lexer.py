"""SPARQL text to tokens, with prefixes and relative IRIs resolved.

Only as much of SPARQL's grammar (SPARQL 1.1 section 19.8) as it takes to tell
constants from everything else: that is what lets queries that differ in constants
alone share one parse, and synonyms be put into a query without printing its algebra.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from semantic.vocabulary import PREFIXES, XSD


class Kind(Enum):
    """What a token is."""

    TERM = auto()  # an IRI or a literal
    VARIABLE = auto()
    WORD = auto()  # a keyword or a built-in function
    OTHER = auto()  # blank node label, punctuation


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a query.

    Parameters
    ----------
    kind
        What it is.
    text
        How it is written in a query without prologue.
    term
        The constant, for a TERM.
    glued
        Whether nothing stands between it and the token before.
    offset
        Where it begins in the query, in characters from 0.
    """

    kind: Kind
    text: str
    term: NamedNode | Literal | None = None
    glued: bool = False
    offset: int = 0


class LexicalError(ValueError):
    """A character or a name that cannot be read; `offset` counts characters from 0."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


# PN_CHARS of SPARQL 1.1 section 19.8, [167]
_PN = (
    r"A-Za-z0-9_\u00B7\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u037D\u037F-\u1FFF\u200C-\u200D"
    r"\u203F-\u2040\u2070-\u218F\u2C00-\u2FEF\u3001-\uD7FF\uF900-\uFDCF\uFDF0-\uFFFD"
    r"\U00010000-\U000EFFFF"
)
_SCANNER = re.compile(
    rf"""
    (?P<space>(?:\s+|\#[^\n\r]*)+)
  | (?P<iri><(?:[^<>"{{}}|^`\\\x00-\x20]|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*>)
  | (?P<string>\"\"\"(?:(?:"|"")?(?:[^"\\]|\\.))*\"\"\"|'''(?:(?:'|'')?(?:[^'\\]|\\.))*'''
      |"(?:[^"\\\n\r]|\\.)*"|'(?:[^'\\\n\r]|\\.)*')
  | (?P<lang>@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--[A-Za-z]+)?)
  | (?P<variable>[?$][{_PN}]+)
  | (?P<blank>_:[{_PN}](?:[{_PN}.-]*[{_PN}-])?)
  | (?P<number>(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)[eE][+-]?[0-9]+|[0-9]*\.[0-9]+|[0-9]+)
  | (?P<name>(?:[^\W\d_](?:[{_PN}.-]*[{_PN}-])?)?:
      (?:(?:[{_PN}:]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?\#@%])
         (?:(?:[{_PN}.:-]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?\#@%])*
            (?:[{_PN}:-]|%[0-9A-Fa-f]{{2}}|\\[_~.\-!$&'()*+,;=/?\#@%]))?)?)
  | (?P<word>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<other>\^\^|\|\||&&|!=|<=|>=|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CHARACTERS = {
    "t": "\t",
    "b": "\b",
    "n": "\n",
    "r": "\r",
    "f": "\f",
    "\\": "\\",
    '"': '"',
    "'": "'",
}
_EXPRESSION = re.compile(r"&&|[,)]")
"""What stands between a ``<`` and a ``>`` of an expression, and in no IRI that is meant."""


def tokenize(text: str, prefixes: Mapping[str, str] = PREFIXES) -> list[Token]:
    """Return the tokens of a query after its prologue.

    Parameters
    ----------
    text
        The query.
    prefixes
        Those that hold without being declared.

    Raises
    ------
    LexicalError
        At an undeclared prefix or a malformed constant.

    Examples
    --------
    >>> [t.text for t in tokenize('PREFIX e: <urn:e:> ASK { ?s e:p "5"@en }')]
    ['ASK', '{', '?s', '<urn:e:p>', '"5"@en', '}']
    """
    return list(Lexer(text, prefixes).tokens())


class Lexer:
    """The state of one scan: the prologue's prefixes and base; see `tokenize`.

    Attributes
    ----------
    prefixes, base
        Those in force; those of the prologue are known with the first token.
    """

    def __init__(self, text: str, prefixes: Mapping[str, str] = PREFIXES) -> None:
        self.base: str | None = None
        self._text = text
        self.prefixes = dict(prefixes)
        self._position = 0
        self._glued = False

    def tokens(self) -> Iterator[Token]:
        """Yield the tokens after the prologue; `base` is known with the first."""
        in_prologue = True
        operand = False
        while (piece := self._next()) is not None:
            kind, text, offset = piece
            if in_prologue and kind == "word" and text.upper() in ("PREFIX", "BASE"):
                self._declare(text.upper(), offset)
                continue
            in_prologue = False
            glued = self._glued
            if kind == "iri" and operand and self._is_comparison(text):
                kind, text = "other", "<=" if text.startswith("<=") else "<"
                self._position = offset + len(text)
            token = self._token(kind, text, offset, glued)
            operand = token.kind in (Kind.VARIABLE, Kind.TERM) or token.text == ")"
            yield token

    def _is_comparison(self, text: str) -> bool:
        """Whether what looks like an IRI, after an operand, is ``?x<5&&?y>3`` without spaces."""
        absolute = self.base is not None or _SCHEME.match(text[1:])
        return not absolute and _EXPRESSION.search(text) is not None

    def _next(self) -> tuple[str, str, int] | None:
        """Return the next piece that is not space; `_glued` says whether none stood before it."""
        self._glued = True
        while self._position < len(self._text):
            found = _SCANNER.match(self._text, self._position)
            assert found is not None
            assert found.lastgroup is not None
            offset, self._position = self._position, found.end()
            if found.lastgroup != "space":
                return found.lastgroup, found[0], offset
            self._glued = False
        return None

    def _peek(self, kind: str, text: str | None = None) -> str | None:
        """Take the next piece if it is of this kind."""
        found = _SCANNER.match(self._text, self._position)
        if found is not None and found.lastgroup == "space":
            found = _SCANNER.match(self._text, found.end())
        if found is None or found.lastgroup != kind or (text is not None and found[0] != text):
            return None
        self._position = found.end()
        return found[0]

    def _declare(self, what: str, offset: int) -> None:
        name = self._next() if what == "PREFIX" else None
        iri = self._next()
        if iri is None or iri[0] != "iri" or (name is not None and not name[1].endswith(":")):
            raise LexicalError(f"{what} is not followed by a name and an IRI", offset)
        resolved = self._resolve(iri[1], iri[2])
        if name is None:
            self.base = resolved
        else:
            self.prefixes[name[1][:-1]] = resolved

    def _resolve(self, iriref: str, offset: int) -> str:
        iri = _unescape(iriref[1:-1], offset)
        if self.base is None or (_SCHEME.match(iri) and "/." not in iri):
            return iri
        try:
            (quad,) = parse(f"<{iri}> a <urn:x> .", format=RdfFormat.TURTLE, base_iri=self.base)
        except (ValueError, SyntaxError) as error:
            raise LexicalError(f"{iriref} cannot be resolved: {error}", offset) from error
        assert isinstance(quad.subject, NamedNode)
        return quad.subject.value

    def _token(self, kind: str, text: str, offset: int, glued: bool) -> Token:
        match kind:
            case "iri" | "name":
                return _term(self._iri(kind, text, offset), glued, offset)
            case "string":
                return _term(self._literal(text, offset), glued, offset)
            case "number":
                return Token(Kind.TERM, text, number(text), glued, offset)
            case "word" if text.lower() in ("true", "false"):
                truth = Literal(text.lower(), datatype=XSD["boolean"])
                return _term(truth, glued, offset)
            case "word":
                return Token(Kind.WORD, text, None, glued, offset)
            case "variable":
                return Token(Kind.VARIABLE, "?" + text[1:], None, glued, offset)
            case _:
                return Token(Kind.OTHER, text, None, glued, offset)

    def _iri(self, kind: str, text: str, offset: int) -> NamedNode:
        if kind == "iri":
            iri = self._resolve(text, offset)
        else:
            prefix, _, local = text.partition(":")
            if prefix not in self.prefixes:
                raise LexicalError(f"the prefix {prefix}: is not declared", offset)
            iri = self.prefixes[prefix] + re.sub(r"\\(.)", r"\1", local)
        try:
            return NamedNode(iri)
        except ValueError as error:
            raise LexicalError(f"{text} is not an absolute IRI: {error}", offset) from error

    def _literal(self, text: str, offset: int) -> Literal:
        quotes = 3 if text.startswith(('"""', "'''")) and len(text) >= 6 else 1
        value = _unescape(text[quotes:-quotes], offset)
        if not _is_encodable(value):
            raise LexicalError("the text has half a character (a lone surrogate)", offset)
        if (language := self._peek("lang")) is not None:
            try:
                return Literal(value, language=language[1:])
            except ValueError as error:
                raise LexicalError(f"{language} is not a language tag", offset) from error
        if self._peek("other", "^^") is not None:
            piece = self._next()
            if piece is None or piece[0] not in ("iri", "name"):
                raise LexicalError("^^ is not followed by a datatype", offset)
            return Literal(value, datatype=self._iri(piece[0], piece[1], piece[2]))
        return Literal(value)


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _term(term: NamedNode | Literal, glued: bool, offset: int) -> Token:
    return Token(Kind.TERM, str(term), term, glued, offset)


def number(text: str) -> Literal:
    """Return the literal that a number without a sign stands for.

    Examples
    --------
    >>> number("5e3") == Literal("5e3", datatype=XSD["double"])
    True
    """
    kind = "double" if "e" in text.lower() else "decimal" if "." in text else "integer"
    return Literal(text, datatype=XSD[kind])


def _unescape(text: str, offset: int) -> str:
    if "\\" not in text:
        return text

    def character(found: re.Match[str]) -> str:
        code = int(found[1] or found[2] or "0", 16)
        if (found[3] and found[3] not in _CHARACTERS) or code > sys.maxunicode:
            raise LexicalError(f"{found[0]} stands for no character", offset)
        return _CHARACTERS[found[3]] if found[3] else chr(code)

    return _ESCAPE.sub(character, text)
