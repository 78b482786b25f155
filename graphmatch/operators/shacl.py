"""SHACL shapes as a condition: whether a resource of the publication conforms to a shape.

The data are the stated triples of the publication. Each call validates one resource against one
shape with pySHACL. Needs ``graphmatch[shacl]``. Cost: about 10 ms per call.
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock
from typing import Any

from pyoxigraph import NamedNode

from graphmatch.operators.operator import SECONDS, Operator, needed
from semantic.errors import InputError, Place, Problem
from semantic.publication import Publication
from semantic.terms import Term, written
from semantic.vocabulary import OP


class Shacl(Operator):
    """``op:conforms(?resource, shape)``: whether a resource conforms to a shape.

    Parameters
    ----------
    shapes
        A file in any RDF format.
    knowledge
        A file with further triples, such as classes.
    timeout
        Seconds after which a call fails.

    Raises
    ------
    InputError
        If a file cannot be read.
    """

    def __init__(
        self,
        shapes: str | Path,
        *,
        knowledge: str | Path | None = None,
        timeout: float | None = SECONDS,
    ) -> None:
        self._pyshacl = needed("pyshacl", "shacl")
        self._shapes = _graph(Path(shapes))
        self._knowledge = None if knowledge is None else _graph(Path(knowledge))
        self._last: tuple[Publication, Any] | None = None
        self._lock = Lock()
        super().__init__(
            OP["conforms"].value, self._conforms, cost=0.01, timeout=timeout, publication=True
        )

    def _conforms(self, publication: Publication, resource: Term, shape: Term) -> bool:
        from rdflib import Graph, URIRef

        if (
            not isinstance(shape, NamedNode)
            or (URIRef(shape.value), None, None) not in self._shapes
        ):
            raise ValueError(f"there is no shape {written(shape)}")
        if not isinstance(resource, NamedNode):
            raise TypeError(
                f"{written(resource)} has no IRI, so pySHACL cannot validate it separately"
            )
        with self._lock:  # rdflib's graphs are not made for threads
            if self._last is None or self._last[0] is not publication:
                text = "".join(f"{' '.join(map(written, t))} .\n" for t in publication.given)
                self._last = publication, Graph().parse(data=text, format="nt")
            conforms, _, _ = self._pyshacl.validate(
                self._last[1],
                shacl_graph=self._shapes,
                ont_graph=self._knowledge,
                inference="rdfs" if self._knowledge is not None else None,
                focus_nodes=[URIRef(resource.value)],
                use_shapes=[URIRef(shape.value)],
                inplace=False,
            )
        return bool(conforms)


def _graph(path: Path) -> Any:
    from rdflib import Graph

    try:
        return Graph().parse(path)
    except Exception as error:
        remedy = "Give a file of shapes in RDF."
        problem = Problem(f"it cannot be read: {error}"[:500], Place(str(path)), remedy)
        raise InputError(problem) from error
