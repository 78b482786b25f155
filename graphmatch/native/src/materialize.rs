//! The rule engine: semi-naive evaluation of [`crate::rules`].
//!
//! Triples are taken one by one, the derived ones too, and each is tried as every premise. There
//! are two ways to find the other premises:
//!
//! * *Compiled rules.* In a publication without schema, a rule and triples of the ontology's schema
//!   make a rule whose premises are only data, mostly one. These are compiled for a property, or for
//!   a property with an object, when a publication has such a triple, and are cached by each thread
//!   until the demand changes ([`MaterializationCache`]). A rule whose conclusion is of no use to
//!   any subscription is left out. So a high taxonomy costs as many triples as there are ancestors
//!   that some subscription names.
//! * *Joins.* If a publication states or derives schema, and while the ontology is made, the other
//!   premises are looked up among the graph's triples and those of the ontology.
//!
//! All ancestors of a term come at once from the ontology's arrays. A *pair* is a term and an ancestor
//! in the publication's own hierarchy that only transitivity connects (a chain of n classes has n²/2
//! pairs). Pairs are derived if a subscription asks for them or a rule says more about the property.
//! They are not used as schema, because the stated links give the same conclusions.
//!
//! Cost: two look-ups in an array for a triple without conclusions; some twenty hash look-ups
//! for one that is joined, and some eighty with OWL 2 RL.

use crate::branch::Node;
use crate::demand::Demand;
use crate::dictionary::{ANY, Id, Kind, Terms, inline};
use crate::graph::Graph;
use crate::limits::Watch;
use crate::ontology::{CLASS, LEADS, MAPPING, OWN, Ontology, TOPIC};
use crate::rules::{Bindings, Condition, Rule, VARIABLES, bind, instance, solve};
use crate::schema::{is_reserved, is_resource};
use crate::triples::Triple;
use hashbrown::hash_map::Entry;
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
    /// By a property, with [`ANY`] or with an object, and the rule that is left out.
    compiled: HashMap<[Id; 3], Vec<Compiled>>,
    /// Whether a subscription can use a triple with a property and an object (or [`ANY`]), or a
    /// triple that follows from it.
    useful: HashMap<[Id; 2], bool>,
    /// The demanded classes of a pair of a property and a class: the class itself and its
    /// superclasses.
    pub(crate) wanted: HashMap<(Id, Id), Box<[Id]>>,
}

/// A rule whose premises of schema the ontology satisfies.
#[derive(Clone, Copy)]
pub(crate) struct Compiled {
    rule: usize,
    /// The number of the premise that a triple with the property, or the property and object, is.
    premise: usize,
    /// The terms of the schema.
    bindings: Bindings,
}

impl MaterializationCache {
    /// Removes rules that were compiled for another ontology or another demand.
    pub(crate) fn refresh(&mut self, ontology: &Ontology, demand: &Demand) {
        let (serial, version) = demand.stamp();
        let stamp = (ontology.serial.0, serial, version);
        if self.stamp != stamp
            || self.size + self.useful.len() + 32 * self.wanted.len() > CACHED_RULES
        {
            (self.stamp, self.size) = (stamp, 0);
            self.compiled.clear();
            self.useful.clear();
            self.wanted.clear();
        }
    }

    /// The rules for a property with [`ANY`], or with an object, without one rule; none if the time
    /// is over.
    fn rules(
        &mut self,
        compiler: &Compiler,
        [property, object]: [Id; 2],
        omitted: usize,
    ) -> &[Compiled] {
        match self.compiled.entry([property, object, omitted as Id]) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let rules = compiler.compile([property, object], omitted, &mut self.useful);
                if compiler.watch.is_over() {
                    return &[];
                }
                self.size += rules.len() + 8;
                place.insert(rules)
            }
        }
    }
}

/// The data that compiling a rule depends on.
#[derive(Clone, Copy)]
pub(crate) struct Compiler<'a> {
    pub ontology: &'a Ontology,
    pub terms: Terms<'a>,
    pub demand: &'a Demand,
    pub watch: &'a Watch,
}

