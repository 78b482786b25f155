//! Publications from bytes in any syntax of RDF, with every fault placed.
//!
//! A [`Reader`] gives one publication after the other. Of a stream that may have to be waited for it
//! needs no dictionary: all terms are the publication's own then, until a dictionary is asked for them
//! ([`Publication::adopt`]). N-Triples, N-Quads, Turtle, TriG and N3 are streamed; RDF/XML (in UTF-8) and JSON-LD are held, and
//! looked through first ([`crate::guard`]). In lines, a bad one is passed over; in other syntaxes the
//! first fault ends the document.
//!
//! Cost: that of [`crate::lines`] for lines; otherwise that of the parser, and a hash and a copy of
//! each term's text.

use crate::dictionary::{self, ANY, Dictionary, Id, LOCAL, LocalTerms};
use crate::guard::{
    Brackets, check_json, check_xml, deepest_terms, is_too_long, nesting, place, too_long,
};
use crate::lexical::write_term;
use crate::limits::Limits;
use crate::lines::{LINE_REMEDY, Lines, Stop, parse};
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use memchr::{memmem, memrchr};
use oxrdf::{GraphName, NamedNode, NamedOrBlankNode, Quad, TermRef};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser, ReaderQuadParser};
use oxrdfxml::{RdfXmlParser, ReaderRdfXmlParser};
use std::hash::BuildHasher;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// How many bytes are asked for at once.
const PIECE: usize = 1 << 16;
/// More than this many triples, terms or bytes are not kept for the next publication.
const KEPT: usize = 1 << 16;
/// After so many faults in one publication the caller is to take them away.
pub const FAULTS: usize = 1000;
/// The texts of one publication have fewer bytes than this.
const PUBLICATION_BYTES: usize = 1 << 31;
/// Names may stand for so many bytes, and for so many times the bytes of the document.
const EXPANSION: (usize, usize) = (1 << 28, 128);
/// For each level of `nesting`, so many brackets of Turtle, TriG and N3 may be open.
const BRACKETS: usize = 512;
/// A document of so many bytes is not looked through for brackets, unless few may be open.
const SHORT: usize = 1 << 15;
/// UTF-8's byte order mark.
const MARK: &[u8] = b"\xef\xbb\xbf";
const RELATIVE: &str = "http://relative.invalid/";
const REMEDY: &str = "Correct the document there, or name its format (`format=` or `--format`).";
const BASE_REMEDY: &str =
    "Write the whole IRI, or give the document a base: in it, or with `base=` or `--base`.";

/// Something that arrives: triples in the order of the source.
#[derive(Clone, Default)]
pub struct Publication {
    /// Its id: the name of its graph or document.
    pub id: Box<str>,
    /// Its triples.
    pub triples: Vec<[Id; 3]>,
    /// Its terms that nobody mentions.
    pub local: LocalTerms,
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
    }

    /// Gives the terms that a dictionary has the ids that they have there.
    pub fn adopt(&mut self, dictionary: &Dictionary) {
        let ids = self.local.known(dictionary);
        for id in self.triples.as_flattened_mut() {
            *id = id.checked_sub(LOCAL).map_or(*id, |number| ids[number as usize]);
        }
    }

    /// Makes all terms its own, as the dictionary may change before the rest is read.
    pub(crate) fn disown(&mut self, dictionary: &Dictionary) {
        for id in self.triples.as_flattened_mut().iter_mut().filter(|id| **id < LOCAL) {
            let text = dictionary.text(*id);
            *id = self.local.intern_hashed(&text, dictionary::hash(&text));
        }
    }

    /// Takes out what is there more than once.
    fn distinct(&mut self) {
        let mut seen =
            HashSet::with_capacity_and_hasher(self.triples.len(), RandomState::default());
        self.triples.retain(|triple| seen.insert(*triple));
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

/// What of a document becomes one publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// A graph where the syntax has named ones, else the document.
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
    /// What relative IRIs are resolved against: an absolute IRI.
    pub base: Option<String>,
    /// What it may cost.
    pub limits: Limits,
    /// After so many faults in one publication the caller is to take them away.
    pub faults: usize,
}

