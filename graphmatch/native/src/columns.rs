//! One column of a block of rows: which of up to 65,536 rows may be met by a value.
//!
//! A column of terms has a bitmap for each frequent term and a posting list for each other. A
//! column of intervals maps numbers to integer codes, in order ([`Scale`]), cuts the line of codes
//! into cells at quantiles of the places where rows begin or end to be met, and has a bitmap for
//! each cell. A place where many rows change is a cut of its own, so grades or years need no more
//! than their bitmaps. What cells leave undecided is decided by comparing codes, and what codes
//! leave undecided, because a value is no exact `f64`, by the constants themselves.

use crate::dictionary::{INLINE, Id, inline};
use crate::values::Order;

/// The most rows of a block.
pub const MOST_ROWS: usize = 1 << 16;
/// How many cells a column of intervals has at most.
const CELLS: usize = 20;
/// How many bounds the cuts of a column are chosen by.
const SAMPLE: usize = 4096;
/// The least code of a value. Below it is room for what is less certain by some codes.
const BASE: i32 = 1 << 20;
/// By how many codes a bound may be off. Columns with more are compared by their constants.
const MOST_SLACK: i32 = BASE - 1;
/// The bound of a row without a lower bound, and without an upper one.
pub const NO_LOW: i32 = 0;
/// See [`NO_LOW`].
pub const NO_HIGH: i32 = i32::MAX;
/// How many segments a scale has.
const SEGMENTS: usize = 64;
const SEGMENT: f64 = (1 << 24) as f64;
const DIGITS: Id = (1 << 28) - 1;

/// A set of rows of a block, one bit each; empty means none.
pub type Bits = Vec<u64>;

/// How many words the rows of a block have.
pub fn words(rows: usize) -> usize {
    rows.div_ceil(64)
}

fn set(bits: &mut [u64], row: usize) {
    if let Some(word) = bits.get_mut(row / 64) {
        *word |= 1 << (row % 64);
    }
}

/// A bound of an interval: its constant, and whether that itself is inside (`<=` or `>=`).
pub type Bound = (Id, bool);

/// Gives the order of a constant.
pub type OrderOf<'a> = &'a dyn Fn(Id) -> Order;

/// A value that a publication gives to a column, and between what it is on the column's line.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The value's term.
    pub id: Id,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
}

/// Maps numbers to codes, in order.
pub enum Scale {
    /// For numbers that are their own ids, with so many digits after the point: codes are odd for
    /// numbers that have no more digits, and even between them. They say the constant itself.
    Inline(u32),
    /// For few different numbers: odd codes for them, even ones between.
    Exact(Vec<f64>),
    /// For many: cuts at quantiles, and between them in proportion.
    Cut(Vec<f64>),
}

impl Scale {
    fn of(bounds: &[[Option<Bound>; 2]], order: OrderOf) -> Self {
        let given = || bounds.iter().flatten().flatten();
        let mut places = given().map(|&(id, _)| inline::number(id).map(|(_, places)| places));
        if let Some(Some(first)) = places.next()
            && places.all(|other| other == Some(first))
        {
            return Self::Inline(first);
        }
        let step = (2 * bounds.len()).div_ceil(SAMPLE).max(1);
        let mut points = Vec::with_capacity(2 * SAMPLE);
        for &(id, _) in given().step_by(step) {
            let order = order(id);
            points.push(order.low());
            if order.high() > order.low() {
                points.push(order.high());
            }
        }
        points.sort_unstable_by(f64::total_cmp);
        points.dedup();
        if points.len() <= SAMPLE / 2 && step > 1 {
            // perhaps these are all
            let mut seen = hashbrown::HashSet::new();
            for &(id, _) in given() {
                let order = order(id);
                seen.extend([order.low().to_bits(), order.high().to_bits()]);
                if seen.len() > SAMPLE {
                    break;
                }
            }
            if seen.len() <= SAMPLE {
                points = seen.into_iter().map(f64::from_bits).collect();
                points.sort_unstable_by(f64::total_cmp);
                return Self::Exact(points);
            }
        }
        if step == 1 {
            return Self::Exact(points);
        }
        points.retain(|point| point.is_finite());
        let count = points.len().saturating_sub(1);
        let mut cuts: Vec<f64> = (0..=SEGMENTS)
            .filter_map(|segment| points.get(segment * count / SEGMENTS).copied())
            .collect();
        cuts.dedup();
        Self::Cut(cuts)
    }

