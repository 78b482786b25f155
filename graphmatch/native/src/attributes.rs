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

use crate::demand::{AttributePathTrie, Demand};
use crate::dictionary::{ANY, Dictionary, Id, Kind, LocalTerms, Terms};
use crate::graph::Graph;
use crate::lexical;
use crate::names;
use crate::ontology::{IS_CLASS, OWN, Ontology};
use crate::taxonomy::Walk;
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};
use oxiri::Iri;
use std::fmt::Write;

const NONE: u32 = u32::MAX;
/// Maximum number of event steps in the cache.
const STEPS_REMEMBERED: usize = 1 << 16;
/// Maximum number of properties and classes in the cache.
const REMEMBERED: usize = 1 << 16;

/// A subject of the publication.
#[derive(Clone, Copy)]
struct Node {
    /// The number of its first triple.
    first: u32,
    is_object: bool,
    is_reached: bool,
}

/// A resource at the end of a demanded path.
#[derive(Clone, Copy)]
struct Reached {
    node: Id,
    place: u32,
    /// The previous resource of the path.
    before: u32,
}

/// Memory of one thread. Demanded classes and steps are cached until the demand or the ontology
/// changes.
#[derive(Default)]
pub struct Flattening {
    stamp: (u64, u64, u64),
    /// The demanded classes of a pair of a property and a class: the class itself and its
    /// superclasses.
    wanted: HashMap<(Id, Id), Box<[Id]>>,
    /// The demanded steps that a property takes.
    steps: HashMap<Id, Box<[u32]>>,
    /// Pairs of place and value whose classes have been derived for the current root.
    done: HashSet<(u32, Id)>,
    nodes: HashMap<Id, Node>,
    next: Vec<u32>,
    roots: Vec<Id>,
    agenda: Vec<Reached>,
    places: Vec<u32>,
    classes: Vec<Id>,
    named: Vec<Id>,
    /// Numbers of event steps.
    numbers: HashMap<Box<str>, u32>,
    /// The node that a step leads to from a node of an event's graph.
    ways: HashMap<(Id, u32), Id>,
    label: String,
    along: Vec<Id>,
    folded: String,
    name: String,
}

// -- events as graphs -----------------------------------------------------------------------

impl Ontology {
    /// Adds the graph of an event in the ontology's terms. A publication is an event if its first
    /// triple is an attribute; others do not change.
    pub fn write_event(
        &self,
        graph: &mut Graph,
        dictionary: &Dictionary,
        local: &mut LocalTerms,
        flattening: &mut Flattening,
    ) {
        let length = graph.triples.len();
        flattening.ways.clear();
        if flattening.numbers.len() > STEPS_REMEMBERED {
            flattening.numbers.clear();
        }
        let mut nodes = 0;
        let mut name = std::mem::take(&mut flattening.name);
        for number in 0..length {
            let triple = graph.triples[number];
            let text = names::text(Terms { dictionary, local }, triple[1]);
            let attribute = names::attribute_name(text);
            name.clear();
            name.push_str(attribute.as_deref().unwrap_or_default());
            match names::steps(&name) {
                None if number == 0 => break,
                None => continue,
                Some(steps) if !steps.iter().any(|step| self.knows_step(step)) => continue,
                Some(steps) => {
                    let mut writer = Writer {
                        ontology: self,
                        graph,
                        dictionary,
                        local,
                        flattening,
                        nodes: &mut nodes,
                    };
                    writer.write(triple, &steps);
                }
            }
        }
        flattening.name = name;
    }

    fn knows_step(&self, step: &str) -> bool {
        iri_of(step).is_some() || !self.properties_called(step).is_empty()
    }
}

/// Returns the IRI of a step, if it is an IRI.
fn iri_of(step: &str) -> Option<&str> {
    let iri = step.strip_prefix('<')?.strip_suffix('>')?;
    Iri::parse(iri).is_ok().then_some(iri)
}

/// Writes one attribute of an event.
struct Writer<'a> {
    ontology: &'a Ontology,
    graph: &'a mut Graph,
    dictionary: &'a Dictionary,
    local: &'a mut LocalTerms,
    flattening: &'a mut Flattening,
    nodes: &'a mut usize,
}

