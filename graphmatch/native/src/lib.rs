//! The compiled core of graphmatch: from bytes to subscriptions.

mod algebra;
mod annotation;
mod arena;
mod attribute_names;
mod attributes;
mod bounded;
mod branch;
mod bulk;
mod columns;
mod delta;
mod demand;
mod dictionary;
mod engine;
mod evaluate;
mod events;
mod fault;
mod filter;
mod functions;
mod graph;
mod hierarchy;
mod history;
mod index;
mod interner;
mod join;
mod lexical;
mod limits;
mod matching;
mod materialize;
mod ntriples;
mod ontology;
#[cfg(test)]
mod ontology_tests;
mod operator_index;
mod operators;
mod parameterize;
mod plan;
mod postings;
mod precheck;
mod predicates;
mod publication;
mod python;
mod query;
mod query_analysis;
mod query_error;
mod reader;
mod regex;
mod rewrite;
mod rules;
mod scan;
mod schema;
mod snapshot;
mod subscriptions;
mod taxonomy;
mod templates;
mod text;
mod triples;
mod values;
mod writer;

/// Appends an item that a list does not have.
fn push_new<T: PartialEq>(list: &mut Vec<T>, item: T) {
    if !list.contains(&item) {
        list.push(item);
    }
}
