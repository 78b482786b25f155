//! Analysis of a query: branches of triple patterns and filters that every solution satisfies.
//!
//! Every solution satisfies all patterns and filters of one branch. A basic graph pattern is one
//! branch, a join multiplies branches, and a union adds them. OPTIONAL, MINUS and most functions
//! only remove or extend solutions; they are named in the residual. A sequence path is several
//! patterns with fresh variables, and an alternative path is a union.
//!
//! Recursion is as deep as the query; its depth is bounded before it is parsed.
//!
//! Source: SPARQL 1.1, sections 9 and 18.2 (translation to the algebra).

use crate::algebra::{
    comparison_of, conjuncts, group, operands, parts, slot_of_iri, slot_of_literal,
};
use crate::branch::{
    Comparison, Filter, Folding, GM, Node, Pattern, Slot, TaxonomyOperator, TermPart, Tested,
    TextOperator,
};
use crate::operators::Operators;
use crate::push_new;
use hashbrown::{HashMap, HashSet};
use oxrdf::{Literal, NamedNode, Variable};
use spargebra::algebra::{
    AggregateExpression, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression as Path,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A pattern whose object may be a number, a quantity or a unit: the numbers of the subject (below
/// zero for a variable) and of the property, and the constants that the object is compared with, each
/// with whether for equality.
pub type MeasurablePattern = (i64, u32, Vec<(u32, bool)>);

/// A variable in a demand.
pub(crate) const OPEN: Node = Node::Variable(0);
/// The bit that marks the number of a constant that consists of several.
pub(crate) const COMPOSED: u32 = 1 << 31;
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// The functions of graphmatch.
const FUNCTIONS: &str = "descendantOf ancestorOf childOf compare";
/// The types to which a value can be cast.
const CASTS: &str = "string boolean double float integer decimal date time dateTime duration \
                     yearMonthDuration dayTimeDuration";
const TOO_MANY: &str = "more branches than subscription_branches";

/// A branch whose constants and variables are numbers.
#[derive(Clone, Default)]
pub(crate) struct Draft {
    pub patterns: Vec<Pattern>,
    pub filters: Vec<Tested<Slot>>,
}

/// Returns a pattern whose variables are numbered from 0.
pub(crate) fn alone(pattern: Pattern) -> Pattern {
    let mut found: Vec<Node> = Vec::with_capacity(3);
    pattern.map(|node| {
        let Node::Variable(_) = node else { return node };
        let number = found.iter().position(|known| *known == node).unwrap_or_else(|| {
            found.push(node);
            found.len() - 1
        });
        Node::Variable(number as u16)
    })
}

/// Numbers of a query's constants. Terms of the RDF vocabulary that the parser adds come after the
/// slots.
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

    /// Returns the number of an expression that is a constant.
    fn expression(&mut self, expression: &Expression) -> Option<u32> {
        match expression {
            Expression::NamedNode(iri) => Some(self.iri(iri)),
            Expression::Literal(literal) => Some(self.literal(literal)),
            _ => None,
        }
    }
}

pub(crate) fn is_quantity(literal: &Literal) -> bool {
    slot_of_literal(literal).is_some_and(|slot| slot.1)
}

/// Whether a path connects a node with itself without a triple.
fn path_may_be_empty(path: &Path) -> bool {
    match path {
        Path::ZeroOrMore(_) | Path::ZeroOrOne(_) => true,
        Path::OneOrMore(path) | Path::Reverse(path) => path_may_be_empty(path),
        Path::Sequence(left, right) => path_may_be_empty(left) && path_may_be_empty(right),
        Path::Alternative(left, right) => path_may_be_empty(left) || path_may_be_empty(right),
        Path::NamedNode(_) | Path::NegatedPropertySet(_) => false,
    }
}

/// The properties of all steps of a path; `None` is any property.
pub(crate) fn all_steps(path: &Path) -> Vec<Option<&NamedNode>> {
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

/// Whether a pattern has a solution in an empty graph. `top` says that it is not in a subquery.
pub(crate) fn may_be_empty(pattern: &GraphPattern, top: bool) -> bool {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.is_empty(),
        GraphPattern::Path { path, .. } => path_may_be_empty(path),
        GraphPattern::Join { left, right } => may_be_empty(left, top) && may_be_empty(right, top),
        GraphPattern::Union { left, right } => may_be_empty(left, top) || may_be_empty(right, top),
        GraphPattern::Values { bindings, .. } => !bindings.is_empty(),
        // Without GROUP BY, a subquery has a row if there are no solutions.
        GraphPattern::Group { variables, .. } if variables.is_empty() && !top => true,
        GraphPattern::Project { inner, .. } => may_be_empty(inner, false),
        other => parts(other).first().is_some_and(|inner| may_be_empty(inner, top)),
    }
}

// --- Branches -----------------------------------------------------------------------------------

/// The analysis of a query, and its results.
#[derive(Default)]
pub(crate) struct QueryAnalyzer<'a> {
    pub constants: Constants,
    /// Names of variables; `None` for fresh ones.
    pub variables: Vec<Option<&'a str>>,
    /// Reasons why the branches are not the whole query.
    pub residual: Vec<Cow<'static, str>>,
    /// The patterns by which a solution can use a triple, each with its own variables.
    pub supports: BTreeSet<Pattern>,
    /// Properties and objects of all patterns, also those in MINUS and EXISTS.
    pub demanded: BTreeSet<[Node; 2]>,
    /// Literals that synonyms do not replace.
    pub kept: Vec<u32>,
    /// The first function that is unknown or has a wrong number of arguments.
    pub unknown_function: Option<String>,
    /// The first quantity that is not compared with a variable.
    pub misplaced_quantity: Option<u32>,
    /// Whether the query is a DESCRIBE, where IRIs are expressions.
    pub describe: bool,
    /// Subject, property and object of patterns, for units.
    stated: Vec<(Node, u32, Node)>,
    /// The constants that an object is compared with, and whether for equality, for units.
    compared: HashMap<Node, Vec<(u32, bool)>>,
    /// Variables with the variables whose values they have or aggregate, for units.
    sources: HashMap<&'a str, &'a str>,
    most: usize,
    /// The operators that may be called.
    operators: Operators,
    /// Constants that consist of several.
    pub composed: Vec<Box<[u32]>>,
    /// Whether the current pattern only removes solutions.
    only_removes: bool,
    /// Ends of paths that may have no steps.
    loose: Vec<[Node; 2]>,
    pub named: HashMap<&'a str, u16>,
    blanks: HashMap<&'a str, u16>,
}

