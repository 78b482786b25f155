//! The compiled core of graphmatch: from bytes to subscriptions.
#![allow(dead_code)]

pub mod attributes;
pub mod closing;
pub mod dictionary;
pub mod hierarchy;
pub mod mentions;
pub mod names;
pub mod ontology;
#[cfg(test)]
mod ontology_tests;
pub mod pattern;
mod rules;
pub mod schema;
pub mod triples;
pub mod walk;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::module(module)
}
