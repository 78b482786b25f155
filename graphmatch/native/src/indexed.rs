//! Operators that have an index over the constants of all subscriptions.
//!
//! A call of such an operator in a filter, of a variable with constants, is a triple pattern: the
//! variable, the operator, and what stands for the constants. Before a publication is matched, the
//! index is asked once with the terms that the variable may be, and what it answers is added as
//! triples. So a subscription costs nothing unless its constants are met.
//!
//! Here are the constants of each operator, counted by the rows that have them, and where variables
//! are bound: the places of the patterns beside. The index itself is Python's, and follows the
//! [`Indexed::changes`]; a constant keeps its id until Python was told that it went.

use crate::dictionary::{ANY, Dictionary, Id};
use crate::operators::Operators;
use crate::pattern::{Branch, Node, Pattern};
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};

/// The terms to look up in the index of each operator, by the operator's number.
pub type Questions = Vec<(usize, Vec<Vec<u8>>)>;

/// The answers of operator indexes to some questions.
pub struct IndexAnswers {
    pub questions: Questions,
    /// For each question and term the ids of constants; `None` if the index failed.
    pub found: Vec<Option<Vec<Vec<Id>>>>,
    /// The value of [`Indexed::epoch`] before the indexes were asked.
    pub epoch: u64,
}

/// A place of triples: its number, and the property they have, or [`ANY`].
type Place = (u8, Id);

#[derive(Default)]
struct One {
    id: Id,
    constants: HashMap<Id, u32>,
    places: HashMap<Place, u32>,
}

/// What has changed: the number of the operator, the constant, and whether it came.
pub type Change = (usize, Id, bool);

/// The constants of operators that have an index.
#[derive(Default)]
pub struct Indexed {
    all: Vec<One>,
    changes: Vec<Change>,
    /// Constants of which Python is being told that they went.
    told: Vec<Id>,
    epoch: u64,
}

impl Indexed {
    pub fn new(operators: &Operators, dictionary: &mut Dictionary) -> Self {
        let mut id = |iri: &str| dictionary.intern(format!("<{iri}>").as_bytes());
        let indexed = operators.0.iter().filter(|one| one.is_indexed);
        let all = indexed.map(|one| One { id: id(&one.iri), ..One::default() });
        Self { all: all.collect(), ..Self::default() }
    }

    /// The term of an operator.
    pub fn id(&self, number: usize) -> Id {
        self.all[number].id
    }

    /// The constants of an operator.
    pub fn keys(&self, number: usize) -> impl Iterator<Item = Id> {
        self.all[number].constants.keys().copied()
    }

    /// Which operator a pattern asks for.
    pub fn of(&self, pattern: &Pattern) -> Option<usize> {
        let Node::Constant(property) = pattern[1] else { return None };
        self.all.iter().position(|one| one.id == property)
    }

    /// Where triples have what a variable is bound to; the same of each order of patterns.
    fn place(&self, branch: &Branch, variable: Node) -> Option<Place> {
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

    /// Whether a pattern's variable is bound by others of a branch.
    pub fn is_bound(&self, branch: &Branch, pattern: &Pattern) -> bool {
        self.place(branch, pattern[0]).is_some()
    }

    /// A row comes, or goes.
    pub fn count(&mut self, branch: &Branch, comes: bool, dictionary: &mut Dictionary) {
        for pattern in &branch.patterns {
            let Some(number) = self.of(pattern) else { continue };
            let Node::Constant(key) = pattern[2] else { continue };
            let place = self.place(branch, pattern[0]);
            let one = &mut self.all[number];
            if let Some(place) = place {
                step(&mut one.places, place, comes);
            }
            if step(&mut one.constants, key, comes) {
                if comes {
                    dictionary.retain(key); // until Python was told that it went
                }
                self.changes.push((number, key, comes));
            }
        }
    }

    /// What has changed since this was asked last.
    pub fn changes(&mut self, dictionary: &mut Dictionary) -> Vec<Change> {
        self.epoch += u64::from(!self.told.is_empty());
        for id in std::mem::take(&mut self.told) {
            dictionary.release(id);
        }
        let changes = std::mem::take(&mut self.changes);
        self.told.extend(changes.iter().filter(|one| !one.2).map(|one| one.1));
        changes
    }

    /// A number that grows when ids of constants become free for other terms.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether something has changed.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty()
    }

    /// What indexes have to be asked for a publication: operators with distinct terms.
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

/// Counts one more or less; whether it is the first or was the last.
fn step<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u32>, key: K, comes: bool) -> bool {
    if comes {
        let count = counts.entry(key).or_insert(0);
        *count += 1;
        return *count == 1;
    }
    match counts.get_mut(&key) {
        Some(count) if *count > 1 => {
            *count -= 1;
            false
        }
        Some(_) => counts.remove(&key).is_some(),
        None => false,
    }
}
