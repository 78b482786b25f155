//! The values of literals, and their comparison as SPARQL's operators do it.
//!
//! A term's text is parsed into a [`Value`] without allocating. [`compare`] gives the answer of
//! `spareval`, errors included, for all constants that [`is_comparable`] accepts, and compares
//! quantities (numbers with units) besides. All comparisons of the index use it. [`SortKey`] maps
//! values to `f64`, so that most comparisons in the predicate tables are those of machine numbers:
//! if the keys of two values overlap, [`compare`] decides.
//!
//! Rare types (durations, partial dates) and triple terms are recognised, but only `spareval`
//! compares them.
//!
//! Source: SPARQL 1.1 section 17.3 (operator mapping), XPath functions section 6.2 (numeric
//! promotion), XML Schema part 2 section 3.2.7 (order of dateTime).

use crate::branch::Comparison;
use crate::dictionary::{Dictionary, Id, Kind, inline};
use crate::lexical::{LiteralParts, unescape};
use oxsdatatypes::{
    Date, DateTime, DayTimeDuration, Decimal, Double, Duration, Float, GDay, GMonth, GMonthDay,
    GYear, GYearMonth, Integer, Time, YearMonthDuration,
};
use std::cmp::Ordering;
use std::mem::discriminant;
use std::str::{FromStr, from_utf8};

const XSD: &[u8] = b"http://www.w3.org/2001/XMLSchema#";
/// The types that are derived from `xsd:integer`.
const INTEGERS: &str = "int long short byte nonNegativeInteger positiveInteger nonPositiveInteger \
                        negativeInteger unsignedInt unsignedLong unsignedShort unsignedByte";
const CDT: &[u8] = b"https://w3id.org/cdt/";

/// The value of a literal with a known datatype.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// `xsd:boolean`
    Boolean(bool),
    /// `xsd:integer` and the types derived from it
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
    /// A duration or a part of a date: differs from all values of other types.
    Rare,
}

impl Scalar {
    /// The value of a lexical form; nothing if it is wrong or the datatype is unknown.
    fn of(lexical: &[u8], datatype: &[u8]) -> Option<Self> {
        fn parsed<T: FromStr>(text: &[u8]) -> Option<T> {
            from_utf8(text).ok()?.parse().ok()
        }
        fn rare<T: FromStr>(text: &[u8]) -> Option<Scalar> {
            parsed::<T>(text).map(|_| Scalar::Rare)
        }
        let text = lexical;
        Some(match datatype.strip_prefix(XSD)? {
            b"integer" => Self::Integer(parsed(text)?),
            b"decimal" => Self::Decimal(parsed(text)?),
            b"double" => Self::Double(parsed(text)?),
            b"float" => Self::Float(parsed(text)?),
            b"boolean" => Self::Boolean(parsed::<oxsdatatypes::Boolean>(text)?.into()),
            b"dateTime" | b"dateTimeStamp" => Self::DateTime(parsed(text)?),
            b"date" => Self::Date(parsed(text)?),
            b"time" => Self::Time(parsed(text)?),
            b"gYearMonth" => rare::<GYearMonth>(text)?,
            b"gYear" => rare::<GYear>(text)?,
            b"gMonthDay" => rare::<GMonthDay>(text)?,
            b"gDay" => rare::<GDay>(text)?,
            b"gMonth" => rare::<GMonth>(text)?,
            b"duration" => rare::<Duration>(text)?,
            b"yearMonthDuration" => rare::<YearMonthDuration>(text)?,
            b"dayTimeDuration" => rare::<DayTimeDuration>(text)?,
            name if INTEGERS.split(' ').any(|one| one.as_bytes() == name) => {
                Self::Integer(parsed(text)?)
            }
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

    /// The number as an `xsd:float` or `xsd:double`.
    fn promoted<T>(&self) -> Option<T>
    where
        T: From<Integer> + From<Decimal> + From<Float> + From<Double>,
    {
        Some(match *self {
            Self::Integer(value) => value.into(),
            Self::Decimal(value) => value.into(),
            Self::Float(value) => value.into(),
            Self::Double(value) => value.into(),
            _ => return None,
        })
    }

    fn decimal(&self) -> Option<Decimal> {
        match *self {
            Self::Integer(value) => Some(value.into()),
            Self::Decimal(value) => Some(value),
            _ => None,
        }
    }

    /// Whether it is the same value of the same type: bit by bit for `xsd:float` and `xsd:double`.
    fn is_identical(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(a), Self::Float(b)) => a.is_identical_with(*b),
            (Self::Double(a), Self::Double(b)) => a.is_identical_with(*b),
            _ => discriminant(self) == discriminant(other) && self.equals(other),
        }
    }

    fn equals(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }

    fn order(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.partial_cmp(b),
            (Self::DateTime(a), Self::DateTime(b)) => a.partial_cmp(b),
            (Self::Date(a), Self::Date(b)) => a.partial_cmp(b),
            (Self::Time(a), Self::Time(b)) => a.partial_cmp(b),
            (Self::Double(_), _) | (_, Self::Double(_)) => {
                self.promoted::<Double>()?.partial_cmp(&other.promoted()?)
            }
            (Self::Float(_), _) | (_, Self::Float(_)) => {
                self.promoted::<Float>()?.partial_cmp(&other.promoted()?)
            }
            _ => self.decimal()?.partial_cmp(&other.decimal()?),
        }
    }
}

