//! The compiled core of graphmatch: from bytes to subscriptions.
#![allow(dead_code)]

pub mod columns;
pub mod dictionary;
pub mod filter;
pub mod pattern;
pub mod predicates;
pub mod text;
pub mod values;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::module(module)
}
