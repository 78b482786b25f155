//! The surface that Python sees: few, coarse calls that release the interpreter's lock.
//!
//! No call is made for a triple or a match, and no Python object either, unless somebody looks at
//! it. Terms come and go as canonical N-Triples texts, numbers of subscriptions as NumPy arrays.

use crate::cut::Cutter;
use crate::demand::Demand;
use crate::dictionary::{ANY, Dictionary, Id, LocalTerms, Terms};
use crate::engine::rows::{Constants, Rows, Texts, Values};
use crate::engine::{Change, Did, Matched, Refusal, State};
use crate::evaluate::Answer;
use crate::events::{Attribute, Cells, Statements};
use crate::guard::is_plain_rdf_xml;
use crate::hierarchy::Map;
use crate::indexed::{IndexAnswers, Questions};
use crate::limits::Limits;
use crate::lines;
use crate::matching::{Needs, Worker};
use crate::objects::{object_of, write_text};
use crate::ontology::{Folding, Held, Ontology, OntologyInput, Steps};
use crate::operators::{CallResults, Operator, Operators};
use crate::patterns::Counters;
use crate::publications::Publications;
use crate::query::{COMPOSITION, Form, QueryError};
use crate::questions::{Evaluation, EvaluationFailedError, solutions_of, triples_of};
use crate::reader::{self, Cut, Fault, Next, Options, Publication, Reader};
use crate::snapshot::{self, SnapshotError, Stored, VERSION, damaged};
use crate::subscriptions::Number;
use crate::triples::Triple;
use crate::values;
use crate::view::{Parser, Query};
use crate::waiting::{CallRequest, Calls, ask};
use numpy::{PyArray1, PyReadonlyArray1};
use oxrdf::Literal;
use oxrdf::vocab::xsd;
use oxrdfio::RdfFormat;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, Weak};
use std::time::Duration;

/// So many workers wait for the next publication.
const WORKERS: usize = 16;
/// So many subscriptions are taken in between two publications.
const AT_ONCE: usize = 1 << 16;
/// So many publications of one document are matched together.
const AHEAD: usize = 64;
/// How often the indexes of operators are asked for one publication while their constants change.
const ATTEMPTS: usize = 4;
/// So many names are few.
const FEW: usize = 100;
/// So many solutions of one match are kept when its subscription goes.
const KEPT: usize = 10_000;
/// So many are looked at, equal ones too, where only some are wanted.
const LOOKED_AT: usize = 1_000_000;

pyo3::create_exception!(
    _native,
    RefusedError,
    PyValueError,
    "A text that is no subscription: what, remedy, line, column."
);
pyo3::create_exception!(_native, TakenError, PyValueError, "A name that is taken.");
pyo3::create_exception!(
    _native,
    NeedsPythonError,
    PyValueError,
    "Units or names of classes have to be found first."
);
pyo3::create_exception!(
    _native,
    DamagedError,
    PyValueError,
    "A file that is no snapshot, or one of another version, or damaged."
);

fn unreadable(error: SnapshotError) -> PyErr {
    match error {
        SnapshotError::Io(error) => error.into(),
        SnapshotError::Foreign => DamagedError::new_err("nothing was saved there"),
        SnapshotError::Version(version) => DamagedError::new_err(format!(
            "saved by another version: its format is {version}, and this one's {VERSION}"
        )),
        SnapshotError::Damaged(what) => DamagedError::new_err(format!("damaged: {what}")),
    }
}

fn refused(error: Refusal) -> PyErr {
    match error {
        Refusal::Duplicate => TakenError::new_err("this id has a subscription already"),
        Refusal::Python => NeedsPythonError::new_err("units or names of classes have to be found"),
        Refusal::Full(what) => RefusedError::new_err((
            what.to_owned(),
            "Take fewer or shorter ones.".to_owned(),
            None::<usize>,
            None::<usize>,
        )),
        Refusal::Query(error) => bad_query(error),
    }
}

pub(crate) fn bad_query(error: QueryError) -> PyErr {
    RefusedError::new_err((error.what, error.remedy, error.line, error.column))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Guarded {
    pub(crate) state: State,
    /// Shared, so that a thread without the interpreter's lock can take it along.
    knowledge: Arc<Py<PyAny>>,
    version: u64,
    /// Python's function that looks terms up in the indexes of operators.
    ask: Option<Arc<Py<PyAny>>>,
}

/// What the calls of a [`Core`] share.
///
/// A thread that has one of these locks never waits for the interpreter's lock, and a thread that
/// has the interpreter's lock never waits for one of these: otherwise two threads could wait for
/// each other for ever.
pub(crate) struct Shared {
    guarded: RwLock<Guarded>,
    /// What one document may cost.
    limits: Limits,
    #[expect(clippy::vec_box, reason = "workers are large, and handed from one to the other")]
    workers: Mutex<Vec<Box<Worker>>>,
    reports: Mutex<Vec<Weak<Mutex<Data>>>>,
}

impl Shared {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, Guarded> {
        self.guarded.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state; reports that are alive get what they have by themselves before.
    fn change<T>(&self, detach: bool, change: impl FnOnce(&mut Guarded) -> T) -> T {
        let mut guarded = self.guarded.write().unwrap_or_else(PoisonError::into_inner);
        if detach {
            let mut reports = std::mem::take(&mut *lock(&self.reports));
            self.with_worker(|worker| {
                for report in reports.drain(..).filter_map(|report| report.upgrade()) {
                    lock(&report).detach(&guarded.state, worker);
                }
            });
        }
        change(&mut guarded)
    }

    /// Has something done with a worker that nobody else has.
    pub(crate) fn with_worker<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> T {
        let mut worker = lock(&self.workers).pop().unwrap_or_default();
        let done = work(&mut worker);
        let mut workers = lock(&self.workers);
        if workers.len() < WORKERS {
            workers.push(worker);
        }
        done
    }

    /// Files rows anew between publications, where what a worker counted says that this pays.
    fn tend(&self, worker: &mut Worker) {
        let wants = self.read().state.index.wants_rebalance(&worker.rows);
        if wants && let Ok(mut guarded) = self.guarded.try_write() {
            guarded.state.index.rebalance(&mut worker.rows);
        }
    }

    /// Matches the publication of a worker; says what Python has to do first, if anything.
    ///
    /// Indexes of operators are asked without the lock. Then the terms of the publication get the
    /// ids that they have by now: those of `statements`, if it was made of these.
    fn matched<'a>(
        self: &'a Arc<Self>,
        mut guarded: RwLockReadGuard<'a, Guarded>,
        worker: &mut Worker,
        now: &Literal,
        done: Done,
        results: &Arc<CallResults>,
        statements: Option<&Statements>,
    ) -> PyResult<Outcome> {
        let mut attempts = 0;
        worker.answered = None;
        loop {
            let questions = match self.attempt(&guarded, worker, now, done, results) {
                Ok(outcome) => return Ok(outcome),
                Err(questions) => questions,
            };
            let function = guarded.ask.clone().filter(|_| attempts < ATTEMPTS);
            attempts += 1;
            let epoch = guarded.state.indexed.epoch();
            if let Some(function) = function {
                worker.publication.disown(&guarded.state.dictionary);
                drop(guarded);
                let found = Python::attach(|py| match ask(py, &function, &questions) {
                    Err(error) if error.is_instance_of::<PyException>(py) => {
                        Ok(questions.iter().map(|_| None).collect()) // The indexes failed.
                    }
                    found => found,
                })?;
                guarded = self.read();
                match statements {
                    Some(statements) => {
                        let id = std::mem::take(&mut worker.publication.id);
                        fill(&guarded.state.dictionary, &id, statements, &mut worker.publication);
                    }
                    None => worker.publication.adopt(&guarded.state.dictionary),
                }
                worker.answered = Some(IndexAnswers { questions, found, epoch });
            } else {
                let found = questions.iter().map(|_| None).collect();
                worker.answered = Some(IndexAnswers { questions, found, epoch });
            }
        }
    }

    fn attempt(
        self: &Arc<Self>,
        guarded: &Guarded,
        worker: &mut Worker,
        now: &Literal,
        done: Done,
        results: &Arc<CallResults>,
    ) -> Result<Outcome, Questions> {
        let state = &guarded.state;
        let count = worker.publication.triples.len();
        let shown = done.shown.map_or(count, |shown| shown.min(count));
        let stated = done.stated.map_or(shown, |stated| stated.min(shown));
        let is_current = done.version.is_none_or(|version| version == guarded.version);
        let matched = if is_current {
            state.matches(worker, stated, shown, done.steps, now, results)
        } else {
            Err(Needs::Steps(0))
        };
        Ok(match matched {
            Ok(matched) if !matched.requests.solutions.is_empty() => {
                let terms = worker.terms(state.context());
                let mut statements = Statements::default();
                for &id in worker.publication.triples.iter().flatten() {
                    statements.begin_term().extend_from_slice(&terms.text(id));
                    statements.end_term();
                }
                let id = worker.publication.id.to_string();
                let done = Done { stated: Some(stated), shown: Some(shown), ..done };
                let shared = Arc::clone(self);
                let requests = matched.requests;
                Outcome::Calls(Box::new(CallRequest { shared, id, statements, done, requests }))
            }
            Ok(matched) => Outcome::Report(Box::new(report(self, state, worker, matched, stated))),
            Err(Needs::Indexes(questions)) => return Err(questions),
            Err(Needs::Steps(steps)) => {
                let triples = texts(state, worker, stated);
                let id = worker.publication.id.to_string();
                let (knowledge, version) = (Arc::clone(&guarded.knowledge), guarded.version);
                Outcome::Pending(Box::new(Pending { id, triples, steps, knowledge, version }))
            }
        })
    }

    /// Matches triples that Python has.
    pub(crate) fn matched_statements(
        self: &Arc<Self>,
        worker: &mut Worker,
        id: &str,
        statements: &Statements,
        now: &Literal,
        done: Done,
        results: &Arc<CallResults>,
    ) -> PyResult<Outcome> {
        let guarded = self.read();
        fill(&guarded.state.dictionary, id, statements, &mut worker.publication);
        let outcome = self.matched(guarded, worker, now, done, results, Some(statements));
        self.tend(worker);
        outcome
    }

    fn register(&self, data: &Arc<Mutex<Data>>) {
        let mut reports = lock(&self.reports);
        if reports.len() >= 64 && reports.len() == reports.capacity() {
            reports.retain(|report| report.strong_count() > 0);
        }
        reports.push(Arc::downgrade(data));
    }
}

/// The first triples of the publication that a worker has.
fn texts(state: &State, worker: &Worker, most: usize) -> Departed {
    let triples = worker.publication.triples.iter().take(most).copied();
    Departed::new(worker.terms(state.context()), triples)
}

/// Triples that have left the core: texts, each once, and their numbers.
pub(crate) struct Departed {
    texts: Vec<Vec<u8>>,
    rows: Vec<[usize; 3]>,
}

impl Departed {
    fn new(terms: Terms, triples: impl Iterator<Item = Triple>) -> Self {
        let (mut numbers, mut texts) = (Map::default(), Vec::new());
        let mut number = |id: Id| {
            *numbers.entry(id).or_insert_with(|| {
                texts.push(terms.text(id).into_owned());
                texts.len() - 1
            })
        };
        let rows = triples.map(|triple| triple.map(&mut number)).collect();
        Self { texts, rows }
    }

    /// The triples as tuples of pyoxigraph's terms.
    fn objects<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let terms = self.texts.iter().map(|text| object_of(py, text));
        let terms = terms.collect::<PyResult<Vec<_>>>()?;
        self.rows.iter().map(|row| PyTuple::new(py, row.map(|number| &terms[number]))).collect()
    }
}

