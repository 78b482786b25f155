//! Terms as integer ids.
//!
//! A term's key is its canonical N-Triples text as `oxrdf` displays it: `<iri>`, `_:b`, `"text"`,
//! `"text"@en`, `"5"^^<datatype>`, `<<( s p o )>>`. [`Dictionary`] has the terms of subscriptions
//! and of the ontology, with reference counts, and removes a term with its last reference. All other
//! terms of a publication are local to it ([`LocalTerms`]). They cost a hash and a copy of their
//! text, and are dropped with the publication. Most bounds of ranges and their values are short
//! integers and decimals, which are encoded in their ids ([`inline`]) and need no memory.

use crate::arena::Arena;
use crate::interner::Interner;
pub use crate::interner::hash;
use crate::lexical::read_term;
use hashbrown::HashTable;
use oxrdf::Term;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// The id of a term. Ids below [`INLINE`] are in the dictionary, those below [`LOCAL`] are numbers,
/// and all others are local to one publication.
pub type Id = u32;
/// The first id of an inline number.
pub const INLINE: Id = 1 << 30;
/// No term, or any term, by context.
pub const ANY: Id = u32::MAX;
/// The first id of a local term.
pub const LOCAL: Id = 1 << 31;

/// Numbers that are encoded in their ids.
///
/// Two of the 30 lower bits are the number of digits after the point (0: an `xsd:integer`), and 28
/// are the number without its point, plus 2²⁷. A text is inlined only if [`inline::text`] returns the
/// same text, so an id stands for one term.
pub mod inline {
    use super::{INLINE, Id, LOCAL};
    use std::cmp::Ordering;

    const HALF: i64 = 1 << 27;
    const INTEGER: &[u8] = b"\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    const DECIMAL: &[u8] = b"\"^^<http://www.w3.org/2001/XMLSchema#decimal>";

    /// Whether an id is an inline number.
    pub fn is_inline(id: Id) -> bool {
        (INLINE..LOCAL).contains(&id)
    }

    /// The digits of an inline number as an integer, and how many of them are after the point.
    pub fn number(id: Id) -> Option<(i64, u32)> {
        is_inline(id).then(|| ((id & ((1 << 28) - 1)) as i64 - HALF, (id >> 28) & 3))
    }

    /// The order of two inline numbers.
    pub fn order(one: Id, other: Id) -> Option<Ordering> {
        let ((one, places), (other, others)) = (number(one)?, number(other)?);
        if places == others {
            return Some(one.cmp(&other));
        }
        let unit = |more: u32, fewer: u32| 10i64.pow(more.saturating_sub(fewer));
        Some((one * unit(others, places)).cmp(&(other * unit(places, others))))
    }

    /// The id of a number by its digits and how many are after the point, if there is one.
    pub fn checked(digits: i64, places: u32) -> Option<Id> {
        (-HALF..HALF).contains(&digits).then(|| of(digits, places))
    }

    /// The id of a short number by its digits and how many of them are after the point.
    pub fn of(digits: i64, places: u32) -> Id {
        INLINE | places << 28 | (digits + HALF) as Id
    }

    /// The id of a literal by its key, if it can be inlined: a short number without a plus sign and
    /// without leading zeros.
    pub fn id(text: &[u8]) -> Option<Id> {
        let text = text.strip_prefix(b"\"")?;
        let (text, is_decimal) = match text.strip_suffix(INTEGER) {
            Some(digits) => (digits, false),
            None => (text.strip_suffix(DECIMAL)?, true),
        };
        let digits = text.strip_prefix(b"-").unwrap_or(text);
        let is_negative = digits.len() < text.len();
        let point = if is_decimal { digits.iter().position(|&b| b == b'.')? } else { digits.len() };
        let (whole, rest) = (&digits[..point], digits.get(point + 1..).unwrap_or_default());
        let is_whole = matches!(whole, [b'0'] | [b'1'..=b'9', ..]);
        if !is_whole || whole.len() + rest.len() > 9 || is_decimal != (1..=3).contains(&rest.len())
        {
            return None;
        }
        let mut value = 0;
        for byte in whole.iter().chain(rest) {
            if !byte.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(byte - b'0');
        }
        let value = if is_negative { -value } else { value };
        checked(value, rest.len() as u32).filter(|_| value != 0 || !is_negative)
    }

