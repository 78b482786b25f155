"""The vocabularies that speak of units: UCUM datatypes, QUDT, and two properties of ours.

Sources: M. Lefrançois, A. Zimmermann, "The Unified Code for Units of Measure in RDF:
cdt:ucum and other UCUM datatypes", ESWC 2018; QUDT, http://qudt.org/.
"""

from __future__ import annotations

from pyoxigraph import Literal

from semantic.vocabulary import GM, Namespace

CDT = Namespace("https://w3id.org/cdt/")
QUDT = Namespace("http://qudt.org/schema/qudt/")
UNIT = Namespace("http://qudt.org/vocab/unit/")
CURRENCY = Namespace("http://qudt.org/vocab/currency/")

UCUM = CDT["ucum"]
BASE_UNIT = GM["baseUnit"]
"""``A gm:baseUnit "GB"``: the numbers of the attribute A are in GB."""
UNIT_ATTRIBUTE = GM["unitAttribute"]
"""``V gm:unitAttribute W``: the unit of V's number is the W of the same subject."""

_UNIT_ONLY = CDT["ucumunit"].value


def is_quantity(literal: Literal) -> bool:
    """Whether a literal is a number with a unit, by its datatype.

    Examples
    --------
    >>> is_quantity(Literal("40 GB", datatype=UCUM)), is_quantity(Literal("40 GB"))
    (True, False)
    """
    datatype = literal.datatype.value
    return datatype.startswith(CDT.iri) and datatype != _UNIT_ONLY
