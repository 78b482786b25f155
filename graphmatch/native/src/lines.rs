//! Lines of N-Triples and N-Quads, cut at their spaces and looked up.
//!
//! Most lines come as programs write them: one space between two terms, each of them written as its
//! key in the dictionary is. Such a term costs a hash and a look-up; one that nobody mentions is
//! looked at once more, whether it is a term at all, the first time that a publication says it. A line that is written otherwise (with tabs, escapes of code points, a comment, a triple term, …)
//! or that has a fault is left to the parser, alone: what is read is the same, and the line after a
//! bad one is read on.
//!
//! Cost: 5 to 8 µs for 90 triples in 11 KB, by how many terms are mentioned; one to two µs for a
//! line that is left to the parser.

use crate::dictionary::{self, ANY, Dictionary, Id};
use crate::guard::deepest_terms;
use crate::reader::{Build, Fault, graph_text, problem};
use memchr::{memchr, memchr2, memmem};
use oxrdf::{GraphName, NamedNodeRef, Quad};
use oxrdfio::RdfFormat;
use oxttl::{NQuadsParser, NTriplesParser, TurtleSyntaxError};

/// After so many bad lines and not one good one, a document is given up.
pub const HOPELESS: usize = 100;
/// What to do about a bad line.
pub(crate) const LINE_REMEDY: &str = "Correct the line; it was skipped.";
const STRING: &[u8] = b"<http://www.w3.org/2001/XMLSchema#string>";
const RDF: &[u8] = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#";

/// Why reading stopped.
pub(crate) enum Stop {
    /// There is no more text.
    End,
    /// The next publication begins.
    Graph,
    /// What comes next is of no use.
    Enough,
    /// The document is given up.
    Failed,
    /// There are many faults.
    Faults,
}

/// A line that was cut.
enum Cut {
    Triple([Id; 3]),
    /// It is of another graph than the ones before.
    Graph,
}

/// What is known of a document of lines between two pieces of it.
pub(crate) struct Lines {
    syntax: RdfFormat,
    line: u64,
    bad: usize,
    any: bool,
    /// The graph of the line before, as it is written.
    graph: Vec<u8>,
}

/// The subject of the line before.
type Subject<'a> = (&'a [u8], Id);

impl Lines {
    pub(crate) fn new(syntax: RdfFormat) -> Self {
        Self { syntax, line: 1, bad: 0, any: false, graph: Vec::new() }
    }

    /// Reads whole lines from a place on, which is moved behind what was read.
    pub(crate) fn read(
        &mut self,
        block: &[u8],
        at: &mut usize,
        build: &mut Build,
        known: Option<&Dictionary>,
    ) -> Stop {
        let mut subject: Subject<'_> = (&[], ANY);
        let mut newline = None;
        while *at < block.len() {
            let begin = *at;
            let end = match newline {
                Some(end) if end >= begin => end,
                _ => memchr(b'\n', &block[begin..]).map_or(block.len(), |end| begin + end),
            };
            newline = Some(end);
            let line = &block[begin..end];
            let mut next = end + 1;
            let triple = match self.plain(line, &mut subject, build, known) {
                Some(Cut::Triple(triple)) => Some(triple),
                Some(Cut::Graph) => return Stop::Graph,
                None => {
                    let line = match memchr(b'\r', line) {
                        Some(end) => {
                            if begin + end + 1 < next - 1 {
                                next = begin + end + 1;
                            }
                            &line[..end]
                        }
                        None => line,
                    };
                    subject = (&[], ANY);
                    match self.parsed(line, build, known) {
                        Ok(Some(Cut::Triple(triple))) => Some(triple),
                        Ok(Some(Cut::Graph)) => return Stop::Graph,
                        Ok(None) => None,
                        Err(fault) => {
                            build.faults.push(fault.of_line(self.line));
                            self.bad += 1;
                            None
                        }
                    }
                }
            };
            *at = next.min(block.len());
            self.line += 1;
            if let Some(triple) = triple {
                self.any = true;
                if !build.add(triple) {
                    subject = (&[], ANY); // no longer among the local terms
                    if !build.by_graph {
                        return Stop::Enough;
                    }
                }
            } else if self.bad == HOPELESS && !self.any {
                let what = format!("none of its first {HOPELESS} lines is {}", self.syntax.name());
                build.faults.push(Fault::new(what, "Name its syntax (`format=` or `--format`)."));
                return Stop::Failed;
            } else if build.faults.len() >= build.options.faults {
                return Stop::Faults;
            }
        }
        Stop::End
    }

