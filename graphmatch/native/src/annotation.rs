//! Concepts in the text of feed items: the labels of an ontology, found word by word.
//!
//! Labels are stored in a trie of folded words. There is one trie for each language of texts. A word
//! of a text is read as itself, as another form of a word, or as a compound with parts; its readings
//! are cached. Most words have none, so that a text costs one look-up per word, no matter how many
//! labels there are.

pub mod forms;
mod markup;
pub mod words;

pub use self::markup::Markup;

use self::forms::{Languages, Stems, primary_subtag};
use self::words::{fold, folded, is_attached, is_break, is_unspaced, letter_count, words};
use crate::dictionary::{Id, Terms};
use crate::lexical::LiteralParts;
use crate::triples::Triple;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use unicode_normalization::UnicodeNormalization;

/// The property that links an item to a concept that was found in it.
pub const SUBJECT: &[u8] = b"<http://purl.org/dc/terms/subject>";
/// The property of the words of an item.
pub const WORDS: &[u8] = b"<urn:graphmatch:words>";
/// Maximum number of words of a label. Longer labels are not found.
const MAX_LABEL_WORDS: usize = 64;
/// Number of words of a paragraph that are searched together. A label across the border of two such
/// parts is not found.
const PART_WORDS: usize = 1 << 12;
/// Maximum number of words in the cache of a trie.
const MAX_CACHED_WORDS: usize = 1 << 15;
/// Maximum length in bytes of a word that is cached.
const MAX_CACHED_BYTES: usize = 64;
/// A label with a word of at least this number of letters is found regardless of upper and lower
/// case, unless that is a function word.
const TELLING_LETTERS: usize = 3;
/// The language of the forms of labels without a language, if that of the text is unknown.
const DEFAULT_LANGUAGE: &str = "en";
/// Maximum number of places where a text may join or separate the words of a label. A label with more
/// has one spelling.
const MAX_LOOSE_PIECES: usize = 4;
/// The hyphens that a text may have between two words, join them, or have a space instead.
const HYPHENS: [char; 4] = ['-', '\u{2010}', '\u{2011}', '\u{2013}'];
/// The characters that a label of one character must not touch.
const JOINTS: &str = ".-\u{2010}\u{2011}_&/\\*^$=<>|@#+";

/// A name of a concept.
pub struct Label {
    pub text: Box<str>,
    /// The language of the name; `None` for a name in every language.
    pub language: Option<Box<str>>,
    /// The N-Triples text of the concept.
    pub concept: Box<str>,
    /// Whether it is a proper name: a text must have its initial capitals.
    pub is_proper: bool,
}

/// How a text contains a label. Of overlapping labels the longest is found, then the one with the
/// earlier form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LabelForm {
    /// The text has the words of the label, regardless of case, Unicode form and punctuation.
    Same,
    /// A word has another form, such as a plural.
    Inflected,
    /// A word of the text is a compound that contains the label.
    Compound,
}

/// An occurrence of a label. Its place is a range of bytes of the text.
pub struct Occurrence {
    /// The label's number.
    pub label: u32,
    pub place: Range<usize>,
    pub form: LabelForm,
}

/// A triple that was added because of a text.
#[derive(Clone)]
pub struct Annotation {
    /// The number of the triple, and that of the triple with the text.
    pub triples: [usize; 2],
    /// The label's number and its form; `None` for the words of the text.
    pub label: Option<(u32, LabelForm)>,
    /// The part of the text, if it is another form of the label.
    pub text: Box<str>,
}

/// A literal of a feed item.
pub struct ItemText {
    /// The number of its triple.
    pub triple: usize,
    pub item: Id,
    pub property: Id,
    /// The text without markup.
    pub text: String,
    words: Vec<Range<usize>>,
    /// The language that is stated or guessed.
    language: Option<Box<str>>,
    /// Whether it is content that an earlier text of the item has.
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
    pub markup: Markup,
    tries: Mutex<HashMap<Option<Box<str>>, Arc<Trie>>>,
}

