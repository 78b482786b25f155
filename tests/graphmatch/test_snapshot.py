"""Restored engines give the same answers, and damaged snapshots are refused."""

from __future__ import annotations

import os
import random
import struct
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal

from graphmatch import Engine
from graphmatch.enrichment import Enricher
from graphmatch.snapshot import SavedError
from graphmatch.subscription_files import read_subscriptions
from semantic import Ontology, Publication, read_publications
from semantic.annotation.annotate import Annotator, Label
from semantic.attributes.events import Event
from semantic.errors import InputError
from semantic.limits import Limits
from semantic.ontology.synonyms import SynonymOptions, SynonymPairs
from semantic.vocabulary import SUBCLASS, TYPE, Namespace
from tests.oracle import to_sparql
from tests.strategies import FULL, Scenario, pairs_of, scenarios
from tests.test_agreement import answers

ROOT = Path(__file__).resolve().parents[2]
EX = Namespace("http://example.org/")
FEW = settings(max_examples=max(1, settings().max_examples // 5))
NOW = datetime(2026, 1, 2, tzinfo=UTC)
LAPTOP = Publication.of("p", [(EX["x"], TYPE, EX["Laptop"]), (EX["x"], EX["p"], Literal(7))])


def unheard(_: object) -> None:
    """Ignore a problem."""


def saved(path: Path) -> Engine:
    engine = Engine(Ontology([(EX["Laptop"], SUBCLASS, EX["Computer"])]))
    for number in range(50):
        engine.subscribe(str(number), f"SELECT ?x {{ ?x a {EX['Computer']} ; {EX['p']} {number} }}")
    engine.save(path)
    return engine


def samples(path: Path) -> tuple[Engine, list[Publication]]:
    """Return an engine with all samples: feeds, graphs, units, functions, labels, attributes."""
    ontology = Ontology.load(*sorted((ROOT / "ontologies").iterdir()), on_problem=unheard)
    engine = Engine(ontology, clock=lambda: NOW, on_problem=unheard)
    engine.subscribe_many(read_subscriptions(ROOT / "data" / "subscriptions", on_problem=unheard))
    engine.subscribe_many(read_subscriptions(ROOT / "data" / "attributes.jsonl"))
    for number in range(300):
        where = f"?x {EX['p']} ?p ; {EX['q']} ?q FILTER(?p > {number} && ?q <= {number + 40})"
        engine.subscribe(f"range {number}", f"SELECT ?x {{ {where} }}")
        text = f'?x {EX["t"]} ?t FILTER(CONTAINS(LCASE(STR(?t)), "word{number}"))'
        engine.subscribe(f"word {number}", f"SELECT ?x {{ {text} }}")
    engine.save(path)
    places = [ROOT / "data" / "feeds", ROOT / "data" / "publications"]
    publications = [one for at in places for one in read_publications(at, on_problem=unheard)]
    item = [(EX["i"], EX["p"], Literal(50)), (EX["i"], EX["q"], Literal(60))]
    publications.append(Publication.of("i", [*item, (EX["i"], EX["t"], Literal("A word17!"))]))
    return engine, publications


# -- Same answers ----------------------------------------------------------------------------------


@FEW
@given(scenarios(FULL, publications=2, queries=4), st.sampled_from(["rdfs", "none"]), st.data())
def test_an_opened_engine_answers_as_the_saved_one(
    tmp_path_factory: pytest.TempPathFactory,
    scenario: Scenario,
    entailment: str,
    data: st.DataObject,
) -> None:
    path = tmp_path_factory.mktemp("saved") / "engine"
    pairs = pairs_of(scenario.synonyms)
    ontology = Ontology(scenario.ontology, pairs, on_problem=unheard)
    engine = Engine(ontology, entailment=entailment)
    texts = [to_sparql(query) for query in scenario.queries]
    for number, text in enumerate(texts * 2):
        engine.subscribe(str(number), text)
    numbers = [str(number) for number in range(2 * len(texts))]
    gone = data.draw(st.lists(st.sampled_from(numbers), unique=True))
    for id in gone:
        engine.unsubscribe(id)
    for id in gone[::2]:
        engine.subscribe(id, data.draw(st.sampled_from(texts)))
    engine.save(path)
    other = Engine.open(path)
    assert [one.id for one in other.subscriptions] == [one.id for one in engine.subscriptions]

    def agree() -> None:
        for publication in scenario.publications:
            expected = engine.match(publication)
            found = other.match(publication)
            assert answers(found) == answers(expected)
            assert list(found.subscriptions) == list(expected.subscriptions)

    agree()
    for id in numbers[::2]:  # Change both engines in the same way.
        for one in (engine, other):
            if id in one:
                one.unsubscribe(id)
            else:
                one.subscribe(id, texts[0])
    agree()
    more = data.draw(scenarios(FULL, publications=1, queries=1))
    for one in (engine, other):
        one.replace_ontology(Ontology(more.ontology, on_problem=unheard))
    agree()
    other.save(path)
    other = Engine.open(path)
    agree()


def test_that_the_samples_match_as_before(tmp_path: Path) -> None:
    engine, publications = samples(tmp_path / "s")
    other = Engine.open(tmp_path / "s", clock=lambda: NOW, on_problem=unheard)
    total = 0
    for publication in publications:
        expected = engine.match(publication)
        assert answers(other.match(publication)) == answers(expected)
        total += len(expected)
    assert total > 20
    assert [one.id for one in other.subscriptions] == [one.id for one in engine.subscriptions]
    for mine, theirs in zip(engine.subscriptions, other.subscriptions, strict=True):
        assert (mine.query.text, mine.comment) == (theirs.query.text, theirs.comment)
    assert other.ontology.stated == engine.ontology.stated
    assert Enricher(other.ontology).closure == Enricher(engine.ontology).closure
    assert other.ontology.mapping == engine.ontology.mapping
    assert other.ontology.problems == engine.ontology.problems
    assert other.ontology.labels() == engine.ontology.labels()
    for publication in publications[:5]:
        for match in engine.match(publication):
            explained = engine.explain(match.subscription, publication)
            again = other.explain(match.subscription, publication)
            assert (again.plan, again.evidence) == (explained.plan, explained.evidence)


def test_that_options_are_kept(tmp_path: Path) -> None:
    pairs = SynonymPairs(texts={"US": "United States"})
    options = SynonymOptions(nfkc=True, casefold=True)
    annotator = Annotator([Label("solar", "en", EX["Sun"])], stem=False)
    engine = Engine(Ontology([], pairs, options=options), annotator=annotator)
    engine.subscribe("us", f'ASK {{ ?x {EX["in"]} "united states" }}')
    engine.save(tmp_path / "s")
    other = Engine.open(tmp_path / "s")
    item = Publication.of("p", [(EX["x"], EX["in"], Literal("\uff35\uff33"))])
    assert list(other.match(item).subscriptions) == ["us"]
    assert other.ontology.roots.options == options
    assert other.annotator is not None
    assert other.annotator.labels == annotator.labels
    assert not other.annotator.stem
    assert other.limits == engine.limits
    plain = Engine(Ontology([(EX["Laptop"], SUBCLASS, EX["Computer"])]), entailment="none")
    plain.subscribe("computer", f"ASK {{ ?x a {EX['Computer']} }}")
    plain.save(tmp_path / "s")
    other = Engine.open(tmp_path / "s")
    assert other.annotator is None
    assert not other.match(LAPTOP).matches


def test_that_limits_are_kept(tmp_path: Path) -> None:
    few = Limits(publication_triples=1, subscription_operators=5000)
    Engine(limits=few).save(tmp_path / "s")
    engine = Engine.open(tmp_path / "s", on_problem=unheard)
    assert engine.limits == few
    engine.subscribe("any", "ASK { ?s ?p ?o }")
    lines = b"<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> <urn:c> .\n"
    assert list(engine.filter(lines)) == []
    assert len(list(Engine.open(tmp_path / "s", limits=Limits()).filter(lines))) == 1


def test_a_query_of_the_maximum_length_is_opened(tmp_path: Path) -> None:
    """Inserting the constants makes a query longer than its template."""
    engine = Engine(limits=Limits(text_characters=1000))
    engine.subscribe("a", f"SELECT ?s {{ ?s <urn:p> ?x VALUES ?x {{ {400 * '1 '} }} }}")
    engine.save(tmp_path / "s")
    assert "a" in Engine.open(tmp_path / "s")


@pytest.mark.parametrize("most", [0, -1, 1.5, True, float("nan"), 2**64, None])
def test_that_a_limit_is_a_number(most: Any) -> None:
    with pytest.raises(InputError, match=r"Limits: `nesting` is .*a positive 64-bit integer"):
        Limits(nesting=most)
    if most != 1.5:
        with pytest.raises(
            InputError, match=r"Limits: `reasoning_seconds` is .*a positive 64-bit number"
        ):
            Limits(reasoning_seconds=most)


def test_that_no_folder_is_made(tmp_path: Path) -> None:
    with pytest.raises(SavedError, match="cannot be written: No such file or directory"):
        Engine().save(tmp_path / "missing" / "s")


def test_that_rows_of_a_table_are_kept(tmp_path: Path) -> None:
    """The index alone stores their constants."""
    brands = [f"b{number % 3}" for number in range(60)]
    columns = {"brand": brands, "price <=": range(60), "kind isa": ["Computer"] * 60}
    columns = {"id": map(str, range(60)), **columns, "gone": [None] * 59 + ["x"]}
    table = arrow.table({name: list(column) for name, column in columns.items()})
    classes = [(EX["Laptop"], SUBCLASS, EX["Computer"]), (EX["Tablet"], SUBCLASS, EX["Laptop"])]
    engine = Engine(Ontology(classes))
    assert engine.subscribe_table(table) == ()
    numbers = arrow.table({"id": [f"n{n}" for n in range(60)], "size >": list(range(60))})
    assert engine.subscribe_table(numbers) == ()
    for number in range(0, 60, 7):
        engine.unsubscribe(str(number))
    engine.save(tmp_path / "s")
    other = Engine.open(tmp_path / "s")
    events = [
        Event(f"e{price}", {"brand": brand, "price": price, "kind": kind, "size": price})
        for brand in ("b0", "b1")
        for price in (0, 20, 58.5)
        for kind in ("Tablet", "Computer", "other")
    ]

    def agree() -> None:
        texts = [[(one.id, one.query) for one in all.subscriptions] for all in (engine, other)]
        assert texts[0] == texts[1]
        for event in events:
            assert answers(other.match(event)) == answers(engine.match(event))

    agree()
    assert sum(len(other.match(event)) for event in events) > 200
    for one in (engine, other):
        assert one.subscribe_table(table.slice(0, 8))[0].problem.where.source == "1"
        one.unsubscribe("n5")
        one.replace("n6", "ASK { ?e attribute:size ?s FILTER(?s < 3) }")
        one.update_ontology(removed=classes[1:])
    agree()
    other.save(tmp_path / "s")
    other = Engine.open(tmp_path / "s")
    agree()
    for one in (engine, other):
        for id in [subscription.id for subscription in one.subscriptions]:
            one.unsubscribe(id)
    assert (len(engine), len(other)) == (0, 0)


def test_that_an_opened_engine_goes_on(tmp_path: Path) -> None:
    saved(tmp_path / "s")
    engine = Engine.open(tmp_path / "s")
    assert list(engine.match(LAPTOP).subscriptions) == ["7"]
    engine.subscribe("computer", f"ASK {{ ?x a {EX['Computer']} }}")
    engine.unsubscribe("7")
    with pytest.raises(Exception, match="a subscription with this id already exists"):
        engine.subscribe("8", "ASK { ?x ?y ?z }")
    assert list(engine.match(LAPTOP).subscriptions) == ["computer"]
    engine.update_ontology(removed=[(EX["Laptop"], SUBCLASS, EX["Computer"])])
    assert not engine.match(LAPTOP).matches
    engine.save(tmp_path / "s")
    again = Engine.open(tmp_path / "s")
    assert len(again) == 50
    assert again.ontology.stated == ()


# -- The file --------------------------------------------------------------------------------------


def test_that_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("mine")
    with pytest.raises(SavedError, match="the file exists and is not a snapshot"):
        saved(tmp_path / "s")
    assert (tmp_path / "s").read_text() == "mine"
    (tmp_path / "folder").mkdir()
    with pytest.raises(SavedError, match="cannot be written"):
        saved(tmp_path / "folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "s"]


def test_invalid_snapshots_are_refused_with_the_reason(tmp_path: Path) -> None:
    saved(tmp_path / "s")
    whole = (tmp_path / "s").read_bytes()
    other = tmp_path / "other"
    for content, why in [
        (b"", "the file is not a snapshot"),
        (b"mine", "the file is not a snapshot"),
        (whole[:7], "the file is not a snapshot"),
        (whole[:20], "damaged: it ends too early"),
        (
            whole[:8] + struct.pack("<I", 0) + whole[12:],
            r"format is 0, but this version reads \d+\.",
        ),
        (whole[:8] + struct.pack("<I", 8) + whole[12:], r"format is 8, but this version reads \d"),
        (whole[:-1], "damaged: its length"),
        (whole + b"\0", "damaged: its length"),
        (whole[:-1] + bytes([whole[-1] ^ 1]), "damaged: its checksum"),
    ]:
        other.write_bytes(content)
        with pytest.raises(SavedError, match=why):
            Engine.open(other)
    with pytest.raises(SavedError, match="there is no such file"):
        Engine.open(tmp_path / "missing")
    with pytest.raises(SavedError, match="cannot be read"):
        Engine.open(tmp_path)


def test_saving_replaces_the_former_snapshot(tmp_path: Path) -> None:
    saved(tmp_path / "s")
    engine = Engine()
    engine.subscribe("alice", "ASK { ?x a <urn:Laptop> }")
    engine.save(tmp_path / "s")
    assert [one.id for one in Engine.open(tmp_path / "s").subscriptions] == ["alice"]
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


def test_that_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("s")
    saved(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert len(Engine.open(tmp_path / "s"))


def test_that_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SavedError, match="pipe: not a regular file"):
        saved(tmp_path / "pipe")
    assert [(path.name, path.is_fifo()) for path in tmp_path.iterdir()] == [("pipe", True)]


def test_that_a_save_that_fails_leaves_the_file_before(tmp_path: Path) -> None:
    """A limit on file size simulates a full disk."""
    saved(tmp_path / "s")
    before = (tmp_path / "s").read_bytes()
    program = (
        "import resource, signal, sys\n"
        "from pathlib import Path\n"
        "from graphmatch import Engine\n"
        "from graphmatch.snapshot import SavedError\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "engine = Engine()\n"
        "for number in range(20000):\n"
        "    engine.subscribe(str(number), f'ASK {{ ?x <urn:p{number}> {number} }}')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "try:\n"
        "    engine.save(sys.argv[1])\n"
        "except SavedError as error:\n"
        "    print(error)\n"
    )
    ended = run("-c", program, str(tmp_path / "s"))
    assert "cannot be written" in ended.stdout, ended.stderr
    assert (tmp_path / "s").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["s"]


# -- Damaged files ---------------------------------------------------------------------------------


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    here = {**os.environ, "PYTHONPATH": str(ROOT)}
    program = [sys.executable, "-X", "faulthandler", *arguments]
    return subprocess.run(
        program, cwd=ROOT, env=here, capture_output=True, text=True, check=False, timeout=3000
    )


def damaged(whole: bytes, chosen: random.Random) -> bytes:
    """Return a snapshot with a changed bit, region or length."""
    content, at = bytearray(whole), chosen.randrange(len(whole))
    length, other = chosen.choice([1, 4, 64, 1000]), chosen.randrange(len(whole))
    match chosen.randrange(5):
        case 0:
            content[at] ^= 1 << chosen.randrange(8)
        case 1:
            content[at : at + length] = chosen.randbytes(length)
        case 2:
            del content[at:]
        case 3:
            del content[at : at + length]
        case _:
            content[at : at + length] = content[other : other + length]
    return bytes(content)


def refuses_damaged_files(path: Path, count: int, seed: int) -> None:
    samples(path)
    whole, chosen = path.read_bytes(), random.Random(seed)
    for _ in range(count):
        if (content := damaged(whole, chosen)) != whole:
            path.write_bytes(content)
            with pytest.raises(SavedError, match=r"nothing was saved|damaged|its format is"):
                Engine.open(path)


def test_that_damaged_files_are_refused(tmp_path: Path) -> None:
    refuses_damaged_files(tmp_path / "s", 300, 1)


@pytest.mark.long
def test_that_ten_thousand_damaged_files_are_refused(tmp_path: Path) -> None:
    refuses_damaged_files(tmp_path / "s", 10_000, 2)
