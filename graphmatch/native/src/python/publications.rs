//! The publications of a document for Python, with pyoxigraph's terms.
//!
//! Documents are read as for matching ([`crate::reader`]), without a dictionary. Each distinct term
//! of a publication becomes one object.

use super::document::reader_of;
use super::{Tuple, interrupt, lock, objects, statements_with};
use crate::dictionary::{Dictionary, Terms};
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
