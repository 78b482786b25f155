//! Calls of operators, as Python sees them.

use super::terms::write_text;
use super::{MatchOutcome, Object, SharedCore, Tuple, lock, objects};
use crate::events::Statements;
use crate::functions::Moment;
use crate::lexical::read_term;
use crate::matching::Progress;
use crate::operators::{CallRequests, CallResults, PendingSolution};
use oxrdf::Term;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex};

/// The results of the calls for one publication.
#[pyclass(frozen, module = "graphmatch._native")]
#[derive(Default)]
pub struct Calls {
    results: Mutex<Arc<CallResults>>,
}

impl Calls {
    pub fn results(&self) -> Arc<CallResults> {
        Arc::clone(&lock(&self.results))
    }
}

fn term_of(term: &Object<'_>) -> PyResult<Term> {
    let mut text = Vec::new();
    write_text(term, &mut text)?;
    let term = std::str::from_utf8(&text).ok().and_then(read_term);
    term.ok_or_else(|| PyValueError::new_err("not an RDF term"))
}

#[pymethods]
impl Calls {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Adds the result of a call: a term, or `None` if it failed.
    fn put(&self, call: String, result: &Object<'_>) -> PyResult<()> {
        let result = if result.is_none() { None } else { Some(term_of(result)?) };
        Arc::make_mut(&mut lock(&self.results)).insert(call, result);
        Ok(())
    }
}

/// A publication with candidates that need calls.
#[pyclass(frozen, module = "graphmatch._native")]
pub struct CallRequest {
    pub(crate) shared: Arc<SharedCore>,
    #[pyo3(get)]
    pub(crate) id: String,
    pub(crate) statements: Statements,
    pub(crate) progress: Progress,
    pub(crate) requests: CallRequests,
}

#[pymethods]
impl CallRequest {
    /// The solutions that wait for calls. A call is the operator's IRI and the arguments as
    /// N-Triples, one per line. A predicate is the same for all publications.
    fn solutions(&self) -> Vec<&PendingSolution> {
        self.requests.solutions.iter().collect()
    }

    /// Whether tests are passed; `None` if the call failed or was not made.
    fn passed(&self, calls: &Calls, tests: Vec<(String, String)>) -> Vec<Option<bool>> {
        let results = calls.results();
        let is_passed = |(call, predicate): &(String, String)| {
            self.requests.tests.get(predicate)?.is_passed(results.get(call)?)
        };
        tests.iter().map(is_passed).collect()
    }

    /// Returns the stated triples.
    fn triples<'py>(&self, py: Python<'py>) -> PyResult<Vec<Tuple<'py>>> {
        let mut triples = objects(py, &self.statements, "")?;
        triples.truncate(self.progress.stated);
        Ok(triples)
    }

    /// Matches the publication again, with the results of calls.
    fn rematch(&self, py: Python<'_>, calls: &Calls, now: Moment) -> PyResult<MatchOutcome> {
        let progress = Progress { results: calls.results(), now, ..self.progress.clone() };
        self.shared.match_statements(py, &self.id, &self.statements, progress)
    }
}
