//! The triples of a publication, indexed by access pattern.
//!
//! An access pattern is a triple with some terms left open. Its *kind* has a bit for each of
//! subject, predicate and object that is given. Triples that share an access pattern are chained.
//! An open-addressing hash table has the head of each chain, with a 32-bit fingerprint of the
//! access pattern, its *tag*. Posting lists have the same tags as keys, so one look-up of a tag
//! tells whether a publication has an access pattern.
//!
//! Cost: about 5 ns per triple and kind to prepare; about 5 ns per look-up.

use crate::dictionary::{ANY, Id, LOCAL};
use crate::triples::Triple;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::hash::BuildHasher;
use std::sync::LazyLock;

/// The fingerprint of an access pattern: its kind in the lowest three bits, a hash above. It is 0
/// for the access pattern without terms.
pub type Tag = u32;

/// The bit of the subject in a kind.
pub const SUBJECT: usize = 4;
/// The bit of the predicate in a kind.
pub const PREDICATE: usize = 2;
/// The bit of the object in a kind.
pub const OBJECT: usize = 1;

/// By kind, a mask for each place: all bits if the term is given.
const MASKS: [Triple; 8] = [
    [0, 0, 0],
    [0, 0, !0],
    [0, !0, 0],
    [0, !0, !0],
    [!0, 0, 0],
    [!0, 0, !0],
    [!0, !0, 0],
    [!0, !0, !0],
];
pub(crate) const ALL: usize = 7;
/// The kinds that have chains: those of neither all triples nor a single one.
const CHAINED: u8 = 0b0111_1110;
/// Maximum number of contradictions that are noted.
const MOST_CONTRADICTIONS: usize = 10;
const SMALLEST: usize = 256;
/// Number of cells of a table that is not kept for the next publication.
const LARGE: usize = 1 << 16;

/// Random, so that a publication cannot be written whose triples collide.
static SEED: LazyLock<[u64; 2]> = LazyLock::new(|| {
    let state = RandomState::default();
    [state.hash_one(1_u8), state.hash_one(2_u8)]
});

/// Hashes access patterns, in the same way in the whole process.
#[derive(Clone, Copy)]
pub(crate) struct Tagger([u64; 2]);

impl Default for Tagger {
    fn default() -> Self {
        Self(*SEED)
    }
}

impl Tagger {
    #[inline(always)]
    pub(crate) fn tag(self, kind: usize, key: Triple) -> Tag {
        if kind == 0 {
            return 0;
        }
        let low = (u64::from(key[0]) | u64::from(key[1]) << 32) ^ self.0[0];
        let product = u128::from(low) * u128::from(u64::from(key[2]) ^ self.0[1]);
        let hash = product as u64 ^ (product >> 64) as u64;
        (hash >> 17) as u32 & !7 | kind as u32
    }
}

/// The kind of an access pattern.
#[inline]
pub fn kind_of(key: Triple) -> usize {
    let bit = |place: usize, bit: usize| if key[place] == ANY { 0 } else { bit };
    bit(0, SUBJECT) | bit(1, PREDICATE) | bit(2, OBJECT)
}

/// The access pattern of a kind that a triple has.
#[inline(always)]
pub(crate) fn masked(triple: Triple, kind: usize) -> Triple {
    let mask = &MASKS[kind & ALL];
    [triple[0] | !mask[0], triple[1] | !mask[1], triple[2] | !mask[2]]
}

/// Whether a triple has an access pattern of a kind.
#[inline(always)]
fn has(triple: Triple, kind: usize, key: Triple) -> bool {
    let [subject, predicate, object] = masked(triple, kind);
    subject == key[0] && predicate == key[1] && object == key[2]
}

/// An entry of the hash table: the head of a chain, or [`ANY`] if the cell is free.
#[derive(Clone, Copy)]
struct Cell {
    tag: Tag,
    first: u32,
}

const FREE: Cell = Cell { tag: 0, first: ANY };

