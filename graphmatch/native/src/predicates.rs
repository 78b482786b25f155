//! Predicate tables: subscriptions that are conjunctions around one subject.
//!
//! Such a branch (`?s :p ?x . ?s :q :C . FILTER(?x > 5)`) constrains some properties of one
//! subject, each on its own: it wants a property to be there, to have one of some terms, or a
//! value in an interval. Rows of a table constrain much the same properties in the same way, its
//! columns; a publication's subject is a point. Rows are held in blocks ([`crate::columns`]), in
//! which each column says by bitmaps which rows a point may meet:
//!
//! 1. *Choose.* The number of rows that each column leaves is known before a bitmap is read. If a
//!    posting list is short, its rows are the candidates.
//! 2. *And.* Otherwise one bitmap after the other is intersected, the most selective first, over
//!    whole blocks while many words have rows and word by word after that.
//! 3. *Check.* Candidates are compared with their bounds as integers, all of a row side by side.
//! 4. *Verify.* Where codes cannot decide, and for other tests (of text, say), filters are
//!    evaluated.
//!
//! The tail of a table, its last 256 rows at most, has no bitmaps, and is checked row by row. When
//! it is full it becomes a block, together with the blocks before it that are not larger, so a row
//! is built into a block a logarithmic number of times (Bentley and Saxe 1980). Removed rows are
//! marked, and go when they are half of a block.
//!
//! Cost, for 1,000,000 rows of ten ranges over short numbers, of which 1 % match: 156,250 words
//! and some 13,000 rows compared; about 120 bytes a row. A row is stored here only: its branch is
//! made again from its template and its constants.

pub use crate::block::TableScratch;
use crate::block::{Block, Known, Orders, candidates};
use crate::columns::{BlockColumn, MOST_ROWS, Point};
use crate::conjunction::{
    Column, Compared, MOST_COLUMNS, Template, Test, Use, class_of, mapped, template_of, uses_of,
};
use crate::dictionary::{ANY, Dictionary, Id, inline};
use crate::filter::Deciding;
use crate::pattern::{Branch, Node};
use crate::text::sort_from;
use crate::values::Order;
use foldhash::fast::{FixedState, RandomState};
use hashbrown::HashMap;
use std::hash::BuildHasher;
use std::hint::black_box;
use std::ops::Range;

/// How many rows wait in a table's tail.
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
    /// Built blocks, the oldest first.
    blocks: Vec<u32>,
    tail: Option<u32>,
    /// The predicates that it is looked up by: one that all rows have, or all.
    homes: Vec<Id>,
}

/// How often a predicate is a column of a table, and how often with intervals.
#[derive(Default)]
struct Interest {
    columns: usize,
    intervals: usize,
    /// The tables that are looked up by it.
    tables: Vec<u32>,
}

/// All predicate tables.
#[derive(Default)]
pub struct Tables {
    tables: Vec<Option<Box<Table>>>,
    blocks: Vec<Option<Box<Block>>>,
    free_blocks: Vec<u32>,
    free_tables: Vec<u32>,
    templates: Vec<Option<Box<Known>>>,
    free_templates: Vec<u32>,
    by_template: HashMap<Template, u32, RandomState>,
    by_predicate: HashMap<Id, Interest, RandomState>,
    by_column: HashMap<Column, Vec<u32>, RandomState>,
    orders: Orders,
    /// Block and place in it, by row.
    places: Vec<u32>,
    rows: usize,
    is_bulk: bool,
}

impl Tables {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many bytes rows take, about.
    pub fn bytes(&self) -> usize {
        let pages = self.orders.bytes();
        let blocks: usize = self.blocks.iter().flatten().map(|block| block.bytes()).sum();
        blocks + pages + 4 * self.places.len()
    }

    /// A hash of the columns that a branch has, by which rows that belong together are counted;
    /// nothing if no table takes it.
    pub fn key(&self, branch: &Branch, dictionary: &Dictionary) -> Option<u64> {
        let (template, _) =
            template_of(branch, &mut |id, kind| class_of(id, kind, dictionary).class())?;
        let columns: Vec<Column> = uses_of(&template)?.iter().map(|one| one.column).collect();
        Some(FixedState::default().hash_one(columns))
    }

