//! The standing subscriptions: what they are called, what they ask for, and where they are filed.
//!
//! A subscription is one record of integers: its template, its name, its rows in the index and its
//! constants. Numbers are dense and used again; the order of subscribing is kept beside them.
//!
//! Cost: 20 bytes a subscription, 4 a constant and a row, and its name in words of 4; a look-up by
//! name is that of a hash table.

use crate::arena::Arena;
use crate::dictionary::Id;
use crate::plan::shrink;
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check};
use foldhash::fast::RandomState;
use hashbrown::{HashMap, HashTable};
use std::hash::BuildHasher;
use std::hint::black_box;
use std::sync::OnceLock;

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
/// Its only row has its constants, and they are kept there only.
pub const IN_ROW: Flags = 16;
/// It was filed with other constants than it was submitted with: root terms, base units.
const REWRITTEN: Flags = 128;

/// Where the length of the name is, behind length and flags, and template; then come the name, how
/// many rows there are, these, and the constants.
const NAME: usize = 2;

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

impl Entry<'_> {
    fn record(&self) -> Option<Vec<u32>> {
        let rewritten = self.filed != self.constants;
        let name = packed(self.name);
        let terms = self.constants.len() * if rewritten { 2 } else { 1 };
        let length = NAME + name.len() + 1 + self.rows.len() + terms;
        if self.name.len() > LONGEST_NAME || length >= 1 << 24 {
            return None;
        }
        let flags = self.flags | if rewritten { REWRITTEN } else { 0 };
        let mut record = Vec::with_capacity(length);
        record.extend([(length as u32) << 8 | u32::from(flags), self.template]);
        record.extend_from_slice(&name);
        record.push(self.rows.len() as u32);
        record.extend_from_slice(self.rows);
        record.extend_from_slice(self.constants);
        if rewritten {
            record.extend_from_slice(self.filed);
        }
        Some(record)
    }
}

/// A subscription that is kept.
#[derive(Clone, Copy)]
pub struct Record<'a>(&'a [u32]);

/// The standing subscriptions.
#[derive(Default)]
pub struct Subscriptions {
    records: Arena<u32>,
    /// Made when it is first asked for: matching needs no names to be found.
    by_name: OnceLock<HashTable<Number>>,
    hasher: RandomState,
    /// The place of each in the order of subscribing, and that of the next one.
    serials: Vec<u32>,
    next: u32,
    comments: HashMap<Number, Box<str>>,
}

fn record_length(record: &[u32]) -> usize {
    record.first().map_or(0, |&word| (word >> 8) as usize)
}

/// A name as a record has it: how many bytes, and these in words.
fn packed(name: &str) -> Vec<u32> {
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    let mut words = Vec::with_capacity(1 + name.len().div_ceil(4));
    words.push(name.len() as u32);
    words.extend(name.as_bytes().chunks(4).map(word));
    words
}

