//! Subscriptions that differ in constants only, taken in by columns of these.
//!
//! Most of a table's rows are filed in the same way: their template is the same, and their
//! constants are compared as those of the row before. When one row was filed in a predicate table,
//! it is found out once where each constant goes there ([`Plan`]), and every further row costs its
//! constants and its name. A row whose constants are of another kind goes the way of all
//! subscriptions.
//!
//! Cost: half a microsecond for a row of ten intervals.

use super::{EXACT, Entry, IN_ROW, LONGEST_NAME, Number, Refusal, State, owner};
use crate::dictionary::{ANY, Dictionary, Id, inline};
use crate::index::Index;
use crate::pattern::{Branch, Comparison, Filter, Node};
use crate::query::{Slot, Template};
use crate::subscriptions::Record;
use crate::values::{Class, Literal, SortKey};
use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;

/// Texts one behind the other, as Arrow has them.
#[derive(Clone, Copy)]
pub struct Texts<'a> {
    /// All of them.
    pub text: &'a str,
    /// Where each begins, and the end of the last.
    pub offsets: &'a [i64],
}

impl<'a> Texts<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    /// A text by its number.
    pub fn get(&self, number: usize) -> Option<&'a str> {
        let &[begin, end] = self.offsets.get(number..number + 2)? else { return None };
        self.text.get(usize::try_from(begin).ok()?..usize::try_from(end).ok()?)
    }
}

/// The values of an attribute, a row each.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// `xsd:integer`s.
    Integers(&'a [i64]),
    /// What Python writes of floating-point numbers: with an exponent an `xsd:double`, otherwise an
    /// `xsd:decimal`.
    Floats(&'a [f64]),
    /// Places among terms, below zero where there is no value.
    Places(&'a [i32], &'a [String]),
}

impl Values<'_> {
    /// Writes a number as a term.
    pub fn write_number(&self, row: usize, text: &mut Vec<u8>) {
        // Writing to a vector cannot fail.
        let _ = match self {
            Self::Integers(values) => write_integer(values.get(row).copied().unwrap_or(0), text),
            Self::Floats(values) => write_float(values.get(row).copied().unwrap_or(0.0), text),
            Self::Places(..) => Ok(()),
        };
    }
}

/// Writes an integer as a term.
fn write_integer(value: i64, text: &mut Vec<u8>) -> std::io::Result<()> {
    write!(text, "\"{value}\"^^<http://www.w3.org/2001/XMLSchema#integer>")
}

/// Writes a number as Python does: the shortest digits that are read as it again, with an exponent
/// where it is below 10⁻⁴ or from 10¹⁶ on.
fn write_float(value: f64, text: &mut Vec<u8>) -> std::io::Result<()> {
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) || value == 0.0 {
        let point = if value.fract() == 0.0 { ".0" } else { "" };
        return write!(text, "\"{value}{point}\"^^<http://www.w3.org/2001/XMLSchema#decimal>");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let exponent = exponent.unsigned_abs();
    write!(text, "\"{digits}e{sign}{exponent:02}\"^^<http://www.w3.org/2001/XMLSchema#double>")
}

/// A constant of all rows, or one for each.
pub enum Constants<'a> {
    /// The same.
    Same(&'a str),
    /// A column.
    Each(Values<'a>),
}

/// Rows of constants.
pub struct Rows<'a> {
    /// The names.
    pub names: Texts<'a>,
    /// A column for each constant of the text, in their order.
    pub columns: Vec<Constants<'a>>,
    /// Which rows are meant.
    pub chosen: &'a [i64],
}

/// A column whose terms are looked up when they are first met.
struct Source<'a> {
    constants: &'a Constants<'a>,
    ids: Vec<Option<Id>>,
}

impl<'a> Source<'a> {
    fn new(constants: &'a Constants<'a>) -> Self {
        let many = match constants {
            Constants::Each(Values::Places(_, terms)) => terms.len(),
            Constants::Each(_) => 0,
            Constants::Same(_) => 1,
        };
        Self { constants, ids: vec![None; many] }
    }

