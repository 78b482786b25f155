//! Languages: which words are forms of one word, and in which language a text is.
//!
//! Words with the same Snowball stem may be forms of one word. Stems alone go too far for the names of
//! concepts (*market* and *marketing*), so two words must also differ as a plural or a case does.
//!
//! References: M. F. Porter: Snowball, a language for stemming algorithms, 2001. D. Harman: How
//! effective is suffixing?, JASIS 42 (1), 1991. G. Grefenstette: Comparing two language identification
//! schemes, JADT 1995.

use super::words::fold;
use serde::Deserialize;
use serde::de::value::{self, StrDeserializer};
use snowball_stemmers_rs::{Algorithm, Stemmer};
use std::borrow::Cow;
use std::collections::HashMap;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Minimum and maximum number of letters of a word that has forms. The time of stemming may grow with
/// the square of the length.
const SHORTEST: usize = 3;
const LONGEST: usize = 64;
/// Minimum number of letters of a part of a compound, and of the rest beside it.
const PART: usize = 5;
const REST: usize = 4;
/// The endings of Portuguese singulars and plurals that Snowball's stemmer tells apart.
const PORTUGUESE: [&str; 15] =
    ["ões", "ães", "ãos", "ão", "ãe", "éis", "eis", "el", "il", "ei", "is", "l", "i", "ns", "m"];
/// A word whose rest ends so only looks like a compound: Transport, Maelstrom.
const NO_WORDS: [&str; 3] = ["tran", "mael", "mahl"];
/// Minimum number of function words that tell a language, and their minimum share of all words.
const FEWEST: u32 = 3;
const SHARE: u32 = 5;
/// Minimum ratio of the evidence of a language to that of any other.
const LEAD: f64 = 2.0;
/// Number of words by which a language is guessed.
const GUESSED: usize = 500;

/// The language of a language tag without region and script; `None` if it names none.
pub fn primary_subtag(tag: &str) -> Option<Box<str>> {
    let primary = tag.trim().split(['-', '_']).next().unwrap_or_default().to_lowercase();
    let is_none = matches!(primary.as_str(), "" | "mul" | "und" | "zxx");
    (!is_none).then(|| primary.into())
}

/// The function words of languages, their stemmers and the endings of their nouns.
pub struct Languages {
    codes: Vec<Box<str>>,
    /// The languages that have a function word.
    words: hashbrown::HashMap<Box<str>, Vec<usize>>,
    /// The pairs of endings in which two forms of a word differ.
    endings: HashMap<String, Vec<(String, String)>>,
    /// The names of Snowball's stemmers.
    stemmers: HashMap<String, String>,
}

impl Languages {
    pub fn new(
        function_words: Vec<(String, Vec<String>)>,
        endings: HashMap<String, Vec<(String, String)>>,
        stemmers: HashMap<String, String>,
    ) -> Self {
        let mut codes = Vec::new();
        let mut words = hashbrown::HashMap::<Box<str>, Vec<usize>>::new();
        for (number, (code, list)) in function_words.into_iter().enumerate() {
            codes.push(code.into());
            for word in list {
                words.entry(word.into()).or_default().push(number);
            }
        }
        Self { codes, words, endings, stemmers }
    }

    /// Whether there is a stemmer for a language.
    pub fn has_stemmer(&self, language: &str) -> bool {
        self.stemmers.contains_key(language)
    }

    /// A stemmer without words; `None` if there is none for the language.
    pub fn stems(&self, language: &str) -> Option<Stems> {
        let name = StrDeserializer::<value::Error>::new(self.stemmers.get(language)?);
        let stemmer = Stemmer::create(Algorithm::deserialize(name).ok()?);
        let endings = self.endings.get(language).cloned();
        Some(Stems { language: language.into(), stemmer, endings, by_stem: HashMap::new() })
    }

    /// Whether a folded word is a function word of a language, or of any.
    pub fn is_function_word(&self, word: &str, language: Option<&str>) -> bool {
        let languages = self.words.get(word);
        languages.is_some_and(|all| {
            language.is_none_or(|code| all.iter().any(|&number| *self.codes[number] == *code))
        })
    }

    /// The language whose function words a text has, if that is clear.
    ///
    /// It is clear if at least 3 words and a fifth of all words of letters are function words of the
    /// language, with twice the evidence of any other language. A word of several languages counts
    /// that much less for each.
    pub fn guess<'a>(&self, words: impl Iterator<Item = &'a str>) -> Option<Box<str>> {
        let mut counts = vec![(0.0, 0); self.codes.len()];
        let mut letters = 0;
        for word in words.take(GUESSED) {
            letters += u32::from(is_alphabetic(word));
            let Some(languages) = self.words.get(&*fold(word)) else { continue };
            for &language in languages {
                counts[language].0 += 1.0 / languages.len() as f64;
                counts[language].1 += 1;
            }
        }
        let evidence = |number: &usize| counts[*number].0;
        let mut order: Vec<usize> = (0..counts.len()).collect();
        order.sort_by(|one, other| evidence(other).total_cmp(&evidence(one)));
        let [first, second, ..] = order[..] else { return None };
        let (lead, count) = counts[first];
        let is_clear =
            count >= FEWEST && count * SHARE >= letters && lead >= LEAD * counts[second].0;
        is_clear.then(|| self.codes[first].clone())
    }
}

