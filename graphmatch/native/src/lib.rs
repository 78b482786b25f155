//! The compiled core of graphmatch: from bytes to subscriptions.

mod bounded;
mod compare;
pub mod dictionary;
pub mod evaluate;
pub mod pattern;
pub mod rest;
mod rewrite;
mod terms;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
