//! Evaluations of queries on one publication, for explanations and mapping functions.
//!
//! An [`Evaluation`] holds the publication and the ontology of its time, so that changes of
//! subscriptions and of the ontology do not matter. Cost: that of the look-ups of the publication's
//! triples, and the evaluation.

use super::calls::Calls;
use super::interrupt;
use super::query::Query;
use super::terms::object_of;
use super::{CoreState, List, SharedCore, lock, objects};
use crate::annotation::Annotator;
use crate::branch::GM;
use crate::engine::Engine;
use crate::evaluate::{Answer, EvaluationError, Prepared};
use crate::events::Statements;
use crate::history::FormerSubscription;
use crate::matching::{Context, Progress, Worker};
use crate::ontology::Ontology;
use crate::operators::{CallContext, CallResults, Operators};
use crate::parameterize::Parameterizer;
use crate::publication::Publication;
use crate::scan::on_stack;
use crate::subscriptions::Number;
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};
use pyo3::create_exception;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::{Arc, Mutex};

// A query that cannot be evaluated, or not within the limits.
create_exception!(_native, EvaluationFailedError, PyRuntimeError);

/// An enriched publication and its matches. They do not change with the engine.
pub(super) struct Data {
    pub(super) publication: Publication,
    /// How it was enriched. The triples of E(P) from `shown` on are attributes, which only patterns
    /// with their property see.
    pub(super) progress: Progress,
    /// The triples of E(P).
    pub(super) triples: Vec<Triple>,
    /// The numbers of derived triples, the rules, and their premises.
    pub(super) origins: Vec<(u32, &'static str, Triple)>,
    /// The triples before root terms were put in; empty if none was.
    pub(super) unrooted: Vec<Triple>,
    /// The subscriptions that match.
    pub(super) found: Vec<Number>,
    /// The answers of those that were evaluated.
    pub(super) answers: Vec<(Number, Answer)>,
    /// When this was made, and the ontology, the annotator and the enricher of that time.
    pub(super) moment: Arc<u64>,
    pub(super) annotator: Option<Arc<Annotator>>,
    pub(super) ontology: Arc<Ontology>,
    pub(super) enricher: Arc<Py<PyAny>>,
}

impl Data {
    /// Keeps a publication and the triples of E(P).
    pub(super) fn new(
        CoreState { engine, enricher, .. }: &CoreState,
        publication: Publication,
        triples: Vec<Triple>,
        progress: Progress,
    ) -> Self {
        let all = publication.triples.iter().chain(&triples);
        engine.history.note_terms(all.flatten().copied());
        Self {
            publication,
            progress,
            triples,
            origins: Vec::new(),
            unrooted: Vec::new(),
            found: Vec::new(),
            answers: Vec::new(),
            moment: engine.history.now(),
            annotator: engine.annotator.clone(),
            ontology: Arc::clone(&engine.ontology),
            enricher: Arc::clone(enricher),
        }
    }

    /// Returns the former states of subscriptions that have changed since, or an error if they are
    /// no longer kept.
    pub(super) fn former<'a>(
        &self,
        engine: &'a Engine,
        numbers: &[Number],
    ) -> Result<HashMap<Number, &'a FormerSubscription>, EvaluationError> {
        engine.history.former(*self.moment, numbers).ok_or_else(|| {
            let what = "too many subscriptions have changed since the report";
            EvaluationError(format!("{what}: read a report before such changes"))
        })
    }

    pub(super) fn context<'a>(&'a self, engine: &'a Engine) -> Context<'a> {
        Context { ontology: &self.ontology, ..engine.context() }
    }

    /// Gives a worker the publication.
    pub(super) fn restore(&self, engine: &Engine, worker: &mut Worker) {
        worker.publication.clone_from(&self.publication);
        let (context, Progress { stated, shown, .. }) = (self.context(engine), &self.progress);
        worker.restore(context, &self.triples, *shown, *stated, &engine.index);
        worker.budget = engine.budget(self.triples.len(), None);
    }
}

/// One publication to evaluate queries on.
#[pyclass(frozen, module = "graphmatch._native")]
pub struct Evaluation {
    shared: Arc<SharedCore>,
    data: Arc<Data>,
    operators: Operators,
    /// The results of their calls.
    results: Arc<CallResults>,
    /// The operator calls without a result that evaluations needed.
    missing: Mutex<Vec<String>>,
}

impl From<EvaluationError> for PyErr {
    fn from(error: EvaluationError) -> Self {
        EvaluationFailedError::new_err(error.0)
    }
}

