//! The compiled core of graphmatch: from bytes to subscriptions.

mod arena;
mod compare;
pub mod dictionary;
pub mod evaluate;
pub mod graph;
mod guard;
mod join;
pub mod lines;
mod parts;
pub mod pattern;
pub mod patterns;
pub mod plan;
pub mod reader;
mod rest;
mod rewrite;
pub mod sniff;
pub mod subscriptions;

use pyo3::prelude::*;

#[pymodule]
fn _native(_module: &Bound<'_, PyModule>) -> PyResult<()> {
    Ok(())
}
