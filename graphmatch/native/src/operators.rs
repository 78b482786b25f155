//! Operators: Python functions that queries call.
//!
//! A call takes milliseconds or more, so an evaluation makes none. It looks results up in a
//! [`CallContext`], which notes the calls without a result. Python makes these calls, and the
//! publication is matched again.
//!
//! A [`Prefilter`] is a query without its calls. Each of its solutions has to pass the tests of the
//! outermost filters. If one test fails, Python need not make the other calls of that solution.
//!
//! An operator that generates bindings is the property of a triple pattern. A table of its results
//! replaces that pattern.

use crate::algebra::{Part, body, comparison_of, mirrored, pattern_of, pattern_of_mut, visit};
use crate::necessary::{all_steps, conjuncts};
use crate::pattern::Comparison;
use crate::rest::{group, has_subquery};
use crate::subscriptions::Number;
use crate::terms::{read_term, write_term};
use crate::values::{Value, compare};
use hashbrown::{HashMap, HashSet};
use oxrdf::vocab::{rdf, xsd};
use oxrdf::{NamedNode, NamedNodeRef, Term};
use pyo3::FromPyObject;
use spargebra::Query;
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern, Variable};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// An operator as Python describes it.
#[derive(Clone, Debug, FromPyObject)]
pub struct Operator {
    #[pyo3(item(0))]
    pub iri: String,
    /// Whether it has an index over constants.
    #[pyo3(item(1))]
    pub is_indexed: bool,
    /// Whether it is a property that generates bindings, instead of a function.
    #[pyo3(item(2))]
    pub generates: bool,
}

/// The operators that queries may call.
#[derive(Clone, Debug, Default)]
pub struct Operators(pub Arc<[Operator]>);

impl Operators {
    /// The operator of an IRI.
    pub fn find(&self, iri: &NamedNode) -> Option<&Operator> {
        self.0.iter().find(|one| one.iri == iri.as_str())
    }

    /// Whether an IRI is that of an operator that is called as a function.
    pub fn is_function(&self, iri: &NamedNode) -> bool {
        self.find(iri).is_some_and(|one| !one.generates)
    }

    /// The number of calls in an expression.
    fn calls_in(&self, expression: &Expression) -> usize {
        self.calls_below(&GraphPattern::Filter { expr: expression.clone(), inner: Box::default() })
    }

    /// The number of calls in a pattern, those of generators included.
    fn calls_below(&self, pattern: &GraphPattern) -> usize {
        let mut count = 0;
        visit(&mut pattern.clone(), &mut |part| match part {
            Part::Expression(Expression::FunctionCall(Function::Custom(name), _)) => {
                count += usize::from(self.is_function(name));
            }
            Part::Pattern(GraphPattern::Bgp { patterns }) => {
                count += take_generators(patterns, self).len();
            }
            _ => {}
        });
        count
    }
}

// --- Results --------------------------------------------------------------------------------------

/// The result of a call.
#[derive(Clone, Debug)]
pub enum CallResult {
    Value(Term),
    /// The bindings that a generator returned, a row of terms each.
    Rows(Vec<Vec<Term>>),
    /// The call raised an exception, took too long or returned no term.
    Failed,
}

/// The results of the calls for one publication. The key is the operator's IRI and the arguments as
/// N-Triples, one per line.
pub type CallResults = HashMap<String, CallResult>;

/// The results that one evaluation can use, and the calls for which it found none.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    pub operators: Operators,
    results: Arc<CallResults>,
    /// Truths that an operator's index gave. They replace calls.
    facts: Arc<CallResults>,
    /// Calls without a value. True if the call was made and failed.
    noted: Arc<Mutex<BTreeMap<String, bool>>>,
}

impl CallContext {
    pub fn new(operators: &Operators, results: &Arc<CallResults>, facts: CallResults) -> Self {
        let (operators, results) = (operators.clone(), Arc::clone(results));
        Self { operators, results, facts: facts.into(), noted: Arc::default() }
    }

    /// Returns the value of a call, or notes that there is none.
    pub fn call(&self, operator: &NamedNode, arguments: &[Term]) -> Option<Term> {
        let mut call = operator.as_str().to_owned();
        for argument in arguments {
            call.push('\n');
            write_term(&mut call, argument);
        }
        let result = self.facts.get(&call).or_else(|| self.results.get(&call));
        if let Some(CallResult::Value(term)) = result {
            return Some(term.clone());
        }
        let is_made = result.is_some();
        self.noted.lock().unwrap_or_else(PoisonError::into_inner).insert(call, is_made);
        None
    }