/// What is known of a publication already.
#[derive(Clone, Copy, Default)]
pub(crate) struct Done {
    /// How many of its triples somebody stated; all by default.
    pub(crate) stated: Option<usize>,
    /// How many of them every pattern sees, and not only those that name the property; likewise.
    shown: Option<usize>,
    /// The steps that were done,
    steps: Steps,
    /// and the version of the knowledge that they were done with.
    version: Option<u64>,
}

/// A match that no longer needs the state.
#[derive(Clone)]
struct Alone {
    name: String,
    found: Found,
    is_whole: bool,
}

#[derive(Clone)]
enum Found {
    Answer(Answer),
    /// Names of variables, and solutions with a value for each.
    Rows(Vec<String>, Vec<Vec<Vec<u8>>>),
}

/// What a report is made of.
struct Data {
    publication: Publication,
    stated: usize,
    triples: Vec<Triple>,
    shown: usize,
    found: Arc<[Number]>,
    answers: Vec<(Number, Answer)>,
    alone: Option<Vec<Alone>>,
}

/// Takes matches until they have `limit` solutions together.
fn up_to(limit: usize, matches: impl Iterator<Item = Alone>) -> Vec<Alone> {
    let (mut made, mut solutions) = (Vec::new(), 0);
    for alone in matches {
        solutions += alone.len();
        made.push(alone);
        if solutions >= limit {
            break;
        }
    }
    made
}

impl Alone {
    /// The number of its solutions, or of the triples of its graph.
    fn len(&self) -> usize {
        match &self.found {
            Found::Answer(Answer { graph: Some(graph), .. }) => graph.len(),
            Found::Answer(answer) => answer.solutions.len(),
            Found::Rows(_, rows) => rows.len(),
        }
    }
}

impl Data {
    /// Puts the publication into a worker again, for solutions to be found.
    fn restore(&mut self, state: &State, worker: &mut Worker) {
        std::mem::swap(&mut worker.publication, &mut self.publication);
        worker.restore(state.context(), &self.triples, self.shown, self.stated, &state.index);
        worker.rows.patterns.begin_solutions(state.limits.time);
    }

    fn take_back(&mut self, worker: &mut Worker) {
        std::mem::swap(&mut worker.publication, &mut self.publication);
    }

    /// A match as it is without the state; at most so many solutions.
    fn made(&self, state: &State, worker: &mut Worker, place: usize, most: usize) -> Alone {
        let number = self.found[place];
        let record = state.subscriptions.get(number);
        let name = record.name();
        if let Ok(answer) = self.answers.binary_search_by_key(&number, |answer| answer.0) {
            let found = Found::Answer(self.answers[answer].1.clone());
            return Alone { name, found, is_whole: true };
        }
        let template = state.templates.get(record.template());
        let projected: Vec<(String, usize)> = template
            .iter()
            .flat_map(|template| template.projected())
            .map(|(name, variable)| (name.to_owned(), usize::from(variable)))
            .collect();
        let is_ask = template.as_ref().is_some_and(|template| template.form == Form::Ask);
        let once = is_ask || template.is_some_and(|template| template.distinct);
        let mut rows: Vec<Id> = Vec::new();
        let mut seen = hashbrown::HashSet::new();
        let (mut count, mut is_whole) = (0, true);
        let mut left =
            if most < state.limits.solutions { LOOKED_AT } else { most.saturating_mul(100) };
        for &row in record.rows() {
            worker.solutions(state.context(), &state.index, row, |terms| {
                left = left.saturating_sub(1);
                if count == most || left == 0 {
                    is_whole = false;
                    return false;
                }
                let begin = rows.len();
                rows.extend(projected.iter().map(|&(_, variable)| terms[variable]));
                if once && !seen.insert(rows[begin..].to_vec()) {
                    rows.truncate(begin);
                } else {
                    count += 1;
                }
                !is_ask
            });
            is_whole &= is_ask || !worker.rows.patterns.is_late();
        }
        let terms = worker.terms(state.context());
        let width = projected.len();
        let solutions = (0..count).map(|row| {
            let ids = &rows[row * width..(row + 1) * width];
            ids.iter().map(|&id| terms.text(id).into_owned()).collect()
        });
        let found = solutions.collect();
        let names = projected.into_iter().map(|(name, _)| name).collect();
        Alone { name, found: Found::Rows(names, found), is_whole }
    }

