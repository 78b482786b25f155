//! Evaluation of a query on one publication by `spareval`, over ids of terms.
//!
//! The default graph is the union of the background, which is derived from the ontology, and of the
//! publication's graph, which is also the only named graph. Each access pattern is looked up, so that no
//! triple is copied. Patterns compare ids and therefore lexical forms; expressions compare
//! values ([`crate::rewrite`]). Terms that expressions make get ids that hold for one evaluation.
//! Only the private names of their properties reach attributes.
//!
//! spareval plans each evaluation again, which takes some ten microseconds for a few patterns. A
//! look-up makes two allocations. [`Limits`] hold at each step ([`crate::bounded`]).

use crate::algebra::{
    Part, body, body_mut, group, has_subquery, pattern_of, pattern_of_mut, visit,
};
use crate::bounded::{self, Exceeded, Handle, exceed};
use crate::branch::TaxonomyOperator;
use crate::delta::{self, Fresh, ITSELF, PUBLICATION};
use crate::dictionary::{ANY, Id, LOCAL, LocalTerms, Terms, hash};
use crate::fault::Fault;
use crate::functions::{self, Expressions, Function, Moment};
use crate::graph::Graph;
use crate::lexical::{PRIVATE, read_term, text_of, write_term};
use crate::limits::{Budget, Limits};
use crate::ontology::Ontology;
use crate::operators::CallContext;
use crate::rewrite::{ATTRIBUTE, Rewriter, TAXONOMY, each_literal, marked, substitute_rewritten};
use hashbrown::HashMap;
use oxrdf::{NamedNode, Term, Triple};
use spareval::{
    ExpressionTerm, InternalQuad, QueryEvaluationError, QueryEvaluator, QueryResults,
    QuerySolution, QueryableDataset,
};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use std::cell::RefCell;
use std::collections::HashSet;
use std::io;
use std::sync::Arc;

/// Number of joined parts above which spareval does not optimize a query. Its time for planning grows
/// with the cube of that number or faster, and cannot be interrupted.
const PLANNED: usize = 40;
/// Cost of reading a term for an expression, in copies of terms. Each byte adds to it.
const READ: usize = 256;

/// The limit that an evaluation exceeded, or the error of spareval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError(pub String);

impl EvaluationError {
    /// Returns the error of an evaluation or a join that exceeded the time limit.
    pub fn late(limits: &Limits) -> Self {
        let seconds = limits.publication_seconds;
        Self(format!("the evaluation exceeds its share of {seconds} s (`publication_seconds`)"))
    }

    /// Returns the error of a match that has too many solutions.
    pub fn many(limit: usize) -> Self {
        let what = "`match_solutions` and the number of their terms are limited";
        Self(format!("there are more than {limit} solutions; {what}"))
    }
}

impl From<QueryEvaluationError> for EvaluationError {
    fn from(error: QueryEvaluationError) -> Self {
        Self(error.to_string())
    }
}

impl From<Fault> for EvaluationError {
    fn from(error: Fault) -> Self {
        Self(error.what)
    }
}

/// The result of a query, with terms as canonical N-Triples texts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The projected variables of SELECT.
    pub variables: Vec<String>,
    /// A term per variable for each solution of SELECT; one empty row for ASK.
    pub solutions: Vec<Vec<Option<String>>>,
    /// The graph of CONSTRUCT or DESCRIBE; `None` for the other forms.
    pub graph: Option<Vec<[String; 3]>>,
}

impl Answer {
    /// The number of terms in the solutions and the graph.
    pub fn terms(&self) -> usize {
        self.solutions.len() * self.variables.len() + 3 * self.graph.as_ref().map_or(0, Vec::len)
    }
}

/// A query with constants, rewritten for spareval.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// Queries that must have a solution, or there is no match, and last the query itself.
    queries: Vec<Query>,
    functions: Vec<NamedNode>,
    calls: CallContext,
    /// Whether it has more than [`PLANNED`] joined parts.
    is_wide: bool,
    /// Number of its variables.
    width: usize,
}

impl Prepared {
    /// Prepares a query, which may call operators.
    ///
    /// With `delta_check`, a solution must use a triple of the publication: see [`rest`].
    pub fn new(query: Query, delta_check: bool, calls: CallContext) -> Self {
        let mut fresh = Fresh::default();
        let mut queries = with_conditions(query, delta_check, &mut fresh);
        let (mut rewriter, mut is_wide) = (Rewriter { fresh, functions: Vec::new() }, false);
        let mut variables = HashSet::new();
        for query in &mut queries {
            let mut parts = 0;
            visit(pattern_of_mut(query), &mut |part| match part {
                Part::Pattern(pattern) => parts += joined_parts(pattern),
                Part::Variable(variable) => _ = variables.insert(variable.clone()),
                _ => {}
            });
            is_wide |= parts > PLANNED;
            rewriter.query(query);
        }
        let (functions, width) = (rewriter.functions, variables.len());
        Self { queries, functions, calls, is_wide, width }
    }

