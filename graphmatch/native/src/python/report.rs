//! Reports: what publications match, with solutions.

use super::evaluation::{solutions_of, triples_of};
use super::terms::object_of;
use super::{Departed, Guarded, Shared};
use crate::dictionary::{Id, Terms};
use crate::engine::{Did, Matched, State};
use crate::evaluate::Answer;
use crate::history::{FormerSubscription, Moment};
use crate::index::Index;
use crate::matching::{Context, Worker};
use crate::ontology::Ontology;
use crate::patterns::Counters;
use crate::query::Form;
use crate::reader::Publication;
use crate::subscriptions::Number;
use crate::triples::Triple;
use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use std::ops::Range;
use std::sync::Arc;

/// So many names are few.
pub(super) const FEW: usize = 100;

/// So many are looked at, equal ones too, where only some are wanted.
pub(super) const LOOKED_AT: usize = 1_000_000;

/// A match with its solutions.
pub(super) struct SolvedMatch {
    name: String,
    found: Found,
    is_whole: bool,
}

pub(super) enum Found {
    Answer(Answer),
    /// Names of variables, and solutions with a value for each.
    Rows(Vec<String>, Vec<Vec<Vec<u8>>>),
}

/// What a report of matches is made of. It stays as it is, whatever changes later.
pub(super) struct Data {
    publication: Publication,
    stated: usize,
    triples: Vec<Triple>,
    shown: usize,
    found: Vec<Number>,
    answers: Vec<(Number, Answer)>,
    /// The time when it was made, and the ontology of then.
    moment: Arc<Moment>,
    ontology: Arc<Ontology>,
}

impl SolvedMatch {
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
    fn context<'a>(&'a self, state: &'a State) -> Context<'a> {
        Context { ontology: &self.ontology, ..state.context() }
    }

    /// Some matches with at most so many solutions each: until they have `limit` solutions together.
    fn solved(
        &self,
        state: &State,
        worker: &mut Worker,
        range: Range<usize>,
        most: usize,
        limit: usize,
    ) -> Vec<SolvedMatch> {
        worker.publication.clone_from(&self.publication);
        let context = self.context(state);
        worker.restore(context, &self.triples, self.shown, self.stated, &state.index);
        worker.rows.patterns.begin_solutions(state.limits.time);
        let numbers = &self.found[range];
        let former = self.moment.former(numbers);
        let (mut solved, mut solutions) = (Vec::new(), 0);
        for number in numbers {
            let one = self.solve(state, worker, *number, former.get(number).copied(), most);
            solutions += one.len();
            solved.push(one);
            if solutions >= limit {
                break;
            }
        }
        solved
    }

    /// A match with at most so many solutions.
    fn solve(
        &self,
        state: &State,
        worker: &mut Worker,
        number: Number,
        former: Option<&FormerSubscription>,
        most: usize,
    ) -> SolvedMatch {
        let name = match former {
            Some(former) => former.name.clone(),
            None => state.subscriptions.get(number).name(),
        };
        if let Ok(answer) = self.answers.binary_search_by_key(&number, |answer| answer.0) {
            let found = Found::Answer(self.answers[answer].1.clone());
            return SolvedMatch { name, found, is_whole: true };
        }
        let mut index = Index::default();
        let (index, rows, template) = match former {
            Some(former) => {
                let mut add = |branch| index.add(branch, &state.dictionary, &mut Vec::new());
                let rows = former.branches.iter().filter_map(&mut add).collect();
                (&index, rows, former.template.clone())
            }
            None => {
                let record = state.subscriptions.get(number);
                (&state.index, record.rows().to_vec(), state.templates.get(record.template()))
            }
        };
        let projected: Vec<(String, usize)> = template
            .iter()
            .flat_map(|template| template.projected())
            .map(|(name, variable)| (name.to_owned(), usize::from(variable)))
            .collect();
        let is_ask = template.as_ref().is_some_and(|template| template.form == Form::Ask);
        let once = is_ask || template.is_some_and(|template| template.distinct);
        let mut found: Vec<Id> = Vec::new();
        let mut seen = hashbrown::HashSet::new();
        let (mut count, mut is_whole) = (0, true);
        let mut left =
            if most < state.limits.solutions { LOOKED_AT } else { most.saturating_mul(100) };
        for row in rows {
            worker.solutions(self.context(state), index, row, |terms| {
                left = left.saturating_sub(1);
                if count == most || left == 0 {
                    is_whole = false;
                    return false;
                }
                let begin = found.len();
                found.extend(projected.iter().map(|&(_, variable)| terms[variable]));
                if once && !seen.insert(found[begin..].to_vec()) {
                    found.truncate(begin);
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
            let ids = &found[row * width..(row + 1) * width];
            ids.iter().map(|&id| terms.text(id).into_owned()).collect()
        });
        let found = solutions.collect();
        let names = projected.into_iter().map(|(name, _)| name).collect();
        SolvedMatch { name, found: Found::Rows(names, found), is_whole }
    }
}

/// What one publication matches.
#[pyclass(frozen, module = "graphmatch._native")]
#[derive(Clone)]
pub(crate) struct Report {
    shared: Arc<Shared>,
    publication: Box<str>,
    /// `None` if nothing matches.
    data: Option<Arc<Data>>,
    did: Did,
    stated: usize,
    failed: Vec<(String, String)>,
    undecided: Vec<(String, Vec<String>, bool)>,
    is_cut: bool,
}

impl Report {
    fn found(&self) -> &[Number] {
        self.data.as_ref().map_or(&[], |data| &data.found)
    }
}

#[pymethods]
impl Report {
    fn __len__(&self) -> usize {
        self.found().len()
    }

    /// The publication's id.
    fn publication(&self) -> &str {
        &self.publication
    }

    /// The numbers of the subscriptions, in the order of subscribing.
    fn numbers<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.found())
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
        let Some(data) = &self.data else { return Ok(PyTuple::empty(py)) };
        let written = |guarded: &Guarded| {
            let mut names = Vec::with_capacity(16 * data.found.len());
            let former = data.moment.former(&data.found);
            let ends = guarded.state.subscriptions.write_names(&data.found, &former, &mut names);
            (names, ends)
        };
        // To give the interpreter's lock back and take it again costs more than a few names. With
        // that lock this thread must not wait for the others, so it only tries to get theirs.
        let few = (data.found.len() <= FEW).then(|| self.shared.guarded.try_read().ok());
        let (names, ends) = match few.flatten() {
            Some(guarded) => written(&guarded),
            None => py.detach(|| written(&self.shared.read())),
        };
        let names = std::str::from_utf8(&names)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut begin = 0;
        let texts = ends.into_iter().map(|end| &names[std::mem::replace(&mut begin, end)..end]);
        PyTuple::new(py, texts.collect::<Vec<_>>())
    }

