"""Output to the terminal: colours go only there, and a feed cannot hide anything in it.

External text (titles, IRIs, file names) is never read as markup or emoji codes. Its control
characters are shown instead of sent: an escape sequence in a title must not reach a terminal, and a
right-to-left override must not change how an address reads.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO

from rich.console import Console
from rich.text import Text

from semantic.annotation.languages import primary_subtag
from semantic.html import HIDDEN, visible


def reader_language(environment: Mapping[str, str]) -> str:
    """Return the language of the user's locale, such as ``de``; by default English.

    Examples
    --------
    >>> reader_language({"LANG": "de_AT.UTF-8"}), reader_language({"LC_ALL": "C", "LANG": "fr"})
    ('de', 'en')
    """
    chosen = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    locale = next(filter(None, chosen), "C").partition(".")[0]
    return "en" if locale in ("C", "POSIX") else primary_subtag(locale) or "en"


class CommandConsole(Console):
    """A console that reads no markup or emoji, and raises `BrokenPipeError` for a closed pipe."""

    def __init__(self, *, stderr: bool = False, file: IO[str] | None = None) -> None:
        super().__init__(
            stderr=stderr, file=file, soft_wrap=True, highlight=False, markup=False, emoji=False
        )

    def on_broken_pipe(self) -> None:
        """Raise `BrokenPipeError`, which `command.options.end` handles; rich would exit."""
        raise BrokenPipeError

    def write_json(self, row: object) -> None:
        """Write one object as a line of JSON, and flush it."""
        self.write_text(to_json(row) + "\n")

    def write_text(self, text: str) -> None:
        """Write a text unchanged, and flush it; its control characters must be escaped already."""
        self.file.write(text)
        self.file.flush()


def styled(*parts: str | tuple[str, str]) -> Text:
    """Join parts to one line and escape control characters; a part is a text, or (text, style).

    Examples
    --------
    >>> styled(("done", "green"), " [1]").plain
    'done [1]'
    """
    line = Text()
    for part in parts:
        text, style = (part, "") if isinstance(part, str) else part
        line.append(visible(text), style or None)
    return line


def to_json(row: object) -> str:
    r"""Return an object as JSON without unescaped control characters.

    Examples
    --------
    >>> to_json({"title": "Überall \x9b[31m"})
    '{"title": "Überall \\u009b[31m"}'
    """
    text = json.dumps(row, ensure_ascii=False)
    return HIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