impl Default for Options {
    fn default() -> Self {
        let (source, limits) = ("<stream>".to_owned(), Limits::default());
        Self { source, cut: Cut::Auto, base: None, limits, faults: FAULTS }
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

/// A publication that is being read, and the faults that were met.
pub(crate) struct Build {
    pub(crate) options: Options,
    pub(crate) out: Publication,
    pub(crate) faults: Vec<Fault>,
    /// Whether graphs are publications.
    pub(crate) by_graph: bool,
    /// Whether a publication has begun.
    pub(crate) open: bool,
    /// Whether it has too many triples.
    full: bool,
    /// Hashes of the ids of graphs that were read.
    graphs: HashSet<u64, RandomState>,
    /// The text of the last term.
    text: Vec<u8>,
    /// The fault of an invalid IRI that the parser accepts: prefixed names may have more characters
    /// than IRIs.
    odd: Option<String>,
}

impl Build {
    pub(crate) fn new(syntax: RdfFormat, options: Options) -> Self {
        let by_graph =
            options.cut == Cut::Graph || options.cut == Cut::Auto && syntax.supports_datasets();
        let (out, faults, text, odd) = Default::default();
        let (open, full, graphs) = (false, false, HashSet::default());
        Self { options, out, faults, by_graph, open, full, graphs, text, odd }
    }

    fn clear(&mut self) {
        self.out.clear();
        self.text.clear();
        self.text.shrink_to(KEPT);
        (self.open, self.full) = (false, false);
    }

    /// Begins a publication, by its graph as N-Quads writes it.
    pub(crate) fn open(&mut self, graph: &[u8]) {
        self.open = true;
        let source = self.options.source.as_str();
        if !self.by_graph || graph.is_empty() {
            self.out.id = source.into();
        } else if let Some(label) = graph.strip_prefix(b"_:") {
            self.out.id = format!("{source}#{}", String::from_utf8_lossy(label)).into();
        } else {
            let name = graph.get(1..graph.len() - 1).unwrap_or_default();
            self.out.id = String::from_utf8_lossy(name).into();
        }
        if self.by_graph && !self.graphs.insert(self.graphs.hasher().hash_one(&self.out.id)) {
            let fault = Fault::new(
                "the graph's statements do not stand together: it was read as several",
                "Sort the file by graph, so that each graph is one publication.",
            );
            self.fault_of_item(fault.warning());
        }
    }

    /// Tells a fault of the publication.
    fn fault_of_item(&mut self, mut fault: Fault) {
        fault.item = (*self.out.id != *self.options.source).then(|| self.out.id.to_string());
        self.faults.push(fault);
    }

    /// Takes a triple; says whether there is room for it.
    #[inline]
    pub(crate) fn add(&mut self, triple: [Id; 3]) -> bool {
        if !self.full {
            self.out.triples.push(triple);
            let limits = &self.options.limits;
            let is_short = self.out.local.bytes() < limits.text_characters
                || self.out.local.bytes() < PUBLICATION_BYTES && !self.is_long(triple);
            let most = limits.publication_triples.saturating_mul(2);
            if is_short && self.out.triples.len() <= most || self.has_room() {
                return true;
            }
        }
        self.out.local.clear();
        false
    }

    /// Whether a triple has a text that is too long.
    #[cold]
    fn is_long(&self, triple: [Id; 3]) -> bool {
        triple.iter().any(|&id| {
            let key = if id < LOCAL { &[] } else { self.out.local.text(id) };
            let end = memrchr(b'"', key).filter(|_| key.first() == Some(&b'"'));
            is_too_long(end.map_or(key, |end| &key[1..end.max(1)]), true, &self.options.limits)
        })
    }

    /// Whether the publication with its last triple is within its limits; it is given up otherwise.
    /// Triples that are said again count only here, so that no table of them is needed.
    #[cold]
    fn has_room(&mut self) -> bool {
        let is_long = self.out.triples.last().is_some_and(|&last| self.is_long(last));
        let most = self.options.limits.publication_triples;
        if self.out.triples.len() > most {
            self.out.distinct();
        }
        let fault = if self.out.triples.len() > most {
            Fault::new(
                format!("a publication of more than {} triples", grouped(most as u64)),
                "Raise the limit `publication_triples`, or cut the document into smaller publications.",
            )
        } else if is_long {
            too_long(&self.options.limits)
        } else if self.out.local.bytes() >= PUBLICATION_BYTES {
            let most = grouped(PUBLICATION_BYTES as u64);
            let what = format!("a publication of more than {most} bytes");
            Fault::new(what, "Cut the document into smaller publications.")
        } else {
            return true;
        };
        self.fault_of_item(fault);
        let id = std::mem::take(&mut self.out.id);
        self.out.clear();
        self.out.id = id;
        self.full = true;
        false
    }

    /// The id of a term.
    pub(crate) fn term(&mut self, term: TermRef<'_>, known: Option<&Dictionary>) -> Id {
        self.text.clear();
        write_term(&mut self.text, term);
        self.odd = self.odd.take().or_else(|| odd_name(&self.text));
        let (text, hash) = (&self.text, dictionary::hash(&self.text));
        let shared = known.and_then(|dictionary| dictionary.get_shared(text, hash));
        shared.unwrap_or_else(|| self.out.local.intern_hashed(text, hash))
    }
}

/// The fault of a term's text that has an invalid IRI. Only texts with rare characters are parsed.
fn odd_name(text: &[u8]) -> Option<String> {
    if !text.iter().fold(false, |found, byte| found | (*byte >= 0xF0)) {
        return None;
    }
    let error = parse(&[b"<urn:s> <urn:p> ", text, b" ."].concat(), false).err()?;
    Some(format!("{} in {}", error.message(), String::from_utf8_lossy(text)))
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

/// Where a document comes from.
type Stream = Box<dyn Read + Send>;

/// Takes UTF-8's byte order mark away, which is no part of any syntax.
fn unmarked(mut stream: Stream) -> io::Result<Stream> {
    let mut head = Vec::new();
    stream.by_ref().take(MARK.len() as u64).read_to_end(&mut head)?;
    if head == MARK {
        head.clear();
    }
    Ok(Box::new(Cursor::new(head).chain(stream)))
}

/// What a parser reads from: a stream whose triple terms may not nest deep.
struct Source {
    stream: Stream,
    /// The last bytes that were given, and how many triple terms are open.
    tail: Vec<u8>,
    depth: usize,
    /// The brackets of a syntax that has them, and what was not looked through for them yet.
    brackets: Option<(Brackets, Vec<u8>)>,
    nesting: usize,
    progress: Arc<Progress>,
}

/// What a parser was given.
#[derive(Default)]
struct Progress {
    bytes: AtomicUsize,
    /// Whether any of it was not blank.
    is_solid: AtomicBool,
}

impl Read for Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut size = 0;
        loop {
            let more = read_some(&mut self.stream, &mut buffer[size..])?;
            let is_inside = self.check(&buffer[size..size + more])?;
            size += more;
            // The parser begins a token anew with each read, so that a long one is read at once.
            if more == 0 || size == buffer.len() || !is_inside {
                return Ok(size);
            }
        }
    }
}

impl Source {
    /// Looks through the next piece; says whether it is the inside of one token.
    fn check(&mut self, piece: &[u8]) -> io::Result<bool> {
        if !is_blank(piece) {
            self.progress.is_solid.store(true, Ordering::Relaxed);
        }
        self.progress.bytes.fetch_add(piece.len(), Ordering::Relaxed);
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
        let Some((brackets, begun)) = &mut self.brackets else { return Ok(false) };
        let most = self.nesting.saturating_mul(BRACKETS);
        let given = self.progress.bytes.load(Ordering::Relaxed);
        if given <= most.min(SHORT) {
            begun.extend_from_slice(piece); // so little cannot nest so deep
            return Ok(false);
        }
        let was_inside = brackets.is_inside();
        if !brackets.read(&std::mem::take(begun), most) || !brackets.read(piece, most) {
            let fault = nesting("its brackets nest", most);
            return Err(io::Error::other(Refused(fault)));
        }
        let has_space = || piece.iter().any(u8::is_ascii_whitespace);
        Ok(was_inside && brackets.is_inside() || !has_space())
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
struct Blocks {
    stream: Stream,
    lines: Lines,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
    is_ended: bool,
}

impl Blocks {
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
struct Quads {
    parser: Parser,
    /// The document, where it is held.
    held: Arc<[u8]>,
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

/// That of RDF/XML does not say where a fault is, but how far it is.
enum Parser {
    Xml(Box<ReaderRdfXmlParser<Cursor<Arc<[u8]>>>>),
    Other(Box<ReaderQuadParser<Source>>),
}

impl Parser {
    fn next(&mut self) -> Option<Result<Quad, RdfParseError>> {
        match self {
            Self::Xml(parser) => {
                let triple = parser.next()?;
                Some(
                    triple
                        .map(|triple| triple.in_graph(GraphName::DefaultGraph))
                        .map_err(Into::into),
                )
            }
            Self::Other(parser) => parser.next(),
        }
    }

    fn prefixes(&self) -> Vec<(String, String)> {
        let owned = |(prefix, namespace): (&str, &str)| (prefix.to_owned(), namespace.to_owned());
        match self {
            Self::Xml(parser) => parser.prefixes().map(owned).collect(),
            Self::Other(parser) => parser.prefixes().map(owned).collect(),
        }
    }
}

enum Input {
    New(Stream),
    Lines(Blocks),
    Quads(Box<Quads>),
    End,
}

/// Reads the publications of a document, one after the other.
pub struct Reader {
    syntax: RdfFormat,
    input: Input,
    build: Build,
    is_paused: bool,
    is_blank: bool,
    has_found: bool,
    has_told: bool,
    prefixes: Vec<(String, String)>,
}

impl Reader {
    /// A reader of a stream in a syntax.
    pub fn new(stream: impl Read + Send + 'static, syntax: RdfFormat, options: Options) -> Self {
        Self {
            syntax,
            input: Input::New(Box::new(stream)),
            build: Build::new(syntax, options),
            is_paused: false,
            is_blank: true,
            has_found: false,
            has_told: false,
            prefixes: Vec::new(),
        }
    }

    /// A reader of a document in memory.
    pub fn of_bytes(mut bytes: Vec<u8>, syntax: RdfFormat, options: Options) -> Self {
        if !has_lines(syntax) {
            return Self::new(Cursor::new(bytes), syntax, options);
        }
        if bytes.starts_with(MARK) {
            bytes.drain(..MARK.len());
        }
        let mut reader = Self::new(io::empty(), syntax, options);
        let (stream, lines, end) = (Box::new(io::empty()), Lines::new(syntax), bytes.len());
        reader.input =
            Input::Lines(Blocks { stream, lines, buffer: bytes, at: 0, end, is_ended: true });
        reader
    }

    /// Reads the next publication into `out`, whose memory is used for it. Its terms have the ids of
    /// a dictionary if one is given; otherwise they are its own.
    pub fn next(&mut self, known: Option<&Dictionary>, out: &mut Publication) -> Next {
        let build = &mut self.build;
        let was_paused = std::mem::take(&mut self.is_paused);
        if !was_paused {
            std::mem::swap(&mut build.out, out);
            build.clear();
        }
        let next = self.read(known);
        self.has_told |= !self.build.faults.is_empty();
        match next {
            Next::Faults => {
                self.is_paused = true;
                known.inspect(|dictionary| self.build.out.disown(dictionary));
            }
            Next::Publication => {
                self.has_found = true;
                known.filter(|_| was_paused).inspect(|known| self.build.out.adopt(known));
            }
            Next::End if !self.has_found && !self.has_told => {
                self.has_told = true;
                let fault = self.nothing();
                self.build.faults.push(fault);
            }
            Next::End => {}
        }
        if next != Next::Faults {
            std::mem::swap(&mut self.build.out, out);
        }
        next
    }

    /// The faults that were met, which are taken away.
    pub fn faults(&mut self) -> Vec<Fault> {
        std::mem::take(&mut self.build.faults)
    }

    /// Takes a document without publications for no fault.
    pub fn allow_nothing(&mut self) {
        self.has_told = true;
    }

    /// The prefixes that the document declares, and their namespaces, once it is read.
    pub fn prefixes(&self) -> &[(String, String)] {
        &self.prefixes
    }

    /// Whether there is nothing more to be read.
    pub fn is_at_end(&self) -> bool {
        matches!(self.input, Input::End)
    }

    fn nothing(&self) -> Fault {
        let Options { source, cut, .. } = &self.build.options;
        if self.is_blank && source == "<stdin>" {
            return Fault::new("nothing came in", "Pipe a document into it.");
        }
        if self.is_blank {
            return Fault::new("the file is empty", "Remove or fill it.");
        }
        let what = format!("it holds no publication, with the cut `{}`", cut.name());
        Fault::new(what, "Check that it is the right file, or use another cut.").warning()
    }

    fn read(&mut self, known: Option<&Dictionary>) -> Next {
        let build = &mut self.build;
        loop {
            let stop = match &mut self.input {
                Input::New(stream) => {
                    let stream = std::mem::replace(stream, Box::new(io::empty()));
                    match begin(stream, self.syntax, &build.options) {
                        Ok(input) => self.input = input,
                        Err(fault) => {
                            build.faults.push(fault);
                            self.input = Input::End;
                        }
                    }
                    continue;
                }
                Input::Lines(blocks) => {
                    let block = &blocks.buffer[..blocks.end];
                    self.is_blank &= is_blank(&block[blocks.at.min(block.len())..]);
                    match blocks.lines.read(block, &mut blocks.at, build, known) {
                        Stop::End => match blocks.fill(&build.options.limits) {
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
                    let stop = quads.read(self.syntax, build, known);
                    self.is_blank &= !quads.progress.is_solid.load(Ordering::Relaxed);
                    stop
                }
                Input::End => return Next::End,
            };
            match stop {
                Stop::Faults => return Next::Faults,
                Stop::Failed => build.clear(),
                Stop::Graph | Stop::End | Stop::Enough => {}
            }
            if !matches!(stop, Stop::Graph) {
                if let Input::Quads(quads) = &self.input {
                    self.prefixes = quads.parser.prefixes();
                }
                self.input = Input::End;
            }
            if build.open && !build.full && build.has_room() {
                return Next::Publication;
            }
            build.clear();
        }
    }
}

fn is_json(syntax: RdfFormat) -> bool {
    matches!(syntax, RdfFormat::JsonLd { .. })
}

fn no_base(base: &str) -> Fault {
    let what = format!("the base '{base}' is not an absolute IRI");
    Fault::new(what, "Give one such as https://example.org/.")
}

/// Looks at a document before it is parsed, and sets up its parser.
fn begin(stream: Stream, syntax: RdfFormat, options: &Options) -> Result<Input, Fault> {
    let Options { limits, base, .. } = options;
    let stream = unmarked(stream).map_err(|error| unreadable(error, syntax))?;
    if has_lines(syntax) {
        let (lines, buffer) = (Lines::new(syntax), Vec::new());
        return Ok(Input::Lines(Blocks { stream, lines, buffer, at: 0, end: 0, is_ended: false }));
    }
    let progress = Arc::new(Progress::default());
    let (is_xml, is_json) = (syntax == RdfFormat::RdfXml, is_json(syntax));
    let source = |stream| {
        let progress = Arc::clone(&progress);
        let brackets = (!is_json && !is_xml).then(Default::default);
        Source { stream, tail: Vec::new(), depth: 0, brackets, nesting: limits.nesting, progress }
    };
    let mut held = Arc::default();
    let parser = if is_xml || is_json {
        let data = read_whole(stream, limits)?;
        if is_blank(&data) {
            return Ok(Input::End);
        }
        held = Arc::from(data);
        let stream = Cursor::new(Arc::clone(&held));
        if is_xml {
            check_xml(&held, REMEDY, limits)?;
            progress.is_solid.store(true, Ordering::Relaxed);
            progress.bytes.store(held.len(), Ordering::Relaxed);
            let parser = match base {
                Some(base) => RdfXmlParser::new().with_base_iri(base).map_err(|_| no_base(base))?,
                None => RdfXmlParser::new(),
            };
            Parser::Xml(Box::new(parser.for_reader(stream)))
        } else {
            check_json(&held, limits)?;
            // Without a base it drops what is relative: against this one it is found.
            let base = base.as_deref().unwrap_or(RELATIVE);
            let parser = RdfParser::from_format(syntax).with_base_iri(base);
            let parser = parser.map_err(|_| no_base(base))?;
            Parser::Other(Box::new(parser.for_reader(source(Box::new(stream)))))
        }
    } else {
        let mut parser = RdfParser::from_format(syntax);
        if let Some(base) = base {
            parser = parser.with_base_iri(base).map_err(|_| no_base(base))?;
        }
        Parser::Other(Box::new(parser.for_reader(source(stream))))
    };
    Ok(Input::Quads(Box::new(Quads {
        parser,
        held,
        progress,
        drops_relative: is_json && base.is_none(),
        pending: None,
        any: false,
        written: 0,
        graph: GraphName::DefaultGraph,
        subject: (None, ANY),
        predicate: (None, ANY),
    })))
}

impl Quads {
    fn read(&mut self, syntax: RdfFormat, build: &mut Build, known: Option<&Dictionary>) -> Stop {
        (self.subject.0, self.predicate.0) = (None, None);
        loop {
            let quad = match self.pending.take().map_or_else(|| self.parser.next(), |q| Some(Ok(q)))
            {
                Some(Ok(quad)) => quad,
                Some(Err(error)) => {
                    let fault = self.fault(error, syntax);
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
            if !build.open {
                build.open(graph_text(&quad).as_bytes());
                build.odd = odd_name(graph_text(&quad).as_bytes());
                self.graph.clone_from(&quad.graph_name);
            } else if build.by_graph && quad.graph_name != self.graph {
                self.pending = Some(quad);
                return Stop::Graph;
            }
            if self.subject.0.as_ref() != Some(&quad.subject) {
                self.subject.1 = build.term(quad.subject.as_ref().into(), known);
                self.subject.0 = Some(quad.subject);
            }
            if self.predicate.0.as_ref() != Some(&quad.predicate) {
                self.predicate.1 = build.term(quad.predicate.as_ref().into(), known);
                self.predicate.0 = Some(quad.predicate);
            }
            let object = build.term(quad.object.as_ref(), known);
            if let Some(what) = build.odd.take() {
                build.faults.push(problem(syntax, &what, REMEDY));
                return Stop::Failed;
            }
            self.written = self.written.saturating_add(self.size() + build.text.len());
            let given = self.progress.bytes.load(Ordering::Relaxed).saturating_mul(EXPANSION.1);
            if self.written > given.saturating_add(EXPANSION.0) {
                let what = "its names stand for far more than is written";
                build.faults.push(Fault::new(what, "Give its prefixes shorter IRIs."));
                return Stop::Failed;
            }
            if !build.add([self.subject.1, self.predicate.1, object]) {
                (self.subject.0, self.predicate.0) = (None, None); // no longer among the terms
                if !build.by_graph {
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
    fn fault(&self, error: RdfParseError, syntax: RdfFormat) -> Fault {
        let error = match error {
            RdfParseError::Io(error) => return unreadable(error, syntax),
            RdfParseError::Syntax(error) => error,
        };
        let message = error.to_string();
        let text = match message.strip_prefix("Parser error ") {
            Some(rest) => rest.split_once(": ").map_or(rest, |(_, message)| message),
            None => &message,
        };
        let fault = problem(syntax, text, REMEDY);
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
        let at = if let Parser::Xml(parser) = &self.parser {
            let read = self.held.get(..parser.buffer_position() as usize).unwrap_or_default();
            let is_tag = read.ends_with(b">");
            Some(memrchr(b'<', read).filter(|_| is_tag).unwrap_or(read.len()))
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

/// The graph of a quad as N-Quads writes it; nothing for the default graph.
pub(crate) fn graph_text(quad: &Quad) -> String {
    match &quad.graph_name {
        GraphName::DefaultGraph => String::new(),
        name => name.to_string(),
    }
}

#[cfg(test)]
mod tests;
