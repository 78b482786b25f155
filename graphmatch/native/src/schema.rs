//! The schema of an ontology: the rules that apply, and the hierarchies.

use crate::dictionary::{Id, Kind, Terms};
use crate::hierarchy::Hierarchy;
use crate::rules::{Rule, Vocabulary, rules};
use crate::triples::Triple;
use serde::{Deserialize, Serialize};

/// An ontology's schema.
#[derive(Default, Serialize, Deserialize)]
#[serde(from = "(Vocabulary, bool, [Hierarchy; 3])")]
pub struct Schema {
    /// The terms that rules know.
    pub vocabulary: Vocabulary,
    /// Whether the rules are those of OWL 2 RL, and not only those of RDFS.
    pub is_owl_rl: bool,
    #[serde(skip)]
    pub rules: Vec<Rule>,
    /// The classes, the properties and the concepts of SKOS: see [`Vocabulary::hierarchies`].
    pub hierarchies: [Hierarchy; 3],
}

impl From<(Vocabulary, bool, [Hierarchy; 3])> for Schema {
    fn from((vocabulary, is_owl_rl, hierarchies): (Vocabulary, bool, [Hierarchy; 3])) -> Self {
        Self { rules: rules(&vocabulary, is_owl_rl), vocabulary, is_owl_rl, hierarchies }
    }
}

impl Schema {
    /// Compiles the schema of an ontology with all derived triples.
    pub fn new(vocabulary: Vocabulary, is_owl_rl: bool, closure: &[Triple], terms: Terms) -> Self {
        let hierarchy = |property| {
            let triples = closure.iter().filter(|&&[_, p, _]| p == property);
            let links = triples.filter(|&&[_, _, o]| terms.kind(o) != Kind::Literal);
            Hierarchy::from(links.map(|&[s, _, o]| (s, o)).collect::<Vec<_>>())
        };
        (vocabulary, is_owl_rl, vocabulary.hierarchies().map(hierarchy)).into()
    }

    /// The hierarchy that a property makes, if it makes one.
    pub fn hierarchy(&self, property: Id) -> Option<&Hierarchy> {
        let number = self.vocabulary.hierarchies().iter().position(|&p| p == property)?;
        self.hierarchies.get(number)
    }
}

/// Whether a term may be a subject.
pub fn is_resource(term: Id, terms: Terms) -> bool {
    matches!(terms.kind(term), Kind::Iri | Kind::Blank)
}

/// Whether a property belongs to RDF, RDFS, OWL or SKOS.
pub fn is_reserved(property: Id, terms: Terms) -> bool {
    crate::attribute_names::is_reserved(crate::attribute_names::text(terms, property))
}
