"""What others do with a subscription when it comes.

``naive``
    `graphmatch.published.naive`: analyses the text as the engine does, and files nothing.
``clips``
    Compiles a rule, and adds it to its network; the rules are written beforehand.
``pyoxigraph``
    Parses and plans the query on an empty store: all that there is to be done before an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from pyoxigraph import Store

from graphmatch.bench.peers.clips import ClipsPeer
from graphmatch.bench.takers.taker import Taker
from graphmatch.bench.workloads.workload import Workload
from graphmatch.published import make
from semantic.sparql.parse import SubscriptionParser


class NaiveTaker(Taker):
    """Analyses texts, and keeps them."""

    name: ClassVar = "naive"
    sources: ClassVar = frozenset({"graph", "keywords"})
    drops: ClassVar = True

    def __init__(self, source: str, workload: Workload) -> None:
        super().__init__(source, workload)
        self._parser = SubscriptionParser()
        self._matcher = make("naive", workload.ontology())

    def chunks(self, bounds: Sequence[range]) -> list[list[tuple[str, str]]]:
        """Return texts with ids."""
        texts = self.workload.texts()
        return [[(str(n), texts[n]) for n in part] for part in bounds]

    def take(self, chunk: list[tuple[str, str]], way: str) -> None:  # noqa: ARG002 - there is one
        """Analyse and keep."""
        for id, text in chunk:
            self._matcher.subscribe(self._parser.parse(id, text))

    def drop(self, ids: Sequence[str]) -> None:
        """Unsubscribe one after the other."""
        for id in ids:
            self._matcher.unsubscribe(id)

    def __len__(self) -> int:
        return len(self._matcher)


class ClipsTaker(Taker):
    """Builds rules."""

    name: ClassVar = "clips"
    sources: ClassVar = frozenset({"graph", "lines"})
    requires: ClassVar = "clips"
    most: ClassVar = 10_000

    def __init__(self, source: str, workload: Workload) -> None:
        super().__init__(source, workload)
        self._clips = ClipsPeer()
        self._count = 0

    def chunks(self, bounds: Sequence[range]) -> list[list[str]]:
        """Return rules; the template is built at once, where there is one."""
        written = self._clips.given(self.workload)
        first = len(written) - self.workload.size.subscriptions
        self._clips.build(written[:first])
        return [written[first + part.start : first + part.stop] for part in bounds]

    def take(self, chunk: list[str], way: str) -> None:  # noqa: ARG002 - there is one
        """Build one after the other."""
        self._clips.add(chunk)
        self._count += len(chunk)

    def __len__(self) -> int:
        return self._count


class PyoxigraphTaker(Taker):
    """Prepares queries, and forgets them."""

    name: ClassVar = "pyoxigraph"
    sources: ClassVar = frozenset({"graph", "keywords"})

    def __init__(self, source: str, workload: Workload) -> None:
        super().__init__(source, workload)
        self._store = Store()
        self._count = 0

    def chunks(self, bounds: Sequence[range]) -> list[list[str]]:
        """Return texts."""
        texts = self.workload.texts()
        return [texts[part.start : part.stop] for part in bounds]

    def take(self, chunk: list[str], way: str) -> None:  # noqa: ARG002 - there is one
        """Parse and plan each query."""
        for text in chunk:
            self._store.query(text)
        self._count += len(chunk)

    def __len__(self) -> int:
        return self._count
