"""What a run of an experiment gives: its points with their rows, curves, and verdicts, as JSON."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from os import cpu_count

from graphmatch.bench.paper.claims import Curve, Curves, Verdict, Where
from graphmatch.bench.paper.experiment import Experiment, Panel, Point, Scale
from graphmatch.bench.process import Row


@dataclass(frozen=True, slots=True)
class Measured:
    """One point.

    Parameters
    ----------
    rows
        One for each algorithm.
    failed
        Why there are none.
    disagreement
        Where exact algorithms report different matches; then no row says anything.
    left_out
        Label, and why.
    """

    point: Point
    rows: Sequence[Row] = ()
    failed: str | None = None
    disagreement: str | None = None
    left_out: Sequence[Mapping[str, str]] = ()

    @classmethod
    def of(cls, point: Point, answer: Row, left_out: Sequence[Mapping[str, str]]) -> Measured:
        """Read what a process answers."""
        if "failed" in answer:
            return cls(point, failed=str(answer["failed"]), left_out=left_out)
        out = [*left_out, *answer["left_out"]]
        return cls(point, answer["rows"], None, answer.get("disagreement"), out)

    def said(self) -> Sequence[Row]:
        """Return the rows that say something: none where algorithms disagree."""
        return () if self.disagreement else self.rows


@dataclass(frozen=True, slots=True)
class Results:
    """All points of an experiment."""

    experiment: Experiment
    scale: Scale
    measured: Sequence[Measured]

    def curve(self, where: Where, label: str) -> Curve:
        """Return one curve; what was not measured is not in it."""
        found = []
        for one in self.measured:
            if (one.point.sweep, one.point.variant) == (where.sweep, where.variant):
                for row in one.said():
                    value = value_of(row, where.key)
                    if row["label"] == label and value is not None:
                        found.append((one.point.x, value))
        return sorted(found)

    def curves(self) -> Curves:
        """Return what checks and panels look at."""
        checked = [check.where for check in self.experiment.checks]
        drawn = [where for panel in self.experiment.panels for where in self.wheres(panel)]
        labels = [line.called for line in self.experiment.lines]
        every = {
            *checked,
            *drawn,
            *(Where(w.key, w.sweep, v) for w in checked for v in self.variants(w.sweep)),
        }
        found = {(w, label): self.curve(w, label) for w in every for label in labels}
        for panel in self.experiment.panels:
            for where in self.wheres(panel):
                for label, bound in panel.bounds.items():
                    points = (one.point for one in self.measured)
                    inside = [
                        p for p in points if (p.sweep, p.variant) == (where.sweep, where.variant)
                    ]
                    found[where, label] = sorted((p.x, bound(p)) for p in inside)
        return found

    def wheres(self, panel: Panel) -> Iterator[Where]:
        """Yield what a panel shows: one for each variant."""
        for variant in self.variants(panel.sweep):
            yield Where(panel.y.key, panel.sweep, variant)

    def variants(self, sweep: str) -> list[str]:
        """Return the variants of a sweep, in their order."""
        found = (one.point for one in self.measured if one.point.sweep == sweep)
        return list(dict.fromkeys(point.variant for point in found))

    def verdicts(self) -> list[Verdict]:
        """Return what the checks say."""
        curves = self.curves()
        return [check.of(curves) for check in self.experiment.checks]

    def is_sound(self) -> bool:
        """Say whether every point was measured, and all exact algorithms agree."""
        return not any(one.failed or one.disagreement for one in self.measured)

    def as_json(self) -> dict[str, object]:
        """Return everything; docs/reference/command.md names what is in it."""
        of = self.experiment
        return {
            "experiment": of.name,
            "paper": of.paper,
            "figure": of.figure,
            "claim": of.claim,
            "scale": self.scale,
            "seed": of.seed,
            "workload": of.workload,
            "python": platform.python_version(),
            "machine": f"{platform.machine()}, {cpu_count()} cores, one used",
            "panels": [
                {"title": p.title, "sweep": p.sweep, "x": asdict(p.x), "y": asdict(p.y)}
                for p in of.panels
            ],
            "points": [self._point(one) for one in self.measured],
            "verdicts": [asdict(verdict) for verdict in self.verdicts()],
            "agrees": not any(one.disagreement for one in self.measured),
        }

    def _point(self, one: Measured) -> dict[str, object]:
        point = one.point
        found: dict[str, object] = {
            "x": point.x,
            "sweep": point.sweep,
            "variant": point.variant,
            "subscriptions": point.subscriptions,
            "parameters": dict(point.parameters),
            "rows": list(one.rows),
            "left_out": [dict(each) for each in one.left_out],
        }
        if one.failed is not None:
            found["failed"] = one.failed
        if one.disagreement is not None:
            found["disagreement"] = one.disagreement
        return found


def value_of(row: Row, key: str) -> float | None:
    """Return a number of a row, by a key with dots; ``None`` where there is none.

    Examples
    --------
    >>> value_of({"counters": {"probes": 3}}, "counters.probes")
    3.0
    >>> value_of({"index_bytes": None}, "index_bytes")
    """
    found: object = row
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return float(found) if isinstance(found, int | float) else None
