"""The runs of ``graphmatch bench all``, read from suite.toml, and their results for readers.

A run is a workload with columns (`graphmatch.bench.runner`), or a function of
`graphmatch.bench.measures`. Nothing here is measured: the table, the figures and the winners are
computed from results, so a new run changes the pages.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from graphmatch.bench import report
from graphmatch.bench.process import Row
from graphmatch.bench.runner import MICROS, Configuration, Scale
from graphmatch.bench.workloads import WORKLOADS

MEMORY = "bytes_per_subscription"


@dataclass(frozen=True, slots=True)
class Run:
    """The measurement of one process: a workload, or one of `MEASURES`.

    suite.toml documents the fields.
    """

    name: str
    section: str
    title: str
    measured: str
    sizes: Mapping[Scale, int]
    compared: Sequence[Sequence[str]]
    key: str = MICROS
    parameters: Mapping[str, Any] = field(default_factory=dict)
    passes: int = 1
    memory: str = ""

    def columns(self) -> list[str]:
        """Return the columns, each once."""
        return list(dict.fromkeys(column for pair in self.compared for column in pair))


_SUITE = tomllib.loads(Path(__file__).with_name("suite.toml").read_text(encoding="utf-8"))
RUNS: Mapping[str, Run] = {one["name"]: Run(**one) for one in _SUITE["run"]}
"""The runs by name."""

OURS = "graphmatch"
UNITS: Mapping[str, str] = {
    MICROS: "µs",
    "microseconds": "µs",
    "seconds": "s",
    "megabytes": "MB",
    "per_second": "a second",
    MEMORY: "bytes",
}
NAMES: Mapping[str, str] = {
    "clips": "CLIPS",
    "drasi": "Drasi",
    "duckdb": "DuckDB",
    "lucene": "Lucene Monitor",
    "pyoxigraph": "the loop over pyoxigraph",
    "dictionary": "the dictionary",
    "scan": "the scan",
    "parse": "parsing alone",
    "read": "reading alone",
    "ctps": "CTPS",
    "gryphon": "Gryphon",
    "htree": "H-Tree",
    "betree": "BE-Tree",
    "nt": "N-Triples",
    "turtle": "Turtle",
    "rdfxml": "RDF/XML",
    "jsonld": "JSON-LD",
    "arrow": "Arrow",
    "feed": "feeds",
    "many": "subscribing in bulk",
    "one": "subscribing one by one",
    "prepared": "values of a prepared query",
    "unsubscribe": "unsubscribing",
    "import": "import graphmatch",
    "engine": "an engine",
    "filter": "graphmatch filter, a feed",
    "thesaurus": "the same with a thesaurus",
    "opened": "Engine.open",
    "product": "n by n solutions",
    "single": "n solutions",
    "last": "after 20 rounds",
    "first": "after 2 rounds",
}
"""The names of engines, forms and measurements, if they differ."""
_QUANTITIES: Mapping[str, str] = {
    MICROS: "µs per event (median)",
    "seconds": "seconds",
    "per_second": "subscriptions per second (longer bars are better)",
}
_SIZES: Mapping[str, str] = {"starting": "concepts", "solutions": "triples for each pattern"}
"""The meaning of a run's size, if not subscriptions."""
_ONLY_FORMS = ("integers", "facts", "statement", "titles", "values", "document", "node")
"""Forms that are the only one of their engine; they are not shown."""


def name_of(column: str) -> str:
    """Return a column's name for readers.

    Examples
    --------
    >>> name_of("graphmatch:nt+new@/10"), name_of("dictionary:integers")
    ('graphmatch, N-Triples, new terms, a tenth of the subscriptions', 'the dictionary')
    """
    of = Configuration.of(column)
    size = of.subscriptions
    parts = [
        NAMES.get(of.engine, of.engine),
        "" if of.form in _ONLY_FORMS else NAMES.get(of.form, of.form),
        "new terms" if of.new else "",
        "a tenth of the subscriptions" if size == "/10" else f"{size} subscriptions" * bool(size),
        *(f"{value} {name}" for name, value in of.parameters.items()),
    ]
    return ", ".join(filter(None, parts))


def _engine(run: Run, column: str) -> str:
    engine = Configuration.of(column).engine
    return engine if run.measured in WORKLOADS or engine == "parse" else OURS


def _titled(run: Run, size: int) -> str:
    return f"{run.title}, {size:,} {_SIZES.get(run.measured, 'subscriptions')}"


@dataclass(frozen=True, slots=True)
class Comparison:
    """A measured value, and that of another column, if any; `key` says of what."""

    run: Run
    size: int
    key: str
    of: str
    value: float
    beside: str = ""
    other: float | None = None

    @property
    def factor(self) -> float | None:
        """How many times as fast, or as small, the first column is."""
        if self.other is None:
            return None
        return self.value / self.other if self.key == "per_second" else self.other / self.value

    @property
    def opponent(self) -> str:
        """The name of the other engine; empty if there is none."""
        engine = _engine(self.run, self.beside) if self.beside else OURS
        return "" if engine == OURS else NAMES.get(engine, engine)

    @property
    def winner(self) -> str:
        """The name of the engine that is faster; empty if there is only one."""
        if not self.opponent or self.factor is None:
            return ""
        return OURS if self.factor >= 1 else self.opponent


