//! Publications from bytes in any syntax of RDF, with every fault placed.
//!
//! A [`Reader`] gives one publication after the other. N-Triples, N-Quads, Turtle, TriG and N3 are
//! streamed; RDF/XML (in UTF-8) and JSON-LD are held, and looked through first ([`crate::guard`]). In
//! lines, a bad one is passed over; in other syntaxes the first fault ends the document.
//! [`read_one`] is the short way for a document in memory that is one publication.
//!
//! Cost: that of [`crate::lines`] for lines; otherwise that of the parser, and a hash and a copy of
//! each term's text.

use crate::dictionary::{ANY, Dictionary, Id, LocalTerms};
use crate::guard::{check_json, check_xml, deepest_terms, nesting, place};
use crate::lines::{LINE_REMEDY, Lines, Stop};
use foldhash::fast::RandomState;
use hashbrown::{HashSet, HashTable};
use memchr::{memchr, memmem, memrchr};
use oxrdf::{GraphName, LiteralRef, NamedNode, NamedOrBlankNode, Quad, TermRef};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser, ReaderQuadParser};
use std::hash::BuildHasher;
use std::io::{self, Chain, Cursor, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many bytes are asked for at once.
const PIECE: usize = 1 << 16;
/// More than this many triples, terms or bytes are not kept for the next publication.
const KEPT: usize = 1 << 16;
/// After so many faults the caller is to take them away.
pub const FAULTS: usize = 1000;
/// The texts of one publication have fewer bytes than this.
const PUBLICATION_BYTES: usize = 1 << 31;
/// Names may stand for so many bytes, and for so many times the bytes of the document.
const EXPANSION: (usize, usize) = (1 << 28, 128);
const RELATIVE: &str = "http://relative.invalid/";
const BASE_REMEDY: &str =
    "Write the whole IRI, or give the document a base: in it, or with --base.";

/// Something that arrives: distinct triples in the order of the source.
#[derive(Default)]
pub struct Publication {
    /// Its id: the name of its graph or document.
    pub id: Box<str>,
    /// Its triples.
    pub triples: Vec<[Id; 3]>,
    /// Its terms that nobody mentions.
    pub local: LocalTerms,
    /// The line where it begins, in syntaxes that have lines.
    pub line: Option<u64>,
}

impl Publication {
    /// Forgets all, and keeps the memory for the next one, unless it is much.
    pub fn clear(&mut self) {
        self.triples.clear();
        self.triples.shrink_to(KEPT);
        if self.local.len() > KEPT {
            self.local = LocalTerms::default();
        }
        self.local.clear();
        self.line = None;
    }
}

/// What is wrong, where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What it is.
    pub what: String,
    /// What to do.
    pub remedy: String,
    /// The line, counted from 1.
    pub line: Option<u64>,
    /// The column, counted from 1 in characters.
    pub column: Option<u64>,
    /// What inside the source.
    pub item: Option<String>,
    /// Whether something was left out; it is a warning otherwise.
    pub refused: bool,
}

impl Fault {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        let (what, remedy) = (what.into(), remedy.into());
        Self { what, remedy, line: None, column: None, item: None, refused: true }
    }

    pub(crate) fn at(mut self, line: u64, column: Option<u64>) -> Self {
        (self.line, self.column) = (Some(line), column);
        self
    }

    pub(crate) fn of_line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    fn warning(mut self) -> Self {
        self.refused = false;
        self
    }
}

/// Bounds on what one document may cost; each fault that they cause names the limit.
#[derive(Clone, Debug)]
pub struct Limits {
    /// How many bytes a document that is held may have, and a line.
    pub document_bytes: usize,
    /// How many characters XML entities may add.
    pub xml_expansion: u64,
    /// How deep XML elements may nest.
    pub xml_depth: usize,
    /// How deep the objects and lists of JSON-LD, and triple terms, may nest.
    pub nesting: usize,
    /// How many triples a publication may have.
    pub publication_triples: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document_bytes: 256 << 20,
            xml_expansion: 8 << 20,
            xml_depth: 256,
            nesting: 256,
            publication_triples: 5_000_000,
        }
    }
}

/// What of a document becomes one publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cut {
    /// A graph where the syntax has named ones, else the document.
    #[default]
    Auto,
    /// The whole document.
    Document,
    /// A named graph, and the default graph as one more.
    Graph,
}

