//! The algebra of a query to branches of necessary patterns and filters.
//!
//! Every solution of a pattern satisfies all triple patterns and filters of one of its branches: a
//! basic graph pattern is one branch, a join multiplies branches, a union adds them. What only
//! takes away from solutions or adds to them (OPTIONAL, MINUS, most functions) is left open, by
//! name. A sequence path is several patterns with fresh variables, an alternative path a union.
//!
//! Recursion is as deep as the query; its depth is bounded before it is parsed.
//!
//! Source: SPARQL 1.1, sections 9 and 18.2 (translation to the algebra).

use crate::cut::{slot_of_iri, slot_of_literal};
use crate::pattern::{Comparison, Folding, TaxonomyOperator, TextOperator, View};
use crate::query::Test;
use hashbrown::{HashMap, HashSet};
use oxrdf::{Literal, NamedNode};
use spargebra::algebra::{
    AggregateExpression, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression as Path,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::borrow::Cow;

/// The bit of a place that says that it is a variable; without it, it is a constant's number.
pub(crate) const VARIABLE: u32 = 1 << 31;
/// What a pattern asks for in a place where it has a variable.
pub(crate) const OPEN: u32 = u32::MAX;
/// The namespace of the functions of filters.
pub(crate) const GM: &str = "urn:graphmatch:";
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
const TOO_MANY: &str = "more branches than subscription_branches";
const CASTS: [&str; 12] = [
    "string",
    "boolean",
    "double",
    "float",
    "integer",
    "decimal",
    "date",
    "time",
    "dateTime",
    "duration",
    "yearMonthDuration",
    "dayTimeDuration",
];

/// A pattern as places.
pub(crate) type Places = [u32; 3];

/// The patterns and the expressions right inside a pattern.
pub(crate) fn parts_mut(
    pattern: &mut GraphPattern,
) -> (Vec<&mut GraphPattern>, Vec<&mut Expression>) {
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } | GraphPattern::Values { .. } => {
            (vec![], vec![])
        }
        GraphPattern::Join { left, right }
        | GraphPattern::Union { left, right }
        | GraphPattern::Minus { left, right } => (vec![left, right], vec![]),
        GraphPattern::LeftJoin { left, right, expression } => {
            (vec![left, right], expression.iter_mut().collect())
        }
        GraphPattern::Filter { inner, expr: expression }
        | GraphPattern::Extend { inner, expression, .. } => (vec![inner], vec![expression]),
        GraphPattern::OrderBy { inner, expression } => {
            let mut all = Vec::new();
            for one in expression {
                let (OrderExpression::Asc(one) | OrderExpression::Desc(one)) = one;
                all.push(one);
            }
            (vec![inner], all)
        }
        GraphPattern::Group { inner, aggregates, .. } => {
            let mut all = Vec::new();
            for (_, aggregate) in aggregates {
                if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                    all.push(expr);
                }
            }
            (vec![inner], all)
        }
        GraphPattern::Graph { inner, .. }
        | GraphPattern::Service { inner, .. }
        | GraphPattern::Lateral { left: inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. } => (vec![inner], vec![]),
    }
}

/// Makes a function for reading and one for changing the parts of expressions.
macro_rules! operands {
    ($name:ident $(, $mut:tt)?) => {
        /// The expressions right inside an expression.
        pub(crate) fn $name(expression: &$($mut)? Expression) -> Vec<&$($mut)? Expression> {
            match expression {
                Expression::NamedNode(_)
                | Expression::Literal(_)
                | Expression::Variable(_)
                | Expression::Bound(_)
                | Expression::Exists(_) => vec![],
                Expression::Or(left, right)
                | Expression::And(left, right)
                | Expression::Equal(left, right)
                | Expression::SameTerm(left, right)
                | Expression::Less(left, right)
                | Expression::LessOrEqual(left, right)
                | Expression::Greater(left, right)
                | Expression::GreaterOrEqual(left, right)
                | Expression::Add(left, right)
                | Expression::Subtract(left, right)
                | Expression::Multiply(left, right)
                | Expression::Divide(left, right) => vec![left, right],
                Expression::UnaryPlus(inner)
                | Expression::UnaryMinus(inner)
                | Expression::Not(inner) => vec![inner],
                Expression::If(condition, left, right) => vec![condition, left, right],
                Expression::Coalesce(all) | Expression::FunctionCall(_, all) => {
                    all.into_iter().collect()
                }
                Expression::In(value, list) => {
                    let mut all: Vec<&$($mut)? Expression> = vec![value];
                    all.extend(list);
                    all
                }
            }
        }
    };
}

operands!(operands);
operands!(operands_mut, mut);

