"""Triple patterns and the filters that an index supports: the parts of branches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from pyoxigraph import Literal, NamedNode, Variable

from semantic.terms import Node, Term, compact
from semantic.units.quantities import is_quantity, without_unit
from semantic.values import ComparisonOperator
from semantic.vocabulary import GM, PREFIXES

COMPARE = GM["compare"]
"""The function that compares quantities, because SPARQL's operators cannot."""
_META = frozenset("\\.+*?()|[]{}^$#&-~")


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """A triple pattern of SPARQL; blank nodes of the query are variables here."""

    subject: Node
    predicate: Node
    object: Node

    def __str__(self) -> str:
        """Return the pattern in Turtle syntax."""
        return self.write(PREFIXES)

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Return the pattern in Turtle; `prefixes` (prefix to namespace) shorten its IRIs."""
        return " ".join(compact(without_unit(node), prefixes) for node in self)

    def __iter__(self) -> Iterator[Node]:
        """Yield subject, predicate, object."""
        yield self.subject
        yield self.predicate
        yield self.object

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables of the pattern."""
        return frozenset(node for node in self if isinstance(node, Variable))


class TaxonomyOperator(Enum):
    """The is-a operators of G-ToPSS (section 3.2), each with the name of its filter function."""

    DESCENDANT = "descendantOf"  # ≤
    ANCESTOR = "ancestorOf"  # ≥
    CHILD = "childOf"  # =


@dataclass(frozen=True, slots=True)
class Comparison:
    """The filter ``?variable operator constant``, which compares values as SPARQL does."""

    variable: Variable
    operator: ComparisonOperator
    constant: NamedNode | Literal

    @property
    def word(self) -> str:
        """The operator as `Subscription.remainder` names it, such as ``<=``."""
        return self.operator.value

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Return the filter in SPARQL; `prefixes` (prefix to namespace) shorten its IRIs."""
        return _comparison(self.variable, self.word, self.constant, prefixes)


@dataclass(frozen=True, slots=True)
class Unequal:
    """The filter ``?variable != constant``, by value; it is false if SPARQL gives an error.

    Comparison with a literal of a foreign datatype may give such an error.
    """

    variable: Variable
    constant: NamedNode | Literal

    @property
    def word(self) -> str:
        """The operator as `Subscription.remainder` names it: ``!=``."""
        return "!="

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Return the filter in SPARQL; `prefixes` (prefix to namespace) shorten its IRIs."""
        return _comparison(self.variable, self.word, self.constant, prefixes)


def _comparison(
    variable: Variable, operator: str, constant: Term, prefixes: Mapping[str, str]
) -> str:
    written = compact(constant, prefixes)
    if is_quantity(constant):
        return f'{compact(COMPARE, prefixes)}({variable}, "{operator}", {written})'
    return f"{variable} {operator} {written}"


@dataclass(frozen=True, slots=True)
class TaxonomyTest:
    """A taxonomy filter such as ``FILTER(gm:descendantOf(?variable, concept))``."""

    variable: Variable
    operator: TaxonomyOperator
    concept: Term

    @property
    def word(self) -> str:
        """The IRI of the filter function, as `Subscription.remainder` names it."""
        return str(GM[self.operator.value])

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Return the filter in SPARQL; `prefixes` (prefix to namespace) shorten its IRIs."""
        return f"gm:{self.operator.value}({self.variable}, {compact(self.concept, prefixes)})"


class TermPart(Enum):
    """The part of a term that a text filter tests: ``?x`` itself, ``STR(?x)`` or ``LANG(?x)``."""

    TERM = ""  # The text of a string literal, with its language.
    STR = "STR"  # The lexical form of a literal, or an IRI as text.
    LANG = "LANG"  # The language tag of a literal.


class Folding(Enum):
    """The case conversion that a text filter applies to the term's text before the test."""

    NONE = ""
    LOWER = "LCASE"
    UPPER = "UCASE"
    CASELESS = "caseless"  # Regular expressions with the flag "i" compare ASCII letters like this.


class TextOperator(Enum):
    """The test of a text filter: a function such as ``CONTAINS``, or ``=``, with a constant."""

    CONTAINS = "CONTAINS"
    STARTS = "STRSTARTS"
    ENDS = "STRENDS"
    EQUALS = "="
    MATCHES = "LANGMATCHES"


@dataclass(frozen=True, slots=True)
class TextTest:
    """A text filter: ``operator(folding(view(?variable)), argument)``.

    `argument` is a text with or without a language tag; its case is already converted. Source:
    SPARQL 1.1 sections 17.4.2 and 17.4.3.

    Examples
    --------
    >>> t, sea = Variable("t"), Literal("sea")
    >>> TextTest(t, TextOperator.CONTAINS, sea, TermPart.STR, Folding.LOWER).write({})
    'CONTAINS(LCASE(STR(?t)), "sea")'
    """

    variable: Variable
    operator: TextOperator
    argument: Literal
    view: TermPart = TermPart.TERM
    folding: Folding = Folding.NONE

    @property
    def word(self) -> str:
        """The operator or function as `Subscription.remainder` names it, such as ``CONTAINS``."""
        return self.operator.value

    def write(self, _: Mapping[str, str]) -> str:
        """Return the filter in SPARQL; it has no IRIs, so prefixes are ignored."""
        text = str(self.variable)
        return self.applied(
            f"{self.view.value}({text})" if self.view is not TermPart.TERM else text
        )

    def applied(self, text: str) -> str:
        """Return the test in SPARQL, with the expression `text` in place of ``view(?variable)``."""
        if self.folding is Folding.CASELESS:
            return f'REGEX({text}, {_quoted(self.argument)}, "i")'
        if self.folding is not Folding.NONE:
            text = f"{self.folding.value}({text})"
        if self.operator is TextOperator.EQUALS:
            return f"{text} = {self.argument}"
        return f"{self.operator.value}({text}, {self.argument})"


def _quoted(text: Literal) -> Literal:
    """Escape a text as a regular expression that matches this text and no other."""
    return Literal("".join(f"\\{c}" if c in _META else c for c in text.value))


Alternative = Comparison | Unequal | TaxonomyTest | TextTest


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Tests of one variable, of which at least one must hold: ``||`` or ``IN``.

    `word` is the operator in the query.
    """

    variable: Variable
    tests: tuple[Alternative, ...]
    word: str = "||"
    """The operator in the query: ``||`` or ``IN``."""

    def write(self, prefixes: Mapping[str, str]) -> str:
        """Return the filter in SPARQL; `prefixes` (prefix to namespace) shorten its IRIs."""
        if self.word == "IN":
            constants = [t.constant for t in self.tests if isinstance(t, Comparison)]
            if len(constants) == len(self.tests):
                listed = ", ".join(compact(constant, prefixes) for constant in constants)
                return f"{self.variable} IN ({listed})"
        return " || ".join(test.write(prefixes) for test in self.tests) or "false"


Filter = Alternative | AnyOf


@dataclass(frozen=True, slots=True)
class Branch:
    """A basic graph pattern with its filters: one disjunct of the query."""

    patterns: tuple[TriplePattern, ...]
    filters: tuple[Filter, ...] = ()

    @property
    def variables(self) -> frozenset[Variable]:
        """The variables that the patterns bind."""
        return frozenset().union(*(pattern.variables for pattern in self.patterns))


class QueryForm(Enum):
    """The query forms of SPARQL 1.1 (section 16)."""

    SELECT = "SELECT"
    ASK = "ASK"
    CONSTRUCT = "CONSTRUCT"
    DESCRIBE = "DESCRIBE"
