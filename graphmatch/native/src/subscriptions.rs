//! The standing subscriptions: what they are called, what they ask for, and where they are filed.
//!
//! A subscription is one record of integers: its template, its constants, its rows in the index
//! and its name. Numbers are dense and used again; the order of subscribing is kept beside them.
//!
//! Cost: 16 bytes a subscription, 4 a constant and a row, and its name; a look-up by name is that
//! of a hash table.

use crate::arena::Arena;
use crate::dictionary::Id;
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;

/// A subscription, while it is there.
pub type Number = u32;

/// A row of the index.
pub type RowId = u32;

/// The longest name, in bytes.
pub const LONGEST_NAME: usize = u16::MAX as usize;

/// What is known of how a subscription is filed; a set of bits.
pub type Flags = u8;
/// The solutions of its row are its answer.
pub const EXACT: Flags = 1;
/// It is a candidate of every publication.
pub const UNINDEXED: Flags = 2;
/// A solution of it might rest on the ontology alone.
pub const RESTING: Flags = 4;
/// It cannot be filed under this ontology, and matches nothing.
pub const SUSPENDED: Flags = 8;
/// It was filed with other constants than it was submitted with: root terms, base units.
const REWRITTEN: Flags = 128;

const HEADER: usize = 4;

/// A subscription to be kept.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The number of its template.
    pub template: u32,
    /// Its constants as they were submitted.
    pub constants: &'a [Id],
    /// Its constants as it is filed; as many.
    pub filed: &'a [Id],
    /// Its rows in the index.
    pub rows: &'a [RowId],
    /// How it is filed.
    pub flags: Flags,
}

/// A subscription that is kept.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    words: &'a [u32],
    bytes: &'a [u8],
}

/// The standing subscriptions.
#[derive(Default)]
pub struct Subscriptions {
    records: Arena<u32>,
    names: Arena<u8>,
    by_name: HashTable<Number>,
    hasher: RandomState,
    next: u32,
    comments: HashMap<Number, Box<str>>,
}

fn record_length(record: &[u32]) -> usize {
    record.first().map_or(0, |&word| (word >> 8) as usize)
}

fn name_length(record: &[u8]) -> usize {
    match record {
        [low, high, ..] => 2 + usize::from(u16::from_le_bytes([*low, *high])),
        _ => 0,
    }
}

fn name_of(record: &[u8]) -> &[u8] {
    record.get(2..name_length(record)).unwrap_or_default()
}

impl<'a> Record<'a> {
    /// What it is called.
    pub fn name(&self) -> &'a str {
        std::str::from_utf8(name_of(self.bytes)).unwrap_or_default()
    }

    /// The number of its template.
    pub fn template(&self) -> u32 {
        self.words[1]
    }

    /// Its place in the order of subscribing.
    pub fn serial(&self) -> u32 {
        self.words[2]
    }

    /// How it is filed.
    pub fn flags(&self) -> Flags {
        (self.words[0] & 0xff) as Flags
    }

    /// Whether all of these flags are set.
    pub fn is(&self, flags: Flags) -> bool {
        self.flags() & flags == flags
    }

    /// Its rows in the index.
    pub fn rows(&self) -> &'a [RowId] {
        &self.words[HEADER..HEADER + self.words[3] as usize]
    }

    fn terms(&self) -> &'a [Id] {
        &self.words[HEADER + self.words[3] as usize..record_length(self.words)]
    }

    /// Its constants as they were submitted.
    pub fn constants(&self) -> &'a [Id] {
        let terms = self.terms();
        if self.is(REWRITTEN) { &terms[..terms.len() / 2] } else { terms }
    }

    /// Its constants as it is filed: root terms put in, in base units.
    pub fn filed(&self) -> &'a [Id] {
        let terms = self.terms();
        if self.is(REWRITTEN) { &terms[terms.len() / 2..] } else { terms }
    }
}

impl Subscriptions {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The subscription of a name.
    pub fn find(&self, name: &str) -> Option<Number> {
        let hash = self.hasher.hash_one(name.as_bytes());
        self.by_name
            .find(hash, |&number| name_of(self.names.get(number)) == name.as_bytes())
            .copied()
    }

