//! A block of a predicate table: up to 65,536 rows, and the bitmaps that find candidates.
//!
//! A row is its shape and its constants. Each column has sets of rows:
//!
//! - A column of terms has a set for each term.
//! - A column of intervals has a set for each cell of the number line: the rows whose interval
//!   overlaps the cell. Cells are cut at quantiles of the places where intervals begin and end. A
//!   place where many intervals do is a cut of its own, so grades or years get exact cells.
//!
//! A new row is added to these sets. The cuts are chosen when the block is made from the rows of
//! another: when a block has twice the rows that it was made from, it is made again.
//!
//! The rows that are in a set of each column are candidates. Numbers that are their own ids are in
//! order, so the constants of a candidate are compared with a window of ids each, side by side.

use crate::dictionary::{Id, inline};
use crate::predicates::conjunction::{ColumnTest, ConjunctionShape, TableColumn, TestKind};
use crate::values::SortKey;
use hashbrown::HashMap;
use slab::Slab;
use std::ops::Range;

/// Maximum number of rows in a block.
pub const MAX_ROWS: usize = 1 << 16;
/// Number of rows of a block when its cuts are chosen for the first time.
const FIRST_ROWS: usize = 256;
/// Maximum number of cells of a column of intervals.
const MAX_CELLS: usize = 20;
/// Number of rows by which the cuts of a column are chosen.
const SAMPLE_ROWS: usize = 2048;
/// Number of rows in a part of a bitmap.
const PART_ROWS: usize = 512;

/// Part of a bitmap.
type Part = [u64; PART_ROWS / 64];

/// A part without rows.
const NOTHING: Part = [0; PART_ROWS / 64];

/// Adds the rows of the part with a number to a list. This is not inlined, so that parts that are
/// intersected stay in the processor's registers.
#[inline(never)]
fn list(part: Part, number: usize, rows: &mut Vec<u32>) {
    for (at, mut word) in part.into_iter().enumerate() {
        let first = (number * PART_ROWS + at * 64) as u32;
        while word != 0 {
            rows.push(first + word.trailing_zeros());
            word &= word - 1;
        }
    }
}

/// The word of a bitmap that has a row.
fn word(bitmap: &mut [Part], row: usize) -> &mut u64 {
    &mut bitmap[row / PART_ROWS][row % PART_ROWS / 64]
}

/// Adds a row to a bitmap, which grows.
fn add(bitmap: &mut Vec<Part>, row: usize) {
    if bitmap.len() <= row / PART_ROWS {
        bitmap.resize(row / PART_ROWS + 1, NOTHING);
    }
    *word(bitmap, row) |= 1 << (row % 64);
}

/// A shape that some rows have.
pub struct RegisteredShape {
    /// The shape.
    pub shape: ConjunctionShape,
    /// The table of its rows.
    pub table: usize,
    /// The tests of columns of the table, with the number of each column.
    pub tests: Vec<(usize, ColumnTest)>,
    /// Number of rows.
    pub rows: usize,
    /// Whether a candidate may not match.
    pub needs_check: bool,
}

impl RegisteredShape {
    /// Returns the shape's test of a column of the table.
    fn test_of(&self, column: usize) -> Option<&ColumnTest> {
        self.tests.iter().find(|(at, _)| *at == column).map(|(_, one)| one)
    }
}

/// The keys of constants that are not their own ids.
pub type Keys = HashMap<Id, SortKey>;

/// The shapes of all rows.
pub type Shapes = Slab<RegisteredShape>;

/// The key of a constant.
pub fn key_of(id: Id, keys: &Keys) -> SortKey {
    SortKey::of_inline(id).or_else(|| keys.get(&id).copied()).unwrap_or_default()
}

/// A set of rows: a sorted list while it is short, then a bitmap.
#[derive(Clone, Default)]
struct RowSet {
    list: Vec<u16>,
    bitmap: Vec<Part>,
    count: u32,
}

