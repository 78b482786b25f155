//! What an ontology's schema says, as tables: all superclasses of a class, all superproperties, …

use crate::dictionary::{Dictionary, Id, Kind, Terms};
use crate::hierarchy::{Hierarchy, Map, grouped};
use crate::triples::Triple;
use serde::{Deserialize, Serialize};

/// Declares the terms that rules know, each by its name here and the last parts of its IRI.
macro_rules! vocabulary {
    ($($name:ident: $path:literal),* $(,)?) => {
        /// The ids of the terms that rules know.
        #[derive(Clone, Copy, Default, Serialize, Deserialize)]
        pub struct Vocabulary {
            $(#[doc = concat!("`", $path, "`")] pub $name: Id,)*
        }

        impl Vocabulary {
            /// Interns the terms, each once; [`Vocabulary::ids`] are to be released.
            pub fn new(dictionary: &mut Dictionary) -> Self {
                let mut id = |path| {
                    dictionary.intern(format!("<http://www.w3.org/{path}>").as_bytes())
                };
                Self { $($name: id($path),)* }
            }

            /// All of the ids.
            pub fn ids(&self) -> impl Iterator<Item = Id> {
                [$(self.$name),*].into_iter()
            }
        }
    };
}

vocabulary! {
    type_: "1999/02/22-rdf-syntax-ns#type",
    sub_class: "2000/01/rdf-schema#subClassOf",
    sub_property: "2000/01/rdf-schema#subPropertyOf",
    domain: "2000/01/rdf-schema#domain",
    range: "2000/01/rdf-schema#range",
    inverse_of: "2002/07/owl#inverseOf",
    equivalent_class: "2002/07/owl#equivalentClass",
    equivalent_property: "2002/07/owl#equivalentProperty",
    same_as: "2002/07/owl#sameAs",
    broader: "2004/02/skos/core#broader",
    narrower: "2004/02/skos/core#narrower",
    broader_transitive: "2004/02/skos/core#broaderTransitive",
    class: "2000/01/rdf-schema#Class",
    owl_class: "2002/07/owl#Class",
    property: "1999/02/22-rdf-syntax-ns#Property",
    object_property: "2002/07/owl#ObjectProperty",
    datatype_property: "2002/07/owl#DatatypeProperty",
    annotation_property: "2002/07/owl#AnnotationProperty",
}

impl Vocabulary {
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

    /// What classes are instances of.
    pub fn classes(&self) -> [Id; 2] {
        [self.class, self.owl_class]
    }

    /// What properties are instances of.
    pub fn properties(&self) -> [Id; 4] {
        [self.property, self.object_property, self.datatype_property, self.annotation_property]
    }
}

/// Terms with others, each once.
type Grouped = Map<Id, Vec<Id>>;

/// What an ontology's schema says, in tables.
#[derive(Default, Serialize, Deserialize)]
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
