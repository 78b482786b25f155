//! What every match of a regular expression contains: some of its letters, as they stand.
//!
//! `(^| )(two|three)s? +years` cannot match without `years`, and not without `two` or `three`. One
//! such set of alternatives is a necessary test, which an index looks for in the same pass as all
//! other texts. The expression is parsed by the parser of the evaluator's regular expressions, so
//! nothing is guessed about the dialect, and that parser's crate finds what a part of it begins
//! with.
//!
//! Source: R. Cox, Regular expression matching with a trigram index, 2012.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::literal::Extractor;
use regex_syntax::hir::{
    Capture, Class, ClassUnicode, ClassUnicodeRange, Dot, Hir, HirKind, Repetition,
};
use std::cmp::Reverse;

/// More alternatives than these are no good test.
const MOST_PARTS: usize = 16;
/// More alternatives than these are worse than fewer whatever the case; and a class of more
/// characters is not spelled out.
const FEW: usize = 4;
/// Texts are no longer than this.
const LONGEST: usize = 1000;

/// Texts of which every match contains one.
#[derive(Debug, PartialEq, Eq)]
pub struct Parts {
    /// The texts.
    pub texts: Vec<String>,
    /// Whether they are small ASCII letters to be looked for whatever the case.
    pub caseless: bool,
}

/// Texts of which every match contains one, where anything telling is known.
///
/// `fold` says whether the answer may be one for texts whose case is folded.
pub fn required_parts(pattern: &str, flags: &str, fold: bool) -> Option<Parts> {
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
        texts.as_ref().map(|texts| (texts.len() <= FEW, worth(texts)))
    };
    let caseless = rank(&folded) > rank(&exact);
    let texts = if caseless { folded } else { exact }?;
    Some(Parts { texts, caseless })
}

/// How telling texts are: the length of the shortest, then how few there are.
fn worth(texts: &[String]) -> (usize, Reverse<usize>) {
    (texts.iter().map(String::len).min().unwrap_or(0), Reverse(texts.len()))
}

/// Texts of which every match contains one, the most telling that are found.
fn required(hir: &Hir) -> Option<Vec<String>> {
    let inside = match hir.kind() {
        HirKind::Capture(capture) => required(&capture.sub),
        HirKind::Repetition(repetition) if repetition.min > 0 => required(&repetition.sub),
        HirKind::Alternation(choices) => {
            let all = choices.iter().map(required).collect::<Option<Vec<_>>>();
            all.map(|all| distinct(all.concat())).filter(|all| all.len() <= MOST_PARTS)
        }
        HirKind::Concat(parts) => {
            // what begins at each part, and what is within it
            let next = |at: usize| &parts[at..parts.len().min(at + MOST_PARTS)];
            let from = (1..parts.len()).filter_map(|at| beginning(&Hir::concat(next(at).into())));
            from.chain(parts.iter().filter_map(required)).max_by_key(|texts| worth(texts))
        }
        _ => None,
    };
    beginning(hir).into_iter().chain(inside).max_by_key(|texts| worth(texts))
}

/// Texts of which every match begins with one.
fn beginning(hir: &Hir) -> Option<Vec<String>> {
    let mut extractor = Extractor::new();
    let found = extractor.limit_class(FEW).limit_literal_len(LONGEST).limit_total(MOST_PARTS);
    let text = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        text.trim_end_matches('\u{FFFD}').to_owned() // what the extractor cuts off may be half of one
    };
    let found = found.extract(hir);
    let texts = distinct(found.literals()?.iter().map(|one| text(one.as_bytes())).collect());
    texts.iter().all(|text| text.len() > 1).then_some(texts)
}

/// Texts without those that contain another one.
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

/// An expression of small ASCII letters that matches wherever one does in a text whose case is
/// folded: what is not of ASCII may be anything.
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
            let all: Option<Vec<char>> = all.take(3 * FEW).map(folded_character).collect();
            match all.filter(|_| length <= 3 * FEW) {
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

/// The small ASCII letter, or other ASCII character, that simple case folding makes of one.
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
            let found = required_parts(pattern, flags, true).map(|parts| parts.texts);
            assert_eq!(found.unwrap_or_default(), *expected, "{pattern}");
        }
        let words = |number: fn(usize) -> String| (0..40).map(number).collect::<Vec<_>>().join("|");
        let found = required_parts(&words(|n| format!("word{n:02}")), "", true);
        assert_eq!(found.unwrap().texts, ["word"]);
        assert!(required_parts(&words(|n| format!("{n:02}word")), "", true).is_none());
        assert!(required_parts("sea", "i", false).is_none());
    }
}
