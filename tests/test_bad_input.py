"""Invalid and hostile input: each problem names what, where and a remedy; valid input goes on.

The tests use the library and the command, with a valid item next to the invalid one.
"""

from __future__ import annotations

import json
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from graphmatch import Engine, read_subscriptions
from graphmatch.cli import app
from semantic import Limits, Ontology, read_publications
from semantic.errors import OntologyError, Problem, Severity

TITLE = "http://purl.org/rss/1.0/title"
GOOD = f'<http://e/good> <{TITLE}> "Good news" .\n'
QUERY = f"SELECT ?item ?title WHERE {{ ?item <{TITLE}> ?title }}"
RDF = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'


@dataclass(frozen=True)
class Outcome:
    """The result of a command."""

    status: int
    out: str
    err: str

    @property
    def problems(self) -> list[str]:
        """Return the lines that begin with refused, warning or error."""
        return [line for line in self.err.splitlines() if line.split(" ")[0] in WORDS]


WORDS = ("refused", "warning", "error")


def run(*arguments: object, stdin: bytes | str = "") -> Outcome:
    """Run the command, which must exit without a traceback."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    assert "Traceback" not in result.stdout + result.stderr
    return Outcome(result.exit_code, result.stdout, result.stderr)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A publication that the subscription `wanted` matches."""
    path = tmp_path / "good.ttl"
    path.write_text(GOOD)
    return path


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    path = tmp_path / "wanted.rq"
    path.write_text(QUERY)
    return path


def write(path: Path, content: bytes | str) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# --- Publications --------------------------------------------------------------------------------


def rss(first: str = "One", second: str = "Two", doctype: str = "") -> str:
    return f"""{doctype}<rss version="2.0"><channel><title>c</title>
<item><title>{first}</title><link>http://e/1</link></item>
<item><title>{second}</title><link>http://e/2</link></item>
</channel></rss>"""


def rss1(first: str = "One", doctype: str = "") -> str:
    return f"""{doctype}<rdf:RDF {RDF} xmlns="http://purl.org/rss/1.0/">
<channel rdf:about="http://e/c"><title>c</title></channel>
<item rdf:about="http://e/1"><title>{first}</title><link>http://e/1</link></item>
<item rdf:about="http://e/2"><title>Two</title><link>http://e/2</link></item>
</rdf:RDF>"""


def rdf(text: str = "x", about: str = "http://e/a", doctype: str = "") -> str:
    return (
        f'{doctype}<rdf:RDF {RDF} xmlns:e="http://e/">'
        f'<rdf:Description rdf:about="{about}"><e:p>{text}</e:p></rdf:Description></rdf:RDF>'
    )


def cut(text: str, at: str) -> str:
    return text[: text.index(at)]


def context(terms: dict[str, object]) -> str:
    return json.dumps({"@context": terms, "@id": "urn:a", "urn:p": 5})


def chain_of_contexts(depth: int) -> dict[str, object]:
    """Return nested contexts, each with a chain of terms below the limit."""
    terms: dict[str, object] = {f"a{n}": f"a{n + 1}:" for n in range(100)}
    if depth:
        terms["a100"] = {"@id": "urn:", "@context": chain_of_contexts(depth - 1)}
    return terms


LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BOMB = f'<!DOCTYPE %s [<!ENTITY l0 "lol">{LAUGHS}]>\n'  # It expands to 3 GB.
CHAINED = "more than 256 terms of the context occur in definitions of other terms. If you trust"
NO_IRI = "Invalid IRI code point"
DEEP_XML = f"<rdf:RDF {RDF} xmlns:e='urn:e:'>" + "<e:A><e:p>" * 999 + "</e:p></e:A>" * 999
HTML = "<!DOCTYPE html>\n<html><head><title>Not found</title></head></html>"
QUAD = f'<http://e/a> <{TITLE}> "%s" <http://e/g%d> .\n'

THERE = "Correct the document there, or name its format (`format=` or `--format`)."
LINE = "Correct the line; it was skipped."
BASE = "Write the full IRI, or give the document a base: in it, or with `base=` or `--base`."
PAGE = "Give the address of the data itself; a page often names its feed in a <link>."
AS_UTF8 = (
    "the encoding is UTF-16 or UTF-32, but this syntax requires UTF-8. Save the document as UTF-8."
)
BOMBED = "the entities expand to more than 8,388,608 characters."
TOO_DEEP = "If you trust the document, raise the limit"
NO_JSON_LD = (
    "the JSON is neither a feed nor JSON-LD: it contains no triple. "
    "Give it a @context that makes its names IRIs."
)
NO_SYNTAX = (
    "neither the name nor the content shows an RDF syntax or a feed format. "
    "Name the syntax (`format=` or `--format`): for example ttl, nq, jsonld, rdf."
)

