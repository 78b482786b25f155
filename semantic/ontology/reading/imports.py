"""``owl:imports``: the documents of an ontology, and those that they import.

An import is looked for among the documents that are there already, then where the user says
(`Places`), and, only if asked, at its own address. Each document is read once, however often it
is imported. What is not found is reported and left out; so is a loop, which harms nobody but is
seldom meant.

Source: OWL 2 Structural Specification, section 3.4 (imports closure).
"""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Sequence
from os.path import realpath
from pathlib import Path

from semantic.errors import InputError, OnProblem, OntologyError, Place, Problem, Severity
from semantic.files import is_folder
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.reading.catalogue import Folder, Places, key, rdf_files, read_catalogue
from semantic.ontology.reading.documents import Document, read_document, read_file

_REMEDY = "Load its file, too, or name a folder or catalogue that has it; what it says is left out."


def places_of(path: Path, on_problem: OnProblem, limits: Limits = DEFAULT_LIMITS) -> Places:
    """Return where imports lie: a folder, or what a catalogue says.

    Raises
    ------
    InputError
        When a catalogue cannot be understood.
    OSError
        When there is no such thing.
    """
    return Folder(path, on_problem, limits) if is_folder(path) else read_catalogue(path, limits)


def importable(path: Path, limits: Limits = DEFAULT_LIMITS) -> list[Path]:
    """Return the files that an import may come from, without reading them.

    Raises
    ------
    InputError, OSError
        As `places_of`.
    """
    return rdf_files(path) if is_folder(path) else read_catalogue(path, limits).files()


class Closure:
    """An ontology's documents with all that they import.

    Parameters
    ----------
    given
        The documents that the user names, each with its file.
    places
        Where imports are looked for.
    may_fetch
        Whether what is not there may be fetched.

    Attributes
    ----------
    documents
        Those that were given, and then those imported, in the order in which they were found.
    fetched
        The addresses that were fetched.

    Raises
    ------
    InputError
        When an imported file is found and cannot be read.
    OSError
        The same.
    OntologyError
        When there are more documents than `Limits.imported_documents`.
    """

    def __init__(
        self,
        given: Sequence[tuple[Path, Document]],
        places: Places | None,
        on_problem: OnProblem,
        *,
        may_fetch: bool = False,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._places = places
        self._may_fetch = may_fetch
        self._on_problem = on_problem
        self._limits = limits
        self._given = len(given)
        self.documents = [document for _, document in given]
        self.fetched: list[str] = []
        self._by_place: dict[str, int] = {}
        self._by_name: dict[str, int] = {}
        for number, (path, document) in enumerate(given):
            self._by_place.setdefault(realpath(path), number)
            self._note_names((*document.names, path.absolute().as_uri()), number)
        self._imports: list[list[int]] = []
        self._follow()
        self._report_loops()

    def _note_names(self, names: Iterable[str], number: int) -> None:
        for name in names:
            self._by_name.setdefault(key(name), number)

    def _follow(self) -> None:
        pending = deque(range(len(self.documents)))
        while pending:
            importer = self.documents[pending.popleft()]
            found: list[int] = []
            for iri in importer.imports:
                known = len(self.documents)
                number = self._number(iri, importer)
                if number is not None:
                    found.append(number)
                    pending.extend(range(known, len(self.documents)))
            self._imports.append(found)

    def _number(self, iri: str, importer: Document) -> int | None:
        """Return which document an import is; it is read where it has not been."""
        if (number := self._by_name.get(key(iri))) is not None:
            return number
        place = self._places.find(iri) if self._places else None
        if place is None and self._may_fetch:
            place = iri
        if place is None:
            self._report_missing(iri, importer, self._why())
            return None
        name = realpath(place) if isinstance(place, Path) else place
        if (number := self._by_place.get(name)) is None:
            document = self._read(place, iri, importer)
            if document is None:
                return None
            self._check_number(importer)
            number = len(self.documents)
            self.documents.append(document)
            self._by_place[name] = number
            self._note_names(document.names, number)
        self._by_name[key(iri)] = number
        return number

    def _read(self, place: Path | str, iri: str, importer: Document) -> Document | None:
        if isinstance(place, Path):
            if place.is_file():
                return read_file(place, self._on_problem, self._limits)
            kind = "regular file" if place.exists() else "file"
            self._report_missing(iri, importer, f"there is no {kind} {place}")
        elif not self._may_fetch:
            self._report_missing(iri, importer, f"it lies at {place}, and nothing is fetched")
        else:
            return self._fetch(place, iri, importer)
        return None

    def _fetch(self, address: str, iri: str, importer: Document) -> Document | None:
        """Read what lies at an address; what is no RDF there is as good as missing."""
        from semantic.ontology.reading.fetch import fetch  # brings the network's modules

        self.fetched.append(address)
        try:
            got = fetch(address, self._limits)
            return read_document(
                io.BytesIO(got.data),
                address,
                on_problem=self._on_problem,
                limits=self._limits,
                syntax=got.syntax,
                base_iri=got.address,
            )
        except InputError as error:
            self._report_missing(iri, importer, error.problem.what)
            return None

    def _why(self) -> str:
        if self._places is None:
            return "no folder or catalogue was named to look in"
        return "it is not where imports are looked for"

    def _report_missing(self, iri: str, importer: Document, reason: str) -> None:
        what = f"it imports <{iri}>, which is missing: {reason}"
        self._on_problem(Problem(what, Place(importer.source), _REMEDY, Severity.WARNING))

    def _check_number(self, importer: Document) -> None:
        limit = self._limits.imported_documents
        if len(self.documents) - self._given >= limit:
            what = f"more than {limit} imported documents"
            remedy = "If you trust them, raise the limit `imported_documents`."
            raise OntologyError(Problem(what, Place(importer.source), remedy))

    def _report_loops(self) -> None:
        for loop in _loops(self._imports):
            names = [self.documents[number].source for number in (*loop, loop[0])]
            what = f"an import loop: {' imports '.join(names)}"
            remedy = "Each was read once; remove one of the imports if the loop was not meant."
            self._on_problem(Problem(what, Place(names[0]), remedy, Severity.WARNING))


def _loops(imports: list[list[int]]) -> list[list[int]]:
    """Return one loop of each group of documents that import each other, the first first."""
    if not any(imports):
        return []
    import networkx as nx

    graph = nx.DiGraph((one, other) for one, others in enumerate(imports) for other in others)
    found = []
    for group in nx.strongly_connected_components(graph):
        first = min(group)
        if back := sorted(set(graph[first]) & group):
            way: list[int] = nx.shortest_path(graph.subgraph(group), back[0], first)
            found.append([first, *way[:-1]])
    return sorted(found)
