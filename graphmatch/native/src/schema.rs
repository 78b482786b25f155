//! What an ontology's schema says, as tables: all superclasses of a class, all superproperties, …

use crate::dictionary::{Dictionary, Id, Kind, Terms};
use crate::hierarchy::{Hierarchy, Map, grouped};
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, stored};
use crate::triples::Triple;

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

stored!(Vocabulary {
    type_,
    sub_class,
    sub_property,
    domain,
    range,
    inverse_of,
    equivalent_class,
    equivalent_property,
    same_as,
    broader,
    narrower,
    broader_transitive,
    classes,
    properties,
});

impl Stored for Schema {
    fn save(&self, to: &mut Saver) {
        self.vocabulary.save(to);
        self.hierarchies.iter().for_each(|hierarchy| hierarchy.save(to));
        [&self.domains, &self.ranges, &self.inverses].iter().for_each(|table| table.save(to));
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let vocabulary = Stored::load(from)?;
        let (classes, properties, concepts) = Stored::load(from)?;
        let (domains, ranges, inverses) = Stored::load(from)?;
        let hierarchies = [classes, properties, concepts];
        Ok(Self { vocabulary, hierarchies, domains, ranges, inverses })
    }
}

/// Terms with others, each once.
type Grouped = Map<Id, Vec<Id>>;

/// What an ontology's schema says, in tables.
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
    /// All terms that it has.
    pub fn ids(&self) -> impl Iterator<Item = &Id> {
        let tables = [&self.domains, &self.ranges, &self.inverses].into_iter();
        let rows = tables.flatten().flat_map(|(key, row)| [key].into_iter().chain(row));
        rows.chain(self.hierarchies.iter().flat_map(Hierarchy::ids))
    }

    /// Makes the tables of all that follows from an ontology.
    pub fn new(vocabulary: Vocabulary, closed: &[Triple], terms: Terms) -> Self {
        let v = &vocabulary;
        let pairs = |property| {
            let is_said =
                move |&&[_, p, o]: &&Triple| p == property && terms.kind(o) != Kind::Literal;
            closed.iter().filter(is_said).map(|&[s, _, o]| (s, o))
        };
        Self {
            hierarchies: v.hierarchies().map(|property| Hierarchy::new(pairs(property))),
            domains: grouped(pairs(v.domain)),
            ranges: grouped(pairs(v.range)),
            inverses: grouped(
                pairs(v.inverse_of)
                    .chain([(v.broader, v.narrower)])
                    .flat_map(|(p, q)| [(p, q), (q, p)]),
            ),
            vocabulary,
        }
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
}

/// Whether a term may be a subject.
pub fn is_resource(term: Id, terms: Terms) -> bool {
    matches!(terms.kind(term), Kind::Iri | Kind::Blank)
}

/// Whether a property belongs to RDF, RDFS, OWL or SKOS.
pub fn is_reserved(property: Id, terms: Terms) -> bool {
    crate::names::is_reserved(crate::names::text(terms, property))
}
