//! All tests of text in one pass.
//!
//! Tests are kept by what they look at (the text, or the language tag) and its folding, so a text
//! is folded once for each folding in use. Of each such kind, beginnings and ends are found by
//! looking up the text's first and last bytes for each length in use, and equal texts by one
//! look-up.
//!
//! What is contained is found by hashing: a keyword is filed by its anchor, twelve of its bytes
//! (eight, six, four, two or one of a shorter one) that few other keywords are filed by. Each place
//! of a text costs a look at a bitmap, which is small enough for the cache, and goes on only where
//! the bytes are somebody's anchor: there, the keywords are compared. Adding and removing cost a look-up for
//! each possible anchor. Aho-Corasick automata, which must be built again as keywords come and go,
//! took five times as long for 100,000 keywords, and sixty times as long to add one.

use crate::dictionary::{Dictionary, Id};
use crate::filter::Deciding;
use crate::pattern::{Filter, Folding, TextOperator, View};
use crate::values::Literal;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use slab::Slab;
use smallvec::{SmallVec, smallvec};
use std::hash::BuildHasher;

/// How long anchors are.
const LENGTHS: [usize; 6] = [12, 8, 6, 4, 2, 1];
/// How many anchors of a keyword are considered.
const MOST_ANCHORS: usize = 16;
/// No keyword.
const NONE: u32 = u32::MAX;
/// A multiplier that spreads bytes over the upper bits.
const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
/// Another.
const OTHER_MIX: u64 = 0xd6e8_feb8_6659_fd93;
const FOLDINGS: [Folding; 4] = [Folding::None, Folding::Lower, Folding::Upper, Folding::Caseless];

/// The rows of one text.
type Rows = SmallVec<[u32; 2]>;

/// Takes a row out; says whether it was there.
fn remove_row(rows: &mut Rows, row: u32) -> bool {
    let at = rows.iter().position(|&one| one == row);
    at.map(|at| rows.swap_remove(at)).is_some()
}

/// Texts that stand at one end of others, or are equal to them.
#[derive(Default)]
struct Ends {
    texts: HashMap<Box<[u8]>, Rows, RandomState>,
    /// Lengths in use, the shortest first, and of how many texts.
    lengths: Vec<(usize, usize)>,
}

impl Ends {
    fn add(&mut self, text: &[u8], row: u32) {
        if let Some(rows) = self.texts.get_mut(text) {
            return rows.push(row);
        }
        self.texts.insert(text.into(), smallvec![row]);
        match self.lengths.binary_search_by_key(&text.len(), |&(length, _)| length) {
            Ok(at) => self.lengths[at].1 += 1,
            Err(at) => self.lengths.insert(at, (text.len(), 1)),
        }
    }

    fn remove(&mut self, text: &[u8], row: u32) -> bool {
        let Some(rows) = self.texts.get_mut(text) else { return false };
        let is_found = remove_row(rows, row);
        if rows.is_empty() {
            self.texts.remove(text);
            if let Ok(at) = self.lengths.binary_search_by_key(&text.len(), |&(length, _)| length) {
                self.lengths[at].1 -= 1;
                if self.lengths[at].1 == 0 {
                    self.lengths.remove(at);
                }
            }
        }
        is_found
    }

    /// Gives the rows of the texts that a part of this one, of each length, is.
    fn find(&self, text: &[u8], part: impl Fn(usize) -> Range, out: &mut Vec<u32>) {
        for &(length, _) in self.lengths.iter().take_while(|(length, _)| *length <= text.len()) {
            if let Some(rows) = text.get(part(length)).and_then(|part| self.texts.get(part)) {
                out.extend_from_slice(rows);
            }
        }
    }
}

type Range = std::ops::Range<usize>;

/// A keyword, its rows, and where it is filed.
struct Keyword {
    text: Box<[u8]>,
    rows: Rows,
    /// Where its anchor begins.
    offset: u32,
    /// The next keyword with the same anchor.
    next: u32,
}

/// Keywords filed by anchors of so many bytes, of which none is shorter.
struct Anchored {
    length: usize,
    hasher: RandomState,
    /// Anchors, the first keyword of each, and how many it has.
    anchors: HashTable<(u128, u32, u32)>,
    /// A bit for each anchor, by the upper bits of a hash.
    filter: Vec<u64>,
    /// How many bits are set for anchors that went, at most.
    stale: usize,
}

