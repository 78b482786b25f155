"""HTML for notebooks: escaped elements without scripts, which inherit the notebook's colours."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

FIRST = 10
"""Maximum number of rows in a table, and of terms on one level of a tree."""
_LONGEST, _LINES = 500, 100
"""Maximum number of characters in a text, and of lines in an outline."""
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, separators of lines, direction marks and lone surrogates."""
_HIDDEN_BUT_LINES = re.compile(HIDDEN.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
_STYLE = "text-align:left;white-space:pre-wrap;overflow-wrap:anywhere"
_CELL = f"{_STYLE};vertical-align:top;min-width:9em;padding:.2em 1em .2em 0"


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return a text with the characters of `HIDDEN` escaped; `lines` keeps line feeds.

    Examples
    --------
    >>> visible("red: \x1b[31m")
    'red: \\x1b[31m'
    """
    return (_HIDDEN_BUT_LINES if lines else HIDDEN).sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def to_html(text: str) -> str:
    """Return a text as HTML, cut to `_LONGEST` characters and escaped; line feeds are kept.

    Examples
    --------
    >>> to_html("a < b")
    'a &lt; b'
    """
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return html.escape(visible(text, lines=True))


def block(title: str, facts: Iterable[str], *parts: str) -> str:
    """Return an element with a title, facts in one line, and parts.

    Title and facts are escaped. The parts must be HTML.
    """
    head = f"<div><strong>{to_html(title)}</strong></div><div>{to_html(' · '.join(facts))}</div>"
    return f'<div style="{_STYLE}">{head}{"".join(parts)}</div>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    """Return a table of texts. If `total` is larger, a line says how many rows are not shown."""

    def row(cells: Iterable[str], tag: str) -> str:
        made = (f'<{tag} style="{_CELL}">{to_html(cell)}</{tag}>' for cell in cells)
        return f"<tr>{''.join(made)}</tr>"

    body = [row(cells, "td") for cells in rows]
    head = f"<table><thead>{row(headings, 'th')}</thead><tbody>{''.join(body)}</tbody></table>"
    return (head if body else "") + more(total - len(body))


def more(count: int) -> str:
    """Return a line such as “… and 3 more” for items that are not shown; empty for 0."""
    return f"<div>… and {count:,} more</div>" if count > 0 else ""


def outline(lines: Iterable[str]) -> Iterator[str]:
    """Yield each line as an element whose margin replaces leading spaces; at most `_LINES`."""
    all_lines = list(lines)
    for line in all_lines[:_LINES]:
        text = line.lstrip(" ")
        indent = (len(line) - len(text)) / 2
        yield f'<div style="margin-left:{indent}em">{to_html(text)}</div>'
    yield more(len(all_lines) - _LINES)
