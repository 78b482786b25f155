//! What is looked at before a parser sees a document, so that none can be made to take the machine
//! down: how much XML entities add, how deep XML, JSON and brackets nest, how much short names
//! stand for.
//!
//! Everything is one pass over the bytes, without recursion: about a nanosecond a byte. The parsers
//! fetch nothing; entities that lie outside a document are refused all the same, and so is XML that
//! ends early, of which the parser would say nothing.

use crate::reader::{Fault, Limits, grouped};
use memchr::{memchr, memchr_iter, memchr2, memchr3, memmem};
use std::collections::HashMap;

/// So many attributes all open XML elements may have together.
const ATTRIBUTES: usize = 1000;
/// So long the IRI of an XML namespace may be: each name in it stands for that much.
const NAMESPACE_BYTES: u64 = 1 << 16;
/// So deep the brackets of Turtle may nest; parsers need no recursion for them, but memory.
const BRACKETS: u32 = 100_000;
/// So much the names of a JSON document may stand for, if each were the longest of its context.
const NAMES_BYTES: usize = 1 << 32;

/// The line and column of a place in a text, both counted from 1.
pub(crate) fn place(text: &[u8], at: usize) -> (u64, u64) {
    let before = &text[..at.min(text.len())];
    let line = memchr_iter(b'\n', before).count() as u64 + 1;
    let start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[start..]).chars().count() as u64 + 1)
}

fn fault_at(what: String, remedy: &str, text: &[u8], at: usize) -> Fault {
    let (line, column) = place(text, at);
    Fault::new(what, remedy).at(line, Some(column))
}

// --- XML -------------------------------------------------------------------------------------

#[derive(Clone, Copy, PartialEq)]
enum Encoding {
    Utf8,
    Latin1,
    Utf16(bool),
    Utf32(bool),
}

fn known(name: &str) -> Option<Encoding> {
    let name = name.to_ascii_lowercase().replace('_', "-");
    match name.as_str() {
        "utf-8" | "utf8" | "us-ascii" | "ascii" => Some(Encoding::Utf8),
        "iso-8859-1" | "latin1" | "latin-1" | "l1" => Some(Encoding::Latin1),
        // The declaration was readable as ASCII, so it is not that.
        _ => ["utf-16", "utf-32", "ucs-2", "iso-10646-ucs"]
            .iter()
            .any(|start| name.starts_with(start))
            .then_some(Encoding::Utf8),
    }
}

/// Where an XML declaration ends that may have white space before it.
fn declaration(text: &[u8]) -> Option<usize> {
    let start = text.len() - text.trim_ascii_start().len();
    let rest = text[start..].strip_prefix(b"<?xml")?;
    rest.first().filter(|b| b.is_ascii_whitespace())?;
    let end = memchr(b'>', rest).filter(|end| rest[..*end].ends_with(b"?"))?;
    Some(start + 5 + end + 1)
}

fn declared(head: &[u8]) -> Option<&str> {
    let head = &head[..head.len().min(1024)];
    let head = &head[..declaration(head)?];
    let rest = head[memmem::find(head, b"encoding")? + 8..].trim_ascii_start();
    let rest = rest.strip_prefix(b"=")?.trim_ascii_start();
    let quote = *rest.first().filter(|b| b"\"'".contains(b))?;
    let end = memchr(quote, &rest[1..]).filter(|end| (1..=40).contains(end))?;
    let name = std::str::from_utf8(&rest[1..=end]).ok()?;
    name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._:-".contains(&b)).then_some(name)
}

