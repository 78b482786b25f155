//! Join programs: the order in which the patterns of a branch are joined, without its constants.
//!
//! The next pattern is always the one with most known terms. Branches that differ in constants only
//! share a program. It is stored once, as bytes, and removed with its last branch. A branch of eight
//! patterns has a program of about 55 bytes.
//!
//! Each step has a step to go back to if it finds nothing: the last one that bound a variable on which
//! this step, or a step that came back to this one, depends (Dechter's graph-based backjumping). So a
//! pattern that fails is not tried again with other terms for variables that it does not have, and
//! patterns without common variables fail independently.

use crate::branch::{Branch, Comparison, Filter, Node, Pattern};
use crate::dictionary::{ANY, Id};
use crate::graph::{OBJECT, PREDICATE, SUBJECT};
use crate::triples::Triple;

/// Maximum number of triple patterns, and of filters, of a branch.
pub const MAX_PATTERNS: usize = 4096;

/// Number of no step.
pub(crate) const NONE: u16 = u16::MAX;
/// The bits of a step's flags that are the kind of its look-up.
pub(crate) const KIND: u16 = 7;
/// Flag of a step whose predicate is a variable.
pub(crate) const UNNAMED: u16 = 8;
/// Flag of a step that has a variable twice and binds it.
pub(crate) const REPEATED: u16 = 16;
/// Flag of a step that binds a variable which filters test.
pub(crate) const FILTERED: u16 = 32;

const BITS: [usize; 3] = [SUBJECT, PREDICATE, OBJECT];
/// Selectivity of a constant by position: an object selects most, a predicate least.
const WEIGHTS: [u64; 3] = [4, 2, 5];

/// A triple pattern in join order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Numbers of variables; constants are numbered after the variables.
    pub(crate) places: [u16; 3],
    /// The step to go back to if this one finds nothing.
    pub(crate) back: u16,
    /// Kind of look-up and flags.
    pub(crate) flags: u16,
    /// Position of the pattern in the branch.
    pub(crate) position: u16,
}

/// Count of numbers in the head of a program, a step and a filter.
const HEAD: usize = 4;
const STEP: usize = 6;
const TEST: usize = 3;

/// A program. Its first byte is the size of a number, 1 or 2. The counts of steps, filters, variables
/// and constants follow, then the steps, then for each filter the step that binds its variable, the
/// variable, and the operator of its comparison with a constant.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a> {
    code: &'a [u8],
    wide: bool,
    pub(crate) steps: usize,
    pub(crate) filters: usize,
    pub(crate) variables: usize,
    pub(crate) constants: usize,
}

impl<'a> Program<'a> {
    /// Reads the program at the beginning of a slice.
    #[inline]
    pub(crate) fn read(code: &'a [u8]) -> Self {
        let wide = code[0] == 2;
        let mut program = Self { code, wide, steps: 0, filters: 0, variables: 0, constants: 0 };
        let [steps, filters, variables, constants] = program.numbers::<HEAD>(0).map(usize::from);
        (program.steps, program.filters) = (steps, filters);
        (program.variables, program.constants) = (variables, constants);
        program
    }

    #[inline]
    fn numbers<const N: usize>(&self, at: usize) -> [u16; N] {
        let mut numbers = [0; N];
        if self.wide {
            for (number, bytes) in numbers.iter_mut().zip(self.code[1 + 2 * at..].chunks_exact(2)) {
                *number = u16::from_le_bytes([bytes[0], bytes[1]]);
            }
        } else {
            for (number, &byte) in numbers.iter_mut().zip(&self.code[1 + at..1 + at + N]) {
                *number = u16::from(byte);
            }
        }
        numbers
    }