impl Writer<'_> {
    fn write(&mut self, [event, _, value]: Triple, steps: &[&str]) {
        let Some((last, before)) = steps.split_last() else { return };
        let mut node = event;
        for step in before {
            let below = self.node(node, step);
            self.along(step);
            self.link(node, below);
            node = below;
        }
        self.along(last);
        self.link(node, value);
        self.classes_of(value);
        if self.flattening.classes.is_empty() {
            return;
        }
        let typed = self.node(node, last);
        self.link(node, typed);
        let type_ = self.ontology.schema.vocabulary.type_;
        for &class in &self.flattening.classes {
            self.graph.push([typed, type_, class]);
        }
    }

    /// Adds a triple from one node to another for each property of the step.
    fn link(&mut self, node: Id, below: Id) {
        for &property in &self.flattening.along {
            self.graph.push([node, property, below]);
        }
    }

    /// Finds the properties that a step names. If the ontology has none, the attribute itself is
    /// the property.
    fn along(&mut self, step: &str) {
        self.flattening.along.clear();
        let known = self.ontology.properties_called(step);
        if iri_of(step).is_some() {
            let property = self.local.id_of(step.as_bytes(), self.dictionary);
            let terms = Terms { dictionary: self.dictionary, local: self.local };
            let root = self.ontology.root_by_name(property, terms);
            self.flattening.along.push(root);
        } else if known.is_empty() {
            let property = names::attribute(step);
            let property = self.local.id_of(property.as_bytes(), self.dictionary);
            self.flattening.along.push(property);
        } else {
            self.flattening.along.extend_from_slice(known);
        }
    }

    /// Returns the blank node that a step leads to from a node. Attributes with a common beginning
    /// share it.
    fn node(&mut self, node: Id, step: &str) -> Id {
        let Flattening { numbers, ways, label, .. } = &mut *self.flattening;
        let next = numbers.len() as u32;
        let number = *numbers.entry_ref(step).or_insert(next);
        *ways.entry((node, number)).or_insert_with(|| {
            loop {
                label.clear();
                let _ = write!(label, "_:attribute{}", self.nodes); // a String takes everything
                *self.nodes += 1;
                let hash = self.dictionary.hash(label.as_bytes());
                let before = self.local.len();
                if self.dictionary.get_hashed(label.as_bytes(), hash).is_none() {
                    let id = self.local.intern_hashed(label.as_bytes(), hash);
                    if self.local.len() > before {
                        break id;
                    }
                }
            }
        })
    }

    /// Finds the classes that a value names: the class itself, or classes with this label.
    fn classes_of(&mut self, value: Id) {
        let ontology = self.ontology;
        let is_class = |term: Id| ontology.flags(term) & IS_CLASS != 0;
        let Flattening { classes, folded, .. } = &mut *self.flattening;
        classes.clear();
        let terms = Terms { dictionary: self.dictionary, local: self.local };
        if terms.kind(value) != Kind::Literal {
            classes.push(ontology.root_by_name(value, terms));
        } else if let Some(quoted) = lexical::quoted(names::text(terms, value)) {
            ontology.called(&lexical::unquote(quoted), terms, folded, |class| classes.push(class));
        }
        classes.retain(|&class| is_class(class));
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
        mentions: &Demand,
        most: usize,
        walk: &mut Walk,
        flattening: &mut Flattening,
    ) -> bool {
        let (asked, length) = (mentions.attribute_paths(), graph.triples.len());
        let is_attribute = |number| {
            let [_, property, _]: Triple = graph.triples[number];
            names::text(terms, property).starts_with(names::ATTRIBUTE)
        };
        if asked.is_empty() || !asked.has_classes() && (0..length).all(is_attribute) {
            return true; // an event of which the ontology knows nothing is flat already
        }
        flattening.refresh(self, mentions);
        flattening.index(graph, length);
        flattening.find_roots(graph, stated, name, terms);
        let (ontology, premise) = (self, [ANY; 3]);
        let mut flattener =
            Flattener { ontology, graph, stated, terms, mentions, walk, flattening, most, premise };
        (0..flattener.flattening.roots.len()).all(|root| flattener.go(root))
    }
}

impl Flattening {
    /// Chains the triples of each subject in their order.
    fn index(&mut self, graph: &Graph, length: usize) {
        self.nodes.clear();
        self.next.clear();
        self.next.resize(length, NONE);
        let mut end = length;
        while end > 0 {
            let subject = graph.triples[end - 1][0];
            let mut begin = end - 1;
            while begin > 0 && graph.triples[begin - 1][0] == subject {
                begin -= 1;
            }
            let new = Node { first: NONE, is_object: false, is_reached: false };
            let node = self.nodes.entry(subject).or_insert(new);
            for number in begin..end - 1 {
                self.next[number] = number as u32 + 1;
            }
            self.next[end - 1] = node.first;
            node.first = begin as u32;
            end = begin;
        }
    }