/// The anchor of so many bytes that a text begins with.
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
    fn new(length: usize) -> Self {
        let (hasher, anchors, filter) = Default::default();
        Self { length, hasher, anchors, filter, stale: 0 }
    }

    fn find(&self, anchor: u128) -> Option<&(u128, u32, u32)> {
        self.anchors.find(self.hasher.hash_one(anchor), |(other, ..)| *other == anchor)
    }

    /// Files a keyword by the anchor that fewest others have, and among those by the one with most
    /// bytes that are rare in texts.
    fn add(&mut self, number: u32, all: &mut Slab<Keyword>) {
        let keyword = &mut all[number as usize];
        let step = (keyword.text.len() - self.length + 1).div_ceil(MOST_ANCHORS);
        let load = |(_, bytes): &(usize, &[u8])| {
            let load = self.find(anchor(bytes, self.length)).map_or(0, |(.., load)| *load);
            (load, bytes.iter().filter(|byte| b" etaoinshrdlu".contains(byte)).count())
        };
        let places = keyword.text.windows(self.length).enumerate().step_by(step);
        let Some((offset, bytes)) = places.min_by_key(load) else { return };
        let anchor = anchor(bytes, self.length);
        keyword.offset = offset as u32;
        let hasher = &self.hasher;
        let entry = self.anchors.entry(
            hasher.hash_one(anchor),
            |(other, ..)| *other == anchor,
            |(other, ..)| hasher.hash_one(other),
        );
        let mut entry = entry.or_insert((anchor, NONE, 0));
        let (_, first, load) = entry.get_mut();
        keyword.next = std::mem::replace(first, number);
        *load += 1;
        if self.filter.len() * 64 < self.anchors.len() * 16 {
            self.rebuild();
        } else {
            let bit = bit(anchor, self.filter.len());
            self.filter[bit / 64] |= 1 << (bit % 64);
        }
    }

    fn remove(&mut self, number: u32, all: &mut Slab<Keyword>) {
        let keyword = &all[number as usize];
        let anchor = anchor(&keyword.text[keyword.offset as usize..], self.length);
        let next = keyword.next;
        let hash = self.hasher.hash_one(anchor);
        let Ok(mut entry) = self.anchors.find_entry(hash, |(other, ..)| *other == anchor) else {
            return;
        };
        let (_, first, load) = entry.get_mut();
        *load -= 1;
        if *first == number {
            *first = next;
        } else {
            let mut before = *first;
            while let Some(keyword) = all.get_mut(before as usize) {
                if keyword.next == number {
                    keyword.next = next;
                    break;
                }
                before = keyword.next;
            }
        }
        if *load == 0 {
            entry.remove();
            self.stale += 1;
            if self.stale > self.anchors.len() + 1024 {
                self.rebuild();
            }
        }
    }

    fn rebuild(&mut self) {
        let words = (self.anchors.len() / 2).next_power_of_two().max(16);
        self.stale = 0;
        self.filter.clear();
        self.filter.resize(words, 0);
        for (anchor, ..) in &self.anchors {
            let bit = bit(*anchor, words);
            self.filter[bit / 64] |= 1 << (bit % 64);
        }
    }

    /// Appends the rows of keywords in a text; made for each length, which is that of its anchors.
    fn find_in<const LENGTH: usize>(
        &self,
        text: &[u8],
        all: &Slab<Keyword>,
        seen: &mut Seen,
        out: &mut Vec<u32>,
    ) {
        if self.anchors.is_empty() {
            return;
        }
        for at in 0..(text.len() + 1).saturating_sub(LENGTH) {
            let anchor = anchor(&text[at..], LENGTH);
            let bit = bit(anchor, self.filter.len());
            if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
                continue;
            }
            let mut next = self.find(anchor).map_or(NONE, |(_, first, _)| *first);
            while let Some(keyword) = all.get(next as usize) {
                let is_here = at
                    .checked_sub(keyword.offset as usize)
                    .is_some_and(|begin| text[begin..].starts_with(&keyword.text));
                if is_here && seen.is_new(next as usize) {
                    out.extend_from_slice(&keyword.rows);
                }
                next = keyword.next;
            }
        }
    }
}

/// The bit of an anchor in so many words, a power of two.
fn bit(anchor: u128, words: usize) -> usize {
    let mixed = (anchor as u64).wrapping_mul(MIX) ^ ((anchor >> 64) as u64).wrapping_mul(OTHER_MIX);
    (mixed >> (64 - (words * 64).trailing_zeros())) as usize
}

/// Which of the lengths of anchors is that of a keyword: the longest that it is not shorter than.
fn anchored(text: &[u8]) -> usize {
    LENGTHS.iter().position(|&length| length <= text.len()).unwrap_or(LENGTHS.len() - 1)
}

