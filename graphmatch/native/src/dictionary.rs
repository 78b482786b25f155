//! Terms as integers.
//!
//! A term's key is its canonical N-Triples text as `oxrdf` displays it: `<iri>`, `_:b`, `"text"`,
//! `"text"@en`, `"5"^^<datatype>`, `<<( s p o )>>`. [`Dictionary`] holds the terms that
//! subscriptions and the ontology mention, counted by reference, so that they go when the last
//! mention goes. All other terms of a publication are its own ([`LocalTerms`]): they cost a hash
//! and a copy of their text, and are dropped with the publication. Short integers and decimals,
//! which bounds of ranges and their values mostly are, are their own ids ([`inline`]): they take
//! no room at all.

use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::borrow::Cow;
use std::hash::BuildHasher;

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
        (-HALF..HALF).contains(&value).then(|| INLINE | (value + HALF) as Id)
    }

    /// The id of a literal by its canonical N-Triples text, if it is a number's own.
    #[inline]
    pub fn id(text: &[u8]) -> Option<Id> {
        let digits = text.strip_prefix(b"\"")?;
        if let Some(digits) = digits.strip_suffix(INTEGER) {
            return parsed(digits, b"").map(|value| INLINE | (value + HALF) as Id);
        }
        let digits = digits.strip_suffix(DECIMAL)?;
        let point = digits.iter().position(|&byte| byte == b'.')?;
        let (whole, rest) = (&digits[..point], &digits[point + 1..]);
        if !(1..=3).contains(&rest.len()) || whole.starts_with(b"-") && whole.len() < 2 {
            return None;
        }
        if !rest.iter().all(u8::is_ascii_digit) || parsed(whole, b"").is_none() && whole != b"-0" {
            return None;
        }
        let value = parsed(whole, rest)?;
        Some(INLINE | (rest.len() as Id) << 28 | (value + HALF) as Id)
    }

    /// An integer without signs of plus or leading zeros, with the digits after a point behind it.
    fn parsed(whole: &[u8], rest: &[u8]) -> Option<i64> {
        let digits = whole.strip_prefix(b"-").unwrap_or(whole);
        let negative = digits.len() < whole.len();
        if digits.is_empty() || digits.len() + rest.len() > 9 {
            return None;
        }
        if digits[0] == b'0' && (digits.len() > 1 || negative && rest.is_empty()) {
            return None;
        }
        let mut value = 0;
        for byte in digits.iter().chain(rest) {
            if !byte.is_ascii_digit() {
                return None;
            }
            value = value * 10 + i64::from(byte - b'0');
        }
        if negative && value == 0 {
            return None;
        }
        let value = if negative { -value } else { value };
        (-HALF..HALF).contains(&value).then_some(value)
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

/// Texts one behind the other, each found by its number.
#[derive(Default)]
struct Texts {
    arena: Vec<u8>,
    spans: Vec<(u32, u32)>,
}

impl Texts {
    fn push(&mut self, text: &[u8]) -> (u32, u32) {
        let begin = self.arena.len() as u32;
        self.arena.extend_from_slice(text);
        (begin, self.arena.len() as u32)
    }

    fn get(&self, number: usize) -> &[u8] {
        let (begin, end) = self.spans[number];
        &self.arena[begin as usize..end as usize]
    }
}

/// The terms that subscriptions and the ontology mention.
#[derive(Default)]
pub struct Dictionary {
    hasher: RandomState,
    table: HashTable<Id>,
    texts: Texts,
    references: Vec<u32>,
    free: Vec<Id>,
    garbage: usize,
}

impl Dictionary {
    /// The hash of a text, as [`Dictionary::get_hashed`] and [`LocalTerms`] want it.
    #[inline]
    pub fn hash(&self, text: &[u8]) -> u64 {
        self.hasher.hash_one(text)
    }

    /// The id of a term, if it is mentioned.
    #[inline]
    pub fn get(&self, text: &[u8]) -> Option<Id> {
        self.get_hashed(text, self.hash(text))
    }

    /// The same, for a text whose hash is known.
    #[inline]
    pub fn get_hashed(&self, text: &[u8], hash: u64) -> Option<Id> {
        if text.last() == Some(&b'>') && text[0] == b'"' {
            if let Some(id) = inline::id(text) {
                return Some(id);
            }
        }
        self.table.find(hash, |&id| self.texts.get(id as usize) == text).copied()
    }

    /// The id of a term, which is mentioned once more from now on.
    pub fn intern(&mut self, text: &[u8]) -> Id {
        let hash = self.hash(text);
        if let Some(id) = self.get_hashed(text, hash) {
            self.retain(id);
            return id;
        }
        let span = self.texts.push(text);
        let id = match self.free.pop() {
            Some(id) => {
                self.texts.spans[id as usize] = span;
                self.references[id as usize] = 1;
                id
            }
            None => {
                self.texts.spans.push(span);
                self.references.push(1);
                (self.texts.spans.len() - 1) as Id
            }
        };
        let (texts, hasher) = (&self.texts, &self.hasher);
        self.table.insert_unique(hash, id, |&id| hasher.hash_one(texts.get(id as usize)));
        id
    }

    /// Mentions a term of the dictionary once more.
    pub fn retain(&mut self, id: Id) {
        if id < INLINE {
            self.references[id as usize] += 1;
        }
    }

    /// Mentions a term once less; the last time its id is free for another.
    pub fn release(&mut self, id: Id) {
        if id >= INLINE {
            return;
        }
        let count = &mut self.references[id as usize];
        *count -= 1;
        if *count > 0 {
            return;
        }
        let hash = self.hasher.hash_one(self.texts.get(id as usize));
        if let Ok(entry) = self.table.find_entry(hash, |&other| other == id) {
            entry.remove();
        }
        self.garbage += self.texts.get(id as usize).len();
        self.texts.spans[id as usize] = (0, 0);
        self.free.push(id);
        if self.garbage > 1 << 16 && self.garbage > self.texts.arena.len() / 2 {
            self.compact();
        }
    }

    fn compact(&mut self) {
        let mut arena = Vec::with_capacity(self.texts.arena.len() - self.garbage);
        for (id, span) in self.texts.spans.iter_mut().enumerate() {
            if self.references[id] == 0 {
                continue;
            }
            let begin = arena.len() as u32;
            arena.extend_from_slice(&self.texts.arena[span.0 as usize..span.1 as usize]);
            *span = (begin, arena.len() as u32);
        }
        self.texts.arena = arena;
        self.garbage = 0;
    }

    /// The text of a term of the dictionary, or of a number that is its own id.
    #[inline]
    pub fn text(&self, id: Id) -> Cow<'_, [u8]> {
        if id < INLINE {
            Cow::Borrowed(self.texts.get(id as usize))
        } else {
            Cow::Owned(inline::text(id))
        }
    }

    /// How many terms there are.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether an id is that of a term that is mentioned, or of a number.
    #[inline]
    pub fn knows(&self, id: Id) -> bool {
        self.references.get(id as usize).is_some_and(|&count| count > 0) || inline::is_inline(id)
    }

    /// Fails unless some ids are of terms that are mentioned, as those of a snapshot have to be.
    pub fn check<'a>(&self, ids: impl IntoIterator<Item = &'a Id>) -> Result<(), SnapshotError> {
        check(ids.into_iter().all(|&id| self.knows(id)), "a number of no term")
    }

    /// One more than the largest id there is.
    pub fn end(&self) -> usize {
        self.texts.spans.len()
    }
}

