//! Faults of documents, with places and remedies.

use crate::limits::{Limits, grouped};
use memchr::{memchr, memchr_iter, memmem};
use oxiri::IriRef;
use oxrdfio::RdfFormat;
use pyo3::IntoPyObject;

pub(crate) const REMEDY: &str =
    "Correct the document there, or name its format (`format=` or `--format`).";
const BASE_REMEDY: &str =
    "Write the full IRI, or give the document a base: in it, or with `base=` or `--base`.";

/// A fault of a document, its place, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, IntoPyObject)]
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

pub(crate) fn relative(name: &str, remedy: &str) -> Fault {
    let line = format!("Write the full IRI. {remedy}");
    let remedy = if remedy == REMEDY { BASE_REMEDY } else { &line };
    Fault::new(format!("a relative IRI ({name})"), remedy)
}

/// The line and column of an offset in a text, both counted from 1.
pub(crate) fn place(text: &[u8], at: usize) -> (u64, u64) {
    let before = &text[..at.min(text.len())];
    let line = memchr_iter(b'\n', before).count() as u64 + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() as u64 + 1)
}

/// The line and column of the first occurrence of something in a text.
pub(crate) fn place_of(text: &[u8], what: &[u8]) -> Option<(u64, u64)> {
    memmem::find(text, what).map(|at| place(text, at))
}

pub(crate) fn fault_at(what: impl Into<String>, remedy: &str, text: &[u8], at: usize) -> Fault {
    Fault::new(what, remedy).at(Some(place(text, at)))
}

pub(crate) fn too_long(limits: &Limits) -> Fault {
    let what =
        format!("a text has more than {} characters", grouped(limits.text_characters as u64));
    Fault::new(what, "Raise the limit `text_characters`, or shorten it.")
}

pub(crate) fn too_deep(what: &str, most: usize, limit: &str) -> Fault {
    let remedy = format!("If you trust the document, raise the limit {limit}.");
    Fault::new(format!("{what} more than {} deep", grouped(most as u64)), remedy)
}
