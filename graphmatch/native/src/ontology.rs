//! One ontology, compiled for matching.
//!
//! Python reads the files, and finds roots of synonyms, units and labels. It hands over triples with
//! root terms. The core makes of them the closure C(O), the hierarchies, the is-a links and the names
//! of classes and properties. None of this depends on subscriptions.
//!
//! A high taxonomy has very many pairs of a term and an ancestor. These are not stored: look-ups find
//! them by a walk.
//!
//! Cost: linear in the triples of the closure, apart from sorting. Finding the steps of a term is one
//! look-up in an array.

use crate::attribute_names;
use crate::demand::{AttributePathTrie, Serial};
use crate::dictionary::{ANY, Dictionary, Id, Kind, Terms, inline};
use crate::hierarchy::Hierarchy;
use crate::lexical;
use crate::schema::Schema;
use crate::triples::{Sorted, Triple};
use hashbrown::{HashMap, HashSet};
use serde::{Deserialize, Serialize};
use unicode_normalization::UnicodeNormalization;

pub mod build;

/// Steps of enrichment that terms call for, a bit each.
pub type Steps = u32;

/// Annotation: items of feeds, whose texts are looked through for labels.
pub const ITEM: Steps = 1;
/// A property that is an attribute: what begins with one is an event, and a graph, too.
pub const EVENT: Steps = 1 << 1;
/// Terms that have another term as their root: the ontology has synonyms.
pub const ROOTS: Steps = 1 << 2;
/// Quantities, and properties that give units.
pub const UNITS: Steps = 1 << 3;
/// Rules: the ontology has hierarchies or names, or a property has conclusions.
pub const RULES: Steps = 1 << 4;
/// Properties that mapping functions read.
pub const MAPPING: Steps = 1 << 5;
/// Attributes that are asked for; no term calls for it.
pub const ATTRIBUTES: Steps = 1 << 6;

// Flags of a term besides the steps.
const PUBLIC: Steps = (1 << 7) - 1;
/// Other classes are above it.
pub(crate) const CLASS: Steps = 1 << 7;
/// Broader concepts are above it.
pub(crate) const TOPIC: Steps = 1 << 8;
/// A property from whose triples something may follow.
pub(crate) const LEADS: Steps = 1 << 10;
/// A property whose triples are premises of rules, beside the data.
pub(crate) const SCHEMA: Steps = 1 << 11;
/// A property that says that the object is above the subject.
pub(crate) const SAYS_UP: Steps = 1 << 12;
/// A property that says that the subject is above the object.
pub(crate) const SAYS_NARROWER: Steps = 1 << 13;
/// A class; a property; and what a value may be called: a class, a concept, an instance.
pub(crate) const IS_CLASS: Steps = 1 << 17;
const IS_PROPERTY: Steps = 1 << 18;
const IS_VALUE: Steps = 1 << 19;
/// A term that the ontology uses, so that its id stays its own.
pub(crate) const OWN: Steps = 1 << 20;

/// One ontology, ready for matching.
#[derive(Default, Serialize, Deserialize)]
pub struct Ontology {
    #[serde(skip)]
    pub(crate) serial: Serial,
    pub(crate) schema: Schema,
    /// Whether rules and roots are applied at all.
    pub(crate) entailment: bool,
    /// The steps that every publication calls for.
    pub(crate) always: Steps,
    flags: Vec<Steps>,
    roots: HashMap<Id, Id>,
    synonyms: HashMap<Id, Vec<Id>>,
    names: HashMap<Id, Vec<Id>>,
    has_texts: bool,
    /// See [`build::OntologyInput::folding`].
    folding: Option<(bool, bool)>,
    background: Sorted,
    /// The triples of the closure that only rules see.
    helpers: Sorted,
    /// The contradictions in the ontology itself: rules with their last premises.
    #[serde(skip)]
    pub contradictions: Vec<(&'static str, Triple)>,
    /// Whether triples are missing because more follows from the ontology itself than its limit.
    #[serde(skip)]
    pub is_truncated: bool,
    /// The is-a links that are stated, of all kinds.
    pub(crate) links: Hierarchy,
    called: HashMap<Box<str>, Vec<Id>>,
    called_folded: HashMap<Box<str>, Vec<Id>>,
    prefixes: HashMap<Box<str>, Box<str>>,
    properties: HashMap<Box<str>, Vec<Id>>,
    mentioned: Vec<Id>,
}

impl Ontology {
    /// Releases the terms that it uses.
    pub fn release(&self, dictionary: &mut Dictionary) {
        self.mentioned.iter().for_each(|&id| dictionary.release(id));
    }

    // -- terms ------------------------------------------------------------------------------

    #[inline]
    pub(crate) fn flags(&self, id: Id) -> Steps {
        self.flags.get(id as usize).copied().unwrap_or(0)
    }

    /// The steps that a term calls for, wherever in a triple it is; too many rather than too few.
    #[inline]
    pub fn steps(&self, id: Id, terms: Terms) -> Steps {
        if inline::is_inline(id) {
            return 0;
        }
        let known = self.flags(id) & (ITEM | UNITS);
        if !self.entailment {
            return known & ITEM;
        }
        let is_quantity = attribute_names::is_quantity(attribute_names::text(terms, id));
        known | if is_quantity { UNITS } else { 0 }
    }