    /// Whether a branch can be a row.
    pub fn accepts(&self, branch: &Branch, dictionary: &Dictionary) -> bool {
        self.key(branch, dictionary).is_some()
    }

    /// Whether there is a table already that has all columns of a branch.
    pub fn wants(&self, branch: &Branch, dictionary: &Dictionary) -> bool {
        let template = template_of(branch, &mut |id, kind| class_of(id, kind, dictionary).class());
        let Some((template, _)) = template else { return false };
        if self.by_template.contains_key(&template) {
            return true;
        }
        uses_of(&template).is_some_and(|uses| {
            self.table_for(&uses).is_some_and(|table| {
                self.tables[table as usize]
                    .as_ref()
                    .is_some_and(|table| uses.iter().all(|one| table.columns.contains(&one.column)))
            })
        })
    }

    /// From now on rows come in bulk: they are built into blocks when these are full.
    pub fn begin_bulk(&mut self) {
        self.is_bulk = true;
    }

    /// Builds the rows that came in bulk.
    pub fn end_bulk(&mut self) {
        self.is_bulk = false;
        for table in 0..self.tables.len() {
            self.settle(table);
        }
    }

    /// Adds a row; returns whether that was possible. Rows are numbered densely. The caller keeps the
    /// branch's terms in the dictionary until the row is removed.
    pub fn add(&mut self, branch: &Branch, row: u32, dictionary: &Dictionary) -> bool {
        let class = &mut |id, kind| class_of(id, kind, dictionary).class();
        let Some((template, constants)) = template_of(branch, class) else { return false };
        let known = match self.by_template.get(&template) {
            Some(&known) => Some(known),
            None if self.has_room(row) => self.new_template(template),
            None => None,
        };
        known.is_some_and(|known| self.push(known, &constants, row, dictionary))
    }

    /// Adds a row that differs from another in constants of the same classes only, which are given
    /// as its template numbers them.
    pub fn add_alike(
        &mut self,
        like: u32,
        constants: &[Id],
        row: u32,
        dictionary: &Dictionary,
    ) -> bool {
        let known = self.place(like).map(|(block, at)| block.templates[at]);
        known.is_some_and(|known| self.push(known, constants, row, dictionary))
    }

    fn has_room(&self, row: u32) -> bool {
        let place = self.places.get(row as usize).copied().unwrap_or(NOWHERE);
        let free = self.free_blocks.len() + MOST_BLOCKS - self.blocks.len().min(MOST_BLOCKS);
        place == NOWHERE && free > 0 && row != NOWHERE
    }

    fn push(&mut self, known: u32, constants: &[Id], row: u32, dictionary: &Dictionary) -> bool {
        if !self.has_room(row) {
            return false;
        }
        let Some(template) = self.templates[known as usize].as_mut() else { return false };
        for (&id, class) in constants.iter().zip(&template.template.classes) {
            if class.is_ordered() && !inline::is_inline(id) {
                self.orders.note(id, class_of(id, Compared::Value, dictionary));
            }
        }
        template.rows += 1;
        let number = template.table as usize;
        let Some(table) = self.tables[number].as_mut() else { return false };
        table.rows += 1;
        template.columns.iter().for_each(|&column| table.used[column] += 1);
        self.rows += 1;
        let tail = match table.tail {
            Some(tail) => tail,
            None => {
                let block = Block::of(number as u32);
                let tail = put(&mut self.blocks, &mut self.free_blocks, block);
                table.tail = Some(tail);
                tail
            }
        };
        if let Some(block) = self.blocks[tail as usize].as_mut() {
            if self.places.len() <= row as usize {
                self.places.resize(row as usize + 1, NOWHERE);
            }
            self.places[row as usize] = tail << 16 | block.rows.len() as u32;
            block.push(row, known, constants);
            if block.rows.len() >= if self.is_bulk { MOST_ROWS } else { TAIL } {
                self.settle(number);
            }
        }
        true
    }

    /// How many variables a row has; `None` if there is no such row.
    pub fn variables(&self, row: u32) -> Option<usize> {
        let (block, at) = self.place(row)?;
        let known = self.templates[block.templates[at] as usize].as_ref()?;
        Some(usize::from(known.template.variables))
    }

