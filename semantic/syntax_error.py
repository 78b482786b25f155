"""A parser's complaint as a problem for people."""

from __future__ import annotations

import re

from pyoxigraph import RdfFormat

from semantic.errors import Place, Problem

BASE_REMEDY = "Write the whole IRI, or give the document a base: in it, or with --base."
LINE_REMEDY = "Correct the line; it was skipped."

_POSITION = re.compile(r"^Parser error (?:at|between) .*?: ")
_IN_QUOTES = re.compile(r"'([^']*)'")
_NOT_UTF8 = ("Invalid UTF-8", "decode input using UTF-8")


def problem_of(error: SyntaxError, syntax: RdfFormat, place: Place, remedy: str) -> Problem:
    """Return what pyoxigraph's error says.

    Parameters
    ----------
    place
        Where it is, as far as that is known.
    remedy
        What to do where nothing better is known.

    Examples
    --------
    >>> error = SyntaxError("Parser error at line 2 column 1: a dot is expected")
    >>> print(problem_of(error, RdfFormat.TURTLE, Place("a.ttl", 2, 1), "Correct it there."))
    a.ttl:2:1: not valid Turtle: a dot is expected. Correct it there.
    """
    message = _POSITION.sub("", str(error.args[0] if error.args else error)).rstrip(".")
    if "No scheme found" in message:
        found = _IN_QUOTES.search(message)
        return relative_iri(found[1] if found else "", place, lines=remedy == LINE_REMEDY)
    if "LoadDocumentCallback" in message:
        remedy = "Put the context into the document: nothing is fetched."
        return Problem("a remote JSON-LD context", place, remedy)
    if any(words in message for words in _NOT_UTF8):
        remedy = remedy if remedy == LINE_REMEDY else "Save the document as UTF-8."
        return Problem("not UTF-8", place, remedy)
    return Problem(f"not valid {syntax.name}: {message}", place, remedy)


def relative_iri(name: str, place: Place, *, lines: bool = False) -> Problem:
    """Return the problem of an IRI that is not whole, in a document of lines or another."""
    what = f"a relative IRI ({name})" if name else "a relative IRI"
    return Problem(what, place, f"Write the whole IRI. {LINE_REMEDY}" if lines else BASE_REMEDY)
