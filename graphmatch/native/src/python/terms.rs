//! Terms between Python and the core: pyoxigraph's objects and canonical N-Triples texts.

use super::Object;
use crate::lexical::{add, read_term, write_quoted};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{BaseDirection, Literal, Term};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyString, PyType};

/// pyoxigraph's classes of terms.
#[derive(FromPyObject)]
#[pyo3(rename_all = "PascalCase")]
struct Classes {
    named_node: Py<PyType>,
    blank_node: Py<PyType>,
    literal: Py<PyType>,
    triple: Py<PyType>,
    base_direction: Py<PyType>,
    variable: Py<PyType>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&Classes> {
    CLASSES.get_or_try_init(py, || py.import("pyoxigraph")?.extract())
}

/// Appends the canonical N-Triples text of one of pyoxigraph's terms: what `str` gives, but faster,
/// and with the marks of triple terms, which `str` leaves out.
pub fn write_text(term: &Object<'_>, to: &mut Vec<u8>) -> PyResult<()> {
    let (py, class) = (term.py(), term.get_type());
    let classes = classes(py)?;
    if class.is(&classes.triple) {
        add(to, ["<<( ", term.str()?.to_str()?, " )>>"]);
        return Ok(());
    }
    let value = term.getattr(intern!(py, "value"))?;
    let value = value.cast::<PyString>()?.to_str()?;
    if class.is(&classes.named_node) {
        add(to, ["<", value, ">"]);
    } else if class.is(&classes.blank_node) {
        add(to, ["_:", value]);
    } else {
        let language = term.getattr(intern!(py, "language"))?;
        let datatype = term.getattr(intern!(py, "datatype"))?.getattr(intern!(py, "value"))?;
        let datatype = datatype.cast::<PyString>()?.to_str()?;
        if datatype == rdf::DIR_LANG_STRING.as_str() {
            add(to, [term.str()?.to_str()?]);
            return Ok(());
        }
        write_quoted(to, value);
        if !language.is_none() {
            add(to, ["@", language.cast::<PyString>()?.to_str()?]);
        } else if datatype != xsd::STRING.as_str() {
            add(to, ["^^<", datatype, ">"]);
        }
    }
    Ok(())
}

/// pyoxigraph's object of a canonical N-Triples text.
pub fn object_of<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Object<'py>> {
    object_named(py, text, "")
}

/// The same, with a prefix for the labels of blank nodes.
pub fn object_named<'py>(py: Python<'py>, text: &[u8], prefix: &str) -> PyResult<Object<'py>> {
    let text =
        std::str::from_utf8(text).map_err(|error| PyValueError::new_err(error.to_string()))?;
    let term = read_term(text).ok_or_else(|| PyValueError::new_err("not a term"))?;
    term_object(py, &term, prefix)
}

/// pyoxigraph's variable of a name.
pub fn variable_object<'py>(py: Python<'py>, name: &str) -> PyResult<Object<'py>> {
    classes(py)?.variable.bind(py).call1((name,))
}

/// pyoxigraph's object of a term, with something before the names of blank nodes.
fn term_object<'py>(py: Python<'py>, term: &Term, names: &str) -> PyResult<Object<'py>> {
    let classes = classes(py)?;
    match term {
        Term::NamedNode(node) => classes.named_node.bind(py).call1((node.as_str(),)),
        Term::BlankNode(node) => {
            classes.blank_node.bind(py).call1((format!("{names}{}", node.as_str()),))
        }
        Term::Literal(literal) => literal_object(py, classes, literal),
        Term::Triple(triple) => {
            let subject = term_object(py, &triple.subject.clone().into(), names)?;
            let predicate = term_object(py, &triple.predicate.clone().into(), names)?;
            let object = term_object(py, &triple.object, names)?;
            classes.triple.bind(py).call1((subject, predicate, object))
        }
    }
}

fn literal_object<'py>(
    py: Python<'py>,
    classes: &Classes,
    literal: &Literal,
) -> PyResult<Object<'py>> {
    let class = classes.literal.bind(py);
    if literal.datatype() == xsd::STRING {
        return class.call1((literal.value(),));
    }
    let options = PyDict::new(py);
    if let Some(language) = literal.language() {
        options.set_item("language", language)?;
        if let Some(direction) = literal.direction() {
            let name = if direction == BaseDirection::Ltr { "LTR" } else { "RTL" };
            options.set_item("direction", classes.base_direction.bind(py).getattr(name)?)?;
        }
    } else {
        let datatype = classes.named_node.bind(py).call1((literal.datatype().as_str(),))?;
        options.set_item("datatype", datatype)?;
    }
    class.call((literal.value(),), Some(&options))
}

/// pyoxigraph's object of a canonical N-Triples text.
#[pyfunction]
pub(super) fn term<'py>(py: Python<'py>, text: &str) -> PyResult<Object<'py>> {
    object_of(py, text.as_bytes())
}