/// A comparison as such; `!(a = b)` is one.
pub(crate) fn comparison_of(
    expression: &Expression,
) -> Option<(Comparison, &Expression, &Expression)> {
    Some(match expression {
        Expression::Equal(left, right) => (Comparison::Equal, left, right),
        Expression::Less(left, right) => (Comparison::Less, left, right),
        Expression::LessOrEqual(left, right) => (Comparison::LessOrEqual, left, right),
        Expression::Greater(left, right) => (Comparison::Greater, left, right),
        Expression::GreaterOrEqual(left, right) => (Comparison::GreaterOrEqual, left, right),
        Expression::Not(inner) => match comparison_of(inner)? {
            (Comparison::Equal, left, right) => (Comparison::Unequal, left, right),
            (Comparison::Unequal, left, right) => (Comparison::Equal, left, right),
            _ => return None,
        },
        _ => return None,
    })
}

/// A comparison with its sides changed.
pub(crate) fn mirrored(operator: Comparison) -> Comparison {
    match operator {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

/// A branch in the making.
#[derive(Clone, Default)]
pub(crate) struct Draft {
    pub patterns: Vec<Places>,
    pub filters: Vec<(u32, Test)>,
    /// The ends of paths of at least one step.
    ends: Vec<u32>,
}

/// The numbers of a query's constants: its slots, and behind them the terms of RDF's vocabulary
/// that the parser adds.
#[derive(Default)]
pub(crate) struct Constants {
    pub slots: u32,
    pub fixed: Vec<String>,
}

impl Constants {
    fn fixed(&mut self, text: String) -> u32 {
        let known = self.fixed.iter().position(|fixed| *fixed == text);
        let index = known.unwrap_or_else(|| {
            self.fixed.push(text);
            self.fixed.len() - 1
        });
        self.slots + index as u32
    }

    pub fn iri(&mut self, iri: &NamedNode) -> u32 {
        slot_of_iri(iri.as_str()).unwrap_or_else(|| self.fixed(iri.to_string()))
    }

    pub fn literal(&mut self, literal: &Literal) -> u32 {
        slot_of_literal(literal).map_or_else(|| self.fixed(literal.to_string()), |slot| slot.0)
    }
}

fn is_quantity(literal: &Literal) -> bool {
    slot_of_literal(literal).is_some_and(|slot| slot.1)
}

/// What is wrong with a query that parses.
pub(crate) enum Misuse {
    /// A function that nobody knows, or with another number of arguments.
    Function(String),
    /// A quantity that is not compared with a variable, by its number.
    Quantity(u32),
}

/// Whether a path holds between a node and itself without any triple.
fn path_may_be_empty(path: &Path) -> bool {
    match path {
        Path::ZeroOrMore(_) | Path::ZeroOrOne(_) => true,
        Path::OneOrMore(path) | Path::Reverse(path) => path_may_be_empty(path),
        Path::Sequence(left, right) => path_may_be_empty(left) && path_may_be_empty(right),
        Path::Alternative(left, right) => path_may_be_empty(left) || path_may_be_empty(right),
        Path::NamedNode(_) | Path::NegatedPropertySet(_) => false,
    }
}

/// The properties that a path may go along; none for any.
fn all_steps(path: &Path) -> Vec<Option<&NamedNode>> {
    match path {
        Path::NamedNode(iri) => vec![Some(iri)],
        Path::NegatedPropertySet(_) => vec![None],
        Path::Sequence(left, right) | Path::Alternative(left, right) => {
            [all_steps(left), all_steps(right)].concat()
        }
        Path::Reverse(path)
        | Path::ZeroOrMore(path)
        | Path::OneOrMore(path)
        | Path::ZeroOrOne(path) => all_steps(path),
    }
}

/// The properties that a path may end with.
fn last_steps(path: &Path) -> Vec<&NamedNode> {
    match path {
        Path::NamedNode(iri) => vec![iri],
        Path::Sequence(_, last) => last_steps(last),
        Path::Alternative(left, right) => [last_steps(left), last_steps(right)].concat(),
        Path::ZeroOrMore(path) | Path::OneOrMore(path) | Path::ZeroOrOne(path) => last_steps(path),
        Path::Reverse(_) | Path::NegatedPropertySet(_) => Vec::new(),
    }
}

/// Whether a pattern has a solution in a graph without triples; `top` says that no subquery is
/// around it.
pub(crate) fn may_be_empty(pattern: &GraphPattern, top: bool) -> bool {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.is_empty(),
        GraphPattern::Path { path, .. } => path_may_be_empty(path),
        GraphPattern::Join { left, right } => may_be_empty(left, top) && may_be_empty(right, top),
        GraphPattern::Union { left, right } => may_be_empty(left, top) || may_be_empty(right, top),
        GraphPattern::Values { bindings, .. } => !bindings.is_empty(),
        // without GROUP BY a subquery has a row for no solutions
        GraphPattern::Group { variables, .. } if variables.is_empty() && !top => true,
        GraphPattern::Project { inner, .. } => may_be_empty(inner, false),
        GraphPattern::LeftJoin { left: inner, .. }
        | GraphPattern::Minus { left: inner, .. }
        | GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. }
        | GraphPattern::Lateral { left: inner, .. }
        | GraphPattern::Service { inner, .. } => may_be_empty(inner, top),
    }
}

