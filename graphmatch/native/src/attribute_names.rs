//! Names of terms: last parts of IRIs, folded texts, names of attributes.
//!
//! Everything here works on canonical N-Triples texts, and allocates only if a text changes. The
//! names of attributes are those of `semantic.attributes.names`.

use crate::dictionary::{Id, Kind, Terms, inline};
use memchr::memrchr;
use oxiri::Iri;
use percent_encoding::{percent_decode_str, percent_encode_byte};
use std::borrow::Cow;

/// How the IRIs of attributes begin, as N-Triples texts.
pub const ATTRIBUTE: &[u8] = b"<urn:graphmatch:attribute:";
/// How the IRIs begin that lead to the classes of an attribute's values.
pub const ISA: &[u8] = b"<urn:graphmatch:isa:";
/// The name of an attribute may have this many steps.
pub const ATTRIBUTE_STEPS: usize = 16;

/// The characters of ASCII, beside letters and digits, that stand in an IRI as they are.
const KEPT: &[u8] = b"-._~:/@!$&'()*+,;=";
const RESERVED: [&[u8]; 4] = [
    b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    b"<http://www.w3.org/2000/01/rdf-schema#",
    b"<http://www.w3.org/2002/07/owl#",
    b"<http://www.w3.org/2004/02/skos/core#",
];
const QUANTITY: &[u8] = b"<https://w3id.org/cdt/";

/// The text of all inline numbers, which are not names.
const NUMBER: &[u8] = b"\"0\"^^<http://www.w3.org/2001/XMLSchema#integer>";

/// The text of a term, without writing those of numbers: all of them look like one.
pub fn text<'a>(terms: Terms<'a>, id: Id) -> &'a [u8] {
    if inline::is_inline(id) {
        return NUMBER;
    }
    match terms.text(id) {
        Cow::Borrowed(text) => text,
        Cow::Owned(_) => NUMBER,
    }
}

/// Whether a property belongs to RDF, RDFS, OWL or SKOS.
pub fn is_reserved(text: &[u8]) -> bool {
    text.starts_with(b"<http://www.w3.org/") && RESERVED.iter().any(|known| text.starts_with(known))
}

/// Whether a term is a literal with a unit of measure.
pub fn is_quantity(text: &[u8]) -> bool {
    text.ends_with(b">")
        && Kind::of(text) == Kind::Literal
        && memrchr(b'<', text).is_some_and(|at| text[at..].starts_with(QUANTITY))
}

/// The last part of an IRI, or all of it if it has no parts.
pub fn local_name(iri: &str) -> &str {
    let separates = |c: char| matches!(c, '/' | '#' | ':' | '?');
    let body = iri.strip_suffix(['/', '#']).unwrap_or(iri);
    let name = body.rsplit(separates).next().unwrap_or_default();
    if name.is_empty() { iri } else { name }
}

/// Unicode's full case folding of a character.
///
/// It is the small letters of its capital letters, with three exceptions; found by comparing the
/// two over all characters.
fn fold_char(c: char, found: &mut String) {
    match c {
        '\0'..='\x7F' => found.push(c.to_ascii_lowercase()),
        'ı' => found.push(c),
        'ẞ' => found.push_str("ss"),
        '\u{13A0}'..='\u{13FF}' | '\u{AB70}'..='\u{ABBF}' => found.extend(c.to_uppercase()),
        _ => found.extend(c.to_uppercase().flat_map(char::to_lowercase)),
    }
}

/// Unicode's full case folding of a text.
pub fn case_folded(text: impl Iterator<Item = char>) -> String {
    let mut found = String::new();
    text.for_each(|c| fold_char(c, &mut found));
    found
}

/// A name in one case, with single spaces between its words.
pub fn folded(name: &str) -> String {
    let is_space = |c: char| c.is_whitespace() || matches!(c, '\u{1C}'..='\u{1F}');
    let words = name.split(is_space).filter(|word| !word.is_empty());
    words.map(|word| case_folded(word.chars())).collect::<Vec<_>>().join(" ")
}

