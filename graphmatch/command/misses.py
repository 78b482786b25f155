"""Near misses of a run: the publications that one condition less would have brought.

Each query is also matched without each of its conditions, in an engine of its own. A query keeps
its only condition besides types and exclusions, because otherwise nearly every item would match.

Limits: the first `MAX_SUBSCRIPTIONS`, and the publications of the first `MAX_SECONDS` seconds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress
from time import perf_counter

from rich.text import Text

from graphmatch.command.output import TITLE, described
from graphmatch.console import styled
from graphmatch.engine import Engine
from graphmatch.explain.conditions import Condition, conditions
from graphmatch.report import MatchReport, shorten
from semantic.errors import GraphMatchError, plural
from semantic.publication import Publication
from semantic.vocabulary import TYPE

MAX_SUBSCRIPTIONS, MAX_ITEMS = 100, 3
"""Maximum numbers of subscriptions, and of listed publications of a condition."""
MAX_SECONDS = 60.0
"""Time limit of matching without conditions."""


class NearMisses:
    """Collects the near misses of an engine's subscriptions.

    Parameters
    ----------
    language
        The reader's language, for the labels of terms.
    seconds
        Time limit.
    """

    def __init__(self, engine: Engine, language: str, seconds: float = MAX_SECONDS) -> None:
        self._engine, self._language = engine, language
        self._until = perf_counter() + seconds
        self._conditions: dict[str, tuple[str, Condition]] = {}
        for subscription in engine.subscriptions[:MAX_SUBSCRIPTIONS]:
            found = conditions(subscription.query, engine.ontology.prefixes)
            required = [one for one in found if not (one.excludes or _is_type(one))]
            for number, one in enumerate(found):
                if one.excludes or (one in required and len(required) > 1):
                    self._conditions[f"{number} {subscription.id}"] = subscription.id, one
        self._relaxed = engine.empty_copy(on_problem=lambda _: None)
        # A query that is invalid without a condition is left out.
        self._relaxed.subscribe_many((k, one.without) for k, (_, one) in self._conditions.items())
        self._counts = Counter[str]()
        self._listed: defaultdict[str, list[Publication]] = defaultdict(list)
        self._skipped = 0

    def add(self, report: MatchReport) -> None:
        """Match the publication of a report without each condition, if there is time."""
        if perf_counter() > self._until:
            self._skipped += 1
            return
        publication, matched = report.read(), frozenset(report.subscriptions)
        for key in self._relaxed.match(publication).subscriptions:
            if self._conditions[key][0] not in matched:
                self._counts[key] += 1
                if len(self._listed[key]) < MAX_ITEMS:
                    self._listed[key].append(publication)

    def lines(self) -> Iterator[Text]:
        """Yield the near misses of each subscription, by condition, the most frequent one first."""
        keys: defaultdict[str, list[str]] = defaultdict(list)
        for key, _ in self._counts.most_common():
            keys[self._conditions[key][0]].append(key)
        for id, found in keys.items():
            yield styled("near misses of ", (id, "green"))
            for key in found:
                yield from self._of_condition(key)
        if not keys:
            yield styled("no near misses")
        if self._skipped:
            yield styled(f"not examined for lack of time: {plural(self._skipped, 'publication')}")
        if (left := len(self._engine) - MAX_SUBSCRIPTIONS) > 0:
            yield styled(f"not examined: {plural(left, 'subscription')}, the last")

    def _of_condition(self, key: str) -> Iterator[Text]:
        (id, condition), count = self._conditions[key], self._counts[key]
        names, language = self._engine.ontology.shown_names, self._language
        text = condition.describe(lambda term: names.shown(term, language))
        yield styled(f"  {plural(count, 'more match', 'more matches')} without: {text}")
        for publication in self._listed[key]:
            yield styled(f"      {shorten(described(publication).title or publication.id, TITLE)}")
            if condition.excludes:
                with suppress(GraphMatchError):
                    nearest = self._engine.explain(id, publication, language).nearest
                    if nearest and nearest[0].why:
                        yield styled("        ", (f"but {shorten(nearest[0].why, TITLE)}", "dim"))
        if count > MAX_ITEMS:
            yield styled(f"      … and {count - MAX_ITEMS:,} more")


def _is_type(condition: Condition) -> bool:
    return {p.predicate for branch in condition.branches for p in branch.patterns} == {TYPE}