impl Annotator {
    pub fn new(labels: Vec<Label>, stem: bool, languages: Languages, markup: Markup) -> Self {
        let tags = labels.iter().filter_map(|label| label.language.as_deref());
        let known = tags.filter_map(primary_subtag).collect();
        Self { labels, stem, languages, known, markup, tries: Mutex::default() }
    }

    /// The texts of the subjects of type `rss:item`, item by item.
    ///
    /// A literal's language is its tag; without one the item's `dc:language`, without that the
    /// channel's. If none or several are stated, it is guessed from all texts of the item.
    ///
    /// Stops if the time is over.
    pub fn texts(
        &self,
        triples: &[Triple],
        terms: Terms,
        is_over: &dyn Fn() -> bool,
    ) -> Vec<ItemText> {
        let find = |namespace, name| terms.find([namespace, name, ">"].concat().as_bytes());
        let rss = |name| find("<http://purl.org/rss/1.0/", name);
        let dc = |name| find("<http://purl.org/dc/elements/1.1/", name);
        let type_ = find("<http://www.w3.org/1999/02/22-rdf-syntax-ns#", "type");
        let content = rss("modules/content/encoded");
        let (title, description, subject) = (rss("title"), rss("description"), dc("subject"));
        let (item, channel, language) = (rss("item"), rss("channel"), dc("language"));
        let mut items: Vec<Vec<ItemText>> = Vec::new();
        let (mut places, mut channels) = (HashMap::new(), Vec::new());
        for &[about, property, value] in triples {
            if Some(property) == type_ && Some(value) == item {
                places.entry(about).or_insert_with(|| {
                    items.push(Vec::new());
                    items.len() - 1
                });
            } else if Some(property) == type_ && Some(value) == channel {
                channels.push(about);
            }
        }
        let mut stated: HashMap<Id, Option<Box<str>>> = HashMap::new();
        for (triple, &[about, property, value]) in triples.iter().enumerate() {
            let is_text = [title, description, content, subject].contains(&Some(property));
            if !is_text && Some(property) != language {
                continue;
            }
            if is_over() {
                break;
            }
            let text = terms.text(value);
            let Some(literal) = LiteralParts::of(&text) else { continue };
            let plain = literal.plain();
            let plain = String::from_utf8_lossy(&plain);
            if !is_text {
                let language = primary_subtag(&plain);
                let known = stated.entry(about).or_insert_with(|| language.clone());
                if *known != language {
                    *known = None;
                }
                continue;
            }
            let Some(&place) = places.get(&about) else { continue };
            let has_links = [description, content].contains(&Some(property));
            let text = self.markup.text(&plain, has_links).into_owned();
            let tag = literal.language().map(String::from_utf8_lossy);
            let is_known = |one: &ItemText| one.text == text;
            let is_repeated = Some(property) == content && items[place].iter().any(is_known);
            items[place].push(ItemText {
                triple,
                item: about,
                property,
                words: words(&text),
                text,
                language: tag.and_then(|tag| primary_subtag(&tag)),
                is_repeated,
                has_words: Some(property) != subject,
            });
        }
        let mut of_channels = channels.iter().filter_map(|about| stated.get(about));
        let first = of_channels.next().unwrap_or(&None);
        let channel = first.clone().filter(|_| of_channels.all(|other| other == first));
        for texts in &mut items {
            let mut guess = None;
            for number in 0..texts.len() {
                if texts[number].language.is_none() {
                    let of_item = stated.get(&texts[number].item).unwrap_or(&channel).clone();
                    let guessed = || guess.get_or_insert_with(|| self.guess(texts)).clone();
                    texts[number].language = of_item.or_else(guessed);
                }
            }
        }
        items.into_iter().flatten().collect()
    }

    /// The language of an item by its texts.
    fn guess(&self, texts: &[ItemText]) -> Option<Box<str>> {
        let texts = texts.iter().filter(|one| !self.labels.is_empty() && !one.is_repeated);
        let words = texts.flat_map(|one| one.words.iter().map(|word| &one.text[word.clone()]));
        self.languages.guess(words)
    }

