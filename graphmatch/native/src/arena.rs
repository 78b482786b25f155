//! Records of different lengths in one vector, known by number.
//!
//! Numbers are dense and used again. Where a record was is a hole; when half of the vector is
//! holes, the records are moved together, so a removal costs constant time on average. The vector
//! grows by a quarter: it is most of the memory of an index.

use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check};

const HOLE: u32 = u32::MAX;
const SMALL: usize = 1 << 12;

/// Records of `T`. Their lengths are known to who has them.
pub(crate) struct Arena<T> {
    data: Vec<T>,
    starts: Vec<u32>,
    free: Vec<u32>,
    garbage: usize,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { data: Vec::new(), starts: Vec::new(), free: Vec::new(), garbage: 0 }
    }
}

impl<T: Copy> Arena<T> {
    /// How many records there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - self.free.len()
    }

    /// Puts a record in; `None` if there are 2³¹ elements or more already.
    pub(crate) fn insert(&mut self, record: &[T]) -> Option<u32> {
        let start = self.append(record)?;
        match self.free.pop() {
            Some(number) => {
                self.starts[number as usize] = start;
                Some(number)
            }
            None => {
                self.starts.push(start);
                Some((self.starts.len() - 1) as u32)
            }
        }
    }

    fn append(&mut self, record: &[T]) -> Option<u32> {
        let start = self.data.len();
        if start + record.len() >= 1 << 31 {
            return None;
        }
        if start + record.len() > self.data.capacity() {
            self.data.reserve_exact(record.len().max(start / 4).max(64));
        }
        self.data.extend_from_slice(record);
        Some(start as u32)
    }

    /// Where a record begins; beyond the end if there is no such record.
    #[inline]
    pub(crate) fn start(&self, number: u32) -> usize {
        self.starts.get(number as usize).map_or(usize::MAX, |&start| start as usize)
    }

    /// An element, to have it read before it is needed.
    #[inline]
    pub(crate) fn peek(&self, at: usize) -> Option<T> {
        self.data.get(at).copied()
    }

    /// A record, and what follows it; nothing if there is no such record.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> &[T] {
        self.data.get(self.start(number)..).unwrap_or_default()
    }

    /// The same, to be written to.
    #[inline]
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut [T] {
        let start = self.start(number);
        self.data.get_mut(start..).unwrap_or_default()
    }

    /// Puts another record in the place of one; false if there is no room.
    pub(crate) fn replace(
        &mut self,
        number: u32,
        record: &[T],
        length: impl Fn(&[T]) -> usize,
    ) -> bool {
        let before = length(self.get(number));
        let Some(start) = self.append(record) else { return false };
        self.starts[number as usize] = start;
        self.garbage += before;
        self.collect(length);
        true
    }

    /// Takes a record out; `length` tells how long a record is that begins a slice.
    pub(crate) fn remove(&mut self, number: u32, length: impl Fn(&[T]) -> usize) {
        self.garbage += length(self.get(number));
        self.starts[number as usize] = HOLE;
        self.free.push(number);
        self.collect(length);
    }

    fn collect(&mut self, length: impl Fn(&[T]) -> usize) {
        if self.len() == 0 {
            *self = Self::default();
        } else if self.garbage > SMALL && self.garbage > self.data.len() / 2 {
            let mut data = Vec::with_capacity(self.data.len() - self.garbage);
            for start in self.starts.iter_mut().filter(|start| **start != HOLE) {
                let rest = &self.data[*start as usize..];
                *start = data.len() as u32;
                data.extend_from_slice(&rest[..length(rest)]);
            }
            self.data = data;
            self.garbage = 0;
        }
    }

    /// One more than the largest number that there was.
    pub(crate) fn end(&self) -> usize {
        self.starts.len()
    }

    /// The numbers of the records that there are.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.starts).filter(|(_, start)| **start != HOLE).map(|(number, _)| number)
    }

    /// Writes the records in the order of their numbers, without holes.
    pub(crate) fn save(&self, to: &mut Saver, length: impl Fn(&[T]) -> usize)
    where
        T: Stored,
    {
        let of = |number: u32| match self.starts[number as usize] {
            HOLE => HOLE,
            _ => length(self.get(number)) as u32,
        };
        (0..self.starts.len() as u32).map(of).collect::<Vec<u32>>().save(to);
        let mut data = Vec::with_capacity(self.data.len() - self.garbage);
        for number in self.numbers() {
            let record = self.get(number);
            data.extend_from_slice(&record[..length(record)]);
        }
        data.save(to);
    }

    /// Reads records that [`Arena::save`] wrote; `is_whole` tells whether one is as long as it says
    /// and what it has to be.
    pub(crate) fn load(
        from: &mut Loader,
        mut is_whole: impl FnMut(u32, &[T]) -> bool,
    ) -> Result<Self, SnapshotError>
    where
        T: Stored,
    {
        let (mut starts, data) = (<Vec<u32>>::load(from)?, <Vec<T>>::load(from)?);
        check(data.len() < 1 << 31 && starts.len() < 1 << 31, "more records than there can be")?;
        let (mut end, mut free) = (0_usize, Vec::new());
        for (number, length) in (0..).zip(&mut starts) {
            if *length == HOLE {
                free.push(number);
                continue;
            }
            let record = data.get(end..end + *length as usize).unwrap_or_default();
            check(!record.is_empty() && is_whole(number, record), "a record")?;
            *length = end as u32;
            end += record.len();
        }
        check(end == data.len(), "records of another length")?;
        Ok(Self { data, starts, free, garbage: 0 })
    }

    /// Bytes that are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.data.capacity() * size_of::<T>() + 4 * (self.starts.capacity() + self.free.capacity())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_what_they_are_when_others_go() {
        let mut arena = Arena::default();
        let length = |record: &[u32]| record[0] as usize;
        let record = |n: u32| vec![1 + n % 9; 1 + n as usize % 9];
        let mut live: Vec<(u32, u32)> = Vec::new();
        for n in 0..40_000 {
            live.push((arena.insert(&record(n)).unwrap(), n));
            if n > 1_000 {
                let (number, _) = live.swap_remove(n as usize * 7 % live.len());
                arena.remove(number, length);
            }
        }
        assert_eq!(arena.len(), live.len());
        for (number, n) in live {
            assert_eq!(&arena.get(number)[..1 + n as usize % 9], record(n));
        }
        assert!(arena.data.len() < 20_000 && arena.starts.len() < 1_100);
        assert!(arena.get(5_000).is_empty());
    }
}
