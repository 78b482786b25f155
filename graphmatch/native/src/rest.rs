//! When a solution rests on the publication, as a condition on the algebra.
//!
//! A solution rests on the publication when a triple pattern of the query, with the solution's
//! bindings put in, is a triple of the publication's graph. That is a filter of `EXISTS`, one for
//! each pattern, that asks the publication's graph alone; patterns under OPTIONAL and in one arm of
//! a UNION count when the solution binds their variables. A property path rests on it when it can be
//! walked with at least one step there. Blank nodes are variables, so that a filter can name them.
//!
//! Of an aggregating query this is asked of the pattern that it groups. Of a query with a subquery,
//! inside of which nothing can look, some triple of the publication has to meet one of the patterns.
//!
//! Cost: a condition is as long as the query, but for paths, of which it holds one walk for each
//! step that may be the publication's.

use crate::algebra::{Part, parts, visit};
use crate::pattern::GM;
use hashbrown::HashMap;
use oxrdf::BlankNode;
use spargebra::algebra::{Expression, GraphPattern, PropertyPathExpression as Path};
use spargebra::term::{Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable};

/// The name by which conditions ask for the publication's graph; no query can write it.
pub(crate) const PUBLICATION: &str = ">publication";
/// The name of a property that leads from every term to itself; no query can write it.
pub(crate) const ITSELF: &str = ">itself";

/// What an aggregating query groups, if it is one.
pub(crate) fn group(body: &GraphPattern) -> Option<&GraphPattern> {
    match body {
        GraphPattern::Group { inner, .. } => Some(inner),
        GraphPattern::Project { .. } => None,
        other => parts(other).into_iter().flatten().find_map(group),
    }
}

/// Whether there is a subquery in the body of a query.
pub(crate) fn has_subquery(body: &GraphPattern) -> bool {
    matches!(body, GraphPattern::Project { .. })
        || parts(body).into_iter().flatten().any(has_subquery)
}

/// The variables of a pattern that are seen outside of it, in order of first occurrence.
pub(crate) fn visible(pattern: &GraphPattern) -> Vec<Variable> {
    let mut found = Vec::new();
    pattern.on_in_scope_variable(|variable| {
        if !found.contains(variable) {
            found.push(variable.clone());
        }
    });
    found
}

/// Variables that a query does not have.
pub(crate) struct Fresh {
    prefix: &'static str,
    count: u32,
}

/// With names that no query can write.
impl Default for Fresh {
    fn default() -> Self {
        Self { prefix: ">", count: 0 }
    }
}

impl Fresh {
    /// With names that those of `default` are not.
    pub(crate) fn guarding() -> Self {
        Self { prefix: ">>", count: 0 }
    }

    /// With names that SPARQL can write, and hardly any query does.
    pub(crate) fn written() -> Self {
        Self { prefix: "_graphmatch_", count: 0 }
    }

    pub(crate) fn variable(&mut self) -> Variable {
        self.count += 1;
        Variable::new_unchecked(format!("{}{}", self.prefix, self.count))
    }

    fn node(&mut self) -> TermPattern {
        self.variable().into()
    }

    /// A path of any number of steps. Where these may go along what only those see who name it, it
    /// leads from a term to itself also if no other triple has it; not where SPARQL is written, which
    /// is asked of stores that have all.
    fn any_number(&self, step: &Path) -> Path {
        let any_number = Path::ZeroOrMore(step.clone().into());
        if self.prefix != Self::default().prefix || !step.to_string().contains(GM) {
            return any_number;
        }
        let itself = Path::NamedNode(NamedNode::new_unchecked(ITSELF));
        Path::Alternative(itself.into(), any_number.into())
    }
}

/// Puts variables in the place of blank nodes, which are that in a pattern.
pub(crate) fn name_blank_nodes(pattern: &mut GraphPattern, fresh: &mut Fresh) {
    fn name(term: &mut TermPattern, variable: &mut dyn FnMut(&BlankNode) -> Variable) {
        match term {
            TermPattern::BlankNode(node) => *term = variable(node).into(),
            TermPattern::Triple(triple) => {
                name(&mut triple.subject, variable);
                name(&mut triple.object, variable);
            }
            _ => {}
        }
    }
    let mut known: HashMap<BlankNode, Variable> = HashMap::new();
    let mut variable =
        |node: &BlankNode| known.entry(node.clone()).or_insert_with(|| fresh.variable()).clone();
    visit(pattern, &mut |part| match part {
        Part::Pattern(GraphPattern::Bgp { patterns }) => {
            for triple in patterns {
                name(&mut triple.subject, &mut variable);
                name(&mut triple.object, &mut variable);
            }
        }
        Part::Pattern(GraphPattern::Path { subject, object, .. }) => {
            name(subject, &mut variable);
            name(object, &mut variable);
        }
        _ => {}
    });
}

/// The edges of a pattern: each a pattern of one triple pattern or one property path.
fn edges(pattern: &GraphPattern, found: &mut Vec<GraphPattern>) {
    let mut add = |edge: GraphPattern| {
        if !found.contains(&edge) {
            found.push(edge);
        }
    };
    match pattern {
        GraphPattern::Bgp { patterns } => {
            let edge =
                |triple: &TriplePattern| GraphPattern::Bgp { patterns: vec![triple.clone()] };
            patterns.iter().map(edge).for_each(add);
        }
        GraphPattern::Path { .. } => add(pattern.clone()),
        other => parts(other).into_iter().flatten().for_each(|part| edges(part, found)),
    }
}

