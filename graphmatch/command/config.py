"""The configuration file ``graphmatch.toml`` of ``filter``, ``explain``, ``watch`` and ``serve``.

A key is an option without its dashes, or ``publications``. A command skips the keys of the others.
A table such as ``[serve]`` has options of one command, and ``[limits]`` the broker's limits.
``[[subscription]]`` tables are subscriptions (`graphmatch.subscription_files`).

The command line overrides the file. Names of files are relative to its folder.
"""

from __future__ import annotations

import json
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

COMMANDS = ("filter", "watch", "serve")
"""The commands whose options are keys of the file."""
_SET = {"publications": '["feeds"]', "state": '"feeds.db"'}
"""The options that the example sets, and their values."""
_EXAMPLE = """\
# The configuration of graphmatch filter, explain, watch and serve.
#
# Below each description is an option, which is not set if it begins with `# `. The commands that
# have it are in parentheses. Names of files are relative to this folder.

{}
[[subscription]]
id = "election"
comment = "Elections, but no live reports."
words = ["election"]
not-words = ["live"]
"""
_NOT_HERE = frozenset({"help", "config", "demo", "new_token"})
_NAMES_FILES = frozenset({"publications", "events", "store", "feeds"})
"""File parameters that are strings on the command line: ``-`` and addresses are not files."""

_Parameter: TypeAlias = Any  # typer has its own copy of click, and does not export its types


def read_config(path: Path, command: Any, context: Any) -> dict[str, Any]:
    """Read a configuration file; return its values by the names of the command's parameters.

    Skip keys that only other commands have. If the file has ``[[subscription]]`` tables, add it to
    the files of subscriptions. Raise `InputError` for an unknown key or an invalid value.
    """
    own, name = _parameters(command), context.info_name
    found: dict[str, Any] = {}
    for table, key, value, place in _entries(path):
        if table == "limits" or key == "subscription":
            continue
        if key not in own or table not in ("", name):
            group = context.parent.command
            others = [table] if table else COMMANDS
            known = [k for one in others for k in _parameters(group.get_command(context, one))]
            if key not in known:
                tables = () if table else ("[serve]", "[limits]", "[[subscription]]")
                raise InputError(_unknown(key, place, [*known, *tables]))
        else:
            found[own[key].name] = _value(own[key], value, path.parent, context, place)
    if "subscriptions" in own and any(key == "subscription" for _, key, *_ in _entries(path)):
        found["subscriptions"] = [*found.get("subscriptions", ()), str(path)]
    return found


def read_limits(path: Path | None) -> BrokerLimits:
    """Return the limits in a configuration file; those that are missing are default.

    Raise `InputError` for an unknown key or an invalid value.
    """
    from graphmatch.broker.models.limits import BrokerLimits

    known = {one.name.replace("_", "-"): one for one in fields(BrokerLimits)}
    values: dict[str, Any] = {}
    entries = () if path is None else (entry for entry in _entries(path) if entry[0] == "limits")
    for _, key, value, place in entries:
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


def write_config(path: Path, context: Any) -> None:
    """Write a configuration file with an example and all options; raise `InputError` if it exists.

    Parameters
    ----------
    context
        The context of a command of the group.
    """
    group = context.parent.command
    keys: dict[str, tuple[_Parameter, list[str]]] = {}
    for name in COMMANDS:
        for key, parameter in _parameters(group.get_command(context, name)).items():
            keys.setdefault(key, (parameter, []))[1].append(name)
    lines: list[str] = []
    for key in sorted(keys, key=lambda key: key not in _SET):
        parameter, names = keys[key]
        setting = f"{key} = {_SET[key]}" if key in _SET else f"# {key} = {_form(parameter)}"
        lines += [f"# {parameter.help} ({', '.join(names)})", setting, ""]
    if path.exists():
        raise InputError(Problem("the file exists", Place(str(path)), "Name another file."))
    path.write_text(_EXAMPLE.format("\n".join(lines)), encoding="utf-8")


def _form(parameter: _Parameter) -> str:
    """Return the default of a parameter as TOML, or a text that shows its form."""
    default = parameter.default
    if isinstance(default, int) or _is_number(parameter):
        return str(default or 1 if _is_number(parameter) else default).lower()
    choices = "|".join(getattr(parameter.type, "choices", ()))
    text = json.dumps(str(default or choices or parameter.metavar or "…"), ensure_ascii=False)
    return f"[{text}]" if _is_list(parameter) else text


def _entries(path: Path) -> Iterator[tuple[str, str, Any, Place]]:
    """Yield the table, key, value and place of each entry of a file; the table may be empty."""
    try:
        content, _ = read_tables(path)
    except OSError as error:
        raise InputError(unreadable(str(path), error)) from error
    text = path.read_text(encoding="utf-8-sig").splitlines()
    for name, value in content.items():
        begin = _line(text, name)
        is_table = isinstance(value, dict) and name != "subscription"
        if is_table and name not in (*COMMANDS, "limits"):
            raise InputError(_unknown(name, Place(str(path), begin), [*COMMANDS, "limits"]))
        for key, inner in value.items() if is_table else [(name, value)]:
            line = _line(text, key, begin or 1)
            yield name if is_table else "", key, inner, Place(str(path), line)


def _parameters(command: Any) -> dict[str, _Parameter]:
    return {_key(p): p for p in command.params if p.name not in _NOT_HERE}


def _key(parameter: _Parameter) -> str:
    """Return the key of a parameter in the file: its long option, or its name."""
    long = [option for option in parameter.opts if option.startswith("--")]
    return long[0].removeprefix("--") if long else str(parameter.name)


def _line(text: Sequence[str], key: str, begin: int = 1) -> int | None:
    """Return the number of the first line with a key or a table, not before `begin`."""
    written = re.compile(rf"""\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
    lines = enumerate(text[begin - 1 :], begin)
    return next((number for number, line in lines if written.match(line)), None)


def _unknown(key: str, place: Place, known: Sequence[str]) -> Problem:
    near = get_close_matches(key, known, 1)
    remedy = f"Is `{near[0]}` meant?" if near else f"There are {', '.join(sorted({*known}))}."
    return Problem(f"there is no key `{key}`", place, remedy)


def _is_list(parameter: _Parameter) -> bool:
    return getattr(parameter, "multiple", False) or parameter.nargs == -1


def _is_number(parameter: _Parameter) -> bool:
    return bool(parameter.type.name.startswith(("int", "float")))


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
    several, is_number = _is_list(parameter), _is_number(parameter)
    listed = value if several and isinstance(value, list) else [value]
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
