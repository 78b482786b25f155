//! Branches that are conjunctions around one subject, as predicate tables see them.
//!
//! Such a branch is taken apart into a template and its constants; the template says what it asks
//! of which columns. That is found out once for all branches that differ in constants only.

use crate::dictionary::{Dictionary, Id};
use crate::pattern::{Branch, Comparison, Filter, Folding, Node, Tested, TextOperator, View};
use crate::values::{Class, Literal, SortKey};

/// The most columns of a table, and patterns of a row.
pub const MOST_COLUMNS: usize = 64;
/// The most constants of a row.
const MOST_CONSTANTS: usize = 1 << 12;

/// How a property is tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Test {
    /// It has a value.
    Present,
    /// It has one of some terms.
    Term,
    /// It has a value between two constants of a class.
    Interval(Class),
}

/// A property and how it is tested: the same way several times, by different variables, perhaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Column {
    /// The property.
    pub predicate: Id,
    /// How it is tested.
    pub test: Test,
    /// How many columns of the branch are the same but for this number.
    pub repeat: u8,
}

/// A branch with its constants taken out, but for predicates. Constants are said by numbers, from 0
/// on: those of objects, and then those of filters.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConjunctionShape {
    subject: Node,
    /// Predicates and objects of the patterns.
    patterns: Vec<(Id, Node)>,
    filters: Vec<Tested<u32>>,
    /// The classes of all constants.
    classes: Vec<Class>,
    /// How many variables there are.
    pub variables: u16,
}

/// One end of an interval: the constant's number, and whether it is inside.
pub type End = Option<(u32, bool)>;

/// What a template asks of one column.
pub struct Use {
    /// Which.
    pub column: Column,
    /// The numbers of the terms.
    pub terms: Vec<u32>,
    /// The lower and the upper end of the interval.
    pub ends: [End; 2],
    /// All filters of the variable.
    pub filters: Vec<Filter<u32>>,
    /// Whether filters ask more than terms or interval do.
    pub rest: bool,
}

impl ConjunctionShape {
    /// The template of a branch, and its constants; nothing if it is no conjunction around a
    /// subject.
    pub fn of(branch: &Branch, dictionary: &Dictionary) -> Option<(Self, Vec<Id>)> {
        let subject = branch.patterns.first()?[0];
        let count = branch.filters.iter().map(|(_, filter)| simple(filter).len()).sum::<usize>();
        if matches!(subject, Node::Constant(_))
            || branch.patterns.len() > MOST_COLUMNS
            || branch.patterns.len() + count > MOST_CONSTANTS
        {
            return None;
        }
        let mut constants = Vec::with_capacity(branch.patterns.len() + count);
        let mut classes = Vec::with_capacity(branch.patterns.len() + count);
        let mut patterns: Vec<(Id, Node)> = Vec::with_capacity(branch.patterns.len());
        for &[s, p, o] in &branch.patterns {
            let Node::Constant(predicate) = p else { return None };
            let is_variable = matches!(o, Node::Variable(_));
            let is_again = is_variable && patterns.iter().any(|&(_, other)| other == o);
            if s != subject || o == subject || is_again {
                return None;
            }
            patterns.push((predicate, mapped_node(o, |id| number(id, &mut constants))));
            classes.resize(constants.len(), Class::Term);
        }
        let mut filters = Vec::with_capacity(branch.filters.len());
        for (variable, filter) in &branch.filters {
            if !patterns.iter().any(|&(_, object)| object == Node::Variable(*variable)) {
                return None;
            }
            classes.extend(simple(filter).iter().map(|filter| class_of(filter, dictionary)));
            filters.push((*variable, mapped(filter, &mut |&id| number(id, &mut constants))));
        }
        let variables = branch.variables;
        Some((Self { subject, patterns, filters, classes, variables }, constants))
    }

    /// The branch of this template and some constants.
    pub fn branch(&self, constants: &[Id]) -> Branch {
        let constant = |slot: u32| constants[slot as usize];
        let pattern = |&(predicate, object): &(Id, Node)| {
            [self.subject, Node::Constant(predicate), mapped_node(object, constant)]
        };
        let filter = |(variable, filter): &Tested<u32>| {
            (*variable, mapped(filter, &mut |&slot| constant(slot)))
        };
        Branch {
            patterns: self.patterns.iter().map(pattern).collect(),
            filters: self.filters.iter().map(filter).collect(),
            variables: self.variables,
        }
    }

    /// How many constants it has.
    pub fn constants(&self) -> usize {
        self.classes.len()
    }

