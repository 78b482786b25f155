//! Terms as canonical N-Triples, and back: what `oxrdf` displays, without its formatting.

use crate::rewrite::{PRIVATE, unmarked};
use crate::values;
use oxrdf::{
    BaseDirection, BlankNode, Literal, LiteralRef, NamedNode, NamedOrBlankNode, Term, Triple,
};
use std::fmt::Write;

/// Writes a term as canonical N-Triples, marked literals as what they stand for.
pub(crate) fn write_term(text: &mut String, term: &Term) {
    match term {
        Term::Literal(literal) if literal.datatype().as_str().starts_with(PRIVATE) => {
            // Writing to a text cannot fail.
            let _ = write!(text, "{}", unmarked(literal.clone()));
        }
        Term::NamedNode(_) | Term::BlankNode(_) | Term::Literal(_) => {
            let _ = write!(text, "{term}");
        }
        Term::Triple(triple) => {
            text.push_str("<<( ");
            write_term(text, &triple.subject.clone().into());
            text.push(' ');
            write_term(text, &triple.predicate.clone().into());
            text.push(' ');
            write_term(text, &triple.object);
            text.push_str(" )>>");
        }
    }
}

/// How deep triple terms may be nested: those of a publication with more that a query puts around.
const DEPTH: usize = 1024;

/// The term of a canonical N-Triples text.
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
    let literal = values::Literal::of(text.as_bytes())?;
    let value = String::from_utf8(literal.plain().into_owned()).ok()?;
    let utf8 = |text| std::str::from_utf8(text).ok();
    if let Some(datatype) = literal.datatype {
        return Some(
            Literal::new_typed_literal(value, NamedNode::new_unchecked(utf8(datatype)?)).into(),
        );
    }
    let Some(tag) = literal.tag else { return Some(Literal::new_simple_literal(value).into()) };
    let tag = utf8(tag)?;
    let literal = match tag.split_once("--") {
        None => Literal::new_language_tagged_literal_unchecked(value, tag),
        Some((tag, direction)) => {
            let direction =
                if direction == "rtl" { BaseDirection::Rtl } else { BaseDirection::Ltr };
            Literal::new_directional_language_tagged_literal_unchecked(value, tag, direction)
        }
    };
    Some(literal.into())
}

fn name(text: &str) -> Option<NamedNode> {
    Some(NamedNode::new_unchecked(text.strip_prefix('<')?.strip_suffix('>')?))
}

/// Writes a text between quotation marks, escaped as in canonical N-Triples.
pub(crate) fn quote(text: &str, out: &mut Vec<u8>) {
    let is_plain = |b: u8| b >= 0x20 && !matches!(b, b'"' | b'\\' | 0x7F | 0xEF);
    if text.bytes().all(is_plain) {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        out.extend_from_slice(LiteralRef::new_simple_literal(text).to_string().as_bytes());
    }
}

/// The character that an escape sequence stands for, and the sequence's length without the
/// backslash.
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
