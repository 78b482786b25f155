//! Query text to a query with slots, and its constants.
//!
//! Queries that differ in constants only share a template. The text is parsed, and each IRI and
//! literal of the algebra is replaced by a numbered slot. Names of functions and operators, numbers
//! of LIMIT and OFFSET and separators of GROUP_CONCAT are not constants. The parser invents names
//! for blank nodes and hidden variables; they are numbered, so that equal texts give equal queries.
//!
//! The algebra has `<slot:0>` for an IRI, `"1"^^<slot:l>` for a literal and `"2"^^<slot:q>` for a
//! literal with a unit of measure in an expression. A template's text has short markers instead,
//! see [`filled`].

use crate::algebra::{Part, pattern_of_mut, visit};
use crate::limits::Limits;
use crate::operators::Operators;
use crate::query::{QueryError, on_stack};
use crate::scan::scan;
use crate::writer::template_text;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Variable};
use spargebra::algebra::{Expression, GraphPattern, PropertyPathExpression as Path};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use spargebra::{Query, SparqlParser};
use std::collections::HashMap;
use std::fmt::Display;

/// Begins the marker of an IRI. The number of its slot and a semicolon follow, unless the number is
/// one more than that of the marker before.
pub(crate) const IRI: u8 = 1;
/// Begins the marker of a literal.
pub(crate) const LITERAL: u8 = 2;
/// Begins the marker of a literal with a unit of measure in an expression.
pub(crate) const QUANTITY: u8 = 3;
/// Stands for the point behind a triple pattern.
pub(crate) const END: u8 = 4;

const QUANTITIES: &str = "https://w3id.org/cdt/";
const UNIT: &str = "https://w3id.org/cdt/ucumunit";
/// Length of a text that is parsed again in parts to explain an error.
const MAX_EXPLAINED_BYTES: usize = 1 << 14;
/// Length of a name from which on the parser may have invented it.
const INVENTED_LENGTH: usize = 20;

/// The number of the slot that an IRI stands for.
pub(crate) fn slot_of_iri(iri: &str) -> Option<u32> {
    iri.strip_prefix("slot:")?.parse().ok()
}

/// The number of the slot that a literal stands for, and whether it is a quantity in an expression.
pub(crate) fn slot_of_literal(literal: &Literal) -> Option<(u32, bool)> {
    let kind = literal.datatype().as_str().strip_prefix("slot:")?;
    Some((literal.value().parse().ok()?, kind == "q"))
}

