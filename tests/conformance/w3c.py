"""A reader of W3C SPARQL test manifests."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path

from pyoxigraph import (
    BlankNode,
    CanonicalizationAlgorithm,
    Dataset,
    NamedNode,
    Quad,
    QueryBoolean,
    QueryResultsFormat,
    RdfFormat,
    parse,
    parse_query_results,
)

from semantic.terms import Term, Triple
from semantic.vocabulary import RDF, TYPE, Namespace
from tests.real_data import DATA

SUITES = DATA / "sparql"
MF = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#")
QT = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/test-query#")
RS = Namespace("http://www.w3.org/2001/sw/DataAccess/tests/result-set#")

Rows = list[Mapping[str, Term]]
"""Solutions, in order if the test requires one."""


@dataclass(frozen=True)
class EvaluationTest:
    """One manifest entry: a query, its data and the expected result.

    Parameters
    ----------
    lax
        Whether REDUCED allows fewer duplicate solutions.
    """

    name: str
    query: Path
    data: Path | None
    result: Path
    lax: bool = False

    def query_text(self) -> str:
        """Return the query with its own address as base."""
        text = self.query.read_text(encoding="utf-8")
        return f"BASE <{self.query.as_uri()}>\n{text}"


class _Graph:
    def __init__(self, path: Path) -> None:
        syntax = RdfFormat.from_extension(path.suffix[1:])
        quads = parse(path=path, format=syntax, base_iri=path.as_uri())
        self.triples = [(q.subject, q.predicate, q.object) for q in quads]

    def objects(self, subject: Term, predicate: NamedNode) -> list[Term]:
        return [o for s, p, o in self.triples if s == subject and p == predicate]

    def object(self, subject: Term, predicate: NamedNode) -> Term | None:
        return next(iter(self.objects(subject, predicate)), None)

    def subjects(self, predicate: NamedNode, object_: Term) -> list[Term]:
        return [s for s, p, o in self.triples if p == predicate and o == object_]

    def items(self, head: Term | None) -> Iterator[Term]:
        while head is not None and head != RDF["nil"]:
            yield from self.objects(head, RDF["first"])
            head = self.object(head, RDF["rest"])


def _path(term: Term | None) -> Path | None:
    if not isinstance(term, NamedNode):
        return None
    return Path(term.value.removeprefix("file://"))


def read_manifest(path: Path) -> list[EvaluationTest]:
    """Return the query evaluation tests of a manifest."""
    graph = _Graph(path)
    (manifest,) = graph.subjects(TYPE, MF["Manifest"])
    tests = []
    for entry in graph.items(graph.object(manifest, MF["entries"])):
        if MF["QueryEvaluationTest"] not in graph.objects(entry, TYPE):
            continue
        action = graph.object(entry, MF["action"])
        assert action is not None
        query = _path(graph.object(action, QT["query"]))
        result = _path(graph.object(entry, MF["result"]))
        assert query is not None
        assert result is not None
        assert isinstance(entry, NamedNode)
        name = f"{path.parent.name}/{entry.value.rpartition('#')[2]}"
        data = _path(graph.object(action, QT["data"]))
        lax = graph.object(entry, MF["resultCardinality"]) == MF["LaxCardinality"]
        tests.append(EvaluationTest(name, query, data, result, lax))
    return tests


def read_result(path: Path) -> Rows | bool | Dataset:
    """Return the expected rows, the truth of an ASK, or the triples of a CONSTRUCT."""
    if path.suffix == ".srx":
        parsed = parse_query_results(path=path, format=QueryResultsFormat.XML)
        if isinstance(parsed, QueryBoolean):
            return bool(parsed)
        names = [v.value for v in parsed.variables]
        return [{n: row[n] for n in names if row[n] is not None} for row in parsed]
    graph = _Graph(path)
    if not (results := graph.subjects(TYPE, RS["ResultSet"])):
        return canonical(graph.triples)
    (result,) = results
    truth = graph.object(result, RS["boolean"])
    if truth is not None:
        return truth.value == "true"
    solutions = graph.objects(result, RS["solution"])
    solutions.sort(key=lambda solution: _index(graph.object(solution, RS["index"])))
    return [
        {
            graph.object(binding, RS["variable"]).value: graph.object(binding, RS["value"])
            for binding in graph.objects(solution, RS["binding"])
        }
        for solution in solutions
    ]


def _index(index: Term | None) -> int:
    return 0 if index is None else int(index.value)


def canonical(triples: Iterable[Triple]) -> Dataset:
    """Return triples in which graphs that differ only in blank node labels are equal."""
    dataset = Dataset(Quad(*triple) for triple in triples)
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return dataset


def same_rows(found: Sequence[Mapping[str, Term]], expected: Sequence[Mapping[str, Term]]) -> bool:
    """Return whether two multisets of rows are equal up to blank node labels."""
    if len(found) != len(expected):
        return False
    ours, theirs = _blanks(found), _blanks(expected)
    if len(ours) != len(theirs):
        return False
    wanted = _multiset(expected, {})
    return any(
        _multiset(found, dict(zip(ours, order, strict=True))) == wanted
        for order in permutations(theirs)
    )


def same_order(found: Sequence[Mapping[str, Term]], expected: Sequence[Mapping[str, Term]]) -> bool:
    """Return whether rows have the same order, ignoring blank node labels."""
    return [_nameless(row) for row in found] == [_nameless(row) for row in expected]


def _nameless(row: Mapping[str, Term]) -> dict[str, Term | None]:
    return {name: None if isinstance(term, BlankNode) else term for name, term in row.items()}


def _blanks(rows: Sequence[Mapping[str, Term]]) -> list[Term]:
    terms = (term for row in rows for term in row.values())
    return list(dict.fromkeys(term for term in terms if isinstance(term, BlankNode)))


def _multiset(
    rows: Sequence[Mapping[str, Term]], renaming: Mapping[Term, Term]
) -> Counter[frozenset[tuple[str, Term]]]:
    return Counter(
        frozenset((name, renaming.get(term, term)) for name, term in row.items()) for row in rows
    )