/// Decodes percent-encoding.
pub fn unquoted(text: &str) -> Cow<'_, str> {
    percent_decode_str(text).decode_utf8_lossy()
}

/// A text as a part of an IRI; [`unquoted`] gives it back.
pub fn encoded(text: &str) -> String {
    let write = |keeps: fn(char) -> bool| {
        let mut found = String::with_capacity(text.len());
        for c in text.chars() {
            if c.is_ascii_alphanumeric() || (c.is_ascii() && KEPT.contains(&(c as u8))) || keeps(c)
            {
                found.push(c);
                continue;
            }
            found.extend(c.encode_utf8(&mut [0; 4]).bytes().map(percent_encode_byte));
        }
        found
    };
    let found = write(|c| c as u32 > 159);
    if found.is_ascii() || Iri::parse(format!("urn:{found}")).is_ok() {
        return found;
    }
    write(|_| false)
}

/// The name of the attribute that a property stands for.
pub fn attribute_name(property: &[u8]) -> Option<Cow<'_, str>> {
    after(ATTRIBUTE, property)
}

/// The name of the attribute whose values' classes a property has.
pub fn isa_name(property: &[u8]) -> Option<Cow<'_, str>> {
    after(ISA, property)
}

fn after<'a>(begin: &[u8], property: &'a [u8]) -> Option<Cow<'a, str>> {
    let rest = property.strip_prefix(begin)?.strip_suffix(b">")?;
    std::str::from_utf8(rest).ok().map(unquoted)
}

/// The property that stands for an attribute of one step, as N-Triples text.
pub fn attribute(step: &str) -> String {
    format!("<urn:graphmatch:attribute:{}>", encoded(step))
}

/// The steps of an attribute's name; `None` if it is not valid.
pub fn steps(name: &str) -> Option<Vec<&str>> {
    let (mut found, mut rest) = (Vec::new(), name);
    loop {
        let length = match rest.strip_prefix('<') {
            Some(inner) => {
                let end = inner.find(['<', '>'])?;
                inner[end..].starts_with('>').then_some(end + 2)?
            }
            None => rest.find(['.', '<', '>']).unwrap_or(rest.len()),
        };
        let (step, following) = rest.split_at(length);
        if step.is_empty() || step.chars().any(char::is_control) || found.len() == ATTRIBUTE_STEPS {
            return None;
        }
        found.push(step);
        if following.is_empty() {
            return Some(found);
        }
        rest = following.strip_prefix('.')?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_parts_of_iris() {
        for (iri, name) in [
            ("http://example.org/shop#LaptopPC", "LaptopPC"),
            ("urn:example:price", "price"),
            ("http://e/a/", "a"),
            ("http://e/a//", "http://e/a//"),
            ("http://e/v?q", "q"),
            ("urn:x:", "urn:x:"),
            ("abc", "abc"),
        ] {
            assert_eq!(local_name(iri), name);
        }
    }

    #[test]
    fn texts_in_one_case() {
        assert_eq!(folded("STRASSE Straße ΟΔΟΣ οδος ẞ ı"), "strasse strasse οδοσ οδοσ ss ı");
        assert_eq!(folded("  Laptop \u{1F} PC\u{A0}x "), "laptop pc x");
    }

    #[test]
    fn names_of_attributes() {
        for text in ["weight (kg)", "größe", "100%", "a\u{E000}b", "<https://schema.org/name>"] {
            assert_eq!(unquoted(&encoded(text)), text);
        }
        assert_eq!(encoded("weight (kg)"), "weight%20(kg)");
        assert_eq!(encoded("größe"), "größe");
        assert_eq!(encoded("a\u{E000}b"), "a%EE%80%80b");
        assert_eq!(steps("target.<https://s.org/n>"), Some(vec!["target", "<https://s.org/n>"]));
        for wrong in ["", ".", "a..b", "a.", "<a", "a>", "a<b>", "<a>b", "a\nb"] {
            assert_eq!(steps(wrong), None, "{wrong}");
        }
        assert!(steps(&["a"; 16].join(".")).is_some());
        assert!(steps(&["a"; 17].join(".")).is_none());
    }
}
