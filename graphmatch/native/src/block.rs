//! A block of a predicate table's rows: its constants, its columns, its candidates.

use crate::columns::{
    Bits, BlockColumn, IntervalColumn, NO_HIGH, NO_LOW, Point, TermColumn, words,
};
use crate::conjunction::{Column, Template, Test, Use};
use crate::dictionary::{ANY, INLINE, Id};
use crate::values::Order;
use std::ops::Range;

/// A template that some rows have.
pub struct Known {
    /// The template.
    pub template: Template,
    /// The table of its rows.
    pub table: u32,
    /// What it asks of which columns.
    pub uses: Vec<Use>,
    /// The columns of the table that are used, beside `uses`.
    pub columns: Vec<usize>,
    /// Whether filters ask more than columns do.
    pub rest: bool,
    /// How many rows have it.
    pub rows: usize,
}

impl Known {
    /// What it asks of a column of the table.
    fn use_of(&self, column: usize) -> Option<&Use> {
        Some(&self.uses[self.columns.iter().position(|&one| one == column)?])
    }
}

/// The orders of constants that are not their own ids, by pages of ids.
#[derive(Default)]
pub struct Orders {
    pages: Vec<Option<Box<[Order; 256]>>>,
}

impl Orders {
    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.pages.iter().flatten().count() * size_of::<[Order; 256]>()
    }

    /// Notes the order of a constant.
    pub fn note(&mut self, id: Id, order: Order) {
        if id >= INLINE {
            return;
        }
        let page = id as usize / 256;
        if page >= self.pages.len() {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([Order::default(); 256]));
        page[id as usize % 256] = order;
    }

    /// The order of a constant that was noted, or is its own id.
    pub fn get(&self, id: Id) -> Order {
        Order::of_inline(id).unwrap_or_else(|| {
            let page = self.pages.get(id as usize / 256).and_then(Option::as_ref);
            page.map_or_else(Order::default, |page| page[id as usize % 256])
        })
    }
}

/// Rows of one table.
#[derive(Default)]
pub struct Block {
    /// Its table.
    pub table: u32,
    /// The numbers of the rows.
    pub rows: Vec<u32>,
    /// Their templates.
    pub templates: Vec<u32>,
    /// Where each row's constants begin, and the end; empty if all have `stride`.
    starts: Vec<u32>,
    stride: usize,
    /// Constants, without those that codes say.
    constants: Vec<Id>,
    /// Rows that were not removed.
    pub alive: Bits,
    /// How many were.
    pub dead: usize,
    /// Nothing in a tail.
    pub columns: Vec<BlockColumn>,
    /// Codes of intervals: lower bounds and the complements of upper ones, in turn.
    pub codes: Vec<i32>,
    /// How many codes a row has.
    pub width: usize,
    /// Whether it is no tail.
    pub is_built: bool,
    /// Whether filters of some rows ask more than columns do.
    pub rest: bool,
}

impl Block {
    /// An empty tail of a table.
    pub fn of(table: u32) -> Self {
        Self { table, ..Self::default() }
    }

    /// Whether a row was not removed.
    pub fn is_alive(&self, row: usize) -> bool {
        self.alive[row / 64] >> (row % 64) & 1 == 1
    }

    /// Appends a row to a tail.
    pub fn push(&mut self, row: u32, template: u32, constants: &[Id]) {
        if self.rows.len().is_multiple_of(64) {
            self.alive.push(0);
        }
        self.alive[self.rows.len() / 64] |= 1 << (self.rows.len() % 64);
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.rows.push(row);
        self.templates.push(template);
        self.constants.extend_from_slice(constants);
        self.starts.push(self.constants.len() as u32);
    }

    /// The constants of a row that codes do not say: all in a tail.
    pub fn held(&self, row: usize) -> &[Id] {
        if self.starts.is_empty() {
            return &self.constants[row * self.stride..(row + 1) * self.stride];
        }
        &self.constants[self.starts[row] as usize..self.starts[row + 1] as usize]
    }

