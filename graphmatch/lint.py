"""A linter for subscriptions: it finds valid queries that are probably mistakes.

`lint` warns of conditions that can never match (a term that no vocabulary has, a comparison that is
always an error, filters that contradict each other), of queries that match everything, and of
duplicates. Each warning has a code; `CODES` lists them. It ignores terms in namespaces that neither
the ontology nor a well-known vocabulary defines, because publications may introduce them.

Cost: about 0.5 ms for each query. Therefore `graphmatch check` and `Engine.lint` run it, but
subscribing does not. A query that is too large for `graphmatch.parse_tree` gets only the warnings
that need no expressions, and a warning that says so.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import chain, combinations
from typing import TypeAlias, TypeVar

from pyoxigraph import Literal, NamedNode, QuerySolutions, Store, Variable

from graphmatch.parse_tree import Expression, Op, definitions, parse_tree, unbound
from graphmatch.subscription import Subscription, SubscriptionParser
from semantic.branch import AnyOf, Comparison, Filter, TriplePattern
from semantic.errors import Place, Problem, Severity, SubscriptionError
from semantic.ontology.ontology import Ontology
from semantic.terms import Term, compact, local_name
from semantic.values import ComparisonOperator, Instant, compare, value_of
from semantic.vocabulary import CONTENT, DC, DCTERMS, ENCLOSURE, GM, RANGE, RDF, RSS, TYPE, XSD

_TEXT, _NUMBER, _TRUTH, _RESOURCE = "a text", "a number", "a truth value", "an IRI or a blank node"
_INSTANT, _DATE, _DURATION = "an xsd:dateTime", "an xsd:date", "a duration"

_DATATYPES: Mapping[str, str] = {
    _TEXT: "string normalizedString token",
    _NUMBER: "integer long int short byte decimal float double nonNegativeInteger positiveInteger "
    "unsignedLong unsignedInt unsignedShort unsignedByte nonPositiveInteger negativeInteger",
    _TRUTH: "boolean",
    _INSTANT: "dateTime dateTimeStamp",
    _DATE: "date",
    _DURATION: "duration dayTimeDuration yearMonthDuration",
    "an xsd:time": "time",
    "an xsd:gYear": "gYear",
    "an xsd:gYearMonth": "gYearMonth",
}
_FUNCTIONS: Mapping[str, str] = {
    _TEXT: "str lang lcase ucase concat substr replace strbefore strafter encode_for_uri tz "
    "struuid md5 sha1 sha256 sha384 sha512 group_concat",
    _NUMBER: "strlen abs ceil floor round rand year month day hours minutes seconds count sum avg",
    _TRUTH: "bound contains strstarts strends regex langmatches sameTerm isiri isblank isliteral "
    "isnumeric exists && || ! = < > <= >= in",
    _INSTANT: "now",
    _DURATION: "timezone",
    _RESOURCE: "iri uuid bnode datatype",
}
_KIND_OF_DATATYPE = {n: kind for kind, names in _DATATYPES.items() for n in names.split()}
_KIND_OF_FUNCTION = {n: kind for kind, names in _FUNCTIONS.items() for n in names.split()}

_ARITHMETIC = ("+", "-", "*", "/")
_PATTERNS = frozenset(
    {"bgp", "path", "triple", "alt", "seq", "notoneof", "reverse", "path*", "path+", "path?"}
)

_OF_ITEMS: Mapping[NamedNode, str] = {
    RSS["title"]: _TEXT,
    RSS["description"]: _TEXT,
    CONTENT["encoded"]: _TEXT,
    DC["date"]: _INSTANT,
    DCTERMS["modified"]: _INSTANT,
    DC["creator"]: _TEXT,
    DC["subject"]: _TEXT,
    DC["language"]: _TEXT,
    DCTERMS["identifier"]: _TEXT,
    ENCLOSURE["length"]: _NUMBER,
    ENCLOSURE["type"]: _TEXT,
}
"""The kinds of values in feed items: docs/reference/feeds.md."""
_ONCE = (RSS["title"], RSS["link"], RSS["description"], CONTENT["encoded"], DC["date"])
"""Properties with one value per item."""
_USUAL = frozenset({TYPE, *_ONCE[:3], DC["date"], DCTERMS["isPartOf"]})
"""Properties that nearly every item has."""
_ONLY_ITEMS = frozenset({*_ONCE[:4], ENCLOSURE["enclosure"], RSS["item"]})
"""Properties, and a class, that only feed items have."""

_OWN_VOCABULARIES: Mapping[str, str] = {
    RSS.iri: "item items channel title link description image textinput name url",
    CONTENT.iri: "encoded items item format encoding",
    ENCLOSURE.iri: "enclosure url type length",
    RDF.iri: "reifies dirLangString li",
}
"""Terms that rdflib's vocabularies lack."""

