//! Predicate tables: subscriptions that are conjunctions around one subject.
//!
//! Such a branch (`?s :p ?x . ?s :q :C . FILTER(?x > 5)`) tests some properties of one subject, each
//! separately: the property has a value, one of some terms, or a value in an interval. The rows of a
//! table test nearly the same properties in the same way. These tests are the table's columns. Rows
//! are in blocks ([`block`]), which have sets of rows for each column:
//!
//! 1. *And.* The sets of the columns are intersected as bitmaps: all columns in a part of 512 rows,
//!    the smallest set first, until no rows are left, then in the next part.
//! 2. *Check.* The constants of candidates are compared with windows of ids, side by side. Terms
//!    need no check, because each has a set of its own.
//! 3. *Verify.* If windows cannot decide, and for other filters (of strings, for example), filters
//!    are evaluated.
//!
//! Rows are added to the last block of a table. A block is made again when it has twice as many
//! rows, to choose its cells again. When half of its rows were removed, the others are added again.
//!
//! Matching 1,000,000 rows of ten ranges over short numbers, of which 1 % match, reads 156,250 words
//! and compares some 13,000 rows. A row takes about 120 bytes. Its branch is not stored, but made
//! from the shape and the constants.

mod block;
mod conjunction;

pub use block::TableScratch;

use crate::branch::Branch;
use crate::dictionary::{Dictionary, Id, inline};
use crate::filter::FilterEvaluator;
use crate::triples::Triple;
use crate::values::SortKey;
use block::{Block, Keys, MAX_ROWS, Point, RegisteredShape, key_of};
use conjunction::{ColumnTest, ConjunctionShape, MAX_COLUMNS, TableColumn, TestKind};
use hashbrown::{HashMap, HashSet};
use slab::Slab;
use std::hint::black_box;

/// Maximum number of blocks in all tables.
const MAX_BLOCKS: usize = (1 << 16) - 1;
/// The place of a row that is in no table.
const NOWHERE: u32 = u32::MAX;

/// Rows with nearly the same tests.
#[derive(Default)]
struct Table {
    columns: Vec<TableColumn>,
    /// Number of rows that use each column.
    used: Vec<usize>,
    rows: usize,
    /// The blocks, the oldest first. New rows go to the last one.
    blocks: Vec<usize>,
}

impl Table {
    /// Whether subjects with a predicate are looked up in the table. If all rows have some
    /// predicates, only the one with the largest id counts, because it is probably the rarest.
    fn is_found_by(&self, predicate: Id) -> bool {
        let columns = self.columns.iter().zip(&self.used);
        let of_all = columns.filter(|&(_, used)| *used == self.rows);
        let home = of_all.map(|(column, _)| column.predicate).max();
        home.is_none_or(|home| home == predicate)
    }
}

/// All predicate tables.
#[derive(Default)]
pub struct Tables {
    tables: Slab<Table>,
    blocks: Slab<Block>,
    shapes: Slab<RegisteredShape>,
    by_shape: HashMap<ConjunctionShape, usize>,
    /// The tables with columns of a predicate.
    by_predicate: HashMap<Id, Vec<usize>>,
    /// The keys of constants that are not their own ids.
    keys: Keys,
    /// The block of each row, and its place there.
    places: Vec<u32>,
}

impl Tables {
    /// Whether a table has all columns of a branch.
    pub fn wants(&self, branch: &Branch, dictionary: &Dictionary) -> bool {
        let Some((shape, _)) = ConjunctionShape::of(branch, dictionary) else { return false };
        self.by_shape.contains_key(&shape) || {
            let tests = shape.tests();
            let has =
                |table: usize, one: &ColumnTest| self.tables[table].columns.contains(&one.column);
            self.table_for(&tests).is_some_and(|table| tests.iter().all(|one| has(table, one)))
        }
    }