REFUSED: dict[str, tuple[str, str | bytes, int, list[str]]] = {
    # Case: file name, content, number of accepted publications, expected problems.
    "cut RSS 1.0": (
        "a.rdf",
        cut(rss1(), "Two"),
        1,
        [":4 (item 2): the document ends early, at 4:37. The item is left out. Get the whole"],
    ),
    "cut RSS 2.0": (
        "a.rss",
        cut(rss(), "Two"),
        1,
        [":3 (item 2): the document ends early, at 3:14. The item is left out. Get the whole"],
    ),
    "cut before its first item": (
        "a.rss",
        cut(rss(), "One"),
        0,
        [":2: the document ends early, at 2:14. No item is complete. Get the whole document."],
    ),
    "cut RDF/XML": (
        "a.rdf",
        cut(rdf(), "</rdf:D"),
        0,
        [":1:*: not valid XML: no element found. " + THERE],
    ),
    "cut Turtle": ("a.ttl", '<urn:a> <urn:b> "no end', 0, [":1:17: not valid Turtle: *. " + THERE]),
    "cut TriG": ("a.trig", "{ <urn:a> <urn:b> ", 0, [":1:19: not valid TriG: *. " + THERE]),
    "cut JSON-LD": ("a.jsonld", '{"@id": ', 0, [":1:9: not valid JSON-LD: *. " + THERE]),
    "bomb in RSS 2.0": ("a.rss", rss("&l9;", doctype=BOMB % "rss"), 0, [":3:14: " + BOMBED]),
    "bomb in RSS 1.0": ("a.rdf", rss1("&l9;", doctype=BOMB % "a"), 0, [":4:37: " + BOMBED]),
    "bomb in RDF/XML": ("a.rdf", rdf("&l9;", doctype=BOMB % "a"), 0, [":1:362: " + BOMBED]),
    "deep RDF/XML": (
        "a.rdf",
        DEEP_XML,
        0,
        [f":1:*: the elements are nested more than 256 deep. {TOO_DEEP} xml_depth."],
    ),
    "deep RSS": (
        "a.rss",
        rss("<a>" * 999 + "</a>" * 999),
        0,
        [f":2:*: the elements are nested more than 256 deep. {TOO_DEEP} xml_depth."],
    ),
    "deep JSON-LD": (
        "a.jsonld",
        '{"@id": "urn:a", "urn:p": ' * 20_000 + "1" + "}" * 20_000,
        0,
        [f": the objects and lists are nested more than 256 deep. {TOO_DEEP} `nesting`."],
    ),
    "chain of terms in a JSON-LD context": (
        "a.jsonld",
        context({f"a{n}": f"a{n + 1}:" for n in range(7_000)}),
        0,
        [f":1:2: {CHAINED}"],
    ),
    "circle of terms in a JSON-LD context": (
        "a.jsonld",
        context({f"a{n}": {"@id": "urn:a", "@type": f"a{n - 1}"} for n in range(7_000)}),
        0,
        [f":1:2: {CHAINED}"],
    ),
    "chain of terms with escapes in a JSON-LD context": (
        "a.jsonld",
        context({f"a{n}": f"a{n + 1}:" for n in range(7_000)}).replace("a", "\\u0061", 30_000),
        0,
        [f":1:*: {CHAINED}"],
    ),
    "chains of terms in nested contexts": (
        "a.jsonld",
        context(chain_of_contexts(100)),
        0,
        [f":1:2: {CHAINED}"],
    ),
    "a prefixed name in Turtle that is no IRI": (
        "a.ttl",
        "@prefix e: <urn:e:> . e:a\U000e01ef a e:b .",
        0,
        [f": not valid Turtle: {NO_IRI} '*' in *<urn:e:a\U000e01ef>*. {THERE}"],
    ),
    "a prefixed name in TriG that is no IRI": (
        "a.trig",
        "@prefix e: <urn:e:> . e:g\U000e01ef { e:a e:p 5 } e:h { e:a e:p 5 }",
        0,
        [f": not valid TriG: {NO_IRI} '*' in *<urn:e:g\U000e01ef>*. {THERE}"],
    ),
    "a datatype in a triple term that is no IRI": (
        "a.ttl",
        "@prefix e: <urn:e:> . e:a e:p <<( e:a e:p '1'^^e:d\U000efffe )>> .",
        0,
        [f": not valid Turtle: {NO_IRI} '*' in *<urn:e:d\U000efffe>*. {THERE}"],
    ),
    "deep triple terms in Turtle": (
        "a.ttl",
        "<urn:a> <urn:b> " + "<<( <urn:a> <urn:b> " * 20_000 + "5" + " )>>" * 20_000 + " .",
        0,
        [f":1:*: the brackets are nested more than 256 deep. {TOO_DEEP} `nesting`."],
    ),
    "deep triple terms in N-Quads": (
        "a.nq",
        "<urn:a> <urn:b> "
        + "<<( <urn:a> <urn:b> " * 20_000
        + '"5"'
        + " )>>" * 20_000
        + " .\n"
        + QUAD % ("one", 1),
        1,
        [f":1:*: the brackets are nested more than 256 deep. {TOO_DEEP} `nesting`."],
    ),
    "Latin-1 in Turtle": (
        "a.ttl",
        '<urn:a> <urn:b> 1 .\n<urn:a> <urn:b> "caf\xe9" .'.encode("latin-1"),
        0,
        [":2:21: not UTF-8. Save the document as UTF-8."],
    ),
    "Latin-1 in N-Quads": (
        "a.nq",
        (QUAD % ("caf\xe9", 1) + QUAD % ("one", 1)).encode("latin-1"),
        1,
        [f":1:50: not UTF-8. {LINE}"],
    ),
    "Latin-1 in RDF/XML": (
        "a.rdf",
        rdf("caf\xe9").encode("latin-1"),
        0,
        [":1:*: not in the declared encoding, utf-8 (*). Declare the actual encoding, or save the"],
    ),
    "Latin-1 in JSON-LD": (
        "a.jsonld",
        '{"@id": "urn:caf\xe9"}'.encode("latin-1"),
        0,
        [":1:*: not UTF-8. Save the document as UTF-8."],
    ),
    "unknown encoding": (
        "a.rdf",
        "<?xml version='1.0' encoding='klingon'?>" + rdf(),
        0,
        [":1: unknown encoding: klingon. Save the document as UTF-8, and declare UTF-8."],
    ),
    "an encoding of Python's": (
        "a.rdf",
        "<?xml version='1.0' encoding='base64'?>" + rdf(),
        0,
        [":1: unknown encoding: base64. Save the document as UTF-8, and declare UTF-8."],
    ),
    "UTF-16 that is cut off": (
        "a.rdf",
        rdf("one").encode("utf-16-be")[:-1],
        0,
        [":1:*: not in the declared encoding, utf-16-be (truncated data). It is damaged"],
    ),
    "UTF-16 in Turtle": ("a.ttl", GOOD.encode("utf-16"), 0, [f": {AS_UTF8}"]),
    "UTF-16 in N-Quads": ("a.nq", GOOD.encode("utf-16-be"), 0, [f": {AS_UTF8}"]),
    "UTF-16 in JSON-LD": ("a.jsonld", '{"@id": "urn:a"}'.encode("utf-16"), 0, [f": {AS_UTF8}"]),
    "relative IRI in Turtle": (
        "a.ttl",
        "\n <a> <urn:b> 5 .",
        0,
        [f":2:2: a relative IRI (a). {BASE}"],
    ),
    "relative IRI in RDF/XML": ("a.rdf", rdf(about="a"), 0, [f":1:*: a relative IRI (a). {BASE}"]),
    "relative IRI in JSON-LD": (
        "a.jsonld",
        '{\n "@id": "a", "urn:p": 5}',
        0,
        [f":2:9: a relative IRI (a). {BASE}"],
    ),
    "relative IRI in N-Triples": (
        "a.nt",
        f"<a> <urn:b> <urn:c> .\n{GOOD}",
        1,
        [f":1:1: a relative IRI (a). Write the full IRI. {LINE}"],
    ),
    "empty": ("a.ttl", "", 0, [": the file is empty. Remove or fill it."]),
    "white space": ("a.rss", "\ufeff \n\t", 0, [": the file is empty. Remove or fill it."]),
    "HTML for a feed": ("a.rss", HTML, 0, [f": an HTML page, not RDF or a feed. {PAGE}"]),
    "HTML": ("a.html", HTML, 0, [f": an HTML page, not RDF or a feed. {PAGE}"]),
    "HTML for Turtle": ("a.ttl", HTML, 0, [f": an HTML page, not RDF or a feed. {PAGE}"]),
    "HTML for JSON": ("a.json", HTML, 0, [f": an HTML page, not RDF or a feed. {PAGE}"]),
    "XHTML": (
        "a.xml",
        f"<?xml version='1.0'?>{HTML}",
        0,
        [f": an HTML page, not RDF or a feed. {PAGE}"],
    ),
    "other XML": (
        "a.xml",
        "<playlist version='1'><trackList/></playlist>",
        0,
        [": XML, but neither RDF/XML nor a feed: its root is <playlist>. Give RDF ("],
    ),
    "OPML": (
        "a.opml",
        "<opml version='2.0'><body/></opml>",
        0,
        [": an OPML list of feeds, not a feed. Get the feeds that it lists (its xmlUrl "],
    ),
    "prose": ("a.txt", "just some prose, dear reader.", 0, [f": {NO_SYNTAX}"]),
    "bytes": ("a.bin", bytes(range(256)), 0, [f": {NO_SYNTAX}"]),
    "gzip": ("a.nq.gz", b"\x1f\x8b\x08....", 0, [": compressed with gzip. Unpack it first."]),
    "a subscription": (
        "a.rq",
        QUERY,
        0,
        [
            ": it contains a subscription instead of publications. "
            "Subscribe to it (`read_subscriptions` or `--subscriptions`)."
        ],
    ),
    "synonyms": (
        "a.csv",
        "term,root",
        0,
        [
            ": it contains synonyms instead of publications. "
            "Load it with the ontology (`Ontology.load` or `--ontology`)."
        ],
    ),
    "remote context": (
        "a.jsonld",
        '{"@context": "https://schema.org/", "@id": "urn:a", "name": "x"}',
        0,
        [
            ":1:2: a remote JSON-LD context. Put the context into the document. Contexts are "
            "not fetched."
        ],
    ),
    "JSON": ("a.json", '{"type": "FeatureCollection", "features": []}', 0, [f": {NO_JSON_LD}"]),
    "JSON list": ("a.json", "[1, 2, 3]", 0, [f": {NO_JSON_LD}"]),
    "JSON number": ("a.json", "5", 0, [f": {NO_JSON_LD}"]),
    "broken JSON": ("a.json", '{"a": ', 0, [":1:7: not valid JSON-LD: *. " + THERE]),
    "garbage in a stream": (
        "a.nq",
        QUAD % ("one", 1) + "garbage\n" + QUAD % ("no end\n", 2) + QUAD % ("three", 3),
        2,
        [
            f":2:1: not valid N-Quads: *. {LINE}",
            f":3:*: not valid N-Quads: *. {LINE}",
            f":4:*: not valid N-Quads: *. {LINE}",
        ],
    ),
}


