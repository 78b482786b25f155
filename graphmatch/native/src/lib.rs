//! The compiled core of graphmatch: from bytes to subscriptions.
#![allow(dead_code)]

pub mod cut;
pub mod dictionary;
mod necessary;
pub mod pattern;
pub mod query;
pub mod regex;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::module(module)
}
