"""Mapping functions of ontology files: CONSTRUCT queries with names.

`graphmatch.mapping` runs them, and describes their input and output.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile

from semantic.errors import Place


@dataclass(frozen=True, slots=True)
class MappingFunction:
    r"""A CONSTRUCT query with a name, as written; `source` is the name of its file.

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
        """The comment at the beginning of the query: its first ``#`` lines, joined by spaces."""
        lines = takewhile(lambda line: line.startswith("#"), self.text.splitlines())
        return " ".join(line.lstrip("#").strip() for line in lines)

    @property
    def place(self) -> Place:
        """The place of the query, for messages."""
        return Place(self.source or self.name)