/// The variables by which a SELECT groups, where it does.
fn grouping(mut pattern: &GraphPattern) -> Option<usize> {
    loop {
        pattern = match pattern {
            GraphPattern::Group { variables, .. } => return Some(variables.len()),
            GraphPattern::Extend { inner, .. }
            | GraphPattern::Filter { inner, .. }
            | GraphPattern::OrderBy { inner, .. } => inner,
            GraphPattern::Join { left, right }
                if matches!(right.as_ref(), GraphPattern::Values { .. }) =>
            {
                left
            }
            _ => return None,
        }
    }
}

// --- Branches -----------------------------------------------------------------------------------

/// What was found out about a query.
#[derive(Default)]
pub(crate) struct Analysis<'a> {
    pub constants: Constants,
    /// The names of variables; none for fresh ones.
    pub variables: Vec<Option<&'a str>>,
    /// Why the branches are not the whole query.
    pub remainder: Vec<Cow<'static, str>>,
    /// The patterns that a solution can rest on, each with its own variables.
    pub supports: Vec<Places>,
    /// The properties and objects that patterns ask for, those under MINUS and EXISTS included.
    pub mentions: Vec<[u32; 2]>,
    /// Literals that synonyms leave alone.
    pub kept: Vec<u32>,
    pub misuse: Option<Misuse>,
    /// Whether it is a DESCRIBE, in which IRIs are written as expressions.
    pub describe: bool,
    /// Subject, property, object, and the object if it is a constant, for units.
    pub stated: Vec<[u32; 4]>,
    /// Variables, the constants they are compared with, and whether for equality, for units.
    pub compared: Vec<(u32, u32, bool)>,
    most: usize,
    /// Whether what is looked at only takes solutions away.
    aside: bool,
    /// The ends of paths that may have no steps.
    loose: Vec<[u32; 2]>,
    supported: HashSet<Places>,
    mentioned: HashSet<[u32; 2]>,
    named: HashMap<&'a str, u32>,
    blanks: HashMap<&'a str, u32>,
}

impl<'a> Analysis<'a> {
    pub fn new(slots: u32, most: usize, describe: bool) -> Self {
        let constants = Constants { slots, ..Constants::default() };
        Self { constants, most: most.max(1), describe, ..Self::default() }
    }

    /// The branches of a whole query.
    pub fn query(&mut self, pattern: &'a GraphPattern) -> Vec<Draft> {
        let (inner, _) = self.modifiers(pattern);
        let branches = self.branches(inner);
        self.settle(&branches, 0);
        branches
    }

    pub fn leave_open(&mut self, reason: impl Into<Cow<'static, str>>) {
        let reason = reason.into();
        if !self.remainder.contains(&reason) {
            self.remainder.push(reason);
        }
    }

    pub fn mention(&mut self, property: u32, object: u32) {
        let [property, object] =
            [property, object].map(|place| if place & VARIABLE == 0 { place } else { OPEN });
        let mention = [property, if property == OPEN { OPEN } else { object }];
        if self.mentioned.insert(mention) {
            self.mentions.push(mention);
        }
    }

    fn fresh(&mut self) -> u32 {
        self.variables.push(None);
        VARIABLE | (self.variables.len() - 1) as u32
    }

    fn variable(&mut self, name: &'a str) -> u32 {
        *self.named.entry(name).or_insert_with(|| {
            self.variables.push(Some(name));
            VARIABLE | (self.variables.len() - 1) as u32
        })
    }

    fn term(&mut self, term: &'a TermPattern) -> u32 {
        match term {
            TermPattern::NamedNode(iri) => self.constants.iri(iri),
            TermPattern::Literal(literal) => self.constants.literal(literal),
            TermPattern::Variable(variable) => self.variable(variable.as_str()),
            TermPattern::BlankNode(node) => match self.blanks.get(node.as_str()) {
                Some(&known) => known,
                None => {
                    let fresh = self.fresh();
                    self.blanks.insert(node.as_str(), fresh);
                    fresh
                }
            },
            TermPattern::Triple(_) => {
                self.leave_open("triple term");
                self.fresh()
            }
        }
    }

    fn property(&mut self, property: &'a NamedNodePattern) -> u32 {
        match property {
            NamedNodePattern::NamedNode(iri) => self.constants.iri(iri),
            NamedNodePattern::Variable(variable) => self.variable(variable.as_str()),
        }
    }

    fn ground(&mut self, term: &GroundTerm) -> Option<u32> {
        match term {
            GroundTerm::NamedNode(iri) => Some(self.constants.iri(iri)),
            GroundTerm::Literal(literal) => Some(self.constants.literal(literal)),
            GroundTerm::Triple(_) => None,
        }
    }

    /// The triples of a CONSTRUCT, of which synonyms replace IRIs only.
    pub fn template(&mut self, template: &[TriplePattern]) {
        for end in template.iter().flat_map(|triple| [&triple.subject, &triple.object]) {
            match end {
                TermPattern::Literal(literal) => self.keep(literal),
                TermPattern::Triple(triple) => self.template(std::slice::from_ref(triple)),
                _ => {}
            }
        }
    }

