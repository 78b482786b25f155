"""``owl:imports``: the documents of an ontology, and those that they import.

An import is looked for among the documents that are there already, then in the folder that the
user names, and, only if asked, at its own address. Each document is read once, however often it is
imported. What is not found is reported and left out.

In a folder the files say themselves what they are called; where none of them says an import's
name, the file is taken whose own name is the last part of it (``…/ns/sosa`` and ``sosa.ttl``).

Source: OWL 2 Structural Specification, section 3.4 (imports closure).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from os.path import realpath
from pathlib import Path
from urllib.parse import unquote

from semantic.errors import InputError, OnProblem, OntologyError, Place, Problem, Severity
from semantic.files import files_in, unreadable
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.documents import Document, fetch_document, read_file
from semantic.syntax import format_of_name

_REMEDY = "Load its file, too, or name a folder that has it; what it says is left out."


def closure(
    given: Sequence[tuple[Path, Document]],
    folder: Folder | None,
    on_problem: OnProblem,
    *,
    may_fetch: bool = False,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Document]:
    """Return documents with all that they import, in the order in which they are found.

    The given ones are those that the user names, each with its file. What is not in the
    `folder` may be fetched if `may_fetch`.

    Raises `InputError` or `OSError` when an imported file is found and cannot be read, and
    `OntologyError` when there are more documents than `Limits.imported_documents`.
    """
    found = _Closure(given, folder, on_problem, may_fetch, limits)
    for importer in found.documents:  # which grows
        for iri in importer.imports:
            found.add(iri, importer)
    return found.documents


class _Closure:
    """Documents, and what is known already of those that they import."""

    def __init__(
        self,
        given: Sequence[tuple[Path, Document]],
        folder: Folder | None,
        on_problem: OnProblem,
        may_fetch: bool,
        limits: Limits,
    ) -> None:
        self._folder, self._may_fetch = folder, may_fetch
        self._on_problem, self._limits = on_problem, limits
        self._most = len(given) + limits.imported_documents
        self.documents = [document for _, document in given]
        self._read_from = {realpath(path) for path, _ in given}
        self._names: set[str] = set()
        for path, document in given:
            self._names.update(map(_key, (*document.names, path.absolute().as_uri())))

    def add(self, iri: str, importer: Document) -> None:
        """Read what an import names, if it has not been read."""
        if _key(iri) in self._names:
            return
        place: Path | str | None = self._folder.find(iri) if self._folder else None
        if place is None and self._may_fetch:
            place = iri
        if place is None:
            why = "it is not where imports are looked for"
            if self._folder is None:
                why = "no folder was named to look in"
            self._report_missing(iri, importer, why)
            return
        name = realpath(place) if isinstance(place, Path) else place
        if name not in self._read_from:
            document = self._read(place, iri, importer)
            if document is None:
                return
            if len(self.documents) >= self._most:
                what = f"more than {self._limits.imported_documents} imported documents"
                remedy = "If you trust them, raise the limit `imported_documents`."
                raise OntologyError(Problem(what, Place(importer.source), remedy))
            self.documents.append(document)
            self._read_from.add(name)
            self._names.update(map(_key, document.names))
        self._names.add(_key(iri))

    def _read(self, place: Path | str, iri: str, importer: Document) -> Document | None:
        """Read a document; what is no RDF at an address is as good as missing."""
        if isinstance(place, Path):
            return read_file(place, self._on_problem, self._limits)
        try:
            return fetch_document(place, self._on_problem, self._limits)
        except InputError as error:
            self._report_missing(iri, importer, error.problem.what)
        return None

    def _report_missing(self, iri: str, importer: Document, reason: str) -> None:
        what = f"it imports <{iri}>, which is missing: {reason}"
        self._on_problem(Problem(what, Place(importer.source), _REMEDY, Severity.WARNING))


# -- where imports lie -----------------------------------------------------------------------


def _key(iri: str) -> str:
    """Return what of an ontology's IRI counts: some write it with a ``#`` or ``/`` at its end."""
    return iri.rstrip("#/")


class Folder:
    """The RDF files of a folder, at any depth, by what they call themselves.

    When the first import is looked for, all its files are read. One that cannot be read is
    reported, and so are two files with one name.
    """

    def __init__(self, path: Path, on_problem: OnProblem, limits: Limits) -> None:
        self._path = path
        self._on_problem = on_problem
        self._limits = limits

    def find(self, iri: str) -> Path | None:
        """Return the file that declares an IRI, or else is named like it."""
        if found := self._declared.get(_key(iri)):
            if len(found) > 1:
                what = f"several files declare <{iri}>: {', '.join(map(str, found))}"
                remedy = "The first was used: keep one."
                self._on_problem(Problem(what, Place(str(found[0])), remedy, Severity.WARNING))
            return found[0]
        return self._named.get(unquote(_key(iri).rpartition("/")[2].rpartition("#")[2]))

    @cached_property
    def _files(self) -> list[Path]:
        files = []
        for file in files_in(self._path, self._tell_skipped):
            if format_of_name(file.name) is None and file.suffix.lower() != ".xml":
                continue
            try:
                file.stat()
            except OSError as error:  # a link that leads nowhere
                self._tell_skipped(unreadable(str(file), error))
            else:
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
            for name in dict.fromkeys(map(_key, self._names(file))):
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
