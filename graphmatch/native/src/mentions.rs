//! What subscriptions mention: the properties and objects that their triple patterns ask for.
//!
//! A triple that follows and that no pattern asks for is not worth deriving. So whoever keeps
//! subscriptions counts here what they mention, and closing a publication looks here for what is
//! asked of a property, or of the objects after it. Of the attributes that are mentioned a tree of
//! steps is kept ([`Asked`]), along which publications are flattened.
//!
//! Cost: some hash look-ups for a mention that comes or goes. Nothing is made anew: a mention that
//! is there for the first time, or goes with the last subscription, changes the version, and
//! answers that were remembered with another version are found again when they are next needed.

use crate::dictionary::{ANY, Id};
use crate::hierarchy::Map;
use crate::names;
use std::sync::atomic::{AtomicU64, Ordering};

/// What a pattern mentions: its property and its object, [`ANY`] for a variable.
pub type Mention = (Id, Id);

static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A number that no other object has.
pub fn serial() -> u64 {
    SERIAL.fetch_add(1, Ordering::Relaxed)
}

/// Counts of what is asked for; what is added twice has to be taken away twice.
pub struct Mentions {
    serial: u64,
    version: u64,
    anything: u32,
    pairs: Map<Mention, u32>,
    properties: Map<Id, u32>,
    objects: Map<Id, u32>,
    asked: Asked,
}

impl Default for Mentions {
    fn default() -> Self {
        Self {
            serial: serial(),
            version: 0,
            anything: 0,
            pairs: Map::default(),
            properties: Map::default(),
            objects: Map::default(),
            asked: Asked::default(),
        }
    }
}

impl Mentions {
    /// Mentions by which nothing is left out.
    pub fn everything() -> Self {
        Self { anything: 1, ..Self::default() }
    }

    /// Counts what some subscriptions mention. `text` is that of the property.
    pub fn add(&mut self, (property, object): Mention, times: u32, text: &[u8]) {
        if times == 0 {
            return;
        }
        if property == ANY {
            self.version += u64::from(self.anything == 0);
            self.anything = self.anything.saturating_add(times);
            return;
        }
        if object != ANY {
            *self.objects.entry(object).or_default() += times;
        }
        let count = self.pairs.entry((property, object)).or_default();
        *count += times;
        if *count > times {
            return;
        }
        self.version += 1;
        let objects = self.properties.entry(property).or_default();
        *objects += 1;
        self.asked.add(property, text, object, *objects == 1);
    }

    /// Takes back what some subscriptions mentioned.
    pub fn remove(&mut self, (property, object): Mention, times: u32, text: &[u8]) {
        if times == 0 {
            return;
        }
        if property == ANY {
            self.anything = self.anything.saturating_sub(times);
            self.version += u64::from(self.anything == 0);
            return;
        }
        take(&mut self.objects, object, times);
        if !take(&mut self.pairs, (property, object), times) {
            return;
        }
        self.version += 1;
        let is_last = take(&mut self.properties, property, 1);
        self.asked.remove(property, text, object, is_last);
    }

    /// Everything that is mentioned, with how many subscriptions do.
    pub fn counted(&self) -> impl Iterator<Item = (Mention, u32)> + '_ {
        let anything = (self.anything > 0).then_some(((ANY, ANY), self.anything));
        anything.into_iter().chain(self.pairs.iter().map(|(&mention, &times)| (mention, times)))
    }

    /// Another pair of numbers when anything else is asked for.
    pub fn stamp(&self) -> (u64, u64) {
        (self.serial, self.version)
    }

    /// Whether some pattern asks for triples with any property.
    pub fn anything(&self) -> bool {
        self.anything > 0
    }

    /// Whether some pattern has this property, or any.
    pub fn asks_for(&self, property: Id) -> bool {
        self.anything() || self.properties.contains_key(&property)
    }

    /// Whether some pattern takes whatever object the property has.
    pub fn asks_for_any_object(&self, property: Id) -> bool {
        self.anything() || self.pairs.contains_key(&(property, ANY))
    }

    /// Whether some pattern takes this object after this property.
    pub fn asks_for_object(&self, property: Id, object: Id) -> bool {
        self.asks_for_any_object(property) || self.pairs.contains_key(&(property, object))
    }

    /// Whether some pattern with this property, and no variable, takes this object.
    pub fn names_object(&self, property: Id, object: Id) -> bool {
        self.pairs.contains_key(&(property, object))
    }

    /// Whether some pattern has this object, whatever its property.
    pub fn has_object(&self, object: Id) -> bool {
        self.objects.contains_key(&object)
    }

    /// What is asked for of attributes.
    pub fn asked(&self) -> &Asked {
        &self.asked
    }
}

