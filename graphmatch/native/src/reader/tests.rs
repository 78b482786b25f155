use super::*;
use crate::dictionary::Terms;
use oxrdfio::JsonLdProfileSet;

const NS: &str = "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"";
const GOOD: &str = "<http://e/a> <http://e/p> <http://e/b> .";
const JSON_LD: RdfFormat = RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() };
const LINE: &str = LINE_REMEDY;

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

/// Reads a document, as a stream and in memory.
fn read_as(text: &[u8], syntax: RdfFormat, options: &Options) -> (Vec<Shown>, Vec<String>) {
    let stream = Reader::new(Cursor::new(text.to_vec()), syntax, options.clone());
    let memory = Reader::of_bytes(text.to_vec(), syntax, options.clone());
    let (found, same) = (read_by(stream, false), read_by(memory, true));
    // A parser calls nodes without a label something else each time.
    let is_named = |(_, triples): &&Shown| !triples.iter().any(|triple| triple.contains("_:"));
    assert!(found.0.iter().filter(is_named).eq(same.0.iter().filter(is_named)));
    assert_eq!((sizes(&found.0), &found.1), (sizes(&same.0), &same.1));
    found
}

fn read_by(mut reader: Reader, is_known: bool) -> (Vec<Shown>, Vec<String>) {
    let mut dictionary = Dictionary::default();
    dictionary.intern(b"<http://e/a>");
    dictionary.intern(b"\"known\"");
    let (mut out, mut found, mut faults) = (Publication::default(), Vec::new(), Vec::new());
    loop {
        let next = reader.next(is_known.then_some(&dictionary), &mut out);
        faults.extend(reader.faults().iter().map(said));
        match next {
            Next::Publication => {
                if !is_known {
                    out.adopt(&dictionary);
                }
                found.push(shown(&mut out, &dictionary));
            }
            Next::Faults => {}
            Next::End => break,
        }
    }
    assert!(reader.is_at_end());
    assert_eq!(reader.next(None, &mut out), Next::End);
    (found, faults)
}

fn read(name: &str, text: impl AsRef<[u8]>) -> (Vec<Shown>, Vec<String>) {
    let text = text.as_ref();
    let options = Options { source: name.to_owned(), ..Options::default() };
    let syntax = match name.rsplit_once('.').and_then(|(_, name)| RdfFormat::from_extension(name)) {
        Some(syntax) => syntax,
        None => RdfFormat::Turtle,
    };
    read_as(text, syntax, &options)
}

