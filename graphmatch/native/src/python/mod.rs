//! The Python module: few, coarse calls that release the interpreter's lock.
//!
//! There is no call and no Python object for a triple or a match until they are read. Terms are
//! canonical N-Triples texts, numbers of subscriptions are NumPy arrays.

#![expect(clippy::type_complexity, reason = "Python gets plain tuples")]

mod annotation;
mod calls;
mod core;
mod document;
mod evaluation;
mod interrupt;
mod query;
mod report;
mod terms;

use self::annotation::{Annotator, folded_words};
use self::calls::{CallRequest, Calls};
use self::core::{Core, lines_of_rows};
use self::document::{DocumentMatches, Publications};
use self::evaluation::{Evaluation, EvaluationFailedError};
use self::query::{Parser, Query};
use self::report::{Batch, Report, report};
use self::terms::{object_named, term, write_text};
use crate::dictionary::Terms;
use crate::engine::{Engine, SubscribeError};
use crate::events::Statements;
use crate::fault::Fault;
use crate::lexical::write_quoted;
use crate::limits::Limits;
use crate::matching::{Needs, Progress, Worker};
use crate::ontology::Steps;
use crate::operator_index::IndexAnswers;
use crate::snapshot::{SnapshotError, VERSION};
use crate::triples::Triple;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, TryLockError};
use std::time::Duration;

/// Maximum number of idle workers.
const WORKERS: usize = 16;

/// Maximum number of times that operator indexes are asked for one publication, if their constants
/// change meanwhile.
const ATTEMPTS: usize = 4;

// An invalid subscription: what, remedy, line, column.
create_exception!(_native, InvalidSubscriptionError, PyValueError);
// An id of an existing subscription.
create_exception!(_native, DuplicateIdError, PyValueError);
// Python has to find units or names of classes first.
create_exception!(_native, NeedsPythonError, PyValueError);
// A file that is not a snapshot, has another version, or is damaged: what, remedy.
create_exception!(_native, CorruptSnapshotError, PyValueError);

/// A Python object.
pub type Object<'py> = Bound<'py, PyAny>;
/// A Python tuple.
pub type Tuple<'py> = Bound<'py, PyTuple>;
/// A Python list.
pub type List<'py> = Bound<'py, PyList>;

fn unreadable(error: SnapshotError) -> PyErr {
    match error {
        SnapshotError::Io(error) => error.into(),
        SnapshotError::Foreign => CorruptSnapshotError::new_err("the file is not a snapshot"),
        SnapshotError::Version(version) => CorruptSnapshotError::new_err((
            format!(
                "saved by another version: its format is {version}, but this version reads {VERSION}"
            ),
            "Subscribe again with this version, and save a new snapshot.",
        )),
        SnapshotError::Damaged(what) => CorruptSnapshotError::new_err(format!("damaged: {what}")),
    }
}

fn refused(error: SubscribeError) -> PyErr {
    match error {
        SubscribeError::Duplicate => {
            DuplicateIdError::new_err("a subscription with this id already exists")
        }
        SubscribeError::Python(query) => NeedsPythonError::new_err(query),
        SubscribeError::Query(error) => bad_query(error),
    }
}

