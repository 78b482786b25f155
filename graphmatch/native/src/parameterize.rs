//! Query text to a query with slots, and its constants.
//!
//! Queries that differ in constants only share a template. The text is parsed, and each IRI and
//! literal of the algebra is replaced by a numbered slot. Names of functions and operators, numbers
//! of LIMIT and OFFSET and separators of GROUP_CONCAT are not constants. The parser invents names
//! for blank nodes and hidden variables; they are numbered, so that equal texts give equal queries.
//!
//! The algebra has `<slot:0>` for an IRI, `"1"^^<slot:l>` for a literal and `"2"^^<slot:q>` for a
//! literal with a unit of measure in an expression. A template's text has short markers instead,
//! see [`crate::writer`].

use crate::algebra::{Part, visit_query};
use crate::fault::Fault;
use crate::limits::Limits;
use crate::operators::{Operator, Operators};
use crate::scan::{on_stack, scan};
use crate::writer::template_text;
use oxrdf::vocab::xsd;
use oxrdf::{BlankNode, Literal, NamedNode, Variable};
use spargebra::algebra::Expression;
use spargebra::term::{GroundTerm, TermPattern};
use spargebra::{Query, SparqlParser};
use std::collections::HashMap;
use std::fmt::Display;

const QUANTITIES: &str = "https://w3id.org/cdt/";
const UNIT: &str = "https://w3id.org/cdt/ucumunit";
/// Length of a text that is parsed again in parts to explain an error.
const MAX_EXPLAINED_BYTES: usize = 1 << 14;
/// Length of a name from which on the parser may have invented it.
const INVENTED_LENGTH: usize = 20;

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
    pub fn new(
        prefixes: &[(String, String)],
        limits: Limits,
        operators: Vec<Operator>,
    ) -> Result<Self, Fault> {
        let (mut parser, mut names) = (SparqlParser::new(), Vec::new());
        for (name, iri) in prefixes {
            names.push(name.clone());
            parser = parser
                .with_prefix(name, iri)
                .map_err(|error| Fault::new(format!("{name}: {error}"), "Correct it."))?;
        }
        Ok(Self { parser, prefixes: names, limits, operators: Operators(operators.into()) })
    }

    /// Parses a query and replaces its constants by slots.
    pub fn parameterize(&self, text: &str) -> Result<ParameterizedQuery, Fault> {
        self.parameterize_with(text, |_| Ok(()))
    }

    /// Does the same with a query that is changed after parsing.
    pub(crate) fn parameterize_with(
        &self,
        text: &str,
        change: impl FnOnce(&mut Query) -> Result<(), Fault> + Send,
    ) -> Result<ParameterizedQuery, Fault> {
        let scanned = scan(text, self.limits, &self.prefixes)?;
        let is_deep = scanned.is_deep();
        on_stack(is_deep, || {
            let parsed = self.parse(&scanned.readable());
            let mut query = parsed.map_err(|error| scanned.unresolved.unwrap_or(error))?;
            change(&mut query)?;
            let mut numbers = SlotNumberer::new(text);
            visit_query(&mut query, &mut |part| numbers.part(part));
            let text = template_text(&query);
            let constants = numbers.constants;
            Ok(ParameterizedQuery { query, text, constants, is_deep })
        })
    }

    /// Parses a text.
    ///
    /// The parser reports the furthest place that it reached, not why a group or a subquery makes no
    /// sense. It does report the reason if the text ends there.
    pub(crate) fn parse(&self, text: &str) -> Result<Query, Fault> {
        let parse = |text: &str| self.parser.clone().parse_query(text).map_err(|e| e.to_string());
        let message = match parse(text) {
            Ok(query) => return Ok(query),
            Err(message) => message,
        };
        let most = if text.len() <= MAX_EXPLAINED_BYTES { 64 } else { 0 };
        let ends = text.match_indices('}').take(most);
        let parts = ends.flat_map(|(at, _)| [text[..at].trim_end(), &text[..=at]]);
        let mut reasons = parts.filter_map(|part| Fault::senseless(part, &parse(part).err()?));
        Err(Fault::senseless(text, &message)
            .or_else(|| reasons.next())
            .unwrap_or_else(|| Fault::unreadable(text, &message)))
    }
}

/// Whether literals of a datatype have units of measure.
fn is_quantity(datatype: &str) -> bool {
    datatype.starts_with(QUANTITIES) && datatype != UNIT
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
struct SlotNumberer<'a> {
    text: &'a str,
    constants: Vec<String>,
    /// Begins the names of hidden variables. No variable of the query begins so.
    prefix: String,
    hidden: HashMap<String, Variable>,
    blanks: HashMap<String, BlankNode>,
}

impl<'a> SlotNumberer<'a> {
    fn new(text: &'a str) -> Self {
        let mut prefix = "_".to_owned();
        while text.contains(&format!("?{prefix}")) || text.contains(&format!("${prefix}")) {
            prefix.push('_');
        }
        let (hidden, blanks) = Default::default();
        Self { text, constants: Vec::new(), prefix, hidden, blanks }
    }

    fn slot(&mut self, constant: impl Display) -> usize {
        self.constants.push(constant.to_string());
        self.constants.len() - 1
    }

    fn literal(&mut self, literal: &mut Literal, is_expression: bool) {
        let is_quantity = is_expression && is_quantity(literal.datatype().as_str());
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

    fn part(&mut self, part: Part) {
        match part {
            Part::Iri(iri)
            | Part::Expression(Expression::NamedNode(iri))
            | Part::Term(TermPattern::NamedNode(iri))
            | Part::Ground(GroundTerm::NamedNode(iri)) => {
                *iri = NamedNode::new_unchecked(format!("slot:{}", self.slot(&*iri)));
            }
            Part::Expression(Expression::Literal(literal)) => self.literal(literal, true),
            Part::Expression(expression) => {
                if let Some(mut literal) = signed(expression) {
                    self.literal(&mut literal, true);
                    *expression = literal.into();
                }
            }
            Part::Term(TermPattern::Literal(literal))
            | Part::Ground(GroundTerm::Literal(literal)) => self.literal(literal, false),
            Part::Term(TermPattern::BlankNode(node)) => {
                let next = format!("b{}", self.blanks.len());
                let known = self.blanks.entry(node.as_str().to_owned());
                *node = known.or_insert_with(|| BlankNode::new_unchecked(next)).clone();
            }
            Part::Variable(variable) => self.variable(variable),
            Part::Pattern(_) | Part::Property(_) | Part::Term(_) | Part::Ground(_) => {}
        }
    }
}
