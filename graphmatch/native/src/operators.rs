//! Operators: functions of Python's that queries call, and what is known of their calls.
//!
//! A call costs milliseconds or seconds, so none is made while a query is evaluated. What calls give
//! is looked up ([`Answers`]); those that are not known yet are noted ([`Asked`]), made by Python, and
//! the publication is matched again. Which calls decide a candidate is known before, where they stand
//! in the outermost filters of a query ([`Condition`]): for each solution of what is left of the query
//! without these (the guard) they are a conjunction, and Python makes the most telling calls first.
//!
//! An operator that generates bindings is a property in a pattern, its results a table that is joined
//! ([`joined`]).

use crate::algebra::{Part, body, comparison_of, mirrored, pattern_of, pattern_of_mut, visit};
use crate::evaluate::EvaluationError;
use crate::lexical::write_term;
use crate::necessary::{Analysis, Constants};
use crate::pattern::Comparison;
use crate::rest::{Fresh, group, has_subquery, name_blank_nodes};
use crate::rewrite::unmarked;
use crate::values::{Value, compare};
use hashbrown::{HashMap, HashSet};
use oxrdf::{Literal, NamedNode, Term};
use pyo3::FromPyObject;
use serde::{Deserialize, Serialize};
use spargebra::Query;
use spargebra::algebra::{Expression, Function, GraphPattern, PropertyPathExpression};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern, Variable};
use std::sync::{Arc, Mutex, PoisonError};

const FIRST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#first";
const REST: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#rest";
const NIL: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#nil";

/// An operator: its IRI, whether it has an index over constants, and whether it is a property that
/// generates bindings.
#[derive(Clone, Debug, FromPyObject)]
pub struct Operator(pub String, pub bool, pub bool);

/// The operators that queries may call.
#[derive(Clone, Debug, Default)]
pub struct Operators(Arc<[Operator]>);

impl Operators {
    /// Those of a list.
    pub fn new(all: Vec<Operator>) -> Self {
        Self(all.into())
    }

    fn is(&self, iri: &str, wanted: impl Fn(&Operator) -> bool) -> bool {
        self.0.iter().any(|one| one.0 == iri && wanted(one))
    }

    /// Whether an IRI is an operator's.
    pub fn has(&self, iri: &str) -> bool {
        self.is(iri, |_| true)
    }

    /// Whether an IRI is an operator's that is called as a function.
    pub fn is_function(&self, iri: &str) -> bool {
        self.is(iri, |one| !one.2)
    }

    /// Whether an IRI is an operator's that has an index.
    pub fn is_indexed(&self, iri: &str) -> bool {
        self.is(iri, |one| one.1)
    }

    /// Whether an IRI is an operator's that generates bindings.
    pub fn generates(&self, iri: &str) -> bool {
        self.is(iri, |one| one.2)
    }

    /// The IRIs of those that have an index, as N-Triples has them.
    pub fn indexed(&self) -> impl Iterator<Item = String> {
        self.0.iter().filter(|one| one.1).map(|one| format!("<{}>", one.0))
    }
}

// --- What calls give ------------------------------------------------------------------------------

/// What a call gave.
#[derive(Clone, Debug)]
pub enum Given {
    /// A value.
    Value(Term),
    /// Bindings: a row of terms each.
    Rows(Vec<Vec<Term>>),
    /// Nothing that can be used: it failed, or took too long.
    Unknown,
}

/// What calls gave for one publication, by [`key`].
#[derive(Clone, Debug, Default)]
pub struct Answers(pub HashMap<String, Given>);

/// A call as it is looked up: the operator's IRI and the arguments as N-Triples has them, a line each.
pub fn key<'a>(operator: &str, arguments: impl IntoIterator<Item = &'a str>) -> String {
    let mut key = operator.to_owned();
    for argument in arguments {
        key.push('\n');
        key.push_str(argument);
    }
    key
}

pub(crate) fn text_of(term: &Term) -> String {
    let mut text = String::new();
    write_term(&mut text, term.as_ref());
    text
}

