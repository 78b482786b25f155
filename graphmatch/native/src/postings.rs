//! Rows: branches of subscriptions in posting lists.
//!
//! A row is a branch: a join program, constants and filters. Its posting list is that of one of its
//! triple patterns with open variables, the *access pattern*. This is the pattern that publications
//! are least likely to contain, by sampled frequency or by a guess. A publication looks up the
//! access patterns of its triples, so its cost depends on the rows in these lists and not on all
//! rows. Each entry of a list also has the tag of a second pattern that the publication must
//! contain. So most rows that do not match are never read.
//!
//! [`Statistics`] sample how often publications contain an access pattern.
//! [`PostingIndex::rebalance`] moves rows from frequent access patterns to rarer ones.
//!
//! Cost: about 10 ns per access pattern of a publication, 5 ns per posting, 0.2 µs per candidate. A
//! row of eight patterns takes 110 bytes, and 80 more if no other row has its shape.

use crate::arena::Arena;
use crate::branch::{Branch, Filter};
use crate::dictionary::Id;
use crate::graph::{Graph, PREDICATE, Tag, Tagger, kind_of};
use crate::interner::{Interner, shrink};
use crate::join::{Join, Stack, Tests};
use crate::limits::Budget;
use crate::plan::{Planner, Program};
use crate::snapshot::{from_bytes, to_bytes};
use crate::subscriptions::RowId;
use crate::triples::Triple;
use hashbrown::{HashMap, HashTable};
use serde::{Deserialize, Serialize};
use slab::Slab;
use std::hint::black_box;

/// The record of a row: its owner, its program, the steps of its access pattern and second pattern,
/// and its position in the posting list. Its constants follow, then for each filter its number or
/// the constant of its comparison.
const OWNER: usize = 0;
const PROGRAM: usize = 1;
const STEPS: usize = 2;
const POSITION: usize = 3;
const HEADER: usize = 4;
/// The owner of a row without a subscription.
pub const NO_OWNER: u32 = u32::MAX;
/// The position of a row that is not in a posting list.
const UNLISTED: u32 = u32::MAX;
/// The step of a missing second pattern.
const NO_STEP: u32 = 0xFFFF;
/// Marks the number of a list in place of a row.
const LIST: u32 = 1 << 31;
/// Number of samples that weigh as much as the guess.
const GUESS_WEIGHT: f64 = 50.0;
/// Number of samples after which all counts are halved.
const HALVING_SAMPLES: u32 = 4096;
/// Maximum number of samples of one thread between two calls of [`PostingIndex::rebalance`].
const MAX_SAMPLES: u32 = 1 << 16;
/// Maximum number of counted access patterns.
const MAX_COUNTED: usize = 1 << 15;
/// Maximum number of rows that one call of [`PostingIndex::rebalance`] visits.
const MAX_VISITED: usize = 1 << 11;
/// Smallest and largest number of publications between two calls of [`PostingIndex::rebalance`].
const MIN_INTERVAL: u64 = 128;
const MAX_INTERVAL: u64 = 1 << 16;
/// Number of candidates whose records are read together, so that their cache misses overlap.
const BATCH_SIZE: usize = 128;

/// Counters of one publication.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Access patterns that were looked up.
    pub probes: u64,
    /// Entries of posting lists that were read.
    pub postings: u64,
    /// Rows whose second pattern is in the publication too.
    pub candidates: u64,
    /// Rows with a solution.
    pub matches: u64,
}

/// How often publications contain access patterns, counted by one thread or by all.
#[derive(Default)]
pub struct Statistics {
    publications: u64,
    samples: u32,
    counts: HashMap<Tag, u32>,
    ever: u64,
}

impl Statistics {
    /// Counts the first publications, and then every sixteenth.
    fn count(&mut self, graph: &Graph) {
        self.publications += 1;
        self.ever += 1;
        let is_sampled = self.ever <= MIN_INTERVAL || self.ever.is_multiple_of(16);
        if !is_sampled || self.counts.len() > 4 * MAX_COUNTED || self.samples >= MAX_SAMPLES {
            return;
        }
        self.samples += 1;
        for &tag in &graph.probes {
            *self.counts.entry(tag).or_insert(0) += 1;
        }
    }

    /// Adds the samples of a thread and clears them. Rare patterns are dropped.
    fn merge(&mut self, statistics: &mut Statistics) {
        self.samples += statistics.samples;
        for (tag, count) in statistics.counts.drain() {
            *self.counts.entry(tag).or_insert(0) += count;
        }
        statistics.counts.shrink_to(MAX_COUNTED / 16);
        (statistics.samples, statistics.publications) = (0, 0);
        while self.samples > HALVING_SAMPLES || self.counts.len() > MAX_COUNTED {
            self.samples /= 2;
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counts.retain(|_, count| *count > 0);
        }
        self.counts.shrink_to(2 * self.counts.len());
    }

    fn count_of(&self, tag: Tag) -> u32 {
        self.counts.get(&tag).copied().unwrap_or(0)
    }

