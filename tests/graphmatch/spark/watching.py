"""Files for ``graphmatch spark watch``, its output, and its process."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from tests.waiting import wait

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NOON = 1_750_000_000
"""Time of the first file, in seconds."""
SECONDS = 900
"""Time limit of a process, in seconds."""
QUERIES = {
    "price": "SELECT ?p WHERE { ?x <urn:price> ?p }",
    "anything": "ASK { ?x <urn:price> ?price }",
}


class Watched:
    """The folders of one stream."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.incoming, self.asked = folder, folder / "incoming", folder / "asked"
        self.output = folder / "output"
        self.files = 0
        self.queries: dict[str, str] = {}
        for each in (self.incoming, self.asked):
            each.mkdir(parents=True)
        for name, query in QUERIES.items():
            self.ask(name, query)

    def ask(self, name: str, query: str) -> None:
        self.queries[name] = query
        (self.asked / f"{name}.rq").write_text(query)

    def drop(self, name: str, text: str | bytes, hours: float | None = None) -> None:
        """Add a file: each is a minute younger than the one before."""
        self.files += 1
        made = self.folder / "made"
        made.write_bytes(text.encode() if isinstance(text, str) else text)
        time = NOON + 60 * self.files if hours is None else NOON + 3600 * hours
        os.utime(made, (time, time))
        (self.incoming / name).parent.mkdir(exist_ok=True)
        made.rename(self.incoming / name)

    def arguments(self, *more: object) -> list[object]:
        common = ["-s", self.asked, "--output", self.output, "--watermark", "1 day"]
        return ["watch", self.incoming, *common, *more]

    def written(self, spark: SparkSession) -> DataFrame:
        return spark.read.parquet(str(self.output))


def offers(random: Random, ids: Sequence[int]) -> str:
    """Return N-Quads with one offer per graph."""
    lines = []
    for id in ids:
        graph, thing = f"<urn:offer:{id}>", f"<urn:thing:{random.randrange(50)}>"
        lines += [
            f'{thing} <urn:price> "{random.randrange(1000)}" {graph} .',
            f"{thing} <urn:seller> _:s{id} {graph} .",
            f'_:s{id} <urn:name> "{random.randrange(9)}" {graph} .',
        ]
    return "\n".join(lines) + "\n"


@contextmanager
def killed_at_end(
    command: Sequence[object], log: Path, environment: Mapping[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """Start a command as the leader of a process group, which is killed at the end."""
    with log.open("ab") as file:
        process = subprocess.Popen(
            list(map(str, command)),
            env=os.environ | dict(environment),
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and its children: Java, and Python workers."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def wait_for(done: Callable[[], bool], process: subprocess.Popen[bytes]) -> None:
    """Wait until a condition holds or the process has ended."""
    wait(lambda: done() or process.poll() is not None, SECONDS)
