//! Evaluations of queries on one publication, for explanations and mapping functions.
//!
//! An [`Evaluation`] holds terms as texts, so it outlives changes of subscriptions and of the
//! ontology. Each query is evaluated with the present ontology. Cost: 100 ns per term of the
//! publication, and the evaluation.

use super::interrupt;
use super::query::Query;
use super::terms::term_object;
use super::{SharedCore, fill, lock};
use crate::branch::GM;
use crate::evaluate::{Answer, EvaluationError, Prepared};
use crate::events::Statements;
use crate::functions::Moment;
use crate::limits::Limits;
use crate::operators::{CallContext, CallResults, Operators};
use crate::parameterize::Parameterizer;
use crate::scan::on_stack;
use hashbrown::HashSet;
use oxrdf::Triple;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::sync::{Arc, Mutex};

pyo3::create_exception!(
    _native,
    EvaluationFailedError,
    PyRuntimeError,
    "A query that cannot be evaluated, or not within the limits."
);

/// One publication to evaluate queries on.
#[pyclass(frozen, module = "graphmatch._native")]
pub struct Evaluation {
    pub(crate) shared: Arc<SharedCore>,
    pub(crate) id: String,
    pub(crate) statements: Statements,
    /// Number of stated triples.
    pub(crate) stated: usize,
    /// The triples from here on are attributes, which only patterns with their property see.
    pub(crate) shown: usize,
    pub(crate) now: Moment,
    pub(crate) operators: Operators,
    /// The results of their calls.
    pub(crate) results: Arc<CallResults>,
    /// The operator calls without a result that evaluations needed.
    pub(crate) missing: Mutex<Vec<String>>,
}

impl From<EvaluationError> for PyErr {
    fn from(error: EvaluationError) -> Self {
        EvaluationFailedError::new_err(error.0)
    }
}

impl Evaluation {
    fn ask(
        &self,
        is_deep: bool,
        prepare: impl FnOnce(CallContext) -> Result<Prepared, EvaluationError> + Send,
    ) -> Result<Option<Answer>, EvaluationError> {
        let calls = CallContext::new(&self.operators, &self.results);
        let found = on_stack(is_deep, || {
            let prepared = prepare(calls.clone())?;
            let guarded = self.shared.read();
            let engine = &guarded.engine;
            self.shared.with_worker(|worker| {
                fill(&engine.dictionary, &self.id, &self.statements, &mut worker.publication);
                let triples = worker.publication.triples.clone();
                worker.restore(engine.context(), &triples, self.shown, self.stated, &engine.index);
                worker.budget = engine.budget(triples.len(), None);
                worker.evaluate(engine.context(), &prepared, self.now, engine.limits)
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
    ) -> PyResult<Option<(Bound<'py, PyList>, Option<Bound<'py, PyList>>)>> {
        let prepare = |calls| Ok(Prepared::new(query.algebra()?, resting, calls));
        let found = py.detach(|| self.ask(query.is_deep(), prepare));
        py.detach(interrupt::check)?;
        let Some(answer) = found? else { return Ok(None) };
        let solutions = solutions_of(py, &answer)?;
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
    fn rows<'py>(
        &self,
        py: Python<'py>,
        query: &Query,
        most: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let prepare = |calls| Ok(Prepared::rows(&query.algebra()?, Some(most), calls));
        let found = py.detach(|| self.ask(query.is_deep(), prepare));
        py.detach(interrupt::check)?;
        solutions_of(py, &found?.unwrap_or_default())
    }

    /// Returns at most `most` solutions of a group pattern in SPARQL. The prefix `gm` is declared.
    fn solutions<'py>(
        &self,
        py: Python<'py>,
        pattern: &str,
        most: Option<usize>,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = py.detach(|| {
            self.ask(true, |_| {
                let text = format!("SELECT * {pattern}");
                let parser = Parameterizer::new([("gm", GM)], Limits::default())?;
                let query = parser.parse(&text)?;
                Ok(Prepared::rows(&query, most, CallContext::default()))
            })
        });
        solutions_of(py, &found?.unwrap_or_default())
    }
}

/// The triples of a graph.
pub(crate) fn triples_of<'py, 'a>(
    py: Python<'py>,
    triples: impl IntoIterator<Item = &'a Triple>,
) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for Triple { subject, predicate, object } in triples {
        let subject = term_object(py, &subject.clone().into(), "")?;
        let predicate = term_object(py, &predicate.clone().into(), "")?;
        list.append(PyTuple::new(py, [subject, predicate, term_object(py, object, "")?])?)?;
    }
    Ok(list)
}

/// The solutions of an answer as dictionaries.
pub(crate) fn solutions_of<'py>(py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyList>> {
    let solutions = PyList::empty(py);
    for row in &answer.solutions {
        let solution = PyDict::new(py);
        for (name, term) in answer.variables.iter().zip(row) {
            if let Some(term) = term {
                solution.set_item(name, term_object(py, term, "")?)?;
            }
        }
        solutions.append(solution)?;
    }
    Ok(solutions)
}
