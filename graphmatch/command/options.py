"""Options that several commands share: the annotated types, and groups of options.

Typer has no groups of options. Here a group is a frozen dataclass whose fields are annotated as
options; `grouped` writes a command's parameter of such a type as those options, and hands the
command the dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from datetime import UTC, datetime
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

_FILES = "RDF files, .csv and .json synonyms, .rq mapping functions"
_LOADING = "Loading the ontology"

Ontologies = Annotated[
    list[Path] | None, typer.Option("--ontology", "-o", help=f"{_FILES}; repeatable.")
]
OntologyFiles = Annotated[list[Path], typer.Argument(help=f"{_FILES}; together one ontology.")]
Subscriptions = Annotated[
    list[Path],
    typer.Option("--subscriptions", "-s", help=".rq and .jsonl files, or folders; repeatable."),
]
Publications = Annotated[
    list[str] | None,
    typer.Argument(help="Feeds and RDF files, folders of them, or - for standard input."),
]
Events = Annotated[
    list[str] | None,
    typer.Option(help="JSON Lines of events, or - for standard input; repeatable."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON object a line, for machines.")]
CutOption = Annotated[
    Literal["auto", "document", "graph", "item", "subject", "component"],
    typer.Option("--cut", help="What of a document is one publication."),
]
FormatOption = Annotated[
    str | None, typer.Option("--format", help="The RDF syntax, where nothing else tells it.")
]
BaseOption = Annotated[
    str | None, typer.Option("--base", help="What relative IRIs are resolved against.")
]
EntailmentOption = Annotated[
    Literal["rdfs", "none"],
    typer.Option("--entailment", help="none: take publications as they are."),
]
AnnotateOption = Annotated[bool, typer.Option(help="Look for the ontology's labels in feed items.")]

StemOption = Annotated[bool, typer.Option(help="Find labels in other forms, too: plurals, cases.")]


def parse_time(text: str) -> datetime:
    """Read a date or a time as ISO 8601 writes it; one without a zone is in UTC.

    Raises
    ------
    typer.BadParameter
        When it is neither.

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
        raise typer.BadParameter(f"{text!r} is no time such as 2026-01-02T03:04:05Z.") from error
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


NowOption = Annotated[
    datetime | None,
    typer.Option(
        "--now",
        parser=parse_time,
        metavar="DATETIME",
        help="The time of mapping functions and of NOW(), where it is not the machine's.",
    ),
]


@dataclass(frozen=True, slots=True)
class Loading:
    """How the files of an ontology become one, as the command line says it."""

    imports: Annotated[
        Path | None,
        typer.Option(
            help="A folder or an XML catalogue in which owl:imports are found.",
            rich_help_panel=_LOADING,
        ),
    ] = None
    fetch_imports: Annotated[
        bool,
        typer.Option(
            "--fetch-imports",
            help="Read owl:imports that are not there from the network.",
            rich_help_panel=_LOADING,
        ),
    ] = False
    reason: Annotated[
        Literal["hermit", "pellet"] | None,
        typer.Option(
            help="Let an OWL reasoner infer superclasses and types.", rich_help_panel=_LOADING
        ),
    ] = None
    reason_seconds: Annotated[
        float | None,
        typer.Option(
            min=1,
            help="How long the reasoner may take; ten minutes by default.",
            rich_help_panel=_LOADING,
        ),
    ] = None
    taxonomy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI",
            help="A property that orders things as broader does; repeatable.",
            rich_help_panel=_LOADING,
        ),
    ] = None
    nfkc: Annotated[
        bool,
        typer.Option(
            "--nfkc", help="Synonyms in any Unicode form (NFKC).", rich_help_panel=_LOADING
        ),
    ] = False
    casefold: Annotated[
        bool,
        typer.Option(
            "--casefold", help="Synonyms in upper or lower case.", rich_help_panel=_LOADING
        ),
    ] = False
    label_synonyms: Annotated[
        bool,
        typer.Option(
            "--label-synonyms",
            help="The labels of a SKOS concept are synonyms.",
            rich_help_panel=_LOADING,
        ),
    ] = False
    cache: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Where compiled ontologies are kept, instead of the user's cache folder.",
            rich_help_panel=_LOADING,
        ),
    ] = None
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache", help="Keep and use no compiled ontology.", rich_help_panel=_LOADING
        ),
    ] = False


@dataclass(frozen=True, slots=True)
class Seeing:
    """What ``graphmatch ontology`` shows instead of trees and counts."""

    search: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The terms with the text in a label or name."),
    ] = None
    term: Annotated[
        str | None, typer.Option(metavar="TERM", help="All that is known of one term.")
    ] = None
    path: Annotated[
        tuple[str, str] | None,
        typer.Option(metavar="TERM TERM", help="The shortest ways between two terms."),
    ] = None
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Depth, width and labels of each hierarchy.")
    ] = False
    problems: Annotated[
        bool, typer.Option("--problems", help="Only what is wrong, grouped by file.")
    ] = False
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a picture of the terms around --around."),
    ] = None

    def chosen(self) -> tuple[str, ...]:
        """Return the options that were given."""
        return tuple(f"--{f.name}" for f in fields(self) if getattr(self, f.name) != f.default)


def grouped(command: Callable[..., None]) -> Callable[..., None]:
    """Write each parameter of a command that is a group of options as those options.

    Parameters
    ----------
    command
        A function of a module's top level, all of whose parameters are annotated.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Size:
    ...     width: Annotated[int, typer.Option(help="In pixels.")] = 1
    >>> def draw(name: str, size: Size) -> None:
    ...     print(name, size)
    >>> draw.__annotations__["size"] = Size
    >>> list(signature(grouped(draw)).parameters)
    ['name', 'width']
    >>> grouped(draw)(name="a", width=3)
    a Size(width=3)
    """
    hints = get_type_hints(command, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint)}

    @wraps(command)
    def called(**given: Any) -> None:
        made = {
            name: _make(group, {f.name: given.pop(f.name) for f in fields(group)})
            for name, group in groups.items()
        }
        command(**given, **made)

    parameters: list[Parameter] = []
    for parameter in signature(command).parameters.values():
        if parameter.name in groups:
            parameters += _options(groups[parameter.name])
        else:
            parameters.append(parameter.replace(annotation=hints[parameter.name]))
    ordered = _required_first(parameters)
    called.__annotations__ = {p.name: p.annotation for p in ordered} | {"return": None}
    vars(called)["__signature__"] = Signature(ordered)
    return called


def _make(group: Any, values: dict[str, Any]) -> Any:
    return group(**values)


def _options(group: Any) -> list[Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        Parameter(
            f.name,
            Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if f.default is MISSING else f.default,
            annotation=hints[f.name],
        )
        for f in fields(group)
    ]


def _required_first(parameters: Sequence[Parameter]) -> list[Parameter]:
    return sorted(parameters, key=lambda p: p.default is not Parameter.empty)
