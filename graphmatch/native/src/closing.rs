//! What follows from a publication, as far as anybody asks for it.
//!
//! The rules are those of [`Schema`](crate::schema::Schema), whose tables hold all that is above a
//! term. Of their conclusions those are left out that no subscription could meet and from which
//! nothing follows that one could: a high taxonomy then costs as many triples as there are
//! ancestors that some subscription mentions. Every answer is the same as with all conclusions.
//!
//! What is left of a property's or a class's table is remembered by each thread ([`Closing`]) until
//! something else is mentioned, and is then found again, by a hash look-up for each term above,
//! where a publication needs it. So a mention that comes or goes costs the subscriber nothing, and
//! the next publication some 100 ns for each of its terms that has others above it.
//!
//! Cost of a triple from which nothing follows: two look-ups in an array.

use crate::dictionary::{Id, Kind, Terms, inline};
use crate::hierarchy::{Hierarchy, Map};
use crate::mentions::Mentions;
use crate::ontology::{CLASS, LEADS, OWN, Ontology, SCHEMA, TOPIC};
use crate::rules;
use crate::schema::{is_reserved, is_resource};
use crate::triples::{Triple, Triples};
use std::ops::Range;

/// From a publication at most so many triples follow; the rest is left out.
pub const DERIVED_TRIPLES: usize = 10_000_000;
/// Of so many terms it is remembered what is left of what is above them.
const REMEMBERED: usize = 1 << 17;

/// A part of the remembered terms.
type Row = (u32, u32);

/// What follows from a triple because of its property, and is asked for.
#[derive(Clone, Copy, Default)]
struct Property {
    above: Row,
    domain: Row,
    range: Row,
    inverses: Row,
    /// Any object after it matters, whatever it is.
    is_open: bool,
    /// Broader topics, or the terms that a text stands for, after it matter.
    is_useful: bool,
}

/// What one thread remembers between publications.
#[derive(Default)]
pub struct Closing {
    stamp: (u64, u64, u64),
    properties: Map<Id, Property>,
    types: Map<Id, Row>,
    topics: Map<Id, Row>,
    leading: Map<Id, bool>,
    arena: Vec<Id>,
    room: Vec<Id>,
    told: Vec<bool>,
}

impl Closing {
    /// Forgets what was found under another ontology, or when something else was asked for.
    fn refresh(&mut self, ontology: &Ontology, mentions: &Mentions) {
        let (serial, version) = mentions.stamp();
        let stamp = (ontology.serial, serial, version);
        if self.stamp != stamp || self.arena.len() > 16 * REMEMBERED {
            self.stamp = stamp;
            self.properties.clear();
            self.types.clear();
            self.topics.clear();
            self.leading.clear();
            self.arena.clear();
        }
    }

    fn keep(&mut self, begin: usize) -> Row {
        (begin as u32, self.arena.len() as u32)
    }
}

fn numbers((begin, end): Row) -> Range<usize> {
    begin as usize..end as usize
}

fn is_empty((begin, end): Row) -> bool {
    begin == end
}

/// Everything that finding what is asked for looks at.
struct Asking<'a> {
    ontology: &'a Ontology,
    terms: Terms<'a>,
    mentions: &'a Mentions,
    has_rules_on_types: bool,
}

