"""Mapping functions as an ontology's files have them: CONSTRUCT queries with names.

What they read and add, and how they are run: `graphmatch.mapping`.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from semantic.errors import Place


@dataclass(frozen=True, slots=True)
class MappingFunction:
    r"""A CONSTRUCT query with a name, as it was written; `source` is where it was read.

    Examples
    --------
    >>> MappingFunction("cheap", "# What is cheap.\nCONSTRUCT { ?x a <urn:C> } { … }").comment
    'What is cheap.'
    """

    name: str
    text: str
    source: str = ""

    @property
    def comment(self) -> str:
        """The ``#`` lines at the head of its text."""
        lines = takewhile(lambda line: line.startswith("#"), self.text.splitlines())
        return " ".join(line.lstrip("#").strip() for line in lines)

    @property
    def place(self) -> Place:
        """Where it was read."""
        return Place(self.source or self.name)
