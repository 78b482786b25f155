//! The rules of `docs/reference/semantics.md`, compiled for one ontology.
//!
//! Its schema becomes tables (all superclasses of a class, all superproperties, …), so that a
//! triple leads to what follows from it by a few look-ups ([`Schema::follow`]). What an ontology
//! says of its schema by properties of its own (a sub-property of `rdfs:subClassOf`) is found
//! first.
//!
//! The pairs of a hierarchy that only its being transitive gives are not made where nothing but
//! transitivity follows from them: of a chain of n classes there are n²/2.

use crate::dictionary::{Dictionary, Id, Kind, Terms};
use crate::hierarchy::{Hierarchy, Map, Set};
use crate::triples::{Triple, TripleSet, Triples};

/// The ids of the terms that rules know.
#[derive(Clone, Copy, Default)]
pub struct Vocabulary {
    /// `rdf:type`
    pub type_: Id,
    /// `rdfs:subClassOf`
    pub sub_class: Id,
    /// `rdfs:subPropertyOf`
    pub sub_property: Id,
    /// `rdfs:domain`
    pub domain: Id,
    /// `rdfs:range`
    pub range: Id,
    /// `owl:inverseOf`
    pub inverse_of: Id,
    /// `owl:equivalentClass`
    pub equivalent_class: Id,
    /// `owl:equivalentProperty`
    pub equivalent_property: Id,
    /// `owl:sameAs`
    pub same_as: Id,
    /// `skos:broader`
    pub broader: Id,
    /// `skos:narrower`
    pub narrower: Id,
    /// `skos:broaderTransitive`
    pub broader_transitive: Id,
    /// `rdfs:Class`, `owl:Class`
    pub classes: [Id; 2],
    /// `rdf:Property` and OWL's kinds of property
    pub properties: [Id; 4],
}

impl Vocabulary {
    /// Interns the terms, each once; [`Vocabulary::ids`] are to be released.
    pub fn new(dictionary: &mut Dictionary) -> Self {
        let mut id = |vocabulary: &str, name: &str| {
            let path = match vocabulary {
                "rdf" => "1999/02/22-rdf-syntax-ns",
                "rdfs" => "2000/01/rdf-schema",
                "owl" => "2002/07/owl",
                _ => "2004/02/skos/core",
            };
            dictionary.intern(format!("<http://www.w3.org/{path}#{name}>").as_bytes())
        };
        Self {
            type_: id("rdf", "type"),
            sub_class: id("rdfs", "subClassOf"),
            sub_property: id("rdfs", "subPropertyOf"),
            domain: id("rdfs", "domain"),
            range: id("rdfs", "range"),
            inverse_of: id("owl", "inverseOf"),
            equivalent_class: id("owl", "equivalentClass"),
            equivalent_property: id("owl", "equivalentProperty"),
            same_as: id("owl", "sameAs"),
            broader: id("skos", "broader"),
            narrower: id("skos", "narrower"),
            broader_transitive: id("skos", "broaderTransitive"),
            classes: [id("rdfs", "Class"), id("owl", "Class")],
            properties: [
                id("rdf", "Property"),
                id("owl", "ObjectProperty"),
                id("owl", "DatatypeProperty"),
                id("owl", "AnnotationProperty"),
            ],
        }
    }

    /// All of the ids.
    pub fn ids(&self) -> impl Iterator<Item = Id> {
        let schema = self.schema();
        [self.type_].into_iter().chain(schema).chain(self.classes).chain(self.properties)
    }

    /// The properties whose triples are premises of rules, beside the data.
    pub fn schema(&self) -> [Id; 11] {
        [
            self.sub_class,
            self.sub_property,
            self.domain,
            self.range,
            self.inverse_of,
            self.equivalent_class,
            self.equivalent_property,
            self.same_as,
            self.broader,
            self.narrower,
            self.broader_transitive,
        ]
    }

    /// The properties that say what is above, and are transitive.
    pub fn hierarchies(&self) -> [Id; 3] {
        [self.sub_class, self.sub_property, self.broader_transitive]
    }
}

type Grouped = Map<Id, Vec<Id>>;
/// Gives the terms that a text stands for.
pub type NamesOf<'a> = &'a dyn Fn(Id) -> Vec<Id>;