    /// Puts constants into a query that was prepared with slots for them.
    pub fn with_constants(&self, constants: &[Term]) -> Option<Self> {
        let mut prepared = self.clone();
        for query in &mut prepared.queries {
            substitute_rewritten(query, constants)?;
        }
        Some(prepared)
    }

    /// Prepares a query for all solutions of the pattern, without projection and delta check; at most
    /// `most`.
    pub fn rows(query: &Query, most: Option<usize>, calls: CallContext) -> Self {
        let body = body(pattern_of(query));
        let pattern = group(body).unwrap_or(body);
        let variables = delta::visible(pattern);
        let mut pattern = GraphPattern::Project { inner: pattern.clone().into(), variables };
        if most.is_some() {
            pattern = GraphPattern::Slice { inner: pattern.into(), start: 0, length: most };
        }
        let base_iri = query.base_iri().cloned();
        Self::new(Query::Select { dataset: None, pattern, base_iri }, false, calls)
    }
}

/// Names the blank nodes of a query and adds the delta check. Returns the queries that must have a
/// solution, too, and last the query.
fn with_conditions(mut query: Query, delta_check: bool, fresh: &mut Fresh) -> Vec<Query> {
    delta::name_blank_nodes(pattern_of_mut(&mut query), fresh);
    let mut conditions = Vec::new();
    if delta_check {
        let body = body_mut(pattern_of_mut(&mut query));
        match (group(body), has_subquery(body)) {
            (None, false) => *body = delta::restricted(std::mem::take(body), fresh),
            (Some(grouped), false) => conditions.push(delta::restricted(grouped.clone(), fresh)),
            (grouped, true) => {
                conditions.push(delta::anything(body, fresh));
                conditions.extend(grouped.cloned());
            }
        }
    }
    if matches!(query, Query::Construct { .. } | Query::Describe { .. }) {
        conditions.push(pattern_of(&query).clone());
    }
    let base_iri = query.base_iri().cloned();
    let ask = |pattern| Query::Ask { dataset: None, pattern, base_iri: base_iri.clone() };
    conditions.into_iter().map(ask).chain([query]).collect()
}

/// Returns the number of joins of this pattern alone. Three triple patterns count as two.
fn joined_parts(pattern: &GraphPattern) -> usize {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.len() * 2 / 3,
        GraphPattern::LeftJoin { .. } => 1,
        GraphPattern::Join { left, right } => {
            let is_group = |part: &GraphPattern| !matches!(part, GraphPattern::Bgp { .. });
            usize::from(is_group(left) || is_group(right))
        }
        _ => 0,
    }
}

/// Returns the name of a publication's graph: its id if that is an IRI.
pub fn graph_name(id: &str) -> NamedNode {
    NamedNode::new(id).unwrap_or_else(|_| NamedNode::new_unchecked("urn:graphmatch:publication"))
}

/// A publication on which queries are evaluated.
#[derive(Clone, Copy)]
pub struct Evaluation<'a> {
    /// Terms by id.
    pub terms: Terms<'a>,
    /// E(P): the publication's graph and the attributes, which only patterns that name them see.
    pub graph: &'a Graph,
    /// The triples that are derived from the ontology alone.
    pub ontology: &'a Ontology,
    /// The name of the publication's graph: [`graph_name`].
    pub name: &'a NamedNode,
    /// The result of `NOW()`.
    pub now: Moment,
    /// Whether a taxonomy operator holds between two terms, the subject and the concept.
    pub is_a: &'a dyn Fn(TaxonomyOperator, Id, Id) -> bool,
    /// Limits of each evaluation.
    pub limits: Limits,
    /// The time that is left for the publication.
    pub budget: Budget,
}

