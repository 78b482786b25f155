//! Concepts in the text of feed items: the labels of an ontology, found word by word.
//!
//! The labels are a trie of folded words. A word of a text is read as itself, as another form of a
//! word, or as a compound with parts; its readings are cached. Most words have none, so that a text
//! costs one look-up per word, no matter how many labels there are. A trie has the labels of the
//! languages of a text.

pub mod forms;
mod markup;
pub mod words;

use self::forms::{Languages, Stems, primary_subtag};
use self::markup::Markup;
use self::words::{fold, folded, is_attached, is_break, is_unspaced, letter_count, words};
use crate::dictionary::{Id, Terms, hash};
use crate::lexical::LiteralParts;
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use unicode_normalization::UnicodeNormalization;

/// The property of a concept that was found.
pub const SUBJECT: &[u8] = b"<http://purl.org/dc/terms/subject>";
/// The property of the words of an item.
pub const WORDS: &[u8] = b"<urn:graphmatch:words>";
/// Maximum number of words of a label. Longer labels are not found.
const LABEL_WORDS: usize = 64;
/// Number of words of a paragraph that are searched together. A label across the border of two such
/// parts is not found.
const PARAGRAPH: usize = 1 << 16;
/// Number of words that are read while other threads wait for the cache.
const READ: usize = 256;
/// Maximum number of languages that a text is in.
const STATED: usize = 16;
/// Maximum number of sets of languages that have a trie.
const TRIES: usize = 64;
/// Maximum number of words in the cache of a trie.
const CACHED: usize = 1 << 15;
/// Maximum length in bytes of a word that is cached.
const CACHED_BYTES: usize = 64;
/// A label with a word of at least this number of letters is found in any case.
const TELLING: usize = 3;
/// A word of capitals with more letters is not an acronym.
const ACRONYM: usize = 5;
/// Number of words by which a language is guessed.
const GUESSED: usize = 500;
/// The characters that a label of one character must not touch.
const JOINTS: &str = ".-\u{2010}\u{2011}_&/\\*^$=<>|@#+";

/// A name of a concept.
pub struct Label {
    pub text: Box<str>,
    /// The language of the name; `None` for a name in every language.
    pub language: Option<Box<str>>,
    /// The N-Triples text of the concept.
    pub concept: Box<str>,
}

/// How a text has a label. Two labels may be in one place; the one with the earlier form is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Form {
    /// The text has the words of the label, in any case, Unicode form and punctuation.
    Same,
    /// A word has another form, such as a plural.
    Inflected,
    /// A word of the text is a compound that contains the label.
    Compound,
}

/// A label in a text, in bytes of the text.
pub struct Occurrence {
    /// The label's number.
    pub label: u32,
    pub place: Range<usize>,
    pub form: Form,
}

/// A literal of a feed item.
pub struct ItemText {
    pub item: Id,
    pub property: Id,
    /// The text without markup.
    pub text: String,
    words: Vec<Range<usize>>,
    /// The languages that are stated; none if they are unknown.
    languages: Vec<Box<str>>,
    /// Whether it is content that another text of the item has.
    is_repeated: bool,
    /// Whether its words are searched by subscriptions.
    has_words: bool,
}

impl ItemText {
    /// The words of the text, folded, if subscriptions search them.
    pub fn folded(&self) -> Option<String> {
        self.has_words.then(|| folded(&self.text, &self.words))
    }
}

/// Finds the labels of an ontology in text.
pub struct Annotator {
    pub labels: Vec<Label>,
    /// Whether other forms of labels are found.
    stem: bool,
    languages: Languages,
    /// The languages of labels.
    known: HashSet<Box<str>>,
    markup: Markup,
    tries: Mutex<HashMap<Vec<Box<str>>, Arc<Trie>>>,
}

impl Annotator {
    pub fn new(
        labels: Vec<Label>,
        stem: bool,
        languages: Languages,
        blocks: Vec<String>,
        added: Vec<(String, String)>,
    ) -> Self {
        let markup = Markup::new(blocks, added);
        let tags = labels.iter().filter_map(|label| label.language.as_deref());
        let known = tags.filter_map(primary_subtag).collect();
        Self { labels, stem, languages, known, markup, tries: Mutex::default() }
    }

