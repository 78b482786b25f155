//! All tests of text in one pass.
//!
//! Tests are kept by what they look at (the text, or the language tag) and its folding, so a text
//! is folded once for each folding in use. Of each such kind, beginnings and ends are found by
//! looking up the text's first and last bytes for each length in use, and equal texts by one
//! look-up.
//!
//! What is contained is found by hashing: a keyword is filed by its anchor, twelve of its bytes
//! (eight, six, four, two or one of a shorter one) that few other keywords are filed by. Each place of a text
//! costs a look at a bitmap, which is small enough for the cache, and goes on only where the bytes
//! are somebody's anchor: there, the keywords are compared. Adding and removing cost a look-up for
//! each possible anchor. Aho-Corasick automata, which must be built again as keywords come and go,
//! took five times as long for 100,000 keywords, and sixty times as long to add one.

use crate::dictionary::{Dictionary, Id};
use crate::filter::Deciding;
use crate::pattern::{Filter, Folding, TextOperator, View};
use crate::values::Literal;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;

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
#[derive(Default)]
enum Rows {
    #[default]
    None,
    One(u32),
    Many(Vec<u32>),
}

impl Rows {
    fn add(&mut self, row: u32) {
        match self {
            Self::None => *self = Self::One(row),
            Self::One(first) => *self = Self::Many(vec![*first, row]),
            Self::Many(rows) => rows.push(row),
        }
    }

    /// Whether the row was there.
    fn remove(&mut self, row: u32) -> bool {
        match self {
            Self::One(only) if *only == row => {
                *self = Self::None;
                true
            }
            Self::Many(rows) => {
                let Some(at) = rows.iter().position(|&one| one == row) else { return false };
                rows.swap_remove(at);
                if let [only] = rows[..] {
                    *self = Self::One(only);
                }
                true
            }
            _ => false,
        }
    }

    fn as_slice(&self) -> &[u32] {
        match self {
            Self::None => &[],
            Self::One(row) => std::slice::from_ref(row),
            Self::Many(rows) => rows,
        }
    }
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
            return rows.add(row);
        }
        self.texts.insert(text.into(), Rows::One(row));
        match self.lengths.binary_search_by_key(&text.len(), |&(length, _)| length) {
            Ok(at) => self.lengths[at].1 += 1,
            Err(at) => self.lengths.insert(at, (text.len(), 1)),
        }
    }

    fn remove(&mut self, text: &[u8], row: u32) -> bool {
        let Some(rows) = self.texts.get_mut(text) else { return false };
        let is_found = rows.remove(row);
        if matches!(rows, Rows::None) {
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
                out.extend_from_slice(rows.as_slice());
            }
        }
    }
}

type Range = std::ops::Range<usize>;

/// A keyword, its rows, and where it is filed.
struct Keyword {
    text: Box<[u8]>,
    rows: Rows,
    /// Its anchor: some of its bytes, from `offset` on.
    gram: Gram,
    offset: u32,
    /// The next keyword with the same anchor.
    next: u32,
}

/// Some bytes, filled up with zeros.
type Gram = [u64; 2];

/// Keywords filed by anchors of `Q` bytes, of which none is shorter.
struct Anchored<const Q: usize> {
    hasher: RandomState,
    /// Anchors, the first keyword of each, and how many it has.
    anchors: HashTable<(Gram, u32, u32)>,
    /// A bit for each anchor, by the upper bits of a hash.
    filter: Vec<u64>,
    /// How many bits are set for anchors that went, at most.
    stale: usize,
}

impl<const Q: usize> Default for Anchored<Q> {
    fn default() -> Self {
        let (hasher, anchors) = Default::default();
        Self { hasher, anchors, filter: Vec::new(), stale: 0 }
    }
}

impl<const Q: usize> Anchored<Q> {
    fn gram(bytes: &[u8]) -> Gram {
        let mut gram = [[0; 8]; 2];
        gram.as_flattened_mut()[..Q].copy_from_slice(&bytes[..Q]);
        gram.map(u64::from_le_bytes)
    }

    fn find(&self, gram: Gram) -> Option<&(Gram, u32, u32)> {
        self.anchors.find(self.hasher.hash_one(gram), |anchor| anchor.0 == gram)
    }

    /// Files a keyword by the anchor that fewest others have, and among those by the one with most
    /// bytes that are rare in texts.
    fn add(&mut self, number: u32, all: &mut [Keyword]) {
        let keyword = &mut all[number as usize];
        let step = (keyword.text.len() - Q + 1).div_ceil(MOST_ANCHORS);
        let mut best = None;
        for (offset, bytes) in keyword.text.windows(Q).enumerate().step_by(step) {
            let load = self.find(Self::gram(bytes)).map_or(0, |anchor| anchor.2);
            let common = bytes.iter().filter(|byte| b" etaoinshrdlu".contains(byte)).count();
            if best.is_none_or(|(least, _)| (load, common) < least) {
                best = Some(((load, common), offset));
            }
        }
        let Some((_, offset)) = best else { return };
        let gram = Self::gram(&keyword.text[offset..]);
        (keyword.gram, keyword.offset) = (gram, offset as u32);
        let hasher = &self.hasher;
        let entry = self.anchors.entry(
            hasher.hash_one(gram),
            |anchor| anchor.0 == gram,
            |anchor| hasher.hash_one(anchor.0),
        );
        let mut entry = entry.or_insert((gram, NONE, 0));
        let (_, first, load) = entry.get_mut();
        keyword.next = std::mem::replace(first, number);
        *load += 1;
        if self.filter.len() * 64 < self.anchors.len() * 16 {
            self.rebuild();
        } else {
            let bit = bit(gram, self.filter.len());
            self.filter[bit / 64] |= 1 << (bit % 64);
        }
    }

