use super::*;
use crate::dictionary::{Dictionary, LOCAL, Terms};
use oxrdfio::JsonLdProfileSet;
use std::io::Cursor;

const NS: &str = "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"";
const GOOD: &str = "<http://e/a> <http://e/p> <http://e/b> .";
const JSON_LD: RdfFormat = RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() };

/// A publication for people: its id and its triples.
type Shown = (String, Vec<String>);

fn shown(publication: &mut Publication, dictionary: &Dictionary) -> Shown {
    publication.distinct();
    let terms = Terms { dictionary, local: &publication.local };
    let text = |id| String::from_utf8(terms.text(id).into_owned()).unwrap();
    let triples = publication.triples.iter().map(|triple| triple.map(text).join(" ")).collect();
    (publication.id.to_string(), triples)
}

fn said(fault: &Fault) -> String {
    let place = [fault.line, fault.column].into_iter().flatten();
    let place: String = place.map(|number| format!(":{number}")).collect();
    let item = fault.item.as_ref().map(|item| format!(" ({item})")).unwrap_or_default();
    format!("{place}{item}: {}. {}", fault.what, fault.remedy)
}

/// Reads a document in memory.
fn read_as(text: &[u8], syntax: RdfFormat, options: &ReaderOptions) -> (Vec<Shown>, Vec<String>) {
    read_by(Reader::new(text.to_vec(), None, syntax, options.clone()))
}

fn read_by(mut reader: Reader) -> (Vec<Shown>, Vec<String>) {
    let mut dictionary = Dictionary::default();
    dictionary.intern(b"<http://e/a>");
    let (mut out, mut found, mut faults) = (Publication::default(), Vec::new(), Vec::new());
    while reader.next(&mut out) {
        faults.extend(reader.faults().iter().map(said));
        out.adopt(&dictionary);
        found.push(shown(&mut out, &dictionary));
    }
    faults.extend(reader.faults().iter().map(said));
    assert!(reader.is_at_end());
    assert!(!reader.next(&mut out));
    (found, faults)
}

fn options() -> ReaderOptions {
    let (source, limits) = ("<stream>".to_owned(), Limits::usual());
    ReaderOptions { source, split_by: "auto", base: None, limits }
}

fn read(name: &str, text: impl AsRef<[u8]>) -> (Vec<Shown>, Vec<String>) {
    let text = text.as_ref();
    let options = ReaderOptions { source: name.to_owned(), ..options() };
    let syntax = match name.rsplit_once('.').and_then(|(_, name)| RdfFormat::from_extension(name)) {
        Some(syntax) => syntax,
        None => RdfFormat::Turtle,
    };
    read_as(text, syntax, &options)
}

fn ids(found: &[Shown]) -> Vec<&str> {
    found.iter().map(|(id, _)| id.as_str()).collect()
}

fn sizes(found: &[Shown]) -> Vec<usize> {
    found.iter().map(|(_, triples)| triples.len()).collect()
}

// --- Syntaxes ----------------------------------------------------------------------------------

#[test]
fn every_syntax_says_the_same() {
    let expected = [
        "<http://e/a> <http://e/p> <http://e/b>",
        "<http://e/a> <http://e/q> \"naïve \\n \\\"text\\\" \\\\ 'q' \\u007F\"",
        "<http://e/b> <http://e/p> \"5\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        "<http://e/b> <http://e/q> \"Klima\"@de",
    ];
    let lines: String = expected.iter().map(|triple| format!("{triple} .\n")).collect();
    let text = "\"naïve \\n \\\"text\\\" \\\\ 'q' \\u007F\"";
    let turtle = format!(
        "@prefix e: <http://e/> .\ne:a e:p e:b ; e:q {text} , {text} .\ne:b e:p 5 ; e:q \"Klima\"@DE ."
    );
    let xml = format!(
        "<rdf:RDF {NS} xmlns:e='http://e/'><rdf:Description rdf:about='http://e/a'>\
         <e:p rdf:resource='http://e/b'/><e:q>naïve &#10; \"text\" \\ 'q' &#127;</e:q></rdf:Description>\
         <rdf:Description rdf:about='http://e/b'><e:p rdf:datatype=\
         'http://www.w3.org/2001/XMLSchema#integer'>5</e:p><e:q xml:lang='DE'>Klima</e:q>\
         </rdf:Description></rdf:RDF>"
    );
    let json = "[{\"@id\": \"http://e/a\", \"http://e/p\": {\"@id\": \"http://e/b\"}, \
                \"http://e/q\": \"naïve \\n \\\"text\\\" \\\\ 'q' \\u007F\"}, {\"@id\": \
                \"http://e/b\", \"http://e/p\": 5, \"http://e/q\": {\"@value\": \"Klima\", \
                \"@language\": \"DE\"}}]";
    for (name, text) in [
        ("a.nt", &lines),
        ("a.nq", &lines),
        ("a.ttl", &turtle),
        ("a.trig", &turtle),
        ("a.n3", &turtle),
        ("a.rdf", &xml),
        ("a.jsonld", &json.to_owned()),
    ] {
        for mark in ["", "\u{FEFF}"] {
            let (found, faults) = read(name, format!("{mark}{text}"));
            assert_eq!(faults, Vec::<String>::new(), "{name}");
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].0, name);
            let mut triples = found[0].1.clone();
            triples.sort();
            assert_eq!(triples, expected, "{name}");
        }
    }
}