    /// The code of a number.
    fn code(&self, number: f64) -> i32 {
        match self {
            Self::Inline(_) => BASE,
            Self::Exact(points) => {
                let before = points.partition_point(|&point| point < number);
                let met = points.get(before) == Some(&number);
                BASE + 2 * before as i32 + i32::from(met)
            }
            Self::Cut(points) => {
                let after = points.partition_point(|&point| point <= number);
                let Some(segment) = after.checked_sub(1) else { return BASE };
                let begin = BASE + 1 + ((segment as i32) << 24);
                let (Some(low), Some(high)) = (points.get(segment), points.get(after)) else {
                    return begin;
                };
                let part = (number - low) * (SEGMENT / (high - low));
                begin + (part as i32).clamp(0, SEGMENT as i32 - 1)
            }
        }
    }

    /// Between which codes a value is.
    pub fn codes(&self, point: &Point) -> (i32, i32) {
        let Self::Inline(places) = *self else {
            return (self.code(point.low), self.code(point.high));
        };
        if let Some((digits, given)) = inline::number(point.id) {
            let unit = 10i64.pow(places.abs_diff(given));
            if given <= places {
                let code = inline_code((digits * unit) as f64, true);
                return (code, code);
            }
            let code = inline_code(digits.div_euclid(unit) as f64, digits % unit == 0);
            return (code, code);
        }
        let unit = 10f64.powi(places as i32);
        if places == 0 {
            let at = |number: f64| inline_code(number.floor(), number.floor() == number);
            return (at(point.low), at(point.high));
        }
        let at = |number: f64, widen: f64| number * unit + (number * unit).abs() * widen;
        let (low, high) = (at(point.low, -1e-15).floor(), at(point.high, 1e-15).ceil());
        (inline_code(low, true), inline_code(high, true))
    }

    /// The codes of a bound: the one that a value must reach to meet it perhaps, and the one that
    /// it must reach to meet it for certain.
    fn bound(&self, (id, closed): Bound, is_low: bool, order: OrderOf) -> (i32, i32) {
        let open = if closed { 0 } else { 1 };
        let exactly = |code: i32| {
            let code = if is_low { code + open } else { code - open };
            (code, code)
        };
        if let Self::Inline(_) = self {
            return exactly(BASE + 2 * ((id & DIGITS) as i32 + 1) + 1);
        }
        let order = order(id);
        let (low, high) = (order.low(), order.high());
        match self {
            Self::Exact(_) if low == high => exactly(self.code(low)),
            _ if is_low => (self.code(low), self.code(high) + 1),
            _ => (self.code(high), self.code(low) - 1),
        }
    }

    /// Whether codes say constants.
    pub fn is_inline(&self) -> bool {
        matches!(self, Self::Inline(_))
    }

    /// The constant of a bound by its code, where codes say constants.
    pub fn constant(&self, code: i32, is_low: bool, closed: bool) -> Option<Id> {
        let Self::Inline(places) = *self else { return None };
        let open = i32::from(!closed);
        let code = if is_low { code - open } else { code + open };
        Some(INLINE | places << 28 | ((code - BASE - 1) / 2 - 1) as Id & DIGITS)
    }
}

/// The code of a whole number of units, or of what is above it and below the next.
fn inline_code(digits: f64, is_met: bool) -> i32 {
    // far off is as good as just outside of what fits
    let digits = digits.clamp(-f64::from(1 << 27) - 1.0, f64::from(1 << 27)) as i32;
    BASE + 2 * (digits + (1 << 27) + 1) + if is_met { 1 } else { 2 }
}

