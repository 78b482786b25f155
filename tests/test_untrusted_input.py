"""Hostile input of every kind is handled, or refused with the limit's name, at low cost.

Each input has its own process, which tries the library and all commands that read such a file,
and measures each: ``python tests/test_untrusted_input.py "subclass chain" folder``. The first part
of a file name in the table selects the readers; `WAYS` lists the commands. Costs are CPU time,
which a busy machine does not change, and memory of the whole process, imports included.
"""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from typer.main import get_command

from graphmatch import Engine
from graphmatch.cli import app
from graphmatch.subscription_files import subscribe_files
from semantic import Ontology, read_events
from semantic.errors import GraphMatchError, Problem

SECONDS, MEGABYTES = (
    3.0,
    500,
)  # alone half of that; another test may have the processor's other half
SLOWER = {"subclass chain": 8.0, "chain of synonyms": 4.0, "mapping function: product": 4.0}
"""Slower cases, because of their number of classes, synonyms or solutions."""
MANY, LARGE, DEEP = 10**6, 10**8, 10**5
TITLE = "http://purl.org/rss/1.0/title"
RDFS, OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
SKOS, CDT = "http://www.w3.org/2004/02/skos/core#", "https://w3id.org/cdt/ucum"
GOOD = f'<urn:x> <{TITLE}> "Good news" ; <urn:n> 1 ; a <urn:C0> ; <urn:size> "5 kg"^^<{CDT}> .'
QUERY = f"SELECT * {{ ?x <{TITLE}> ?title }}"

WAYS = {
    "publication": [["filter", "{}", "-s", "wanted.rq"]],
    "ontology": [
        ["ontology", "{}", "--no-cache"],
        ["filter", "good.ttl", "-s", "wanted.rq", "-o", "{}", "--no-cache"],
        ["check", "wanted.rq", "-o", "{}", "--no-cache"],
    ],
    "subscription": [["check", "{}"], ["filter", "good.ttl", "-s", "{}"]],
    "events": [["filter", "--events", "{}", "-s", "wanted.rq"]],
    "config": [["filter", "--config", "{}"]],
}
ESCAPES = "\x1b[31mred\x07 \x9b31m \u202egnp.exe"
SENT = set(ESCAPES) - set(" [0123456789abcdefghijklmnopqrstuvwxyz.")
"""Characters that must not reach a terminal."""
Case = tuple[str, Callable[[], str | bytes], str]
"""Readers and file extension, content, and expected message."""


def rdf(inside: str, doctype: str = "") -> str:
    names = 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="urn:e:"'
    return f"{doctype}<rdf:RDF {names}>{inside}</rdf:RDF>"


def rss(inside: str, doctype: str = "") -> str:
    return f"{doctype}<rss version='2.0'><channel><item>{inside}</item></channel></rss>"


def owl(inside: str, doctype: str = "") -> str:
    return f'{doctype}<Ontology xmlns="{OWL}">{inside}</Ontology>'


def json_feed(item: str) -> str:
    return f'{{"version": "https://jsonfeed.org/version/1.1", "items": [{item}]}}'


XML = {
    "RSS": ("publication.rss", rss, "<title>{}</title>"),
    "RDF/XML": ("publication ontology.rdf", rdf, '<e:A rdf:about="urn:a"><e:p>{}</e:p></e:A>'),
    "OWL/XML": ("ontology.owl", owl, "<Annotation>{}</Annotation>"),
}
LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BOMBS = {
    "laughs": (f'<!ENTITY l0 "lol">{LAUGHS}', "&l9;", "xml_expansion"),
    "quadratic bomb": (f'<!ENTITY e "{"x" * 1000}">', "&e;" * MANY, "xml_expansion"),
    "bomb of defaults": (
        f'<!ENTITY e "{"x" * 1000}"><!ATTLIST e:b c CDATA "&e;">',
        '<e:b xmlns:e="urn:e:"/>' * DEEP,
        "xml_expansion",
    ),
    "chain of entities": (
        '<!ENTITY e0 "x">' + "".join(f'<!ENTITY e{n} "&e{n - 1};">' for n in range(1, 1000)),
        "&e999;",
        "xml_",
    ),
    "bomb of parameters": (
        "<!ENTITY % a \"<!ENTITY l0 'lol'>\">%a;" + LAUGHS.replace("&l", "&#38;l"),
        "&l9;",
        "",
    ),
}