/// Writes a template's text as SPARQL.
///
/// `put` gets the number of each slot. It writes a constant, or returns true for the slot itself.
pub(crate) fn filled(template: &str, mut put: impl FnMut(usize, &mut String) -> bool) -> String {
    let mut text = String::with_capacity(template.len() * 3);
    let (mut rest, mut slot) = (template, 0);
    while let Some(at) = rest.bytes().position(|byte| byte <= END) {
        let kind = rest.as_bytes()[at];
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if kind == END {
            text.push_str(" . ");
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

/// A query whose constants are slots.
pub struct ParameterizedQuery {
    /// The algebra with slots.
    pub(crate) query: Query,
    /// The template's text: the query with markers for constants.
    pub(crate) text: String,
    /// The canonical N-Triples text of each constant.
    pub(crate) constants: Vec<String>,
    /// Whether recursion over it needs a large stack.
    pub(crate) is_deep: bool,
}

/// Parses queries, with the prefixes that hold without being declared.
pub struct Parameterizer {
    parser: SparqlParser,
    prefixes: Vec<String>,
    pub(crate) limits: Limits,
    pub(crate) operators: Operators,
}

impl Parameterizer {
    /// Makes a parser with default prefixes: names without the colon, and IRIs.
    ///
    /// # Errors
    /// If an IRI is not absolute.
    pub fn new<'a>(
        prefixes: impl IntoIterator<Item = (&'a str, &'a str)>,
        limits: Limits,
    ) -> Result<Self, QueryError> {
        let (mut parser, mut names) = (SparqlParser::new(), Vec::new());
        for (name, iri) in prefixes {
            names.push(name.to_owned());
            parser = parser
                .with_prefix(name, iri)
                .map_err(|error| QueryError::new(format!("{name}: {error}"), "Correct it."))?;
        }
        Ok(Self { parser, prefixes: names, limits, operators: Operators::default() })
    }

    /// Allows calls of operators.
    pub fn with_operators(self, operators: Operators) -> Self {
        Self { operators, ..self }
    }

    /// Parses a query and replaces its constants by slots.
    pub fn parameterize(&self, text: &str) -> Result<ParameterizedQuery, QueryError> {
        let scanned = scan(text, &self.limits, &self.prefixes)?;
        on_stack(scanned.is_deep, || {
            let parsed = self.parse(scanned.text.as_deref().unwrap_or(text));
            let mut query = parsed.map_err(|error| scanned.unresolved.unwrap_or(error))?;
            let mut numbers = Numbers::new(text);
            if let Query::Construct { template, .. } = &mut query {
                template.iter_mut().for_each(|triple| numbers.triple(triple));
            }
            visit(pattern_of_mut(&mut query), &mut |part| numbers.part(part));
            if scanned.selects_all
                && let Some(variables) = projection(&mut query)
            {
                let last = usize::MAX;
                variables.sort_by_key(|v| numbers.order.get(v.as_str()).copied().unwrap_or(last));
            }
            let text = template_text(&query);
            let constants = numbers.constants;
            Ok(ParameterizedQuery { query, text, constants, is_deep: scanned.is_deep })
        })
    }

    /// Parses a text.
    ///
    /// The parser reports the furthest place that it reached, not why a group or a subquery makes no
    /// sense. It does report the reason if the text ends there.
    pub(crate) fn parse(&self, text: &str) -> Result<Query, QueryError> {
        let parse = |text: &str| self.parser.clone().parse_query(text).map_err(|e| e.to_string());
        let message = match parse(text) {
            Ok(query) => return Ok(query),
            Err(message) => message,
        };
        let most = if text.len() <= MAX_EXPLAINED_BYTES { 64 } else { 0 };
        let ends = text.match_indices('}').take(most);
        let parts = ends.flat_map(|(at, _)| [text[..at].trim_end(), &text[..=at]]);
        let mut reasons = parts.filter_map(|part| QueryError::senseless(part, &parse(part).err()?));
        Err(QueryError::senseless(text, &message)
            .or_else(|| reasons.next())
            .unwrap_or_else(|| QueryError::unreadable(text, &message)))
    }
}

/// The variables that a SELECT projects.
pub(crate) fn projection(query: &mut Query) -> Option<&mut Vec<Variable>> {
    let Query::Select { pattern, .. } = query else { return None };
    let mut pattern = pattern;
    loop {
        pattern = match pattern {
            GraphPattern::Slice { inner, .. }
            | GraphPattern::Distinct { inner }
            | GraphPattern::Reduced { inner } => inner,
            GraphPattern::Project { variables, .. } => return Some(variables),
            _ => return None,
        }
    }
}

/// A number with the sign before it, which the parser reads as an operator.
fn signed(expression: &Expression) -> Option<Literal> {
    let (sign, inner) = match expression {
        Expression::UnaryMinus(inner) => ('-', inner),
        Expression::UnaryPlus(inner) => ('+', inner),
        _ => return None,
    };
    let Expression::Literal(literal) = &**inner else { return None };
    let is_number = [xsd::INTEGER, xsd::DECIMAL, xsd::DOUBLE].contains(&literal.datatype());
    let is_unsigned = literal.value().starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let value = format!("{sign}{}", literal.value());
    (is_number && is_unsigned).then(|| Literal::new_typed_literal(value, literal.datatype()))
}

/// Numbers the constants and the invented names of a query in the order of its algebra.
struct Numbers<'a> {
    text: &'a str,
    constants: Vec<String>,
    /// Begins the names of hidden variables. No variable of the query begins so.
    prefix: String,
    hidden: HashMap<String, Variable>,
    blanks: HashMap<String, BlankNode>,
    /// The place at which each variable occurs first.
    order: HashMap<String, usize>,
}

impl<'a> Numbers<'a> {
    fn new(text: &'a str) -> Self {
        let mut prefix = "_".to_owned();
        while text.contains(&format!("?{prefix}")) || text.contains(&format!("${prefix}")) {
            prefix.push('_');
        }
        let (hidden, blanks, order) = Default::default();
        Self { text, constants: Vec::new(), prefix, hidden, blanks, order }
    }

    fn slot(&mut self, constant: impl Display) -> usize {
        self.constants.push(constant.to_string());
        self.constants.len() - 1
    }

    fn iri(&mut self, iri: &mut NamedNode) {
        *iri = NamedNode::new_unchecked(format!("slot:{}", self.slot(&*iri)));
    }

    fn literal(&mut self, literal: &mut Literal, is_expression: bool) {
        let datatype = literal.datatype().as_str();
        let is_quantity = is_expression && datatype.starts_with(QUANTITIES) && datatype != UNIT;
        let kind = NamedNode::new_unchecked(if is_quantity { "slot:q" } else { "slot:l" });
        *literal = Literal::new_typed_literal(self.slot(&*literal).to_string(), kind);
    }

    fn variable(&mut self, variable: &mut Variable) {
        let name = variable.as_str();
        let is_hex = |c: char| c.is_ascii_hexdigit();
        if name.len() > INVENTED_LENGTH && name.chars().all(is_hex) && !self.text.contains(name) {
            let next = format!("{}{}", self.prefix, self.hidden.len());
            let hidden = self.hidden.entry(name.to_owned());
            *variable = hidden.or_insert_with(|| Variable::new_unchecked(next)).clone();
        }
    }

    /// Numbers a variable at a place that does not only pass it on.
    fn occurrence(&mut self, variable: &mut Variable) {
        self.variable(variable);
        if !self.order.contains_key(variable.as_str()) {
            self.order.insert(variable.as_str().to_owned(), self.order.len());
        }
    }

    fn node(&mut self, term: &mut TermPattern) {
        match term {
            TermPattern::NamedNode(iri) => self.iri(iri),
            TermPattern::Literal(literal) => self.literal(literal, false),
            TermPattern::Variable(variable) => self.occurrence(variable),
            TermPattern::BlankNode(node) => {
                let next = format!("b{}", self.blanks.len());
                let known = self.blanks.entry(node.as_str().to_owned());
                *node = known.or_insert_with(|| BlankNode::new_unchecked(next)).clone();
            }
            TermPattern::Triple(triple) => self.triple(triple),
        }
    }

    fn property(&mut self, property: &mut NamedNodePattern) {
        match property {
            NamedNodePattern::NamedNode(iri) => self.iri(iri),
            NamedNodePattern::Variable(variable) => self.occurrence(variable),
        }
    }

    fn triple(&mut self, triple: &mut TriplePattern) {
        self.node(&mut triple.subject);
        self.property(&mut triple.predicate);
        self.node(&mut triple.object);
    }

    fn path(&mut self, path: &mut Path) {
        match path {
            Path::NamedNode(iri) => self.iri(iri),
            Path::NegatedPropertySet(all) => all.iter_mut().for_each(|iri| self.iri(iri)),
            Path::Sequence(left, right) | Path::Alternative(left, right) => {
                self.path(left);
                self.path(right);
            }
            Path::Reverse(inner)
            | Path::ZeroOrMore(inner)
            | Path::OneOrMore(inner)
            | Path::ZeroOrOne(inner) => self.path(inner),
        }
    }

    fn ground(&mut self, term: &mut GroundTerm) {
        match term {
            GroundTerm::NamedNode(iri) => self.iri(iri),
            GroundTerm::Literal(literal) => self.literal(literal, false),
            GroundTerm::Triple(triple) => {
                self.iri(&mut triple.subject);
                self.iri(&mut triple.predicate);
                self.ground(&mut triple.object);
            }
        }
    }

    fn part(&mut self, part: Part) {
        match part {
            Part::Expression(
                expression @ (Expression::UnaryMinus(_) | Expression::UnaryPlus(_)),
            ) => {
                if let Some(mut literal) = signed(expression) {
                    self.literal(&mut literal, true);
                    *expression = literal.into();
                }
            }
            Part::Expression(Expression::NamedNode(iri)) => self.iri(iri),
            Part::Expression(Expression::Literal(literal)) => self.literal(literal, true),
            Part::Expression(Expression::Variable(variable) | Expression::Bound(variable)) => {
                self.occurrence(variable);
            }
            Part::Expression(_) => {}
            Part::Pattern(GraphPattern::Bgp { patterns }) => {
                patterns.iter_mut().for_each(|triple| self.triple(triple));
            }
            Part::Pattern(GraphPattern::Path { subject, path, object }) => {
                self.node(subject);
                self.path(path);
                self.node(object);
            }
            Part::Pattern(GraphPattern::Values { variables, bindings }) => {
                variables.iter_mut().for_each(|variable| self.occurrence(variable));
                bindings.iter_mut().flatten().flatten().for_each(|term| self.ground(term));
            }
            Part::Pattern(GraphPattern::Graph { name, .. }) => self.property(name),
            Part::Pattern(GraphPattern::Extend { variable, .. }) => self.variable(variable),
            Part::Pattern(GraphPattern::Group { variables, aggregates, .. }) => {
                variables.iter_mut().for_each(|variable| self.variable(variable));
                aggregates.iter_mut().for_each(|(variable, _)| self.variable(variable));
            }
            Part::Pattern(GraphPattern::Project { variables, .. }) => {
                variables.iter_mut().for_each(|variable| self.variable(variable));
            }
            Part::Pattern(_) => {}
        }
    }
}