/// Recodes an XML document as UTF-8, by its byte order mark, its declaration, or as it is. The
/// declaration becomes white space; lines and columns stay where they were.
pub(crate) fn decode_xml(data: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let (skip, encoding) = match &data[..] {
        [0xEF, 0xBB, 0xBF, ..] => (3, Encoding::Utf8),
        [0xFF, 0xFE, 0, 0, ..] => (4, Encoding::Utf32(false)),
        [0, 0, 0xFE, 0xFF, ..] => (4, Encoding::Utf32(true)),
        [0xFF, 0xFE, ..] => (2, Encoding::Utf16(false)),
        [0xFE, 0xFF, ..] => (2, Encoding::Utf16(true)),
        [b'<', 0, ..] => (0, Encoding::Utf16(false)),
        [0, b'<', ..] => (0, Encoding::Utf16(true)),
        _ => (
            0,
            match declared(&data) {
                None => Encoding::Utf8,
                Some(name) => known(name).ok_or_else(|| {
                    let remedy = "Save the document as UTF-8, and declare that.";
                    let name = name.to_ascii_lowercase();
                    Fault::new(format!("unknown encoding: {name}"), remedy).at(1, None)
                })?,
            },
        ),
    };
    let wrong = |name: &str, at: usize| {
        let what = format!("not in its encoding, {name} (bytes that are no character)");
        let remedy = "Declare the encoding that it is in, or save it as UTF-8.";
        fault_at(what, remedy, &data, at)
    };
    let rest = &data[skip..];
    let mut text = match encoding {
        Encoding::Utf8 => match std::str::from_utf8(rest) {
            Ok(_) if skip == 0 => data,
            Ok(text) => text.as_bytes().to_vec(),
            Err(error) => return Err(wrong("utf-8", skip + error.valid_up_to())),
        },
        Encoding::Latin1 => rest.iter().map(|b| char::from(*b)).collect::<String>().into_bytes(),
        Encoding::Utf16(big) => {
            let units = rest.chunks_exact(2).map(|unit| match unit {
                [a, b] if big => u16::from_be_bytes([*a, *b]),
                [a, b] => u16::from_le_bytes([*a, *b]),
                _ => 0,
            });
            let text: Result<String, _> = char::decode_utf16(units).collect();
            match text {
                Ok(text) if rest.len().is_multiple_of(2) => text.into_bytes(),
                _ => return Err(wrong("utf-16", 0)),
            }
        }
        Encoding::Utf32(big) => {
            let text: Option<String> = rest
                .chunks(4)
                .map(|unit| {
                    let unit = unit.try_into().ok()?;
                    char::from_u32(if big {
                        u32::from_be_bytes(unit)
                    } else {
                        u32::from_le_bytes(unit)
                    })
                })
                .collect();
            text.ok_or_else(|| wrong("utf-32", 0))?.into_bytes()
        }
    };
    if let Some(end) = declaration(&text) {
        text[..end].iter_mut().filter(|b| !b.is_ascii_whitespace()).for_each(|b| *b = b' ');
    }
    Ok(text)
}

/// Refuses XML that is cut off, nests too deep, or has entities that lie outside or add too much.
pub(crate) fn check_xml(text: &[u8], remedy: &str, limits: &Limits) -> Result<(), Fault> {
    let bad =
        |what: &str, at: usize| Err(fault_at(format!("not valid XML: {what}"), remedy, text, at));
    if let Some(at) = text.iter().position(|b| *b < 32 && !b.is_ascii_whitespace() || *b == 0x0C) {
        return bad("a control character", at);
    }
    let mut entities = Entities { lengths: HashMap::new(), added: 0, text, remedy, limits };
    let mut open: Vec<usize> = Vec::new(); // how many attributes each open element has
    let mut attributes = 0;
    let mut has_root = false;
    let mut at = 0;
    while let Some(next) = memchr(b'<', &text[at..]) {
        entities.count(at, at + next)?;
        let begin = at + next;
        let rest = &text[begin..];
        let end = |end: &[u8], from: usize| {
            memmem::find(rest.get(from..)?, end).map(|found| from + found + end.len())
        };
        let length = if rest.starts_with(b"<!--") {
            end(b"-->", 4)
        } else if rest.starts_with(b"<![CDATA[") {
            end(b"]]>", 9)
        } else if rest.starts_with(b"<?") {
            end(b"?>", 2)
        } else if rest.starts_with(b"<!") {
            let end = doctype_end(rest);
            if let Some(end) = end {
                entities.declare(begin, begin + end)?;
            }
            end
        } else if rest.starts_with(b"</") {
            if let Some(more) = open.pop() {
                attributes -= more;
            }
            end(b">", 2)
        } else {
            let (length, more) = match entities.tag(begin)? {
                Some(tag) => tag,
                None => return bad("unclosed token", begin),
            };
            if open.is_empty() && has_root {
                return bad("junk after document element", begin);
            }
            has_root = true;
            let depth = limits.xml_depth;
            if open.len() >= depth {
                return Err(fault_at(
                    format!("its elements nest more than {depth} deep"),
                    "If you trust the document, raise the limit xml_depth.",
                    text,
                    begin,
                ));
            }
            if attributes + more > ATTRIBUTES {
                let what = format!("more than {ATTRIBUTES} attributes of open elements");
                return Err(fault_at(what, "Write properties as elements.", text, begin));
            }
            if !rest[..length].ends_with(b"/>") {
                open.push(more);
                attributes += more;
            }
            Some(length)
        };
        match length {
            Some(length) => at = begin + length,
            None => return bad("unclosed token", begin),
        }
    }
    if !open.is_empty() || !has_root {
        return bad("no element found", text.trim_ascii_end().len());
    }
    Ok(())
}

