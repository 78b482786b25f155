"""MkDocs hooks: draw figures of experiments and benchmarks, and copy linked source files."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+(?:data|ontologies|graphmatch|tests|README\.md)[^)#\s]*)\)")
"""A Markdown link to a file outside docs/."""
_RESULTS = re.compile(r"<!-- (figures|verdicts|benchmarks)(?: ([\w-]+))? -->")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Replace the comments for results in a page, and copy the files it links to outside docs/.

    The results are the committed ones, in ``RESULTS`` of `graphmatch.bench.experiments` and
    `graphmatch.bench.suite`.

    - ``figures PAPER``: one section per figure of the paper.
    - ``verdicts``: a table of all figures.
    - ``benchmarks SECTION``: the plot and the winners of a section of the benchmarks.
    - ``benchmarks table``: a table of all benchmarks.
    """

    def plot(name: str, draw: Callable[[], bytes]) -> str:
        """Add an image to the site if it is missing; return its address from the page."""
        if name not in files.src_uris:
            files.append(File.generated(config, name, content=draw()))
        return posixpath.relpath(name, posixpath.dirname(page.file.src_uri) or ".")

    def shown_results(found: re.Match[str]) -> str:
        """Return the Markdown that replaces a comment."""
        from graphmatch.bench import experiments, report, suite, summary
        from graphmatch.bench.results import read_results

        kind, name = found.groups()
        if kind == "verdicts":
            return report.verdicts(experiments.EXPERIMENTS.values())
        if kind == "benchmarks":
            results = read_results(suite.RESULTS)
            if name == "table":
                return summary.table(results)
            image = plot(f"images/benchmarks/{name}.svg", partial(summary.draw, results, name))
            return summary.section(results, name, image)
        figures = read_results(experiments.RESULTS)
        sections = []
        for of in experiments.EXPERIMENTS.values():
            if of.name.startswith(f"{name}-"):
                draw = partial(report.draw, of, figures[of.name]["records"])
                sections.append(report.section(of, plot(f"images/paper/{of.name}.svg", draw)))
        return "\n\n".join(sections)

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

    return _OUTSIDE.sub(copied_link, _RESULTS.sub(shown_results, markdown))
