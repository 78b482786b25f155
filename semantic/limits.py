"""The limits that keep hostile or broken input from taking the machine down."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields

from semantic.errors import InputError, Place, Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one input may cost; each error that they cause names the limit.

    Parameters
    ----------
    document_bytes
        A document that has to be held whole (a feed, an RDF/XML file) may have this
        many bytes. Formats that are streamed (N-Quads, N-Triples) are not bounded by it.
    xml_expansion
        How many characters XML entities may add to a document.
    xml_depth
        How deep XML elements may nest.
    nesting
        How deep the objects and lists of JSON-LD, triple terms, and the groups and brackets of a
        query may nest; how many terms of a JSON-LD context may occur in
        definitions of others.
    publication_triples
        A publication may have this many triples.
    text_characters
        A query, a line of JSON, a file of TOML, and a text of a publication or of an ontology may
        have this many characters: each is copied several times.
    subscription_branches
        A subscription's UNIONs and alternative paths may multiply to this many branches before
        the index takes only what all branches share.
    subscription_patterns
        Maximum number of triple patterns and property paths of a subscription, those of OPTIONAL,
        MINUS, EXISTS and of a template included. Four times as many variables and groups may
        stand in it.
    subscription_operators
        A subscription may have this many keywords, functions and operators; how many constants is
        not bounded by it. A parser's or an optimizer's stack is.
    evaluation_seconds
        Time limit, in seconds, of the evaluation of one query on one publication, of one join,
        and of finding the solutions of a report.
    match_solutions
        Maximum number of solutions of one match.
    reason_triples
        Maximum size of a publication whose matches get reasons, in triples.
    mapping_rounds
        In so many rounds mapping functions may give a publication new triples.
    mapping_triples
        A mapping function may give a publication this many new triples.
    mapping_characters
        A text that a mapping function gives may have this many characters.
    unit_characters
        The text of a unit of measure may have this many characters.
    units_remembered
        So many units of measure are remembered, with what they mean.
    attribute_steps
        The name of an attribute may have this many steps.
    event_paths
        So many steps are gone in all when a publication is flattened to events.
    imported_documents
        An ontology's imports, and theirs, may be this many documents.
    fetch_seconds
        How long the fetching of one imported document may take.
    reasoning_seconds
        After this time an OWL reasoner is stopped.
    reasoning_bytes
        How much memory an OWL reasoner may take.

    Raises
    ------
    InputError
        When one is no number above zero.
    """

    document_bytes: int = 256 * 1024 * 1024
    xml_expansion: int = 8 * 1024 * 1024
    xml_depth: int = 256
    nesting: int = 256
    publication_triples: int = 5_000_000
    text_characters: int = 16 * 1024 * 1024
    subscription_branches: int = 16
    subscription_patterns: int = 1000
    subscription_operators: int = 1000
    evaluation_seconds: float = 10
    match_solutions: int = 100_000
    reason_triples: int = 100_000
    mapping_rounds: int = 10
    mapping_triples: int = 10_000
    mapping_characters: int = 100_000
    unit_characters: int = 64
    units_remembered: int = 4096
    attribute_steps: int = 16
    event_paths: int = 100_000
    imported_documents: int = 1000
    fetch_seconds: float = 30
    reasoning_seconds: float = 600
    reasoning_bytes: int = 2 * 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        """Check that each is a number above zero."""
        for limit in fields(self):
            most = getattr(self, limit.name)
            kinds = (int, float) if limit.type == "float" else (int,)
            if type(most) not in kinds or not 0 < most <= sys.maxsize:
                number = "a number" if float in kinds else "a whole number"
                what = f"`{limit.name}` is {most!r}, and not {number} above zero, of 64 bits"
                remedy = f"Leave it out for what is usual, {limit.default:,}."
                raise InputError(Problem(what, Place("Limits"), remedy))


DEFAULT_LIMITS = Limits()


def too_long(what: str, where: Place, limits: Limits) -> Problem:
    """Return the problem of something that has more than ``limits.text_characters``.

    Examples
    --------
    >>> print(too_long("a text", Place("a.rss"), DEFAULT_LIMITS))
    a.rss: a text of more than 16,777,216 characters. Raise the limit `text_characters`, or \
leave it out.
    """
    remedy = "Raise the limit `text_characters`, or leave it out."
    return Problem(f"{what} of more than {limits.text_characters:,} characters", where, remedy)
