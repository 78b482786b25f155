"""Generated SPARQL: the engine agrees with pyoxigraph, and each solution satisfies a branch.

The queries are drawn from SPARQL's grammar, so the tests compare rdflib's parser, which the
analysis uses, with pyoxigraph, which evaluates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hypothesis import event, given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, QueryBoolean, QuerySolutions, Store

from graphmatch import Engine
from semantic import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import XSD

NAME = "http://e/publication"
PREFIXES = {"e": "http://e/"}


def e(name: str) -> NamedNode:
    return NamedNode(f"http://e/{name}")


NODES = tuple(map(e, "abc"))
VALUES: tuple[Term, ...] = (
    *(Literal(str(n), datatype=XSD["integer"]) for n in (-5, 1, 2, 5)),
    Literal("x"),
    Literal("x", language="en"),
    Literal("1.5", datatype=XSD["decimal"]),
    Literal("true", datatype=XSD["boolean"]),
)
PROPERTIES = tuple(map(e, "pqr"))

triples = st.tuples(
    st.sampled_from(NODES), st.sampled_from(PROPERTIES), st.sampled_from((*NODES, *VALUES))
)
graphs = st.lists(triples, min_size=4, max_size=14, unique=True)

variables = st.sampled_from(("?x", "?y", "?z", "$w"))
properties = st.sampled_from(("e:p", "e:q", "<http://e/r>"))
# Without +5: in a pattern, pyoxigraph reads the sign as part of the path, not of the number.
constants = st.sampled_from(
    ("e:a", "e:b", "1", "5", "-5", '"x"', "'x'@en", "1.5", "true", '"""x"""')
)
space = st.sampled_from((" ", " ", "", "\n", " # a } comment\n"))


@st.composite
def paths(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(st.sampled_from(("iri",) * 3 + ("seq", "alt", "inv", "mod", "neg", "group")))
    if kind == "iri" or depth == 0:
        return draw(properties)
    inner = paths(depth - 1)
    match kind:
        case "seq":
            return f"{draw(inner)}{draw(space)}/{draw(inner)}"
        case "alt":
            return f"{draw(inner)}|{draw(inner)}"
        case "inv":
            return f"^({draw(inner)})" if draw(st.booleans()) else f"^{draw(properties)}"
        case "mod":
            modifier = draw(st.sampled_from(("*", "+", "?", " +", " *")))
            return f"({draw(inner)}){modifier}" if draw(st.booleans()) else f"{draw(properties)}+"
        case "neg":
            return draw(st.sampled_from(("!e:p", "!(e:p|e:q)", "!^e:p", "!(e:p|^e:q)")))
    return f"({draw(inner)})"


@st.composite
def operands(draw: st.DrawFn, depth: int) -> str:
    kind = draw(st.sampled_from(("var",) * 4 + ("constant",) * 3 + ("sum", "call", "group")))
    if kind == "var":
        return draw(variables)
    if kind == "constant" or depth == 0:
        return draw(constants)
    inner = operands(depth - 1)
    match kind:
        case "sum":
            sign = draw(st.sampled_from(("+", " + ", " -", "-", " * ", "*")))
            left = draw(inner)
            if left.endswith("@en"):
                left += " "  # The parser would read a sign after it as part of the tag.
            return f"{left}{sign}{draw(st.sampled_from(('1', '5', '?x')))}"
        case "call":
            return draw(
                st.sampled_from(("STR(?x)", "STRLEN(?y)", "COALESCE(?w, ?x, 1)", "IF(?x=1,?y,5)"))
            )
    return f"({draw(inner)})"


@st.composite
def expressions(draw: st.DrawFn, depth: int = 2) -> str:
    kind = draw(
        st.sampled_from(
            ("compare",) * 4
            + ("in", "text", "text", "and", "and", "or", "not", "bound", "exists", "group", "is")
        )
    )
    if kind == "compare" or depth == 0:
        operator = draw(st.sampled_from(("=", "!=", "< ", ">", "<= ", ">=", " < ", " = ")))
        return f"{draw(operands(depth))}{operator}{draw(operands(depth))}"
    inner = expressions(depth - 1)
    match kind:
        case "in":
            few = ", ".join(draw(st.lists(constants, max_size=3)))
            return f"{draw(variables)} {draw(st.sampled_from(('IN', 'NOT IN')))} ({few})"
        case "and":
            return f"{draw(inner)}{draw(st.sampled_from(('&&', ' && ')))}{draw(inner)}"
        case "or":
            return f"{draw(inner)} || {draw(inner)}"
        case "not":
            return f"!{draw(st.sampled_from(('?x', 'BOUND(?z)', '(?x = ?y)', 'isIRI(?y)')))}"
        case "bound":
            return f"BOUND({draw(variables)})"
        case "exists":
            word = draw(st.sampled_from(("EXISTS", "NOT EXISTS")))
            return f"{word} {{ {draw(basic())} }}"
        case "is":
            return draw(
                st.sampled_from(("isLiteral(?x)", "sameTerm(?x, ?y)", "?x", "regex(?x,'x')"))
            )
        case "text":
            function = draw(st.sampled_from(("CONTAINS", "STRSTARTS", "strends", "langMatches")))
            looked_at = draw(st.sampled_from(("?x", "STR(?y)", "LCASE(?x)", "LANG(?y)")))
            constant = draw(st.sampled_from(("'x'", "'X'@en", "UCASE('x')", "'en'", "?y", "5")))
            return f"{function}({looked_at}, {constant})"
    return f"({draw(inner)})"


@st.composite
def objects(draw: st.DrawFn) -> str:
    kind = draw(st.sampled_from(("var",) * 5 + ("constant",) * 3 + ("blank", "property list")))
    match kind:
        case "var":
            return draw(variables)
        case "constant":
            return draw(constants)
        case "blank":
            return "[]"
    return f"[ {draw(properties)} {draw(variables)} ]"


@st.composite
def basic(draw: st.DrawFn) -> str:
    subject = draw(st.sampled_from(("?x", "?y", "?z", "$w", "e:a", "[]")))
    pairs = []
    for _ in range(draw(st.integers(1, 2))):
        verb = draw(st.one_of(properties, properties, paths(), variables))
        comma = draw(st.sampled_from((",", " , ")))
        several = draw(st.lists(objects(), min_size=1, max_size=2))
        pairs.append(f"{verb} {comma.join(several)}")
    joint = draw(st.sampled_from((";", " ; ", " ;; ")))
    return f"{subject} {joint.join(pairs)}{draw(st.sampled_from(('.', ' .', ' ; .')))}"


@st.composite
def parts(draw: st.DrawFn, depth: int) -> str:
    kinds = ("basic", "filter", "filter", "optional", "union", "minus", "group", "bind", "values")
    kind = draw(st.sampled_from((*kinds, "graph", "subquery", "subquery")))
    if kind == "basic" or (depth == 0 and kind not in ("filter", "values")):
        return draw(basic())
    match kind:
        case "filter":
            return f"FILTER{draw(space)}({draw(expressions())})"
        case "optional":
            return f"OPTIONAL {draw(groups(depth - 1))}"
        case "union":
            more = draw(st.lists(groups(depth - 1), min_size=2, max_size=3))
            return " UNION ".join(more)
        case "minus":
            return f"MINUS {draw(groups(depth - 1))}"
        case "bind":
            return f"BIND({draw(operands(1))} AS ?b{draw(st.integers(0, 99))})"
        case "values":
            return draw(
                st.sampled_from(
                    ("VALUES ?x { e:a 1 }", "VALUES (?x ?y) { (e:a 1) (UNDEF -5) (e:b UNDEF) }")
                )
            )
        case "graph":
            return f"GRAPH {draw(st.sampled_from(('?g', f'<{NAME}>')))} {draw(groups(depth - 1))}"
        case "subquery":
            head = draw(
                st.sampled_from(
                    (
                        "SELECT ?x",
                        "SELECT DISTINCT ?x ?y",
                        "SELECT *",
                        "SELECT (?y AS ?n)",
                        "SELECT (COUNT(?y) AS ?n)",
                        "SELECT ?x (COUNT(*) AS ?n)",
                    )
                )
            )
            tail = " GROUP BY ?x" if head.endswith("(COUNT(*) AS ?n)") else ""
            return f"{{ {head} {{ {draw(basic())} {draw(parts(0))} }}{tail} }}"
    return draw(groups(depth - 1))


@st.composite
def groups(draw: st.DrawFn, depth: int = 2) -> str:
    inside = draw(st.lists(parts(depth), min_size=1, max_size=3))
    if draw(st.booleans()):
        inside.insert(draw(st.integers(0, len(inside))), draw(basic()))
    return "{ " + " ".join(inside) + " }"


@st.composite
def queries(draw: st.DrawFn) -> str:
    """Draw a query with a plain triple pattern, so that each solution uses a triple."""
    group = draw(groups())
    required = f"{draw(st.sampled_from(('?x', '?y')))} {draw(properties)} {draw(variables)} . "
    where = "{ " + (required + group[1:] if draw(st.booleans()) else group[1:-1] + required + "}")
    if draw(st.integers(0, 9)) == 0:
        return f"PREFIX e: <http://e/> ASK {where}"
    head, tail = draw(
        st.sampled_from(
            (
                ("*", ""),
                ("*", ""),
                ("DISTINCT ?x ?y", ""),
                ("?x (?y + 1 AS ?sum)", ""),
                ("(COUNT(?x) AS ?n) ?y", "GROUP BY ?y"),
                ("?y (SUM(?x) AS ?n)", "GROUP BY ?y HAVING (COUNT(?x) > 1)"),
                ("*", "VALUES ?x { e:a e:b 1 }"),
            )
        )
    )
    return f"PREFIX e: <http://e/> SELECT {head} WHERE {where} {tail}"


def parsed(text: str) -> bool:
    """Return whether pyoxigraph accepts the query, because drawn text ignores SPARQL's scopes."""
    try:
        Store().query(text)
    except SyntaxError:
        return False
    return True


