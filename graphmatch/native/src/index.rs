//! Rows of subscriptions, found in one of three ways.
//!
//! A row is filed under its rarest access pattern ([`Patterns`]). Where very many rows are filed
//! under the same one, new ones are told apart otherwise: by a word that a text must have
//! ([`TextIndex`]), or, if they constrain the properties of one subject, in a table of these
//! ([`Tables`]), which those that were there before are put into as well.
//!
//! Cost: that of the ways that have rows.

use crate::dictionary::{Dictionary, Id, Kind};
use crate::filter::Deciding;
use crate::graph::Graph;
use crate::pattern::{Branch, Filter, Node};
use crate::patterns::{self, Counters, NO_OWNER, Patterns, Placement, Tests};
use crate::plan::MAX_PATTERNS;
use crate::predicates::{TableScratch, Tables};
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check, damaged};
use crate::subscriptions::{Number, RowId};
use crate::text::{TextIndex, TextScratch};
use hashbrown::HashMap;

/// The bit of a row that is in a table.
const TABLE: RowId = 1 << 30;
/// So many rows under one access pattern are enough for another way.
const CROWDED: usize = 64;
/// So many of a posting list are looked at when a table is made that they may belong to.
const LOOKED_AT: usize = 1 << 10;

/// What one thread needs; reused from one publication to the next.
#[derive(Default)]
pub struct Scratch {
    /// The owners of the rows that have a solution.
    pub matches: Vec<Number>,
    /// What the posting lists need, and what was counted.
    pub patterns: patterns::Scratch,
    tables: TableScratch,
    texts: TextScratch,
    hits: Vec<u32>,
    objects: Vec<Id>,
}

/// Rows of subscriptions.
#[derive(Default)]
pub struct Index {
    patterns: Patterns,
    tables: Tables,
    texts: TextIndex,
    /// The rows that are found by a text, with the number of the filter that finds them.
    by_text: HashMap<RowId, usize>,
    /// Whose the rows in tables are.
    owners: Vec<Number>,
    free: Vec<u32>,
}

impl Tests for Deciding<'_> {
    fn holds(&self, filter: &Filter, term: Id) -> bool {
        Deciding::holds(self, filter, term)
    }
}

impl Index {
    /// Adds a row; `None` where there is no room. The caller keeps the branch's terms in the
    /// dictionary until the row is removed. Rows that are put into a table now are told as what they
    /// were and what they are from now on.
    pub fn add(
        &mut self,
        branch: &Branch,
        dictionary: &Dictionary,
        moved: &mut Vec<(RowId, RowId)>,
    ) -> Option<RowId> {
        let text = branch.filters.iter().position(|(_, filter)| TextIndex::takes(filter));
        if text.is_none() && self.tables.wants(branch, dictionary) {
            return self.add_to_table(branch, dictionary).or_else(|| self.patterns.add(branch));
        }
        let row = self.patterns.add(branch)?;
        if row >= TABLE {
            self.patterns.remove(row);
            return None;
        }
        if self.patterns.crowd(row) < CROWDED {
            return Some(row);
        }
        if let Some(number) = text {
            if self.texts.add(&branch.filters[number].1, row, dictionary) {
                self.patterns.unfile(row);
                self.by_text.insert(row, number);
            }
            return Some(row);
        }
        if let Some(table) = self.add_to_table(branch, dictionary) {
            let near = self.patterns.neighbours(row, LOOKED_AT);
            self.patterns.remove(row);
            let into = |row| Some((row, self.move_to_table(row, dictionary)?));
            moved.extend(near.into_iter().filter_map(into));
            return Some(table);
        }
        Some(row)
    }

    /// Puts a row into a table, if there is one for it, with its owner; returns what it is from now
    /// on.
    fn move_to_table(&mut self, row: RowId, dictionary: &Dictionary) -> Option<RowId> {
        let branch = self.patterns.branch(row);
        let has_text = branch.filters.iter().any(|(_, filter)| TextIndex::takes(filter));
        if has_text || !self.tables.wants(&branch, dictionary) {
            return None;
        }
        let table = self.add_to_table(&branch, dictionary)?;
        self.set_owner(table, self.patterns.owner(row));
        self.patterns.remove(row);
        Some(table)
    }

