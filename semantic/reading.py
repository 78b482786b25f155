"""Read publications from files, folders, standard input and memory, one at a time.

The compiled core reads all RDF syntaxes, and can also match the publications that it reads
(`graphmatch.Engine.filter`). `semantic.feeds` reads feeds. N-Quads, N-Triples, TriG and Turtle are
streamed: a publication is yielded after its last triple. In line-based syntaxes, an invalid line is
reported and the next one is read. In other syntaxes, the first error ends the document. An
unreadable document is reported, and the next one is read.

The argument `split_by` splits a document into publications:

| split_by | a publication is |
| --- | --- |
| `document` | the whole document |
| `graph` | a named graph, and the default graph as one more |
| `item` | a feed item, with its channel |
| `subject` | the concise bounded description of an IRI that is a subject |
| `component` | a weakly connected component |
| `auto` | an item of a feed, otherwise a graph if any is named, otherwise the document |

The concise bounded description (W3C submission, 2005) consists of the subject's triples, and those
of blank nodes reached from it. In a component, triples are connected if they share an IRI or a
blank node as subject or object. Objects of ``rdf:type`` are shared vocabulary and connect nothing.
"""

from __future__ import annotations

import io
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat

from graphmatch import _native
from semantic.errors import Choice, InputError, OnProblem, Place, Problem, Severity, warn_problem
from semantic.feeds import FeedFormat, read_feed, sniff_feed
from semantic.files import STDIN, Pieces, Readable, documents, pieces, plain, read_whole, unreadable
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.publication import Publication
from semantic.safe_xml import recode_xml
from semantic.syntax_detection import (
    BLANK,
    HEAD_BYTES,
    format_of_media_type,
    refuse_foreign,
    tell_syntax,
)
from semantic.terms import Term, Triple
from semantic.vocabulary import DCTERMS, RSS, TYPE

if TYPE_CHECKING:
    import rdflib

Source: TypeAlias = "str | Path | bytes | Readable | rdflib.Graph"
Fault: TypeAlias = Mapping[str, Any]
"""A document's fault: description, remedy, line, column, item, and whether data was left out."""

_SUBSCRIBE = "Subscribe to it (`read_subscriptions` or `--subscriptions`)."
_LITERALS = (str, Literal)
_NOT_PUBLICATIONS = {
    ".rq": ("a subscription", _SUBSCRIBE),
    ".jsonl": ("subscriptions", _SUBSCRIBE),
    ".csv": ("synonyms", "Load it with the ontology (`Ontology.load` or `--ontology`)."),
}


class SplitBy(Choice):
    """The part of a document that becomes one publication; see the module's table."""

    AUTO = "auto"
    DOCUMENT = "document"
    GRAPH = "graph"
    ITEM = "item"
    SUBJECT = "subject"
    COMPONENT = "component"

    @property
    def needs_objects(self) -> bool:
        """True if a document is read as a whole, and then split by its terms."""
        return self in (SplitBy.ITEM, SplitBy.SUBJECT, SplitBy.COMPONENT)


def read_publications(
    *sources: Source,
    split_by: SplitBy | str = SplitBy.AUTO,
    format: str | None = None,
    base_iri: str | None = None,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Publication]:
    r"""Yield the publications of the sources, in their order.

    Blank node names are unique across documents.

    Parameters
    ----------
    sources
        File names, folders (all files in them, sorted by name), ``"-"`` for standard input, open
        binary files, documents as bytes, or `rdflib.Graph` objects. Each graph with triples of an
        `rdflib.Dataset` is a publication. The name or content determines the syntax.
    split_by
        The part of a document that becomes a publication; see the module.
    format
        Media type or extension of the RDF syntax, if neither name nor content identifies it.
    base_iri
        The base of relative IRIs; without one, relative IRIs are errors.
    on_problem
        Called with each skipped document, line or item.
    limits
        Resource limits of one input.

    Examples
    --------
    >>> line = b"<urn:a> <urn:p> <urn:b> <urn:g%d> .\n"
    >>> [(p.id, len(p.triples)) for p in read_publications(line % 1 + line % 2)]
    [('urn:g1', 1), ('urn:g2', 1)]
    """
    split_by = SplitBy(split_by)
    syntax = None if format is None else format_of_media_type(format)
    if base_iri is not None:
        check_base(base_iri)
    for source in sources:
        if isinstance(source, str | Path):
            streams = documents(source, on_problem)
        elif isinstance(source, bytes):
            streams = iter([("<memory>", io.BytesIO(source))])
        elif hasattr(source, "read"):  # Faster than `isinstance` with a protocol.
            streams = iter([(str(getattr(source, "name", "<stream>")), source)])
        else:
            yield from Publication.of_rdflib(source)
            continue
        for name, stream in streams:
            yield from _document(stream, name, split_by, syntax, base_iri, on_problem, limits)


