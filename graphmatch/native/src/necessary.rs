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

use crate::cut::{is_quantity, slot_of_iri, slot_of_literal};
use crate::pattern::{Comparison, Folding, TaxonomyOperator, TextOperator, View};
use crate::query::Test;
use hashbrown::{HashMap, HashSet};
use oxrdf::{Literal, NamedNode};
use spargebra::algebra::{
    AggregateExpression, Expression, Function, GraphPattern, OrderExpression,
    PropertyPathExpression as Path,
};
use spargebra::term::{GroundTerm, GroundTriple, NamedNodePattern, TermPattern, TriplePattern};
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

/// A branch in the making.
#[derive(Clone, Default)]
pub(crate) struct Draft {
    pub patterns: Vec<Places>,
    pub filters: Vec<(u32, Test)>,
}

/// The numbers of a query's constants: its slots, and behind them the terms that stand in the
/// algebra itself.
pub(crate) struct Constants {
    pub slots: u32,
    pub whole: bool,
    pub fixed: Vec<(String, bool)>,
    known: HashMap<(String, bool), u32>,
}

impl Constants {
    pub fn new(slots: u32, whole: bool) -> Self {
        Self { slots, whole, fixed: Vec::new(), known: HashMap::new() }
    }

    fn fixed(&mut self, text: String, rewritten: bool) -> u32 {
        let next = self.slots + self.fixed.len() as u32;
        *self.known.entry((text, rewritten)).or_insert_with_key(|key| {
            self.fixed.push(key.clone());
            next
        })
    }

    pub fn iri(&mut self, iri: &NamedNode) -> u32 {
        let slot = if self.whole { None } else { slot_of_iri(iri.as_str()) };
        slot.unwrap_or_else(|| self.fixed(iri.to_string(), true))
    }

    /// The number of a literal; whether synonyms replace it tells apart those of a whole text.
    pub fn literal(&mut self, literal: &Literal, rewritten: bool) -> u32 {
        self.slot(literal)
            .map_or_else(|| self.fixed(literal.to_string(), rewritten), |(number, _)| number)
    }

    fn slot(&self, literal: &Literal) -> Option<(u32, bool)> {
        if self.whole {
            return None;
        }
        slot_of_literal(literal.value(), literal.datatype().as_str())
    }

    pub fn is_quantity(&self, literal: &Literal) -> bool {
        match self.slot(literal) {
            Some((_, quantity)) => quantity,
            None => is_quantity(&literal.datatype().to_string()),
        }
    }
}

/// What is wrong with a query that parses.
pub(crate) enum Misuse {
    /// A function that nobody knows, or with another number of arguments.
    Function(String),
    /// A quantity that is not compared with a variable, by its number.
    Quantity(u32),
    /// SERVICE.
    Service,
    /// LATERAL.
    Lateral,
}

// --- All that a query says ----------------------------------------------------------------------

/// Patterns that are joined with one that is looked at.
enum Joined<'a, 'b> {
    Nothing,
    With(&'a GraphPattern, &'b Joined<'a, 'b>),
}

/// What all parts of a query mention, those under EXISTS included.
pub(crate) struct Survey<'a> {
    pub constants: Constants,
    /// The properties and objects that patterns ask for.
    pub mentions: Vec<[u32; 2]>,
    /// Literals that synonyms leave alone.
    pub kept: Vec<u32>,
    pub misuse: Option<Misuse>,
    /// Subject, property and object of each pattern, by their names, for units.
    pub stated: Option<Vec<(Cow<'a, str>, u32, Cow<'a, str>, u32)>>,
    /// Variables, the constants they are compared with, and whether for equality.
    pub compared: Vec<(Cow<'a, str>, u32, bool)>,
    mentioned: HashSet<[u32; 2]>,
}

impl<'a> Survey<'a> {
    pub fn new(constants: Constants, units: bool) -> Self {
        Self {
            constants,
            mentions: Vec::new(),
            kept: Vec::new(),
            misuse: None,
            stated: units.then(Vec::new),
            compared: Vec::new(),
            mentioned: HashSet::new(),
        }
    }

    pub fn mention(&mut self, property: u32, object: u32) {
        if self.mentioned.insert([property, object]) {
            self.mentions.push([property, object]);
        }
    }

    /// Looks at a pattern and all that is inside it.
    pub fn pattern(&mut self, pattern: &'a GraphPattern) {
        self.walk(pattern, &Joined::Nothing);
    }

