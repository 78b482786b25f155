"""Who says a term, and who is filed with a triple pattern: what a change of an ontology concerns.

Both are postings (`graphmatch.index.postings`), made when first asked for; what they find is
compared with the records, so that a posting of what is no longer there, or of another pattern with
the same hash, does no harm.

Cost: that of what is found; the first time that of sorting everything.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from graphmatch.index import record_kernels
from graphmatch.index.postings import Postings
from graphmatch.index.records import RecordTable
from graphmatch.index.runs import Ids, Longs
from graphmatch.index.skeletons import SkeletonTable


class Lookups:
    """Records by what they say.

    Parameters
    ----------
    numbers
        Returns all numbers in use.
    records, skeletons
        What they stand for.
    """

    def __init__(
        self, numbers: Callable[[], Ids], records: RecordTable, skeletons: SkeletonTable
    ) -> None:
        self._records, self._skeletons = records, skeletons
        self._by_term = Postings(numbers, self._of_terms)
        self._by_pattern = Postings(numbers, self._of_patterns)

    @property
    def nbytes(self) -> int:
        """Bytes of all postings, 0 before something was asked."""
        return self._by_term.nbytes + self._by_pattern.nbytes

    def changed(self, numbers: Ids) -> None:
        """Note that records are new, or others than before."""
        self._by_term.changed(numbers)
        self._by_pattern.changed(numbers)

    def gone(self, count: int) -> None:
        """Note that so many records have gone."""
        self._by_term.gone(count)
        self._by_pattern.gone(count)

    def saying(self, terms: Ids) -> Ids:
        """Return the numbers, ascending, of those that say one of some terms."""
        wanted = np.unique(terms[terms >= 0])
        found = self._by_term.candidates(wanted.astype(np.int64))
        says = np.empty(len(found), np.bool_)
        record_kernels.says(self._records.kernel, found, wanted, says)
        return found[says]

    def asking(self, patterns: Ids) -> Ids:
        """Return the numbers, ascending, of those that are filed with one of some patterns."""
        hashed = np.empty(len(patterns), np.int64)
        record_kernels.hashes(patterns, hashed)
        order = np.argsort(hashed)
        found = self._by_pattern.candidates(np.unique(hashed))
        asks = np.empty(len(found), np.bool_)
        kernel, templates = self._records.kernel, self._skeletons.templates
        record_kernels.asks(kernel, templates, found, patterns[order], hashed[order], asks)
        return found[asks]

    def _of_terms(self, numbers: Ids) -> Longs:
        found = np.empty(self._records.elements(numbers), np.int64)
        return found[: record_kernels.term_postings(self._records.kernel, numbers, found)]

    def _of_patterns(self, numbers: Ids) -> Longs:
        templates = self._skeletons.templates
        size = int(templates.length[self._records.skeleton[numbers]].sum()) // 3
        found = np.empty(size, np.int64)
        kernel = self._records.kernel
        return found[: record_kernels.pattern_postings(kernel, templates, numbers, found)]
