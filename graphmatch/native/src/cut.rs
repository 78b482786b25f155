//! Query text to a skeleton and its constants.
//!
//! Queries that differ in constants only share one parse. A single pass over the text takes the
//! constants out, as canonical N-Triples text in order of occurrence, and writes what is left (the
//! skeleton) with normalised white space, one byte ([`IRI`], [`LITERAL`], [`QUANTITY`]) standing
//! for each constant. Function names, the numbers of LIMIT and OFFSET and the separator of
//! GROUP_CONCAT stay. [`expanded`] gives the skeleton as SPARQL that a parser takes. What would
//! exhaust that parser, and what no subscription may have, is refused here.
//!
//! Cost: about 1 µs for a query of eight triple patterns.

use crate::limits::Limits;
use crate::operators::Operators;
use crate::query::{QueryError, on_stack};
use crate::reader::grouped;
use oxiri::{Iri, IriRef};
use oxrdf::Literal;

/// Stands for an IRI.
pub const IRI: u8 = 1;
/// Stands for a literal.
pub const LITERAL: u8 = 2;
/// Stands for a literal with a unit of measure in an expression.
pub const QUANTITY: u8 = 3;

const QUANTITIES: &str = "<https://w3id.org/cdt/";
const UNIT: &str = "<https://w3id.org/cdt/ucumunit>";
const STRING: &str = "<http://www.w3.org/2001/XMLSchema#string>";
const TYPE: &str = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
const XSD: &str = "\"^^<http://www.w3.org/2001/XMLSchema#";
const UPDATES: [&str; 10] =
    ["INSERT", "DELETE", "LOAD", "CLEAR", "CREATE", "DROP", "COPY", "MOVE", "ADD", "WITH"];
/// The parser reads the arguments of these twice, so that nesting doubles its time.
const TWICE: [&str; 4] = ["REGEX", "REPLACE", "SUBSTR", "GROUP_CONCAT"];
/// A text that cannot be read is parsed up to this length, to say why.
const LONG: usize = 1 << 14;
/// Maximum number of variables and groups for each triple pattern that a query may have.
const PARTS: usize = 4;
/// How deep the functions above may nest.
const MOST_TWICE: usize = 12;

/// A query's skeleton and constants. The memory is used again for the next query.
#[derive(Default)]
pub struct Cut {
    skeleton: String,
    texts: Vec<u8>,
    ends: Vec<u32>,
    offsets: Vec<u32>,
}

impl Cut {
    /// The text without its constants.
    pub fn skeleton(&self) -> &str {
        &self.skeleton
    }

    /// How many constants there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// The canonical N-Triples text of each constant, in order of occurrence.
    pub fn constants(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|number| {
            let begin = if number == 0 { 0 } else { self.ends[number - 1] as usize };
            &self.texts[begin..self.ends[number] as usize]
        })
    }

    /// Where a constant begins in the query's text, in bytes.
    pub(crate) fn offset(&self, constant: u32) -> Option<usize> {
        self.offsets.get(constant as usize).map(|&offset| offset as usize)
    }

    fn clear(&mut self) {
        self.skeleton.clear();
        self.texts.clear();
        self.ends.clear();
        self.offsets.clear();
    }
}

/// Writes a skeleton as SPARQL: `<slot:0>` for an IRI, `"1"^^<slot:l>` for a literal,
/// `"2"^^<slot:q>` for a quantity.
pub fn expanded(skeleton: &str) -> String {
    filled(skeleton, |_, _, _| true)
}

/// Writes a skeleton as SPARQL that is as deep and has as many constants, all alike: quicker to
/// write and to cut than [`expanded`].
pub(crate) fn outlined(skeleton: &str) -> String {
    let mut text = String::with_capacity(skeleton.len() * 3);
    for part in skeleton.split_inclusive(|c| c <= char::from(QUANTITY)) {
        text.push_str(part);
        let constant = match part.as_bytes() {
            [.., IRI] => "<urn:s>",
            [.., 0..=QUANTITY] => "\"s\"^^<urn:s>",
            _ => continue,
        };
        text.pop();
        text.push_str(constant);
    }
    text
}

