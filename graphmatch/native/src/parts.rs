//! A document cut by its subjects, its items, or its weakly connected parts.
//!
//! | cut | a publication is |
//! | --- | --- |
//! | item | an `rss:item`, with the description of its channel |
//! | subject | the concise bounded description of an IRI that is a subject |
//! | component | a weakly connected part |
//!
//! The concise bounded description is W3C's submission of 2005: the subject's triples, and those of
//! blank nodes reached from it. In a component, two triples belong together when they share a
//! subject or object that is an IRI or a blank node; the object of `rdf:type` is shared vocabulary
//! and connects nothing.

use crate::dictionary::{Dictionary, Id, Kind, LOCAL, Terms};
use crate::reader::{Cut, Fault, Limits, Publication, too_large};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashSet};

const TYPE: &[u8] = b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>";
const ITEM: &[u8] = b"<http://purl.org/rss/1.0/item>";
const PART_OF: &[u8] = b"<http://purl.org/dc/terms/isPartOf>";

/// The publications of a document that is held whole.
pub(crate) struct Parts {
    whole: Publication,
    source: String,
    cut: Cut,
    /// The triples of each part or subject, by their numbers.
    rows: Vec<Vec<u32>>,
    /// The subjects, and the row of each, where rows are of subjects.
    subjects: Vec<Id>,
    row_of: HashMap<Id, usize, RandomState>,
    next: usize,
    /// The ids that local terms have in the part.
    ids: HashMap<Id, Id, RandomState>,
    /// `rdf:type`, `rss:item`, `dcterms:isPartOf`
    known: [Id; 3],
}

impl Parts {
    pub(crate) fn new(
        mut whole: Publication,
        cut: Cut,
        source: String,
        dictionary: &Dictionary,
    ) -> Self {
        let known = [TYPE, ITEM, PART_OF].map(|text| {
            let hash = dictionary.hash(text);
            let known = dictionary.get_hashed(text, hash);
            known.unwrap_or_else(|| whole.local.intern_hashed(text, hash))
        });
        let (row_of, ids) = (HashMap::default(), HashMap::default());
        let (rows, subjects) = (Vec::new(), Vec::new());
        let mut parts = Self { whole, source, cut, rows, subjects, row_of, next: 0, ids, known };
        let groups = match cut {
            Cut::Component => parts.components(dictionary),
            _ => parts.whole.triples.iter().map(|triple| triple[0]).collect(),
        };
        for (number, group) in groups.into_iter().enumerate() {
            let row = *parts.row_of.entry(group).or_insert_with(|| {
                parts.rows.push(Vec::new());
                parts.subjects.push(group);
                parts.rows.len() - 1
            });
            parts.rows[row].push(number as u32);
        }
        parts
    }

    fn kind(&self, id: Id, dictionary: &Dictionary) -> Kind {
        Terms { dictionary, local: &self.whole.local }.kind(id)
    }

    /// A node of the component of each triple, which is the same for all of its triples.
    fn components(&self, dictionary: &Dictionary) -> Vec<Id> {
        let mut parents: HashMap<Id, Id, RandomState> = HashMap::default();
        fn root(parents: &mut HashMap<Id, Id, RandomState>, mut node: Id) -> Id {
            loop {
                let parent = *parents.entry(node).or_insert(node);
                if parent == node {
                    return node;
                }
                let above = *parents.entry(parent).or_insert(parent);
                parents.insert(node, above);
                node = above;
            }
        }
        for [s, p, o] in &self.whole.triples {
            let subject = root(&mut parents, *s);
            if *p != self.known[0] && self.kind(*o, dictionary) != Kind::Literal {
                let object = root(&mut parents, *o);
                parents.insert(object, subject);
            }
        }
        self.whole.triples.iter().map(|triple| root(&mut parents, triple[0])).collect()
    }

    /// The triples of a subject and of the blank nodes reached from it that were not seen yet.
    fn describe(
        &self,
        subject: Id,
        seen: &mut HashSet<Id, RandomState>,
        triples: &mut Vec<u32>,
        dictionary: &Dictionary,
    ) {
        let mut queue = if seen.insert(subject) { vec![subject] } else { Vec::new() };
        let mut next = 0;
        while let Some(node) = queue.get(next).copied() {
            next += 1;
            let Some(row) = self.row_of.get(&node) else { continue };
            for number in &self.rows[*row] {
                triples.push(*number);
                let object = self.whole.triples[*number as usize][2];
                if self.kind(object, dictionary) == Kind::Blank && seen.insert(object) {
                    queue.push(object);
                }
            }
        }
    }

    /// The triples of a row's publication; `None` where the row makes none.
    fn triples(&self, row: usize, dictionary: &Dictionary) -> Option<Vec<u32>> {
        if self.cut == Cut::Component {
            return Some(self.rows[row].clone());
        }
        let subject = self.subjects[row];
        if self.kind(subject, dictionary) != Kind::Iri {
            return None;
        }
        let [type_, item, part_of] = self.known;
        let own = || self.rows[row].iter().map(|number| self.whole.triples[*number as usize]);
        let is_item = || own().any(|triple| triple == [subject, type_, item]);
        if self.cut == Cut::Item && !is_item() {
            return None;
        }
        let (mut seen, mut triples) = (HashSet::default(), Vec::new());
        self.describe(subject, &mut seen, &mut triples, dictionary);
        if self.cut == Cut::Item {
            for [_, p, channel] in own() {
                if p == part_of {
                    self.describe(channel, &mut seen, &mut triples, dictionary);
                }
            }
        }
        Some(triples)
    }

    /// Gives the next one; says whether there is one.
    pub(crate) fn next(
        &mut self,
        dictionary: &Dictionary,
        limits: &Limits,
        out: &mut Publication,
        faults: &mut Vec<Fault>,
    ) -> bool {
        out.clear();
        while self.next < self.rows.len() {
            let row = self.next;
            self.next += 1;
            let Some(triples) = self.triples(row, dictionary) else { continue };
            let item = match self.cut {
                Cut::Component => format!("component {}", row + 1),
                _ => {
                    let terms = Terms { dictionary, local: &self.whole.local };
                    let text = terms.text(self.subjects[row]);
                    let name = text.get(1..text.len() - 1).unwrap_or_default();
                    String::from_utf8_lossy(name).into_owned()
                }
            };
            if triples.len() > limits.publication_triples {
                let mut fault = too_large(limits, Some(triples.len()));
                fault.item = Some(item);
                faults.push(fault);
                continue;
            }
            out.id = match self.cut {
                Cut::Component if self.rows.len() == 1 => self.source.as_str().into(),
                Cut::Component => format!("{}#{}", self.source, row + 1).into(),
                _ => item.into(),
            };
            self.ids.clear();
            for number in triples {
                let triple = self.whole.triples[number as usize];
                out.triples.push(triple.map(|id| {
                    if id < LOCAL {
                        return id;
                    }
                    let local = &self.whole.local;
                    *self.ids.entry(id).or_insert_with(|| {
                        let text = local.text(id);
                        out.local.intern_hashed(text, dictionary.hash(text))
                    })
                }));
            }
            return true;
        }
        false
    }
}
