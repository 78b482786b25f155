//! The index: rows of subscriptions in posting lists, in a keyword index or in predicate tables.
//!
//! A row that an existing predicate table ([`Tables`]) takes goes there at once. Any other row goes
//! to the posting list of its rarest access pattern ([`PostingIndex`]). If that list is long, the row
//! leaves it, and so do its neighbours. A row with a required word is found by the keyword index
//! ([`TextIndex`]) from then on; its record stays in the `PostingIndex`. A row that constrains
//! properties of one subject moves to a new predicate table.

use crate::branch::{Branch, Filter, Node, TextOperator};
use crate::dictionary::{ANY, Dictionary, Id, Kind};
use crate::filter::FilterEvaluator;
use crate::graph::Graph;
use crate::lexical::LiteralParts;
use crate::postings::{self, NO_OWNER, PostingIndex};
use crate::predicates::{TableScratch, Tables};
use crate::subscriptions::{Number, RowId};
use crate::text::TextIndex;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use slab::Slab;

/// Marks the number of a row that is in a predicate table.
const TABLE: RowId = 1 << 30;
/// Length of a posting list from which new rows go elsewhere.
const LONG_LIST: usize = 64;
/// Maximum number of neighbours of each posting list that move with a row.
const MAX_NEIGHBOURS: usize = 1 << 10;

/// Memory of one thread, reused for each publication.
#[derive(Default)]
pub struct Scratch {
    /// Owners of the rows that have a solution.
    pub matches: Vec<Number>,
    /// Memory of the posting lists, with the counters.
    pub patterns: postings::Scratch,
    tables: TableScratch,
    keywords: Vec<u32>,
    found: Vec<RowId>,
    hits: Vec<RowId>,
    /// Objects, and their properties.
    objects: Vec<(Id, Id)>,
}

/// The index of all rows.
#[derive(Default, Serialize, Deserialize)]
pub struct Index {
    /// The rows that are not in tables.
    pub patterns: PostingIndex,
    #[serde(skip)]
    tables: Tables,
    #[serde(skip)]
    texts: TextIndex,
    /// Rows of the keyword index.
    #[serde(skip)]
    by_text: HashMap<RowId, TextRow>,
    /// For each property, or [`ANY`] for all, the number of keyword rows that search its objects.
    #[serde(skip)]
    searched: HashMap<Id, u32>,
    /// Owners of the rows in tables.
    owners: Slab<Number>,
}

/// A row of the keyword index.
#[derive(Clone, Copy)]
struct TextRow {
    /// The number of the filter that the keyword index uses.
    filter: usize,
    /// The property whose objects it concerns: [`ANY`] if that is a variable.
    property: Id,
    /// Whether each string with the keyword is a solution, so that no join is needed.
    is_decided: bool,
    /// The owner of the row.
    owner: Number,
}

/// Whether a term is a string without a language.
fn is_plain(text: &[u8]) -> bool {
    LiteralParts::of(text).is_some_and(|one| one.tag.is_none() && one.datatype.is_none())
}

impl TextRow {
    fn of(branch: &Branch, dictionary: &Dictionary) -> Option<Self> {
        branch.filters.iter().enumerate().find_map(|(number, (variable, filter))| {
            let mut patterns = branch.patterns.iter().filter(|_| TextIndex::takes(filter));
            let pattern = patterns.find(|pattern| pattern[2] == Node::Variable(*variable))?;
            let property = if let Node::Constant(property) = pattern[1] { property } else { ANY };
            let is_alone = branch.patterns.len() == 1 && branch.filters.len() == 1;
            let is_open = matches!(pattern[0], Node::Variable(one) if one != *variable);
            let is_plain = matches!(
                filter,
                Filter::Text { operator: TextOperator::Contains, argument, .. }
                    if is_plain(&dictionary.text(*argument))
            );
            let is_decided = is_alone && is_open && is_plain && property != ANY;
            Some(Self { filter: number, property, is_decided, owner: NO_OWNER })
        })
    }
}