/// Writes a skeleton as SPARQL.
///
/// `put` gets the number of each constant, and whether it is a quantity in an expression; it writes
/// the constant, or returns true for a placeholder.
pub(crate) fn filled(
    skeleton: &str,
    mut put: impl FnMut(usize, bool, &mut String) -> bool,
) -> String {
    let mut text = String::with_capacity(skeleton.len() * 3);
    let mut begin = 0;
    let slots = skeleton.bytes().enumerate().filter(|(_, byte)| *byte <= QUANTITY);
    for (number, (at, byte)) in slots.enumerate() {
        text.push_str(&skeleton[begin..at]);
        begin = at + 1;
        if put(number, byte == QUANTITY, &mut text) {
            text.push_str(&match byte {
                IRI => format!("<slot:{number}>"),
                LITERAL => format!("\"{number}\"^^<slot:l>"),
                _ => format!("\"{number}\"^^<slot:q>"),
            });
        }
    }
    text.push_str(&skeleton[begin..]);
    text
}

/// The number of a constant in the algebra of an expanded skeleton, by its IRI.
pub fn slot_of_iri(iri: &str) -> Option<u32> {
    iri.strip_prefix("slot:")?.parse().ok()
}

/// The number of a constant that is a literal, and whether it is a quantity in an expression.
pub fn slot_of_literal(literal: &Literal) -> Option<(u32, bool)> {
    let kind = literal.datatype().as_str().strip_prefix("slot:")?;
    Some((literal.value().parse().ok()?, kind == "q"))
}

/// Writes a text between quotation marks, escaped as canonical N-Triples wants it.
pub(crate) fn quote(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    text.chars().for_each(|c| push_escaped(c, out));
    out.push(b'"');
}

fn push_escaped(c: char, out: &mut Vec<u8>) {
    let escape = match c {
        '\u{8}' => "\\b",
        '\t' => "\\t",
        '\n' => "\\n",
        '\u{C}' => "\\f",
        '\r' => "\\r",
        '"' => "\\\"",
        '\\' => "\\\\",
        '\0'..='\u{1F}' | '\u{7F}' | '\u{FFFE}' | '\u{FFFF}' => {
            return out.extend_from_slice(format!("\\u{:04X}", u32::from(c)).as_bytes());
        }
        _ => return out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    };
    out.extend_from_slice(escape.as_bytes());
}

/// What stands behind a backslash: the character, and how many bytes that takes.
pub(crate) fn escape(bytes: &[u8]) -> Option<(char, usize)> {
    let plain = match bytes.first()? {
        b't' => '\t',
        b'b' => '\u{8}',
        b'n' => '\n',
        b'r' => '\r',
        b'f' => '\u{C}',
        c @ (b'"' | b'\'' | b'\\') => char::from(*c),
        b'u' => return Some((code(bytes.get(1..5)?)?, 5)),
        b'U' => return Some((code(bytes.get(1..9)?)?, 9)),
        _ => return None,
    };
    Some((plain, 1))
}

fn code(digits: &[u8]) -> Option<char> {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    char::from_u32(u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?)
}

/// Cuts queries, with the prefixes that hold without being declared.
pub struct Cutter {
    prefixes: Box<[(String, String)]>,
    pub(crate) limits: Limits,
    pub(crate) operators: Operators,
}

