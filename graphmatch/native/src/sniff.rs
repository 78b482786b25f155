//! Which syntax a document is in.
//!
//! A name's extension or a media type decides where it is one that RDF syntaxes have; otherwise the
//! first bytes do. What is certainly no RDF (web pages, archives, other XML) is said to be what it
//! is. Cost: one or two microseconds for a document of lines.

use crate::reader::Fault;
use memchr::{memchr, memchr2, memmem};
use oxrdfio::{JsonLdProfileSet, RdfFormat};
use std::borrow::Cow;

/// How much of a document is looked at to tell its syntax.
pub const HEAD_BYTES: usize = 8192;
/// What to do about a document whose syntax cannot be told.
pub const NAME_IT: &str = "Name the syntax with --format (for example ttl, nq, jsonld, rdf).";
const RDF: &[u8] = b"rdf-syntax-ns#";
const OWL: &[u8] = b"www.w3.org/2002/07/owl#";
/// So many lines are looked at closely; of the others only the first and the last character.
const CLOSELY: usize = 16;

/// The syntaxes of RDF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syntax {
    /// N-Triples
    NTriples,
    /// N-Quads
    NQuads,
    /// Turtle
    Turtle,
    /// TriG
    TriG,
    /// RDF/XML
    RdfXml,
    /// JSON-LD
    JsonLd,
    /// Notation 3
    N3,
}

impl Syntax {
    /// Its name.
    pub fn name(self) -> &'static str {
        self.format().name()
    }

    /// Whether a bad line leaves the next one readable.
    pub fn has_lines(self) -> bool {
        matches!(self, Self::NTriples | Self::NQuads)
    }

    /// Whether it has named graphs, each of which the cut `auto` makes a publication.
    pub fn has_graphs(self) -> bool {
        matches!(self, Self::NQuads | Self::TriG | Self::JsonLd)
    }

    /// The syntax of a media type (`text/turtle`) or an extension (`ttl`).
    pub fn of_media_type(name: &str) -> Option<Self> {
        let format = RdfFormat::from_media_type(name);
        format.or_else(|| RdfFormat::from_extension(name.trim_start_matches('.'))).map(Self::of)
    }

    /// The syntax that a file name's extension says, if it says one.
    pub fn of_name(name: &str) -> Option<Self> {
        let file = name.rsplit('/').next()?;
        let extension = file.rsplit_once('.')?.1.to_ascii_lowercase();
        match extension.as_str() {
            "xml" | "json" | "txt" => None, // may be a feed, or anything: the content decides
            "owl" => Some(Self::RdfXml),
            _ => RdfFormat::from_extension(&extension).map(Self::of),
        }
    }

    fn of(format: RdfFormat) -> Self {
        match format {
            RdfFormat::NTriples => Self::NTriples,
            RdfFormat::NQuads => Self::NQuads,
            RdfFormat::Turtle => Self::Turtle,
            RdfFormat::TriG => Self::TriG,
            RdfFormat::RdfXml => Self::RdfXml,
            RdfFormat::N3 => Self::N3,
            _ => Self::JsonLd,
        }
    }

    /// The parser's name of it.
    pub(crate) fn format(self) -> RdfFormat {
        match self {
            Self::NTriples => RdfFormat::NTriples,
            Self::NQuads => RdfFormat::NQuads,
            Self::Turtle => RdfFormat::Turtle,
            Self::TriG => RdfFormat::TriG,
            Self::RdfXml => RdfFormat::RdfXml,
            Self::JsonLd => RdfFormat::JsonLd { profile: JsonLdProfileSet::empty() },
            Self::N3 => RdfFormat::N3,
        }
    }
}

/// The syntax of a document by its name, or else its beginning; `None` where neither tells, as of
/// XML without RDF's namespace.
pub fn sniff(name: Option<&str>, head: &[u8]) -> Option<Syntax> {
    name.and_then(Syntax::of_name).or_else(|| of_content(head)).or_else(|| {
        let is_json = name.is_some_and(|name| name.to_ascii_lowercase().ends_with(".json"));
        is_json.then_some(Syntax::JsonLd)
    })
}

/// The same; what is none of RDF's syntaxes is said to be what it is.
pub fn tell(name: &str, head: &[u8], remedy: &str) -> Result<Syntax, Fault> {
    match foreign(head, Syntax::of_name(name)) {
        Some(fault) => Err(fault),
        None => sniff(Some(name), head).ok_or_else(|| {
            let what = "neither its name nor its content tells an RDF syntax or a feed format";
            Fault::new(what, remedy)
        }),
    }
}

