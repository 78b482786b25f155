//! SPARQL evaluation of a query on one publication, by `spareval` over terms as integers.
//!
//! The default graph is the background (what follows from the ontology) together with the
//! publication's graph, a triple of both once; the one named graph is the publication's. Nothing is
//! copied: [`Source`]s answer each access pattern. Terms are compared by id, so literals stay as
//! they are written; expressions see their values ([`crate::rewrite`]). Terms that expressions make
//! get ids of the evaluation. Attributes that were found for those who name them are a source of
//! their own, seen under a private name of their property only.
//!
//! A query is prepared once ([`Prepared`]) and evaluated as often as it is a candidate. Cost: the
//! evaluator plans each time, some ten microseconds for a few patterns; a look-up costs two
//! allocations. [`Limits`] hold wherever the evaluator is ([`crate::bounded`]).

use crate::algebra::{Part, body, body_mut, pattern_of, pattern_of_mut, visit, written};
use crate::bounded::{self, Exceeded, Handle, exceed};
use crate::dictionary::{ANY, Id, LOCAL, LocalTerms, Terms};
use crate::functions::{self, Expressions};
use crate::lexical::{read_term, write_term};
use crate::operators::{self, Asked, Operators};
use crate::pattern::TaxonomyOperator;
use crate::query::QueryError;
use crate::rest::{self, Fresh, ITSELF, PUBLICATION};
use crate::rewrite::{
    self, ATTRIBUTE, NOW, PRIVATE, REGEX, REPLACE, Rewriter, TAXONOMY, each_literal, marked,
};
use oxrdf::{Literal, NamedNode, Term, Triple};
use spareval::{
    ExpressionTerm, InternalQuad, QueryEvaluationError, QueryEvaluator, QueryResults,
    QueryableDataset,
};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use std::cell::RefCell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Triples that are found by an access pattern.
pub trait Source {
    /// The triples that have the given terms; [`ANY`] stands for any.
    fn matching<'a>(&'a self, key: [Id; 3]) -> Box<dyn Iterator<Item = [Id; 3]> + 'a>;

    /// Whether a triple is there.
    fn contains(&self, triple: [Id; 3]) -> bool;
}

/// What one evaluation may cost.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How long it may take.
    pub time: Option<Duration>,
    /// How many solutions, or triples of a graph, an answer may have.
    pub solutions: usize,
    /// How many terms of solutions may be held at once; each takes some 20 bytes.
    pub terms: usize,
    /// How many bytes the texts of terms that expressions make may have in all.
    pub text: usize,
}

/// With more parts than this that are joined, optional or not, a query is evaluated as it is
/// written: the time for planning grows with the cube of their number or faster, and nothing can
/// stop it.
const PLANNED: usize = 40;
/// What an expression does with a term may take as long as so many copies of terms, and some more
/// for each byte of it.
const READ: usize = 256;

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Some(Duration::from_secs(10)),
            solutions: 100_000,
            terms: 20_000_000,
            text: 64 << 20,
        }
    }
}

/// Why there is no answer: the limit that was reached, or what the evaluator says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluationError(pub String);

impl EvaluationError {
    /// The error of an evaluation or a join that reached the time limit.
    pub fn late(limit: Option<Duration>) -> Self {
        let seconds = limit.unwrap_or_default().as_secs_f64();
        Self(format!("the evaluation takes longer than {seconds} s (`evaluation_seconds`)"))
    }

    /// The error of a match that has too many solutions.
    pub fn many(limit: usize) -> Self {
        Self(format!("there are more than {limit} solutions (`match_solutions`)"))
    }
}

impl From<QueryEvaluationError> for EvaluationError {
    fn from(error: QueryEvaluationError) -> Self {
        Self(error.to_string())
    }
}

impl From<QueryError> for EvaluationError {
    fn from(error: QueryError) -> Self {
        Self(error.what)
    }
}

/// What a query gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The projected variables of SELECT.
    pub variables: Vec<String>,
    /// One row a solution of SELECT, a value for each variable; one empty row for ASK.
    pub solutions: Vec<Vec<Option<Term>>>,
    /// What CONSTRUCT or DESCRIBE gives; `None` for the other forms.
    pub graph: Option<Vec<Triple>>,
}

