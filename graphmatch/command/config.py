"""The configuration file ``graphmatch.toml`` of ``filter``, ``explain``, ``watch`` and ``serve``.

A key is an option without its dashes, or ``publications``. A command skips the keys of the others.
A table such as ``[serve]`` has options of one command, and ``[limits]`` the broker's limits.
``[[subscription]]`` tables are subscriptions (`graphmatch.subscription_files`).

The command line overrides the file. Names of files are relative to its folder, and may begin with
``~``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeAlias

import typer

from graphmatch.broker.models.limits import BrokerLimits
from graphmatch.command.options import TopicOptions
from graphmatch.subscription_files import read_tables
from graphmatch.topics import TOPIC_KEYS
from semantic.errors import InputError, Place, Problem
from semantic.files import unreadable

COMMANDS = ("filter", "explain", "watch", "serve")
"""The commands that read the file."""
_LIMITS, _SUBSCRIPTION = "[limits]", "[[subscription]]"
_TABLES = (*(f"[{name}]" for name in COMMANDS), _LIMITS, _SUBSCRIPTION)
_EXAMPLE = """\
# Options of graphmatch filter, explain, watch and serve; `graphmatch filter --help` lists more.
# To set one, remove the `# ` before it. Names of files are relative to the folder of this file.

# Feeds and RDF files, or folders of them, for filter and explain:
publications = ["feeds"]
# Addresses of feeds, or files with addresses, for watch and serve:
# feeds = ["https://example.org/feed.xml"]
# Private networks with feeds, such as this machine, for watch and serve:
# allow = ["127.0.0.0/8"]
# The file in which watch records seen items:
state = "feeds.db"
# The file of shown matches, which filter does not show again:
# seen = "seen.db"
# Leave out older items, in filter, watch and serve:
# since = "7d"
# Files with topics, for all four commands:
# ontology = ["topics.ttl"]

