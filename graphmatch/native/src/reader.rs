//! Reading RDF documents of any syntax into publications of term ids.
//!
//! A [`Reader`] returns one publication after the other. All terms are local to the publication
//! until [`Publication::adopt`] looks them up in a dictionary, so reading needs no lock. N-Triples
//! and N-Quads are streamed ([`crate::lines`]), and a bad line is skipped. Documents in other
//! syntaxes are held in memory and checked ([`crate::guard`]) before a parser reads them. The first
//! fault ends such a document.
//!
//! Cost: that of [`crate::lines`] for lines; otherwise that of the parser, and a hash and a copy of
//! each distinct term.

use crate::dictionary::{self, Dictionary, Id, LOCAL, LocalTerms};
use crate::guard::{check_json, check_nesting, check_xml, fault_at, place, place_of, too_long};
use crate::lexical::write_term;
use crate::limits::Limits;
use crate::lines::{Lines, parse};
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use memchr::memchr;
use oxiri::IriRef;
use oxrdf::{GraphName, Quad, TermRef};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser, ReaderQuadParser};
use std::hash::BuildHasher;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of bytes that are read at once.
const PIECE: usize = 1 << 16;
/// Memory for more than this many triples or terms is not kept for the next publication.
const KEPT: usize = 1 << 16;
/// Maximum number of faults that are listed for one publication.
const MAX_FAULTS: usize = 1000;
/// The texts of one publication have fewer bytes than this.
const PUBLICATION_BYTES: usize = 1 << 31;
/// All terms of a document together may have this many bytes, plus this many times its size.
const EXPANSION: (usize, usize) = (1 << 28, 128);
/// UTF-8's byte order mark.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";
/// Documents without a base are read with this one, if the parser would drop relative IRIs or
/// could not say which one it found.
const NO_BASE: &str = "http://relative.invalid/";
pub(crate) const REMEDY: &str =
    "Correct the document there, or name its format (`format=` or `--format`).";
const BASE_REMEDY: &str =
    "Write the whole IRI, or give the document a base: in it, or with `base=` or `--base`.";

/// Triples that arrive together.
#[derive(Clone, Default)]
pub struct Publication {
    /// The name of its graph or document.
    pub id: Box<str>,
    /// All triples, in the order of the source.
    pub triples: Vec<[Id; 3]>,
    /// The terms that are not in the dictionary.
    pub local: LocalTerms,
}

impl Publication {
    /// Removes everything, and keeps a moderate amount of memory for the next publication.
    pub fn clear(&mut self) {
        self.triples.clear();
        self.triples.shrink_to(KEPT);
        if self.local.len() > KEPT {
            self.local = LocalTerms::default();
        }
        self.local.clear();
    }

    /// Replaces local ids by those of a dictionary, for the terms that it has.
    pub fn adopt(&mut self, dictionary: &Dictionary) {
        let ids = self.local.known(dictionary);
        for id in self.triples.as_flattened_mut() {
            *id = id.checked_sub(LOCAL).map_or(*id, |number| ids[number as usize]);
        }
    }

    /// Makes all ids local, because the dictionary may change.
    pub(crate) fn disown(&mut self, dictionary: &Dictionary) {
        for id in self.triples.as_flattened_mut().iter_mut().filter(|id| **id < LOCAL) {
            let text = dictionary.text(*id);
            *id = self.local.intern_hashed(&text, dictionary::hash(&text));
        }
    }

    /// Removes repeated triples.
    fn distinct(&mut self) {
        let mut seen =
            HashSet::with_capacity_and_hasher(self.triples.len(), RandomState::default());
        self.triples.retain(|triple| seen.insert(*triple));
    }
}

/// A fault of a document, its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// A description of the fault.
    pub what: String,
    /// The remedy.
    pub remedy: String,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// The column, counted from 1 in characters.
    pub column: Option<u64>,
    /// The id of the publication inside the document.
    pub item: Option<String>,
    /// Whether something was left out; otherwise the fault is a warning.
    pub refused: bool,
}

impl Fault {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (what, remedy) = (what.into(), remedy.into());
        Self { what, remedy, line: None, column: None, item: None, refused: true }
    }

    pub(crate) fn at(mut self, place: Option<(u64, u64)>) -> Self {
        (self.line, self.column) = place.unzip();
        self
    }

    /// A relative IRI, or what a parser says, at a place in the text that the parser was given.
    pub(crate) fn of_syntax(syntax: RdfFormat, message: &str, text: &[u8], remedy: &str) -> Self {
        if let Some(name) = relative_iri(text) {
            return relative(name, remedy);
        }
        let message = message.trim_end_matches('.');
        Self::new(format!("not valid {}: {message}", syntax.name()), remedy)
    }
}

