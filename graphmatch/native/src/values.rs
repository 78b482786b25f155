//! The values of literals, and comparison by value as SPARQL's operators do it.
//!
//! A term's text is parsed into a [`Value`] without allocating. [`compare`] gives the answer of
//! `spareval`, errors included, and knows quantities (numbers with units) besides. [`Order`] puts
//! comparable values on a line of `f64`, so that most comparisons in the predicate tables are those
//! of machine numbers: where two orders do not overlap, they decide; otherwise [`compare`] does.
//!
//! Source: SPARQL 1.1 section 17.3 (operator mapping), XPath functions section 6.2 (numeric
//! promotion), XML Schema part 2 section 3.2.7 (order of dateTime).

use crate::dictionary::{Dictionary, Id, Kind, inline};
use crate::lexical::unescape;
use crate::pattern::Comparison;
use oxrdf::{Dataset, GraphName, NamedNode, Quad, Term};
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Decimal, Double, Duration, Float, GDay, GMonth, GMonthDay,
    GYear, GYearMonth, Integer, Time, YearMonthDuration,
};
use spareval::{QueryEvaluator, QueryResults};
use spargebra::SparqlParser;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::mem::discriminant;
use std::str::FromStr;

const XSD: &[u8] = b"http://www.w3.org/2001/XMLSchema#";
const CDT: &[u8] = b"https://w3id.org/cdt/";
/// The most digits of a quantity's number.
const QUANTITY_DIGITS: usize = 130;

/// A literal's text in its three parts, escapes untouched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Literal<'a> {
    /// What stands between the quotation marks, with escapes.
    pub lexical: &'a [u8],
    /// The language tag, with the base direction if there is one: `en`, `ar--rtl`.
    pub tag: Option<&'a [u8]>,
    /// The datatype's IRI; none for strings with a language tag or without.
    pub datatype: Option<&'a [u8]>,
}

impl<'a> Literal<'a> {
    /// The parts of a literal's canonical text; nothing for other terms.
    pub fn of(text: &'a [u8]) -> Option<Self> {
        let rest = text.strip_prefix(b"\"")?;
        let end = memchr::memrchr(b'"', rest)?;
        let (lexical, suffix) = (&rest[..end], &rest[end + 1..]);
        let datatype = suffix.strip_prefix(b"^^<").and_then(|s| s.strip_suffix(b">"));
        Some(Self { lexical, tag: suffix.strip_prefix(b"@"), datatype })
    }

    /// The lexical form without escapes.
    pub fn plain(&self) -> Cow<'a, [u8]> {
        unescape(self.lexical)
    }

    /// The language tag without the base direction.
    pub fn language(&self) -> Option<&'a [u8]> {
        let tag = self.tag?;
        Some(memchr::memmem::find(tag, b"--").map_or(tag, |end| &tag[..end]))
    }
}

/// A value that is compared as such, and not as a text.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// `xsd:boolean`
    Boolean(bool),
    /// `xsd:integer` and what is derived from it
    Integer(Integer),
    /// `xsd:decimal`
    Decimal(Decimal),
    /// `xsd:float`
    Float(Float),
    /// `xsd:double`
    Double(Double),
    /// `xsd:dateTime`, `xsd:dateTimeStamp`
    DateTime(DateTime),
    /// `xsd:date`
    Date(Date),
    /// `xsd:time`
    Time(Time),
    /// `xsd:gYearMonth`
    YearMonth(GYearMonth),
    /// `xsd:gYear`
    Year(GYear),
    /// `xsd:gMonthDay`
    MonthDay(GMonthDay),
    /// `xsd:gDay`
    Day(GDay),
    /// `xsd:gMonth`
    Month(GMonth),
    /// `xsd:duration`
    Duration(Duration),
    /// `xsd:yearMonthDuration`
    Months(YearMonthDuration),
    /// `xsd:dayTimeDuration`
    Seconds(DayTimeDuration),
}