/// What one evaluation wanted to know of calls.
#[derive(Debug, Default)]
pub struct Wanted {
    /// Those that nobody made yet.
    pub missing: Vec<String>,
    /// Those that gave nothing.
    pub unknown: Vec<String>,
}

/// What is known of calls, for an evaluation, and what that wants to know.
#[derive(Clone, Debug, Default)]
pub struct Asked {
    answers: Arc<Answers>,
    /// What indexes say of calls.
    facts: Arc<HashMap<String, bool>>,
    wanted: Arc<Mutex<Wanted>>,
}

impl Asked {
    /// With what is known.
    pub fn new(answers: Arc<Answers>) -> Self {
        Self { answers, ..Self::default() }
    }

    /// With what indexes say, too.
    pub fn with_facts(self, facts: HashMap<String, bool>) -> Self {
        Self { facts: Arc::new(facts), ..self }
    }

    fn note(&self, key: String, is_missing: bool) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let list = if is_missing { &mut wanted.missing } else { &mut wanted.unknown };
        if !list.contains(&key) {
            list.push(key);
        }
    }

    /// The value of a call; an error where there is none.
    pub fn call(&self, operator: &str, arguments: &[Term]) -> Option<Term> {
        let texts: Vec<String> = arguments
            .iter()
            .map(|term| match term {
                Term::Literal(literal) => text_of(&unmarked(literal.clone()).into()),
                other => text_of(other),
            })
            .collect();
        let key = key(operator, texts.iter().map(String::as_str));
        if let Some(&truth) = self.facts.get(&key) {
            return Some(Literal::from(truth).into());
        }
        match self.answers.0.get(&key) {
            Some(Given::Value(term)) => return Some(term.clone()),
            Some(Given::Rows(_)) => {}
            Some(Given::Unknown) => self.note(key, false),
            None => self.note(key, true),
        }
        None
    }

    /// What was wanted.
    pub fn taken(&self) -> Wanted {
        std::mem::take(&mut self.wanted.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

// --- Conditions -----------------------------------------------------------------------------------

/// A call that every solution of a query has to pass: the outermost filters say so, or the pattern of
/// an operator that generates bindings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// The operator's IRI.
    pub operator: Box<str>,
    /// The names of variables, or nothing and the number of a constant.
    pub arguments: Box<[(Box<str>, u32)]>,
    /// Whether the call has to be false.
    pub negated: bool,
    /// What it is compared with otherwise, by the number of the constant.
    pub compared: Option<(Comparison, u32)>,
    /// Whether its value is used, and not only its truth: an index knows none.
    pub valued: bool,
}

/// What calls there are in a query.
#[derive(Default)]
pub struct Calls {
    /// Whether there are any.
    pub any: bool,
    /// Those that every solution has to pass.
    pub conditions: Vec<Condition>,
    /// Whether there are no others, so that a call that fails only takes solutions away.
    pub only_conditions: bool,
}

/// The top of a group: conjuncts of filters, what is bound there, and what is below.
struct Top<'a> {
    conjuncts: Vec<&'a Expression>,
    bound: Vec<(&'a Variable, &'a Expression)>,
    inner: &'a GraphPattern,
}

fn top(mut pattern: &GraphPattern) -> Top<'_> {
    let (mut conjuncts, mut bound) = (Vec::new(), Vec::new());
    loop {
        pattern = match pattern {
            GraphPattern::Filter { expr, inner } => {
                let mut rest = vec![expr];
                while let Some(next) = rest.pop() {
                    match next {
                        Expression::And(left, right) => rest.extend([right.as_ref(), left]),
                        other => conjuncts.push(other),
                    }
                }
                inner
            }
            GraphPattern::Extend { inner, variable, expression } => {
                bound.push((variable, expression));
                inner
            }
            inner => return Top { conjuncts, bound, inner },
        }
    }
}

/// Counts the calls of operators in a pattern.
fn count(pattern: &GraphPattern, operators: &Operators) -> usize {
    let mut found = 0;
    visit(&mut pattern.clone(), &mut |part| match part {
        Part::Expression(Expression::FunctionCall(Function::Custom(name), _)) => {
            found += usize::from(operators.is_function(name.as_str()));
        }
        Part::Pattern(GraphPattern::Bgp { patterns }) => {
            found += patterns.iter().filter(|one| generated(one, operators).is_some()).count();
        }
        _ => {}
    });
    found
}

