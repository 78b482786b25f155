//! Numbers for distinct byte strings, called records, with use counts.
//!
//! A record is removed when its use count becomes 0. Its number may then be given to another
//! record.
//!
//! Memory: about 20 bytes per record, plus its bytes.

use crate::arena::{Arena, make_room};
use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// Returns the hash of a record or a term, which is random per process.
pub fn hash(record: &[u8]) -> u64 {
    SeedableRandomState::with_seed(0, SharedSeed::global_random()).hash_one(record)
}

/// A set of distinct, numbered records with use counts.
#[derive(Default, Serialize, Deserialize)]
pub(crate) struct Interner {
    records: Arena<u8>,
    uses: Vec<u32>,
    /// Numbers of the records by their hashes. Built on first use, because some snapshots are read
    /// without looking up records.
    #[serde(skip)]
    table: OnceLock<HashTable<u32>>,
}

impl Interner {
    /// Returns the count of records.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Returns the number of a record, or `None` if there is none.
    pub(crate) fn find(&self, record: &[u8]) -> Option<u32> {
        self.find_hashed(record, hash(record))
    }

    /// Same as [`Interner::find`], for a record whose hash is known.
    pub(crate) fn find_hashed(&self, record: &[u8], hash: u64) -> Option<u32> {
        self.table().find(hash, |&number| self.records.get(number) == record).copied()
    }

    /// Returns the table, which it builds if necessary.
    fn table(&self) -> &HashTable<u32> {
        self.table.get_or_init(|| {
            let hash = |&number: &u32| hash(self.records.get(number));
            let mut table = HashTable::with_capacity(self.len());
            for number in self.records.numbers() {
                table.insert_unique(hash(&number), number, hash);
            }
            table
        })
    }

    /// Calls `change` with the table and a function that hashes the record of a number.
    fn change(&mut self, change: impl FnOnce(&mut HashTable<u32>, &dyn Fn(&u32) -> u64)) {
        self.table();
        let Self { records, table, .. } = self;
        if let Some(table) = table.get_mut() {
            change(table, &|&number| hash(records.get(number)));
        }
    }

    /// Adds a record with the given use count, and returns its number; `None` if memory is full.
    /// The caller must ensure that there is no such record.
    pub(crate) fn add(&mut self, record: &[u8], uses: u32) -> Option<u32> {
        self.table();
        let number = self.records.insert(record)?;
        match self.uses.get_mut(number as usize) {
            Some(old) => *old = uses,
            None => {
                make_room(&mut self.uses, 1);
                self.uses.push(uses);
            }
        }
        self.change(|table, hash| _ = table.insert_unique(hash(&number), number, hash));
        Some(number)
    }

    /// Adds 1 to the use count of a record, or adds the record if there is none.
    /// Returns the number of the record, or `None` if memory is full.
    pub(crate) fn intern(&mut self, record: &[u8]) -> Option<u32> {
        match self.find(record) {
            Some(number) => self.retain(number).then_some(number),
            None => self.add(record, 1),
        }
    }

    /// Returns the record of a number, or an empty slice if it does not exist.
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        self.records.get(number)
    }

    /// Returns whether a number has a record.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.records.has(number)
    }

    /// Returns the use count of a record.
    pub(crate) fn uses(&self, number: u32) -> u32 {
        self.uses.get(number as usize).copied().unwrap_or(0)
    }

    /// Adds 1 to the use count of a record. Returns whether the record exists.
    pub(crate) fn retain(&mut self, number: u32) -> bool {
        let uses = self.uses.get_mut(number as usize).filter(|_| self.records.has(number));
        uses.map(|uses| *uses = uses.saturating_add(1)).is_some()
    }

    /// Subtracts 1 from the use count of a record, and removes the record if the count is then 0.
    /// Returns whether this call removed it, so `false` if it did not exist before.
    pub(crate) fn release(&mut self, number: u32) -> bool {
        let Some(uses) = self.uses.get_mut(number as usize) else { return false };
        *uses = uses.saturating_sub(1);
        if *uses > 0 || !self.has(number) {
            return false;
        }
        // The table comes first, because hashing a number reads its record.
        self.change(|table, hash| {
            if let Ok(entry) = table.find_entry(hash(&number), |&other| other == number) {
                entry.remove();
            }
        });
        self.records.remove(number);
        self.change(|table, hash| shrink(table, hash));
        if self.len() == 0 {
            self.uses = Vec::new();
        }
        true
    }

    /// Iterates over the numbers of all records.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.records.numbers()
    }
}

/// Shrinks a table that lost most of its entries.
pub(crate) fn shrink<T>(table: &mut HashTable<T>, hasher: impl Fn(&T) -> u64) {
    if table.capacity() > 64 && table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2, hasher);
    }
}

#[cfg(test)]
impl Interner {
    /// Returns one more than the largest number given so far.
    pub(crate) fn end(&self) -> usize {
        self.records.end()
    }

    /// Returns the allocated memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let table = self.table.get().map_or(0, HashTable::allocation_size);
        self.records.bytes() + self.uses.capacity() * size_of::<u32>() + table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_goes_with_its_last_use() {
        let mut all = Interner::default();
        let kept = all.intern(b"kept").unwrap();
        assert_eq!(all.intern(b"kept"), Some(kept));
        assert!(!all.release(kept) && all.get(kept) == b"kept");
        for round in 0..20 {
            let records = (0..10_000).map(|n| format!("{round}/{n}"));
            let numbers: Vec<u32> =
                records.map(|record| all.add(record.as_bytes(), 1).unwrap()).collect();
            assert_eq!(all.find(format!("{round}/77").as_bytes()), Some(numbers[77]));
            assert!(numbers.into_iter().all(|number| all.release(number)));
        }
        assert!(all.end() <= 10_001 && all.bytes() < 1 << 20, "{}", all.bytes());
        assert_eq!((all.find(b"kept"), all.find(b"0/77")), (Some(kept), None));
        assert!(all.release(kept) && all.len() == 0 && !all.release(kept));
    }
}
