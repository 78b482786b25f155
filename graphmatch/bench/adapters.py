"""Adapters: each measured engine adds a workload's subscriptions, and matches its events.

Only `Adapter.build` and `Adapter.match` are timed. `Adapter.given` and `Adapter.prepare` make their
arguments beforehand, in the *form* in which a user of that engine has them (bytes of a syntax,
Python objects, an Arrow table, integers). `Adapter.match` returns the user's result: the ids of the
subscriptions that match.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from itertools import pairwise
from types import MappingProxyType
from typing import Any, TypeAlias
from xml.etree.ElementTree import fromstring

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode, parse

from graphmatch.bench.workloads import WORKLOADS, TabularWorkload, Workload, ids
from graphmatch.bench.workloads.graph import SYNTAXES
from graphmatch.engine import Engine
from graphmatch.published import MATCHERS, make
from graphmatch.published.attribute_matcher import Tally
from graphmatch.report import MatchReport
from graphmatch.subscription import SubscriptionParser
from semantic.attributes.events import Event
from semantic.errors import pip_install
from semantic.ontology.ontology import Ontology
from semantic.publication import Publication
from semantic.reading import read_publications

NumberedEvent: TypeAlias = tuple[int, int | None]
"""The number of an event, and a serial number if it must be new."""

TABULAR = tuple(name for name in WORKLOADS if name not in ("graph", "keywords"))


class Adapter(ABC):
    """An engine with one workload's subscriptions.

    `forms` are the workloads that it can express, with the forms of their events. If `matches` is
    false, it finds no matches, and its time is a lower bound for others. If it is not `exact`, it
    may report other subscriptions than those that match. Without `topics` it cannot find a
    thesaurus's concepts in texts; if it is `whole`, it finds whole words only. If `shares` is true,
    the workload caches the result of `given` for several engines, so it is not part of an engine's
    memory. `module` is the package that it needs beyond those of the extra ``bench``, if any.
    """

    forms: Mapping[str, Sequence[str]]
    matches: bool = True
    exact: bool = True
    topics: bool = True
    whole: bool = False
    shares: bool = False
    module: str = ""

    @classmethod
    def missing(cls) -> str:
        """Return what must be installed, as a command; empty if nothing is missing."""
        return "" if not cls.module or find_spec(cls.module) else pip_install("peers")

    def given(self, workload: Any) -> Any:
        """Return the subscriptions in the engine's form; not timed."""
        return workload

    def build(self, given: Any) -> None:  # noqa: B027 - parsers have none
        """Add the subscriptions; timed. Raise `UnsupportedError` for an inexpressible one."""

    def prepare(self, workload: Any, asked: Sequence[NumberedEvent], form: str) -> list[Any]:
        """Return the events in `asked` in the engine's form; not timed."""
        return [self.event(workload, number, serial, form) for number, serial in asked]

    def event(self, workload: Any, number: int, serial: int | None, form: str) -> Any:
        """Return one event in the engine's form; new if `serial` is a number."""
        raise NotImplementedError

    @abstractmethod
    def match(self, event: Any, form: str) -> Sequence[Any]:
        """Match one element of the result of `prepare`, and read the ids; timed.

        Return one answer per event in it: an Arrow table has several.
        """

    def numbers(self, answer: Any) -> NDArray[np.int64]:
        """Return the positions of the matching subscriptions, in any order; not timed."""
        if isinstance(answer, np.ndarray):
            return answer.astype(np.int64)
        return np.array([int(id) for id in answer], np.int64)

    def counters(self, answer: Any) -> Mapping[str, int]:  # noqa: ARG002 - most count nothing
        """Return the work of matching for one answer: look-ups, candidates, evaluations."""
        return {}

    def nbytes(self) -> int | None:
        """Return the engine's own figure for the size of its index, if any, in bytes."""
        return None

    def close(self) -> None:  # noqa: B027 - most need nothing
        """Release resources that the interpreter does not release."""