fn count_in(expression: &Expression, operators: &Operators) -> usize {
    let inner = Box::default();
    count(&GraphPattern::Filter { expr: expression.clone(), inner }, operators)
}

/// The variables of an expression.
fn variables_of(expression: &Expression) -> HashSet<Variable> {
    let mut found = HashSet::new();
    let inner = Box::default();
    visit(&mut GraphPattern::Filter { expr: expression.clone(), inner }, &mut |part| {
        if let Part::Expression(Expression::Variable(one) | Expression::Bound(one)) = part {
            found.insert(one.clone());
        }
    });
    found
}

/// The name of a call's operator, and its arguments where they are variables and constants.
fn call<'a>(
    expression: &'a Expression,
    bound: &[(&'a Variable, &'a Expression)],
    operators: &Operators,
) -> Option<(&'a str, &'a [Expression])> {
    match expression {
        Expression::Variable(variable) => {
            let (_, expression) = bound.iter().find(|(name, _)| *name == variable)?;
            if matches!(expression, Expression::Variable(_)) {
                return None;
            }
            call(expression, bound, operators)
        }
        Expression::FunctionCall(Function::Custom(name), arguments) => {
            let is_plain = |one: &Expression| {
                use Expression::{Literal, NamedNode, Variable};
                matches!(one, Variable(_) | NamedNode(_) | Literal(_))
            };
            let is_call = operators.is_function(name.as_str()) && arguments.iter().all(is_plain);
            is_call.then_some((name.as_str(), arguments))
        }
        _ => None,
    }
}

impl Calls {
    /// The calls of a query.
    pub fn of(pattern: &GraphPattern, operators: &Operators, constants: &mut Constants) -> Self {
        let all = if operators.0.is_empty() { 0 } else { count(pattern, operators) };
        let none = Self { any: all > 0, ..Self::default() };
        let body = body(pattern);
        if all == 0 || group(body).is_some() || has_subquery(body) {
            return none;
        }
        let top = top(body);
        let (mut generators, mut inner) = (Vec::new(), top.inner.clone());
        lift(&mut inner, operators, &mut |call| generators.push(call));
        if count(&inner, operators) > 0 {
            return none; // the guard would have to make calls
        }
        let (mut conditions, mut covered) = (Vec::new(), HashSet::new());
        let is_bound = |one: &Expression| matches!(one, Expression::Variable(_));
        for expression in &top.conjuncts {
            let made = match expression {
                Expression::Not(inner) => {
                    call(inner, &top.bound, operators).map(|one| (one, true, None, is_bound(inner)))
                }
                other => call(other, &top.bound, operators)
                    .map(|one| (one, false, None, is_bound(other))),
            };
            let made = made.or_else(|| {
                let (operator, left, right) = comparison_of(expression)?;
                let (operator, left, right) = match left {
                    Expression::NamedNode(_) | Expression::Literal(_) => {
                        (mirrored(operator), right, left)
                    }
                    _ => (operator, left, right),
                };
                let number = constant(right, constants)?;
                Some((call(left, &top.bound, operators)?, false, Some((operator, number)), true))
            });
            if let Some(((operator, arguments), negated, compared, valued)) = made {
                covered.insert(arguments.as_ptr());
                let arguments = arguments.iter().map(|one| argument(one, constants));
                let arguments = arguments.collect();
                conditions.push(Condition {
                    operator: operator.into(),
                    arguments,
                    negated,
                    compared,
                    valued,
                });
            }
        }
        let only_conditions = covered.len() + generators.len() == all
            && !matches!(pattern, GraphPattern::Slice { .. });
        for generator in &generators {
            let arguments: Option<Box<[_]>> =
                generator.arguments.iter().map(|one| node(one, constants)).collect();
            if let Some(arguments) = arguments {
                conditions.push(Condition {
                    operator: generator.operator.as_str().into(),
                    arguments,
                    negated: false,
                    compared: None,
                    valued: false,
                });
            }
        }
        Self { any: true, conditions, only_conditions }
    }
}

