//! Reading RDF documents of any syntax into publications of term ids.
//!
//! A [`Reader`] returns one publication after the other. All terms are local to the publication
//! until [`Publication::adopt`] looks them up in a dictionary, so reading needs no lock. N-Triples
//! and N-Quads are streamed ([`crate::ntriples`]), and a bad line is skipped. Documents in other
//! syntaxes are held in memory and checked ([`crate::precheck`]) before a parser reads them. The first
//! fault ends such a document.
//!
//! Cost: that of [`crate::ntriples`] for lines; otherwise that of the parser, and a hash and a copy of
//! each distinct term.

use crate::fault::{Fault, REMEDY, fault_at, place, place_of};
use crate::limits::{Limits, grouped};
use crate::ntriples::{LineReader, Stream, max_bytes, read_piece};
use crate::precheck::{check_json, check_nesting, check_xml};
use crate::publication::{Builder, MARK, NO_BASE, Publication};
use memchr::memchr;
use oxrdf::Quad;
use oxrdfio::{RdfFormat, RdfParseError, RdfParser, ReaderQuadParser};
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All terms of a document together may have this many bytes, plus this many times its size.
const EXPANSION: (usize, usize) = (1 << 28, 128);

/// How a document is split into publications: by graph if the syntax has named graphs and otherwise
/// not at all; not at all; by graph. Python implements other ways.
const SPLITS: [&str; 3] = ["auto", "document", "graph"];

/// The split of a name, if the core implements it.
pub fn split_of(name: &str) -> Option<&'static str> {
    SPLITS.into_iter().find(|split| *split == name)
}

/// How a document is read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The document's name. It is the id of a publication that is the whole document.
    pub source: String,
    /// How the document is split into publications.
    pub split_by: &'static str,
    /// The absolute IRI against which relative IRIs are resolved.
    pub base: Option<String>,
    /// Bounds on its size and structure.
    pub limits: Limits,
}

/// A document in memory, from which a parser reads.
struct Held {
    text: Arc<Vec<u8>>,
    /// How many bytes were read.
    at: Arc<AtomicUsize>,
    /// Whether each read ends with a line, so that the parser is in the last line that it read.
    by_line: bool,
}

impl Read for Held {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let at = self.at.load(Ordering::Relaxed);
        let rest = &self.text[at..];
        let end = memchr(b'\n', rest).filter(|_| self.by_line).map_or(rest.len(), |end| end + 1);
        let size = end.min(buffer.len());
        buffer[..size].copy_from_slice(&rest[..size]);
        self.at.store(at + size, Ordering::Relaxed);
        Ok(size)
    }
}

// --- Readers -----------------------------------------------------------------------------------

/// The statements of a document that is held.
struct Quads {
    parser: Box<ReaderQuadParser<Held>>,
    syntax: RdfFormat,
    text: Arc<Vec<u8>>,
    /// How many bytes the parser has read.
    at: Arc<AtomicUsize>,
    /// The first statement of the next publication.
    pending: Option<Quad>,
    is_empty: bool,
}

impl Quads {
    /// Checks a document, and sets up its parser.
    fn new(text: Vec<u8>, syntax: RdfFormat, options: &ReaderOptions) -> Result<Self, Fault> {
        let (is_xml, is_json) = (syntax == RdfFormat::RdfXml, is_json(syntax));
        if is_xml {
            check_xml(&text, &options.limits)?;
        } else if is_json {
            check_json(&text, &options.limits)?;
        } else {
            check_nesting(&text, &options.limits)?;
        }
        let mut parser = RdfParser::from_format(syntax);
        let substitute = (is_xml || is_json).then_some(NO_BASE);
        if let Some(base) = options.base.as_deref().or(substitute) {
            parser = parser.with_base_iri(base).map_err(|_| {
                let what = format!("the base '{base}' is not an absolute IRI");
                Fault::new(what, "Give one such as https://example.org/.")
            })?;
        }
        let (text, at) = (Arc::new(text), Arc::default());
        let held = Held { text: Arc::clone(&text), at: Arc::clone(&at), by_line: is_xml };
        let parser = Box::new(parser.for_reader(held));
        Ok(Self { parser, syntax, text, at, pending: None, is_empty: true })
    }