    /// The id of a row's constant, which is mentioned once more; nothing where it has none.
    fn id(&mut self, row: usize, dictionary: &mut Dictionary, text: &mut Vec<u8>) -> Option<Id> {
        let mut remembered = |place: usize, text: &str| {
            let slot = self.ids.get_mut(place)?;
            let id = *slot.get_or_insert_with(|| dictionary.intern(text.as_bytes()));
            dictionary.retain(id);
            Some(id)
        };
        match self.constants {
            Constants::Same(text) => remembered(0, text),
            Constants::Each(Values::Places(places, terms)) => {
                let place = usize::try_from(*places.get(row)?).ok()?;
                remembered(place, terms.get(place)?)
            }
            Constants::Each(numbers) => {
                if let Values::Integers(values) = numbers
                    && let Some(id) = inline::integer(*values.get(row)?)
                {
                    return Some(id);
                }
                text.clear();
                numbers.write_number(row, text);
                Some(dictionary.intern(text))
            }
        }
    }
}

/// What a constant of a row has to be for its row to be filed as the rows before.
#[derive(Clone, Copy)]
enum Role {
    /// This constant, which is filed as the other.
    Fixed(Id, Id),
    /// Any object.
    Object,
    /// A bound, or what a value is equal to, of a class.
    Compared(Class),
}

/// Where the constants of a template's rows go in a predicate table.
struct Plan {
    /// A row that is filed so, as the index knows it.
    like: u32,
    roles: Vec<Role>,
    /// By constant of the table's template: its number among all constants of the query.
    slots: Vec<usize>,
    /// The constants that all queries of the template have behind those of their text.
    constant: Vec<Id>,
    /// Those of them that are in its branch, as often as they are.
    fixed: Vec<Id>,
    /// What all rows mention.
    mentions: Vec<(Id, Id)>,
    /// What rows mention of their own: a property, and the number of the object's constant.
    own: Vec<(Id, usize)>,
    /// How many rows were filed by it.
    uses: u32,
    flags: u8,
    filed: Vec<Id>,
    constants: Vec<Id>,
}

/// What a constant is in a branch.
enum At {
    Node,
    Object { property: Option<usize> },
    Compared { operator: Comparison, variable: u16 },
    Tested,
}

/// Tells the number and the id of each constant of a template's only branch, filters last; false
/// where the branch is not the template's but for constants.
fn each_slot(template: &Template, branch: &Branch, tell: &mut dyn FnMut(usize, Id, At)) -> bool {
    fn of_filter(
        test: &Filter<Slot>,
        filter: &Filter,
        variable: u16,
        tell: &mut dyn FnMut(usize, Id, At),
    ) -> bool {
        let (slot, constant, at) = match (test, filter) {
            (
                Filter::Compare { operator, constant: slot },
                Filter::Compare { operator: same, constant },
            ) if operator == same => {
                (slot, constant, At::Compared { operator: *operator, variable })
            }
            (Filter::Compare { constant: slot, .. }, Filter::Text { argument, .. })
            | (Filter::Text { argument: slot, .. }, Filter::Text { argument, .. })
            | (
                Filter::Taxonomy { concept: slot, .. },
                Filter::Taxonomy { concept: argument, .. },
            ) => (slot, argument, At::Tested),
            (Filter::Any(tests), Filter::Any(filters)) if tests.len() == filters.len() => {
                let mut alone = |slot, id, _: At| tell(slot, id, At::Tested);
                return tests
                    .iter()
                    .zip(filters)
                    .all(|(test, filter)| of_filter(test, filter, variable, &mut alone));
            }
            _ => return false,
        };
        let (Slot::Constant(slot) | Slot::Folded(slot, _)) = slot else { return false };
        tell(*slot as usize, *constant, at);
        true
    }
    let Some((patterns, filters)) = template.only_branch() else { return false };
    if patterns.len() != branch.patterns.len() || filters.len() != branch.filters.len() {
        return false;
    }
    for (nodes, pattern) in patterns.iter().zip(&branch.patterns) {
        for (number, (node, given)) in nodes.iter().zip(pattern).enumerate() {
            match (node, given) {
                (Node::Constant(slot), Node::Constant(id)) => {
                    let property = match nodes[1] {
                        Node::Constant(property) => Some(property as usize),
                        Node::Variable(_) => None,
                    };
                    let at = if number == 2 { At::Object { property } } else { At::Node };
                    tell(*slot as usize, *id, at);
                }
                (Node::Variable(one), Node::Variable(other)) if one == other => {}
                _ => return false,
            }
        }
    }
    filters.iter().zip(&branch.filters).all(|((variable, test), (same, filter))| {
        variable == same && of_filter(test, filter, *variable, tell)
    })
}

