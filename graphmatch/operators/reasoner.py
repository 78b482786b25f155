"""What an OWL reasoner says of a publication's individuals: class membership.

What was stated of the publication is put to an ontology, and HermiT or Pellet say which classes its
individuals have. One run answers all calls of a publication; the reasoner is run on the classes
that publication and ontology share. Cost: 1 to 4 s a publication, for Java has to start.
"""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from graphmatch.operators.operator import Operator
from semantic.errors import Problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.ontology.reasoner import Reasoner as Program
from semantic.ontology.reasoner import infer
from semantic.publication import Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import EQUIVALENT_CLASS, OP, SUBCLASS, TYPE


class Reasoner(Operator):
    """``op:instance(?individual, class)``: whether a reasoner finds that it is one.

    Parameters
    ----------
    ontology
        Triples of OWL axioms; those of `Ontology.stated`, say.
    program
        ``"hermit"`` or ``"pellet"``.
    limits
        `Limits.reasoning_seconds` and `Limits.reasoning_bytes` hold.
    """

    def __init__(
        self,
        ontology: Iterable[Triple],
        program: Program | str = Program.HERMIT,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self._ontology, self._program, self._limits = tuple(ontology), Program(program), limits
        self._last: tuple[Publication, dict[Term, set[Term]]] | None = None
        self._lock = Lock()
        super().__init__(
            OP["instance"].value,
            self._is_instance,
            cost=2.0,
            timeout=limits.reasoning_seconds + 1,
            publication=True,
        )

    def _is_instance(self, publication: Publication, individual: Term, class_: Term) -> bool:
        with self._lock:
            if self._last is None or self._last[0] is not publication:
                self._last = publication, self._above(publication)
            return class_ in self._last[1].get(individual, ())

    def _above(self, publication: Publication) -> dict[Term, set[Term]]:
        """Return all classes of each individual."""
        stated = [*self._ontology, *publication.given]
        found = infer(stated, self._program, _passed_over, self._limits)
        next_: dict[Term, set[Term]] = {}
        types: dict[Term, set[Term]] = {}
        for subject, property_, object_ in (*stated, *found):
            if property_ == TYPE:
                types.setdefault(subject, set()).add(object_)
            elif property_ in (SUBCLASS, EQUIVALENT_CLASS):
                next_.setdefault(subject, set()).add(object_)
                if property_ == EQUIVALENT_CLASS:
                    next_.setdefault(object_, set()).add(subject)
        for classes in types.values():
            rest = list(classes)
            while rest:
                more = next_.get(rest.pop(), set()) - classes
                classes |= more
                rest.extend(more)
        return types


def _passed_over(problem: Problem) -> None:
    """Pass over unsatisfiable classes: they have no instances."""
