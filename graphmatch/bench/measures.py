"""Measurements besides matching: subscribing, threads, opening, starting, solutions, memory.

Each function makes its input from a number and a seed, and returns rows with a ``column``, to which
suite.toml refers. Each runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import starmap
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from pyoxigraph import NamedNode, Store

from graphmatch.bench.adapters import take_in
from graphmatch.bench.process import Row, one_core, resident_bytes
from graphmatch.bench.workloads import Size, ids
from graphmatch.bench.workloads.attributes import AttributeWorkload
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.keywords import FEEDS
from graphmatch.engine import Engine
from semantic.publication import Publication
from semantic.vocabulary import RSS

PARTS = 10
SINGLY = 5000
"""The maximum number of subscriptions added, and removed, one by one."""
REPEATS = 5
TURNS = 20
"""How often documents are read, since threads of an interpreter take turns of milliseconds."""
SAMPLES = Path("data/subscriptions")
_FEED = "<rss version='2.0'><channel><title>a</title><item><title>b</title></item></channel></rss>"


def measure(request: str) -> Row:
    """Return the rows of the function of `MEASURES` that a request of `runner.asked` names."""
    _, (name,), (subscriptions, _, seed), more = json.loads(request)
    return {"rows": list(MEASURES[name](subscriptions, seed, **more["parameters"]))}


def subscribing(subscriptions: int, seed: int = 1, shapes: int = 100) -> Iterator[Row]:
    """Measure the rates of subscribing, unsubscribing, and parsing alone.

    SPARQL texts are subscribed in bulk (on all cores), and one by one.
    """
    made = GraphWorkload(Size(subscriptions, 1, seed), shapes=shapes, matches=0)
    rows = list(zip(ids(subscriptions), made.texts(), strict=True))
    rest = min(SINGLY, subscriptions // 2)
    engine, warm, store = Engine(), Engine(), Store()
    take_in(warm, rows[:100])
    warm.subscribe("one", rows[0][1])
    yield _rate("many", rows[rest:], partial(take_in, engine))
    with one_core():
        yield _rate("one", rows[:rest], _each(engine.subscribe))
        order = [rows[n][:1] for n in np.random.default_rng(seed).permutation(rest)]
        yield _rate("unsubscribe", order, _each(engine.unsubscribe))
        yield _rate("parse", rows[:rest], _each(lambda _, text: store.query(text)))
    if len(engine) != subscriptions - rest:
        raise RuntimeError(f"{len(engine):,} are left of {subscriptions - rest:,} subscriptions")


_PREPARED = "SELECT ?item { ?item a ?class ; <urn:price> ?price FILTER(?price <= ?most) }"


def rows(subscriptions: int, seed: int = 1) -> Iterator[Row]:
    """Measure the rates of subscribing rows of Arrow tables.

    They are rows of ten ranges, and values of a prepared query's two parameters.
    """
    import pyarrow as pa

    table = AttributeWorkload(Size(subscriptions, 1, seed)).table()
    classes = [f"<urn:class:{number % 1000}>" for number in range(subscriptions)]
    most = list(range(subscriptions))
    given: dict[str, Any] = {"id": ids(subscriptions), "class": classes, "most": most}
    prepared = Engine().prepare(_PREPARED, ["class", "most"])

    def subscribe(part: Any) -> None:
        names, *terms = part.columns
        assert prepared.subscribe(names, terms) == ()

    with one_core():
        take_in(Engine(), table.slice(0, 100))
        yield _rate("many", table, partial(take_in, Engine()))
        yield _rate("prepared", pa.table(given), subscribe)


def _each(do: Callable[..., object]) -> Callable[[Any], object]:
    return lambda part: deque(starmap(do, part), maxlen=0)


def _rate(column: str, items: Any, do: Callable[[Any], object]) -> Row:
    """Return a row with the number of items processed per second, and the seconds of all.

    The rate is the median of `PARTS` parts.
    """
    step = -(-len(items) // PARTS)
    rates, spent = [], 0.0
    for start in range(0, len(items), step):
        part = items[start : start + step]
        seconds = _timed(partial(do, part))
        rates.append(len(part) / max(seconds, 1e-9))
        spent += seconds
    return {"column": column, "per_second": median(rates), "seconds": spent}


def _timed(do: Callable[[], object]) -> float:
    started = perf_counter()
    do()
    return perf_counter() - started


def _medians(do: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """Return the median seconds of each function.

    All are called in turn, `REPEATS` + 1 times; the first turn is discarded.
    """
    turns = [{name: _timed(one) for name, one in do.items()} for _ in range(REPEATS + 1)]
    return {name: median(turn[name] for turn in turns[1:]) for name in do}


def _engine(subscriptions: int, seed: int) -> tuple[Engine, GraphWorkload]:
    """Return an engine with graph subscriptions of few shapes, and their workload."""
    engine, made = Engine(), GraphWorkload(Size(subscriptions, 200, seed), matches=1)
    take_in(engine, list(zip(ids(subscriptions), made.texts(), strict=True)))
    return engine, made


def threads(subscriptions: int, seed: int = 1, documents: int = 4000) -> Iterator[Row]:
    """Measure matching N-Quads on one thread, and on two threads with half of them each.

    Raise `RuntimeError` if the numbers of matches differ.
    """
    engine, made = _engine(subscriptions, seed)
    new = [
        made.document(n, "nt", n).replace(b" .\n", b" <urn:document:%d> .\n" % n)
        for n in range(documents)
    ]

    def match(some: Sequence[bytes]) -> int:
        data = b"".join(some)
        reports = (report for _ in range(TURNS) for report in engine.filter(data, format="nq"))
        return sum(len(report.subscriptions) for report in reports)

    with ThreadPoolExecutor(2) as pool:
        halves, found = (new[::2], new[1::2]), list[int]()
        several = {
            "one thread": lambda: found.append(match(new)),
            "two threads": lambda: found.append(sum(pool.map(match, halves))),
        }
        for column, seconds in _medians(several).items():
            yield {"column": column, "microseconds": seconds / documents / TURNS * 1e6}
    if len(set(found)) > 1:
        raise RuntimeError(f"one thread and two found different matches: {found}")


def opening(subscriptions: int, seed: int = 1) -> Iterator[Row]:
    """Measure opening a saved engine.

    Raise `RuntimeError` if the opened engine finds other matches.
    """
    engine, made = _engine(subscriptions, seed)
    with TemporaryDirectory(prefix="graphmatch-bench-") as name:
        file = Path(name) / "saved"
        engine.save(file)
        times = [_timed(lambda: Engine.open(file)) for _ in range(REPEATS)]
        yield {"column": "opened", "seconds": median(times)}
        (event,) = made.publications(0)
        both = [list(one.match(event).subscriptions) for one in (engine, Engine.open(file))]
        if both[0] != both[1]:
            raise RuntimeError("the opened engine matches differently from the saved one")


def starting(subscriptions: int, seed: int = 1) -> Iterator[Row]:
    """Measure whole processes: an empty one, an import, an engine, and ``graphmatch filter``.

    In the folder of a clone, the feed and the subscriptions are the samples. The thesaurus has
    `subscriptions` concepts.
    """
    with TemporaryDirectory(prefix="graphmatch-bench-") as name:
        query = f"SELECT ?i {{ ?i a <{RSS['item'].value}> }}"
        texts = {"a.rss": _FEED, "a.rq": query, "a.ttl": _thesaurus(subscriptions, seed)}
        for file, text in texts.items():
            (Path(name) / file).write_text(text, encoding="utf-8")
        feed, queries, thesaurus = (Path(name) / file for file in texts)
        if SAMPLES.exists():
            feed, queries = FEEDS / "science.atom", SAMPLES
        command = ["-m", "graphmatch.cli", "filter", str(feed), "-s", str(queries)]
        arguments = {
            "nothing": ["-c", "pass"],
            "import": ["-c", "import graphmatch"],
            "engine": ["-c", "from graphmatch import Engine; Engine()"],
            "filter": command,
            "thesaurus": [*command, "-o", str(thesaurus)],
        }
        own = {**os.environ, "XDG_CACHE_HOME": name, "PYTHONPYCACHEPREFIX": name}
        own.pop("PYTHONDONTWRITEBYTECODE", None)  # compile modules once, as for users
        run = partial(subprocess.run, check=True, capture_output=True, env=own)
        medians = _medians({c: partial(run, [sys.executable, *a]) for c, a in arguments.items()})
    for column, seconds in medians.items():
        less = medians["nothing"] if column in ("import", "engine") else 0
        yield {"column": column, "seconds": max(0.0, seconds - less)}


def _thesaurus(concepts: int, seed: int) -> str:
    """Return a SKOS thesaurus as Turtle: labels of one to three words, ten concepts below each."""
    letters = np.random.default_rng(seed).integers(97, 123, (concepts + 3, 7), np.uint8)
    words = [bytes(row).decode() for row in letters]
    lines = ["@prefix skos: <http://www.w3.org/2004/02/skos/core#> ."]
    for number in range(concepts):
        label = " ".join(words[number : number + 1 + number % 3])
        lines.append(f'<urn:c:{number}> a skos:Concept ; skos:prefLabel "{label}"@en .')
        if number:
            lines.append(f"<urn:c:{number}> skos:broader <urn:c:{number // 10}> .")
    return "\n".join(lines)


def solutions(subscriptions: int = 2000, seed: int = 1) -> Iterator[Row]:  # noqa: ARG001 - common signature
    """Measure a match with n² solutions of which only the id is read, and one with n.

    n is `subscriptions`.
    """
    single = "?a <urn:p> ?b"
    queries = {"product": f"{single} . ?c <urn:q> ?d", "single": single}
    triples = [
        (NamedNode(f"urn:{place}:{n}"), NamedNode(f"urn:{place}"), NamedNode(f"urn:o:{n}"))
        for place in ("p", "q")
        for n in range(subscriptions)
    ]
    engines = {column: Engine() for column in queries}
    for column, engine in engines.items():
        engine.subscribe(column, f"SELECT * {{ {queries[column]} }}")

    def match(column: str) -> None:
        found = list(engines[column].match(Publication.of("urn:e", triples)).subscriptions)
        if found != [column]:
            raise RuntimeError(f"{column} matched {found}")

    for column, seconds in _medians({c: partial(match, c) for c in queries}).items():
        yield {"column": column, "microseconds": seconds * 1e6}


def churn(subscriptions: int, seed: int = 1, rounds: int = 20) -> Iterator[Row]:
    """Measure memory after the second and the last round of subscribing and unsubscribing all."""
    made = GraphWorkload(Size(subscriptions, 1, seed), matches=0)
    texts, engine = made.texts(), Engine()
    memory = []
    for number in range(rounds):
        new = (text.replace("<urn:n:", f"<urn:n{number}:") for text in texts)
        take_in(engine, list(zip(ids(subscriptions), new, strict=True)))
        for id in ids(subscriptions):
            engine.unsubscribe(id)
        memory.append(resident_bytes() or 0)
    if len(engine):
        raise RuntimeError(f"{len(engine):,} subscriptions are left")
    yield {"column": "first", "megabytes": memory[min(1, rounds - 1)] / 2**20}
    yield {"column": "last", "megabytes": memory[-1] / 2**20}


_ALL = (subscribing, rows, threads, opening, starting, solutions, churn)
MEASURES: Mapping[str, Callable[..., Iterator[Row]]] = {one.__name__: one for one in _ALL}
"""The functions by name."""
