"""HermiT and Pellet as operators in a running Java process. Each start takes a second."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from socket import create_server

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch.engine import Engine
from graphmatch.operators.reasoner import Reasoner
from semantic.publication import Publication
from semantic.terms import Triple
from semantic.vocabulary import OWL, SUBCLASS, TYPE
from tests.waiting import is_running, wait

pytestmark = pytest.mark.long

PARENT, PERSON, STONE, CHILD, ANN, BOB, PLACE = (
    NamedNode(f"urn:{name}")
    for name in ("Parent", "Person", "Stone", "hasChild", "ann", "bob", "place")
)
SOME = BlankNode("some")
ONTOLOGY: list[Triple] = [
    (PARENT, TYPE, OWL["Class"]),
    (PERSON, TYPE, OWL["Class"]),
    (STONE, OWL["disjointWith"], PERSON),
    (CHILD, TYPE, OWL["ObjectProperty"]),
    (SOME, TYPE, OWL["Restriction"]),
    (SOME, OWL["onProperty"], CHILD),
    (SOME, OWL["someValuesFrom"], PERSON),
    (PARENT, OWL["equivalentClass"], SOME),
    (PARENT, SUBCLASS, PERSON),
    (NamedNode("urn:Town"), SUBCLASS, PLACE),
]


def told(id: str, *triples: Triple) -> Publication:
    return Publication.of(id, [(ANN, CHILD, BOB), (BOB, TYPE, PERSON), *triples])


@pytest.fixture(scope="module", params=["hermit", "pellet"])
def reasoner(request: pytest.FixtureRequest) -> Iterator[Reasoner]:
    made = Reasoner(ONTOLOGY, request.param, timeout=30)
    yield made
    made.close()


def test_class_membership(reasoner: Reasoner) -> None:
    engine = Engine(operators=[reasoner])
    for id, variable, class_ in (("s", "x", PARENT), ("t", "x", PERSON), ("u", "y", PARENT)):
        test = f"op:instance(?{variable}, {class_})"
        engine.subscribe(id, f"SELECT ?{variable} {{ ?x <urn:hasChild> ?y FILTER({test}) }}")
    report = engine.match(told("p"))
    assert not report.undecided
    assert list(report.subscriptions) == ["s", "t"]
    report = engine.match(Publication.of("q", [(ANN, CHILD, BOB)]))  # Bob may be a dog.
    assert not report.undecided
    assert not len(report)


def test_that_what_earlier_publications_said_is_forgotten(reasoner: Reasoner) -> None:
    first = told("p", (ANN, NamedNode("urn:says"), Literal('"\\\n\té', language="en-GB")))
    second = Publication.of("p", [(BOB, CHILD, ANN), (BOB, TYPE, PERSON)])
    for _ in range(2):
        assert reasoner(first, ANN, PARENT)
        assert not reasoner(first, BOB, PARENT)
        assert not reasoner(second, BOB, PARENT)
        assert not reasoner(second, ANN, PERSON)


def test_what_has_no_name(reasoner: Reasoner) -> None:
    """Blank nodes of publications are individuals, except those of class expressions."""
    someone, restriction = BlankNode("someone"), BlankNode("some")
    publication = told(
        "p",
        (someone, CHILD, BOB),
        (restriction, TYPE, OWL["Restriction"]),
        (restriction, OWL["onProperty"], CHILD),
        (restriction, OWL["someValuesFrom"], PERSON),
        (NamedNode("urn:carl"), TYPE, restriction),
        (NamedNode("urn:rome"), TYPE, NamedNode("urn:Town")),
    )
    assert reasoner(publication, someone, PARENT)
    assert reasoner(publication, NamedNode("urn:carl"), PARENT)
    assert reasoner(publication, NamedNode("urn:rome"), PLACE)  # Nothing declares it a class.
    assert not reasoner(publication, NamedNode("urn:nobody"), PARENT)
    assert not reasoner(publication, ANN, NamedNode("urn:None"))
    assert not reasoner(publication, Literal("ann"), PARENT)
    with pytest.raises(TypeError, match="not the name of a class"):
        reasoner(publication, ANN, Literal("Parent"))


def test_that_a_contradiction_is_unknown(reasoner: Reasoner) -> None:
    engine = Engine(operators=[reasoner], on_problem=lambda _: None)
    engine.subscribe("s", f"ASK {{ ?x {CHILD} ?y FILTER(op:instance(?x, {PARENT})) }}")
    report = engine.match(told("p", (BOB, TYPE, STONE)))
    assert not len(report)
    assert "contradicts" in report.undecided[0].calls[0].why
    assert list(engine.match(told("q")).subscriptions) == ["s"]


def test_that_nothing_is_fetched(reasoner: Reasoner) -> None:
    with create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.3)
        address = NamedNode(f"http://127.0.0.1:{server.getsockname()[1]}/never")
        links: list[Triple] = [
            (NamedNode("urn:here"), TYPE, OWL["Ontology"]),
            (NamedNode("urn:here"), OWL["imports"], address),
            (address, OWL["imports"], address),
        ]
        assert reasoner(told("p", *links), ANN, PARENT)
        own = Reasoner([*ONTOLOGY, *links])
        assert own(told("p", *links), ANN, PARENT)
        own.close()
        with pytest.raises(TimeoutError):
            server.accept()


def java_of(process: int) -> set[int]:
    """Return the running Java processes that a process has started."""
    found = set[int]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            name, _, rest = file.read_text(encoding="utf-8").rpartition(") ")
            state, parent = rest.split()[:2]
            if name.endswith("(java") and int(parent) == process and state != "Z":
                found.add(int(file.parent.name))
    return found


def test_a_reasoner_that_hangs_or_dies_is_started_again() -> None:
    others = java_of(os.getpid())
    reasoner = Reasoner(ONTOLOGY, timeout=10)
    assert reasoner(told("p"), ANN, PARENT)
    [first] = java_of(os.getpid()) - others
    assert reasoner(told("q"), ANN, PARENT)
    assert java_of(os.getpid()) - others == {first}
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(TimeoutError, match="did not answer within 10 s"):
        reasoner(told("r"), ANN, PARENT)
    wait(lambda: first not in java_of(os.getpid()))
    publication = told("s")
    assert reasoner(publication, ANN, PARENT)
    [second] = java_of(os.getpid()) - others
    os.kill(second, signal.SIGKILL)
    wait(lambda: second not in java_of(os.getpid()))
    assert reasoner(publication, ANN, PARENT)
    assert reasoner(publication, BOB, PERSON)
    reasoner.close()
    assert reasoner(publication, ANN, PARENT)
    reasoner.close()


def test_that_java_ends_with_the_engine() -> None:
    others = java_of(os.getpid())
    engine = Engine(operators=[Reasoner(ONTOLOGY, timeout=30)])
    engine.subscribe("s", f"ASK {{ ?x {CHILD} ?y FILTER(op:instance(?x, {PARENT})) }}")
    assert len(engine.match(told("p")))
    [java] = java_of(os.getpid()) - others
    del engine
    wait(lambda: java not in java_of(os.getpid()))


def test_that_java_ends_with_the_process_whatever_ends_it() -> None:
    program = (
        "import sys; from pyoxigraph import NamedNode; from semantic.publication import Publication"
        "; from graphmatch.operators.reasoner import Reasoner; r = Reasoner([], timeout=30)"
        "; x = NamedNode('urn:x'); assert not r(Publication.of('p', []), x, x)"
        "; print(flush=True); sys.stdin.readline()"
    )
    for is_killed in (True, False):
        pipe = subprocess.PIPE
        with subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe) as child:
            assert child.stdout is not None
            child.stdout.readline()
            [pid] = java_of(child.pid)
            if is_killed:
                child.kill()
        wait(lambda pid=pid: not is_running(pid))


def test_a_java_that_does_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphmatch.operators.reasoner.java_program", lambda: "/bin/false")
    with pytest.raises(Exception, match="it does not start"):
        Reasoner(ONTOLOGY)(told("p"), ANN, PARENT)