def said(path: Path, patterns: list[str]) -> list[str]:
    return [f"{path}{pattern}" for pattern in patterns]


def assert_said(problems: list[str], patterns: list[str]) -> None:
    """Assert that each problem begins with its pattern, in which ``*`` matches anything."""
    assert len(problems) == len(patterns), problems
    for problem, pattern in zip(problems, patterns, strict=True):
        rest = problem
        for number, part in enumerate(pattern.split("*")):
            position = rest.find(part)
            assert position == 0 if number == 0 else position >= 0, (problem, pattern)
            rest = rest[position + len(part) :]


@pytest.mark.parametrize("case", REFUSED)
def test_publication(case: str, tmp_path: Path, good: Path) -> None:
    name, content, kept, patterns = REFUSED[case]
    path = write(tmp_path / name, content)
    problems: list[Problem] = []
    found = list(read_publications(path, good, on_problem=problems.append))
    assert_said([str(problem) for problem in problems], said(path, patterns))
    assert {problem.severity for problem in problems} == {Severity.REFUSED}
    assert len(found) == kept + 1
    assert found[-1].id == str(good)


@pytest.mark.parametrize("case", REFUSED)
def test_publication_by_command(case: str, tmp_path: Path, good: Path, wanted: Path) -> None:
    name, content, kept, patterns = REFUSED[case]
    path = write(tmp_path / name, content)
    outcome = run("filter", path, good, "-s", wanted)
    assert_said(outcome.problems, [f"refused  {line}" for line in said(path, patterns)])
    assert outcome.status == 1
    assert "Good news\n" in outcome.out
    publications = "publication" if kept == 0 else "publications"
    last = outcome.err.splitlines()[-1]
    assert last.startswith(f"{kept + 1} {publications}, 1 subscription: ")
    assert f", {len(patterns)} refused, " in outcome.err


