//! The join of a branch's patterns over a publication's triples.
//!
//! A program's steps are gone through depth first, each a look-up in the chains of the
//! publication; solutions are handed out as they are found. A step without a match goes back to
//! the last step that it depends on. The stack is a vector: no recursion.
//!
//! A row that takes long remembers which steps failed with which terms for the variables that
//! matter from there on, and does not try these again. So chains and most trees of patterns take
//! time in proportion to patterns and triples; only cyclic ones may take longer.

use crate::dictionary::{ANY, Id};
use crate::graph::{Graph, masked};
use crate::interner::Interner;
use crate::pattern::Filter;
use crate::plan::{FILTERED, KIND, NONE, Program, REPEATED, Step, UNNAMED};
use crate::snapshot::from_bytes;
use hashbrown::HashSet;
use std::time::{Duration, Instant};

/// Decides filters.
pub trait Tests {
    /// Whether a term satisfies a filter.
    fn holds(&self, filter: &Filter, term: Id) -> bool;
}

/// Where a join is.
#[derive(Default)]
pub(crate) struct Stack {
    frames: Vec<Frame>,
    /// The terms of variables, the constants, and one that is written to in vain: all places of a
    /// step are numbers of these.
    terms: Vec<Id>,
    pub(crate) clock: Clock,
}

/// The time limit of joins. Only long joins read the clock.
#[derive(Default)]
pub(crate) struct Clock {
    /// The time that each join may take.
    limit: Option<Duration>,
    /// The end of the time of all joins together, if they have one.
    deadline: Option<Instant>,
    /// The end of the time of the present join.
    until: Option<Instant>,
    /// Whether the last join ended because of the limit, so that solutions may be missing.
    pub(crate) is_over: bool,
}

impl Clock {
    /// Gives each join that follows its own time.
    pub(crate) fn limit_each(&mut self, limit: Option<Duration>) {
        (self.limit, self.deadline) = (limit, None);
    }

    /// Gives the joins that follow some time together.
    pub(crate) fn limit_all(&mut self, limit: Option<Duration>) {
        self.limit = limit;
        self.deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
    }

    fn begin(&mut self) {
        (self.is_over, self.until) = (false, self.deadline);
    }

    #[cold]
    fn look(&mut self) -> bool {
        let now = Instant::now();
        self.until = self.until.or_else(|| now.checked_add(self.limit?));
        self.is_over = self.until.is_some_and(|until| now >= until);
        self.is_over
    }
}

/// A step that was entered: the next triple to try, and how many solutions there were before.
#[derive(Clone, Copy, Default)]
struct Frame {
    cursor: u32,
    found: u64,
}

/// Number of triples that a join visits between two looks at the clock.
const STEPS: u32 = 1 << 14;
/// After so many failures a join remembers them; tests see to it that most do.
const PATIENCE: u32 = if cfg!(test) { 2 } else { 512 };
/// So many variables may matter for a failure that is remembered.
const CONTEXT: usize = 4;
/// So many failures are remembered.
const FAILURES: usize = 1 << 20;

/// Failures of a join: a step, and terms for the variables of its context.
#[derive(Default)]
struct Failures {
    /// By step: the earlier variables that it or a later step has, if these are few.
    contexts: Vec<Option<[u16; CONTEXT]>>,
    known: HashSet<[u32; 1 + CONTEXT]>,
}

impl Failures {
    fn of(program: &Program) -> Self {
        let mut spans = vec![(NONE, 0); program.variables];
        let places = |n: usize| program.step(n).places.map(usize::from);
        for n in 0..program.steps {
            for place in places(n).into_iter().filter(|&place| place < program.variables) {
                spans[place] = (spans[place].0.min(n as u16), n as u16);
            }
        }
        let mut active: Vec<u16> = Vec::new();
        let mut contexts = Vec::with_capacity(program.steps);
        for n in 0..program.steps {
            active.retain(|&variable| usize::from(spans[usize::from(variable)].1) >= n);
            let mut context = [NONE; CONTEXT];
            context.iter_mut().zip(&active).for_each(|(place, &variable)| *place = variable);
            contexts.push((active.len() <= CONTEXT).then_some(context));
            for place in places(n).into_iter().filter(|&place| place < program.variables) {
                if usize::from(spans[place].0) == n && !active.contains(&(place as u16)) {
                    active.push(place as u16);
                }
            }
        }
        Self { contexts, known: HashSet::new() }
    }

    fn key(&self, step: usize, terms: &[Id]) -> Option<[u32; 1 + CONTEXT]> {
        let context = self.contexts[step]?;
        let mut key = [step as u32; 1 + CONTEXT];
        for (term, variable) in key[1..].iter_mut().zip(context) {
            *term = terms.get(usize::from(variable)).copied().unwrap_or(ANY);
        }
        Some(key)
    }

