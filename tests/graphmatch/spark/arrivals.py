"""Files for streams to meet, what the local engine says of them, and what a stream wrote."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from graphmatch import Engine
from semantic import Publication

Said: TypeAlias = "Counter[tuple[str, str, frozenset[tuple[str, str]] | str]]"

NOON = 1_750_000_000
"""When the first file is written, in seconds."""
QUERIES = {
    "laptops": "SELECT ?x ?price WHERE { ?x a <urn:Laptop> ; <urn:price> ?price }",
    "sold-by": "SELECT ?x ?who WHERE { ?x <urn:seller> ?who . ?who <urn:name> ?name }",
    "anything": "ASK { ?x <urn:price> ?price }",
}


@dataclass
class Stream:
    """The folders of one stream, and how often a file came."""

    folder: Path
    files: int = field(default=0)

    def __post_init__(self) -> None:
        for each in (self.incoming, self.subscriptions):
            each.mkdir(parents=True)
        for name, query in QUERIES.items():
            self.subscribe(name, query)

    @property
    def incoming(self) -> Path:
        return self.folder / "incoming"

    @property
    def subscriptions(self) -> Path:
        return self.folder / "subscriptions"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def subscribe(self, name: str, query: str) -> None:
        (self.subscriptions / f"{name}.rq").write_text(query)

    def drop(self, name: str, text: str | bytes, hours: float | None = None) -> Path:
        """Put a file there: each is a minute younger than the one before."""
        self.files += 1
        made = self.folder / "made"
        made.write_bytes(text.encode() if isinstance(text, str) else text)
        time = NOON + 60 * self.files if hours is None else NOON + 3600 * hours
        os.utime(made, (time, time))
        made.rename(self.incoming / name)
        return self.incoming / name

    def matches(self) -> Said:
        """Return what was written."""
        said: Said = Counter()
        for row in written(self.output / "matches"):
            answer = row["graph"] if row["solution"] is None else frozenset(row["solution"])
            said[row["publication"], row["subscription"], answer] += 1
        return said

    def refused(self) -> list[str]:
        """Return what was refused: file and reason."""
        return sorted(
            f"{Path(row['source']).name}: {row['what']}" for row in written(self.output / "refused")
        )


def written(folder: Path) -> list[dict[str, Any]]:
    return [
        row
        for file in sorted(folder.glob("batch=*/*.parquet"))
        for row in pq.ParquetFile(file).read().to_pylist()
    ]


def locally(engine: Engine, publications: Iterable[Publication]) -> Said:
    """Return what the local engine says of the first publication with each id."""
    said: Said = Counter()
    seen: set[str] = set()
    for publication in publications:
        if publication.id in seen:
            continue
        seen.add(publication.id)
        for match in engine.match(publication):
            if match.graph is not None:
                said[publication.id, match.subscription, "graph"] += 1
            for solution in match.solutions:
                answer = frozenset((name, str(term)) for name, term in solution.items())
                said[publication.id, match.subscription, answer] += 1
    return said


def offers(random: Random, ids: Sequence[int]) -> str:
    """Return N-Quads: an offer a graph."""
    lines = []
    for id in ids:
        graph, thing = f"<urn:offer:{id}>", f"<urn:thing:{random.randrange(50)}>"
        kind = random.choice(["Laptop", "Tablet"])
        lines += [
            f"{thing} <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <urn:{kind}> {graph} .",
            f'{thing} <urn:price> "{random.randrange(1000)}" {graph} .',
            f"{thing} <urn:seller> _:s{id} {graph} .",
            f'_:s{id} <urn:name> "{random.randrange(9)}" {graph} .',
        ]
    return "\n".join(lines) + "\n"