    /// The texts of the subjects of type `rss:item`, item by item.
    ///
    /// A literal's language is its tag; without one the item's `dc:language`, without that the
    /// channel's.
    pub fn texts(&self, triples: &[Triple], terms: Terms) -> Vec<ItemText> {
        let find = |iri: &str| {
            let text = format!("<{iri}>");
            terms.find_hashed(text.as_bytes(), hash(text.as_bytes()))
        };
        let rss = |name: &str| find(&format!("http://purl.org/rss/1.0/{name}"));
        let dc = |name: &str| find(&format!("http://purl.org/dc/elements/1.1/{name}"));
        let type_ = find("http://www.w3.org/1999/02/22-rdf-syntax-ns#type");
        let content = find("http://purl.org/rss/1.0/modules/content/encoded");
        let (title, description, subject) = (rss("title"), rss("description"), dc("subject"));
        let (item, channel, language) = (rss("item"), rss("channel"), dc("language"));
        let mut items: Vec<(Id, Vec<ItemText>)> = Vec::new();
        let (mut places, mut channels) = (HashMap::new(), Vec::new());
        for &[about, property, value] in triples {
            if Some(property) == type_ && Some(value) == item {
                places.entry(about).or_insert_with(|| {
                    items.push((about, Vec::new()));
                    items.len() - 1
                });
            } else if Some(property) == type_ && Some(value) == channel {
                channels.push(about);
            }
        }
        let mut stated: HashMap<Id, Vec<Box<str>>> = HashMap::new();
        let mut seen: HashSet<(Id, String)> = HashSet::new();
        for &[about, property, value] in triples {
            let property = Some(property);
            let is_read = [title, description, content, subject].contains(&property);
            if !is_read && property != language {
                continue;
            }
            let text = terms.text(value);
            let Some(literal) = LiteralParts::of(&text) else { continue };
            let plain = literal.plain();
            let plain = String::from_utf8_lossy(&plain);
            if property == language {
                stated.entry(about).or_default().extend(primary_subtag(&plain));
                continue;
            }
            let (Some(&place), Some(property)) = (places.get(&about), property) else { continue };
            let is_readable = [description, content].contains(&Some(property));
            let text = self.text(&plain, is_readable).into_owned();
            let tag = literal.language().map(String::from_utf8_lossy);
            let is_new = seen.insert((about, text.clone()));
            items[place].1.push(ItemText {
                item: about,
                property,
                words: words(&text),
                text,
                languages: tag.and_then(|tag| primary_subtag(&tag)).into_iter().collect(),
                is_repeated: Some(property) == content && !is_new,
                has_words: Some(property) != subject,
            });
        }
        let of_channels = channels.iter().filter_map(|about| stated.get(about));
        let mut channel: Vec<Box<str>> = of_channels.flatten().cloned().collect();
        for languages in stated.values_mut().chain([&mut channel]) {
            languages.sort();
            languages.dedup();
            languages.truncate(STATED);
        }
        for (about, texts) in &mut items {
            let of_item = stated.get(about).unwrap_or(&channel);
            for text in texts.iter_mut().filter(|text| text.languages.is_empty()) {
                text.languages.clone_from(of_item);
            }
        }
        items.into_iter().flat_map(|(_, texts)| texts).collect()
    }

    /// The text that a reader of markup sees; without the lines that feeds add if it `is_readable`.
    pub fn text<'a>(&self, markup: &'a str, is_readable: bool) -> Cow<'a, str> {
        match is_readable {
            true => self.markup.readable_text(markup),
            false => self.markup.plain_text(markup),
        }
    }

    /// The labels in the texts of items, each with the number of its text, by position.
    pub fn occurrences(&self, texts: &[ItemText]) -> Vec<(usize, Occurrence)> {
        let mut found = Vec::new();
        let mut from = 0;
        while let Some(first) = texts.get(from) {
            let count = texts[from..].iter().take_while(|one| one.item == first.item).count();
            let of_one = &texts[from..from + count];
            let mut guess = None;
            for (number, text) in of_one.iter().enumerate().filter(|(_, one)| !one.is_repeated) {
                let languages = match text.languages.is_empty() {
                    true => guess.get_or_insert_with(|| self.guess(of_one)).clone(),
                    false => text.languages.clone(),
                };
                let places = self.find(&text.text, &text.words, languages);
                found.extend(places.into_iter().map(|one| (from + number, one)));
            }
            from += count;
        }
        found
    }

    fn guess(&self, texts: &[ItemText]) -> Vec<Box<str>> {
        let texts = texts.iter().filter(|one| !one.is_repeated);
        let words = texts.flat_map(|one| one.words.iter().map(|word| &one.text[word.clone()]));
        self.languages.guess(words.take(GUESSED)).into_iter().collect()
    }

    /// The labels in a plain text by position. Its language is guessed if it has no tag.
    pub fn in_text(&self, text: &str, tag: Option<&str>) -> Vec<Occurrence> {
        let words = words(text);
        let language = tag.and_then(primary_subtag).or_else(|| {
            let all = words.iter().map(|word| &text[word.clone()]);
            self.languages.guess(all.take(GUESSED))
        });
        self.find(text, &words, language.into_iter().collect())
    }

    fn find(
        &self,
        text: &str,
        words: &[Range<usize>],
        languages: Vec<Box<str>>,
    ) -> Vec<Occurrence> {
        if self.labels.is_empty() || words.is_empty() {
            return Vec::new();
        }
        let trie = self.trie(languages);
        let paragraphs = words.split(|word| is_break(&text[word.clone()]));
        let parts = paragraphs.flat_map(|paragraph| paragraph.chunks(PARAGRAPH));
        parts.flat_map(|part| trie.find(self, text, part)).collect()
    }

    /// The labels of some languages; of all if there are none.
    fn trie(&self, mut languages: Vec<Box<str>>) -> Arc<Trie> {
        // Languages without labels and stemmer are all alike.
        for one in &mut languages {
            if !self.known.contains(one) && !self.languages.has_stemmer(one) {
                *one = "zxx".into();
            }
        }
        languages.dedup();
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(trie) = tries.get(&languages) {
            return Arc::clone(trie);
        }
        if tries.len() >= TRIES {
            tries.clear();
        }
        let trie = Arc::new(Trie::new(self, &languages));
        tries.insert(languages, Arc::clone(&trie));
        trie
    }
}

