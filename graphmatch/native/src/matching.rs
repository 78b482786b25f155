//! The pipeline of a publication: enrichment with root terms and rules, index look-up, and
//! evaluation of residual queries.
//!
//! Python converts units, runs mapping functions, and gives the labels of the ontology. If a
//! publication needs one of these steps, the caller gets [`Needs`] and matches again after Python has
//! done them.

use crate::annotation::{Annotation, Annotator, LabelForm, SUBJECT, WORDS};
use crate::branch::TaxonomyOperator;
use crate::demand::Demand;
use crate::dictionary::{ANY, Dictionary, Id, Terms};
use crate::evaluate::{Answer, Evaluation, EvaluationError, Prepared, graph_name};
use crate::filter::{FilterEvaluator, Memo};
use crate::functions::Moment;
use crate::graph::Graph;
use crate::index::{Index, Scratch};
use crate::lexical::quote;
use crate::limits::{Budget, Limits};
use crate::materialize::MaterializationCache;
use crate::ontology::{ATTRIBUTES, EVENT, ITEM, MAPPING, Ontology, ROOTS, RULES, Steps, UNITS};
use crate::operator_index::{IndexAnswers, OperatorConstants, Questions};
use crate::operators::CallResults;
use crate::publication::Publication;
use crate::subscriptions::RowId;
use crate::taxonomy::Walk;
use crate::triples::Triple;
use hashbrown::HashSet;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Steps that run in Python.
pub const PYTHON: Steps = ITEM | UNITS | MAPPING;

/// Memory of one thread, reused for each publication.
#[derive(Default)]
pub struct Worker {
    pub publication: Publication,
    /// E(P) with its look-ups.
    pub graph: Graph,
    /// The triples before root terms were put in; empty if none was.
    pub unrooted: Vec<Triple>,
    /// The result of the index.
    pub rows: Scratch,
    /// The time that is left for the publication.
    pub budget: Budget,
    /// False if the rules or the search for attributes reached their limits.
    pub is_whole: bool,
    materialization: MaterializationCache,
    walk: RefCell<Walk>,
    memo: RefCell<Memo>,
    /// Operators whose index failed: all their constants are candidates.
    pub failed: Vec<Id>,
    /// Answers of operator indexes for this publication.
    pub answered: Option<IndexAnswers>,
}

/// Work for Python before a publication can be matched: steps of enrichment, or index look-ups.
pub enum Needs {
    Steps(Steps),
    Indexes(Questions),
}

/// The work for a publication in earlier rounds.
#[derive(Clone)]
pub struct Progress {
    /// The number of stated triples; all by default.
    pub stated: usize,
    /// The number of triples that all patterns see, and not only those with the property; all by
    /// default.
    pub shown: usize,
    /// The steps of enrichment that were done.
    pub done: Steps,
    /// Version of the enricher that did them.
    pub version: Option<u64>,
    /// The triples that were found in texts.
    pub annotations: Vec<Annotation>,
    /// False if the time was over before all texts were annotated.
    pub is_whole: bool,
    /// The time that is left.
    pub left: Option<Duration>,
    /// The results of calls of operators.
    pub results: Arc<CallResults>,
    /// The value of `NOW()`.
    pub now: Moment,
}

impl Progress {
    /// Nothing is done yet.
    pub fn new(now: Moment) -> Self {
        Self {
            now,
            stated: usize::MAX,
            shown: usize::MAX,
            done: 0,
            version: None,
            annotations: Vec::new(),
            is_whole: true,
            left: None,
            results: Arc::default(),
        }
    }
}

/// The engine's terms, ontology and demand.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    pub dictionary: &'a Dictionary,
    pub ontology: &'a Ontology,
    pub demand: &'a Demand,
    pub limits: &'a Limits,
}

/// Maximum number of triples that are derived from a publication.
fn derived_triples(limits: &Limits, graph: &Graph) -> usize {
    limits.derived_triples.saturating_add(graph.triples.len().saturating_mul(4))
}

impl Worker {
    /// Returns the steps of enrichment that the first `shown` triples need and that are not `done`.
    pub fn steps(&self, context: Context, shown: usize, done: Steps) -> Steps {
        let Context { dictionary, ontology, .. } = context;
        let terms = Terms { dictionary, local: &self.publication.local };
        let (mut steps, mut last) = (ontology.always, [ANY; 3]);
        for &triple in &self.publication.triples[..shown] {
            let [subject, predicate, object] = triple;
            if subject != last[0] {
                steps |= ontology.steps(subject, terms);
            }
            if predicate != last[1] {
                steps |= ontology.steps(predicate, terms);
                steps |= ontology.steps_of_property(predicate, terms);
            }
            steps |= ontology.steps(object, terms);
            last = triple;
        }
        steps & !done
    }

