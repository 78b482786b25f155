//! The compiled core of graphmatch: from bytes to subscriptions.

pub mod dictionary;
pub mod pattern;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