    fn walk(&mut self, pattern: &'a GraphPattern, joined: &Joined<'a, '_>) {
        let alone = &Joined::Nothing;
        match pattern {
            GraphPattern::Bgp { patterns } => patterns.iter().for_each(|one| self.triple(one)),
            GraphPattern::Path { subject, path, object } => {
                self.path(subject, path, object, joined);
            }
            GraphPattern::Join { left, right } => {
                self.walk(left, &Joined::With(right, joined));
                self.walk(right, &Joined::With(left, joined));
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                self.walk(left, joined);
                self.walk(right, &Joined::With(left, joined));
                expression.iter().for_each(|expression| self.expression(expression));
            }
            GraphPattern::Union { left, right } => {
                self.walk(left, joined);
                self.walk(right, joined);
            }
            GraphPattern::Minus { left, right } => {
                self.walk(left, joined);
                self.walk(right, alone);
            }
            GraphPattern::Filter { expr, inner } => {
                self.walk(inner, joined);
                self.expression(expr);
            }
            GraphPattern::Extend { inner, expression, .. } => {
                self.walk(inner, joined);
                self.expression(expression);
            }
            GraphPattern::Graph { name, inner } => {
                if let NamedNodePattern::NamedNode(name) = name {
                    self.constants.iri(name);
                }
                self.walk(inner, alone);
            }
            GraphPattern::Values { variables, bindings } => {
                for row in bindings {
                    for (variable, term) in variables.iter().zip(row) {
                        let Some(term) = term else { continue };
                        if let Some(number) = self.ground(term) {
                            self.compare(variable.as_str(), number, true);
                        }
                    }
                }
            }
            GraphPattern::OrderBy { inner, expression } => {
                self.walk(inner, alone);
                for OrderExpression::Asc(one) | OrderExpression::Desc(one) in expression {
                    self.expression(one);
                }
            }
            GraphPattern::Group { inner, aggregates, .. } => {
                self.walk(inner, alone);
                for (_, aggregate) in aggregates {
                    if let AggregateExpression::FunctionCall { expr, .. } = aggregate {
                        self.expression(expr);
                    }
                }
            }
            GraphPattern::Project { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => self.walk(inner, alone),
            GraphPattern::Lateral { .. } => {
                self.misuse.get_or_insert(Misuse::Lateral);
            }
            GraphPattern::Service { inner, .. } => {
                self.misuse.get_or_insert(Misuse::Service);
                self.walk(inner, alone);
            }
        }
    }

    fn term(&mut self, term: &'a TermPattern) -> u32 {
        match term {
            TermPattern::NamedNode(iri) => self.constants.iri(iri),
            TermPattern::Literal(literal) => self.constants.literal(literal, true),
            TermPattern::Triple(triple) => {
                self.term(&triple.subject);
                self.property(&triple.predicate);
                self.term(&triple.object);
                OPEN
            }
            TermPattern::Variable(_) | TermPattern::BlankNode(_) => OPEN,
        }
    }

    fn property(&mut self, property: &NamedNodePattern) -> u32 {
        match property {
            NamedNodePattern::NamedNode(iri) => self.constants.iri(iri),
            NamedNodePattern::Variable(_) => OPEN,
        }
    }

    fn triple(&mut self, triple: &'a TriplePattern) {
        self.term(&triple.subject);
        let property = self.property(&triple.predicate);
        let object = self.term(&triple.object);
        self.mention(property, if property == OPEN { OPEN } else { object });
        self.state(&triple.subject, property, &triple.object, object);
    }

    fn state(&mut self, s: &'a TermPattern, property: u32, o: &'a TermPattern, object: u32) {
        if let (Some(stated), true) = (&mut self.stated, property != OPEN) {
            stated.push((name(s), property, name(o), object));
        }
    }

    fn compare(&mut self, variable: &'a str, number: u32, same: bool) {
        if self.stated.is_some() {
            self.compared.push((variable.into(), number, same));
        }
    }

    fn path(
        &mut self,
        subject: &'a TermPattern,
        path: &'a Path,
        object: &'a TermPattern,
        joined: &Joined<'a, '_>,
    ) {
        let ends = [self.term(subject), self.term(object)];
        let free = |end: &TermPattern, place: u32| place == OPEN && !is_bound(end, joined);
        if path_may_be_empty(path) && free(subject, ends[0]) && free(object, ends[1]) {
            self.mention(OPEN, OPEN); // a path of no steps leads from any node to itself
        }
        self.steps(path);
        for last in last_steps(path) {
            let property = self.constants.iri(last);
            self.state(subject, property, object, ends[1]);
        }
    }

    fn steps(&mut self, path: &Path) {
        match path {
            Path::NamedNode(iri) => {
                let step = self.constants.iri(iri);
                self.mention(step, OPEN);
            }
            Path::NegatedPropertySet(iris) => {
                iris.iter().for_each(|iri| {
                    self.constants.iri(iri);
                });
                self.mention(OPEN, OPEN);
            }
            Path::Sequence(left, right) | Path::Alternative(left, right) => {
                self.steps(left);
                self.steps(right);
            }
            Path::Reverse(path)
            | Path::ZeroOrMore(path)
            | Path::OneOrMore(path)
            | Path::ZeroOrOne(path) => self.steps(path),
        }
    }

    fn ground(&mut self, term: &GroundTerm) -> Option<u32> {
        match term {
            GroundTerm::NamedNode(iri) => Some(self.constants.iri(iri)),
            GroundTerm::Literal(literal) => Some(self.constants.literal(literal, true)),
            GroundTerm::Triple(triple) => {
                let GroundTriple { subject, predicate, object } = triple.as_ref();
                self.constants.iri(subject);
                self.constants.iri(predicate);
                self.ground(object);
                None
            }
        }
    }

    /// The triples of a CONSTRUCT, of which synonyms replace IRIs only.
    pub fn template(&mut self, template: &'a [TriplePattern]) {
        for triple in template {
            for end in [&triple.subject, &triple.object] {
                match end {
                    TermPattern::Literal(literal) => self.keep(literal),
                    TermPattern::Triple(triple) => self.template(std::slice::from_ref(triple)),
                    _ => {
                        self.term(end);
                    }
                }
            }
            self.property(&triple.predicate);
        }
    }

    fn keep(&mut self, literal: &Literal) {
        let number = self.constants.literal(literal, false);
        self.kept.push(number);
    }

    fn misplaced(&mut self, literal: &Literal) {
        if self.constants.is_quantity(literal) {
            let number = self.constants.literal(literal, false);
            match &mut self.misuse {
                Some(Misuse::Quantity(first)) => *first = number.min(*first),
                misuse => *misuse = Some(Misuse::Quantity(number)),
            }
        }
    }

    fn expression(&mut self, expression: &'a Expression) {
        match expression {
            Expression::NamedNode(iri) => {
                self.constants.iri(iri);
            }
            Expression::Literal(literal) => {
                self.misplaced(literal);
                self.keep(literal);
            }
            Expression::Variable(_) | Expression::Bound(_) => {}
            Expression::Equal(left, right) => self.comparison(left, right, true, true),
            Expression::Less(left, right)
            | Expression::LessOrEqual(left, right)
            | Expression::Greater(left, right)
            | Expression::GreaterOrEqual(left, right) => self.comparison(left, right, false, false),
            Expression::In(value, list) => self.list(value, list, true),
            Expression::Not(inner) => match inner.as_ref() {
                Expression::Equal(left, right) => self.comparison(left, right, true, false),
                Expression::In(value, list) => self.list(value, list, false),
                inner => self.expression(inner),
            },
            Expression::Or(left, right)
            | Expression::And(left, right)
            | Expression::SameTerm(left, right)
            | Expression::Add(left, right)
            | Expression::Subtract(left, right)
            | Expression::Multiply(left, right)
            | Expression::Divide(left, right) => {
                self.expression(left);
                self.expression(right);
            }
            Expression::UnaryPlus(inner) | Expression::UnaryMinus(inner) => self.expression(inner),
            Expression::Exists(pattern) => self.pattern(pattern),
            Expression::If(condition, left, right) => {
                [condition, left, right].into_iter().for_each(|one| self.expression(one));
            }
            Expression::Coalesce(all) => all.iter().for_each(|one| self.expression(one)),
            Expression::FunctionCall(function, arguments) => {
                if let Function::Custom(name) = function {
                    self.custom(name, arguments.len());
                }
                arguments.iter().for_each(|one| self.expression(one));
            }
        }
    }

    fn custom(&mut self, name: &NamedNode, arguments: usize) {
        let known = match (name.as_str().strip_prefix(GM), name.as_str().strip_prefix(XSD)) {
            (Some("descendantOf" | "ancestorOf" | "childOf" | "compare"), _) => true,
            (_, Some(cast)) if CASTS.contains(&cast) && arguments == 1 => true,
            _ => false,
        };
        if !known {
            self.misuse.get_or_insert(Misuse::Function(name.to_string()));
        }
    }

    /// Both sides of a comparison; `named` says whether synonyms replace a literal there.
    fn comparison(&mut self, left: &'a Expression, right: &'a Expression, named: bool, same: bool) {
        for (one, other) in [(left, right), (right, left)] {
            let variable = match other {
                Expression::Variable(variable) => Some(variable.as_str()),
                _ => None,
            };
            let number = match one {
                Expression::Literal(literal) => {
                    if variable.is_none() {
                        self.misplaced(literal);
                    }
                    if !named {
                        self.keep(literal);
                    }
                    self.constants.literal(literal, named)
                }
                Expression::NamedNode(iri) => self.constants.iri(iri),
                _ => {
                    self.expression(one);
                    continue;
                }
            };
            variable.into_iter().for_each(|v| self.compare(v, number, same));
        }
    }

    fn list(&mut self, value: &'a Expression, list: &'a [Expression], same: bool) {
        match value {
            Expression::Literal(literal) => {
                self.misplaced(literal);
                self.constants.literal(literal, true);
            }
            value => self.expression(value),
        }
        for one in list {
            let number = match one {
                Expression::Literal(literal) => {
                    if !same {
                        self.misplaced(literal); // among others it would be an error
                    }
                    self.constants.literal(literal, true)
                }
                Expression::NamedNode(iri) => self.constants.iri(iri),
                one => {
                    self.expression(one);
                    continue;
                }
            };
            if let Expression::Variable(variable) = value {
                self.compare(variable.as_str(), number, same);
            }
        }
    }
}

/// A name for a node of a pattern, distinct for distinct nodes.
fn name(term: &TermPattern) -> Cow<'_, str> {
    match term {
        TermPattern::Variable(variable) => variable.as_str().into(),
        other => other.to_string().into(),
    }
}