    /// Adds a row; returns whether that was possible. Rows are numbered densely. The caller keeps the
    /// branch's terms in the dictionary until the row is removed.
    pub fn add(&mut self, branch: &Branch, row: u32, dictionary: &Dictionary) -> bool {
        let Some((shape, constants)) = ConjunctionShape::of(branch, dictionary) else {
            return false;
        };
        let has_room = self.blocks.len() < MAX_BLOCKS && row != NOWHERE;
        if !has_room || self.place(row).is_some() {
            return false;
        }
        let known = self.by_shape.get(&shape).copied();
        let number = known.unwrap_or_else(|| self.new_shape(shape));
        let shape = &mut self.shapes[number];
        for slot in shape.shape.ordered() {
            let id = constants[slot];
            if !inline::is_inline(id) {
                self.keys.insert(id, SortKey::of_term(id, dictionary));
            }
        }
        shape.rows += 1;
        let table = &mut self.tables[shape.table];
        table.rows += 1;
        shape.tests.iter().for_each(|&(column, _)| table.used[column] += 1);
        if self.places.len() <= row as usize {
            self.places.resize(row as usize + 1, NOWHERE);
        }
        self.push(number, &constants, row);
        true
    }

    /// Adds a row to the last block of its table.
    fn push(&mut self, number: usize, constants: &[Id], row: u32) {
        let shape = &self.shapes[number];
        let table = &mut self.tables[shape.table];
        let open = table.blocks.last().copied();
        let handle = open.filter(|&last| self.blocks[last].rows.len() < MAX_ROWS);
        let handle = handle.unwrap_or_else(|| {
            table.blocks.push(self.blocks.insert(Block::default()));
            table.blocks[table.blocks.len() - 1]
        });
        let block = &mut self.blocks[handle];
        self.places[row as usize] = (handle << 16 | block.rows.len()) as u32;
        block.push(row, (number as u32, shape), constants, &table.columns, &self.keys);
        if block.is_outgrown() {
            let table = shape.table;
            self.rebuild(table, handle, true);
        }
    }

    /// Takes a block out of a table and adds its rows again: to a block with new cuts, or to the
    /// last one of the others.
    fn rebuild(&mut self, number: usize, handle: usize, with_cuts: bool) {
        let old = self.blocks.remove(handle);
        let table = &mut self.tables[number];
        table.blocks.retain(|&one| one != handle);
        if with_cuts {
            let new = Block::for_rows_of(&old, &table.columns, &self.shapes, &self.keys);
            table.blocks.push(self.blocks.insert(new));
        }
        for at in old.alive() {
            self.push(old.shape(at) as usize, old.constants(at), old.rows[at]);
        }
    }

    /// The branch of a row.
    pub fn branch(&self, row: u32) -> Option<Branch> {
        let (block, at) = self.place(row)?;
        let block = &self.blocks[block];
        let shape = &self.shapes[block.shape(at) as usize];
        Some(shape.shape.branch(block.constants(at)))
    }

    /// Removes a row; returns whether it was here.
    pub fn remove(&mut self, row: u32) -> bool {
        let Some((handle, at)) = self.place(row) else { return false };
        self.places[row as usize] = NOWHERE;
        let block = &mut self.blocks[handle];
        let is_sparse = block.remove(at);
        let number = block.shape(at) as usize;
        let shape = &mut self.shapes[number];
        let table_number = shape.table;
        let table = &mut self.tables[table_number];
        shape.rows -= 1;
        table.rows -= 1;
        shape.tests.iter().for_each(|&(column, _)| table.used[column] -= 1);
        let is_last = shape.rows == 0;
        if is_sparse {
            self.rebuild(table_number, handle, false);
        }
        if is_last {
            let shape = self.shapes.remove(number);
            self.by_shape.remove(&shape.shape);
        }
        if self.tables[table_number].rows == 0 {
            self.drop_table(table_number);
        }
        true
    }

    /// The block of a row, and its place there.
    fn place(&self, row: u32) -> Option<(usize, usize)> {
        let place = self.places.get(row as usize).copied().filter(|&place| place != NOWHERE)?;
        Some(((place >> 16) as usize, (place & 0xffff) as usize))
    }

    /// The table for rows with some tests: the one that has most of their columns, if these are at
    /// least half of all, or if it has all and they are an eighth of its own.
    fn table_for(&self, tests: &[ColumnTest]) -> Option<usize> {
        let predicates: HashSet<Id> = tests.iter().map(|one| one.column.predicate).collect();
        let near = predicates.iter().filter_map(|one| self.by_predicate.get(one)).flatten();
        let shared = |&table: &usize| {
            let columns = &self.tables[table].columns;
            let shared = tests.iter().filter(|one| columns.contains(&one.column)).count();
            let all = columns.len() + tests.len() - shared;
            let is_near = 2 * shared >= all || shared == tests.len() && 8 * shared >= all;
            (all <= MAX_COLUMNS && is_near).then_some((shared, usize::MAX - table))
        };
        near.filter_map(shared).max().map(|(_, table)| usize::MAX - table)
    }