    /// A subscription by its number, which has to be one that is there.
    pub fn get(&self, number: Number) -> Record<'_> {
        Record { words: self.records.get(number), bytes: self.names.get(number) }
    }

    /// Keeps a subscription, whose name is free and not too long; `None` if there is no room.
    ///
    /// `serial` is its place in the order of subscribing, the last one by default.
    pub fn add(&mut self, entry: Entry<'_>, serial: Option<u32>) -> Option<Number> {
        let rewritten = entry.filed != entry.constants;
        let terms = entry.constants.len() * if rewritten { 2 } else { 1 };
        let length = HEADER + entry.rows.len() + terms;
        let flags = entry.flags | if rewritten { REWRITTEN } else { 0 };
        let serial = serial.unwrap_or_else(|| self.next_serial());
        let mut record = Vec::with_capacity(length);
        record.extend([(u32::try_from(length).ok()? << 8) | u32::from(flags), entry.template]);
        record.extend([serial, u32::try_from(entry.rows.len()).ok()?]);
        record.extend_from_slice(entry.rows);
        record.extend_from_slice(entry.constants);
        if rewritten {
            record.extend_from_slice(entry.filed);
        }
        let length = u16::try_from(entry.name.len()).ok()?.to_le_bytes();
        let mut name = Vec::with_capacity(entry.name.len() + 2);
        name.extend_from_slice(&length);
        name.extend_from_slice(entry.name.as_bytes());
        let number = self.records.insert(&record)?;
        // Both arenas give the same numbers, for records come and go in both at once.
        let same = self.names.insert(&name);
        debug_assert_eq!(same, Some(number));
        if same != Some(number) {
            self.records.remove(number, record_length);
            return None;
        }
        let (names, hasher) = (&self.names, &self.hasher);
        let hash = |number: &Number| hasher.hash_one(name_of(names.get(*number)));
        self.by_name.insert_unique(hash(&number), number, hash);
        Some(number)
    }

    /// The next place in the order of subscribing.
    fn next_serial(&mut self) -> u32 {
        if self.next == u32::MAX {
            let mut numbers: Vec<Number> = self.by_name.iter().copied().collect();
            numbers.sort_unstable_by_key(|&number| self.get(number).serial());
            for (serial, &number) in numbers.iter().enumerate() {
                self.records.get_mut(number)[2] = serial as u32;
            }
            self.next = numbers.len() as u32;
        }
        self.next += 1;
        self.next - 1
    }

    /// Takes a subscription out.
    pub fn remove(&mut self, number: Number) {
        let hash = self.hasher.hash_one(name_of(self.names.get(number)));
        if let Ok(entry) = self.by_name.find_entry(hash, |&other| other == number) {
            entry.remove();
        }
        self.records.remove(number, record_length);
        self.names.remove(number, name_length);
        self.comments.remove(&number);
        if self.by_name.len() * 4 < self.by_name.capacity() {
            let (names, hasher) = (&self.names, &self.hasher);
            self.by_name.shrink_to_fit(|&number| hasher.hash_one(name_of(names.get(number))));
        }
    }

    /// The numbers of all, in the order of subscribing.
    pub fn in_order(&self) -> Vec<Number> {
        let mut numbers: Vec<Number> = self.by_name.iter().copied().collect();
        numbers.sort_unstable_by_key(|&number| self.get(number).serial());
        numbers
    }

    /// What the subscriber says of a subscription, for people.
    pub fn comment(&self, number: Number) -> &str {
        self.comments.get(&number).map_or("", |comment| comment)
    }

    /// Keeps what the subscriber says of a subscription.
    pub fn say(&mut self, number: Number, comment: &str) {
        if !comment.is_empty() {
            self.comments.insert(number, comment.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(name: &'a str, constants: &'a [Id], filed: &'a [Id]) -> Entry<'a> {
        Entry { name, template: 7, constants, filed, rows: &[1, 2], flags: EXACT | RESTING }
    }

    #[test]
    fn a_subscription_is_what_it_was_when_others_came_and_went() {
        let mut all = Subscriptions::default();
        let alice = all.add(entry("alice", &[3, 4], &[3, 5]), None).unwrap();
        all.say(alice, "hers");
        for round in 0..50 {
            let names: Vec<String> = (0..1000).map(|n| format!("{round}/{n}")).collect();
            for name in &names {
                all.add(entry(name, &[9], &[9]), None).unwrap();
            }
            for name in &names {
                all.remove(all.find(name).unwrap());
            }
        }
        let bob = all.add(entry("bob", &[], &[]), None).unwrap();
        assert_eq!((all.len(), all.find("alice"), all.find("0/1")), (2, Some(alice), None));
        let record = all.get(alice);
        assert_eq!((record.name(), record.template()), ("alice", 7));
        assert_eq!((record.constants(), record.filed()), (&[3, 4][..], &[3, 5][..]));
        assert_eq!((record.rows(), all.comment(alice)), (&[1, 2][..], "hers"));
        assert!(record.is(EXACT) && record.is(RESTING) && !record.is(UNINDEXED));
        assert_eq!(all.get(bob).filed(), &[] as &[Id]);
        assert_eq!(all.in_order(), vec![alice, bob]);
    }
}
