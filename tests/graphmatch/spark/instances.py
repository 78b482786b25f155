"""Generated publications about instances of a real ontology, and subscriptions on them.

A publication has some things; each has a class, a few links to others, a year and a name.
Subscriptions are derived from such publications: a superclass of a thing's class, a super-property
of a link, a bound near a number. A seed determines everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from pyoxigraph import BlankNode, Literal, NamedNode

from semantic import Ontology, Publication
from semantic.terms import Term, Triple
from semantic.vocabulary import RDFS, TYPE, XSD

DBO = "http://dbpedia.org/ontology/"
YEAR, NAME = NamedNode(DBO + "foundingYear"), RDFS["label"]
WORDS = ("north", "river", "old", "red", "green", "market", "hall", "union", "star", "stone")


class Instances:
    """Publications and subscriptions over an ontology.

    Parameters
    ----------
    ontology
        With DBpedia's classes and properties.
    seed
        The same seed gives the same data.
    """

    def __init__(self, ontology: Ontology, seed: int = 1) -> None:
        self._ontology, self._seed = ontology, seed
        named = (term for term in ontology.classes if str(term).startswith(f"<{DBO}"))
        self._classes = sorted(named, key=str)
        linking = (t for t in ontology.properties if str(t).startswith(f"<{DBO}"))
        self._properties = sorted(linking, key=str)[::7]

    def publication(self, number: int, things: int | None = None, filled: int = 0) -> Publication:
        """Return one publication: four triples per thing, and links without subscriptions."""
        random = Random(f"{self._seed} {number}")
        count = things or random.randint(2, 12)
        nodes: list[NamedNode | BlankNode] = [
            BlankNode(f"n{k}") if random.random() < 0.1 else NamedNode(f"urn:thing:{number}:{k}")
            for k in range(count)
        ]
        triples: list[Triple] = []
        for node in nodes:
            triples.append((node, TYPE, random.choice(self._classes)))
            year = str(random.randint(1800, 2026))
            triples.append((node, YEAR, Literal(year, datatype=XSD["integer"])))
            name = " ".join(random.sample(WORDS, 2))
            triples.append((node, NAME, Literal(name, language="en")))
            triples.append((node, random.choice(self._properties), random.choice(nodes)))
        unasked = NamedNode("urn:unasked")
        more = range(filled - len(triples))
        triples += ((random.choice(nodes), unasked, NamedNode(f"urn:{k}")) for k in more)
        return Publication.of(f"urn:publication:{number}", triples)

    def subscriptions(self, count: int) -> Iterator[tuple[str, str]]:
        """Yield ids and texts; each matches some publication, few match many."""
        random = Random(f"{self._seed} subscriptions")
        for number in range(count):
            publication = self.publication(random.randrange(max(count // 4, 1)))
            yield f"s{number}", self._cut(random, publication)

    def _cut(self, random: Random, publication: Publication) -> str:
        about: dict[Term, dict[Term, Term]] = {}
        for s, p, o in publication.triples:
            about.setdefault(s, {})[p] = o
        thing = random.choice(list(about))
        said = about[thing]
        link = next((p for p in said if p not in (TYPE, YEAR, NAME)), None)
        patterns = [f"?x a {self._above(random, said[TYPE])}"]
        kind = random.randrange(4)
        if link is not None and kind < 3:
            patterns.append(f"?x {self._above(random, link)} ?y")
            if kind == 0 and said[link] != thing:
                patterns.append(f"?y a {self._above(random, about[said[link]][TYPE])}")
        if kind in (1, 3):
            low = int(getattr(said[YEAR], "value", "0")) - random.randint(0, 3)
            patterns.append(f"?x <{DBO}foundingYear> ?z FILTER(?z >= {low} && ?z < {low + 6})")
        if kind == 2:
            word = str(getattr(said[NAME], "value", "")).split()[0]
            patterns.append(f'?x {NAME} ?n FILTER(CONTAINS(?n, "{word}"))')
        form = random.choice(("SELECT *", "SELECT DISTINCT ?x", "ASK"))
        return f"{form} {{ {' . '.join(patterns)} }}"

    def _above(self, random: Random, term: Term) -> Term:
        taxonomies = (self._ontology.classes, self._ontology.properties)
        above = sorted({a for tree in taxonomies for a in tree.ancestors(term)}, key=str)
        own = [a for a in above if str(a).startswith(f"<{DBO}")]
        return random.choice([term, *own])
