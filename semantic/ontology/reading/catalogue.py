"""Where imported ontologies lie: an XML catalogue, or a folder that is looked through.

A catalogue is what Protégé writes beside an ontology as ``catalog-v001.xml``: elements `uri`, in
groups or not, that give a name the place it is to be read from, relative to the catalogue.
`nextCatalog`, `rewriteURI` and `delegateURI` are not read.

In a folder the files say themselves what they are called; where none of them says an import's
name, the file is taken whose own name is the last part of it (``…/ns/sosa`` and ``sosa.ttl``).

Source: OASIS, XML Catalogs Version 1.1, section 4 (2005).
"""

from __future__ import annotations

import stat
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from os.path import realpath
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname
from xml.etree import ElementTree

from semantic.errors import InputError, OnProblem, Place, Problem, Severity
from semantic.files import files_in, unreadable
from semantic.guards import check_xml, decode_xml
from semantic.limits import Limits
from semantic.ontology.reading.documents import read_file
from semantic.syntax import format_of_name

_NAMESPACE = "{urn:oasis:names:tc:entity:xmlns:xml:catalog}"
_BASE = "{http://www.w3.org/XML/1998/namespace}base"
_REMEDY = "Correct the catalogue, or name a folder that has the imported files."


class Places(Protocol):
    """What knows where imported ontologies lie."""

    def find(self, iri: str) -> Path | str | None:
        """Return the file, or the address, from which an ontology is to be read."""


def key(iri: str) -> str:
    """Return what of an ontology's IRI counts: some write it with a ``#`` or ``/`` at its end."""
    return iri.rstrip("#/")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """The places that an XML catalogue gives."""

    path: Path
    places: dict[str, Path | str]

    def find(self, iri: str) -> Path | str | None:
        """Return the file, or the address, that the catalogue gives for an IRI."""
        return self.places.get(iri) or self.places.get(key(iri))

    def files(self) -> list[Path]:
        """Return the catalogue and the files it names."""
        return [self.path, *(place for place in self.places.values() if isinstance(place, Path))]


def read_catalogue(path: Path, limits: Limits) -> Catalogue:
    """Read an XML catalogue. Of two places for one name the first holds.

    Raises
    ------
    InputError
        When it is none.
    OSError
        When the system refuses.
    """
    data = path.read_bytes()
    fault = check_xml(data, str(path), limits)
    if fault is not None:
        place = Place(str(path), fault.lineno, fault.offset + 1)
        raise InputError(Problem(f"not an XML catalogue: {fault}", place, _REMEDY))
    try:
        text = decode_xml(data)
    except (UnicodeDecodeError, LookupError) as error:
        problem = Problem(f"not an XML catalogue: {error}", Place(str(path)), _REMEDY)
        raise InputError(problem) from error
    root = ElementTree.fromstring(text)  # noqa: S314 -- check_xml has looked through it
    if root.tag != f"{_NAMESPACE}catalog":
        what = f"not an XML catalogue: its root is <{root.tag.rpartition('}')[2]}>"
        raise InputError(Problem(what, Place(str(path)), _REMEDY))
    places: dict[str, Path | str] = {}
    for name, found in _entries(root, Path(realpath(path)).as_uri(), str(path)):
        places.setdefault(name, found)
        places.setdefault(key(name), found)
    return Catalogue(path, places)


def _entries(
    element: ElementTree.Element, base: str, source: str
) -> Iterator[tuple[str, Path | str]]:
    base = _join(base, element.get(_BASE, ""), source)
    for child in element:
        if child.tag == f"{_NAMESPACE}group":
            yield from _entries(child, base, source)
        elif child.tag == f"{_NAMESPACE}uri":
            name, place = child.get("name"), child.get("uri")
            if name and place:
                own = _join(base, child.get(_BASE, ""), source)
                yield name, _place(_join(own, place, source), source)


def _join(base: str, address: str, source: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError as error:
        raise _no_place(address, str(error), source) from error


def _place(address: str, source: str) -> Path | str:
    parts = urlsplit(address)  # which urljoin has split already
    if parts.scheme != "file":
        return address
    if parts.netloc not in ("", "localhost"):
        raise _no_place(address, f"the file lies on another machine, {parts.netloc}", source)
    name = url2pathname(parts.path)
    if "\0" in name:
        raise _no_place(address, "a file name has no null character", source)
    return Path(name)


def _no_place(address: str, reason: str, source: str) -> InputError:
    what = f"the catalogue gives {address!r}, which is no place to read from: {reason}"
    return InputError(Problem(what, Place(source), _REMEDY))


class Folder:
    """The RDF files of a folder, at any depth, by what they call themselves.

    Parameters
    ----------
    path
        The folder. When the first import is looked for, all its files are read.
    on_problem
        Called with each file that cannot be read, and when two files have one name.
    """

    def __init__(self, path: Path, on_problem: OnProblem, limits: Limits) -> None:
        self._path = path
        self._on_problem = on_problem
        self._limits = limits

    def find(self, iri: str) -> Path | str | None:
        """Return the file that declares an IRI, or else is named like it."""
        if found := self._declared.get(key(iri)):
            if len(found) > 1:
                self._tell_several(iri, found)
            return found[0]
        return self._named.get(unquote(key(iri).rpartition("/")[2].rpartition("#")[2]))

    @cached_property
    def _files(self) -> list[Path]:
        files = []
        for file in filter(_is_rdf, files_in(self._path, self._tell_skipped)):
            try:
                regular = stat.S_ISREG(file.stat().st_mode)
            except OSError as error:  # a link that leads nowhere
                self._tell_skipped(unreadable(str(file), error))
            else:
                if regular:
                    files.append(file)
        return files

    def _tell_skipped(self, problem: Problem) -> None:
        if problem.severity is not Severity.WARNING:
            what = f"not looked through for imports: {problem.what}"
            problem = replace(problem, what=what, severity=Severity.WARNING)
        self._on_problem(problem)

    @cached_property
    def _named(self) -> dict[str, Path]:
        named: dict[str, Path] = {}
        for file in self._files:
            named.setdefault(file.name, file)
            named.setdefault(file.stem, file)
        return named

    @cached_property
    def _declared(self) -> dict[str, list[Path]]:
        declared: defaultdict[str, list[Path]] = defaultdict(list)
        for file in self._files:
            for name in dict.fromkeys(map(key, self._names(file))):
                declared[name].append(file)
        return declared

    def _names(self, file: Path) -> tuple[str, ...]:
        try:
            return read_file(file, lambda _: None, self._limits).names
        except (InputError, OSError) as error:
            problem = (
                error.problem if isinstance(error, InputError) else unreadable(str(file), error)
            )
            if file.suffix.lower() != ".xml":  # which may be anything
                what = f"not looked through for imports: {problem.what}"
                remedy = "It is used by its file name only; correct it, or take it away."
                self._on_problem(Problem(what, problem.where, remedy, Severity.WARNING))
        return ()

    def _tell_several(self, iri: str, found: list[Path]) -> None:
        what = f"several files declare <{iri}>: {', '.join(map(str, found))}"
        remedy = "The first was used: keep one, or name a catalogue."
        self._on_problem(Problem(what, Place(str(found[0])), remedy, Severity.WARNING))


def rdf_files(path: Path) -> list[Path]:
    """Return the files of a folder that may be imported, and links that lead nowhere."""
    return [file for file in files_in(path, lambda _: None) if _is_rdf(file)]


def _is_rdf(file: Path) -> bool:
    return format_of_name(file.name) is not None or file.suffix.lower() == ".xml"