/// What a query does with operators that can never be answered: what is wrong, and what to do.
pub fn misuse(
    pattern: &GraphPattern,
    operators: &Operators,
) -> Option<(&'static str, &'static str)> {
    let (mut is_random, mut is_property, mut is_path) = (false, false, false);
    let is_random_function = |one: &Function| {
        matches!(one, Function::Rand | Function::Uuid | Function::StrUuid | Function::BNode)
    };
    let is_operator = |one: &NamedNode| operators.has(one.as_str());
    visit(&mut pattern.clone(), &mut |part| match part {
        Part::Expression(Expression::FunctionCall(function, _)) => {
            is_random |= is_random_function(function);
        }
        Part::Pattern(GraphPattern::Bgp { patterns }) => {
            is_property |= patterns.iter().any(|one| {
                matches!(&one.predicate, NamedNodePattern::NamedNode(name)
                    if operators.is_function(name.as_str()))
            });
        }
        Part::Pattern(GraphPattern::Path { path, .. }) => is_path |= names(path, &is_operator),
        _ => {}
    });
    if is_property {
        let what = "an operator that is a function stands as a property";
        return Some((what, "Call it in FILTER or BIND, or have it generate bindings."));
    }
    if is_path {
        return Some((
            "an operator stands in a property path",
            "Write it as a pattern of its own.",
        ));
    }
    if is_random && count(pattern, operators) > 0 {
        let what = "it calls an operator, and RAND, UUID, STRUUID or BNODE, so its calls differ \
                    each time";
        return Some((what, "Leave these functions out."));
    }
    None
}

/// Whether a path has a property that is wanted.
fn names(path: &PropertyPathExpression, is_wanted: &impl Fn(&NamedNode) -> bool) -> bool {
    use PropertyPathExpression as Path;
    match path {
        Path::NamedNode(name) => is_wanted(name),
        Path::NegatedPropertySet(all) => all.iter().any(is_wanted),
        Path::Sequence(a, b) | Path::Alternative(a, b) => {
            names(a, is_wanted) || names(b, is_wanted)
        }
        Path::Reverse(a) | Path::ZeroOrMore(a) | Path::OneOrMore(a) | Path::ZeroOrOne(a) => {
            names(a, is_wanted)
        }
    }
}

impl Calls {
    /// Whether all patterns of operators are where their calls are known before, their arguments
    /// bound.
    pub fn are_placed(
        &self,
        pattern: &GraphPattern,
        operators: &Operators,
        is_bound: impl Fn(&str) -> bool,
    ) -> bool {
        if !self.any {
            return true;
        }
        let mut all = 0;
        visit(&mut pattern.clone(), &mut |part| {
            if let Part::Pattern(GraphPattern::Bgp { patterns }) = part {
                all += patterns.iter().filter(|one| generated(one, operators).is_some()).count();
            }
        });
        let generators = self.conditions.iter().filter(|one| operators.generates(&one.operator));
        let placed = generators
            .filter(|one| one.arguments.iter().all(|(name, _)| name.is_empty() || is_bound(name)));
        placed.count() == all
    }

    /// Whether what is below the conditions is no more than patterns and filters of one branch.
    pub fn guards(
        &self,
        pattern: &GraphPattern,
        operators: &Operators,
        slots: u32,
        most: usize,
    ) -> bool {
        if self.conditions.is_empty() {
            return false;
        }
        let mut inner = top(body(pattern)).inner.clone();
        lift(&mut inner, operators, &mut |_| {});
        let mut analysis = Analysis::new(slots, most, false, Operators::default());
        let branches = analysis.query(&inner).0.len();
        branches == 1 && analysis.remainder.is_empty()
    }
}

fn constant(expression: &Expression, constants: &mut Constants) -> Option<u32> {
    match expression {
        Expression::NamedNode(iri) => Some(constants.iri(iri)),
        Expression::Literal(literal) => Some(constants.literal(literal)),
        _ => None,
    }
}