    /// Takes the calls that were noted: those that nobody made, and those that failed.
    pub fn take_noted(&self) -> (Vec<String>, Vec<String>) {
        let noted = std::mem::take(&mut *self.noted.lock().unwrap_or_else(PoisonError::into_inner));
        let (failed, missing): (Vec<_>, Vec<_>) = noted.into_iter().partition(|one| one.1);
        let calls = |noted: Vec<(String, bool)>| noted.into_iter().map(|one| one.0).collect();
        (calls(missing), calls(failed))
    }
}

// --- Tests ----------------------------------------------------------------------------------------

/// A call that every solution of a query has to pass.
#[derive(Clone, Debug)]
pub struct Test {
    pub operator: String,
    /// Variables and constants.
    pub arguments: Vec<Expression>,
    pub requirement: Requirement,
}

/// The condition on the result of a call.
#[derive(Clone, Debug)]
pub enum Requirement {
    /// Any value will do.
    Result,
    Truth(bool),
    Comparison(Comparison, Term),
}

impl Test {
    /// A test that any result passes, for a call that an evaluation noted.
    pub fn of_call(call: &str) -> Self {
        let operator = call.split('\n').next().unwrap_or_default().to_owned();
        Self { operator, arguments: Vec::new(), requirement: Requirement::Result }
    }

    /// The call for a solution; `None` if an argument is unbound.
    pub fn call(&self, value: impl Fn(&Variable) -> Option<String>) -> Option<String> {
        let mut call = self.operator.clone();
        for argument in &self.arguments {
            call.push('\n');
            call.push_str(&match argument {
                Expression::Variable(variable) => value(variable)?,
                constant => constant.to_string(),
            });
        }
        Some(call)
    }

    /// The part that is the same for all publications: operator, constants and requirement.
    fn predicate(&self) -> String {
        let call = self.call(|_| Some("?".to_owned())).unwrap_or_default();
        match &self.requirement {
            Requirement::Result | Requirement::Truth(true) => call,
            Requirement::Truth(false) => format!("{call}\n!"),
            Requirement::Comparison(operator, constant) => {
                format!("{call}\n{} {constant}", operator.name())
            }
        }
    }

    /// Whether a result passes the test; `None` if the call failed.
    pub fn is_passed(&self, result: &CallResult) -> Option<bool> {
        let value = match result {
            CallResult::Failed => return None,
            CallResult::Rows(rows) => return Some(!rows.is_empty()),
            CallResult::Value(value) => value,
        };
        Some(match &self.requirement {
            Requirement::Result => true,
            Requirement::Truth(wanted) => effective_boolean(value) == Some(*wanted),
            Requirement::Comparison(operator, constant) => {
                let (value, constant) = (value.to_string(), constant.to_string());
                let [value, constant] = [&value, &constant].map(|text| Value::of(text.as_bytes()));
                compare(&value, *operator, &constant) == Some(true)
            }
        })
    }
}

/// The effective boolean value of a term (SPARQL 1.1, section 17.2.2).
fn effective_boolean(term: &Term) -> Option<bool> {
    let Term::Literal(literal) = term else { return None };
    let (text, datatype) = (literal.value(), literal.datatype());
    if datatype == xsd::BOOLEAN {
        return Some(matches!(text, "true" | "1"));
    }
    if datatype == xsd::STRING {
        return Some(!text.is_empty());
    }
    let is_numeric = [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE, xsd::FLOAT].contains(&datatype);
    is_numeric.then(|| text.parse().is_ok_and(|number: f64| number != 0.0 && !number.is_nan()))
}

/// A solution that waits for calls: its subscription, whether one solution is enough, and the tests
/// that it has to pass, each a call and its predicate.
pub type PendingSolution = (Number, bool, Vec<(String, String)>);

/// The calls that the candidates of a publication still need.
#[derive(Debug, Default)]
pub struct CallRequests {
    pub solutions: Vec<PendingSolution>,
    /// The tests by predicate.
    pub tests: HashMap<String, Test>,
}

impl CallRequests {
    /// Adds a solution that waits for calls.
    pub fn push(&mut self, candidate: Number, is_once: bool, calls: Vec<(String, Test)>) {
        let mut row = Vec::with_capacity(calls.len());
        for (call, test) in calls {
            let predicate = test.predicate();
            self.tests.entry_ref(predicate.as_str()).or_insert(test);
            row.push((call, predicate));
        }
        self.solutions.push((candidate, is_once, row));
    }
}

// --- The prefilter --------------------------------------------------------------------------------

