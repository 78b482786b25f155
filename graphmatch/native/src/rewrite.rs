//! Queries as the evaluator has to be asked, so that it answers as SPARQL and our contract say.
//!
//! The evaluator gives expressions the values of literals, and forgets how they were written. So
//! `STR`, `DATATYPE` and whatever hands a term on call functions of ours with that term: a call of
//! [`EXACT`] before a variable makes the dataset give its term and not its value, under a datatype
//! that marks it (`>` and the datatype's IRI). Properties of attributes get a name of their own in
//! patterns that name them ([`ATTRIBUTE`]), and no others see those attributes. Triple terms are
//! taken apart by functions, `NOW()` is the engine's clock, and the taxonomy operators are asked of
//! the dataset ([`TAXONOMY`]). No query can write the names that are used here: they begin with `>`,
//! which no IRI may hold.
//!
//! Cost: one walk over the algebra, once for a query.

use crate::algebra::{operands_mut, parts_mut, pattern_of_mut};
use crate::pattern::{GM, TaxonomyOperator};
use crate::rest::Fresh;
use oxrdf::{Term, Triple};
use spareval::ExpressionTerm;
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
    PropertyPathExpression as Path,
};
use spargebra::term::{
    GroundTerm, GroundTriple, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern,
    Variable,
};

/// Begins a private name: of a property, a function or a datatype.
pub(crate) const PRIVATE: char = '>';
/// Begins the name of an attribute's property as patterns that name it see it.
pub(crate) const ATTRIBUTE: &str = ">attribute ";
/// Begins the name of a taxonomy operator, and the datatype of the literal that asks for it.
pub(crate) const TAXONOMY: &str = ">taxonomy ";
/// The function that makes the next variable give its term.
pub(crate) const EXACT: &str = ">exact";
/// `NOW`.
pub(crate) const NOW: &str = ">now";
/// `STR` of a marked term.
pub(crate) const STR: &str = ">str";
/// `DATATYPE` of a marked term.
pub(crate) const DATATYPE: &str = ">datatype";
/// A marked term itself.
pub(crate) const TERM: &str = ">term";
/// What is put together to a text: its last argument; the bytes of all are counted.
pub(crate) const COUNTED: &str = ">counted";
/// `CONCAT`, of at most [`JOINED`] arguments.
pub(crate) const CONCAT: &str = ">concat";
/// `REPLACE`.
pub(crate) const REPLACE: &str = ">replace";
/// `REGEX`.
pub(crate) const REGEX: &str = ">regex";
/// `ENCODE_FOR_URI`.
pub(crate) const ENCODE_FOR_URI: &str = ">encode for uri";
/// The text of a literal; another term itself.
pub(crate) const TEXT: &str = ">text";
/// The value of a marked term.
pub(crate) const VALUE: &str = ">value";
/// A term without marks, including those inside triple terms.
pub(crate) const PLAIN: &str = ">plain";
/// An error.
pub(crate) const ERROR: &str = ">error";

/// So many texts are put together at once: all of them are held until then.
const JOINED: usize = 8;

const ATTRIBUTES: [&str; 3] =
    ["urn:graphmatch:attribute:", "urn:graphmatch:isa:", "urn:graphmatch:words"];

/// The taxonomy operator of a private name.
pub(crate) fn operator(name: &str) -> Option<TaxonomyOperator> {
    TaxonomyOperator::of_iri(name.strip_prefix(TAXONOMY)?)
}

/// A literal under a datatype that marks it; one whose value is written just so stays as it is.
pub(crate) fn marked(literal: Literal) -> Literal {
    let value = ExpressionTerm::from(Term::from(literal.clone()));
    if matches!(Term::from(value), Term::Literal(written) if written == literal) {
        return literal;
    }
    let datatype = NamedNode::new_unchecked(format!("{PRIVATE}{}", literal.datatype().as_str()));
    Literal::new_typed_literal(literal.value(), datatype)
}