impl<'a> QueryAnalyzer<'a> {
    pub fn new(slots: u32, most: usize, describe: bool, operators: Operators) -> Self {
        let constants = Constants { slots, ..Constants::default() };
        Self { constants, most: most.max(1), describe, operators, ..Self::default() }
    }

    /// Returns the branches of a whole query.
    pub fn query(&mut self, pattern: &'a GraphPattern) -> Vec<Draft> {
        let inner = self.modified(pattern);
        let branches = self.branches(inner);
        self.settle(&branches, 0);
        branches
    }

    pub fn add_residual(&mut self, reason: impl Into<Cow<'static, str>>) {
        push_new(&mut self.residual, reason.into());
    }

    pub fn retain_constants(&mut self, property: Node, object: Node) {
        let [property, object] = [property, object].map(|node| match node {
            Node::Variable(_) => OPEN,
            constant => constant,
        });
        self.demanded.insert([property, if property == OPEN { OPEN } else { object }]);
    }

    /// Returns a new variable. A query with too many is refused at the end.
    fn fresh(&mut self) -> u16 {
        self.variables.push(None);
        (self.variables.len() - 1) as u16
    }

    fn variable(&mut self, name: &'a str) -> u16 {
        *self.named.entry(name).or_insert_with(|| {
            self.variables.push(Some(name));
            (self.variables.len() - 1) as u16
        })
    }

