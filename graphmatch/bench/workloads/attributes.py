"""``attributes``: numbers and ranges, as DEXIN and its peers are measured.

Fan, Liu, Tang: "DEXIN: A fast content-based multi-attribute event matching algorithm using dynamic
exclusive and inclusive methods", FGCS 2017, section 4 and table 1.

An event has an integer from 0 to 1,000,000 for each attribute. A subscription has a closed range
for each of its attributes. All ranges are of one width, and begin anywhere where they fit (the
paper's θ); the width follows from the share of subscriptions that are to match an event: of c
ranges each is met with the c-th root of it. A value in the middle meets more of them than one at
an end does, so events would differ by factors of a thousand; those are kept whose expected share is
within a factor of 2. With ``zipf``, values follow Zipf's law with exponent 1 (in its continuous
form: the logarithm of a value is uniform), and a range has as large a share of them as before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from graphmatch.bench.workloads.workload import UNBOUNDED, Rows, Size, Workload, ids
from semantic.publication import Publication

if TYPE_CHECKING:
    import pyarrow as pa

Values: TypeAlias = Literal["uniform", "zipf"]

LARGEST = 1_000_000

TRIED = 30
"""How many events are drawn for each that is kept."""

SAMPLED = 100_000
"""In how many subscriptions it is counted which share an event matches."""


@dataclass(frozen=True, slots=True)
class AttributeParameters:
    """What can be chosen.

    Parameters
    ----------
    attributes
        How many an event has.
    absent
        Which share of them a subscription says nothing of.
    matching
        Which share of the subscriptions an event matches, on average.
    values
        How values are spread.
    shapes
        How many different sets of attributes subscriptions have at the most.
    """

    attributes: int = 10
    absent: float = 0.0
    matching: float = 0.01
    values: Values = "uniform"
    shapes: int = 100


class AttributeWorkload(Workload):
    """Ranges over numeric attributes.

    Parameters
    ----------
    size
        How much is generated.
    parameters
        See `AttributeParameters`.

    Attributes
    ----------
    rows
        A column for each attribute; what a subscription says nothing of is `UNBOUNDED`.

    Examples
    --------
    >>> made = AttributeWorkload(Size(100, 5), AttributeParameters(attributes=2))
    >>> made.rows.low.shape, made.rows.values.shape, len(made.publication(0).triples)
    ((2, 100), (5, 2), 2)
    """

    name: ClassVar = "attributes"
    parameters_class: ClassVar = AttributeParameters
    tabular: ClassVar = True
    parameters: AttributeParameters

    def __init__(self, size: Size, parameters: AttributeParameters) -> None:
        super().__init__(size, parameters)
        random = np.random.default_rng(size.seed)
        count, columns = size.subscriptions, parameters.attributes
        self._constrained = _sets(random, parameters)
        chosen = random.integers(0, len(self._constrained), count)
        width = parameters.matching ** (1 / int(self._constrained[0].sum()))
        low, high = (np.full((columns, count), bound, np.int32) for bound in UNBOUNDED)
        for column in range(columns):
            has = self._constrained[chosen, column]
            start = random.random(count)[has] * (1 - width)
            low[column, has] = _value(start, parameters.values)
            high[column, has] = _value(start + width, parameters.values)
        drawn = _value(random.random((size.events * TRIED, columns)), parameters.values)
        away = _away(drawn, Rows(low, high, drawn), self._constrained, parameters.matching)
        kept = drawn[np.argsort(away, kind="stable")[: size.events]]
        self.rows = Rows(low, high, kept)

    def texts(self) -> list[str]:
        """Return the subscriptions: a pattern and a filter for each attribute."""
        part = "?e <urn:a:{0}> ?v{0} FILTER(?v{0} >= {1} && ?v{0} <= {2})"
        return [
            "SELECT ?e WHERE { "
            + " ".join(
                part.format(column, *interval)
                for column, interval in enumerate(zip(lows, highs, strict=True))
                if interval != UNBOUNDED
            )
            + " }"
            for lows, highs in zip(self.rows.low.T.tolist(), self.rows.high.T.tolist(), strict=True)
        ]

    def table(self) -> pa.Table:
        """Return the subscriptions: columns of lower and of upper bounds."""
        import pyarrow as pa

        columns: dict[str, pa.Array[Any]] = {"id": pa.array(ids(self.size.subscriptions))}
        for number, (low, high) in enumerate(zip(self.rows.low, self.rows.high, strict=True)):
            for test, bound, none in ((">=", low, UNBOUNDED[0]), ("<=", high, UNBOUNDED[1])):
                columns[f"a{number} {test}"] = pa.array(bound, mask=bound == none)
        return pa.table(columns)

    def attributes(self, number: int) -> dict[str, object]:
        """Return an event as attributes and values."""
        values = self.rows.values[number].tolist()
        return {f"a{attribute}": value for attribute, value in enumerate(values)}

    def publication(self, number: int) -> Publication:
        """Return an event: one subject with its attributes."""
        event = NamedNode(f"urn:e:{number}")
        triples = (
            (event, NamedNode(f"urn:a:{attribute}"), RdfLiteral(value))
            for attribute, value in enumerate(self.rows.values[number].tolist())
        )
        return Publication.of(event.value, triples)


def _sets(random: np.random.Generator, parameters: AttributeParameters) -> NDArray[np.bool_]:
    """Draw different sets of attributes, shape ``(sets, attributes)``; none is empty."""
    columns = parameters.attributes
    size = max(1, round(columns * (1 - parameters.absent)))
    if size == columns:
        return np.ones((1, columns), np.bool_)
    drawn: dict[tuple[int, ...], None] = {}
    for _ in range(10 * parameters.shapes):
        drawn[tuple(sorted(random.permutation(columns)[:size].tolist()))] = None
        if len(drawn) == parameters.shapes:
            break
    sets = np.zeros((len(drawn), columns), np.bool_)
    for row, chosen in enumerate(drawn):
        sets[row, list(chosen)] = True
    return sets


def _away(
    values: NDArray[np.int32], rows: Rows, sets: NDArray[np.bool_], matching: float
) -> NDArray[np.float64]:
    """Say how far each event's expected share is from what it should be; 0 within a factor of 2.

    A column's share is counted in the first rows; columns are independent of each other.
    """
    logarithm = np.empty(values.shape)
    for column, of in enumerate(values.T):
        low, high = rows.low[column, :SAMPLED], rows.high[column, :SAMPLED]
        low, high = np.sort(low[low != UNBOUNDED[0]]), np.sort(high[high != UNBOUNDED[1]])
        met = np.searchsorted(low, of, side="right") - np.searchsorted(high, of)
        logarithm[:, column] = np.log(np.maximum(met, 0.5) / max(low.size, 1))
    shares = np.exp(logarithm @ sets.T).mean(axis=1)
    found: NDArray[np.float64] = np.maximum(np.abs(np.log2(shares / matching)) - 1, 0)
    return found


def _value(share: NDArray[np.float64], values: Values) -> NDArray[np.int32]:
    """Return the value below which that share of all values lies."""
    if values == "uniform":
        found = np.floor(share * (LARGEST + 1))
    else:
        found = np.floor((LARGEST + 1) ** share) - 1
    return np.clip(found, 0, LARGEST).astype(np.int32)
