"""Arrays and documents in a folder, from which they are opened without being read.

A folder has one ``.npy`` file an array, one ``.json`` file a document, and a list of all of them,
which is written last. It is written beside its place and then put there, so whoever opens it
finds the old one or the new one, whole.

Cost: arrays are mapped into memory, and what is changed there stays with whoever changes it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from semantic.errors import GraphMatchError, Place, Problem

Array: TypeAlias = NDArray[Any]

_LIST = "saved.json"
_KIND, _VERSION = "graphmatch subscriptions", 2
_MAPPED = 1 << 16
"""Smaller files, in bytes, are read."""
_AGAIN = "Save it again, and name the folder that was saved to."


class SavedError(GraphMatchError):
    """A folder that holds nothing saved, or something damaged, or cannot be written."""

    def __init__(self, path: Path, what: str, remedy: str = _AGAIN) -> None:
        super().__init__(Problem(what, Place(str(path)), remedy))


def write(path: Path, arrays: Mapping[str, Array], documents: Mapping[str, object]) -> None:
    """Save arrays and documents to a folder; one that was saved there before is replaced.

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
            _write(made, arrays, documents)
            if path.exists():
                shutil.rmtree(path)
            made.rename(path)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        raise SavedError(path, what, "Check the name, permissions and free space.") from error


def _write(made: Path, arrays: Mapping[str, Array], documents: Mapping[str, object]) -> None:
    for name, array in arrays.items():
        np.save(made / f"{name}.npy", array, allow_pickle=False)
    for name, document in documents.items():
        (made / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")
    listed = {
        "kind": _KIND,
        "version": _VERSION,
        "arrays": {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()},
        "documents": list(documents),
    }
    made.chmod(0o755)
    (made / _LIST).write_text(json.dumps(listed), encoding="utf-8")


def read(path: Path) -> tuple[dict[str, Array], dict[str, Any]]:
    """Return the arrays and documents that were saved to a folder.

    Raises
    ------
    SavedError
        When nothing was saved there, by this version, or it is damaged.
    """
    try:
        listed = json.loads((path / _LIST).read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SavedError(path, "nothing was saved there") from error
    except (OSError, ValueError) as error:
        raise SavedError(path, f"cannot be read: {error}") from error
    if not isinstance(listed, dict) or listed.get("kind") != _KIND:
        raise SavedError(path, "nothing was saved there")
    if listed.get("version") != _VERSION:
        raise SavedError(path, f"saved by another version: {listed.get('version')}")
    try:
        arrays = {name: _array(path, name, *told) for name, told in listed["arrays"].items()}
        documents = {
            name: json.loads((path / f"{name}.json").read_text(encoding="utf-8"))
            for name in listed["documents"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SavedError(path, f"damaged: {error}") from error
    return arrays, documents


def _array(path: Path, name: str, dtype: str, shape: list[int]) -> Array:
    file = path / f"{name}.npy"
    if file.stat().st_size > _MAPPED:
        array = np.asarray(np.load(file, mmap_mode="c", allow_pickle=False))
    else:
        array = np.load(file, allow_pickle=False)
    if array.dtype.str != dtype or list(array.shape) != shape:
        raise ValueError(f"{file.name} is not the array that was saved")
    return array
