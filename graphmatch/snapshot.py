"""Snapshots: the options and the ontology of an engine, next to the core's state.

The core writes and reads the file (``native/src/snapshot.rs``). Options and ontology are JSON. The
options are decoded when a file is opened, and the ontology on first use.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from os.path import realpath
from pathlib import Path
from typing import Any, NamedTuple

from pyoxigraph import NamedNode

from graphmatch import _native
from graphmatch.enrichment import OntologyAndAnnotator
from graphmatch.operators.evaluator import OperatorEvaluator
from graphmatch.operators.operator import Operator
from semantic.annotation.annotate import Annotator, Label
from semantic.errors import GraphMatchError, Place, Problem, Severity
from semantic.files import is_special
from semantic.limits import Limits
from semantic.mapping import MappingFunction
from semantic.ontology.ontology import Ontology
from semantic.ontology.synonyms import SynonymOptions, SynonymPairs
from semantic.terms import Term
from semantic.vocabulary import PREFIXES

_AGAIN = "Check the name, or save the engine again."
_MALFORMED = (AttributeError, GraphMatchError, IndexError, KeyError, TypeError, ValueError)
"""Errors raised by JSON with an unexpected structure."""


class SavedError(GraphMatchError):
    """A file that is not a snapshot, is damaged, or cannot be read or written."""

    def __init__(self, path: Path, what: str, remedy: str = _AGAIN) -> None:
        super().__init__(Problem(what, Place(str(path)), remedy))


@dataclass(frozen=True, slots=True)
class SnapshotOptions:
    """The options of a saved engine; they are read before its ontology.

    Parameters
    ----------
    entailment
        ``"rdfs"`` or ``"none"``.
    synonyms
        The options for text look-up.
    limits
        Limits of one document, one subscription and one evaluation.
    operators
        The operators by IRI: the version, and whether each has an index.
    measured
        Statistics of their calls; see `Statistics.written`.
    """

    entailment: str
    synonyms: SynonymOptions
    limits: Limits
    operators: dict[str, tuple[str, bool]] = field(default_factory=dict)
    measured: dict[str, Any] = field(default_factory=dict)

    def written(self) -> bytes:
        """Return the options as JSON."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def read(cls, said: bytes) -> SnapshotOptions:
        """Parse the options from JSON."""
        options = json.loads(said)
        operators = {
            str(iri): (str(version), bool(is_indexed))
            for iri, (version, is_indexed) in options["operators"].items()
        }
        synonyms, limits = SynonymOptions(**options["synonyms"]), Limits(**options["limits"])
        return cls(options["entailment"], synonyms, limits, operators, dict(options["measured"]))


class SavedEngine(NamedTuple):
    """An opened snapshot.

    Parameters
    ----------
    path
        The file.
    core, options
        The state and the options of the engine.
    ontology
        Its ontology and annotator, as returned by `written`.
    """

    path: Path
    core: _native.Core
    options: SnapshotOptions
    ontology: bytes

    def known(self) -> OntologyAndAnnotator:
        """Parse the ontology and the annotator of the engine; raise `SavedError` if damaged."""
        return OntologyAndAnnotator.of(*read(self.path, self.ontology, self.options.synonyms))

    def restore_statistics(self, operators: OperatorEvaluator) -> None:
        """Pass the saved statistics to the operators that have the version of the snapshot."""
        versions = {iri: version for iri, (version, _) in self.options.operators.items()}
        same = [one.iri for one in operators.all if versions.get(one.iri) == one.version]
        if self.options.measured:
            try:
                operators.statistics.read(self.options.measured, same)
            except _MALFORMED as error:
                raise SavedError(self.path, f"damaged: {error}") from error


def save(
    core: _native.Core,
    path: Path,
    options: SnapshotOptions,
    ontology: bytes,
    operators: OperatorEvaluator,
) -> None:
    """Write a snapshot; replace an existing one. Raise `SavedError` if this is not possible.

    Parameters
    ----------
    options
        The options; the versions and statistics of the operators are added.
    ontology
        The ontology, as returned by `written`.
    """
    versions = {one.iri: (one.version, one.index is not None) for one in operators.all}
    options = replace(options, operators=versions, measured=operators.statistics.written())
    if is_special(path):
        raise SavedError(path, "not a regular file", "Name a file.")
    try:
        # A symbolic link must stay a link, so its target is replaced.
        core.save(Path(realpath(path)), options.written(), ontology)
    except _native.CorruptSnapshotError:
        what = "the file exists and is not a snapshot"
        raise SavedError(path, what, "Name a new file.") from None
    except OSError as error:
        remedy = "Check the name, the permissions and the free disk space."
        raise SavedError(path, f"cannot be written: {error.strerror or error}", remedy) from error


def opened(path: Path, limits: Limits | None, operators: Sequence[Operator] = ()) -> SavedEngine:
    """Open a snapshot. Raise `SavedError` if it is invalid or needs other operators.

    Parameters
    ----------
    limits
        Limits of the engine; those of the file by default.
    operators
        The operators of the engine to open: all that the snapshot needs, or more.
    """
    rows = [one.row for one in operators]

    def chosen(said: bytes) -> Limits:
        options = SnapshotOptions.read(said)
        given = dict(rows)
        if missing := [iri for iri in options.operators if iri not in given]:
            what = f"the snapshot needs operators that were not given: {', '.join(missing)}"
            raise SavedError(path, what, "Give them. A snapshot does not contain functions.")
        for iri, (_, is_indexed) in options.operators.items():
            if given[iri] != is_indexed:
                what = (
                    f"the operator {iri} differs from the saved one: only one of them has an index"
                )
                raise SavedError(path, what, "Give the saved operator.")
        return options.limits if limits is None else limits

    try:
        core, said, known = _native.Core.open(path, list(PREFIXES.items()), chosen, rows)
        options = SnapshotOptions.read(said)
        options = options if limits is None else replace(options, limits=limits)
        return SavedEngine(path, core, options, known)
    except SavedError:
        raise
    except FileNotFoundError:
        raise SavedError(path, "there is no such file") from None
    except OSError as error:
        raise SavedError(path, f"cannot be read: {error.strerror or error}") from error
    except _native.CorruptSnapshotError as error:
        raise SavedError(path, *error.args) from None
    except _MALFORMED as error:
        raise SavedError(path, f"damaged: {error}") from error


def written(ontology: Ontology, annotator: Annotator | None) -> bytes:
    """Return an ontology, and the annotator passed to the engine if any, as JSON for `read`."""
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
        "annotator": annotator
        and [
            (one.text, one.language, one.concept.value, one.is_proper) for one in annotator.labels
        ],
        "stem": annotator is None or annotator.stem,
    }
    return json.dumps(said).encode()


def read(path: Path, known: bytes, options: SynonymOptions) -> tuple[Ontology, Annotator | None]:
    """Parse the ontology and the annotator from the JSON that `written` returned (`known`).

    The annotator is ``None`` if none was passed to the engine. Raise `SavedError` if the JSON is
    damaged; `path` is the file of the snapshot.
    """
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
        named = (
            Label(text, tag, NamedNode(concept), *proper)
            for text, tag, concept, *proper in said["annotator"]
        )
        return ontology, Annotator(named, stem=said["stem"])
    except _MALFORMED as error:
        raise SavedError(path, f"damaged: {error}") from error