/// A node of the trie: the labels that end here, and the words that go on.
#[derive(Default)]
struct Node {
    patterns: Vec<Pattern>,
    next: HashMap<u32, u32>,
}

/// A label that ends at a node.
struct Pattern {
    label: u32,
    /// The language of the forms of its words.
    language: Box<str>,
    words: Vec<Written>,
    /// How it must be written; `None` if its folded words are enough.
    surface: Option<Surface>,
}

/// A word of a label.
struct Written {
    folded: Box<str>,
    is_capital: bool,
    /// Whether it has a capital inside, such as *iPhone*.
    is_mixed: bool,
}

/// A word of a label that a word of a text may stand for.
#[derive(Clone, Copy)]
struct Reading {
    word: u32,
    /// The number of letters. Longer hits are found first.
    size: usize,
    form: Form,
    /// The place in [`Trie::stems`] of the stems that relate the words; `None` if they are equal.
    stems: Option<usize>,
}

/// Words of a text that are labels.
#[derive(Clone, Copy)]
struct Hit {
    size: usize,
    form: Form,
    first: usize,
    /// The place behind the last word.
    end: usize,
    stems: Option<usize>,
    node: u32,
}

/// Labels by their folded words.
struct Trie {
    nodes: Vec<Node>,
    words: HashMap<Box<str>, u32>,
    stems: Vec<Stems>,
    readings: Mutex<HashMap<Box<str>, Arc<[Reading]>>>,
}

impl Trie {
    fn new(annotator: &Annotator, languages: &[Box<str>]) -> Self {
        let default = if let [one] = languages { one } else { "en" };
        let (nodes, words, stems) = (vec![Node::default()], HashMap::new(), Vec::new());
        let mut trie = Self { nodes, words, stems, readings: Mutex::default() };
        for (number, label) in annotator.labels.iter().enumerate() {
            let language = label.language.as_deref().map(primary_subtag);
            let language = language.flatten();
            if language.as_ref().is_none_or(|one| languages.is_empty() || languages.contains(one)) {
                trie.add(annotator, number as u32, label, language.as_deref(), default);
            }
        }
        trie
    }

    fn add(
        &mut self,
        annotator: &Annotator,
        number: u32,
        label: &Label,
        language: Option<&str>,
        default: &str,
    ) {
        let text = label.text.trim();
        let mut places = words(text);
        places.retain(|word| !is_break(&text[word.clone()]));
        if places.is_empty() || places.len() > LABEL_WORDS {
            return;
        }
        let written: Vec<Written> =
            places.iter().map(|word| Written::new(&text[word.clone()])).collect();
        let known = &annotator.languages;
        let surface = (!is_telling(&written, known, language)).then(|| Surface::new(text, &places));
        let language = language.unwrap_or(default);
        let mut node = 0;
        for word in &written {
            let next = self.words.len() as u32;
            let id = *self.words.entry_ref(&*word.folded).or_insert(next);
            let fresh = self.nodes.len() as u32;
            node = *self.nodes[node as usize].next.entry(id).or_insert(fresh);
            if node == fresh {
                self.nodes.push(Node::default());
            }
        }
        if annotator.stem {
            let mut stems = self.stems.iter_mut();
            let found = stems.position(|one| *one.language == *language).or_else(|| {
                self.stems.push(Stems::new(known, language)?);
                Some(self.stems.len() - 1)
            });
            if let Some(found) = found {
                written.iter().for_each(|word| self.stems[found].add(&word.folded));
            }
        }
        let language = language.into();
        let pattern = Pattern { label: number, language, words: written, surface };
        self.nodes[node as usize].patterns.push(pattern);
    }