/// Applies a change to a literal, or to the literals that are objects inside a triple term.
pub(crate) fn each_literal(term: Term, change: fn(Literal) -> Literal) -> Term {
    match term {
        Term::Literal(literal) => change(literal).into(),
        Term::Triple(triple) => {
            Triple { object: each_literal(triple.object.clone(), change), ..*triple }.into()
        }
        term => term,
    }
}

/// The literal that a marked one stands for.
pub(crate) fn unmarked(literal: Literal) -> Literal {
    match literal.datatype().as_str().strip_prefix(PRIVATE) {
        Some(datatype) => {
            Literal::new_typed_literal(literal.value(), NamedNode::new_unchecked(datatype))
        }
        None => literal,
    }
}

/// Rewrites queries, and notes which functions they call.
pub(crate) struct Rewriter {
    pub(crate) fresh: Fresh,
    pub(crate) functions: Vec<NamedNode>,
}

impl Rewriter {
    pub(crate) fn new(fresh: Fresh) -> Self {
        Self { fresh, functions: Vec::new() }
    }

    /// Rewrites a query.
    pub(crate) fn query(&mut self, query: &mut Query) {
        self.pattern(pattern_of_mut(query));
    }

    fn pattern(&mut self, pattern: &mut GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } if patterns.is_empty() => {
                let (variables, bindings) =
                    (vec![self.fresh.variable()], vec![vec![Some(row_term())]]);
                *pattern = GraphPattern::Values { variables, bindings };
            }
            GraphPattern::Bgp { patterns } => {
                patterns.iter_mut().for_each(|triple| attribute_of(&mut triple.predicate));
                let (quoting, plain) = std::mem::take(patterns)
                    .into_iter()
                    .partition(|triple| is_triple(&triple.subject) || is_triple(&triple.object));
                let plain = GraphPattern::Bgp { patterns: plain };
                *pattern = Vec::into_iter(quoting).fold(plain, |all, mut triple| {
                    let terms = self.quoted([&mut triple.subject, &mut triple.object]);
                    let right = unquoted(GraphPattern::Bgp { patterns: vec![triple] }, terms);
                    GraphPattern::Join { left: all.into(), right: right.into() }
                });
            }
            GraphPattern::Path { subject, path, object } => {
                along_attributes(path);
                let terms = self.quoted([subject, object]);
                *pattern = unquoted(std::mem::take(pattern), terms);
            }
            GraphPattern::Extend { inner, expression, .. } => {
                self.pattern(inner);
                self.term(expression);
            }
            // a solution that binds nothing would cost nothing that is bounded
            GraphPattern::Values { variables, bindings } => {
                if bindings.iter().any(|row| row.iter().all(Option::is_none)) {
                    variables.push(self.fresh.variable());
                    bindings.iter_mut().for_each(|row| row.push(Some(row_term())));
                }
                bindings.iter_mut().flatten().flatten().for_each(|term| {
                    if let GroundTerm::Triple(triple) = term {
                        mark_object(&mut triple.object);
                    }
                });
            }
            GraphPattern::Group { inner, aggregates, .. } => {
                self.pattern(inner);
                aggregates.iter_mut().for_each(|(_, aggregate)| self.aggregate(aggregate));
            }
            other => {
                let (patterns, expressions) = parts_mut(other);
                patterns.into_iter().for_each(|inner| self.pattern(inner));
                expressions.into_iter().for_each(|inner| self.value(inner));
            }
        }
    }

    /// Puts variables in the place of triple terms.
    fn quoted(&mut self, ends: [&mut TermPattern; 2]) -> Vec<(Variable, TriplePattern)> {
        let mut found = Vec::new();
        for end in ends {
            if let TermPattern::Triple(triple) = end {
                let variable = self.fresh.variable();
                found.push((variable.clone(), (**triple).clone()));
                *end = variable.into();
            }
        }
        found
    }

    fn aggregate(&mut self, aggregate: &mut AggregateExpression) {
        let AggregateExpression::FunctionCall { name, expr, distinct } = aggregate else { return };
        let is_made = *distinct && !matches!(expr, Expression::Variable(_));
        match name {
            AggregateFunction::Sample => self.kept(expr),
            AggregateFunction::GroupConcat { separator } => {
                match expr {
                    Expression::Variable(variable) => *expr = self.of_term(TEXT, variable.clone()),
                    _ => self.value(expr),
                }
                let separator = separator.as_deref().unwrap_or(" ");
                let separator = Literal::new_simple_literal(separator).into();
                *expr = self.private(COUNTED, vec![separator, expr.clone()]);
            }
            AggregateFunction::Count => self.term(expr),
            AggregateFunction::Custom(name) => {
                self.note(name.clone());
                self.value(expr);
            }
            _ => self.value(expr),
        }
        if is_made {
            *expr = self.private(COUNTED, vec![expr.clone()]); // all of them are held
        }
    }

    /// Rewrites an expression whose value is asked for.
    fn value(&mut self, expression: &mut Expression) {
        match expression {
            Expression::SameTerm(a, b) => [a, b].into_iter().for_each(|part| self.term(part)),
            Expression::Equal(a, b) => self.equal([&mut **a, &mut **b]),
            Expression::In(one, list) => self.equal([&mut **one].into_iter().chain(list)),
            Expression::Exists(pattern) => self.pattern(pattern),
            Expression::FunctionCall(function, arguments) => {
                if let Some(new) = self.call(function, arguments) {
                    *expression = new;
                }
            }
            _ => operands_mut(expression).into_iter().for_each(|inner| self.value(inner)),
        }
    }

    /// Rewrites the operands of `=` or `IN`. If two of them may be triple terms, the marks inside
    /// them are removed, so that they compare by value.
    fn equal<'a>(&mut self, parts: impl IntoIterator<Item = &'a mut Expression>) {
        let is_open =
            |part: &Expression| !matches!(part, Expression::NamedNode(_) | Expression::Literal(_));
        let mut parts: Vec<&mut Expression> = parts.into_iter().collect();
        let may_be_triples = is_open(parts[0]) && parts[1..].iter().any(|part| is_open(part));
        for part in &mut parts {
            self.value(part);
            if may_be_triples {
                **part = self.private(PLAIN, vec![part.clone()]);
            }
        }
    }

    /// Rewrites a call of a function; returns what has to be in its place.
    fn call(&mut self, function: &Function, arguments: &mut Vec<Expression>) -> Option<Expression> {
        match (function, &mut arguments[..]) {
            (Function::Str, [argument]) => return self.of_text(STR, argument),
            (Function::Datatype, [argument]) => return self.of_text(DATATYPE, argument),
            (Function::Object, [argument]) => {
                self.value(argument);
                let object = Expression::FunctionCall(Function::Object, arguments.to_vec());
                return Some(self.private(VALUE, vec![object]));
            }
            (Function::Triple, [subject, predicate, object]) => {
                self.value(subject);
                self.value(predicate);
                self.kept(object);
                return None;
            }
            (Function::Regex | Function::Replace | Function::EncodeForUri, _) => {
                arguments.iter_mut().for_each(|argument| self.value(argument));
                let name = match function {
                    Function::Regex => REGEX,
                    Function::Replace => REPLACE,
                    _ => ENCODE_FOR_URI,
                };
                return Some(self.private(name, std::mem::take(arguments)));
            }
            (Function::Concat, _) => {
                arguments.iter_mut().for_each(|argument| self.value(argument));
                let mut parts = std::mem::take(arguments);
                while parts.len() > JOINED {
                    let mut rest = parts.into_iter();
                    parts = Vec::new();
                    while rest.len() > 0 {
                        let some = rest.by_ref().take(JOINED).collect();
                        parts.push(self.private(CONCAT, some));
                    }
                }
                return Some(self.private(CONCAT, parts));
            }
            (Function::Now, []) => return Some(self.private(NOW, Vec::new())),
            _ => {}
        }
        if let Function::Custom(name) = function
            && is_operator(name.as_str())
        {
            arguments.iter_mut().for_each(|argument| self.kept(argument));
            self.note(name.clone());
            return None;
        }
        arguments.iter_mut().for_each(|argument| self.value(argument));
        let Function::Custom(name) = function else { return None };
        if TaxonomyOperator::of_iri(name.as_str()).is_none() {
            self.note(name.clone());
            return None;
        }
        let asked = self.private(&format!("{TAXONOMY}{}", name.as_str()), arguments.to_vec());
        let truth = Expression::Literal(Literal::from(true));
        Some(Expression::SameTerm(truth.into(), asked.into()))
    }

    /// Rewrites a call of a function that looks at how its argument is written.
    fn of_text(&mut self, name: &str, argument: &mut Expression) -> Option<Expression> {
        match argument {
            Expression::Literal(literal) if name == STR => {
                Some(Literal::new_simple_literal(literal.value()).into())
            }
            Expression::Literal(literal) => Some(literal.datatype().into_owned().into()),
            Expression::Variable(variable) => Some(self.of_term(name, variable.clone())),
            Expression::FunctionCall(Function::Object, arguments) => {
                arguments.iter_mut().for_each(|argument| self.value(argument));
                Some(self.private(name, vec![argument.clone()]))
            }
            _ => {
                self.value(argument);
                None
            }
        }
    }

    /// Rewrites an expression whose term is asked for; the evaluator gives that of a variable and of
    /// a constant by itself.
    fn term(&mut self, expression: &mut Expression) {
        match expression {
            Expression::NamedNode(_) | Expression::Literal(_) | Expression::Variable(_) => {}
            _ => self.kept(expression),
        }
    }

    /// Rewrites an expression so that terms that it hands on are marked.
    fn kept(&mut self, expression: &mut Expression) {
        match expression {
            Expression::Variable(variable) => *expression = self.of_term(TERM, variable.clone()),
            Expression::Literal(literal) => *expression = marked(literal.clone()).into(),
            Expression::If(condition, a, b) => {
                self.value(condition);
                self.kept(a);
                self.kept(b);
            }
            Expression::Coalesce(list) => list.iter_mut().for_each(|item| self.kept(item)),
            Expression::FunctionCall(Function::Object, arguments) => {
                arguments.iter_mut().for_each(|argument| self.value(argument));
            }
            _ => self.value(expression),
        }
    }

    /// A call of a private function with a variable's term; an error where it is unbound.
    fn of_term(&mut self, name: &str, variable: Variable) -> Expression {
        let exact = self.private(EXACT, Vec::new());
        let call = self.private(name, vec![exact, variable.clone().into()]);
        let error = self.private(ERROR, Vec::new());
        Expression::If(Expression::Bound(variable).into(), call.into(), error.into())
    }

    fn private(&mut self, name: &str, arguments: Vec<Expression>) -> Expression {
        let name = NamedNode::new_unchecked(name);
        self.note(name.clone());
        Expression::FunctionCall(Function::Custom(name), arguments)
    }

    fn note(&mut self, name: NamedNode) {
        if !self.functions.contains(&name) {
            self.functions.push(name);
        }
    }
}

