//! Standing subscriptions over an ontology, and publications matched against them.
//!
//! [`Engine`] is all of it. Matching takes it as it is, with a [`Worker`] of its own for each thread;
//! subscribing and changing the ontology change it. A subscription is a template and constants; its
//! branches, with root terms put in, are rows of the index. Patterns that triples of the ontology may
//! match are not indexed, and left to the evaluator.

use crate::annotation::Annotator;
use crate::branch::{Branch, Node, Pattern};
use crate::demand::Demand;
use crate::dictionary::{ANY, Dictionary, Id, LocalTerms, Terms, inline};
use crate::evaluate::{Answer, EvaluationError, Prepared};
use crate::fault::Fault;
use crate::history::{FormerSubscription, History};
use crate::index::Index;
use crate::lexical::read_term;
use crate::limits::{Budget, Limits};
use crate::matching::{Context, Needs, PYTHON, Progress, Worker};
use crate::ontology::build::OntologyInput;
use crate::ontology::{ITEM, Ontology, UNITS};
use crate::operator_index::OperatorConstants;
use crate::operators::{CallContext, CallRequests};
use crate::parameterize::Parameterizer;
use crate::plan::MAX_PATTERNS;
use crate::postings::{Counters, NO_OWNER};
use crate::push_new;
use crate::query::{FilledTemplate, ParsedQuery, Template};
use crate::scan::on_stack;
use crate::subscriptions::{
    DELTA_CHECK, EXACT, Entry, Flags, IN_ROW, LONGEST_NAME, Number, RowId, SUSPENDED,
    Subscriptions, UNINDEXED,
};
use crate::templates::{TemplateCache, Templates};
use crate::triples::Triple;
use crate::writer::filled;
use hashbrown::HashMap;
use oxrdf::Term;
use serde::Serialize;
use spargebra::Query;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::num::NonZero;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

mod calls;

/// IRIs that stand for a class by its name, until Python finds it in the ontology.
const CONCEPT: &[u8] = b"<urn:graphmatch:concept:";
/// Flag in the owner of a row: the subscription must be evaluated.
const NEEDS_EVALUATION: Number = 1 << 31;
/// Minimum number of texts of a thread that parses.
const MIN_PARSED_TOGETHER: usize = 16;

/// The parts of an engine that a snapshot holds, as [`Engine::saved`] gives them.
pub type Saved = (
    (Dictionary, Ontology, Templates),
    (Index, Vec<u8>),
    Vec<((Id, Id), u32)>,
    HashMap<Box<[u8]>, Id>,
    (Subscriptions, BTreeSet<Number>),
);

/// Why a subscription was not taken in.
#[derive(Debug)]
pub enum SubscribeError {
    /// Another subscription has this id.
    Duplicate,
    /// It cannot be a subscription.
    Query(Fault),
    /// Units or names of classes in it have to be found first, by Python. The query, if Python does
    /// not have it.
    Python(String),
}

impl From<Fault> for SubscribeError {
    fn from(error: Fault) -> Self {
        Self::Query(error)
    }
}

fn full(what: &str) -> Fault {
    Fault::new(format!("there is no room for more {what}"), "Unsubscribe some.")
}

/// How a subscription is indexed.
pub struct IndexPlan {
    /// The rows, each with the number of its branch, or `None` for a single pattern. Each row makes
    /// the subscription a candidate.
    pub entries: Vec<(Option<usize>, Branch)>,
    /// How it is indexed.
    pub flags: Flags,
    /// Why candidates are evaluated; empty if the solutions of the rows are the answer.
    pub residual: Vec<Cow<'static, str>>,
    /// Texts that filters need, mentioned until the entries are rows.
    interned: Vec<Id>,
}

impl IndexPlan {
    fn add(&mut self, number: Option<usize>, entry: Branch) {
        if !self.entries.iter().any(|(_, one)| *one == entry) {
            self.entries.push((number, entry));
        }
    }
}

/// The matches of a publication.
#[derive(Default)]
pub struct MatchResult {
    /// The subscriptions, in the order of subscribing.
    pub found: Vec<Number>,
    /// The answers of those that were evaluated, by number.
    pub answers: Vec<(Number, Answer)>,
    /// The subscriptions whose evaluation failed, and why.
    pub failed: Vec<(Number, EvaluationError)>,
    /// The calls of operators that candidates need.
    pub requests: CallRequests,
    /// The subscriptions that failed calls leave undecided: these calls, and whether the subscription
    /// matches by other solutions.
    pub undecided: Vec<(Number, Vec<String>, bool)>,
    /// Whether triples are missing because more follows from the publication than the limits allow.
    pub is_truncated: bool,
    /// The contradictions that rules found: each rule with its last premise.
    pub contradictions: Vec<String>,
    /// The counters of the index.
    pub counters: Counters,
    /// Number of subscriptions that were evaluated.
    pub evaluated: usize,
}

