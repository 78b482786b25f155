//! Terms under terms, with several parents, on ids: the hierarchies of an ontology.
//!
//! A walk without a stack finds the ancestors of a term. If they are at most [`MAX_CACHED`], they are
//! cached, so a second question costs one look-up, and a chain of 100,000 classes does no harm. The
//! terms of a cycle are above themselves.

use crate::dictionary::Id;
use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::hash::Hash;
use std::sync::OnceLock;

/// Maximum number of ancestors of a term that are cached.
const MAX_CACHED: usize = 100;

/// Groups values by their keys, sorts them and removes duplicates.
pub fn grouped<K: Hash + Eq>(pairs: impl IntoIterator<Item = (K, Id)>) -> HashMap<K, Vec<Id>> {
    let mut found: HashMap<K, Vec<Id>> = HashMap::default();
    for (key, value) in pairs {
        found.entry(key).or_default().push(value);
    }
    for row in found.values_mut() {
        row.sort_unstable();
        row.dedup();
    }
    found
}

/// Sorts pairs of terms and removes duplicates.
fn sorted(links: impl IntoIterator<Item = (Id, Id)>) -> Vec<(Id, Id)> {
    let mut links: Vec<(Id, Id)> = links.into_iter().collect();
    links.sort_unstable();
    links.dedup();
    links
}

/// The terms that one is linked to in sorted pairs.
pub fn linked(links: &[(Id, Id)], term: Id) -> impl Iterator<Item = Id> + '_ {
    let begin = links.partition_point(|link| link.0 < term);
    links[begin..].iter().take_while(move |link| link.0 == term).map(|link| link.1)
}

/// Returns all terms that links lead to from one, sorted.
pub fn reachable<I: Iterator<Item = Id>>(start: Id, links: impl Fn(Id) -> I) -> Vec<Id> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    let (mut current, mut next) = (start, 0);
    loop {
        found.extend(links(current).filter(|&term| seen.insert(term)));
        let Some(&following) = found.get(next) else { break };
        (current, next) = (following, next + 1);
    }
    found.sort_unstable();
    found
}

/// Terms under terms.
#[derive(Default, Serialize, Deserialize)]
#[serde(from = "Vec<(Id, Id)>")]
pub struct Hierarchy {
    parents: Vec<(Id, Id)>,
    #[serde(skip)]
    children: Vec<(Id, Id)>,
    #[serde(skip)]
    above: HashMap<Id, OnceLock<Box<[Id]>>>,
}

impl From<Vec<(Id, Id)>> for Hierarchy {
    /// Makes a hierarchy of pairs of child and parent; loops are left out.
    fn from(links: Vec<(Id, Id)>) -> Self {
        let parents = sorted(links.into_iter().filter(|(child, parent)| child != parent));
        let children = sorted(parents.iter().map(|&(child, parent)| (parent, child)));
        let above = parents.iter().map(|&(child, _)| (child, OnceLock::new())).collect();
        Self { parents, children, above }
    }
}

impl Hierarchy {
    /// The terms that others are above.
    pub fn terms(&self) -> impl Iterator<Item = Id> + '_ {
        self.above.keys().copied()
    }

    /// Whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Whether a term has a link, up or down.
    pub fn contains(&self, term: Id) -> bool {
        self.above.contains_key(&term) || linked(&self.children, term).next().is_some()
    }

    /// The terms directly above.
    pub fn parents(&self, term: Id) -> impl Iterator<Item = Id> + '_ {
        linked(&self.parents, term)
    }

    /// All terms above, sorted; borrowed if they are cached.
    pub fn ancestors(&self, term: Id) -> Cow<'_, [Id]> {
        let Some(known) = self.above.get(&term) else { return Cow::Borrowed(&[]) };
        if let Some(found) = known.get() {
            return Cow::Borrowed(found);
        }
        let found = reachable(term, |term| linked(&self.parents, term));
        if found.len() > MAX_CACHED {
            return Cow::Owned(found);
        }
        Cow::Borrowed(known.get_or_init(|| found.into()))
    }

    /// All terms below, sorted.
    pub fn descendants(&self, term: Id) -> Vec<Id> {
        reachable(term, |term| linked(&self.children, term))
    }
}
