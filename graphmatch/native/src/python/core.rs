//! The engine for Python: subscriptions, the ontology, matching.

use super::calls::Calls;
use super::document::{Document, FaultRow, Stream, rows_of};
use super::evaluation::Evaluation;
use super::query::parameterizer;
use super::report::Batch;
use super::terms::object_of;
use super::{Departed, Done, Guarded, Outcome, Shared, fill, refused, statements_of, unreadable};
use crate::bulk::{SubscriptionBatch, Texts, Values};
use crate::dictionary::{ANY, Dictionary, Id, LocalTerms, Terms};
use crate::engine::{Change, Refusal, Saved, State};
use crate::events::{Attribute, Cells, Statements};
use crate::guard::is_plain_rdf_xml;
use crate::limits::Limits;
use crate::matching::Worker;
use crate::mentions::Mentions;
use crate::ontology::{Folding, Held, Ontology, Stated, Steps};
use crate::operators::{CallResults, Operator};
use crate::query::COMPOSITION;
use crate::reader::{Reader, ReaderOptions, SplitBy};
use crate::snapshot::{self, SnapshotError};
use crate::triples::Triple;
use crate::{lines, values};
use numpy::PyReadonlyArray1;
use oxrdf::Literal;
use oxrdf::vocab::xsd;
use oxrdfio::RdfFormat;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

/// So many subscriptions are taken in between two publications.
pub(super) const AT_ONCE: usize = 1 << 16;

/// What became of a document in memory, and the faults that were met.
pub(super) type Single<'py> = (Option<Bound<'py, PyAny>>, Vec<FaultRow>);

/// What somebody asks for: a property and an object, `None` for any.
pub(super) type MentionRow = (Option<String>, Option<String>);

/// Triples that were derived, and from which; how many of them every pattern sees; whether they are
/// all.
pub(super) type Followed<'py> = (Vec<(Bound<'py, PyTuple>, Option<u32>)>, usize, bool);

pub(super) fn mentions_of(
    rows: &[MentionRow],
    dictionary: &Dictionary,
    local: &mut LocalTerms,
) -> Mentions {
    let mut mentions = Mentions::default();
    let mut id = |text: &Option<String>| {
        text.as_ref().map_or(ANY, |text| local.id_of(text.as_bytes(), dictionary))
    };
    for (property, object) in rows {
        let text = property.as_deref().unwrap_or_default();
        mentions.add((id(property), id(object)), 1, text.as_bytes());
    }
    mentions
}

/// Texts as Arrow has them: their bytes, and where each begins and the last ends.
#[derive(FromPyObject)]
pub(super) struct ArrowTexts<'py>(PyReadonlyArray1<'py, u8>, PyReadonlyArray1<'py, i64>);

impl ArrowTexts<'_> {
    fn texts(&self) -> PyResult<Texts<'_>> {
        let text = std::str::from_utf8(self.0.as_slice()?);
        let text = text.map_err(|_| PyValueError::new_err("texts that are not UTF-8"))?;
        Ok(Texts { text, offsets: self.1.as_slice()? })
    }
}

/// A column of values: integers, floating-point numbers, or places among terms.
#[derive(FromPyObject)]
pub(super) enum Column<'py> {
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
pub(super) enum EventValues<'py> {
    Texts(ArrowTexts<'py>, bool),
    Values(Column<'py>),
}

/// A column of events: the property, values, and which of them are there.
#[derive(FromPyObject)]
pub(super) struct EventColumn<'py>(String, EventValues<'py>, Option<PyReadonlyArray1<'py, bool>>);

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
pub(super) enum ConstantsOrTerm<'py> {
    Term(String),
    Column(Column<'py>),
}

/// Places with errors of ours.
pub(super) fn refused_list(
    py: Python<'_>,
    errors: Vec<(usize, Refusal)>,
) -> PyResult<Bound<'_, PyList>> {
    let list = PyList::empty(py);
    for (place, error) in errors {
        list.append((place, refused(error).into_value(py)))?;
    }
    Ok(list)
}

