"""Resolve ``owl:imports``: read an ontology's documents and their imports, transitively.

An import is searched for among the loaded documents, then in the user's folder. Nothing is fetched
from the network. Each document is read once, even if several documents import it. A missing import
is reported and left out.

In a folder, an import matches a file that declares its IRI. If no file declares it, the file named
after the last part of the IRI is used (``sosa.ttl`` for ``…/ns/sosa``).

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
from semantic.ontology.documents import OntologyDocument, read_file
from semantic.syntax_detection import format_of_name

_REMEDY = "Its statements are left out. Load its file, too, or name a folder that has it."


def imports_closure(
    given: Sequence[tuple[Path, OntologyDocument]],
    folder: Folder | None,
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
) -> list[OntologyDocument]:
    """Return documents with all their imports, in order of discovery.

    `given` are the user's documents, each with its file.

    Raise `InputError` or `OSError` if an imported file is found but cannot be read, and
    `OntologyError` if there are more imported documents than `Limits.imported_documents`.
    """
    found = _Closure(given, folder, on_problem, limits)
    for importer in found.documents:  # The loop appends to this list.
        for iri in importer.imports:
            found.add(iri, importer)
    return found.documents


class _Closure:
    """The documents read so far, and the search for their imports."""

    def __init__(
        self,
        given: Sequence[tuple[Path, OntologyDocument]],
        folder: Folder | None,
        on_problem: OnProblem,
        limits: Limits,
    ) -> None:
        self._folder, self._on_problem, self._limits = folder, on_problem, limits
        self._most = len(given) + limits.imported_documents
        self.documents = [document for _, document in given]
        self._read_from = {realpath(path) for path, _ in given}
        self._names: set[str] = set()
        for path, document in given:
            self._names.update(map(_key, (*document.names, path.absolute().as_uri())))

    def add(self, iri: str, importer: OntologyDocument) -> None:
        """Find and read an imported document, and append it to `documents`; report a missing one.

        Do nothing if it was read before. Raise `OntologyError` if there are too many documents.
        """
        if _key(iri) in self._names:
            return
        place = self._folder.find(iri) if self._folder else None
        if place is None:
            why = "no file in the folder of imports declares it"
            if self._folder is None:
                why = "no folder of imports was given"
            what = f"it imports <{iri}>, which is missing: {why}"
            self._on_problem(Problem(what, Place(importer.source), _REMEDY, Severity.WARNING))
            return
        name = realpath(place)
        if name not in self._read_from:
            document = read_file(place, self._on_problem, self._limits)
            if len(self.documents) >= self._most:
                what = f"more than {self._limits.imported_documents} imported documents"
                remedy = "If you trust them, raise the limit `imported_documents`."
                raise OntologyError(Problem(what, Place(importer.source), remedy))
            self.documents.append(document)
            self._read_from.add(name)
            self._names.update(map(_key, document.names))
        self._names.add(_key(iri))


# -- locations of imports --------------------------------------------------------------------


def _key(iri: str) -> str:
    """Return an ontology's IRI without a final ``#`` or ``/``, because some documents add one."""
    return iri.rstrip("#/")


class Folder:
    """Finds the RDF file in a folder, at any depth, that declares an IRI.

    The first search reads all files, and reports unreadable ones. If several files declare an IRI,
    they are reported when it is searched for.
    """

    def __init__(self, path: Path, on_problem: OnProblem, limits: Limits) -> None:
        self._path = path
        self._on_problem = on_problem
        self._limits = limits

    def find(self, iri: str) -> Path | None:
        """Return the file that declares an IRI, otherwise a file named after it, or ``None``.

        If several files declare it, report them, and return the first.
        """
        if found := self._declared.get(_key(iri)):
            if len(found) > 1:
                what = f"several files declare <{iri}>: {', '.join(map(str, found))}"
                remedy = "The first was used. Keep one of them."
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
            except OSError as error:  # The link is broken.
                self._tell_skipped(unreadable(str(file), error))
            else:
                files.append(file)
        return files

    def _tell_skipped(self, problem: Problem) -> None:
        if problem.severity is not Severity.WARNING:
            what = f"not searched for imports: {problem.what}"
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
            if file.suffix.lower() != ".xml":  # An .xml file need not be an ontology.
                what = f"not searched for imports: {problem.what}"
                remedy = "It is found by its file name only. Correct it, or remove it."
                self._on_problem(Problem(what, problem.where, remedy, Severity.WARNING))
        return ()
