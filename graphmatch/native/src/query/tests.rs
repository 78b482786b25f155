//! Query texts, and what is found necessary for them.

use super::*;
use crate::limits::Limits;

const PREFIXES: [(&str, &str); 5] = [
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("gm", "urn:graphmatch:"),
    ("cdt", "https://w3id.org/cdt/"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
];

struct Read {
    template: Template,
    constants: Vec<String>,
    dictionary: Dictionary,
    filled: FilledTemplate,
}

fn parser(limits: Limits) -> Parameterizer {
    let prefixes = PREFIXES.map(|(name, iri)| (name.to_owned(), iri.to_owned()));
    Parameterizer::new(&prefixes, limits, vec![]).unwrap()
}

fn try_read(text: &str, limits: Limits) -> Result<Read, Fault> {
    let parser = parser(limits);
    let query = parser.parameterize(text)?;
    let template = Template::new(&query, &parser)?;
    let mut dictionary = Dictionary::default();
    let constants = query.constants;
    let ids: Vec<Id> = constants.iter().map(|text| dictionary.intern(text.as_bytes())).collect();
    let filled = template.filled(&ids, &mut dictionary);
    Ok(Read { template, constants, dictionary, filled })
}

fn read(text: &str) -> Read {
    try_read(text, Limits::usual()).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

/// A term as short as it can be told.
fn short(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).into_owned();
    let text = text.replace("^^<http://www.w3.org/2001/XMLSchema#integer>", "");
    let text = text.replace("<http://www.w3.org/1999/02/22-rdf-syntax-ns#", "<rdf:");
    match text.strip_prefix("<urn:").and_then(|rest| rest.strip_suffix('>')) {
        Some(name) => name.to_owned(),
        None => text,
    }
}

impl Read {
    fn node(&self, node: Node, names: &[&str]) -> String {
        match node {
            Node::Constant(id) => short(&self.dictionary.text(id)),
            Node::Variable(number) => match names.get(usize::from(number)) {
                Some(name) if !name.starts_with('_') => format!("?{name}"),
                _ => format!("_{number}"),
            },
        }
    }

    fn patterns(&self, patterns: &[Pattern], names: &[&str]) -> String {
        let written: Vec<String> = patterns
            .iter()
            .map(|pattern| pattern.map(|node| self.node(node, names)).join(" "))
            .collect();
        written.join(" . ")
    }

    fn branches(&self) -> Vec<String> {
        let of = |(number, branch): (usize, &Branch)| {
            self.patterns(&branch.patterns, &self.template.names(number))
        };
        self.filled.branches.iter().enumerate().map(of).collect()
    }

    fn residual(&self) -> Vec<&str> {
        self.filled.residual.iter().map(|reason| reason.as_ref()).collect()
    }
}

#[test]
fn branches_of_patterns() {
    let cases: &[(&str, &[&str], &[&str])] = &[
        ("?s <urn:p> ?o", &["?s p ?o"], &[]),
        ("?s <urn:p> ?o . ?s <urn:p> ?o", &["?s p ?o"], &[]),
        ("?s <urn:p> [ <urn:q> ?o ]", &["_0 q ?o . ?s p _0"], &[]),
        ("?s <urn:p> ?o OPTIONAL { ?s <urn:q>* ?z }", &["?s p ?o"], &["OPTIONAL"]),
        ("?s <urn:p> ?o MINUS { ?s <urn:q> ?z }", &["?s p ?o"], &["MINUS"]),
        ("{ ?s <urn:p> ?o } UNION { ?s <urn:q> ?o }", &["?s p ?o", "?s q ?o"], &["UNION"]),
        ("GRAPH ?g { ?s <urn:p> ?o }", &["?s p ?o"], &["GRAPH"]),
        ("?s <urn:p> ?o BIND(1 AS ?x)", &["?s p ?o"], &["BIND or expression"]),
        ("VALUES ?o { 1 } ?s <urn:p> ?o", &["?s p ?o"], &["VALUES"]),
        ("VALUES () { } ?s <urn:p> ?o", &["?s p ?o"], &["VALUES"]),
        ("VALUES ?o { } ?s <urn:p> ?o", &["?s p ?o"], &["VALUES"]),
        ("VALUES (?o ?x) { (1 UNDEF) } ?s <urn:p> ?o", &["?s p ?o"], &["VALUES"]),
        ("VALUES () { () () } ?s <urn:p> ?o", &["?s p ?o"], &["VALUES"]),
        (
            "?s <urn:p> ?o { SELECT ?s { ?s <urn:q> ?o FILTER(?o > 5) } }",
            &["?s p ?o"],
            &["subquery"],
        ),
        (
            "?s <urn:p> ?o { SELECT (COUNT(?s) AS ?n) { ?s <urn:q> ?o } }",
            &["?s p ?o"],
            &["BIND or expression", "aggregate", "subquery"],
        ),
        (
            "?s <urn:p> ?o { SELECT ?s (COUNT(?x) AS ?n) { ?s <urn:q> ?x } GROUP BY ?s }",
            &["?s p ?o"],
            &["BIND or expression", "aggregate", "subquery"],
        ),
        (
            "?s <urn:p> ?y { SELECT ?s (COUNT(?y) AS ?y) { ?s <urn:q> ?y } GROUP BY ?s }",
            &["?s p ?y"],
            &["BIND or expression", "aggregate", "subquery"],
        ),
        (
            "{ ?s <urn:p> ?o OPTIONAL { ?o <urn:q> ?z } } ?z <urn:q> ?s",
            &["?s p ?o . ?z q ?s"],
            &["OPTIONAL"],
        ),
        ("?s a <urn:C>", &["?s <rdf:type> C"], &[]),
        (
            "?s <urn:p> (1 ())",
            &["_0 <rdf:first> <rdf:nil> . _0 <rdf:rest> <rdf:nil> . \
               _1 <rdf:first> \"1\" . _1 <rdf:rest> _0 . ?s p _1"],
            &[],
        ),
        ("?s ?p <<( ?a <urn:b> ?c )>>", &["?s ?p _2"], &["triple term"]),
        ("?s ?p <<( <urn:a> a -5 )>>", &["?s ?p _2"], &["triple term"]),
        (
            "?s <urn:p> ?o {| <urn:q> ?z |}",
            &["_0 q ?z . _0 <rdf:reifies> _2 . ?s p ?o"],
            &["triple term"],
        ),
        (
            "?s <urn:p> ?o ~ ?r . ?r <urn:q> 5",
            &["?r <rdf:reifies> _1 . ?s p ?o . ?r q \"5\""],
            &["triple term"],
        ),
        ("<< ?s <urn:p> ?o >> <urn:q> 5", &["_0 <rdf:reifies> _1 . _0 q \"5\""], &["triple term"]),
        (
            "?s <urn:p> +5, -5.0, .5, 1e3 .",
            &["?s p \"+5\" . ?s p \"-5.0\"^^<http://www.w3.org/2001/XMLSchema#decimal> . \
             ?s p \".5\"^^<http://www.w3.org/2001/XMLSchema#decimal> . \
             ?s p \"1e3\"^^<http://www.w3.org/2001/XMLSchema#double>"],
            &[],
        ),
        (
            "?s <urn:p> 'a'@EN, \"b\"@de-AT--ltr, '''c'\"'''^^xsd:string",
            &["?s p \"a\"@en . ?s p \"b\"@de-at--ltr . ?s p \"c'\\\"\""],
            &[],
        ),
    ];
    for (pattern, branches, residual) in cases {
        let found = read(&format!("SELECT * {{ {pattern} }}"));
        assert_eq!(found.branches(), *branches, "{pattern}");
        let mut reasons = found.residual();
        reasons.sort_unstable();
        assert_eq!(reasons, *residual, "{pattern}");
    }
}

#[test]
fn supports_are_what_a_solution_can_rest_on() {
    let cases = [
        (
            "?s <urn:p> ?o OPTIONAL { ?s <urn:q>/<urn:r> ?z } MINUS { ?s <urn:m> 1 } \
          FILTER NOT EXISTS { ?s <urn:n> 1 }",
            "_0 p _1 . _0 q _1 . _0 r _1",
        ),
        ("?s <urn:p> ?o OPTIONAL { ?s <urn:q>+ ?z }", "_0 p _1 . _0 q _1"),
        ("?s <urn:p> ?s . ?s ?p ?o", "_0 p _0 . _0 _1 _2"),
        ("?s <urn:p> ?o . ?s !<urn:q> ?o", "_0 p _1 . _0 _1 _2"),
        ("?s <urn:p>/^(<urn:q>|<urn:r>) ?o", "_0 p _1 . _0 q _1 . _0 r _1"),
    ];
    for (pattern, expected) in cases {
        let found = read(&format!("SELECT * {{ {pattern} }}"));
        assert_eq!(found.patterns(&found.filled.supports, &[]), expected, "{pattern}");
    }
}

#[test]
fn what_patterns_mention() {
    let cases = [
        ("?s a <urn:C> ; <urn:p> ?o", "<rdf:type> C, p *"),
        ("?s ?p 5", "* *"),
        ("?s <urn:p> ?o FILTER NOT EXISTS { ?s <urn:q> 5 }", "p *, q \"5\""),
        ("?s <urn:p> ?o MINUS { ?s (<urn:q>|^<urn:r>)+ 5 }", "p *, q *, r *"),
        ("?s <urn:p> ?o . ?s <urn:q>* ?z", "p *, q *"),
        ("?s <urn:p> ?o . ?y <urn:q>* ?z", "p *, q *, * *"),
        ("?s <urn:p>/<urn:q>* ?z", "p *, q *"),
        ("?s <urn:p>/!<urn:q> ?z", "p *, * *"),
        ("?s <urn:p> ?o OPTIONAL { ?s <urn:q>? ?z }", "p *, q *"),
    ];
    for (pattern, expected) in cases {
        let mut found = read(&format!("SELECT * {{ {pattern} }}"));
        let ids: Vec<Id> =
            found.constants.iter().map(|text| found.dictionary.intern(text.as_bytes())).collect();
        let name = |id: Id| match id {
            ANY => "*".to_owned(),
            id => short(&found.dictionary.text(id)),
        };
        let demand: Vec<String> = found
            .template
            .demanded(&ids)
            .map(|(property, object)| format!("{} {}", name(property), name(object)))
            .collect();
        assert_eq!(demand.join(", "), expected, "{pattern}");
    }
}

#[test]
fn constants_are_slots() {
    let text = |text: &str| read(text).template.text.into_string();
    let one = text("SELECT ?x { ?x <urn:p> <urn:o> FILTER(?x > 5) }");
    assert_eq!(text("select$x{?x<urn:p><urn:o>filter(?x>'a')}#x"), one);
    assert_eq!(one, "SELECT ?x\u{5}?x \u{1} \u{1}\u{4}FILTER((?x > \u{2})) }");
    let measured = "SELECT ?x { ?x <urn:p> <urn:o> FILTER(?x > '1 m'^^cdt:ucum) }";
    assert_eq!(text(measured), one.replace('\u{2}', "\u{3}"));
    let anonymous = text("SELECT ?n (COUNT(?x) AS ?m) { ?n <urn:p> [ <urn:q> ?x ] } GROUP BY ?n");
    let again = filled(&anonymous, |slot, text| {
        text.push_str(["<urn:p>", "<urn:q>"][slot]);
        false
    });
    assert_eq!(text(&again), anonymous);
}

#[test]
fn texts_that_constants_make_are_mentioned() {
    let text = |a: &str, b: &str| {
        format!("SELECT * {{ ?x <urn:p> ?y FILTER(REGEX(?y, {a}) || ?y = {b}) }}")
    };
    let (unknown, known) = (read(&text("'.*'", "1")), read(&text("'sea|lake'", "'x'@en")));
    assert_eq!(unknown.template.text, known.template.text);
    assert!(unknown.filled.interned.is_empty());
    assert_eq!(known.filled.interned.len(), 2);
}

#[test]
fn which_constants_synonyms_replace() {
    let text = r#"SELECT * { ?x <urn:p> ?y, "a0" VALUES ?y { "a1" }
        FILTER(CONTAINS(?y, "k2") && LCASE(?y) = "a3" && ?y != "a4" && ?y IN ("a5"))
        FILTER(REGEX(?y, "k6") || ?y > "k7" || EXISTS { ?x <urn:q> "a8" } || ?y = LCASE("k9")) }"#;
    let found = read(text);
    for (number, constant) in found.constants.iter().enumerate() {
        assert_eq!(found.template.rewritten(number), !constant.starts_with("\"k"), "{constant}");
    }
}

