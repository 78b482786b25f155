//! The way of a publication: its terms say which steps of enrichment it needs; root terms and rules
//! are applied on ids; the index finds rows; what it cannot decide is evaluated.
//!
//! Annotation, units and mapping functions are Python's. A publication whose terms call for one of
//! them is handed back ([`Needs`]), and comes again with these steps done.

use crate::attributes::Flattening;
use crate::dictionary::{ANY, Dictionary, Id, Terms};
use crate::evaluate::{Answer, Evaluation, EvaluationError, Prepared, Source};
use crate::evaluate::{Limits, graph_name};
use crate::filter::{Deciding, Memo};
use crate::graph::Graph;
use crate::hierarchy::Walk;
use crate::index::{Index, Scratch};
use crate::indexed::{IndexAnswers, Indexed, Questions};
use crate::materialize::MaterializationCache;
use crate::mentions::Mentions;
use crate::ontology::{
    ATTRIBUTES, CLASS, EVENT, ITEM, MAPPING, Ontology, ROOTS, RULES, Steps, UNITS,
};
use crate::pattern::TaxonomyOperator;
use crate::reader::Publication;
use crate::subscriptions::RowId;
use crate::triples::Triple;
use hashbrown::HashSet;
use oxrdf::Literal;
use std::cell::RefCell;

/// The steps that Python does.
pub const PYTHON: Steps = ITEM | UNITS | MAPPING;

/// What one thread needs for a publication; reused for the next one.
#[derive(Default)]
pub struct Worker {
    /// The publication as it was read.
    pub publication: Publication,
    /// What follows from it, with look-ups.
    pub graph: Graph,
    /// What the index found.
    pub rows: Scratch,
    /// Whether all paths of properties were gone for attributes, within the limit.
    pub is_whole: bool,
    materialization: MaterializationCache,
    flattening: Flattening,
    walk: RefCell<Walk>,
    memo: RefCell<Memo>,
    /// The operators whose indexes failed, of which every constant counts as met.
    pub failed: Vec<Id>,
    /// The terms that indexes were asked of, with the operators.
    pub asked: HashSet<(Id, Id)>,
    /// The answers of operator indexes for the publication, if they were asked.
    pub answered: Option<IndexAnswers>,
}

/// Work for Python before a publication can be matched: steps of enrichment, or index look-ups.
pub enum Needs {
    Steps(Steps),
    Indexes(Questions),
}

/// A part of a graph: what every pattern sees, or what only those see that name their property.
struct Part<'a> {
    graph: &'a Graph,
    named_only: bool,
}

impl Source for Part<'_> {
    fn matching<'a>(&'a self, key: Triple) -> Box<dyn Iterator<Item = Triple> + 'a> {
        let stated = self.graph.stated();
        if self.named_only {
            let triples = &self.graph.triples[stated..];
            let meets = move |triple: &Triple| {
                triple.iter().zip(key).all(|(&term, wanted)| wanted == ANY || wanted == term)
            };
            return Box::new(triples.iter().copied().filter(meets));
        }
        if stated == self.graph.triples.len() {
            return Box::new(self.graph.matching(key));
        }
        Box::new(self.graph.matching(key).filter(move |&triple| self.contains(triple)))
    }

    fn contains(&self, triple: Triple) -> bool {
        let stated = self.graph.stated();
        match (self.named_only, stated == self.graph.triples.len()) {
            (true, true) => false,
            (true, false) => self.graph.triples[stated..].contains(&triple),
            (false, true) => self.graph.contains(triple),
            (false, false) => {
                self.graph.contains(triple) && !self.graph.triples[stated..].contains(&triple)
            }
        }
    }
}

impl Source for Ontology {
    fn matching<'a>(&'a self, key: Triple) -> Box<dyn Iterator<Item = Triple> + 'a> {
        Box::new(Ontology::matching(self, key))
    }

    fn contains(&self, triple: Triple) -> bool {
        Ontology::contains(self, triple)
    }
}

/// Everything that subscriptions are asked under: terms, the ontology, what is mentioned.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// The terms that are mentioned.
    pub dictionary: &'a Dictionary,
    /// What is known.
    pub ontology: &'a Ontology,
    /// What subscriptions ask for.
    pub mentions: &'a Mentions,
    /// How many steps are gone in all when a publication is flattened into attributes.
    pub event_paths: usize,
}

impl Worker {
    /// The steps that the terms of a publication's first triples call for, less those that were done.
    pub fn steps(&self, context: Context, shown: usize, done: Steps) -> Steps {
        let Context { dictionary, ontology, .. } = context;
        let terms = Terms { dictionary, local: &self.publication.local };
        let (mut steps, mut last, mut has_types) = (ontology.always, [ANY; 3], false);
        let type_ = ontology.schema.vocabulary.type_;
        for &triple in &self.publication.triples[..shown] {
            let [subject, predicate, object] = triple;
            if subject != last[0] {
                steps |= ontology.steps(subject, terms);
            }
            if predicate != last[1] {
                steps |= ontology.steps(predicate, terms);
                steps |= ontology.steps_of_property(predicate, terms);
                has_types |= predicate == type_;
            }
            steps |= ontology.steps(object, terms);
            last = triple;
        }
        if steps & CLASS != 0 && has_types {
            steps |= RULES;
        }
        steps & !done
    }

