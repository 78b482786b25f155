//! Former states of subscriptions, for reports that were made before a change.
//!
//! A report holds its *moment*: the number of changes before it. Each change keeps the subscriptions
//! as they were before, and the terms that it released, until no report of an earlier moment is left.
//! If too many are kept, the oldest changes are dropped, and earlier reports cannot be read any more.

use crate::branch::Branch;
use crate::dictionary::{Dictionary, Id};
use crate::query::Template;
use crate::subscriptions::Number;
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Maximum number of former subscriptions and released terms that are kept.
const MAX_KEPT: usize = if cfg!(test) { 8 } else { 1 << 18 };

/// A subscription as it was before a change.
pub struct FormerSubscription {
    pub number: Number,
    pub name: String,
    pub template: Option<Arc<Template>>,
    /// Its constants with root terms and in base units.
    pub constants: Vec<Id>,
    /// The branches of its rows in the index.
    pub branches: Vec<Branch>,
}

/// Former states by the numbers of subscriptions.
pub type Former<'a> = HashMap<Number, &'a FormerSubscription>;

/// The changes since the oldest report that is alive.
#[derive(Default)]
pub struct History {
    now: Arc<u64>,
    /// Each with the moment before it, the subscriptions that it removed or replaced, and the terms
    /// that it released.
    changes: VecDeque<(Weak<u64>, Vec<FormerSubscription>, Vec<Id>)>,
    /// The former subscriptions of the present change.
    changed: Vec<FormerSubscription>,
    kept: usize,
    /// The terms that changes released, and how many of them.
    released: HashMap<Id, u32>,
    /// Those of them that reports of the present moment use.
    used: Mutex<HashSet<Id>>,
}

impl History {
    /// The present moment, for a report to hold.
    pub fn now(&self) -> Arc<u64> {
        Arc::clone(&self.now)
    }

    /// Whether a report holds the present moment or an earlier one.
    pub fn has_reports(&self) -> bool {
        Arc::strong_count(&self.now) > 1 || !self.changes.is_empty()
    }

    /// The former states of those subscriptions that have changed since a moment; `None` if these are
    /// no longer kept.
    pub fn former(&self, moment: u64, numbers: &[Number]) -> Option<Former<'_>> {
        let since = usize::try_from(*self.now - moment).ok()?;
        let begin = self.changes.len().checked_sub(since)?;
        let mut found = HashMap::new();
        if since > 0 {
            let numbers: HashSet<Number> = numbers.iter().copied().collect();
            let changes = self.changes.range(begin..).flat_map(|(_, former, _)| former);
            for one in changes.filter(|one| numbers.contains(&one.number)) {
                found.entry(one.number).or_insert(one);
            }
        }
        Some(found)
    }

    /// Keeps a subscription as it was before the present change.
    pub fn keep(&mut self, former: FormerSubscription) {
        // One more than the maximum makes `end_change` drop the change.
        if self.changed.len() <= MAX_KEPT {
            self.changed.push(former);
        }
    }

    /// Notes the terms of a report of the present moment, so that those that an earlier change has
    /// released stay as long as the report.
    pub fn note_terms(&self, ids: impl Iterator<Item = Id>) {
        if !self.released.is_empty() {
            let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
            used.extend(ids.filter(|id| self.released.contains_key(id)));
        }
    }

    /// Begins a change: terms that it releases stay as long as reports may use them.
    pub fn begin_change(&mut self, dictionary: &mut Dictionary) {
        dictionary.defer_releases(self.has_reports());
    }

    /// Ends a change, and releases the terms that no report uses any more.
    pub fn end_change(&mut self, dictionary: &mut Dictionary) {
        let mut ids = dictionary.deferred_releases();
        for id in std::mem::take(self.used.get_mut().unwrap_or_else(PoisonError::into_inner)) {
            dictionary.retain(id);
            ids.push(id);
        }
        for &id in &ids {
            *self.released.entry(id).or_default() += 1;
        }
        let changed = std::mem::take(&mut self.changed);
        if !(ids.is_empty() && changed.is_empty()) {
            self.kept += changed.len() + ids.len();
            self.changes.push_back((Arc::downgrade(&self.now), changed, ids));
            self.now = Arc::new(*self.now + 1);
        }
        let is_over =
            |kept: usize, moment: &Weak<u64>| kept > MAX_KEPT || moment.strong_count() == 0;
        while self.changes.front().is_some_and(|(moment, ..)| is_over(self.kept, moment)) {
            let (_, changed, ids) = self.changes.pop_front().unwrap_or_default();
            self.kept -= changed.len() + ids.len();
            for id in ids {
                dictionary.release(id);
                if let Some(times) = self.released.get_mut(&id) {
                    *times -= 1;
                    if *times == 0 {
                        self.released.remove(&id);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_changes_are_dropped() {
        let (mut history, mut dictionary) = (History::default(), Dictionary::default());
        let report = history.now();
        let change = |history: &mut History, dictionary: &mut Dictionary, number| {
            history.begin_change(dictionary);
            let (name, template, constants, branches) = Default::default();
            history.keep(FormerSubscription { number, name, template, constants, branches });
            history.end_change(dictionary);
        };
        for number in 0..MAX_KEPT as u32 {
            change(&mut history, &mut dictionary, number);
            assert!(history.former(*report, &[number]).is_some_and(|former| former.len() == 1));
        }
        let later = history.now();
        change(&mut history, &mut dictionary, 0);
        assert!(history.former(*report, &[0]).is_none());
        assert!(history.former(*later, &[0]).is_some_and(|former| former.len() == 1));
        drop(later);
        change(&mut history, &mut dictionary, 0);
        assert_eq!((history.changes.len(), history.kept), (0, 0));
    }
}
