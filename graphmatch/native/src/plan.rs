//! Join programs: what branches ask for, apart from their constants.
//!
//! A branch is joined in a fixed order: always a pattern of which most is known by then. That
//! order, with slots for constants, is its *program*. Branches that differ in constants only share
//! one; it is stored once, as bytes, and goes with its last branch. A branch of eight patterns has
//! a program of about 55 bytes.
//!
//! Each step knows which step to go back to when it finds nothing: the last one that bound a
//! variable on which this step, or a step that came back to this one, depends (Dechter's
//! graph-based backjumping). So a pattern that fails is not tried again with other terms for
//! variables that it does not have, and patterns without common variables fail independently.

use crate::arena::Arena;
use crate::dictionary::{ANY, Dictionary, Id};
use crate::graph::{Key, OBJECT, PREDICATE, SUBJECT};
use crate::pattern::{Branch, Comparison, Filter, Node, Pattern};
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, check};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::collections::BinaryHeap;
use std::hash::BuildHasher;

/// No branch has more triple patterns, nor more filters.
pub const MAX_PATTERNS: usize = 4096;

/// No step, in a program.
pub(crate) const NONE: u16 = u16::MAX;
/// The lowest bits of a step's flags are the kind of its look-up.
pub(crate) const KIND: u16 = 7;
/// A flag of a step: its predicate is a variable.
pub(crate) const UNNAMED: u16 = 8;
/// A flag of a step: a variable that it binds is there more than once.
pub(crate) const REPEATED: u16 = 16;
/// A flag of a step: it binds a variable that filters test.
pub(crate) const FILTERED: u16 = 32;

const BITS: [usize; 3] = [SUBJECT, PREDICATE, OBJECT];
/// How much a constant says: an object most, a predicate least.
const WEIGHTS: [u64; 3] = [4, 2, 5];

/// A triple pattern in join order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    /// Variables by number; from the number of variables on, constants in their order.
    pub(crate) places: [u16; 3],
    /// The step to go back to when this one finds nothing.
    pub(crate) back: u16,
    /// What a join has to know.
    pub(crate) flags: u16,
    /// Which pattern of the branch it is.
    pub(crate) position: u16,
}

/// Numbers for the head of a program, a step, a filter.
const HEAD: usize = 4;
const STEP: usize = 6;
const TEST: usize = 3;

/// A program: the first byte says how many bytes a number has, 1 or 2. Then come how many steps,
/// filters, variables and constants there are, the steps, and for each filter the step that binds
/// its variable, the variable, and with which operator that is compared with a constant.
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
    /// The program that a slice begins with.
    #[inline]
    fn read(code: &'a [u8]) -> Self {
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
        let code = &self.code[1 + at..][..STEP];
        let [s, p, o, back, flags, position] = std::array::from_fn(|i| u16::from(code[i]));
        let back = if back == u16::from(u8::MAX) { NONE } else { back };
        Step { places: [s, p, o], back, flags, position }
    }

    /// The step that binds the variable of a filter, the variable, and with which operator this is
    /// compared with a constant. That is the filter's number in a row then.
    #[inline]
    pub(crate) fn test(&self, n: usize) -> (usize, usize, Option<Comparison>) {
        let [step, variable, code] = self.numbers::<TEST>(HEAD + STEP * self.steps + TEST * n);
        (usize::from(step), usize::from(variable), Comparison::of_code(code))
    }

    /// The access pattern of a step: its constants.
    #[inline]
    pub(crate) fn access(&self, n: usize, constants: &[Id]) -> Key {
        self.step(n).places.map(|place| {
            let constant = usize::from(place).wrapping_sub(self.variables);
            constants.get(constant).copied().filter(|_| constant < self.constants).unwrap_or(ANY)
        })
    }

    /// The patterns in the order of the branch.
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

    /// The kinds of look-up of all steps.
    fn kinds(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.steps).map(|n| usize::from(self.step(n).flags & KIND))
    }

    fn bytes(&self) -> usize {
        let numbers = HEAD + STEP * self.steps + TEST * self.filters;
        1 + numbers * (1 + usize::from(self.wide))
    }

    /// Whether some bytes are a program, and one that a join cannot go wrong with.
    fn is_sound(code: &[u8]) -> bool {
        let wide = match code.first() {
            Some(1) => 0,
            Some(2) => 1,
            _ => return false,
        };
        if code.len() < 1 + HEAD * (1 + wide) {
            return false;
        }
        let program = Program::read(code);
        let Program { steps, filters, variables, constants, .. } = program;
        let most = 3 * MAX_PATTERNS;
        if steps.max(filters) > MAX_PATTERNS || variables.max(constants) > most {
            return false;
        }
        let mut positions = vec![false; steps];
        program.bytes() == code.len()
            && (0..steps).all(|n| {
                let Step { places, back, flags, position } = program.step(n);
                let is_place = |place: u16| usize::from(place) < variables + constants;
                places.into_iter().all(is_place)
                    && (back == NONE || usize::from(back) < n)
                    && flags < 2 * FILTERED
                    && positions
                        .get_mut(usize::from(position))
                        .is_some_and(|seen| !std::mem::replace(seen, true))
            })
            && (0..filters).all(|n| {
                let [_, variable, code] = program.numbers(HEAD + STEP * steps + TEST * n);
                let is_known = code == 0 || Comparison::of_code(code).is_some();
                usize::from(variable) < variables && is_known
            })
    }

    /// Its code, and nothing behind it.
    fn exact(&self) -> &'a [u8] {
        &self.code[..self.bytes()]
    }
}

