//! The text of a literal that may hold HTML, as the descriptions of feeds do.
//!
//! Tags are dropped and character references decoded. No tree is built, because only the words are
//! wanted. Each part of the text is looked at once, so that any input takes linear time.
//!
//! Source: the HTML standard, sections 13.2.5 (tokenization) and 15.3 (elements that a browser shows
//! as blocks).

use regex::Regex;
use std::borrow::Cow;
use std::collections::HashSet;

/// Maximum number of characters of a line that a feed has added.
const LONGEST_ADDED: usize = 200;

/// The phrases and elements that the text of an item is cleaned of.
pub struct Markup {
    /// The names of block elements.
    blocks: HashSet<String>,
    /// How lines begin that feeds add, and what else they contain.
    added: Vec<(String, String)>,
    /// Finds a text that has one of the beginnings.
    is_added: Option<Regex>,
}

impl Markup {
    pub fn new(blocks: Vec<String>, added: Vec<(String, String)>) -> Self {
        let beginnings: Vec<String> = added.iter().map(|(begin, _)| regex::escape(begin)).collect();
        let is_added = Regex::new(&beginnings.join("|")).ok().filter(|_| !added.is_empty());
        Self { blocks: blocks.into_iter().collect(), added, is_added }
    }

    /// Returns the text that a reader of markup sees.
    ///
    /// The edges of a block element become an empty line and a line break a newline. Other tags leave
    /// nothing, so that a word with a tag inside stays one word. A tag that is not closed ends with
    /// the text.
    pub fn plain_text<'a>(&self, markup: &'a str) -> Cow<'a, str> {
        let text =
            if markup.contains('<') { self.without_tags(markup).into() } else { Cow::from(markup) };
        if !text.contains('&') {
            return text;
        }
        htmlize::unescape(&*text).into_owned().into()
    }

    /// Returns the plain text without the links and share buttons that feeds add to it.
    ///
    /// A phrase of these counts behind the end of a sentence or of a line, if the rest of the line is
    /// short and not a sentence. That rest is left out.
    pub fn readable_text<'a>(&self, markup: &'a str) -> Cow<'a, str> {
        let mut text = self.plain_text(markup);
        if self.is_added.as_ref().is_some_and(|added| added.is_match(&text)) {
            for (beginning, middle) in &self.added {
                if text.contains(beginning) {
                    text = without(&text, beginning, middle).into();
                }
            }
        }
        text
    }

    fn without_tags(&self, markup: &str) -> String {
        let mut text = String::with_capacity(markup.len());
        let mut rest = markup;
        while let Some(at) = rest.find('<') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let (length, name) = tag(rest);
            text.push_str(match name {
                None if length == 0 => "<",
                Some(name) if name.eq_ignore_ascii_case("br") => "\n",
                Some(name) if self.blocks.contains(&name.to_ascii_lowercase()) => "\n\n",
                _ => "",
            });
            rest = &rest[length.max(1)..];
        }
        text + rest
    }
}

/// The length of the tag at the beginning of a text, and its name; 0 if there is none. A comment, a
/// script and a style sheet count as a tag without a name.
fn tag(text: &str) -> (usize, Option<&str>) {
    let to = |end: &str| text.find(end).map_or(text.len(), |at| at + end.len());
    if let Some(comment) = text.strip_prefix("<!--") {
        return (comment.find("-->").map_or(text.len(), |at| at + 7), None);
    }
    if text.starts_with("<!") || text.starts_with("<?") {
        return (to(">"), None);
    }
    let inner = text[1..].strip_prefix('/').unwrap_or(&text[1..]);
    if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return (0, None);
    }
    let is_end = |c: char| c.is_whitespace() || matches!(c, '<' | '>' | '/' | '"' | '\'');
    let name = &inner[..inner.find(is_end).unwrap_or(inner.len())];
    for hidden in ["script", "style"] {
        let is_hidden = name.eq_ignore_ascii_case(hidden) && !text.starts_with("</");
        if is_hidden {
            return (hidden_length(text, hidden), None);
        }
    }
    let mut at = text.len() - inner.len() + name.len();
    let mut is_value = false;
    while let Some(c) = text[at..].chars().next() {
        match c {
            '<' => break,
            '>' => return (at + 1, Some(name)),
            '"' | '\'' if is_value => {
                at += text[at + 1..].find(c).map_or(text.len() - at, |end| end + 2);
            }
            _ => at += c.len_utf8(),
        }
        is_value = c == '=' || is_value && c.is_whitespace();
    }
    (at, Some(name))
}

/// The length of an element whose text is not shown.
fn hidden_length(text: &str, name: &str) -> usize {
    let mut at = 1;
    while let Some(next) = text[at..].find("</") {
        at += next + 2;
        let end = text.as_bytes().get(at..at + name.len());
        let goes_on =
            text.as_bytes().get(at + name.len()).is_some_and(|b| b.is_ascii_alphanumeric());
        if end.is_some_and(|end| end.eq_ignore_ascii_case(name.as_bytes())) && !goes_on {
            return text[at..].find('>').map_or(text.len(), |end| at + end + 1);
        }
    }
    text.len()
}

/// A text without the lines that begin so and contain the other phrase.
fn without(text: &str, beginning: &str, middle: &str) -> String {
    const ENDS: [char; 11] = ['\n', '.', '…', '!', '?', ':', ']', ')', '»', '”', '"'];
    const OPENS: [char; 8] = [' ', '\t', '\u{A0}', '(', '[', '"', '“', '→'];
    let first = text.chars().next().map_or(0, char::len_utf8);
    let (mut kept, mut done, mut from) = (String::new(), 0, first);
    while let Some(at) = text[from..].find(beginning).map(|place| from + place) {
        from = at + beginning.len();
        let rest = &text[at..];
        let most = rest.char_indices().nth(LONGEST_ADDED).map_or(rest.len(), |(end, _)| end);
        let line = rest[..most].find('\n').map(|end| &rest[..end]);
        let Some(line) = line.or_else(|| (most == rest.len()).then_some(rest)) else { continue };
        let last = text[..at].chars().rev().take(8).find(|c| !OPENS.contains(c));
        let trimmed = line.trim_end();
        let is_whole = match middle {
            "" => !trimmed.ends_with('.') || trimmed.ends_with(".."),
            _ => trimmed.contains(middle),
        };
        if last.is_none_or(|c| ENDS.contains(&c)) && is_whole {
            kept.push_str(&text[done..at]);
            done = at + line.len();
            from = done.max(from);
        }
    }
    kept + &text[done..]
}
