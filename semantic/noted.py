"""An integer for each term of a lexicon, found out once: what is asked of terms again and again.

Terms that a lexicon has (`semantic.term_texts`) are asked about by number, so that it costs a step
in an array, not a look-up of letters. Several threads may ask; what is lost when two of them write
at once is found out again.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from semantic.term_texts import Lexicon

Notes = NDArray[np.int32]

NOTHING = -2
"""Of a number of which nothing is noted yet; the last note is that of terms without a number."""


class Noted:
    """Notes by lexicon; a lexicon's are forgotten with it.

    Examples
    --------
    >>> lexicon, noted = Lexicon(), Noted()
    >>> noted.of(lexicon)[:2].tolist()
    [-2, -2]
    """

    def __init__(self) -> None:
        self._notes: WeakKeyDictionary[Lexicon, Notes] = WeakKeyDictionary()

    def of(self, lexicon: Lexicon) -> Notes:
        """Return the notes by number, to write on, and one more that is never written."""
        notes = self._notes.get(lexicon)
        if notes is None or len(notes) <= len(lexicon):
            larger = np.full(max(2 * len(lexicon), 64) + 1, NOTHING, np.int32)
            if notes is not None:
                larger[: len(notes)] = notes
            notes = self._notes[lexicon] = larger
        return notes

    def forget(self) -> None:
        """Forget all."""
        if self._notes:
            self._notes.clear()