/// The distinct triples of a publication.
pub struct Graph {
    /// The triples, in the order in which they came.
    pub triples: Vec<Triple>,
    /// Patterns with a variable as predicate do not match triples from this number on.
    named_only: usize,
    /// The numbers of derived triples, the rules, and their premises.
    pub origins: Vec<(u32, &'static str, Triple)>,
    /// The contradictions that rules found: their names, and their last premises.
    pub contradictions: Vec<(&'static str, Triple)>,
    tagger: Tagger,
    cells: Vec<Cell>,
    used: usize,
    /// The kinds that have chains now, a bit each.
    prepared: u8,
    /// By kind, the start of its part of `nexts`.
    chains: [u32; 8],
    /// By chained kind and triple, the next triple of the chain.
    nexts: Vec<u32>,
    /// The tags of the distinct access patterns that triples have and subscriptions can have, of the
    /// prepared kinds.
    pub(crate) probes: Vec<Tag>,
}

impl Default for Graph {
    fn default() -> Self {
        Self {
            triples: Vec::new(),
            named_only: usize::MAX,
            origins: Vec::new(),
            contradictions: Vec::new(),
            tagger: Tagger::default(),
            cells: vec![FREE; SMALLEST],
            used: 0,
            prepared: 0,
            chains: [0; 8],
            nexts: Vec::new(),
            probes: Vec::new(),
        }
    }
}

impl Graph {
    /// Removes all triples, and keeps the memory unless there is much.
    pub fn clear(&mut self) {
        if self.cells.len() > LARGE {
            *self = Self { tagger: self.tagger, ..Self::default() };
            return;
        }
        self.cells.fill(FREE);
        self.used = 0;
        self.triples.clear();
        self.named_only = usize::MAX;
        self.origins.clear();
        self.contradictions.clear();
        self.prepared = 0;
        self.probes.clear();
    }

    /// Adds a triple, and drops all chains. Returns false for a known triple.
    pub fn push(&mut self, triple: Triple) -> bool {
        if self.prepared != 0 {
            self.drop_chains();
        }
        self.reserve(1);
        let tag = self.tagger.tag(ALL, triple);
        let cell = self.cell(ALL, tag, triple);
        if self.cells[cell].first != ANY {
            return false;
        }
        self.cells[cell] = Cell { tag, first: self.triples.len() as u32 };
        self.used += 1;
        self.triples.push(triple);
        true
    }

    /// Adds a triple that a rule derived from a premise (that of data, or the only one). Returns
    /// false for a known triple.
    pub fn derive(&mut self, triple: Triple, rule: &'static str, premise: Triple) -> bool {
        let is_new = self.push(triple);
        if is_new {
            self.origins.push((self.triples.len() as u32 - 1, rule, premise));
        }
        is_new
    }

    /// Removes helper triples, and returns them. What was derived from one is then derived from its
    /// premise. Those with the property `contradiction` are noted.
    pub fn take_helpers(
        &mut self,
        is_helper: impl Fn(Triple) -> bool,
        contradiction: Id,
    ) -> Vec<Triple> {
        if !self.triples.iter().any(|&triple| is_helper(triple)) {
            return Vec::new();
        }
        let (triples, origins) = (std::mem::take(&mut self.triples), self.origins.clone());
        self.clear();
        let (mut helpers, mut premises) = (Vec::new(), HashMap::new());
        let mut origins = origins.into_iter().peekable();
        for (number, triple) in triples.into_iter().enumerate() {
            let origin = origins.next_if(|origin| origin.0 as usize == number);
            let is_said = origin.is_some_and(|(.., premise)| premise[1] == contradiction);
            // An earlier triple, so it was resolved if it is a helper.
            let origin = origin.map(|(_, rule, premise)| {
                (rule, premises.get(&premise).copied().unwrap_or(premise))
            });
            if is_helper(triple) {
                helpers.push(triple);
                if let Some((rule, premise)) = origin {
                    premises.insert(triple, premise);
                    let found = &mut self.contradictions;
                    let is_new =
                        found.len() < MOST_CONTRADICTIONS && !found.contains(&(rule, premise));
                    if triple[1] == contradiction && !is_said && is_new {
                        found.push((rule, premise));
                    }
                }
            } else if let Some((rule, premise)) = origin {
                self.derive(triple, rule, premise);
            } else {
                self.push(triple);
            }
        }
        helpers
    }

    /// Triples that are pushed from here on are attributes: only patterns with a constant
    /// predicate see them, never those with a variable there, whatever it is bound to.
    pub fn begin_named_only(&mut self) {
        self.named_only = self.named_only.min(self.triples.len());
    }

    /// The number of triples that all patterns can match.
    #[inline]
    pub fn stated(&self) -> usize {
        self.named_only.min(self.triples.len())
    }

    /// Chains the triples for look-ups of some kinds (bit `k` for kind `k`).
    pub fn prepare(&mut self, kinds: u8) {
        if self.prepared != 0 {
            self.drop_chains();
        }
        let count = self.triples.len();
        let chained = kinds & CHAINED;
        self.reserve(count * chained.count_ones() as usize);
        self.nexts.resize(count * chained.count_ones() as usize, ANY);
        self.prepared = kinds | 1 | 1 << ALL;
        let mut begin = 0;
        for kind in (1..ALL).filter(|kind| chained >> kind & 1 == 1) {
            self.chains[kind] = begin as u32;
            self.chain(kind, begin);
            begin += count;
        }
        if kinds >> ALL & 1 == 1 {
            (0..count).for_each(|n| self.probe(ALL, n));
        }
    }

    /// Adds an access pattern of a triple to the probes, unless it has a local term, which no
    /// subscription can have.
    #[inline]
    fn probe(&mut self, kind: usize, n: usize) {
        let (triple, mask) = (self.triples[n], MASKS[kind]);
        let local = triple[0] & mask[0] | triple[1] & mask[1] | triple[2] & mask[2];
        if local & LOCAL == 0 {
            self.probes.push(self.tagger.tag(kind, masked(triple, kind)));
        }
    }

    /// Chains the triples of a kind, from the last to the first, so that chains are in order.
    fn chain(&mut self, kind: usize, begin: usize) {
        let end = if kind & PREDICATE == 0 { self.stated() } else { self.triples.len() };
        for n in (0..end).rev() {
            let key = masked(self.triples[n], kind);
            let tag = self.tagger.tag(kind, key);
            let cell = self.cell(kind, tag, key);
            let following = self.cells[cell].first;
            self.nexts[begin + n] = following;
            self.cells[cell] = Cell { tag, first: n as u32 };
            if following == ANY {
                self.used += 1;
                self.probe(kind, n);
            }
        }
    }

    fn drop_chains(&mut self) {
        self.prepared = 0;
        self.probes.clear();
        self.cells.fill(FREE);
        self.used = self.triples.len();
        let mask = self.cells.len() - 1;
        for n in 0..self.triples.len() {
            let tag = self.tagger.tag(ALL, self.triples[n]);
            place(&mut self.cells, mask, Cell { tag, first: n as u32 });
        }
    }

    /// Makes room for more entries in the hash table. At least half of its cells stay free.
    #[inline]
    fn reserve(&mut self, more: usize) {
        let size = 2 * (self.used + more);
        if size <= self.cells.len() {
            return;
        }
        let mut cells = vec![FREE; size.next_power_of_two()];
        let mask = cells.len() - 1;
        for &cell in self.cells.iter().filter(|cell| cell.first != ANY) {
            place(&mut cells, mask, cell);
        }
        self.cells = cells;
    }

    /// The cell of an access pattern, or the free cell for it.
    #[inline(always)]
    fn cell(&self, kind: usize, tag: Tag, key: Triple) -> usize {
        let mask = self.cells.len() - 1;
        let mut at = (tag >> 3) as usize & mask;
        loop {
            let cell = self.cells[at];
            if cell.first == ANY
                || cell.tag == tag && has(self.triples[cell.first as usize], kind, key)
            {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether some triple has an access pattern of a prepared kind with this tag.
    #[inline]
    pub(crate) fn has(&self, tag: Tag) -> bool {
        let mask = self.cells.len() - 1;
        let mut at = (tag >> 3) as usize & mask;
        while self.cells[at].first != ANY {
            if self.cells[at].tag == tag {
                return true;
            }
            at = (at + 1) & mask;
        }
        tag == 0
    }

    /// The number of the first triple with an access pattern, or a number beyond the last triple.
    #[inline(always)]
    pub(crate) fn first(&self, kind: usize, key: Triple) -> u32 {
        if kind == 0 {
            return 0;
        }
        if kind != ALL && self.prepared >> kind & 1 == 0 {
            return self.scan(key[0], key[1], key[2], 0);
        }
        self.cells[self.cell(kind, self.tagger.tag(kind, key), key)].first
    }

    /// The number of the next triple with it, or a number beyond the last triple.
    #[inline(always)]
    pub(crate) fn next(&self, kind: usize, key: Triple, after: u32) -> u32 {
        match kind {
            0 => after + 1,
            ALL => ANY,
            _ if self.prepared >> kind & 1 == 0 => {
                self.scan(key[0], key[1], key[2], after as usize + 1)
            }
            _ => self.nexts[(self.chains[kind] + after) as usize],
        }
    }

    #[cold]
    // Not an array, which would keep the keys of all look-ups in memory instead of registers.
    fn scan(&self, subject: Id, predicate: Id, object: Id, from: usize) -> u32 {
        let key = [subject, predicate, object];
        let kind = kind_of(key);
        let rest = self.triples.iter().enumerate().skip(from);
        rest.into_iter().find(|(_, t)| masked(**t, kind) == key).map_or(ANY, |(n, _)| n as u32)
    }

    /// Returns the numbers of the triples that have an access pattern, in their order. An access
    /// pattern without a property finds no attributes. A kind that was not prepared is looked up by
    /// a scan.
    pub fn numbers(&self, key: Triple) -> impl Iterator<Item = usize> + '_ {
        let kind = kind_of(key);
        let end = if kind & PREDICATE == 0 { self.stated() } else { self.triples.len() };
        let mut next = self.first(kind, key);
        std::iter::from_fn(move || {
            let number = next as usize;
            if number >= end {
                return None;
            }
            next = self.next(kind, key, next);
            Some(number)
        })
    }
}

#[inline]
fn place(cells: &mut [Cell], mask: usize, cell: Cell) {
    let mut at = (cell.tag >> 3) as usize & mask;
    while cells[at].first != ANY {
        at = (at + 1) & mask;
    }
    cells[at] = cell;
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A small generator of numbers, the same in every run.
    pub(crate) struct Random(pub(crate) u64);

    impl Random {
        pub(crate) fn below(&mut self, end: u32) -> u32 {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((self.0 >> 33) % u64::from(end.max(1))) as u32
        }
    }

    fn check(graph: &Graph, stated: usize, terms: u32) {
        let place = |n: u32| if n == terms { ANY } else { n };
        for n in 0..(terms + 1).pow(3) {
            let side = terms + 1;
            let key = [place(n % side), place(n / side % side), place(n / side / side)];
            let end = if key[1] == ANY { stated } else { graph.triples.len() };
            let fits = |t: &&Triple| (0..3).all(|i| key[i] == ANY || key[i] == t[i]);
            let expected: Vec<Triple> = graph.triples[..end].iter().filter(fits).copied().collect();
            let found: Vec<Triple> = graph.numbers(key).map(|n| graph.triples[n]).collect();
            assert_eq!(found, expected, "{key:?}");
        }
    }

    #[test]
    fn look_ups_find_what_a_scan_finds() {
        let mut random = Random(1);
        let mut graph = Graph::default();
        for round in 0..200 {
            graph.clear();
            if round % 4 == 3 {
                // With these seeds, all access patterns with the object 2 collide.
                graph.tagger = Tagger([0, 2]);
            }
            let mut distinct = std::collections::HashSet::new();
            for n in 0..random.below(40) {
                if n == 20 {
                    graph.begin_named_only();
                }
                let triple = [random.below(4), random.below(3), random.below(4)];
                assert_eq!(graph.push(triple), distinct.insert(triple));
                assert!(graph.numbers(triple).next().is_some());
            }
            let stated = graph.stated();
            graph.prepare(random.below(256) as u8);
            check(&graph, stated, 4);
            graph.prepare(0xFF);
            check(&graph, stated, 4);
            assert!(graph.probes.iter().all(|&tag| graph.has(tag)));
            let seen = usize::from(graph.named_only == usize::MAX);
            assert!(graph.push([9, 9, 9]));
            assert_eq!(graph.numbers([9, ANY, 9]).count(), seen);
            assert_eq!(graph.numbers([9, 9, ANY]).count(), 1);
        }
    }

    #[test]
    fn a_large_publication_leaves_no_large_table() {
        let mut graph = Graph::default();
        for n in 0..100_000 {
            assert!(graph.push([n, 1, n % 7]));
        }
        graph.prepare(0xFF);
        assert_eq!(graph.numbers([ANY, 1, 3]).count(), 100_000 / 7 + 1);
        graph.clear();
        assert!(graph.cells.len() <= SMALLEST && graph.triples.capacity() < 100);
    }
}