    /// Makes the labels of the languages of texts ready.
    pub fn prepare(&self, texts: &[ItemText]) {
        let languages: HashSet<_> = texts.iter().map(|one| &one.language).collect();
        for language in languages.into_iter().filter(|_| !self.labels.is_empty()) {
            self.trie(language.clone());
        }
    }

    /// The labels in the texts of items, each with the number of its text, by position. Stops if the
    /// time is over.
    pub fn occurrences(
        &self,
        texts: &[ItemText],
        is_over: &dyn Fn() -> bool,
    ) -> Vec<(usize, Occurrence)> {
        let texts = texts.iter().enumerate().filter(|(_, one)| !one.is_repeated);
        let found = texts.flat_map(|(number, one)| {
            let found = self.find(&one.text, &one.words, one.language.clone(), is_over);
            found.into_iter().map(move |occurrence| (number, occurrence))
        });
        found.collect()
    }

    /// The labels in a plain text by position. Its language is guessed if it has no tag.
    pub fn in_text(&self, text: &str, tag: Option<&str>) -> Vec<Occurrence> {
        let words = words(text);
        let all = words.iter().map(|word| &text[word.clone()]);
        let language = tag.and_then(primary_subtag).or_else(|| self.languages.guess(all));
        self.find(text, &words, language, &|| false)
    }

    fn find(
        &self,
        text: &str,
        words: &[Range<usize>],
        language: Option<Box<str>>,
        is_over: &dyn Fn() -> bool,
    ) -> Vec<Occurrence> {
        if self.labels.is_empty() || words.is_empty() {
            return Vec::new();
        }
        let trie = self.trie(language);
        let paragraphs = words.split(|word| is_break(&text[word.clone()]));
        let parts = paragraphs.flat_map(|paragraph| paragraph.chunks(PART_WORDS));
        parts.take_while(|_| !is_over()).flat_map(|part| trie.find(self, text, part)).collect()
    }

    /// The labels of a language; all labels if it is unknown.
    fn trie(&self, language: Option<Box<str>>) -> Arc<Trie> {
        // All languages without labels and without a stemmer share one trie.
        let is_known = |one: &str| self.known.contains(one) || self.languages.has_stemmer(one);
        let language = language.map(|one| if is_known(&one) { one } else { "zxx".into() });
        let mut tries = self.tries.lock().unwrap_or_else(PoisonError::into_inner);
        let new = |language: &Option<Box<str>>| Arc::new(Trie::new(self, language.as_deref()));
        Arc::clone(tries.entry(language).or_insert_with_key(new))
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
    /// The spelling that a text must have; `None` if the words are enough.
    exact: Option<ExactSpelling>,
    words: Vec<LabelWord>,
}

/// A word of a label.
struct LabelWord {
    folded: String,
    /// Whether other forms of the word match: not of one with a capital inside, such as *iPhone*.
    has_forms: bool,
    /// The number of capitals that a text needs at the beginning of the word, and of another form.
    capitals: usize,
    form_capitals: usize,
    /// Whether only spaces and hyphens may stand before it: the label may also be spelled without.
    is_loose: bool,
}

/// A word of a label that a word of a text may stand for.
#[derive(Clone, Copy)]
struct Reading {
    word: u32,
    /// The number of characters. Longer hits are found first.
    size: usize,
    form: LabelForm,
}

/// The readings of a word; most words have none.
type Readings = Option<Arc<[Reading]>>;

/// The words of a text that have readings, with their numbers.
type ReadWords = [(usize, Arc<[Reading]>)];

/// Words of a text that are a label.
#[derive(Clone, Copy)]
struct Hit {
    size: usize,
    form: LabelForm,
    first: usize,
    /// The place behind the last word.
    end: usize,
    node: u32,
}

/// Labels by their folded words.
struct Trie {
    nodes: Vec<Node>,
    words: HashMap<Box<str>, u32>,
    /// The words of labels that have other forms.
    stems: Option<Stems>,
    readings: Mutex<HashMap<SmallVec<[u8; 16]>, Readings>>,
}

impl Trie {
    /// The labels of a language, and those without a language. The forms of their words are those of
    /// the language.
    fn new(annotator: &Annotator, language: Option<&str>) -> Self {
        let of_forms = language.unwrap_or(DEFAULT_LANGUAGE);
        let stems = annotator.stem.then(|| annotator.languages.stems(of_forms)).flatten();
        let (nodes, words) = (vec![Node::default()], HashMap::new());
        let mut trie = Self { nodes, words, stems, readings: Mutex::default() };
        for (number, label) in annotator.labels.iter().enumerate() {
            let own = label.language.as_deref().and_then(primary_subtag);
            if own.is_none() || language.is_none() || own.as_deref() == language {
                trie.add(annotator, number, own.as_deref(), of_forms);
            }
        }
        trie
    }

