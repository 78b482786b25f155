"""``ingest``: bytes in, matches out.

``nt``, ``turtle``
    The subscriptions and publications of ``graph`` (`graphmatch.bench.workloads.graph`), each
    publication a document of its own.
``rss``
    The feeds of a folder (RSS and Atom), byte by byte as they are, in a seeded order, each with all
    of its items; the subscriptions are those of ``keywords``. Feeds in which an XML parser finds a
    fault are left out, and so are those in which there are no items.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, TypeAlias
from typing import Literal as OneOf
from xml.parsers.expat import ExpatError, ParserCreate

import numpy as np
from pyoxigraph import Literal, NamedNode, RdfFormat, Triple, serialize

from graphmatch.bench.workloads.graph import GraphParameters, GraphWorkload
from graphmatch.bench.workloads.keywords import FEEDS, KeywordParameters, KeywordWorkload
from graphmatch.bench.workloads.workload import Size, Workload
from semantic.errors import InputError, Place, Problem
from semantic.feeds import FeedFormat, read_feed, sniff_feed
from semantic.folders import files_in
from semantic.publication import Publication

Syntax: TypeAlias = OneOf["nt", "turtle", "rss"]

SYNTAXES: tuple[Syntax, ...] = ("nt", "turtle", "rss")
FORMATS = {"nt": RdfFormat.N_TRIPLES, "turtle": RdfFormat.TURTLE}
"""The syntaxes of RDF, as pyoxigraph names them."""
PREFIXES = {"n": "urn:n:", "p": "urn:p:"}
"""What the Turtle is written with."""

_XML = frozenset({FeedFormat.RSS, FeedFormat.RSS1, FeedFormat.ATOM})


@dataclass(frozen=True, slots=True)
class IngestParameters:
    """What can be chosen.

    Parameters
    ----------
    syntax
        What documents are written in.
    edges, matching, matches, shapes
        As in `graphmatch.bench.workloads.graph.GraphParameters`; of them ``rss`` has only
        `matches`, as in `graphmatch.bench.workloads.keywords.KeywordParameters`.
    feeds
        A folder of feeds, or one feed; for ``rss``.
    """

    syntax: Syntax = "nt"
    edges: int = 8
    matching: float = 0.001
    matches: int | None = None
    shapes: int = 100
    feeds: Path = FEEDS


class IngestWorkload(Workload):
    """Documents, and subscriptions that some of what is in them matches.

    Parameters
    ----------
    size
        How much is generated; `Size.events` is the number of documents.
    parameters
        See `IngestParameters`.

    Raises
    ------
    InputError
        When the feeds have no words in their titles, or cannot be read.

    Examples
    --------
    >>> made = IngestWorkload(Size(100, 2), IngestParameters("turtle"))
    >>> print(made.document(0).decode().splitlines()[0])
    @prefix n: <urn:n:> .
    >>> [len(publication.triples) for publication in made.publications(0)]
    [90]
    """

    name: ClassVar = "ingest"
    parameters_class: ClassVar = IngestParameters
    parameters: IngestParameters

    def __init__(self, size: Size, parameters: IngestParameters) -> None:
        super().__init__(size, parameters)
        self.syntax = parameters.syntax
        self._of: GraphWorkload | KeywordWorkload
        self._feeds: list[bytes] = []
        if self.syntax == "rss":
            self._of = KeywordWorkload(
                size, KeywordParameters(parameters.feeds, parameters.matches)
            )
            feeds = _feeds(Path(parameters.feeds))
            if not feeds:
                what, remedy = (
                    "no feed with items can be read",
                    "Give a folder of RSS with --feeds.",
                )
                raise InputError(Problem(what, Place(str(parameters.feeds)), remedy))
            order = np.random.default_rng(size.seed).permutation(len(feeds))
            self._feeds = [feeds[place] for place in order]
        else:
            of = (parameters.edges, parameters.matching, parameters.matches, parameters.shapes)
            self._of = GraphWorkload(size, GraphParameters(*of))

    def texts(self) -> list[str]:
        """Return the subscriptions as SPARQL."""
        return self._of.texts()

    def document(self, number: int) -> bytes:
        """Return a document."""
        if self._feeds:
            return self._feeds[number % len(self._feeds)]
        syntax = FORMATS[self.syntax]
        prefixes = PREFIXES if syntax == RdfFormat.TURTLE else None
        written = serialize(self._triples(number), format=syntax, prefixes=prefixes)
        assert written is not None
        return written

    def _triples(self, number: int) -> Iterator[Triple]:
        for subject, predicate, object_ in self._of.publication(number).triples:
            assert not isinstance(subject, Literal)
            assert isinstance(predicate, NamedNode)
            yield Triple(subject, predicate, object_)

    def publications(self, number: int) -> list[Publication]:
        """Return what is in a document."""
        if self._feeds:
            return list(read_feed(self.document(number), "feed", on_problem=_forgotten))
        return [self._of.publication(number)]

    def publication(self, number: int) -> Publication:
        """Return the first publication of a document."""
        return self.publications(number)[0]

    def described(self) -> dict[str, object]:
        """Return the syntax, and what the subscriptions were generated with."""
        return {"syntax": self.syntax, **self._of.described()}

    def row(self) -> dict[str, object]:
        """Return the syntax, and how much a document is: the means of those that are different."""
        events = range(min(self.size.events, len(self._feeds) or self.size.events))
        sizes = [len(self.document(number)) for number in events]
        items = [len(self.publications(number)) for number in events]
        return {
            "syntax": self.syntax,
            "bytes_per_event": sum(sizes) / len(events),
            "publications_per_event": sum(items) / len(events),
        }


def _feeds(folder: Path) -> list[bytes]:
    """Return the feeds that any reader of XML takes, and that have items."""
    found = []
    for path in files_in(str(folder), _forgotten):
        data = path.read_bytes()
        if sniff_feed(data) in _XML and _is_xml(data):
            items = read_feed(data, str(path), on_problem=_forgotten)
            if next(items, None) is not None:
                found.append(data)
    return found


def _is_xml(data: bytes) -> bool:
    try:
        ParserCreate().Parse(data, True)
    except ExpatError:
        return False
    return True


def _forgotten(_: Problem) -> None:
    """Pass over what is wrong with an item: it is no matter here."""
