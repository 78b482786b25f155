//! The rules of `docs/reference/semantics.md`, as data, and the terms that they know.
//!
//! A rule has schema premises, data premises and a conclusion. Schema premises use the vocabulary of
//! ontologies (`P rdfs:domain C`). Data premises are other triples (`X P Y`).
//! [`crate::materialize`] evaluates the rules. To add a rule, add a row to [`RDFS`] or [`OWL_RL`].
//!
//! OWL 2 RL has rules about lists of any length. Here they are rules about one node of a list, with
//! *helper* triples ([`Vocabulary::is_helper`]), which no query sees. A list is itself a property:
//! that of a property chain connects the ends of a chain, and that of `owl:AllDifferent` or
//! `owl:AllDisjointClasses` connects an individual with the node by which it is in the list.
//!
//! Source: OWL 2 Web Ontology Language Profiles (Second Edition), section 4.3, tables 4 to 9.

use crate::branch::{Node, Pattern};
use crate::dictionary::{ANY, Dictionary, Id, Kind, Terms};
use crate::limits::Watch;
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
                let mut id = |path: &str| {
                    let is_literal = path.starts_with('"');
                    let iri = format!("<http://www.w3.org/{path}>");
                    dictionary.intern(if is_literal { path } else { &iri }.as_bytes())
                };
                Self { $($name: id($path),)* }
            }

            /// All of the ids.
            pub fn ids(&self) -> impl Iterator<Item = Id> {
                [$(self.$name),*].into_iter()
            }

            /// The term with a name.
            fn named(&self, name: &str) -> Option<Id> {
                [$((stringify!($name), self.$name)),*].into_iter().find(|one| one.0 == name).map(|one| one.1)
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
    first: "1999/02/22-rdf-syntax-ns#first",
    rest: "1999/02/22-rdf-syntax-ns#rest",
    nil: "1999/02/22-rdf-syntax-ns#nil",
    thing: "2002/07/owl#Thing",
    nothing: "2002/07/owl#Nothing",
    different_from: "2002/07/owl#differentFrom",
    all_different: "2002/07/owl#AllDifferent",
    members: "2002/07/owl#members",
    distinct_members: "2002/07/owl#distinctMembers",
    functional: "2002/07/owl#FunctionalProperty",
    inverse_functional: "2002/07/owl#InverseFunctionalProperty",
    irreflexive: "2002/07/owl#IrreflexiveProperty",
    symmetric: "2002/07/owl#SymmetricProperty",
    asymmetric: "2002/07/owl#AsymmetricProperty",
    transitive: "2002/07/owl#TransitiveProperty",
    chain: "2002/07/owl#propertyChainAxiom",
    disjoint_property: "2002/07/owl#propertyDisjointWith",
    all_disjoint_properties: "2002/07/owl#AllDisjointProperties",
    has_key: "2002/07/owl#hasKey",
    source: "2002/07/owl#sourceIndividual",
    assertion: "2002/07/owl#assertionProperty",
    target: "2002/07/owl#targetIndividual",
    target_value: "2002/07/owl#targetValue",
    intersection_of: "2002/07/owl#intersectionOf",
    union_of: "2002/07/owl#unionOf",
    complement_of: "2002/07/owl#complementOf",
    one_of: "2002/07/owl#oneOf",
    on_property: "2002/07/owl#onProperty",
    on_class: "2002/07/owl#onClass",
    some_values_from: "2002/07/owl#someValuesFrom",
    all_values_from: "2002/07/owl#allValuesFrom",
    has_value: "2002/07/owl#hasValue",
    max_cardinality: "2002/07/owl#maxCardinality",
    max_qualified_cardinality: "2002/07/owl#maxQualifiedCardinality",
    disjoint_with: "2002/07/owl#disjointWith",
    all_disjoint_classes: "2002/07/owl#AllDisjointClasses",
    zero: r#""0"^^<http://www.w3.org/2001/XMLSchema#nonNegativeInteger>"#,
    one: r#""1"^^<http://www.w3.org/2001/XMLSchema#nonNegativeInteger>"#,
    // Helpers, which are in no file.
    contradiction: "graphmatch/contradiction",
    all_of: "graphmatch/allOf",
    item: "graphmatch/item",
    list_of: "graphmatch/listOf",
    has_path: "graphmatch/hasPath",
    has_keys: "graphmatch/hasKeys",
    has_parts: "graphmatch/hasParts",
    filler: "graphmatch/filler",
}