fn argument(expression: &Expression, constants: &mut Constants) -> (Box<str>, u32) {
    match expression {
        Expression::Variable(variable) => (variable.as_str().into(), 0),
        other => ("".into(), constant(other, constants).unwrap_or_default()),
    }
}

fn node(term: &TermPattern, constants: &mut Constants) -> Option<(Box<str>, u32)> {
    match term {
        TermPattern::Variable(variable) => Some((variable.as_str().into(), 0)),
        TermPattern::NamedNode(iri) => Some(("".into(), constants.iri(iri))),
        TermPattern::Literal(literal) => Some(("".into(), constants.literal(literal))),
        _ => None,
    }
}

/// Whether a call passes a condition; `None` where nobody knows.
pub fn holds(given: &Given, negated: bool, compared: Option<(Comparison, &str)>) -> Option<bool> {
    Some(match (given, compared) {
        (Given::Unknown, _) => return None,
        (Given::Rows(rows), None) => !rows.is_empty(),
        (Given::Rows(_), Some(_)) => false,
        (Given::Value(term), Some((operator, constant))) => {
            let text = text_of(term);
            let (left, right) = (Value::of(text.as_bytes()), Value::of(constant.as_bytes()));
            compare(&left, operator, &right).unwrap_or(false)
        }
        (Given::Value(term), None) => truth(term).is_some_and(|truth| truth != negated),
    })
}

/// The effective boolean value of a term.
fn truth(term: &Term) -> Option<bool> {
    let Term::Literal(literal) = term else { return None };
    let (text, datatype) = (literal.value(), literal.datatype());
    let name = datatype.as_str().strip_prefix("http://www.w3.org/2001/XMLSchema#")?;
    match name {
        "boolean" => Some(matches!(text, "true" | "1")),
        "string" => Some(!text.is_empty()),
        "integer" | "decimal" | "double" | "float" => {
            Some(text.parse().is_ok_and(|number: f64| number != 0.0 && !number.is_nan()))
        }
        _ => None,
    }
}

// --- The guard ------------------------------------------------------------------------------------

/// A query's pattern without what depends on calls, for its solutions.
pub fn guard(mut query: Query, operators: &Operators) -> Query {
    name_blank_nodes(pattern_of_mut(&mut query), &mut Fresh::guarding());
    let top = top(body(pattern_of(&query)));
    let mut inner = top.inner.clone();
    let mut tainted: HashSet<Variable> = HashSet::new();
    lift(&mut inner, operators, &mut |call| {
        tainted.extend(call.results.iter().filter_map(|one| match one {
            TermPattern::Variable(variable) => Some(variable.clone()),
            _ => None,
        }));
    });
    for (variable, expression) in top.bound.iter().rev() {
        let depends = !variables_of(expression).is_disjoint(&tainted);
        if depends || count_in(expression, operators) > 0 {
            tainted.insert((*variable).clone());
            continue;
        }
        let (variable, expression) = ((*variable).clone(), (*expression).clone());
        inner = GraphPattern::Extend { inner: inner.into(), variable, expression };
    }
    for expression in top.conjuncts {
        let depends = !variables_of(expression).is_disjoint(&tainted);
        if !depends && count_in(expression, operators) == 0 {
            inner = GraphPattern::Filter { expr: expression.clone(), inner: inner.into() };
        }
    }
    let variables = crate::rest::visible(&inner);
    let pattern = GraphPattern::Project { inner: inner.into(), variables };
    Query::Select { dataset: None, pattern, base_iri: query.base_iri().cloned() }
}

// --- Generated bindings ---------------------------------------------------------------------------

/// A pattern whose property is an operator.
pub(crate) struct Generator {
    pub operator: NamedNode,
    pub arguments: Vec<TermPattern>,
    pub results: Vec<TermPattern>,
}

fn generated<'a>(pattern: &'a TriplePattern, operators: &Operators) -> Option<&'a NamedNode> {
    match &pattern.predicate {
        NamedNodePattern::NamedNode(name) if operators.generates(name.as_str()) => Some(name),
        _ => None,
    }
}

