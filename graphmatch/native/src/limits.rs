//! What one input may cost.

use pyo3::prelude::*;

/// Bounds on what one document, query or evaluation may cost, as `semantic.limits` says; each error
/// that they cause names the limit.
#[derive(Clone, Copy, Debug, FromPyObject)]
pub struct Limits {
    /// How many bytes a document that is held may have, and a line.
    pub document_bytes: usize,
    /// How many characters XML entities may add.
    pub xml_expansion: u64,
    /// How deep XML elements may nest.
    pub xml_depth: usize,
    /// How deep the objects and lists of JSON-LD, triple terms, and the brackets of a query may nest.
    pub nesting: usize,
    /// How many characters a query may have.
    pub text_characters: usize,
    /// How many triples a publication may have.
    pub publication_triples: usize,
    /// How many keywords, functions and operators a query may have.
    pub subscription_operators: usize,
    /// How many triple patterns and property paths a query may have.
    pub subscription_patterns: usize,
    /// How many branches a query may have before only what they share is used.
    pub subscription_branches: usize,
    /// How many steps are gone in all when a publication is flattened into attributes.
    pub event_paths: usize,
    /// Time limit of one evaluation, of one join, and of finding the solutions of a report.
    pub evaluation_seconds: f64,
    /// Maximum number of solutions of one match.
    pub match_solutions: usize,
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
        }
    }
}
