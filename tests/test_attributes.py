"""Attribute subscriptions and events end to end, through the command line."""

from __future__ import annotations

import json
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from graphmatch.cli import app

ROOT = Path(__file__).parents[1]
SHOP = "https://graphmatch.example/shop#"
ONTOLOGIES = ("products.ttl", "synonyms.csv", "jobs.ttl", "experience.rq", "measures.ttl")
KNOWN = [part for name in ONTOLOGIES for part in ("-o", f"ontologies/{name}")]


def run(*arguments: object, status: int = 0, stdin: bytes = b"") -> Any:
    with chdir(ROOT):
        result = CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == status, (result.stdout, result.stderr)
    return result


def lines(path: Path, rows: list[object]) -> Path:
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def term(value: str, datatype: str | None = None) -> dict[str, str]:
    """Return a literal in SPARQL results JSON."""
    said = {} if datatype is None else {"datatype": datatype}
    return {"type": "literal", "value": value, **said}


def matched(tmp_path: Path, where: object, event: object, *options: object) -> bool:
    subscriptions = lines(tmp_path / "s.jsonl", [{"id": "s", "where": where}])
    events = lines(tmp_path / "e.jsonl", [event])
    result = run("filter", "--events", events, "-s", subscriptions, *KNOWN, "--json", *options)
    return bool(result.stdout)


# --- Examples from the papers -----------------------------------------------------------------

FIGURE_2 = {
    "seller.name": "John",
    "seller.cellphoneNumber": "123456789",
    "price.value": 450,
    "price.currency": "units:$",
    "target": "Desktop PC",
    "target.manufacture.name": "IBM",
    "target.hardDisk.size.value": 40,
    "target.hardDisk.size.units": "units:G",
    "target.hardDisk.manufacture.name": "IBM",
}
"""The nine pairs of CTPS's section 3.2."""


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"target": {"isa": "Computer"}, "price.value": {">=": 0, "<=": 400}}, False),
        ({"target": {"isa": "Computer"}, "price.value": {">=": 0, "<=": 450}}, True),
        ({"target": {"isa": "Computer"}, "price.currency": "units:$"}, True),
        ({"target": {"isa": "product"}}, True),
        ({"target": {"isa": "laptop PC"}}, False),
        ({"target": "Desktop PC"}, True),
        ({"seller.contactInformation": "123456789"}, True),
        ({"seller.email": {"exists": True}}, False),
        ({"target.hardDisk.size.value": {">=": 40}, "target.hardDisk.manufacture.name": "IBM"},
         True),
    ],
)  # fmt: skip
def test_ctps_figure_2(tmp_path: Path, where: object, expected: bool) -> None:
    assert matched(tmp_path, where, FIGURE_2) is expected


def test_ctps_attribute_and_value_have_to_be_of_one_pair(tmp_path: Path) -> None:
    """The number and the address belong to two subattributes, so no value passes both tests."""
    where = {"seller.contactInformation": {"starts": "1", "contains": "@"}}
    event = {"seller": {"cellphoneNumber": "123", "email": "a@example.org"}}
    assert not matched(tmp_path, where, event)
    assert matched(tmp_path, {"seller.email": {"contains": "@"}}, event)


@pytest.mark.parametrize(
    ("year", "now", "expected"),
    [(1990, "2003-06-01", True), (2000, "2003-06-01", False), (2000, "2004-01-01", True)],
)
def test_stopss(tmp_path: Path, year: int, now: str, expected: bool) -> None:
    """Professional experience is the present date minus the graduation year."""
    where = {"university": "Toronto", "degree": "PhD", "professionalExperience": {">=": 4}}
    event = {"school": "Toronto", "degree": "PhD", "work experience": True, "graduationYear": year}
    assert matched(tmp_path, where, event, "--now", now) is expected


def test_gryphon(tmp_path: Path) -> None:
    where = {"issue": "IBM", "price": {"<": 120}, "volume": {">": 1000}}
    assert matched(tmp_path, where, {"issue": "IBM", "price": 119.95, "volume": 1001})
    assert not matched(tmp_path, where, {"issue": "IBM", "price": 120, "volume": 1001})


# --- Events and the ontology ------------------------------------------------------------------


def test_base_units_hold_for_attributes(tmp_path: Path) -> None:
    """``shop:weight`` is in kilograms."""
    event = {"weight": {"value": 2000, "unit": "g"}}
    assert matched(tmp_path, {"weight": 2}, event)
    assert matched(tmp_path, {"weight": {"<": {"value": 5, "unit": "[lb_av]"}}}, event)
    assert not matched(tmp_path, {"weight": {">": 2}}, event)


def test_sparql_matches_events(tmp_path: Path) -> None:
    query = f"SELECT ?v {{ ?e <{SHOP}price> ?p ; a <{SHOP}Offer> . ?p <{SHOP}value> ?v }}"
    subscriptions = lines(tmp_path / "s.jsonl", [{"id": "s", "query": query}])
    events = lines(tmp_path / "e.jsonl", [{"price.value": 5}])
    result = run("filter", "--events", events, "-s", subscriptions, *KNOWN, "--json")
    assert json.loads(result.stdout)["solutions"] == [
        {"v": term("5", "http://www.w3.org/2001/XMLSchema#integer")}
    ]


