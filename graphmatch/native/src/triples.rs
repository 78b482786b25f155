//! Triples of ids, and an immutable graph.

use crate::dictionary::{ANY, Id};
use serde::{Deserialize, Serialize};

/// A triple of ids, or a key with [`ANY`] for unknown terms.
pub type Triple = [Id; 3];

/// Returns true if a triple matches a key.
pub fn has(triple: Triple, key: Triple) -> bool {
    triple.iter().zip(key).all(|(&term, wanted)| wanted == ANY || wanted == term)
}

/// An immutable graph in three sort orders. A look-up takes two binary searches.
#[derive(Default, Serialize, Deserialize)]
pub struct Sorted {
    /// Subject, property, object; then the two rotations.
    orders: [Vec<Triple>; 3],
}

impl Sorted {
    pub fn new(triples: Vec<Triple>) -> Self {
        let mut orders = [
            triples.clone(),
            triples.iter().map(|&[s, p, o]| [p, o, s]).collect(),
            triples.into_iter().map(|[s, p, o]| [o, s, p]).collect(),
        ];
        for order in &mut orders {
            order.sort_unstable();
            order.dedup();
        }
        Self { orders }
    }

    /// Returns all triples in order.
    pub fn all(&self) -> &[Triple] {
        &self.orders[0]
    }

    /// Returns true if the graph has the triple.
    pub fn contains(&self, triple: Triple) -> bool {
        self.orders[0].binary_search(&triple).is_ok()
    }

    /// Returns the triples that match a key.
    pub fn matching(&self, [s, p, o]: Triple) -> impl Iterator<Item = Triple> + '_ {
        let order = match [s == ANY, p == ANY, o == ANY] {
            [false, _, true] | [true, true, true] | [false, false, false] => 0,
            [true, false, _] => 1,
            [_, true, false] => 2,
        };
        let mut key = [s, p, o];
        key.rotate_left(order);
        let (rows, least) =
            (&self.orders[order], key.map(|term| if term == ANY { 0 } else { term }));
        let begin = rows.partition_point(|row| *row < least);
        rows[begin..].iter().take_while(move |&&row| has(row, key)).map(move |&row| {
            let mut triple = row;
            triple.rotate_right(order);
            triple
        })
    }

    /// Returns the triples that only one of two graphs has.
    pub fn difference(&self, other: &Self) -> Vec<Triple> {
        let gone = self.all().iter().filter(|&&triple| !other.contains(triple));
        let come = other.all().iter().filter(|&&triple| !self.contains(triple));
        gone.chain(come).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_ups_by_every_key() {
        let triples: Vec<Triple> =
            (0..200).map(|n: u32| [n * 7 % 5, n * 3 % 4, n * 11 % 6]).collect();
        let sorted = Sorted::new(triples);
        let triples = sorted.all().to_vec();
        let places = [ANY, 0, 1, 2, 3, 9];
        for s in places {
            for p in places {
                for o in places {
                    let mut found: Vec<Triple> = sorted.matching([s, p, o]).collect();
                    let mut expected = triples.clone();
                    expected.retain(|&triple| has(triple, [s, p, o]));
                    found.sort_unstable();
                    expected.sort_unstable();
                    assert_eq!(found, expected);
                }
            }
        }
        let fewer = Sorted::new(triples.iter().copied().filter(|t| t[0] != 2).collect());
        let gone: Vec<Triple> = sorted.matching([2, ANY, ANY]).collect();
        assert_eq!(sorted.difference(&fewer), gone);
        assert_eq!(fewer.difference(&sorted), gone);
    }
}
