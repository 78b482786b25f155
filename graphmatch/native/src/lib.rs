//! The compiled core of graphmatch: from bytes to subscriptions.

pub mod dictionary;
pub mod guard;
pub mod lines;
pub mod parts;
pub mod pattern;
pub mod reader;
pub mod sniff;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
