"""``graphmatch ontology``: what an ontology holds."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from rich.text import Text

from graphmatch.command.console import plural, reader_language, styled
from graphmatch.command.counts import count_all, count_line, problem_as_json, shape_as_json
from graphmatch.command.describe import Description
from graphmatch.command.extras import extra_lines, extras_as_json
from graphmatch.command.find import Found, resolve, search
from graphmatch.command.options import Loading, Seeing
from graphmatch.command.session import Session
from graphmatch.command.statistics import Shape, declared_taxonomies
from graphmatch.command.tree import Tree
from graphmatch.command.view import View, named
from graphmatch.command.ways import Way, ways
from semantic.errors import GraphMatchError, InputError, Place, Problem, Severity

FOUND = 40
"""How many terms of a search are shown as text."""
WAYS = 20
"""How many ways between two terms are shown."""

_SEVERITIES = (
    (Severity.REFUSED, "refused", "refused"),
    (Severity.WARNING, "warning", "warnings"),
)


def run(
    files: Sequence[Path],
    loading: Loading,
    seeing: Seeing,
    depth: int,
    around: str | None,
    radius: int,
    *,
    json: bool,
) -> int:
    """Load, show; return the exit status."""
    session = Session(quiet=seeing.problems)
    try:
        _check(seeing, around)
        view = View(session.ontology(files, loading), reader_language(os.environ))
        shown = _Shown(session, view, json=json)
        if seeing.search is not None:
            shown.search(seeing.search)
        elif seeing.term is not None:
            shown.term(seeing.term)
        elif seeing.path is not None:
            shown.path(*seeing.path)
        elif seeing.statistics:
            shown.statistics()
        elif seeing.problems:
            shown.problems()
        elif seeing.svg is not None and around is not None:
            shown.picture(seeing.svg, around, radius)
        else:
            shown.trees(depth)
    except GraphMatchError as error:
        return session.fail(error)
    return session.status


def _check(seeing: Seeing, around: str | None) -> None:
    chosen = seeing.chosen()
    if len(chosen) > 1:
        what, remedy = f"{' and '.join(chosen)} are given together", "Give one of them."
        raise InputError(Problem(what, Place(chosen[-1]), remedy))
    if (seeing.svg is None) != (around is None):
        what, place = "--svg and --around need each other", Place("--svg")
        remedy = "Name the file with --svg, and the term in its middle with --around."
        raise InputError(Problem(what, place, remedy))


class _Shown:
    """One way to look at an ontology, as text or as JSON."""

    def __init__(self, session: Session, view: View, *, json: bool) -> None:
        self._session = session
        self._view = view
        self._json = json
        self._print = session.out.print
        self._write = session.out.write_json

    def trees(self, depth: int) -> None:
        """Show the hierarchies and the counts."""
        counts = count_all(self._view, self._session.problems)
        if self._json:
            self._write(counts | extras_as_json(self._view))
            return
        for kind, taxonomy in self._view.taxonomies.items():
            if any(named(taxonomy)):
                self._print(styled((kind, "bold")))
                for line in Tree(taxonomy, self._view, depth).lines():
                    self._print(line)
        for line in extra_lines(self._view):
            self._print(line)
        for name, count in counts.items():
            self._print(count_line(name, count))

    def search(self, text: str) -> None:
        """Show the terms that a text is found in."""
        found = search(self._view, text)
        if self._json:
            for each in found:
                self._write(self._found_as_json(each))
            return
        for each in found[:FOUND]:
            self._print(self._found(each))
        if len(found) > FOUND:
            self._print(styled((f"… and {len(found) - FOUND:,} more", "dim")))
        self._session.err.print(f"{plural(len(found), 'term')} found")

    def _found(self, found: Found) -> Text:
        view, term = self._view, found.term
        says = [", ".join(view.kinds(term))]
        if parents := view.parents(term):
            says.append("under " + " and ".join(map(view.compact, parents)))
        if below := view.count_below(term):
            says.append(f"{below:,} below")
        shown = (f"  {found.name}", "green")
        return styled(view.compact(term), shown, ("  " + ", ".join(says), "dim"))

    def _found_as_json(self, found: Found) -> dict[str, object]:
        return {
            "term": str(found.term),
            "name": found.name.text,
            "language": found.name.language,
            "found": found.how,
            "kinds": list(self._view.kinds(found.term)),
            "parents": list(map(str, self._view.parents(found.term))),
            "below": self._view.count_below(found.term),
        }

    def term(self, text: str) -> None:
        """Show all that is known of a term."""
        description = Description.of(self._view, resolve(self._view, text))
        if self._json:
            self._write(description.as_json())
            return
        for line in description.lines(self._view):
            self._print(line)

    def path(self, one: str, other: str) -> None:
        """Show the shortest ways between two terms."""
        start, end = resolve(self._view, one), resolve(self._view, other)
        found = list(islice(ways(start, end, self._view.parents), WAYS + 1))
        for way in found[:WAYS]:
            if self._json:
                self._write(
                    {
                        "terms": list(map(str, way.terms)),
                        "meet": str(way.meet),
                        "steps": len(way.terms) - 1,
                    }
                )
            else:
                self._print(self._way(way))
        if len(found) > WAYS:
            self._session.err.print("There are more ways.")
        if not found:
            names = self._view.compact(start), self._view.compact(end)
            self._session.err.print(styled(f"Nothing is above both {names[0]} and {names[1]}."))

    def _way(self, way: Way) -> Text:
        parts: list[str | tuple[str, str]] = []
        for place, term in enumerate(way.terms):
            if place:
                pair = way.terms[place - 1], term
                lower, upper = pair if place <= way.top else pair[::-1]
                is_type = upper in self._view.types(lower)
                up, down = ("∈", "∋") if is_type else ("⊑", "⊒")
                parts.append((f" {up if place <= way.top else down} ", "dim"))
            name = self._view.compact(term)
            parts.append((name, "bold") if place == way.top else name)
        return styled(*parts)

    def statistics(self) -> None:
        """Show the shape of each hierarchy, and counts."""
        shapes = {kind: Shape.of(t) for kind, t in self._view.taxonomies.items()}
        declared = declared_taxonomies(self._view)
        if self._json:
            counts = count_all(self._view, self._session.problems) | extras_as_json(self._view)
            several = {kind: shape_as_json(shape) for kind, shape in shapes.items()}
            self._write({**counts, "shape": several, "taxonomies": list(map(str, declared))})
            return
        for kind, shape in shapes.items():
            if shape.terms:
                self._print(styled((kind, "bold")))
                for line in self._shape(shape):
                    self._print(line)
        self._print(styled(("all", "bold")))
        for name, count in count_all(self._view, self._session.problems).items():
            if name not in shapes and not name.endswith("links"):
                self._print(count_line(name, count))
        if declared:
            listed = ", ".join(map(self._view.compact, declared))
            self._print(styled(f"          declared taxonomies: {listed}"))

    def _shape(self, shape: Shape) -> Iterator[Text]:
        yield count_line("named terms", shape.terms)
        yield count_line("is-a links", shape.links)
        yield count_line("tops", shape.tops)
        yield count_line("leaves", shape.leaves)
        yield count_line("with several parents", shape.several_parents)
        yield count_line("depth", shape.depth)
        width, level = shape.widest
        yield count_line(f"on the widest level, {level}", width)
        if shape.most_children is not None:
            term, children = shape.most_children
            yield count_line(f"children at most, of {self._view.compact(term)}", children)

    def problems(self) -> None:
        """Show what is wrong, grouped by severity and file."""
        problems = self._session.problems
        if self._json:
            for problem in problems:
                self._write(problem_as_json(problem))
            return
        for severity, one, more in _SEVERITIES:
            several = [problem for problem in problems if problem.severity is severity]
            for source in dict.fromkeys(problem.where.source for problem in several):
                here = [problem for problem in several if problem.where.source == source]
                self._print(styled((source, "bold"), f"  {plural(len(here), one, more)}"))
                for problem in here:
                    where = str(problem.where)[len(source) :].lstrip(": ")
                    text = f"{problem.what}. {problem.remedy}"
                    self._print(styled(f"  {where}: {text}" if where else f"  {text}"))
        self._session.err.print(f"{plural(len(problems), 'problem')}")

    def picture(self, file: Path, around: str, radius: int) -> None:
        """Write a picture of a term's neighbourhood."""
        from graphmatch.command.neighbourhood import neighbourhood
        from graphmatch.command.picture import draw

        shown = neighbourhood(self._view, resolve(self._view, around), radius)
        try:
            file.write_text(draw(shown), encoding="utf-8")
        except OSError as error:
            what, remedy = f"the picture cannot be written: {error.strerror}", "Name another file."
            raise InputError(Problem(what, Place(str(file)), remedy)) from error
        if self._json:
            self._write({"file": str(file), "terms": [str(box.term) for box in shown.boxes]})
            return
        self._print(styled(f"{file}: {plural(len(shown.boxes), 'term')} shown"))
