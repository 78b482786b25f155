//! Functions that spareval does not have, or has without a bound.
//!
//! Each gets terms and gives one. `REPLACE` is here because one call may make a text of any length:
//! the limit is checked before memory is allocated. `REGEX` is here because compiling an expression
//! may take a hundredth of a second: the clock is read before.
//!
//! Sources: SPARQL 1.1 Query Language, 17.4.3; XPath and XQuery Functions and Operators 3.1, 5.6.

use crate::bounded;
use crate::branch::{Comparison, GM};
use crate::regex::with_flags;
use crate::rewrite::{COUNTED, COUNTED_IF_LONG, DATATYPE, DEFINED, NOW, REGEX, REPLACE, VALUE};
use crate::rewrite::{each_literal, unmarked};
use crate::values::{Value, compare};
use ::regex::{Regex, RegexBuilder};
use hashbrown::HashMap;
use oxrdf::vocab::xsd;
use oxrdf::{Literal, Term};
use oxsdatatypes::{DateTime, DayTimeDuration, Decimal, TimezoneOffset};
use spareval::ExpressionTerm;
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum size of a compiled expression in bytes, the same as in spareval.
const EXPRESSION: usize = 1_000_000;
/// Maximum number of compiled expressions that one evaluation keeps.
const KEPT: usize = 64;

/// A time: microseconds since the beginning of 1970 in UTC, and the minutes of its zone. A time
/// without a zone counts from the beginning of 1970 without a zone.
pub(crate) type Moment = (i64, Option<i16>);

/// A function of terms; `None` is an error.
pub(crate) type Function = Box<dyn Fn(&[Term]) -> Option<Term> + Send + Sync>;

/// Returns the function of a name. `NOW()` is `now`.
pub(crate) fn by_name(name: &str, known: &Arc<Expressions>, now: Moment) -> Option<Function> {
    let known = Arc::clone(known);
    let function: fn(&[Term]) -> Option<Term> = match name {
        REPLACE => return Some(Box::new(move |terms| known.replace(terms))),
        REGEX => return Some(Box::new(move |terms| known.is_match(terms))),
        NOW => {
            let now = time_of(now);
            return Some(Box::new(move |_| now.clone()));
        }
        VALUE => |terms| terms.last().map(|term| each_literal(term.clone(), unmarked)),
        DATATYPE => |terms| match terms.last()? {
            Term::Literal(literal) => {
                Some(unmarked(literal.clone()).datatype().into_owned().into())
            }
            _ => None,
        },
        DEFINED => |terms| (!terms.is_empty()).then(|| Literal::from(true).into()),
        COUNTED => |terms| {
            bounded::make_text(terms.iter().map(length).sum());
            terms.last().cloned()
        },
        COUNTED_IF_LONG => |terms| {
            bounded::make_long_text(terms.iter().map(length).sum());
            terms.last().cloned()
        },
        _ if name.strip_prefix(GM) == Some("compare") => compare_terms,
        _ => return None,
    };
    Some(Box::new(function))
}

/// The `xsd:dateTime` of a moment; `None` if that cannot have the zone.
fn time_of((microseconds, zone): Moment) -> Option<Term> {
    let zone = zone.map(TimezoneOffset::new).transpose().ok()?;
    let begin = if zone.is_some() { "1970-01-01T00:00:00Z" } else { "1970-01-01T00:00:00" };
    let later = DayTimeDuration::new(Decimal::new(microseconds.into(), 6).ok()?);
    let time = begin.parse::<DateTime>().ok()?.checked_add_day_time_duration(later)?;
    let time = time.adjust(zone)?;
    Some(Literal::new_typed_literal(time.to_string(), xsd::DATE_TIME).into())
}

fn length(term: &Term) -> usize {
    match term {
        Term::Literal(literal) => literal.value().len(),
        Term::NamedNode(name) => name.as_str().len(),
        _ => 0,
    }
}

/// `gm:compare(left, "operator", right)`, of which the right side is a quantity.
fn compare_terms(terms: &[Term]) -> Option<Term> {
    let [left, Term::Literal(sign), right] = terms else { return None };
    let (left, right) = (left.to_string(), right.to_string());
    let (left, right) = (Value::of(left.as_bytes()), Value::of(right.as_bytes()));
    // A quantity in base units may be a number. A number is compared with numbers only.
    let is_fit = left.is_number() || !right.is_number();
    let holds = compare(&left, Comparison::of_name(sign.value())?, &right);
    Some(Literal::from(holds.filter(|_| is_fit)?).into())
}

/// Returns the text of a string, with or without a language.
fn value_of(string: &mut ExpressionTerm) -> Option<&mut String> {
    match string {
        ExpressionTerm::StringLiteral(value)
        | ExpressionTerm::LangStringLiteral { value, .. }
        | ExpressionTerm::DirLangStringLiteral { value, .. } => Some(value),
        _ => None,
    }
}

/// Returns the text of a string without a language.
fn plain(term: &Term) -> Option<&str> {
    match term {
        Term::Literal(literal) if literal.datatype() == xsd::STRING => Some(literal.value()),
        _ => None,
    }
}

/// The compiled regular expressions of one evaluation by text and flags; `None` if invalid.
#[derive(Default)]
pub(crate) struct Expressions(Mutex<HashMap<[String; 2], Option<Regex>>>);

impl Expressions {
    fn get(&self, text: &str, flags: &str) -> Option<Regex> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= KEPT {
            known.clear();
        }
        let key = [text.to_owned(), flags.to_owned()];
        known.entry(key).or_insert_with(|| compiled(text, flags)).clone()
    }

    /// `REGEX`
    pub(crate) fn is_match(&self, terms: &[Term]) -> Option<Term> {
        let [string, pattern, flags @ ..] = terms else { return None };
        let flags = flags.first().map_or(Some(""), plain)?;
        let expression = self.get(plain(pattern)?, flags)?;
        let mut string = ExpressionTerm::from(string.clone());
        let text = value_of(&mut string)?;
        bounded::work(text.len() / 16);
        Some(Literal::from(expression.is_match(text)).into())
    }

    /// `REPLACE`
    pub(crate) fn replace(&self, terms: &[Term]) -> Option<Term> {
        let [string, pattern, replacement, flags @ ..] = terms else { return None };
        let flags = flags.first().map_or(Some(""), plain)?;
        let (expression, replacement) = (self.get(plain(pattern)?, flags)?, plain(replacement)?);
        let mut string = ExpressionTerm::from(string.clone());
        let text = value_of(&mut string)?;
        bounded::work(text.len() / 16);
        let found = expression.find_iter(text).inspect(|found| {
            bounded::work(1 + (found.len() + replacement.len()) / 16);
        });
        let references = replacement.matches('$').count();
        bounded::room_for(text.len() * (1 + references) + found.count() * replacement.len());
        *text = expression.replace_all(text, replacement).into_owned();
        bounded::make_long_text(text.len());
        Some(string.into())
    }
}

fn compiled(text: &str, flags: &str) -> Option<Regex> {
    bounded::work(EXPRESSION);
    if text.len() > EXPRESSION {
        return None; // The parser would need a hundred times its memory.
    }
    RegexBuilder::new(&with_flags(text, flags)?).size_limit(EXPRESSION).build().ok()
}
