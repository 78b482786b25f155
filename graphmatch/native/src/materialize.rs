//! The rule engine: semi-naive evaluation of [`crate::rules`].
//!
//! Triples are taken one by one, the derived ones too, and each is tried as every premise. There
//! are two ways to find the other premise:
//!
//! * *Compiled rules.* If a publication has no schema, the schema is the ontology's. Then a rule
//!   and a schema triple make a rule with one premise. These are compiled for a property, or for a
//!   property with an object, when a publication has such a triple, and are cached by each thread
//!   until the demand changes ([`MaterializationCache`]). A rule whose conclusion is of no use to
//!   any subscription is left out. So a high taxonomy costs as many triples as there are ancestors
//!   that some subscription names.
//! * *Joins.* If a publication states or derives schema, and while the ontology is made, the other
//!   premise is looked up among the graph's triples and those of the ontology.
//!
//! All that is above a term in a hierarchy is derived at once, from the ontology's arrays. The
//! pairs that only the transitivity of a graph's own hierarchy gives (n²/2 of a chain of n classes)
//! are derived if there is a demand for them or a rule says more about the hierarchy's property.
//! They are not used as schema, because the links that they were made of lead as far.
//!
//! Cost: two look-ups in an array for a triple from which nothing follows; some twenty hash look-ups
//! for one that is joined.

use crate::dictionary::{ANY, Id, Kind, Terms, inline};
use crate::graph::{Graph, Origin};
use crate::hierarchy::{Map, Set};
use crate::mentions::Mentions;
use crate::ontology::{CLASS, LEADS, MAPPING, OWN, Ontology, SCHEMA, TOPIC};
use crate::rules::{Bindings, Condition, bind, instance};
use crate::schema::{is_reserved, is_resource};
use crate::triples::Triple;

/// Maximum number of triples that are derived from a publication.
pub const DERIVED_TRIPLES: usize = 10_000_000;
/// Maximum number of compiled rules in a cache.
const CACHED_RULES: usize = 1 << 21;
const NONE: u32 = u32::MAX;
/// Not the number of a rule.
const NO_RULE: usize = usize::MAX;

/// A rule with the second term of its schema triple, whose first term is known.
type CompiledRule = (usize, Id);

/// The rules that one thread compiled.
#[derive(Default)]
pub struct MaterializationCache {
    stamp: (u64, u64, u64),
    size: usize,
    /// By a property, with [`ANY`] or with an object.
    compiled: Map<[Id; 2], Box<[CompiledRule]>>,
    complete: Vec<usize>,
}

impl MaterializationCache {
    /// Removes what was compiled for another ontology or another demand.
    fn refresh(&mut self, ontology: &Ontology, demand: &Mentions) {
        let (serial, version) = demand.stamp();
        let stamp = (ontology.serial, serial, version);
        if self.stamp != stamp || self.size > CACHED_RULES {
            (self.stamp, self.size) = (stamp, 0);
            self.compiled.clear();
        }
    }

    /// The rules for a property with [`ANY`], or with an object.
    fn rules(&mut self, compiler: &Compiler, key: [Id; 2]) -> &[CompiledRule] {
        self.compiled.entry(key).or_insert_with(|| {
            let rules = compiler.compile(key);
            self.size += rules.len() + 8;
            rules
        })
    }
}

/// What compiling a rule depends on.
#[derive(Clone, Copy)]
struct Compiler<'a> {
    ontology: &'a Ontology,
    terms: Terms<'a>,
    demand: &'a Mentions,
}

