"""Subscriptions of files and folders, taken into an engine; what is refused has its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from graphmatch.engine import Engine
from semantic.errors import OnProblem, Place
from semantic.sparql.files import placed_subscriptions
from semantic.subscription import Subscription


def subscribe_files(engine: Engine, paths: Iterable[Path], on_problem: OnProblem) -> None:
    """Take in the subscriptions of files and folders; refused ones are reported.

    Parameters
    ----------
    on_problem
        Called with each that is none, whose id is taken, or whose class or unit is unknown.

    Examples
    --------
    >>> engine = Engine()
    >>> subscribe_files(engine, [Path("data/subscriptions/feeds-audio.rq")], print)
    >>> [subscription.id for subscription in engine.subscriptions]
    ['feeds-audio']
    """
    places: dict[str, Place] = {}

    def noted() -> Iterator[Subscription]:
        found = placed_subscriptions(*paths, parser=engine.parser, on_problem=on_problem)
        for place, subscription in found:
            places[subscription.id] = place
            yield subscription

    for error in engine.subscribe_many(noted()):
        id = error.problem.where.source
        on_problem(replace(error.problem, where=replace(places[id], item=id)))
