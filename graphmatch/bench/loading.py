"""One ontology, loaded by one library; a group of files is loaded together."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from time import perf_counter

from graphmatch.bench.process import Row, peak_megabytes

LOADERS = ("graphmatch", "rdflib", "owlready2")


def measure(loader: str, *files: str) -> Row:
    """Load the files: seconds, and megabytes of the process before and at the most.

    Imports of libraries are not in the time.
    """
    load = {
        "graphmatch": _ours,
        "rdflib": _rdflib,
        "owlready2": _owlready2,
    }[loader]
    return load([Path(file) for file in files])


def _timed(before: float, started: float, triples: int) -> Row:
    seconds = perf_counter() - started
    return {
        "load_s": seconds,
        "triples": triples,
        "before_mb": before,
        "peak_mb": peak_megabytes(),
    }


def _ours(files: list[Path]) -> Row:
    from semantic.ontology.ontology import Ontology

    before, started = peak_megabytes(), perf_counter()
    ontology = Ontology.load(*files, on_problem=lambda _: None)
    return _timed(before, started, len(ontology.stated))


def _rdflib(files: list[Path]) -> Row:
    import rdflib

    before, started = peak_megabytes(), perf_counter()
    graph = rdflib.Graph()
    for file in files:
        graph.parse(file, format="turtle" if file.suffix == ".ttl" else "xml")
    return _timed(before, started, len(graph))


def _owlready2(files: list[Path]) -> Row:
    import owlready2  # type: ignore[import-untyped]

    before, started = peak_megabytes(), perf_counter()
    world = owlready2.World()
    for number, file in enumerate(files):
        with file.open("rb") as stream:
            own = world.get_ontology(f"http://example.org/{number}#")
            with suppress(owlready2.OwlReadyOntologyParsingError):  # an import: the rest is there
                own.load(only_local=True, fileobj=stream)
    return _timed(before, started, len(world.graph))


def as_triples(files: list[Path], folder: Path) -> list[Path]:
    """Return the files in a syntax that owlready2 reads: Turtle is written as N-Triples."""
    from pyoxigraph import RdfFormat, parse, serialize

    readable = []
    for file in files:
        if file.suffix == ".ttl":
            target = folder / f"{file.stem}.nt"
            quads = parse(path=file, format=RdfFormat.TURTLE, base_iri=file.resolve().as_uri())
            serialize((quad.triple for quad in quads), target, RdfFormat.N_TRIPLES)
            readable.append(target)
        else:
            readable.append(file)
    return readable