/// The value of a term in comparisons.
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
    Triple,
}

impl<'a> Value<'a> {
    /// The value of a term by its canonical text.
    pub fn of(text: &'a [u8]) -> Self {
        match Kind::of(text) {
            Kind::Iri | Kind::Blank => Self::Identity(text),
            Kind::Triple => Self::Triple,
            Kind::Literal => match LiteralParts::of(text) {
                Some(LiteralParts { lexical, datatype: Some(datatype), .. }) => {
                    Scalar::of(lexical, datatype).map_or(Self::Foreign(text), Self::Scalar)
                }
                Some(LiteralParts { tag: Some(_), .. }) => Self::Identity(text),
                Some(LiteralParts { lexical, .. }) => Self::String(lexical),
                None => Self::Foreign(text),
            },
        }
    }

    /// The effective boolean value (SPARQL 1.1, section 17.2.2); nothing is a type error.
    pub fn effective_boolean(&self) -> Option<bool> {
        match self {
            Self::String(text) => Some(!text.is_empty()),
            Self::Scalar(Scalar::Boolean(value)) => Some(*value),
            Self::Scalar(scalar) => Some(f64::from(scalar.promoted::<Double>()?).abs() > 0.0),
            _ => None,
        }
    }

    /// Whether it is a number, without a unit.
    pub fn is_number(&self) -> bool {
        matches!(self, Self::Scalar(scalar) if scalar.promoted::<Double>().is_some())
    }
}

/// Whether `left operator right` is true; nothing is a type error.
///
/// If the right side is a quantity, this is `gm:compare`: true or false of quantities with the same
/// text as their unit, and an error otherwise.
pub fn compare(left: &Value, operator: Comparison, right: &Value) -> Option<bool> {
    if let Some((number, unit)) = quantity(right) {
        let (left, own) = quantity(left)?;
        return (own == unit).then(|| operator.is_met(left.total_cmp(&number)));
    }
    match operator {
        Comparison::Equal => equals(left, right),
        Comparison::Unequal => equals(left, right).map(|equal| !equal),
        _ => order(left, right).map(|order| operator.is_met(order)),
    }
}

/// Whether [`compare`] can compare every term with a constant. It cannot compare values of rare
/// types, nor triple terms. `!=` with an unknown datatype or a wrong lexical form is an error for
/// most terms.
pub fn is_comparable(operator: Comparison, constant: &[u8]) -> bool {
    let value = Value::of(constant);
    match value {
        Value::Triple | Value::Scalar(Scalar::Rare) => false,
        Value::Foreign(_) => operator != Comparison::Unequal || quantity(&value).is_some(),
        _ => true,
    }
}

fn equals(left: &Value, right: &Value) -> Option<bool> {
    match (left, right) {
        (Value::Identity(a), Value::Identity(b)) => Some(a == b),
        (Value::Identity(_), _) => Some(false),
        (Value::Foreign(a), Value::Foreign(b)) => (a == b).then_some(true),
        (Value::Foreign(_), Value::Identity(_) | Value::Triple) => Some(false),
        (Value::Foreign(_), _) => None,
        (Value::Triple, Value::Triple) => None,
        (Value::Triple, _) => Some(false),
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
            let (a, b) = (LiteralParts::of(a)?, LiteralParts::of(b)?);
            (a.tag == b.tag).then(|| text_order(a.lexical, b.lexical))
        }
        _ => None,
    }
}

fn text_order(a: &[u8], b: &[u8]) -> Ordering {
    unescape(a).cmp(&unescape(b))
}

