"""Publications from every syntax and source, in every cut, without buffering past ones."""

from __future__ import annotations

import io
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
import rdflib
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, parse, serialize

from semantic.errors import InputError, Problem, ProblemWarning, Severity
from semantic.files import PIECE
from semantic.limits import Limits
from semantic.publication import Publication
from semantic.reading import SplitBy, read_publications
from semantic.terms import Triple

E = "http://example.org/"
A, B, P, Q = (NamedNode(E + name) for name in ("a", "b", "p", "q"))
MAX_FAULTS = 100
"""Number of bad lines, without a good one, after which the reader gives up."""
TRIPLES: list[Triple] = [
    (A, P, B),
    (A, Q, Literal("naïve \n \"text\" \\ 'quoted'")),
    (B, P, Literal("5", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#integer"))),
    (B, Q, Literal("Klima", language="de")),
]
EXTENSIONS = {
    "ttl": RdfFormat.TURTLE,
    "nt": RdfFormat.N_TRIPLES,
    "nq": RdfFormat.N_QUADS,
    "trig": RdfFormat.TRIG,
    "rdf": RdfFormat.RDF_XML,
    "owl": RdfFormat.RDF_XML,
    "jsonld": RdfFormat.JSON_LD,
    "n3": RdfFormat.N3,
}
TOLD_BY_CONTENT = sorted(set(EXTENSIONS) - {"owl"})


def document(format: RdfFormat, triples: list[Triple] = TRIPLES) -> bytes:
    written = RdfFormat.TURTLE if format == RdfFormat.N3 else format
    quads = [Quad(s, p, o) for s, p, o in triples]  # type: ignore[arg-type]
    return serialize(quads, format=written)


def read(*sources: object, **options: object) -> list[Publication]:
    """Read sources that have no problem."""
    return list(read_publications(*sources, on_problem=fail, **options))  # type: ignore[arg-type]


def fail(problem: Problem) -> None:
    raise AssertionError(problem)


def read_with_problems(*sources: object, **options: object) -> tuple[list[Publication], list[str]]:
    problems: list[Problem] = []
    publications = read_publications(*sources, on_problem=problems.append, **options)  # type: ignore[arg-type]
    return list(publications), [str(problem) for problem in problems]


def test_bytes_are_a_document() -> None:
    line = b"<urn:a> <urn:p> <urn:b> <urn:g> .\n"
    (publication,) = read(line)
    assert (publication.id, publication.source.source) == ("urn:g", "<memory>")
    assert [publication] == read(line, format="nq")
    assert read_with_problems(b"<urn:a> <urn:p> .", format="nt")[1][0].startswith("<memory>:1")


def stream(text: str) -> io.BytesIO:
    return io.BytesIO(text.encode())


# --- Syntaxes and sources ------------------------------------------------------------------------


def test_that_every_syntax_is_tried() -> None:
    known = {value for name, value in vars(RdfFormat).items() if name.isupper()}
    # EXTENSIONS lists it as JSON-LD.
    assert known == {*EXTENSIONS.values(), RdfFormat.STREAMING_JSON_LD}


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_by_name(extension: str, tmp_path: Path) -> None:
    path = tmp_path / f"sample.{extension}"
    path.write_bytes(document(EXTENSIONS[extension]))
    (publication,) = read(path)
    assert set(publication.triples) == set(TRIPLES)
    assert publication.id == str(path)


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_by_media_type(extension: str) -> None:
    data = document(EXTENSIONS[extension])
    (publication,) = read(
        io.BytesIO(data), format=f"{EXTENSIONS[extension].media_type}; charset=utf-8"
    )
    assert set(publication.triples) == set(TRIPLES)


@pytest.mark.parametrize("extension", TOLD_BY_CONTENT)
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["", "byte order mark"])
def test_by_content(extension: str, mark: bytes) -> None:
    (publication,) = read(io.BytesIO(mark + document(EXTENSIONS[extension])))
    assert set(publication.triples) == set(TRIPLES)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "iso-8859-1"])