/// Keywords that texts may contain.
struct Keywords {
    hasher: RandomState,
    by_text: HashTable<u32>,
    all: Slab<Keyword>,
    /// By the length of anchors.
    anchored: [Anchored; LENGTHS.len()],
}

impl Default for Keywords {
    fn default() -> Self {
        let (hasher, by_text, all) = Default::default();
        Self { hasher, by_text, all, anchored: LENGTHS.map(Anchored::new) }
    }
}

impl Keywords {
    fn add(&mut self, text: &[u8], row: u32) {
        let hash = self.hasher.hash_one(text);
        let is_same = |&number: &u32| *self.all[number as usize].text == *text;
        if let Some(&number) = self.by_text.find(hash, is_same) {
            return self.all[number as usize].rows.push(row);
        }
        let keyword = Keyword { text: text.into(), rows: smallvec![row], offset: 0, next: NONE };
        let number = self.all.insert(keyword) as u32;
        let (all, hasher) = (&self.all, &self.hasher);
        let rehash = |&number: &u32| hasher.hash_one(&*all[number as usize].text);
        self.by_text.insert_unique(hash, number, rehash);
        self.anchored[anchored(text)].add(number, &mut self.all);
    }

    /// Whether the row was there.
    fn remove(&mut self, text: &[u8], row: u32) -> bool {
        let is_same = |&number: &u32| *self.all[number as usize].text == *text;
        let Ok(entry) = self.by_text.find_entry(self.hasher.hash_one(text), is_same) else {
            return false;
        };
        let number = *entry.get();
        let rows = &mut self.all[number as usize].rows;
        let is_found = remove_row(rows, row);
        if rows.is_empty() {
            entry.remove();
            self.anchored[anchored(text)].remove(number, &mut self.all);
            self.all.remove(number as usize);
        }
        is_found
    }

    fn find(&self, text: &[u8], seen: &mut Seen, out: &mut Vec<u32>) {
        let [twelve, eight, six, four, two, one] = &self.anchored;
        twelve.find_in::<12>(text, &self.all, seen, out);
        eight.find_in::<8>(text, &self.all, seen, out);
        six.find_in::<6>(text, &self.all, seen, out);
        four.find_in::<4>(text, &self.all, seen, out);
        two.find_in::<2>(text, &self.all, seen, out);
        one.find_in::<1>(text, &self.all, seen, out);
    }
}

/// Which keywords were found in a text already.
#[derive(Default)]
struct Seen {
    marks: Vec<u32>,
    round: u32,
}

impl Seen {
    fn begin(&mut self) {
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.marks.fill(0);
            self.round = 1;
        }
    }

    fn is_new(&mut self, number: usize) -> bool {
        if number >= self.marks.len() {
            self.marks.resize(number + 1, 0);
        }
        std::mem::replace(&mut self.marks[number], self.round) != self.round
    }
}

/// The tests of one kind of text in one folding.
#[derive(Default)]
struct Kind {
    contained: Keywords,
    begun: Ends,
    ended: Ends,
    equal: Ends,
    tests: usize,
}

/// What looking through texts needs, and is used again. One for each thread.
#[derive(Default)]
pub struct TextScratch {
    seen: Seen,
}

/// Tests of text of very many rows.
#[derive(Default)]
pub struct TextIndex {
    /// By folding: of texts, then of language tags.
    kinds: [[Option<Box<Kind>>; 4]; 2],
}

impl TextIndex {
    /// Adds the test of a row: one of text that is no `LANGMATCHES`, or a disjunction of such.
    /// Returns whether it is.
    pub fn add(&mut self, filter: &Filter, row: u32, dictionary: &Dictionary) -> bool {
        if !Self::takes(filter) {
            return false;
        }
        for_each_test(filter, dictionary, &mut |operator, view, folding, text| {
            let kind = self.kind(view, folding).get_or_insert_default();
            kind.tests += 1;
            match operator {
                TextOperator::Contains if !text.is_empty() => kind.contained.add(text, row),
                TextOperator::Ends => kind.ended.add(text, row),
                TextOperator::Equals => kind.equal.add(text, row),
                // the empty text is contained where it is a beginning
                _ => kind.begun.add(text, row),
            }
        });
        true
    }

