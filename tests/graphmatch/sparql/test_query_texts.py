"""The naive matcher: its queries have the meaning of the subscription in every notation."""

from __future__ import annotations

from collections import Counter
from itertools import count
from random import Random

import pytest

from graphmatch import Engine, SubscriptionParser
from graphmatch.matcher import Matcher
from graphmatch.published.naive import Naive
from semantic import Ontology, Publication, read_publications

(PUBLICATION,) = read_publications(
    b"""@prefix : <urn:> . :a :p 1, 2, 3 . :b :p 2 . :c :p 5 . :a :q :b, :c . :b :q :c ; :n -2 .
        :c :q :a ; :n 4 .""",
    format="ttl",
)


def solutions(matcher: Matcher, query: str, publication: Publication) -> Counter[frozenset[str]]:
    matcher.subscribe(SubscriptionParser().parse("s", f"PREFIX : <urn:> {query}"))
    rows = [row for match in matcher.match(publication) for row in match.solutions]
    return Counter(frozenset(f"{name} {term}" for name, term in row.items()) for row in rows)


def assert_agree(query: str) -> int:
    expected = solutions(Engine(), query, PUBLICATION)
    assert solutions(Naive(Ontology()), query, PUBLICATION) == expected, query
    return expected.total()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { ?x :p ?n FILTER((?n + 1) * 2 = 6) }",
        "SELECT * { ?x :p ?n FILTER(10 - (?n - 1) = 9) }",
        "SELECT * { ?x :p ?n FILTER(6 / (?n * 3) = 1) }",
        "SELECT * { ?x :n ?n FILTER(-(?n + 1) = 1) }",
        "SELECT * { ?x :p ?n FILTER(!(!(?n = 2))) }",
        "SELECT ?x (-(SUM(?n) + 1) AS ?s) { ?x :p ?n } GROUP BY ?x HAVING (2 * (COUNT(*) - 1) > 0)",
        "SELECT * { ?x :q ?y OPTIONAL { { ?y :p ?n FILTER(BOUND(?x)) } } }",
        "SELECT * { ?x :q ?y OPTIONAL { ?y :p ?n FILTER(?x = :a) } }",
        "SELECT * { { ?x :q ?y FILTER(!BOUND(?n)) } OPTIONAL { ?y :n ?n } }",
        "SELECT * { { ?x :q ?y FILTER(!BOUND(?n)) } ?y :n ?n }",
        "SELECT * { ?x :q ?y { ?y :p ?n { ?y :q ?z OPTIONAL { ?z :n ?m } } } }",
        "SELECT * { ?x :q ?y { { ?z :q ?x OPTIONAL { ?y :n ?m } } ?z :p ?n } }",
        "SELECT * { ?x :q ?y { ?z :p ?n MINUS { ?x :n ?n } } }",
        "SELECT * { { ?x :q ?y FILTER(BOUND(?b)) } BIND(1 AS ?b) }",
        "SELECT * { :a :q [] }",
        "SELECT * { ?x :q [ :p [] ] }",
        "SELECT (COUNT(*) AS ?n) { ?x :q _:b . _:b :p [] }",
        "SELECT ?x { { SELECT ?x ?n { ?x :p ?n } ORDER BY DESC(?n) LIMIT 2 } }",
        "SELECT DISTINCT ?x { { SELECT ?x ?n { ?x :p ?n } ORDER BY ?x ?n LIMIT 3 } } LIMIT 5",
        "SELECT ?x { { SELECT DISTINCT ?x { ?x :p ?n } } }",
        "ASK { { SELECT ?x { ?x :p ?n } ORDER BY ?n LIMIT 1 } ?x :p 1 }",
    ],
)
def test_it_asks_what_the_subscription_says(query: str) -> None:
    assert_agree(query)


def generated(random: Random) -> str:
    fresh = count()

    def number(depth: int) -> str:
        if depth == 0 or random.random() < 0.2:
            return random.choice(["?n", "?m", "1", "2", "3"])
        if random.random() < 0.3:
            return f"-({number(depth - 1)})"
        return f"({number(depth - 1)}) {random.choice('+-*/')} ({number(depth - 1)})"

    def condition() -> str:
        some = random.choice(["BOUND(?n)", "BOUND(?m)", f"{number(3)} > {number(2)}", "?x = :a"])
        return random.choice([some, f"!({some})", f"!(!({some})) || ?y = :b"])

    def group(depth: int) -> str:
        parts = [random.choice(["?x :q ?y .", "?x :p ?n .", "?y :n ?m .", "?x :q [ :p ?n ] ."])]
        for _ in range(random.randrange(1, 4)):
            inner = group(depth - 1) if depth else "?y :q ?z"
            parts.append(
                random.choice(
                    [
                        f"{{ {inner} }}",
                        f"OPTIONAL {{ {inner} }}", f"OPTIONAL {{ {{ {inner} }} }}",
                        f"MINUS {{ {inner} }}", f"{{ {inner} }} UNION {{ ?x :n ?m }}",
                        f"FILTER({condition()})", f"BIND({number(3)} AS ?b{next(fresh)})",
                        f"FILTER EXISTS {{ {inner} }}", f"{{ SELECT ?x ?n {{ {inner} }} }}",
                    ]
                )
            )  # fmt: skip
        return " ".join(parts)

    return f"SELECT * {{ {group(2)} }}"


def test_it_asks_what_generated_subscriptions_say() -> None:
    random = Random(7)
    assert sum(assert_agree(generated(random)) > 0 for _ in range(150)) > 50
