//! Branches that are conjunctions around one subject, as predicate tables see them.
//!
//! Such a branch is taken apart into a template and its constants; the template says what it asks
//! of which columns. That is found out once for all branches that differ in constants only.

use crate::dictionary::{Dictionary, Id};
use crate::pattern::{Branch, Comparison, Filter, Folding, Node, Pattern, Tested};
use crate::pattern::{TextOperator, View};
use crate::values::{Class, Literal, Order, Value};
use std::hash::{Hash, Hasher};

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

/// A branch with its constants taken out, but for predicates, and the classes of those constants.
/// Constants are said by numbers, from 0 on.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template {
    /// The patterns; objects that are constants are said by their numbers.
    pub patterns: Vec<Pattern>,
    /// The filters.
    pub filters: Vec<Tested<u32>>,
    /// How many variables there are.
    pub variables: u16,
    /// The classes of all constants.
    pub classes: Vec<Class>,
}

impl Hash for Template {
    /// Takes what tells templates apart mostly, in few words.
    fn hash<H: Hasher>(&self, state: &mut H) {
        for [_, predicate, object] in &self.patterns {
            let number = |node: &Node| match *node {
                Node::Constant(id) => u64::from(id),
                Node::Variable(variable) => 1 << 32 | u64::from(variable),
            };
            state.write_u64(number(predicate) << 16 ^ number(object));
        }
        for (variable, filter) in &self.filters {
            let code = match filter {
                Filter::Compare { operator, .. } => *operator as u64,
                Filter::Text { operator, view, folding, .. } => {
                    16 + (*operator as u64 * 4 + *view as u64) * 4 + *folding as u64
                }
                Filter::Taxonomy { operator, .. } => 8 + *operator as u64,
                Filter::Any(filters) => 1 << 8 | (filters.len() as u64) << 16,
            };
            state.write_u64(code << 16 | u64::from(*variable));
        }
    }
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

/// The order of a filter's constant, or its class only.
pub fn class_of(id: Id, kind: Compared, dictionary: &Dictionary) -> Order {
    if kind == Compared::Other {
        return Order::default();
    }
    let number = Order::of_inline(id);
    if kind == Compared::Value
        && let Some(order) = number
    {
        return order;
    }
    let text = dictionary.text(id);
    let is_string = Literal::of(&text).is_some_and(|literal| literal.datatype.is_none());
    // no text is equal to anything but a string
    if kind == Compared::Value || is_string {
        Order::of(&Value::of(&text))
    } else {
        Order::default()
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

/// The template of a branch, and its constants; nothing if it is no conjunction around a subject.
pub fn template_of(
    branch: &Branch,
    class: &mut dyn FnMut(Id, Compared) -> Class,
) -> Option<(Template, Vec<Id>)> {
    let subject = branch.patterns.first()?[0];
    let is_variable = matches!(subject, Node::Variable(_));
    if !is_variable || branch.patterns.len() > MOST_COLUMNS {
        return None;
    }
    let count: usize = branch.filters.iter().map(|(_, filter)| constants_of(filter)).sum();
    if count + branch.patterns.len() > MOST_CONSTANTS {
        return None;
    }
    let mut template = Template {
        patterns: Vec::with_capacity(branch.patterns.len()),
        filters: Vec::with_capacity(branch.filters.len()),
        variables: branch.variables,
        classes: Vec::with_capacity(count + branch.patterns.len()),
    };
    let mut constants: Vec<Id> = Vec::with_capacity(count + branch.patterns.len());
    let mut objects = 0u128;
    for &[s, p, o] in &branch.patterns {
        let is_predicate = matches!(p, Node::Constant(_));
        if s != subject || !is_predicate || o == subject {
            return None;
        }
        let object = match o {
            Node::Variable(variable) => {
                let bit = 1u128.checked_shl(variable.into())?;
                if objects & bit != 0 {
                    return None;
                }
                objects |= bit;
                o
            }
            Node::Constant(id) => {
                constants.push(id);
                template.classes.push(Class::Term);
                Node::Constant(constants.len() as u32 - 1)
            }
        };
        template.patterns.push([s, p, object]);
    }
    for (variable, filter) in &branch.filters {
        if objects & 1u128.checked_shl((*variable).into())? == 0 {
            return None;
        }
        let begin = constants.len() as u32;
        let slots = mapped(filter, &mut |&id| {
            constants.push(id);
            constants.len() as u32 - 1
        });
        for slot in begin..constants.len() as u32 {
            template.classes.push(class(constants[slot as usize], kind_of(&slots, slot)));
        }
        template.filters.push((*variable, slots));
    }
    Some((template, constants))
}

fn constants_of(filter: &Filter) -> usize {
    if let Filter::Any(filters) = filter { filters.len() } else { 1 }
}

/// What a constant of a filter is compared with.
#[derive(Clone, Copy, PartialEq)]
pub enum Compared {
    /// A term's value.
    Value,
    /// A string literal, by term.
    Text,
    /// Something else.
    Other,
}

fn kind_of(filter: &Filter<u32>, slot: u32) -> Compared {
    match filter {
        Filter::Compare { constant, .. } if *constant == slot => Compared::Value,
        Filter::Text {
            operator: TextOperator::Equals,
            view: View::Term,
            folding: Folding::None,
            argument,
        } if *argument == slot => Compared::Text,
        Filter::Any(filters) => filters
            .iter()
            .map(|filter| kind_of(filter, slot))
            .find(|kind| *kind != Compared::Other)
            .unwrap_or(Compared::Other),
        _ => Compared::Other,
    }
}

/// What a template asks of which columns, in the order of columns.
pub fn uses_of(template: &Template) -> Option<Vec<Use>> {
    let mut uses = Vec::with_capacity(template.patterns.len());
    for [_, predicate, object] in &template.patterns {
        let &Node::Constant(predicate) = predicate else { return None };
        let mut one = match *object {
            Node::Constant(slot) => Use {
                column: Column { predicate, test: Test::Term, repeat: 0 },
                terms: vec![slot],
                ends: [None; 2],
                filters: Vec::new(),
                rest: false,
            },
            Node::Variable(variable) => use_of_variable(template, predicate, variable),
        };
        let is_same = |other: &&Use| {
            (other.column.predicate, other.column.test) == (predicate, one.column.test)
        };
        one.column.repeat = uses.iter().filter(is_same).count() as u8;
        uses.push(one);
    }
    uses.sort_by_key(|one| one.column);
    Some(uses)
}

fn use_of_variable(template: &Template, predicate: Id, variable: u16) -> Use {
    let class = |slot: u32| template.classes.get(slot as usize).copied().unwrap_or_default();
    let own = template.filters.iter().filter(|(tested, _)| *tested == variable);
    let filters: Vec<Filter<u32>> = own.map(|(_, filter)| filter.clone()).collect();
    let terms = filters.iter().find_map(|filter| {
        let equal = |filter: &Filter<u32>| match filter {
            Filter::Compare { operator: Comparison::Equal, constant: slot }
            | Filter::Text {
                operator: TextOperator::Equals,
                view: View::Term,
                folding: Folding::None,
                argument: slot,
            } if class(*slot) == Class::Term => Some(*slot),
            _ => None,
        };
        match filter {
            Filter::Any(filters) => filters.iter().map(equal).collect(),
            filter => equal(filter).map(|slot| vec![slot]),
        }
    });
    let column = |test| Column { predicate, test, repeat: 0 };
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