    /// Adds a label of a language, in all its spellings.
    fn add(&mut self, annotator: &Annotator, number: usize, own: Option<&str>, of_forms: &str) {
        let label = &annotator.labels[number];
        let text = label.text.trim();
        let mut places = words(text);
        places.retain(|word| !is_break(&text[word.clone()]));
        if places.is_empty() || places.len() > MAX_LABEL_WORDS {
            return;
        }
        let folded: Vec<_> = places.iter().map(|word| fold(&text[word.clone()])).collect();
        let is_exact = !is_telling(&folded, &annotator.languages, own);
        let is_of_language = own.is_none_or(|own| own == of_forms);
        let has_forms = is_of_language && !is_exact && self.stems.is_some();
        let is_noun = places.len() == 1 && self.stems.as_ref().is_some_and(Stems::is_german);
        let mut pieces = pieces(text, &places);
        // An abbreviation may also be another word: *EAU*, or *COP* of *COP30*.
        let needs_capitals = pieces.len() == 1 || text.contains(|c: char| c.is_ascii_digit());
        let loose = |pieces: &[(_, bool)]| pieces.iter().filter(|piece| piece.1).count();
        if loose(&pieces) > MAX_LOOSE_PIECES {
            pieces = places.iter().map(|word| (&text[word.clone()], false)).collect();
        }
        let loose = loose(&pieces);
        for spelling in 0..1 << loose {
            let (mut written, mut bits) = (Vec::<(String, bool)>::new(), spelling);
            for &(piece, is_loose) in &pieces {
                let is_joined = is_loose && bits & 1 == 1;
                bits >>= u32::from(is_loose);
                match written.last_mut() {
                    Some((word, _)) if is_joined => word.push_str(piece),
                    _ => written.push((piece.to_owned(), is_loose)),
                }
            }
            let words = written.iter().enumerate().map(|(at, (word, is_loose))| {
                let is_capital = word.starts_with(char::is_uppercase);
                let is_short =
                    word.chars().count() <= TELLING_LETTERS && word.chars().all(char::is_uppercase);
                LabelWord {
                    folded: fold(word).into(),
                    has_forms: has_forms && !word.chars().skip(1).any(char::is_uppercase),
                    capitals: match needs_capitals && is_short {
                        true => TELLING_LETTERS,
                        false => usize::from(is_capital && label.is_proper),
                    },
                    form_capitals: usize::from(is_capital && (at > 0 || is_noun)),
                    is_loose: *is_loose,
                }
            });
            let exact = is_exact.then(|| ExactSpelling::new(text, &places, loose > 0));
            let pattern = Pattern { label: number as u32, exact, words: words.collect() };
            let mut node = 0;
            for LabelWord { folded, has_forms, .. } in &pattern.words {
                if let Some(stems) = self.stems.as_mut().filter(|_| *has_forms) {
                    stems.add(folded);
                }
                let next = self.words.len() as u32;
                let id = *self.words.entry_ref(&**folded).or_insert(next);
                let fresh = self.nodes.len() as u32;
                node = *self.nodes[node as usize].next.entry(id).or_insert(fresh);
                if node == fresh {
                    self.nodes.push(Node::default());
                }
            }
            self.nodes[node as usize].patterns.push(pattern);
        }
    }