impl Stored for Dictionary {
    fn save(&self, to: &mut Saver) {
        self.references.save(to);
        let length = |&(begin, end): &(u32, u32)| end - begin;
        self.texts.spans.iter().map(length).collect::<Vec<u32>>().save(to);
        let live = (0..self.end()).filter(|&id| self.references[id] > 0);
        let mut texts = Vec::with_capacity(self.texts.arena.len() - self.garbage);
        live.for_each(|id| texts.extend_from_slice(self.texts.get(id)));
        texts.save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let references = <Vec<u32>>::load(from)?;
        let lengths = <Vec<u32>>::load(from)?;
        let arena = <Vec<u8>>::load(from)?;
        let is_right = lengths.len() == references.len() && references.len() <= INLINE as usize;
        check(is_right && u32::try_from(arena.len()).is_ok(), "texts of terms")?;
        let (mut spans, mut free, mut end) = (Vec::with_capacity(lengths.len()), Vec::new(), 0_u32);
        for (id, (&length, &count)) in (0..).zip(lengths.iter().zip(&references)) {
            check(count > 0 || length == 0, "texts of terms")?;
            if count == 0 {
                free.push(id);
                spans.push((0, 0));
                continue;
            }
            let begin = end;
            end = begin.saturating_add(length);
            spans.push((begin, end));
        }
        check(end as usize == arena.len(), "texts of terms")?;
        let (hasher, texts) = (RandomState::default(), Texts { arena, spans });
        let hash = |&id: &Id| hasher.hash_one(texts.get(id as usize));
        let mut table = HashTable::with_capacity(references.len() - free.len());
        for (id, _) in (0..).zip(&references).filter(|(_, count)| **count > 0) {
            table.insert_unique(hash(&id), id, hash);
        }
        Ok(Self { hasher, table, texts, references, free, garbage: 0 })
    }
}

