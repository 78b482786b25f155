"""What a snapshot holds beside the core's state: an engine's options and its ontology.

The core writes and reads the file (``native/src/snapshot.rs``). What is Python's is in it
as JSON: a file can give wrong subscriptions, and can run nothing. The options are read when a file
is opened, the ontology when somebody asks for it: matching needs neither, as the core has its own.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import Any

from pyoxigraph import NamedNode

from graphmatch import _native
from semantic.annotation.annotate import Annotator, Label
from semantic.errors import GraphMatchError, Place, Problem, Severity
from semantic.files import is_special
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.mapping import MappingFunction
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import SynonymOptions, SynonymPairs
from semantic.terms import Term
from semantic.vocabulary import PREFIXES

_AGAIN = "Save it again, and name the file that was saved to."
_MALFORMED = (AttributeError, GraphMatchError, IndexError, KeyError, TypeError, ValueError)
"""What reading JSON may raise that says something else than what is written."""


class SavedError(GraphMatchError):
    """A file that is no snapshot, or a damaged one, or cannot be read or written."""

    def __init__(self, path: Path, what: str, remedy: str = _AGAIN) -> None:
        super().__init__(Problem(what, Place(str(path)), remedy))


@dataclass(frozen=True, slots=True)
class Options:
    """What an engine has to know before its ontology is asked for.

    Parameters
    ----------
    entailment
        ``"rdfs"`` or ``"none"``.
    synonyms
        How texts are looked up.
    limits
        What one document, one subscription and one evaluation may cost.
    operators
        The operators by their IRIs: the version, and whether each has an index.
    measured
        What their calls cost and gave; see `Statistics.written`.
    """

    entailment: str
    synonyms: SynonymOptions
    limits: Limits
    operators: dict[str, tuple[str, bool]] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)

    def written(self) -> bytes:
        """Return them as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, said: bytes) -> Options:
        """Return what was written."""
        options = json.loads(said)
        operators = {
            str(iri): (str(version), bool(is_indexed))
            for iri, (version, is_indexed) in options["operators"].items()
        }
        synonyms, limits = SynonymOptions(**options["synonyms"]), Limits(**options["limits"])
        return cls(options["entailment"], synonyms, limits, operators, dict(options["measured"]))


def save(core: _native.Core, path: Path, options: Options, known: bytes) -> None:
    """Write a snapshot; one that was saved there before is replaced.

    Parameters
    ----------
    known
        The ontology, as `written` gives it.
    """
    if is_special(path):
        raise SavedError(path, "is a pipe or a device", "Name a file.")
    try:
        # A link stays a link: the file it leads to is replaced.
        core.save(Path(realpath(path)), options.written(), known)
    except _native.DamagedError:
        what = "is there already, and nothing was saved to it"
        raise SavedError(path, what, "Name a file that is not there yet.") from None
    except OSError as error:
        remedy = "Check the name, the permissions and the room on the disk."
        raise SavedError(path, f"cannot be written: {error.strerror or error}", remedy) from error


def opened(
    path: Path, limits: Limits | None, operators: Sequence[tuple[str, bool]] = ()
) -> tuple[_native.Core, Options, bytes]:
    """Return what was saved: the core's state, the options, and the ontology for `read`.

    Parameters
    ----------
    limits
        Those that are to hold; by default those that were saved, if none is larger than usual.
    operators
        The operators that there are now: IRI, whether it has an index.
    """

    def chosen(said: bytes) -> Limits:
        options = Options.read(said)
        given = dict(operators)
        if missing := [iri for iri in options.operators if iri not in given]:
            what = f"was saved with operators that are not given: {', '.join(missing)}"
            raise SavedError(path, what, "Give them: functions are not in the file.")
        for iri, (_, is_indexed) in options.operators.items():
            if given[iri] != is_indexed:
                what = f"the operator {iri} was another one: only one of the two has an index"
                raise SavedError(path, what, "Give the operator that it was saved with.")
        return _usual(path, options.limits) if limits is None else limits

    try:
        rows = list(operators)
        core, said, known = _native.Core.open(path, list(PREFIXES.items()), chosen, rows)
        options = Options.read(said)
        return core, options if limits is None else replace(options, limits=limits), known
    except SavedError:
        raise
    except FileNotFoundError:
        raise SavedError(path, "there is no such file") from None
    except OSError as error:
        raise SavedError(path, f"cannot be read: {error.strerror or error}") from error
    except _native.DamagedError as error:
        raise SavedError(path, str(error)) from None
    except _MALFORMED as error:
        raise SavedError(path, f"damaged: {error}") from error


def _usual(path: Path, limits: Limits) -> Limits:
    """Return the limits of a file, which may lower the usual ones: nobody knows who wrote it."""
    usual = asdict(DEFAULT_LIMITS)
    larger = [name for name, most in asdict(limits).items() if most > usual[name]]
    if larger:
        what = f"was saved with larger limits than usual ({', '.join(larger)})"
        raise SavedError(path, what, "If you trust the file, say with which limits to open it.")
    return limits


def written(ontology: Ontology, annotator: Annotator | None) -> bytes:
    """Return an ontology, and the annotator that an engine was given, as JSON."""
    terms: dict[Term, int] = {}
    triples = [terms.setdefault(term, len(terms)) for triple in ontology.stated for term in triple]
    pairs = ontology.pairs
    said = {
        "terms": [str(term) for term in terms],
        "triples": triples,
        "roots": [(name.value, root.value) for name, root in pairs.terms.items()],
        "texts": list(pairs.texts.items()),
        "labels": [(text, term.value) for text, term in pairs.labels],
        "prefixes": dict(ontology.prefixes),
        "mapping": [(one.name, one.text, one.source) for one in ontology.mapping],
        "problems": [
            (one.what, astuple(one.where), one.remedy, one.severity.value)
            for one in ontology.problems
        ],
        "annotator": annotator and [(*one[:2], one.concept.value) for one in annotator.labels],
        "stem": annotator is None or annotator.stem,
    }
    return json.dumps(said).encode()


def read(path: Path, known: bytes, options: SynonymOptions) -> tuple[Ontology, Annotator | None]:
    """Return the ontology and the annotator that were written."""
    try:
        said = json.loads(known)
        terms = [_native.term(text) for text in said["terms"]]
        numbers = [terms[number] for number in said["triples"]]
        pairs = SynonymPairs(
            {NamedNode(name): NamedNode(root) for name, root in said["roots"]},
            dict(said["texts"]),
            tuple((text, NamedNode(term)) for text, term in said["labels"]),
        )
        mapping = [MappingFunction(*function) for function in said["mapping"]]
        problems = [
            Problem(what, Place(*where), remedy, Severity(severity))
            for what, where, remedy, severity in said["problems"]
        ]
        ontology = Ontology(
            zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True),
            pairs,
            prefixes=said["prefixes"],
            options=options,
            mapping=mapping,
            known=problems,
        )
        if said["annotator"] is None:
            return ontology, None
        named = (Label(text, tag, NamedNode(concept)) for text, tag, concept in said["annotator"])
        return ontology, Annotator(named, stem=said["stem"])
    except _MALFORMED as error:
        raise SavedError(path, f"damaged: {error}") from error