def test_a_jsonld_context_may_define_terms_by_others(tmp_path: Path) -> None:
    terms: dict[str, object] = {f"a{n}": f"a{n + 1}:" for n in range(254)}
    terms |= {
        "a254": "urn:e:",
        "http": "urn:http:",
        "type": "@type",
        "@type": {"@container": "@set"},
    }
    terms |= {f"b{n}": {"@id": f"a0:b{n}", "@type": "@id"} for n in range(1_000)}
    document = json.dumps({"@context": terms, "@id": "urn:a", "b7": "http://e/x", "a9:c": 1})
    (found,) = read_publications(document.encode(), format="jsonld")
    assert {p.value for _, p, _ in found.triples} == {"urn:e:b7", "urn:e:c"}


@pytest.mark.parametrize("depth", [129, 256])
def test_triple_terms_that_may_nest_so_deep_are_matched(
    depth: int, tmp_path: Path, good: Path, wanted: Path
) -> None:
    inside = "<<( <urn:a> <urn:b> " * depth + "<urn:c>" + " )>>" * depth
    path = write(tmp_path / "a.nt", f"<urn:a> <urn:b> {inside} .\n")
    query = write(tmp_path / "deep.rq", "SELECT ?o { ?s <urn:b> ?o FILTER(isTRIPLE(?o)) }")
    outcome = run("filter", path, good, "-s", query, "-s", wanted)
    assert (outcome.problems, outcome.status) == ([], 0)
    assert "urn:c" in outcome.out


WARNED: dict[str, tuple[str, str | bytes, int, list[str]]] = {
    "Latin-1 in a feed": (
        "a.rss",
        rss("caf\xe9").encode("latin-1"),
        2,
        [":2:17: not in the declared encoding, utf-8 (*). It was read as "],
    ),
    "graph in two places": (
        "a.nq",
        "".join(QUAD % (n, n % 2) for n in (1, 2, 3)),
        3,
        [
            " (http://e/g1): the graph's statements are not contiguous: it was read as several "
            "publications. Sort the file by graph, so that each graph is one publication."
        ],
    ),
    "nothing said": (
        "a.ttl",
        "# nothing\n",
        0,
        [": there is no publication in it, if it is split by `auto`. Check that it is the"],
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_publication_with_a_warning(case: str, tmp_path: Path, good: Path, wanted: Path) -> None:
    name, content, kept, patterns = WARNED[case]
    path = write(tmp_path / name, content)
    outcome = run("filter", path, good, "-s", wanted)
    assert_said(outcome.problems, [f"warning  {line}" for line in said(path, patterns)])
    assert outcome.status == 0
    publications = "publication" if kept == 0 else "publications"
    assert f"{kept + 1} {publications}, " in outcome.err
    assert " 0 refused" in outcome.err


def test_empty_folder(tmp_path: Path, good: Path, wanted: Path) -> None:
    folder = tmp_path / "empty"
    folder.mkdir()
    outcome = run("filter", folder, good, "-s", wanted)
    assert outcome.problems == [
        f"warning  {folder}: the folder has no files. Give a folder that has some."
    ]
    assert outcome.status == 0


def test_missing_publication(tmp_path: Path, good: Path, wanted: Path) -> None:
    outcome = run("filter", tmp_path / "missing.ttl", good, "-s", wanted)
    assert outcome.problems == [
        f"refused  {tmp_path}/missing.ttl: cannot be read: No such file or directory. "
        "Check the name and permissions."
    ]
    assert outcome.status == 1
    assert "Good news" in outcome.out


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("", "standard input is empty. Pipe a document into it."),
        ("\n \n", "standard input is empty. Pipe a document into it."),
        ("some prose", NO_SYNTAX),
        (HTML, f"an HTML page, not RDF or a feed. {PAGE}"),
    ],
)
def test_standard_input(stdin: str, message: str, good: Path, wanted: Path) -> None:
    outcome = run("filter", "-", good, "-s", wanted, stdin=stdin)
    assert outcome.problems == [f"refused  <stdin>: {message}"]
    assert outcome.status == 1
    assert "Good news" in outcome.out


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.ttl", "<a> <http://purl.org/rss/1.0/title> 'T' ."),
        ("a.jsonld", f'{{"@id": "a", "{TITLE}": "T"}}'),
        (
            "a.rdf",
            rdf("T", about="a")
            .replace("e:p", "r:title")
            .replace("xmlns:e", 'xmlns:r="http://purl.org/rss/1.0/" xmlns:e')
            .replace("purl.org/rss/1.0/", "purl.org/rss/1.0/", 1),
        ),
    ],
)
def test_base_makes_iris_whole(name: str, content: str, tmp_path: Path, wanted: Path) -> None:
    path = write(tmp_path / name, content)
    options = ("--base", "http://e/dir/", "--split-by", "document", "--format", path.suffix)
    outcome = run("filter", path, "-s", wanted, *options)
    assert (outcome.status, outcome.problems) == (0, [])
    assert "<http://e/dir/a>" in outcome.out


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32"])
def test_xml_and_json_feeds_in_wide_encodings(encoding: str, tmp_path: Path, wanted: Path) -> None:
    feed = '{"version": "https://jsonfeed.org/version/1.1", "items": [{"id": "http://e/3", %s}]}'
    write(tmp_path / "a.rss", rss().encode(encoding))
    write(tmp_path / "b.rdf", rdf().encode(encoding))
    if encoding == "utf-16":
        write(tmp_path / "c.json", (feed % '"title": "Three"').encode(encoding))
    (tmp_path / "wanted.rq").rename(tmp_path.parent / f"{encoding}.rq")
    outcome = run("filter", tmp_path, "-s", tmp_path.parent / f"{encoding}.rq")
    expected = ["One", "Two", "Three"][: 3 if encoding == "utf-16" else 2]
    assert outcome.problems == []
    assert [
        line for line in outcome.out.splitlines() if line in ("One", "Two", "Three")
    ] == expected