    /// Cuts a line that is written plainly; `None` for any other.
    #[inline]
    fn plain<'b>(
        &mut self,
        line: &'b [u8],
        subject: &mut Subject<'b>,
        build: &mut Build,
        known: Option<&Dictionary>,
    ) -> Option<Cut> {
        let line = line.strip_suffix(b"\r").unwrap_or(line).strip_suffix(b" .")?;
        let same = subject.0.len();
        let is_same = same > 0 && line.get(same) == Some(&b' ') && line[..same] == *subject.0;
        let end = if is_same { same } else { memchr(b' ', line)? };
        let (s, rest) = (&line[..end], &line[end + 1..]);
        let end = memchr(b' ', rest)?;
        let (p, rest) = (&rest[..end], &rest[end + 1..]);
        let (o, graph) = match self.syntax {
            RdfFormat::NQuads => match rest.split_at_checked(object_end(rest)?)? {
                (o, []) => (o, &[][..]),
                (o, [b' ', graph @ ..]) if !graph.is_empty() => (o, graph),
                _ => return None,
            },
            _ => (rest, &[][..]),
        };
        let is_other = !self.is_of(graph);
        if is_other && !graph.is_empty() && !is_name(graph, true) {
            return None;
        }
        if is_other && build.open && build.by_graph {
            let is_object =
                if o.starts_with(b"\"") { is_plain_literal(o) } else { is_name(o, true) };
            let is_plain = is_object && is_name(s, true) && is_name(p, false);
            return is_plain.then_some(Cut::Graph);
        }
        let id = if is_same { subject.1 } else { name(s, true, build, known)? };
        *subject = (s, id);
        let p = name(p, false, build, known)?;
        let o = match o {
            [b'"', ..] => look_up(o, is_plain_literal, build, known)?,
            _ => name(o, true, build, known)?,
        };
        if is_other || !build.open {
            self.begin(graph, build);
        }
        Some(Cut::Triple([id, p, o]))
    }

    /// Whether the line before was of a graph.
    #[inline]
    fn is_of(&self, graph: &[u8]) -> bool {
        // Comparing nothing with nothing is slow where the machine loads what is not there.
        graph.len() == self.graph.len() && (graph.is_empty() || graph == self.graph)
    }

    /// Begins a publication with a statement of a graph, or goes on with one.
    fn begin(&mut self, graph: &[u8], build: &mut Build) {
        if !self.is_of(graph) {
            self.graph.clear();
            self.graph.extend_from_slice(graph);
        }
        if !build.open {
            build.open(graph);
        }
    }

    /// Leaves a line to the parser; `None` where it says nothing.
    fn parsed(
        &mut self,
        line: &[u8],
        build: &mut Build,
        known: Option<&Dictionary>,
    ) -> Result<Option<Cut>, Fault> {
        if matches!(line, [] | [b'#', ..]) {
            return Ok(None);
        }
        let most = build.options.limits.nesting;
        if deepest_terms(line, 0).0 > most {
            let what = format!("its triple terms nest more than {most} deep");
            return Err(problem(self.syntax, &what, LINE_REMEDY));
        }
        let quad = parse(line, self.syntax == RdfFormat::NQuads).map_err(|error| {
            let column = error.location().start.column + 1;
            problem(self.syntax, error.message(), LINE_REMEDY).at(self.line, Some(column))
        })?;
        let Some(quad) = quad else { return Ok(None) };
        let graph = graph_text(&quad);
        if build.open && build.by_graph && !self.is_of(graph.as_bytes()) {
            return Ok(Some(Cut::Graph));
        }
        self.begin(graph.as_bytes(), build);
        let s = build.term(quad.subject.as_ref().into(), known);
        let p = build.term(quad.predicate.as_ref().into(), known);
        Ok(Some(Cut::Triple([s, p, build.term(quad.object.as_ref(), known)])))
    }
}

