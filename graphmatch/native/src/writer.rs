//! SPARQL text of the algebra.
//!
//! Parsing the text gives the same query. spargebra writes the algebra, but leaves out
//! brackets that change the meaning, and writes GROUP BY as a subquery. So [`Bracketer`] puts private
//! names into the algebra, and these are replaced in the text.
//!
//! A template's text has markers instead of slots, each one character if slots are numbered in order.
//! [`filled`] puts slots or constants in.

use crate::algebra::{body_mut, inside_mut, operands_mut, pattern_of_mut, projection_mut};
use oxrdf::{Literal, NamedNode, Variable};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
};
use spargebra::term::NamedNodePattern;
use std::collections::HashMap;

/// Begins the marker of an IRI. The number of its slot and a semicolon follow, unless the number is
/// one more than that of the marker before.
const IRI: char = '\u{1}';
/// Begins the marker of a literal.
const LITERAL: char = '\u{2}';
/// Begins the marker of a literal with a unit of measure in an expression.
const QUANTITY: char = '\u{3}';
/// Stands for the full stop after a triple pattern.
const END: char = '\u{4}';
/// Stands for WHERE and the brace after it.
const WHERE: char = '\u{5}';
/// The name of a function and of a graph. The name is deleted from the text, and GRAPH before it, so
/// that only the brackets or braces around the argument or the pattern remain.
const BRACKETS: &str = "\u{6}";
/// The name of a graph: `GRAPH <UNION>` becomes `UNION`.
const UNION: &str = "\u{F}";
/// Names of variables: `+ ?AND +` becomes `&&`, and so on.
const AND: &str = "\u{10}";
const OR: &str = "\u{11}";
const UNEQUAL: &str = "\u{12}";
/// Begins the name of a variable whose remaining name is put into the text.
const TEXT: char = '\u{7}';
/// Begins and ends the name of a variable whose text is written after the closing brace of WHERE.
const AFTER_WHERE: char = '\u{E}';

/// Returns a query as a template's text.
pub(crate) fn template_text(query: &Query) -> String {
    let text = written(query.clone()).replace(" WHERE { ", &WHERE.to_string());
    with_markers(&text.replace(" . ", &END.to_string()).replace(" .", &END.to_string()))
}

/// Replaces slots by markers.
fn with_markers(text: &str) -> String {
    let (mut marked, mut rest, mut next) = (String::with_capacity(text.len()), text, 0);
    while let Some((mut before, (slot, after))) =
        rest.split_once("<slot:").and_then(|(before, after)| Some((before, after.split_once('>')?)))
    {
        let (mut kind, mut number) = (IRI, slot);
        if let Some((start, literal)) = before.strip_suffix("\"^^").and_then(|s| s.rsplit_once('"'))
        {
            kind = if slot == "q" { QUANTITY } else { LITERAL };
            (before, number) = (start, literal);
        }
        marked.push_str(before);
        marked.push(kind);
        let slot = number.parse().unwrap_or(u32::MAX);
        if slot != next {
            marked.push_str(number);
            marked.push(';');
        }
        (rest, next) = (after, slot.saturating_add(1));
    }
    marked.push_str(rest);
    marked
}

/// Writes a template's text as SPARQL.
///
/// `put` gets the number of each slot. It writes a constant, or returns true for the slot itself.
pub(crate) fn filled(template: &str, mut put: impl FnMut(usize, &mut String) -> bool) -> String {
    let mut text = String::with_capacity(template.len() * 3);
    let (mut rest, mut slot) = (template, 0);
    while let Some(at) = rest.find(|c: char| c <= WHERE) {
        let kind = char::from(rest.as_bytes()[at]);
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if kind >= END {
            text.push_str(if kind == END { " . " } else { " WHERE { " });
            continue;
        }
        if rest.starts_with(|c: char| c.is_ascii_digit())
            && let Some((number, after)) = rest.split_once(';')
        {
            slot = number.parse().unwrap_or(usize::MAX);
            rest = after;
        }
        if put(slot, &mut text) {
            text.push_str(&match kind {
                IRI => format!("<slot:{slot}>"),
                LITERAL => format!("\"{slot}\"^^<slot:l>"),
                _ => format!("\"{slot}\"^^<slot:q>"),
            });
        }
        slot += 1;
    }
    text.push_str(rest);
    text
}

