//! The compiled core of graphmatch: from bytes to subscriptions.

mod algebra;
mod arena;
pub mod attributes;
mod block;
mod bounded;
pub mod closing;
mod conjunction;
pub mod cut;
pub mod dictionary;
pub mod engine;
pub mod evaluate;
pub mod events;
pub mod filter;
pub mod graph;
mod guard;
pub mod hierarchy;
pub mod index;
mod interner;
mod join;
pub mod limits;
pub mod lines;
pub mod matching;
pub mod mentions;
pub mod names;
mod necessary;
mod objects;
pub mod ontology;
#[cfg(test)]
mod ontology_tests;
pub mod pattern;
pub mod patterns;
pub mod plan;
pub mod predicates;
pub mod python;
pub mod query;
mod questions;
pub mod reader;
mod regex;
mod rest;
mod rewrite;
mod rules;
pub mod schema;
pub mod snapshot;
pub mod subscriptions;
mod templates;
mod terms;
pub mod text;
pub mod triples;
pub mod values;
mod view;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::module(module)
}
