//! One is-a hierarchy: terms under terms, with several parents, on ids.
//!
//! Building is linear in the links. What is above a term is found by a walk that keeps no stack,
//! and is remembered, as long as all that is remembered has at most [`REMEMBERED`] terms: so a
//! second question costs one look-up, and a chain of 100,000 classes does no harm. The terms of a
//! cycle are above themselves.

use crate::dictionary::Id;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many terms the remembered answers of one hierarchy hold together.
pub const REMEMBERED: usize = 2_000_000;
/// Up to so many terms, a list is searched faster from its begin to its end than hashed.
const FEW: usize = 24;

/// A map from ids, or from pairs of them.
pub type Map<K, V> = HashMap<K, V, RandomState>;
/// A set of the same.
pub type Set<K> = HashSet<K, RandomState>;

/// The values of each key, sorted and each once.
pub fn grouped<K: std::hash::Hash + Eq>(pairs: impl Iterator<Item = (K, Id)>) -> Map<K, Vec<Id>> {
    let mut found: Map<K, Vec<Id>> = Map::default();
    for (key, value) in pairs {
        found.entry(key).or_default().push(value);
    }
    for row in found.values_mut() {
        row.sort_unstable();
        row.dedup();
    }
    found
}

/// Rows of numbers, one behind the other.
#[derive(Default)]
struct Rows {
    begins: Vec<u32>,
    values: Vec<u32>,
}

impl Rows {
    fn of(rows: usize, pairs: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut begins = vec![0; rows + 1];
        for (row, _) in pairs.clone() {
            begins[row as usize + 1] += 1;
        }
        for row in 0..rows {
            begins[row + 1] += begins[row];
        }
        let mut next = begins.clone();
        let mut values = vec![0; begins[rows] as usize];
        for (row, value) in pairs {
            let at = &mut next[row as usize];
            values[*at as usize] = value;
            *at += 1;
        }
        Self { begins, values }
    }

    fn row(&self, number: u32) -> &[u32] {
        let number = number as usize;
        &self.values[self.begins[number] as usize..self.begins[number + 1] as usize]
    }
}

/// Distinct values in the order in which they come.
#[derive(Default)]
pub struct Distinct {
    hashed: Set<u32>,
}

impl Distinct {
    /// Adds a value to a list that this has seen from its begin; whether it is new.
    pub fn push(&mut self, list: &mut Vec<u32>, value: u32) -> bool {
        if list.len() < FEW {
            if list.contains(&value) {
                return false;
            }
        } else {
            if self.hashed.is_empty() {
                self.hashed.extend(list.iter().copied());
            }
            if !self.hashed.insert(value) {
                return false;
            }
        }
        list.push(value);
        true
    }
}

/// Terms under terms.
#[derive(Default)]
pub struct Hierarchy {
    numbers: Map<Id, u32>,
    terms: Vec<Id>,
    parents: Rows,
    children: Rows,
    above: Vec<OnceLock<Box<[Id]>>>,
    remembered: AtomicUsize,
}

impl Hierarchy {
    /// Makes a hierarchy of pairs of child and parent; loops are left out.
    pub fn new(links: impl IntoIterator<Item = (Id, Id)>) -> Self {
        let mut numbers: Map<Id, u32> = Map::default();
        let mut terms = Vec::new();
        let mut number = |term: Id| {
            *numbers.entry(term).or_insert_with(|| {
                terms.push(term);
                terms.len() as u32 - 1
            })
        };
        let mut known = Set::default();
        let mut pairs = Vec::new();
        for (child, parent) in links {
            if child != parent && known.insert((child, parent)) {
                pairs.push((number(child), number(parent)));
            }
        }
        let parents = Rows::of(terms.len(), pairs.iter().copied());
        let children = Rows::of(terms.len(), pairs.iter().map(|&(child, parent)| (parent, child)));
        let above = (0..terms.len()).map(|_| OnceLock::new()).collect();
        Self { numbers, terms, parents, children, above, remembered: AtomicUsize::new(0) }
    }

    /// Whether a term has a link, up or down.
    pub fn contains(&self, term: Id) -> bool {
        self.numbers.contains_key(&term)
    }

    /// All terms that have a link.
    pub fn terms(&self) -> &[Id] {
        &self.terms
    }

    /// Whether anything is above a term.
    pub fn has_parents(&self, term: Id) -> bool {
        self.parents(term).next().is_some()
    }

    /// The terms directly above.
    pub fn parents(&self, term: Id) -> impl Iterator<Item = Id> + '_ {
        self.linked(&self.parents, term)
    }

    /// The terms directly below.
    pub fn children(&self, term: Id) -> impl Iterator<Item = Id> + '_ {
        self.linked(&self.children, term)
    }

    fn linked<'a>(&'a self, rows: &'a Rows, term: Id) -> impl Iterator<Item = Id> + 'a {
        let row = self.numbers.get(&term).map_or(&[][..], |&number| rows.row(number));
        row.iter().map(|&number| self.terms[number as usize])
    }

    /// All terms above, nearest first; written to `room` where they are not remembered.
    pub fn ancestors<'a>(&'a self, term: Id, room: &'a mut Vec<Id>) -> &'a [Id] {
        let Some(&number) = self.numbers.get(&term) else { return &[] };
        let known = &self.above[number as usize];
        if let Some(found) = known.get() {
            return found;
        }
        self.walk(&self.parents, number, room);
        let before = self.remembered.fetch_add(room.len(), Ordering::Relaxed);
        if before.saturating_add(room.len()) > REMEMBERED {
            self.remembered.fetch_sub(room.len(), Ordering::Relaxed);
            return room;
        }
        known.get_or_init(|| room.as_slice().into())
    }

    /// All terms below, nearest first.
    pub fn descendants(&self, term: Id) -> Vec<Id> {
        let mut found = Vec::new();
        if let Some(&number) = self.numbers.get(&term) {
            self.walk(&self.children, number, &mut found);
        }
        found
    }

    fn walk(&self, rows: &Rows, start: u32, found: &mut Vec<u32>) {
        found.clear();
        let mut seen = Distinct::default();
        let (mut current, mut next) = (start, 0);
        loop {
            for &linked in rows.row(current) {
                seen.push(found, linked);
            }
            if next == found.len() {
                break;
            }
            current = found[next];
            next += 1;
        }
        found.iter_mut().for_each(|number| *number = self.terms[*number as usize]);
    }

    /// Whether a term is above another.
    pub fn is_above(&self, above: Id, term: Id) -> bool {
        self.numbers.contains_key(&above) && self.ancestors(term, &mut Vec::new()).contains(&above)
    }

    /// The links, from child to parent.
    pub fn links(&self) -> impl Iterator<Item = (Id, Id)> + '_ {
        self.terms.iter().flat_map(|&child| self.parents(child).map(move |parent| (child, parent)))
    }
}
