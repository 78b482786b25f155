//! Terms as integers.
//!
//! A term's key is its canonical N-Triples text as `oxrdf` displays it: `<iri>`, `_:b`, `"text"`,
//! `"text"@en`, `"5"^^<datatype>`, `<<( s p o )>>`. [`Dictionary`] holds the terms that
//! subscriptions and the ontology mention, counted by reference, so that they go when the last
//! mention goes. All other terms of a publication are its own ([`LocalTerms`]): they cost a hash
//! and a copy of their text, and are dropped with the publication. Short integers and decimals,
//! which bounds of ranges and their values mostly are, are their own ids ([`inline`]): they take
//! no room at all.

use crate::arena::Arena;
use crate::interner::{self, Interner};
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check};
use hashbrown::HashTable;
use oxrdf::{Term, TermRef};
use std::borrow::Cow;
use std::hash::BuildHasher;
use std::str::FromStr;

/// A term: of the dictionary below [`INLINE`], a number below [`LOCAL`], of one publication from
/// there on.
pub type Id = u32;
/// The first id of a number that is its own id.
pub const INLINE: Id = 1 << 30;
/// No term, or any term, by context.
pub const ANY: Id = u32::MAX;
/// The first id of a publication's own terms.
pub const LOCAL: Id = 1 << 31;

/// Numbers that are their own ids.
///
/// Of the 30 bits below the two that tell the ranges of ids apart, two are the number of digits
/// after the point (0: an `xsd:integer`), and 28 the number without its point, plus 2²⁷. A text is
/// inlined only if it is what [`inline::text`] writes again, so an id stands for one term.
pub mod inline {
    use super::{INLINE, Id, LOCAL};
    use std::cmp::Ordering;

    const HALF: i64 = 1 << 27;
    const INTEGER: &[u8] = b"\"^^<http://www.w3.org/2001/XMLSchema#integer>";
    const DECIMAL: &[u8] = b"\"^^<http://www.w3.org/2001/XMLSchema#decimal>";

    /// Whether an id is a number's own.
    #[inline]
    pub fn is_inline(id: Id) -> bool {
        (INLINE..LOCAL).contains(&id)
    }

    /// The number that an id is: its digits as an integer, and how many are after the point.
    #[inline]
    pub fn number(id: Id) -> Option<(i64, u32)> {
        is_inline(id).then(|| ((id & ((1 << 28) - 1)) as i64 - HALF, (id >> 28) & 3))
    }

    /// The order of two numbers that are their own ids.
    #[inline]
    pub fn order(one: Id, other: Id) -> Option<Ordering> {
        let ((one, places), (other, others)) = (number(one)?, number(other)?);
        if places == others {
            return Some(one.cmp(&other));
        }
        let unit = |more: u32, fewer: u32| 10i64.pow(more.saturating_sub(fewer));
        Some((one * unit(others, places)).cmp(&(other * unit(places, others))))
    }

    /// The id of an `xsd:integer`, if it is small enough.
    #[inline]
    pub fn integer(value: i64) -> Option<Id> {
        checked(value, 0)
    }

    /// The id of a number by its digits and how many are after the point, if there is one.
    #[inline]
    pub fn checked(digits: i64, places: u32) -> Option<Id> {
        (-HALF..HALF).contains(&digits).then(|| of(digits, places))
    }

    /// The id of a number that is short enough, by its digits and how many are after the point.
    #[inline]
    pub fn of(digits: i64, places: u32) -> Id {
        INLINE | places << 28 | (digits + HALF) as Id
    }

    /// The id of a literal by its canonical N-Triples text, if it is a number's own: one without a
    /// sign of plus or leading zeros, and small enough.
    #[inline]
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

    /// The canonical N-Triples text of a number that is its own id.
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

/// The hash of a term's text, by a key of this process: the same in every dictionary.
#[inline]
pub fn hash(text: &[u8]) -> u64 {
    interner::hasher().hash_one(text)
}

/// The terms that subscriptions and the ontology mention.
#[derive(Default)]
pub struct Dictionary {
    terms: Interner,
}

impl Dictionary {
    /// The hash of a text, as [`Dictionary::get_hashed`] and [`LocalTerms`] want it.
    #[inline]
    pub fn hash(&self, text: &[u8]) -> u64 {
        self.terms.hash(text)
    }

    /// The id of a term, if it is mentioned.
    #[inline]
    pub fn get(&self, text: &[u8]) -> Option<Id> {
        self.get_hashed(text, self.hash(text))
    }

    /// The same, for a text whose hash is known.
    #[inline]
    pub fn get_hashed(&self, text: &[u8], hash: u64) -> Option<Id> {
        inline::id(text).or_else(|| self.terms.find_hashed(text, hash))
    }

    /// The id of a term of a publication, if it is mentioned: a blank node is a term of its
    /// publication only, whatever it is called.
    #[inline]
    pub fn get_shared(&self, text: &[u8], hash: u64) -> Option<Id> {
        self.get_hashed(text, hash).filter(|_| !has_blank(text))
    }

    /// The id of a term, which is mentioned once more from now on.
    ///
    /// # Panics
    ///
    /// If the texts of all terms have 4 GB.
    pub fn intern(&mut self, text: &[u8]) -> Id {
        inline::id(text).or_else(|| self.terms.intern(text)).expect("texts of 4 GB")
    }

    /// Mentions a term of the dictionary once more.
    pub fn retain(&mut self, id: Id) {
        if id < INLINE {
            self.terms.retain(id);
        }
    }

    /// Mentions a term once less; the last time its id is free for another.
    pub fn release(&mut self, id: Id) {
        if id < INLINE {
            self.terms.release(id);
        }
    }