/// The number and the unit of a quantity.
fn quantity<'a>(value: &Value<'a>) -> Option<(f64, &'a [u8])> {
    let Value::Foreign(text) = *value else { return None };
    let LiteralParts { lexical, datatype, .. } = LiteralParts::of(text)?;
    let name = datatype?.strip_prefix(CDT)?;
    if name == b"ucumunit" || lexical.contains(&b'\\') {
        return None;
    }
    let text = lexical.trim_ascii();
    let is_of_number = |byte: &u8| byte.is_ascii_digit() || b".eE+-".contains(byte);
    let end = text.iter().position(|byte| !is_of_number(byte))?;
    let number: f64 = from_utf8(&text[..end]).ok()?.parse().ok()?;
    // Zero has no sign.
    number.is_finite().then(|| (number + 0.0, text[end..].trim_ascii_start()))
}

/// How the index finds a constant: by a number, by its term, or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Class {
    /// The index cannot find it.
    #[default]
    Other,
    /// Equals the same term only: an IRI, a string, a literal of an unknown datatype.
    Term,
    /// A number other than NaN.
    Number,
    /// `xsd:dateTime`
    DateTime,
    /// `xsd:date`
    Date,
}

impl Class {
    /// Whether values of this class are found by numbers.
    pub fn is_ordered(self) -> bool {
        self > Self::Term
    }
}

/// A value's class, and two numbers between which the value is.
///
/// For values of one class: if `a.high < b.low`, then [`compare`] says that `a < b`.
#[derive(Clone, Copy, Debug, Default)]
pub struct SortKey {
    /// The class.
    pub class: Class,
    /// The least number that the value may be.
    pub low: f64,
    /// The largest number that the value may be.
    pub high: f64,
}

/// The largest timezone offset in seconds.
const MAX_OFFSET_SECONDS: f64 = 14.0 * 3600.0;
/// The largest relative error of a value that is rounded to an `f64`.
const DOUBLE_ERROR: f64 = 1e-15;
/// The largest relative error of a value that is rounded to an `f32`, as all that is compared with
/// an `xsd:float` is.
const FLOAT_ERROR: f64 = 2.5e-7;

/// By the number of decimal places of a number that is its own id.
const POWERS_OF_TEN: [f64; 4] = [1.0, 10.0, 100.0, 1000.0];

impl SortKey {
    /// The key of a value.
    pub fn of(value: &Value) -> Self {
        let scalar = match value {
            Value::Scalar(scalar) => scalar,
            Value::Triple => return Self::default(),
            _ if quantity(value).is_some() => return Self::default(),
            _ => return Self { class: Class::Term, ..Self::default() },
        };
        match *scalar {
            Scalar::Integer(value) => {
                let value = i64::from(value);
                let error = if value.unsigned_abs() <= 1 << 53 { 0.0 } else { DOUBLE_ERROR };
                Self::with_error(value as f64, error, Class::Number)
            }
            Scalar::Decimal(value) => Self::of_decimal(value, Class::Number),
            Scalar::Float(value) if !value.is_nan() => {
                Self::with_error(f64::from(value), FLOAT_ERROR, Class::Number)
            }
            Scalar::Double(value) if !value.is_nan() => {
                Self::with_error(value.into(), 0.0, Class::Number)
            }
            Scalar::DateTime(value) => {
                let has_zone = value.timezone_offset().is_some();
                Self::of_time(value.to_be_bytes(), has_zone, Class::DateTime)
            }
            Scalar::Date(value) => {
                let has_zone = value.timezone_offset().is_some();
                Self::of_time(value.to_be_bytes(), has_zone, Class::Date)
            }
            _ => Self::default(),
        }
    }

    /// The key of a term's value.
    pub fn of_term(id: Id, dictionary: &Dictionary) -> Self {
        Self::of_inline(id).unwrap_or_else(|| Self::of(&Value::of(&dictionary.text(id))))
    }

    /// The key of a number that is its own id.
    pub fn of_inline(id: Id) -> Option<Self> {
        let (digits, places) = inline::number(id)?;
        let error = if places == 0 { 0.0 } else { DOUBLE_ERROR };
        Some(Self::with_error(digits as f64 / POWERS_OF_TEN[places as usize], error, Class::Number))
    }

    fn of_decimal(value: Decimal, class: Class) -> Self {
        Self::with_error(Double::from(value).into(), DOUBLE_ERROR, class)
    }

    /// The key of a time. Its bytes begin with its seconds as a decimal. One without a timezone is
    /// compared with others as if it had any timezone.
    fn of_time(bytes: [u8; 18], has_zone: bool, class: Class) -> Self {
        let mut seconds = [0; 16];
        seconds.copy_from_slice(&bytes[..16]);
        let key = Self::of_decimal(Decimal::from_be_bytes(seconds), class);
        let offset = if has_zone { 0.0 } else { MAX_OFFSET_SECONDS };
        Self { class, low: key.low - offset, high: key.high + offset }
    }

