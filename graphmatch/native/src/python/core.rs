//! The engine for Python: subscriptions, the ontology, matching.

use super::annotation::Annotator;
use super::calls::Calls;
use super::document::{DocumentMatches, reader_of};
use super::evaluation::{Data, Evaluation};
use super::interrupt;
use super::query::{BranchRow, Query};
use super::report::{Batch, derived_rows};
use super::terms::object_of;
use super::{
    CoreState, EnrichmentRequest, List, MatchOutcome, Object, SharedCore, Tuple, bad_query, lock,
    objects, refused, statements_of, statements_with, unreadable,
};
use crate::bulk::SubscriptionBatch;
use crate::columns::{Texts, Values};
use crate::demand::Demand;
use crate::dictionary::{ANY, Dictionary, Id, LOCAL, LocalTerms, Terms};
use crate::engine::{Change, Engine, Saved, SubscribeError, contradictions};
use crate::events::{Attribute, Statements};
use crate::fault::Fault;
use crate::functions::Moment;
use crate::lexical::LiteralParts;
use crate::limits::Limits;
use crate::matching::{Progress, Worker};
use crate::ntriples;
use crate::ontology::build::{OntologyInput, hold};
use crate::ontology::{Ontology, Steps};
use crate::operators::Operator;
use crate::parameterize::Parameterizer;
use crate::precheck::is_plain_rdf_xml;
use crate::publication::Publication;
use crate::query::COMPOSITION;
use crate::reader::{Reader, ReaderOptions, split_of};
use crate::snapshot::{self, SnapshotError};
use crate::subscriptions::{SUSPENDED, UNINDEXED};
use crate::triples::Triple;
use numpy::PyReadonlyArray1;
use oxrdfio::RdfFormat;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedStr;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};

/// Maximum number of subscriptions that are added under one lock.
pub(super) const AT_ONCE: usize = 1 << 16;

/// Number of texts that are parsed before the lock is taken: at first, because Python may have to go
/// on with the first one, and at most.
const MIN_PARSED: usize = 16;
const MAX_PARSED: usize = 1 << 10;

/// Reads demanded properties and objects, `None` for any.
pub(super) fn demand_of(
    rows: &[(Option<String>, Option<String>)],
    dictionary: &Dictionary,
    local: &mut LocalTerms,
) -> Demand {
    let mut demand = Demand::default();
    let mut id = |text: &Option<String>| {
        text.as_ref().map_or(ANY, |text| local.id_of(text.as_bytes(), dictionary))
    };
    for (property, object) in rows {
        let text = property.as_deref().unwrap_or_default();
        demand.count((id(property), id(object)), 1, text.as_bytes());
    }
    demand
}

/// Strings in the layout of Arrow: the bytes, and the offsets.
#[derive(FromPyObject)]
pub(super) struct ArrowTexts<'py>(PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, i64>);

impl ArrowTexts<'_> {
    fn texts(&self) -> PyResult<Texts<'_>> {
        let text = std::str::from_utf8(self.0.as_slice()?);
        let text = text.map_err(|_| PyValueError::new_err("texts that are not UTF-8"))?;
        Ok(Texts { text, offsets: self.1.as_slice()? })
    }
}

/// The values of all rows: integers, floating-point numbers, places in a list of terms, or texts. Those
/// of parameters are terms in N-Triples syntax, those of attributes IRIs or strings.
#[derive(FromPyObject)]
pub(super) enum Column<'py> {
    Integers(PyReadonlyArray1<'py, i64>),
    Texts(ArrowTexts<'py>, bool),
    Floats(PyReadonlyArray1<'py, f64>),
    Places(PyReadonlyArray1<'py, i32>, Vec<String>),
}

impl Column<'_> {
    fn values(&self) -> PyResult<Values<'_>> {
        Ok(match self {
            Self::Integers(values) => Values::Integers(values.as_slice()?),
            Self::Floats(values) => Values::Floats(values.as_slice()?),
            Self::Places(places, terms) => Values::Places(places.as_slice()?, terms),
            Self::Texts(texts, are_iris) => Values::Texts(texts.texts()?, *are_iris),
        })
    }
}

/// An attribute of events: its property, the values, and the rows that have a value.
#[derive(FromPyObject)]
pub(super) struct EventColumn<'py>(String, Column<'py>, Option<PyReadonlyArray1<'py, bool>>);

impl EventColumn<'_> {
    fn attribute(&self) -> PyResult<Attribute<'_>> {
        let valid = self.2.as_ref().map(|valid| valid.as_slice()).transpose()?;
        Ok(Attribute { property: &self.0, values: self.1.values()?, valid })
    }
}

