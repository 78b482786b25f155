"""Similarity of texts by their embeddings: any function from texts to vectors.

The vectors of all subscriptions' texts are one matrix, so that a publication's text costs one
product with it, however many subscriptions there are.

Cost: of 100,000 subscriptions with 384 numbers each some 20 ms, bound by memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from pyoxigraph import Literal, NamedNode

from graphmatch.operators.operator import Operator
from semantic.terms import Term
from semantic.vocabulary import OP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Embed: TypeAlias = Callable[[list[str]], Any]
"""From texts to their vectors, of shape ``(texts, numbers)``."""

_AT_ONCE = 256
_FEW = 64


class Similar(Operator):
    """``op:similar(?text, "another", 0.6)``: whether the cosine similarity is at least 0.6.

    Parameters
    ----------
    embed
        Returns an array of vectors for a list of texts, one row per text. The guide names models.
    version
        The version of the model.
    cost
        Expected seconds per embedding, until calls were measured.

    Examples
    --------
    >>> import numpy
    >>> similar = Similar(lambda texts: numpy.array([[len(text), 1] for text in texts]))
    >>> similar(Literal("abc"), Literal("xyz"), Literal(0.9))
    True
    """

    def __init__(self, embed: Embed, *, version: str = "", cost: float = 0.01) -> None:
        one = lru_cache(maxsize=1024)(lambda text: _unit(embed([text]))[0])

        def decide(text: Term, other: Term, least: Term) -> bool:
            return bool(one(_text(text)) @ one(_text(other)) >= _least(least))

        super().__init__(
            OP["similar"].value,
            decide,
            cost=cost,
            version=version,
            index=lambda: _Texts(embed, one),
        )


class _Texts:
    """Index of `Similar`: the embeddings and the least similarities of all subscriptions."""

    def __init__(self, embed: Embed, one: Callable[[str], NDArray[np.float32]]) -> None:
        import numpy as np

        self._embed, self._one = embed, one
        self._matrix: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._least: NDArray[np.float32] = np.full(_FEW, np.inf, np.float32)
        self._free: list[int] = []
        self._count = 0
        self._new: dict[int, str] = {}

    def add(self, constants: Sequence[Term]) -> int:
        """Add a string and the least similarity; return its number. `matches` embeds it later."""
        import numpy as np

        if len(constants) != 2:
            raise ValueError("it takes two strings and a number")
        text, least = _text(constants[0]), _least(constants[1])
        key = self._free.pop() if self._free else self._count
        if key == self._count:
            self._count += 1
        if key == len(self._least):
            more = np.full(key, np.inf, np.float32)
            self._least = np.concatenate([self._least, more])
        self._least[key], self._new[key] = least, text
        return key

    def remove(self, key: int) -> None:
        """Remove the string with a number."""
        import numpy as np

        self._new.pop(key, None)
        self._least[key] = np.inf
        self._free.append(key)

    def matches(self, argument: Term) -> NDArray[np.intp]:
        """Return the numbers of the strings that are similar enough to an argument.

        Embed new strings first. Return none if the argument is not a literal.
        """
        import numpy as np

        if not isinstance(argument, Literal):
            return np.empty(0, np.intp)
        if self._new:
            self._fill()
        scores = self._matrix[: self._count] @ self._one(argument.value)
        return np.flatnonzero(scores >= self._least[: self._count])

    def _fill(self) -> None:
        """Embed the new strings in batches, and put their vectors into the matrix."""
        import numpy as np

        waiting = list(self._new.items())
        for begin in range(0, len(waiting), _AT_ONCE):
            some = waiting[begin : begin + _AT_ONCE]
            vectors = _unit(self._embed([text for _, text in some]))
            if self._matrix.shape != (len(self._least), vectors.shape[1]):
                matrix: NDArray[np.float32] = np.zeros(
                    (len(self._least), vectors.shape[1]), np.float32
                )
                if self._matrix.size:
                    matrix[: len(self._matrix)] = self._matrix
                self._matrix = matrix
            self._matrix[[key for key, _ in some]] = vectors
            for key, _ in some:
                del self._new[key]


def _unit(vectors: Any) -> NDArray[np.float32]:
    """Return vectors scaled to length one; raise `ValueError` unless they are a matrix."""
    import numpy as np

    found = np.asarray(vectors, np.float32)
    if found.ndim != 2:
        raise ValueError(f"the vectors have the shape {found.shape} instead of (texts, numbers)")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    return (found / np.where(lengths > 0, lengths, 1)).astype(np.float32, copy=False)


def _text(term: Term) -> str:
    text = getattr(term, "value", None)
    if text is None or isinstance(term, NamedNode):
        raise ValueError(f"{term} is not a string")
    return str(text)


def _least(term: Term) -> float:
    return float(_text(term))