    /// Makes this independent of the state.
    fn detach(&mut self, state: &State, worker: &mut Worker) {
        if self.alone.is_some() || self.found.is_empty() {
            return;
        }
        self.restore(state, worker);
        let most = KEPT.min(state.limits.solutions);
        let alone = (0..self.found.len()).map(|n| self.made(state, worker, n, most)).collect();
        self.take_back(worker);
        self.alone = Some(alone);
        self.triples = Vec::new();
        self.answers = Vec::new();
        self.publication = Publication::default();
    }
}

/// What one publication matches.
#[pyclass(frozen, module = "graphmatch._native")]
#[derive(Clone)]
pub(crate) struct Report {
    shared: Arc<Shared>,
    publication: Box<str>,
    data: Arc<Mutex<Data>>,
    numbers: Arc<[Number]>,
    did: Did,
    stated: usize,
    failed: Vec<(String, String)>,
    undecided: Vec<(String, Vec<String>, bool)>,
    is_cut: bool,
}

#[pymethods]
impl Report {
    fn __len__(&self) -> usize {
        self.numbers.len()
    }

    /// The publication's id.
    fn publication(&self) -> &str {
        &self.publication
    }

    /// The numbers of the subscriptions, in the order of subscribing.
    fn numbers<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, &self.numbers)
    }

    /// Probes, postings, candidates, rows with a solution, subscriptions that were evaluated, and
    /// the triples that were stated.
    fn counters(&self) -> (u64, u64, u64, u64, usize, usize) {
        let Did { index, evaluated } = self.did;
        let Counters { probes, postings, candidates, matches } = index;
        (probes, postings, candidates, matches, evaluated, self.stated)
    }

    /// The subscriptions whose evaluation failed, and why.
    fn failed(&self) -> Vec<(String, String)> {
        self.failed.clone()
    }

    /// The subscriptions that failed calls of operators leave undecided: these calls, and whether the
    /// subscription matches by other solutions.
    fn undecided(&self) -> Vec<(String, Vec<String>, bool)> {
        self.undecided.clone()
    }

    /// Whether attributes are missing: it had more paths of properties than the limit.
    fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The ids of the subscriptions.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let written = |guarded: &Guarded, data: &Data| {
            let mut names = Vec::with_capacity(16 * self.numbers.len());
            let ends = match &data.alone {
                None => guarded.state.subscriptions.write_names(&self.numbers, &mut names),
                Some(all) => all
                    .iter()
                    .map(|alone| {
                        names.extend_from_slice(alone.name.as_bytes());
                        names.len()
                    })
                    .collect(),
            };
            (names, ends)
        };
        // To give the interpreter's lock back and take it again costs more than a few names. With
        // that lock this thread must not wait for the others, so it only tries to get them.
        let few = (self.numbers.len() <= FEW).then(|| self.shared.guarded.try_read().ok());
        let (names, ends) = match (few.flatten(), self.data.try_lock()) {
            (Some(guarded), Ok(data)) => written(&guarded, &data),
            (guarded, data) => {
                drop((guarded, data));
                py.detach(|| written(&self.shared.read(), &lock(&self.data)))
            }
        };
        let names = std::str::from_utf8(&names)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut begin = 0;
        let texts = ends.into_iter().map(|end| &names[std::mem::replace(&mut begin, end)..end]);
        PyTuple::new(py, texts.collect::<Vec<_>>())
    }

    /// The triples that were stated, of a publication that something matches; `None` where
    /// subscriptions or the ontology have changed since.
    fn triples<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let texts = py.detach(|| {
            let guarded = self.shared.read();
            let mut data = lock(&self.data);
            if data.publication.triples.is_empty() {
                return None;
            }
            Some(self.shared.with_worker(|worker| {
                std::mem::swap(&mut worker.publication, &mut data.publication);
                let texts = texts(&guarded.state, worker, data.stated);
                data.take_back(worker);
                texts
            }))
        });
        texts.map(|texts| PyTuple::new(py, texts.objects(py)?)).transpose()
    }

    /// Some of the matches: id, solutions as dictionaries, and the graph of CONSTRUCT or `None`.
    ///
    /// Returns fewer than asked for where these have very many solutions together. The last value
    /// of a match tells whether its solutions are complete.
    ///
    /// `texts`: terms are N-Triples texts, not objects, but for those of an evaluation. `most`: the
    /// number of solutions that are looked for, at most those of the limit.
    #[pyo3(signature = (begin, end, texts = false, most = None))]
    fn matches<'py>(
        &self,
        py: Python<'py>,
        begin: usize,
        end: usize,
        texts: bool,
        most: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let end = end.min(self.numbers.len());
        let limit = self.shared.limits.match_solutions;
        let wanted = most.unwrap_or(limit).min(limit);
        let made: Vec<Alone> = py.detach(|| {
            let guarded = self.shared.read();
            let mut data = lock(&self.data);
            if let Some(alone) = &data.alone {
                return up_to(limit, alone[begin.min(end)..end].iter().cloned());
            }
            self.shared.with_worker(|worker| {
                data.restore(&guarded.state, worker);
                let one = |place| data.made(&guarded.state, worker, place, wanted);
                let made = up_to(limit, (begin..end).map(one));
                data.take_back(worker);
                made
            })
        });
        let list = PyList::empty(py);
        for alone in made {
            let (solutions, graph) = match &alone.found {
                Found::Answer(answer) => {
                    let graph = answer.graph.as_ref().map(|triples| triples_of(py, triples));
                    (solutions_of(py, answer)?, graph.transpose()?)
                }
                Found::Rows(names, rows) => {
                    let solutions = PyList::empty(py);
                    for row in rows.iter().take(wanted) {
                        let values = PyDict::new(py);
                        for (name, text) in names.iter().zip(row) {
                            match std::str::from_utf8(text) {
                                Ok(text) if texts => values.set_item(name, text)?,
                                _ => values.set_item(name, object_of(py, text)?)?,
                            }
                        }
                        solutions.append(values)?;
                    }
                    (solutions, None)
                }
            };
            let is_cut = matches!(&alone.found, Found::Rows(_, rows) if rows.len() > wanted);
            let is_whole = alone.is_whole && !is_cut;
            list.append((alone.name, solutions, graph, is_whole))?;
        }
        Ok(list)
    }
}

/// A publication that Python has to do something for first.
#[pyclass(frozen, module = "graphmatch._native")]
pub(crate) struct Pending {
    /// Its id.
    #[pyo3(get)]
    id: String,
    triples: Departed,
    /// The steps to be done.
    #[pyo3(get)]
    steps: Steps,
    knowledge: Arc<Py<PyAny>>,
    /// The number of that knowledge.
    #[pyo3(get)]
    version: u64,
}

#[pymethods]
impl Pending {
    /// Its triples.
    fn triples<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.triples.objects(py)?)
    }

    /// The knowledge to do the steps with.
    #[getter]
    fn knowledge(&self, py: Python<'_>) -> Py<PyAny> {
        self.knowledge.clone_ref(py)
    }
}

/// What is wrong with a document: what, remedy, line, column, item, whether something was left out.
pub(crate) type FaultRow = (String, String, Option<u64>, Option<u64>, Option<String>, bool);

pub(crate) fn rows_of(faults: Vec<Fault>) -> Vec<FaultRow> {
    let row = |fault: Fault| {
        (fault.what, fault.remedy, fault.line, fault.column, fault.item, fault.refused)
    };
    faults.into_iter().map(row).collect()
}