impl Asking<'_> {
    /// Whether instances of a class are asked for, or anything follows from being one.
    fn is_type(&self, class: Id) -> bool {
        let type_ = self.ontology.schema.vocabulary.type_;
        self.has_rules_on_types
            || self.mentions.asks_for_object(type_, class)
            || self.mentions.asked().asks_for_class(class)
    }

    /// The same for a class that a domain or a range gives; any is-a link may lead from it to one
    /// that attributes' values are asked for.
    fn is_given_type(&self, class: Id, room: &mut Vec<Id>) -> bool {
        let asked = self.mentions.asked();
        self.is_type(class)
            || asked.has_classes()
                && self
                    .ontology
                    .links()
                    .ancestors(class, room)
                    .iter()
                    .any(|&above| asked.asks_for_class(above))
    }

    fn is_step(&self, property: Id) -> bool {
        self.ontology.is_step(property, self.terms, self.mentions.asked())
    }

    /// Whether triples with a property are asked for, as such or as a part of attributes.
    fn asks_for(&self, property: Id) -> bool {
        self.mentions.asks_for(property) || self.is_step(property)
    }

    /// Adds the classes that instances of one are of and that are asked for, itself apart.
    fn types(&self, class: Id, closing: &mut Closing) {
        let above = self.ontology.schema.classes().ancestors(class, &mut closing.room);
        closing.arena.extend(above.iter().filter(|&&class| self.is_type(class)));
    }

    /// The classes that some classes lead to and that are asked for.
    fn types_of(&self, classes: Option<&Vec<Id>>, closing: &mut Closing) -> Row {
        let begin = closing.arena.len();
        for &class in classes.into_iter().flatten() {
            if self.is_given_type(class, &mut closing.room) {
                closing.arena.push(class);
            }
            self.types(class, closing);
        }
        closing.arena[begin..].sort_unstable();
        closing.keep(begin)
    }

    /// Whether a triple with a property is asked for, or gives a type that is.
    fn is_asked(&self, property: Id, room: &mut Vec<Id>) -> bool {
        let schema = &self.ontology.schema;
        let mut gives_type = |classes: Option<&Vec<Id>>| {
            classes.into_iter().flatten().any(|&class| {
                self.is_given_type(class, room)
                    || schema.classes().ancestors(class, room).iter().any(|&c| self.is_type(c))
            })
        };
        let is_type = property == schema.vocabulary.type_;
        self.ontology.flags(property) & SCHEMA != 0
            || self.mentions.asks_for(property)
            || (is_type && self.mentions.asked().has_classes())
            || gives_type(schema.domains.get(&property))
            || gives_type(schema.ranges.get(&property))
            || self.is_step(property)
    }

    /// Whether a property, or one that superproperties and inverses lead to, is asked for.
    fn leads_anywhere(&self, property: Id, closing: &mut Closing) -> bool {
        let schema = &self.ontology.schema;
        let (mut agenda, mut next) = (vec![property], 0);
        let mut seen: Map<Id, ()> = agenda.iter().map(|&property| (property, ())).collect();
        let mut room = std::mem::take(&mut closing.room);
        let mut found = false;
        while let Some(&current) = agenda.get(next) {
            next += 1;
            found = match closing.leading.get(&current) {
                Some(false) => continue,
                Some(true) => true,
                None => self.is_asked(current, &mut room),
            };
            if found {
                break;
            }
            let inverses = schema.inverses.get(&current).into_iter().flatten().copied();
            for following in schema.properties().parents(current).chain(inverses) {
                if seen.insert(following, ()).is_none() {
                    agenda.push(following);
                }
            }
        }
        closing.room = room;
        if found {
            closing.leading.insert(property, true);
        } else {
            closing.leading.extend(agenda.into_iter().map(|property| (property, false)));
        }
        found
    }

    /// A property's inverses from which anything follows that is asked for.
    fn inverses(&self, property: Id, closing: &mut Closing) -> Row {
        let begin = closing.arena.len();
        for &inverse in self.ontology.schema.inverses.get(&property).into_iter().flatten() {
            if self.terms.kind(inverse) == Kind::Iri && self.leads_anywhere(inverse, closing) {
                closing.arena.push(inverse);
            }
        }
        closing.keep(begin)
    }

    fn has_inverses(&self, property: Id, closing: &mut Closing) -> bool {
        let row = self.inverses(property, closing);
        closing.arena.truncate(row.0 as usize);
        !is_empty(row)
    }

    /// The properties above one whose triples are asked for, or lead to some that are.
    fn above(&self, property: Id, closing: &mut Closing) -> Row {
        let properties = self.ontology.schema.properties();
        let mut room = Vec::new();
        let above = properties.ancestors(property, &mut room);
        let mut found = Vec::new();
        for &above in above {
            if self.terms.kind(above) == Kind::Iri {
                let mut room = std::mem::take(&mut closing.room);
                let is_asked = self.is_asked(above, &mut room);
                closing.room = room;
                if is_asked || self.has_inverses(above, closing) {
                    found.push(above);
                }
            }
        }
        let begin = closing.arena.len();
        closing.arena.append(&mut found);
        closing.keep(begin)
    }

    /// Whether any object after a property matters by itself, or after one of its kind.
    fn takes_any_object(&self, property: Id, closing: &mut Closing) -> bool {
        if self.mentions.asks_for_any_object(property) || self.is_step(property) {
            return true;
        }
        let range = self.types_of(self.ontology.schema.ranges.get(&property), closing);
        closing.arena.truncate(range.0 as usize);
        !is_empty(range) || self.has_inverses(property, closing)
    }

    fn find(&self, property: Id, closing: &mut Closing) -> Property {
        let schema = &self.ontology.schema;
        let mut found = Property {
            above: self.above(property, closing),
            domain: self.types_of(schema.domains.get(&property), closing),
            range: self.types_of(schema.ranges.get(&property), closing),
            inverses: self.inverses(property, closing),
            ..Property::default()
        };
        if is_reserved(property, self.terms) {
            return found; // broader topics do not come after it
        }
        let mut above: Vec<Id> = closing.arena[numbers(found.above)].to_vec();
        let is_useful = !above.is_empty() || self.mentions.asks_for(property);
        above.push(property);
        found.is_open = schema.properties().is_above(schema.vocabulary.type_, property)
            || above.into_iter().any(|property| self.takes_any_object(property, closing));
        found.is_useful = is_useful || found.is_open;
        found
    }

    /// What follows because of a property.
    fn property(&self, property: Id, closing: &mut Closing) -> Property {
        if self.ontology.flags(property) & OWN == 0 {
            // Its id may be another term's tomorrow, so nothing is remembered of it.
            if is_reserved(property, self.terms) {
                return Property::default();
            }
            let is_open = self.mentions.asks_for_any_object(property) || self.is_step(property);
            let is_useful = is_open || self.mentions.asks_for(property);
            return Property { is_open, is_useful, ..Property::default() };
        }
        if let Some(&found) = closing.properties.get(&property) {
            return found;
        }
        let found = self.find(property, closing);
        closing.properties.insert(property, found);
        found
    }

    /// What is left of what is above a term: what is asked for.
    fn left(
        &self,
        term: Id,
        hierarchy: &Hierarchy,
        table: impl Fn(&mut Closing) -> &mut Map<Id, Row>,
        is_asked: impl Fn(Id) -> bool,
        closing: &mut Closing,
    ) -> Row {
        if let Some(&row) = table(closing).get(&term) {
            return row;
        }
        let begin = closing.arena.len();
        let above = hierarchy.ancestors(term, &mut closing.room);
        closing.arena.extend(above.iter().filter(|&&term| is_asked(term)));
        let row = closing.keep(begin);
        table(closing).insert(term, row);
        row
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
        let ontology = self.ontology;
        let (known_property, known_object) = (ontology.flags(p), ontology.flags(o));
        let is_text =
            ontology.has_names() && !inline::is_inline(o) && self.terms.kind(o) == Kind::Literal;
        if known_property & LEADS == 0 && known_object & (CLASS | TOPIC) == 0 && !is_text {
            return;
        }
        let schema = &ontology.schema;
        let property = self.property(p, closing);
        for number in numbers(property.above) {
            tell([s, closing.arena[number], o], false);
        }
        let type_ = schema.vocabulary.type_;
        for number in numbers(property.domain) {
            tell([s, type_, closing.arena[number]], true);
        }
        let both = !is_empty(property.range) || !is_empty(property.inverses);
        if both && is_resource(o, self.terms) {
            for number in numbers(property.range) {
                tell([o, type_, closing.arena[number]], true);
            }
            for number in numbers(property.inverses) {
                tell([o, closing.arena[number], s], false);
            }
        }
        if p == type_ {
            if known_object & CLASS != 0 && !is_told {
                let is_asked = |class| self.is_type(class);
                let row = self.left(o, schema.classes(), |c| &mut c.types, is_asked, closing);
                for number in numbers(row) {
                    tell([s, p, closing.arena[number]], true);
                }
            }
            return;
        }
        if !property.is_useful {
            return;
        }
        if known_object & TOPIC != 0 && !is_told {
            if property.is_open {
                for &above in schema.concepts().ancestors(o, &mut closing.room) {
                    tell([s, p, above], true);
                }
            } else {
                let is_asked = |term| self.mentions.has_object(term);
                let row = self.left(o, schema.concepts(), |c| &mut c.topics, is_asked, closing);
                for number in numbers(row) {
                    tell([s, p, closing.arena[number]], true);
                }
            }
        }
        if is_text {
            for &term in ontology.names_of(o, self.terms) {
                tell([s, p, term], false);
            }
        }
    }
}

