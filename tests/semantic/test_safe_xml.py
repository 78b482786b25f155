"""The guard refuses input that would exhaust the machine, and accepts all other input."""

from __future__ import annotations

import pytest

from semantic.errors import InputError
from semantic.limits import Limits
from semantic.safe_xml import check_xml, decode_xml

LAUGHS = "".join(f'<!ENTITY l{n} "{f"&l{n - 1};" * 10}">' for n in range(1, 10))
BILLION_LAUGHS = f'<!DOCTYPE a [<!ENTITY l0 "lol">{LAUGHS}]><a>&l9;</a>'


def refusal(document: str | bytes, limits: Limits | None = None) -> str:
    data = document.encode() if isinstance(document, str) else document
    with pytest.raises(InputError) as caught:
        check_xml(data, "x.xml", limits or Limits())
    return str(caught.value)


@pytest.mark.parametrize(
    "document",
    [
        "<a/>",
        '<!DOCTYPE a [<!ENTITY owl "http://www.w3.org/2002/07/owl#">]><a b="&owl;Thing">&owl;</a>',
        '<!DOCTYPE rss PUBLIC "-//Netscape//DTD RSS 0.91//EN" "http://e/rss.dtd"><rss/>',
        "<a><b>cut",
        "",
        "no XML at all",
        "<a>&undeclared;</a>",
        "<a><![CDATA[<!ENTITY e SYSTEM 'x'>]]></a>",
        '<!DOCTYPE a [<!ENTITY e "&e;">]><a/>',
    ],
)
def test_legitimate_and_broken_documents_pass(document: str) -> None:
    check_xml(document.encode(), "x.xml")


def test_many_uses_of_a_short_entity_pass() -> None:
    uses = '<b c="&o;Thing"/>' * 100_000
    check_xml(f'<!DOCTYPE a [<!ENTITY o "http://o.org/">]><a>{uses}</a>'.encode(), "x.owl")


def test_billion_laughs() -> None:
    assert "8,388,608 characters. If you trust the document, raise the limit xml_expansion" in (
        refusal(BILLION_LAUGHS)
    )
    assert refusal(BILLION_LAUGHS).startswith("x.xml:1:")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-be", "utf-32"])
def test_billion_laughs_in_other_encodings(encoding: str) -> None:
    assert "xml_expansion" in refusal(BILLION_LAUGHS.encode(encoding))


@pytest.mark.parametrize("encoding", ["shift_jis", "x-unheard-of", "koi8-r", "big5"])
def test_billion_laughs_in_encodings_unknown_to_expat(encoding: str) -> None:
    document = f'<?xml version="1.0" encoding="{encoding}"?>{BILLION_LAUGHS}'
    assert "xml_expansion" in refusal(document)


def test_invalid_bytes_do_not_hide_a_bomb() -> None:
    assert "xml_expansion" in refusal(BILLION_LAUGHS.encode() + b"\xff\xfe\xfd")


@pytest.mark.parametrize(
    "body",
    ["&e;" * 200, f'<b c="{"&e;" * 200}"/>', '<b c="&e;"/>' * 200],
    ids=["text", "one attribute", "attributes"],
)
def test_quadratic_blow_up(body: str) -> None:
    document = f'<!DOCTYPE a [<!ENTITY e "{"x" * 100_000}">]><a>{body}</a>'
    assert "expand to more than 8,388,608 characters" in refusal(document)


def test_default_attributes_count() -> None:
    # The DTD holds the reference once, but each element gets the value.
    dtd = f'<!ENTITY e "{"x" * 10_000}"><!ATTLIST b c CDATA "&e;">'
    document = f"<!DOCTYPE a [{dtd}]><a>{'<b/>' * 1000}</a>"
    assert "expand to more than 1,000 characters" in refusal(document, Limits(xml_expansion=1000))


def test_escaped_references_are_followed() -> None:
    document = BILLION_LAUGHS.replace("&l1;", "&#38;l1;")
    assert "xml_expansion" in refusal(document)


def test_a_long_chain_of_entities() -> None:
    links = "".join(f'<!ENTITY e{n} "&e{n + 1};">' for n in range(100_000))
    assert "references of entities to entities are nested more than 256 deep" in refusal(
        f"<!DOCTYPE a [{links}]><a>&e0;</a>"
    )


@pytest.mark.parametrize(
    ("declaration", "name"),
    [
        ('<!ENTITY e SYSTEM "file:///etc/passwd">', "e"),
        ('<!ENTITY e PUBLIC "-//X//Y" "http://example.org/e">', "e"),
        ('<!ENTITY % p SYSTEM "http://example.org/p.dtd"> %p;', "p"),
        ('<!ENTITY e SYSTEM "http://example.org/e.gif" NDATA gif>', "e"),
    ],
)
def test_external_entities(declaration: str, name: str) -> None:
    message = refusal(f"<?xml version='1.0'?>\n<!DOCTYPE a [\n {declaration}]><a/>")
    assert message.startswith(f"x.xml:3:2: the entity '{name}' is outside the document")


def test_an_external_entity_that_a_parameter_entity_declares() -> None:
    declaration = "<!ENTITY % p \"&#60;!ENTITY e SYSTEM 'file:///etc/passwd'>\"> %p;"
    document = f"<!DOCTYPE a [{declaration}]><a>&e;</a>"
    assert "the entity 'e' is outside the document" in refusal(document)


@pytest.mark.parametrize("prologue", ["", '<!DOCTYPE a [<!ENTITY e "x">]>'])
def test_depth(prologue: str) -> None:
    check_xml((prologue + "<a>" * 256 + "</a>" * 256).encode(), "x.xml")
    message = refusal(prologue + "<a>" * 257)
    assert "the elements are nested more than 256 deep" in message
    assert "raise the limit xml_depth" in message


def test_depth_by_entities() -> None:
    nested = "<!DOCTYPE a [<!ENTITY e '<b><b/></b>'>]><a>&e;</a>"
    check_xml(nested.encode(), "x.xml", Limits(xml_depth=3))
    assert "more than 2 deep" in refusal(nested, Limits(xml_depth=2))


def test_limits_can_be_raised() -> None:
    document = f'<!DOCTYPE a [<!ENTITY e "{"x" * 1000}">]><a>{"&e;" * 20}</a>'
    assert "1,000 characters" in refusal(document, Limits(xml_expansion=1000))
    check_xml(document.encode(), "x.xml", Limits(xml_expansion=20_000))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_decoding_by_byte_order_mark(encoding: str) -> None:
    assert decode_xml("<a>é</a>".encode(encoding)) == "<a>é</a>"


def test_the_declaration_is_blanked_in_place() -> None:
    assert decode_xml(b'\n<?xml version="1.0"\nencoding="latin-1"?><a>\xe9</a>') == (
        "\n" + " " * 19 + "\n" + " " * 20 + "<a>é</a>"
    )


@pytest.mark.parametrize(
    "encoding",
    ["x-unheard-of", "punycode", "rot13", "U7", "idna", "unicode_escape", "raw-unicode-escape"],
)
def test_unknown_encodings_are_refused(encoding: str) -> None:
    with pytest.raises(LookupError):
        decode_xml(f'<?xml version="1.0" encoding="{encoding}"?><a/>'.encode())
