//! Ctrl-C while the core works.
//!
//! Long joins, evaluations and loops ask now and then whether the user has interrupted the program.
//! The exception is raised when the call returns.

use pyo3::prelude::*;
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

/// Time between two questions to Python.
const EVERY: Duration = Duration::from_millis(100);

thread_local! {
    static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    static EXCEPTION: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Returns true if the user has interrupted the program. The thread must not hold Python's lock.
///
/// It may hold the engine's lock, for which a handler of the user could wait for ever. If the program
/// has such handlers, signals wait until the publication is matched.
pub(super) fn is_interrupted() -> bool {
    ask(|py| if has_handlers(py)? { Ok(()) } else { py.check_signals() });
    EXCEPTION.with_borrow(Option::is_some)
}

/// Raises the exception of an interrupt. The thread must hold no lock.
pub(super) fn check() -> PyResult<()> {
    ask(|py| py.check_signals());
    EXCEPTION.take().map_or(Ok(()), Err)
}

/// Notes an exception that [`check`] raises, such as an interrupt of Python code.
pub(super) fn raise(error: PyErr) {
    EXCEPTION.set(Some(error));
}

fn ask(check: impl FnOnce(Python<'_>) -> PyResult<()>) {
    let now = Instant::now();
    if LAST.get().is_none_or(|last| now.duration_since(last) > EVERY) {
        LAST.set(Some(now));
        if let Err(error) = Python::attach(check) {
            EXCEPTION.set(Some(error));
        }
    }
}

/// Whether a signal has a handler in Python, other than the default one of Ctrl-C.
fn has_handlers(py: Python<'_>) -> PyResult<bool> {
    let signal = py.import("signal")?;
    let default = signal.getattr("default_int_handler")?;
    for number in signal.call_method0("valid_signals")?.try_iter()? {
        let handler = signal.call_method1("getsignal", (number?,))?;
        if handler.is_callable() && !handler.is(&default) {
            return Ok(true);
        }
    }
    Ok(false)
}