    /// The branch of a row.
    pub fn branch(&self, row: u32) -> Option<Branch> {
        let (block, at) = self.place(row)?;
        let known = self.templates[block.templates[at] as usize].as_ref()?;
        let mut constants = Vec::new();
        block.constants(at, known, &mut constants);
        let template = &known.template;
        let constant = |slot: u32| constants.get(slot as usize).copied().unwrap_or(ANY);
        let node = |node: &Node| match *node {
            Node::Constant(slot) => Node::Constant(constant(slot)),
            variable => variable,
        };
        Some(Branch {
            patterns: template.patterns.iter().map(|[s, p, o]| [*s, *p, node(o)]).collect(),
            filters: template
                .filters
                .iter()
                .map(|(variable, filter)| (*variable, mapped(filter, &mut |&slot| constant(slot))))
                .collect(),
            variables: template.variables,
        })
    }

    /// Removes a row; returns whether it was here.
    pub fn remove(&mut self, row: u32) -> bool {
        let Some(place) = self.places.get_mut(row as usize) else { return false };
        let (handle, at) = ((*place >> 16) as usize, (*place & 0xffff) as usize);
        if *place == NOWHERE {
            return false;
        }
        *place = NOWHERE;
        let Some(block) = self.blocks.get_mut(handle).and_then(Option::as_mut) else {
            return false;
        };
        block.alive[at / 64] &= !(1 << (at % 64));
        block.dead += 1;
        let (number, template) = (block.table as usize, block.templates[at] as usize);
        let (dead, rows) = (block.dead, block.rows.len());
        self.rows -= 1;
        let (Some(known), Some(table)) =
            (self.templates[template].as_mut(), self.tables[number].as_mut())
        else {
            return true;
        };
        known.rows -= 1;
        table.rows -= 1;
        known.columns.iter().for_each(|&column| table.used[column] -= 1);
        let is_last = known.rows == 0;
        if 2 * dead > rows {
            self.rebuild(number, vec![handle as u32]);
        }
        if is_last && let Some(known) = self.templates[template].take() {
            self.by_template.remove(&known.template);
            self.free_templates.push(template as u32);
        }
        if self.tables[number].as_ref().is_some_and(|table| table.rows == 0) {
            self.drop_table(number);
        }
        true
    }

    fn place(&self, row: u32) -> Option<(&Block, usize)> {
        let place = self.places.get(row as usize).copied().filter(|&place| place != NOWHERE)?;
        Some((self.blocks[(place >> 16) as usize].as_deref()?, (place & 0xffff) as usize))
    }

    /// The table for rows with some columns: the one that has most of them, if its rows have much
    /// in common with them.
    fn table_for(&self, uses: &[Use]) -> Option<u32> {
        let mut shared: HashMap<u32, usize, RandomState> = HashMap::default();
        for one in uses {
            for &table in self.by_column.get(&one.column).into_iter().flatten() {
                *shared.entry(table).or_default() += 1;
            }
        }
        let is_near = |&(table, shared): &(u32, usize)| {
            let Some(table) = self.tables[table as usize].as_ref() else { return false };
            let all = table.columns.len() + uses.len() - shared;
            all <= MOST_COLUMNS && (2 * shared >= all || shared == uses.len() && 4 * shared >= all)
        };
        let near = shared.into_iter().filter(is_near);
        near.max_by_key(|&(table, shared)| (shared, u32::MAX - table)).map(|(table, _)| table)
    }

