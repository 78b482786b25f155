//! SPARQL text of the algebra.
//!
//! The parser reads the same query from the text. A template's text has markers instead of slots,
//! each one character if slots are numbered in order. [`filled`] puts slots or constants in.

use crate::algebra::{comparison_of, pattern_of};
use oxrdf::{Literal, Variable};
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, GraphPattern, OrderExpression,
    PropertyPathExpression as Path,
};
use spargebra::term::TriplePattern;
use std::fmt::Write;

/// Begins the marker of an IRI. The number of its slot and a semicolon follow, unless the number is
/// one more than that of the marker before.
const IRI: char = '\u{1}';
/// Begins the marker of a literal.
const LITERAL: char = '\u{2}';
/// Begins the marker of a literal with a unit of measure in an expression.
const QUANTITY: char = '\u{3}';
/// Stands for the point behind a triple pattern.
const END: char = '\u{4}';
/// Stands for WHERE and the bracket behind it.
const WHERE: char = '\u{5}';

/// Returns a query as SPARQL.
pub(crate) fn written(query: &Query) -> String {
    filled(&template_text(query), |_, _| true)
}

/// Returns a query as a template's text.
pub(crate) fn template_text(query: &Query) -> String {
    let mut writer = Writer::default();
    if let Some(base) = query.base_iri() {
        writer.put(format_args!("BASE <{base}> "));
    }
    writer.select(pattern_of(query), Some(query));
    with_markers(&writer.text.replace(" WHERE { ", &WHERE.to_string()))
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

/// The clauses of a SELECT.
#[derive(Default)]
struct Select<'a> {
    distinct: &'static str,
    projection: Option<&'a [Variable]>,
    expressions: Vec<(&'a Variable, &'a Expression)>,
    body: Option<&'a GraphPattern>,
    group: Option<&'a [Variable]>,
    having: Option<&'a Expression>,
    order: &'a [OrderExpression],
    slice: Option<(usize, Option<usize>)>,
    values: Option<&'a GraphPattern>,
}

impl<'a> Select<'a> {
    fn new(mut pattern: &'a GraphPattern) -> Self {
        let mut select = Self::default();
        loop {
            let is_outer = select.projection.is_none();
            pattern = match pattern {
                GraphPattern::Slice { inner, start, length }
                    if is_outer && select.distinct.is_empty() && select.slice.is_none() =>
                {
                    select.slice = Some((*start, *length));
                    inner
                }
                GraphPattern::Distinct { inner } if is_outer && select.distinct.is_empty() => {
                    select.distinct = " DISTINCT";
                    inner
                }
                GraphPattern::Reduced { inner } if is_outer && select.distinct.is_empty() => {
                    select.distinct = " REDUCED";
                    inner
                }
                GraphPattern::Project { inner, variables } if is_outer => {
                    select.projection = Some(variables);
                    inner
                }
                GraphPattern::OrderBy { inner, expression } if select.order.is_empty() => {
                    select.order = expression;
                    break select.grouped(inner);
                }
                other => break select.grouped(other),
            }
        }
    }

    /// Takes a GROUP BY apart, with its HAVING and the expressions over it.
    fn grouped(mut self, inner: &'a GraphPattern) -> Self {
        self.body = Some(inner);
        let (mut pattern, mut expressions) = (inner, Vec::new());
        while let GraphPattern::Extend { inner, variable, expression } = pattern {
            expressions.push((variable, expression));
            pattern = inner;
        }
        let (mut values, mut having) = (None, None);
        if let GraphPattern::Join { left, right } = pattern
            && matches!(**right, GraphPattern::Values { .. })
        {
            (pattern, values) = (left, Some(&**right));
        }
        if let GraphPattern::Filter { expr, inner } = pattern {
            (pattern, having) = (inner, Some(expr));
        }
        if let GraphPattern::Group { inner, variables, .. } = pattern {
            self.body = Some(inner);
            self.group = Some(variables);
            (self.expressions, self.having, self.values) = (expressions, having, values);
        }
        self
    }
}

/// The aggregates over the groups that a SELECT reads, by their hidden variables.
fn aggregates(mut pattern: &GraphPattern) -> &[(Variable, AggregateExpression)] {
    loop {
        pattern = match pattern {
            GraphPattern::Group { aggregates, .. } => return aggregates,
            GraphPattern::Slice { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner }
            | GraphPattern::Project { inner, .. }
            | GraphPattern::OrderBy { inner, .. }
            | GraphPattern::Extend { inner, .. }
            | GraphPattern::Filter { inner, .. }
            | GraphPattern::Join { left: inner, .. } => inner,
            _ => return &[],
        }
    }
}

#[derive(Default)]
struct Writer<'a> {
    text: String,
    aggregates: Vec<&'a (Variable, AggregateExpression)>,
}

