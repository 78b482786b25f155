"""Tests of the text of one variable: what SPARQL's string functions ask, as data.

A test looks at a part of a term (`View`), changes its case (`Folding`), and compares the
text with a constant (`TextOperator`). ``CONTAINS(LCASE(STR(?t)), "climate")`` is the view
``STR``, the folding ``LCASE``, the operator ``CONTAINS`` and the argument ``"climate"``.

Of a regular expression only what every match contains is a test.

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
        The constant: a text, with a language tag or without, its case changed already.
    view
        Which text of the term.
    folding
        What is done with its case.

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
        if self.operator is TextOperator.EQUALS:
            return f"{text} = {self.argument}"
        return f"{self.operator.value}({text}, {self.argument})"


def quoted(text: Literal) -> Literal:
    r"""Return a text as the regular expression that it alone matches.

    Examples
    --------
    >>> print(quoted(Literal("c++")).value)
    c\+\+
    """
    return Literal("".join(f"\\{c}" if c in _META else c for c in text.value))


_META = frozenset("\\.+*?()|[]{}^$#&-~")