/// Lowers a count; whether that was the last.
fn take<K: std::hash::Hash + Eq>(counts: &mut Map<K, u32>, key: K, times: u32) -> bool {
    let Some(count) = counts.get_mut(&key) else { return false };
    *count = count.saturating_sub(times);
    let is_last = *count == 0;
    if is_last {
        counts.remove(&key);
    }
    is_last
}

/// A place in the tree of steps.
#[derive(Default)]
pub struct Place {
    /// The attributes whose names end here.
    pub attributes: Vec<Id>,
    /// The properties that ask for classes of their values.
    pub isa: Vec<Id>,
    /// How many names go through here or end here.
    uses: u32,
}

/// The attributes that subscriptions ask for, as a tree of steps.
#[derive(Default)]
pub struct Asked {
    version: u64,
    steps: Map<Box<str>, (u32, u32)>,
    numbered: u32,
    places: Vec<Place>,
    below: Map<(u32, u32), u32>,
    free: Vec<u32>,
    classes: Map<Id, u32>,
    /// Attributes with the places where their names end.
    ends: Map<Id, u32>,
}

impl Asked {
    /// The place where all names begin.
    pub const ROOT: u32 = 0;

    /// Whether nothing is asked for of attributes.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether classes of values are asked for.
    pub fn has_classes(&self) -> bool {
        !self.classes.is_empty()
    }

    /// Another number when other attributes are asked for.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The number of a step, if any name that is asked for has it.
    pub fn step(&self, name: &str) -> Option<u32> {
        self.steps.get(name).map(|&(number, _)| number)
    }

    /// The place that a step leads to.
    pub fn below(&self, place: u32, step: u32) -> Option<u32> {
        self.below.get(&(place, step)).copied()
    }

    /// The place where the name of an attribute ends that is asked for.
    pub fn end(&self, attribute: Id) -> Option<u32> {
        self.ends.get(&attribute).copied()
    }

    /// What ends at a place.
    pub fn place(&self, number: u32) -> Option<&Place> {
        self.places.get(number as usize)
    }

    /// Whether anything is asked for behind a place.
    pub fn leads_on(&self, number: u32) -> bool {
        self.place(number)
            .is_some_and(|place| place.uses as usize > place.attributes.len() + place.isa.len())
    }

    /// Whether some attribute's values are asked whether they are of a class.
    pub fn asks_for_class(&self, class: Id) -> bool {
        self.has_classes() && (self.classes.contains_key(&ANY) || self.classes.contains_key(&class))
    }

    fn add(&mut self, property: Id, text: &[u8], object: Id, is_first: bool) {
        let isa = names::isa_name(text);
        if isa.is_some() {
            *self.classes.entry(object).or_default() += 1;
        }
        if !is_first {
            return;
        }
        let is_isa = isa.is_some();
        let Some(name) = isa.or_else(|| names::attribute_name(text)) else { return };
        let Some(steps) = names::steps(&name) else { return };
        self.version += 1;
        if self.places.is_empty() {
            self.places.push(Place::default());
        }
        let mut place = Self::ROOT;
        for step in steps {
            self.places[place as usize].uses += 1;
            let step = self.count_step(step);
            place = match self.below.get(&(place, step)) {
                Some(&below) => below,
                None => {
                    let new = self.free.pop().unwrap_or_else(|| {
                        self.places.push(Place::default());
                        self.places.len() as u32 - 1
                    });
                    self.below.insert((place, step), new);
                    new
                }
            };
        }
        let end = &mut self.places[place as usize];
        end.uses += 1;
        if is_isa {
            end.isa.push(property);
        } else {
            end.attributes.push(property);
            self.ends.insert(property, place);
        }
    }

    fn count_step(&mut self, step: &str) -> u32 {
        if let Some((number, uses)) = self.steps.get_mut(step) {
            *uses += 1;
            return *number;
        }
        self.numbered = self.numbered.wrapping_add(1);
        self.steps.insert(step.into(), (self.numbered, 1));
        self.numbered
    }