    fn has(&self, step: usize, terms: &[Id]) -> bool {
        self.key(step, terms).is_some_and(|key| self.known.contains(&key))
    }

    /// Called when a step failed: whatever earlier steps bound besides, it will fail again.
    fn add(&mut self, step: usize, terms: &[Id]) {
        if let Some(key) = self.key(step, terms).filter(|_| self.known.len() < FAILURES) {
            self.known.insert(key);
        }
    }
}

/// A row, and what it is joined with.
pub(crate) struct Join<'a, T> {
    pub(crate) program: Program<'a>,
    /// Its constants, and behind them the numbers of its filters or what these compare with.
    pub(crate) constants: &'a [u32],
    /// Filters other than comparisons, as a snapshot has them.
    pub(crate) filters: &'a Interner,
    pub(crate) graph: &'a Graph,
    pub(crate) tests: &'a T,
}

impl<T: Tests> Join<'_, T> {
    /// Calls `on` with each solution, the terms of variables by their number, until `on` returns
    /// false or the time is over.
    pub(crate) fn run(&self, stack: &mut Stack, mut on: impl FnMut(&[Id]) -> bool) {
        let Stack { frames, terms, clock } = stack;
        clock.begin();
        let mut left = STEPS;
        let Program { steps, variables, constants, .. } = self.program;
        terms.clear();
        terms.resize(variables, ANY);
        terms.extend_from_slice(&self.constants[..constants]);
        terms.push(ANY);
        if frames.len() < steps {
            frames.resize(steps, Frame::default());
        }
        let ends = [self.graph.triples.len(), self.graph.stated()];
        let (mut depth, mut found, mut enters) = (0, 0, true);
        let (mut failed, mut failures) = (0, None::<Failures>);
        loop {
            if depth == steps {
                found += 1;
                if !on(&terms[..variables]) || steps == 0 {
                    return;
                }
                (depth, enters) = (depth - 1, false);
            }
            let step = self.program.step(depth);
            let kind = usize::from(step.flags & KIND);
            let key = masked(step.places.map(|place| terms[usize::from(place)]), kind);
            let frame = &mut frames[depth];
            if enters {
                *frame = Frame { cursor: self.graph.first(kind, key), found };
                if failures.as_ref().is_some_and(|known| known.has(depth, terms)) {
                    frame.cursor = ANY;
                }
            }
            let triples = &self.graph.triples[..ends[usize::from(step.flags & UNNAMED != 0)]];
            let mut matched = false;
            while let Some(triple) = triples.get(frame.cursor as usize) {
                frame.cursor = self.graph.next(kind, key, frame.cursor);
                left -= 1;
                if left == 0 {
                    if clock.look() {
                        return;
                    }
                    left = STEPS;
                }
                if self.binds(depth, &step, triple, terms) {
                    matched = true;
                    break;
                }
            }
            if matched {
                (depth, enters) = (depth + 1, true);
                continue;
            }
            enters = false;
            if found > frame.found {
                let Some(before) = depth.checked_sub(1) else { return };
                depth = before;
                continue;
            }
            if step.back == NONE {
                return;
            }
            failed += 1;
            if failed > PATIENCE {
                let known = failures.get_or_insert_with(|| Failures::of(&self.program));
                known.add(depth, terms);
            }
            depth = usize::from(step.back);
        }
    }

    /// Binds a step's new variables to a triple's terms, if they fit. Nothing else is written to,
    /// so that the next look-up need not wait for this one.
    #[inline(always)]
    fn binds(&self, depth: usize, step: &Step, triple: &[Id; 3], terms: &mut [Id]) -> bool {
        let spare = terms.len() - 1;
        for i in 0..3 {
            let is_known = step.flags >> (2 - i) & 1 == 1;
            terms[if is_known { spare } else { usize::from(step.places[i]) }] = triple[i];
        }
        if step.flags & (REPEATED | FILTERED) == 0 {
            return true;
        }
        (0..3).all(|i| terms[usize::from(step.places[i])] == triple[i])
            && (step.flags & FILTERED == 0 || self.passes(depth, terms))
    }

    /// Whether the variables that a step binds pass their filters.
    fn passes(&self, depth: usize, terms: &[Id]) -> bool {
        let numbers = &self.constants[self.program.constants..];
        (0..self.program.filters).all(|n| {
            let (step, variable, operator) = self.program.test(n);
            if step != depth {
                return true;
            }
            let (number, term) = (numbers[n], terms[variable]);
            let holds = |filter: &Filter| term != ANY && self.tests.holds(filter, term);
            match operator {
                Some(operator) => holds(&Filter::Compare { operator, constant: number }),
                None => from_bytes(self.filters.get(number)).is_some_and(|filter| holds(&filter)),
            }
        })
    }
}