/// A query without its calls, and the tests that each of its solutions has to pass.
pub struct Prefilter {
    /// Selects the arguments of the tests.
    pub query: Query,
    /// Empty if calls stand below the outermost filters and bindings, or in an aggregating query.
    pub tests: Vec<Test>,
    /// Whether the tests cover all calls, so that a failed call only removes solutions.
    pub is_complete: bool,
    /// Whether only the truth of each call counts, which an index knows.
    pub only_truths: bool,
}

impl Prefilter {
    pub fn new(query: &Query, operators: &Operators) -> Self {
        let whole = body(pattern_of(query));
        let (mut inner, mut filters, mut bound) = (whole, Vec::new(), Vec::new());
        loop {
            inner = match inner {
                GraphPattern::Filter { expr, inner } => {
                    filters.extend(conjuncts(expr));
                    inner
                }
                GraphPattern::Extend { inner, variable, expression } => {
                    bound.push((variable, expression));
                    inner
                }
                _ => break,
            }
        }
        let mut inner = inner.clone();
        let generators = lift_generators(&mut inner, operators);
        let is_group = group(whole).is_some() || has_subquery(whole);
        let is_open = is_group || operators.calls_below(&inner) > 0;
        // The variables whose values depend on calls.
        let results = generators.iter().flat_map(|one| &one.results);
        let mut unknown: HashSet<Variable> = results.filter_map(variable_of).cloned().collect();
        for (variable, expression) in bound.iter().rev() {
            if depends(expression, operators, &unknown) {
                unknown.insert((*variable).clone());
            } else {
                let (variable, expression) = ((*variable).clone(), (*expression).clone());
                inner = GraphPattern::Extend { inner: inner.into(), variable, expression };
            }
        }
        let mut tests: Vec<Test> = generators.iter().filter_map(Generator::test).collect();
        let mut tested = HashSet::new();
        for filter in &filters {
            if !depends(filter, operators, &unknown) {
                let expr = filter.as_ref().clone();
                inner = GraphPattern::Filter { expr, inner: inner.into() };
            } else if let Some((arguments, test)) = test_of(filter, &bound, operators)
                && !arguments.iter().any(|one| depends(one, operators, &unknown))
            {
                tested.insert(arguments.as_ptr());
                tests.push(test);
            }
        }
        let calls_bound: usize = bound.iter().map(|one| operators.calls_in(one.1)).sum();
        let calls: usize = filters.iter().map(|one| operators.calls_in(one)).sum();
        let is_complete = tested.len() == calls + calls_bound
            && !matches!(pattern_of(query), GraphPattern::Slice { .. });
        let is_truth = |one: &Test| matches!(one.requirement, Requirement::Truth(_));
        let only_truths = is_complete && calls_bound == 0 && tests.iter().all(is_truth);
        tests.retain(|_| !is_open);
        let arguments = tests.iter().flat_map(|test| &test.arguments);
        let mut variables: Vec<Variable> = Vec::new();
        for argument in arguments {
            if let Expression::Variable(variable) = argument
                && !variables.contains(variable)
            {
                variables.push(variable.clone());
            }
        }
        let pattern = GraphPattern::Project { inner: inner.into(), variables };
        let pattern = GraphPattern::Distinct { inner: pattern.into() };
        let query = Query::Select { dataset: None, pattern, base_iri: query.base_iri().cloned() };
        Self { query, tests, is_complete: is_complete && !is_open, only_truths }
    }
}

/// Whether the value of an expression may depend on calls.
fn depends(expression: &Expression, operators: &Operators, unknown: &HashSet<Variable>) -> bool {
    let mut depends = false;
    let inner = Box::default();
    visit(&mut GraphPattern::Filter { expr: expression.clone(), inner }, &mut |part| {
        depends |= match part {
            Part::Expression(Expression::FunctionCall(Function::Custom(name), _)) => {
                operators.is_function(name)
            }
            Part::Expression(Expression::Variable(one) | Expression::Bound(one)) => {
                unknown.contains(one)
            }
            Part::Expression(Expression::Exists(_)) => !unknown.is_empty(),
            _ => false,
        }
    });
    depends
}