impl Compiler<'_> {
    /// Adds all useful triples that can be derived from a graph, but no more than a maximum, until
    /// the time is over. Returns false if there may be more.
    pub fn derive(self, graph: &mut Graph, cache: &mut MaterializationCache, most: usize) -> bool {
        let (complete, most) =
            (vec![NO_RULE; graph.triples.len()], graph.triples.len().saturating_add(most));
        let index = self.ontology.schema.is_owl_rl.then(|| Index::of(&graph.triples));
        let mut one =
            Materializer { compiler: self, index, joins: None, complete, found: Vec::new() };
        one.run(graph, most, cache) && graph.triples.len() < most
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
            || ontology.is_schema([ANY, property, object])
            || property == ontology.schema.vocabulary.contradiction
            || property == ontology.schema.vocabulary.type_
                && asked.has_classes()
                && (object == ANY || is_class_asked(object))
    }

    /// Whether a mapping function or an attribute reads a property with any object.
    fn is_read(&self, property: Id) -> bool {
        self.ontology.flags(property) & MAPPING != 0
            || self.ontology.is_step(property, self.terms, &self.demand.attribute_paths)
    }

    /// Calls a function with each compiled rule for a property and an object, the property and the
    /// object of its conclusion, and whether it depends on the object. With `is_one_step`, a hierarchy
    /// is followed one step, otherwise to the top. The rule `omitted` is skipped: if it derived all
    /// ancestors, applying it to each of them would take quadratic time.
    fn each_rule(
        &self,
        [property, object]: [Id; 2],
        is_one_step: bool,
        omitted: usize,
        mut call: impl FnMut(Compiled, [Id; 2], bool),
    ) {
        let Self { ontology, terms, .. } = *self;
        let has_property_rules = ontology.flags(property) & LEADS != 0;
        // In OWL 2 RL, a property with any object may lead to what it has with one of them.
        let has_object_rules = if object == ANY {
            is_one_step && ontology.schema.is_owl_rl
        } else {
            ontology.flags(object) & (CLASS | TOPIC | LEADS) != 0 || is_value(ontology, object)
        };
        let look = |_, key| schema(ontology, key, is_one_step, terms);
        for (number, rule) in ontology.schema.rules.iter().enumerate() {
            let is_out = match rule.condition {
                Condition::Unreserved => is_reserved(property, terms),
                Condition::InPublication => true,
                _ => false,
            };
            if is_out || number == omitted {
                continue;
            }
            for premise in rule.schema..rule.premises.len() {
                let reads_object = rule.reads_object(premise);
                let triple = [ANY, property, if reads_object { object } else { ANY }];
                let mut bindings = [ANY; VARIABLES];
                if !(if reads_object { has_object_rules } else { has_property_rules })
                    || !bind(rule.premises[premise], triple, &mut bindings)
                {
                    continue;
                }
                let left = (1 << rule.schema) - 1;
                solve(rule, left, &bindings, false, self.watch, &look, &mut |bindings, _| {
                    let [_, property, object] = instance(rule.conclusion, bindings);
                    if is_one_step || is_property(rule, property, terms) {
                        let compiled = Compiled { rule: number, premise, bindings: *bindings };
                        call(compiled, [property, object], reads_object);
                    }
                });
            }
        }
    }

    /// Compiles the rules that are of use for a property, or for a property with an object.
    fn compile(
        &self,
        [property, object]: [Id; 2],
        omitted: usize,
        useful: &mut HashMap<[Id; 2], bool>,
    ) -> Vec<Compiled> {
        let mut found = Vec::new();
        self.each_rule([property, object], false, omitted, |compiled, conclusion, reads_object| {
            if reads_object == (object != ANY) && self.is_useful(conclusion, compiled.rule, useful)
            {
                found.push(compiled);
            }
        });
        found
    }

    /// Whether a subscription can use a conclusion, or a triple that it leads to. The rule that gave
    /// the conclusion is not applied again if it goes up a hierarchy.
    fn is_useful(
        &self,
        conclusion: [Id; 2],
        rule: usize,
        useful: &mut HashMap<[Id; 2], bool>,
    ) -> bool {
        let schema = &self.ontology.schema;
        let is_hierarchical = schema.rules[rule].is_hierarchical(&schema.vocabulary);
        let mut omitted = if is_hierarchical { rule } else { NO_RULE };
        let mut agenda = vec![conclusion];
        // Each key that was reached, with the one before it.
        let mut seen = HashMap::new();
        while let Some(mut current) = agenda.pop() {
            let known = useful.get(&current).copied();
            if known == Some(false) {
                continue;
            }
            if known == Some(true) && omitted == NO_RULE || self.is_asked(current[0], current[1]) {
                // The whole path is useful, but a rule was omitted for its first key.
                while current != conclusion {
                    self.note_useful(useful, current, true);
                    current = seen[&current];
                }
                return true;
            }
            self.each_rule(current, true, omitted, |_, following, _| {
                seen.entry(following).or_insert_with(|| {
                    agenda.push(following);
                    current
                });
            });
            if self.watch.is_over() {
                return false;
            }
            omitted = NO_RULE;
        }
        seen.into_keys().for_each(|key| self.note_useful(useful, key, false));
        false
    }

    /// Notes whether a key is useful. The id of a term outside the ontology may be reused.
    fn note_useful(&self, useful: &mut HashMap<[Id; 2], bool>, key: [Id; 2], is_useful: bool) {
        if self.ontology.is_known([ANY, key[0], key[1]]) {
            useful.insert(key, is_useful);
        }
    }
}