impl RowSet {
    /// Adds a row that is larger than all others.
    fn insert(&mut self, row: usize) {
        self.count += 1;
        if self.bitmap.is_empty() && self.list.len() <= 16 + row / 64 {
            return self.list.push(row as u16);
        }
        add(&mut self.bitmap, row);
        self.list.drain(..).for_each(|row| add(&mut self.bitmap, row.into()));
    }

    /// Adds all rows to a bitmap.
    fn add_to(&self, bitmap: &mut [Part]) {
        for (all, own) in bitmap.iter_mut().zip(&self.bitmap) {
            all.iter_mut().zip(own).for_each(|(all, own)| *all |= own);
        }
        for row in self.list.iter().map(|&row| usize::from(row)) {
            *word(bitmap, row) |= 1 << (row % 64);
        }
    }
}

/// A value that a publication has for a column, and the numbers between which it is.
#[derive(Clone, Copy)]
pub struct Point {
    /// The value's term.
    pub id: Id,
    /// The least number that it may be.
    pub low: f64,
    /// The largest number that it may be.
    pub high: f64,
}

/// The rows of a block by one column of its table.
struct BlockColumn {
    test: TestKind,
    /// The rows that do not use the column.
    free: RowSet,
    terms: HashMap<Id, RowSet>,
    /// The least number of each cell but the first.
    cuts: Vec<f64>,
    cells: Vec<RowSet>,
    /// The decimal places of all bounds, if these are the same and all bounds are their own ids.
    places: Option<u32>,
    is_mixed: bool,
}

impl BlockColumn {
    /// A column that some rows do not use.
    fn new(test: TestKind, cuts: Vec<f64>, rows: usize) -> Self {
        let mut free = RowSet::default();
        (0..rows).for_each(|row| free.insert(row));
        let cells = vec![free.clone(); cuts.len() + 1];
        Self { test, free, cuts, cells, terms: HashMap::default(), places: None, is_mixed: false }
    }

    fn cell(&self, number: f64) -> usize {
        self.cuts.partition_point(|&cut| cut <= number)
    }

    /// Adds the next row.
    fn push(&mut self, row: usize, test: Option<&ColumnTest>, constants: &[Id], keys: &Keys) {
        let Some(test) = test else {
            self.free.insert(row);
            return self.cells.iter_mut().for_each(|cell| cell.insert(row));
        };
        if self.test == TestKind::Term {
            let mut terms: Vec<Id> =
                test.terms.iter().map(|&slot| constants[slot as usize]).collect();
            terms.sort_unstable();
            terms.dedup();
            terms.into_iter().for_each(|term| self.terms.entry(term).or_default().insert(row));
        }
        for &(slot, _) in test.bounds.iter().flatten() {
            let places = inline::number(constants[slot as usize]).map(|(_, places)| places);
            self.is_mixed |= places.is_none() || self.places.is_some_and(|one| Some(one) != places);
            self.places = places.filter(|_| !self.is_mixed);
        }
        let [low, high] = interval(test, constants, keys).map(|end| self.cell(end));
        self.cells[low..=high.max(low)].iter_mut().for_each(|cell| cell.insert(row));
    }

    /// The sets of the rows that some values may match.
    fn sets(&self, points: &[Point]) -> impl Iterator<Item = &RowSet> + Clone {
        let is_interval = matches!(self.test, TestKind::Interval(_)) && !points.is_empty();
        let within = |point: &Point| self.cell(point.low)..=self.cell(point.high);
        let cells = points.iter().filter(|_| is_interval).flat_map(within);
        let mut left = cells.fold(0_u32, |cells, at| cells | 1 << at);
        let cells = std::iter::from_fn(move || {
            let cell = self.cells.get(left.trailing_zeros() as usize);
            left &= left.wrapping_sub(1);
            cell
        });
        let terms = points.iter().filter_map(|point| self.terms.get(&point.id));
        cells.chain(terms).chain((!is_interval).then_some(&self.free))
    }
}

/// The numbers between which a value has to be.
fn interval(test: &ColumnTest, constants: &[Id], keys: &Keys) -> [f64; 2] {
    let [low, high] =
        test.bounds.map(|end| end.map(|(slot, _)| key_of(constants[slot as usize], keys)));
    [low.map_or(f64::NEG_INFINITY, |key| key.low), high.map_or(f64::INFINITY, |key| key.high)]
}

