"""Engines that users know, from package registries: each on the workloads that it can express.

None of them is needed by anything else; `Adapter.missing` says how to install one. Each gets
queries that mean the same as the subscriptions, in its own language, and events in its own form.
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
"""The time in which Drasi must report the matches of one event."""


class _Pyoxigraph(Adapter):
    """A loop: the publication is loaded into a store, and each subscription is asked of it.

    Its queries are ASK, because an id needs no solutions.
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
    """CLIPS, which is Rete: a rule for each subscription, a fact for each triple of an event.

    A fact's first field is its property, because CLIPS indexes facts and patterns under that field
    first. Patterns with the fewest variables (negative numbers) come first. After an event's facts
    are asserted, the agenda has the rules that match; none is run.
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
    """An engine that finds whole words: an event is the text of each item, with its words apart."""

    topics = False
    whole = True

    def event(self, workload: Any, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        items = workload.publications(number, serial)
        return [" ".join(workload.titles(item)) for item in items]


class _Lucene(_Words):
    """Lucene Monitor in a Java process: subscriptions and events are lines, see LuceneMonitor.java.

    Java may use all cores, so that its compiler and garbage collector do not disturb it.
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
    version = LUCENE.rpartition(":")[2]
    return sorted(map(str, (Path.home() / _JARS).glob(f"*/{version}/*.jar")))


class _Mokaccino(_Words):
    """mokaccino, a percolator: fields with values, and integers between bounds."""

    forms = MappingProxyType({"keywords": ("titles",), **dict.fromkeys(TABULAR, ("document",))})
    module = "mokaccino"

    def given(self, workload: Workload) -> list[list[tuple[str, str, Any]]]:
        """Return the name, field and constant of each condition of the subscriptions."""
        if isinstance(workload, KeywordWorkload):
            return [[("kv", "title", w.strip()) for w in words] for words in workload.subscriptions]
        assert isinstance(workload, TabularWorkload)
        return [
            [
                condition
                for place, (low, high) in enumerate(row)
                for condition in (("kge", f"a{place}", low), ("kle", f"a{place}", high))
            ]
            for row in workload.intervals()
        ]

    def build(self, given: list[list[tuple[str, str, Any]]]) -> None:
        self._package = import_module(self.module)
        self._percolator = self._package.Percolator()
        query = self._package.Query
        for number, row in enumerate(given):
            made = [getattr(query, f"from_{name}")(field, value) for name, field, value in row]
            self._percolator.add_query_id(query.from_and(made), number)
        self._percolator = self._percolator.optimized()

    def event(self, workload: Any, number: int, serial: int | None, form: str) -> Any:
        if form == "titles":
            texts = super().event(workload, number, serial, form)
            return [[("title", word) for word in text.split()] for text in texts]
        values = map(str, workload.rows.values[number].tolist())
        return [[(f"a{place}", value) for place, value in enumerate(values)]]

    def match(self, event: Any, form: str) -> list[list[int]]:  # noqa: ARG002 - both are alike
        found: list[int] = []
        for item in event:
            document = self._package.Document()
            for field, value in item:
                document.add_value(field, value)
            found += self._percolator.percolate_list(document)
        return [found]


class _Drasi(Adapter):
    """Drasi: a continuous query in Cypher for each subscription, a node for each event.

    It does not say when an event has been through all queries. So its time ends with the last id
    that the numbers of the workload lead to expect.
    """

    forms = dict.fromkeys(TABULAR, ("node",))
    module = "drasi"

    def given(self, workload: TabularWorkload) -> list[str]:
        return [
            " AND ".join(f"e.a{place} >= {a} AND e.a{place} <= {b}" for place, (a, b) in row)
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
        with self._changed:
            self._found.append(int(result["query_id"]))
            self._changed.notify()

    def event(self, workload: TabularWorkload, number: int, serial: int | None, form: str) -> Any:  # noqa: ARG002
        values, rows = workload.rows.values[number], workload.rows
        expected = ((values >= rows.low.T) & (values <= rows.high.T)).all(axis=1).sum()
        properties = {f"a{place}": value for place, value in enumerate(values.tolist())}
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
"""The classes by name."""
