//! The schema of an ontology: the terms that rules know, and the hierarchies.

use crate::dictionary::{Dictionary, Id, Kind, Terms};
use crate::hierarchy::Hierarchy;
use crate::rules::{Rule, rules};
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
            /// Interns the terms. The caller releases [`Vocabulary::ids`].
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

    /// The transitive properties that make hierarchies.
    pub fn hierarchies(&self) -> [Id; 3] {
        [self.sub_class, self.sub_property, self.broader_transitive]
    }

    /// The classes of classes.
    pub fn classes(&self) -> [Id; 2] {
        [self.class, self.owl_class]
    }

    /// The classes of properties.
    pub fn properties(&self) -> [Id; 4] {
        [self.property, self.object_property, self.datatype_property, self.annotation_property]
    }
}

/// An ontology's schema.
#[derive(Default, Serialize, Deserialize)]
#[serde(from = "(Vocabulary, Hierarchy, Hierarchy, Hierarchy)")]
pub struct Schema {
    /// The terms that rules know.
    pub vocabulary: Vocabulary,
    #[serde(skip)]
    pub rules: Vec<Rule>,
    pub classes: Hierarchy,
    pub properties: Hierarchy,
    /// The concepts of SKOS.
    pub concepts: Hierarchy,
}

impl From<(Vocabulary, Hierarchy, Hierarchy, Hierarchy)> for Schema {
    fn from(saved: (Vocabulary, Hierarchy, Hierarchy, Hierarchy)) -> Self {
        let (vocabulary, classes, properties, concepts) = saved;
        Self { rules: rules(&vocabulary), vocabulary, classes, properties, concepts }
    }
}

impl Schema {
    /// Compiles the schema of an ontology with all derived triples.
    pub fn new(vocabulary: Vocabulary, closure: &[Triple], terms: Terms) -> Self {
        let [classes, properties, concepts] = vocabulary.hierarchies().map(|property| {
            let triples = closure.iter().filter(|&&[_, p, _]| p == property);
            let links = triples.filter(|&&[_, _, o]| terms.kind(o) != Kind::Literal);
            Hierarchy::new(links.map(|&[s, _, o]| (s, o)))
        });
        Self { vocabulary, rules: rules(&vocabulary), classes, properties, concepts }
    }

    /// The hierarchy that a property makes, if it makes one.
    pub fn hierarchy(&self, property: Id) -> Option<&Hierarchy> {
        let number = self.vocabulary.hierarchies().iter().position(|&p| p == property)?;
        [&self.classes, &self.properties, &self.concepts].get(number).copied()
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
