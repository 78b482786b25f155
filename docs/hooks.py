"""MkDocs hooks: draw figures of experiments and benchmarks, and copy linked source files."""

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
"""A Markdown link to a file outside docs/."""
_BENCHMARKS = re.compile(r"<!-- benchmarks ([\w-]+) -->")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the comments for figures in a page, and copy the files it links to outside docs/.

    - ``figures PAPER``: one section per figure of the paper, drawn from the committed results
      (`graphmatch.bench.experiments.RESULTS`).
    - ``verdicts ALL``: a table of all figures. The second word has no effect.
    - ``benchmarks SECTION``: the plot and the winners of a section of the benchmarks.
    - ``benchmarks table``: a table of all benchmarks.
    """

    def paper_figures(found: re.Match[str]) -> str:
        """Return the sections of a paper's figures, or the table of all figures."""
        from graphmatch.bench import report
        from graphmatch.bench.experiments import EXPERIMENTS, read_results

        if found[1] == "verdicts":
            return report.verdicts(EXPERIMENTS.values())
        results, sections = read_results(), []
        here = posixpath.dirname(page.file.src_uri) or "."
        for experiment in EXPERIMENTS.values():
            if not experiment.name.startswith(f"{found[2]}-"):
                continue
            name = f"images/paper/{experiment.name}.svg"
            if name not in files.src_uris:
                content = report.draw(experiment, results[experiment.name]["records"])
                files.append(File.generated(config, name, content=content))
            sections.append(report.section(experiment, posixpath.relpath(name, here)))
        return "\n\n".join(sections)

    def benchmark_plot(found: re.Match[str]) -> str:
        """Return the plot and the winners of a section, or the table of all benchmarks."""
        from graphmatch.bench import suite, summary

        results, name = suite.read_results(), f"images/benchmarks/{found[1]}.svg"
        if found[1] == "table":
            return summary.table(results)
        if name not in files.src_uris:
            content = summary.draw(results, found[1])
            files.append(File.generated(config, name, content=content))
        return summary.section(results, found[1], name)

    markdown = _BENCHMARKS.sub(benchmark_plot, markdown)

    def copied_link(found: re.Match[str]) -> str:
        """Return a link to a copy of the file in the site, or to index.md instead of README.md."""
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

    return _OUTSIDE.sub(copied_link, _FIGURES.sub(paper_figures, markdown))
