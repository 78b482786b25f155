//! The keyword index: finds the rows whose string filters a text may pass, without testing each.
//!
//! Filters are grouped by their view (the text, or the language tag) and folding, so a text is folded
//! once for each folding in use. Equal strings are found by one look-up. All other filters require
//! that the text contains their constant, the keyword; whether the text begins or ends with it is
//! checked later.
//!
//! Keywords are found by hashing: a keyword is indexed by its anchor, twelve of its bytes (for shorter
//! keywords eight, six, four, two or one) that few other keywords have as their anchor. Each place of
//! a text costs a look at a bitmap, which fits the cache. Only if the bytes there are an anchor are
//! its keywords compared. Adding costs a look-up for each anchor that is considered, removing one. If
//! a possible anchor of a keyword begins with a space, as in ` word `, the keyword has such an anchor
//! and is looked for at the spaces of a text only.
//! Aho-Corasick automata must be built again as keywords come and go. They took five times as long
//! for 100,000 keywords, and sixty times as long to add one.

use crate::branch::{Filter, Folding, TermPart, TextOperator};
use crate::dictionary::{Dictionary, Id};
use crate::filter::FilterEvaluator;
use crate::lexical::LiteralParts;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use memchr::memchr_iter;
use slab::Slab;
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// The lengths of anchors.
const LENGTHS: [usize; 6] = [12, 8, 6, 4, 2, 1];
/// Maximum number of anchors of a keyword that are considered.
const MAX_ANCHORS: usize = 16;
/// Multipliers that spread bytes over the upper bits.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
const OTHER_MIX: u64 = 0xd6e8_feb8_6659_fd93;

/// A keyword, its rows, and the offset of its anchor.
struct Keyword {
    text: Arc<[u8]>,
    rows: SmallVec<[u32; 2]>,
    offset: usize,
}

/// Keywords by anchors of one length, of which either all begin with a space, or none.
#[derive(Default)]
struct Anchored {
    length: usize,
    at_space: bool,
    /// The numbers of the keywords of each anchor.
    anchors: HashMap<u128, SmallVec<[u32; 2]>>,
    /// A bit for each anchor, by the upper bits of a hash.
    filter: Vec<u64>,
    /// Number of keywords that were added since the filter was made.
    added: usize,
}

/// The anchor of some length at the beginning of a text.
#[inline(always)]
fn anchor(text: &[u8], length: usize) -> u128 {
    let first = text.first_chunk().copied().unwrap_or_else(|| {
        let mut first = [0; 16];
        first[..text.len()].copy_from_slice(text);
        first
    });
    u128::from_le_bytes(first) & (u128::MAX >> (128 - 8 * length))
}

impl Anchored {
    /// Indexes a keyword by the anchor that fewest others have, and of these by the one with most
    /// bytes that are rare in texts. Returns the offset of the anchor.
    fn add(&mut self, number: u32, text: &[u8]) -> usize {
        let step = (text.len() - self.length + 1).div_ceil(MAX_ANCHORS);
        let load = |(_, bytes): &(usize, &[u8])| {
            let load = self.anchors.get(&anchor(bytes, self.length)).map_or(0, SmallVec::len);
            (load, bytes.iter().filter(|byte| b" etaoinshrdlu".contains(byte)).count())
        };
        let begins = |(_, bytes): &(usize, &[u8])| !self.at_space || bytes[0] == b' ';
        let places = text.windows(self.length).enumerate().filter(begins).step_by(step);
        let Some((offset, bytes)) = places.min_by_key(load) else { return 0 };
        let anchor = anchor(bytes, self.length);
        self.anchors.entry(anchor).or_default().push(number);
        self.added += 1;
        if self.added > self.filter.len() * 4 {
            self.added = 0;
            self.filter = vec![0; (self.anchors.len() / 2).next_power_of_two().max(16)];
            for anchor in self.anchors.keys() {
                set(&mut self.filter, *anchor);
            }
        }
        set(&mut self.filter, anchor);
        offset
    }

