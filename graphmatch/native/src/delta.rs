//! The delta check: a solution must use a triple of the publication.
//!
//! A solution uses the publication if a triple pattern, with the solution's bindings, is a triple of
//! the publication's graph. The check is a filter with one `EXISTS` over that graph for each pattern.
//! Patterns in OPTIONAL and in one side of a UNION count if the solution binds their variables. A
//! property path uses the publication if one of its walks has a step there. Blank nodes become
//! variables, so that the filter can name them.
//!
//! An aggregating query is checked before it groups. A subquery hides its variables, so the check of a
//! query with a subquery is weaker: some triple of the publication must match one of its patterns.
//!
//! A check is as long as the query, but for a path: it adds a walk for each of its steps, as long as
//! the path. The number of steps is bounded by `subscription_patterns`.

use crate::algebra::{Part, either, parts, visit};
use crate::branch::GM;
use crate::lexical::PRIVATE;
use crate::push_new;
use hashbrown::HashMap;
use oxrdf::BlankNode;
use spargebra::algebra::{Expression, GraphPattern, PropertyPathExpression as Path};
use spargebra::term::{Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable};

/// The private name of the publication's graph.
pub(crate) const PUBLICATION: &str = ">publication";
/// The private property that connects every term with itself.
pub(crate) const ITSELF: &str = ">itself";

/// Returns the variables in the scope of a pattern, in order of first occurrence.
pub(crate) fn visible(pattern: &GraphPattern) -> Vec<Variable> {
    let mut found = Vec::new();
    pattern.on_in_scope_variable(|variable| push_new(&mut found, variable.clone()));
    found
}

/// Makes variables that no query can write. The field is the number of those so far.
#[derive(Default)]
pub(crate) struct Fresh(u32);

impl Fresh {
    pub(crate) fn variable(&mut self) -> Variable {
        self.0 += 1;
        Variable::new_unchecked(format!("{PRIVATE}{}", self.0))
    }
}

/// Returns a path of any number of steps. If the steps may use attributes, the path also connects
/// terms with themselves that only triples of attributes have.
fn any_number(step: &Path) -> Path {
    let (any_number, text) = (Path::ZeroOrMore(step.clone().into()), step.to_string());
    if ![GM, "slot:"].iter().any(|one| text.contains(one)) {
        return any_number;
    }
    let itself = Path::NamedNode(NamedNode::new_unchecked(ITSELF));
    Path::Alternative(itself.into(), any_number.into())
}

/// Replaces blank nodes in patterns by variables.
pub(crate) fn name_blank_nodes(pattern: &mut GraphPattern, fresh: &mut Fresh) {
    let mut known: HashMap<BlankNode, Variable> = HashMap::new();
    visit(pattern, &mut |part| {
        if let Part::Term(term) = part
            && let TermPattern::BlankNode(node) = term
        {
            let variable = known.entry(node.clone()).or_insert_with(|| fresh.variable());
            *term = variable.clone().into();
        }
    });
}

/// Collects the edges of a pattern: each is a triple pattern or a property path.
fn edges(pattern: &GraphPattern, found: &mut Vec<GraphPattern>) {
    let mut add = |edge: GraphPattern| push_new(found, edge);
    match pattern {
        GraphPattern::Bgp { patterns } => {
            let edge =
                |triple: &TriplePattern| GraphPattern::Bgp { patterns: vec![triple.clone()] };
            patterns.iter().map(edge).for_each(add);
        }
        GraphPattern::Path { .. } => add(pattern.clone()),
        other => parts(other).into_iter().for_each(|part| edges(part, found)),
    }
}

/// Restricts a pattern to solutions of which an edge uses the publication.
pub(crate) fn restricted(inner: GraphPattern, fresh: &mut Fresh) -> GraphPattern {
    let mut all = Vec::new();
    edges(&inner, &mut all);
    let tests: Vec<Expression> = all.iter().filter_map(|edge| edge_test(edge, fresh)).collect();
    let expr = either(tests).unwrap_or_else(|| Literal::from(false).into());
    GraphPattern::Filter { expr, inner: inner.into() }
}

/// Returns the condition that an edge with bound variables uses the publication.
fn edge_test(edge: &GraphPattern, fresh: &mut Fresh) -> Option<Expression> {
    let bound = visible(edge);
    let walks = edge_walks(edge, fresh).into_iter().filter_map(chained);
    let test = either(walks.map(|walk| Expression::Exists(walk.into())).collect())?;
    Some(bound.into_iter().rev().fold(test, |test, variable| {
        Expression::And(Expression::Bound(variable).into(), test.into())
    }))
}

/// Returns a pattern that has a solution if all patterns of a walk have one together. Each pattern is
/// evaluated inside the one before it, which binds a variable that both have.
fn chained(walk: Vec<GraphPattern>) -> Option<GraphPattern> {
    walk.into_iter().rev().reduce(|rest, pattern| GraphPattern::Filter {
        expr: Expression::Exists(Box::new(rest)),
        inner: Box::new(pattern),
    })
}

/// Returns a pattern that has a solution if a triple of the publication matches an edge.
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

/// Returns the walks by which an edge can use the publication. Each walk is a list of patterns that
/// hold together and begins with the step in the publication's graph.
fn edge_walks(edge: &GraphPattern, fresh: &mut Fresh) -> Vec<Vec<GraphPattern>> {
    match edge {
        GraphPattern::Path { subject, path, object } => walks(subject, path, object, fresh),
        edge => vec![vec![in_publication(edge.clone())]],
    }
}

/// Returns the walks of a path that use the publication, as [`edge_walks`] does.
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
            let middle = fresh.variable().into();
            let mut first = walks(subject, a, &middle, fresh);
            first.iter_mut().for_each(|walk| walk.push(along(&middle, b, object)));
            let mut second = walks(&middle, b, object, fresh);
            second.iter_mut().for_each(|walk| walk.push(along(subject, a, &middle)));
            first.append(&mut second);
            first
        }
        Path::ZeroOrOne(inner) => walks(subject, inner, object, fresh),
        Path::ZeroOrMore(inner) | Path::OneOrMore(inner) => {
            let (before, after) = (fresh.variable().into(), fresh.variable().into());
            let any_number = any_number(inner);
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
