"""What the engine is measured beside, one file each; `PEERS` names them all.

A module is imported when its peer is asked for; what is not installed is found out then.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from graphmatch.bench.peers.peer import Peer

PEERS: Mapping[str, str] = {
    "graphmatch": "graphmatch.bench.peers.graphmatch:GraphMatchPeer",
    "index": "graphmatch.bench.peers.index:IndexPeer",
    "naive": "graphmatch.bench.peers.naive:NaivePeer",
    "gtopss": "graphmatch.bench.peers.gtopss:GToPSSPeer",
    "scan": "graphmatch.bench.peers.scan:ScanPeer",
    "duckdb": "graphmatch.bench.peers.duckdb:DuckDBPeer",
    "clips": "graphmatch.bench.peers.clips:ClipsPeer",
    "pyoxigraph": "graphmatch.bench.peers.pyoxigraph:PyoxigraphPeer",
    "parse": "graphmatch.bench.peers.parse:ParsePeer",
}
"""Name to where the class is."""


def peer_class(name: str) -> type[Peer]:
    """Return a peer's class by its name.

    Raises
    ------
    KeyError
        For a name that is not in `PEERS`.

    Examples
    --------
    >>> sorted(peer_class("scan").workloads)
    ['attributes', 'concepts']
    """
    found: type[Peer] = resolve_name(PEERS[name])
    return found
