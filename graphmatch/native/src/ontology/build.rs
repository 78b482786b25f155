//! Building an ontology from its stated triples.

use crate::attribute_names;
use crate::branch::Node;
use crate::demand::Demand;
use crate::dictionary::{Dictionary, INLINE, Id, Kind, LocalTerms, Terms};
use crate::graph::Graph;
use crate::hierarchy::{Hierarchy, grouped};
use crate::limits::{Budget, Limits};
use crate::materialize::{Compiler, MaterializationCache};
use crate::ontology::*;
use crate::rules::{Condition, Vocabulary};
use crate::schema::Schema;
use crate::triples::{Sorted, Triple};
use hashbrown::HashSet;
use std::time::Duration;

/// Maximum number of triples that RDFS derives from an ontology alone.
const RDFS_TRIPLES: usize = 50_000_000;
/// The same of OWL 2 RL. Its joins take some 300 bytes for each triple.
const OWL_RL_TRIPLES: usize = 5_000_000;
/// Maximum time in which OWL 2 RL derives triples from an ontology alone.
const TIME: Duration = Duration::from_secs(120);

/// The data that an ontology is compiled from. All ids belong to the caller, who may release them
/// afterwards.
#[derive(Default)]
pub struct OntologyInput<'a> {
    /// The ontology's triples with root terms, and those that `gm:Taxonomy` and units add.
    pub triples: &'a [Triple],
    /// Whether the rules are those of OWL 2 RL.
    pub owl_rl: bool,
    /// Without entailment: the triples as they are stated, for queries to be asked of.
    pub plain: Option<&'a [Triple]>,
    /// Terms that have another root, with this root: IRIs, and texts as literals without a
    /// language, folded if texts are folded.
    pub roots: &'a [(Id, Id)],
    /// Texts (likewise) with the terms that they stand for: the rule *name*.
    pub names: &'a [(Id, Id)],
    /// Labels and last parts of IRIs, with the classes and concepts that have them.
    pub called: &'a [(&'a str, Id)],
    /// Prefixes with their namespaces.
    pub prefixes: &'a [(&'a str, &'a str)],
    /// Further steps that terms call for.
    pub steps: &'a [(Id, Steps)],
    /// The steps that every publication calls for.
    pub always: Steps,
    /// Whether upper and lower case are the same in texts, and whether compatibility variants of
    /// characters are; `None` if texts are not folded.
    pub folding: Option<(bool, bool)>,
}

/// Holds the terms of an ontology in the dictionary. Returns the terms that rules know, and all.
pub fn hold(dictionary: &mut Dictionary, stated: &OntologyInput) -> (Vocabulary, Vec<Id>) {
    let vocabulary = Vocabulary::new(dictionary);
    let mut mentioned: HashSet<Id> = HashSet::default();
    mentioned.extend(stated.triples.iter().chain(stated.plain.into_iter().flatten()).flatten());
    mentioned.extend(stated.roots.iter().chain(stated.names).flat_map(|&(a, b)| [a, b]));
    mentioned.extend(stated.called.iter().map(|&(_, term)| term));
    mentioned.extend(stated.steps.iter().map(|&(term, _)| term));
    mentioned.extend(vocabulary.ids());
    mentioned.retain(|&id| id < INLINE);
    let mentioned: Vec<Id> = mentioned.into_iter().collect();
    mentioned.iter().for_each(|&id| dictionary.retain(id));
    vocabulary.ids().for_each(|id| dictionary.release(id));
    (vocabulary, mentioned)
}

impl Ontology {
    /// Makes an ontology. It retains its terms until it is released.
    pub fn new(dictionary: &mut Dictionary, stated: OntologyInput) -> Self {
        let held = hold(dictionary, &stated);
        Self::of(dictionary, held, stated)
    }

    /// The same of terms that are held in the dictionary already, which only has to be read.
    pub fn of(
        dictionary: &Dictionary,
        (vocabulary, mentioned): (Vocabulary, Vec<Id>),
        stated: OntologyInput,
    ) -> Self {
        let local = LocalTerms::default();
        let terms = Terms { dictionary, local: &local };
        let called = || stated.called.iter().copied();
        let end = mentioned.iter().map(|&id| id as usize + 1).max().unwrap_or(0);
        let mut ontology = Self {
            entailment: stated.plain.is_none(),
            always: stated.always & PUBLIC,
            flags: vec![0; end],
            roots: stated.roots.iter().copied().collect(),
            names: grouped(stated.names.iter().copied()),
            folding: stated.folding,
            called: grouped(called().map(|(name, term)| (name.into(), term))),
            called_folded: grouped(
                called().map(|(name, term)| (attribute_names::folded(name).into(), term)),
            ),
            prefixes: stated.prefixes.iter().map(|&(p, n)| (p.into(), n.into())).collect(),
            mentioned,
            ..Self::default()
        };
        ontology.mentioned.iter().for_each(|&id| note(&mut ontology.flags, id, OWN));
        ontology.note_names(stated.roots, stated.names, terms);
        let mut closure = Graph::default();
        stated.triples.iter().for_each(|&triple| _ = closure.push(triple));
        ontology.schema = Schema::new(vocabulary, stated.owl_rl, &[], terms);
        note(&mut ontology.flags, vocabulary.nothing, CLASS);
        for rule in &ontology.schema.rules {
            for &[_, property, object] in &rule.premises[..rule.schema] {
                let type_ = Node::Constant(vocabulary.type_);
                if let Node::Constant(term) = if property == type_ { object } else { property } {
                    note(&mut ontology.flags, term, SCHEMA | LEADS);
                }
            }
        }
        ontology.schema.rules.retain(|rule| rule.condition != Condition::InPublication);
        let (demand, mut cache) = (Demand::default(), MaterializationCache::default());
        let (most, time) =
            if stated.owl_rl { (OWL_RL_TRIPLES, TIME) } else { (RDFS_TRIPLES, Duration::MAX) };
        let watch = Budget::new(&Limits::default(), 0, Some(time), || false).watch();
        let compiler = Compiler { ontology: &ontology, terms, demand: &demand, watch: &watch };
        ontology.is_truncated = !compiler.derive(&mut closure, &mut cache, most);
        let is_helper = |triple| vocabulary.is_helper(triple, terms);
        ontology.helpers = Sorted::new(closure.take_helpers(is_helper, vocabulary.contradiction));
        ontology.contradictions = std::mem::take(&mut closure.contradictions);
        let closure = closure.triples;
        ontology.schema = Schema::new(vocabulary, stated.owl_rl, &closure, terms);
        ontology.note_links(stated.triples, terms);
        ontology.note_schema(&closure, terms);
        ontology.note_properties(terms);
        if stated.owl_rl {
            for id in ontology.mentioned.clone() {
                ontology.note(id, LEADS | CLASS);
            }
        }
        for &(term, steps) in stated.steps {
            ontology.note(term, steps & PUBLIC);
        }
        if ontology.entailment {
            let Self { roots, names, schema, .. } = &ontology;
            let has_rules = stated.owl_rl
                || !names.is_empty()
                || schema.hierarchies.iter().any(|one| !one.is_empty());
            ontology.always |= if roots.is_empty() { 0 } else { ROOTS };
            ontology.always |= if has_rules { RULES } else { 0 };
        }
        ontology.background = Sorted::new(stated.plain.map_or(closure, <[Triple]>::to_vec));
        ontology
    }

