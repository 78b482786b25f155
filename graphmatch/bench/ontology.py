"""``graphmatch bench ontology``: generated taxonomies, and real ontologies beside other libraries.

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
from graphmatch.bench.taxonomies import FLAVOURS, generate, save
from graphmatch.command.console import CommandConsole, styled

CLASSES = 1_000_000
"""Of how many classes the generated taxonomies are, if nothing else is asked for."""

REPEATS = 3

_GENERATED = (
    ("built in s", "built_s"),
    ("built with MB", "built_mb"),
    ("is_a, random, ns", "is_a_random_ns"),
    ("is_a, half true, ns", "is_a_half_true_ns"),
    ("is_a, one call, µs", "is_a_us"),
    ("ancestors, µs", "ancestors_us"),
    ("descendants, µs", "descendants_us"),
    ("lowest common, µs", "lowest_common_ancestors_us"),
)
_LOADED = (
    ("ontology", "ontology"),
    ("by", "by"),
    ("triples", "triples"),
    ("load in s", "load_s"),
    ("times ours", "ratio"),
    ("peak MB", "peak_mb"),
    ("of it before, MB", "before_mb"),
)


def run(files: Sequence[Path], classes: int = CLASSES, *, json: bool = False) -> int:
    """Measure, print a table or one JSON object, and return the exit status.

    Parameters
    ----------
    files
        Ontologies; several files of one are joined by ``+``.
    classes
        How many classes the generated taxonomies have; 0 leaves them out.
    """
    out = CommandConsole()
    with TemporaryDirectory() as name:
        folder = Path(name)
        report: dict[str, object] = {}
        taxonomies = list(_taxonomies(classes, folder)) if classes else []
        if classes:
            report["compiling_s"] = _compiling(folder)
        loaded = [row for file in files for row in _ontology(_group(file), folder)]
    report |= {"taxonomies": taxonomies, "ontologies": loaded}
    if json:
        out.write_json(report)
    else:
        if taxonomies:
            out.print(_across(f"{classes:,} classes", _GENERATED, taxonomies))
            out.print(f"compiling, once after installing: {report['compiling_s']:.1f} s")
        if loaded:
            out.print(_table("real ontologies", _LOADED, loaded))
        for row in (*taxonomies, *loaded):
            if "failed" in row:
                what = row.get("by", row.get("flavour"))
                out.print(styled((f"{what} failed: {row['failed']}", "red")))
    return 2 if any("failed" in row for row in (*taxonomies, *loaded)) else 0


def _taxonomies(classes: int, folder: Path) -> Iterator[Row]:
    in_own_process("graphmatch.bench.compiling")  # so that no row below has to compile
    for flavour in FLAVOURS:
        save(generate(classes, flavour), folder)
        for source in ("arrays", "pairs"):
            rows = [
                in_own_process("graphmatch.bench.generated", str(folder), flavour, source)
                for _ in range(REPEATS)
            ]
            yield {"flavour": flavour, "from": source} | medians(rows)


def _compiling(folder: Path) -> float:
    empty = {"NUMBA_CACHE_DIR": str(folder / "numba")}
    row = in_own_process("graphmatch.bench.compiling", environment=empty)
    return float(row.get("compiling_s", "nan"))


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
    cache = str(folder / "cache")
    rows: dict[str, list[Row]] = {loader: [] for loader in LOADERS}
    for repeat in range(REPEATS + 1):
        for loader, several in rows.items():
            names = map(str, readable.get(loader, files))
            row = in_own_process("graphmatch.bench.loading", loader, cache, *names)
            if repeat:
                several.append(row)
    found = {loader: medians(several) for loader, several in rows.items()}
    ours = found[LOADERS[0]].get("load_s")
    for loader, row in found.items():
        ratio = row["load_s"] / ours if ours and "load_s" in row else None
        yield {"ontology": "+".join(f.name for f in files), "by": loader, **row, "ratio": ratio}


def _across(title: str, measures: Sequence[tuple[str, str]], rows: Sequence[Row]) -> Table:
    """Return a table with a column for each row: there are few, and many measures."""
    table = Table("", *(f"{row['flavour']}, {row['from']}" for row in rows), title=title)
    table.title_justify = "left"
    for heading, name in measures:
        table.add_row(heading, *(_cell(row.get(name)) for row in rows))
    return table


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
