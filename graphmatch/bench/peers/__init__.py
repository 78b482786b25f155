"""What is measured: the engine, and what one could use instead; `PEERS` names them all.

A module is imported when its peer is asked for; what is not installed is found out then. The
published algorithms on attributes (`graphmatch.published.MATCHERS`) are peers, too, by their names,
on the workloads of the papers.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from graphmatch.bench.peers.peer import Peer

PEERS: Mapping[str, str] = {
    "graphmatch": "graphmatch.bench.peers.engine:EnginePeer",
    "dictionary": "graphmatch.bench.peers.dictionary:DictionaryPeer",
    "scan": "graphmatch.bench.peers.columns:ScanPeer",
    "duckdb": "graphmatch.bench.peers.columns:DuckDBPeer",
    "clips": "graphmatch.bench.peers.others:ClipsPeer",
    "pyoxigraph": "graphmatch.bench.peers.others:PyoxigraphPeer",
    "parse": "graphmatch.bench.peers.readers:ParsePeer",
    "read": "graphmatch.bench.peers.readers:ReadPeer",
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
    >>> sorted(peer_class("dictionary").forms)
    ['concepts', 'graph', 'keywords']
    """
    found: type[Peer] = resolve_name(PEERS[name])
    return found


def make_peer(name: str) -> Peer:
    """Return a new peer, or a published algorithm as one.

    Raises
    ------
    KeyError
        When nothing is called so.
    """
    if name in PEERS:
        return peer_class(name)()
    from graphmatch.bench.peers.others import PublishedPeer

    return PublishedPeer(name)
