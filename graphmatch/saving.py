"""Subscriptions saved to a folder, and opened again.

A folder has the subscriptions, one a line of JSON, and a list of what is there, with a checksum.
It is written beside its place and then put there, so whoever opens it finds the old one or the new
one, whole.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from tempfile import mkdtemp

from semantic.errors import GraphMatchError, Place, Problem

_LIST, _ROWS = "saved.json", "subscriptions.jsonl"
_KIND, _VERSION = "graphmatch subscriptions", 3
_AGAIN = "Save it again, and name the folder that was saved to."


class SavedError(GraphMatchError):
    """A folder that holds nothing saved, or something damaged, or cannot be written."""

    def __init__(self, path: Path, what: str, remedy: str = _AGAIN) -> None:
        super().__init__(Problem(what, Place(str(path)), remedy))


def save(path: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    """Save subscriptions to a folder; one that was saved there before is replaced.

    Parameters
    ----------
    rows
        Ids, texts and comments.

    Raises
    ------
    SavedError
        When something else is there, or the folder cannot be written.
    """
    if path.exists() and not (path / _LIST).is_file():
        what = "is there already, and nothing was saved to it"
        raise SavedError(path, what, "Name a folder that is not there yet.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(prefix=f".{path.name}-", dir=path.parent))
        try:
            _write(made, rows)
            if path.exists():
                shutil.rmtree(path)
            made.rename(path)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        remedy = "Check the name, the permissions and the room on the disk."
        raise SavedError(path, f"cannot be written: {error.strerror or error}", remedy) from error


def _write(folder: Path, rows: Iterable[tuple[str, str, str]]) -> None:
    digest, count = blake2b(digest_size=16), 0
    with (folder / _ROWS).open("wb") as file:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            file.write(line)
            count += 1
    listed = {"kind": _KIND, "version": _VERSION, "count": count, "digest": digest.hexdigest()}
    (folder / _LIST).write_text(json.dumps(listed), encoding="utf-8")


def opened(path: Path) -> list[tuple[str, str, str]]:
    """Return what was saved to a folder: ids, texts and comments.

    Raises
    ------
    SavedError
        When nothing was saved there, or it is damaged.
    """
    if not (path / _LIST).is_file():
        raise SavedError(path, "nothing was saved there")
    try:
        listed = json.loads((path / _LIST).read_text(encoding="utf-8"))
        if not isinstance(listed, dict) or listed.get("kind") != _KIND:
            raise SavedError(path, "nothing was saved there")
        if listed.get("version") != _VERSION:
            why = f"its format is {listed.get('version')}"
            raise SavedError(path, f"saved by another version: {why}")
        data = (path / _ROWS).read_bytes()
        if blake2b(data, digest_size=16).hexdigest() != listed.get("digest"):
            why = "its checksum is another one"
            raise SavedError(path, f"damaged: {why}")
        return [(id, text, comment) for id, text, comment in map(json.loads, data.splitlines())]
    except OSError as error:
        raise SavedError(path, f"cannot be read: {error.strerror or error}") from error
    except (TypeError, ValueError) as error:
        raise SavedError(path, f"damaged: {error}") from error
