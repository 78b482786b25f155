//! Limits on the time and memory of an evaluation.
//!
//! The evaluator can be asked to stop, but it checks that only when it reads triples. A product of
//! a few patterns may keep it busy and fill the memory without reading any. So the evaluator's
//! terms are [`Handle`]s, whose copies are counted. If time or memory runs out, the stack is unwound
//! to [`bounded`], where the evaluation began. The panic hook does not run, so nothing is printed.
//!
//! Cost: about a nanosecond per copy; the clock is read once per few thousand copies.

use crate::dictionary::Id;
use crate::limits::Budget;
use std::cell::Cell;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Instant;

/// The limit that an evaluation exceeded.
pub(crate) enum Exceeded {
    Time,
    Terms,
    Text,
    /// The evaluator panicked.
    Broken,
}

/// Number of copies of terms between two reads of the clock.
const STEPS: u32 = 1 << 12;
/// Texts up to this size in bytes are not counted if the evaluation does not keep them.
const SHORT: usize = 1 << 16;

/// The time and memory that the evaluation on a thread has left.
struct Meter {
    steps: Cell<u32>,
    held: Cell<usize>,
    most: Cell<usize>,
    /// Number of bytes of text that may still be created.
    text: Cell<usize>,
    until: Cell<Option<Instant>>,
    is_interrupted: Cell<fn() -> bool>,
}

thread_local! {
    static METER: Meter = const {
        Meter {
            steps: Cell::new(STEPS),
            held: Cell::new(0),
            most: Cell::new(usize::MAX),
            text: Cell::new(usize::MAX),
            until: Cell::new(None),
            is_interrupted: Cell::new(|| false),
        }
    };
}

impl Meter {
    fn hold(&self) {
        self.held.set(self.held.get() + 1);
        match self.steps.get() {
            0 => self.look(),
            steps => self.steps.set(steps - 1),
        }
    }

    #[cold]
    fn look(&self) {
        self.steps.set(STEPS);
        if self.held.get() > self.most.get() {
            exceed(Exceeded::Terms);
        }
        let is_late = self.until.get().is_some_and(|until| Instant::now() >= until);
        if is_late || self.is_interrupted.get()() {
            exceed(Exceeded::Time);
        }
    }
}

/// Ends the evaluation on this thread.
pub(crate) fn exceed(limit: Exceeded) -> ! {
    resume_unwind(Box::new(limit))
}

/// A term that the evaluator holds.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Handle(NonZeroU32);

impl Handle {
    /// A handle of the term with an id.
    pub(crate) fn new(id: Id) -> Self {
        METER.with(Meter::hold);
        Self(NonZeroU32::MIN.saturating_add(id))
    }

    /// The term's id.
    pub(crate) fn id(&self) -> Id {
        self.0.get() - 1
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        METER.with(Meter::hold);
        Self(self.0)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        METER.with(|meter| meter.held.set(meter.held.get().saturating_sub(1)));
    }
}

/// Counts the bytes of a text that the evaluation creates.
pub(crate) fn make_text(bytes: usize) {
    METER.with(|meter| match meter.text.get().checked_sub(bytes) {
        Some(left) => meter.text.set(left),
        None => exceed(Exceeded::Text),
    });
}

/// Counts the bytes of a text that the evaluation does not keep, unless it is short.
pub(crate) fn make_long_text(bytes: usize) {
    if bytes > SHORT {
        make_text(bytes);
    }
}

/// Ends the evaluation if it may not create this number of bytes of text.
pub(crate) fn room_for(bytes: usize) {
    if bytes > METER.with(|meter| meter.text.get()) {
        exceed(Exceeded::Text);
    }
}

/// Counts work that takes as long as this number of copies of terms.
pub(crate) fn work(steps: usize) {
    METER.with(|meter| {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match meter.steps.get().checked_sub(steps) {
            Some(left) => meter.steps.set(left),
            None => meter.look(),
        }
    });
}

/// Runs an evaluation with a share of a publication's time, a maximum number of terms that it holds
/// at once, and a maximum number of bytes of text that it creates. Evaluations must not be nested.
pub(crate) fn bounded<T>(
    shared: Budget,
    terms: usize,
    text: usize,
    run: impl FnOnce() -> T,
) -> Result<T, Exceeded> {
    let begin = |terms, text, shared: Budget| {
        METER.with(|meter| {
            meter.steps.set(STEPS);
            meter.held.set(0);
            meter.most.set(terms);
            meter.text.set(text);
            meter.until.set(shared.share());
            meter.is_interrupted.set(shared.is_interrupted);
        });
    };
    begin(terms, text, shared);
    // The last step may take long, and nothing reads the clock after it.
    let timed = || {
        let result = run();
        METER.with(Meter::look);
        result
    };
    let result = catch_unwind(AssertUnwindSafe(timed));
    begin(usize::MAX, usize::MAX, Budget::default());
    result.map_err(|stopped| match stopped.downcast::<Exceeded>() {
        Ok(exceeded) => *exceeded,
        Err(_) => Exceeded::Broken,
    })
}
