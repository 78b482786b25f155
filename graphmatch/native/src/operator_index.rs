//! Operators that have an index over the constants of all subscriptions.
//!
//! A filter that calls such an operator with a variable and constants is a triple pattern: the
//! variable, the operator, and a term for the constants. Before the core matches a publication, it
//! queries the index once with the possible terms of the variable, and adds the results as triples.
//! Therefore a subscription costs nothing unless its constants are among the results.
//!
//! This module counts the constants of each operator by the rows that have them, and the places of
//! triples that bind the variables. The index itself is in Python. It follows the changes of
//! constants, and knows each constant by a key that is never used again.

use crate::branch::{Branch, Node, Pattern};
use crate::demand::count;
use crate::dictionary::{ANY, Dictionary, Id};
use crate::operators::Operators;
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};

/// The terms to look up in the index of each operator, by the operator's number.
pub type Questions = Vec<(usize, Vec<String>)>;

/// The results of operator indexes.
pub struct IndexAnswers {
    pub questions: Questions,
    /// For each question and term the keys of constants; `None` if the index failed.
    pub found: Vec<Option<Vec<Vec<u32>>>>,
}

#[derive(Default)]
struct IndexedOperator {
    id: Id,
    /// The number of rows of each constant, and its key.
    constants: HashMap<Id, u32>,
    keys: HashMap<Id, u32>,
    /// The number of rows by the position that binds the variable, and its property or [`ANY`].
    places: HashMap<(u8, Id), u32>,
}

/// The constants of operators that have an index.
#[derive(Default)]
pub struct OperatorConstants {
    all: Vec<IndexedOperator>,
    by_key: HashMap<u32, Id>,
    last_key: u32,
    /// The constants that were added or removed: the number of the operator, the key, and the text,
    /// which is `None` for a removed one.
    changes: Vec<(usize, u32, Option<Vec<u8>>)>,
}

impl OperatorConstants {
    pub fn new(operators: &Operators, dictionary: &mut Dictionary) -> Self {
        let mut id = |iri: &str| dictionary.intern(format!("<{iri}>").as_bytes());
        let indexed = operators.0.iter().filter(|one| one.is_indexed);
        let all =
            indexed.map(|one| IndexedOperator { id: id(&one.iri), ..IndexedOperator::default() });
        Self { all: all.collect(), ..Self::default() }
    }

    /// The id of an operator's IRI.
    pub fn id(&self, number: usize) -> Id {
        self.all[number].id
    }

    /// The constant of a key, if it was not removed.
    pub fn constant(&self, key: u32) -> Option<Id> {
        self.by_key.get(&key).copied()
    }

    /// The constants of an operator.
    pub fn constants(&self, number: usize) -> impl Iterator<Item = Id> {
        self.all[number].constants.keys().copied()
    }

    /// Whether a property is one of the operators.
    pub fn is_operator(&self, property: Id) -> bool {
        self.all.iter().any(|one| one.id == property)
    }

    /// The number of the operator whose results a pattern matches.
    fn of(&self, pattern: &Pattern) -> Option<usize> {
        let Node::Constant(property) = pattern[1] else { return None };
        self.all.iter().position(|one| one.id == property)
    }

    /// The place that binds a variable, independent of the order of patterns.
    fn place(&self, branch: &Branch, variable: Node) -> Option<(u8, Id)> {
        let own = branch.patterns.iter().filter(|pattern| self.of(pattern).is_none());
        let places = own.flat_map(|pattern| {
            let property = match pattern[1] {
                Node::Constant(id) => id,
                Node::Variable(_) => ANY,
            };
            let bound = (0..3).filter(|&place| pattern[place] == variable);
            bound.map(move |place| (place as u8, property))
        });
        places.min_by_key(|&(place, property)| (property == ANY, place != 2, place, property))
    }

    /// Counts a row that is added or removed.
    pub fn count(&mut self, branch: &Branch, is_added: bool, dictionary: &Dictionary) {
        for pattern in &branch.patterns {
            let Some(number) = self.of(pattern) else { continue };
            let Node::Constant(constant) = pattern[2] else { continue };
            let place = self.place(branch, pattern[0]);
            let one = &mut self.all[number];
            let by = if is_added { 1 } else { -1 };
            if let Some(place) = place {
                count(&mut one.places, place, by);
            }
            if !count(&mut one.constants, constant, by) {
                continue;
            }
            if is_added {
                self.last_key = self.last_key.wrapping_add(1);
                self.by_key.insert(self.last_key, constant);
                one.keys.insert(constant, self.last_key);
                let text = dictionary.text(constant).into_owned();
                self.changes.push((number, self.last_key, Some(text)));
            } else if let Some(key) = one.keys.remove(&constant) {
                self.by_key.remove(&key);
                self.changes.push((number, key, None));
            }
        }
    }

    /// Takes the changes since the last call.
    pub fn take_changes(&mut self) -> Vec<(usize, u32, Option<Vec<u8>>)> {
        std::mem::take(&mut self.changes)
    }

    /// The distinct terms of a publication that each operator's index is queried with.
    pub fn questions(&self, triples: &[Triple]) -> Vec<(usize, Vec<Id>)> {
        let mut found = Vec::new();
        for (number, one) in self.all.iter().enumerate() {
            if one.constants.is_empty() {
                continue;
            }
            let mut seen = HashSet::new();
            let mut terms = Vec::new();
            for triple in triples {
                for place in 0..3_u8 {
                    let places = &one.places;
                    let is_asked = places.contains_key(&(place, triple[1]))
                        || places.contains_key(&(place, ANY));
                    let term = triple[usize::from(place)];
                    if is_asked && seen.insert(term) {
                        terms.push(term);
                    }
                }
            }
            if !terms.is_empty() {
                found.push((number, terms));
            }
        }
        found
    }
}