/// The statement of a line, if it says one.
pub(crate) fn parse(line: &[u8], has_graphs: bool) -> Result<Option<Quad>, TurtleSyntaxError> {
    let mut found = None;
    if has_graphs {
        for quad in NQuadsParser::new().for_slice(line) {
            found = Some(quad?);
        }
    } else {
        for triple in NTriplesParser::new().for_slice(line) {
            found = Some(triple?.in_graph(GraphName::DefaultGraph));
        }
    }
    Ok(found)
}

/// The end of a line's first term.
fn end_of(line: &[u8]) -> usize {
    memchr(b' ', line).unwrap_or(line.len())
}

/// The end of the object that a text begins with, which something may follow.
fn object_end(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return Some(end_of(text));
    }
    let end = quote_end(text)?;
    Some(end + end_of(&text[end..]))
}

/// The place behind the closing quote of the literal that a text begins with.
#[inline]
fn quote_end(text: &[u8]) -> Option<usize> {
    let mut end = 1;
    loop {
        end += memchr2(b'"', b'\\', text.get(end..)?)?;
        if text[end] == b'"' {
            return Some(end + 1);
        }
        end += 2;
    }
}

/// The id of an IRI, or of a blank node where that may be.
#[inline]
fn name(
    text: &[u8],
    may_be_blank: bool,
    build: &mut Build,
    known: Option<&Dictionary>,
) -> Option<Id> {
    match text {
        [b'<', b'<', ..] => None,
        [b'<', ..] => look_up(text, is_iri, build, known),
        [b'_', b':', label @ ..] if may_be_blank && is_plain_label(label) => {
            Some(build.out.local.intern_hashed(text, dictionary::hash(text)))
        }
        _ => None,
    }
}

/// The id of a term; one that is not known to be one is looked at.
#[inline]
fn look_up(
    text: &[u8],
    is_valid: impl FnOnce(&[u8]) -> bool,
    build: &mut Build,
    known: Option<&Dictionary>,
) -> Option<Id> {
    let hash = dictionary::hash(text);
    match known.and_then(|dictionary| dictionary.get_hashed(text, hash)) {
        Some(id) => Some(id),
        None => build.out.local.intern_checked(text, hash, || is_valid(text)),
    }
}

/// Whether a text is a name as [`name`] takes it.
fn is_name(text: &[u8], may_be_blank: bool) -> bool {
    match text {
        [b'_', b':', label @ ..] => may_be_blank && is_plain_label(label),
        _ => is_iri(text),
    }
}

fn is_plain_label(label: &[u8]) -> bool {
    let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    label.first().is_some_and(is_word) && label.iter().all(|b| is_word(b) || *b == b'-')
}

/// Whether a text is an IRI in its brackets. What hardly needs a look is told without a parser.
fn is_iri(text: &[u8]) -> bool {
    let Some(iri) = text.strip_prefix(b"<").and_then(|text| text.strip_suffix(b">")) else {
        return false;
    };
    is_simple_iri(iri) || std::str::from_utf8(iri).is_ok_and(|iri| NamedNodeRef::new(iri).is_ok())
}