    /// The key of an inline number.
    pub fn text(id: Id) -> Vec<u8> {
        use std::io::Write;
        let (value, places) = number(id).unwrap_or_default();
        let mut text = Vec::with_capacity(56);
        let sign = if value < 0 { "-" } else { "" };
        let unit = 10i64.pow(places);
        let (whole, rest) = (value.abs() / unit, value.abs() % unit);
        // Writing to a vector cannot fail.
        let _ = match places {
            0 => write!(text, "\"{sign}{whole}"),
            _ => write!(text, "\"{sign}{whole}.{rest:0width$}", width = places as usize),
        };
        text.extend_from_slice(if places == 0 { INTEGER } else { DECIMAL });
        text
    }
}

/// The terms of subscriptions and of the ontology.
#[derive(Default, Serialize, Deserialize)]
pub struct Dictionary {
    terms: Interner,
    /// The terms that were released, if reports may still use them.
    #[serde(skip)]
    deferred: Option<Vec<Id>>,
}

impl Dictionary {
    /// The id of a term, if it is in the dictionary.
    pub fn get(&self, text: &[u8]) -> Option<Id> {
        self.get_hashed(text, hash(text))
    }

    /// The id of a term whose hash is known, if it is in the dictionary.
    pub fn get_hashed(&self, text: &[u8], hash: u64) -> Option<Id> {
        inline::id(text).or_else(|| self.terms.find_hashed(text, hash))
    }

    /// Adds a reference to a term, and returns its id.
    ///
    /// # Panics
    ///
    /// If the texts of all terms have 4 GB.
    pub fn intern(&mut self, text: &[u8]) -> Id {
        inline::id(text).or_else(|| self.terms.intern(text)).expect("texts of 4 GB")
    }

    /// Adds a reference to a term by its id.
    pub fn retain(&mut self, id: Id) {
        if id < INLINE {
            self.terms.retain(id);
        }
    }

    /// Removes a reference to a term. Without references, its id is free for another term.
    pub fn release(&mut self, id: Id) {
        if id < INLINE {
            match &mut self.deferred {
                Some(deferred) => deferred.push(id),
                None => _ = self.terms.release(id),
            }
        }
    }

    /// Collects the terms that are released from now on, instead of releasing them.
    pub fn defer_releases(&mut self, defer: bool) {
        self.deferred = defer.then(Vec::new);
    }

    /// The terms that were collected. The next ones are released at once.
    pub fn deferred_releases(&mut self) -> Vec<Id> {
        self.deferred.take().unwrap_or_default()
    }

    /// The key of a term of the dictionary or of an inline number.
    pub fn text(&self, id: Id) -> Cow<'_, [u8]> {
        if id < INLINE { Cow::Borrowed(self.terms.get(id)) } else { Cow::Owned(inline::text(id)) }
    }
}

/// The terms of one publication that are not in the dictionary, numbered from [`LOCAL`].
#[derive(Clone, Default)]
pub struct LocalTerms {
    table: HashTable<(u32, u64)>,
    texts: Arena<u8>,
}

impl LocalTerms {
    /// The id of a term whose hash is known; a new term is added.
    pub fn intern_hashed(&mut self, text: &[u8], hash: u64) -> Id {
        self.get_hashed(text, hash).unwrap_or_else(|| {
            let number = self.texts.insert(text).expect("texts of 4 GB");
            self.table.insert_unique(hash, (number, hash), |&(_, hash)| hash);
            LOCAL + number
        })
    }

    /// The id of a term: that of a dictionary, or a local one.
    pub fn id_of(&mut self, text: &[u8], dictionary: &Dictionary) -> Id {
        let hash = hash(text);
        dictionary.get_hashed(text, hash).unwrap_or_else(|| self.intern_hashed(text, hash))
    }

    /// The id of a term whose hash is known, if it was added.
    pub fn get_hashed(&self, text: &[u8], hash: u64) -> Option<Id> {
        let found = self.table.find(hash, |&(number, _)| self.texts.get(number) == text);
        found.map(|&(number, _)| LOCAL + number)
    }

    /// For each of these terms in order, its id in a dictionary, or its local id. Blank nodes are
    /// always local to the publication.
    pub fn known(&self, dictionary: &Dictionary) -> Vec<Id> {
        let mut ids: Vec<Id> = (0..self.len() as Id).map(|number| LOCAL + number).collect();
        for &(number, hash) in &self.table {
            let text = self.texts.get(number);
            if let Some(id) = dictionary.get_hashed(text, hash).filter(|_| !has_blank(text)) {
                ids[number as usize] = id;
            }
        }
        ids
    }

    /// The key of one of these terms.
    pub fn text(&self, id: Id) -> &[u8] {
        self.texts.get(id - LOCAL)
    }

