"""One point of an experiment, for a process of its own; see `graphmatch.bench.process`.

All algorithms of the point are in one process, on one core. They are rehearsed on a few
subscriptions, so that loops are compiled, then built one after the other. Then each in turn matches
the same block of events, `PASSES` times as far as its time goes; an event's time is the least of
its passes, and the deviation is that from event to event. A time is the processor's or the clock's,
whichever is less: the first has no other processes in it, the second is read faster. Nothing that
is measured waits for anything.

Each event's matches are compared among the exact algorithms. Of one that is not exact it is counted
by how much it is off.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter, process_time
from typing import Any
from zlib import crc32

import numpy as np

from graphmatch.bench.paper.entrant import Entrant, Numbers
from graphmatch.bench.paper.entrants import entrant
from graphmatch.bench.paper.workloads import workload_class
from graphmatch.bench.paper.workloads.flat import FlatWorkload
from graphmatch.bench.process import OneCore, Row, resident_bytes
from graphmatch.bench.workloads.workload import Size, Workload
from graphmatch.matcher import UnsupportedError

PASSES = 3
BLOCK = 10
LEAST_EVENTS = 3
"""So many are matched once, whatever they take."""

FORGOTTEN = 10_000
"""So many are unsubscribed, in any order, where that is measured."""

REHEARSAL = Size(50, 3)


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be measured; it travels as JSON.

    Parameters
    ----------
    lines
        For each algorithm ``algorithm``, ``label`` and ``options``.
    size
        Subscriptions, events, seed.
    seconds
        How long each algorithm may match.
    """

    workload: str
    parameters: Mapping[str, Any]
    size: Sequence[int]
    lines: Sequence[Mapping[str, Any]]
    seconds: float
    forgets: bool = False


@dataclass(slots=True)
class _Run:
    """What one algorithm did."""

    label: str
    algorithm: str
    entrant: Entrant
    row: Row = field(default_factory=dict)
    micros: dict[int, float] = field(default_factory=dict)
    spent: float = 0.0
    matched: dict[int, tuple[int, int]] = field(default_factory=dict)
    counted: Counter[str] = field(default_factory=Counter)
    off: Counter[str] = field(default_factory=Counter)

    def is_done(self, seconds: float) -> bool:
        """Say whether the algorithm has used up its time."""
        return len(self.micros) >= LEAST_EVENTS and self.spent > seconds


def measure(asked: str) -> Row:
    """Measure what a JSON object asks for: `Asked`.

    Returns
    -------
    dict
        ``rows``, one for each algorithm; ``left_out``, why others are not there; ``agrees``, and
        ``disagreement`` where they do not.
    """
    return measure_point(Asked(**json.loads(asked)))


def measure_point(asked: Asked) -> Row:
    """Measure in this process."""
    class_ = workload_class(asked.workload)
    parameters: Any = class_.parameters_class
    made = class_(Size(*asked.size), parameters(**asked.parameters))
    few = class_(REHEARSAL, parameters(**asked.parameters))
    left_out: list[dict[str, str]] = []
    with OneCore():
        runs = [run for line in asked.lines for run in _rehearsed(line, few, left_out)]
        if isinstance(made, FlatWorkload):
            made.prepare()
        for run in runs:
            _build(run, made)
            run.entrant.match(run.entrant.event(made, 0))  # what is compiled or made at first
        for _ in range(PASSES):
            for start in range(0, made.size.events, BLOCK):
                block = range(start, min(start + BLOCK, made.size.events))
                _match_block(runs, made, block, asked.seconds)
        for run in runs:
            _finish(run, made, forgets=asked.forgets)
    disagreement = _disagreement(runs)
    found: Row = {"rows": [run.row for run in runs], "left_out": left_out}
    found["agrees"] = disagreement is None
    if disagreement is not None:
        found["disagreement"] = disagreement
    return found


def _rehearsed(
    line: Mapping[str, Any], few: Workload, left_out: list[dict[str, str]]
) -> Sequence[_Run]:
    """Try an algorithm on a few subscriptions; return one that is fresh, or say why there is none.

    What one subscription of a workload asks for, others do, too.
    """
    name, options, label = line["algorithm"], line["options"], line["label"]
    tried = entrant(name, options, type(few))
    if isinstance(tried, str):
        left_out.append({"label": label, "why": tried})
        return []
    try:
        tried.build(tried.given(few))
    except UnsupportedError as error:
        left_out.append({"label": label, "why": error.problem.what})
        return []
    for number in range(few.size.events):
        tried.match(tried.event(few, number))
    fresh = entrant(name, options, type(few))
    assert isinstance(fresh, Entrant)
    return [_Run(label, name, fresh)]