/// Writes the programs of branches; reuses its memory.
#[derive(Default)]
pub(crate) struct Planner {
    /// The program, in bytes.
    pub(crate) code: Vec<u8>,
    /// The constants of the patterns in join order.
    pub(crate) constants: Vec<Id>,
    numbers: Vec<u16>,
    order: Vec<u16>,
    /// Variables and the patterns that have them.
    uses: Vec<(u16, u16)>,
    heap: BinaryHeap<(u64, u16)>,
    bound: Vec<bool>,
    done: Vec<bool>,
    /// By variable, the step that binds it.
    binders: Vec<u16>,
    /// By step, a set of earlier ones.
    ancestors: Vec<u64>,
}

impl Planner {
    /// Writes the program of a branch; false if it is too large.
    pub(crate) fn plan(&mut self, branch: &Branch) -> bool {
        let patterns = &branch.patterns;
        if patterns.len() > MAX_PATTERNS || branch.filters.len() > MAX_PATTERNS {
            return false;
        }
        self.uses.clear();
        for (n, pattern) in patterns.iter().enumerate() {
            self.uses.extend(pattern.iter().filter_map(|node| match node {
                Node::Variable(variable) => Some((*variable, n as u16)),
                Node::Constant(_) => None,
            }));
        }
        self.uses.sort_unstable();
        let tested = branch.filters.iter().map(|filter| filter.0);
        let all = self.uses.iter().map(|one| one.0).chain(tested);
        let variables = all.map(|v| usize::from(v) + 1).max().unwrap_or(0);
        let variables = variables.max(usize::from(branch.variables));
        if variables > 3 * MAX_PATTERNS {
            return false;
        }
        self.find_order(patterns, variables);
        self.write(branch, variables);
        true
    }

