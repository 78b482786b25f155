"""Matches as text for people and as JSON for machines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from pyoxigraph import Literal
from rich.text import Text

from graphmatch.command.console import styled
from graphmatch.explain.explanation import Evidence
from graphmatch.matcher import Match
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import DC, DCTERMS, LABEL, RSS

_TITLES = (RSS["title"], DCTERMS["title"], DC["title"], LABEL)
SHOWN = 5
"""How many solutions and constructed triples of a match are shown as text."""
TITLE, VALUE = 200, 100
"""How much of a title and of a literal is shown as text; an IRI is always shown whole."""


def title(publication: Publication) -> str | None:
    """Return what a publication calls itself: the title of what it is about, if it has one."""
    about = publication.graph_name()
    for property_ in _TITLES:
        titles = {s: o for s, p, o in publication.triples if p == property_}
        found = titles.get(about)
        if found is None and len(titles) == 1:
            found = next(iter(titles.values()))
        if isinstance(found, Literal):
            return " ".join(found.value.split())
    return None


def as_text(
    publication: Publication,
    matches: Sequence[Match],
    evidence: Mapping[str, Sequence[Evidence]],
    comments: Mapping[str, str],
    prefixes: Mapping[str, str],
) -> Iterator[Text]:
    """Yield the lines for one publication and the subscriptions that it matches.

    Parameters
    ----------
    evidence
        Subscription id to the triples that met its patterns.
    comments
        Subscription id to what its subscriber says of it.
    prefixes
        For showing terms.
    """
    name = title(publication)
    yield styled((_short(name or publication.id, TITLE), "bold"))
    if name is not None:
        yield styled("  ", (publication.id, "blue"))
    for match in matches:
        comment = comments.get(match.subscription, "")
        yield styled("  ", (f"▸ {match.subscription}", "green"), "  ", (_sentence(comment), "dim"))
        yield from (styled(f"      {line}") for line in _bindings(match, publication, prefixes))
        for reason in reasons(evidence.get(match.subscription, ())):
            yield styled("      ", (f"because {reason}", "dim"))
    yield Text()


def _sentence(comment: str) -> str:
    found = re.match(r".*?[.?!](?=\s|$)", comment)
    return found[0] if found else comment


def _bindings(match: Match, publication: Publication, prefixes: Mapping[str, str]) -> Iterator[str]:
    lines = dict.fromkeys(
        "  ".join(
            f"?{name} = {_term(term, prefixes)}"
            for name, term in solution.items()
            if str(term) != f"<{publication.id}>"
        )
        for solution in match.solutions
    )
    lines.update(
        (" ".join(_term(t, prefixes) for t in triple), None) for triple in match.graph or ()
    )
    shown = [line for line in lines if line]
    yield from shown[:SHOWN]
    if len(shown) > SHOWN:
        yield f"… and {len(shown) - SHOWN} more"


def _term(term: Term, prefixes: Mapping[str, str]) -> str:
    """Write a term; a long literal is cut inside its quotation marks."""
    if not isinstance(term, Literal) or len(term.value) <= VALUE:
        return compact(term, prefixes)
    value = _short(term.value, VALUE)
    if term.language is not None:
        return compact(Literal(value, language=term.language), prefixes)
    return compact(Literal(value, datatype=term.datatype), prefixes)


def _short(text: str, width: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def reasons(evidence: Sequence[Evidence]) -> list[str]:
    """Return why the triples that met a subscription's patterns hold, each reason once."""
    found = (r for e in evidence for r in e.reasons if r != "in the ontology")
    return list(dict.fromkeys(found))


def as_json(
    publication: Publication, match: Match, evidence: Sequence[Evidence]
) -> dict[str, object]:
    """Return one match for JSON, its terms as N-Triples writes them."""
    return {
        "publication": publication.id,
        "title": title(publication),
        "source": str(publication.source),
        "subscription": match.subscription,
        "solutions": [_terms(solution) for solution in match.solutions],
        "graph": None if match.graph is None else [_triple(triple) for triple in match.graph],
        "because": reasons(evidence),
    }


def _terms(solution: Mapping[str, Term]) -> dict[str, str]:
    return {name: str(term) for name, term in solution.items()}


def _triple(triple: Triple) -> str:
    return f"{' '.join(map(str, triple))} ."