/// The terms of one publication that nobody mentions, numbered from [`LOCAL`] on.
#[derive(Default)]
pub struct LocalTerms {
    table: HashTable<(u32, u64)>,
    texts: Texts,
}

impl LocalTerms {
    /// The id of a term whose hash by the dictionary is known.
    #[inline]
    pub fn intern_hashed(&mut self, text: &[u8], hash: u64) -> Id {
        let found = self.table.find(hash, |&(n, _)| self.texts.get(n as usize) == text);
        if let Some(&(number, _)) = found {
            return LOCAL + number;
        }
        let span = self.texts.push(text);
        let number = self.texts.spans.len() as u32;
        self.texts.spans.push(span);
        self.table.insert_unique(hash, (number, hash), |&(_, hash)| hash);
        LOCAL + number
    }

    /// The same, where a text that is new is looked at first; `None` if it is refused.
    #[inline]
    pub fn intern_checked(
        &mut self,
        text: &[u8],
        hash: u64,
        is_valid: impl FnOnce() -> bool,
    ) -> Option<Id> {
        let found = self.table.find(hash, |&(n, _)| self.texts.get(n as usize) == text);
        match found {
            Some(&(number, _)) => Some(LOCAL + number),
            None => is_valid().then(|| self.intern_hashed(text, hash)),
        }
    }

    /// The id of a term whose hash by the dictionary is known, if it is one of these.
    #[inline]
    pub fn get_hashed(&self, text: &[u8], hash: u64) -> Option<Id> {
        let found = self.table.find(hash, |&(n, _)| self.texts.get(n as usize) == text);
        found.map(|&(number, _)| LOCAL + number)
    }

    /// The text of one of these terms.
    #[inline]
    pub fn text(&self, id: Id) -> &[u8] {
        self.texts.get((id - LOCAL) as usize)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.texts.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.texts.spans.is_empty()
    }

    /// Forgets all, and keeps the memory for the next publication.
    pub fn clear(&mut self) {
        self.table.clear();
        self.texts.arena.clear();
        self.texts.spans.clear();
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

    #[test]
    fn texts_of_terms_that_went_are_given_back() {
        let mut dictionary = Dictionary::default();
        let kept = dictionary.intern(b"<urn:kept>");
        for round in 0..20 {
            let ids: Vec<Id> = (0..10_000)
                .map(|n| dictionary.intern(format!("<urn:{round}/{n}>").as_bytes()))
                .collect();
            ids.into_iter().for_each(|id| dictionary.release(id));
        }
        assert!(dictionary.texts.arena.len() < 1 << 20);
        assert!(dictionary.end() <= 10_001);
        assert_eq!(&*dictionary.text(kept), b"<urn:kept>");
    }
}
