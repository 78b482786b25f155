"""The data source ``rdf``: RDF of any syntax, and feeds, as a table or a stream of Spark's.

>>> from pyspark.sql import SparkSession
>>> def triples(spark: SparkSession) -> object:
...     register(spark)
...     return spark.read.format("rdf").load("day/*.nq")

Workers read files through Arrow's file systems: local ones, ``s3:``, ``gs:``, ``abfs:``, ``hdfs:``,
and with the prefix ``fsspec+`` any of fsspec's. If rows are triples, N-Quads and N-Triples are read
in ranges of bytes between lines, all else file by file. If only Spark supports a file system, or
has its passwords, ``spark.read.format("binaryFile")`` reads documents for
`graphmatch.spark.matches`, and ``spark.read.text`` lines for `graphmatch.spark.publications`.

Source: Spark's Python Data Source API,
https://spark.apache.org/docs/latest/api/python/tutorial/sql/python_data_source.html.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs
from pyoxigraph import BlankNode, RdfFormat
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from graphmatch.spark.documents import NamedBytes, ReadOptions, n_triples, prefix_of, read_lines
from graphmatch.spark.java import SparkError
from graphmatch.spark.tasks import CORRUPT, ID, TEXTS, Mode, TermTexts
from semantic.errors import InputError, Place, Problem, unknown_choice
from semantic.publication import Publication
from semantic.reading import SplitBy, check_base
from semantic.syntax_detection import format_of_media_type, format_of_name
from semantic.tables import COLUMNS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

_RANGE = 32 << 20
"""The size of a partition of lines, in bytes."""
_FILES = 100_000
"""The maximum number of files that a stream remembers."""
_AT_ONCE = 8192
_PIECE = 1 << 20
_PATTERN = re.compile(r"[*?\[]")
_OPTIONS = {"path", "rows", "syntax", "split_by", "base", "mode"}


def register(spark: SparkSession) -> None:
    """Register ``spark.read.format("rdf")`` and ``spark.readStream.format("rdf")`` in a session.

    The rows are triples: ``publication``, ``subject``, ``predicate``, ``object``, with terms as
    N-Triples. With ``rows`` set to ``publications`` they are whole publications: ``publication``,
    and ``triples`` as N-Triples. The column ``_corrupt`` has the problem of rejected input,
    with place and cause. The others are null then.

    ========== ====================================================================================
    ``path``   a file, a folder or a pattern (``load``)
    ``rows``   ``triples`` or ``publications``
    ``syntax`` media type or extension, if neither name nor content tells
    ``split_by`` how a document is split into publications, as in `Engine.filter`
    ``base``   the IRI that relative IRIs are resolved against
    ``mode``   ``PERMISSIVE``, ``DROPMALFORMED`` or ``FAILFAST``
    ========== ====================================================================================

    A stream reads each file of a folder once, by its name. Write a file elsewhere, or under a name
    that begins with ``.`` or ``_``, and rename it when it is complete.
    """
    spark.dataSource.register(RdfSource)


class RdfSource(DataSource):
    """The data source; see `register`."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return "rdf"

    def schema(self) -> str:
        """Return the names and types of the columns, as Spark's DDL."""
        columns = (ID, TEXTS) if self._reading().whole else COLUMNS
        return ", ".join(f"{name} string" for name in (*columns, CORRUPT))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of a table."""
        return _TableReader(replace(self._reading(), columns=tuple(schema.names)))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return a reader of a stream."""
        return _StreamReader(replace(self._reading(), columns=tuple(schema.names)))

    def _reading(self) -> _SourceFiles:
        options = {name.lower(): value for name, value in self.options.items()}
        if unknown := sorted(set(options) - _OPTIONS):
            remedy = f"There are {', '.join(sorted(_OPTIONS))}."
            raise SparkError(f"no option is called {unknown[0]!r}", "rdf", remedy)
        rows = options.get("rows", "triples")
        if rows not in ("triples", "publications"):
            raise unknown_choice("rows", rows, ["triples", "publications"])
        if "path" not in options:
            raise SparkError("there is no path", "rdf", "Name one: load(path).")
        if (base := options.get("base")) is not None:
            check_base(base)
        if (syntax := options.get("syntax")) is not None:
            format_of_media_type(syntax)
        split_by = SplitBy(options.get("split_by", SplitBy.AUTO))
        mode = Mode(options.get("mode", Mode.PERMISSIVE))
        read_options = ReadOptions(split_by, syntax, base, mode)
        return _SourceFiles(options["path"], read_options, rows == "publications")