/// Whether an object may be a number of a restriction, which has no flags.
fn is_value(ontology: &Ontology, object: Id) -> bool {
    ontology.schema.is_owl_rl && inline::is_inline(object)
}

/// Whether a term can be the property of a rule's conclusion: an IRI, or the blank node of a list,
/// which makes the triple a helper.
fn is_property(rule: &Rule, term: Id, terms: Terms) -> bool {
    rule.is_list != (terms.kind(term) == Kind::Iri)
}

type Found<'a> = Box<dyn Iterator<Item = (Triple, bool)> + 'a>;

/// The triples of the ontology's schema that a premise can be.
fn schema<'a>(
    ontology: &'a Ontology,
    key: Triple,
    is_one_step: bool,
    terms: Terms<'a>,
) -> Found<'a> {
    Box::new(ontology.schema_triples(key, is_one_step, terms).map(|triple| (triple, false)))
}

/// Triples by one term, by property and subject or object, and by all terms.
#[derive(Default)]
struct Index(HashMap<Triple, Vec<Triple>>);

impl Index {
    fn of(triples: &[Triple]) -> Self {
        let mut index = Self::default();
        triples.iter().for_each(|&triple| index.push(triple));
        index
    }

    fn push(&mut self, triple: Triple) {
        let [s, p, o] = triple;
        let keys = [[s, ANY, ANY], [ANY, p, ANY], [ANY, ANY, o], [s, p, ANY], [ANY, p, o], triple];
        for key in keys {
            self.0.entry(key).or_default().push(triple);
        }
    }

    /// The triples with the terms of a key, and perhaps others, which [`bind`] leaves out.
    fn matching(&self, key: Triple) -> impl Iterator<Item = (Triple, bool)> + '_ {
        let [s, p, _] = key;
        let key = if s != ANY && p == ANY { [s, ANY, ANY] } else { key };
        self.0.get(&key).into_iter().flatten().map(|&triple| (triple, true))
    }
}

/// A graph with schema.
#[derive(Default)]
struct Joins {
    /// The triples of schema, without pairs.
    schema: Index,
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
    /// The graph's triples, if rules have several premises of data or there is schema.
    index: Option<Index>,
    joins: Option<Joins>,
    /// By the number of a triple: the rule whose conclusions were all derived with it.
    complete: Vec<usize>,
    /// Derived triples, each with the number of its rule, its premise of data, whether it is a pair,
    /// and whether all that is above it in the ontology is derived with it.
    found: Vec<(Triple, usize, Triple, bool, bool)>,
}

