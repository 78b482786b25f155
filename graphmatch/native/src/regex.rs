//! What every match of a regular expression contains: some of its letters, as they stand.
//!
//! `(^| )(two|three)s? +years` cannot match without `years`, and not without `two` or `three`. One
//! such set of alternatives is a necessary test, which an index looks for in the same pass as all
//! other texts. The expression is parsed by the parser of the evaluator's regular expressions, so
//! nothing is guessed about the dialect.
//!
//! Source: R. Cox, Regular expression matching with a trigram index, 2012.

use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// More alternatives than these are no good test.
const MOST_PARTS: usize = 16;
/// A class of more characters is not spelled out.
const MOST_CHARACTERS: usize = 4;

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
    let exact = walk(&hir, false).best();
    let folded = if fold { walk(&hir, true).best() } else { None };
    let value = |parts: &Option<Vec<String>>| {
        parts.as_ref().map_or((0, 0), |parts| (worth(parts), MOST_PARTS - parts.len()))
    };
    let caseless = value(&folded) > value(&exact)
        || value(&folded).0 == value(&exact).0 && value(&folded).1 > value(&exact).1
        || exact.as_ref().is_some_and(|exact| exact.len() > MOST_CHARACTERS) && folded.is_some();
    let texts = if caseless { folded } else { exact }?;
    Some(Parts { texts, caseless })
}

/// How telling parts are: the length of the shortest; 0 where they tell nothing.
fn worth(parts: &[String]) -> usize {
    if parts.len() > MOST_PARTS {
        return 0;
    }
    parts.iter().map(|part| part.len().saturating_sub(1)).min().unwrap_or(0)
}

/// What is known of the matches of an expression.
#[derive(Default)]
struct Found {
    /// All matches, where these are few.
    exact: Option<Vec<String>>,
    /// Each match begins and ends with one of these.
    ends: Option<Vec<String>>,
    /// Each match contains one of these.
    inside: Option<Vec<String>>,
}

impl Found {
    fn exactly(texts: Vec<String>) -> Self {
        Self { exact: Some(texts), ..Self::default() }
    }

    fn best(self) -> Option<Vec<String>> {
        let mut best = self.inside;
        [self.exact, self.ends].into_iter().flatten().for_each(|parts| better(&mut best, parts));
        best
    }
}

fn better(best: &mut Option<Vec<String>>, parts: Vec<String>) {
    let known = best.as_ref().map_or((0, 0), |best| (worth(best), best.len()));
    let value = worth(&parts);
    if value > known.0 || (value > 0 && value == known.0 && parts.len() < known.1) {
        *best = Some(parts);
    }
}

/// A concatenation, as far as it was read.
struct Run {
    now: Vec<String>,
    whole: bool,
    best: Option<Vec<String>>,
}

impl Run {
    /// Adds what stands next, one of these texts.
    fn add(&mut self, texts: Vec<String>) {
        if self.now.len() * texts.len() > MOST_PARTS {
            self.interrupt();
            self.now = texts;
            return;
        }
        let joined = |a: &String| texts.iter().map(|b| format!("{a}{b}")).collect::<Vec<_>>();
        self.now = self.now.iter().flat_map(joined).collect();
    }

    /// Goes on behind something that is not known.
    fn interrupt(&mut self) {
        better(&mut self.best, std::mem::replace(&mut self.now, vec![String::new()]));
        self.whole = false;
    }

    fn take(&mut self, found: Found) {
        match found {
            Found { exact: Some(texts), .. } => self.add(texts),
            Found { ends: Some(texts), .. } => {
                self.add(texts.clone());
                self.interrupt();
                self.now = texts;
            }
            Found { inside, .. } => {
                self.interrupt();
                inside.into_iter().for_each(|parts| better(&mut self.best, parts));
            }
        }
    }

    fn end(mut self) -> Found {
        if self.whole {
            return Found::exactly(self.now);
        }
        self.interrupt();
        Found { inside: self.best, ..Found::default() }
    }
}

fn walk(hir: &Hir, fold: bool) -> Found {
    let mut run = Run { now: vec![String::new()], whole: true, best: None };
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => {
            let Ok(text) = std::str::from_utf8(&literal.0) else { return Found::default() };
            if !fold {
                return Found::exactly(vec![text.to_owned()]);
            }
            for c in text.chars() {
                match folded(c) {
                    Some(c) => run.now[0].push(c),
                    None => run.interrupt(),
                }
            }
        }
        HirKind::Class(class) => match characters(class, fold) {
            Some(texts) => run.add(texts),
            None => run.interrupt(),
        },
        HirKind::Capture(capture) => return walk(&capture.sub, fold),
        HirKind::Repetition(repetition) if repetition.min == 0 => run.interrupt(),
        HirKind::Repetition(repetition) => {
            let mut found = walk(&repetition.sub, fold);
            found.ends = found.exact.take().or(found.ends);
            return found;
        }
        HirKind::Concat(parts) => parts.iter().for_each(|part| run.take(walk(part, fold))),
        HirKind::Alternation(choices) => return alternation(choices, fold),
    }
    run.end()
}

fn alternation(choices: &[Hir], fold: bool) -> Found {
    let found: Vec<Found> = choices.iter().map(|choice| walk(choice, fold)).collect();
    let is_exact = found.iter().all(|one| one.exact.is_some());
    let mut texts: Vec<String> = Vec::new();
    for one in found {
        let Some(parts) = (if is_exact { one.exact } else { one.best() }) else {
            return Found::default();
        };
        for part in parts {
            if !texts.contains(&part) {
                texts.push(part);
            }
        }
        if texts.len() > MOST_PARTS {
            return Found::default();
        }
    }
    if is_exact {
        return Found::exactly(texts);
    }
    Found { inside: Some(texts), ..Found::default() }
}

/// The small ASCII letter, or other ASCII character, that simple case folding makes of one.
fn folded(c: char) -> Option<char> {
    match c {
        'ſ' => Some('s'),
        '\u{212A}' => Some('k'),
        _ => c.is_ascii().then(|| c.to_ascii_lowercase()),
    }
}

/// The characters of a small class.
fn characters(class: &Class, fold: bool) -> Option<Vec<String>> {
    let Class::Unicode(class) = class else { return None };
    let mut found: Vec<String> = Vec::new();
    for range in class.ranges() {
        if range.len() > MOST_CHARACTERS * 3 {
            return None;
        }
        for c in range.start()..=range.end() {
            let text = if fold { folded(c)? } else { c }.to_string();
            if !found.contains(&text) {
                found.push(text);
            }
        }
        if found.len() > MOST_CHARACTERS {
            return None;
        }
    }
    (!found.is_empty()).then_some(found)
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
            ("colou?r", "", &["colo"]),
            ("colo(u)?r(s+)", "", &["colo"]),
            ("seas*", "", &["sea"]),
            ("seas+ide", "", &["seas"]),
            ("seas{0}ide", "", &["seaide"]),
            ("seas{2,3}?ide", "", &["seas"]),
            ("(sea){2}", "", &["sea"]),
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
        let words: Vec<String> = (0..40).map(|n| format!("word{n}")).collect();
        assert!(required_parts(&words.join("|"), "", true).is_none());
        assert!(required_parts("sea", "i", false).is_none());
    }
}