    fn term(&mut self, term: &'a TermPattern) -> Node {
        match term {
            TermPattern::NamedNode(iri) => Node::Constant(self.constants.iri(iri)),
            TermPattern::Literal(literal) => Node::Constant(self.constants.literal(literal)),
            TermPattern::Variable(variable) => Node::Variable(self.variable(variable.as_str())),
            TermPattern::BlankNode(node) => {
                let variables = &mut self.variables;
                Node::Variable(*self.blanks.entry(node.as_str()).or_insert_with(|| {
                    variables.push(None);
                    (variables.len() - 1) as u16
                }))
            }
            TermPattern::Triple(_) => {
                self.add_residual("triple term");
                Node::Variable(self.fresh())
            }
        }
    }

    fn property(&mut self, property: &'a NamedNodePattern) -> Node {
        match property {
            NamedNodePattern::NamedNode(iri) => Node::Constant(self.constants.iri(iri)),
            NamedNodePattern::Variable(variable) => {
                Node::Variable(self.variable(variable.as_str()))
            }
        }
    }

    /// Notes the literals of a CONSTRUCT template, where synonyms replace IRIs only.
    pub fn template(&mut self, template: &[TriplePattern]) {
        for end in template.iter().flat_map(|triple| [&triple.subject, &triple.object]) {
            match end {
                TermPattern::Literal(literal) => self.keep_literal(literal),
                TermPattern::Triple(triple) => self.template(std::slice::from_ref(triple)),
                _ => {}
            }
        }
    }

    fn keep_literal(&mut self, literal: &Literal) {
        let number = self.constants.literal(literal);
        self.kept.push(number);
    }