    fn keep(&mut self, literal: &Literal) {
        let number = self.constants.literal(literal);
        self.kept.push(number);
    }

    /// Passes the operators that a SELECT ends with; returns what is inside, and the projection.
    fn modifiers(&mut self, mut pattern: &'a GraphPattern) -> (&'a GraphPattern, Option<Vec<u32>>) {
        let mut projected = None;
        loop {
            pattern = match pattern {
                GraphPattern::Slice { inner, .. } if projected.is_none() => {
                    self.leave_open("LIMIT or OFFSET");
                    inner
                }
                GraphPattern::Distinct { inner } | GraphPattern::Reduced { inner }
                    if projected.is_none() =>
                {
                    inner
                }
                GraphPattern::Project { inner, variables } if projected.is_none() => {
                    let variables = variables.iter().map(|one| self.variable(one.as_str()));
                    projected = Some(variables.collect());
                    inner
                }
                GraphPattern::OrderBy { inner, expression } => {
                    self.leave_open("ORDER BY");
                    for OrderExpression::Asc(one) | OrderExpression::Desc(one) in expression {
                        self.expression(one);
                    }
                    inner
                }
                _ => return (pattern, projected),
            }
        }
    }

    fn branches(&mut self, pattern: &'a GraphPattern) -> Vec<Draft> {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                let mut draft = Draft::default();
                for TriplePattern { subject, predicate, object } in patterns {
                    let subject = self.term(subject);
                    let predicate = self.property(predicate);
                    let object = self.term(object);
                    self.mention(predicate, object);
                    self.state(subject, predicate, object);
                    self.support([subject, predicate, object]);
                    draft.patterns.push([subject, predicate, object]);
                }
                vec![draft]
            }
            GraphPattern::Path { subject, path, object } => {
                let (subject, object) = (self.term(subject), self.term(object));
                self.path(subject, path, object)
            }
            GraphPattern::Join { left, right } => {
                let (left, right) = (self.branches(left), self.branches(right));
                self.bounded(joined(left, right))
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                self.leave_open("OPTIONAL");
                let required = self.branches(left);
                let before = self.remainder.len();
                self.branches(right); // for the patterns that a solution can rest on
                expression.iter().for_each(|one| self.expression(one));
                self.remainder.truncate(before);
                required
            }
            GraphPattern::Union { left, right } => {
                self.leave_open("UNION");
                let mut all = self.branches(left);
                all.append(&mut self.branches(right));
                self.bounded(all)
            }
            GraphPattern::Minus { left, right } => {
                self.leave_open("MINUS");
                let required = self.branches(left);
                self.look_aside(right);
                required
            }
            GraphPattern::Filter { expr, inner } => {
                let branches = self.branches(inner);
                self.expression(expr);
                self.filtered(branches, expr, grouping(inner).is_some())
            }
            GraphPattern::Extend { inner, variable, expression } => {
                if !(self.describe && matches!(expression, Expression::NamedNode(_))) {
                    self.leave_open("BIND or expression");
                }
                let mut branches = self.branches(inner);
                self.expression(expression);
                if let Some(&shadowed) = self.named.get(variable.as_str()) {
                    self.rename(&mut branches, |variable| variable == shadowed);
                }
                branches
            }
            GraphPattern::Graph { inner, .. } => {
                self.leave_open("GRAPH");
                self.branches(inner)
            }
            GraphPattern::Values { variables, bindings } => {
                self.leave_open("VALUES");
                for (variable, term) in bindings.iter().flat_map(|row| variables.iter().zip(row)) {
                    if let Some(number) = term.as_ref().and_then(|term| self.ground(term)) {
                        let variable = self.variable(variable.as_str());
                        self.compared.push((variable, number, true));
                    }
                }
                vec![Draft::default()]
            }
            GraphPattern::Group { inner, aggregates, .. } => {
                self.leave_open("aggregate");
                for (_, aggregate) in aggregates {
                    if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                        self.expression(expr);
                    }
                }
                self.branches(inner)
            }
            GraphPattern::Service { .. } | GraphPattern::Lateral { .. } => {
                vec![Draft::default()] // refused before it is parsed
            }
            GraphPattern::Project { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Slice { .. }
            | GraphPattern::OrderBy { .. } => self.subquery(pattern),
        }
    }

    fn subquery(&mut self, pattern: &'a GraphPattern) -> Vec<Draft> {
        self.leave_open("subquery");
        let loose = self.loose.len();
        let (inner, projected) = self.modifiers(pattern);
        let mut branches = self.branches(inner);
        self.settle(&branches, loose);
        if grouping(inner) == Some(0) {
            return vec![Draft::default()]; // it has a row for no solutions
        }
        if let Some(projected) = projected {
            let projected: HashSet<u32> = projected.into_iter().collect();
            self.rename(&mut branches, |variable| !projected.contains(&variable));
        }
        branches
    }

    /// Looks at patterns on which no solution rests, for what they mention.
    fn look_aside(&mut self, pattern: &'a GraphPattern) {
        let before = (self.remainder.len(), std::mem::replace(&mut self.aside, true));
        self.branches(pattern);
        self.remainder.truncate(before.0);
        self.aside = before.1;
    }

    /// Gives fresh variables for those that are others outside.
    fn rename(&mut self, branches: &mut [Draft], is_local: impl Fn(u32) -> bool) {
        let mut names: HashMap<u32, u32> = HashMap::new();
        for draft in branches {
            let tested = draft.filters.iter_mut().map(|filter| &mut filter.0);
            for place in draft.patterns.iter_mut().flatten().chain(tested).chain(&mut draft.ends) {
                let number = (*place & !VARIABLE) as usize;
                let is_named = *place & VARIABLE != 0 && self.variables[number].is_some();
                if is_named && is_local(*place) {
                    *place = *names.entry(*place).or_insert_with(|| {
                        self.variables.push(None);
                        VARIABLE | (self.variables.len() - 1) as u32
                    });
                }
            }
        }
    }

    /// The variables that the patterns of all branches bind; with the ends of paths, if asked.
    fn certain(branches: &[Draft], ends: bool) -> HashSet<u32> {
        let bound = |draft: &Draft| -> HashSet<u32> {
            let ends = if ends { draft.ends.as_slice() } else { &[] };
            draft.patterns.iter().flatten().chain(ends).copied().collect()
        };
        let mut all = branches.iter().map(bound);
        let first = all.next().unwrap_or_default();
        all.fold(first, |mut shared, other| {
            shared.retain(|place| other.contains(place));
            shared
        })
    }

    /// Notes that a path of no steps leads from any node to itself, where its ends are not bound.
    fn settle(&mut self, branches: &[Draft], from: usize) {
        if self.loose.len() > from {
            let certain = Self::certain(branches, true);
            let is_free = |end: &u32| end & VARIABLE != 0 && !certain.contains(end);
            if self.loose.drain(from..).any(|ends| ends.iter().all(is_free)) {
                self.mention(OPEN, OPEN);
            }
        }
    }

    fn filtered(
        &mut self,
        mut branches: Vec<Draft>,
        expression: &'a Expression,
        grouped: bool,
    ) -> Vec<Draft> {
        let certain = Self::certain(if grouped { &[] } else { &branches }, false);
        for part in conjuncts(expression) {
            let found = necessary(&part, &mut self.constants);
            let decides = found.as_ref().is_some_and(|taken| taken.decides);
            let found = found.and_then(|taken| {
                let variable =
                    self.named.get(taken.variable.as_str()).filter(|v| certain.contains(*v))?;
                Some((*variable, taken.test))
            });
            if found.is_none() || !decides {
                self.leave_open(format!("FILTER {}", word(&part)));
            }
            if let Some(filter) = found {
                branches.iter_mut().for_each(|draft| draft.filters.push(filter.clone()));
            }
        }
        branches
    }

    /// Keeps what all branches share when there are too many of them.
    fn bounded(&mut self, mut branches: Vec<Draft>) -> Vec<Draft> {
        if branches.len() <= self.most {
            return branches;
        }
        self.leave_open(TOO_MANY);
        let mut shared = branches.swap_remove(0);
        for other in &branches {
            let patterns: HashSet<&Places> = other.patterns.iter().collect();
            shared.patterns.retain(|pattern| patterns.contains(pattern));
            shared.filters.retain(|filter| other.filters.contains(filter));
            shared.ends.retain(|end| other.ends.contains(end));
        }
        vec![shared]
    }

    /// Notes a pattern that a solution can rest on.
    fn support(&mut self, mut pattern: Places) {
        let original = pattern;
        let mut next = VARIABLE;
        for at in (0..3).filter(|at| original[*at] & VARIABLE != 0) {
            let first = original[..at].iter().position(|place| *place == original[at]);
            pattern[at] = first.map_or(next, |first| pattern[first]);
            next += u32::from(first.is_none());
        }
        if !self.aside && self.supported.insert(pattern) {
            self.supports.push(pattern);
        }
    }

    /// Notes whose value an object is.
    fn state(&mut self, subject: u32, property: u32, object: u32) {
        if property & VARIABLE == 0 {
            let own = if object & VARIABLE == 0 { object } else { OPEN };
            self.stated.push([subject, property, object, own]);
        }
    }

    // --- Expressions ---

    fn expression(&mut self, expression: &'a Expression) {
        if let Some((operator, left, right)) = comparison_of(expression) {
            return self.comparison(operator, left, right);
        }
        match expression {
            Expression::Literal(literal) => {
                self.misplaced(literal);
                self.keep(literal);
            }
            Expression::In(value, list) => self.list(value, list, true),
            Expression::Not(inner) => match inner.as_ref() {
                Expression::In(value, list) => self.list(value, list, false),
                inner => self.expression(inner),
            },
            Expression::Exists(pattern) => self.look_aside(pattern),
            _ => {
                if let Expression::FunctionCall(Function::Custom(name), arguments) = expression {
                    self.custom(name, arguments.len());
                }
                operands(expression).into_iter().for_each(|one| self.expression(one));
            }
        }
    }

    fn custom(&mut self, name: &NamedNode, arguments: usize) {
        let known = match (name.as_str().strip_prefix(GM), name.as_str().strip_prefix(XSD)) {
            (Some("descendantOf" | "ancestorOf" | "childOf" | "compare"), _) => true,
            (_, Some(cast)) => CASTS.contains(&cast) && arguments == 1,
            _ => false,
        };
        if !known {
            self.misuse.get_or_insert(Misuse::Function(name.to_string()));
        }
    }

    fn misplaced(&mut self, literal: &Literal) {
        if let Some((number, true)) = slot_of_literal(literal) {
            match &mut self.misuse {
                Some(Misuse::Quantity(first)) => *first = number.min(*first),
                misuse => *misuse = Some(Misuse::Quantity(number)),
            }
        }
    }

    fn comparison(&mut self, operator: Comparison, left: &'a Expression, right: &'a Expression) {
        let same = operator == Comparison::Equal;
        for (one, other) in [(left, right), (right, left)] {
            if let Expression::Literal(literal) = one {
                if !matches!(other, Expression::Variable(_)) {
                    self.misplaced(literal);
                }
                if !same && operator != Comparison::Unequal {
                    self.keep(literal);
                }
            }
            self.compared_with(other, one, same);
        }
    }

    fn list(&mut self, value: &'a Expression, list: &'a [Expression], same: bool) {
        for one in list {
            match one {
                // among other inequalities it would be an error
                Expression::Literal(literal) if !same => self.misplaced(literal),
                _ => {}
            }
            self.compared_with(value, one, same);
        }
        match value {
            Expression::Literal(literal) => self.misplaced(literal),
            value => self.expression(value),
        }
    }

    /// Looks at an operand, and notes its constant where a variable is compared with it.
    fn compared_with(&mut self, other: &'a Expression, one: &'a Expression, same: bool) {
        let number = match one {
            Expression::Literal(literal) => self.constants.literal(literal),
            Expression::NamedNode(iri) => self.constants.iri(iri),
            one => return self.expression(one),
        };
        if let Expression::Variable(variable) = other {
            let variable = self.variable(variable.as_str());
            self.compared.push((variable, number, same));
        }
    }

    // --- Paths ---

    fn path(&mut self, subject: u32, path: &'a Path, object: u32) -> Vec<Draft> {
        let (steps, open) = self.expand(subject, path, object);
        if open.is_empty() {
            steps.iter().flatten().for_each(|pattern| self.support(*pattern));
        }
        for step in all_steps(path) {
            let step = step.map_or(VARIABLE | 2, |iri| self.constants.iri(iri));
            self.mention(step, OPEN);
            if !open.is_empty() {
                self.support([VARIABLE, step, VARIABLE | 1]); // any that a walk can use
            }
        }
        for last in last_steps(path) {
            let property = self.constants.iri(last);
            self.state(subject, property, object);
        }
        open.into_iter().for_each(|reason| self.leave_open(reason));
        if steps.len() > 1 {
            self.leave_open("path |");
        }
        let ends = if path_may_be_empty(path) {
            self.loose.push([subject, object]);
            Vec::new()
        } else {
            vec![subject, object]
        };
        let draft = |patterns| Draft { patterns, ends: ends.clone(), filters: Vec::new() };
        self.bounded(steps.into_iter().map(draft).collect())
    }

    /// Alternatives of patterns of which one holds wherever the path does, and why they may hold
    /// where it does not.
    fn expand(
        &mut self,
        subject: u32,
        path: &'a Path,
        object: u32,
    ) -> (Vec<Vec<Places>>, Vec<&'static str>) {
        match path {
            Path::NamedNode(iri) => {
                (vec![vec![[subject, self.constants.iri(iri), object]]], Vec::new())
            }
            Path::Reverse(path) => self.expand(object, path, subject),
            Path::Alternative(left, right) if is_negated(left) && is_negated(right) => {
                (vec![Vec::new()], vec!["path !"])
            }
            Path::Alternative(left, right) => {
                let (mut steps, mut open) = self.expand(subject, left, object);
                let (mut more, mut why) = self.expand(subject, right, object);
                steps.append(&mut more);
                open.append(&mut why);
                (steps, open)
            }
            Path::Sequence(left, right) => {
                let middle = self.fresh();
                let (steps, mut open) = self.expand(subject, left, middle);
                let (more, mut why) = self.expand(middle, right, object);
                open.append(&mut why);
                if steps.len() * more.len() > self.most {
                    open.push(TOO_MANY);
                    return (if steps.len() <= self.most { steps } else { more }, open);
                }
                let both = |a: &Vec<Places>| {
                    more.iter().map(|b| [a.as_slice(), b].concat()).collect::<Vec<_>>()
                };
                (steps.iter().flat_map(both).collect(), open)
            }
            Path::NegatedPropertySet(_) => (vec![Vec::new()], vec!["path !"]),
            Path::OneOrMore(path) => {
                let next = self.fresh();
                (self.expand(subject, path, next).0, vec!["path +"])
            }
            Path::ZeroOrMore(_) => (vec![Vec::new()], vec!["path *"]),
            Path::ZeroOrOne(_) => (vec![Vec::new()], vec!["path ?"]),
        }
    }
}

