//! The query templates of all subscriptions, without duplicates.
//!
//! If each subscription has a shape of its own, templates would be most of the memory. So they are
//! stored encoded, in about 150 bytes, and decoded when they are needed, in half a microsecond. The
//! templates that were needed lately are cached.

use crate::interner::Interner;
use crate::query::Template;
use crate::snapshot::{from_bytes, to_bytes};
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Mutex, PoisonError};

/// Number of templates in the cache.
const CACHE_SIZE: usize = 1 << 9;

/// Values that are computed once for each template, by the text of the template.
pub struct TemplateCache<T>(Mutex<HashMap<Box<str>, Arc<T>>>);

impl<T> Default for TemplateCache<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> TemplateCache<T> {
    /// Returns the value of a text, which is computed if it is not in the cache.
    pub fn get<E>(&self, text: &str, compute: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        if let Some(value) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(value.clone());
        }
        let value = Arc::new(compute()?);
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= CACHE_SIZE {
            cached.clear();
        }
        cached.insert(text.into(), value.clone());
        Ok(value)
    }
}

/// Templates by their texts, counted by the subscriptions that have them.
#[derive(Serialize, Deserialize)]
#[serde(from = "Interner")]
pub struct Templates {
    all: Interner,
    /// The templates that were needed lately, by the last digits of their numbers.
    #[serde(skip)]
    cache: Vec<Option<(u32, Arc<Template>)>>,
}

impl Default for Templates {
    fn default() -> Self {
        Self::from(Interner::default())
    }
}

impl From<Interner> for Templates {
    fn from(all: Interner) -> Self {
        Self { all: all.with_key(text), cache: vec![None; CACHE_SIZE] }
    }
}

/// The text that an encoded template begins with.
fn text(template: &[u8]) -> &[u8] {
    postcard::take_from_bytes::<&[u8]>(template).map_or(b"", |(text, _)| text)
}

impl Templates {
    /// The template of a text.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.all.find(text.as_bytes())
    }

    /// The text of a template.
    pub fn text(&self, number: u32) -> &str {
        std::str::from_utf8(text(self.all.get(number))).unwrap_or_default()
    }

    /// A template by its number.
    pub fn get(&self, number: u32) -> Option<Arc<Template>> {
        match &self.cache[number as usize % CACHE_SIZE] {
            Some((known, template)) if *known == number => Some(template.clone()),
            _ => from_bytes(self.all.get(number)).map(Arc::new),
        }
    }

    /// Puts a template into the cache.
    pub fn remember(&mut self, number: u32) -> Option<Arc<Template>> {
        let template = self.get(number)?;
        self.cache[number as usize % CACHE_SIZE] = Some((number, template.clone()));
        Some(template)
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Adds a template that is not there; `None` if there is no room.
    pub fn add(&mut self, template: &Template) -> Option<u32> {
        self.all.add(&to_bytes(template), 0)
    }

    /// Counts one more subscription of a template; false if there is no such template.
    pub fn retain(&mut self, number: u32) -> bool {
        self.all.retain(number)
    }

    /// Counts one subscription less. A template that has none is dropped.
    pub fn release(&mut self, number: u32) {
        self.all.release(number);
        if self.all.uses(number) == 0 {
            self.cache[number as usize % CACHE_SIZE] = None;
        }
    }

    /// Drops a template that no subscription has.
    pub fn drop_unused(&mut self, number: u32) {
        if self.all.uses(number) == 0 {
            self.release(number);
        }
    }
}