/// Whether a function that is called is an operator: neither ours nor a cast.
pub(crate) fn is_operator(name: &str) -> bool {
    let own = [GM, "http://www.w3.org/2001/XMLSchema#"];
    !name.starts_with(PRIVATE) && !own.iter().any(|namespace| name.starts_with(namespace))
}

/// What a solution has that binds nothing.
fn row_term() -> GroundTerm {
    NamedNode::new_unchecked(">row").into()
}

fn is_triple(term: &TermPattern) -> bool {
    matches!(term, TermPattern::Triple(_))
}

/// Gives a property its private name if it is an attribute's.
fn attribute(property: &mut NamedNode) {
    if ATTRIBUTES.iter().any(|namespace| property.as_str().starts_with(namespace)) {
        *property = NamedNode::new_unchecked(format!("{ATTRIBUTE}{}", property.as_str()));
    }
}

fn attribute_of(property: &mut NamedNodePattern) {
    if let NamedNodePattern::NamedNode(name) = property {
        attribute(name);
    }
}

/// Leads a path along attributes where it names them; negated property sets do not.
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

/// Marks a literal inside a triple term of VALUES.
fn mark_object(term: &mut GroundTerm) {
    match term {
        GroundTerm::Literal(literal) => *literal = marked(literal.clone()),
        GroundTerm::Triple(triple) => mark_object(&mut triple.object),
        GroundTerm::NamedNode(_) => {}
    }
}