impl Evaluation<'_> {
    /// Returns the answer to a query, or `None` if it does not match.
    pub fn answer(&self, prepared: &Prepared) -> Result<Option<Answer>, EvaluationError> {
        self.bounded(prepared.width, || {
            let evaluator = self.evaluator(prepared);
            let Some((query, conditions)) = prepared.queries.split_last() else { return Ok(None) };
            for condition in conditions {
                let found = evaluator.prepare(condition).execute(Data::of(self))?;
                if !matches!(found, QueryResults::Boolean(true)) {
                    return Ok(None);
                }
            }
            let most = |width| self.limits.match_solutions.min(self.budget.terms() / width);
            match evaluator.prepare(query).execute(Data::of(self))? {
                QueryResults::Boolean(holds) => {
                    Ok(holds.then(|| Answer { solutions: vec![Vec::new()], ..Answer::default() }))
                }
                QueryResults::Solutions(rows) => {
                    let variables = rows.variables().iter().map(|v| v.as_str().to_owned());
                    let variables: Vec<String> = variables.collect();
                    let text = |term: &Option<Term>| term.as_ref().map(text_of);
                    let texts = |row: QuerySolution| row.values().iter().map(text).collect();
                    let solutions = collected(rows, most(variables.len().max(1)), texts)?;
                    let answer = Answer { variables, solutions, graph: None };
                    Ok((!answer.solutions.is_empty()).then_some(answer))
                }
                QueryResults::Graph(triples) => {
                    let texts = |Triple { subject, predicate, object }| {
                        [subject.into(), predicate.into(), object].map(|term| text_of(&term))
                    };
                    let graph = Some(collected(triples, most(3), texts)?);
                    Ok(Some(Answer { graph, ..Answer::default() }))
                }
            }
        })
    }

    /// Returns an evaluator with the functions that a query calls.
    fn evaluator(&self, prepared: &Prepared) -> QueryEvaluator {
        let mut evaluator = QueryEvaluator::new();
        let known = Arc::<Expressions>::default();
        if prepared.is_wide {
            evaluator = evaluator.without_optimizations();
        }
        for name in &prepared.functions {
            let call = || {
                prepared.calls.operators.find(name)?;
                let (calls, operator) = (prepared.calls.clone(), name.clone());
                Some(Box::new(move |terms: &[Term]| calls.call(&operator, terms)) as Function)
            };
            // Others are casts or unknown.
            if let Some(function) =
                functions::by_name(name.as_str(), &known, self.now).or_else(call)
            {
                evaluator = evaluator.with_custom_function(name.clone(), function);
            }
        }
        evaluator
    }

    /// Runs an evaluation within the limits. A solution takes memory for its unbound variables, too.
    fn bounded<T>(
        &self,
        width: usize,
        run: impl FnOnce() -> Result<T, EvaluationError>,
    ) -> Result<T, EvaluationError> {
        let Limits { evaluation_terms, evaluation_bytes: text, .. } = self.limits;
        let terms = evaluation_terms.saturating_mul(10) / (10 + width);
        bounded::bounded(self.budget, terms, text, run).unwrap_or_else(|exceeded| {
            Err(EvaluationError(match exceeded {
                Exceeded::Time => return Err(EvaluationError::late(&self.limits)),
                Exceeded::Terms => {
                    format!("the evaluation holds more than {terms} terms (`evaluation_terms`)")
                }
                Exceeded::Text => format!("the evaluation makes more than {text} bytes of text"),
                Exceeded::Broken => "the evaluator failed unexpectedly".to_owned(),
            }))
        })
    }
}

fn collected<T, U>(
    items: impl Iterator<Item = Result<T, QueryEvaluationError>>,
    limit: usize,
    change: impl Fn(T) -> U,
) -> Result<Vec<U>, EvaluationError> {
    let mut found = Vec::new();
    for item in items {
        if found.len() == limit {
            return Err(EvaluationError::many(limit));
        }
        found.push(change(item?));
    }
    Ok(found)
}

// --- The dataset ----------------------------------------------------------------------------------

/// Meaning of a private property.
#[derive(Clone, Copy)]
enum Private {
    /// Connects every term with itself.
    Itself,
    /// An attribute's property, by its public name.
    Attribute(Id),
    /// Connects two terms if the operator holds between them.
    Taxonomy(TaxonomyOperator),
}

struct Data<'a> {
    of: &'a Evaluation<'a>,
    /// The first id of this evaluation's own terms.
    first: Id,
    graph: Id,
    /// Terms that neither the publication nor the dictionary has.
    terms: RefCell<LocalTerms>,
    private: RefCell<HashMap<Id, Private>>,
}

impl<'a> Data<'a> {
    fn of(of: &'a Evaluation<'a>) -> Self {
        let first = LOCAL.saturating_add(of.terms.local.len() as Id);
        let (terms, private) = Default::default();
        let mut data = Self { of, first, graph: ANY, terms, private };
        data.graph = data.intern(of.name.clone().into());
        data
    }

    fn intern(&self, term: Term) -> Id {
        let (mut text, mut own) = (Vec::new(), self.terms.borrow_mut());
        write_term(&mut text, term.as_ref());
        if let Some(id) = self.of.terms.find(&text) {
            return id;
        }
        let before = own.len();
        let id = own.intern_hashed(&text, hash(&text)) - LOCAL;
        if own.len() > before {
            bounded::make_text(text.len());
            if own.len() >= (ANY - self.first) as usize {
                exceed(Exceeded::Text);
            }
        }
        self.first + id
    }