impl Cut {
    /// The cut of a name; `None` for those by items, subjects and components, which are Python's.
    pub fn of(name: &str) -> Option<Self> {
        [Self::Auto, Self::Document, Self::Graph].into_iter().find(|cut| cut.name() == name)
    }

    /// Its name.
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
pub struct Options {
    /// Its name, which is the id of a publication that is the document.
    pub source: String,
    /// What becomes a publication.
    pub cut: Cut,
    /// What relative IRIs are resolved against; without one they are faults.
    pub base: Option<String>,
    /// What it may cost.
    pub limits: Limits,
    /// What the labels of blank nodes begin with, so that no other document has them; where this
    /// is empty they are as in the source. A letter has to come first.
    pub names: String,
    /// What to do about a fault of syntax.
    pub remedy: String,
    /// After so many faults the caller is to take them away.
    pub faults: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            source: "<stream>".to_owned(),
            cut: Cut::Auto,
            base: None,
            limits: Limits::default(),
            names: String::new(),
            remedy: "Correct the document there, or name its format with --format.".to_owned(),
            faults: FAULTS,
        }
    }
}

/// A number with its thousands apart.
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

/// Whether a bad line leaves the next one readable.
pub fn has_lines(syntax: RdfFormat) -> bool {
    matches!(syntax, RdfFormat::NTriples | RdfFormat::NQuads)
}

/// The fault that a parser's message says.
pub(crate) fn problem(syntax: RdfFormat, message: &str, remedy: &str) -> Fault {
    let is_line = remedy == LINE_REMEDY;
    if message.contains("No scheme found") {
        let name = message.split('\'').nth(1).unwrap_or_default();
        return relative(name, is_line);
    }
    if message.contains("LoadDocumentCallback") {
        let remedy = "Put the context into the document: nothing is fetched.";
        return Fault::new("a remote JSON-LD context", remedy);
    }
    if message.contains("Invalid UTF-8") || message.contains("decode input using UTF-8") {
        return Fault::new(
            "not UTF-8",
            if is_line { remedy } else { "Save the document as UTF-8." },
        );
    }
    let message = message.trim_end_matches('.');
    Fault::new(format!("not valid {}: {message}", syntax.name()), remedy)
}

fn relative(name: &str, is_line: bool) -> Fault {
    let what = match name {
        "" => "a relative IRI".to_owned(),
        _ => format!("a relative IRI ({name})"),
    };
    let line = format!("Write the whole IRI. {LINE_REMEDY}");
    Fault::new(what, if is_line { line.as_str() } else { BASE_REMEDY })
}

// --- Publications being built ------------------------------------------------------------------

/// Buffers that are used again from document to document.
#[derive(Default)]
pub struct Scratch {
    /// The numbers of the triples of a publication, each distinct triple once.
    distinct: HashTable<u32>,
    hasher: RandomState,
    text: Vec<u8>,
}

/// How far the reading of a document is.
#[derive(Default)]
pub(crate) struct State {
    pub(crate) by_graph: bool,
    /// Whether a publication has begun.
    pub(crate) open: bool,
    /// Whether it has too many triples.
    full: bool,
    bytes: usize,
    first: Option<u64>,
    ids: HashSet<u64, RandomState>,
}

impl State {
    fn new(syntax: RdfFormat, options: &Options) -> Self {
        let by_graph =
            options.cut == Cut::Graph || options.cut == Cut::Auto && syntax.supports_datasets();
        Self { by_graph, ..Self::default() }
    }
}

/// A publication that is being read, with all that it needs.
pub(crate) struct Build<'a> {
    pub(crate) dictionary: &'a Dictionary,
    pub(crate) options: &'a Options,
    pub(crate) scratch: &'a mut Scratch,
    pub(crate) state: &'a mut State,
    pub(crate) out: &'a mut Publication,
    pub(crate) faults: &'a mut Vec<Fault>,
}