impl Scalar {
    /// The value of a lexical form; nothing where it is not of the datatype's lexical space, or
    /// the datatype is not known.
    fn of(lexical: &[u8], datatype: &[u8]) -> Option<Self> {
        fn parsed<T: FromStr>(text: &[u8]) -> Option<T> {
            std::str::from_utf8(text).ok()?.parse().ok()
        }
        let text = lexical;
        Some(match datatype.strip_prefix(XSD)? {
            b"integer"
            | b"int"
            | b"long"
            | b"short"
            | b"byte"
            | b"nonNegativeInteger"
            | b"positiveInteger"
            | b"nonPositiveInteger"
            | b"negativeInteger"
            | b"unsignedInt"
            | b"unsignedLong"
            | b"unsignedShort"
            | b"unsignedByte" => Self::Integer(parsed(text)?),
            b"decimal" => Self::Decimal(parsed(text)?),
            b"double" => Self::Double(parsed(text)?),
            b"float" => Self::Float(parsed(text)?),
            b"boolean" => Self::Boolean(parsed::<oxsdatatypes::Boolean>(text)?.into()),
            b"dateTime" | b"dateTimeStamp" => Self::DateTime(parsed(text)?),
            b"date" => Self::Date(parsed(text)?),
            b"time" => Self::Time(parsed(text)?),
            b"gYearMonth" => Self::YearMonth(parsed(text)?),
            b"gYear" => Self::Year(parsed(text)?),
            b"gMonthDay" => Self::MonthDay(parsed(text)?),
            b"gDay" => Self::Day(parsed(text)?),
            b"gMonth" => Self::Month(parsed(text)?),
            b"duration" => Self::Duration(parsed(text)?),
            b"yearMonthDuration" => Self::Months(parsed(text)?),
            b"dayTimeDuration" => Self::Seconds(parsed(text)?),
            _ => return None,
        })
    }

    /// The value of a number that is its own id.
    pub fn of_inline(id: Id) -> Option<Self> {
        let (digits, places) = inline::number(id)?;
        if places == 0 {
            return Some(Self::Integer(digits.into()));
        }
        Decimal::new(digits.into(), places).ok().map(Self::Decimal)
    }

    /// The place in the order of promotion, for numbers.
    fn rank(&self) -> Option<u8> {
        match self {
            Self::Integer(_) => Some(0),
            Self::Decimal(_) => Some(1),
            Self::Float(_) => Some(2),
            Self::Double(_) => Some(3),
            _ => None,
        }
    }

    fn decimal(&self) -> Decimal {
        match *self {
            Self::Integer(value) => value.into(),
            Self::Decimal(value) => value,
            _ => Decimal::default(),
        }
    }

    fn float(&self) -> Float {
        match *self {
            Self::Integer(value) => value.into(),
            Self::Decimal(value) => value.into(),
            Self::Float(value) => value,
            Self::Double(value) => value.into(),
            _ => Float::default(),
        }
    }

    fn double(&self) -> Double {
        match *self {
            Self::Integer(value) => value.into(),
            Self::Decimal(value) => value.into(),
            Self::Float(value) => value.into(),
            Self::Double(value) => value,
            _ => Double::default(),
        }
    }

    fn duration(&self) -> Option<Duration> {
        match *self {
            Self::Duration(value) => Some(value),
            Self::Months(value) => Some(value.into()),
            Self::Seconds(value) => Some(value.into()),
            _ => None,
        }
    }