    /// Returns the id of a private name.
    fn private(&self, name: &NamedNode) -> Id {
        if name.as_str() == PUBLICATION {
            return self.graph;
        }
        let id = self.intern(name.clone().into());
        let private = if name.as_str() == ITSELF {
            Private::Itself
        } else if let Some(real) = name.as_str().strip_prefix(ATTRIBUTE) {
            Private::Attribute(self.intern(NamedNode::new_unchecked(real).into()))
        } else if let Some(operator) = name.as_str().strip_prefix(TAXONOMY)
            && let Some(operator) = TaxonomyOperator::of_iri(operator)
        {
            Private::Taxonomy(operator)
        } else {
            return id;
        };
        self.private.borrow_mut().insert(id, private);
        id
    }

    fn term(&self, id: Id) -> io::Result<Term> {
        let read = |text: &[u8]| {
            bounded::work(READ + text.len() / 16);
            std::str::from_utf8(text).ok().and_then(read_term)
        };
        let term = if id < self.first {
            read(&self.of.terms.text(id))
        } else {
            read(self.terms.borrow().text(id - self.first + LOCAL))
        };
        term.ok_or_else(|| io::Error::other("a term cannot be read"))
    }

    fn is_a(&self, operator: TaxonomyOperator, term: Id, concept: Id) -> bool {
        if term < self.first && concept < self.first {
            (self.of.is_a)(operator, term, concept)
        } else {
            operator != TaxonomyOperator::Child && term == concept
        }
    }

    /// Returns the triples of an access pattern without duplicates.
    fn found(&self, mut key: [Id; 3], graph: Option<Id>) -> Box<dyn Iterator<Item = [Id; 3]> + 'a> {
        let of = self.of;
        if graph.is_some_and(|name| name != self.graph) {
            return Box::new(std::iter::empty());
        }
        let [subject, property, object] = key;
        let private = self.private.borrow().get(&property).copied();
        let mut end = of.graph.stated();
        match private {
            None => {}
            Some(Private::Attribute(real)) => (key[1], end) = (real, usize::MAX),
            Some(Private::Itself) => {
                let node = if subject == ANY { object } else { subject };
                let holds = node != ANY && (object == ANY || object == node);
                return Box::new(holds.then_some([node, property, node]).into_iter());
            }
            Some(Private::Taxonomy(operator)) => {
                let holds = subject != ANY && object != ANY && self.is_a(operator, subject, object);
                return Box::new(holds.then_some(key).into_iter());
            }
        }
        let numbers = of.graph.numbers(key).take_while(move |&number| number < end);
        let own = numbers.map(|number| of.graph.triples[number]);
        let triples: Box<dyn Iterator<Item = [Id; 3]> + 'a> = if graph.is_some() {
            Box::new(own)
        } else {
            let new = own.filter(|&triple| !of.ontology.has_match(triple));
            Box::new(of.ontology.matching(key).chain(new))
        };
        if key[1] == property {
            return triples;
        }
        Box::new(triples.map(move |[subject, _, object]| [subject, property, object]))
    }
}

impl<'a> QueryableDataset<'a> for Data<'a> {
    type InternalTerm = Handle;
    type Error = io::Error;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&Handle>,
        predicate: Option<&Handle>,
        object: Option<&Handle>,
        graph_name: Option<Option<&Handle>>,
    ) -> impl Iterator<Item = Result<InternalQuad<Handle>, io::Error>> + use<'a> {
        let id = |handle: Option<&Handle>| handle.map_or(ANY, Handle::id);
        let graph = match graph_name {
            Some(None) => None,
            None => Some(self.graph),
            Some(Some(name)) => Some(name.id()),
        };
        let triples = self.found([id(subject), id(predicate), id(object)], graph);
        triples.map(move |[subject, predicate, object]| {
            Ok(InternalQuad {
                subject: Handle::new(subject),
                predicate: Handle::new(predicate),
                object: Handle::new(object),
                graph_name: graph.map(Handle::new),
            })
        })
    }

    fn internal_named_graphs(&self) -> impl Iterator<Item = Result<Handle, io::Error>> + use<'a> {
        std::iter::once(Ok(Handle::new(self.graph)))
    }

    fn internalize_term(&self, term: Term) -> Result<Handle, io::Error> {
        Ok(Handle::new(match &term {
            Term::NamedNode(name) if name.as_str().starts_with(PRIVATE) => self.private(name),
            _ => self.intern(term),
        }))
    }

    fn externalize_term(&self, term: Handle) -> Result<Term, io::Error> {
        self.term(term.id())
    }

    fn externalize_expression_term(&self, term: Handle) -> Result<ExpressionTerm, io::Error> {
        Ok(each_literal(self.term(term.id())?, marked).into())
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
pub(crate) mod tests;
