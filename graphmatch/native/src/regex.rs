//! Finds strings of which each match of a regular expression contains one.
//!
//! `(^| )(two|three)s? +years` cannot match without `years`, and not without `two` or `three`. The
//! keyword index looks for one such set of alternatives. The expression is parsed by the parser of
//! the evaluator's regular expressions, and that parser's crate finds the beginnings of its parts.
//!
//! Source: R. Cox, Regular expression matching with a trigram index, 2012.

use crate::branch::Folding;
use crate::filter::fold;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{Hir, HirKind};
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
    let pattern = with_flags(pattern, &flags.replace('i', ""))?;
    let exact = required(&regex_syntax::parse(&pattern).ok()?)?;
    let folded = folded(&exact).filter(|_| fold);
    let rank = |texts: &Vec<String>| (texts.len() <= FEW_PARTS, worth(texts));
    match folded {
        Some(folded) if flags.contains('i') || rank(&folded) > rank(&exact) => Some((folded, true)),
        _ => (!flags.contains('i')).then_some((exact, false)),
    }
}

/// An expression with the flags of SPARQL inside it; `None` if a flag is unknown.
pub(crate) fn with_flags(pattern: &str, flags: &str) -> Option<String> {
    let escaped = flags.contains('q').then(|| regex_syntax::escape(pattern));
    let inline: String = "smix".chars().filter(|&flag| flags.contains(flag)).collect();
    let begin = if inline.is_empty() { inline } else { format!("(?{inline})") };
    let is_known = flags.chars().all(|flag| "smixq".contains(flag));
    is_known.then(|| begin + escaped.as_deref().unwrap_or(pattern))
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

/// The longest parts of strings that simple case folding makes ASCII letters; `None` if one of them
/// has none. A match in any case contains one of these after folding.
fn folded(texts: &[String]) -> Option<Vec<String>> {
    let longest = |text: &String| {
        let mut folded = Vec::new();
        fold(text.as_bytes(), Folding::Caseless, &mut folded);
        let parts = folded.split(|byte| !byte.is_ascii()).filter(|part| part.len() > 1);
        parts.max_by_key(|part| part.len()).map(|part| String::from_utf8_lossy(part).into_owned())
    };
    Some(distinct(texts.iter().map(longest).collect::<Option<_>>()?))
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
