"""What Spark says beside what the local engine says."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from graphmatch import Engine
from semantic import Publication
from semantic.terms import Term

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Said: TypeAlias = "Counter[tuple[str, str, frozenset[tuple[str, str]] | str]]"
"""Publication, subscription and solution, or the constructed graph; blank nodes have one name."""

_BLANK = re.compile(r"_:\w+")


def _plain(text: str) -> str:
    return _BLANK.sub("_:", text)


def _solution(solution: Mapping[str, Term | str]) -> frozenset[tuple[str, str]]:
    return frozenset((name, _plain(str(term))) for name, term in solution.items())


def locally(engine: Engine, publications: Iterable[Publication]) -> Said:
    """Return what the local engine says."""
    said: Said = Counter()
    for publication in publications:
        for match in engine.match(publication):
            key = publication.id, match.subscription
            if match.graph is not None:
                lines = sorted(_plain(f"{' '.join(map(str, t))} .\n") for t in match.graph)
                said[*key, "".join(lines)] += 1
            for solution in match.solutions:
                said[*key, _solution(solution)] += 1
    return said


def on_spark(matches: DataFrame) -> Said:
    """Return what Spark says."""
    said: Said = Counter()
    for row in matches.toLocalIterator():
        answer = row["solution"]
        if answer is None:
            lines = sorted(_plain(str(row["graph"])).splitlines(keepends=True))
            said[row["publication"], row["subscription"], "".join(lines)] += 1
        else:
            said[row["publication"], row["subscription"], _solution(answer)] += 1
    return said


def rows_of(publications: Iterable[Publication]) -> list[tuple[str, str, str, str]]:
    """Return the triples of publications as rows of texts."""
    return [(p.id, *map(str, triple)) for p in publications for triple in p.triples]


def shuffled(rows: Sequence[tuple[str, str, str, str]], seed: int = 1) -> list[tuple[str, ...]]:
    """Return rows in an order without sense."""
    mixed = list(rows)
    Random(seed).shuffle(mixed)
    return list(mixed)
