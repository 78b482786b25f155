"""Publications from files, folders, standard input and memory, one after the other.

All syntaxes of RDF are read by the compiled core, which also matches what it reads
(`graphmatch.Engine.filter`); feeds are read by `semantic.feeds`. N-Quads, N-Triples, TriG and
Turtle are streamed: a publication is yielded when its last triple is read. In lines, a bad one is
reported and the next one is read; of another syntax, the first fault ends the document. One
unreadable document is reported and the rest goes on.

A document is cut into publications:

| cut | a publication is |
| --- | --- |
| `document` | the whole document |
| `graph` | a named graph, and the default graph as one more |
| `item` | a feed item, with its channel |
| `subject` | the concise bounded description of an IRI that is a subject |
| `component` | a weakly connected part |
| `auto` | an item of a feed, a graph where there are named ones, else the document |

The concise bounded description is W3C's submission of 2005: the subject's triples,
and those of blank nodes reached from it. In a component, two triples belong together
when they share a subject or object that is an IRI or a blank node; the object of
``rdf:type`` is shared vocabulary and connects nothing.
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
from semantic.files import (
    STDIN,
    Pieces,
    Readable,
    documents,
    pieces,
    plain,
    read_whole,
    unreadable,
)
from semantic.guards import recode_xml
from semantic.limits import DEFAULT_LIMITS, Limits, too_long
from semantic.publication import Publication
from semantic.syntax import BLANK, HEAD_BYTES, format_of_media_type, refuse_foreign, tell_syntax
from semantic.terms import Term, Triple
from semantic.vocabulary import DCTERMS, RSS, TYPE

if TYPE_CHECKING:
    import rdflib

Source: TypeAlias = "str | Path | bytes | Readable | rdflib.Graph"
Fault: TypeAlias = Mapping[str, Any]
"""What is wrong with a document, the remedy, line, column, item, whether something was left out."""

_SUBSCRIBE = "Subscribe to it (`read_subscriptions` or `--subscriptions`)."
_NOT_PUBLICATIONS = {
    ".rq": ("a file of a subscription", _SUBSCRIBE),
    ".jsonl": ("a file of subscriptions", _SUBSCRIBE),
    ".csv": ("a file of synonyms", "Load it with the ontology (`Ontology.load` or `--ontology`)."),
}


class Cut(Choice):
    """What of a document becomes one publication; see the module's table."""

    AUTO = "auto"
    DOCUMENT = "document"
    GRAPH = "graph"
    ITEM = "item"
    SUBJECT = "subject"
    COMPONENT = "component"

    @property
    def needs_objects(self) -> bool:
        """Whether a document is cut by its terms, once it is read."""
        return self in (Cut.ITEM, Cut.SUBJECT, Cut.COMPONENT)


def read_publications(
    *sources: Source,
    cut: Cut | str = Cut.AUTO,
    format: str | None = None,
    base_iri: str | None = None,
    on_problem: OnProblem = warn_problem,
    limits: Limits = DEFAULT_LIMITS,
) -> Iterator[Publication]:
    r"""Yield the publications of the sources, in their order.

    Blank nodes get names that no other document has.

    Parameters
    ----------
    sources
        File names, folders (all files in them, sorted by name), ``"-"`` for standard input,
        open binary files, documents as bytes, or `rdflib.Graph` objects; of an `rdflib.Dataset`
        each graph that has triples is a publication. The syntax is
        recognized by name or content.
    cut
        How a document becomes publications; see the module.
    format
        Media type or extension of the RDF syntax, where neither name nor content tells.
    base_iri
        What relative IRIs are resolved against; without one they are errors.
    on_problem
        Called with each document, line or item that is passed over.
    limits
        What one input may cost.

    Examples
    --------
    >>> line = b"<urn:a> <urn:p> <urn:b> <urn:g%d> .\n"
    >>> [(p.id, len(p.triples)) for p in read_publications(line % 1 + line % 2)]
    [('urn:g1', 1), ('urn:g2', 1)]
    """
    cut = Cut(cut)
    syntax = None if format is None else format_of_media_type(format)
    if base_iri is not None:
        check_base(base_iri)
    for source in sources:
        if isinstance(source, str | Path):
            streams = documents(source, on_problem)
        elif isinstance(source, bytes):
            streams = iter([("<memory>", io.BytesIO(source))])
        elif isinstance(source, Readable):
            streams = iter([(str(getattr(source, "name", "<stream>")), source)])
        else:
            yield from Publication.of_rdflib(source)
            continue
        for name, stream in streams:
            yield from _document(stream, name, cut, syntax, base_iri, on_problem, limits)


