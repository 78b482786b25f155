//! Evaluates filters of one term, with the answers of the SPARQL evaluator.
//!
//! A filter costs some 10 to 100 ns: each publication's values are parsed once, and its texts are
//! folded once. A type error is not true.
//!
//! Source: SPARQL 1.1 sections 17.3 (operators) and 17.4 (functions); RFC 4647 section 3.3.1 for
//! `LANGMATCHES`.

use crate::branch::{Comparison, Filter, Folding, TaxonomyOperator, TermPart, TextOperator};
use crate::dictionary::{Id, Kind, Terms, inline};
use crate::lexical::{LiteralParts, unescape};
use crate::values::{Scalar, SortKey, Value, compare};
use hashbrown::HashMap;
use memchr::memmem;
use std::borrow::Cow;
use std::cell::RefCell;
use std::str::from_utf8;

/// Caches the values and folded texts of one publication's terms. Each thread has one.
#[derive(Default)]
pub struct Memo {
    scalars: HashMap<Id, Scalar>,
    folded: HashMap<(Id, TermPart, Folding), (usize, usize)>,
    texts: Vec<u8>,
}

impl Memo {
    /// Forgets the last publication, and keeps the memory unless it is large.
    pub fn clear(&mut self) {
        if self.scalars.capacity() > 1 << 14 || self.texts.capacity() > 1 << 22 {
            *self = Self::default();
        }
        self.scalars.clear();
        self.folded.clear();
        self.texts.clear();
    }
}

/// Evaluates filters of one publication's terms.
#[derive(Clone, Copy)]
pub struct FilterEvaluator<'a> {
    /// The publication's terms.
    pub terms: Terms<'a>,
    /// The cache for them, empty at first.
    pub memo: &'a RefCell<Memo>,
    /// Whether a term has a relation to a concept.
    pub isa: &'a dyn Fn(TaxonomyOperator, Id, Id) -> bool,
}

impl<'a> FilterEvaluator<'a> {
    /// Whether a filter is true of a term.
    pub fn holds(&self, filter: &Filter, term: Id) -> bool {
        self.holds_with(filter, &|&constant| constant, term)
    }

    /// Whether a filter is true of a term, if a function gives the ids of constants.
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

    /// The value of a term. It is parsed once for each publication.
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

    /// The sort key of a term's value.
    pub fn key(&self, term: Id) -> SortKey {
        SortKey::of_inline(term).unwrap_or_else(|| SortKey::of(&self.value(term)))
    }

    fn compares(&self, term: Id, operator: Comparison, constant: Id) -> bool {
        if let Some(order) = inline::order(term, constant) {
            return operator.is_met(order);
        }
        compare(&self.value(term), operator, &self.value(constant)) == Some(true)
    }