/// A query as the evaluator has to be asked, constants filled in.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What has to have a solution first: for CONSTRUCT and DESCRIBE the pattern, too.
    conditions: Vec<Query>,
    query: Query,
    functions: Vec<NamedNode>,
    /// What is known of the calls of operators.
    calls: Asked,
    operators: Operators,
    /// Whether it has so many joined parts that to plan it would take longer than to evaluate it.
    is_wide: bool,
}

impl Prepared {
    /// Prepares a query.
    ///
    /// With `resting`, solutions that rest on the ontology alone do not count: see [`rest`].
    pub fn new(query: &Query, resting: bool) -> Self {
        Self::calling(query, resting, &Operators::default(), Asked::default())
    }

    /// The same of a query that calls operators, of whose calls something is known.
    pub fn calling(query: &Query, resting: bool, operators: &Operators, calls: Asked) -> Self {
        let mut fresh = Fresh::default();
        let mut query = query.clone();
        rest::name_blank_nodes(pattern_of_mut(&mut query), &mut fresh);
        operators::joined(&mut query, operators, &calls);
        let operators = operators.clone();
        Self { calls, operators, ..Self::asked(query, resting, &mut fresh).rewritten(fresh) }
    }

    /// What has to be asked, before it is rewritten for this evaluator.
    fn asked(mut query: Query, resting: bool, fresh: &mut Fresh) -> Self {
        rest::name_blank_nodes(pattern_of_mut(&mut query), fresh);
        let mut conditions = Vec::new();
        if resting {
            let body = body_mut(pattern_of_mut(&mut query));
            match (rest::group(body), rest::has_subquery(body)) {
                (None, false) => *body = rest::restricted(std::mem::take(body), fresh),
                (Some(grouped), false) => {
                    conditions.push(rest::restricted(grouped.clone(), fresh));
                }
                (grouped, true) => {
                    conditions.push(rest::anything(body, fresh));
                    conditions.extend(grouped.cloned());
                }
            }
        }
        if matches!(query, Query::Construct { .. } | Query::Describe { .. }) {
            conditions.push(pattern_of(&query).clone());
        }
        let ask =
            |pattern| Query::Ask { dataset: None, pattern, base_iri: query.base_iri().cloned() };
        let conditions = conditions.into_iter().map(ask).collect();
        let (calls, operators) = Default::default();
        Self { conditions, query, functions: Vec::new(), calls, operators, is_wide: false }
    }

    /// The same as texts for any SPARQL evaluator over a store whose default graph is the ontology
    /// together with the publication, and that has the publication as a named graph: what has to
    /// hold first, and the query.
    pub fn texts(query: &Query, graph: &NamedNode) -> (Vec<String>, String) {
        let all = Self::asked(query.clone(), true, &mut Fresh::written());
        let name = format!("<{PUBLICATION}>");
        let text = |query: &Query| written(query).replace(&name, &graph.to_string());
        (all.conditions.iter().map(text).collect(), text(&all.query))
    }

    /// Prepares the question for what the pattern of a query binds, projected or not, whether it
    /// rests on the publication or not; at most so many solutions.
    pub fn rows(query: &Query, most: Option<usize>) -> Self {
        Self::rows_calling(query, most, &Operators::default(), Asked::default())
    }

    /// The same of a query that calls operators, of whose calls something is known.
    pub fn rows_calling(
        query: &Query,
        most: Option<usize>,
        operators: &Operators,
        calls: Asked,
    ) -> Self {
        let body = body(pattern_of(query));
        let pattern = rest::group(body).unwrap_or(body);
        let variables = rest::visible(pattern);
        let mut pattern = GraphPattern::Project { inner: pattern.clone().into(), variables };
        if most.is_some() {
            pattern = GraphPattern::Slice { inner: pattern.into(), start: 0, length: most };
        }
        let base_iri = query.base_iri().cloned();
        let query = Query::Select { dataset: None, pattern, base_iri };
        Self::calling(&query, false, operators, calls)
    }