/// The syntax that a document's beginning looks like. Turtle is taken for TriG, which it is a part
/// of, and N-Triples for N-Quads.
pub fn of_content(head: &[u8]) -> Option<Syntax> {
    let head = decoded(head);
    let body = head.trim_ascii_start();
    if is_xml(body) {
        return memmem::find(body, RDF).map(|_| Syntax::RdfXml);
    }
    if is_json(body) {
        return Some(Syntax::JsonLd);
    }
    let body = after_comments(body);
    if is_of_lines(body) {
        return Some(Syntax::NQuads);
    }
    is_text(body).then_some(Syntax::TriG)
}

/// What a document certainly is, if that is no RDF: a web page, an archive, other XML, UTF-16.
/// XML that is said to be RDF/XML need not name RDF's namespace, but its root has to have one.
pub fn foreign(head: &[u8], said: Option<Syntax>) -> Option<Fault> {
    if begins_with_statement(head) {
        return None;
    }
    const BINARY: [(&[u8], &str); 5] = [
        (b"\x1f\x8b", "compressed with gzip"),
        (b"BZh", "compressed with bzip2"),
        (b"\xfd7zXZ\0", "compressed with xz"),
        (b"\x28\xb5\x2f\xfd", "compressed with zstd"),
        (b"PK\x03\x04", "a ZIP archive"),
    ];
    if let Some((_, what)) = BINARY.iter().find(|(start, _)| head.starts_with(start)) {
        return Some(Fault::new(*what, "Unpack it first."));
    }
    let text = decoded(head);
    let body = text.trim_ascii_start();
    if !is_xml(body) {
        let what = "UTF-16 or UTF-32, where this syntax is always in UTF-8";
        return is_wide(head).then(|| Fault::new(what, "Save the document as UTF-8."));
    }
    let root = root(body);
    let has_root = root.is_some();
    let root = root.unwrap_or_default();
    let name = root.split(|b| !is_word(*b) && !b".:-".contains(b)).next().unwrap_or_default();
    if starts_caseless(body, b"<!doctype html") || name.eq_ignore_ascii_case(b"html") {
        return Some(Fault::new(
            "an HTML page, not RDF or a feed",
            "Give the address of the data itself; a page often names its feed in a <link>.",
        ));
    }
    let in_namespace = name.contains(&b':') || memmem::find(root, b"xmlns").is_some();
    if memmem::find(body, RDF).is_some() {
        return None;
    }
    let is_said = said == Some(Syntax::RdfXml);
    if memmem::find(body, OWL).is_some() && (!is_said || name == b"Ontology") {
        return Some(Fault::new(
            "OWL/XML, which is no RDF syntax",
            "Save the ontology as RDF/XML or Turtle.",
        ));
    }
    if !has_root || is_said && in_namespace {
        return None;
    }
    let name = String::from_utf8_lossy(name);
    Some(Fault::new(
        format!("XML, but neither RDF/XML nor a feed: its root is <{name}>"),
        "Give RDF (Turtle, RDF/XML, JSON-LD, N-Quads, …) or a feed (RSS, Atom, JSON Feed).",
    ))
}

/// Whether a document begins as N-Triples mostly does, and nothing else: with an IRI and a space.
fn begins_with_statement(head: &[u8]) -> bool {
    match head {
        [b'_', b':', other, ..] => *other != 0,
        [b'<', letter, ..] if letter.is_ascii_alphabetic() => {
            let end = head.iter().position(|b| b.is_ascii_whitespace() || *b == b'>');
            end.is_some_and(|end| {
                head[end] == b'>'
                    && matches!(head.get(end + 1), Some(b' ' | b'\t'))
                    && head[..end].contains(&b':')
            })
        }
        _ => false,
    }
}

/// Whether a document begins like UTF-16 or UTF-32: with its mark, or with every other byte zero.
fn is_wide(head: &[u8]) -> bool {
    let start = &head[..head.len().min(32)];
    let zeros = |from: usize| start.iter().skip(from).step_by(2).all(|b| *b == 0);
    let marks: [&[u8]; 3] = [b"\xff\xfe", b"\xfe\xff", b"\0\0\xfe\xff"];
    marks.iter().any(|mark| head.starts_with(mark)) || head.len() >= 4 && zeros(0) != zeros(1)
}