def test_rdf_xml_in_other_encodings(encoding: str) -> None:
    text = (
        document(RdfFormat.RDF_XML).decode().replace('encoding="UTF-8"', f'encoding="{encoding}"')
    )
    assert encoding in text
    (publication,) = read(io.BytesIO(text.encode(encoding)), format="rdf")
    assert set(publication.triples) == set(TRIPLES)


def test_the_format_that_is_named_wins_over_the_name(tmp_path: Path) -> None:
    path = tmp_path / "sample.ttl"
    path.write_bytes(document(RdfFormat.JSON_LD))
    assert len(read(path, format="jsonld")) == 1


def test_folder_is_read_in_order_and_without_hidden_files(tmp_path: Path) -> None:
    for name in ("b.nt", "a/z.ttl", "a/y.nt", ".hidden.ttl", ".git/c.ttl", "a/.d/e.ttl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(document(RdfFormat.N_TRIPLES))
    found = [Path(p.id).relative_to(tmp_path).as_posix() for p in read(tmp_path)]
    assert found == ["a/y.nt", "a/z.ttl", "b.nt"]


def test_open_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sample.nt"
    path.write_bytes(document(RdfFormat.N_TRIPLES))
    with path.open("rb") as file:
        (publication,) = read(file)
    assert publication.id == str(path)


def test_rdflib_graph() -> None:
    graph = rdflib.Graph(identifier=E)
    graph.parse(data=document(RdfFormat.TURTLE), format="turtle")
    (publication,) = read(graph)
    assert (publication.id, set(publication.triples)) == (E, set(TRIPLES))


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    data = document(RdfFormat.N_TRIPLES)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    (publication,) = read("-")
    assert (publication.id, set(publication.triples)) == ("<stdin>", set(TRIPLES))


def test_closed_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert read_with_problems("-") == (
        [],
        ["<stdin>: standard input is closed. Pipe a document into it."],
    )


def test_standard_input_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, buffer: object) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(Broken())))
    assert read_with_problems("-") == (
        [],
        ["<stdin>: cannot be read: Input/output error. Check the name and permissions."],
    )


@pytest.mark.parametrize("base", ["nonsense", "", "//example.org"])
def test_base_must_be_an_iri(base: str) -> None:
    with pytest.raises(InputError, match=r"is not an absolute IRI\. Give one such as https://"):
        read(stream("<a> <b> <c> ."), base_iri=base)


@pytest.mark.parametrize(
    ("syntax", "text"),
    [
        ("ttl", "<a> <p> <b> ."),
        ("trig", "{ <a> <p> <b> }"),
        ("jsonld", '{"@id": "a", "http://example.org/p": {"@id": "b"}}'),
        (
            "rdf",
            '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
            'xmlns:e="http://example.org/"><rdf:Description rdf:about="a">'
            '<e:p rdf:resource="b"/></rdf:Description></rdf:RDF>',
        ),
    ],
)
def test_relative_iris_need_a_base(syntax: str, text: str) -> None:
    (publication,) = read(stream(text), format=syntax, base_iri=E)
    assert publication.triples == ((A, P, B),)
    publications, (problem,) = read_with_problems(stream(text), format=syntax)
    assert publications == []
    assert "a relative IRI" in problem
    assert problem.endswith(
        "Write the full IRI, or give the document a base: in it, or with `base=` or `--base`."
    )


def test_without_a_callback_problems_are_warnings() -> None:
    with pytest.warns(ProblemWarning, match="<stream>: the file is empty. Remove or fill it."):
        assert list(read_publications(io.BytesIO())) == []


# --- Streaming -----------------------------------------------------------------------------------