    /// Makes the graph that subscriptions are asked of.
    ///
    /// `stated` is how many of the publication's triples somebody stated, `shown` how many every
    /// pattern sees, and not only those that name the property; `steps` are those that are left to
    /// be done. Returns the steps that derived triples call for.
    pub fn enrich(&mut self, context: Context, stated: usize, shown: usize, steps: Steps) -> Steps {
        let Context { dictionary, ontology, mentions, .. } = context;
        let mut own = self.begin(stated, shown);
        let Self { publication, graph, materialization, flattening, walk, .. } = self;
        let mut steps = steps;
        if steps & EVENT != 0 {
            let local = &mut publication.local;
            ontology.write_event(graph, dictionary, local, flattening);
            steps |= ROOTS | RULES;
        }
        let terms = Terms { dictionary, local: &publication.local };
        if steps & ROOTS != 0 {
            let rooted: Vec<Triple> = graph
                .triples
                .iter()
                .map(|triple| triple.map(|term| ontology.root(term, terms)))
                .collect();
            if rooted != graph.triples {
                graph.clear();
                let before = std::mem::take(&mut own);
                for (number, triple) in rooted.into_iter().enumerate() {
                    own += usize::from(graph.push(triple) && number < before);
                }
                steps |= RULES;
            }
        }
        let mut late = 0;
        if steps & (EVENT | ROOTS) != 0 {
            for [_, property, object] in &graph.triples {
                let units = ontology.steps(*property, terms) | ontology.steps(*object, terms);
                late |= units & UNITS | ontology.steps_of_property(*property, terms) & MAPPING;
            }
        }
        let triples = publication.triples[..stated].iter().copied();
        walk.get_mut().begin(ontology, triples, terms);
        if steps & RULES != 0 {
            ontology.materialize(graph, terms, mentions, materialization);
        }
        for [_, property, _] in graph.triples.iter().skip(own) {
            late |= ontology.steps_of_property(*property, terms) & MAPPING;
        }
        graph.begin_named_only();
        self.is_whole = self.add_attributes(context, own);
        let Self { publication, graph, .. } = self;
        let terms = Terms { dictionary, local: &publication.local };
        for &[subject, property, object] in &publication.triples[shown..] {
            graph.push([ontology.root(subject, terms), property, object]);
        }
        late
    }

    /// Adds what the indexes of operators say of the publication's terms, as triples that only those
    /// patterns see that name the operator. Returns the questions if the indexes have to be asked.
    pub fn ask(&mut self, context: Context, indexed: &Indexed) -> Result<(), Questions> {
        self.failed.clear();
        self.asked.clear();
        let answered = self.answered.take();
        let questions = indexed.questions(&self.graph.triples);
        if questions.is_empty() {
            return Ok(());
        }
        let terms = self.terms(context);
        let text = |&id: &Id| terms.text(id).into_owned();
        let texts = questions.iter();
        let texts: Questions =
            texts.map(|(of, ids)| (*of, ids.iter().map(text).collect())).collect();
        let is_current =
            |one: &IndexAnswers| one.epoch == indexed.epoch() && one.questions == texts;
        let Some(answers) = answered.filter(is_current).map(|one| one.found) else {
            return Err(texts);
        };
        for (place, (of, ids)) in questions.into_iter().enumerate() {
            let operator = indexed.id(of);
            let Some(found) = answers.get(place).and_then(Option::as_ref) else {
                self.failed.push(operator);
                for id in ids {
                    for key in indexed.keys(of) {
                        self.graph.push([id, operator, key]);
                    }
                }
                continue;
            };
            for (id, keys) in ids.into_iter().zip(found) {
                self.asked.insert((operator, id));
                for &key in keys {
                    self.graph.push([id, operator, key]);
                }
            }
        }
        Ok(())
    }

    /// Makes a graph of the triples that every pattern sees; returns how many distinct ones
    /// somebody stated.
    fn begin(&mut self, stated: usize, shown: usize) -> usize {
        let Self { publication, graph, memo, .. } = self;
        graph.clear();
        memo.get_mut().clear();
        let mut own = 0;
        for (number, &triple) in publication.triples[..shown].iter().enumerate() {
            own += usize::from(graph.push(triple) && number < stated);
        }
        own
    }