/// The text without its mark, in UTF-8 where it is UTF-16; bytes above 127 may be anything.
fn decoded(head: &[u8]) -> Cow<'_, [u8]> {
    let wide = |at: usize, low: usize| -> Cow<'_, [u8]> {
        let units =
            head[at..].chunks_exact(2).map(|pair| u16::from_be_bytes([pair[1 - low], pair[low]]));
        Cow::Owned(
            char::decode_utf16(units)
                .map(|c| c.unwrap_or('\u{FFFD}'))
                .collect::<String>()
                .into_bytes(),
        )
    };
    match head {
        [0xEF, 0xBB, 0xBF, rest @ ..] => Cow::Borrowed(rest),
        [0xFF, 0xFE, 0, 0, ..] | [0, 0, 0xFE, 0xFF, ..] => {
            Cow::Owned(head.iter().skip(4).copied().filter(|b| *b != 0).collect())
        }
        [0xFF, 0xFE, ..] => wide(2, 0),
        [0xFE, 0xFF, ..] => wide(2, 1),
        [b'<', 0, ..] => wide(0, 0),
        [0, b'<', ..] => wide(0, 1),
        _ => Cow::Borrowed(head),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn starts_caseless(text: &[u8], start: &[u8]) -> bool {
    text.get(..start.len()).is_some_and(|text| text.eq_ignore_ascii_case(start))
}

fn is_xml(body: &[u8]) -> bool {
    let at_word = |start: &[u8]| {
        starts_caseless(body, start) && !body.get(start.len()).copied().is_some_and(is_word)
    };
    if at_word(b"<?xml") || at_word(b"<!DOCTYPE") || body.starts_with(b"<!--") {
        return true;
    }
    let Some(rest) = body.strip_prefix(b"<") else { return false };
    if !rest.first().is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_') {
        return false;
    }
    let end = rest.iter().position(|b| !is_word(*b) && !b".:-".contains(b)).unwrap_or(rest.len());
    let (name, rest) = rest.split_at(end);
    if rest.first() == Some(&b'>') {
        return !name.contains(&b':') && memmem::find(rest, b"</").is_some();
    }
    let attribute = rest.trim_ascii_start();
    if attribute.len() == rest.len() {
        return false;
    }
    let end = attribute.iter().position(|b| !is_word(*b) && !b".:-".contains(b)).unwrap_or(0);
    end > 0 && attribute[end..].trim_ascii_start().starts_with(b"=")
}

/// The tag of an XML document's root, without its `<`, as far as it is there.
fn root(mut body: &[u8]) -> Option<&[u8]> {
    loop {
        body = body.trim_ascii_start();
        let skip = |end: &[u8]| memmem::find(body, end).map(|at| at + end.len());
        let end = if body.starts_with(b"<?") {
            skip(b"?>")?
        } else if body.starts_with(b"<!--") {
            skip(b"-->")?
        } else if starts_caseless(body, b"<!doctype") {
            let mut balance = 0;
            1 + body.iter().position(|b| {
                balance += i32::from(*b == b'<') - i32::from(*b == b'>');
                balance == 0
            })?
        } else {
            let tag = body.strip_prefix(b"<")?;
            let end = memchr(b'>', tag).unwrap_or(tag.len());
            return tag.first().is_some_and(|b| is_word(*b)).then(|| &tag[..end]);
        };
        body = &body[end..];
    }
}

fn is_json(body: &[u8]) -> bool {
    let next = |rest: &[u8]| rest.trim_ascii_start().first().copied();
    match body {
        [b'{', rest @ ..] => matches!(next(rest), Some(b'"' | b'}')),
        [b'[', rest @ ..] => matches!(next(rest), Some(b'[' | b'{' | b'"' | b'-' | b'0'..=b'9')),
        _ => false,
    }
}

fn after_comments(mut body: &[u8]) -> &[u8] {
    loop {
        body = body.trim_ascii_start();
        if body.first() != Some(&b'#') {
            return body;
        }
        body = &body[memchr(b'\n', body).unwrap_or(body.len())..];
    }
}