#[test]
fn algebra_with_constants() {
    let cases = [
        ("?s <urn:p> ?x FILTER(?x > '40 GB'^^cdt:ucum)", "compare>(?x, \">\", \"40 GB\"^^"),
        ("?s <urn:p> ?x FILTER('40 GB'^^cdt:ucum >= ?x)", "compare>(?x, \"<=\", \"40 GB\"^^"),
        ("?s <urn:p> ?x FILTER(?x != '4 m'^^cdt:ucum)", "compare>(?x, \"!=\", \"4"),
        (
            "?s <urn:p> ?x FILTER(?x IN (5, '4 m'^^cdt:ucum))",
            "((?x = \"5\"^^<http://www.w3.org/2001/XMLSchema#integer>) || <urn:graphmatch:compare>(?x, \"=\", \"4 m\"",
        ),
        ("?s <urn:p> ?x FILTER(?x < NOW())", "(?x < NOW())"),
        ("?s <urn:p>/<urn:q>* ?x", "(<urn:q>)*"),
        ("VALUES ?x { 5 <urn:x> } ?s !(<urn:p>|^<urn:q>) ?x", "<urn:x> ) "),
        (
            "GRAPH <urn:g> { ?s <urn:p> <<( <urn:a> <urn:b> 'c'@en )>> }",
            "<<( <urn:a> <urn:b> \"c\"@en )>>",
        ),
        (
            "?s <urn:p> ?x FILTER(EXISTS { ?s ?p -5 } && COALESCE(?x, 7) = 8)",
            "COALESCE(?x, \"7\"^^",
        ),
    ];
    for (pattern, expected) in cases {
        let found = read(&format!("SELECT * {{ {pattern} }}"));
        let written = found.template.substituted(&found.constants).unwrap().to_string();
        assert!(written.contains(expected), "{written}");
        assert!(!written.contains("slot:"), "{written}");
    }
    let found = read("SELECT * { ?s <urn:p> 'a' FILTER(?s > '1 m'^^cdt:ucum) }").template;
    let five = "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    assert!(found.substituted(&["\"a\"", "\"b\"", five]).is_err());
    let written = found.substituted(&["<urn:p>", "<urn:b>", five]).unwrap().to_string();
    assert!(written.contains("?s <urn:p> <urn:b>"), "{written}");
    assert!(written.contains("compare>(?s, \">\", \"5\"^^"), "{written}");
}

