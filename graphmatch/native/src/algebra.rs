//! Functions over SPARQL's algebra that several modules use.
//!
//! Recursion is as deep as the query; its depth is bounded before it is parsed.

use crate::branch::Comparison;
use oxrdf::{Literal, NamedNode, Term, Variable};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::borrow::Cow;

/// Makes functions for reading and for changing the patterns of queries.
macro_rules! patterns {
    ($of:ident $body:ident $projection:ident $($mut:tt)?) => {
        /// The pattern of a query of any form.
        pub(crate) fn $of(query: &$($mut)? Query) -> &$($mut)? GraphPattern {
            match query {
                Query::Select { pattern, .. }
                | Query::Construct { pattern, .. }
                | Query::Describe { pattern, .. }
                | Query::Ask { pattern, .. } => pattern,
            }
        }

        /// The pattern below a query's own projection, order and limits.
        pub(crate) fn $body(pattern: &$($mut)? GraphPattern) -> &$($mut)? GraphPattern {
            match pattern {
                GraphPattern::Slice { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner } => $body(inner),
                GraphPattern::Project { inner, .. } => match &$($mut)? **inner {
                    GraphPattern::OrderBy { inner, .. } => inner,
                    other => other,
                },
                other => other,
            }
        }

        /// The variables that a SELECT projects.
        pub(crate) fn $projection(
            pattern: &$($mut)? GraphPattern,
        ) -> Option<&$($mut)? Vec<Variable>> {
            match pattern {
                GraphPattern::Slice { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner } => $projection(inner),
                GraphPattern::Project { variables, .. } => Some(variables),
                _ => None,
            }
        }
    };
}

patterns!(pattern_of body projection);
patterns!(pattern_of_mut body_mut projection_mut mut);

/// Whether a SELECT is DISTINCT.
pub(crate) fn is_distinct(pattern: &GraphPattern) -> bool {
    match pattern {
        GraphPattern::Slice { inner, .. } => is_distinct(inner),
        other => matches!(other, GraphPattern::Distinct { .. }),
    }
}

/// The patterns inside a pattern that a solution's bindings may come from.
pub(crate) fn parts(pattern: &GraphPattern) -> Vec<&GraphPattern> {
    let mut inside = inside(pattern).0;
    inside.truncate(if matches!(pattern, GraphPattern::Minus { .. }) { 1 } else { 2 });
    inside
}

/// Returns the pattern that an aggregating query groups.
pub(crate) fn group(body: &GraphPattern) -> Option<&GraphPattern> {
    match body {
        GraphPattern::Group { inner, .. } => Some(inner),
        GraphPattern::Project { .. } => None,
        other => parts(other).into_iter().find_map(group),
    }
}

/// Whether the body of a query contains a subquery.
pub(crate) fn has_subquery(body: &GraphPattern) -> bool {
    matches!(body, GraphPattern::Project { .. }) || parts(body).into_iter().any(has_subquery)
}

/// Makes a function for reading and one for changing what is inside a pattern.
macro_rules! inside {
    ($name:ident $(, $mut:tt)?) => {
        /// The patterns and the expressions right inside a pattern.
        pub(crate) fn $name(
            pattern: &$($mut)? GraphPattern,
        ) -> (Vec<&$($mut)? GraphPattern>, Vec<&$($mut)? Expression>) {
            use GraphPattern as P;
            match pattern {
                P::Bgp { .. } | P::Path { .. } | P::Values { .. } => (vec![], vec![]),
                P::Join { left, right } | P::Union { left, right } | P::Minus { left, right } => {
                    (vec![left, right], vec![])
                }
                P::LeftJoin { left, right, expression } => {
                    (vec![left, right], expression.into_iter().collect())
                }
                P::Filter { inner, expr: expression } | P::Extend { inner, expression, .. } => {
                    (vec![inner], vec![expression])
                }
                P::OrderBy { inner, expression } => {
                    let all = expression.into_iter();
                    let all = all.map(|(OrderExpression::Asc(one) | OrderExpression::Desc(one))| one);
                    (vec![inner], all.collect())
                }
                P::Group { inner, aggregates, .. } => {
                    let all = aggregates.into_iter().filter_map(|(_, one)| match one {
                        AggregateExpression::FunctionCall { expr, .. } => Some(expr),
                        AggregateExpression::CountSolutions { .. } => None,
                    });
                    (vec![inner], all.collect())
                }
                P::Graph { inner, .. }
                | P::Service { inner, .. }
                | P::Lateral { left: inner, .. }
                | P::Project { inner, .. }
                | P::Distinct { inner }
                | P::Reduced { inner }
                | P::Slice { inner, .. } => (vec![inner], vec![]),
            }
        }
    };
}

