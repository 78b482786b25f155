//! Records of different lengths in one vector, addressed by number.
//!
//! Numbers are dense and are used again. A removed record leaves a hole. When half of the vector
//! is holes, the records are moved together, so a removal takes constant time on average. The
//! vector grows by an eighth, because it is most of the memory of an index.
//!
//! Memory: 8 bytes per record, and its elements.

use serde::{Deserialize, Serialize};

const SMALL: usize = 1 << 12;

/// The place of a record in the vector.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct Span {
    start: u32,
    length: u32,
}

/// The span of a removed record.
const HOLE: Span = Span { start: u32::MAX, length: 0 };

impl Span {
    fn is_hole(self) -> bool {
        self.start == HOLE.start
    }
}

/// Records of `T`.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Arena<T> {
    data: Vec<T>,
    spans: Vec<Span>,
    free: Vec<u32>,
    garbage: usize,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Self { data: Vec::new(), spans: Vec::new(), free: Vec::new(), garbage: 0 }
    }
}

impl<T: Copy> Arena<T> {
    /// The number of records.
    pub(crate) fn len(&self) -> usize {
        self.spans.len() - self.free.len()
    }

    /// Adds a record. Returns `None` if all records would have 2³² elements.
    pub(crate) fn insert(&mut self, record: &[T]) -> Option<u32> {
        let span = self.append(record)?;
        let number = self.free.pop().unwrap_or(self.spans.len() as u32);
        match self.spans.get_mut(number as usize) {
            Some(hole) => *hole = span,
            None => {
                make_room(&mut self.spans, 1);
                self.spans.push(span);
            }
        }
        Some(number)
    }

    fn append(&mut self, record: &[T]) -> Option<Span> {
        let start = self.data.len();
        let end = start + record.len();
        u32::try_from(end).ok()?;
        make_room(&mut self.data, record.len());
        self.data.extend_from_slice(record);
        Some(Span { start: start as u32, length: record.len() as u32 })
    }

    /// The record of a number, empty if it does not exist.
    pub(crate) fn get(&self, number: u32) -> &[T] {
        let Span { start, length } = self.spans.get(number as usize).copied().unwrap_or(HOLE);
        let start = start as usize;
        self.data.get(start..start + length as usize).unwrap_or_default()
    }

    /// The same, mutable.
    pub(crate) fn get_mut(&mut self, number: u32) -> &mut [T] {
        let Span { start, length } = self.spans.get(number as usize).copied().unwrap_or(HOLE);
        let start = start as usize;
        self.data.get_mut(start..start + length as usize).unwrap_or_default()
    }

    /// Whether a record exists.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.spans.get(number as usize).is_some_and(|span| !span.is_hole())
    }

    /// Removes a record. It must exist.
    pub(crate) fn remove(&mut self, number: u32) {
        let span = std::mem::replace(&mut self.spans[number as usize], HOLE);
        self.garbage += span.length as usize;
        self.free.push(number);
        if self.len() == 0 {
            *self = Self::default();
        } else if self.garbage > SMALL && self.garbage > self.data.len() / 2 {
            let mut data = Vec::with_capacity(self.data.len() - self.garbage);
            for span in self.spans.iter_mut().filter(|span| !span.is_hole()) {
                let start = span.start as usize;
                span.start = data.len() as u32;
                data.extend_from_slice(&self.data[start..start + span.length as usize]);
            }
            self.data = data;
            self.garbage = 0;
        }
    }

    /// Removes all records, and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.data.clear();
        self.spans.clear();
        self.free.clear();
        self.garbage = 0;
    }

    /// The numbers of all records.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..).zip(&self.spans).filter(|(_, span)| !span.is_hole()).map(|(number, _)| number)
    }

    /// The number of elements of all records, and of those removed since they were last moved
    /// together.
    pub(crate) fn length(&self) -> usize {
        self.data.len()
    }
}

/// Reserves memory for more elements: an eighth of a large vector, because doubling wastes memory.
pub(crate) fn make_room<T>(vector: &mut Vec<T>, more: usize) {
    if vector.len() + more > vector.capacity() {
        let own = if vector.len() < SMALL { vector.len() } else { vector.len() / 8 };
        vector.reserve_exact(more.max(own).max(64));
    }
}

#[cfg(test)]
impl<T> Arena<T> {
    /// One more than the largest number so far.
    pub(crate) fn end(&self) -> usize {
        self.spans.len()
    }

    /// Bytes that are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.data.capacity() * size_of::<T>()
            + self.spans.capacity() * size_of::<Span>()
            + self.free.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_stay_what_they_are_when_others_go() {
        let mut arena = Arena::default();
        let record = |n: u32| vec![1 + n % 9; 1 + n as usize % 9];
        let mut live: Vec<(u32, u32)> = Vec::new();
        for n in 0..40_000 {
            live.push((arena.insert(&record(n)).unwrap(), n));
            if n > 1_000 {
                let (number, _) = live.swap_remove(n as usize * 7 % live.len());
                arena.remove(number);
            }
        }
        assert_eq!(arena.len(), live.len());
        for (number, n) in live {
            assert_eq!(arena.get(number), record(n));
        }
        assert!(arena.data.len() < 20_000 && arena.spans.len() < 1_100);
        assert!(arena.get(5_000).is_empty());
    }
}
