"""A linter for subscriptions: it finds valid queries that are probably mistakes.

`lint` warns of conditions that can never match (a term that no vocabulary has, a comparison that is
always an error, patterns in two named graphs, a count of feed items), of numbers without a unit,
and of duplicates. Each warning has a code; `CODES` lists them. It ignores terms in namespaces that
neither the ontology nor a well-known vocabulary defines, because publications may introduce them.

Cost: about 0.5 ms for each query. Therefore `graphmatch check` and `Engine.lint` run it, but
subscribing does not. A query that is too large for `graphmatch.parse_tree` gets only a warning that
says so.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from itertools import chain
from typing import TypeAlias

from pyoxigraph import Literal, NamedNode, QuerySolutions, Store, Variable

from graphmatch.parse_tree import Expression, Op, definitions, parse_tree, unbound
from graphmatch.subscription import Query, Subscription, SubscriptionParser
from semantic.errors import Place, Problem, Severity, SubscriptionError
from semantic.ontology.ontology import Ontology
from semantic.terms import Term, compact, local_name
from semantic.units.quantities import UnitError
from semantic.values import value_of
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
_ORDERED = ("<", ">", "<=", ">=")
_COMPARING = ("=", "in", *_ORDERED)
_NEGATED = {"=": "!=", "in": "NOT IN", "exists": "NOT EXISTS"}
_PROPERTY_PATHS = ("alt", "seq", "notoneof", "reverse", "path*", "path+", "path?")

_TEXTS_OF_ITEMS = (
    *(RSS["title"], RSS["description"], CONTENT["encoded"], DC["creator"], DC["subject"]),
    *(DC["language"], DCTERMS["identifier"], ENCLOSURE["type"]),
)
_OF_ITEMS: Mapping[Expression, str] = {
    **dict.fromkeys(_TEXTS_OF_ITEMS, _TEXT),
    **dict.fromkeys((DC["date"], DCTERMS["modified"]), _INSTANT),
    ENCLOSURE["length"]: _NUMBER,
}
"""The kinds of values in feed items: docs/reference/feeds.md."""
_ONCE = (RSS["title"], RSS["link"], RSS["description"], CONTENT["encoded"], DC["date"])
"""Properties with one value per item."""
_ONLY_ITEMS = frozenset({*_ONCE[:4], ENCLOSURE["enclosure"], RSS["item"]})
"""Properties, and a class, that only feed items have."""

_OWN_VOCABULARIES: Mapping[str, str] = {
    RSS.iri: "item items channel title link description image textinput name url",
    CONTENT.iri: "encoded items item format encoding",
    ENCLOSURE.iri: "enclosure url type length",
    RDF.iri: "reifies dirLangString li",
}
"""Terms that rdflib's vocabularies lack."""

_DATE_FORM = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_VARIABLE = re.compile(r'"(?:[^"\\]|\\.)*"|<[^<>\s]*>|([?$]\w+|_:\w+)')
"""A variable or blank node; texts and IRIs match first, because they may contain ``?``."""


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


class Linter:
    """Checks subscriptions one by one for probable mistakes.

    Parameters
    ----------
    ontology
        The ontology for matching; the linter warns of unknown terms in its namespaces.

    Examples
    --------
    >>> query = "SELECT ?item { ?item rss:title ?title FILTER(CONTAINS(?titel, 'x')) }"
    >>> subscription = SubscriptionParser().parse("alice", query)
    >>> for warning in Linter(Ontology()).lint(subscription):
    ...     print(warning.code, warning)
    unbound-variable alice: nothing binds ?titel in CONTAINS(?titel, "x"). Did you mean ?title?
    """

    def __init__(self, ontology: Ontology) -> None:
        self._known = _Vocabularies(ontology)
        self._first: dict[str, str] = {}

    def lint(self, subscription: Subscription) -> tuple[LintWarning, ...]:
        """Return a warning for each probable mistake in a subscription.

        The linter remembers the query, to find later duplicates of it.
        """
        tree = parse_tree(subscription.query)
        if tree is None:
            what = "too long, or nested too deeply: mistakes are not looked for"
            remedy = "Write it as several subscriptions, or with fewer brackets."
            found = [("not-examined", what, remedy)]
        else:
            asked = _ParsedQuery(subscription.query, tree, self._known)
            found = [(code, *each) for code, rule in _RULES.items() for each in rule(asked)]
        first = self._first.setdefault(_same(subscription.query.text), subscription.id)
        if first != subscription.id:
            what = f"it asks the same as {first}, but for names of variables and layout"
            found.append(("duplicate", what, "Keep one of the two."))
        place = Place(subscription.id)
        return tuple(
            LintWarning(what, place, remedy, code=code, other=first if code == "duplicate" else "")
            for code, what, remedy in dict.fromkeys(found)
        )


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


