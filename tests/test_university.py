"""Departments of a university arrive one by one; 14 standing queries need OWL 2 RL."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from time import perf_counter
from typing import TypeAlias

import owlrl  # type: ignore[import-untyped]
import pytest
import rdflib
from rdflib.query import ResultRow

from graphmatch import Engine
from semantic.errors import Problem
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from tests.university import QUERIES, department, ontology

Answers: TypeAlias = Mapping[int, set[frozenset[tuple[str, str]]]]
"""The distinct rows of each query, by its number."""


class Departments:
    """An engine with the 14 queries as subscriptions."""

    def __init__(self, entailment: str) -> None:
        self.problems: list[Problem] = []
        known = Ontology(ontology())
        self.engine = Engine(known, entailment=entailment, on_problem=self.problems.append)
        for number, query in enumerate(QUERIES, start=1):
            self.engine.subscribe(str(number), query)

    def answers(self, publication: Publication) -> Answers:
        """Return the answers to all queries."""
        found: dict[int, set[frozenset[tuple[str, str]]]] = {n + 1: set() for n in range(14)}
        for match in self.engine.match(publication):
            rows = (frozenset((k, str(v)) for k, v in row.items()) for row in match.solutions)
            found[int(match.subscription)].update(rows)
        return found


def by_owlrl(publication: Publication) -> Answers:
    """Return the answers to all queries by rdflib, over a closure by owlrl."""
    triples = (*ontology(), *publication.triples)
    text = "".join(f"{s} {p} {o} .\n" for s, p, o in triples)
    graph = rdflib.Graph().parse(data=text, format="nt")
    owlrl.OWLRL_Semantics(graph, axioms=False, daxioms=False).closure()
    return {number: set(rows(graph, query)) for number, query in enumerate(QUERIES, start=1)}


def rows(graph: rdflib.Graph, query: str) -> Iterator[frozenset[tuple[str, str]]]:
    """Yield the answers of rdflib to a query."""
    for row in graph.query(query):
        assert isinstance(row, ResultRow)
        yield frozenset((str(name), value.n3()) for name, value in row.asdict().items())


def compare(departments: Sequence[Publication]) -> None:
    """Check that all answers are those of owlrl, and that the rules of RDFS give fewer."""
    ours, rdfs = Departments("owl-rl"), Departments("rdfs")
    everything: list[Answers] = []
    for publication in departments:
        answers = ours.answers(publication)
        assert answers == by_owlrl(publication)
        fewer = rdfs.answers(publication)
        assert all(fewer[number] <= answers[number] for number in answers)
        assert all(fewer[number] < answers[number] for number in (6, 11, 12))
        everything.append(answers)
    assert all(any(answers[number] for answers in everything) for number in everything[0])
    assert not ours.problems


def test_that_answers_are_those_of_a_batch() -> None:
    compare([department(number, 1) for number in range(3)])


def test_that_a_wrong_department_is_reported() -> None:
    ours, right = Departments("owl-rl"), department(0, 1)
    teacher, student = (
        next(s for s, _, o in right.triples if str(o).endswith(f"#{kind}>"))
        for kind in ("Lecturer", "UndergraduateStudent")
    )
    kind = next(triple for triple in right.triples if triple[0] == student)
    wrong = Publication.of("urn:wrong", [*right.triples, (teacher, *kind[1:])])
    ours.engine.match(wrong)
    assert "contradicts the ontology" in str(ours.problems[0])


@pytest.mark.long
def test_ten_departments(capsys: pytest.CaptureFixture[str]) -> None:
    def seconds(answers: Callable[[Publication], Answers], publication: Publication) -> float:
        start = perf_counter()
        answers(publication)
        return perf_counter() - start

    departments = [department(number, 3 + number % 3) for number in range(10)]
    compare(departments)
    sizes = [len(one.triples) for one in departments]
    assert 300 < min(sizes) < max(sizes) < 650
    times: dict[str, list[float]] = {"none": [], "rdfs": [], "owl-rl": [], "owlrl": []}
    engines = {name: Departments(name) for name in times if name != "owlrl"}
    for publication in departments:
        for name, engine in engines.items():
            times[name].append(min(seconds(engine.answers, publication) for _ in range(5)))
        times["owlrl"].append(seconds(by_owlrl, publication))
    lines = [f"departments of {min(sizes)} to {max(sizes)} triples, {len(QUERIES)} subscriptions"]
    lines += [f"{name:>7}: {median(taken) * 1000:8.2f} ms" for name, taken in times.items()]
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, ""]))
