//! Attributes: events as graphs, and graphs as events.
//!
//! Before the rules run, an event becomes a graph in the ontology's terms. If the ontology has the
//! properties `price` and `value`, the attribute `price.value = 450` also becomes `event price _:n
//! . _:n value 450`. If a string names a class, the event also gets a node of that class.
//!
//! After the rules, the demanded attributes are derived from E(P). A search follows demanded paths
//! of properties from each root resource to values and their classes. Only demanded classes are
//! derived.
//!
//! Cost: nothing if no attribute is demanded. Otherwise one pass over the publication, and at most
//! `event_paths` steps.
//!
//! Source: CTPS (Zhang, Wang, Huang and Yung), section 3.2.

use crate::attribute_names;
use crate::demand::{AttributePathTrie, Demand};
use crate::dictionary::{ANY, Dictionary, Id, Kind, LocalTerms, Terms};
use crate::graph::{Graph, SUBJECT};
use crate::lexical;
use crate::materialize::MaterializationCache;
use crate::ontology::{IS_CLASS, OWN, Ontology};
use crate::taxonomy::Walk;
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};
use oxiri::Iri;
use smallvec::{SmallVec, smallvec};

// -- events as graphs -----------------------------------------------------------------------

impl Ontology {
    /// Adds the graph of an event in the ontology's terms. A publication is an event if its first
    /// triple is an attribute; others do not change.
    pub fn write_event(&self, graph: &mut Graph, dictionary: &Dictionary, local: &mut LocalTerms) {
        let (count, nodes) = (graph.triples.len(), HashMap::new());
        let mut writer = Writer { ontology: self, graph, dictionary, local, nodes, tried: 0 };
        for number in 0..count {
            let triple = writer.graph.triples[number];
            let text = attribute_names::text(writer.terms(), triple[1]);
            let name = attribute_names::attribute_name(text).unwrap_or_default();
            match attribute_names::steps(&name) {
                None if number == 0 => break,
                Some(steps) if steps.iter().any(|step| self.knows_step(step)) => {
                    let name = name.clone().into_owned();
                    writer.write(triple, &attribute_names::steps(&name).unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    fn knows_step(&self, step: &str) -> bool {
        iri_of(step).is_some() || !self.properties_called(step).is_empty()
    }

    /// Finds the classes and concepts that a literal names.
    fn named(&self, literal: Id, terms: Terms) -> SmallVec<[Id; 4]> {
        let mut found = SmallVec::new();
        if let Some(text) = lexical::string(attribute_names::text(terms, literal)) {
            self.called(&text, terms, |class| found.push(class));
        }
        found
    }
}

/// Returns the IRI of a step, if it is an IRI.
fn iri_of(step: &str) -> Option<&str> {
    let iri = step.strip_prefix('<')?.strip_suffix('>')?;
    Iri::parse(iri).is_ok().then_some(iri)
}

/// Writes the attributes of an event.
struct Writer<'a> {
    ontology: &'a Ontology,
    graph: &'a mut Graph,
    dictionary: &'a Dictionary,
    local: &'a mut LocalTerms,
    /// The node that a step leads to from a node of the event's graph.
    nodes: HashMap<(Id, Box<str>), Id>,
    /// Number of labels of nodes that were tried.
    tried: usize,
}

impl Writer<'_> {
    fn terms(&self) -> Terms<'_> {
        Terms { dictionary: self.dictionary, local: self.local }
    }

    fn write(&mut self, [event, _, value]: Triple, steps: &[&str]) {
        let Some((last, before)) = steps.split_last() else { return };
        let mut node = event;
        for step in before {
            let below = self.node(node, step);
            self.link(node, step, below);
            node = below;
        }
        self.link(node, last, value);
        let (ontology, terms) = (self.ontology, self.terms());
        let mut classes = match terms.kind(value) {
            Kind::Literal => ontology.named(value, terms),
            _ => smallvec![ontology.root_by_name(value, terms)],
        };
        classes.retain(|class| ontology.flags(*class) & IS_CLASS != 0);
        if classes.is_empty() {
            return;
        }
        let typed = self.node(node, last);
        self.link(node, last, typed);
        for class in classes {
            self.graph.push([typed, ontology.schema.vocabulary.type_, class]);
        }
    }

    /// Adds a triple from one node to another for each property that a step names. If the ontology
    /// has none, the attribute itself is the property.
    fn link(&mut self, node: Id, step: &str, below: Id) {
        let known = self.ontology.properties_called(step);
        let property = if iri_of(step).is_some() {
            let property = self.local.id_of(step.as_bytes(), self.dictionary);
            self.ontology.root_by_name(property, self.terms())
        } else if known.is_empty() {
            self.local.id_of(attribute_names::attribute(step).as_bytes(), self.dictionary)
        } else {
            return known.iter().for_each(|&property| _ = self.graph.push([node, property, below]));
        };
        self.graph.push([node, property, below]);
    }

    /// Returns the blank node that a step leads to from a node. Attributes with a common beginning
    /// share it.
    fn node(&mut self, node: Id, step: &str) -> Id {
        *self.nodes.entry((node, step.into())).or_insert_with(|| {
            loop {
                let label = format!("_:attribute{}", self.tried);
                self.tried += 1;
                let before = self.local.len();
                let id = self.local.id_of(label.as_bytes(), self.dictionary);
                if self.local.len() > before {
                    break id;
                }
            }
        })
    }
}

// -- graphs as events -----------------------------------------------------------------------

impl Ontology {
    /// Derives the demanded attributes from E(P), of which the first `stated` triples are stated.
    /// `name` is the publication's own IRI. Returns false if the search stopped after `most` steps.
    #[expect(clippy::too_many_arguments, reason = "all of a publication, and memory to reuse")]
    pub fn add_attributes(
        &self,
        graph: &mut Graph,
        stated: usize,
        name: Option<Id>,
        terms: Terms,
        demand: &Demand,
        most: usize,
        walk: &mut Walk,
        cache: &mut MaterializationCache,
    ) -> bool {
        let asked = &demand.attribute_paths;
        let is_attribute = |&[_, property, _]: &Triple| {
            attribute_names::text(terms, property).starts_with(attribute_names::ATTRIBUTE)
        };
        if asked.is_empty() || !asked.has_classes() && graph.triples.iter().all(is_attribute) {
            return true; // an event of which the ontology knows nothing is flat already
        }
        cache.refresh(self, demand);
        graph.prepare(1 << SUBJECT);
        let roots = find_roots(graph, stated, name, terms);
        let (premise, done, found) = ([ANY; 3], HashSet::new(), Vec::new());
        let mut flattener = Flattener {
            ontology: self,
            graph,
            stated,
            terms,
            demand,
            walk,
            cache,
            most,
            premise,
            done,
            found,
        };
        let is_whole = roots.into_iter().all(|root| flattener.go(root));
        for (triple, premise) in flattener.found {
            graph.derive(triple, "attribute", premise);
        }
        is_whole
    }
}

/// Finds the root resources: the publication, if it is a subject. Otherwise the stated subjects that
/// are never an object, and those that none of them leads to.
fn find_roots(graph: &Graph, stated: usize, name: Option<Id>, terms: Terms) -> Vec<Id> {
    let stated = &graph.triples[..stated];
    if let Some(name) = name.filter(|&name| stated.iter().any(|triple| triple[0] == name)) {
        return vec![name];
    }
    let is_isa =
        |property| attribute_names::text(terms, property).starts_with(attribute_names::ISA);
    let stated = || stated.iter().filter(|triple| !is_isa(triple[1]));
    let objects: HashSet<Id> =
        stated().filter(|[s, _, o]| s != o).map(|triple| triple[2]).collect();
    let (mut roots, mut reached) = (Vec::new(), HashSet::new());
    let never = stated().map(|triple| triple[0]).filter(|subject| !objects.contains(subject));
    roots.extend(never.filter(|&subject| reached.insert(subject)));
    let mut agenda = roots.clone();
    while let Some(subject) = agenda.pop() {
        let reaches = graph.numbers([subject, ANY, ANY]).map(|number| graph.triples[number][2]);
        agenda.extend(reaches.filter(|&object| reached.insert(object)));
    }
    roots.extend(stated().map(|triple| triple[0]).filter(|&subject| reached.insert(subject)));
    roots
}

/// The search for demanded attributes in one publication.
struct Flattener<'a> {
    ontology: &'a Ontology,
    graph: &'a Graph,
    stated: usize,
    terms: Terms<'a>,
    demand: &'a Demand,
    walk: &'a mut Walk,
    cache: &'a mut MaterializationCache,
    /// Number of steps left.
    most: usize,
    /// The last step, from which attributes are derived.
    premise: Triple,
    /// Pairs of place and value whose classes have been derived for the current root.
    done: HashSet<(u32, Id)>,
    /// The derived triples with their premises.
    found: Vec<(Triple, Triple)>,
}

impl Flattener<'_> {
    /// Derives the attributes of one root. Returns false if no steps are left.
    fn go(&mut self, root: Id) -> bool {
        let (graph, asked) = (self.graph, &self.demand.attribute_paths);
        self.done.clear();
        // Resources at the ends of demanded paths, each with its place and the one before.
        let mut agenda = vec![(root, AttributePathTrie::ROOT, usize::MAX)];
        let mut next = 0;
        while let Some(&(node, from, _)) = agenda.get(next) {
            for number in graph.numbers([node, ANY, ANY]) {
                let [_, property, value] = graph.triples[number];
                self.premise = graph.triples[number];
                for place in self.places(property, from) {
                    let Some(left) = self.most.checked_sub(1) else { return false };
                    self.most = left;
                    self.end(root, place, value);
                    let path = std::iter::successors(agenda.get(next), |one| agenda.get(one.2));
                    if asked.leads_on(place) && path.into_iter().all(|one| one.0 != value) {
                        agenda.push((value, place, next));
                    }
                }
            }
            next += 1;
        }
        true
    }

