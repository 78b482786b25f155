"""HTML for notebooks: one escaped, self-contained element in the colours of the page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence

FIRST = 10
"""Maximum number of rows in a table, and of terms on one level of a tree."""
_LONGEST, _LINES = 500, 100
HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters, direction marks and lone surrogates."""
_HIDDEN_BUT_LINES = re.compile(HIDDEN.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
_STYLE = "text-align:left;white-space:pre-wrap;overflow-wrap:anywhere"
_CELL = f"{_STYLE};vertical-align:top;min-width:9em;padding:.2em 1em .2em 0"


def visible(text: str, *, lines: bool = False) -> str:
    r"""Return a text with control characters escaped; with `lines`, line feeds stay.

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
    """Return a text as HTML, shortened and escaped; line feeds stay.

    Examples
    --------
    >>> to_html("a < b")
    'a &lt; b'
    """
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    return html.escape(visible(text, lines=True))


def block(title: str, facts: Iterable[str], *parts: str) -> str:
    """Return a block: its title, facts in one line, and parts, which are HTML already."""
    head = f"<div><strong>{to_html(title)}</strong></div><div>{to_html(' · '.join(facts))}</div>"
    return f'<div style="{_STYLE}">{head}{"".join(parts)}</div>'


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], total: int) -> str:
    """Return a table of rows of text, and the number of the rows that it lacks of `total`."""

    def row(cells: Iterable[str], tag: str) -> str:
        made = (f'<{tag} style="{_CELL}">{to_html(cell)}</{tag}>' for cell in cells)
        return f"<tr>{''.join(made)}</tr>"

    body = [row(cells, "td") for cells in rows]
    head = f"<table><thead>{row(headings, 'th')}</thead><tbody>{''.join(body)}</tbody></table>"
    return (head if body else "") + more(total - len(body))


def more(count: int) -> str:
    """Return a line with the number of things that are not shown; empty for 0."""
    return f"<div>… and {count:,} more</div>" if count > 0 else ""


def outline(lines: Iterable[str]) -> Iterator[str]:
    """Yield lines that are indented by spaces as HTML elements with margins; at most `_LINES`."""
    every = list(lines)
    for line in every[:_LINES]:
        text = line.lstrip(" ")
        indent = (len(line) - len(text)) / 2
        yield f'<div style="margin-left:{indent}em">{to_html(text)}</div>'
    yield more(len(every) - _LINES)


def details(summary: str, parts: Iterable[str]) -> str:
    """Return an element that shows its parts, which are HTML already, when it is opened."""
    return f"<details><summary>{to_html(summary)}</summary>{''.join(parts)}</details>"