inside!(inside);
inside!(inside_mut, mut);

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

/// A part of a query, at any depth.
pub(crate) enum Part<'a> {
    Pattern(&'a mut GraphPattern),
    Expression(&'a mut Expression),
    Term(&'a mut TermPattern),
    /// A term of VALUES.
    Ground(&'a mut GroundTerm),
    /// The property of a triple pattern, or the name of a graph.
    Property(&'a mut NamedNodePattern),
    /// The same or a property of a path, if it is an IRI.
    Iri(&'a mut NamedNode),
    Variable(&'a mut Variable),
}

/// Shows a query's parts, those of a CONSTRUCT template included.
pub(crate) fn visit_query(query: &mut Query, see: &mut dyn FnMut(Part)) {
    if let Query::Construct { template, .. } = query {
        template.iter_mut().for_each(|triple| visit_triple(triple, see));
    }
    visit(pattern_of_mut(query), see);
}

/// Shows a pattern and its parts, each before those inside.
pub(crate) fn visit(pattern: &mut GraphPattern, see: &mut dyn FnMut(Part)) {
    see(Part::Pattern(pattern));
    match pattern {
        GraphPattern::Bgp { patterns } => {
            patterns.iter_mut().for_each(|triple| visit_triple(triple, see));
        }
        GraphPattern::Path { subject, path, object } => {
            visit_term(subject, see);
            visit_path(path, see);
            visit_term(object, see);
        }
        GraphPattern::Values { variables, bindings } => {
            variables.iter_mut().for_each(|variable| see(Part::Variable(variable)));
            bindings.iter_mut().flatten().flatten().for_each(|term| visit_ground(term, see));
        }
        GraphPattern::Graph { name, .. } => visit_property(name, see),
        GraphPattern::Extend { variable, .. } => see(Part::Variable(variable)),
        GraphPattern::Group { variables, aggregates, .. } => {
            variables.iter_mut().for_each(|variable| see(Part::Variable(variable)));
            aggregates.iter_mut().for_each(|(variable, _)| see(Part::Variable(variable)));
        }
        GraphPattern::Project { variables, .. } => {
            variables.iter_mut().for_each(|variable| see(Part::Variable(variable)));
        }
        _ => {}
    }
    let (patterns, expressions) = inside_mut(pattern);
    patterns.into_iter().for_each(|inner| visit(inner, see));
    expressions.into_iter().for_each(|inner| visit_expression(inner, see));
}

fn visit_expression(expression: &mut Expression, see: &mut dyn FnMut(Part)) {
    see(Part::Expression(expression));
    match expression {
        Expression::Variable(variable) | Expression::Bound(variable) => {
            see(Part::Variable(variable));
        }
        Expression::Exists(pattern) => visit(pattern, see),
        _ => operands_mut(expression).into_iter().for_each(|inner| visit_expression(inner, see)),
    }
}

fn visit_triple(triple: &mut TriplePattern, see: &mut dyn FnMut(Part)) {
    visit_term(&mut triple.subject, see);
    visit_property(&mut triple.predicate, see);
    visit_term(&mut triple.object, see);
}

fn visit_term(term: &mut TermPattern, see: &mut dyn FnMut(Part)) {
    see(Part::Term(term));
    match term {
        TermPattern::Variable(variable) => see(Part::Variable(variable)),
        TermPattern::Triple(triple) => visit_triple(triple, see),
        _ => {}
    }
}

fn visit_property(property: &mut NamedNodePattern, see: &mut dyn FnMut(Part)) {
    see(Part::Property(property));
    see(match property {
        NamedNodePattern::NamedNode(iri) => Part::Iri(iri),
        NamedNodePattern::Variable(variable) => Part::Variable(variable),
    });
}

fn visit_ground(term: &mut GroundTerm, see: &mut dyn FnMut(Part)) {
    see(Part::Ground(term));
    if let GroundTerm::Triple(triple) = term {
        see(Part::Iri(&mut triple.subject));
        see(Part::Iri(&mut triple.predicate));
        visit_ground(&mut triple.object, see);
    }
}

fn visit_path(path: &mut PropertyPathExpression, see: &mut dyn FnMut(Part)) {
    use PropertyPathExpression as Path;
    match path {
        Path::NamedNode(iri) => see(Part::Iri(iri)),
        Path::NegatedPropertySet(all) => all.iter_mut().for_each(|iri| see(Part::Iri(iri))),
        Path::Sequence(left, right) | Path::Alternative(left, right) => {
            visit_path(left, see);
            visit_path(right, see);
        }
        Path::Reverse(inner)
        | Path::ZeroOrMore(inner)
        | Path::OneOrMore(inner)
        | Path::ZeroOrOne(inner) => visit_path(inner, see),
    }
}

/// The number of the slot that an IRI stands for.
pub(crate) fn slot_of_iri(iri: &str) -> Option<u32> {
    iri.strip_prefix("slot:")?.parse().ok()
}

/// The number of the slot that a literal stands for, and whether it is a quantity in an expression.
pub(crate) fn slot_of_literal(literal: &Literal) -> Option<(u32, bool)> {
    let kind = literal.datatype().as_str().strip_prefix("slot:")?;
    Some((literal.value().parse().ok()?, kind == "q"))
}

/// Puts the constants of slots into a query; `None` if a slot cannot take its constant.
pub(crate) fn substitute(query: &mut Query, constant: &dyn Fn(u32) -> Option<Term>) -> Option<()> {
    let mut is_complete = true;
    visit_query(query, &mut |part| {
        let of_literal = |literal: &Literal| slot_of_literal(literal).map(|slot| slot.0);
        let slot = match &part {
            Part::Iri(iri) => slot_of_iri(iri.as_str()),
            Part::Expression(Expression::NamedNode(iri))
            | Part::Term(TermPattern::NamedNode(iri))
            | Part::Ground(GroundTerm::NamedNode(iri)) => slot_of_iri(iri.as_str()),
            Part::Expression(Expression::Literal(literal))
            | Part::Term(TermPattern::Literal(literal))
            | Part::Ground(GroundTerm::Literal(literal)) => of_literal(literal),
            _ => None,
        };
        let Some(slot) = slot else { return };
        match (part, constant(slot)) {
            (Part::Iri(iri), Some(Term::NamedNode(constant))) => *iri = constant,
            (Part::Expression(expression), Some(Term::NamedNode(constant))) => {
                *expression = constant.into();
            }
            (Part::Expression(expression), Some(Term::Literal(constant))) => {
                *expression = constant.into();
            }
            (Part::Term(term), Some(constant)) => *term = constant.into(),
            (Part::Ground(term), Some(constant)) => match constant.try_into() {
                Ok(constant) => *term = constant,
                Err(_) => is_complete = false,
            },
            _ => is_complete = false,
        }
    });
    is_complete.then_some(())
}

/// Returns the disjunction of tests, nested as little as possible.
pub(crate) fn either(mut tests: Vec<Expression>) -> Option<Expression> {
    if tests.len() < 2 {
        return tests.pop();
    }
    let rest = tests.split_off(tests.len().div_ceil(2));
    Some(Expression::Or(either(tests)?.into(), either(rest)?.into()))
}

/// A comparison as such, with a constant on the right if it has one; `!(a = b)` is a comparison.
pub(crate) fn comparison_of(
    expression: &Expression,
) -> Option<(Comparison, &Expression, &Expression)> {
    let (operator, left, right): (_, &Expression, &Expression) = match expression {
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
    };
    let is_constant = |one| matches!(one, &Expression::NamedNode(_) | &Expression::Literal(_));
    Some(match is_constant(left) && !is_constant(right) {
        true => (mirrored(operator), right, left),
        false => (operator, left, right),
    })
}

/// A comparison with its sides changed.
fn mirrored(operator: Comparison) -> Comparison {
    match operator {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => same,
    }
}

/// Splits a conjunction. A filter is true if all its parts are.
pub(crate) fn conjuncts(expression: &Expression) -> Vec<Cow<'_, Expression>> {
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
