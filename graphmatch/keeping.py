"""What an engine keeps: the subscriptions, and what is known; both change while it runs.

The subscriptions are in `Standing`, the ontology is in `Knowledge`. Those who match share a turn,
those who change something are alone for as long as the change itself takes; what can be made ready
before is made ready while others go on.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from threading import RLock
from time import sleep

from graphmatch.bulk_constants import Constants
from graphmatch.intake import Intake, regrouped
from graphmatch.knowledge import Change, Entailment, Knowledge
from graphmatch.matcher import DuplicateError
from graphmatch.saving import opened, save
from graphmatch.standing import Standing
from graphmatch.turn import Turn
from semantic.annotation.annotate import Annotator, Label
from semantic.attributes.subscription import AttributeParser
from semantic.errors import OnProblem, Problem, warn_problem
from semantic.mentions import Mentions
from semantic.ontology.ontology import Ontology
from semantic.sparql.clock import Clock, utc_now
from semantic.sparql.parse import SubscriptionParser
from semantic.subscription import Subscription
from semantic.terms import Triple

_FEW, _SHARE = 100, 20
"""A change that concerns at most so many subscriptions, or one of so many, is made in place."""

_AT_A_BREATH, _BREATH_SECONDS = 512, 0.0001
"""While many are filed anew, after so many others may go on for so long: a thread that comes back
from the evaluator would otherwise wait for the interpreter's lock each time."""