impl Cutter {
    /// Makes one of default prefixes: names without the colon, and IRIs.
    pub fn new<'a>(prefixes: impl IntoIterator<Item = (&'a str, &'a str)>, limits: Limits) -> Self {
        let prefixes = prefixes.into_iter().map(|(name, iri)| (name.to_owned(), iri.to_owned()));
        Self { prefixes: prefixes.collect(), limits, operators: Operators::default() }
    }

    /// The same, for queries that may call operators.
    pub fn with_operators(self, operators: Operators) -> Self {
        Self { operators, ..self }
    }

    /// Cuts a query, and refuses what no subscription may have. The rest is checked when a template
    /// is made of a skeleton that is new. Returns whether the query is so deep that recursion over
    /// it needs a large stack.
    pub fn cut(&self, text: &str, cut: &mut Cut) -> Result<bool, QueryError> {
        let most = self.limits.text_characters;
        let is_long = text.len() > most && text.chars().count() > most;
        if is_long || u32::try_from(text.len()).is_err() {
            let what = format!("a query of more than {} characters", grouped(most as u64));
            let remedy = "Raise the limit `text_characters`, or leave it out.";
            return Err(QueryError::new(what, remedy));
        }
        let error = match self.scan(text, cut) {
            Ok(is_deep) => return Ok(is_deep),
            Err(error) => error,
        };
        if !error.is_out_of_place() {
            return Err(error);
        }
        // the parser shall say why it is not readable, where it certainly does not take long
        let brackets = text.bytes().filter(|b| b"({[<".contains(b)).count();
        let upper = if text.len() <= LONG { text.to_ascii_uppercase() } else { String::new() };
        let twice = TWICE.iter().map(|name| upper.matches(name).count()).sum::<usize>();
        if !upper.is_empty() && brackets <= self.limits.nesting && twice <= MOST_TWICE {
            on_stack(true, || self.parse(text))?;
        }
        Err(error)
    }

    /// The same as [`Cutter::cut`], of a text of any length.
    pub(crate) fn scan(&self, text: &str, cut: &mut Cut) -> Result<bool, QueryError> {
        cut.clear();
        let mut lexer = Lexer {
            cutter: self,
            text,
            bytes: text.as_bytes(),
            at: 0,
            cut,
            prefixes: Vec::new(),
            base: None,
            mode: Mode::Top,
            levels: Vec::new(),
            operand: false,
            word: false,
            deepest: 0,
            operators: 0,
            parts: 0,
        };
        lexer.run()?;
        Ok(lexer.deepest > 32 || lexer.operators > 100)
    }

    /// Parses a text as it is, for the parser's message.
    ///
    /// The parser tells the furthest place that it came to, and so not why a group or a subquery
    /// makes no sense. It does where the text ends right there.
    pub(crate) fn parse(&self, text: &str) -> Result<spargebra::Query, QueryError> {
        let mut parser = spargebra::SparqlParser::new();
        for (name, iri) in &self.prefixes {
            parser = parser
                .with_prefix(name, iri)
                .map_err(|error| QueryError::new(format!("{name}: {error}"), "Correct it."))?;
        }
        let parse = |text: &str| parser.clone().parse_query(text).map_err(|e| e.to_string());
        let message = match parse(text) {
            Ok(query) => return Ok(query),
            Err(message) => message,
        };
        let ends = text.match_indices('}').take(if text.len() <= LONG { 64 } else { 0 });
        let parts = ends.flat_map(|(at, _)| [text[..at].trim_end(), &text[..=at]]);
        let mut reasons = parts.filter_map(|part| QueryError::senseless(part, &parse(part).err()?));
        Err(QueryError::senseless(text, &message)
            .or_else(|| reasons.next())
            .unwrap_or_else(|| QueryError::unreadable(text, &message)))
    }
}

/// What a place of a query is part of.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    /// A head or solution modifiers: brackets begin expressions.
    Top,
    /// Triples, data, paths.
    Pattern,
    /// An expression in brackets.
    Expression,
}

/// What is open: the mode around it, how it is closed, and whether the parser reads it twice.
struct Level {
    outer: Mode,
    closing: &'static str,
    twice: bool,
}

const BRACKETS: [(&str, &str); 6] =
    [("<<(", ")>>"), ("<<", ">>"), ("{|", "|}"), ("(", ")"), ("{", "}"), ("[", "]")];
const SIGNS: [&str; 23] = [
    "&&", "||", "!=", "<=", ">=", "<", ">", "=", "!", "+", "-", "*", "/", "|", "^", "~", "?", ")",
    "}", "]", ".", ",", ";",
];