@pytest.mark.parametrize("entailment", ["rdfs", "none"])
def test_classes_hold_whatever_entailment_says(tmp_path: Path, entailment: str) -> None:
    names = ["Computer", "shop:Computer", f"<{SHOP}Computer>", "ordinateur", "COMPUTER"]
    rows: list[object] = [{"id": name, "where": {"target": {"isa": name}}} for name in names]
    subscriptions = lines(tmp_path / "s.jsonl", rows)
    events = lines(tmp_path / "e.jsonl", [{"target": "Ultrabook"}])
    options = ("-s", subscriptions, *KNOWN, "--entailment", entailment, "--json")
    result = run("filter", "--events", events, *options)
    assert [json.loads(line)["subscription"] for line in result.stdout.splitlines()] == names


# --- Graphs -----------------------------------------------------------------------------------


def test_attributes_match_graphs(tmp_path: Path) -> None:
    where = {
        "target": {"isa": "Computer"},
        "seller.contactInformation": {"contains": "@"},
        "price.value": {">": 1000},
    }
    subscriptions = lines(tmp_path / "s.jsonl", [{"id": "s", "where": where}])
    result = run("filter", "data/publications/offers.nq", "-s", subscriptions, *KNOWN, "--json")
    (row,) = map(json.loads, result.stdout.splitlines())
    assert row["publication"] == "https://graphmatch.example/offers/ultrabook-1400"
    assert row["solutions"][0]["seller_contactInformation"] == term("amelie@shop.example")


def test_explain_says_where_an_attribute_was_found(tmp_path: Path) -> None:
    where = {"seller.contactInformation": {"exists": True}}
    subscriptions = lines(tmp_path / "s.jsonl", [{"id": "s", "where": where}])
    events = lines(tmp_path / "e.jsonl", [{"id": "e1", "seller.mobile": "555"}])
    result = run("explain", "s", "--events", events, "-s", subscriptions, *KNOWN)
    assert "attribute:seller.contactInformation" in result.stdout
    assert "shop:cellphoneNumber ⊑ shop:contactInformation" in result.stdout


# --- Errors -----------------------------------------------------------------------------------

BAD_CONSTRAINTS: dict[str, tuple[object, str]] = {
    "operator": ({"a": {"~": 1}}, "attribute 'a': there is no operator '~'. Use one of ="),
    "empty": ({"a": {}}, "attribute 'a': the constraint is empty. Write {\"exists\": true}."),
    "nothing": ({}, "`where` is not an object with an attribute. "),
    "list": ({"a": [1, 2]}, "attribute 'a': a list is not a valid value. "),
    "null": ({"a": None}, "attribute 'a': null is not a valid value. "),
    "name": ({"a..b": 1}, "'a..b' is not a valid attribute name. "),
    "IRI": ({"<a b>": 1}, "<a b> is not a valid IRI. "),
    "order": ({"a": {"<": True}}, "attribute 'a': the operand of '<' has no order. "),
    "digits": ({"a": {"<": 2**63}}, "attribute 'a': 9223372036854775808 has too many digits "),
    "date": ({"a": {"<": "2026-02-31"}}, "'2026-02-31' is not a valid date. "),
    "text": ({"a": {"contains": 5}}, "attribute 'a': the operand of 'contains' is not a string. "),
    "in": ({"a": {"in": "red"}}, "the operand of 'in' is not a list of values. "),
    "exists": ({"a": {"exists": False}}, "attribute 'a': 'exists' can only be true"),
    "case": ({"a": {"<": 5, "ignore case": True}}, "'ignore case' can only be used with "),
    "case said": ({"a": {"=": "x", "ignore case": 1}}, "'ignore case' is neither true nor false. "),
    "field": ({"a": {"value": 1, "type": "x"}}, "a value cannot have the field 'type'. "),
    "fields": ({"a": {"value": 1, "iri": "x"}}, "the fields iri, value cannot be combined. "),
    "datatype": ({"a": {"value": "x", "datatype": "y"}}, "'y' is not an absolute IRI and has no"),
    "typed": (
        {"a": {"value": "x", "datatype": "xsd:date"}},
        "'x' is not a valid value of the datatype ",
    ),
    "unit": ({"a": {"value": "x", "unit": "GB"}}, "'x GB' is not a valid quantity. "),
    "language": ({"a": {"value": "x", "language": "!"}}, "'!' is not a language tag. "),
    "isa": ({"a": {"isa": 5}}, "the operand of 'isa' is not a class name. "),
    "steps": ({".".join("a" * 20): 1}, "has more than 16 steps (the limit `attribute_steps`). "),
    "query": (None, "the field `query` is missing. "),
}


