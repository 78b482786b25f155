//! When a solution rests on the publication, as a condition on the algebra.
//!
//! A solution rests on the publication when a triple pattern of the query, with the solution's
//! bindings put in, is a triple of the publication's graph. That is a filter of `EXISTS`, one for
//! each pattern, that asks the publication's graph alone; patterns under OPTIONAL and in one arm of
//! a UNION count when the solution binds their variables. A property path rests on it when it can be
//! walked with at least one step there. Blank nodes, which no filter can name, are existential
//! together with the patterns that share them.
//!
//! Cost: a condition is as long as the query, but for paths, of which it holds one walk for each
//! step that may be the publication's.

use spargebra::Query;
use spargebra::algebra::{Expression, GraphPattern, PropertyPathExpression as Path};
use spargebra::term::{Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable};

/// The name by which conditions ask for the publication's graph; no query can write it.
pub(crate) const PUBLICATION: &str = ">publication";

/// How the condition that a solution rests on the publication is put to a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resting {
    /// Each solution by itself.
    Solutions,
    /// An aggregating query: some solution of its pattern.
    Pattern,
    /// A query with a subquery: some triple of the publication meets one of its patterns.
    Whole,
    /// An aggregating query with a subquery: its pattern has a solution, and as [`Resting::Whole`].
    Both,
}

impl Resting {
    /// How the condition has to be put to a query.
    pub fn of(query: &Query) -> Self {
        let body = body(pattern_of(query));
        match (group(body).is_some(), has_subquery(body)) {
            (false, false) => Self::Solutions,
            (true, false) => Self::Pattern,
            (false, true) => Self::Whole,
            (true, true) => Self::Both,
        }
    }
}

/// Makes functions for reading and for changing the patterns of queries.
macro_rules! patterns {
    ($of:ident $body:ident $($mut:tt)?) => {
        /// The pattern of a query of any form.
        pub(crate) fn $of(query: &$($mut)? Query) -> &$($mut)? GraphPattern {
            match query {
                Query::Select { pattern, .. }
                | Query::Construct { pattern, .. }
                | Query::Describe { pattern, .. }
                | Query::Ask { pattern, .. } => pattern,
            }
        }

        /// What a query's own projection, order and limits are applied to.
        pub(crate) fn $body(pattern: &$($mut)? GraphPattern) -> &$($mut)? GraphPattern {
            match pattern {
                GraphPattern::Slice { inner, .. }
                | GraphPattern::Distinct { inner }
                | GraphPattern::Reduced { inner } => $body(inner),
                GraphPattern::Project { inner, .. } => match &$($mut)? **inner {
                    GraphPattern::OrderBy { inner, .. } => inner,
                    other => other,
                },
                other => other,
            }
        }
    };
}

patterns!(pattern_of body);
patterns!(pattern_of_mut body_mut mut);

/// What an aggregating query groups, if it is one.
pub(crate) fn group(body: &GraphPattern) -> Option<&GraphPattern> {
    match body {
        GraphPattern::Group { inner, .. } => Some(inner),
        GraphPattern::Project { .. } => None,
        other => parts(other).into_iter().flatten().find_map(group),
    }
}

fn has_subquery(body: &GraphPattern) -> bool {
    matches!(body, GraphPattern::Project { .. })
        || parts(body).into_iter().flatten().any(has_subquery)
}

/// The patterns inside a pattern that a solution's bindings may come from.
fn parts(pattern: &GraphPattern) -> [Option<&GraphPattern>; 2] {
    match pattern {
        GraphPattern::Join { left, right }
        | GraphPattern::LeftJoin { left, right, .. }
        | GraphPattern::Union { left, right } => [Some(left), Some(right)],
        GraphPattern::Minus { left, .. } => [Some(left), None],
        GraphPattern::Filter { inner, .. }
        | GraphPattern::Graph { inner, .. }
        | GraphPattern::Extend { inner, .. }
        | GraphPattern::OrderBy { inner, .. }
        | GraphPattern::Project { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner }
        | GraphPattern::Slice { inner, .. }
        | GraphPattern::Group { inner, .. } => [Some(inner), None],
        // Other operators are refused when the query is prepared.
        _ => [None, None],
    }
}

/// The variables that a pattern can bind, in order of first occurrence.
pub(crate) fn visible(pattern: &GraphPattern, found: &mut Vec<Variable>) {
    let mut note = |variable: &Variable| {
        if !found.contains(variable) {
            found.push(variable.clone());
        }
    };
    match pattern {
        GraphPattern::Bgp { .. } | GraphPattern::Path { .. } => {
            variables(pattern).iter().for_each(note);
        }
        GraphPattern::Values { variables, .. } | GraphPattern::Project { variables, .. } => {
            variables.iter().for_each(note);
        }
        GraphPattern::Group { variables, aggregates, .. } => {
            variables.iter().for_each(&mut note);
            aggregates.iter().for_each(|(variable, _)| note(variable));
        }
        other => {
            if let GraphPattern::Graph { name: NamedNodePattern::Variable(variable), .. }
            | GraphPattern::Extend { variable, .. } = other
            {
                note(variable);
            }
            parts(other).into_iter().flatten().for_each(|part| visible(part, found));
        }
    }
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
}