    /// The key of a value near a number, with a relative error.
    fn with_error(number: f64, error: f64, class: Class) -> Self {
        let number = number + 0.0;
        let error = if number.is_finite() { number.abs() * error } else { 0.0 };
        Self { class, low: number - error, high: number + error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Comparison::*;
    use oxrdf::{Dataset, GraphName, NamedNode, Quad, Term};
    use spareval::{QueryEvaluator, QueryResults};
    use spargebra::SparqlParser;

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

    /// The answer of the evaluator.
    fn evaluated(left: &str, operator: Comparison, right: &str) -> Option<bool> {
        // Blank nodes cannot be written in a query, so the terms are objects in a dataset.
        let query = "SELECT (?l {} ?r AS ?x) { <urn:l> <urn:l> ?l . <urn:r> <urn:r> ?r }";
        let query = SparqlParser::new().parse_query(&query.replace("{}", operator.name())).unwrap();
        let mut dataset = Dataset::new();
        for (name, text) in [("urn:l", left), ("urn:r", right)] {
            let name = NamedNode::new_unchecked(name);
            let term = Term::from_str(text).unwrap();
            dataset.insert(&Quad::new(name.clone(), name, term, GraphName::DefaultGraph));
        }
        let evaluator = QueryEvaluator::new();
        let found = evaluator.prepare(&query).execute(&dataset).unwrap();
        let QueryResults::Solutions(mut found) = found else { return None };
        match found.next()?.unwrap().get("x")? {
            Term::Literal(answer) => Some(answer.value() == "true"),
            _ => None,
        }
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
                    if is_comparable(operator, right.as_bytes()) {
                        let wanted = evaluated(left, operator, right);
                        assert_eq!(found, wanted, "{left} {operator:?} {right}");
                    }
                    decided[found.map_or(2, usize::from)] += 1;
                }
            }
        }
        assert!(decided.iter().all(|&count| count > 300), "{decided:?}");
    }

    #[test]
    fn sort_keys_agree_with_comparisons() {
        let mut terms = terms();
        terms.extend((-3..4).map(|n| typed(&format!("{:.2}", f64::from(n) / 8.0), "decimal")));
        let mut sure = 0;
        for left in &terms {
            for right in &terms {
                let values = [left, right].map(|text| Value::of(text.as_bytes()));
                let [a, b] = [SortKey::of(&values[0]), SortKey::of(&values[1])];
                if !b.class.is_ordered() {
                    continue;
                }
                if a.class != b.class {
                    let met = ALL.iter().filter(|&&operator| operator != Unequal);
                    for &operator in met {
                        let met = compare(&values[0], operator, &values[1]) == Some(true);
                        assert!(!met, "{left} {operator:?} {right}");
                    }
                    continue;
                }
                let order = if a.high < b.low {
                    Ordering::Less
                } else if a.low > b.high {
                    Ordering::Greater
                } else {
                    continue;
                };
                sure += 1;
                for operator in ALL {
                    let found = compare(&values[0], operator, &values[1]);
                    assert_eq!(found, Some(operator.is_met(order)), "{left} {operator:?} {right}");
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
            let (key, other) = (SortKey::of_inline(id).unwrap(), SortKey::of(&value));
            assert!(key.low <= other.high && other.low <= key.high);
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
        assert_eq!(answer("-0 m", GreaterOrEqual, "0 m"), Some(true));
        assert_eq!(answer("1E+3 m", Greater, "999 m"), Some(true));
        assert_eq!(answer("1 m", Unequal, "2 m"), Some(true));
        assert_eq!(answer("1 m", Unequal, "1 s"), None);
        assert_eq!(answer("many m", Equal, "1 m"), None);
        assert_eq!(answer("1", Equal, "1 m"), None);
        assert_eq!(answer("1e m", Equal, "1 m"), None);
        assert!(is_comparable(Unequal, b"\"1 m\"^^<https://w3id.org/cdt/ucum>"));
        assert!(!is_comparable(Unequal, b"\"m\"^^<https://w3id.org/cdt/ucum>"));
        assert!(!is_comparable(Unequal, typed("five", "integer").as_bytes()));
        assert!(!is_comparable(Less, typed("P1D", "duration").as_bytes()));
    }

    #[test]
    fn escapes_are_undone() {
        let text = br#"a\t\n\"\\\u0001\U0001F600\u12"#;
        assert_eq!(&*unescape(text), "a\t\n\"\\\u{1}\u{1f600}\\u12".as_bytes());
        assert!(matches!(unescape(b"abc"), std::borrow::Cow::Borrowed(_)));
    }
}