/// Returns a query as SPARQL.
fn written(mut query: Query) -> String {
    let is_select = matches!(query, Query::Select { .. });
    let is_describe = matches!(query, Query::Describe { .. });
    let pattern = pattern_of_mut(&mut query);
    let values = values_of_groups(pattern).map_or(String::new(), |values| format!(" {values}"));
    if is_describe {
        project_iris(pattern);
    }
    if !is_select {
        // spargebra would write BIND into the SELECT clause, which other forms do not have.
        bracket_if(body_mut(pattern), |one| matches!(one, GraphPattern::Extend { .. }));
    }
    Bracketer::default().pattern(pattern);
    let pattern = std::mem::take(pattern);
    let select = Query::Select { dataset: None, pattern, base_iri: None }.to_string();
    let (projection, rest) = select.split_once(" WHERE ").unwrap_or_default();
    let form = match &query {
        Query::Select { .. } => projection.to_owned(),
        Query::Describe { .. } => projection.replacen("SELECT", "DESCRIBE", 1),
        Query::Ask { .. } => "ASK".to_owned(),
        Query::Construct { template, .. } => {
            let triples: String = template.iter().map(|triple| format!("{triple} . ")).collect();
            format!("CONSTRUCT {{ {triples}}}")
        }
    };
    let base = query.base_iri().map_or(String::new(), |base| format!("BASE <{base}> "));
    let text = format!("{base}{form} WHERE {rest}{values}");
    if !text.bytes().any(|byte| byte < b' ') {
        return text; // Nothing was put in.
    }
    text.replace(&format!("GRAPH <{BRACKETS}> "), "")
        .replace(&format!("<{BRACKETS}>"), "")
        .replace(&format!("GRAPH <{UNION}>"), "UNION")
        .replace(&format!(" + ?{AND} + "), " && ")
        .replace(&format!(" + ?{OR} + "), " || ")
        .replace(&format!(" + ?{UNEQUAL} = "), " != ")
        .replace(&format!("?{TEXT}"), "")
        .replace(&format!(" FILTER(?{AFTER_WHERE}"), " }")
        .replace(&format!("{AFTER_WHERE}) }}"), "")
}

/// Removes and returns the VALUES block that follows GROUP BY.
fn values_of_groups(pattern: &mut GraphPattern) -> Option<GraphPattern> {
    let mut part = body_mut(pattern);
    while let GraphPattern::Extend { inner, .. } = part {
        part = inner;
    }
    let GraphPattern::Join { left, right } = part else { return None };
    if !matches!(**right, GraphPattern::Values { .. }) || group_of(left).is_none() {
        return None;
    }
    let (rest, values) = (std::mem::take(&mut **left), std::mem::take(&mut **right));
    *part = rest;
    Some(values)
}

/// The GROUP BY that a pattern is, directly or below its HAVING filter.
fn group_of(pattern: &mut GraphPattern) -> Option<&mut GraphPattern> {
    let pattern = match pattern {
        GraphPattern::Filter { inner, .. } => inner,
        other => other,
    };
    matches!(pattern, GraphPattern::Group { .. }).then_some(pattern)
}

/// Projects the IRIs of a DESCRIBE, which the parser binds to variables.
fn project_iris(pattern: &mut GraphPattern) {
    let mut projected = projection_mut(pattern).map(std::mem::take).unwrap_or_default();
    let part = body_mut(pattern);
    while let GraphPattern::Extend { inner, variable, expression: Expression::NamedNode(iri) } =
        part
        && let Some(one) = projected.iter_mut().find(|one| *one == variable)
    {
        *one = Variable::new_unchecked(format!("{TEXT}{iri}"));
        *part = std::mem::take(inner);
    }
    projection_mut(pattern).into_iter().for_each(|all| *all = std::mem::take(&mut projected));
}

