//! The taxonomy operators of G-ToPSS, on the is-a links of an ontology and of one publication.

use crate::branch::TaxonomyOperator;
use crate::dictionary::{Id, Terms};
use crate::hierarchy::{linked, reachable};
use crate::ontology::{Ontology, SAYS_NARROWER, SAYS_UP};
use crate::triples::Triple;
use hashbrown::HashMap;
use std::borrow::Cow;

/// The is-a links of one publication, with a cache of ancestors.
///
/// A term is below its superclasses, its broader concepts, and the classes that it is an instance
/// of; a publication may state links of its own. Only stated links count, rules or not.
///
/// Cost: the ancestors of a term are found once per publication; then a test is one binary search.
/// For a term of the ontology, the ontology's cache is used if the publication puts nothing above it.
///
/// Source: Petrovic, Liu, Jacobsen: G-ToPSS, WWW 2005, sections 3.2 and 3.4.
#[derive(Default)]
pub struct Walk {
    /// Pairs of child and parent, sorted.
    links: Vec<(Id, Id)>,
    /// Whether the publication puts something above a term that the ontology has links of.
    is_inside: bool,
    known: HashMap<Id, Vec<Id>>,
}

impl Walk {
    /// Begins another publication, of which these triples are stated; others are derived.
    pub fn begin(
        &mut self,
        ontology: &Ontology,
        stated: impl Iterator<Item = Triple>,
        terms: Terms,
    ) {
        self.known.clear();
        self.links.clear();
        let root = |term| ontology.root_by_name(term, terms);
        for [s, p, o] in stated {
            let says = ontology.flags(root(p));
            if says & SAYS_UP != 0 {
                self.links.push((root(s), root(o)));
            }
            if says & SAYS_NARROWER != 0 {
                self.links.push((root(o), root(s)));
            }
        }
        self.links.sort_unstable();
        self.is_inside = self.links.iter().any(|&(child, _)| ontology.links.contains(child));
    }

    /// Whether only the ontology puts anything above a term.
    #[inline]
    pub fn is_plain(&self, term: Id) -> bool {
        !self.is_inside && linked(&self.links, term).next().is_none()
    }

    /// All terms above one (a root of synonyms), sorted; itself only if it is on a cycle.
    pub fn above<'a>(&'a mut self, ontology: &'a Ontology, term: Id) -> &'a [Id] {
        if self.is_plain(term)
            && let Cow::Borrowed(above) = ontology.links.ancestors(term)
        {
            return above;
        }
        let Self { links, known, .. } = self;
        let parents = |term| linked(links, term).chain(ontology.links.parents(term));
        known.entry(term).or_insert_with(|| reachable(term, parents))
    }

    /// Whether an operator holds between two terms.
    pub fn holds(
        &mut self,
        ontology: &Ontology,
        operator: TaxonomyOperator,
        term: Id,
        concept: Id,
        terms: Terms,
    ) -> bool {
        let term = ontology.root_by_name(term, terms);
        let concept = ontology.root_by_name(concept, terms);
        let mut is_below =
            |low, high| low == high || self.above(ontology, low).binary_search(&high).is_ok();
        match operator {
            TaxonomyOperator::Descendant => is_below(term, concept),
            TaxonomyOperator::Ancestor => is_below(concept, term),
            TaxonomyOperator::Child => {
                let mut parents = linked(&self.links, term).chain(ontology.links.parents(term));
                term != concept && parents.any(|parent| parent == concept)
            }
        }
    }
}
