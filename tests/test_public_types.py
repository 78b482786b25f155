"""A type checker sees no `Any` in programs that use the public API, and finds their mistakes."""

from pathlib import Path

from mypy import api

PROGRAM = """
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from graphmatch import Engine, MatchReport, Topics, read_subscriptions, subscribe_topics
from semantic import Limits, Ontology, Problem, Publication, SplitBy, read_publications

problems: list[Problem] = []


def rows(report: MatchReport) -> list[tuple[str, str]]:
    return [(m.subscription, str(s[name])) for m in report for s in m.solutions for name in s]


def main(folder: Path) -> int:
    ontology = Ontology.load(folder / "news.ttl", on_problem=problems.append)
    engine = Engine(ontology, limits=Limits(), on_problem=problems.append)
    engine.subscribe("all", "SELECT ?s { ?s ?p ?o }")
    engine.subscribe_many(read_subscriptions(folder / "feeds.rq"))
    subscribe_topics(engine, Topics(("climate",)))
    triple = (NamedNode("urn:s"), NamedNode("urn:p"), Literal("1"))
    report = engine.match(Publication.of("urn:p", [triple]))
    print(rows(report), report.subscriptions, report.counters.candidates, report.problems)
    for found in engine.filter(folder / "daily.rss", split_by=SplitBy.ITEM):
        print(found.read().triples, [*engine.evidence(found)], found.to_dicts(plain=True))
    print(engine.filter(b"").to_polars().height, engine.filter(b"").to_arrow().num_rows)
    for publication in read_publications(folder / "daily.rss"):
        print(engine.explain("all", publication), engine.index_plan("all"), publication.source)
    engine.save(folder / "engine.gm")
    return len(Engine.open(folder / "engine.gm"))
"""
MISTAKES = (
    'Engine("news.ttl")',
    'Engine().subscribe(1, "ASK {}")',
    "Engine().match([])",
    "Engine().match(Publication.of('urn:p', [])).matched",
    'Publication.of("urn:p", ["<urn:s>"])',
    'Engine().filter("a.rss", split_by=3)',
    "Limits(publication_second=1.0)",
    'Ontology.load("a.ttl").label("x") + 1',
)


def check(text: str, path: Path) -> list[str]:
    """Return the errors of mypy in a program, without those about mypy itself."""
    path.write_text(text)
    strict = ["--strict", "--disallow-any-expr", "--config-file=", "--no-error-summary"]
    out, err, _ = api.run([*strict, f"--cache-dir={path.parent}", str(path)])
    assert not err
    return out.splitlines()


def test_programs_have_no_any_and_mistakes_are_found(tmp_path: Path) -> None:
    assert check(PROGRAM, tmp_path / "program.py") == []
    lines = (PROGRAM + "\n".join(MISTAKES) + "\n").splitlines()
    first = len(lines) - len(MISTAKES) + 1
    errors = check("\n".join(lines), tmp_path / "mistakes.py")
    assert {int(e.split(":")[1]) for e in errors} == set(range(first, len(lines) + 1))