// An edge is a pattern of one triple pattern or one property path.

/// Visits the blank nodes and variables of an edge, which may be replaced.
fn nodes(edge: &mut GraphPattern, visit: &mut dyn FnMut(&mut TermPattern)) {
    match edge {
        GraphPattern::Bgp { patterns } => {
            patterns.iter_mut().for_each(|triple| nodes_of_triple(triple, visit));
        }
        GraphPattern::Path { subject, object, .. } => {
            nodes_of_term(subject, visit);
            nodes_of_term(object, visit);
        }
        GraphPattern::Graph { inner, .. } => nodes(inner, visit),
        _ => {}
    }
}

fn nodes_of_triple(triple: &mut TriplePattern, visit: &mut dyn FnMut(&mut TermPattern)) {
    nodes_of_term(&mut triple.subject, visit);
    if let NamedNodePattern::Variable(variable) = &mut triple.predicate {
        let mut term = variable.clone().into();
        visit(&mut term);
        if let TermPattern::Variable(new) = term {
            *variable = new;
        }
    }
    nodes_of_term(&mut triple.object, visit);
}

fn nodes_of_term(term: &mut TermPattern, visit: &mut dyn FnMut(&mut TermPattern)) {
    match term {
        TermPattern::BlankNode(_) | TermPattern::Variable(_) => visit(term),
        TermPattern::Triple(triple) => nodes_of_triple(triple, visit),
        TermPattern::NamedNode(_) | TermPattern::Literal(_) => {}
    }
}

fn named(edge: &GraphPattern) -> Vec<TermPattern> {
    let mut found = Vec::new();
    nodes(&mut edge.clone(), &mut |node| found.push(node.clone()));
    found
}

fn variables(edge: &GraphPattern) -> Vec<Variable> {
    let variable = |node| match node {
        TermPattern::Variable(variable) => Some(variable),
        _ => None,
    };
    named(edge).into_iter().filter_map(variable).collect()
}

/// Gives nodes variables of their own, the same one to the same node.
#[derive(Default)]
struct Renaming(Vec<(TermPattern, Variable)>);

impl Renaming {
    fn rename(&mut self, node: &mut TermPattern, fresh: &mut Fresh) {
        let known = self.0.iter().find(|(other, _)| other == node);
        let variable = known.map(|(_, new)| new.clone()).unwrap_or_else(|| {
            let new = fresh.variable();
            self.0.push((node.clone(), new.clone()));
            new
        });
        *node = variable.into();
    }
}

fn edges(pattern: &GraphPattern, found: &mut Vec<GraphPattern>) {
    match pattern {
        GraphPattern::Bgp { patterns } => {
            let edge =
                |triple: &TriplePattern| GraphPattern::Bgp { patterns: vec![triple.clone()] };
            found.extend(patterns.iter().map(edge));
        }
        GraphPattern::Path { .. } => found.push(pattern.clone()),
        other => parts(other).into_iter().flatten().for_each(|part| edges(part, found)),
    }
}

/// The edges of a pattern, those that share a blank node together.
fn clusters(pattern: &GraphPattern) -> Vec<Vec<GraphPattern>> {
    let mut found = Vec::new();
    edges(pattern, &mut found);
    let mut clusters: Vec<(Vec<GraphPattern>, Vec<TermPattern>)> = Vec::new();
    for edge in found {
        let mut blanks = named(&edge);
        blanks.retain(|node| matches!(node, TermPattern::BlankNode(_)));
        let shares =
            |other: &(_, Vec<TermPattern>)| other.1.iter().any(|node| blanks.contains(node));
        let (joined, mut apart): (Vec<_>, Vec<_>) = clusters.into_iter().partition(shares);
        let mut cluster = Vec::new();
        for (mut edges, mut nodes) in joined {
            cluster.append(&mut edges);
            blanks.append(&mut nodes);
        }
        cluster.push(edge);
        if apart.iter().all(|(other, _)| *other != cluster) {
            apart.push((cluster, blanks));
        }
        clusters = apart;
    }
    clusters.into_iter().map(|(cluster, _)| cluster).collect()
}

/// Lets only those solutions of a pattern's body through that rest on the publication.
pub(crate) fn restrict(pattern: &mut GraphPattern, fresh: &mut Fresh) {
    let body = body_mut(pattern);
    let inner = std::mem::take(body);
    *body = restricted(inner, fresh);
}