    /// Removes a test that was added with this row.
    pub fn remove(&mut self, filter: &Filter, row: u32, dictionary: &Dictionary) {
        if !Self::takes(filter) {
            return;
        }
        for_each_test(filter, dictionary, &mut |operator, view, folding, text| {
            let slot = self.kind(view, folding);
            let Some(kind) = slot else { return };
            let is_found = match operator {
                TextOperator::Contains if !text.is_empty() => kind.contained.remove(text, row),
                TextOperator::Ends => kind.ended.remove(text, row),
                TextOperator::Equals => kind.equal.remove(text, row),
                _ => kind.begun.remove(text, row),
            };
            kind.tests -= usize::from(is_found);
            if kind.tests == 0 {
                *slot = None;
            }
        });
    }

    /// Whether a filter can be added.
    pub fn takes(filter: &Filter) -> bool {
        match filter {
            Filter::Text { operator, .. } => *operator != TextOperator::Matches,
            Filter::Any(filters) => filters.iter().all(Self::takes),
            _ => false,
        }
    }

    /// Whether there are no tests.
    pub fn is_empty(&self) -> bool {
        self.kinds.iter().flatten().all(Option::is_none)
    }

    /// Appends the rows whose test some of these terms meet, each once: candidates, for languages
    /// and what kind of term it is are not looked at.
    pub fn hits(
        &self,
        terms: impl IntoIterator<Item = Id>,
        deciding: &Deciding,
        scratch: &mut TextScratch,
        out: &mut Vec<u32>,
    ) {
        if self.is_empty() {
            return;
        }
        let first = out.len();
        for term in terms {
            for (view, kinds) in [View::Str, View::Lang].into_iter().zip(&self.kinds) {
                for (folding, kind) in FOLDINGS.into_iter().zip(kinds) {
                    let Some(kind) = kind else { continue };
                    deciding.with_text(term, view, folding, |text| {
                        scratch.seen.begin();
                        kind.contained.find(text, &mut scratch.seen, out);
                        kind.begun.find(text, |length| 0..length, out);
                        kind.ended.find(text, |length| text.len() - length..text.len(), out);
                        if let Some(rows) = kind.equal.texts.get(text) {
                            out.extend_from_slice(rows);
                        }
                    });
                }
            }
        }
        sort_from(out, first);
    }

    fn kind(&mut self, view: View, folding: Folding) -> &mut Option<Box<Kind>> {
        let at = FOLDINGS.iter().position(|&one| one == folding).unwrap_or(0);
        &mut self.kinds[usize::from(view == View::Lang)][at]
    }
}

/// Sorts what was appended from some place on, and keeps each row once.
pub fn sort_from(rows: &mut Vec<u32>, first: usize) {
    rows[first..].sort_unstable();
    let mut kept = first;
    for at in first..rows.len() {
        if kept == first || rows[at] != rows[kept - 1] {
            rows[kept] = rows[at];
            kept += 1;
        }
    }
    rows.truncate(kept);
}

/// Takes a test of text: its operator, view, folding, and constant.
type Taking<'a> = &'a mut dyn FnMut(TextOperator, View, Folding, &[u8]);

