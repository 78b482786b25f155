//! Publications, and how readers build them.

use crate::dictionary::{self, Dictionary, Id, LOCAL, LocalTerms};
use crate::events::Statements;
use crate::fault::{Fault, REMEDY, relative, too_long};
use crate::lexical::write_term;
use crate::limits::{Limits, grouped};
use foldhash::fast::RandomState;
use hashbrown::HashSet;
use oxrdf::{GraphName, Quad, TermRef};
use oxrdfio::RdfFormat;
use oxttl::{NQuadsParser, NTriplesParser, TurtleSyntaxError};
use std::hash::BuildHasher;

/// Memory for more than this many triples or terms is not kept for the next publication.
const KEPT: usize = 1 << 16;
/// Maximum number of faults that are listed for one publication.
const MAX_FAULTS: usize = 100;
/// The texts of one publication have fewer bytes than this.
pub(crate) const PUBLICATION_BYTES: usize = 1 << 31;
/// UTF-8's byte order mark.
pub(crate) const MARK: &[u8] = b"\xef\xbb\xbf";
/// Documents without a base are read with this one, if the parser would drop relative IRIs or
/// could not say which one it found.
pub(crate) const NO_BASE: &str = "http://relative.invalid/";

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

    /// Replaces everything by some triples, with the ids of a dictionary.
    pub fn fill(&mut self, id: &str, statements: &Statements, dictionary: &Dictionary) {
        self.clear();
        self.id = id.into();
        let (mut triple, mut subject) = ([0; 3], &b""[..]);
        for (number, text) in statements.terms().enumerate() {
            if number % 3 != 0 || text != subject {
                triple[number % 3] = self.local.id_of(text, dictionary);
                subject = if number % 3 == 0 { text } else { subject };
            }
            if number % 3 == 2 {
                self.triples.push(triple);
            }
        }
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
    pub(crate) fn distinct(&mut self) {
        let mut seen =
            HashSet::with_capacity_and_hasher(self.triples.len(), RandomState::default());
        self.triples.retain(|triple| seen.insert(*triple));
    }
}

// --- Publications being built ------------------------------------------------------------------

/// The publication that is being read, and the faults found so far.
pub(crate) struct Builder {
    pub(crate) syntax: RdfFormat,
    pub(crate) limits: Limits,
    source: String,
    pub(crate) out: Publication,
    /// Whether each graph is a publication.
    by_graph: bool,
    /// Whether a publication has begun.
    is_open: bool,
    /// Whether the publication is left out because of a fault.
    pub(crate) is_refused: bool,
    /// The graph of the last publication, in N-Quads.
    graph: Vec<u8>,
    /// Hashes of the ids of all graphs that were read.
    graphs: HashSet<u64, RandomState>,
    pub(crate) faults: Vec<Fault>,
    /// How many faults are not listed.
    pub(crate) unlisted: usize,
    /// Whether no publication and no fault was found yet.
    pub(crate) is_silent: bool,
    /// The text of the last term, and how many bytes all terms had.
    pub(crate) text: Vec<u8>,
    pub(crate) written: usize,
}

impl Builder {
    pub(crate) fn new(syntax: RdfFormat, limits: Limits, source: String, by_graph: bool) -> Self {
        Self {
            syntax,
            limits,
            source,
            out: Publication::default(),
            by_graph,
            is_open: false,
            is_refused: false,
            graph: Vec::new(),
            graphs: HashSet::default(),
            faults: Vec::new(),
            unlisted: 0,
            is_silent: true,
            text: Vec::new(),
            written: 0,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.out.clear();
        self.text.clear();
        self.text.shrink_to(KEPT);
        (self.is_open, self.is_refused) = (false, false);
    }

    /// Whether a statement of another graph belongs to another publication.
    pub(crate) fn is_other(&self, graph: &[u8]) -> bool {
        self.is_open && self.by_graph && !self.is_last_graph(graph)
    }

    /// Whether the publication began with a statement of this graph, so that its name is valid.
    pub(crate) fn is_last_graph(&self, graph: &[u8]) -> bool {
        // Comparing empty slices is slow where `memcmp` has to be loaded first.
        graph.len() == self.graph.len() && (graph.is_empty() || graph == self.graph)
    }

    /// Begins a publication with a statement of a graph, unless one has begun.
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
            let what =
                "the graph's statements are not contiguous: it was read as several publications";
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
    pub(crate) fn has_room(&mut self) -> bool {
        let most = self.limits.publication_triples;
        if self.out.triples.len() > most {
            self.out.distinct();
        }
        let fault = if self.out.triples.len() > most {
            Fault::new(
                format!("the publication has more than {} triples", grouped(most as u64)),
                "Raise the limit `publication_triples`, or split the document into smaller publications.",
            )
        } else if self.out.local.bytes() >= PUBLICATION_BYTES {
            let most = grouped(PUBLICATION_BYTES as u64);
            let what = format!("the publication has more than {most} bytes");
            Fault::new(what, "Split the document into smaller publications.")
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
    pub(crate) fn key(&mut self, key: &[u8], is_valid: impl FnOnce(&[u8]) -> bool) -> Option<Id> {
        let hash = dictionary::hash(key);
        self.out.local.get_hashed(key, hash).or_else(|| {
            let is_accepted = key.len() <= self.limits.text_characters && is_valid(key);
            is_accepted.then(|| self.out.local.intern_hashed(key, hash))
        })
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

/// The statement of a line, if it has one.
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