fn is_bound(end: &TermPattern, mut joined: &Joined<'_, '_>) -> bool {
    while let Joined::With(pattern, more) = joined {
        if binds(pattern, end) {
            return true;
        }
        joined = more;
    }
    false
}

/// Whether a pattern binds a node to nodes of its triples.
fn binds(pattern: &GraphPattern, node: &TermPattern) -> bool {
    match pattern {
        GraphPattern::Bgp { patterns } => {
            patterns.iter().any(|one| one.subject == *node || one.object == *node)
        }
        GraphPattern::Path { subject, path, object } => {
            !path_may_be_empty(path) && (subject == node || object == node)
        }
        GraphPattern::Join { left, right } => binds(left, node) || binds(right, node),
        GraphPattern::Union { left, right } => binds(left, node) && binds(right, node),
        GraphPattern::LeftJoin { left: inner, .. }
        | GraphPattern::Minus { left: inner, .. }
        | GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. } => binds(inner, node),
        _ => false,
    }
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

/// What is inside of the operators that a SELECT ends with.
pub(crate) fn without_modifiers(mut pattern: &GraphPattern) -> &GraphPattern {
    loop {
        pattern = match pattern {
            GraphPattern::Project { inner, .. } => return inner,
            GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Slice { inner, .. } => inner,
            _ => return pattern,
        }
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

fn is_grouped(pattern: &GraphPattern) -> bool {
    grouping(pattern).is_some()
}

// --- Branches -----------------------------------------------------------------------------------

/// What was found necessary for a query.
pub(crate) struct Analysis<'a> {
    pub constants: Constants,
    /// The names of variables; none for fresh ones.
    pub variables: Vec<Option<&'a str>>,
    /// Why the branches are not the whole query.
    pub remainder: Vec<Cow<'static, str>>,
    /// The patterns that a solution can rest on, each with its own variables.
    pub supports: Vec<Places>,
    /// Whether the query groups its solutions.
    pub aggregates: bool,
    /// Whether it has a query inside.
    pub subquery: bool,
    /// Whether it is a DESCRIBE, in which IRIs are written as expressions.
    pub describe: bool,
    most: usize,
    supported: HashSet<Places>,
    named: HashMap<&'a str, u32>,
    blanks: HashMap<&'a str, u32>,
}

impl<'a> Analysis<'a> {
    pub fn new(constants: Constants, most: usize, describe: bool) -> Self {
        Self {
            constants,
            variables: Vec::new(),
            remainder: Vec::new(),
            supports: Vec::new(),
            aggregates: false,
            subquery: false,
            describe,
            most: most.max(1),
            supported: HashSet::new(),
            named: HashMap::new(),
            blanks: HashMap::new(),
        }
    }

    /// The branches of a whole query.
    pub fn query(&mut self, pattern: &'a GraphPattern) -> Vec<Draft> {
        let (inner, _) = self.modifiers(pattern);
        self.branches(inner)
    }

    pub fn leave_open(&mut self, reason: impl Into<Cow<'static, str>>) {
        let reason = reason.into();
        if !self.remainder.contains(&reason) {
            self.remainder.push(reason);
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
            TermPattern::Literal(literal) => self.constants.literal(literal, true),
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
                    projected =
                        Some(variables.iter().map(|one| self.variable(one.as_str())).collect());
                    inner
                }
                GraphPattern::OrderBy { inner, .. } => {
                    self.leave_open("ORDER BY");
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
                    let predicate = match predicate {
                        NamedNodePattern::NamedNode(iri) => self.constants.iri(iri),
                        NamedNodePattern::Variable(variable) => self.variable(variable.as_str()),
                    };
                    let object = self.term(object);
                    draft.patterns.push([subject, predicate, object]);
                    self.support([subject, predicate, object]);
                }
                vec![draft]
            }
            GraphPattern::Path { subject, path, object } => {
                let (subject, object) = (self.term(subject), self.term(object));
                self.path(subject, path, object)
            }
            GraphPattern::Join { left, right } => {
                let (left, right) = (self.branches(left), self.branches(right));
                let joined = joined(left, right);
                self.bounded(joined)
            }
            GraphPattern::LeftJoin { left, right, .. } => {
                self.leave_open("OPTIONAL");
                let required = self.branches(left);
                let before = self.remainder.len();
                self.branches(right); // for the patterns that a solution can rest on
                self.remainder.truncate(before);
                required
            }
            GraphPattern::Union { left, right } => {
                self.leave_open("UNION");
                let mut all = self.branches(left);
                all.append(&mut self.branches(right));
                self.bounded(all)
            }
            GraphPattern::Minus { left, .. } => {
                self.leave_open("MINUS");
                self.branches(left)
            }
            GraphPattern::Filter { expr, inner } => {
                let branches = self.branches(inner);
                self.filtered(branches, expr, is_grouped(inner))
            }
            GraphPattern::Extend { inner, variable, expression } => {
                if !(self.describe && matches!(expression, Expression::NamedNode(_))) {
                    self.leave_open("BIND or expression");
                }
                let mut branches = self.branches(inner);
                if let Some(&shadowed) = self.named.get(variable.as_str()) {
                    self.rename(&mut branches, |variable| variable == shadowed);
                }
                branches
            }
            GraphPattern::Graph { inner, .. } => {
                self.leave_open("GRAPH");
                self.branches(inner)
            }
            GraphPattern::Values { .. } => {
                self.leave_open("VALUES");
                vec![Draft::default()]
            }
            GraphPattern::Group { inner, .. } => {
                self.leave_open("aggregate");
                self.aggregates = true;
                self.branches(inner)
            }
            GraphPattern::Lateral { left: inner, .. } => self.branches(inner),
            GraphPattern::Service { inner, .. } => {
                self.leave_open("SERVICE");
                self.branches(inner);
                vec![Draft::default()]
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
        self.subquery = true;
        let outer = self.aggregates;
        let (inner, projected) = self.modifiers(pattern);
        let mut branches = self.branches(inner);
        self.aggregates = outer;
        if grouping(inner) == Some(0) {
            return vec![Draft::default()]; // it has a row for no solutions
        }
        if let Some(projected) = projected {
            let projected: HashSet<u32> = projected.into_iter().collect();
            self.rename(&mut branches, |variable| !projected.contains(&variable));
        }
        branches
    }

    /// Gives fresh variables for those that are others outside.
    fn rename(&mut self, branches: &mut [Draft], is_local: impl Fn(u32) -> bool) {
        let mut names: HashMap<u32, u32> = HashMap::new();
        for draft in branches {
            let tested = draft.filters.iter_mut().map(|filter| &mut filter.0);
            for place in draft.patterns.iter_mut().flatten().chain(tested) {
                let number = (*place & !VARIABLE) as usize;
                let is_named = *place & VARIABLE != 0 && self.variables[number].is_some();
                if is_named && is_local(*place) {
                    *place = match names.get(place) {
                        Some(&name) => name,
                        None => {
                            let name = self.fresh();
                            names.insert(*place, name);
                            name
                        }
                    };
                }
            }
        }
    }

    fn filtered(
        &mut self,
        mut branches: Vec<Draft>,
        expression: &'a Expression,
        grouped: bool,
    ) -> Vec<Draft> {
        let mut counts = vec![0; self.variables.len()];
        for (draft, round) in branches.iter().zip(1..) {
            for place in draft.patterns.iter().flatten().filter(|place| **place & VARIABLE != 0) {
                let count = &mut counts[(*place & !VARIABLE) as usize];
                *count = if *count + 1 == round { round } else { *count };
            }
        }
        for part in conjuncts(expression) {
            let found = part.necessary(&mut self.constants);
            let certain = found.as_ref().and_then(|taken| {
                let variable = *self.named.get(taken.variable)?;
                let is_certain = counts.get((variable & !VARIABLE) as usize)? == &branches.len();
                (is_certain && !grouped).then_some(variable)
            });
            let decides = found.as_ref().is_some_and(|taken| taken.decides);
            if certain.is_none() || !decides {
                self.leave_open(format!("FILTER {}", part.word()));
            }
            if let (Some(taken), Some(variable)) = (found, certain) {
                for draft in &mut branches {
                    draft.filters.push((variable, taken.test.clone()));
                }
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
        }
        vec![shared]
    }

    /// Notes a pattern that a solution can rest on.
    fn support(&mut self, mut pattern: Places) {
        let original = pattern;
        let mut next = 0;
        for at in 0..3 {
            if original[at] & VARIABLE != 0 {
                pattern[at] = match original[..at].iter().position(|place| *place == original[at]) {
                    Some(first) => pattern[first],
                    None => {
                        next += 1;
                        VARIABLE | (next - 1)
                    }
                };
            }
        }
        if self.supported.insert(pattern) {
            self.supports.push(pattern);
        }
    }

    // --- Paths ---

    fn path(&mut self, subject: u32, path: &'a Path, object: u32) -> Vec<Draft> {
        let (steps, open) = self.expand(subject, path, object);
        if open.is_empty() {
            steps.iter().flatten().for_each(|pattern| self.support(*pattern));
        } else {
            self.support_steps(path);
        }
        open.into_iter().for_each(|reason| self.leave_open(reason));
        if steps.len() > 1 {
            self.leave_open("path |");
        }
        let drafts = steps.into_iter().map(|patterns| Draft { patterns, filters: Vec::new() });
        self.bounded(drafts.collect())
    }

    /// Notes any triple that a walk along a path can use.
    fn support_steps(&mut self, path: &'a Path) {
        match path {
            Path::NamedNode(iri) => {
                let step = self.constants.iri(iri);
                self.support([VARIABLE, step, VARIABLE | 1]);
            }
            Path::NegatedPropertySet(_) => self.support([VARIABLE, VARIABLE | 1, VARIABLE | 2]),
            Path::Sequence(left, right) | Path::Alternative(left, right) => {
                self.support_steps(left);
                self.support_steps(right);
            }
            Path::Reverse(path)
            | Path::ZeroOrMore(path)
            | Path::OneOrMore(path)
            | Path::ZeroOrOne(path) => self.support_steps(path),
        }
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
        return left;
    }
    let both = |a: &Draft| {
        let with = |b: &Draft| Draft {
            patterns: [a.patterns.as_slice(), &b.patterns].concat(),
            filters: [a.filters.as_slice(), &b.filters].concat(),
        };
        right.iter().map(with).collect::<Vec<_>>()
    };
    left.iter().flat_map(both).collect()
}

// --- Filters ------------------------------------------------------------------------------------

/// A filter that every solution passes, and whether it says all that its expression does.
struct Taken<'a> {
    variable: &'a str,
    test: Test,
    decides: bool,
}

/// A part of a conjunction: an expression, or the inequality with a member of a NOT IN.
#[derive(Clone, Copy)]
enum Part<'a> {
    Whole(&'a Expression),
    Unequal(&'a Expression, &'a Expression),
}

/// The parts of a conjunction: a filter is true when all of them are.
fn conjuncts(expression: &Expression) -> Vec<Part<'_>> {
    let (mut found, mut rest) = (Vec::new(), vec![expression]);
    while let Some(next) = rest.pop() {
        match next {
            Expression::And(left, right) => rest.extend([right.as_ref(), left]),
            Expression::Not(inner) => match inner.as_ref() {
                Expression::In(value, list) if !list.is_empty() => {
                    found.extend(list.iter().map(|one| Part::Unequal(value, one)));
                }
                _ => found.push(Part::Whole(next)),
            },
            _ => found.push(Part::Whole(next)),
        }
    }
    found
}