/// The relative IRI in angle brackets that a text begins with.
fn relative_iri(text: &[u8]) -> Option<&str> {
    let iri = text.get(..memchr(b'>', text)?)?.strip_prefix(b"<")?;
    let iri = std::str::from_utf8(iri).ok()?;
    IriRef::parse(iri).is_ok_and(|iri| !iri.is_absolute()).then_some(iri)
}

fn relative(name: &str, remedy: &str) -> Fault {
    let line = format!("Write the whole IRI. {remedy}");
    let remedy = if remedy == REMEDY { BASE_REMEDY } else { &line };
    Fault::new(format!("a relative IRI ({name})"), remedy)
}

/// How a document is split into publications.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitBy {
    /// By graph if the syntax has named graphs, otherwise not at all.
    Auto,
    /// The whole document is one publication.
    Document,
    /// Each named graph is a publication, and so is the default graph.
    Graph,
}

impl SplitBy {
    /// The split of a name; `None` for items, subjects and components, which Python implements.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Auto, Self::Document, Self::Graph].into_iter().find(|split| split.name() == name)
    }

    /// The name of a split.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Document => "document",
            Self::Graph => "graph",
        }
    }
}

/// How a document is read.
#[derive(Clone, Debug)]
pub struct ReaderOptions {
    /// The document's name. It is the id of a publication that is the whole document.
    pub source: String,
    /// How the document is split into publications.
    pub split_by: SplitBy,
    /// The absolute IRI against which relative IRIs are resolved.
    pub base: Option<String>,
    /// Bounds on its size and structure.
    pub limits: Limits,
}

/// A number with separators of thousands.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

// --- Publications being built ------------------------------------------------------------------

/// The publication that is being read, and the faults found so far.
pub(crate) struct Builder {
    pub(crate) syntax: RdfFormat,
    pub(crate) limits: Limits,
    source: String,
    out: Publication,
    /// Whether each graph is a publication.
    by_graph: bool,
    /// Whether a publication has begun.
    is_open: bool,
    /// Whether the publication is left out because of a fault.
    is_refused: bool,
    /// The graph of the last publication, in N-Quads.
    graph: Vec<u8>,
    /// Hashes of the ids of all graphs that were read.
    graphs: HashSet<u64, RandomState>,
    faults: Vec<Fault>,
    /// How many faults are not listed.
    unlisted: usize,
    /// Whether no publication and no fault was found yet.
    is_silent: bool,
    /// Whether the document has only white space so far.
    is_blank: bool,
    /// The text of the last term, and how many bytes all terms had.
    text: Vec<u8>,
    written: usize,
}

impl Builder {
    fn clear(&mut self) {
        self.out.clear();
        self.text.clear();
        self.text.shrink_to(KEPT);
        (self.is_open, self.is_refused) = (false, false);
    }

    /// Notes whether the document has only white space so far.
    pub(crate) fn note_blank(&mut self, data: &[u8]) {
        self.is_blank = self.is_blank && data.iter().all(|b| b" \t\r\n\xef\xbb\xbf\0".contains(b));
    }

    /// Whether a statement of another graph belongs to another publication.
    #[inline]
    pub(crate) fn is_other(&self, graph: &[u8]) -> bool {
        self.is_open && self.by_graph && !self.is_last_graph(graph)
    }

    /// Whether the publication began with a statement of this graph, so that its name is valid.
    #[inline]
    pub(crate) fn is_last_graph(&self, graph: &[u8]) -> bool {
        // Comparing empty slices is slow where `memcmp` has to be loaded first.
        graph.len() == self.graph.len() && (graph.is_empty() || graph == self.graph)
    }

    /// Begins a publication with a statement of a graph, unless one has begun.
    #[inline]
    pub(crate) fn begin(&mut self, graph: &[u8]) {
        if !self.is_open {
            self.open(graph);
        }
    }

    fn open(&mut self, graph: &[u8]) {
        self.is_open = true;
        self.graph.clear();
        self.graph.extend_from_slice(graph);
        let name = String::from_utf8_lossy(graph);
        self.out.id = match name.strip_prefix("_:") {
            _ if !self.by_graph || name.is_empty() => self.source.as_str().into(),
            Some(label) => format!("{}#{label}", self.source).into(),
            None => name.trim_matches(['<', '>']).into(),
        };
        if self.by_graph && !self.graphs.insert(self.graphs.hasher().hash_one(&self.out.id)) {
            let what = "the graph's statements do not stand together: it was read as several";
            let remedy = "Sort the file by graph, so that each graph is one publication.";
            let fault = Fault { refused: false, ..Fault::new(what, remedy) };
            self.report(self.of_item(fault));
        }
    }

    fn of_item(&self, mut fault: Fault) -> Fault {
        fault.item = (*self.out.id != *self.source).then(|| self.out.id.to_string());
        fault
    }