def check_base(base_iri: str) -> None:
    """Raise `InputError` for a base that is none."""
    try:
        NamedNode(base_iri)
    except ValueError as error:
        what = f"the base {base_iri!r} is not an absolute IRI"
        remedy = "Give one such as https://example.org/."
        raise InputError(Problem(what, Place("base"), remedy)) from error


def _document(
    stream: Readable,
    source: str,
    cut: Cut,
    syntax: RdfFormat | None,
    base_iri: str | None,
    on_problem: OnProblem,
    limits: Limits,
) -> Iterator[Publication]:
    """Yield a document's publications; report why it cannot be opened."""
    try:
        found, data = recognise(pieces(stream), source, syntax, cut, limits)
    except InputError as error:
        on_problem(error.problem)
    except OSError as error:
        on_problem(unreadable(source, error))
    else:
        yield from publications_of(data, found, source, cut, base_iri, on_problem, limits)


def publications_of(
    data: Iterator[bytes],
    syntax: RdfFormat | FeedFormat,
    source: str,
    cut: Cut,
    base_iri: str | None,
    on_problem: OnProblem,
    limits: Limits,
) -> Iterator[Publication]:
    """Yield the publications of a document that `recognise` opened.

    Reports the fault that ends it early, publications that are too large, and that there are none.
    """
    told = False

    def report(problem: Problem) -> None:
        nonlocal told
        told = True
        on_problem(problem)

    found = False
    try:
        for publication in _publications(data, syntax, source, cut, base_iri, report, limits):
            found = True
            if (size := len(publication.triples)) > limits.publication_triples:
                on_problem(too_large(publication.source, limits, size))
            else:
                yield publication
    except InputError as error:
        report(error.problem)
    except OSError as error:
        report(unreadable(source, error))
    if not found and not told:
        what = f"it holds no publication, with the cut `{cut.value}`"
        remedy = "Check that it is the right file, or use another cut."
        report(Problem(what, Place(source), remedy, Severity.WARNING))


def _publications(
    data: Iterator[bytes],
    syntax: RdfFormat | FeedFormat,
    source: str,
    cut: Cut,
    base_iri: str | None,
    report: OnProblem,
    limits: Limits,
) -> Iterator[Publication]:
    if isinstance(syntax, FeedFormat):
        whole = b"".join(data)
        items = read_feed(whole, source, on_problem=report, limits=limits, kind=syntax)
        return _of_bounded_texts(items, report, limits)
    if not cut.needs_objects:
        return read_rdf(
            data, syntax, source, on_problem=report, cut=cut, base_iri=base_iri, limits=limits
        )
    every = replace(limits, publication_triples=sys.maxsize)
    read = read_rdf(data, syntax, source, on_problem=report, base_iri=base_iri, limits=every)
    return _GROUPERS[cut](chain.from_iterable(one.given for one in read), source)


def _of_bounded_texts(
    items: Iterator[Publication], on_problem: OnProblem, limits: Limits
) -> Iterator[Publication]:
    """Yield the items of a feed none of whose texts is too long: each is copied many times."""
    for item in items:
        texts = (len(o.value) for _, _, o in item.given if isinstance(o, Literal))
        if max(texts, default=0) > limits.text_characters:
            on_problem(too_long("a text", item.source, limits))
        else:
            yield item