    /// Reads a publication. Returns whether another one follows.
    fn read(&mut self, build: &mut Builder) -> bool {
        while let Some(quad) = self.pending.take().map(Ok).or_else(|| self.parser.next()) {
            self.is_empty = false;
            let quad = match quad {
                Ok(quad) => quad,
                Err(error) => {
                    build.refuse(self.fault(error));
                    return false;
                }
            };
            match build.triple(&quad) {
                Ok(Some(triple)) => {
                    build.add(triple);
                }
                Ok(None) => {
                    self.pending = Some(quad);
                    return true;
                }
                Err(fault) => {
                    build.refuse(self.fault_of_term(fault, &build.text));
                    return false;
                }
            }
            let most = self.text.len().saturating_mul(EXPANSION.1).saturating_add(EXPANSION.0);
            if build.written > most {
                let what = "its names expand to far more than the document's size";
                build.refuse(Fault::new(what, "Give its prefixes shorter IRIs."));
            }
            if build.is_done() || build.written > most {
                return false;
            }
        }
        if self.is_empty && is_json(self.syntax) {
            let what = "the JSON is neither a feed nor JSON-LD: it contains no triple";
            build.refuse(Fault::new(what, "Give it a @context that makes its names IRIs."));
        }
        false
    }

    /// The fault of a parser's error. Errors of RDF/XML have no place, so the fault gets the last line
    /// that was read.
    fn fault(&self, error: RdfParseError) -> Fault {
        if let Err(error) = std::str::from_utf8(&self.text) {
            let remedy = "Save the document as UTF-8.";
            return fault_at("not UTF-8", remedy, &self.text, error.valid_up_to());
        }
        let error = match error {
            RdfParseError::Io(_) => {
                let name = self.syntax.name();
                let what = format!("not valid {name}: a name or text of more than 16 MB");
                return Fault::new(what, "Give the data as N-Quads.");
            }
            RdfParseError::Syntax(error) => error,
        };
        let message = error.to_string();
        let message = match message.strip_prefix("Parser error ") {
            Some(rest) => rest.split_once(": ").map_or(rest, |(_, message)| message),
            None => &message,
        };
        let start = error.location().map(|location| location.start);
        let rest = start.as_ref().and_then(|start| self.text.get(start.offset as usize..));
        let fault = Fault::of_syntax(self.syntax, message, rest.unwrap_or_default(), REMEDY);
        let read = self.at.load(Ordering::Relaxed);
        match start {
            Some(start) => fault.at(Some((start.line + 1, start.column + 1))),
            None if self.syntax == RdfFormat::RdfXml => {
                Fault { line: Some(place(&self.text, read.saturating_sub(1)).0), ..fault }
            }
            None => fault,
        }
    }

    /// The fault of a term with its place, if it is a relative IRI that is written in quotes.
    fn fault_of_term(&self, fault: Fault, key: &[u8]) -> Fault {
        let end = key.len().saturating_sub(1);
        let Some(name) = key.get(1 + NO_BASE.len()..end) else { return fault };
        let quoted = |quote: &[u8]| place_of(&self.text, &[quote, name, quote].concat());
        fault.at(quoted(b"\"").or_else(|| quoted(b"'")))
    }
}

fn is_json(syntax: RdfFormat) -> bool {
    matches!(syntax, RdfFormat::JsonLd { .. })
}

enum Input {
    Lines(LineReader),
    Quads(Quads),
    End,
}

/// Reads the publications of a document, one after the other.
pub struct Reader {
    options: ReaderOptions,
    input: Input,
    build: Builder,
    prefixes: Vec<(String, String)>,
}