def bombs() -> Iterator[tuple[str, Case]]:
    for bomb, (declared, used, says) in BOMBS.items():
        for syntax, (name, document, inside) in XML.items():
            text = document(inside.format(used), f"<!DOCTYPE a [{declared}]>")
            always = syntax == "RSS" or bomb in ("laughs", "quadratic bomb")
            yield f"{bomb} in {syntax}", (name, lambda text=text: text, says if always else "")


def of_xml() -> Iterator[tuple[str, Case]]:
    for syntax, (name, document, inside) in XML.items():
        for what, make, says in (
            ("attributes", lambda: "".join(f' a{n}="x"' for n in range(MANY)), "attributes"),
            ("nesting", lambda: "<a>" * DEEP + "</a>" * DEEP, "xml_depth"),
            ("long text", lambda: "x" * LARGE, "text_characters"),
            ("not UTF-8", lambda: "\udcff\udcfe" * DEEP, ""),
            ("not UTF-16", lambda: "", ""),
            ("NULs", lambda: "\0" * LARGE, ""),
        ):

            def made(
                what: str = what,
                make: Callable[[], str] = make,
                document: Callable[[str], str] = document,
                inside: str = inside,
            ) -> bytes:
                if what == "not UTF-16":
                    return document(inside.format("x")).encode("utf-16") + b"\x00\xd8" * MANY + b"<"
                if what == "attributes":
                    return document(f"<a{make()}/>").encode()
                return document(inside.format(make())).encode("utf-8", "surrogateescape")

            yield f"{what} of {syntax}", (name, made, says)


LITERAL = '<urn:x> <urn:p> "%s" .'
CHAIN = "".join(f"<urn:C{n}> <{RDFS}subClassOf> <urn:C{n + 1}> .\n" for n in range(DEEP))
CYCLES = (
    *(RDFS + name for name in ("subClassOf", "subPropertyOf", "domain", "range", "seeAlso")),
    *(OWL + name for name in ("equivalentClass", "equivalentProperty", "sameAs", "inverseOf")),
    *(OWL + name for name in ("imports", "unionOf", "intersectionOf", "complementOf")),
    *(SKOS + name for name in ("broader", "narrower", "broaderTransitive", "exactMatch")),
    *(SKOS + name for name in ("broadMatch", "narrowMatch", "closeMatch", "related", "member")),
    *("http://www.w3.org/1999/02/22-rdf-syntax-ns#" + name for name in ("first", "rest", "type")),
)


def cycles(most: int) -> str:
    """Return an ontology with a cycle of one, two and `most` steps for each link."""
    lines = []
    for number, link in enumerate(CYCLES):
        for size in (1, 2, most):
            names = [f"<urn:c{number}.{size}.{n}>" for n in range(size)]
            pairs = zip(names, [*names[1:], names[0]], strict=True)
            lines += [f"{one} <{link}> {other} ." for one, other in pairs]
    return "\n".join(lines)


EXPLODING = {
    "counting": "CONSTRUCT { ?x <urn:n> ?m } { ?x <urn:n> ?n BIND(?n + 1 AS ?m) }",
    "doubling": f"CONSTRUCT {{ ?x <{TITLE}> ?m }} {{ ?x <{TITLE}> ?n BIND(CONCAT(?n, ?n) AS ?m) }}",
    "replacing": f"CONSTRUCT {{ ?x <{TITLE}> ?m }} {{ ?x <{TITLE}> ?n "
    "BIND(REPLACE(?n, '.', '$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0$0') AS ?m) }",
    "product": "CONSTRUCT { [] <urn:q> ?a } { ?x <urn:n> ?n . "
    + "".join(f"VALUES ?{name} {{ {'1 2 3 4 5 6 7 8 9 0 ' * 10} }}" for name in "abcdef")
    + "}",
    "parts": "CONSTRUCT { ?x <urn:part> [ a <urn:C0> ] } { ?x a <urn:C0> }",
}
ROUND = "10**10**10 m"
PATTERNS = ("(a+)+$", "(a|a)*b", "(.*)*(.*)*x", "(x{1000}){1000}", "(((a{99}){99}){99}){99}")
PATTERNS += ("(" * 1000 + "a" + ")" * 1000, "a?" * 5000 + "a" * 5000, "\\\\p{L}{1000}{1000}")


