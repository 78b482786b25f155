"""Options that several commands share: annotated types, and groups of options.

Typer has no groups of options. Here a group is a frozen dataclass whose fields are options
(`option`, `argument`). It may have a headline for them in the help (`panel`). `grouped` replaces a
command's parameter of such a type by those options, and passes the dataclass to the command.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from functools import partial, wraps
from importlib.util import find_spec
from inspect import Parameter, Signature, signature
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NoReturn, Self, get_type_hints

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from graphmatch.broker.feeds.feed_store import Feed
    from semantic.errors import OnProblem

_FILES = "RDF files, .csv topics or synonyms, .rq mapping functions"
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_ANNOTATED: Any = Annotated
_EXTRAS = {
    "bench": ("ahocorasick_rs", "bitarray", "duckdb", "matplotlib", "numba", "pandas"),
    "broker": (
        *("aiohttp", "alembic", "fastapi", "fastapi_offline", "httptools", "jinja2", "listparser"),
        *("prometheus_client", "pythonjsonlogger", "sqlalchemy", "uvicorn"),
    ),
    "kafka": ("confluent_kafka",),
}
"""The packages of extras."""
CONFIG = "graphmatch.toml"
"""The configuration file if the command line names no input."""
_INPUTS = ("publications", "events", "feeds", "subscriptions", "demo")
"""Parameters that name input."""


def option(default: Any, help: str, *names: str, **more: Any) -> Any:
    """Return a field that is an option, named like the field unless `names` are given.

    A flag that is off by default has no name that turns it off. `more` goes to `typer.Option`.
    """
    return field(
        default=default, metadata={"made": partial(typer.Option, *names, help=help, **more)}
    )


def argument(default: Any, help: str) -> Any:
    """Return a field that is an argument; the default `MISSING` makes it required."""
    return field(default=default, metadata={"made": partial(typer.Argument, help=help)})


OntologyFiles = Annotated[list[Path], typer.Argument(help=f"{_FILES}; together one ontology.")]
Json = Annotated[bool, typer.Option("--json", rich_help_panel="Output", help="Write JSON Lines.")]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        rich_help_panel="Configuration",
        help="Configuration file; default ./graphmatch.toml if no input is named.",
    ),
]


def parse_time(text: str, other: str = "") -> datetime:
    """Parse a date or a time in ISO 8601, by default in UTC; raise `typer.BadParameter` if invalid.

    `other` says what else is valid.

    Examples
    --------
    >>> parse_time("2026-01-02T03:04:05+01:00").isoformat()
    '2026-01-02T03:04:05+01:00'
    >>> parse_time("2026-01-02").isoformat()
    '2026-01-02T00:00:00+00:00'
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        what = f"{text!r} is not a time such as 2026-01-02T03:04:05Z{other}."
        raise typer.BadParameter(what) from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def parse_network(text: str) -> str:
    """Return a text that is a network; otherwise raise `typer.BadParameter`."""
    try:
        ip_network(text)
    except ValueError as error:
        raise typer.BadParameter(f"{text!r} is not a network such as 10.0.0.0/8.") from error
    return text


def require(command: str, extra: str) -> None:
    """Raise `InputError` if packages of an extra are not installed."""
    from semantic.errors import InputError, Place, Problem, pip_install

    missing = [module for module in _EXTRAS[extra] if find_spec(module) is None]
    if missing:
        remedy = f"Install the extra: {pip_install(extra)}"
        raise InputError(Problem(f"it needs {', '.join(missing)}", Place(command), remedy))


@dataclass(frozen=True, slots=True)
class Since:
    """The oldest accepted date of items: a date, or a duration before now.

    Examples
    --------
    >>> Since.parse("7d")(datetime(2026, 1, 8, tzinfo=UTC)).isoformat()
    '2026-01-01T00:00:00+00:00'
    """

    before: datetime | timedelta

    @classmethod
    def parse(cls, text: str) -> Since:
        """Parse a date, a time, or a number of minutes, hours, days or weeks: ``7d``."""
        found = re.fullmatch(r"(\d{1,4})([mhdw])", text.strip())
        if found is not None:
            return cls(timedelta(**{_UNITS[found[2]]: int(found[1])}))
        return cls(parse_time(text, ", a date, or a duration such as 7d or 24h"))

    def __call__(self, now: datetime) -> datetime:
        """Return the oldest accepted time: the date, or `now` minus the duration."""
        return self.before if isinstance(self.before, datetime) else now - self.before