    /// Finds or makes the table of a new template, and gives it the columns that it has not.
    fn new_template(&mut self, template: Template) -> Option<u32> {
        let uses = uses_of(&template)?;
        let number = self
            .table_for(&uses)
            .unwrap_or_else(|| put(&mut self.tables, &mut self.free_tables, Table::default()));
        let table = self.tables[number as usize].as_mut()?;
        let mut columns = Vec::with_capacity(uses.len());
        for one in &uses {
            let at = table.columns.iter().position(|column| *column == one.column);
            columns.push(at.unwrap_or(table.columns.len()));
            if at.is_none() {
                table.columns.push(one.column);
                table.used.push(0);
                self.by_column.entry(one.column).or_default().push(number);
                let interest = self.by_predicate.entry(one.column.predicate).or_default();
                interest.columns += 1;
                interest.intervals += usize::from(matches!(one.column.test, Test::Interval(_)));
            }
        }
        let is_home = |home: &Id| uses.iter().any(|one| one.column.predicate == *home);
        if !(table.homes.len() == 1 && is_home(&table.homes[0])) {
            self.find_home(number, &uses);
        }
        let rest = uses.iter().any(|one| one.rest);
        let known =
            Known { template: template.clone(), table: number, uses, columns, rest, rows: 0 };
        let known = put(&mut self.templates, &mut self.free_templates, known);
        self.by_template.insert(template, known);
        Some(known)
    }

    /// Looks a table up by a predicate that all rows have, also those to come, and that few other
    /// tables are looked up by; by all predicates if there is none.
    fn find_home(&mut self, number: u32, uses: &[Use]) {
        let Some(table) = self.tables[number as usize].as_mut() else { return };
        for home in table.homes.drain(..) {
            if let Some(interest) = self.by_predicate.get_mut(&home) {
                interest.tables.retain(|&one| one != number);
            }
        }
        let tables = |predicate: Id| {
            self.by_predicate.get(&predicate).map_or(0, |interest| interest.tables.len())
        };
        let of_all = table.columns.iter().zip(&table.used).filter(|&(column, &used)| {
            used == table.rows && uses.iter().any(|one| one.column == *column)
        });
        let best = of_all.map(|(column, _)| column.predicate).min_by_key(|&one| tables(one));
        match best {
            Some(best) => table.homes.push(best),
            None => table.homes.extend(table.columns.iter().map(|column| column.predicate)),
        }
        table.homes.sort_unstable();
        table.homes.dedup();
        for home in &table.homes {
            self.by_predicate.entry(*home).or_default().tables.push(number);
        }
    }

    fn drop_table(&mut self, number: usize) {
        let Some(table) = self.tables[number].take() else { return };
        for block in table.blocks.into_iter().chain(table.tail) {
            self.blocks[block as usize] = None;
            self.free_blocks.push(block);
        }
        for home in table.homes {
            if let Some(interest) = self.by_predicate.get_mut(&home) {
                interest.tables.retain(|&one| one as usize != number);
            }
        }
        for column in table.columns {
            if let Some(tables) = self.by_column.get_mut(&column) {
                tables.retain(|&one| one as usize != number);
                if tables.is_empty() {
                    self.by_column.remove(&column);
                }
            }
            if let Some(interest) = self.by_predicate.get_mut(&column.predicate) {
                interest.columns -= 1;
                interest.intervals -= usize::from(matches!(column.test, Test::Interval(_)));
                if interest.columns == 0 {
                    self.by_predicate.remove(&column.predicate);
                }
            }
        }
        self.free_tables.push(number as u32);
    }

    /// Makes a table's tail a block, if it is full, with blocks before it that are not larger.
    fn settle(&mut self, number: usize) {
        let Some(table) = self.tables[number].as_ref() else { return };
        let Some(tail) = table.tail else { return };
        let size = |handle: u32| {
            self.blocks[handle as usize].as_ref().map_or(0, |one| one.rows.len() - one.dead)
        };
        let mut total = size(tail);
        if self.blocks[tail as usize].as_ref().is_none_or(|tail| tail.rows.len() < TAIL) {
            return;
        }
        let mut merged = vec![tail];
        for &before in table.blocks.iter().rev() {
            if size(before) > total || total + size(before) > MOST_ROWS {
                break;
            }
            total += size(before);
            merged.push(before);
        }
        merged.reverse();
        self.rebuild(number, merged);
    }