    fn rewritten(mut self, fresh: Fresh) -> Self {
        let mut rewriter = Rewriter::new(fresh);
        for query in self.conditions.iter_mut().chain([&mut self.query]) {
            let mut parts = 0;
            visit(pattern_of_mut(query), &mut |part| {
                if let Part::Pattern(pattern) = part {
                    parts += joined_parts(pattern);
                }
            });
            self.is_wide |= parts > PLANNED;
            rewriter.query(query);
        }
        self.functions = rewriter.functions;
        self
    }
}

/// Number of joins of this pattern alone. Three triple patterns count as one.
fn joined_parts(pattern: &GraphPattern) -> usize {
    match pattern {
        GraphPattern::Bgp { patterns } => patterns.len() / 3,
        GraphPattern::LeftJoin { .. } => 1,
        GraphPattern::Join { left, right } => {
            let is_group = |part: &GraphPattern| !matches!(part, GraphPattern::Bgp { .. });
            usize::from(is_group(left) || is_group(right))
        }
        _ => 0,
    }
}

/// The name of a publication's graph: its id where that is an IRI.
pub fn graph_name(id: &str) -> NamedNode {
    NamedNode::new(id).unwrap_or_else(|_| NamedNode::new_unchecked("urn:graphmatch:publication"))
}

/// One publication, ready for queries.
#[derive(Clone, Copy)]
pub struct Evaluation<'a> {
    /// The terms of what follows.
    pub terms: Terms<'a>,
    /// The publication's graph.
    pub publication: &'a dyn Source,
    /// Triples of attributes that only those see who name them; none of them is in the publication.
    pub attributes: &'a dyn Source,
    /// What follows from the ontology alone.
    pub background: &'a dyn Source,
    /// The name of the publication's graph: [`graph_name`].
    pub graph: &'a NamedNode,
    /// What `NOW()` gives.
    pub now: &'a Literal,
    /// Whether a taxonomy operator holds between two terms, the subject and the concept.
    pub is_a: &'a dyn Fn(TaxonomyOperator, Id, Id) -> bool,
    /// What an answer may cost.
    pub limits: Limits,
}

impl Evaluation<'_> {
    /// The answer to a query, or `None` where it does not match.
    pub fn answer(&self, prepared: &Prepared) -> Result<Option<Answer>, EvaluationError> {
        self.bounded(|| {
            let evaluator = self.evaluator(prepared);
            for condition in &prepared.conditions {
                let found = evaluator.prepare(condition).execute(Data::of(self))?;
                if !matches!(found, QueryResults::Boolean(true)) {
                    return Ok(None);
                }
            }
            let limit = self.limits.solutions;
            match evaluator.prepare(&prepared.query).execute(Data::of(self))? {
                QueryResults::Boolean(holds) => {
                    Ok(holds.then(|| Answer { solutions: vec![Vec::new()], ..Answer::default() }))
                }
                QueryResults::Solutions(rows) => {
                    let variables = rows.variables().iter().map(|v| v.as_str().to_owned());
                    let variables = variables.collect();
                    let rows = rows.map(|row| row.map(|row| row.values().to_vec()));
                    let solutions = collected(rows, limit)?;
                    let answer = Answer { variables, solutions, graph: None };
                    Ok((!answer.solutions.is_empty()).then_some(answer))
                }
                QueryResults::Graph(triples) => {
                    let graph = Some(collected(triples, limit)?);
                    Ok(Some(Answer { graph, ..Answer::default() }))
                }
            }
        })
    }

    /// An evaluator that has the functions which a query calls.
    fn evaluator(&self, prepared: &Prepared) -> QueryEvaluator {
        let mut evaluator = QueryEvaluator::new();
        let known = Arc::<Expressions>::default();
        if prepared.is_wide {
            evaluator = evaluator.without_optimizations();
        }
        for name in &prepared.functions {
            evaluator = if let Some(function) = functions::private(name.as_str()) {
                evaluator.with_custom_function(name.clone(), function)
            } else if name.as_str() == REPLACE {
                let known = known.clone();
                evaluator.with_custom_function(name.clone(), move |terms| known.replace(terms))
            } else if name.as_str() == REGEX {
                let known = known.clone();
                evaluator.with_custom_function(name.clone(), move |terms| known.is_match(terms))
            } else if name.as_str() == NOW {
                let now = Term::from(self.now.clone());
                evaluator.with_custom_function(name.clone(), move |_| Some(now.clone()))
            } else if name.as_str().starts_with(TAXONOMY) {
                let operator = name.clone();
                evaluator.with_custom_function(name.clone(), move |terms| {
                    functions::question(&operator, terms)
                })
            } else if prepared.operators.is_function(name.as_str()) {
                let (calls, operator) = (prepared.calls.clone(), name.clone());
                let call = move |terms: &[Term]| calls.call(operator.as_str(), terms);
                evaluator.with_custom_function(name.clone(), call)
            } else {
                evaluator // a cast, or one that nobody knows
            }
        }
        evaluator
    }

    /// Runs an evaluation within the limits.
    fn bounded<T>(
        &self,
        run: impl FnOnce() -> Result<T, EvaluationError>,
    ) -> Result<T, EvaluationError> {
        let Limits { time, terms, text, .. } = self.limits;
        bounded::bounded(time, terms, text, run).unwrap_or_else(|exceeded| {
            Err(EvaluationError(match exceeded {
                Exceeded::Time => return Err(EvaluationError::late(time)),
                Exceeded::Terms => format!("the evaluation holds more than {terms} terms at once"),
                Exceeded::Text => format!("the evaluation makes more than {text} bytes of text"),
                Exceeded::Broken => "the evaluator failed unexpectedly".to_owned(),
            }))
        })
    }
}