    fn add_to_table(&mut self, branch: &Branch, dictionary: &Dictionary) -> Option<RowId> {
        self.number(|tables, number| tables.add(branch, number, dictionary))
    }

    /// Numbers a row of a table, if it is added: nobody's yet.
    fn number(&mut self, add: impl FnOnce(&mut Tables, u32) -> bool) -> Option<RowId> {
        let number = self.free.last().copied().unwrap_or(self.owners.len() as u32);
        if number >= TABLE || !add(&mut self.tables, number) {
            return None;
        }
        if self.free.pop().is_none() {
            self.owners.push(NO_OWNER);
        }
        Some(TABLE | number)
    }

    /// Whose a row is.
    pub fn owner(&self, row: RowId) -> Number {
        match row & TABLE {
            0 => self.patterns.owner(row),
            _ => self.owners.get((row & !TABLE) as usize).copied().unwrap_or(NO_OWNER),
        }
    }

    /// Says whose a row is that is there.
    pub fn set_owner(&mut self, row: RowId, owner: Number) {
        if row & TABLE == 0 {
            self.patterns.set_owner(row, owner);
        } else if let Some(old) = self.owners.get_mut((row & !TABLE) as usize) {
            *old = owner;
        }
    }

    /// Removes a row, which has to be there.
    pub fn remove(&mut self, row: RowId, dictionary: &Dictionary) {
        if row & TABLE != 0 {
            self.tables.remove(row & !TABLE);
            self.set_owner(row, NO_OWNER);
            self.free.push(row & !TABLE);
            if self.tables.is_empty() {
                (self.free, self.owners) = (Vec::new(), Vec::new());
            }
            return;
        }
        if let Some(number) = self.by_text.remove(&row) {
            let branch = self.patterns.branch(row);
            self.texts.remove(&branch.filters[number].1, row, dictionary);
        }
        self.patterns.remove(row);
    }

    /// Rows come in bulk from now on.
    pub fn begin_bulk(&mut self) {
        self.tables.begin_bulk();
    }

    /// The rows that came in bulk are all there.
    pub fn end_bulk(&mut self) {
        self.tables.end_bulk();
    }

    /// Writes the rows.
    pub fn save(&self, to: &mut Saver) {
        self.patterns.save(to);
        self.owners.len().save(to);
        (0..self.owners.len() as u32).for_each(|row| self.tables.branch(row).save(to));
    }

    /// Reads rows that were written: those of tables are put into tables again.
    pub fn load(from: &mut Loader, dictionary: &Dictionary) -> Result<Self, SnapshotError> {
        let (patterns, unfiled) = Patterns::load(from, dictionary)?;
        let mut index = Self { patterns, ..Self::default() };
        for row in unfiled {
            let branch = index.patterns.branch(row);
            let text = branch.filters.iter().position(|(_, filter)| TextIndex::takes(filter));
            let Some(number) = text else { return damaged("a row that nothing finds") };
            index.texts.add(&branch.filters[number].1, row, dictionary);
            index.by_text.insert(row, number);
        }
        let count = usize::load(from)?;
        check(count <= TABLE as usize, "more rows than there can be")?;
        index.begin_bulk();
        for row in 0..count as u32 {
            index.owners.push(NO_OWNER);
            let Some(branch) = <Option<Branch>>::load(from)? else {
                index.free.push(row);
                continue;
            };
            let is_taken = is_sound(&branch, dictionary);
            let is_taken = is_taken && index.tables.add(&branch, row, dictionary);
            check(is_taken, "a row that no table takes")?;
        }
        index.end_bulk();
        Ok(index)
    }

