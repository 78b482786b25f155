"""The compiled core: few, coarse calls that release the interpreter's lock.

Terms come and go as canonical N-Triples texts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, Self, TypeAlias, final

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import NamedNode

_Fault: TypeAlias = dict[str, Any]

_Term: TypeAlias = Any
_Moment: TypeAlias = tuple[int, int | None]
_Nodes: TypeAlias = tuple[_Term, _Term, _Term]
_Derived: TypeAlias = tuple[_Nodes, tuple[str, _Nodes] | None]
"""A triple, with the rule and the premise if it was derived."""
_FoundInText: TypeAlias = tuple[_Nodes, _Term, tuple[str, int] | None, str]
"""A triple, the property of the text, the label and its form, the part of the text."""
_Operator: TypeAlias = tuple[str, bool]
"""IRI, whether there is an index."""
_Solution: TypeAlias = dict[str, _Term]
_Match: TypeAlias = tuple[str, list[_Solution], list[tuple[_Term, _Term, _Term]] | None, bool]
_Branch: TypeAlias = tuple[list[_Nodes], list[tuple[Any, ...]]]

_Texts: TypeAlias = tuple[NDArray[np.uint8], NDArray[np.int64]]
"""Strings in the layout of Arrow: the bytes, and the offsets."""
_Column: TypeAlias = (
    NDArray[np.int64] | NDArray[np.float64] | tuple[NDArray[np.int32], Sequence[str]]
)
"""A column of integers, of floating-point numbers, or of places in a list of terms."""

class _Readable(Protocol):
    def read(self, size: int = -1, /) -> bytes: ...

class CorruptSnapshotError(ValueError):
    """A file that is not a snapshot, has another version, or is damaged: what, remedy."""

class InvalidSubscriptionError(ValueError):
    """An invalid subscription: what, remedy, line, column."""

class EvaluationFailedError(RuntimeError):
    """A query that cannot be evaluated, or not within the limits."""

class DuplicateIdError(ValueError):
    """An id of an existing subscription."""

class NeedsPythonError(ValueError):
    """Python has to find units or names of classes first."""

@final
class Report:
    """The matches of one publication."""

    def __len__(self) -> int: ...
    @property
    def publication(self) -> str: ...
    @property
    def failed(self) -> list[tuple[str, str]]: ...
    @property
    def undecided(self) -> list[tuple[str, list[str], bool]]: ...
    @property
    def is_truncated(self) -> bool: ...
    @property
    def contradictions(self) -> list[str]: ...
    def numbers(self) -> NDArray[np.uint32]: ...
    def counters(self) -> tuple[int, int, int, int, int, int]: ...
    def ids(self) -> tuple[str, ...]: ...
    def triples(self) -> tuple[tuple[_Term, _Term, _Term], ...] | None: ...
    def query(self, place: int) -> Query: ...
    def evaluation(self, calls: Calls) -> Evaluation: ...
    def enrichment(self) -> tuple[Any, list[_Nodes], list[_Derived], list[_FoundInText]]: ...
    def matches(
        self, begin: int, end: int, texts: bool = False, most: int | None = None
    ) -> list[_Match]: ...

@final
class Batch:
    """The reports of a table of events."""

    def __len__(self) -> int: ...
    def pending(self) -> list[int]: ...
    def report(self, row: int) -> Report | None: ...
    def numbers(self) -> tuple[NDArray[np.uint32], NDArray[np.int64]]: ...

@final
class Annotator:
    """Finds the labels of an ontology in text."""

    def __new__(
        cls,
        labels: Sequence[tuple[str, str | None, str, bool]],
        stem: bool,
        rules: Mapping[str, object],
    ) -> Self: ...
    def texts(
        self, triples: Iterable[tuple[_Term, _Term, _Term]]
    ) -> list[tuple[_Term, NamedNode, str | None, list[tuple[int, int, int, str, int]]]]: ...
    def find(
        self, text: str, language: str | None = None
    ) -> list[tuple[int, int, int, str, int]]: ...
    def text(self, markup: str, has_links: bool) -> str: ...

@final
class EnrichmentRequest:
    """A publication that needs enrichment by Python before it can be matched."""

    @property
    def id(self) -> str: ...
    @property
    def steps(self) -> int: ...
    @property
    def enricher(self) -> Any: ...
    @property
    def version(self) -> int: ...
    def triples(self) -> tuple[tuple[_Term, _Term, _Term], ...]: ...

@final
class Calls:
    """What is known of the calls of operators for one publication."""

    def __new__(cls) -> Calls: ...
    def put(self, call: str, result: object) -> None: ...

@final
class CallRequest:
    """A publication with candidates that need calls."""

    @property
    def id(self) -> str: ...
    def solutions(self) -> list[tuple[int, bool, list[tuple[str, str]]]]: ...
    def passed(self, calls: Calls, tests: Sequence[tuple[str, str]]) -> list[bool | None]: ...
    def triples(self) -> list[_Nodes]: ...
    def rematch(self, calls: Calls, now: _Moment) -> Report | EnrichmentRequest | CallRequest: ...

@final
class DocumentMatches:
    """A document that is read and matched, one publication after the other."""

    def next(
        self, now: _Moment
    ) -> tuple[list[Report | EnrichmentRequest | CallRequest], int, list[_Fault], bool]: ...

@final
class Publications:
    """The publications of a document, one after the other."""

    def __new__(
        cls,
        stream: _Readable,
        source: str,
        format: str,
        limits: object,
        split_by: str,
        base: str | None = None,
        names: str = "",
        may_be_empty: bool = False,
    ) -> Publications: ...
    def next(self) -> tuple[tuple[str, tuple[_Nodes, ...]] | None, list[_Fault], bool]: ...
    def prefixes(self) -> list[tuple[str, str]]: ...

@final
class Parser:
    """Analyses queries."""

    def __new__(
        cls,
        prefixes: Sequence[tuple[str, str]],
        limits: object,
        operators: Sequence[_Operator] = ...,
    ) -> Parser: ...
    def parse(self, text: str) -> Query: ...

@final
class Query:
    """An analysed query."""

    @property
    def form(self) -> str: ...
    @property
    def distinct(self) -> bool: ...
    @property
    def text(self) -> str: ...
    def algebra(self) -> str: ...
    @property
    def skeleton(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def projection(self) -> list[_Term]: ...
    def constants(self) -> list[tuple[_Term, bool]]: ...
    def measurable(self) -> list[tuple[int, int, list[tuple[int, bool]]]]: ...
    def with_constants(self, terms: Sequence[_Term]) -> Query: ...
    def view(self) -> tuple[list[_Branch], list[_Nodes], list[str]]: ...
    def demanded(self) -> list[tuple[_Term | None, _Term | None]]: ...
    def template(self) -> list[_Nodes]: ...

@final
class Evaluation:
    """One publication to evaluate queries on."""

    def answer(
        self, query: Query, resting: bool, most: int | None = None
    ) -> tuple[list[_Solution], list[tuple[_Term, _Term, _Term]] | None] | None: ...
    def missing(self) -> list[str]: ...
    def rows(self, query: Query, most: int) -> list[_Solution]: ...
    def solutions(self, pattern: str, most: int | None) -> list[_Solution]: ...

@final
class Core:
    """Standing subscriptions over an ontology."""

    def __new__(
        cls,
        prefixes: Sequence[tuple[str, str]],
        limits: object,
        operators: Sequence[_Operator] = ...,
    ) -> Core: ...
    def save(self, path: Path, options: bytes, ontology: bytes) -> None: ...
    @staticmethod
    def open(
        path: Path,
        prefixes: Sequence[tuple[str, str]],
        limits: Callable[[bytes], object],
        operators: Sequence[_Operator] = ...,
    ) -> tuple[Core, bytes, bytes]: ...
    def attach_enricher(self, enricher: object) -> None: ...
    def ask_by(self, function: Callable[..., object]) -> None: ...
    def index_changes(self) -> list[tuple[int, int, tuple[_Term, ...] | None]]: ...
    def __len__(self) -> int: ...
    def __contains__(self, id: str, /) -> bool: ...
    def ids(self) -> list[str]: ...
    def ids_of(self, numbers: NDArray[np.uint32]) -> list[str | None]: ...
    def subscription(self, id: str) -> tuple[str, str] | None: ...
    def subscribe(
        self,
        id: str,
        query: str,
        comment: str = "",
        rewritten: Sequence[str] | None = None,
        replaces: bool = False,
    ) -> bool: ...
    def subscribe_many(
        self, ids: Sequence[str], queries: Sequence[str], comments: Sequence[str]
    ) -> tuple[int, list[tuple[int, Exception]]]: ...
    def subscribe_batch(
        self,
        query: str,
        parameters: Sequence[str],
        ids: _Texts,
        columns: Sequence[_Column | tuple[_Texts, bool]],
        rows: NDArray[np.int64],
    ) -> list[tuple[int, Exception]]: ...
    def resolve(self, name: str, class_: str) -> None: ...
    def unsubscribe(self, id: str) -> bool: ...
    def closure(self) -> list[_Nodes]: ...
    def entail(
        self,
        id: str,
        triples: Iterable[_Nodes],
        stated: int,
        steps: int,
        demand: Sequence[tuple[str | None, str | None]] | None = None,
    ) -> tuple[list[_Derived], int, bool]: ...
    def evaluation(
        self,
        id: str,
        triples: Iterable[tuple[_Term, _Term, _Term]],
        stated: int,
        shown: int,
        now: _Moment,
        calls: Calls | None = None,
    ) -> Evaluation: ...
    def has_term(self, term: str) -> bool: ...
    def demanded(self, begin: str) -> list[str]: ...
    def index_plan(self, id: str) -> dict[str, Any] | None: ...
    def set_ontology(
        self, enricher: object, stated: dict[str, Any]
    ) -> tuple[int, int, list[str], list[str]]: ...
    def contradictions(self) -> tuple[list[str], bool]: ...
    def set_annotator(self, annotator: Annotator, version: int) -> None: ...
    def match_bytes(
        self,
        data: bytes,
        source: str,
        now: _Moment,
        format: str | None = None,
        split_by: str = "auto",
        base: str | None = None,
    ) -> tuple[Report | EnrichmentRequest | CallRequest | None, list[_Fault]] | None: ...
    def document(
        self,
        stream: _Readable,
        source: str,
        format: str,
        split_by: str = "auto",
        waits: bool = True,
        base: str | None = None,
    ) -> DocumentMatches: ...
    def match_triples(
        self,
        id: str,
        triples: Iterable[tuple[_Term, _Term, _Term | str]],
        now: _Moment,
        prepared: tuple[int, int, int] | None = None,
        request: EnrichmentRequest | None = None,
        calls: Calls | None = None,
    ) -> Report | EnrichmentRequest | CallRequest: ...
    def match_event(
        self, id: str, attributes: dict[str, Any], now: _Moment
    ) -> Report | EnrichmentRequest | CallRequest | None: ...
    def match_events(
        self,
        ids: _Texts,
        attributes: Sequence[tuple[str, _Column | tuple[_Texts, bool], NDArray[np.bool_] | None]],
        now: _Moment,
    ) -> Batch: ...

def folded_words(text: str) -> str: ...
def term(text: str) -> _Term: ...
def lines_of_rows(rows: bytes) -> tuple[bytes, list[tuple[int, int, bytes]]]: ...