    #[inline(always)]
    pub(crate) fn step(&self, n: usize) -> Step {
        let at = HEAD + STEP * n;
        if self.wide {
            let [s, p, o, back, flags, position] = self.numbers::<STEP>(at);
            return Step { places: [s, p, o], back, flags, position };
        }
        // Joins spend most of their time here and almost all programs are narrow: one bounds check.
        let code = &self.code[1 + at..][..STEP];
        let [s, p, o, back, flags, position] = std::array::from_fn(|i| u16::from(code[i]));
        let back = if back == u16::from(u8::MAX) { NONE } else { back };
        Step { places: [s, p, o], back, flags, position }
    }

    /// Returns the step that binds the variable of a filter, the variable, and the operator of its
    /// comparison with a constant. The constant is the filter's number in a row.
    #[inline]
    pub(crate) fn test(&self, n: usize) -> (usize, usize, Option<Comparison>) {
        let [step, variable, code] = self.numbers::<TEST>(HEAD + STEP * self.steps + TEST * n);
        (usize::from(step), usize::from(variable), Comparison::of_code(code))
    }

    /// Returns the constants of a step as an access pattern.
    #[inline]
    pub(crate) fn access(&self, n: usize, constants: &[Id]) -> Triple {
        self.step(n).places.map(|place| {
            let constant = usize::from(place).wrapping_sub(self.variables);
            constants.get(constant).copied().filter(|_| constant < self.constants).unwrap_or(ANY)
        })
    }

    /// Returns the patterns in the order of the branch.
    pub(crate) fn patterns(&self, constants: &[Id]) -> Vec<Pattern> {
        let mut patterns = vec![[Node::Variable(0); 3]; self.steps];
        for n in 0..self.steps {
            let step = self.step(n);
            patterns[usize::from(step.position)] =
                step.places.map(|place| match usize::from(place).checked_sub(self.variables) {
                    Some(constant) => Node::Constant(constants[constant]),
                    None => Node::Variable(place),
                });
        }
        patterns
    }

    /// Returns the kinds of look-up of all steps.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.steps).map(|n| usize::from(self.step(n).flags & KIND))
    }
}

/// Writes the programs of branches, and reuses its memory.
#[derive(Default)]
pub(crate) struct Planner {
    /// The program.
    pub(crate) code: Vec<u8>,
    /// The constants of the patterns in join order.
    pub(crate) constants: Vec<Id>,
    numbers: Vec<u16>,
    order: Vec<u16>,
    bound: Vec<bool>,
    /// The step that binds each variable.
    binders: Vec<u16>,
    /// The set of earlier steps on which each step depends.
    ancestors: Vec<u64>,
}

impl Planner {
    /// Writes the program of a branch; false if it is too large.
    pub(crate) fn plan(&mut self, branch: &Branch) -> bool {
        let patterns = &branch.patterns;
        if patterns.len() > MAX_PATTERNS || branch.filters.len() > MAX_PATTERNS {
            return false;
        }
        let variable = |node: &Node| match node {
            Node::Variable(variable) => usize::from(*variable) + 1,
            Node::Constant(_) => 0,
        };
        let bound = patterns.iter().flatten().map(variable);
        let tested = branch.filters.iter().map(|filter| usize::from(filter.0) + 1);
        let variables = bound.chain(tested).max().unwrap_or(0).max(usize::from(branch.variables));
        if variables > 3 * MAX_PATTERNS {
            return false;
        }
        self.find_order(patterns, variables);
        self.write(branch, variables);
        true
    }

    /// Orders the patterns: the next is the one with most known terms.
    fn find_order(&mut self, patterns: &[Pattern], variables: usize) {
        self.bound.clear();
        self.bound.resize(variables, false);
        self.order.clear();
        self.order.extend(0..patterns.len() as u16);
        for n in 0..patterns.len() {
            let weight = |at: &usize| {
                let position = self.order[*at];
                (weight(&patterns[usize::from(position)], &self.bound), !position)
            };
            let best = (n..patterns.len()).max_by_key(weight).unwrap_or(n);
            self.order.swap(n, best);
            for node in &patterns[usize::from(self.order[n])] {
                if let Node::Variable(variable) = node {
                    self.bound[usize::from(*variable)] = true;
                }
            }
        }
    }