impl<'a> Part<'a> {
    /// What an index can take of it.
    fn necessary(self, constants: &mut Constants) -> Option<Taken<'a>> {
        match self {
            Self::Unequal(value, one) => relation(Comparison::Unequal, value, one, constants),
            Self::Whole(expression) => necessary(expression, constants),
        }
    }

    /// Its operator or function, for the remainder.
    fn word(self) -> String {
        match self {
            Self::Unequal(..) => "!=".to_owned(),
            Self::Whole(expression) => word(expression),
        }
    }
}

fn necessary<'a>(expression: &'a Expression, constants: &mut Constants) -> Option<Taken<'a>> {
    let decides = |(variable, test)| Taken { variable, test, decides: true };
    match expression {
        Expression::Equal(l, r) => relation(Comparison::Equal, l, r, constants),
        Expression::Less(l, r) => relation(Comparison::Less, l, r, constants),
        Expression::LessOrEqual(l, r) => relation(Comparison::LessOrEqual, l, r, constants),
        Expression::Greater(l, r) => relation(Comparison::Greater, l, r, constants),
        Expression::GreaterOrEqual(l, r) => relation(Comparison::GreaterOrEqual, l, r, constants),
        Expression::Not(inner) => match inner.as_ref() {
            Expression::Equal(l, r) => relation(Comparison::Unequal, l, r, constants),
            Expression::Not(inner) => match inner.as_ref() {
                Expression::Equal(l, r) => relation(Comparison::Equal, l, r, constants),
                _ => None,
            },
            _ => None,
        },
        Expression::In(_, list) if list.is_empty() => None,
        Expression::In(value, list) => {
            let Expression::Variable(variable) = value.as_ref() else { return None };
            let equal = |one| comparison(Comparison::Equal, one, constants);
            let tests = list.iter().map(equal).collect::<Option<_>>()?;
            Some(decides((variable.as_str(), Test::Any { list: true, tests })))
        }
        Expression::Or(..) => any_of(expression, constants),
        Expression::FunctionCall(function, arguments) => call(function, arguments, constants),
        _ => None,
    }
}