    /// Orders the patterns. What is known of a pattern only grows, so a heap finds the best.
    fn find_order(&mut self, patterns: &[Pattern], variables: usize) {
        self.order.clear();
        self.bound.clear();
        self.bound.resize(variables, false);
        self.done.clear();
        self.done.resize(patterns.len(), false);
        self.heap.clear();
        for (n, pattern) in patterns.iter().enumerate() {
            self.heap.push((weight(pattern, &self.bound), !(n as u16)));
        }
        while let Some((_, n)) = self.heap.pop() {
            let n = !n;
            if std::mem::replace(&mut self.done[usize::from(n)], true) {
                continue;
            }
            self.order.push(n);
            for node in &patterns[usize::from(n)] {
                let Node::Variable(variable) = *node else { continue };
                if std::mem::replace(&mut self.bound[usize::from(variable)], true) {
                    continue;
                }
                let begin = self.uses.partition_point(|one| one.0 < variable);
                let users = self.uses[begin..].iter().take_while(|one| one.0 == variable);
                for &(_, user) in users.filter(|one| !self.done[usize::from(one.1)]) {
                    self.heap.push((weight(&patterns[usize::from(user)], &self.bound), !user));
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

/// How much is known of a pattern: whether all is, how many variables are bound, its constants,
/// and whether a variable is repeated.
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

/// Programs, each once.
#[derive(Default)]
pub(crate) struct Programs {
    codes: Arena<u8>,
    uses: Vec<u32>,
    table: HashTable<u32>,
    hasher: RandomState,
    /// How many steps look up each kind.
    pub(crate) kinds: [u32; 8],
}

impl Programs {
    /// The number of a program, which has one more use from now on; `None` if there is no room.
    pub(crate) fn intern(&mut self, code: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(code);
        if let Some(&number) = self.table.find(hash, |&n| self.codes.get(n).starts_with(code)) {
            self.uses[number as usize] += 1;
            return Some(number);
        }
        let number = self.codes.insert(code)?;
        if self.uses.len() <= number as usize {
            self.uses.resize(number as usize + 1, 0);
        }
        self.uses[number as usize] = 1;
        let (codes, hasher) = (&self.codes, &self.hasher);
        let rehash = |&n: &u32| hasher.hash_one(Program::read(codes.get(n)).exact());
        self.table.insert_unique(hash, number, rehash);
        Program::read(code).kinds().for_each(|kind| self.kinds[kind] += 1);
        Some(number)
    }

    /// Takes a use of a program away; it goes with the last one.
    pub(crate) fn release(&mut self, number: u32) {
        self.uses[number as usize] -= 1;
        if self.uses[number as usize] > 0 {
            return;
        }
        let program = Program::read(self.codes.get(number));
        program.kinds().for_each(|kind| self.kinds[kind] -= 1);
        let hash = self.hasher.hash_one(program.exact());
        if let Ok(entry) = self.table.find_entry(hash, |&n| n == number) {
            entry.remove();
        }
        self.codes.remove(number, |code| Program::read(code).bytes());
        let (codes, hasher) = (&self.codes, &self.hasher);
        shrink(&mut self.table, |&n| hasher.hash_one(Program::read(codes.get(n)).exact()));
        if self.codes.len() == 0 {
            self.uses = Vec::new();
        }
    }

    /// A program by its number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Program<'_> {
        Program::read(self.codes.get(number))
    }

    /// The bytes of programs, to have them read before they are needed.
    #[inline]
    pub(crate) fn codes(&self) -> &Arena<u8> {
        &self.codes
    }

    /// How many branches have a program.
    pub(crate) fn uses(&self, number: u32) -> u32 {
        self.uses[number as usize]
    }

    /// Writes the programs; by how many rows they are used these say.
    pub(crate) fn save(&self, to: &mut Saver) {
        self.codes.save(to, |code| Program::read(code).bytes());
    }

    /// Reads programs that are used by nobody yet.
    pub(crate) fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let mut kinds = [0; 8];
        let codes = Arena::load(from, |_, code: &[u8]| {
            let is_sound = Program::is_sound(code);
            if is_sound {
                Program::read(code).kinds().for_each(|kind| kinds[kind] += 1);
            }
            is_sound
        })?;
        let hasher = RandomState::default();
        let hash = |&n: &u32| hasher.hash_one(Program::read(codes.get(n)).exact());
        let mut table = HashTable::with_capacity(codes.len());
        codes.numbers().for_each(|n| {
            table.insert_unique(hash(&n), n, hash);
        });
        let uses = vec![0; codes.end()];
        Ok(Self { codes, uses, table, hasher, kinds })
    }

    /// A program by its number if there is one, which has one more use from now on.
    pub(crate) fn retain(&mut self, number: u32) -> Option<Program<'_>> {
        let code = self.codes.get(number);
        *self.uses.get_mut(number as usize).filter(|_| !code.is_empty())? += 1;
        Some(Program::read(code))
    }

    /// Fails if there is a program that nobody uses.
    pub(crate) fn check_uses(&self) -> Result<(), SnapshotError> {
        let is_used = |n: u32| self.uses[n as usize] > 0;
        check(self.codes.numbers().all(is_used), "a program that nothing has")
    }

    /// How many programs there are.
    pub(crate) fn len(&self) -> usize {
        self.codes.len()
    }

    /// Bytes that are allocated.
    pub(crate) fn bytes(&self) -> usize {
        self.codes.bytes() + 4 * self.uses.capacity() + self.table.allocation_size()
    }
}

/// Gives memory of a table back that lost most of its entries.
pub(crate) fn shrink<T>(table: &mut HashTable<T>, hasher: impl Fn(&T) -> u64) {
    if table.capacity() > 64 && table.len() < table.capacity() / 4 {
        table.shrink_to(table.len() * 2, hasher);
    }
}

/// Filters other than comparisons, each once.
#[derive(Default)]
pub(crate) struct Filters {
    filters: Vec<Option<(Filter, u32)>>,
    table: HashTable<u32>,
    free: Vec<u32>,
    hasher: RandomState,
}

impl Filters {
    /// The number of a filter, which has one more use from now on.
    pub(crate) fn intern(&mut self, filter: &Filter) -> u32 {
        let hash = self.hasher.hash_one(filter);
        if let Some(&number) = self.table.find(hash, |&n| self.get(n) == Some(filter)) {
            if let Some((_, uses)) = &mut self.filters[number as usize] {
                *uses += 1;
            }
            return number;
        }
        let number = self.free.pop().unwrap_or_else(|| {
            self.filters.push(None);
            (self.filters.len() - 1) as u32
        });
        self.filters[number as usize] = Some((filter.clone(), 1));
        let (filters, hasher) = (&self.filters, &self.hasher);
        self.table.insert_unique(hash, number, |&n| hash_of(filters, hasher, n));
        number
    }

    /// Takes a use of a filter away; it goes with the last one.
    pub(crate) fn release(&mut self, number: u32) {
        let Some((filter, uses)) = &mut self.filters[number as usize] else { return };
        *uses -= 1;
        if *uses > 0 {
            return;
        }
        let hash = self.hasher.hash_one(&*filter);
        if let Ok(entry) = self.table.find_entry(hash, |&n| n == number) {
            entry.remove();
        }
        self.filters[number as usize] = None;
        self.free.push(number);
        let (filters, hasher) = (&self.filters, &self.hasher);
        shrink(&mut self.table, |&n| hash_of(filters, hasher, n));
        if self.free.len() == self.filters.len() {
            (self.filters, self.free) = (Vec::new(), Vec::new());
        }
    }

    /// Writes the filters; by how many rows they are used these say.
    pub(crate) fn save(&self, to: &mut Saver) {
        self.filters.len().save(to);
        for slot in &self.filters {
            slot.is_some().save(to);
            if let Some((filter, _)) = slot {
                filter.save(to);
            }
        }
    }

    /// Reads filters that are used by nobody yet.
    pub(crate) fn load(from: &mut Loader, dictionary: &Dictionary) -> Result<Self, SnapshotError> {
        let all = <Vec<Option<Filter>>>::load(from)?;
        let hasher = RandomState::default();
        let mut known = true;
        let filters: Vec<Option<(Filter, u32)>> =
            all.into_iter().map(|slot| slot.map(|filter| (filter, 0))).collect();
        let (mut free, mut table) = (Vec::new(), HashTable::with_capacity(filters.len()));
        let hash = |&n: &u32| hash_of(&filters, &hasher, n);
        for (number, slot) in (0..).zip(&filters) {
            let Some((filter, _)) = slot else {
                free.push(number);
                continue;
            };
            filter.each_constant(&mut |id| known &= dictionary.knows(id));
            table.insert_unique(hash(&number), number, hash);
        }
        check(known, "a number of no term")?;
        Ok(Self { filters, table, free, hasher })
    }

    /// Uses a filter once more; whether there is one of that number.
    pub(crate) fn retain(&mut self, number: u32) -> bool {
        let slot = self.filters.get_mut(number as usize).and_then(Option::as_mut);
        slot.map(|(_, uses)| *uses += 1).is_some()
    }

    /// Fails if there is a filter that nobody uses.
    pub(crate) fn check_uses(&self) -> Result<(), SnapshotError> {
        let is_used = |slot: &(Filter, u32)| slot.1 > 0;
        check(self.filters.iter().flatten().all(is_used), "a filter that nothing has")
    }

    /// A filter by its number.
    #[inline]
    pub(crate) fn get(&self, number: u32) -> Option<&Filter> {
        self.filters.get(number as usize)?.as_ref().map(|one| &one.0)
    }

    /// Bytes that are allocated, but for lists of alternatives.
    pub(crate) fn bytes(&self) -> usize {
        self.filters.capacity() * size_of::<Option<(Filter, u32)>>()
            + 4 * self.free.capacity()
            + self.table.allocation_size()
    }
}

fn hash_of(filters: &[Option<(Filter, u32)>], hasher: &RandomState, number: u32) -> u64 {
    let filter = filters[number as usize].as_ref().map(|one| &one.0);
    filter.map_or(0, |filter| hasher.hash_one(filter))
}
