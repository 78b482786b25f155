//! Time and memory of an evaluation, bounded wherever the evaluator is.
//!
//! The evaluator can be asked to stop, but looks whether it was asked only where it reads triples:
//! a product of a few patterns may keep it busy, and fill the memory, without. So the terms that it
//! holds are [`Handle`]s, whose copies are counted. Where there is no time or room left, the stack
//! is unwound to where the evaluation began ([`bounded`]); that is no panic, and nothing is printed.
//!
//! Cost: about a nanosecond a copy; the clock is read at every few thousandth.

use crate::dictionary::Id;
use std::cell::Cell;
use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

/// Which limit an evaluation came to.
pub(crate) enum Exceeded {
    Time,
    Terms,
    Text,
    /// Something else went wrong inside of the evaluator.
    Broken,
}

/// How many terms are copied between two looks at the clock.
const STEPS: u32 = 1 << 12;
/// Texts of so many bytes are short.
const SHORT: usize = 1 << 16;

/// The evaluation that runs on a thread.
struct Budget {
    steps: Cell<u32>,
    held: Cell<usize>,
    most: Cell<usize>,
    /// How many bytes of text may still be made.
    text: Cell<usize>,
    until: Cell<Option<Instant>>,
}

thread_local! {
    static BUDGET: Budget = const {
        Budget {
            steps: Cell::new(STEPS),
            held: Cell::new(0),
            most: Cell::new(usize::MAX),
            text: Cell::new(usize::MAX),
            until: Cell::new(None),
        }
    };
}

impl Budget {
    #[inline]
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
        if self.until.get().is_some_and(|until| Instant::now() >= until) {
            exceed(Exceeded::Time);
        }
    }
}

/// Ends the evaluation that runs on the thread.
pub(crate) fn exceed(limit: Exceeded) -> ! {
    resume_unwind(Box::new(limit))
}

/// A term in the evaluator's hands.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Handle(NonZeroU32);

impl Handle {
    /// A term by its id.
    #[inline]
    pub(crate) fn new(id: Id) -> Self {
        BUDGET.with(Budget::hold);
        Self(NonZeroU32::MIN.saturating_add(id))
    }

    /// The term.
    #[inline]
    pub(crate) fn id(&self) -> Id {
        self.0.get() - 1
    }
}

impl Clone for Handle {
    #[inline]
    fn clone(&self) -> Self {
        BUDGET.with(Budget::hold);
        Self(self.0)
    }
}

impl Drop for Handle {
    #[inline]
    fn drop(&mut self) {
        BUDGET.with(|budget| budget.held.set(budget.held.get().saturating_sub(1)));
    }
}

/// Counts the bytes of a text that the evaluation made.
pub(crate) fn make_text(bytes: usize) {
    BUDGET.with(|budget| match budget.text.get().checked_sub(bytes) {
        Some(left) => budget.text.set(left),
        None => exceed(Exceeded::Text),
    });
}

/// The same of a text that the evaluation does not keep; the short ones do not count.
pub(crate) fn make_long_text(bytes: usize) {
    if bytes > SHORT {
        make_text(bytes);
    }
}

/// Ends the evaluation if it may not make so many bytes of text any more.
pub(crate) fn room_for(bytes: usize) {
    if bytes > BUDGET.with(|budget| budget.text.get()) {
        exceed(Exceeded::Text);
    }
}

/// Counts what takes as long as so many copies of terms.
pub(crate) fn work(steps: usize) {
    BUDGET.with(|budget| {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        match budget.steps.get().checked_sub(steps) {
            Some(left) => budget.steps.set(left),
            None => budget.look(),
        }
    });
}

/// Runs an evaluation that may take some time, hold so many terms at once, and make so many bytes
/// of text. Evaluations do not run inside of each other.
pub(crate) fn bounded<T>(
    time: Option<Duration>,
    terms: usize,
    text: usize,
    run: impl FnOnce() -> T,
) -> Result<T, Exceeded> {
    let begin = |terms, text, until| {
        BUDGET.with(|budget| {
            budget.steps.set(STEPS);
            budget.held.set(0);
            budget.most.set(terms);
            budget.text.set(text);
            budget.until.set(until);
        });
    };
    begin(terms, text, time.and_then(|time| Instant::now().checked_add(time)));
    // what takes long may come last, and nothing looks at the clock behind it
    let timed = || {
        let result = run();
        BUDGET.with(Budget::look);
        result
    };
    let result = catch_unwind(AssertUnwindSafe(timed));
    begin(usize::MAX, usize::MAX, None);
    result.map_err(|stopped| match stopped.downcast::<Exceeded>() {
        Ok(exceeded) => *exceeded,
        Err(_) => Exceeded::Broken,
    })
}
