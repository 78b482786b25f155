//! Triples of events, as texts: from dictionaries and from columns.
//!
//! `semantic.attributes` defines the terms of values. This module reads plain names, strings,
//! numbers and IRIs. Python reads an event that has other values: lists, objects, dates, quantities,
//! names with a prefix.
//!
//! A value costs some ten nanoseconds and no Python object.

use crate::attribute_names::{ATTRIBUTE, ATTRIBUTE_STEPS};
use crate::columns::Values;
use crate::lexical::write_quoted;
use oxiri::Iri;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt, PyString};

/// The terms of triples, as texts in one buffer.
#[derive(Default)]
pub struct Statements {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Statements {
    /// Removes all triples.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// The number of triples.
    pub fn len(&self) -> usize {
        self.ends.len() / 3
    }

    /// Adds a term.
    pub fn push(&mut self, text: &[u8]) {
        self.bytes.extend_from_slice(text);
        self.end_term();
    }

    /// The buffer to which the caller appends the next term, before [`Statements::end_term`].
    pub fn begin_term(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Ends the term that was appended.
    pub fn end_term(&mut self) {
        self.ends.push(self.bytes.len());
    }

    /// Adds a term once more: the one so many terms before the end.
    pub fn repeat(&mut self, back: usize) {
        let place = self.ends.len() - back;
        let begin = if place == 0 { 0 } else { self.ends[place - 1] };
        self.bytes.extend_from_within(begin..self.ends[place]);
        self.end_term();
    }

    /// The terms.
    pub fn terms(&self) -> impl Iterator<Item = &[u8]> {
        let mut begin = 0;
        self.ends.iter().map(move |&end| {
            let text = &self.bytes[begin..end];
            begin = end;
            text
        })
    }

    /// Adds the triples of a dictionary of attributes; returns whether it could read all values.
    pub fn push_event(&mut self, id: &str, attributes: &Bound<'_, PyDict>) -> PyResult<bool> {
        let subject = subject(id);
        for (name, value) in attributes {
            let Ok(name) = name.cast_exact::<PyString>() else { return Ok(false) };
            let is_begun = name.to_str().is_ok_and(|name| self.begin(&subject, name));
            if !is_begun || !self.push_value(&value)? {
                return Ok(false);
            }
        }
        Ok(self.len() > 0)
    }

    /// Adds a string, a number or the IRI of an object `{"iri": …}`; returns false for others.
    fn push_value(&mut self, value: &Bound<'_, PyAny>) -> PyResult<bool> {
        Ok(if let Ok(text) = value.cast_exact::<PyString>() {
            text.to_str().is_ok_and(|text| self.push_text(text))
        } else if value.is_exact_instance_of::<PyInt>() {
            value.extract().is_ok_and(|number| self.push_number(&Values::Integers(&[number]), 0))
        } else if let Ok(number) = value.cast_exact::<PyFloat>() {
            self.push_number(&Values::Floats(&[number.value()]), 0)
        } else if let Ok(object) = value.cast_exact::<PyDict>()
            && object.len() == 1
            && let Some(iri) = object.get_item("iri")?
            && let Ok(iri) = iri.cast_exact::<PyString>()
        {
            iri.to_str().is_ok_and(|iri| self.push_name(iri))
        } else {
            false
        })
    }

    /// Adds a string; returns false if it may be a date.
    fn push_text(&mut self, text: &str) -> bool {
        write_quoted(&mut self.bytes, text);
        self.end_term();
        text.chars().nth(4) != Some('-')
    }

    /// Adds an IRI; returns false if it may have a prefix. It has none if it begins with `urn:`, or
    /// with a scheme and two slashes.
    fn push_name(&mut self, iri: &str) -> bool {
        self.push(format!("<{iri}>").as_bytes());
        let is_long = |(scheme, rest): (&str, &str)| scheme == "urn" || rest.starts_with("//");
        iri.split_once(':').is_some_and(is_long) && Iri::parse(iri).is_ok()
    }

    /// Adds a value of a column; false if there is none, or it is a number that does not compare.
    fn push_number(&mut self, values: &Values, row: usize) -> bool {
        let Some(term) = values.term(row) else { return false };
        self.push(term.as_bytes());
        !matches!(values, Values::Floats(all) if all.get(row).is_none_or(|one| !one.is_finite()))
    }

    /// Adds a subject and the property of an attribute; returns false if its name is not plain.
    fn begin(&mut self, subject: &[u8], path: &str) -> bool {
        let is_plain = |step: &str| {
            let is_kept = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
            !step.is_empty() && step.bytes().all(is_kept)
        };
        if !path.split('.').all(is_plain) || path.split('.').count() > ATTRIBUTE_STEPS {
            return false;
        }
        self.push(subject);
        self.bytes.extend_from_slice(ATTRIBUTE);
        self.bytes.extend_from_slice(path.as_bytes());
        self.push(b">");
        true
    }

    /// Adds the triples of a row; returns whether it could read all values.
    pub fn push_row(&mut self, id: &str, row: usize, attributes: &[Attribute]) -> bool {
        let subject = subject(id);
        for attribute in attributes {
            if attribute.valid.is_some_and(|valid| valid.get(row) != Some(&true)) {
                continue;
            }
            self.push(&subject);
            self.push(attribute.property.as_bytes());
            let is_read = match &attribute.values {
                Values::Texts(texts, false) => self.push_text(texts.get(row).unwrap_or_default()),
                Values::Texts(texts, true) => self.push_name(texts.get(row).unwrap_or_default()),
                numbers => self.push_number(numbers, row),
            };
            if !is_read {
                return false;
            }
        }
        self.len() > 0
    }
}

/// A column of events.
pub struct Attribute<'a> {
    /// The property in N-Triples.
    pub property: &'a str,
    /// The values of the rows.
    pub values: Values<'a>,
    /// Whether each row has a value; by default all have.
    pub valid: Option<&'a [bool]>,
}

/// The subject of an event: its id if that is an IRI, and a blank node otherwise.
fn subject(id: &str) -> Vec<u8> {
    if Iri::parse(id).is_ok() { format!("<{id}>").into_bytes() } else { b"_:event".to_vec() }
}