class Keeper:
    """Keeps subscriptions and an ontology together while both change.

    Parameters and what threads may do: see `graphmatch.engine.Engine`.
    """

    def __init__(
        self,
        ontology: Ontology | None = None,
        *,
        entailment: Entailment | str = Entailment.RDFS,
        annotator: Annotator | None = None,
        clock: Clock = utc_now,
        on_problem: OnProblem = warn_problem,
    ) -> None:
        self._entailment = Entailment(entailment)
        self._own_annotator = annotator
        self._clock = clock
        self._on_problem = on_problem
        self.parser = SubscriptionParser()
        self._attributes = AttributeParser(self.parser)
        self._changing = RLock()
        self._turn = Turn()
        self._labels: tuple[list[Label], Annotator] | None = None
        self._standing = Standing(self._know(ontology or Ontology(), annotator))

    def _know(self, ontology: Ontology, annotator: Annotator | None) -> Knowledge:
        annotator = annotator or self._annotator_for(ontology.labels())
        return Knowledge(ontology, self._entailment, annotator)

    @property
    def ontology(self) -> Ontology:
        """What the engine knows."""
        return self._standing.knowledge.ontology

    @property
    def entailment(self) -> Entailment:
        """Whether anything follows from the ontology."""
        return self._entailment

    @property
    def annotator(self) -> Annotator | None:
        """The annotator that the engine was given, if it was given one."""
        return self._own_annotator

    @property
    def standing(self) -> Standing:
        """The subscriptions as they are filed now, for whoever looks inside; not to be changed."""
        return self._standing

    @property
    def subscriptions(self) -> tuple[Subscription, ...]:
        """The subscriptions, in the order of subscribing."""
        with self._changing:
            return tuple(self._standing)

    def __len__(self) -> int:
        with self._turn.shared():
            return len(self._standing)

    def __contains__(self, id: object) -> bool:
        with self._turn.shared():
            return id in self._standing

    # -- coming and going -------------------------------------------------------------------

    def subscribe(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Take a subscription in: an id and SPARQL text, or a parsed `Subscription`.

        Raises
        ------
        SubscriptionError
            When the text cannot be a subscription; with its line and column. When a unit in it
            is unknown, or incompatible with its attribute's.
        DuplicateError
            When the id is taken.
        """
        with self._changing:
            if isinstance(subscription, str):
                subscription = self.parser.parse(subscription, query or "")
            if subscription.id in self._standing:
                raise DuplicateError(subscription.id)
            with self._turn.alone():
                self._standing.add(subscription)

    def replace(self, subscription: Subscription | str, query: str | None = None) -> None:
        """Put a subscription in the place of the one that has its id: also in the order.

        Raises
        ------
        UnknownError
            When there is none with this id.
        SubscriptionError
            As `subscribe`; then the one that is there stays.
        """
        with self._changing:
            if isinstance(subscription, str):
                subscription = self.parser.parse(subscription, query or "")
            with self._turn.alone():
                self._standing.replace(subscription)

    def unsubscribe(self, id: str) -> None:
        """Forget a subscription.

        Raises
        ------
        UnknownError
            When there is none with this id.
        """
        with self._changing, self._turn.alone():
            self._standing.remove(id)

    def replace_ontology(self, ontology: Ontology, annotator: Annotator | None = None) -> Change:
        """Go on with another ontology.

        Everything is made ready while publications are still matched by the old one; the step
        from the old to the new is taken between two publications. Of the subscriptions those
        are filed anew that the difference concerns.

        Parameters
        ----------
        annotator
            One for the new ontology; by default the one that the engine was given, if any.
        """
        with self._changing:
            old = self._standing
            knowledge = self._know(ontology, annotator or self._own_annotator)
            self._own_annotator = annotator or self._own_annotator
            knowledge.ask(old.mentions)
            knowledge.ask(Mentions(knowledge.mentions))
            difference = old.knowledge.difference(knowledge)
            concerned = old.concerned(difference)
            change = Change(len(difference.triples), len(difference.names), len(concerned))
            if len(concerned) <= max(_FEW, len(old) // _SHARE):
                problems: list[Problem] = []
                with self._turn.alone():
                    old.adopt(knowledge, concerned, problems.append)
                for problem in problems:  # not before: whoever is told may ask the engine
                    self._on_problem(problem)
                return change
            standing = self._filed_anew(old, knowledge)
            with self._turn.alone():
                self._standing = standing
            return change

    def _filed_anew(self, old: Standing, knowledge: Knowledge) -> Standing:
        """Return subscriptions as they are filed under other knowledge."""
        standing = Standing(knowledge)
        again = partial(standing.add_again, on_problem=self._on_problem)
        for some in old.chunks(_AT_A_BREATH):
            grouped = regrouped(old.store, some)
            constants = Constants(grouped.terms, knowledge)
            intake = Intake(standing, constants, again)
            while not intake.prepare():
                pass
            intake.take_in(grouped, old.store.serials(some), old.store.comments(some))
            intake.finish()
            sleep(_BREATH_SECONDS)
        return standing

    def update_ontology(
        self, added: Iterable[Triple] = (), removed: Iterable[Triple] = ()
    ) -> Change:
        """Go on with the ontology amended by some triples; see `Ontology.update`."""
        with self._changing:
            return self.replace_ontology(self.ontology.update(added, removed))

    def _annotator_for(self, labels: list[Label]) -> Annotator:
        """Return an annotator for labels: the one at hand, if these have not changed."""
        if self._labels is None or self._labels[0] != labels:
            self._labels = labels, Annotator(labels)
        return self._labels[1]

    # -- saving -----------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Save all subscriptions to a folder, as they are filed; `open` takes them from there.

        The ontology is not saved. A folder that was saved to before is replaced.

        Raises
        ------
        SavedError
            When something else is there, or the folder cannot be written.
        """
        with self._changing:
            save(self._standing, Path(path))

    def open(self, path: str | Path) -> None:
        """Take in what was saved, where there are no subscriptions yet.

        It takes a moment if the ontology is the one that they were saved under; if not, they are
        filed anew.

        Raises
        ------
        SavedError
            When nothing was saved there, or it is damaged.
        ValueError
            When there are subscriptions already.

        Examples
        --------
        >>> from tempfile import TemporaryDirectory
        >>> from graphmatch import Engine
        >>> engine, other = Engine(), Engine()
        >>> engine.subscribe("alice", "ASK { ?x a <urn:Laptop> }")
        >>> with TemporaryDirectory() as folder:
        ...     engine.save(f"{folder}/saved")
        ...     other.open(f"{folder}/saved")
        >>> "alice" in other
        True
        """
        with self._changing:
            if len(self):
                raise ValueError("there are subscriptions already: open them with a new engine")
            standing = Standing(self._standing.knowledge)
            if not opened(Path(path), standing, self.parser):
                standing = self._filed_anew(standing, self._standing.knowledge)
            with self._turn.alone():
                self._standing = standing