    /// Writes all constants of a row.
    pub fn constants(&self, row: usize, known: &Known, constants: &mut Vec<Id>) {
        constants.clear();
        let held = self.held(row);
        if held.len() == known.template.classes.len() {
            constants.extend_from_slice(held);
            return;
        }
        constants.resize(known.template.classes.len(), ANY);
        for (one, &column) in known.uses.iter().zip(&known.columns) {
            let Some(BlockColumn::Intervals(built)) = self.columns.get(column) else { continue };
            let codes = &self.codes[row * self.width + 2 * built.position..][..2];
            for (is_low, end) in [true, false].into_iter().zip(one.ends) {
                let Some((slot, closed)) = end else { continue };
                let code = if is_low { codes[0] } else { !codes[1] };
                if let Some(id) = built.scale.constant(code, is_low, closed) {
                    constants[slot as usize] = id;
                }
            }
        }
        let missing = constants.iter_mut().filter(|id| **id == ANY);
        missing.zip(held).for_each(|(constant, &id)| *constant = id);
    }

    /// Builds columns and codes for as many columns as the table has.
    pub fn build(&mut self, columns: &[Column], templates: &[Option<Box<Known>>], orders: &Orders) {
        let rows = self.rows.len();
        // what each template that rows have asks of each column
        let mut numbers = self.templates.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let known: Vec<Option<&Known>> =
            numbers.iter().map(|&number| templates[number as usize].as_deref()).collect();
        let uses: Vec<Vec<Option<&Use>>> = known
            .iter()
            .map(|known| {
                (0..columns.len()).map(|at| known.and_then(|known| known.use_of(at))).collect()
            })
            .collect();
        let local: Vec<usize> =
            self.templates.iter().map(|one| numbers.binary_search(one).unwrap_or(0)).collect();
        let is_used = |at: usize| uses.iter().any(|uses| uses[at].is_some());
        let is_interval = |at: usize| matches!(columns[at].test, Test::Interval(_));
        let width = 2 * (0..columns.len()).filter(|&at| is_interval(at) && is_used(at)).count();
        let mut codes = vec![0; width * rows];
        let mut position = 0;
        let mut built = Vec::with_capacity(columns.len());
        for (at, column) in columns.iter().enumerate() {
            if !is_used(at) {
                built.push(BlockColumn::Free);
                continue;
            }
            let mut free: (Bits, u32) = Default::default();
            let mut pairs = Vec::new();
            let mut bounds = Vec::with_capacity(if is_interval(at) { rows } else { 0 });
            for (row, &template) in local.iter().enumerate() {
                let Some(one) = uses[template][at] else {
                    free.0.resize(words(rows), 0);
                    free.0[row / 64] |= 1 << (row % 64);
                    free.1 += 1;
                    bounds.push([None; 2]);
                    continue;
                };
                let held = self.held(row);
                let constant = |slot: u32| held[slot as usize];
                match column.test {
                    Test::Present => {}
                    Test::Term => {
                        pairs.extend(one.terms.iter().map(|&slot| (constant(slot), row as u16)));
                    }
                    Test::Interval(_) => bounds.push(
                        one.ends.map(|end| end.map(|(slot, closed)| (constant(slot), closed))),
                    ),
                }
            }
            built.push(match column.test {
                Test::Present => BlockColumn::Present(free),
                Test::Term => BlockColumn::Terms(TermColumn::build(pairs, free, rows)),
                Test::Interval(_) => {
                    position += 1;
                    BlockColumn::Intervals(IntervalColumn::build(
                        &bounds,
                        free,
                        position - 1,
                        &mut codes,
                        width,
                        &|id| orders.get(id),
                    ))
                }
            });
        }
        // constants that codes say are left out
        let kept: Vec<Vec<usize>> = uses
            .iter()
            .zip(&known)
            .map(|(uses, known)| {
                let said = uses.iter().zip(&built).filter_map(|(one, column)| match column {
                    BlockColumn::Intervals(column) if column.scale.is_inline() => *one,
                    _ => None,
                });
                let said: Vec<usize> = said
                    .flat_map(|one| one.ends.iter().flatten().map(|&(slot, _)| slot as usize))
                    .collect();
                let count = known.map_or(0, |known| known.template.classes.len());
                (0..count).filter(|slot| !said.contains(slot)).collect()
            })
            .collect();
        let mut constants = Vec::with_capacity(local.iter().map(|&one| kept[one].len()).sum());
        let mut starts = Vec::with_capacity(rows + 1);
        starts.push(0);
        for (row, &template) in local.iter().enumerate() {
            let held = self.held(row);
            constants.extend(kept[template].iter().map(|&slot| held[slot]));
            starts.push(constants.len() as u32);
        }
        self.stride = kept.first().map_or(0, Vec::len);
        let is_even = kept.iter().all(|kept| kept.len() == self.stride);
        self.starts = if is_even { Vec::new() } else { starts };
        self.constants = constants;
        self.rest = known.iter().flatten().any(|known| known.rest);
        self.columns = built;
        self.codes = codes;
        self.width = width;
        self.is_built = true;
        self.rows.shrink_to_fit();
        self.templates.shrink_to_fit();
    }

    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        4 * (self.rows.len()
            + self.templates.len()
            + self.starts.len()
            + self.constants.len()
            + self.codes.len())
            + 8 * self.alive.len()
            + self.columns.iter().map(BlockColumn::bytes).sum::<usize>()
    }
}