/// A pattern with those of its solutions that rest on the publication.
pub(crate) fn restricted(inner: GraphPattern, fresh: &mut Fresh) -> GraphPattern {
    GraphPattern::Filter { expr: condition(&inner, fresh), inner: Box::new(inner) }
}

/// The condition that a solution of a pattern rests on the publication.
fn condition(pattern: &GraphPattern, fresh: &mut Fresh) -> Expression {
    let tests = clusters(pattern).into_iter().map(|cluster| cluster_test(cluster, fresh));
    either(tests.collect()).unwrap_or_else(|| Literal::from(false).into())
}

/// The condition that one of some edges rests on the publication while all of them hold.
fn cluster_test(mut cluster: Vec<GraphPattern>, fresh: &mut Fresh) -> Expression {
    let mut bound: Vec<Variable> = Vec::new();
    let mut blanks = Renaming::default();
    for edge in &mut cluster {
        nodes(edge, &mut |node| match node {
            TermPattern::Variable(variable) if bound.contains(variable) => {}
            TermPattern::Variable(variable) => bound.push(variable.clone()),
            blank => blanks.rename(blank, fresh),
        });
    }
    let mut tests = Vec::new();
    for (index, edge) in cluster.iter().enumerate() {
        let others = cluster.iter().enumerate().filter(|(other, _)| *other != index);
        for mut walk in edge_walks(edge, fresh) {
            walk.extend(others.clone().map(|(_, other)| other.clone()));
            tests.extend(chained(walk, &bound).map(|all| Expression::Exists(Box::new(all))));
        }
    }
    let test = either(tests).unwrap_or_else(|| Literal::from(false).into());
    bound.into_iter().rev().fold(test, |test, variable| {
        Expression::And(Box::new(Expression::Bound(variable)), Box::new(test))
    })
}

/// A pattern that has a solution where some patterns have one together: each is asked within the
/// one before it, where its variables are bound, next the one with the fewest that are not.
fn chained(mut patterns: Vec<GraphPattern>, bound: &[Variable]) -> Option<GraphPattern> {
    let mut bound = bound.to_vec();
    for done in 1..patterns.len() {
        bound.extend(variables(&patterns[done - 1]));
        let unbound = |pattern: &GraphPattern| {
            variables(pattern).iter().filter(|&variable| !bound.contains(variable)).count()
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
    let mut found = Vec::new();
    edges(pattern, &mut found);
    let mut walks = Vec::new();
    for mut edge in found {
        let mut names = Renaming::default();
        nodes(&mut edge, &mut |node| names.rename(node, fresh));
        walks.extend(edge_walks(&edge, fresh).into_iter().filter_map(|walk| chained(walk, &[])));
    }
    walks
        .into_iter()
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
            let any_number = Path::ZeroOrMore(inner.clone());
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
            edges.iter().any(|edge| {
                // Those that blank nodes tie to it.
                let mut cluster = vec![edge];
                let mut blanks: BTreeSet<String> = BTreeSet::new();
                loop {
                    let before = cluster.len();
                    blanks.extend(cluster.iter().flat_map(|edge| blanks_of(edge)));
                    for other in edges {
                        let tied = blanks_of(other).iter().any(|blank| blanks.contains(blank));
                        if tied && !cluster.contains(&other) {
                            cluster.push(other);
                        }
                    }
                    if cluster.len() == before {
                        break;
                    }
                }
                self.found(edge, &cluster, &blanks.into_iter().collect::<Vec<_>>(), bound.clone())
            })
        }

        fn found(
            &self,
            edge: &GraphPattern,
            cluster: &[&GraphPattern],
            blanks: &[String],
            bound: BTreeMap<String, String>,
        ) -> bool {
            let Some((blank, rest)) = blanks.split_first() else {
                let all = cluster.iter().all(|e| self.holds(e, &bound).is_some_and(|(h, _)| h));
                return all && self.holds(edge, &bound).is_some_and(|(_, own)| own);
            };
            self.nodes.iter().any(|node| {
                let mut bound = bound.clone();
                bound.insert(blank.clone(), node.clone());
                self.found(edge, cluster, rest, bound)
            })
        }
    }

    fn blanks_of(edge: &GraphPattern) -> Vec<String> {
        let texts = named(edge).into_iter().map(|node| node.to_string());
        texts.filter(|text| text.starts_with('_')).collect()
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
            let query = parsed(&format!("SELECT * {{ {} }}", dice.group(2)));
            let mut all = Vec::new();
            edges(pattern_of(&query), &mut all);
            let world = World::of(&background, &publication, &[]);
            let naive = Naive::new(&background, &publication);
            let (rows, found) = world.run(|evaluation| {
                let rows = evaluation.answer(&Prepared::rows(&query, None).unwrap());
                let prepared = Prepared::new(&query, Some(Resting::Solutions)).unwrap();
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
