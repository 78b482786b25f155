//! Query templates, each once, as long as a subscription has it.
//!
//! Where each subscription has a shape of its own, templates would be most of the memory. So they
//! are kept as a snapshot has them, in some 150 bytes, and made of that where they are needed, in
//! half a microsecond. Those that were needed lately are kept as they are, too.

use crate::dictionary::{Dictionary, Id};
use crate::interner::Interner;
use crate::query::Template;
use crate::snapshot::{from_bytes, to_bytes};
use serde::{Deserialize, Serialize};
use std::ops::Deref;
use std::sync::Arc;

/// So many templates are kept as they are.
const RECENT: usize = 1 << 9;

/// A template, and the ids of its own constants.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    template: Template,
    /// Behind those of a query's text.
    pub fixed: Box<[Id]>,
}

impl Deref for Kept {
    type Target = Template;

    fn deref(&self) -> &Template {
        &self.template
    }
}

/// Templates by their skeletons, counted by the subscriptions that have them.
#[derive(Serialize, Deserialize)]
#[serde(from = "Interner")]
pub struct Templates {
    all: Interner,
    #[serde(skip)]
    recent: Recent,
}

/// Templates that were needed lately, by the last digits of their numbers.
pub struct Recent(Vec<Option<(u32, Arc<Kept>)>>);

impl Default for Recent {
    fn default() -> Self {
        Self(vec![None; RECENT])
    }
}

impl Recent {
    fn find(&self, number: u32) -> Option<Arc<Kept>> {
        let kept = self.0[number as usize % RECENT].as_ref();
        kept.filter(|(known, _)| *known == number).map(|(_, kept)| kept.clone())
    }

    fn put(&mut self, number: u32, kept: Option<Arc<Kept>>) {
        self.0[number as usize % RECENT] = kept.map(|kept| (number, kept));
    }

    fn get(&mut self, number: u32, all: &Interner) -> Option<Arc<Kept>> {
        self.find(number).or_else(|| {
            self.put(number, read(all, number));
            self.find(number)
        })
    }
}

/// Makes a template of how it is kept.
fn read(all: &Interner, number: u32) -> Option<Arc<Kept>> {
    from_bytes(all.get(number)).map(Arc::new)
}

impl Default for Templates {
    fn default() -> Self {
        Self::from(Interner::default())
    }
}

impl From<Interner> for Templates {
    fn from(all: Interner) -> Self {
        Self { all: all.with_key(skeleton), recent: Recent::default() }
    }
}

/// The text that a template begins with.
fn skeleton(template: &[u8]) -> &[u8] {
    postcard::take_from_bytes::<&[u8]>(template).map_or(b"", |(skeleton, _)| skeleton)
}

impl Templates {
    /// The template of a skeleton.
    pub fn find(&self, skeleton: &str) -> Option<u32> {
        self.all.find(skeleton.as_bytes())
    }

    /// A query of a template without its constants.
    pub fn skeleton(&self, number: u32) -> &str {
        std::str::from_utf8(skeleton(self.all.get(number))).unwrap_or_default()
    }

    /// A template by its number.
    pub fn get(&self, number: u32) -> Option<Arc<Kept>> {
        self.recent.find(number).or_else(|| read(&self.all, number))
    }

    /// The same, of one that is going to be needed again.
    pub fn remember(&mut self, number: u32) -> Option<Arc<Kept>> {
        self.recent.get(number, &self.all)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a template that is not there; `None` if there is no room.
    pub fn add(&mut self, template: Template, dictionary: &mut Dictionary) -> Option<u32> {
        let texts = template.fixed().iter();
        let fixed = texts.map(|text| dictionary.intern(text.as_bytes())).collect();
        let kept = Kept { template, fixed };
        let number = self.all.add(&to_bytes(&kept), 0);
        match number {
            Some(number) => {
                self.recent.put(number, Some(Arc::new(kept)));
            }
            None => kept.fixed.iter().for_each(|&id| dictionary.release(id)),
        }
        number
    }

    /// One more subscription has a template; whether there is one of that number.
    pub fn retain(&mut self, number: u32) -> bool {
        self.all.retain(number)
    }

    /// One subscription less has a template, or none had it; it goes with the last one.
    pub fn release(&mut self, number: u32, dictionary: &mut Dictionary) {
        let kept = if self.all.uses(number) <= 1 { self.get(number) } else { None };
        self.all.release(number);
        if let Some(kept) = kept {
            kept.fixed.iter().for_each(|&id| dictionary.release(id));
            self.recent.put(number, None);
        }
    }

    /// Drops a template that no subscription has.
    pub fn drop_unused(&mut self, number: u32, dictionary: &mut Dictionary) {
        if self.all.uses(number) == 0 {
            self.release(number, dictionary);
        }
    }
}