/// A call of variables and constants, or the variable that is bound to one.
fn call_of<'a>(
    expression: &'a Expression,
    bound: &[(&'a Variable, &'a Expression)],
    operators: &Operators,
) -> Option<(&'a NamedNode, &'a [Expression])> {
    let is_plain = |one: &Expression| {
        use Expression::{Literal, NamedNode, Variable};
        matches!(one, Variable(_) | NamedNode(_) | Literal(_))
    };
    match expression {
        Expression::Variable(variable) => {
            let (_, expression) = bound.iter().find(|(name, _)| *name == variable)?;
            call_of(expression, &[], operators)
        }
        Expression::FunctionCall(Function::Custom(name), arguments) => {
            let is_call = operators.is_function(name) && arguments.iter().all(is_plain);
            is_call.then_some((name, arguments))
        }
        _ => None,
    }
}

/// The test that a filter is: a call, its negation, or its comparison with a constant.
fn test_of<'a>(
    filter: &'a Expression,
    bound: &[(&'a Variable, &'a Expression)],
    operators: &Operators,
) -> Option<(&'a [Expression], Test)> {
    let constant = |expression: &Expression| match expression {
        Expression::NamedNode(name) => Some(Term::from(name.clone())),
        Expression::Literal(literal) => Some(literal.clone().into()),
        _ => None,
    };
    let (call, requirement) = match (comparison_of(filter), filter) {
        (Some((operator, left, right)), _) => match (constant(left), constant(right)) {
            (_, Some(constant)) => (left, Requirement::Comparison(operator, constant)),
            (Some(constant), _) => (right, Requirement::Comparison(mirrored(operator), constant)),
            _ => return None,
        },
        (None, Expression::Not(inner)) => (inner.as_ref(), Requirement::Truth(false)),
        (None, call) => (call, Requirement::Truth(true)),
    };
    let (operator, arguments) = call_of(call, bound, operators)?;
    let operator = operator.as_str().to_owned();
    Some((arguments, Test { operator, arguments: arguments.to_vec(), requirement }))
}

/// Returns whether a query calls operators, or why its calls can never be answered: the fault, and
/// the remedy. Patterns bind the variables for which `is_bound` is true.
pub fn check(
    query: &Query,
    operators: &Operators,
    is_bound: impl Fn(&Variable) -> bool,
) -> Result<bool, (&'static str, &'static str)> {
    let (mut is_random, mut is_misplaced, mut generators) = (false, false, 0);
    let is_operator = |name: &NamedNode| operators.find(name).is_some();
    visit(&mut pattern_of(query).clone(), &mut |part| match part {
        Part::Expression(Expression::FunctionCall(function, _)) => {
            use Function::{BNode, Rand, StrUuid, Uuid};
            is_random |= matches!(function, Rand | Uuid | StrUuid | BNode);
        }
        Part::Pattern(GraphPattern::Bgp { patterns }) => {
            generators += take_generators(patterns, operators).len();
            is_misplaced |= patterns.iter().any(|one| {
                matches!(&one.predicate, NamedNodePattern::NamedNode(name) if is_operator(name))
            });
        }
        Part::Pattern(GraphPattern::Path { path, .. }) => {
            is_misplaced |= all_steps(path).into_iter().flatten().any(is_operator);
        }
        _ => {}
    });
    if is_misplaced {
        return Err((
            "an operator stands in a property path, or one that is a function stands as a property",
            "Call a function in FILTER or BIND; write a generator as a pattern of its own.",
        ));
    }
    let calls = operators.calls_below(pattern_of(query)) > 0;
    if is_random && calls {
        return Err((
            "it calls an operator, and RAND, UUID, STRUUID or BNODE, so its calls differ each time",
            "Leave these functions out.",
        ));
    }
    let is_placed = |test: &&Test| {
        operators.find(&NamedNode::new_unchecked(&test.operator)).is_some_and(|one| one.generates)
            && test.arguments.iter().all(|argument| match argument {
                Expression::Variable(variable) => is_bound(variable),
                _ => true,
            })
    };
    if generators > 0
        && Prefilter::new(query, operators).tests.iter().filter(is_placed).count() < generators
    {
        return Err((
            "an operator that generates bindings is not in the outermost group, or its arguments \
             are not bound by triple patterns there",
            "Write it beside the triple patterns that bind its arguments.",
        ));
    }
    Ok(calls)
}

// --- Generators -----------------------------------------------------------------------------------

/// A pattern whose property is an operator.
#[derive(Clone)]
pub(crate) struct Generator {
    operator: NamedNode,
    arguments: Vec<TermPattern>,
    results: Vec<TermPattern>,
}

fn variable_of(term: &TermPattern) -> Option<&Variable> {
    match term {
        TermPattern::Variable(variable) => Some(variable),
        _ => None,
    }
}

