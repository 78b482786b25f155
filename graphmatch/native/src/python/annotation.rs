//! The annotator for Python.

use super::terms::object_named;
use super::{fill, statements_of};
use crate::annotation::forms::Languages;
use crate::annotation::words::{folded, words};
use crate::annotation::{Annotator as Finder, ItemText, Label, Occurrence};
use crate::dictionary::{Dictionary, Id, Terms};
use crate::publication::Publication;
use pyo3::prelude::*;
use std::sync::Arc;

/// Rules of languages and markup.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TextRules {
    /// The function words of languages.
    function_words: Vec<(String, Vec<String>)>,
    /// The pairs of endings in which two forms of a word differ, by language.
    endings: Vec<(String, Vec<(String, String)>)>,
    /// The names of Snowball's stemmers, by language.
    stemmers: Vec<(String, String)>,
    /// The names of block elements.
    blocks: Vec<String>,
    /// How lines begin that feeds add to a text, and what else they contain.
    added: Vec<(String, String)>,
}

/// Finds the labels of an ontology in text.
#[pyclass(frozen, module = "graphmatch._native")]
pub struct Annotator {
    pub annotator: Arc<Finder>,
}

#[pymethods]
impl Annotator {
    /// Takes labels: texts, language tags and IRIs of concepts; whether other forms of them are
    /// found; and rules.
    #[new]
    fn new(labels: Vec<(String, Option<String>, String)>, stem: bool, rules: TextRules) -> Self {
        let labels = labels.into_iter().map(|(text, language, iri)| Label {
            text: text.into(),
            language: language.map(Into::into),
            concept: format!("<{iri}>").into(),
        });
        let languages = Languages::new(rules.function_words, rules.endings, rules.stemmers);
        let annotator = Finder::new(labels.collect(), stem, languages, rules.blocks, rules.added);
        Self { annotator: Arc::new(annotator) }
    }

    /// Returns the labels in the feed items of some triples, each with its item and property.
    fn annotations<'py>(
        &self,
        py: Python<'py>,
        triples: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>, (u32, usize, usize, String, u8))>>
    {
        let (publication, texts) = self.texts(py, triples)?;
        let found = py.detach(|| self.annotator.occurrences(&texts));
        let mut rows = Vec::with_capacity(found.len());
        let mut found = found.into_iter().peekable();
        while let Some(&(number, _)) = found.peek() {
            let mut of_text = Vec::new();
            while let Some((_, one)) = found.next_if(|(next, _)| *next == number) {
                of_text.push(one);
            }
            let text = &texts[number];
            let [item, property] = [text.item, text.property]
                .map(|id| object_named(py, publication.local.text(id), ""));
            let (item, property) = (item?, property?);
            let of_text = in_characters(&text.text, of_text);
            rows.extend(of_text.into_iter().map(|one| (item.clone(), property.clone(), one)));
        }
        Ok(rows)
    }

    /// Returns the words of the feed items of some triples, each with its item and property.
    fn words<'py>(
        &self,
        py: Python<'py>,
        triples: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, String, Bound<'py, PyAny>)>> {
        let (publication, texts) = self.texts(py, triples)?;
        let object = |id: Id| object_named(py, publication.local.text(id), "");
        let words = texts.iter().filter_map(|text| Some((text, text.folded()?)));
        words.map(|(text, words)| Ok((object(text.item)?, words, object(text.property)?))).collect()
    }

    /// Returns the labels in a plain text: their numbers, starts and ends in code points, the texts,
    /// and the forms.
    #[pyo3(signature = (text, language = None))]
    fn find(
        &self,
        py: Python<'_>,
        text: &str,
        language: Option<&str>,
    ) -> Vec<(u32, usize, usize, String, u8)> {
        py.detach(|| in_characters(text, self.annotator.in_text(text, language)))
    }

    /// Returns the text that a reader of markup sees, without the lines that feeds add if it
    /// `is_readable`.
    fn text(&self, py: Python<'_>, markup: &str, is_readable: bool) -> String {
        py.detach(|| self.annotator.text(markup, is_readable).into_owned())
    }
}

impl Annotator {
    fn texts(
        &self,
        py: Python<'_>,
        triples: &Bound<'_, PyAny>,
    ) -> PyResult<(Publication, Vec<ItemText>)> {
        let statements = statements_of(triples)?;
        Ok(py.detach(|| {
            let (dictionary, mut publication) = (Dictionary::default(), Publication::default());
            fill(&dictionary, "", &statements, &mut publication);
            let terms = Terms { dictionary: &dictionary, local: &publication.local };
            let texts = self.annotator.texts(&publication.triples, terms);
            (publication, texts)
        }))
    }
}

/// Occurrences by position, with their places in code points.
fn in_characters(text: &str, found: Vec<Occurrence>) -> Vec<(u32, usize, usize, String, u8)> {
    let (mut at, mut before) = (0, 0);
    let mut rows = Vec::with_capacity(found.len());
    for one in found {
        let given = &text[one.place.clone()];
        let start = match text.get(at..one.place.start) {
            Some(between) => before + between.chars().count(),
            None => before - text[one.place.start..at].chars().count(),
        };
        (at, before) = (one.place.start, start);
        let end = start + given.chars().count();
        rows.push((one.label, start, end, given.to_owned(), one.form as u8));
    }
    rows
}

/// Returns the words of a plain text, folded, with a space before and after each.
#[pyfunction]
pub fn folded_words(py: Python<'_>, text: &str) -> String {
    py.detach(|| folded(text, &words(text)))
}