struct Lexer<'a> {
    cutter: &'a Cutter,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    cut: &'a mut Cut,
    prefixes: Vec<(&'a str, String)>,
    base: Option<Iri<String>>,
    mode: Mode,
    levels: Vec<Level>,
    /// Whether something could be added to what stands before.
    operand: bool,
    /// Whether a word or the name of a function stands before.
    word: bool,
    deepest: usize,
    operators: usize,
    /// Variables, each as often as it stands there, and groups.
    parts: usize,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Result<(), QueryError> {
        self.prologue()?;
        loop {
            self.skip_space();
            let Some(&byte) = self.bytes.get(self.at) else { break };
            let begins = !(self.mode == Mode::Expression && self.operand);
            let number =
                |at: usize| self.is_digit(at) || self.is(at, b'.') && self.is_digit(at + 1);
            match byte {
                b'?' | b'$' if self.name_end(self.at + 1, b"") > self.at + 1 => self.variable()?,
                b'a'..=b'z' | b'A'..=b'Z' | b':' | 0x80.. => self.name()?,
                b'<' if begins && !self.is(self.at + 1, b'<') => {
                    let (begin, start) = (self.cut.texts.len(), self.at);
                    self.iri()?;
                    self.end_iri(begin, start)?;
                }
                b'"' | b'\'' => self.string()?,
                b'0'..=b'9' | b'.' if number(self.at) => self.number()?,
                b'+' | b'-' if begins && number(self.at + 1) => self.number()?,
                b'_' => self.label()?,
                _ => self.sign(begins)?,
            }
        }
        if self.cut.skeleton.is_empty() {
            let what = "the query is empty".to_owned();
            return Err(QueryError::new(what, "Write a SPARQL query."));
        }
        if let Some(base) = &self.base {
            self.cut.skeleton.insert_str(0, &format!("BASE <{base}> ")); // for `IRI("a")`
        }
        Ok(())
    }

    fn refused<T>(
        &self,
        what: impl Into<String>,
        remedy: &str,
        at: usize,
    ) -> Result<T, QueryError> {
        Err(QueryError::new(what, remedy).at(self.text, at))
    }

    fn fault<T>(&self, what: impl Into<String>, at: usize) -> Result<T, QueryError> {
        self.refused(what, "Correct the query there.", at)
    }

    /// What only the parser can tell the reason of.
    fn unreadable<T>(&self, at: usize) -> Result<T, QueryError> {
        Err(QueryError::out_of_place(self.text, at))
    }

    fn is(&self, at: usize, byte: u8) -> bool {
        self.bytes.get(at) == Some(&byte)
    }

    fn is_digit(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(u8::is_ascii_digit)
    }

    fn skip_space(&mut self) {
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                b'#' => {
                    let rest = &self.bytes[self.at..];
                    self.at += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                }
                _ => break,
            }
        }
    }

    /// Writes a token into the skeleton, with a space where it would run into the last one.
    fn write(&mut self, token: &str) {
        let skeleton = &mut self.cut.skeleton;
        if let (Some(&last), Some(&next)) = (skeleton.as_bytes().last(), token.as_bytes().first()) {
            let is_sign = |byte: u8| b"<>=!&|+-*/^~".contains(&byte);
            let is_tight = |byte: u8| byte <= QUANTITY || b"(){}[],;".contains(&byte);
            if is_sign(last) || is_sign(next) || !(is_tight(last) || is_tight(next)) {
                skeleton.push(' ');
            }
        }
        skeleton.push_str(token);
        (self.operand, self.word) = (false, false);
    }

    /// Counts a keyword, a function or an operator.
    fn count(&mut self, start: usize) -> Result<(), QueryError> {
        self.operators += 1;
        self.within(
            self.operators,
            "subscription_operators",
            self.cutter.limits.subscription_operators,
            start,
        )
    }

    /// Counts a variable or a group: the parser's time grows with the square of their number.
    fn count_part(&mut self, start: usize) -> Result<(), QueryError> {
        self.parts += 1;
        let most = self.cutter.limits.subscription_patterns;
        self.within(self.parts / PARTS, "subscription_patterns", most, start)
    }

    fn within(&self, found: usize, name: &str, limit: usize, at: usize) -> Result<(), QueryError> {
        if found <= limit {
            return Ok(());
        }
        let remedy = "Split it into several subscriptions, or raise the limit.";
        self.refused(format!("more than `{name}` ({limit})"), remedy, at)
    }

    /// Ends a constant whose text was written, and puts its slot into the skeleton.
    fn slot(&mut self, kind: u8, start: usize) -> Result<(), QueryError> {
        if self.cut.texts.len() > self.cutter.limits.document_bytes.min(1 << 31) {
            let remedy = "Shorten it, or raise the limit.";
            let what = "its constants are longer than `document_bytes`".to_owned();
            return self.refused(what, remedy, start);
        }
        if self.mode == Mode::Top {
            self.count(start)?; // an IRI of DESCRIBE
        }
        self.cut.ends.push(self.cut.texts.len() as u32);
        self.cut.offsets.push(start as u32);
        self.write(char::from(kind).encode_utf8(&mut [0; 4]));
        self.operand = true;
        Ok(())
    }

    fn constant(&mut self, parts: &[&str]) {
        parts.iter().for_each(|part| self.cut.texts.extend_from_slice(part.as_bytes()));
    }

    /// Moves a text that was written as a constant into the skeleton, where it has to stay.
    fn inline(&mut self, begin: usize) {
        let text = String::from_utf8_lossy(&self.cut.texts[begin..]).into_owned();
        self.cut.texts.truncate(begin);
        self.write(&text);
    }

    /// Whether a word stands right before.
    fn follows(&self, word: &str) -> bool {
        self.word && self.cut.skeleton.ends_with(word)
    }

    /// Passes a bracket or an operator; a comparison where nothing can begin.
    fn sign(&mut self, begins: bool) -> Result<(), QueryError> {
        let (start, rest) = (self.at, &self.bytes[self.at..]);
        if let Some(level) = self.levels.pop_if(|level| rest.starts_with(level.closing.as_bytes()))
        {
            self.at += level.closing.len();
            self.write(level.closing);
            self.mode = level.outer;
            self.operand = level.closing != "}" && level.closing != "|}";
            return Ok(());
        }
        let opening = BRACKETS.iter().find(|(opening, _)| rest.starts_with(opening.as_bytes()));
        if let Some(&(opening, closing)) = opening.filter(|_| begins || rest[0] != b'<') {
            let twice = TWICE.iter().any(|name| self.follows(name));
            self.levels.push(Level { outer: self.mode, closing, twice });
            self.mode = match opening {
                "(" if self.mode != Mode::Pattern || self.word => Mode::Expression,
                _ => Mode::Pattern,
            };
            self.at += opening.len();
            self.write(opening);
            if twice && self.levels.iter().filter(|level| level.twice).count() > MOST_TWICE {
                let what = format!("{} nest more than {MOST_TWICE} deep", TWICE.join(", "));
                let remedy = "Put the inner ones into BIND.";
                return self.refused(what, remedy, start);
            }
            self.deepest = self.deepest.max(self.levels.len());
            if matches!(opening, "{" | "{|") {
                self.count_part(start)?;
            }
            return self.within(self.levels.len(), "nesting", self.cutter.limits.nesting, start);
        }
        let Some(sign) = SIGNS.iter().find(|sign| rest.starts_with(sign.as_bytes())) else {
            return self.unreadable(start);
        };
        self.at += sign.len();
        self.write(sign);
        self.operand = matches!(*sign, ")" | "]");
        if matches!(*sign, "." | "," | ";" | ")" | "]" | "}") { Ok(()) } else { self.count(start) }
    }

    // --- Names ---

    /// The end of a name: of letters, digits and `_`, of what else is given, and, if anything is,
    /// of dots inside.
    fn name_end(&self, begin: usize, extra: &[u8]) -> usize {
        let has = |byte: u8| extra.contains(&byte);
        let is_hex = |at: usize| self.bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
        let mut end = begin;
        loop {
            let mut at = end;
            while end > begin && !extra.is_empty() && self.is(at, b'.') {
                at += 1;
            }
            end = at
                + match self.bytes.get(at) {
                    Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_') => 1,
                    Some(b'-') if at > begin && has(b'-') => 1,
                    Some(b':') if has(b':') => 1,
                    Some(b'%') if has(b'%') && is_hex(at + 1) && is_hex(at + 2) => 3,
                    Some(b'\\') if has(b'\\') => match self.bytes.get(at + 1) {
                        Some(c) if b"_~.-!$&'()*+,;=/?#@%".contains(c) => 2,
                        _ => return end,
                    },
                    Some(0x80..) => match self.text[at..].chars().next() {
                        Some(c) if is_name_character(c) => c.len_utf8(),
                        _ => return end,
                    },
                    _ => return end,
                };
        }
    }

    fn variable(&mut self) -> Result<(), QueryError> {
        let (start, end) = (self.at, self.name_end(self.at + 1, b""));
        self.write("?");
        self.cut.skeleton.push_str(&self.text[self.at + 1..end]);
        self.at = end;
        self.operand = true;
        self.count_part(start)
    }

    fn label(&mut self) -> Result<(), QueryError> {
        if !self.is(self.at + 1, b':') {
            return self.unreadable(self.at);
        }
        let end = self.name_end(self.at + 2, b"-");
        if end == self.at + 2 {
            return self.unreadable(self.at);
        }
        self.write(&self.text[self.at..end]);
        self.at = end;
        self.operand = true;
        Ok(())
    }

    fn name(&mut self) -> Result<(), QueryError> {
        let (begin, start) = (self.cut.texts.len(), self.at);
        let colon = self.name_end(start, b"-");
        if self.is(colon, b':') {
            self.prefixed(colon)?;
            return self.end_iri(begin, start);
        }
        let rest = &self.bytes[start..];
        let is_letter = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'_';
        match rest.iter().take_while(is_letter).count() {
            0 => self.unreadable(start),
            length => self.keyword(start + length),
        }
    }

    fn keyword(&mut self, end: usize) -> Result<(), QueryError> {
        let start = self.at;
        let word = &self.text[start..end];
        self.at = end;
        if word == "a" {
            self.constant(&[TYPE]);
            return self.slot(IRI, start);
        }
        if let Some(truth) =
            ["true", "false"].into_iter().find(|truth| word.eq_ignore_ascii_case(truth))
        {
            self.constant(&["\"", truth, XSD, "boolean>"]);
            return self.slot(LITERAL, start);
        }
        let is_first = self.cut.skeleton.is_empty();
        self.write(word);
        let written = self.cut.skeleton.len() - word.len();
        self.cut.skeleton[written..].make_ascii_uppercase();
        let word = &self.cut.skeleton[written..];
        let (why, remedy) = match word {
            "SERVICE" | "FROM" => (
                ": a subscription does not reach out",
                "Leave it out; the publication is the data.",
            ),
            "LATERAL" => (" is not SPARQL 1.1", "Write it in SPARQL 1.1."),
            _ if is_first && UPDATES.contains(&word) => {
                (" is an update, not a query", "Write a query.")
            }
            _ => ("", ""),
        };
        if !why.is_empty() {
            return self.refused(format!("{word}{why}"), remedy, start);
        }
        if word == "SELECT" && self.mode == Mode::Pattern {
            self.mode = Mode::Top;
        }
        self.word = true;
        self.count(start)
    }

    // --- IRIs ---

    /// Puts the slot of an IRI, or its text where it is the name of a function.
    fn end_iri(&mut self, begin: usize, start: usize) -> Result<(), QueryError> {
        if self.mode != Mode::Pattern || self.follows("FILTER") {
            let end = self.at;
            self.skip_space();
            let called = self.is(self.at, b'(');
            self.at = end;
            if called {
                self.inline(begin);
                self.word = true;
                return Ok(());
            }
        } else if let Ok(iri) = std::str::from_utf8(&self.cut.texts[begin..])
            && self.cutter.operators.0.iter().any(|one| one.iri == iri.trim_matches(['<', '>']))
        {
            self.inline(begin);
            return Ok(());
        }
        self.slot(IRI, start)
    }

    /// Writes an IRI between angle brackets.
    fn iri(&mut self) -> Result<(), QueryError> {
        let start = self.at;
        let rest = &self.bytes[start + 1..];
        let Some(length) = memchr::memchr(b'>', rest) else { return self.unreadable(start) };
        let written = &self.text[start + 1..start + 1 + length];
        if written.bytes().any(|b| b <= b' ' || b"<\"{}|^`".contains(&b)) {
            return self.unreadable(start);
        }
        self.at += length + 2;
        if is_plain_iri(written.as_bytes()) {
            self.constant(&["<", written, ">"]);
            return Ok(());
        }
        let mut iri = String::with_capacity(written.len());
        let mut rest = written;
        while let Some((before, after)) = rest.split_once('\\') {
            let Some((c, length @ 2..)) = escape(after.as_bytes()) else {
                return self.fault(format!("<{written}> has an escape of no character"), start);
            };
            iri.push_str(before);
            iri.push(c);
            rest = &after[length..];
        }
        iri.push_str(rest);
        let resolved = match (Iri::parse(iri.as_str()).map(|_| iri.clone()), &self.base) {
            (Err(_), Some(base)) => {
                IriRef::parse(iri.as_str()).and_then(|iri| base.resolve(&iri)).map(Iri::into_inner)
            }
            (parsed, _) => parsed,
        };
        match resolved {
            Ok(iri) => self.constant(&["<", &iri, ">"]),
            Err(e) => return self.fault(format!("<{written}> is not an absolute IRI: {e}"), start),
        }
        Ok(())
    }

    /// Writes the IRI of a prefixed name whose colon is known.
    fn prefixed(&mut self, colon: usize) -> Result<(), QueryError> {
        let start = self.at;
        let prefix = &self.text[start..colon];
        let declared = self.prefixes.iter().rev().map(|(name, iri)| (*name, iri.as_str()));
        let known = self.cutter.prefixes.iter().map(|(name, iri)| (name.as_str(), iri.as_str()));
        let Some((_, iri)) = declared.chain(known).find(|(name, _)| *name == prefix) else {
            let what = format!("the prefix {prefix}: is not declared");
            let remedy = "Declare it: PREFIX name: <namespace>.";
            return self.refused(what, remedy, start);
        };
        self.at = self.name_end(colon + 1, b"-:%\\");
        let texts = &mut self.cut.texts;
        texts.push(b'<');
        let begin = texts.len();
        texts.extend_from_slice(iri.as_bytes());
        let local = self.text[colon + 1..self.at].split('\\');
        local.for_each(|part| texts.extend_from_slice(part.as_bytes()));
        if !is_plain_iri(&texts[begin..]) {
            if let Err(error) = Iri::parse(String::from_utf8_lossy(&texts[begin..]).as_ref()) {
                let name = &self.text[start..self.at];
                return self.fault(format!("{name} is not an absolute IRI: {error}"), start);
            }
        }
        texts.push(b'>');
        Ok(())
    }

    fn prologue(&mut self) -> Result<(), QueryError> {
        loop {
            self.skip_space();
            let start = self.at;
            let word = self.bytes[start..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
            let word = &self.text[start..start + word];
            let what = ["PREFIX", "BASE", "VERSION"];
            let what = what.into_iter().find(|what| word.eq_ignore_ascii_case(what));
            let Some(what) = what.filter(|_| !self.is(start + word.len(), b':')) else {
                return Ok(());
            };
            self.at += word.len();
            self.skip_space();
            let begin = self.cut.texts.len();
            if what == "VERSION" {
                let rest = &self.text[self.at..];
                let is_long = rest.starts_with("\"\"\"") || rest.starts_with("'''");
                if is_long || !rest.starts_with(['"', '\'']) {
                    let what = "VERSION is not followed by a short text";
                    return self.refused(what, "Write VERSION \"1.2\".", self.at);
                }
                self.quoted()?;
                self.cut.texts.truncate(begin);
                continue;
            }
            let (mut name, mut is_whole) = ("", true);
            if what == "PREFIX" {
                let colon = self.name_end(self.at, b"-");
                name = &self.text[self.at..colon];
                if name.starts_with(begins_no_prefix) {
                    let remedy = "Begin the name with a letter.";
                    return self.refused(
                        format!("{name}: is not a valid name of a prefix"),
                        remedy,
                        self.at,
                    );
                }
                self.at = colon + usize::from(self.is(colon, b':'));
                is_whole = self.at > colon;
                self.skip_space();
            }
            if !is_whole || !self.is(self.at, b'<') {
                return self.fault(format!("{what} is not followed by a name and an IRI"), start);
            }
            self.iri()?;
            let end = self.cut.texts.len() - 1;
            let iri = String::from_utf8_lossy(&self.cut.texts[begin + 1..end]).into_owned();
            self.cut.texts.truncate(begin);
            match what {
                "BASE" => self.base = Iri::parse(iri).ok(),
                _ => self.prefixes.push((name, iri)),
            }
        }
    }

    // --- Literals ---

    fn number(&mut self) -> Result<(), QueryError> {
        let start = self.at;
        let digits = |at: usize| {
            at + self.bytes[at.min(self.bytes.len())..]
                .iter()
                .take_while(|b| b.is_ascii_digit())
                .count()
        };
        let exponent = |at: usize| {
            let sign = usize::from(self.is(at + 1, b'+') || self.is(at + 1, b'-'));
            let is_one = self.is(at, b'e') || self.is(at, b'E');
            (is_one && self.is_digit(at + 1 + sign)).then(|| digits(at + 1 + sign))
        };
        let mut end = digits(start + usize::from(!self.is_digit(start) && !self.is(start, b'.')));
        let mut datatype = "integer>";
        if self.is(end, b'.') && self.is_digit(end + 1) {
            datatype = "decimal>";
            end = digits(end + 1);
        } else if self.is(end, b'.') && exponent(end + 1).is_some() {
            end += 1;
        }
        if let Some(found) = exponent(end) {
            datatype = "double>";
            end = found;
        }
        let number = &self.text[start..end];
        self.at = end;
        if self.follows("LIMIT") || self.follows("OFFSET") {
            self.write(number);
            return Ok(());
        }
        self.constant(&["\"", number, XSD, datatype]);
        self.slot(LITERAL, start)
    }

    fn string(&mut self) -> Result<(), QueryError> {
        let start = self.at;
        let begin = self.cut.texts.len();
        self.quoted()?;
        if self.cut.skeleton.ends_with(";SEPARATOR =") {
            self.inline(begin);
            return Ok(());
        }
        let end = self.at;
        self.skip_space();
        let mut kind = LITERAL;
        if self.is(self.at, b'@') {
            self.language()?;
        } else if self.is(self.at, b'^') && self.is(self.at + 1, b'^') {
            let operator = self.at;
            let plain = self.cut.texts.len();
            self.at += 2;
            self.skip_space();
            self.constant(&["^^"]);
            let colon = self.name_end(self.at, b"-");
            match self.bytes.get(colon) {
                Some(b'<') if colon == self.at => self.iri()?,
                Some(b':') => self.prefixed(colon)?,
                _ => return self.fault("^^ is not followed by a datatype", operator),
            }
            let datatype = std::str::from_utf8(&self.cut.texts[plain + 2..]).unwrap_or_default();
            if datatype == STRING {
                self.cut.texts.truncate(plain);
            } else if datatype.starts_with(QUANTITIES) && datatype != UNIT {
                kind = if self.mode == Mode::Expression { QUANTITY } else { LITERAL };
            }
        } else {
            self.at = end;
        }
        self.slot(kind, start)
    }

    /// Writes a text in quotation marks, whichever they are.
    fn quoted(&mut self) -> Result<(), QueryError> {
        let start = self.at;
        let quote = self.bytes[start];
        let long = self.is(start + 1, quote) && self.is(start + 2, quote);
        let mut at = start + if long { 3 } else { 1 };
        self.cut.texts.push(b'"');
        loop {
            let run = self.bytes[at..].iter().take_while(|b| is_plain_text(**b)).count();
            self.cut.texts.extend_from_slice(&self.bytes[at..at + run]);
            at += run;
            match self.bytes.get(at) {
                None => return self.unreadable(start),
                Some(b'\n' | b'\r') if !long => return self.unreadable(start),
                Some(b'\\') => match escape(&self.bytes[at + 1..]) {
                    Some((c, length)) => {
                        push_escaped(c, &mut self.cut.texts);
                        at += 1 + length;
                    }
                    None => {
                        let length = if self.is(at + 1, b'U') { 10 } else { 6 };
                        let written: String = self.text[at..].chars().take(length).collect();
                        return self.fault(format!("{written} stands for no character"), start);
                    }
                },
                Some(byte) if *byte == quote => {
                    if !long || self.bytes[at..].starts_with(&[quote; 3]) {
                        self.at = at + if long { 3 } else { 1 };
                        self.cut.texts.push(b'"');
                        return Ok(());
                    }
                    push_escaped(char::from(quote), &mut self.cut.texts);
                    at += 1;
                }
                Some(_) => {
                    let c = self.text[at..].chars().next().unwrap_or_default();
                    push_escaped(c, &mut self.cut.texts);
                    at += c.len_utf8();
                }
            }
        }
    }

    /// Writes a language tag, and the base direction if there is one.
    fn language(&mut self) -> Result<(), QueryError> {
        let start = self.at;
        let is_part = |b: &&u8| b.is_ascii_alphanumeric() || **b == b'-';
        let end = start + 1 + self.bytes[start + 1..].iter().take_while(is_part).count();
        let written = self.text[start + 1..end].to_ascii_lowercase();
        let (tag, direction) = match written.split_once("--") {
            Some((tag, direction)) => (tag, Some(direction)),
            None => (written.as_str(), None),
        };
        if tag.is_empty() {
            return self.unreadable(start);
        }
        if Literal::new_language_tagged_literal("", tag).is_err() {
            return self.fault(format!("@{tag} is not a language tag"), start);
        }
        if direction.is_some_and(|direction| !matches!(direction, "ltr" | "rtl")) {
            let direction = &self.text[start + 1 + tag.len()..end];
            return self.fault(
                format!("{direction} is no direction: write --ltr or --rtl"),
                start + 1 + tag.len(),
            );
        }
        self.constant(&["@", &written]);
        self.at = end;
        Ok(())
    }
}

/// Whether a byte of a text in quotation marks is written as it is.
const fn is_plain_text(byte: u8) -> bool {
    !matches!(byte, 0..0x20 | b'"' | b'\'' | b'\\' | 0x7F | 0xEF)
}

/// PN_CHARS of SPARQL, beyond ASCII.
fn is_name_character(c: char) -> bool {
    matches!(c, '\u{B7}' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{37D}'
        | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{203F}'..='\u{2040}'
        | '\u{2070}'..='\u{218F}' | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}'
        | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}')
}

/// Whether a character is in PN_CHARS and not in PN_CHARS_BASE, so that no prefix begins with it.
fn begins_no_prefix(c: char) -> bool {
    matches!(c, '0'..='9' | '_' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// Whether a text is certainly an absolute IRI, as nearly all are: what is not so plain is parsed.
fn is_plain_iri(iri: &[u8]) -> bool {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || b"-._~/:".contains(b);
    let web = iri.strip_prefix(b"http://").or_else(|| iri.strip_prefix(b"https://"));
    let is_known = iri.starts_with(b"urn:") || web.is_some_and(|rest| !rest.contains(&b':'));
    is_known && iri.splitn(2, |b| *b == b'#').all(|part| part.iter().all(is_plain))
}
