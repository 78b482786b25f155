//! The rules of `docs/reference/semantics.md`, as data, and the terms that they know.
//!
//! Each rule has a premise of schema, whose property belongs to a vocabulary of ontologies, at most
//! one premise of data, and a conclusion. [`crate::materialize`] evaluates them: to add a rule, add
//! a row to [`rules`]. Evaluation and demand are computed from the rows.

use crate::branch::{Node, Pattern};
use crate::dictionary::{ANY, Dictionary, Id};
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
    /// The transitive properties that make hierarchies.
    pub fn hierarchies(&self) -> [Id; 3] {
        [self.sub_class, self.sub_property, self.broader_transitive]
    }
}

const A: Node = Node::Variable(0);
const B: Node = Node::Variable(1);
const X: Node = Node::Variable(2);
const Y: Node = Node::Variable(3);

/// If the premises hold, so does the conclusion.
pub struct Rule {
    /// The name in the reference.
    pub name: &'static str,
    /// A triple of schema. Its object is not a literal.
    pub schema: Pattern,
    /// A triple of data, if the rule has two premises.
    pub data: Option<Pattern>,
    pub conclusion: Pattern,
    pub condition: Condition,
}

impl Rule {
    /// Whether the schema is a hierarchy, so that all that is above a term is derived at once.
    pub fn is_hierarchical(&self, v: &Vocabulary) -> bool {
        v.hierarchies().iter().any(|&property| self.schema[1] == Node::Constant(property))
    }

    /// Returns the number of the variable that only the schema premise has.
    pub fn unknown(&self) -> usize {
        usize::from(self.data.is_some_and(|data| data.contains(&A)))
    }
}

/// A restriction of a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Condition {
    None,
    /// The data's property is outside the vocabularies of ontologies.
    Unreserved,
    /// The rule says that a hierarchy is transitive. The number is its place among
    /// [`Vocabulary::hierarchies`].
    Transitive(usize),
    /// The publication states or derives the schema, since such triples of the ontology are root
    /// terms already. If the rule has two premises, `A` and `B` differ.
    InPublication,
}

/// Returns all rules.
pub fn rules(v: &Vocabulary) -> Vec<Rule> {
    use Condition::{InPublication, None as Always, Transitive, Unreserved};
    let is = Node::Constant;
    let [type_, class, property] = [v.type_, v.sub_class, v.sub_property].map(is);
    let [broader, narrower, topic] = [v.broader, v.narrower, v.broader_transitive].map(is);
    let [same_class, same_property] = [v.equivalent_class, v.equivalent_property].map(is);
    let [domain, range, inverse, same] = [v.domain, v.range, v.inverse_of, v.same_as].map(is);
    let data = Some([X, A, Y]);
    [
        ("rdfs2", [A, domain, B], data, [X, type_, B], Always),
        ("rdfs3", [A, range, B], data, [Y, type_, B], Always),
        ("rdfs7", [A, property, B], data, [X, B, Y], Always),
        ("rdfs9", [A, class, B], Some([X, type_, A]), [X, type_, B], Always),
        ("inverse", [A, inverse, B], data, [Y, B, X], Always),
        ("inverse", [A, inverse, B], Some([X, B, Y]), [Y, A, X], Always),
        ("topic", [A, topic, B], Some([X, Y, A]), [X, Y, B], Unreserved),
        ("rdfs11", [A, class, B], Some([X, class, A]), [X, class, B], Transitive(0)),
        ("rdfs5", [A, property, B], Some([X, property, A]), [X, property, B], Transitive(1)),
        ("broader", [A, topic, B], Some([X, topic, A]), [X, topic, B], Transitive(2)),
        ("broader", [A, broader, B], None, [A, topic, B], Always),
        ("narrower", [A, broader, B], None, [B, narrower, A], Always),
        ("narrower", [A, narrower, B], None, [B, broader, A], Always),
        ("class", [A, same_class, B], None, [A, class, B], InPublication),
        ("class", [A, same_class, B], None, [B, class, A], InPublication),
        ("property", [A, same_property, B], None, [A, property, B], InPublication),
        ("property", [A, same_property, B], None, [B, property, A], InPublication),
        ("same", [A, same, B], None, [B, same, A], InPublication),
        ("same", [A, same, B], Some([A, X, Y]), [B, X, Y], InPublication),
        ("same", [A, same, B], Some([X, Y, A]), [X, Y, B], InPublication),
    ]
    .map(|(name, schema, data, conclusion, condition)| Rule {
        name,
        schema,
        data,
        conclusion,
        condition,
    })
    .into()
}

/// Binds the four variables of a pattern, [`ANY`] if unknown, to the terms of a triple; false if they cannot be.
pub fn bind(pattern: Pattern, triple: Triple, bindings: &mut [Id; 4]) -> bool {
    pattern.into_iter().zip(triple).all(|(node, term)| match node {
        Node::Constant(known) => known == term,
        Node::Variable(number) => {
            let known = std::mem::replace(&mut bindings[number as usize], term);
            known == ANY || known == term
        }
    })
}

/// Returns the triple that bindings make of a pattern, with [`ANY`] for unknown terms.
pub fn instance(pattern: Pattern, bindings: &[Id; 4]) -> Triple {
    pattern.map(|node| match node {
        Node::Constant(known) => known,
        Node::Variable(number) => bindings[number as usize],
    })
}