/// Whether most lines are statements of N-Quads, and none is one that only Turtle has; the last
/// line may be cut off.
fn is_of_lines(body: &[u8]) -> bool {
    let (mut all, mut good) = (0, 0);
    let mut rest = body;
    while !rest.is_empty() {
        let end = memchr2(b'\n', b'\r', rest);
        let line = rest[..end.unwrap_or(rest.len())].trim_ascii();
        rest = end.map_or(&[], |end| &rest[end + 1..]);
        if matches!(line.first(), None | Some(b'#')) {
            continue;
        }
        if is_directive(line) {
            return false;
        }
        let is_good = if all < CLOSELY {
            is_statement(line)
        } else {
            matches!(line[0], b'<' | b'_') && (line.ends_with(b".") || line.contains(&b'#'))
        };
        if is_good || all == 0 || end.is_some() {
            all += 1;
            good += usize::from(is_good);
        }
    }
    2 * good > all
}

/// Whether a line says a prefix or a base.
fn is_directive(line: &[u8]) -> bool {
    let after = |word: &[u8]| starts_caseless(line, word).then(|| &line[word.len()..]);
    match line.first() {
        Some(b'@') => after(b"@prefix").or(after(b"@base")).is_some(),
        Some(b'b' | b'B') => {
            after(b"base").is_some_and(|rest| rest.trim_ascii_start().starts_with(b"<"))
        }
        Some(b'p' | b'P') => after(b"prefix").is_some_and(|rest| {
            let name = rest.trim_ascii_start();
            let colon = name.iter().position(|b| !is_word(*b) && !b".-".contains(b));
            name.len() < rest.len()
                && colon.is_some_and(|at| {
                    name[at] == b':' && name[at + 1..].trim_ascii_start().starts_with(b"<")
                })
        }),
        _ => false,
    }
}

/// Whether a line is a statement of N-Quads, roughly.
fn is_statement(line: &[u8]) -> bool {
    let (mut rest, mut depth, mut terms) = (line, 0, 0);
    loop {
        rest = rest.trim_ascii_start();
        let until =
            |end: &[u8]| rest.iter().position(|b| end.contains(b) || b.is_ascii_whitespace());
        let length = match rest {
            [b'<', b'<', b'(', ..] if terms == 2 || depth > 0 => {
                depth += 1;
                rest = &rest[3..];
                continue;
            }
            [b')', b'>', b'>', ..] if depth > 0 => {
                depth -= 1;
                3
            }
            [b'<', ..] => match until(b">") {
                Some(end) if rest[end] == b'>' => end + 1,
                _ => return false,
            },
            [b'_', b':', ..] => until(b"").unwrap_or(rest.len()),
            [b'"', ..] if terms == 2 || depth > 0 => match literal(rest) {
                Some(length) => length,
                None => return false,
            },
            [b'.', after @ ..] => {
                let after = after.trim_ascii_start();
                return depth == 0
                    && matches!(terms, 3 | 4)
                    && (after.is_empty() || after[0] == b'#');
            }
            _ => return false,
        };
        terms += usize::from(depth == 0);
        rest = &rest[length..];
    }
}

