//! Functions that queries call and the evaluator does not have, or has without a bound.
//!
//! Each gets terms and gives one. `CONCAT`, `REPLACE` and `ENCODE_FOR_URI` are here as one call of
//! them may make any length of text: the limit is looked at before memory is taken. `REGEX` is, as
//! compiling an expression may take a hundredth of a second, so the clock is looked at before.
//!
//! Sources: SPARQL 1.1 Query Language, 17.4.3; XPath and XQuery Functions and Operators 3.1, 5.6.

use crate::bounded;
use crate::lexical::write_term;
use crate::pattern::{Comparison, Variants};
use crate::rewrite::{
    CONCAT, COUNTED, DATATYPE, ENCODE_FOR_URI, ERROR, EXACT, PLAIN, STR, TERM, TEXT, VALUE,
    each_literal, unmarked,
};
use crate::values::{Value, compare};
use ::regex::{Regex, RegexBuilder};
use oxrdf::{Literal, NamedNode, Term};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// So large a compiled expression may be, in bytes, as in the evaluator.
const EXPRESSION: usize = 1_000_000;
/// So many expressions are kept compiled.
const KEPT: usize = 64;

/// A function of terms; `None` is an error.
pub(crate) type Function = fn(&[Term]) -> Option<Term>;

/// A function of ours by its name, but those that need to know more than their arguments.
pub(crate) fn private(name: &str) -> Option<Function> {
    Some(match name {
        EXACT => |_| {
            bounded::want_term();
            Some(Literal::from(true).into())
        },
        ERROR => |_| None,
        STR => |terms| match terms.last()? {
            Term::NamedNode(name) => Some(Literal::new_simple_literal(name.as_str()).into()),
            Term::Literal(literal) => Some(Literal::new_simple_literal(literal.value()).into()),
            _ => None,
        },
        DATATYPE => |terms| match terms.last()? {
            Term::Literal(literal) => {
                Some(unmarked(literal.clone()).datatype().into_owned().into())
            }
            _ => None,
        },
        TERM => |terms| terms.last().cloned(),
        COUNTED => |terms| {
            let text = |term: &Term| match term {
                Term::Literal(literal) => literal.value().len(),
                Term::NamedNode(name) => name.as_str().len(),
                _ => 0,
            };
            bounded::make_text(terms.iter().map(text).sum());
            terms.last().cloned()
        },
        CONCAT => concat,
        ENCODE_FOR_URI => encode_for_uri,
        TEXT => |terms| match terms.last()? {
            Term::Literal(literal) if literal.language().is_none() => {
                Some(Literal::new_simple_literal(literal.value()).into())
            }
            other => Some(other.clone()),
        },
        VALUE => |terms| match terms.last()? {
            Term::Literal(literal) => Some(unmarked(literal.clone()).into()),
            other => Some(other.clone()),
        },
        PLAIN => |terms| terms.last().cloned().map(|term| each_literal(term, unmarked)),
        "urn:graphmatch:compare" => |terms| {
            let [left, Term::Literal(sign), right] = terms else { return None };
            let (left, right) = (left.to_string(), right.to_string());
            let (left, right) = (Value::of(left.as_bytes()), Value::of(right.as_bytes()));
            // in base units a quantity may be a number, with which only numbers are compared
            let is_fit = left.is_number() || !right.is_number();
            let holds = compare(&left, Comparison::find(|one| one.name() == sign.value())?, &right);
            Some(Literal::from(holds.filter(|_| is_fit)?).into())
        },
        _ => return None,
    })
}

/// The literal by which a taxonomy operator is asked of the dataset: the texts of two terms, which
/// have no line breaks.
pub(crate) fn question(operator: &NamedNode, terms: &[Term]) -> Option<Term> {
    let [term, concept] = terms else { return None };
    let mut text = String::new();
    write_term(&mut text, term.as_ref());
    text.push('\n');
    write_term(&mut text, concept.as_ref());
    Some(Literal::new_typed_literal(text, operator.clone()).into())
}

// --- Text -----------------------------------------------------------------------------------------

/// A literal that functions of strings take.
fn string(term: &Term) -> Option<&Literal> {
    match term {
        Term::Literal(literal) if literal.language().is_some() => Some(literal),
        Term::Literal(literal) if literal.datatype() == oxrdf::vocab::xsd::STRING => Some(literal),
        _ => None,
    }
}

/// The value of a string without a language.
fn plain(term: &Term) -> Option<&str> {
    string(term).filter(|literal| literal.language().is_none()).map(Literal::value)
}

