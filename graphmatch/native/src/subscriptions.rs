//! The standing subscriptions: their ids, templates, constants and rows.
//!
//! A subscription has a number; numbers of removed ones are reused. Most subscriptions have one
//! row, and only the row stores their constants. Others have a list of rows and constants.
//!
//! Cost: 40 bytes per subscription and its id. A list takes 12 bytes, and 4 for each row and
//! constant. A look-up by id is one of a hash table.

use crate::arena::{Arena, make_room};
use crate::dictionary::Id;
use crate::interner::Interner;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

/// The number of a subscription. Numbers of removed ones are reused.
pub type Number = u32;

/// The id of a row in the index.
pub type RowId = u32;

/// Maximum length of a subscription's id, in bytes.
pub const LONGEST_NAME: usize = u16::MAX as usize;

/// A set of bits that say how a subscription is indexed.
pub type Flags = u8;
/// The solutions of its row are its solutions.
pub const EXACT: Flags = 1;
/// Every publication is a candidate.
pub const UNINDEXED: Flags = 2;
/// Its solutions might use triples of the ontology only.
pub const DELTA_CHECK: Flags = 4;
/// It cannot be indexed under this ontology, and matches nothing.
pub const SUSPENDED: Flags = 8;
/// It has one row, which stores its constants.
pub const IN_ROW: Flags = 64;
/// The index uses other constants than the query: root terms and base units.
const REWRITTEN: Flags = 128;

/// A new subscription.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// The id.
    pub name: &'a str,
    /// The number of its template.
    pub template: u32,
    /// The constants of the query.
    pub constants: &'a [Id],
    /// The constants that the index uses, in the same order.
    pub rewritten: &'a [Id],
    /// The rows in the index.
    pub rows: &'a [RowId],
    /// How it is indexed.
    pub flags: Flags,
}

/// The fixed part of a stored subscription.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct StoredSubscription {
    template: u32,
    /// Its row, if the row stores its constants. Otherwise the number of its list: the number of
    /// rows, the rows, the constants, and those of the index if they differ.
    place: u32,
    flags: Flags,
}

/// A stored subscription.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    name: &'a [u8],
    /// The number of its template.
    pub template: u32,
    /// How it is indexed.
    pub flags: Flags,
    /// Its rows in the index.
    pub rows: &'a [RowId],
    /// The constants of the query, then those of the index if they differ.
    terms: &'a [Id],
}

impl<'a> Record<'a> {
    /// Returns its id.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }

    /// Returns true if all of these flags are set.
    pub fn is(&self, flags: Flags) -> bool {
        self.flags & flags == flags
    }

    /// Returns the constants of the query, and those that the index uses: root terms and base units.
    /// Returns `None` if its row stores them.
    pub fn constants(&self) -> Option<[&'a [Id]; 2]> {
        let (submitted, indexed) = match self.is(REWRITTEN) {
            true => self.terms.split_at(self.terms.len() / 2),
            false => (self.terms, self.terms),
        };
        (!self.is(IN_ROW)).then_some([submitted, indexed])
    }
}

#[derive(Default, Serialize, Deserialize)]
pub struct Subscriptions {
    names: Interner,
    /// By number.
    kept: Vec<StoredSubscription>,
    lists: Arena<u32>,
    /// By number, the position in the order of subscribing. Matching reads nothing else of a
    /// subscription, so it is stored apart.
    serials: Vec<u32>,
    next: u32,
    comments: HashMap<Number, Box<str>>,
}

impl Subscriptions {
    /// Returns the number of subscriptions.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the number of the subscription with an id.
    pub fn find(&self, name: &str) -> Option<Number> {
        self.names.find(name.as_bytes())
    }