/// A pattern with those of its solutions that rest on the publication: those of which an edge does.
pub(crate) fn restricted(inner: GraphPattern, fresh: &mut Fresh) -> GraphPattern {
    let mut all = Vec::new();
    edges(&inner, &mut all);
    let tests: Vec<Expression> = all.iter().filter_map(|edge| edge_test(edge, fresh)).collect();
    let expr = either(tests).unwrap_or_else(|| Literal::from(false).into());
    GraphPattern::Filter { expr, inner: inner.into() }
}

/// The condition that an edge rests on the publication, its variables bound.
fn edge_test(edge: &GraphPattern, fresh: &mut Fresh) -> Option<Expression> {
    let bound = visible(edge);
    let walks = edge_walks(edge, fresh).into_iter().filter_map(chained);
    let test = either(walks.map(|walk| Expression::Exists(walk.into())).collect())?;
    Some(bound.into_iter().rev().fold(test, |test, variable| {
        Expression::And(Expression::Bound(variable).into(), test.into())
    }))
}

/// A pattern that has a solution if all patterns of a walk have one together. Each is evaluated
/// within the one before it, with which it shares a variable that is bound by then.
fn chained(walk: Vec<GraphPattern>) -> Option<GraphPattern> {
    walk.into_iter().rev().reduce(|rest, pattern| GraphPattern::Filter {
        expr: Expression::Exists(Box::new(rest)),
        inner: Box::new(pattern),
    })
}

fn either(tests: Vec<Expression>) -> Option<Expression> {
    tests.into_iter().reduce(|a, b| Expression::Or(Box::new(a), Box::new(b)))
}

/// A pattern that has a solution where the publication meets some pattern of a query.
pub(crate) fn anything(pattern: &GraphPattern, fresh: &mut Fresh) -> GraphPattern {
    let mut all = Vec::new();
    edges(pattern, &mut all);
    let walks = all.iter().flat_map(|edge| edge_walks(edge, fresh));
    walks
        .filter_map(chained)
        .reduce(|left, right| GraphPattern::Union { left: left.into(), right: right.into() })
        .unwrap_or_else(|| GraphPattern::Values { variables: Vec::new(), bindings: Vec::new() })
}

fn triple(subject: TermPattern, predicate: NamedNodePattern, object: TermPattern) -> GraphPattern {
    GraphPattern::Bgp { patterns: vec![TriplePattern { subject, predicate, object }] }
}

fn in_publication(inner: GraphPattern) -> GraphPattern {
    let name = NamedNode::new_unchecked(PUBLICATION).into();
    GraphPattern::Graph { name, inner: Box::new(inner) }
}

fn along(subject: &TermPattern, path: &Path, object: &TermPattern) -> GraphPattern {
    let (subject, object) = (subject.clone(), object.clone());
    match path {
        Path::NamedNode(property) => triple(subject, property.clone().into(), object),
        path => GraphPattern::Path { subject, path: path.clone(), object },
    }
}

/// Patterns that hold together where an edge holds by way of the publication: alternatives, the
/// step in the publication's graph at the beginning of each.
fn edge_walks(edge: &GraphPattern, fresh: &mut Fresh) -> Vec<Vec<GraphPattern>> {
    match edge {
        GraphPattern::Path { subject, path, object } => walks(subject, path, object, fresh),
        edge => vec![vec![in_publication(edge.clone())]],
    }
}

/// The walks along a path that have a step in the publication's graph, as [`edge_walks`].
fn walks(
    subject: &TermPattern,
    path: &Path,
    object: &TermPattern,
    fresh: &mut Fresh,
) -> Vec<Vec<GraphPattern>> {
    match path {
        Path::Reverse(inner) => walks(object, inner, subject, fresh),
        Path::Alternative(a, b) => {
            let mut found = walks(subject, a, object, fresh);
            found.extend(walks(subject, b, object, fresh));
            found
        }
        Path::Sequence(a, b) => {
            let middle = fresh.node();
            let mut first = walks(subject, a, &middle, fresh);
            first.iter_mut().for_each(|walk| walk.push(along(&middle, b, object)));
            let mut second = walks(&middle, b, object, fresh);
            second.iter_mut().for_each(|walk| walk.push(along(subject, a, &middle)));
            first.append(&mut second);
            first
        }
        Path::ZeroOrOne(inner) => walks(subject, inner, object, fresh),
        Path::ZeroOrMore(inner) | Path::OneOrMore(inner) => {
            let (before, after) = (fresh.node(), fresh.node());
            let any_number = fresh.any_number(inner);
            let mut found = walks(&before, inner, &after, fresh);
            for walk in &mut found {
                walk.push(along(subject, &any_number, &before));
                walk.push(along(&after, &any_number, object));
            }
            found
        }
        Path::NamedNode(_) | Path::NegatedPropertySet(_) => {
            vec![vec![in_publication(along(subject, path, object))]]
        }
    }
}