    /// Adds the attributes that are asked for; whether all paths were gone.
    fn add_attributes(&mut self, context: Context, own: usize) -> bool {
        let Context { dictionary, ontology, mentions, event_paths } = context;
        let Self { publication, graph, flattening, walk, .. } = self;
        if mentions.asked().is_empty() {
            return true;
        }
        let terms = Terms { dictionary, local: &publication.local };
        let name = format!("<{}>", publication.id);
        let hash = dictionary.hash(name.as_bytes());
        let name = dictionary
            .get_hashed(name.as_bytes(), hash)
            .or_else(|| publication.local.get_hashed(name.as_bytes(), hash));
        let walk = walk.get_mut();
        let most = event_paths;
        ontology.add_attributes(graph, own, name, terms, mentions, most, walk, flattening)
    }

    /// Does some steps with everything that follows, for those who ask why: events as graphs,
    /// rules, attributes that `context` asks for. The triples have their root terms.
    ///
    /// `stated` is how many of the publication's triples somebody stated. Returns how many triples
    /// of the graph are the given ones, and how many every pattern sees; and whether the attributes
    /// are all.
    pub fn follow(
        &mut self,
        context: Context,
        stated: usize,
        steps: Steps,
    ) -> (usize, usize, bool) {
        let Context { dictionary, ontology, .. } = context;
        let own = self.begin(stated, self.publication.triples.len());
        let Self { publication, graph, materialization, flattening, walk, .. } = self;
        let given = graph.triples.len();
        if steps & EVENT != 0 {
            ontology.write_event(graph, dictionary, &mut publication.local, flattening);
        }
        let terms = Terms { dictionary, local: &publication.local };
        walk.get_mut().begin(ontology, publication.triples[..stated].iter().copied(), terms);
        if steps & RULES != 0 {
            ontology.materialize(graph, terms, &Mentions::of_everything(), materialization);
        }
        let shown = graph.triples.len();
        (given, shown, steps & ATTRIBUTES == 0 || self.add_attributes(context, own))
    }

    /// Finds the rows that have a solution; they are in `rows.matches`.
    pub fn find(&mut self, context: Context, index: &Index) {
        self.graph.prepare(index.required_kinds());
        let Self { publication, graph, rows, walk, memo, .. } = self;
        let terms = Terms { dictionary: context.dictionary, local: &publication.local };
        let is_a = |operator, term, concept| {
            walk.borrow_mut().holds(context.ontology, operator, term, concept, terms)
        };
        let deciding = Deciding::new(terms, memo, &is_a);
        index.find(graph, &deciding, rows);
    }

    /// Hands out the solutions of a row until `on` says false.
    pub fn solutions(
        &mut self,
        context: Context,
        index: &Index,
        row: RowId,
        on: impl FnMut(&[Id]) -> bool,
    ) {
        let Self { publication, graph, rows, walk, memo, .. } = self;
        let terms = Terms { dictionary: context.dictionary, local: &publication.local };
        let is_a = |operator, term, concept| {
            walk.borrow_mut().holds(context.ontology, operator, term, concept, terms)
        };
        let deciding = Deciding::new(terms, memo, &is_a);
        index.solutions(row, graph, &deciding, rows, on);
    }

    /// Evaluates a query on the publication.
    pub fn evaluate(
        &self,
        context: Context,
        prepared: &Prepared,
        now: &Literal,
        limits: Limits,
    ) -> Result<Option<Answer>, EvaluationError> {
        let Self { publication, graph, walk, .. } = self;
        let terms = Terms { dictionary: context.dictionary, local: &publication.local };
        let is_a = |operator: TaxonomyOperator, term, concept| {
            walk.borrow_mut().holds(context.ontology, operator, term, concept, terms)
        };
        let evaluation = Evaluation {
            terms,
            publication: &Part { graph, named_only: false },
            attributes: &Part { graph, named_only: true },
            background: context.ontology,
            graph: &graph_name(&publication.id),
            now,
            is_a: &is_a,
            limits,
        };
        evaluation.answer(prepared)
    }

    /// The terms of the publication.
    pub fn terms<'a>(&'a self, context: Context<'a>) -> Terms<'a> {
        Terms { dictionary: context.dictionary, local: &self.publication.local }
    }

    /// Makes the graph again that [`Worker::enrich`] made: its triples, of which the first `shown`
    /// are seen by every pattern.
    pub fn restore(
        &mut self,
        context: Context,
        triples: &[Triple],
        shown: usize,
        stated: usize,
        index: &Index,
    ) {
        let Self { publication, graph, walk, memo, .. } = self;
        graph.clear();
        memo.get_mut().clear();
        for (number, &triple) in triples.iter().enumerate() {
            if number == shown {
                graph.begin_named_only();
            }
            graph.push(triple);
        }
        graph.prepare(index.required_kinds());
        let terms = Terms { dictionary: context.dictionary, local: &publication.local };
        let stated = publication.triples[..stated].iter().copied();
        walk.get_mut().begin(context.ontology, stated, terms);
    }
}