/// A stream of Python's.
pub(crate) struct Stream {
    pub(crate) stream: Py<PyAny>,
    /// What is no fault of the document: an interrupt by the user.
    pub(crate) interrupted: Arc<Mutex<Option<PyErr>>>,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let read = self.stream.call_method1(py, "read", (buffer.len(),)).map_err(|error| {
                if error.is_instance_of::<PyException>(py) {
                    return io::Error::other(error);
                }
                *lock(&self.interrupted) = Some(error);
                io::Error::other("reading was interrupted")
            })?;
            let bytes = read
                .extract::<PyBackedBytes>(py)
                .map_err(|_| io::Error::other("what it reads is no bytes"))?;
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            Ok(length)
        })
    }
}

/// A document that is being read, one publication after the other.
#[pyclass(frozen, module = "graphmatch._native")]
struct Document {
    shared: Arc<Shared>,
    reader: Mutex<Reader>,
    /// Whether it may have to be waited for.
    waits: bool,
    /// What is no fault of the document: an interrupt by the user.
    interrupted: Arc<Mutex<Option<PyErr>>>,
}

/// What became of a document in memory, and the faults that were met.
type Single<'py> = (Option<Bound<'py, PyAny>>, Vec<FaultRow>);

/// What comes next of a document: reports, and perhaps a publication that Python has to do something
/// for; behind how many of them faults were met, and which; and whether there is more.
type Step<'py> = (Vec<Bound<'py, PyAny>>, usize, Vec<FaultRow>, bool);

#[pymethods]
impl Document {
    /// Reads the next publications and matches them: several together, so that threads wait less for
    /// each other, or one of a document that may have to be waited for.
    fn next<'py>(&self, py: Python<'py>, now: &str) -> PyResult<Step<'py>> {
        let most = if self.waits { 1 } else { AHEAD };
        let now = Literal::new_typed_literal(now, xsd::DATE_TIME);
        let (found, before, faults, goes_on) = py.detach(|| {
            self.shared.with_worker(|worker| {
                let mut found = Vec::new();
                loop {
                    let mut reader = lock(&self.reader);
                    // Reading calls Python, so this thread must not have the state's lock.
                    let next = reader.next(None, &mut worker.publication);
                    let faults = rows_of(reader.faults());
                    drop(reader);
                    let before = found.len();
                    if next == Next::Publication {
                        let guarded = self.shared.read();
                        worker.publication.adopt(&guarded.state.dictionary);
                        let (done, none) = (Done::default(), Arc::default());
                        found.push(self.shared.matched(guarded, worker, &now, done, &none, None)?);
                        self.shared.tend(worker);
                    }
                    let is_pending = found.last().is_some_and(|one| !one.is_report());
                    let goes_on = next != Next::End;
                    if is_pending || !faults.is_empty() || !goes_on || found.len() >= most {
                        return Ok::<_, PyErr>((found, before, faults, goes_on));
                    }
                }
            })
        })?;
        if let Some(error) = lock(&self.interrupted).take() {
            return Err(error);
        }
        let found = found.into_iter().map(|found| found.into_object(py));
        Ok((found.collect::<PyResult<_>>()?, before, faults, goes_on))
    }
}

/// A report, or what Python has to do first.
pub(crate) enum Outcome {
    Report(Box<Report>),
    Calls(Box<CallRequest>),
    Pending(Box<Pending>),
}

impl Outcome {
    fn is_report(&self) -> bool {
        matches!(self, Self::Report(_))
    }

    pub(crate) fn into_object(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        match self {
            Self::Report(report) => Ok(Bound::new(py, *report)?.into_any()),
            Self::Calls(request) => Ok(Bound::new(py, *request)?.into_any()),
            Self::Pending(pending) => Ok(Bound::new(py, *pending)?.into_any()),
        }
    }
}

/// The triples that Python has.
fn statements_of(triples: &Bound<'_, PyAny>) -> PyResult<Statements> {
    let mut statements = Statements::default();
    for triple in triples.try_iter()? {
        let triple = triple?;
        let triple = triple.cast::<PyTuple>()?;
        for place in 0..3 {
            write_text(&triple.get_item(place)?, statements.begin_term())?;
            statements.end_term();
        }
    }
    Ok(statements)
}

/// What somebody asks for: a property and an object, `None` for any.
type MentionRow = (Option<String>, Option<String>);

/// Triples that come, each with the rule and the premise if it was derived; how many of them every
/// pattern sees; whether they are all.
type Entailed<'py> =
    (Vec<(Bound<'py, PyTuple>, Option<(&'static str, Bound<'py, PyTuple>)>)>, usize, bool);

fn mentions_of(rows: &[MentionRow], dictionary: &Dictionary, local: &mut LocalTerms) -> Demand {
    let mut mentions = Demand::default();
    let mut id = |text: &Option<String>| {
        text.as_ref().map_or(ANY, |text| local.id_of(text.as_bytes(), dictionary))
    };
    for (property, object) in rows {
        let text = property.as_deref().unwrap_or_default();
        mentions.count((id(property), id(object)), 1, text.as_bytes());
    }
    mentions
}

/// Puts triples into a publication.
pub(crate) fn fill(
    dictionary: &Dictionary,
    id: &str,
    statements: &Statements,
    publication: &mut Publication,
) {
    publication.clear();
    publication.id = id.into();
    let mut triple = [0; 3];
    for (number, text) in statements.terms().enumerate() {
        triple[number % 3] = publication.local.id_of(text, dictionary);
        if number % 3 == 2 {
            publication.triples.push(triple);
        }
    }
}

/// What became of the events of a table.
#[pyclass(frozen, module = "graphmatch._native")]
struct Batch {
    reports: Vec<Option<Report>>,
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.reports.len()
    }

    /// The rows that Python has to do something for.
    fn pending(&self) -> Vec<usize> {
        (0..self.reports.len()).filter(|&row| self.reports[row].is_none()).collect()
    }

    /// The report of a row.
    fn report(&self, row: usize) -> Option<Report> {
        self.reports.get(row)?.clone()
    }

    /// The numbers of the subscriptions that rows match, and where those of each row begin.
    fn numbers<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>) {
        let mut numbers = Vec::new();
        let mut offsets = vec![0];
        for report in &self.reports {
            numbers.extend(report.iter().flat_map(|report| report.numbers.iter()));
            offsets.push(numbers.len() as i64);
        }
        (PyArray1::from_vec(py, numbers), PyArray1::from_vec(py, offsets))
    }
}

/// Texts as Arrow has them: their bytes, and where each begins and the last ends.
#[derive(FromPyObject)]
struct ArrowTexts<'py>(PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, i64>);

impl ArrowTexts<'_> {
    fn texts(&self) -> PyResult<Texts<'_>> {
        let text = std::str::from_utf8(self.0.as_slice()?);
        let text = text.map_err(|_| PyValueError::new_err("texts that are not UTF-8"))?;
        Ok(Texts { text, offsets: self.1.as_slice()? })
    }
}

/// A column of values: integers, floating-point numbers, or places among terms.
#[derive(FromPyObject)]
enum Column<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Floats(PyReadonlyArray1<'py, f64>),
    Places(PyReadonlyArray1<'py, i32>, Vec<String>),
}

impl Column<'_> {
    fn values(&self) -> PyResult<Values<'_>> {
        Ok(match self {
            Self::Integers(values) => Values::Integers(values.as_slice()?),
            Self::Floats(values) => Values::Floats(values.as_slice()?),
            Self::Places(places, terms) => Values::Places(places.as_slice()?, terms),
        })
    }
}