    fn remove(&mut self, number: u32, bytes: &[u8]) {
        let anchor = anchor(bytes, self.length);
        if let Some(numbers) = self.anchors.get_mut(&anchor) {
            numbers.retain(|one| *one != number);
            if numbers.is_empty() {
                self.anchors.remove(&anchor);
            }
        }
    }

    /// Appends the numbers of the keywords with an anchor at a place of a text.
    fn find(&self, text: &[u8], at: usize, all: &Slab<Keyword>, found: &mut Vec<u32>) {
        if at + self.length > text.len() {
            return;
        }
        let anchor = anchor(&text[at..], self.length);
        let bit = bit(anchor, self.filter.len());
        if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
            return;
        }
        for &number in self.anchors.get(&anchor).into_iter().flatten() {
            let keyword = &all[number as usize];
            let begin = at.checked_sub(keyword.offset);
            if begin.is_some_and(|begin| text[begin..].starts_with(&keyword.text)) {
                found.push(number);
            }
        }
    }
}

/// The bit of an anchor. The number of words is a power of two.
fn bit(anchor: u128, words: usize) -> usize {
    let mixed = (anchor as u64).wrapping_mul(MIX) ^ ((anchor >> 64) as u64).wrapping_mul(OTHER_MIX);
    (mixed >> (64 - (words * 64).trailing_zeros())) as usize
}

/// Sets the bit of an anchor.
fn set(filter: &mut [u64], anchor: u128) {
    let bit = bit(anchor, filter.len());
    filter[bit / 64] |= 1 << (bit % 64);
}

/// The length of the longest anchor that fits into a keyword, and whether an anchor of this length can
/// begin with a space.
fn anchored(text: &[u8]) -> (usize, bool) {
    let length = LENGTHS.into_iter().find(|&length| length <= text.len()).unwrap_or(1);
    (length, text.windows(length).any(|anchor| anchor[0] == b' '))
}

/// Removes a row. Returns whether it was the last one.
fn is_last(rows: &mut SmallVec<[u32; 2]>, row: u32) -> bool {
    rows.retain(|one| *one != row);
    rows.is_empty()
}

/// The filters of one view in one folding.
#[derive(Default)]
struct FilterGroup {
    keywords: Slab<Keyword>,
    by_text: HashMap<Arc<[u8]>, u32>,
    /// By the length of anchors, and whether they begin with a space.
    anchored: HashMap<(usize, bool), Anchored>,
    equal: HashMap<Box<[u8]>, SmallVec<[u32; 2]>>,
}

impl FilterGroup {
    fn add(&mut self, operator: TextOperator, text: &[u8], row: u32) {
        if operator == TextOperator::Equals {
            return self.equal.entry_ref(text).or_default().push(row);
        }
        if let Some(&number) = self.by_text.get(text) {
            return self.keywords[number as usize].rows.push(row);
        }
        let text: Arc<[u8]> = text.into();
        let entry = self.keywords.vacant_entry();
        let number = entry.key() as u32;
        let (length, at_space) = anchored(&text);
        let new = || Anchored { length, at_space, ..Anchored::default() };
        let anchored = self.anchored.entry((length, at_space)).or_insert_with(new);
        let offset = if text.is_empty() { 0 } else { anchored.add(number, &text) };
        entry.insert(Keyword { text: text.clone(), rows: smallvec![row], offset });
        self.by_text.insert(text, number);
    }

    fn remove(&mut self, operator: TextOperator, text: &[u8], row: u32) {
        if operator == TextOperator::Equals {
            let rows = self.equal.get_mut(text);
            if rows.is_some_and(|rows| is_last(rows, row)) {
                self.equal.remove(text);
            }
        } else if let Some(&number) = self.by_text.get(text)
            && is_last(&mut self.keywords[number as usize].rows, row)
        {
            let keyword = self.keywords.remove(number as usize);
            if let Some(anchored) = self.anchored.get_mut(&anchored(text)) {
                anchored.remove(number, &text[keyword.offset..]);
            }
            self.by_text.remove(text);
        }
    }