    /// Finds or makes the table of a new shape, and adds the columns that it lacks.
    fn new_shape(&mut self, shape: ConjunctionShape) -> usize {
        let tests = shape.tests();
        let number = self.table_for(&tests).unwrap_or_else(|| self.tables.insert(Table::default()));
        let table = &mut self.tables[number];
        let mut column_of = |one: &ColumnTest| {
            let at = table.columns.iter().position(|column| *column == one.column);
            at.unwrap_or_else(|| {
                let tables = self.by_predicate.entry(one.column.predicate).or_default();
                if !tables.contains(&number) {
                    tables.push(number);
                }
                table.columns.push(one.column);
                table.used.push(0);
                table.columns.len() - 1
            })
        };
        let tests: Vec<(usize, ColumnTest)> =
            tests.into_iter().map(|one| (column_of(&one), one)).collect();
        let is_inexact =
            |one: &ColumnTest| one.has_other_filters || one.bounds.iter().any(Option::is_some);
        let needs_check = tests.iter().any(|(_, one)| is_inexact(one));
        let registered =
            RegisteredShape { shape: shape.clone(), table: number, tests, rows: 0, needs_check };
        let registered = self.shapes.insert(registered);
        self.by_shape.insert(shape, registered);
        registered
    }

    fn drop_table(&mut self, number: usize) {
        let table = self.tables.remove(number);
        for block in table.blocks {
            self.blocks.remove(block);
        }
        for column in table.columns {
            if let Some(tables) = self.by_predicate.get_mut(&column.predicate) {
                tables.retain(|&one| one != number);
                if tables.is_empty() {
                    self.by_predicate.remove(&column.predicate);
                }
            }
        }
    }

    /// Finds the rows that have a solution in a publication, once for each subject. The triples are
    /// distinct.
    pub fn find(
        &self,
        triples: &[Triple],
        evaluator: &FilterEvaluator,
        scratch: &mut TableScratch,
    ) {
        scratch.found.clear();
        let of_interest = triples.iter().filter(|&&[_, p, _]| self.by_predicate.contains_key(&p));
        let keyed = |&[s, p, o]: &[Id; 3]| ([s, p, o], evaluator.key(o));
        let mut triples: Vec<([Id; 3], SortKey)> = of_interest.map(keyed).collect();
        triples.sort_unstable_by_key(|one| one.0);
        let mut found = Vec::new();
        for subject in triples.chunk_by(|one, other| one.0[0] == other.0[0]) {
            for same in subject.chunk_by(|one, other| one.0[1] == other.0[1]) {
                let predicate = same[0].0[1];
                let tables = self.by_predicate.get(&predicate).into_iter().flatten();
                found.extend(tables.filter(|&&one| self.tables[one].is_found_by(predicate)));
            }
            found.sort_unstable();
            found.dedup();
            for table in found.drain(..) {
                let table = &self.tables[table];
                if gather(table, subject, scratch) {
                    for &block in &table.blocks {
                        self.find_block(&self.blocks[block], evaluator, scratch);
                    }
                }
            }
        }
    }

    /// Appends the rows of a block that the points of a subject match.
    fn find_block(&self, block: &Block, evaluator: &FilterEvaluator, scratch: &mut TableScratch) {
        block.candidates(scratch);
        let TableScratch { found, candidates, windows, points, spans, .. } = scratch;
        if !block.needs_check {
            return found.extend(candidates.iter().map(|&row| block.rows[row as usize]));
        }
        let mut last = None;
        for batch in candidates.chunks(32) {
            // The rows are far from each other. This lets the processor read them at once.
            let touched = batch.iter().fold(0, |touched, &row| {
                let constants = block.constants(row as usize);
                let ends = constants.first().zip(constants.last());
                let ends = ends.map_or(0, |(first, last)| first ^ last);
                touched ^ ends ^ block.rows[row as usize]
            });
            black_box(touched);
            for &row in batch {
                let row = row as usize;
                let (constants, number) = (block.constants(row), block.shape(row));
                let shape = &self.shapes[number as usize];
                if last.replace(number) != Some(number) {
                    block.find_windows(shape, points, spans, windows);
                }
                let is_met = || {
                    shape.tests.iter().all(|&(column, ref one)| {
                        let mut points = points[spans[column].clone()].iter();
                        points.any(|point| self.is_met(one, point, constants, evaluator))
                    })
                };
                if windows.decide(constants).unwrap_or_else(is_met) {
                    found.push(block.rows[row]);
                }
            }
        }
    }

