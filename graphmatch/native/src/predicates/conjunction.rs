//! The shape of a branch that is a conjunction around one subject, and its tests of columns.
//!
//! Branches that differ in constants only have the same shape. The columns that a shape tests are
//! found once for all of them.

use crate::branch::{Branch, Comparison, Filter, Folding, Node, TermPart, TextOperator};
use crate::dictionary::{Dictionary, Id};
use crate::lexical::LiteralParts;
use crate::values::{Class, SortKey};

/// Maximum number of columns of a table, and of patterns of a row.
pub const MAX_COLUMNS: usize = 64;

/// A kind of test of a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TestKind {
    /// The property has a value.
    Present,
    /// The property has one of some terms.
    Term,
    /// The property has a value between two constants of a class.
    Interval(Class),
}

/// A property and a kind of test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TableColumn {
    /// The property.
    pub predicate: Id,
    /// The kind of test.
    pub test: TestKind,
    /// Tells apart several tests of one kind, by different variables.
    pub repeat: u8,
}

/// A branch in which the constants of objects and filters are numbered: by slots instead of ids.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ConjunctionShape {
    branch: Branch,
    /// The classes of the constants, by slot.
    pub classes: Vec<Class>,
}

/// A shape's test of one column.
pub struct ColumnTest {
    /// The column.
    pub column: TableColumn,
    /// The slots of the terms.
    pub terms: Vec<u32>,
    /// The lower and the upper bound of the interval: the constant's slot, and whether the interval
    /// includes it.
    pub bounds: [Option<(u32, bool)>; 2],
    /// All filters of the variable.
    pub filters: Vec<Filter>,
    /// Whether filters test more than the terms or the interval.
    pub has_other_filters: bool,
}

impl ConjunctionShape {
    /// Returns the shape of a branch and its constants, or `None` if the branch is not a conjunction
    /// around a subject.
    pub fn of(branch: &Branch, dictionary: &Dictionary) -> Option<(Self, Vec<Id>)> {
        let subject = branch.patterns.first()?[0];
        let tested = || branch.filters.iter().flat_map(|(_, filter)| simple(filter));
        let is_conjunction = branch.patterns.iter().enumerate().all(|(at, &[s, p, o])| {
            let is_again = || branch.patterns[..at].iter().any(|&[_, _, other]| other == o);
            s == subject
                && o != subject
                && matches!(p, Node::Constant(_))
                && (matches!(o, Node::Constant(_)) || !is_again())
        });
        let is_object = |variable: u16| {
            branch.patterns.iter().any(|&[_, _, object]| object == Node::Variable(variable))
        };
        if matches!(subject, Node::Constant(_))
            || branch.patterns.len() > MAX_COLUMNS
            || !is_conjunction
            || !branch.filters.iter().all(|(variable, _)| is_object(*variable))
        {
            return None;
        }
        let objects = branch.patterns.iter().filter(|[.., o]| matches!(o, Node::Constant(_)));
        let mut classes = vec![Class::Term; objects.count()];
        classes.extend(tested().map(|filter| class_of(filter, dictionary)));
        let mut constants = Vec::with_capacity(classes.len());
        let branch = mapped_branch(branch, &mut |id| {
            constants.push(id);
            constants.len() as Id - 1
        });
        Some((Self { branch, classes }, constants))
    }

    /// The branch with some constants.
    pub fn branch(&self, constants: &[Id]) -> Branch {
        mapped_branch(&self.branch, &mut |slot| constants[slot as usize])
    }

    /// The slots of the constants that have sort keys.
    pub fn ordered(&self) -> impl Iterator<Item = usize> {
        (0..self.classes.len()).filter(|&slot| self.classes[slot].is_ordered())
    }

    /// Returns the tests of columns, in the order of the columns.
    pub fn tests(&self) -> Vec<ColumnTest> {
        let mut tests: Vec<ColumnTest> = Vec::with_capacity(self.branch.patterns.len());
        for &[_, predicate, object] in &self.branch.patterns {
            let Node::Constant(predicate) = predicate else { continue };
            let mut one = match object {
                Node::Constant(slot) => {
                    let column = TableColumn { predicate, test: TestKind::Term, repeat: 0 };
                    let (bounds, filters) = Default::default();
                    let terms = vec![slot];
                    ColumnTest { column, terms, bounds, filters, has_other_filters: false }
                }
                Node::Variable(variable) => self.test_of_variable(predicate, variable),
            };
            let is_same = |other: &&ColumnTest| {
                (other.column.predicate, other.column.test) == (predicate, one.column.test)
            };
            one.column.repeat = tests.iter().filter(is_same).count() as u8;
            tests.push(one);
        }
        tests.sort_by_key(|one| one.column);
        tests
    }