    /// Clears the cache if the ontology or the demand has changed.
    fn refresh(&mut self, ontology: &Ontology, mentions: &Demand) {
        let (serial, version) = mentions.stamp();
        let stamp = (ontology.serial.0, serial, version);
        if self.stamp != stamp || self.wanted.len() + self.steps.len() > REMEMBERED {
            self.stamp = stamp;
            self.wanted.clear();
            self.steps.clear();
        }
    }

    fn first(&self, subject: Id) -> u32 {
        self.nodes.get(&subject).map_or(NONE, |node| node.first)
    }

    /// Finds the root resources: the publication, if it is a subject. Otherwise the stated subjects
    /// that are never an object, and those that none of them leads to.
    fn find_roots(&mut self, graph: &Graph, stated: usize, name: Option<Id>, terms: Terms) {
        self.roots.clear();
        let is_name = |[s, ..]: Triple| Some(s) == name;
        if (0..stated).any(|number| is_name(graph.triples[number])) {
            self.roots.extend(name);
            return;
        }
        let is_isa = |[_, p, _]: Triple| names::text(terms, p).starts_with(names::ISA);
        let stated = || (0..stated).map(|n| graph.triples[n]).filter(|&triple| !is_isa(triple));
        for [s, _, o] in stated() {
            if s != o
                && let Some(node) = self.nodes.get_mut(&o)
            {
                node.is_object = true;
            }
        }
        let mut is_all = true;
        for [s, ..] in stated() {
            let Some(node) = self.nodes.get_mut(&s) else { continue };
            if node.is_object {
                is_all = false;
            } else if !std::mem::replace(&mut node.is_reached, true) {
                self.roots.push(s);
            }
        }
        if is_all {
            return;
        }
        let mut agenda: Vec<Id> = self.roots.clone();
        while let Some(subject) = agenda.pop() {
            let mut number = self.first(subject);
            while number != NONE {
                let object = graph.triples[number as usize][2];
                if let Some(node) = self.nodes.get_mut(&object)
                    && !std::mem::replace(&mut node.is_reached, true)
                {
                    agenda.push(object);
                }
                number = self.next[number as usize];
            }
        }
        for [s, ..] in stated() {
            if let Some(node) = self.nodes.get_mut(&s)
                && !std::mem::replace(&mut node.is_reached, true)
            {
                self.roots.push(s);
            }
        }
    }
}

/// The search for demanded attributes in one publication.
struct Flattener<'a> {
    ontology: &'a Ontology,
    graph: &'a mut Graph,
    stated: usize,
    terms: Terms<'a>,
    mentions: &'a Demand,
    walk: &'a mut Walk,
    flattening: &'a mut Flattening,
    /// Number of steps left.
    most: usize,
    /// The last step, from which attributes are derived.
    premise: Triple,
}