class _ParsedQuery:
    """A query as the rules in `_RULES` read it: its operators, triples and types."""

    def __init__(self, query: Query, tree: Op, known: _Vocabularies) -> None:
        self.query, self.tree = query, tree
        self.known = known
        self.ops = tuple(tree.walk())

    def show(self, expression: Expression) -> str:
        """Return an expression as SPARQL, for warnings."""
        expression = self._computed.get(expression, expression)
        if isinstance(expression, str):
            return expression
        if not isinstance(expression, Op):
            return compact(expression, self.known.ontology.prefixes)
        name, args = expression.name, expression.args
        first = args[0] if args else None
        if name == "!" and isinstance(first, Op) and first.name in _NEGATED:
            name, args = _NEGATED[first.name], first.args
        if name in ("exists", "NOT EXISTS"):
            return f"{name.upper()} {{ … }}"
        shown = list(map(self.show, args))
        if name in ("in", "NOT IN"):
            return f"{shown[0]} {name.upper()} ({', '.join(shown[1:])})"
        if name == "call":
            return f"{shown[0]}({', '.join(shown[1:])})"
        if name in ("triple", "path"):
            return " ".join(shown)
        if name[:1].isalpha():
            text = ", ".join(shown).replace("distinct, ", "DISTINCT ")
            return f"{name.upper()}({text or '*' * (name == 'count')})"
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
        """All triple patterns and paths."""
        return [op.args for op in self.ops if op.name in ("triple", "path")]

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
    def kinds(self) -> Mapping[Expression, set[str | None]]:
        """The types of each variable's values, such as ``a number``; ``None`` is an unknown one."""
        found: defaultdict[Expression, set[str | None]] = defaultdict(set)
        for subject, predicate, object_ in self.triples:
            if isinstance(object_, Variable):
                found[object_].add(self._kind_of_object(subject, predicate))
        for op in self.ops:
            if op.name in ("extend", "vars"):  # The kind may depend on other kinds.
                for variable in definitions(op.args[0]) if op.name == "extend" else op.args:
                    found[variable].add(None)
        return found

    def _kind_of_object(self, subject: Expression, predicate: Expression) -> str | None:
        if not isinstance(predicate, NamedNode):
            return None
        if subject in self.items and predicate in _OF_ITEMS:
            return _OF_ITEMS[predicate]
        return _only(self.known.ranges.get(self.known.ontology.root(predicate), set()))

    def kind(self, expression: Expression) -> str | None:
        """Return the type of an expression's value, such as ``a number``; ``None`` if uncertain."""
        if isinstance(expression, Literal):
            return _kind_of_datatype(expression.datatype)
        if isinstance(expression, NamedNode):
            return _RESOURCE
        expression = self._computed.get(expression, expression)
        if not isinstance(expression, Op):
            return _only(self.kinds.get(expression, set()))
        args = expression.args
        if expression.name in _ARITHMETIC:
            return _NUMBER if {self.kind(arg) for arg in args} == {_NUMBER} else None
        if expression.name in ("if", "coalesce", "min", "max", "sample"):
            return _only({self.kind(arg) for arg in args[expression.name == "if" :]})
        if expression.name == "call" and isinstance(args[0], NamedNode):
            return _kind_of_datatype(args[0])
        return _KIND_OF_FUNCTION.get(expression.name)


def _kind_of_datatype(datatype: NamedNode) -> str | None:
    if datatype == RDF["langString"]:
        return _TEXT
    return _KIND_OF_DATATYPE.get(datatype.value.removeprefix(XSD.iri))


def _only(kinds: set[str | None]) -> str | None:
    """Return the type that values have for certain; ``None`` in `kinds` is an unknown type."""
    return next(iter(kinds)) if len(kinds) == 1 else None


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
            with suppress(SubscriptionError):  # The engine raises this error.
                query = parser.query(function.name, function.text)
                made += (term for term, _ in query.constants())
                made += (node for triple in query.template() for node in triple)
        named = (iri for _, iri in ontology.pairs.labels)
        return frozenset(chain(chain.from_iterable(ontology.stated), named, made))

    @cached_property
    def own(self) -> Mapping[tuple[str, str], Sequence[str]]:
        """The local names in the ontology's own namespaces.

        The keys are ``class``, ``property`` or ``concept``, and the namespace. A namespace is the
        ontology's own if a term in it has a literal, or a link to another term in it. Many
        ontologies declare foreign terms, or put some above or below their own.
        """
        known = self.ontology
        named = [(s, o) for s, _, o in known.stated if isinstance(s, NamedNode)]
        described = {
            _namespace(s)
            for s, o in named
            if isinstance(o, Literal)
            or (isinstance(o, NamedNode) and _namespace(s) == _namespace(o))
        }
        trees = {"class": known.classes, "property": known.properties, "concept": known.concepts}
        found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for term in dict.fromkeys(s for s, _ in named if _namespace(s) in described):
            for kind, tree in trees.items():
                if known.root(term) in tree:
                    found[kind, _namespace(term)].append(local_name(term))
        return found

    @cached_property
    def ranges(self) -> Mapping[Term, set[str | None]]:
        """The types of each property's values, such as ``a number``, by its ranges."""
        found: defaultdict[Term, set[str | None]] = defaultdict(set)
        for subject, _, object_ in self.ontology.of(RANGE):
            if isinstance(object_, NamedNode):
                found[subject].add(_kind_of_datatype(object_))
        return found


