//! Limits on the cost of one input.

use pyo3::prelude::*;
use std::time::Duration;

/// Limits on the cost of one document, query or evaluation, as in `semantic.limits`. Each error that
/// they cause names the limit.
#[derive(Clone, Copy, Debug, FromPyObject)]
pub struct Limits {
    /// Maximum size in bytes of a document that is held in memory, and of a line.
    pub document_bytes: usize,
    /// Maximum number of characters that XML entities add to a document.
    pub xml_expansion: u64,
    /// Maximum nesting of XML elements.
    pub xml_depth: usize,
    /// Maximum nesting of the brackets of JSON-LD, Turtle and triple terms, and of a query.
    pub nesting: usize,
    /// Maximum number of characters of a query, and of a text of a publication.
    pub text_characters: usize,
    /// Maximum number of triples of a publication.
    pub publication_triples: usize,
    /// Maximum number of keywords, functions and operators of a query.
    pub subscription_operators: usize,
    /// Maximum number of triple patterns and property paths of a query.
    pub subscription_patterns: usize,
    /// Maximum number of branches of a query. The index of a query with more uses only what they share.
    pub subscription_branches: usize,
    /// Maximum number of steps in all paths when a publication is flattened into attributes.
    pub event_paths: usize,
    /// Time limit of one evaluation, of one join, and of finding the solutions of a report.
    pub evaluation_seconds: f64,
    /// Maximum number of solutions of one match.
    pub match_solutions: usize,
    /// Maximum number of terms that the solutions of an evaluation hold at once; each takes some 20
    /// bytes.
    #[pyo3(default = 20_000_000)]
    pub evaluation_terms: usize,
    /// Maximum total length in bytes of the terms that the expressions of an evaluation make.
    #[pyo3(default = 64 << 20)]
    pub evaluation_bytes: usize,
}

impl Limits {
    /// The time limit of an evaluation, if it is not beyond all time.
    pub fn time(&self) -> Option<Duration> {
        Duration::try_from_secs_f64(self.evaluation_seconds).ok()
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            document_bytes: 256 << 20,
            xml_expansion: 8 << 20,
            xml_depth: 256,
            nesting: 256,
            text_characters: 16 << 20,
            publication_triples: 5_000_000,
            subscription_operators: 1000,
            subscription_patterns: 1000,
            subscription_branches: 16,
            event_paths: 100_000,
            evaluation_seconds: 10.0,
            match_solutions: 100_000,
            evaluation_terms: 20_000_000,
            evaluation_bytes: 64 << 20,
        }
    }
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