#[test]
fn rdf_1_2_is_read() {
    let line = "<urn:a> <urn:p> <<( _:x <urn:q> \"text\"@ar--rtl )>> .";
    let triple = "<urn:a> <urn:p> <<( _:x <urn:q> \"text\"@ar--rtl )>>";
    for name in ["a.nt", "a.nq", "a.ttl", "a.trig"] {
        assert_eq!(read(name, line).0[0].1, [triple], "{name}");
    }
    assert_eq!(sizes(&read("a.ttl", "<urn:a> <urn:p> 5 {| <urn:q> 6 |} .").0), [3]);
}

// --- Lines -------------------------------------------------------------------------------------

/// Gives a few bytes at a time.
struct Slow(Cursor<Vec<u8>>, usize);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.1.min(buffer.len());
        self.0.read(&mut buffer[..size])
    }
}

#[test]
fn pieces_do_not_matter() {
    let mut text = String::from("\u{FEFF}");
    for n in 0..60 {
        text += &format!("<urn:s{n}> <urn:p> \"{n} é\" <urn:g{}> .\r\n", n / 7);
        text += ["garbage\n", "", "# comment\r\n", "\n", "<urn:a> <urn:b>\t<urn:c> . #\n"][n % 5];
    }
    let blocks =
        "\u{FEFF}<urn:g> { <urn:a> <urn:b> 'é' , \"\"\"é\"\"\" }\n<urn:h> { <urn:a> <urn:b> 2 }";
    for (syntax, text) in [(RdfFormat::NQuads, &*text), (RdfFormat::TriG, blocks)] {
        let expected = read_as(text.as_bytes(), syntax, &options());
        assert!(expected.0.len() > 1);
        for size in [1, 2, 3, 7, 100, 100_000] {
            let slow = Box::new(Slow(Cursor::new(text.into()), size));
            let found = read_by(Reader::new(Vec::new(), Some(slow), syntax, options()));
            assert_eq!(found, expected, "{size}");
        }
    }
}

#[test]
fn a_bad_line_does_not_end_a_graph() {
    let text = "<urn:a> <urn:p> 1 <urn:h> .\n<urn:a> <urn:p> <urn:1> <urn:g> .\n<urn:a> <p> <urn:b> \
                <urn:h> .\n<urn:a> <urn:p> <urn:2> <urn:g> .\n";
    let (found, faults) = read("a.nq", text);
    assert_eq!((ids(&found), sizes(&found), faults.len()), (vec!["urn:g"], vec![2], 2));
}

// --- Limits ------------------------------------------------------------------------------------

#[test]
fn texts_have_a_length_and_escapes_count_once() {
    let limits = Limits { text_characters: 10, ..Limits::usual() };
    let options = ReaderOptions { source: "a".to_owned(), limits, ..options() };
    for (text, is_long) in [
        ("ü".repeat(10), false),
        ("\\n".repeat(10), false),
        ("\\u00fc".repeat(10), false),
        ("ü".repeat(11), true),
        ("\\n".repeat(11), true),
    ] {
        let line = format!("<urn:s> <urn:p> \"{text}\" .");
        let json = format!("{{\"@id\": \"urn:s\", \"urn:p\": \"{text}\"}}");
        for (document, format) in
            [(&line, RdfFormat::NTriples), (&line, RdfFormat::Turtle), (&json, JSON_LD)]
        {
            let (found, faults) = read_as(document.as_bytes(), format, &options);
            assert_eq!((found.is_empty(), faults.len()), (is_long, usize::from(is_long)), "{text}");
            assert!(faults.iter().all(|fault| fault.contains("more than 10 characters")));
        }
    }
}