    /// The text of a term of the dictionary, or of a number that is its own id.
    #[inline]
    pub fn text(&self, id: Id) -> Cow<'_, [u8]> {
        if id < INLINE { Cow::Borrowed(self.terms.get(id)) } else { Cow::Owned(inline::text(id)) }
    }

    /// How many terms there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.terms.len()
    }

    /// Whether an id is that of a term that is mentioned, or of a number.
    #[inline]
    pub fn knows(&self, id: Id) -> bool {
        self.terms.has(id) || inline::is_inline(id)
    }

    /// Fails unless some ids are of terms that are mentioned, as those of a snapshot have to be.
    pub fn check<'a>(&self, ids: impl IntoIterator<Item = &'a Id>) -> Result<(), SnapshotError> {
        check(ids.into_iter().all(|&id| self.knows(id)), "a number of no term")
    }

    #[cfg(test)]
    /// One more than the largest id there is.
    pub fn end(&self) -> usize {
        self.terms.end()
    }
}

impl Stored for Dictionary {
    fn save(&self, to: &mut Saver) {
        self.terms.save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let terms = Interner::load(from)?;
        check(terms.end() <= INLINE as usize, "more terms than there can be")?;
        terms.check_uses()?;
        Ok(Self { terms })
    }
}

/// The terms of one publication that nobody mentions, numbered from [`LOCAL`] on.
#[derive(Clone, Default)]
pub struct LocalTerms {
    table: HashTable<(u32, u64)>,
    texts: Arena<u8>,
}

impl LocalTerms {
    /// The id of a term whose hash by the dictionary is known.
    #[inline]
    pub fn intern_hashed(&mut self, text: &[u8], hash: u64) -> Id {
        self.get_hashed(text, hash).unwrap_or_else(|| self.add(text, hash))
    }

    /// The id of a term: a dictionary's, or its own.
    pub fn id_of(&mut self, text: &[u8], dictionary: &Dictionary) -> Id {
        let hash = dictionary.hash(text);
        dictionary.get_hashed(text, hash).unwrap_or_else(|| self.intern_hashed(text, hash))
    }

    /// The same, where a text that is new is looked at first; `None` if it is refused.
    #[inline]
    pub fn intern_checked(
        &mut self,
        text: &[u8],
        hash: u64,
        is_valid: impl FnOnce() -> bool,
    ) -> Option<Id> {
        self.get_hashed(text, hash).or_else(|| is_valid().then(|| self.add(text, hash)))
    }

    /// The id of a term whose hash by the dictionary is known, if it is one of these.
    #[inline]
    pub fn get_hashed(&self, text: &[u8], hash: u64) -> Option<Id> {
        let found = self.table.find(hash, |&(number, _)| self.texts.get(number) == text);
        found.map(|&(number, _)| LOCAL + number)
    }

    /// The ids of these terms in their order: those that a dictionary has for them, or their own.
    pub fn known(&self, dictionary: &Dictionary) -> Vec<Id> {
        let mut ids: Vec<Id> = (0..self.len() as Id).map(|number| LOCAL + number).collect();
        for &(number, hash) in &self.table {
            if let Some(id) = dictionary.get_shared(self.texts.get(number), hash) {
                ids[number as usize] = id;
            }
        }
        ids
    }

    fn add(&mut self, text: &[u8], hash: u64) -> Id {
        let number = self.texts.insert(text).expect("texts of 4 GB");
        self.table.insert_unique(hash, (number, hash), |&(_, hash)| hash);
        LOCAL + number
    }

    /// The text of one of these terms.
    #[inline]
    pub fn text(&self, id: Id) -> &[u8] {
        self.texts.get(id - LOCAL)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// How many bytes their texts have.
    pub fn bytes(&self) -> usize {
        self.texts.length()
    }

    /// Forgets all, and keeps the memory for the next publication.
    pub fn clear(&mut self) {
        self.table.clear();
        self.texts.clear();
    }
}

/// Whether a term is a blank node, or a triple term with one in it.
fn has_blank(text: &[u8]) -> bool {
    fn is_blank(term: TermRef<'_>) -> bool {
        match term {
            TermRef::BlankNode(_) => true,
            TermRef::Triple(triple) => {
                is_blank(triple.subject.as_ref().into()) || is_blank(triple.object.as_ref())
            }
            _ => false,
        }
    }
    match Kind::of(text) {
        Kind::Blank => true,
        Kind::Triple => {
            let term = std::str::from_utf8(text).ok().and_then(|text| Term::from_str(text).ok());
            term.is_none_or(|term| is_blank(term.as_ref()))
        }
        Kind::Iri | Kind::Literal => false,
    }
}

/// Every term that a publication can meet: the dictionary's and its own.
#[derive(Clone, Copy)]
pub struct Terms<'a> {
    /// Those that are mentioned.
    pub dictionary: &'a Dictionary,
    /// The others.
    pub local: &'a LocalTerms,
}

impl<'a> Terms<'a> {
    /// The canonical N-Triples text of a term.
    #[inline]
    pub fn text(&self, id: Id) -> Cow<'a, [u8]> {
        if id < LOCAL { self.dictionary.text(id) } else { Cow::Borrowed(self.local.text(id)) }
    }

    /// The id of a text whose hash by the dictionary is known, if it is a term of either.
    pub fn find_hashed(&self, text: &[u8], hash: u64) -> Option<Id> {
        let found = self.dictionary.get_hashed(text, hash);
        found.or_else(|| self.local.get_hashed(text, hash))
    }

    /// What kind of term it is.
    #[inline]
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
    /// The kind of a term by its text.
    #[inline]
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
