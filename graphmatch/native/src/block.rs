//! A block of a predicate table: up to 65,536 rows, and what finds those that a point may meet.
//!
//! A row is its template and its constants. A block that is built has columns of them:
//!
//! - A column of terms has a bitmap for each frequent term and a posting list for each other.
//! - A column of intervals maps numbers to integer codes ([`Scale`]), and has a bitmap for each of
//!   some cells of these, cut at quantiles of the places where rows begin or end to be met. A place
//!   where many rows change is a cut of its own, so grades or years need no more than their bitmaps.
//! - What bitmaps leave is compared by the codes of bounds, all of a row side by side. What codes
//!   leave undecided, because a value is not exact, is decided by the constants themselves.

use crate::conjunction::{Column, Template, Test, Use};
use crate::dictionary::{ANY, Id, inline};
use crate::values::Order;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use slab::Slab;
use std::ops::Range;

/// The most rows of a block.
pub const MOST_ROWS: usize = 1 << 16;
/// How many cells a column of intervals has at most.
const CELLS: usize = 20;
/// How many places where rows change the cuts of a column are chosen by.
const SAMPLE: usize = 4096;
/// The code of a row without a bound, below those of all numbers.
const UNBOUNDED: i32 = i32::MIN;

/// A template that some rows have.
pub struct Known {
    /// The template.
    pub template: Template,
    /// The table of its rows.
    pub table: usize,
    /// What it asks of columns of the table, by number.
    pub uses: Vec<(usize, Use)>,
    /// Whether filters ask more than columns do.
    pub rest: bool,
    /// How many rows have it.
    pub rows: usize,
}

impl Known {
    /// What it asks of a column of the table.
    fn use_of(&self, column: usize) -> Option<&Use> {
        self.uses.iter().find(|(at, _)| *at == column).map(|(_, one)| one)
    }
}

/// The orders of constants that are not their own ids.
pub type Orders = HashMap<Id, Order, RandomState>;

/// A set of rows.
#[derive(Clone, Default)]
struct Bitmap {
    /// A bit for each row; empty if there are none.
    words: Vec<u64>,
    count: u32,
}

impl Bitmap {
    fn of(rows: impl Iterator<Item = usize>, most: usize) -> Self {
        let mut bitmap = Self::default();
        for row in rows {
            bitmap.words.resize(most.div_ceil(64), 0);
            bitmap.words[row / 64] |= 1 << (row % 64);
            bitmap.count += 1;
        }
        bitmap
    }
}

/// A value that a publication gives to a column, and between what it is on the column's line.
#[derive(Clone, Copy)]
pub struct Point {
    /// The value's term.
    pub id: Id,
    /// The least that it may be.
    pub low: f64,
    /// The most that it may be.
    pub high: f64,
}

/// Maps numbers to codes, in order. Even codes stand for one number each, odd ones for all between.
#[derive(Clone, Copy, PartialEq)]
enum Scale {
    /// For numbers that are their own ids, with so many digits after the point: codes say them.
    Inline(u32),
    /// For others: their first 20 binary digits.
    Float,
}

impl Scale {
    /// A scale for some constants.
    fn of(mut constants: impl Iterator<Item = Id>) -> Self {
        let places = |id: Id| inline::number(id).map(|(_, places)| places);
        match constants.next().and_then(places) {
            Some(first) if constants.all(|id| places(id) == Some(first)) => Self::Inline(first),
            _ => Self::Float,
        }
    }

    fn code(self, number: f64) -> i32 {
        if self == Self::Float {
            let bits = number.to_bits() as i64;
            let ordered = if bits < 0 { i64::MIN - bits } else { bits };
            return ((ordered >> 32) as i32 & !1) | i32::from(ordered & ((1 << 33) - 1) != 0);
        }
        let whole = number.floor();
        // far off is as good as just outside of what is inlined
        2 * whole.clamp(-1e9, 1e9) as i32 + i32::from(whole != number)
    }

    /// Between which codes a value is.
    fn codes(self, point: &Point) -> [i32; 2] {
        let Self::Inline(places) = self else {
            return [point.low, point.high].map(|number| self.code(number));
        };
        match inline::number(point.id) {
            Some((digits, own)) if own == places => [2 * digits as i32; 2],
            _ if places == 0 => [self.code(point.low), self.code(point.high)],
            _ => {
                let [low, high] =
                    [point.low, point.high].map(|one| one * 10f64.powi(places as i32));
                [self.code(low - low.abs() * 1e-15), self.code(high + high.abs() * 1e-15)]
            }
        }
    }

