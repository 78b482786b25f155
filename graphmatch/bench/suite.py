"""``graphmatch bench all``: what a user gets, as a list of claims, each measured in one run.

A `Run` is a workload with columns (`graphmatch.bench.runner`) or a function of
`graphmatch.bench.measures`, in a process of its own. A `Claim` compares two of its columns, or one
with a number; `RUNS` lists them all.
"""

from __future__ import annotations

import json as json_format
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from os import cpu_count
from pathlib import Path
from typing import Any, Literal, TypeAlias

from graphmatch.bench.measures import MEASURES
from graphmatch.bench.process import Row, in_own_process
from graphmatch.bench.tables import MICROS
from graphmatch.command.console import CommandConsole, styled
from semantic.errors import InputError, Place, Problem

Scale: TypeAlias = Literal["small", "full"]

SECONDS: Mapping[Scale, float] = {"small": 2.0, "full": 10.0}
"""How long each column may match."""

MEMORY, RATE, BUILT = "bytes_per_subscription", "subscriptions_per_second", "build_seconds"
_UNITS = {
    MICROS: "µs",
    "microseconds": "µs",
    "seconds": "s",
    "megabytes": "MB",
    MEMORY: "bytes",
    RATE: "a second",
    "per_second": "a second",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """What is shown of a run.

    Parameters
    ----------
    of, beside
        Columns, or with ``beside`` left out one.
    key
        Which value of their rows.
    most, least
        What is wanted: of the ratio where there are two columns, of the value where there is one.
    """

    what: str
    of: str
    beside: str | None = None
    key: str = MICROS
    most: float | None = None
    least: float | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """What is measured in one process.

    Parameters
    ----------
    measured
        A workload, or one of `MEASURES`.
    sizes
        How many subscriptions, at each scale.
    parameters
        Of the workload, or of the function.
    columns
        Of a workload; those that claims mention are added.
    """

    name: str
    measured: str
    sizes: Mapping[Scale, int]
    claims: Sequence[Claim]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    columns: Sequence[str] = ()
    events: int = 200


def _sizes(small: int, full: int) -> Mapping[Scale, int]:
    return {"small": small, "full": full}


_NT, _NEW, _OBJECTS, _CORE = (f"graphmatch:{of}" for of in ("nt", "nt+new", "objects", "core"))
_DICTIONARY, _NEW_DICTIONARY = "dictionary:integers", "dictionary:integers+new"
_ARROW, _DICTS, _SCAN = "graphmatch:arrow", "graphmatch:dicts", "scan:integers"


def _graph(name: str, what: str, **parameters: Any) -> Run:
    claims = (
        Claim(f"{what}, bytes that come again, beside the dictionary", _NT, _DICTIONARY, most=0.25),
        Claim(f"{what}, bytes of new documents", _NEW, _NEW_DICTIONARY, most=0.25),
        Claim("new documents beside those that come again", _NEW, _NT, most=1.3),
        Claim("objects beside bytes", _OBJECTS, _NT, most=2.5),
        Claim("the core alone, beside the dictionary", _CORE, _DICTIONARY),
        Claim("memory", _NT, key=MEMORY, most=parameters.pop("memory")),
    )
    return Run(name, "graph", _sizes(10_000, 100_000), claims, {"matches": 1, **parameters})


def _million(name: str, what: str, memory: int, **parameters: Any) -> Run:
    claims = (
        Claim(f"{what}, beside a tenth of the subscriptions", _NT, f"{_NT}@/10", most=2),
        Claim(f"{what}, new documents", _NEW, f"{_NEW}@/10", most=2),
        Claim("memory", _NT, key=MEMORY, most=memory),
    )
    return Run(name, "graph", _sizes(50_000, 1_000_000), claims, {"matches": 1, **parameters})


def _many(matches: int) -> Run:
    claims = (
        Claim(f"{matches:,} matches, bytes in, ids read", _NT, _DICTIONARY, most=1),
        Claim(f"{matches:,} matches, new documents", _NEW, _NEW_DICTIONARY, most=1),
    )
    sizes = _sizes(20_000, 1_000_000)
    return Run(f"matches-{matches}", "graph", sizes, claims, {"matches": matches})


def _published(name: str, what: str, workload: str, best: str, size: int, **parameters: Any) -> Run:
    beside = f"{best}:values"
    claims = (
        Claim(f"{what}, Arrow, beside {best}", _ARROW, beside, most=1),
        Claim(f"{what}, the core alone, beside {best}", _CORE, beside),
    )
    return Run(name, workload, _sizes(min(size, 5000), size), claims, parameters)


RUNS: Sequence[Run] = (
    _graph("graph-own", "each its own shape", shapes=0, memory=500),
    _graph("graph-few", "100 shapes", memory=250),
    Run(
        "graph-shapes",
        "graph",
        _sizes(10_000, 100_000),
        (Claim("100 shapes beside each its own", _NT, f"{_NT}?shapes=0", most=1.1),),
        {"matches": 1},
    ),
    _million("graph-own-million", "each its own shape", 500, shapes=0),
    _million("graph-few-million", "100 shapes", 250),
    Run(
        "matches",
        "graph",
        _sizes(50_000, 1_000_000),
        (
            Claim("1,000 matches, ids read", _NT, most=300),
            Claim("1,000 matches beside 30", _NT, f"{_NT}?matches=30", most=3),
        ),
        {"matches": 1000},
    ),
    *map(_many, (0, 30, 1000, 10_000)),
    Run(
        "syntaxes",
        "graph",
        _sizes(10_000, 100_000),
        tuple(
            Claim(
                f"{syntax}, beside parsing it alone",
                f"graphmatch:{syntax}+new",
                f"parse:{syntax}+new",
                most=1 if syntax == "nt" else 1.5,
            )
            for syntax in ("nt", "turtle", "rdfxml", "jsonld")
        ),
        {"matches": 1},
    ),
    Run(
        "feeds",
        "keywords",
        _sizes(1000, 10_000),
        (
            Claim(
                "feeds, topics and keywords, beside reading alone",
                "graphmatch:feed",
                "read:feed",
                most=1.3,
            ),
            Claim("feeds, topics and keywords, beside expat", "graphmatch:feed", "parse:feed"),
        ),
        {"topics": 0.5},
        ("graphmatch:objects",),
    ),
    Run(
        "keywords",
        "keywords",
        _sizes(10_000, 100_000),
        (
            Claim("many keywords beside 100", "graphmatch:feed", "graphmatch:feed@100", most=1.5),
            Claim(
                "many keywords, items as objects, beside the dictionary",
                _OBJECTS,
                "dictionary:titles",
            ),
        ),
        {"heard": 100},
    ),
    Run(
        "ranges",
        "attributes",
        _sizes(20_000, 1_000_000),
        (
            Claim("ten ranges, 1 %, Arrow, beside the scan", _ARROW, _SCAN, most=0.1),
            Claim("ten ranges, 1 %, dicts, beside the scan", _DICTS, _SCAN, most=0.2),
            Claim("ten ranges, the core alone, beside the scan", _CORE, _SCAN),
            Claim("ten ranges, Arrow, beside DuckDB", _ARROW, "duckdb:statement", most=1),
            Claim("ten ranges, memory", _ARROW, key=MEMORY, most=130),
        ),
    ),
    *(
        Run(
            f"concepts-{height}",
            "concepts",
            _sizes(10_000, 100_000),
            (
                Claim(
                    f"concepts, height {height}, Arrow, beside the scan", _ARROW, _SCAN, most=0.25
                ),
                Claim(
                    f"concepts, height {height}, dicts, beside the scan", _DICTS, _SCAN, most=0.5
                ),
                Claim(f"concepts, height {height}, the core alone", _CORE, _SCAN),
            ),
            {"height": height},
        )
        for height in (1, 5, 10)
    ),
    Run(
        "concepts-heights",
        "concepts",
        _sizes(10_000, 100_000),
        (Claim("concepts, height 10 beside height 1", _ARROW, f"{_ARROW}?height=1", most=1.2),),
        {"height": 10},
    ),
    _published("few-values", "few values", "equalities", "gryphon", 100_000),
    _published("narrow", "narrow ranges", "ranges", "htree", 100_000, width=0.1),
    _published("points", "points", "ranges", "betree", 100_000, points=0.9),
    _published("trees", "10 % of trees", "trees", "ctps", 10_000, matching=0.1),
    *(
        Run(
            f"subscribing-{name}",
            "subscribing",
            _sizes(5000, 100_000),
            (
                Claim(f"SPARQL in bulk, {shapes}", "many", key="per_second", least=many),
                Claim(f"SPARQL one by one, {shapes}", "one", key="per_second", least=10_000),
                Claim(f"unsubscribing, {shapes}", "unsubscribe", key="per_second", least=50_000),
                Claim(f"SPARQL in bulk, {shapes}, beside parsing", "many", "parse", "per_second"),
            ),
            parameters,
        )
        for name, shapes, many, parameters in (
            ("own", "each its own shape", 20_000, {"shapes": 0}),
            ("few", "few shapes", 100_000, {}),
        )
    ),
    Run(
        "subscribing-rows",
        "rows",
        _sizes(5000, 1_000_000),
        (Claim("rows of ten ranges from Arrow", "many", key="per_second", least=500_000),),
    ),
    Run(
        "threads",
        "threads",
        _sizes(10_000, 100_000),
        (Claim("two threads beside one", "two", "one", "microseconds", most=1 / 1.8),),
    ),
    Run(
        "opening",
        "opening",
        _sizes(10_000, 1_000_000),
        (Claim("opening what was saved", "opened", key="seconds", most=0.5),),
    ),
    Run(
        "starting",
        "starting",
        _sizes(200, 6000),
        (
            Claim("import graphmatch", "import", key="seconds", most=0.15),
            Claim("an engine", "engine", key="seconds"),
            Claim(
                "graphmatch filter of a feed, sample subscriptions",
                "filter",
                key="seconds",
                most=0.5,
            ),
            Claim("the same with a thesaurus, second run", "thesaurus", key="seconds", most=1),
        ),
    ),
    Run(
        "solutions",
        "solutions",
        _sizes(200, 2000),
        (
            Claim("n by n solutions, only ids read", "product", key="microseconds", most=10_000),
            Claim("n by n solutions, beside n", "product", "single", "microseconds"),
        ),
    ),
    Run(
        "churn",
        "churn",
        _sizes(2000, 100_000),
        (Claim("memory after 20 rounds beside 2", "last", "first", "megabytes", most=1.05),),
    ),
)


def run(
    names: Sequence[str], scale: Scale, seed: int, feeds: Path | None, *, json: bool = False
) -> int:
    """Measure all runs, or those that are named, and return the exit status.

    Raises
    ------
    InputError
        For a name of none.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    known = {one.name: one for one in RUNS}
    for name in names:
        if name not in known:
            what, remedy = f"no run is called '{name}'", f"There are: {', '.join(known)}."
            raise InputError(Problem(what, Place("bench all"), remedy))
    status, shown = 0, list[Row]()
    for one in [known[name] for name in names] or RUNS:
        with err.status(one.name) if err.is_terminal else nullcontext():
            found = measured(one, scale, seed, feeds)
        if "failed" in found:
            err.print(styled((f"{one.name} failed: ", "red"), str(found["failed"])))
            status = 2
            continue
        wrong = next((row["disagreement"] for row in found["rows"] if "disagreement" in row), None)
        if wrong:
            said = f"{one.name}: the engines do not agree, so their times say nothing: "
            err.print(styled((said, "red"), str(wrong)))
            status = 2
            continue
        shown += claims_of(one, found["rows"])
        if json:
            about = {"run": one.name, "scale": scale, "subscriptions": one.sizes[scale]}
            out.write_json(
                {**about, "rows": found["rows"], "claims": list(claims_of(one, found["rows"]))}
            )
    if not json and shown:
        machine = f"{cpu_count()} cores, Python {platform.python_version()}"
        head = [f"{scale} scale, seed {seed}, {machine}", ""]
        head += ["| what | measured | beside | ratio | wanted | holds |", "| --- " * 6 + "|"]
        for line in (*head, *map(_written, shown)):
            out.print(styled(line), soft_wrap=True)
    return status


def measured(one: Run, scale: Scale, seed: int, feeds: Path | None) -> Row:
    """Measure a run in a process of its own; return its rows, or why it failed."""
    parameters = dict(one.parameters)
    size = one.sizes[scale]
    if one.measured in MEASURES:
        asked = {"subscriptions": size, "seed": seed, **parameters}
        return in_own_process("graphmatch.bench.measures", one.measured, json_format.dumps(asked))
    if one.measured == "keywords" and feeds is not None:
        parameters["feeds"] = str(feeds)
    mentioned = [name for claim in one.claims for name in (claim.of, claim.beside) if name]
    request = {
        "workload": one.measured,
        "columns": list(dict.fromkeys([*mentioned, *one.columns])),
        "size": [size, one.events, seed],
        "more": {"parameters": parameters, "seconds": SECONDS[scale]},
    }
    return in_own_process("graphmatch.bench.runner", json_format.dumps(request))


def claims_of(one: Run, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield what a run shows of its claims."""
    by_column = {row["column"]: row for row in rows}
    for claim in one.claims:
        value = by_column[claim.of][claim.key]
        other = by_column[claim.beside][claim.key] if claim.beside else None
        ratio = value / other if value is not None and other else None
        judged = ratio if claim.beside else value
        holds = None
        if judged is not None and claim.most is not None:
            holds = judged <= claim.most
        elif judged is not None and claim.least is not None:
            holds = judged >= claim.least
        yield {
            "run": one.name,
            "what": claim.what,
            "measured": value,
            "beside": other,
            "unit": _UNITS[claim.key],
            "ratio": ratio,
            "most": claim.most,
            "least": claim.least,
            "holds": holds,
        }


def _written(row: Row) -> str:
    """Return a claim as a row of a table in Markdown."""
    numbers = [_number(row[name], row["unit"]) for name in ("measured", "beside")]
    ratio = _number(row["ratio"], "")
    unit = row["unit"] if row["ratio"] is None else ""
    words = {"most": "at most", "least": "at least"}
    bounds = (f"{words[b]} {_number(row[b], unit)}" for b in words if row[b] is not None)
    holds = "" if row["holds"] is None else "yes" if row["holds"] else "no"
    what = f"{row['run']}: {row['what']}"
    return f"| {' | '.join([what, *numbers, ratio, next(bounds, ''), holds])} |"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "µs" and value >= 1000:
        value, unit = value / 1000, "ms"
    return (f"{value:,.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}").rstrip()