def test_graph_over_the_limit_of_triples(tmp_path: Path, good: Path) -> None:
    lines = "".join(QUAD % (n, n // 30) for n in range(60))
    path = write(tmp_path / "a.nq", lines)
    problems: list[Problem] = []
    limits = Limits(publication_triples=20)
    found = list(read_publications(path, good, on_problem=problems.append, limits=limits))
    assert [p.id for p in found] == [str(good)]
    assert [str(problem) for problem in problems] == [
        f"{path} (http://e/g{n}): the publication has more than 20 triples. Raise the limit "
        "`publication_triples`, or split the document into smaller publications."
        for n in (0, 1)
    ]


@pytest.mark.parametrize("name", ["a.rss", "a.rdf", "b.rdf", "a.owl"])
def test_a_bomb_is_refused_before_it_expands(name: str, tmp_path: Path) -> None:
    texts = {"a.rss": rss, "b.rdf": rss1}
    text = texts.get(name, rdf)("&l9;" * 3, doctype=BOMB % "a")
    path = write(tmp_path / name, text)
    problems: list[Problem] = []
    tracemalloc.start()
    try:
        assert list(read_publications(path, on_problem=problems.append)) == []
        with pytest.raises(OntologyError):
            Ontology.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5_000_000
    assert BOMBED in str(problems[0])


EXTERNAL = "<!DOCTYPE %s [<!ENTITY x SYSTEM '%s'>]>"


@pytest.mark.parametrize("kind", ["rss", "rss1", "rdf"])
def test_files_are_not_let_in(kind: str, tmp_path: Path, good: Path, wanted: Path) -> None:
    secret = write(tmp_path / "passwd", "root:x:0:0")
    make = {"rss": rss, "rss1": rss1, "rdf": rdf}[kind]
    text = make("&x;", doctype=EXTERNAL % ("a", secret.as_uri()))
    path = write(tmp_path / ("a.rss" if kind == "rss" else "a.rdf"), text)
    outcome = run("filter", path, good, "-s", wanted)
    assert outcome.problems == [
        f"refused  {path}:1:14: the entity 'x' is outside the document. Entities are not "
        "fetched. Write the text into the document."
    ]
    assert "root:" not in outcome.out + outcome.err
    assert "Good news" in outcome.out
    outcome = run("filter", good, "-s", wanted, "-o", path)
    assert outcome.status == 2
    assert "root:" not in outcome.out + outcome.err


@contextmanager
def listening() -> Iterator[tuple[str, list[str]]]:
    """Run a server that records requests."""
    asked: list[str] = []

    class Noting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Noting)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_nothing_is_fetched(tmp_path: Path, good: Path) -> None:
    with listening() as (address, asked):
        documents = {
            "a.jsonld": f'{{"@context": "{address}context", "@id": "urn:a"}}',
            "b.rss": rss("&x;", doctype=EXTERNAL % ("rss", address + "entity")),
            "c.rss": rss(doctype=f"<!DOCTYPE rss SYSTEM '{address}dtd'>"),
            "d.rdf": rdf(doctype=f"<!DOCTYPE a SYSTEM '{address}dtd2'>"),
            "e.ttl": f"<urn:o> <http://www.w3.org/2002/07/owl#imports> <{address}import> .",
        }
        paths = [write(tmp_path / name, content) for name, content in documents.items()]
        query = f"SELECT * {{ ?s ?p ?o SERVICE <{address}service> {{ ?s ?p ?o }} }}"
        service = write(tmp_path / "service.rq", query)
        loaded = write(tmp_path / "from.rq", f"SELECT * FROM <{address}from> {{ ?s ?p ?o }}")
        everything = write(tmp_path / "all.rq", "SELECT * { ?s ?p ?o }")
        subscriptions = ["-s", service, "-s", loaded, "-s", everything]
        outcome = run("filter", *paths, good, *subscriptions, "-o", paths[-1])
        assert (outcome.status, len(outcome.problems)) == (1, 5)  # One is the missing import.
        for ontology in paths:  # Use everything that can be read of it.
            run("check", service, loaded, everything, "-o", ontology)
            run("ontology", ontology)
        assert asked == []


# --- Subscriptions -------------------------------------------------------------------------------

NOTHING = "it matches an empty graph, so it would match every publication. Add a "
DEEP_QUERY = "SELECT * " + "{" * 20_000 + " ?s ?p ?o " + "}" * 20_000
DEEP_CALL = "SELECT * { ?s ?p ?o FILTER(" + "STR(" * 20_000 + "?o" + ")" * 20_000 + " = 'a') }"
FLATTER = "the query exceeds the limit `nesting` (256). "

QUERIES: dict[str, tuple[str | bytes, str]] = {
    "syntax error": ("SELECT ?x WHERE {\n  ?x <http://e/p> \n}", ":3:1: not SPARQL: "),
    "empty pattern": ("SELECT * {}", f"*: {NOTHING}"),
    "only OPTIONAL": ("SELECT * { OPTIONAL { ?s ?p ?o } }", f"*: {NOTHING}"),
    "only VALUES": ("SELECT * { VALUES ?x { 1 2 } }", f"*: {NOTHING}"),
    "SERVICE": (
        "SELECT * { ?s ?p ?o SERVICE <http://e/> { ?s ?p ?o } }",
        "*: SERVICE: a subscription cannot read other data. ",
    ),
    "FROM": ("SELECT * FROM <http://e/> { ?s ?p ?o }", "*: FROM: a subscription cannot"),
    "undeclared prefix": (
        "SELECT * {\n ?s nope:p ?o }",
        ":2:5: the prefix nope: is not declared. Declare it: PREFIX name: <namespace>.",
    ),
    "unknown function": (
        "SELECT * { ?s ?p ?o FILTER(<http://e/f>(?o)) }",
        "*<http://e/f>*. Use SPARQL 1.1's functions or those of gm:.",
    ),
    "unknown built-in": ("SELECT * { ?s ?p ?o FILTER(FOO(?o)) }", ":1:*: not SPARQL: "),
    "update": (
        "INSERT DATA { <urn:a> <urn:b> 1 }",
        ":1:1: not SPARQL: a query cannot begin with “INSERT”. ",
    ),
    "relative IRI": ("SELECT * { ?s <p> ?o }", ":1:15: <p> is not an absolute IRI"),
    "no WHERE": ("DESCRIBE <http://e/x>", "*: it matches an empty graph"),
    "half a character": ('SELECT * { ?s ?p "\\uD800" }', ":1:*: not SPARQL: "),
    "no character": ('SELECT * { ?s ?p "\\UFFFFFFFF" }', ":1:*: not SPARQL: "),
    "open quotation mark": ('SELECT * { ?s ?p "abc }', ":1:*: not SPARQL: "),
    "prose": ("tell me about the climate", ":1:*: not SPARQL: "),
    "bytes": (b"\x00\x01", ":1:*: not SPARQL: "),
    "empty": ("", ": the query is empty. Write a SPARQL query."),
    "comments": ("# only\n", ": the query is empty. Write a SPARQL query."),
    "Latin-1": (
        "# caf\xe9\nSELECT *".encode("latin-1"),
        ":1:6: not UTF-8. Save the file as UTF-8.",
    ),
    "UTF-16": (QUERY.encode("utf-16"), ":1:1: not UTF-8. Save the file as UTF-8."),
    "Latin-1 after a byte order mark": (
        b"\xef\xbb\xbf# \xc3\xa9\xe9",
        ":1:4: not UTF-8. Save the file as UTF-8.",
    ),
    "HTML": (HTML, ": an HTML page, not a query. Give the address of the query itself."),
    "deep groups": (DEEP_QUERY, f":1:266: {FLATTER}"),
    "deep calls": (DEEP_CALL, f":1:*: {FLATTER}"),
}


def read(*paths: Path) -> tuple[list[str], list[str]]:
    problems: list[Problem] = []
    ids = [s.id for s in read_subscriptions(*paths, on_problem=problems.append)]
    assert {problem.severity for problem in problems} <= {Severity.REFUSED}
    return ids, [str(problem) for problem in problems]


@pytest.mark.parametrize("case", QUERIES)
def test_subscription(case: str, tmp_path: Path, good: Path, wanted: Path) -> None:
    content, pattern = QUERIES[case]
    path = write(tmp_path / "bad.rq", content)
    ids, problems = read(path, wanted)
    assert ids == ["wanted"]
    assert_said(problems, [f"{path}{pattern}"])
    outcome = run("filter", good, "-s", path, "-s", wanted)
    assert_said(outcome.problems, [f"refused  {path}{pattern}"])
    assert outcome.status == 1
    assert "Good news" in outcome.out
    assert "1 publication, 1 subscription: 1 match in 1 publication, 1 refused" in outcome.err


LINES: dict[str, tuple[str | bytes, str]] = {
    "no JSON": ("not json", ":2:1: not JSON: Expecting value. "),
    "cut JSON": ('{"id": "b", "query": "SEL', ":2:22: not JSON: Unterminated string starting. "),
    "no object": ("[1]", ":2: not a JSON object. "),
    "a text": ('"text"', ":2: not a JSON object. "),
    "null": ("null", ":2: not a JSON object. "),
    "no id": ('{"query": "ASK {?s ?p ?o}"}', ":2: the field `id` is missing. "),
    "no query": ('{"id": "b", "qery": ""}', ":2: the field `query` is missing. "),
    "a number for an id": ('{"id": 5, "query": "ASK {}"}', ":2: the field `id` is not a string. "),
    "white space for an id": ('{"id": " ", "query": "A"}', ":2: the field `id` is not a string. "),
    "a number for a query": ('{"id": "b", "query": 5}', ":2: the field `query` is not a string. "),
    "a number for a comment": (
        '{"id": "b", "query": "ASK {?s ?p ?o}", "comment": 5}',
        ":2: the field `comment` is not a string. ",
    ),
    "a bad query": ('{"id": "b", "query": "SELECT *\\n {"}', ":2 (b at 2:3): not SPARQL: "),
    "a duplicate": (
        '{"id": "a", "query": "ASK { ?s ?p ?o }"}',
        ":2 (a): a subscription with the id 'a' already exists, at *:1. Choose another id; the",
    ),
    "Latin-1": (b'{"id": "caf\xe9"}', ":2:12: not UTF-8. Save the file as UTF-8."),
    "deep JSON": (
        "[" * 100_000,
        ":2: the JSON is nested too deeply or has a number with too many digits. ",
    ),
    "long number": (
        "9" * 100_000,
        ":2: the JSON is nested too deeply or has a number with too many digits. ",
    ),
    "deep query": (f'{{"id": "b", "query": "{DEEP_QUERY}"}}', f":2 (b at 1:266): {FLATTER}"),
}


@pytest.mark.parametrize("case", LINES)
def test_line_of_json(case: str, tmp_path: Path, good: Path) -> None:
    line, pattern = LINES[case]
    row = '{"id": "%s", "query": "%s"}\n'
    data = line if isinstance(line, bytes) else line.encode()
    before, after = ((row % (id, QUERY)).encode() for id in "ac")
    path = write(tmp_path / "s.jsonl", before + data + b"\n\n" + after)
    ids, problems = read(path)
    assert ids == ["a", "c"]
    assert_said(problems, [f"{path}{pattern}"])
    outcome = run("filter", good, "-s", path)
    assert_said(outcome.problems, [f"refused  {path}{pattern}"])
    assert outcome.status == 1
    assert "1 publication, 2 subscriptions: 2 matches in 1 publication, 1 refused" in outcome.err


def test_duplicate_id_of_two_files(tmp_path: Path, good: Path, wanted: Path) -> None:
    (tmp_path / "more").mkdir()
    again = write(tmp_path / "more" / "wanted.rq", "ASK { ?s ?p ?o }")
    outcome = run("filter", good, "-s", wanted, "-s", again)
    assert outcome.problems == [
        f"refused  {again}: a subscription with the id 'wanted' already exists, at {wanted}. "
        "Choose another id; the first one holds."
    ]
    assert outcome.status == 1
    assert "Good news" in outcome.out


def test_a_refused_subscription_leaves_its_id_free(tmp_path: Path, wanted: Path) -> None:
    (tmp_path / "a").mkdir()
    bad = write(tmp_path / "a" / "wanted.rq", "SELECT")
    ids, problems = read(bad, wanted)
    assert ids == ["wanted"]
    assert len(problems) == 1


def test_files_of_subscriptions_that_are_not_there(tmp_path: Path, good: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    write(empty / "notes.md", "")
    missing = tmp_path / "missing.rq"
    outcome = run("filter", good, "-s", missing, "-s", empty)
    assert outcome.problems == [
        f"refused  {missing}: cannot be read: No such file or directory. "
        "Check the name and permissions.",
        f"refused  {empty}: the folder has no .rq or .jsonl files. Give a folder that has some.",
        "error    --subscriptions: there is no subscription to match. Use --subscriptions "
        "FILE, --topic or --word.",
    ]
    assert outcome.status == 2


# --- Ontologies ----------------------------------------------------------------------------------

ONTOLOGIES: dict[str, tuple[str, str | bytes, str]] = {
    "bomb": ("o.owl", rdf("&l9;", doctype=BOMB % "a"), f":1:362: {BOMBED}"),
    "deep": ("o.rdf", DEEP_XML, ":1:*: the elements are nested more than 256 deep."),
    "HTML": ("o.owl", HTML, ": an HTML page, not RDF or a feed."),
    "OWL/XML": (
        "o.owl",
        "<Ontology xmlns='http://www.w3.org/2002/07/owl#'><SubClassOf/></Ontology>",
        ":1:*: not valid OWL/XML: IndexError: pop from empty list. Correct the axiom that ends",
    ),
    "a feed": ("o.xml", rss(), ": XML, but neither RDF/XML nor a feed: its root is <rss>. "),
    "empty": ("o.ttl", "", ": the file is empty. Give RDF (Turtle, "),
    "prose": (
        "o.obo",
        "format-version: 1.2\n",
        ": neither the name nor the content shows an RDF syntax or a feed format. Give RDF (",
    ),
    "UTF-16": ("o.ttl", GOOD.encode("utf-16"), f": {AS_UTF8}"),
    "Latin-1": ("o.ttl", "<urn:\xe9>".encode("latin-1"), ":1:*: not UTF-8. Save the document"),
    "syntax error": ("o.ttl", "<urn:a> <urn:b>\n.", ":2:1: not valid Turtle: "),
    "bad line": ("o.nt", GOOD + "garbage", ":2:1: not valid N-Triples: "),
    "remote context": ("o.jsonld", '{"@context": "http://e/"}', ":1:2: a remote JSON-LD context."),
    "Latin-1 synonyms": (
        "s.csv",
        "term,root\ncaf\xe9,x".encode("latin-1"),
        ":2:4: not UTF-8. Save the file as UTF-8.",
    ),
    "synonyms without header": (
        "s.csv",
        "US,United States\n",
        ":1: the first line does not name the columns `term` and `root`. Write `term,root`, or",
    ),
    "no synonyms": ("s.csv", "", ":1: the first line does not name the columns `term` and `root`."),
    "a field without end": (
        "s.csv",
        f'term,root\n"{"x" * 200_000}',
        ":2: not CSV: field larger than",
    ),
}


@pytest.mark.parametrize("case", ONTOLOGIES)
def test_ontology(case: str, tmp_path: Path, good: Path, wanted: Path) -> None:
    """Nothing runs, because an incomplete ontology would give wrong answers silently."""
    name, content, pattern = ONTOLOGIES[case]
    path = write(tmp_path / name, content)
    with pytest.raises(OntologyError) as caught:
        Ontology.load(path)
    assert_said([str(caught.value)], [f"{path}{pattern}"])
    commands: list[list[object]] = [
        ["filter", good, "-s", wanted, "-o", path],
        ["check", wanted, "-o", path],
        ["ontology", path],
        ["explain", "wanted", good, "-s", wanted, "-o", path],
    ]
    for command in commands:
        outcome = run(*command)
        assert_said(outcome.problems, [f"error    {path}{pattern}"])
        assert (outcome.status, outcome.out) == (2, "")


def test_ontology_that_is_not_there(tmp_path: Path, good: Path, wanted: Path) -> None:
    outcome = run("filter", good, "-s", wanted, "-o", tmp_path / "missing.ttl")
    assert outcome.problems == [
        f"error    {tmp_path}/missing.ttl: cannot be read: No such file or directory. "
        "Check the name and permissions."
    ]
    assert outcome.status == 2
    outcome = run("filter", good, "-s", wanted, "-o", tmp_path)
    assert outcome.problems == [
        f"error    {tmp_path}: a folder, not a file. Name the files that make up the ontology."
    ]
    assert outcome.status == 2


def test_ontology_with_a_cycle(tmp_path: Path, good: Path, wanted: Path) -> None:
    below = "<http://www.w3.org/2000/01/rdf-schema#subClassOf>"
    path = write(tmp_path / "o.ttl", f"<urn:A> {below} <urn:B> . <urn:B> {below} <urn:A> .")
    outcome = run("filter", good, "-s", wanted, "-o", path)
    (problem,) = outcome.problems
    assert problem.startswith("warning  ontology: a cycle of classes: <urn:A>, <urn:B>")
    assert outcome.status == 0
    assert "Good news" in outcome.out


@pytest.mark.parametrize(
    ("rows", "pattern"),
    [
        ("US,United States\nUS,America\n", ":3: US has two roots: United States (*s.csv:2) and Am"),
        ("US,\na,b\n", ":2: a row needs both a term and a root. "),
        (",US\na,b\n", ":2: a row needs both a term and a root. "),
        ("US\na,b\n", ":2: a row needs both a term and a root. "),
        ("http://e/a,text\n", ":2: the IRI http://e/a cannot have the text 'text' as its root. "),
    ],
)
def test_row_of_synonyms(rows: str, pattern: str, tmp_path: Path, good: Path, wanted: Path) -> None:
    path = write(tmp_path / "s.csv", f"term,root\n{rows}")
    outcome = run("filter", good, "-s", wanted, "-o", path)
    assert_said(outcome.problems, [f"refused  {path}{pattern}"])
    assert outcome.status == 1
    assert "Good news" in outcome.out


# --- The command line ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--format", "klingon"], "error    format: 'klingon' is unknown. Use one of: nt,"),
        (["--base", "dir"], "error    base: the base 'dir' is not an absolute IRI. Give one such"),
        (["--split-by", "slice"], "'slice' is not one of"),
        (["--entailment", "owl"], "'owl' is not one of"),
        (["--nonsense"], "No such option: --nonsense"),
    ],
)
@pytest.mark.parametrize("command", ["filter", "explain"])
def test_option(command: str, options: list[str], message: str, good: Path, wanted: Path) -> None:
    arguments = ["wanted"] if command == "explain" else []
    outcome = run(command, *arguments, good, "-s", wanted, *options)
    assert message in " ".join(outcome.err.split("│")).replace("\n", " ") or message in outcome.err
    assert (outcome.status, outcome.out) == (2, "")


