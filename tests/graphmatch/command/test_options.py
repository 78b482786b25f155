"""Option groups, and their effect on the ontology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from graphmatch.cli import app
from graphmatch.command.options import EngineOptions, OntologyOptions, parse_time
from graphmatch.command.session import Session
from semantic.errors import OntologyError
from semantic.limits import Limits
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import SynonymOptions

LOADING = {"filter", "index", "check", "explain", "ontology", "watch", "serve"}


def test_every_command_with_an_ontology_has_the_options_of_loading() -> None:
    group: Any = typer.main.get_command(app)
    names = {field.name for field in fields(OntologyOptions)}
    for name in group.list_commands(None):
        there = {parameter.name for parameter in group.get_command(None, name).params}
        assert (names <= there) == (name in LOADING), name
        assert names <= there or not names & there


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the arguments of `Ontology.load`."""
    calls: list[dict[str, Any]] = []

    def note(*paths: Path, **arguments: Any) -> Ontology:
        calls.append({"paths": paths, **arguments})
        return Ontology()

    monkeypatch.setattr(Ontology, "load", note)
    return calls


FILE = Path("o.ttl")
WIDE = {"COLUMNS": "200"}
DEFAULTS = {
    "imports": None,
    "reason": None,
    "cache": None,
    "taxonomies": (),
    "synonyms": SynonymOptions(),
    "limits": Limits(),
}
OPTIONS: list[tuple[Sequence[str], dict[str, Any]]] = [
    ((), {}),
    (("--imports", "folder"), {"imports": Path("folder")}),
    (("--reason", "hermit"), {"reason": "hermit"}),
    (("--reason-seconds", "5"), {"limits": Limits(reasoning_seconds=5)}),
    (("--no-cache",), {"cache": False}),
    (("--cache", "folder"), {"cache": Path("folder")}),
    (
        ("--taxonomy", "skos:related", "--taxonomy", "http://e.org/p"),
        {"taxonomies": ("skos:related", "http://e.org/p")},
    ),
    (("--nfkc",), {"synonyms": SynonymOptions(nfkc=True)}),
    (("--casefold",), {"synonyms": SynonymOptions(casefold=True)}),
]


@pytest.mark.parametrize(("options", "expected"), OPTIONS)
def test_options_reach_the_ontology(
    options: Sequence[str], expected: dict[str, Any], given: list[dict[str, Any]]
) -> None:
    result = CliRunner().invoke(app, ["ontology", "o.ttl", *options])
    assert result.exit_code == 0, result.output
    (call,) = given
    assert call.pop("on_problem") is not None
    assert call.pop("on_progress") is not None
    assert call == {"paths": (FILE,), **DEFAULTS, **expected}


@pytest.mark.parametrize("command", sorted(LOADING - {"ontology", "watch", "serve"}))
def test_options_reach_the_ontology_of_other_commands(
    command: str, given: list[dict[str, Any]], tmp_path: Path
) -> None:
    query = tmp_path / "q.rq"
    query.write_text("SELECT * { ?s ?p ?o }")
    data = tmp_path / "a.nt"
    data.write_text("<urn:a> <urn:b> <urn:c> .")
    arguments = {
        "filter": [data, "-s", query],
        "index": ["-s", query, "--output", tmp_path / "engine.gm"],
        "check": [query],
        "explain": ["q", data, "-s", query],
    }
    line = [command, *arguments[command], "-o", "o.ttl", "--reason", "pellet", "--no-cache"]
    result = CliRunner().invoke(app, list(map(str, line)))
    assert result.exit_code == 0, result.output
    assert given[0]["reason"] == "pellet"
    assert given[0]["cache"] is False


def test_two_options_of_the_cache() -> None:
    with pytest.raises(OntologyError, match="--cache and --no-cache are given both"):
        Session().ontology([], OntologyOptions(cache=Path("folder"), no_cache=True))


def test_a_reasoner_that_there_is_not() -> None:
    result = CliRunner(env=WIDE).invoke(app, ["ontology", "o.ttl", "--reason", "magic"])
    assert result.exit_code == 2
    assert "'hermit', 'pellet'" in result.output


# --- Time ----------------------------------------------------------------------------------------


def test_time() -> None:
    east = timezone(timedelta(hours=2))
    assert parse_time("2026-05-06T07:08:09+02:00") == datetime(2026, 5, 6, 7, 8, 9, tzinfo=east)
    assert parse_time("2026-05-06T07:08:09Z").tzinfo is not None
    assert parse_time("2026-05-06") == datetime(2026, 5, 6, tzinfo=UTC)


def test_invalid_times_are_refused() -> None:
    line = ["filter", "a.ttl", "-s", "q.rq", "--now", "yesterday"]
    result = CliRunner(env=WIDE).invoke(app, line)
    assert result.exit_code == 2
    assert "is not a time such as 2026-01-02T03:04:05Z" in result.output


def test_the_clock_of_the_engine_stands(tmp_path: Path) -> None:
    """NOW() in a subscription returns the time of --now."""
    now = datetime(2001, 2, 3, tzinfo=UTC)
    query, data = tmp_path / "q.rq", tmp_path / "a.nt"
    query.write_text("SELECT ?year { ?s ?p ?o BIND(YEAR(NOW()) AS ?year) }")
    data.write_text("<urn:a> <urn:b> <urn:c> .")
    arguments = ["filter", data, "-s", query, "--now", now.isoformat()]
    result = CliRunner().invoke(app, list(map(str, arguments)))
    assert "?year = 2001\n" in result.output
    assert Session().engine(EngineOptions([], now=now)) is not None