/// The length of a document type declaration, as the parser takes it: by its angle brackets.
fn doctype_end(rest: &[u8]) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    loop {
        at += memchr2(b'<', b'>', &rest[at..])?;
        depth += if rest[at] == b'<' { 1 } else { -1 };
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
}

/// What the entities of a document amount to, without expanding any.
struct Entities<'a> {
    lengths: HashMap<&'a [u8], u64>,
    added: u64,
    text: &'a [u8],
    remedy: &'a str,
    limits: &'a Limits,
}

impl<'a> Entities<'a> {
    fn refuse(&self, at: usize) -> Fault {
        let most = grouped(self.limits.xml_expansion);
        let remedy = "If you trust the document, raise the limit xml_expansion.";
        fault_at(
            format!("its entities would add more than {most} characters"),
            remedy,
            self.text,
            at,
        )
    }

    /// How long a piece of text becomes, and where in it that is more than the limit.
    fn expanded(&self, begin: usize, end: usize) -> Result<u64, Fault> {
        let mut length = 0u64;
        if !self.lengths.is_empty() {
            let mut at = begin;
            while let Some(next) = memchr(b'&', &self.text[at..end]) {
                let name = at + next + 1;
                let Some(after) = memchr2(b'&', b';', &self.text[name..end]) else { break };
                at = name + after;
                let more = self.lengths.get(&self.text[name..at]).copied().unwrap_or(0);
                length = length.saturating_add(more);
                if length > self.limits.xml_expansion {
                    return Err(self.refuse(name - 1));
                }
            }
        }
        Ok(length)
    }

    /// Counts what the references in a piece of the document add to it.
    fn count(&mut self, begin: usize, end: usize) -> Result<u64, Fault> {
        let length = self.expanded(begin, end)?;
        self.added = self.added.saturating_add(length);
        // The text itself may be references only: what is added to it is what counts.
        if self.added > self.limits.xml_expansion.saturating_add(self.text.len() as u64) {
            return Err(self.refuse(begin));
        }
        Ok(length)
    }

    /// Takes the declarations of a document type, as laxly as the parser takes them.
    fn declare(&mut self, begin: usize, end: usize) -> Result<(), Fault> {
        let text = self.text;
        let mut at = begin;
        while let Some(next) = memmem::find(&text[at..end], b"<!ENTITY") {
            let start = at + next;
            at = start + 8;
            let skip = |at: usize| end - text[at..end].trim_ascii_start().len();
            let mut begin = skip(at);
            if text[begin..end].starts_with(b"%") {
                begin = skip(begin + 1);
            }
            let is_space = |b: &u8| b.is_ascii_whitespace();
            let Some(length) = text[begin..end].iter().position(is_space) else { break };
            let name = &text[begin..begin + length];
            let value = skip(begin + length);
            let rest = &text[value..end];
            if rest.starts_with(b"SYSTEM") || rest.starts_with(b"PUBLIC") {
                let name = String::from_utf8_lossy(name);
                let what = format!("the entity '{name}' lies outside the document");
                let remedy = "Nothing is fetched: write its text into the document instead.";
                return Err(fault_at(what, remedy, text, start));
            }
            let Some(quote) = rest.first().filter(|b| b"\"'".contains(b)) else { continue };
            let Some(length) = memchr(*quote, &rest[1..]) else { break };
            let more =
                self.expanded(value + 1, value + 1 + length).map_err(|_| self.refuse(start))?;
            let length = more.saturating_add(length as u64);
            if length > self.limits.xml_expansion {
                return Err(self.refuse(start));
            }
            self.lengths.insert(name, length);
        }
        Ok(())
    }