    /// Appends the rows of the keywords in a text, and of the strings equal to it.
    fn find(&self, text: &[u8], found: &mut Vec<u32>, out: &mut Vec<u32>) {
        found.clear();
        found.extend(self.by_text.get(&b""[..]));
        let all = self.anchored.values().filter(|anchored| !anchored.anchors.is_empty());
        let (spaced, others): (Vec<_>, Vec<_>) = all.partition(|anchored| anchored.at_space);
        let mut look = |anchored: &Anchored, at| anchored.find(text, at, &self.keywords, found);
        if !spaced.is_empty() {
            memchr_iter(b' ', text).for_each(|at| spaced.iter().for_each(|one| look(one, at)));
        }
        others.iter().for_each(|one| (0..text.len()).for_each(|at| look(one, at)));
        found.sort_unstable();
        found.dedup();
        let rows = found.iter().map(|&number| &self.keywords[number as usize].rows);
        rows.chain(self.equal.get(text)).for_each(|rows| out.extend_from_slice(rows));
    }
}

/// Filters of strings of many rows.
#[derive(Default)]
pub struct TextIndex {
    groups: HashMap<(TermPart, Folding), FilterGroup>,
}

impl TextIndex {
    /// Adds the filter of a row, which must be one that the index takes.
    pub fn add(&mut self, filter: &Filter, row: u32, dictionary: &Dictionary) {
        each_test(filter, dictionary, &mut |operator, group, text| {
            self.groups.entry(group).or_default().add(operator, text, row);
        });
    }

    /// Removes a filter that was added with this row.
    pub fn remove(&mut self, filter: &Filter, row: u32, dictionary: &Dictionary) {
        each_test(filter, dictionary, &mut |operator, group, text| {
            if let Entry::Occupied(mut group) = self.groups.entry(group) {
                group.get_mut().remove(operator, text, row);
                if group.get().by_text.is_empty() && group.get().equal.is_empty() {
                    group.remove();
                }
            }
        });
    }

    /// Whether a filter can be added: one of strings other than `LANGMATCHES`, or a disjunction of
    /// such.
    pub fn takes(filter: &Filter) -> bool {
        match filter {
            Filter::Text { operator, .. } => *operator != TextOperator::Matches,
            Filter::Any(filters) => filters.iter().all(Self::takes),
            _ => false,
        }
    }

    /// Appends the rows whose filter a term may pass, with repeats. The index does not look at
    /// languages and kinds of terms.
    pub fn hits(
        &self,
        term: Id,
        evaluator: &FilterEvaluator,
        found: &mut Vec<u32>,
        out: &mut Vec<u32>,
    ) {
        for (&(view, folding), group) in &self.groups {
            evaluator.with_text(term, view, folding, |text| group.find(text, found, out));
        }
    }
}

