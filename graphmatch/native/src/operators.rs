//! Operators: Python functions that queries call.
//!
//! A call takes milliseconds or more, so an evaluation makes none. It looks results up in a
//! [`CallContext`], which notes the calls without a result. Python makes these calls, and the
//! publication is matched again.
//!
//! A [`Prefilter`] is a query without its calls. Each of its solutions has to pass the tests of the
//! outermost filters. If one test fails, Python need not make the other calls of that solution.

use crate::algebra::{
    Part, body, comparison_of, conjuncts, group, has_subquery, pattern_of, visit,
};
use crate::branch::Comparison;
use crate::fault::Fault;
use crate::lexical::text_of;
use crate::values::{Value, compare};
use hashbrown::{HashMap, HashSet};
use oxrdf::{NamedNode, Term};
use pyo3::FromPyObject;
use spargebra::Query;
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::term::Variable;
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
}

/// The operators that queries may call.
#[derive(Clone, Debug, Default)]
pub struct Operators(pub Arc<[Operator]>);

impl Operators {
    /// The operator of an IRI.
    pub fn find(&self, iri: &NamedNode) -> Option<&Operator> {
        self.0.iter().find(|one| one.iri == iri.as_str())
    }

    /// Whether an expression is a call.
    fn is_call(&self, expression: &Expression) -> bool {
        match expression {
            Expression::FunctionCall(Function::Custom(name), _) => self.find(name).is_some(),
            _ => false,
        }
    }

    /// The number of calls in a pattern.
    pub fn calls_below(&self, pattern: &GraphPattern) -> usize {
        let mut count = 0;
        visit(&mut pattern.clone(), &mut |part| {
            if let Part::Expression(expression) = part {
                count += usize::from(self.is_call(expression));
            }
        });
        count
    }
}

// --- Results --------------------------------------------------------------------------------------

/// The results of the calls for one publication; `None` if a call raised an exception, took too long
/// or returned no term. The key is the operator's IRI and the arguments as N-Triples, one per line.
pub type CallResults = HashMap<String, Option<Term>>;

/// The results that one evaluation can use, and the calls for which it found none.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    pub operators: Operators,
    results: Arc<CallResults>,
    /// Calls without a value. True if the call was made and failed.
    noted: Arc<Mutex<BTreeMap<String, bool>>>,
}

impl CallContext {
    pub fn new(operators: &Operators, results: &Arc<CallResults>) -> Self {
        Self { operators: operators.clone(), results: Arc::clone(results), ..Self::default() }
    }

    /// Returns the value of a call, or notes that there is none.
    pub fn call(&self, operator: &NamedNode, arguments: &[Term]) -> Option<Term> {
        let mut call = operator.as_str().to_owned();
        for argument in arguments {
            call.push('\n');
            call += &text_of(argument);
        }
        let result = self.results.get(&call);
        let value = result.cloned().flatten();
        if value.is_none() {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            noted.insert(call, result.is_some());
        }
        value
    }

    /// Takes the noted calls: the missing ones and the failed ones.
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
    pub fn is_passed(&self, result: &Option<Term>) -> Option<bool> {
        let text = result.as_ref()?.to_string();
        let value = Value::of(text.as_bytes());
        Some(match &self.requirement {
            Requirement::Result => true,
            Requirement::Truth(wanted) => value.effective_boolean() == Some(*wanted),
            Requirement::Comparison(operator, constant) => {
                compare(&value, *operator, &Value::of(constant.to_string().as_bytes()))
                    == Some(true)
            }
        })
    }
}

/// A solution that waits for calls: its subscription, whether one solution is enough, and the tests
/// that it has to pass, each a call and its predicate.
pub type PendingSolution = (u32, bool, Vec<(String, String)>);

/// The calls that the candidates of a publication still need.
#[derive(Debug, Default)]
pub struct CallRequests {
    pub solutions: Vec<PendingSolution>,
    /// The tests by predicate.
    pub tests: HashMap<String, Test>,
}

impl CallRequests {
    /// Adds a solution that waits for calls.
    pub fn push(&mut self, candidate: u32, is_once: bool, calls: Vec<(String, Test)>) {
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
        let is_group = group(whole).is_some() || has_subquery(whole);
        let is_open = is_group || operators.calls_below(&inner) > 0;
        // The variables whose values depend on calls.
        let mut unknown: HashSet<Variable> = HashSet::new();
        for (variable, expression) in bound.iter().rev() {
            if depends(expression, operators, &unknown) {
                unknown.insert((*variable).clone());
            } else {
                let (variable, expression) = ((*variable).clone(), (*expression).clone());
                inner = GraphPattern::Extend { inner: inner.into(), variable, expression };
            }
        }
        let (mut tests, mut tested) = (Vec::new(), HashSet::new());
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
        let is_slice = matches!(pattern_of(query), GraphPattern::Slice { .. });
        let is_complete = tested.len() == operators.calls_below(whole) && !is_open && !is_slice;
        tests.retain(|_| !is_open);
        let arguments = tests.iter().flat_map(|test: &Test| &test.arguments);
        let variables = arguments.filter_map(|argument| match argument {
            Expression::Variable(variable) => Some(variable.clone()),
            _ => None,
        });
        let variables: HashSet<Variable> = variables.collect();
        let variables = variables.into_iter().collect();
        let pattern = GraphPattern::Project { inner: inner.into(), variables };
        let pattern = GraphPattern::Distinct { inner: pattern.into() };
        let query = Query::Select { dataset: None, pattern, base_iri: query.base_iri().cloned() };
        Self { query, tests, is_complete }
    }
}

/// Whether the value of an expression may depend on calls.
fn depends(expression: &Expression, operators: &Operators, unknown: &HashSet<Variable>) -> bool {
    let mut depends = false;
    let inner = Box::default();
    visit(&mut GraphPattern::Filter { expr: expression.clone(), inner }, &mut |part| {
        let Part::Expression(expression) = part else { return };
        depends |= match expression {
            Expression::Variable(one) | Expression::Bound(one) => unknown.contains(one),
            Expression::Exists(_) => !unknown.is_empty(),
            other => operators.is_call(other),
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
            let is_call = operators.find(name).is_some() && arguments.iter().all(is_plain);
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
        (Some((operator, call, right)), _) => {
            (call, Requirement::Comparison(operator, constant(right)?))
        }
        (None, Expression::Not(inner)) => (inner.as_ref(), Requirement::Truth(false)),
        (None, call) => (call, Requirement::Truth(true)),
    };
    let (operator, arguments) = call_of(call, bound, operators)?;
    let operator = operator.as_str().to_owned();
    Some((arguments, Test { operator, arguments: arguments.to_vec(), requirement }))
}

/// Returns whether a query calls operators. Fails if its calls would differ in each evaluation, so that
/// it could never be answered.
pub fn check_calls(pattern: &GraphPattern, operators: &Operators) -> Result<bool, Fault> {
    if operators.calls_below(pattern) == 0 {
        return Ok(false);
    }
    let mut is_random = false;
    visit(&mut pattern.clone(), &mut |part| {
        if let Part::Expression(Expression::FunctionCall(function, _)) = part {
            use Function::{BNode, Rand, StrUuid, Uuid};
            is_random |= matches!(function, Rand | Uuid | StrUuid | BNode);
        }
    });
    if is_random {
        let what = "it calls an operator together with RAND, UUID, STRUUID or BNODE, so its \
                    calls differ each time";
        return Err(Fault::new(what, "Remove these functions."));
    }
    Ok(true)
}