def _namespace(term: NamedNode) -> str:
    return term.value.removesuffix(local_name(term))


# -- rules ----------------------------------------------------------------------------------


def _unknown_terms(asked: _ParsedQuery) -> Iterator[_Finding]:
    known = asked.known
    for term, kinds in dict.fromkeys(chain.from_iterable(map(_places, asked.ops))):
        if term in known.mentioned or known.ontology.root(term) != term:
            continue
        shown, namespace, name = asked.show(term), _namespace(term), local_name(term)
        if (names := known.vocabularies.get(namespace)) is not None:
            if name not in names and not (namespace == RDF.iri and name[1:].isdecimal()):
                what = f"{shown}: {namespace} has no such term"
                yield what, _meant(asked, namespace, name, names)
            continue
        for kind in kinds:
            if (names := known.own.get((kind, namespace))) is not None:
                what = f"{shown}: the ontology has no such {kind}"
                yield what, _meant(asked, namespace, name, names)
                break


def _places(op: Op) -> Iterator[tuple[NamedNode, tuple[str, ...]]]:
    """Yield the IRIs and datatypes of an operator, each with the kinds of terms at its place.

    Kinds are ``class``, ``concept`` and ``property``; none if any term is allowed, or for a
    datatype.
    """
    args: list[tuple[Expression, tuple[str, ...]]]
    match op.name:
        case "triple" | "path":
            _, predicate, object_ = op.args
            kind = "class" if predicate == TYPE else "concept"
            args = [(predicate, ("property",)), (object_, (kind,))]
        case "=" | "in" | "":
            args = [(arg, ("concept",)) for arg in op.args]
        case "call":
            is_own = isinstance(op.args[0], NamedNode) and op.args[0].value.startswith(GM.iri)
            args = [(arg, ("class", "concept", "property") * is_own) for arg in op.args[1:]]
        case name:
            args = [(arg, ("property",) * (name in _PROPERTY_PATHS)) for arg in op.args]
    for arg, kinds in args:
        if isinstance(arg, NamedNode):
            yield arg, kinds
        elif isinstance(arg, Literal):
            yield arg.datatype, ()


def _meant(asked: _ParsedQuery, namespace: str, name: str, names: Sequence[str]) -> str:
    found = _closest(name, names)
    shown = asked.show(NamedNode(namespace + found)) if found else ""
    return f"Did you mean {shown}?" if found else "Look up its name."


def _closest(name: str, names: Iterable[str]) -> str | None:
    by_letters = {other.casefold(): other for other in names}
    found = get_close_matches(name.casefold(), by_letters, 1, 0.7)
    return by_letters[found[0]] if found else None


def _unbound(asked: _ParsedQuery) -> Iterator[_Finding]:
    for variable, where, bound in unbound(asked.tree):
        place = "that is selected" if where is None else f"in {asked.show(where)}"
        place = "here" if where is variable else place
        found = _closest(variable.value, sorted(v.value for v in bound))
        remedy = f"Did you mean ?{found}?" if found else "Name one that the pattern binds."
        yield f"nothing binds {variable} {place}", remedy


def _comparisons(asked: _ParsedQuery) -> Iterator[_Finding]:
    for op in asked.ops:
        for other in op.args[1:] if op.name in _COMPARING else ():
            if (found := _incomparable(asked, op.args[0], other, op.name)) is not None:
                what, remedy = found
                yield f"{asked.show(op)}: {what}", remedy


def _incomparable(
    asked: _ParsedQuery, one: Expression, other: Expression, operator: str
) -> _Finding | None:
    """Return the mistake and the remedy if two values never compare; otherwise ``None``."""
    if isinstance(one, Literal):
        one, other = other, one
    kinds, shown = (asked.kind(one), asked.kind(other)), asked.show(other)
    text = other.value if isinstance(other, Literal) else ""
    is_quoted = kinds[1] == _TEXT and value_of(Literal(text, datatype=XSD["double"])) is not None
    remedy = f"Write {text} without quotes." if is_quoted else "Compare values of one kind."
    if is_quoted and kinds[0] is None and operator in _ORDERED and isinstance(one, Variable):
        return f"{shown} is a text, and no number compares with it", remedy
    if None in kinds or kinds[0] == kinds[1]:
        return None
    if _RESOURCE in kinds and isinstance(other if kinds[0] == _RESOURCE else one, Variable):
        return None  # A value that is usually a text may also be an IRI.
    if kinds[0] == _INSTANT and text:
        remedy = f"Write {_at_midnight(text)}."
    return f"{asked.show(one)} is {kinds[0]}, and {shown} is {kinds[1]}", remedy


