//! Queries as spareval has to evaluate them.
//!
//! spareval computes with the values of literals and forgets their lexical forms. So the dataset
//! gives expressions a literal of another than the canonical form under a private datatype that
//! keeps the text ([`marked`]). Functions of terms, such as `STR` and `sameTerm`, take it as it is.
//! Wherever an expression computes or compares, this rewriting puts a call of [`VALUE`] around it.
//!
//! Patterns that name the property of an attribute get a private name of it ([`ATTRIBUTE`]); only
//! these see attributes. A taxonomy operator becomes `EXISTS` over a private property
//! ([`TAXONOMY`]), which the dataset answers. No query can write a private name: it begins with
//! `>`, which no IRI may contain.
//!
//! A template is rewritten once, with slots for constants. [`substitute_rewritten`] puts them in.

use crate::algebra::{
    inside_mut, operands_mut, pattern_of_mut, slot_of_iri, slot_of_literal, substitute,
};
use crate::branch::{GM, TaxonomyOperator};
use crate::delta::Fresh;
use crate::lexical::PRIVATE;
use crate::push_new;
use oxrdf::vocab::xsd;
use oxrdf::{Term, Triple};
use spareval::ExpressionTerm;
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
    PropertyPathExpression as Path,
};
use spargebra::term::{
    GroundTerm, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern,
};

/// The prefix of an attribute's property in patterns that name it.
pub(crate) const ATTRIBUTE: &str = ">attribute ";
/// The prefix of a taxonomy operator as a property.
pub(crate) const TAXONOMY: &str = ">taxonomy ";
/// The function that gives the value of a marked term.
pub(crate) const VALUE: &str = ">value";
/// `DATATYPE` of a marked term.
pub(crate) const DATATYPE: &str = ">datatype";
/// `NOW`
pub(crate) const NOW: &str = ">now";
/// `REPLACE`
pub(crate) const REPLACE: &str = ">replace";
/// `REGEX`
pub(crate) const REGEX: &str = ">regex";
/// The function that is true if its arguments have values.
pub(crate) const DEFINED: &str = ">defined";
/// The function that gives its last argument, and counts the bytes of all.
pub(crate) const COUNTED: &str = ">counted";
/// The same if they are so many that they must be bounded although they are dropped soon.
pub(crate) const COUNTED_IF_LONG: &str = ">counted if long";

/// Maximum number of arguments of one `CONCAT`, because spareval does not bound its result.
const CONCAT_ARGUMENTS: usize = 8;

const ATTRIBUTES: [&str; 3] =
    ["urn:graphmatch:attribute:", "urn:graphmatch:isa:", "urn:graphmatch:words"];

/// Marks the number of a slot whose constant is rewritten when it is put in.
const REWRITTEN: u32 = 1 << 31;

/// Puts constants into a rewritten query; `None` if a slot cannot take its constant.
pub(crate) fn substitute_rewritten(query: &mut Query, constants: &[Term]) -> Option<()> {
    substitute(query, &|slot| {
        let mut constant = constants.get((slot & !REWRITTEN) as usize)?.clone();
        if slot & REWRITTEN == 0 {
            return Some(constant);
        }
        if let Term::NamedNode(property) = &mut constant {
            attribute(property);
        }
        Some(each_literal(constant, marked))
    })
}

/// Returns a literal under a datatype that keeps its text, or itself if its form is canonical.
pub(crate) fn marked(literal: Literal) -> Literal {
    if let Some((slot, _)) = slot_of_literal(&literal) {
        let slot = (slot | REWRITTEN).to_string();
        return Literal::new_typed_literal(slot, literal.datatype().into_owned());
    }
    if literal.language().is_some() || literal.datatype() == xsd::STRING {
        return literal;
    }
    let value = ExpressionTerm::from(Term::from(literal.clone()));
    if matches!(Term::from(value), Term::Literal(written) if written == literal) {
        return literal;
    }
    let datatype = NamedNode::new_unchecked(format!("{PRIVATE}{}", literal.datatype().as_str()));
    Literal::new_typed_literal(literal.value(), datatype)
}

/// Returns the literal that was marked.
pub(crate) fn unmarked(literal: Literal) -> Literal {
    match literal.datatype().as_str().strip_prefix(PRIVATE) {
        Some(datatype) => {
            Literal::new_typed_literal(literal.value(), NamedNode::new_unchecked(datatype))
        }
        None => literal,
    }
}

/// Applies a change to a literal, or to the literals inside a triple term.
pub(crate) fn each_literal(term: Term, change: fn(Literal) -> Literal) -> Term {
    match term {
        Term::Literal(literal) => change(literal).into(),
        Term::Triple(triple) => {
            Triple { object: each_literal(triple.object.clone(), change), ..*triple }.into()
        }
        term => term,
    }
}

