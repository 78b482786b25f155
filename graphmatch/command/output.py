"""Output of matches: text for people, JSON Lines or CSV for machines."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pyoxigraph import BlankNode, Literal, NamedNode
from rich.text import Text

from graphmatch.console import CommandConsole, styled, to_json
from graphmatch.engine import Engine
from graphmatch.explain.evidence import Evidence, distinct_reasons
from graphmatch.report import Match, shorten
from semantic.errors import InputError, Place, Problem
from semantic.files import replacing
from semantic.html import visible
from semantic.publication import Publication
from semantic.terms import Term
from semantic.vocabulary import DC, DCTERMS, LABEL, RSS, TYPE, XSD

_TITLES = (RSS["title"], DCTERMS["title"], DC["title"], LABEL)
_DATES = (DC["date"], DCTERMS["date"], DCTERMS["issued"], DCTERMS["modified"])
_COLUMNS = ("subscription", "title", "link", "date", "publication", "guid", "source")
_FORMULA = ("=", "+", "-", "@")
"""A spreadsheet reads cells with these prefixes as formulas."""
SHOWN = 5
"""The maximum number of solutions and constructed triples of a match in text output."""
TITLE = 200
"""The maximum length of a title in text output."""


@dataclass(frozen=True, slots=True)
class PublicationSummary:
    """Title, link, date and guid that a publication states; ``None`` for missing ones."""

    title: str | None
    link: str | None
    date: str | None
    guid: str | None


def described(publication: Publication) -> PublicationSummary:
    """Return title, link, date and guid of a publication.

    They are those of its only feed item, otherwise of its subject. If that has no title, a title
    that is the only one in the publication is used.

    Examples
    --------
    >>> item = NamedNode("https://e.org/1")
    >>> triples = [(item, TYPE, RSS["item"]), (item, RSS["title"], Literal("Soup"))]
    >>> described(Publication.of("https://e.org/1#item-2", triples)).title
    'Soup'
    """
    items = [s for s, p, o in publication.triples if p == TYPE and o == RSS["item"]]
    about = items[0] if len(items) == 1 else publication.graph_name()
    own: dict[Term, Term] = {}
    for subject, property_, object_ in publication.triples:
        if subject == about:
            own.setdefault(property_, object_)
    title = next((own[p] for p in _TITLES if p in own), None) or _only_title(publication)
    date = next((own[p] for p in _DATES if p in own), None)
    return PublicationSummary(
        " ".join(_text(title).split()) if isinstance(title, Literal) else None,
        _text(own.get(RSS["link"])) or None,
        _text(date) or None,
        _text(own.get(DCTERMS["identifier"])) or None,
    )


def _only_title(publication: Publication) -> Term | None:
    for property_ in _TITLES:
        titles = [o for _, p, o in publication.triples if p == property_]
        if len(titles) == 1:
            return titles[0]
    return None


def _text(term: Term | None) -> str:
    return term.value if isinstance(term, Literal | NamedNode) else ""


# --- Forms ---------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Alert:
    """The matches of a publication; for a feed item, also those of its copies in other sources.

    `names` are the names of the publication and its copies, and `evidence` has the reasons of the
    matches, by the id of the subscription.
    """

    publication: Publication
    names: set[str] = field(default_factory=set)
    matches: list[Match] = field(default_factory=list)
    evidence: dict[str, Sequence[Evidence]] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)


class Writer:
    """Writes alerts to a console as they arrive; subclasses define the output format."""

    def __init__(self, console: CommandConsole) -> None:
        self._console = console

    def write(self, alert: Alert) -> None:
        """Write the matches of one publication, with their reasons."""
        for match in alert.matches:
            self.write_row(as_json(alert, match))

    def write_row(self, row: Mapping[str, Any]) -> None:
        """Write one match, a result of `as_json`; subclasses override it or `write`."""


class TextWriter(Writer):
    """Writes matches as text for people: a publication's title and link, then its matches."""

    def __init__(self, console: CommandConsole, engine: Engine) -> None:
        super().__init__(console)
        self._engine = engine

    def write(self, alert: Alert) -> None:
        """Write the matches of one publication, with their reasons."""
        self._console.print(Text("\n").join(self.lines(alert)))

    def lines(self, alert: Alert) -> list[Text]:
        """Return the lines for one publication and its matches, the last one empty."""
        item, prefixes = described(alert.publication), self._engine.ontology.prefixes
        lines = [styled((shorten(item.title or alert.publication.id, TITLE), "bold"))]
        if item.title is not None:
            lines.append(styled("  ", (item.link or alert.publication.id, "blue")))
        if len(alert.sources) > 1:
            lines.append(styled("  in ", ", ".join(alert.sources)))
        for match in alert.matches:
            comment = self._engine.subscription(match.subscription).comment
            about = f"  {_sentence(comment)}" if comment else ""
            lines.append(styled("  ", (f"▸ {match.subscription}", "green"), (about, "dim")))
            bindings = match.lines(prefixes)
            lines += (styled(f"      {line}") for line in bindings[:SHOWN])
            if len(bindings) > SHOWN:
                lines.append(styled(f"      … and {len(bindings) - SHOWN} more"))
            because = distinct_reasons(alert.evidence[match.subscription])
            lines += (styled("      ", (f"because {reason}", "dim")) for reason in because)
        return [*lines, Text()]