def optional_parts() -> str:
    parts = (f"OPTIONAL {{ ?x <urn:p{number}> ?o{number} }}" for number in range(500))
    return f"ASK {{ ?x a ?c MINUS {{ ?x a ?d {' '.join(parts)} }} }}"


def joined_groups() -> str:
    parts = (f"{{ ?x <urn:p> ?y BIND(?y AS ?o{number}) }}" for number in range(160))
    return f"SELECT * {{ ?x a ?c {' '.join(parts)} }}"


def catastrophes() -> str:
    queries = (f"ASK {{ ?x <{TITLE}> ?t FILTER(REGEX(?t, '{one}')) }}" for one in PATTERNS)
    rows = [{"id": f"r{n}", "query": query} for n, query in enumerate(queries)]
    rows += [{"id": "words", "words": ["(a+)+$", "a" * DEEP], "not-words": [".*" * DEEP]}]
    return "\n".join(map(json.dumps, rows))


HOSTILE: dict[str, Case] = {
    **dict(bombs()),
    **dict(of_xml()),
    # Very many items
    "triples of one subject": (
        "publication.ttl",
        lambda: "<urn:x> " + " ; ".join(f"<urn:p{n}> 1" for n in range(MANY // 5)) + " .",
        "",
    ),
    "attributes of an event": (
        "events.jsonl",
        lambda: json.dumps({f"a{n}": n for n in range(MANY)}),
        "text_characters",
    ),
    "attributes of a subscription": (
        "subscription.jsonl",
        lambda: json.dumps({"id": "a", "where": {f"a{n}": n for n in range(MANY)}}),
        "text_characters",
    ),
    "many attributes of a subscription": (
        "subscription.jsonl",
        lambda: json.dumps({"id": "a", "where": {f"a{n}": n for n in range(MANY // 20)}}),
        "subscription_patterns",
    ),
    "many attributes of an event": (
        "events.jsonl",
        lambda: json.dumps({f"a{n}": n for n in range(DEEP)}),
        "",
    ),
    "fields of JSON-LD": (
        "publication.jsonld",
        lambda: json.dumps({"@id": "urn:a", **{f"urn:p{n}": n for n in range(MANY // 5)}}),
        "",
    ),
    "keys of TOML": ("config.toml", lambda: "\n".join(f"a{n} = 1" for n in range(DEEP)), " no "),
    # Very deep nesting
    "deep JSON-LD": ("publication ontology.jsonld", lambda: "[" * DEEP + "]" * DEEP, "`nesting`"),
    "deep JSON Feed": (
        "publication.json",
        lambda: json_feed('{"a":' * DEEP + "1" + "}" * DEEP),
        "deep",
    ),
    "deep JSON of events": ("events.jsonl", lambda: '{"a": ' * DEEP + "1" + "}" * DEEP, "deep"),
    "deep event": ("events.jsonl", lambda: '{"a": ' * 400 + "1" + "}" * 400, "attribute_steps"),
    "deep JSON of subscriptions": (
        "subscription.jsonl",
        lambda: '{"id": "a", "where": ' + "[" * DEEP + "]" * DEEP + "}",
        "deep",
    ),
    "deep TOML": ("config subscription.toml", lambda: "word = " + "[" * DEEP + "]" * DEEP, "TOML"),
    "long key of TOML": ("config subscription.toml", lambda: "a." * DEEP + "b = 1", "parts"),
    "deep collections": (
        "publication ontology.ttl",
        lambda: "<urn:x> <urn:p> " + "(" * DEEP + ")" * DEEP + " .",
        "",
    ),
    "deep blank nodes": (
        "publication ontology.ttl",
        lambda: "<urn:x> <urn:p> " + "[ <urn:p> " * DEEP + "1" + " ]" * DEEP + " .",
        "",
    ),
    "deeper collections": ("publication ontology.ttl", lambda: "[] a " + "(" * LARGE, "`nesting`"),
    "deep quotations": ("publication ontology.trig", lambda: "<" * LARGE, "`nesting`"),
    "deep triple terms": (
        "publication ontology.ttl",
        lambda: "<urn:a> <urn:b> " + "<<( <urn:a> <urn:b> " * DEEP + "5" + " )>>" * DEEP + " .",
        "`nesting`",
    ),
    "deep groups": (
        "subscription.rq",
        lambda: "SELECT * " + "{" * DEEP + " ?s ?p ?o " + "}" * DEEP,
        "`nesting`",
    ),
    "deep calls": (
        "subscription.rq",
        lambda: "ASK { ?s ?p ?o FILTER(" + "STR(" * DEEP + "?o" + ")" * DEEP + " = 'a') }",
        "`nesting`",
    ),
    "deep paths": (
        "subscription.rq",
        lambda: "ASK { ?s " + "(" * DEEP + "<urn:p>" + ")+" * DEEP + " ?o }",
        "`nesting`",
    ),
    "many negations": (
        "subscription.rq",
        lambda: "ASK { ?s ?p ?o FILTER(" + "!" * DEEP + "?o) }",
        "subscription_operators",
    ),
    "many unions": (
        "subscription.rq",
        lambda: "ASK { { ?s ?p ?o } " + "UNION { ?s ?p ?o } " * DEEP + "}",
        "subscription_operators",
    ),
    # Very long strings
    "long literal": ("publication ontology.ttl", lambda: LITERAL % ("x" * LARGE), "16 MB"),
    "long literal in lines": ("publication.nq", lambda: LITERAL % ("x" * LARGE), "text_characters"),
    "long literal in JSON-LD": (
        "publication.jsonld",
        lambda: '{"@id": "urn:x", "urn:p": "' + "x" * LARGE + '"}',
        "text_characters",
    ),
    "long title of JSON": (
        "publication.json",
        lambda: json_feed('{"id": "urn:1", "title": "' + "x" * LARGE + '"}'),
        "text_characters",
    ),
    "escapes": ("publication ontology.ttl", lambda: LITERAL % ("\\\\" * (LARGE // 2)), "16 MB"),
    "long label": (
        "ontology.nt",
        lambda: f'<urn:x> <{RDFS}label> "{"x" * LARGE}" .',
        "text_characters",
    ),
    "label of words": (
        "ontology.nt",
        lambda: f'<urn:x> <{RDFS}label> "{"x y " * (LARGE // 4)}" .',
        "text_characters",
    ),
    "long synonym": ("ontology.csv", lambda: "term,root\n" + "x" * LARGE + ",y", "CSV"),
    "long synonym of JSON": (
        "ontology.json",
        lambda: '{"y": ["' + "x" * LARGE + '"]}',
        "text_characters",
    ),
    "long text of an event": (
        "events.jsonl",
        lambda: '{"a": "' + "x" * LARGE + '"}',
        "text_characters",
    ),
    "long constant": (
        "subscription.rq",
        lambda: f"ASK {{ ?s ?p '{'x' * LARGE}' }}",
        "text_characters",
    ),
    "long constant of an attribute": (
        "subscription.jsonl",
        lambda: '{"id": "a", "where": {"b": "' + "x" * LARGE + '"}}',
        "text_characters",
    ),
    "long text of TOML": ("config.toml", lambda: 'word = "' + "x" * LARGE + '"', "text_characters"),
    # Feeds
    **{
        f"feed of {what}": ("publication.rss", make, "")
        for what, make in {
            "damage with a bomb": lambda: rss("&l9;", f"<!DO\0C a [{BOMBS['laughs'][0]}]>"),
            "NULs": lambda: rss("<title>a</title>").replace("i", "i\0"),
            "bytes": lambda: rss("<title>%s</title>").encode() % (b"\xff\xfe\x80" * MANY),
            "Base64": lambda: rss(f'<title mode="base64">{"YQ=" * MANY}</title>'),
            "ampersands": lambda: rss(f"<title>{'& &amp;amp; &eacute; ' * DEEP}</title>"),
            "openings": lambda: "<rss>" + "<item" * 10**4,
            "one name": lambda: rss(
                "</item><item>".join(
                    f"<guid>a</guid><title>{n}</title><pubDate>13 Dec 2003</pubDate>"
                    for n in range(1000)
                )
            ),
            "text encoded twice": lambda: rss(f"<title>{'Ã©' * MANY}</title>"),
            "prefixes": lambda: rss("".join(f"<p{n}:a/>" for n in range(DEEP))),
        }.items()
    },
    # Not text
    **{
        f"{what} in {name}": (name, content, says)
        for name, says in (
            ("publication ontology.ttl", ""),
            ("publication ontology.nq", ""),
            ("publication ontology.jsonld", ""),
            ("publication.json", ""),
            ("subscription.rq", ""),
            ("subscription.jsonl", ""),
            ("subscription config.toml", ""),
            ("ontology.csv", ""),
            ("ontology.json", ""),
            ("ontology.rq", ""),
            ("events.jsonl", ""),
        )
        for what, content in (
            ("bytes", lambda: b"\xff\xfe\xfd" * MANY),
            ("half of UTF-16", lambda: b"\xff\xfe" + b"\x00\xd8" * MANY),
            ("NULs", lambda: b"\0" * LARGE),
        )
    },
    # Terminal control characters
    "escapes in a title": ("publication.ttl", lambda: f'<urn:x> <{TITLE}> "{ESCAPES}" .', ""),
    "escapes in a feed": (
        "publication.json",
        lambda: json_feed(json.dumps({"title": ESCAPES})),
        "",
    ),
    "escapes in an ontology": (
        "ontology.ttl",
        lambda: f'<urn:A> a <{OWL}Class> ; <{RDFS}label> "{ESCAPES}" .',
        "",
    ),
    "escapes in a subscription": (
        "subscription.jsonl",
        lambda: json.dumps({"id": ESCAPES, "where": {"a": ESCAPES}, "comment": ESCAPES}),
        "",
    ),
    # Very many derived triples
    "subclass chain": ("publication ontology.ttl", lambda: CHAIN, ""),
    "chain of synonyms": (
        "ontology.csv",
        lambda: "term,root\n" + "".join(f"a{n},a{n + 1}\n" for n in range(DEEP)),
        "",
    ),
    "cycles": ("ontology.ttl", lambda: cycles(1000), ""),
    "cycles of a publication": ("publication.ttl", lambda: cycles(500), ""),
    "cycle of synonyms": ("ontology.csv", lambda: "term,root\na,b\nb,c\nc,a\n", ""),
    "unit in a publication": (
        "publication.ttl",
        lambda: f'<urn:x> <{TITLE}> "5 {ROUND}"^^<{CDT}>, "1e999999999 m"^^<{CDT}> .',
        "",
    ),
    "unit in an ontology": (
        "ontology.ttl",
        lambda: f'<urn:size> <{RDFS}range> <{CDT}> . <urn:x> <urn:size> "5 {ROUND}"^^<{CDT}> .',
        "",
    ),
    "unit in a query": (
        "subscription.rq",
        lambda: f"ASK {{ ?x <urn:size> ?s FILTER(?s > '5 {ROUND}'^^<{CDT}>) }}",
        "unit",
    ),
    "unit in a subscription": (
        "subscription.jsonl",
        lambda: json.dumps({"id": "a", "where": {"s": {"<": {"value": 1, "unit": ROUND}}}}),
        "is not a unit",
    ),
    "unit in an event": (
        "events.jsonl",
        lambda: json.dumps({"s": {"value": 1, "unit": ROUND}}),
        "is not a unit",
    ),
    "optional parts": ("subscription.rq", optional_parts, ""),
    "joined groups": ("subscription.rq", joined_groups, ""),
    "expressions": ("subscription.jsonl", catastrophes, ""),
    **{
        f"mapping function: {name}": ("ontology.rq", lambda text=text: text, "left out")
        for name, text in EXPLODING.items()
    },
}


def tell(kind: str, path: Path) -> str:
    """Read with the library; return its problems."""
    told: list[Problem] = []
    engine = Engine(on_problem=told.append)
    try:
        match kind:
            case "publication":
                list(engine.filter(path))
            case "ontology":
                ontology = Ontology.load(path, cache=False, on_problem=told.append)
                engine = Engine(ontology, on_problem=told.append)
                engine.subscribe("s", "SELECT * { ?x a <urn:C100000> ; ?p ?o }")
                list(engine.filter(GOOD.encode(), "ttl"))
            case "events":
                list(map(engine.match, read_events(str(path), on_problem=told.append)))
            case _:
                subscribe_files(engine, [path], told.append)
                list(engine.filter(GOOD.encode(), "ttl"))
    except GraphMatchError as error:
        told.append(error.problem)
    return "\n".join(map(str, told))


def main(case: str, folder: Path) -> None:
    """Read an input in every way; print a line of JSON for each."""
    name, make, _ = HOSTILE[case]
    kinds, _, ending = name.partition(".")
    (folder / "good.ttl").write_text(GOOD)
    (folder / "wanted.rq").write_text(QUERY)
    path = folder / f"bad.{ending}"
    content = make()
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    del content
    Path("/proc/self/clear_refs").write_text("5")  # Reset the peak memory.
    command = get_command(app)
    for kind in kinds.split():
        for way in [*WAYS[kind], []]:
            shown = io.TextIOWrapper(io.BytesIO(), "utf-8")
            begun = sum(os.times()[:2])
            if way:
                arguments = [str(folder / one) if "." in one else one for one in way]
                arguments = [str(path) if one == "{}" else one for one in arguments]
                code = None
                try:  # pytest.raises would keep the frames and their data.
                    with redirect_stdout(shown), redirect_stderr(shown):
                        command.main(arguments, "graphmatch")
                except SystemExit as error:
                    code = error.code
                shown.seek(0)
                told = f"{code} {shown.read()}"
            else:
                told = tell(kind, path)
            seconds = sum(os.times()[:2]) - begun
            status = Path("/proc/self/status").read_text()
            found = re.search(r"VmHWM:\s*(\d+)", status)
            assert found is not None
            said = told if len(told) < 2000 else told[:1000] + told[-1000:]
            row = [f"{kind}: {' '.join(way[:1]) or 'library'}", seconds, int(found[1]) >> 10, said]
            sys.stdout.write(f"{json.dumps(row)}\n")


LONG = re.compile("^NULs|^not UTF|^bytes|^half of|in OWL/XML|^(nesting|attributes) of RDF/XML")
CASES = [pytest.param(c, marks=[pytest.mark.long] * bool(LONG.search(c))) for c in HOSTILE]


def costs_of(case: str, folder: Path) -> list[tuple[str, float, int, str]]:
    program = [sys.executable, __file__, case, str(folder)]
    run = subprocess.run(program, capture_output=True, text=True, check=False, timeout=600)
    assert run.returncode == 0, run.stderr
    return [tuple(json.loads(line)) for line in run.stdout.splitlines()]


@pytest.mark.parametrize("case", CASES)
def test_hostile_input_is_refused_and_needs_little_memory(case: str, tmp_path: Path) -> None:
    for way, _, megabytes, told in costs_of(case, tmp_path):
        assert megabytes < MEGABYTES, (way, told)
        is_run = not case.startswith("mapping") or way.endswith(("filter", "library"))
        assert HOSTILE[case][2] in told or not is_run, (way, told)
        assert way.endswith("library") or not set(told) & SENT


@pytest.mark.long  # Seconds depend on the machine, but not every cost has a counter.
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_input_takes_little_time(case: str, tmp_path: Path) -> None:
    for way, seconds, _, told in costs_of(case, tmp_path):
        assert seconds < SLOWER.get(case, SECONDS), (way, told)


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