fn is_alphabetic(word: &str) -> bool {
    let is_letter = |c: char| c.is_alphabetic() && (c.is_ascii() || !is_combining_mark(c));
    word.chars().all(is_letter)
}

/// Words of one language by their stems.
///
/// Words with less than 3 or more than 64 letters, or with anything but letters, have no forms.
pub struct Stems {
    language: Box<str>,
    stemmer: Stemmer,
    /// All words with one stem are forms of one word, if it is `None`.
    endings: Option<Vec<(String, String)>>,
    by_stem: HashMap<Box<str>, Vec<Box<str>>>,
}

impl Stems {
    pub fn is_german(&self) -> bool {
        &*self.language == "de"
    }

    /// Adds a folded word.
    pub fn add(&mut self, word: &str) {
        if has_forms(word) {
            let same = self.by_stem.entry(self.stem(word)).or_default();
            if !same.iter().any(|one| **one == *word) {
                same.push(word.into());
            }
        }
    }

    /// The added words that a folded word is another form of.
    pub fn forms(&self, word: &str) -> Vec<&str> {
        let is_other = |one: &&str| *one != word && self.is_form(word, one);
        if has_forms(word) { self.with_stem(word).filter(is_other).collect() } else { Vec::new() }
    }

    /// The added words with the stem of a word.
    fn with_stem(&self, word: &str) -> impl Iterator<Item = &str> {
        self.by_stem.get(&self.stem(word)).into_iter().flatten().map(|one| &**one)
    }

    fn stem(&self, word: &str) -> Box<str> {
        let mut endings = PORTUGUESE.iter().filter(|_| &*self.language == "pt");
        let root = endings.find_map(|ending| word.strip_suffix(ending));
        root.map_or_else(|| self.stemmer.stem(word).into(), |root| unaccented(root).into())
    }

    /// The longest added word at the end of a German compound and the longest at its beginning, in any
    /// form. The rest must look like a word.
    pub fn parts(&self, languages: &Languages, word: &str) -> Vec<&str> {
        if !self.is_german() || !has_forms(word) {
            return Vec::new();
        }
        let places: Vec<usize> = word.char_indices().map(|(at, _)| at).collect();
        let last = (places.len() + 1).saturating_sub(PART);
        let cuts = places.get(REST..last).unwrap_or_default();
        let ends = cuts.iter().map(|&at| (&word[at..], &word[..at]));
        let cuts = places.get(PART..(places.len() + 1).saturating_sub(REST)).unwrap_or_default();
        let begins = cuts.iter().rev().map(|&at| (&word[..at], &word[at..]));
        let known = |(part, rest): (&str, &str)| {
            let fits = |one: &&str| {
                one.chars().count() >= PART && (*one == part || self.is_form(part, one))
            };
            let found: Vec<&str> = self.with_stem(part).filter(fits).collect();
            (!found.is_empty() && is_rest(languages, rest)).then_some(found)
        };
        let mut found = ends.clone().find_map(known).unwrap_or_default();
        found.extend(begins.clone().find_map(known).unwrap_or_default());
        found
    }

    /// Whether two words with one stem differ as forms of a noun do.
    fn is_form(&self, one: &str, other: &str) -> bool {
        let Some(endings) = &self.endings else { return true };
        let (plain, plain_other) = (unaccented(one), unaccented(other));
        let differ_in = |ending: &str, other_ending: &str| {
            let root = plain.strip_suffix(ending);
            root.is_some() && root == plain_other.strip_suffix(other_ending)
        };
        let is_pair = |one: &str, other: &str| differ_in(one, other) || differ_in(other, one);
        if endings.iter().any(|(one, other)| is_pair(one, other)) {
            return true;
        }
        // A plural in -er has an umlaut: *Spieler* is not a form of *Spiel*.
        let has_umlaut = || !one.chars().zip(other.chars()).all(|(a, b)| a == b);
        self.is_german() && (is_pair("", "er") || is_pair("", "ern")) && has_umlaut()
    }
}

fn has_forms(word: &str) -> bool {
    (SHORTEST..=LONGEST).contains(&word.chars().count()) && is_alphabetic(word)
}

/// Whether the rest of a compound may be words; *Transport* has no *Sport*.
fn is_rest(languages: &Languages, rest: &str) -> bool {
    !languages.is_function_word(rest, Some("de"))
        && !NO_WORDS.iter().any(|end| rest.ends_with(end))
        && rest.contains(['a', 'e', 'i', 'o', 'u', 'y', 'ä', 'ö', 'ü'])
}

fn unaccented(word: &str) -> Cow<'_, str> {
    if word.is_ascii() {
        return word.into();
    }
    word.nfd().filter(|c| !is_combining_mark(*c)).collect::<String>().into()
}
