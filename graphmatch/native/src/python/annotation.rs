//! The annotator for Python.

use super::statements_of;
use super::terms::object_named;
use crate::annotation::forms::Languages;
use crate::annotation::words::{folded, words};
use crate::annotation::{Annotator as Finder, Label, Markup, Occurrence};
use crate::dictionary::{Dictionary, Id, Terms};
use crate::publication::Publication;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Rules of languages and markup.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct TextRules {
    /// The function words of languages.
    function_words: Vec<(String, Vec<String>)>,
    /// The pairs of endings in which two forms of a word differ, by language.
    endings: HashMap<String, Vec<(String, String)>>,
    /// The names of Snowball's stemmers, by language.
    stemmers: HashMap<String, String>,
    /// The names of block elements.
    blocks: HashSet<String>,
    /// The regular expression of the links that feeds add to a text.
    links: String,
}

/// Finds the labels of an ontology in text.
#[pyclass(frozen, module = "graphmatch._native")]
pub struct Annotator {
    pub annotator: Arc<Finder>,
}

#[pymethods]
impl Annotator {
    /// Takes labels: texts, language tags, IRIs of concepts, and whether they are proper names;
    /// whether other forms of them are found; and rules.
    #[new]
    fn new(
        labels: Vec<(String, Option<String>, String, bool)>,
        stem: bool,
        rules: TextRules,
    ) -> PyResult<Self> {
        let labels = labels.into_iter().map(|(text, language, iri, is_proper)| Label {
            text: text.into(),
            language: language.map(Into::into),
            concept: format!("<{iri}>").into(),
            is_proper,
        });
        let languages = Languages::new(rules.function_words, rules.endings, rules.stemmers);
        let markup = Markup::new(rules.blocks, &rules.links);
        let markup = markup.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let annotator = Arc::new(Finder::new(labels.collect(), stem, languages, markup));
        Ok(Self { annotator })
    }

    /// Returns the texts of the feed items of some triples: the item, the property, the words if
    /// subscriptions search them, and the labels.
    fn texts<'py>(
        &self,
        py: Python<'py>,
        triples: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(Bound<'py, PyAny>, Bound<'py, PyAny>, Option<String>, Vec<LabelRow>)>> {
        let statements = statements_of(triples)?;
        let (publication, texts, labels) = py.detach(|| {
            let (dictionary, mut publication) = (Dictionary::default(), Publication::default());
            publication.fill("", &statements, &dictionary);
            let terms = Terms { dictionary: &dictionary, local: &publication.local };
            let texts = self.annotator.texts(&publication.triples, terms, &|| false);
            let mut labels: Vec<Vec<Occurrence>> = texts.iter().map(|_| Vec::new()).collect();
            for (number, found) in self.annotator.occurrences(&texts, &|| false) {
                labels[number].push(found);
            }
            (publication, texts, labels)
        });
        let object = |id: Id| object_named(py, publication.local.text(id), "");
        let rows = texts.iter().zip(labels).map(|(text, labels)| {
            let labels = in_characters(&text.text, labels);
            Ok((object(text.item)?, object(text.property)?, text.folded(), labels))
        });
        rows.collect()
    }

    /// Returns the labels in a plain text.
    #[pyo3(signature = (text, language = None))]
    fn find(&self, py: Python<'_>, text: &str, language: Option<&str>) -> Vec<LabelRow> {
        py.detach(|| in_characters(text, self.annotator.in_text(text, language)))
    }

    /// Returns the text that a browser shows of markup. The links and share buttons that feeds add
    /// to a text that `has_links` are left out.
    fn text(&self, py: Python<'_>, markup: &str, has_links: bool) -> String {
        py.detach(|| self.annotator.markup.text(markup, has_links).into_owned())
    }
}

/// A label in a text: its number, its start and end in code points, the text, and the form.
type LabelRow = (u32, usize, usize, String, u8);

/// Occurrences by position, with their places in code points.
fn in_characters(text: &str, found: Vec<Occurrence>) -> Vec<LabelRow> {
    let (mut at, mut start) = (0, 0);
    let rows = found.into_iter().map(|one| {
        start += text[at..one.place.start].chars().count();
        at = one.place.start;
        let given = &text[one.place];
        (one.label, start, start + given.chars().count(), given.to_owned(), one.form as u8)
    });
    rows.collect()
}

/// Returns the words of a plain text, folded, with a space before and after each.
#[pyfunction]
pub fn folded_words(py: Python<'_>, text: &str) -> String {
    py.detach(|| folded(text, &words(text)))
}
