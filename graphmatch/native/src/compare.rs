//! The function that comparisons with quantities are written as, `gm:compare(left, "<", right)`.
//!
//! By the time it is asked, quantities are in base units: two quantities of one unit, or two plain
//! numbers where the attribute has a base unit, are compared. Anything else is an error, as between
//! foreign datatypes in SPARQL.

use oxrdf::{Literal, vocab::xsd};
use oxsdatatypes::{Decimal, Double, Float, Integer};
use std::cmp::Ordering;

const QUANTITIES: &str = "https://w3id.org/cdt/";
const UNIT: &str = "https://w3id.org/cdt/ucumunit";
const DIGITS: usize = 160;

/// Whether a comparison holds between two literals; `None` is an error.
pub(crate) fn compare(left: &Literal, operator: &str, right: &Literal) -> Option<bool> {
    let order = match (quantity(left), quantity(right)) {
        (Some((number, unit)), Some((other, of))) if unit == of => Some(number.cmp(&other)),
        (None, None) => Number::of(left)?.order(&Number::of(right)?),
        _ => return None,
    };
    Some(match operator {
        "=" => order == Some(Ordering::Equal),
        "!=" => order != Some(Ordering::Equal),
        "<" => order == Some(Ordering::Less),
        "<=" => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        ">" => order == Some(Ordering::Greater),
        ">=" => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        _ => return None,
    })
}

/// The number and the unit of a quantity.
fn quantity(literal: &Literal) -> Option<(Exact, &str)> {
    let datatype = literal.datatype();
    if !datatype.as_str().starts_with(QUANTITIES) || datatype.as_str() == UNIT {
        return None;
    }
    let text = literal.value().trim();
    let (number, rest) = Exact::read(text)?;
    let unit = rest.trim_start();
    let apart = rest.len() > unit.len() || !unit.starts_with(['e', 'E', '+', '-', '.']);
    (apart && !unit.is_empty()).then_some((number, unit))
}

/// A decimal number of any size.
#[derive(PartialEq, Eq)]
struct Exact {
    negative: bool,
    /// How many places before the point the first digit is.
    magnitude: i64,
    /// Without zeros at either end; none of zero.
    digits: Vec<u8>,
}

impl Exact {
    /// The number that a text begins with, and what follows.
    fn read(text: &str) -> Option<(Self, &str)> {
        let bytes = text.as_bytes();
        let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
        let mut at = usize::from(text.starts_with(['+', '-']));
        let (begin, mut digits, mut whole) = (at, Vec::new(), None);
        while is_digit(at) || bytes.get(at) == Some(&b'.') && whole.is_none() {
            match bytes[at] {
                b'.' => whole = Some(digits.len()),
                digit => digits.push(digit),
            }
            at += 1;
        }
        if digits.is_empty() || at - begin > DIGITS {
            return None;
        }
        let mut exponent = 0;
        if matches!(bytes.get(at), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
            let first = at + 1 + sign;
            let mut end = first;
            while is_digit(end) && end - first < 3 {
                end += 1;
            }
            if end > first {
                exponent = text.get(at + 1..end)?.parse().ok()?;
                at = end;
            }
        }
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        let magnitude = whole.unwrap_or(digits.len()) as i64 - zeros as i64 + exponent;
        digits.drain(..zeros);
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        let negative = bytes[0] == b'-' && !digits.is_empty();
        let magnitude = if digits.is_empty() { 0 } else { magnitude };
        Some((Self { negative, magnitude, digits }, text.get(at..)?))
    }
}

impl Ord for Exact {
    fn cmp(&self, other: &Self) -> Ordering {
        let size = || match (self.digits.is_empty(), other.digits.is_empty()) {
            (false, false) => (self.magnitude, &self.digits).cmp(&(other.magnitude, &other.digits)),
            (empty, other_empty) => other_empty.cmp(&empty),
        };
        match (self.negative, other.negative) {
            (false, false) => size(),
            (true, true) => size().reverse(),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A plain number, as SPARQL promotes it.
#[derive(Clone, Copy)]
enum Number {
    Integer(Integer),
    Decimal(Decimal),
    Float(Float),
    Double(Double),
}

impl Number {
    fn of(literal: &Literal) -> Option<Self> {
        let text = literal.value();
        match literal.datatype() {
            xsd::DECIMAL => text.parse().ok().map(Self::Decimal),
            xsd::FLOAT => text.parse().ok().map(Self::Float),
            xsd::DOUBLE => text.parse().ok().map(Self::Double),
            xsd::INTEGER
            | xsd::LONG
            | xsd::INT
            | xsd::SHORT
            | xsd::BYTE
            | xsd::NON_NEGATIVE_INTEGER
            | xsd::POSITIVE_INTEGER
            | xsd::NON_POSITIVE_INTEGER
            | xsd::NEGATIVE_INTEGER
            | xsd::UNSIGNED_LONG
            | xsd::UNSIGNED_INT
            | xsd::UNSIGNED_SHORT
            | xsd::UNSIGNED_BYTE => text.parse().ok().map(Self::Integer),
            _ => None,
        }
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.partial_cmp(b),
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                self.double().partial_cmp(&other.double())
            }
            (Self::Float(_), _) | (_, Self::Float(_)) => self.float().partial_cmp(&other.float()),
            _ => self.decimal()?.partial_cmp(&other.decimal()?),
        }
    }

    fn decimal(self) -> Option<Decimal> {
        match self {
            Self::Integer(value) => Some(value.into()),
            Self::Decimal(value) => Some(value),
            _ => None,
        }
    }

    fn float(self) -> Float {
        match self {
            Self::Integer(value) => value.into(),
            Self::Decimal(value) => value.into(),
            Self::Float(value) => value,
            Self::Double(value) => value.into(),
        }
    }

    fn double(self) -> Double {
        match self {
            Self::Integer(value) => value.into(),
            Self::Decimal(value) => value.into(),
            Self::Float(value) => value.into(),
            Self::Double(value) => value,
        }
    }
}