impl Index {
    /// Adds a row. Returns `None` if there is no room. The caller keeps the branch's terms in the
    /// dictionary until it removes the row. `moved` gets the old and new ids of rows that move to a
    /// table.
    pub fn add(
        &mut self,
        branch: &Branch,
        dictionary: &Dictionary,
        moved: &mut Vec<(RowId, RowId)>,
    ) -> Option<RowId> {
        let text = TextRow::of(branch, dictionary);
        if text.is_none() && self.tables.wants(branch, dictionary) {
            return self.add_to_table(branch, dictionary).or_else(|| self.patterns.add(branch));
        }
        let row = self.patterns.add(branch)?;
        if row >= TABLE {
            self.patterns.remove(row);
            return None;
        }
        let length = self.patterns.posting_list_len(row);
        if length < LONG_LIST {
            return Some(row);
        }
        if text.is_some() {
            // The list is looked through once, when it becomes long.
            let near = (length == LONG_LIST).then(|| self.patterns.neighbours(row, MAX_NEIGHBOURS));
            for row in near.into_iter().flatten().chain([row]) {
                let branch = self.patterns.branch(row);
                if let Some(text) = TextRow::of(&branch, dictionary) {
                    self.add_text(&branch, text, row, dictionary);
                    self.patterns.unlist(row);
                }
            }
            return Some(row);
        }
        if let Some(table) = self.add_to_table(branch, dictionary) {
            let near = self.patterns.neighbours(row, MAX_NEIGHBOURS);
            self.patterns.remove(row);
            let into = |row| Some((row, self.move_to_table(row, dictionary)?));
            moved.extend(near.into_iter().filter_map(into));
            return Some(table);
        }
        Some(row)
    }

    fn add_text(&mut self, branch: &Branch, text: TextRow, row: RowId, dictionary: &Dictionary) {
        self.texts.add(&branch.filters[text.filter].1, row, dictionary);
        self.by_text.insert(row, TextRow { owner: self.patterns.owner(row), ..text });
        *self.searched.entry(text.property).or_default() += 1;
    }

    /// Moves a row to a table with its owner, if a table takes it. Returns its new id.
    fn move_to_table(&mut self, row: RowId, dictionary: &Dictionary) -> Option<RowId> {
        let branch = self.patterns.branch(row);
        if TextRow::of(&branch, dictionary).is_some() || !self.tables.wants(&branch, dictionary) {
            return None;
        }
        let table = self.add_to_table(&branch, dictionary)?;
        self.set_owner(table, self.patterns.owner(row));
        self.patterns.remove(row);
        Some(table)
    }

    /// Adds a row without an owner to a table and returns its id.
    fn add_to_table(&mut self, branch: &Branch, dictionary: &Dictionary) -> Option<RowId> {
        let number = self.owners.insert(NO_OWNER);
        if number < TABLE as usize && self.tables.add(branch, number as u32, dictionary) {
            return Some(TABLE | number as u32);
        }
        self.owners.remove(number);
        None
    }

    /// Returns the owner of a row.
    pub fn owner(&self, row: RowId) -> Number {
        match row & TABLE {
            0 => self.patterns.owner(row),
            _ => self.owners.get((row & !TABLE) as usize).copied().unwrap_or(NO_OWNER),
        }
    }

    /// Sets the owner of a row.
    pub fn set_owner(&mut self, row: RowId, owner: Number) {
        if row & TABLE == 0 {
            self.patterns.set_owner(row, owner);
            if let Some(text) = self.by_text.get_mut(&row) {
                text.owner = owner;
            }
        } else if let Some(old) = self.owners.get_mut((row & !TABLE) as usize) {
            *old = owner;
        }
    }

    /// Removes a row. The row must exist.
    pub fn remove(&mut self, row: RowId, dictionary: &Dictionary) {
        if row & TABLE != 0 {
            self.tables.remove(row & !TABLE);
            self.owners.remove((row & !TABLE) as usize);
            if self.owners.is_empty() {
                self.owners = Slab::new();
            }
            return;
        }
        if let Some(TextRow { filter, property, .. }) = self.by_text.remove(&row) {
            let branch = self.patterns.branch(row);
            self.texts.remove(&branch.filters[filter].1, row, dictionary);
            if let Some(rows) = self.searched.get_mut(&property) {
                *rows -= 1;
                self.searched.retain(|_, rows| *rows > 0);
            }
        }
        self.patterns.remove(row);
    }

    /// Encodes the rows of tables, one after the other.
    pub fn table_rows(&self) -> Vec<u8> {
        let branches = self.owners.iter().filter_map(|(row, _)| self.tables.branch(row as u32));
        branches
            .fold(Vec::new(), |rows, branch| postcard::to_extend(&branch, rows).expect("a vector"))
    }

