"""The papers' workloads are what their modules say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from graphmatch.bench.paper.workloads import WORKLOADS, workload_class
from graphmatch.bench.paper.workloads.equalities import (
    UNTESTED,
    EqualityParameters,
    EqualityWorkload,
)
from graphmatch.bench.paper.workloads.flat import FlatWorkload
from graphmatch.bench.paper.workloads.ranges import RangeParameters, RangeWorkload
from graphmatch.bench.workloads.attributes import LARGEST
from graphmatch.bench.workloads.workload import Size
from graphmatch.published.base import Conjunction
from graphmatch.subscription import SubscriptionParser

FLAT = [name for name in WORKLOADS if name != "graph"]


def flat(name: str, size: Size, **parameters: Any) -> FlatWorkload:
    class_ = workload_class(name)
    made = class_(size, class_.parameters_class(**parameters))
    assert isinstance(made, FlatWorkload)
    return made


@pytest.mark.parametrize("name", FLAT)
def test_the_seed_makes_the_workload(name: str) -> None:
    first, again, other = (flat(name, Size(50, 6, seed)) for seed in (1, 1, 2))
    assert first.texts() == again.texts() != other.texts()
    assert first.conjunctions == again.conjunctions != other.conjunctions
    events = [[made.event(number) for number in range(6)] for made in (first, again, other)]
    assert events[0] == events[1] != events[2]
    assert first.prepare() == len(first.texts()) == 50


@pytest.mark.parametrize("name", FLAT)
def test_that_texts_and_conjunctions_say_the_same(name: str) -> None:
    made, parser = flat(name, Size(40, 3)), SubscriptionParser()
    for conjunction, text in zip(made.conjunctions, made.texts(), strict=True):
        read = Conjunction.of(parser.parse(conjunction.id, text), made.kinds)
        assert read.rows == conjunction.rows
    for number in range(3):
        event, publication = made.event(number), made.publication(number)
        assert event.terms == {p: o for _, p, o in publication.triples}
        assert set(event.numbers) <= set(event.terms)


def ranges(size: Size, **parameters: Any) -> RangeWorkload:
    return RangeWorkload(size, RangeParameters(**parameters))


@pytest.mark.parametrize("values", ["uniform", "zipf"])
@pytest.mark.parametrize("rate", [0.01, 0.2])
def test_that_the_matching_rate_is_exact(rate: float, values: Any) -> None:
    """Each event meets what was cut out of it, and nothing else."""
    rows = ranges(Size(1000, 30), matching=rate, values=values).rows
    low, high = rows.low[:, :, None], rows.high[:, :, None]
    met = ((low <= rows.values.T[:, None]) & (rows.values.T[:, None] <= high)).all(axis=0)
    assert (met.sum(axis=0) == 1000 * rate).all()


def test_widths_points_and_cardinality() -> None:
    rows = ranges(Size(4000, 500), width=0.5, points=0.3, cardinality=100, attributes=2).rows
    length = rows.high - rows.low
    assert (length == 0).mean() == pytest.approx(0.3, abs=0.03)
    assert length[length > 0].mean() == pytest.approx(LARGEST / 2, rel=0.03)
    assert set(np.unique(rows.values % (LARGEST // 100))) == {0}
    assert len(np.unique(rows.values)) == 100
    anywhere = ranges(Size(4000, 1), points=0.0).rows
    widths = (anywhere.high - anywhere.low) / LARGEST
    assert 0.19 < widths.min() < 0.21
    assert 0.79 < widths.max() < 0.81


def test_that_zipf_is_skewed_and_mixed_is_both() -> None:
    zipf = ranges(Size(500, 500), values="zipf").rows.values
    assert np.median(zipf) < LARGEST / 50
    medians = np.median(ranges(Size(500, 500), mixed=True).rows.values, axis=0)
    assert medians.min() < LARGEST / 50 < LARGEST / 3 < medians.max()


def test_popularity_of_attributes() -> None:
    size, few = Size(4000, 4000), EqualityParameters(attributes=4, popular=0.8, falling=0.5)
    made = EqualityWorkload(size, few)
    tested = (made.tested != UNTESTED).mean(axis=0)
    assert tested[1:] == pytest.approx([0.4, 0.2, 0.1], abs=0.03)
    assert (made.tested != UNTESTED).any(axis=1).all()
    asked = np.bincount(made.tested[made.tested != UNTESTED])
    assert asked[0] / asked[4] == pytest.approx(5, rel=0.2)
    assert np.bincount(made.values[:, 0]) == pytest.approx([800] * 5, rel=0.15)
