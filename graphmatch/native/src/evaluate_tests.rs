use super::*;
use crate::dictionary::Dictionary;
use crate::ontology::build::OntologyInput;
use oxrdf::{Dataset, GraphName, NamedOrBlankNode};
use oxttl::TurtleParser;
use spargebra::SparqlParser;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

const PREFIXES: &str = "PREFIX : <urn:> PREFIX e: <urn:> PREFIX gm: <urn:graphmatch:> \
    PREFIX attribute: <urn:graphmatch:attribute:> PREFIX isa: <urn:graphmatch:isa:> \
    PREFIX xsd: <http://www.w3.org/2001/XMLSchema#> PREFIX cdt: <https://w3id.org/cdt/> ";

fn triples(turtle: &str) -> Vec<Triple> {
    let text = format!("{PREFIXES}{turtle}");
    TurtleParser::new().for_slice(text.as_bytes()).map(Result::unwrap).collect()
}

pub(crate) fn parsed(query: &str) -> Query {
    SparqlParser::new().parse_query(&format!("{PREFIXES}{query}")).unwrap()
}

/// An ontology's triples, a publication's, and attributes found for who names them.
pub(crate) struct World {
    dictionary: Dictionary,
    local: LocalTerms,
    ontology: Ontology,
    graph: Graph,
    name: NamedNode,
    now: Moment,
    limits: Limits,
}

impl World {
    fn new(background: &str, publication: &str, attributes: &str) -> Self {
        Self::of(&triples(background), &triples(publication), &triples(attributes))
    }

    pub(crate) fn of(background: &[Triple], publication: &[Triple], attributes: &[Triple]) -> Self {
        let (mut dictionary, mut local) = (Dictionary::default(), LocalTerms::default());
        let text = |term: Term| {
            let text = crate::lexical::text_of(&term);
            assert_eq!(text, term.to_string());
            assert_eq!(read_term(&text), Some(term));
            text.into_bytes()
        };
        let terms = |triple: &Triple| {
            let Triple { subject, predicate, object } = triple.clone();
            [text(subject.into()), text(predicate.into()), text(object)]
        };
        let mut intern = |triple| terms(triple).map(|text| dictionary.intern(&text));
        let background: Vec<[Id; 3]> = background.iter().map(&mut intern).collect();
        let stated = OntologyInput { plain: Some(&background), ..OntologyInput::default() };
        let ontology = Ontology::new(&mut dictionary, stated);
        let mut intern = |triple: &Triple| {
            terms(triple).map(|text| {
                let hash = crate::dictionary::hash(&text);
                let known = dictionary.get_hashed(&text, hash);
                known.unwrap_or_else(|| local.intern_hashed(&text, hash))
            })
        };
        let mut graph = Graph::default();
        publication.iter().for_each(|triple| _ = graph.push(intern(triple)));
        graph.begin_named_only();
        attributes.iter().for_each(|triple| _ = graph.push(intern(triple)));
        Self {
            dictionary,
            local,
            ontology,
            graph,
            name: graph_name("urn:id"),
            now: (1_767_315_845_000_000, Some(120)), // 2026-01-02T03:04:05+02:00
            limits: Limits::usual(),
        }
    }

    fn answer(&self, query: &str, resting: bool) -> Result<Option<Answer>, EvaluationError> {
        let prepared = Prepared::new(parsed(query), resting, CallContext::default());
        self.run(|evaluation| evaluation.answer(&prepared))
    }

    pub(crate) fn run<T>(&self, run: impl FnOnce(&Evaluation<'_>) -> T) -> T {
        let text = |id| String::from_utf8(self.terms().text(id).into_owned()).unwrap();
        let is_a = move |operator, term, concept| {
            let (term, concept) = (text(term), text(concept));
            // Shorter names are above longer ones that begin with them.
            let below = |a: &str, b: &str| a.starts_with(b.trim_end_matches('>'));
            match operator {
                TaxonomyOperator::Descendant => below(&term, &concept),
                TaxonomyOperator::Ancestor => below(&concept, &term),
                TaxonomyOperator::Child => {
                    below(&term, &concept) && term.len() == concept.len() + 1
                }
            }
        };
        run(&Evaluation {
            terms: self.terms(),
            graph: &self.graph,
            ontology: &self.ontology,
            name: &self.name,
            now: self.now,
            is_a: &is_a,
            limits: self.limits,
            budget: Budget::new(&self.limits, 0, None, || false),
        })
    }

    fn terms(&self) -> Terms<'_> {
        Terms { dictionary: &self.dictionary, local: &self.local }
    }