#[test]
fn nesting_is_limited() {
    let deep = |open: &str, inner: &str, close: &str, n: usize| {
        format!("<urn:a> <urn:b> {}{inner}{} .", open.repeat(n), close.repeat(n))
    };
    let brackets = [
        ("a.nq", "<<( <urn:a> <urn:b> ", "\"5\"", " )>>"),
        ("a.ttl", "<<( <urn:a> <urn:b> ", "5", " )>>"),
        ("a.ttl", "( ", "5", " )"),
        ("a.trig", "[ <urn:b> ", "5", " ]"),
        ("a.ttl", "<< ", "<urn:a>", " <urn:b> 5 >>"),
    ];
    for (name, open, inner, close) in brackets {
        let (found, faults) = read(name, deep(open, inner, close, 256));
        assert_eq!((found.len(), faults.len()), (1, 0), "{name} {open} {faults:?}");
        for n in [257, 100_000] {
            let (found, faults) = read(name, deep(open, inner, close, n));
            assert_eq!((found.len(), faults.len()), (0, 1), "{name} {open}");
            assert!(faults[0].contains("the brackets are nested more than 256 deep"), "{faults:?}");
        }
    }
    let hidden = r#"<urn:a> a:b '([{' , "\"(" , """([""\"{ """ , <urn:(> , '' , a:\( . # ([{"#;
    let text = format!("@prefix a: <urn:> . {}", format!("{hidden}\n").repeat(1000));
    assert_eq!(read("a.ttl", text).1, Vec::<String>::new());
    let nested = |n| "{\"@id\": \"urn:a\", \"urn:p\": ".repeat(n) + "1" + &"}".repeat(n);
    assert_eq!(read("a.jsonld", nested(256)).1, Vec::<String>::new());
    assert!(
        read("a.jsonld", nested(257)).1[0].contains("objects and lists are nested more than 256")
    );
}

#[test]
fn contexts_are_checked() {
    let context = |text: &str| {
        read("a.jsonld", format!("{{\"@context\": {text}, \"@id\": \"urn:a\", \"urn:p\": 5}}")).1
    };
    let chain = |n: usize| {
        (0..n).map(|n| format!("\"a{n}\": \"a{}:\"", n + 1)).collect::<Vec<_>>().join(",")
    };
    let flat: Vec<_> = (0..3000)
        .map(|n| format!("\"t{n}\": {{\"@id\": \"e:t{n}\", \"@type\": \"@id\"}}"))
        .collect();
    let flat = format!("{{\"e\": \"urn:e:\", {}}}", flat.join(","));
    assert_eq!(context(&flat), Vec::<String>::new());
    let inner = format!("\"b\": {{\"@id\": \"urn:b\", \"@context\": {{{}}}}}", chain(200));
    let nested = format!("{{{}, {inner}}}", chain(200));
    for text in [format!("{{{}}}", chain(258)), nested] {
        let (what, found) = ("terms of the context occur in definitions", context(&text));
        assert!(found[0].contains(what), "{found:?}");
    }
    for text in
        ["\"http://e/\"", "[{\"a\": \"urn:a\"}, \"http://e/\"]", "{\"@import\": \"http://e/\"}"]
    {
        assert!(context(text)[0].starts_with(":1:2: a remote JSON-LD context. "), "{text}");
    }
}

#[test]
fn faults_are_listed_up_to_a_number() {
    let text = format!("{GOOD}\n{}<urn:a> <urn:b> <urn:c> .", "garbage\n".repeat(2500));
    let (found, faults) = read("a.nq", text);
    assert_eq!((sizes(&found), faults.len()), (vec![2], 100 + 1));
    assert!(faults[100].starts_with(": 2,400 more faults are not listed. "));
}

#[test]
fn known_terms_get_their_ids() {
    let mut dictionary = Dictionary::default();
    let [a, p] = [b"<urn:a>", b"<urn:p>"].map(|text| dictionary.intern(text));
    let known = dictionary.intern(b"\"x\\ty\"");
    let term = dictionary.intern(b"<<( <urn:a> <urn:p> \"_:b\" )>>");
    dictionary.intern(b"_:b");
    dictionary.intern(b"<<( <urn:a> <urn:p> _:b )>>");
    let text = "<urn:a> <urn:p> \"x\\ty\" .\n_:b <urn:p> <<( <urn:a> <urn:p> \"_:b\" )>> .\n\
                _:b <urn:p> <<( <urn:a> <urn:p> _:b )>> .";
    for syntax in [RdfFormat::NTriples, RdfFormat::Turtle] {
        let mut out = Publication::default();
        let mut reader = Reader::new(text.into(), None, syntax, options());
        assert!(reader.next(&mut out));
        out.adopt(&dictionary);
        let [first, second, third] = out.triples[..] else { panic!() };
        assert_eq!((first, second[1..].to_vec(), third[1]), ([a, p, known], vec![p, term], p));
        assert!(second[0] >= LOCAL && third[0] == second[0] && third[2] >= LOCAL);
    }
}

