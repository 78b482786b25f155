"""The generated parts of docs/reference/command.md: the options, from the commands themselves.

``python -m tests.reference_tables`` writes them. tests/test_docs.py checks them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from graphmatch.cli import app

PAGE = Path(__file__).resolve().parents[1] / "docs/reference/command.md"
SHARED = 3
"""An option of so many commands, or more, is described once, in the table of its panel."""
_PART = re.compile(r"(<!--options (.+?)-->\n\n).*?(?=\n<!--end-->)", re.DOTALL)


def commands() -> dict[str, Any]:
    """Return the commands as typer builds them, with click or its own copy of click."""
    group: Any = typer.main.get_command(app)
    names = group.list_commands(None)
    return dict(_flat({name: group.get_command(None, name) for name in names}))


def _flat(found: dict[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in found.items():
        if hasattr(command, "commands"):
            yield from _flat(command.commands, f"{above}{name} ")
        else:
            yield above + name, command


def row(parameter: Any) -> str:
    """Return the line of an argument or option: its names, help, choices and default."""
    default, said = parameter.default, [parameter.help]
    if parameter.param_type_name == "argument":
        names = [parameter.name.upper() + "…" * (parameter.nargs < 0)]
    else:
        metavar = f" {parameter.metavar.replace('|', ' or ')}" if parameter.metavar else ""
        first, *others = (*parameter.opts, *parameter.secondary_opts)
        names = [first + metavar, *others]
    if choices := getattr(parameter.type, "choices", None):
        said.append(f"One of {', '.join(f'`{choice}`' for choice in choices)}.")
    if parameter.secondary_opts:
        default = parameter.opts[0] if default else parameter.secondary_opts[0]
    if isinstance(default, str | int | Path) and not isinstance(default, bool):
        said.append(f"Default `{default}`.")
    return f"- {', '.join(f'`{name}`' for name in names)}: {' '.join(said)}\n"


def parts() -> dict[str, str]:
    """Return the generated parts of the page: of each panel that is shared, and of each command."""
    found = {name: [p for p in c.params if p.name != "help"] for name, c in commands().items()}
    uses = Counter(row(p) for several in found.values() for p in several)
    panels: dict[str, dict[str, str]] = {}
    for p in (p for several in found.values() for p in several if uses[row(p)] >= SHARED):
        panels.setdefault(p.rich_help_panel, {})[row(p)] = f"`{p.opts[0]}`"
    tables = {panel: "".join(rows) for panel, rows in panels.items()}
    for name, several in found.items():
        rows = dict.fromkeys(map(row, several))
        own = sorted((r for r in rows if uses[r] < SHARED), key=lambda r: r.startswith("- `-"))
        also = [_link(panel, shared, rows) for panel, shared in panels.items()]
        text = ", ".join(filter(None, also))
        tables[name] = "".join(own)
        tables[name] += f"\nShared options: {text}.\n" if text else ""
    return tables


def _link(panel: str, shared: dict[str, str], rows: dict[str, None]) -> str:
    """Return a link to the table of a panel, with the options that a command has or lacks."""
    has, lacks = ([name for r, name in shared.items() if (r in rows) == is_in] for is_in in (1, 0))
    link = f"[{panel}](#{panel.lower().replace(' ', '-')})"
    if len(has) < len(lacks):
        return f"{', '.join(has)} of {link}" if has else ""
    return f"{link} without {' and '.join(lacks)}" if lacks else link


def updated(text: str) -> str:
    """Return the text of the page with its generated parts."""
    made = parts()
    assert sorted(made) == sorted(found[2] for found in _PART.finditer(text))
    return _PART.sub(lambda found: found[1] + made[found[2]], text)


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