/// The text of GROUP BY and HAVING that [`Bracketer`] stored in this filter; `None` for any other
/// pattern.
fn groups_text(pattern: &GraphPattern) -> Option<&str> {
    match pattern {
        GraphPattern::Filter { expr: Expression::Variable(text), .. } => {
            text.as_str().strip_prefix(AFTER_WHERE)?.strip_suffix(AFTER_WHERE)
        }
        _ => None,
    }
}

fn after_where(text: &str) -> Expression {
    Variable::new_unchecked(format!("{AFTER_WHERE}{text}{AFTER_WHERE}")).into()
}

/// Whether this is a FILTER that, without braces, would apply to the group around it.
fn is_filter(pattern: &GraphPattern) -> bool {
    matches!(pattern, GraphPattern::Filter { .. }) && groups_text(pattern).is_none()
}

/// Whether this is a subquery that, without braces, would merge into the SELECT around it.
fn is_select(pattern: &GraphPattern) -> bool {
    use GraphPattern as P;
    matches!(pattern, P::Slice { .. } | P::Distinct { .. } | P::Reduced { .. } | P::Project { .. })
}

/// Puts a pattern into brackets if it needs them.
fn bracket_if(pattern: &mut GraphPattern, needs: impl Fn(&GraphPattern) -> bool) {
    if needs(pattern) {
        let inner = Box::new(std::mem::take(pattern));
        *pattern = GraphPattern::Graph { name: NamedNode::new_unchecked(BRACKETS).into(), inner };
    }
}

/// Prepares an algebra for writing.
#[derive(Default)]
struct Bracketer {
    /// The texts of aggregates by their hidden variables.
    aggregates: HashMap<Variable, String>,
}

impl Bracketer {
    fn parts(&mut self, pattern: &mut GraphPattern) {
        let (patterns, expressions) = inside_mut(pattern);
        patterns.into_iter().for_each(|inner| self.pattern(inner));
        expressions.into_iter().for_each(|inner| self.expression(inner));
    }

    fn pattern(&mut self, pattern: &mut GraphPattern) {
        use GraphPattern as P;
        match pattern {
            // After GROUP BY, VALUES would have to follow ORDER BY and LIMIT, so the part with
            // GROUP BY becomes a subquery.
            P::Join { left, right } if matches!(**right, P::Values { .. }) => {
                group_of(left).into_iter().for_each(|groups| bracket_if(groups, |_| true));
            }
            P::Graph { inner, .. } if matches!(**inner, P::Group { .. }) => {
                return self.parts(inner);
            }
            _ => {}
        }
        self.parts(pattern);
        match pattern {
            P::Group { inner, variables, aggregates } => {
                for (variable, aggregate) in aggregates.drain(..) {
                    self.aggregates.insert(variable, text_of(&aggregate));
                }
                let by = if variables.is_empty() { "" } else { " GROUP BY" };
                let names: String = variables.iter().map(|name| format!(" {name}")).collect();
                *pattern = P::Filter {
                    expr: after_where(&(by.to_owned() + &names)),
                    inner: std::mem::take(inner),
                };
            }
            P::Filter { expr, inner } if groups_text(inner).is_some() => {
                let groups = groups_text(inner).unwrap_or_default();
                *expr = after_where(&format!("{groups} HAVING({expr})"));
                let P::Filter { inner: grouped, .. } = std::mem::take(&mut **inner) else { return };
                *inner = grouped;
            }
            P::Join { left, right } => {
                bracket_if(left, is_filter);
                bracket_if(right, |one| matches!(one, P::Join { .. }));
            }
            P::Union { left, right } if is_union(left) => {
                let (left, inner) = (std::mem::take(left), std::mem::take(right));
                let name = NamedNode::new_unchecked(UNION).into();
                *pattern = P::Join { left, right: P::Graph { name, inner }.into() };
            }
            P::LeftJoin { left, right, .. } => {
                bracket_if(left, is_filter);
                bracket_if(right, is_filter);
            }
            P::Minus { left: inner, .. } | P::Filter { inner, .. } => bracket_if(inner, is_filter),
            P::Extend { inner, .. } => bracket_if(inner, |one| is_filter(one) || is_select(one)),
            P::OrderBy { inner, .. } | P::Project { inner, .. } => bracket_if(inner, is_select),
            P::Slice { inner, .. } => bracket_if(inner, |one| matches!(one, P::Slice { .. })),
            _ => {}
        }
    }