#[test]
fn short_names_do_not_stand_for_much() {
    let long = "x".repeat(1 << 20);
    let turtle = format!("@prefix a: <urn:{long}> . a:b a:c {} a:d .", "a:d, ".repeat(20_000));
    let (found, faults) = read("a.ttl", turtle);
    assert_eq!((found.len(), faults.len()), (0, 1));
    assert!(faults[0].contains("expand to far more than the document"), "{faults:?}");
    let xml = format!("<a:b xmlns:a='urn:{long}'>{}</a:b>", "<a:p>x</a:p>".repeat(20_000));
    assert!(read("a.rdf", xml).1[0].contains("a namespace of more than 65,536 bytes"));
    let json = format!(
        "{{\"@context\": {{\"a\": \"urn:{long}\"}}, \"@type\": [{} \"a\"]}}",
        "\"a\", ".repeat(20_000)
    );
    assert!(read("a.jsonld", json).1[0].contains("would expand to more than"));
    let attributes: String = (0..1_000_000).map(|n| format!(" e:a{n}='x'")).collect();
    let started = std::time::Instant::now();
    let (_, faults) = read("a.rdf", format!("<e:A xmlns:e='urn:e:'{attributes}/>"));
    assert!(faults[0].contains("more than 1000 attributes"), "{faults:?}");
    assert!(started.elapsed().as_secs() < 5);
}

#[test]
fn entities() {
    let laughs: String = (1..10)
        .map(|n| format!("<!ENTITY l{n} \"{}\">", format!("&l{};", n - 1).repeat(10)))
        .collect();
    let rdf = |text: &str, doctype: &str| {
        format!(
            "{doctype}<rdf:RDF {NS} xmlns:e=\"http://e/\"><rdf:Description rdf:about=\"urn:a\"><e:p>{text}</e:p></rdf:Description></rdf:RDF>"
        )
    };
    let bomb = format!("<!DOCTYPE a [<!ENTITY l0 \"lol\">{laughs}]>\n");
    let most = "the entities expand to more than 8,388,608 characters. If you trust the document, raise the limit xml_expansion.";
    assert_eq!(read("a.rdf", rdf("&l9;", &bomb)).1, [format!(":1:362: {most}")]);
    let long = format!("<!DOCTYPE a [<!ENTITY e \"{}\">]>", "x".repeat(100_000));
    for body in ["&e;".repeat(200), format!("</e:p><e:p e:q=\"{}\">", "&e;".repeat(200))] {
        let (_, faults) = read("a.rdf", rdf(&body, &long));
        assert!(faults[0].ends_with(most), "{faults:?}");
    }
    let uses = "&o;Thing ".repeat(100_000);
    let fine = "<!DOCTYPE a [<!ENTITY o \"http://o.org/\">]>";
    assert_eq!(sizes(&read("a.rdf", rdf(&uses, fine)).0), [1]);
    for (declaration, name) in [
        ("<!ENTITY e SYSTEM \"file:///etc/passwd\">", "e"),
        ("<!ENTITY e PUBLIC \"-//X//Y\" \"http://example.org/e\">", "e"),
        ("<!ENTITY % p SYSTEM \"http://example.org/p.dtd\"> %p;", "p"),
    ] {
        let doctype = format!("<?xml version='1.0'?>\n<!DOCTYPE a [\n {declaration}]>");
        let expected = format!(":3:2: the entity '{name}' is outside the document");
        assert!(read("a.rdf", rdf("&e;", &doctype)).1[0].starts_with(&expected));
    }
    let public = "<!DOCTYPE rdf:RDF PUBLIC \"-//X//Y\" \"http://example.org/x.dtd\">";
    assert_eq!(sizes(&read("a.rdf", rdf("x", public)).0), [1]);
}

// --- Bad documents -----------------------------------------------------------------------------