impl<'a> Writer<'a> {
    /// Writes to a string, which cannot fail.
    fn put(&mut self, arguments: std::fmt::Arguments) {
        let _ = self.text.write_fmt(arguments);
    }

    fn list<T>(
        &mut self,
        all: impl IntoIterator<Item = T>,
        between: &str,
        mut write: impl FnMut(&mut Self, T),
    ) {
        for (number, one) in all.into_iter().enumerate() {
            if number > 0 {
                self.text.push_str(between);
            }
            write(self, one);
        }
    }

    // --- SELECT ---

    /// Writes a SELECT, or the query of another form that has this pattern.
    fn select(&mut self, pattern: &'a GraphPattern, query: Option<&'a Query>) {
        let mut select = Select::new(pattern);
        if select.group.is_some() {
            self.aggregates.extend(aggregates(pattern));
        }
        let mut body = select.body.unwrap_or(pattern);
        match query {
            Some(Query::Ask { .. }) => self.text.push_str("ASK"),
            Some(Query::Construct { template, .. }) => {
                self.text.push_str("CONSTRUCT { ");
                template.iter().for_each(|triple| self.triple(triple));
                self.text.push('}');
            }
            Some(Query::Describe { .. }) => {
                while let GraphPattern::Extend { inner, variable, expression } = body
                    && matches!(expression, Expression::NamedNode(_))
                {
                    select.expressions.push((variable, expression));
                    body = inner;
                }
                self.text.push_str("DESCRIBE");
                self.projection(&select, false, true);
            }
            _ => {
                self.text.push_str("SELECT");
                self.text.push_str(select.distinct);
                self.projection(&select, true, query.is_some());
            }
        }
        self.text.push_str(" WHERE ");
        self.group(body);
        if let Some(variables) = select.group.filter(|variables| !variables.is_empty()) {
            self.text.push_str(" GROUP BY");
            variables.iter().for_each(|variable| self.put(format_args!(" {variable}")));
        }
        if let Some(having) = select.having {
            self.text.push_str(" HAVING(");
            self.expression(having);
            self.text.push(')');
        }
        if !select.order.is_empty() {
            self.text.push_str(" ORDER BY");
        }
        for one in select.order {
            let (name, expression) = match one {
                OrderExpression::Asc(expression) => ("ASC", expression),
                OrderExpression::Desc(expression) => ("DESC", expression),
            };
            self.put(format_args!(" {name}("));
            self.expression(expression);
            self.text.push(')');
        }
        if let Some((start, length)) = select.slice {
            if start > 0 {
                self.put(format_args!(" OFFSET {start}"));
            }
            if let Some(length) = length {
                self.put(format_args!(" LIMIT {length}"));
            }
        }
        if let Some(values) = select.values {
            self.text.push(' ');
            self.content(values);
        }
    }

    fn projection(&mut self, select: &Select<'a>, is_select: bool, is_root: bool) {
        let variables = select.projection.unwrap_or_default();
        if variables.is_empty() {
            self.text.push_str(if is_root { " *" } else { " ?_graphmatch_" });
        }
        for variable in variables {
            self.text.push(' ');
            match select.expressions.iter().find(|(known, _)| *known == variable) {
                None => self.put(format_args!("{variable}")),
                Some((_, expression)) if is_select => {
                    self.text.push('(');
                    self.expression(expression);
                    self.put(format_args!(" AS {variable})"));
                }
                Some((_, expression)) => self.expression(expression),
            }
        }
    }

    // --- Patterns ---

    /// Writes a pattern in braces.
    fn group(&mut self, pattern: &'a GraphPattern) {
        if is_select(pattern) {
            self.content(pattern);
        } else {
            self.text.push_str("{ ");
            self.content(pattern);
            self.text.push('}');
        }
    }

    /// Writes a pattern that others of its group follow: a FILTER would apply to them too.
    fn before(&mut self, pattern: &'a GraphPattern) {
        if matches!(pattern, GraphPattern::Filter { .. }) {
            self.group(pattern);
            self.text.push(' ');
        } else {
            self.content(pattern);
        }
    }