    /// Finds the places that a property leads to from a place of the demanded paths.
    fn places(&mut self, property: Id, from: u32) -> SmallVec<[u32; 4]> {
        let mut places = SmallVec::new();
        let asked = &self.demand.attribute_paths;
        let mut tell = |place| {
            if !places.contains(&place) {
                places.push(place);
            }
        };
        let name = attribute_names::attribute_name(attribute_names::text(self.terms, property));
        if let Some(end) = asked.end(property).filter(|_| from == AttributePathTrie::ROOT) {
            tell(end);
        } else if let Some(name) = name {
            let steps = attribute_names::steps(&name).unwrap_or_default();
            let end =
                steps.iter().try_fold(from, |place, step| asked.below(place, asked.step(step)?));
            end.filter(|_| !steps.is_empty()).into_iter().for_each(tell);
        } else {
            self.ontology.step_names(property, self.terms, |name| {
                let below = asked.step(name).and_then(|step| asked.below(from, step));
                below.into_iter().for_each(&mut tell);
            });
        }
        places
    }

    /// Derives the attributes that end at a place, and their classes.
    fn end(&mut self, root: Id, place: u32, value: Id) {
        let asked = &self.demand.attribute_paths;
        let (attributes, isa) = (asked.attributes(place), asked.isa(place));
        if !attributes.is_empty() {
            let values = match self.terms.kind(value) {
                Kind::Blank => self.types(value, self.stated),
                _ => smallvec![value],
            };
            for value in values {
                attributes.iter().for_each(|&property| self.derive(root, property, value));
            }
        }
        if !isa.is_empty() && self.done.insert((place, value)) {
            for class in self.classes(value) {
                isa.iter().for_each(|&property| self.add_classes(root, property, class));
            }
        }
    }

