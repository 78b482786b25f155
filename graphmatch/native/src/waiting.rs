//! Publications that wait for calls of operators, as Python sees them.

use crate::dictionary::Id;
use crate::engine::Matched;
use crate::events::Statements;
use crate::indexed::Questions;
use crate::lexical::read_term;
use crate::objects::{object_of, write_text};
use crate::operators::{Answers, Given, Open, Test, holds};
use crate::python::{Done, Shared, lock};
use numpy::{PyArray1, PyReadonlyArray1};
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::{Arc, Mutex};

/// What is known of the calls for one publication.
#[pyclass(frozen, module = "graphmatch._native")]
#[derive(Default)]
pub struct Calls {
    answers: Mutex<Arc<Answers>>,
}

impl Calls {
    /// What they gave.
    pub fn answers(&self) -> Arc<Answers> {
        Arc::clone(&lock(&self.answers))
    }
}

fn term_of(term: &Bound<'_, PyAny>) -> PyResult<Term> {
    let mut text = Vec::new();
    write_text(term, &mut text)?;
    let term = std::str::from_utf8(&text).ok().and_then(read_term);
    term.ok_or_else(|| PyValueError::new_err("no term"))
}

#[pymethods]
impl Calls {
    /// Nothing is known.
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// Learns what a call gave: a term, rows of terms, or `None` where it is unknown.
    fn put(&self, call: String, given: &Bound<'_, PyAny>) -> PyResult<()> {
        let given = if given.is_none() {
            Given::Unknown
        } else if let Ok(rows) = given.cast::<PyList>() {
            let row = |row: Bound<'_, PyAny>| -> PyResult<Vec<Term>> {
                row.try_iter()?.map(|term| term_of(&term?)).collect()
            };
            Given::Rows(rows.iter().map(row).collect::<PyResult<_>>()?)
        } else {
            Given::Value(term_of(given)?)
        };
        Arc::make_mut(&mut lock(&self.answers)).0.insert(call, given);
        Ok(())
    }

    fn __contains__(&self, call: &str) -> bool {
        lock(&self.answers).0.contains_key(call)
    }
}

/// A publication of which candidates wait for calls.
#[pyclass(frozen, module = "graphmatch._native")]
pub struct Waiting {
    shared: Arc<Shared>,
    #[pyo3(get)]
    id: String,
    statements: Statements,
    done: Done,
    open: Open,
}

impl Waiting {
    /// Of what was found so far.
    pub(crate) fn new(
        shared: Arc<Shared>,
        id: String,
        statements: Statements,
        done: Done,
        matched: Matched,
    ) -> Self {
        Self { shared, id, statements, done, open: matched.open }
    }
}

/// The candidates of rows, whether these are no conjunctions, where their tests end, and the tests.
type Rows<'py> = (
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<bool>>,
    Bound<'py, PyArray1<u32>>,
    Bound<'py, PyArray1<u32>>,
);

#[pymethods]
impl Waiting {
    /// The calls that may be made: the operator's IRI and the arguments as N-Triples has them, a line
    /// each.
    fn calls(&self) -> Vec<&str> {
        self.open.calls.iter().map(String::as_str).collect()
    }

    /// For each test the call that it is about.
    fn tests<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_iter(py, self.open.tests.iter().map(|test| test.call))
    }

    /// For each test what is the same for each publication: the operator and the constants.
    fn predicates(&self) -> Vec<&str> {
        self.open.tests.iter().map(|test| test.predicate.as_str()).collect()
    }

    /// The subscriptions that wait, and whether one solution of each is enough.
    fn candidates(&self) -> Vec<(&str, bool)> {
        self.open.candidates.iter().map(|(name, once)| (name.as_str(), *once)).collect()
    }

    /// The solutions that wait: see `Rows`.
    fn rows<'py>(&self, py: Python<'py>) -> Rows<'py> {
        let rows = || self.open.rows.iter();
        (
            PyArray1::from_iter(py, rows().map(|row| row.0)),
            PyArray1::from_vec(py, rows().map(|row| row.1).collect()),
            PyArray1::from_iter(py, rows().map(|row| row.2)),
            PyArray1::from_slice(py, &self.open.entries),
        )
    }

    /// Whether tests are passed, of calls that were made; `None` where nobody knows.
    fn passed(&self, calls: &Calls, tests: Vec<u32>) -> Vec<Option<bool>> {
        let answers = calls.answers();
        let passed = |test: u32| {
            let Test { call, negated, compared, .. } = self.open.tests.get(test as usize)?;
            let given = answers.0.get(self.open.calls.get(*call as usize)?)?;
            let compared = compared.as_ref().map(|(operator, text)| (*operator, text.as_str()));
            holds(given, *negated, compared)
        };
        tests.into_iter().map(passed).collect()
    }

    /// The triples of the publication.
    fn triples<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        self.statements.terms().map(|text| object_of(py, text)).collect()
    }

    /// How many of the triples somebody stated.
    #[getter]
    fn stated(&self) -> Option<usize> {
        self.done.stated
    }

    /// Matches the publication again, with what is known now.
    fn again<'py>(&self, py: Python<'py>, calls: &Calls, now: &str) -> PyResult<Bound<'py, PyAny>> {
        let now = Literal::new_typed_literal(now, xsd::DATE_TIME);
        let answers = calls.answers();
        let (shared, id, done) = (&self.shared, &self.id, self.done);
        let outcome = py.detach(|| {
            shared.with_worker(|worker| {
                shared.matched_statements(worker, id, &self.statements, &now, done, &answers)
            })
        });
        outcome?.into_object(py)
    }
}

/// Calls Python's function that looks terms up in the indexes of operators.
pub(crate) fn ask(
    py: Python<'_>,
    function: &Py<PyAny>,
    questions: &Questions,
) -> PyResult<Vec<Option<Vec<Vec<Id>>>>> {
    let asked: Vec<(usize, Vec<Bound<'_, PyAny>>)> = questions
        .iter()
        .map(|(of, texts)| {
            let terms = texts.iter().map(|text| object_of(py, text));
            Ok((*of, terms.collect::<PyResult<_>>()?))
        })
        .collect::<PyResult<_>>()?;
    let answers: Vec<Option<Vec<PyReadonlyArray1<'_, Id>>>> =
        function.bind(py).call1((asked,))?.extract()?;
    let ids = |array: PyReadonlyArray1<'_, Id>| Ok(array.as_slice()?.to_vec());
    answers
        .into_iter()
        .map(|found| found.map(|all| all.into_iter().map(ids).collect()).transpose())
        .collect()
}
