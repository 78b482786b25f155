"""Class membership of a publication's individuals, computed by an OWL reasoner.

HermiT or Pellet decides whether an individual has a class, given the ontology and the publication's
stated triples. Java starts at the first call and keeps the ontology loaded. Each publication is
a small ontology that imports it, and gets its own reasoner. py4j connects to Java on a local port
with a token. No other ontology is imported.

Cost: 1 to 4 s for the first publication. Each later one takes 10 to 50 ms with a small ontology,
because the reasoner prepares the whole ontology again. Each further call takes 1 to 5 ms.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import files
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Lock, Timer
from time import perf_counter
from typing import Any
from weakref import finalize

from pyoxigraph import BlankNode, Literal, NamedNode

from graphmatch.operators.operator import SECONDS, Operator, needed
from semantic.errors import OntologyError, Place, Problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.reasoner import ReasonerName, class_path, java_program
from semantic.publication import Publication
from semantic.terms import Term, Triple, written
from semantic.vocabulary import OP, OWL, RDF, TYPE

_ONTOLOGY, _PUBLICATION = "urn:graphmatch:ontology", "urn:graphmatch:publication"
_BLANK = "urn:graphmatch:blank:"
_LEFT_OUT = frozenset({OWL["imports"], OWL["versionIRI"]})
"""Properties of a document that would make a reasoner fetch other documents."""
_STRUCTURE = (f"<{OWL.iri}", written(RDF["first"]), written(RDF["rest"]))
"""Predicates of blank nodes that are class expressions instead of individuals."""
_REMEDY = "Correct the ontology or the publication, or try the other reasoner."


class Reasoner(Operator):
    """``op:instance(?individual, class)``: whether the individual is an instance of the class.

    Needs ``graphmatch[java]``.

    Parameters
    ----------
    ontology
        Triples of OWL axioms, for example `Ontology.stated`.
    program
        ``"hermit"`` or ``"pellet"``.
    limits
        The limit `reasoning_bytes` applies.
    timeout
        Seconds after which a call fails and its reasoner is killed. The next call starts another.

    Raises
    ------
    MissingOperatorError
        If py4j is not installed.
    """

    def __init__(
        self,
        ontology: Iterable[Triple],
        program: ReasonerName | str = ReasonerName.HERMIT,
        limits: Limits = DEFAULT_LIMITS,
        timeout: float = SECONDS,
    ) -> None:
        self._service = _Service(_lines(ontology), ReasonerName(program), limits, timeout)
        super().__init__(
            OP["instance"].value,
            self._service.is_instance,
            cost=0.1,
            timeout=timeout + 1,  # after that the reasoner itself is stuck, and not only slow
            publication=True,
        )

    def close(self) -> None:
        """End Java; a further call starts it again. It ends with its engine anyway."""
        self._service.close()


class _Service:
    """A reasoner in a Java process that is kept between calls, for one publication at a time."""

    def __init__(
        self, ontology: str, program: ReasonerName, limits: Limits, seconds: float
    ) -> None:
        self._py4j = needed("py4j.java_gateway", "java")
        self._ontology, self._program = ontology, program
        self._bytes, self._seconds = limits.reasoning_bytes, seconds
        self._lock = Lock()
        self._java: _Java | None = None
        self._manager: Any = None
        self._last: tuple[Publication, Any] | None = None
        """The publication, and its reasoner or what is wrong with it."""

    def is_instance(self, publication: Publication, individual: Term, class_: Term) -> bool:
        """Return whether an individual is an instance of a class; start Java if it does not run.

        Raise `TypeError` if the class is not an IRI, `TimeoutError` if it takes too long, and
        `OntologyError` if the reasoner fails.
        """
        if not isinstance(class_, NamedNode):
            raise TypeError(f"{written(class_)} is not the name of a class")
        if isinstance(individual, Literal):
            return False
        until = perf_counter() + self._seconds
        if not self._lock.acquire(timeout=self._seconds):
            raise TimeoutError(f"the reasoner was busy for {self._seconds:g} s")
        try:
            with self._limited(until):
                owl = self._started(until).owl
                reasoner = self._reasoner(publication, until)
                iri = owl.model.IRI.create
                factory = self._manager.getOWLDataFactory()
                found = reasoner.isEntailed(
                    factory.getOWLClassAssertionAxiom(
                        factory.getOWLClass(iri(class_.value)),
                        factory.getOWLNamedIndividual(iri(_name(individual))),
                    )
                )
            return bool(found)
        finally:
            self._lock.release()

    def close(self) -> None:
        """End the Java process."""
        with self._lock:
            self._end()

    @contextmanager
    def _limited(self, until: float) -> Iterator[None]:
        """Kill Java if the context lasts longer than `until`.

        Raise `TimeoutError` then, and `OntologyError` if the reasoner fails.
        """
        late = Event()

        def stop() -> None:
            late.set()
            if self._java is not None:
                self._java.kill()

        timer = Timer(max(until - perf_counter(), 0.0), stop)
        timer.daemon = True
        timer.start()
        try:
            yield
        except self._py4j.Py4JJavaError as error:  # Java threw an exception and continues.
            raise _refusal(self._program, error.java_exception.toString()) from None
        except (self._py4j.Py4JError, OSError) as error:
            said = self._java.said() if self._java is not None else ""
            self._end()
            if late.is_set():
                what = f"the reasoner did not answer within {self._seconds:g} s and was stopped"
                raise TimeoutError(what) from None
            raise _refusal(self._program, f"Java ended: {said or error}") from None
        finally:
            timer.cancel()

    def _reasoner(self, publication: Publication, until: float) -> Any:
        """Return the reasoner of a publication; keep it until the next publication.

        Raise `OntologyError` if the publication is invalid or contradicts the ontology.
        """
        if self._last is None or self._last[0] is not publication:
            self._forget()
            try:
                self._last = publication, self._made(publication, until)
            except self._py4j.Py4JJavaError as error:
                refusal = _refusal(self._program, error.java_exception.toString())
                self._last = publication, refusal
        found = self._last[1]
        if isinstance(found, OntologyError):
            raise found
        return found

    def _made(self, publication: Publication, until: float) -> Any:
        java = self._started(until)
        if self._manager is None:
            manager = java.owl.apibinding.OWLManager.createOWLOntologyManager()
            self._parse(java, manager, _ONTOLOGY, self._ontology)
            self._manager = manager
        told = self._parse(java, self._manager, _PUBLICATION, _lines(publication.given, named=True))
        if self._program is ReasonerName.HERMIT:
            hermit = java.gateway.jvm.org.semanticweb.HermiT
            settings = hermit.Configuration()
            self._py4j.set_field(settings, "ignoreUnsupportedDatatypes", True)
            reasoner = hermit.Reasoner(settings, told)
        else:
            pellet = java.gateway.jvm.com.clarkparsia.pellet.owlapiv3.PelletReasonerFactory
            reasoner = pellet.getInstance().createNonBufferingReasoner(told)
        if not reasoner.isConsistent():
            reasoner.dispose()
            what = "the publication contradicts the ontology"
            return OntologyError(Problem(what, Place(publication.id), _REMEDY))
        return reasoner

    def _parse(self, java: _Java, manager: Any, name: str, text: str) -> Any:
        """Load text as an OWL ontology with a name, and return it.

        The ontology of a publication imports the loaded one.
        """
        owl, jvm = java.owl, java.gateway.jvm
        made = manager.createOntology(owl.model.IRI.create(name))
        if name == _PUBLICATION:
            link = manager.getOWLDataFactory().getOWLImportsDeclaration(
                owl.model.IRI.create(_ONTOLOGY)
            )
            manager.applyChange(owl.model.AddImport(made, link))
        parser = jvm.uk.ac.manchester.cs.owl.owlapi.turtle.parser.TurtleOntologyParser()
        header = f"<{name}> {TYPE} {OWL['Ontology']} .\n"  # The parser refuses an empty document.
        parser.parse(owl.io.StringDocumentSource(header + text), made)
        return made

    def _forget(self) -> None:
        """Release the reasoner and the OWL ontology of the last publication."""
        last, self._last = self._last, None
        if last is not None and not isinstance(last[1], OntologyError):
            last[1].dispose()
        if self._manager is not None and self._java is not None:
            name = self._java.owl.model.IRI.create(_PUBLICATION)
            told = self._manager.getOntology(name)
            if told is not None:
                self._manager.removeOntology(told)

    def _started(self, until: float) -> _Java:
        if self._java is not None and not self._java.is_alive:
            self._end()
        if self._java is None:
            self._java = _Java(self._program, self._bytes)
            self._java.connect(self._py4j, until, self._seconds)
        return self._java

    def _end(self) -> None:
        java, self._java = self._java, None
        self._last = self._manager = None
        if java is not None:
            java.kill()


class _Java:
    """A Java program with a reasoner. It ends with this process."""

    def __init__(self, program: ReasonerName, memory: int) -> None:
        jar = next(file for file in files("py4j") or () if file.suffix == ".jar").locate()
        path = os.pathsep.join([str(jar), class_path(program)])
        options = [f"-Xmx{memory >> 20}m", "-XX:+ExitOnOutOfMemoryError", "-cp", path]
        server = ["py4j.GatewayServer", "--die-on-broken-pipe", "--enable-auth", "0"]
        java = java_program()
        folder = TemporaryDirectory(prefix="graphmatch-")
        self._output = Path(folder.name, "output")  # a pipe could fill up
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(  # noqa: S603 -- every part is ours
                [java, *options, *server],
                stdin=subprocess.PIPE,  # Java ends when this pipe is closed.
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # an interrupt from the keyboard is for us
            )
        self._clients: list[Any] = []
        self.gateway: Any = None
        self.owl: Any = None
        self.kill = finalize(self, _kill, self._process, self._clients, folder, os.getpid())
        """Ends the program. Further calls have no effect."""

    @property
    def is_alive(self) -> bool:
        """Whether the Java process runs."""
        return self._process.poll() is None

    def connect(self, py4j: Any, until: float, seconds: float) -> None:
        """Connect to Java when it has printed port and token; raise `OSError` if it does not."""
        while len(said := self.said().split("\n")) < 3:
            if not self.is_alive or perf_counter() > until:
                raise OSError("it does not start")
            Event().wait(0.01)
        parameters = py4j.GatewayParameters(
            port=int(said[0]),
            auth_token=said[1],
            # Garbage collection in Python may send messages to Java at any time.
            read_timeout=seconds + 1,
        )
        self._clients.append(py4j.GatewayClient(gateway_parameters=parameters))
        self.gateway = py4j.JavaGateway(*self._clients, gateway_parameters=parameters)
        self.owl = self.gateway.jvm.org.semanticweb.owlapi

    def said(self) -> str:
        """Return the beginning of the Java process's output; empty if it was ended."""
        try:
            return self._output.read_bytes()[:2000].decode("utf-8", "replace")
        except FileNotFoundError:  # The program was ended.
            return ""