    /// How many rows there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.patterns.len() + self.tables.len()
    }

    /// A row's branch, as it was added.
    pub fn branch(&self, row: RowId) -> Branch {
        match row & TABLE {
            0 => self.patterns.branch(row),
            _ => self.tables.branch(row & !TABLE).unwrap_or_default(),
        }
    }

    /// The kinds of look-up that a publication's graph has to be prepared for.
    pub fn required_kinds(&self) -> u8 {
        self.patterns.required_kinds()
    }

    /// Finds the rows that have a solution; their owners are in `scratch.matches`, once for each.
    pub fn find(&self, graph: &Graph, deciding: &Deciding, scratch: &mut Scratch) {
        scratch.matches.clear();
        self.patterns.find(graph, deciding, &mut scratch.patterns, &mut scratch.matches);
        if !self.texts.is_empty() {
            let objects = &mut scratch.objects;
            objects.clear();
            objects.extend(graph.triples.iter().map(|triple| triple[2]));
            objects.sort_unstable();
            objects.dedup();
            objects.retain(|&term| deciding.terms().kind(term) != Kind::Blank);
            scratch.hits.clear();
            let terms = objects.iter().copied();
            self.texts.hits(terms, deciding, &mut scratch.texts, &mut scratch.hits);
            scratch.patterns.counters.candidates += scratch.hits.len() as u64;
            for &row in &scratch.hits {
                if self.patterns.matches(row, graph, deciding, &mut scratch.patterns) {
                    scratch.matches.push(self.patterns.owner(row));
                }
            }
        }
        if !self.tables.is_empty() {
            scratch.hits.clear();
            let (tables, hits) = (&mut scratch.tables, &mut scratch.hits);
            self.tables.find(&graph.triples, deciding, tables, hits);
            let found = hits.len() as u64;
            let counters = &mut scratch.patterns.counters;
            (counters.candidates, counters.matches) =
                (counters.candidates + found, counters.matches + found);
            let owners = scratch.hits.iter().map(|&row| self.owners[row as usize]);
            scratch.matches.extend(owners);
        }
    }

    /// Hands out the solutions of a row, the terms of variables by their number, until `on` says
    /// false.
    pub fn solutions(
        &self,
        row: RowId,
        graph: &Graph,
        deciding: &Deciding,
        scratch: &mut Scratch,
        on: impl FnMut(&[Id]) -> bool,
    ) {
        if row & TABLE == 0 {
            self.patterns.solutions(row, graph, deciding, &mut scratch.patterns, on);
        } else {
            let mut alone = Patterns::default();
            if let Some(row) = alone.add(&self.branch(row)) {
                alone.solutions(row, graph, deciding, &mut scratch.patterns, on);
            }
        }
    }

    /// What was counted for a publication.
    pub fn counters(scratch: &Scratch) -> Counters {
        scratch.patterns.counters
    }

    /// How a row is filed; `None` for one in a table.
    pub fn placement(&self, row: RowId) -> Option<Placement> {
        if row & TABLE == 0 { self.patterns.placement(row) } else { None }
    }

    /// Learns how often publications had access patterns, and files rows anew where that pays.
    pub fn refile(&mut self, scratch: &mut Scratch) {
        self.patterns.refile(&mut scratch.patterns.statistics);
    }

    /// Whether [`Index::refile`] is worth its while.
    pub fn wants_refiling(&self, scratch: &Scratch) -> bool {
        self.patterns.wants_refiling(&scratch.patterns.statistics)
    }

    /// Bytes that are allocated, about.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.patterns.bytes() + self.tables.bytes()
    }
}

/// Whether a branch that was read is one: its terms are there, and its variables.
fn is_sound(branch: &Branch, dictionary: &Dictionary) -> bool {
    let mut is_known = true;
    branch.each_constant(&mut |id| is_known &= dictionary.knows(id));
    let is_variable = |node: &Node| match node {
        Node::Variable(number) => *number < branch.variables,
        Node::Constant(_) => true,
    };
    is_known
        && branch.patterns.len() <= MAX_PATTERNS
        && branch.filters.len() <= MAX_PATTERNS
        && usize::from(branch.variables) <= 3 * MAX_PATTERNS
        && branch.patterns.iter().flatten().all(is_variable)
        && branch.filters.iter().all(|(number, _)| *number < branch.variables)
}