    /// The labels in a part of a text, by position.
    fn find(&self, annotator: &Annotator, text: &str, words: &[Range<usize>]) -> Vec<Occurrence> {
        let readings = self.readings(&annotator.languages, text, words);
        let mut hits = Vec::new();
        for (first, of_word) in &readings {
            for &reading in of_word.iter() {
                self.follow(*first, reading, &readings, &mut hits);
            }
        }
        if hits.is_empty() {
            return Vec::new();
        }
        hits.sort_by_key(|hit| (Reverse(hit.size), hit.form, hit.first));
        let mut taken: Vec<Option<LabelForm>> = vec![None; words.len()];
        let mut found = Vec::new();
        for hit in hits {
            // Longer hits come first, so one that overlaps covers an end of this one.
            let by = taken[hit.first].or(taken[hit.end - 1]);
            if by.is_some_and(|by| by != LabelForm::Compound || hit.form != LabelForm::Compound) {
                continue;
            }
            let before = found.len();
            let given = &words[hit.first..hit.end];
            let whole = given[0].start..given[given.len() - 1].end;
            // One label per concept.
            let mut seen = HashSet::new();
            for pattern in &self.nodes[hit.node as usize].patterns {
                let mut end = whole.start;
                let mut words = pattern.words.iter().zip(given);
                let mut is_met = || {
                    words.all(|(own, word)| {
                        let gap = &text[end..word.start];
                        end = word.end;
                        own.is_met(&text[word.clone()])
                            && (!own.is_loose || gap.chars().all(is_gap))
                    })
                };
                let place = match &pattern.exact {
                    Some(exact) if hit.form == LabelForm::Same => exact.place(text, &whole),
                    None if is_met() => Some(whole.clone()),
                    _ => None,
                };
                let Some(place) = place else { continue };
                if seen.insert(&annotator.labels[pattern.label as usize].concept) {
                    found.push(Occurrence { label: pattern.label, place, form: hit.form });
                }
            }
            if found.len() > before {
                taken[hit.first..hit.end].fill(Some(hit.form));
            }
        }
        found.sort_by_key(|one: &Occurrence| one.place.start);
        found
    }

    /// Returns the words of a text that have readings.
    fn readings(
        &self,
        languages: &Languages,
        text: &str,
        words: &[Range<usize>],
    ) -> Vec<(usize, Arc<[Reading]>)> {
        let mut cache = self.readings.lock().unwrap_or_else(PoisonError::into_inner);
        if cache.len() >= MAX_CACHED_WORDS {
            cache.clear();
        }
        let readings = words.iter().enumerate().filter_map(|(number, word)| {
            let word = &text[word.clone()];
            if let Some(readings) = cache.get(word.as_bytes()) {
                return Some((number, readings.clone()?));
            }
            let readings = self.read(languages, word);
            let readings: Option<Arc<[Reading]>> = (!readings.is_empty()).then(|| readings.into());
            if word.len() <= MAX_CACHED_BYTES {
                cache.insert(word.as_bytes().into(), readings.clone());
            }
            Some((number, readings?))
        });
        readings.collect()
    }

    fn read(&self, languages: &Languages, written: &str) -> Vec<Reading> {
        let word = fold(written);
        let size = word.chars().count();
        let mut found = Vec::new();
        let mut add = |word: &str, size, form| {
            found.extend(self.words.get(word).map(|&word| Reading { word, size, form }));
        };
        add(&word, size, LabelForm::Same);
        if let Some(stems) = &self.stems {
            for other in stems.forms(&word) {
                add(other, size, LabelForm::Inflected);
            }
            let mut letters = written.chars();
            let is_title = letters.next().is_some_and(char::is_uppercase);
            if is_title && !letters.any(char::is_uppercase) {
                for part in stems.parts(languages, &word) {
                    add(part, part.chars().count().min(size - 1), LabelForm::Compound);
                }
            }
        }
        found
    }