fn is_negated(path: &Path) -> bool {
    match path {
        Path::NegatedPropertySet(_) => true,
        Path::Reverse(path) => matches!(path.as_ref(), Path::NegatedPropertySet(_)),
        _ => false,
    }
}

fn joined(mut left: Vec<Draft>, mut right: Vec<Draft>) -> Vec<Draft> {
    if let ([one], [other]) = (left.as_mut_slice(), right.as_mut_slice()) {
        one.patterns.append(&mut other.patterns);
        one.filters.append(&mut other.filters);
        one.ends.append(&mut other.ends);
        return left;
    }
    let both = |a: &Draft| {
        let with = |b: &Draft| Draft {
            patterns: [a.patterns.as_slice(), &b.patterns].concat(),
            filters: [a.filters.as_slice(), &b.filters].concat(),
            ends: [a.ends.as_slice(), &b.ends].concat(),
        };
        right.iter().map(with).collect::<Vec<_>>()
    };
    left.iter().flat_map(both).collect()
}

// --- Filters ------------------------------------------------------------------------------------

/// A filter that every solution passes, and whether it says all that its expression does.
struct Taken {
    variable: String,
    test: Test,
    decides: bool,
}

/// The parts of a conjunction: a filter is true when all of them are.
fn conjuncts(expression: &Expression) -> Vec<Cow<'_, Expression>> {
    let (mut found, mut rest) = (Vec::new(), vec![expression]);
    while let Some(next) = rest.pop() {
        match next {
            Expression::And(left, right) => rest.extend([right.as_ref(), left]),
            Expression::Not(inner) => match inner.as_ref() {
                Expression::In(value, list) if !list.is_empty() => {
                    found.extend(list.iter().map(|one| {
                        let equal = Expression::Equal(value.clone(), one.clone().into());
                        Cow::Owned(Expression::Not(equal.into()))
                    }));
                }
                _ => found.push(Cow::Borrowed(next)),
            },
            _ => found.push(Cow::Borrowed(next)),
        }
    }
    found
}

