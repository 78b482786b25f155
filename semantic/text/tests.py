"""Tests of the text of one variable: what SPARQL's string functions ask, as data.

A test looks at a part of a term (`View`), changes its case (`Folding`), and compares the
text with a constant (`TextOperator`). ``CONTAINS(LCASE(STR(?t)), "climate")`` is the view
``STR``, the folding ``LCASE``, the operator ``CONTAINS`` and the argument ``"climate"``.

`RegexTest` is a regular expression, of which only what every match contains is used.

Source: SPARQL 1.1 sections 17.4.2 (functions on RDF terms) and 17.4.3 (on strings).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from pyoxigraph import Literal, Variable

NO_PREFIXES: Mapping[str, str] = {}


class View(Enum):
    """Which text of a term is looked at."""

    TERM = ""  # that of a string literal, whose language counts
    STR = "STR"  # the lexical form of a literal, the IRI of an IRI
    LANG = "LANG"  # the language tag of a literal


class Folding(Enum):
    """What is done with the case of a text before it is looked at."""

    NONE = ""
    LOWER = "LCASE"
    UPPER = "UCASE"
    CASELESS = "caseless"  # as regular expressions with the flag "i" compare ASCII letters


class TextOperator(Enum):
    """How a text is compared with a constant."""

    CONTAINS = "CONTAINS"
    STARTS = "STRSTARTS"
    ENDS = "STRENDS"
    EQUALS = "="
    MATCHES = "LANGMATCHES"


@dataclass(frozen=True, slots=True)
class TextTest:
    """``FILTER(operator(folding(view(?variable)), argument))``.

    Parameters
    ----------
    variable
        What it is asked of.
    operator
        How the text is compared.
    argument
        The constant: a text, with a language tag or without.
    view
        Which text of the term.
    folding
        What is done with its case.
    argument_folding
        What the query does with the constant's case: nothing where the constant is put in.

    Examples
    --------
    >>> t, sea = Variable("t"), Literal("sea")
    >>> TextTest(t, TextOperator.CONTAINS, sea, View.STR, Folding.LOWER).write()
    'CONTAINS(LCASE(STR(?t)), "sea")'
    """

    variable: Variable
    operator: TextOperator
    argument: Literal
    view: View = View.TERM
    folding: Folding = Folding.NONE
    argument_folding: Folding = Folding.NONE

    @property
    def word(self) -> str:
        """The operator or function, as `Subscription.remainder` names it."""
        return self.operator.value

    def write(self, _: Mapping[str, str] = NO_PREFIXES) -> str:
        """Write the filter as SPARQL does."""
        text = str(self.variable)
        return self.applied(f"{self.view.value}({text})" if self.view is not View.TERM else text)

    def applied(self, text: str) -> str:
        """Write the test of an expression that gives what the view shows."""
        if self.folding is Folding.CASELESS:
            return f'REGEX({text}, {quoted(self.argument)}, "i")'
        if self.folding is not Folding.NONE:
            text = f"{self.folding.value}({text})"
        argument = str(self.argument)
        if self.argument_folding is not Folding.NONE:
            argument = f"{self.argument_folding.value}({argument})"
        if self.operator is TextOperator.EQUALS:
            return f"{text} = {argument}"
        return f"{self.operator.value}({text}, {argument})"


@dataclass(frozen=True, slots=True)
class RegexTest:
    """``FILTER(REGEX(folding(view(?variable)), pattern, flags))``, before constants are put in."""

    variable: Variable
    pattern: Literal
    flags: Literal | None = None
    view: View = View.TERM
    folding: Folding = Folding.NONE

    @property
    def word(self) -> str:
        """The function, as `Subscription.remainder` names it."""
        return "REGEX"

    def write(self, _: Mapping[str, str] = NO_PREFIXES) -> str:
        """Write the filter as SPARQL does."""
        text = str(self.variable)
        for function in (self.view.value, self.folding.value):
            text = f"{function}({text})" if function else text
        constants = [self.pattern] if self.flags is None else [self.pattern, self.flags]
        return f"REGEX({', '.join([text, *map(str, constants)])})"


def quoted(text: Literal) -> Literal:
    r"""Return a text as the regular expression that it alone matches.

    Examples
    --------
    >>> print(quoted(Literal("c++")).value)
    c\+\+
    """
    return Literal("".join(f"\\{c}" if c in _META else c for c in text.value))


_META = frozenset("\\.+*?()|[]{}^$#&-~")
