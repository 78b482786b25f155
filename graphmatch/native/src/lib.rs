//! The compiled core of graphmatch: from bytes to subscriptions.

mod block;
mod columns;
mod conjunction;
pub mod dictionary;
pub mod filter;
pub mod pattern;
pub mod predicates;
pub mod text;
pub mod values;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
