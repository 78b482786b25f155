//! Functions over SPARQL's algebra that several modules use.
//!
//! Recursion is as deep as the query; its depth is bounded before it is parsed.

use crate::parameterize::{slot_of_iri, slot_of_literal};
use crate::pattern::Comparison;
use hashbrown::HashMap;
use oxrdf::{NamedNode, Term};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, Expression, GraphPattern, OrderExpression, PropertyPathExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum number of queries in an [`AlgebraCache`].
const CACHED: usize = 1 << 9;

/// Makes functions for reading and for changing the patterns of queries.
macro_rules! patterns {
    ($of:ident $body:ident $($mut:tt)?) => {
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
    };
}

patterns!(pattern_of body);
patterns!(pattern_of_mut body_mut mut);

/// The patterns inside a pattern that a solution's bindings may come from.
pub(crate) fn parts(pattern: &GraphPattern) -> [Option<&GraphPattern>; 2] {
    match pattern {
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right } => [Some(left), Some(right)],
        GraphPattern::Minus { left, .. } => [Some(left), None],
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. } => [Some(inner), None],
        _ => [None, None],
    }
}

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
            let all = expression.iter_mut();
            (
                vec![inner],
                all.map(|(OrderExpression::Asc(one) | OrderExpression::Desc(one))| one).collect(),
            )
        }
        GraphPattern::Group { inner, aggregates, .. } => {
            let all = aggregates.iter_mut().filter_map(|(_, aggregate)| match aggregate {
                AggregateExpression::FunctionCall { expr, .. } => Some(expr),
                AggregateExpression::CountSolutions { .. } => None,
            });
            (vec![inner], all.collect())
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

/// A pattern or expression inside a pattern, at any depth.
pub(crate) enum Part<'a> {
    Pattern(&'a mut GraphPattern),
    Expression(&'a mut Expression),
}

/// Shows a pattern and all patterns and expressions in it, each before those inside.
pub(crate) fn visit(pattern: &mut GraphPattern, see: &mut dyn FnMut(Part)) {
    see(Part::Pattern(pattern));
    let (patterns, expressions) = parts_mut(pattern);
    patterns.into_iter().for_each(|inner| visit(inner, see));
    expressions.into_iter().for_each(|inner| visit_expression(inner, see));
}

fn visit_expression(expression: &mut Expression, see: &mut dyn FnMut(Part)) {
    see(Part::Expression(expression));
    if let Expression::Exists(pattern) = expression {
        visit(pattern, see);
    }
    operands_mut(expression).into_iter().for_each(|inner| visit_expression(inner, see));
}

/// The algebra of parameterised queries, by their texts.
#[derive(Default)]
pub struct AlgebraCache(Mutex<HashMap<Box<str>, Arc<Query>>>);

impl AlgebraCache {
    /// Returns the algebra of a text, which is parsed if it is not in the cache.
    pub fn get<E>(
        &self,
        text: &str,
        parse: impl FnOnce() -> Result<Query, E>,
    ) -> Result<Arc<Query>, E> {
        if let Some(query) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Ok(query.clone());
        }
        let query = Arc::new(parse()?);
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= CACHED {
            cached.clear();
        }
        cached.insert(text.into(), query.clone());
        Ok(query)
    }
}

/// Puts constants into the slots of a query; `None` if a slot cannot take its constant.
pub(crate) fn substitute(query: &mut Query, constants: &[Term]) -> Option<()> {
    let mut slots = Slots { constants, is_complete: true };
    if let Query::Construct { template, .. } = query {
        template.iter_mut().for_each(|triple| slots.triple(triple));
    }
    visit(pattern_of_mut(query), &mut |part| match part {
        Part::Pattern(pattern) => slots.pattern(pattern),
        Part::Expression(expression) => slots.expression(expression),
    });
    slots.is_complete.then_some(())
}

/// The constants of a query, by the numbers of their slots.
struct Slots<'a> {
    constants: &'a [Term],
    is_complete: bool,
}

impl Slots<'_> {
    /// Puts the constant of a slot into a place that takes what `made` makes of it.
    fn put<T>(&mut self, place: &mut T, slot: Option<u32>, made: impl FnOnce(Term) -> Option<T>) {
        let Some(slot) = slot else { return };
        match self.constants.get(slot as usize).cloned().and_then(made) {
            Some(constant) => *place = constant,
            None => self.is_complete = false,
        }
    }

    fn pattern(&mut self, pattern: &mut GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                patterns.iter_mut().for_each(|triple| self.triple(triple));
            }
            GraphPattern::Path { subject, path, object } => {
                [subject, object].into_iter().for_each(|end| self.term(end));
                self.path(path);
            }
            GraphPattern::Graph { name: NamedNodePattern::NamedNode(name), .. } => self.iri(name),
            GraphPattern::Values { bindings, .. } => {
                bindings.iter_mut().flatten().flatten().for_each(|term| self.ground(term));
            }
            _ => {}
        }
    }

    fn expression(&mut self, expression: &mut Expression) {
        let slot = match expression {
            Expression::NamedNode(name) => slot_of_iri(name.as_str()),
            Expression::Literal(literal) => slot_of_literal(literal).map(|slot| slot.0),
            _ => None,
        };
        self.put(expression, slot, |term| match term {
            Term::NamedNode(name) => Some(name.into()),
            Term::Literal(literal) => Some(literal.into()),
            _ => None,
        });
    }

    fn triple(&mut self, TriplePattern { subject, predicate, object }: &mut TriplePattern) {
        [subject, object].into_iter().for_each(|end| self.term(end));
        if let NamedNodePattern::NamedNode(name) = predicate {
            self.iri(name);
        }
    }

    fn term(&mut self, term: &mut TermPattern) {
        let slot = match term {
            TermPattern::NamedNode(name) => slot_of_iri(name.as_str()),
            TermPattern::Literal(literal) => slot_of_literal(literal).map(|slot| slot.0),
            TermPattern::Triple(triple) => return self.triple(triple),
            _ => None,
        };
        self.put(term, slot, |constant| Some(constant.into()));
    }

    fn ground(&mut self, term: &mut GroundTerm) {
        let slot = match term {
            GroundTerm::NamedNode(name) => slot_of_iri(name.as_str()),
            GroundTerm::Literal(literal) => slot_of_literal(literal).map(|slot| slot.0),
            GroundTerm::Triple(triple) => {
                self.iri(&mut triple.subject);
                self.iri(&mut triple.predicate);
                return self.ground(&mut triple.object);
            }
        };
        self.put(term, slot, |constant| constant.try_into().ok());
    }

    fn iri(&mut self, name: &mut NamedNode) {
        let slot = slot_of_iri(name.as_str());
        self.put(name, slot, |constant| match constant {
            Term::NamedNode(name) => Some(name),
            _ => None,
        });
    }

    fn path(&mut self, path: &mut PropertyPathExpression) {
        use PropertyPathExpression as Path;
        match path {
            Path::NamedNode(name) => self.iri(name),
            Path::NegatedPropertySet(names) => names.iter_mut().for_each(|name| self.iri(name)),
            Path::Sequence(a, b) | Path::Alternative(a, b) => {
                self.path(a);
                self.path(b);
            }
            Path::Reverse(inner)
            | Path::ZeroOrMore(inner)
            | Path::OneOrMore(inner)
            | Path::ZeroOrOne(inner) => self.path(inner),
        }
    }
}

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