#[test]
fn uses_of_quantities() {
    let quantity = "'1 m'^^cdt:ucum";
    let cases: &[(&str, &str)] = &[
        ("?x e:a Q", "a"),
        ("?x e:a ?v ; e:b ?v FILTER(?v > Q)", "a b"),
        ("?x e:c/(e:a|e:b) ?v FILTER(Q > ?v)", "a b"),
        ("?x e:c/e:a+ ?v FILTER(?v IN (Q))", "a"),
        ("?x e:a ?v OPTIONAL { ?x e:b ?w FILTER(?w > Q) }", "b"),
        ("?x e:a ?v FILTER EXISTS { ?x e:b ?w FILTER(?w > Q) }", "b"),
        ("?x e:a ?v MINUS { ?x e:b Q }", "b"),
        ("{ SELECT ?x { ?x e:b ?w FILTER(?w > Q) } }", "b"),
        ("?x e:a ?v VALUES ?v { Q }", "a"),
        ("?x e:a 5 FILTER NOT EXISTS { ?x e:b ?w FILTER(?w IN (5, Q)) }", "b"),
        ("?x e:a 5 FILTER EXISTS { ?x e:b ?w VALUES ?w { Q } }", "b"),
        ("?x ?p Q ; e:a 5", ""),
        ("?x e:a ?v BIND(?v AS ?w) FILTER(?w > Q)", "a"),
        ("{ SELECT ?x { ?x e:a ?v } GROUP BY ?x HAVING(MAX(?v) > Q) }", "a"),
    ];
    for (pattern, expected) in cases {
        let pattern = pattern.replace('Q', quantity);
        let found = read(&format!("PREFIX e: <urn:> SELECT * {{ {pattern} }}"));
        let number = found.constants.iter().position(|text| text.contains("ucum")).unwrap();
        let patterns = found.template.measurable().unwrap();
        let of_it = patterns.iter().filter(|one| one.2.iter().any(|one| one.0 as usize == number));
        let mut names: Vec<String> =
            of_it.map(|one| short(found.constants[one.1 as usize].as_bytes())).collect();
        names.sort();
        assert_eq!(names.join(" "), *expected, "{pattern}");
    }
    let pattern = "?n e:v ?v ; e:u 'MB' . <urn:n> e:w ?w FILTER(?v > 5 && ?w = 'x')";
    let found = read(&format!("PREFIX e: <urn:> SELECT * {{ {pattern} }}"));
    let name = |n: u32| short(found.constants[n as usize].as_bytes());
    let patterns = found.template.measurable().unwrap();
    let subjects: Vec<bool> = patterns.iter().map(|one| one.0 == patterns[0].0).collect();
    assert_eq!(subjects, [true, true, false]);
    assert_eq!(name(patterns[2].0 as u32), "n");
    let written: Vec<_> = patterns
        .iter()
        .flat_map(|one| one.2.iter().map(|of_it| (name(one.1), name(of_it.0), of_it.1)))
        .collect();
    let expected = [("v", "\"5\"", false), ("u", "\"MB\"", true), ("w", "\"x\"", true)];
    assert_eq!(written, expected.map(|(p, o, same)| (p.to_owned(), o.to_owned(), same)));
}

