"""The matching algorithms of the papers, one a file, as printed.

`MATCHERS` names them all; the modules are imported when one is asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

from graphmatch.matcher import Matcher
from semantic.ontology.ontology import Ontology

MATCHERS: Mapping[str, str] = {
    "naive": "graphmatch.published.naive:Naive",
    "gtopss": "graphmatch.published.gtopss:GToPSS",
}
"""Name to where the class is."""


def make(name: str, ontology: Ontology) -> Matcher:
    """Make a matcher by its name.

    Raises
    ------
    KeyError
        For a name that is not in `MATCHERS`.

    Examples
    --------
    >>> len(make("gtopss", Ontology()))
    0
    """
    matcher: Matcher = resolve_name(MATCHERS[name])(ontology)
    return matcher
