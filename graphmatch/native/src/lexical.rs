//! The canonical N-Triples text of a term: written, read, escaped.
//!
//! It is what `oxrdf` displays, without its formatting where no character needs an escape.

use oxrdf::vocab::xsd;
use oxrdf::{
    BaseDirection, BlankNode, Literal, LiteralRef, NamedNode, NamedOrBlankNode, Term, TermRef,
    Triple,
};
use std::borrow::Cow;

/// The first character of each private name: of a property, a function or a datatype.
pub(crate) const PRIVATE: char = '>';

/// Appends texts.
pub(crate) fn add<const N: usize>(to: &mut Vec<u8>, texts: [&str; N]) {
    texts.into_iter().for_each(|text| to.extend_from_slice(text.as_bytes()));
}

/// The text of a term.
pub(crate) fn text_of(term: &Term) -> String {
    let mut text = Vec::new();
    write_term(&mut text, term.as_ref());
    String::from_utf8(text).unwrap_or_default()
}

/// Appends a term. Triple terms must not nest deep. A marked literal is written as the literal that
/// it stands for.
pub(crate) fn write_term(to: &mut Vec<u8>, term: TermRef<'_>) {
    match term {
        TermRef::NamedNode(node) => add(to, ["<", node.as_str(), ">"]),
        TermRef::BlankNode(node) => add(to, ["_:", node.as_str()]),
        TermRef::Literal(literal) => write_literal(to, literal),
        TermRef::Triple(triple) => {
            add(to, ["<<( "]);
            write_term(to, triple.subject.as_ref().into());
            add(to, [" "]);
            write_term(to, triple.predicate.as_ref().into());
            add(to, [" "]);
            write_term(to, triple.object.as_ref());
            add(to, [" )>>"]);
        }
    }
}

fn write_literal(to: &mut Vec<u8>, literal: LiteralRef<'_>) {
    if literal.direction().is_some() {
        return add(to, [&literal.to_string()]);
    }
    write_quoted(to, literal.value());
    let datatype = literal.datatype().as_str();
    let datatype = datatype.strip_prefix(PRIVATE).unwrap_or(datatype);
    if let Some(language) = literal.language() {
        add(to, ["@", language]);
    } else if datatype != xsd::STRING.as_str() {
        add(to, ["^^<", datatype, ">"]);
    }
}