impl Evaluation {
    /// Prepares evaluations with the results of calls.
    pub(super) fn new(
        shared: &Arc<SharedCore>,
        data: Arc<Data>,
        operators: Operators,
        calls: Option<&Calls>,
    ) -> Self {
        let results = calls.map(Calls::results).unwrap_or_default();
        let missing = Mutex::default();
        Self { shared: Arc::clone(shared), data, operators, results, missing }
    }

    fn ask(
        &self,
        is_deep: bool,
        prepare: impl FnOnce(CallContext) -> Result<Prepared, EvaluationError> + Send,
    ) -> Result<Option<Answer>, EvaluationError> {
        let calls = CallContext::new(&self.operators, &self.results);
        let found = on_stack(is_deep, || {
            let prepared = prepare(calls.clone())?;
            let guarded = self.shared.read();
            let (engine, data) = (&guarded.engine, &self.data);
            data.former(engine, &[])?;
            self.shared.with_worker(|worker| {
                data.restore(engine, worker);
                worker.evaluate(data.context(engine), &prepared, data.progress.now)
            })
        });
        lock(&self.missing).extend(calls.take_noted().0);
        found
    }
}

#[pymethods]
impl Evaluation {
    /// Returns the answer of a query, or `None` if it does not match: solutions, and at most
    /// `most` distinct triples of CONSTRUCT or DESCRIBE.
    ///
    /// With `resting`, a solution must use a triple of the publication.
    #[pyo3(signature = (query, resting, most = None))]
    fn answer<'py>(
        &self,
        py: Python<'py>,
        query: &Query,
        resting: bool,
        most: Option<usize>,
    ) -> PyResult<Option<(List<'py>, Option<List<'py>>)>> {
        let prepare = |calls| Ok(Prepared::new(query.algebra()?, resting, calls));
        let found = py.detach(|| self.ask(query.template.is_deep, prepare));
        py.detach(interrupt::check)?;
        let Some(answer) = found? else { return Ok(None) };
        let solutions = solutions_of(py, &answer, false)?;
        let Some(graph) = &answer.graph else { return Ok(Some((solutions, None))) };
        let mut seen = HashSet::new();
        let distinct = graph.iter().filter(|triple| seen.insert(*triple));
        let triples = triples_of(py, distinct.take(most.unwrap_or(usize::MAX)))?;
        Ok(Some((solutions, Some(triples))))
    }

    /// Returns the operator calls without a result that evaluations needed since the last call.
    fn missing(&self) -> Vec<String> {
        std::mem::take(&mut *lock(&self.missing))
    }

    /// Returns at most `most` solutions of the pattern of a query with all variables, whether they
    /// use the publication or not.
    fn rows<'py>(&self, py: Python<'py>, query: &Query, most: usize) -> PyResult<List<'py>> {
        let prepare = |calls| Ok(Prepared::rows(&query.algebra()?, Some(most), calls));
        let found = py.detach(|| self.ask(query.template.is_deep, prepare));
        py.detach(interrupt::check)?;
        solutions_of(py, &found?.unwrap_or_default(), false)
    }

    /// Returns at most `most` solutions of a group pattern in SPARQL. The prefix `gm` is declared.
    fn solutions<'py>(
        &self,
        py: Python<'py>,
        pattern: &str,
        most: Option<usize>,
    ) -> PyResult<List<'py>> {
        let found = py.detach(|| {
            self.ask(true, |_| {
                let text = format!("SELECT * {pattern}");
                let parser =
                    Parameterizer::new(&[("gm".into(), GM.into())], self.shared.limits, vec![])?;
                let query = parser.parse(&text)?;
                Ok(Prepared::rows(&query, most, CallContext::default()))
            })
        });
        solutions_of(py, &found?.unwrap_or_default(), false)
    }
}

/// The triples of a graph.
pub(crate) fn triples_of<'py, 'a>(
    py: Python<'py>,
    triples: impl IntoIterator<Item = &'a [String; 3]>,
) -> PyResult<List<'py>> {
    let mut statements = Statements::default();
    triples.into_iter().flatten().for_each(|text| statements.push(text.as_bytes()));
    PyList::new(py, objects(py, &statements, "")?)
}

/// The solutions of an answer as dictionaries of terms, or of N-Triples texts.
pub(crate) fn solutions_of<'py>(
    py: Python<'py>,
    answer: &Answer,
    texts: bool,
) -> PyResult<List<'py>> {
    let solutions = PyList::empty(py);
    for row in &answer.solutions {
        let solution = PyDict::new(py);
        for (name, text) in answer.variables.iter().zip(row) {
            match text {
                None => {}
                Some(text) if texts => solution.set_item(name, text)?,
                Some(text) => solution.set_item(name, object_of(py, text.as_bytes())?)?,
            }
        }
        solutions.append(solution)?;
    }
    Ok(solutions)
}