/// The compiled rules of one ontology.
#[derive(Default)]
pub struct Schema {
    /// What the rules know.
    pub vocabulary: Vocabulary,
    /// Classes, properties and concepts: the order of [`Vocabulary::hierarchies`].
    pub hierarchies: [Hierarchy; 3],
    /// Property to the classes that its subjects are of.
    pub domains: Grouped,
    /// Property to the classes that its objects are of.
    pub ranges: Grouped,
    /// Property to its inverses.
    pub inverses: Grouped,
}

impl Schema {
    /// Compiles an ontology's triples, roots put in: those included that its own rules give.
    pub fn compile(
        vocabulary: Vocabulary,
        triples: &[Triple],
        terms: Terms,
        names: Option<NamesOf>,
        most: usize,
    ) -> Self {
        let saying: Set<Id> = vocabulary.schema().into_iter().chain([vocabulary.type_]).collect();
        let stated = triples.iter().copied().filter(|triple| saying.contains(&triple[1]));
        let mut known = TripleSet::new(stated);
        loop {
            let schema = Self::of(vocabulary, &known, terms);
            if !(0..known.len()).any(|number| schema.gives_schema(known.get(number))) {
                return schema;
            }
            let mut gives: Map<Id, bool> = Map::default();
            let closed = triples.iter().copied().filter(|&[_, property, _]| {
                *gives.entry(property).or_insert_with(|| schema.gives(property))
            });
            let mut closed = TripleSet::new(closed);
            schema.close_all(&mut closed, terms, names, most);
            let before = known.len();
            for triple in closed.into_vec() {
                if vocabulary.schema().contains(&triple[1]) {
                    known.push(triple);
                }
            }
            if known.len() == before {
                return schema;
            }
        }
    }

    fn of(vocabulary: Vocabulary, triples: &TripleSet, terms: Terms) -> Self {
        let mut schema = Self { vocabulary, ..Self::default() };
        let mut links: [Vec<(Id, Id)>; 3] = Default::default();
        let v = &vocabulary;
        let add = |table: &mut Grouped, key, value| table.entry(key).or_default().push(value);
        add(&mut schema.inverses, v.broader, v.narrower);
        add(&mut schema.inverses, v.narrower, v.broader);
        for number in 0..triples.len() {
            let [s, p, o] = triples.get(number);
            if p == v.type_ || terms.kind(o) == Kind::Literal {
                continue;
            }
            if p == v.sub_class {
                links[0].push((s, o));
            } else if p == v.sub_property {
                links[1].push((s, o));
            } else if p == v.broader || p == v.broader_transitive {
                links[2].push((s, o));
            } else if p == v.narrower {
                links[2].push((o, s));
            } else if terms.kind(s) == Kind::Iri {
                if p == v.domain {
                    add(&mut schema.domains, s, o);
                } else if p == v.range {
                    add(&mut schema.ranges, s, o);
                } else if p == v.inverse_of {
                    add(&mut schema.inverses, s, o);
                    add(&mut schema.inverses, o, s);
                }
            }
        }
        for row in schema.inverses.values_mut() {
            row.sort_unstable();
            row.dedup();
        }
        schema.hierarchies = links.map(Hierarchy::new);
        schema
    }

    /// Whether a triple makes a property say what one of the schema's properties says.
    fn gives_schema(&self, [s, p, o]: Triple) -> bool {
        let v = &self.vocabulary;
        if p == v.inverse_of {
            let is_built_in = [(s, o), (o, s)].contains(&(v.broader, v.narrower));
            return !is_built_in && [s, o].iter().any(|term| v.schema().contains(term));
        }
        let is_built_in = (s, o) == (v.broader, v.broader_transitive);
        p == v.sub_property && !is_built_in && v.schema().contains(&o)
    }

    /// Whether what has a property may state schema by the ontology's own rules.
    fn gives(&self, property: Id) -> bool {
        let v = &self.vocabulary;
        let built_in =
            [(v.broader, v.narrower), (v.narrower, v.broader), (v.broader, v.broader_transitive)];
        let (mut agenda, mut next, mut room) = (vec![property], 0, Vec::new());
        let mut seen: Set<Id> = agenda.iter().copied().collect();
        while let Some(&current) = agenda.get(next) {
            next += 1;
            let mut following = self.properties().ancestors(current, &mut room).to_vec();
            following.extend(self.inverses.get(&current).into_iter().flatten());
            if self.domains.contains_key(&current) || self.ranges.contains_key(&current) {
                following.push(v.type_);
            }
            if current == v.broader {
                following.push(v.broader_transitive);
            }
            for other in following {
                if v.schema().contains(&other) && !built_in.contains(&(current, other)) {
                    return true;
                }
                if seen.insert(other) {
                    agenda.push(other);
                }
            }
        }
        false
    }