    /// Adds the concepts that the texts of feed items name, and the words of these texts if
    /// subscriptions search them. This may take half of the time.
    pub fn annotate(&mut self, context: Context, annotator: &Annotator, progress: &mut Progress) {
        let dictionary = context.dictionary;
        let Self { publication: Publication { triples, local, .. }, budget, .. } = self;
        let is_late = Cell::new(false);
        let is_over = |budget: &Budget, share| {
            is_late.set(is_late.get() || budget.is_over(share));
            is_late.get()
        };
        let (terms, share) = (Terms { dictionary, local }, budget.share());
        let shown = &triples[..progress.shown];
        let texts = annotator.texts(shown, terms, &|| is_over(budget, share));
        // The first texts of a language do not have to pay for its labels.
        let begin = Instant::now();
        annotator.prepare(&texts);
        budget.extend(begin.elapsed());
        let share = budget.share();
        let subject = local.id_of(SUBJECT, dictionary);
        let (hidden, mut seen) = (triples.split_off(progress.shown), HashSet::new());
        for (number, found) in annotator.occurrences(&texts, &|| is_over(budget, share)) {
            let concept = annotator.labels[found.label as usize].concept.as_bytes();
            let triple = [texts[number].item, subject, local.id_of(concept, dictionary)];
            if seen.insert(triple) {
                let place = if found.form == LabelForm::Same { 0..0 } else { found.place };
                progress.annotations.push(Annotation {
                    triples: [triples.len(), texts[number].triple],
                    label: Some((found.label, found.form)),
                    text: texts[number].text[place].into(),
                });
                triples.push(triple);
            }
        }
        progress.shown = triples.len();
        progress.done |= ITEM;
        progress.is_whole &= !is_late.get();
        triples.extend(hidden);
        if let Some(property) = dictionary.get(WORDS) {
            for text in &texts {
                let Some(words) = text.folded() else { continue };
                let words = local.id_of(quote(&words).as_bytes(), dictionary);
                if seen.insert([text.item, property, words]) {
                    let places = [triples.len(), text.triple];
                    let none = Annotation { triples: places, label: None, text: Box::default() };
                    progress.annotations.push(none);
                    triples.push([text.item, property, words]);
                }
            }
        }
    }

    /// Builds the graph E(P). The first `stated` triples are stated, the first `shown` are visible
    /// to all patterns; the rest only to patterns that name their property. `steps` are still to be
    /// done. Returns steps that derived triples need.
    pub fn enrich(&mut self, context: Context, stated: usize, shown: usize, steps: Steps) -> Steps {
        let Context { dictionary, ontology, demand, limits } = context;
        let mut own = self.begin(stated, shown);
        self.is_whole = true;
        let Self { publication, graph, unrooted, materialization, walk, budget, .. } = self;
        unrooted.clear();
        let mut steps = steps;
        if steps & EVENT != 0 {
            let local = &mut publication.local;
            ontology.write_event(graph, dictionary, local);
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
                unrooted.clone_from(&graph.triples);
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
            let (most, watch) = (derived_triples(limits, graph), budget.watch());
            self.is_whole =
                ontology.materialize(graph, terms, demand, materialization, most, &watch);
        }
        for [_, property, _] in graph.triples.iter().skip(own) {
            late |= ontology.steps_of_property(*property, terms) & MAPPING;
        }
        graph.begin_named_only();
        self.is_whole &= self.add_attributes(context, own);
        let Self { publication, graph, .. } = self;
        let terms = Terms { dictionary, local: &publication.local };
        for &[subject, property, object] in &publication.triples[shown..] {
            graph.push([ontology.root(subject, terms), property, object]);
        }
        late
    }

    /// Adds the answers of operator indexes as triples that only patterns with this operator see.
    /// Returns the questions if Python must ask the indexes first.
    pub fn ask(&mut self, context: Context, indexed: &OperatorConstants) -> Result<(), Questions> {
        self.failed.clear();
        let answered = self.answered.take();
        let questions = indexed.questions(&self.graph.triples);
        if questions.is_empty() {
            return Ok(());
        }
        let terms = self.terms(context);
        let text = |&id: &Id| String::from_utf8_lossy(&terms.text(id)).into_owned();
        let texts = questions.iter();
        let texts: Questions =
            texts.map(|(of, ids)| (*of, ids.iter().map(text).collect())).collect();
        let is_current = |one: &IndexAnswers| one.questions == texts;
        let Some(answers) = answered.filter(is_current).map(|one| one.found) else {
            return Err(texts);
        };
        for (place, (of, ids)) in questions.into_iter().enumerate() {
            let operator = indexed.id(of);
            let Some(found) = answers.get(place).and_then(Option::as_ref) else {
                self.failed.push(operator);
                for id in ids {
                    for constant in indexed.constants(of) {
                        self.graph.push([id, operator, constant]);
                    }
                }
                continue;
            };
            for (id, keys) in ids.into_iter().zip(found) {
                for constant in keys.iter().filter_map(|&key| indexed.constant(key)) {
                    self.graph.push([id, operator, constant]);
                }
            }
        }
        Ok(())
    }