/// The constants of a query's text, as many as said, by its only branch; nothing where the branch
/// does not have them all.
pub(super) fn constants_of(template: &Template, branch: &Branch, count: usize) -> Option<Vec<Id>> {
    let mut constants = vec![ANY; count];
    let is_whole = each_slot(template, branch, &mut |slot, id, _| {
        if let Some(constant) = constants.get_mut(slot) {
            *constant = id;
        }
    });
    (is_whole && !constants.contains(&ANY)).then_some(constants)
}

impl State {
    /// Takes rows in that have a text in common but for its constants. Of those that are chosen
    /// `some` are looked at. Returns the ones that were refused, and why.
    pub fn subscribe_rows(
        &mut self,
        text: &str,
        rows: &Rows,
        some: Range<usize>,
    ) -> Result<Vec<(usize, Refusal)>, Refusal> {
        let template = self.template(text)?;
        if rows.columns.len() != self.cut.len() {
            self.templates.drop_unused(template, &mut self.dictionary);
            return Err(Refusal::Full("the rows have another number of constants than the text"));
        }
        let mut sources: Vec<Source> = rows.columns.iter().map(Source::new).collect();
        let (mut plan, mut refused) = (None, Vec::new());
        let (mut constants, mut written) = (Vec::with_capacity(sources.len()), Vec::new());
        for number in some {
            let row = rows.chosen.get(number).and_then(|&row| usize::try_from(row).ok());
            let Some((row, name)) = row.and_then(|row| Some((row, rows.names.get(row)?))) else {
                continue;
            };
            if self.subscriptions.find(name).is_some() {
                refused.push((number, Refusal::Duplicate));
                continue;
            }
            if name.len() > LONGEST_NAME {
                refused.push((number, Refusal::Full("its id is longer than 65,535 bytes")));
                continue;
            }
            constants.clear();
            let dictionary = &mut self.dictionary;
            constants.extend(
                sources.iter_mut().map_while(|source| source.id(row, dictionary, &mut written)),
            );
            if constants.len() < sources.len() {
                constants.iter().for_each(|&id| self.dictionary.release(id));
                refused.push((number, Refusal::Full("it has no value for one of its tests")));
                continue;
            }
            let taken = match &mut plan {
                Some(plan) => self.keep_by(plan, template, name, &constants),
                None => None,
            };
            if taken.is_some() {
                continue;
            }
            match self.file(name, template, constants.clone(), None) {
                Ok(number) if plan.is_none() => plan = self.plan(number),
                Ok(_) => {}
                Err(error) => refused.push((number, error)),
            }
        }
        if let Some(plan) = plan {
            for mention in plan.mentions {
                let uses = i32::try_from(plan.uses).unwrap_or(i32::MAX);
                self.mentions.count(mention, uses, &self.dictionary.text(mention.0));
            }
        }
        let ids = sources.into_iter().flat_map(|source| source.ids).flatten();
        ids.for_each(|id| self.dictionary.release(id));
        self.templates.drop_unused(template, &mut self.dictionary);
        Ok(refused)
    }

