//! Faults of queries, from what the parser says.

use crate::fault::{Fault, fault_at};

const NOT_SPARQL: &str = "not SPARQL: ";

impl Fault {
    /// The fault of a query that breaks the grammar, without the parser's list of expected tokens.
    pub(crate) fn unreadable(text: &str, message: &str) -> Self {
        let Some((offset, _)) = expectation(text, message) else {
            return Self::new(format!("{NOT_SPARQL}{message}"), "Correct the query.");
        };
        let what = match text[offset..].split_whitespace().next() {
            Some(word) => {
                format!("“{}” is out of place", word.chars().take(40).collect::<String>())
            }
            None => "it ends too early".to_owned(),
        };
        let remedy = "Correct the query there, or just before.";
        fault_at(format!("{NOT_SPARQL}{what}"), remedy, text.as_bytes(), offset)
    }

    /// The fault of a query that follows the grammar but breaks another rule of SPARQL.
    pub(crate) fn senseless(text: &str, message: &str) -> Option<Self> {
        let (offset, reason) = expectation(text, message)?;
        // Tokens are in quotes, in brackets, or single words. The last one comes with each function.
        let reasons = reason.strip_prefix("one of ").unwrap_or(reason);
        let is_sentence = |one: &&str| {
            !one.starts_with(['"', '[']) && one.contains(' ') && !one.starts_with("This custom")
        };
        let reason = reasons.split(", ").find(is_sentence)?;
        let remedy = if reason.contains("that is unbound") {
            "Name it in GROUP BY, put it into an aggregate, or leave it out."
        } else {
            "Correct the query."
        };
        Some(fault_at(format!("{NOT_SPARQL}{reason}"), remedy, text.as_bytes(), offset))
    }
}

/// The offset that a parser's message names, and what it expected there.
fn expectation<'a>(text: &str, message: &'a str) -> Option<(usize, &'a str)> {
    let (place, reason) = message.strip_prefix("error at ")?.split_once(": expected ")?;
    let (line, column) = place.split_once(':')?;
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    let rest = &text[before..];
    let within = rest.char_indices().nth(column.saturating_sub(1));
    Some((before + within.map_or(rest.len(), |(at, _)| at), reason))
}
