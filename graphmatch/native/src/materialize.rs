//! The rule engine: semi-naive evaluation of [`crate::rules`].
//!
//! Triples are taken one by one, the derived ones too, and each is tried as every premise. There
//! are two ways to find the other premise:
//!
//! * *Compiled rules.* In a publication without schema, a rule and a schema triple of the
//!   ontology make a rule with one premise. These are compiled for a property, or for a
//!   property with an object, when a publication has such a triple, and are cached by each thread
//!   until the demand changes ([`MaterializationCache`]). A rule whose conclusion is of no use to
//!   any subscription is left out. So a high taxonomy costs as many triples as there are ancestors
//!   that some subscription names.
//! * *Joins.* If a publication states or derives schema, and while the ontology is made, the other
//!   premise is looked up among the graph's triples and those of the ontology.
//!
//! All terms above a term in a hierarchy come at once from the ontology's arrays. The
//! pairs that only the transitivity of a graph's own hierarchy gives (n²/2 of a chain of n classes)
//! are derived if there is a demand for them or a rule says more about the hierarchy's property.
//! They are not used as schema, because the links that they were made of lead as far.
//!
//! Cost: two look-ups in an array for a triple without conclusions; some twenty hash look-ups
//! for one that is joined.

use crate::branch::Node;
use crate::demand::Demand;
use crate::dictionary::{ANY, Id, Kind, Terms, inline};
use crate::graph::Graph;
use crate::ontology::{CLASS, LEADS, MAPPING, OWN, Ontology, SCHEMA, TOPIC};
use crate::rules::{Condition, bind, instance};
use crate::schema::{is_reserved, is_resource};
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};

/// Maximum number of compiled rules in a cache.
const CACHED_RULES: usize = 1 << 21;
/// Not the number of a rule.
const NO_RULE: usize = usize::MAX;

/// The rules that one thread compiled, and the classes that attributes need.
#[derive(Default)]
pub struct MaterializationCache {
    stamp: (u64, u64, u64),
    size: usize,
    /// By a property, with [`ANY`] or with an object, and the rule that is left out: rules with the
    /// second terms of their schema triples, whose first terms are known.
    compiled: HashMap<[Id; 3], Vec<(usize, Id)>>,
    /// The demanded classes of a pair of a property and a class: the class itself and its
    /// superclasses.
    pub(crate) wanted: HashMap<(Id, Id), Box<[Id]>>,
}

impl MaterializationCache {
    /// Removes rules that were compiled for another ontology or another demand.
    pub(crate) fn refresh(&mut self, ontology: &Ontology, demand: &Demand) {
        let (serial, version) = demand.stamp();
        let stamp = (ontology.serial.0, serial, version);
        if self.stamp != stamp || self.size + 32 * self.wanted.len() > CACHED_RULES {
            (self.stamp, self.size) = (stamp, 0);
            self.compiled.clear();
            self.wanted.clear();
        }
    }

    /// The rules for a property with [`ANY`], or with an object, without one rule.
    fn rules(&mut self, compiler: &Compiler, key: [Id; 2], omitted: usize) -> &[(usize, Id)] {
        self.compiled.entry([key[0], key[1], omitted as Id]).or_insert_with(|| {
            let rules = compiler.compile(key, omitted);
            self.size += rules.len() + 8;
            rules
        })
    }
}

/// The data that compiling a rule depends on.
#[derive(Clone, Copy)]
pub(crate) struct Compiler<'a> {
    pub ontology: &'a Ontology,
    pub terms: Terms<'a>,
    pub demand: &'a Demand,
}