/// Standing subscriptions over an ontology.
#[pyclass(frozen, weakref, module = "graphmatch._native")]
pub(super) struct Core {
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
        Ok(Self { shared: Arc::new(Shared { guarded, limits, workers: Mutex::default() }) })
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
        let state = State::new(parameterizer(&prefixes, limits, operators)?);
        Self::of(py, state, limits)
    }

    /// Writes a snapshot: everything, with what Python has to keep of options and of the ontology.
    fn save(&self, py: Python<'_>, path: PathBuf, options: &[u8], ontology: &[u8]) -> PyResult<()> {
        let written = py.detach(|| {
            let bytes = snapshot::encode(&(options, ontology, self.shared.read().state.saved()));
            snapshot::write(&path, &bytes)
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
        let read = py.detach(|| snapshot::read::<(Vec<u8>, Vec<u8>, Saved)>(&path));
        let (options, ontology, saved) = read.map_err(unreadable)?;
        let limits: Limits = limits.bind(py).call1((PyBytes::new(py, &options),))?.extract()?;
        let parameterizer = parameterizer(&prefixes, limits, operators)?;
        let state = py.detach(|| State::restored(parameterizer, saved));
        let state = state.ok_or_else(|| unreadable(SnapshotError::Damaged("its content")))?;
        let core = Self::of(py, state, limits)?;
        Ok((core, PyBytes::new(py, &options), PyBytes::new(py, &ontology)))
    }

    /// Tells a core that was opened what is known: it is handed to those who do a step with it.
    fn know(&self, py: Python<'_>, knowledge: Py<PyAny>) {
        py.detach(|| self.shared.change(|guarded| guarded.knowledge = Arc::new(knowledge)));
    }

    /// Has the indexes of operators asked by a function: of a list of operators by number, each with
    /// terms, it returns for each term the ids of constants, or `None` where an index failed.
    fn ask_by(&self, py: Python<'_>, function: Py<PyAny>) {
        py.detach(|| {
            self.shared.change(|guarded| guarded.ask = Some(Arc::new(function)));
        });
    }

    /// Which constants of operators that have an index came and went: the number of the operator,
    /// the id, and the constants, none of one that went.
    fn index_changes<'py>(&self, py: Python<'py>) -> PyResult<Vec<IndexChange<'py>>> {
        let changes = py.detach(|| {
            if !self.shared.read().state.indexed.has_changes() {
                return Vec::new();
            }
            self.shared.change(|guarded| {
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
            self.shared.change(|guarded| {
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
            self.shared.change(|guarded| {
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
    fn subscribe_batch<'py>(
        &self,
        py: Python<'py>,
        query: &str,
        ids: ArrowTexts<'py>,
        constants: Vec<ConstantsOrTerm<'py>>,
        rows: PyReadonlyArray1<'py, i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let columns: PyResult<Vec<Values>> = constants
            .iter()
            .map(|one| match one {
                ConstantsOrTerm::Term(term) => Ok(Values::Same(term)),
                ConstantsOrTerm::Column(column) => column.values(),
            })
            .collect();
        let (names, chosen) = (ids.texts()?, rows.as_slice()?);
        let batch = SubscriptionBatch { names, columns: columns?, chosen };
        let errors = py.detach(|| {
            let mut errors = Vec::new();
            let count = chosen.len();
            for begin in (0..count).step_by(AT_ONCE) {
                let end = count.min(begin + AT_ONCE);
                let found = self
                    .shared
                    .change(|guarded| guarded.state.subscribe_batch(query, &batch, begin..end));
                errors.extend(found?);
            }
            Ok(errors)
        });
        refused_list(py, errors.map_err(refused)?)
    }

    /// Learns which class a name stands for, until the ontology changes.
    fn resolve(&self, py: Python<'_>, name: &str, class_: &str) {
        py.detach(|| self.shared.change(|guarded| guarded.state.resolve(name, class_)));
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
            self.shared.change(|guarded| {
                let state = &mut guarded.state;
                state.replace(id, query, comment, filed.as_deref())
            })
        });
        replaced.map_err(refused)
    }

    /// Takes a subscription out; false where there is none.
    fn unsubscribe(&self, py: Python<'_>, id: &str) -> bool {
        py.detach(|| {
            self.shared.change(|guarded| {
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
    /// Returns the triples that come, each with the place of the one that it was derived from among
    /// all, the given ones first, which are distinct; how many of them every pattern sees; and whether the
    /// attributes are all.
    #[pyo3(signature = (id, triples, stated, steps, mentions = None))]
    fn follow<'py>(
        &self,
        py: Python<'py>,
        id: &str,
        triples: &Bound<'py, PyAny>,
        stated: usize,
        steps: Steps,
        mentions: Option<Vec<MentionRow>>,
    ) -> PyResult<Followed<'py>> {
        let statements = statements_of(triples)?;
        let (triples, origins, shown, is_whole) = py.detach(|| {
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
                let told = std::iter::repeat_n(None, more.len() - origins.len());
                let told = told.chain(origins.iter().copied().map(Some));
                let told: Vec<Option<u32>> = told.collect();
                let texts = Departed::new(worker.terms(context), more.iter().copied());
                (texts, told, shown - given, is_whole)
            })
        });
        Ok((triples.objects(py)?.into_iter().zip(origins).collect(), shown, is_whole))
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
            let ids: Vec<Id> = self.shared.change(|guarded| {
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
            let stated = Stated {
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
            let held =
                self.shared.change(|guarded| Held::new(&mut guarded.state.dictionary, &stated));
            // Publications are matched by the old ontology while the new one is made.
            let ontology = Ontology::of(&self.shared.read().state.dictionary, held, stated);
            self.shared.change(|guarded| {
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
        py.detach(|| self.shared.change(change)).map_err(refused)
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
        let Some(split_by) = SplitBy::from_name(cut) else { return Ok(None) };
        if format.is_none() && !lines::may_be_lines(data) {
            return Ok(None);
        }
        let Some(syntax) = RdfFormat::from_extension(format.unwrap_or("nq")) else {
            return Ok(None);
        };
        if syntax == RdfFormat::RdfXml && !is_plain_rdf_xml(data) {
            return Ok(None);
        }
        let now = Literal::new_typed_literal(now, xsd::DATE_TIME);
        let limits = self.shared.limits;
        let options = ReaderOptions { source: source.to_owned(), split_by, base, limits };
        let (is_nothing, outcome, faults) = py.detach(|| {
            let mut reader = Reader::new(data.to_vec(), None, syntax, options);
            self.shared.with_worker(|worker| {
                let is_found = reader.next(&mut worker.publication);
                let faults = rows_of(reader.faults());
                let is_guess = format.is_none() && !faults.is_empty();
                if !is_found || is_guess || !reader.is_at_end() {
                    return Ok::<_, PyErr>((!is_found && format.is_some(), None, faults));
                }
                let guarded = self.shared.read();
                worker.publication.adopt(&guarded.state.dictionary);
                let (done, none) = (Done::default(), Arc::default());
                let outcome = self.shared.matched(guarded, worker, &now, done, &none, None)?;
                self.shared.tend(worker);
                Ok((false, Some(outcome), faults))
            })
        })?;
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
        let (Some(split_by), Some(syntax)) =
            (SplitBy::from_name(cut), RdfFormat::from_extension(format))
        else {
            return Err(PyValueError::new_err(format!("no cut {cut:?}, or no format {format:?}")));
        };
        let limits = self.shared.limits;
        let options = ReaderOptions { source, split_by, base, limits };
        let interrupted = Arc::default();
        let stream = Stream { stream, interrupted: Arc::clone(&interrupted) };
        let reader = Reader::new(Vec::new(), Some(Box::new(stream)), syntax, options);
        let reader = Mutex::new(reader);
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

/// An operator by its number, the id of a constant, and the constants that it stands for.
pub(super) type IndexChange<'py> = (usize, Id, Option<Bound<'py, PyTuple>>);

/// The constants that a term stands for, as objects.
pub(super) fn constants_of<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyTuple>> {
    let literal = values::Literal::of(text);
    let composed = literal.filter(|one| one.datatype == Some(COMPOSITION.as_bytes()));
    let Some(composed) = composed else { return PyTuple::new(py, [object_of(py, text)?]) };
    let plain = composed.plain();
    let lines = plain.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
    PyTuple::new(py, lines.map(|line| object_of(py, line)).collect::<PyResult<Vec<_>>>()?)
}

/// The number of a row, where its line would be, and its text.
pub(super) type OtherRow<'py> = (usize, usize, Bound<'py, PyBytes>);

/// Lines of N-Triples for rows of three terms, and the rows that may be none.
#[pyfunction]
pub(super) fn lines_of_rows<'py>(
    py: Python<'py>,
    rows: &[u8],
) -> (Bound<'py, PyBytes>, Vec<OtherRow<'py>>) {
    let (lines, others) = py.detach(|| lines::lines_of_rows(rows));
    let others = others.into_iter().map(|(row, at, text)| (row, at, PyBytes::new(py, text)));
    (PyBytes::new(py, &lines), others.collect())
}
