//! The publications of a document for Python, with pyoxigraph's terms.
//!
//! Documents are read as for matching ([`crate::reader`]), without a dictionary. Each distinct term
//! of a publication becomes one object.

use super::document::{Interrupt, reader_of};
use super::lock;
use super::terms::object_named;
use crate::dictionary::{Id, LOCAL};
use crate::fault::Fault;
use crate::limits::Limits;
use crate::publication::Publication;
use crate::reader::Reader;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::sync::Mutex;

/// The publications of a document, one after the other.
#[pyclass(frozen, module = "graphmatch._native")]
pub(crate) struct Publications {
    /// The reader, and a buffer for publications.
    reader: Mutex<(Reader, Publication)>,
    /// Prefix of the labels of blank nodes.
    names: String,
    interrupt: Interrupt,
}

#[pymethods]
impl Publications {
    /// Reads a document of a stream with a method `read`, in a syntax by its extension. One that
    /// `may_be_empty` has no fault for it.
    #[new]
    #[expect(clippy::too_many_arguments, reason = "keywords for Python")]
    #[pyo3(signature = (stream, source, format, limits, cut, base = None, names = "", may_be_empty = false))]
    fn new(
        stream: Py<PyAny>,
        source: String,
        format: &str,
        limits: Limits,
        cut: &str,
        base: Option<String>,
        names: &str,
        may_be_empty: bool,
    ) -> PyResult<Self> {
        let (mut reader, interrupt) = reader_of(stream, source, format, cut, base, limits)?;
        if may_be_empty {
            reader.allow_nothing();
        }
        let reader = Mutex::new((reader, Publication::default()));
        Ok(Self { reader, names: names.to_owned(), interrupt })
    }

    /// Reads the next publication. Returns its id and triples, faults, and whether there is more.
    fn next<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Option<(String, Bound<'py, PyTuple>)>, Vec<Fault>, bool)> {
        let (is_found, publication, faults) = py.detach(|| {
            let mut guarded = lock(&self.reader);
            let (reader, memory) = &mut *guarded;
            let mut publication = std::mem::take(memory);
            let is_found = reader.next(&mut publication);
            (is_found, publication, reader.faults())
        });
        if let Some(error) = lock(&self.interrupt).take() {
            return Err(error);
        }
        let found = is_found.then(|| -> PyResult<_> {
            Ok((publication.id.to_string(), triples_of(py, &publication, &self.names)?))
        });
        let found = found.transpose()?;
        py.detach(|| lock(&self.reader).1 = publication);
        Ok((found, faults, is_found))
    }

    /// The prefixes that the document declares, and their namespaces, once it is read.
    fn prefixes(&self, py: Python<'_>) -> Vec<(String, String)> {
        py.detach(|| lock(&self.reader).0.prefixes().to_vec())
    }
}

/// The triples of a publication whose terms are all its own.
fn triples_of<'py>(
    py: Python<'py>,
    publication: &Publication,
    names: &str,
) -> PyResult<Bound<'py, PyTuple>> {
    let terms = (0..publication.local.len() as Id)
        .map(|number| object_named(py, publication.local.text(LOCAL + number), names))
        .collect::<PyResult<Vec<_>>>()?;
    let triples = publication
        .triples
        .iter()
        .map(|triple| PyTuple::new(py, triple.map(|id| &terms[(id - LOCAL) as usize])));
    PyTuple::new(py, triples.collect::<PyResult<Vec<_>>>()?)
}
