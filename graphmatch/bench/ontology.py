"""``graphmatch bench ontology``: real ontologies, loaded beside other libraries.

Every row comes from processes of its own (`graphmatch.bench.process`), `REPEATS` of them in turns,
and is the median of them. An argument that joins files by ``+`` is one ontology of
several files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from rich.table import Table

from graphmatch.bench.loading import LOADERS, as_triples
from graphmatch.bench.process import Row, in_own_process, medians
from graphmatch.command.console import CommandConsole, styled
from semantic.errors import InputError, Place, Problem

REPEATS = 3

_LOADED = (
    ("ontology", "ontology"),
    ("by", "by"),
    ("triples", "triples"),
    ("load in s", "load_s"),
    ("times ours", "ratio"),
    ("peak MB", "peak_mb"),
    ("of it before, MB", "before_mb"),
)


def run(files: Sequence[Path], *, json: bool = False) -> int:
    """Measure, print a table or one JSON object, and return the exit status.

    Parameters
    ----------
    files
        Ontologies; several files of one are joined by ``+``.

    Raises
    ------
    InputError
        When there is none.
    """
    if not files:
        remedy = "Name ontology files, those of one ontology joined by +."
        raise InputError(Problem("there is nothing to measure", Place("bench ontology"), remedy))
    out = CommandConsole()
    with TemporaryDirectory() as name:
        rows = [row for file in files for row in _ontology(_group(file), Path(name))]
    if json:
        out.write_json({"ontologies": rows})
    else:
        out.print(_table("real ontologies", _LOADED, rows))
        for row in rows:
            if "failed" in row:
                out.print(styled((f"{row['by']} failed: {row['failed']}", "red")))
    return 2 if any("failed" in row for row in rows) else 0


def _group(file: Path) -> list[Path]:
    """Return the files that an argument names."""
    if file.exists() or "+" not in str(file):
        return [file]
    return [Path(part) for part in str(file).split("+")]


def _ontology(files: list[Path], folder: Path) -> Iterator[Row]:
    """Load one ontology by each library in turn; the first rows are discarded: they fill caches."""
    readable = {}
    with suppress(OSError, SyntaxError):  # what cannot be read fails below, for each library
        readable["owlready2"] = as_triples(files, folder)
    rows: dict[str, list[Row]] = {loader: [] for loader in LOADERS}
    for repeat in range(REPEATS + 1):
        for loader, several in rows.items():
            names = map(str, readable.get(loader, files))
            row = in_own_process("graphmatch.bench.loading", loader, *names)
            if repeat:
                several.append(row)
    found = {loader: medians(several) for loader, several in rows.items()}
    ours = found[LOADERS[0]].get("load_s")
    for loader, row in found.items():
        ratio = row["load_s"] / ours if ours and "load_s" in row else None
        yield {"ontology": "+".join(f.name for f in files), "by": loader, **row, "ratio": ratio}


def _table(title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Row]) -> Table:
    table = Table(*(heading for heading, _ in columns), title=title, title_justify="left")
    for row in rows:
        first, _, more = str(row["ontology"]).partition("+")
        short = f"{first} +{more.count('+') + 1}" if more else first
        table.add_row(short, *(_cell(row.get(name)) for _, name in columns[1:]))
    return table


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)
