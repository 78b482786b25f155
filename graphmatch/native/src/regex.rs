//! Finds strings of which each match of a regular expression contains one.
//!
//! `(^| )(two|three)s? +years` cannot match without `years`, and not without `two` or `three`. The
//! keyword index looks for one such set of alternatives. The expression is parsed by the parser of
//! the evaluator's regular expressions, and that parser's crate finds the beginnings of its parts.
//!
//! Source: R. Cox, Regular expression matching with a trigram index, 2012.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{
    Capture, Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, HirKind, Repetition,
};
use std::cmp::Reverse;

/// Maximum number of alternatives.
const MAX_PARTS: usize = 16;
/// Number of alternatives up to which their case matters less than their length; also the maximum
/// size of a class of characters whose members become alternatives.
const FEW_PARTS: usize = 4;
/// Maximum length of a string, in bytes.
const MAX_BYTES: usize = 1000;

/// Returns strings of which every match contains one, or `None` if the expression has none.
///
/// If `fold` is true, the strings may be for texts whose case is folded. Then the second value is
/// true: the strings have small ASCII letters and match in any case.
pub fn required_parts(pattern: &str, flags: &str, fold: bool) -> Option<(Vec<String>, bool)> {
    if !fold && flags.contains('i') {
        return None;
    }
    let quoted = flags.contains('q').then(|| regex_syntax::escape(pattern));
    let mut parser = ParserBuilder::new();
    for flag in flags.chars() {
        match flag {
            's' => parser.dot_matches_new_line(true),
            'm' => parser.multi_line(true),
            'i' => parser.case_insensitive(true),
            'x' => parser.ignore_whitespace(true),
            'q' => &mut parser,
            _ => return None,
        };
    }
    let hir = parser.build().parse(quoted.as_deref().unwrap_or(pattern)).ok()?;
    let exact = required(&hir);
    let folded = if fold { required(&small_letters(&hir)) } else { None };
    let rank = |texts: &Option<Vec<String>>| {
        texts.as_ref().map(|texts| (texts.len() <= FEW_PARTS, worth(texts)))
    };
    let caseless = rank(&folded) > rank(&exact);
    let texts = if caseless { folded } else { exact }?;
    Some((texts, caseless))
}

/// The selectivity of strings: the length of the shortest, then the number of strings.
fn worth(texts: &[String]) -> (usize, Reverse<usize>) {
    (texts.iter().map(String::len).min().unwrap_or(0), Reverse(texts.len()))
}

/// The most selective strings of which every match contains one.
fn required(hir: &Hir) -> Option<Vec<String>> {
    let inside = match hir.kind() {
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Alternation(choices) => {
            let all = choices.iter().map(required).collect::<Option<Vec<_>>>();
            all.map(|all| distinct(all.concat())).filter(|all| all.len() <= MAX_PARTS)
        }
        HirKind::Concat(parts) => {
            // The beginnings from each part on, and the strings within each part.
            let next = |at: usize| &parts[at..parts.len().min(at + MAX_PARTS)];
            let from = (1..parts.len()).filter_map(|at| beginning(&Hir::concat(next(at).into())));
            from.chain(parts.iter().filter_map(required)).max_by_key(|texts| worth(texts))
        }
        _ => None,
    };
    beginning(hir).into_iter().chain(inside).max_by_key(|texts| worth(texts))
}

/// Strings of which every match begins with one.
fn beginning(hir: &Hir) -> Option<Vec<String>> {
    let mut extractor = Extractor::new();
    let found =
        extractor.limit_class(FEW_PARTS).limit_literal_len(MAX_BYTES).limit_total(MAX_PARTS);
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.trim_end_matches('\u{FFFD}').to_owned() // The extractor may cut a character.
    };
    let found = found.extract(hir);
    let texts = distinct(found.literals()?.iter().map(|one| text(one.as_bytes())).collect());
    texts.iter().all(|text| text.len() > 1).then_some(texts)
}

/// Removes the strings that contain another one.
fn distinct(mut texts: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    texts.sort_by_key(String::len);
    for text in texts {
        if !kept.iter().any(|known| text.contains(known)) {
            kept.push(text);
        }
    }
    kept
}

