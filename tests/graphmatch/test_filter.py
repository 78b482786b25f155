"""`Engine.filter`: documents in every syntax, split and limit, from memory, files and streams."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
import tarfile
from dataclasses import replace
from itertools import combinations, permutations
from pathlib import Path

import pytest

from graphmatch import Engine
from graphmatch.report import MatchReport
from semantic import Limits, read_publications
from semantic.errors import GraphMatchError, InputError, Problem, SubscriptionError
from tests.waiting import wait

XML = (
    '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:">'
    '<rdf:Description rdf:about="urn:a"><e:p>é</e:p></rdf:Description></rdf:RDF>'
)
DOCUMENTS = {
    "nt": '<urn:a> <urn:p> "é" .\n',
    "nq": '<urn:a> <urn:p> "é" .\n',
    "ttl": "PREFIX e: <urn:> e:a e:p 'é' .",
    "trig": "PREFIX e: <urn:> { e:a e:p 'é' . }",
    "jsonld": '{"@id": "urn:a", "urn:p": "é"}',
    "rdf": XML,
}
ENCODED = {
    "utf-8 with a mark": XML.encode("utf-8-sig"),
    "utf-16": f'<?xml version="1.0" encoding="utf-16"?>{XML}'.encode("utf-16"),
    "latin-1": f'<?xml version="1.0" encoding="iso-8859-1"?>{XML}'.encode("latin-1"),
}


def matching(limits: Limits | None = None) -> tuple[Engine, list[Problem]]:
    problems: list[Problem] = []
    engine = Engine(on_problem=problems.append, limits=limits or Limits())
    engine.subscribe("all", "SELECT ?o { ?s <urn:p> ?o }")
    return engine, problems


def found(reports: list[MatchReport]) -> list[tuple[str, str]]:
    return [
        (report.publication, str(solution["o"].value))
        for report in reports
        for match in report.matches
        for solution in match.solutions
    ]


@pytest.mark.parametrize("format", DOCUMENTS)
def test_every_syntax(format: str, tmp_path: Path) -> None:
    engine, problems = matching()
    data = DOCUMENTS[format].encode()
    path = tmp_path / f"a.{format}"
    path.write_bytes(data)
    for named in (format, None):  # Detect the format by name, then by content.
        assert found(list(engine.filter(data, named))) == [("<memory>", "é")]
        assert found(list(engine.filter(io.BytesIO(data), named))) == [("<stream>", "é")]
    assert found(list(engine.filter(path))) == [(str(path), "é")]
    assert problems == []


@pytest.mark.parametrize("encoding", ENCODED)
def test_xml_in_any_encoding(encoding: str) -> None:
    engine, problems = matching()
    for format in ("rdf", None):
        assert found(list(engine.filter(ENCODED[encoding], format))) == [("<memory>", "é")]
    assert problems == []


TURTLE = """PREFIX e: <urn:> PREFIX rss: <http://purl.org/rss/1.0/>
e:a a rss:item ; e:p "one" . e:b a rss:item ; e:p "two" ; e:q e:c . e:c e:p "three" ."""


@pytest.mark.parametrize("split_by", ["auto", "document", "graph", "item", "subject", "component"])
def test_every_cut(split_by: str, tmp_path: Path) -> None:
    """The publications and matches equal those of `read_publications`."""
    engine, problems = matching()
    path = tmp_path / "a.ttl"
    path.write_text(TURTLE)
    reports = list(engine.filter(path, split_by=split_by))
    publications = list(read_publications(path, split_by=split_by))
    assert [report.publication for report in reports] == [p.id for p in publications]
    assert found(reports) == found([engine.match(publication) for publication in publications])
    assert len(publications) == {"item": 2, "subject": 3, "component": 2}.get(split_by, 1)
    assert problems == []


def test_lines_after_a_bad_one() -> None:
    engine, problems = matching()
    data = b'<urn:a> <urn:p> "x" <urn:g> .\n?\n<urn:a> <urn:p> "y" <urn:h> .\n'
    for format in ("nq", None):
        assert found(list(engine.filter(data, format))) == [("urn:g", "x"), ("urn:h", "y")]
    assert [problem.where.line for problem in problems] == [2, 2]


@pytest.mark.parametrize(
    ("limit", "format", "document"),
    [
        ("document_bytes", "jsonld", DOCUMENTS["jsonld"]),
        ("xml_depth", "rdf", XML),
        ("nesting", "ttl", "<urn:a> <urn:p> <<( <urn:a> <urn:p> <<( <urn:a> <urn:p> 1 )>> )>> ."),
        ("publication_triples", "ttl", "<urn:a> <urn:p> 1, 2 ."),
    ],
)
def test_limits_of_documents(limit: str, format: str, document: str) -> None:
    most = 30 if limit == "document_bytes" else 1
    engine, problems = matching(replace(Limits(), **{limit: most}))
    assert list(engine.filter(document.encode(), format)) == []
    assert [limit in problem.remedy for problem in problems] == [True]
    engine, problems = matching()
    assert len(list(engine.filter(document.encode(), format))) == 1
    assert problems == []


@pytest.mark.parametrize("place", ["?s <urn:p> ?o", "?s ?v ?o", "?v <urn:p> ?o", "?s <urn:p> ?v"])
@pytest.mark.parametrize("other", ["", "?s <urn:q> ?x"])
def test_words_in_any_place_of_a_triple(place: str, other: str) -> None:
    """The keyword index, used for many word subscriptions, covers only objects."""
    engine = Engine()
    variable = "?v" if "?v" in place else "?s"
    for number in range(300):
        condition = f"CONTAINS(STR({variable}), 'word{number}x')"
        engine.subscribe(f"s{number}", f"SELECT * {{ {place} . {other} FILTER({condition}) }}")
    # Each triple has a word in each position; every second one has the queried property.
    lines = [
        f"<urn:word{n}x> {'<urn:p>' if n % 2 else f'<urn:word{n}x>'} <urn:word{n}x> ."
        f"<urn:word{n}x> <urn:q> 1 ."
        for n in (7, 64, 65, 177, 298, 299)
    ]
    words = {7, 65, 177, 299} if "<urn:p>" in place else {7, 64, 65, 177, 298, 299}
    if place == "?s ?v ?o":
        words = {64, 298}
    (report,) = engine.filter("\n".join(lines).encode(), "ttl")
    assert {*report.subscriptions} == {f"s{number}" for number in words}


def test_limits_of_subscriptions() -> None:
    engine, _ = matching(Limits(subscription_operators=1))
    with pytest.raises(SubscriptionError, match="subscription_operators"):
        engine.subscribe("s", "SELECT * { ?s <urn:p> ?o FILTER(?o > 1 && ?o < 9) }")


def test_the_time_of_an_evaluation() -> None:
    """A timeout is reported with its reason; indexed subscriptions still match."""
    engine, _ = matching(Limits(publication_seconds=0.05))
    pairs = " ".join(f"?a{n} <urn:p> ?b{n} ." for n in range(8))
    engine.subscribe("slow", f"SELECT (COUNT(*) AS ?n) {{ {pairs} }}")
    data = "".join(f'<urn:s{n}> <urn:p> "{n}" .\n' for n in range(50)).encode()
    (report,) = engine.filter(data)
    assert list(report.subscriptions) == ["all"]
    (problem,) = report.problems
    assert (
        problem.what == "slow: the evaluation exceeds its share of 0.05 s (`publication_seconds`)"
    )


def turan(parts: int) -> tuple[bytes, str, str]:
    """Return a Turán graph, a query for its largest clique, and one for a larger clique.

    Only a long search shows that the graph has no clique larger than `parts`.
    Source: P. Turán, "Egy gráfelméleti szélsőértékfeladatról", 1941.
    """
    nodes = [(part, f"<urn:n{part}-{n}>") for part in range(parts) for n in range(4)]
    edges = [(a, b) for (p, a), (q, b) in permutations(nodes, 2) if p != q]
    data = "".join(f"{a} <urn:p> {b} .\n" for a, b in edges)
    found, missing = (
        " . ".join(f"?v{a} <urn:p> ?v{b}" for a, b in combinations(range(count), 2))
        for count in (parts, parts + 1)
    )
    return data.encode(), f"SELECT * {{ {found} }}", f"SELECT * {{ {missing} }}"


def test_a_join_that_takes_too_long_is_reported_and_the_others_are_answered() -> None:
    engine, _ = matching(Limits(publication_seconds=0.2))
    data, found, missing = turan(8)
    engine.subscribe("missing", missing)
    engine.subscribe("found", found)
    (report,) = engine.filter(data)
    assert list(report.subscriptions) == ["all", "found"]
    (problem,) = report.problems
    assert (
        problem.what == "missing: the evaluation exceeds its share of 0.2 s (`publication_seconds`)"
    )


def test_each_join_has_its_own_time() -> None:
    """A slow subscription does not use the time of the others."""
    engine, problems = matching(Limits(publication_seconds=4))
    (data, _, missing), (more, _, other) = turan(8), turan(5)
    engine.subscribe("slow", missing)
    # The join visits half a million triples.
    engine.subscribe("long", other.replace("urn:p", "urn:q"))
    (report,) = engine.filter(data + more.replace(b"urn:p", b"urn:q"))
    assert list(report.subscriptions) == ["all"]
    assert [problem.what.partition(":")[0] for problem in problems] == ["slow"]


def test_many_costly_subscriptions_share_the_time_of_a_publication() -> None:
    engine, _ = matching(Limits(publication_seconds=1))
    pairs = " ".join(f"?a{n} <urn:p> ?b{n} ." for n in range(8))
    for number in range(30):
        engine.subscribe(f"slow{number}", f"SELECT (COUNT(*) AS ?n{number}) {{ {pairs} }}")
    engine.subscribe("last", "ASK { ?a <urn:p>+ ?b }")
    data = "".join(f'<urn:s{n}> <urn:p> "{n}" .\n' for n in range(50)).encode()
    (report,) = engine.filter(data)
    assert list(report.subscriptions) == ["all", "last"]
    assert len(report.problems) == 30


LONG_MATCH = """
import sys
from graphmatch import Engine
from semantic.limits import Limits
engine = Engine(limits=Limits(publication_seconds=120))
pairs = " ".join(f"?a{n} <urn:p> ?b{n} ." for n in range(8))
engine.subscribe("slow", f"SELECT (COUNT(*) AS ?n) {{ {pairs} }}")
chain = " ".join(f"?x{a} <urn:p> ?x{b} ." for a in range(9) for b in range(a))
engine.subscribe("long", f"SELECT * {{ {chain} }}")
parts = [f"<urn:n{p}-{n}>" for p in range(8) for n in range(6)]
data = "".join(f"{a} <urn:p> {b} .\\n" for a in parts for b in parts if a[:7] != b[:7])
print("ready", flush=True)
try:
    list(engine.filter(data.encode()))