impl Flattener<'_> {
    /// Derives the attributes of one root. Returns false if no steps are left.
    fn go(&mut self, root: usize) -> bool {
        let root = self.flattening.roots[root];
        let asked = self.mentions.attribute_paths();
        self.flattening.done.clear();
        self.flattening.agenda.clear();
        self.flattening.agenda.push(Reached {
            node: root,
            place: AttributePathTrie::ROOT,
            before: NONE,
        });
        let mut next = 0;
        while let Some(&reached) = self.flattening.agenda.get(next) {
            let mut number = self.flattening.first(reached.node);
            while number != NONE {
                let triple = self.graph.triples[number as usize];
                self.premise = triple;
                let mut places = std::mem::take(&mut self.flattening.places);
                self.find_places(triple[1], reached.place, &mut places);
                for &place in &places {
                    let Some(left) = self.most.checked_sub(1) else {
                        self.flattening.places = places;
                        return false;
                    };
                    self.most = left;
                    self.end(root, place, triple[2]);
                    if asked.leads_on(place) && self.is_new(triple[2], next) {
                        let reached = Reached { node: triple[2], place, before: next as u32 };
                        self.flattening.agenda.push(reached);
                    }
                }
                self.flattening.places = places;
                number = self.flattening.next[number as usize];
            }
            next += 1;
        }
        true
    }

    /// Finds the places that a property leads to from a place of the demanded paths.
    fn find_places(&mut self, property: Id, from: u32, places: &mut Vec<u32>) {
        places.clear();
        let asked = self.mentions.attribute_paths();
        let mut tell = |place| {
            if !places.contains(&place) {
                places.push(place);
            }
        };
        if let Some(end) = asked.end(property) {
            if from == AttributePathTrie::ROOT {
                return tell(end);
            }
        } else if self.ontology.flags(property) & OWN != 0
            && !names::text(self.terms, property).starts_with(names::ATTRIBUTE)
        {
            let steps = self.flattening.steps.entry(property).or_insert_with(|| {
                let mut steps = Vec::new();
                let add = |name: &str| steps.extend(asked.step(name));
                self.ontology.step_names(property, self.terms, add);
                steps.into()
            });
            return steps.iter().filter_map(|&step| asked.below(from, step)).for_each(tell);
        }
        match names::attribute_name(names::text(self.terms, property)) {
            None => self.ontology.step_names(property, self.terms, |name| {
                let below = asked.step(name).and_then(|step| asked.below(from, step));
                below.into_iter().for_each(&mut tell);
            }),
            Some(name) => {
                let Some(steps) = names::steps(&name) else { return };
                let mut steps = steps.iter();
                let end = steps.try_fold(from, |place, step| asked.below(place, asked.step(step)?));
                end.into_iter().for_each(tell);
            }
        }
    }

    /// Returns true if a term is a subject and is not yet on the path to a resource.
    fn is_new(&self, term: Id, reached: usize) -> bool {
        let mut number = reached as u32;
        while let Some(reached) = self.flattening.agenda.get(number as usize) {
            if reached.node == term {
                return false;
            }
            number = reached.before;
        }
        self.flattening.nodes.contains_key(&term)
    }

    /// Derives the attributes that end at a place, and their classes.
    fn end(&mut self, root: Id, place: u32, value: Id) {
        let asked = self.mentions.attribute_paths();
        if !asked.attributes(place).is_empty() {
            if self.terms.kind(value) == Kind::Blank {
                self.types(value, self.stated);
            } else {
                self.flattening.classes.clear();
                self.flattening.classes.push(value);
            }
            for &value in &self.flattening.classes {
                for &property in asked.attributes(place) {
                    self.graph.derive([root, property, value], "attribute", self.premise);
                }
            }
        }
        if !asked.isa(place).is_empty() && self.flattening.done.insert((place, value)) {
            self.name_classes(value);
            for number in 0..self.flattening.named.len() {
                let class = self.flattening.named[number];
                for &property in asked.isa(place) {
                    self.add_classes(root, property, class);
                }
            }
        }
    }

    /// Derives a class and its superclasses as values of a property, if they are demanded.
    fn add_classes(&mut self, root: Id, property: Id, class: Id) {
        let is_wanted = |mentions: &Demand, class| {
            mentions.names_object(property, class) || mentions.names_object(property, ANY)
        };
        if self.ontology.flags(class) & OWN == 0 || !self.walk.is_plain(class) {
            if is_wanted(self.mentions, class) {
                self.graph.derive([root, property, class], "attribute", self.premise);
            }
            for &class in self.walk.above(self.ontology, class) {
                if is_wanted(self.mentions, class) {
                    self.graph.derive([root, property, class], "attribute", self.premise);
                }
            }
            return;
        }
        let wanted = self.flattening.wanted.entry((property, class)).or_insert_with(|| {
            let above = self.walk.above(self.ontology, class);
            let all = [class].into_iter().chain(above.iter().copied());
            all.filter(|&class| is_wanted(self.mentions, class)).collect()
        });
        for &class in &*wanted {
            self.graph.derive([root, property, class], "attribute", self.premise);
        }
    }

    /// Finds the classes of a resource among the first `length` triples.
    fn types(&mut self, resource: Id, length: usize) {
        let type_ = self.ontology.schema.vocabulary.type_;
        self.flattening.classes.clear();
        let mut number = self.flattening.first(resource);
        while number != NONE && (number as usize) < length {
            let [_, property, class] = self.graph.triples[number as usize];
            if property == type_ {
                self.flattening.classes.push(class);
            }
            number = self.flattening.next[number as usize];
        }
    }

    /// Finds the value itself, its classes, and the classes that it names.
    fn name_classes(&mut self, value: Id) {
        if self.terms.kind(value) == Kind::Literal {
            let Flattening { named, folded, .. } = &mut *self.flattening;
            named.clear();
            if let Some(quoted) = lexical::quoted(names::text(self.terms, value)) {
                let text = lexical::unquote(quoted);
                self.ontology.called(&text, self.terms, folded, |class| named.push(class));
            }
            return;
        }
        self.types(value, usize::MAX);
        let Flattening { named, classes, .. } = &mut *self.flattening;
        named.clear();
        named.push(value);
        named.append(classes);
        for number in 0..named.len() {
            let root = self.ontology.root_by_name(named[number], self.terms);
            if root != named[number] {
                named.push(root);
            }
        }
    }
}
