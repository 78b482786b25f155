//! Reports: what publications match, with solutions.

use super::calls::Calls;
use super::evaluation::{Data, Evaluation, solutions_of, triples_of};
use super::interrupt;
use super::query::Query;
use super::{CoreState, List, Object, SharedCore, Tuple, lock, objects, statements_with};
use crate::dictionary::{Id, Terms};
use crate::engine::{Engine, MatchResult};
use crate::evaluate::{Answer, EvaluationError};
use crate::events::Statements;
use crate::history::FormerSubscription;
use crate::index::Index;
use crate::matching::{Progress, Worker};
use crate::postings::Counters;
use crate::subscriptions::Number;
use crate::triples::Triple;
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use std::ops::Range;
use std::sync::Arc;

/// Maximum number of solutions, duplicates included, that are visited, in multiples of the limit of
/// solutions.
const VISITED: usize = 100;

/// The id of a matching subscription, its solutions, and whether they are complete.
type SolvedMatch = (String, Answer, bool);

impl Data {
    /// Solves some matches, each up to `most` solutions, until they have `limit` solutions
    /// together.
    fn solved(
        &self,
        engine: &Engine,
        worker: &mut Worker,
        range: Range<usize>,
        most: usize,
        limit: usize,
    ) -> Result<Vec<SolvedMatch>, EvaluationError> {
        let numbers = &self.found[range];
        let former = self.former(engine, numbers)?;
        self.restore(engine, worker);
        worker.rows.patterns.begin_solutions(worker.budget);
        let (mut solved, mut solutions) = (Vec::new(), 0);
        for number in numbers {
            let one = self.solve(engine, worker, *number, former.get(number).copied(), most);
            solutions += one.1.solutions.len() + one.1.graph.as_ref().map_or(0, Vec::len);
            solved.push(one);
            if solutions >= limit {
                break;
            }
        }
        Ok(solved)
    }

