//! Demand: the properties and objects that the triple patterns of subscriptions ask for.
//!
//! Derived triples that no pattern asks for are left out. The engine counts the pairs of property and
//! object of each subscription; [`crate::materialize`] reads the counts. The demanded attributes are
//! kept as a tree of steps ([`AttributePathTrie`]), along which publications are flattened.
//!
//! Cost: some hash look-ups for a pair that comes or goes. The first and the last subscription with
//! a pair change the version; caches of another version are then filled again on demand.

use crate::attribute_names;
use crate::dictionary::{ANY, Id};
use crate::interner::Interner;
use hashbrown::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicU64, Ordering};

static SERIAL: AtomicU64 = AtomicU64::new(1);

/// A number that no other object has.
pub struct Serial(pub u64);

impl Default for Serial {
    fn default() -> Self {
        Self(SERIAL.fetch_add(1, Ordering::Relaxed))
    }
}

/// Numbers of subscriptions by the pairs that they demand: the property and the object of a pattern,
/// [`ANY`] for a variable.
#[derive(Default)]
pub struct Demand {
    serial: Serial,
    version: u64,
    pairs: HashMap<(Id, Id), u32>,
    properties: HashMap<Id, u32>,
    /// The demanded attributes.
    pub(crate) attribute_paths: AttributePathTrie,
}

impl Demand {
    /// A demand for all triples.
    pub fn of_everything() -> Self {
        let mut demand = Self::default();
        demand.count((ANY, ANY), 1, b"");
        demand
    }

    /// Counts how many subscriptions come (or go, if `by` is negative) that demand a pair. `text` is
    /// that of the property, and is not used for [`ANY`].
    pub fn count(&mut self, (property, object): (Id, Id), by: i32, text: &[u8]) {
        let object = if property == ANY { ANY } else { object };
        if !count(&mut self.pairs, (property, object), by) {
            return;
        }
        self.version += 1;
        if property != ANY {
            let is_edge = count(&mut self.properties, property, by.signum());
            self.attribute_paths.count((property, object), by.signum(), text, is_edge);
        }
    }

    /// All pairs with the number of subscriptions that demand them.
    pub fn counted(&self) -> impl Iterator<Item = ((Id, Id), u32)> + '_ {
        self.pairs.iter().map(|(&pair, &times)| (pair, times))
    }

    /// A pair of numbers that changes with the demand.
    pub fn stamp(&self) -> (u64, u64) {
        (self.serial.0, self.version)
    }

    /// Whether some pattern asks for triples with any property.
    pub fn anything(&self) -> bool {
        self.pairs.contains_key(&(ANY, ANY))
    }

    /// Whether some pattern has this property, or any.
    pub fn asks_for(&self, property: Id) -> bool {
        self.anything() || self.properties.contains_key(&property)
    }

    /// Whether some pattern has this property.
    pub fn has_property(&self, property: Id) -> bool {
        self.properties.contains_key(&property)
    }

    /// Whether some pattern takes this object after this property.
    pub fn asks_for_object(&self, property: Id, object: Id) -> bool {
        let asks = |object| self.pairs.contains_key(&(property, object));
        self.anything() || asks(ANY) || asks(object)
    }

    /// Whether some pattern with this property, and no variable, takes this object.
    pub fn names_object(&self, property: Id, object: Id) -> bool {
        self.pairs.contains_key(&(property, object))
    }
}

/// Changes a count; whether it is the first or was the last.
pub(crate) fn count<K: Hash + Eq>(counts: &mut HashMap<K, u32>, key: K, by: i32) -> bool {
    let before = counts.get(&key).copied().unwrap_or_default();
    let after = before.saturating_add_signed(by);
    if after == 0 {
        counts.remove(&key);
    } else {
        counts.insert(key, after);
    }
    (before == 0) != (after == 0)
}

/// The demanded attributes as a tree of steps. Steps and places are numbered; a place is found by
/// the place before it and the step between.
#[derive(Default)]
pub struct AttributePathTrie {
    steps: Interner,
    /// By number, how many names go through a place or end there is the number of its uses.
    places: Interner,
    /// The attributes whose names end at a place.
    attributes: HashMap<u32, Vec<Id>>,
    /// The properties that ask for classes of the values of an attribute, by the end of its name.
    isa: HashMap<u32, Vec<Id>>,
    classes: HashMap<Id, u32>,
    /// Attributes with the places where their names end.
    ends: HashMap<Id, u32>,
}

impl AttributePathTrie {
    /// The place where all names begin.
    pub const ROOT: u32 = u32::MAX;

    /// Whether nothing is asked for of attributes.
    pub fn is_empty(&self) -> bool {
        self.steps.len() == 0
    }

    /// Whether classes of values are asked for.
    pub fn has_classes(&self) -> bool {
        !self.classes.is_empty()
    }

