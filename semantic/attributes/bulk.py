"""Attribute subscriptions from JSON Lines by skeleton: a chunk of lines is cut by compiled loops.

Of lines that say the same of other constants one is read as JSON, and of the others their
constants are taken (`semantic.attributes.cutting`); each different constant of a chunk is made a
term once. A line that is not certain is read as `semantic.attributes.files` does, and so are those
with a fault. So the result is that of `read_attribute_queries`: the same skeletons, the same
constants, the same problems in the same order.

Cost: a microsecond or two a line, and 0.5 for each constant that the chunk did not have before
(docs/decisions/attributes.md). The loops are loaded when the first file is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from semantic.attributes.files import REMEDY, is_new, of_row
from semantic.attributes.forms import ID, Form, Makers, form_of
from semantic.attributes.gathered import Gathered, Grouped, matrix
from semantic.attributes.rows import RowReader
from semantic.attributes.subscription import AttributeParser
from semantic.attributes.uncollected import uncollected
from semantic.attributes.values import plain
from semantic.errors import GraphMatchError, OnProblem, Problem, warn_problem

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from semantic.attributes.chunks import Chunk

BYTES = 8 * 1024 * 1024
"""Bytes of lines that are looked at together."""
_REMEMBERED = 65_536
"""How many forms are remembered."""


def grouped_attribute_rows(
    path: str | Path,
    *,
    parser: AttributeParser | None = None,
    on_problem: OnProblem = warn_problem,
    chunk: int = BYTES,
) -> Iterator[Grouped]:
    """Yield the attribute subscriptions of a file of JSON Lines by skeleton, chunk by chunk.

    Nothing is in `Grouped.refused`: what is wrong is reported as it is met. The row of a query is
    its line in the chunk, from 0. Comments are passed over.

    Parameters
    ----------
    path
        The file.
    parser
        Remembers the shapes it has seen; a new one by default.
    on_problem
        Called with each line that is no subscription, in their order; the rest goes on.
    chunk
        About how many bytes of lines are grouped together: what is in memory at a time is some
        ten times as much.

    Raises
    ------
    OSError
        When the file cannot be read.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> rows = '{"id": "a", "where": {"size": 5}} {"id": "b", "where": {"size": 7}}'
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "subscriptions.jsonl")
    ...     _ = path.write_text(rows.replace("} {", "}" + chr(10) + "{"))
    ...     (grouped,) = grouped_attribute_rows(path)
    >>> (group,) = grouped.groups
    >>> group.ids, group.constants.tolist(), [term.value for term in grouped.terms]
    (['a', 'b'], [[2, 0], [2, 1]], ['5', '7', 'urn:graphmatch:attribute:size'])
    """
    known = parser or AttributeParser()
    lines = _Lines(known, RowReader(str(path), known.decoder, REMEDY, on_problem))
    with Path(path).open("rb") as file:
        for data in _chunks(file, chunk):
            with uncollected():
                found = lines.grouped(data)
            if found.groups:
                yield found


def _chunks(file: BinaryIO, size: int) -> Iterator[bytes]:
    """Yield whole lines."""
    while data := file.read(size):
        yield data if data.endswith(b"\n") else data + file.readline()


class _Lines:
    """The lines of one file, as they come.

    Parameters
    ----------
    parser
        Remembers shapes.
    reader
        Reads single lines, and reports what is wrong with them.
    """

    def __init__(self, parser: AttributeParser, reader: RowReader) -> None:
        self._parser = parser
        self._reader = reader
        self._makers = Makers(parser.decoder)
        self._forms: dict[bytes, Form | None] = {}
        self._taken: dict[str, int] = {}
        self._before = 0

    def grouped(self, data: bytes) -> Grouped:
        """Return the subscriptions of some lines by skeleton."""
        from semantic.attributes.chunks import Chunk

        chunk = Chunk(data)
        gathered = Gathered()
        forms = self._forms_of(chunk)
        places = self._places(chunk, forms, gathered)
        names = _names(chunk, forms)
        self._keep(chunk, names, gathered)
        for first, lines in _by_form(chunk):
            form = forms[first]
            spans = chunk.lines[lines, 1]
            columns = [
                gathered.place(form.fixed[-1 - slot]) if slot < 0 else places[spans + slot]
                for slot in form.slots
            ]
            rows = lines.tolist()
            chosen = [names[line] for line in rows]
            gathered.add(form.template, chosen, rows, matrix(len(rows), columns))
        self._before += len(chunk)
        return gathered.result()

    def _forms_of(self, chunk: Chunk) -> dict[int, Form]:
        """Return the forms of a chunk by their first lines."""
        import numpy as np

        forms = {}
        for line in np.flatnonzero(chunk.forms == np.arange(len(chunk))).tolist():
            rest = chunk.rest_of(line)
            form = self._forms.get(rest) or self._learned(chunk.line(line))
            if form is not None:
                forms[line] = form
                if len(self._forms) >= _REMEMBERED:
                    self._forms.clear()
                self._forms[rest] = form
        chunk.forms[~np.isin(chunk.forms, list(forms))] = chunk.NO_FORM
        return forms

    def _learned(self, line: bytes) -> Form | None:
        """Return the form of a line; ``None`` where it has to be read."""
        unheard: list[Problem] = []
        reader = RowReader("", self._parser.decoder, REMEDY, unheard.append)
        row = reader.row(0, line)
        if row is None:
            return None
        try:
            id, _, _ = of_row(row, reader, 0, self._parser)
        except GraphMatchError:
            return None
        return form_of(row, *self._parser.taken_apart(id, row["where"]), self._makers)

    def _places(
        self, chunk: Chunk, forms: dict[int, Form], gathered: Gathered
    ) -> NDArray[np.int32]:
        """Return the places of constants by span, and make these terms.

        Lines with a constant that is no such term lose their form.
        """
        import numpy as np

        begins = np.zeros(len(chunk), np.int64)
        roles: list[int] = []
        for line, form in forms.items():
            begins[line] = len(roles)
            roles += (max(role, chunk.PASSED_OVER) for role in form.roles)
        places, firsts = chunk.numbered(begins, np.array(roles, np.uint8))
        texts = chunk.texts(firsts[:, 0])
        by_role = self._makers.by_role
        made = [
            by_role[role](text) for role, text in zip(firsts[:, 1].tolist(), texts, strict=True)
        ]
        if unsure := [place for place, term in enumerate(made) if term is None]:
            spans = np.flatnonzero(np.isin(places, unsure))
            lines = np.searchsorted(chunk.lines[:, 1], spans, side="right") - 1
            chunk.forms[lines] = chunk.NO_FORM
        gathered.terms += (
            plain(text) if term is None else term for term, text in zip(made, texts, strict=True)
        )
        return places

    def _keep(self, chunk: Chunk, names: list[str], gathered: Gathered) -> None:
        """Read the lines that have no form; of those with one, forget what is not kept."""
        reader, taken, no_form = self._reader, self._taken, chunk.NO_FORM
        forms = chunk.forms.tolist()
        for line, name in enumerate(names):
            number = self._before + line + 1
            if forms[line] == no_form or not name.strip():
                chunk.forms[line] = no_form
                self._read(line, chunk.line(line), gathered)
            elif taken.setdefault(name, number) != number:
                chunk.forms[line] = no_form
                is_new(name, number, taken, reader)

    def _read(self, place: int, line: bytes, gathered: Gathered) -> None:
        """Read a line of the chunk by itself."""
        reader, number = self._reader, self._before + place + 1
        if (row := reader.row(number, line)) is None:
            return
        try:
            name, query, _ = of_row(row, reader, number, self._parser)
        except GraphMatchError as error:
            reader.refused(number, row.get("id"), error)
            return
        if is_new(name, number, self._taken, reader):
            gathered.add_query(place, name, query)


def _names(chunk: Chunk, forms: dict[int, Form]) -> list[str]:
    """Return the ids of lines that have a form, and anything for others."""
    import numpy as np

    found = np.zeros(len(chunk), np.int64)
    for line, form in forms.items():
        found[line] = form.roles.index(ID)
    lines = np.flatnonzero(chunk.forms != chunk.NO_FORM)
    names = chunk.texts(chunk.lines[lines, 1] + found[chunk.forms[lines]])
    if len(names) == len(chunk):
        return names
    every = [""] * len(chunk)
    for line, name in zip(lines.tolist(), names, strict=True):
        every[line] = name
    return every


def _by_form(chunk: Chunk) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield forms by their first lines, and all lines that have them."""
    import numpy as np

    order = np.argsort(chunk.forms, kind="stable")
    ordered = chunk.forms[order]
    begins = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
    for begin, end in zip(begins, np.append(begins[1:], len(order)), strict=True):
        if ordered[begin] != chunk.NO_FORM:
            yield int(ordered[begin]), order[begin:end]
