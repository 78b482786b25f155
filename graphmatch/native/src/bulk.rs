//! Subscriptions that differ in constants only: one text, and columns of constants.

use crate::dictionary::Id;
use crate::engine::{Engine, SubscribeError};
use std::borrow::Cow;
use std::ops::Range;

/// Texts one behind the other, as in Arrow.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    /// All texts.
    pub text: &'a str,
    /// The offset at which each text begins, and the end of the last one.
    pub offsets: &'a [i64],
}

impl<'a> Texts<'a> {
    /// The number of texts.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// A text by its number.
    pub fn get(&self, number: usize) -> Option<&'a str> {
        let &[begin, end] = self.offsets.get(number..number + 2)? else { return None };
        self.text.get(usize::try_from(begin).ok()?..usize::try_from(end).ok()?)
    }
}

/// The value of one constant or attribute in all rows.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// The same term in each row.
    Same(&'a str),
    /// `xsd:integer`s.
    Integers(&'a [i64]),
    /// Floating-point numbers as Python writes them: with an exponent an `xsd:double`, otherwise an
    /// `xsd:decimal`.
    Floats(&'a [f64]),
    /// Places among terms, below zero for no value.
    Places(&'a [i32], &'a [String]),
}

impl<'a> Values<'a> {
    /// The canonical N-Triples text of a row's constant; `None` if the row has no value.
    pub(crate) fn term(&self, row: usize) -> Option<Cow<'a, str>> {
        Some(match *self {
            Self::Same(term) => term.into(),
            Self::Integers(values) => {
                format!("\"{}\"^^<http://www.w3.org/2001/XMLSchema#integer>", values.get(row)?)
                    .into()
            }
            Self::Floats(values) => float(*values.get(row)?).into(),
            Self::Places(places, terms) => {
                terms.get(usize::try_from(*places.get(row)?).ok()?)?.as_str().into()
            }
        })
    }
}

/// Writes a number as Python does: the shortest digits that are read as the same number, with an
/// exponent if the number is below 10⁻⁴ or at least 10¹⁶.
fn float(value: f64) -> String {
    if !value.is_finite() {
        let text = format!("{value}").to_uppercase().replace("NAN", "NaN");
        return format!("\"{text}\"^^<http://www.w3.org/2001/XMLSchema#double>");
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) || value == 0.0 {
        let point = if value.fract() == 0.0 { ".0" } else { "" };
        return format!("\"{value}{point}\"^^<http://www.w3.org/2001/XMLSchema#decimal>");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.unsigned_abs();
    format!("\"{digits}e{sign}{exponent:02}\"^^<http://www.w3.org/2001/XMLSchema#double>")
}

/// Subscriptions as rows of constants.
pub struct SubscriptionBatch<'a> {
    /// The ids of all rows.
    pub names: Texts<'a>,
    /// A column for each constant of the text, in the order of its algebra.
    pub columns: Vec<Values<'a>>,
    /// The rows to subscribe.
    pub chosen: &'a [i64],
}

impl Engine {
    /// Adds subscriptions that have a text in common but for its constants: the chosen rows of a
    /// range. Returns the places of the refused ones among the chosen, and why.
    pub fn subscribe_batch(
        &mut self,
        text: &str,
        batch: &SubscriptionBatch,
        range: Range<usize>,
    ) -> Result<Vec<(usize, SubscribeError)>, SubscribeError> {
        let parsed = self.parse(text)?;
        let (template, constants) = self.template(parsed)?;
        if batch.columns.len() != constants.len() {
            self.templates.drop_unused(template);
            let what = "the rows have another number of constants than the text";
            return Err(SubscribeError::Full(what));
        }
        let mut refused = Vec::new();
        for place in range {
            let row = batch.chosen.get(place).and_then(|&row| usize::try_from(row).ok());
            let Some((row, name)) = row.and_then(|row| Some((row, batch.names.get(row)?))) else {
                refused.push((place, SubscribeError::Full("its row is not in the table")));
                continue;
            };
            if let Err(error) = self.subscribe_row(template, name, &batch.columns, row) {
                refused.push((place, error));
            }
        }
        self.templates.drop_unused(template);
        Ok(refused)
    }

    fn subscribe_row(
        &mut self,
        template: u32,
        name: &str,
        columns: &[Values],
        row: usize,
    ) -> Result<(), SubscribeError> {
        self.check_name(name)?;
        let terms: Option<Vec<Cow<str>>> = columns.iter().map(|column| column.term(row)).collect();
        let terms = terms.ok_or(SubscribeError::Full("it has no value for one of its tests"))?;
        let constants: Vec<Id> =
            terms.iter().map(|term| self.dictionary.intern(term.as_bytes())).collect();
        self.add_or_replace(name, template, constants, None, None).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::float;

    #[test]
    fn numbers_are_written_as_python_does() {
        let cases = [
            (0.0, "0.0", "decimal"),
            (-0.0, "-0.0", "decimal"),
            (1e-4, "0.0001", "decimal"),
            (1e-5, "1e-05", "double"),
            (123456.789, "123456.789", "decimal"),
            (1e15, "1000000000000000.0", "decimal"),
            (1e16, "1e+16", "double"),
            (-2.5e-7, "-2.5e-07", "double"),
            (f64::NAN, "NaN", "double"),
            (f64::NEG_INFINITY, "-INF", "double"),
        ];
        for (value, digits, datatype) in cases {
            let expected = format!("\"{digits}\"^^<http://www.w3.org/2001/XMLSchema#{datatype}>");
            assert_eq!(float(value), expected);
        }
    }
}