fn collected<T>(
    items: impl Iterator<Item = Result<T, QueryEvaluationError>>,
    limit: usize,
) -> Result<Vec<T>, EvaluationError> {
    let mut found = Vec::new();
    for item in items {
        if found.len() == limit {
            return Err(EvaluationError::many(limit));
        }
        found.push(item?);
    }
    Ok(found)
}

// --- The dataset ----------------------------------------------------------------------------------

/// Terms that are not the publication's or the dictionary's.
#[derive(Default)]
struct Scratch {
    terms: LocalTerms,
    text: String,
    /// Private names of attributes, and the properties that they stand for.
    attributes: Vec<(Id, Id)>,
    /// The id of [`ITSELF`], where a query has it.
    itself: Option<Id>,
}

struct Data<'a> {
    of: &'a Evaluation<'a>,
    /// The first id of this evaluation's own terms.
    first: Id,
    graph: Id,
    scratch: RefCell<Scratch>,
}

impl<'a> Data<'a> {
    fn of(of: &'a Evaluation<'a>) -> Self {
        let first = LOCAL.saturating_add(of.terms.local.len() as Id);
        let mut data = Self { of, first, graph: ANY, scratch: RefCell::default() };
        data.graph = data.intern(of.graph.clone().into());
        data
    }

    /// The id of a term's text, if anybody but this evaluation knows it.
    fn known(&self, text: &str, hash: u64) -> Option<Id> {
        let Terms { dictionary, local } = self.of.terms;
        dictionary
            .get_hashed(text.as_bytes(), hash)
            .or_else(|| local.get_hashed(text.as_bytes(), hash))
    }

    fn find(&self, text: &str) -> Option<Id> {
        self.known(text, self.of.terms.dictionary.hash(text.as_bytes()))
    }

    fn intern(&self, term: Term) -> Id {
        let mut scratch = self.scratch.borrow_mut();
        let mut text = std::mem::take(&mut scratch.text);
        text.clear();
        write_term(&mut text, term.as_ref());
        let id = self.intern_text(&mut scratch, &text);
        scratch.text = text;
        id
    }

    fn intern_text(&self, scratch: &mut Scratch, text: &str) -> Id {
        let hash = self.of.terms.dictionary.hash(text.as_bytes());
        if let Some(id) = self.known(text, hash) {
            return id;
        }
        let before = scratch.terms.len();
        let id = scratch.terms.intern_hashed(text.as_bytes(), hash) - LOCAL;
        if scratch.terms.len() > before {
            bounded::make_text(text.len());
            if scratch.terms.len() >= (ANY - self.first) as usize {
                exceed(Exceeded::Text);
            }
        }
        self.first + id
    }