    /// The labels in a part of a text, by position.
    fn find(&self, annotator: &Annotator, text: &str, words: &[Range<usize>]) -> Vec<Occurrence> {
        let readings = self.readings(&annotator.languages, text, words);
        let mut hits = Vec::new();
        for (first, several) in readings.iter().enumerate() {
            for &reading in several.iter() {
                self.follow(first, reading, &readings, &mut hits);
            }
        }
        hits.sort_by_key(|hit| (Reverse(hit.size), hit.form, hit.first));
        let mut taken: Vec<Option<Form>> = vec![None; words.len()];
        let mut found = Vec::new();
        for hit in hits {
            // Longer hits come first, so one that overlaps covers an end of this one.
            let by = taken[hit.first].or(taken[hit.end - 1]);
            if by.is_some_and(|by| by != Form::Compound || hit.form != Form::Compound) {
                continue;
            }
            let before = found.len();
            self.occurrences(&annotator.labels, text, words, hit, &mut found);
            if found.len() > before {
                taken[hit.first..hit.end].fill(Some(hit.form));
            }
        }
        found.sort_by_key(|one: &Occurrence| one.place.start);
        found
    }

    /// Returns the readings of each word of a text, and none behind the last one.
    fn readings(
        &self,
        languages: &Languages,
        text: &str,
        words: &[Range<usize>],
    ) -> Vec<Arc<[Reading]>> {
        let none: Arc<[Reading]> = Arc::new([]);
        let mut found = Vec::with_capacity(words.len() + 1);
        for some in words.chunks(READ) {
            let mut cache = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
            for word in some.iter().map(|word| &text[word.clone()]) {
                if let Some(readings) = cache.get(word) {
                    found.push(readings.clone());
                    continue;
                }
                let readings = self.read(languages, word);
                let readings = if readings.is_empty() { none.clone() } else { readings.into() };
                if word.len() <= CACHED_BYTES {
                    if cache.len() >= CACHED {
                        cache.clear();
                    }
                    cache.insert(word.into(), readings.clone());
                }
                found.push(readings);
            }
        }
        found.push(none);
        found
    }

    fn read(&self, languages: &Languages, written: &str) -> Vec<Reading> {
        let word = fold(written);
        let size = word.chars().count();
        let mut found = Vec::new();
        if let Some(&word) = self.words.get(&*word) {
            found.push(Reading { word, size, form: Form::Same, stems: None });
        }
        let mut letters = written.chars();
        let is_title =
            letters.next().is_some_and(char::is_uppercase) && !letters.any(char::is_uppercase);
        for (number, stems) in self.stems.iter().enumerate() {
            let stems_of = Some(number);
            let mut add = |other: &str, size, form| {
                if let Some(&word) = self.words.get(other) {
                    found.push(Reading { word, size, form, stems: stems_of });
                }
            };
            for other in stems.forms(languages, &word) {
                add(other, size, Form::Inflected);
            }
            for part in if is_title { stems.parts(languages, &word) } else { Vec::new() } {
                add(part, part.chars().count().min(size - 1), Form::Compound);
            }
        }
        found
    }

    /// Finds the labels that begin with a reading of a word and go on behind it.
    fn follow(
        &self,
        first: usize,
        begin: Reading,
        readings: &[Arc<[Reading]>],
        hits: &mut Vec<Hit>,
    ) {
        let Reading { word, size, form, stems } = begin;
        let Some(&node) = self.nodes[0].next.get(&word) else { return };
        let mut ways = vec![Hit { size, form, first, end: first + 1, stems, node }];
        while let Some(way) = ways.pop() {
            let node = &self.nodes[way.node as usize];
            if !node.patterns.is_empty() {
                hits.push(way);
            }
            if node.next.is_empty() || way.form == Form::Compound {
                continue;
            }
            for next in readings[way.end].iter() {
                let is_other =
                    next.stems.is_some() && way.stems.is_some() && next.stems != way.stems;
                let Some(&node) = node.next.get(&next.word) else { continue };
                if next.form != Form::Compound && !is_other {
                    ways.push(Hit {
                        size: way.size + next.size + 1,
                        form: way.form.max(next.form),
                        end: way.end + 1,
                        stems: next.stems.or(way.stems),
                        node,
                        ..way
                    });
                }
            }
        }
    }