impl Compiler<'_> {
    /// Whether triples with a property and an object ([`ANY`] for an unknown one) are asked for: by
    /// a subscription, a mapping function or as part of attributes.
    fn is_asked(&self, property: Id, object: Id) -> bool {
        let Self { ontology, demand, .. } = *self;
        let asked = demand.asked();
        let is_class_asked = |class| {
            let above = ontology.links().ancestors(class);
            asked.asks_for_class(class) || above.iter().any(|&class| asked.asks_for_class(class))
        };
        let is_named = object != ANY && demand.asks_for_object(property, object);
        is_named
            || object == ANY && demand.asks_for(property)
            || self.is_read(property)
            || ontology.flags(property) & SCHEMA != 0
            || property == ontology.schema.vocabulary.type_
                && asked.has_classes()
                && (object == ANY || is_class_asked(object))
    }

    /// Whether a mapping function or an attribute reads a property, whatever its object is.
    fn is_read(&self, property: Id) -> bool {
        self.ontology.flags(property) & MAPPING != 0
            || self.ontology.is_step(property, self.terms, self.demand.asked())
    }

    /// Calls a function with each compiled rule for a property and an object, its conclusion and
    /// whether it depends on the object. A hierarchy is gone up to the top, or one step.
    fn each_rule(
        &self,
        [property, object]: [Id; 2],
        is_one_step: bool,
        mut call: impl FnMut(CompiledRule, [Id; 2], bool),
    ) {
        let ontology = self.ontology;
        let has_property_rules = ontology.flags(property) & LEADS != 0;
        let has_object_rules = object != ANY && ontology.flags(object) & (CLASS | TOPIC) != 0;
        for (number, rule) in ontology.schema.rules.iter().enumerate() {
            let Some(data) = rule.data else { continue };
            let is_of_object = data[2] == rule.schema[0];
            let is_out = match rule.condition {
                Condition::None => false,
                Condition::Unreserved => is_reserved(property, self.terms),
                Condition::Transitive(_) | Condition::InPublication => true,
            };
            let mut bindings = [ANY; 4];
            if is_out
                || !(if is_of_object { has_object_rules } else { has_property_rules })
                || !bind(data, [ANY, property, object], &mut bindings)
            {
                continue;
            }
            let schema = instance(rule.schema, &bindings);
            let unknown = rule.unknown();
            ontology.each_schema_term(schema, is_one_step, self.terms, |term| {
                bindings[unknown] = term;
                let [_, property, object] = instance(rule.conclusion, &bindings);
                if is_one_step || self.terms.kind(property) == Kind::Iri {
                    call((number, term), [property, object], is_of_object);
                }
            });
        }
    }

    /// Compiles the rules that are of use for a property, or for a property with an object.
    fn compile(&self, [property, object]: [Id; 2]) -> Box<[CompiledRule]> {
        let mut found = Vec::new();
        self.each_rule([property, object], false, |compiled, conclusion, is_of_object| {
            if is_of_object == (object != ANY) && self.is_useful(conclusion, compiled.0) {
                found.push(compiled);
            }
        });
        found.into()
    }

    /// Whether a subscription can use a conclusion, or what follows from it by other rules than the
    /// one that it was derived by, if that goes up a hierarchy.
    fn is_useful(&self, conclusion: [Id; 2], rule: usize) -> bool {
        let schema = &self.ontology.schema;
        let is_hierarchical = schema.rules[rule].is_hierarchical(&schema.vocabulary);
        let mut omitted = if is_hierarchical { rule } else { NO_RULE };
        let (mut agenda, mut seen) = (vec![conclusion], Set::default());
        while let Some(current) = agenda.pop() {
            if self.is_asked(current[0], current[1]) {
                return true;
            }
            self.each_rule(current, true, |(rule, _), following, _| {
                if rule != omitted && seen.insert(following) {
                    agenda.push(following);
                }
            });
            omitted = NO_RULE;
        }
        false
    }
}

/// Triples by their terms: chains through all that have the same.
#[derive(Default)]
struct Chains {
    heads: Map<Triple, u32>,
    /// Triples, and the entries before them in the chain of each key; see [`keys`].
    entries: Vec<(Triple, [u32; 5])>,
}

/// The keys by which a triple is found: its terms one by one, and those that joins ask for.
fn keys([s, p, o]: Triple) -> [Triple; 5] {
    [[s, ANY, ANY], [ANY, p, ANY], [ANY, ANY, o], [s, p, ANY], [ANY, p, o]]
}

impl Chains {
    fn push(&mut self, triple: Triple) {
        let entry = self.entries.len() as u32;
        let before = keys(triple).map(|key| self.heads.insert(key, entry).unwrap_or(NONE));
        self.entries.push((triple, before));
    }

    /// The triples with the terms of a key, which is one of [`keys`].
    fn find(&self, key: Triple) -> impl Iterator<Item = Triple> + '_ {
        let which = keys(key).iter().position(|&known| known == key).unwrap_or(0);
        let mut entry = self.heads.get(&key).copied().unwrap_or(NONE);
        std::iter::from_fn(move || {
            let &(triple, before) = self.entries.get(entry as usize)?;
            entry = before[which];
            Some(triple)
        })
    }
}

/// A graph with schema, by the terms of its triples.
#[derive(Default)]
struct Joins {
    data: Chains,
    /// The triples of schema, without pairs.
    schema: Chains,
    /// Of each triple, whether only transitivity gave it.
    is_pair: Vec<bool>,
    /// The hierarchies of which pairs are derived.
    wanted: [bool; 3],
}

/// A triple that follows.
struct Conclusion {
    triple: Triple,
    rule: usize,
    premise: Triple,
    is_pair: bool,
    /// Whether all that is above it in the ontology is derived with it.
    is_complete: bool,
}

/// Derives triples from one graph.
struct Materializer<'a> {
    compiler: Compiler<'a>,
    joins: Option<Joins>,
    /// Of each triple, the rule by which all that follows from the ontology was derived with it.
    complete: Vec<usize>,
    found: Vec<Conclusion>,
}