except KeyboardInterrupt:
    print("interrupted")
"""


def ticks(process: int) -> int:
    """Return the processor time of a process in hundredths of a second."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    return int(fields[11])


def test_ctrl_c_ends_a_long_match() -> None:
    """Without it the match would take two minutes."""
    with subprocess.Popen([sys.executable, "-c", LONG_MATCH], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        before = ticks(program.pid)
        wait(lambda: ticks(program.pid) > before + 50)
        program.send_signal(signal.SIGINT)
        assert program.communicate(timeout=60)[0] == b"interrupted\n"
        assert program.returncode == 0


def test_many_answers_share_the_memory_of_a_publication() -> None:
    engine, _ = matching(Limits(publication_seconds=60))
    pairs = " ".join(f"?a{n} <urn:p> ?b{n} ." for n in range(2))
    for number in range(30):
        query = f"SELECT ?a0 ?b0 ?a1 ?b1 ?n{number} {{ {pairs} BIND(1 AS ?n{number}) }}"
        engine.subscribe(f"large{number}", query)
    engine.subscribe("last", "SELECT * { ?a <urn:p>+ ?b }")
    data = "".join(f'<urn:s{n}> <urn:p> "{n}" .\n' for n in range(300)).encode()
    (report,) = engine.filter(data)
    assert {*report.subscriptions} >= {"all", "last", "large0", "large1"}
    assert sum(len(match.solutions) for match in report) < 500_000
    assert all("match_solutions" in problem.what for problem in report.problems)
    assert len(report) + len(report.problems) == 32


def test_the_first_solutions_of_a_match_with_very_many() -> None:
    engine, problems = matching(Limits(match_solutions=1000))
    pairs = " . ".join(f"?a{n} <urn:p> ?b{n}" for n in range(4))
    engine.subscribe("many", f"SELECT * {{ {pairs} }}")
    data = "".join(f"<urn:s{n}> <urn:p> <urn:o{n}> .\n" for n in range(100)).encode()
    (report,) = engine.filter(data)
    solutions = {match.subscription: len(match.solutions) for match in report}
    assert solutions == {"all": 100, "many": 1000}
    few = ["many: only the first 1,000 solutions are given"]
    assert [problem.what for problem in problems] == few
    assert [len(match.solutions) for match in report] == [100, 1000]
    assert [problem.what for problem in problems] == few  # The problem is reported only once.
    (other,) = engine.filter(data)
    engine.unsubscribe("all")  # Then the report must keep its solutions itself.
    assert [len(match.solutions) for match in other] == [100, 1000]
    assert [problem.what for problem in problems] == few * 2


def test_reasons_that_would_take_too_much_are_left_out() -> None:
    engine, problems = matching(Limits(reason_triples=2))
    lines = [f"<urn:s{n}> <urn:p> <urn:o{n}> .\n".encode() for n in range(3)]
    for data, reasons in ((b"".join(lines[:2]), 1), (b"".join(lines), 0)):
        (report,) = engine.filter(data)
        evidence = engine.evidence(report)
        assert sum(map(len, evidence.values())) == reasons
        assert list(evidence) == ["all"]
    (problem,) = problems
    assert problem.what.startswith("no reasons")
    assert "reason_triples" in problem.remedy


def test_a_subscription_that_cannot_be_evaluated_is_reported_once_and_not_explained() -> None:
    engine, problems = matching(Limits(publication_seconds=0.05))
    pairs = " ".join(f"?a{n} <urn:p> ?b{n} ." for n in range(8))
    engine.subscribe("slow", f"SELECT (COUNT(*) AS ?n) {{ {pairs} }}")
    data = "".join(f'<urn:s{n}> <urn:p> "{n}" .\n' for n in range(50)).encode()
    (report,) = engine.filter(data)
    assert [problem.what.partition(":")[0] for problem in problems] == ["slow"]
    with pytest.raises(GraphMatchError, match=r"slow: cannot be explained: .*publication_seconds"):
        engine.explain("slow", report.read())


def test_a_match_whose_reasons_take_too_long_is_reported_without_them() -> None:
    engine, problems = matching(Limits(publication_seconds=0.0001))
    engine.subscribe("pairs", "SELECT * { ?a <urn:p> ?b . ?c <urn:p> ?d }")
    data = "".join(f"<urn:s{n}> <urn:p> <urn:o{n}> .\n" for n in range(20_000)).encode()
    (report,) = engine.filter(data)
    assert list(report.subscriptions) == ["all", "pairs"]
    evidence = engine.evidence(report)
    assert evidence["pairs"] == ()
    (what,) = {problem.what for problem in problems if problem.what.startswith("pairs: cannot")}
    assert "publication_seconds" in what
    with pytest.raises(GraphMatchError, match="pairs: cannot be explained"):
        engine.explain("pairs", report.read())


def test_that_a_document_with_many_faults_keeps_its_publication() -> None:
    """Reading pauses to report the problems; matching other data meanwhile changes nothing."""
    first = b'<urn:s> <urn:p> "0" <urn:g1> .\n'
    data = first + b'<urn:s> <urn:p> "1" <urn:g2> .\n' + b"bad line\n" * 1100
    data += b'<urn:s> <urn:q> "2" <urn:g2> .\n'
    other = b"<urn:o> <urn:r> <urn:x> .\n"
    found = []
    engine = Engine(on_problem=lambda _: None)
    engine.subscribe("both", "ASK { ?x <urn:p> '1' ; <urn:q> '2' }")
    for report in engine.filter(data, format="nq"):
        found.append((report.publication, list(report.subscriptions)))
        list(engine.filter(other))
    assert found == [("urn:g1", []), ("urn:g2", ["both"])]


def test_a_problem_is_reported_before_later_publications() -> None:
    told: list[str] = []
    engine = Engine(on_problem=lambda problem: told.append(f"line {problem.where.line}"))
    line = b"<urn:s> <urn:p> <urn:o> <urn:g%d> .\n"
    data = b"bad\n" + line % 1 + line % 2 + b"bad\n" + line % 3
    told.extend(report.publication for report in engine.filter(data, format="nq"))
    # The reader knows the end of a publication only after the next line.
    assert told == ["line 1", "urn:g1", "line 4", "urn:g2", "urn:g3"]


def test_that_streams_need_no_number_of_a_file(tmp_path: Path) -> None:
    """A stream inside an archive has no file descriptor."""
    data = b"".join(b"<urn:s> <urn:p> <urn:o> <urn:g%d> .\n" % number for number in range(600))
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        info = tarfile.TarInfo("a.nq")
        info.size = len(data)
        archive.addfile(info, io.BytesIO(data))
    with tarfile.open(tmp_path / "a.tar") as archive:
        stream = archive.extractfile("a.nq")
        assert stream is not None
        assert sum(1 for _ in Engine().filter(stream, format="nq")) == 600


RELATIVE = {
    "ttl": "<a> <urn:p> <#b> .",
    "trig": "{ <a> <urn:p> <#b> }",
    "jsonld": '{"@id": "a", "urn:p": {"@id": "#b"}}',
    "rdf": XML.replace("urn:a", "a").replace("<e:p>é</e:p>", '<e:p rdf:resource="#b"/>'),
}


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("format", RELATIVE)
def test_relative_names_are_resolved_against_the_base(format: str, large: bool) -> None:
    engine, problems = matching()
    document = (RELATIVE[format] + " " * 100_000 * large).encode()
    for source in (document, io.BytesIO(document)):
        (report,) = engine.filter(source, format=format, base="https://example.org/d")
        assert found([report])[0][1] == "https://example.org/d#b"
        assert not problems
        assert not list(engine.filter(source, format=format))
        problems.clear()
    with pytest.raises(InputError, match="the base 'd' is not an absolute IRI"):
        list(engine.filter(document, format=format, base="d"))


@pytest.mark.parametrize("name", [*DOCUMENTS, "feed"])
def test_that_a_report_gives_its_publication(name: str) -> None:
    engine, _ = matching()
    if name == "feed":
        engine.subscribe("titles", "SELECT ?o { ?s <http://purl.org/rss/1.0/title> ?o }")
    feed = "<rss><channel><item><title>a</title><link>urn:a</link></item></channel></rss>"
    document = DOCUMENTS.get(name, feed).encode()
    format = None if name == "feed" else name
    (report,) = engine.filter(document, format=format)
    (publication,) = read_publications(io.BytesIO(document), format=format)
    assert report.read().triples == publication.triples
    (publication,) = [publication.with_id(id="urn:x")]
    assert engine.match(publication).read() == publication


def test_that_a_report_keeps_its_publication_and_solutions() -> None:
    engine, _ = matching()
    lines = b"<urn:a> <urn:p> <urn:o> <urn:g> .\n<urn:a> <urn:q> <urn:o> <urn:h> .\n"
    report, other = engine.filter(lines)
    assert report.read().source.item == "urn:g"
    with pytest.raises(LookupError, match="urn:h is not available"):
        other.read()
    engine.subscribe("more", "SELECT ?o { ?s <urn:q> ?o }")
    assert report.subscriptions == ("all",)
    assert engine.unsubscribe("all") is None
    assert report.read().source.item == "urn:g"
    assert [len(match.solutions) for match in report] == [1]


def test_items_before_a_refused_problem_are_matched() -> None:
    items = "".join(f"<item><guid>urn:{n}</guid><title>a</title></item>" for n in range(9))
    feed = f"<rss><channel>{items}<item><pubDate>x</pubDate></item></channel></rss>".encode()

    def refuse(problem: Problem) -> None:
        raise RuntimeError(problem.what)

    engine = Engine(on_problem=refuse)
    engine.subscribe("all", "ASK { ?s ?p ?o }")
    reports = engine.filter(feed)
    assert [next(reports).publication for _ in range(9)] == [f"urn:{n}" for n in range(9)]
    with pytest.raises(RuntimeError):
        next(reports)