/// The values of events: texts, and whether these are IRIs, or others.
#[derive(FromPyObject)]
enum EventValues<'py> {
    Texts(ArrowTexts<'py>, bool),
    Values(Column<'py>),
}

/// A column of events: the property, values, and which of them are there.
#[derive(FromPyObject)]
struct EventColumn<'py>(String, EventValues<'py>, Option<PyReadonlyArray1<'py, bool>>);

impl EventColumn<'_> {
    fn attribute(&self) -> PyResult<Attribute<'_>> {
        let valid = self.2.as_ref().map(|valid| valid.as_slice()).transpose()?;
        let values = match &self.1 {
            EventValues::Texts(texts, are_names) => Cells::Texts(texts.texts()?, *are_names),
            EventValues::Values(column) => Cells::Values(column.values()?),
        };
        Ok(Attribute { property: &self.0, values, valid })
    }
}

/// The term of all rows, or a column.
#[derive(FromPyObject)]
enum ConstantsOrTerm<'py> {
    Term(String),
    Column(Column<'py>),
}

/// Places with errors of ours.
fn refused_list(py: Python<'_>, errors: Vec<(usize, Refusal)>) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for (place, error) in errors {
        list.append((place, refused(error).into_value(py)))?;
    }
    Ok(list)
}

/// Standing subscriptions over an ontology.
#[pyclass(frozen, weakref, module = "graphmatch._native")]
struct Core {
    shared: Arc<Shared>,
}

impl Core {
    fn of(py: Python<'_>, mut state: State, limits: Limits) -> PyResult<Self> {
        let time = Duration::try_from_secs_f64(limits.evaluation_seconds);
        state.event_paths = limits.event_paths;
        state.limits.solutions = limits.match_solutions;
        state.limits.time = Some(time.map_err(|error| PyValueError::new_err(error.to_string()))?);
        let knowledge = Arc::new(py.None());
        let guarded = RwLock::new(Guarded { state, knowledge, version: 0, ask: None });
        let (workers, reports) = Default::default();
        Ok(Self { shared: Arc::new(Shared { guarded, limits, workers, reports }) })
    }
}

#[pymethods]
impl Core {
    /// Nothing known, no subscriptions; `prefixes` hold in queries without being declared.
    /// Queries may call operators.
    #[new]
    #[pyo3(signature = (prefixes, limits, operators = Vec::new()))]
    fn new(
        py: Python<'_>,
        prefixes: Vec<(String, String)>,
        limits: Limits,
        operators: Vec<Operator>,
    ) -> PyResult<Self> {
        let pairs = prefixes.iter().map(|(name, iri)| (name.as_str(), iri.as_str()));
        let cutter = Cutter::new(pairs, limits).with_operators(Operators(operators.into()));
        let state = State::new(cutter);
        Self::of(py, state, limits)
    }

    /// Writes a snapshot: everything, with what Python has to keep of options and of the ontology.
    fn save(&self, py: Python<'_>, path: PathBuf, options: &[u8], ontology: &[u8]) -> PyResult<()> {
        let written = py.detach(|| {
            let guarded = self.shared.read();
            snapshot::write(&path, |to| {
                for bytes in [options, ontology] {
                    bytes.len().save(to);
                    to.bytes(bytes);
                }
                guarded.state.save(to);
            })
        });
        written.map_err(unreadable)
    }