# A subscription of filter, explain and watch. Repeat this table for another one.
[[subscription]]
id = "election"
words = ["election"]
not-words = ["live"]
# topics = ["politics or economy"]
"""
# Parameters that are not keys. A subscription by topics and words is a [[subscription]].
_NOT_HERE = frozenset({"help", "config", "demo", "new_token", "publication", "subscription"})
_NOT_HERE |= {one.name for one in fields(TopicOptions)}
_NAMES_FILES = frozenset({"publications", "events", "store", "feeds"})
"""File parameters that are strings on the command line: ``-`` and addresses are not files."""

_Parameter: TypeAlias = Any  # typer has its own copy of click, and does not export its types


def read_config(path: Path, command: Any, context: Any) -> dict[str, Any]:
    """Read a configuration file; return its values by the names of the command's parameters.

    Skip keys that only other commands have. If the file has ``[[subscription]]`` tables, add it to
    the files of subscriptions. Raise `InputError` for an unknown table or key, and for an invalid
    value of this command.
    """
    own = _parameters(command)
    found: dict[str, Any] = {}
    tables: set[str] = set()
    for table, key, value, place in _entries(path):
        tables.add(table)
        if table in ("", f"[{context.info_name}]") and key in own:
            found[own[key].name] = _value(own[key], value, path.parent, context, place)
        elif key not in _keys(table, context):
            raise InputError(_unknown(table, key, place, context))
    if "subscriptions" in own and _SUBSCRIPTION in tables:
        _check_name(path)
        found["subscriptions"] = [*found.get("subscriptions", ()), str(path)]
    return found


def read_limits(path: Path | None) -> BrokerLimits:
    """Return the limits in a configuration file; those that are missing are default.

    Raise `InputError` for an invalid value. `read_config` has checked the keys.
    """
    values: dict[str, Any] = {}
    for table, key, value, place in () if path is None else _entries(path):
        if table == _LIMITS:
            values[key.replace("-", "_")] = _limit(key, value, place)
    return BrokerLimits(**values)


def _limit(key: str, value: object, place: Place) -> object:
    """Return the value of a limit, a number or a duration; raise `InputError` if it is invalid."""
    if isinstance(_limits()[key], int):
        parsed: object = value if type(value) is int and value > 0 else None
        form, example = "number above 0", "1000"
    else:
        found = re.fullmatch(r"([1-9]\d{0,5}) ?(minute|hour|day)s?", str(value))
        parsed = found and timedelta(**{f"{found[2]}s": int(found[1])})
        form, example = "duration", '"12 hours"'
    if parsed is None:
        what = f"`{key}` is not a {form}"
        raise InputError(Problem(what, place, f"Write {key} = {example}."))
    return parsed


def write_config(path: Path) -> None:
    """Write an example of a configuration file; raise `InputError` if the file exists."""
    _check_name(path)
    if path.exists():
        raise InputError(Problem("the file exists", Place(str(path)), "Name another file."))
    path.write_text(_EXAMPLE, encoding="utf-8")


def _check_name(path: Path) -> None:
    """Raise `InputError` if subscriptions are not read from a file with this name."""
    if path.suffix.lower() != ".toml":
        what, remedy = "the name does not end in .toml", "Choose a name such as graphmatch.toml."
        raise InputError(Problem(what, Place(str(path)), remedy))


def _entries(path: Path) -> Iterator[tuple[str, str, Any, Place]]:
    """Yield the table, key, value and place of each entry of a file.

    Tables have their brackets. The table is empty for keys above the first table. Raise
    `InputError` for an unknown table.
    """
    try:
        content, text = read_tables(path)
    except OSError as error:
        raise InputError(unreadable(str(path), error)) from error
    for name, value in content.items():
        listed = value if isinstance(value, list) else [value]
        line = _line(text, name)
        if not listed or not all(isinstance(one, dict) for one in listed):
            yield "", name, value, Place(str(path), line)
            continue
        table = f"[[{name}]]" if listed is value else f"[{name}]"
        if table not in _TABLES:
            remedy = f"Write {' or '.join(get_close_matches(table, _TABLES, 1) or _TABLES)}."
            raise InputError(Problem(f"there is no table {table}", Place(str(path), line), remedy))
        for entries in listed:
            for key, inner in entries.items():
                yield table, key, inner, Place(str(path), _line(text, key, line or 1))
            line = _line(text, name, (line or 0) + 1)


def _limits() -> dict[str, object]:
    """Return the defaults of the limits, by their keys."""
    return {one.name.replace("_", "-"): one.default for one in fields(BrokerLimits)}


def _keys(table: str, context: Any) -> Iterator[str]:
    """Yield the keys of a table, or those above the tables."""
    if table == _SUBSCRIPTION:
        yield from (*TOPIC_KEYS, "query", "where")
    elif table == _LIMITS:
        yield from _limits()
    for name in COMMANDS:
        if table in ("", f"[{name}]"):
            yield from _parameters(context.parent.command.get_command(context, name))


def _unknown(table: str, key: str, place: Place, context: Any) -> Problem:
    """Return the problem of an unknown key; it names the table to which the key belongs."""
    own = sorted({*_keys(table, context)})
    tables = {k: one for one in (_LIMITS, _SUBSCRIPTION, "") for k in _keys(one, context)}
    tables |= dict.fromkeys((*own, *_TABLES), table)
    near = [key] if key in tables else get_close_matches(key, tables, 1)
    remedy = f"There are {', '.join(own)}."
    if near:
        remedy = "" if near == [key] else f"Is `{near[0]}` meant? "
        if (home := tables[near[0]]) != table:
            remedy += f"It belongs {f'below {home}' if home else 'above the first table'}."
    what = f"there is no key `{key}`{f' in {table}' if table else ''}"
    return Problem(what, place, remedy.rstrip())


def _parameters(command: Any) -> dict[str, _Parameter]:
    return {_key(p): p for p in command.params if p.name not in _NOT_HERE}


def _key(parameter: _Parameter) -> str:
    """Return the key of a parameter in the file: its long option, or its name."""
    long = [option for option in parameter.opts if option.startswith("--")]
    return long[0].removeprefix("--") if long else str(parameter.name)


def _line(text: Sequence[str], key: str, begin: int = 1) -> int | None:
    """Return the number of the first line with a key or a table, not before `begin`."""
    written = re.compile(rf"""\s*(\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
    numbers = range(begin, len(text) + 1)
    return next((number for number in numbers if written.match(text[number - 1])), None)


def _value(parameter: _Parameter, value: Any, folder: Path, context: Any, place: Place) -> Any:
    """Return a value as the strings of the command line; raise `InputError` if it is invalid.

    File names are resolved against `folder`; ``~`` is the home folder.
    """
    key, several = _key(parameter), getattr(parameter, "multiple", False) or parameter.nargs == -1
    types: set[type] = {str, date, datetime}
    form, example = ("a list of strings", '["…"]') if several else ("a string", '"…"')
    if getattr(parameter, "is_flag", False):
        types, form, example = {bool}, "true or false", "true"
    elif parameter.type.name.startswith(("int", "float")):
        types, form, example = {int, float}, "a number", "1"
    listed = value if several and isinstance(value, list) else [value]
    if not types.issuperset(map(type, listed)):
        raise InputError(Problem(f"`{key}` is not {form}", place, f"Write {key} = {example}."))
    texts = [one.isoformat() if isinstance(one, date) else str(one) for one in listed]
    if any("\0" in text for text in texts):
        what = f"`{key}` has a NUL character"
        raise InputError(Problem(what, place, "Leave it out."))
    try:
        if parameter.name in _NAMES_FILES or parameter.type.name in ("path", "file", "directory"):
            texts = [
                text if text == "-" or "://" in text else str(folder / Path(text).expanduser())
                for text in texts
            ]
        parameter.type_cast_value(context, texts if several else texts[0])
    except (typer.BadParameter, RuntimeError) as error:  # The latter for an unknown home folder.
        remedy = f"`graphmatch {context.info_name} --help` lists the valid values."
        raise InputError(Problem(f"`{key}`: {str(error).rstrip('.')}", place, remedy)) from error
    return texts if several else texts[0]
