//! Predicate tables: subscriptions that are conjunctions around one subject.
//!
//! Such a branch (`?s :p ?x . ?s :q :C . FILTER(?x > 5)`) constrains some properties of one
//! subject, each on its own: it wants a property to be there, to have one of some terms, or a
//! value in an interval. Rows of a table constrain much the same properties in the same way, its
//! columns; a publication's subject is a point. Rows are held in blocks ([`crate::block`]), in
//! which each column says by bitmaps which rows a point may meet:
//!
//! 1. *Choose.* The number of rows that each column leaves is known before a bitmap is read. If a
//!    posting list is short, its rows are the candidates.
//! 2. *And.* Otherwise one bitmap after the other is intersected, the most selective first, over
//!    whole blocks while many words have rows and word by word after that.
//! 3. *Check.* Candidates are compared by codes of their bounds, all of a row side by side.
//! 4. *Verify.* Where codes cannot decide, and for other tests (of text, say), filters are
//!    evaluated.
//!
//! The last rows of a table, 256 at most, are not built, and are checked one by one. Then they
//! become a block, together with the blocks before them that are not larger, so a row is built into
//! a block a logarithmic number of times (Bentley and Saxe 1980). Removed rows are marked, and go
//! when they are half of a block.
//!
//! Cost, for 1,000,000 rows of ten ranges over short numbers, of which 1 % match: 156,250 words
//! and some 13,000 rows compared; about 120 bytes a row. A row is stored here only: its branch is
//! made again from its template and its constants.

pub use crate::block::TableScratch;
use crate::block::{Block, Known, MOST_ROWS, Orders, Point, order_of};
use crate::conjunction::{Column, MOST_COLUMNS, Template, Test, Use};
use crate::dictionary::{Dictionary, Id, inline};
use crate::filter::Deciding;
use crate::pattern::Branch;
use crate::text::sort_from;
use crate::values::Order;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use slab::Slab;
use std::hint::black_box;
use std::ops::Range;

/// How many rows wait to be built into a block.
const TAIL: usize = 256;
/// How many blocks there are at most, in all tables.
const MOST_BLOCKS: usize = (1 << 16) - 1;
/// A row that is not here.
const NOWHERE: u32 = u32::MAX;

/// Rows that constrain much the same properties.
#[derive(Default)]
struct Table {
    columns: Vec<Column>,
    /// How many rows use each column.
    used: Vec<usize>,
    rows: usize,
    /// The oldest first; only the last one has rows added to it.
    blocks: Vec<usize>,
    /// The predicates that it is looked up by: one that all rows have, or all.
    homes: Vec<Id>,
}

/// All predicate tables.
#[derive(Default)]
pub struct Tables {
    tables: Slab<Table>,
    blocks: Slab<Block>,
    templates: Slab<Known>,
    by_template: HashMap<Template, usize, RandomState>,
    /// The tables with columns of a predicate.
    by_predicate: HashMap<Id, Vec<usize>, RandomState>,
    /// The tables that are looked up by a predicate.
    by_home: HashMap<Id, Vec<usize>, RandomState>,
    orders: Orders,
    /// Block and place in it, by row.
    places: Vec<u32>,
    rows: usize,
    is_bulk: bool,
}

