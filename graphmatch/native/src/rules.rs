//! The same rules for publications that state schema of their own, as joins of triples.
//!
//! A publication that states `rdfs:subClassOf` or its kin is a premise of rules whose other premise
//! may be anywhere, in the publication or the ontology, so tables of the ontology alone do not do.
//! Here each triple is taken once, as either premise, with the other looked up among the triples
//! that are there so far and in the ontology: semi-naive evaluation.
//!
//! The pairs of a hierarchy that only its being transitive gives are derived where somebody asks
//! for them, and are no premises: the links that they were made of lead as far, step by step.
//! Slower than the tables by some hash look-ups a triple, and rarely taken.

use crate::dictionary::{ANY, Id, Kind, Terms};
use crate::hierarchy::Map;
use crate::mentions::Mentions;
use crate::ontology::Ontology;
use crate::schema::{is_reserved, is_resource};
use crate::triples::{Triple, Triples};

const NONE: u32 = u32::MAX;

/// Triples of a publication by their terms: chains through all that have the same.
#[derive(Default)]
struct Chains {
    heads: Map<Triple, u32>,
    /// Of each triple the one before it in the chain of each key; see [`keys`].
    before: Vec<[u32; 5]>,
    /// Whether each is no link: only transitivity gave it.
    is_pair: Vec<bool>,
}

/// The keys by which a triple is found: its terms one by one, and what joins ask for.
fn keys([s, p, o]: Triple) -> [Triple; 5] {
    [[s, ANY, ANY], [ANY, p, ANY], [ANY, ANY, o], [s, p, ANY], [ANY, p, o]]
}

impl Chains {
    fn push(&mut self, triple: Triple, is_pair: bool) {
        let number = self.before.len() as u32;
        let before = keys(triple).map(|key| self.heads.insert(key, number).unwrap_or(NONE));
        self.before.push(before);
        self.is_pair.push(is_pair);
    }

    /// Adds the triples with the terms of a key, which is one of [`keys`].
    fn find(&self, triples: &impl Triples, key: Triple, links: bool, found: &mut Vec<Triple>) {
        let which = match key.map(|term| term == ANY) {
            [false, true, true] => 0,
            [true, false, true] => 1,
            [true, true, false] => 2,
            [false, false, true] => 3,
            _ => 4,
        };
        let mut number = self.heads.get(&key).copied().unwrap_or(NONE);
        while number != NONE {
            if !links || !self.is_pair[number as usize] {
                found.push(triples.get(number as usize));
            }
            number = self.before[number as usize][which];
        }
    }
}

/// Adds to a publication's triples all that follows with one of them as a premise; as
/// [`Ontology::close`] does.
pub(crate) fn extend(
    ontology: &Ontology,
    triples: &mut impl Triples,
    terms: Terms,
    mentions: &Mentions,
    most: usize,
    mut origins: Option<&mut Vec<u32>>,
) -> bool {
    let hierarchies = ontology.schema.vocabulary.hierarchies();
    let pairs = hierarchies.map(|property| {
        let is_told_of = |triple: Triple| triple[0] == property || triple[2] == property;
        ontology.asks_for(property, terms, mentions)
            || ontology.meets([property, ANY, ANY])
            || ontology.meets([ANY, ANY, property])
            || (0..triples.len()).any(|number| is_told_of(triples.get(number)))
    });
    let mut chains = Chains::default();
    (0..triples.len()).for_each(|number| chains.push(triples.get(number), false));
    let mut step = Step { ontology, terms, pairs, found: Vec::new(), others: Vec::new() };
    let (mut number, mut room) = (0, Vec::new());
    while number < triples.len() && triples.len() < most {
        let triple = triples.get(number);
        ontology.schema.follow(triple, terms, pairs, &mut room, &mut |following| {
            step.found.push((following, false)); // pairs of the ontology: marked below
        });
        mark_pairs(triple, &hierarchies, &mut step.found);
        step.take(triple, chains.is_pair[number], &chains, triples);
        for (following, is_pair) in step.found.drain(..) {
            let [s, p, _] = following;
            let is_triple = is_resource(s, terms) && terms.kind(p) == Kind::Iri;
            if is_triple && triples.len() < most && triples.push(following) {
                chains.push(following, is_pair);
                if let Some(origins) = &mut origins {
                    origins.push(number as u32);
                }
            }
        }
        number += 1;
    }
    triples.len() < most
}

/// Marks what a triple of a hierarchy gives with the same property and subject: only pairs.
fn mark_pairs([s, p, _]: Triple, hierarchies: &[Id; 3], found: &mut [(Triple, bool)]) {
    if hierarchies.contains(&p) {
        for (following, is_pair) in found {
            *is_pair |= following[0] == s && following[1] == p;
        }
    }
}

/// One triple's turn.
struct Step<'a> {
    ontology: &'a Ontology,
    terms: Terms<'a>,
    pairs: [bool; 3],
    /// What follows, and whether only transitivity gave it.
    found: Vec<(Triple, bool)>,
    others: Vec<Triple>,
}