    /// Opens a snapshot with the limits that `limits` says for its options. Returns what Python kept
    /// of options and of the ontology, too; the core has to be told what is known ([`Core::know`])
    /// before it is used.
    #[staticmethod]
    #[pyo3(signature = (path, prefixes, limits, operators = Vec::new()))]
    fn open<'py>(
        py: Python<'py>,
        path: PathBuf,
        prefixes: Vec<(String, String)>,
        limits: Py<PyAny>,
        operators: Vec<Operator>,
    ) -> PyResult<(Self, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let pairs = prefixes.iter().map(|(name, iri)| (name.as_str(), iri.as_str()));
        let mut refused = None;
        let read = py.detach(|| {
            snapshot::read(&path, |from| {
                let (options, ontology) = <(Vec<u8>, Vec<u8>)>::load(from)?;
                let said = Python::attach(|py| -> PyResult<Limits> {
                    limits.bind(py).call1((PyBytes::new(py, &options),))?.extract()
                });
                let Ok(limits) = said.map_err(|error| refused = Some(error)) else {
                    return damaged("its options");
                };
                let cutter = Cutter::new(pairs, limits).with_operators(Operators(operators.into()));
                Ok((State::load(cutter, from)?, limits, options, ontology))
            })
        });
        if let Some(error) = refused {
            return Err(error);
        }
        let (state, limits, options, ontology) = read.map_err(unreadable)?;
        let core = Self::of(py, state, limits)?;
        Ok((core, PyBytes::new(py, &options), PyBytes::new(py, &ontology)))
    }

    /// Tells a core that was opened what is known: it is handed to those who do a step with it.
    fn know(&self, py: Python<'_>, knowledge: Py<PyAny>) {
        py.detach(|| self.shared.change(false, |guarded| guarded.knowledge = Arc::new(knowledge)));
    }

    /// Has the indexes of operators asked by a function: of a list of operators by number, each with
    /// terms, it returns for each term the ids of constants, or `None` where an index failed.
    fn ask_by(&self, py: Python<'_>, function: Py<PyAny>) {
        py.detach(|| {
            self.shared.change(false, |guarded| guarded.ask = Some(Arc::new(function)));
        });
    }

    /// Which constants of operators that have an index came and went: the number of the operator,
    /// the id, and the constants, none of one that went.
    fn index_changes<'py>(&self, py: Python<'py>) -> PyResult<Vec<IndexChange<'py>>> {
        let changes = py.detach(|| {
            if !self.shared.read().state.indexed.has_changes() {
                return Vec::new();
            }
            self.shared.change(false, |guarded| {
                let State { indexed, dictionary, .. } = &mut guarded.state;
                let changes = indexed.changes(dictionary).into_iter();
                let text = |id: Id| dictionary.text(id).into_owned();
                changes.map(|(of, id, came)| (of, id, came.then(|| text(id)))).collect()
            })
        });
        let made = changes.into_iter().map(|(of, id, text): (usize, Id, Option<Vec<u8>>)| {
            let constants = text.map(|text| constants_of(py, &text)).transpose()?;
            Ok((of, id, constants))
        });
        made.collect()
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        py.detach(|| self.shared.read().state.subscriptions.len())
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> bool {
        py.detach(|| self.shared.read().state.subscriptions.find(id).is_some())
    }

    /// The ids, in the order of subscribing.
    fn ids(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| {
            let guarded = self.shared.read();
            let all = &guarded.state.subscriptions;
            all.in_order().into_iter().map(|number| all.get(number).name()).collect()
        })
    }

    /// The ids of subscriptions by their numbers; `None` where there is none.
    fn names(
        &self,
        py: Python<'_>,
        numbers: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Vec<Option<String>>> {
        let numbers = numbers.as_slice()?;
        Ok(py.detach(|| {
            let guarded = self.shared.read();
            let all = &guarded.state.subscriptions;
            numbers.iter().map(|&number| all.name(number)).collect()
        }))
    }

    /// The text and the comment of a subscription, or `None`.
    fn subscription(&self, py: Python<'_>, id: &str) -> Option<(String, String)> {
        py.detach(|| {
            let guarded = self.shared.read();
            let state = &guarded.state;
            let number = state.subscriptions.find(id)?;
            Some((state.text(number), state.subscriptions.comment(number).to_owned()))
        })
    }

    /// Takes a subscription in.
    #[pyo3(signature = (id, query, comment = "", filed = None))]
    fn subscribe(
        &self,
        py: Python<'_>,
        id: &str,
        query: &str,
        comment: &str,
        filed: Option<Vec<String>>,
    ) -> PyResult<()> {
        let filed = filed.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
        let taken = py.detach(|| {
            self.shared.change(false, |guarded| {
                let state = &mut guarded.state;
                let number = state.subscribe(id, query, filed.as_deref())?;
                state.subscriptions.set_comment(number, comment);
                Ok(())
            })
        });
        taken.map_err(refused)
    }

    /// Takes many subscriptions in, up to the first for which Python has to find units or names.
    /// Returns how many were looked at, and the places of those that were refused, with the errors.
    fn subscribe_many<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<String>,
        queries: Vec<String>,
        comments: Vec<(usize, String)>,
    ) -> PyResult<(usize, Bound<'py, PyList>)> {
        let (looked, errors): (usize, Vec<(usize, Refusal)>) = py.detach(|| {
            self.shared.change(false, |guarded| {
                let state = &mut guarded.state;
                let mut comments = comments.iter().peekable();
                let mut errors = Vec::new();
                for (place, (id, query)) in ids.iter().zip(&queries).enumerate() {
                    let comment = comments.next_if(|(of, _)| *of == place);
                    match state.subscribe(id, query, None) {
                        Ok(number) => {
                            if let Some((_, comment)) = comment {
                                state.subscriptions.set_comment(number, comment);
                            }
                        }
                        Err(Refusal::Python) => return (place, errors),
                        Err(error) => errors.push((place, error)),
                    }
                }
                (ids.len(), errors)
            })
        });
        Ok((looked, refused_list(py, errors)?))
    }

    /// Takes subscriptions in that differ in constants only: a text with the constants of one; of all
    /// rows of a table the ids, and by constant of the text the term of all rows or a column; and the
    /// rows that are meant. Returns as `subscribe_many` does, places among these.
    fn subscribe_rows<'py>(
        &self,
        py: Python<'py>,
        query: &str,
        ids: ArrowTexts<'py>,
        constants: Vec<ConstantsOrTerm<'py>>,
        rows: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let columns: PyResult<Vec<Constants>> = constants
            .iter()
            .map(|one| match one {
                ConstantsOrTerm::Term(term) => Ok(Constants::Same(term)),
                ConstantsOrTerm::Column(column) => Ok(Constants::Each(column.values()?)),
            })
            .collect();
        let rows = Rows { names: ids.texts()?, columns: columns?, chosen: rows.as_slice()? };
        let errors = py.detach(|| {
            let mut errors = Vec::new();
            let count = rows.chosen.len();
            for begin in (0..count).step_by(AT_ONCE) {
                let end = count.min(begin + AT_ONCE);
                let found = self.shared.change(false, |guarded| {
                    guarded.state.subscribe_rows(query, &rows, begin..end)
                });
                errors.extend(found?);
            }
            Ok(errors)
        });
        refused_list(py, errors.map_err(refused)?)
    }

    /// Learns which class a name stands for, until the ontology changes.
    fn resolve(&self, py: Python<'_>, name: &str, class_: &str) {
        py.detach(|| self.shared.change(false, |guarded| guarded.state.resolve(name, class_)));
    }

    /// Puts a subscription in the place of the one that has its id; false where there is none.
    #[pyo3(signature = (id, query, comment = "", filed = None))]
    fn replace(
        &self,
        py: Python<'_>,
        id: &str,
        query: &str,
        comment: &str,
        filed: Option<Vec<String>>,
    ) -> PyResult<bool> {
        let filed = filed.as_ref().map(|all| all.iter().map(String::as_str).collect::<Vec<_>>());
        let replaced = py.detach(|| {
            self.shared.change(true, |guarded| {
                let state = &mut guarded.state;
                state.replace(id, query, comment, filed.as_deref())
            })
        });
        replaced.map_err(refused)
    }

    /// Takes a subscription out; false where there is none.
    fn unsubscribe(&self, py: Python<'_>, id: &str) -> bool {
        py.detach(|| {
            self.shared.change(true, |guarded| {
                let found = guarded.state.subscriptions.find(id);
                found.inspect(|&number| guarded.state.unsubscribe(number)).is_some()
            })
        })
    }

    /// Whether a triple of the ontology, or one that follows from it alone, has these terms; `None`
    /// stands for any.
    fn meets(
        &self,
        py: Python<'_>,
        subject: Option<&str>,
        predicate: Option<&str>,
        object: Option<&str>,
    ) -> bool {
        py.detach(|| {
            let guarded = self.shared.read();
            let mut key = [ANY; 3];
            for (place, text) in key.iter_mut().zip([subject, predicate, object]) {
                if let Some(text) = text {
                    let Some(id) = guarded.state.dictionary.get(text.as_bytes()) else {
                        return false;
                    };
                    *place = id;
                }
            }
            guarded.state.ontology.meets(key)
        })
    }

    /// All that follows from the ontology alone, with what it states.
    fn closure<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyTuple>>> {
        let triples = py.detach(|| {
            let guarded = self.shared.read();
            let State { dictionary, ontology, .. } = &guarded.state;
            let local = LocalTerms::default();
            Departed::new(Terms { dictionary, local: &local }, ontology.matching([ANY; 3]))
        });
        triples.objects(py)
    }

    /// Does some steps of enrichment with everything that follows, asked for or not: events as
    /// graphs, rules, and the attributes of `mentions` (by default those that subscriptions ask
    /// for). The triples have their root terms; the first `stated` of them somebody stated.
    ///
    /// Returns the triples that come, each with the rule and the premise of data that it was derived
    /// by; how many of them every pattern sees; and whether the attributes are all.
    #[pyo3(signature = (id, triples, stated, steps, mentions = None))]
    fn entail<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        triples: &Bound<'py, PyAny>,
        stated: usize,
        steps: Steps,
        mentions: Option<Vec<MentionRow>>,
    ) -> PyResult<Entailed<'py>> {
        let statements = statements_of(triples)?;
        let (triples, rules, shown, is_whole) = py.detach(|| {
            self.shared.with_worker(|worker| {
                let guarded = self.shared.read();
                let dictionary = &guarded.state.dictionary;
                fill(dictionary, id, &statements, &mut worker.publication);
                let local = &mut worker.publication.local;
                let own = mentions.map(|mentions| mentions_of(&mentions, dictionary, local));
                let mut context = guarded.state.context();
                context.mentions = own.as_ref().unwrap_or(context.mentions);
                let count = statements.len();
                let (given, shown, is_whole) = worker.follow(context, stated.min(count), steps);
                let (more, origins) = (&worker.graph.triples[given..], worker.graph.origins());
                let premises = origins.iter().map(|origin| origin.premise);
                let texts =
                    Departed::new(worker.terms(context), more.iter().copied().chain(premises));
                let rules: Vec<&'static str> = origins.iter().map(|origin| origin.rule).collect();
                (texts, rules, shown - given, is_whole)
            })
        });
        let mut triples = triples.objects(py)?;
        let premises = triples.split_off(triples.len() - rules.len());
        let stated = triples.len() - rules.len();
        let origins = rules.into_iter().zip(premises).map(Some);
        let origins = std::iter::repeat_n(None, stated).chain(origins);
        Ok((triples.into_iter().zip(origins).collect(), shown, is_whole))
    }

    /// Prepares questions about a publication, of whose triples the first `stated` are its own and
    /// were not derived, and those from `shown` on are attributes, seen by those who name them.
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (id, triples, stated, shown, now, calls = None))]
    fn evaluation(
        &self,
        py: Python<'_>,
        id: &str,
        triples: &Bound<'_, PyAny>,
        stated: usize,
        shown: usize,
        now: &str,
        calls: Option<&Calls>,
    ) -> PyResult<Evaluation> {
        let statements = statements_of(triples)?;
        let count = statements.len();
        let operators = py.detach(|| self.shared.read().state.operators().clone());
        Ok(Evaluation {
            operators,
            results: calls.map(Calls::results).unwrap_or_default(),
            missing: Mutex::default(),
            shared: Arc::clone(&self.shared),
            id: id.to_owned(),
            statements,
            stated: stated.min(count),
            shown: shown.min(count),
            now: Literal::new_typed_literal(now, xsd::DATE_TIME),
        })
    }

    /// Whether a subscription or the ontology mentions a term, as N-Triples writes it.
    fn has_term(&self, py: Python<'_>, term: &str) -> bool {
        py.detach(|| self.shared.read().state.dictionary.get(term.as_bytes()).is_some())
    }

    /// How the rows of a subscription are filed: access pattern and second pattern, the estimated
    /// share of publications that have it, how many of the sampled ones had it, how many rows are
    /// filed there, and how many rows have the same join program.
    #[expect(clippy::type_complexity, reason = "plain tuples for Python")]
    fn placements(
        &self,
        py: Python<'_>,
        id: &str,
    ) -> Vec<(Vec<Option<String>>, Option<Vec<Option<String>>>, f64, u32, u32, usize, usize)> {
        py.detach(|| {
            let guarded = self.shared.read();
            let state = &guarded.state;
            let text = |&id: &Id| {
                (id != ANY)
                    .then(|| String::from_utf8_lossy(&state.dictionary.text(id)).into_owned())
            };
            let texts = |key: Triple| key.iter().map(text).collect::<Vec<_>>();
            let Some(number) = state.subscriptions.find(id) else { return Vec::new() };
            let rows = state.subscriptions.get(number).rows();
            let placed = rows.iter().filter_map(|&row| state.index.placement(row));
            let told = placed.map(|placed| {
                let (met, samples) = placed.met;
                let second = placed.second.map(texts);
                let (postings, alike) = (placed.postings, placed.alike);
                (texts(placed.access), second, placed.frequency, met, samples, postings, alike)
            });
            told.collect()
        })
    }

    /// Goes over to another ontology. Returns how many triples and names differ, the ids of the
    /// subscriptions that were filed anew, and of those for which Python has to find units.
    #[expect(clippy::too_many_arguments, reason = "all that an ontology is made of")]
    #[pyo3(signature = (knowledge, *, terms, triples, plain, roots, names, called, prefixes, steps, always, folding, changed, everything))]
    fn set_ontology(
        &self,
        py: Python<'_>,
        knowledge: Py<PyAny>,
        terms: Vec<String>,
        triples: &[u8],
        plain: Option<&[u8]>,
        roots: Vec<(u32, u32)>,
        names: Vec<(u32, u32)>,
        called: Vec<(String, u32)>,
        prefixes: Vec<(String, String)>,
        steps: Vec<(u32, Steps)>,
        always: Steps,
        folding: Option<(bool, bool)>,
        changed: Vec<String>,
        everything: bool,
    ) -> PyResult<(usize, usize, Vec<String>, Vec<String>)> {
        let rows = |numbers: &[u8]| -> Vec<Triple> {
            let number = |row: &[u8], place: usize| {
                let bytes = row[4 * place..].first_chunk();
                bytes.copied().map_or(0, u32::from_ne_bytes)
            };
            numbers.chunks_exact(12).map(|row| [0, 1, 2].map(|place| number(row, place))).collect()
        };
        let (triples, plain) = (rows(triples), plain.map(rows));
        let end = terms.len() as u32;
        let numbers = triples.iter().chain(plain.iter().flatten()).flatten().copied();
        let pairs = roots.iter().chain(&names).flat_map(|&(one, other)| [one, other]);
        let others = called.iter().map(|one| one.1).chain(steps.iter().map(|one| one.0));
        if numbers.chain(pairs).chain(others).any(|number| number >= end) {
            return Err(PyValueError::new_err("a number of no term"));
        }
        let change: Change = py.detach(|| {
            let ids: Vec<Id> = self.shared.change(false, |guarded| {
                let dictionary = &mut guarded.state.dictionary;
                terms.iter().map(|text| dictionary.intern(text.as_bytes())).collect()
            });
            let id = |number: u32| ids[number as usize];
            let pairs = |pairs: &[(u32, u32)]| -> Vec<(Id, Id)> {
                pairs.iter().map(|&(one, other)| (id(one), id(other))).collect()
            };
            let triple = |triple: &Triple| triple.map(id);
            let plain: Option<Vec<Triple>> = plain.map(|plain| plain.iter().map(triple).collect());
            let triples: Vec<Triple> = triples.iter().map(triple).collect();
            let (roots, names) = (pairs(&roots), pairs(&names));
            let called: Vec<(&str, Id)> =
                called.iter().map(|(name, term)| (name.as_str(), id(*term))).collect();
            let prefixes: Vec<(&str, &str)> =
                prefixes.iter().map(|(name, iri)| (name.as_str(), iri.as_str())).collect();
            let steps: Vec<(Id, Steps)> =
                steps.iter().map(|&(term, steps)| (id(term), steps)).collect();
            let stated = OntologyInput {
                triples: &triples,
                plain: plain.as_deref(),
                roots: &roots,
                names: &names,
                called: &called,
                prefixes: &prefixes,
                steps: &steps,
                always,
                folding: folding.map(|(cases, variants)| Folding { cases, variants }),
            };
            let held = self
                .shared
                .change(false, |guarded| Held::new(&mut guarded.state.dictionary, &stated));
            // Publications are matched by the old ontology while the new one is made.
            let ontology = Ontology::of(&self.shared.read().state.dictionary, held, stated);
            self.shared.change(true, |guarded| {
                let state = &mut guarded.state;
                let changed: Vec<&str> = changed.iter().map(String::as_str).collect();
                let change = state.adopt(ontology, &changed, everything);
                ids.into_iter().for_each(|id| state.dictionary.release(id));
                guarded.knowledge = Arc::new(knowledge);
                guarded.version += 1;
                change
            })
        });
        Ok((change.triples, change.names, change.concerned, change.python))
    }

    /// Files a subscription with the constants that Python found.
    fn file_again(&self, py: Python<'_>, id: &str, filed: Vec<String>) -> PyResult<()> {
        let filed: Vec<&str> = filed.iter().map(String::as_str).collect();
        let change = |guarded: &mut Guarded| guarded.state.file_again(id, &filed);
        py.detach(|| self.shared.change(true, change)).map_err(refused)
    }

    /// Reads a document in memory that is one publication, and matches it.
    ///
    /// Without a format (an extension) it is tried as lines of N-Quads. Returns its report or what
    /// Python has to do first, and faults; `None` where it has several publications, is no such
    /// lines, or XML that may have to be recoded or is something else: then a `document` reads it.
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (data, source, now, format = None, cut = "auto", base = None))]
    fn match_bytes<'py>(
        &self,
        py: Python<'py>,
        data: &[u8],
        source: &str,
        now: &str,
        format: Option<&str>,
        cut: &str,
        base: Option<String>,
    ) -> PyResult<Option<Single<'py>>> {
        let Some(cut) = Cut::of(cut) else { return Ok(None) };
        let Some(syntax) = RdfFormat::from_extension(format.unwrap_or("nq")) else {
            return Ok(None);
        };
        if syntax == RdfFormat::RdfXml && !is_plain_rdf_xml(data) {
            return Ok(None);
        }
        let now = Literal::new_typed_literal(now, xsd::DATE_TIME);
        let faults = if format.is_none() { 1 } else { reader::FAULTS };
        let options =
            Options { source: source.to_owned(), cut, base, limits: self.shared.limits, faults };
        let (next, outcome, faults) = py.detach(|| {
            let mut reader = Reader::of_bytes(data.to_vec(), syntax, options);
            self.shared.with_worker(|worker| {
                let guarded = self.shared.read();
                let next = reader.next(Some(&guarded.state.dictionary), &mut worker.publication);
                let is_one = next == Next::Publication && reader.is_at_end();
                let (done, none) = (Done::default(), Arc::default());
                let match_it = || self.shared.matched(guarded, worker, &now, done, &none, None);
                let outcome = is_one.then(match_it).transpose()?;
                self.shared.tend(worker);
                Ok::<_, PyErr>((next, outcome, rows_of(reader.faults())))
            })
        })?;
        let is_nothing = next == Next::End && format.is_some();
        if outcome.is_none() && !is_nothing {
            return Ok(None);
        }
        let outcome = outcome.map(|outcome| outcome.into_object(py)).transpose()?;
        Ok(Some((outcome, faults)))
    }

    /// Reads a document of a stream with a method `read`, in a syntax by its extension. The
    /// publications of a stream that `waits` are matched one by one, as they come.
    #[pyo3(signature = (stream, source, format, cut = "auto", waits = true, base = None))]
    fn document(
        &self,
        stream: Py<PyAny>,
        source: String,
        format: &str,
        cut: &str,
        waits: bool,
        base: Option<String>,
    ) -> PyResult<Document> {
        let (Some(cut), Some(syntax)) = (Cut::of(cut), RdfFormat::from_extension(format)) else {
            return Err(PyValueError::new_err(format!("no cut {cut:?}, or no format {format:?}")));
        };
        let limits = self.shared.limits;
        let options = Options { source, cut, base, limits, ..Options::default() };
        let interrupted = Arc::default();
        let stream = Stream { stream, interrupted: Arc::clone(&interrupted) };
        let reader = Mutex::new(Reader::new(stream, syntax, options));
        Ok(Document { shared: Arc::clone(&self.shared), reader, waits, interrupted })
    }

    /// Matches a publication: its report, or what Python has to do first.
    ///
    /// `stated` is how many of the triples somebody stated, `shown` how many every pattern sees, and
    /// not only those that name the property (all by default); `done` the steps that were done by
    /// the knowledge of a version.
    ///
    /// What is known of calls of operators is looked up.
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (id, triples, now, stated = None, shown = None, done = 0, version = None, calls = None))]
    fn match_triples<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        triples: &Bound<'py, PyAny>,
        now: &str,
        stated: Option<usize>,
        shown: Option<usize>,
        done: Steps,
        version: Option<u64>,
        calls: Option<&Calls>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let statements = statements_of(triples)?;
        let done = Done { stated, shown, steps: done, version };
        let results = calls.map(Calls::results).unwrap_or_default();
        self.match_statements(py, id, &statements, now, done, &results)
    }

    /// Matches an event: its report, or what Python has to do first; `None` where its attributes
    /// have to be read by Python.
    fn match_event<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        attributes: &Bound<'py, PyDict>,
        now: &str,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut statements = Statements::default();
        if !statements.push_event(id, attributes)? {
            return Ok(None);
        }
        let (done, none) = (Done::default(), Arc::default());
        self.match_statements(py, id, &statements, now, done, &none).map(Some)
    }

    /// Matches the events of a table, a row each.
    fn match_events(
        &self,
        py: Python<'_>,
        ids: ArrowTexts<'_>,
        attributes: Vec<EventColumn<'_>>,
        now: &str,
    ) -> PyResult<Batch> {
        let ids = ids.texts()?;
        let columns: PyResult<Vec<Attribute>> =
            attributes.iter().map(EventColumn::attribute).collect();
        let columns = columns?;
        let now = Literal::new_typed_literal(now, xsd::DATE_TIME);
        let reports = py.detach(|| {
            let mut statements = Statements::default();
            let mut report = |row, worker: &mut Worker| {
                let id = ids.get(row).unwrap_or_default();
                statements.clear();
                if !statements.push_row(id, row, &columns) {
                    return Ok(None);
                }
                let (done, none) = (Done::default(), Arc::default());
                let outcome =
                    self.shared.matched_statements(worker, id, &statements, &now, done, &none)?;
                Ok(match outcome {
                    Outcome::Report(report) => Some(*report),
                    Outcome::Pending(_) | Outcome::Calls(_) => None,
                })
            };
            self.shared.with_worker(|worker| {
                (0..ids.len()).map(|row| report(row, worker)).collect::<PyResult<Vec<_>>>()
            })
        })?;
        Ok(Batch { reports })
    }
}

