"""Attribute subscriptions: from constraints to SPARQL.

Oracle, index, evaluation and explanation know nothing of attributes: an event is a publication
with one subject, an attribute is a property, and a conjunction of constraints is a query
(`semantic.attributes.query`): a shared template and a tuple of constants.

Cost: about 5 µs a subscription of a known shape with three attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from semantic.attributes.constraints import Constant, Shape, taken_apart
from semantic.attributes.names import AttributeNameError
from semantic.attributes.query import AttributeQuery, Template
from semantic.attributes.values import Decoder, TermError
from semantic.errors import Place, Problem, SubscriptionError

NAMING = "Write steps with points between them: target.hardDisk.size.value."


class AttributeParser:
    """Makes queries of constraints, and remembers the shapes it has seen.

    Examples
    --------
    >>> attributes = AttributeParser()
    >>> alice = attributes.query("alice", {"brand": "Acme", "price": {"<=": 400}})
    >>> bob = attributes.query("bob", {"brand": "Apex", "price": {"<=": 250}})
    >>> alice.template is bob.template
    True
    >>> bob.constants[1].value, bob.constants[3].value
    ('Apex', '250')
    """

    def __init__(self) -> None:
        self._templates: dict[Shape, Template] = {}
        self.decoder = Decoder()
        """Reads the JSON of constraints, and remembers texts and numbers."""
        self._text = self.decoder.texts.__getitem__

    @property
    def shapes(self) -> int:
        """How many different shapes were written as SPARQL."""
        return len(self._templates)

    def query(self, id: str, where: Mapping[str, object]) -> AttributeQuery:
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
            When an attribute has no name.
        """
        known = self._templates.get(shape)
        if known is None:
            try:
                known = self._templates[shape] = Template.of(shape, constants)
            except AttributeNameError as error:
                raise SubscriptionError(Problem(str(error), Place(id), NAMING)) from error
        return known