    /// Whether a value passes the test of a row.
    fn is_met(
        &self,
        one: &ColumnTest,
        point: &Point,
        constants: &[Id],
        evaluator: &FilterEvaluator,
    ) -> bool {
        let constant = |slot: &u32| constants[*slot as usize];
        if one.column.test == TestKind::Term
            && one.terms.iter().all(|slot| constant(slot) != point.id)
        {
            return false;
        }
        let mut is_sure = !one.has_other_filters;
        for (at, end) in one.bounds.iter().enumerate() {
            let Some((slot, _)) = end else { continue };
            let key = key_of(constant(slot), &self.keys);
            let (below, above) = (point.high < key.low, point.low > key.high);
            let (outside, inside) = if at == 0 { (below, above) } else { (above, below) };
            if outside {
                return false;
            }
            is_sure &= inside;
        }
        is_sure
            || one.filters.iter().all(|filter| evaluator.holds_with(filter, &constant, point.id))
    }
}

/// Finds the values of a subject, by its sorted triples with the keys of their objects, for each
/// column of a table. Returns whether it has values for all columns that all rows use.
fn gather(table: &Table, own: &[([Id; 3], SortKey)], scratch: &mut TableScratch) -> bool {
    let TableScratch { points, spans, .. } = scratch;
    points.clear();
    spans.clear();
    for (column, &used) in table.columns.iter().zip(&table.used) {
        let begin = own.partition_point(|one| one.0[1] < column.predicate);
        let first = points.len();
        for &([_, _, id], key) in own[begin..].iter().take_while(|one| one.0[1] == column.predicate)
        {
            let place = match column.test {
                TestKind::Interval(class) => (key.class == class).then_some((key.low, key.high)),
                TestKind::Present | TestKind::Term => Some((0.0, 0.0)),
            };
            points.extend(place.map(|(low, high)| Point { id, low, high }));
        }
        if points.len() == first && used == table.rows {
            return false;
        }
        spans.push(first..points.len());
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::branch::*;
    use crate::dictionary::{LocalTerms, Terms};
    use crate::filter::Memo;
    use std::cell::RefCell;

    impl Tables {
        /// The number of rows.
        pub fn len(&self) -> usize {
            self.tables.iter().map(|(_, table)| table.rows).sum()
        }

        /// The approximate number of bytes of the rows.
        pub fn bytes(&self) -> usize {
            let blocks: usize = self.blocks.iter().map(|(_, block)| block.bytes()).sum();
            blocks + self.keys.capacity() * size_of::<(Id, SortKey)>() + 4 * self.places.len()
        }
    }

    /// Numbers that look random.
    struct Random(u64);

    impl Random {
        fn below(&mut self, end: u64) -> u64 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (self.0 >> 33) % end
        }

        fn one<'a, T>(&mut self, all: &'a [T]) -> &'a T {
            &all[self.below(all.len() as u64) as usize]
        }
    }

    const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

    /// A literal near others, of a kind that has an order mostly.
    fn literal(random: &mut Random, kind: u64) -> String {
        let n = random.below(24) as i64 - 8;
        match kind {
            0..=2 => format!("\"{n}\"^^<{XSD}integer>"),
            3 => format!("\"{}.{}\"^^<{XSD}decimal>", n.abs(), random.below(10)),
            4 => format!("\"{}\"^^<{XSD}double>", n as f64 / 4.0),
            5 => format!("\"{}\"^^<{XSD}float>", n as f32 / 10.0),
            6 => format!("\"{}\"^^<{XSD}integer>", n + (1 << 54)),
            7 => format!("\"0{}.5001\"^^<{XSD}decimal>", n.abs()),
            8 => format!("\"2020-01-{:02}\"^^<{XSD}date>", n.abs() + 1),
            9 => format!("\"2020-01-{:02}Z\"^^<{XSD}date>", n.abs() + 1),
            10 => format!("\"2020-01-02T{:02}:00:00\"^^<{XSD}dateTime>", n.abs()),
            11 => format!("\"2020-01-02T{:02}:00:00+01:00\"^^<{XSD}dateTime>", n.abs()),
            12 => format!("\"text {n}\""),
            13 => format!("\"text {n}\"@en"),
            14 => format!("<urn:c{n}>"),
            15 => format!("\"NaN\"^^<{XSD}double>"),
            16 => format!("\"P{}D\"^^<{XSD}duration>", n.abs()),
            _ => format!("\"{n}\"^^<urn:t>"),
        }
    }

    struct World {
        dictionary: Dictionary,
        predicates: Vec<Id>,
    }

    impl World {
        fn new() -> Self {
            let mut dictionary = Dictionary::default();
            let predicates = (0..6).map(|n| dictionary.intern(format!("<urn:p{n}>").as_bytes()));
            let predicates = predicates.collect();
            Self { dictionary, predicates }
        }

        fn constant(&mut self, random: &mut Random, kind: u64) -> Id {
            let text = literal(random, kind);
            self.dictionary.intern(text.as_bytes())
        }

        fn filter(&mut self, shape: &mut Random, random: &mut Random, kind: u64) -> Filter {
            match shape.below(12) {
                0 => Filter::Any(
                    (0..shape.below(4))
                        .map(|_| Filter::Compare {
                            operator: Comparison::Equal,
                            constant: self.constant(random, 14),
                        })
                        .collect(),
                ),
                1 => Filter::Text {
                    operator: *shape.one(&[TextOperator::Contains, TextOperator::Equals]),
                    view: *shape.one(&[TermPart::Term, TermPart::Str]),
                    folding: Folding::None,
                    argument: self.constant(random, 12),
                },
                2 => Filter::Any(Box::new([
                    self.filter_of(shape, random, kind),
                    self.filter_of(shape, random, 12),
                ])),
                _ => self.filter_of(shape, random, kind),
            }
        }

        fn filter_of(&mut self, shape: &mut Random, random: &mut Random, kind: u64) -> Filter {
            Filter::Compare {
                operator: *shape.one(Comparison::ALL),
                constant: self.constant(random, kind),
            }
        }

        /// A branch whose shape depends on one random number, and whose constants on another.
        fn branch(&mut self, shape: &mut Random, random: &mut Random) -> Branch {
            let mut branch = Branch { variables: 1, ..Branch::default() };
            for _ in 0..1 + shape.below(4) {
                let predicate = Node::Constant(*shape.one(&self.predicates));
                if shape.below(4) == 0 {
                    let kind = *shape.one(&[0, 12, 14, 14]);
                    let object = Node::Constant(self.constant(random, kind));
                    let pattern = [Node::Variable(0), predicate, object];
                    if !branch.patterns.contains(&pattern) {
                        branch.patterns.push(pattern);
                    }
                    continue;
                }
                let variable = branch.variables;
                branch.variables += 1;
                branch.patterns.push([Node::Variable(0), predicate, Node::Variable(variable)]);
                let kind = shape.below(18);
                for _ in 0..shape.below(4) {
                    branch.filters.push((variable, self.filter(shape, random, kind)));
                }
            }
            branch
        }

        fn publication(&self, random: &mut Random, local: &mut LocalTerms) -> Vec<[Id; 3]> {
            let mut id = |text: &str| {
                let hash = crate::dictionary::hash(text.as_bytes());
                let known = self.dictionary.get_hashed(text.as_bytes(), hash);
                known.unwrap_or_else(|| local.intern_hashed(text.as_bytes(), hash))
            };
            let subjects: Vec<Id> =
                (0..1 + random.below(3)).map(|n| id(&format!("_:s{n}"))).collect();
            let other = id("<urn:other>");
            (0..4 + random.below(20))
                .map(|_| {
                    let kind = random.below(18);
                    let object = id(&literal(random, kind));
                    let predicate =
                        if random.below(10) == 0 { other } else { *random.one(&self.predicates) };
                    [*random.one(&subjects), predicate, object]
                })
                .collect()
        }
    }

    fn is_met(branch: &Branch, triples: &[[Id; 3]], evaluator: &FilterEvaluator) -> bool {
        let mut subjects: Vec<Id> = triples.iter().map(|triple| triple[0]).collect();
        subjects.dedup();
        subjects.iter().any(|&subject| {
            branch.patterns.iter().all(|[_, predicate, object]| {
                let fits = |object_: Id| match object {
                    Node::Constant(id) => object_ == *id,
                    Node::Variable(variable) => {
                        let mut own =
                            branch.filters.iter().filter(|(tested, _)| tested == variable);
                        own.all(|(_, filter)| evaluator.holds(filter, object_))
                    }
                };
                triples
                    .iter()
                    .any(|&[s, p, o]| s == subject && Node::Constant(p) == *predicate && fits(o))
            })
        })
    }

    fn compare_with_naive(
        tables: &Tables,
        branches: &[Option<Branch>],
        world: &World,
        random: &mut Random,
        scratch: &mut TableScratch,
        rounds: usize,
    ) -> usize {
        let mut found = 0;
        let mut local = LocalTerms::default();
        for _ in 0..rounds {
            local.clear();
            let triples = world.publication(random, &mut local);
            let memo = RefCell::new(Memo::default());
            let terms = Terms { dictionary: &world.dictionary, local: &local };
            let evaluator = FilterEvaluator { terms, memo: &memo, isa: &|_, _, _| false };
            let mut rows = Vec::new();
            tables.find(&triples, &evaluator, scratch);
            rows.clone_from(&scratch.found);
            rows.sort_unstable();
            rows.dedup();
            let wanted: Vec<u32> = (0..branches.len() as u32)
                .filter(|&row| {
                    let branch = branches[row as usize].as_ref();
                    branch.is_some_and(|branch| is_met(branch, &triples, &evaluator))
                })
                .collect();
            assert_eq!(rows, wanted);
            found += rows.len();
        }
        found
    }

    #[test]
    fn rows_are_those_of_a_naive_scan() {
        let mut random = Random(7);
        let mut world = World::new();
        let mut tables = Tables::default();
        let mut scratch = TableScratch::default();
        let mut branches: Vec<Option<Branch>> = Vec::new();
        let mut found = 0;
        for round in 0..4 {
            for _ in 0..1500 {
                // Some shapes have many rows, others few.
                let shape = if random.below(3) > 0 { random.below(6) } else { random.below(4000) };
                let branch = world.branch(&mut Random(shape), &mut random);
                let row = branches.len() as u32;
                assert!(tables.add(&branch, row, &world.dictionary));
                assert!(tables.wants(&branch, &world.dictionary));
                assert!(!tables.add(&branch, row, &world.dictionary));
                branches.push(Some(branch));
            }
            found += compare_with_naive(&tables, &branches, &world, &mut random, &mut scratch, 12);
            for (row, branch) in branches.iter_mut().enumerate() {
                assert_eq!(tables.branch(row as u32), *branch);
                if random.below(3) == 0 || round == 2 {
                    assert_eq!(tables.remove(row as u32), branch.is_some());
                    *branch = None;
                }
            }
            assert_eq!(tables.len(), branches.iter().flatten().count());
            compare_with_naive(&tables, &branches, &world, &mut random, &mut scratch, 6);
        }
        assert!(found > 1000, "{found}");
        for row in 0..branches.len() as u32 {
            tables.remove(row);
        }
        assert!(tables.tables.is_empty() && tables.by_shape.is_empty());
        assert!(tables.blocks.is_empty() && tables.by_predicate.is_empty());
    }

    fn range(world: &mut World, column: usize, low: &str, high: &str, closed: bool) -> Branch {
        let variable = column as u16 + 1;
        let [low, high] = [low, high].map(|text| world.dictionary.intern(text.as_bytes()));
        let (above, below) = if closed {
            (Comparison::GreaterOrEqual, Comparison::LessOrEqual)
        } else {
            (Comparison::Greater, Comparison::Less)
        };
        Branch {
            patterns: vec![[
                Node::Variable(0),
                Node::Constant(world.predicates[column]),
                Node::Variable(variable),
            ]],
            filters: vec![
                (variable, Filter::Compare { operator: above, constant: low }),
                (variable, Filter::Compare { operator: below, constant: high }),
            ],
            variables: variable + 1,
        }
    }

    #[test]
    fn large_blocks_of_all_scales_are_exact() {
        let mut random = Random(3);
        let mut world = World::new();
        let mut tables = Tables::default();
        let mut branches = Vec::new();
        let texts = |random: &mut Random, kind| {
            let n = random.below(1 << 20);
            match kind {
                0 => format!("\"{n}\"^^<{XSD}integer>"),
                1 => format!("\"{}\"^^<{XSD}double>", (n as f64).exp2().min(1e300) * n as f64),
                2 => format!("\"{}\"^^<{XSD}float>", n as f32 / 1e6),
                3 => format!("\"{}.{:04}\"^^<{XSD}decimal>", n / 9999, 1 + n % 9999),
                4 => format!("\"20{:02}-{:02}-01\"^^<{XSD}date>", n % 100, n % 12 + 1),
                _ => format!("\"{}.{}\"^^<{XSD}decimal>", n / 10, n % 10),
            }
        };
        for row in 0..18_000 {
            let kind = row as usize % 6;
            let [low, high] = [texts(&mut random, kind), texts(&mut random, kind)];
            let closed = random.below(2) == 0;
            let branch = range(&mut world, kind, &low, &high, closed);
            assert!(tables.add(&branch, row, &world.dictionary));
            branches.push(branch);
        }
        let mut scratch = TableScratch::default();
        let mut found = 0;
        for round in 0..24 {
            let mut local = LocalTerms::default();
            let mut triples = Vec::new();
            for kind in 0..6 {
                for _ in 0..1 + round % 2 {
                    // values that are bounds, and values that are not
                    let given = if random.below(2) == 0 { kind } else { random.below(6) as usize };
                    let text = texts(&mut random, given);
                    let hash = crate::dictionary::hash(text.as_bytes());
                    let known = world.dictionary.get_hashed(text.as_bytes(), hash);
                    let id = known.unwrap_or_else(|| local.intern_hashed(text.as_bytes(), hash));
                    triples.push([0, world.predicates[kind], id]);
                }
                if round % 3 == 0 {
                    let row = random.below(18_000) as usize / 6 * 6 + kind;
                    if let Filter::Compare { constant, .. } = branches[row].filters[0].1 {
                        triples.push([0, world.predicates[kind], constant]);
                    }
                }
            }
            let memo = RefCell::new(Memo::default());
            let terms = Terms { dictionary: &world.dictionary, local: &local };
            let evaluator = FilterEvaluator { terms, memo: &memo, isa: &|_, _, _| false };
            let mut rows = Vec::new();
            tables.find(&triples, &evaluator, &mut scratch);
            rows.clone_from(&scratch.found);
            rows.sort_unstable();
            let all = 0..branches.len() as u32;
            let met = |&row: &u32| is_met(&branches[row as usize], &triples, &evaluator);
            let wanted: Vec<u32> = all.filter(met).collect();
            assert_eq!(rows, wanted);
            found += rows.len();
        }
        assert!(found > 24 * 1000);
        for (row, branch) in branches.iter().enumerate() {
            assert_eq!(tables.branch(row as u32).as_ref(), Some(branch));
        }
    }

    #[test]
    fn memory_is_flat_under_churn() {
        let mut random = Random(5);
        let mut world = World::new();
        let mut tables = Tables::default();
        let mut most = 0;
        for row in 0..40_000u32 {
            let n = random.below(1000);
            let [low, high] = [n, n + 10].map(|n| format!("\"{n}\"^^<{XSD}integer>"));
            let branch = range(&mut world, row as usize % 2, &low, &high, true);
            assert!(tables.add(&branch, row % 4000, &world.dictionary));
            if row >= 1999 {
                assert!(tables.remove((row - 1999) % 4000));
            }
            if row == 10_000 {
                most = tables.bytes();
            }
        }
        assert_eq!(tables.len(), 1999);
        assert!(tables.bytes() < 3 * most, "{} {most}", tables.bytes());
        assert!(tables.blocks.len() < 40, "{}", tables.blocks.len());
    }
}