/// Chooses cuts by the places where intervals begin and end.
fn cuts(ends: impl Iterator<Item = [f64; 2]>) -> Vec<f64> {
    let places = ends.flat_map(|[low, high]| [low, high.next_up()]);
    let mut places: Vec<f64> = places.filter(|place| place.is_finite()).collect();
    places.sort_unstable_by(f64::total_cmp);
    let distinct = places.chunk_by(|one, other| one == other).count();
    let most = if distinct < MAX_CELLS { 0 } else { places.len().div_ceil(MAX_CELLS - 1) };
    let (mut cuts, mut inside) = (Vec::new(), 0);
    for same in places.chunk_by(|one, other| one == other) {
        inside += same.len();
        if inside > most && cuts.len() < MAX_CELLS - 1 {
            cuts.push(same[0]);
            inside = 0; // Intervals that begin at a cut are in no cell in part.
        }
    }
    cuts
}

/// The windows of ids in which all constants of a row have to be, by slot.
#[derive(Default)]
pub struct Windows {
    lows: Vec<i32>,
    highs: Vec<i32>,
    /// Whether all constants have windows, so that candidates outside do not match.
    is_complete: bool,
    /// Whether filters test more than the windows do.
    has_other_filters: bool,
}

impl Windows {
    /// Whether a candidate matches; `None` if its constants have to be compared by value.
    pub fn decide(&self, constants: &[Id]) -> Option<bool> {
        if !self.is_complete {
            return None;
        }
        let is_outside = |id: Id, low: i32, high: i32| {
            i32::from((id as i32) < low) | i32::from(id as i32 > high)
        };
        let (fours, lows, highs) =
            (constants.chunks_exact(4), self.lows.chunks_exact(4), self.highs.chunks_exact(4));
        let rest = fours.remainder().iter().zip(lows.remainder()).zip(highs.remainder());
        // The processor compares four constants at once.
        let mut lanes = [0; 4];
        for ((ids, lows), highs) in fours.zip(lows).zip(highs) {
            for lane in 0..4 {
                lanes[lane] |= is_outside(ids[lane], lows[lane], highs[lane]);
            }
        }
        let outside = rest.fold(lanes[0] | lanes[1] | lanes[2] | lanes[3], |any, one| {
            let ((&id, &low), &high) = one;
            any | is_outside(id, low, high)
        });
        if outside != 0 { Some(false) } else { (!self.has_other_filters).then_some(true) }
    }
}

/// The end of the window of the lower or upper bounds that a value passes, if it is a number with as
/// many decimal places as they have. Such numbers are in the order of their ids.
fn window(point: &Point, places: u32, is_low: bool, is_closed: bool) -> Option<i32> {
    let (digits, _) = inline::number(point.id).filter(|&(_, own)| own == places)?;
    let strict = i64::from(!is_closed);
    let digits = if is_low { digits - strict } else { digits + strict };
    inline::checked(digits, places).map(|id| id as i32)
}

/// Rows of one table.
#[derive(Default)]
pub struct Block {
    /// The numbers of the rows.
    pub rows: Vec<u32>,
    /// The shape of all rows and its number of constants, while all rows have the same shape.
    shape: u32,
    width: usize,
    /// The shape of each row, if not.
    shapes: Vec<u32>,
    /// The end of each row's constants, if not.
    ends: Vec<u32>,
    /// The constants of all rows.
    constants: Vec<Id>,
    /// The rows that were not removed.
    alive: Vec<Part>,
    removed: usize,
    columns: Vec<BlockColumn>,
    /// Number of rows at which the cuts have to be chosen again.
    outgrown: usize,
    /// Whether candidates may not match, because some rows have filters or intervals.
    pub needs_check: bool,
}