def test_explanation_of_nothing(good: Path, wanted: Path, tmp_path: Path) -> None:
    outcome = run("explain", "wnated", good, "-s", wanted)
    assert outcome.problems == ["error    wnated: no subscription has this id. Is wanted meant?"]
    assert outcome.status == 2
    outcome = run("explain", "zzz", good, "-s", wanted)
    assert outcome.problems == ["error    zzz: no subscription has this id. Known ids: wanted."]
    assert outcome.status == 2
    outcome = run("explain", "wanted", good, "-s", wanted, "-p", "http://e/none")
    assert outcome.problems == [
        f"error    {good}: no publication has the id or link http://e/none. "
        "Leave --publication out to see them all."
    ]
    assert outcome.status == 2
    outcome = run("explain", "wanted", tmp_path / "missing", "-s", wanted)
    assert outcome.problems[-1] == (
        f"error    {tmp_path}/missing: no publication was read. Give a file with one."
    )
    assert outcome.status == 2


def test_explanation_goes_on_after_a_bad_publication(
    tmp_path: Path, good: Path, wanted: Path
) -> None:
    bad = write(tmp_path / "bad.ttl", "garbage")
    outcome = run("explain", "wanted", bad, good, "-s", wanted)
    assert (outcome.status, len(outcome.problems)) == (1, 1)
    assert "Good news" in outcome.out