impl Materializer<'_> {
    /// Returns whether all triples were tried.
    fn run(&mut self, graph: &mut Graph, most: usize, cache: &mut MaterializationCache) -> bool {
        let Compiler { ontology, terms, watch, .. } = self.compiler;
        let mut number = 0;
        while number < graph.triples.len() && graph.triples.len() < most && !watch.is_over() {
            let triple = graph.triples[number];
            if self.needs_restart(triple, graph) {
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
                    if let Some(index) = &mut self.index {
                        index.push(triple);
                    }
                    if let Some(joins) = &mut self.joins {
                        joins.push(triple, is_pair, ontology, terms);
                    }
                }
            }
            number += 1;
        }
        number == graph.triples.len()
    }

    /// Returns true if a triple of schema requires another pass over all triples: to join them, or to
    /// derive the pairs of a hierarchy. At the first such triple, joins begin. Nodes of lists are
    /// joined with the triple that refers to the list.
    fn needs_restart(&mut self, triple: Triple, graph: &Graph) -> bool {
        let Compiler { ontology, terms, demand, .. } = self.compiler;
        let v = &ontology.schema.vocabulary;
        if !ontology.is_schema(triple) || [v.first, v.rest].contains(&triple[1]) {
            return false;
        }
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
                self.compiler.each_rule(key, true, NO_RULE, |compiled, _, _| {
                    let property = ontology.schema.rules[compiled.rule].conclusion[1];
                    *wanted |= matches!(property, Node::Variable(_));
                });
            }
        }
        if is_first {
            joins.wanted[1] |= ontology.schema.is_owl_rl;
            self.index.get_or_insert_with(|| Index::of(&graph.triples));
            graph.triples.iter().for_each(|&triple| joins.push(triple, false, ontology, terms));
            self.complete.fill(NO_RULE);
        }
        is_first || joins.wanted != before
    }

    /// Applies the rules that the ontology's schema makes for a triple, except the rule `complete`,
    /// of which all conclusions are derived already.
    fn apply_compiled(
        &mut self,
        triple: Triple,
        complete: usize,
        cache: &mut MaterializationCache,
    ) {
        let compiler = self.compiler;
        let Compiler { ontology, terms, demand, watch } = compiler;
        let [_, property, object] = triple;
        let Self { index, found, .. } = self;
        let look = |_, key| data(ontology, index.as_ref(), key);
        let mut apply = |compiled: &Compiled| {
            let rule = &ontology.schema.rules[compiled.rule];
            let mut bindings = compiled.bindings;
            if !bind(rule.premises[compiled.premise], triple, &mut bindings) {
                return;
            }
            let is_complete = rule.is_hierarchical(&ontology.schema.vocabulary);
            let mut conclude = |bindings: &Bindings, _| {
                let following = instance(rule.conclusion, bindings);
                let is_triple = following[0] == triple[0] || is_resource(following[0], terms);
                if is_triple
                    && (rule.condition != Condition::Distinct || following[0] != following[2])
                {
                    let is_pair = matches!(rule.condition, Condition::Transitive(_));
                    found.push((following, compiled.rule, triple, is_pair, is_complete));
                }
            };
            let left = ((1 << rule.premises.len()) - (1 << rule.schema)) & !(1 << compiled.premise);
            if left == 0 {
                conclude(&bindings, false);
            } else {
                solve(rule, left, &bindings, false, watch, &look, &mut conclude);
            }
        };
        if let Some(joins) = &self.joins {
            let wanted = |number: usize| match ontology.schema.rules[number].condition {
                Condition::Transitive(place) => joins.wanted[place],
                _ => true,
            };
            compiler.each_rule([property, object], false, complete, |compiled, _, _| {
                if wanted(compiled.rule) {
                    apply(&compiled);
                }
            });
            return;
        }
        let known = ontology.flags(property);
        if known & LEADS != 0 {
            cache.rules(&compiler, [property, ANY], complete).iter().for_each(&mut apply);
        }
        if ontology.flags(object) & (CLASS | TOPIC) == 0 && !is_value(ontology, object) {
            return;
        }
        if known & OWN != 0 || demand.has_property(property) {
            cache.rules(&compiler, [property, object], complete).iter().for_each(apply);
        } else if compiler.is_asked(property, ANY) {
            // The rules are not cached, because the id of this object may be reused.
            let key = [property, object];
            compiler.compile(key, complete, &mut cache.useful).iter().for_each(apply);
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

    /// Joins a triple, as each premise of each rule, with the graph's triples and the ontology's.
    /// Rules whose schema is all in the ontology are left to [`Self::apply_compiled`].
    fn join(&mut self, triple: Triple, number: usize) {
        let Compiler { ontology, terms, watch, .. } = self.compiler;
        let Self { joins: Some(joins), index: Some(index), found, .. } = self else { return };
        let v = &ontology.schema.vocabulary;
        let is_link = !joins.is_pair[number] && ontology.is_premise(triple, terms);
        for (number, rule) in ontology.schema.rules.iter().enumerate() {
            if matches!(rule.condition, Condition::Transitive(place) if !joins.wanted[place]) {
                continue;
            }
            let in_publication = rule.condition == Condition::InPublication;
            let look = |premise: usize, key| -> Found {
                if premise >= rule.schema {
                    return data(ontology, Some(index), key);
                }
                let known = (!in_publication && ontology.is_known(key))
                    .then(|| schema(ontology, key, false, terms));
                Box::new(joins.schema.matching(key).chain(known.into_iter().flatten()))
            };
            for premise in 0..rule.premises.len() {
                let mut bindings = [ANY; VARIABLES];
                let is_schema = premise < rule.schema;
                if is_schema && !is_link || !bind(rule.premises[premise], triple, &mut bindings) {
                    continue;
                }
                let left = ((1 << rule.premises.len()) - 1) & !(1 << premise);
                solve(rule, left, &bindings, false, watch, &look, &mut |bindings, is_own| {
                    let is_compiled = !is_schema && rule.schema > 0 && !is_own;
                    let following = instance(rule.conclusion, bindings);
                    let [s, p, o] = following;
                    let (applies, is_pair) = match rule.condition {
                        Condition::None => (true, false),
                        Condition::Distinct => (s != o, false),
                        Condition::Transitive(_) => (true, true),
                        Condition::Unreserved => {
                            (!is_reserved(instance(rule.data()[0], bindings)[1], terms), false)
                        }
                        Condition::InPublication => (
                            rule.data().is_empty() || bindings[0] != bindings[1],
                            is_own && p == v.same_as,
                        ),
                    };
                    let is_triple = is_resource(s, terms) && is_property(rule, p, terms);
                    if is_compiled || !applies || !is_triple {
                        return;
                    }
                    let mut data = rule.data().iter().map(|&one| instance(one, bindings));
                    let stated = data.find(|one| index.0.contains_key(one));
                    let premise = if is_schema { stated.unwrap_or(triple) } else { triple };
                    found.push((following, number, premise, is_pair, false));
                });
            }
        }
    }
}

/// The triples of a graph and of the ontology that a premise of data can be.
fn data<'a>(ontology: &'a Ontology, index: Option<&'a Index>, key: Triple) -> Found<'a> {
    let known = ontology.is_known(key).then(|| ontology.with_helpers(key));
    let known = known.into_iter().flatten().map(|triple| (triple, false));
    Box::new(index.into_iter().flat_map(move |index| index.matching(key)).chain(known))
}

impl Joins {
    fn push(&mut self, triple: Triple, is_pair: bool, ontology: &Ontology, terms: Terms) {
        let [s, p, o] = triple;
        // If the inverse is schema, symmetry gives this triple too, so it must be schema as well.
        let is_pair = is_pair && !self.same.contains(&[o, p, s]);
        if ontology.is_schema(triple) && !is_pair && ontology.is_premise(triple, terms) {
            self.schema.push(triple);
            if p == ontology.schema.vocabulary.same_as {
                self.same.insert(triple);
            }
        }
        self.is_pair.push(is_pair);
    }
}

impl Ontology {
    /// Adds to a publication's triples, which have root terms, those derived triples that a
    /// subscription can use, but no more than a maximum, until the time is over. Returns false if
    /// there may be more.
    pub fn materialize(
        &self,
        graph: &mut Graph,
        terms: Terms,
        demand: &Demand,
        cache: &mut MaterializationCache,
        most: usize,
        watch: &Watch,
    ) -> bool {
        cache.refresh(self, demand);
        if !self.entailment {
            return true;
        }
        let is_whole = Compiler { ontology: self, terms, demand, watch }.derive(graph, cache, most);
        if self.schema.is_owl_rl {
            let v = &self.schema.vocabulary;
            graph.take_helpers(|triple| v.is_helper(triple, terms), v.contradiction);
        }
        is_whole
    }
}