fn cut(text: &str, syntax: RdfFormat, cut: Cut) -> Vec<Shown> {
    let (found, faults) = read_as(text.as_bytes(), syntax, &Options { cut, ..Options::default() });
    assert_eq!(faults, Vec::<String>::new());
    found
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
fn rdf_xml_without_its_own_root() {
    let book = "<Book xmlns='http://example.org/terms#'><title>Dogs in Hats</title></Book>";
    let (found, faults) = read("a.rdf", book);
    assert_eq!((sizes(&found), faults), (vec![2], vec![]));
    let node = format!("<?xml version='1.0'?><e:A xmlns:e='urn:e:' {NS} rdf:about='urn:a'/>");
    assert_eq!(sizes(&read("a.rdf", node).0), [1]);
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

#[test]
fn terms_that_are_mentioned_have_their_ids() {
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
        let mut reader = Reader::of_bytes(text.into(), syntax, Options::default());
        assert_eq!(reader.next(Some(&dictionary), &mut out), Next::Publication);
        let [first, second, third] = out.triples[..] else { panic!() };
        assert_eq!((first, second[1..].to_vec(), third[1]), ([a, p, known], vec![p, term], p));
        assert!(second[0] >= LOCAL && third[0] == second[0] && third[2] >= LOCAL);
    }
}

#[test]
fn relative_iris_need_a_base() {
    let xml = format!(
        "<rdf:RDF {NS} xmlns:e='http://e/'><rdf:Description rdf:about='a'><e:p rdf:resource='b'/>\
         </rdf:Description></rdf:RDF>"
    );
    for (syntax, text) in [
        (RdfFormat::Turtle, "<a> <p> <b> ."),
        (RdfFormat::TriG, "{ <a> <p> <b> }"),
        (JSON_LD, "{\"@id\": \"a\", \"http://e/p\": {\"@id\": \"b\"}}"),
        (RdfFormat::RdfXml, &xml),
    ] {
        let (found, faults) = read_as(text.as_bytes(), syntax, &Options::default());
        assert_eq!(found, []);
        assert!(
            faults[0].contains("a relative IRI") && faults[0].ends_with(BASE_REMEDY),
            "{faults:?}"
        );
    }
}

// --- Lines -------------------------------------------------------------------------------------

#[test]
fn each_bad_line_is_one_fault() {
    let after = "<http://e/b> <http://e/p> <http://e/a> .";
    for (line, column, what) in [
        ("this is garbage", Some(1), "not valid N-Quads"),
        ("<http://e/a> <http://e/p> \"no end", None, "not valid N-Quads"),
        ("<http://e/a> <http://e/p> <http://e/b>", None, "not valid N-Quads"),
        ("\"text\" <http://e/p> <http://e/b> .", Some(1), "not valid N-Quads"),
        ("<a> <http://e/p> <http://e/b> .", Some(1), "a relative IRI"),
        (&format!("{GOOD} {GOOD}"), None, "not valid N-Quads"),
        ("<http://e/a <http://e/p> <http://e/b> .", Some(1), "not valid N-Quads"),
        ("<http://e/a> <http://e/p> \"x\"@toolongasubtag .", None, "not valid N-Quads"),
        ("}\0", Some(1), "not valid N-Quads"),
    ] {
        for end in ["\n", "\r\n", "\r"] {
            let text = [GOOD, line, after, line, ""].join(end);
            let (found, faults) = read("a.nq", text);
            assert_eq!((sizes(&found), faults.len()), (vec![2], 2), "{line} {end:?} {faults:?}");
            for (number, fault) in [2, 4].into_iter().zip(&faults) {
                let column = column.map(|column| column.to_string()).unwrap_or_default();
                assert!(fault.starts_with(&format!(":{number}:{column}")), "{fault}");
                assert!(fault.contains(what) && fault.ends_with(LINE), "{fault}");
            }
        }
    }
    let latin = b"<urn:a> <urn:b> \"caf\xe9\" .\n<urn:a> <urn:b> <urn:c> .\n";
    let (found, faults) = read("a.nt", latin);
    assert_eq!(sizes(&found), [1]);
    assert_eq!(faults, [format!(":1:21: not UTF-8. {LINE}")]);
}

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
        let expected = read_as(text.as_bytes(), syntax, &Options::default());
        assert!(expected.0.len() > 1);
        for size in [1, 2, 3, 7, 100, 100_000] {
            let slow = Slow(Cursor::new(text.into()), size);
            let found = read_by(Reader::new(slow, syntax, Options::default()), size % 2 == 0);
            assert_eq!(found, expected, "{size}");
        }
    }
}

#[test]
fn the_first_publication_comes_before_the_stream_is_read() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("nothing more is to be read"))
        }
    }
    let line = |n: u8| format!("<urn:a> <urn:p> \"{n}\" <urn:g{n}> .\n");
    let (first, second) = (line(1), line(2));
    let stream = Cursor::new(first + &second).chain(Broken);
    let mut reader = Reader::new(stream, RdfFormat::NQuads, Options::default());
    let mut out = Publication::default();
    assert_eq!(reader.next(None, &mut out), Next::Publication);
    assert_eq!(&*out.id, "urn:g1");
    assert_eq!(reader.next(None, &mut out), Next::End);
    assert_eq!(reader.faults()[0].what, "cannot be read: nothing more is to be read");
}

