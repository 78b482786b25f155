//! The standing subscriptions: what they are called, what they ask for, and where they are filed.
//!
//! A subscription's number is that of its name, which is used again when it is gone; the order of
//! subscribing is kept beside. Most have one row of the index, which has their constants; of the
//! others rows and constants are lists.
//!
//! Cost: 40 bytes a subscription, its name, and where it has lists 12 bytes, 4 a row and a constant;
//! a look-up by name is that of a hash table.

use crate::arena::{Arena, make_room};
use crate::dictionary::Id;
use crate::history::FormerSubscription;
use crate::interner::Interner;
use hashbrown::HashMap;
use serde::{Deserialize, Serialize};
use std::hint::black_box;

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
/// The solutions of its row are those that the calls of operators are asked of.
pub const GUARDED: Flags = 32;
/// It was filed with other constants than it was submitted with: root terms, base units.
const REWRITTEN: Flags = 128;

/// A subscription to be kept.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The number of its template.
    pub template: u32,
    /// Its constants as they were submitted; none if its row has them.
    pub constants: &'a [Id],
    /// Its constants as it is filed; as many.
    pub filed: &'a [Id],
    /// Its rows in the index.
    pub rows: &'a [RowId],
    /// How it is filed.
    pub flags: Flags,
}

/// What is kept of a subscription.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
struct Kept {
    template: u32,
    /// Its only row, if that has its constants; otherwise the number of its lists: how many rows
    /// there are, these, its constants, and if it was rewritten those that it is filed with.
    place: u32,
    flags: Flags,
}

/// A subscription that is kept.
#[derive(Clone, Copy)]
pub struct Record<'a> {
    name: &'a [u8],
    kept: &'a Kept,
    rows: &'a [RowId],
    /// Its constants, as they were submitted and as it is filed.
    terms: &'a [Id],
}

impl<'a> Record<'a> {
    /// What it is called.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(self.name).into_owned()
    }

    /// The number of its template.
    pub fn template(&self) -> u32 {
        self.kept.template
    }

    /// How it is filed.
    pub fn flags(&self) -> Flags {
        self.kept.flags
    }

    /// Whether all of these flags are set.
    pub fn is(&self, flags: Flags) -> bool {
        self.flags() & flags == flags
    }

    /// Its rows in the index.
    pub fn rows(&self) -> &'a [RowId] {
        self.rows
    }

    /// Its constants as they were submitted.
    pub fn constants(&self) -> &'a [Id] {
        if self.is(REWRITTEN) { &self.terms[..self.terms.len() / 2] } else { self.terms }
    }

    /// Its constants as it is filed: root terms put in, in base units.
    pub fn filed(&self) -> &'a [Id] {
        if self.is(REWRITTEN) { &self.terms[self.terms.len() / 2..] } else { self.terms }
    }
}

/// The standing subscriptions.
#[derive(Default, Serialize, Deserialize)]
pub struct Subscriptions {
    names: Interner,
    /// By number.
    kept: Vec<Kept>,
    lists: Arena<u32>,
    /// By number, the place in the order of subscribing: apart from the rest, as matching reads
    /// nothing else of a subscription.
    serials: Vec<u32>,
    next: u32,
    comments: HashMap<Number, Box<str>>,
}

impl Subscriptions {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The subscription of a name.
    pub fn find(&self, name: &str) -> Option<Number> {
        self.names.find(name.as_bytes())
    }

    /// A subscription by its number, which has to be one that is there.
    pub fn get(&self, number: Number) -> Record<'_> {
        let (name, kept) = (self.names.get(number), &self.kept[number as usize]);
        if kept.flags & IN_ROW != 0 {
            return Record { name, kept, rows: std::slice::from_ref(&kept.place), terms: &[] };
        }
        let (count, rest) = self.lists.get(kept.place).split_first().unwrap_or((&0, &[]));
        let (rows, terms) = rest.split_at_checked(*count as usize).unwrap_or_default();
        Record { name, kept, rows, terms }
    }

    /// What the subscription of a number is called, if there is one.
    pub fn name(&self, number: Number) -> Option<String> {
        self.names.has(number).then(|| self.get(number).name())
    }

    /// Appends the names of some, of which `former` ones had other names; tells where each ends.
    pub fn write_names(
        &self,
        numbers: &[Number],
        former: &HashMap<Number, &FormerSubscription>,
        names: &mut Vec<u8>,
    ) -> Vec<usize> {
        let name = |number: &Number| match former.get(number) {
            Some(former) => former.name.as_bytes(),
            None => self.names.get(*number),
        };
        let all: Vec<&[u8]> = numbers.iter().map(name).collect();
        // Each is touched first, so that the processor waits for many at once.
        let touched = all.iter().map(|name| name.first().copied().unwrap_or(0));
        black_box(touched.fold(0, |all, byte| all ^ byte));
        let write = |name: &[u8]| {
            names.extend_from_slice(name);
            names.len()
        };
        all.into_iter().map(write).collect()
    }

    /// Keeps a subscription, whose name is free and not too long; `None` if there is no room.
    pub fn add(&mut self, entry: Entry<'_>) -> Option<Number> {
        let number = self.names.add(entry.name.as_bytes(), 1)?;
        let Some(kept) = self.kept(entry) else {
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
        self.next += 1;
        if self.next == u32::MAX {
            self.number_anew();
        }
        Some(number)
    }

    /// Keeps a subscription otherwise than before, by the same name; false if there is no room.
    pub fn change(&mut self, number: Number, entry: Entry<'_>) -> bool {
        let Some(kept) = self.kept(entry) else { return false };
        self.drop_lists(number);
        self.kept[number as usize] = kept;
        true
    }

    fn kept(&mut self, entry: Entry<'_>) -> Option<Kept> {
        let Entry { template, constants, filed, rows, flags, .. } = entry;
        if let (&[place], true) = (rows, flags & IN_ROW != 0) {
            return Some(Kept { template, place, flags });
        }
        let mut list = Vec::with_capacity(1 + rows.len() + 2 * constants.len());
        list.push(rows.len() as u32);
        list.extend_from_slice(rows);
        list.extend_from_slice(constants);
        let is_rewritten = filed != constants;
        if is_rewritten {
            list.extend_from_slice(filed);
        }
        let place = self.lists.insert(&list)?;
        let flags = flags & !IN_ROW | if is_rewritten { REWRITTEN } else { 0 };
        Some(Kept { template, place, flags })
    }

    fn drop_lists(&mut self, number: Number) {
        let Kept { place, flags, .. } = self.kept[number as usize];
        if flags & IN_ROW == 0 {
            self.lists.remove(place);
        }
    }

    /// A row of a subscription is another one from now on.
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

    /// Takes a subscription out.
    pub fn remove(&mut self, number: Number) {
        self.drop_lists(number);
        self.names.release(number);
        self.comments.remove(&number);
        if self.is_empty() {
            (self.kept, self.serials, self.next) = (Vec::new(), Vec::new(), 0);
        }
    }

    /// The numbers of all.
    pub fn numbers(&self) -> impl Iterator<Item = Number> + '_ {
        self.names.numbers()
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

    /// Numbers the places in the order of subscribing from 0 on again.
    fn number_anew(&mut self) {
        for (number, serial) in self.in_order().into_iter().zip(0..) {
            self.serials[number as usize] = serial;
        }
        self.next = self.len() as u32;
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
