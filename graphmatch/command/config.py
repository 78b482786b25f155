"""``graphmatch.toml``: the options of ``graphmatch filter`` and ``explain`` in a file.

A key is an option of ``filter`` without its dashes, or ``publications``; ``explain`` skips keys
that it does not have. The command line overrides the file. File names are relative to the file's
folder. Its ``[[subscription]]`` tables are subscriptions (`graphmatch.subscription_files`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import typer

from graphmatch.subscription_files import read_tables
from semantic.errors import InputError, Place, Problem
from semantic.files import unreadable

_NOT_HERE = frozenset({"help", "config"})
_NAMES_FILES = frozenset({"publications", "events"})
"""File parameters that are strings on the command line, because ``-`` is not a file."""

_Parameter: TypeAlias = Any  # typer has its own copy of click, and does not export its types


def read_config(path: Path, command: Any, context: Any) -> dict[str, Any]:
    """Read a configuration file; return its values by the names of the command's parameters.

    Skip keys that only ``filter`` has. If the file has ``[[subscription]]`` tables, add it to the
    files of subscriptions. Raise `InputError` for an unknown key or an invalid value.
    """
    try:
        table, lines = read_tables(path)
    except OSError as error:
        raise InputError(unreadable(str(path), error)) from error
    parameters = _parameters(command)
    known = _parameters(context.parent.command.commands["filter"])
    text = path.read_text(encoding="utf-8-sig").splitlines()
    found: dict[str, Any] = {}
    subscriptions = table.pop("subscription", None)
    for key, value in table.items():
        place = Place(str(path), _line(text, key))
        if key not in known:
            raise InputError(_unknown(key, place, [*known, "[[subscription]]"]))
        if key not in parameters:
            continue
        parameter = parameters[key]
        found[parameter.name] = _value(parameter, value, path.parent, context, place)
    if subscriptions is not None:
        line = lines[0] if lines else _line(text, "subscription")
        if not isinstance(subscriptions, list):
            what = "`subscription` is not an array of tables"
            raise InputError(Problem(what, Place(str(path), line), "Write [[subscription]]."))
        found["subscriptions"] = [*found.get("subscriptions", ()), str(path)]
    return found


def _parameters(command: Any) -> dict[str, _Parameter]:
    return {_key(p): p for p in command.params if p.name not in _NOT_HERE}


def _key(parameter: _Parameter) -> str:
    """Return the key of a parameter in the file: its long option, or its name."""
    long = [option for option in parameter.opts if option.startswith("--")]
    return long[0].removeprefix("--") if long else str(parameter.name)


def _line(text: Sequence[str], key: str) -> int | None:
    written = re.compile(rf"""\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
    return next((n for n, line in enumerate(text, 1) if written.match(line)), None)


def _unknown(key: str, place: Place, known: Sequence[str]) -> Problem:
    near = get_close_matches(key, known, 1)
    remedy = f"Is `{near[0]}` meant?" if near else f"There are {', '.join(sorted(known))}."
    return Problem(f"there is no key `{key}`", place, remedy)


def _value(parameter: _Parameter, value: Any, folder: Path, context: Any, place: Place) -> Any:
    """Return a value as the strings of the command line; raise `InputError` if it is invalid.

    A flag stays true or false. File names are resolved against `folder`.
    """
    key = _key(parameter)
    if getattr(parameter, "is_flag", False):
        if not isinstance(value, bool):
            what, remedy = f"`{key}` is neither true nor false", "Write true or false."
            raise InputError(Problem(what, place, remedy))
        return value
    several = getattr(parameter, "multiple", False) or parameter.nargs == -1
    listed = value if several and isinstance(value, list) else [value]
    is_number = parameter.type.name.startswith(("int", "float"))
    fitting = (int, float) if is_number else (str, date)
    if not all(isinstance(one, fitting) and not isinstance(one, bool) for one in listed):
        kind = "number" if is_number else "list of strings" if several else "string"
        example = "1" if is_number else '["…"]' if several else '"…"'
        remedy = f"Write {key} = {example}."
        what = f"`{key}` is not a {kind}"
        raise InputError(Problem(what, place, remedy))
    texts = [one.isoformat() if isinstance(one, date | datetime) else str(one) for one in listed]
    if parameter.name in _NAMES_FILES or parameter.type.name in ("path", "file", "directory"):
        texts = [text if text == "-" or "://" in text else str(folder / text) for text in texts]
    if any("\0" in text for text in texts):
        what = f"`{key}` has a NUL character"
        raise InputError(Problem(what, place, "Leave it out."))
    try:
        parameter.type_cast_value(context, texts if several else texts[0])
    except typer.BadParameter as error:
        remedy = "`graphmatch filter --help` says what it may be."
        raise InputError(Problem(f"`{key}`: {error.message.rstrip('.')}", place, remedy)) from error
    return texts if several else texts[0]