# --- Control characters and markup ---------------------------------------------------------------


def test_control_characters_are_shown_not_sent(tmp_path: Path, wanted: Path) -> None:
    title = "\\u001B[31mred\\u0007 \\u009B31m \\u202Egnp.exe"
    path = write(tmp_path / "a.ttl", f'<urn:s> <{TITLE}> "{title}" .')
    for arguments in ([], ["--json"]):
        outcome = run("filter", path, "-s", wanted, *arguments)
        assert outcome.status == 0
        assert not set(outcome.out) & set("\x1b\x07\x9b\u202e")
        assert "red" in outcome.out
    outcome = run("explain", "wanted", path, "-s", wanted)
    assert not set(outcome.out) & set("\x1b\x07\x9b\u202e")


def test_control_characters_in_problems(tmp_path: Path, good: Path, wanted: Path) -> None:
    bad = write(tmp_path / "\x1b[31m.ttl", "\x1b[31m\x07")
    outcome = run("filter", bad, good, "-s", wanted)
    assert outcome.status == 1
    assert r"\x1b[31m.ttl:1:1: not valid Turtle" in outcome.err
    assert not set(outcome.err) & set("\x1b\x07")


MARKUP = "[bold]b[/] [red] [/nonsense] [link=http://e/]x[/link] :smile: [1] \\\\[a] \\\\"