def comparisons(results: Mapping[str, Row], section: str = "") -> Iterator[Comparison]:
    """Yield the comparisons of all runs, or those of a section, whose columns have results."""
    for run in RUNS.values():
        if run.name not in results or section not in ("", run.section):
            continue
        found = results[run.name]
        columns = found["columns"]
        told = [(pair, run.key) for pair in run.compared] + [([run.memory], MEMORY)]
        for pair, key in told:
            of, beside = [*pair, ""][:2]
            value, other = (columns.get(column, {}).get(key) for column in (of, beside))
            if value is not None and (other is not None) == bool(beside):
                yield Comparison(run, found["size"], key, of, value, beside, other)


def _amount(value: float | None, key: str) -> str:
    unit = UNITS[key]
    if value is not None and unit == "µs" and value >= 1000:
        value, unit = value / 1000, "ms"
    if value is not None and unit == "s" and value < 1:
        value, unit = value * 1000, "ms"
    return "" if value is None else f"{report.number(float(value))} {unit}".rstrip()


def table(results: Mapping[str, Row]) -> str:
    """Return the comparisons as a table in Markdown, with the machines that measured them."""
    headings = ("run", "size", "measured", "", "beside", "", "times as fast", "winner")
    rows = [
        (
            f"`{one.run.name}`: {one.run.title}",
            one.size,
            f"{name_of(one.of)}{', memory' * (one.key == MEMORY)}",
            _amount(one.value, one.key),
            name_of(one.beside),
            _amount(one.other, one.key),
            one.factor,
            one.winner,
        )
        for one in comparisons(results)
    ]
    machines = dict.fromkeys(found["machine"] for found in results.values())
    return f"{'; '.join(machines)}\n\n{report.markdown(headings, rows)}"


def sentences(results: Mapping[str, Row], section: str) -> list[str]:
    """Return who wins in a section: a sentence for each other engine.

    If an engine wins some comparisons and loses others, these are two sentences that name them.
    """
    found: dict[tuple[str, str], list[Comparison]] = {}
    for one in comparisons(results, section):
        if one.winner:
            found.setdefault((one.opponent, one.winner), []).append(one)
    said = []
    for (opponent, winner), several in found.items():
        loser = OURS if winner == opponent else opponent
        factors = sorted(max(one.factor or 0, 1 / (one.factor or 1)) for one in several)
        ends = dict.fromkeys(report.number(float(f"{end:.2g}")) for end in factors)
        least, most = next(iter(ends)), next(reversed(ends))
        span = least if least == most else f"{least} to {most}"
        forms: dict[str, list[str]] = {}
        for one in several:
            titled = forms.setdefault(_titled(one.run, one.size), [])
            titled.append(name_of(one.of).removeprefix(f"{OURS}, "))
        places = (f"{title}: {' and '.join(names)}" for title, names in forms.items())
        where = f" ({'; '.join(places)})" if (opponent, loser) in found else ""
        who = f"{winner[0].upper()}{winner[1:]}" if winner != OURS else OURS
        speed = "about as fast" if span == "1" else f"{span} times as fast"
        said.append(f"**{who}** is {speed} as {loser}{where}.")
    return said


def section(results: Mapping[str, Row], name: str, picture: str) -> str:
    """Return a section as Markdown: the image at the address `picture`, and who wins."""
    told = "".join(f"\n- {sentence}" for sentence in sentences(results, name))
    return f"![{name}]({picture})\n{told}"


def draw(results: Mapping[str, Row], name: str) -> bytes:
    """Draw a section: a bar for each column of its runs, below their titles; return it as SVG."""
    import matplotlib
    from matplotlib.figure import Figure

    shown = [run for run in RUNS.values() if run.section == name and run.name in results]
    engines = dict.fromkeys(_engine(run, column) for run in shown for column in run.columns())
    colours = dict(zip((e for e in engines if e != OURS), report.COLOURS, strict=False))
    titles, bars, place = list[tuple[float, str]](), list[tuple[float, str, float, str]](), 0.0
    for run in shown:
        titles.append((place, _titled(run, results[run.name]["size"])))
        for column, row in results[run.name]["columns"].items():
            if run.key in row and not {"@", "?"} & set(column):
                place += 1
                colour = colours.get(_engine(run, column), report.OURS[OURS])
                bars.append((place, name_of(column), row[run.key], colour))
        place += 1.5
    places, labels, values, shades = zip(*bars, strict=True)
    written = BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": name, "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(7.4, 0.19 * place + 0.6), layout="constrained")
        axes = figure.subplots()
        axes.barh(places, values, color=shades)
        axes.set(xscale="log", xlim=(min(values) / 2, max(values) * 4), ylim=(place - 1, -0.8))
        axes.set_yticks(places, labels)
        axes.set_xlabel(f"{_QUANTITIES[shown[0].key]}, logarithmic")
        for height, value in zip(places, values, strict=True):
            text = _amount(value, shown[0].key)
            axes.annotate(text, (value, height), (3, 0), textcoords="offset points", va="center")
        for height, title in titles:
            axes.text(0.005, height, title, transform=axes.get_yaxis_transform(), weight="bold")
        axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(written, format="svg", metadata={"Date": None, "Creator": None})
    return written.getvalue()