fn relation<'a>(
    operator: Comparison,
    left: &'a Expression,
    right: &'a Expression,
    constants: &mut Constants,
) -> Option<Taken<'a>> {
    let is_constant = matches!(left, Expression::NamedNode(_) | Expression::Literal(_));
    let (left, right) = if is_constant { (right, left) } else { (left, right) };
    let operator = match operator {
        Comparison::Less if is_constant => Comparison::Greater,
        Comparison::LessOrEqual if is_constant => Comparison::GreaterOrEqual,
        Comparison::Greater if is_constant => Comparison::Less,
        Comparison::GreaterOrEqual if is_constant => Comparison::LessOrEqual,
        other => other,
    };
    if let Expression::Variable(variable) = left {
        let test = comparison(operator, right, constants)?;
        return Some(Taken { variable: variable.as_str(), test, decides: true });
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
    let named = matches!(operator, Comparison::Equal | Comparison::Unequal);
    let constant = match constant {
        Expression::NamedNode(iri) => constants.iri(iri),
        // in base units a quantity may be a number, and yet no other kind of term passes
        Expression::Literal(literal)
            if operator == Comparison::Unequal && constants.is_quantity(literal) =>
        {
            return None;
        }
        Expression::Literal(literal) => constants.literal(literal, named),
        _ => return None,
    };
    Some(Test::Compare { operator, constant })
}