    /// The steps that a term calls for as a property.
    #[inline]
    pub fn steps_of_property(&self, id: Id, terms: Terms) -> Steps {
        if !self.entailment {
            return 0;
        }
        let known = self.flags(id);
        let event = if attribute_names::text(terms, id).starts_with(attribute_names::ATTRIBUTE) {
            EVENT
        } else {
            0
        };
        event | known & MAPPING | if known & LEADS != 0 { RULES } else { 0 }
    }

    /// Returns the key by which a text is looked up.
    ///
    /// Source: The Unicode Standard, section 3.13, D146 (compatibility caseless match).
    fn fold(&self, text: &str) -> String {
        match self.folding.unwrap_or_default() {
            (true, _) if text.is_ascii() => text.to_ascii_lowercase(),
            (true, false) => attribute_names::case_folded(text.chars()),
            (true, true) => {
                let text = attribute_names::case_folded(text.nfd());
                attribute_names::case_folded(text.nfkd()).nfkc().collect()
            }
            (false, true) => text.nfkc().collect(),
            (false, false) => text.to_owned(),
        }
    }

    /// The key of a text: a literal without a language that is in the dictionary.
    fn key(&self, id: Id, terms: Terms) -> Option<Id> {
        if !self.has_texts || inline::is_inline(id) {
            return None;
        }
        let text = lexical::string(attribute_names::text(terms, id))?;
        terms.dictionary.get(lexical::quote(&self.fold(&text)).as_bytes())
    }

    /// The term that stands for this one and its synonyms.
    #[inline]
    pub fn root(&self, id: Id, terms: Terms) -> Id {
        if self.entailment { self.root_by_name(id, terms) } else { id }
    }

    /// The same, whether or not rules are applied: what taxonomy operators go by.
    pub(crate) fn root_by_name(&self, id: Id, terms: Terms) -> Id {
        let known = self.flags(id) & ROOTS != 0;
        if !known && !self.has_texts {
            return id;
        }
        let key = if terms.kind(id) == Kind::Literal { self.key(id, terms) } else { Some(id) };
        key.and_then(|key| self.roots.get(&key)).copied().unwrap_or(id)
    }

    /// The terms that a text stands for, by the rule *name*.
    pub(crate) fn names_of(&self, id: Id, terms: Terms) -> &[Id] {
        if self.names.is_empty() {
            return &[];
        }
        self.key(id, terms).and_then(|key| self.names.get(&key)).map_or(&[], Vec::as_slice)
    }

    // -- the background ---------------------------------------------------------------------

    /// Whether a triple that follows from the ontology alone has these terms.
    pub fn has_match(&self, key: Triple) -> bool {
        self.matching(key).next().is_some()
    }

    fn pairs_of(&self, property: Id) -> Option<&Hierarchy> {
        self.schema.hierarchy(property).filter(|_| self.entailment)
    }

    /// Whether a triple, of which the subject does not matter, is schema.
    pub(crate) fn is_schema(&self, [_, property, object]: Triple) -> bool {
        let schema = if property == self.schema.vocabulary.type_ { object } else { property };
        self.flags(schema) & SCHEMA != 0
    }

    /// Whether a triple of schema can be a premise: whether its object is a literal only if that is
    /// a value.
    pub(crate) fn is_premise(&self, [_, property, object]: Triple, terms: Terms) -> bool {
        terms.kind(object) != Kind::Literal
            || self.schema.vocabulary.of_values().contains(&property)
    }