    fn content(&mut self, pattern: &'a GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } => patterns.iter().for_each(|one| self.triple(one)),
            GraphPattern::Path { subject, path, object } => {
                self.put(format_args!("{subject} "));
                self.path(path);
                self.put(format_args!(" {object}{END}"));
            }
            GraphPattern::Join { left, right } => {
                self.before(left);
                match **right {
                    GraphPattern::Bgp { .. }
                    | GraphPattern::Path { .. }
                    | GraphPattern::Values { .. }
                    | GraphPattern::Union { .. }
                    | GraphPattern::Graph { .. } => self.content(right),
                    _ => {
                        self.group(right);
                        self.text.push(' ');
                    }
                }
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                self.before(left);
                self.text.push_str("OPTIONAL { ");
                self.before(right);
                if let Some(expression) = expression {
                    self.filter(expression);
                }
                self.text.push_str("} ");
            }
            GraphPattern::Minus { left, right } => {
                self.before(left);
                self.text.push_str("MINUS ");
                self.group(right);
                self.text.push(' ');
            }
            GraphPattern::Filter { expr, inner } => {
                self.before(inner);
                self.filter(expr);
            }
            GraphPattern::Union { left, right } => {
                match **left {
                    GraphPattern::Union { .. } => self.content(left),
                    _ => {
                        self.group(left);
                        self.text.push(' ');
                    }
                }
                self.text.push_str("UNION ");
                self.group(right);
                self.text.push(' ');
            }
            GraphPattern::Graph { name, inner } => {
                self.put(format_args!("GRAPH {name} "));
                self.group(inner);
                self.text.push(' ');
            }
            GraphPattern::Extend { inner, variable, expression } => {
                self.before(inner);
                self.text.push_str("BIND(");
                self.expression(expression);
                self.put(format_args!(" AS {variable}) "));
            }
            GraphPattern::Values { variables, bindings } => {
                self.text.push_str("VALUES (");
                self.list(variables, " ", |writer, one| writer.put(format_args!("{one}")));
                self.text.push_str(") { ");
                for row in bindings {
                    self.text.push('(');
                    self.list(row, " ", |writer, one| match one {
                        Some(term) => writer.put(format_args!("{term}")),
                        None => writer.text.push_str("UNDEF"),
                    });
                    self.text.push_str(") ");
                }
                self.text.push_str("} ");
            }
            GraphPattern::Group { inner, variables, aggregates } => {
                self.text.push_str("{ SELECT");
                for (variable, aggregate) in aggregates {
                    self.text.push_str(" (");
                    self.aggregate(aggregate);
                    self.put(format_args!(" AS {variable})"));
                }
                variables.iter().for_each(|variable| self.put(format_args!(" {variable}")));
                self.text.push_str(" WHERE ");
                self.group(inner);
                if !variables.is_empty() {
                    self.text.push_str(" GROUP BY");
                }
                variables.iter().for_each(|variable| self.put(format_args!(" {variable}")));
                self.text.push_str(" } ");
            }
            GraphPattern::Service { .. } | GraphPattern::Lateral { .. } => {
                self.put(format_args!("{pattern} "));
            }
            GraphPattern::Slice { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Project { .. }
            | GraphPattern::OrderBy { .. } => {
                self.text.push_str("{ ");
                self.select(pattern, None);
                self.text.push_str(" } ");
            }
        }
    }

    fn filter(&mut self, expression: &'a Expression) {
        self.text.push_str("FILTER(");
        self.expression(expression);
        self.text.push_str(") ");
    }

    // --- Paths ---

    fn path(&mut self, path: &'a Path) {
        let (before, inner, after) = match path {
            Path::NamedNode(iri) => return self.put(format_args!("{iri}")),
            Path::Reverse(inner) => ("^(", inner, ")"),
            Path::ZeroOrMore(inner) => ("(", inner, ")*"),
            Path::OneOrMore(inner) => ("(", inner, ")+"),
            Path::ZeroOrOne(inner) => ("(", inner, ")?"),
            Path::Sequence(..) | Path::Alternative(..) => {
                self.text.push('(');
                self.steps(path);
                return self.text.push(')');
            }
            Path::NegatedPropertySet(all) => {
                self.text.push_str("!(");
                self.list(all, "|", |writer, iri| writer.put(format_args!("{iri}")));
                return self.text.push(')');
            }
        };
        self.text.push_str(before);
        self.path(inner);
        self.text.push_str(after);
    }

    /// Writes a sequence or alternatives, which the parser nests to the left, without brackets.
    fn steps(&mut self, path: &'a Path) {
        let (left, sign, right) = match path {
            Path::Sequence(left, right) => (left, "/", right),
            Path::Alternative(left, right) => (left, "|", right),
            other => return self.path(other),
        };
        if std::mem::discriminant(&**left) == std::mem::discriminant(path) {
            self.steps(left);
        } else {
            self.path(left);
        }
        self.text.push_str(sign);
        self.path(right);
    }

    fn triple(&mut self, triple: &TriplePattern) {
        self.put(format_args!("{triple}{END}"));
    }

    // --- Expressions ---