def check_base(base_iri: str) -> None:
    """Raise `InputError` if a base is not an absolute IRI."""
    try:
        NamedNode(base_iri)
    except ValueError as error:
        what = f"the base {base_iri!r} is not an absolute IRI"
        remedy = "Give one such as https://example.org/."
        raise InputError(Problem(what, Place("base"), remedy)) from error


def _document(
    stream: Readable,
    source: str,
    split_by: SplitBy,
    syntax: RdfFormat | None,
    base_iri: str | None,
    on_problem: OnProblem,
    limits: Limits,
) -> Iterator[Publication]:
    """Yield a document's publications; report the problem if it cannot be opened."""
    try:
        found, data = recognise(pieces(stream), source, syntax, split_by, limits)
    except InputError as error:
        on_problem(error.problem)
    except OSError as error:
        on_problem(unreadable(source, error))
    else:
        yield from publications_of(data, found, source, split_by, base_iri, on_problem, limits)


def publications_of(
    data: Iterator[bytes],
    syntax: RdfFormat | FeedFormat,
    source: str,
    split_by: SplitBy,
    base_iri: str | None,
    on_problem: OnProblem,
    limits: Limits,
) -> Iterator[Publication]:
    """Yield the publications of a document that `recognise` opened.

    Report an error that ends reading early, each publication that is too large, and a document
    without publications.
    """
    told = False

    def report(problem: Problem) -> None:
        nonlocal told
        told = True
        on_problem(problem)

    found = False
    try:
        for publication in _publications(data, syntax, source, split_by, base_iri, report, limits):
            found = True
            most = limits.publication_triples
            # Only large publications have to be searched for duplicates.
            if len(publication.rows) > most and len(publication.triples) > most:
                on_problem(too_large(publication.source, limits))
            else:
                yield publication
    except InputError as error:
        report(error.problem)
    except OSError as error:
        report(unreadable(source, error))
    if not found and not told:
        what = f"there is no publication in it, if it is split by `{split_by.value}`"
        remedy = "Check that it is the right file, or split it in another way."
        report(Problem(what, Place(source), remedy, Severity.WARNING))


def _publications(
    data: Iterator[bytes],
    syntax: RdfFormat | FeedFormat,
    source: str,
    split_by: SplitBy,
    base_iri: str | None,
    report: OnProblem,
    limits: Limits,
) -> Iterator[Publication]:
    if isinstance(syntax, FeedFormat):
        whole = b"".join(data)
        items = read_feed(whole, source, on_problem=report, limits=limits, kind=syntax)
        return _of_bounded_texts(items, report, limits)
    if not split_by.needs_objects:
        return read_rdf(
            data,
            syntax,
            source,
            on_problem=report,
            split_by=split_by,
            base_iri=base_iri,
            limits=limits,
        )
    every = replace(limits, publication_triples=sys.maxsize)
    read = read_rdf(data, syntax, source, on_problem=report, base_iri=base_iri, limits=every)
    return _GROUPERS[split_by](chain.from_iterable(one.given for one in read), source)


def _of_bounded_texts(
    items: Iterator[Publication], on_problem: OnProblem, limits: Limits
) -> Iterator[Publication]:
    """Yield a feed's items; report and skip those with a text longer than ``text_characters``.

    Each text is copied many times, so a long one takes much memory.
    """
    for item in items:
        literals = [o for _, _, o in item.rows if isinstance(o, _LITERALS)]
        texts = (o.value if isinstance(o, Literal) else o for o in literals)
        if max(map(len, texts), default=0) > limits.text_characters:
            on_problem(too_long("a text", item.source, limits))
        else:
            yield item


