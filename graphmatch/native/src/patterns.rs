//! Rows: branches of subscriptions, found by posting lists.
//!
//! A row is a branch: a join program, constants and filters. It is filed under one of its triple
//! patterns with variables left open, its *access pattern*: the one that publications are least
//! likely to have, by how often they had it so far, or by a guess. A publication looks up the
//! access patterns of its own triples; so the cost of a publication is that of the rows it meets,
//! not of those there are. Beside each row in a posting list is the tag of a second pattern, which
//! the publication must have too: most rows that do not match are never read.
//!
//! Access patterns that turn out to be frequent lose rows to rarer ones: [`Statistics`] are
//! sampled while matching, and [`Patterns::refile`] moves rows between publications.
//!
//! Cost: about 10 ns an access pattern of a publication, 5 ns a posting, 0.2 µs a candidate;
//! a row of eight patterns takes 110 bytes and, if its shape is its own, another 80.

use crate::arena::Arena;
use crate::dictionary::{Dictionary, Id};
use crate::graph::{Graph, Key, PREDICATE, Tag, Tagger, kind_of};
use crate::interner::{Interner, shrink};
use crate::join::{Join, Stack};
use crate::pattern::{Branch, Filter};
use crate::plan::{Planner, Program};
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check, from_bytes, to_bytes};
use hashbrown::{HashMap, HashTable};
use std::hint::black_box;
use std::time::Duration;

pub use crate::join::Tests;

/// A row's number, which is used again when the row is gone.
pub type Row = u32;

/// A row's record: whose it is, its program, its access pattern and second pattern (numbers of
/// steps), where it is in its posting list; then constants, and numbers of filters or what these
/// compare with.
const OWNER: usize = 0;
const PROGRAM: usize = 1;
const FILED: usize = 2;
const POSITION: usize = 3;
const HEADER: usize = 4;
/// In place of an owner: nobody.
pub const NO_OWNER: u32 = u32::MAX;
/// In place of a position: the row is in no posting list.
const UNFILED: u32 = u32::MAX;
/// No second pattern.
const NO_STEP: u32 = 0xFFFF;
/// In place of a row: the rest is the number of a list.
const LIST: u32 = 1 << 31;
/// So many samples weigh as much as the guess.
const TRUST: f64 = 50.0;
/// So many samples later they count half.
const HALVED: u32 = 4096;
/// A thread samples no more before it hands them over.
const SAMPLED: u32 = 1 << 16;
/// So many access patterns are counted.
const COUNTED: usize = 1 << 15;
/// So many rows are looked at when they are filed anew.
const REFILED: usize = 1 << 11;
/// Publications between two times, at the least and at the most.
const OFTEN: u64 = 128;
const SELDOM: u64 = 1 << 16;
/// Records of so many candidates are asked for at once, so that their cache misses overlap.
const BATCH: usize = 128;

/// What matching counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Access patterns that were looked up.
    pub probes: u64,
    /// Entries of posting lists that were found.
    pub postings: u64,
    /// Rows whose second pattern was there too.
    pub candidates: u64,
    /// Rows with a solution.
    pub matches: u64,
}

/// How often publications had access patterns, by one thread since the last [`Patterns::refile`].
#[derive(Default)]
pub struct Statistics {
    publications: u64,
    samples: u32,
    counts: HashMap<Tag, u32>,
    ever: u64,
}

impl Statistics {
    /// All of the first publications count, later every sixteenth.
    fn sees(&mut self, graph: &Graph) {
        self.publications += 1;
        self.ever += 1;
        let is_sampled = self.ever <= OFTEN || self.ever.is_multiple_of(16);
        if !is_sampled || self.counts.len() > 4 * COUNTED || self.samples >= SAMPLED {
            return;
        }
        self.samples += 1;
        for &tag in graph.probes() {
            *self.counts.entry(tag).or_insert(0) += 1;
        }
    }
}

/// What one thread needs to match; reused from one publication to the next.
#[derive(Default)]
pub struct Scratch {
    /// The rows that [`Patterns::candidates`] found.
    pub candidates: Vec<Row>,
    /// What was counted since it was last set to zero.
    pub counters: Counters,
    /// What publications had.
    pub statistics: Statistics,
    /// The owners of the rows whose join took too long to be decided.
    pub undecided: Vec<u32>,
    stack: Stack,
}

impl Scratch {
    /// Prepares for a publication, each of whose joins may take some time.
    pub fn begin(&mut self, limit: Option<Duration>) {
        self.counters = Counters::default();
        self.undecided.clear();
        self.stack.clock.limit_each(limit);
    }

    /// Prepares for finding solutions, whose joins may take some time together.
    pub fn begin_solutions(&mut self, limit: Option<Duration>) {
        self.stack.clock.limit_all(limit);
    }

    /// Whether the last join ended because of the time limit, so that solutions may be missing.
    pub fn is_late(&self) -> bool {
        self.stack.clock.is_over
    }
}