impl Block {
    /// An empty block for the rows of another, with cuts chosen by these rows.
    pub fn for_rows_of(old: &Self, columns: &[TableColumn], shapes: &Shapes, keys: &Keys) -> Self {
        let full = (2 * old.len()).min(MAX_ROWS);
        let step = old.len().div_ceil(SAMPLE_ROWS).max(1);
        let column = |(at, column): (usize, &TableColumn)| {
            let ends = old.alive().step_by(step).filter_map(|row| {
                let test = shapes[old.shape(row) as usize].test_of(at)?;
                Some(interval(test, old.constants(row), keys))
            });
            let is_interval = matches!(column.test, TestKind::Interval(_));
            BlockColumn::new(column.test, if is_interval { cuts(ends) } else { Vec::new() }, 0)
        };
        Self {
            rows: Vec::with_capacity(full),
            constants: Vec::with_capacity(full * old.constants.len() / old.rows.len().max(1)),
            columns: columns.iter().enumerate().map(column).collect(),
            outgrown: full,
            ..Self::default()
        }
    }

    /// Whether its cuts have to be chosen again.
    pub fn is_outgrown(&self) -> bool {
        self.rows.len() == self.outgrown.max(FIRST_ROWS) && self.rows.len() < MAX_ROWS
    }

    /// The number of rows that were not removed.
    pub fn len(&self) -> usize {
        self.rows.len() - self.removed
    }

    /// The places of rows that were not removed.
    pub fn alive(&self) -> impl Iterator<Item = usize> {
        let word = |row: usize| self.alive[row / PART_ROWS][row % PART_ROWS / 64];
        (0..self.rows.len()).filter(move |&row| word(row) >> (row % 64) & 1 == 1)
    }

    /// The number of a row's shape.
    pub fn shape(&self, row: usize) -> u32 {
        self.shapes.get(row).copied().unwrap_or(self.shape)
    }

    /// The constants of a row.
    pub fn constants(&self, row: usize) -> &[Id] {
        if self.ends.is_empty() {
            return &self.constants[row * self.width..][..self.width];
        }
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.constants[begin as usize..self.ends[row] as usize]
    }

    /// Adds a row of a table with some columns.
    pub fn push(
        &mut self,
        row: u32,
        (number, shape): (u32, &RegisteredShape),
        constants: &[Id],
        columns: &[TableColumn],
        keys: &Keys,
    ) {
        let at = self.rows.len();
        add(&mut self.alive, at);
        self.needs_check |= shape.needs_check;
        for column in &columns[self.columns.len()..] {
            self.columns.push(BlockColumn::new(column.test, Vec::new(), at));
        }
        for (number, column) in self.columns.iter_mut().enumerate() {
            column.push(at, shape.test_of(number), constants, keys);
        }
        if at == 0 {
            (self.shape, self.width) = (number, constants.len());
        } else if self.ends.is_empty() && number != self.shape {
            self.shapes = vec![self.shape; at];
            self.ends = (1..=at).map(|rows| (rows * self.width) as u32).collect();
        }
        self.rows.push(row);
        self.constants.extend_from_slice(constants);
        if !self.ends.is_empty() {
            self.shapes.push(number);
            self.ends.push(self.constants.len() as u32);
        }
    }

    /// Removes a row; returns whether most rows were removed.
    pub fn remove(&mut self, row: usize) -> bool {
        *word(&mut self.alive, row) &= !(1 << (row % 64));
        self.removed += 1;
        2 * self.removed > self.rows.len()
    }

    /// Finds the windows of the constants of a shape.
    pub fn find_windows(
        &self,
        shape: &RegisteredShape,
        points: &[Point],
        spans: &[Range<usize>],
        windows: &mut Windows,
    ) {
        let slots = shape.shape.classes.len();
        for (ends, all) in [(&mut windows.lows, i32::MIN), (&mut windows.highs, i32::MAX)] {
            ends.clear();
            ends.resize(slots, all);
        }
        windows.is_complete = true;
        windows.has_other_filters = shape.tests.iter().any(|(_, one)| one.has_other_filters);
        for (number, test) in &shape.tests {
            let (points, places) = (&points[spans[*number].clone()], self.columns[*number].places);
            for (at, bound) in test.bounds.iter().enumerate() {
                let &Some((slot, is_closed)) = bound else { continue };
                let (slot, is_low) = (slot as usize, at == 0);
                let end = match (points, places) {
                    ([point], Some(places)) => window(point, places, is_low, is_closed),
                    _ => None,
                };
                match end {
                    Some(end) if is_low => windows.highs[slot] = windows.highs[slot].min(end),
                    Some(end) => windows.lows[slot] = windows.lows[slot].max(end),
                    None => return windows.is_complete = false,
                }
            }
        }
    }