    /// The same value of the same type: bit by bit for `xsd:float` and `xsd:double`.
    fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.is_identical_with(*b),
            (Self::Double(a), Self::Double(b)) => a.is_identical_with(*b),
            _ => discriminant(self) == discriminant(other) && self.equals(other),
        }
    }

    fn equals(&self, other: &Self) -> bool {
        if let (Self::Boolean(a), Self::Boolean(b)) = (self, other) {
            return a == b;
        }
        match (self.duration(), other.duration()) {
            (Some(a), Some(b)) => a == b,
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }

    fn numeric_order(&self, other: &Self) -> Option<Ordering> {
        match self.rank()?.max(other.rank()?) {
            0 | 1 => match (self, other) {
                (Self::Integer(a), Self::Integer(b)) => a.partial_cmp(b),
                _ => self.decimal().partial_cmp(&other.decimal()),
            },
            2 => self.float().partial_cmp(&other.float()),
            _ => self.double().partial_cmp(&other.double()),
        }
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::DateTime(a), Self::DateTime(b)) => a.partial_cmp(b),
            (Self::Date(a), Self::Date(b)) => a.partial_cmp(b),
            (Self::Time(a), Self::Time(b)) => a.partial_cmp(b),
            (Self::YearMonth(a), Self::YearMonth(b)) => a.partial_cmp(b),
            (Self::Year(a), Self::Year(b)) => a.partial_cmp(b),
            (Self::MonthDay(a), Self::MonthDay(b)) => a.partial_cmp(b),
            (Self::Day(a), Self::Day(b)) => a.partial_cmp(b),
            (Self::Month(a), Self::Month(b)) => a.partial_cmp(b),
            (Self::Months(a), Self::Months(b)) => a.partial_cmp(b),
            (Self::Seconds(a), Self::Seconds(b)) => a.partial_cmp(b),
            _ => match (self.duration(), other.duration()) {
                (Some(a), Some(b)) => a.partial_cmp(&b),
                _ => self.numeric_order(other),
            },
        }
    }
}

/// What a term stands for when it is compared.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// An IRI, a blank node, or a string with a language tag: equal to itself only.
    Identity(&'a [u8]),
    /// A string without a language tag.
    String(&'a [u8]),
    /// A value of a known datatype.
    Scalar(Scalar),
    /// A literal of another datatype, or whose lexical form is wrong.
    Foreign(&'a [u8]),
    /// A triple term.
    Triple(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The value of a term by its canonical text.
    pub fn of(text: &'a [u8]) -> Self {
        match Kind::of(text) {
            Kind::Iri | Kind::Blank => Self::Identity(text),
            Kind::Triple => Self::Triple(text),
            Kind::Literal => match Literal::of(text) {
                Some(Literal { lexical, datatype: Some(datatype), .. }) => {
                    Scalar::of(lexical, datatype).map_or(Self::Foreign(text), Self::Scalar)
                }
                Some(Literal { tag: Some(_), .. }) => Self::Identity(text),
                Some(Literal { lexical, .. }) => Self::String(lexical),
                None => Self::Foreign(text),
            },
        }
    }

    /// Whether it is a number, without a unit.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Scalar(scalar) if scalar.rank().is_some())
    }
}

/// Whether `left operator right` is true; nothing is a type error.
///
/// Where the right side is a quantity, this is `gm:compare`: true or false of quantities with the
/// same text as their unit, which are compared as exact numbers, and an error otherwise.
pub fn compare(left: &Value, operator: Comparison, right: &Value) -> Option<bool> {
    if let Some(quantity) = Quantity::of(right) {
        let order = Quantity::of(left)?.order(&quantity)?;
        return Some(operator.is_met(order));
    }
    match operator {
        Comparison::Equal => equals(left, right),
        Comparison::Unequal => equals(left, right).map(|equal| !equal),
        _ => match (left, right) {
            (Value::Triple(a), Value::Triple(b)) => asked(a, operator, b),
            _ => order(left, right).map(|order| operator.is_met(order)),
        },
    }
}

/// Whether it is certain of which kind a constant is: not for unknown datatypes and wrong lexical
/// forms, with which `!=` is an error mostly.
pub fn is_comparable(constant: &[u8]) -> bool {
    let value = Value::of(constant);
    !matches!(value, Value::Foreign(_)) || Quantity::of(&value).is_some()
}

fn equals(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Identity(a), Value::Identity(b)) => Some(a == b),
        (Value::Identity(_), _) => Some(false),
        (Value::Foreign(a), Value::Foreign(b)) => (a == b).then_some(true),
        (Value::Foreign(_), Value::Identity(_) | Value::Triple(_)) => Some(false),
        (Value::Foreign(_), _) => None,
        (Value::Triple(a), Value::Triple(b)) => asked(a, Comparison::Equal, b),
        (Value::Triple(_), _) => Some(false),
        (_, Value::Foreign(_)) => None,
        (Value::String(a), Value::String(b)) => Some(a == b),
        (Value::Scalar(a), Value::Scalar(b)) => Some(a.equals(b)),
        _ => Some(false),
    }
}

fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (left, right) {
        (Value::Scalar(a), Value::Scalar(b)) if a.is_identical(b) => Some(Ordering::Equal),
        (Value::Scalar(a), Value::Scalar(b)) => a.order(b),
        (Value::String(a), Value::String(b)) => Some(text_order(a, b)),
        (Value::Foreign(a), Value::Foreign(b)) => (a == b).then_some(Ordering::Equal),
        (Value::Identity(a), Value::Identity(b)) if a == b => Some(Ordering::Equal),
        (Value::Identity(a), Value::Identity(b)) => {
            let (a, b) = (Literal::of(a)?, Literal::of(b)?);
            (a.tag == b.tag).then(|| text_order(a.lexical, b.lexical))
        }
        _ => None,
    }
}

fn text_order(a: &[u8], b: &[u8]) -> Ordering {
    unescape(a).cmp(&unescape(b))
}

/// Asks the evaluator; for triple terms, in which values are compared as well.
fn asked(left: &[u8], operator: Comparison, right: &[u8]) -> Option<bool> {
    // blank nodes cannot be written in a query: the terms are objects in a dataset
    let query = "SELECT (?l {} ?r AS ?x) { <urn:l> <urn:l> ?l . <urn:r> <urn:r> ?r }";
    let query = SparqlParser::new().parse_query(&query.replace("{}", operator.name())).ok()?;
    let mut dataset = Dataset::new();
    for (name, text) in [("urn:l", left), ("urn:r", right)] {
        let name = NamedNode::new_unchecked(name);
        let term = Term::from_str(std::str::from_utf8(text).ok()?).ok()?;
        dataset.insert(&Quad::new(name.clone(), name, term, GraphName::DefaultGraph));
    }
    let evaluator = QueryEvaluator::new();
    let QueryResults::Solutions(mut found) = evaluator.prepare(&query).execute(&dataset).ok()?
    else {
        return None;
    };
    match found.next()?.ok()?.get("x")? {
        Term::Literal(answer) => Some(answer.value() == "true"),
        _ => None,
    }
}

/// A number with a unit. The number is its digits and the place of its decimal point.
struct Quantity<'a> {
    negative: bool,
    /// Without zeros at either end.
    digits: Vec<u8>,
    /// How many of the digits stand before the point.
    point: i64,
    unit: &'a [u8],
}

