//! The compiled core of graphmatch: from bytes to subscriptions.

mod arena;
pub mod dictionary;
pub mod graph;
mod join;
pub mod pattern;
pub mod patterns;
pub mod plan;
pub mod subscriptions;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