@dataclass(frozen=True, slots=True)
class FeedOptions:
    """The options for the feeds that a command fetches."""

    panel: ClassVar = "Feeds"
    feeds: list[str] | None = option(
        None,
        "Address of a feed, OPML file, or text file with one address per line; repeatable.",
        metavar="FILE|URL",
    )
    since: Since | None = option(
        None, "Leave out older items of feeds.", parser=Since.parse, metavar="DATE|30m|24h|7d|2w"
    )
    allow: list[str] | None = option(
        None,
        "Private network to connect to, such as 127.0.0.0/8; repeatable.",
        parser=parse_network,
        metavar="NETWORK",
    )

    def listed(self, on_problem: OnProblem) -> list[Feed]:
        """Return the feeds that `feeds` names; report those that cannot be used."""
        from graphmatch.broker.feeds.opml import read_feed_list

        return [feed for name in self.feeds or () for feed in read_feed_list(name, on_problem)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOptions:
    """The options for reading documents."""

    panel: ClassVar = "Publications"
    split_by: Literal["auto", "document", "graph", "item", "subject", "component"] = option(
        "auto", "How a document is split into publications."
    )
    format: str | None = option(None, "RDF syntax: an extension such as ttl, or a media type.")
    base: str | None = option(None, "Base IRI of relative IRIs; without it they are errors.")

    def check(self, *others: str) -> None:
        """Raise `InputError` for an invalid base, or a format neither of RDF nor in `others`."""
        from semantic.reading import check_base
        from semantic.syntax_detection import format_of_media_type

        if self.format is not None and self.format not in others:
            format_of_media_type(self.format)
        if self.base is not None:
            check_base(self.base)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputOptions(DocumentOptions):
    """The options for the publications to read."""

    publications: list[str] | None = argument(
        None, "Feeds and RDF files, folders of them, or - for standard input."
    )
    events: list[str] | None = option(
        None, "JSON Lines files of events, or - for standard input; repeatable."
    )


@dataclass(frozen=True, slots=True)
class TopicOptions:
    """The options for a subscription by topics and words."""

    panel: ClassVar = "Subscriptions"
    topic: list[str] | None = option(
        None,
        "Items on this topic or on a narrower one: a label, prefixed name or IRI, or "
        '"A or B"; without an ontology, items with this category; repeatable.',
    )
    word: list[str] | None = option(
        None, 'Items whose title or text has the word or phrase, or "A or B"; repeatable.'
    )
    not_topic: list[str] | None = option(
        None, "Leave out items on the topic or a narrower one; repeatable."
    )
    not_word: list[str] | None = option(
        None, "Leave out items with the word or phrase; repeatable."
    )
    any_of: bool = option(False, "Match any of the topics and words, or all.", "--any/--all")


@dataclass(frozen=True, slots=True)
class SubscriptionOptions(TopicOptions):
    """The options for subscriptions."""

    subscriptions: list[Path] | None = option(
        None, ".rq, .jsonl and .toml files, or folders; repeatable.", "--subscriptions", "-s"
    )


@dataclass(frozen=True, slots=True)
class Verbosity:
    """The options for messages besides the results."""

    panel: ClassVar = "Output"
    quiet: bool = option(
        False,
        "Hide warnings, counts and progress. Errors are still shown, and which items and "
        "subscriptions were refused, because they are invalid.",
        "--quiet",
        "-q",
    )
    verbose: bool = option(
        False, "Show each warning and refusal, not one line for each kind.", "--verbose", "-v"
    )


@dataclass(frozen=True, slots=True)
class ResultOptions:
    """The options for writing matches: which, how and where."""

    panel: ClassVar = "Results"
    json: bool = option(False, "Same as --as jsonl.")
    form: Literal["text", "jsonl", "csv"] | None = option(
        None, "Output format of matches; default text.", "--as"
    )
    output: Path | None = option(
        None, "File to write, which the run replaces at its end.", metavar="FILE"
    )
    explain_misses: bool = option(False, "Also show the items that one condition less would bring.")
    since: Since | None = option(
        None, "Leave out older items.", parser=Since.parse, metavar="DATE|30m|24h|7d|2w"
    )
    seen: Path | None = option(
        None, "File that records delivered matches, so that each is delivered once.", metavar="FILE"
    )


@dataclass(frozen=True, slots=True)
class OntologyOptions:
    """The options for loading files as one ontology."""

    panel: ClassVar = "Loading the ontology"
    imports: Path | None = option(None, "Folder with the files of owl:imports.")
    reason: Literal["hermit", "pellet"] | None = option(
        None, "Let an OWL reasoner infer superclasses, equivalences and types; it needs Java."
    )
    reason_seconds: float | None = option(
        None, "Time limit of the reasoner, in seconds; default 600.", min=1
    )
    taxonomy: list[str] | None = option(
        None, "Property that orders terms, as skos:broader does; repeatable.", metavar="IRI"
    )
    nfkc: bool = option(False, "Accept synonyms in any Unicode form (NFKC).")
    casefold: bool = option(False, "Ignore case in synonyms.")
    cache: Path | None = option(
        None, "Folder for cached inferences; default the user's cache.", metavar="FOLDER"
    )
    no_cache: bool = option(False, "Do not cache inferences of the reasoner.")


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """The options for an engine besides subscriptions: an ontology, or a saved engine."""

    panel: ClassVar = "Engine"
    files: list[Path] | None = option(None, f"{_FILES}; repeatable.", "--ontology", "-o")
    ontology_options: OntologyOptions = field(default_factory=OntologyOptions)
    entailment: Literal["rdfs", "owl-rl", "none"] = option(
        "rdfs",
        "rdfs: apply RDFS and SKOS; owl-rl: OWL 2 RL, too; none: match publications as they are.",
    )
    annotate: bool = option(True, "Search feed items for the ontology's labels.")
    stem: bool = option(True, "Also find plurals, cases and parts of German compounds.")
    now: datetime | None = option(
        None,
        "Time of NOW() and mapping functions, by default in UTC; default the system time.",
        parser=parse_time,
        metavar="DATETIME",
    )
    saved: Path | None = option(
        None,
        "Engine saved by `graphmatch index`; it has an ontology and its options.",
        "--engine",
        metavar="FILE",
    )
    operators: list[str] | None = option(
        None,
        "Operators that subscriptions call (also FILE.py:NAME); repeatable.",
        metavar="MODULE:NAME",
    )

    def checked(self) -> Self:
        """Return itself if its options are compatible; otherwise raise `InputError`."""
        usual = EngineOptions(now=self.now, saved=self.saved, operators=self.operators)
        if self.saved is not None and self != usual:
            from semantic.errors import InputError, Place, Problem

            what = "a saved engine has its ontology and its options already"
            remedy = (
                "Leave out --ontology, its options, --entailment, --no-annotate and --no-stem, "
                "also in graphmatch.toml."
            )
            raise InputError(Problem(what, Place(str(self.saved)), remedy))
        return self


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """The options for the output of ``graphmatch ontology``: search results, a term, or trees."""

    search: str | None = option(
        None, "Show the terms with the text in a label, synonym or IRI's end.", metavar="TEXT"
    )
    term: str | None = option(None, "Show everything about one term.", metavar="TERM")
    depth: int = option(4, "Number of tree levels to show.", min=1)


def grouped(command: Callable[..., int], without: Collection[str] = ()) -> Callable[..., None]:
    """Return a command for Typer in which each parameter that is a group becomes its options.

    It calls `command`, and ends the process with the returned status.

    Parameters
    ----------
    command
        A function at a module's top level with annotations for all parameters.
    without
        Fields of groups that are not options of this command. They have their defaults.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: int = option(1, "In pixels.")
    >>> def draw(name: str, size: Size) -> int:
    ...     return 0
    >>> draw.__annotations__["size"] = Size
    >>> list(signature(grouped(draw)).parameters)
    ['name', 'width']
    """
    hints = get_type_hints(command, include_extras=True)
    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if is_dataclass(hint := hints[parameter.name]):
            parameters += _options(hint, without)
        else:
            parameters.append(parameter.replace(annotation=hint))

    @wraps(command)
    def called(**given: Any) -> None:
        end(lambda: command(**{name: _taken(hints[name], name, given) for name in names}))

    names = list(signature(command).parameters)
    ordered = sorted(parameters, key=lambda p: p.default is not Parameter.empty)
    called.__annotations__ = {p.name: p.annotation for p in ordered} | {"return": None}
    vars(called)["__signature__"] = Signature(ordered)
    return called


def _options(group: Any, without: Collection[str]) -> Iterator[Parameter]:
    """Yield the options of a group, and of the groups in it, except the fields in `without`."""
    hints = get_type_hints(group, include_extras=True)
    for f in fields(group):
        if is_dataclass(hints[f.name]):
            yield from _options(hints[f.name], without)
        elif f.name not in without:
            make = f.metadata["made"]
            if f.default is False and not make.args:
                make = partial(make, f"--{f.name.replace('_', '-')}")
            made = make(rich_help_panel=getattr(group, "panel", None))
            default = Parameter.empty if f.default is MISSING else f.default
            kind, annotated = Parameter.POSITIONAL_OR_KEYWORD, _ANNOTATED[hints[f.name], made]
            yield Parameter(f.name, kind, default=default, annotation=annotated)


def _taken(hint: Any, name: str, given: dict[str, Any]) -> Any:
    """Return the value of a parameter in `given`, or its group made of the values there."""
    if not is_dataclass(hint):
        return given[name]
    hints = get_type_hints(hint)
    taken = {
        f.name: _taken(hints[f.name], f.name, given)
        for f in fields(hint)
        if f.name in given or is_dataclass(hints[f.name])
    }
    group: Any = hint
    return group(**taken)


class ConfiguredCommand(TyperCommand):
    """A command with an option ``--config``: a file with defaults for its options."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the command line; with a configuration file, parse it again with its defaults.

        The default file is `CONFIG`, if no input is named. An invalid file ends the process.
        """
        rest = super().parse_args(ctx, list(args))
        config = ctx.params["config"]
        if config is None and not any(map(ctx.params.get, _INPUTS)) and Path(CONFIG).is_file():
            config = CONFIG
        if config is None or ctx.resilient_parsing:
            return rest
        from graphmatch.command.config import read_config
        from semantic.errors import GraphMatchError

        try:
            ctx.default_map = read_config(Path(config), self, ctx)
        except GraphMatchError as error:
            raise SystemExit(_fail(error)) from error
        ctx.params.clear()
        rest = super().parse_args(ctx, list(args))
        ctx.params["config"] = Path(config)
        return rest


def _fail(error: Exception) -> int:
    """Print the error that ends the run, and return its exit status, 2."""
    from graphmatch.console import CommandConsole, styled

    CommandConsole(stderr=True).print(styled(("error", "red"), f"    {error}"))
    return 2


def end(run: Callable[[], int]) -> NoReturn:
    """Run a command, and end the process with its status; print errors instead of raising them.

    An output that was closed early is not an error.
    """
    from semantic.errors import GraphMatchError

    try:
        status = run()
        sys.stdout.flush()
    except GraphMatchError as error:
        status = _fail(error)
    except OSError as error:
        status = 0 if isinstance(error, BrokenPipeError) else 2
        if status:
            typer.echo(f"error    the output cannot be written: {error.strerror}", err=True)
        # The final flush must not fail.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except KeyboardInterrupt:
        status = 130
        typer.echo("interrupted", err=True)
    raise SystemExit(status)
