//! Documents that are read, or read and matched, one publication after the other.

use super::{MatchOutcome, SharedCore, Tuple, interrupt, lock, objects, statements_with};
use crate::dictionary::{Dictionary, Terms};
use crate::fault::Fault;
use crate::functions::Moment;
use crate::limits::Limits;
use crate::matching::Progress;
use crate::publication::Publication;
use crate::reader::{Reader, ReaderOptions, split_of};
use oxrdfio::RdfFormat;
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyTuple;
use std::io::{self, Read};
use std::sync::{Arc, Mutex};

/// Maximum number of publications of one document that are matched together.
pub(super) const AHEAD: usize = 64;

/// A Python stream.
struct Stream(Py<PyAny>);

/// Makes a reader of a stream with a method `read`, in the format of an extension.
pub(super) fn reader_of(
    stream: Py<PyAny>,
    source: String,
    format: &str,
    split_by: &str,
    base: Option<String>,
    limits: Limits,
) -> PyResult<Reader> {
    let (Some(split_by), Some(syntax)) = (split_of(split_by), RdfFormat::from_extension(format))
    else {
        return Err(PyValueError::new_err(format!(
            "no split_by {split_by:?}, or no format {format:?}"
        )));
    };
    let options = ReaderOptions { source, split_by, base, limits };
    let stream = Box::new(Stream(stream));
    Ok(Python::attach(|py| py.detach(|| Reader::new(Vec::new(), Some(stream), syntax, options))))
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let read = self.0.call_method1(py, "read", (buffer.len(),)).map_err(|error| {
                if error.is_instance_of::<PyException>(py) {
                    return io::Error::other(error);
                }
                interrupt::raise(error);
                io::Error::other("reading was interrupted")
            })?;
            let bytes = read
                .extract::<PyBackedBytes>(py)
                .map_err(|_| io::Error::other("read() did not return bytes"))?;
            let length = bytes.len().min(buffer.len());
            buffer[..length].copy_from_slice(&bytes[..length]);
            Ok(length)
        })
    }
}

/// A document that is read and matched, one publication after the other.
#[pyclass(frozen, module = "graphmatch._native")]
pub(super) struct DocumentMatches {
    pub(super) shared: Arc<SharedCore>,
    pub(super) reader: Mutex<Reader>,
    /// Whether reading may have to wait for data.
    pub(super) waits: bool,
}

#[pymethods]
impl DocumentMatches {
    /// Reads and matches the next publications: one if the stream waits, otherwise several, so
    /// that threads wait less for each other. Returns reports, the last of which may be a request;
    /// the number of reports before the faults; the faults; and whether there is more.
    fn next(
        &self,
        py: Python<'_>,
        now: Moment,
    ) -> PyResult<(Vec<MatchOutcome>, usize, Vec<Fault>, bool)> {
        let most = if self.waits { 1 } else { AHEAD };
        let (found, before, faults, goes_on) = py.detach(|| {
            self.shared.with_worker(|worker| {
                let mut found = Vec::new();
                loop {
                    let mut reader = lock(&self.reader);
                    // Reading calls Python, so this thread must not have the engine's lock.
                    let is_found = reader.next(&mut worker.publication);
                    let faults = reader.faults();
                    drop(reader);
                    let before = found.len();
                    if is_found {
                        let guarded = self.shared.read();
                        worker.publication.adopt(&guarded.engine.dictionary);
                        found.push(self.shared.matched(guarded, worker, Progress::new(now))?);
                    }
                    let is_pending = !matches!(found.last(), None | Some(MatchOutcome::Report(_)));
                    if is_pending || !faults.is_empty() || !is_found || found.len() >= most {
                        return Ok::<_, PyErr>((found, before, faults, is_found));
                    }
                }
            })
        })?;
        py.detach(interrupt::check)?;
        Ok((found, before, faults, goes_on))
    }
}

// --- Publications that are only read --------------------------------------------------------------

/// The publications of a document, without a dictionary. Each distinct term of a publication becomes
/// one object of pyoxigraph.
#[pyclass(frozen, module = "graphmatch._native")]
pub(crate) struct Publications {
    /// The reader, and a buffer for publications.
    reader: Mutex<(Reader, Publication)>,
    /// Prefix of the labels of blank nodes.
    names: String,
}

#[pymethods]
impl Publications {
    /// Reads a document of a stream with a method `read`, in a syntax by its extension. One that
    /// `may_be_empty` has no fault for it.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (stream, source, format, limits, split_by, base = None, names = "", may_be_empty = false))]
    fn new(
        stream: Py<PyAny>,
        source: String,
        format: &str,
        limits: Limits,
        split_by: &str,
        base: Option<String>,
        names: &str,
        may_be_empty: bool,
    ) -> PyResult<Self> {
        let mut reader = reader_of(stream, source, format, split_by, base, limits)?;
        if may_be_empty {
            reader.allow_nothing();
        }
        let reader = Mutex::new((reader, Publication::default()));
        Ok(Self { reader, names: names.to_owned() })
    }

    /// Reads the next publication. Returns its id and triples, faults, and whether there is more.
    fn next<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Option<(String, Tuple<'py>)>, Vec<Fault>, bool)> {
        let (found, faults) = py.detach(|| {
            let (reader, publication) = &mut *lock(&self.reader);
            let found = reader.next(publication).then(|| {
                let (dictionary, local) = (&Dictionary::default(), &publication.local);
                let triples = publication.triples.iter().copied();
                (publication.id.to_string(), statements_with(Terms { dictionary, local }, triples))
            });
            (found, reader.faults())
        });
        py.detach(interrupt::check)?;
        let is_found = found.is_some();
        let found = found.map(|(id, triples)| -> PyResult<_> {
            Ok((id, PyTuple::new(py, objects(py, &triples, &self.names)?)?))
        });
        Ok((found.transpose()?, faults, is_found))
    }

    /// The prefixes that the document declares, and their namespaces, once it is read.
    fn prefixes(&self, py: Python<'_>) -> Vec<(String, String)> {
        py.detach(|| lock(&self.reader).0.prefixes().to_vec())
    }
}