/// Rewrites queries, and collects the functions that they call.
pub(crate) struct Rewriter {
    pub(crate) fresh: Fresh,
    pub(crate) functions: Vec<NamedNode>,
}

impl Rewriter {
    /// Rewrites a query.
    pub(crate) fn query(&mut self, query: &mut Query) {
        self.pattern(pattern_of_mut(query));
    }

    fn pattern(&mut self, pattern: &mut GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } if patterns.is_empty() => {
                *pattern = self.unit();
            }
            GraphPattern::Bgp { patterns } => {
                for triple in patterns {
                    if let NamedNodePattern::NamedNode(name) = &mut triple.predicate {
                        attribute(name);
                    }
                }
            }
            GraphPattern::Path { path, .. } => along_attributes(path),
            GraphPattern::Extend { inner, expression, .. } => {
                self.pattern(inner);
                self.term(expression);
            }
            // The memory of solutions is bounded by their terms, so that each needs one.
            GraphPattern::Values { variables, bindings } => {
                if bindings.iter().any(|row| row.iter().all(Option::is_none)) {
                    variables.push(self.fresh.variable());
                    bindings.iter_mut().for_each(|row| row.push(Some(row_term())));
                }
                // spareval would take the values of literals inside triple terms.
                for term in bindings.iter_mut().flatten().flatten() {
                    if let Ok(marked) = each_literal(term.clone().into(), marked).try_into() {
                        *term = marked;
                    }
                }
            }
            GraphPattern::Group { inner, aggregates, .. } => {
                self.pattern(inner);
                aggregates.iter_mut().for_each(|(_, aggregate)| self.aggregate(aggregate));
            }
            other => {
                let (patterns, expressions) = inside_mut(other);
                patterns.into_iter().for_each(|inner| self.pattern(inner));
                expressions.into_iter().for_each(|inner| self.value(inner));
            }
        }
    }

    /// A pattern with one solution, which holds one term.
    fn unit(&mut self) -> GraphPattern {
        let variables = vec![self.fresh.variable()];
        GraphPattern::Values { variables, bindings: vec![vec![Some(row_term())]] }
    }

    fn aggregate(&mut self, aggregate: &mut AggregateExpression) {
        let AggregateExpression::FunctionCall { name, expr, distinct } = aggregate else { return };
        let is_held = *distinct && !matches!(expr, Expression::Variable(_));
        match name {
            AggregateFunction::Sample | AggregateFunction::Count => self.term(expr),
            AggregateFunction::GroupConcat { separator } => {
                self.term(expr);
                let text = Expression::FunctionCall(Function::Str, vec![expr.clone()]);
                let separator = separator.as_deref().unwrap_or(" ");
                let separator = Literal::new_simple_literal(separator).into();
                *expr = self.private(COUNTED, vec![separator, text]);
            }
            _ => self.value(expr),
        }
        if is_held {
            *expr = self.private(COUNTED, vec![expr.clone()]);
        }
    }

    /// Rewrites an expression of which the value is used.
    fn value(&mut self, expression: &mut Expression) {
        match expression {
            Expression::Variable(_) => {}
            Expression::SameTerm(a, b) => [a, b].into_iter().for_each(|part| self.term(part)),
            Expression::Exists(pattern) => self.pattern(pattern),
            Expression::FunctionCall(function, arguments) => {
                if let Some(new) = self.call(function, arguments) {
                    *expression = new;
                }
            }
            _ => operands_mut(expression).into_iter().for_each(|inner| self.value(inner)),
        }
        if let Expression::Variable(_)
        | Expression::FunctionCall(Function::Object | Function::Triple, _) = expression
        {
            *expression = self.private(VALUE, vec![expression.clone()]);
        }
    }

    /// Rewrites an expression of which the term is used.
    fn term(&mut self, expression: &mut Expression) {
        match expression {
            Expression::Variable(_) => {}
            Expression::Literal(literal) => *literal = marked(literal.clone()),
            Expression::If(condition, a, b) => {
                self.value(condition);
                self.term(a);
                self.term(b);
            }
            Expression::Coalesce(parts)
            | Expression::FunctionCall(Function::Object | Function::Triple, parts) => {
                parts.iter_mut().for_each(|part| self.term(part));
            }
            _ => self.value(expression),
        }
    }

    /// Rewrites the call of a function; returns its replacement.
    fn call(&mut self, function: &Function, arguments: &mut Vec<Expression>) -> Option<Expression> {
        let is_taxonomy = |name: &str| TaxonomyOperator::of_iri(name).is_some();
        let takes_terms = match function {
            Function::Str | Function::Datatype | Function::Object | Function::Triple => true,
            Function::Custom(name) => is_operator(name.as_str()) || is_taxonomy(name.as_str()),
            _ => false,
        };
        for argument in arguments.iter_mut() {
            if takes_terms { self.term(argument) } else { self.value(argument) }
        }
        let name = match function {
            Function::Datatype => DATATYPE,
            Function::Regex => REGEX,
            Function::Replace => REPLACE,
            Function::Now => NOW,
            Function::Concat | Function::EncodeForUri => {
                let mut parts = std::mem::take(arguments);
                while *function == Function::Concat && parts.len() > CONCAT_ARGUMENTS {
                    let some = parts.chunks(CONCAT_ARGUMENTS).map(<[Expression]>::to_vec);
                    parts = some.map(|some| self.counted(Function::Concat, some)).collect();
                }
                return Some(self.counted(function.clone(), parts));
            }
            Function::Custom(name) if is_taxonomy(name.as_str()) => {
                return Some(self.taxonomy(name, std::mem::take(arguments)));
            }
            Function::Custom(name) => {
                self.note(name.clone());
                return None;
            }
            _ => return None,
        };
        Some(self.private(name, std::mem::take(arguments)))
    }

    /// A call of a function that makes a text, which is counted if it is long.
    fn counted(&mut self, function: Function, arguments: Vec<Expression>) -> Expression {
        self.private(COUNTED_IF_LONG, vec![Expression::FunctionCall(function, arguments)])
    }

    /// A taxonomy operator as a pattern. It is an error if an argument has no value.
    fn taxonomy(&mut self, name: &NamedNode, arguments: Vec<Expression>) -> Expression {
        let predicate = NamedNode::new_unchecked(format!("{TAXONOMY}{}", name.as_str())).into();
        let mut inner = None;
        let mut ends = arguments.iter().map(|argument| match argument {
            Expression::Variable(variable) => variable.clone().into(),
            Expression::NamedNode(name) => name.clone().into(),
            expression => {
                let variable = self.fresh.variable();
                let before = inner.take().unwrap_or_else(|| self.unit());
                inner = Some(GraphPattern::Extend {
                    inner: Box::new(before),
                    variable: variable.clone(),
                    expression: expression.clone(),
                });
                TermPattern::from(variable)
            }
        });
        let (Some(subject), Some(object), None) = (ends.next(), ends.next(), ends.next()) else {
            return self.private(DEFINED, vec![]);
        };
        let triple =
            GraphPattern::Bgp { patterns: vec![TriplePattern { subject, predicate, object }] };
        let holds = Expression::Exists(triple.into());
        let holds = match inner {
            Some(inner) => {
                Expression::Exists(GraphPattern::Filter { expr: holds, inner: inner.into() }.into())
            }
            None => holds,
        };
        let condition = self.private(DEFINED, arguments);
        Expression::If(
            condition.into(),
            holds.into(),
            Expression::from(Literal::from(false)).into(),
        )
    }

    fn private(&mut self, name: &str, arguments: Vec<Expression>) -> Expression {
        let name = NamedNode::new_unchecked(name);
        self.note(name.clone());
        Expression::FunctionCall(Function::Custom(name), arguments)
    }

    fn note(&mut self, name: NamedNode) {
        push_new(&mut self.functions, name);
    }
}

