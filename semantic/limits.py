"""Limits that bound the time and memory that hostile or broken input can take."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields

from semantic.errors import InputError, Place, Problem


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on the cost of one input. Each error that they cause names the limit.

    Parameters
    ----------
    document_bytes
        Maximum size of a document in bytes. Documents in N-Quads and N-Triples are streamed, so
        it bounds only their lines.
    xml_expansion
        Maximum number of characters that XML entities add to a document.
    xml_depth
        Maximum nesting of XML elements.
    nesting
        Maximum nesting of the objects and lists of JSON-LD, of the brackets of Turtle, TriG and
        N3 and of triple terms, and of the groups and brackets of a query. Maximum number of terms
        of a JSON-LD context that occur in definitions of others.
    publication_triples
        Maximum number of triples of a publication.
    derived_triples
        Maximum number of triples that rules derive from a publication, in addition to four for
        each of its triples.
    text_characters
        Maximum number of characters of a query, a line of JSON, a file of TOML, and a text of a
        publication or of an ontology, because each is copied several times.
    subscription_branches
        Maximum number of branches that a subscription's UNIONs and alternative paths multiply
        to. The index of a subscription with more uses only what all branches share.
    subscription_patterns
        Maximum number of triple patterns and property paths of a subscription, those of OPTIONAL,
        MINUS, EXISTS and of a template included. Four times as many variables and groups may
        stand in it.
    subscription_operators
        Maximum number of keywords, functions and operators of a subscription, because they use
        the stack of the parser and the optimizer. Constants do not count.
    publication_seconds
        Time limit, in seconds, of matching one publication, per 100,000 triples. Calls of operators
        and enrichment by Python do not count. Rules stop when it is over. The search for labels in
        texts, each join and each evaluation may take half of the remaining time, so that a costly
        subscription leaves time for the others. Finding the solutions of a report may take half of
        it, too.
    operator_seconds
        Time limit, in seconds, of all calls of operators for one publication together.
    match_solutions
        Maximum number of solutions of one match. The solutions that are evaluated for one
        publication have at most 2,000,000 terms together, and each match may have half of the
        remaining terms.
    reason_triples
        Maximum size of a publication whose matches get reasons, in triples.
    mapping_rounds
        Maximum number of rounds in which mapping functions give a publication new triples.
    mapping_triples
        Maximum number of new triples of a publication from one mapping function.
    mapping_characters
        Maximum number of characters of a text from a mapping function.
    unit_characters
        Maximum number of characters of a unit of measure.
    units_remembered
        Maximum number of units of measure that are cached with their meaning.
    attribute_steps
        Maximum number of steps in the name of an attribute.
    event_paths
        Maximum number of steps in all paths when a publication is flattened to events.
    imported_documents
        Maximum number of documents that an ontology imports, directly or not.
    reasoning_seconds
        Time limit, in seconds, of an OWL reasoner.
    reasoning_bytes
        Memory limit, in bytes, of an OWL reasoner.

    Raises
    ------
    InputError
        If a limit is not a number above zero.
    """

    document_bytes: int = 256 * 1024 * 1024
    xml_expansion: int = 8 * 1024 * 1024
    xml_depth: int = 256
    nesting: int = 256
    publication_triples: int = 5_000_000
    derived_triples: int = 500_000
    text_characters: int = 16 * 1024 * 1024
    subscription_branches: int = 16
    subscription_patterns: int = 1000
    subscription_operators: int = 1000
    publication_seconds: float = 1
    operator_seconds: float = 60
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
    reasoning_seconds: float = 600
    reasoning_bytes: int = 2 * 1024 * 1024 * 1024

    def __post_init__(self) -> None:
        """Raise `InputError` unless each limit is positive, and an integer if it is not a time."""
        for limit in fields(self):
            most = getattr(self, limit.name)
            kinds = (int, float) if limit.type == "float" else (int,)
            if type(most) not in kinds or not 0 < most <= sys.maxsize:
                number = "number" if float in kinds else "integer"
                what = f"`{limit.name}` is {most!r}, but must be a positive 64-bit {number}"
                remedy = f"Correct it, or leave it out to use the default, {limit.default:,}."
                raise InputError(Problem(what, Place("Limits"), remedy))


DEFAULT_LIMITS = Limits()


def too_long(what: str, where: Place, limits: Limits) -> Problem:
    """Return the problem of a text that is longer than ``limits.text_characters``.

    Examples
    --------
    >>> print(too_long("a text", Place("a.rss"), DEFAULT_LIMITS))
    a.rss: a text has more than 16,777,216 characters. Raise the limit `text_characters`, or \
shorten it.
    """
    remedy = "Raise the limit `text_characters`, or shorten it."
    return Problem(f"{what} has more than {limits.text_characters:,} characters", where, remedy)
