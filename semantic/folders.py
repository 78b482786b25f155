"""The files of a folder; what cannot be looked into is reported."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from semantic.errors import OnProblem, Place, Problem, Severity


def is_folder(path: Path) -> bool:
    """Whether there is such a folder; what cannot be asked about is none."""
    try:
        return path.is_dir()
    except OSError:
        return False  # opening it says why


def files_in(
    name: str | Path, on_problem: OnProblem, extensions: tuple[str, ...] = ()
) -> list[Path]:
    """Return a folder's files, sorted, at any depth; of anything else the path itself.

    Hidden files and folders (``.git``) are left out. A link that leads nowhere is among the
    files, so that opening it fails for all to see; a pipe or a device is reported, for reading it
    may never end. A folder without files is reported: as a
    warning, or, where files of some kind are asked for, as refused.

    Parameters
    ----------
    extensions
        Only files with one of these, where any are given (``.rq``).
    """
    path = Path(name)
    if not is_folder(path):
        return [path]
    told: list[OSError] = []
    files = sorted(_walk(path, told))
    for error in told:
        on_problem(unreadable(str(error.filename), error))
    if extensions:
        files = [file for file in files if file.suffix.lower() in extensions]
    if not files and not told:
        kinds = f"{' or '.join(extensions)} " if extensions else ""
        what, remedy = f"the folder has no {kinds}files", "Give a folder with some in it."
        severity = Severity.REFUSED if extensions else Severity.WARNING
        on_problem(Problem(what, Place(str(path)), remedy, severity))
    return files


def _walk(path: Path, told: list[OSError]) -> list[Path]:
    found = []
    for folder, folders, names in os.walk(path, onerror=told.append):
        folders[:] = [name for name in folders if not name.startswith(".")]
        files = (Path(folder, name) for name in names if not name.startswith("."))
        for file in files:
            if file.is_file() or not file.exists():
                found.append(file)
            else:
                told.append(OSError(errno.EINVAL, "not a regular file", str(file)))
    return found


def unreadable(name: str, error: OSError) -> Problem:
    """Return the problem of a file that the system refuses to read."""
    reason = error.strerror or str(error)
    return Problem(f"cannot be read: {reason}", Place(name), "Check the name and permissions.")