fn call<'a>(
    function: &Function,
    arguments: &'a [Expression],
    constants: &mut Constants,
) -> Option<Taken<'a>> {
    let operator = match (function, arguments) {
        (Function::Contains, _) => TextOperator::Contains,
        (Function::StrStarts, _) => TextOperator::Starts,
        (Function::StrEnds, _) => TextOperator::Ends,
        (Function::LangMatches, _) => TextOperator::Matches,
        (Function::Regex, [text, Expression::Literal(pattern), flags @ ..]) => {
            let (variable, view, folding) = looked_at(text)?;
            let flags = match flags {
                [] => None,
                [Expression::Literal(flags)] => Some(constants.literal(flags, false)),
                _ => return None,
            };
            let pattern = constants.literal(pattern, false);
            let test = Test::Regex { view, folding, pattern, flags };
            return Some(Taken { variable, test, decides: false });
        }
        (Function::Custom(name), [Expression::Variable(v), Expression::NamedNode(concept)]) => {
            let operator = match name.as_str().strip_prefix(GM)? {
                "descendantOf" => TaxonomyOperator::Descendant,
                "ancestorOf" => TaxonomyOperator::Ancestor,
                "childOf" => TaxonomyOperator::Child,
                _ => return None,
            };
            let test = Test::Taxonomy { operator, concept: constants.iri(concept) };
            return Some(Taken { variable: v.as_str(), test, decides: true });
        }
        _ => return None,
    };
    let [text, argument] = arguments else { return None };
    let (variable, test) = text_test(operator, text, argument, constants)?;
    Some(Taken { variable, test, decides: true })
}