    /// The length of a tag and how many attributes it has; `None` where it does not end.
    fn tag(&mut self, begin: usize) -> Result<Option<(usize, usize)>, Fault> {
        let text = self.text;
        let bad = |at: usize| {
            let what = "not valid XML: not well-formed (invalid token)".to_owned();
            Err(fault_at(what, self.remedy, text, at))
        };
        let Some(rest) = after_name(&text[begin + 1..]) else { return bad(begin) };
        let (mut at, mut attributes) = (text.len() - rest.len(), 0);
        loop {
            let Some(next) = memchr3(b'"', b'\'', b'>', &text[at..]) else { return Ok(None) };
            let quote = at + next;
            if text[quote] == b'>' {
                if !matches!(text[at..quote].trim_ascii_start(), b"" | b"/") {
                    return bad(at);
                }
                return Ok(Some((quote + 1 - begin, attributes)));
            }
            let Some(length) = memchr2(text[quote], b'<', &text[quote + 1..]) else {
                return Ok(None);
            };
            let end = quote + 1 + length;
            let name = text[at..quote].trim_ascii_start();
            let is_apart = name.len() < quote - at;
            let sign = after_name(name).map(<[u8]>::trim_ascii);
            if text[end] == b'<' || !is_apart || sign != Some(b"=") {
                return bad(if text[end] == b'<' { end } else { at });
            }
            attributes += 1;
            let added = self.count(quote, end)?;
            if memmem::find(&text[at..quote], b"xmlns").is_some()
                && added.saturating_add(length as u64) > NAMESPACE_BYTES
            {
                let what = format!("a namespace of more than {} bytes", grouped(NAMESPACE_BYTES));
                return Err(fault_at(what, "Give the namespace a shorter name.", text, quote));
            }
            at = end + 1;
        }
    }
}

/// What comes after the XML name that a text begins with, if it does.
fn after_name(text: &[u8]) -> Option<&[u8]> {
    let is_start = |b: &u8| b.is_ascii_alphabetic() || matches!(b, b'_' | b':') || *b >= 0x80;
    let is_part = |b: &u8| is_start(b) || b.is_ascii_digit() || matches!(b, b'-' | b'.');
    text.first().filter(|b| is_start(b))?;
    Some(&text[text.iter().position(|b| !is_part(b)).unwrap_or(text.len())..])
}

// --- JSON ------------------------------------------------------------------------------------

/// Refuses JSON whose objects and lists nest too deep, or whose names stand for too much.
pub(crate) fn check_json(text: &[u8], limits: &Limits) -> Result<(), Fault> {
    let (mut depth, mut context) = (0usize, None);
    let (mut strings, mut longest) = (0usize, 0usize);
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limits.nesting {
                    return Err(nesting("its objects and lists nest", limits.nesting));
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                context = context.filter(|begun| depth > *begun);
            }
            b'"' => {
                let begin = at + 1;
                at = begin;
                loop {
                    match memchr2(b'"', b'\\', &text[at.min(text.len())..]) {
                        Some(next) if text[at + next] == b'"' => {
                            at += next;
                            break;
                        }
                        Some(next) => at += next + 2,
                        None => return Ok(()), // cut off: that is for the parser to say
                    }
                }
                let string = &text[begin..at];
                strings += 1;
                if context.is_some() {
                    longest = longest.max(string.len());
                } else if string == b"@context" || string.contains(&b'\\') {
                    let value = text[at + 1..].trim_ascii_start().strip_prefix(b":");
                    let value = value.map(<[u8]>::trim_ascii_start).unwrap_or_default();
                    context = matches!(value.first(), Some(b'{' | b'[')).then_some(depth);
                }
            }
            _ => {}
        }
        at += 1;
    }
    if strings.saturating_mul(longest) > NAMES_BYTES {
        let what =
            format!("its names would stand for more than {} bytes", grouped(NAMES_BYTES as u64));
        return Err(Fault::new(what, "Give its context shorter IRIs."));
    }
    Ok(())
}

// --- Brackets --------------------------------------------------------------------------------

/// The fault of something that nests too deep.
pub(crate) fn nesting(what: &str, most: usize) -> Fault {
    let remedy = "If you trust the document, raise the limit `nesting`.";
    Fault::new(format!("{what} more than {most} deep"), remedy)
}

