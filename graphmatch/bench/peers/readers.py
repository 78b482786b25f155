"""Reading alone, which matches nothing: the floor of whole documents.

``parse`` is the bare parser: `pyoxigraph.parse`, each of whose quads is taken and dropped; expat,
which makes a tree of a feed. ``read`` is the project's own reader, which makes publications.
"""

from __future__ import annotations

from collections import deque
from io import BytesIO
from typing import ClassVar, TypeAlias
from xml.etree.ElementTree import XMLParser

from pyoxigraph import parse

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.graph import SYNTAXES
from graphmatch.bench.workloads.workload import Workload
from semantic.errors import Problem
from semantic.reading import read_publications

Document: TypeAlias = bytes


class ParsePeer(Peer):
    """The parser; nobody has subscribed."""

    name: ClassVar = "parse"
    forms: ClassVar = {"graph": tuple(SYNTAXES), "keywords": ("feed",)}
    matches: ClassVar = False

    def given(self, workload: Workload) -> None:
        """Return nothing: it takes no subscriptions."""

    def build(self, given: None) -> None:
        """Do nothing."""

    def event(self, workload: Workload, number: int, serial: int | None, form: str) -> Document:
        """Return the document."""
        return workload.document(number, form, serial)

    def match(self, event: Document, form: str) -> list[tuple[int, ...]]:
        """Parse it."""
        if form in SYNTAXES:
            deque(parse(event, format=SYNTAXES[form]), maxlen=0)
        else:
            parser = XMLParser()  # noqa: S314 - feeds that were read before
            parser.feed(event)
            parser.close()
        return [()]


class ReadPeer(ParsePeer):
    """`semantic.reading.read_publications`."""

    name: ClassVar = "read"

    def match(self, event: Document, form: str) -> list[tuple[int, ...]]:
        """Read it."""
        format = SYNTAXES[form].file_extension if form in SYNTAXES else None
        read = read_publications(BytesIO(event), format=format, on_problem=_passed_over)
        deque(read, maxlen=0)
        return [()]


def _passed_over(_: Problem) -> None:
    """Pass over what is wrong with an item: it is no matter here."""