    /// The classes.
    pub fn classes(&self) -> &Hierarchy {
        &self.hierarchies[0]
    }

    /// The properties.
    pub fn properties(&self) -> &Hierarchy {
        &self.hierarchies[1]
    }

    /// The concepts of SKOS.
    pub fn concepts(&self) -> &Hierarchy {
        &self.hierarchies[2]
    }

    /// Whether anything may follow from a triple because of its property.
    pub fn leads(&self, property: Id) -> bool {
        self.vocabulary.schema().contains(&property)
            || self.properties().has_parents(property)
            || [&self.domains, &self.ranges, &self.inverses]
                .iter()
                .any(|table| table.contains_key(&property))
    }

    /// Whether the ontology has rules about `rdf:type` itself.
    pub fn has_rules_on_types(&self) -> bool {
        self.leads(self.vocabulary.type_)
    }

    /// Of which hierarchies the pairs have to be made, for more than transitivity follows from
    /// them. (What a domain or a range gives, the links give as well.)
    pub fn with_pairs(&self) -> [bool; 3] {
        self.vocabulary.hierarchies().map(|property| {
            self.properties().has_parents(property) || self.inverses.contains_key(&property)
        })
    }

    /// Tells what follows from one triple and the schema in one step.
    ///
    /// `pairs` says of which hierarchies all pairs are wanted.
    pub fn follow(
        &self,
        [s, p, o]: Triple,
        terms: Terms,
        pairs: [bool; 3],
        room: &mut Vec<Id>,
        tell: &mut impl FnMut(Triple),
    ) {
        let v = &self.vocabulary;
        let is_named = |term: Id| terms.kind(term) == Kind::Iri;
        for &above in self.properties().ancestors(p, room) {
            if is_named(above) {
                tell([s, above, o]);
            }
        }
        for &class in self.domains.get(&p).into_iter().flatten() {
            tell([s, v.type_, class]);
        }
        if is_resource(o, terms) {
            for &class in self.ranges.get(&p).into_iter().flatten() {
                tell([o, v.type_, class]);
            }
            for &inverse in self.inverses.get(&p).into_iter().flatten() {
                if is_named(inverse) {
                    tell([o, inverse, s]);
                }
            }
        }
        if p == v.broader && terms.kind(o) != Kind::Literal {
            tell([s, v.broader_transitive, o]);
        }
        let hierarchy = v.hierarchies().iter().position(|&property| property == p);
        let taxonomy = match hierarchy {
            Some(number) if pairs[number] => &self.hierarchies[number],
            None if p == v.type_ => self.classes(),
            None if self.concepts().contains(o) && !is_reserved(p, terms) => self.concepts(),
            _ => return,
        };
        for &above in taxonomy.ancestors(o, room) {
            tell([s, p, above]);
        }
    }

    /// Adds to triples all that follows from them, with the pairs that more follows from.
    ///
    /// `names` gives the terms that an object stands for. No triple is added any more where there
    /// are `most`; whether there are fewer.
    pub fn close_all(
        &self,
        triples: &mut TripleSet,
        terms: Terms,
        names: Option<NamesOf>,
        most: usize,
    ) -> bool {
        let (pairs, mut room, mut found) = (self.with_pairs(), Vec::new(), Vec::new());
        let mut number = 0;
        while number < triples.len() && triples.len() < most {
            let triple = triples.get(number);
            number += 1;
            self.follow(triple, terms, pairs, &mut room, &mut |following| found.push(following));
            if let Some(names) = names {
                let [s, p, o] = triple;
                if terms.kind(o) == Kind::Literal && !is_reserved(p, terms) {
                    found.extend(names(o).into_iter().map(|term| [s, p, term]));
                }
            }
            for following in found.drain(..) {
                if triples.len() < most {
                    triples.push(following);
                }
            }
        }
        triples.len() < most
    }
}

/// Whether a term may be a subject.
pub fn is_resource(term: Id, terms: Terms) -> bool {
    matches!(terms.kind(term), Kind::Iri | Kind::Blank)
}

/// Whether a property belongs to RDF, RDFS, OWL or SKOS.
pub fn is_reserved(property: Id, terms: Terms) -> bool {
    crate::names::is_reserved(crate::names::text(terms, property))
}
