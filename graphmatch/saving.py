"""Subscriptions saved as they are filed, and opened again in a moment.

What is saved are the index's and the store's arrays, which are mapped into memory when they are
opened (`graphmatch.index.folders`), the terms that subscriptions mention, and what skeletons are
made of. How a subscription is filed depends on what is known; so a fingerprint of that is saved,
too, and whoever opens them with other knowledge files them anew.

Cost: a million subscriptions with some thousand terms are opened in about a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphmatch.index import folders
from graphmatch.index.folders import SavedError
from graphmatch.index.index import Index
from graphmatch.index.runs import part
from graphmatch.index.spelling import SpellingError, read, spelled
from graphmatch.index.store import SubscriptionStore
from graphmatch.standing import Standing
from semantic.errors import SubscriptionError
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.query import Mention
from semantic.terms import Node, Term


def save(standing: Standing, path: Path) -> None:
    """Save subscriptions to a folder.

    Raises
    ------
    SavedError
        When something else is there, or the folder cannot be written.
    """
    parts = {"index": standing.index.arrays(), "store": standing.store.arrays()}
    arrays = {f"{part}.{name}": a for part, own in parts.items() for name, a in own.items()}
    skeletons = standing.store.all_skeletons()
    nodes, asked = _written(list(standing.asked()))
    documents = {
        **{f"index.{name}": own for name, own in standing.index.documents().items()},
        "skeletons": [None if one is None else one.source for one in skeletons],
        "asked": nodes,
        "knowledge": standing.knowledge.fingerprint,
    }
    folders.write(path, {**arrays, "asked": asked}, documents)


def opened(path: Path, standing: Standing, parser: SubscriptionParser) -> bool:
    """Put saved subscriptions where there are none; return whether they are filed as they should.

    Parameters
    ----------
    standing
        Without subscriptions.
    parser
        Makes the skeletons.

    Returns
    -------
    filed
        Whether they were saved under the same knowledge.

    Raises
    ------
    SavedError
        When nothing was saved there, or it is damaged.
    """
    arrays, documents = folders.read(path)
    try:
        skeletons = [
            None if one is None else parser.skeleton(one) for one in documents["skeletons"]
        ]
        index = Index.of_saved(part(arrays, "index"), part(documents, "index"))
        store = SubscriptionStore.of_arrays(index.terms, skeletons, part(arrays, "store"))
        standing.restore(index, store, _read(documents["asked"], arrays["asked"]))
        return bool(documents["knowledge"] == standing.knowledge.fingerprint)
    except (KeyError, IndexError, TypeError, ValueError, SpellingError, SubscriptionError) as error:
        raise SavedError(path, f"damaged: {error}") from error


def _written(asked: list[tuple[Mention, int]]) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the nodes of mentions, and by mention: property, object (-1 for any), how often."""
    places: dict[Node | None, int] = {None: -1}
    rows = []
    for mention, times in asked:
        for node in mention:
            places.setdefault(node, len(places) - 1)
        rows.append((*map(places.__getitem__, mention), times))
    nodes = [spelled(node) for node in places if isinstance(node, Term)]
    return nodes, np.array(rows, np.int64).reshape(-1, 3)


def _read(nodes: list[Any], asked: NDArray[np.int64]) -> Iterator[tuple[Mention, int]]:
    found: list[Node | None] = []
    for written in nodes:
        node = read(written)
        assert isinstance(node, Term)
        found.append(node)
    found.append(None)
    return (((found[p], found[o]), times) for p, o, times in asked.tolist())
