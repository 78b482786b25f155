//! Texts and other records of bytes, each once, as numbers.
//!
//! A record is counted by its uses, and goes with the last one; its number is used again then. It
//! is found by a hash of its bytes, or of those that its key has.
//!
//! Memory: some 20 bytes a record, and its bytes.

use crate::arena::{Arena, make_room};
use foldhash::SharedSeed;
use foldhash::fast::SeedableRandomState;
use hashbrown::HashTable;
use serde::{Deserialize, Serialize};
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// What of a record it is found by.
type Key = fn(&[u8]) -> &[u8];

/// Hashes by a key of this process, the same for all records.
#[inline]
pub(crate) fn hasher() -> SeedableRandomState {
    SeedableRandomState::with_seed(0, SharedSeed::global_random())
}

/// Records of bytes, each once.
#[derive(Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Interner {
    records: Arena<u8>,
    uses: Vec<u32>,
    /// Made when it is first asked for: who only reads records of a snapshot needs none.
    #[serde(skip)]
    table: OnceLock<HashTable<u32>>,
    #[serde(skip)]
    hasher: SeedableRandomState,
    #[serde(skip)]
    key: Key,
}

impl Default for Interner {
    fn default() -> Self {
        Self::keyed(|record| record)
    }
}

impl Interner {
    /// One whose records are found by a part of theirs.
    pub(crate) fn keyed(key: Key) -> Self {
        Self {
            records: Arena::default(),
            uses: Vec::new(),
            table: OnceLock::new(),
            hasher: hasher(),
            key,
        }
    }

    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// The hash of a key, as [`Interner::find_hashed`] wants it.
    #[inline]
    pub(crate) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// The number of the record with a key.
    pub(crate) fn find(&self, key: &[u8]) -> Option<u32> {
        self.find_hashed(key, self.hash(key))
    }

    /// The same, for a key whose hash is known.
    #[inline]
    pub(crate) fn find_hashed(&self, key: &[u8], hash: u64) -> Option<u32> {
        let has = |&number: &u32| (self.key)(self.records.get(number)) == key;
        self.table().find(hash, has).copied()
    }

    fn table(&self) -> &HashTable<u32> {
        self.table.get_or_init(|| {
            let hash = |&number: &u32| self.hash((self.key)(self.records.get(number)));
            let mut table = HashTable::with_capacity(self.len());
            for number in self.records.numbers() {
                table.insert_unique(hash(&number), number, hash);
            }
            table
        })
    }

    /// Changes the table, which is told how records are hashed.
    fn change(&mut self, change: impl FnOnce(&mut HashTable<u32>, &dyn Fn(&u32) -> u64)) {
        self.table();
        let Self { records, hasher, key, table, .. } = self;
        if let Some(table) = table.get_mut() {
            change(table, &|&number| hasher.hash_one(key(records.get(number))));
        }
    }

    /// Adds a record that is not there, with so many uses; `None` if there is no room.
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

    /// The number of a record, which has one more use from now on; `None` if there is no room.
    pub(crate) fn intern(&mut self, record: &[u8]) -> Option<u32> {
        match self.find((self.key)(record)) {
            Some(number) => self.retain(number).then_some(number),
            None => self.add(record, 1),
        }
    }

    /// A record by its number; nothing if there is no such record.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[u8] {
        self.records.get(number)
    }

    /// Whether there is a record of that number.
    #[inline]
    pub(crate) fn has(&self, number: u32) -> bool {
        self.records.has(number)
    }

    /// How many uses a record has.
    pub(crate) fn uses(&self, number: u32) -> u32 {
        self.uses.get(number as usize).copied().unwrap_or(0)
    }

    /// Uses a record once more; whether there is one of that number.
    pub(crate) fn retain(&mut self, number: u32) -> bool {
        let uses = self.uses.get_mut(number as usize).filter(|_| self.records.has(number));
        uses.map(|uses| *uses = uses.saturating_add(1)).is_some()
    }

    /// Uses a record once less; whether that was the last use, and it is gone.
    pub(crate) fn release(&mut self, number: u32) -> bool {
        let Some(uses) = self.uses.get_mut(number as usize) else { return false };
        *uses = uses.saturating_sub(1);
        if *uses > 0 || !self.has(number) {
            return false;
        }
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

    /// One more than the largest number that there was.
    #[cfg(test)]
    pub(crate) fn end(&self) -> usize {
        self.records.end()
    }

    /// The numbers of the records that there are.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        self.records.numbers()
    }

    /// Finds the records by a part of theirs from now on.
    pub(crate) fn with_key(self, key: Key) -> Self {
        Self { key, table: OnceLock::new(), ..self }
    }

    /// Bytes that are allocated.
    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        let table = self.table.get().map_or(0, HashTable::allocation_size);
        self.records.bytes() + self.uses.capacity() * size_of::<u32>() + table
    }
}

/// Gives memory of a table back that lost most of its entries.
pub(crate) fn shrink<T>(table: &mut HashTable<T>, hasher: impl Fn(&T) -> u64) {
    if table.capacity() > 64 && table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2, hasher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_goes_with_its_last_use() {
        let mut all = Interner::keyed(|record| record.split(|&byte| byte == b' ').next().unwrap());
        let kept = all.intern(b"kept 1").unwrap();
        assert_eq!(all.intern(b"kept 2"), Some(kept));
        assert!(!all.release(kept) && all.get(kept) == b"kept 1");
        for round in 0..20 {
            let records = (0..10_000).map(|n| format!("{round}/{n} and so on"));
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