impl Ontology {
    /// Adds to a publication's triples, roots put in, what follows and anybody asks for.
    ///
    /// Triples before `from` are closed already. `origins` gets for each triple the number of the
    /// one that it was derived from, and `u32::MAX` for those that were there. Returns whether
    /// everything is there, and not only [`DERIVED_TRIPLES`] of what follows.
    pub fn close(
        &self,
        triples: &mut impl Triples,
        from: usize,
        terms: Terms,
        mentions: &Mentions,
        closing: &mut Closing,
        mut origins: Option<&mut Vec<u32>>,
    ) -> bool {
        if !self.entailment {
            return true;
        }
        closing.refresh(self, mentions);
        let has_rules_on_types = self.flags(self.schema.vocabulary.type_) & LEADS != 0;
        let asking = Asking { ontology: self, terms, mentions, has_rules_on_types };
        if let Some(origins) = &mut origins {
            origins.resize(triples.len(), u32::MAX);
        }
        let most = triples.len().saturating_add(DERIVED_TRIPLES);
        let pairs = || {
            let hierarchies = self.schema.vocabulary.hierarchies();
            hierarchies.map(|property| asking.asks_for(property))
        };
        let is_schema = |triple: Triple| self.flags(triple[1]) & SCHEMA != 0;
        if (0..from).any(|number| is_schema(triples.get(number))) {
            return rules::extend(self, true, triples, terms, pairs(), most, origins);
        }
        let mut told = std::mem::take(&mut closing.told);
        told.clear();
        told.resize(triples.len().saturating_sub(from), false);
        let mut number = from;
        while number < triples.len() && triples.len() < most {
            let triple = triples.get(number);
            if is_schema(triple) {
                return rules::extend(self, true, triples, terms, pairs(), most, origins);
            }
            let is_told = told.get(number - from).is_some_and(|&is_told| is_told);
            asking.follow(triple, is_told, closing, &mut |following, is_told| {
                if triples.len() < most && triples.push(following) {
                    told.push(is_told);
                    if let Some(origins) = &mut origins {
                        origins.push(number as u32);
                    }
                }
            });
            number += 1;
        }
        closing.told = told;
        triples.len() < most
    }
}