    /// Solves a match up to `most` solutions. `former` is the subscription, if it has changed
    /// since.
    fn solve(
        &self,
        engine: &Engine,
        worker: &mut Worker,
        number: Number,
        former: Option<&FormerSubscription>,
        most: usize,
    ) -> SolvedMatch {
        let name = match former {
            Some(former) => former.name.clone(),
            None => engine.subscriptions.get(number).name(),
        };
        if let Ok(answer) = self.answers.binary_search_by_key(&number, |answer| answer.0) {
            return (name, self.answers[answer].1.clone(), true);
        }
        let mut index = Index::default();
        let (index, rows, template) = match former {
            Some(former) => {
                let mut add = |branch| index.add(branch, &engine.dictionary, &mut Vec::new());
                let rows = former.branches.iter().filter_map(&mut add).collect();
                (&index, rows, former.template.clone())
            }
            None => {
                let record = engine.subscriptions.get(number);
                (&engine.index, record.rows.to_vec(), engine.templates.get(record.template))
            }
        };
        let projected = template.as_ref().map_or(Vec::new(), |template| template.projected());
        let width = projected.len();
        let most = most.min(worker.budget.terms() / width.max(1));
        let is_ask = template.as_ref().is_some_and(|template| template.form == "ASK");
        let once = is_ask || template.is_some_and(|template| template.distinct);
        let mut found: Vec<Id> = Vec::new();
        let mut seen = hashbrown::HashSet::new();
        let (mut count, mut is_whole) = (0, true);
        let mut left = engine.limits.match_solutions.saturating_mul(VISITED);
        for row in rows {
            worker.solutions(self.context(engine), index, row, |terms| {
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
        worker.budget.keep(found.len());
        let terms = worker.terms(engine.context());
        let solutions = (0..count).map(|row| {
            let ids = &found[row * width..(row + 1) * width];
            let text = |id| String::from_utf8_lossy(&terms.text(id)).into_owned();
            ids.iter().map(|&id| Some(text(id))).collect()
        });
        let solutions = solutions.collect();
        let variables = projected.into_iter().map(|(name, _)| name).collect();
        (name, Answer { variables, solutions, graph: None }, is_whole)
    }
}

/// The matches of one publication.
#[pyclass(frozen, module = "graphmatch._native")]
#[derive(Clone)]
pub(crate) struct Report {
    shared: Arc<SharedCore>,
    /// The id of the publication.
    #[pyo3(get)]
    publication: String,
    /// `None` if nothing matches.
    data: Option<Arc<Data>>,
    counters: (u64, u64, u64, u64, usize, usize),
    /// The subscriptions whose evaluation failed, with the reasons.
    #[pyo3(get)]
    failed: Vec<(String, String)>,
    /// The subscriptions that failed calls of operators leave undecided: these calls, and whether the
    /// subscription matches by other solutions.
    #[pyo3(get)]
    undecided: Vec<(String, Vec<String>, bool)>,
    /// Whether triples are missing because more follows from the publication than the limits allow.
    #[pyo3(get)]
    is_truncated: bool,
    /// The contradictions that rules found: each the last premise and the rule.
    #[pyo3(get)]
    contradictions: Vec<String>,
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

    /// Returns the numbers of the subscriptions, in the order of subscribing.
    fn numbers<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<u32>> {
        PyArray1::from_slice(py, self.found())
    }

    /// Returns counters: probes, postings, candidates, rows with a solution, evaluated
    /// subscriptions, and stated triples.
    fn counters(&self) -> (u64, u64, u64, u64, usize, usize) {
        self.counters
    }

    /// Returns the ids of the subscriptions. Those that are asked for again are the same objects.
    fn ids<'py>(&self, py: Python<'py>) -> PyResult<Tuple<'py>> {
        let Some(data) = &self.data else { return Ok(PyTuple::empty(py)) };
        let ids: Vec<Py<PyString>> = {
            let guarded = self.shared.read_attached(py);
            let former = data.former(&guarded.engine, &data.found)?;
            let mut known = lock(&guarded.ids);
            let id = |&number: &Number| match former.get(&number) {
                Some(former) => PyString::new(py, &former.name).unbind(),
                None => {
                    let place = number as usize;
                    if place >= known.len() {
                        known.resize_with(place + 1, || None);
                    }
                    let name = || guarded.engine.subscriptions.get(number).name();
                    let new = || PyString::new(py, &name()).unbind();
                    known[place].get_or_insert_with(new).clone_ref(py)
                }
            };
            data.found.iter().map(id).collect()
        };
        // Making a tuple may run other Python code, so no lock is held.
        PyTuple::new(py, ids)
    }

    /// Returns the stated triples, or `None` if nothing matches.
    fn triples<'py>(&self, py: Python<'py>) -> PyResult<Option<Tuple<'py>>> {
        let Some(data) = &self.data else { return Ok(None) };
        let triples = py.detach(|| {
            let guarded = self.shared.read();
            data.former(&guarded.engine, &[])?;
            let (dictionary, local) = (&guarded.engine.dictionary, &data.publication.local);
            let triples = data.publication.triples.iter().take(data.progress.stated).copied();
            Ok::<_, EvaluationError>(statements_with(Terms { dictionary, local }, triples))
        })?;
        PyTuple::new(py, objects(py, &triples, "")?).map(Some)
    }

    /// Returns the query of a match, with root terms and in base units, as it was matched.
    fn query(&self, py: Python<'_>, place: usize) -> PyResult<Option<Query>> {
        let Some(data) = &self.data else { return Ok(None) };
        let Some(&number) = data.found.get(place) else { return Ok(None) };
        Ok(py.detach(|| {
            let engine = &self.shared.read().engine;
            let former = data.former(engine, &[number])?;
            Ok::<_, EvaluationError>(match former.get(&number) {
                Some(former) => Query::of(engine, former.template.clone(), &former.constants),
                None => Query::stored(engine, number),
            })
        })?)
    }

    /// Prepares evaluations of queries on E(P), with the results of calls.
    fn evaluation(&self, py: Python<'_>, calls: &Calls) -> Option<Evaluation> {
        let operators = py.detach(|| self.shared.read().engine.parameterizer.operators.clone());
        Some(Evaluation::new(&self.shared, Arc::clone(self.data.as_ref()?), operators, Some(calls)))
    }

    /// Returns how the publication was enriched: the enricher of that time; the triples before root
    /// terms were put in; those of E(P), each with the rule and the premise of data if it was
    /// derived; and those found in texts, each with the property of the text, the text and the form
    /// of the label (`None` for words), and the part of the text if that has another form.
    fn enrichment<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(
        Option<Py<PyAny>>,
        Vec<Tuple<'py>>,
        Vec<(Tuple<'py>, Option<(&'static str, Tuple<'py>)>)>,
        Vec<(Tuple<'py>, Object<'py>, Option<(&str, u8)>, &str)>,
    )> {
        let Some(data) = &self.data else { return Ok(Default::default()) };
        let Data { publication, progress, triples, origins, .. } = &**data;
        let annotations = &progress.annotations;
        let (stated, whole, found) = py.detach(|| {
            let guarded = self.shared.read();
            data.former(&guarded.engine, &[])?;
            let dictionary = &guarded.engine.dictionary;
            let terms = Terms { dictionary, local: &publication.local };
            let given = origins.first().map_or(progress.shown, |(number, ..)| *number as usize);
            let unrooted = Some(&*data.unrooted).filter(|unrooted| !unrooted.is_empty());
            let stated = unrooted.unwrap_or(&triples[..given]);
            let premises = origins.iter().map(|(.., premise)| *premise);
            let found = annotations.iter().flat_map(|one| one.triples);
            let found = found.map(|number| publication.triples[number]);
            Ok::<_, EvaluationError>((
                statements_with(terms, stated.iter().copied()),
                statements_with(terms, triples.iter().copied().chain(premises)),
                statements_with(terms, found),
            ))
        })?;
        let found = objects(py, &found, "")?;
        let found = annotations.iter().zip(found.chunks_exact(2)).map(|(one, triples)| {
            let property = triples[1].get_item(1)?;
            let text = |number| data.annotator.as_ref()?.labels.get(number as usize);
            let label =
                one.label.and_then(|(number, form)| Some((&*text(number)?.text, form as u8)));
            Ok((triples[0].clone(), property, label, &*one.text))
        });
        let found = found.collect::<PyResult<_>>()?;
        let enricher = Some(data.enricher.clone_ref(py));
        Ok((enricher, objects(py, &stated, "")?, derived_rows(py, &whole, origins, 0)?, found))
    }

    /// Returns some of the matches: id, solutions as dictionaries, the graph of CONSTRUCT or
    /// `None`, and whether the solutions are complete.
    ///
    /// Returns fewer matches than asked for if these have very many solutions together. With
    /// `texts`, terms are N-Triples texts. `most` limits the solutions of each match.
    #[pyo3(signature = (begin, end, texts = false, most = None))]
    fn matches<'py>(
        &self,
        py: Python<'py>,
        begin: usize,
        end: usize,
        texts: bool,
        most: Option<usize>,
    ) -> PyResult<List<'py>> {
        let list = PyList::empty(py);
        let Some(data) = &self.data else { return Ok(list) };
        let end = end.min(data.found.len());
        let limit = self.shared.limits.match_solutions;
        let wanted = most.unwrap_or(limit).min(limit);
        let solved = py.detach(|| {
            let guarded = self.shared.read();
            self.shared.with_worker(|worker| {
                data.solved(&guarded.engine, worker, begin.min(end)..end, wanted, limit)
            })
        });
        py.detach(interrupt::check)?;
        for (name, answer, is_whole) in solved? {
            let graph = answer.graph.as_ref().map(|graph| triples_of(py, graph)).transpose()?;
            list.append((name, solutions_of(py, &answer, texts)?, graph, is_whole))?;
        }
        Ok(list)
    }
}