_MORE_DIGITS = re.compile(r"[0-9]+(?=[0-9]{4})")
"""The digits before the last four: `value_of` rejects very long numbers, though they are valid."""

_VARIABLE = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>\s]*>|([?$]\w+|_:\w+)')
"""A variable or blank node; texts and IRIs match first, because they may contain ``?``."""

_HARMLESS = frozenset({"OPTIONAL", "UNION", "ORDER BY", "LIMIT or OFFSET", "BIND or expression"})
"""Parts of a query that do not reduce the number of matching publications."""


@dataclass(frozen=True, slots=True)
class LintWarning(Problem):
    """A probable mistake in a subscription: a problem with a code of `CODES`.

    Its place is the subscription's id. For the code ``duplicate``, `other` is the id of the earlier
    subscription with the same query; otherwise it is empty.
    """

    severity: Severity = Severity.WARNING
    code: str = ""
    other: str = ""


_Finding: TypeAlias = tuple[str, str]
"""The mistake and the remedy."""
_Key = TypeVar("_Key")


class Linter:
    """Checks subscriptions one by one for probable mistakes.

    Parameters
    ----------
    ontology
        The ontology for matching; the linter warns of unknown terms in its namespaces.
    duplicates
        Whether to warn of queries that an earlier subscription has, too.

    Examples
    --------
    >>> query = "SELECT ?item { ?item rss:title ?title FILTER(CONTAINS(?titel, 'x')) }"
    >>> subscription = SubscriptionParser().parse("alice", query)
    >>> for warning in Linter(Ontology()).lint(subscription):
    ...     print(warning.code, warning)
    unbound-variable alice: nothing binds ?titel in CONTAINS(?titel, "x"). Did you mean ?title?
    """

    def __init__(self, ontology: Ontology, *, duplicates: bool = True) -> None:
        self.ontology = ontology
        self._duplicates = duplicates
        self._known = _Vocabularies(ontology)
        self._first: dict[str, str] = {}

    def lint(self, subscription: Subscription) -> tuple[LintWarning, ...]:
        """Return a warning for each probable mistake in a subscription.

        The linter remembers the query, to find later duplicates of it.
        """
        asked = _ParsedSubscription(subscription, parse_tree(subscription.query), self._known)
        warnings = [(code, *found) for code, rule in _RULES.items() for found in rule(asked)]
        place = Place(subscription.id)
        return (
            *(
                LintWarning(what, place, remedy, code=c)
                for c, what, remedy in dict.fromkeys(warnings)
            ),
            *self._duplicate(subscription),
        )

    def _duplicate(self, subscription: Subscription) -> Iterator[LintWarning]:
        """Yield a warning if an earlier subscription has the same query.

        Otherwise remember this one's query.
        """
        if not self._duplicates:
            return
        first = self._first.setdefault(_same(subscription.query.text), subscription.id)
        if first != subscription.id:
            what = f"it asks the same as {first}, but for names of variables and layout"
            place, code = Place(subscription.id), "duplicate"
            yield LintWarning(what, place, "Keep one of the two.", code=code, other=first)


def _same(text: str) -> str:
    """Return a key that is equal for queries that differ only in names.

    It is the query's text with variables and blank nodes numbered by first use.
    """
    numbers: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        name = found[1]
        return found[0] if name is None else f"{name[0]}{numbers.setdefault(name, len(numbers))}"

    return _VARIABLE.sub(numbered, text)


# -- parts of a query -----------------------------------------------------------------------