/// Appends a string between quotation marks, escaped.
pub(crate) fn write_quoted(to: &mut Vec<u8>, value: &str) {
    let is_odd = |b: u8| b < b' ' || matches!(b, b'"' | b'\\' | 0x7F | 0xEF);
    let mut rest = value;
    add(to, ["\""]);
    // Whole chunks are compared at once.
    let is_plain = |chunk: &&[u8]| !chunk.iter().fold(false, |found, &byte| found | is_odd(byte));
    let next = |rest: &str| {
        let chunks = rest.as_bytes().chunks(32).take_while(is_plain);
        let begin = chunks.map(<[u8]>::len).sum();
        rest.as_bytes()[begin..].iter().position(|&byte| is_odd(byte)).map(|at| begin + at)
    };
    while let Some(at) = next(rest) {
        let odd = rest[at..].chars().next().map_or(1, char::len_utf8);
        let escaped = match &rest[at..at + odd] {
            "\"" => Cow::Borrowed(r#""\"""#),
            "\n" => Cow::Borrowed(r#""\n""#),
            odd => LiteralRef::new_simple_literal(odd).to_string().into(),
        };
        add(to, [&rest[..at], &escaped[1..escaped.len() - 1]]);
        rest = &rest[at + odd..];
    }
    add(to, [rest, "\""]);
}

/// How deep triple terms may nest. A query may put some around those of a publication.
const DEPTH: usize = 1024;

/// Reads a term.
pub(crate) fn read_term(text: &str) -> Option<Term> {
    read(text, DEPTH)
}

fn read(text: &str, depth: usize) -> Option<Term> {
    if let Some(inner) = text.strip_prefix("<<( ") {
        let (subject, rest) = inner.strip_suffix(" )>>")?.split_once(' ')?;
        let (predicate, object) = rest.split_once(' ')?;
        let object = read(object, depth.checked_sub(1)?)?;
        let subject = match read(subject, 0)? {
            Term::NamedNode(name) => NamedOrBlankNode::from(name),
            Term::BlankNode(node) => node.into(),
            _ => return None,
        };
        return Some(Triple { subject, predicate: name(predicate)?, object }.into());
    }
    if let Some(label) = text.strip_prefix("_:") {
        return Some(BlankNode::new_unchecked(label).into());
    }
    if text.starts_with('<') {
        return Some(name(text)?.into());
    }
    let literal = LiteralParts::of(text.as_bytes())?;
    let value = String::from_utf8(literal.plain().into_owned()).ok()?;
    let utf8 = |text| std::str::from_utf8(text).ok();
    let literal = match (literal.datatype, literal.tag) {
        (Some(name), _) => Literal::new_typed_literal(value, NamedNode::new_unchecked(utf8(name)?)),
        (None, None) if !text.ends_with('"') => return None,
        (None, None) => Literal::new_simple_literal(value),
        (None, Some(tag)) => match utf8(tag)?.split_once("--") {
            None => Literal::new_language_tagged_literal_unchecked(value, utf8(tag)?),
            Some((tag, direction)) => {
                use BaseDirection::{Ltr, Rtl};
                let direction = if direction == "rtl" { Rtl } else { Ltr };
                Literal::new_directional_language_tagged_literal_unchecked(value, tag, direction)
            }
        },
    };
    Some(literal.into())
}

fn name(text: &str) -> Option<NamedNode> {
    Some(NamedNode::new_unchecked(text.strip_prefix('<')?.strip_suffix('>')?))
}

/// The three parts of a literal's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteralParts<'a> {
    /// The text between the quotation marks, with escapes.
    pub lexical: &'a [u8],
    /// The language tag, with the base direction if there is one: `en`, `ar--rtl`.
    pub tag: Option<&'a [u8]>,
    /// The datatype's IRI; `None` for strings with or without a language tag.
    pub datatype: Option<&'a [u8]>,
}

impl<'a> LiteralParts<'a> {
    /// Returns the parts of a literal's canonical text, or `None` for other terms.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let rest = text.strip_prefix(b"\"")?;
        let end = memchr::memrchr(b'"', rest)?;
        let (lexical, suffix) = (&rest[..end], &rest[end + 1..]);
        let datatype = suffix.strip_prefix(b"^^<").and_then(|s| s.strip_suffix(b">"));
        Some(Self { lexical, tag: suffix.strip_prefix(b"@"), datatype })
    }

    /// The lexical form without escapes.
    pub fn plain(&self) -> Cow<'a, [u8]> {
        unescape(self.lexical)
    }

    /// The language tag without the base direction.
    pub fn language(&self) -> Option<&'a [u8]> {
        let tag = self.tag?;
        Some(memchr::memmem::find(tag, b"--").map_or(tag, |end| &tag[..end]))
    }
}

/// Decodes an escape after its backslash: the character, and the number of bytes read.
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

/// The characters of an escaped text.
pub(crate) fn unescape(text: &[u8]) -> Cow<'_, [u8]> {
    let (mut plain, mut rest) = (Vec::new(), text);
    while let Some(at) = memchr::memchr(b'\\', rest) {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        plain.extend_from_slice(before);
        let (char, length) = escape(after).unwrap_or(('\\', 0));
        plain.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
        rest = &after[length..];
    }
    if rest.len() == text.len() {
        return Cow::Borrowed(text);
    }
    plain.extend_from_slice(rest);
    Cow::Owned(plain)
}

/// The characters of a string with or without a language.
pub(crate) fn string(text: &[u8]) -> Option<Cow<'_, str>> {
    let literal = LiteralParts::of(text)?;
    if literal.datatype.is_some() || literal.tag != literal.language() {
        return None;
    }
    match literal.plain() {
        Cow::Borrowed(text) => std::str::from_utf8(text).ok().map(Cow::from),
        Cow::Owned(text) => String::from_utf8(text).ok().map(Cow::from),
    }
}

/// A string as a literal's text.
pub(crate) fn quote(value: &str) -> String {
    let mut text = Vec::with_capacity(value.len() + 2);
    write_quoted(&mut text, value);
    String::from_utf8(text).unwrap_or_default()
}

/// The IRI of a term; `None` for other terms.
pub(crate) fn iri(text: &[u8]) -> Option<&str> {
    if text.starts_with(b"<<") {
        return None;
    }
    std::str::from_utf8(text.strip_prefix(b"<")?.strip_suffix(b">")?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_strings() {
        for text in ["a\"b\\c\nd\u{1}", "", "é"] {
            let literal = quote(text);
            assert_eq!(string(literal.as_bytes()).as_deref(), Some(text));
            assert_eq!(string(format!("{literal}@de").as_bytes()).as_deref(), Some(text));
            assert_eq!(string(format!("{literal}@de--ltr").as_bytes()), None);
            assert_eq!(string(format!("{literal}^^<urn:t>").as_bytes()), None);
        }
    }
}
