//! The compiled core of graphmatch: from bytes to subscriptions.

mod algebra;
mod arena;
mod attributes;
mod bounded;
mod cut;
mod demand;
mod dictionary;
mod engine;
mod evaluate;
mod events;
mod filter;
mod functions;
mod graph;
mod guard;
mod hierarchy;
mod index;
mod indexed;
mod interner;
mod join;
mod limits;
mod lines;
mod matching;
mod materialize;
mod names;
mod necessary;
mod objects;
mod ontology;
#[cfg(test)]
mod ontology_tests;
mod operators;
mod pattern;
mod patterns;
mod plan;
mod predicates;
mod publications;
mod python;
mod query;
mod questions;
mod reader;
mod regex;
mod rest;
mod rewrite;
mod rules;
mod schema;
mod snapshot;
mod subscriptions;
mod templates;
mod terms;
mod text;
mod triples;
mod values;
mod view;
mod waiting;

use pyo3::prelude::*;

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    python::module(module)
}