impl<'a> Record<'a> {
    /// How long its name is, and this in words.
    fn packed_name(&self) -> &'a [u32] {
        let length = (self.0[NAME] & 0xffff) as usize;
        &self.0[NAME..=NAME + length.div_ceil(4)]
    }

    /// What it is called.
    pub fn name(&self) -> String {
        let mut name = Vec::new();
        self.write_name(&mut name);
        String::from_utf8(name).unwrap_or_default()
    }

    /// Appends what it is called.
    fn write_name(&self, to: &mut Vec<u8>) {
        let end = to.len() + (self.0[NAME] & 0xffff) as usize;
        for word in &self.packed_name()[1..] {
            to.extend_from_slice(&word.to_le_bytes());
        }
        to.truncate(end);
    }

    /// The number of its template.
    pub fn template(&self) -> u32 {
        self.0[1]
    }

    /// How it is filed.
    pub fn flags(&self) -> Flags {
        (self.0[0] & 0xff) as Flags
    }

    /// Whether all of these flags are set.
    pub fn is(&self, flags: Flags) -> bool {
        self.flags() & flags == flags
    }

    /// Whether some numbers are a record, and no more than that. Its name is written to `room`.
    fn is_whole(words: &'a [u32], room: &mut Vec<u8>) -> bool {
        let record = Self(words);
        if words.len() <= NAME + 1 || record_length(words) != words.len() {
            return false;
        }
        let name = words[NAME] as usize;
        let begin = NAME + 1 + name.div_ceil(4);
        let Some(&rows) = words.get(begin).filter(|_| name <= LONGEST_NAME) else { return false };
        let Some(terms) = (words.len() - begin - 1).checked_sub(rows as usize) else {
            return false;
        };
        (!record.is(REWRITTEN) || terms.is_multiple_of(2)) && {
            room.clear();
            record.write_name(room);
            std::str::from_utf8(room).is_ok()
        }
    }

    fn rows_begin(&self) -> usize {
        NAME + self.packed_name().len() + 1
    }

    /// Its rows in the index, and its constants behind them.
    fn rest(&self) -> (&'a [RowId], &'a [Id]) {
        let begin = self.rows_begin();
        self.0[begin..record_length(self.0)].split_at(self.0[begin - 1] as usize)
    }

    /// Its rows in the index.
    pub fn rows(&self) -> &'a [RowId] {
        self.rest().0
    }

    /// All of its constants, as they were submitted and as it is filed.
    pub(crate) fn terms(&self) -> &'a [Id] {
        self.rest().1
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
        let name = packed(name);
        let hash = self.hasher.hash_one(&name[..]);
        self.by_name().find(hash, |&number| self.get(number).packed_name() == name).copied()
    }

    fn by_name(&self) -> &HashTable<Number> {
        self.by_name.get_or_init(|| {
            let hash = |&number: &Number| self.hasher.hash_one(self.get(number).packed_name());
            let mut by_name = HashTable::with_capacity(self.len());
            for number in self.numbers() {
                by_name.insert_unique(hash(&number), number, hash);
            }
            by_name
        })
    }

    /// A subscription by its number, which has to be one that is there.
    pub fn get(&self, number: Number) -> Record<'_> {
        Record(self.records.get(number))
    }

    /// What the subscription of a number is called, if there is one.
    pub fn name(&self, number: Number) -> Option<String> {
        let record = self.records.get(number);
        (!record.is_empty()).then(|| Record(record).name())
    }

    /// Appends what some are called; tells where each ends.
    pub fn write_names(&self, numbers: &[Number], names: &mut Vec<u8>) -> Vec<usize> {
        // One kind of memory after the other, so that the processor waits for many at once.
        let starts = numbers.iter().map(|&number| self.records.start(number));
        let starts: Vec<usize> = starts.collect();
        let touched = starts.iter().map(|start| self.records.peek(start + NAME + 1).unwrap_or(0));
        black_box(touched.fold(0, |all, word| all ^ word));
        let write = |&number: &Number| {
            self.get(number).write_name(names);
            names.len()
        };
        numbers.iter().map(write).collect()
    }

    /// Keeps a subscription, whose name is free and not too long; `None` if there is no room.
    pub fn add(&mut self, entry: Entry<'_>) -> Option<Number> {
        let record = entry.record()?;
        self.by_name();
        let number = self.records.insert(&record)?;
        self.set_serial(number);
        let (records, hasher) = (&self.records, &self.hasher);
        let hash = |&number: &Number| hasher.hash_one(Record(records.get(number)).packed_name());
        if let Some(by_name) = self.by_name.get_mut() {
            by_name.insert_unique(hash(&number), number, hash);
        }
        Some(number)
    }

    /// Keeps a subscription otherwise than before, by the same name; false if there is no room.
    pub fn change(&mut self, number: Number, entry: Entry<'_>) -> bool {
        entry.record().is_some_and(|record| self.records.replace(number, &record, record_length))
    }

    /// A row of a subscription is another one from now on.
    pub fn move_row(&mut self, number: Number, from: RowId, to: RowId) {
        let begin = self.get(number).rows_begin();
        let rows = self.records.get_mut(number).get_mut(begin..).unwrap_or_default();
        if let Some(row) = rows.iter_mut().find(|row| **row == from) {
            *row = to;
        }
    }

    /// Takes a subscription out.
    pub fn remove(&mut self, number: Number) {
        let hash = self.hasher.hash_one(self.get(number).packed_name());
        let names = self.by_name.get_mut();
        let entry = names.and_then(|names| names.find_entry(hash, |&other| other == number).ok());
        entry.map(|entry| entry.remove());
        self.records.remove(number, record_length);
        self.comments.remove(&number);
        if self.is_empty() {
            (self.serials, self.next) = (Vec::new(), 0);
        }
        let (records, hasher) = (&self.records, &self.hasher);
        let hash = |&number: &Number| hasher.hash_one(Record(records.get(number)).packed_name());
        if let Some(by_name) = self.by_name.get_mut() {
            shrink(by_name, hash);
        }
    }

    /// The numbers of all.
    pub fn numbers(&self) -> impl Iterator<Item = Number> + '_ {
        self.records.numbers()
    }

    /// The numbers of all, in the order of subscribing.
    pub fn in_order(&self) -> Vec<Number> {
        let mut numbers: Vec<Number> = self.numbers().collect();
        numbers.sort_unstable_by_key(|&number| self.serial(number));
        numbers
    }

    /// The place of a subscription in the order of subscribing.
    #[inline]
    pub fn serial(&self, number: Number) -> u32 {
        self.serials.get(number as usize).copied().unwrap_or_default()
    }

    /// Gives a new subscription the last place in the order.
    fn set_serial(&mut self, number: Number) {
        if self.next == u32::MAX {
            let numbers = self.in_order();
            self.next = numbers.len() as u32;
            self.serials.fill(0);
            numbers
                .into_iter()
                .zip(0..)
                .for_each(|(of, serial)| self.serials[of as usize] = serial);
        }
        let number = number as usize;
        if number >= self.serials.len() {
            self.serials.resize(number + 1, 0);
        }
        self.serials[number] = self.next;
        self.next += 1;
    }

    /// What the subscriber says of a subscription, for people.
    pub fn comment(&self, number: Number) -> &str {
        self.comments.get(&number).map_or("", |comment| comment)
    }

    /// Keeps what the subscriber says of a subscription.
    pub fn say(&mut self, number: Number, comment: &str) {
        if comment.is_empty() {
            self.comments.remove(&number);
        } else {
            self.comments.insert(number, comment.into());
        }
    }
}