impl<'a> Quantity<'a> {
    fn of(value: &Value<'a>) -> Option<Self> {
        let Value::Foreign(text) = *value else { return None };
        let Literal { lexical, datatype, .. } = Literal::of(text)?;
        let name = datatype?.strip_prefix(CDT)?;
        if name == b"ucumunit" || lexical.contains(&b'\\') {
            return None;
        }
        let text = lexical.trim_ascii();
        let (negative, mut rest) = match text {
            [sign @ (b'+' | b'-'), rest @ ..] => (*sign == b'-', rest),
            _ => (false, text),
        };
        let mut digits = Vec::new();
        let mut point = take_digits(&mut rest, &mut digits);
        if let [b'.', after @ ..] = rest {
            rest = after;
            take_digits(&mut rest, &mut digits);
        }
        if digits.is_empty() || digits.len() > QUANTITY_DIGITS {
            return None;
        }
        if let [b'e' | b'E', after @ ..] = rest {
            let (minus, mut after) = match after {
                [sign @ (b'+' | b'-'), after @ ..] => (*sign == b'-', after),
                _ => (false, after),
            };
            let mut exponent = Vec::new();
            if !(1..=3).contains(&take_digits(&mut after, &mut exponent)) {
                return None;
            }
            let value =
                exponent.iter().fold(0, |value, digit| value * 10 + i64::from(digit - b'0'));
            point += if minus { -value } else { value };
            rest = after;
        }
        let unit = rest.trim_ascii_start();
        let joined = unit.len() == rest.len();
        let number_like = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
        if unit.first().is_none_or(|first| joined && number_like(first)) {
            return None;
        }
        let zeros = digits.iter().take_while(|&&digit| digit == b'0').count();
        digits.drain(..zeros);
        point -= zeros as i64;
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Some(Self { negative: false, digits, point: 0, unit });
        }
        Some(Self { negative, digits, point, unit })
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        if self.unit != other.unit {
            return None;
        }
        let sign = |one: &Self| match (one.digits.is_empty(), one.negative) {
            (true, _) => 0,
            (_, true) => -1,
            _ => 1,
        };
        let size = self.point.cmp(&other.point).then_with(|| self.digits.cmp(&other.digits));
        Some(sign(self).cmp(&sign(other)).then(if self.negative { size.reverse() } else { size }))
    }
}

/// Moves digits from the beginning of a text; returns how many.
fn take_digits(text: &mut &[u8], digits: &mut Vec<u8>) -> i64 {
    let count = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    digits.extend_from_slice(&text[..count]);
    *text = &text[count..];
    count as i64
}

/// How a constant can be looked up: by its place on a line, by its term, or not at all.
///
/// Times with a zone and without are on lines of their own, for they are 14 hours off each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// Has to be compared.
    #[default]
    Other,
    /// Is equal to the same term only: IRIs, strings, literals of foreign datatypes.
    Term,
    /// A number other than NaN.
    Number,
    /// `xsd:dateTime` with a zone
    ZonedDateTime,
    /// `xsd:dateTime` without
    LocalDateTime,
    /// `xsd:date` with a zone
    ZonedDate,
    /// `xsd:date` without
    LocalDate,
    /// `xsd:time` with a zone
    ZonedTime,
    /// `xsd:time` without
    LocalTime,
}

impl Class {
    /// Whether values of this class lie on a line.
    pub fn is_ordered(self) -> bool {
        self > Self::Term
    }

    /// The class of the same kind of times, with a zone where this one has none.
    fn other_zone(self) -> Option<Self> {
        Some(match self {
            Self::ZonedDateTime => Self::LocalDateTime,
            Self::LocalDateTime => Self::ZonedDateTime,
            Self::ZonedDate => Self::LocalDate,
            Self::LocalDate => Self::ZonedDate,
            Self::ZonedTime => Self::LocalTime,
            Self::LocalTime => Self::ZonedTime,
            _ => return None,
        })
    }
}

/// How far a value may be from its key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Spread {
    /// It is the key, for whatever it is compared with.
    #[default]
    None,
    /// A few units in the last place of an `f64`.
    Double,
    /// A few units in the last place of an `f32`: what is compared with an `xsd:float` is rounded.
    Single,
}

/// A value's class, and its place on that line.
///
/// For values of one class: where `a.high() < b.low()`, `a < b` is true by [`compare`]; where both
/// are exact (`low() == high()`), all comparisons are those of their keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Order {
    key: f64,
    class: Class,
    spread: Spread,
}

const ZONES: f64 = 14.0 * 3600.0;
const UNIT: i128 = 1_000_000_000_000_000_000;
const EIGHTH: i128 = UNIT / 8;