    /// The id of a private name.
    fn private(&self, name: &NamedNode) -> Id {
        if name.as_str() == PUBLICATION {
            return self.graph;
        }
        let id = self.intern(name.clone().into());
        if name.as_str() == ITSELF {
            self.scratch.borrow_mut().itself = Some(id);
        }
        if let Some(real) = name.as_str().strip_prefix(ATTRIBUTE) {
            let real = self.intern(NamedNode::new_unchecked(real).into());
            let attributes = &mut self.scratch.borrow_mut().attributes;
            if !attributes.contains(&(id, real)) {
                attributes.push((id, real));
            }
        }
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
            read(self.scratch.borrow().terms.text(id - self.first + LOCAL))
        };
        term.ok_or_else(|| io::Error::other("a term cannot be read"))
    }

    /// The answer to a [`question`].
    fn is_a(&self, operator: TaxonomyOperator, question: &str) -> Option<bool> {
        let (term, concept) = question.split_once('\n')?;
        Some(match (self.find(term), self.find(concept)) {
            (Some(term), Some(concept)) => (self.of.is_a)(operator, term, concept),
            _ => operator != TaxonomyOperator::Child && term == concept,
        })
    }

    /// The triples that an access pattern finds, each once.
    fn found(&self, mut key: [Id; 3], graph: Option<Id>) -> Box<dyn Iterator<Item = [Id; 3]> + 'a> {
        let of = self.of;
        if graph.is_some_and(|name| name != self.graph) {
            return Box::new(std::iter::empty());
        }
        let private = key[1];
        let scratch = self.scratch.borrow();
        if scratch.itself == Some(private) {
            let [subject, _, object] = key;
            let node = if subject == ANY { object } else { subject };
            let holds = node != ANY && (object == ANY || object == node);
            return Box::new(holds.then_some([node, private, node]).into_iter());
        }
        let attribute = scratch.attributes.iter().find(|(id, _)| *id == private);
        if let Some((_, real)) = attribute {
            key[1] = *real;
        }
        let attributes = attribute.map(|_| of.attributes);
        if key.iter().all(|&term| term != ANY) {
            let holds = of.publication.contains(key)
                || graph.is_none() && of.background.contains(key)
                || attributes.is_some_and(|attributes| attributes.contains(key));
            return Box::new(holds.then_some([key[0], private, key[2]]).into_iter());
        }
        // nothing is looked for before what stands before it was read
        let sources = std::iter::once(of.publication).chain(attributes);
        let own = sources.flat_map(move |source| source.matching(key));
        let triples: Box<dyn Iterator<Item = [Id; 3]> + 'a> = if graph.is_some() {
            Box::new(own)
        } else {
            let new = own.filter(|&triple| !of.background.contains(triple));
            Box::new(of.background.matching(key).chain(new))
        };
        match attributes {
            None => triples,
            Some(_) => {
                Box::new(triples.map(move |[subject, _, object]| [subject, private, object]))
            }
        }
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

    fn contains_internal_graph_name(&self, graph_name: &Handle) -> Result<bool, io::Error> {
        Ok(self.graph == graph_name.id())
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
        let exact = bounded::wants_term();
        let term = self.term(term.id())?;
        let exact = exact || matches!(term, Term::Triple(_));
        Ok(if exact { each_literal(term, marked) } else { term }.into())
    }

    fn internalize_expression_term(&self, term: ExpressionTerm) -> Result<Handle, io::Error> {
        if let ExpressionTerm::OtherTypedLiteral { value, datatype } = &term {
            if let Some(operator) = rewrite::operator(datatype.as_str()) {
                let holds = self
                    .is_a(operator, value)
                    .ok_or_else(|| io::Error::other("a question cannot be read"))?;
                return Ok(Handle::new(self.intern(Literal::from(holds).into())));
            }
        }
        Ok(Handle::new(self.intern(term.into())))
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
pub(crate) mod tests;
