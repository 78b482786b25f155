"""G-ToPSS as printed: the merged graph of `graphmatch.published.gtopss`, on the workload's numbers.

Petrovic, Liu, Jacobsen: "G-ToPSS: Fast Filtering of Graph-based Metadata", WWW 2005, section 4.
The solutions of each subscription are computed in full, as the joins give them, but only ids are
handed out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from graphmatch.bench.peers.peer import Peer
from graphmatch.bench.workloads.graph import GraphWorkload
from graphmatch.bench.workloads.workload import Workload
from graphmatch.published.graphs.matcher import Tally
from graphmatch.published.graphs.merged import MergedGraph
from graphmatch.published.graphs.numbers import Ids


@dataclass(frozen=True, slots=True)
class Found:
    """What matching a publication gives.

    Parameters
    ----------
    subscriptions
        Those that matched.
    tally
        What was done for it.
    """

    subscriptions: Ids
    tally: Tally


class GToPSSPeer(Peer):
    """The merged graph, compiled."""

    name: ClassVar = "gtopss"
    workloads: ClassVar = frozenset({"graph"})

    def given(self, workload: Workload) -> Ids:
        """Return the triple patterns."""
        assert isinstance(workload, GraphWorkload)
        return workload.patterns

    def build(self, given: Ids) -> None:
        """Merge the subscriptions into one graph: edges with fewer stars are joined first."""
        stars = (given[:, :, ::2] < 0).sum(axis=2)
        order = np.argsort(stars, axis=1, kind="stable")[:, :, None]
        edges = np.take_along_axis(given, order, axis=1).reshape(-1, 3)
        subscriptions = np.repeat(np.arange(len(given), dtype=np.int32), given.shape[1])
        self._merged = MergedGraph()
        self._merged.insert(subscriptions, edges)

    def event(self, workload: Workload, number: int) -> Ids:
        """Return the triples."""
        assert isinstance(workload, GraphWorkload)
        return workload.graph(number)

    def match(self, event: Ids) -> Found:
        """Match a publication (Algorithm match)."""
        tally = Tally()
        return Found(self._merged.match(event, tally).subscriptions, tally)

    def numbers(self, found: Found) -> NDArray[np.int64]:
        """Return them as they are."""
        return found.subscriptions.astype(np.int64)

    def counters(self, found: Found) -> Mapping[str, int]:
        """Return candidates and joins, as `graphmatch.matcher.Counters` names them."""
        return {"candidates": found.tally.candidates, "joins": found.tally.joins}

    def reported_bytes(self) -> int:
        """Return the size of the arrays."""
        return self._merged.nbytes
