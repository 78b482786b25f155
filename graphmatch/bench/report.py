"""Output for people: tables of rows, and the figures of experiments, by pandas and matplotlib.

Colours are those of Okabe and Ito ("Color universal design", 2008), which colour-blind people can
distinguish; markers differ, too. An axis is logarithmic if its values differ by more than a factor
of `WIDE`. The same results give the same SVG, byte by byte.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any

import pandas as pd

from graphmatch.bench.process import Row
from graphmatch.console import CommandConsole, styled
from semantic.errors import unknown_choice

if TYPE_CHECKING:
    from graphmatch.bench.experiments import Experiment, Record

WIDE = 30
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C510A", "#999933")
OURS = {"graphmatch": "#000000", "scan": "#AAAAAA", **dict.fromkeys(("core", "index"), "#666666")}
"""The engine's own colours, the lower bound's, and that of a theoretical curve."""
MARKERS, STYLES = "os^DvPX<>*hp", ("-", "--", ":")
INCHES = (6.4, 3.0)
"""The size of a plot."""


def number(value: object) -> str:
    """Return a value as text: a number with three digits, or all digits before the point.

    Examples
    --------
    >>> number(0.12345), number(12345.6), number(200), number(None)
    ('0.123', '12,346', '200', '')
    """
    if isinstance(value, float):
        return "" if value != value else f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return "" if value is None else f"{value:,}" if isinstance(value, int) else str(value)


def named(names: Iterable[str], known: Collection[str], parameter: str) -> list[str]:
    """Return `names` without repetitions; raise `InputError` for one that is not in `known`.

    `parameter` is the name of the option for the message.
    """
    for name in names:
        if name not in known:
            raise unknown_choice(parameter, name, known)
    return list(dict.fromkeys(names))


def show_problems(err: CommandConsole, name: str, found: Row) -> int:
    """Print which engines are not installed, and an error, if any; return the exit status.

    `name` is that of the run, and `found` a result of `graphmatch.bench.runner.asked`.
    """
    for engine, how in found.get("missing", {}).items():
        err.print(styled((f"{name}: ", "yellow"), f"{engine} is left out. Install it: {how}"))
    if "wrong" not in found:
        return 0
    err.print(styled((f"{name}: ", "red"), found["wrong"]))
    return 2


def table(rows: Sequence[Row], columns: Mapping[str, str]) -> str:
    """Return rows as a plain table; `columns` maps keys to headings; unused keys are left out."""
    shown = {key: heading for key, heading in columns.items() if any(key in row for row in rows)}
    cells = [{heading: number(row.get(key)) for key, heading in shown.items()} for row in rows]
    text: str = pd.DataFrame(cells).to_string(index=False)
    return "\n".join(line.rstrip() for line in text.splitlines())


def markdown(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return rows as a table in Markdown."""
    cells = [headings, ["---"] * len(headings), *(map(number, row) for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def frame(records: Sequence[Record]) -> Any:
    """Return a data frame with a row for each record."""
    return pd.DataFrame(records, columns=["quantity", "variant", "algorithm", "x", "value"])


def curves(records: Sequence[Record], axis: str) -> str:
    """Return a table as text: a row for each place on the axis, a column for each curve."""
    found = frame(records).rename(columns={"x": axis})
    found["curve"] = (found.algorithm + " " + found.variant).str.rstrip() + ", " + found.quantity
    text: str = found.pivot_table("value", axis, "curve", sort=False).to_string(float_format=number)
    return text


def section(of: Experiment, picture: str) -> str:
    """Return a figure as Markdown: claim, verdict, and the image at the address `picture`."""
    return (
        f"### {of.name}\n\n{of.figure[0].upper()}{of.figure[1:]}: {of.claim}\n\n"
        f"**{of.verdict.capitalize()}** ({of.measure_text}). {of.finding}\n\n"
        f"![{of.name}]({picture})"
    )


def verdicts(several: Iterable[Experiment]) -> str:
    """Return figures as a table in Markdown: claim, verdict, and the measure it rests on."""
    rows = ((f"[{o.name}](#{o.name})", o.claim, o.verdict, o.measure_text) for o in several)
    return markdown(("figure", "claim", "verdict", "measure"), rows)


def draw(of: Experiment, records: Sequence[Record]) -> bytes:
    """Draw the measured curves of an experiment, a plot for each quantity; return them as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    from graphmatch.bench.experiments import QUANTITIES

    written, rows, (width, height) = BytesIO(), frame(records), INCHES
    every = dict.fromkeys([*of.algorithms, *rows.algorithm])
    places = {algorithm: place for place, algorithm in enumerate(every)}
    styles = dict(zip(of.variants, STYLES, strict=False))
    with matplotlib.rc_context({"svg.hashsalt": of.name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(width, height * len(of.quantities)), layout="constrained")
        plots = figure.subplots(len(of.quantities), squeeze=False)[:, 0]
        for axes, quantity in zip(plots, of.quantities, strict=True):
            drawn = rows[rows.quantity == quantity]
            for (variant, algorithm), curve in drawn.groupby(["variant", "algorithm"], sort=False):
                axes.plot(
                    *curve.sort_values("x")[["x", "value"]].to_numpy().T,
                    styles[variant],
                    color=OURS.get(algorithm, COLOURS[places[algorithm] % len(COLOURS)]),
                    marker=MARKERS[places[algorithm] % len(MARKERS)],
                    markersize=4,
                    linewidth=1.2,
                    label=f"{algorithm}, {variant}" if variant else algorithm,
                )
            if _is_wide(drawn.x):
                axes.set_xscale("log")
                axes.xaxis.set_minor_formatter("")
            if _is_wide(drawn.value):
                axes.set_yscale("log")
            elif len(drawn):
                axes.set_ylim(bottom=0)
            axes.set_ylabel(QUANTITIES[quantity][1])
            axes.grid(visible=True, linewidth=0.3)
            if len(drawn):
                axes.legend(loc="upper left", bbox_to_anchor=(1, 1), frameon=False)
        plots[0].set_title(f"{of.name}: {of.paper}, {of.figure}", fontsize=10)
        plots[-1].set_xlabel(of.axis)
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()


def _is_wide(values: Any) -> bool:
    return len(values) > 0 and values.min() > 0 and values.max() / values.min() >= WIDE