impl Materializer<'_> {
    fn run(&mut self, graph: &mut Graph, most: usize, cache: &mut MaterializationCache) {
        let (ontology, terms) = (self.compiler.ontology, self.compiler.terms);
        self.complete.resize(graph.triples.len(), NO_RULE);
        let mut number = 0;
        while number < graph.triples.len() && graph.triples.len() < most {
            let triple = graph.triples[number];
            if self.begins_again(triple, graph) {
                number = 0;
                continue;
            }
            if self.joins.is_some() {
                self.join(triple, number);
            } else {
                self.apply_compiled(triple, self.complete[number], cache);
            }
            self.apply_names(triple);
            for conclusion in self.found.drain(..) {
                let Conclusion { triple, rule, premise, is_pair, is_complete } = conclusion;
                let name = ontology.schema.rules.get(rule).map_or("name", |rule| rule.name);
                let origin = Origin { rule: name, premise };
                if graph.triples.len() >= most || !graph.derive(triple, origin) {
                    continue;
                }
                self.complete.push(if is_complete { rule } else { NO_RULE });
                if let Some(joins) = &mut self.joins {
                    joins.push(triple, is_pair, ontology, terms);
                }
            }
            number += 1;
        }
    }

    /// Whether a triple is schema that makes it necessary to take all triples once more: to join
    /// them, or to derive the pairs of a hierarchy.
    fn begins_again(&mut self, triple: Triple, graph: &Graph) -> bool {
        let Compiler { ontology, terms, demand } = self.compiler;
        let v = &ontology.schema.vocabulary;
        if ontology.flags(triple[1]) & SCHEMA == 0 {
            return false;
        }
        let says_more = |[s, p, o]: Triple, hierarchy| {
            p == v.sub_property && s == hierarchy && o != hierarchy
                || p == v.inverse_of && (s == hierarchy || o == hierarchy)
        };
        let is_first = self.joins.is_none();
        let joins = self.joins.get_or_insert_default();
        let before = joins.wanted;
        for (wanted, hierarchy) in joins.wanted.iter_mut().zip(v.hierarchies()) {
            *wanted |= says_more(triple, hierarchy);
            if is_first {
                let above = [hierarchy, v.sub_property, ANY];
                let keys = [above, [hierarchy, v.inverse_of, ANY], [ANY, v.inverse_of, hierarchy]];
                *wanted |= demand.asks_for(hierarchy)
                    || self.compiler.is_read(hierarchy)
                    || keys.into_iter().any(|key| {
                        ontology.matching(key).any(|triple| says_more(triple, hierarchy))
                    });
            }
        }
        if is_first {
            graph.triples.iter().for_each(|&triple| joins.push(triple, false, ontology, terms));
            self.complete.fill(NO_RULE);
        }
        is_first || joins.wanted != before
    }

    /// Applies the rules that were compiled for a triple.
    fn apply_compiled(
        &mut self,
        triple: Triple,
        complete: usize,
        cache: &mut MaterializationCache,
    ) {
        let compiler = self.compiler;
        let Compiler { ontology, terms, demand } = compiler;
        let v = &ontology.schema.vocabulary;
        let [_, property, object] = triple;
        let own = ontology.flags(property);
        let mut apply = |compiled: &[CompiledRule]| {
            for &(number, term) in compiled {
                let rule = &ontology.schema.rules[number];
                let mut bindings = [ANY; 4];
                let Some(data) = rule.data.filter(|_| number != complete) else { continue };
                bind(data, triple, &mut bindings);
                bindings[rule.unknown()] = term;
                let following = instance(rule.conclusion, &bindings);
                if following[0] == triple[0] || is_resource(following[0], terms) {
                    let is_complete = rule.is_hierarchical(v);
                    self.found.push(Conclusion {
                        triple: following,
                        rule: number,
                        premise: triple,
                        is_pair: false,
                        is_complete,
                    });
                }
            }
        };
        if own & LEADS != 0 {
            apply(cache.rules(&compiler, [property, ANY]));
        }
        if ontology.flags(object) & (CLASS | TOPIC) == 0 {
        } else if own & OWN != 0 || demand.has_property(property) {
            apply(cache.rules(&compiler, [property, object]));
        } else if compiler.is_asked(property, ANY) {
            // The id of a term that nothing holds may be another term's tomorrow.
            apply(&compiler.compile([property, object]));
        }
    }

    /// Derives that a property has the terms that a text stands for.
    fn apply_names(&mut self, triple: Triple) {
        let Compiler { ontology, terms, .. } = self.compiler;
        let [s, p, o] = triple;
        if !ontology.has_names() || inline::is_inline(o) || terms.kind(o) != Kind::Literal {
            return;
        }
        let names = ontology.names_of(o, terms);
        if !names.is_empty() && !is_reserved(p, terms) {
            self.found.extend(names.iter().map(|&term| Conclusion {
                triple: [s, p, term],
                rule: NO_RULE,
                premise: triple,
                is_pair: false,
                is_complete: false,
            }));
        }
    }

    /// Joins a triple, as each premise of each rule, with the other premise.
    fn join(&mut self, triple: Triple, number: usize) {
        let Compiler { ontology, terms, .. } = self.compiler;
        let Some(joins) = &self.joins else { return };
        let v = &ontology.schema.vocabulary;
        let complete = self.complete[number];
        let is_link = !joins.is_pair[number] && terms.kind(triple[2]) != Kind::Literal;
        for (number, rule) in ontology.schema.rules.iter().enumerate() {
            let is_stated_only = rule.condition == Condition::InPublication;
            let mut conclude = |bindings: &Bindings, premise: Triple, is_own, is_complete| {
                let is_out = match rule.condition {
                    Condition::None | Condition::Transitive(_) => false,
                    Condition::Unreserved => is_reserved(bindings[3], terms),
                    Condition::InPublication => rule.data.is_some() && bindings[0] == bindings[1],
                };
                let triple = instance(rule.conclusion, bindings);
                let is_triple = is_resource(triple[0], terms) && terms.kind(triple[1]) == Kind::Iri;
                if is_triple && !is_out {
                    let is_pair = matches!(rule.condition, Condition::Transitive(_))
                        || is_stated_only && is_own && triple[1] == v.same_as;
                    let found = Conclusion { triple, rule: number, premise, is_pair, is_complete };
                    self.found.push(found);
                }
            };
            if matches!(rule.condition, Condition::Transitive(place) if !joins.wanted[place]) {
                continue;
            }
            let mut bindings = [ANY; 4];
            if is_link && bind(rule.schema, triple, &mut bindings) {
                let Some(data) = rule.data else {
                    conclude(&bindings, triple, false, false);
                    continue;
                };
                let key = instance(data, &bindings);
                let own = joins.data.find(key).map(|other| (other, true));
                let known = ontology.is_known(key).then(|| ontology.matching(key));
                let others = own.chain(known.into_iter().flatten().map(|other| (other, false)));
                for (other, is_own) in others {
                    let mut bindings = bindings;
                    if bind(data, other, &mut bindings) {
                        conclude(&bindings, if is_own { other } else { triple }, is_own, false);
                    }
                }
            }
            let mut bindings = [ANY; 4];
            if rule.data.is_some_and(|data| bind(data, triple, &mut bindings)) {
                let key = instance(rule.schema, &bindings);
                for other in joins.schema.find(key) {
                    let mut bindings = bindings;
                    if bind(rule.schema, other, &mut bindings) {
                        conclude(&bindings, triple, true, false);
                    }
                }
                if !is_stated_only && complete != number {
                    let is_complete = rule.is_hierarchical(v);
                    ontology.each_schema_term(key, false, terms, |term| {
                        bindings[rule.unknown()] = term;
                        conclude(&bindings, triple, true, is_complete);
                    });
                }
            }
        }
    }
}