    /// A step, if any name that is asked for has it.
    pub fn step(&self, name: &str) -> Option<u32> {
        self.steps.find(name.as_bytes())
    }

    /// The place that a step leads to.
    pub fn below(&self, place: u32, step: u32) -> Option<u32> {
        self.places.find(&place_key(place, step))
    }

    /// The place where the name of an attribute ends that is asked for.
    pub fn end(&self, attribute: Id) -> Option<u32> {
        self.ends.get(&attribute).copied()
    }

    /// The attributes whose names end at a place.
    pub fn attributes(&self, place: u32) -> &[Id] {
        self.attributes.get(&place).map_or(&[], Vec::as_slice)
    }

    /// The properties that ask for classes of the attribute whose name ends at a place.
    pub fn isa(&self, place: u32) -> &[Id] {
        self.isa.get(&place).map_or(&[], Vec::as_slice)
    }

    /// Whether anything is asked for behind a place.
    pub fn leads_on(&self, place: u32) -> bool {
        self.places.uses(place) as usize > self.attributes(place).len() + self.isa(place).len()
    }

    /// Whether some attribute's values are asked whether they are of a class.
    pub fn asks_for_class(&self, class: Id) -> bool {
        self.has_classes() && (self.classes.contains_key(&ANY) || self.classes.contains_key(&class))
    }

    /// Counts an attribute that is mentioned (`by` 1) or is not (-1); its name, if that is its first
    /// pair or was the last.
    fn count(&mut self, (property, object): (Id, Id), by: i32, text: &[u8], is_edge: bool) {
        let isa = attribute_names::isa_name(text);
        let is_isa = isa.is_some();
        if is_isa {
            count(&mut self.classes, object, by);
        }
        let Some(name) = isa.or_else(|| attribute_names::attribute_name(text)) else { return };
        let Some(steps) = attribute_names::steps(&name).filter(|_| is_edge) else { return };
        let mut end = Self::ROOT;
        for step in steps {
            let found = if by > 0 {
                let step = self.steps.intern(step.as_bytes());
                step.and_then(|step| self.places.intern(&place_key(end, step)))
            } else {
                let step = self.step(step);
                let place = step.and_then(|step| self.below(end, step));
                step.map(|step| self.steps.release(step));
                place.inspect(|&place| _ = self.places.release(place))
            };
            let Some(place) = found else { return };
            end = place;
        }
        if by < 0 {
            self.ends.remove(&property);
        } else if !is_isa {
            self.ends.insert(property, end);
        }
        let rows = if is_isa { &mut self.isa } else { &mut self.attributes };
        let row = rows.entry(end).or_default();
        row.retain(|&known| known != property);
        if by > 0 {
            row.push(property);
        } else if row.is_empty() {
            rows.remove(&end);
        }
    }
}

fn place_key(place: u32, step: u32) -> [u8; 8] {
    (u64::from(place) << 32 | u64::from(step)).to_ne_bytes()
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
    fn the_tree_of_steps_is_as_if_made_anew() {
        let all: Vec<(Id, Id)> =
            (1..5).flat_map(|property| [ANY, 7, 8].map(|object| (property, object))).collect();
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) as usize % below
        };
        let (mut demand, mut counts) = (Demand::default(), vec![0; all.len()]);
        for _ in 0..5_000 {
            let which = random(all.len());
            let text = TEXTS[all[which].0 as usize];
            if counts[which] > 0 && random(2) == 0 {
                counts[which] -= 1;
                demand.count(all[which], -1, text);
            } else if counts[which] < 3 {
                counts[which] += 1;
                demand.count(all[which], 1, text);
            }
            let mut fresh = Demand::default();
            for (pair, &times) in all.iter().zip(&counts) {
                fresh.count(*pair, times, TEXTS[pair.0 as usize]);
            }
            assert_eq!(picture(&demand.attribute_paths), picture(&fresh.attribute_paths));
        }
    }

    fn picture(asked: &AttributePathTrie) -> Vec<String> {
        let mut found = vec![format!("{} {}", asked.is_empty(), asked.has_classes())];
        let mut agenda = vec![(AttributePathTrie::ROOT, String::new())];
        while let Some((place, name)) = agenda.pop() {
            if place != AttributePathTrie::ROOT {
                let (mut attributes, mut isa) =
                    (asked.attributes(place).to_vec(), asked.isa(place).to_vec());
                attributes.sort_unstable();
                isa.sort_unstable();
                found.push(format!("{name}: {attributes:?} {isa:?} {}", asked.leads_on(place)));
            }
            for step in ["price", "value"] {
                let below = asked.step(step).and_then(|step| asked.below(place, step));
                agenda.extend(below.map(|below| (below, format!("{name}.{step}"))));
            }
        }
        found.sort_unstable();
        found
    }
}