    /// The triples that were stated; `None` if nothing matches.
    fn triples<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let Some(data) = &self.data else { return Ok(None) };
        let texts = py.detach(|| {
            let guarded = self.shared.read();
            let (dictionary, local) = (&guarded.state.dictionary, &data.publication.local);
            let triples = data.publication.triples.iter().take(data.stated).copied();
            Departed::new(Terms { dictionary, local }, triples)
        });
        PyTuple::new(py, texts.objects(py)?).map(Some)
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
        let list = PyList::empty(py);
        let Some(data) = &self.data else { return Ok(list) };
        let end = end.min(data.found.len());
        let limit = self.shared.limits.match_solutions;
        let wanted = most.unwrap_or(limit).min(limit);
        let solved = py.detach(|| {
            let guarded = self.shared.read();
            self.shared.with_worker(|worker| {
                data.solved(&guarded.state, worker, begin.min(end)..end, wanted, limit)
            })
        });
        for one in solved {
            let (solutions, graph) = match &one.found {
                Found::Answer(answer) => {
                    let graph = answer.graph.as_ref().map(|triples| triples_of(py, triples));
                    (solutions_of(py, answer)?, graph.transpose()?)
                }
                Found::Rows(names, rows) => {
                    let solutions = PyList::empty(py);
                    for row in rows {
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
            list.append((one.name, solutions, graph, one.is_whole))?;
        }
        Ok(list)
    }
}

/// What became of the events of a table.
#[pyclass(frozen, module = "graphmatch._native")]
pub(super) struct Batch {
    pub(super) reports: Vec<Option<Report>>,
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
            numbers.extend(report.iter().flat_map(|report| report.found()));
            offsets.push(numbers.len() as i64);
        }
        (PyArray1::from_vec(py, numbers), PyArray1::from_vec(py, offsets))
    }
}

pub(super) fn report(
    shared: &Arc<Shared>,
    state: &State,
    worker: &mut Worker,
    matched: Matched,
    stated: usize,
) -> Report {
    let Matched { found, answers, failed, is_cut, did, undecided, .. } = matched;
    let name = |number: Number| state.subscriptions.get(number).name();
    let failed = failed.into_iter().map(|(number, why)| (name(number), why.0)).collect();
    let undecided =
        undecided.into_iter().map(|(number, calls, is_found)| (name(number), calls, is_found));
    let undecided = undecided.collect();
    let data = (!found.is_empty()).then(|| {
        Arc::new(Data {
            publication: worker.publication.clone(),
            stated,
            triples: worker.graph.triples.clone(),
            shown: worker.graph.stated(),
            found,
            answers,
            moment: state.history.now(),
            ontology: Arc::clone(&state.ontology),
        })
    });
    let (shared, publication) = (Arc::clone(shared), worker.publication.id.clone());
    Report { shared, publication, data, did, stated, failed, undecided, is_cut }
}