    /// The solutions in short, sorted; `None` where there is no match.
    fn rows(&self, query: &str, resting: bool) -> Option<Vec<String>> {
        let answer = self.answer(query, resting).unwrap()?;
        let mut rows: Vec<String> = answer.solutions.iter().map(|row| shortly(row)).collect();
        rows.sort();
        Some(rows)
    }

    /// How many solutions there are.
    fn count(&self, query: &str) -> usize {
        self.answer(query, false).unwrap().map_or(0, |answer| answer.solutions.len())
    }
}

fn shortly(row: &[Option<String>]) -> String {
    let terms: Vec<String> = terms_of(row).iter().flatten().map(short).collect();
    terms.join(" ")
}

fn texts_of(triples: &[Triple]) -> Vec<[String; 3]> {
    let text = |Triple { subject, predicate, object }: &Triple| {
        [subject.to_string(), predicate.to_string(), object.to_string()]
    };
    triples.iter().map(text).collect()
}

fn terms_of(row: &[Option<String>]) -> Vec<Option<Term>> {
    row.iter().map(|text| text.as_ref().map(|text| read_term(text).unwrap())).collect()
}

fn short(term: &Term) -> String {
    let name = |name: &str| name.rsplit(['#', ':']).next().unwrap_or_default().to_owned();
    match term {
        Term::NamedNode(node) => name(node.as_str()),
        Term::Literal(literal) if literal.datatype() == oxrdf::vocab::xsd::STRING => {
            literal.value().to_owned()
        }
        Term::Literal(literal) => {
            format!("{}^{}", literal.value(), name(literal.datatype().as_str()))
        }
        other => other.to_string(),
    }
}

fn split(expected: &str) -> Vec<String> {
    let mut rows: Vec<String> = expected
        .split(',')
        .map(|row| row.trim().to_owned())
        .filter(|row| !row.is_empty())
        .collect();
    rows.sort();
    rows
}

// --- Resting ------------------------------------------------------------------------------------

fn resting_world() -> World {
    World::new(
        ":a :o :b . :b :o :c . :a :both :b . :c :cycle :c .",
        ":x :p :a . :b :p :x . :a :both :b . :x :q 5, 7 .",
        "",
    )
}

#[test]
fn graphs_and_counts_rest_on_the_publication() {
    let world = resting_world();
    let count = |inner| format!("SELECT (COUNT(*) AS ?n) {{ ?s :o ?z {{ SELECT ?z {inner} }} }}");
    assert_eq!(world.rows(&count("{ ?z :p ?y }"), true), Some(vec!["1^integer".to_owned()]));
    assert_eq!(world.rows(&count("{ ?z :o ?y }"), true), None);
    let graph = |query: &str| world.answer(query, true).unwrap().map(|answer| answer.graph);
    assert_eq!(graph("CONSTRUCT { ?s :new ?z } { ?s :o ?z }"), None);
    assert_eq!(
        graph("CONSTRUCT { ?z :new ?s } { ?s :p ?z OPTIONAL { ?z :none ?s } FILTER(?s = :b) }"),
        Some(Some(texts_of(&triples(":x :new :b ."))))
    );
    // A pattern has a solution, though the template gives nothing of it.
    assert_eq!(graph("CONSTRUCT { ?none :new ?s } { ?s :p ?z }"), Some(Some(Vec::new())));
    assert_eq!(graph("DESCRIBE ?s { ?s :both :c }"), None);
    assert_eq!(
        graph("DESCRIBE :b { ?s :p ?z }"),
        Some(Some(texts_of(&triples(":b :o :c . :b :p :x ."))))
    );
}

// --- Terms and values ---------------------------------------------------------------------------