/// Takes a list apart, whose triples are taken out of the pattern; a term by itself otherwise.
fn listed(term: &TermPattern, patterns: &mut Vec<TriplePattern>) -> Vec<TermPattern> {
    let mut take = |subject: &TermPattern, property: &str| {
        let is_it = |one: &TriplePattern| {
            one.subject == *subject
                && matches!(&one.predicate, NamedNodePattern::NamedNode(p) if p.as_str() == property)
        };
        let place = patterns.iter().position(is_it)?;
        Some(patterns.remove(place).object)
    };
    let mut found = Vec::new();
    let mut cell = term.clone();
    while !matches!(cell, TermPattern::NamedNode(_) | TermPattern::Literal(_)) {
        let Some(first) = take(&cell, FIRST) else { break };
        found.push(first);
        match take(&cell, REST) {
            Some(TermPattern::NamedNode(end)) if end.as_str() == NIL => return found,
            Some(rest) => cell = rest,
            None => break,
        }
    }
    if found.is_empty() { vec![term.clone()] } else { found }
}

/// Takes the patterns of operators out of what is required.
pub(crate) fn lift(
    pattern: &mut GraphPattern,
    operators: &Operators,
    found: &mut dyn FnMut(Generator),
) {
    match pattern {
        GraphPattern::Join { left, right } => {
            lift(left, operators, found);
            lift(right, operators, found);
        }
        GraphPattern::Bgp { patterns } => {
            for generator in taken(patterns, operators) {
                found(generator);
            }
        }
        GraphPattern::Filter { inner, .. } | GraphPattern::Extend { inner, .. } => {
            lift(inner, operators, found);
        }
        _ => {}
    }
}

/// Takes the patterns of operators out of a basic graph pattern.
pub(crate) fn taken(patterns: &mut Vec<TriplePattern>, operators: &Operators) -> Vec<Generator> {
    let mut found = Vec::new();
    while let Some(place) = patterns.iter().position(|one| generated(one, operators).is_some()) {
        let pattern = patterns.remove(place);
        let NamedNodePattern::NamedNode(operator) = pattern.predicate else { continue };
        let arguments = listed(&pattern.subject, patterns);
        let results = listed(&pattern.object, patterns);
        found.push(Generator { operator, arguments, results });
    }
    found
}

/// Puts tables of results in the place of the patterns of operators. Blank nodes are variables by
/// now.
pub fn joined(query: &mut Query, operators: &Operators, asked: &Asked) {
    if operators.0.iter().all(|one| !one.2) {
        return;
    }
    let mut generators = Vec::new();
    let body = crate::algebra::body_mut(pattern_of_mut(query));
    lift(inmost(body), operators, &mut |one| generators.push(one));
    let inner = inmost(body);
    for generator in generators {
        let table = table(&generator, &asked.answers);
        *inner = GraphPattern::Join { left: std::mem::take(inner).into(), right: table.into() };
    }
}

/// What the outermost filters and bindings of a group are applied to.
fn inmost(pattern: &mut GraphPattern) -> &mut GraphPattern {
    match pattern {
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::Group { inner, .. } => inmost(inner),
        other => other,
    }
}

fn table(generator: &Generator, answers: &Answers) -> GraphPattern {
    let places: Vec<&TermPattern> = generator.arguments.iter().chain(&generator.results).collect();
    let mut variables: Vec<Variable> = Vec::new();
    for place in &places {
        if let TermPattern::Variable(variable) = place
            && !variables.contains(variable)
        {
            variables.push(variable.clone());
        }
    }
    let prefix = format!("{}\n", generator.operator.as_str());
    let mut bindings = Vec::new();
    for (key, given) in &answers.0 {
        let (Some(texts), Given::Rows(rows)) = (key.strip_prefix(&prefix), given) else { continue };
        let arguments: Option<Vec<Term>> =
            texts.split('\n').map(crate::lexical::read_term).collect();
        let Some(arguments) = arguments else { continue };
        for row in rows {
            if arguments.len() + row.len() != places.len() {
                continue;
            }
            let mut values: HashMap<&Variable, &Term> = HashMap::new();
            let fits =
                places.iter().zip(arguments.iter().chain(row)).all(|(place, term)| match place {
                    TermPattern::Variable(variable) => {
                        *values.entry(variable).or_insert(term) == term
                    }
                    TermPattern::NamedNode(name) => Term::from(name.clone()) == *term,
                    TermPattern::Literal(literal) => Term::from(literal.clone()) == *term,
                    _ => false,
                });
            // a blank node cannot be written there
            let row: Vec<_> =
                variables.iter().map(|one| values.get(one).and_then(|term| ground(term))).collect();
            if fits && row.iter().all(Option::is_some) {
                bindings.push(row);
            }
        }
    }
    GraphPattern::Values { variables, bindings }
}