    /// The number of terms.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// The total size of their keys in bytes.
    pub fn bytes(&self) -> usize {
        self.texts.length()
    }

    /// Removes all terms, and keeps the memory for the next publication.
    pub fn clear(&mut self) {
        self.table.clear();
        self.texts.clear();
    }
}

/// Whether a term is a blank node or a triple term with a blank node.
fn has_blank(text: &[u8]) -> bool {
    match Kind::of(text) {
        Kind::Blank => true,
        Kind::Triple => {
            let mut term = std::str::from_utf8(text).ok().and_then(read_term);
            while let Some(Term::Triple(triple)) = term {
                let is_blank = triple.subject.is_blank_node();
                term = Some(triple.object).filter(|_| !is_blank);
            }
            term.is_none_or(|term| term.is_blank_node())
        }
        Kind::Iri | Kind::Literal => false,
    }
}

/// All terms of a publication: those in the dictionary and its local ones.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// The terms of subscriptions and of the ontology.
    pub dictionary: &'a Dictionary,
    /// All other terms of the publication.
    pub local: &'a LocalTerms,
}

impl<'a> Terms<'a> {
    /// The key of a term.
    pub fn text(&self, id: Id) -> Cow<'a, [u8]> {
        if id < LOCAL { self.dictionary.text(id) } else { Cow::Borrowed(self.local.text(id)) }
    }

    /// The id of a key, if it is a term of the publication.
    pub fn find(&self, text: &[u8]) -> Option<Id> {
        let hash = hash(text);
        let found = self.dictionary.get_hashed(text, hash);
        found.or_else(|| self.local.get_hashed(text, hash))
    }

    /// The kind of a term.
    pub fn kind(&self, id: Id) -> Kind {
        if inline::is_inline(id) { Kind::Literal } else { Kind::of(&self.text(id)) }
    }
}

/// The kinds of RDF terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `<iri>`
    Iri,
    /// `_:b`
    Blank,
    /// `"text"`, with a language tag or a datatype or neither
    Literal,
    /// `<<( s p o )>>`
    Triple,
}

impl Kind {
    /// The kind of a term by its key.
    pub fn of(text: &[u8]) -> Self {
        match text {
            [b'"', ..] => Self::Literal,
            [b'_', ..] => Self::Blank,
            [b'<', b'<', ..] => Self::Triple,
            _ => Self::Iri,
        }
    }
}

#[cfg(test)]
impl Dictionary {
    /// The number of terms.
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// One more than the largest id.
    pub fn end(&self) -> usize {
        self.terms.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_term_goes_with_its_last_mention() {
        let mut dictionary = Dictionary::default();
        let first = dictionary.intern(b"<urn:a>");
        assert_eq!(dictionary.intern(b"<urn:a>"), first);
        dictionary.release(first);
        assert_eq!(dictionary.get(b"<urn:a>"), Some(first));
        dictionary.release(first);
        assert_eq!(dictionary.get(b"<urn:a>"), None);
        assert_eq!(dictionary.intern(b"<urn:b>"), first);
        assert_eq!(&*dictionary.text(first), b"<urn:b>");
    }

    #[test]
    fn short_numbers_are_their_own_ids() {
        let literal = |text: &str, of: &str| {
            format!("\"{text}\"^^<http://www.w3.org/2001/XMLSchema#{of}>").into_bytes()
        };
        for (text, of) in
            [("0", "integer"), ("-12", "integer"), ("134217727", "integer")].into_iter().chain([
                ("0.5", "decimal"),
                ("-0.05", "decimal"),
                ("12.50", "decimal"),
                ("7.000", "decimal"),
            ])
        {
            let text = literal(text, of);
            let id = inline::id(&text).unwrap();
            assert_eq!(inline::text(id), text);
            assert_eq!(Dictionary::default().get(&text), Some(id));
        }
        for (text, of) in [("01", "integer"), ("-0", "integer"), ("+1", "integer"), ("", "integer")]
            .into_iter()
            .chain([
                ("134217728", "integer"),
                ("5", "decimal"),
                (".5", "decimal"),
                ("5.", "decimal"),
            ])
            .chain([("00.5", "decimal"), ("-0.0", "decimal"), ("1.2345", "decimal"), ("5", "int")])
            .chain([
                ("-.5", "decimal"),
                ("1.-5", "decimal"),
                ("--1", "integer"),
                ("1e1", "decimal"),
            ])
        {
            assert_eq!(inline::id(&literal(text, of)), None, "{text} {of}");
        }
    }
}
