"""`graphmatch bench ontology` at a small size: its output, and its workload."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphmatch.bench import ontology, process
from semantic.errors import InputError

TURTLE = (
    "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .\n<urn:%s> rdfs:subClassOf <urn:c> .\n"
)


def test_the_report_is_printed_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "ab":
        (tmp_path / f"{name}.ttl").write_text(TURTLE % name, encoding="utf-8")
    monkeypatch.setattr(ontology, "REPEATS", 1)
    both = Path(f"{tmp_path}/a.ttl+{tmp_path}/b.ttl")
    assert ontology.run([both], json=True) == 0
    report = json.loads(capsys.readouterr().out)
    loaded = {row["by"]: row for row in report["ontologies"]}
    assert set(loaded) == {"graphmatch", "rdflib", "owlready2"}
    for row in loaded.values():
        assert row["ontology"] == "a.ttl+b.ttl"
        assert row["triples"] >= 2
        assert row["load_s"] > 0
        assert row["peak_mb"] >= row["before_mb"] > 1
    assert loaded["graphmatch"]["triples"] == loaded["rdflib"]["triples"] == 2
    assert loaded["graphmatch"]["ratio"] == 1


def test_without_a_file() -> None:
    with pytest.raises(InputError, match="nothing to measure"):
        ontology.run([])


def test_a_measurement_that_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    row = process.in_own_process("graphmatch.bench.ontology", "rdflib", "no.ttl")
    assert set(row) == {"failed"}
    assert "no.ttl" in row["failed"]
    monkeypatch.setattr(ontology, "in_own_process", lambda *_, **__: row)
    (tmp_path / "a.ttl").write_text(TURTLE % "a", encoding="utf-8")
    assert ontology.run([tmp_path / "a.ttl"], json=False) == 2
    assert "no.ttl" in capsys.readouterr().out


def test_a_file_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ontology, "REPEATS", 1)
    assert ontology.run([tmp_path / "none.ttl"], json=True) == 2
    rows = json.loads(capsys.readouterr().out)["ontologies"]
    assert len(rows) == 3
    assert all("failed" in row for row in rows)