    /// Reports a fault. Those beyond a number are counted only.
    pub(crate) fn report(&mut self, fault: Fault) {
        self.is_silent = false;
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        } else {
            self.unlisted += 1;
        }
    }

    /// Reports a fault because of which the publication is left out.
    pub(crate) fn refuse(&mut self, fault: Fault) {
        self.report(fault);
        self.is_refused = true;
        self.out.triples = Vec::new();
        self.out.local = LocalTerms::default();
    }

    /// Adds a triple. Returns whether reading should go on with its terms: if the publication is
    /// too large, local terms are dropped.
    #[inline]
    pub(crate) fn add(&mut self, triple: [Id; 3]) -> bool {
        self.out.triples.push(triple);
        let most = self.limits.publication_triples.saturating_mul(2);
        let has_room = self.out.triples.len() <= most && self.out.local.bytes() < PUBLICATION_BYTES;
        if !self.is_refused && (has_room || self.has_room()) {
            return true;
        }
        self.out.triples.clear();
        self.out.local.clear();
        false
    }

    /// Whether rest of the document is of no use, as all of it is one publication that is left out.
    pub(crate) fn is_done(&self) -> bool {
        self.is_refused && !self.by_graph
    }

    /// Whether the publication is within its limits; otherwise it is refused. Only here repeated
    /// triples are removed, so that reading needs no table of them.
    #[cold]
    fn has_room(&mut self) -> bool {
        let most = self.limits.publication_triples;
        if self.out.triples.len() > most {
            self.out.distinct();
        }
        let fault = if self.out.triples.len() > most {
            Fault::new(
                format!("a publication of more than {} triples", grouped(most as u64)),
                "Raise the limit `publication_triples`, or cut the document into smaller publications.",
            )
        } else if self.out.local.bytes() >= PUBLICATION_BYTES {
            let most = grouped(PUBLICATION_BYTES as u64);
            let what = format!("a publication of more than {most} bytes");
            Fault::new(what, "Cut the document into smaller publications.")
        } else {
            return true;
        };
        self.refuse(self.of_item(fault));
        false
    }

    /// The ids of a statement's terms; `None` if the statement belongs to another publication.
    pub(crate) fn triple(&mut self, quad: &Quad) -> Result<Option<[Id; 3]>, Fault> {
        let mut graph = Vec::new();
        match &quad.graph_name {
            GraphName::NamedNode(node) => write_term(&mut graph, node.as_ref().into()),
            GraphName::BlankNode(node) => write_term(&mut graph, node.as_ref().into()),
            GraphName::DefaultGraph => {}
        }
        if self.is_other(&graph) {
            return Ok(None);
        }
        if !self.is_last_graph(&graph) {
            check_iris(&graph, self.syntax)?;
        }
        self.begin(&graph);
        let subject = self.term(quad.subject.as_ref().into())?;
        let predicate = self.term(quad.predicate.as_ref().into())?;
        Ok(Some([subject, predicate, self.term(quad.object.as_ref())?]))
    }

    fn term(&mut self, term: TermRef<'_>) -> Result<Id, Fault> {
        self.text.clear();
        write_term(&mut self.text, term);
        self.written = self.written.saturating_add(self.text.len());
        let hash = dictionary::hash(&self.text);
        if let Some(id) = self.out.local.get_hashed(&self.text, hash) {
            return Ok(id);
        }
        let text = match term {
            TermRef::Literal(literal) => literal.value().as_bytes(),
            _ => &self.text,
        };
        if is_too_long(text, &self.limits) {
            return Err(too_long(&self.limits));
        }
        check_iris(&self.text, self.syntax)?;
        Ok(self.out.local.intern_hashed(&self.text, hash))
    }

    /// The id of a term that is written as its key, if it is valid. The check is needed only the
    /// first time that a publication has the term.
    #[inline]
    pub(crate) fn key(&mut self, key: &[u8], is_valid: impl FnOnce(&[u8]) -> bool) -> Option<Id> {
        let is_short = key.len() <= self.limits.text_characters;
        let is_valid = || is_short && is_valid(key);
        self.out.local.intern_checked(key, dictionary::hash(key), is_valid)
    }
}

/// Whether a text in UTF-8 has more characters than the limit.
pub(crate) fn is_too_long(text: &[u8], limits: &Limits) -> bool {
    let most = limits.text_characters;
    text.len() > most && text.iter().filter(|byte| **byte & 0xC0 != 0x80).count() > most
}

