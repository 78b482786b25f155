"""Matches as text for people and as JSON for machines."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from pyoxigraph import Literal, NamedNode
from rich.markup import escape

from graphmatch.explain import Evidence
from graphmatch.matcher import Match
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.vocabulary import DC, DCTERMS, LABEL, RSS

_TITLES = (RSS["title"], DCTERMS["title"], DC["title"], LABEL)
SHOWN = 5
"""How many solutions and constructed triples of a match are shown as text."""


def title(publication: Publication) -> str | None:
    """Return what a publication calls itself: the title of what it is about, if it has one."""
    about = NamedNode(publication.id) if ":" in publication.id else None
    for property_ in _TITLES:
        titles = {s: o for s, p, o in publication.triples if p == property_}
        found = titles.get(about) if about is not None else None
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
) -> Iterator[str]:
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
    yield f"[bold]{escape(name or publication.id)}[/]"
    if name is not None:
        yield f"  [blue]{escape(publication.id)}[/]"
    for match in matches:
        comment = comments.get(match.subscription, "")
        yield f"  [green]▸ {escape(match.subscription)}[/]  [dim]{escape(_sentence(comment))}[/]"
        yield from (f"      {escape(line)}" for line in _bindings(match, publication, prefixes))
        for reason in reasons(evidence.get(match.subscription, ())):
            yield f"      [dim]because {escape(reason)}[/]"
    yield ""


def _sentence(comment: str) -> str:
    end = comment.find(". ")
    return comment if end < 0 else comment[: end + 1]


def _bindings(match: Match, publication: Publication, prefixes: Mapping[str, str]) -> Iterator[str]:
    lines = dict.fromkeys(
        "  ".join(
            f"?{name} = {_short(compact(term, prefixes))}"
            for name, term in solution.items()
            if str(term) != f"<{publication.id}>"
        )
        for solution in match.solutions
    )
    lines.update(
        (" ".join(compact(t, prefixes) for t in triple), None) for triple in match.graph or ()
    )
    shown = [line for line in lines if line]
    yield from shown[:SHOWN]
    if len(shown) > SHOWN:
        yield f"… and {len(shown) - SHOWN} more"


def _short(text: str, width: int = 100) -> str:
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


def reasons(evidence: Sequence[Evidence]) -> list[str]:
    """Return why the triples that met a subscription's patterns hold, each reason once."""
    found = (r for e in evidence for r in e.reasons if r != "in the ontology")
    return list(dict.fromkeys(found))


def as_json(publication: Publication, match: Match, evidence: Sequence[Evidence]) -> str:
    """Write one match as a line of JSON, its terms as N-Triples writes them."""
    row = {
        "publication": publication.id,
        "title": title(publication),
        "source": str(publication.source),
        "subscription": match.subscription,
        "solutions": [_terms(solution) for solution in match.solutions],
        "graph": None if match.graph is None else [_triple(triple) for triple in match.graph],
        "because": reasons(evidence),
    }
    return json.dumps(row, ensure_ascii=False)


def _terms(solution: Mapping[str, Term]) -> dict[str, str]:
    return {name: str(term) for name, term in solution.items()}


def _triple(triple: Triple) -> str:
    return f"{' '.join(map(str, triple))} ."