class _ParsedSubscription:
    """A subscription as the rules in `_RULES` read it: its parse tree, triples and types.

    `ops` are all operators of the tree. If the query is too large, `tree` is ``None``, and `ops` is
    empty.
    """

    def __init__(self, subscription: Subscription, tree: Op | None, known: _Vocabularies) -> None:
        self.subscription = subscription
        self.tree = tree
        self.known = known
        self.ops = () if tree is None else tuple(tree.walk())

    def show(self, expression: Expression) -> str:
        """Return an expression as SPARQL, for warnings."""
        expression = self._computed.get(expression, expression)
        if isinstance(expression, str):
            return expression
        if not isinstance(expression, Op):
            return compact(expression, self.known.ontology.prefixes)
        name, args = expression.name, expression.args
        first = args[0] if args else None
        if name == "!" and isinstance(first, Op) and first.name in ("=", "in", "exists"):
            name, args = {"=": "!=", "in": "NOT IN", "exists": "NOT EXISTS"}[first.name], first.args
        if name in ("exists", "NOT EXISTS"):
            return f"{name.upper()} {{ … }}"
        shown = list(map(self.show, args))
        if name in ("in", "NOT IN"):
            return f"{shown[0]} {name.upper()} ({', '.join(shown[1:])})"
        if name == "call":
            return f"{shown[0]}({', '.join(shown[1:])})"
        if name == "triple":
            return " ".join(shown)
        if name[:1].isalpha():
            text = ", ".join(shown[shown[:1] == ["distinct"] :]) or "*" * (name == "count")
            if name == "group_concat":
                text = text.replace(", ", "; SEPARATOR=", 1)
            return f"{name.upper()}({'DISTINCT ' * ('distinct' in shown[:1])}{text})"
        return f" {name} ".join(shown) if len(shown) > 1 else name + "".join(shown)

    @cached_property
    def _computed(self) -> Mapping[Expression, Expression]:
        """The aggregates, such as ``COUNT(?x)``, by the variables that replace them."""
        pairs = (
            definition for op in self.ops if op.name == "group" for definition in op.ops[1].ops
        )
        return {variable: aggregate for aggregate, variable in (pair.args for pair in pairs)}

    @cached_property
    def triples(self) -> list[tuple[Expression, ...]]:
        """All triple patterns and paths; without a parse tree, the subscription's `supports`."""
        if self.tree is None:
            return [tuple(pattern) for pattern in self.subscription.supports]
        paths = [op.args for op in self.ops if op.name == "path"]
        return [triple.args for op in self.ops if op.name == "bgp" for triple in op.ops] + paths

    @cached_property
    def items(self) -> frozenset[Expression]:
        """The subjects that can match only feed items, because of their properties or classes."""
        found: defaultdict[Expression, set[Expression]] = defaultdict(set)
        for subject, predicate, object_ in self.triples:
            found[subject].add(object_ if predicate == TYPE else predicate)
        return frozenset(
            subject
            for subject, properties in found.items()
            if properties & _ONLY_ITEMS and RSS["channel"] not in properties
        )

    @cached_property
    def kinds(self) -> Mapping[Expression, str]:
        """The type of each variable's values, such as ``a number``; only certain ones."""
        found: defaultdict[Expression, set[str | None]] = defaultdict(set)
        for subject, predicate, object_ in self.triples:
            if isinstance(object_, Variable):
                found[object_].add(self._kind_of_object(subject, predicate))
        for op in self.ops:
            if op.name in ("extend", "vars"):  # The kind may depend on other kinds.
                for variable in definitions(op.args[0]) if op.name == "extend" else op.args:
                    found[variable].add(None)
        for subject, *_ in self.triples:
            if isinstance(subject, Variable):
                found[subject] = {_RESOURCE}
        return _certain(found)

    def _kind_of_object(self, subject: Expression, predicate: Expression) -> str | None:
        if not isinstance(predicate, NamedNode):
            return None
        foreign = predicate.value.startswith((DC.iri, DCTERMS.iri))
        if predicate in _OF_ITEMS and (subject in self.items or not foreign):
            return _OF_ITEMS[predicate]
        return self.known.ranges.get(self.known.ontology.root(predicate))

    @cached_property
    def dates(self) -> frozenset[Expression]:
        """The objects of dc:date and dcterms:modified, which are xsd:dateTime values in feeds."""
        given = (DC["date"], DCTERMS["modified"])
        return frozenset(o for _, p, o in self.triples if p in given and isinstance(o, Variable))

    def kind(self, expression: Expression) -> str | None:
        """Return the type of an expression's value, such as ``a number``; ``None`` if uncertain."""
        if isinstance(expression, Literal):
            return _kind_of_datatype(expression.datatype)
        if isinstance(expression, NamedNode):
            return _RESOURCE
        expression = self._computed.get(expression, expression)
        if not isinstance(expression, Op):
            return self.kinds.get(expression)
        args = expression.args
        if expression.name in _ARITHMETIC:
            kinds = {self.kind(arg) for arg in args}
            return _NUMBER if kinds == {_NUMBER} else None
        if expression.name in ("if", "coalesce", "min", "max", "sample"):
            kinds = {self.kind(arg) for arg in args[expression.name == "if" :]}
            return kinds.pop() if len(kinds) == 1 else None
        if expression.name == "call" and isinstance(args[0], NamedNode):
            return _kind_of_datatype(args[0])
        return _KIND_OF_FUNCTION.get(expression.name)


