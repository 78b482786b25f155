"""The runs of ``graphmatch bench all``, read from suite.toml.

A run is a workload with columns (`graphmatch.bench.runner`), or a function of
`graphmatch.bench.measures`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphmatch.bench.runner import MICROS, Scale

MEMORY = "bytes_per_subscription"


@dataclass(frozen=True, slots=True)
class Run:
    """The measurement of one process: a workload, or one of `MEASURES`.

    suite.toml documents the fields.
    """

    name: str
    section: str
    title: str
    measured: str
    sizes: Mapping[Scale, int]
    compared: Sequence[Sequence[str]]
    key: str = MICROS
    parameters: Mapping[str, Any] = field(default_factory=dict)
    passes: int = 1
    memory: str = ""

    def columns(self) -> list[str]:
        """Return the columns, each once."""
        return list(dict.fromkeys(column for pair in self.compared for column in pair))


def _runs() -> Iterator[Run]:
    said = tomllib.loads(Path(__file__).with_name("suite.toml").read_text(encoding="utf-8"))
    for one in said["run"]:
        yield Run(**one)


RUNS: Mapping[str, Run] = {one.name: one for one in _runs()}
"""The runs by name."""