    /// Makes one block of the living rows of some, which are neighbours; a tail alone that is not
    /// full stays a tail.
    fn rebuild(&mut self, number: usize, handles: Vec<u32>) {
        let mut new = Block::of(number as u32);
        let mut constants = Vec::new();
        for &handle in &handles {
            let Some(block) = self.blocks[handle as usize].take() else { continue };
            for row in (0..block.rows.len()).filter(|&row| block.is_alive(row)) {
                let template = block.templates[row];
                if let Some(known) = self.templates[template as usize].as_ref() {
                    block.constants(row, known, &mut constants);
                    new.push(block.rows[row], template, &constants);
                }
            }
        }
        let Some(table) = self.tables[number].as_mut() else { return };
        let first = handles[0];
        let was_tail = table.tail.is_some_and(|tail| handles.contains(&tail));
        let at =
            table.blocks.iter().position(|&block| block == first).unwrap_or(table.blocks.len());
        table.blocks.retain(|block| !handles.contains(block));
        if was_tail {
            table.tail = None;
        }
        let stays_tail = was_tail && handles.len() == 1 && new.rows.len() < TAIL;
        self.free_blocks.extend(&handles[1..]);
        if new.rows.is_empty() {
            self.free_blocks.push(first);
            return;
        }
        if stays_tail {
            table.tail = Some(first);
        } else {
            table.blocks.insert(at.min(table.blocks.len()), first);
            new.build(&table.columns, &self.templates, &self.orders);
        }
        for (at, &row) in new.rows.iter().enumerate() {
            self.places[row as usize] = first << 16 | at as u32;
        }
        self.blocks[first as usize] = Some(Box::new(new));
    }

    /// Appends the rows that have a solution in a publication, each once.
    pub fn find(
        &self,
        triples: &[[Id; 3]],
        deciding: &Deciding,
        scratch: &mut TableScratch,
        out: &mut Vec<u32>,
    ) {
        if self.rows == 0 {
            return;
        }
        scratch.triples.clear();
        let of_interest =
            triples.iter().filter(|triple| self.by_predicate.contains_key(&triple[1]));
        scratch.triples.extend(of_interest);
        if scratch.triples.is_empty() {
            return;
        }
        scratch.triples.sort_unstable();
        scratch.triples.dedup();
        let has_values = |predicate: &Id| {
            self.by_predicate.get(predicate).is_some_and(|interest| interest.intervals > 0)
        };
        scratch.orders.clear();
        scratch.orders.extend(scratch.triples.iter().map(|[_, predicate, object]| {
            if has_values(predicate) { deciding.order(*object) } else { Order::default() }
        }));
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
        scratch.asked.clear();
        for same in scratch.triples[triples.clone()].chunk_by(|one, other| one[1] == other[1]) {
            if let Some(interest) = self.by_predicate.get(&same[0][1]) {
                scratch.asked.extend(&interest.tables);
            }
        }
        scratch.asked.sort_unstable();
        scratch.asked.dedup();
        for at in 0..scratch.asked.len() {
            let Some(table) = self.tables[scratch.asked[at] as usize].as_ref() else { continue };
            if !gather(table, triples.clone(), scratch) {
                continue;
            }
            for &block in &table.blocks {
                if let Some(block) = self.blocks[block as usize].as_ref() {
                    self.find_block(block, deciding, scratch, out);
                }
            }
            if let Some(tail) = table.tail.and_then(|tail| self.blocks[tail as usize].as_ref()) {
                let rows = (0..tail.rows.len()).filter(|&row| tail.is_alive(row));
                let TableScratch { points, spans, constants, .. } = scratch;
                for row in rows {
                    if self.meets(tail, row, points, spans, constants, deciding) {
                        out.push(tail.rows[row]);
                    }
                }
            }
        }
    }

    /// Whether the points of a subject meet a row: exactly.
    fn meets(
        &self,
        block: &Block,
        row: usize,
        points: &[Point],
        spans: &[Range<usize>],
        constants: &mut Vec<Id>,
        deciding: &Deciding,
    ) -> bool {
        let Some(known) = self.templates[block.templates[row] as usize].as_deref() else {
            return false;
        };
        let constants = if block.is_built {
            block.constants(row, known, constants);
            &*constants
        } else {
            block.held(row)
        };
        known.uses.iter().zip(&known.columns).all(|(one, &column)| {
            let points = &points[spans[column].clone()];
            points.iter().any(|point| self.is_met(one, point, constants, deciding))
        })
    }

