"""Lines that are written plainly are read without parsing them, and say the same."""

from __future__ import annotations

import io
import pickle
import random
import subprocess
import sys

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from semantic import read_publications
from semantic.errors import Problem
from semantic.numbering import Numbering
from semantic.plain_lines import PlainLines
from semantic.runs import Run
from semantic.term_texts import TermTexts, parsed, renamed
from semantic.terms import Triple

SUBJECTS = ("<urn:a>", "<urn:b>", "_:x", "_:y", '"no subject"', "<urn:\\u0061>", "")
PREDICATES = ("<urn:p>", "<urn:q>", "<http://e/p#q>", "_:x", '"no predicate"')
OBJECTS = (
    *SUBJECTS,
    '"a text"',
    '"a text"^^<http://www.w3.org/2001/XMLSchema#string>',
    '"\\u0061 text"',
    '"hallo"@de',
    '"hallo"@DE',
    '"5"^^<http://www.w3.org/2001/XMLSchema#integer>',
    '"<urn:a> <urn:b> <urn:c> ."',
    '"a <urn:g>"',
    '"_:b"',
    "<<( <urn:a> <urn:p> _:x )>>",
    "<urn:a> .\n<urn:a> <urn:p> <urn:b>",
    "<urn:a> . # <urn:b>",
    "<urn:a>#",
    "<urn:a>.",
)
GRAPHS = ("", "<urn:g>", "<urn:h>", "_:x", '"no graph"')
SEPARATORS = (" ", " ", " ", " ", " ", "  ", "\t")
ENDS = (
    " .\n",
    " .\n",
    " .\n",
    " .\n",
    " .\r\n",
    ".\n",
    " . # well\n",
    " .\n\n",
    "\n",
    " .\n# so\n",
)


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    """Draw a document in which much is plain, and some is not."""
    seed = draw(st.integers(0, 2**32))
    rng = random.Random(seed)
    odd = rng.choice((0.0, 0.0, 0.02, 0.2))

    def pick(values: tuple[str, ...], plain: int) -> str:
        return rng.choice(values if rng.random() < odd else values[:plain])

    written = []
    for _ in range(rng.randrange(12)):
        terms = [pick(SUBJECTS, 4), pick(PREDICATES, 3), pick(OBJECTS, 20)]
        if rng.random() < 0.9 and (graph := pick(GRAPHS, 4)):
            terms.append(graph)
        written.append(pick(SEPARATORS, 5).join(terms) + pick(ENDS, 4))
    text = "".join(written)
    return (text if rng.random() < 0.8 else text.rstrip("\n")).encode()


def quads_of(runs: list[Run], graphs: bool) -> list[Quad]:
    return [
        Quad(*triple, run.graph) if graphs else Quad(*triple)  # type: ignore[arg-type]
        for run in runs
        for triple in run.triples
    ]


def parsed_quads(document: bytes, syntax: RdfFormat) -> list[Quad]:
    return [
        Quad(
            renamed(q.subject, "n"), q.predicate, renamed(q.object, "n"), renamed(q.graph_name, "n")
        )
        for q in parse(document, format=syntax)
    ]


@given(st.lists(documents(), min_size=1, max_size=3), st.booleans())
@example([b'<urn:a> <urn:p> <urn:a> .\n<urn:a> <urn:p> <urn:b> .\n<urn:c> <urn:p> "x" .'], False)
def test_plain_lines_say_what_is_parsed(several: list[bytes], graphs: bool) -> None:
    syntax = RdfFormat.N_QUADS if graphs else RdfFormat.N_TRIPLES
    lines = PlainLines(graphs, TermTexts(most=6), lambda: "n")
    for document in several:
        runs = lines.runs(document)
        event("parsed" if runs is None else "plain")
        if runs is not None:
            assert quads_of(runs, graphs) == parsed_quads(document, syntax)
        for run in runs or []:
            if run.numbering is not None:
                assert len(set(run.triples)) == len(run.triples)
                known, made = run.numbering, Numbering.of(run.triples)
                assert (list(known.terms), known.places) == (list(made.terms), made.places)


