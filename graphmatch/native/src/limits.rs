//! Limits on the cost of one input.

use pyo3::prelude::*;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Limits on the cost of one document, query or evaluation, as in `semantic.limits`. Each error that
/// they cause names the limit.
///
/// Python gives them. The default permits nothing.
#[derive(Clone, Copy, Debug, Default, FromPyObject)]
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
    /// Maximum number of triples that rules derive from a publication, in addition to four for each
    /// of its triples.
    pub derived_triples: usize,
    /// Maximum number of keywords, functions and operators of a query.
    pub subscription_operators: usize,
    /// Maximum number of triple patterns and property paths of a query.
    pub subscription_patterns: usize,
    /// Maximum number of branches of a query. The index of a query with more uses only what they share.
    pub subscription_branches: usize,
    /// Maximum number of steps in all paths when a publication is flattened into attributes.
    pub event_paths: usize,
    /// Time limit of one publication per 100,000 triples, of its annotation, joins and evaluations
    /// together; and of finding the solutions of a report.
    pub publication_seconds: f64,
    /// Maximum number of solutions of one match.
    pub match_solutions: usize,
    /// Maximum number of terms that the solutions of an evaluation hold at once; each takes some 20
    /// bytes. A query with ten variables has half of them, and so on: unbound ones take memory, too.
    #[pyo3(default = 10_000_000)]
    pub evaluation_terms: usize,
    /// Maximum total length in bytes of the terms that the expressions of an evaluation make.
    #[pyo3(default = 64 << 20)]
    pub evaluation_bytes: usize,
}

/// Number of triples that have the time of one publication.
const TRIPLES: usize = 100_000;
/// Every join and evaluation may take this time, even if the publication's time is over.
const LEAST: Duration = Duration::from_millis(2);

/// Number of terms in the answers of one publication, and the number that every answer may have.
const ANSWER_TERMS: usize = 2_000_000;
const LEAST_TERMS: usize = 1000;

/// The time and memory that are left for one publication.
///
/// Each join and evaluation may take half of it, so that one that takes too much leaves something for
/// the others.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// `None` if time is not limited.
    end: Option<Instant>,
    terms: usize,
    /// Returns true if the user has interrupted the program.
    pub is_interrupted: fn() -> bool,
}

impl Default for Budget {
    fn default() -> Self {
        Self { end: None, terms: ANSWER_TERMS, is_interrupted: || false }
    }
}

impl Budget {
    /// Begins the time of a publication, or goes on with the time that is left of it. It also ends
    /// if the function says that the user has interrupted the program.
    pub fn new(
        limits: &Limits,
        triples: usize,
        left: Option<Duration>,
        is_interrupted: fn() -> bool,
    ) -> Self {
        let parts = triples.div_ceil(TRIPLES).max(1);
        let whole = || Duration::try_from_secs_f64(limits.publication_seconds * parts as f64).ok();
        let time = left.or_else(whole);
        let end = time.and_then(|time| Instant::now().checked_add(time));
        Self { end, terms: ANSWER_TERMS.saturating_mul(parts), is_interrupted }
    }

    /// The end of the next join or evaluation, if it begins now.
    pub fn share(&self) -> Option<Instant> {
        let now = Instant::now();
        Some(now + (self.end?.saturating_duration_since(now) / 2).max(LEAST))
    }

    /// The time that is left; `None` if it is not limited.
    pub fn left(&self) -> Option<Duration> {
        Some(self.end?.saturating_duration_since(Instant::now()))
    }

    /// Adds time, for work that does not count.
    pub fn extend(&mut self, time: Duration) {
        self.end = self.end.and_then(|end| end.checked_add(time));
    }

    /// Whether a share of the time is over, or the user has interrupted the program.
    pub fn is_over(&self, share: Option<Instant>) -> bool {
        share.is_some_and(|end| Instant::now() >= end) || (self.is_interrupted)()
    }

    /// Watches the time in a loop of many short steps.
    pub fn watch(self) -> Watch {
        Watch { budget: self, steps: Cell::new(0), is_over: Cell::new(false) }
    }

    /// Maximum number of terms of the next answer.
    pub fn terms(&self) -> usize {
        (self.terms / 2).max(LEAST_TERMS)
    }

    /// Notes the terms of an answer that is kept.
    pub fn keep(&mut self, terms: usize) {
        self.terms = self.terms.saturating_sub(terms);
    }
}

/// Number of steps between two readings of the clock.
const STEPS: u32 = 1 << 10;

/// Tells a loop whether the time of a publication is over.
pub struct Watch {
    budget: Budget,
    steps: Cell<u32>,
    is_over: Cell<bool>,
}

impl Watch {
    /// Counts a step. Returns true if the time is over.
    pub fn is_over(&self) -> bool {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() == STEPS {
            self.steps.set(0);
            self.is_over.set(self.is_over.get() || self.budget.is_over(self.budget.end));
        }
        self.is_over.get()
    }
}

#[cfg(test)]
impl Limits {
    pub fn usual() -> Self {
        Self {
            document_bytes: 256 << 20,
            xml_expansion: 8 << 20,
            xml_depth: 256,
            nesting: 256,
            text_characters: 16 << 20,
            publication_triples: 5_000_000,
            derived_triples: 500_000,
            subscription_operators: 1000,
            subscription_patterns: 1000,
            subscription_branches: 16,
            event_paths: 100_000,
            publication_seconds: 1.0,
            match_solutions: 100_000,
            evaluation_terms: 10_000_000,
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
