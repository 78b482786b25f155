//! Whether a term passes a filter, as the evaluator would answer.
//!
//! A test costs some 10 to 100 ns: values are parsed once a publication, and texts whose case
//! changes are folded once. A type error is not true.
//!
//! Source: SPARQL 1.1 sections 17.3 (operators) and 17.4 (functions); RFC 4647 section 3.3.1 for
//! `LANGMATCHES`.

use crate::dictionary::{Id, Kind, Terms};
use crate::pattern::{Comparison, Filter, Folding, TaxonomyOperator, TextOperator, View};
use crate::values::{Literal, Order, Scalar, Value, compare, unescaped};
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use memchr::memmem;
use std::borrow::Cow;
use std::cell::RefCell;
use std::str::from_utf8;

/// Decides the taxonomy operators: whether a term stands in a relation to a concept.
pub type IsA<'a> = &'a dyn Fn(TaxonomyOperator, Id, Id) -> bool;

/// What was found out about the terms of one publication. One for each thread, used again.
#[derive(Default)]
pub struct Memo {
    scalars: HashMap<Id, Scalar, RandomState>,
    folded: HashMap<(Id, View, Folding), (usize, usize), RandomState>,
    texts: Vec<u8>,
}

impl Memo {
    /// Forgets the last publication, and keeps the memory, unless it is very much.
    pub fn clear(&mut self) {
        if self.scalars.capacity() > 1 << 14 || self.texts.capacity() > 1 << 22 {
            *self = Self::default();
        }
        self.scalars.clear();
        self.folded.clear();
        self.texts.clear();
    }
}

/// Decides filters of one publication's terms.
#[derive(Clone, Copy)]
pub struct Deciding<'a> {
    terms: Terms<'a>,
    memo: &'a RefCell<Memo>,
    isa: IsA<'a>,
}

impl<'a> Deciding<'a> {
    /// For a publication: its terms, an empty memo, and what decides the taxonomy operators.
    pub fn new(terms: Terms<'a>, memo: &'a RefCell<Memo>, isa: IsA<'a>) -> Self {
        Self { terms, memo, isa }
    }

    /// The publication's terms.
    pub fn terms(&self) -> Terms<'a> {
        self.terms
    }

    /// Whether a filter is true of a term.
    pub fn holds(&self, filter: &Filter, term: Id) -> bool {
        self.holds_with(filter, &|&constant| constant, term)
    }

    /// The same, for a filter whose constants are said in another way.
    pub fn holds_with<C>(&self, filter: &Filter<C>, constant: &dyn Fn(&C) -> Id, term: Id) -> bool {
        match filter {
            Filter::Compare { operator, constant: right } => {
                self.compares(term, *operator, constant(right))
            }
            Filter::Text { operator, view, folding, argument } => {
                self.text_holds(*operator, *view, *folding, constant(argument), term)
            }
            Filter::Taxonomy { operator, concept } => {
                (self.isa)(*operator, term, constant(concept))
            }
            Filter::Any(filters) => {
                filters.iter().any(|filter| self.holds_with(filter, constant, term))
            }
        }
    }

    /// The value of a term, which is parsed once a publication.
    pub fn value(&self, term: Id) -> Value<'a> {
        if let Some(number) = Scalar::of_inline(term) {
            return Value::Scalar(number);
        }
        let Cow::Borrowed(text) = self.terms.text(term) else { return Value::Foreign(b"") };
        if text.first() != Some(&b'"') || text.last() != Some(&b'>') {
            return Value::of(text);
        }
        if let Some(known) = self.memo.borrow().scalars.get(&term) {
            return Value::Scalar(*known);
        }
        let value = Value::of(text);
        if let Value::Scalar(scalar) = value {
            self.memo.borrow_mut().scalars.insert(term, scalar);
        }
        value
    }

    /// The place of a term's value on the line of its class.
    pub fn order(&self, term: Id) -> Order {
        Order::of_inline(term).unwrap_or_else(|| Order::of(&self.value(term)))
    }

    fn compares(&self, term: Id, operator: Comparison, constant: Id) -> bool {
        compare(&self.value(term), operator, &self.value(constant)) == Some(true)
    }

    fn text_holds(
        &self,
        operator: TextOperator,
        view: View,
        folding: Folding,
        argument: Id,
        term: Id,
    ) -> bool {
        let argument = self.terms.text(argument);
        let Some(wanted) = Literal::of(&argument).filter(|literal| literal.datatype.is_none())
        else {
            return false;
        };
        let text = self.terms.text(term);
        let tag = match view {
            View::Term => Literal::of(&text).and_then(|literal| literal.tag),
            View::Str | View::Lang => None,
        };
        let compatible = match operator {
            TextOperator::Equals => tag == wanted.tag,
            TextOperator::Matches => tag.is_none() && wanted.tag.is_none(),
            _ => wanted.tag.is_none() || tag == wanted.tag,
        };
        let argument = wanted.plain();
        let found = self.with_text(term, view, folding, |text| match operator {
            TextOperator::Contains => memmem::find(text, &argument).is_some(),
            TextOperator::Starts => text.starts_with(&argument),
            TextOperator::Ends => text.ends_with(&argument),
            TextOperator::Equals => *text == *argument,
            TextOperator::Matches => language_matches(text, &argument),
        });
        compatible && found == Some(true)
    }

    /// Gives a function the text that a view shows of a term, folded; nothing where that is an
    /// error. The function must not ask for another text.
    pub fn with_text<T>(
        &self,
        term: Id,
        view: View,
        folding: Folding,
        function: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let text = self.terms.text(term);
        let text = view_of(&text, view)?;
        if folding == Folding::None && memchr::memchr(b'\\', text).is_none() {
            return Some(function(text));
        }
        let memo = &mut *self.memo.borrow_mut();
        // views show the same text of a term, but for its language
        let view = if view == View::Lang { View::Lang } else { View::Str };
        let (begin, end) = *memo.folded.entry((term, view, folding)).or_insert_with(|| {
            let begin = memo.texts.len();
            fold(&unescaped(text), folding, &mut memo.texts);
            (begin, memo.texts.len())
        });
        Some(function(&memo.texts[begin..end]))
    }
}

