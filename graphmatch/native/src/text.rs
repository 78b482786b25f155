//! All tests of text in one pass.
//!
//! Tests are kept by what they look at (the text, or the language tag) and its folding, so a text
//! is folded once for each folding in use. Of each such kind, what is contained is found by
//! Aho-Corasick automata in one pass over the text, beginnings and ends by looking up the text's
//! first and last bytes for each length in use, and equal texts by one look-up. So a text costs
//! its length, the lengths of beginnings and ends in use, and what is found, however many tests
//! there are.
//!
//! An automaton cannot be changed. New keywords wait in a list of 32 at most, are looked for one by
//! one, and then become an automaton together with all that are not eight times as large: a keyword
//! is built a logarithmic number of times, and there are a few automata (Bentley and Saxe 1980).
//! Keywords that went stay in automata until they are more than the rest.
//!
//! Source: A. V. Aho, M. J. Corasick: Efficient string matching: an aid to bibliographic search.
//! Communications of the ACM 18 (6), 1975.

use crate::dictionary::{Dictionary, Id};
use crate::filter::Deciding;
use crate::pattern::{Filter, Folding, TextOperator, View};
use crate::values::Literal;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use memchr::memmem;
use std::hash::BuildHasher;

/// How many keywords wait in a list.
const WAITING: usize = 32;
/// An automaton has at least so many times the keywords of the next.
const GROWTH: usize = 8;
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

/// Keywords, and the automaton that finds them.
struct Segment {
    keywords: Vec<u32>,
    automaton: AhoCorasick,
}

/// A keyword and its rows.
struct Keyword {
    text: Box<[u8]>,
    rows: Rows,
}

/// Keywords that texts may contain.
#[derive(Default)]
struct Keywords {
    hasher: RandomState,
    table: HashTable<u32>,
    all: Vec<Keyword>,
    free: Vec<u32>,
    segments: Vec<Segment>,
    waiting: Vec<u32>,
    /// How many keywords have no rows, and are in automata still.
    dead: usize,
}

impl Keywords {
    fn number(&self, text: &[u8]) -> Option<u32> {
        let is_same = |&number: &u32| *self.all[number as usize].text == *text;
        self.table.find(self.hasher.hash_one(text), is_same).copied()
    }

    fn add(&mut self, text: &[u8], row: u32) {
        if let Some(number) = self.number(text) {
            let rows = &mut self.all[number as usize].rows;
            self.dead -= usize::from(matches!(rows, Rows::None));
            return rows.add(row);
        }
        let keyword = Keyword { text: text.into(), rows: Rows::One(row) };
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
        let hash = |&number: &u32| hasher.hash_one(&*all[number as usize].text);
        self.table.insert_unique(hasher.hash_one(text), number, hash);
        self.waiting.push(number);
        if self.waiting.len() > WAITING {
            self.merge(GROWTH);
        }
    }

    fn remove(&mut self, text: &[u8], row: u32) -> bool {
        let Some(number) = self.number(text) else { return false };
        let rows = &mut self.all[number as usize].rows;
        if !rows.remove(row) {
            return false;
        }
        if matches!(rows, Rows::None) {
            if let Some(at) = self.waiting.iter().position(|&one| one == number) {
                self.waiting.swap_remove(at);
                self.forget(number);
            } else {
                self.dead += 1;
                if self.dead > self.table.len() / 2 + WAITING {
                    self.merge(usize::MAX);
                }
            }
        }
        true
    }

    fn forget(&mut self, number: u32) {
        let text = std::mem::take(&mut self.all[number as usize].text);
        if let Ok(entry) = self.table.find_entry(self.hasher.hash_one(&*text), |&one| one == number)
        {
            entry.remove();
        }
        self.free.push(number);
    }

    /// Makes one automaton of what waits and of all segments that are not `growth` times as large.
    fn merge(&mut self, growth: usize) {
        let mut numbers = std::mem::take(&mut self.waiting);
        while let Some(last) = self
            .segments
            .pop_if(|last| last.keywords.len() < growth.saturating_mul(numbers.len().max(1)))
        {
            numbers.extend(last.keywords);
        }
        let is_dead = |&number: &u32| matches!(self.all[number as usize].rows, Rows::None);
        let (dead, living) = numbers.into_iter().partition(is_dead);
        self.dead -= Vec::len(&dead);
        dead.into_iter().for_each(|number| self.forget(number));
        self.build(living);
    }

    fn build(&mut self, keywords: Vec<u32>) {
        if keywords.is_empty() {
            return;
        }
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::Standard)
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(keywords.iter().map(|&number| &*self.all[number as usize].text));
        match automaton {
            Ok(automaton) => self.segments.push(Segment { keywords, automaton }),
            // more than one automaton holds
            Err(_) if keywords.len() > 1 => {
                let (one, other) = keywords.split_at(keywords.len() / 2);
                self.build(one.to_vec());
                self.build(other.to_vec());
            }
            Err(_) => self.waiting.extend(keywords),
        }
    }

    fn find(&self, text: &[u8], seen: &mut Seen, out: &mut Vec<u32>) {
        for &number in &self.waiting {
            let keyword = &self.all[number as usize];
            if memmem::find(text, &keyword.text).is_some() {
                out.extend_from_slice(keyword.rows.as_slice());
            }
        }
        for segment in &self.segments {
            for found in segment.automaton.find_overlapping_iter(text) {
                let number = segment.keywords[found.pattern().as_usize()] as usize;
                if seen.is_new(number) {
                    out.extend_from_slice(self.all[number].rows.as_slice());
                }
            }
        }
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
        assert!(keywords.all.len() < 1000 && keywords.segments.len() < 5);
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