fn ground(term: &Term) -> Option<GroundTerm> {
    match term {
        Term::NamedNode(name) => Some(name.clone().into()),
        Term::Literal(literal) => Some(literal.clone().into()),
        _ => None,
    }
}

// --- What is open ---------------------------------------------------------------------------------

/// What is asked of a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Test {
    /// The call, by its number.
    pub call: u32,
    /// Whether it has to be false,
    pub negated: bool,
    /// or what it is compared with.
    pub compared: Option<(Comparison, String)>,
    /// What is the same for each publication: the operator and the constants.
    pub predicate: String,
}

/// What of a publication's candidates waits for calls.
#[derive(Debug, Default)]
pub struct Open {
    /// The calls, as they are looked up.
    pub calls: Vec<String>,
    /// What is asked of them.
    pub tests: Vec<Test>,
    /// The names of subscriptions, and whether one solution is enough.
    pub candidates: Vec<(String, bool)>,
    /// For each solution that is open: of which candidate it is, whether its calls are no conjunction,
    /// and where its tests end among the entries.
    pub rows: Vec<(u32, bool, u32)>,
    /// The tests of solutions.
    pub entries: Vec<u32>,
    by_key: HashMap<String, u32>,
    by_test: HashMap<Test, u32>,
}

impl Open {
    /// The number of a subscription that waits for calls.
    pub fn candidate(&mut self, name: String, once: bool) -> u32 {
        self.candidates.push((name, once));
        (self.candidates.len() - 1) as u32
    }

    /// The number of a call.
    pub fn call(&mut self, key: String) -> u32 {
        let calls = &mut self.calls;
        *self.by_key.entry(key).or_insert_with_key(|key| {
            calls.push(key.clone());
            (calls.len() - 1) as u32
        })
    }

    /// The number of what is asked of a call.
    pub fn test(&mut self, test: Test) -> u32 {
        let tests = &mut self.tests;
        *self.by_test.entry(test).or_insert_with_key(|test| {
            tests.push(test.clone());
            (tests.len() - 1) as u32
        })
    }

    /// Adds a solution that waits for some tests.
    pub fn row(&mut self, candidate: u32, is_loose: bool, tests: impl IntoIterator<Item = u32>) {
        self.entries.extend(tests);
        self.rows.push((candidate, is_loose, self.entries.len() as u32));
    }
}

/// Why there is no answer to a candidate's query yet, or why not all of it.
pub enum Undecided {
    /// Its evaluation failed.
    Failed(EvaluationError),
    /// Calls have to be made first.
    Waits,
    /// Calls gave nothing, and it depends on them.
    Unknown(Vec<String>),
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::NamedNode;
    use spargebra::SparqlParser;

    fn operators() -> Operators {
        Operators::new(vec![
            Operator("urn:f".to_owned(), false, false),
            Operator("urn:g".to_owned(), false, true),
        ])
    }

    fn calls(text: &str) -> Calls {
        let query = SparqlParser::new().parse_query(text).unwrap();
        Calls::of(pattern_of(&query), &operators(), &mut Constants::default())
    }

