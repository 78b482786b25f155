//! The compiled core of graphmatch: from bytes to subscriptions.


#![allow(dead_code)]
mod arena;
pub mod dictionary;
pub mod pattern;
pub mod subscriptions;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