    fn test_of_variable(&self, predicate: Id, variable: u16) -> ColumnTest {
        let class = |slot: u32| self.classes[slot as usize];
        let own = self.branch.filters.iter().filter(|(tested, _)| *tested == variable);
        let filters: Vec<Filter> = own.map(|(_, filter)| filter.clone()).collect();
        let term = |filter: &Filter| match *filter {
            Filter::Compare { operator: Comparison::Equal, constant: slot }
            | Filter::Text {
                operator: TextOperator::Equals,
                view: TermPart::Term,
                folding: Folding::None,
                argument: slot,
            } if class(slot) == Class::Term => Some(slot),
            _ => None,
        };
        let column = |test| TableColumn { predicate, test, repeat: 0 };
        let terms = filters.iter().find_map(|filter| simple(filter).iter().map(term).collect());
        if let Some(terms) = terms {
            let (column, has_other_filters) = (column(TestKind::Term), filters.len() > 1);
            return ColumnTest { column, terms, bounds: [None; 2], filters, has_other_filters };
        }
        let mut common = None;
        let mut bounds = [None; 2];
        let mut used = 0;
        for filter in &filters {
            let &Filter::Compare { operator, constant } = filter else { continue };
            let class = class(constant);
            if !class.is_ordered() || common.is_some_and(|common| common != class) {
                continue;
            }
            let own: [Option<(u32, bool)>; 2] = match operator {
                Comparison::Equal => [Some((constant, true)); 2],
                Comparison::Greater => [Some((constant, false)), None],
                Comparison::GreaterOrEqual => [Some((constant, true)), None],
                Comparison::Less => [None, Some((constant, false))],
                Comparison::LessOrEqual => [None, Some((constant, true))],
                Comparison::Unequal => continue,
            };
            if bounds.iter().zip(&own).all(|(bound, own)| bound.is_none() || own.is_none()) {
                bounds.iter_mut().zip(own).for_each(|(bound, own)| *bound = bound.or(own));
                common = Some(class);
                used += 1;
            }
        }
        let has_other_filters = used < filters.len();
        let column = column(common.map_or(TestKind::Present, TestKind::Interval));
        ColumnTest { column, terms: Vec::new(), bounds, filters, has_other_filters }
    }
}

/// The filters of a disjunction, or the filter itself.
fn simple<C>(filter: &Filter<C>) -> &[Filter<C>] {
    if let Filter::Any(filters) = filter { filters } else { std::slice::from_ref(filter) }
}

/// The class of a simple filter's constant, if the filter compares with it.
fn class_of(filter: &Filter, dictionary: &Dictionary) -> Class {
    match *filter {
        Filter::Compare { constant, .. } => SortKey::of_term(constant, dictionary).class,
        // A string is equal only to strings.
        Filter::Text { argument, .. } => match LiteralParts::of(&dictionary.text(argument)) {
            Some(LiteralParts { datatype: None, .. }) => Class::Term,
            _ => Class::Other,
        },
        Filter::Taxonomy { .. } | Filter::Any(_) => Class::Other,
    }
}

/// Replaces the constants of a branch's objects and filters.
fn mapped_branch(branch: &Branch, constant: &mut dyn FnMut(Id) -> Id) -> Branch {
    let mut branch = branch.clone();
    for [.., object] in &mut branch.patterns {
        if let Node::Constant(id) = object {
            *id = constant(*id);
        }
    }
    branch.filters.iter_mut().for_each(|(_, filter)| replace(filter, constant));
    branch
}

/// Replaces the constants of a filter.
fn replace(filter: &mut Filter, constant: &mut dyn FnMut(Id) -> Id) {
    match filter {
        Filter::Compare { constant: id, .. }
        | Filter::Text { argument: id, .. }
        | Filter::Taxonomy { concept: id, .. } => *id = constant(*id),
        Filter::Any(filters) => filters.iter_mut().for_each(|one| replace(one, constant)),
    }
}