impl Step<'_> {
    fn tell(&mut self, triple: Triple) {
        self.found.push((triple, false));
    }

    /// Looks up the other premise in the publication.
    fn own(&mut self, chains: &Chains, triples: &impl Triples, key: Triple, links: bool) {
        self.others.clear();
        chains.find(triples, key, links, &mut self.others);
    }

    /// Looks up the other premise, which is data, in the publication and the ontology.
    fn all(&mut self, chains: &Chains, triples: &impl Triples, key: Triple) {
        self.own(chains, triples, key, false);
        self.others.extend(self.ontology.matching(key));
    }

    /// Tells what follows from a triple as data with the publication's schema, and as schema with
    /// all data. What it gives as data with the ontology's schema is known already.
    fn take(&mut self, triple: Triple, is_pair: bool, chains: &Chains, triples: &impl Triples) {
        self.as_data(triple, chains, triples);
        for &term in self.ontology.names_of(triple[2], self.terms) {
            if !is_reserved(triple[1], self.terms) {
                self.found.push(([triple[0], triple[1], term], false));
            }
        }
        if self.terms.kind(triple[2]) != Kind::Literal {
            self.as_schema(triple, is_pair, chains, triples);
        }
    }

    /// Looks up the objects of a term and a property of the schema in the publication.
    fn objects(
        &mut self,
        chains: &Chains,
        triples: &impl Triples,
        [term, property]: [Id; 2],
        links: bool,
    ) -> Vec<Id> {
        self.own(chains, triples, [term, property, ANY], links);
        let is_literal = |term: Id| self.terms.kind(term) == Kind::Literal;
        self.others.iter().map(|other| other[2]).filter(|&term| !is_literal(term)).collect()
    }

    fn as_data(&mut self, [s, p, o]: Triple, chains: &Chains, triples: &impl Triples) {
        let v = self.ontology.schema.vocabulary;
        let resource = is_resource(o, self.terms);
        for class in self.objects(chains, triples, [p, v.domain], false) {
            self.tell([s, v.type_, class]);
        }
        for above in self.objects(chains, triples, [p, v.sub_property], true) {
            self.tell([s, above, o]);
        }
        if resource {
            for class in self.objects(chains, triples, [p, v.range], false) {
                self.tell([o, v.type_, class]);
            }
            for inverse in self.objects(chains, triples, [p, v.inverse_of], false) {
                self.tell([o, inverse, s]);
            }
            self.own(chains, triples, [ANY, v.inverse_of, p], false);
            for [inverse, ..] in std::mem::take(&mut self.others) {
                self.tell([o, inverse, s]);
            }
        }
        let hierarchy = v.hierarchies().iter().position(|&property| property == p);
        if p == v.type_ {
            for class in self.objects(chains, triples, [o, v.sub_class], true) {
                self.tell([s, p, class]);
            }
        } else if let Some(number) = hierarchy {
            if self.pairs[number] && self.terms.kind(o) != Kind::Literal {
                for above in self.objects(chains, triples, [o, p], true) {
                    self.found.push(([s, p, above], true));
                }
            }
        } else if !is_reserved(p, self.terms) {
            for above in self.objects(chains, triples, [o, v.broader_transitive], true) {
                self.tell([s, p, above]);
            }
        }
        for same in self.objects(chains, triples, [s, v.same_as], false) {
            if same != s {
                self.tell([same, p, o]);
            }
        }
        for same in self.objects(chains, triples, [o, v.same_as], false) {
            if same != o {
                self.tell([s, p, same]);
            }
        }
    }

    fn as_schema(
        &mut self,
        [s, p, o]: Triple,
        is_pair: bool,
        chains: &Chains,
        triples: &impl Triples,
    ) {
        let v = self.ontology.schema.vocabulary;
        if p == v.domain {
            self.all(chains, triples, [ANY, s, ANY]);
            for [x, ..] in std::mem::take(&mut self.others) {
                self.tell([x, v.type_, o]);
            }
        } else if p == v.range {
            self.all(chains, triples, [ANY, s, ANY]);
            for [.., y] in std::mem::take(&mut self.others) {
                self.tell([y, v.type_, o]);
            }
        } else if p == v.inverse_of {
            for (property, inverse) in [(s, o), (o, s)] {
                self.all(chains, triples, [ANY, property, ANY]);
                for [x, _, y] in std::mem::take(&mut self.others) {
                    self.tell([y, inverse, x]);
                }
            }
        } else if p == v.equivalent_class {
            self.found.extend([([s, v.sub_class, o], false), ([o, v.sub_class, s], false)]);
        } else if p == v.equivalent_property {
            self.found.extend([([s, v.sub_property, o], false), ([o, v.sub_property, s], false)]);
        } else if p == v.narrower {
            self.tell([o, v.broader, s]);
        } else if p == v.broader {
            self.found.extend([([o, v.narrower, s], false), ([s, v.broader_transitive, o], false)]);
        } else if p == v.same_as {
            self.tell([o, p, s]);
            if s != o {
                self.all(chains, triples, [s, ANY, ANY]);
                for [_, q, y] in std::mem::take(&mut self.others) {
                    self.tell([o, q, y]);
                }
                self.all(chains, triples, [ANY, ANY, s]);
                for [x, q, _] in std::mem::take(&mut self.others) {
                    self.tell([x, q, o]);
                }
            }
        }
        let number = v.hierarchies().iter().position(|&property| property == p);
        let Some(number) = number.filter(|_| !is_pair) else { return };
        if self.pairs[number] {
            self.all(chains, triples, [ANY, p, s]);
            for [x, ..] in std::mem::take(&mut self.others) {
                self.found.push(([x, p, o], true));
            }
        }
        if p == v.sub_property {
            self.all(chains, triples, [ANY, s, ANY]);
            for [x, _, y] in std::mem::take(&mut self.others) {
                self.tell([x, o, y]);
            }
        } else if p == v.sub_class {
            self.all(chains, triples, [ANY, v.type_, s]);
            for [x, ..] in std::mem::take(&mut self.others) {
                self.tell([x, v.type_, o]);
            }
        } else {
            self.all(chains, triples, [ANY, ANY, s]);
            for [x, q, _] in std::mem::take(&mut self.others) {
                if !is_reserved(q, self.terms) {
                    self.tell([x, q, o]);
                }
            }
        }
    }
}
