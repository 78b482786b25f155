"""Subscriptions on one subject's properties: rows move from posting lists to tables."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

from graphmatch import Engine
from semantic.attributes.events import Event

PROPERTIES = 6
LARGEST = 40


class Made:
    """A generated subscription, and its expected matches."""

    def __init__(self, draw: random.Random) -> None:
        parts, tests = [], list[Callable[[dict[str, int]], bool]]()
        for name in sorted(draw.sample(range(PROPERTIES), draw.randint(1, 3))):
            part, test = self._part(draw, f"a{name}")
            parts.append(part)
            tests.append(test)
        where = " ".join(parts)
        others = list[Callable[[dict[str, int]], bool]]()
        if draw.random() < 0.2:
            other, test = self._part(draw, f"a{draw.randrange(PROPERTIES)}")
            where, others = f"{{ {where} }} UNION {{ {other} }}", [test]
        self.text = f"SELECT ?e {{ {where} }}"
        self._tests, self._others = tests, others

    @staticmethod
    def _part(draw: random.Random, name: str) -> tuple[str, Callable[[dict[str, int]], bool]]:
        low = draw.randrange(LARGEST)
        high = low + draw.randrange(LARGEST // 2)
        if draw.random() < 0.2:
            return f"?e attribute:{name} {low} .", lambda event: event.get(name) == low
        text = f"?e attribute:{name} ?{name} FILTER(?{name} >= {low} && ?{name} <= {high})"
        return text, lambda event: name in event and low <= event[name] <= high

    def meets(self, event: dict[str, int]) -> bool:
        """Return whether an event satisfies the constraints."""
        return all(test(event) for test in self._tests) or any(t(event) for t in self._others)


def event(draw: random.Random) -> dict[str, int]:
    names = draw.sample(range(PROPERTIES), draw.randint(1, PROPERTIES))
    return {f"a{name}": draw.randrange(LARGEST) for name in names}


def test_rows_are_found_wherever_they_are(tmp_path: Path) -> None:
    """Adding, replacing and removing hundreds of subscriptions creates and empties tables."""
    draw = random.Random(5)
    engine, held = Engine(), dict[str, Made]()
    for number in range(1500):
        made = Made(draw)
        choice = draw.random()
        if held and choice < 0.15:
            id = draw.choice(list(held))
            engine.replace(id, made.text)
            held[id] = made
        elif held and choice < 0.4 + (0.4 if 700 < number < 1000 else 0):
            id = draw.choice(list(held))
            engine.unsubscribe(id)
            del held[id]
        else:
            id = str(number)
            engine.subscribe(id, made.text)
            held[id] = made
        if number % 50 == 0:
            engine.save(tmp_path / "saved")
            for one in (engine, Engine.open(tmp_path / "saved")):
                for _ in range(5):
                    given = event(draw)
                    report = one.match(Event("e", dict(given)))
                    assert list(report.subscriptions) == [
                        id for id, made in held.items() if made.meets(given)
                    ]
                    assert all(match.solutions for match in report)
    assert [one.id for one in engine.subscriptions] == list(held)


def test_the_rows_before_a_table_are_put_into_it() -> None:
    engine = Engine()
    for number in range(200):
        text = f"SELECT ?e {{ ?e attribute:price ?p FILTER(?p >= {number} && ?p < {number + 2}) }}"
        engine.subscribe(str(number), text)
    report = engine.match(Event("e", {"price": 100}))
    assert list(report.subscriptions) == ["99", "100"]
    assert report.counters.candidates == 2  # The table rejects all other rows.