impl Core {
    fn match_statements<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        statements: &Statements,
        now: &str,
        done: Done,
        results: &Arc<CallResults>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let now = Literal::new_typed_literal(now, xsd::DATE_TIME);
        let shared = &self.shared;
        let outcome = py.detach(|| {
            shared.with_worker(|worker| {
                shared.matched_statements(worker, id, statements, &now, done, results)
            })
        });
        outcome?.into_object(py)
    }
}

fn report(
    shared: &Arc<Shared>,
    state: &State,
    worker: &mut Worker,
    matched: Matched,
    stated: usize,
) -> Report {
    let Matched { found, answers, failed, is_cut, did, undecided, .. } = matched;
    let id = worker.publication.id.clone();
    let numbers: Arc<[Number]> = found.into();
    let name = |number: Number| state.subscriptions.get(number).name();
    let failed = failed.into_iter().map(|(number, why)| (name(number), why.0));
    let failed = failed.collect();
    let undecided =
        undecided.into_iter().map(|(number, calls, is_found)| (name(number), calls, is_found));
    let undecided = undecided.collect();
    let is_empty = numbers.is_empty();
    let (publication, triples) = match is_empty {
        true => Default::default(),
        false => (worker.publication.clone(), worker.graph.triples.clone()),
    };
    let (shown, found) = (worker.graph.stated(), Arc::clone(&numbers));
    let data = Data { publication, stated, triples, shown, found, answers, alone: None };
    let data = Arc::new(Mutex::new(data));
    if !is_empty {
        shared.register(&data);
    }
    let shared = Arc::clone(shared);
    Report { shared, publication: id, data, numbers, did, stated, failed, undecided, is_cut }
}