@pytest.mark.parametrize("name", BAD_CONSTRAINTS)
def test_bad_constraint_is_reported_and_the_rest_goes_on(name: str, tmp_path: Path) -> None:
    where, message = BAD_CONSTRAINTS[name]
    bad = {"id": "bad"} if where is None else {"id": "bad", "where": where}
    rows = [{"id": "good", "where": {"a": 1}}, bad]
    subscriptions = lines(tmp_path / "s.jsonl", rows)
    events = lines(tmp_path / "e.jsonl", [{"a": 1}])
    result = run("filter", "--events", events, "-s", subscriptions, "--json", status=1)
    (told, _) = result.stderr.splitlines()
    assert told.startswith(f"refused  {subscriptions}:2")
    assert message in told
    assert json.loads(result.stdout)["subscription"] == "good"


def test_duplicate_names_in_a_line_are_refused(tmp_path: Path) -> None:
    subscriptions = lines(tmp_path / "s.jsonl", ['{"id": "a", "where": {"a": 1, "a": 2}}'])
    result = run("filter", "--events", "data/events.jsonl", "-s", subscriptions, status=2)
    assert f"{subscriptions}:1: the field 'a' occurs twice. Write it once." in result.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Komputer", "has no term called 'Komputer'. Is shop:Computer meant?"),
        ("shop:None", "has no term called 'shop:None'. "),
        ("thing", "2 terms are called 'thing': ex:Thing, other:Thing. Give one"),
    ],
)
def test_class_that_is_unknown_or_not_the_only_one(name: str, message: str, tmp_path: Path) -> None:
    ontology = tmp_path / "o.ttl"
    ontology.write_text(
        "@prefix ex: <http://e/> . @prefix other: <http://f/> . "
        "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . "
        "ex:Thing a rdfs:Class . other:Thing a rdfs:Class .",
        encoding="utf-8",
    )
    rows: list[object] = [{"id": "bad", "where": {"a": {"isa": name}}}]
    subscriptions = lines(tmp_path / "s.jsonl", [*rows, {"id": "good", "where": {"a": 1}}])
    result = run(
        *("filter", "--events", "data/events.jsonl", "-s", subscriptions, "-o", ontology),
        *("-o", "ontologies/products.ttl"),
        status=1,
    )
    assert f"{subscriptions}:1 (bad): " in result.stderr
    assert message in result.stderr


BAD_EVENTS: dict[str, tuple[str, str]] = {
    "not JSON": ('{"a": 1', ":2:8: not JSON: Expecting ',' delimiter. Write {"),
    "no object": ("[1]", ":2: not a JSON object. Write {"),
    "empty": ("{}", ":2: the event has no attributes. Write {"),
    "only null": ('{"a": null}', ":2: the event has no attributes. "),
    "id": ('{"id": ["x"], "a": 1}', ":2: the field `id` is not a string. "),
    "name": (
        '{"id": "x", "a.": 1}',
        ":2 (x): 'a.' is not a valid attribute name. Separate the steps",
    ),
    "NaN": ('{"a": NaN}', ":2: NaN cannot be compared. Leave it out."),
    "value": ('{"a": {"value": "x", "language": "!"}}', ":2: attribute 'a': '!' is not a langua"),
    "twice": ('{"a": 1, "a": 2}', ":2: the field 'a' occurs twice. Write it once."),
    "surrogate": ('{"a": "\\ud800"}', ":2: attribute 'a': a string has a lone surrogate"),
}


@pytest.mark.parametrize("name", BAD_EVENTS)
def test_bad_event_is_reported_and_the_rest_goes_on(name: str, tmp_path: Path) -> None:
    row, message = BAD_EVENTS[name]
    events = lines(tmp_path / "e.jsonl", ['{"a": 1}', row, "", '{"id": 3, "a": 1}'])
    subscriptions = lines(tmp_path / "s.jsonl", [{"id": "s", "where": {"a": {"<": 2}}}])
    result = run("filter", "--events", events, "-s", subscriptions, "--json", status=1)
    told, counts = result.stderr.splitlines()
    assert told.startswith(f"refused  {events}{message}")
    assert counts.startswith("2 publications, 1 subscription: 2 matches")
    assert [json.loads(line)["publication"] for line in result.stdout.splitlines()] == [
        f"{events}:1",
        "3",
    ]


def test_events_from_standard_input(tmp_path: Path) -> None:
    subscriptions = lines(tmp_path / "s.jsonl", [{"id": "s", "where": {"a": 1}}])
    event = b'{"id": "x", "a": 1}\n'
    result = run("filter", "--events", "-", "-s", subscriptions, "--json", stdin=event)
    assert json.loads(result.stdout)["publication"] == "x"


def test_a_file_of_events_that_is_not_there() -> None:
    result = run(
        "filter", "--events", "none.jsonl", "-s", "data/attributes.jsonl", *KNOWN, status=1
    )
    assert "none.jsonl: cannot be read: No such file or directory. " in result.stderr


def test_nothing_to_read() -> None:
    result = run("filter", "-s", "data/attributes.jsonl", *KNOWN, status=2)
    assert "there is nothing to read. Name feeds and RDF files, or --events." in result.stderr
