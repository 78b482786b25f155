//! What follows from a publication, as far as anybody asks for it.
//!
//! The rules are those of [`crate::rules`], with all that the ontology has above a term in tables
//! ([`Schema`](crate::schema::Schema)). Conclusions are left out that no subscription could meet and
//! from which nothing follows that one could: a high taxonomy then costs as many triples as there
//! are ancestors that some subscription mentions. Every answer is the same as with all conclusions.
//!
//! What is left of a property's or a class's table is remembered by each thread ([`Closing`]) until
//! something else is mentioned, and is then found again, by a hash look-up for each term above,
//! where a publication needs it. So a mention that comes or goes costs the subscriber nothing, and
//! the next publication some 100 ns for each of its terms that has others above it.
//!
//! Cost of a triple from which nothing follows: two look-ups in an array.

use crate::dictionary::{Id, Kind, Terms, inline};
use crate::graph::Graph;
use crate::hierarchy::{Map, Set};
use crate::mentions::Mentions;
use crate::ontology::{CLASS, LEADS, MAPPING, OWN, Ontology, SCHEMA, TOPIC};
use crate::rules;
use crate::schema::{is_reserved, is_resource};
use crate::triples::Triple;

/// From a publication at most so many triples follow; the rest is left out.
pub const DERIVED_TRIPLES: usize = 10_000_000;
/// So many terms are remembered that are above others.
const REMEMBERED: usize = 1 << 21;

/// What follows from a triple because of its property, and is asked for.
#[derive(Default)]
struct Property {
    above: Vec<Id>,
    domain: Vec<Id>,
    range: Vec<Id>,
    inverses: Vec<Id>,
    topics: Topics,
}

/// Which broader topics of its objects matter after a property.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Topics {
    /// None, nor the terms that a text stands for.
    #[default]
    None,
    /// Those that are mentioned.
    Mentioned,
    All,
}

/// What one thread remembers between publications.
#[derive(Default)]
pub struct Closing {
    stamp: (u64, u64, u64),
    remembered: usize,
    properties: Map<Id, Property>,
    types: Map<Id, Vec<Id>>,
    topics: Map<Id, Vec<Id>>,
    told: Vec<bool>,
}

impl Closing {
    /// Forgets what was found under another ontology, or when something else was asked for.
    fn refresh(&mut self, ontology: &Ontology, mentions: &Mentions) {
        let (serial, version) = mentions.stamp();
        let stamp = (ontology.serial, serial, version);
        if self.stamp != stamp || self.remembered > REMEMBERED {
            (self.stamp, self.remembered) = (stamp, 0);
            self.properties.clear();
            self.types.clear();
            self.topics.clear();
        }
    }
}

/// Everything that finding what is asked for looks at.
struct Asking<'a> {
    ontology: &'a Ontology,
    terms: Terms<'a>,
    mentions: &'a Mentions,
}

