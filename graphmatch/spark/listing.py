"""What there is to read: files and folders, cut into units and shared out to tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from sys import maxsize

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyoxigraph import RdfFormat

from graphmatch.spark.units import How, Kind, Unit, system
from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.files import files_in
from semantic.reading import Cut
from semantic.syntax import format_of_media_type, format_of_name

UNIT_BYTES = 16 << 20
"""A unit of a file that is read in parts has about so many bytes."""
_SMALLEST = 1 << 20
_EACH = 12
"""So many tasks there are for each core, if there is enough to read, so that none waits long for
the last one."""
_SMALL = 1 << 18
"""Less is not worth a task."""
_MAGIC = b"PAR1"


def units(paths: Iterable[str], how: How, on_problem: OnProblem, cores: int = 1) -> list[Unit]:
    """Return what is to be read, file by file.

    Parameters
    ----------
    paths
        Files and folders: names, or addresses that Arrow knows (``hdfs:``, ``s3:``, ``gs:``).
    on_problem
        Called with each file that cannot be read, and with each folder that is empty.
    cores
        How many there are to read with.
    """
    files = [file for path in paths for file in _files(path, on_problem)]
    size = sum(size for _, size in files)
    part = max(min(size // (_EACH * cores), UNIT_BYTES), _SMALLEST)
    found: list[Unit] = []
    for path, bytes_ in files:
        try:
            found += _of_file(path, bytes_, how, part)
        except InputError as error:
            on_problem(error.problem)
        except (OSError, pa.ArrowInvalid) as error:
            what = f"cannot be read: {error}"
            on_problem(Problem(what, Place(path), "Check the name, permissions and content."))
    return found


def shared_out(units: Sequence[Unit], cores: int) -> list[list[Unit]]:
    """Share units out to tasks, in their order, about as many bytes to each."""
    share = max(sum(unit.size for unit in units) // (_EACH * max(cores, 1)), _SMALL)
    tasks: list[list[Unit]] = []
    taken = share
    for unit in units:
        if taken >= share:
            tasks.append([])
            taken = 0
        tasks[-1].append(unit)
        taken += max(unit.size, 1)
    return tasks


def whole(path: str, size: int, how: How) -> Iterator[Unit]:
    """Yield the one unit of a file that is read at once: no other has parts of its publications.

    A table without rows has none.

    Raises
    ------
    InputError
        When the file cannot be looked into.
    """
    try:
        yield from _of_file(path, size, how, maxsize)
    except (OSError, pa.ArrowInvalid) as error:
        what = f"cannot be read: {error}"
        raise InputError(Problem(what, Place(path), "Check the file.")) from error


def _files(path: str, on_problem: OnProblem) -> Iterator[tuple[str, int]]:
    """Yield files and their sizes; what Spark writes beside data (``_SUCCESS``) is left out."""
    if "://" not in path:
        for file in files_in(path, on_problem):
            if str(file) == path or not file.name.startswith("_"):
                name = str(file.absolute())
                yield name, file.stat().st_size if file.exists() else 0
        return
    try:
        system_, own = system(path)
        info = system_.get_file_info(own)
        several = (
            system_.get_file_info(fs.FileSelector(own, recursive=True))
            if info.type == fs.FileType.Directory
            else [info]
        )
    except InputError as error:
        on_problem(error.problem)
        return
    except OSError as error:
        on_problem(Problem(f"cannot be read: {error}", Place(path), "Check the address."))
        return
    root = path.removesuffix(own)
    found = [one for one in several if one.type != fs.FileType.Directory]
    named = [one for one in found if not one.base_name.startswith(("_", "."))]
    if not named:
        what, remedy = "the folder has no files", "Give a folder with some in it."
        on_problem(Problem(what, Place(path), remedy, Severity.WARNING))
    for one in sorted(named, key=lambda one: one.path):
        yield root + one.path, one.size or 0


def _of_file(path: str, size: int, how: How, part: int) -> Iterator[Unit]:
    if _is_table(path, how):
        yield from _tables(path, part)
    elif _is_lines(path, how):
        for begin in range(0, max(size, 1), part):
            end = min(begin + part, size)
            yield Unit(Kind.LINES, path, end - begin, begin, end)
    else:
        yield Unit(Kind.DOCUMENT, path, size)


def _is_table(path: str, how: How) -> bool:
    if how.format is not None:
        return how.format == "parquet"
    system_, own = system(path)
    if path.lower().endswith((".parquet", ".pq")):
        return True
    with system_.open_input_stream(own) as file:
        return bytes(file.read(len(_MAGIC))) == _MAGIC


def _is_lines(path: str, how: How) -> bool:
    """Whether a file may be cut anywhere between its lines: with other cuts it is read whole."""
    if how.cut not in (Cut.AUTO, Cut.GRAPH):
        return False
    named = format_of_name(path) if how.format is None else format_of_media_type(how.format)
    return named == RdfFormat.N_QUADS


def _tables(path: str, part: int) -> Iterator[Unit]:
    system_, own = system(path)
    with pq.ParquetFile(own, filesystem=system_) as file:
        metadata = file.metadata
    begin = first = size = rows = 0
    for group in range(metadata.num_row_groups):
        about = metadata.row_group(group)
        size += about.total_byte_size
        rows += about.num_rows
        if size >= part or group == metadata.num_row_groups - 1:
            yield Unit(Kind.TABLE, path, size, begin, group + 1, first)
            begin, first, size, rows = group + 1, first + rows, 0, 0