pub(crate) fn bad_query(error: Fault) -> PyErr {
    InvalidSubscriptionError::new_err((error.what, error.remedy, error.line, error.column))
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct CoreState {
    pub(crate) engine: Engine,
    /// Shared, so that a thread can keep it without the interpreter's lock.
    enricher: Arc<Py<PyAny>>,
    version: u64,
    /// The Python function that asks the indexes of operators.
    ask: Option<Arc<Py<PyAny>>>,
    /// By number, the ids of subscriptions that reports were asked for.
    ids: Mutex<Vec<Option<Py<PyString>>>>,
}

/// The engine that all calls of a [`Core`] share.
pub(crate) struct SharedCore {
    guarded: RwLock<CoreState>,
    /// Limits of one document.
    limits: Limits,
    #[expect(clippy::vec_box, reason = "workers are large, and handed from one to the other")]
    workers: Mutex<Vec<Box<Worker>>>,
}

impl SharedCore {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, CoreState> {
        self.guarded.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The same for a thread with the interpreter's lock, which must not wait for the engine's lock.
    fn read_attached(&self, py: Python<'_>) -> RwLockReadGuard<'_, CoreState> {
        loop {
            match self.guarded.try_read() {
                Ok(guarded) => return guarded,
                Err(TryLockError::Poisoned(error)) => return error.into_inner(),
                Err(TryLockError::WouldBlock) => py.detach(|| drop(self.read())),
            }
        }
    }

    /// Changes the engine.
    fn change<T>(&self, change: impl FnOnce(&mut CoreState) -> T) -> T {
        let mut guarded = self.guarded.write().unwrap_or_else(PoisonError::into_inner);
        let CoreState { engine, .. } = &mut *guarded;
        engine.history.begin_change(&mut engine.dictionary);
        let changed = change(&mut guarded);
        let CoreState { engine, .. } = &mut *guarded;
        engine.history.end_change(&mut engine.dictionary);
        changed
    }

    /// Runs a function with a worker that no other thread uses.
    pub(crate) fn with_worker<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> T {
        let mut worker = lock(&self.workers).pop().unwrap_or_default();
        let done = work(&mut worker);
        let mut workers = lock(&self.workers);
        if workers.len() < WORKERS {
            workers.push(worker);
        }
        done
    }

    /// Moves rows to better access patterns, if the statistics of a worker suggest it.
    fn tend(&self, worker: &mut Worker) {
        let statistics = &mut worker.rows.patterns.statistics;
        let wants = self.read().engine.index.patterns.wants_rebalance(statistics);
        if wants && let Ok(mut guarded) = self.guarded.try_write() {
            guarded.engine.index.patterns.rebalance(statistics);
        }
    }

    /// Matches the publication of a worker, or says what Python has to do first.
    ///
    /// Indexes of operators are asked without the lock. Afterwards the terms of the publication
    /// get their present ids.
    fn matched<'a>(
        self: &'a Arc<Self>,
        mut guarded: RwLockReadGuard<'a, CoreState>,
        worker: &mut Worker,
        mut progress: Progress,
    ) -> PyResult<MatchOutcome> {
        progress.shown = progress.shown.min(worker.publication.triples.len());
        progress.stated = progress.stated.min(progress.shown);
        let mut attempts = 0;
        worker.answered = None;
        let outcome = loop {
            let engine = &guarded.engine;
            let is_current = progress.version.is_none_or(|version| version == guarded.version);
            let mut matched = Err(Needs::Steps(0));
            if is_current {
                matched = engine.matches(worker, &mut progress);
                progress.left = worker.budget.left();
                if progress.done != 0 {
                    progress.version = Some(guarded.version);
                }
            }
            match matched {
                Ok(matched) if !matched.requests.solutions.is_empty() => {
                    let triples = worker.publication.triples.iter().copied();
                    let statements = statements_with(worker.terms(engine.context()), triples);
                    let id = worker.publication.id.to_string();
                    let (shared, requests) = (Arc::clone(self), matched.requests);
                    let request = CallRequest { shared, id, statements, progress, requests };
                    break MatchOutcome::Calls(request);
                }
                Ok(matched) => {
                    let report = report(self, &guarded, worker, matched, progress);
                    break MatchOutcome::Report(report);
                }
                Err(Needs::Steps(steps)) => {
                    let triples = worker.publication.triples[..progress.stated].iter().copied();
                    let triples = statements_with(worker.terms(engine.context()), triples);
                    let id = worker.publication.id.to_string();
                    let (enricher, version) = (Arc::clone(&guarded.enricher), guarded.version);
                    let left = progress.left;
                    let request = EnrichmentRequest { id, triples, steps, enricher, version, left };
                    break MatchOutcome::Enrichment(request);
                }
                Err(Needs::Indexes(questions)) => {
                    // An index without an answer has failed.
                    let mut found = Vec::new();
                    if let Some(function) = guarded.ask.clone().filter(|_| attempts < ATTEMPTS) {
                        worker.publication.disown(&guarded.engine.dictionary);
                        drop(guarded);
                        let ask = |py: Python<'_>| -> PyResult<_> {
                            function.bind(py).call1((&questions,))?.extract()
                        };
                        found = Python::attach(|py| match ask(py) {
                            Err(error) if error.is_instance_of::<PyException>(py) => Ok(found),
                            answers => answers,
                        })?;
                        guarded = self.read();
                        worker.publication.adopt(&guarded.engine.dictionary);
                    }
                    attempts += 1;
                    worker.answered = Some(IndexAnswers { questions, found });
                }
            }
        };
        drop(guarded);
        interrupt::check()?;
        self.tend(worker);
        Ok(outcome)
    }

    /// Matches triples that Python gave.
    pub(crate) fn match_statements(
        self: &Arc<Self>,
        py: Python<'_>,
        id: &str,
        statements: &Statements,
        progress: Progress,
    ) -> PyResult<MatchOutcome> {
        py.detach(|| {
            self.with_worker(|worker| {
                let guarded = self.read();
                worker.publication.fill(id, statements, &guarded.engine.dictionary);
                self.matched(guarded, worker, progress)
            })
        })
    }
}

/// Triples as texts.
pub fn statements_with(terms: Terms, triples: impl IntoIterator<Item = Triple>) -> Statements {
    let mut statements = Statements::default();
    for id in triples.into_iter().flatten() {
        statements.push(&terms.text(id));
    }
    statements
}

/// Triples as tuples of pyoxigraph's terms, with a prefix for the labels of blank nodes. Equal terms
/// are one object.
pub(crate) fn objects<'py>(
    py: Python<'py>,
    statements: &Statements,
    prefix: &str,
) -> PyResult<Vec<Tuple<'py>>> {
    let (mut known, mut terms) = (HashMap::new(), Vec::with_capacity(3 * statements.len()));
    for text in statements.terms() {
        let term = match known.entry(text) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => entry.insert(object_named(py, text, prefix)?),
        };
        terms.push(term.clone());
    }
    terms.chunks_exact(3).map(|triple| PyTuple::new(py, triple)).collect()
}

