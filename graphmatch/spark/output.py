"""Where a stream writes: one folder of Parquet a batch, each written once however often it is run.

A batch is written beside its place and then put there, so a folder ``batch=7`` is whole, and a
batch that is run again replaces what it wrote. The folders of output and checkpoint say whose they
are: a checkpoint that goes with another output, or with other options, would lose publications or
give them twice.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4

from graphmatch.spark.java import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MATCHES, REFUSED = "matches", "refused"
_MARK = "graphmatch-watch.json"


@dataclass(frozen=True, slots=True)
class Output:
    """The folder that matches are written to, and what was refused.

    Parameters
    ----------
    folder
        Its name.
    lock
        Held while a stream runs, so that no other one has the same checkpoint.
    """

    folder: Path
    lock: IO[bytes]

    def close(self) -> None:
        """Let another stream have it."""
        self.lock.close()

    def write(self, batch: int, kind: str, rows: DataFrame) -> None:
        """Write the rows of one kind of a batch; what was there is replaced."""
        made = self.folder / f".{kind}-{batch}-{uuid4().hex}"
        rows.write.mode("overwrite").parquet(f"file://{made.absolute()}")
        self.forget(batch, kind)
        self._place(batch, kind).parent.mkdir(exist_ok=True)
        made.rename(self._place(batch, kind))

    def forget(self, batch: int, kind: str) -> None:
        """Remove what a batch wrote when it was run before."""
        place = self._place(batch, kind)
        if place.exists():
            shutil.rmtree(place)

    def _place(self, batch: int, kind: str) -> Path:
        return self.folder / kind / f"batch={batch}"


def claimed(output: Path, checkpoint: Path, options: Mapping[str, str]) -> Output:
    """Make the folders of a stream, or find them as they were left.

    Parameters
    ----------
    output, checkpoint
        The one for results, and the one that says how far the stream came.
    options
        What has to stay as it is from one run to the next.

    Raises
    ------
    SparkError
        When something else is there, when the two are not of one stream, or an option is another.
    """
    try:
        written, begun = _mark(output, checkpoint), _mark(checkpoint, output)
        if written and not begun and (output / MATCHES).exists():
            what = f"its checkpoint is not {checkpoint}"
            remedy = "Name the one that it was written with, or another output."
            raise SparkError(what, str(output), remedy)
        if written and begun and written["stream"] != begun["stream"]:
            what = f"it is the checkpoint of another output than {output}"
            raise SparkError(what, str(checkpoint), "Name the two that go together.")
        for name, value in options.items():
            if begun and begun["options"].get(name) != value:
                what = f"its stream has the {name} {begun['options'].get(name)!r}, not {value!r}"
                remedy = "Go on with that, or name another checkpoint and another output."
                raise SparkError(what, str(checkpoint), remedy)
        lock = _locked(checkpoint)
        stream = (begun or written or {"stream": uuid4().hex})["stream"]
        _write(output, {"stream": stream})
        _write(checkpoint, {"stream": stream, "options": dict(options)})
        for left in output.glob(".*-*"):  # by a batch that was killed
            shutil.rmtree(left, ignore_errors=True)
    except OSError as error:
        what = f"the output cannot be written: {error.strerror or error}"
        remedy = "Check the name, permissions and free space."
        raise SparkError(what, str(error.filename or output), remedy) from error
    return Output(output, lock)


def _mark(folder: Path, other: Path) -> dict[str, Any] | None:
    """Return what a folder says whose it is; ``None`` for one that is not there, or empty."""
    mark = folder / _MARK
    if mark.exists():
        found: dict[str, Any] = json.loads(mark.read_text(encoding="utf-8"))
        return found
    if folder.exists() and any(path.absolute() != other.absolute() for path in _inside(folder)):
        what = "is there already, and `graphmatch spark watch` did not make it"
        raise SparkError(what, str(folder), "Name a folder that is not there yet.")
    return None


def _locked(checkpoint: Path) -> IO[bytes]:
    """Lock a checkpoint, as long as the file is open: the system unlocks it after a kill."""
    checkpoint.mkdir(parents=True, exist_ok=True)
    lock = (checkpoint / f".{_MARK}.lock").open("ab")
    if sys.platform != "win32":
        import fcntl

        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            what, remedy = "another stream runs with it", "Wait for its end, or stop it."
            raise SparkError(what, str(checkpoint), remedy) from error
    return lock


def _inside(folder: Path) -> list[Path]:
    """Return what is in a folder, or the file itself; half a mark is nothing."""
    if not folder.is_dir():
        return [folder]
    return [path for path in folder.iterdir() if not path.name.startswith(f".{_MARK}")]


def _write(folder: Path, said: Mapping[str, object]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / f".{_MARK}-{uuid4().hex}"
    made.write_text(json.dumps(said), encoding="utf-8")
    made.rename(folder / _MARK)