/// A pattern with what triple terms ask of the variables that it has in their place.
fn unquoted(inner: GraphPattern, terms: Vec<(Variable, TriplePattern)>) -> GraphPattern {
    terms.into_iter().fold(inner, |inner, (variable, triple)| {
        let triple = TermPattern::from(triple);
        let Some(term) = ground(&triple) else {
            return compared(inner, variable.into(), &triple);
        };
        let (variables, bindings) = (vec![variable], vec![vec![Some(term)]]);
        let values = GraphPattern::Values { variables, bindings };
        GraphPattern::Join { left: values.into(), right: inner.into() }
    })
}

/// Returns the pattern as a term; `None` if it has a variable or a blank node.
fn ground(term: &TermPattern) -> Option<GroundTerm> {
    Some(match term {
        TermPattern::NamedNode(name) => name.clone().into(),
        TermPattern::Literal(literal) => marked(literal.clone()).into(),
        TermPattern::Triple(triple) => {
            let GroundTerm::NamedNode(subject) = ground(&triple.subject)? else { return None };
            let NamedNodePattern::NamedNode(predicate) = &triple.predicate else { return None };
            let (predicate, object) = (predicate.clone(), ground(&triple.object)?);
            GroundTerm::Triple(GroundTriple { subject, predicate, object }.into())
        }
        TermPattern::Variable(_) | TermPattern::BlankNode(_) => return None,
    })
}

