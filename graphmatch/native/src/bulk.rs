//! Subscriptions that differ in constants only: a query with parameters, and a column for each.

use crate::algebra::{Part, visit_query};
use crate::attribute_names::is_quantity;
use crate::columns::{Texts, Values};
use crate::dictionary::Kind;
use crate::engine::{Engine, SubscribeError};
use crate::fault::Fault;
use crate::parameterize::ParameterizedQuery;
use crate::writer::filled;
use hashbrown::HashMap;
use oxrdf::{Literal, NamedNode, Term, Variable};
use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern};
use spargebra::term::{NamedNodePattern, TermPattern};
use std::borrow::Cow;
use std::ops::Range;

/// Begins the IRI or the datatype that stands for a parameter. The parameter's number follows. No
/// query has such an IRI.
const PARAMETER: &str = ">parameter ";

/// Subscriptions as rows of terms.
pub struct SubscriptionBatch<'a> {
    /// The query.
    pub query: &'a str,
    /// Variables of the query, each of which stands for a constant.
    pub parameters: &'a [String],
    /// The ids of all rows.
    pub names: Texts<'a>,
    /// The terms of each parameter.
    pub columns: Vec<Values<'a>>,
    /// The rows to subscribe.
    pub chosen: &'a [i64],
}

/// The template of the rows that have IRIs for the same parameters.
struct BatchTemplate {
    number: u32,
    /// For each constant: the parameter that it stands for, if any, and its text.
    constants: Vec<(Option<usize>, String)>,
}

/// Puts constants in the place of parameters, which are no longer projected.
fn replace(query: &mut Query, parameters: &[String], places: &[Term]) -> Result<(), Fault> {
    let number = |variable: &Variable| parameters.iter().position(|one| one == variable.as_str());
    let (mut is_met, mut misplaced) = (vec![false; parameters.len()], None);
    let is_describe = matches!(query, Query::Describe { .. });
    visit_query(query, &mut |mut part| {
        let found = match &mut part {
            Part::Property(NamedNodePattern::Variable(variable))
            | Part::Term(TermPattern::Variable(variable))
            | Part::Expression(Expression::Variable(variable)) => number(variable),
            Part::Pattern(GraphPattern::Project { variables, .. }) => {
                let projected = variables.iter().find_map(&number);
                variables.retain(|variable| number(variable).is_none());
                if variables.is_empty() || is_describe {
                    misplaced = misplaced.or(projected); // An empty list would be `SELECT *`.
                }
                return;
            }
            Part::Variable(variable) => return misplaced = misplaced.or(number(variable)),
            _ => None,
        };
        let Some(found) = found else { return };
        is_met[found] = true;
        match (part, places[found].clone()) {
            (Part::Property(property), Term::NamedNode(iri)) => *property = iri.into(),
            (Part::Term(term), place) => *term = place.into(),
            (Part::Expression(expression), Term::NamedNode(iri)) => *expression = iri.into(),
            (Part::Expression(expression), Term::Literal(one)) => *expression = one.into(),
            _ => misplaced = Some(found),
        }
    });
    if let Some(number) = misplaced {
        let what =
            format!("the parameter ?{} is where a constant is not allowed", parameters[number]);
        let remedy = "Use it in triple patterns and expressions; a property is an IRI.";
        return Err(Fault::new(what, remedy));
    }
    if let Some(number) = is_met.iter().position(|is_met| !is_met) {
        let what = format!("the parameter ?{} is not in the query", parameters[number]);
        return Err(Fault::new(what, "Use it there, or leave it out."));
    }
    Ok(())
}

impl Engine {
    /// Parses a query with parameters. `are_iris` says which of these are IRIs; the others are
    /// literals.
    pub(crate) fn parameterized(
        &self,
        query: &str,
        parameters: &[String],
        are_iris: &[bool],
    ) -> Result<ParameterizedQuery, Fault> {
        let place = |(number, is_iri): (usize, &bool)| -> Term {
            let name = format!("{PARAMETER}{number}");
            match is_iri {
                true => NamedNode::new_unchecked(name).into(),
                false => Literal::new_typed_literal("", NamedNode::new_unchecked(name)).into(),
            }
        };
        let places: Vec<Term> = are_iris.iter().enumerate().map(place).collect();
        self.parameterizer.parameterize_with(query, |query| replace(query, parameters, &places))
    }

    /// Adds the chosen rows of a range. Returns for each refused row its place among the chosen ones,
    /// and the error.
    pub fn subscribe_batch(
        &mut self,
        batch: &SubscriptionBatch,
        range: Range<usize>,
    ) -> Vec<(usize, SubscribeError)> {
        let mut templates = HashMap::new();
        let rows = range.filter_map(|place| {
            let row = usize::try_from(*batch.chosen.get(place)?).ok()?;
            let error = self.subscribe_row(batch, &mut templates, row).err()?;
            Some((place, error))
        });
        let refused = rows.collect();
        for template in templates.into_values().flatten() {
            self.templates.drop_unused(template.number);
        }
        refused
    }

    fn subscribe_row(
        &mut self,
        batch: &SubscriptionBatch,
        templates: &mut HashMap<Vec<bool>, Result<BatchTemplate, Fault>>,
        row: usize,
    ) -> Result<(), SubscribeError> {
        let name = batch.names.get(row).unwrap_or_default();
        self.check_name(name)?;
        let mut terms = Vec::with_capacity(batch.columns.len());
        for (column, parameter) in batch.columns.iter().zip(batch.parameters) {
            let is_constant =
                |term: &Cow<str>| matches!(Kind::of(term.as_bytes()), Kind::Iri | Kind::Literal);
            terms.push(column.term(row).filter(is_constant).ok_or_else(|| {
                let what = format!("?{parameter} has no IRI or literal in this row");
                Fault::new(what, "Write terms in N-Triples syntax, or numbers.")
            })?);
        }
        let are_iris: Vec<bool> =
            terms.iter().map(|term| Kind::of(term.as_bytes()) == Kind::Iri).collect();
        let template = templates
            .entry(are_iris)
            .or_insert_with_key(|are_iris| self.batch_template(batch, are_iris));
        let template = template.as_ref().map_err(Clone::clone)?;
        let constant = |number: usize| {
            let (parameter, fixed) = &template.constants[number];
            parameter.map_or(fixed.as_str(), |number| &terms[number])
        };
        // Python reads quantities.
        let mut result = Err(SubscribeError::Python(String::new()));
        if !terms.iter().any(|term| is_quantity(term.as_bytes())) {
            let texts = (0..template.constants.len()).map(constant);
            let constants = texts.map(|text| self.dictionary.intern(text.as_bytes())).collect();
            result = self.add_or_replace(name, template.number, constants, None, None);
        }
        if let Err(SubscribeError::Python(text)) = &mut result {
            *text = filled(self.templates.text(template.number), |number, text| {
                text.push_str(constant(number));
                false
            });
        }
        result.map(|_| ())
    }

    fn batch_template(
        &mut self,
        batch: &SubscriptionBatch,
        are_iris: &[bool],
    ) -> Result<BatchTemplate, Fault> {
        let query = self.parameterized(batch.query, batch.parameters, are_iris)?;
        let (number, constants) = self.template((query, None))?;
        let parameter = |text: &str| {
            let (before, rest) = text.strip_suffix('>')?.split_once(PARAMETER)?;
            rest.parse().ok().filter(|_| matches!(before, "<" | "\"\"^^<"))
        };
        let constants = constants.into_iter().map(|text| (parameter(&text), text)).collect();
        Ok(BatchTemplate { number, constants })
    }
}