    /// How rows are filed that differ from a subscription in constants only; nothing where it is
    /// not in a predicate table, or where that cannot be said.
    fn plan(&self, number: Number) -> Option<Plan> {
        let record = self.subscriptions.get(number);
        let &[row] = record.rows() else { return None };
        let like = self.index.table_row(row).filter(|_| record.is(EXACT))?;
        let template = self.templates.get(record.template())?;
        let (given, filed) = (self.constants(number), self.filed(number));
        let all = self.all_constants(record.template(), &filed);
        let mut roles: Vec<Role> =
            given.iter().zip(filed.iter()).map(|(&one, &filed)| Role::Fixed(one, filed)).collect();
        let (mut slots, mut properties, mut compared) = (Vec::new(), Vec::new(), Vec::new());
        let (mut mentions, mut own) = (Vec::new(), Vec::new());
        let mut is_plain = true;
        let (mut times, mut fixed) = (vec![0; given.len()], Vec::new());
        let is_whole = each_slot(&template, &self.index.branch(row), &mut |slot, id, at| {
            is_plain &= all.get(slot) == Some(&id);
            match times.get_mut(slot) {
                Some(times) => *times += 1,
                None => fixed.push(id),
            }
            match at {
                At::Node => properties.push(id),
                At::Object { property } => {
                    slots.push(slot);
                    let property = property.and_then(|slot| all.get(slot));
                    if let (Some(&property), Some(role)) = (property, roles.get_mut(slot))
                        && !self.ontology.meets([ANY, property, ANY])
                    {
                        *role = Role::Object;
                        own.push((property, slot));
                    }
                }
                At::Compared { operator, variable } => {
                    slots.push(slot);
                    compared.push((variable, operator));
                    let class = SortKey::of_term(id, &self.dictionary).class;
                    let is_line = class.is_ordered() && operator != Comparison::Unequal;
                    let is_term = class == Class::Term && operator == Comparison::Equal;
                    if let Some(role) = roles.get_mut(slot)
                        && (is_line || is_term && self.is_plain(id))
                    {
                        *role = Role::Compared(class);
                    }
                }
                At::Tested => slots.push(slot),
            }
        });
        let is_distinct = |count: usize, length: usize| count == length;
        let (count, pairs) = (properties.len(), compared.len());
        properties.sort_unstable();
        properties.dedup();
        compared.sort_unstable_by_key(|(variable, operator)| (*variable, *operator as u8));
        compared.dedup();
        if !is_whole
            || !is_plain
            || times.iter().any(|&times| times != 1)
            || !is_distinct(count, properties.len())
            || !is_distinct(pairs, compared.len())
        {
            return None;
        }
        for (property, object) in template.mentions(&all) {
            if !own.iter().any(|&(of, slot)| of == property && all[slot] == object) {
                mentions.push((property, object));
            }
        }
        Some(Plan {
            like,
            roles,
            slots,
            constant: all[given.len()..].to_vec(),
            fixed,
            mentions,
            own,
            uses: 0,
            flags: record.flags() & !IN_ROW,
            filed: Vec::new(),
            constants: Vec::new(),
        })
    }

    /// Whether a constant has no language.
    fn is_plain(&self, id: Id) -> bool {
        inline::is_inline(id)
            || Literal::of(&self.dictionary.text(id)).is_none_or(|literal| literal.tag.is_none())
    }