fn necessary(expression: &Expression, constants: &mut Constants) -> Option<Taken> {
    if let Some((operator, left, right)) = comparison_of(expression) {
        return relation(operator, left, right, constants);
    }
    match expression {
        Expression::In(value, list) if !list.is_empty() => {
            let Expression::Variable(variable) = value.as_ref() else { return None };
            let equal = |one| comparison(Comparison::Equal, one, constants);
            let tests = list.iter().map(equal).collect::<Option<_>>()?;
            let test = Test::Any { list: true, tests };
            Some(Taken { variable: variable.as_str().to_owned(), test, decides: true })
        }
        Expression::Or(..) => any_of(expression, constants),
        Expression::FunctionCall(function, arguments) => call(function, arguments, constants),
        _ => None,
    }
}

fn relation(
    operator: Comparison,
    left: &Expression,
    right: &Expression,
    constants: &mut Constants,
) -> Option<Taken> {
    let is_constant = matches!(left, Expression::NamedNode(_) | Expression::Literal(_));
    let (left, right) = if is_constant { (right, left) } else { (left, right) };
    let operator = if is_constant { mirrored(operator) } else { operator };
    if let Expression::Variable(variable) = left {
        let test = comparison(operator, right, constants)?;
        return Some(Taken { variable: variable.as_str().to_owned(), test, decides: true });
    }
    if operator != Comparison::Equal {
        return None;
    }
    let (variable, test) = text_test(TextOperator::Equals, left, right, constants)?;
    Some(Taken { variable, test, decides: true })
}

