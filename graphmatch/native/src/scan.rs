//! Limits of a query's text, checked before a recursive parser reads it.
//!
//! The scan knows just enough of SPARQL's tokens to count brackets and operators outside of strings,
//! comments and IRIs.

use crate::fault::{Fault, fault_at};
use crate::limits::{Limits, grouped};
use crate::precheck::quoted_length;
use oxiri::Iri;
use regex::Regex;
use std::borrow::Cow;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::LazyLock;

/// The parser reads the arguments of these functions twice, so each nested call doubles its time.
const READ_TWICE: [&str; 4] = ["REGEX", "REPLACE", "SUBSTR", "GROUP_CONCAT"];
/// Maximum depth of nested calls of these functions.
const MAX_READ_TWICE: usize = 12;
/// Maximum number of variables and groups per permitted triple pattern.
const PARTS_PER_PATTERN: usize = 4;
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const BRACKETS: [(&str, &str); 6] =
    [("<<(", ")>>"), ("<<", ">>"), ("{|", "|}"), ("(", ")"), ("{", "}"), ("[", "]")];
/// A number with a plus sign.
static SIGNED: LazyLock<Regex> = LazyLock::new(|| {
    let exponent = "[eE][+-]?[0-9]+";
    let text = format!(r"^\+(?:[0-9]*\.?[0-9]+{exponent}|[0-9]+\.{exponent}|[0-9]*\.?[0-9]+)");
    Regex::new(&text).expect("a regular expression")
});
/// The stack on which deep queries are parsed, analysed and evaluated.
const STACK: usize = 64 << 20;

/// The part of a query around a token.
#[derive(Clone, Copy, Default, PartialEq)]
enum Mode {
    /// A query's head or solution modifiers. Round brackets begin expressions.
    #[default]
    Top,
    /// Triples, data or paths.
    Pattern,
    /// An expression in brackets. After an operand, `<` is a comparison.
    Expression,
}

/// An open bracket.
struct Level {
    outer: Mode,
    closing: &'static str,
    is_read_twice: bool,
}

/// A scan of a text, and its results.
#[derive(Default)]
pub(crate) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    limits: Limits,
    mode: Mode,
    levels: Vec<Level>,
    /// The keyword or function before the current token.
    word: String,
    has_operand: bool,
    /// Whether FILTER or BIND stands before and its bracket is still to come.
    is_filter: bool,
    is_prologue: bool,
    deepest: usize,
    operators: usize,
    /// Number of variables and groups.
    parts: usize,
    /// Total bytes of the IRIs in the prologue.
    declared: usize,
    /// Number of IRIs and prefixed names.
    names: usize,
    defaults: &'a [String],
    declared_names: Vec<&'a str>,
    has_base: bool,
    /// Places and what the parser has to read there instead.
    edits: Vec<(Range<usize>, String)>,
    /// The first undeclared prefix or relative IRI. The parser's message does not name it.
    pub(crate) unresolved: Option<Fault>,
}

/// Checks a text against the limits. Default prefixes need no declaration.
pub(crate) fn scan<'a>(
    text: &'a str,
    limits: Limits,
    defaults: &'a [String],
) -> Result<Scanner<'a>, Fault> {
    let most = limits.text_characters;
    if text.len() > most && text.chars().count() > most {
        let what = format!("a query has more than {} characters", grouped(most as u64));
        return Err(Fault::new(what, "Raise the limit `text_characters`, or shorten it."));
    }
    let is_prologue = true;
    let mut scanner = Scanner { text, limits, defaults, is_prologue, ..Scanner::default() };
    let mut is_empty = true;
    while let Some(next) = text[scanner.at..].chars().next() {
        is_empty &= next.is_whitespace() || next == '#';
        scanner.token(next)?;
    }
    if is_empty {
        return Err(Fault::new("the query is empty", "Write a SPARQL query."));
    }
    Ok(scanner)
}

/// The length of the characters of a kind that a text begins with.
fn span(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_part(c)).unwrap_or(text.len())
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || !c.is_ascii()
}

impl<'a> Scanner<'a> {
    /// Whether recursion over the query needs a large stack.
    pub(crate) fn is_deep(&self) -> bool {
        self.deepest > 32 || self.operators.max(self.parts) > 100
    }