    /// Keeps a row by a plan; nothing where that does not hold for it.
    fn keep_by(
        &mut self,
        plan: &mut Plan,
        template: u32,
        name: &str,
        constants: &[Id],
    ) -> Option<Number> {
        let Plan { roles, filed, .. } = plan;
        filed.clear();
        for (slot, (&id, role)) in constants.iter().zip(roles).enumerate() {
            filed.push(match *role {
                Role::Fixed(given, filed) if id == given => filed,
                Role::Fixed(..) => return None,
                Role::Object => self.rooted_one(template, slot, id)?,
                Role::Compared(class) => {
                    let id = self.rooted_one(template, slot, id)?;
                    let own = SortKey::of_term(id, &self.dictionary).class;
                    let is_alike = own == class && (class != Class::Term || self.is_plain(id));
                    is_alike.then_some(id)?
                }
            });
        }
        let all = |slot: usize| {
            let fixed = || plan.constant.get(slot - filed.len()).copied().unwrap_or(ANY);
            filed.get(slot).copied().unwrap_or_else(fixed)
        };
        plan.constants.clear();
        plan.constants.extend(plan.slots.iter().map(|&slot| all(slot)));
        let row = self.index.add_alike(plan.like, &plan.constants, &self.dictionary)?;
        // once for the subscription, and once for its row
        let dictionary = &mut self.dictionary;
        filed.iter().chain(filed.iter()).for_each(|&id| dictionary.retain(id));
        plan.fixed.iter().for_each(|&id| dictionary.retain(id));
        let is_in_row = filed == constants;
        let flags = plan.flags | if is_in_row { IN_ROW } else { 0 };
        let (constants, filed) =
            if is_in_row { (&[][..], &[][..]) } else { (constants, &filed[..]) };
        let entry = Entry { name, template, constants, filed, rows: &[row], flags };
        let Some(number) = self.own(entry, None) else {
            self.take_row(row);
            plan.filed.iter().for_each(|&id| self.dictionary.release(id));
            return None;
        };
        for &(property, slot) in &plan.own {
            let text = self.dictionary.text(property);
            self.mentions.count((property, plan.filed[slot]), 1, &text);
        }
        plan.uses += 1;
        Some(number)
    }

    /// Adds a subscription to the others, or keeps one otherwise than before, as the owner of its
    /// rows; nothing where there is no room.
    pub(super) fn own(&mut self, entry: Entry, before: Option<Number>) -> Option<Number> {
        let number = match before {
            Some(number) => self.subscriptions.change(number, entry).then_some(number)?,
            None => self.subscriptions.add(entry)?,
        };
        for &row in entry.rows {
            self.index.set_owner(row, owner(number, entry.flags));
        }
        if before.is_none() {
            self.templates.retain(entry.template);
        }
        Some(number)
    }

    /// The constants of a subscription as they were submitted.
    pub(super) fn constants(&self, number: Number) -> Cow<'_, [Id]> {
        let record = self.subscriptions.get(number);
        self.in_row(number).map_or(Cow::Borrowed(record.constants()), Cow::Owned)
    }

    /// The constants of a subscription as it is filed: root terms put in, in base units.
    pub(super) fn filed(&self, number: Number) -> Cow<'_, [Id]> {
        let record = self.subscriptions.get(number);
        self.in_row(number).map_or(Cow::Borrowed(record.filed()), Cow::Owned)
    }

    fn in_row(&self, number: Number) -> Option<Vec<Id>> {
        let record = self.subscriptions.get(number);
        in_row(&*self.templates.get(record.template())?, &self.index, record)
    }
}

