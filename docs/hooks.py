"""Hooks of the documentation site: samples that pages link to become files of the site."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

_ROOT = Path(__file__).parents[1]
_OUTSIDE = re.compile(r"\]\(((?:\.\./)+(?:data|ontologies|graphmatch|tests|README\.md)[^)#\s]*)\)")


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Copy what a page links to outside of the folder of pages, and let the link lead there."""

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

    return _OUTSIDE.sub(linked, markdown)