    #[test]
    fn conditions_are_calls_of_the_outermost_filters() {
        for (filter, count, is_only) in [
            ("FILTER(<urn:f>(?y))", 1, true),
            ("FILTER(<urn:f>(?y) && !<urn:f>(?x))", 2, true),
            ("FILTER(<urn:f>(?y) > 3)", 1, true),
            ("BIND(<urn:f>(?y) AS ?z) FILTER(?z > 3 && ?z < 9)", 2, true),
            ("BIND(<urn:f>(?y) AS ?z)", 0, false),
            ("FILTER(<urn:f>(?y) || ?y = 3)", 0, false),
            ("FILTER(<urn:f>(?y) && (<urn:f>(?x) || ?y = 3))", 1, false),
            ("OPTIONAL { ?x <urn:q> ?z FILTER(<urn:f>(?z)) } FILTER(<urn:f>(?y))", 0, false),
            ("?x <urn:g> (?a ?b)", 1, true),
        ] {
            let found = calls(&format!("SELECT * {{ ?x <urn:p> ?y . {filter} }}"));
            assert_eq!(
                (found.conditions.len(), found.only_conditions),
                (count, is_only),
                "{filter}"
            );
        }
        assert!(!calls("SELECT * { ?x <urn:p> ?y FILTER(?y > 3) }").any);
        let limited = calls("SELECT * { ?x <urn:p> ?y FILTER(<urn:f>(?y)) } LIMIT 1");
        assert!(limited.any && !limited.only_conditions);
    }

    #[test]
    fn what_is_never_answered_is_refused() {
        for (text, what) in [
            ("FILTER(<urn:f>(?y, RAND()))", "RAND"),
            ("BIND(BNODE() AS ?b) FILTER(<urn:f>(?b))", "RAND"),
            ("OPTIONAL { ?x <urn:f> ?z }", "property"),
            ("?x <urn:g>+ ?z", "path"),
            ("?x (<urn:q>|^<urn:g>) ?z", "path"),
            ("?x <urn:g> ?z FILTER(?z > RAND())", "RAND"),
        ] {
            let query = format!("SELECT * {{ ?x <urn:p> ?y . {text} }}");
            let query = SparqlParser::new().parse_query(&query).unwrap();
            let (said, _) = misuse(pattern_of(&query), &operators()).unwrap();
            assert!(said.contains(what), "{text}: {said}");
        }
        let fine = "SELECT * { ?x <urn:p> ?y ; <urn:g> ?z FILTER(<urn:f>(?y)) }";
        let query = SparqlParser::new().parse_query(fine).unwrap();
        assert_eq!(misuse(pattern_of(&query), &operators()), None);
        let query = SparqlParser::new().parse_query("ASK { ?x ?p ?y FILTER(RAND() > 0.5) }");
        assert_eq!(misuse(pattern_of(&query.unwrap()), &operators()), None);
    }

    #[test]
    fn a_guard_has_no_calls() {
        let text = "SELECT ?x { ?x <urn:p> ?y ; <urn:g> (?a ?b) . BIND(<urn:f>(?y) AS ?z)
            FILTER(?z > 3 && ?y > 1 && ?a > 2) }";
        let query = SparqlParser::new().parse_query(text).unwrap();
        let guard = guard(query, &operators());
        assert_eq!(count(pattern_of(&guard), &operators()), 0);
        let text = guard.to_string();
        assert!(text.contains("?y > ") && !text.contains("?z") && !text.contains("?a"), "{text}");
    }

    #[test]
    fn truths_are_those_of_filters() {
        let value = |term: Term| Given::Value(term);
        let number = |n: f64| value(Literal::from(n).into());
        let three = "\"3\"^^<http://www.w3.org/2001/XMLSchema#integer>";
        assert_eq!(holds(&value(Literal::from(true).into()), false, None), Some(true));
        assert_eq!(holds(&value(Literal::from(true).into()), true, None), Some(false));
        assert_eq!(holds(&number(0.0), true, None), Some(true));
        assert_eq!(holds(&number(4.0), false, Some((Comparison::Greater, three))), Some(true));
        let iri = value(NamedNode::new_unchecked("urn:x").into());
        assert_eq!([holds(&iri, false, None), holds(&iri, true, None)], [Some(false); 2]);
        assert_eq!(holds(&Given::Rows(Vec::new()), false, None), Some(false));
        assert_eq!(holds(&Given::Unknown, false, None), None);
    }
}
