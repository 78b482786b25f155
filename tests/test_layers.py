"""Imports point in one direction: cli → command → bench → engine → matcher → semantic."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
SEMANTIC = (
    (
        "semantic.errors",
        "semantic.exports",
        "semantic.html",
        "semantic.limits",
        "semantic.progress",
        "semantic.vocabulary",
    ),
    ("semantic.files", "semantic.safe_xml"),
    ("semantic.terms",),
    ("semantic.publication", "semantic.ontology.taxonomy"),
    ("semantic.units.quantities", "semantic.attributes.names"),
    ("semantic.values",),
    ("semantic.units", "semantic.annotation", "semantic.mapping"),
    ("semantic.syntax_detection", "semantic.arrow"),
    ("semantic.feeds",),
    ("semantic.reading",),
    ("semantic.ontology",),
    ("semantic.branch", "semantic.filter_evaluation"),
    ("semantic.attributes",),
    ("semantic",),
)
"""The layers of semantic, bottom first; unnamed modules are in the last one."""

LAYERS = (
    *SEMANTIC,
    ("graphmatch.subscription",),
    ("graphmatch.mapping",),
    ("graphmatch.enrichment",),
    ("graphmatch.report",),
    ("graphmatch.matcher",),
    ("graphmatch.published",),
    ("graphmatch.lint", "graphmatch.parse_tree"),
    ("graphmatch.prepared",),
    ("graphmatch.operators",),
    ("graphmatch.explain", "graphmatch.snapshot"),
    ("graphmatch.documents", "graphmatch.registration"),
    ("graphmatch.engine",),
    ("graphmatch.subscription_files", "graphmatch.topics"),
    ("graphmatch.spark.java",),
    ("graphmatch.spark.spark_session", "graphmatch.spark.snapshots", "graphmatch.spark.graphs"),
    ("graphmatch.spark.tasks",),
    ("graphmatch.spark.matching", "graphmatch.spark.documents"),
    ("graphmatch.spark.source",),
    ("graphmatch.spark",),
    ("graphmatch.broker", "graphmatch.broker.app.errors"),
    ("graphmatch.broker.models",),
    ("graphmatch.broker.client",),
    ("graphmatch.broker.db",),
    (
        "graphmatch.broker.app.rate_limits",
        "graphmatch.broker.app.security",
        "graphmatch.broker.app.supervisor",
    ),
    ("graphmatch.broker.outbox.safe_http",),
    ("graphmatch.broker.service",),
    ("graphmatch.broker.outbox",),
    ("graphmatch.broker.feeds",),
    ("graphmatch.broker.insight",),
    ("graphmatch.broker.metrics",),
    ("graphmatch.broker.api",),
    ("graphmatch.broker.page",),
    ("graphmatch.broker.app",),
    ("graphmatch.console",),
    ("graphmatch.bench",),
    ("graphmatch.command",),
    ("graphmatch.cli",),
)
"""Bottom first; a module imports only from its own layer and those below."""

READERS = (
    "semantic.annotation.annotate",
    "semantic.annotation.words",
    "semantic.reading",
    "semantic.tables",
)
"""The modules of semantic that use the compiled core to read documents or text."""

HEAVY = ("rdflib", "networkx", "lxml", "pyspark", "numba", "owlready2")
"""Heavy packages that only some modules may import."""


PAPERS = "graphmatch.published"


def modules() -> Iterator[tuple[str, Path]]:
    for package in ("semantic", "graphmatch"):
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            yield ".".join(part for part in parts if part != "__init__"), path


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(module: str) -> int | None:
    best: tuple[int, int] | None = None
    for number, names in enumerate(LAYERS):
        for name in names:
            if module == name or module.startswith(name + "."):
                best = max(best or (0, 0), (len(name), number))
    return None if best is None else best[1]


MODULES = list(modules())


def test_that_every_module_has_its_layer() -> None:
    without = [name for name, _ in MODULES if layer(name) is None and name != "graphmatch"]
    assert not without, f"add these to LAYERS: {without}"


def test_that_imports_point_down() -> None:
    upwards = [
        f"{module} imports {imported}"
        for module, path in MODULES
        if (own := layer(module)) is not None  # The package's entry module names modules above it.
        for imported in imports(path)
        if (above := layer(imported)) is not None and above > own
    ]
    assert not upwards, f"these are above what imports them: {upwards}"


def test_that_loggers_have_the_name_of_their_package() -> None:
    for module, path in MODULES:
        text = path.read_text(encoding="utf-8")
        assert "basicConfig" not in text, module
        for name in re.findall(r"getLogger\(([^)]*)\)", text):
            assert re.match(r"__name__$|['\"](graphmatch|semantic)(\.[a-z_.]+)?['\"]$", name), (
                module
            )


def test_that_every_layer_exists() -> None:
    found = {module for module, _ in MODULES}
    for names in LAYERS:
        for name in names:
            assert name in found


def test_that_semantic_knows_no_matching() -> None:
    for module, path in MODULES:
        if module.startswith("semantic"):
            used = {name for name in imports(path) if name.startswith("graphmatch")}
            may_use = {"graphmatch", "graphmatch._native"} if module in READERS else set()
            assert used <= may_use, module


def test_that_the_algorithms_read_without_a_library() -> None:
    for module, path in MODULES:
        if module.startswith("graphmatch.published.") and not module.endswith(".jit"):
            used = {name.split(".")[0] for name in imports(path)}
            assert not used & set(HEAVY), module


def test_that_the_product_needs_no_algorithm_of_a_paper() -> None:
    for module, path in MODULES:
        if not module.startswith((PAPERS, "graphmatch.bench")):
            assert not any(name.startswith(PAPERS) for name in imports(path)), module


def core_imports(path: Path) -> set[str]:
    """Return the core's modules that a Rust file names outside its tests."""
    text = re.sub(r"(?m)^\s*//.*$", "", path.read_text(encoding="utf-8"))
    text = text.partition("#[cfg(test)]\nmod tests {")[0]
    grouped = ",".join(re.findall(r"\bcrate::\{([^}]*)\}", text))
    names = re.findall(r"\bcrate::((?:[a-z_]+::)*[a-z_]+)", text)
    return {*names, *re.findall(r"[a-z_]+(?:::[a-z_]+)*", grouped)}


def test_that_modules_of_the_core_have_no_circles() -> None:
    sources = ROOT / "graphmatch/native/src"
    paths = {
        "::".join(
            part for part in path.relative_to(sources).with_suffix("").parts if part != "mod"
        ): path
        for path in sources.rglob("*.rs")
        if not path.name.endswith("tests.rs")
    }
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for module, path in paths.items():
        for name in core_imports(path):
            while name and name not in paths:
                name = name.rpartition("::")[0]
            if name and name != module:
                graph.add_edge(module, name)
    circles = [sorted(one) for one in networkx.strongly_connected_components(graph) if len(one) > 1]
    assert not circles, f"these import each other: {circles}"