    fn text_holds(
        &self,
        operator: TextOperator,
        view: TermPart,
        folding: Folding,
        argument: Id,
        term: Id,
    ) -> bool {
        let argument = self.terms.text(argument);
        let Some(wanted) = LiteralParts::of(&argument).filter(|literal| literal.datatype.is_none())
        else {
            return false;
        };
        let text = self.terms.text(term);
        let tag = match view {
            TermPart::Term => LiteralParts::of(&text).and_then(|literal| literal.tag),
            TermPart::Str | TermPart::Lang => None,
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

    /// Calls a function with the text that a view shows of a term, folded; returns `None` if that is
    /// an error. The function must not ask for another text.
    pub fn with_text<T>(
        &self,
        term: Id,
        view: TermPart,
        folding: Folding,
        function: impl FnOnce(&[u8]) -> T,
    ) -> Option<T> {
        let text = self.terms.text(term);
        let text = view_of(&text, view)?;
        if folding == Folding::None && memchr::memchr(b'\\', text).is_none() {
            return Some(function(text));
        }
        let memo = &mut *self.memo.borrow_mut();
        // Except for the language, all views show the same text of a term.
        let view = if view == TermPart::Lang { TermPart::Lang } else { TermPart::Str };
        let (begin, end) = *memo.folded.entry((term, view, folding)).or_insert_with(|| {
            let begin = memo.texts.len();
            fold(&unescape(text), folding, &mut memo.texts);
            (begin, memo.texts.len())
        });
        Some(function(&memo.texts[begin..end]))
    }
}

/// Returns the text that a view shows of a term, with escapes, or `None` if that is an error.
fn view_of(term: &[u8], view: TermPart) -> Option<&[u8]> {
    match (Kind::of(term), view) {
        (Kind::Iri, TermPart::Str) => term.strip_prefix(b"<")?.strip_suffix(b">"),
        (Kind::Literal, TermPart::Str) => Some(LiteralParts::of(term)?.lexical),
        (Kind::Literal, TermPart::Lang) => {
            Some(LiteralParts::of(term)?.language().unwrap_or_default())
        }
        (Kind::Literal, TermPart::Term) => LiteralParts::of(term)
            .filter(|literal| literal.datatype.is_none())
            .map(|found| found.lexical),
        _ => None,
    }
}

/// Appends a text with its case changed.
///
/// [`Folding::Caseless`] maps to small ASCII letters what Unicode's simple case folding does, so that
/// each match of a caseless regular expression of ASCII letters is found.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::{Dictionary, LocalTerms};
    use oxrdf::{Dataset, GraphName, NamedNode, Quad, Term};
    use spareval::{QueryEvaluator, QueryResults};
    use std::str::FromStr;

    fn evaluated(expression: &str, term: &str) -> bool {
        let query = format!("SELECT (({expression}) AS ?x) {{ ?s ?p ?v }}");
        let query = spargebra::SparqlParser::new().parse_query(&query).unwrap();
        let evaluator = QueryEvaluator::new();
        let name = NamedNode::new_unchecked("urn:s");
        let term = Term::from_str(term).unwrap();
        let quad = Quad::new(name.clone(), name, term, GraphName::DefaultGraph);
        let dataset = Dataset::from_iter([quad]);
        let found = evaluator.prepare(&query).execute(&dataset).unwrap();
        let QueryResults::Solutions(mut found) = found else { return false };
        let solution = found.next().unwrap().unwrap();
        let Some(Term::Literal(answer)) = solution.get("x") else { return false };
        answer.value() == "true"
    }

    fn written(filter: &Filter, dictionary: &Dictionary) -> String {
        let constant = |id: Id| String::from_utf8(dictionary.text(id).into_owned()).unwrap();
        match filter {
            Filter::Compare { operator, constant: right } => {
                format!("?v {} {}", operator.name(), constant(*right))
            }
            Filter::Text { operator, view, folding, argument } => {
                let mut text = match view {
                    TermPart::Term => "?v".to_owned(),
                    TermPart::Str => "STR(?v)".to_owned(),
                    TermPart::Lang => "LANG(?v)".to_owned(),
                };
                match folding {
                    Folding::None => {}
                    Folding::Lower => text = format!("LCASE({text})"),
                    Folding::Upper => text = format!("UCASE({text})"),
                    Folding::Caseless => {
                        return format!("REGEX({text}, {}, \"i\")", constant(*argument));
                    }
                }
                let function = match operator {
                    TextOperator::Contains => "CONTAINS",
                    TextOperator::Starts => "STRSTARTS",
                    TextOperator::Ends => "STRENDS",
                    TextOperator::Matches => "LANGMATCHES",
                    TextOperator::Equals => return format!("{text} = {}", constant(*argument)),
                };
                format!("{function}({text}, {})", constant(*argument))
            }
            Filter::Any(filters) => {
                let all: Vec<String> = filters.iter().map(|one| written(one, dictionary)).collect();
                if all.is_empty() { "false".to_owned() } else { all.join(" || ") }
            }
            Filter::Taxonomy { .. } => unreachable!("not in this test"),
        }
    }

    #[test]
    fn answers_are_those_of_the_evaluator() {
        let mut dictionary = Dictionary::default();
        let mut arguments = Vec::new();
        for text in r#""" "a" "sea" "SEA" "Sea" "ea\n" "en" "de-CH" "EN" "*" "σ" "ς" "ß" "SS"
            "urn:" "sea"@en "a"@en--ltr "a"@en "k" "s" "ltr" "5" "\"""#
            .split_whitespace()
        {
            arguments.push(dictionary.intern(text.as_bytes()));
        }
        let mut terms = Vec::new();
        for text in r#""" "a" "by_the_sea" "SEASIDE" "Sea"@en "Sea\nside"@en-GB "sea"@en--ltr
            "a"@en--rtl "a"@en--ltr "de"@de-CH "ΣΟΦΟΣ" "ſEA" "KELVIN" "Straße" "İ" "\"quoted\""
            <urn:sea> <http://e/Sea> _:sea "sea"^^<urn:t> <<(<urn:a><urn:p>"sea")>> "a\nb\"c""#
            .split_whitespace()
        {
            let canonical = Term::from_str(text).unwrap().to_string();
            terms.push(canonical);
        }
        terms.push("\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>".to_owned());
        terms.push("\"true\"^^<http://www.w3.org/2001/XMLSchema#boolean>".to_owned());
        let mut filters = Vec::new();
        let number = dictionary.intern(b"\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>");
        for &argument in &arguments {
            for operator in [
                TextOperator::Contains,
                TextOperator::Starts,
                TextOperator::Ends,
                TextOperator::Equals,
                TextOperator::Matches,
            ] {
                for view in [TermPart::Term, TermPart::Str, TermPart::Lang] {
                    for folding in [Folding::None, Folding::Lower, Folding::Upper] {
                        filters.push(Filter::Text { operator, view, folding, argument });
                    }
                }
            }
            for operator in [Comparison::Equal, Comparison::Unequal, Comparison::Less] {
                filters.push(Filter::Compare { operator, constant: argument });
            }
            let plain = dictionary.text(argument);
            if plain.is_ascii() && plain.ends_with(b"\"") && !plain.contains(&b'*') {
                let caseless = |view| Filter::Text {
                    operator: TextOperator::Contains,
                    view,
                    folding: Folding::Caseless,
                    argument,
                };
                if !plain.iter().any(u8::is_ascii_uppercase) {
                    filters.extend([TermPart::Term, TermPart::Str, TermPart::Lang].map(caseless));
                }
            }
        }
        let pairs: Vec<Filter> = filters.chunks(2).map(|pair| Filter::Any(pair.into())).collect();
        filters.extend(pairs);
        filters.push(Filter::Any(Box::default()));
        filters.push(Filter::Compare { operator: Comparison::LessOrEqual, constant: number });
        let mut local = LocalTerms::default();
        let ids: Vec<Id> = terms
            .iter()
            .map(|text| {
                let hash = crate::dictionary::hash(text.as_bytes());
                let known = dictionary.get_hashed(text.as_bytes(), hash);
                known.unwrap_or_else(|| local.intern_hashed(text.as_bytes(), hash))
            })
            .collect();
        let memo = RefCell::default();
        let terms_of = Terms { dictionary: &dictionary, local: &local };
        let evaluator = FilterEvaluator { terms: terms_of, memo: &memo, isa: &|_, _, _| false };
        let mut answers = [0, 0];
        for filter in &filters {
            let expression = written(filter, &dictionary);
            for (term, &id) in terms.iter().zip(&ids) {
                let found = evaluator.holds(filter, id);
                assert_eq!(found, evaluated(&expression, term), "{expression} of {term}");
                answers[usize::from(found)] += 1;
            }
        }
        assert!(answers[0] > 5000 && answers[1] > 2000, "{answers:?}");
    }
}
