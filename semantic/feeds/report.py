"""How the parts of a feed's reader report: with the feed's name, and the item concerned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NoReturn

from semantic.errors import InputError, OnProblem, Place, Problem, Severity


@dataclass(frozen=True, slots=True)
class Report:
    """Where a feed's problems go.

    Examples
    --------
    >>> Report("daily.rss", print).warn("its date is no date", "It is kept as text.", 12, "item 3")
    daily.rss:12 (item 3): its date is no date. It is kept as text.
    """

    source: str
    on_problem: OnProblem

    def warn(
        self, what: str, remedy: str, line: int | None = None, item: str | None = None
    ) -> None:
        """Report something that was passed over or mended."""
        place = Place(self.source, line, item=item)
        self.on_problem(Problem(what, place, remedy, Severity.WARNING))

    def refuse(
        self, what: str, remedy: str, line: int | None = None, item: str | None = None
    ) -> None:
        """Report an item that is lost."""
        self.on_problem(Problem(what, Place(self.source, line, item=item), remedy))

    def fail(
        self, what: str, remedy: str, line: int | None = None, column: int | None = None
    ) -> NoReturn:
        """Raise, because nothing of the feed can be used."""
        raise InputError(Problem(what, Place(self.source, line, column), remedy))