/// A publication that needs enrichment by Python before it can be matched.
#[pyclass(frozen, module = "graphmatch._native")]
pub(crate) struct EnrichmentRequest {
    /// Id of the publication.
    #[pyo3(get)]
    id: String,
    triples: Statements,
    /// The steps to do.
    #[pyo3(get)]
    steps: Steps,
    enricher: Arc<Py<PyAny>>,
    /// Version of the enricher.
    #[pyo3(get)]
    version: u64,
    /// The time that is left for the publication.
    left: Option<Duration>,
}

#[pymethods]
impl EnrichmentRequest {
    /// Returns the triples.
    fn triples<'py>(&self, py: Python<'py>) -> PyResult<Tuple<'py>> {
        PyTuple::new(py, objects(py, &self.triples, "")?)
    }

    /// The enricher that does the steps.
    #[getter]
    fn enricher(&self, py: Python<'_>) -> Py<PyAny> {
        self.enricher.clone_ref(py)
    }
}

/// A report, or a request to Python.
#[derive(IntoPyObject)]
pub(crate) enum MatchOutcome {
    Report(Report),
    Calls(CallRequest),
    Enrichment(EnrichmentRequest),
}

/// Reads triples of pyoxigraph's terms. A string stands for a plain literal.
fn statements_of(triples: &Object<'_>) -> PyResult<Statements> {
    let mut statements = Statements::default();
    let mut subject: Option<Object<'_>> = None;
    for triple in triples.try_iter()? {
        let triple = triple?;
        let triple = triple.cast::<PyTuple>()?;
        for place in 0..3 {
            let term = triple.get_item(place)?;
            let is_repeated = place == 0 && subject.as_ref().is_some_and(|last| last.is(&term));
            if is_repeated {
                statements.repeat(3);
                continue;
            }
            match term.cast_exact::<PyString>() {
                Ok(text) if place == 2 => write_quoted(statements.begin_term(), text.to_str()?),
                _ => write_text(&term, statements.begin_term())?,
            }
            statements.end_term();
            if place == 0 {
                subject = Some(term);
            }
        }
    }
    Ok(statements)
}

/// The compiled core.
#[pymodule]
pub mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::{
        Annotator, Batch, CallRequest, Calls, Core, CorruptSnapshotError, DocumentMatches,
        DuplicateIdError, EnrichmentRequest, Evaluation, EvaluationFailedError,
        InvalidSubscriptionError, NeedsPythonError, Parser, Publications, Query, Report,
        folded_words, lines_of_rows, term,
    };

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.delattr("__all__") // The stub file lists the names.
    }
}
