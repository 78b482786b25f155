"""Hooks of the documentation site: linked samples and figures of experiments become its files."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_FIGURES = re.compile(r"<!-- (figures|verdicts) ([\w-]+) -->")
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+(?:data|ontologies|graphmatch|tests|README\.md)[^)#\s]*)\)")
_BENCHMARKS = re.compile(r"<!-- benchmarks ([\w-]+) -->")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Copy what a page links to outside of the folder of pages, and draw its figures.

    A comment ``figures PAPER`` is replaced by the sections of the paper's figures, drawn from the
    committed results (`graphmatch.bench.experiments.RESULTS`), and ``verdicts ALL`` by a table of
    all figures.
    """

    def drawn(found: re.Match[str]) -> str:
        from graphmatch.bench import report
        from graphmatch.bench.experiments import EXPERIMENTS, read_results

        if found[1] == "verdicts":
            return report.verdicts(EXPERIMENTS.values())
        results, sections = read_results(), []
        here = posixpath.dirname(page.file.src_uri) or "."
        for of in (of for of in EXPERIMENTS.values() if of.name.startswith(f"{found[2]}-")):
            name = f"images/paper/{of.name}.svg"
            if name not in files.src_uris:
                content = report.draw(of, results[of.name]["records"])
                files.append(File.generated(config, name, content=content))
            sections.append(report.section(of, posixpath.relpath(name, here)))
        return "\n\n".join(sections)

    def compared(found: re.Match[str]) -> str:
        """Return the plot and the winners of a section of benchmarks, or the table of all."""
        from graphmatch.bench import suite, summary

        results, name = suite.read_results(), f"images/benchmarks/{found[1]}.svg"
        if found[1] == "table":
            return summary.table(results)
        if name not in files.src_uris:
            content = summary.draw(results, found[1])
            files.append(File.generated(config, name, content=content))
        return summary.section(results, found[1], name)

    markdown = _BENCHMARKS.sub(compared, markdown)

    def linked(found: re.Match[str]) -> str:
        here = posixpath.dirname(page.file.src_uri)
        target = posixpath.normpath(posixpath.join("docs", here, found[1]))
        if target == "README.md":
            return f"]({posixpath.relpath('index.md', here or '.')})"
        source = _ROOT / target
        if not source.is_file():
            return found[0]
        name = f"sources/{target}.txt"
        if name not in files.src_uris:
            files.append(File.generated(config, name, abs_src_path=str(source)))
        return f"]({posixpath.relpath(name, here or '.')})"

    return _OUTSIDE.sub(linked, _FIGURES.sub(drawn, markdown))
