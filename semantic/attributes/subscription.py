"""Attribute subscriptions: from constraints to the same `Subscription` that SPARQL text makes.

Oracle, index, evaluation and explanation know nothing of attributes: an event is a publication
with one subject, an attribute is a property, and a conjunction of constraints is a query
(`semantic.attributes.query`). Whoever has very many of them takes their queries alone, for these
are a shared skeleton and a tuple of constants each.

Cost: about 5 µs a subscription of a known shape with three attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from semantic.attributes.constraints import Constant, Shape, taken_apart
from semantic.attributes.names import AttributeNameError
from semantic.attributes.query import Template, template
from semantic.attributes.values import Decoder, TermError
from semantic.errors import Place, Problem, SubscriptionError
from semantic.sparql.parse import SubscriptionParser
from semantic.sparql.query import Query
from semantic.subscription import Subscription

NAMING = "Write steps with points between them: target.hardDisk.size.value."


class AttributeParser:
    """Makes subscriptions of constraints, and remembers the shapes it has seen.

    Parameters
    ----------
    parser
        Analyses the SPARQL that a shape is; a new one by default.

    Examples
    --------
    >>> attributes = AttributeParser()
    >>> alice = attributes.query("alice", {"brand": "Acme", "price": {"<=": 400}})
    >>> bob = attributes.query("bob", {"brand": "Apex", "price": {"<=": 250}})
    >>> alice.skeleton is bob.skeleton
    True
    >>> bob.constants[1].value, bob.constants[3].value
    ('Apex', '250')
    """

    def __init__(self, parser: SubscriptionParser | None = None) -> None:
        self._parser = parser or SubscriptionParser()
        self._templates: dict[Shape, Template] = {}
        self.decoder = Decoder()
        """Reads the JSON of constraints, and remembers texts and numbers."""
        self._text = self.decoder.texts.__getitem__

    @property
    def shapes(self) -> int:
        """How many different shapes were written as SPARQL."""
        return len(self._templates)

    def query(self, id: str, where: Mapping[str, object]) -> Query:
        """Return the query that a conjunction of constraints is.

        Parameters
        ----------
        where
            Attribute to constraint (docs/reference/attributes.md).

        Raises
        ------
        SubscriptionError
            When an attribute or a constraint means nothing.
        """
        known, constants = self.taken_apart(id, where)
        return known.query(constants)

    def taken_apart(
        self, id: str, where: Mapping[str, object]
    ) -> tuple[Template, Sequence[Constant]]:
        """Return the template of a conjunction of constraints, and its constants; see `query`."""
        try:
            shape, constants = taken_apart(where, self._text)
        except TermError as error:
            raise SubscriptionError(Problem(error.what, Place(id), error.remedy)) from error
        return self.template(id, shape, constants), constants

    def template(self, id: str, shape: Shape, constants: Sequence[Constant]) -> Template:
        """Return the template of a shape, of which `constants` are an example.

        Raises
        ------
        SubscriptionError
            When an attribute has no name, or the shape is larger than a limit.
        """
        known = self._templates.get(shape)
        if known is None:
            try:
                known = self._templates[shape] = template(shape, constants, self._parser)
            except AttributeNameError as error:
                raise SubscriptionError(Problem(str(error), Place(id), NAMING)) from error
        return known

    def subscription(self, id: str, where: Mapping[str, object], comment: str = "") -> Subscription:
        """Return the subscription that a conjunction of constraints is; see `query`."""
        return Subscription.of(id, self.query(id, where), comment)


class AttributeSubscription:
    """A conjunction of attribute constraints: what CTPS, DEXIN and Gryphon subscribe."""

    @staticmethod
    def of(id: str, where: Mapping[str, object], comment: str = "") -> Subscription:
        """Return the subscription that some constraints are.

        For many subscriptions keep an `AttributeParser`, which remembers their shapes.

        Raises
        ------
        SubscriptionError
            When an attribute or a constraint means nothing.

        Examples
        --------
        >>> subscription = AttributeSubscription.of("alice", {"price.value": {"<=": 400}})
        >>> for pattern in subscription.branches[0].patterns:
        ...     print(pattern)
        ?event attribute:price.value ?price_value
        >>> subscription.branches[0].filters[0].constant.value, subscription.exact
        ('400', True)
        """
        return AttributeParser().subscription(id, where, comment)
