"""``graphmatch bench ontology``: the loading of real ontologies, compared with other libraries.

Every row is the median of `REPEATS` processes (`graphmatch.bench.process`), run in turns. An
argument that joins files by ``+`` is one ontology of several files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter

from graphmatch.bench.process import Row, in_own_process, peak_megabytes
from graphmatch.console import CommandConsole, styled
from semantic.errors import InputError, Place, Problem

REPEATS = 3
_COLUMNS = {name: name for name in ("ontology", "by", "triples")}
_COLUMNS |= {"load_s": "load in s", "ratio": "times ours", "peak_mb": "peak MB"}
_COLUMNS["before_mb"] = "of it before, MB"


def run(files: Sequence[Path], *, json: bool = False) -> int:
    """Measure, print, and return the exit status; raise `InputError` if no file is named."""
    if not files:
        remedy = "Name ontology files, those of one ontology joined by +."
        raise InputError(Problem("there is nothing to measure", Place("bench ontology"), remedy))
    out = CommandConsole()
    with TemporaryDirectory() as name:
        rows = [row for file in files for row in _ontology(file, Path(name))]
    failed = [row for row in rows if "failed" in row]
    if json:
        out.write_json({"ontologies": rows})
    else:
        from graphmatch.bench import report

        out.print(report.table(rows, _COLUMNS))
        for row in failed:
            out.print(styled((f"{row['by']} failed: {row['failed']}", "red")))
    return 2 if failed else 0


def _ontology(file: Path, folder: Path) -> Iterator[Row]:
    """Load one ontology by each library in turn; discard the first rows, which fill caches."""
    files = [file] if file.exists() else [Path(part) for part in str(file).split("+")]
    readable = dict.fromkeys(LOADERS, files)
    with suppress(OSError, SyntaxError):  # unreadable files fail below, for each library
        readable["owlready2"] = _as_triples(files, folder)
    turns = [
        {by: in_own_process(__name__, by, *map(str, own)) for by, own in readable.items()}
        for _ in range(REPEATS + 1)
    ]
    ours = None
    for loader in LOADERS:
        several = [turn[loader] for turn in turns[1:]]
        failed = next((row for row in several if "failed" in row), None)
        row = failed or {name: median(one[name] for one in several) for name in several[0]}
        ours = ours or row.get("load_s")
        ratio = row["load_s"] / ours if ours and "load_s" in row else None
        yield {"ontology": "+".join(f.name for f in files), "by": loader, **row, "ratio": ratio}


def measure(loader: str, *files: str) -> Row:
    """Load files together: seconds without imports, megabytes of the process before and at most."""
    import_module("semantic.ontology.ontology" if loader == "graphmatch" else loader)
    before, started = peak_megabytes(), perf_counter()
    triples = LOADERS[loader]([Path(file) for file in files])
    seconds = perf_counter() - started
    return {"load_s": seconds, "triples": triples, "before_mb": before}


def _graphmatch(files: list[Path]) -> int:
    from semantic.ontology.ontology import Ontology

    return len(Ontology.load(*files, on_problem=lambda _: None).stated)


def _rdflib(files: list[Path]) -> int:
    from rdflib import Graph

    graph = Graph()
    for file in files:
        graph.parse(file, format="turtle" if file.suffix == ".ttl" else "xml")
    return len(graph)


def _owlready2(files: list[Path]) -> int:
    import owlready2  # type: ignore[import-untyped]

    world = owlready2.World()
    for number, file in enumerate(files):
        own = world.get_ontology(f"http://example.org/{number}#")
        with file.open("rb") as stream, suppress(owlready2.OwlReadyOntologyParsingError):
            own.load(only_local=True, fileobj=stream)  # an import fails, but the rest is loaded
    return len(world.graph)


LOADERS = {"graphmatch": _graphmatch, "rdflib": _rdflib, "owlready2": _owlready2}
"""The function of each library that loads files and counts triples."""


def _as_triples(files: list[Path], folder: Path) -> list[Path]:
    """Return the files in a syntax of owlready2; Turtle is converted to N-Triples."""
    from pyoxigraph import RdfFormat, parse, serialize

    readable = []
    for file in files:
        if file.suffix == ".ttl":
            quads = parse(path=file, format=RdfFormat.TURTLE, base_iri=file.resolve().as_uri())
            file = folder / f"{file.stem}.nt"
            serialize((quad.triple for quad in quads), file, RdfFormat.N_TRIPLES)
        readable.append(file)
    return readable