/// The constants of a subscription that only its row has.
pub(super) fn in_row(template: &Template, index: &Index, record: Record) -> Option<Vec<Id>> {
    let (&[row], true) = (record.rows(), record.is(IN_ROW)) else { return None };
    constants_of(template, &index.branch(row), template.slots())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::Cutter;
    use crate::limits::Limits;

    const XSD: &str = "http://www.w3.org/2001/XMLSchema#";

    fn state() -> State {
        State::new(Cutter::new([], Limits::default()))
    }

    #[test]
    fn numbers_are_written_as_python_does() {
        let values = [0.0, -0.0, 1.0, 0.1, 1e-4, 1e-5, 123456.789, 1e15, 1e16, 1.5e300, -2.5e-7];
        let written = [
            "0.0",
            "-0.0",
            "1.0",
            "0.1",
            "0.0001",
            "1e-05",
            "123456.789",
            "1000000000000000.0",
            "1e+16",
            "1.5e+300",
            "-2.5e-07",
        ];
        for (row, digits) in written.iter().enumerate() {
            let mut text = Vec::new();
            Values::Floats(&values).write_number(row, &mut text);
            let datatype = if digits.contains('e') { "double" } else { "decimal" };
            let expected = format!("\"{digits}\"^^<{XSD}{datatype}>");
            assert_eq!(String::from_utf8(text).unwrap(), expected);
        }
    }

    #[test]
    fn rows_are_what_they_are_one_by_one() {
        let query = |brand: &str, low: i64, high: &str| {
            format!(
                "SELECT ?e WHERE {{ ?e <urn:brand> \"{brand}\" ; <urn:price> ?p ; <urn:kind> \
                 <urn:k> . FILTER(?p >= \"{low}\"^^<{XSD}integer>) FILTER(?p < \
                 \"{high}\"^^<{XSD}decimal>) }}"
            )
        };
        let count = 1000;
        let lows: Vec<i64> =
            (0..count).map(|n| n % 97 + if n % 50 == 0 { 1 << 40 } else { 0 }).collect();
        let highs: Vec<f64> = (0..count).map(|n| n as f64 / 4.0).collect();
        let brands: Vec<String> = (0..7).map(|n| format!("\"b{n}\"")).collect();
        let places: Vec<i32> = (0..count as i32).map(|n| n % 7).collect();
        let names: Vec<String> = (0..count).map(|n| format!("s{n}")).collect();
        let mut offsets = vec![0];
        offsets.extend(names.iter().scan(0, |end, name| {
            *end += name.len() as i64;
            Some(*end)
        }));
        let rows = Rows {
            names: Texts { text: &names.concat(), offsets: &offsets },
            columns: vec![
                Constants::Same("<urn:brand>"),
                Constants::Each(Values::Places(&places, &brands)),
                Constants::Same("<urn:price>"),
                Constants::Same("<urn:kind>"),
                Constants::Same("<urn:k>"),
                Constants::Each(Values::Integers(&lows)),
                Constants::Each(Values::Floats(&highs)),
            ],
            chosen: &(0..count).collect::<Vec<i64>>(),
        };
        let (mut one, mut other) = (state(), state());
        let text = |n: usize| {
            let high = format!("{}{}", highs[n], if highs[n].fract() == 0.0 { ".0" } else { "" });
            query(&brands[places[n] as usize][1..3], lows[n], &high)
        };
        for begin in (0..count as usize).step_by(300) {
            let end = (begin + 300).min(count as usize);
            let refused = one.subscribe_rows(&text(begin), &rows, begin..end).unwrap();
            assert!(refused.is_empty());
        }
        for (n, name) in names.iter().enumerate() {
            other.subscribe(name, &text(n), None).unwrap();
        }
        let last = one.subscriptions.find(&names[999]).unwrap();
        assert!(one.plan(last).is_some());
        assert!(one.subscriptions.get(last).is(IN_ROW));
        let mentions = |state: &State| {
            let mut all: Vec<(String, String, u32)> = state
                .mentions
                .counted()
                .map(|((p, o), times)| {
                    let text =
                        |id: Id| String::from_utf8_lossy(&state.dictionary.text(id)).into_owned();
                    (text(p), if o == ANY { String::new() } else { text(o) }, times)
                })
                .collect();
            all.sort();
            all
        };
        assert_eq!(mentions(&one), mentions(&other));
        for name in &names {
            let [a, b] =
                [&one, &other].map(|state| state.text(state.subscriptions.find(name).unwrap()));
            assert_eq!(a, b);
        }
        assert!(matches!(
            one.subscribe_rows(&text(0), &rows, 0..1).unwrap()[..],
            [(0, Refusal::Duplicate)]
        ));
        for name in &names {
            one.unsubscribe(one.subscriptions.find(name).unwrap());
        }
        assert!(one.subscriptions.is_empty() && one.templates.len() == 0);
        assert_eq!(mentions(&one), vec![]);
    }
}