#[test]
fn triple_terms_keep_their_numbers() {
    let world = World::new(
        ":o :says <<( :a :p 7 )>> .",
        r#":x :says <<( :a :p "01"^^xsd:integer )>> . :y :says <<( :a :p 1 )>> .
           :z :says <<( :b :q <<( :a :p "01"^^xsd:integer )>> )>> . :w :says :a .
           :a :p "01"^^xsd:integer . :l :m "text" . "#,
        "",
    );
    for (query, expected) in [
        ("SELECT ?o { ?x :says <<( :a :p ?o )>> }", "01^integer, 1^integer, 7^integer"),
        (r#"SELECT ?x { ?x :says <<( :a :p "01"^^xsd:integer )>> }"#, "x"),
        ("SELECT ?x { ?x :says <<( :a :p 1 )>> }", "y"),
        ("SELECT ?x { ?s ?p ?o . ?x :says <<( ?s ?p ?o )>> }", "x"),
        ("SELECT ?x { ?l :m ?t . ?x :says <<( ?t ?p ?o )>> }", ""),
        ("SELECT ?x ?o { ?x :says <<( ?s ?q <<( ?a ?p ?o )>> )>> }", "z 01^integer"),
        ("SELECT ?x { ?x :says <<( _:b :p _:c )>> . _:b :p _:c }", "x"),
        (r#"SELECT ?x { VALUES ?t { <<( :a :p "01"^^xsd:integer )>> } ?x :says ?t }"#, "x"),
        ("SELECT ?x { ?x :says ?t FILTER(isTRIPLE(?t) && OBJECT(?t) = 1) }", "x, y"),
        ("SELECT ?x { ?x :says ?t FILTER(STR(OBJECT(?t)) = '01') }", "x"),
        ("SELECT ?x { ?x :says ?t FILTER(?t = TRIPLE(:a, :p, 1)) }", "x, y"),
        (r#"SELECT ?x { ?x :says ?t FILTER(?t = TRIPLE(:a, :p, "01"^^xsd:integer)) }"#, "x, y"),
        (r#"SELECT ?x { ?x :says ?t FILTER sameTerm(?t, TRIPLE(:a, :p, 1)) }"#, "y"),
        ("SELECT ?x { ?x :says ?t BIND(1 AS ?o) FILTER(?t = TRIPLE(:a, :p, ?o)) }", "x, y"),
        ("SELECT ?o { :x :says ?t BIND(OBJECT(?t) AS ?o) }", "01^integer"),
        ("SELECT ?x { ?s :p ?o BIND(TRIPLE(?s, :p, ?o) AS ?t) ?x :says ?t }", "x"),
        ("SELECT ?x { ?x ^(:none|^:says) <<( :a :p ?o )>> FILTER(?o < 7) }", "x, y"),
        ("SELECT ?x { :a :p ?o FILTER EXISTS { ?y :says <<( :a :p ?o )>> } ?x :says :a }", "w"),
        ("SELECT ?x { ?x :says :a FILTER NOT EXISTS { ?x :says <<( :a :p ?o )>> } }", "w"),
        (
            "SELECT ?x ?o { ?x :says <<( :a :p ?o )>> } ORDER BY ?o LIMIT 2",
            "x 01^integer, y 1^integer",
        ),
    ] {
        let found = world.rows(query, true).unwrap_or_default();
        let expected = if query.starts_with("SELECT ?o { ?x") {
            split("01^integer, 1^integer")
        } else {
            split(expected)
        };
        assert_eq!(found, expected, "{query}");
    }
}

// --- Attributes ---------------------------------------------------------------------------------

#[test]
fn attributes_are_seen_by_who_names_them() {
    for background in ["", ":x :p 1 ."] {
        let world = World::new(
            background,
            ":x :p 1 ; :q :y .",
            ":x attribute:a :z . :y attribute:a :x . :x isa:b :c .",
        );
        for (pattern, expected) in [
            ("?s isa:b ?o", 1),
            ("?s ?p ?o", 2),
            ("?s attribute:a? ?o", 5),
            ("?s ^attribute:a* ?o", 6),
            ("?s (:q|attribute:a)* ?o", 7),
            ("?s :none* ?o", 3),
            ("VALUES ?p { attribute:a } ?s ?p ?o", 0),
            ("?s attribute:a ?a . VALUES ?p { attribute:a } OPTIONAL { ?s ?p ?o }", 2),
            ("BIND(attribute:a AS ?p) ?s ?p ?o", 0),
            ("?s attribute:a ?o FILTER NOT EXISTS { ?s ?p ?o }", 2),
            ("?s ?p ?o FILTER EXISTS { ?s attribute:a ?z }", 2),
            ("GRAPH ?g { ?s attribute:a ?o ; ?p ?w }", 2),
            ("GRAPH <urn:other> { ?s attribute:a ?o }", 0),
            ("{ SELECT ?s { ?s attribute:a ?o } } ?s :p 1", 1),
            (":x attribute:a :z", 1),
            (":x attribute:a ?v . ?s attribute:a ?v", 1),
        ] {
            let query = format!("SELECT * {{ {pattern} }}");
            assert_eq!(world.count(&query), expected, "{query}");
        }
        let rests = "SELECT ?s ?o { ?s attribute:a ?o }";
        assert_eq!(world.rows(rests, true), Some(split("x z, y x")));
        let described = world.answer("DESCRIBE ?s { ?s attribute:a ?o }", true).unwrap().unwrap();
        let mut graph = described.graph.unwrap();
        graph.sort();
        assert_eq!(graph, texts_of(&triples(":x :p 1 ; :q :y .")));
        let query = "CONSTRUCT { ?x attribute:a ?v ; ?p ?w } { ?x attribute:a ?v ; ?p ?w }";
        let constructed = world.answer(query, true).unwrap().unwrap();
        assert_eq!(constructed.graph.unwrap().len(), 3);
    }
}

// --- Functions ----------------------------------------------------------------------------------

#[test]
fn taxonomy_operators_are_asked_of_the_engine() {
    let world = World::new(":c :p :ca .", ":x :is :ca ; :is :cab ; :is :d ; :is [] .", "");
    for (filter, expected) in [
        ("gm:descendantOf(?y, :c)", 2),
        ("!gm:descendantOf(?y, :c)", 2),
        ("gm:descendantOf(?y, ?none)", 0),
        ("!gm:descendantOf(?y, ?none)", 0),
        ("gm:descendantOf(?y)", 0),
        ("gm:childOf(?y, :ca)", 1),
        ("gm:childOf(?y, ?y)", 0),
        ("gm:descendantOf(?y, :unknown)", 0),
        ("gm:descendantOf(:unknown, IRI('urn:unknown'))", 4),
        ("gm:descendantOf('a \"text\" of\\nlines', 'a \"text\" of\\nlines')", 4),
        ("gm:childOf(:unknown, :unknown)", 0),
        ("gm:descendantOf(?y, IRI(CONCAT('urn:', 'ca')))", 2),
        ("gm:descendantOf(?y, :cab) || gm:childOf(?y, :c)", 2),
    ] {
        let query = format!("SELECT * {{ :x :is ?y FILTER({filter}) }}");
        assert_eq!(world.count(&query), expected, "{query}");
    }
}

#[test]
fn the_clock_is_the_engines_and_other_functions_are_not_known() {
    let world = World::new("", ":x :p 1, 2, 3 .", "");
    let failed = world.answer("SELECT * { ?x :p ?n FILTER(:thrice(?n) = 4) }", false);
    assert!(failed.is_err(), "{failed:?}");
    let now = "SELECT (NOW() AS ?now) { ?x :p 1 FILTER(YEAR(NOW()) = 2026 && HOURS(NOW()) = 3) }";
    assert_eq!(world.rows(now, true), Some(vec!["2026-01-02T03:04:05+02:00^dateTime".to_owned()]));
    assert_eq!(world.count("SELECT * { ?x :p ?n FILTER(xsd:string(1E0) = '1') }"), 3);
}

// --- Limits -------------------------------------------------------------------------------------

#[test]
fn limits_hold_wherever_the_evaluator_is() {
    let numbers: Vec<String> = (0..300).map(|n| format!(":s{n} :p {n} .")).collect();
    let mut world = World::new("", &numbers.join(" "), "");
    let product = "?a :p ?b . ?c :p ?d . ?e :p ?f . ?g :p ?h";
    world.limits.publication_seconds = 0.05;
    let error = |what: &str| Err(EvaluationError(format!("the evaluation {what}")));
    for query in [
        format!("SELECT (COUNT(*) AS ?n) {{ {product} }}"),
        format!("SELECT * {{ {product} FILTER(?b + ?d + ?f + ?h < 0) }}"),
        format!("SELECT * {{ {product} }} ORDER BY ?b"),
        format!("ASK {{ {product} FILTER(?b + ?d + ?f + ?h < 0) }}"),
        "SELECT * { ?a (:p|!:p|^:p)* ?b . ?c (!:q)* ?d . ?e (!:r)* ?f }".into(),
        format!(
            "SELECT (COUNT(*) AS ?n) {{ :s0 :p 0 {} }}",
            "VALUES () { () () () () } ".repeat(20)
        ),
        format!("SELECT (COUNT(*) AS ?n) {{ :s0 :p 0 {} }}", "{ {} UNION {} } ".repeat(40)),
    ] {
        let begin = Instant::now();
        let failed = world.answer(&query, false);
        assert_eq!(failed, error("exceeds its share of 0.05 s (`publication_seconds`)"), "{query}");
        assert!(begin.elapsed() < Duration::from_secs(2), "{query}: {:?}", begin.elapsed());
    }
    world.limits = Limits {
        publication_seconds: f64::INFINITY,
        evaluation_terms: 100_000,
        match_solutions: 1000,
        evaluation_bytes: 10_000,
        ..Limits::usual()
    };
    assert_eq!(
        world.answer(&format!("SELECT * {{ {product} }} ORDER BY ?b"), false),
        error("holds more than 55555 terms (`evaluation_terms`)")
    );
    let many = Err(EvaluationError::many(1000));
    assert_eq!(world.answer("SELECT * { ?a :p ?b . ?c :p ?d }", true), many);
    assert_eq!(
        world.answer("CONSTRUCT { ?a ?b2 ?c } { ?a :p ?b . ?c :p ?d BIND(:q AS ?b2) }", true),
        many
    );
    let doubled: Vec<String> =
        (0..40).map(|n| format!("BIND(CONCAT(?t{n}, ?t{n}) AS ?t{})", n + 1)).collect();
    assert_eq!(
        world.answer(&format!("ASK {{ ?s :p 1 BIND('t' AS ?t0) {} }}", doubled.join(" ")), false),
        error("makes more than 10000 bytes of text")
    );
    for expression in ["?b", "?b + ?d", "STR(?b); SEPARATOR='            '"] {
        let text = format!("SELECT (GROUP_CONCAT({expression}) AS ?t) {{ {product} }}");
        assert_eq!(
            world.answer(&text, false),
            error("makes more than 10000 bytes of text"),
            "{text}"
        );
    }
    // One call of a function, or one expression, is not more than that.
    let long = "x".repeat(3000);
    let nested = |text: &str, times: usize, replacement: &str| {
        let open = "REPLACE(".repeat(times);
        format!("{open}{text}{}", format!(", '', '{replacement}')").repeat(times))
    };
    world.limits.evaluation_bytes = 100_000;
    for expression in [
        nested("STR(?s)", 2, &long),
        nested("STR(?s)", 10, &long),
        format!("{}'{}'{}", "ENCODE_FOR_URI(".repeat(200), "%".repeat(3000), ")".repeat(200)),
        format!("REPLACE('{long}', '.+', '{}')", "$0".repeat(1000)),
        format!("CONCAT('{long}'{})", ", STR(?s)".repeat(30_000)),
        format!("CONCAT({})", vec![format!("'{long}'"); 200].join(", ")),
    ] {
        let begin = Instant::now();
        let text = format!("ASK {{ ?s :p 1 FILTER(STRLEN({expression}) = 3) }}");
        assert_eq!(world.answer(&text, false), error("makes more than 100000 bytes of text"));
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }
    let texts = format!(
        "SELECT (COUNT(DISTINCT CONCAT(STR(?a), STR(?c), '{long}')) AS ?n) {{ {product} }}"
    );
    assert_eq!(world.answer(&texts, false), error("makes more than 100000 bytes of text"));
    world.limits.publication_seconds = 0.05;
    for expression in [
        "REGEX(STR(?a), CONCAT('((a?){50}){', ?n, '}'))",
        "STRLEN(REPLACE(STR(?a), CONCAT('(\\\\w{50}){', ?n, '}'), '')) = 0",
    ] {
        let rows = "?a :p ?b . ?c :p ?d BIND(STR(?b) AS ?n)";
        let begin = Instant::now();
        let failed = world.answer(&format!("SELECT * {{ {rows} FILTER(!{expression}) }}"), false);
        assert_eq!(
            failed,
            error("exceeds its share of 0.05 s (`publication_seconds`)"),
            "{expression}"
        );
        assert!(begin.elapsed() < Duration::from_secs(2), "{:?}", begin.elapsed());
    }
    // What comes last is looked at, too.
    world.limits.publication_seconds = 0.001;
    let last = format!(
        "ASK {{ ?s :p 1 FILTER(!REGEX('{}', '([ab]?){{1000}}[^ab]')) }}",
        "ab".repeat(3000)
    );
    assert_eq!(
        world.answer(&last, false),
        error("exceeds its share of 0.001 s (`publication_seconds`)")
    );
    // And it goes on as before.
    world.limits.publication_seconds = f64::INFINITY;
    assert_eq!(world.count("SELECT * { ?a :p 7 }"), 1);
    assert_eq!(world.count("SELECT * { ?a :p 7 VALUES () { () () } { {} UNION {} UNION {} } }"), 6);
}

// --- What is generated --------------------------------------------------------------------------

/// A small generator of numbers, the same each time.
pub(crate) struct Dice(pub u64);

impl Dice {
    pub(crate) fn roll(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) as usize % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.roll(from.len())]
    }

    pub(crate) fn graph(&mut self, size: usize) -> String {
        let nodes = [":a", ":b", ":c", ":d", "_:x", "_:y"];
        let objects = [":a", ":b", ":c", ":d", "_:x", "1", "\"01\"^^xsd:integer", "\"t\"@en"];
        let triples: BTreeSet<String> = (0..size)
            .map(|_| {
                let (s, p) = (self.pick(&nodes), self.pick(&[":p", ":q", ":r"]));
                format!("{s} {p} {} .", self.pick(&objects))
            })
            .collect();
        Vec::from_iter(triples).join(" ")
    }

    fn triple(&mut self) -> String {
        let subject = self.pick(&["?x", "?y", "?z", ":a", ":b", "[]"]);
        let property = self.pick(&[
            ":p",
            ":q",
            ":r",
            ":p",
            "?v",
            "?v",
            ":p/:q",
            ":p|:q",
            ":p+",
            "(:p|:q)+",
            "^:p",
            "!:p",
            "!(:p|^:q)",
            ":p/:q*",
            ":q?/:p",
            "(:p/:q)+",
        ]);
        let object = self.pick(&["?x", "?y", "?z", "?u", ":c", "1", "[]"]);
        format!("{subject} {property} {object} .")
    }

    pub(crate) fn group(&mut self, depth: usize) -> String {
        let mut text = self.triple();
        for _ in 0..self.roll(3) {
            let more = match self.roll(if depth == 0 { 2 } else { 10 }) {
                0..=2 => self.triple(),
                3 => format!("OPTIONAL {{ {} }}", self.group(depth - 1)),
                4 => {
                    format!("{{ {} }} UNION {{ {} }}", self.group(depth - 1), self.group(depth - 1))
                }
                5 => format!("MINUS {{ {} }}", self.group(depth - 1)),
                6 => format!("FILTER EXISTS {{ {} }}", self.group(depth - 1)),
                7 => format!("GRAPH ?g {{ {} }}", self.group(depth - 1)),
                8 => "FILTER(!BOUND(?x) || ?x != :a)".to_owned(),
                _ => "VALUES ?x { :a :b UNDEF }".to_owned(),
            };
            text = format!("{text} {more}");
        }
        text
    }
}

/// The sorted solutions of a query by the evaluator itself, over a dataset of terms.
fn plainly(dataset: &Dataset, query: &Query) -> Vec<String> {
    let evaluator = QueryEvaluator::new();
    let QueryResults::Solutions(rows) = evaluator.prepare(query).execute(dataset).unwrap() else {
        return Vec::new();
    };
    let mut rows: Vec<String> = rows.map(|row| format!("{:?}", row.unwrap().values())).collect();
    rows.sort();
    rows
}

#[test]
fn functions_of_strings_answer_as_the_evaluators_own() {
    let publication = labelled(
        ":s :t 'lake', 'a lake and a sea', '', 'See'@de, 'lake'@en, 'lake'@en--ltr, 'a.b$c', 7, :i ,
            'Äther\\nÄ', 'x'^^:other, 'aaa' .",
    );
    let (world, dataset) = (World::of(&[], &publication, &[]), dataset(&[], &publication));
    let own: Vec<String> = ["", "e", "^", "a*", "(l)(.)", "[", ".", "$", "\\\\b", "Ä", "a"]
        .into_iter()
        .flat_map(|text| {
            ["", "-", "$1x", "${1}x", "<$2$1>", "$$", "$0$0", "$"].map(|new| (text, new))
        })
        .flat_map(|(text, new)| {
            ["", ", ''", ", 'i'", ", 'q'", ", 'sm'", ", 'z'", ", 7"]
                .map(|flags| format!("REPLACE(?t, '{text}', '{new}'{flags})"))
        })
        .chain(
            ["CONCAT(?t, ?u)", "CONCAT(?t)", "CONCAT()", "CONCAT(?t, 'x'@en, ?u)"].map(Into::into),
        )
        .chain(["", "e", "^la", "(l)(.)", "[", "\\\\b", "Ä", "L"].into_iter().flat_map(|text| {
            ["", ", ''", ", 'i'", ", 'q'", ", 'smx'", ", 'z'", ", 7"]
                .map(|flags| format!("REGEX(?t, '{text}'{flags})"))
        }))
        .chain(["REGEX(?t, ?u)", "REGEX(?u, 'a'@en)", "ENCODE_FOR_URI(?t)"].map(Into::into))
        .chain((7..20).map(|n| format!("CONCAT({})", vec!["?t, ?u"; n].join(", "))))
        .chain(
            ["REPLACE(?t, ?u, ?t)", "REPLACE(?t, '.', ?u)", "REPLACE(?t, 'a'@en, '')"]
                .map(Into::into),
        )
        .collect();
    for expression in &own {
        let query = parsed(&format!("SELECT ?t ?u ?x {{ :s :t ?t, ?u BIND({expression} AS ?x) }}"));
        let answer = world
            .run(|e| e.answer(&Prepared::new(query.clone(), false, CallContext::default())))
            .unwrap()
            .unwrap();
        let rows = answer.solutions.iter().map(|row| format!("{:?}", terms_of(row)));
        let mut found: Vec<String> = rows.collect();
        found.sort();
        assert_eq!(found, plainly(&dataset, &query), "{expression}");
    }
}

/// The graphs of a world as a dataset.
fn dataset(background: &[Triple], publication: &[Triple]) -> Dataset {
    let graph = GraphName::from(graph_name("urn:id"));
    let all = background.iter().chain(publication);
    all.map(|triple| triple.clone().in_graph(GraphName::DefaultGraph))
        .chain(publication.iter().map(|triple| triple.clone().in_graph(graph.clone())))
        .collect()
}

/// Triples whose blank nodes have labels that stay.
pub(crate) fn labelled(turtle: &str) -> Vec<Triple> {
    let label = |node: NamedOrBlankNode| match node {
        NamedOrBlankNode::BlankNode(_) => NamedNode::new_unchecked("urn:blank").into(),
        node => node,
    };
    let mut found: Vec<Triple> = triples(turtle)
        .into_iter()
        .map(|triple| Triple {
            subject: label(triple.subject),
            object: match triple.object {
                Term::BlankNode(_) => NamedNode::new_unchecked("urn:blank").into(),
                term => term,
            },
            ..triple
        })
        .collect();
    found.sort_by_key(Triple::to_string);
    found.dedup();
    found
}

#[test]
fn generated_queries_answer_as_over_a_dataset_of_terms() {
    let mut dice = Dice(7);
    let mut matched = 0;
    for _ in 0..1500 {
        let (background, publication) = (dice.roll(7), dice.roll(9));
        let background = labelled(&dice.graph(background));
        let publication = labelled(&dice.graph(publication));
        let world = World::of(&background, &publication, &[]);
        let dataset = dataset(&background, &publication);
        let query = parsed(&format!("SELECT * {{ {} }}", dice.group(2)));
        let answer = world
            .run(|e| e.answer(&Prepared::new(query.clone(), false, CallContext::default())))
            .unwrap();
        let mut found: Vec<String> = answer
            .unwrap_or_default()
            .solutions
            .iter()
            .map(|row| format!("{:?}", terms_of(row)))
            .collect();
        found.sort();
        matched += usize::from(!found.is_empty());
        assert_eq!(found, plainly(&dataset, &query), "{query}\n{background:?}\n{publication:?}");
    }
    assert!(matched > 300, "{matched}");
}