    /// Returns an existing subscription.
    pub fn get(&self, number: Number) -> Record<'_> {
        let (name, kept) = (self.names.get(number), &self.kept[number as usize]);
        let StoredSubscription { template, flags, .. } = *kept;
        let (rows, terms) = match self.lists.get(kept.place).split_first() {
            _ if flags & IN_ROW != 0 => (std::slice::from_ref(&kept.place), [].as_slice()),
            Some((count, rest)) => rest.split_at(*count as usize),
            None => Default::default(),
        };
        Record { name, template, flags, rows, terms }
    }

    /// Returns the id of a subscription, if it exists.
    pub fn name(&self, number: Number) -> Option<String> {
        self.names.has(number).then(|| self.get(number).name())
    }

    /// Adds a subscription with a new id. Returns `None` if there is no room.
    pub fn add(&mut self, entry: Entry<'_>) -> Option<Number> {
        let number = self.names.add(entry.name.as_bytes(), 1)?;
        let Some(kept) = self.store(entry) else {
            self.names.release(number);
            return None;
        };
        let place = number as usize;
        if place >= self.kept.len() {
            make_room(&mut self.kept, 1);
            make_room(&mut self.serials, 1);
            self.kept.resize(place + 1, kept);
            self.serials.resize(place + 1, 0);
        }
        (self.kept[place], self.serials[place]) = (kept, self.next);
        self.next = self.next.saturating_add(1);
        Some(number)
    }

    /// Replaces the stored data of a subscription. Returns false if there is no room.
    pub fn change(&mut self, number: Number, entry: Entry<'_>) -> bool {
        let Some(kept) = self.store(entry) else { return false };
        self.drop_lists(number);
        self.kept[number as usize] = kept;
        true
    }

    fn store(&mut self, entry: Entry<'_>) -> Option<StoredSubscription> {
        let Entry { template, constants, rewritten, rows, flags, .. } = entry;
        if flags & IN_ROW != 0 {
            return Some(StoredSubscription { template, place: *rows.first()?, flags });
        }
        let mut list = Vec::with_capacity(1 + rows.len() + 2 * constants.len());
        list.push(rows.len() as u32);
        list.extend_from_slice(rows);
        list.extend_from_slice(constants);
        let is_rewritten = rewritten != constants;
        if is_rewritten {
            list.extend_from_slice(rewritten);
        }
        let place = self.lists.insert(&list)?;
        let flags = flags | if is_rewritten { REWRITTEN } else { 0 };
        Some(StoredSubscription { template, place, flags })
    }

    fn drop_lists(&mut self, number: Number) {
        let kept = self.kept[number as usize];
        if kept.flags & IN_ROW == 0 {
            self.lists.remove(kept.place);
        }
    }

    /// Replaces a row of a subscription by another one.
    pub fn move_row(&mut self, number: Number, from: RowId, to: RowId) {
        let kept = &mut self.kept[number as usize];
        let rows = match kept.flags & IN_ROW {
            0 => self.lists.get_mut(kept.place).get_mut(1..).unwrap_or_default(),
            _ => std::slice::from_mut(&mut kept.place),
        };
        if let Some(row) = rows.iter_mut().find(|row| **row == from) {
            *row = to;
        }
    }

    /// Removes a subscription.
    pub fn remove(&mut self, number: Number) {
        self.drop_lists(number);
        self.names.release(number);
        self.comments.remove(&number);
        if self.len() == 0 {
            (self.kept, self.serials, self.next) = (Vec::new(), Vec::new(), 0);
        }
    }

    /// Returns all numbers.
    pub fn numbers(&self) -> impl Iterator<Item = Number> + '_ {
        self.names.numbers()
    }

    /// Returns all numbers in the order of subscribing.
    pub fn in_order(&self) -> Vec<Number> {
        let mut numbers: Vec<Number> = self.numbers().collect();
        numbers.sort_unstable_by_key(|&number| self.serial(number));
        numbers
    }

    /// Returns the position of a subscription in the order of subscribing.
    pub fn serial(&self, number: Number) -> u32 {
        self.serials.get(number as usize).copied().unwrap_or_default()
    }

    /// Returns the subscriber's comment on a subscription.
    pub fn comment(&self, number: Number) -> &str {
        self.comments.get(&number).map_or("", |comment| comment)
    }

    /// Stores the subscriber's comment on a subscription.
    pub fn set_comment(&mut self, number: Number, comment: &str) {
        if comment.is_empty() {
            self.comments.remove(&number);
        } else {
            self.comments.insert(number, comment.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry<'a>(name: &'a str, constants: &'a [Id], rewritten: &'a [Id]) -> Entry<'a> {
        Entry { name, template: 7, constants, rewritten, rows: &[1, 2], flags: EXACT | DELTA_CHECK }
    }

    #[test]
    fn a_subscription_is_what_it_was_when_others_came_and_went() {
        let mut all = Subscriptions::default();
        let alice = all.add(entry("alice", &[3, 4], &[3, 5])).unwrap();
        all.set_comment(alice, "hers");
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
        assert_eq!((&*record.name(), record.template), ("alice", 7));
        assert_eq!(record.constants(), Some([&[3, 4][..], &[3, 5][..]]));
        assert_eq!((record.rows, all.comment(alice)), (&[1, 2][..], "hers"));
        assert!(record.is(EXACT) && record.is(DELTA_CHECK) && !record.is(UNINDEXED));
        assert_eq!(all.get(bob).constants(), Some([&[] as &[Id]; 2]));
        assert!(all.change(bob, entry("bob", &[1, 2, 3], &[1, 2, 3])));
        assert_eq!(all.get(bob).constants(), Some([&[1, 2, 3][..]; 2]));
        all.move_row(bob, 2, 9);
        assert_eq!((all.get(bob).rows, all.len()), (&[1, 9][..], 2));
        assert_eq!(all.in_order(), vec![alice, bob]);
    }
}
