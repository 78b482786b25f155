"""The parser alone, which does nothing with what it reads: the floor of reading.

It is the parser by which the engine reads a document, too: pyoxigraph's of RDF, drained, or
expat, which makes a tree of a feed.
"""

from __future__ import annotations

from collections import deque
from typing import ClassVar, TypeAlias
from xml.etree.ElementTree import XMLParser

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import parse

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.ingest import FORMATS, IngestWorkload
from graphmatch.bench.workloads.workload import Workload

Document: TypeAlias = tuple[str, bytes]
"""A syntax, and what is written in it."""


class ParsePeer(Peer):
    """`pyoxigraph.parse`, or an XML parser; nobody has subscribed."""

    name: ClassVar = "parse"
    workloads: ClassVar = frozenset({"ingest"})
    matches: ClassVar = False

    def given(self, workload: Workload) -> None:
        """Return nothing: it takes no subscriptions."""

    def build(self, given: None) -> None:
        """Do nothing."""

    def event(self, workload: Workload, number: int) -> Document:
        """Return the document."""
        assert isinstance(workload, IngestWorkload)
        return workload.syntax, workload.document(number)

    def match(self, event: Document) -> None:
        """Parse it."""
        syntax, data = event
        if syntax in FORMATS:
            deque(parse(data, format=FORMATS[syntax]), maxlen=0)
            return
        parser = XMLParser()  # noqa: S314 - as the engine's own reader, after its guard
        parser.feed(data)
        parser.close()

    def numbers(self, found: None) -> NDArray[np.int64]:  # noqa: ARG002 - there is nothing
        """Return none."""
        return np.empty(0, np.int64)