impl Order {
    /// The order of a value.
    pub fn of(value: &Value) -> Self {
        let scalar = match value {
            Value::Scalar(scalar) => scalar,
            Value::Triple(_) => return Self::default(),
            _ if Quantity::of(value).is_some() => return Self::default(),
            _ => return Self { class: Class::Term, ..Self::default() },
        };
        match *scalar {
            Scalar::Integer(value) => {
                let value = i64::from(value);
                let spread =
                    if value.unsigned_abs() <= 1 << 53 { Spread::None } else { Spread::Double };
                Self { key: value as f64, class: Class::Number, spread }
            }
            Scalar::Decimal(value) => Self::of_decimal(value.to_be_bytes(), Class::Number),
            Scalar::Float(value) if !value.is_nan() => {
                Self { key: f64::from(value) + 0.0, class: Class::Number, spread: Spread::Single }
            }
            Scalar::Double(value) if !value.is_nan() => {
                Self { key: f64::from(value) + 0.0, class: Class::Number, spread: Spread::None }
            }
            Scalar::DateTime(value) => Self::of_time(
                value.to_be_bytes(),
                value.timezone_offset().is_some(),
                [Class::ZonedDateTime, Class::LocalDateTime],
            ),
            Scalar::Date(value) => Self::of_time(
                value.to_be_bytes(),
                value.timezone_offset().is_some(),
                [Class::ZonedDate, Class::LocalDate],
            ),
            Scalar::Time(value) => Self::of_time(
                value.to_be_bytes(),
                value.timezone_offset().is_some(),
                [Class::ZonedTime, Class::LocalTime],
            ),
            _ => Self::default(),
        }
    }

    /// The order of a term's value.
    pub fn of_term(id: Id, dictionary: &Dictionary) -> Self {
        Self::of_inline(id).unwrap_or_else(|| Self::of(&Value::of(&dictionary.text(id))))
    }

    /// The order of a number that is its own id.
    pub fn of_inline(id: Id) -> Option<Self> {
        let (digits, places) = inline::number(id)?;
        let unit = 10i64.pow(places);
        let exact = digits * 8 % unit == 0;
        Some(Self {
            key: digits as f64 / unit as f64,
            class: Class::Number,
            spread: if exact { Spread::None } else { Spread::Double },
        })
    }

    fn of_time(bytes: [u8; 18], zoned: bool, [with, without]: [Class; 2]) -> Self {
        let mut seconds = [0; 16];
        seconds.copy_from_slice(&bytes[..16]);
        Self::of_decimal(seconds, if zoned { with } else { without })
    }

    /// Exact are those decimals only which are exact as doubles *and* converted to them without
    /// rounding on the way, as `oxsdatatypes` does it.
    fn of_decimal(parts: [u8; 16], class: Class) -> Self {
        let parts = i128::from_be_bytes(parts);
        let (whole, fraction) = (parts / UNIT, parts % UNIT);
        let exact = fraction % EIGHTH == 0 && whole.unsigned_abs() < 1 << 43;
        let key = whole as f64 + fraction as f64 / UNIT as f64;
        Self { key, class, spread: if exact { Spread::None } else { Spread::Double } }
    }

    /// The class.
    pub fn class(&self) -> Class {
        self.class
    }

    fn spread(&self) -> f64 {
        match self.spread {
            Spread::Double => self.key.abs() * 1e-15,
            Spread::Single if self.key.is_finite() => self.key.abs() * 2.5e-7 + 1e-44,
            _ => 0.0,
        }
    }

    /// The least that the value may be.
    pub fn low(&self) -> f64 {
        self.key - self.spread()
    }

    /// The most that the value may be.
    pub fn high(&self) -> f64 {
        self.key + self.spread()
    }

