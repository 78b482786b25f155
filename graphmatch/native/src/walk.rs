//! G-ToPSS's is-a operators: ways up an ontology, whatever the kind of link.
//!
//! A term is below its superclasses, its broader concepts, and the classes that it is an instance
//! of; a publication may state links of its own. Only stated links count, rules or not.
//!
//! Cost: what is above a term is found once a publication, and then one binary search a test.
//! Terms of the ontology have theirs from it, unless the publication puts something above them.
//!
//! Source: Petrovic, Liu, Jacobsen: G-ToPSS, WWW 2005, sections 3.2 and 3.4.

use crate::dictionary::{Id, Terms};
use crate::hierarchy::{Distinct, Map};
use crate::ontology::Ontology;
use crate::pattern::TaxonomyOperator;
use crate::triples::Triple;

/// Up to so many terms, a list is searched from its begin to its end.
const FEW: usize = 48;

/// The is-a links of one publication, and what is above the terms that were asked about.
#[derive(Default)]
pub struct Walk {
    links: Vec<(Id, Id)>,
    /// Whether the publication puts something above a term that the ontology has links of.
    is_inside: bool,
    known: Map<Id, (u32, u32)>,
    arena: Vec<Id>,
    found: Vec<Id>,
    room: Vec<Id>,
    agenda: Vec<Id>,
}

impl Walk {
    /// Begins another publication, of which these triples are stated; others are derived.
    pub fn begin(
        &mut self,
        ontology: &Ontology,
        stated: impl Iterator<Item = Triple>,
        terms: Terms,
    ) {
        self.links.clear();
        self.known.clear();
        self.arena.clear();
        let root = |term| ontology.root_by_name(term, terms);
        for [s, p, o] in stated {
            let (up, down) = ontology.says_link(root(p));
            if up {
                self.links.push((root(s), root(o)));
            }
            if down {
                self.links.push((root(o), root(s)));
            }
        }
        self.links.sort_unstable();
        self.links.dedup();
        self.is_inside = self.links.iter().any(|&(child, _)| ontology.links().contains(child));
    }

    fn own(&self, child: Id) -> &[(Id, Id)] {
        let begin = self.links.partition_point(|link| link.0 < child);
        let length = self.links[begin..].partition_point(|link| link.0 == child);
        &self.links[begin..begin + length]
    }

    /// Whether only the ontology puts anything above a term.
    #[inline]
    pub fn is_plain(&self, term: Id) -> bool {
        !self.is_inside && self.own(term).is_empty()
    }

    /// All terms above one (a root of synonyms), each once; itself only if it is on a cycle.
    pub fn above<'a>(&'a mut self, ontology: &'a Ontology, term: Id) -> &'a [Id] {
        if self.is_plain(term) {
            return ontology.links().ancestors(term, &mut self.room);
        }
        self.sorted(ontology, term)
    }

    /// The same, sorted by id and kept until the next publication.
    fn sorted(&mut self, ontology: &Ontology, term: Id) -> &[Id] {
        let (begin, end) = match self.known.get(&term) {
            Some(&range) => range,
            None => {
                self.climb(ontology, term);
                self.found.sort_unstable();
                let begin = self.arena.len() as u32;
                self.arena.extend_from_slice(&self.found);
                let range = (begin, self.arena.len() as u32);
                self.known.insert(term, range);
                range
            }
        };
        &self.arena[begin as usize..end as usize]
    }

    fn climb(&mut self, ontology: &Ontology, start: Id) {
        let mut found = std::mem::take(&mut self.found);
        let mut room = std::mem::take(&mut self.room);
        let mut agenda = std::mem::take(&mut self.agenda);
        found.clear();
        agenda.clear();
        agenda.push(start);
        let (mut seen, mut next) = (Distinct::default(), 0);
        while let Some(&current) = agenda.get(next) {
            next += 1;
            if self.is_inside {
                for parent in ontology.links().parents(current) {
                    if seen.push(&mut found, parent) {
                        agenda.push(parent);
                    }
                }
            } else {
                for &above in ontology.links().ancestors(current, &mut room) {
                    seen.push(&mut found, above);
                }
            }
            for &(_, parent) in self.own(current) {
                if seen.push(&mut found, parent) {
                    agenda.push(parent);
                }
            }
        }
        (self.found, self.room, self.agenda) = (found, room, agenda);
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
        match operator {
            TaxonomyOperator::Descendant => self.is_below(ontology, term, concept),
            TaxonomyOperator::Ancestor => self.is_below(ontology, concept, term),
            TaxonomyOperator::Child => {
                term != concept
                    && (self.own(term).iter().any(|&(_, parent)| parent == concept)
                        || ontology.links().parents(term).any(|parent| parent == concept))
            }
        }
    }

    fn is_below(&mut self, ontology: &Ontology, term: Id, concept: Id) -> bool {
        if term == concept {
            return true;
        }
        if self.is_plain(term) {
            let above = ontology.links().ancestors(term, &mut self.room);
            if above.len() <= FEW {
                return above.contains(&concept);
            }
        }
        self.sorted(ontology, term).binary_search(&concept).is_ok()
    }
}
