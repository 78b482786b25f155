//! Errors of queries, with their places.

/// The reason why a text cannot be a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The problem.
    pub what: String,
    /// The remedy.
    pub remedy: String,
    /// The line, from 1, if it is known.
    pub line: Option<usize>,
    /// The column in characters, from 1, if it is known.
    pub column: Option<usize>,
}

const NOT_SPARQL: &str = "not SPARQL: ";

impl QueryError {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into(), line: None, column: None }
    }

    /// Adds the place of an offset into the text. An offset beyond the text has none.
    pub(crate) fn at(mut self, text: &str, offset: usize) -> Self {
        if let Some(before) = text.get(..offset) {
            self.line = Some(before.bytes().filter(|byte| *byte == b'\n').count() + 1);
            let line = before.rsplit('\n').next().unwrap_or_default();
            self.column = Some(line.chars().count() + 1);
        }
        self
    }

    pub(crate) fn out_of_place(text: &str, offset: usize) -> Self {
        let rest = text.get(offset..).and_then(|rest| rest.split_whitespace().next());
        let what = match rest {
            Some(word) => {
                format!("“{}” is out of place", word.chars().take(40).collect::<String>())
            }
            None => "it ends too early".to_owned(),
        };
        let remedy = "Correct the query there, or just before.";
        Self::new(format!("{NOT_SPARQL}{what}"), remedy).at(text, offset)
    }

    /// The error of a query that breaks the grammar, without the parser's list of expected tokens.
    pub(crate) fn unreadable(text: &str, message: &str) -> Self {
        match place(text, message) {
            Some((offset, _)) => Self::out_of_place(text, offset),
            None => Self::new(format!("{NOT_SPARQL}{message}"), "Correct the query."),
        }
    }

    /// The error of a query that follows the grammar but breaks another rule of SPARQL.
    pub(crate) fn senseless(text: &str, message: &str) -> Option<Self> {
        let (offset, reason) = place(text, message)?;
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
        Some(Self::new(format!("{NOT_SPARQL}{reason}"), remedy).at(text, offset))
    }
}

/// The offset that a parser's message names, and what it expected there.
fn place<'a>(text: &str, message: &'a str) -> Option<(usize, &'a str)> {
    let (place, reason) = message.strip_prefix("error at ")?.split_once(": expected ")?;
    let (line, column) = place.split_once(':')?;
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    let rest = &text[before..];
    let within = rest.char_indices().nth(column.saturating_sub(1));
    Some((before + within.map_or(rest.len(), |(at, _)| at), reason))
}