@dataclass(frozen=True)
class _Part(InputPartition):
    """The input of one task: a file, or a range of bytes of its lines."""

    path: str
    begin: int = 0
    end: int | None = None


@dataclass(frozen=True, slots=True)
class _SourceFiles:
    """The files of a data source, and the options for reading them.

    Parameters
    ----------
    path
        A file, a folder or a pattern.
    read_options
        How documents are read.
    whole
        Whether a row is a publication.
    columns
        The columns of the result.
    """

    path: str
    read_options: ReadOptions
    whole: bool
    columns: tuple[str, ...] = ()

    def files(self) -> Mapping[str, int]:
        """Return the addresses of files, in order, and their sizes.

        Raises
        ------
        InputError
            If there is no such file or folder.
        """
        pattern = _PATTERN.search(self.path)
        if pattern is None or Path(self.path).exists():
            root = self.path
        else:
            root = self.path[: self.path.rfind("/", 0, pattern.start()) + 1]
        system, own = _system(root or ".")
        try:
            about = system.get_file_info(own)
            if about.type == fs.FileType.File:
                return {root: about.size or 0}
            several = system.get_file_info(fs.FileSelector(own, recursive=True))
        except OSError as error:
            raise _unreadable(self.path, error) from error
        begin = len(own.rstrip("/")) + 1
        wanted = self.path[len(root) :] or "*"
        found = {}
        for one in several:
            name = one.path[begin:]
            hidden = any(part.startswith((".", "_")) for part in name.split("/"))
            if one.type == fs.FileType.File and not hidden and fnmatchcase(name, wanted):
                found[f"{root.rstrip('/')}/{name}" if root else name] = one.size or 0
        return dict(sorted(found.items()))

    def parts(self, files: Mapping[str, int]) -> list[_Part]:
        """Return the inputs of tasks: large files of lines in ranges of bytes, others whole."""
        found = []
        for path, size in files.items():
            if self._is_lines(path) and size > _RANGE and not self.whole:
                found += [
                    _Part(path, begin, min(begin + _RANGE, size))
                    for begin in range(0, size, _RANGE)
                ]
            else:
                found.append(_Part(path))
        return found

    def _is_lines(self, path: str) -> bool:
        if self.read_options.split_by not in (SplitBy.AUTO, SplitBy.GRAPH):
            return False
        name = self.read_options.format
        syntax = format_of_name(path) if name is None else format_of_media_type(name)
        return syntax in (RdfFormat.N_QUADS, RdfFormat.N_TRIPLES)

    def read(self, part: _Part) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part in batches, rejected input last."""
        problems: list[Problem] = []
        rows: list[tuple[str | None, ...]] = []
        names = _PartTermTexts(part)
        for publication in self._publications(part, problems):
            if self.whole:
                rows.append((publication.id, n_triples(publication), None))
            else:
                said = (map(names.said, triple) for triple in publication.given)
                rows += ((publication.id, *terms, None) for terms in said)
            while len(rows) >= _AT_ONCE:
                yield self._batch(rows[:_AT_ONCE])
                del rows[:_AT_ONCE]
        refused = (self.read_options.refused(problem) for problem in problems)
        nothing = (None,) * (2 if self.whole else len(COLUMNS))
        rows += ((*nothing, one) for one in refused if one is not None)
        yield self._batch(rows)

    def _batch(self, rows: Sequence[tuple[str | None, ...]]) -> pa.RecordBatch:
        names = (ID, TEXTS, CORRUPT) if self.whole else (*COLUMNS, CORRUPT)
        columns = {
            name: pa.array([row[names.index(name)] for row in rows], pa.string())
            for name in self.columns
        }
        return pa.RecordBatch.from_pydict(columns)

    def _publications(self, part: _Part, problems: list[Problem]) -> Iterator[Publication]:
        system, own = _system(part.path)
        try:
            with system.open_input_file(own) as file:
                if part.end is None:
                    data = NamedBytes(bytes(file.read()), part.path)
                    yield from self.read_options.read(data, None, problems.append)
                    return
                begin, end = _line_start(file, part.begin), _line_start(file, part.end)
                file.seek(begin)
                data_ = bytes(file.read(end - begin))
                found: list[Problem] = []
                yield from read_lines(data_, part.path, found.append)
                before = _lines_before(file, begin) if found else 0
        except OSError as error:
            problems.append(_unreadable(part.path, error).problem)
            return
        for problem in found:
            line = problem.where.line
            line = None if line is None else line + before
            problems.append(replace(problem, where=replace(problem.where, line=line)))


class _PartTermTexts(TermTexts):
    """The texts of terms of a part: the same in every run; blank nodes differ between files."""

    def __init__(self, part: _Part) -> None:
        self._has_names = part.end is not None  # `read_lines` has set them
        self._prefix = f"_:{prefix_of(part.path)}n"
        self._names: dict[BlankNode, str] = {}

    def _called(self, node: BlankNode) -> str:
        if self._has_names:
            return str(node)
        return self._names.setdefault(node, f"{self._prefix}{len(self._names)}")


def _system(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of an address, and the file's path in it."""
    if path.startswith("file:"):
        path = "/" + path.removeprefix("file:").lstrip("/")
    if ":" not in path:
        path = str(Path(path).absolute())
    try:
        return fs.FileSystem.from_uri(re.sub("^s3[an]:", "s3:", path))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Exception) -> InputError:
    what = f"cannot be read: {error}"
    return InputError(Problem(what, Place(path), "Check the address and the permissions."))