impl Generator {
    /// The test that a generator is: it has to return a row. `None` if an argument is a blank node.
    fn test(&self) -> Option<Test> {
        let arguments = self.arguments.iter().map(|argument| match argument {
            TermPattern::Variable(variable) => Some(variable.clone().into()),
            TermPattern::NamedNode(name) => Some(name.clone().into()),
            TermPattern::Literal(literal) => Some(literal.clone().into()),
            _ => None,
        });
        let (operator, requirement) = (self.operator.as_str().into(), Requirement::Truth(true));
        Some(Test { operator, arguments: arguments.collect::<Option<_>>()?, requirement })
    }

    /// The table of its results, with the arguments that gave them.
    fn table(&self, results: &CallResults) -> GraphPattern {
        let places: Vec<&TermPattern> = self.arguments.iter().chain(&self.results).collect();
        let mut variables: Vec<Variable> = Vec::new();
        for variable in places.iter().filter_map(|place| variable_of(place)) {
            if !variables.contains(variable) {
                variables.push(variable.clone());
            }
        }
        let mut bindings = Vec::new();
        for (call, result) in results {
            let mut lines = call.split('\n');
            let CallResult::Rows(rows) = result else { continue };
            if lines.next() != Some(self.operator.as_str()) {
                continue;
            }
            let arguments: Vec<Term> = lines.filter_map(read_term).collect();
            for row in rows {
                let terms: Vec<&Term> = arguments.iter().chain(row).collect();
                let mut values: HashMap<&TermPattern, &Term> = HashMap::new();
                let is_met = terms.len() == places.len()
                    && places.iter().zip(terms).all(|(place, term)| {
                        *values.entry(place).or_insert(term) == term
                            && (variable_of(place).is_some() || **place == term.clone().into())
                    });
                if is_met {
                    let value = |variable: &Variable| {
                        let term = values.get(&TermPattern::from(variable.clone()))?;
                        GroundTerm::try_from((*term).clone()).ok()
                    };
                    bindings.push(variables.iter().map(value).collect());
                }
            }
        }
        GraphPattern::Values { variables, bindings }
    }
}

/// Takes the triples of a list out of the patterns and returns its members. A term that is not a list
/// is returned alone.
fn take_list(term: TermPattern, patterns: &mut Vec<TriplePattern>) -> Vec<TermPattern> {
    let mut take = |cell: &TermPattern, property: NamedNodeRef| {
        let is_it = |one: &TriplePattern| {
            one.subject == *cell && one.predicate == NamedNodePattern::from(property.into_owned())
        };
        let place = patterns.iter().position(is_it)?;
        Some(patterns.remove(place).object)
    };
    let (mut members, mut cell) = (Vec::new(), term.clone());
    while let Some(member) = take(&cell, rdf::FIRST) {
        members.push(member);
        let Some(next) = take(&cell, rdf::REST) else { break };
        cell = next;
    }
    if members.is_empty() { vec![term] } else { members }
}

/// Takes the patterns of generators out of a basic graph pattern.
pub(crate) fn take_generators(
    patterns: &mut Vec<TriplePattern>,
    operators: &Operators,
) -> Vec<Generator> {
    let generator = |one: &TriplePattern| match &one.predicate {
        NamedNodePattern::NamedNode(name) if operators.find(name)?.generates => Some(name.clone()),
        _ => None,
    };
    let mut found = Vec::new();
    while let Some((place, operator)) =
        patterns.iter().enumerate().find_map(|(place, one)| Some((place, generator(one)?)))
    {
        let TriplePattern { subject, object, .. } = patterns.remove(place);
        let arguments = take_list(subject, patterns);
        let results = take_list(object, patterns);
        found.push(Generator { operator, arguments, results });
    }
    found
}

/// Takes the generators out of the patterns that are joined at the top.
fn lift_generators(pattern: &mut GraphPattern, operators: &Operators) -> Vec<Generator> {
    match pattern {
        GraphPattern::Bgp { patterns } => take_generators(patterns, operators),
        GraphPattern::Join { left, right } => {
            [lift_generators(left, operators), lift_generators(right, operators)].concat()
        }
        _ => Vec::new(),
    }
}

/// Replaces the patterns of generators by tables of their results.
pub fn join_results(query: &mut Query, calls: &CallContext) {
    visit(pattern_of_mut(query), &mut |part| {
        let Part::Pattern(pattern) = part else { return };
        let GraphPattern::Bgp { patterns } = pattern else { return };
        for generator in take_generators(patterns, &calls.operators) {
            let (left, right) = (std::mem::take(pattern), generator.table(&calls.results));
            *pattern = GraphPattern::Join { left: left.into(), right: right.into() };
        }
    });
}
