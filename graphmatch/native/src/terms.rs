//! Terms as canonical N-Triples, and back: what `oxrdf` displays, without its formatting.

use crate::cut::escape;
use crate::rewrite::{PRIVATE, unmarked};
use oxrdf::{BaseDirection, BlankNode, Literal, NamedNode, NamedOrBlankNode, Term, Triple};
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

/// How deep triple terms may be nested.
const DEPTH: usize = 128;

/// The term of a canonical N-Triples text.
pub(crate) fn read_term(text: &str) -> Option<Term> {
    let (term, rest) = read_part(text, DEPTH)?;
    rest.is_empty().then_some(term)
}

fn read_part(text: &str, depth: usize) -> Option<(Term, &str)> {
    if let Some(rest) = text.strip_prefix("<<( ") {
        let (subject, rest) = read_part(rest, depth.checked_sub(1)?)?;
        let (predicate, rest) = read_part(rest.strip_prefix(' ')?, depth - 1)?;
        let (object, rest) = read_part(rest.strip_prefix(' ')?, depth - 1)?;
        let subject = match subject {
            Term::NamedNode(name) => NamedOrBlankNode::from(name),
            Term::BlankNode(node) => node.into(),
            _ => return None,
        };
        let Term::NamedNode(predicate) = predicate else { return None };
        let triple = Triple { subject, predicate, object };
        return Some((Term::Triple(Box::new(triple)), rest.strip_prefix(" )>>")?));
    }
    if let Some(rest) = text.strip_prefix("_:") {
        let (label, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
        return Some((BlankNode::new_unchecked(label).into(), rest));
    }
    if text.starts_with('<') {
        let (name, rest) = read_name(text)?;
        return Some((name.into(), rest));
    }
    let rest = text.strip_prefix('"')?;
    let (value, rest) = match rest.find(['"', '\\'])? {
        end if rest.as_bytes()[end] == b'"' => (rest[..end].to_owned(), &rest[end + 1..]),
        _ => unescaped(rest)?,
    };
    if let Some(rest) = rest.strip_prefix("^^") {
        let (datatype, rest) = read_name(rest)?;
        return Some((Literal::new_typed_literal(value, datatype).into(), rest));
    }
    let Some(rest) = rest.strip_prefix('@') else {
        return Some((Literal::new_simple_literal(value).into(), rest));
    };
    let (tag, rest) = rest.split_at(rest.find(' ').unwrap_or(rest.len()));
    let literal = match tag.split_once("--") {
        None => Literal::new_language_tagged_literal_unchecked(value, tag),
        Some((tag, direction)) => {
            let direction =
                if direction == "rtl" { BaseDirection::Rtl } else { BaseDirection::Ltr };
            Literal::new_directional_language_tagged_literal_unchecked(value, tag, direction)
        }
    };
    Some((literal.into(), rest))
}

fn read_name(text: &str) -> Option<(NamedNode, &str)> {
    let (name, rest) = text.strip_prefix('<')?.split_once('>')?;
    Some((NamedNode::new_unchecked(name), rest))
}

/// The value of a literal up to its closing quote, and what follows.
pub(crate) fn unescaped(text: &str) -> Option<(String, &str)> {
    let mut value = String::with_capacity(text.len());
    let mut rest = text;
    loop {
        let end = rest.find(['"', '\\'])?;
        value.push_str(&rest[..end]);
        let after = &rest[end + 1..];
        if rest.as_bytes()[end] == b'"' {
            return Some((value, after));
        }
        let (c, length) = escape(after.as_bytes())?;
        value.push(c);
        rest = &after[length..];
    }
}
