"""A query cut into its constants and the rest by one regular expression.

The lexer reads a text token by token; this cuts it in one go, and says when both must
come to the same. A query after its prologue is r₀ c₁ r₁ c₂ … cₙ rₙ: the *rests* and the
*constants* as they are written. Take two texts with the same rests, whose constants are
pairwise of the same kind (an IRI, a literal that is no quantity). Their tokens are the
same but for the constants, and so is all that is decided about them, when

1. each constant, read with a comma behind it, is one token that is a constant (`constant`);
2. each rest begins and ends with a character that no token reaches across, and has none
   of the characters that open a string, a comment, an IRI, a language tag or an escape
   (`separate`). Then a token begins and ends inside of one rest or is one constant: of
   the scanner's alternatives only strings, comments, IRIs and escaped names go across
   white space, brackets and commas;
3. no constant is followed by an opening bracket (what is called is told by its name);
4. where a rest ends with a sign, the constant behind it is a number, and sign and number
   are one constant.

`semantic.sparql.pieces` looks at the text of a token for punctuation, keywords and signs
only, and never at more of a constant than its kind, whether it is called, and whether it
is a number right behind a sign. So a reading of the one text, with constants exchanged,
is a reading of the other, and which expression does the cutting is not a question of
being right, only of being quick.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from pyoxigraph import Literal, NamedNode

from semantic.sparql.lexer import Lexer, LexicalError, Token, number
from semantic.units.vocabulary import is_quantity

_IRI = r'<[^<>"{}|^`\\\x00-\x20]*+>'
_NAME = r"(?:[^\W\d_][\w.-]*+)?:[\w:%-]*+(?:\.++[\w:%-]++)*+"
_CUT = re.compile(
    rf"""(
    {_IRI}
  | (?:\"\"\"[^"\\]*+(?:(?:\"\"?(?!")|\\.)[^"\\]*+)*+\"\"\"
      |'''[^'\\]*+(?:(?:''?(?!')|\\.)[^'\\]*+)*+'''
      |"[^"\\\n\r]*+(?:\\.[^"\\\n\r]*+)*+"|'[^'\\\n\r]*+(?:\\.[^'\\\n\r]*+)*+')
    (?:@[A-Za-z]++(?:-[A-Za-z0-9]++)*+|\^\^(?:{_IRI}|{_NAME}))?
  | (?<![\w?$:.%@-]){_NAME}(?!\s*+\()
  | (?<![\w?$:.%@])(?<!LIMIT\ )(?<!OFFSET\ )(?:[0-9]++(?:\.[0-9]++)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?
    )""",
    re.VERBOSE | re.DOTALL,
)
_PROLOGUE = re.compile(
    r"\s*+(?:(?:(?i:PREFIX)\s++[^\s<>:#]*+:\s*+<[^\s<>]*+>|#[^\n\r]*+[\n\r])\s*+)*+"
)
_FORM = re.compile(r"\s*+(?:SELECT|ASK|CONSTRUCT|DESCRIBE)(?=[\s{*(?$])", re.IGNORECASE)
_OPENING = re.compile(r"""["'#\\@\0]|\^\^|<(?!=?[ \t\n\r])""")
_BEGINS = re.compile(r"[\s,;){}\[\]/|=!&>*+?]|\.(?=[\s}]|\Z)")
_ENDS = re.compile(r"[\s,;({}\[\])/|=!&>^]\Z|[\s(,=>!&|][+-]\Z")
_CALLS = re.compile(r"\s*\(")
_ABSOLUTE = re.compile(r'<[A-Za-z][A-Za-z0-9+.-]*+:[^<>"{}|^`\\\x00-\x20]*+>')
_PLAIN = re.compile(
    r"""(?P<name>(?:[A-Za-z][A-Za-z0-9_-]*+)?:[A-Za-z0-9_][A-Za-z0-9_-]*+)
    | (?P<text>"[^"\\\n\r]*+"|'[^'\\\n\r]*+')
    | (?P<number>[0-9]++(?:\.[0-9]++)?)""",
    re.VERBOSE,
)
"""Most constants: what the lexer makes of them can be said without it."""


def prologue(text: str) -> str:
    """Return the PREFIX declarations and comments that a query begins with, as written.

    Examples
    --------
    >>> prologue("PREFIX e: <urn:e:> ASK { ?s e:p 5 }")
    'PREFIX e: <urn:e:> '
    """
    found = _PROLOGUE.match(text)
    assert found is not None
    return found[0]


def cut(body: str) -> list[str]:
    """Return the rests and the constants of a query after its prologue, in turn.

    Examples
    --------
    >>> cut("ASK { ?s e:p 5 }")
    ['ASK { ?s ', 'e:p', ' ', '5', ' }']
    """
    return _CUT.split(body)


def sign_of(rest: str) -> str:
    """Return the sign that a rest ends with, or nothing.

    Examples
    --------
    >>> sign_of(" FILTER(?x > -")
    '-'
    """
    return rest[-1:] if rest[-1:] in ("+", "-") else ""


def separate(rests: Sequence[str]) -> bool:
    """Whether the rests keep the tokens between them apart, whatever the constants are.

    Examples
    --------
    >>> separate(["ASK { ?s ", " ", " }"]), separate(["ASK { ?s ", "", " }"])
    (True, False)
    """
    last = len(rests) - 1
    return (
        _FORM.match(rests[0]) is not None
        and not any(_OPENING.search(rest) for rest in rests)
        and all(_ENDS.search(rest) for rest in rests[:-1])
        and all(
            (number == last and not rest) or (_BEGINS.match(rest) and not _CALLS.match(rest))
            for number, rest in enumerate(rests[1:], 1)
        )
    )


def constant(text: str, prefixes: Mapping[str, str]) -> NamedNode | Literal | None:
    """Return the constant that a text is, alone or behind the sign of a number.

    Parameters
    ----------
    text
        What stands between two rests, and behind a sign that ends the first.
    prefixes
        Those in force.

    Returns
    -------
    NamedNode or Literal or None
        ``None`` where that is not certain, and for quantities, which are read in another way.

    Examples
    --------
    >>> constant("e:p", {"e": "urn:e:"}), constant("'a'@en", {})
    (<NamedNode value=urn:e:p>, <Literal value=a language=en>)
    >>> constant("-5", {}).value
    '-5'
    >>> constant("<p>", {}) is constant("e:p", {}) is constant("5 6", {}) is None
    True
    """
    try:
        if _ABSOLUTE.fullmatch(text):  # a relative one may be a comparison: ?x<5&&?y>3
            return NamedNode(text[1:-1])
        found = _PLAIN.fullmatch(text)
        if found is not None:
            return _plain(text, found.lastgroup, prefixes)
    except ValueError:
        return None
    return _lexed(text, prefixes)


def _plain(text: str, kind: str | None, prefixes: Mapping[str, str]) -> NamedNode | Literal | None:
    if kind == "text":
        return Literal(text[1:-1])
    if kind == "number":
        return number(text)
    prefix, _, local = text.partition(":")
    return NamedNode(prefixes[prefix] + local) if prefix in prefixes else None


def _lexed(text: str, prefixes: Mapping[str, str]) -> NamedNode | Literal | None:
    sign = sign_of(text[:1])
    try:
        tokens = list(Lexer(text[len(sign) :] + ",", prefixes).tokens())
    except LexicalError:
        return None
    ends = len(tokens) == 2 and tokens[1].glued and tokens[1].text == ","
    term = tokens[0].term
    if term is None or not ends or tokens[0].offset != 0 or text[0] == "<":
        return None
    if sign:
        return _signed(sign, tokens[0])
    return None if isinstance(term, Literal) and is_quantity(term) else term


def _signed(sign: str, token: Token) -> Literal | None:
    if not isinstance(token.term, Literal) or token.text[0] not in "0123456789.":
        return None
    return Literal(sign + token.term.value, datatype=token.term.datatype)