def recognise(
    data: Iterator[bytes], source: str, syntax: RdfFormat | None, cut: Cut, limits: Limits
) -> tuple[RdfFormat | FeedFormat, Iterator[bytes]]:
    """Tell the syntax of a document of publications, by its name and beginning.

    Parameters
    ----------
    data
        The document, as it comes.
    syntax
        What somebody says that it is.

    Returns
    -------
    syntax
        That of RDF, or the format of a feed that is to be cut into its items.
    data
        The document; a feed whole, and RDF/XML whole and in UTF-8.

    Raises
    ------
    InputError
        When it is empty, or none of these, with what it is instead; when it is larger than
        ``limits.document_bytes`` and has to be whole, or not in its encoding.
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
            raise InputError(Problem("nothing came in", Place(source), "Pipe a document into it."))
        raise InputError(Problem("the file is empty", Place(source), "Remove or fill it."))
    head = b"".join(pieces)
    if not head[:HEAD_BYTES].strip(BLANK):
        head = head.lstrip(BLANK)
    if syntax is None:
        feed = sniff_feed(head)
        if feed is not None and cut in (Cut.AUTO, Cut.ITEM):
            return feed, iter([read_whole(whole, source, limits)])
        if feed not in (None, FeedFormat.RSS1):
            what, remedy = "a feed can only be cut into items", "Use the cut `item` or `auto`."
            raise InputError(Problem(what, Place(source), remedy))
        if (other := _NOT_PUBLICATIONS.get(Path(source).suffix.lower())) is not None:
            raise InputError(Problem(f"{other[0]}, not of publications", Place(source), other[1]))
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
    cut: Cut = Cut.DOCUMENT,
    base_iri: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    names: str | None = None,
    prefixes: dict[str, str] | None = None,
    may_be_empty: bool = False,
) -> Iterator[Publication]:
    """Yield the publications of an RDF document whose syntax is known.

    Parameters
    ----------
    data
        The document, as it comes; RDF/XML in UTF-8 (`semantic.guards.recode_xml`).
    source
        Its name, which is the id of a publication that is the document.
    on_problem
        Called with each fault: of a line, or the one that ends the document.
    cut
        ``document``, ``graph`` or ``auto``.
    names
        What blank nodes' names begin with; by default what no other document's do.
    prefixes
        Gets those that the document declares.
    may_be_empty
        Whether it is no fault that it has no triples.

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
        cut.value,
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
    """Return the problem of a fault that the core has found in a document."""
    severity = Severity.REFUSED if fault["refused"] else Severity.WARNING
    place = Place(source, fault["line"], fault["column"], fault["item"])
    return Problem(fault["what"], place, fault["remedy"], severity)


def publication_of(id: str, triples: Iterable[Triple], source: str) -> Publication:
    """Return a publication that the core has read from a document."""
    id = id_of(id, source)
    place = Place(source, item=None if id == source else id)
    return Publication.of_terms(id, tuple(triples), place)


def id_of(id: str, source: str) -> str:
    """Return the id of a publication that the core has read: names of files may be no Unicode."""
    return source if id == plain(source) else id


def too_large(place: Place, limits: Limits, size: int) -> Problem:
    """Return the problem of a publication with too many triples."""
    what = f"a publication of {size:,} triples, more than {limits.publication_triples:,}"
    remedy = "Raise the limit `publication_triples`, or cut the document into smaller publications."
    return Problem(what, place, remedy)


# -- cuts by terms --------------------------------------------------------------------------


def by_subject(triples: Iterable[Triple], source: str) -> Iterator[Publication]:
    """Yield the concise bounded description of each IRI that is a subject."""
    about = _about(triples)
    for subject in about:
        if isinstance(subject, NamedNode):
            place = Place(source, item=subject.value)
            yield Publication.of(subject.value, _describe(subject, about), place)


def by_item(triples: Iterable[Triple], source: str) -> Iterator[Publication]:
    """Yield each ``rss:item`` of a document with the description of its channel."""
    about = _about(triples)
    for subject, stated in about.items():
        if isinstance(subject, NamedNode) and (subject, TYPE, RSS["item"]) in stated:
            channels = [o for _, p, o in stated if p == DCTERMS["isPartOf"]]
            described = [t for s in (subject, *channels) for t in _describe(s, about)]
            yield Publication.of(subject.value, described, Place(source, item=subject.value))


def by_component(triples: Iterable[Triple], source: str) -> Iterator[Publication]:
    """Yield the weakly connected parts, in the order of their first triples."""
    triples = list(dict.fromkeys(triples))
    joined: dict[Term, Term] = {}  # a disjoint-set forest

    def root(term: Term) -> Term:
        while (above := joined.setdefault(term, term)) != term:
            joined[term] = joined[above]  # halves the way for those who come next
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


_GROUPERS = {Cut.SUBJECT: by_subject, Cut.ITEM: by_item, Cut.COMPONENT: by_component}


def _describe(subject: Term, about: Mapping[Term, Sequence[Triple]]) -> Iterator[Triple]:
    """Yield the concise bounded description of a subject."""
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