/// Refuses a term that has an invalid IRI although the parser accepts it: prefixed names may have
/// rare characters that IRIs may not have, and a document without a base has a substitute.
fn check_iris(text: &[u8], syntax: RdfFormat) -> Result<(), Fault> {
    if let Some(name) = text.strip_prefix(b"<").and_then(|iri| iri.strip_prefix(NO_BASE.as_bytes()))
    {
        let name = String::from_utf8_lossy(name.strip_suffix(b">").unwrap_or(name));
        return Err(relative(&name, REMEDY));
    }
    if !text.iter().fold(false, |found, byte| found | (*byte >= 0xF0)) {
        return Ok(());
    }
    parse(&[b"<urn:s> <urn:p> ", text, b" ."].concat(), false).map(drop).map_err(|error| {
        let message = format!("{} in {}", error.message(), String::from_utf8_lossy(text));
        Fault::of_syntax(syntax, &message, &[], REMEDY)
    })
}

// --- Where bytes come from ---------------------------------------------------------------------

/// The rest of a document; `None` if there is no more.
pub(crate) type Stream = Option<Box<dyn Read + Send>>;

/// Appends the next piece of a stream to a buffer. Returns false at the end.
pub(crate) fn read_piece(stream: &mut Stream, buffer: &mut Vec<u8>) -> Result<bool, Fault> {
    let Some(reader) = stream else { return Ok(false) };
    let size = buffer.len();
    buffer.resize(size + PIECE, 0);
    let more = loop {
        match reader.read(&mut buffer[size..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => break read.map_err(|error| unreadable(&error))?,
        }
    };
    buffer.truncate(size + more);
    Ok(more > 0)
}

fn unreadable(error: &io::Error) -> Fault {
    Fault::new(format!("cannot be read: {error}"), "Check the name and permissions.")
}

/// Maximum size in bytes of a document that is held, and of a line.
pub(crate) fn max_bytes(limits: &Limits) -> usize {
    limits.document_bytes.min(PUBLICATION_BYTES)
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
                let what = "its names stand for far more than is written";
                build.refuse(Fault::new(what, "Give its prefixes shorter IRIs."));
            }
            if build.is_done() || build.written > most {
                return false;
            }
        }
        if self.is_empty && is_json(self.syntax) {
            let what = "JSON that is neither a feed nor JSON-LD: nothing in it is a triple";
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
    /// The first bytes of a document, and the rest.
    New(Vec<u8>, Stream),
    Lines(Lines),
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
    /// A reader of a document in a syntax. The document is some bytes, followed by a stream.
    pub fn new(
        bytes: Vec<u8>,
        stream: Option<Box<dyn Read + Send>>,
        syntax: RdfFormat,
        options: ReaderOptions,
    ) -> Self {
        let split = options.split_by;
        let build = Builder {
            syntax,
            limits: options.limits,
            source: options.source.clone(),
            out: Publication::default(),
            by_graph: split == SplitBy::Graph
                || split == SplitBy::Auto && syntax.supports_datasets(),
            is_open: false,
            is_refused: false,
            graph: Vec::new(),
            graphs: HashSet::default(),
            faults: Vec::new(),
            unlisted: 0,
            is_silent: true,
            is_blank: true,
            text: Vec::new(),
            written: 0,
        };
        let input = Input::New(bytes, stream);
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
            let what = format!("{} more faults, which are not listed", grouped(unlisted as u64));
            faults.push(Fault::new(what, "Correct those that are listed first."));
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
                Input::New(bytes, stream) => {
                    let (bytes, stream) = (std::mem::take(bytes), stream.take());
                    match begin(bytes, stream, &self.options, build) {
                        Ok(input) => self.input = input,
                        Err(fault) => {
                            build.report(fault);
                            self.input = Input::End;
                        }
                    }
                    continue;
                }
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
                        let fault = self.nothing();
                        self.build.report(fault);
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

    fn nothing(&self) -> Fault {
        let ReaderOptions { source, split_by, .. } = &self.options;
        if self.build.is_blank && source == "<stdin>" {
            return Fault::new("nothing came in", "Pipe a document into it.");
        }
        if self.build.is_blank {
            return Fault::new("the file is empty", "Remove or fill it.");
        }
        let what = format!("it holds no publication, with the cut `{}`", split_by.name());
        let remedy = "Check that it is the right file, or use another cut.";
        Fault { refused: false, ..Fault::new(what, remedy) }
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
        return Ok(Input::Lines(Lines::new(syntax, bytes, stream)));
    }
    let most = max_bytes(&options.limits);
    while bytes.len() <= most && read_piece(&mut stream, &mut bytes)? {}
    if bytes.len() > most {
        let what = format!("larger than {} bytes", grouped(most as u64));
        let remedy =
            "Raise the limit `document_bytes`, or give the data as N-Quads, which is streamed.";
        return Err(Fault::new(what, remedy));
    }
    build.note_blank(&bytes);
    Ok(if build.is_blank { Input::End } else { Input::Quads(Quads::new(bytes, syntax, options)?) })
}

#[cfg(test)]
mod tests;