fn comparison(
    operator: Comparison,
    constant: &Expression,
    constants: &mut Constants,
) -> Option<Test> {
    let constant = match constant {
        Expression::NamedNode(iri) => constants.iri(iri),
        // in base units a quantity may be a number, and yet no other kind of term passes
        Expression::Literal(literal) if operator == Comparison::Unequal && is_quantity(literal) => {
            return None;
        }
        Expression::Literal(literal) => constants.literal(literal),
        _ => return None,
    };
    Some(Test::Compare { operator, constant })
}

fn call(function: &Function, arguments: &[Expression], constants: &mut Constants) -> Option<Taken> {
    let operator = match (function, arguments) {
        (Function::Contains, _) => TextOperator::Contains,
        (Function::StrStarts, _) => TextOperator::Starts,
        (Function::StrEnds, _) => TextOperator::Ends,
        (Function::LangMatches, _) => TextOperator::Matches,
        (Function::Regex, [text, Expression::Literal(pattern), flags @ ..]) => {
            let (variable, view, folding) = looked_at(text)?;
            let flags = match flags {
                [] => None,
                [Expression::Literal(flags)] => Some(constants.literal(flags)),
                _ => return None,
            };
            let pattern = constants.literal(pattern);
            let test = Test::Regex { view, folding, pattern, flags };
            return Some(Taken { variable: variable.to_owned(), test, decides: false });
        }
        (Function::Custom(name), [Expression::Variable(v), Expression::NamedNode(concept)]) => {
            let operator = match name.as_str().strip_prefix(GM)? {
                "descendantOf" => TaxonomyOperator::Descendant,
                "ancestorOf" => TaxonomyOperator::Ancestor,
                "childOf" => TaxonomyOperator::Child,
                _ => return None,
            };
            let test = Test::Taxonomy { operator, concept: constants.iri(concept) };
            return Some(Taken { variable: v.as_str().to_owned(), test, decides: true });
        }
        _ => return None,
    };
    let [text, argument] = arguments else { return None };
    let (variable, test) = text_test(operator, text, argument, constants)?;
    Some(Taken { variable, test, decides: true })
}