/// A text in the language of a string, if it has one.
fn like(string: &Literal, text: String) -> Term {
    let literal = match (string.language(), string.direction()) {
        (None, _) => Literal::new_simple_literal(text),
        (Some(language), None) => Literal::new_language_tagged_literal_unchecked(text, language),
        (Some(language), Some(direction)) => {
            Literal::new_directional_language_tagged_literal_unchecked(text, language, direction)
        }
    };
    literal.into()
}

fn concat(terms: &[Term]) -> Option<Term> {
    let parts = terms.iter().map(string).collect::<Option<Vec<_>>>()?;
    bounded::make_long_text(parts.iter().map(|part| part.value().len()).sum());
    let text = parts.iter().map(|part| part.value()).collect();
    let language = |part: &Literal| (part.language().map(str::to_owned), part.direction());
    Some(match parts.split_first() {
        Some((first, rest)) if rest.iter().all(|part| language(part) == language(first)) => {
            like(first, text)
        }
        _ => Literal::new_simple_literal(text).into(),
    })
}

fn encode_for_uri(terms: &[Term]) -> Option<Term> {
    let [term] = terms else { return None };
    let text = string(term)?.value();
    bounded::work(text.len());
    let is_same = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(byte);
    let others = text.bytes().filter(|byte| !is_same(byte)).count();
    bounded::make_long_text(text.len() + 2 * others);
    let mut made = String::with_capacity(text.len() + 2 * others);
    for byte in text.bytes() {
        if is_same(&byte) {
            made.push(char::from(byte));
        } else {
            let digit = |number: u8| char::from(b"0123456789ABCDEF"[usize::from(number)]);
            made.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    Some(Literal::new_simple_literal(made).into())
}

/// Regular expressions that were compiled, and what they learn by searching.
#[derive(Default)]
pub(crate) struct Expressions(Mutex<Vec<Known>>);

/// A text, its flags, and the expression; `None`: it is none.
type Known = (String, String, Option<Arc<Regex>>);

impl Expressions {
    fn get(&self, text: &str, flags: &str) -> Option<Arc<Regex>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((.., found)) = known.iter().find(|(t, f, _)| t == text && f == flags) {
            return found.clone();
        }
        let found = compiled(text, flags).map(Arc::new);
        if known.len() >= KEPT {
            known.clear();
        }
        known.push((text.to_owned(), flags.to_owned(), found.clone()));
        found
    }

    /// `REGEX`.
    pub(crate) fn is_match(&self, terms: &[Term]) -> Option<Term> {
        let [text, pattern, flags @ ..] = terms else { return None };
        let flags = flags.first().map_or(Some(""), plain)?;
        let expression = self.get(plain(pattern)?, flags)?;
        let text = string(text)?.value();
        bounded::work(text.len() / 16);
        Some(Literal::from(expression.is_match(text)).into())
    }

    /// `REPLACE`.
    pub(crate) fn replace(&self, terms: &[Term]) -> Option<Term> {
        let [text, pattern, replacement, flags @ ..] = terms else { return None };
        let (literal, replacement) = (string(text)?, plain(replacement)?);
        let flags = flags.first().map_or(Some(""), plain)?;
        let expression = self.get(plain(pattern)?, flags)?;
        let text = literal.value();
        bounded::work(text.len() / 16);
        let references = replacement.matches('$').count();
        let (mut made, mut end) = (String::new(), 0);
        let mut before = |made: &mut String, found: Range<usize>| {
            bounded::work(1 + (found.len() + replacement.len()) / 16);
            let least = made.len() + found.start - end;
            bounded::room_for(least + replacement.len() + references * found.len());
            made.push_str(&text[end..found.start]);
            end = found.end;
        };
        if references == 0 {
            for found in expression.find_iter(text) {
                before(&mut made, found.range());
                made.push_str(replacement);
            }
        } else {
            for found in expression.captures_iter(text) {
                before(&mut made, found.get(0)?.range());
                found.expand(replacement, &mut made);
            }
        }
        made.push_str(&text[end..]);
        bounded::make_long_text(made.len());
        Some(like(literal, made))
    }
}

fn compiled(text: &str, flags: &str) -> Option<Regex> {
    bounded::work(EXPRESSION);
    if text.len() > EXPRESSION {
        return None; // to read it takes a hundred times its memory
    }
    let quoted = flags.contains('q').then(|| ::regex::escape(text));
    let mut builder = RegexBuilder::new(quoted.as_deref().unwrap_or(text));
    builder.size_limit(EXPRESSION);
    for flag in flags.chars() {
        match flag {
            's' => builder.dot_matches_new_line(true),
            'm' => builder.multi_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            'q' => &mut builder,
            _ => return None,
        };
    }
    builder.build().ok()
}