/// A column of terms.
#[derive(Default)]
pub struct TermColumn {
    /// The rows that do not constrain the column, and how many.
    pub free: (Bits, u32),
    /// Terms of many rows, in order, with their bitmaps and numbers of rows.
    frequent: Vec<Id>,
    bitmaps: Vec<Bits>,
    counts: Vec<u32>,
    /// Other terms, in order, and their posting lists one behind the other.
    rare: Vec<Id>,
    starts: Vec<u32>,
    postings: Vec<u16>,
}

impl TermColumn {
    /// Builds a column from pairs of a term and a row.
    pub fn build(mut pairs: Vec<(Id, u16)>, free: (Bits, u32), rows: usize) -> Self {
        let mut column = Self { free, ..Self::default() };
        pairs.sort_unstable();
        pairs.dedup();
        for same in pairs.chunk_by(|one, other| one.0 == other.0) {
            if same.len() >= (rows / 64).max(16) {
                let mut bits = vec![0; words(rows)];
                same.iter().for_each(|&(_, row)| set(&mut bits, row.into()));
                column.frequent.push(same[0].0);
                column.bitmaps.push(bits);
                column.counts.push(same.len() as u32);
            } else {
                column.rare.push(same[0].0);
                column.starts.push(column.postings.len() as u32);
                column.postings.extend(same.iter().map(|&(_, row)| row));
            }
        }
        column.starts.push(column.postings.len() as u32);
        column
    }

    /// The bitmap of a frequent term, and how many rows it has.
    pub fn bitmap(&self, term: Id) -> Option<(&[u64], u32)> {
        let at = self.frequent.binary_search(&term).ok()?;
        Some((&self.bitmaps[at], self.counts[at]))
    }

    /// The posting list of another term.
    pub fn posting(&self, term: Id) -> &[u16] {
        let Ok(at) = self.rare.binary_search(&term) else { return &[] };
        &self.postings[self.starts[at] as usize..self.starts[at + 1] as usize]
    }

    fn bytes(&self) -> usize {
        let bits: usize = self.bitmaps.iter().map(Vec::len).sum();
        8 * (bits + self.free.0.len())
            + 8 * (self.frequent.len() + self.rare.len())
            + 2 * self.postings.len()
    }
}

/// A column of intervals.
pub struct IntervalColumn {
    /// The rows that do not constrain the column, and how many.
    pub free: (Bits, u32),
    /// Maps values to codes.
    pub scale: Scale,
    /// By how many codes a bound may be off.
    pub slack: i32,
    /// The place of the column's codes among those of a row.
    pub position: usize,
    /// The least codes of all cells but the first.
    cuts: Vec<i32>,
    cells: Vec<Bits>,
    counts: Vec<u32>,
}

impl IntervalColumn {
    /// Builds a column from the bounds of all rows; writes their codes, of which a row has
    /// `stride`, upper bounds as their complements, so that all codes are compared alike.
    pub fn build(
        bounds: &[[Option<Bound>; 2]],
        free: (Bits, u32),
        position: usize,
        codes: &mut [i32],
        stride: usize,
        order: OrderOf,
    ) -> Self {
        let scale = Scale::of(bounds, order);
        let mut slack = 0;
        for ([low, high], codes) in bounds.iter().zip(codes.chunks_exact_mut(stride)) {
            let mut code = |bound: Option<Bound>, is_low, otherwise| {
                bound.map_or(otherwise, |bound| {
                    let (perhaps, certain) = scale.bound(bound, is_low, order);
                    slack = slack.max((certain - perhaps).abs());
                    perhaps
                })
            };
            codes[2 * position] = code(*low, true, NO_LOW);
            codes[2 * position + 1] = !code(*high, false, NO_HIGH);
        }
        let ends = |codes: &[i32]| (codes[2 * position], !codes[2 * position + 1]);
        let cuts = cuts(codes.chunks_exact(stride).map(ends), bounds.len());
        let cell = |code: i32| cuts.partition_point(|&cut| cut <= code);
        let mut cells = vec![vec![0u64; words(bounds.len())]; cuts.len() + 1];
        for (row, codes) in codes.chunks_exact(stride).enumerate() {
            let (low, high) = ends(codes);
            let (first, last) = (cell(low), cell(high));
            if first <= last {
                // where the row begins and where it has ended; what is between comes below
                cells[first][row / 64] ^= 1 << (row % 64);
                if let Some(after) = cells.get_mut(last + 1) {
                    after[row / 64] ^= 1 << (row % 64);
                }
            }
        }
        for at in 1..cells.len() {
            let (before, after) = cells.split_at_mut(at);
            after[0].iter_mut().zip(&before[at - 1]).for_each(|(bits, begun)| *bits ^= begun);
        }
        let count = |bits: &Bits| bits.iter().map(|word| word.count_ones()).sum();
        let counts = cells.iter().map(count).collect();
        let slack = if slack > MOST_SLACK { i32::MAX } else { slack };
        Self { free, scale, slack, position, cuts, cells, counts }
    }