/// Writes the contradictions that rules found.
pub fn contradictions(found: &[(&'static str, Triple)], terms: Terms) -> Vec<String> {
    let text = |id: Id| String::from_utf8_lossy(&terms.text(id)).into_owned();
    found
        .iter()
        .map(|(rule, triple)| format!("{} (rule {rule} of OWL 2 RL)", triple.map(text).join(" ")))
        .collect()
}

/// The effects of a change of the ontology.
#[derive(Clone, Debug, Default)]
pub struct Change {
    /// How many triples follow from one ontology and not from the other.
    pub triples: usize,
    /// How many terms have another root.
    pub names: usize,
    /// The subscriptions that were indexed again.
    pub reindexed: Vec<String>,
    /// The indexed subscriptions that still need units or names from Python.
    pub python: Vec<String>,
}

/// Standing subscriptions over an ontology.
pub struct Engine {
    /// The terms that are mentioned.
    pub dictionary: Dictionary,
    /// The ontology, shared with the reports that were made under it.
    pub ontology: Arc<Ontology>,
    /// The data that reports need of former subscriptions.
    pub history: History,
    /// The properties and objects that subscriptions can use.
    pub demand: Demand,
    /// The templates.
    pub templates: Templates,
    /// The subscriptions.
    pub subscriptions: Subscriptions,
    /// The rows of the subscriptions.
    pub index: Index,
    /// The limits of publications and evaluations.
    pub limits: Limits,
    /// Returns true if the user has interrupted the program.
    pub is_interrupted: fn() -> bool,
    /// The constants of operators that have an index.
    pub operator_constants: OperatorConstants,
    /// Finds the labels of the ontology in text, once Python has given them.
    pub annotator: Option<Arc<Annotator>>,
    pub(crate) parameterizer: Parameterizer,
    unindexed: BTreeSet<Number>,
    /// The classes that Python found by name in this ontology.
    concepts: HashMap<Box<[u8]>, Id>,
    /// The residual queries of templates, without and with a delta check.
    prepared: [TemplateCache<Prepared>; 2],
    /// The algebra of templates that call operators.
    algebra: TemplateCache<Query>,
}

impl Engine {
    /// Nothing known, no subscriptions.
    pub fn new(parameterizer: Parameterizer) -> Self {
        let mut dictionary = Dictionary::default();
        let ontology = Arc::new(Ontology::new(&mut dictionary, OntologyInput::default()));
        let operator_constants = OperatorConstants::new(&parameterizer.operators, &mut dictionary);
        Self {
            dictionary,
            ontology,
            history: History::default(),
            demand: Demand::default(),
            templates: Templates::default(),
            subscriptions: Subscriptions::default(),
            index: Index::default(),
            limits: parameterizer.limits,
            is_interrupted: || false,
            operator_constants,
            annotator: None,
            parameterizer,
            unindexed: BTreeSet::new(),
            concepts: HashMap::new(),
            prepared: Default::default(),
            algebra: TemplateCache::default(),
        }
    }

    /// Returns the parts that a snapshot holds: everything except functions and limits.
    pub fn saved(&self) -> impl Serialize + '_ {
        let demand: Vec<((Id, Id), u32)> = self.demand.counted().collect();
        let index = (&self.index, self.index.table_rows());
        let subscriptions = (&self.subscriptions, &self.unindexed);
        let terms = (&self.dictionary, &*self.ontology, &self.templates);
        (terms, index, demand, &self.concepts, subscriptions)
    }

    /// Makes an engine of the parts that a snapshot holds; `None` if they do not fit together.
    pub fn restored(parameterizer: Parameterizer, saved: Saved) -> Option<Self> {
        let mut engine = Self::new(parameterizer);
        let ((dictionary, ontology, templates), index, pairs, concepts, subscriptions) = saved;
        (engine.dictionary, engine.ontology) = (dictionary, Arc::new(ontology));
        (engine.templates, engine.concepts) = (templates, concepts);
        (engine.subscriptions, engine.unindexed) = subscriptions;
        let (dictionary, rows) = (&mut engine.dictionary, index.1);
        engine.index = index.0;
        engine.index.rebuild(&rows, dictionary)?;
        for ((property, object), times) in pairs {
            let times = i32::try_from(times).unwrap_or(i32::MAX);
            engine.demand.count((property, object), times, &dictionary.text(property));
        }
        let operators = &engine.parameterizer.operators;
        engine.operator_constants = OperatorConstants::new(operators, dictionary);
        if operators.0.iter().any(|operator| operator.is_indexed) {
            for number in engine.subscriptions.numbers() {
                for &row in engine.subscriptions.get(number).rows {
                    let branch = engine.index.branch(row);
                    engine.operator_constants.count(&branch, true, dictionary);
                }
            }
        }
        Some(engine)
    }

    /// The time and memory for a publication of so many triples. `left` is the time that earlier
    /// rounds have left.
    pub fn budget(&self, triples: usize, left: Option<Duration>) -> Budget {
        Budget::new(&self.limits, triples, left, self.is_interrupted)
    }

    /// The context in which publications are matched.
    pub fn context(&self) -> Context<'_> {
        let Self { dictionary, ontology, demand, limits, .. } = self;
        Context { dictionary, ontology, demand, limits }
    }

    // -- subscribing --------------------------------------------------------------------------

    /// Parses a text, and analyses it if its template is new.
    pub(crate) fn parse(&self, text: &str) -> Result<ParsedQuery, Fault> {
        let query = self.parameterizer.parameterize(text)?;
        let is_new = self.templates.find(&query.text).is_none();
        let template = is_new.then(|| Template::new(&query, &self.parameterizer)).transpose()?;
        Ok((query, template))
    }

    /// Parses texts in several threads.
    pub(crate) fn parse_all(&self, texts: &[String]) -> Vec<Result<ParsedQuery, Fault>> {
        let threads = std::thread::available_parallelism().map_or(1, NonZero::get);
        let size = texts.len().div_ceil(threads).max(MIN_PARSED_TOGETHER);
        let parse = |part: &[String]| part.iter().map(|text| self.parse(text)).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let parse = &parse;
            let mut parts = texts.chunks(size);
            let first = parts.next().unwrap_or_default();
            let others: Vec<_> = parts.map(|part| scope.spawn(move || parse(part))).collect();
            let mut parsed = parse(first);
            for part in others {
                parsed.extend(part.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            parsed
        })
    }

    /// The number of a parsed query's template, and the query's constants.
    pub(crate) fn template(
        &mut self,
        (query, template): ParsedQuery,
    ) -> Result<(u32, Vec<String>), Fault> {
        let number = match (self.templates.find(&query.text), template) {
            (Some(number), _) => Some(number),
            (None, Some(template)) => self.templates.add(&template),
            (None, None) => self.templates.add(&Template::new(&query, &self.parameterizer)?),
        };
        let number = number.ok_or_else(|| full("templates"))?;
        let mut constants = query.constants;
        if let Some(template) = self.templates.get(number) {
            constants.extend(template.operators());
        }
        Ok((number, constants))
    }

    /// Fails if no subscription can have this name.
    pub(crate) fn check_name(&self, name: &str) -> Result<(), SubscribeError> {
        if self.subscriptions.find(name).is_some() {
            return Err(SubscribeError::Duplicate);
        }
        if name.len() > LONGEST_NAME {
            let what = "its id is longer than 65,535 bytes";
            return Err(Fault::new(what, "Give it a shorter id.").into());
        }
        Ok(())
    }

    /// Adds a subscription, or replaces the one that has this id.
    ///
    /// `rewritten` has its constants with root terms and in base units, if Python found them.
    pub fn subscribe(
        &mut self,
        name: &str,
        parsed: Result<ParsedQuery, Fault>,
        rewritten: Option<&[String]>,
        replaced: Option<Number>,
    ) -> Result<Number, SubscribeError> {
        if replaced.is_none() {
            self.check_name(name)?;
        }
        let (template, constants) = self.template(parsed?)?;
        let mut intern = |text: &str| self.dictionary.intern(text.as_bytes());
        let constants: Vec<Id> = constants.iter().map(|text| intern(text)).collect();
        let rewritten = rewritten.map(|texts| texts.iter().map(|text| intern(text)).collect());
        let result = self.add_or_replace(name, template, constants, rewritten, replaced);
        self.templates.drop_unused(template);
        result
    }

    /// Adds or replaces a subscription whose constants have been retained; releases them on error.
    pub(crate) fn add_or_replace(
        &mut self,
        name: &str,
        template: u32,
        constants: Vec<Id>,
        rewritten: Option<Vec<Id>>,
        replaced: Option<Number>,
    ) -> Result<Number, SubscribeError> {
        let Some(rooted) = rewritten.or_else(|| self.rooted(template, &constants)) else {
            constants.iter().for_each(|&id| self.dictionary.release(id));
            return Err(SubscribeError::Python(String::new()));
        };
        let former = replaced.map(|number| {
            self.templates.retain(template);
            (self.subscriptions.get(number).template, self.unindex(number))
        });
        let result = self.index_subscription(name, template, &constants, rooted, replaced);
        if let Some((former, constants)) = former {
            self.templates.release(former);
            constants.into_iter().for_each(|id| self.dictionary.release(id));
        } else if result.is_err() {
            constants.iter().for_each(|&id| self.dictionary.release(id));
        }
        result
    }

    /// A query's constants with root terms put in, each mentioned once more; `None` where Python
    /// has to find units or classes by their names.
    fn rooted(&mut self, template: u32, constants: &[Id]) -> Option<Vec<Id>> {
        let all = constants.iter().enumerate();
        let rooted: Option<Vec<Id>> =
            all.map(|(place, &id)| self.rooted_one(template, place, id)).collect();
        rooted.inspect(|all| all.iter().for_each(|&id| self.dictionary.retain(id)))
    }

    /// The root term of one constant.
    fn rooted_one(&self, template: u32, place: usize, id: Id) -> Option<Id> {
        let local = LocalTerms::default();
        let terms = Terms { dictionary: &self.dictionary, local: &local };
        if inline::is_inline(id) {
            return Some(id); // a number that is its own id has neither a unit nor synonyms
        }
        let text = terms.text(id);
        let is_iri = text.first() == Some(&b'<');
        if is_iri && text.starts_with(CONCEPT) {
            return self.concepts.get(text.as_ref()).copied();
        }
        if self.ontology.steps(id, terms) & UNITS != 0 {
            return None;
        }
        let is_rooted = is_iri || self.templates.get(template)?.rewritten(place);
        Some(if is_rooted { self.ontology.root(id, terms) } else { id })
    }

    /// Indexes a subscription whose constants and rewritten constants are retained already:
    /// a new one, or one that was taken out of the index. If there is no room, the latter is suspended.
    fn index_subscription(
        &mut self,
        name: &str,
        template: u32,
        constants: &[Id],
        rooted: Vec<Id>,
        existing: Option<Number>,
    ) -> Result<Number, SubscribeError> {
        let kept = self.templates.get(template).ok_or_else(|| full("templates"))?;
        let filled = kept.filled(&rooted, &mut self.dictionary);
        let plan = self.index_plan(filled, kept.aggregates, |id| id);
        let IndexPlan { entries, mut flags, interned, .. } = plan;
        let mut rows: Vec<RowId> = Vec::with_capacity(entries.len());
        for (_, branch) in &entries {
            self.count_constants(branch, true);
            let mut moved = Vec::new();
            let row = self.index.add(branch, &self.dictionary, &mut moved);
            self.note_moved(moved, &mut rows);
            let Some(row) = row else {
                // It is larger than a row may be: then every publication is a candidate.
                self.count_constants(branch, false);
                flags = (flags | UNINDEXED) & !EXACT;
                continue;
            };
            rows.push(row);
        }
        interned.into_iter().for_each(|id| self.dictionary.release(id));
        if flags & UNINDEXED != 0 {
            for &row in &rows {
                self.take_row(row);
            }
            rows.clear();
        }
        if let ([(_, branch)], [_], true) = (&*entries, &*rows, rooted == constants)
            && kept.constants_in(branch).is_some_and(|found| found == constants)
        {
            flags |= IN_ROW;
        }
        let entry = Entry { name, template, constants, rewritten: &rooted, rows: &rows, flags };
        let Some(number) = self.store(entry, existing) else {
            for &row in &rows {
                self.take_row(row);
            }
            rooted.iter().for_each(|&id| self.dictionary.release(id));
            if let Some(number) = existing {
                self.suspend(number, name, template, constants);
            }
            return Err(full("subscriptions").into());
        };
        if flags & UNINDEXED != 0 {
            self.unindexed.insert(number);
        }
        self.count_demand(template, &rooted, true);
        Ok(number)
    }

    /// Stores a subscription, or changes a stored one, and makes it the owner of its rows. Returns
    /// `None` if there is no room.
    fn store(&mut self, entry: Entry, existing: Option<Number>) -> Option<Number> {
        let number = match existing {
            Some(number) => self.subscriptions.change(number, entry).then_some(number)?,
            None => self.subscriptions.add(entry)?,
        };
        for &row in entry.rows {
            self.index.set_owner(row, owner(number, entry.flags));
        }
        if existing.is_none() {
            self.templates.retain(entry.template);
        }
        Some(number)
    }

    /// Applies new ids of rows to stored subscriptions and to the rows that are being added.
    fn note_moved(&mut self, moved: Vec<(RowId, RowId)>, new: &mut [RowId]) {
        for (from, to) in moved {
            if let Some(row) = new.iter_mut().find(|row| **row == from) {
                *row = to;
                continue;
            }
            self.subscriptions.move_row(self.index.owner(to) & !NEEDS_EVALUATION, from, to);
        }
    }

    /// Decides which rows the index gets for a query, and what is left to evaluate. `id_of` gives the
    /// dictionary's ids of the query's constants.
    pub fn index_plan(
        &self,
        filled: FilledTemplate,
        aggregates: bool,
        id_of: impl Fn(Id) -> Id,
    ) -> IndexPlan {
        let FilledTemplate { branches, supports, residual, interned } = filled;
        let flags = if aggregates { DELTA_CHECK } else { 0 };
        let entries = Vec::with_capacity(branches.len());
        let mut plan = IndexPlan { entries, flags, residual, interned };
        let key = |node: Node| match node {
            Node::Constant(id) => id_of(id),
            Node::Variable(_) => ANY,
        };
        let is_call = |pattern: &Pattern| self.operator_constants.is_operator(key(pattern[1]));
        for (number, branch) in branches.into_iter().enumerate() {
            let Branch { patterns, mut filters, variables } = branch;
            let (calls, mut own): (Vec<Pattern>, Vec<Pattern>) =
                patterns.into_iter().partition(is_call);
            let count = own.len();
            own.retain(|pattern| !self.ontology.has_match(pattern.map(key)));
            if own.len() < count {
                push_new(&mut plan.residual, "a pattern that the ontology may match".into());
            }
            if own.is_empty() {
                plan.flags |= DELTA_CHECK;
                plan.flags |= if supports.is_empty() { UNINDEXED } else { 0 };
                for &pattern in supports.iter().filter(|pattern| !is_call(pattern)) {
                    plan.add(None, branch_of(pattern));
                }
            } else {
                // The index of an operator is asked of the publication's terms only.
                let (bound, open): (Vec<Pattern>, Vec<Pattern>) = calls
                    .into_iter()
                    .partition(|call| own.iter().flatten().any(|node| *node == call[0]));
                if !open.is_empty() {
                    let reason = "an operator on a term that the ontology may contain";
                    push_new(&mut plan.residual, reason.into());
                }
                let mut patterns = [own, bound].concat();
                if patterns.len() > MAX_PATTERNS {
                    patterns.truncate(MAX_PATTERNS);
                    push_new(&mut plan.residual, "more patterns than the index supports".into());
                }
                let is_bound = |variable| patterns.iter().flatten().any(|node| *node == variable);
                filters.retain(|(variable, _)| is_bound(Node::Variable(*variable)));
                plan.add(Some(number), Branch { patterns, filters, variables });
            }
        }
        plan.flags |= if plan.residual.is_empty() { EXACT } else { 0 };
        plan
    }

    /// The constants of a subscription, and those that the index uses.
    pub fn constants(&self, number: Number) -> [Vec<Id>; 2] {
        let record = self.subscriptions.get(number);
        if let Some(constants) = record.constants() {
            return constants.map(<[Id]>::to_vec);
        }
        let branch = record.rows.iter().map(|&row| self.index.branch(row)).next();
        let found = self.templates.get(record.template).zip(branch);
        let found = found.and_then(|(template, branch)| template.constants_in(&branch));
        [found.clone().unwrap_or_default(), found.unwrap_or_default()]
    }

    /// Counts the constants of a row that is added or removed.
    fn count_constants(&mut self, branch: &Branch, is_added: bool) {
        let Self { dictionary, operator_constants, .. } = self;
        operator_constants.count(branch, is_added, dictionary);
        branch.each_constant(&mut |id| match is_added {
            true => dictionary.retain(id),
            false => dictionary.release(id),
        });
    }

    fn take_row(&mut self, row: RowId) {
        let branch = self.index.branch(row);
        self.index.remove(row, &self.dictionary);
        self.count_constants(&branch, false);
    }

    fn count_demand(&mut self, template: u32, rooted: &[Id], is_added: bool) {
        let Some(kept) = self.templates.get(template) else { return };
        for (property, object) in kept.demanded(rooted) {
            let text = self.dictionary.text(property);
            self.demand.count((property, object), if is_added { 1 } else { -1 }, &text);
        }
    }

    /// Takes a subscription out.
    pub fn unsubscribe(&mut self, number: Number) {
        let constants = self.unindex(number);
        let template = self.subscriptions.get(number).template;
        self.subscriptions.remove(number);
        constants.into_iter().for_each(|id| self.dictionary.release(id));
        self.templates.release(template);
    }

    /// Learns which class a name stands for, in this ontology.
    pub fn resolve(&mut self, name: &str, class: &str) {
        let id = self.dictionary.intern(class.as_bytes());
        if let Some(old) = self.concepts.insert(name.as_bytes().into(), id) {
            self.dictionary.release(old);
        }
    }

    /// Takes a subscription out of the index and the demand. Returns its constants.
    fn unindex(&mut self, number: Number) -> Vec<Id> {
        let template = self.subscriptions.get(number).template;
        let [constants, rewritten] = self.constants(number);
        let record = self.subscriptions.get(number);
        let (rows, suspended) = (record.rows.to_vec(), record.is(SUSPENDED));
        if self.history.has_reports() {
            self.history.keep(FormerSubscription {
                number,
                name: record.name(),
                template: self.templates.get(template),
                constants: rewritten.clone(),
                branches: rows.iter().map(|&row| self.index.branch(row)).collect(),
            });
        }
        if !suspended {
            self.count_demand(template, &rewritten, false);
        }
        rows.into_iter().for_each(|row| self.take_row(row));
        self.unindexed.remove(&number);
        rewritten.into_iter().for_each(|id| self.dictionary.release(id));
        constants
    }

    /// A subscription's query, written again.
    pub fn text(&self, number: Number) -> String {
        let record = self.subscriptions.get(number);
        let [constants, _] = self.constants(number);
        filled(self.templates.text(record.template), |number, text| {
            let id = constants.get(number).copied().unwrap_or_default();
            text.push_str(&String::from_utf8_lossy(&self.dictionary.text(id)));
            false
        })
    }

    /// The constants that the index uses, as terms.
    fn terms(&self, number: Number) -> Option<Vec<Term>> {
        let read = |&id| std::str::from_utf8(&self.dictionary.text(id)).ok().and_then(read_term);
        self.constants(number)[1].iter().map(read).collect()
    }

    /// The query of a subscription, rewritten for evaluation.
    fn prepared(&self, number: Number) -> Result<Prepared, Fault> {
        let missing = || Fault::new("its template is missing", "Subscribe it again.");
        let record = self.subscriptions.get(number);
        let (template, delta_check) = (record.template, record.is(DELTA_CHECK));
        let cache = &self.prepared[usize::from(delta_check)];
        let prepared = cache.get(self.templates.text(template), || {
            let query = self.templates.get(template).ok_or_else(missing)?.algebra()?;
            Ok(Prepared::new(query, delta_check, CallContext::default()))
        })?;
        let constants = self.terms(number);
        constants.and_then(|all| prepared.with_constants(&all)).ok_or_else(missing)
    }

    // -- matching -----------------------------------------------------------------------------

    /// Matches the publication of a worker, or says what Python has to do first.
    pub fn matches(
        &self,
        worker: &mut Worker,
        progress: &mut Progress,
    ) -> Result<MatchResult, Needs> {
        let context = self.context();
        worker.budget = self.budget(worker.publication.triples.len(), progress.left);
        let mut steps = worker.steps(context, progress.shown, progress.done);
        if steps & ITEM != 0
            && let Some(annotator) = &self.annotator
        {
            worker.annotate(context, annotator, progress);
            steps = worker.steps(context, progress.shown, progress.done);
        }
        let Progress { stated, shown, done, .. } = *progress;
        if steps & PYTHON != 0 {
            return Err(Needs::Steps(steps & PYTHON));
        }
        let late = worker.enrich(context, stated, shown, steps) & PYTHON & !done;
        if late != 0 {
            return Err(Needs::Steps(late));
        }
        worker.ask(context, &self.operator_constants).map_err(Needs::Indexes)?;
        worker.rows.patterns.begin(worker.budget);
        worker.find(context, &self.index);
        let is_truncated = !(worker.is_whole && progress.is_whole);
        let contradictions = contradictions(&worker.graph.contradictions, worker.terms(context));
        Ok(MatchResult {
            is_truncated,
            contradictions,
            ..self.evaluate_candidates(worker, progress)
        })
    }

    fn evaluate_candidates(&self, worker: &mut Worker, progress: &Progress) -> MatchResult {
        let context = self.context();
        let mut matched = MatchResult::default();
        // Sorts subscriptions in the order of subscribing.
        let placed =
            |number| u64::from(self.subscriptions.serial(number)) << 32 | u64::from(number);
        let mut found: Vec<u64> = Vec::with_capacity(worker.rows.matches.len());
        let mut candidates: Vec<Number> = Vec::new();
        for &owner in worker.rows.matches.iter().filter(|&&owner| owner != NO_OWNER) {
            if owner & NEEDS_EVALUATION == 0 {
                found.push(placed(owner));
            } else {
                candidates.push(owner ^ NEEDS_EVALUATION);
            }
        }
        candidates.extend(&self.unindexed);
        candidates.sort_unstable();
        candidates.dedup();
        for number in candidates {
            let record = self.subscriptions.get(number);
            let template = self.templates.get(record.template);
            let has_calls = template.as_ref().is_some_and(|template| template.calls);
            let answer = on_stack(template.is_some_and(|template| template.is_deep), || {
                let worker = &mut *worker;
                if has_calls {
                    return self.evaluate_calling(worker, number, progress, &mut matched);
                }
                matched.evaluated += 1;
                worker.evaluate(context, &self.prepared(number)?, progress.now)
            });
            match answer {
                Ok(Some(answer)) => {
                    worker.budget.keep(answer.terms());
                    matched.answers.push((number, answer));
                    found.push(placed(number));
                }
                Ok(None) => {}
                Err(error) => matched.failed.push((number, error)),
            }
        }
        found.sort(); // The rows of a table are in order mostly.
        found.dedup();
        let undecided = worker.rows.patterns.undecided.drain(..).filter(|&one| one != NO_OWNER);
        let undecided: BTreeSet<Number> =
            undecided.map(|owner| owner & !NEEDS_EVALUATION).collect();
        let failed: BTreeSet<Number> = matched.failed.iter().map(|failed| failed.0).collect();
        for &number in undecided.difference(&failed) {
            if found.binary_search(&placed(number)).is_err() {
                matched.failed.push((number, EvaluationError::late(&self.limits)));
            }
        }
        matched.found = found.into_iter().map(|one| one as Number).collect();
        if !worker.failed.is_empty() {
            // The index of subscriptions counted every constant of a failed index as met.
            matched.found.retain(|&number| {
                let is_exact = self.subscriptions.get(number).is(EXACT);
                let failed = if is_exact { self.failed_indexes(worker, number) } else { vec![] };
                let is_certain = failed.is_empty();
                if !is_certain {
                    matched.undecided.push((number, failed, false));
                }
                is_certain
            });
        }
        matched.counters = worker.rows.patterns.counters;
        matched
    }

    // -- the ontology -------------------------------------------------------------------------

    /// Replaces the ontology and indexes the affected subscriptions again.
    ///
    /// `names` are those that stand for other classes now; with `everything` all subscriptions are
    /// reindexed. A subscription that needs units or names from Python matches nothing until it is
    /// replaced.
    pub fn adopt(&mut self, ontology: Ontology, names: &[String], everything: bool) -> Change {
        let changed: Vec<Id> =
            names.iter().filter_map(|name| self.dictionary.get(name.as_bytes())).collect();
        let mut change = Change::default();
        let mut reindexed: Vec<Number> = Vec::new();
        let (mut names, triples) = self.ontology.difference(&ontology);
        (change.triples, change.names) = (triples, names.len() + changed.len());
        names.extend(&changed);
        for number in self.subscriptions.in_order() {
            let record = self.subscriptions.get(number);
            let (is_suspended, template) = (record.is(SUSPENDED), record.template);
            let Some(kept) = self.templates.get(template) else { continue };
            let [constants, rewritten] = self.constants(number);
            let has_new_root = |&id: &Id| names.contains(&key(id, &self.dictionary));
            let mut is_affected = everything || is_suspended || constants.iter().any(has_new_root);
            if !is_affected && triples > 0 {
                let filled = kept.filled(&rewritten, &mut self.dictionary);
                let mut patterns = filled.branches.iter().flat_map(|branch| &branch.patterns);
                is_affected = patterns.any(|pattern| {
                    let key = pattern.map(known);
                    self.ontology.has_match(key) != ontology.has_match(key)
                });
                filled.interned.into_iter().for_each(|id| self.dictionary.release(id));
            }
            if is_affected {
                reindexed.push(number);
            }
        }
        let unindex = |number| (number, self.unindex(number));
        let reindexed: Vec<(Number, Vec<Id>)> = reindexed.into_iter().map(unindex).collect();
        std::mem::replace(&mut self.ontology, Arc::new(ontology)).release(&mut self.dictionary);
        for (_, id) in std::mem::take(&mut self.concepts) {
            self.dictionary.release(id);
        }
        for (number, constants) in reindexed {
            let record = self.subscriptions.get(number);
            let (name, template) = (record.name(), record.template);
            match self.rooted(template, &constants) {
                Some(rooted) => {
                    // If there is no room for it, it is suspended.
                    let _ =
                        self.index_subscription(&name, template, &constants, rooted, Some(number));
                }
                None => {
                    change.python.push(name.clone());
                    self.suspend(number, &name, template, &constants);
                }
            }
            change.reindexed.push(name);
        }
        change
    }

    /// Keeps a subscription that was taken out of the index, and that matches nothing for now.
    fn suspend(&mut self, number: Number, name: &str, template: u32, constants: &[Id]) {
        constants.iter().for_each(|&id| self.dictionary.retain(id));
        let flags = SUSPENDED | DELTA_CHECK;
        let entry = Entry { name, template, constants, rewritten: constants, rows: &[], flags };
        if self.store(entry, Some(number)).is_none() {
            // There is no room for it.
            self.subscriptions.remove(number);
            self.templates.release(template);
            constants.iter().chain(constants).for_each(|&id| self.dictionary.release(id));
        }
    }
}