    fn remove(&mut self, property: Id, text: &[u8], object: Id, is_last: bool) {
        let isa = names::isa_name(text);
        if isa.is_some() {
            take(&mut self.classes, object, 1);
        }
        if !is_last {
            return;
        }
        let Some(name) = isa.or_else(|| names::attribute_name(text)) else { return };
        let Some(steps) = names::steps(&name) else { return };
        let mut way = vec![(Self::ROOT, None)];
        for step in &steps {
            let place = way[way.len() - 1].0;
            let Some(number) = self.step(step) else { return };
            let Some(below) = self.below(place, number) else { return };
            way.push((below, Some((place, number))));
        }
        self.version += 1;
        self.ends.remove(&property);
        let end = &mut self.places[way[way.len() - 1].0 as usize];
        end.isa.retain(|&known| known != property);
        end.attributes.retain(|&known| known != property);
        for (place, link) in way {
            let uses = &mut self.places[place as usize].uses;
            *uses = uses.saturating_sub(1);
            if let (0, Some(link)) = (*uses, link) {
                self.below.remove(&link);
                self.free.push(place);
            }
        }
        for step in steps {
            let Some((_, uses)) = self.steps.get_mut(step) else { continue };
            *uses = uses.saturating_sub(1);
            if *uses == 0 {
                self.steps.remove(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXTS: [&[u8]; 5] = [
        b"<urn:p>",
        b"<urn:graphmatch:attribute:price.value>",
        b"<urn:graphmatch:attribute:price>",
        b"<urn:graphmatch:isa:price.value>",
        b"<urn:graphmatch:attribute:value.price.value>",
    ];

    #[test]
    fn what_is_added_twice_is_taken_away_twice() {
        let mut mentions = Mentions::default();
        let begin = mentions.stamp();
        mentions.add((0, 7), 2, TEXTS[0]);
        assert!(mentions.asks_for(0) && mentions.asks_for_object(0, 7) && mentions.has_object(7));
        assert!(!mentions.asks_for_any_object(0) && !mentions.asks_for_object(0, 8));
        let first = mentions.stamp();
        assert_ne!(first, begin);
        mentions.remove((0, 7), 1, TEXTS[0]);
        assert_eq!(mentions.stamp(), first);
        mentions.remove((0, 7), 1, TEXTS[0]);
        assert_ne!(mentions.stamp(), first);
        assert!(!mentions.asks_for(0) && !mentions.has_object(7));
        mentions.add((ANY, ANY), 1, b"");
        assert!(mentions.asks_for_object(3, 4) && mentions.anything());
        mentions.remove((ANY, ANY), 1, b"");
        assert!(!mentions.anything() && mentions.counted().count() == 0);
    }

    #[test]
    fn the_tree_of_steps_is_as_if_made_anew() {
        let all: Vec<Mention> =
            (1..5).flat_map(|property| [ANY, 7, 8].map(|object| (property, object))).collect();
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let (mut mentions, mut counts) = (Mentions::default(), vec![0; all.len()]);
        for _ in 0..5_000 {
            let which = random(all.len());
            let text = TEXTS[all[which].0 as usize];
            if counts[which] > 0 && random(2) == 0 {
                counts[which] -= 1;
                mentions.remove(all[which], 1, text);
            } else if counts[which] < 3 {
                counts[which] += 1;
                mentions.add(all[which], 1, text);
            }
            let mut fresh = Mentions::default();
            for (mention, &times) in all.iter().zip(&counts) {
                fresh.add(*mention, times, TEXTS[mention.0 as usize]);
            }
            assert_eq!(picture(mentions.asked()), picture(fresh.asked()));
            assert!(mentions.asked().places.len() <= 8);
        }
    }

    fn picture(asked: &Asked) -> Vec<String> {
        let mut found = vec![format!("{} {}", asked.is_empty(), asked.has_classes())];
        let mut agenda = vec![(Asked::ROOT, String::new())];
        while let Some((place, name)) = agenda.pop() {
            let Some(here) = asked.place(place) else { continue };
            let (mut attributes, mut isa) = (here.attributes.clone(), here.isa.clone());
            attributes.sort_unstable();
            isa.sort_unstable();
            found.push(format!("{name}: {attributes:?} {isa:?} {}", asked.leads_on(place)));
            for step in ["price", "value"] {
                let below = asked.step(step).and_then(|step| asked.below(place, step));
                agenda.extend(below.map(|below| (below, format!("{name}.{step}"))));
            }
        }
        found.retain(|line| line != ": [] [] false");
        found.sort_unstable();
        found
    }
}