    fn derive(&mut self, root: Id, property: Id, value: Id) {
        self.found.push(([root, property, value], self.premise));
    }

    /// Derives a class and its superclasses as values of a property, if they are demanded.
    fn add_classes(&mut self, root: Id, property: Id, class: Id) {
        let Self { ontology, demand, walk, cache, .. } = self;
        let is_cached = ontology.flags(class) & OWN != 0 && walk.is_plain(class);
        let mut find = || {
            let above = walk.above(ontology, class).iter().copied();
            let all = [class].into_iter().chain(above);
            let is_wanted = |class: &Id| {
                demand.names_object(property, *class) || demand.names_object(property, ANY)
            };
            all.filter(is_wanted).collect::<Box<[Id]>>()
        };
        let premise = self.premise;
        let mut derive = |wanted: &[Id]| {
            self.found.extend(wanted.iter().map(|&class| ([root, property, class], premise)));
        };
        if is_cached {
            derive(cache.wanted.entry((property, class)).or_insert_with(find));
        } else {
            derive(&find());
        }
    }

    /// Finds the classes of a resource among the first `length` triples.
    fn types(&self, resource: Id, length: usize) -> SmallVec<[Id; 4]> {
        let type_ = self.ontology.schema.vocabulary.type_;
        let numbers = self.graph.numbers([resource, ANY, ANY]).take_while(|&n| n < length);
        let triples = numbers.map(|number| self.graph.triples[number]);
        triples.filter(|triple| triple[1] == type_).map(|triple| triple[2]).collect()
    }

    /// Finds the value itself, its classes, and the classes that it names.
    fn classes(&self, value: Id) -> SmallVec<[Id; 4]> {
        if self.terms.kind(value) == Kind::Literal {
            return self.ontology.named(value, self.terms);
        }
        let mut classes = self.types(value, usize::MAX);
        classes.insert(0, value);
        for number in 0..classes.len() {
            let root = self.ontology.root_by_name(classes[number], self.terms);
            if root != classes[number] {
                classes.push(root);
            }
        }
        classes
    }
}