/// The text that a view shows of a term, with escapes; nothing where that is an error.
fn view_of(term: &[u8], view: View) -> Option<&[u8]> {
    match (Kind::of(term), view) {
        (Kind::Iri, View::Str) => term.strip_prefix(b"<")?.strip_suffix(b">"),
        (Kind::Literal, View::Str) => Some(Literal::of(term)?.lexical),
        (Kind::Literal, View::Lang) => Some(Literal::of(term)?.language().unwrap_or_default()),
        (Kind::Literal, View::Term) => Literal::of(term)
            .filter(|literal| literal.datatype.is_none())
            .map(|found| found.lexical),
        _ => None,
    }
}

/// Appends a text with its case changed.
///
/// [`Folding::Caseless`] makes small what Unicode's simple case folding takes for ASCII letters,
/// and nothing else, so that what a regular expression of ASCII letters finds is found.
pub fn fold(text: &[u8], folding: Folding, folded: &mut Vec<u8>) {
    let begin = folded.len();
    if folding == Folding::None || text.is_ascii() {
        folded.extend_from_slice(text);
        match folding {
            Folding::None => {}
            Folding::Upper => folded[begin..].make_ascii_uppercase(),
            Folding::Lower | Folding::Caseless => folded[begin..].make_ascii_lowercase(),
        }
        return;
    }
    let Ok(text) = from_utf8(text) else { return };
    match folding {
        Folding::Lower => folded.extend_from_slice(text.to_lowercase().as_bytes()),
        Folding::Upper => folded.extend_from_slice(text.to_uppercase().as_bytes()),
        Folding::None | Folding::Caseless => {
            for char in text.chars() {
                let char = match char {
                    '\u{17f}' => 's',
                    '\u{212a}' => 'k',
                    other => other.to_ascii_lowercase(),
                };
                folded.extend_from_slice(char.encode_utf8(&mut [0; 4]).as_bytes());
            }
        }
    }
}

/// Whether a language tag is in a basic language range.
fn language_matches(tag: &[u8], range: &[u8]) -> bool {
    if range == b"*" {
        return !tag.is_empty();
    }
    let Some((head, rest)) = tag.split_at_checked(range.len()) else { return false };
    head.eq_ignore_ascii_case(range) && (rest.is_empty() || rest[0] == b'-')
}