def adapter(name: str, options: Mapping[str, Any] | None = None) -> Adapter:
    """Return a new adapter: one of `ENGINES`, or a published algorithm made with options.

    Raise `KeyError` for an unknown name.

    Examples
    --------
    >>> sorted(adapter("dictionary").forms)
    ['graph', 'keywords']
    >>> adapter("rein").forms["ranges"]
    ('values',)
    """
    if name in MATCHERS:
        return _Published(name, options or {})
    if name in _OWN:
        return _OWN[name]()
    from graphmatch.bench.baselines import BASELINES
    from graphmatch.bench.peers import PEERS

    return {**BASELINES, **PEERS}[name]()


class _Engine(Adapter):
    """The engine through its public interface: all ids of a report are read.

    For ``arrow``, a table of events, the numbers of subscriptions are read as one array. ``core``
    matches publications that have been made and matched before; no ids of its report are read.
    """

    forms = dict.fromkeys(TABULAR, ("arrow", "dicts", "core")) | {
        "graph": (*SYNTAXES, "objects", "core"),
        "keywords": ("feed", "objects", "core"),
    }

    def given(self, workload: Workload) -> tuple[Ontology, Any]:
        if isinstance(workload, TabularWorkload):
            return workload.ontology(), workload.table()
        texts = workload.texts()
        return workload.ontology(), list(zip(ids(len(texts)), texts, strict=True))

    def build(self, given: tuple[Ontology, Any]) -> None:
        ontology, subscriptions = given
        self.engine = Engine(ontology)
        take_in(self.engine, subscriptions)

    def prepare(self, workload: Any, asked: Sequence[NumberedEvent], form: str) -> list[Any]:
        if form == "arrow":
            return [workload.events_table([number for number, _ in asked])]
        return super().prepare(workload, asked, form)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Any:
        if form == "feed":
            return workload.document(number, form), None
        if form in SYNTAXES:
            return workload.document(number, form, serial), SYNTAXES[form].file_extension
        if isinstance(workload, TabularWorkload):
            event = f"urn:e:{number}", workload.event(number)
            if form == "dicts":
                return event
            publications = [Event(*event).publication()]
        else:
            publications = workload.publications(number, serial)
        if form == "core":
            for publication in publications:
                len(self.engine.match(publication))
            return publications
        return [(publication.id, publication.triples) for publication in publications]

    def match(self, event: Any, form: str) -> Sequence[Any]:
        match form:
            case "arrow":
                found = self.engine.match_events(event)
                numbers, offsets = found.numbers, found.offsets.tolist()
                return [numbers[begin:end] for begin, end in pairwise(offsets)]
            case "dicts":
                return [list(self.engine.match(Event(*event)).subscriptions)]
            case "core":
                return [[self.engine.match(publication) for publication in event]]
            case "objects":
                made = (Publication.of(id, triples) for id, triples in event)
                return [_read(map(self.engine.match, made))]
        return [_read(self.engine.filter(event[0], format=event[1]))]

    def numbers(self, answer: Any) -> NDArray[np.int64]:
        if isinstance(answer, np.ndarray):
            answer = self.engine.ids_of(answer)
        elif answer and isinstance(answer[0], MatchReport):
            answer = _read(answer)
        return super().numbers(answer)


def take_in(engine: Engine, subscriptions: Any) -> None:
    """Subscribe rows of ids and SPARQL texts, or an Arrow table; raise the first error."""
    many = engine.subscribe_many if isinstance(subscriptions, list) else engine.subscribe_table
    for error in many(subscriptions):
        raise error


def _read(reports: Iterable[MatchReport]) -> list[str]:
    """Return the ids of the matching subscriptions in all reports of a document."""
    found: list[str] = []
    for report in reports:
        found += report.subscriptions
    return found