    /// The numbers of the constants that are compared by their place on a line.
    pub fn ordered(&self) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(|&slot| self.classes[slot].is_ordered())
    }

    /// What it asks of which columns, in the order of columns.
    pub fn uses(&self) -> Vec<Use> {
        let mut uses: Vec<Use> = Vec::with_capacity(self.patterns.len());
        for &(predicate, object) in &self.patterns {
            let mut one = match object {
                Node::Constant(slot) => {
                    let column = Column { predicate, test: Test::Term, repeat: 0 };
                    let (ends, filters) = Default::default();
                    Use { column, terms: vec![slot], ends, filters, rest: false }
                }
                Node::Variable(variable) => self.use_of_variable(predicate, variable),
            };
            let is_same = |other: &&Use| {
                (other.column.predicate, other.column.test) == (predicate, one.column.test)
            };
            one.column.repeat = uses.iter().filter(is_same).count() as u8;
            uses.push(one);
        }
        uses.sort_by_key(|one| one.column);
        uses
    }

    fn use_of_variable(&self, predicate: Id, variable: u16) -> Use {
        let class = |slot: u32| self.classes[slot as usize];
        let own = self.filters.iter().filter(|(tested, _)| *tested == variable);
        let filters: Vec<Filter<u32>> = own.map(|(_, filter)| filter.clone()).collect();
        let term = |filter: &Filter<u32>| match *filter {
            Filter::Compare { operator: Comparison::Equal, constant: slot }
            | Filter::Text {
                operator: TextOperator::Equals,
                view: View::Term,
                folding: Folding::None,
                argument: slot,
            } if class(slot) == Class::Term => Some(slot),
            _ => None,
        };
        let column = |test| Column { predicate, test, repeat: 0 };
        let terms = filters.iter().find_map(|filter| simple(filter).iter().map(term).collect());
        if let Some(terms) = terms {
            let rest = filters.len() > 1;
            return Use { column: column(Test::Term), terms, ends: [None; 2], filters, rest };
        }
        let mut line = None;
        let mut ends = [None; 2];
        let mut taken = 0;
        for filter in &filters {
            let &Filter::Compare { operator, constant } = filter else { continue };
            let class = class(constant);
            if !class.is_ordered() || line.is_some_and(|line| line != class) {
                continue;
            }
            let given: [End; 2] = match operator {
                Comparison::Equal => [Some((constant, true)); 2],
                Comparison::Greater => [Some((constant, false)), None],
                Comparison::GreaterOrEqual => [Some((constant, true)), None],
                Comparison::Less => [None, Some((constant, false))],
                Comparison::LessOrEqual => [None, Some((constant, true))],
                Comparison::Unequal => continue,
            };
            if ends.iter().zip(&given).all(|(end, given)| end.is_none() || given.is_none()) {
                ends.iter_mut().zip(given).for_each(|(end, given)| *end = end.or(given));
                line = Some(class);
                taken += 1;
            }
        }
        let rest = taken < filters.len();
        let test = line.map_or(Test::Present, Test::Interval);
        Use { column: column(test), terms: Vec::new(), ends, filters, rest }
    }
}

/// The filters of a disjunction, or the one that it is.
fn simple<C>(filter: &Filter<C>) -> &[Filter<C>] {
    if let Filter::Any(filters) = filter { filters } else { std::slice::from_ref(filter) }
}

/// The class of a simple filter's constant, where that is what the filter compares.
fn class_of(filter: &Filter, dictionary: &Dictionary) -> Class {
    match *filter {
        Filter::Compare { constant, .. } => SortKey::of_term(constant, dictionary).class,
        // no text is equal to anything but a string
        Filter::Text { argument, .. } => match Literal::of(&dictionary.text(argument)) {
            Some(Literal { datatype: None, .. }) => Class::Term,
            _ => Class::Other,
        },
        Filter::Taxonomy { .. } | Filter::Any(_) => Class::Other,
    }
}

/// Adds a constant to others; returns its number.
fn number(id: Id, constants: &mut Vec<Id>) -> u32 {
    constants.push(id);
    constants.len() as u32 - 1
}

fn mapped_node(node: Node, constant: impl FnOnce(Id) -> Id) -> Node {
    match node {
        Node::Constant(id) => Node::Constant(constant(id)),
        variable => variable,
    }
}

/// A filter with its constants said in another way.
pub fn mapped<C, D>(filter: &Filter<C>, constant: &mut dyn FnMut(&C) -> D) -> Filter<D> {
    match filter {
        Filter::Compare { operator, constant: right } => {
            Filter::Compare { operator: *operator, constant: constant(right) }
        }
        Filter::Text { operator, view, folding, argument } => Filter::Text {
            operator: *operator,
            view: *view,
            folding: *folding,
            argument: constant(argument),
        },
        Filter::Taxonomy { operator, concept } => {
            Filter::Taxonomy { operator: *operator, concept: constant(concept) }
        }
        Filter::Any(filters) => {
            Filter::Any(filters.iter().map(|filter| mapped(filter, constant)).collect())
        }
    }
}