/// Whether the triple terms of a line nest deeper than a limit; what looks like one in a literal
/// counts too.
pub(crate) fn has_deep_terms(line: &[u8], most: usize) -> bool {
    let mut depth = 0usize;
    let mut at = 0;
    while let Some(next) = memchr2(b'<', b')', line.get(at..).unwrap_or_default()) {
        at += next;
        if line[at..].starts_with(b"<<(") {
            depth += 1;
            if depth > most {
                return true;
            }
            at += 3;
        } else if line[at..].starts_with(b")>>") {
            depth = depth.saturating_sub(1);
            at += 3;
        } else {
            at += 1;
        }
    }
    false
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Inside {
    #[default]
    Nothing,
    Comment,
    Iri,
    /// A string with its quote, and whether it is a long one.
    String(u8, bool),
}

/// How deep the brackets of Turtle, TriG or N3 nest, from piece to piece.
#[derive(Default)]
pub(crate) struct Brackets {
    inside: Inside,
    escaped: bool,
    /// The last two bytes of what is being told: `<`, `<<`, or quotes.
    run: (u8, u8),
    depth: u32,
    terms: usize,
}

impl Brackets {
    /// Looks at a piece; returns what is wrong as soon as something is.
    pub(crate) fn look(&mut self, piece: &[u8], limits: &Limits) -> Result<(), Fault> {
        let mut at = 0;
        while at < piece.len() {
            if self.run.1 == 0 && !self.escaped {
                let rest = &piece[at..];
                at += match self.inside {
                    Inside::Comment => memchr2(b'\n', b'\r', rest),
                    Inside::String(quote, _) => memchr2(quote, b'\\', rest),
                    Inside::Nothing => rest.iter().position(|b| b"#\\<>\"'[](){}".contains(b)),
                    _ => Some(0),
                }
                .unwrap_or(piece.len() - at);
            }
            if at < piece.len() {
                self.byte(piece[at], limits)?;
                at += 1;
            }
        }
        Ok(())
    }

    fn byte(&mut self, byte: u8, limits: &Limits) -> Result<(), Fault> {
        if std::mem::take(&mut self.escaped) {
            return Ok(());
        }
        let (kind, count) = std::mem::take(&mut self.run);
        match self.inside {
            Inside::Comment => {
                if matches!(byte, b'\n' | b'\r') {
                    self.inside = Inside::Nothing;
                }
            }
            Inside::Iri => match byte {
                b'>' => self.inside = Inside::Nothing,
                // No IRI has these: an operator of N3, or a fault.
                b' ' | b'\t' | b'\n' | b'\r' | b'"' | b'{' | b'}' => {
                    self.inside = Inside::Nothing;
                    return self.byte(byte, limits);
                }
                _ => {}
            },
            Inside::String(quote, is_long) => {
                if byte == b'\\' {
                    self.escaped = true;
                } else if byte == quote {
                    if !is_long || (kind, count) == (quote, 2) {
                        self.inside = Inside::Nothing;
                    } else {
                        self.run = (quote, if kind == quote { count + 1 } else { 1 });
                    }
                }
            }
            Inside::Nothing => return self.outside(byte, kind, count, limits),
        }
        Ok(())
    }

    fn outside(&mut self, byte: u8, kind: u8, count: u8, limits: &Limits) -> Result<(), Fault> {
        match (kind, count) {
            (b'<', 1) if byte == b'<' => {
                self.depth += 1;
                self.terms += 1;
                self.run = (b'<', 2);
                return self.check(limits);
            }
            (b'<', 1) => {
                self.inside = Inside::Iri;
                return self.byte(byte, limits);
            }
            (b'<', _) if byte == b'(' => return Ok(()), // of the term that is counted
            (b'>', _) if byte == b'>' => {
                self.depth = self.depth.saturating_sub(1);
                self.terms = self.terms.saturating_sub(1);
                return Ok(());
            }
            (b')', _) if byte == b'>' => {
                self.depth += 1; // it was no end of a list
                self.run = (b'>', 1);
                return Ok(());
            }
            (b'"' | b'\'', 1) if byte == kind => {
                self.run = (kind, 2);
                return Ok(());
            }
            (b'"' | b'\'', 1) => {
                self.inside = Inside::String(kind, false);
                return self.byte(byte, limits);
            }
            (b'"' | b'\'', 2) if byte == kind => {
                self.inside = Inside::String(kind, true);
                return Ok(());
            }
            _ => {}
        }
        match byte {
            b'#' => self.inside = Inside::Comment,
            b'\\' => self.escaped = true,
            b'<' | b'>' | b'"' | b'\'' => self.run = (byte, 1),
            b'[' | b'(' | b'{' => {
                self.depth += 1;
                return self.check(limits);
            }
            b']' | b')' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                if byte == b')' {
                    self.run = (byte, 1);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check(&self, limits: &Limits) -> Result<(), Fault> {
        if self.terms > limits.nesting {
            return Err(nesting("its triple terms nest", limits.nesting));
        }
        if self.depth > BRACKETS {
            let what = format!("its brackets nest more than {} deep", grouped(BRACKETS.into()));
            return Err(Fault::new(what, "Give the data as N-Quads."));
        }
        Ok(())
    }
}
