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

use crate::necessary::{operands_mut, parts_mut};
use crate::pattern::TaxonomyOperator;
use crate::rest::Fresh;
use oxrdf::vocab::xsd;
use spargebra::Query;
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern,
    PropertyPathExpression as Path,
};
use spargebra::term::{
    GroundTerm, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

/// Begins a private name: of a property, a function or a datatype.
pub(crate) const PRIVATE: char = '>';
/// Begins the name of an attribute's property as patterns that name it see it.
pub(crate) const ATTRIBUTE: &str = ">attribute ";
/// Begins the name of a property that leads from each node of an attribute's triples to itself.
pub(crate) const NODES: &str = ">nodes ";
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
/// The text of a literal; another term itself.
pub(crate) const TEXT: &str = ">text";
/// The value of a marked term.
pub(crate) const VALUE: &str = ">value";
/// An error.
pub(crate) const ERROR: &str = ">error";

const ATTRIBUTES: [&str; 2] = ["urn:graphmatch:attribute:", "urn:graphmatch:isa:"];
const OPERATORS: [(&str, TaxonomyOperator); 3] = [
    ("urn:graphmatch:descendantOf", TaxonomyOperator::Descendant),
    ("urn:graphmatch:ancestorOf", TaxonomyOperator::Ancestor),
    ("urn:graphmatch:childOf", TaxonomyOperator::Child),
];

/// The taxonomy operator of a private name.
pub(crate) fn operator(name: &str) -> Option<TaxonomyOperator> {
    let name = name.strip_prefix(TAXONOMY)?;
    OPERATORS.iter().find(|(operator, _)| *operator == name).map(|(_, operator)| *operator)
}

/// A literal under a datatype that marks it; one whose value is its text stays as it is.
pub(crate) fn marked(literal: Literal) -> Literal {
    match literal.datatype() {
        xsd::STRING => literal,
        _ if literal.language().is_some() => literal,
        datatype => {
            let marked = NamedNode::new_unchecked(format!("{PRIVATE}{}", datatype.as_str()));
            Literal::new_typed_literal(literal.value(), marked)
        }
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
    /// An operator that is not SPARQL 1.1's was met.
    pub(crate) foreign: bool,
}

impl Rewriter {
    pub(crate) fn new(fresh: Fresh) -> Self {
        Self { fresh, functions: Vec::new(), foreign: false }
    }

    /// Rewrites a query.
    pub(crate) fn query(&mut self, query: &mut Query) {
        self.pattern(crate::rest::pattern_of_mut(query));
    }

    fn pattern(&mut self, pattern: &mut GraphPattern) {
        match pattern {
            GraphPattern::Bgp { patterns } if patterns.is_empty() => {
                let (variables, bindings) =
                    (vec![self.fresh.variable()], vec![vec![Some(row_term())]]);
                *pattern = GraphPattern::Values { variables, bindings };
            }
            GraphPattern::Bgp { patterns } => {
                let (apart, mut plain): (Vec<_>, Vec<_>) = std::mem::take(patterns)
                    .into_iter()
                    .partition(|triple| is_triple(&triple.subject) || is_triple(&triple.object));
                for triple in &mut plain {
                    named(&mut triple.subject);
                    named(&mut triple.object);
                    attribute_of(&mut triple.predicate);
                }
                let plain = GraphPattern::Bgp { patterns: plain };
                *pattern = apart.into_iter().fold(plain, |all, mut triple| {
                    attribute_of(&mut triple.predicate);
                    let (subject, predicate, object) =
                        (triple.subject, triple.predicate, triple.object);
                    let apart = self.apart(subject, object, |subject, object| GraphPattern::Bgp {
                        patterns: vec![TriplePattern { subject, predicate, object }],
                    });
                    GraphPattern::Join { left: all.into(), right: apart.into() }
                });
            }
            GraphPattern::Path { subject, path, object } => {
                along_attributes(path);
                let ends = [&mut *subject, &mut *object].map(|end| std::mem::replace(end, iri("")));
                let path = std::mem::replace(path, Path::NegatedPropertySet(Vec::new()));
                let [subject, object] = ends;
                *pattern = self.apart(subject, object, |subject, object| GraphPattern::Path {
                    subject,
                    path,
                    object,
                });
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
            GraphPattern::Service { .. } | GraphPattern::Lateral { .. } => self.foreign = true,
            other => {
                let (patterns, expressions) = parts_mut(other);
                patterns.into_iter().for_each(|inner| self.pattern(inner));
                expressions.into_iter().for_each(|inner| self.value(inner));
            }
        }
    }

    /// A pattern between two nodes, of which those that are triple terms are taken apart.
    fn apart(
        &mut self,
        mut subject: TermPattern,
        mut object: TermPattern,
        pattern: impl FnOnce(TermPattern, TermPattern) -> GraphPattern,
    ) -> GraphPattern {
        let mut terms: Vec<(Variable, TriplePattern)> = Vec::new();
        for end in [&mut subject, &mut object] {
            named(end);
            if let TermPattern::Triple(triple) = end {
                let variable = self.fresh.variable();
                terms.push((variable.clone(), (**triple).clone()));
                *end = variable.into();
            }
        }
        terms.into_iter().fold(pattern(subject, object), |inner, (variable, triple)| {
            taken_apart(inner, variable.into(), &triple)
        })
    }

    fn aggregate(&mut self, aggregate: &mut AggregateExpression) {
        let AggregateExpression::FunctionCall { name, expr, .. } = aggregate else { return };
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
    }

    /// Rewrites an expression whose value is asked for.
    fn value(&mut self, expression: &mut Expression) {
        match expression {
            Expression::SameTerm(a, b) => [a, b].into_iter().for_each(|part| self.term(part)),
            Expression::Exists(pattern) => self.pattern(pattern),
            Expression::FunctionCall(function, arguments) => {
                if let Some(new) = self.call(function, arguments) {
                    *expression = new;
                }
            }
            _ => operands_mut(expression).into_iter().for_each(|inner| self.value(inner)),
        }
    }

    /// Rewrites a call of a function; returns what has to be in its place.
    fn call(&mut self, function: &Function, arguments: &mut [Expression]) -> Option<Expression> {
        match (function, &mut *arguments) {
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
            (Function::Now, []) => return Some(self.private(NOW, Vec::new())),
            _ => {}
        }
        arguments.iter_mut().for_each(|argument| self.value(argument));
        let Function::Custom(name) = function else { return None };
        if !OPERATORS.iter().any(|(operator, _)| *operator == name.as_str()) {
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

    /// Rewrites an expression whose term is asked for.
    fn term(&mut self, expression: &mut Expression) {
        if self.gives_terms(expression) {
            self.conditions(expression)
        } else {
            self.kept(expression)
        }
    }

    /// Whether the evaluator gives the term of an expression by itself.
    fn gives_terms(&self, expression: &Expression) -> bool {
        match expression {
            Expression::NamedNode(_) | Expression::Literal(_) | Expression::Variable(_) => true,
            Expression::If(_, a, b) => self.gives_terms(a) && self.gives_terms(b),
            Expression::Coalesce(list) => list.iter().all(|item| self.gives_terms(item)),
            _ => false,
        }
    }

    /// Rewrites the conditions in an expression that gives terms.
    fn conditions(&mut self, expression: &mut Expression) {
        match expression {
            Expression::If(condition, a, b) => {
                self.value(condition);
                self.conditions(a);
                self.conditions(b);
            }
            Expression::Coalesce(list) => list.iter_mut().for_each(|item| self.conditions(item)),
            _ => {}
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

/// What a solution has that binds nothing.
fn row_term() -> GroundTerm {
    NamedNode::new_unchecked(">row").into()
}

fn iri(name: &str) -> TermPattern {
    NamedNode::new_unchecked(name).into()
}

fn is_triple(term: &TermPattern) -> bool {
    matches!(term, TermPattern::Triple(_))
}

/// Puts variables in the place of blank nodes, which are that in a pattern.
fn named(term: &mut TermPattern) {
    match term {
        TermPattern::BlankNode(node) => {
            *term = Variable::new_unchecked(format!("{PRIVATE}_{}", node.as_str())).into();
        }
        TermPattern::Triple(triple) => {
            named(&mut triple.subject);
            named(&mut triple.object);
        }
        _ => {}
    }
}

fn attribute(property: &NamedNode) -> Option<NamedNode> {
    let is_attribute = ATTRIBUTES.iter().any(|namespace| property.as_str().starts_with(namespace));
    is_attribute.then(|| NamedNode::new_unchecked(format!("{ATTRIBUTE}{}", property.as_str())))
}

fn attribute_of(property: &mut NamedNodePattern) {
    if let NamedNodePattern::NamedNode(name) = property {
        if let Some(name) = attribute(name) {
            *property = name.into();
        }
    }
}

/// Leads a path along attributes where it names them; negated property sets do not.
///
/// A walk of no steps begins and ends at any node, also of the attributes that the path names.
fn along_attributes(path: &mut Path) {
    match path {
        Path::NamedNode(property) => {
            if let Some(name) = attribute(property) {
                *property = name;
            }
        }
        Path::Reverse(inner) | Path::OneOrMore(inner) => along_attributes(inner),
        Path::Sequence(a, b) | Path::Alternative(a, b) => {
            along_attributes(a);
            along_attributes(b);
        }
        Path::ZeroOrMore(inner) => {
            along_attributes(inner);
            let mut nodes = Vec::new();
            nodes_of(inner, &mut nodes);
            if let Some(nodes) = alternatives(nodes) {
                let step = Path::Alternative(inner.clone(), nodes.into());
                let more = Path::OneOrMore(step.into());
                *path = Path::Alternative(Path::ZeroOrMore(inner.clone()).into(), more.into());
            }
        }
        Path::ZeroOrOne(inner) => {
            along_attributes(inner);
            let mut nodes = Vec::new();
            nodes_of(inner, &mut nodes);
            if let Some(nodes) = alternatives(nodes) {
                *path = Path::Alternative(Path::ZeroOrOne(inner.clone()).into(), nodes.into());
            }
        }
        Path::NegatedPropertySet(_) => {}
    }
}

/// The properties that lead from the nodes of a path's attributes to themselves.
fn nodes_of(path: &Path, found: &mut Vec<Path>) {
    match path {
        Path::NamedNode(property) => {
            if let Some(name) = property.as_str().strip_prefix(ATTRIBUTE) {
                let nodes = Path::NamedNode(NamedNode::new_unchecked(format!("{NODES}{name}")));
                if !found.contains(&nodes) {
                    found.push(nodes);
                }
            }
        }
        Path::Reverse(inner)
        | Path::OneOrMore(inner)
        | Path::ZeroOrMore(inner)
        | Path::ZeroOrOne(inner) => nodes_of(inner, found),
        Path::Sequence(a, b) | Path::Alternative(a, b) => {
            nodes_of(a, found);
            nodes_of(b, found);
        }
        Path::NegatedPropertySet(_) => {}
    }
}

fn alternatives(paths: Vec<Path>) -> Option<Path> {
    paths.into_iter().reduce(|a, b| Path::Alternative(a.into(), b.into()))
}

/// Marks a literal inside a triple term of VALUES.
fn mark_object(term: &mut GroundTerm) {
    match term {
        GroundTerm::Literal(literal) => *literal = marked(literal.clone()),
        GroundTerm::Triple(triple) => mark_object(&mut triple.object),
        GroundTerm::NamedNode(_) => {}
    }
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
        // Blank nodes are variables by now.
        TermPattern::BlankNode(_) => inner,
    }
}

fn filtered(inner: GraphPattern, expr: Expression) -> GraphPattern {
    GraphPattern::Filter { expr, inner: inner.into() }
}
