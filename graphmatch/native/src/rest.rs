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
    let walks = edge_walks(edge, fresh).into_iter();
    let walks = walks.filter_map(|walk| chained(walk, &bound));
    let test = either(walks.map(|walk| Expression::Exists(walk.into())).collect())?;
    Some(bound.into_iter().rev().fold(test, |test, variable| {
        Expression::And(Expression::Bound(variable).into(), test.into())
    }))
}

/// A pattern that has a solution where some patterns have one together: each is asked within the
/// one before it, where its variables are bound, next the one with the fewest that are not.
fn chained(mut patterns: Vec<GraphPattern>, bound: &[Variable]) -> Option<GraphPattern> {
    let mut bound = bound.to_vec();
    for done in 1..patterns.len() {
        bound.extend(visible(&patterns[done - 1]));
        let unbound = |pattern: &GraphPattern| {
            visible(pattern).iter().filter(|&variable| !bound.contains(variable)).count()
        };
        let next = (done..patterns.len()).min_by_key(|&index| unbound(&patterns[index]));
        patterns.swap(done, next.unwrap_or(done));
    }
    patterns.into_iter().rev().reduce(|rest, pattern| GraphPattern::Filter {
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
        .filter_map(|walk| chained(walk, &[]))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::algebra::{body, body_mut, pattern_of, pattern_of_mut};
    use crate::evaluate::Prepared;
    use crate::evaluate::tests::{Dice, World, labelled, parsed};
    use oxrdf::{Term, Triple};
    use std::collections::{BTreeMap, BTreeSet};

    /// Two nodes between which one can walk, and whether with a step of the publication's.
    type Walks = BTreeSet<(String, String, bool)>;

    /// The definition, word for word, over graphs that are small.
    struct Naive {
        /// All triples, and whether they are the publication's.
        triples: Vec<(Triple, bool)>,
        nodes: BTreeSet<String>,
    }

    impl Naive {
        fn new(background: &[Triple], publication: &[Triple]) -> Self {
            let own = publication.iter().map(|triple| (triple.clone(), true));
            let mut triples: Vec<(Triple, bool)> = own.collect();
            for triple in background.iter().filter(|triple| !publication.contains(triple)) {
                triples.push((triple.clone(), false));
            }
            let ends = |(triple, _): &(Triple, bool)| {
                [triple.subject.to_string(), triple.object.to_string()]
            };
            let nodes = triples.iter().flat_map(ends).collect();
            Self { triples, nodes }
        }

        fn steps(&self, wanted: impl Fn(&str) -> bool) -> Walks {
            self.triples
                .iter()
                .filter(|(triple, _)| wanted(triple.predicate.as_str()))
                .map(|(triple, own)| (triple.subject.to_string(), triple.object.to_string(), *own))
                .collect()
        }

        fn walks(&self, path: &Path) -> Walks {
            let none = || self.nodes.iter().map(|node| (node.clone(), node.clone(), false));
            match path {
                Path::NamedNode(property) => self.steps(|other| other == property.as_str()),
                Path::NegatedPropertySet(properties) => {
                    self.steps(|other| !properties.iter().any(|p| p.as_str() == other))
                }
                Path::Reverse(inner) => {
                    self.walks(inner).into_iter().map(|(s, o, own)| (o, s, own)).collect()
                }
                Path::Alternative(a, b) => &self.walks(a) | &self.walks(b),
                Path::Sequence(a, b) => composed(&self.walks(a), &self.walks(b)),
                Path::ZeroOrOne(inner) => self.walks(inner).into_iter().chain(none()).collect(),
                Path::OneOrMore(inner) => closed(self.walks(inner)),
                Path::ZeroOrMore(inner) => {
                    closed(self.walks(inner)).into_iter().chain(none()).collect()
                }
            }
        }

        /// Whether an edge holds with some bindings, and whether by way of the publication.
        fn holds(
            &self,
            edge: &GraphPattern,
            bound: &BTreeMap<String, String>,
        ) -> Option<(bool, bool)> {
            let value = |text: String| match text.as_bytes()[0] {
                b'?' | b'_' => bound.get(&text).cloned(),
                _ => Some(text),
            };
            let (subject, walks, object) = match edge {
                GraphPattern::Path { subject, path, object } => (subject, self.walks(path), object),
                GraphPattern::Bgp { patterns } => {
                    let TriplePattern { subject, predicate, object } = &patterns[0];
                    let property = value(predicate.to_string())?;
                    (subject, self.steps(|other| format!("<{other}>") == property), object)
                }
                _ => return None,
            };
            let (subject, object) = (value(subject.to_string())?, value(object.to_string())?);
            let own = walks.contains(&(subject.clone(), object.clone(), true));
            Some((own || walks.contains(&(subject, object, false)), own))
        }

        fn rests(&self, edges: &[GraphPattern], bound: &BTreeMap<String, String>) -> bool {
            edges.iter().any(|edge| self.holds(edge, bound).is_some_and(|(_, own)| own))
        }
    }

    fn composed(a: &Walks, b: &Walks) -> Walks {
        a.iter()
            .flat_map(|(s, middle, own)| {
                b.iter()
                    .filter(move |(start, _, _)| start == middle)
                    .map(move |(_, o, other)| (s.clone(), o.clone(), *own || *other))
            })
            .collect()
    }

    fn closed(steps: Walks) -> Walks {
        let mut all = steps.clone();
        loop {
            let more = &all | &composed(&all, &steps);
            if more.len() == all.len() {
                return all;
            }
            all = more;
        }
    }

    #[test]
    fn generated_solutions_rest_as_the_definition_says() {
        let mut dice = Dice(11);
        let (mut kept, mut dropped) = (0, 0);
        for _ in 0..1200 {
            let (background, publication) = (dice.roll(8), dice.roll(6));
            let background = labelled(&dice.graph(background));
            let publication = labelled(&dice.graph(publication));
            let mut query = parsed(&format!("SELECT * {{ {} }}", dice.group(2)));
            name_blank_nodes(pattern_of_mut(&mut query), &mut Fresh::written());
            let variables = visible(body(pattern_of(&query)));
            let pattern = pattern_of_mut(&mut query);
            let inner = Box::new(std::mem::take(body_mut(pattern)));
            *pattern = GraphPattern::Project { inner, variables };
            let mut all = Vec::new();
            edges(pattern_of(&query), &mut all);
            let world = World::of(&background, &publication, &[]);
            let naive = Naive::new(&background, &publication);
            let (rows, found) = world.run(|evaluation| {
                let rows = evaluation.answer(&Prepared::rows(&query, None));
                let prepared = Prepared::new(&query, true);
                (rows.unwrap(), evaluation.answer(&prepared).unwrap())
            });
            let rows = rows.unwrap_or_default();
            let bindings =
                |row: &Vec<Option<Term>>, names: &[String]| -> BTreeMap<String, String> {
                    let bound = names.iter().zip(row).filter_map(|(name, term)| {
                        Some((format!("?{name}"), term.as_ref()?.to_string()))
                    });
                    bound.collect()
                };
            let solutions = rows.solutions.iter().map(|row| bindings(row, &rows.variables));
            let (mut expected, rest): (Vec<_>, Vec<_>) =
                solutions.partition(|bound| naive.rests(&all, bound));
            expected.sort();
            kept += expected.len();
            dropped += rest.len();
            let found = found.unwrap_or_default();
            let mut found: Vec<_> =
                found.solutions.iter().map(|row| bindings(row, &found.variables)).collect();
            found.sort();
            assert_eq!(found, expected, "{query}\n{background:?}\n{publication:?}");
        }
        assert!(kept > 500 && dropped > 300, "{kept} {dropped}");
    }
}