def _line_start(file: IO[bytes] | pa.NativeFile, place: int) -> int:
    """Return the start of the first line that begins at a place or after it."""
    if place == 0:
        return 0
    place -= 1
    file.seek(place)
    while piece := bytes(file.read(_PIECE)):
        if (found := piece.find(b"\n")) >= 0:
            return place + found + 1
        place += len(piece)
    return place


def _lines_before(file: IO[bytes] | pa.NativeFile, end: int) -> int:
    """Return the number of lines before a place."""
    file.seek(0)
    count = 0
    while end > 0 and (piece := bytes(file.read(min(end, _PIECE)))):
        count += piece.count(b"\n")
        end -= len(piece)
    return count


class _TableReader(DataSourceReader):
    """Reads all files once, for ``spark.read``."""

    def __init__(self, reading: _SourceFiles) -> None:
        self._reading = reading

    def partitions(self) -> Sequence[InputPartition]:
        """Return the inputs of tasks; raise `InputError` if a pattern has no files."""
        files = self._reading.files()
        if not files and _PATTERN.search(path := self._reading.path) and not Path(path).exists():
            what, remedy = "there are no such files", "Check the pattern."
            raise InputError(Problem(what, Place(path), remedy))
        return self._reading.parts(files)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part in batches."""
        assert isinstance(partition, _Part)
        return self._reading.read(partition)


class _StreamReader(DataSourceStreamReader):
    """Reads files as they appear, for ``spark.readStream``.

    An offset maps the names of files to their sizes.
    """

    def __init__(self, reading: _SourceFiles) -> None:
        self._reading = reading

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the offset before any file."""
        return {"files": {}}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: ARG002, N802
        """Return the offset after all present files; the limit is not used.

        Raise `InputError` if there are too many for a stream.
        """
        files = {**start["files"], **self._reading.files()}
        if len(files) > _FILES:
            what = f"there are more than {_FILES:,} files"
            remedy = 'Use spark.readStream.format("binaryFile") and matches(engine, document=…).'
            raise InputError(Problem(what, Place(self._reading.path), remedy))
        return {"files": files}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return the inputs of tasks for the files between two offsets."""
        new = {path: size for path, size in end["files"].items() if path not in start["files"]}
        return self._reading.parts(new)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part in batches."""
        assert isinstance(partition, _Part)
        return self._reading.read(partition)
