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
pub const MAX_PATTERNS: usize = 64;

/// Number of no step.
pub(crate) const NONE: u16 = u8::MAX as u16;
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

/// A program: one byte for each number. The counts of steps, filters, variables and constants come
/// first, then the steps, then for each filter the step that binds its variable, the variable, and the
/// operator of its comparison with a constant.
#[derive(Clone, Copy)]
pub(crate) struct Program<'a> {
    code: &'a [u8],
    pub(crate) steps: usize,
    pub(crate) filters: usize,
    pub(crate) variables: usize,
    pub(crate) constants: usize,
}

impl<'a> Program<'a> {
    /// Reads the program at the beginning of a slice.
    pub(crate) fn read(code: &'a [u8]) -> Self {
        let [steps, filters, variables, constants] = numbers::<HEAD>(code, 0).map(usize::from);
        Self { code, steps, filters, variables, constants }
    }

    #[inline(always)]
    pub(crate) fn step(&self, n: usize) -> Step {
        let [s, p, o, back, flags, position] = numbers::<STEP>(self.code, HEAD + STEP * n);
        Step { places: [s, p, o], back, flags, position }
    }

    /// Returns the step that binds the variable of a filter, the variable, and the operator of its
    /// comparison with a constant. The constant is the filter's number in a row.
    pub(crate) fn test(&self, n: usize) -> (usize, usize, Option<Comparison>) {
        let at = HEAD + STEP * self.steps + TEST * n;
        let [step, variable, code] = numbers::<TEST>(self.code, at);
        (usize::from(step), usize::from(variable), Comparison::of_code(code))
    }

    /// Returns the constants of a step as an access pattern.
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

    /// Returns the kinds of look-up of all steps, a bit each.
    pub(crate) fn kinds(&self) -> u8 {
        (0..self.steps).fold(0, |kinds, n| kinds | 1 << (self.step(n).flags & KIND))
    }
}

/// Writes the programs of branches, and reuses its memory.
#[derive(Default)]
pub(crate) struct Planner {
    /// The program.
    pub(crate) code: Vec<u8>,
    /// The constants of the patterns in join order.
    pub(crate) constants: Vec<Id>,
    order: Vec<u8>,
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
        let variable = |node: &Node| match node {
            Node::Variable(variable) => usize::from(*variable) + 1,
            Node::Constant(_) => 0,
        };
        let bound = patterns.iter().flatten().map(variable);
        let constants = bound.clone().filter(|&end| end == 0).count();
        let tested = branch.filters.iter().map(|filter| usize::from(filter.0) + 1);
        let variables = bound.chain(tested).max().unwrap_or(0).max(usize::from(branch.variables));
        if patterns.len().max(branch.filters.len()) > MAX_PATTERNS
            || variables + constants > usize::from(NONE)
        {
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
        self.order.extend(0..patterns.len() as u8);
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
        self.constants.clear();
        self.binders.clear();
        self.binders.resize(variables, NONE);
        self.ancestors.clear();
        self.code.clear();
        self.code.extend([steps as u8, branch.filters.len() as u8, variables as u8, 0]);
        for (n, &position) in self.order.iter().enumerate() {
            let pattern = &branch.patterns[usize::from(position)];
            let (mut flags, mut ancestors) = (0, 0);
            let places: [u8; 3] = std::array::from_fn(|place| match pattern[place] {
                Node::Constant(term) => {
                    flags |= BITS[place] as u16;
                    self.constants.push(term);
                    (variables + self.constants.len() - 1) as u8
                }
                Node::Variable(variable) => {
                    match self.binders[usize::from(variable)] {
                        NONE => self.binders[usize::from(variable)] = n as u16,
                        binder if usize::from(binder) == n => flags |= REPEATED,
                        binder => {
                            flags |= BITS[place] as u16;
                            ancestors |= 1 << binder;
                        }
                    }
                    if place == 1 {
                        flags |= UNNAMED;
                    }
                    variable as u8
                }
            });
            self.code.extend(places);
            self.code.extend([NONE as u8, flags as u8, position]);
            self.ancestors.push(ancestors);
        }
        self.code[3] = self.constants.len() as u8;
        for n in (0..steps).rev() {
            let own: u64 = self.ancestors[n];
            if let Some(back) = own.checked_ilog2() {
                self.code[HEAD + STEP * n + 3] = back as u8;
                self.ancestors[back as usize] |= own & !(1 << back);
            }
        }
        for (variable, filter) in &branch.filters {
            let step = self.binders[usize::from(*variable)];
            let step = if step == NONE { 0 } else { usize::from(step) };
            if step < steps {
                self.code[HEAD + STEP * step + 4] |= FILTERED as u8;
            }
            let code = match filter {
                Filter::Compare { operator, .. } => operator.code(),
                _ => 0,
            };
            self.code.extend([step as u8, *variable as u8, code as u8]);
        }
    }
}

/// Reads numbers of a program.
#[inline(always)]
fn numbers<const N: usize>(code: &[u8], at: usize) -> [u16; N] {
    // Joins spend most of their time here: one bounds check.
    let code = &code[at..][..N];
    std::array::from_fn(|i| u16::from(code[i]))
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