/// How a subscription is indexed: the query with root terms and in base units, the branches in the
/// index, the reasons for evaluating candidates, whether every publication is a candidate, and whether
/// the subscription matches nothing for now.
#[derive(IntoPyObject)]
pub(super) struct IndexPlanRow<'py> {
    query: Query,
    entries: Vec<BranchRow<'py>>,
    residual: Vec<Cow<'static, str>>,
    unindexed: bool,
    suspended: bool,
}

/// The parts of an ontology ([`OntologyInput`]), and the names that stand for other classes now.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(super) struct OntologyRows {
    triples: Vec<[PyBackedStr; 3]>,
    owl_rl: bool,
    plain: Option<Vec<[PyBackedStr; 3]>>,
    roots: Vec<(PyBackedStr, PyBackedStr)>,
    names: Vec<(PyBackedStr, PyBackedStr)>,
    called: Vec<(PyBackedStr, PyBackedStr)>,
    prefixes: Vec<(PyBackedStr, PyBackedStr)>,
    steps: Vec<(PyBackedStr, Steps)>,
    always: Steps,
    folding: Option<(bool, bool)>,
    changed: Vec<String>,
    everything: bool,
}

/// The errors of subscriptions with their places.
fn refused_list(py: Python<'_>, errors: Vec<(usize, SubscribeError)>) -> PyResult<List<'_>> {
    let list = PyList::empty(py);
    for (place, error) in errors {
        list.append((place, refused(error).into_value(py)))?;
    }
    Ok(list)
}

/// Standing subscriptions over an ontology.
#[pyclass(frozen, weakref, module = "graphmatch._native")]
pub(super) struct Core {
    shared: Arc<SharedCore>,
}

impl Core {
    fn of(py: Python<'_>, mut engine: Engine, limits: Limits) -> Self {
        (engine.limits, engine.is_interrupted) = (limits, interrupt::is_interrupted);
        let (enricher, ids) = (Arc::new(py.None()), Mutex::default());
        let guarded = RwLock::new(CoreState { engine, enricher, version: 0, ask: None, ids });
        Self { shared: Arc::new(SharedCore { guarded, limits, workers: Mutex::default() }) }
    }

    /// Reads the engine without the interpreter's lock.
    fn read<T: Send>(&self, py: Python<'_>, read: impl FnOnce(&Engine) -> T + Send) -> T {
        py.detach(|| read(&self.shared.read().engine))
    }

    /// Changes the engine without the interpreter's lock.
    fn change<T: Send>(&self, py: Python<'_>, run: impl FnOnce(&mut CoreState) -> T + Send) -> T {
        py.detach(|| self.shared.change(run))
    }
}

#[pymethods]
impl Core {
    /// Makes an engine with an empty ontology and no subscriptions. Queries can use `prefixes`
    /// without declaring them, and can call `operators`.
    #[new]
    #[pyo3(signature = (prefixes, limits, operators = Vec::new()))]
    fn new(
        py: Python<'_>,
        prefixes: Vec<(String, String)>,
        limits: Limits,
        operators: Vec<Operator>,
    ) -> PyResult<Self> {
        let parameterizer = Parameterizer::new(&prefixes, limits, operators).map_err(bad_query)?;
        Ok(Self::of(py, Engine::new(parameterizer), limits))
    }

    /// Writes a snapshot: the engine, and the options and the ontology as Python encodes them.
    fn save(&self, py: Python<'_>, path: PathBuf, options: &[u8], ontology: &[u8]) -> PyResult<()> {
        let written = py.detach(|| {
            let bytes = snapshot::encode(&(options, ontology, self.shared.read().engine.saved()));
            snapshot::write(&path, &bytes)
        });
        written.map_err(unreadable)
    }

    /// Opens a snapshot. `limits` maps the encoded options to the limits. Returns the encoded
    /// options and ontology, too. Call [`Core::attach_enricher`] before using the core.
    #[staticmethod]
    #[pyo3(signature = (path, prefixes, limits, operators = Vec::new()))]
    fn open<'py>(
        py: Python<'py>,
        path: PathBuf,
        prefixes: Vec<(String, String)>,
        limits: Py<PyAny>,
        operators: Vec<Operator>,
    ) -> PyResult<(Self, Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let read = py.detach(|| snapshot::read::<(Vec<u8>, Vec<u8>, Saved)>(&path));
        let (options, ontology, saved) = read.map_err(unreadable)?;
        let limits: Limits = limits.bind(py).call1((PyBytes::new(py, &options),))?.extract()?;
        let parameterizer = Parameterizer::new(&prefixes, limits, operators).map_err(bad_query)?;
        let engine = py.detach(|| Engine::restored(parameterizer, saved));
        let engine =
            engine.ok_or_else(|| unreadable(SnapshotError::Damaged("its content is not valid")))?;
        let core = Self::of(py, engine, limits);
        Ok((core, PyBytes::new(py, &options), PyBytes::new(py, &ontology)))
    }

    /// Sets the object that [`EnrichmentRequest`](super::EnrichmentRequest)s hand to Python.
    fn attach_enricher(&self, py: Python<'_>, enricher: Py<PyAny>) {
        self.change(py, |guarded| guarded.enricher = Arc::new(enricher));
    }

    /// Sets the function that asks the indexes of operators. It gets a list of operators by
    /// number, each with terms. For each term it returns the ids of constants, or `None` for an
    /// index that failed.
    fn ask_by(&self, py: Python<'_>, function: Py<PyAny>) {
        self.change(py, |guarded| guarded.ask = Some(Arc::new(function)));
    }

    /// Returns the constants of indexed operators that were added or removed: the number of the
    /// operator, the id, and the constants, or `None` if they were removed.
    fn index_changes<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(usize, Id, Option<Tuple<'py>>)>> {
        let changes = self.change(py, |guarded| guarded.engine.operator_constants.take_changes());
        let made = changes.into_iter().map(|(of, id, text)| {
            let constants = text.map(|text| constants_of(py, &text)).transpose()?;
            Ok((of, id, constants))
        });
        made.collect()
    }

    fn __len__(&self, py: Python<'_>) -> usize {
        self.read(py, |engine| engine.subscriptions.len())
    }

    fn __contains__(&self, py: Python<'_>, id: &str) -> bool {
        self.read(py, |engine| engine.subscriptions.find(id).is_some())
    }

    /// The ids, in the order of subscribing.
    fn ids(&self, py: Python<'_>) -> Vec<String> {
        self.read(py, |engine| {
            let all = &engine.subscriptions;
            all.in_order().into_iter().map(|number| all.get(number).name()).collect()
        })
    }

    /// Returns the ids of subscriptions by number, `None` for unknown numbers.
    fn ids_of(
        &self,
        py: Python<'_>,
        numbers: PyReadonlyArray1<'_, u32>,
    ) -> PyResult<Vec<Option<String>>> {
        let numbers = numbers.as_slice()?;
        let name =
            |engine: &Engine| numbers.iter().map(|&n| engine.subscriptions.name(n)).collect();
        Ok(self.read(py, name))
    }

    /// Returns the text and the comment of a subscription, if it exists.
    fn subscription(&self, py: Python<'_>, id: &str) -> Option<(String, String)> {
        self.read(py, |engine| {
            let number = engine.subscriptions.find(id)?;
            Some((engine.text(number), engine.subscriptions.comment(number).to_owned()))
        })
    }

    /// Adds a subscription, or `replaces` the one that has its id; returns false if there is none.
    /// `rewritten` has its constants with root terms and in base units, if Python had to find them.
    #[pyo3(signature = (id, query, comment = "", rewritten = None, replaces = false))]
    fn subscribe(
        &self,
        py: Python<'_>,
        id: &str,
        query: &str,
        comment: &str,
        rewritten: Option<Vec<String>>,
        replaces: bool,
    ) -> PyResult<bool> {
        let taken = py.detach(|| {
            let parsed = self.shared.read().engine.parse(query);
            self.shared.change(|guarded| {
                let engine = &mut guarded.engine;
                let replaced = engine.subscriptions.find(id).filter(|_| replaces);
                if replaces && replaced.is_none() {
                    return Ok(false);
                }
                let number = engine.subscribe(id, parsed, rewritten.as_deref(), replaced)?;
                engine.subscriptions.set_comment(number, comment);
                Ok(true)
            })
        });
        taken.map_err(refused)
    }

    /// Adds subscriptions, up to the first one for which Python has to find units or names.
    /// Returns the number of subscriptions that were read, and the errors of those that are
    /// invalid, with their places.
    fn subscribe_many<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<String>,
        queries: Vec<String>,
        comments: Vec<String>,
    ) -> PyResult<(usize, List<'py>)> {
        let (looked, errors) = py.detach(|| {
            let (mut errors, mut begin, mut size) = (Vec::new(), 0, MIN_PARSED);
            let count = ids.len().min(queries.len()).min(comments.len());
            while begin < count {
                let end = count.min(begin + size);
                let parsed = self.shared.read().engine.parse_all(&queries[begin..end]);
                let stop = self.shared.change(|guarded| {
                    let engine = &mut guarded.engine;
                    for (place, parsed) in (begin..end).zip(parsed) {
                        match engine.subscribe(&ids[place], parsed, None, None) {
                            Ok(number) => {
                                engine.subscriptions.set_comment(number, &comments[place]);
                            }
                            Err(SubscribeError::Python(_)) => return Some(place),
                            Err(error) => errors.push((place, error)),
                        }
                    }
                    None
                });
                if let Some(place) = stop {
                    return (place, errors);
                }
                (begin, size) = (end, MAX_PARSED.min(2 * size));
            }
            (count, errors)
        });
        Ok((looked, refused_list(py, errors)?))
    }

    /// Adds subscriptions with one query. `parameters` are variables of it, which stand for the
    /// terms of a column each. `rows` are the rows to add. Returns errors like `subscribe_many`, by
    /// place in `rows`. Fails if no row could be added.
    fn subscribe_batch<'py>(
        &self,
        py: Python<'py>,
        query: &str,
        parameters: Vec<String>,
        ids: ArrowTexts<'py>,
        columns: Vec<Column<'py>>,
        rows: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<List<'py>> {
        let columns = columns.iter().map(Column::values).collect::<PyResult<_>>()?;
        let (names, chosen, parameters) = (ids.texts()?, rows.as_slice()?, &parameters);
        let batch = SubscriptionBatch { query, parameters, names, columns, chosen };
        let errors = py.detach(|| {
            let are_iris = vec![true; parameters.len()];
            self.shared.read().engine.parameterized(query, parameters, &are_iris)?;
            let parts = (0..chosen.len()).step_by(AT_ONCE);
            let add = |begin| {
                let range = begin..chosen.len().min(begin + AT_ONCE);
                self.shared.change(|guarded| guarded.engine.subscribe_batch(&batch, range))
            };
            Ok(parts.flat_map(add).collect())
        });
        refused_list(py, errors.map_err(bad_query)?)
    }

    /// Sets the class that a name stands for until the ontology changes.
    fn resolve(&self, py: Python<'_>, name: &str, class_: &str) {
        self.change(py, |guarded| guarded.engine.resolve(name, class_));
    }

    /// Removes a subscription. Returns false if the id is unknown.
    fn unsubscribe(&self, py: Python<'_>, id: &str) -> bool {
        self.change(py, |guarded| {
            let Some(number) = guarded.engine.subscriptions.find(id) else { return false };
            guarded.engine.unsubscribe(number);
            if let Some(known) = lock(&guarded.ids).get_mut(number as usize) {
                *known = None; // Another subscription may get the number.
            }
            true
        })
    }

    /// Returns the closure of the ontology.
    fn closure<'py>(&self, py: Python<'py>) -> PyResult<Vec<Tuple<'py>>> {
        let triples = self.read(py, |Engine { dictionary, ontology, .. }| {
            let local = LocalTerms::default();
            statements_with(Terms { dictionary, local: &local }, ontology.matching([ANY; 3]))
        });
        objects(py, &triples, "")
    }

    /// Derives all triples of a publication, whether subscriptions ask for them or not: events as
    /// graphs, rules, and the attributes of `demand` (by default those of subscriptions). The
    /// triples have their root terms, and the first `stated` are stated.
    ///
    /// Returns the new triples, each with the rule and the premise of data if it was derived; the
    /// number of triples that every pattern sees; and whether the attributes are complete.
    #[pyo3(signature = (id, triples, stated, steps, demand = None))]
    fn entail<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        triples: &Object<'py>,
        stated: usize,
        steps: Steps,
        demand: Option<Vec<(Option<String>, Option<String>)>>,
    ) -> PyResult<(Vec<(Tuple<'py>, Option<(&'static str, Tuple<'py>)>)>, usize, bool)> {
        let statements = statements_of(triples)?;
        let (triples, origins, given, shown, is_whole) = py.detach(|| {
            self.shared.with_worker(|worker| {
                let guarded = self.shared.read();
                let dictionary = &guarded.engine.dictionary;
                worker.publication.fill(id, &statements, dictionary);
                worker.budget = guarded.engine.budget(statements.len(), None);
                let local = &mut worker.publication.local;
                let own = demand.map(|demand| demand_of(&demand, dictionary, local));
                let mut context = guarded.engine.context();
                context.demand = own.as_ref().unwrap_or(context.demand);
                let count = statements.len();
                let (given, shown) = worker.entail(context, stated.min(count), steps);
                let (more, origins) = (&worker.graph.triples[given..], &worker.graph.origins);
                let premises = origins.iter().map(|(.., premise)| *premise);
                let triples = more.iter().copied().chain(premises);
                let triples = statements_with(worker.terms(context), triples);
                (triples, origins.to_vec(), given, shown - given, worker.is_whole)
            })
        });
        Ok((derived_rows(py, &triples, &origins, given)?, shown, is_whole))
    }

    /// Prepares evaluations of queries on a publication. Its first `stated` triples are not
    /// derived. Those from `shown` on are attributes, which only patterns with their property see.
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (id, triples, stated, shown, now, calls = None))]
    fn evaluation(
        &self,
        py: Python<'_>,
        id: &str,
        triples: &Object<'_>,
        stated: usize,
        shown: usize,
        now: Moment,
        calls: Option<&Calls>,
    ) -> PyResult<Evaluation> {
        let statements = statements_of(triples)?;
        let (stated, shown) = (stated.min(statements.len()), shown.min(statements.len()));
        let (data, operators) = py.detach(|| {
            let (guarded, mut publication) = (self.shared.read(), Publication::default());
            publication.fill(id, &statements, &guarded.engine.dictionary);
            let triples = publication.triples.clone();
            let progress = Progress { stated, shown, ..Progress::new(now) };
            let data = Data::new(&guarded, publication, triples, progress);
            (Arc::new(data), guarded.engine.parameterizer.operators.clone())
        });
        Ok(Evaluation::new(&self.shared, data, operators, calls))
    }

    /// Returns whether a subscription or the ontology has a term.
    fn has_term(&self, py: Python<'_>, term: &str) -> bool {
        self.read(py, |engine| engine.dictionary.get(term.as_bytes()).is_some())
    }

    /// Returns the properties that subscriptions ask for, if their texts begin with `begin`.
    fn demanded(&self, py: Python<'_>, begin: &str) -> Vec<String> {
        self.read(py, |engine| {
            let pairs = engine.demand.counted().filter(|((property, _), _)| *property != ANY);
            let texts = pairs.map(|((property, _), _)| engine.dictionary.text(property));
            let found = texts.filter(|text| text.starts_with(begin.as_bytes()));
            found.map(|text| String::from_utf8_lossy(&text).into_owned()).collect()
        })
    }

    /// Returns how a subscription is indexed, or `None` if the id is unknown.
    fn index_plan<'py>(&self, py: Python<'py>, id: &str) -> PyResult<Option<IndexPlanRow<'py>>> {
        let found = self.read(py, |engine| {
            let Engine { subscriptions, dictionary, .. } = engine;
            let number = subscriptions.find(id)?;
            let record = subscriptions.get(number);
            let query = Query::stored(engine, number)?;
            let (terms, filled) = query.filled();
            let id_of = |id| dictionary.get(&terms.text(id)).unwrap_or(LOCAL);
            let mut plan = engine.index_plan(filled, false, id_of);
            plan.entries.truncate(record.rows.len());
            Some((query, terms, plan, record.flags))
        });
        let Some((query, terms, plan, flags)) = found else { return Ok(None) };
        let entries = plan.entries.iter();
        let entries = entries.map(|(number, branch)| query.branch(py, &terms, *number, branch));
        Ok(Some(IndexPlanRow {
            entries: entries.collect::<PyResult<_>>()?,
            query,
            residual: plan.residual,
            unindexed: flags & UNINDEXED != 0,
            suspended: flags & SUSPENDED != 0,
        }))
    }

    /// Changes the ontology. Returns the numbers of changed triples and names, the ids of the
    /// reindexed subscriptions, and the ids of those for which Python has to find units.
    fn set_ontology(
        &self,
        py: Python<'_>,
        enricher: Py<PyAny>,
        stated: OntologyRows,
    ) -> (usize, usize, Vec<String>, Vec<String>) {
        let OntologyRows { always, folding, everything, owl_rl, .. } = stated;
        let change: Change = py.detach(|| {
            let mut ids = Vec::new();
            let (triples, plain, roots, names, called, steps) = self.shared.change(|guarded| {
                let mut id = |text: &PyBackedStr| {
                    ids.push(guarded.engine.dictionary.intern(text.as_bytes()));
                    ids[ids.len() - 1]
                };
                let mut triples = |rows: &Vec<[PyBackedStr; 3]>| -> Vec<Triple> {
                    rows.iter().map(|row| row.each_ref().map(&mut id)).collect()
                };
                let (all, plain) = (triples(&stated.triples), stated.plain.as_ref().map(triples));
                let mut pairs = |rows: &[(PyBackedStr, PyBackedStr)]| -> Vec<(Id, Id)> {
                    rows.iter().map(|(one, other)| (id(one), id(other))).collect()
                };
                let (roots, names) = (pairs(&stated.roots), pairs(&stated.names));
                let called = stated.called.iter().map(|(name, term)| (&**name, id(term)));
                let called: Vec<(&str, Id)> = called.collect();
                let steps = stated.steps.iter().map(|(term, steps)| (id(term), *steps));
                (all, plain, roots, names, called, steps.collect::<Vec<_>>())
            });
            let prefixes: Vec<(&str, &str)> =
                stated.prefixes.iter().map(|(name, iri)| (&**name, &**iri)).collect();
            let input = OntologyInput {
                triples: &triples,
                owl_rl,
                plain: plain.as_deref(),
                roots: &roots,
                names: &names,
                called: &called,
                prefixes: &prefixes,
                steps: &steps,
                always,
                folding,
            };
            let held = self.shared.change(|guarded| hold(&mut guarded.engine.dictionary, &input));
            // Publications are matched by the old ontology while the new one is made.
            let ontology = Ontology::of(&self.shared.read().engine.dictionary, held, input);
            self.shared.change(|guarded| {
                let engine = &mut guarded.engine;
                let change = engine.adopt(ontology, &stated.changed, everything);
                engine.annotator = None;
                lock(&guarded.ids).clear();
                ids.into_iter().for_each(|id| engine.dictionary.release(id));
                guarded.enricher = Arc::new(enricher);
                guarded.version += 1;
                change
            })
        });
        (change.triples, change.names, change.reindexed, change.python)
    }

    /// Returns the contradictions that the rules find in the ontology itself, and whether
    /// triples are missing that follow from it.
    fn contradictions(&self, py: Python<'_>) -> (Vec<String>, bool) {
        self.read(py, |Engine { dictionary, ontology, .. }| {
            let local = LocalTerms::default();
            let terms = Terms { dictionary, local: &local };
            (contradictions(&ontology.contradictions, terms), ontology.is_truncated)
        })
    }

    /// Takes the labels of the ontology of a version; of another version nothing is taken.
    fn set_annotator(&self, py: Python<'_>, annotator: &Annotator, version: u64) {
        self.change(py, |guarded| {
            if guarded.version == version {
                guarded.engine.annotator = Some(Arc::clone(&annotator.annotator));
            }
        });
    }

    /// Reads a document in memory that is one publication, and matches it.
    ///
    /// A document without a format (an extension) is read as N-Quads. Returns a report or a
    /// request, and faults. Returns `None` if the document has several publications, is not in
    /// that format, or may need recoding. Then `document` reads it.
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (data, source, now, format = None, split_by = "auto", base = None))]
    fn match_bytes(
        &self,
        py: Python<'_>,
        data: &[u8],
        source: &str,
        now: Moment,
        format: Option<&str>,
        split_by: &str,
        base: Option<String>,
    ) -> PyResult<Option<(Option<MatchOutcome>, Vec<Fault>)>> {
        let syntax = RdfFormat::from_extension(format.unwrap_or("nq"));
        let (Some(split_by), Some(syntax)) = (split_of(split_by), syntax) else { return Ok(None) };
        let may_be_lines = format.is_some() || ntriples::may_be_lines(data);
        if !may_be_lines || syntax == RdfFormat::RdfXml && !is_plain_rdf_xml(data) {
            return Ok(None);
        }
        let limits = self.shared.limits;
        let options = ReaderOptions { source: source.to_owned(), split_by, base, limits };
        py.detach(|| {
            let mut reader = Reader::new(data.to_vec(), None, syntax, options);
            self.shared.with_worker(|worker| {
                let is_found = reader.next(&mut worker.publication);
                let faults = reader.faults();
                let is_guess = format.is_none() && !faults.is_empty();
                if !is_found || is_guess || !reader.is_at_end() {
                    let is_nothing = !is_found && format.is_some();
                    return Ok(is_nothing.then_some((None, faults)));
                }
                let guarded = self.shared.read();
                worker.publication.adopt(&guarded.engine.dictionary);
                let outcome = self.shared.matched(guarded, worker, Progress::new(now))?;
                Ok(Some((Some(outcome), faults)))
            })
        })
    }

    /// Reads a document from a stream with a method `read`, in the format of an extension. If the
    /// stream `waits`, publications are matched one by one as they arrive.
    #[pyo3(signature = (stream, source, format, split_by = "auto", waits = true, base = None))]
    fn document(
        &self,
        stream: Py<PyAny>,
        source: String,
        format: &str,
        split_by: &str,
        waits: bool,
        base: Option<String>,
    ) -> PyResult<DocumentMatches> {
        let reader = reader_of(stream, source, format, split_by, base, self.shared.limits)?;
        let (shared, reader) = (Arc::clone(&self.shared), Mutex::new(reader));
        Ok(DocumentMatches { shared, reader, waits })
    }

    /// Matches a publication, and returns a report or a request.
    ///
    /// If Python has `prepared` the publication for a request, that has the number of stated
    /// triples; the number of triples that all patterns see, and not only those with the property;
    /// and the steps that Python did. `calls` has results of operator calls.
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (id, triples, now, prepared = None, request = None, calls = None))]
    fn match_triples(
        &self,
        py: Python<'_>,
        id: &str,
        triples: &Object<'_>,
        now: Moment,
        prepared: Option<(usize, usize, Steps)>,
        request: Option<&EnrichmentRequest>,
        calls: Option<&Calls>,
    ) -> PyResult<MatchOutcome> {
        let statements = statements_of(triples)?;
        let (stated, shown, done) = prepared.unwrap_or((usize::MAX, usize::MAX, 0));
        let results = calls.map(Calls::results).unwrap_or_default();
        let version = request.map(|request| request.version);
        let left = request.and_then(|request| request.left);
        let progress =
            Progress { stated, shown, done, version, left, results, ..Progress::new(now) };
        self.shared.match_statements(py, id, &statements, progress)
    }

    /// Matches an event, and returns a report or a request, or `None` if Python has to read the
    /// attributes.
    fn match_event(
        &self,
        py: Python<'_>,
        id: &str,
        attributes: &Bound<'_, PyDict>,
        now: Moment,
    ) -> PyResult<Option<MatchOutcome>> {
        let mut statements = Statements::default();
        if !statements.push_event(id, attributes)? {
            return Ok(None);
        }
        self.shared.match_statements(py, id, &statements, Progress::new(now)).map(Some)
    }

    /// Matches the events of a table, one for each row.
    fn match_events(
        &self,
        py: Python<'_>,
        ids: ArrowTexts<'_>,
        attributes: Vec<EventColumn<'_>>,
        now: Moment,
    ) -> PyResult<Batch> {
        let ids = ids.texts()?;
        let columns: PyResult<Vec<Attribute>> =
            attributes.iter().map(EventColumn::attribute).collect();
        let columns = columns?;
        let reports = py.detach(|| {
            let mut statements = Statements::default();
            let mut report = |row, worker: &mut Worker| {
                let id = ids.get(row).unwrap_or_default();
                statements.clear();
                if !statements.push_row(id, row, &columns) {
                    return Ok(None);
                }
                let guarded = self.shared.read();
                worker.publication.fill(id, &statements, &guarded.engine.dictionary);
                Ok(match self.shared.matched(guarded, worker, Progress::new(now))? {
                    MatchOutcome::Report(report) => Some(report),
                    MatchOutcome::Enrichment(_) | MatchOutcome::Calls(_) => None,
                })
            };
            self.shared.with_worker(|worker| {
                (0..ids.len()).map(|row| report(row, worker)).collect::<PyResult<Vec<_>>>()
            })
        })?;
        Ok(Batch { reports })
    }
}

/// The constants of a composed term as objects.
pub(super) fn constants_of<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Tuple<'py>> {
    let literal = LiteralParts::of(text);
    let composed = literal.filter(|one| one.datatype == Some(COMPOSITION.as_bytes()));
    let Some(composed) = composed else { return PyTuple::new(py, [object_of(py, text)?]) };
    let plain = composed.plain();
    let lines = plain.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    PyTuple::new(py, lines.map(|line| object_of(py, line)).collect::<PyResult<Vec<_>>>()?)
}

/// Returns N-Triples lines for rows of three terms; and the rows that may not be valid, with their
/// numbers and the offsets of their lines.
#[pyfunction]
pub(super) fn lines_of_rows<'py>(
    py: Python<'py>,
    rows: &[u8],
) -> (Bound<'py, PyBytes>, Vec<(usize, usize, Bound<'py, PyBytes>)>) {
    let mut others = Vec::new();
    let tell = |row, at, text| others.push((row, at, text));
    let lines = py.detach(|| ntriples::lines_of_rows(rows, tell));
    let others = others.into_iter().map(|(row, at, text)| (row, at, PyBytes::new(py, text)));
    (PyBytes::new(py, &lines), others.collect())
}