#[test]
fn what_is_not_of_lines_is_given_up() {
    let (found, faults) = read("a.nq", "garbage\n".repeat(1000));
    assert_eq!((found.len(), faults.len()), (0, crate::lines::HOPELESS + 1));
    let last =
        ": none of its first 100 lines is N-Quads. Name its syntax (`format=` or `--format`).";
    assert_eq!(faults.last().unwrap(), last);
    let text = format!("{GOOD}\n{}<urn:a> <urn:b> <urn:c> .", "garbage\n".repeat(2500));
    let (found, faults) = read("a.nq", text);
    assert_eq!((sizes(&found), faults.len()), (vec![2], 2500));
}

#[test]
fn a_line_may_not_be_endless() {
    let limits = Limits { document_bytes: 100_000, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let text = format!("<urn:a> <urn:b> \"{}", "x".repeat(1_000_000));
    let mut reader = Reader::new(Cursor::new(text), RdfFormat::NTriples, options);
    assert_eq!(reader.next(None, &mut Publication::default()), Next::End);
    let faults = reader.faults();
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].what, "a line of more than 100,000 bytes");
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
fn graphs_with_too_many_triples_are_left_out() {
    let limits = Limits { publication_triples: 20, ..Limits::default() };
    let options = Options { source: "a".to_owned(), limits, ..Options::default() };
    let mut text: String =
        (0..61).map(|n| format!("<urn:{n}> <urn:p> \"{n}\" <urn:g{}> .\n", n / 30)).collect();
    text += "<urn:a> <urn:p> \"x\" <urn:last> .";
    let (found, faults) = read_as(text.as_bytes(), RdfFormat::NQuads, &options);
    assert_eq!((ids(&found), sizes(&found)), (vec!["urn:g2", "urn:last"], vec![1, 1]));
    let what = "a publication of more than 20 triples. Raise the limit `publication_triples`, or cut \
                the document into smaller publications.";
    assert_eq!(faults, [format!(" (urn:g0): {what}"), format!(" (urn:g1): {what}")]);
    let text: String = (0..61).map(|n| format!("<urn:{n}> <urn:p> {n} .\n")).collect();
    let (found, faults) = read_as(text.as_bytes(), RdfFormat::Turtle, &options);
    assert_eq!((found, faults), (vec![], vec![format!(": {what}")]));
}

