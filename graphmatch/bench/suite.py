"""``graphmatch bench all``: what users get, measured beside what they could use instead.

Each run (`graphmatch.bench.summary`) is measured in a process of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from graphmatch.bench import report, summary
from graphmatch.bench.measures import MEASURES
from graphmatch.bench.process import Row
from graphmatch.bench.results import add_results, machine, read_results
from graphmatch.bench.runner import Scale, asked
from graphmatch.bench.summary import MEMORY, RUNS, Run
from graphmatch.bench.workloads import Size
from graphmatch.console import CommandConsole

SECONDS: Mapping[Scale, float] = {"small": 2.0, "full": 10.0}
"""The time limit of each column."""
EVENTS = 200
RESULTS = Path(__file__).with_name("suite.json")
"""The results of the last full run, which the documentation shows."""


def run(
    names: Sequence[str],
    scale: Scale,
    seed: int,
    feeds: Path | None,
    output: Path | None,
    *,
    json: bool = False,
) -> int:
    """Measure all runs, or those with these names; print their results; return the exit status.

    If there is a folder `output`, also write them to suite.json in it, besides those of other runs.
    Raise `InputError` for an unknown name, or if that file is not JSON or cannot be written.
    """
    out, err = CommandConsole(), CommandConsole(stderr=True)
    status, results = 0, dict[str, Row]()
    if output:
        read_results(output / RESULTS.name)  # A damaged file is an error before the runs.
    for name in report.named(names, RUNS, "bench all") or RUNS:
        one = RUNS[name]
        with err.status(name) if err.is_terminal else nullcontext():
            found = measured(one, scale, seed, feeds)
        if problem := report.show_problems(err, name, found):
            status = problem
            continue
        rows = {row["column"]: row for row in found["rows"]}
        kept = {
            column: {
                key: float(f"{rows[column][key]:.5g}")
                for key in (one.key, MEMORY)
                if rows[column].get(key) is not None
            }
            for column in one.columns()
            if column in rows
        }
        where = f"{scale} scale, seed {seed}, {machine()}, {datetime.now(UTC):%Y-%m-%d}"
        results[name] = {"size": one.sizes[scale], "machine": where, "columns": kept}
        if output:
            add_results(output / RESULTS.name, {name: results[name]})
        if json:
            out.write_json({"run": name, **results[name], "rows": found["rows"]})
    if not json and results:
        out.print(summary.table(results))
    return status


def measured(one: Run, scale: Scale, seed: int, feeds: Path | None) -> Row:
    """Measure a run in a process of its own; return its rows, and an error in ``wrong``, if any."""
    size, parameters = Size(one.sizes[scale], EVENTS, seed), dict(one.parameters)
    if one.measured in MEASURES:
        return asked("measures", [one.measured], size, parameters=parameters)
    if one.measured == "keywords" and feeds is not None:
        parameters["feeds"] = str(feeds)
    more = {"parameters": parameters, "seconds": SECONDS[scale], "passes": one.passes}
    return asked(one.measured, one.columns(), size, **more)