    /// The codes that a value has to reach to meet a bound perhaps, and for certain.
    fn bound(self, id: Id, is_closed: bool, is_low: bool, order: Order) -> (i32, i32) {
        let [low, high] = match inline::number(id) {
            Some((digits, _)) if self != Self::Float => [2 * digits as i32; 2],
            _ => [self.code(order.low()), self.code(order.high())],
        };
        let is_exact = low == high && low % 2 == 0;
        let inside = if is_exact { i32::from(!is_closed) } else { high - low + 1 };
        let (perhaps, certain) = if is_low { (low, low + inside) } else { (high, high - inside) };
        if is_exact { (certain, certain) } else { (perhaps, certain) }
    }

    /// The constant of a bound, where codes say constants.
    fn constant(self, code: i32, is_closed: bool, is_low: bool) -> Option<Id> {
        let Self::Inline(places) = self else { return None };
        let inside = i32::from(!is_closed) * if is_low { 1 } else { -1 };
        Some(inline::of(i64::from((code - inside) / 2), places))
    }
}

/// A column of intervals.
struct Intervals {
    scale: Scale,
    /// The most codes by which a bound is uncertain.
    slack: i32,
    /// The place of the column's codes among those of a row.
    position: usize,
    /// The least codes of all cells but the first.
    cuts: Vec<i32>,
    cells: Vec<Bitmap>,
}

/// A bound of an interval: its constant, and whether that itself is inside.
type Bound = (Id, bool);

impl Intervals {
    /// Builds a column from the lower and upper bounds of rows; writes their codes, of which a row
    /// has `width`, upper ones as their complements, so that all codes are compared alike.
    fn build(
        bounds: &[[Option<Bound>; 2]],
        position: usize,
        codes: &mut [i32],
        width: usize,
        orders: &Orders,
    ) -> Self {
        let scale = Scale::of(bounds.iter().flatten().flatten().map(|bound| bound.0));
        let mut slack = 0;
        for (row, codes) in bounds.iter().zip(codes.chunks_exact_mut(width)) {
            for (place, bound) in row.iter().enumerate() {
                let &Some((id, is_closed)) = bound else { continue };
                let order =
                    if scale == Scale::Float { order_of(id, orders) } else { Order::default() };
                let (perhaps, certain) = scale.bound(id, is_closed, place == 0, order);
                slack = slack.max((certain - perhaps).abs());
                codes[2 * position + place] = if place == 0 { perhaps } else { !perhaps };
            }
        }
        let ends = |codes: &[i32]| [codes[2 * position], !codes[2 * position + 1]];
        let cuts = cuts(codes.chunks_exact(width).map(ends), bounds.len());
        let words = bounds.len().div_ceil(64);
        let mut cells = vec![Bitmap { words: vec![0; words], count: 0 }; cuts.len() + 1];
        for (row, codes) in codes.chunks_exact(width).enumerate() {
            let [first, last] = ends(codes).map(|code| cuts.partition_point(|&cut| cut <= code));
            if first <= last {
                // where the row begins and where it has ended; what is between comes below
                cells[first].words[row / 64] ^= 1 << (row % 64);
                if let Some(after) = cells.get_mut(last + 1) {
                    after.words[row / 64] ^= 1 << (row % 64);
                }
            }
        }
        for at in 1..cells.len() {
            let (before, after) = cells.split_at_mut(at);
            let pairs = after[0].words.iter_mut().zip(&before[at - 1].words);
            pairs.for_each(|(bits, begun)| *bits ^= begun);
        }
        for cell in &mut cells {
            cell.count = cell.words.iter().map(|word| word.count_ones()).sum();
        }
        Self { scale, slack, position, cuts, cells }
    }

    /// Says which cells some values are in, and which codes a row must not be above to be met:
    /// perhaps, and for certain.
    fn look_up(&self, points: &[Point]) -> (u32, [i32; 2], [i32; 2]) {
        let cell = |code: i32| self.cuts.partition_point(|&cut| cut <= code);
        let (mut cells, mut limits, mut sure) = (0, [UNBOUNDED; 2], [UNBOUNDED; 2]);
        for point in points {
            let [low, high] = self.scale.codes(point);
            cells |= (cell(low)..=cell(high)).fold(0, |cells, cell| cells | 1 << cell);
            limits = [limits[0].max(high), limits[1].max(!low)];
            if points.len() == 1 {
                // no uncertain bound has the code of a number
                let is_number = low == high && low % 2 == 0 && self.slack == 1;
                let slack = if is_number { 0 } else { self.slack };
                sure = [low.saturating_sub(slack), (!high).saturating_sub(slack)];
            }
        }
        (cells, limits, sure)
    }