/// How a row is filed.
#[derive(Clone, Debug, PartialEq)]
pub struct Placement {
    /// The access pattern, with `ANY` for variables.
    pub access: Key,
    /// The pattern that is checked next.
    pub second: Option<Key>,
    /// The estimated share of publications that have the access pattern.
    pub frequency: f64,
    /// In how many of the sampled publications it was, and how many these are; later ones count
    /// more.
    pub met: (u32, u32),
    /// How many rows are filed under it.
    pub postings: usize,
    /// How many rows have the same program.
    pub alike: usize,
}

/// A row in a posting list, and the tag of its second pattern (0: none).
#[derive(Clone, Copy)]
struct Entry {
    row: Row,
    second: Tag,
}

/// A posting list: its only entry, or the number of the list.
struct Posting {
    tag: Tag,
    entry: Entry,
}

/// Posting lists by the tags of access patterns.
#[derive(Default)]
struct Postings {
    table: HashTable<Posting>,
    lists: Vec<Vec<Entry>>,
    free: Vec<u32>,
}

fn hash(tag: Tag) -> u64 {
    u64::from(tag.rotate_right(3)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Postings {
    #[inline]
    fn get(&self, tag: Tag) -> &[Entry] {
        match self.table.find(hash(tag), |posting| posting.tag == tag) {
            None => &[],
            Some(posting) if posting.entry.row & LIST == 0 => std::slice::from_ref(&posting.entry),
            Some(posting) => &self.lists[(posting.entry.row & !LIST) as usize],
        }
    }

    /// Appends an entry; returns its position.
    fn push(&mut self, tag: Tag, entry: Entry) -> u32 {
        let Some(posting) = self.table.find_mut(hash(tag), |posting| posting.tag == tag) else {
            self.table.insert_unique(hash(tag), Posting { tag, entry }, |one| hash(one.tag));
            return 0;
        };
        if posting.entry.row & LIST == 0 {
            let list = vec![posting.entry, entry];
            let number = self.free.pop().unwrap_or_else(|| {
                self.lists.push(Vec::new());
                (self.lists.len() - 1) as u32
            });
            self.lists[number as usize] = list;
            posting.entry = Entry { row: LIST | number, second: 0 };
            return 1;
        }
        let list = &mut self.lists[(posting.entry.row & !LIST) as usize];
        if list.len() == list.capacity() {
            list.reserve_exact(list.len() / 2 + 1);
        }
        list.push(entry);
        (list.len() - 1) as u32
    }

    /// Takes the entry at a position out; returns the row that is there now.
    fn remove(&mut self, tag: Tag, position: usize) -> Option<Row> {
        let Ok(mut found) = self.table.find_entry(hash(tag), |posting| posting.tag == tag) else {
            return None;
        };
        let row = found.get().entry.row;
        if row & LIST == 0 {
            found.remove();
            shrink(&mut self.table, |posting| hash(posting.tag));
            return None;
        }
        let number = row & !LIST;
        let list = &mut self.lists[number as usize];
        list.swap_remove(position);
        let moved = list.get(position).map(|entry| entry.row);
        if let [last] = list[..] {
            found.get_mut().entry = last;
            *list = Vec::new();
            self.free.push(number);
            if self.free.len() == self.lists.len() {
                (self.lists, self.free) = (Vec::new(), Vec::new());
            }
        } else if list.len() < list.capacity() / 4 {
            list.shrink_to(list.len() * 2);
        }
        moved
    }

    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.table.allocation_size()
            + self.lists.capacity() * size_of::<Vec<Entry>>()
            + self.lists.iter().map(|list| list.capacity() * size_of::<Entry>()).sum::<usize>()
            + 4 * self.free.capacity()
    }
}

/// How often publications had access patterns; what is rare is forgotten.
#[derive(Default)]
struct Frequencies {
    samples: u32,
    counts: HashMap<Tag, u32>,
}

impl Frequencies {
    /// Takes over what was sampled.
    fn merge(&mut self, statistics: &mut Statistics) {
        self.samples += statistics.samples;
        for (tag, count) in statistics.counts.drain() {
            *self.counts.entry(tag).or_insert(0) += count;
        }
        statistics.counts.shrink_to(COUNTED / 16);
        (statistics.samples, statistics.publications) = (0, 0);
        while self.samples > HALVED {
            self.samples /= 2;
            self.counts.values_mut().for_each(|count| *count /= 2);
            self.counts.retain(|_, count| *count > 0);
        }
        let mut least = 1;
        while self.counts.len() > COUNTED {
            self.counts.retain(|_, count| *count > least);
            least *= 2;
        }
        self.counts.shrink_to(2 * self.counts.len());
    }

    fn count(&self, tag: Tag) -> u32 {
        self.counts.get(&tag).copied().unwrap_or(0)
    }

    /// The probable share of publications that have an access pattern. With nothing known, it is
    /// guessed by the kind.
    fn estimate(&self, tag: Tag) -> f64 {
        let guess = match (tag & 7, (tag & 7).count_ones()) {
            (0, _) => return 1.0,
            (_, 3) => 1e-6,
            (_, 2) => 1e-3,
            (kind, _) if kind as usize == PREDICATE => 0.3,
            _ => 1e-2,
        };
        (f64::from(self.count(tag)) + TRUST * guess) / (f64::from(self.samples) + TRUST)
    }
}

/// Branches of subscriptions, as rows.
pub struct Patterns {
    rows: Arena<u32>,
    /// Join programs, each once.
    programs: Interner,
    /// Filters other than comparisons, each once, as a snapshot has them.
    filters: Interner,
    postings: Postings,
    /// How many rows have an access pattern of each kind, how many a second pattern, and how many
    /// steps of programs look up each.
    kinds: [[u32; 8]; 3],
    frequencies: Frequencies,
    /// Publications until rows are filed anew, and how often that was done.
    interval: u64,
    turn: usize,
    tagger: Tagger,
    planner: Planner,
    record: Vec<u32>,
}

impl Default for Patterns {
    fn default() -> Self {
        Self {
            rows: Arena::default(),
            programs: Interner::default(),
            filters: Interner::default(),
            postings: Postings::default(),
            kinds: [[0; 8]; 3],
            frequencies: Frequencies::default(),
            interval: OFTEN,
            turn: 0,
            tagger: Tagger::default(),
            planner: Planner::default(),
            record: Vec::new(),
        }
    }
}

impl Patterns {
    /// Takes a branch in, for nobody yet. `None` if it has more than
    /// [`crate::plan::MAX_PATTERNS`] patterns or filters, or memory for 2³² numbers is full.
    pub fn add(&mut self, branch: &Branch) -> Option<Row> {
        if !self.planner.plan(branch) {
            return None;
        }
        let program = self.programs.intern(&self.planner.code)?;
        if self.programs.uses(program) == 1 {
            Program::read(&self.planner.code).kinds().for_each(|kind| self.kinds[2][kind] += 1);
        }
        self.record.clear();
        self.record.extend([NO_OWNER, program, 0, UNFILED]);
        self.record.extend_from_slice(&self.planner.constants);
        let (filters, mut is_full) = (&mut self.filters, false);
        self.record.extend(branch.filters.iter().map(|(_, filter)| match filter {
            Filter::Compare { constant, .. } => *constant,
            other => filters.intern(&to_bytes(other)).unwrap_or_else(|| {
                is_full = true;
                u32::MAX
            }),
        }));
        let row = if is_full { None } else { self.rows.insert(&self.record) };
        let Some(row) = row else {
            let record = std::mem::take(&mut self.record);
            self.release(&record);
            return None;
        };
        let (access, second) = self.choose(row);
        self.file(row, access, second);
        Some(row)
    }

    /// Takes a row out. There must be one of that number.
    pub fn remove(&mut self, row: Row) {
        self.unfile(row);
        if !self.rows.has(row) {
            return;
        }
        let record = self.rows.get(row).to_vec();
        self.release(&record);
        self.rows.remove(row);
    }

    /// Takes away what a row uses.
    fn release(&mut self, record: &[u32]) {
        let number = record[PROGRAM];
        let program = Program::read(self.programs.get(number));
        let numbers = &record[HEADER + program.constants..];
        for (n, &number) in numbers.iter().enumerate() {
            if program.test(n).2.is_none() {
                self.filters.release(number);
            }
        }
        if self.programs.uses(number) == 1 {
            program.kinds().for_each(|kind| self.kinds[2][kind] -= 1);
        }
        self.programs.release(number);
    }

    /// Whose a row is.
    pub fn owner(&self, row: Row) -> u32 {
        self.rows.get(row).get(OWNER).copied().unwrap_or(NO_OWNER)
    }

    /// Says whose a row is.
    pub fn set_owner(&mut self, row: Row, owner: u32) {
        if let Some(old) = self.rows.get_mut(row).get_mut(OWNER) {
            *old = owner;
        }
    }

    /// Writes the rows, and how they are filed. How often publications had access patterns is not
    /// written: their tags are this process's own.
    pub fn save(&self, to: &mut Saver) {
        self.programs.save(to);
        self.filters.save(to);
        self.postings.table.len().save(to);
        self.rows.save(to);
    }

    /// Reads rows that were written, and files them: nobody's yet. Returns those, too, that are in
    /// no posting list.
    pub fn load(
        from: &mut Loader,
        dictionary: &Dictionary,
    ) -> Result<(Self, Vec<Row>), SnapshotError> {
        let mut programs = Interner::load_unused(from, |program| program)?;
        let mut filters = Interner::load_unused(from, |filter| filter)?;
        let mut kinds = <[[u32; 8]; 3]>::default();
        for number in programs.numbers() {
            let code = programs.get(number);
            check(Program::is_sound(code), "a join program")?;
            Program::read(code).kinds().for_each(|kind| kinds[2][kind] += 1);
        }
        for number in filters.numbers() {
            let (filter, mut is_known) = (from_bytes::<Filter>(filters.get(number))?, true);
            filter.each_constant(&mut |&id| is_known &= dictionary.knows(id));
            check(is_known, "a number of no term")?;
        }
        let lists = usize::load(from)?;
        let rows = Arena::load(from)?;
        check(lists <= rows.len(), "more posting lists than rows")?;
        let numbers: Vec<Row> = rows.numbers().collect();
        for &row in &numbers {
            let is_sound = is_sound(rows.get(row), &mut programs, &mut filters, dictionary);
            check(is_sound, "a row")?;
        }
        programs.check_uses()?;
        filters.check_uses()?;
        let mut patterns = Self { rows, programs, filters, kinds, ..Self::default() };
        patterns.postings.table.reserve(lists, |posting| hash(posting.tag));
        // Tags first, then lists: so the processor waits for many lists at once.
        let (mut tags, mut unfiled) = (Vec::with_capacity(numbers.len()), Vec::new());
        for row in numbers {
            patterns.set_owner(row, NO_OWNER);
            if patterns.rows.get(row)[POSITION] == UNFILED {
                unfiled.push(row);
            } else {
                let (access, second) = patterns.filed(row);
                tags.push((row, patterns.tag_of(row, access), patterns.tag_of(row, second)));
            }
        }
        for (row, tag, second) in tags {
            let position = patterns.put(row, tag, second);
            patterns.rows.get_mut(row)[POSITION] = position;
        }
        Ok((patterns, unfiled))
    }

    /// How many rows there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// How many different join programs there are.
    #[cfg(test)]
    pub fn programs(&self) -> usize {
        self.programs.len()
    }

    /// Bytes that are allocated.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let counts = self.frequencies.counts.allocation_size();
        self.rows.bytes()
            + self.programs.bytes()
            + self.filters.bytes()
            + self.postings.bytes()
            + counts
    }

    /// A row's branch, as it was added; nothing if there is no such row.
    pub fn branch(&self, row: Row) -> Branch {
        let Some((program, constants)) = self.row(row) else { return Branch::default() };
        let numbers = &constants[program.constants..];
        let filters = (0..program.filters).filter_map(|n| {
            let (_, variable, operator) = program.test(n);
            let filter = match operator {
                Some(operator) => Filter::Compare { operator, constant: numbers[n] },
                None => from_bytes(self.filters.get(numbers[n])).ok()?,
            };
            Some((variable as u16, filter))
        });
        Branch {
            patterns: program.patterns(constants),
            filters: filters.collect(),
            variables: program.variables as u16,
        }
    }

    #[inline]
    fn program(&self, number: u32) -> Program<'_> {
        Program::read(self.programs.get(number))
    }

    /// A row's program, and its constants with the numbers of its filters behind them.
    #[inline]
    fn row(&self, row: Row) -> Option<(Program<'_>, &[u32])> {
        let record = self.rows.get(row);
        Some((self.program(*record.get(PROGRAM)?), &record[HEADER..]))
    }

    // -- matching -----------------------------------------------------------------------------

    /// The kinds of look-up that a publication has to be prepared for, a bit each.
    pub fn required_kinds(&self) -> u8 {
        let is_needed = |&n: &usize| self.kinds.iter().any(|counts| counts[n] > 0);
        (0..8).filter(is_needed).fold(0, |kinds, kind| kinds | 1 << kind)
    }

    /// Finds the distinct rows whose access pattern and second pattern a publication has. It must
    /// be prepared for [`Patterns::required_kinds`].
    pub fn candidates(&self, graph: &Graph, scratch: &mut Scratch) {
        scratch.candidates.clear();
        scratch.statistics.sees(graph);
        let kinds = self.kinds[0].map(|rows| rows > 0);
        let tags = [0].iter().chain(graph.probes());
        let (mut probes, mut postings) = (0, 0);
        let mut lists: Vec<&[Entry]> = Vec::new();
        for &tag in tags.filter(|&tag| kinds[(tag & 7) as usize]) {
            probes += 1;
            let entries = self.postings.get(tag);
            if !entries.is_empty() {
                lists.push(entries);
            }
        }
        // All look-ups before all lists, so that the processor waits for many of them at once.
        for entries in lists {
            postings += entries.len();
            let has = |entry: &&Entry| entry.second == 0 || graph.has(entry.second);
            scratch.candidates.extend(entries.iter().filter(has).map(|entry| entry.row));
        }
        scratch.counters.probes += probes;
        scratch.counters.postings += postings as u64;
        scratch.counters.candidates += scratch.candidates.len() as u64;
    }

    /// Finds the rows that have a solution, and adds their owners, without order: candidates first,
    /// then joins.
    pub fn find(
        &self,
        graph: &Graph,
        tests: &impl Tests,
        scratch: &mut Scratch,
        owners: &mut Vec<u32>,
    ) {
        self.candidates(graph, scratch);
        let (found, mut records) = (owners.len(), Vec::with_capacity(BATCH));
        for batch in scratch.candidates.chunks(BATCH) {
            records.clear();
            records.extend(batch.iter().map(|&row| self.rows.get(row)));
            // Both ends of a record, and its program, are read one kind after the other, so that
            // the processor waits for many at once.
            let ends = |record: &&[u32]| record[PROGRAM] ^ record[record.len() - 1];
            black_box(records.iter().map(ends).fold(0, |all, end| all ^ end));
            let steps = |record: &&[u32]| self.program(record[PROGRAM]).steps;
            black_box(records.iter().map(steps).sum::<usize>());
            for record in &records {
                if self.exists(record, graph, tests, &mut scratch.stack) {
                    owners.push(record[OWNER]);
                } else if scratch.is_late() {
                    scratch.undecided.push(record[OWNER]);
                }
            }
        }
        scratch.counters.matches += (owners.len() - found) as u64;
    }

    /// Whether a row has a solution.
    pub fn matches(
        &self,
        row: Row,
        graph: &Graph,
        tests: &impl Tests,
        scratch: &mut Scratch,
    ) -> bool {
        let record = self.rows.get(row);
        let found = self.exists(record, graph, tests, &mut scratch.stack);
        scratch.counters.matches += u64::from(found);
        if !found && scratch.is_late() {
            scratch.undecided.push(record[OWNER]);
        }
        found
    }

    /// Whether the row of a record has a solution; stops at the first.
    #[inline]
    fn exists(&self, record: &[u32], graph: &Graph, tests: &impl Tests, stack: &mut Stack) -> bool {
        let mut found = false;
        self.join(record, graph, tests, stack, |_| {
            found = true;
            false
        });
        found
    }

    #[inline]
    fn join(
        &self,
        record: &[u32],
        graph: &Graph,
        tests: &impl Tests,
        stack: &mut Stack,
        on: impl FnMut(&[Id]) -> bool,
    ) {
        let Some((&program, constants)) = record.get(PROGRAM).zip(record.get(HEADER..)) else {
            return;
        };
        let program = self.program(program);
        Join { program, constants, filters: &self.filters, graph, tests }.run(stack, on);
    }

    /// Hands out a row's solutions, the terms of variables by their number, until `on` says false.
    pub fn solutions(
        &self,
        row: Row,
        graph: &Graph,
        tests: &impl Tests,
        scratch: &mut Scratch,
        on: impl FnMut(&[Id]) -> bool,
    ) {
        self.join(self.rows.get(row), graph, tests, &mut scratch.stack, on);
    }

    // -- filing -------------------------------------------------------------------------------

    fn tag(&self, key: Key) -> Tag {
        self.tagger.tag(kind_of(key), key)
    }

    /// The steps whose access patterns are the least and the second least frequent, of two tags.
    fn choose(&self, row: Row) -> (u32, u32) {
        let Some((program, constants)) = self.row(row) else { return (NO_STEP, NO_STEP) };
        let never = (f64::INFINITY, 0, NO_STEP);
        let (mut first, mut second) = (never, never);
        for n in 0..program.steps {
            let tag = self.tag(program.access(n, constants));
            if tag == first.1 || tag == second.1 || tag == 0 {
                continue;
            }
            // Of those that are equally rare, the one with fewer rows.
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

    /// The access pattern of one of a row's steps, as a tag; 0 for none.
    fn tag_of(&self, row: Row, step: u32) -> Tag {
        match self.row(row) {
            Some((program, constants)) if step != NO_STEP => {
                self.tag(program.access(step as usize, constants))
            }
            _ => 0,
        }
    }

    fn file(&mut self, row: Row, access: u32, second: u32) {
        let position = self.put(row, self.tag_of(row, access), self.tag_of(row, second));
        let record = self.rows.get_mut(row);
        record[FILED] = access | second << 16;
        record[POSITION] = position;
    }

    /// Puts a row into a posting list; returns its position.
    fn put(&mut self, row: Row, tag: Tag, second: Tag) -> u32 {
        self.kinds[0][(tag & 7) as usize] += 1;
        self.kinds[1][(second & 7) as usize] += 1;
        self.postings.push(tag, Entry { row, second })
    }

    /// How a row is filed: the steps of its access pattern and of its second pattern.
    fn filed(&self, row: Row) -> (u32, u32) {
        let filed = self.rows.get(row).get(FILED).copied().unwrap_or(u32::MAX);
        (filed & NO_STEP, filed >> 16)
    }

    /// How many rows are filed under the same access pattern as a row.
    pub fn crowd(&self, row: Row) -> usize {
        self.postings.get(self.tag_of(row, self.filed(row).0)).len()
    }

    /// The other rows that are filed under one of a row's patterns, some of each posting list.
    pub fn neighbours(&self, row: Row, some: usize) -> Vec<Row> {
        let Some((program, constants)) = self.row(row) else { return Vec::new() };
        let tags = (0..program.steps).map(|n| self.tag(program.access(n, constants)));
        let entries = tags.flat_map(|tag| self.postings.get(tag).iter().take(some));
        let mut rows: Vec<Row> = entries.map(|entry| entry.row).filter(|&one| one != row).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    }

    /// Takes a row out of its posting list: it is found in another way from now on.
    pub fn unfile(&mut self, row: Row) {
        let (access, second) = self.filed(row);
        let (tag, other) = (self.tag_of(row, access), self.tag_of(row, second));
        let Some(position) = self.rows.get_mut(row).get_mut(POSITION) else { return };
        let position = std::mem::replace(position, UNFILED);
        if position == UNFILED {
            return;
        }
        self.kinds[0][(tag & 7) as usize] -= 1;
        self.kinds[1][(other & 7) as usize] -= 1;
        if let Some(moved) = self.postings.remove(tag, position as usize) {
            self.rows.get_mut(moved)[POSITION] = position;
        }
    }

    /// Whether enough publications were seen for [`Patterns::refile`] to be worth its while.
    pub fn wants_refiling(&self, statistics: &Statistics) -> bool {
        statistics.publications >= self.interval
    }

    /// Learns from the statistics of a thread, which are forgotten, and moves rows from access
    /// patterns that turned out to be frequent. The work is bounded; the time to the next call
    /// doubles when there was little to do. Returns how many rows were moved.
    pub fn refile(&mut self, statistics: &mut Statistics) -> usize {
        self.frequencies.merge(statistics);
        let counts = self.frequencies.counts.iter().map(|(&tag, &count)| (tag, count));
        let cost = |(tag, count): (Tag, u32)| {
            let rows = self.postings.get(tag).len();
            (rows as u64 * u64::from(count), tag, rows)
        };
        let mut hot: Vec<(u64, Tag, usize)> = counts.map(cost).filter(|one| one.0 > 0).collect();
        if hot.len() > REFILED {
            hot.select_nth_unstable_by(REFILED, |a, b| b.cmp(a));
            hot.truncate(REFILED);
        }
        hot.sort_unstable_by(|a, b| b.cmp(a));
        let (mut seen, mut moved) = (0, 0);
        let mut rows: Vec<Row> = Vec::new();
        for (_, tag, length) in hot {
            if seen >= REFILED {
                break;
            }
            let some = length.min(REFILED - seen);
            let begin = if some < length { self.turn.wrapping_mul(REFILED) % length } else { 0 };
            let entries = self.postings.get(tag).iter().cycle().skip(begin).take(some);
            rows.extend(entries.map(|entry| entry.row));
            seen += some;
            moved += rows.drain(..).map(|row| usize::from(self.move_row(row, tag))).sum::<usize>();
        }
        self.turn = self.turn.wrapping_add(1);
        let worth = moved * 16 > seen;
        self.interval = if worth { OFTEN } else { (2 * self.interval).min(SELDOM) };
        moved
    }

    /// Files a row anew if another access pattern is met half as often at most, or if another second
    /// pattern is better than its own.
    fn move_row(&mut self, row: Row, tag: Tag) -> bool {
        let (access, second) = self.choose(row);
        let new = self.tag_of(row, access);
        let is_rarer = 2.0 * self.frequencies.estimate(new) < self.frequencies.estimate(tag);
        let is_better =
            new == tag && self.tag_of(row, second) != self.tag_of(row, self.filed(row).1);
        if is_rarer || is_better {
            self.unfile(row);
            self.file(row, access, second);
        }
        is_rarer
    }

    /// How a row is filed; `None` if there is no such row.
    pub fn placement(&self, row: Row) -> Option<Placement> {
        let (program, constants) = self.row(row)?;
        let (access, second) = self.filed(row);
        let key = |step: u32| (step != NO_STEP).then(|| program.access(step as usize, constants));
        let tag = self.tag_of(row, access);
        Some(Placement {
            access: key(access).unwrap_or([crate::dictionary::ANY; 3]),
            second: key(second),
            frequency: self.frequencies.estimate(tag),
            met: (self.frequencies.count(tag), self.frequencies.samples),
            postings: self.postings.get(tag).len(),
            alike: self.programs.uses(self.rows.get(row)[PROGRAM]) as usize,
        })
    }
}

/// Whether some numbers that were read are a row; it uses what it names from now on.
fn is_sound(
    record: &[u32],
    programs: &mut Interner,
    filters: &mut Interner,
    dictionary: &Dictionary,
) -> bool {
    let [_, program, filed, _, rest @ ..] = record else { return false };
    if !programs.retain(*program) {
        return false;
    }
    let program = Program::read(programs.get(*program));
    let Some((constants, numbers)) = rest.split_at_checked(program.constants) else { return false };
    let is_step = |step: u32| step == NO_STEP || (step as usize) < program.steps;
    numbers.len() == program.filters
        && is_step(filed & NO_STEP)
        && is_step(filed >> 16)
        && constants.iter().all(|&id| dictionary.knows(id))
        && numbers.iter().enumerate().all(|(n, &number)| match program.test(n).2 {
            Some(_) => dictionary.knows(number),
            None => filters.retain(number),
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::{ANY, LOCAL};
    use crate::graph::tests::Random;
    use crate::pattern::{Comparison, Filter, Node, Pattern};
    use std::collections::{BTreeSet, HashMap};

    /// Compares ids as if they were numbers.
    struct ByNumber;

    impl Tests for ByNumber {
        fn holds(&self, filter: &Filter, term: Id) -> bool {
            match filter {
                Filter::Compare { operator: Comparison::Less, constant } => term < *constant,
                Filter::Compare { operator: Comparison::Equal, constant } => term == *constant,
                Filter::Any(any) => any.iter().any(|one| self.holds(one, term)),
                _ => false,
            }
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

    fn graph(triples: &[Key], patterns: &Patterns) -> Graph {
        let mut graph = Graph::default();
        triples.iter().for_each(|&triple| assert!(graph.push(triple)));
        graph.prepare(patterns.required_kinds());
        graph
    }

    fn find(patterns: &Patterns, triples: &[Key]) -> Vec<Row> {
        let mut found = found(patterns, &graph(triples, patterns), &mut Scratch::default());
        found.sort_unstable();
        found
    }

    fn found(patterns: &Patterns, graph: &Graph, scratch: &mut Scratch) -> Vec<Row> {
        let mut found = Vec::new();
        patterns.find(graph, &ByNumber, scratch, &mut found);
        found
    }

    /// Adds a row that is its own owner.
    fn add(patterns: &mut Patterns, branch: &Branch) -> Row {
        let row = patterns.add(branch).unwrap();
        patterns.set_owner(row, row);
        row
    }

    /// All assignments of triples to patterns, one pattern after the other.
    fn naive(branch: &Branch, triples: &[Key], stated: usize) -> BTreeSet<Vec<Id>> {
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
            branch.filters.iter().all(|(v, filter)| ByNumber.holds(filter, s[usize::from(*v)]))
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
            let mut patterns = Patterns::default();
            let branches: Vec<Branch> = (0..20).map(|_| random_branch(&mut random, 6)).collect();
            let rows: Vec<Row> = branches.iter().map(|b| add(&mut patterns, b)).collect();
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
                    patterns.solutions(row, &graph, &ByNumber, &mut scratch, |solution| {
                        found.push(solution.to_vec());
                        true
                    });
                    assert_eq!(found.len(), solutions.len(), "{branch:?} {triples:?}");
                    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), solutions);
                    let matches = patterns.matches(row, &graph, &ByNumber, &mut scratch);
                    assert_eq!(matches, !solutions.is_empty());
                    expected.extend(matches.then_some(row));
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
        let mut patterns = Patterns::default();
        let mut scratch = Scratch::default();
        let mut graph = Graph::default();
        let mut live: HashMap<Row, Branch> = HashMap::new();
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
                let found: BTreeSet<Row> = matches.iter().copied().collect();
                assert_eq!(found.len(), matches.len());
                let holds = |b: &Branch| !naive(b, &graph.triples, graph.stated()).is_empty();
                let expected = live.iter().filter(|(_, b)| holds(b)).map(|(&row, _)| row);
                assert_eq!(found, expected.collect());
            }
            if round % 50 == 0 {
                patterns.refile(&mut scratch.statistics);
                for (&row, branch) in &live {
                    assert_eq!(&patterns.branch(row), branch);
                    assert!(patterns.placement(row).unwrap().postings > 0);
                }
            }
        }
        live.keys().for_each(|&row| patterns.remove(row));
        assert!(patterns.len() == 0 && patterns.programs() == 0 && patterns.required_kinds() == 0);
        assert!(patterns.postings.table.is_empty() && patterns.filters.len() == 0);
    }

    /// A row of eight patterns, some of them chained; its shape is one of many.
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

    /// The triples of a publication that a branch matches, and others up to so many.
    fn publication(branch: &Branch, random: &mut Random, size: usize, graph: &mut Graph) {
        graph.clear();
        for pattern in &branch.patterns {
            graph.push(pattern.map(|node| match node {
                Node::Constant(term) => term,
                Node::Variable(v) => LOCAL + u32::from(v),
            }));
        }
        while graph.triples.len() < size {
            let object = match random.below(3) {
                0 => 1_000 + random.below(10_000),
                1 => LOCAL + random.below(20),
                _ => LOCAL + 100 + random.below(1_000),
            };
            graph.push([LOCAL + random.below(20), random.below(200), object]);
        }
    }

    #[test]
    fn memory_stays_flat() {
        let mut patterns = Patterns::default();
        let mut first = 0;
        for round in 0..20 {
            let mut random = Random(round);
            let rows: Vec<Row> =
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
        let mut patterns = Patterns::default();
        let product = [[V(0), C(1), V(1)], [V(2), C(2), V(3)]];
        let both = add(&mut patterns, &branch(&product));
        let missing = [product[0], product[1], [V(4), C(3), V(4)]];
        add(&mut patterns, &branch(&missing));
        // ?0 and its values are joined twice over before ?0 turns out to have no loop.
        let star = [[V(0), C(1), V(1)], [V(0), C(2), V(2)], [V(0), C(4), V(3)], [V(3), C(4), V(2)]];
        add(&mut patterns, &branch(&star));
        let mut triples: Vec<Key> = (0..2_000).map(|n| [9, 1, 10 + n]).collect();
        triples.extend((0..2_000).map(|n| [9, 2, 5_000 + n]));
        triples.extend([[7, 3, 8], [9, 4, 7]]);
        let started = std::time::Instant::now();
        assert_eq!(find(&patterns, &triples), [both]);
        assert!(started.elapsed().as_millis() < 200);
        let (mut count, mut scratch) = (0, Scratch::default());
        let graph = graph(&triples, &patterns);
        patterns.solutions(both, &graph, &ByNumber, &mut scratch, |_| {
            count += 1;
            count < 3_000
        });
        assert_eq!(count, 3_000);
    }

    #[test]
    fn a_chain_through_a_dense_graph_takes_no_time() {
        let mut patterns = Patterns::default();
        let mut chain: Vec<Pattern> = (0..30).map(|n| [V(n), C(1), V(n + 1)]).collect();
        chain.push([V(30), C(2), V(31)]);
        add(&mut patterns, &branch(&chain));
        chain.push([V(31), C(2), V(0)]);
        add(&mut patterns, &branch(&chain));
        let mut triples: Vec<Key> = (0..400).map(|n| [10 + n / 20, 1, 10 + n % 20]).collect();
        triples.push([5, 2, 6]);
        assert_eq!(find(&patterns, &triples), [0; 0]);
    }

    #[test]
    fn large_branches() {
        let mut patterns = Patterns::default();
        let chain =
            |length: u16| -> Vec<Pattern> { (0..length).map(|n| [V(n), C(1), V(n + 1)]).collect() };
        let row = add(&mut patterns, &branch(&chain(4_096)));
        assert_eq!(patterns.branch(row), branch(&chain(4_096)));
        assert_eq!(patterns.add(&branch(&chain(4_097))), None);
        assert_eq!(patterns.add(&branch(&[[V(20_000), C(1), C(2)]])), None);
        let triples: Vec<Key> = (0..4_096).map(|n| [10 + n, 1, 11 + n]).collect();
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
        let mut patterns = Patterns::default();
        let one = |n: u32| branch(&[[V(0), C(n), C(n + 1)], [V(0), C(3), V(1)]]);
        let rows: Vec<Row> = (0..100).map(|n| add(&mut patterns, &one(10 * n))).collect();
        let other = add(&mut patterns, &branch(&[[V(0), V(1), V(0)]]));
        assert_eq!(patterns.programs(), 2);
        let placement = patterns.placement(rows[4]).unwrap();
        assert_eq!((placement.access, placement.second), ([ANY, 40, 41], Some([ANY, 3, ANY])));
        assert_eq!((placement.alike, placement.postings, placement.met), (100, 1, (0, 0)));
        assert_eq!(patterns.placement(other).unwrap().access, [ANY; 3]);
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
        let mut patterns = Patterns::default();
        let mut random = Random(5);
        // Equally rare by guess; but every publication has the first one.
        let rows: Vec<Row> = (0..2_000)
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
            patterns.unfile(*row);
            patterns.file(*row, access, second);
        }
        let mut scratch = Scratch::default();
        let mut run = |patterns: &mut Patterns, random: &mut Random| {
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
                if patterns.wants_refiling(&scratch.statistics) {
                    moved += patterns.refile(&mut scratch.statistics);
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
        let placement = patterns.placement(rows[0]).unwrap();
        assert!(placement.frequency < 0.1 && placement.access != [ANY, 1, 2]);
        rows.iter().for_each(|&row| patterns.remove(row));
        assert!(patterns.postings.table.is_empty() && patterns.kinds == [[0; 8]; 3]);
    }

    /// Run with `--ignored --nocapture`.
    #[test]
    #[ignore = "takes long; prints times"]
    fn times() {
        let mut random = Random(11);
        for (count, shared) in [(100_000, 1), (1_000_000, 1), (1_000_000, 1_000)] {
            let mut patterns = Patterns::default();
            let all: Vec<Branch> =
                (0..count / shared).map(|_| wide_branch(&mut random, 10_000)).collect();
            let started = std::time::Instant::now();
            // Rows that are alike are far from each other.
            for _ in 0..shared {
                all.iter().for_each(|one| assert!(patterns.add(one).is_some()));
            }
            let some: Vec<&Branch> = all.iter().step_by(all.len() / 1_000).collect();
            println!(
                "{count} rows ({shared} alike): {:.2} µs each, {} bytes each, {} programs",
                started.elapsed().as_secs_f64() * 1e6 / f64::from(count as u32),
                patterns.bytes() / count,
                patterns.programs(),
            );
            let (mut graph, mut scratch) = (Graph::default(), Scratch::default());
            for round in 0..4 {
                let mut times = [Vec::new(), Vec::new(), Vec::new()];
                scratch.counters = Counters::default();
                for one in some.iter().copied() {
                    publication(one, &mut random, 90, &mut graph);
                    let triples = graph.triples.clone();
                    let started = std::time::Instant::now();
                    graph.clear();
                    triples.iter().for_each(|&triple| assert!(graph.push(triple)));
                    graph.prepare(patterns.required_kinds());
                    let built = started.elapsed();
                    found(&patterns, &graph, &mut scratch);
                    let matched = started.elapsed();
                    if patterns.wants_refiling(&scratch.statistics) {
                        patterns.refile(&mut scratch.statistics);
                    }
                    let refiled = started.elapsed() - matched;
                    let own = [built, matched - built, refiled];
                    times.iter_mut().zip(own).for_each(|(all, time)| all.push(time));
                }
                times.iter_mut().for_each(|all| all.sort_unstable());
                println!(
                    "  {round}: median build {:?}, match {:?}; longest refiling {:?}; {:?}",
                    times[0][some.len() / 2],
                    times[1][some.len() / 2],
                    times[2].last().unwrap(),
                    scratch.counters
                );
            }
        }
    }
}
