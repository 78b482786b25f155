//! Columns of tables: one parameter of subscriptions, or one attribute of events, in all rows.

use oxiri::Iri;
use oxrdf::Term;
use std::borrow::Cow;
use std::str::FromStr;

/// Texts end to end in one buffer, with their offsets, as in Arrow.
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

/// The values of one parameter or attribute in all rows.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// Texts, and whether these are IRIs. Those of parameters are terms in N-Triples syntax.
    Texts(Texts<'a>, bool),
    /// `xsd:integer`s.
    Integers(&'a [i64]),
    /// Floating-point numbers with the digits that Python writes. NaN, infinity and numbers with an
    /// exponent are `xsd:double`s, the others `xsd:decimal`s.
    Floats(&'a [f64]),
    /// Places among canonical N-Triples texts, below zero for no value.
    Places(&'a [i32], &'a [String]),
}

impl<'a> Values<'a> {
    /// The canonical N-Triples text of a row's term; `None` if the row has none.
    pub(crate) fn term(&self, row: usize) -> Option<Cow<'a, str>> {
        Some(match *self {
            Self::Texts(texts, _) => {
                let text = texts.get(row)?;
                let iri = text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
                if iri.is_some_and(|iri| Iri::parse(iri).is_ok()) {
                    return Some(text.into());
                }
                Term::from_str(text).ok()?.to_string().into()
            }
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
    if (-4..16).contains(&exponent) {
        let point = if value.fract() == 0.0 { ".0" } else { "" };
        return format!("\"{value}{point}\"^^<http://www.w3.org/2001/XMLSchema#decimal>");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.unsigned_abs();
    format!("\"{digits}e{sign}{exponent:02}\"^^<http://www.w3.org/2001/XMLSchema#double>")
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