    fn note_names(&mut self, roots: &[(Id, Id)], names: &[(Id, Id)], terms: Terms) {
        for &(term, root) in roots {
            self.note(term, ROOTS);
            if terms.kind(term) == Kind::Literal {
                self.has_texts = true;
            } else {
                self.synonyms.entry(root).or_default().push(term);
            }
        }
        self.has_texts |= !names.is_empty();
    }

    /// Finds the is-a properties, and the links that are stated with them.
    fn note_links(&mut self, triples: &[Triple], terms: Terms) {
        let v = self.schema.vocabulary;
        let property_classes =
            [v.object_property, v.datatype_property, v.annotation_property, v.property];
        let mut links = Vec::new();
        for (link, says, of_subject, of_object) in [
            (v.type_, SAYS_UP, IS_VALUE, 0),
            (v.sub_class, SAYS_UP, IS_CLASS | IS_VALUE, IS_CLASS | IS_VALUE),
            (v.sub_property, SAYS_UP, IS_PROPERTY, IS_PROPERTY),
            (v.broader, SAYS_UP, IS_VALUE, IS_VALUE),
            (v.broader_transitive, SAYS_UP, IS_VALUE, IS_VALUE),
            (v.narrower, SAYS_NARROWER, IS_VALUE, IS_VALUE),
        ] {
            let mut properties = self.schema.hierarchies[1].descendants(link);
            properties.push(link);
            properties.iter().for_each(|&property| self.note(property, says));
            for &[s, _, o] in triples.iter().filter(|triple| properties.contains(&triple[1])) {
                if s != o && terms.kind(o) != Kind::Literal {
                    links.push(if says == SAYS_NARROWER { (o, s) } else { (s, o) });
                    self.note(s, of_subject);
                    self.note(o, of_object);
                }
            }
        }
        let is_type =
            |triple: &&Triple| triple[1] == v.type_ && terms.kind(triple[0]) != Kind::Blank;
        for &[s, _, o] in triples.iter().filter(is_type) {
            let is_class = if [v.class, v.owl_class].contains(&o) { IS_CLASS } else { 0 };
            let is_property = if property_classes.contains(&o) { IS_PROPERTY } else { 0 };
            self.note(s, is_class | is_property);
        }
        self.links = Hierarchy::from(links);
    }

    /// Notes which terms the rules concern.
    fn note_schema(&mut self, closure: &[Triple], terms: Terms) {
        let Self { schema, flags, .. } = self;
        let mut note = |term: Id, bit| note(flags, term, bit);
        for (hierarchy, bit) in schema.hierarchies.iter().zip([CLASS, LEADS, TOPIC]) {
            hierarchy.terms().for_each(|term| note(term, bit));
        }
        let v = &schema.vocabulary;
        for &[s, p, o] in closure.iter().filter(|[.., o]| terms.kind(*o) != Kind::Literal) {
            if [v.domain, v.range, v.inverse_of].contains(&p) {
                note(s, LEADS);
            }
            if p == v.inverse_of {
                note(o, LEADS);
            }
        }
    }

    /// Notes what the properties are called that the ontology knows.
    fn note_properties(&mut self, terms: Terms) {
        let v = &self.schema.vocabulary;
        let mut properties = Vec::new();
        for &id in &self.mentioned {
            let leads =
                self.flags(id) & (LEADS | SCHEMA) == LEADS || [v.broader, v.narrower].contains(&id);
            if (leads || self.flags(id) & IS_PROPERTY != 0) && terms.kind(id) == Kind::Iri {
                self.step_names(id, terms, |name| {
                    if !name.starts_with('<') {
                        properties.push((Box::from(name), id));
                    }
                });
            }
        }
        self.properties = grouped(properties);
    }

    fn note(&mut self, id: Id, bits: Steps) {
        note(&mut self.flags, id, bits);
    }
}

/// Notes something of a term; of numbers, which have no place of their own, nothing.
fn note(flags: &mut [Steps], id: Id, bits: Steps) {
    if let Some(known) = flags.get_mut(id as usize) {
        *known |= bits;
    }
}