impl Reader {
    /// A reader of a document in a syntax. The document is some bytes, followed by a stream. It is
    /// read at once, unless it has lines.
    pub fn new(bytes: Vec<u8>, stream: Stream, syntax: RdfFormat, options: ReaderOptions) -> Self {
        let split = options.split_by;
        let by_graph = split == "graph" || split == "auto" && syntax.supports_datasets();
        let mut build = Builder::new(syntax, options.limits, options.source.clone(), by_graph);
        let input = begin(bytes, stream, &options, &mut build).unwrap_or_else(|fault| {
            build.report(fault);
            Input::End
        });
        Self { options, input, build, prefixes: Vec::new() }
    }

    /// Reads the next publication, whose terms are all local, into `out`, and reuses its memory.
    /// Returns false if there is none.
    pub fn next(&mut self, out: &mut Publication) -> bool {
        std::mem::swap(&mut self.build.out, out);
        let is_found = self.read();
        std::mem::swap(&mut self.build.out, out);
        is_found
    }

    /// Removes and returns the faults that were found.
    pub fn faults(&mut self) -> Vec<Fault> {
        let mut faults = std::mem::take(&mut self.build.faults);
        let unlisted = std::mem::take(&mut self.build.unlisted);
        if unlisted > 0 {
            let what = format!("{} more faults are not listed", grouped(unlisted as u64));
            let remedy = "Correct those that are listed first, or name the format of the document.";
            faults.push(Fault::new(what, remedy));
        }
        faults
    }

    /// Makes a document without publications not a fault.
    pub fn allow_nothing(&mut self) {
        self.build.is_silent = false;
    }

    /// The prefixes that the document declares, and their namespaces. They are known after the
    /// last publication.
    pub fn prefixes(&self) -> &[(String, String)] {
        &self.prefixes
    }

    /// Whether the document was read to its end.
    pub fn is_at_end(&self) -> bool {
        matches!(self.input, Input::End)
    }

    fn read(&mut self) -> bool {
        loop {
            let build = &mut self.build;
            build.clear();
            let goes_on = match &mut self.input {
                Input::Lines(lines) => lines.read(build),
                Input::Quads(quads) => {
                    let goes_on = quads.read(build);
                    let owned = |(prefix, iri): (&str, &str)| (prefix.to_owned(), iri.to_owned());
                    if !goes_on {
                        self.prefixes = quads.parser.prefixes().map(owned).collect();
                    }
                    goes_on
                }
                Input::End => {
                    if std::mem::take(&mut build.is_silent) {
                        let split_by = self.options.split_by;
                        let what = format!(
                            "there is no publication in it, if it is split by `{split_by}`"
                        );
                        let remedy = "Check that it is the right file, or split it in another way.";
                        build.report(Fault { refused: false, ..Fault::new(what, remedy) });
                    }
                    return false;
                }
            };
            if !goes_on {
                self.input = Input::End;
            }
            if !build.is_refused && !build.out.triples.is_empty() && build.has_room() {
                build.is_silent = false;
                return true;
            }
        }
    }
}

/// Begins to read a document, without its byte order mark.
fn begin(
    mut bytes: Vec<u8>,
    mut stream: Stream,
    options: &ReaderOptions,
    build: &mut Builder,
) -> Result<Input, Fault> {
    let syntax = build.syntax;
    while bytes.len() < MARK.len() && read_piece(&mut stream, &mut bytes)? {}
    if bytes.starts_with(MARK) {
        bytes.drain(..MARK.len());
    }
    if matches!(syntax, RdfFormat::NTriples | RdfFormat::NQuads) {
        return Ok(Input::Lines(LineReader::new(syntax, bytes, stream)));
    }
    let most = max_bytes(&options.limits);
    while bytes.len() <= most && read_piece(&mut stream, &mut bytes)? {}
    if bytes.len() > most {
        let what = format!("larger than {} bytes", grouped(most as u64));
        let remedy =
            "Raise the limit `document_bytes`, or give the data as N-Quads, which is streamed.";
        return Err(Fault::new(what, remedy));
    }
    Ok(Input::Quads(Quads::new(bytes, syntax, options)?))
}

#[cfg(test)]
mod tests;