/// An operator by its number, the id of a constant, and the constants that it stands for.
type IndexChange<'py> = (usize, Id, Option<Bound<'py, PyTuple>>);

/// The constants that a term stands for, as objects.
fn constants_of<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    let literal = values::Literal::of(text);
    let composed = literal.filter(|one| one.datatype == Some(COMPOSITION.as_bytes()));
    let Some(composed) = composed else { return PyTuple::new(py, [object_of(py, text)?]) };
    let plain = composed.plain();
    let lines = plain.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    PyTuple::new(py, lines.map(|line| object_of(py, line)).collect::<PyResult<Vec<_>>>()?)
}

/// pyoxigraph's object of a canonical N-Triples text.
#[pyfunction]
fn term<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    object_of(py, text.as_bytes())
}

/// The number of a row, where its line would be, and its text.
type OtherRow<'py> = (usize, usize, Bound<'py, PyBytes>);

/// Lines of N-Triples for rows of three terms, and the rows that may be none.
#[pyfunction]
fn lines_of_rows<'py>(py: Python<'py>, rows: &[u8]) -> (Bound<'py, PyBytes>, Vec<OtherRow<'py>>) {
    let (lines, others) = py.detach(|| lines::lines_of_rows(rows));
    let others = others.into_iter().map(|(row, at, text)| (row, at, PyBytes::new(py, text)));
    (PyBytes::new(py, &lines), others.collect())
}

/// Adds the classes and functions.
pub fn module(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Core>()?;
    module.add_class::<Report>()?;
    module.add_class::<Batch>()?;
    module.add_class::<Document>()?;
    module.add_class::<Pending>()?;
    module.add_class::<CallRequest>()?;
    module.add_class::<Calls>()?;
    module.add_class::<Publications>()?;
    module.add_class::<Evaluation>()?;
    module.add_class::<Parser>()?;
    module.add_class::<Query>()?;
    module.add_function(wrap_pyfunction!(term, module)?)?;
    module.add_function(wrap_pyfunction!(lines_of_rows, module)?)?;
    let py = module.py();
    module.add("EvaluationFailedError", py.get_type::<EvaluationFailedError>())?;
    module.add("RefusedError", py.get_type::<RefusedError>())?;
    module.add("TakenError", py.get_type::<TakenError>())?;
    module.add("DamagedError", py.get_type::<DamagedError>())?;
    module.add("NeedsPythonError", py.get_type::<NeedsPythonError>())?;
    Ok(())
}