/// Pairs each triple with its rule and its premise, if it was derived. The statements are the triples
/// from a number on, followed by one premise for each origin.
pub(super) fn derived_rows<'py>(
    py: Python<'py>,
    statements: &Statements,
    origins: &[(u32, &'static str, Triple)],
    from: usize,
) -> PyResult<Vec<(Tuple<'py>, Option<(&'static str, Tuple<'py>)>)>> {
    let mut triples = objects(py, statements, "")?;
    let premises = triples.split_off(triples.len() - origins.len());
    let mut origins = origins.iter().zip(premises).peekable();
    let row = |(number, triple)| {
        let origin = origins.next_if(|((derived, ..), _)| *derived as usize == from + number);
        (triple, origin.map(|((_, rule, _), premise)| (*rule, premise)))
    };
    Ok(triples.into_iter().enumerate().map(row).collect())
}

/// The reports of a table of events.
#[pyclass(frozen, module = "graphmatch._native")]
pub(super) struct Batch {
    pub(super) reports: Vec<Option<Report>>,
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.reports.len()
    }

    /// Returns the rows that Python must match: it reads their attributes, enriches them, or calls
    /// operators.
    fn pending(&self) -> Vec<usize> {
        (0..self.reports.len()).filter(|&row| self.reports[row].is_none()).collect()
    }

    /// Returns the report of a row.
    fn report(&self, row: usize) -> Option<Report> {
        self.reports.get(row)?.clone()
    }

    /// Returns the numbers of matching subscriptions row after row, and the offsets of the rows.
    fn numbers<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<u32>>, Bound<'py, PyArray1<i64>>) {
        let reports = self.reports.iter().map(Option::as_ref);
        let all: Vec<&[Number]> =
            reports.map(|report| report.map_or(&[][..], Report::found)).collect();
        let mut offsets = vec![0];
        offsets.extend(all.iter().scan(0, |end, found| {
            *end += found.len() as i64;
            Some(*end)
        }));
        (PyArray1::from_vec(py, all.concat()), PyArray1::from_vec(py, offsets))
    }
}

pub(super) fn report(
    shared: &Arc<SharedCore>,
    guarded: &CoreState,
    worker: &mut Worker,
    matched: MatchResult,
    progress: Progress,
) -> Report {
    let MatchResult { found, answers, counters, evaluated, is_truncated, contradictions, .. } =
        matched;
    let name = |number: Number| guarded.engine.subscriptions.get(number).name();
    let failed = matched.failed.into_iter().map(|(number, why)| (name(number), why.0)).collect();
    let undecided = matched.undecided.into_iter();
    let undecided = undecided.map(|(number, calls, is_found)| (name(number), calls, is_found));
    let Counters { probes, postings, candidates, matches } = counters;
    let counters = (probes, postings, candidates, matches, evaluated, progress.stated);
    let data = (!found.is_empty()).then(|| {
        let (publication, graph) = (worker.publication.clone(), &worker.graph);
        let progress = Progress { shown: graph.stated(), ..progress };
        Arc::new(Data {
            origins: graph.origins.clone(),
            unrooted: worker.unrooted.clone(),
            found,
            answers,
            ..Data::new(guarded, publication, graph.triples.clone(), progress)
        })
    });
    let (shared, publication) = (Arc::clone(shared), worker.publication.id.to_string());
    let undecided = undecided.collect();
    Report { shared, publication, data, counters, failed, undecided, is_truncated, contradictions }
}