impl Build<'_> {
    fn clear(&mut self) {
        self.out.clear();
        self.scratch.distinct.clear();
        self.scratch.distinct.shrink_to(KEPT, |_| 0);
        (self.state.open, self.state.full, self.state.bytes) = (false, false, 0);
    }

    /// Begins a publication, by its graph as N-Quads writes it.
    pub(crate) fn open(&mut self, graph: &[u8], line: Option<u64>) {
        self.state.open = true;
        self.out.line = line;
        let source = self.options.source.as_str();
        if !self.state.by_graph || graph.is_empty() {
            self.out.id = source.into();
        } else if let Some(label) = graph.strip_prefix(b"_:") {
            let label = String::from_utf8_lossy(label);
            self.out.id = format!("{source}#{}{label}", self.options.names).into();
        } else {
            let name = graph.get(1..graph.len() - 1).unwrap_or_default();
            self.out.id = String::from_utf8_lossy(name).into();
        }
        if !self.state.by_graph {
            return;
        }
        let id = self.dictionary.hash(self.out.id.as_bytes());
        let is_again = match self.state.first {
            Some(first) => first == id || !self.state.ids.insert(id),
            None => {
                self.state.first = Some(id);
                false
            }
        };
        if is_again {
            let fault = Fault::new(
                "the graph's statements do not stand together: it was read as several",
                "Sort the file by graph, so that each graph is one publication.",
            );
            let fault = self.of_item(fault.warning());
            self.faults.push(fault);
        }
    }

    /// A fault of the publication.
    fn of_item(&self, mut fault: Fault) -> Fault {
        fault.item = (*self.out.id != *self.options.source).then(|| self.out.id.to_string());
        fault
    }

    /// Takes a triple, whose texts have at most so many bytes; says whether there is room for it.
    #[inline]
    pub(crate) fn add(&mut self, triple: [Id; 3], bytes: usize) -> bool {
        self.state.bytes += bytes;
        if !self.state.full {
            let Scratch { distinct, hasher, .. } = &mut *self.scratch;
            let triples = &mut self.out.triples;
            let hash = hasher.hash_one(triple);
            if distinct.find(hash, |&number| triples[number as usize] == triple).is_none() {
                let rehash = |&number: &u32| hasher.hash_one(triples[number as usize]);
                distinct.insert_unique(hash, triples.len() as u32, rehash);
                triples.push(triple);
            }
            let most = self.options.limits.publication_triples;
            if triples.len() <= most && self.state.bytes < PUBLICATION_BYTES {
                return true;
            }
            self.fill();
        }
        self.out.local.clear();
        self.state.bytes = 0;
        false
    }

    #[cold]
    fn fill(&mut self) {
        let most = self.options.limits.publication_triples;
        let fault = if self.out.triples.len() > most {
            Fault::new(
                format!("a publication of more than {} triples", grouped(most as u64)),
                "Raise the limit `publication_triples`, or cut the document into smaller publications.",
            )
        } else {
            let most = grouped(PUBLICATION_BYTES as u64);
            let what = format!("a publication of more than {most} bytes");
            Fault::new(what, "Cut the document into smaller publications.")
        };
        let fault = self.of_item(fault);
        self.faults.push(fault);
        let id = std::mem::take(&mut self.out.id);
        self.out.clear();
        self.out.id = id;
        self.state.full = true;
    }

    /// The id of a blank node.
    pub(crate) fn blank(&mut self, label: &[u8]) -> Id {
        let text = &mut self.scratch.text;
        text.clear();
        text.extend_from_slice(b"_:");
        text.extend_from_slice(self.options.names.as_bytes());
        text.extend_from_slice(label);
        // A blank node is a term of its publication only, whatever it is called.
        self.out.local.intern_hashed(text, self.dictionary.hash(text))
    }

    /// The id of a term.
    pub(crate) fn term(&mut self, term: TermRef<'_>) -> Id {
        let text = &mut self.scratch.text;
        text.clear();
        let has_blank = write_term(text, term, &self.options.names);
        let hash = self.dictionary.hash(text);
        let known = if has_blank { None } else { self.dictionary.get_hashed(text, hash) };
        known.unwrap_or_else(|| self.out.local.intern_hashed(text, hash))
    }
}

/// Writes a term's key: the term as N-Triples has it. Says whether a blank node is in it. Triple
/// terms may not nest deep.
pub(crate) fn write_term(text: &mut Vec<u8>, term: TermRef<'_>, names: &str) -> bool {
    match term {
        TermRef::NamedNode(node) => {
            text.push(b'<');
            text.extend_from_slice(node.as_str().as_bytes());
            text.push(b'>');
            false
        }
        TermRef::BlankNode(node) => {
            text.extend_from_slice(b"_:");
            text.extend_from_slice(names.as_bytes());
            text.extend_from_slice(node.as_str().as_bytes());
            true
        }
        TermRef::Literal(literal) => {
            write_literal(text, literal);
            false
        }
        TermRef::Triple(triple) => {
            text.extend_from_slice(b"<<( ");
            let mut has_blank = write_term(text, triple.subject.as_ref().into(), names);
            text.push(b' ');
            write_term(text, triple.predicate.as_ref().into(), names);
            text.push(b' ');
            has_blank |= write_term(text, triple.object.as_ref(), names);
            text.extend_from_slice(b" )>>");
            has_blank
        }
    }
}