    /// Finds the candidates: the rows that are in a set of each column.
    pub fn candidates(&self, scratch: &mut TableScratch) {
        let TableScratch { points, spans, probes, unions, candidates, .. } = scratch;
        probes.clear();
        candidates.clear();
        let rows = self.rows.len() as u32;
        for (at, column) in self.columns.iter().enumerate() {
            let points = &points[spans[at].clone()];
            let count = column.sets(points).map(|set| set.count).sum();
            let is_all = column.test == TestKind::Present && !points.is_empty();
            if is_all || count >= rows && points.len() == 1 {
                continue;
            }
            if count == 0 {
                return;
            }
            probes.push((count, at));
        }
        probes.sort_unstable();
        // The sets of a column, if these are one or two bitmaps. Otherwise their union is made.
        let pair_of = |at: usize| {
            let sets = self.columns[at].sets(&points[spans[at].clone()]);
            let mut first = sets.clone();
            let pair = [first.next(), first.next()];
            let are_two = first.next().is_none() && sets.clone().all(|set| set.list.is_empty());
            let bitmaps = pair.map(|set| set.map_or(&[][..], |set| &set.bitmap));
            if are_two { Ok(bitmaps) } else { Err(sets) }
        };
        let parts = self.alive.len();
        unions.clear();
        for sets in probes.iter().filter_map(|&(_, at)| pair_of(at).err()) {
            let begin = unions.len();
            unions.resize(begin + parts, NOTHING);
            sets.for_each(|set| set.add_to(&mut unions[begin..]));
        }
        let mut unions = unions.chunks(parts);
        let mut pair_or_union =
            |at| pair_of(at).unwrap_or_else(|_| [unions.next().unwrap_or_default(), &[]]);
        let bitmaps: Vec<[&[Part]; 2]> = probes.iter().map(|&(_, at)| pair_or_union(at)).collect();
        'parts: for (number, &(mut rows)) in self.alive.iter().enumerate() {
            for pair in &bitmaps {
                let [one, other] = pair.map(|bitmap| bitmap.get(number).unwrap_or(&NOTHING));
                let sets = one.iter().zip(other).map(|(one, other)| one | other);
                rows.iter_mut().zip(sets).for_each(|(rows, set)| *rows &= set);
                if rows.iter().fold(0, |any, word| any | word) == 0 {
                    continue 'parts;
                }
            }
            list(rows, number, candidates);
        }
    }
}

/// Buffers that matching a publication needs. Each thread has one and uses it again.
#[derive(Default)]
pub struct TableScratch {
    /// The rows that match.
    pub found: Vec<u32>,
    /// The values of a subject, column by column.
    pub points: Vec<Point>,
    /// The range of each column's values.
    pub spans: Vec<Range<usize>>,
    /// The windows of the constants of a shape.
    pub windows: Windows,
    /// Rows of a block.
    pub candidates: Vec<u32>,
    /// Columns to be intersected, with the number of rows that each leaves, about.
    probes: Vec<(u32, usize)>,
    /// The unions of the sets of columns, one after the other.
    unions: Vec<Part>,
}

#[cfg(test)]
impl Block {
    /// The number of bytes that it takes.
    pub fn bytes(&self) -> usize {
        let sets = |column: &BlockColumn| {
            let sets = column.cells.iter().chain([&column.free]).chain(column.terms.values());
            sets.map(|set| 64 + 2 * set.list.capacity() + 64 * set.bitmap.capacity()).sum::<usize>()
        };
        let integers = [&self.rows, &self.shapes, &self.ends, &self.constants];
        4 * integers.map(Vec::capacity).iter().sum::<usize>()
            + 64 * self.alive.len()
            + self.columns.iter().map(sets).sum::<usize>()
    }
}
