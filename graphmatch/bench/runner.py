"""One workload, all engines in this process, on one core: the only way in which events are timed.

The unit of measurement is a *column*: an engine, the form of its events, and whether these are
repeated or new. docs/benchmarks.md describes the method: engines are rehearsed, built one after the
other, and match the same block of events in turn. The matches of each event are compared among the
columns of exact engines, because times mean nothing without that.
"""

from __future__ import annotations

import gc
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from itertools import count, islice
from time import perf_counter
from typing import Any, Literal, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np

from graphmatch.bench.adapters import Adapter, adapter
from graphmatch.bench.peers import PEERS
from graphmatch.bench.process import Row, in_own_process, one_core, resident_bytes
from graphmatch.bench.workloads import WORKLOADS, Size, Workload, workload_class

Scale: TypeAlias = Literal["small", "full"]
MICROS = "median_microseconds_per_event"
BLOCK = 50
WARM_NEW, WARM_SECONDS = 20, 3.0
LEAST_EVENTS = 3
"""The minimum number of events per column; it then goes on for at most its time."""

SECONDS = 20.0
REHEARSAL, REHEARSED = 200, 3
"""The number of subscriptions and events in a rehearsal."""


class Configuration(NamedTuple):
    """One column of a benchmark table: an engine, its input format (`form`), and its settings.

    `form` is one of `Adapter.forms`, by default the first. `new`: each measured event gets new
    terms; otherwise the same events repeat. `subscriptions` is their number if it differs from the
    run's size: a number, or ``/10`` for a tenth. A column may have `parameters` of the workload,
    and `options` of its algorithm.
    """

    engine: str
    form: str
    new: bool
    subscriptions: str
    parameters: Mapping[str, Any]
    options: Mapping[str, Any]

    @classmethod
    def of(cls, text: str) -> Configuration:
        """Parse ``ENGINE:FORM+new@SUBSCRIPTIONS?NAME=VALUE&NAME=VALUE#NAME=VALUE``, parts optional.

        Examples
        --------
        >>> gryphon = Configuration.of("gryphon#collapse=false")
        >>> Configuration.of("graphmatch:nt+new")[:4], gryphon.options
        (('graphmatch', 'nt', True, ''), {'collapse': False})
        >>> Configuration.of("graphmatch:nt@/10?shapes=0").size(5000)
        500
        """
        rest, _, options = text.partition("#")
        rest, _, parameters = rest.partition("?")
        rest, _, size = rest.partition("@")
        engine, _, form = rest.removesuffix("+new").partition(":")
        given = (
            {name: json.loads(v) for name, _, v in (p.partition("=") for p in part.split("&") if p)}
            for part in (parameters, options)
        )
        return cls(engine, form, rest.endswith("+new"), size, *given)

    def size(self, of_run: int) -> int:
        """Return the column's number of subscriptions in a run with `of_run`."""
        if self.subscriptions.startswith("/"):
            return max(1, of_run // int(self.subscriptions[1:]))
        return int(self.subscriptions or of_run)


@dataclass(slots=True)
class _Built:
    """An engine with its subscriptions, and the seconds of adding them.

    `resident` is the growth of the process's memory, `reported` the engine's own figure, in bytes.
    """

    adapter: Adapter
    workload: Workload
    seconds: float
    resident: int | None
    reported: int | None


@dataclass(slots=True)
class _Run:
    """The results of a column: each event's least time, number of matches, and their checksum.

    `steps` has the probes and candidates of each event, if the engine counts them.
    """

    text: str
    column: Configuration
    form: str
    built: _Built
    seconds: float
    micros: dict[int, float] = field(default_factory=dict)
    spent: float = 0.0
    matched: dict[int, tuple[int, int]] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    steps: list[int] = field(default_factory=list)

    def is_done(self) -> bool:
        """Return whether the column has used up its time, with at least `LEAST_EVENTS` events."""
        return len(self.micros) >= LEAST_EVENTS and self.spent > self.seconds

    def events(self, block: range, serials: Iterator[int]) -> list[Any]:
        """Return a block of events in the engine's form; new events get the next `serials`."""
        asked = [(number, next(serials) if self.column.new else None) for number in block]
        return self.built.adapter.prepare(self.built.workload, asked, self.form)

    def warm(self, serials: Iterator[int]) -> None:
        """Match repeated events once, or some new ones, for at most a few seconds; not recorded."""
        started, events = perf_counter(), self.built.workload.size.events
        for start in range(0, min(events, WARM_NEW) if self.column.new else events, WARM_NEW):
            for event in self.events(range(start, min(start + WARM_NEW, events)), serials):
                self.built.adapter.match(event, self.form)
                if perf_counter() - started > min(WARM_SECONDS, self.seconds):
                    return

    def match(self, block: range, serials: Iterator[int]) -> None:
        """Match a block of events until `is_done`, and record times, matches and counters.

        Each event is timed alone, a table of events as a whole.
        """
        made, numbers = self.built.adapter, iter(block)
        for event in self.events(block, serials):
            if self.is_done():
                return
            started = perf_counter()
            answers = made.match(event, self.form)
            took = perf_counter() - started
            self.spent += took
            for number, answer in zip(islice(numbers, len(answers)), answers, strict=True):
                micros = took / len(answers) * 1e6
                if number not in self.micros:
                    found = np.sort(made.numbers(answer))
                    self.matched[number] = (found.size, crc32(found.tobytes()))
                    if counters := made.counters(answer):
                        self.counted.update(counters)
                        self.steps.append(counters["probes"] + counters["candidates"])
                self.micros[number] = min(micros, self.micros.get(number, micros))


def asked(workload: str, columns: Sequence[str], size: Size, **more: Any) -> Row:
    """Measure in a process of its own; return ``rows``, and an error in ``wrong``, if any.

    `more` has arguments of `measured`. A workload outside of `WORKLOADS` is a module of this
    package, whose `measure` makes the rows. Columns of engines that are not installed are left out;
    ``missing`` says how to install these engines.
    """
    engines = {text: Configuration.of(text).engine for text in columns}
    missing = {name: PEERS[name].missing() for name in engines.values() if name in PEERS}
    columns = [text for text in columns if not missing.get(engines[text])]
    module = __name__ if workload in WORKLOADS else f"graphmatch.bench.{workload}"
    request = json.dumps([workload, columns, astuple(size), more], default=str)
    found = in_own_process(module, request)
    found["missing"] = {name: how for name, how in missing.items() if how}
    if "failed" in found:
        return {**found, "rows": [], "wrong": f"failed: {found['failed']}"}
    wrong = next((row["disagreement"] for row in found["rows"] if "disagreement" in row), None)
    said = f"the engines do not agree, so their times say nothing: {wrong}"
    return {**found, **({"wrong": said} if wrong else {})}


def measure(request: str) -> Row:
    """Return the rows of a request of `asked`, measured in this process."""
    workload, columns, size, more = json.loads(request)
    return {"rows": measured(workload, columns, Size(*size), **more)}


def measured(
    name: str,
    columns: Sequence[str],
    size: Size,
    parameters: Mapping[str, Any],
    *,
    seconds: float = SECONDS,
    passes: int = 1,
) -> list[Row]:
    """Measure configurations (`Configuration.of`) on a workload, as in docs/benchmarks.md.

    A column matches for at most `seconds`, and each event at most `passes` times. An event's time
    is its least.

    Examples
    --------
    >>> (row,) = measured("attributes", ["scan"], Size(100, 5), {"attributes": 2})
    >>> row["engine"], row["subscriptions"], row["events"], row["agrees"]
    ('scan', 100, 5, True)
    """
    serials = count()
    with one_core():
        few = Size(min(REHEARSAL, size.subscriptions), REHEARSED, size.seed)
        for run in _built(name, columns, few, parameters, seconds, alike=True):
            run.warm(serials)
            run.built.adapter.close()
        runs = _built(name, columns, size, parameters, seconds)
        gc.collect()
        gc.freeze()  # no engine's objects must slow another engine down
        for run in runs:
            run.warm(serials)
        for start in [*range(0, size.events, BLOCK)] * passes:
            for run in runs:
                if not run.is_done():
                    run.match(range(start, min(start + BLOCK, size.events)), serials)
        gc.unfreeze()
    wrong = _disagreement(runs)
    rows = [_row(name, run, size, wrong) for run in runs]
    for run in runs:
        run.built.adapter.close()
    return rows


def _built(
    name: str,
    columns: Sequence[str],
    size: Size,
    parameters: Mapping[str, Any],
    seconds: float,
    *,
    alike: bool = False,
) -> list[_Run]:
    """Return a run for each column; build each engine once for all of its columns.

    If `alike`, all have the size's number of subscriptions, not one of their own.
    """
    class_ = workload_class(name)
    workloads: dict[tuple[int, str], Workload] = {}
    engines: dict[tuple[str, str, int, str], _Built] = {}
    found = []
    for text in columns:
        column = Configuration.of(text)
        wanted = size.subscriptions if alike else column.size(size.subscriptions)
        key = wanted, str(column.parameters)
        if key not in workloads:
            of_column = Size(wanted, size.events, size.seed)
            workloads[key] = class_(of_column, **{**parameters, **column.parameters})
        of = column.engine, str(column.options), *key
        if of not in engines:
            engines[of] = _build(column, workloads[key])
        form = column.form or engines[of].adapter.forms[name][0]
        found.append(_Run(text, column, form, engines[of], seconds))
    return found


def _build(column: Configuration, workload: Workload) -> _Built:
    """Build one engine; its memory is the growth of the process, without its input."""
    made = adapter(column.engine, column.options)
    if made.shares:
        made.given(workload)
    before = resident_bytes()
    given: list[Any] = [made.given(workload)]
    started = perf_counter()
    made.build(given.pop())
    seconds = perf_counter() - started
    after = resident_bytes()
    more = None if before is None or after is None else max(0, after - before)
    return _Built(made, workload, seconds, more, made.nbytes())


def _disagreement(runs: Sequence[_Run]) -> str | None:
    """Return the matches of exact columns for the first event with different ones, as text.

    Return ``None`` if all agree.
    """
    groups: dict[tuple[int, bool, int], dict[str, tuple[int, int]]] = {}
    for run in runs:
        of = run.column.new, id(run.built.workload)
        if run.built.adapter.matches and run.built.adapter.exact:
            for number, found in run.matched.items():
                groups.setdefault((number, *of), {})[run.text] = found
    for (number, _, _), said in sorted(groups.items()):
        if len(set(said.values())) > 1:
            parts = (f"{of} {many} (checksum {sum_:08x})" for of, (many, sum_) in said.items())
            return f"event {number}: {', '.join(parts)}"
    return None


def _row(name: str, run: _Run, size: Size, wrong: str | None) -> Row:
    column, built, made = run.column, run.built, run.built.adapter
    subscriptions, events = built.workload.size.subscriptions, len(run.micros)
    reported, resident = built.reported, built.resident
    micros = np.array(list(run.micros.values()))
    matches = sum(many for many, _ in run.matched.values())
    row: Row = {
        "workload": name,
        "column": run.text,
        "engine": column.engine,
        "form": run.form,
        "exact": made.exact,
        "documents": "new" if column.new else "again",
        "subscriptions": subscriptions,
        "events": events,
        "build_seconds": built.seconds,
        "bytes_per_subscription": None if resident is None else resident / subscriptions,
        "bytes": resident if reported is None else reported,
        MICROS: float(np.median(micros)),
        "deviation_microseconds": float(micros.std()),
        "matches_per_event": matches / events if made.matches else None,
        "counters": {name: many / events for name, many in run.counted.items()},
        "steps_per_event": float(np.mean(run.steps)) if run.steps else None,
        "deviation_steps": float(np.std(run.steps)) if run.steps else None,
        "parameters": {"seed": size.seed, **built.workload.described()},
        "agrees": wrong is None,
    }
    return row if wrong is None else {**row, "disagreement": wrong}