    /// Estimates the share of publications that contain an access pattern. The guess without
    /// samples depends on the kind.
    fn estimate(&self, tag: Tag) -> f64 {
        let guess = match (tag & 7, (tag & 7).count_ones()) {
            (0, _) => return 1.0,
            (_, 3) => 1e-6,
            (_, 2) => 1e-3,
            (kind, _) if kind as usize == PREDICATE => 0.3,
            _ => 1e-2,
        };
        (f64::from(self.count_of(tag)) + GUESS_WEIGHT * guess)
            / (f64::from(self.samples) + GUESS_WEIGHT)
    }
}

/// Memory of one thread, reused for each publication.
#[derive(Default)]
pub struct Scratch {
    /// The rows whose access pattern and second pattern are in the publication.
    pub candidates: Vec<RowId>,
    /// Counters of the publication.
    pub counters: Counters,
    /// Samples since the last call of [`PostingIndex::rebalance`].
    pub statistics: Statistics,
    /// Owners of rows whose join reached its time limit.
    pub undecided: Vec<u32>,
    stack: Stack,
}

impl Scratch {
    /// Starts a publication, which has this time.
    pub fn begin(&mut self, budget: Budget) {
        self.counters = Counters::default();
        self.undecided.clear();
        (self.stack.budget, self.stack.deadline) = (budget, None);
    }

    /// Starts the enumeration of solutions, which has half of this time together.
    pub fn begin_solutions(&mut self, budget: Budget) {
        self.stack.deadline = budget.share();
    }

    /// Returns true if the last join reached its time limit, so that solutions may be missing.
    pub fn is_late(&self) -> bool {
        self.stack.is_over
    }
}

/// A row in a posting list, and the tag of its second pattern or 0.
#[derive(Clone, Copy)]
struct Entry {
    row: RowId,
    second: Tag,
}

/// Posting lists by the tags of access patterns.
#[derive(Default)]
struct Postings {
    /// By tag, the only entry of a list, or the number of a list.
    table: HashTable<(Tag, Entry)>,
    lists: Slab<Vec<Entry>>,
}