ODD = (
    b"\0",
    b"\t",
    b"\r",
    b"\n",
    b" ",
    b'"',
    b"<",
    b">",
    b"\\",
    b"_",
    b".",
    b"\xff",
    b"\xc3",
    b"#",
    b":",
)


@given(documents(), st.integers(0, 2**32), st.booleans())
@example(b"<urn:a> <urn:p> <urn:b>", 0, False)
@example(b"<urn:a> <urn:p> <urn:b>\n", 0, False)
@example(b"<urn:a> <urn:p> <urn:b> .\r<urn:a> <urn:p> <urn:b> .\n", 0, False)
@example(b'<urn:a> <urn:p> "%s" .\n<urn:a> <urn:p> <urn:b> .' % (b"long " * 20_000), 0, False)
def test_that_broken_lines_are_left_to_the_parser(document: bytes, seed: int, graphs: bool) -> None:
    """A byte more or less, anywhere: what is taken for plain is what the parser reads there."""
    syntax = RdfFormat.N_QUADS if graphs else RdfFormat.N_TRIPLES
    rng = random.Random(seed)
    texts = TermTexts(most=9)
    for broken in (document, *(_broken(document, rng) for _ in range(8))):
        runs = PlainLines(graphs, texts, lambda: "n").runs(broken)
        try:
            expected = parsed_quads(broken, syntax)
        except SyntaxError:
            assert runs is None
            continue
        if runs is not None:
            assert quads_of(runs, graphs) == expected


def _broken(document: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(document) + 1)
    if rng.random() < 0.3:
        return document[:place] + document[place + 1 :]
    return document[:place] + rng.choice(ODD) + document[place:]


def test_that_plain_lines_are_not_left_to_the_parser() -> None:
    document = (
        b'<urn:a> <urn:p> "a \\"text\\" ." .\n'
        b"<urn:a> <urn:q> _:x .\r\n"
        b'_:x <urn:p> "hallo"@de-CH .\n'
        b'_:x <urn:p> "5"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        b"_:x <urn:p> <<( <urn:a> <urn:p> _:x )>> .\n"
        b'_:x <urn:p> "" .'
    )
    (run,) = PlainLines(False, TermTexts(), lambda: "n").runs(document) or ()
    assert quads_of([run], False) == parsed_quads(document, RdfFormat.N_TRIPLES)
    assert run.numbering is not None
    assert run.numbering.known is not None
    others = run.numbering.known.others
    assert sorted(others) == [
        place for place, t in enumerate(run.numbering.terms) if "n" in str(t) and "_:" in str(t)
    ]


def test_that_terms_of_two_texts_are_one_term() -> None:
    texts = TermTexts()
    lines = PlainLines(False, texts, lambda: "n")
    odd, plain = b'<urn:a> <urn:p> "\\u0061" .\n', b'<urn:a> <urn:p> "a" .\n'
    (alone,) = lines.runs(odd) or ()
    assert alone.numbering is not None
    for document in (plain + odd, odd + plain):
        (both,) = lines.runs(document) or ()
        assert both.numbering is None
        assert len(set(both.triples)) == 1
    long = b"x" * 600
    document = b'<urn:a> <urn:p> "%s" .\n<urn:a> <urn:p> "\\u0078%s" .\n' % (long, long[1:])
    (both,) = lines.runs(document) or ()
    assert both.numbering is None
    assert len(set(both.triples)) == 1


def test_that_a_publication_is_pickled_without_the_lexicon() -> None:
    (publication,) = read_publications(io.BytesIO(b"<urn:a> <urn:p> _:x .\n"), format="nt")
    assert publication.numbered().known is not None
    again = pickle.loads(pickle.dumps(publication))
    assert again == publication
    assert hash(again) == hash(publication)
    assert again.numbered().known is None
    assert again.numbered().places == publication.numbered().places


