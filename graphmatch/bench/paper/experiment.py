"""What an experiment is: a figure of a paper as workloads, algorithms, axes, and a claim."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeAlias, get_args

from graphmatch.bench.paper.claims import Check

Scale: TypeAlias = Literal["small", "paper"]

SCALES: tuple[Scale, ...] = get_args(Scale)


@dataclass(frozen=True, slots=True)
class Effort:
    """How long a point is measured.

    Parameters
    ----------
    events
        How many events are matched.
    seconds
        How long an algorithm may match them, all passes together.
    """

    events: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Line:
    """An algorithm in a figure.

    Parameters
    ----------
    algorithm
        As `graphmatch.published.MATCHERS` or `graphmatch.bench.paper.peers.OURS` names it.
    label
        As the figure names it; the algorithm's name, if nothing is said.
    options
        What the algorithm is made with.
    most
        How many subscriptions it is given at the most, since it would take too long.
    """

    algorithm: str
    label: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    most: int | None = None

    @property
    def called(self) -> str:
        """What the figure calls it."""
        return self.label or self.algorithm


@dataclass(frozen=True, slots=True)
class Point:
    """A workload, and where its measurements are drawn.

    Parameters
    ----------
    x
        Its place on the horizontal axis.
    parameters
        Of the workload.
    sweep
        Which series of points it belongs to, where a figure has several.
    variant
        Which kind of workload it is, where several are drawn into one panel.
    """

    x: float
    subscriptions: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    sweep: str = ""
    variant: str = ""


Points: TypeAlias = Mapping[Scale, Sequence[Point]]
"""What is measured at each scale."""

Efforts: TypeAlias = Mapping[Scale, Effort]


@dataclass(frozen=True, slots=True)
class Axis:
    """What is drawn along one side.

    Parameters
    ----------
    label
        With its unit.
    key
        Which key of a row it is, with a dot before what is in it (``counters.probes``); ``x`` is
        the point's own.
    """

    label: str
    key: str = "x"


@dataclass(frozen=True, slots=True)
class Panel:
    """One coordinate system of a figure.

    Parameters
    ----------
    sweep
        Whose points it shows.
    bounds
        Curves of theory beside what was measured: label to a function of a point.
    labels
        Only these algorithms, where others count something else.
    """

    x: Axis
    y: Axis
    title: str = ""
    sweep: str = ""
    bounds: Mapping[str, Callable[[Point], float]] = field(default_factory=dict)
    labels: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Experiment:
    """A figure of a paper.

    Parameters
    ----------
    name
        As `graphmatch.bench.paper.EXPERIMENTS` lists it.
    claim
        What the paper says that it shows, in one sentence of ours.
    workload
        As `graphmatch.bench.paper.workloads.WORKLOADS` names it.
    lines
        The algorithms.
    points, efforts
        For each scale.
    checks
        What has to be true of the measurements for the claim to hold.
    forgets
        Whether unsubscribing is measured, too.
    """

    name: str
    paper: str
    figure: str
    claim: str
    workload: str
    lines: Sequence[Line]
    panels: Sequence[Panel]
    points: Points
    efforts: Efforts
    checks: Sequence[Check]
    forgets: bool = False
    seed: int = 1


def sweep(
    values: Sequence[float],
    subscriptions: int,
    of: Callable[[float], Mapping[str, Any]],
    *,
    name: str = "",
    variant: str = "",
) -> tuple[Point, ...]:
    """Return points that differ in a parameter of the workload.

    Examples
    --------
    >>> [dict(point.parameters) for point in sweep([4, 8], 100, lambda x: {"edges": int(x)})]
    [{'edges': 4}, {'edges': 8}]
    """
    return tuple(Point(x, subscriptions, of(x), name, variant) for x in values)


def numbers(
    sizes: Sequence[int],
    parameters: Mapping[str, Any] = MappingProxyType({}),
    *,
    name: str = "",
    variant: str = "",
) -> tuple[Point, ...]:
    """Return points that differ in the number of subscriptions.

    Examples
    --------
    >>> [point.x for point in numbers([100, 300])]
    [100, 300]
    """
    return tuple(Point(size, size, parameters, name, variant) for size in sizes)


SUBSCRIPTIONS = Axis("subscriptions")
TIME = Axis("µs an event (median)", "median_microseconds")
DEVIATION = Axis("µs, standard deviation of events", "deviation_microseconds")
MEMORY = Axis("bytes (index, or process)", "bytes")