/// The length of the literal that a text begins with.
fn literal(text: &[u8]) -> Option<usize> {
    let mut end = 1;
    loop {
        match text.get(end)? {
            b'"' => break,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
    let rest = &text[end + 1..];
    let more = match rest {
        [b'@', tag @ ..] => {
            1 + tag.iter().position(|b| !is_word(*b) && *b != b'-').unwrap_or(tag.len())
        }
        [b'^', b'^', b'<', ..] => 1 + memchr(b'>', rest)?,
        _ => 0,
    };
    Some(end + 1 + more)
}

/// Whether a text begins as Turtle or TriG do.
fn is_text(body: &[u8]) -> bool {
    let name = body.iter().position(|b| !is_word(*b) && !b".-".contains(b)).unwrap_or(body.len());
    let after = |word: &[u8]| {
        let rest = &body.get(word.len()..)?;
        let next = rest.trim_ascii_start();
        (starts_caseless(body, word) && next.len() < rest.len()).then(|| next.first()).flatten()
    };
    let at_word =
        |word: &[u8]| body.starts_with(word) && !body.get(word.len()).copied().is_some_and(is_word);
    matches!(body.first(), Some(b'<' | b'[' | b'(' | b'{'))
        || is_directive(body)
        || at_word(b"@version")
        || after(b"version").is_some_and(|b| b"\"'".contains(b))
        || after(b"graph").is_some_and(|b| is_word(*b) || b"<[".contains(b))
        || body.starts_with(b"_:") && body.get(2).copied().is_some_and(is_word)
        || body.get(name) == Some(&b':')
            && body.get(name + 1).is_some_and(|b| is_word(*b) || b"<%\\-".contains(b))
}

#[cfg(test)]
mod tests {
    use super::Syntax::*;
    use super::*;

    const NS: &str = "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"";

    #[test]
    fn names_and_media_types() {
        for (name, expected) in [
            ("a.ttl", Some(Turtle)),
            ("a.TTL", Some(Turtle)),
            ("dir.nq/a.trig", Some(TriG)),
            ("a.nt", Some(NTriples)),
            ("a.nq", Some(NQuads)),
            ("a.rdf", Some(RdfXml)),
            ("a.owl", Some(RdfXml)),
            ("a.jsonld", Some(JsonLd)),
            ("a.n3", Some(N3)),
            ("a.b.ttl", Some(Turtle)),
            ("a.xml", None),
            ("a.json", None),
            ("a.txt", None),
            ("a.rss", None),
            ("ttl", None),
            ("a.ttl/notes", None),
            ("<stdin>", None),
            ("", None),
        ] {
            assert_eq!(Syntax::of_name(name), expected, "{name}");
        }
        for (name, expected) in [
            ("text/turtle", Some(Turtle)),
            ("text/turtle; charset=utf-8", Some(Turtle)),
            ("application/n-quads", Some(NQuads)),
            ("application/rdf+xml", Some(RdfXml)),
            (
                "application/ld+json; profile=\"http://www.w3.org/ns/json-ld#streaming\"",
                Some(JsonLd),
            ),
            (".ttl", Some(Turtle)),
            ("klingon", None),
            ("", None),
            ("image/png", None),
        ] {
            assert_eq!(Syntax::of_media_type(name), expected, "{name}");
        }
        assert_eq!(sniff(Some("a.ttl"), b"<urn:a> <urn:b> <urn:c> ."), Some(Turtle));
        assert_eq!(sniff(Some("a.txt"), b"<urn:a> <urn:b> <urn:c> ."), Some(NQuads));
        assert_eq!(sniff(Some("a.json"), b"null"), Some(JsonLd));
    }

    #[test]
    fn contents() {
        let rdf = format!("<rdf:RDF {NS}/>");
        let skos = format!("<?xml version='1.0'?>\n<!-- a --><skos:ConceptScheme {NS}/>");
        for (head, expected) in [
            ("@prefix a: <urn:a> .", Some(TriG)),
            ("PREFIX a: <urn:a>", Some(TriG)),
            ("prefix : <urn:a>", Some(TriG)),
            ("@base <urn:a> .", Some(TriG)),
            ("BASE <urn:a>", Some(TriG)),
            ("VERSION \"1.2\"", Some(TriG)),
            ("# a comment\n\n  # another\n@prefix a: <urn:a> .", Some(TriG)),
            ("ex:a ex:b 5 .", Some(TriG)),
            (":a :b 5 .", Some(TriG)),
            ("_:a <urn:b> 5 .", Some(TriG)),
            ("GRAPH <urn:g> { }", Some(TriG)),
            ("<urn:g> { <urn:a> <urn:b> <urn:c> }", Some(TriG)),
            ("[ <urn:p> \"text\" ] .", Some(TriG)),
            ("{ <urn:a> <urn:b> \"text\" }", Some(TriG)),
            ("( 1 2 ) <urn:p> 5 .", Some(TriG)),
            ("<urn:a> <urn:b> <urn:c>, <urn:d> ;", Some(TriG)),
            ("<urn:a> <urn:b> <urn:c> .", Some(NQuads)),
            ("<urn:a> <urn:b> \"text\" <urn:g> .\n<urn:a>", Some(NQuads)),
            ("# a comment\n_:a <urn:b> _:c .", Some(NQuads)),
            (
                "<urn:a> <urn:b> \"1\"^^<urn:c> . # said\n\n# again\ngarbage\n<urn:a> <urn:b> \"a\"@de .\n",
                Some(NQuads),
            ),
            ("<urn:a> <urn:b> <urn:c> . <urn:a> <urn:b> 5 .", Some(TriG)),
            ("<urn:a> <urn:b> <urn:c> .\n<urn:a> a <urn:b> .\n<urn:a> a <urn:c> .", Some(TriG)),
            ("{\"@id\": \"urn:a\"}", Some(JsonLd)),
            ("\n[{\"@id\": \"urn:a\"}]", Some(JsonLd)),
            ("{}", Some(JsonLd)),
            ("[1, 2]", Some(JsonLd)),
            (&rdf, Some(RdfXml)),
            (&skos, Some(RdfXml)),
            ("<!DOCTYPE html><html>", None),
            ("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", None),
            ("<opml><head></head></opml>", None),
            ("just some prose, dear reader.", None),
            ("Base metals rose.", None),
            ("Prefix: : <urn:a>", None),
            ("SELECT * { ?s ?p ?o }", None),
            ("term,root", None),
            ("5", None),
            ("", None),
            ("\0\x01\x02", None),
        ] {
            assert_eq!(of_content(head.as_bytes()), expected, "{head}");
            assert_eq!(of_content(format!("\u{FEFF}{head}").as_bytes()), expected, "{head}");
        }
        let wide: Vec<u8> =
            format!("\u{FEFF}{rdf}").encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(of_content(&wide), Some(RdfXml));
    }

    #[test]
    fn turtle_with_a_prefix_and_full_iris_is_no_n_quads() {
        let line = "<urn:a> <urn:b> <urn:c> .\n";
        for directive in ["@prefix e: <urn:e:> .", "PREFIX e: <urn:e:>", "base<urn:e:>"] {
            for text in [
                format!("{directive}\n{}", line.repeat(50)),
                format!("{}{directive}\n", line.repeat(50)),
            ] {
                assert_eq!(of_content(text.as_bytes()), Some(TriG), "{directive}");
            }
        }
        assert_eq!(of_content(line.repeat(50).as_bytes()), Some(NQuads));
    }

    #[test]
    fn a_base_without_a_space_is_turtle() {
        assert_eq!(of_content(b"BASE<http://e/>\n<a> <b> <c> ."), Some(TriG));
        assert_eq!(of_content(b"PREFIX e:<http://e/>\n<a> <b> <c> ."), Some(TriG));
    }

    #[test]
    fn n_quads_with_triple_terms() {
        let line: &[u8] =
            b"<urn:a> <urn:b> <<( _:s <urn:p> <<( <urn:s> <urn:p> \"o\"@en )>> )>> <urn:g> .";
        assert_eq!(of_content(line), Some(NQuads));
        assert_eq!(of_content(b"<urn:a> <urn:b> <<(<urn:s> <urn:p> \"o\")>> ."), Some(NQuads));
        assert_eq!(of_content(b"<< <urn:s> <urn:p> 5 >> <urn:b> <urn:c> ."), Some(TriG));
    }

    #[test]
    fn what_is_no_rdf_is_named() {
        let what =
            |head: &[u8], said| foreign(head, said).map(|fault| fault.what).unwrap_or_default();
        let html = format!("<!-- --><html {NS}>");
        for (head, start) in [
            (&b"<!DOCTYPE html><p>"[..], "an HTML page"),
            (b"\n<HTML lang='en'>", "an HTML page"),
            (html.as_bytes(), "an HTML page"),
            (
                b"<?xml version='1.0'?><svg x='1'>",
                "XML, but neither RDF/XML nor a feed: its root is <svg>",
            ),
            (b"<Ontology xmlns='http://www.w3.org/2002/07/owl#'>", "OWL/XML"),
            (b"PK\x03\x04....", "a ZIP archive"),
            (b"\x1f\x8b\x08", "compressed with gzip"),
            (b"\xff\xfe<\0u\0r\0n\0", "UTF-16"),
            (b"<\0u\0r\0n\0:\0", "UTF-16"),
        ] {
            assert!(what(head, None).starts_with(start), "{:?}", what(head, None));
        }
        for head in [&b"<urn:a> <urn:b> 5 ."[..], b"x", b"\0", b"", b"\0\0\0\0"] {
            assert_eq!(what(head, None), "");
        }
        let book = b"<Book xmlns='http://example.org/terms#'><title>Dogs in Hats</title></Book>";
        assert_eq!(what(book, Some(RdfXml)), "");
        assert!(what(book, None).starts_with("XML, but"));
        assert!(what(b"<opml version='2.0'><body/></opml>", Some(RdfXml)).starts_with("XML, but"));
        assert_eq!(tell("a.rdf", book, NAME_IT).map_err(|fault| fault.what), Ok(RdfXml));
    }
}