def rows(answer: object) -> Counter[frozenset[tuple[str, str]]]:
    assert isinstance(answer, QuerySolutions)
    names = [v.value for v in answer.variables]
    return Counter(
        frozenset((n, str(row[n])) for n in names if row[n] is not None) for row in answer
    )


def store_of(graph: Iterable[Triple]) -> Store:
    store = Store()
    for s, p, o in graph:
        assert isinstance(s, NamedNode)
        assert isinstance(p, NamedNode)
        store.extend([Quad(s, p, o), Quad(s, p, o, NamedNode(NAME))])
    return store


@given(queries(), graphs)
def test_that_the_engine_gives_what_the_text_says(text: str, graph: list[Triple]) -> None:
    if not parsed(text):
        event("not SPARQL")
        return
    engine = Engine()
    engine.subscribe("s", text)
    matches = engine.match(Publication.of(NAME, graph)).matches
    found = Counter(
        frozenset((n, str(term)) for n, term in s.items()) for m in matches for s in m.solutions
    )
    answer = store_of(graph).query(text)
    if isinstance(answer, QueryBoolean):
        assert bool(matches) is bool(answer), text
        return
    expected = rows(answer)
    event(f"matches: {bool(expected)}; exact: {engine.index_plan('s').exact}")
    assert found == expected, text