/// A pattern with what a triple term asks of an expression that it binds.
fn taken_apart(inner: GraphPattern, term: Expression, triple: &TriplePattern) -> GraphPattern {
    let part = |function| Expression::FunctionCall(function, vec![term.clone()]);
    let inner = filtered(inner, part(Function::IsTriple));
    let predicate = match &triple.predicate {
        NamedNodePattern::NamedNode(name) => name.clone().into(),
        NamedNodePattern::Variable(variable) => variable.clone().into(),
    };
    let inner = compared(inner, part(Function::Subject), &triple.subject);
    let inner = compared(inner, part(Function::Predicate), &predicate);
    compared(inner, part(Function::Object), &triple.object)
}

fn compared(inner: GraphPattern, part: Expression, term: &TermPattern) -> GraphPattern {
    let same = |term: Expression| Expression::SameTerm(term.into(), part.clone().into());
    match term {
        TermPattern::NamedNode(name) => filtered(inner, same(name.clone().into())),
        TermPattern::Literal(literal) => filtered(inner, same(literal.clone().into())),
        TermPattern::Triple(triple) => taken_apart(inner, part, triple),
        TermPattern::Variable(variable) => {
            let unbound = Expression::Not(Expression::Bound(variable.clone()).into());
            let holds = Expression::Or(unbound.into(), same(variable.clone().into()).into());
            GraphPattern::Extend {
                inner: filtered(inner, holds).into(),
                variable: variable.clone(),
                expression: part,
            }
        }
        TermPattern::BlankNode(_) => inner, // they are variables by now
    }
}

fn filtered(inner: GraphPattern, expr: Expression) -> GraphPattern {
    GraphPattern::Filter { expr, inner: inner.into() }
}
