"""Configuration files: ``graphmatch.toml`` for ``filter`` and ``explain``, and that of ``serve``.

In ``graphmatch.toml`` a key is an option of ``filter`` without its dashes, or ``publications``.
``explain`` skips keys that it does not have. ``[[subscription]]`` tables are subscriptions
(`graphmatch.subscription_files`).

The file of ``serve`` has the tables ``[serve]``, ``[ontology]``, ``[smtp]`` and ``[kafka]`` with
options, and ``[limits]`` with limits of the broker, see ``docs/deploy/broker.toml``.

The command line overrides a file. Names of files are relative to its folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import typer

from graphmatch.subscription_files import read_tables
from semantic.errors import InputError, Place, Problem
from semantic.files import unreadable

if TYPE_CHECKING:
    from graphmatch.broker.models.limits import BrokerLimits

_NOT_HERE = frozenset({"help", "config"})
_NAMES_FILES = frozenset({"publications", "events", "store"})
"""File parameters that are strings on the command line, because ``-`` is not a file."""

_PANELS = {"serve": ("Service",), "ontology": ("Engine", "Loading the ontology")}
"""The panels of the help whose options are in a table of the file of ``serve``."""
_RENAMED = {
    "ontology": {"ontology": "files"},
    "smtp": {"smtp": "url"},
    "kafka": {"kafka": "servers", "kafka-topic": "topic"},
}
"""Options of ``serve`` that have another name in a table."""
_NOT_IN_FILES = frozenset({"demo", "new-token"})

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


def read_service(path: Path, command: Any, context: Any) -> dict[str, Any]:
    """Read the configuration file of ``graphmatch serve``; return values as `read_config` does."""
    known: dict[str, dict[str, _Parameter]] = {name: {} for name in (*_PANELS, *_RENAMED)}
    for key, parameter in _parameters(command).items():
        for table, names in _RENAMED.items():
            if key in names:
                known[table][names[key]] = parameter
                break
        else:
            for table, panels in _PANELS.items():
                if parameter.rich_help_panel in panels and key not in _NOT_IN_FILES:
                    known[table][key] = parameter
    found: dict[str, Any] = {}
    for table, key, value, place in _entries(path, [*known, "limits"]):
        if table != "limits":
            if key not in known[table]:
                raise InputError(_unknown(key, place, list(known[table])))
            parameter = known[table][key]
            found[parameter.name] = _value(parameter, value, path.parent, context, place)
    read_limits(path)
    return found


def read_limits(path: Path | None) -> BrokerLimits:
    """Return the limits in a configuration file of ``serve``; those that are missing are default.

    Raise `InputError` for an unknown key or an invalid value.
    """
    from graphmatch.broker.models.limits import BrokerLimits

    known = {one.name.replace("_", "-"): one for one in fields(BrokerLimits)}
    values: dict[str, Any] = {}
    for table, key, value, place in () if path is None else _entries(path, None):
        if table != "limits":
            continue
        if key not in known:
            raise InputError(_unknown(key, place, list(known)))
        if isinstance(known[key].default, int):
            parsed: object = value if type(value) is int and value > 0 else None
            example = "1000"
        else:
            found = re.fullmatch(r"([1-9]\d{0,5}) ?(minute|hour|day)s?", str(value))
            parsed = found and timedelta(**{f"{found[2]}s": int(found[1])})
            example = '"12 hours"'
        if parsed is None:
            what = f"`{key}` is not a {'number above 0' if example == '1000' else 'duration'}"
            raise InputError(Problem(what, place, f"Write {key} = {example}."))
        values[known[key].name] = parsed
    return BrokerLimits(**values)


def _entries(path: Path, tables: Sequence[str] | None) -> Iterator[tuple[str, str, Any, Place]]:
    """Yield the table, key, value and place of each entry in the tables of a file."""
    try:
        content, _ = read_tables(path)
    except OSError as error:
        raise InputError(unreadable(str(path), error)) from error
    text = path.read_text(encoding="utf-8-sig").splitlines()
    for table, entries in content.items():
        begin = _line(text, table)
        if tables is not None and table not in tables:
            raise InputError(_unknown(table, Place(str(path), begin), tables))
        if not isinstance(entries, dict):
            what = f"`{table}` is not a table"
            raise InputError(Problem(what, Place(str(path), begin), f"Write [{table}]."))
        for key, value in entries.items():
            line = _line(text[begin or 0 :], key)
            yield table, key, value, Place(str(path), line and line + (begin or 0))


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
        remedy = f"`graphmatch {context.info_name} --help` lists the valid values."
        raise InputError(Problem(f"`{key}`: {error.message.rstrip('.')}", place, remedy)) from error
    return texts if several else texts[0]