#[test]
fn what_is_refused_and_where() {
    let deep = |open: &str, n: usize, close: &str| {
        format!("ASK {{ ?s ?p ?o FILTER({}?o{}) }}", open.repeat(n), close.repeat(n))
    };
    let cases: Vec<(String, &str, &str)> = [
        ("", "", "the query is empty"),
        ("# nothing\n", "", "the query is empty"),
        ("SELECT * {}", "", "an empty graph"),
        ("SELECT * { OPTIONAL { ?s ?p ?o } }", "", "an empty graph"),
        ("SELECT * { BIND(1 AS ?x) }", "", "an empty graph"),
        ("SELECT * { VALUES ?x { 1 } }", "", "an empty graph"),
        ("SELECT * { FILTER EXISTS { ?s ?p ?o } }", "", "an empty graph"),
        ("SELECT * { { SELECT (COUNT(*) AS ?n) { ?s ?p ?o } } }", "", "an empty graph"),
        ("SELECT * { ?s <urn:p>* ?o }", "", "an empty graph"),
        ("SELECT * { { ?s ?p ?o } UNION {} }", "", "an empty graph"),
        ("SELECT * { SERVICE <urn:s> { ?s ?p ?o } }", "1:12", "SERVICE: a subscription cannot"),
        (
            "SELECT * FROM <urn:g> { ?s ?p ?o }",
            "1:10",
            "FROM: a subscription cannot read other data",
        ),
        ("SELECT * FROM NAMED <urn:g> { ?s ?p ?o }", "1:10", "FROM"),
        ("INSERT DATA { <urn:a> <urn:b> 1 }", "1:", "not SPARQL"),
        ("DESCRIBE <urn:a>", "", "an empty graph"),
        ("SELECT * {\n  ?s ?p }", "2:10", "not SPARQL: it ends too early"),
        ("SELECT ?x WHERE {\n  ?x <http://e/p> \n}", "3:1", "not SPARQL: “}” is out of place"),
        ("SELECT ?x ?x2 { ?s\n un:known 1 }", "2:2", "the prefix un: is not declared"),
        ("SELECT * {\n ?s nope:p ?o }", "2:5", "the prefix nope: is not declared"),
        ("ASK { ?s ?p ?o FILTER(NOSUCH(?o)) }", "1:", "not SPARQL"),
        ("ASK { ?s ?p ?o FILTER(<urn:f>(?o)) }", "", "the function <urn:f>"),
        ("ASK { ?s ?p ?o FILTER(xsd:boolean(?o, 1)) }", "", "the function"),
        ("SELECT * { ?s ?p ?o\n LATERAL { ?o ?q ?z } }", "2:2", "LATERAL is not SPARQL 1.1"),
        ("SELECT * { ?s <p> ?o }", "1:15", "<p> is not an absolute IRI"),
        ("SELECT * { ?s ?p \"\\uD800\" }", "1:", "\\u escape sequence"),
        ("SELECT * { ?s ?p \"\\UFFFFFFFF\" }", "1:", "\\u escape sequence"),
        ("SELECT * { ?s ?p 'é' . ?s ?p \"abc }", "1:", "not SPARQL: it ends too early"),
        ("SELECT * { ?s ?p 'a'@toolongatag }", "1:", "language tag parsing failed"),
        ("SELECT * { ?s ?p 'a'@en--top }", "1:", "the only base directions"),
        ("SELECT * { ?s ?p 'a'^^5 }", "1:", "not SPARQL"),
        ("PREFIX a <urn:> ASK { ?s ?p ?o }", "1:", "not SPARQL"),
        ("tell me about the climate", "1:", "not SPARQL"),
        ("nonsense", "1:9", "not SPARQL"),
        ("\0\u{1}", "1:", "not SPARQL"),
        (
            "SELECT ?item (COUNT(?t) AS ?n) { ?item <urn:p> ?t }",
            "1:52",
            "not SPARQL: The SELECT contains a variable that is unbound",
        ),
        ("SELECT ?x ?x { ?x <urn:p> ?t }", "1:31", "Duplicated variable name in SELECT"),
        ("SELECT (1 AS ?x) { ?x <urn:p> ?t }", "1:35", "The SELECT overrides an existing variable"),
        ("ASK { ?x <urn:p> ?t BIND(1 AS ?t) }", "1:", "BIND is overriding an existing variable"),
        ("ASK { ?x ?y ?z VALUES (?x ?y) { (1) } }", "1:", "The VALUES clause rows should have"),
        (
            "ASK { ?x ?y ?z { SELECT ?a (COUNT(?b) AS ?n) { ?a ?b ?c } LIMIT 1 } } ",
            "1:58",
            "The SELECT contains a variable that is unbound",
        ),
        ("SELECT * { ?x ?y ?z } GROUP BY ?x", "1:", "SELECT * is not authorized with GROUP BY"),
        ("ASK { ?x <urn:a> ?v FILTER(?v * 2 > '1 m'^^cdt:ucum) }", "", "can only be compared"),
        ("ASK { ?x <urn:a> ?v FILTER(!?v = '1 m'^^cdt:ucum) }", "", "can only be compared"),
        ("ASK { ?x <urn:a> ?v FILTER(?v NOT IN ('1 m'^^cdt:ucum)) }", "", "can only be compared"),
        ("ASK { ?x <urn:a> ?v BIND('1 m'^^cdt:ucum AS ?b) }", "", "can only be compared"),
        ("ASK { ?x ?y ?v FILTER('1 m'^^cdt:ucum = '1 m'^^cdt:ucum) }", "", "can only be compared"),
        ("ASK { ?x ?y ?v FILTER(sameTerm(?v, '1 m'^^cdt:ucum)) }", "", "can only be compared"),
    ]
    .into_iter()
    .map(|(text, place, what)| (text.to_owned(), place, what))
    .chain([
        (deep("(", 9999, ")"), "1:", "the query exceeds the limit `nesting` (256)"),
        (deep("STR(", 9999, ")"), "1:", "the query exceeds the limit `nesting` (256)"),
        (deep("SUBSTR(", 13, ",1)"), "1:", "nest more than 12 deep"),
        (
            format!("ASK {}?s ?p ?o", "{".repeat(20_000)),
            "1:261",
            "the query exceeds the limit `nesting` (256)",
        ),
        (
            format!("ASK {{ ?s ?p {}", "<< ?a ?b ".repeat(9999)),
            "1:",
            "the query exceeds the limit `nesting` (256)",
        ),
        (format!("ASK {{ ?s ?p ?o FILTER(?o{}) }}", "+ 1".repeat(9999)), "1:", "`subscription_op"),
        (format!("ASK {{ ?s <urn:p>{} ?o }}", "/<urn:p>".repeat(9999)), "1:", "`subscription_op"),
        (format!("ASK {{ ?s ?p ?o FILTER({}?o) }}", "!".repeat(9999)), "1:", "`subscription_op"),
        (
            format!("ASK {{ ?s ?p \u{1} {}", "(".repeat(9999)),
            "1:",
            "the query exceeds the limit `nesting` (256)",
        ),
        (format!("ASK {{ ?s ?p \u{1} {}", "(SUBSTR".repeat(99)), "1:", "nest more than 12 deep"),
        (format!("ASK {{ ?s ?p ?o FILTER({}\u{1}", "!".repeat(900)), "1:", "not SPARQL"),
        (format!("ASK {{ ?s ?p ?o FILTER({}\u{1}", "!".repeat(12_000)), "1:", "`subscription_op"),
    ])
    .collect();
    for (text, place, what) in cases {
        let shown: String = text.chars().take(60).collect();
        let Err(error) = try_read(&text, Limits::usual()) else { panic!("{shown} is taken") };
        assert!(error.what.contains(what), "{shown}: {error:?}");
        let found = match (error.line, error.column) {
            (Some(line), Some(column)) => format!("{line}:{column}"),
            _ => String::new(),
        };
        assert!(
            found.starts_with(place) && found.is_empty() == place.is_empty(),
            "{shown}: {error:?}"
        );
        assert!(!error.remedy.is_empty());
    }
    let short = Limits { text_characters: 10, ..Limits::usual() };
    let long = try_read("SELECT * { ?s ?p ?o }", short);
    assert!(long.is_err_and(|error| error.what.contains("more than 10 characters")));
}