    fn remove(&mut self, number: u32, all: &mut [Keyword]) {
        let (gram, next) = (all[number as usize].gram, all[number as usize].next);
        let found = self.anchors.find_entry(self.hasher.hash_one(gram), |anchor| anchor.0 == gram);
        let Ok(mut entry) = found else { return };
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
        let mut filter = std::mem::take(&mut self.filter);
        for anchor in &self.anchors {
            let bit = bit(anchor.0, words);
            filter[bit / 64] |= 1 << (bit % 64);
        }
        self.filter = filter;
    }

    fn find_in(&self, text: &[u8], all: &[Keyword], seen: &mut Seen, out: &mut Vec<u32>) {
        if self.anchors.is_empty() {
            return;
        }
        for (at, bytes) in text.windows(Q).enumerate() {
            let gram = Self::gram(bytes);
            let bit = bit(gram, self.filter.len());
            if self.filter[bit / 64] >> (bit % 64) & 1 == 0 {
                continue;
            }
            let mut next = self.find(gram).map_or(NONE, |anchor| anchor.1);
            while let Some(keyword) = all.get(next as usize) {
                let is_here = at
                    .checked_sub(keyword.offset as usize)
                    .is_some_and(|begin| text[begin..].starts_with(&keyword.text));
                if is_here && seen.is_new(next as usize) {
                    out.extend_from_slice(keyword.rows.as_slice());
                }
                next = keyword.next;
            }
        }
    }
}

/// The bit of an anchor in so many words, a power of two.
fn bit([first, second]: Gram, words: usize) -> usize {
    let mixed = first.wrapping_mul(MIX) ^ second.wrapping_mul(OTHER_MIX);
    (mixed >> (64 - (words * 64).trailing_zeros())) as usize
}

/// Keywords that texts may contain.
#[derive(Default)]
struct Keywords {
    hasher: RandomState,
    table: HashTable<u32>,
    all: Vec<Keyword>,
    free: Vec<u32>,
    of_twelve: Anchored<12>,
    of_eight: Anchored<8>,
    of_six: Anchored<6>,
    of_four: Anchored<4>,
    of_two: Anchored<2>,
    of_one: Anchored<1>,
}

impl Keywords {
    fn add(&mut self, text: &[u8], row: u32) {
        let hash = self.hasher.hash_one(text);
        let is_same = |&number: &u32| *self.all[number as usize].text == *text;
        if let Some(&number) = self.table.find(hash, is_same) {
            return self.all[number as usize].rows.add(row);
        }
        let keyword = Keyword {
            text: text.into(),
            rows: Rows::One(row),
            gram: [0; 2],
            offset: 0,
            next: NONE,
        };
        let number = match self.free.pop() {
            Some(number) => {
                self.all[number as usize] = keyword;
                number
            }
            None => {
                self.all.push(keyword);
                (self.all.len() - 1) as u32
            }
        };
        let (all, hasher) = (&self.all, &self.hasher);
        let rehash = |&number: &u32| hasher.hash_one(&*all[number as usize].text);
        self.table.insert_unique(hash, number, rehash);
        match text.len() {
            12.. => self.of_twelve.add(number, &mut self.all),
            8.. => self.of_eight.add(number, &mut self.all),
            6.. => self.of_six.add(number, &mut self.all),
            4.. => self.of_four.add(number, &mut self.all),
            2.. => self.of_two.add(number, &mut self.all),
            _ => self.of_one.add(number, &mut self.all),
        }
    }

    /// Whether the row was there.
    fn remove(&mut self, text: &[u8], row: u32) -> bool {
        let is_same = |&number: &u32| *self.all[number as usize].text == *text;
        let Ok(entry) = self.table.find_entry(self.hasher.hash_one(text), is_same) else {
            return false;
        };
        let number = *entry.get();
        let rows = &mut self.all[number as usize].rows;
        if !rows.remove(row) {
            return false;
        }
        if matches!(rows, Rows::None) {
            entry.remove();
            match text.len() {
                12.. => self.of_twelve.remove(number, &mut self.all),
                8.. => self.of_eight.remove(number, &mut self.all),
                6.. => self.of_six.remove(number, &mut self.all),
                4.. => self.of_four.remove(number, &mut self.all),
                2.. => self.of_two.remove(number, &mut self.all),
                _ => self.of_one.remove(number, &mut self.all),
            }
            self.all[number as usize].text = Box::default();
            self.free.push(number);
        }
        true
    }

    fn find(&self, text: &[u8], seen: &mut Seen, out: &mut Vec<u32>) {
        self.of_twelve.find_in(text, &self.all, seen, out);
        self.of_eight.find_in(text, &self.all, seen, out);
        self.of_six.find_in(text, &self.all, seen, out);
        self.of_four.find_in(text, &self.all, seen, out);
        self.of_two.find_in(text, &self.all, seen, out);
        self.of_one.find_in(text, &self.all, seen, out);
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
                            out.extend_from_slice(rows.as_slice());
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
        assert!(keywords.all.len() < 200 && keywords.of_twelve.filter.len() < 1000);
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
