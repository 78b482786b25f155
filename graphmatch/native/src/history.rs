//! Former states of subscriptions, for reports that were made before a change.
//!
//! A report holds the [`Moment`] at which it was made. Moments are a linked list, to which a
//! change appends one with the subscriptions as they were before. A moment is freed together with
//! the last report of it or of an earlier one. So a change never visits reports, and a report that
//! is gone costs nothing.

use crate::dictionary::{Dictionary, Id};
use crate::pattern::Branch;
use crate::query::Template;
use crate::subscriptions::Number;
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;
use std::sync::{Arc, OnceLock, Weak};

/// A subscription as it was before a change.
pub struct FormerSubscription {
    pub number: Number,
    pub name: String,
    pub template: Option<Arc<Template>>,
    /// The branches of its rows in the index.
    pub branches: Vec<Branch>,
}

/// The time between two changes.
#[derive(Default)]
pub struct Moment {
    /// The subscriptions that the next change removed or replaced, and the time after it.
    next: OnceLock<(Vec<FormerSubscription>, Arc<Moment>)>,
}

impl Moment {
    /// The former states of those subscriptions that have changed since this moment.
    pub fn former(&self, numbers: &[Number]) -> HashMap<Number, &FormerSubscription> {
        let mut found = HashMap::new();
        if self.next.get().is_none() {
            return found;
        }
        let numbers: HashSet<Number> = numbers.iter().copied().collect();
        let mut moment = self;
        while let Some((changed, next)) = moment.next.get() {
            for one in changed.iter().filter(|one| numbers.contains(&one.number)) {
                found.entry(one.number).or_insert(one);
            }
            moment = next;
        }
        found
    }
}

/// Drops the moments that follow one by one, because recursion would overflow the stack.
impl Drop for Moment {
    fn drop(&mut self) {
        let mut next = self.next.take();
        while let Some(mut moment) = next.and_then(|(_, moment)| Arc::into_inner(moment)) {
            next = moment.next.take();
        }
    }
}

/// The present moment, and the terms that reports of former moments still use.
#[derive(Default)]
pub struct History {
    now: Arc<Moment>,
    changed: Vec<FormerSubscription>,
    /// By moment, the terms that the change after it released.
    released: VecDeque<(Weak<Moment>, Vec<Id>)>,
}

impl History {
    /// The present moment, for a report to hold.
    pub fn now(&self) -> Arc<Moment> {
        Arc::clone(&self.now)
    }

    /// Whether a report holds the present moment or an earlier one.
    pub fn has_reports(&self) -> bool {
        Arc::strong_count(&self.now) > 1
    }

    /// Keeps a subscription as it was before the present change.
    pub fn keep(&mut self, former: FormerSubscription) {
        self.changed.push(former);
    }

    /// Begins a change: terms that it releases stay as long as reports may use them.
    pub fn begin_change(&mut self, dictionary: &mut Dictionary) {
        dictionary.defer_releases(self.has_reports());
    }

    /// Ends a change, and releases the terms that no report uses any more.
    pub fn end_change(&mut self, dictionary: &mut Dictionary) {
        let ids = dictionary.deferred_releases();
        let changed = std::mem::take(&mut self.changed);
        if !(ids.is_empty() && changed.is_empty()) {
            let next = Arc::new(Moment::default());
            // Only this place sets it, once for each moment.
            let _ = self.now.next.set((changed, Arc::clone(&next)));
            self.released.push_back((Arc::downgrade(&self.now), ids));
            self.now = next;
        }
        while self.released.front().is_some_and(|(moment, _)| moment.strong_count() == 0) {
            let (_, ids) = self.released.pop_front().unwrap_or_default();
            ids.into_iter().for_each(|id| dictionary.release(id));
        }
    }
}