#[test]
fn what_is_deep_or_long_is_read() {
    let brackets = |n: usize| format!("{}?o{}", "(".repeat(n), ")".repeat(n));
    for text in [
        format!("ASK {{ ?s ?p ?o FILTER({} = 5) }}", brackets(200)),
        format!("ASK {}?s ?p ?o{}", "{".repeat(250), "}".repeat(250)),
        format!("ASK {{ ?s ?p {} }}", brackets(250)),
        format!("ASK {{ ?s ?p ?o FILTER(?o{} = 5) }}", " + 1".repeat(900)),
        format!("ASK {{ ?s ?p ?o FILTER({}?o) }}", "!".repeat(900)),
        format!("ASK {{ ?s ?p ?o{} }}", " FILTER(?o = 5)".repeat(450)),
        format!("ASK {{ {}{{ ?s ?p ?o }} }}", "{ ?s ?p 1 } UNION ".repeat(900)),
        format!("ASK {{ ?s <urn:p>{} ?o }}", "/<urn:p>".repeat(900)),
        format!("ASK {{ ?s <urn:p>{} ?o }}", "|<urn:p>".repeat(900)),
        format!("ASK {{ ?s ?p ?o{} }}", " OPTIONAL { ?s ?q ?r }".repeat(900)),
    ] {
        let found = read(&text);
        assert!(found.template.substituted(&found.constants).is_ok());
        assert!(found.template.measurable().is_ok());
    }
    let values: String = (0..70_000).map(|n| format!("<urn:{n}> ")).collect();
    let found = read(&format!("SELECT * {{ ?s <urn:p> ?o VALUES ?o {{ {values} }} ?s ?q 5 }}"));
    assert_eq!(found.residual(), ["VALUES"]);
    assert_eq!(found.branches(), ["?s p ?o . ?s ?q \"5\""]);
}

