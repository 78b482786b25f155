//! Query templates, each once, as long as a subscription has it.
//!
//! Where each subscription has a shape of its own, templates would be most of the memory. So they
//! are kept as a snapshot has them, in some 150 bytes, and made of that where they are needed, in
//! half a microsecond. Those that were needed lately are kept as they are, too.

use crate::cut::{Cut, Cutter};
use crate::dictionary::{Dictionary, Id};
use crate::interner::Interner;
use crate::query::Template;
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check, from_bytes, stored, to_bytes};
use std::ops::Deref;
use std::sync::Arc;

/// So many templates are kept as they are.
const RECENT: usize = 1 << 9;

/// A template, and the ids of its own constants.
pub struct Kept {
    template: Template,
    /// Behind those of a query's text.
    pub fixed: Box<[Id]>,
}

stored!(Kept { template, fixed });

impl Deref for Kept {
    type Target = Template;

    fn deref(&self) -> &Template {
        &self.template
    }
}

/// Templates by their skeletons, counted by the subscriptions that have them.
pub struct Templates {
    all: Interner,
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
    from_bytes(all.get(number)).ok().map(Arc::new)
}

impl Default for Templates {
    fn default() -> Self {
        Self { all: Interner::keyed(skeleton), recent: Recent::default() }
    }
}

/// The text that a template begins with.
fn skeleton(template: &[u8]) -> &[u8] {
    let mut from = Loader::new(template);
    usize::load(&mut from).and_then(|count| from.bytes(count)).unwrap_or_default()
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

    /// The same, for a thread that remembers its own.
    pub fn remember_in(&self, recent: &mut Recent, number: u32) -> Option<Arc<Kept>> {
        recent.get(number, &self.all)
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

    /// Writes the templates.
    pub fn save(&self, to: &mut Saver) {
        self.all.save(to);
    }

    /// Reads templates that are used by nobody yet. Each is to be looked at by
    /// [`Templates::check`].
    pub fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        Ok(Self { all: Interner::load_unused(from, skeleton)?, ..Self::default() })
    }

    /// Fails if a template that was read is none. How deep its text is nested is looked at again,
    /// for it is parsed by recursion.
    pub fn check(
        kept: &Kept,
        cutter: &Cutter,
        cut: &mut Cut,
        dictionary: &Dictionary,
    ) -> Result<(), SnapshotError> {
        dictionary.check(&kept.fixed)?;
        let is_sound = kept.template.is_sound(cutter, cut);
        check(is_sound && kept.fixed.len() == kept.template.fixed().len(), "a template")
    }

    /// Fails if there is a template that nobody uses.
    pub fn check_uses(&self) -> Result<(), SnapshotError> {
        self.all.check_uses()
    }
}