#[test]
fn bad_documents_are_refused() {
    let rdf = |about: &str| {
        format!(
            "<rdf:RDF {NS} xmlns:e='http://e/'>\n<rdf:Description rdf:about='{about}'><e:p>x</e:p></rdf:Description></rdf:RDF>"
        )
    };
    let cases: [(&str, &[u8], &str); 10] = [
        ("a.rdf", b"<e:A xmlns:e='urn:e:'>\n<e:p></e:q></e:A>", ":2:6: not valid XML: "),
        ("a.rdf", b"<e:A xmlns:e='urn:e:'/>\n<e:A xmlns:e='urn:e:'/>", ":2:1: not valid XML: junk"),
        ("a.rdf", b"<e:A xmlns:e='urn:e:'>\n\n<e:p>&x;</e:p></e:A>", ":3: not valid RDF/XML: "),
        ("a.rdf", &rdf("a").into_bytes(), ":2:28: a relative IRI (a). Write the full IRI, or"),
        ("a.ttl", b"@prefix e: <#> . e:a e:b 5 .", ":1:12: a relative IRI (#). "),
        ("a.jsonld", b"{\n \"@id\": \"a\", \"urn:p\": 5}", ":2:9: a relative IRI (a). "),
        ("a.jsonld", b"{\"@id\": \"urn:caf\xe9\"}", ":1:17: not UTF-8. "),
        ("a.nq", b" \n\t", ": there is no publication in it, if it is split by `auto`. "),
        (
            "<stdin>",
            b"\xef\xbb\xbf\n",
            ": there is no publication in it, if it is split by `auto`. ",
        ),
        ("a.jsonld", b"5", ": the JSON is neither a feed nor JSON-LD"),
    ];
    for (name, text, expected) in cases {
        let (found, faults) = read(name, text);
        assert_eq!((found.len(), faults.len()), (0, 1), "{name} {faults:?}");
        assert!(faults[0].starts_with(expected), "{name} {expected} {faults:?}");
    }
    let (found, faults) =
        read("a.trig", "<urn:g> { <urn:a> <urn:b> 1 } <urn:h> { <urn:a> <urn:b> 1, <x> }");
    assert_eq!((ids(&found), faults.len()), (vec!["urn:g"], 1));
}

#[test]
fn nothing_panics() {
    let seeds = [
        "@prefix e: <urn:e:> . e:a a e:B ; e:p ( 1 2.5 -1e3 true ) , [ e:q '''x'y''' ] {| e:r 5 |} . << e:a e:b 5 ~ _:x >> e:p <<( e:a e:b \"x\"@en--ltr )>> .",
        "BASE <http://e/> GRAPH <g> { <a> <b> \"c\"^^<d> } _:g { } <urn:x> { [] <p> \\u0041 }",
        "{\"@context\": {\"@vocab\": \"urn:\", \"p\": {\"@type\": \"@id\", \"@container\": \"@list\"}}, \"@id\": \"urn:a\", \"p\": [\"urn:b\", {\"@value\": 5}], \"@graph\": [{\"q\": \"x\\u0041\"}]}",
        "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY e \"x&#38;\">]><rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#' xmlns:e='urn:e:' xml:base='http://e/'><!-- c --><e:A rdf:ID='i' e:q='&e;'><e:p rdf:parseType='Literal'><b c='d'>x</b></e:p><e:r rdf:parseType='Collection'><e:B/></e:r><![CDATA[ ]]></e:A></rdf:RDF>",
        "<urn:a> <urn:b> <<( _:x <urn:c> \"d\\n\"@en )>> <urn:g> .\n_:x <urn:b> \"5\"^^<urn:t> .\r\n",
    ];
    let mut state = 0x2545_F491_4F6C_DD1Du64;
    let mut below = |most: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % most
    };
    let mut out = Publication::default();
    for round in 0..4000 {
        let mut text = seeds[round % seeds.len()].as_bytes().to_vec();
        for _ in 0..1 + below(4) {
            let (at, from) = (below(text.len() + 1), below(text.len() + 1));
            match below(4) {
                0 => text.truncate(at),
                1 => drop(text.splice(at.min(from)..at.max(from), [])),
                2 => text.insert(at, below(256) as u8),
                _ => {
                    let part = text[at.min(from)..at.max(from)].to_vec();
                    drop(text.splice(at..at, part));
                }
            }
        }
        for syntax in [
            RdfFormat::Turtle,
            RdfFormat::TriG,
            RdfFormat::N3,
            JSON_LD,
            RdfFormat::RdfXml,
            RdfFormat::NQuads,
        ] {
            let split_by = SPLITS[below(3)];
            let options = ReaderOptions { split_by, ..options() };
            let mut reader = Reader::new(text.clone(), None, syntax, options);
            while reader.next(&mut out) {
                assert!(!out.triples.is_empty());
                reader.faults();
            }
        }
    }
}