impl Vocabulary {
    /// The transitive properties that make hierarchies.
    pub fn hierarchies(&self) -> [Id; 3] {
        [self.sub_class, self.sub_property, self.broader_transitive]
    }

    /// Whether only rules see a triple: its property is used by rules only, or is a node of a list.
    pub fn is_helper(&self, [_, property, _]: Triple, terms: Terms) -> bool {
        let list = [self.item, self.list_of, self.has_path, self.has_keys, self.has_parts];
        let others = [self.all_of, self.filler, self.contradiction];
        list.contains(&property) || others.contains(&property) || terms.kind(property) != Kind::Iri
    }

    /// The properties of schema whose objects may be literals.
    pub fn of_values(&self) -> [Id; 4] {
        [self.has_value, self.target_value, self.max_cardinality, self.max_qualified_cardinality]
    }
}

/// Maximum number of variables of a rule.
pub const VARIABLES: usize = 8;

/// The terms of a rule's variables, [`ANY`] if unknown.
pub type Bindings = [Id; VARIABLES];

/// If the premises hold, so does the conclusion.
pub struct Rule {
    /// The name in explanations.
    pub name: &'static str,
    /// The schema premises, then the data premises.
    pub premises: Vec<Pattern>,
    /// The number of schema premises.
    pub schema: usize,
    pub conclusion: Pattern,
    pub condition: Condition,
    /// Whether the property of the conclusion is a list.
    pub is_list: bool,
}

impl Rule {
    /// The data premises.
    pub fn data(&self) -> &[Pattern] {
        &self.premises[self.schema..]
    }

    /// Whether the only schema premise is a link of a hierarchy, so that the triples of all ancestors
    /// are derived in one step.
    pub fn is_hierarchical(&self, v: &Vocabulary) -> bool {
        let is_hierarchy = |id: &Id| self.premises[0][1] == Node::Constant(*id);
        self.schema == 1 && self.premises.len() == 2 && v.hierarchies().iter().any(is_hierarchy)
    }