    fn aggregate(&mut self, aggregate: &'a AggregateExpression) {
        let (name, expression, is_distinct) = match aggregate {
            AggregateExpression::CountSolutions { distinct } => {
                let distinct = if *distinct { "DISTINCT " } else { "" };
                return self.put(format_args!("COUNT({distinct}*)"));
            }
            AggregateExpression::FunctionCall { name, expr, distinct } => (name, expr, *distinct),
        };
        self.put(format_args!("{name}({}", if is_distinct { "DISTINCT " } else { "" }));
        self.expression(expression);
        if let AggregateFunction::GroupConcat { separator: Some(separator) } = name {
            let separator = Literal::new_simple_literal(separator).to_string();
            let separator = separator.replace('<', "\\u003C"); // It is no slot.
            self.put(format_args!("; SEPARATOR = {separator}"));
        }
        self.text.push(')');
    }

    fn call(
        &mut self,
        name: impl std::fmt::Display,
        arguments: impl IntoIterator<Item = &'a Expression>,
    ) {
        self.put(format_args!("{name}("));
        self.list(arguments, ", ", Self::expression);
        self.text.push(')');
    }

    fn expression(&mut self, expression: &'a Expression) {
        match expression {
            Expression::NamedNode(iri) => self.put(format_args!("{iri}")),
            Expression::Literal(literal) => self.put(format_args!("{literal}")),
            Expression::Variable(variable) => {
                let known = self.aggregates.iter().find(|(known, _)| known == variable).copied();
                match known {
                    Some((_, aggregate)) => self.aggregate(aggregate),
                    None => self.put(format_args!("{variable}")),
                }
            }
            Expression::Bound(variable) => self.put(format_args!("BOUND({variable})")),
            Expression::Exists(pattern) => {
                self.text.push_str("EXISTS ");
                self.group(pattern);
            }
            Expression::SameTerm(left, right) => self.call("sameTerm", [&**left, right]),
            Expression::If(condition, left, right) => self.call("IF", [&**condition, left, right]),
            Expression::Coalesce(all) => self.call("COALESCE", all),
            Expression::FunctionCall(function, arguments) => self.call(function, arguments),
            Expression::In(value, list) => self.among(value, "IN", list),
            Expression::Not(inner) => match &**inner {
                Expression::In(value, list) => self.among(value, "NOT IN", list),
                Expression::Equal(..) => self.infix(expression),
                other => {
                    let is_exists = matches!(other, Expression::Exists(_));
                    self.text.push_str(if is_exists { "NOT " } else { "!" });
                    self.expression(other);
                }
            },
            Expression::UnaryPlus(inner) | Expression::UnaryMinus(inner) => {
                let sign = if matches!(expression, Expression::UnaryPlus(_)) { '+' } else { '-' };
                self.put(format_args!("({sign}"));
                self.expression(inner);
                self.text.push(')');
            }
            _ => self.infix(expression),
        }
    }

    fn among(&mut self, value: &'a Expression, word: &str, list: &'a [Expression]) {
        self.text.push('(');
        self.expression(value);
        self.call(format_args!(" {word} "), list);
        self.text.push(')');
    }

    fn infix(&mut self, expression: &'a Expression) {
        self.text.push('(');
        self.operands(expression);
        self.text.push(')');
    }

    /// Writes operands. The parser nests those of equal rank to the left, without brackets.
    fn operands(&mut self, expression: &'a Expression) {
        let Some((_, sign, left, right)) = operator_of(expression) else {
            return self.expression(expression);
        };
        if is_chain(expression, left) {
            self.operands(left);
        } else {
            self.expression(left);
        }
        self.put(format_args!(" {sign} "));
        self.expression(right);
    }
}

fn is_select(pattern: &GraphPattern) -> bool {
    matches!(
        pattern,
        GraphPattern::Slice { .. }
            | GraphPattern::Distinct { .. }
            | GraphPattern::Reduced { .. }
            | GraphPattern::Project { .. }
            | GraphPattern::OrderBy { .. }
            | GraphPattern::Group { .. }
    )
}

/// The rank, the sign and the operands of an operator between two operands.
fn operator_of(expression: &Expression) -> Option<(u8, &'static str, &Expression, &Expression)> {
    Some(match expression {
        Expression::Or(left, right) => (1, "||", left, right),
        Expression::And(left, right) => (2, "&&", left, right),
        Expression::Add(left, right) => (3, "+", left, right),
        Expression::Subtract(left, right) => (3, "-", left, right),
        Expression::Multiply(left, right) => (4, "*", left, right),
        Expression::Divide(left, right) => (4, "/", left, right),
        other => {
            let (operator, left, right) = comparison_of(other)?;
            (0, operator.name(), left, right)
        }
    })
}

fn is_chain(expression: &Expression, left: &Expression) -> bool {
    match (operator_of(expression), operator_of(left)) {
        (Some((rank, ..)), Some((inner, ..))) => rank > 0 && rank == inner,
        _ => false,
    }
}