impl Stored for Subscriptions {
    fn save(&self, to: &mut Saver) {
        self.records.save(to, record_length);
        self.serials.save(to);
        self.next.save(to);
        self.comments.save(to);
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let mut room = Vec::new();
        let is_whole = |_, record: &[u32]| Record::is_whole(record, &mut room);
        let records = Arena::load(from, is_whole)?;
        let (serials, next) = (<Vec<u32>>::load(from)?, u32::load(from)?);
        check(serials.iter().all(|&serial| serial < next), "an order of subscriptions")?;
        check(serials.len() >= records.end(), "an order of other subscriptions")?;
        Ok(Self { records, serials, next, comments: Stored::load(from)?, ..Self::default() })
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
        let alice = all.add(entry("alice", &[3, 4], &[3, 5])).unwrap();
        all.say(alice, "hers");
        for round in 0..50 {
            let names: Vec<String> = (0..1000).map(|n| format!("{round}/{n}")).collect();
            for name in &names {
                all.add(entry(name, &[9], &[9])).unwrap();
            }
            for name in &names {
                all.remove(all.find(name).unwrap());
            }
        }
        let bob = all.add(entry("bob", &[], &[])).unwrap();
        assert_eq!((all.len(), all.find("alice"), all.find("0/1")), (2, Some(alice), None));
        let record = all.get(alice);
        assert_eq!((&*record.name(), record.template()), ("alice", 7));
        assert_eq!((record.constants(), record.filed()), (&[3, 4][..], &[3, 5][..]));
        assert_eq!((record.rows(), all.comment(alice)), (&[1, 2][..], "hers"));
        assert!(record.is(EXACT) && record.is(RESTING) && !record.is(UNINDEXED));
        assert_eq!(all.get(bob).filed(), &[] as &[Id]);
        assert!(all.change(bob, entry("bob", &[1, 2, 3], &[1, 2, 3])));
        assert_eq!((all.find("bob"), all.get(bob).constants()), (Some(bob), &[1, 2, 3][..]));
        all.move_row(bob, 2, 9);
        assert_eq!((all.get(bob).rows(), all.len()), (&[1, 9][..], 2));
        assert_eq!(all.in_order(), vec![alice, bob]);
    }
}
