//! The query templates of all subscriptions, without duplicates.
//!
//! If each subscription has a shape of its own, templates would be most of the memory. So they are
//! stored encoded, in about 170 bytes, and decoded when they are needed, in half a microsecond. The
//! templates that were needed lately are cached.

use crate::arena::Arena;
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
#[derive(Default, Serialize, Deserialize)]
pub struct Templates {
    texts: Interner,
    /// The encoded templates, without their texts. Additions and removals are those of the texts, so
    /// the numbers are the same.
    encoded: Arena<u8>,
    /// Templates that were needed lately.
    #[serde(skip)]
    cache: TemplateCache<Template>,
}

impl Templates {
    /// The template of a text.
    pub fn find(&self, text: &str) -> Option<u32> {
        self.texts.find(text.as_bytes())
    }

    /// The text of a template.
    pub fn text(&self, number: u32) -> &str {
        std::str::from_utf8(self.texts.get(number)).unwrap_or_default()
    }

    /// A template by its number.
    pub fn get(&self, number: u32) -> Option<Arc<Template>> {
        let text = self.text(number);
        let decode = || {
            let mut template: Template = from_bytes(self.encoded.get(number)).ok_or(())?;
            template.text = text.into();
            Ok::<_, ()>(template)
        };
        self.cache.get(text, decode).ok()
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Adds a template that is not there; `None` if there is no room.
    pub fn add(&mut self, template: &Template) -> Option<u32> {
        let number = self.texts.add(template.text.as_bytes(), 0)?;
        let encoded = self.encoded.insert(&to_bytes(template));
        if encoded.is_none() {
            self.texts.release(number);
        }
        encoded
    }

    /// Counts one more subscription of a template; false if there is no such template.
    pub fn retain(&mut self, number: u32) -> bool {
        self.texts.retain(number)
    }

    /// Counts one subscription less. A template that has none is dropped.
    pub fn release(&mut self, number: u32) {
        if self.texts.release(number) {
            self.encoded.remove(number);
        }
    }

    /// Drops a template that no subscription has.
    pub fn drop_unused(&mut self, number: u32) {
        if self.texts.uses(number) == 0 {
            self.release(number);
        }
    }
}