fn text_test(
    operator: TextOperator,
    text: &Expression,
    argument: &Expression,
    constants: &mut Constants,
) -> Option<(String, Test)> {
    let (variable, view, folding) = looked_at(text)?;
    let (argument_folding, argument) = unfolded(argument);
    let Expression::Literal(literal) = argument else { return None };
    let argument = constants.literal(literal);
    Some((variable.to_owned(), Test::Text { operator, view, folding, argument, argument_folding }))
}

fn unfolded(expression: &Expression) -> (Folding, &Expression) {
    match expression {
        Expression::FunctionCall(Function::LCase, of) if of.len() == 1 => (Folding::Lower, &of[0]),
        Expression::FunctionCall(Function::UCase, of) if of.len() == 1 => (Folding::Upper, &of[0]),
        other => (Folding::None, other),
    }
}

/// The variable, the view and the folding of `folding(view(?variable))`.
fn looked_at(expression: &Expression) -> Option<(&str, View, Folding)> {
    let (folding, inner) = unfolded(expression);
    let (view, inner) = match inner {
        Expression::FunctionCall(Function::Str, of) => (View::Str, of.first()?),
        Expression::FunctionCall(Function::Lang, of) => (View::Lang, of.first()?),
        other => (View::Term, other),
    };
    match inner {
        Expression::Variable(variable) => Some((variable.as_str(), view, folding)),
        _ => None,
    }
}

/// The tests of one variable of which each alternative has one.
fn any_of(expression: &Expression, constants: &mut Constants) -> Option<Taken> {
    let (mut choices, mut rest) = (Vec::new(), vec![expression]);
    while let Some(next) = rest.pop() {
        match next {
            Expression::Or(left, right) => rest.extend([right.as_ref(), left]),
            other => choices.push(by_variable(other, constants)),
        }
    }
    let first: Vec<String> = choices.first()?.iter().map(|taken| taken.variable.clone()).collect();
    let variable = first.into_iter().find(|variable| {
        choices.iter().all(|choice| choice.iter().any(|taken| taken.variable == *variable))
    })?;
    let (mut tests, mut decides) = (Vec::new(), true);
    for taken in choices.into_iter().flatten().filter(|taken| taken.variable == variable) {
        decides &= taken.decides;
        let inner = match taken.test {
            Test::Any { tests, .. } => tests.into_vec(),
            test => vec![test],
        };
        for test in inner {
            if !tests.contains(&test) {
                tests.push(test);
            }
        }
    }
    Some(Taken { variable, test: Test::Any { list: false, tests: tests.into() }, decides })
}

/// For each variable a test that an expression makes necessary.
fn by_variable(expression: &Expression, constants: &mut Constants) -> Vec<Taken> {
    let parts = conjuncts(expression);
    let alone = parts.len() == 1;
    let mut found: Vec<Taken> = Vec::new();
    for taken in parts.iter().filter_map(|part| necessary(part, constants)) {
        if found.iter().all(|known| known.variable != taken.variable) {
            found.push(Taken { decides: taken.decides && alone, ..taken });
        }
    }
    found
}

/// Names an expression for the remainder: its operator or function.
fn word(expression: &Expression) -> String {
    if let Some((operator, ..)) = comparison_of(expression) {
        return operator.sign().to_owned();
    }
    let word = match expression {
        Expression::Or(..) => "||",
        Expression::SameTerm(..) => "sameTerm",
        Expression::In(..) => "IN",
        Expression::Add(..) | Expression::UnaryPlus(_) => "+",
        Expression::Subtract(..) | Expression::UnaryMinus(_) => "-",
        Expression::Multiply(..) => "*",
        Expression::Divide(..) => "/",
        Expression::Not(inner) => match inner.as_ref() {
            Expression::In(..) => "NOT IN",
            Expression::Exists(_) => "NOT EXISTS",
            _ => "!",
        },
        Expression::Exists(_) => "EXISTS",
        Expression::Bound(_) => "BOUND",
        Expression::If(..) => "IF",
        Expression::Coalesce(_) => "COALESCE",
        Expression::FunctionCall(function, _) => return function.to_string(),
        _ => "of a variable",
    };
    word.to_owned()
}
