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
use spargebra::term::{
    BlankNode, Literal, NamedNode, NamedNodePattern, TermPattern, TriplePattern, Variable,
};

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

/// The pattern of a query of any form.
pub(crate) fn pattern_of(query: &Query) -> &GraphPattern {
    match query {
        Query::Select { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. } => pattern,
    }
}

/// The same, to be changed.
pub(crate) fn pattern_of_mut(query: &mut Query) -> &mut GraphPattern {
    match query {
        Query::Select { pattern, .. }
        | Query::Construct { pattern, .. }
        | Query::Describe { pattern, .. }
        | Query::Ask { pattern, .. } => pattern,
    }
}

/// What a query's own projection, order and limits are applied to.
pub(crate) fn body(pattern: &GraphPattern) -> &GraphPattern {
    match pattern {
        GraphPattern::Slice { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => body(inner),
        GraphPattern::Project { inner, .. } => match &**inner {
            GraphPattern::OrderBy { inner, .. } => inner,
            other => other,
        },
        other => other,
    }
}

/// The same, to be changed.
fn body_mut(pattern: &mut GraphPattern) -> &mut GraphPattern {
    match pattern {
        GraphPattern::Slice { inner, .. }
        | GraphPattern::Distinct { inner }
        | GraphPattern::Reduced { inner } => body_mut(inner),
        GraphPattern::Project { inner, .. } => match &mut **inner {
            GraphPattern::OrderBy { inner, .. } => inner,
            other => other,
        },
        other => other,
    }
}

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

/// Variables that no query can write.
#[derive(Default)]
pub(crate) struct Fresh(u32);

impl Fresh {
    pub(crate) fn variable(&mut self) -> Variable {
        self.0 += 1;
        Variable::new_unchecked(format!(">{}", self.0))
    }

    fn node(&mut self) -> TermPattern {
        self.variable().into()
    }
}

/// A triple pattern or a property path of a query.
#[derive(Clone, PartialEq)]
struct Edge {
    subject: TermPattern,
    step: Step,
    object: TermPattern,
}

#[derive(Clone, PartialEq)]
enum Step {
    Property(NamedNodePattern),
    Path(Path),
}

/// A blank node or a variable of a pattern.
enum Name<'a> {
    Blank(&'a BlankNode),
    Variable(&'a Variable),
}

impl Edge {
    fn names<'a>(&'a self, note: &mut dyn FnMut(Name<'a>)) {
        names(&self.subject, note);
        if let Step::Property(NamedNodePattern::Variable(variable)) = &self.step {
            note(Name::Variable(variable));
        }
        names(&self.object, note);
    }

    fn blanks(&self) -> Vec<&BlankNode> {
        let mut found = Vec::new();
        self.names(&mut |name| {
            if let Name::Blank(node) = name {
                found.push(node);
            }
        });
        found
    }

    fn renamed(&self, name: &mut dyn FnMut(Name) -> Option<Variable>) -> Self {
        let subject = renamed(&self.subject, name);
        let step = match &self.step {
            Step::Property(property) => Step::Property(renamed_property(property, name)),
            path => path.clone(),
        };
        Self { subject, step, object: renamed(&self.object, name) }
    }

    fn pattern(self) -> GraphPattern {
        match self.step {
            Step::Property(predicate) => triple(self.subject, predicate, self.object),
            Step::Path(path) => {
                GraphPattern::Path { subject: self.subject, path, object: self.object }
            }
        }
    }

    /// Patterns that hold together where this holds by way of the publication: alternatives, the
    /// step in the publication's graph at the beginning of each.
    fn walks(self, fresh: &mut Fresh) -> Vec<Vec<GraphPattern>> {
        match self.step {
            Step::Property(predicate) => {
                vec![vec![in_publication(triple(self.subject, predicate, self.object))]]
            }
            Step::Path(path) => walks(&self.subject, &path, &self.object, fresh),
        }
    }
}

fn names<'a>(term: &'a TermPattern, note: &mut dyn FnMut(Name<'a>)) {
    match term {
        TermPattern::BlankNode(node) => note(Name::Blank(node)),
        TermPattern::Variable(variable) => note(Name::Variable(variable)),
        TermPattern::Triple(triple) => {
            names(&triple.subject, note);
            if let NamedNodePattern::Variable(variable) = &triple.predicate {
                note(Name::Variable(variable));
            }
            names(&triple.object, note);
        }
        TermPattern::NamedNode(_) | TermPattern::Literal(_) => {}
    }
}

fn renamed(term: &TermPattern, name: &mut dyn FnMut(Name) -> Option<Variable>) -> TermPattern {
    let new = match term {
        TermPattern::BlankNode(node) => name(Name::Blank(node)),
        TermPattern::Variable(variable) => name(Name::Variable(variable)),
        TermPattern::Triple(triple) => {
            return TermPattern::Triple(Box::new(TriplePattern {
                subject: renamed(&triple.subject, name),
                predicate: renamed_property(&triple.predicate, name),
                object: renamed(&triple.object, name),
            }));
        }
        TermPattern::NamedNode(_) | TermPattern::Literal(_) => None,
    };
    new.map_or_else(|| term.clone(), TermPattern::Variable)
}

fn renamed_property(
    property: &NamedNodePattern,
    name: &mut dyn FnMut(Name) -> Option<Variable>,
) -> NamedNodePattern {
    match property {
        NamedNodePattern::Variable(variable) => match name(Name::Variable(variable)) {
            Some(new) => new.into(),
            None => property.clone(),
        },
        NamedNodePattern::NamedNode(_) => property.clone(),
    }
}

fn edges(pattern: &GraphPattern, found: &mut Vec<Edge>) {
    match pattern {
        GraphPattern::Bgp { patterns } => found.extend(patterns.iter().map(|triple| Edge {
            subject: triple.subject.clone(),
            step: Step::Property(triple.predicate.clone()),
            object: triple.object.clone(),
        })),
        GraphPattern::Path { subject, path, object } => found.push(Edge {
            subject: subject.clone(),
            step: Step::Path(path.clone()),
            object: object.clone(),
        }),
        other => parts(other).into_iter().flatten().for_each(|part| edges(part, found)),
    }
}

/// The edges of a pattern, those that share a blank node together.
fn clusters(pattern: &GraphPattern) -> Vec<Vec<Edge>> {
    let mut found = Vec::new();
    edges(pattern, &mut found);
    let mut clusters: Vec<Vec<Edge>> = Vec::new();
    for edge in found {
        let blanks = edge.blanks();
        let shares = |other: &Edge| other.blanks().iter().any(|node| blanks.contains(node));
        let (joined, apart): (Vec<_>, Vec<_>) = std::mem::take(&mut clusters)
            .into_iter()
            .partition(|cluster| !blanks.is_empty() && cluster.iter().any(shares));
        let mut cluster: Vec<Edge> = joined.into_iter().flatten().collect();
        cluster.push(edge);
        clusters = apart;
        if !clusters.contains(&cluster) {
            clusters.push(cluster);
        }
    }
    clusters
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
    let tests = clusters(pattern).into_iter().map(|cluster| cluster_test(&cluster, fresh));
    either(tests.collect()).unwrap_or_else(|| Literal::from(false).into())
}

/// The condition that one of some edges rests on the publication while all of them hold.
fn cluster_test(cluster: &[Edge], fresh: &mut Fresh) -> Expression {
    let mut bound: Vec<Variable> = Vec::new();
    let mut blanks: Vec<(BlankNode, Variable)> = Vec::new();
    for edge in cluster {
        edge.names(&mut |name| match name {
            Name::Variable(variable) if !bound.contains(variable) => bound.push(variable.clone()),
            Name::Blank(node) if !blanks.iter().any(|(other, _)| other == node) => {
                blanks.push((node.clone(), fresh.variable()));
            }
            _ => {}
        });
    }
    let named: Vec<Edge> = cluster
        .iter()
        .map(|edge| {
            edge.renamed(&mut |name| match name {
                Name::Blank(node) => {
                    blanks.iter().find(|(other, _)| other == node).map(|(_, new)| new.clone())
                }
                Name::Variable(_) => None,
            })
        })
        .collect();
    let mut tests = Vec::new();
    for (index, edge) in named.iter().enumerate() {
        let others = || named.iter().enumerate().filter(|(other, _)| *other != index);
        for mut walk in edge.clone().walks(fresh) {
            walk.extend(others().map(|(_, other)| other.clone().pattern()));
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

fn variables(pattern: &GraphPattern) -> Vec<Variable> {
    if let GraphPattern::Graph { inner, .. } = pattern {
        return variables(inner);
    }
    let (mut found, mut all) = (Vec::new(), Vec::new());
    edges(pattern, &mut found);
    for edge in &found {
        edge.names(&mut |name| {
            if let Name::Variable(variable) = name {
                all.push(variable.clone());
            }
        });
    }
    all
}

fn either(tests: Vec<Expression>) -> Option<Expression> {
    tests.into_iter().reduce(|a, b| Expression::Or(Box::new(a), Box::new(b)))
}

/// A pattern that has a solution where the publication meets some pattern of a query.
pub(crate) fn anything(pattern: &GraphPattern, fresh: &mut Fresh) -> GraphPattern {
    let mut found = Vec::new();
    edges(pattern, &mut found);
    let mut walks = Vec::new();
    for edge in found {
        let mut new: Vec<(String, Variable)> = Vec::new();
        let renamed = edge.renamed(&mut |name| {
            let old = match name {
                Name::Blank(node) => node.to_string(),
                Name::Variable(variable) => variable.to_string(),
            };
            if let Some((_, variable)) = new.iter().find(|(other, _)| *other == old) {
                return Some(variable.clone());
            }
            let variable = fresh.variable();
            new.push((old, variable.clone()));
            Some(variable)
        });
        walks.extend(renamed.walks(fresh).into_iter().filter_map(|walk| chained(walk, &[])));
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

/// The walks along a path that have a step in the publication's graph, as [`Edge::walks`].
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
        fn holds(&self, edge: &Edge, bound: &BTreeMap<String, String>) -> Option<(bool, bool)> {
            let value = |text: String| match text.as_bytes()[0] {
                b'?' | b'_' => bound.get(&text).cloned(),
                _ => Some(text),
            };
            let (subject, object) =
                (value(edge.subject.to_string()), value(edge.object.to_string()));
            let (subject, object) = (subject?, object?);
            let walks = match &edge.step {
                Step::Path(path) => self.walks(path),
                Step::Property(property) => {
                    let property = value(property.to_string())?;
                    self.steps(|other| format!("<{other}>") == property)
                }
            };
            let own = walks.contains(&(subject.clone(), object.clone(), true));
            Some((own || walks.contains(&(subject, object, false)), own))
        }

        fn rests(&self, edges: &[Edge], bound: &BTreeMap<String, String>) -> bool {
            edges.iter().any(|edge| {
                // Those that blank nodes tie to it.
                let mut cluster = vec![edge];
                let mut blanks: BTreeSet<String> = BTreeSet::new();
                loop {
                    let before = cluster.len();
                    blanks.extend(cluster.iter().flat_map(|e| e.blanks()).map(|b| b.to_string()));
                    for other in edges {
                        let tied = other.blanks().iter().any(|b| blanks.contains(&b.to_string()));
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
            edge: &Edge,
            cluster: &[&Edge],
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
                let rows = evaluation.answer(&Prepared::rows(&query).unwrap());
                (rows.unwrap(), evaluation.answer_query(&query, Some(Resting::Solutions)).unwrap())
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