impl Joins {
    fn push(&mut self, triple: Triple, is_pair: bool, ontology: &Ontology, terms: Terms) {
        let is_schema = ontology.flags(triple[1]) & SCHEMA != 0;
        self.data.push(triple);
        if is_schema && !is_pair && terms.kind(triple[2]) != Kind::Literal {
            self.schema.push(triple);
        }
        self.is_pair.push(is_pair);
    }
}

impl Ontology {
    /// Adds to a publication's triples, which have root terms, those derived triples that a
    /// subscription can use, but no more than [`DERIVED_TRIPLES`].
    pub fn materialize(
        &self,
        graph: &mut Graph,
        terms: Terms,
        demand: &Mentions,
        cache: &mut MaterializationCache,
    ) {
        if self.entailment {
            cache.refresh(self, demand);
            self.derive(graph, terms, demand, cache, DERIVED_TRIPLES);
        }
    }

    /// Adds all triples that can be derived, but no more than a maximum.
    pub(crate) fn derive(
        &self,
        graph: &mut Graph,
        terms: Terms,
        demand: &Mentions,
        cache: &mut MaterializationCache,
        most: usize,
    ) {
        let mut complete = std::mem::take(&mut cache.complete);
        complete.clear();
        let compiler = Compiler { ontology: self, terms, demand };
        let mut one = Materializer { compiler, joins: None, complete, found: Vec::new() };
        one.run(graph, graph.triples.len().saturating_add(most), cache);
        cache.complete = one.complete;
    }
}