fn write_literal(text: &mut Vec<u8>, literal: LiteralRef<'_>) {
    let (value, datatype) = (literal.value(), literal.datatype());
    let is_odd = |b: &u8| *b < b' ' || matches!(b, b'"' | b'\\' | 0x7F | 0xEF);
    if value.as_bytes().iter().any(is_odd) || literal.direction().is_some() {
        write!(text, "{literal}").unwrap_or_default(); // a vector takes all
        return;
    }
    text.push(b'"');
    text.extend_from_slice(value.as_bytes());
    text.push(b'"');
    if let Some(language) = literal.language() {
        text.push(b'@');
        text.extend_from_slice(language.as_bytes());
    } else if datatype != oxrdf::vocab::xsd::STRING {
        text.extend_from_slice(b"^^<");
        text.extend_from_slice(datatype.as_str().as_bytes());
        text.push(b'>');
    }
}

// --- Where bytes come from ---------------------------------------------------------------------

/// A fault in the shape of an error of the system, to get through a parser.
#[derive(Debug)]
struct Refused(Fault);

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.what)
    }
}

impl std::error::Error for Refused {}

/// The fault of bytes that do not come.
fn unreadable(error: io::Error, syntax: RdfFormat) -> Fault {
    if error.kind() == io::ErrorKind::OutOfMemory {
        let what = format!("not valid {}: a name or text of more than 16 MB", syntax.name());
        return Fault::new(what, "Give the data as N-Quads.");
    }
    match error.downcast::<Refused>() {
        Ok(refused) => refused.0,
        Err(error) => {
            Fault::new(format!("cannot be read: {error}"), "Check the name and permissions.")
        }
    }
}

/// What is blank in a document that is empty.
fn is_blank(data: &[u8]) -> bool {
    data.iter().all(|b| b" \t\r\n\xef\xbb\xbf\0".contains(b))
}

/// Reads what there is, however often the system interrupts.
fn read_some(stream: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match stream.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            read => return read,
        }
    }
}

/// A stream whose first bytes were looked at.
type Begun<R> = Chain<Cursor<Vec<u8>>, R>;

/// Takes UTF-8's byte order mark away, which is no part of any syntax.
fn unmarked<R: Read>(mut stream: R) -> io::Result<Begun<R>> {
    let mut head = Vec::new();
    stream.by_ref().take(3).read_to_end(&mut head)?;
    if head == b"\xef\xbb\xbf" {
        head.clear();
    }
    Ok(Cursor::new(head).chain(stream))
}

/// What a parser reads from: a stream whose triple terms may not nest deep, or a document that is
/// held.
struct Source<R> {
    stream: Option<Begun<R>>,
    /// The last bytes that were given, and how many triple terms are open.
    tail: Vec<u8>,
    depth: usize,
    nesting: usize,
    held: Arc<Vec<u8>>,
    progress: Arc<Progress>,
}

/// What a parser was given.
#[derive(Default)]
struct Progress {
    bytes: AtomicUsize,
    /// Whether any of it was not blank.
    is_solid: AtomicBool,
}

impl Progress {
    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = if let Some(stream) = &mut self.stream {
            let size = read_some(stream, buffer)?;
            let piece = &buffer[..size];
            if !is_blank(piece) {
                self.progress.is_solid.store(true, Ordering::Relaxed);
            }
            self.tail.extend_from_slice(piece);
            let (deepest, depth) = deepest_terms(&self.tail, self.depth);
            if deepest > self.nesting {
                let fault = nesting("its triple terms nest", self.nesting);
                return Err(io::Error::other(Refused(fault)));
            }
            self.depth = depth;
            // A bracket may be cut in two.
            let is_whole = self.tail.ends_with(b"<<(") || self.tail.ends_with(b")>>");
            let kept = if is_whole { 0 } else { self.tail.len().min(2) };
            self.tail.drain(..self.tail.len() - kept);
            size
        } else {
            // A tag at a time, so that it is known where a parser without places is.
            let rest = self.held.get(self.progress.bytes()..).unwrap_or_default();
            let size = memchr(b'>', rest).map_or(rest.len(), |end| end + 1).min(buffer.len());
            buffer[..size].copy_from_slice(&rest[..size]);
            size
        };
        self.progress.bytes.fetch_add(size, Ordering::Relaxed);
        Ok(size)
    }
}