def _kind_of_datatype(datatype: NamedNode) -> str | None:
    if datatype == RDF["langString"]:
        return _TEXT
    return _KIND_OF_DATATYPE.get(datatype.value.removeprefix(XSD.iri))


def _certain(found: Mapping[_Key, set[str | None]]) -> dict[_Key, str]:
    """Return the type of each key that has exactly one; ``None`` in `found` is an unknown type."""
    alone = ((key, next(iter(kinds))) for key, kinds in found.items() if len(kinds) == 1)
    return {key: kind for key, kind in alone if kind is not None}


class _Vocabularies:
    """The names that well-known vocabularies and an ontology define, to find misspelt terms."""

    def __init__(self, ontology: Ontology) -> None:
        self.ontology = ontology

    @cached_property
    def vocabularies(self) -> Mapping[str, Sequence[str]]:
        """The local names in each well-known namespace, by its IRI."""
        from rdflib import namespace as ns

        listed = (ns.RDF, ns.RDFS, ns.OWL, ns.SKOS, ns.XSD, ns.DC, ns.DCTERMS, ns.FOAF)
        found = {str(each): [term.removeprefix(str(each)) for term in dir(each)] for each in listed}
        for iri, names in _OWN_VOCABULARIES.items():
            found[iri] = [*found.get(iri, ()), *names.split()]
        return found

    @cached_property
    def mentioned(self) -> frozenset[Term]:
        """Every term that the ontology, its synonyms or its mapping functions name."""
        ontology, parser = self.ontology, SubscriptionParser()
        made: list[Term] = []
        for function in ontology.mapping:
            try:
                query = parser.query(function.name, function.text)
            except SubscriptionError:
                continue  # The engine raises this error.
            made += (term for term, _ in query.constants())
            made += (node for triple in query.template() for node in triple)
        named = (iri for _, iri in ontology.pairs.labels)
        return frozenset(chain(chain.from_iterable(ontology.stated), named, made))

    @cached_property
    def own(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """The local names in the ontology's own namespaces.

        The keys are ``class``, ``property`` or ``concept``, then the namespace. A namespace is the
        ontology's own if a term in it has a literal, or a link to another term in it. Many
        ontologies declare foreign terms, or put some above or below their own.
        """
        stated, root = self.ontology.stated, self.ontology.root
        subjects = {s: root(s) for s, _, _ in stated if isinstance(s, NamedNode)}
        described = {
            _namespace(s)
            for s, _, o in stated
            if isinstance(s, NamedNode)
            and (
                isinstance(o, Literal)
                or (isinstance(o, NamedNode) and _namespace(s) == _namespace(o))
            )
        }
        trees = {
            "class": self.ontology.classes,
            "property": self.ontology.properties,
            "concept": self.ontology.concepts,
        }
        found: dict[str, defaultdict[str, list[str]]] = {}
        for kind, tree in trees.items():
            found[kind] = defaultdict(list)
            for term in (s for s, s_root in subjects.items() if s_root in tree):
                if (namespace := _namespace(term)) in described:
                    found[kind][namespace].append(local_name(term))
        return found

    @cached_property
    def ranges(self) -> Mapping[Term, str]:
        """The type of each property's values, such as ``a number``, if its ranges determine it."""
        found: defaultdict[Term, set[str | None]] = defaultdict(set)
        for subject, _, object_ in self.ontology.of(RANGE):
            if isinstance(object_, NamedNode):
                found[subject].add(_kind_of_datatype(object_))
        return _certain(found)

    def is_known(self, term: NamedNode) -> bool:
        """Whether the ontology, its synonyms or its mapping functions contain a term."""
        return term in self.mentioned or self.ontology.root(term) != term


def _namespace(term: NamedNode) -> str:
    return term.value.removesuffix(local_name(term))


# -- rules ----------------------------------------------------------------------------------


def _unknown_terms(asked: _ParsedSubscription) -> Iterator[_Finding]:
    known = asked.known
    terms = dict.fromkeys(_places(asked))
    for term, kinds in terms:
        if known.is_known(term):
            continue
        shown, namespace, name = asked.show(term), _namespace(term), local_name(term)
        if (names := known.vocabularies.get(namespace)) is not None:
            if name not in names and not (namespace == RDF.iri and name[1:].isdecimal()):
                what = f"{shown}: {namespace} has no such term"
                yield what, _meant(asked, namespace, name, names)
            continue
        for kind in kinds:
            if (names := known.own[kind].get(namespace)) is not None:
                what = f"{shown}: the ontology has no such {kind}"
                yield what, _meant(asked, namespace, name, names)
                break


def _places(asked: _ParsedSubscription) -> Iterator[tuple[NamedNode, tuple[str, ...]]]:
    """Yield the IRIs and datatypes of a query, each with the kinds of terms allowed at its place.

    Kinds are ``class``, ``concept`` and ``property``; none if any term is allowed, or for a
    datatype.
    """
    for _, predicate, object_ in asked.triples:
        steps = predicate.walk() if isinstance(predicate, Op) else ()
        for step in (predicate, *chain.from_iterable(op.args for op in steps)):
            if isinstance(step, NamedNode):
                yield step, ("property",)
        if isinstance(object_, NamedNode):
            yield object_, ("class",) if predicate == TYPE else ("concept",)
        elif isinstance(object_, Literal):
            yield object_.datatype, ()
    for op in asked.ops:
        if op.name in _PATTERNS:
            continue
        kinds: tuple[str, ...] = ("concept",) if op.name in ("=", "in", "") else ()
        args = op.args
        if op.name == "call" and isinstance(args[0], NamedNode):
            if args[0].value.startswith(GM.iri):
                kinds = ("class", "concept", "property")
            args = args[1:]
        for arg in args:
            if isinstance(arg, NamedNode):
                yield arg, kinds
            elif isinstance(arg, Literal):
                yield arg.datatype, ()


def _meant(asked: _ParsedSubscription, namespace: str, name: str, names: Sequence[str]) -> str:
    found = _closest(name, names)
    if found is None:
        return "Look up its name."
    return f"Did you mean {asked.show(NamedNode(namespace + found))}?"


def _closest(name: str, names: Iterable[str]) -> str | None:
    by_letters = {other.casefold(): other for other in names}
    found = get_close_matches(name.casefold(), by_letters, 1, 0.7)
    return by_letters[found[0]] if found else None


def _unbound(asked: _ParsedSubscription) -> Iterator[_Finding]:
    for variable, where, bound in () if asked.tree is None else unbound(asked.tree):
        place = "that is selected" if where is None else f"in {asked.show(where)}"
        place = "here" if where is variable else place
        found = _closest(variable.value, sorted(v.value for v in bound))
        remedy = f"Did you mean ?{found}?" if found else "Name one that the pattern binds."
        yield f"nothing binds {variable} {place}", remedy


def _comparisons(asked: _ParsedSubscription) -> Iterator[_Finding]:
    for op in asked.ops:
        if op.name not in ("=", "<", ">", "<=", ">=", "in"):
            continue
        one, *others = op.args
        for other in others:
            for left, right in ((one, other), (other, one)):
                if (why := _incomparable(asked, left, right, op.name)) is not None:
                    what, remedy = why
                    yield f"{asked.show(op)}: {what}", remedy
                    break


def _incomparable(
    asked: _ParsedSubscription, one: Expression, other: Expression, operator: str
) -> tuple[str, str] | None:
    """Return the mistake and the remedy if two values never compare; otherwise ``None``.

    The caller tries both orders, because some mistakes are found only if a constant is `other`.
    """
    kinds = asked.kind(one), asked.kind(other)
    is_ordered = operator not in ("=", "in") and kinds[1] == _NUMBER
    if is_ordered and isinstance(other, Literal) and not value_of(other) and _has_value(other):
        what = f"{asked.show(other)} has too many digits to be compared"
        return what, "Write a floating-point number: 1e20."
    if one in asked.dates and kinds[1] == _DATE:
        what = f"feeds give {asked.show(one)} as an xsd:dateTime, which no xsd:date compares with"
        return what, f"Write {_at_midnight(other)}."
    is_text = isinstance(other, Literal) and kinds == (None, _TEXT) and one not in asked.dates
    if is_text and operator not in ("=", "in") and isinstance(one, Variable):
        assert isinstance(other, Literal)
        if value_of(Literal(other.value, datatype=XSD["double"])) is not None:
            what = f"{asked.show(other)} is a text, and no number compares with it"
            return what, f"Write {other.value} without quotation marks."
        if isinstance(value_of(Literal(other.value, datatype=XSD["date"])), Instant):
            what = f"{asked.show(other)} is a text, and no date or time compares with it"
            return what, f"Write {_at_midnight(other)}, or xsd:date where the data has dates."
    if None in kinds or kinds[0] == kinds[1]:
        return None
    if _RESOURCE in kinds and isinstance(other if kinds[0] == _RESOURCE else one, Variable):
        return None  # A value that is usually a text may also be an IRI.
    what = f"{asked.show(one)} is {kinds[0]}, and {asked.show(other)} is {kinds[1]}"
    return what, _remedy(kinds, other)


def _remedy(kinds: tuple[str | None, str | None], other: Expression) -> str:
    if kinds[0] == _INSTANT and isinstance(other, Literal):
        return f"Write {_at_midnight(other)}."
    if kinds == (_NUMBER, _TEXT) and isinstance(other, Literal):
        return "Write the number without quotation marks."
    return "Compare values of one kind."


def _at_midnight(other: Expression) -> str:
    text = other.value if isinstance(other, Literal) else ""
    date = isinstance(value_of(Literal(text, datatype=XSD["date"])), Instant)
    return f'"{text[:10] if date else "2026-01-31"}T00:00:00Z"^^xsd:dateTime'


def _arithmetic(asked: _ParsedSubscription) -> Iterator[_Finding]:
    for op in asked.ops:
        if op.name not in _ARITHMETIC or len(op.args) < 2:
            continue
        kinds = tuple(map(asked.kind, op.args))
        if None in kinds or set(kinds) == {_NUMBER} or _DURATION in kinds:
            continue
        if op.name == "-" and kinds[0] == kinds[1] in (_INSTANT, _DATE):
            continue
        what = f"{asked.show(op)}: {kinds[0]} {op.name} {kinds[1]} has no value"
        remedy = "Calculate with numbers."
        if kinds[0] in (_INSTANT, _DATE) and op.name in "+-":
            remedy = f'Write a duration, such as {op.name} "P7D"^^xsd:dayTimeDuration.'
        yield what, remedy


def _literals(asked: _ParsedSubscription) -> Iterator[_Finding]:
    uses: list[tuple[Expression, Sequence[object]]] = [(p, (o,)) for _, p, o in asked.triples]
    uses += (
        (op, op.args) for op in asked.ops if op.name in _KIND_OF_FUNCTION or op.name in _ARITHMETIC
    )
    for use, args in uses:
        for arg in args:
            if not isinstance(arg, Literal) or _has_value(arg):
                continue
            if _kind_of_datatype(arg.datatype) in (_NUMBER, _INSTANT, _DATE, _TRUTH):
                what = f"{asked.show(use)}: {asked.show(arg)} has no value"
                remedy = "Write a value of its datatype."
                if _kind_of_datatype(arg.datatype) == _INSTANT:
                    remedy = f"Write {_at_midnight(arg)}."
                yield what, remedy


def _has_value(literal: Literal) -> bool:
    """Whether a literal is valid for its datatype, regardless of its number of digits."""
    if value_of(literal) is not None:
        return True
    shorter = _MORE_DIGITS.sub("", literal.value)
    return value_of(Literal(shorter, datatype=literal.datatype)) is not None


def _regexes(asked: _ParsedSubscription) -> Iterator[_Finding]:
    for op in asked.ops:
        if op.name not in ("regex", "replace"):
            continue
        flags_at = 2 if op.name == "regex" else 3
        pattern, flags = op.args[1], op.args[flags_at] if len(op.args) > flags_at else Literal("")
        if isinstance(pattern, Literal) and isinstance(flags, Literal):
            regex = f"{pattern}, {flags}"  # The evaluator's syntax.
            solutions = Store().query(f'SELECT (REGEX("", {regex}) AS ?read) {{}}')
            assert isinstance(solutions, QuerySolutions)
            if any(solution["read"] is None for solution in solutions):
                what = f"{asked.show(op)}: its regular expression or flags can't be read"
                yield what, "Correct it; look-around and back references are not supported."


def _contradictions(asked: _ParsedSubscription) -> Iterator[_Finding]:
    """Yield the first two filters of each variable, in each branch, that exclude each other.

    IRIs are compared only with each other, by their roots.
    """
    root, prefixes = asked.known.ontology.root, asked.known.ontology.prefixes

    def excludes(one: Comparison, other: Comparison) -> bool:
        if isinstance(one.constant, NamedNode) and isinstance(other.constant, NamedNode):
            return root(one.constant) != root(other.constant)
        kind = _value_kind(one.constant)
        is_same = kind is not None and kind == _value_kind(other.constant)
        return is_same and (_is_above(one, other) or _is_above(other, one))

    for branch in asked.subscription.branches:
        listed: defaultdict[Variable, list[tuple[Filter, list[Comparison]]]] = defaultdict(list)
        for filter_ in branch.filters:
            tests = filter_.tests if isinstance(filter_, AnyOf) else (filter_,)
            comparisons = [test for test in tests if isinstance(test, Comparison)]
            if len(comparisons) == len(tests):
                listed[filter_.variable].append((filter_, comparisons))
        for several in listed.values():
            for (one, some), (other, others) in combinations(several, 2):
                if all(excludes(a, b) for a in some for b in others):
                    what = f"{one.write(prefixes)} and {other.write(prefixes)} can't both hold"
                    yield what, "Use || if one of them is enough."
                    break


def _value_kind(constant: NamedNode | Literal) -> object:
    """Return a key that is equal for constants with a common order; ``None`` if it has none."""
    if isinstance(constant, NamedNode):
        return None
    value = value_of(constant)
    return (value.kind, value.zoned) if isinstance(value, Instant) else value and type(value)


def _is_above(one: Comparison, other: Comparison) -> bool:
    """Whether all values that `one` allows are above all values that `other` allows."""
    if one.operator in (ComparisonOperator.LT, ComparisonOperator.LE) or other.operator in (
        ComparisonOperator.GT,
        ComparisonOperator.GE,
    ):
        return False
    is_open = one.operator is ComparisonOperator.GT or other.operator is ComparisonOperator.LT
    return compare(
        one.constant, ComparisonOperator.GE if is_open else ComparisonOperator.GT, other.constant
    )


def _unread(asked: _ParsedSubscription) -> Iterator[_Finding]:
    if asked.tree is None:
        what = "too long, or nested too deeply: mistakes in its expressions are not looked for"
        yield what, "Write it as several subscriptions, or with fewer brackets."


def _everything(asked: _ParsedSubscription) -> Iterator[_Finding]:
    subscription = asked.subscription
    if _HARMLESS.issuperset(subscription.remainder):
        for branch in subscription.branches:
            if not branch.filters and _is_met_by_all(branch.patterns):
                prefixes = asked.known.ontology.prefixes
                patterns = " . ".join(pattern.write(prefixes) for pattern in branch.patterns)
                what = f"{patterns} is in every publication, or nearly every feed item"
                yield what, "Add a condition that only the wanted publications satisfy."


def _is_met_by_all(patterns: Sequence[TriplePattern]) -> bool:
    """Whether patterns have one subject and match nearly every feed item or publication."""
    used = Counter(node for p in patterns for node in (p.predicate, p.object))
    return len({p.subject for p in patterns}) == 1 and all(
        isinstance(p.subject, Variable)
        and p.subject not in used
        and (isinstance(p.predicate, Variable) or p.predicate in _USUAL)
        and (
            (p.predicate, p.object) == (TYPE, RSS["item"])
            or (isinstance(p.object, Variable) and used[p.object] == 1)
        )
        for p in patterns
    )


_RULES: Mapping[str, Callable[[_ParsedSubscription], Iterator[_Finding]]] = {
    "unknown-term": _unknown_terms,
    "unbound-variable": _unbound,
    "never-comparable": _comparisons,
    "no-arithmetic": _arithmetic,
    "invalid-literal": _literals,
    "invalid-regex": _regexes,
    "contradictory-filters": _contradictions,
    "not-examined": _unread,
    "matches-everything": _everything,
}
CODES = (*_RULES, "duplicate")
"""The codes of all warnings; docs/reference/errors.md explains them."""