/// What matching a publication needs, and is used again for the next. One for each thread.
#[derive(Default)]
pub struct TableScratch {
    /// Triples that columns look at, in order.
    pub triples: Vec<[Id; 3]>,
    /// The orders of their objects.
    pub orders: Vec<Order>,
    /// Tables to be asked.
    pub asked: Vec<u32>,
    /// Values of a subject, column by column.
    pub points: Vec<Point>,
    /// Which of them each column has.
    pub spans: Vec<Range<usize>>,
    /// Between which codes values are.
    pub codes: Vec<(i32, i32)>,
    probes: Vec<(u32, usize)>,
    /// What codes of a row must not be above.
    pub limits: Vec<i32>,
    /// The same, for a row to be met for certain.
    pub sure: Vec<i32>,
    /// Columns of intervals with other than one value, and their positions.
    pub several: Vec<(usize, usize)>,
    acc: Bits,
    other: Bits,
    sparse: Vec<u32>,
    /// Rows of a block.
    pub candidates: Vec<u32>,
    /// The constants of a row.
    pub constants: Vec<Id>,
}

/// Writes the candidates of a block; says whether only intervals are left to be compared. Nothing
/// if there are no candidates.
pub fn candidates(block: &Block, scratch: &mut TableScratch) -> Option<bool> {
    let TableScratch { points, spans, codes, probes, limits, sure, several, candidates, .. } =
        scratch;
    probes.clear();
    several.clear();
    limits.clear();
    limits.resize(block.width, NO_LOW);
    codes.resize(points.len(), (0, 0));
    for pair in limits.chunks_exact_mut(2) {
        pair[1] = !NO_HIGH;
    }
    sure.clone_from(limits);
    let rows = block.rows.len() as u32;
    let mut shortest = None;
    for (at, column) in block.columns.iter().enumerate() {
        let span = spans[at].clone();
        let estimate = match column {
            BlockColumn::Free => rows,
            BlockColumn::Present(_) if !span.is_empty() => rows,
            BlockColumn::Present(free) => free.1,
            BlockColumn::Terms(column) => {
                let mut count = column.free.1;
                let mut is_short = count == 0;
                for point in &points[span] {
                    let frequent = column.bitmap(point.id).map_or(0, |(_, count)| count);
                    is_short &= frequent == 0;
                    count += frequent + column.posting(point.id).len() as u32;
                }
                if is_short && count <= 32 + rows / 256 {
                    shortest = shortest.max(Some((u32::MAX - count, at)));
                }
                count
            }
            BlockColumn::Intervals(column) if span.is_empty() => column.free.1,
            BlockColumn::Intervals(column) => {
                let mut cells = 0;
                for (point, code) in points[span.clone()].iter().zip(&mut codes[span.clone()]) {
                    *code = column.scale.codes(point);
                    cells |= column.cells(*code);
                }
                let position = column.position;
                if span.len() == 1 {
                    let (a, b) = codes[span.start];
                    limits[2 * position] = b;
                    limits[2 * position + 1] = !a;
                    sure[2 * position] = a.saturating_sub(column.slack);
                    sure[2 * position + 1] = !b.saturating_add(column.slack);
                } else {
                    limits[2 * position..][..2].fill(i32::MAX);
                    sure[2 * position..][..2].fill(i32::MAX);
                    several.push((at, position));
                }
                column.count(cells)
            }
        };
        if estimate == 0 {
            return None;
        }
        if estimate < rows || matches!(column, BlockColumn::Terms(_)) {
            probes.push((estimate, at));
        }
    }
    candidates.clear();
    if let Some((_, at)) = shortest
        && let BlockColumn::Terms(column) = &block.columns[at]
    {
        for point in &points[spans[at].clone()] {
            candidates.extend(column.posting(point.id).iter().map(|&row| u32::from(row)));
        }
        candidates.sort_unstable();
        candidates.dedup();
        candidates.retain(|&row| block.is_alive(row as usize));
        return Some(probes.iter().all(|&(_, other)| {
            other == at || matches!(block.columns[other], BlockColumn::Intervals(_))
        }));
    }
    intersect(block, scratch).then_some(true)
}

