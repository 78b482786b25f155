//! Query text to a skeleton and its constants.
//!
//! Queries that differ in constants only share one parse. A single pass over the text takes the
//! constants out, as canonical N-Triples text in order of occurrence, and writes what is left (the
//! skeleton) with normalised white space, one byte ([`IRI`], [`LITERAL`], [`QUANTITY`]) standing
//! for each constant. Function names, the numbers of LIMIT and OFFSET and the separator of
//! GROUP_CONCAT stay. [`expanded`] gives the skeleton as SPARQL that a parser takes.
//!
//! Cost: about 1 µs for a query of eight triple patterns.

use crate::query::{Limits, QueryError, on_stack};
use oxiri::{Iri, IriRef};
use oxrdf::Literal;
use std::borrow::Cow;

/// Stands for an IRI.
pub const IRI: u8 = 1;
/// Stands for a literal.
pub const LITERAL: u8 = 2;
/// Stands for a literal with a unit of measure in an expression.
pub const QUANTITY: u8 = 3;
/// Stands for `NOW()`.
const NOW: u8 = 4;

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

    /// Whether there are no constants.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
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
    filled(skeleton, None, |_, _, _| true)
}

/// Writes a skeleton as SPARQL, with a literal for `NOW()` if one is given.
///
/// `put` gets the number of each constant, and whether it is a quantity in an expression; it writes
/// the constant, or returns true for a placeholder.
pub(crate) fn filled(
    skeleton: &str,
    now: Option<&str>,
    mut put: impl FnMut(usize, bool, &mut String) -> bool,
) -> String {
    let mut text = String::with_capacity(skeleton.len() * 3);
    let (mut number, mut begin) = (0, 0);
    for (at, byte) in skeleton.bytes().enumerate().filter(|(_, byte)| *byte <= NOW) {
        text.push_str(&skeleton[begin..at]);
        begin = at + 1;
        if byte == NOW {
            text.push_str(now.unwrap_or("NOW()"));
            continue;
        }
        if put(number, byte == QUANTITY, &mut text) {
            text.push_str(if byte == IRI { "<slot:" } else { "\"" });
            text.push_str(&number.to_string());
            text.push_str(match byte {
                IRI => ">",
                LITERAL => "\"^^<slot:l>",
                _ => "\"^^<slot:q>",
            });
        }
        number += 1;
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

/// Splits a canonical literal into its text and what follows the quotation marks.
pub(crate) fn split_literal(literal: &[u8]) -> Option<(Cow<'_, str>, &str)> {
    let text = std::str::from_utf8(literal).ok()?.strip_prefix('"')?;
    let (value, suffix) = text.rsplit_once('"')?;
    if !value.contains('\\') {
        return Some((value.into(), suffix));
    }
    let mut plain = String::with_capacity(value.len());
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('\\') {
        plain.push_str(before);
        let (c, length) = escape(after.as_bytes())?;
        plain.push(c);
        rest = &after[length..];
    }
    plain.push_str(rest);
    Some((plain.into(), suffix))
}

/// What stands behind a backslash: the character, and how many bytes that takes.
fn escape(bytes: &[u8]) -> Option<(char, usize)> {
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
    prefixes: Box<[Prefix<'static>]>,
    pub(crate) limits: Limits,
}

struct Prefix<'a> {
    name: Cow<'a, str>,
    iri: Cow<'a, str>,
    /// Whether the IRI stays one with any plain name behind it.
    open: bool,
}

impl<'a> Prefix<'a> {
    fn new(name: Cow<'a, str>, iri: Cow<'a, str>) -> Self {
        let authority = iri.split_once("://").map(|(_, rest)| rest);
        let closed = authority.is_some_and(|rest| !rest.contains(['/', '?', '#']));
        let open = !closed && is_plain_iri(iri.as_bytes());
        Self { name, iri, open }
    }
}

impl Cutter {
    /// Makes one of default prefixes: names without the colon, and IRIs.
    pub fn new<'a>(prefixes: impl IntoIterator<Item = (&'a str, &'a str)>, limits: Limits) -> Self {
        let owned = |text: &str| Cow::Owned(text.to_owned());
        let prefixes = prefixes.into_iter().map(|(name, iri)| Prefix::new(owned(name), owned(iri)));
        Self { prefixes: prefixes.collect(), limits }
    }

    /// Cuts a query. Only the form of its constants is checked; the rest is checked when a
    /// template is made of a skeleton that is new.
    pub fn cut(&self, text: &str, cut: &mut Cut) -> Result<(), QueryError> {
        self.read::<false>(text, cut).map(|_| ())
    }

    /// Cuts a query, and refuses what no subscription may have. Returns whether it is so deep that
    /// recursion over it needs a large stack.
    pub(crate) fn checked(&self, text: &str, cut: &mut Cut) -> Result<bool, QueryError> {
        self.read::<true>(text, cut)
    }

    fn read<const CHECK: bool>(&self, text: &str, cut: &mut Cut) -> Result<bool, QueryError> {
        cut.clear();
        if text.len() > self.limits.document_bytes || u32::try_from(text.len()).is_err() {
            let remedy = "Shorten it, or raise the limit.";
            return Err(QueryError::new("longer than `document_bytes`", remedy));
        }
        let mut lexer = Lexer::<CHECK>::new(self, text, cut);
        let fault = match lexer.run() {
            Ok(()) => return Ok(lexer.deepest > 32 || lexer.operators > 100),
            Err(fault) => fault,
        };
        if !fault.what.is_empty() {
            return Err(QueryError::new(fault.what, fault.remedy).at(text, fault.at));
        }
        // the parser shall say why it is not readable, where it certainly does not take long
        let brackets = text.bytes().filter(|b| matches!(b, b'(' | b'{' | b'[' | b'<')).count();
        let upper = if text.len() <= LONG { text.to_ascii_uppercase() } else { String::new() };
        let twice = TWICE.iter().map(|name| upper.matches(name).count()).sum::<usize>();
        if !upper.is_empty() && brackets <= self.limits.nesting && twice <= MOST_TWICE {
            on_stack(true, || self.parse(text))?;
        }
        Err(QueryError::out_of_place(text, fault.at))
    }

    /// Parses a text as it is, for the parser's message.
    ///
    /// The parser tells the furthest place that it came to, and so not why a group or a subquery
    /// makes no sense. It does where the text ends right there.
    pub(crate) fn parse(&self, text: &str) -> Result<spargebra::Query, QueryError> {
        let mut parser = spargebra::SparqlParser::new();
        for Prefix { name, iri, .. } in &self.prefixes {
            parser = parser
                .with_prefix(name.as_ref(), iri.as_ref())
                .map_err(|error| QueryError::new(format!("{name}: {error}"), "Correct it."))?;
        }
        let parse = |text: &str| parser.clone().parse_query(text).map_err(|e| e.to_string());
        let message = match parse(text) {
            Ok(query) => return Ok(query),
            Err(message) => message,
        };
        let ends = text.match_indices('}').take(if text.len() <= LONG { 64 } else { 0 });
        let parts = ends.flat_map(|(at, _)| [text[..at].trim_end(), &text[..=at]]);
        let reasons = parts.filter_map(|part| QueryError::senseless(part, &parse(part).err()?));
        Err(QueryError::senseless(text, &message)
            .or_else(|| reasons.into_iter().next())
            .unwrap_or_else(|| QueryError::unreadable(text, &message)))
    }
}

/// What is wrong, and where; nothing where only the parser can tell.
struct Fault {
    what: String,
    remedy: &'static str,
    at: usize,
}

const THERE: &str = "Correct the query there.";

fn fault<T>(what: impl Into<String>, at: usize) -> Result<T, Fault> {
    Err(Fault { what: what.into(), remedy: THERE, at })
}

fn unreadable<T>(at: usize) -> Result<T, Fault> {
    fault("", at)
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

/// What the last word asks of the next token.
#[derive(Clone, Copy, PartialEq)]
enum Pending {
    Nothing,
    Filter,
    Number,
    Separator,
    SeparatorText,
}

/// How a token begins or ends: whether it needs a space beside another.
#[derive(Clone, Copy, PartialEq)]
enum Edge {
    Tight,
    Name,
    Label,
    Operator,
    Dot,
}

struct Lexer<'a, const CHECK: bool> {
    cutter: &'a Cutter,
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    cut: &'a mut Cut,
    prefixes: Vec<Prefix<'a>>,
    base: Option<Iri<String>>,
    mode: Mode,
    /// What the open brackets stand in, and whether the parser reads inside them twice.
    outer: Vec<(Mode, bool)>,
    /// Whether something could be added to what stands before.
    operand: bool,
    /// Whether a word or the name of a function stands before.
    word: bool,
    pending: Pending,
    edge: Edge,
    triple_terms: usize,
    resolves: bool,
    twice: bool,
    deepest: usize,
    operators: usize,
}

impl<'a, const CHECK: bool> Lexer<'a, CHECK> {
    fn new(cutter: &'a Cutter, text: &'a str, cut: &'a mut Cut) -> Self {
        Self {
            cutter,
            text,
            bytes: text.as_bytes(),
            at: 0,
            cut,
            prefixes: Vec::new(),
            base: None,
            mode: Mode::Top,
            outer: Vec::new(),
            operand: false,
            word: false,
            pending: Pending::Nothing,
            edge: Edge::Tight,
            triple_terms: 0,
            resolves: false,
            twice: false,
            deepest: 0,
            operators: 0,
        }
    }

    fn run(&mut self) -> Result<(), Fault> {
        self.prologue()?;
        loop {
            self.skip_space();
            let Some(&byte) = self.bytes.get(self.at) else { break };
            match byte {
                b'?' | b'$' => self.variable()?,
                b'a'..=b'z' | b'A'..=b'Z' | b':' | 0x80.. => self.name()?,
                b'<' => self.less()?,
                b'"' | b'\'' => self.string()?,
                b'0'..=b'9' => self.number()?,
                b'.' if self.digit_at(self.at + 1) => self.number()?,
                b'.' => self.tight(".", Edge::Dot),
                b',' => self.tight(",", Edge::Tight),
                b';' => self.tight(";", Edge::Tight),
                b'(' | b'{' | b'[' => self.open(byte)?,
                b')' | b'}' | b']' => self.close(byte),
                b'_' => self.label()?,
                b'+' | b'-' => self.sign(byte)?,
                b'>' => self.greater()?,
                b'|' => self.bar()?,
                b'&' if self.next_is(1, b'&') => self.operator("&&")?,
                b'!' if self.next_is(1, b'=') => self.operator("!=")?,
                b'!' => self.operator("!")?,
                b'=' => self.operator("=")?,
                b'*' => self.operator("*")?,
                b'/' => self.operator("/")?,
                b'^' => self.operator("^")?,
                b'~' => self.operator("~")?,
                _ => return unreadable(self.at),
            }
        }
        if self.cut.skeleton.is_empty() {
            let what = "the query is empty".to_owned();
            return Err(Fault { what, remedy: "Write a SPARQL query.", at: usize::MAX });
        }
        if let (true, Some(base)) = (self.resolves, &self.base) {
            self.cut.skeleton.insert_str(0, &format!("BASE <{base}> "));
        }
        Ok(())
    }

    fn next_is(&self, ahead: usize, byte: u8) -> bool {
        self.bytes.get(self.at + ahead) == Some(&byte)
    }

    fn digit_at(&self, at: usize) -> bool {
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

    // --- The skeleton ---

    /// Writes a space where the next token would otherwise run into the last one.
    fn gap(&mut self, next: Edge) {
        let space = match (self.edge, next) {
            (Edge::Operator, _) | (_, Edge::Operator) => !self.cut.skeleton.is_empty(),
            (Edge::Name | Edge::Label | Edge::Dot, Edge::Name) => true,
            (Edge::Label, Edge::Dot) => true,
            _ => false,
        };
        if space {
            self.cut.skeleton.push(' ');
        }
    }

    fn write(&mut self, text: &str, begins: Edge, ends: Edge) {
        self.gap(begins);
        self.cut.skeleton.push_str(text);
        self.edge = ends;
        self.operand = false;
        self.word = false;
        self.twice = false;
        self.pending = Pending::Nothing;
    }

    fn tight(&mut self, text: &str, edge: Edge) {
        self.at += text.len();
        self.write(text, edge, edge);
    }

    fn operator(&mut self, text: &str) -> Result<(), Fault> {
        let separator = self.pending == Pending::Separator && text == "=";
        let start = self.at;
        self.at += text.len();
        self.write(text, Edge::Operator, Edge::Operator);
        if separator {
            self.pending = Pending::SeparatorText;
        }
        self.count(start)
    }

    /// Counts a keyword, a function or an operator.
    fn count(&mut self, start: usize) -> Result<(), Fault> {
        self.operators += 1;
        let limit = self.cutter.limits.operators;
        if CHECK && self.operators > limit {
            return self.beyond("subscription_operators", limit, start);
        }
        Ok(())
    }

    fn beyond(&self, name: &str, limit: usize, at: usize) -> Result<(), Fault> {
        let remedy = "Split it into several subscriptions, or raise the limit.";
        Err(Fault { what: format!("more than `{name}` ({limit})"), remedy, at })
    }

    /// Ends a constant whose text was written, and puts its slot into the skeleton.
    fn slot(&mut self, kind: u8, start: usize) -> Result<(), Fault> {
        if self.cut.texts.len() > self.cutter.limits.document_bytes.min(1 << 31) {
            let remedy = "Shorten it, or raise the limit.";
            let what = "its constants are longer than `document_bytes`".to_owned();
            return Err(Fault { what, remedy, at: start });
        }
        self.cut.ends.push(self.cut.texts.len() as u32);
        self.cut.offsets.push(start as u32);
        self.write("", Edge::Tight, Edge::Tight);
        self.cut.skeleton.push(char::from(kind));
        self.operand = true;
        Ok(())
    }

    /// Moves a text that was written as a constant into the skeleton, where it has to stay.
    fn inline(&mut self, begin: usize, begins: Edge) {
        let text = String::from_utf8_lossy(&self.cut.texts[begin..]).into_owned();
        self.cut.texts.truncate(begin);
        self.write(&text, begins, begins);
    }

    // --- Brackets ---

    fn push(&mut self, mode: Mode, twice: bool, start: usize) -> Result<(), Fault> {
        self.outer.push((self.mode, twice));
        self.mode = mode;
        self.deepest = self.deepest.max(self.outer.len());
        if CHECK && self.outer.len() > self.cutter.limits.nesting {
            return self.beyond("nesting", self.cutter.limits.nesting, start);
        }
        if CHECK && twice && self.outer.iter().filter(|outer| outer.1).count() > MOST_TWICE {
            let what = format!("{} nest more than {MOST_TWICE} deep", TWICE.join(", "));
            let remedy = "Put the inner ones into BIND.";
            return Err(Fault { what, remedy, at: start });
        }
        Ok(())
    }

    fn pop(&mut self) {
        self.mode = self.outer.pop().map_or(Mode::Top, |outer| outer.0);
    }

    fn open(&mut self, byte: u8) -> Result<(), Fault> {
        let (start, twice) = (self.at, self.twice);
        let mode = match byte {
            b'(' if self.mode != Mode::Pattern || self.word => Mode::Expression,
            b'[' => self.mode,
            _ => Mode::Pattern,
        };
        match byte {
            b'(' => self.tight("(", Edge::Tight),
            b'[' => self.tight("[", Edge::Tight),
            _ if self.next_is(1, b'|') && !self.next_is(2, b'|') => {
                self.at += 2;
                self.write("{|", Edge::Operator, Edge::Operator);
            }
            _ => self.tight("{", Edge::Tight),
        }
        self.push(mode, twice, start)
    }

    fn close(&mut self, byte: u8) {
        if byte == b')' && self.triple_terms > 0 && self.bytes[self.at..].starts_with(b")>>") {
            self.triple_terms -= 1;
            self.at += 3;
            self.write(")>>", Edge::Operator, Edge::Operator);
        } else {
            let text = match byte {
                b')' => ")",
                b'}' => "}",
                _ => "]",
            };
            self.tight(text, Edge::Tight);
        }
        self.pop();
        self.operand = byte != b'}';
    }

    fn less(&mut self) -> Result<(), Fault> {
        let start = self.at;
        if self.mode == Mode::Expression && self.operand {
            return self.operator(if self.next_is(1, b'=') { "<=" } else { "<" });
        }
        if self.next_is(1, b'<') {
            let text = if self.next_is(2, b'(') { "<<(" } else { "<<" };
            self.at += text.len();
            self.write(text, Edge::Operator, Edge::Operator);
            self.triple_terms += 1;
            return self.push(Mode::Pattern, false, start);
        }
        let begin = self.cut.texts.len();
        self.iri()?;
        self.end_iri(begin, start)
    }

    fn greater(&mut self) -> Result<(), Fault> {
        if self.mode == Mode::Pattern && self.triple_terms > 0 && self.next_is(1, b'>') {
            self.triple_terms -= 1;
            self.at += 2;
            self.write(">>", Edge::Operator, Edge::Operator);
            self.pop();
            self.operand = true;
            return Ok(());
        }
        self.operator(if self.next_is(1, b'=') { ">=" } else { ">" })
    }

    fn bar(&mut self) -> Result<(), Fault> {
        if self.next_is(1, b'|') {
            return self.operator("||");
        }
        if self.next_is(1, b'}') {
            self.at += 2;
            self.write("|}", Edge::Operator, Edge::Operator);
            self.pop();
            return Ok(());
        }
        self.operator("|")
    }

    // --- Names ---

    /// The end of a run of characters of names.
    fn name_end(&self, mut at: usize, dash: bool) -> usize {
        while let Some(&byte) = self.bytes.get(at) {
            match byte {
                b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => at += 1,
                b'-' if dash => at += 1,
                0x80.. => match self.text[at..].chars().next() {
                    Some(c) if is_name_character(c) => at += c.len_utf8(),
                    _ => break,
                },
                _ => break,
            }
        }
        at
    }

    /// The end of a name that may have dots inside.
    fn dotted_end(&self, start: usize) -> usize {
        let mut end = self.name_end(start, true);
        loop {
            let mut next = end;
            while self.bytes.get(next) == Some(&b'.') {
                next += 1;
            }
            let more = self.name_end(next, true);
            if next == end || more == next {
                return end;
            }
            end = more;
        }
    }

    fn variable(&mut self) -> Result<(), Fault> {
        let end = self.name_end(self.at + 1, false);
        if end == self.at + 1 {
            return if self.bytes[self.at] == b'?' {
                self.operator("?")
            } else {
                unreadable(self.at)
            };
        }
        let name = &self.text[self.at + 1..end];
        self.at = end;
        self.write("?", Edge::Tight, Edge::Name);
        self.cut.skeleton.push_str(name);
        self.operand = true;
        Ok(())
    }

    fn label(&mut self) -> Result<(), Fault> {
        let end = self.dotted_end(self.at + 2);
        if !self.next_is(1, b':') || end == self.at + 2 || self.next_is(2, b'-') {
            return unreadable(self.at);
        }
        let label = &self.text[self.at..end];
        self.at = end;
        self.write(label, Edge::Name, Edge::Label);
        self.operand = true;
        Ok(())
    }

    fn name(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let mut end = start;
        while self.bytes.get(end).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_') {
            end += 1;
        }
        let colon = match self.bytes.get(end) {
            Some(b':') => end,
            Some(b'-' | b'.' | 0x80..) => self.dotted_end(start),
            _ => return self.keyword(end),
        };
        if self.bytes.get(colon) != Some(&b':') {
            return if end > start { self.keyword(end) } else { unreadable(start) };
        }
        let begin = self.cut.texts.len();
        self.prefixed(colon)?;
        self.end_iri(begin, start)
    }

    fn keyword(&mut self, end: usize) -> Result<(), Fault> {
        let start = self.at;
        let word = &self.text[start..end];
        self.at = end;
        if word == "a" {
            self.cut.texts.extend_from_slice(TYPE.as_bytes());
            return self.slot(IRI, start);
        }
        if word.eq_ignore_ascii_case("NOW") && self.closes() {
            self.write("", Edge::Tight, Edge::Tight);
            self.cut.skeleton.push(char::from(NOW));
            self.operand = true;
            return self.count(start);
        }
        let (upper, edge) = (self.cut.skeleton.len(), self.edge);
        self.write(word, Edge::Name, Edge::Name);
        let written = upper + usize::from(self.cut.skeleton.as_bytes().get(upper) == Some(&b' '));
        self.cut.skeleton[written..].make_ascii_uppercase();
        let (mut truth, mut pending) = (None, Pending::Nothing);
        let written_word = &self.cut.skeleton[written..];
        match written_word {
            "TRUE" => truth = Some("\"true"),
            "FALSE" => truth = Some("\"false"),
            "FILTER" => pending = Pending::Filter,
            "LIMIT" | "OFFSET" => pending = Pending::Number,
            "SEPARATOR" => pending = Pending::Separator,
            "SELECT" if self.mode == Mode::Pattern => self.mode = Mode::Top,
            "IRI" | "URI" => self.resolves = true,
            _ => {}
        }
        if CHECK {
            let outside = match written_word {
                "SERVICE" | "FROM" => Some(("a subscription does not reach out", ": ")),
                "LATERAL" => Some(("is not SPARQL 1.1", " ")),
                _ if written == 0 && UPDATES.contains(&written_word) => {
                    Some(("is an update, not a query", " "))
                }
                _ => None,
            };
            if let Some((why, gap)) = outside {
                let what = format!("{written_word}{gap}{why}");
                let remedy = match written_word {
                    "LATERAL" => "Write it in SPARQL 1.1.",
                    "SERVICE" | "FROM" => "Leave it out; the publication is the data.",
                    _ => "Write a query.",
                };
                return Err(Fault { what, remedy, at: start });
            }
            self.twice = TWICE.contains(&written_word);
        }
        if let Some(truth) = truth {
            self.cut.skeleton.truncate(upper);
            self.edge = edge;
            for part in [truth, XSD, "boolean>"] {
                self.cut.texts.extend_from_slice(part.as_bytes());
            }
            return self.slot(LITERAL, start);
        }
        self.word = true;
        self.pending = pending;
        self.count(start)
    }

    /// Passes an empty pair of brackets.
    fn closes(&mut self) -> bool {
        let start = self.at;
        for bracket in [b'(', b')'] {
            self.skip_space();
            if !self.next_is(0, bracket) {
                self.at = start;
                return false;
            }
            self.at += 1;
        }
        true
    }

    // --- IRIs ---

    /// Puts the slot of an IRI, or its text where it is the name of a function.
    fn end_iri(&mut self, begin: usize, start: usize) -> Result<(), Fault> {
        if self.mode != Mode::Pattern || self.pending == Pending::Filter {
            let end = self.at;
            self.skip_space();
            let called = self.next_is(0, b'(');
            self.at = end;
            if called {
                self.inline(begin, Edge::Tight);
                self.word = true;
                return Ok(());
            }
        }
        self.slot(IRI, start)
    }

    /// Writes an IRI between angle brackets.
    fn iri(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let rest = &self.bytes[start + 1..];
        let Some(length) = memchr::memchr(b'>', rest) else { return unreadable(start) };
        let written = &self.text[start + 1..start + 1 + length];
        if written.bytes().any(|b| b <= b' ' || b"<\"{}|^`".contains(&b)) {
            return unreadable(start);
        }
        self.at += length + 2;
        if is_plain_iri(written.as_bytes()) {
            self.cut.texts.push(b'<');
            self.cut.texts.extend_from_slice(written.as_bytes());
            self.cut.texts.push(b'>');
            return Ok(());
        }
        let resolved = self.resolved(written, start)?;
        for part in ["<", resolved.as_str(), ">"] {
            self.cut.texts.extend_from_slice(part.as_bytes());
        }
        Ok(())
    }

    fn resolved(&self, written: &str, start: usize) -> Result<String, Fault> {
        let mut iri = String::with_capacity(written.len());
        let mut rest = written;
        while let Some((before, after)) = rest.split_once('\\') {
            iri.push_str(before);
            match escape(after.as_bytes()) {
                Some((c, length)) if length > 1 => {
                    iri.push(c);
                    rest = &after[length..];
                }
                _ => return fault(format!("<{written}> has an escape of no character"), start),
            }
        }
        iri.push_str(rest);
        let what = match (Iri::parse(iri.as_str()), &self.base) {
            (Ok(_), _) => return Ok(iri),
            (Err(error), None) => format!("<{written}> is not an absolute IRI: {error}"),
            (Err(_), Some(base)) => {
                match IriRef::parse(iri.as_str()).and_then(|iri| base.resolve(&iri)) {
                    Ok(resolved) => return Ok(resolved.into_inner()),
                    Err(error) => format!("<{written}> cannot be resolved: {error}"),
                }
            }
        };
        fault(what, start)
    }

    /// Writes the IRI of a prefixed name whose colon is known.
    fn prefixed(&mut self, colon: usize) -> Result<(), Fault> {
        let start = self.at;
        let prefix = &self.text[start..colon];
        let mut end = colon + 1;
        let mut plain = true;
        loop {
            match self.bytes.get(end) {
                Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':') => end += 1,
                Some(b'-') if end > colon + 1 => end += 1,
                Some(b'%') if self.is_hex(end + 1) && self.is_hex(end + 2) => {
                    plain = false;
                    end += 3;
                }
                Some(b'\\') => match self.bytes.get(end + 1) {
                    Some(c) if b"_~.-!$&'()*+,;=/?#@%".contains(c) => {
                        plain = false;
                        end += 2;
                    }
                    _ => return unreadable(end),
                },
                Some(b'.') if end > colon + 1 => {
                    let dots = self.bytes[end..].iter().take_while(|b| **b == b'.').count();
                    match self.bytes.get(end + dots) {
                        Some(b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b':' | b'-') => {}
                        Some(b'%' | b'\\') => {}
                        Some(0x80..) if self.name_end(end + dots, false) > end + dots => {}
                        _ => break,
                    }
                    end += dots;
                }
                Some(0x80..) if self.name_end(end, false) > end => {
                    plain = false;
                    end = self.name_end(end, false);
                }
                _ => break,
            }
        }
        let local = &self.text[colon + 1..end];
        let declared = self.prefixes.iter().rev().chain(&self.cutter.prefixes);
        let Some(prefix) = declared.into_iter().find(|known| known.name == prefix) else {
            let what = format!("the prefix {prefix}: is not declared");
            let remedy = "Declare it: PREFIX name: <namespace>.";
            return Err(Fault { what, remedy, at: start });
        };
        let texts = &mut self.cut.texts;
        texts.push(b'<');
        let begin = texts.len();
        texts.extend_from_slice(prefix.iri.as_bytes());
        local.split('\\').for_each(|part| texts.extend_from_slice(part.as_bytes()));
        if !(plain && prefix.open) {
            let iri = String::from_utf8_lossy(&texts[begin..]);
            if let Err(error) = Iri::parse(iri.as_ref()) {
                let name = &self.text[start..end];
                return fault(format!("{name} is not an absolute IRI: {error}"), start);
            }
        }
        texts.push(b'>');
        self.at = end;
        Ok(())
    }

    fn is_hex(&self, at: usize) -> bool {
        self.bytes.get(at).is_some_and(u8::is_ascii_hexdigit)
    }

    fn prologue(&mut self) -> Result<(), Fault> {
        loop {
            self.skip_space();
            let start = self.at;
            let end =
                start + self.bytes[start..].iter().take_while(|b| b.is_ascii_alphabetic()).count();
            let word = &self.text[start..end];
            let what = ["PREFIX", "BASE", "VERSION"];
            let Some(what) = what.into_iter().find(|what| word.eq_ignore_ascii_case(what)) else {
                return Ok(());
            };
            if self.bytes.get(end) == Some(&b':') {
                return Ok(()); // a prefix of that name
            }
            self.at = end;
            self.skip_space();
            let (texts, skeleton) = (self.cut.texts.len(), self.cut.skeleton.len());
            if what == "VERSION" {
                if !matches!(self.bytes.get(self.at), Some(b'"' | b'\'')) {
                    return unreadable(self.at);
                }
                self.quoted()?;
                self.cut.texts.truncate(texts);
                continue;
            }
            let mut name = "";
            if what == "PREFIX" {
                let colon = self.dotted_end(self.at);
                name = &self.text[self.at..colon];
                self.at = colon + usize::from(self.bytes.get(colon) == Some(&b':'));
                if self.at == colon {
                    return fault("PREFIX is not followed by a name and an IRI", start);
                }
                self.skip_space();
            }
            if !self.next_is(0, b'<') {
                return fault(format!("{what} is not followed by a name and an IRI"), start);
            }
            let iri_start = self.at;
            self.iri()?;
            let written = &self.text[iri_start + 1..self.at - 1];
            let iri = &self.cut.texts[texts + 1..self.cut.texts.len() - 1];
            let iri = if iri == written.as_bytes() {
                Cow::Borrowed(written)
            } else {
                Cow::Owned(String::from_utf8_lossy(iri).into_owned())
            };
            if what == "BASE" {
                self.base = Iri::parse(iri.into_owned()).ok();
            } else {
                self.prefixes.push(Prefix::new(name.into(), iri));
            }
            self.cut.texts.truncate(texts);
            self.cut.skeleton.truncate(skeleton);
        }
    }

    // --- Literals ---

    fn sign(&mut self, byte: u8) -> Result<(), Fault> {
        let at = self.at + 1;
        let number = self.digit_at(at) || (self.next_is(1, b'.') && self.digit_at(at + 1));
        if number && !(self.mode == Mode::Expression && self.operand) {
            return self.number();
        }
        self.operator(if byte == b'+' { "+" } else { "-" })
    }

    fn digits(&self, at: usize) -> usize {
        at + self.bytes[at..].iter().take_while(|b| b.is_ascii_digit()).count()
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let signed = matches!(self.bytes[start], b'+' | b'-');
        let mut end = self.digits(start + usize::from(signed));
        let mut datatype = "integer>";
        let exponent = |at: usize| {
            let sign = usize::from(matches!(self.bytes.get(at + 1), Some(b'+' | b'-')));
            let is_one = matches!(self.bytes.get(at), Some(b'e' | b'E'));
            (is_one && self.digit_at(at + 1 + sign)).then(|| self.digits(at + 1 + sign))
        };
        if self.bytes.get(end) == Some(&b'.') {
            if self.digit_at(end + 1) {
                datatype = "decimal>";
                end = self.digits(end + 1);
            } else if exponent(end + 1).is_some() {
                end += 1;
            }
        }
        if let Some(found) = exponent(end) {
            datatype = "double>";
            end = found;
        }
        let number = &self.text[start..end];
        self.at = end;
        if self.pending == Pending::Number && !signed {
            self.write(number, Edge::Name, Edge::Name);
            return Ok(());
        }
        for part in ["\"", number, XSD, datatype] {
            self.cut.texts.extend_from_slice(part.as_bytes());
        }
        self.slot(LITERAL, start)
    }

    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let begin = self.cut.texts.len();
        self.quoted()?;
        if self.pending == Pending::SeparatorText {
            self.inline(begin, Edge::Tight);
            return Ok(());
        }
        let end = self.at;
        self.skip_space();
        let mut kind = LITERAL;
        if self.next_is(0, b'@') {
            self.language()?;
        } else if self.next_is(0, b'^') && self.next_is(1, b'^') {
            let operator = self.at;
            let plain = self.cut.texts.len();
            self.at += 2;
            self.skip_space();
            self.cut.texts.extend_from_slice(b"^^");
            let datatype = self.at;
            match self.bytes.get(datatype) {
                Some(b'<') => self.iri()?,
                _ => {
                    let colon = self.dotted_end(datatype);
                    if self.bytes.get(colon) != Some(&b':') {
                        return fault("^^ is not followed by a datatype", operator);
                    }
                    self.prefixed(colon)?;
                }
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
    fn quoted(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let quote = self.bytes[start];
        let long = self.next_is(1, quote) && self.next_is(2, quote);
        let mut at = start + if long { 3 } else { 1 };
        self.cut.texts.push(b'"');
        loop {
            let run = self.bytes[at..].iter().take_while(|b| is_plain_text(**b)).count();
            self.cut.texts.extend_from_slice(&self.bytes[at..at + run]);
            at += run;
            match self.bytes.get(at) {
                None => return unreadable(start),
                Some(b'\n' | b'\r') if !long => return unreadable(start),
                Some(b'\\') => match escape(&self.bytes[at + 1..]) {
                    Some((c, length)) => {
                        push_escaped(c, &mut self.cut.texts);
                        at += 1 + length;
                    }
                    None => return self.bad_escape(at, start),
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

    fn bad_escape(&self, at: usize, start: usize) -> Result<(), Fault> {
        let length = match self.bytes.get(at + 1) {
            Some(b'u') => 6,
            Some(b'U') => 10,
            _ => 2,
        };
        let written = self.text.get(at..at + length).unwrap_or("\\");
        if written.len() == 6 && written[2..].starts_with(['d', 'D']) {
            return fault("the text has half a character (a lone surrogate)", start);
        }
        fault(format!("{written} stands for no character"), start)
    }

    fn language(&mut self) -> Result<(), Fault> {
        let start = self.at;
        let is_part = |b: &&u8| b.is_ascii_alphanumeric();
        let part = |at: usize| at + self.bytes[at..].iter().take_while(is_part).count();
        let mut end = part(start + 1);
        while self.bytes.get(end) == Some(&b'-') && part(end + 1) > end + 1 {
            end = part(end + 1);
        }
        let tag = &self.text[start + 1..end];
        if tag.is_empty() {
            return unreadable(start);
        }
        let language = tag.to_ascii_lowercase();
        let common = matches!(language.as_bytes(), [a, b, rest @ ..]
            if a.is_ascii_lowercase() && b.is_ascii_lowercase()
                && matches!(rest, [] | [b'-', b'a'..=b'z', b'a'..=b'z']));
        if !common && oxrdf::Literal::new_language_tagged_literal("", language.as_str()).is_err() {
            return fault(format!("@{tag} is not a language tag"), start);
        }
        self.cut.texts.push(b'@');
        self.cut.texts.extend_from_slice(language.as_bytes());
        self.at = end;
        if self.next_is(0, b'-') && self.next_is(1, b'-') {
            let direction = &self.text[end..part(end + 2)];
            if !matches!(direction, "--ltr" | "--rtl") {
                return fault(format!("{direction} is no direction: write --ltr or --rtl"), end);
            }
            self.cut.texts.extend_from_slice(direction.as_bytes());
            self.at += direction.len();
        }
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

/// Whether a text is certainly an absolute IRI: what is not so plain is parsed.
fn is_plain_iri(iri: &[u8]) -> bool {
    const SAFE: [bool; 256] = {
        let mut table = [false; 256];
        let mut byte = 0;
        while byte < 128 {
            let b = byte as u8;
            table[byte] = b.is_ascii_alphanumeric()
                || matches!(b, b'-' | b'.' | b'_' | b'~' | b'/' | b':' | b'@' | b'!' | b'$')
                || matches!(b, b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b',' | b';' | b'=');
            byte += 1;
        }
        table
    };
    let is_scheme = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.');
    let colon = iri.iter().take_while(is_scheme).count();
    if iri.get(colon) != Some(&b':') || !iri[0].is_ascii_alphabetic() {
        return false;
    }
    let mut rest = &iri[colon + 1..];
    if let [b'/', b'/', authority @ ..] = rest {
        let is_host = |b: &&u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b'~');
        let host = authority.iter().take_while(is_host).count();
        rest = &authority[host..];
        if !matches!(rest.first(), None | Some(b'/' | b'#')) {
            return false;
        }
    }
    let path = rest.iter().take_while(|b| SAFE[**b as usize]).count();
    match rest[path..] {
        [] => true,
        [b'#', ref fragment @ ..] => fragment.iter().all(|b| SAFE[*b as usize]),
        _ => false,
    }
}