    fn expression(&mut self, expression: &mut Expression) {
        match expression {
            Expression::Exists(pattern) => return self.pattern(pattern),
            Expression::Variable(variable) => {
                if let Some(text) = self.aggregates.get(variable) {
                    *variable = Variable::new_unchecked(format!("{TEXT}{text}"));
                }
                return;
            }
            _ => {}
        }
        let outer = rank(expression);
        for (place, operand) in operands_mut(expression).into_iter().enumerate() {
            self.expression(operand);
            let inner = rank(operand);
            if inner > 0 && (inner < outer || inner == outer && (place > 0 || outer == UNARY)) {
                let brackets = Function::Custom(NamedNode::new_unchecked(BRACKETS));
                *operand = Expression::FunctionCall(brackets, vec![taken(operand)]);
            }
        }
        if let Expression::Not(inner) = expression
            && let sign = Expression::from(Variable::new_unchecked(UNEQUAL))
            && let Expression::Equal(left, right) = &mut **inner
            && !matches!(&**left, Expression::Add(_, last) if **last == sign)
        {
            let left = Expression::Add(taken(left).into(), sign.into());
            *expression = Expression::Equal(left.into(), taken(right).into());
        }
        // Writes `a && b && c`, not `(a && b) && c`, which the parser nests alike.
        let (left, sign) = match expression {
            Expression::And(left, _) if matches!(**left, Expression::And(..)) => (left, AND),
            Expression::Or(left, _) if matches!(**left, Expression::Or(..)) => (left, OR),
            _ => return,
        };
        if let Expression::And(first, second) | Expression::Or(first, second) = taken(left) {
            let sign = Expression::from(Variable::new_unchecked(sign));
            **left = Expression::Add(Expression::Add(first, sign.into()).into(), second);
        }
    }
}

fn taken(expression: &mut Expression) -> Expression {
    std::mem::replace(expression, Literal::from(false).into())
}

/// Whether a pattern is written as a UNION.
fn is_union(pattern: &GraphPattern) -> bool {
    use GraphPattern as P;
    match pattern {
        P::Join { right, .. } => {
            matches!(&**right, P::Graph { name: NamedNodePattern::NamedNode(name), .. } if name.as_str() == UNION)
        }
        other => matches!(other, P::Union { .. }),
    }
}

/// The precedence of unary operators.
const UNARY: u8 = 3;

/// The precedence of an operator that spargebra writes without brackets; 0 for other expressions.
fn rank(expression: &Expression) -> u8 {
    match expression {
        Expression::Add(..) | Expression::Subtract(..) => 1,
        Expression::Multiply(..) | Expression::Divide(..) => 2,
        Expression::UnaryPlus(_) | Expression::UnaryMinus(_) | Expression::Not(_) => UNARY,
        _ => 0,
    }
}

/// Returns the text of an aggregate. In its separator, `<` and the full stop are escaped, so that it
/// is not taken for a slot or the end of a triple.
fn text_of(aggregate: &AggregateExpression) -> String {
    let text = aggregate.to_string();
    if let AggregateExpression::FunctionCall { name, .. } = aggregate
        && let AggregateFunction::GroupConcat { separator: Some(separator) } = name
        && let separator = Literal::new_simple_literal(separator).to_string()
        && let Some(before) = text.strip_suffix(&format!("{separator})"))
    {
        let separator = separator.replace('<', "\\u003C").replace('.', "\\u002E");
        return format!("{before}{separator})");
    }
    text
}
