//! The text of a literal that may hold HTML, as the descriptions of feeds do.
//!
//! Tags are dropped and character references decoded. No tree is built, because only the words are
//! wanted. Regular expressions find the tags, so any input takes linear time.
//!
//! Source: the HTML standard, sections 13.2.5 (tokenization) and 15.3 (elements that a browser shows
//! as blocks).

use memchr::memchr;
use regex::Regex;
use std::borrow::Cow;
use std::collections::HashSet;

/// A comment, a declaration, an element whose text is not shown, or a tag. One that is not closed
/// ends with the text. A quote in a tag begins a value only behind `=`.
const TAGS: [&str; 5] = [
    r"<!--.*?(?:-->|\z)",
    r"<[!?][^>]*>?",
    r"<script[\s/>].*?(?:</script(?-u:\b)[^>]*>?|\z)",
    r"<style[\s/>].*?(?:</style(?-u:\b)[^>]*>?|\z)",
    r#"</?[a-z](?:=\s*"[^"]*"?|=\s*'[^']*'?|[^<>])*>?"#,
];

/// Finds the text in markup.
pub struct Markup {
    /// Finds the tag at the beginning of a text.
    tags: Regex,
    /// The names of block elements.
    blocks: HashSet<String>,
    /// Finds the links and share buttons that feeds add, each to the end of its line.
    links: Regex,
}

impl Markup {
    pub fn new(blocks: HashSet<String>, links: &str) -> Result<Self, regex::Error> {
        let tags = Regex::new(&format!(r"\A(?is:{})", TAGS.join("|")))?;
        Ok(Self { tags, blocks, links: Regex::new(links)? })
    }

    /// Returns the text that a browser shows.
    ///
    /// The edges of a block element become an empty line and a line break a newline. Other tags leave
    /// nothing, so that a word with a tag inside stays one word.
    fn plain_text<'a>(&self, markup: &'a str) -> Cow<'a, str> {
        let mut text = Cow::from(markup);
        if markup.contains('<') {
            let (mut shown, mut done) = (String::with_capacity(markup.len()), 0);
            while let Some(start) = memchr(b'<', &markup.as_bytes()[done..]) {
                let start = done + start;
                let tag = self.tags.find(&markup[start..]);
                shown.push_str(&markup[done..start]);
                shown.push_str(tag.map_or("<", |tag| self.space_of(tag.as_str())));
                done = start + tag.map_or(1, |tag| tag.len());
            }
            text = (shown + &markup[done..]).into();
        }
        if text.contains('&') { htmlize::unescape(&*text).into_owned().into() } else { text }
    }

    /// The white space that a tag becomes.
    fn space_of(&self, tag: &str) -> &'static str {
        let name = tag[1..].strip_prefix('/').unwrap_or(&tag[1..]);
        let end = name.find(|c: char| c.is_whitespace() || "<>/\"'".contains(c));
        match name[..end.unwrap_or(name.len())].to_ascii_lowercase() {
            name if name == "br" => "\n",
            name if self.blocks.contains(&name) => "\n\n",
            _ => "",
        }
    }

    /// Returns the plain text. If it `has_links`, those and the share buttons that feeds add to it are
    /// left out.
    ///
    /// One of these counts behind the end of a sentence or of a line, not at the beginning of the text.
    pub fn text<'a>(&self, markup: &'a str, has_links: bool) -> Cow<'a, str> {
        const ENDS: [char; 11] = ['\n', '.', '…', '!', '?', ':', ']', ')', '»', '”', '"'];
        const OPENS: [char; 8] = [' ', '\t', '\u{A0}', '(', '[', '"', '“', '→'];
        let text = self.plain_text(markup);
        let (mut kept, mut done, mut from) = (String::new(), 0, 1);
        while has_links
            && from <= text.len()
            && let Some(link) = self.links.find_at(&text, from)
        {
            let before = text[..link.start()].chars().rev().take(8).find(|c| !OPENS.contains(c));
            from = link.start() + 1;
            if before.is_none_or(|c| ENDS.contains(&c)) {
                kept.push_str(&text[done..link.start()]);
                done = link.end();
                from = done;
            }
        }
        if done == 0 { text } else { (kept + &text[done..]).into() }
    }
}