/// Passes each test of a filter to a function: its operator, its view and folding, and its constant.
fn each_test<F: FnMut(TextOperator, (TermPart, Folding), &[u8])>(
    filter: &Filter,
    dictionary: &Dictionary,
    function: &mut F,
) {
    match filter {
        Filter::Text { operator, view, folding, argument } => {
            if let Some(literal) = LiteralParts::of(&dictionary.text(*argument)) {
                // Except for the language, all views show the same text of a term.
                let view = if *view == TermPart::Lang { TermPart::Lang } else { TermPart::Str };
                function(*operator, (view, *folding), &literal.plain());
            }
        }
        Filter::Any(filters) => {
            filters.iter().for_each(|filter| each_test(filter, dictionary, function));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::{LocalTerms, Terms};
    use crate::filter::Memo;
    use std::cell::RefCell;

    fn below(state: &mut u64, end: usize) -> usize {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (*state >> 33) as usize % end
    }

    const SYLLABLES: [&str; 12] =
        ["sea", "Sea", "a", "ban", "na", "s", "ſ", "ß", " ", "lake", "K", "\\n"];

    fn word(state: &mut u64, most: usize) -> String {
        (0..below(state, most + 1)).map(|_| SYLLABLES[below(state, SYLLABLES.len())]).collect()
    }

    fn test(state: &mut u64, dictionary: &mut Dictionary) -> Filter {
        use TextOperator::*;
        let folding = Folding::ALL[below(state, 4)];
        let view = [TermPart::Term, TermPart::Str, TermPart::Str, TermPart::Lang][below(state, 4)];
        let mut text = word(state, 3);
        match folding {
            Folding::None => {}
            Folding::Upper => text = text.to_uppercase().replace("\\N", "\\n"),
            Folding::Lower => text = text.to_lowercase(),
            Folding::Caseless => text = text.to_ascii_lowercase(),
        }
        if view == TermPart::Lang {
            text = ["en", "EN", "de", "e", ""][below(state, 5)].to_owned();
        }
        let tag = if below(state, 6) == 0 { "@en" } else { "" };
        let argument = dictionary.intern(format!("\"{text}\"{tag}").as_bytes());
        let operator = [Contains, Contains, Starts, Ends, Equals][below(state, 5)];
        Filter::Text { operator, view, folding, argument }
    }

    #[test]
    fn what_holds_is_found() {
        let state = &mut 5;
        let mut dictionary = Dictionary::default();
        let (mut index, mut scratch) = (TextIndex::default(), Vec::new());
        let mut filters: Vec<Option<Filter>> = Vec::new();
        let (mut found, mut vain) = (0, 0);
        for round in 0..12 {
            for _ in 0..300 {
                let filter = match below(state, 5) {
                    0 => Filter::Any((0..3).map(|_| test(state, &mut dictionary)).collect()),
                    _ => test(state, &mut dictionary),
                };
                index.add(&filter, filters.len() as u32, &dictionary);
                filters.push(Some(filter));
            }
            for (row, slot) in filters.iter_mut().enumerate() {
                if (below(state, 4) == 0 || round == 6)
                    && let Some(filter) = slot.take()
                {
                    index.remove(&filter, row as u32, &dictionary);
                }
            }
            let mut local = LocalTerms::default();
            let mut ids = Vec::new();
            for _ in 0..20 {
                let suffix = ["", "@en", "@de-CH", "@en--ltr", "^^<urn:t>"][below(state, 5)];
                let text = format!("\"{}\"{suffix}", word(state, 6));
                let hash = crate::dictionary::hash(text.as_bytes());
                ids.push(local.intern_hashed(text.as_bytes(), hash));
            }
            let memo = RefCell::new(Memo::default());
            let terms = Terms { dictionary: &dictionary, local: &local };
            let evaluator = FilterEvaluator { terms, memo: &memo, isa: &|_, _, _| false };
            for &id in &ids {
                let mut rows = Vec::new();
                index.hits(id, &evaluator, &mut scratch, &mut rows);
                rows.sort_unstable();
                for (row, filter) in filters.iter().enumerate() {
                    let holds = filter.as_ref().is_some_and(|filter| evaluator.holds(filter, id));
                    let is_hit = rows.binary_search(&(row as u32)).is_ok();
                    assert!(is_hit || !holds, "{filter:?}");
                    assert!(!is_hit || filter.is_some());
                    found += usize::from(holds);
                    vain += usize::from(is_hit && !holds);
                }
            }
        }
        assert!(found > 2000 && vain < 2 * found, "{found} {vain}");
        for (row, filter) in filters.iter().enumerate() {
            if let Some(filter) = filter {
                index.remove(filter, row as u32, &dictionary);
            }
        }
        assert!(index.groups.is_empty());
    }

    #[test]
    fn keywords_come_and_go() {
        let mut group = FilterGroup::default();
        let text = |round: u32| format!("word {round} here");
        for round in 0..20_000 {
            group.add(TextOperator::Contains, text(round).as_bytes(), round);
            if round >= 100 {
                group.remove(TextOperator::Contains, text(round - 100).as_bytes(), round - 100);
            }
        }
        assert!(group.keywords.len() < 200 && group.anchored[&(12, false)].filter.len() < 1000);
        let mut rows = Vec::new();
        let text = b"a word 19999 here, a word 19999 here, word 7 here";
        group.find(text, &mut Vec::new(), &mut rows);
        assert_eq!(rows, [19999]);
    }
}