fn text_test<'a>(
    operator: TextOperator,
    text: &'a Expression,
    argument: &Expression,
    constants: &mut Constants,
) -> Option<(&'a str, Test)> {
    let (variable, view, folding) = looked_at(text)?;
    let (argument_folding, argument) = unfolded(argument);
    let Expression::Literal(literal) = argument else { return None };
    let named = operator == TextOperator::Equals && argument_folding == Folding::None;
    let argument = constants.literal(literal, named);
    Some((variable, Test::Text { operator, view, folding, argument, argument_folding }))
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
fn any_of<'a>(expression: &'a Expression, constants: &mut Constants) -> Option<Taken<'a>> {
    let (mut choices, mut rest) = (Vec::new(), vec![expression]);
    while let Some(next) = rest.pop() {
        match next {
            Expression::Or(left, right) => rest.extend([right.as_ref(), left]),
            other => choices.push(by_variable(other, constants)),
        }
    }
    let first: Vec<&str> = choices.first()?.iter().map(|taken| taken.variable).collect();
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
fn by_variable<'a>(expression: &'a Expression, constants: &mut Constants) -> Vec<Taken<'a>> {
    let parts = conjuncts(expression);
    let alone = parts.len() == 1;
    let mut found: Vec<Taken<'a>> = Vec::new();
    for taken in parts.into_iter().filter_map(|part| part.necessary(constants)) {
        if found.iter().all(|known| known.variable != taken.variable) {
            found.push(Taken { decides: taken.decides && alone, ..taken });
        }
    }
    found
}

