"""Many texts at once, against Python's ``in``."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from semantic.text.substrings import GROWTH, WAITING, Substrings

parts = st.text("abé😀", min_size=1, max_size=4)


@given(st.sets(parts, max_size=200), st.lists(st.text("abé😀c", max_size=30), max_size=5))
def test_that_all_are_found(texts: set[str], asked: list[str]) -> None:
    substrings = Substrings()
    for text in texts:
        substrings.add(text)
    for text in asked:
        assert substrings.found_in(text) == {part for part in texts if part in text}


class Changes(RuleBasedStateMachine):
    """Texts come and go, a few or many at a time, and are looked for in between."""

    def __init__(self) -> None:
        super().__init__()
        self.substrings = Substrings()
        self.texts: dict[str, None] = {}

    @rule(texts=st.sets(parts, min_size=1, max_size=120))
    def add(self, texts: set[str]) -> None:
        for text in sorted(texts - self.texts.keys()):
            self.substrings.add(text)
            self.texts[text] = None

    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        some = data.draw(st.integers(0, len(self.texts)))
        for text in list(self.texts)[:some]:
            self.substrings.remove(text)
            del self.texts[text]

    @rule(text=st.text("abé😀", max_size=20))
    def look(self, text: str) -> None:
        assert self.substrings.found_in(text) == {part for part in self.texts if part in text}

    @invariant()
    def counted(self) -> None:
        assert len(self.substrings) == len(self.texts)


TestChanges = Changes.TestCase
TestChanges.settings = settings(max_examples=60, stateful_step_count=25)


def test_how_many_automata_there_are() -> None:
    """Texts that come one by one are in few automata, each built few times."""
    substrings = Substrings()
    most = 0
    for number in range(5000):
        substrings.add(f"text {number};")
        substrings.found_in("")
        most = max(most, substrings.automata)
    assert 2 <= most <= 4
    assert substrings.built <= 5000 * GROWTH * 3
    for number in range(4990):
        substrings.remove(f"text {number};")
        substrings.found_in("")
    assert substrings.found_in("text 12; text 4999;") == {"text 4999;"}
    assert substrings.kept <= 2 * 10 + WAITING
    assert substrings.automata <= 1


def test_that_many_at_once_are_one_automaton() -> None:
    substrings = Substrings()
    for number in range(3000):
        substrings.add(f"text {number};")
    assert substrings.found_in("text 2999;") == {"text 2999;"}
    assert (substrings.automata, substrings.built) == (1, 3000)


def test_that_a_text_may_come_back() -> None:
    """While it is still in an automaton, and go again."""
    substrings = Substrings()
    for number in range(100):
        substrings.add(f"text {number};")
    for _ in range(3):
        assert substrings.found_in("text 7;") == {"text 7;"}
        substrings.remove("text 7;")
        assert substrings.found_in("text 7;") == set()
        substrings.add("text 7;")
        substrings.remove("text 7;")
        assert substrings.found_in("text 7;") == set()
        substrings.add("text 7;")
    assert (substrings.built, len(substrings)) == (100, 100)