class JsonLinesWriter(Writer):
    """Writes one JSON object per line and match; docs/reference/command.md has the keys."""

    def write_row(self, row: Mapping[str, Any]) -> None:
        """Write one match as a line of JSON."""
        self._console.write_json(row)


class CsvWriter(Writer):
    """Writes one CSV row per match. Cells contain no line ends and no formulas of spreadsheets."""

    _is_empty = True

    def write_row(self, row: Mapping[str, Any]) -> None:
        """Write one match, and before the first the column names."""
        if self._is_empty:
            self._write((*_COLUMNS, "sources", "solutions", "because"))
        self._is_empty = False
        cells = [str(row[name] or "") for name in _COLUMNS]
        cells += ["; ".join(row["sources"]), to_json(row["solutions"]), "; ".join(row["because"])]
        self._write(cells)

    def _write(self, cells: Sequence[str]) -> None:
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(map(_cell, cells))
        self._console.write_text(line.getvalue())


def _cell(text: str) -> str:
    shown = visible(text)
    return f"'{shown}" if shown.startswith(_FORMULA) else shown


def writer(form: str, console: CommandConsole, engine: Engine) -> Writer:
    """Return the writer for an output format: ``text``, ``jsonl`` or ``csv``."""
    match form:
        case "jsonl":
            return JsonLinesWriter(console)
        case "csv":
            return CsvWriter(console)
    return TextWriter(console, engine)


@contextmanager
def written(path: Path | None, console: CommandConsole) -> Iterator[CommandConsole]:
    """Yield a console for results: `console`, or if `path` is given, one that writes a file.

    The file replaces `path` if the block ends without an error. Raise `InputError` if it cannot be
    written.
    """
    if path is None:
        yield console
        console.file.flush()
        return
    try:
        with replacing(path) as file:
            text = io.TextIOWrapper(file, "utf-8", errors="backslashreplace", newline="")
            yield CommandConsole(file=text)
            text.detach()  # This flushes the text, too.
    except OSError as error:
        what = f"cannot be written: {error.strerror or error}"
        remedy = "Check the name, the permissions and the free disk space."
        raise InputError(Problem(what, Place(str(path)), remedy)) from error


# --- As text -------------------------------------------------------------------------------------


def _sentence(comment: str) -> str:
    found = re.match(r".*?[.?!](?=\s|$)", comment)
    return found[0] if found else comment


# --- As JSON -------------------------------------------------------------------------------------


def as_json(alert: Alert, match: Match) -> dict[str, object]:
    """Return one match as a row for JSON, with terms as in SPARQL results."""
    return {
        "publication": alert.publication.id,
        **asdict(described(alert.publication)),
        "source": str(alert.publication.source),
        "sources": alert.sources,
        "subscription": match.subscription,
        "solutions": [_terms(solution) for solution in match.solutions],
        "graph": match.graph and [f"{' '.join(map(str, triple))} ." for triple in match.graph],
        "because": distinct_reasons(alert.evidence[match.subscription]),
    }


def _terms(solution: Mapping[str, Term]) -> dict[str, dict[str, Any]]:
    return {name: term_as_json(term) for name, term in solution.items()}


def term_as_json(term: Term) -> dict[str, Any]:
    """Return a term as in SPARQL results JSON.

    Examples
    --------
    >>> term_as_json(Literal("Klima", language="de"))
    {'type': 'literal', 'value': 'Klima', 'xml:lang': 'de'}

    References
    ----------
    SPARQL 1.1 Query Results JSON Format, section 3.2.2; SPARQL 1.2 for triple terms and directions.
    """
    match term:
        case NamedNode():
            return {"type": "uri", "value": term.value}
        case BlankNode():
            return {"type": "bnode", "value": term.value}
        case Literal():
            shown: dict[str, Any] = {"type": "literal", "value": term.value}
            if term.language is not None:
                shown["xml:lang"] = term.language
                if term.direction is not None:
                    shown["its:dir"] = term.direction.value
            elif term.datatype != XSD["string"]:
                shown["datatype"] = term.datatype.value
            return shown
    places = ("subject", "predicate", "object")
    return {
        "type": "triple",
        "value": {place: term_as_json(getattr(term, place)) for place in places},
    }