/// Reads a document that has to be held.
fn read_whole(mut stream: impl Read, limits: &Limits) -> Result<Vec<u8>, Fault> {
    let mut data = Vec::new();
    let most = limits.document_bytes.min(PUBLICATION_BYTES);
    let read = stream.by_ref().take(most as u64 + 1).read_to_end(&mut data);
    read.map_err(|error| unreadable(error, RdfFormat::RdfXml))?;
    if data.len() > most {
        let what = format!("larger than {} bytes", grouped(most as u64));
        let remedy =
            "Raise the limit `document_bytes`, or give the data as N-Quads, which is streamed.";
        return Err(Fault::new(what, remedy));
    }
    Ok(data)
}

// --- Readers -----------------------------------------------------------------------------------

/// What comes next from a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A publication.
    Publication,
    /// Many faults: they are to be taken away, and the next call goes on with the same publication.
    Faults,
    /// Nothing more.
    End,
}

/// Pieces of whole lines.
struct Blocks<R> {
    stream: Begun<R>,
    lines: Lines,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    is_ended: bool,
}

impl<R: Read> Blocks<R> {
    /// Gets more whole lines; says whether there are any.
    fn fill(&mut self, limits: &Limits) -> Result<bool, Fault> {
        self.buffer.drain(..self.end);
        (self.at, self.end) = (0, 0);
        while !self.is_ended {
            let size = self.buffer.len();
            let most = limits.document_bytes.min(PUBLICATION_BYTES);
            if size > most {
                let most = grouped(most as u64);
                return Err(Fault::new(
                    format!("a line of more than {most} bytes"),
                    "Raise the limit `document_bytes`, if it is meant to be so long.",
                ));
            }
            self.buffer.resize(size + PIECE, 0);
            let read = read_some(&mut self.stream, &mut self.buffer[size..]);
            let more = read.map_err(|error| unreadable(error, RdfFormat::NQuads))?;
            self.buffer.truncate(size + more);
            self.is_ended = more == 0;
            if self.is_ended {
                self.end = self.buffer.len();
            } else if let Some(end) = memrchr(b'\n', &self.buffer[size..]) {
                self.end = size + end + 1;
            }
            if self.end > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Quads of a parser.
struct Quads<R: Read> {
    parser: ReaderQuadParser<Source<R>>,
    held: Arc<Vec<u8>>,
    progress: Arc<Progress>,
    drops_relative: bool,
    /// The first one of the next publication.
    pending: Option<Quad>,
    any: bool,
    written: usize,
    graph: GraphName,
    subject: (Option<NamedOrBlankNode>, Id),
    predicate: (Option<NamedNode>, Id),
}

enum Input<R: Read> {
    New(R),
    Lines(Blocks<R>),
    Quads(Box<Quads<R>>),
    End,
}

/// Reads the publications of a document, one after the other.
pub struct Reader<R: Read> {
    syntax: RdfFormat,
    options: Options,
    input: Input<R>,
    state: State,
    scratch: Scratch,
    is_paused: bool,
    is_blank: bool,
    has_found: bool,
    has_told: bool,
}

impl<R: Read> Reader<R> {
    /// A reader of a document in a syntax.
    pub fn new(stream: R, syntax: RdfFormat, options: Options) -> Self {
        let state = State::new(syntax, &options);
        Self {
            syntax,
            options,
            input: Input::New(stream),
            state,
            scratch: Scratch::default(),
            is_paused: false,
            is_blank: true,
            has_found: false,
            has_told: false,
        }
    }

    /// Reads the next publication into `out`, whose memory is used again.
    ///
    /// The dictionary may change between two calls only where graphs or documents are publications
    /// and the last call did not end with [`Next::Faults`].
    pub fn next(
        &mut self,
        dictionary: &Dictionary,
        out: &mut Publication,
        faults: &mut Vec<Fault>,
    ) -> Next {
        let before = faults.len();
        let next = self.next_graph(dictionary, out, faults);
        self.has_found |= next == Next::Publication;
        self.has_told |= faults.len() > before;
        if next == Next::End && !self.has_found && !self.has_told {
            self.has_told = true;
            faults.push(self.nothing());
        }
        next
    }

    fn nothing(&self) -> Fault {
        if self.is_blank && self.options.source == "<stdin>" {
            return Fault::new("nothing came in", "Pipe a document into it.");
        }
        if self.is_blank {
            return Fault::new("the file is empty", "Remove or fill it.");
        }
        let what = format!("it holds no publication, with the cut `{}`", self.options.cut.name());
        Fault::new(what, "Check that it is the right file, or use another cut.").warning()
    }

    fn next_graph(
        &mut self,
        dictionary: &Dictionary,
        out: &mut Publication,
        faults: &mut Vec<Fault>,
    ) -> Next {
        let (options, state, scratch) = (&self.options, &mut self.state, &mut self.scratch);
        let mut build = Build { dictionary, options, scratch, state, out, faults };
        if !std::mem::take(&mut self.is_paused) {
            build.clear();
        }
        loop {
            let stop = match &mut self.input {
                Input::New(_) => {
                    let Input::New(stream) = std::mem::replace(&mut self.input, Input::End) else {
                        return Next::End;
                    };
                    match begin(stream, self.syntax, options) {
                        Ok(input) => self.input = input,
                        Err(fault) => build.faults.push(fault),
                    }
                    continue;
                }
                Input::Lines(blocks) => {
                    let block = &blocks.buffer[..blocks.end];
                    self.is_blank &= is_blank(&block[blocks.at.min(block.len())..]);
                    match blocks.lines.read(block, &mut blocks.at, &mut build) {
                        Stop::End => match blocks.fill(&options.limits) {
                            Ok(true) => continue,
                            Ok(false) => Stop::End,
                            Err(fault) => {
                                build.faults.push(fault);
                                Stop::Failed
                            }
                        },
                        stop => stop,
                    }
                }
                Input::Quads(quads) => {
                    let stop = quads.read(self.syntax, &mut build);
                    self.is_blank &= !quads.progress.is_solid.load(Ordering::Relaxed);
                    stop
                }
                Input::End => return Next::End,
            };
            match stop {
                Stop::Faults => {
                    self.is_paused = true;
                    return Next::Faults;
                }
                Stop::Failed => build.clear(),
                Stop::Graph | Stop::End | Stop::Enough => {}
            }
            if !matches!(stop, Stop::Graph) {
                self.input = Input::End;
            }
            if build.state.open && !build.state.full {
                return Next::Publication;
            }
            build.clear();
        }
    }
}

fn is_json(syntax: RdfFormat) -> bool {
    matches!(syntax, RdfFormat::JsonLd { .. })
}

/// Looks at a document before it is parsed, and sets up its parser.
fn begin<R: Read>(stream: R, syntax: RdfFormat, options: &Options) -> Result<Input<R>, Fault> {
    let stream = unmarked(stream).map_err(|error| unreadable(error, syntax))?;
    if has_lines(syntax) {
        let (lines, buffer) = (Lines::new(syntax), Vec::new());
        return Ok(Input::Lines(Blocks { stream, lines, buffer, at: 0, end: 0, is_ended: false }));
    }
    let (limits, progress) = (&options.limits, Arc::new(Progress::default()));
    let (held, stream) = if syntax == RdfFormat::RdfXml || is_json(syntax) {
        let data = read_whole(stream, limits)?;
        if is_blank(&data) {
            return Ok(Input::End);
        }
        match syntax {
            RdfFormat::RdfXml => check_xml(&data, &options.remedy, limits)?,
            _ => check_json(&data, limits)?,
        }
        progress.is_solid.store(true, Ordering::Relaxed);
        (Arc::new(data), None)
    } else {
        (Arc::default(), Some(stream))
    };
    let source = Source {
        stream,
        tail: Vec::new(),
        depth: 0,
        nesting: limits.nesting,
        held: Arc::clone(&held),
        progress: Arc::clone(&progress),
    };
    let drops_relative = is_json(syntax) && options.base.is_none();
    let mut parser = RdfParser::from_format(syntax);
    if let Some(base) = options.base.as_deref().or(drops_relative.then_some(RELATIVE)) {
        parser = parser.with_base_iri(base).map_err(|_| {
            let what = format!("the base '{base}' is not an absolute IRI");
            Fault::new(what, "Give one such as https://example.org/.")
        })?;
    }
    Ok(Input::Quads(Box::new(Quads {
        held,
        progress,
        parser: parser.for_reader(source),
        drops_relative,
        pending: None,
        any: false,
        written: 0,
        graph: GraphName::DefaultGraph,
        subject: (None, ANY),
        predicate: (None, ANY),
    })))
}

impl<R: Read> Quads<R> {
    fn read(&mut self, syntax: RdfFormat, build: &mut Build<'_>) -> Stop {
        (self.subject.0, self.predicate.0) = (None, None);
        loop {
            let quad = match self.pending.take().map_or_else(|| self.parser.next(), |q| Some(Ok(q)))
            {
                Some(Ok(quad)) => quad,
                Some(Err(error)) => {
                    let fault = self.fault(error, syntax, build.options);
                    build.faults.push(fault);
                    return Stop::Failed;
                }
                None if is_json(syntax) && !self.any => {
                    let what = "JSON that is neither a feed nor JSON-LD: nothing in it is a triple";
                    let remedy = "Give it a @context that makes its names IRIs.";
                    build.faults.push(Fault::new(what, remedy));
                    return Stop::Failed;
                }
                None => return Stop::End,
            };
            self.any = true;
            if self.drops_relative {
                if let Some(name) = relative_name(&quad) {
                    let at = self.place_of_name(name).unwrap_or_else(|| relative(name, false));
                    build.faults.push(at);
                    return Stop::Failed;
                }
            }
            if !build.state.open {
                let graph = match &quad.graph_name {
                    GraphName::DefaultGraph => String::new(),
                    name => name.to_string(),
                };
                build.open(graph.as_bytes(), None);
                self.graph.clone_from(&quad.graph_name);
            } else if build.state.by_graph && quad.graph_name != self.graph {
                self.pending = Some(quad);
                return Stop::Graph;
            }
            if self.subject.0.as_ref() != Some(&quad.subject) {
                self.subject.1 = build.term(quad.subject.as_ref().into());
                self.subject.0 = Some(quad.subject);
            }
            if self.predicate.0.as_ref() != Some(&quad.predicate) {
                self.predicate.1 = build.term(quad.predicate.as_ref().into());
                self.predicate.0 = Some(quad.predicate);
            }
            let object = build.term(quad.object.as_ref());
            let bytes = self.size() + build.scratch.text.len();
            self.written = self.written.saturating_add(bytes);
            let given = self.progress.bytes().saturating_mul(EXPANSION.1);
            if self.written > given.saturating_add(EXPANSION.0) {
                let what = "its names stand for far more than is written";
                build.faults.push(Fault::new(what, "Give its prefixes shorter IRIs."));
                return Stop::Failed;
            }
            if !build.add([self.subject.1, self.predicate.1, object], bytes) {
                (self.subject.0, self.predicate.0) = (None, None); // no longer among the terms
                if !build.state.by_graph {
                    return Stop::Enough;
                }
            }
        }
    }

    fn size(&self) -> usize {
        let subject = match &self.subject.0 {
            Some(NamedOrBlankNode::NamedNode(node)) => node.as_str().len(),
            _ => 0,
        };
        subject + self.predicate.0.as_ref().map_or(0, |node| node.as_str().len())
    }

    /// The fault of a parser; what it does not say of the place is looked for.
    fn fault(&self, error: RdfParseError, syntax: RdfFormat, options: &Options) -> Fault {
        let error = match error {
            RdfParseError::Io(error) => return unreadable(error, syntax),
            RdfParseError::Syntax(error) => error,
        };
        let message = error.to_string();
        let text = match message.strip_prefix("Parser error ") {
            Some(rest) => rest.split_once(": ").map_or(rest, |(_, message)| message),
            None => &message,
        };
        let fault = problem(syntax, text, &options.remedy);
        if let Some(location) = error.location() {
            return fault.at(location.start.line + 1, Some(location.start.column + 1));
        }
        if let Some((_, rest)) = message.split_once('\'').filter(|_| message.contains("No scheme"))
        {
            let name = rest.split('\'').next().unwrap_or_default();
            if let Some(fault) = self.place_of_name(name) {
                return fault;
            }
        }
        let at = if syntax == RdfFormat::RdfXml {
            let given = self.held.get(..self.progress.bytes()).unwrap_or_default();
            Some(memrchr(b'<', given).unwrap_or(given.len()))
        } else if message.contains("LoadDocumentCallback") {
            memmem::find_iter(&self.held, b"\"@context\"").find(|at| {
                let value = self.held[at + 10..].trim_ascii_start().strip_prefix(b":");
                let value = value.unwrap_or_default().trim_ascii_start();
                value.strip_prefix(b"[").unwrap_or(value).trim_ascii_start().starts_with(b"\"")
            })
        } else {
            None
        };
        match at.map(|at| place(&self.held, at)) {
            Some((line, column)) => fault.at(line, Some(column)),
            None => fault,
        }
    }

    /// The fault of a relative IRI, if it is written in the document as it was read.
    fn place_of_name(&self, name: &str) -> Option<Fault> {
        let text = &self.held[..];
        let wanted = name.strip_prefix('#').unwrap_or(name).as_bytes();
        let key = memmem::find_iter(text, wanted).find_map(|at| {
            let quote = *text.get(at + wanted.len()).filter(|b| b"\"'".contains(b))?;
            let before = text[..at].strip_suffix(b"#").unwrap_or(&text[..at]);
            let before = before.strip_suffix(&[quote])?.trim_ascii_end();
            let keys: [&[u8]; 5] = [b"about", b"resource", b"datatype", b"ID", b"\"@id\""];
            let before = match before {
                [before @ .., b'=' | b':'] => before.trim_ascii_end(),
                _ => return None,
            };
            keys.iter().find_map(|key| before.strip_suffix(*key)).map(<[u8]>::len)
        })?;
        let (line, column) = place(text, key);
        Some(relative(name, false).at(line, Some(column)))
    }
}

/// The relative IRI in a quad that was resolved against no base.
fn relative_name(quad: &Quad) -> Option<&str> {
    let subject = match &quad.subject {
        NamedOrBlankNode::NamedNode(node) => Some(node.as_str()),
        NamedOrBlankNode::BlankNode(_) => None,
    };
    let object = match quad.object.as_ref() {
        TermRef::NamedNode(node) => Some(node.as_str()),
        _ => None,
    };
    let graph = match &quad.graph_name {
        GraphName::NamedNode(node) => Some(node.as_str()),
        _ => None,
    };
    let all = [subject, Some(quad.predicate.as_str()), object, graph];
    all.into_iter().flatten().find_map(|name| name.strip_prefix(RELATIVE))
}

/// What became of a document that was read the short way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum One {
    /// It is one publication.
    Publication,
    /// It holds none; the faults say why.
    Nothing,
    /// It has more of them, or many faults: a [`Reader`] is to read it again from the start.
    Several,
}

/// Reads a document in memory that is one publication into `out`, whose memory is used again.
pub fn read_one(
    bytes: &[u8],
    syntax: RdfFormat,
    options: &Options,
    dictionary: &Dictionary,
    scratch: &mut Scratch,
    out: &mut Publication,
    faults: &mut Vec<Fault>,
) -> One {
    let before = faults.len();
    if bytes.len() > PUBLICATION_BYTES {
        return One::Several;
    }
    if !has_lines(syntax) {
        let mut reader = Reader::new(bytes, syntax, options.clone());
        std::mem::swap(&mut reader.scratch, scratch);
        let next = reader.next(dictionary, out, faults);
        std::mem::swap(&mut reader.scratch, scratch);
        return match next {
            Next::Publication if matches!(reader.input, Input::End) => One::Publication,
            Next::End => One::Nothing,
            _ => {
                faults.truncate(before);
                One::Several
            }
        };
    }
    let mut state = State::new(syntax, options);
    let mut build = Build { dictionary, options, scratch, state: &mut state, out, faults };
    build.clear();
    let mut at = if bytes.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let stop = Lines::new(syntax).read(bytes, &mut at, &mut build);
    let is_one = build.state.open && !build.state.full && !matches!(stop, Stop::Failed);
    match stop {
        Stop::Graph | Stop::Faults => {
            faults.truncate(before);
            One::Several
        }
        _ if is_one => One::Publication,
        _ => {
            if faults.len() == before {
                let mut reader = Reader::new(bytes, syntax, options.clone());
                reader.is_blank = is_blank(bytes);
                faults.push(reader.nothing());
            }
            One::Nothing
        }
    }
}

#[cfg(test)]
mod tests;