def recognise(
    data: Iterator[bytes], source: str, syntax: RdfFormat | None, split_by: SplitBy, limits: Limits
) -> tuple[RdfFormat | FeedFormat, Iterator[bytes]]:
    """Detect the syntax of a document of publications from its name and beginning.

    Parameters
    ----------
    data
        The document, in pieces.
    syntax
        The syntax, if the caller knows it.

    Returns
    -------
    syntax
        The RDF syntax, or the format of a feed that is to be split into its items.
    data
        The document: a feed in one piece, RDF/XML in one piece and in UTF-8.

    Raises
    ------
    InputError
        If it is empty, or neither RDF nor a feed (the message names its actual format). If it must
        be held in memory and is larger than ``limits.document_bytes``, or is not in its encoding.
    """
    pieces: list[bytes] = []
    size, enough, is_blank = 0, HEAD_BYTES if syntax is None else 1, True
    while (is_blank or size < enough) and size <= limits.document_bytes:
        if not (piece := next(data, b"")):
            break
        pieces.append(piece)
        size, is_blank = size + len(piece), is_blank and not piece.strip(BLANK)
    whole: Iterator[bytes] = chain(pieces, data)
    if is_blank:
        if source == STDIN:
            raise InputError(
                Problem("standard input is empty", Place(source), "Pipe a document into it.")
            )
        raise InputError(Problem("the file is empty", Place(source), "Remove or fill it."))
    head = b"".join(pieces)
    if not head[:HEAD_BYTES].strip(BLANK):
        head = head.lstrip(BLANK)
    if syntax is None:
        feed = sniff_feed(head)
        if feed is not None and split_by in (SplitBy.AUTO, SplitBy.ITEM):
            return feed, iter([read_whole(whole, source, limits)])
        if feed not in (None, FeedFormat.RSS1):
            what, remedy = "a feed can only be split into items", "Split it by `item` or `auto`."
            raise InputError(Problem(what, Place(source), remedy))
        if (other := _NOT_PUBLICATIONS.get(Path(source).suffix.lower())) is not None:
            what = f"it contains {other[0]} instead of publications"
            raise InputError(Problem(what, Place(source), other[1]))
        syntax = tell_syntax(head, source)
    else:
        refuse_foreign(head[:HEAD_BYTES], source, syntax)
    if syntax == RdfFormat.RDF_XML:
        whole = iter([recode_xml(read_whole(whole, source, limits), source)])
    return syntax, whole


def read_rdf(
    data: Iterable[bytes],
    syntax: RdfFormat,
    source: str,
    *,
    on_problem: OnProblem,
    split_by: SplitBy = SplitBy.DOCUMENT,
    base_iri: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    names: str | None = None,
    prefixes: dict[str, str] | None = None,
    may_be_empty: bool = False,
) -> Iterator[Publication]:
    """Yield the publications of an RDF document in a known syntax.

    Parameters
    ----------
    data
        The document, in pieces; RDF/XML must be in UTF-8 (`semantic.safe_xml.recode_xml`).
    source
        Its name, which is also the id if the document is one publication.
    on_problem
        Called with each error: of a line, or the one that ends the document.
    split_by
        ``document``, ``graph`` or ``auto``.
    names
        Prefix of blank node names; the default is unique to this document.
    prefixes
        Receives the prefixes that the document declares, after the last publication.
    may_be_empty
        True if a document without triples is valid.

    Examples
    --------
    >>> (found,) = read_rdf([b"<urn:a> a <urn:b> ."], RdfFormat.TURTLE, "a.ttl", on_problem=print)
    >>> found.id, len(found.triples)
    ('a.ttl', 1)
    """
    reader = _native.Publications(
        Pieces(iter(data)),
        plain(source),
        syntax.file_extension,
        limits,
        split_by.value,
        base_iri,
        f"b{uuid4().hex}" if names is None else names,
        may_be_empty,
    )
    goes_on = True
    while goes_on:
        found, faults, goes_on = reader.next()
        for fault in faults:
            on_problem(problem_of(fault, source))
        if found is not None:
            yield publication_of(*found, source)
    if prefixes is not None:
        prefixes.update(reader.prefixes())


