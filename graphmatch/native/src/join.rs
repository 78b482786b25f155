//! The join of a branch's patterns over the triples of a publication.
//!
//! The join visits the steps of a program depth first. Each step is a look-up in the graph. A step
//! without a match returns to the last step that it depends on. An explicit stack replaces
//! recursion.
//!
//! A long join remembers failures: the step and the terms of the variables that matter from there
//! on. It does not try them again. So chains and most trees of patterns take linear time; only
//! cyclic patterns may take longer.

use crate::branch::Filter;
use crate::dictionary::{ANY, Id};
use crate::graph::{Graph, masked};
use crate::interner::Interner;
use crate::limits::Budget;
use crate::plan::{FILTERED, KIND, NONE, Program, REPEATED, Step, UNNAMED};
use crate::snapshot::from_bytes;
use hashbrown::HashSet;
use std::time::Instant;

/// Memory of a join, reused.
#[derive(Default)]
pub(crate) struct Stack {
    frames: Vec<Frame>,
    /// Terms of variables, then constants, then one spare cell. The places of a step are indexes of
    /// this.
    terms: Vec<Id>,
    /// The time of the publication. Only long joins read the clock.
    pub(crate) budget: Budget,
    /// End of the time of all joins together, if they share it.
    pub(crate) deadline: Option<Instant>,
    /// True if the last join reached the limit, so that solutions may be missing.
    pub(crate) is_over: bool,
}

/// A visited step: the last triple that was tried, and the number of solutions before it.
#[derive(Clone, Copy, Default)]
struct Frame {
    cursor: u32,
    found: u64,
}

/// Number of triples between two readings of the clock.
const STEPS: u32 = 1 << 14;
/// Number of failures before a join remembers them. Tests use few, to cover this code.
const PATIENCE: u32 = if cfg!(test) { 2 } else { 512 };
/// Maximum number of variables of a remembered failure.
const CONTEXT: usize = 4;
/// Maximum number of remembered failures.
const FAILURES: usize = 1 << 20;

/// Failures of a join: a step, and the terms of the variables that matter.
#[derive(Default)]
struct Failures {
    /// The earlier variables that each step or a later one uses, if these are few.
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
        let context = |n: usize| {
            let is_used = |&variable: &u16| {
                let (first, last) = spans[usize::from(variable)];
                usize::from(first) < n && n <= usize::from(last)
            };
            let used = (0..program.variables as u16).filter(is_used);
            let mut context = [NONE; CONTEXT];
            context.iter_mut().zip(used.clone()).for_each(|(place, variable)| *place = variable);
            (used.count() <= CONTEXT).then_some(context)
        };
        let contexts = (0..program.steps).map(context).collect();
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

    /// Remembers a failure: the step fails again for the same terms.
    fn add(&mut self, step: usize, terms: &[Id]) {
        if let Some(key) = self.key(step, terms).filter(|_| self.known.len() < FAILURES) {
            self.known.insert(key);
        }
    }
}

/// A row and the graph that it is joined with.
pub(crate) struct Join<'a> {
    pub(crate) program: Program<'a>,
    /// The row's constants, then for each filter its number or the constant of its comparison.
    pub(crate) constants: &'a [u32],
    /// Encoded filters other than comparisons.
    pub(crate) filters: &'a Interner,
    pub(crate) graph: &'a Graph,
    pub(crate) tests: Tests<'a>,
}

/// Returns true if a term satisfies a filter.
pub type Tests<'a> = &'a dyn Fn(&Filter, Id) -> bool;

impl Join<'_> {
    /// Calls `on` with each solution, its terms in the order of variables, until `on` returns false
    /// or the time is over.
    pub(crate) fn run(&self, stack: &mut Stack, mut on: impl FnMut(&[Id]) -> bool) {
        let Stack { frames, terms, budget, deadline, is_over } = stack;
        *is_over = false;
        let mut until = *deadline;
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
            } else {
                frame.cursor = self.graph.next(kind, key, frame.cursor);
            }
            let triples = &self.graph.triples[..ends[usize::from(step.flags & UNNAMED != 0)]];
            let mut matched = false;
            while let Some(triple) = triples.get(frame.cursor as usize) {
                left -= 1;
                if left == 0 {
                    let now = Instant::now();
                    until = until.or_else(|| budget.share());
                    *is_over = until.is_some_and(|until| now >= until) || (budget.is_interrupted)();
                    if *is_over {
                        return;
                    }
                    left = STEPS;
                }
                if self.binds(depth, &step, triple, terms) {
                    matched = true;
                    break;
                }
                frame.cursor = self.graph.next(kind, key, frame.cursor);
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

    /// Binds the new variables of a step to the terms of a triple, if it fits. Known places write
    /// to the spare cell, so that the next look-up does not wait for this one.
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

    /// Returns true if the variables of a step pass their filters.
    fn passes(&self, depth: usize, terms: &[Id]) -> bool {
        let numbers = &self.constants[self.program.constants..];
        (0..self.program.filters).all(|n| {
            let (step, variable, operator) = self.program.test(n);
            if step != depth {
                return true;
            }
            let (number, term) = (numbers[n], terms[variable]);
            let holds = |filter: &Filter| term != ANY && (self.tests)(filter, term);
            match operator {
                Some(operator) => holds(&Filter::Compare { operator, constant: number }),
                None => from_bytes(self.filters.get(number)).is_some_and(|filter| holds(&filter)),
            }
        })
    }
}