/// Writes the rows that are in a bitmap of each column; says whether there are any.
fn intersect<'a>(block: &'a Block, scratch: &mut TableScratch) -> bool {
    let TableScratch { points, spans, codes, probes, acc, other, sparse, candidates, .. } = scratch;
    probes.sort_unstable();
    acc.clone_from(&block.alive);
    let mut is_sparse = false;
    let rows = block.rows.len().max(1) as f64;
    let mut expected = rows;
    for &(estimate, at) in &*probes {
        expected *= (f64::from(estimate) / rows).min(1.0);
        let points = &points[spans[at].clone()];
        let mut only: Option<&[u64]> = None;
        let mut count = 0;
        let mut put = |bits: &'a [u64], other: &mut Bits| {
            match only {
                _ if bits.is_empty() => return,
                None => only = Some(bits),
                Some(first) => {
                    if count == 1 {
                        other.clear();
                        other.extend_from_slice(first);
                    }
                    other.iter_mut().zip(bits).for_each(|(all, bits)| *all |= bits);
                }
            }
            count += 1;
        };
        match &block.columns[at] {
            BlockColumn::Free => continue,
            BlockColumn::Present(free) => put(&free.0, other),
            BlockColumn::Intervals(column) if points.is_empty() => put(&column.free.0, other),
            BlockColumn::Intervals(column) => {
                let own = codes[spans[at].clone()].iter();
                let cells = own.fold(0, |all, code| all | column.cells(*code));
                column.bitmaps(cells).for_each(|bits| put(bits, other));
            }
            BlockColumn::Terms(column) => {
                put(&column.free.0, other);
                for (bits, _) in points.iter().filter_map(|point| column.bitmap(point.id)) {
                    put(bits, other);
                }
                let postings = || points.iter().flat_map(|point| column.posting(point.id));
                if postings().next().is_some() {
                    if count < 2 {
                        other.clear();
                        other.extend_from_slice(only.unwrap_or_default());
                        other.resize(acc.len(), 0);
                    }
                    count = 2;
                    for &row in postings() {
                        other[usize::from(row) / 64] |= 1 << (row % 64);
                    }
                }
            }
        }
        let bits = if count > 1 { other.as_slice() } else { only.unwrap_or_default() };
        if is_sparse {
            sparse.retain(|&at| {
                let at = at as usize;
                acc[at] &= bits.get(at).copied().unwrap_or(0);
                acc[at] != 0
            });
        } else {
            acc.iter_mut().zip(bits).for_each(|(all, bits)| *all &= bits);
            // from here on most words have no rows, if columns do not depend on each other
            if expected * 4.0 < acc.len() as f64 {
                is_sparse = true;
                sparse.clear();
                let full = acc.iter().enumerate().filter(|(_, word)| **word != 0);
                sparse.extend(full.map(|(at, _)| at as u32));
            }
        }
        if is_sparse && sparse.is_empty() {
            return false;
        }
    }
    let mut rows_of = |at: usize| {
        let mut word = acc[at];
        while word != 0 {
            candidates.push((at * 64) as u32 + word.trailing_zeros());
            word &= word - 1;
        }
    };
    if is_sparse {
        sparse.iter().for_each(|&at| rows_of(at as usize));
    } else {
        (0..acc.len()).for_each(rows_of);
    }
    !candidates.is_empty()
}