    /// Adds the labels of a hit, one per concept.
    fn occurrences(
        &self,
        labels: &[Label],
        text: &str,
        words: &[Range<usize>],
        hit: Hit,
        found: &mut Vec<Occurrence>,
    ) {
        let given = &words[hit.first..hit.end];
        let language = hit.stems.map(|number| &*self.stems[number].language);
        let whole = given[0].start..given[given.len() - 1].end;
        let mut seen = HashSet::new();
        for pattern in &self.nodes[hit.node as usize].patterns {
            let place = match (&pattern.surface, hit.form) {
                (None, Form::Same) => Some(whole.clone()),
                (Some(surface), Form::Same) => surface.place(text, &whole),
                (None, _) => pattern.may_be(text, given, language).then(|| whole.clone()),
                (Some(_), _) => None,
            };
            let Some(place) = place else { continue };
            if seen.insert(&labels[pattern.label as usize].concept) {
                found.push(Occurrence { label: pattern.label, place, form: hit.form });
            }
        }
    }
}

impl Pattern {
    /// Whether words of a text, with forms of a language, may be the label in another form.
    fn may_be(&self, text: &str, words: &[Range<usize>], language: Option<&str>) -> bool {
        if language != Some(&*self.language) {
            return false;
        }
        let is_german_noun = &*self.language == "de" && words.len() == 1;
        self.words.iter().zip(words).enumerate().all(|(at, (own, word))| {
            let word = &text[word.clone()];
            let needs_capital = own.is_capital && (at > 0 || is_german_noun);
            *own.folded == *fold(word)
                || !own.is_mixed && (!needs_capital || word.starts_with(char::is_uppercase))
        })
    }
}

impl Written {
    fn new(word: &str) -> Self {
        let mut letters = word.chars();
        let is_capital = letters.next().is_some_and(char::is_uppercase);
        let has_capital = letters.any(char::is_uppercase);
        let is_upper = !word.chars().any(char::is_lowercase);
        let is_long = word.chars().count() > ACRONYM;
        Self {
            folded: fold(word).into(),
            is_capital,
            is_mixed: has_capital && !(is_upper && is_long),
        }
    }
}

/// Whether a label says enough to be found in any case and punctuation.
fn is_telling(words: &[Written], languages: &Languages, language: Option<&str>) -> bool {
    if words.iter().any(|word| word.folded.starts_with(is_unspaced)) {
        return words.iter().map(|word| letter_count(&word.folded)).sum::<usize>() >= TELLING;
    }
    words.iter().any(|word| {
        letter_count(&word.folded) >= TELLING && !languages.is_function_word(&word.folded, language)
    })
}

/// How a label is written that must be found letter by letter, in Unicode's NFC.
struct Surface {
    text: String,
    /// The number of characters before its first and after its last word.
    before: usize,
    after: usize,
}

impl Surface {
    fn new(text: &str, words: &[Range<usize>]) -> Self {
        let (first, last) = (words[0].start, words[words.len() - 1].end);
        let (before, after) = (text[..first].chars().count(), text[last..].chars().count());
        Self { text: text.nfc().collect(), before, after }
    }

    /// The place of the label whose words stand somewhere in a text.
    ///
    /// Returns `None` if the text differs or goes on: with `+` or `#`, or with a letter of a script
    /// without spaces. A single character must not touch the signs of initials and formulas (*J.R.*).
    fn place(&self, text: &str, words: &Range<usize>) -> Option<Range<usize>> {
        let mut start = words.start;
        for _ in 0..self.before {
            start -= text[..start].chars().next_back()?.len_utf8();
        }
        let mut end = words.end;
        for _ in 0..self.after {
            end += text[end..].chars().next()?.len_utf8();
        }
        let given = &text[start..end];
        if !given.nfc().eq(self.text.chars()) {
            return None;
        }
        let (before, after) = (text[..start].chars().next_back(), text[end..].chars().next());
        let is_joint = |c: Option<char>| c.is_some_and(|c| JOINTS.contains(c));
        let is_single = given.chars().count() == 1;
        let is_part = after.is_some_and(|c| "+#＋＃".contains(c))
            || is_single && (is_joint(before) || is_joint(after))
            || goes_on(text, start)
            || goes_on(text, end);
        (!is_part).then_some(start..end)
    }
}

/// Whether letters of scripts without spaces stand on both sides of a place.
fn goes_on(text: &str, place: usize) -> bool {
    let before = text[..place].trim_end_matches(is_attached);
    text[place..].starts_with(is_unspaced) && before.ends_with(is_unspaced)
}