    /// Finds the labels that begin with a reading of a word and go on behind it.
    fn follow(&self, first: usize, begin: Reading, readings: &ReadWords, hits: &mut Vec<Hit>) {
        let Reading { word, size, form } = begin;
        let Some(&node) = self.nodes[0].next.get(&word) else { return };
        let mut ways = vec![Hit { size, form, first, end: first + 1, node }];
        while let Some(way) = ways.pop() {
            let node = &self.nodes[way.node as usize];
            if !node.patterns.is_empty() {
                hits.push(way);
            }
            if node.next.is_empty() || way.form == LabelForm::Compound {
                continue;
            }
            let Ok(next) = readings.binary_search_by_key(&way.end, |one| one.0) else { continue };
            for next in readings[next].1.iter().filter(|next| next.form != LabelForm::Compound) {
                if let Some(&node) = node.next.get(&next.word) {
                    let (size, end) = (way.size + next.size + 1, way.end + 1);
                    ways.push(Hit { size, form: way.form.max(next.form), end, node, ..way });
                }
            }
        }
    }
}

impl LabelWord {
    /// Whether a word of a text, which is the same, has the same stem or is a compound, may stand for
    /// it.
    fn is_met(&self, word: &str) -> bool {
        let has_capitals = |count| !word.chars().take(count).any(char::is_lowercase);
        let is_form = || self.has_forms && has_capitals(self.form_capitals);
        has_capitals(self.capitals) && (is_form() || *self.folded == *fold(word))
    }
}

/// The words of a label, split where digits begin or end, each with whether a text may join it to the
/// piece before, or separate the two.
fn pieces<'a>(text: &'a str, words: &[Range<usize>]) -> Vec<(&'a str, bool)> {
    let is_digits = |piece: &str| piece.starts_with(|c: char| c.is_ascii_digit());
    let mut found: Vec<(&str, bool)> = Vec::new();
    let mut end = words[0].start;
    for word in words {
        let mut begin = word.start;
        let bytes = &text.as_bytes()[word.clone()];
        for piece in bytes.chunk_by(|one, next| one.is_ascii_digit() == next.is_ascii_digit()) {
            let gap = &text[end..begin];
            end = begin + piece.len();
            let piece = &text[begin..end];
            let is_border = found.last().is_some_and(|one| is_digits(one.0) != is_digits(piece));
            let is_loose = gap.chars().all(is_gap) && (is_border || gap.contains(HYPHENS));
            found.push((piece, is_loose));
            begin = end;
        }
    }
    found
}

/// Whether a character may stand between two words that a label may also join.
fn is_gap(c: char) -> bool {
    c.is_whitespace() || HYPHENS.contains(&c)
}

/// Whether a label says enough to be found regardless of case and punctuation.
fn is_telling(words: &[Cow<str>], languages: &Languages, language: Option<&str>) -> bool {
    if words.iter().any(|word| word.starts_with(is_unspaced)) {
        return words.iter().map(|word| letter_count(word)).sum::<usize>() >= TELLING_LETTERS;
    }
    words.iter().any(|word| {
        letter_count(word) >= TELLING_LETTERS && !languages.is_function_word(word, language)
    })
}

/// The spelling of a label that must be found letter by letter, in Unicode's NFC.
struct ExactSpelling {
    text: String,
    /// Whether spaces and hyphens are left out of the text.
    is_loose: bool,
    /// The number of characters before its first and after its last word.
    before: usize,
    after: usize,
}

impl ExactSpelling {
    fn new(text: &str, words: &[Range<usize>], is_loose: bool) -> Self {
        let (first, last) = (words[0].start, words[words.len() - 1].end);
        let (before, after) = (text[..first].chars().count(), text[last..].chars().count());
        let text = text.nfc().filter(|&c| !is_loose || !is_gap(c)).collect();
        Self { text, is_loose, before, after }
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
        if !given.nfc().filter(|&c| !self.is_loose || !is_gap(c)).eq(self.text.chars()) {
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
