"""Adapters of well-known engines, to compare them with graphmatch in benchmarks.

The engines come from package registries. They are optional, and `Adapter.missing` says how to
install one. Each engine runs only the workloads that its query language can express. Its adapter
translates subscriptions and events to the language and the data format of the engine.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from importlib import import_module
from itertools import count
from pathlib import Path
from shutil import which
from threading import Condition
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import RdfFormat, Store

from graphmatch.bench.adapters import TABULAR, Adapter
from graphmatch.bench.workloads import TabularWorkload, Workload
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.keywords import KeywordWorkload

LUCENE = "org.apache.lucene:lucene-monitor:9.11.1"
_JARS = Path(".m2/repository/org/apache/lucene")
_SECONDS = 60
"""Time limit for Drasi to report the matches of one event, in seconds."""


class _Pyoxigraph(Adapter):
    """pyoxigraph, which has no index of queries: load each publication, then run every query.

    The queries are changed to ASK, because the benchmark needs ids of matches, not solutions.
    """

    forms = MappingProxyType({"graph": ("nt",)})

    def given(self, workload: GraphWorkload) -> list[str]:
        return [f"ASK {text[text.index('{') :]}" for text in workload.texts()]

    def build(self, given: list[str]) -> None:
        self._queries = given

    def event(self, workload: GraphWorkload, number: int, serial: int | None, form: str) -> bytes:
        return workload.document(number, form, serial)

    def match(self, event: bytes, form: str) -> list[list[int]]:  # noqa: ARG002 - only one form
        store = Store()
        store.load(event, format=RdfFormat.N_TRIPLES)
        return [[n for n, query in enumerate(self._queries) if store.query(query)]]


class _Clips(Adapter):
    """CLIPS, a rule engine with the Rete algorithm: one rule per subscription, one fact per triple.

    A fact's first field is its property, because CLIPS indexes facts and patterns by that field
    first. In a rule, patterns with the fewest variables (negative numbers) come first. After an
    event's facts are asserted, CLIPS lists the matching rules in its agenda. They are not executed.
    """

    forms = MappingProxyType({"graph": ("facts",)})
    module = "clips"

    def given(self, workload: GraphWorkload) -> list[str]:
        def node(name: int) -> str:
            return f"?x{-name}" if name < 0 else f"n{name}"

        rules = []
        for number, row in enumerate(workload.rows()):
            ordered = sorted(row, key=lambda pattern: (pattern[0] < 0) + (pattern[2] < 0))
            patterns = " ".join(f"(p{p} {node(s)} {node(o)})" for s, p, o in ordered)
            rules.append(f"(defrule r{number} {patterns} =>)")
        return rules

    def build(self, given: list[str]) -> None:
        self._environment = import_module(self.module).Environment()
        for rule in given:
            self._environment.build(rule)

    def event(self, workload: GraphWorkload, number: int, serial: int | None, form: str) -> str:  # noqa: ARG002
        edges = workload.graph(number, serial).tolist()
        return " ".join(f"(p{p} n{s} n{o})" for s, p, o in edges)

    def match(self, event: str, form: str) -> list[list[str]]:  # noqa: ARG002 - only one form
        self._environment.load_facts(event)
        found = list({activation.name for activation in self._environment.activations()})
        self._environment.reset()
        return [found]

    def numbers(self, answer: list[str]) -> NDArray[np.int64]:
        return super().numbers(name[1:] for name in answer)


class _Words(Adapter):
    """An engine that finds whole words. An event has one string per item, with words and spaces."""

    topics = False
    whole = True

    def event(self, workload: Any, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        items = workload.publications(number, serial)
        return [" ".join(workload.titles(item)) for item in items]


class _Lucene(_Words):
    """Lucene Monitor in a Java process, which reads subscriptions and events as lines.

    See LuceneMonitor.java. The process may use all cores, so that the compiler and the garbage
    collector of Java do not slow down matching.
    """

    forms = MappingProxyType({"keywords": ("titles",)})

    @classmethod
    def missing(cls) -> str:
        if which("javac") and _jars():
            return ""
        return f"a JDK 17 or later, Maven, and: mvn dependency:get -Dartifact={LUCENE}"

    def given(self, workload: KeywordWorkload) -> str:
        rows = (" ".join(map(str.strip, words)) for words in workload.subscriptions)
        return "\n".join([*rows, "", ""])

    def build(self, given: str) -> None:
        source = Path(__file__).with_name("LuceneMonitor.java")
        command = ["java", "-cp", os.pathsep.join(_jars()), str(source)]
        pipe = subprocess.PIPE
        self._java = subprocess.Popen(command, stdin=pipe, stdout=pipe, encoding="utf-8")  # noqa: S603 - ours
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(self._java.pid, range(os.cpu_count() or 1))
        self._answer(given)

    def _answer(self, lines: str) -> str:
        """Write lines to the Java process, and read one line."""
        assert self._java.stdin
        assert self._java.stdout
        self._java.stdin.write(lines)
        self._java.stdin.flush()
        return self._java.stdout.readline()

    def match(self, event: list[str], form: str) -> list[list[str]]:  # noqa: ARG002 - only one form
        return [self._answer("\t".join(event) + "\n").split()]

    def close(self) -> None:
        self._java.communicate()


def _jars() -> list[str]:
    """Return the installed files of this version of Lucene, from the cache of Maven."""
    version = LUCENE.rpartition(":")[2]
    return sorted(map(str, (Path.home() / _JARS).glob(f"*/{version}/*.jar")))


class _Mokaccino(_Words):
    """mokaccino, a percolator (an index of queries), with equality and ranges of integers."""

    forms = MappingProxyType({"keywords": ("titles",), **dict.fromkeys(TABULAR, ("document",))})
    module = "mokaccino"

    def given(self, workload: Workload) -> list[list[tuple[str, str, Any]]]:
        """Return operator, field and constant of each condition, for each subscription.

        Operators are ``kv`` (equal), ``kge`` (at least) and ``kle`` (at most).
        """
        if isinstance(workload, KeywordWorkload):
            return [[("kv", "title", w.strip()) for w in words] for words in workload.subscriptions]
        assert isinstance(workload, TabularWorkload)
        return [
            [
                condition
                for column, (low, high) in enumerate(row)
                for condition in (("kge", f"a{column}", low), ("kle", f"a{column}", high))
            ]
            for row in workload.intervals()
        ]

    def build(self, given: list[list[tuple[str, str, Any]]]) -> None:
        self._package = import_module(self.module)
        self._percolator = self._package.Percolator()
        query = self._package.Query
        for number, row in enumerate(given):
            terms = [getattr(query, f"from_{name}")(field, value) for name, field, value in row]
            self._percolator.add_query_id(query.from_and(terms), number)
        self._percolator = self._percolator.optimized()

    def event(self, workload: Any, number: int, serial: int | None, form: str) -> Any:
        if form == "titles":
            texts = super().event(workload, number, serial, form)
            return [[("title", word) for word in text.split()] for text in texts]
        values = map(str, workload.rows.values[number].tolist())
        return [[(f"a{column}", value) for column, value in enumerate(values)]]

    def match(self, event: Any, form: str) -> list[list[int]]:  # noqa: ARG002 - same for both forms
        found: list[int] = []
        for item in event:
            document = self._package.Document()
            for field, value in item:
                document.add_value(field, value)
            found += self._percolator.percolate_list(document)
        return [found]


class _Drasi(Adapter):
    """Drasi: a continuous query in Cypher for each subscription, a node for each event.

    Drasi does not report when an event has passed all queries. So `event` computes the number of
    matches with numpy, and `match` waits for this number of ids, at most `_SECONDS`.
    """

    forms = dict.fromkeys(TABULAR, ("node",))
    module = "drasi"

    def given(self, workload: TabularWorkload) -> list[str]:
        return [
            " AND ".join(f"e.a{column} >= {a} AND e.a{column} <= {b}" for column, (a, b) in row)
            for row in map(enumerate, workload.intervals())
        ]

    def build(self, given: list[str]) -> None:
        self._found: list[int] = []
        self._changed, self._serials = Condition(), count()
        self._drasi = import_module("drasi.sync").Drasi.create("bench")
        self._drasi.start()
        self._drasi.add_python_source("events")
        names = list(map(str, range(len(given))))
        for name, where in zip(names, given, strict=True):
            cypher = f"MATCH (e:Event) WHERE {where} RETURN e.id AS id"
            self._drasi.add_query(name, cypher, ["events"])
        self._drasi.add_python_reaction("ids", names, self._hear)

    def _hear(self, result: Mapping[str, Any]) -> None:
        """Store the id of a matching query. Drasi may call this from another thread."""
        with self._changed:
            self._found.append(int(result["query_id"]))
            self._changed.notify()

    def event(self, workload: TabularWorkload, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        values, rows = workload.rows.values[number], workload.rows
        expected = ((values >= rows.low.T) & (values <= rows.high.T)).all(axis=1).sum()
        properties = {f"a{column}": value for column, value in enumerate(values.tolist())}
        return properties, int(expected)

    def match(self, event: Any, form: str) -> list[list[int]]:  # noqa: ARG002 - only one form
        properties, expected = event
        self._found = []
        node = {"op": "insert", "id": f"e{next(self._serials)}", "labels": ["Event"]}
        self._drasi.push_change("events", {**node, "properties": {"id": "e", **properties}})
        with self._changed:
            self._changed.wait_for(lambda: len(self._found) >= expected, _SECONDS)
        return [self._found]

    def close(self) -> None:
        self._drasi.close()


PEERS: Mapping[str, type[Adapter]] = {
    "lucene": _Lucene,
    "mokaccino": _Mokaccino,
    "drasi": _Drasi,
    "clips": _Clips,
    "pyoxigraph": _Pyoxigraph,
}
"""Adapter classes by the name of the engine."""