def test_markup_is_text(tmp_path: Path, wanted: Path) -> None:
    """Emoji codes stay unchanged, too, because replacing them would change IRIs."""
    text = f"<urn:x:cat:y> <{TITLE}> '''{MARKUP}''' ."
    path = write(tmp_path / "[red]:cat:.ttl", text)
    shown = MARKUP.replace("\\\\", "\\")
    outcome = run("filter", path, "-s", wanted)
    assert f"{shown}\n  {path}\n" in outcome.out
    assert f'<urn:x:cat:y>  ?title = "{MARKUP}"' in outcome.out
    outcome = run("explain", "wanted", path, "-s", wanted)
    assert "<urn:x:cat:y>" in outcome.out
    bad = write(tmp_path / "[bold]:cat:[b].ttl", "[red]")
    outcome = run("filter", bad, path, "-s", wanted)
    assert f"refused  {bad}:1:" in outcome.err


def test_markup_in_subscriptions_and_ontologies(tmp_path: Path) -> None:
    subscription = write(
        tmp_path / "[red]:cat:.rq", f"# [bold]comment[/] :cat:\nASK {{ ?s <{TITLE}> '[red]:cat:' }}"
    )
    outcome = run("check", subscription)
    assert "✓ [red]:cat:  [bold]comment[/] :cat:\n" in outcome.out
    assert '"[red]:cat:"' in outcome.out
    ontology = write(
        tmp_path / "o.ttl",
        "<urn:a:cat:b> a <http://www.w3.org/2002/07/owl#Class> ; "
        "<http://www.w3.org/2000/01/rdf-schema#label> '[bold]label[/] :cat:' .",
    )
    outcome = run("ontology", ontology)
    assert "<urn:a:cat:b>  [bold]label[/] :cat:\n" in outcome.out


def test_the_library_raises_what_the_command_reports() -> None:
    from semantic.errors import SubscriptionError

    with pytest.raises(SubscriptionError, match="alice:1:1: not SPARQL: a query cannot"):
        Engine().subscribe("alice", "nonsense")