#[test]
fn texts_have_a_length_and_escapes_count_once() {
    let limits = Limits { text_characters: 10, ..Limits::default() };
    let options = Options { source: "a".to_owned(), limits, ..Options::default() };
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
fn repeated_triples_count_once() {
    let limits = Limits { publication_triples: 1, ..Limits::default() };
    let options = Options { limits, ..Options::default() };
    let (found, _) =
        read_as(format!("{GOOD}\n").repeat(3000).as_bytes(), RdfFormat::NTriples, &options);
    assert_eq!(sizes(&found), [1]);
    let text: String =
        (0..3000).map(|n| format!("<urn:{}> <urn:p> \"{}\" .\n", n % 37, n % 101)).collect();
    let (found, _) = read("a.nt", text);
    let mut triples = found[0].1.clone();
    triples.sort();
    triples.dedup();
    assert_eq!((triples.len(), found[0].1.len()), (3000, 3000));
}

#[test]
fn documents_that_are_held_have_a_size() {
    let text = "{\"@id\": \"urn:a\", \"urn:p\": 5}";
    for (most, kept) in [(text.len(), 1), (text.len() - 1, 0)] {
        let limits = Limits { document_bytes: most, ..Limits::default() };
        let options = Options { limits, ..Options::default() };
        let (found, faults) = read_as(text.as_bytes(), JSON_LD, &options);
        assert_eq!((found.len(), faults.len()), (kept, 1 - kept));
    }
}

#[test]
fn nothing_nests_without_end() {
    let deep =
        |open: &str, inner: &str, close: &str, n: usize| open.repeat(n) + inner + &close.repeat(n);
    let term =
        |n| format!("<urn:a> <urn:b> {} .", deep("<<( <urn:a> <urn:b> ", "\"5\"", " )>>", n));
    let json = |n| deep("{\"@id\": \"urn:a\", \"urn:p\": ", "1", "}", n);
    let context = |n| {
        format!(
            "{{\"@context\": {}}}",
            deep("{\"a\": {\"@id\": \"urn:a\", \"@context\": ", "{}", "}}", n / 2)
        )
    };
    let list = |n| format!("<urn:a> <urn:b> {} .", deep("( ", "5", " )", n));
    let nodes = |n| format!("<urn:a> <urn:b> {} .", deep("[ <urn:b> ", "5", " ]", n));
    let reified = |n| format!("{} <urn:b> 5 .", deep("<< ", "<urn:a>", " <urn:b> 5 >>", n));
    let xml = |n| {
        format!("<e:A xmlns:e='urn:e:'>{}</e:A>", deep("<e:p><e:A>", "", "</e:A></e:p>", n / 2))
    };
    type Text<'a> = &'a dyn Fn(usize) -> String;
    let cases: [(&str, Text<'_>, usize, &str); 6] = [
        ("a.ttl", &term, 256, "its triple terms nest more than 256 deep"),
        ("a.nq", &term, 256, "not valid N-Quads: its triple terms nest more than 256 deep"),
        ("a.nt", &term, 256, "not valid N-Triples: its triple terms nest more than 256 deep"),
        ("a.jsonld", &json, 256, "its objects and lists nest more than 256 deep"),
        ("a.jsonld", &context, 254, "its objects and lists nest more than 256 deep"),
        ("a.rdf", &xml, 255, "its elements nest more than 256 deep"),
    ];
    for (name, text, most, what) in cases {
        let (_, faults) = read(name, text(most));
        assert!(!faults.iter().any(|fault| fault.contains("deep")), "{name} {faults:?}");
        for n in [most + 2, 20 * most.min(20_000)] {
            if n > most {
                let (found, faults) = read(name, text(n));
                assert_eq!((found.len(), faults.len()), (0, 1), "{name}");
                assert!(faults[0].contains(what), "{name} {faults:?}");
            }
        }
    }
    assert_eq!(read("a.ttl", term(256)).0.len(), 1);
    // These need no recursion, but memory.
    let texts: [Text<'_>; 3] = [&list, &nodes, &reified];
    for text in texts {
        let (found, faults) = read("a.ttl", text(130_000));
        assert_eq!((found.len(), faults.len()), (1, 0), "{faults:?}");
        let (found, faults) = read("a.ttl", text(400_000));
        assert_eq!((found.len(), faults.len()), (0, 1));
        assert!(faults[0].contains("its brackets nest more than 131,072 deep"), "{faults:?}");
    }
    let hidden = r#"<urn:a> a:b '([{' , "\"(" , """([""\"{ """ , <urn:(> , '' , a:\( . # ([{"#;
    let text = format!("@prefix a: <urn:> . {}", format!("{hidden}\n").repeat(60_000));
    assert_eq!(read("a.ttl", text).1, Vec::<String>::new());
    assert_eq!(
        read("a.ttl", "<urn:a> <urn:b> '''<<( << [[[''' , \"<<(\" , <urn:<<(> . # <<( [").1.len(),
        1
    );
}

#[test]
fn short_names_do_not_stand_for_much() {
    let long = "x".repeat(1 << 20);
    let turtle = format!("@prefix a: <urn:{long}> . a:b a:c {} a:d .", "a:d, ".repeat(20_000));
    let (found, faults) = read("a.ttl", turtle);
    assert_eq!((found.len(), faults.len()), (0, 1));
    assert!(faults[0].contains("stand for far more than is written"), "{faults:?}");
    let xml = format!("<a:b xmlns:a='urn:{long}'>{}</a:b>", "<a:p>x</a:p>".repeat(20_000));
    assert!(read("a.rdf", xml).1[0].contains("a namespace of more than 65,536 bytes"));
    let json = format!(
        "{{\"@context\": {{\"a\": \"urn:{long}\"}}, \"@type\": [{} \"a\"]}}",
        "\"a\", ".repeat(20_000)
    );
    assert!(read("a.jsonld", json).1[0].contains("would stand for more than"));
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
    let most = "its entities would add more than 8,388,608 characters. If you trust the document, raise the limit xml_expansion.";
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
        let expected = format!(":3:2: the entity '{name}' lies outside the document");
        assert!(read("a.rdf", rdf("&e;", &doctype)).1[0].starts_with(&expected));
    }
    let public = "<!DOCTYPE rdf:RDF PUBLIC \"-//X//Y\" \"http://example.org/x.dtd\">";
    assert_eq!(sizes(&read("a.rdf", rdf("x", public)).0), [1]);
}

#[test]
fn a_dictionary_may_change_while_faults_are_told() {
    let bad = "garbage\n".repeat(FAULTS + 1);
    let text = format!("<urn:a> <urn:p> <urn:b> .\n{bad}<urn:b> <urn:p> <urn:c> .\n");
    let mut dictionary = Dictionary::default();
    let [old, p] = [b"<urn:a>", b"<urn:p>"].map(|text| dictionary.intern(text));
    let mut reader = Reader::of_bytes(text.into(), RdfFormat::NTriples, Options::default());
    let mut out = Publication::default();
    assert_eq!(reader.next(Some(&dictionary), &mut out), Next::Faults);
    assert_eq!(reader.faults().len(), FAULTS);
    dictionary.release(old);
    let [c, b] = [b"<urn:c>", b"<urn:b>"].map(|text| dictionary.intern(text));
    assert_eq!((reader.next(Some(&dictionary), &mut out), c), (Next::Publication, old));
    let [first, second] = out.triples[..] else { panic!() };
    assert_eq!((first[1..].to_vec(), second), (vec![p, b], [b, p, c]));
    assert_eq!(out.local.text(first[0]), b"<urn:a>");
}

// --- Cuts --------------------------------------------------------------------------------------

#[test]
fn graphs() {
    let text = "@prefix e: <urn:e:> . e:a e:p 1 . e:g { e:a e:q 2 } _:g { e:b e:q 3 }";
    for kind in [Cut::Auto, Cut::Graph] {
        assert_eq!(ids(&cut(text, RdfFormat::TriG, kind)), ["<stream>", "urn:e:g", "<stream>#g"]);
    }
    let whole = cut(text, RdfFormat::TriG, Cut::Document);
    assert_eq!((ids(&whole), sizes(&whole)), (vec!["<stream>"], vec![3]));
    let line = |o: &str, g: &str| format!("<urn:a> <urn:p> <urn:{o}> <urn:{g}> .\n");
    let text = [("x", "g"), ("y", "h"), ("z", "g")].map(|(o, g)| line(o, g)).concat();
    let (found, faults) = read("a.nq", &text);
    assert_eq!(ids(&found), ["urn:g", "urn:h", "urn:g"]);
    assert_eq!(
        faults,
        [" (urn:g): the graph's statements do not stand together: it was read as \
                         several. Sort the file by graph, so that each graph is one publication."]
    );
    assert_eq!(sizes(&cut(&text, RdfFormat::NQuads, Cut::Document)), [3]);
    let triples = "<urn:a> <urn:p> <urn:b> .\n<urn:a> <urn:p> <urn:b>, <urn:c> .";
    assert_eq!(sizes(&cut(triples, RdfFormat::Turtle, Cut::Auto)), [2]);
}

#[test]
fn a_document_without_a_publication_is_no_silent_drop() {
    for (text, kind) in [("# nothing\n@prefix a: <urn:a> .", Cut::Auto), ("# nothing", Cut::Graph)]
    {
        let options = Options { cut: kind, ..Options::default() };
        let (found, faults) = read_as(text.as_bytes(), RdfFormat::Turtle, &options);
        let name = kind.name();
        assert_eq!(found, []);
        assert_eq!(
            faults,
            [format!(
                ": it holds no publication, with the cut `{name}`. Check that it is the right file, or use another cut."
            )]
        );
        assert_eq!(Cut::of(name), Some(kind));
    }
}

// --- Bad documents -----------------------------------------------------------------------------

#[test]
fn bad_documents_are_refused() {
    let rdf = |about: &str| {
        format!(
            "<rdf:RDF {NS} xmlns:e='http://e/'>\n<rdf:Description rdf:about='{about}'><e:p>x</e:p></rdf:Description></rdf:RDF>"
        )
    };
    let json =
        "JSON that is neither a feed nor JSON-LD: nothing in it is a triple. Give it a @context";
    let cases: [(&str, &[u8], &str); 22] = [
        (
            "a.rdf",
            b"<rdf:RDF xmlns:rdf='http://www.w3.org/1999/02/22-rdf-syntax-ns#'><rdf:Description>",
            ":1:83: not valid XML: no element found.",
        ),
        ("a.rdf", b"<e:A xmlns:e='urn:e:'>\n<e:p></e:q></e:A>", ":2:6: not valid XML: "),
        (
            "a.rdf",
            b"<e:A xmlns:e='urn:e:'/>\n<e:A xmlns:e='urn:e:'/>",
            ":2:1: not valid XML: junk after",
        ),
        ("a.rdf", b"<e:A xmlns:e='urn:e:'>\n\n<e:p>&x;</e:p></e:A>", ":3:9: not valid RDF/XML: "),
        ("a.ttl", b"<urn:a> <urn:b> \"no end", ":1:17: not valid Turtle: "),
        ("a.trig", b"{ <urn:a> <urn:b> ", ":1:19: not valid TriG: "),
        ("a.jsonld", b"{\"@id\": ", ":1:9: not valid JSON-LD: "),
        (
            "a.ttl",
            b"<urn:a> <urn:b> 1 .\n<urn:a> <urn:b> \"caf\xe9\" .",
            ":2:21: not UTF-8. Save the document as UTF-8.",
        ),
        ("a.jsonld", b"{\"@id\": \"urn:caf\xe9\"}", ":1:"),
        ("a.ttl", b"\n <a> <urn:b> 5 .", ":2:2: a relative IRI. Write the whole IRI, or"),
        ("a.rdf", &rdf("a").into_bytes(), ":2:22: a relative IRI (a). Write the whole IRI, or"),
        ("a.jsonld", b"{\n \"@id\": \"a\", \"urn:p\": 5}", ":2:2: a relative IRI (a). "),
        (
            "a.nt",
            b"<a> <urn:b> <urn:c> .\n",
            ":1:1: a relative IRI. Write the whole IRI. Correct the line",
        ),
        ("a.ttl", b"", ": the file is empty. Remove or fill it."),
        ("a.nq", b" \n\t", ": the file is empty. Remove or fill it."),
        ("<stdin>", b"\xef\xbb\xbf\n", ": nothing came in. Pipe a document into it."),
        ("a.jsonld", b"\n\n", ": the file is empty. Remove or fill it."),
        ("a.rdf", b"\n", ": the file is empty. Remove or fill it."),
        (
            "a.jsonld",
            b"{\"@context\": \"https://schema.org/\", \"@id\": \"urn:a\", \"name\": \"x\"}",
            ":1:2: a remote JSON-LD context. Put the context into",
        ),
        ("a.jsonld", b"[1, 2, 3]", &format!(": {json}")),
        ("a.jsonld", b"5", &format!(": {json}")),
        ("a.jsonld", b"{\"a\": ", ":1:7: not valid JSON-LD: "),
    ];
    for (name, text, expected) in cases {
        let (found, faults) = read(name, text);
        assert_eq!((found.len(), faults.len()), (0, 1), "{name} {faults:?}");
        assert!(faults[0].starts_with(expected), "{name} {expected} {faults:?}");
    }
    assert!(read("a.trig", "{ <urn:a> <urn:b> ").1[0].ends_with(REMEDY));
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
            let kind = [Cut::Auto, Cut::Document, Cut::Graph][below(3)];
            let options = Options { cut: kind, ..Options::default() };
            let mut reader = Reader::new(Cursor::new(text.clone()), syntax, options);
            while reader.next(None, &mut out) != Next::End {
                assert!(!out.triples.is_empty());
                reader.faults();
            }
        }
    }
}