    /// The text in a form that the parser reads.
    pub(crate) fn readable(&self) -> Cow<'a, str> {
        let mut text = Cow::from(self.text);
        for (at, with) in self.edits.iter().rev() {
            text.to_mut().replace_range(at.clone(), with);
        }
        text
    }

    /// Passes one token.
    fn token(&mut self, next: char) -> Result<(), Fault> {
        let (start, rest) = (self.at, &self.text[self.at..]);
        let is_numeric = |c: char| c.is_ascii_digit() || c == '.';
        let begins = self.mode != Mode::Expression || !self.has_operand;
        match next {
            ' ' | '\t' | '\n' | '\r' => self.at += 1,
            '#' => self.at += rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '"' | '\'' => self.operand(quoted_length(rest.as_bytes(), next as u8)),
            '@' => self.operand(1 + span(&rest[1..], |c| c == '-' || c.is_ascii_alphanumeric())),
            '?' | '$' if rest[1..].starts_with(is_word) => {
                self.operand(1 + span(&rest[1..], is_word));
                return self.count_part(start);
            }
            '<' if begins && !rest.starts_with("<<") => {
                let end = rest.find('>').map_or(rest.len(), |end| end + 1);
                let iri = rest[1..].split('>').next().unwrap_or_default();
                self.has_base |= self.word == "BASE";
                if self.word == "BASE" && iri.starts_with("slot:") {
                    let what = format!("the base <{iri}> is reserved");
                    return Err(fault_at(what, "Use another one.", self.text.as_bytes(), start));
                }
                if !self.has_base
                    && !iri.contains('\\')
                    && let Err(error) = Iri::parse(iri)
                {
                    let what = format!("<{iri}> is not an absolute IRI: {error}");
                    self.unresolved(what, "Correct the query there.", start);
                }
                self.operand(end);
                return self.name(start, if self.is_prologue { end } else { 0 });
            }
            '+' if self.mode == Mode::Pattern && rest[1..].starts_with(is_numeric) => {
                // The parser would read the sign as the end of a path.
                let number = SIGNED.find(rest).map_or("+", |found| found.as_str());
                let datatype = match number {
                    _ if number.contains(['e', 'E']) => "double",
                    _ if number.contains('.') => "decimal",
                    _ => "integer",
                };
                let literal = format!("\"{number}\"^^<{XSD}{datatype}>");
                self.edits.push((start..start + number.len(), literal));
                self.operand(number.len());
            }
            '+' | '-' if begins && rest[1..].starts_with(is_numeric) => self.at += 1,
            '0'..='9' => self.operand(span(rest, |c| c.is_ascii_alphanumeric() || c == '.')),
            c if is_word(c) || c == ':' => return self.word(),
            _ => return self.sign(begins),
        }
        Ok(())
    }

    /// Passes a token that an operator may follow.
    fn operand(&mut self, length: usize) {
        self.at += length;
        self.has_operand = true;
        self.word.clear();
    }

    fn unresolved(&mut self, what: String, remedy: &str, start: usize) {
        let error = || fault_at(what, remedy, self.text.as_bytes(), start);
        self.unresolved.get_or_insert_with(error);
    }

    /// Counts an IRI or a prefixed name.
    fn name(&mut self, start: usize, declared: usize) -> Result<(), Fault> {
        self.names += 1;
        self.declared += declared;
        if self.names.saturating_mul(self.declared) > self.limits.document_bytes {
            let what = "its constants are longer than `document_bytes`";
            let remedy = "Shorten its prefixes, or raise the limit.";
            return Err(fault_at(what, remedy, self.text.as_bytes(), start));
        }
        // DESCRIBE nests one pattern per IRI.
        if self.mode == Mode::Top && !self.is_prologue { self.count(start) } else { Ok(()) }
    }

    /// Passes a keyword, the name of a function, a prefixed name or a blank node.
    fn word(&mut self) -> Result<(), Fault> {
        let (start, text) = (self.at, self.text);
        let rest = &text[start..];
        let mut is_escaped = false;
        let is_name = |c: char| {
            let is_part = is_escaped || is_word(c) || "-.:%\\".contains(c);
            is_escaped = c == '\\' && !is_escaped;
            !is_part
        };
        let name = &rest[..rest.find(is_name).unwrap_or(rest.len())];
        if let Some((prefix, local)) = name.split_once(':') {
            if self.word == "PREFIX" {
                self.declared_names.push(prefix);
            } else if prefix != "_"
                && !self.declared_names.contains(&prefix)
                && self.defaults.iter().all(|name| name != prefix)
            {
                let what = format!("the prefix {prefix}: is not declared");
                self.unresolved(what, "Declare it: PREFIX name: <namespace>.", start);
            }
            let local = local.trim_end_matches('.');
            if prefix != "_" && !local.starts_with('.') && local.matches('.').count() > 1 {
                // The parser would end the name at the second dot.
                let begin = start + prefix.len() + 1;
                let escaped = local.replace("\\.", ".").replace('.', "\\.");
                self.edits.push((begin..begin + local.len(), escaped));
            }
            self.operand(name.len());
            return self.name(start, 0);
        }
        let length = span(rest, is_word);
        let word = rest[..length].to_ascii_uppercase();
        self.operand(length);
        self.has_operand = matches!(word.as_str(), "TRUE" | "FALSE");
        if self.has_operand {
            self.edits.push((start..start + length, word.to_ascii_lowercase()));
        }
        if self.has_operand || word == "A" {
            return Ok(());
        }
        let after = rest[length..].trim_start();
        if matches!(word.as_str(), "COALESCE" | "CONCAT") && after.starts_with('(') {
            // The parser wants no space before this bracket.
            let end = self.text.len() - after.len();
            self.edits.push((start..end, format!("{}{word}", &self.text[start + length..end])));
        }
        self.is_prologue &= matches!(word.as_str(), "PREFIX" | "BASE" | "VERSION");
        let (reason, remedy) = match word.as_str() {
            "SERVICE" | "FROM" => (
                ": a subscription cannot read other data",
                "Remove it. The data are the publication and the ontology.",
            ),
            "LATERAL" => (" is not SPARQL 1.1", "Write it in SPARQL 1.1."),
            _ => ("", ""),
        };
        if !reason.is_empty() {
            return Err(fault_at(word + reason, remedy, self.text.as_bytes(), start));
        }
        if word == "SELECT" && self.mode == Mode::Pattern {
            self.mode = Mode::Top;
        }
        self.is_filter |= matches!(word.as_str(), "FILTER" | "BIND");
        self.word = word;
        self.count(start)
    }

    /// Passes a bracket or an operator.
    fn sign(&mut self, begins: bool) -> Result<(), Fault> {
        let (start, rest) = (self.at, &self.text[self.at..]);
        if let Some(level) = self.levels.pop_if(|level| rest.starts_with(level.closing)) {
            self.mode = level.outer;
            self.operand(level.closing.len());
            return Ok(());
        }
        let bracket = BRACKETS.iter().find(|(opening, _)| rest.starts_with(opening));
        if let Some(&(opening, closing)) = bracket.filter(|_| begins || !rest.starts_with('<')) {
            return self.open(opening, closing);
        }
        // The signs of `&&`, `||`, `!=` and `<=` count once.
        let first = rest.chars().next().map_or(1, char::len_utf8);
        let length = first + span(&rest[first..], |c| "&|=".contains(c));
        let sign = &rest[..length];
        self.operand(length);
        self.has_operand = false;
        if matches!(sign, "." | "," | ";" | "^") { Ok(()) } else { self.count(start) }
    }

    fn open(&mut self, opening: &str, closing: &'static str) -> Result<(), Fault> {
        let start = self.at;
        let is_read_twice = opening == "(" && READ_TWICE.contains(&self.word.as_str());
        self.levels.push(Level { outer: self.mode, closing, is_read_twice });
        self.mode = match opening {
            "(" if self.mode != Mode::Pattern || self.is_filter => Mode::Expression,
            _ => Mode::Pattern,
        };
        self.is_filter &= !matches!(opening, "(" | "{");
        self.operand(opening.len());
        self.has_operand = false;
        let nested = self.levels.iter().filter(|level| level.is_read_twice).count();
        if is_read_twice && nested > MAX_READ_TWICE {
            let what = format!("{} nest more than {MAX_READ_TWICE} deep", READ_TWICE.join(", "));
            let remedy = "Put the inner ones into BIND.";
            return Err(fault_at(what, remedy, self.text.as_bytes(), start));
        }
        self.deepest = self.deepest.max(self.levels.len());
        if matches!(opening, "{" | "{|") {
            self.count_part(start)?;
        }
        self.within(self.levels.len(), "nesting", self.limits.nesting, start)
    }

    /// Counts a keyword, a function or an operator.
    fn count(&mut self, start: usize) -> Result<(), Fault> {
        self.operators += 1;
        let most = self.limits.subscription_operators;
        self.within(self.operators, "subscription_operators", most, start)
    }

    /// Counts a variable or a group: the parser's time grows with the square of their number.
    fn count_part(&mut self, start: usize) -> Result<(), Fault> {
        self.parts += 1;
        let most = self.limits.subscription_patterns;
        self.within(self.parts / PARTS_PER_PATTERN, "subscription_patterns", most, start)
    }

    fn within(&self, found: usize, name: &str, limit: usize, at: usize) -> Result<(), Fault> {
        if found <= limit {
            return Ok(());
        }
        let what = format!("the query exceeds the limit `{name}` ({limit})");
        let remedy = "Split it into several subscriptions, or raise the limit.";
        Err(fault_at(what, remedy, self.text.as_bytes(), at))
    }
}

/// Runs a recursion over a query, on a large stack if the query is deep.
pub(crate) fn on_stack<T: Send, E: From<Fault> + Send>(
    deep: bool,
    run: impl FnOnce() -> Result<T, E> + Send,
) -> Result<T, E> {
    if !deep {
        return run();
    }
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        let no_thread = |error| {
            let what = format!("cannot start a thread for a deeply nested query: {error}");
            Fault::new(what, "Nest fewer brackets, or free memory.")
        };
        thread.map_err(no_thread)?.join().unwrap_or_else(|panic| resume_unwind(panic))
    })
}