    /// Some of the cells.
    fn cells(&self, set: u32) -> impl Iterator<Item = &Bitmap> + Clone {
        self.cells.iter().enumerate().filter(move |(at, _)| set >> at & 1 == 1).map(|(_, one)| one)
    }
}

/// Chooses where to cut the codes of rows, by the places where these begin or end to be met.
fn cuts(ends: impl Iterator<Item = [i32; 2]>, rows: usize) -> Vec<i32> {
    let mut changes: Vec<i32> = Vec::with_capacity(SAMPLE + 2);
    for [low, high] in ends.step_by((2 * rows).div_ceil(SAMPLE).max(1)) {
        changes.extend((low != UNBOUNDED).then_some(low));
        changes.extend((high != !UNBOUNDED).then(|| high + 1));
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

/// A column of terms.
#[derive(Default)]
struct Terms {
    /// Terms of many rows, in order.
    frequent: Vec<(Id, Bitmap)>,
    /// Other terms, in order, and their posting lists one behind the other.
    rare: Vec<Id>,
    starts: Vec<u32>,
    postings: Vec<u16>,
}

impl Terms {
    /// Builds a column from pairs of a term and a row.
    fn build(mut pairs: Vec<(Id, u16)>, rows: usize) -> Self {
        let mut column = Self::default();
        pairs.sort_unstable();
        pairs.dedup();
        for same in pairs.chunk_by(|one, other| one.0 == other.0) {
            let own = same.iter().map(|&(_, row)| row);
            if same.len() >= (rows / 64).max(16) {
                column.frequent.push((same[0].0, Bitmap::of(own.map(usize::from), rows)));
            } else {
                column.rare.push(same[0].0);
                column.starts.push(column.postings.len() as u32);
                column.postings.extend(own);
            }
        }
        column.starts.push(column.postings.len() as u32);
        column
    }

    fn bitmap(&self, term: Id) -> Option<&Bitmap> {
        let at = self.frequent.binary_search_by_key(&term, |&(other, _)| other).ok()?;
        Some(&self.frequent[at].1)
    }

    fn postings(&self, term: Id) -> &[u16] {
        let Ok(at) = self.rare.binary_search(&term) else { return &[] };
        &self.postings[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// What a block knows of one column of its table.
struct BlockColumn {
    /// The rows that do not constrain it.
    free: Bitmap,
    values: Values,
}

/// What the other rows want.
enum Values {
    Any,
    Terms(Terms),
    Intervals(Intervals),
}

impl BlockColumn {
    #[cfg(test)]
    fn bytes(&self) -> usize {
        let (bitmaps, rest): (Vec<&Bitmap>, usize) = match &self.values {
            Values::Any => Default::default(),
            Values::Terms(terms) => {
                let rest = 8 * (terms.frequent.len() + terms.rare.len()) + 2 * terms.postings.len();
                (terms.frequent.iter().map(|(_, bitmap)| bitmap).collect(), rest)
            }
            Values::Intervals(intervals) => (intervals.cells.iter().collect(), 0),
        };
        let words = |bitmap: &&Bitmap| bitmap.words.len();
        rest + 8 * (self.free.words.len() + bitmaps.iter().map(words).sum::<usize>())
    }
}

/// Rows of one table.
#[derive(Default)]
pub struct Block {
    /// The numbers of the rows.
    pub rows: Vec<u32>,
    /// Their templates.
    pub templates: Vec<u32>,
    /// Constants of all rows, but for those that codes say.
    constants: Vec<Id>,
    /// Where each row's end; empty if all have equally many.
    ends: Vec<u32>,
    /// A bit for each row that was not removed.
    alive: Vec<u64>,
    /// How many were removed.
    dead: usize,
    /// None in a block that is not built; of columns that no row constrains nothing.
    columns: Vec<Option<BlockColumn>>,
    /// Codes of intervals: lower bounds and the complements of upper ones, in turn.
    codes: Vec<i32>,
    /// How many codes a row has.
    width: usize,
    /// Whether filters of some rows ask more than columns do.
    pub rest: bool,
}

impl Block {
    /// How many rows were not removed.
    pub fn len(&self) -> usize {
        self.rows.len() - self.dead
    }

    /// The places of rows that were not removed.
    pub fn alive(&self) -> impl Iterator<Item = usize> {
        (0..self.rows.len()).filter(|&row| self.is_alive(row))
    }

    fn is_alive(&self, row: usize) -> bool {
        self.alive[row / 64] >> (row % 64) & 1 == 1
    }

    /// Whether it has columns.
    pub fn is_built(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Appends a row, before it is built.
    pub fn push(&mut self, row: u32, template: u32, constants: &[Id]) {
        let at = self.rows.len();
        self.alive.resize(at / 64 + 1, 0);
        self.alive[at / 64] |= 1 << (at % 64);
        self.rows.push(row);
        self.templates.push(template);
        self.constants.extend_from_slice(constants);
        self.ends.push(self.constants.len() as u32);
    }

    /// Takes a row out; says whether most rows are out.
    pub fn remove(&mut self, row: usize) -> bool {
        self.alive[row / 64] &= !(1 << (row % 64));
        self.dead += 1;
        2 * self.dead > self.rows.len()
    }

    /// The constants of a row that codes do not say.
    fn held(&self, row: usize) -> &[Id] {
        if self.ends.is_empty() {
            let count = self.constants.len() / self.rows.len();
            return &self.constants[row * count..(row + 1) * count];
        }
        let begin = row.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.constants[begin as usize..self.ends[row] as usize]
    }

    /// Writes all constants of a row.
    pub fn constants(&self, row: usize, known: &Known, constants: &mut Vec<Id>) {
        constants.clear();
        constants.resize(known.template.constants(), ANY);
        for (slot, is_closed, place, scale) in self.said(known) {
            let is_low = place % 2 == 0;
            let code = if is_low { self.codes(row)[place] } else { !self.codes(row)[place] };
            constants[slot] = scale.constant(code, is_closed, is_low).unwrap_or(ANY);
        }
        let missing = constants.iter_mut().filter(|id| **id == ANY);
        missing.zip(self.held(row)).for_each(|(constant, &id)| *constant = id);
    }

    /// The bounds of a template's rows that codes say: the numbers of their constants, whether these
    /// are inside, the places of the codes among those of a row, and the columns' scales.
    fn said(&self, known: &Known) -> impl Iterator<Item = (usize, bool, usize, Scale)> {
        let columns = known.uses.iter().filter_map(|(at, one)| Some((self.intervals(*at)?, one)));
        columns.filter(|(column, _)| column.scale != Scale::Float).flat_map(|(column, one)| {
            (0..2).filter_map(|place| {
                let (slot, is_closed) = one.ends[place]?;
                Some((slot as usize, is_closed, 2 * column.position + place, column.scale))
            })
        })
    }

    /// The codes of a row.
    pub fn codes(&self, row: usize) -> &[i32] {
        &self.codes[row * self.width..][..self.width]
    }

    fn intervals(&self, column: usize) -> Option<&Intervals> {
        match &self.columns.get(column)?.as_ref()?.values {
            Values::Intervals(one) => Some(one),
            _ => None,
        }
    }

    /// Builds columns and codes for as many columns as the table has.
    pub fn build(&mut self, columns: &[Column], templates: &Slab<Known>, orders: &Orders) {
        let rows = self.rows.len();
        let mut numbers = self.templates.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let known: Vec<&Known> =
            numbers.iter().map(|&number| &templates[number as usize]).collect();
        let local: Vec<usize> =
            self.templates.iter().map(|one| numbers.binary_search(one).unwrap_or(0)).collect();
        // what each template that rows have asks of each column
        let uses: Vec<Vec<Option<&Use>>> = (0..columns.len())
            .map(|column| known.iter().map(|known| known.use_of(column)).collect())
            .collect();
        let is_used = |at: usize| uses[at].iter().any(Option::is_some);
        let is_interval = |at: usize| matches!(columns[at].test, Test::Interval(_));
        self.width = 2 * (0..columns.len()).filter(|&at| is_interval(at) && is_used(at)).count();
        let mut codes = vec![UNBOUNDED; self.width * rows];
        let mut position = 0;
        let mut build = |at: usize| {
            let of = |row: usize| uses[at][local[row]];
            let values = match columns[at].test {
                Test::Present => Values::Any,
                Test::Term => {
                    let pairs = (0..rows).flat_map(|row| {
                        let terms = of(row).map_or(&[][..], |one| &one.terms);
                        let held = self.held(row);
                        terms.iter().map(move |&slot| (held[slot as usize], row as u16))
                    });
                    Values::Terms(Terms::build(pairs.collect(), rows))
                }
                Test::Interval(_) => {
                    let bounds = (0..rows).map(|row| {
                        let ends = of(row).map_or([None; 2], |one| one.ends);
                        let held = self.held(row);
                        ends.map(|end| end.map(|(slot, closed)| (held[slot as usize], closed)))
                    });
                    let bounds: Vec<[Option<Bound>; 2]> = bounds.collect();
                    position += 1;
                    let (position, width) = (position - 1, self.width);
                    Values::Intervals(Intervals::build(
                        &bounds, position, &mut codes, width, orders,
                    ))
                }
            };
            let free = Bitmap::of((0..rows).filter(|&row| of(row).is_none()), rows);
            BlockColumn { free, values }
        };
        let built = (0..columns.len()).map(|at| is_used(at).then(|| build(at))).collect();
        (self.columns, self.codes) = (built, codes);
        // constants that codes say are left out
        let kept = |known: &&Known| {
            let said: Vec<usize> = self.said(known).map(|(slot, ..)| slot).collect();
            (0..known.template.constants()).filter(|slot| !said.contains(slot)).collect()
        };
        let kept: Vec<Vec<usize>> = known.iter().map(kept).collect();
        let (mut constants, mut ends) = (Vec::new(), Vec::with_capacity(rows));
        for (row, &template) in local.iter().enumerate() {
            let held = self.held(row);
            constants.extend(kept[template].iter().map(|&slot| held[slot]));
            ends.push(constants.len() as u32);
        }
        let is_even = kept.iter().all(|slots| slots.len() == kept[0].len());
        (self.constants, self.ends) = (constants, if is_even { Vec::new() } else { ends });
        self.rest = known.iter().any(|known| known.rest);
        self.rows.shrink_to_fit();
        self.templates.shrink_to_fit();
        self.constants.shrink_to_fit();
    }

    /// How many bytes it takes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        let integers = [&self.rows, &self.templates, &self.ends, &self.constants];
        4 * integers.map(Vec::len).iter().sum::<usize>()
            + 4 * self.codes.len()
            + 8 * self.alive.len()
            + self.columns.iter().flatten().map(BlockColumn::bytes).sum::<usize>()
    }

    /// Writes the candidates among the rows of a block that is built: those that are in a bitmap of
    /// each column. Says whether only intervals are left to be compared.
    pub fn candidates(&self, scratch: &mut TableScratch) -> bool {
        let TableScratch { points, spans, probes, limits, sure, candidates, .. } = scratch;
        probes.clear();
        candidates.clear();
        limits.resize(self.width, UNBOUNDED);
        sure.resize(self.width, UNBOUNDED);
        let rows = self.rows.len() as u32;
        let mut shortest: Option<(u32, usize)> = None;
        for (at, column) in self.columns.iter().enumerate() {
            let Some(column) = column else { continue };
            let given = &points[spans[at].clone()];
            let mut count = column.free.count;
            let mut cells = 0;
            match &column.values {
                Values::Any if given.is_empty() => {}
                Values::Any => count = rows,
                Values::Terms(terms) => {
                    let mut is_short = count == 0;
                    for point in given {
                        let bitmap = terms.bitmap(point.id);
                        is_short &= bitmap.is_none();
                        count += bitmap.map_or(0, |bitmap| bitmap.count);
                        count += terms.postings(point.id).len() as u32;
                    }
                    if is_short && count <= 32 + rows / 256 {
                        shortest = shortest.into_iter().chain([(count, at)]).min();
                    }
                }
                Values::Intervals(intervals) => {
                    let codes = 2 * intervals.position..2 * intervals.position + 2;
                    let (perhaps, certain);
                    (cells, perhaps, certain) = intervals.look_up(given);
                    limits[codes.clone()].copy_from_slice(&perhaps);
                    sure[codes].copy_from_slice(&certain);
                    if !given.is_empty() {
                        count = intervals.cells(cells).map(|cell| cell.count).sum();
                    }
                }
            }
            if count == 0 {
                return true;
            }
            // several terms of a row are counted several times
            if count < rows || matches!(column.values, Values::Terms(_)) {
                probes.push((count, at, cells));
            }
        }
        let Some((_, shortest)) = shortest else {
            self.intersect(scratch);
            return true;
        };
        if let Some(BlockColumn { values: Values::Terms(terms), .. }) = &self.columns[shortest] {
            let given = points[spans[shortest].clone()].iter();
            let postings = given.flat_map(|point| terms.postings(point.id));
            candidates.extend(postings.map(|&row| u32::from(row)));
            candidates.sort_unstable();
            candidates.dedup();
            candidates.retain(|&row| self.is_alive(row as usize));
        }
        probes.iter().all(|&(_, at, _)| at == shortest || self.intervals(at).is_some())
    }

    /// Writes the rows that are in a bitmap of each column.
    fn intersect(&self, scratch: &mut TableScratch) {
        let TableScratch { points, spans, probes, acc, other, sparse, candidates, .. } = scratch;
        probes.sort_unstable();
        acc.clone_from(&self.alive);
        sparse.clear();
        let mut is_sparse = false;
        let rows = self.rows.len() as f64;
        let mut expected = rows;
        for &(count, at, cells) in &*probes {
            let Some(column) = &self.columns[at] else { continue };
            let given = &points[spans[at].clone()];
            let (intervals, terms) = match &column.values {
                Values::Intervals(intervals) if !given.is_empty() => (Some(intervals), None),
                Values::Terms(terms) => (None, Some(terms)),
                _ => (None, None),
            };
            let is_free = intervals.is_none() && column.free.count > 0;
            let mut sets = intervals
                .into_iter()
                .flat_map(|one| one.cells(cells))
                .chain(given.iter().filter_map(|point| terms?.bitmap(point.id)))
                .chain(is_free.then_some(&column.free));
            let rare = given.iter().filter_map(|point| Some(terms?.postings(point.id))).flatten();
            let bits = if sets.clone().nth(1).is_none() && rare.clone().next().is_none() {
                sets.next().map_or(&[][..], |set| &set.words)
            } else {
                other.clear();
                other.resize(acc.len(), 0);
                for set in sets {
                    other.iter_mut().zip(&set.words).for_each(|(all, bits)| *all |= bits);
                }
                rare.for_each(|&row| other[usize::from(row) / 64] |= 1 << (row % 64));
                &other[..]
            };
            if is_sparse {
                sparse.retain(|&at| {
                    acc[at] &= bits[at];
                    acc[at] != 0
                });
                continue;
            }
            acc.iter_mut().zip(bits).for_each(|(all, bits)| *all &= bits);
            expected *= (f64::from(count) / rows).min(1.0);
            // from here on most words have no rows, if columns do not depend on each other
            if expected * 4.0 < acc.len() as f64 {
                is_sparse = true;
                sparse.extend((0..acc.len()).filter(|&at| acc[at] != 0));
            }
        }
        if !is_sparse {
            sparse.extend(0..acc.len());
        }
        for &at in &*sparse {
            let mut word = acc[at];
            while word != 0 {
                candidates.push((at * 64) as u32 + word.trailing_zeros());
                word &= word - 1;
            }
        }
    }
}

/// The order of a constant.
pub fn order_of(id: Id, orders: &Orders) -> Order {
    Order::of_inline(id).or_else(|| orders.get(&id).copied()).unwrap_or_default()
}

/// What matching a publication needs, and is used again for the next. One for each thread.
#[derive(Default)]
pub struct TableScratch {
    /// Triples that columns look at, in order.
    pub triples: Vec<[Id; 3]>,
    /// The orders of their objects.
    pub orders: Vec<Order>,
    /// Tables to be asked.
    pub asked: Vec<usize>,
    /// Values of a subject, column by column.
    pub points: Vec<Point>,
    /// Which of them each column has.
    pub spans: Vec<Range<usize>>,
    /// What codes of a row must not be above.
    pub limits: Vec<i32>,
    /// The same, for a row to be met for certain.
    pub sure: Vec<i32>,
    /// Rows of a block.
    pub candidates: Vec<u32>,
    /// The constants of a row.
    pub constants: Vec<Id>,
    /// Columns to be intersected: about how many rows are left by each, and cells of intervals.
    probes: Vec<(u32, usize, u32)>,
    acc: Vec<u64>,
    other: Vec<u64>,
    sparse: Vec<usize>,
}