def _at_midnight(text: str) -> str:
    date = _DATE_FORM.match(text)
    return f'"{date[0] if date else "2026-01-31"}T00:00:00Z"^^xsd:dateTime'


def _arithmetic(asked: _ParsedQuery) -> Iterator[_Finding]:
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


def _literals(asked: _ParsedQuery) -> Iterator[_Finding]:
    for op in asked.ops:
        for arg in op.args:
            if not isinstance(arg, Literal) or value_of(arg) is not None:
                continue
            kind = _kind_of_datatype(arg.datatype)
            is_long = kind == _NUMBER and len(arg.value) > 18  # It may be valid.
            if kind in (_NUMBER, _INSTANT, _DATE, _TRUTH) and not is_long:
                remedy = "Write a value of its datatype."
                if kind == _INSTANT:
                    remedy = f"Write {_at_midnight(arg.value)}."
                yield f"{asked.show(op)}: {asked.show(arg)} has no value", remedy


def _regexes(asked: _ParsedQuery) -> Iterator[_Finding]:
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


def _graphs(asked: _ParsedQuery) -> Iterator[_Finding]:
    names = {op.args[0] for op in asked.ops if op.name == "graph"}
    for op in asked.ops:
        different = sorted(_graph_names(op), key=str)
        if op.name == "!" and op.ops and op.ops[0].name == "=" and names.issuperset(op.ops[0].args):
            different = [*op.ops[0].args]
        if len(different) > 1:
            one, other = map(asked.show, different[:2])
            what = f"{one} and {other} cannot be two graphs, because a publication is one"
            yield what, "Use one name, or leave GRAPH out."
            return


def _graph_names(op: Op) -> set[Expression]:
    """Return the names of the graphs that all solutions of an operator need."""
    parts = op.ops
    match op.name:
        case "union":
            return set.intersection(*map(_graph_names, parts))
        case "leftjoin" | "minus":
            parts = parts[:1]
        case "join" | "graph":
            pass
        case _:
            parts = parts[-1:]
    names = {op.args[0]} if op.name == "graph" and isinstance(op.args[0], NamedNode) else set()
    return names.union(*map(_graph_names, parts))


def _numbers_without_unit(asked: _ParsedQuery) -> Iterator[_Finding]:
    units, root = asked.known.ontology.units, asked.known.ontology.root
    terms = [root(term) if replaced else term for term, replaced in asked.query.constants()]
    patterns = asked.query.measurable() if units.concern(terms) else []
    try:
        named = units.named_units(terms, patterns)
    except UnitError:
        return  # Such a query is refused.
    for _, place, constants in patterns:
        given = units.declarations.unit_attributes.get(terms[place])
        compared = [terms[constant] for constant, _ in constants]
        numbers = [asked.show(term) for term in compared if asked.kind(term) == _NUMBER]
        if given and numbers and place not in named and units.base_unit(terms[place]) is None:
            what = f"{asked.show(terms[place])} is compared with {', '.join(numbers)}"
            yield f"{what} without a unit", f"Add a pattern with {asked.show(given[0])}."


def _aggregates(asked: _ParsedQuery) -> Iterator[_Finding]:
    once = {o: s for s, p, o in asked.triples if p in _ONCE and s in asked.items}
    for group in asked.ops:
        if group.name != "group":
            continue
        grouped, pairs = group.ops[:2]
        for op in chain.from_iterable(pair.ops for pair in pairs.ops):
            over = next((arg for arg in op.args if isinstance(arg, Variable)), None)
            item = None if over is None else once.get(over, over)
            if item in asked.items and item not in grouped.args:
                what = f"{asked.show(op)} is over one feed item: each is a publication of its own"
                yield what, f"Group by {asked.show(item)} if it is about one item's values."


_RULES: Mapping[str, Callable[[_ParsedQuery], Iterator[_Finding]]] = {
    "unknown-term": _unknown_terms,
    "unbound-variable": _unbound,
    "never-comparable": _comparisons,
    "no-arithmetic": _arithmetic,
    "invalid-literal": _literals,
    "invalid-regex": _regexes,
    "two-graphs": _graphs,
    "number-without-unit": _numbers_without_unit,
    "aggregate-of-one-item": _aggregates,
}
CODES = (*_RULES, "not-examined", "duplicate")
"""The codes of all warnings; docs/reference/errors.md explains them."""