/// The owner of a row: a subscription, and whether it must be evaluated.
fn owner(number: Number, flags: Flags) -> Number {
    if flags & EXACT == 0 { number | NEEDS_EVALUATION } else { number }
}

/// The id by which a constant is looked up among terms with roots: that of a literal without its
/// language tag.
fn key(id: Id, dictionary: &Dictionary) -> Id {
    let text = dictionary.text(id);
    match (text.first(), memchr::memrchr(b'"', &text)) {
        (Some(b'"'), Some(end)) if text.get(end + 1) == Some(&b'@') => {
            dictionary.get(&text[..=end]).unwrap_or(id)
        }
        _ => id,
    }
}

/// The id of a constant, or [`ANY`].
fn known(node: Node) -> Id {
    match node {
        Node::Constant(id) => id,
        Node::Variable(_) => ANY,
    }
}

/// A branch of one pattern.
pub fn branch_of(pattern: Pattern) -> Branch {
    let variable = |node: &Node| match node {
        Node::Variable(number) => number + 1,
        Node::Constant(_) => 0,
    };
    let variables = pattern.iter().map(variable).max().unwrap_or(0);
    Branch { patterns: vec![pattern], filters: Vec::new(), variables }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(round: usize, number: usize) -> String {
        // A shape of its own by which of eight patterns name their object, and in which order.
        let pattern = |place: usize| match number >> place & 1 {
            0 => format!("?v{} <urn:p{place}> ?v{}", number % (place + 1), place + 1),
            _ => format!("?v{place} <urn:p{place}> <urn:n{round}:{number}>"),
        };
        let filter = format!("FILTER(?v8 > {}.5 && CONTAINS(?v9, \"{number}:{round}\"))", number);
        let rest = format!("?v0 <urn:p8> ?v8 . ?v0 <urn:p9> ?v9 {filter}");
        let patterns: Vec<String> = (0..8).map(pattern).collect();
        format!("SELECT * {{ {} . {rest} }}", patterns.join(" . "))
    }

    fn subscribe(engine: &mut Engine, name: &str, text: &str) -> Number {
        let parsed = engine.parse(text);
        engine.subscribe(name, parsed, None, None).unwrap()
    }

    #[test]
    fn nothing_is_left_of_subscriptions_that_went() {
        let mut engine = Engine::new(Parameterizer::new(&[], Limits::usual(), vec![]).unwrap());
        let kept = subscribe(&mut engine, "kept", &text(0, 77));
        let sizes = |engine: &Engine| {
            let demand = engine.demand.counted().count();
            let terms = engine.dictionary.len();
            let (templates, placed) = (engine.templates.len(), engine.index.len());
            [engine.subscriptions.len(), templates, placed, terms, demand]
        };
        let (alone, mut most) = (sizes(&engine), [0; 2]);
        for round in 1..=20 {
            let names: Vec<String> = (0..500).map(|n| format!("{round}/{n}")).collect();
            for (number, name) in names.iter().enumerate() {
                subscribe(&mut engine, name, &text(round, number));
            }
            let [all, templates, rows, ..] = sizes(&engine);
            assert!(all == 501 && rows == 501 && templates > 200, "{all} {rows} {templates}");
            let reached = [engine.dictionary.end(), engine.index.bytes()];
            if round < 3 {
                most = [most[0].max(reached[0]), most[1].max(reached[1])];
            }
            assert!(reached[0] <= most[0] && reached[1] <= most[1] * 5 / 4, "{reached:?} {most:?}");
            for name in &names {
                engine.unsubscribe(engine.subscriptions.find(name).unwrap());
            }
            assert_eq!(sizes(&engine), alone, "after round {round}");
        }
        engine.unsubscribe(kept);
        assert_eq!(sizes(&engine)[..3], [0; 3]);
        assert_eq!(sizes(&engine)[4], 0);
    }
}