    /// The cells between two codes, as a set of their numbers.
    pub fn cells(&self, (low, high): (i32, i32)) -> u32 {
        let cell = |code: i32| self.cuts.partition_point(|&cut| cut <= code);
        (cell(low)..=cell(high)).fold(0, |cells, cell| cells | 1 << cell)
    }

    /// How many rows some cells have, those of several counted several times.
    pub fn count(&self, cells: u32) -> u32 {
        numbers(cells).filter_map(|cell| self.counts.get(cell)).sum()
    }

    /// The bitmaps of some cells.
    pub fn bitmaps(&self, cells: u32) -> impl Iterator<Item = &[u64]> {
        numbers(cells).filter_map(|cell| self.cells.get(cell).map(Vec::as_slice))
    }

    fn bytes(&self) -> usize {
        let points = match &self.scale {
            Scale::Inline(_) => 0,
            Scale::Exact(points) | Scale::Cut(points) => points.len(),
        };
        8 * (points + self.cells.iter().map(Vec::len).sum::<usize>() + self.free.0.len())
    }
}

/// The numbers in a set of them.
fn numbers(mut set: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = set.trailing_zeros();
        set &= set.wrapping_sub(1);
        (first < 32).then_some(first as usize)
    })
}

/// Chooses where to cut a line of codes, by the places where rows begin or end to be met.
fn cuts(ends: impl Iterator<Item = (i32, i32)>, rows: usize) -> Vec<i32> {
    let step = (2 * rows).div_ceil(SAMPLE).max(1);
    let mut changes: Vec<i32> = Vec::with_capacity(SAMPLE + 2);
    for (low, high) in ends.step_by(step) {
        changes.extend((low != NO_LOW).then_some(low));
        changes.extend((high != NO_HIGH).then(|| high + 1));
    }
    changes.sort_unstable();
    let distinct = changes.chunk_by(|one, other| one == other).count();
    let most = if distinct < CELLS { 0 } else { changes.len().div_ceil(CELLS - 1) };
    let mut cuts = Vec::with_capacity(CELLS);
    let mut inside = 0;
    for same in changes.chunk_by(|one, other| one == other) {
        inside += same.len();
        if inside > most && cuts.len() < CELLS - 1 {
            // changes at a cut are in no cell
            cuts.push(same[0]);
            inside = 0;
        }
    }
    cuts
}

/// What a block knows of one column of its table.
pub enum BlockColumn {
    /// No row constrains it.
    Free,
    /// Some rows, those without a bit, want it to have a value.
    Present((Bits, u32)),
    /// Some rows want it to have one of their terms.
    Terms(TermColumn),
    /// Some rows want it to have a value in their interval.
    Intervals(IntervalColumn),
}

impl BlockColumn {
    /// How many bytes it takes.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Free => 0,
            Self::Present(free) => 8 * free.0.len(),
            Self::Terms(column) => column.bytes(),
            Self::Intervals(column) => column.bytes(),
        }
    }
}