impl Tables {
    /// How many rows there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many bytes rows take, about.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let blocks: usize = self.blocks.iter().map(|(_, block)| block.bytes()).sum();
        blocks + self.orders.capacity() * size_of::<(Id, Order)>() + 4 * self.places.len()
    }

    /// Whether there is a table already that has all columns of a branch.
    pub fn wants(&self, branch: &Branch, dictionary: &Dictionary) -> bool {
        let Some((template, _)) = Template::of(branch, dictionary) else { return false };
        self.by_template.contains_key(&template) || {
            let uses = template.uses();
            let has = |table: usize, one: &Use| self.tables[table].columns.contains(&one.column);
            self.table_for(&uses).is_some_and(|table| uses.iter().all(|one| has(table, one)))
        }
    }

    /// From now on rows come in bulk: they are built into blocks when these are full.
    pub fn begin_bulk(&mut self) {
        self.is_bulk = true;
    }

    /// Builds the rows that came in bulk.
    pub fn end_bulk(&mut self) {
        self.is_bulk = false;
        let tables: Vec<usize> = self.tables.iter().map(|(table, _)| table).collect();
        tables.into_iter().for_each(|table| self.settle(table));
    }

    /// Adds a row; returns whether that was possible. Rows are numbered densely. The caller keeps the
    /// branch's terms in the dictionary until the row is removed.
    pub fn add(&mut self, branch: &Branch, row: u32, dictionary: &Dictionary) -> bool {
        let Some((template, constants)) = Template::of(branch, dictionary) else { return false };
        let known = self.by_template.get(&template).copied();
        self.has_room(row) && {
            let known = known.unwrap_or_else(|| self.new_template(template));
            self.push(known, &constants, row, dictionary)
        }
    }

    fn has_room(&self, row: u32) -> bool {
        self.place(row).is_none() && self.blocks.len() < MOST_BLOCKS && row != NOWHERE
    }

    fn push(&mut self, known: usize, constants: &[Id], row: u32, dictionary: &Dictionary) -> bool {
        if !self.has_room(row) {
            return false;
        }
        let template = &mut self.templates[known];
        for slot in template.template.ordered() {
            let id = constants[slot];
            if !inline::is_inline(id) {
                self.orders.insert(id, Order::of_term(id, dictionary));
            }
        }
        template.rows += 1;
        let number = template.table;
        let table = &mut self.tables[number];
        table.rows += 1;
        template.uses.iter().for_each(|&(column, _)| table.used[column] += 1);
        self.rows += 1;
        let open = table.blocks.last().copied().filter(|&last| !self.blocks[last].is_built());
        let last = open.unwrap_or_else(|| {
            table.blocks.push(self.blocks.insert(Block::default()));
            table.blocks[table.blocks.len() - 1]
        });
        if self.places.len() <= row as usize {
            self.places.resize(row as usize + 1, NOWHERE);
        }
        let block = &mut self.blocks[last];
        self.places[row as usize] = (last << 16 | block.rows.len()) as u32;
        block.push(row, known as u32, constants);
        if block.rows.len() >= if self.is_bulk { MOST_ROWS } else { TAIL } {
            self.settle(number);
        }
        true
    }

    /// The branch of a row.
    pub fn branch(&self, row: u32) -> Option<Branch> {
        let (block, at) = self.place(row)?;
        let block = &self.blocks[block];
        let known = &self.templates[block.templates[at] as usize];
        let mut constants = Vec::new();
        block.constants(at, known, &mut constants);
        Some(known.template.branch(&constants))
    }

    /// Removes a row; returns whether it was here.
    pub fn remove(&mut self, row: u32) -> bool {
        let Some((handle, at)) = self.place(row) else { return false };
        self.places[row as usize] = NOWHERE;
        self.rows -= 1;
        let block = &mut self.blocks[handle];
        let is_sparse = block.remove(at);
        let template = block.templates[at] as usize;
        let known = &mut self.templates[template];
        let number = known.table;
        let table = &mut self.tables[number];
        known.rows -= 1;
        table.rows -= 1;
        known.uses.iter().for_each(|&(column, _)| table.used[column] -= 1);
        let is_last = known.rows == 0;
        if is_sparse && let Some(at) = table.blocks.iter().position(|&block| block == handle) {
            self.rebuild(number, at..at + 1);
        }
        if is_last {
            let known = self.templates.remove(template);
            self.by_template.remove(&known.template);
        }
        if self.tables[number].rows == 0 {
            self.drop_table(number);
        }
        true
    }

    /// The block of a row, and its place there.
    fn place(&self, row: u32) -> Option<(usize, usize)> {
        let place = self.places.get(row as usize).copied().filter(|&place| place != NOWHERE)?;
        Some(((place >> 16) as usize, (place & 0xffff) as usize))
    }

    /// The table for rows with some columns: the one that has most of them, if its rows have much
    /// in common with them.
    fn table_for(&self, uses: &[Use]) -> Option<usize> {
        let predicates: HashSet<Id, RandomState> =
            uses.iter().map(|one| one.column.predicate).collect();
        let near = predicates.iter().filter_map(|one| self.by_predicate.get(one)).flatten();
        let shared = |&table: &usize| {
            let columns = &self.tables[table].columns;
            let shared = uses.iter().filter(|one| columns.contains(&one.column)).count();
            let all = columns.len() + uses.len() - shared;
            let is_near = 2 * shared >= all || shared == uses.len() && 4 * shared >= all;
            (all <= MOST_COLUMNS && is_near).then_some((shared, usize::MAX - table))
        };
        near.filter_map(shared).max().map(|(_, table)| usize::MAX - table)
    }

    /// Finds or makes the table of a new template, and gives it the columns that it has not.
    fn new_template(&mut self, template: Template) -> usize {
        let uses = template.uses();
        let number = self.table_for(&uses).unwrap_or_else(|| self.tables.insert(Table::default()));
        let table = &mut self.tables[number];
        let mut column_of = |one: &Use| {
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
        let uses: Vec<(usize, Use)> = uses.into_iter().map(|one| (column_of(&one), one)).collect();
        let is_home = |home: &Id| uses.iter().any(|(_, one)| one.column.predicate == *home);
        if !matches!(&table.homes[..], [home] if is_home(home)) {
            self.find_home(number, &uses);
        }
        let rest = uses.iter().any(|(_, one)| one.rest);
        let known = Known { template: template.clone(), table: number, uses, rest, rows: 0 };
        let known = self.templates.insert(known);
        self.by_template.insert(template, known);
        known
    }

    /// Looks a table up by a predicate that all rows have, also those to come, and that few other
    /// tables are looked up by; by all predicates if there is none.
    fn find_home(&mut self, number: usize, uses: &[(usize, Use)]) {
        let table = &mut self.tables[number];
        table.homes.drain(..).for_each(|home| withdraw(&mut self.by_home, home, number));
        let of_all = uses.iter().filter(|(column, _)| table.used[*column] == table.rows);
        let best = of_all
            .map(|(_, one)| one.column.predicate)
            .min_by_key(|predicate| self.by_home.get(predicate).map_or(0, Vec::len));
        match best {
            Some(best) => table.homes.push(best),
            None => table.homes.extend(table.columns.iter().map(|column| column.predicate)),
        }
        table.homes.sort_unstable();
        table.homes.dedup();
        for &home in &table.homes {
            self.by_home.entry(home).or_default().push(number);
        }
    }

    fn drop_table(&mut self, number: usize) {
        let table = self.tables.remove(number);
        for block in table.blocks {
            self.blocks.remove(block);
        }
        for home in table.homes {
            withdraw(&mut self.by_home, home, number);
        }
        for column in table.columns {
            withdraw(&mut self.by_predicate, column.predicate, number);
        }
    }

    /// Makes a block of the last rows of a table, if they are enough, with blocks before them that
    /// are not larger.
    fn settle(&mut self, number: usize) {
        let blocks = &self.tables[number].blocks;
        let Some((last, before)) = blocks.split_last() else { return };
        if self.blocks[*last].is_built() || self.blocks[*last].len() < TAIL {
            return;
        }
        let mut begin = before.len();
        let mut total = self.blocks[*last].len();
        for &block in before.iter().rev() {
            let size = self.blocks[block].len();
            if size > total || total + size > MOST_ROWS {
                break;
            }
            total += size;
            begin -= 1;
        }
        let all = begin..blocks.len();
        self.rebuild(number, all);
    }

    /// Makes one block of the living rows of neighbours, without columns if they are few.
    fn rebuild(&mut self, number: usize, some: Range<usize>) {
        let table = &mut self.tables[number];
        let (mut new, mut constants) = (Block::default(), Vec::new());
        for handle in table.blocks.drain(some.clone()) {
            let block = self.blocks.remove(handle);
            for row in block.alive() {
                let template = block.templates[row];
                block.constants(row, &self.templates[template as usize], &mut constants);
                new.push(block.rows[row], template, &constants);
            }
        }
        if new.len() == 0 {
            return;
        }
        if new.len() >= TAIL {
            new.build(&table.columns, &self.templates, &self.orders);
        }
        let entry = self.blocks.vacant_entry();
        let handle = entry.key();
        for (at, &row) in new.rows.iter().enumerate() {
            self.places[row as usize] = (handle << 16 | at) as u32;
        }
        entry.insert(new);
        table.blocks.insert(some.start, handle);
    }

    /// Appends the rows that have a solution in a publication, each once.
    pub fn find(
        &self,
        triples: &[[Id; 3]],
        deciding: &Deciding,
        scratch: &mut TableScratch,
        out: &mut Vec<u32>,
    ) {
        scratch.triples.clear();
        let of_interest =
            triples.iter().filter(|triple| self.by_predicate.contains_key(&triple[1]));
        scratch.triples.extend(of_interest);
        scratch.triples.sort_unstable();
        scratch.triples.dedup();
        scratch.orders.clear();
        scratch.orders.extend(scratch.triples.iter().map(|triple| deciding.order(triple[2])));
        let first = out.len();
        let mut subjects = 0;
        let mut begin = 0;
        while let Some(&[subject, ..]) = scratch.triples.get(begin) {
            let rest = &scratch.triples[begin..];
            let end = begin + rest.partition_point(|triple| triple[0] == subject);
            let before = out.len();
            self.find_subject(begin..end, deciding, scratch, out);
            subjects += usize::from(out.len() > before);
            begin = end;
        }
        if subjects > 1 {
            sort_from(out, first);
        }
    }

    /// The same for one subject, whose triples are given.
    fn find_subject(
        &self,
        triples: Range<usize>,
        deciding: &Deciding,
        scratch: &mut TableScratch,
        out: &mut Vec<u32>,
    ) {
        let own = &scratch.triples[triples.clone()];
        scratch.asked.clear();
        for same in own.chunk_by(|one, other| one[1] == other[1]) {
            scratch.asked.extend(self.by_home.get(&same[0][1]).into_iter().flatten());
        }
        scratch.asked.sort_unstable();
        scratch.asked.dedup();
        for at in 0..scratch.asked.len() {
            let table = &self.tables[scratch.asked[at]];
            if gather(table, triples.clone(), scratch) {
                for &block in &table.blocks {
                    self.find_block(&self.blocks[block], deciding, scratch, out);
                }
            }
        }
    }

    /// Finds the rows of a block that the points of a subject meet.
    fn find_block(
        &self,
        block: &Block,
        deciding: &Deciding,
        scratch: &mut TableScratch,
        out: &mut Vec<u32>,
    ) {
        let is_decided = block.is_built() && block.candidates(scratch);
        if !block.is_built() {
            scratch.candidates.clear();
            scratch.candidates.extend(block.alive().map(|row| row as u32));
        }
        let TableScratch { candidates, limits, sure, points, spans, constants, .. } = scratch;
        for batch in candidates.chunks(32) {
            // rows lie far from each other: have them brought side by side
            let touched = batch.iter().fold(0, |touched, &row| {
                let codes = block.codes(row as usize);
                let ends = codes.first().zip(codes.last()).map_or(0, |(first, last)| first ^ last);
                touched ^ ends ^ block.rows[row as usize] as i32
            });
            black_box(touched);
            for &row in batch {
                let row = row as usize;
                let codes = block.codes(row);
                if is_above(codes, limits) {
                    continue;
                }
                let known = || &self.templates[block.templates[row] as usize];
                let is_certain =
                    is_decided && !is_above(codes, sure) && !(block.rest && known().rest);
                let is_met = is_certain || {
                    block.constants(row, known(), constants);
                    known().uses.iter().all(|&(column, ref one)| {
                        let mut points = points[spans[column].clone()].iter();
                        points.any(|point| self.is_met(one, point, constants, deciding))
                    })
                };
                if is_met {
                    out.push(block.rows[row]);
                }
            }
        }
    }

    /// Whether a value meets what a row wants of a column: exactly.
    fn is_met(&self, one: &Use, point: &Point, constants: &[Id], deciding: &Deciding) -> bool {
        let constant = |slot: &u32| constants[*slot as usize];
        let mut is_sure = !one.rest;
        match one.column.test {
            Test::Present => {}
            Test::Term if one.terms.iter().all(|slot| constant(slot) != point.id) => return false,
            Test::Term => {}
            Test::Interval(_) => {
                for (place, end) in one.ends.iter().enumerate() {
                    let Some((slot, _)) = end else { continue };
                    let order = order_of(constant(slot), &self.orders);
                    let (below, above) = (point.high < order.low(), point.low > order.high());
                    let (outside, inside) =
                        if place == 0 { (below, above) } else { (above, below) };
                    if outside {
                        return false;
                    }
                    is_sure &= inside;
                }
            }
        }
        is_sure || one.filters.iter().all(|filter| deciding.holds_with(filter, &constant, point.id))
    }
}