def _kill(
    process: subprocess.Popen[bytes],
    clients: Iterable[Any],
    folder: TemporaryDirectory[str],
    owner: int,
) -> None:
    if os.getpid() != owner:  # a child that was forked
        return
    for client in clients:
        client.is_connected = False  # There is nothing to release.
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()
    for client in clients:
        client.close()
    folder.cleanup()


def _refusal(program: ReasonerName, said: str) -> OntologyError:
    what = f"{program} rejects the ontology or the publication: {said}"[:500]
    return OntologyError(Problem(what, Place("ontology"), _REMEDY))


def _name(term: Term) -> str:
    return _BLANK + term.value if isinstance(term, BlankNode) else str(getattr(term, "value", term))


def _lines(triples: Iterable[Triple], *, named: bool = False) -> str:
    """Return triples as N-Triples, without imports, version IRIs and declarations of ontologies.

    With `named`, blank nodes that are individuals get names, so that queries can refer to them.
    """
    several = [
        (s, p, o)
        for s, p, o in triples
        if p not in _LEFT_OUT and not (p == TYPE and o == OWL["Ontology"])
    ]
    renamed: dict[Term, Term] = {}
    if named:
        built = {
            s
            for s, p, o in several
            if written(p).startswith(_STRUCTURE)
            or (p == TYPE and written(o).startswith(f"<{OWL.iri}"))
        }
        blank = {t for s, _, o in several for t in (s, o) if isinstance(t, BlankNode)}
        renamed = {term: NamedNode(_name(term)) for term in blank - built}
    texts = ((renamed.get(s, s), p, renamed.get(o, o)) for s, p, o in several)
    return "".join(f"{' '.join(map(written, triple))} .\n" for triple in texts)
