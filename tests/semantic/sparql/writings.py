"""Queries written in many ways, right and wrong, that differ in little."""

from __future__ import annotations

from hypothesis import strategies as st

PROLOGUES = (
    "",
    "",
    "PREFIX e: <urn:e:> ",
    "PREFIX e: <urn:f:>\n",
    "\n prefix e:<urn:e:>Prefix : <urn:d#>",
    "PREFIX : <urn:d#> PREFIX e: <urn:e:> ",
    "BASE <http://b/> PREFIX e: <x#> ",
    "PREFIX e: <urn:e:> BASE <http://b/> ",
    "# a comment\nPREFIX e: <urn:e:> ",
    "PREFIX e: <relative> ",
    "PREFIX e <urn:e:> ",
    "PREFIX e:a <urn:e:> ",
)
IRIS = (
    "<urn:a>", "<urn:b>", "<http://e/a#b?c=(d),e>", "e:a", "e:b", "e:a.b", "e:", ":a", "skos:a",
    "e:a:b", "e:5", "xsd:string", "rdf:type", "dcterms:subject", "e:größe",
)  # fmt: skip
LITERALS = (
    "5", "7.5", "5e3", "'a'", '"b"', '""', "''", "'it\"s'", '"it\'s"', '"""a"b"""', "'''it''s'''",
    '"a"@en', "'a'@en-GB", '"1"^^xsd:int', '"1"^^<urn:t>', "'1'^^e:t", '"# no"', '"} FILTER("',
    '"größe"', '"(?x"', '"<urn:a>"', r'"a\"b"', r'"\u0041\n"', r"'\''", r"'a\\'",
)  # fmt: skip
ODD = (
    "-5", "+5.0", "- 5", "--5", ".5", "5.", "-.5e-3", "true", "FALSE", "a", "?v", "$v", "_:b", "[]",
    "<relative>", "<urn:a&&b>", "<5&&?y>", "<urn:x,y>", r"<urn:\u0061>", r"<\u0075rn:x,y>",
    "<urn:a b>",
    "un:known", r"e:a\,b", "e:a%20b", "e:a.", "e:a-", "e·:a", "e:a·", "__:a",
    '"a" @en', '"1" ^^ xsd:int', '"1"^^ # c\n xsd:int', '"a"@en--ltr', '"40 GB"^^cdt:ucum',
    "'40 GB'^^<https://w3id.org/cdt/ucum>", '""""""', '"""a""""', "'''a", '"a', r'"\q"', '"\ud800"',
    "NOW()", "( e:a 5 )", "e:f(?v)", "xsd:string(?v)", "<urn:f>(5)", "5 LIMIT 5", '"\x00"', "\x00",
)  # fmt: skip
SPACES = (" ", " ", " ", "", "\n", " \t", "\u00a0", " # it's <\n ", "#\r", "\x00")
TEMPLATES = (
    "SELECT * _{_?s_C_C_}",
    "SELECT ?s WHERE { ?s C C . ?s C_C_; C C_, C_._C C ?o }",
    "ASK { ?s C_?v FILTER(?v > C) }",
    "ASK { ?s ?p ?v FILTER(?v_>_C && C_<_?v) FILTER(?v_!=_C) }",
    "SELECT * { ?s C ?v FILTER(?v IN_(_C_,_C_)) } LIMIT C",
    "ASK { ?s C_/_C_+ ?v , C ; C_|_^_C C }",
    "ASK { ?s C ?v FILTER(gm:descendantOf_(?v, C) || e:f(C_, C_)) }",
    "ASK { ?s C ?v FILTER(?v_+_C > C_-_C && ?v < -C && ?v > +C) }",
    "ASK { ?s C ?v FILTER(REGEX(STR(?v), C) && CONTAINS(?v,_C)) OPTIONAL { ?s C C } }",
    "CONSTRUCT { ?s C C } WHERE { ?s C C } OFFSET 5",
    "SELECT (GROUP_CONCAT(?v; SEPARATOR=C) AS ?x) { ?s C ?v } GROUP BY ?s HAVING (COUNT(?v) > C)",
    "SELECT * { VALUES ?v { C_C } ?s C ?v BIND(IF(?v = C, C, C) AS ?w) }",
    "ASK { C_C_C . C_C_(_C_C_) }",
    "DESCRIBE C WHERE { C C C }",
    "DELETE WHERE { C C C }",
)
FRAGMENTS = (
    *"{}()[],;.*+-?!=<>|/^&@\\\"'#:", "SELECT", "ASK", "WHERE", "FILTER", "LIMIT", "?x", "a",
    "&&", "||", "^^", "!=", "<=", ">=", "<<", "e:", "5", "e", "$",
)  # fmt: skip

constants = st.one_of(
    st.sampled_from(IRIS), st.sampled_from(LITERALS), st.sampled_from((*IRIS, *LITERALS, *ODD))
)


@st.composite
def writings(draw: st.DrawFn) -> list[str]:
    """Draw texts of one template, with a few constants, prologues and kinds of white space."""
    template = draw(st.sampled_from(TEMPLATES))
    prologues = draw(st.lists(st.sampled_from(PROLOGUES), min_size=1, max_size=2))
    spaces = draw(st.lists(st.sampled_from(SPACES), min_size=1, max_size=2))
    terms = draw(st.lists(constants, min_size=2, max_size=8))
    first = draw(st.lists(st.sampled_from(terms), min_size=len(template), max_size=len(template)))
    texts = []
    for _ in range(draw(st.integers(2, 6))):
        chosen = list(first)
        for place in draw(st.lists(st.integers(0, len(template) - 1), max_size=4)):
            chosen[place] = draw(st.sampled_from(terms))
        parts = []
        for place, character in enumerate(template):
            if character == "_":
                character = draw(st.sampled_from(spaces))
            elif character == "C" and _is_slot(template, place):
                character = chosen[place]
            parts.append(character)
        body = "".join(parts)
        texts.append(draw(st.sampled_from(prologues)) + body)
    return texts


def _is_slot(template: str, at: int) -> bool:
    around = template[max(0, at - 1) : at] + template[at + 1 : at + 2]
    return not any(c.isalpha() for c in around)


soups = st.lists(
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), constants, st.sampled_from(SPACES)), max_size=9),
    min_size=2,
    max_size=4,
).map(lambda texts: ["ASK " + "".join(text) for text in texts])
"""Texts of fragments, which are rarely queries; all that is asked is that they are cut alike."""