    /// Builds what a snapshot does not hold: posting lists, the keyword index, and tables of the
    /// rows that [`Index::table_rows`] encoded. Returns `None` if these cannot be decoded.
    pub fn rebuild(&mut self, mut table_rows: &[u8], dictionary: &Dictionary) -> Option<()> {
        for row in self.patterns.rebuild() {
            let branch = self.patterns.branch(row);
            self.add_text(&branch, TextRow::of(&branch, dictionary)?, row, dictionary);
        }
        for (row, _) in &self.owners {
            let (branch, rest): (Branch, _) = postcard::take_from_bytes(table_rows).ok()?;
            self.tables.add(&branch, row as u32, dictionary).then_some(())?;
            table_rows = rest;
        }
        Some(())
    }

    /// Returns the number of rows.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.patterns.len() + self.tables.len()
    }

    /// Returns the branch of a row.
    pub fn branch(&self, row: RowId) -> Branch {
        match row & TABLE {
            0 => self.patterns.branch(row),
            _ => self.tables.branch(row & !TABLE).unwrap_or_default(),
        }
    }

    /// Finds the rows that have a solution. `scratch.matches` gets their owners, which may repeat.
    pub fn find(&self, graph: &Graph, evaluator: &FilterEvaluator, scratch: &mut Scratch) {
        scratch.matches.clear();
        let tests = |filter: &Filter, term| evaluator.holds(filter, term);
        self.patterns.find(graph, &tests, &mut scratch.patterns, &mut scratch.matches);
        if !self.by_text.is_empty() {
            self.find_texts(graph, evaluator, scratch);
            let Scratch { hits, patterns, matches, .. } = scratch;
            for &row in &*hits {
                self.patterns.check(row, graph, &tests, patterns, matches);
            }
        }
        if !self.owners.is_empty() {
            self.tables.find(&graph.triples, evaluator, &mut scratch.tables);
            let found = scratch.tables.found.len() as u64;
            let counters = &mut scratch.patterns.counters;
            (counters.candidates, counters.matches) =
                (counters.candidates + found, counters.matches + found);
            let owners = scratch.tables.found.iter().map(|&row| self.owners[row as usize]);
            scratch.matches.extend(owners);
        }
    }

    /// Finds the rows of the keyword index whose keyword some object of the publication contains.
    /// `scratch.matches` gets the owners of those that are decided, and `scratch.hits` the others.
    fn find_texts(&self, graph: &Graph, evaluator: &FilterEvaluator, scratch: &mut Scratch) {
        let Scratch { matches, patterns, keywords, found, hits, objects, .. } = scratch;
        let is_any = self.searched.contains_key(&ANY);
        let searched = graph.triples.iter().filter(|[_, property, object]| {
            (is_any || self.searched.contains_key(property))
                && evaluator.terms.kind(*object) != Kind::Blank
        });
        objects.clear();
        objects.extend(searched.map(|&[_, property, object]| (object, property)));
        objects.sort_unstable();
        objects.dedup();
        hits.clear();
        for pairs in objects.chunk_by(|one, other| one.0 == other.0) {
            let term = pairs[0].0;
            let is_plain = is_plain(&evaluator.terms.text(term));
            found.clear();
            self.texts.hits(term, evaluator, keywords, found);
            patterns.counters.candidates += found.len() as u64;
            for &row in &*found {
                let TextRow { property, is_decided, owner, .. } = self.by_text[&row];
                if property != ANY && pairs.iter().all(|pair| pair.1 != property) {
                    continue;
                }
                if is_decided && is_plain {
                    patterns.counters.matches += 1;
                    matches.push(owner);
                } else {
                    hits.push(row);
                }
            }
        }
        hits.sort_unstable();
        hits.dedup();
    }

    /// Calls `on` with each solution of a row, its terms in the order of variables, until `on`
    /// returns false.
    pub fn solutions(
        &self,
        row: RowId,
        graph: &Graph,
        evaluator: &FilterEvaluator,
        scratch: &mut Scratch,
        on: impl FnMut(&[Id]) -> bool,
    ) {
        let tests = |filter: &Filter, term| evaluator.holds(filter, term);
        if row & TABLE == 0 {
            self.patterns.solutions(row, graph, &tests, &mut scratch.patterns, on);
        } else {
            let mut alone = PostingIndex::default();
            if let Some(row) = alone.add(&self.branch(row)) {
                alone.solutions(row, graph, &tests, &mut scratch.patterns, on);
            }
        }
    }

    /// Estimates the number of allocated bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.patterns.bytes() + self.tables.bytes()
    }
}