fn hash(tag: Tag) -> u64 {
    u64::from(tag.rotate_right(3)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Postings {
    fn get(&self, tag: Tag) -> &[Entry] {
        match self.table.find(hash(tag), |posting| posting.0 == tag) {
            None => &[],
            Some(posting) if posting.1.row & LIST == 0 => std::slice::from_ref(&posting.1),
            Some(posting) => &self.lists[(posting.1.row & !LIST) as usize],
        }
    }

    /// Appends an entry and returns its position.
    fn push(&mut self, tag: Tag, entry: Entry) -> u32 {
        let Some(posting) = self.table.find_mut(hash(tag), |posting| posting.0 == tag) else {
            self.table.insert_unique(hash(tag), (tag, entry), |one| hash(one.0));
            return 0;
        };
        if posting.1.row & LIST == 0 {
            let number = self.lists.insert(vec![posting.1, entry]) as u32;
            posting.1 = Entry { row: LIST | number, second: 0 };
            return 1;
        }
        let list = &mut self.lists[(posting.1.row & !LIST) as usize];
        if list.len() == list.capacity() {
            list.reserve_exact(list.len() / 2 + 1);
        }
        list.push(entry);
        (list.len() - 1) as u32
    }

    /// Removes the entry at a position. Returns the row that moved there.
    fn remove(&mut self, tag: Tag, position: usize) -> Option<RowId> {
        let Ok(mut found) = self.table.find_entry(hash(tag), |posting| posting.0 == tag) else {
            return None;
        };
        let row = found.get().1.row;
        if row & LIST == 0 {
            found.remove();
            shrink(&mut self.table, |posting| hash(posting.0));
            return None;
        }
        let number = (row & !LIST) as usize;
        let list = &mut self.lists[number];
        list.swap_remove(position);
        let moved = list.get(position).map(|entry| entry.row);
        if let [last] = list[..] {
            found.get_mut().1 = last;
            self.lists.remove(number);
            if self.lists.is_empty() {
                self.lists = Slab::new();
            }
        } else if list.len() < list.capacity() / 4 {
            list.shrink_to(list.len() * 2);
        }
        moved
    }
}

/// The branches of subscriptions in posting lists.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PostingIndex {
    rows: Arena<u32>,
    /// Distinct join programs.
    programs: Interner,
    /// Distinct encoded filters other than comparisons.
    filters: Interner,
    #[serde(skip)]
    postings: Postings,
    #[serde(skip)]
    /// By kind, the number of rows in posting lists.
    listed: [u32; 8],
    #[serde(skip)]
    /// The kinds of all look-ups so far, a bit each.
    kinds: u8,
    #[serde(skip)]
    frequencies: Statistics,
    #[serde(skip)]
    /// Publications until the next [`PostingIndex::rebalance`], if more than the minimum, and the
    /// number of calls so far.
    interval: u64,
    #[serde(skip)]
    turn: usize,
    #[serde(skip)]
    tagger: Tagger,
    #[serde(skip)]
    planner: Planner,
    #[serde(skip)]
    record: Vec<u32>,
}

impl PostingIndex {
    /// Adds a branch without an owner. Returns `None` if it has more than
    /// [`crate::plan::MAX_PATTERNS`] patterns or filters, or if the memory of 2³² numbers is full.
    pub fn add(&mut self, branch: &Branch) -> Option<RowId> {
        if !self.planner.plan(branch) {
            return None;
        }
        let program = self.programs.intern(&self.planner.code)?;
        self.kinds |= Program::read(&self.planner.code).kinds();
        self.record.clear();
        self.record.extend([NO_OWNER, program, 0, UNLISTED]);
        self.record.extend_from_slice(&self.planner.constants);
        for (_, filter) in &branch.filters {
            self.record.push(match filter {
                Filter::Compare { constant, .. } => *constant,
                other => self.filters.intern(&to_bytes(other))?,
            });
        }
        let row = self.rows.insert(&self.record)?;
        let (access, second) = self.choose(row);
        self.insert(row, access, second);
        Some(row)
    }

    /// Removes a row. The row must exist.
    pub fn remove(&mut self, row: RowId) {
        self.unlist(row);
        if !self.rows.has(row) {
            return;
        }
        let record = self.rows.get(row);
        let number = record[PROGRAM];
        let program = Program::read(self.programs.get(number));
        let numbers = &record[HEADER + program.constants..];
        for (n, &number) in numbers.iter().enumerate() {
            if program.test(n).2.is_none() {
                self.filters.release(number);
            }
        }
        self.programs.release(number);
        self.rows.remove(row);
    }

    /// Returns the owner of a row.
    pub fn owner(&self, row: RowId) -> u32 {
        self.rows.get(row).get(OWNER).copied().unwrap_or(NO_OWNER)
    }

    /// Sets the owner of a row.
    pub fn set_owner(&mut self, row: RowId, owner: u32) {
        if let Some(old) = self.rows.get_mut(row).get_mut(OWNER) {
            *old = owner;
        }
    }

    /// Builds the posting lists of decoded rows. Returns the rows that are in no posting list.
    pub fn rebuild(&mut self) -> Vec<RowId> {
        for number in self.programs.numbers() {
            self.kinds |= self.program(number).kinds();
        }
        // Computes all tags before it fills lists, so that cache misses overlap.
        let (mut tags, mut unlisted) = (Vec::with_capacity(self.len()), Vec::new());
        for row in self.rows.numbers() {
            if self.rows.get(row)[POSITION] == UNLISTED {
                unlisted.push(row);
            } else {
                let (access, second) = self.listed_steps(row);
                tags.push((row, self.tag_of(row, access), self.tag_of(row, second)));
            }
        }
        for (row, tag, second) in tags {
            let position = self.append(row, tag, second);
            self.rows.get_mut(row)[POSITION] = position;
        }
        unlisted
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the branch of a row; an empty one if the row does not exist.
    pub fn branch(&self, row: RowId) -> Branch {
        let Some((program, constants)) = self.row(row) else { return Branch::default() };
        let numbers = &constants[program.constants..];
        let filters = (0..program.filters).filter_map(|n| {
            let (_, variable, operator) = program.test(n);
            let filter = match operator {
                Some(operator) => Filter::Compare { operator, constant: numbers[n] },
                None => from_bytes(self.filters.get(numbers[n]))?,
            };
            Some((variable as u16, filter))
        });
        Branch {
            patterns: program.patterns(constants),
            filters: filters.collect(),
            variables: program.variables as u16,
        }
    }

    fn program(&self, number: u32) -> Program<'_> {
        Program::read(self.programs.get(number))
    }

    /// Returns the program of a row, and the rest of its record.
    fn row(&self, row: RowId) -> Option<(Program<'_>, &[u32])> {
        let record = self.rows.get(row);
        Some((self.program(*record.get(PROGRAM)?), &record[HEADER..]))
    }

    // -- matching -----------------------------------------------------------------------------

    /// Returns the kinds of look-up that the graph of a publication needs, one bit per kind.
    pub fn required_kinds(&self) -> u8 {
        self.kinds
    }

    /// Finds the distinct rows whose access pattern and second pattern are in the publication. The
    /// graph must be prepared for [`PostingIndex::required_kinds`].
    pub fn candidates(&self, graph: &Graph, scratch: &mut Scratch) {
        scratch.candidates.clear();
        scratch.statistics.count(graph);
        let tags = [0].iter().chain(&graph.probes);
        let (mut probes, mut postings) = (0, 0);
        let mut lists: Vec<&[Entry]> = Vec::new();
        for &tag in tags.filter(|&tag| self.listed[(tag & 7) as usize] > 0) {
            probes += 1;
            let entries = self.postings.get(tag);
            if !entries.is_empty() {
                lists.push(entries);
            }
        }
        // All look-ups come before all lists, so that cache misses overlap.
        for entries in lists {
            postings += entries.len();
            let has = |entry: &&Entry| entry.second == 0 || graph.has(entry.second);
            scratch.candidates.extend(entries.iter().filter(has).map(|entry| entry.row));
        }
        scratch.counters.probes += probes;
        scratch.counters.postings += postings as u64;
        scratch.counters.candidates += scratch.candidates.len() as u64;
    }

    /// Adds the owners of the rows that have a solution, in any order.
    pub fn find(&self, graph: &Graph, tests: Tests, scratch: &mut Scratch, owners: &mut Vec<u32>) {
        self.candidates(graph, scratch);
        let candidates = std::mem::take(&mut scratch.candidates);
        let mut records = Vec::with_capacity(BATCH_SIZE);
        for batch in candidates.chunks(BATCH_SIZE) {
            records.clear();
            records.extend(batch.iter().map(|&row| self.rows.get(row)));
            // The loops read both ends of all records, then all programs, so that cache misses
            // overlap.
            let ends = |record: &&[u32]| {
                record[PROGRAM] ^ record[record.len() / 2] ^ record[record.len() - 1]
            };
            black_box(records.iter().map(ends).fold(0, |all, end| all ^ end));
            let steps = |record: &&[u32]| self.program(record[PROGRAM]).steps;
            black_box(records.iter().map(steps).sum::<usize>());
            for &row in batch {
                self.check(row, graph, tests, scratch, owners);
            }
        }
        scratch.candidates = candidates;
    }

    /// Adds the owner of a row if the row has a solution. Stops at the first one.
    pub fn check(
        &self,
        row: RowId,
        graph: &Graph,
        tests: Tests,
        scratch: &mut Scratch,
        owners: &mut Vec<u32>,
    ) {
        let mut found = false;
        self.solutions(row, graph, tests, scratch, |_| {
            found = true;
            false
        });
        if found {
            scratch.counters.matches += 1;
            owners.push(self.owner(row));
        } else if scratch.is_late() {
            scratch.undecided.push(self.owner(row));
        }
    }

    /// Calls `on` with each solution of a row, its terms in the order of variables, until `on`
    /// returns false.
    pub fn solutions(
        &self,
        row: RowId,
        graph: &Graph,
        tests: Tests,
        scratch: &mut Scratch,
        on: impl FnMut(&[Id]) -> bool,
    ) {
        let Some((program, constants)) = self.row(row) else { return };
        let filters = &self.filters;
        Join { program, constants, filters, graph, tests }.run(&mut scratch.stack, on);
    }

    // -- posting lists ------------------------------------------------------------------------

    fn tag(&self, key: Triple) -> Tag {
        self.tagger.tag(kind_of(key), key)
    }

    /// Returns the steps whose access patterns are the rarest and second rarest.
    fn choose(&self, row: RowId) -> (u32, u32) {
        let Some((program, constants)) = self.row(row) else { return (NO_STEP, NO_STEP) };
        let never = (f64::INFINITY, 0, NO_STEP);
        let (mut first, mut second) = (never, never);
        for n in 0..program.steps {
            let tag = self.tag(program.access(n, constants));
            if tag == first.1 || tag == second.1 || tag == 0 {
                continue;
            }
            // If two patterns are equally rare, the shorter posting list wins.
            let rows = 1.0 + 1e-9 * self.postings.get(tag).len() as f64;
            let own = (self.frequencies.estimate(tag) * rows, tag, n as u32);
            if own.0 < first.0 {
                (first, second) = (own, first);
            } else if own.0 < second.0 {
                second = own;
            }
        }
        (first.2, second.2)
    }

    /// Returns the tag of a step of a row, or 0 without a step.
    fn tag_of(&self, row: RowId, step: u32) -> Tag {
        match self.row(row) {
            Some((program, constants)) if step != NO_STEP => {
                self.tag(program.access(step as usize, constants))
            }
            _ => 0,
        }
    }

    fn insert(&mut self, row: RowId, access: u32, second: u32) {
        let position = self.append(row, self.tag_of(row, access), self.tag_of(row, second));
        let record = self.rows.get_mut(row);
        record[STEPS] = access | second << 16;
        record[POSITION] = position;
    }

    /// Appends a row to a posting list and returns its position.
    fn append(&mut self, row: RowId, tag: Tag, second: Tag) -> u32 {
        self.listed[(tag & 7) as usize] += 1;
        self.kinds |= 1 << (tag & 7) | 1 << (second & 7);
        self.postings.push(tag, Entry { row, second })
    }

    /// Returns the steps of a row's access pattern and second pattern.
    fn listed_steps(&self, row: RowId) -> (u32, u32) {
        let steps = self.rows.get(row).get(STEPS).copied().unwrap_or(u32::MAX);
        (steps & NO_STEP, steps >> 16)
    }

    /// Returns the length of a row's posting list.
    pub fn posting_list_len(&self, row: RowId) -> usize {
        self.postings.get(self.tag_of(row, self.listed_steps(row).0)).len()
    }

    /// Returns other rows in the posting lists of a row's patterns, at most `some` of each list.
    pub fn neighbours(&self, row: RowId, some: usize) -> Vec<RowId> {
        let Some((program, constants)) = self.row(row) else { return Vec::new() };
        let tags = (0..program.steps).map(|n| self.tag(program.access(n, constants)));
        let entries = tags.flat_map(|tag| self.postings.get(tag).iter().take(some));
        let mut rows: Vec<RowId> =
            entries.map(|entry| entry.row).filter(|&one| one != row).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Removes a row from its posting list, because another index finds it from now on.
    pub fn unlist(&mut self, row: RowId) {
        let tag = self.tag_of(row, self.listed_steps(row).0);
        let Some(position) = self.rows.get_mut(row).get_mut(POSITION) else { return };
        let position = std::mem::replace(position, UNLISTED);
        if position == UNLISTED {
            return;
        }
        self.listed[(tag & 7) as usize] -= 1;
        if let Some(moved) = self.postings.remove(tag, position as usize) {
            self.rows.get_mut(moved)[POSITION] = position;
        }
    }

    /// Returns true if there are enough samples for [`PostingIndex::rebalance`].
    pub fn wants_rebalance(&self, statistics: &Statistics) -> bool {
        statistics.publications >= self.interval.max(MIN_INTERVAL)
    }

    /// Takes the samples of a thread and moves rows from frequent access patterns to rarer ones.
    /// The work is bounded. The interval to the next call doubles if few rows moved. Returns the
    /// number of moved rows.
    pub fn rebalance(&mut self, statistics: &mut Statistics) -> usize {
        self.frequencies.merge(statistics);
        let counts = self.frequencies.counts.iter().map(|(&tag, &count)| (tag, count));
        let cost = |(tag, count): (Tag, u32)| {
            let rows = self.postings.get(tag).len();
            (rows as u64 * u64::from(count), tag, rows)
        };
        let mut hot: Vec<(u64, Tag, usize)> = counts.map(cost).filter(|one| one.0 > 0).collect();
        if hot.len() > MAX_VISITED {
            hot.select_nth_unstable_by(MAX_VISITED, |a, b| b.cmp(a));
            hot.truncate(MAX_VISITED);
        }
        hot.sort_unstable_by(|a, b| b.cmp(a));
        let (mut seen, mut moved) = (0, 0);
        let mut rows: Vec<RowId> = Vec::new();
        for (_, tag, length) in hot {
            if seen >= MAX_VISITED {
                break;
            }
            let some = length.min(MAX_VISITED - seen);
            let begin =
                if some < length { self.turn.wrapping_mul(MAX_VISITED) % length } else { 0 };
            let entries = self.postings.get(tag).iter().cycle().skip(begin).take(some);
            rows.extend(entries.map(|entry| entry.row));
            seen += some;
            moved += rows.drain(..).map(|row| usize::from(self.move_row(row, tag))).sum::<usize>();
        }
        self.turn = self.turn.wrapping_add(1);
        let worth = moved * 16 > seen;
        self.interval =
            if worth { 0 } else { (2 * self.interval).clamp(2 * MIN_INTERVAL, MAX_INTERVAL) };
        moved
    }

    /// Moves a row if another access pattern is at most half as frequent, or if another second
    /// pattern is better.
    fn move_row(&mut self, row: RowId, tag: Tag) -> bool {
        let (access, second) = self.choose(row);
        let new = self.tag_of(row, access);
        let is_rarer = 2.0 * self.frequencies.estimate(new) < self.frequencies.estimate(tag);
        let is_better =
            new == tag && self.tag_of(row, second) != self.tag_of(row, self.listed_steps(row).1);
        if is_rarer || is_better {
            self.unlist(row);
            self.insert(row, access, second);
        }
        is_rarer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::branch::{Comparison, Filter, Node, Pattern};
    use crate::dictionary::{ANY, LOCAL};
    use crate::graph::tests::Random;
    use std::collections::{BTreeSet, HashMap};

    /// Compares ids as numbers.
    fn by_number(filter: &Filter, term: Id) -> bool {
        match filter {
            Filter::Compare { operator: Comparison::Less, constant } => term < *constant,
            Filter::Compare { operator: Comparison::Equal, constant } => term == *constant,
            Filter::Any(any) => any.iter().any(|one| by_number(one, term)),
            _ => false,
        }
    }

    impl PostingIndex {
        /// The access pattern of a row, with `ANY` for variables, its second pattern, and the length
        /// of its posting list.
        fn placement(&self, row: RowId) -> Option<(Triple, Option<Triple>, usize)> {
            let (program, constants) = self.row(row)?;
            let (access, second) = self.listed_steps(row);
            let key =
                |step: u32| (step != NO_STEP).then(|| program.access(step as usize, constants));
            let postings = self.postings.get(self.tag_of(row, access)).len();
            Some((key(access).unwrap_or([ANY; 3]), key(second), postings))
        }
    }

    impl Postings {
        fn bytes(&self) -> usize {
            self.table.allocation_size()
                + self.lists.capacity() * size_of::<Vec<Entry>>()
                + self
                    .lists
                    .iter()
                    .map(|(_, one)| one.capacity() * size_of::<Entry>())
                    .sum::<usize>()
        }
    }

    impl PostingIndex {
        /// Returns the number of distinct join programs.
        pub fn programs(&self) -> usize {
            self.programs.len()
        }

        /// Returns the number of allocated bytes.
        pub fn bytes(&self) -> usize {
            let counts = self.frequencies.counts.allocation_size();
            self.rows.bytes()
                + self.programs.bytes()
                + self.filters.bytes()
                + self.postings.bytes()
                + counts
        }
    }

    const V: fn(u16) -> Node = Node::Variable;
    const C: fn(Id) -> Node = Node::Constant;

    fn branch(patterns: &[Pattern]) -> Branch {
        let variable = |node: &Node| match node {
            Node::Variable(v) => v + 1,
            Node::Constant(_) => 0,
        };
        let variables = patterns.iter().flatten().map(variable).max().unwrap_or(0);
        Branch { patterns: patterns.to_vec(), filters: Vec::new(), variables }
    }

    fn graph(triples: &[Triple], patterns: &PostingIndex) -> Graph {
        let mut graph = Graph::default();
        triples.iter().for_each(|&triple| assert!(graph.push(triple)));
        graph.prepare(patterns.required_kinds());
        graph
    }

    fn find(patterns: &PostingIndex, triples: &[Triple]) -> Vec<RowId> {
        let mut found = found(patterns, &graph(triples, patterns), &mut Scratch::default());
        found.sort_unstable();
        found
    }

    fn found(patterns: &PostingIndex, graph: &Graph, scratch: &mut Scratch) -> Vec<RowId> {
        let mut found = Vec::new();
        patterns.find(graph, &by_number, scratch, &mut found);
        found
    }

    /// Adds a row that is its own owner.
    fn add(patterns: &mut PostingIndex, branch: &Branch) -> RowId {
        let row = patterns.add(branch).unwrap();
        patterns.set_owner(row, row);
        row
    }

    /// Tries all assignments of triples to patterns.
    fn naive(branch: &Branch, triples: &[Triple], stated: usize) -> BTreeSet<Vec<Id>> {
        let mut some = vec![vec![ANY; usize::from(branch.variables)]];
        for pattern in &branch.patterns {
            let mut more = Vec::new();
            for (solution, (n, triple)) in
                some.iter().flat_map(|s| triples.iter().enumerate().map(move |t| (s, t)))
            {
                let mut solution: Vec<Id> = solution.clone();
                let fits = pattern.iter().zip(triple).all(|(node, &term)| match node {
                    Node::Constant(constant) => *constant == term,
                    Node::Variable(v) => {
                        let old = std::mem::replace(&mut solution[usize::from(*v)], term);
                        old == ANY || old == term
                    }
                });
                if fits && (n < stated || matches!(pattern[1], Node::Constant(_))) {
                    more.push(solution);
                }
            }
            some = more;
        }
        let passes = |s: &Vec<Id>| {
            branch.filters.iter().all(|(v, filter)| by_number(filter, s[usize::from(*v)]))
        };
        some.into_iter().filter(passes).collect()
    }

    fn random_branch(random: &mut Random, constants: u32) -> Branch {
        let count = random.below(5) + 1;
        let mut numbers: Vec<u32> = Vec::new();
        let mut patterns: Vec<Pattern> = Vec::new();
        for _ in 0..count {
            let pattern = std::array::from_fn(|place| {
                if random.below(100) < [25, 75, 40][place] {
                    return C(random.below(constants));
                }
                let name = random.below(5);
                let known = numbers.iter().position(|&n| n == name);
                V(known.unwrap_or_else(|| {
                    numbers.push(name);
                    numbers.len() - 1
                }) as u16)
            });
            if !patterns.contains(&pattern) {
                patterns.push(pattern);
            }
        }
        let mut branch = branch(&patterns);
        let variables = patterns.iter().flatten().filter_map(|node| match node {
            Node::Variable(v) => Some(*v),
            Node::Constant(_) => None,
        });
        let variables: BTreeSet<u16> = variables.collect();
        branch.variables = variables.len() as u16;
        for v in variables {
            let constant = random.below(constants);
            match random.below(8) {
                0 => branch
                    .filters
                    .push((v, Filter::Compare { operator: Comparison::Less, constant })),
                1 => {
                    let equal =
                        |constant| Filter::Compare { operator: Comparison::Equal, constant };
                    let any = [equal(constant), equal(random.below(constants)), equal(LOCAL)];
                    branch.filters.push((v, Filter::Any(any.into())));
                }
                _ => {}
            }
        }
        branch
    }

    fn random_graph(random: &mut Random, constants: u32, graph: &mut Graph) {
        graph.clear();
        for _ in 0..random.below(24) {
            let triple =
                [random.below(constants + 2), random.below(4), random.below(constants + 2)];
            graph.push(triple.map(|n| if n < constants { n } else { LOCAL + n - constants }));
            if random.below(16) == 0 {
                graph.begin_named_only();
            }
        }
    }

    #[test]
    fn solutions_are_those_of_all_assignments() {
        let mut random = Random(7);
        let (mut graph, mut scratch) = (Graph::default(), Scratch::default());
        let mut matched = 0;
        for round in 0..250 {
            let mut patterns = PostingIndex::default();
            let branches: Vec<Branch> = (0..20).map(|_| random_branch(&mut random, 6)).collect();
            let rows: Vec<RowId> = branches.iter().map(|b| add(&mut patterns, b)).collect();
            for (branch, &row) in branches.iter().zip(&rows) {
                assert_eq!(&patterns.branch(row), branch);
            }
            for _ in 0..10 {
                random_graph(&mut random, 6, &mut graph);
                graph.prepare(if round % 5 == 0 { 0 } else { patterns.required_kinds() });
                let triples = graph.triples.clone();
                let mut expected = Vec::new();
                for (branch, &row) in branches.iter().zip(&rows) {
                    let solutions = naive(branch, &triples, graph.stated());
                    let mut found = Vec::new();
                    patterns.solutions(row, &graph, &by_number, &mut scratch, |solution| {
                        found.push(solution.to_vec());
                        true
                    });
                    assert_eq!(found.len(), solutions.len(), "{branch:?} {triples:?}");
                    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), solutions);
                    let mut owners = Vec::new();
                    patterns.check(row, &graph, &by_number, &mut scratch, &mut owners);
                    assert_eq!(owners.is_empty(), solutions.is_empty());
                    expected.extend(owners.first().map(|_| row));
                }
                graph.prepare(patterns.required_kinds());
                let mut found = found(&patterns, &graph, &mut scratch);
                found.sort_unstable();
                expected.sort_unstable();
                assert_eq!(found, expected);
                matched += expected.len();
            }
        }
        assert!(matched > 2_000, "{matched}");
    }

    #[test]
    fn rows_come_and_go() {
        let mut random = Random(3);
        let mut patterns = PostingIndex::default();
        let mut scratch = Scratch::default();
        let mut graph = Graph::default();
        let mut live: HashMap<RowId, Branch> = HashMap::new();
        for round in 0..3_000 {
            let branch = random_branch(&mut random, 8);
            assert!(live.insert(add(&mut patterns, &branch), branch).is_none());
            while live.len() > 300 || (round % 700 == 699 && !live.is_empty()) {
                let nth = random.below(live.len() as u32) as usize;
                let row = *live.keys().nth(nth).unwrap();
                patterns.remove(row);
                live.remove(&row);
            }
            if round % 10 == 0 {
                random_graph(&mut random, 8, &mut graph);
                graph.prepare(patterns.required_kinds());
                let matches = found(&patterns, &graph, &mut scratch);
                let found: BTreeSet<RowId> = matches.iter().copied().collect();
                assert_eq!(found.len(), matches.len());
                let holds = |b: &Branch| !naive(b, &graph.triples, graph.stated()).is_empty();
                let expected = live.iter().filter(|(_, b)| holds(b)).map(|(&row, _)| row);
                assert_eq!(found, expected.collect());
            }
            if round % 50 == 0 {
                patterns.rebalance(&mut scratch.statistics);
                for (&row, branch) in &live {
                    assert_eq!(&patterns.branch(row), branch);
                    assert!(patterns.placement(row).unwrap().2 > 0);
                }
            }
        }
        live.keys().for_each(|&row| patterns.remove(row));
        assert!(patterns.len() == 0 && patterns.programs() == 0);
        assert!(patterns.postings.table.is_empty() && patterns.filters.len() == 0);
    }

    /// Makes a row of eight patterns, some of them chained, of one of many shapes.
    fn wide_branch(random: &mut Random, terms: u32) -> Branch {
        let mut patterns: Vec<Pattern> = Vec::new();
        let mut variables = 1;
        while patterns.len() < 8 {
            let subject = V(random.below(u32::from(variables)) as u16);
            let predicate = C(random.below(200));
            let pattern = if random.below(2) == 0 {
                [subject, predicate, C(1_000 + random.below(terms))]
            } else {
                variables += 1;
                [subject, predicate, V(variables - 1)]
            };
            patterns.push(pattern);
        }
        branch(&patterns)
    }

    #[test]
    fn memory_stays_flat() {
        let mut patterns = PostingIndex::default();
        let mut first = 0;
        for round in 0..20 {
            let mut random = Random(round);
            let rows: Vec<RowId> =
                (0..5_000).map(|_| add(&mut patterns, &wide_branch(&mut random, 10_000))).collect();
            if round == 0 {
                first = patterns.bytes();
                assert!(first / rows.len() < 250, "{}", first / rows.len());
            }
            assert!(patterns.bytes() < first * 3 / 2);
            rows[..4_900].iter().for_each(|&row| patterns.remove(row));
            assert!(patterns.bytes() < first / 3, "{} {first}", patterns.bytes());
            rows[4_900..].iter().for_each(|&row| patterns.remove(row));
            assert!(patterns.bytes() < 1 << 16, "{}", patterns.bytes());
        }
    }

    #[test]
    fn existence_is_decided_part_by_part() {
        let mut patterns = PostingIndex::default();
        let product = [[V(0), C(1), V(1)], [V(2), C(2), V(3)]];
        let both = add(&mut patterns, &branch(&product));
        let missing = [product[0], product[1], [V(4), C(3), V(4)]];
        add(&mut patterns, &branch(&missing));
        // Backtracking reads ?0 and its values twice before it finds that ?0 has no loop.
        let star = [[V(0), C(1), V(1)], [V(0), C(2), V(2)], [V(0), C(4), V(3)], [V(3), C(4), V(2)]];
        add(&mut patterns, &branch(&star));
        let mut triples: Vec<Triple> = (0..2_000).map(|n| [9, 1, 10 + n]).collect();
        triples.extend((0..2_000).map(|n| [9, 2, 5_000 + n]));
        triples.extend([[7, 3, 8], [9, 4, 7]]);
        let started = std::time::Instant::now();
        assert_eq!(find(&patterns, &triples), [both]);
        assert!(started.elapsed().as_millis() < 200);
        let (mut count, mut scratch) = (0, Scratch::default());
        let graph = graph(&triples, &patterns);
        patterns.solutions(both, &graph, &by_number, &mut scratch, |_| {
            count += 1;
            count < 3_000
        });
        assert_eq!(count, 3_000);
    }

    #[test]
    fn a_chain_through_a_dense_graph_takes_no_time() {
        let mut patterns = PostingIndex::default();
        let mut chain: Vec<Pattern> = (0..30).map(|n| [V(n), C(1), V(n + 1)]).collect();
        chain.push([V(30), C(2), V(31)]);
        add(&mut patterns, &branch(&chain));
        chain.push([V(31), C(2), V(0)]);
        add(&mut patterns, &branch(&chain));
        let mut triples: Vec<Triple> = (0..400).map(|n| [10 + n / 20, 1, 10 + n % 20]).collect();
        triples.push([5, 2, 6]);
        assert_eq!(find(&patterns, &triples), [0; 0]);
    }

    #[test]
    fn large_branches() {
        let mut patterns = PostingIndex::default();
        let chain =
            |length: u16| -> Vec<Pattern> { (0..length).map(|n| [V(n), C(1), V(n + 1)]).collect() };
        let row = add(&mut patterns, &branch(&chain(64)));
        assert_eq!(patterns.branch(row), branch(&chain(64)));
        assert_eq!(patterns.add(&branch(&chain(65))), None);
        assert_eq!(patterns.add(&branch(&[[V(253), C(1), C(2)]])), None);
        let triples: Vec<Triple> = (0..64).map(|n| [10 + n, 1, 11 + n]).collect();
        assert_eq!(find(&patterns, &triples), [row]);
        assert_eq!(find(&patterns, &triples[1..]), [0; 0]);
        patterns.remove(row);
        patterns.remove(row);
        assert!(patterns.len() == 0 && patterns.branch(row) == Branch::default());
        let row = add(&mut patterns, &Branch::default());
        assert_eq!(find(&patterns, &triples), [row]);
    }

    #[test]
    fn branches_of_one_shape_share_a_program() {
        let mut patterns = PostingIndex::default();
        let one = |n: u32| branch(&[[V(0), C(n), C(n + 1)], [V(0), C(3), V(1)]]);
        let rows: Vec<RowId> = (0..100).map(|n| add(&mut patterns, &one(10 * n))).collect();
        let other = add(&mut patterns, &branch(&[[V(0), V(1), V(0)]]));
        assert_eq!(patterns.programs(), 2);
        let placement = Some(([ANY, 40, 41], Some([ANY, 3, ANY]), 1));
        assert_eq!(patterns.placement(rows[4]), placement);
        assert_eq!(patterns.placement(other).unwrap().0, [ANY; 3]);
        assert_eq!(patterns.placement(500), None);
        let triples = [[LOCAL, 40, 41], [LOCAL, 3, 5], [LOCAL + 1, 50, 51]];
        assert_eq!(find(&patterns, &triples), [rows[4]]);
        let mut scratch = Scratch::default();
        found(&patterns, &graph(&triples, &patterns), &mut scratch);
        let counters = Counters { probes: 4, postings: 3, candidates: 3, matches: 1 };
        assert_eq!(scratch.counters, counters);
        assert_eq!(find(&patterns, &[[7, 8, 7]]), [other]);
    }

    #[test]
    fn rows_leave_frequent_access_patterns() {
        let mut patterns = PostingIndex::default();
        let mut random = Random(5);
        // The guess is equal for all; but every publication contains the first pattern.
        let rows: Vec<RowId> = (0..2_000)
            .map(|n| {
                let person = C(1_000 + n);
                let two = [[V(0), C(1), C(2 + n % 2)], [V(0), C(5), person], [V(0), C(6), person]];
                add(&mut patterns, &branch(&two))
            })
            .collect();
        for row in &rows {
            let (access, second) = (0..3)
                .map(|step| (step, (step + 1) % 3))
                .find(|one| patterns.tag_of(*row, one.0) & 7 == 3 && one.0 == 0)
                .unwrap();
            patterns.unlist(*row);
            patterns.insert(*row, access, second);
        }
        let mut scratch = Scratch::default();
        let mut run = |patterns: &mut PostingIndex, random: &mut Random| {
            let (mut moved, mut count) = (0, 0);
            scratch.counters = Counters::default();
            for _ in 0..1_000 {
                let who = 1_000 + random.below(2_000);
                let both = [[LOCAL, 5, who], [LOCAL, 6, who], [LOCAL, 1, 2 + who % 2]];
                let common = [[LOCAL + 1, 1, 2], [LOCAL + 1, 1, 3]];
                let mut graph = Graph::default();
                both.iter().chain(&common).for_each(|&triple| assert!(graph.push(triple)));
                graph.prepare(patterns.required_kinds());
                let matches = found(patterns, &graph, &mut scratch);
                assert_eq!(matches, [rows[who as usize - 1_000]]);
                count += matches.len();
                if patterns.wants_rebalance(&scratch.statistics) {
                    moved += patterns.rebalance(&mut scratch.statistics);
                }
            }
            assert_eq!(count, 1_000);
            (moved, scratch.counters.postings)
        };
        let (moved, before) = run(&mut patterns, &mut random);
        let (_, after) = run(&mut patterns, &mut random);
        assert!(
            moved >= 1_500 && after < 10_000 && before > 10 * after,
            "{moved} {before} {after}"
        );
        assert_ne!(patterns.placement(rows[0]).unwrap().0, [ANY, 1, 2]);
        rows.iter().for_each(|&row| patterns.remove(row));
        assert!(patterns.postings.table.is_empty());
    }
}