    /// Returns the pattern inside the solution modifiers of a SELECT.
    fn modified(&mut self, mut pattern: &'a GraphPattern) -> &'a GraphPattern {
        let mut is_outer = true;
        loop {
            pattern = match pattern {
                GraphPattern::Slice { inner, .. } if is_outer => {
                    self.add_residual("LIMIT or OFFSET");
                    inner
                }
                GraphPattern::Reduced { inner } | GraphPattern::Distinct { inner } if is_outer => {
                    inner
                }
                GraphPattern::Project { inner, .. } if is_outer => {
                    is_outer = false;
                    inner
                }
                GraphPattern::OrderBy { inner, expression } => {
                    self.add_residual("ORDER BY");
                    for OrderExpression::Asc(one) | OrderExpression::Desc(one) in expression {
                        self.expression(one);
                    }
                    inner
                }
                _ => return pattern,
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
                    self.state(subject, predicate, object);
                    draft.patterns.push(self.triple([subject, predicate, object]));
                }
                vec![draft]
            }
            GraphPattern::Path { subject, path, object } => {
                let (subject, object) = (self.term(subject), self.term(object));
                for last in last_steps(path) {
                    let property = Node::Constant(self.constants.iri(last));
                    self.state(subject, property, object);
                }
                if path_may_be_empty(path) {
                    self.loose.push([subject, object]);
                }
                self.path(subject, path, object)
            }
            GraphPattern::Join { left, right } => {
                let (left, right) = (self.branches(left), self.branches(right));
                self.joined(left, &right)
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                self.add_residual("OPTIONAL");
                let required = self.branches(left);
                let before = self.residual.len();
                self.branches(right); // for the patterns that a solution can rest on
                expression.iter().for_each(|one| self.expression(one));
                self.residual.truncate(before);
                required
            }
            GraphPattern::Union { left, right } => {
                self.add_residual("UNION");
                let (left, right) = (self.branches(left), self.branches(right));
                self.united(left, right)
            }
            GraphPattern::Minus { left, right } => {
                self.add_residual("MINUS");
                let required = self.branches(left);
                self.analyze_removing(right);
                required
            }
            GraphPattern::Filter { expr, inner } => {
                let branches = self.branches(inner);
                self.expression(expr);
                self.filtered(branches, expr, group(inner).is_some())
            }
            GraphPattern::Extend { inner, expression, variable } => {
                if !(self.describe && matches!(expression, Expression::NamedNode(_))) {
                    self.add_residual("BIND or expression");
                }
                let branches = self.branches(inner);
                self.expression(expression);
                self.bind(variable, expression);
                branches
            }
            GraphPattern::Graph { inner, .. } => {
                self.add_residual("GRAPH");
                self.branches(inner)
            }
            GraphPattern::Values { variables, bindings } => {
                self.add_residual("VALUES");
                for (variable, term) in bindings.iter().flat_map(|row| variables.iter().zip(row)) {
                    let number = match term {
                        Some(GroundTerm::NamedNode(iri)) => self.constants.iri(iri),
                        Some(GroundTerm::Literal(literal)) => self.constants.literal(literal),
                        _ => continue,
                    };
                    self.compare(variable, number, true);
                }
                vec![Draft::default()]
            }
            GraphPattern::Group { inner, aggregates, .. } => {
                self.add_residual("aggregate");
                for (variable, aggregate) in aggregates {
                    if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                        self.expression(expr);
                        self.bind(variable, expr);
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

    /// Analyses a subquery, whose patterns have variables of its own. It requires nothing.
    fn subquery(&mut self, pattern: &'a GraphPattern) -> Vec<Draft> {
        self.add_residual("subquery");
        let loose = self.loose.len();
        let inner = self.modified(pattern);
        let branches = self.branches(inner);
        self.settle(&branches, loose);
        vec![Draft::default()]
    }

    /// Notes the demands of a pattern that gives no bindings to solutions.
    fn analyze_removing(&mut self, pattern: &'a GraphPattern) {
        let before = (self.residual.len(), std::mem::replace(&mut self.only_removes, true));
        self.branches(pattern);
        self.residual.truncate(before.0);
        self.only_removes = before.1;
    }

    /// Returns the terms that the patterns of all branches have.
    fn certain(branches: &[Draft]) -> HashSet<Node> {
        let bound = |draft: &Draft| draft.patterns.iter().flatten().copied().collect();
        branches.iter().map(bound).reduce(|a: HashSet<Node>, b| &a & &b).unwrap_or_default()
    }

    /// Notes a demand for all triples if both ends of a path without steps are not bound.
    fn settle(&mut self, branches: &[Draft], from: usize) {
        if self.loose.len() > from {
            let certain = Self::certain(branches);
            let is_free = |end: &Node| matches!(end, Node::Variable(_)) && !certain.contains(end);
            if self.loose.drain(from..).any(|ends| ends.iter().all(is_free)) {
                self.retain_constants(OPEN, OPEN);
            }
        }
    }

    fn filtered(
        &mut self,
        mut branches: Vec<Draft>,
        expression: &'a Expression,
        grouped: bool,
    ) -> Vec<Draft> {
        let certain = Self::certain(if grouped { &[] } else { &branches });
        for part in conjuncts(expression) {
            if let Some(pattern) = self.indexed(&part, &certain) {
                branches.iter_mut().for_each(|draft| draft.patterns.push(pattern));
                continue;
            }
            let found = necessary(&part, &mut self.constants);
            let decides = found.as_ref().is_some_and(|(.., is_whole)| *is_whole);
            let found = found.and_then(|(variable, filter, _)| {
                let variable = *self.named.get(variable.as_str())?;
                certain.contains(&Node::Variable(variable)).then_some((variable, filter))
            });
            if found.is_none() || !decides {
                self.add_residual(format!("FILTER {}", word(&part)));
            }
            if let Some(filter) = found {
                branches.iter_mut().for_each(|draft| draft.filters.push(filter.clone()));
            }
        }
        branches
    }

    /// Returns a call that an operator's index decides as a pattern: argument, operator, constants.
    fn indexed(&mut self, part: &Expression, certain: &HashSet<Node>) -> Option<Pattern> {
        let Expression::FunctionCall(Function::Custom(name), arguments) = part else { return None };
        let [Expression::Variable(variable), constants @ ..] = arguments.as_slice() else {
            return None;
        };
        if !self.operators.find(name).is_some_and(|one| one.is_indexed) {
            return None;
        }
        let variable = Node::Variable(*self.named.get(variable.as_str())?);
        let numbers = constants.iter().map(|one| self.constants.expression(one));
        let numbers = numbers.collect::<Option<Box<[u32]>>>()?;
        if !certain.contains(&variable) {
            return None;
        }
        let constant = match *numbers {
            [number] => number,
            _ => {
                self.composed.push(numbers);
                COMPOSED | (self.composed.len() - 1) as u32
            }
        };
        Some([variable, Node::Constant(self.constants.iri(name)), Node::Constant(constant)])
    }

    /// Returns the branches of a join; those of the left side alone if there would be too many.
    fn joined(&mut self, left: Vec<Draft>, right: &[Draft]) -> Vec<Draft> {
        if left.len() * right.len() > self.most {
            self.add_residual(TOO_MANY);
            return left;
        }
        let both = |a: &Draft, b: &Draft| Draft {
            patterns: [a.patterns.as_slice(), &b.patterns].concat(),
            filters: [a.filters.as_slice(), &b.filters].concat(),
        };
        left.iter().flat_map(|a| right.iter().map(move |b| both(a, b))).collect()
    }

    /// Returns the branches of a union; one without conditions if there would be too many.
    fn united(&mut self, mut left: Vec<Draft>, mut right: Vec<Draft>) -> Vec<Draft> {
        left.append(&mut right);
        if left.len() > self.most {
            self.add_residual(TOO_MANY);
            return vec![Draft::default()];
        }
        left
    }

    /// Notes a triple pattern and returns it.
    fn triple(&mut self, pattern: Pattern) -> Pattern {
        self.retain_constants(pattern[1], pattern[2]);
        self.support(pattern);
        pattern
    }

    /// Notes a pattern by which a solution can use a triple.
    fn support(&mut self, pattern: Pattern) {
        if !self.only_removes {
            self.supports.insert(alone(pattern));
        }
    }

    /// Notes the subject and property of an object.
    fn state(&mut self, subject: Node, property: Node, object: Node) {
        if let Node::Constant(property) = property {
            self.stated.push((subject, property, object));
        }
        if let Node::Constant(own) = object {
            self.compared.insert(object, vec![(own, true)]);
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
                self.keep_literal(literal);
            }
            Expression::In(value, list) => self.list(value, list, true),
            Expression::Not(inner) => match inner.as_ref() {
                Expression::In(value, list) => self.list(value, list, false),
                inner => self.expression(inner),
            },
            Expression::Exists(pattern) => self.analyze_removing(pattern),
            _ => {
                if let Expression::FunctionCall(Function::Custom(name), arguments) = expression {
                    self.custom(name, arguments.len());
                }
                operands(expression).into_iter().for_each(|one| self.expression(one));
            }
        }
    }

    fn custom(&mut self, name: &NamedNode, arguments: usize) {
        let is_one = |namespace: &str, names: &str| {
            let own = name.as_str().strip_prefix(namespace);
            own.is_some_and(|own| names.split(' ').any(|one| one == own))
        };
        let is_known = is_one(GM, FUNCTIONS) || is_one(XSD, CASTS) && arguments == 1;
        if !is_known && self.operators.find(name).is_none() {
            self.unknown_function.get_or_insert(name.to_string());
        }
    }

    fn misplaced(&mut self, literal: &Literal) {
        if let Some((number, true)) = slot_of_literal(literal) {
            let first = self.misplaced_quantity.get_or_insert(number);
            *first = number.min(*first);
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
                    self.keep_literal(literal);
                }
            }
            self.compared_with(other, one, same);
        }
    }

    fn list(&mut self, value: &'a Expression, list: &'a [Expression], same: bool) {
        for one in list {
            match one {
                // Together with other inequalities, a quantity would be an error.
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

    /// Notes the constant `one` if the other side is a variable, or analyses an expression.
    fn compared_with(&mut self, other: &'a Expression, one: &'a Expression, same: bool) {
        let Some(number) = self.constants.expression(one) else { return self.expression(one) };
        if let Expression::Variable(variable) = other {
            self.compare(variable, number, same);
        }
    }

    fn compare(&mut self, variable: &'a Variable, number: u32, same: bool) {
        let source = self.source(variable);
        let source = Node::Variable(self.variable(source));
        self.compared.entry(source).or_default().push((number, same));
    }

    /// Notes the variable whose values another one has or aggregates.
    fn bind(&mut self, variable: &'a Variable, expression: &'a Expression) {
        if let Expression::Variable(source) = expression {
            let source = self.source(source);
            self.sources.insert(variable.as_str(), source);
        }
    }

    fn source(&self, variable: &'a Variable) -> &'a str {
        self.sources.get(variable.as_str()).copied().unwrap_or(variable.as_str())
    }

    /// Returns the patterns, with the constants that their objects are compared with.
    pub fn measurable(&self) -> Vec<MeasurablePattern> {
        let constants = |object| self.compared.get(object).cloned().unwrap_or_default();
        let number = |subject: &Node| match *subject {
            Node::Constant(number) => i64::from(number),
            Node::Variable(number) => -1 - i64::from(number),
        };
        self.stated.iter().map(|(s, p, o)| (number(s), *p, constants(o))).collect()
    }

    // --- Paths ---

    /// Returns branches of which one holds if a path does.
    fn path(&mut self, subject: Node, path: &'a Path, object: Node) -> Vec<Draft> {
        match path {
            Path::NamedNode(iri) => {
                let pattern = [subject, Node::Constant(self.constants.iri(iri)), object];
                vec![Draft { patterns: vec![self.triple(pattern)], ..Draft::default() }]
            }
            Path::Reverse(path) => self.path(object, path, subject),
            Path::Sequence(left, right) => {
                let middle = Node::Variable(self.fresh());
                let left = self.path(subject, left, middle);
                let right = self.path(middle, right, object);
                self.joined(left, &right)
            }
            Path::Alternative(left, right) => {
                self.add_residual("path |");
                let left = self.path(subject, left, object);
                let right = self.path(subject, right, object);
                self.united(left, right)
            }
            Path::OneOrMore(inner) => {
                self.steps(path, "path +");
                let next = Node::Variable(self.fresh());
                let before = std::mem::replace(&mut self.only_removes, true);
                let first = self.path(subject, inner, next);
                self.only_removes = before;
                first
            }
            Path::ZeroOrMore(_) => self.steps(path, "path *"),
            Path::ZeroOrOne(_) => self.steps(path, "path ?"),
            _ => self.steps(path, "path !"),
        }
    }

    /// Notes the steps of a path that requires no triple.
    fn steps(&mut self, path: &Path, reason: &'static str) -> Vec<Draft> {
        self.add_residual(reason);
        for step in all_steps(path) {
            let step =
                step.map_or(Node::Variable(1), |iri| Node::Constant(self.constants.iri(iri)));
            self.retain_constants(step, OPEN);
            self.support([Node::Variable(0), step, Node::Variable(2)]);
        }
        vec![Draft::default()]
    }
}

// --- Filters ------------------------------------------------------------------------------------

/// A variable, a filter of it that every solution passes, and whether this is the whole expression.
type NecessaryFilter = (String, Filter<Slot>, bool);

fn necessary(expression: &Expression, constants: &mut Constants) -> Option<NecessaryFilter> {
    if let Some((operator, left, right)) = comparison_of(expression) {
        return match left {
            Expression::Variable(variable) => {
                Some((variable.as_str().to_owned(), comparison(operator, right, constants)?, true))
            }
            _ if operator == Comparison::Equal => {
                text_test(TextOperator::Equals, left, right, constants)
            }
            _ => None,
        };
    }
    match expression {
        Expression::In(value, list) if !list.is_empty() => {
            let Expression::Variable(variable) = value.as_ref() else { return None };
            let equal = |one| comparison(Comparison::Equal, one, constants);
            let filter = Filter::Any(list.iter().map(equal).collect::<Option<_>>()?);
            Some((variable.as_str().to_owned(), filter, true))
        }
        Expression::Or(..) => any_of(expression, constants),
        Expression::FunctionCall(function, arguments) => call(function, arguments, constants),
        _ => None,
    }
}

fn comparison(
    operator: Comparison,
    constant: &Expression,
    constants: &mut Constants,
) -> Option<Filter<Slot>> {
    // A quantity in base units may be a number. Terms of other kinds must still not pass.
    let is_quantity = matches!(constant, Expression::Literal(literal) if is_quantity(literal));
    if operator == Comparison::Unequal && is_quantity {
        return None;
    }
    let constant = Slot::Constant(constants.expression(constant)?);
    Some(Filter::Compare { operator, constant })
}

fn call(
    function: &Function,
    arguments: &[Expression],
    constants: &mut Constants,
) -> Option<NecessaryFilter> {
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
            let argument = Slot::Regex { pattern: constants.literal(pattern), flags };
            let operator = TextOperator::Contains;
            let filter = Filter::Text { operator, view, folding, argument };
            return Some((variable.to_owned(), filter, false));
        }
        (Function::Custom(name), [Expression::Variable(v), Expression::NamedNode(concept)]) => {
            let operator = TaxonomyOperator::of_iri(name.as_str())?;
            let concept = Slot::Constant(constants.iri(concept));
            let filter = Filter::Taxonomy { operator, concept };
            return Some((v.as_str().to_owned(), filter, true));
        }
        _ => return None,
    };
    let [text, argument] = arguments else { return None };
    text_test(operator, text, argument, constants)
}

fn text_test(
    operator: TextOperator,
    text: &Expression,
    argument: &Expression,
    constants: &mut Constants,
) -> Option<NecessaryFilter> {
    let (variable, view, folding) = looked_at(text)?;
    let (change, argument) = unfolded(argument);
    let Expression::Literal(literal) = argument else { return None };
    let number = constants.literal(literal);
    let argument = match change {
        Folding::None => Slot::Constant(number),
        change => Slot::Folded(number, change),
    };
    let filter = Filter::Text { operator, view, folding, argument };
    Some((variable.to_owned(), filter, true))
}

fn unfolded(expression: &Expression) -> (Folding, &Expression) {
    match expression {
        Expression::FunctionCall(Function::LCase, of) if of.len() == 1 => (Folding::Lower, &of[0]),
        Expression::FunctionCall(Function::UCase, of) if of.len() == 1 => (Folding::Upper, &of[0]),
        other => (Folding::None, other),
    }
}

/// Returns the variable, the view and the folding of `folding(view(?variable))`.
fn looked_at(expression: &Expression) -> Option<(&str, TermPart, Folding)> {
    let (folding, inner) = unfolded(expression);
    let (view, inner) = match inner {
        Expression::FunctionCall(Function::Str, of) => (TermPart::Str, of.first()?),
        Expression::FunctionCall(Function::Lang, of) => (TermPart::Lang, of.first()?),
        other => (TermPart::Term, other),
    };
    match inner {
        Expression::Variable(variable) => Some((variable.as_str(), view, folding)),
        _ => None,
    }
}

/// Returns the first test that an index can decide of each alternative, if all test one variable.
fn any_of(expression: &Expression, constants: &mut Constants) -> Option<NecessaryFilter> {
    let (mut variable, mut tests, mut decides) = (None, Vec::new(), true);
    let mut rest = vec![expression];
    while let Some(next) = rest.pop() {
        if let Expression::Or(left, right) = next {
            rest.extend([right.as_ref(), left]);
            continue;
        }
        let parts = conjuncts(next);
        let (tested, filter, is_whole) =
            parts.iter().find_map(|part| necessary(part, constants))?;
        decides &= is_whole && parts.len() == 1;
        if *variable.get_or_insert_with(|| tested.clone()) != tested {
            return None;
        }
        match filter {
            Filter::Any(filters) => tests.extend(filters),
            filter => tests.push(filter),
        }
    }
    Some((variable?, Filter::Any(tests.into()), decides))
}

/// Names the operator or function of an expression for the residual.
fn word(expression: &Expression) -> String {
    if let Some((operator, ..)) = comparison_of(expression) {
        return operator.name().to_owned();
    }
    let word = match expression {
        Expression::Or(..) => "||",
        Expression::In(..) => "IN",
        Expression::Not(inner) if matches!(**inner, Expression::In(..)) => "NOT IN",
        Expression::Not(inner) if matches!(**inner, Expression::Exists(_)) => "NOT EXISTS",
        Expression::Exists(_) => "EXISTS",
        Expression::FunctionCall(function, _) => return function.to_string(),
        _ => "of another expression",
    };
    word.to_owned()
}
