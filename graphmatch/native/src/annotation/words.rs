//! Text as words, and the form that all spellings of a word share.
//!
//! Words are found in the text as it stands and folded one by one, so that each keeps its place: `ﬁ`
//! and `ß` grow when they are folded, a letter with a combining accent shrinks.
//!
//! Source: The Unicode Standard, section 3.13 (compatibility caseless matching); UAX 29 (word
//! boundaries); UAX 14, class SA (scripts without spaces).

use crate::attribute_names::case_folded;
use std::borrow::Cow;
use std::ops::Range;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// The word that stands for an empty line. No label goes across it.
pub const BREAK: &str = "\n";

/// A letter or digit.
fn is_letter(c: char) -> bool {
    let is_symbol = matches!(c, 'Ⓐ'..='ⓩ' | '\u{1F130}'..='\u{1F189}');
    c.is_ascii_alphanumeric()
        || !c.is_ascii() && c.is_alphanumeric() && !is_combining_mark(c) && !is_symbol
}

/// A letter of a script without spaces: Han, kana, or one of South-East Asia.
pub fn is_unspaced(c: char) -> bool {
    let is_kana = matches!(c, '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}'
        | '\u{FF66}'..='\u{FF9F}' | '\u{1AFF0}'..='\u{1B16F}');
    let is_asian = matches!(c, '\u{E00}'..='\u{EFF}' | '\u{1000}'..='\u{109F}'
        | '\u{1780}'..='\u{17FF}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AA60}'..='\u{AA7F}');
    (is_han(c) || is_kana || is_asian) && is_letter(c)
}

fn is_han(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3021}'..='\u{3029}' | '\u{3038}'..='\u{303B}'
        | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// A mark, or an invisible character that belongs to the word before it.
pub fn is_attached(c: char) -> bool {
    let is_format = matches!(c, '\u{AD}' | '\u{200C}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}');
    !c.is_ascii() && (is_format || is_voicing(c) || is_combining_mark(c))
}

/// A half-width voicing mark of kana.
fn is_voicing(c: char) -> bool {
    matches!(c, '\u{FF9E}' | '\u{FF9F}')
}

fn is_sign(c: char) -> bool {
    matches!(c, '+' | '#' | '＋' | '＃')
}

/// Whether a word stands for an empty line.
pub fn is_break(word: &str) -> bool {
    word.starts_with(['\n', '\u{2029}'])
}

/// The places of the words of a text.
///
/// A word is a run of letters, digits and their marks; in scripts without spaces one letter with its
/// marks. `+` and `#` after a word and a full stop before one are words, since they are part of names
/// (C++, F#, .NET). A web address is one word, and so is an empty line.
pub fn words(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::with_capacity(text.len() / 8);
    let (mut at, mut before) = (0, ' ');
    while let Some(&byte) = text.as_bytes().get(at) {
        if byte.is_ascii() && !byte.is_ascii_alphanumeric() && !b"+#.\n".contains(&byte) {
            // Most signs begin no word.
            (at, before) = (at + 1, char::from(byte));
            continue;
        }
        let rest = &text[at..];
        let c = rest.chars().next().unwrap_or(' ');
        let follows_word = || before == '_' || is_letter(before) || is_attached(before);
        let word = match c {
            'h' | 'H' | 'w' | 'W' => address(rest).unwrap_or_else(|| letters(rest)),
            _ if is_letter(c) => letters(rest),
            _ if is_sign(c) && follows_word() => rest.find(|c| !is_sign(c)).unwrap_or(rest.len()),
            '.' | '．' if !follows_word() && !matches!(before, '.' | '．') => {
                let next = rest.chars().nth(1);
                if next.is_some_and(is_letter) { c.len_utf8() } else { 0 }
            }
            '\n' => {
                let space = rest.find(|c: char| !c.is_whitespace()).unwrap_or(rest.len());
                rest[1..space].rfind('\n').map_or(0, |end| end + 2)
            }
            '\u{2029}' => c.len_utf8(),
            _ => 0,
        };
        if word > 0 {
            found.push(at..at + word);
        }
        at += word.max(c.len_utf8());
        before = if word == 0 { c } else { text[..at].chars().next_back().unwrap_or(' ') };
    }
    found
}

/// The length of the web address at the beginning of a text.
fn address(text: &str) -> Option<usize> {
    let begins = |with: &&str| {
        let head = text.as_bytes().get(..with.len());
        head.is_some_and(|head| head.eq_ignore_ascii_case(with.as_bytes()))
    };
    let head = ["https://", "http://", "www."].iter().find(|with| begins(with))?.len();
    let ends = |b: u8| b <= b' ' || b >= 0x7F || matches!(b, b'"' | b'<' | b'>');
    let end = text.bytes().skip(head).position(ends).map_or(text.len(), |length| head + length);
    (end > head).then_some(end)
}

/// The length of the letters and marks at the beginning of a text.
fn letters(text: &str) -> usize {
    let ascii = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    if ascii > 0 && text.as_bytes().get(ascii).is_none_or(u8::is_ascii) {
        return ascii;
    }
    let first = text.chars().next();
    let is_alone = first.is_some_and(|c| is_unspaced(c) || is_voicing(c));
    let is_next = |c: char| c.is_ascii_alphanumeric() || is_letter(c) && !is_unspaced(c);
    let goes_on = |c: char| !is_alone && is_next(c) || is_attached(c);
    let from = first.map_or(0, char::len_utf8);
    text[from..].find(|c| !goes_on(c)).map_or(text.len(), |length| from + length)
}

/// The form that all spellings of a word share: NFKC and case folding, without joiners and soft
/// hyphens.
///
/// Accents stay: `pâte` is not `pate`.
pub fn fold(word: &str) -> Cow<'_, str> {
    if is_break(word) {
        return BREAK.into();
    }
    if word.is_ascii() {
        let is_lower = !word.bytes().any(|b| b.is_ascii_uppercase());
        return if is_lower { word.into() } else { word.to_ascii_lowercase().into() };
    }
    let is_ignored = |c: &char| {
        matches!(c, ' ' | '\u{AD}' | '\u{34F}' | '\u{200C}' | '\u{200D}' | '\u{2060}' | '\u{FEFF}'
            | '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}')
    };
    // Case folding leaves a dot over the i of the Turkish İ.
    let folded = case_folded(word.nfkc()).replace("i\u{307}", "i");
    folded.nfkc().filter(|c| !is_ignored(c)).collect::<String>().into()
}

/// The words of a text, folded, with a space before and after each.
pub fn folded(text: &str, words: &[Range<usize>]) -> String {
    let mut folded = String::with_capacity(text.len() + 2);
    folded.push(' ');
    for word in words {
        folded.push_str(&fold(&text[word.clone()]));
        folded.push(' ');
    }
    if words.is_empty() {
        folded.push(' ');
    }
    folded
}

/// The number of letters and digits. A Han character stands for a syllable or more and counts two.
pub fn letter_count(word: &str) -> usize {
    word.chars().map(|c| usize::from(is_letter(c)) + usize::from(is_han(c))).sum()
}
