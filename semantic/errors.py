"""Problems and errors, each with a description, a place and a remedy.

One `Problem` describes any fault: of a file, an item in it, a subscription, or an ontology. A fault
that stops only one item is *reported* (passed to a callback or collected), and processing
continues. A fault that stops the whole call is *raised* as a `GraphMatchError` with the same
problem.
"""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from importlib import import_module
from pathlib import Path
from typing import Self


class Severity(Enum):
    """Effect of a problem on its item."""

    REFUSED = "refused"  # The item was skipped.
    WARNING = "warning"  # The item was used, but a part was skipped or repaired.


@dataclass(frozen=True, slots=True)
class Place:
    """A position in the input.

    Parameters
    ----------
    source
        The file's name as the user wrote it, a subscription's id, or ``<stdin>``.
    line, column
        Counted from 1; ``None`` if unknown.
    item
        A part of the source: a feed item's link, a named graph, etc.

    Examples
    --------
    >>> print(Place("daily.rss", line=12, column=4))
    daily.rss:12:4
    >>> print(Place("daily.rss", item="item 3"))
    daily.rss (item 3)
    """

    source: str
    line: int | None = None
    column: int | None = None
    item: str | None = None

    def __str__(self) -> str:
        """Return ``source:line:column (item)`` without unknown parts."""
        text = self.source
        if self.line is not None:
            text += f":{self.line}"
            if self.column is not None:
                text += f":{self.column}"
        if self.item is not None:
            text += f" ({self.item})"
        return text


@dataclass(frozen=True, slots=True)
class Problem:
    """A fault: its description, its place, and a remedy for the user.

    Examples
    --------
    >>> print(Problem("the file is empty", Place("a.ttl"), "Remove it or fill it."))
    a.ttl: the file is empty. Remove it or fill it.
    """

    what: str
    where: Place
    remedy: str
    severity: Severity = Severity.REFUSED

    def __str__(self) -> str:
        """Return the problem as one line."""
        return f"{self.where}: {self.what}. {self.remedy}"


def listed(names: Sequence[str], most: int) -> str:
    """Join the first `most` names for a message, and count the others.

    Examples
    --------
    >>> listed(["a", "b", "c"], 2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def plural(count: int, noun: str, several: str | None = None) -> str:
    """Return a count with its noun; `several` is the plural, by default `noun` with an s.

    Examples
    --------
    >>> plural(1, "match", "matches"), plural(2, "match", "matches"), plural(1000, "term")
    ('1 match', '2 matches', '1,000 terms')
    """
    return f"{count:,} {noun if count == 1 else several or noun + 's'}"


def shown(value: object) -> str:
    """Return a value for a message: its type, and its beginning if it is long."""
    text = repr(value)
    text = text if len(text) <= 60 else f"{text[:59]}…"
    return text if value is None else f"the {type(value).__name__} {text}"


def pip_install(extra: str) -> str:
    """Return the pip command that installs graphmatch with an extra; it works in any folder.

    graphmatch is not on PyPI, so the command names the clone, or the wheel.
    """
    clone = Path(__file__).resolve().parents[1]
    source = f'-e "{clone}' if (clone / "pyproject.toml").is_file() else '"FOLDER/graphmatch-….whl'
    return f'{sys.executable} -m pip install {source}[{extra}]"'


def require_frames(library: str) -> None:
    """Raise `GraphMatchError` if a library for data frames is not installed."""
    try:
        import_module(library)
    except ModuleNotFoundError as error:
        what, remedy = f"{library} is not installed", f"Install it: {pip_install('frames')}"
        raise GraphMatchError(Problem(what, Place("data frames"), remedy)) from error


class GraphMatchError(Exception):
    """Base class of every error that this project raises on purpose.

    Attributes
    ----------
    problem
        The description, place and remedy.
    """

    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class InputError(GraphMatchError):
    """An unreadable publication, feed or file."""


class SubscriptionError(GraphMatchError):
    """A rejected subscription; `Problem.where` has its id, and the position if known."""


class UnknownNameError(GraphMatchError):
    """A name that denotes no term of the ontology, or several; `Problem.where` is the name."""


class OntologyError(GraphMatchError):
    """An unreadable or unusable ontology file."""


def unknown_choice(parameter: str, value: object, choices: Iterable[str]) -> InputError:
    """Return the error for an invalid value of a parameter; its remedy lists the valid values.

    Examples
    --------
    >>> print(unknown_choice("entailment", "owl", ["rdfs", "none"]))
    entailment: 'owl' is unknown. Use one of: rdfs, none.
    """
    remedy = f"Use one of: {', '.join(choices)}."
    return InputError(Problem(f"{value!r} is unknown", Place(parameter), remedy))


class Choice(StrEnum):
    """Base class for the valid values of a parameter, which are looked up regardless of case.

    Looking up any other value raises the error of `unknown_choice`.
    """

    @classmethod
    def _missing_(cls, value: object) -> Self:
        for one in cls:
            if str(value).upper() == one.upper():
                return one
        parameter = re.sub("(?<=[a-z])(?=[A-Z])", "_", cls.__name__).lower()
        raise unknown_choice(parameter, value, cls)


class UnplacedError(ValueError):
    """An unusable value; the code that catches it knows the place, and makes a `Problem`."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


class ProblemWarning(UserWarning):
    """A problem that was reported without a callback (see `warn_problem`)."""


OnProblem = Callable[[Problem], None]
"""Callback that receives each problem of the input."""


def warn_problem(problem: Problem) -> None:
    """Report a problem as a Python warning: the default, so that nothing is lost silently."""
    warnings.warn(str(problem), ProblemWarning, stacklevel=3)
