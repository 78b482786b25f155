"""A publication's ids are those that its terms have now, by whatever its terms are known."""

from __future__ import annotations

import io
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode

from graphmatch import Engine
from graphmatch.index.chains import TRIPLES
from graphmatch.index.encoding import Encoded
from graphmatch.index.terms import LOCAL, Terms
from semantic import Publication, read_publications
from semantic.term_texts import TermTexts

NAMES = tuple(f"urn:{n}" for n in range(8))
DOCUMENTS = st.lists(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES), st.sampled_from((*NAMES, "_:x"))),
    min_size=1,
    max_size=6,
)
CHANGES = st.tuples(st.booleans(), st.sampled_from(NAMES))


def document(triples: Sequence[tuple[str, str, str]]) -> bytes:
    lines = (" ".join(t if ":x" in t else f"<{t}>" for t in triple) for triple in triples)
    return "".join(f"{line} .\n" for line in lines).encode()


def read(data: bytes, texts: TermTexts) -> Publication:
    (publication,) = read_publications(io.BytesIO(data), format="nt", texts=texts)
    return publication


@given(st.lists(st.tuples(st.lists(CHANGES, max_size=3), DOCUMENTS), max_size=8))
def test_that_ids_are_those_of_now(
    steps: list[tuple[list[tuple[bool, str]], list[tuple[str, str, str]]]],
) -> None:
    """Terms come and go between publications of one lexicon, which forgets all now and then."""
    terms, texts, taken = Terms(), TermTexts(most=6), list[str]()
    kinds = 0b11001100
    for changes, triples in steps:
        for takes, name in changes:
            if takes:
                terms.take([NamedNode(name)])
                taken.append(name)
            elif name in taken:
                terms.release(np.array([terms.ids[NamedNode(name)]], np.int32))
                taken.remove(name)
        publication = read(document(triples), texts)
        numbering = publication.numbered()
        expected = [terms.ids.get(term, -1) for term in numbering.terms]
        for _ in range(2):
            assert terms.of(numbering).tolist() == expected
        mine = Encoded(numbering, terms, kinds, compared=True)
        other = Encoded(publication.triples, terms, kinds, compared=True)
        written = TRIPLES + 3 * numbering.size
        assert (mine.graph[:written] == other.graph[:written]).all()
        assert mine.terms == other.terms
        assert [id >= LOCAL for id in mine.terms] == [id < 0 for id in expected]


def test_that_subscriptions_come_and_go_between_publications() -> None:
    engine, texts = Engine(), TermTexts()
    data = b'<urn:a> <urn:p> <urn:b> .\n<urn:b> <urn:q> "5" .\n'

    def matched() -> list[str]:
        return list(engine.match(read(data, texts)).subscriptions)

    assert matched() == []
    engine.subscribe("p", "SELECT * { ?s <urn:p> <urn:b> }")
    assert matched() == ["p"]
    engine.subscribe("q", 'SELECT * { <urn:b> <urn:q> ?o FILTER(?o = "5") }')
    assert matched() == ["p", "q"]
    engine.unsubscribe("p")
    assert matched() == ["q"]
    engine.subscribe("r", 'SELECT * { <urn:a> ?p ?o . ?o ?q "5" }')
    assert matched() == ["q", "r"]
    engine.unsubscribe("q")
    engine.subscribe("p", "SELECT * { ?s <urn:p> <urn:c> }")
    assert matched() == ["r"]