/// An expression of small ASCII letters. It matches a folded text wherever the given one does: other
/// characters become `.`.
fn small_letters(hir: &Hir) -> Hir {
    let anything = || Hir::dot(Dot::AnyChar);
    let sub = |sub: &Hir| Box::new(small_letters(sub));
    match hir.kind() {
        HirKind::Literal(literal) => {
            let text = String::from_utf8_lossy(&literal.0);
            let one = |c: char| match folded_character(c) {
                Some(c) => Hir::literal([c as u8]),
                None => anything(),
            };
            Hir::concat(text.chars().map(one).collect())
        }
        HirKind::Class(Class::Unicode(class)) => {
            let length: usize = class.ranges().iter().map(ClassUnicodeRange::len).sum();
            let all = class.ranges().iter().flat_map(|range| range.start()..=range.end());
            let all: Option<Vec<char>> = all.take(3 * FEW_PARTS).map(folded_character).collect();
            match all.filter(|_| length <= 3 * FEW_PARTS) {
                Some(all) => {
                    let ranges = all.into_iter().map(|c| ClassUnicodeRange::new(c, c));
                    Hir::class(Class::Unicode(ClassUnicode::new(ranges)))
                }
                None => anything(),
            }
        }
        HirKind::Repetition(repetition) => {
            let sub = sub(&repetition.sub);
            Hir::repetition(Repetition { sub, ..repetition.clone() })
        }
        HirKind::Capture(capture) => {
            Hir::capture(Capture { sub: sub(&capture.sub), ..capture.clone() })
        }
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(small_letters).collect()),
        HirKind::Alternation(choices) => {
            Hir::alternation(choices.iter().map(small_letters).collect())
        }
        HirKind::Empty | HirKind::Look(_) | HirKind::Class(_) => hir.clone(),
    }
}

/// The ASCII character that simple case folding makes of a character.
fn folded_character(c: char) -> Option<char> {
    match c {
        'ſ' => Some('s'),
        '\u{212A}' => Some('k'),
        _ => c.is_ascii().then(|| c.to_ascii_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::required_parts;

    #[test]
    fn parts_of_expressions() {
        let cases: &[(&str, &str, &[&str])] = &[
            ("climate", "", &["climate"]),
            ("Climate", "i", &["climate"]),
            ("^climate change$", "", &["climate change"]),
            ("a|climate", "", &[]),
            ("lake|climate|lake", "", &["lake", "climate"]),
            ("(^| )(two|three|[0-9]+)( |$)", "i", &[]),
            ("(?:sea|lake) level", "", &["sea level", "lake level"]),
            ("colou?r", "", &["color", "colour"]),
            ("colo(u)?r(s+)", "", &["colors", "colours"]),
            ("seas*", "", &["sea"]),
            ("seas+ide", "", &["seas"]),
            ("seas{0}ide", "", &["seaide"]),
            ("seas{2,3}?ide", "", &["seass"]),
            ("(sea){2}", "", &["seasea"]),
            ("(sea)*", "", &[]),
            (r"c\+\+", "", &["c++"]),
            (r"\bsea\b", "", &["sea"]),
            (r"\d\d:\d\d", "", &[]),
            ("Straße", "", &["Straße"]),
            ("Straße", "i", &["stra"]),
            ("日", "", &["日"]),
            ("x", "", &[]),
            ("s[^e]a[]]b", "", &["a]b"]),
            ("sea[a-z]side", "", &["side"]),
            ("", "", &[]),
            ("sea.", "q", &["sea."]),
            ("s e a", "x", &["sea"]),
            ("(?i)sea", "", &["sea"]),
            ("[lL]ake", "", &["lake"]),
            ("(sea", "", &[]),
            ("sea", "z", &[]),
            ("lake|land|lane", "", &["lake", "land", "lane"]),
        ];
        for (pattern, flags, expected) in cases {
            let found = required_parts(pattern, flags, true).map(|(texts, _)| texts);
            assert_eq!(found.unwrap_or_default(), *expected, "{pattern}");
        }
        let words = |number: fn(usize) -> String| (0..40).map(number).collect::<Vec<_>>().join("|");
        let found = required_parts(&words(|n| format!("word{n:02}")), "", true);
        assert_eq!(found.unwrap().0, ["word"]);
        assert!(required_parts(&words(|n| format!("{n:02}word")), "", true).is_none());
        assert!(required_parts("sea", "i", false).is_none());
    }
}