impl Compiler<'_> {
    /// Adds all useful triples that can be derived from a graph, but no more than a maximum. Returns
    /// false if there are more.
    pub fn derive(self, graph: &mut Graph, cache: &mut MaterializationCache, most: usize) -> bool {
        let (complete, most) =
            (vec![NO_RULE; graph.triples.len()], graph.triples.len().saturating_add(most));
        let mut one = Materializer { compiler: self, joins: None, complete, found: Vec::new() };
        one.run(graph, most, cache);
        graph.triples.len() < most
    }

    /// Whether triples with a property and an object ([`ANY`] for an unknown one) are asked for: by
    /// a subscription, a mapping function or as part of attributes.
    fn is_asked(&self, property: Id, object: Id) -> bool {
        let Self { ontology, demand, .. } = *self;
        let asked = &demand.attribute_paths;
        let is_class_asked = |class| {
            let above = ontology.links.ancestors(class);
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

    /// Whether a mapping function or an attribute reads a property with any object.
    fn is_read(&self, property: Id) -> bool {
        self.ontology.flags(property) & MAPPING != 0
            || self.ontology.is_step(property, self.terms, &self.demand.attribute_paths)
    }

    /// Calls a function with each compiled rule for a property and an object, its conclusion and
    /// whether it depends on the object. A hierarchy is gone up to the top, or one step. One rule is
    /// left out: where a hierarchy gave all that is above a term, to go up from each again would
    /// cost the square of its height.
    fn each_rule(
        &self,
        [property, object]: [Id; 2],
        is_one_step: bool,
        omitted: usize,
        mut call: impl FnMut((usize, Id), [Id; 2], bool),
    ) {
        let ontology = self.ontology;
        let has_property_rules = ontology.flags(property) & LEADS != 0;
        let has_object_rules =
            object != ANY && ontology.flags(object) & (CLASS | TOPIC | LEADS) != 0;
        for (number, rule) in ontology.schema.rules.iter().enumerate() {
            let Some(data) = rule.data.filter(|_| number != omitted) else { continue };
            let is_of_object = data[2] == rule.schema[0];
            let is_out = match rule.condition {
                Condition::None | Condition::Transitive(_) => false,
                Condition::Unreserved => is_reserved(property, self.terms),
                Condition::InPublication => true,
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
    fn compile(&self, [property, object]: [Id; 2], omitted: usize) -> Vec<(usize, Id)> {
        let mut found = Vec::new();
        self.each_rule([property, object], false, omitted, |compiled, conclusion, is_of_object| {
            if is_of_object == (object != ANY) && self.is_useful(conclusion, compiled.0) {
                found.push(compiled);
            }
        });
        found
    }

    /// Whether a subscription can use a conclusion, or a triple that it leads to. The rule that gave
    /// the conclusion is not applied again if it goes up a hierarchy.
    fn is_useful(&self, conclusion: [Id; 2], rule: usize) -> bool {
        let schema = &self.ontology.schema;
        let is_hierarchical = schema.rules[rule].is_hierarchical(&schema.vocabulary);
        let mut omitted = if is_hierarchical { rule } else { NO_RULE };
        let (mut agenda, mut seen) = (vec![conclusion], HashSet::new());
        while let Some(current) = agenda.pop() {
            if self.is_asked(current[0], current[1]) {
                return true;
            }
            self.each_rule(current, true, omitted, |_, following, _| {
                if seen.insert(following) {
                    agenda.push(following);
                }
            });
            omitted = NO_RULE;
        }
        false
    }
}

/// Indexes a triple by its terms, one by one, and by those that joins ask for.
fn index(triples: &mut HashMap<Triple, Vec<Triple>>, triple: Triple) {
    let [s, p, o] = triple;
    for key in [[s, ANY, ANY], [ANY, p, ANY], [ANY, ANY, o], [s, p, ANY], [ANY, p, o]] {
        triples.entry(key).or_default().push(triple);
    }
}

/// A graph with schema, by the terms of its triples.
#[derive(Default)]
struct Joins {
    data: HashMap<Triple, Vec<Triple>>,
    /// The triples of schema, without pairs.
    schema: HashMap<Triple, Vec<Triple>>,
    /// The `owl:sameAs` triples of the schema.
    same: HashSet<Triple>,
    /// Whether only transitivity gave a triple, by its number.
    is_pair: Vec<bool>,
    /// The hierarchies of which pairs are derived.
    wanted: [bool; 3],
}

/// Derives triples from one graph.
struct Materializer<'a> {
    compiler: Compiler<'a>,
    joins: Option<Joins>,
    /// By the number of a triple: the rule whose conclusions were all derived with it.
    complete: Vec<usize>,
    /// Derived triples, each with the number of its rule, its premise of data, whether it is a pair,
    /// and whether all that is above it in the ontology is derived with it.
    found: Vec<(Triple, usize, Triple, bool, bool)>,
}

impl Materializer<'_> {
    fn run(&mut self, graph: &mut Graph, most: usize, cache: &mut MaterializationCache) {
        let Compiler { ontology, terms, .. } = self.compiler;
        let mut number = 0;
        while number < graph.triples.len() && graph.triples.len() < most {
            let triple = graph.triples[number];
            if self.begins_again(triple, graph) {
                number = 0;
                continue;
            }
            self.apply_compiled(triple, self.complete[number], cache);
            self.apply_names(triple);
            self.join(triple, number);
            for (triple, rule, premise, is_pair, is_complete) in self.found.drain(..) {
                let name = ontology.schema.rules.get(rule).map_or("name", |rule| rule.name);
                if graph.triples.len() < most && graph.derive(triple, name, premise) {
                    self.complete.push(if is_complete { rule } else { NO_RULE });
                    if let Some(joins) = &mut self.joins {
                        joins.push(triple, is_pair, ontology, terms);
                    }
                }
            }
            number += 1;
        }
    }

    /// Whether a triple is schema that makes it necessary to take all triples once more: to join
    /// them, or to derive the pairs of a hierarchy.
    fn begins_again(&mut self, triple: Triple, graph: &Graph) -> bool {
        let Compiler { ontology, terms, demand } = self.compiler;
        if ontology.flags(triple[1]) & SCHEMA == 0 {
            return false;
        }
        let v = &ontology.schema.vocabulary;
        let is_first = self.joins.is_none();
        let joins = self.joins.get_or_insert_default();
        let before = joins.wanted;
        for (wanted, hierarchy) in joins.wanted.iter_mut().zip(v.hierarchies()) {
            let [s, p, o] = triple;
            *wanted |= p == v.sub_property && s == hierarchy && o != hierarchy
                || p == v.inverse_of && [s, o].contains(&hierarchy);
            if is_first {
                *wanted |= demand.asks_for(hierarchy) || self.compiler.is_read(hierarchy);
                // The links of a hierarchy give all conclusions of domains and ranges.
                let key = [hierarchy, ANY];
                self.compiler.each_rule(key, true, NO_RULE, |(rule, _), _, _| {
                    let property = ontology.schema.rules[rule].conclusion[1];
                    *wanted |= matches!(property, Node::Variable(_));
                });
            }
        }
        if is_first {
            graph.triples.iter().for_each(|&triple| joins.push(triple, false, ontology, terms));
            self.complete.fill(NO_RULE);
        }
        is_first || joins.wanted != before
    }

    /// Applies the rules that the ontology's schema makes for a triple, unless all that one of them
    /// gives is derived already.
    fn apply_compiled(
        &mut self,
        triple: Triple,
        complete: usize,
        cache: &mut MaterializationCache,
    ) {
        let compiler = self.compiler;
        let Compiler { ontology, terms, demand } = compiler;
        let [_, property, object] = triple;
        let mut apply = |&(number, term): &(usize, Id)| {
            let rule = &ontology.schema.rules[number];
            let Some(data) = rule.data else { return };
            let mut bindings = [ANY; 4];
            bind(data, triple, &mut bindings);
            bindings[rule.unknown()] = term;
            let following = instance(rule.conclusion, &bindings);
            if following[0] == triple[0] || is_resource(following[0], terms) {
                let is_pair = matches!(rule.condition, Condition::Transitive(_));
                let is_complete = rule.is_hierarchical(&ontology.schema.vocabulary);
                self.found.push((following, number, triple, is_pair, is_complete));
            }
        };
        if let Some(joins) = &self.joins {
            let wanted = |number: usize| match ontology.schema.rules[number].condition {
                Condition::Transitive(place) => joins.wanted[place],
                _ => true,
            };
            compiler.each_rule([property, object], false, complete, |compiled, _, _| {
                if wanted(compiled.0) {
                    apply(&compiled);
                }
            });
            return;
        }
        let known = ontology.flags(property);
        if known & LEADS != 0 {
            cache.rules(&compiler, [property, ANY], complete).iter().for_each(&mut apply);
        }
        if ontology.flags(object) & (CLASS | TOPIC) == 0 {
            return;
        }
        if known & OWN != 0 || demand.has_property(property) {
            cache.rules(&compiler, [property, object], complete).iter().for_each(apply);
        } else if compiler.is_asked(property, ANY) {
            // The id of a term that nothing holds may be another term's tomorrow.
            compiler.compile([property, object], complete).iter().for_each(apply);
        }
    }

    /// Derives that a property has the terms that a text stands for.
    fn apply_names(&mut self, premise: Triple) {
        let Compiler { ontology, terms, .. } = self.compiler;
        let [s, p, o] = premise;
        if inline::is_inline(o) || terms.kind(o) != Kind::Literal {
            return;
        }
        for &term in ontology.names_of(o, terms).iter().filter(|_| !is_reserved(p, terms)) {
            self.found.push(([s, p, term], NO_RULE, premise, false, false));
        }
    }

    /// Joins a triple, as each premise of each rule, with those of the graph. As schema it is joined
    /// with the ontology's triples, too.
    fn join(&mut self, triple: Triple, number: usize) {
        let Compiler { ontology, terms, .. } = self.compiler;
        let Some(joins) = &self.joins else { return };
        let v = &ontology.schema.vocabulary;
        let is_link = !joins.is_pair[number] && terms.kind(triple[2]) != Kind::Literal;
        for (number, rule) in ontology.schema.rules.iter().enumerate() {
            if matches!(rule.condition, Condition::Transitive(place) if !joins.wanted[place]) {
                continue;
            }
            let mut conclude = |bindings: &[Id; 4], premise: Triple, is_own: bool| {
                let triple = instance(rule.conclusion, bindings);
                let is_triple = is_resource(triple[0], terms) && terms.kind(triple[1]) == Kind::Iri;
                let (applies, is_pair) = match rule.condition {
                    Condition::None => (true, false),
                    Condition::Transitive(_) => (true, true),
                    Condition::Unreserved => (!is_reserved(bindings[3], terms), false),
                    Condition::InPublication => (
                        rule.data.is_none() || bindings[0] != bindings[1],
                        is_own && triple[1] == v.same_as,
                    ),
                };
                if is_triple && applies {
                    self.found.push((triple, number, premise, is_pair, false));
                }
            };
            let mut bindings = [ANY; 4];
            if is_link && bind(rule.schema, triple, &mut bindings) {
                let Some(data) = rule.data else {
                    conclude(&bindings, triple, false);
                    continue;
                };
                let key = instance(data, &bindings);
                let known = ontology.is_known(key).then(|| ontology.matching(key));
                let own = joins.data.get(&key).into_iter().flatten().map(|&other| (other, true));
                for (other, is_own) in own.chain(known.into_iter().flatten().map(|t| (t, false))) {
                    let mut bindings = bindings;
                    if bind(data, other, &mut bindings) {
                        conclude(&bindings, if is_own { other } else { triple }, is_own);
                    }
                }
            }
            let mut bindings = [ANY; 4];
            if rule.data.is_some_and(|data| bind(data, triple, &mut bindings)) {
                let key = instance(rule.schema, &bindings);
                for &other in joins.schema.get(&key).into_iter().flatten() {
                    let mut bindings = bindings;
                    if bind(rule.schema, other, &mut bindings) {
                        conclude(&bindings, triple, true);
                    }
                }
            }
        }
    }
}

impl Joins {
    fn push(&mut self, triple: Triple, is_pair: bool, ontology: &Ontology, terms: Terms) {
        let is_schema = ontology.flags(triple[1]) & SCHEMA != 0;
        let [s, p, o] = triple;
        // Symmetry gives this triple too, and would not find it new.
        let is_pair = is_pair && !self.same.contains(&[o, p, s]);
        index(&mut self.data, triple);
        if is_schema && !is_pair && terms.kind(o) != Kind::Literal {
            index(&mut self.schema, triple);
            if p == ontology.schema.vocabulary.same_as {
                self.same.insert(triple);
            }
        }
        self.is_pair.push(is_pair);
    }
}

impl Ontology {
    /// Adds to a publication's triples, which have root terms, those derived triples that a
    /// subscription can use, but no more than a maximum. Returns false if there are more.
    pub fn materialize(
        &self,
        graph: &mut Graph,
        terms: Terms,
        demand: &Demand,
        cache: &mut MaterializationCache,
        most: usize,
    ) -> bool {
        cache.refresh(self, demand);
        !self.entailment || Compiler { ontology: self, terms, demand }.derive(graph, cache, most)
    }
}