    /// Whether the schema depends on the object of a premise of data.
    pub fn reads_object(&self, premise: usize) -> bool {
        let object = self.premises[premise][2];
        matches!(object, Node::Constant(_))
            || self.premises[..self.schema].iter().any(|schema| schema.contains(&object))
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
    /// The publication states or derives the schema. Terms that the ontology equates have one root
    /// already. If the rule has two premises, the first two variables differ.
    InPublication,
    /// The subject and the object of the conclusion differ.
    Distinct,
}

use Condition::{Distinct, InPublication, None as Always, Transitive, Unreserved};

/// The rules of RDFS, of SKOS and for equivalent terms: schema premises, `|`, data premises,
/// and the conclusion. A capital letter is a variable; other terms are those of [`Vocabulary`].
const RDFS: [(&str, &str, &str, Condition); 20] = [
    ("rdfs2", "A domain B | X A Y", "X type_ B", Always),
    ("rdfs3", "A range B | X A Y", "Y type_ B", Always),
    ("rdfs7", "A sub_property B | X A Y", "X B Y", Always),
    ("rdfs9", "A sub_class B | X type_ A", "X type_ B", Always),
    ("inverse", "A inverse_of B | X A Y", "Y B X", Always),
    ("inverse", "A inverse_of B | X B Y", "Y A X", Always),
    ("topic", "A broader_transitive B | X P A", "X P B", Unreserved),
    ("rdfs11", "A sub_class B | X sub_class A", "X sub_class B", Transitive(0)),
    ("rdfs5", "A sub_property B | X sub_property A", "X sub_property B", Transitive(1)),
    (
        "broader",
        "A broader_transitive B | X broader_transitive A",
        "X broader_transitive B",
        Transitive(2),
    ),
    ("broader", "A broader B |", "A broader_transitive B", Always),
    ("narrower", "A broader B |", "B narrower A", Always),
    ("narrower", "A narrower B |", "B broader A", Always),
    ("class", "A equivalent_class B |", "A sub_class B", InPublication),
    ("class", "A equivalent_class B |", "B sub_class A", InPublication),
    ("property", "A equivalent_property B |", "A sub_property B", InPublication),
    ("property", "A equivalent_property B |", "B sub_property A", InPublication),
    ("same", "A same_as B |", "B same_as A", InPublication),
    ("same", "A same_as B | A X Y", "B X Y", InPublication),
    ("same", "A same_as B | X Y A", "X Y B", InPublication),
];

/// The further rules of OWL 2 RL, one in a line: `name: premises => conclusion`. `contradiction` is
/// what the W3C calls *false*. If `distinct` follows, subject and object of the conclusion differ.
const OWL_RL: &str = "\
eq-rep-p: A same_as B | X A Y => X B Y
eq-diff1: A different_from A | => A contradiction A
eq-diff1: A different_from B | A same_as B => A contradiction B
eq-diff1: A different_from B | B same_as A => A contradiction B
eq-diff2: M list_of L, D members L, D type_ all_different, M first X | => X L M
eq-diff2: D members L, D type_ all_different | X L M, X L N => M contradiction N distinct
eq-diff2: D members L, D type_ all_different | X L M, X same_as Y, Y L N => M contradiction N distinct
eq-diff3: M list_of L, D distinct_members L, D type_ all_different, M first X | => X L M
eq-diff3: D distinct_members L, D type_ all_different | X L M, X L N => M contradiction N distinct
eq-diff3: D distinct_members L, D type_ all_different | X L M, X same_as Y, Y L N => M contradiction N distinct
prp-fp: P type_ functional | X P A, X P B => A same_as B
prp-ifp: P type_ inverse_functional | A P Y, B P Y => A same_as B
prp-irp: P type_ irreflexive | X P X => X contradiction X
prp-symp: P type_ symmetric | X P Y => Y P X
prp-asyp: P type_ asymmetric | X P Y, Y P X => X contradiction Y
prp-trp: P type_ transitive | X P Y, Y P Z => X P Z
prp-spo2: P chain L | X L Y => X P Y
prp-spo2: P chain L | => L has_path L
prp-spo2: L has_path L, L rest M | => M has_path M
prp-spo2: L has_path L, L first P, L rest nil | X P Y => X L Y
prp-spo2: L has_path L, L first P, L rest M | X P Y, Y M Z => X L Z
prp-pdw: P disjoint_property Q | X P Y, X Q Y => X contradiction Y
prp-adp: M first P, N first Q, D members L, D type_ all_disjoint_properties, M list_of L, N list_of L | X P Y, X Q Y => M contradiction N distinct
prp-key: C has_key L | X L Y, X type_ C, Y type_ C => X same_as Y
prp-key: C has_key L | => L has_keys L
prp-key: L has_keys L, L rest M | => M has_keys M
prp-key: L has_keys L, L first P, L rest nil | X P Z, Y P Z => X L Y
prp-key: L has_keys L, L first P, L rest M | X P Z, Y P Z, X M Y => X L Y
prp-npa1: N source A, N assertion P, N target B | A P B => A contradiction B
prp-npa2: N source A, N assertion P, N target_value B | A P B => A contradiction B
cls-nothing2: | X type_ nothing => X contradiction X
cls-int1: C intersection_of L | X all_of L => X type_ C
cls-int1: C intersection_of L | => L has_parts L
cls-int1: L has_parts L, L rest M | => M has_parts M
cls-int1: L has_parts L, L first C, L rest nil | X type_ C => X all_of L
cls-int1: L has_parts L, L first C, L rest M | X type_ C, X all_of M => X all_of L
cls-com: A complement_of B | X type_ A, X type_ B => X contradiction X
cls-svf1: C on_property P, C some_values_from D | X P Y, Y type_ D => X type_ C
cls-svf2: C on_property P, C some_values_from thing | X P Y => X type_ C
cls-avf: C on_property P, C all_values_from D | X P Y, X type_ C => Y type_ D
cls-hv1: C on_property P, C has_value Y | X type_ C => X P Y
cls-hv2: C on_property P, C has_value Y | X P Y => X type_ C
cls-maxc1: C on_property P, C max_cardinality zero | X P Y, X type_ C => X contradiction Y
cls-maxc2: C on_property P, C max_cardinality one | X P A, X P B, X type_ C => A same_as B
cls-maxqc1: C on_property P, C max_qualified_cardinality zero, C on_class D | X P Y, Y type_ D, X type_ C => X contradiction Y
cls-maxqc2: C on_property P, C max_qualified_cardinality zero, C on_class thing | X P Y, X type_ C => X contradiction Y
cls-maxqc3: C on_property P, C max_qualified_cardinality one, C on_class D | X P A, X P B, A type_ D, B type_ D, X type_ C => A same_as B
cls-maxqc4: C on_property P, C max_qualified_cardinality one, C on_class thing | X P A, X P B, X type_ C => A same_as B
cls-oo: C one_of L, L item X | => X type_ C
cax-dw: A disjoint_with B | X type_ A, X type_ B => X contradiction X
cax-adc: M first A, M list_of L, D members L, D type_ all_disjoint_classes | X type_ A => X L M
cax-adc: D members L, D type_ all_disjoint_classes | X L M, X L N => M contradiction N distinct
scm-cls: C type_ owl_class | => C sub_class thing
scm-eqc2: A sub_class B, B sub_class A | => A equivalent_class B
scm-eqp2: A sub_property B, B sub_property A | => A equivalent_property B
scm-dom1: P domain A, A sub_class B | => P domain B
scm-dom2: P domain A, Q sub_property P | => Q domain A
scm-rng1: P range A, A sub_class B | => P range B
scm-rng2: P range A, Q sub_property P | => Q range A
scm-hv: P sub_property Q, A has_value Y, A on_property P, B has_value Y, B on_property Q | => A sub_class B
scm-svf1: A filler D, A some_values_from E, A on_property P, B some_values_from D, B on_property P | => A sub_class B
scm-svf2: P sub_property Q, A some_values_from D, A on_property P, B some_values_from D, B on_property Q | => A sub_class B
scm-avf1: A filler D, A all_values_from E, A on_property P, B all_values_from D, B on_property P | => A sub_class B
scm-avf2: P sub_property Q, A all_values_from D, A on_property Q, B all_values_from D, B on_property P | => A sub_class B
scm-svf1: A some_values_from D | => A filler D
scm-avf1: A all_values_from D | => A filler D
scm-svf1: A filler D, D sub_class E | => A filler E
scm-int: C intersection_of L, L item D | => C sub_class D
scm-uni: C union_of L, L item D | => D sub_class C
list: C intersection_of L | => L list_of L
list: C union_of L | => L list_of L
list: C one_of L | => L list_of L
list: C members L | => L list_of L
list: C distinct_members L | => L list_of L
list: M list_of L, M rest N | => N list_of L
list: M list_of L, M first A | => L item A";

/// Returns the rules of RDFS, or all.
pub fn rules(v: &Vocabulary, is_owl_rl: bool) -> Vec<Rule> {
    // OWL 2 RL has the rules for equivalent terms without a condition.
    let condition = |one| if is_owl_rl && one == InPublication { Always } else { one };
    let rdfs = RDFS.into_iter().map(|(name, premises, conclusion, one)| {
        rule(v, name, premises, conclusion, condition(one))
    });
    let of_two = [v.same_as, v.sub_class].map(Node::Constant);
    let more = OWL_RL.lines().filter(|_| is_owl_rl).map(|row| {
        let (name, row) = row.split_once(": ")?;
        let (premises, conclusion) = row.split_once(" => ")?;
        let mut rule = rule(v, name, premises, conclusion, Always)?;
        if conclusion.ends_with("distinct") || of_two.contains(&rule.conclusion[1]) {
            rule.condition = Distinct;
        }
        Some(rule)
    });
    rdfs.chain(more).flatten().collect()
}

/// Parses a rule; `None` for a term that is not known.
fn rule(
    v: &Vocabulary,
    name: &'static str,
    premises: &str,
    conclusion: &str,
    condition: Condition,
) -> Option<Rule> {
    let mut variables = Vec::new();
    let mut pattern = |text: &str| -> Option<Pattern> {
        let mut nodes = text.split_whitespace().map(|word| {
            if !word.starts_with(char::is_uppercase) {
                return v.named(word).map(Node::Constant);
            }
            let known = variables.iter().position(|known| known == word);
            Some(Node::Variable(known.unwrap_or_else(|| {
                variables.push(word.to_owned());
                variables.len() - 1
            }) as u16))
        });
        Some([nodes.next()??, nodes.next()??, nodes.next()??])
    };
    let (schema, data) = premises.split_once('|')?;
    let mut parse = |texts: &str| -> Option<Vec<Pattern>> {
        texts.split(',').filter(|text| !text.trim().is_empty()).map(&mut pattern).collect()
    };
    let mut premises = parse(schema)?;
    let schema = premises.len();
    premises.append(&mut parse(data)?);
    let conclusion = pattern(conclusion)?;
    let has_list = premises.iter().any(|premise| premise[1] == Node::Constant(v.first));
    let is_list = has_list && matches!(conclusion[1], Node::Variable(_));
    Some(Rule { name, premises, schema, conclusion, condition, is_list })
}

/// Binds the variables of a pattern to the terms of a triple; false if they cannot be.
pub fn bind(pattern: Pattern, triple: Triple, bindings: &mut Bindings) -> bool {
    pattern.into_iter().zip(triple).all(|(node, term)| match node {
        Node::Constant(known) => known == term,
        Node::Variable(number) => {
            let known = std::mem::replace(&mut bindings[number as usize], term);
            known == ANY || known == term
        }
    })
}

/// Returns the triple that bindings make of a pattern, with [`ANY`] for unknown terms.
pub fn instance(pattern: Pattern, bindings: &Bindings) -> Triple {
    pattern.map(|node| match node {
        Node::Constant(known) => known,
        Node::Variable(number) => bindings[number as usize],
    })
}

/// Calls a function with all bindings that satisfy the premises that are `left`, a bit each, and
/// whether a triple of the graph itself was among them, until the time is over. `look` finds the
/// triples that a premise, by its number, can be, and says whether each is one of the graph's own.
pub fn solve<'a>(
    rule: &Rule,
    left: u32,
    bindings: &Bindings,
    is_own: bool,
    watch: &Watch,
    look: &impl Fn(usize, Triple) -> Box<dyn Iterator<Item = (Triple, bool)> + 'a>,
    call: &mut impl FnMut(&Bindings, bool),
) {
    if watch.is_over() {
        return;
    }
    let key = |number: usize| instance(rule.premises[number], bindings);
    // A premise comes early if it has few unknown terms, is schema, and its subject is known.
    let cost = |number: &usize| {
        let [s, p, o] = key(*number).map(|term| usize::from(term == ANY));
        (s + 2 * p + o, *number >= rule.schema, s)
    };
    let numbers = (0..rule.premises.len()).filter(|number| left >> number & 1 == 1);
    let Some(next) = numbers.min_by_key(cost) else { return call(bindings, is_own) };
    for (triple, own) in look(next, key(next)) {
        let mut bindings = *bindings;
        if bind(rule.premises[next], triple, &mut bindings) {
            solve(rule, left & !(1 << next), &bindings, is_own || own, watch, look, call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_rows_are_rules() {
        let v = Vocabulary::new(&mut Dictionary::default());
        assert_eq!(rules(&v, false).len(), RDFS.len());
        assert_eq!(rules(&v, true).len(), RDFS.len() + OWL_RL.lines().count());
    }
}