/// Names an expression for the remainder: its operator or function.
fn word(expression: &Expression) -> String {
    let word = match expression {
        Expression::NamedNode(_) | Expression::Literal(_) | Expression::Variable(_) => {
            "of a variable"
        }
        Expression::Or(..) => "||",
        Expression::And(..) => "&&",
        Expression::Equal(..) => "=",
        Expression::SameTerm(..) => "sameTerm",
        Expression::Greater(..) => ">",
        Expression::GreaterOrEqual(..) => ">=",
        Expression::Less(..) => "<",
        Expression::LessOrEqual(..) => "<=",
        Expression::In(..) => "IN",
        Expression::Add(..) | Expression::UnaryPlus(_) => "+",
        Expression::Subtract(..) | Expression::UnaryMinus(_) => "-",
        Expression::Multiply(..) => "*",
        Expression::Divide(..) => "/",
        Expression::Not(inner) => match inner.as_ref() {
            Expression::Equal(..) => "!=",
            Expression::In(..) => "NOT IN",
            Expression::Exists(_) => "NOT EXISTS",
            _ => "!",
        },
        Expression::Exists(_) => "EXISTS",
        Expression::Bound(_) => "BOUND",
        Expression::If(..) => "IF",
        Expression::Coalesce(_) => "COALESCE",
        Expression::FunctionCall(function, _) => return function.to_string(),
    };
    word.to_owned()
}
