//! The compiled core of graphmatch: from bytes to subscriptions.

pub mod compare;
pub mod dictionary;
pub mod evaluate;
pub mod pattern;
pub mod rest;
mod rewrite;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
