"""Which of very many tests of text a term passes.

Tests are kept by what they look at (the text, or the language tag) and its folding, so a
text is folded once for each folding in use. Of each such kind, what is contained is
found in one pass over the text (`semantic.text.substrings`), beginnings and ends by
looking up the text's first and last characters in a dictionary, for each length that
tests have; equal texts and language ranges in dictionaries.

Cost of a text: linear in its length, plus the lengths of beginnings and ends in use, plus
the texts found; it does not depend on how many tests there are.
"""

from __future__ import annotations

from semantic.decision import text_of
from semantic.terms import Term
from semantic.text.folding import folded
from semantic.text.kept import KeptTests
from semantic.text.tests import Folding, TextTest, View


class TextIndex:
    """Tests of text, each with a number.

    Examples
    --------
    >>> from pyoxigraph import Literal, Variable
    >>> from semantic.text.tests import TextOperator
    >>> index, t = TextIndex(), Variable("t")
    >>> index.add(TextTest(t, TextOperator.CONTAINS, Literal("sea")), 1)
    >>> index.add(TextTest(t, TextOperator.STARTS, Literal("By"), View.STR), 2)
    >>> index.add(TextTest(t, TextOperator.EQUALS, Literal("en"), View.LANG), 3)
    >>> index.satisfied(Literal("By the sea")), index.satisfied(Literal("Seaside", language="en"))
    ([1, 2], [3])
    >>> index.remove(TextTest(t, TextOperator.CONTAINS, Literal("sea")), 1)
    >>> index.satisfied(Literal("By the sea"))
    [2]
    """

    def __init__(self) -> None:
        self._texts: dict[Folding, KeptTests] = {}
        self._tags: dict[Folding, KeptTests] = {}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def add(self, test: TextTest, number: int) -> None:
        """Add a test; which variable it is of does not matter.

        Parameters
        ----------
        test
            As it stands in `Subscription.branches`.
        number
            What it is reported by; several tests may have one number.

        Raises
        ------
        ValueError
            When it was added with this number before.
        """
        kinds = self._kinds(test)
        if test.folding not in kinds:
            kinds[test.folding] = KeptTests()
        kinds[test.folding].add(test, number)
        self._size += 1

    def remove(self, test: TextTest, number: int) -> None:
        """Remove a test that was added with this number.

        Raises
        ------
        KeyError
            When it was not.
        """
        kinds = self._kinds(test)
        if test.folding not in kinds:
            raise KeyError(test)
        kinds[test.folding].remove(test, number)
        if not kinds[test.folding]:
            del kinds[test.folding]
        self._size -= 1

    def satisfied(self, term: Term) -> list[int]:
        """Return the numbers of the tests that a term passes, each once, in order."""
        found: set[int] = set()
        for kinds, view in ((self._texts, View.STR), (self._tags, View.LANG)):
            shown = text_of(term, view) if kinds else None
            if shown is None:
                continue
            own = text_of(term, View.TERM) if view is View.STR else None
            for folding, texts in kinds.items():
                found.update(texts.satisfied(folded(shown[0], folding), own))
        return sorted(found)

    def _kinds(self, test: TextTest) -> dict[Folding, KeptTests]:
        return self._tags if test.view is View.LANG else self._texts