    fn write(&mut self, branch: &Branch, variables: usize) {
        let steps = branch.patterns.len();
        let words = steps.div_ceil(64);
        self.constants.clear();
        self.binders.clear();
        self.binders.resize(variables, NONE);
        self.ancestors.clear();
        self.ancestors.resize(steps * words, 0);
        self.numbers.clear();
        self.numbers.extend([steps as u16, branch.filters.len() as u16, variables as u16, 0]);
        for (n, &position) in self.order.iter().enumerate() {
            let pattern = &branch.patterns[usize::from(position)];
            let mut flags = 0;
            let places = std::array::from_fn(|place| match pattern[place] {
                Node::Constant(term) => {
                    flags |= BITS[place] as u16;
                    self.constants.push(term);
                    (variables + self.constants.len() - 1) as u16
                }
                Node::Variable(variable) => {
                    match self.binders[usize::from(variable)] {
                        NONE => self.binders[usize::from(variable)] = n as u16,
                        binder if usize::from(binder) == n => flags |= REPEATED,
                        binder => {
                            flags |= BITS[place] as u16;
                            let binder = usize::from(binder);
                            self.ancestors[n * words + binder / 64] |= 1 << (binder % 64);
                        }
                    }
                    if place == 1 {
                        flags |= UNNAMED;
                    }
                    variable
                }
            });
            let [s, p, o]: [u16; 3] = places;
            self.numbers.extend([s, p, o, NONE, flags, position]);
        }
        self.numbers[3] = self.constants.len() as u16;
        for n in (0..steps).rev() {
            let (before, own) = self.ancestors.split_at_mut(n * words);
            let Some(word) = (0..words).rev().find(|&word| own[word] != 0) else { continue };
            let back = 64 * word + own[word].ilog2() as usize;
            self.numbers[HEAD + STEP * n + 3] = back as u16;
            own[word] &= !(1 << (back % 64));
            for (theirs, ours) in before[back * words..].iter_mut().zip(&own[..words]) {
                *theirs |= ours;
            }
        }
        for (variable, filter) in &branch.filters {
            let variable = *variable;
            let step = self.binders[usize::from(variable)];
            let step = if step == NONE { 0 } else { step };
            if usize::from(step) < steps {
                self.numbers[HEAD + STEP * usize::from(step) + 4] |= FILTERED;
            }
            let code = match filter {
                Filter::Compare { operator, .. } => operator.code(),
                _ => 0,
            };
            self.numbers.extend([step, variable, code]);
        }
        self.encode();
    }

    fn encode(&mut self) {
        let wide = self.numbers.iter().any(|&n| n != NONE && n >= u16::from(u8::MAX));
        self.code.clear();
        self.code.push(1 + u8::from(wide));
        for number in &self.numbers {
            let [low, high] = number.to_le_bytes();
            self.code.push(low);
            if wide {
                self.code.push(high);
            }
        }
    }
}

/// Returns the rank of a pattern. In descending order count: whether all terms are known, the number
/// of bound variables, the constants, and whether a variable is repeated.
fn weight(pattern: &Pattern, bound: &[bool]) -> u64 {
    let (mut known, mut joined, mut constant) = (0, 0, 0);
    for (place, node) in pattern.iter().enumerate() {
        match node {
            Node::Constant(_) => {
                known += 1;
                constant += WEIGHTS[place];
            }
            Node::Variable(variable) if bound[usize::from(*variable)] => {
                known += 1;
                joined += 1;
            }
            Node::Variable(_) => {}
        }
    }
    let [s, p, o] = pattern;
    let repeated = s == p || s == o || p == o;
    u64::from(known == 3) << 16 | joined << 8 | constant << 1 | u64::from(repeated)
}