impl Asking<'_> {
    /// Whether instances of a class are asked for, or anything follows from being one. Any is-a
    /// link may lead from it to a class that attributes' values are asked for.
    fn is_type(&self, class: Id) -> bool {
        let (type_, asked) = (self.ontology.schema.vocabulary.type_, self.mentions.asked());
        self.ontology.flags(type_) & (LEADS | MAPPING) != 0
            || self.mentions.asks_for_object(type_, class)
            || asked.has_classes()
                && (asked.asks_for_class(class)
                    || self
                        .ontology
                        .links()
                        .ancestors(class)
                        .iter()
                        .any(|&c| asked.asks_for_class(c)))
    }

    /// The classes that some classes lead to and that are asked for.
    fn types(&self, classes: Option<&Vec<Id>>) -> Vec<Id> {
        let mut found: Set<Id> = Set::default();
        for &class in classes.into_iter().flatten() {
            let above = self.ontology.schema.classes().ancestors(class);
            let all = [class].into_iter().chain(above.iter().copied());
            found.extend(all.filter(|&class| self.is_type(class)));
        }
        found.into_iter().collect()
    }

    /// Whether triples with a property are asked for, as such, by a mapping function, or as a part of
    /// attributes.
    fn asks_for(&self, property: Id) -> bool {
        self.mentions.asks_for(property) || self.is_read(property)
    }

    fn is_read(&self, property: Id) -> bool {
        self.ontology.flags(property) & MAPPING != 0
            || self.ontology.is_step(property, self.terms, self.mentions.asked())
    }

    /// Whether a triple with a property is asked for, or gives a type that is.
    fn matters(&self, property: Id) -> bool {
        let schema = &self.ontology.schema;
        self.ontology.flags(property) & SCHEMA != 0
            || self.asks_for(property)
            || property == schema.vocabulary.type_ && self.mentions.asked().has_classes()
            || !self.types(schema.domains.get(&property)).is_empty()
            || !self.types(schema.ranges.get(&property)).is_empty()
    }

    /// A property's inverses that matter, or that superproperties and inverses of theirs make so.
    fn inverses(&self, property: Id) -> Vec<Id> {
        let schema = &self.ontology.schema;
        let inverses = |property| schema.inverses.get(&property).into_iter().flatten().copied();
        let leads_anywhere = |&inverse: &Id| {
            let (mut agenda, mut seen) = (vec![inverse], Set::default());
            while let Some(current) = agenda.pop() {
                if self.matters(current) {
                    return true;
                }
                let following = schema.properties().parents(current).chain(inverses(current));
                agenda.extend(following.filter(|&property| seen.insert(property)));
            }
            false
        };
        let is_named = |&inverse: &Id| self.terms.kind(inverse) == Kind::Iri;
        inverses(property).filter(is_named).filter(leads_anywhere).collect()
    }

    /// What follows because of a property of the ontology.
    fn property(&self, property: Id) -> Property {
        let schema = &self.ontology.schema;
        let mut above = schema.properties().ancestors(property).into_owned();
        above.retain(|&above| {
            let is_named = self.terms.kind(above) == Kind::Iri;
            is_named && (self.matters(above) || !self.inverses(above).is_empty())
        });
        let is_open = |&property: &Id| {
            self.takes_any_object(property)
                || !self.types(schema.ranges.get(&property)).is_empty()
                || !self.inverses(property).is_empty()
        };
        let is_open = schema.properties().is_above(schema.vocabulary.type_, property)
            || above.iter().chain([&property]).any(is_open);
        Property {
            domain: self.types(schema.domains.get(&property)),
            range: self.types(schema.ranges.get(&property)),
            inverses: self.inverses(property),
            above,
            topics: self.topics(property, is_open),
        }
    }

    fn takes_any_object(&self, property: Id) -> bool {
        self.mentions.asks_for_any_object(property) || self.is_read(property)
    }

    fn topics(&self, property: Id, is_open: bool) -> Topics {
        match is_reserved(property, self.terms) {
            true => Topics::None,
            false if is_open => Topics::All,
            false => Topics::Mentioned,
        }
    }

    /// Tells what follows from one triple and is asked for; and of each whether all is told with it
    /// that is above its object, as `is_told` says of the triple itself.
    fn follow(
        &self,
        [s, p, o]: Triple,
        is_told: bool,
        closing: &mut Closing,
        tell: &mut impl FnMut(Triple, bool),
    ) {
        let Closing { remembered, properties, types, topics, .. } = closing;
        let ontology = self.ontology;
        let (known_property, known_object) = (ontology.flags(p), ontology.flags(o));
        let is_text =
            ontology.has_names() && !inline::is_inline(o) && self.terms.kind(o) == Kind::Literal;
        if known_property & LEADS == 0 && known_object & (CLASS | TOPIC) == 0 && !is_text {
            return;
        }
        let schema = &ontology.schema;
        let type_ = schema.vocabulary.type_;
        // The id of a term that is not the ontology's may be another's tomorrow.
        let foreign;
        let property = if known_property & OWN == 0 {
            let topics = self.topics(p, self.takes_any_object(p));
            foreign = Property { topics, ..Property::default() };
            &foreign
        } else {
            properties.entry(p).or_insert_with(|| {
                let found = self.property(p);
                *remembered += found.above.len() + found.domain.len() + found.range.len() + 8;
                found
            })
        };
        property.above.iter().for_each(|&above| tell([s, above, o], false));
        property.domain.iter().for_each(|&class| tell([s, type_, class], true));
        let both = !property.range.is_empty() || !property.inverses.is_empty();
        if both && is_resource(o, self.terms) {
            property.range.iter().for_each(|&class| tell([o, type_, class], true));
            property.inverses.iter().for_each(|&inverse| tell([o, inverse, s], false));
        }
        let mut remember = |found: Vec<Id>| {
            *remembered += found.len() + 8;
            found
        };
        if p == type_ && known_object & CLASS != 0 && !is_told {
            let types = types.entry(o).or_insert_with(|| {
                let above = schema.classes().ancestors(o);
                remember(above.iter().copied().filter(|&class| self.is_type(class)).collect())
            });
            types.iter().for_each(|&class| tell([s, p, class], true));
        }
        if known_object & TOPIC != 0 && !is_told && property.topics == Topics::All {
            schema.concepts().ancestors(o).iter().for_each(|&above| tell([s, p, above], true));
        }
        if known_object & TOPIC != 0 && !is_told && property.topics == Topics::Mentioned {
            let topics = topics.entry(o).or_insert_with(|| {
                let above = schema.concepts().ancestors(o);
                remember(above.iter().copied().filter(|&t| self.mentions.has_object(t)).collect())
            });
            topics.iter().for_each(|&above| tell([s, p, above], true));
        }
        if is_text && property.topics != Topics::None {
            for &term in ontology.names_of(o, self.terms) {
                tell([s, p, term], false);
            }
        }
    }
}

impl Ontology {
    /// Adds to a publication's triples, roots put in, what follows and anybody asks for, but no more
    /// than [`DERIVED_TRIPLES`].
    pub fn close(
        &self,
        graph: &mut Graph,
        terms: Terms,
        mentions: &Mentions,
        closing: &mut Closing,
    ) {
        if !self.entailment {
            return;
        }
        closing.refresh(self, mentions);
        let asking = Asking { ontology: self, terms, mentions };
        let most = graph.triples.len().saturating_add(DERIVED_TRIPLES);
        let mut told = std::mem::take(&mut closing.told);
        told.clear();
        told.resize(graph.triples.len(), false);
        let mut number = 0;
        while number < graph.triples.len() && graph.triples.len() < most {
            let triple = graph.triples[number];
            if self.flags(triple[1]) & SCHEMA != 0 {
                let asked = self.schema.vocabulary.hierarchies().map(|p| asking.asks_for(p));
                return rules::extend(self, true, graph, terms, asked, most);
            }
            let is_told = told[number];
            asking.follow(triple, is_told, closing, &mut |following, is_told| {
                if graph.triples.len() < most && graph.derive(following, number) {
                    told.push(is_told);
                }
            });
            number += 1;
        }
        closing.told = told;
    }
}