/// Whether the function is an operator: neither private, nor a function of graphmatch, nor a cast.
pub(crate) fn is_operator(name: &str) -> bool {
    let own = [GM, "http://www.w3.org/2001/XMLSchema#"];
    !name.starts_with(PRIVATE) && !own.iter().any(|namespace| name.starts_with(namespace))
}

/// A term for solutions that bind nothing.
fn row_term() -> GroundTerm {
    NamedNode::new_unchecked(">row").into()
}

/// Gives the property of an attribute its private name.
fn attribute(property: &mut NamedNode) {
    if let Some(slot) = slot_of_iri(property.as_str()) {
        *property = NamedNode::new_unchecked(format!("slot:{}", slot | REWRITTEN));
    } else if ATTRIBUTES.iter().any(|namespace| property.as_str().starts_with(namespace)) {
        *property = NamedNode::new_unchecked(format!("{ATTRIBUTE}{}", property.as_str()));
    }
}

/// Leads a path along attributes that it names; a negated property set does not name them.
fn along_attributes(path: &mut Path) {
    match path {
        Path::NamedNode(property) => attribute(property),
        Path::Reverse(inner)
        | Path::OneOrMore(inner)
        | Path::ZeroOrMore(inner)
        | Path::ZeroOrOne(inner) => along_attributes(inner),
        Path::Sequence(a, b) | Path::Alternative(a, b) => {
            along_attributes(a);
            along_attributes(b);
        }
        Path::NegatedPropertySet(_) => {}
    }
}