class _Published(Adapter):
    """A published algorithm (`graphmatch.published`) as an engine.

    An algorithm on attributes (see its `Capabilities.joins`) gets conjunctions and ``values`` that
    were read before; its `matched` is timed, and returns the matches. An algorithm on graphs gets
    subscriptions and publications, and returns a ``report``.
    """

    def __init__(self, name: str, options: Mapping[str, Any]) -> None:
        self._name = name
        self._options = {
            key: list(map(NamedNode, value)) if isinstance(value, list) else value
            for key, value in options.items()
        }
        self._matcher: Any = make(name, Ontology(), **self._options)
        self._on_graphs = self._matcher.capabilities.joins
        self.shares = not self._on_graphs
        self.exact = self._matcher.capabilities.exact
        of_graphs = dict.fromkeys((*TABULAR, "graph"), ("report",))
        self.forms = of_graphs if self._on_graphs else dict.fromkeys(TABULAR, ("values",))

    def given(self, workload: Workload) -> tuple[Ontology, list[Any]]:
        parser = SubscriptionParser()
        if isinstance(workload, TabularWorkload) and not self._on_graphs:
            read = self._matcher.read
            return workload.ontology(), workload.conjunctions(lambda t: read(parser.parse("", t)))
        texts = zip(ids(workload.size.subscriptions), workload.texts(), strict=True)
        return workload.ontology(), [parser.parse(id, text) for id, text in texts]

    def build(self, given: tuple[Ontology, list[Any]]) -> None:
        ontology, subscriptions = given
        self._matcher = make(self._name, ontology, **self._options)
        add = self._matcher.subscribe if self._on_graphs else self._matcher.add
        for subscription in subscriptions:
            add(subscription)

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Any:
        (publication,) = workload.publications(number, serial)
        if form == "report":
            return publication
        called: list[Any] = []

        def matched(event: Any, _: Tally) -> tuple[int, ...]:
            called.append(event)
            return ()

        self._matcher.matched = matched
        self._matcher.match(publication)
        del self._matcher.matched
        return called

    def match(self, event: Any, form: str) -> list[Any]:
        if form == "report":
            return [self._matcher.match(event)]
        tally = Tally()
        return [(list(self._matcher.matched(*event, tally)), tally)]

    def numbers(self, answer: Any) -> NDArray[np.int64]:
        found = answer.subscriptions if isinstance(answer, MatchReport) else answer[0]
        return super().numbers(found)

    def counters(self, answer: Any) -> Mapping[str, int]:
        return answer.counters._asdict() if isinstance(answer, MatchReport) else asdict(answer[1])

    def nbytes(self) -> int | None:
        return self._matcher.nbytes or None  # without an index, the growth of the process counts


class _Parse(Adapter):
    """A parser alone, as a lower bound: `pyoxigraph.parse` without keeping quads, or expat."""

    forms = MappingProxyType({"graph": tuple(SYNTAXES), "keywords": ("feed",)})
    matches = False

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> bytes:
        return workload.document(number, form, serial)

    def match(self, event: bytes, form: str) -> list[tuple[int, ...]]:
        if form in SYNTAXES:
            deque(parse(event, format=SYNTAXES[form]), maxlen=0)
        else:
            fromstring(event)  # noqa: S314 - feeds that were read before
        return [()]


class _Read(_Parse):
    """The project's own reader, as a lower bound: `semantic.reading.read_publications`."""

    def match(self, event: bytes, form: str) -> list[tuple[int, ...]]:
        format = SYNTAXES[form].file_extension if form in SYNTAXES else None
        read = read_publications(event, format=format, on_problem=lambda _: None)
        deque(read, maxlen=0)
        return [()]


_OWN: Mapping[str, type[Adapter]] = {"graphmatch": _Engine, "parse": _Parse, "read": _Read}
ENGINES = ("graphmatch", "dictionary", "scan", "duckdb", "parse", "read")
"""The engines that are measured by default, in the order of the list."""