    /// Copies the visible triples into the graph. Returns the number of distinct stated triples.
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

    /// Derives the demanded attributes. Returns false if the search reached its limit.
    fn add_attributes(&mut self, context: Context, own: usize) -> bool {
        let Context { dictionary, ontology, demand, limits } = context;
        let Self { publication, graph, materialization, walk, .. } = self;
        if demand.attribute_paths.is_empty() {
            return true;
        }
        let terms = Terms { dictionary, local: &publication.local };
        let name = format!("<{}>", publication.id);
        let name = terms.find(name.as_bytes());
        let walk = walk.get_mut();
        let most = limits.event_paths;
        ontology.add_attributes(graph, own, name, terms, demand, most, walk, materialization)
    }

    /// Derives all triples of E(P) for explanations: event graphs, rules, and the attributes that
    /// `context` demands. The triples have their root terms.
    ///
    /// Returns the numbers of given and of visible triples.
    pub fn entail(&mut self, context: Context, stated: usize, steps: Steps) -> (usize, usize) {
        let Context { dictionary, ontology, limits, .. } = context;
        let own = self.begin(stated, self.publication.triples.len());
        self.is_whole = true;
        let Self { publication, graph, materialization, walk, budget, .. } = self;
        let given = graph.triples.len();
        if steps & EVENT != 0 {
            ontology.write_event(graph, dictionary, &mut publication.local);
        }
        let terms = Terms { dictionary, local: &publication.local };
        walk.get_mut().begin(ontology, publication.triples[..stated].iter().copied(), terms);
        if steps & RULES != 0 {
            let (demand, most) = (Demand::of_everything(), derived_triples(limits, graph));
            let watch = budget.watch();
            self.is_whole =
                ontology.materialize(graph, terms, &demand, materialization, most, &watch);
        }
        let shown = graph.triples.len();
        if steps & ATTRIBUTES != 0 {
            self.is_whole &= self.add_attributes(context, own);
        }
        (given, shown)
    }

    /// Writes the rows that have a solution to `rows.matches`.
    pub fn find(&mut self, context: Context, index: &Index) {
        self.graph.prepare(index.patterns.required_kinds());
        self.with_rows(context, |graph, evaluator, rows| index.find(graph, evaluator, rows));
    }

    /// Calls a function with the graph, an evaluator of filters and the memory of the index.
    fn with_rows(
        &mut self,
        context: Context,
        run: impl FnOnce(&Graph, &FilterEvaluator, &mut Scratch),
    ) {
        let Self { publication, graph, rows, walk, memo, .. } = self;
        let terms = Terms { dictionary: context.dictionary, local: &publication.local };
        let is_a = |operator, term, concept| {
            walk.borrow_mut().holds(context.ontology, operator, term, concept, terms)
        };
        run(graph, &FilterEvaluator { terms, memo, isa: &is_a }, rows);
    }

    /// Calls `on` with each solution of a row until it returns false.
    pub fn solutions(
        &mut self,
        context: Context,
        index: &Index,
        row: RowId,
        on: impl FnMut(&[Id]) -> bool,
    ) {
        self.with_rows(context, |graph, evaluator, rows| {
            index.solutions(row, graph, evaluator, rows, on);
        });
    }

    /// Evaluates a query on the publication.
    pub fn evaluate(
        &self,
        context: Context,
        prepared: &Prepared,
        now: Moment,
    ) -> Result<Option<Answer>, EvaluationError> {
        let Self { publication, graph, walk, budget, .. } = self;
        let terms = Terms { dictionary: context.dictionary, local: &publication.local };
        let is_a = |operator: TaxonomyOperator, term, concept| {
            walk.borrow_mut().holds(context.ontology, operator, term, concept, terms)
        };
        let evaluation = Evaluation {
            terms,
            graph,
            ontology: context.ontology,
            name: &graph_name(&publication.id),
            now,
            is_a: &is_a,
            limits: *context.limits,
            budget: *budget,
        };
        evaluation.answer(prepared)
    }

    /// The terms of the publication.
    pub fn terms<'a>(&'a self, context: Context<'a>) -> Terms<'a> {
        Terms { dictionary: context.dictionary, local: &self.publication.local }
    }

    /// Rebuilds the graph of [`Worker::enrich`] from its triples, of which the first `shown` are
    /// visible to all patterns.
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
        graph.prepare(index.patterns.required_kinds());
        let terms = Terms { dictionary: context.dictionary, local: &publication.local };
        let stated = publication.triples[..stated].iter().copied();
        walk.get_mut().begin(context.ontology, stated, terms);
    }
}
