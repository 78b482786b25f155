"""What a claim asks of measurements, so that a run says itself whether it holds.

A claim is some checks, each a sentence: ``dexin is steady``, ``ctps is 50 times below gtopss``. A
check looks at the curve of one algorithm, or compares two; `FORMS` lists what can be said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import linear_regression
from typing import TypeAlias

Curve: TypeAlias = Sequence[tuple[float, float]]
"""Places on the horizontal axis, in ascending order, and what was measured there."""
Curves: TypeAlias = Mapping[tuple[str, str], Curve]
"""Variant of the workload (the first one is checked) and algorithm, to the curve."""

STEADY = 0.25
"""What grows by less than this power of x does not grow, as far as a claim goes."""
STRAIGHT = 0.25
"""By how much of itself a point may lie beside a straight line."""
POWERS: Mapping[str, tuple[float, float]] = {
    "rises": (STEADY, 10.0),
    "falls": (-10.0, 0.0),
    "is steady": (-STEADY, STEADY),
    "grows in proportion": (0.8, 1.2),
    "grows less than linearly": (-10.0, 0.9),
}
"""Between which powers of x a curve grows from its first point to its last one."""
FORMS = (
    rf"(?P<of>\S+) (?P<how>{'|'.join(POWERS)}|grows linearly)",
    r"(?P<of>\S+) is (?:(?P<factor>\d+) times )?below (?P<others>.+)",
    r"(?P<of>\S+) changes less than (?P<others>.+)",
)
"""What a check may say. The last one compares how curves change between two variants."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check says: what should be, what is, and whether it holds (``None``: not measured)."""

    asks: str
    saw: str = "not measured"
    holds: bool | None = None


def verdicts(check: str, curves: Curves) -> list[Verdict]:
    """Hold a check against what was measured; one against several others is one for each.

    `ValueError`, when it is none of `FORMS`.

    Examples
    --------
    >>> curves = {("", "a"): [(1, 2.0), (9, 8.0)], ("", "b"): [(1, 3.0), (9, 80.0)]}
    >>> verdicts("a is below b", curves)
    [Verdict(asks='a is below b', saw='by a factor of 1.5 to 10', holds=True)]
    >>> [verdict.saw for verdict in verdicts("a is steady", curves)]
    ['as x^0.63']
    """
    said = next(filter(None, (re.fullmatch(form, check) for form in FORMS)), None)
    if said is None:
        raise ValueError(f"'{check}' is no check")
    parts, variants = said.groupdict(), list(dict.fromkeys(variant for variant, _ in curves))
    first = variants[0] if variants else ""
    of = parts["of"]
    mine = curves.get((first, of), ())
    if how := parts.get("how"):
        return [_straight(check, mine) if how == "grows linearly" else _power(check, how, mine)]
    others = parts["others"].split(", ")
    if "factor" in parts:
        least = float(parts["factor"] or 1)
        by = f"{parts['factor']} times " if parts["factor"] else ""
        return [
            _below(f"{of} is {by}below {other}", mine, curves.get((first, other), ()), least)
            for other in others
        ]
    last = variants[-1] if variants else ""
    return [
        _shift(f"{of} changes less than {other} from {first} to {last}", *several)
        for other in others
        for several in [[curves.get((v, a), ()) for a in (of, other) for v in (first, last)]]
    ]


def overall(found: Iterable[Verdict], undecidable: str = "") -> str:
    """Say of a claim what its checks come to: confirmed, refuted, or not decidable."""
    holds = [verdict.holds for verdict in found]
    if undecidable:
        return "not decidable from the paper"
    if False in holds:
        return "refuted"
    return "confirmed" if holds and None not in holds else "not measured"


def _power(asks: str, how: str, curve: Curve) -> Verdict:
    if len(curve) < 2:
        return Verdict(asks)
    (x, y), (last_x, last_y) = curve[0], curve[-1]
    power = log(max(last_y, 1e-12) / max(y, 1e-12)) / log(last_x / x)
    least, most = POWERS[how]
    return Verdict(asks, f"as x^{power:.2f}", least <= power <= most)


def _straight(asks: str, curve: Curve) -> Verdict:
    """Put a line through all points, by least squares."""
    if len(curve) < 3:
        return Verdict(asks)
    slope, offset = linear_regression(*zip(*curve, strict=True))
    off = max(abs(offset + slope * x - y) / max(y, 1e-12) for x, y in curve)
    if slope <= 0:
        return Verdict(asks, "it does not rise", holds=False)
    return Verdict(asks, f"a straight line within {off * 100:.0f} %", off <= STRAIGHT)


def _ratios(curve: Curve, other: Curve) -> list[float]:
    """Return by which factor the other curve is above, at every place that both have."""
    mine, theirs = dict(curve), dict(other)
    return [theirs[x] / max(mine[x], 1e-12) for x in mine if x in theirs]


def _below(asks: str, mine: Curve, other: Curve, factor: float) -> Verdict:
    ratios = _ratios(mine, other)
    if not ratios:
        return Verdict(asks)
    least, most = (f"{f:,.0f}" if f >= 10 else f"{f:.2g}" for f in (min(ratios), max(ratios)))
    return Verdict(asks, f"by a factor of {least} to {most}", min(ratios) >= factor)


def _shift(asks: str, before: Curve, after: Curve, other: Curve, other_after: Curve) -> Verdict:
    mine, theirs = _ratios(before, after), _ratios(other, other_after)
    if not mine or not theirs:
        return Verdict(asks)
    by, others = sum(mine) / len(mine), sum(theirs) / len(theirs)
    return Verdict(
        asks, f"by a factor of {by:.2g} and {others:.2g}", abs(log(by)) <= abs(log(others))
    )
