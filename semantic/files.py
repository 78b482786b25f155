"""Find documents in files, folders, pipes and memory, and stream their bytes."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import copymode
from stat import S_ISDIR, S_ISREG
from typing import BinaryIO, Protocol, runtime_checkable

from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.limits import Limits

STDIN = "<stdin>"
"""Name of standard input in messages."""

_TEXT = re.compile(r"[^\n]*\n|\s*(?:[<{\[#]|@?(?:prefix|base)\s)", re.IGNORECASE)
"""Beginnings of documents, which file names do not have."""

PIECE = 1 << 16
"""Maximum number of bytes in one read."""


@runtime_checkable
class Readable(Protocol):
    """A binary stream: any object with a method `read` that returns bytes."""

    def read(self, size: int = -1, /) -> bytes:
        """Return the next bytes (at most `size`, all if it is -1), or no bytes at the end."""


def may_wait(stream: Readable) -> bool:
    """Return whether a read may block: true except for files and bytes in memory.

    Examples
    --------
    >>> may_wait(io.BytesIO(b"abc"))
    False
    """
    if isinstance(stream, io.BytesIO):
        return False
    try:
        number = stream.fileno() if isinstance(stream, io.IOBase) else -1
        return number < 0 or not S_ISREG(os.fstat(number).st_mode)
    # The stream has no file descriptor, or is closed.
    except (OSError, AttributeError, ValueError):
        return True


def pieces(stream: Readable) -> Iterator[bytes]:
    """Yield a stream's bytes; from a pipe, yield available bytes without waiting for more.

    Each piece has at most `PIECE` bytes. Raise `TypeError` if the stream is in text mode.

    Examples
    --------
    >>> list(pieces(io.BytesIO(b"abc")))
    [b'abc']
    """
    if isinstance(stream, io.TextIOBase):
        raise TypeError(
            "a file in text mode cannot be read. Open it in binary mode: open(name, 'rb')."
        )
    read = stream.read1 if isinstance(stream, io.BufferedIOBase) else stream.read
    while piece := read(PIECE):
        yield piece


class Pieces(io.RawIOBase):
    """A binary stream of the bytes that an iterator yields in pieces.

    Examples
    --------
    >>> Pieces(iter([b"ab", b"c"])).read()
    b'abc'
    """

    def __init__(self, pieces: Iterator[bytes], name: str = "<stream>") -> None:
        self.name = name
        self._pieces = pieces
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        """Return true, because the stream is readable."""
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        """Copy bytes of the current piece (if empty, the next) to `buffer`; return their number.

        The number is 0 at the end.
        """
        if not self._ready:
            self._ready = memoryview(next(self._pieces, b""))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


def read_whole(data: Iterable[bytes], source: str, limits: Limits) -> bytes:
    """Join the pieces of a document that must be held in memory; return its bytes.

    Raise `InputError` if it is larger than ``limits.document_bytes``.
    """
    held: list[bytes] = []
    size = 0
    for piece in data:
        held.append(piece)
        size += len(piece)
        if size > limits.document_bytes:
            what = f"larger than {limits.document_bytes:,} bytes"
            remedy = (
                "Raise the limit `document_bytes`, or give the data as N-Quads, which is streamed."
            )
            raise InputError(Problem(what, Place(source), remedy))
    return b"".join(held)


def documents(name: str | Path, on_problem: OnProblem) -> Iterator[tuple[str, Readable]]:
    """Yield name and open stream of a file, of each file in a folder, or of stdin (``"-"``).

    A missing or unreadable file is reported and skipped. A file is closed when the next one is
    requested.
    """
    if str(name) == "-":
        if sys.stdin is None:
            what, remedy = "standard input is closed", "Pipe a document into it."
            on_problem(Problem(what, Place(STDIN), remedy))
        else:
            yield STDIN, sys.stdin.buffer
        return
    if (problem := missing(name)) is not None:
        on_problem(problem)
        return
    for path in files_in(name, on_problem):
        try:
            stream = path.open("rb")
        except OSError as error:
            on_problem(unreadable(str(path), error))
            continue
        with stream:
            yield str(path), stream


def missing(name: str | Path) -> Problem | None:
    """Return the problem if a file or folder cannot be found; return ``None`` if it exists.

    If the name looks like the content of a document, the problem says so.
    """
    text = str(name)
    try:
        Path(name).stat()
    except (OSError, ValueError) as error:
        if isinstance(name, str) and _TEXT.match(text):
            shown = text if len(text) <= 40 else f"{text[:39]}…"
            what = f"{shown!r} looks like the content of a document, not like a file name"
            return Problem(what, Place("<str>"), "Give bytes: text.encode().")
        own = error if isinstance(error, OSError) else OSError(errno.EINVAL, str(error))
        return unreadable(text, own)
    return None


def is_folder(path: Path) -> bool:
    """Return whether a folder exists; return false if the system refuses access."""
    try:
        return path.is_dir()
    except OSError:
        return False  # Opening it reports the error.


def files_in(
    name: str | Path, on_problem: OnProblem, extensions: tuple[str, ...] = ()
) -> list[Path]:
    """Return a folder's files at any depth, sorted; for other paths, return the path itself.

    Hidden files and folders (``.git``) are left out. If `extensions` (``.rq``) are given, other
    files are left out, too. Broken links are returned, so that opening them fails visibly. Pipes
    and devices are reported, because reading them may never end. A folder without files is
    reported: as refused if `extensions` are given, otherwise as a warning.
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
        what, remedy = f"the folder has no {kinds}files", "Give a folder that has some."
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


def is_special(path: Path) -> bool:
    """Return whether the path is a pipe or a device, which a file must not replace."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return False  # Opening it reports the error.
    return not S_ISREG(mode) and not S_ISDIR(mode)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a temporary file, open for writing; it replaces `path` if the block ends without error.

    The new file gets the permissions of the old one. A link stays a link: its target is replaced. A
    pipe or a device is written directly.
    """
    if is_special(path):
        with path.open("wb") as file:
            yield file
        return
    path = Path(os.path.realpath(path))
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.unlink(missing_ok=True)  # A killed process with the same number may have left it.
        with part.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            copymode(path, part)
        part.replace(path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def unreadable(name: str, error: OSError) -> Problem:
    """Return the problem of a file that the system refuses to read; `error` gives the reason."""
    reason = error.strerror or str(error)
    return Problem(f"cannot be read: {reason}", Place(name), "Check the name and permissions.")


def decoded(data: bytes, source: str) -> str:
    """Return the text of a file in UTF-8; raise `InputError` with the line and column if it is not.

    `source` is the name of the file for the message.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = error.object[: error.start].decode().split("\n")
        where = Place(source, len(before), len(before[-1]) + 1)
        raise InputError(Problem("not UTF-8", where, "Save the file as UTF-8.")) from error


def plain(id: str) -> str:
    """Return an id as valid Unicode: lone surrogates (from file names) become ``?``."""
    return id if id.isascii() else id.encode("utf-8", "replace").decode()