/// The characters of a host name, and those of the rest of an IRI that need no further look.
const SIMPLE: [(bool, bool); 256] = {
    let mut table = [(false, false); 256];
    let mut byte = 0u8;
    while byte < 128 {
        let is_letter = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
        let is_sign =
            matches!(byte, b'!' | b'&' | b'('..=b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@');
        table[byte as usize] = (is_letter, is_letter || is_sign);
        byte += 1;
    }
    table
};

/// Whether an IRI is one by its characters alone.
fn is_simple_iri(iri: &[u8]) -> bool {
    let is_letter = |b: &u8| SIMPLE[usize::from(*b)].0;
    let is_odd = |b: &u8| !SIMPLE[usize::from(*b)].1;
    let rest = match iri {
        [b'h', b't', b't', b'p', b's', b':', b'/', b'/', rest @ ..]
        | [b'h', b't', b't', b'p', b':', b'/', b'/', rest @ ..] => {
            let host = rest.iter().position(|b| !is_letter(b)).unwrap_or(rest.len());
            if host == 0 || !matches!(rest.get(host), None | Some(b'/' | b'#' | b'?')) {
                return false;
            }
            &rest[host..]
        }
        [b'u', b'r', b'n', b':', rest @ ..] if rest.first().is_some_and(is_letter) => rest,
        _ => return false,
    };
    match rest.iter().position(is_odd) {
        None => true,
        Some(at) => rest[at] == b'#' && !rest[at + 1..].iter().any(is_odd),
    }
}

/// Whether a text is a literal that is written as its key is.
fn is_plain_literal(text: &[u8]) -> bool {
    let Some(end) = quote_end(text) else { return false };
    is_plain_text(&text[1..end - 1])
        && match &text[end..] {
            [] => true,
            [b'@', tag @ ..] => is_plain_language(tag),
            [b'^', b'^', datatype @ ..] => is_plain_datatype(datatype),
            _ => false,
        }
}

/// Whether the text of a literal has no character that is written otherwise.
fn is_plain_text(text: &[u8]) -> bool {
    let is_odd = text.iter().fold(false, |odd, b| odd | !(b' '..=b'~').contains(b));
    if is_odd {
        let is_control = |b: &u8| *b < b' ' || *b == 0x7F;
        if text.iter().any(is_control) || std::str::from_utf8(text).is_err() {
            return false;
        }
        if memmem::find(text, b"\xef\xbf\xbe").or(memmem::find(text, b"\xef\xbf\xbf")).is_some() {
            return false;
        }
    }
    let mut at = 0;
    while let Some(next) = memchr(b'\\', text.get(at..).unwrap_or_default()) {
        at += next + 1;
        if !matches!(text.get(at), Some(b'b' | b't' | b'n' | b'f' | b'r' | b'"' | b'\\')) {
            return false;
        }
        at += 1;
    }
    true
}

fn is_plain_language(tag: &[u8]) -> bool {
    let (language, region) =
        tag.split_at(tag.len().min(if tag.get(2) == Some(&b'-') { 2 } else { 3 }));
    let is_letters = |text: &[u8]| text.iter().all(u8::is_ascii_lowercase);
    let is_region = |text: &[u8]| text.len() == 2 && is_letters(text);
    language.len() >= 2
        && is_letters(language)
        && (region.is_empty() || region.strip_prefix(b"-").is_some_and(is_region))
}

fn is_plain_datatype(iri: &[u8]) -> bool {
    if iri == STRING {
        return false;
    }
    if let Some(name) = iri.strip_prefix(RDF) {
        if matches!(name, b"langString>" | b"dirLangString>") {
            return false;
        }
    }
    is_iri(iri)
}

/// A row that may be no line: its number, where in the lines it would be, and its text.
pub type Other<'a> = (usize, usize, &'a [u8]);

/// Lines of N-Triples for rows of a table.
///
/// In a row three terms are parted by carriage returns, and a line feed ends it, so that no text of
/// a term can be taken for more than itself. Rows that may be read as other terms than these, or as
/// none, are left out: whoever calls this looks at them.
pub fn lines_of_rows(rows: &[u8]) -> (Vec<u8>, Vec<Other<'_>>) {
    let mut lines = Vec::with_capacity(rows.len() + rows.len() / 32);
    let mut others = Vec::new();
    for (number, row) in rows.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let row = row.strip_suffix(b"\n").unwrap_or(row);
        if let Some([subject, predicate, object]) = parted(row)
            && (is_one_iri(subject) || is_one_blank_node(subject))
            && is_one_iri(predicate)
            && (is_one_iri(object) || is_one_blank_node(object) || is_one_literal(object))
        {
            for term in [subject, predicate, object] {
                lines.extend_from_slice(term);
                lines.push(b' ');
            }
            lines.extend_from_slice(b".\n");
        } else {
            others.push((number, lines.len(), row));
        }
    }
    (lines, others)
}

/// The three terms of a row, if it has three.
fn parted(row: &[u8]) -> Option<[&[u8]; 3]> {
    let (subject, rest) = row.split_at_checked(memchr(b'\r', row)?)?;
    let rest = &rest[1..];
    let (predicate, rest) = rest.split_at_checked(memchr(b'\r', rest)?)?;
    let object = &rest[1..];
    memchr(b'\r', object).is_none().then_some([subject, predicate, object])
}