/// Numbers that look random, the same in each run.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }
}

#[test]
fn what_is_written_means_the_same() {
    const TEXTS: [&str; 9] = [
        "?x <urn:p> ?y ; a gm:C , 5 . FILTER(?y > 5 && CONTAINS(STR(?y), 'sea'))",
        "?x gm:p/^gm:q* ?y OPTIONAL { ?y !gm:r -5 } BIND(?y -5 * -?x AS ?z)",
        "{ ?x ?p ( 1 [ gm:q 'a'@de ] ) } UNION { SELECT ?x { ?x gm:p ?y } ORDER BY DESC(?y) LIMIT 5 }",
        "?x gm:p ?y MINUS { ?x gm:q ?z } VALUES (?x ?y) { (gm:a UNDEF) (gm:b -1.5) }",
        "GRAPH ?g { ?x gm:p ?y } FILTER(?x IN (1, +2, gm:c) || !(?y = 'b') || NOT EXISTS { ?y ?y 5 })",
        "?x gm:p ?y {| gm:q 5 |} . << ?x gm:p 'o' >> gm:r <<( ?x gm:p 5 )>>",
        "?x gm:p ?y FILTER(COALESCE(?x, ?y - 1, 2 +3) = IF(?x<5, ?y, -7)) FILTER gm:childOf(?x, gm:c)",
        "?x gm:p \"\"\"a\"b\\n\"\"\" , 'c\\u00E9' # comment ' }\n ; gm:q true, false .",
        "?x gm:p ?y FILTER(REGEX(?y, 'a+b', 'i') && xsd:integer(?y) != 3 && ?y < NOW ( ) )",
    ];
    const PIECES: &str = r#"?x ?y $z ? <urn:a> <urn:b> xsd:string gm:c gm:a.b a 5 -5 -1.5 1e3 's'
        "t"@en 'u'@en--ltr "7"^^xsd:integer true _:b [] () ( ) ( ) { } [ ] <<( )>> << >> {| |} . .
        ; , = < > != && || ! + - * / | ^ ~ FILTER FILTER( OPTIONAL{ UNION MINUS{ BIND( AS
        VALUES?x{ STR( IN( EXISTS{ NOW()"#;
    const FORMS: [&str; 11] = [
        "SELECT ?x { ?x <urn:p> ?y FILTER(!(!(?x = 1)) && !(?y != 2) && (?x != 3 && ?y = 4 || ?x > 5)) }",
        "DESCRIBE <urn:a> ?SELECT { ?SELECT <urn:p> ?y BIND(<urn:b> AS ?z) } ORDER BY ?y LIMIT 3",
        "DESCRIBE * { { SELECT DISTINCT (1 + 1 AS ?x) { ?a <urn:p> ?y } } }",
        "ASK { { SELECT ?x { ?x <urn:p> ?y } LIMIT 3 } }",
        "CONSTRUCT { ?x <urn:p> ?y } { { SELECT * { ?x <urn:p> ?y } LIMIT 5 } BIND(1 AS ?y2) } LIMIT 3",
        "SELECT ?x { { { SELECT * { ?x <urn:p> ?y } LIMIT 5 } } } OFFSET 3",
        "SELECT (?x * (2 - (?y - ?x)) / -(-?y) AS ?b) { { ?x <urn:p> ?y FILTER(?y > 3) } BIND(1 AS ?z) }",
        "SELECT ?g (COUNT(DISTINCT ?x) + 1 AS ?n) (GROUP_CONCAT(?x; SEPARATOR=' . <slot:3>') AS ?z) \
         { ?x <urn:p> ?g } GROUP BY ?g HAVING(SUM(?x) - (3 - ?g) > 2 && MAX(?x) < 3) \
         ORDER BY DESC(AVG(?x)) LIMIT 3 VALUES ?g { <urn:a> }",
        "SELECT (COUNT(*) AS ?n) { { SELECT ?g (MIN(?x) AS ?m) { ?x <urn:p> ?g } GROUP BY ?g LIMIT 3 } }",
        "SELECT * { ?a <urn:q> ?b { ?x <urn:p> ?y . { ?y <urn:q> ?z OPTIONAL { { ?z ?p ?y FILTER(?y > 3) } } } } }",
        "SELECT * { { ?a <urn:q> ?b FILTER(!(?a + 1)) } MINUS { ?b ?p ?c FILTER(?c > 3) } FILTER(?b > 1) }",
    ];
    for text in FORMS {
        let query = parser(Limits::usual()).parameterize(text).unwrap();
        let written = filled(&query.text, |slot, text| {
            text.push_str(&query.constants[slot]);
            false
        });
        let again = parser(Limits::usual()).parameterize(&written).unwrap();
        assert_eq!(again.query, query.query, "{text}");
    }
    let pieces: Vec<&str> = PIECES.split_whitespace().collect();
    let mut numbers = RandomNumbers(7);
    let parser = parser(Limits::usual());
    let (mut taken, mut refused) = (0, 0);
    for round in 0..2000 {
        let mut words: Vec<&str> = TEXTS[round % TEXTS.len()].split(' ').collect();
        for _ in 0..numbers.below(4) {
            let at = numbers.below(words.len());
            match numbers.below(3) {
                0 => words[at] = pieces[numbers.below(pieces.len())],
                1 => words.insert(at, pieces[numbers.below(pieces.len())]),
                _ => drop(words.remove(at)),
            }
        }
        let text = format!("SELECT * {{ {} }}", words.join(" "));
        let Ok(query) = parser.parameterize(&text) else {
            refused += 1;
            continue;
        };
        let again = parse(&filled(&query.text, |_, _| true)).unwrap();
        assert_eq!(again, query.query, "{text}");
        taken += 1;
    }
    assert!(taken > 500 && refused > 250, "{taken} {refused}");
}