    fn is_met(&self, one: &Use, point: &Point, constants: &[Id], deciding: &Deciding) -> bool {
        let constant = |slot: &u32| constants.get(*slot as usize).copied().unwrap_or(ANY);
        let mut is_sure = !one.rest;
        match one.column.test {
            Test::Present => {}
            Test::Term if one.terms.iter().all(|slot| constant(slot) != point.id) => return false,
            Test::Term => {}
            Test::Interval(_) => {
                for (is_low, end) in [true, false].into_iter().zip(one.ends) {
                    let Some((slot, closed)) = end else { continue };
                    let order = self.orders.get(constant(&slot));
                    let (below, above) = (point.high < order.low(), point.low > order.high());
                    if if is_low { below } else { above } {
                        return false;
                    }
                    if below || above {
                        continue;
                    }
                    if point.low == point.high && order.low() == order.high() {
                        if !closed {
                            return false;
                        }
                    } else {
                        is_sure = false;
                    }
                }
            }
        }
        is_sure || one.filters.iter().all(|f| deciding.holds_with(f, &constant, point.id))
    }

    /// Finds the rows of a block that the points of a subject meet.
    fn find_block(
        &self,
        block: &Block,
        deciding: &Deciding,
        scratch: &mut TableScratch,
        out: &mut Vec<u32>,
    ) {
        let Some(is_decided) = candidates(block, scratch) else { return };
        let TableScratch { points, spans, codes, limits, sure, several, constants, .. } = scratch;
        let width = block.width;
        for batch in scratch.candidates.chunks(32) {
            // rows lie far from each other: have them brought side by side
            let mut touched = 0;
            for &row in batch {
                let codes = &block.codes[row as usize * width..][..width];
                if let (Some(first), Some(last)) = (codes.first(), codes.last()) {
                    touched ^= first ^ last;
                }
                touched ^= block.rows[row as usize] as i32;
            }
            black_box(touched);
            for &row in batch {
                let row = row as usize;
                let own = &block.codes[row * width..][..width];
                if is_above(own, limits) {
                    continue;
                }
                let mut is_sure = !is_above(own, sure);
                let is_met = several.iter().all(|&(column, position)| {
                    let Some(BlockColumn::Intervals(built)) = block.columns.get(column) else {
                        return true;
                    };
                    let (low, high) = (own[2 * position], !own[2 * position + 1]);
                    let given = &codes[spans[column].clone()];
                    let mut met = given.iter().filter(|(a, b)| low <= *b && high >= *a).peekable();
                    let is_met = met.peek().is_some();
                    let slack = built.slack;
                    is_sure &= met.any(|&(a, b)| {
                        low.saturating_add(slack) <= a && b.saturating_add(slack) <= high
                    });
                    is_met
                });
                if !is_met {
                    continue;
                }
                let has_rest = || {
                    let known = self.templates[block.templates[row] as usize].as_deref();
                    known.is_none_or(|known| known.rest)
                };
                let is_certain = is_sure && is_decided && !(block.rest && has_rest());
                if is_certain || self.meets(block, row, points, spans, constants, deciding) {
                    out.push(block.rows[row]);
                }
            }
        }
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
        for (at, triple) in own.iter().enumerate().skip(begin) {
            if triple[1] != column.predicate {
                break;
            }
            let id = triple[2];
            if let Test::Interval(class) = column.test {
                if let Some((low, high)) = orders[triples.start + at].on(class) {
                    points.push(Point { id, low, high });
                }
            } else {
                points.push(Point { id, low: 0.0, high: 0.0 });
            }
        }
        if points.len() == first && used == table.rows {
            return false;
        }
        spans.push(first..points.len());
    }
    true
}

/// Puts something where a number is free.
fn put<T>(all: &mut Vec<Option<Box<T>>>, free: &mut Vec<u32>, one: T) -> u32 {
    match free.pop() {
        Some(number) => {
            all[number as usize] = Some(Box::new(one));
            number
        }
        None => {
            all.push(Some(Box::new(one)));
            (all.len() - 1) as u32
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
                assert!(tables.accepts(&branch, &world.dictionary));
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
        assert!(tables.is_empty() && tables.by_template.is_empty() && tables.by_column.is_empty());
        assert!(tables.blocks.iter().all(Option::is_none) && tables.by_predicate.is_empty());
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
