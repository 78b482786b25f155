"""Checks of the papers' claims against measurements.

A claim has some checks, each a sentence: ``dexin is steady``, ``ctps is 50 times below gtopss``. A
check tests the curve of one algorithm, or compares two; `FORMS` lists the possible sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

Curve: TypeAlias = "pd.Series[float]"
"""Measured values, by places on the horizontal axis in ascending order."""
Curves: TypeAlias = Mapping[tuple[str, str], Curve]
"""The curve of each variant of the workload (the first one is checked) and algorithm."""

STEADY = 0.25
"""A curve that grows by less than this power of x counts as steady."""
STRAIGHT = 0.25
"""The maximum relative distance of a point from a straight line."""
POWERS: Mapping[str, tuple[float, float]] = {
    "rises": (STEADY, 10.0),
    "falls": (-10.0, 0.0),
    "is steady": (-STEADY, STEADY),
    "grows in proportion": (0.8, 1.2),
    "grows less than linearly": (-10.0, 0.9),
}
"""The lowest and highest power of x by which a curve grows from its first to its last point."""
FORMS = (
    rf"(?P<of>\S+) (?P<how>{'|'.join(POWERS)}|grows linearly)",
    r"(?P<of>\S+) is (?:(?P<factor>\d+) times )?below (?P<others>.+)",
    r"(?P<of>\S+) changes less than (?P<others>.+)",
)
"""The forms of checks. The last one compares how curves change between two variants."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of a check: expectation, observation, and success (``None``: not measured)."""

    asks: str
    saw: str = "not measured"
    holds: bool | None = None


def verdicts(check: str, curves: Curves) -> list[Verdict]:
    """Test a check on measurements; a check against several others gives one verdict for each.

    Raise `ValueError` if it is not one of `FORMS`.

    Examples
    --------
    >>> a, b = pd.Series({1: 2.0, 9: 8.0}), pd.Series({1: 3.0, 9: 80.0})
    >>> verdicts("a is below b", {("", "a"): a, ("", "b"): b})
    [Verdict(asks='a is below b', saw='by a factor of 1.5 to 10', holds=True)]
    >>> [verdict.saw for verdict in verdicts("a is steady", {("", "a"): a})]
    ['as x^0.63']
    """
    said = next(filter(None, (re.fullmatch(form, check) for form in FORMS)), None)
    if said is None:
        raise ValueError(f"'{check}' is no check")
    parts = said.groupdict()
    variants = list(dict.fromkeys(variant for variant, _ in curves)) or [""]
    first, last, of = variants[0], variants[-1], parts["of"]

    def curve(algorithm: str, variant: str = first) -> Curve:
        found = curves.get((variant, algorithm), pd.Series(dtype=float))
        return found.clip(lower=1e-12)

    if how := parts.get("how"):
        return [_shape(check, how, curve(of))]
    found, factor = [], parts.get("factor")
    for other in parts["others"].split(", "):
        if "factor" in parts:
            asks = f"{of} is {f'{factor} times ' if factor else ''}below {other}"
            found.append(_below(asks, (curve(other) / curve(of)).dropna(), float(factor or 1)))
        else:
            asks = f"{of} changes less than {other} from {first} to {last}"
            found.append(_shift(asks, *((curve(a, last) / curve(a)).mean() for a in (of, other))))
    return found


def overall(found: Iterable[Verdict], undecidable: str = "") -> str:
    """Return the result of a claim from its checks: confirmed, refuted, or not decidable."""
    holds = [verdict.holds for verdict in found]
    if undecidable:
        return "not decidable from the paper"
    if False in holds:
        return "refuted"
    return "confirmed" if holds and None not in holds else "not measured"


def _shape(asks: str, how: str, curve: Curve) -> Verdict:
    """Judge the power of x from the first point to the last, or a line by least squares."""
    if len(curve) < (3 if how == "grows linearly" else 2):
        return Verdict(asks)
    x, y = curve.index.to_numpy(float), curve.to_numpy()
    if how in POWERS:
        power = np.log(y[-1] / y[0]) / np.log(x[-1] / x[0])
        least, most = POWERS[how]
        return Verdict(asks, f"as x^{power:.2f}", bool(least <= power <= most))
    line = np.polyfit(x, y, 1)
    off = float(np.max(np.abs(np.polyval(line, x) - y) / y))
    if line[0] <= 0:
        return Verdict(asks, "it does not rise", holds=False)
    return Verdict(asks, f"a straight line within {off * 100:.0f} %", off <= STRAIGHT)


def _below(asks: str, ratios: Curve, factor: float) -> Verdict:
    if ratios.empty:
        return Verdict(asks)
    least, most = (f"{f:,.0f}" if f >= 10 else f"{f:.2g}" for f in (ratios.min(), ratios.max()))
    return Verdict(asks, f"by a factor of {least} to {most}", bool(ratios.min() >= factor))


def _shift(asks: str, mine: float, other: float) -> Verdict:
    if np.isnan([mine, other]).any():
        return Verdict(asks)
    saw = f"by a factor of {mine:.2g} and {other:.2g}"
    return Verdict(asks, saw, bool(abs(np.log(mine)) <= abs(np.log(other))))