    /// Where this value is on the line of a class: between what and what.
    pub fn on(&self, class: Class) -> Option<(f64, f64)> {
        if self.class == class {
            return Some((self.low(), self.high()));
        }
        (self.class.other_zone() == Some(class)).then(|| (self.low() - ZONES, self.high() + ZONES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparison::*;

    const ALL: [Comparison; 6] = [Equal, Unequal, Less, LessOrEqual, Greater, GreaterOrEqual];

    fn typed(text: &str, datatype: &str) -> String {
        format!("\"{text}\"^^<http://www.w3.org/2001/XMLSchema#{datatype}>")
    }

    /// Terms of all kinds, near to each other, in canonical text.
    pub fn terms() -> Vec<String> {
        let mut terms = Vec::new();
        for (datatype, texts) in [
            ("integer", "0 1 01 -1 +5 5 16777216 16777217 9007199254740993 9223372036854775807 x"),
            ("int", "5 07 16777217"),
            ("decimal", "0.0 1.0 5 5.00 0.1 0.125 16777216.5 9007199254740993.25 -0.1 1. e"),
            ("float", "0.1 1 5.0E0 16777216 INF -INF NaN -0.0 9.0071993E15"),
            ("double", "0.1 5 1e0 16777217 9007199254740993 INF NaN NaN -0 0.125 1.5e300"),
            ("boolean", "true false 1 0 yes"),
            ("date", "2020-01-01 2020-01-01Z 2020-01-02+14:00 2019-12-31-10:00 2020-02-30"),
            ("time", "10:00:00 10:00:00Z 12:00:00+02:00 24:00:00 10:00:00.5"),
            ("gYear", "2020 2021 2020Z"),
            ("gYearMonth", "2020-01 2020-02"),
            ("gMonthDay", "--01-01 --02-29"),
            ("gDay", "---01 ---31"),
            ("gMonth", "--01 --12"),
            ("duration", "P1Y P12M P365D PT1S P1M P30D"),
            ("yearMonthDuration", "P1Y P13M"),
            ("dayTimeDuration", "P1D PT24H PT1S P366D"),
        ] {
            terms.extend(texts.split(' ').map(|text| typed(text, datatype)));
        }
        for text in [
            "2020-01-01T00:00:00",
            "2020-01-01T00:00:00Z",
            "2020-01-01T14:00:00+14:00",
            "2020-01-01T14:00:00Z",
            "2020-01-01T00:00:00.25",
            "2020-01-02T00:00:00Z",
            "2020-13-02T00:00:00Z",
        ] {
            terms.push(typed(text, "dateTime"));
        }
        terms.push(typed("2020-01-01T00:00:00Z", "dateTimeStamp"));
        let others = r#""" "a" "b" "a\n" "a\"" "5" "a"@en "b"@en "a"@de "a"@en--ltr "b"@en--ltr
            "a"@en--rtl "a"^^<urn:t> "b"^^<urn:t> "a"^^<urn:u> <urn:a> <urn:b> _:a _:b"#;
        terms.extend(others.split_whitespace().map(str::to_owned));
        for object in ["5", "05", "6"] {
            terms.push(format!("<<( <urn:a> <urn:p> {} )>>", typed(object, "integer")));
            terms.push(format!("<<( _:b <urn:p> {} )>>", typed(object, "integer")));
        }
        terms
    }

    #[test]
    fn comparisons_are_those_of_the_evaluator() {
        let terms = terms();
        let mut decided = [0; 3];
        for (row, left) in terms.iter().enumerate() {
            // a third of all pairs, neighbours among them
            for right in terms.iter().skip(row % 3).step_by(3) {
                let values = [left, right].map(|text| Value::of(text.as_bytes()));
                for operator in ALL {
                    let found = compare(&values[0], operator, &values[1]);
                    let wanted = asked(left.as_bytes(), operator, right.as_bytes());
                    assert_eq!(found, wanted, "{left} {operator:?} {right}");
                    decided[found.map_or(2, usize::from)] += 1;
                }
            }
        }
        assert!(decided.iter().all(|&count| count > 300), "{decided:?}");
    }

    #[test]
    fn orders_agree_with_comparisons() {
        let mut terms = terms();
        terms.extend((-3..4).map(|n| typed(&format!("{:.2}", f64::from(n) / 8.0), "decimal")));
        let mut sure = 0;
        for left in &terms {
            for right in &terms {
                let values = [left, right].map(|text| Value::of(text.as_bytes()));
                let [a, b] = [Order::of(&values[0]), Order::of(&values[1])];
                if !b.class().is_ordered() {
                    continue;
                }
                let Some((low, high)) = a.on(b.class()) else {
                    let met = ALL.iter().filter(|&&operator| operator != Unequal);
                    for &operator in met {
                        let met = compare(&values[0], operator, &values[1]) == Some(true);
                        assert!(!met, "{left} {operator:?} {right}");
                    }
                    continue;
                };
                let order = if high < b.low() {
                    Ordering::Less
                } else if low > b.high() {
                    Ordering::Greater
                } else if low == high && b.low() == b.high() {
                    Ordering::Equal
                } else {
                    continue;
                };
                sure += 1;
                for operator in ALL {
                    let found = compare(&values[0], operator, &values[1]);
                    let is_apart = a.class() != b.class() && matches!(operator, Equal | Unequal);
                    assert!(is_apart || found == Some(operator.is_met(order)), "{left} {right}");
                }
            }
        }
        assert!(sure > 1000);
    }

    #[test]
    fn numbers_that_are_their_own_ids_have_the_same_value() {
        for (text, datatype) in
            [("0", "integer"), ("-12", "integer"), ("0.125", "decimal"), ("-12.30", "decimal")]
        {
            let text = typed(text, datatype);
            let id = inline::id(text.as_bytes()).unwrap();
            let (value, scalar) = (Value::of(text.as_bytes()), Scalar::of_inline(id).unwrap());
            assert_eq!(compare(&Value::Scalar(scalar), Equal, &value), Some(true));
            let (order, other) = (Order::of_inline(id).unwrap(), Order::of(&value));
            assert!(order.low() <= other.high() && other.low() <= order.high());
            assert_eq!(order.low() == order.high(), other.low() == other.high());
        }
    }

    #[test]
    fn quantities_compare_by_their_numbers() {
        let answer = |left: &str, operator, right: &str| {
            let text = [left, right].map(|text| format!("\"{text}\"^^<https://w3id.org/cdt/ucum>"));
            let [left, right] = [&text[0], &text[1]].map(|text| Value::of(text.as_bytes()));
            compare(&left, operator, &right)
        };
        assert_eq!(answer("40 By", Equal, "4E+1 By"), Some(true));
        assert_eq!(answer("40GB", Equal, " +40.0  GB "), Some(true));
        assert_eq!(answer("-1 m", Less, "-0.5 m"), Some(true));
        assert_eq!(answer("0.1 m", Less, "0.10000000000000000001 m"), Some(true));
        assert_eq!(answer("-0 m", GreaterOrEqual, "0 m"), Some(true));
        assert_eq!(answer("1E+3 m", Greater, "999 m"), Some(true));
        assert_eq!(answer("1 m", Unequal, "2 m"), Some(true));
        assert_eq!(answer("1 m", Unequal, "1 s"), None);
        assert_eq!(answer("many m", Equal, "1 m"), None);
        assert_eq!(answer("1", Equal, "1 m"), None);
        assert_eq!(answer("1e m", Equal, "1 m"), None);
        assert!(is_comparable(b"\"1 m\"^^<https://w3id.org/cdt/ucum>"));
        assert!(!is_comparable(b"\"m\"^^<https://w3id.org/cdt/ucum>"));
        assert!(!is_comparable(typed("five", "integer").as_bytes()));
    }

    #[test]
    fn escapes_are_undone() {
        let text = br#"a\t\n\"\\\u0001\U0001F600\u12"#;
        assert_eq!(&*unescape(text), "a\t\n\"\\\u{1}\u{1f600}\\u12".as_bytes());
        assert!(matches!(unescape(b"abc"), Cow::Borrowed(_)));
    }
}