class Counted(io.RawIOBase):
    """A stream of generated lines that counts the bytes read from it."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        self._rest = b""
        self.taken = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        while len(self._rest) < len(buffer) and (line := next(self._lines, b"")):
            self._rest += line
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        self.taken += count
        return count


LINE = b'<http://example.org/%d> <http://example.org/p> "value %d" <http://example.org/g%d> .\n'
LINES = 200_000


def lines(graph_size: int, count: int = LINES) -> Iterator[bytes]:
    return (LINE % (n, n, n // graph_size) for n in range(count))


def test_first_publication_comes_before_the_stream_is_read() -> None:
    source = Counted(lines(graph_size=10))
    publications = read_publications(source, on_problem=fail, format="nq")
    assert len(next(publications).triples) == 10
    assert source.taken <= 2 * PIECE
    assert sum(1 for _ in publications) == LINES // 10 - 1
    assert source.taken > 15_000_000


def test_memory_stays_flat() -> None:
    source = Counted(lines(graph_size=1000))
    tracemalloc.start()
    try:
        count = sum(len(p.triples) for p in read_publications(source, on_problem=fail))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert count == LINES
    assert peak < 4_000_000  # The reader reads 16,000,000 bytes.


def test_pipe_is_read_as_it_comes() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as source, open(writing, "wb", buffering=0) as sink:  # noqa: PTH123
        sink.write(b"".join(lines(graph_size=1, count=2)))
        timer = threading.Timer(20, sink.close)  # A read that blocks then fails.
        timer.start()
        publications = read_publications(source, on_problem=fail, format="nq")
        assert next(publications).id == f"{E}g0"
        assert timer.is_alive()
        assert not sink.closed
        timer.cancel()


# --- Lines ---------------------------------------------------------------------------------------

GOOD = f"<{E}a> <{E}p> <{E}b> ."


@pytest.mark.parametrize(
    ("line", "column", "what"),
    [
        ("this is garbage", 1, "not valid N-Quads"),
        (f'<{E}a> <{E}p> "no end', None, "not valid N-Quads"),
        (f"<{E}a> <{E}p> <{E}b>", None, "not valid N-Quads"),
        (f'"text" <{E}p> <{E}b> .', 1, "not valid N-Quads"),
        (f"<a> <{E}p> <{E}b> .", 1, "a relative IRI"),
        (f"{GOOD} {GOOD}", None, "not valid N-Quads"),
        (f"<{E}a <{E}p> <{E}b> .", 1, "not valid N-Quads"),
        (f'<{E}a> <{E}p> "x"@toolongasubtag .', None, "not valid N-Quads"),
        ("}\0", 1, "not valid N-Quads"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_each_bad_line_is_one_problem(line: str, column: int | None, what: str, end: str) -> None:
    after = f"<{E}b> <{E}p> <{E}a> ."
    text = end.join([GOOD, line, after, line, ""])
    (publication,), problems = read_with_problems(stream(text), format="nq")
    assert publication.triples == ((A, P, B), (B, P, A))
    assert len(problems) == 2
    for number, problem in zip((2, 4), problems, strict=True):
        place = f"<stream>:{number}:{column or ''}"
        assert problem.startswith(place)
        assert what in problem
        assert problem.endswith("Correct the line; it was skipped.")


def test_a_known_term_is_refused_in_a_place_of_another_kind() -> None:
    text = f'_:x <{E}p> "x" .\n<{E}a> _:x <{E}b> .\n"x" <{E}p> <{E}b> .\n'
    (publication,), problems = read_with_problems(stream(text), format="nt")
    assert (len(publication.triples), len(problems)) == (1, 2)


def test_a_line_that_is_not_utf_8_is_skipped() -> None:
    data = f'{GOOD}\n<{E}a> <{E}p> "caf\xe9" .\n<{E}b> <{E}p> <{E}a> .\n'.encode("latin-1")
    (publication,), problems = read_with_problems(io.BytesIO(data), format="nt")
    assert len(publication.triples) == 2
    assert problems == ["<stream>:2:51: not UTF-8. Correct the line; it was skipped."]


def test_lines_are_numbered_across_pieces() -> None:
    bad = [1, 700, 5000, 20_000]
    text = "\n".join("garbage" if n in bad else GOOD for n in range(1, 20_001))
    assert len(text) > 10 * PIECE
    (publication,), problems = read_with_problems(stream(text), format="nq")
    assert [int(problem.split(":")[1]) for problem in problems] == bad
    assert publication.triples == ((A, P, B),)


def test_blank_nodes_keep_their_names_across_a_bad_line() -> None:
    text = f"_:x <{E}p> <{E}a> .\ngarbage\n<{E}b> <{E}p> _:x .\n_:y <{E}p> _:x .\n"
    (publication,), (_,) = read_with_problems(stream(text), format="nt")
    (x, _, _), (_, _, x_again), (y, _, x_third) = publication.triples
    assert isinstance(x, BlankNode)
    assert x == x_again == x_third
    assert x != y


@pytest.mark.parametrize("extension", ["nt", "ttl", "trig", "jsonld", "rdf"])
def test_blank_nodes_of_two_documents_differ(extension: str) -> None:
    data = document(EXTENSIONS[extension], [(BlankNode("x"), P, A)])
    one, two = read(io.BytesIO(data), io.BytesIO(data), format=extension)
    assert isinstance(one.triples[0][0], BlankNode)
    assert one.triples[0][0] != two.triples[0][0]


def test_blank_nodes_inside_triple_terms_are_the_same() -> None:
    text = f"_:x <{E}p> <<( _:x <{E}q> _:y )>> .\n"
    (publication,) = read(stream(text), format="nt")
    ((subject, _, term),) = publication.triples
    assert str(term) == f"{subject} <{E}q> {term.object}"  # type: ignore[union-attr]


def test_bad_lines_are_listed_up_to_a_number() -> None:
    publications, problems = read_with_problems(stream("garbage\n" * 1000), format="nq")
    assert publications == []
    assert len(problems) == 11
    assert problems[-1] == (
        "<stream>: none of the first 1000 lines is N-Quads. "
        "Name its syntax (`format=` or `--format`)."
    )


@pytest.mark.parametrize("format", [None, "nq", "ttl"])
def test_a_stream_may_begin_with_many_blanks(format: str | None) -> None:
    text = "\n" * 200_000 + f"<{E}a> <{E}p> <{E}b> .\n"
    (publication,), problems = read_with_problems(stream(text), format=format)
    assert (len(publication.triples), problems) == (1, [])


def test_an_endless_stream_without_a_good_line_is_given_up() -> None:
    source = Counted(iter([b"garbage\n" * 1000] * 10_000))
    publications, problems = read_with_problems(source, format="nq")
    assert publications == []
    assert "none of the first" in problems[-1]
    assert source.taken < 10 * PIECE


def test_good_lines_among_many_bad_ones_are_read() -> None:
    text = f"{GOOD}\n" + "garbage\n" * 1000 + f"<{E}b> <{E}p> <{E}a> .\n"
    (publication,), problems = read_with_problems(stream(text), format="nq")
    assert (len(publication.triples), len(problems)) == (2, MAX_FAULTS + 1)


def test_a_line_may_not_be_endless() -> None:
    source = Counted(iter([b'<urn:a> <urn:b> "'] + [b"x" * PIECE] * 1000))
    publications, problems = read_with_problems(
        source, format="nt", limits=Limits(document_bytes=5 * PIECE)
    )
    assert publications == []
    assert problems == [
        "<stream>: a line has more than 327,680 bytes. Raise the limit `document_bytes` if the "
        "line is correct."
    ]
    assert source.taken < 10 * PIECE


# --- Limits --------------------------------------------------------------------------------------

TOO_MANY = "Raise the limit `publication_triples`, or split the document into smaller publications."


def test_graph_with_too_many_triples_is_left_out_alone() -> None:
    text = b"".join(lines(graph_size=30_000, count=60_001)).decode()
    text += text[: text.index("\n") + 1].replace("/g0>", "/last>")
    found, problems = read_with_problems(stream(text), limits=Limits(publication_triples=20_000))
    assert [p.id for p in found] == [f"{E}g2", f"{E}last"]
    what = "the publication has more than 20,000 triples"
    assert problems == [f"<stream> ({E}g{n}): {what}. {TOO_MANY}" for n in (0, 1)]


def test_too_large_a_document_is_not_read_on() -> None:
    source = Counted(b'<urn:%d> <urn:p> "5" .\n' % n for n in range(10_000_000))
    found, problems = read_with_problems(
        source, format="nt", limits=Limits(publication_triples=1000)
    )
    assert found == []
    assert problems == [f"<stream>: the publication has more than 1,000 triples. {TOO_MANY}"]
    assert source.taken < 1_000_000


def test_repeated_triples_count_once() -> None:
    text = f"{GOOD}\n" * 30_000
    (publication,) = read(stream(text), limits=Limits(publication_triples=1))
    assert publication.triples == ((A, P, B),)


@pytest.mark.parametrize("split_by", ["subject", "component", "item"])
def test_limit_holds_in_every_cut(split_by: str) -> None:
    text = (
        f"<{E}a> a <http://purl.org/rss/1.0/item> ; <{E}p> 1, 2, 3 .\n"
        f"<{E}b> a <http://purl.org/rss/1.0/item> ."
    )
    (kept,), (problem,) = read_with_problems(
        stream(text), split_by=split_by, limits=Limits(publication_triples=3)
    )
    assert len(kept.triples) == 1
    assert f": the publication has more than 3 triples. {TOO_MANY}" in problem


@pytest.mark.parametrize("extension", ["ttl", "trig", "rdf", "jsonld"])
def test_documents_that_are_held_have_a_size(extension: str) -> None:
    data = document(EXTENSIONS[extension])
    assert len(read(io.BytesIO(data), limits=Limits(document_bytes=len(data)))) == 1
    limits = Limits(document_bytes=len(data) - 1)
    _, (problem,) = read_with_problems(io.BytesIO(data), limits=limits)
    assert problem == (
        f"<stream>: larger than {len(data) - 1} bytes. Raise the limit `document_bytes`, or give "
        "the data as N-Quads, which is streamed."
    )


# --- Cuts ----------------------------------------------------------------------------------------

DATASET = f"""
@prefix e: <{E}> .
e:a e:p e:b .
e:g {{ e:a e:q "in g" }}
_:g {{ e:b e:q "in a blank graph" }}
"""


def by_id(publications: list[Publication]) -> dict[str, set[str]]:
    return {p.id: {str(o).replace(E, "e:") for _, _, o in p.triples} for p in publications}


@pytest.mark.parametrize("split_by", ["graph", "auto", SplitBy.GRAPH])
def test_graphs(split_by: str | SplitBy) -> None:
    found = by_id(read(stream(DATASET), split_by=split_by))
    blank = next(id for id in found if id.startswith("<stream>#"))
    assert found == {"<stream>": {"<e:b>"}, f"{E}g": {'"in g"'}, blank: {'"in a blank graph"'}}


def test_graph_has_its_place_in_the_document() -> None:
    assert [str(p.source) for p in read(stream(DATASET), split_by="graph")][:2] == [
        "<stream>",
        f"<stream> ({E}g)",
    ]


def test_document() -> None:
    found = by_id(read(stream(DATASET), split_by="document"))
    assert found == {"<stream>": {"<e:b>", '"in g"', '"in a blank graph"'}}


def test_auto_takes_a_turtle_file_whole() -> None:
    (publication,) = read(io.BytesIO(document(RdfFormat.TURTLE)), format="ttl", split_by="auto")
    assert len(publication.triples) == len(TRIPLES)


def test_graph_in_two_places_is_two_publications_and_a_warning() -> None:
    text = "".join(f"<{E}a> <{E}p> <{E}{o}> <{E}{g}> .\n" for o, g in ["xg", "yh", "zg"])
    problems: list[Problem] = []
    found = list(read_publications(stream(text), on_problem=problems.append))
    assert [p.id for p in found] == [f"{E}g", f"{E}h", f"{E}g"]
    (problem,) = problems
    assert problem.severity is Severity.WARNING
    assert str(problem) == (
        f"<stream> ({E}g): the graph's statements are not contiguous: it was read as several "
        "publications. Sort the file by graph, so that each graph is one publication."
    )


NESTED = f"""
@prefix e: <{E}> .
e:a e:p [ e:p [ e:q "deep" ] ; e:q "shallow" ] , e:b .
e:b e:p _:round . _:round e:p _:trip . _:trip e:p _:round ; e:q "circle" .
_:alone e:q "nobody's" .
"""


def test_subjects_with_their_blank_nodes() -> None:
    found = read(stream(NESTED), split_by="subject")
    texts = {p.id: {o.value for _, _, o in p.triples if isinstance(o, Literal)} for p in found}
    assert texts == {f"{E}a": {"deep", "shallow"}, f"{E}b": {"circle"}}
    assert {p.id: len(p.triples) for p in found} == {f"{E}a": 5, f"{E}b": 4}


def test_components() -> None:
    text = f"""
    @prefix e: <{E}> .
    e:a a e:Offer ; e:p e:b .   e:c a e:Offer ; e:q "the same text" .
    e:d e:q "the same text" .   e:b e:p [ e:q 1 ] .
    [] e:p _:x .                _:y e:p _:x .
    e:e a e:e .
    """
    found = read(stream(text), split_by="component")
    assert [p.id for p in found] == [f"<stream>#{n}" for n in (1, 2, 3, 4, 5)]
    assert [len(p.triples) for p in found] == [4, 2, 1, 2, 1]
    # Shared values of rdf:type do not connect components.
    assert {str(s) for s, _, _ in found[1].triples} == {f"<{E}c>"}
    assert str(found[1].source) == "<stream> (component 2)"


def test_one_component_has_the_documents_id() -> None:
    (publication,) = read(stream(f"<{E}a> <{E}p> <{E}b> . <{E}b> <{E}p> 1 ."), split_by="component")
    assert publication.id == "<stream>"


ITEMS = f"""
@prefix e: <{E}> . @prefix rss: <http://purl.org/rss/1.0/> .
@prefix dct: <http://purl.org/dc/terms/> .
e:a a rss:item ; rss:title "A" ; dct:isPartOf e:channel ; e:p [ e:q "inner" ] .
e:b a rss:item ; rss:title "B" .
e:channel a rss:channel ; rss:title "Channel" .
e:other rss:title "no item" .
[] a rss:item .
"""


def test_items() -> None:
    found = read(stream(ITEMS), split_by="item", format="ttl")
    texts = {p.id: {o.value for _, _, o in p.triples if isinstance(o, Literal)} for p in found}
    assert texts == {f"{E}a": {"A", "inner", "Channel"}, f"{E}b": {"B"}}


RSS = '<rss version="2.0"><channel><title>T</title><item><link>http://e/1</link></item></channel></rss>'


@pytest.mark.parametrize("split_by", ["auto", "item"])
def test_items_of_a_feed(split_by: str) -> None:
    assert [p.id for p in read(stream(RSS), split_by=split_by)] == ["http://e/1"]


@pytest.mark.parametrize("split_by", ["document", "graph", "subject", "component"])
def test_a_feed_without_rdf_has_items_only(split_by: str) -> None:
    assert read_with_problems(stream(RSS), split_by=split_by) == (
        [],
        ["<stream>: a feed can only be split into items. Split it by `item` or `auto`."],
    )


def test_rss_1_is_rdf_in_the_other_cuts() -> None:
    text = (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns="http://purl.org/rss/1.0/"><item rdf:about="http://e/1"><title>T</title>'
        "</item></rdf:RDF>"
    )
    assert [p.id for p in read(stream(text), split_by="document")] == ["<stream>"]
    assert [p.id for p in read(stream(text), split_by="auto")] == ["http://e/1"]


def test_unknown_cut() -> None:
    with pytest.raises(
        InputError, match=r"split_by: 'slice' is unknown\. Use one of: auto, document, "
    ):
        read(stream(GOOD), split_by="slice")


@pytest.mark.parametrize(
    ("text", "split_by"),
    [("# nothing\n@prefix a: <urn:a> .", "auto"), (GOOD, "item"), ("[] <urn:p> 1 .", "subject")],
)
def test_document_without_a_publication_is_reported(text: str, split_by: str) -> None:
    problems: list[Problem] = []
    assert (
        list(read_publications(stream(text), split_by=split_by, on_problem=problems.append)) == []
    )
    (problem,) = problems
    assert problem.severity is Severity.WARNING
    assert str(problem) == (
        f"<stream>: there is no publication in it, if it is split by `{split_by}`. "
        "Check that it is the right file, or split it in another way."
    )


# --- Unreadable files ----------------------------------------------------------------------------


def test_files_that_cannot_be_read_are_reported(tmp_path: Path) -> None:
    (tmp_path / "good.nt").write_text(GOOD)
    (tmp_path / "gone.ttl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop.ttl").symlink_to(tmp_path / "loop.ttl")
    found, problems = read_with_problems(tmp_path, tmp_path / "missing.ttl", "x" * 5000)
    remedy = "Check the name and permissions."
    assert [p.id for p in found] == [str(tmp_path / "good.nt")]
    assert problems == [
        f"{tmp_path}/gone.ttl: cannot be read: No such file or directory. {remedy}",
        f"{tmp_path}/loop.ttl: cannot be read: Too many levels of symbolic links. {remedy}",
        f"{tmp_path}/missing.ttl: cannot be read: No such file or directory. {remedy}",
        f"{'x' * 5000}: cannot be read: File name too long. {remedy}",
    ]


def test_files_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret.nt").write_text(GOOD)
    (tmp_path / "good.nt").write_text(GOOD)
    opened = Path.open

    def refuse(path: Path, *arguments: object, **options: object) -> object:
        if path.name == "secret.nt":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    found, problems = read_with_problems(tmp_path)
    assert len(found) == 1
    assert problems == [
        f"{tmp_path}/secret.nt: cannot be read: Permission denied. Check the name and permissions."
    ]


def test_folder_without_permission(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "good.nt").write_text(GOOD)
    looked = os.scandir

    def refuse(path: str) -> object:
        if path.endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return looked(path)

    monkeypatch.setattr(os, "scandir", refuse)
    found, problems = read_with_problems(tmp_path)
    assert len(found) == 1
    assert problems == [
        f"{tmp_path}/secret: cannot be read: Permission denied. Check the name and permissions."
    ]


def test_empty_folder_is_a_warning(tmp_path: Path) -> None:
    problems: list[Problem] = []
    assert list(read_publications(tmp_path, on_problem=problems.append)) == []
    (problem,) = problems
    assert problem.severity is Severity.WARNING
    assert str(problem) == f"{tmp_path}: the folder has no files. Give a folder that has some."


def test_that_the_reference_parser_agrees() -> None:
    data = b"".join(lines(graph_size=7, count=5000))
    expected = [(q.subject, q.predicate, q.object) for q in parse(data, format=RdfFormat.N_QUADS)]
    assert [t for p in read(io.BytesIO(data)) for t in p.triples] == expected