def _build(run: _Run, made: Workload) -> None:
    """Subscribe; memory is what the process has more, what was given not counted."""
    before = resident_bytes()
    given: list[Any] = [run.entrant.given(made)]
    seconds = _timed(lambda: run.entrant.build(given.pop()))
    after = resident_bytes()
    index = run.entrant.nbytes()
    resident = None if before is None or after is None else max(0, after - before)
    run.row = {
        "label": run.label,
        "algorithm": run.algorithm,
        "exact": run.entrant.exact,
        "subscribe_seconds": seconds,
        "index_bytes": index,
        "resident_bytes": resident,
        "bytes": resident if index is None else index,
        "bytes_of": "process" if index is None else "index",
    }


def _timed(run: Callable[[], object]) -> float:
    started = _now()
    run()
    return _since(started)


def _now() -> tuple[float, float]:
    """Return the processor's time and the clock's, the one that is read fast last."""
    return process_time(), perf_counter()


def _since(started: tuple[float, float]) -> float:
    """Return the seconds since then."""
    clock = perf_counter() - started[1]
    return min(clock, process_time() - started[0])


def _match_block(runs: Sequence[_Run], made: Workload, block: range, seconds: float) -> None:
    """Let each algorithm match a block: exact ones first, for the others are held against them."""
    right: dict[int, Numbers] = {}
    for run in sorted(runs, key=lambda run: not run.entrant.exact):
        if run.is_done(seconds):
            continue
        events = [run.entrant.event(made, number) for number in block]
        for number, event in zip(block, events, strict=True):
            started = _now()
            found = run.entrant.match(event)
            took = _since(started)
            run.spent += took
            is_new = number not in run.micros
            run.micros[number] = min(took * 1e6, run.micros.get(number, took * 1e6))
            if is_new:
                _note(run, number, found, right)
            if run.is_done(seconds):
                break


def _note(run: _Run, number: int, found: Any, right: dict[int, Numbers]) -> None:
    ids = np.sort(run.entrant.numbers(found))
    run.matched[number] = (ids.size, crc32(ids.tobytes()))
    run.counted.update(run.entrant.counters(found))
    if run.entrant.exact:
        right.setdefault(number, ids)
    elif number in right:
        run.off["compared"] += 1
        run.off["too_many"] += np.setdiff1d(ids, right[number]).size
        run.off["too_few"] += np.setdiff1d(right[number], ids).size


def _finish(run: _Run, made: Workload, *, forgets: bool) -> None:
    """Put together what was measured, and unsubscribe where that is asked for."""
    micros = np.array(list(run.micros.values()))
    events = len(run.micros)
    run.row |= {
        "events": events,
        "median_microseconds": float(np.median(micros)),
        "deviation_microseconds": float(micros.std()),
        "matches_per_event": sum(count for count, _ in run.matched.values()) / events,
        "counters": {name: count / events for name, count in run.counted.items()},
    }
    steps = run.counted["probes"] + run.counted["candidates"]
    run.row["steps_per_subscription"] = steps / events / made.size.subscriptions
    compared = run.off["compared"]
    for name in ("too_many", "too_few"):
        run.row[f"{name}_per_event"] = run.off[name] / compared if compared else None
    if forgets:
        order = np.random.default_rng(1).permutation(made.size.subscriptions)[:FORGOTTEN]
        ids = [str(number) for number in order]
        started = _now()
        can = run.entrant.forget(ids)
        run.row["unsubscribe_microseconds"] = _since(started) / len(ids) * 1e6 if can else None


def _disagreement(runs: Sequence[_Run]) -> str | None:
    """Say of the first event for which exact algorithms report different matches who says what."""
    exact = [run for run in runs if run.entrant.exact]
    for number in sorted({number for run in exact for number in run.matched}):
        said = {run.label: run.matched[number] for run in exact if number in run.matched}
        if len(set(said.values())) > 1:
            parts = (
                f"{label} {count} (checksum {sum_:08x})" for label, (count, sum_) in said.items()
            )
            return f"event {number}: {', '.join(parts)}"
    return None