/// Whether a text is an IRI or is none, but is not more than one term.
fn is_one_iri(text: &[u8]) -> bool {
    text.first() == Some(&b'<') && memchr(b'>', text) == Some(text.len() - 1)
}

/// The same of a blank node.
fn is_one_blank_node(text: &[u8]) -> bool {
    text.starts_with(b"_:")
        && !text.iter().any(|&byte| byte <= b' ' || matches!(byte, b'<' | b'>' | b'"' | b'#'))
}

/// The same of a literal: after its text there is neither space nor a comment.
fn is_one_literal(text: &[u8]) -> bool {
    let Some(mut rest) = text.strip_prefix(b"\"") else { return false };
    while let Some(end) = memchr2(b'"', b'\\', rest) {
        if rest[end] == b'"' {
            let kind = &rest[end + 1..];
            return kind.is_empty()
                || kind[0] == b'@' && !kind.iter().any(|&byte| byte <= b' ' || byte == b'#')
                || kind.strip_prefix(b"^^").is_some_and(is_one_iri);
        }
        rest = rest.get(end + 2..).unwrap_or_default();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::Terms;
    use crate::reader::{Next, Options, Publication, Reader};

    /// Numbers that look random: xorshift.
    pub(crate) struct Random(pub u64);

    impl Random {
        pub(crate) fn below(&mut self, most: usize) -> usize {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            (self.0 >> 11) as usize % most
        }

        fn pick<'a, T>(&mut self, values: &'a [T]) -> &'a T {
            &values[self.below(values.len())]
        }
    }

    const SUBJECTS: [&str; 10] = [
        "<urn:a>",
        "<http://example.org/a#b>",
        "_:x",
        "_:y1",
        "<https://e.org/%20?q=1&r=2>",
        "<http://[::1]:80/é>",
        "<urn:\\u0061>",
        "\"no subject\"",
        "_:a.b",
        "",
    ];
    const PREDICATES: [&str; 5] = ["<urn:p>", "<urn:q>", "<http://e/p#q>", "_:x", "\"no\""];
    const OBJECTS: [&str; 24] = [
        "\"a text\"",
        "\"hallo\"@de",
        "\"hallo\"@de-ch",
        "\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>",
        "\"5.25\"^^<http://www.w3.org/2001/XMLSchema#decimal>",
        "\"<urn:a> <urn:b> <urn:c> .\"",
        "\"a <urn:g>\"",
        "\"a \\\"quoted\\\" text\\n\"",
        "\"naïve — 日本\"",
        "\"_:b\"",
        "\"a text\"^^<http://www.w3.org/2001/XMLSchema#string>",
        "\"\\u0061 text\"",
        "\"hallo\"@DE",
        "\"hallo\"@de-Latn-ch-1996",
        "\"hallo\"@de--ltr",
        "\"x\"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>",
        "\"tab\there\"",
        "\"\u{7F}\u{FFFE}\u{FFFF}\\b\\f\\t\\r\"",
        "\"it\\'s\"",
        "<<( <urn:a> <urn:p> _:x )>>",
        "<<( <urn:a> <urn:p> <<( <urn:a> <urn:p> \"x\" )>> )>>",
        "<urn:a> . # <urn:b>",
        "<urn:a>#",
        "\"\"",
    ];
    const GRAPHS: [&str; 5] = ["<urn:g>", "<urn:h>", "_:x", "\"no graph\"", ""];
    const ODD: [&[u8]; 26] = [
        b"\0",
        b"\t",
        b"\r",
        b"\n",
        b" ",
        b"\"",
        b"<",
        b">",
        b"\\",
        b"_",
        b".",
        b"\xff",
        b"\xc3",
        b"#",
        b":",
        b"@",
        b"^",
        b"-",
        b"%",
        b"[",
        b"A",
        b"/",
        b"?",
        b"\xef\xbf\xbe",
        b"{",
        b"1",
    ];

    fn document(random: &mut Random, graphs: bool) -> Vec<u8> {
        let mut text = Vec::new();
        let odd = [0, 0, 3, 30][random.below(4)];
        for _ in 0..random.below(5) {
            let mut pick = |values: &[&str], plain: usize| -> String {
                let plain = if random.below(100) < odd { values.len() } else { plain };
                (*random.pick(&values[..plain])).to_owned()
            };
            let mut terms = vec![pick(&SUBJECTS, 6), pick(&PREDICATES, 3)];
            terms.push(if pick(&["", "x"], 2).is_empty() {
                pick(&SUBJECTS, 6)
            } else {
                pick(&OBJECTS, 10)
            });
            let graph = pick(&GRAPHS, 3);
            if graphs && !graph.is_empty() {
                terms.push(graph);
            }
            let space = pick(&[" ", "  ", "\t"], 1);
            let end = pick(&[" .\n", " .\r\n", ".\n", " . # x\n", " .\r", "\n", " .\n#\n"], 1);
            text.extend_from_slice((terms.join(&space) + &end).as_bytes());
        }
        text
    }

    fn mutated(text: &[u8], random: &mut Random) -> Vec<u8> {
        let mut text = text.to_vec();
        for _ in 0..1 + random.below(2) {
            let at = random.below(text.len() + 1);
            match random.below(3) {
                0 if at < text.len() => drop(text.remove(at)),
                1 if at < text.len() => {
                    text[at] = random.below(256) as u8;
                }
                _ => drop(text.splice(at..at, random.pick(&ODD).iter().copied())),
            }
        }
        text
    }

    /// What the parser makes of a document, a line at a time: the triples, and how many are bad.
    fn expected(text: &[u8], graphs: bool) -> (Vec<String>, usize) {
        let (mut triples, mut bad) = (Vec::new(), 0);
        for line in text.split(|b| matches!(b, b'\n' | b'\r')) {
            match parse(line, graphs) {
                Ok(Some(quad)) => {
                    let triple = format!("{} {} {}", quad.subject, quad.predicate, quad.object);
                    if !triples.contains(&triple) {
                        triples.push(triple);
                    }
                }
                Ok(None) => {}
                Err(_) => bad += 1,
            }
        }
        (triples, bad)
    }

    fn said(publication: &Publication, dictionary: &Dictionary) -> Vec<String> {
        let terms = Terms { dictionary, local: &publication.local };
        let text = |id| String::from_utf8(terms.text(id).into_owned()).unwrap();
        let mut triples = Vec::new();
        for triple in publication.triples.iter().map(|triple| triple.map(text).join(" ")) {
            if !triples.contains(&triple) {
                triples.push(triple);
            }
        }
        triples
    }

    #[test]
    fn lines_say_what_the_parser_reads() {
        let mut random = Random(0x9E37_79B9_7F4A_7C15);
        let mut out = Publication::default();
        let options = Options { cut: crate::reader::Cut::Document, ..Options::default() };
        let mut dictionary = Dictionary::default();
        for text in ["<urn:a>", "<urn:p>", "\"a text\"", "<urn:g>", "\"hallo\"@de", "_:x"] {
            dictionary.intern(text.as_bytes());
        }
        let (mut plain, mut bad_lines) = (0, 0);
        for round in 0..20_000 {
            let graphs = round % 2 == 0;
            let syntax = if graphs { RdfFormat::NQuads } else { RdfFormat::NTriples };
            let text = document(&mut random, graphs);
            for n in 0..6 {
                let text = if n == 0 { text.clone() } else { mutated(&text, &mut random) };
                let shown = String::from_utf8_lossy(&text);
                let (triples, bad) = expected(&text, graphs);
                let mut reader = Reader::of_bytes(text.clone(), syntax, options.clone());
                reader.next(Some(&dictionary), &mut out);
                let faults = reader.faults();
                assert_eq!(said(&out, &dictionary), triples, "{shown:?}");
                assert_eq!(
                    faults.iter().filter(|f| f.refused && f.line.is_some()).count(),
                    bad,
                    "{shown:?}"
                );
                assert!(out.triples.iter().all(|t| t[0] != dictionary.get(b"_:x").unwrap()));
                plain += triples.len();
                bad_lines += bad;
            }
        }
        assert!(plain > 50_000 && bad_lines > 20_000, "{plain} {bad_lines}");
    }

    #[test]
    fn plain_lines_are_not_left_to_the_parser() {
        let mut build = Build::new(RdfFormat::NTriples, Options::default());
        for s in &SUBJECTS[..6] {
            for p in &PREDICATES[..3] {
                for o in SUBJECTS[..6].iter().chain(&OBJECTS[..10]) {
                    let line = format!("{s} {p} {o} <urn:g> .");
                    let mut lines = Lines::new(RdfFormat::NQuads);
                    assert!(
                        lines.plain(line.as_bytes(), &mut (&[], ANY), &mut build, None).is_some()
                    );
                }
            }
        }
    }

    #[test]
    #[ignore = "a measurement"]
    fn speed_of_ninety_triples() {
        let mut text = String::new();
        for n in 0..90 {
            let subject = n / 6;
            let object = match n % 3 {
                0 => format!("<http://example.org/resource/thing{}>", n * 7),
                1 => format!("\"some words about the thing number {n} and more\"@en"),
                _ => format!("\"{n}.5\"^^<http://www.w3.org/2001/XMLSchema#decimal>"),
            };
            let predicate = n % 6;
            text += &format!(
                "<http://example.org/resource/item{subject}> <http://example.org/vocabulary/property{predicate}> {object} .\n"
            );
        }
        let (mut out, options) = (Publication::default(), Options::default());
        for share in [0, 50, 100] {
            let mut dictionary = Dictionary::default();
            for (n, term) in
                text.lines().flat_map(|line| line.trim_end_matches(" .").splitn(3, ' ')).enumerate()
            {
                if n % 100 < share {
                    dictionary.intern(term.as_bytes());
                }
            }
            let mut best = u128::MAX;
            for _ in 0..5 {
                let start = std::time::Instant::now();
                for _ in 0..2000 {
                    let bytes = text.as_bytes().to_vec();
                    let mut reader = Reader::of_bytes(bytes, RdfFormat::NTriples, options.clone());
                    assert_eq!(reader.next(Some(&dictionary), &mut out), Next::Publication);
                }
                best = best.min(start.elapsed().as_nanos() / 2000);
            }
            println!("{} bytes, {share} % known: {best} ns", text.len());
        }
    }

    fn of_rows(rows: &[&str]) -> (String, Vec<usize>) {
        let text = rows.concat();
        let (lines, others) = lines_of_rows(text.as_bytes());
        (String::from_utf8(lines).unwrap(), others.into_iter().map(|other| other.0).collect())
    }

    #[test]
    fn rows_are_lines() {
        let (lines, others) = of_rows(&[
            "<a>\r<b>\r<c>\n",
            "_:a\r<b>\r_:c\n",
            "<a>\r<b>\r\"see <x> #5 . \\\" # \t it\"@en-GB\n",
            "<a>\r<b>\r\"5\"^^<http://x#y>\n",
        ]);
        assert_eq!(
            lines,
            "<a> <b> <c> .\n_:a <b> _:c .\n<a> <b> \"see <x> #5 . \\\" # \t it\"@en-GB .\n\
             <a> <b> \"5\"^^<http://x#y> .\n"
        );
        assert!(others.is_empty());
    }

    #[test]
    fn rows_that_may_be_other_terms_are_left_out() {
        let odd = [
            "<a> <b>\r<c>\r\n",
            "<a>\r<b>\r<c>\r<d>\n",
            "<a>\r<b>\n",
            "\n",
            "<a>\r<b> \"c\r\"\n",
            "<a>\r<b>\r\"c\" . # \"\n",
            "<a>\r<b>\r\"c\"^^<d> <e>\n",
            "<a>\r<b>\r\"c\\\"\n",
            "<a>\r<b>\r\"c\\\n",
            "_:a <b>\r<c>\r<d>\n",
            "<a>\r_:b\r<c>\n",
            "<<( <a> <b> <c> )>>\r<b>\r<c>\n",
            "\"a\"\r<b>\r<c>\n",
            "<a>\r<b>\r<c>#\n",
            "<a>\r<b>\r5\n",
        ];
        for row in odd {
            assert_eq!(of_rows(&[row]), (String::new(), vec![0]), "{row:?}");
        }
        let (_, others) = of_rows(&odd);
        assert_eq!(others, (0..odd.len()).collect::<Vec<_>>());
    }
}