@given(st.lists(documents(), min_size=1, max_size=3))
def test_that_documents_are_read_as_they_are_parsed(several: list[bytes]) -> None:
    texts = TermTexts(most=6)
    for document in several:
        try:
            quads = list(parse(document, format=RdfFormat.N_QUADS))
        except SyntaxError:
            continue
        expected: list[tuple[str, int]] = []
        before: object = None
        triples: set[Triple] = set()
        for quad in quads:
            if quad.graph_name != before:
                triples, before = set(), quad.graph_name
                expected.append(("", 0))
            triples.add((quad.subject, quad.predicate, quad.object))
            expected[-1] = (getattr(before, "value", "<stream>"), len(triples))
        problems: list[Problem] = []
        found = read_publications(
            io.BytesIO(document), format="nq", on_problem=problems.append, texts=texts
        )
        blank = [id for id, _ in expected if id in ("x", "y")]
        if not blank:
            assert [(p.id, len(p.triples)) for p in found] == expected


def test_that_texts_are_parsed_once() -> None:
    texts = TermTexts()
    line = b'<urn:a> <urn:p> "%d" <urn:g> .\n'
    for number in (1, 2, 1, 2):
        assert (
            len(list(read_publications(io.BytesIO(line % number), format="nq", texts=texts))) == 1
        )
    assert texts.learned == 5
    assert len(texts) == 5


def test_that_texts_are_bounded() -> None:
    texts = TermTexts(most=3)
    for number in range(20):
        assert texts.terms([b"<urn:%d>" % number]) == [NamedNode(f"urn:{number}")]
        assert len(texts) <= 3
    assert len(texts.terms([b"<urn:%d>" % number for number in range(7)])) == 7
    texts.terms([b'"%s"' % (b"long" * 1000), b"_:b"])
    assert b"_:b" not in texts.lexicon.numbers
    assert len(texts) <= 7


@pytest.mark.parametrize("text", [b"", b"urn:a", b"<urn:a> <urn:b>", b'"a', b"<urn:a> .", b"#"])
def test_that_other_texts_are_no_terms(text: bytes) -> None:
    for several in ([text], [b"<urn:a>", text], [text, b"<urn:a>"]):
        with pytest.raises(SyntaxError):
            parsed(several)


def test_that_triple_terms_may_not_nest_without_end() -> None:
    deep = b"<<( <urn:a> <urn:b> " * 1000 + b"<urn:c>" + b" )>>" * 1000
    with pytest.raises(SyntaxError, match="more than 256"):
        parsed([deep])


def test_that_documents_of_new_texts_are_parsed() -> None:
    texts = TermTexts()
    lines = PlainLines(False, texts, lambda: "n")
    blocks = [
        b"".join(b"<urn:s%d%d> <urn:p> <urn:o%d%d> .\n" % (b, n, b, n) for n in range(9))
        for b in range(5)
    ]
    assert [lines.runs(block) is None for block in blocks] == [False] * 3 + [True] * 2
    assert lines.runs(blocks[0]) is None
    assert PlainLines(False, texts, lambda: "n").runs(blocks[0]) is not None


def test_that_a_publication_knows_its_numbers() -> None:
    document = b"<urn:a> <urn:p> <urn:a> <urn:g> .\n<urn:a> <urn:p> <urn:a> <urn:h> .\n"
    first, second = read_publications(io.BytesIO(document * 1), format="nq")
    assert first.numbering is not None
    assert second.numbered() is second.numbering
    (repeated,) = read_publications(io.BytesIO(document[:34] * 2), format="nq")
    assert repeated.numbering is None
    assert len(repeated.triples) == 1


def test_that_other_syntaxes_do_without_numba() -> None:
    code = (
        "import io, sys; from semantic import read_publications; "
        "(p,) = read_publications(io.BytesIO(b'<urn:a> a <urn:b>, <urn:c> .'), format='ttl'); "
        "assert len(p.triples) == 2; sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