    /// The triples of the ontology's schema with a key. From a term, a hierarchy is gone up to the
    /// top, or one step.
    pub(crate) fn schema_triples<'a>(
        &'a self,
        key: Triple,
        is_one_step: bool,
        terms: Terms<'a>,
    ) -> impl Iterator<Item = Triple> + 'a {
        let [s, p, o] = key;
        let hierarchy = self.pairs_of(p).filter(|_| s != ANY && o == ANY);
        let above: Vec<Id> = match hierarchy {
            Some(hierarchy) if is_one_step => hierarchy.parents(s).collect(),
            Some(hierarchy) => hierarchy.ancestors(s).into_owned(),
            None => Vec::new(),
        };
        let others = hierarchy.is_none().then(|| self.with_helpers(key));
        let others = others.into_iter().flatten();
        let others = others.filter(move |&triple| self.is_premise(triple, terms));
        above.into_iter().map(move |above| [s, p, above]).chain(others)
    }

    /// The triples of the ontology's closure with some terms, for rules.
    pub(crate) fn with_helpers(&self, key: Triple) -> impl Iterator<Item = Triple> + '_ {
        self.matching(key).chain(self.helpers.matching(key))
    }

    /// Whether the ontology may have triples with a key.
    pub(crate) fn is_known(&self, key: Triple) -> bool {
        let is_known = |id| id == ANY || self.flags(id) & OWN != 0 || inline::is_inline(id);
        key.into_iter().all(is_known)
    }

    /// The distinct triples of the ontology's closure with some terms.
    pub fn matching(&self, key: Triple) -> impl Iterator<Item = Triple> + '_ {
        let [s, p, o] = key;
        let hierarchies = self.schema.vocabulary.hierarchies().into_iter();
        let pairs = hierarchies.filter(move |&property| p == property || p == ANY);
        let pairs = pairs.flat_map(move |property| self.pairs([s, property, o]));
        self.background
            .matching(key)
            .chain(pairs.filter(|&triple| !self.background.contains(triple)))
    }

    /// The pairs of a hierarchy that have some terms.
    fn pairs(&self, [s, property, o]: Triple) -> impl Iterator<Item = Triple> + '_ {
        self.pairs_of(property).into_iter().flat_map(move |hierarchy| {
            let low = match (s, o) {
                (ANY, ANY) => hierarchy.terms().collect(),
                (ANY, _) => hierarchy.descendants(o),
                _ => vec![s],
            };
            low.into_iter().flat_map(move |s| {
                let high = match o {
                    ANY => hierarchy.ancestors(s).into_owned(),
                    _ => Vec::from_iter(hierarchy.ancestors(s).contains(&o).then_some(o)),
                };
                high.into_iter().map(move |o| [s, property, o])
            })
        })
    }

    /// Returns the terms that have different roots in two ontologies, texts by their keys, and the
    /// number of triples that only one of them has, without the pairs of hierarchies.
    pub fn difference(&self, other: &Self) -> (HashSet<Id>, usize) {
        let differing = |one: &Self, other: &Self| -> Vec<Id> {
            let differs = |&(term, root): &(&Id, &Id)| other.roots.get(term) != Some(root);
            one.roots.iter().filter(differs).map(|(&term, _)| term).collect()
        };
        let names = [differing(self, other), differing(other, self)];
        let triples = self.background.difference(&other.background);
        (names.into_iter().flatten().collect(), triples.len())
    }
}

// -- names ----------------------------------------------------------------------------------

impl Ontology {
    /// Tells the names of the steps that go along a property, a root of synonyms.
    pub(crate) fn step_names(&self, property: Id, terms: Terms, mut tell: impl FnMut(&str)) {
        let others = self.synonyms.get(&property).into_iter().flatten();
        for &name in others.chain([&property]) {
            let text = attribute_names::text(terms, name);
            let Some(iri) = lexical::iri(text) else { continue };
            match attribute_names::attribute_name(text) {
                Some(own) => tell(&own),
                None => {
                    tell(attribute_names::local_name(iri));
                    tell(std::str::from_utf8(text).unwrap_or_default());
                }
            }
        }
    }

    /// Whether an attribute that is asked for has a step that goes along a property.
    pub(crate) fn is_step(&self, property: Id, terms: Terms, asked: &AttributePathTrie) -> bool {
        let mut found = false;
        if !asked.is_empty() {
            self.step_names(property, terms, |name| found |= asked.step(name).is_some());
        }
        found
    }

    /// The properties that the name of a step means; none where the ontology knows none.
    pub(crate) fn properties_called(&self, step: &str) -> &[Id] {
        self.properties.get(step).map_or(&[], Vec::as_slice)
    }

    /// Tells the classes and concepts that a text may stand for.
    ///
    /// The first of these that names something decides: a prefixed name, the last part of an IRI,
    /// a label or a text that stands for one, any of these in another case.
    pub fn called(&self, text: &str, terms: Terms, mut tell: impl FnMut(Id)) {
        if let Some((prefix, local)) = text.split_once(':')
            && let Some(namespace) = self.prefixes.get(prefix)
        {
            let term = terms.dictionary.get(format!("<{namespace}{local}>").as_bytes());
            let term = term.map(|term| self.root_by_name(term, terms));
            return term.into_iter().filter(|&t| self.flags(t) & IS_VALUE != 0).for_each(tell);
        }
        let row = self.row_called(text, terms);
        let is_local = |id: Id| {
            lexical::iri(attribute_names::text(terms, id)).map(attribute_names::local_name)
                == Some(text)
        };
        let only_local = row.len() > 1 && row.iter().any(|&id| is_local(id));
        row.iter().filter(|&&id| !only_local || is_local(id)).for_each(|&id| tell(id));
    }

    fn row_called(&self, text: &str, terms: Terms) -> &[Id] {
        if self.called.is_empty() {
            return &[];
        }
        if let Some(row) = self.called.get(text) {
            return row;
        }
        if self.has_texts {
            let literal = lexical::quote(&self.fold(text));
            let key = terms.dictionary.get(literal.as_bytes());
            let root = key.and_then(|key| self.roots.get(&key));
            if let Some(text) =
                root.and_then(|&root| lexical::string(attribute_names::text(terms, root)))
                && let Some(row) = self.called.get(text.as_ref())
            {
                return row;
            }
        }
        self.called_folded.get(attribute_names::folded(text).as_str()).map_or(&[], Vec::as_slice)
    }
}