/// Gives each test of a filter to a function, with its constant's text.
fn for_each_test(filter: &Filter, dictionary: &Dictionary, function: Taking) {
    match filter {
        Filter::Text { operator, view, folding, argument } => {
            if let Some(literal) = Literal::of(&dictionary.text(*argument)) {
                function(*operator, *view, *folding, &literal.plain());
            }
        }
        Filter::Any(filters) => {
            filters.iter().for_each(|filter| for_each_test(filter, dictionary, function));
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
    use std::time::Instant;

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
        let folding = FOLDINGS[below(state, 4)];
        let view = [View::Term, View::Str, View::Str, View::Lang][below(state, 4)];
        let mut text = word(state, 3);
        match folding {
            Folding::None => {}
            Folding::Upper => text = text.to_uppercase().replace("\\N", "\\n"),
            Folding::Lower => text = text.to_lowercase(),
            Folding::Caseless => text = text.to_ascii_lowercase(),
        }
        if view == View::Lang {
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
        let (mut index, mut scratch) = (TextIndex::default(), TextScratch::default());
        let mut filters: Vec<Option<Filter>> = Vec::new();
        let (mut found, mut vain) = (0, 0);
        for round in 0..12 {
            for _ in 0..300 {
                let filter = match below(state, 5) {
                    0 => Filter::Any((0..3).map(|_| test(state, &mut dictionary)).collect()),
                    _ => test(state, &mut dictionary),
                };
                assert!(index.add(&filter, filters.len() as u32, &dictionary));
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
                let hash = dictionary.hash(text.as_bytes());
                ids.push(local.intern_hashed(text.as_bytes(), hash));
            }
            let memo = RefCell::new(Memo::default());
            let terms = Terms { dictionary: &dictionary, local: &local };
            let deciding = Deciding::new(terms, &memo, &|_, _, _| false);
            for &id in &ids {
                let mut rows = Vec::new();
                index.hits([id, id], &deciding, &mut scratch, &mut rows);
                assert!(rows.is_sorted_by(|a, b| a < b));
                for (row, filter) in filters.iter().enumerate() {
                    let holds = filter.as_ref().is_some_and(|filter| deciding.holds(filter, id));
                    let is_hit = rows.binary_search(&(row as u32)).is_ok();
                    assert!(is_hit || !holds, "{filter:?}");
                    assert!(!is_hit || filter.is_some());
                    found += usize::from(holds);
                    vain += usize::from(is_hit && !holds);
                }
            }
        }
        assert!(found > 2000 && vain < found, "{found} {vain}");
        for (row, filter) in filters.iter().enumerate() {
            if let Some(filter) = filter {
                index.remove(filter, row as u32, &dictionary);
            }
        }
        assert!(index.is_empty());
    }

    #[test]
    fn keywords_come_and_go() {
        let mut keywords = Keywords::default();
        let mut seen = Seen::default();
        for round in 0..20_000u32 {
            keywords.add(format!("word {round} here").as_bytes(), round);
            if round >= 100 {
                assert!(
                    keywords.remove(format!("word {} here", round - 100).as_bytes(), round - 100)
                );
            }
        }
        assert!(keywords.all.len() < 200 && keywords.anchored[0].filter.len() < 1000);
        let mut rows = Vec::new();
        seen.begin();
        keywords.find(b"a word 19999 here, a word 19999 here, word 7 here", &mut seen, &mut rows);
        rows.dedup();
        assert_eq!(rows, [19999]);
    }

    #[test]
    #[ignore = "measures"]
    fn measure() {
        let state = &mut 3;
        let words: Vec<String> = (0..30_000)
            .map(|_| {
                let letter = |state: &mut u64| {
                    let all = b"etaoinshrdlucmfwypvbgkeetaoin";
                    char::from(all[below(state, all.len())])
                };
                (0..3 + below(state, 6)).map(|_| letter(state)).collect()
            })
            .collect();
        let zipf = |state: &mut u64| {
            let at = (below(state, 1 << 20) as f64 / f64::from(1 << 20)).powi(3) * 30_000.0;
            &words[at as usize]
        };
        let mut dictionary = Dictionary::default();
        let mut local = LocalTerms::default();
        let mut ids = Vec::new();
        for _ in 0..200 {
            let text: Vec<&str> = (0..300).map(|_| zipf(state).as_str()).collect();
            let text = format!("\"{}\"", text.join(" "));
            let hash = dictionary.hash(text.as_bytes());
            ids.push(local.intern_hashed(text.as_bytes(), hash));
        }
        for count in [100, 10_000, 100_000] {
            let (mut index, mut scratch) = (TextIndex::default(), TextScratch::default());
            let mut building = 0.0;
            for row in 0..count {
                let keyword = format!("\"{} {}\"", zipf(state), zipf(state));
                let filter = Filter::Text {
                    operator: TextOperator::Contains,
                    view: View::Str,
                    folding: Folding::Lower,
                    argument: dictionary.intern(keyword.as_bytes()),
                };
                let begin = Instant::now();
                index.add(&filter, row, &dictionary);
                building += begin.elapsed().as_secs_f64();
            }
            let memo = RefCell::new(Memo::default());
            let terms = Terms { dictionary: &dictionary, local: &local };
            let deciding = Deciding::new(terms, &memo, &|_, _, _| false);
            let mut rows = Vec::new();
            let mut least = [f64::INFINITY; 200];
            for _ in 0..5 {
                rows.clear();
                for (&id, least) in ids.iter().zip(&mut least) {
                    memo.borrow_mut().clear();
                    let begin = Instant::now();
                    index.hits([id], &deciding, &mut scratch, &mut rows);
                    *least = least.min(begin.elapsed().as_secs_f64());
                }
            }
            let mean: f64 = least.iter().sum::<f64>() / 200.0;
            println!(
                "{count} keywords: {:.1} µs a text, {} found; {:.1} µs to add",
                mean * 1e6,
                rows.len() as f64 / 200.0,
                building * 1e6 / f64::from(count)
            );
        }
    }
}
