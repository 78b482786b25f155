"""A compiled loop over what is noted of a publication's terms. Importing this imports numba."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from semantic.jit import kernel
from semantic.noted import NOTHING, Notes


@kernel
def either(
    of_terms: Notes, of_properties: Notes, numbers: NDArray[np.int32], places: NDArray[np.int32]
) -> int:
    """Return the bits that are noted of any term, or of any property as such.

    Parameters
    ----------
    of_terms, of_properties
        By number in a lexicon: the bits.
    numbers
        By distinct term: its number, -1 for none.
    places
        Three distinct terms a triple.

    Returns
    -------
    bits
        `NOTHING` where nothing is noted yet of some term; terms without a number do not count.
    """
    found = 0
    for place in range(numbers.size):
        number = numbers[place]
        if number >= 0:
            note = int(of_terms[number])
            if note == NOTHING:
                return NOTHING
            found |= note
    for t in range(1, places.size, 3):
        number = numbers[places[t]]
        if number >= 0:
            note = int(of_properties[number])
            if note == NOTHING:
                return NOTHING
            found |= note
    return found