/// Whether one of some codes is above its limit. Four are compared at a time.
#[inline]
fn is_above(codes: &[i32], limits: &[i32]) -> bool {
    let (fours, fours_of_limits) = (codes.chunks_exact(4), limits.chunks_exact(4));
    let rest = fours.remainder().iter().zip(fours_of_limits.remainder());
    let mut above = rest.fold(0, |above, (code, limit)| above | i32::from(code > limit));
    let mut lanes = [0; 4];
    for (codes, limits) in fours.zip(fours_of_limits) {
        for lane in 0..4 {
            lanes[lane] |= i32::from(codes[lane] > limits[lane]);
        }
    }
    above |= lanes[0] | lanes[1] | lanes[2] | lanes[3];
    above != 0
}

/// Finds the values that a subject gives to each column of a table; says whether it has some for
/// all columns that all rows use.
fn gather(table: &Table, triples: Range<usize>, scratch: &mut TableScratch) -> bool {
    let TableScratch { points, spans, orders, .. } = scratch;
    let own = &scratch.triples[triples.clone()];
    points.clear();
    spans.clear();
    for (column, &used) in table.columns.iter().zip(&table.used) {
        let begin = own.partition_point(|triple| triple[1] < column.predicate);
        let first = points.len();
        let same = own[begin..].iter().take_while(|triple| triple[1] == column.predicate);
        for (at, &[_, _, id]) in same.enumerate() {
            let place = match column.test {
                Test::Interval(class) => orders[triples.start + begin + at].on(class),
                Test::Present | Test::Term => Some((0.0, 0.0)),
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

/// Takes a table from those of a predicate.
fn withdraw(tables: &mut HashMap<Id, Vec<usize>, RandomState>, predicate: Id, table: usize) {
    if let Some(some) = tables.get_mut(&predicate) {
        some.retain(|&one| one != table);
        if some.is_empty() {
            tables.remove(&predicate);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conjunction::mapped;
    use crate::dictionary::{LocalTerms, Terms};
    use crate::filter::Memo;
    use crate::pattern::*;
    use std::cell::RefCell;
    use std::time::Instant;

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
    const OPERATORS: [Comparison; 6] = [
        Comparison::Equal,
        Comparison::Unequal,
        Comparison::Less,
        Comparison::LessOrEqual,
        Comparison::Greater,
        Comparison::GreaterOrEqual,
    ];

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

        fn filter(&mut self, random: &mut Random, kind: u64) -> Filter {
            match random.below(12) {
                0 => Filter::Any(
                    (0..random.below(4))
                        .map(|_| Filter::Compare {
                            operator: Comparison::Equal,
                            constant: self.constant(random, 14),
                        })
                        .collect(),
                ),
                1 => Filter::Text {
                    operator: *random.one(&[TextOperator::Contains, TextOperator::Equals]),
                    view: *random.one(&[View::Term, View::Str]),
                    folding: Folding::None,
                    argument: self.constant(random, 12),
                },
                2 => Filter::Any(Box::new([
                    self.filter_of(random, kind),
                    self.filter_of(random, 12),
                ])),
                _ => self.filter_of(random, kind),
            }
        }

        fn filter_of(&mut self, random: &mut Random, kind: u64) -> Filter {
            Filter::Compare {
                operator: *random.one(&OPERATORS),
                constant: self.constant(random, kind),
            }
        }

        fn branch(&mut self, random: &mut Random) -> Branch {
            let mut branch = Branch { variables: 1, ..Branch::default() };
            for _ in 0..1 + random.below(4) {
                let predicate = Node::Constant(*random.one(&self.predicates));
                if random.below(4) == 0 {
                    let kind = *random.one(&[0, 12, 14, 14]);
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
                let kind = random.below(18);
                for _ in 0..random.below(4) {
                    branch.filters.push((variable, self.filter(random, kind)));
                }
            }
            branch
        }

        fn publication(&self, random: &mut Random, local: &mut LocalTerms) -> Vec<[Id; 3]> {
            let mut id = |text: &str| {
                let hash = self.dictionary.hash(text.as_bytes());
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

    fn is_met(branch: &Branch, triples: &[[Id; 3]], deciding: &Deciding) -> bool {
        let mut subjects: Vec<Id> = triples.iter().map(|triple| triple[0]).collect();
        subjects.dedup();
        subjects.iter().any(|&subject| {
            branch.patterns.iter().all(|[_, predicate, object]| {
                let fits = |object_: Id| match object {
                    Node::Constant(id) => object_ == *id,
                    Node::Variable(variable) => {
                        let mut own =
                            branch.filters.iter().filter(|(tested, _)| tested == variable);
                        own.all(|(_, filter)| deciding.holds(filter, object_))
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
            let deciding = Deciding::new(terms, &memo, &|_, _, _| false);
            let mut rows = Vec::new();
            tables.find(&triples, &deciding, scratch, &mut rows);
            rows.sort_unstable();
            let wanted: Vec<u32> = (0..branches.len() as u32)
                .filter(|&row| {
                    let branch = branches[row as usize].as_ref();
                    branch.is_some_and(|branch| is_met(branch, &triples, &deciding))
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
                // many rows of some templates, few of others
                let near = branches.iter().rev().take(60).flatten().next().cloned();
                let branch = match near.filter(|_| random.below(3) > 0) {
                    Some(branch) => again(&branch, &mut world, &mut random),
                    None => world.branch(&mut random),
                };
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
        assert!(tables.is_empty() && tables.by_template.is_empty() && tables.by_home.is_empty());
        assert!(tables.blocks.is_empty() && tables.by_predicate.is_empty());
    }

    /// A branch with other constants of the same kinds.
    fn again(branch: &Branch, world: &mut World, random: &mut Random) -> Branch {
        let mut other = |id: Id| {
            let text = world.dictionary.text(id).into_owned();
            let text = String::from_utf8(text).unwrap();
            for _ in 0..200 {
                let kind = random.below(18);
                let new = literal(random, kind);
                let is_alike = new.rsplit('"').next() == text.rsplit('"').next()
                    && new.starts_with('<') == text.starts_with('<');
                if is_alike {
                    return world.dictionary.intern(new.as_bytes());
                }
            }
            id
        };
        let mut new = branch.clone();
        for pattern in &mut new.patterns {
            if let Node::Constant(id) = pattern[2] {
                pattern[2] = Node::Constant(other(id));
            }
        }
        new.filters = new
            .filters
            .iter()
            .map(|(variable, filter)| (*variable, mapped(filter, &mut |&id| other(id))))
            .collect();
        new
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
        tables.begin_bulk();
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
        tables.end_bulk();
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
                    let hash = world.dictionary.hash(text.as_bytes());
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
            let deciding = Deciding::new(terms, &memo, &|_, _, _| false);
            let mut rows = Vec::new();
            tables.find(&triples, &deciding, &mut scratch, &mut rows);
            rows.sort_unstable();
            let all = 0..branches.len() as u32;
            let met = |&row: &u32| is_met(&branches[row as usize], &triples, &deciding);
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

    /// The time in seconds that this thread was running, for a machine that is busy otherwise.
    fn processor_time() -> f64 {
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let time = text.split(' ').next().and_then(|time| time.parse().ok());
        time.map_or(0.0, |time: f64| time / 1e9)
    }

    /// Rows of ten columns, built in bulk, and publications with a value for each.
    fn measured(
        name: &str,
        rows: u32,
        filters: impl Fn(&mut Random, &mut Dictionary) -> Vec<Filter>,
        value: impl Fn(&mut Random, &mut Dictionary) -> Id,
    ) {
        let mut random = Random(11);
        let mut dictionary = Dictionary::default();
        let predicates: Vec<Id> =
            (0..10).map(|n| dictionary.intern(format!("<urn:p{n}>").as_bytes())).collect();
        let patterns: Vec<Pattern> = predicates
            .iter()
            .zip(1..)
            .map(|(&id, n)| [Node::Variable(0), Node::Constant(id), Node::Variable(n)])
            .collect();
        let mut tables = Tables::default();
        tables.begin_bulk();
        let mut branches = Vec::new();
        for _ in 0..rows {
            let mut all = Vec::new();
            for variable in 1..=10 {
                let own = filters(&mut random, &mut dictionary);
                all.extend(own.into_iter().map(|filter| (variable, filter)));
            }
            let branch = Branch { patterns: patterns.clone(), filters: all, variables: 11 };
            branches.push(branch);
        }
        let begin = processor_time();
        for (branch, row) in branches.iter().zip(0..) {
            assert!(tables.add(branch, row, &dictionary));
        }
        tables.end_bulk();
        let building = processor_time() - begin;
        drop(branches);
        let (local, mut scratch) = (LocalTerms::default(), TableScratch::default());
        let mut out = Vec::new();
        let mut times = Vec::new();
        let mut found = 0;
        for _ in 0..200 {
            let triples: Vec<[Id; 3]> = predicates
                .iter()
                .map(|&predicate| [0, predicate, value(&mut random, &mut dictionary)])
                .collect();
            let memo = RefCell::new(Memo::default());
            let terms = Terms { dictionary: &dictionary, local: &local };
            let deciding = Deciding::new(terms, &memo, &|_, _, _| false);
            out.clear();
            let begin = Instant::now();
            tables.find(&triples, &deciding, &mut scratch, &mut out);
            times.push(begin.elapsed().as_secs_f64());
            found += out.len();
        }
        times.sort_unstable_by(f64::total_cmp);
        println!(
            "{name}: {rows} rows, {} found, {:.1} µs (first quartile), least {:.1}; {} bytes a row, {:.2} µs to build",
            found / 200,
            times[50] * 1e6,
            times[0] * 1e6,
            tables.bytes() / rows as usize,
            building * 1e6 / f64::from(rows)
        );
    }

    fn between(low: u64, high: u64) -> Vec<Filter> {
        let id = |n: u64| crate::dictionary::inline::integer(n as i64).unwrap();
        vec![
            Filter::Compare { operator: Comparison::GreaterOrEqual, constant: id(low) },
            Filter::Compare { operator: Comparison::LessOrEqual, constant: id(high) },
        ]
    }

    #[test]
    #[ignore = "measures"]
    fn measure() {
        let number = |low: u64, high: u64| {
            move |random: &mut Random, _: &mut Dictionary| {
                crate::dictionary::inline::integer((low + random.below(high - low)) as i64).unwrap()
            }
        };
        for rows in [100_000, 1_000_000] {
            // a value in the middle is met by 0.63 of all ranges, and all ten by 1 % of the rows
            let ranges = |random: &mut Random, _: &mut Dictionary| {
                between(random.below(629_000), 371_000 + random.below(629_000))
            };
            measured("ten ranges, 1 %", rows, ranges, number(480_000, 520_000));
        }
        let ranges = |random: &mut Random, _: &mut Dictionary| {
            let low = random.below(900_000);
            between(low, low + 100_000)
        };
        measured("ten ranges, narrow", 100_000, ranges, number(0, 1_000_000));
        let points = |random: &mut Random, _: &mut Dictionary| {
            let n = random.below(10_000);
            between(n, n)
        };
        measured("ten points of 10,000", 100_000, points, number(0, 10_000));
        for terms in [5, 1000] {
            let term = |random: &mut Random, dictionary: &mut Dictionary| {
                dictionary.intern(format!("<urn:v{}>", random.below(terms)).as_bytes())
            };
            let equal = |random: &mut Random, dictionary: &mut Dictionary| {
                let constant = term(random, dictionary);
                vec![Filter::Compare { operator: Comparison::Equal, constant }]
            };
            measured(&format!("ten terms of {terms}"), 100_000, equal, term);
        }
    }

    #[test]
    #[ignore = "measures"]
    fn measure_one_by_one() {
        let mut random = Random(11);
        let mut dictionary = Dictionary::default();
        let patterns: Vec<Pattern> = (1..=10u16)
            .map(|n| {
                let id = dictionary.intern(format!("<urn:p{n}>").as_bytes());
                [Node::Variable(0), Node::Constant(id), Node::Variable(n)]
            })
            .collect();
        let mut tables = Tables::default();
        let (mut adding, mut removing) = (0.0, 0.0);
        for row in 0..200_000 {
            let mut filters = Vec::new();
            for variable in 1..=10 {
                let low = random.below(500_000);
                filters.extend(between(low, low + 400_000).into_iter().map(|one| (variable, one)));
            }
            let branch = Branch { patterns: patterns.clone(), filters, variables: 11 };
            let begin = Instant::now();
            assert!(tables.add(&branch, row, &dictionary));
            adding += begin.elapsed().as_secs_f64();
        }
        for row in 0..200_000 {
            let begin = Instant::now();
            assert!(tables.remove(row));
            removing += begin.elapsed().as_secs_f64();
        }
        println!("one by one: {:.1} µs added, {:.1} µs removed", adding * 5.0, removing * 5.0);
    }
}