def problem_of(fault: Fault, source: str) -> Problem:
    """Convert a fault from the core to a problem."""
    severity = Severity.REFUSED if fault["refused"] else Severity.WARNING
    place = Place(source, fault["line"], fault["column"], fault["item"])
    return Problem(fault["what"], place, fault["remedy"], severity)


def publication_of(id: str, triples: Iterable[Triple], source: str) -> Publication:
    """Make a publication from triples that the core has read."""
    id = id_of(id, source)
    place = Place(source, item=None if id == source else id)
    return Publication.of_terms(id, tuple(triples), place)


def id_of(id: str, source: str) -> str:
    """Return a publication's id; if the core's `id` is `plain(source)`, return `source` itself.

    The core needs valid Unicode, but a file name may contain other bytes.
    """
    return source if id == plain(source) else id


def too_large(place: Place, limits: Limits) -> Problem:
    """Return the problem of a publication with too many triples."""
    what = f"the publication has more than {limits.publication_triples:,} triples"
    remedy = (
        "Raise the limit `publication_triples`, or split the document into smaller publications."
    )
    return Problem(what, place, remedy)


# -- splitting by terms --------------------------------------------------------------------------


def by_subject(triples: Iterable[Triple], source: str) -> Iterator[Publication]:
    """Yield a publication for each subject that is an IRI: its concise bounded description."""
    about = _about(triples)
    for subject in about:
        if isinstance(subject, NamedNode):
            place = Place(source, item=subject.value)
            yield Publication.of(subject.value, _describe(subject, about), place)


def by_item(triples: Iterable[Triple], source: str) -> Iterator[Publication]:
    """Yield a publication for each ``rss:item`` that is an IRI, with its channel's description."""
    about = _about(triples)
    for subject, stated in about.items():
        if isinstance(subject, NamedNode) and (subject, TYPE, RSS["item"]) in stated:
            channels = [o for _, p, o in stated if p == DCTERMS["isPartOf"]]
            described = [t for s in (subject, *channels) for t in _describe(s, about)]
            yield Publication.of(subject.value, described, Place(source, item=subject.value))


def by_component(triples: Iterable[Triple], source: str) -> Iterator[Publication]:
    """Yield a publication for each weakly connected component, ordered by their first triples."""
    triples = list(dict.fromkeys(triples))
    joined: dict[Term, Term] = {}  # This is a disjoint-set forest.

    def root(term: Term) -> Term:
        while (above := joined.setdefault(term, term)) != term:
            joined[term] = joined[above]  # Path halving speeds up later lookups.
            term = above
        return term

    for subject, predicate, object_ in triples:
        if predicate != TYPE and not isinstance(object_, Literal):
            joined[root(object_)] = root(subject)
    parts: defaultdict[Term, list[Triple]] = defaultdict(list)
    for triple in triples:
        parts[root(triple[0])].append(triple)
    for count, part in enumerate(parts.values(), 1):
        id = source if len(parts) == 1 else f"{source}#{count}"
        yield Publication.of(id, part, Place(source, item=f"component {count}"))


_GROUPERS = {SplitBy.SUBJECT: by_subject, SplitBy.ITEM: by_item, SplitBy.COMPONENT: by_component}


def _describe(subject: Term, about: Mapping[Term, Sequence[Triple]]) -> Iterator[Triple]:
    """Yield the concise bounded description of a subject; `about` maps subjects to triples."""
    seen, queue = {subject}, [subject]
    for node in queue:
        for triple in about.get(node, ()):
            yield triple
            if isinstance(triple[2], BlankNode) and triple[2] not in seen:
                seen.add(triple[2])
                queue.append(triple[2])


def _about(triples: Iterable[Triple]) -> dict[Term, list[Triple]]:
    about: defaultdict[Term, list[Triple]] = defaultdict(list)
    for triple in triples:
        about[triple[0]].append(triple)
    return dict(about)
