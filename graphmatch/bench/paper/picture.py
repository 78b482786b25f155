"""A figure, as PNG and SVG: a panel for each question, and below it the claim and what was seen.

Colours are those of Okabe and Ito ("Color universal design", 2008), which people tell apart who do
not tell all colours apart; markers differ, too. An axis is logarithmic where its values differ
by more than a factor of `WIDE`. The same results give the same SVG, byte by byte.
"""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from graphmatch.bench.paper.claims import Curve
from graphmatch.bench.paper.experiment import Panel
from graphmatch.bench.paper.results import Results
from graphmatch.bench.paper.shown import HOLDS

WIDE = 30
"""Where the largest value is so many times the least one, an axis is logarithmic."""

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A", "#999933")
OURS = {"graphmatch": "#000000", "core": "#666666", "scan": "#AAAAAA"}
"""The engine's own, and the floor."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "p")
STYLES = ("-", "--", ":")

PANEL, LEGEND, HEIGHT = 4.2, 2.0, 3.4
"""Inches."""
LINE = 0.17
"""Inches of a line of the caption."""
LETTERS = 15
"""About so many letters of the caption fit into an inch."""


def draw(results: Results, output: Path) -> None:
    """Write NAME.svg and NAME.png into a folder."""
    name = results.experiment.name
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
        figure = _figure(results)
        for format, metadata in (("svg", {"Date": None, "Creator": None}), ("png", {})):
            figure.savefig(output / f"{name}.{format}", format=format, metadata=metadata, dpi=150)


def _figure(results: Results) -> Figure:
    panels = results.experiment.panels
    width = PANEL * len(panels) + LEGEND
    caption = _caption(results, round(width * LETTERS))
    below = LINE * (caption.count("\n") + 2)
    figure = Figure(figsize=(width, HEIGHT + below), layout="constrained")
    engine: Any = figure.get_layout_engine()
    share = below / (HEIGHT + below)
    engine.set(rect=(0, share, 1, 1 - share))
    drawn: dict[str, Any] = {}
    for axes, panel in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels, strict=True):
        drawn.update(_draw_panel(axes, panel, results))
    of = results.experiment
    figure.suptitle(f"{of.name}: {of.paper}, {of.figure}", fontsize=10)
    if drawn:
        figure.legend(drawn.values(), drawn.keys(), loc="outside right upper", frameon=False)
    figure.text(0.01, 0.01, caption, fontsize=8, va="bottom")
    return figure


def _draw_panel(axes: Axes, panel: Panel, results: Results) -> dict[str, Any]:
    """Draw the curves of a panel, and return them by what the legend calls them."""
    drawn: dict[str, Any] = {}
    seen: list[Curve] = []
    for style, where in zip(STYLES * 3, results.wheres(panel), strict=False):
        for number, line in enumerate(results.experiment.lines):
            curve = results.curve(where, line.called)
            if not curve or (panel.labels and line.called not in panel.labels):
                continue
            seen.append(curve)
            label = f"{line.called}, {where.variant}" if where.variant else line.called
            (drawn[label],) = axes.plot(
                *zip(*curve, strict=True),
                color=OURS.get(line.called, COLOURS[number % len(COLOURS)]),
                marker=MARKERS[number % len(MARKERS)],
                markersize=4,
                linewidth=1.2,
                linestyle=style,
            )
    points = [one.point for one in results.measured if one.point.sweep == panel.sweep]
    for label, bound in panel.bounds.items():
        curve = sorted((point.x, bound(point)) for point in points)
        seen.append(curve)
        (drawn[label],) = axes.plot(*zip(*curve, strict=True), color="#444444", linestyle="--")
    _scale(axes, seen)
    axes.set_xlabel(panel.x.label)
    axes.set_ylabel(panel.y.label)
    axes.set_title(panel.title, fontsize=9)
    axes.grid(visible=True, linewidth=0.3)
    if not seen:
        axes.text(0.5, 0.5, "nothing measured yet", ha="center", transform=axes.transAxes)
    return drawn


def _scale(axes: Axes, curves: list[Curve]) -> None:
    """Choose the kind of each axis."""
    places = [x for curve in curves for x, _ in curve]
    values = [y for curve in curves for _, y in curve]
    if _is_wide(places):
        axes.set_xscale("log")
    else:
        axes.locator_params(axis="x", nbins=6)  # more would not fit beside each other
    if _is_wide(values):
        axes.set_yscale("log")
    elif values:
        axes.set_ylim(bottom=0)


def _is_wide(values: list[float]) -> bool:
    return bool(values) and min(values) > 0 and max(values) / min(values) >= WIDE


def _caption(results: Results, width: int) -> str:
    """Return the claim, and what was measured of it."""
    said = [f"Paper: {results.experiment.claim}"]
    verdicts = results.verdicts()
    for holds in (True, False):
        saw = [f"{v.asks} ({v.saw})" for v in verdicts if v.holds is holds]
        if saw:
            said.append(f"At {results.scale} scale, {HOLDS[holds][0]}: {'; '.join(saw)}.")
    missing = sum(verdict.holds is None for verdict in verdicts)
    if missing:
        said.append(f"Not measured: {missing} of {len(verdicts)} parts of this.")
    return "\n".join(fill(line, width) for line in said)
