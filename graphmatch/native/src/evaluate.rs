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

use crate::bounded::{self, Exceeded, Handle, exceed};
use crate::dictionary::{ANY, Id, LOCAL, LocalTerms, Terms};
use crate::pattern::{Comparison, TaxonomyOperator};
use crate::rest::{self, Fresh, PUBLICATION, Resting};
use crate::rewrite::{
    self, ATTRIBUTE, COUNTED, DATATYPE, ERROR, EXACT, NODES, NOW, PRIVATE, Rewriter, STR, TAXONOMY,
    TERM, TEXT, VALUE, marked, unmarked,
};
use crate::terms::{read_term, write_term};
use crate::values::{Value, compare};
use oxrdf::{Literal, NamedNode, Term, Triple};
use spareval::{
    ExpressionTerm, ExpressionTriple, InternalQuad, QueryEvaluationError, QueryEvaluator,
    QueryResults, QueryableDataset,
};
use spargebra::Query;
use spargebra::algebra::GraphPattern;
use std::cell::RefCell;
use std::fmt;
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

impl Default for Limits {
    fn default() -> Self {
        Self {
            time: Some(Duration::from_secs(10)),
            solutions: 1_000_000,
            terms: 20_000_000,
            text: 64 << 20,
        }
    }
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EvaluationError {
    /// It took longer than [`Limits::time`].
    TimedOut {
        /// The limit.
        limit: Duration,
    },
    /// There are more solutions than [`Limits::solutions`].
    TooManySolutions {
        /// The limit.
        limit: usize,
    },
    /// More terms of solutions were held than [`Limits::terms`].
    TooMuchMemory {
        /// The limit.
        limit: usize,
    },
    /// Expressions made more text than [`Limits::text`].
    TooMuchText {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The evaluator refuses the query, or failed.
    Failed(String),
}

impl fmt::Display for EvaluationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut { limit } => {
                write!(f, "the evaluation takes longer than {} s", limit.as_secs_f64())
            }
            Self::TooManySolutions { limit } => write!(f, "there are more than {limit} solutions"),
            Self::TooMuchMemory { limit } => {
                write!(f, "the evaluation holds more than {limit} terms at once")
            }
            Self::TooMuchText { limit } => {
                write!(f, "the evaluation makes more than {limit} bytes of text")
            }
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for EvaluationError {}

impl From<QueryEvaluationError> for EvaluationError {
    fn from(error: QueryEvaluationError) -> Self {
        Self::Failed(error.to_string())
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
    /// What has to have a solution first.
    conditions: Vec<Query>,
    query: Query,
    /// For CONSTRUCT and DESCRIBE: whether the pattern has a solution.
    pattern: Option<Query>,
    functions: Vec<NamedNode>,
}

impl Prepared {
    /// Prepares a query.
    ///
    /// With `resting`, solutions that rest on the ontology alone do not count, and that is put to
    /// the query in the way that [`Resting::of`] says.
    pub fn new(query: &Query, resting: Option<Resting>) -> Result<Self, EvaluationError> {
        let mut fresh = Fresh::default();
        Self::resting(query, resting, &mut fresh).rewritten(fresh)
    }

    /// What has to be asked, before it is rewritten for this evaluator.
    fn resting(query: &Query, resting: Option<Resting>, fresh: &mut Fresh) -> Self {
        let mut query = query.clone();
        let body = rest::body(rest::pattern_of(&query));
        let grouped = rest::group(body).unwrap_or(body);
        let conditions = match resting {
            None => Vec::new(),
            Some(Resting::Solutions) => {
                rest::restrict(rest::pattern_of_mut(&mut query), fresh);
                Vec::new()
            }
            Some(Resting::Pattern) => vec![rest::restricted(grouped.clone(), fresh)],
            Some(Resting::Whole) => vec![rest::anything(body, fresh)],
            Some(Resting::Both) => vec![rest::anything(body, fresh), grouped.clone()],
        };
        let ask = |pattern| ask(&query, pattern);
        let conditions = conditions.into_iter().map(ask).collect();
        let pattern = matches!(query, Query::Construct { .. } | Query::Describe { .. })
            .then(|| ask(rest::pattern_of(&query).clone()));
        Self { conditions, query, pattern, functions: Vec::new() }
    }

    /// The same as texts for any SPARQL evaluator over a store whose default graph is the ontology
    /// together with the publication, and that has the publication as a named graph: what has to
    /// hold first, the query, and for CONSTRUCT and DESCRIBE whether its pattern is met.
    pub fn texts(query: &Query, graph: &NamedNode) -> (Vec<String>, String, Option<String>) {
        let all = Self::resting(query, Some(Resting::of(query)), &mut Fresh::written());
        let name = format!("<{PUBLICATION}>");
        let text = |query: &Query| query.to_string().replace(&name, &graph.to_string());
        let conditions = all.conditions.iter().map(text).collect();
        (conditions, text(&all.query), all.pattern.as_ref().map(text))
    }

    /// Prepares the question for what the pattern of a query binds, projected or not, whether it
    /// rests on the publication or not; at most so many solutions.
    pub fn rows(query: &Query, most: Option<usize>) -> Result<Self, EvaluationError> {
        let body = rest::body(rest::pattern_of(query));
        let pattern = rest::group(body).unwrap_or(body);
        let mut variables = Vec::new();
        rest::visible(pattern, &mut variables);
        let mut pattern = GraphPattern::Project { inner: pattern.clone().into(), variables };
        if most.is_some() {
            pattern = GraphPattern::Slice { inner: pattern.into(), start: 0, length: most };
        }
        let base_iri = query.base_iri().cloned();
        let query = Query::Select { dataset: None, pattern, base_iri };
        Self { conditions: Vec::new(), query, pattern: None, functions: Vec::new() }
            .rewritten(Fresh::default())
    }

    fn rewritten(mut self, fresh: Fresh) -> Result<Self, EvaluationError> {
        let mut rewriter = Rewriter::new(fresh);
        for query in self.conditions.iter_mut().chain([&mut self.query]).chain(&mut self.pattern) {
            rewriter.query(query);
        }
        if rewriter.foreign || self.query.dataset().is_some() {
            let why = "the query uses FROM, SERVICE or what SPARQL 1.1 does not have";
            return Err(EvaluationError::Failed(why.into()));
        }
        self.functions = rewriter.functions;
        Ok(self)
    }
}

fn ask(query: &Query, pattern: GraphPattern) -> Query {
    Query::Ask { dataset: None, pattern, base_iri: query.base_iri().cloned() }
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
                if !self.asked(&evaluator, condition)? {
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
                    let graph = collected(triples, limit)?;
                    let matched = !graph.is_empty()
                        || match &prepared.pattern {
                            Some(pattern) => self.asked(&evaluator, pattern)?,
                            None => false,
                        };
                    Ok(matched.then(|| Answer { graph: Some(graph), ..Answer::default() }))
                }
            }
        })
    }

    fn asked(&self, evaluator: &QueryEvaluator, query: &Query) -> Result<bool, EvaluationError> {
        match evaluator.prepare(query).execute(Data::of(self))? {
            QueryResults::Boolean(holds) => Ok(holds),
            _ => Ok(false),
        }
    }

    /// An evaluator that has the functions which a query calls.
    fn evaluator(&self, prepared: &Prepared) -> QueryEvaluator {
        let mut evaluator = QueryEvaluator::new();
        for name in &prepared.functions {
            evaluator = if let Some(function) = private_function(name.as_str()) {
                evaluator.with_custom_function(name.clone(), function)
            } else if name.as_str() == NOW {
                let now = Term::from(self.now.clone());
                evaluator.with_custom_function(name.clone(), move |_| Some(now.clone()))
            } else if name.as_str().starts_with(TAXONOMY) {
                let operator = name.clone();
                evaluator
                    .with_custom_function(name.clone(), move |terms| question(&operator, terms))
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
        let limits = self.limits;
        bounded::bounded(limits.time, limits.terms, limits.text, run).unwrap_or_else(|exceeded| {
            Err(match exceeded {
                Exceeded::Time => {
                    EvaluationError::TimedOut { limit: limits.time.unwrap_or_default() }
                }
                Exceeded::Terms => EvaluationError::TooMuchMemory { limit: limits.terms },
                Exceeded::Text => EvaluationError::TooMuchText { limit: limits.text },
                Exceeded::Broken => {
                    EvaluationError::Failed("the evaluator failed unexpectedly".into())
                }
            })
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
            return Err(EvaluationError::TooManySolutions { limit });
        }
        found.push(item?);
    }
    Ok(found)
}

// --- Functions ------------------------------------------------------------------------------------

/// A function of terms; `None` is an error.
type Function = fn(&[Term]) -> Option<Term>;

fn private_function(name: &str) -> Option<Function> {
    Some(match name {
        EXACT => |_| {
            bounded::want_term();
            Some(Literal::from(true).into())
        },
        ERROR => |_| None,
        STR => |terms| match terms.last()? {
            Term::NamedNode(name) => Some(Literal::new_simple_literal(name.as_str()).into()),
            Term::Literal(literal) => Some(Literal::new_simple_literal(literal.value()).into()),
            _ => None,
        },
        DATATYPE => |terms| match terms.last()? {
            Term::Literal(literal) => {
                Some(unmarked(literal.clone()).datatype().into_owned().into())
            }
            _ => None,
        },
        TERM => |terms| terms.last().cloned(),
        COUNTED => |terms| {
            let text = |term: &Term| match term {
                Term::Literal(literal) => literal.value().len(),
                _ => 0,
            };
            bounded::make_text(terms.iter().map(text).sum());
            terms.last().cloned()
        },
        TEXT => |terms| match terms.last()? {
            Term::Literal(literal) if literal.language().is_none() => {
                Some(Literal::new_simple_literal(literal.value()).into())
            }
            other => Some(other.clone()),
        },
        VALUE => |terms| match terms.last()? {
            Term::Literal(literal) => Some(unmarked(literal.clone()).into()),
            other => Some(other.clone()),
        },
        "urn:graphmatch:compare" => |terms| {
            let [left, Term::Literal(sign), right] = terms else { return None };
            let (left, right) = (left.to_string(), right.to_string());
            let (left, right) = (Value::of(left.as_bytes()), Value::of(right.as_bytes()));
            // in base units a quantity may be a number, with which only numbers are compared
            let is_fit = left.is_number() || !right.is_number();
            let holds = compare(&left, Comparison::of_sign(sign.value())?, &right);
            Some(Literal::from(holds.filter(|_| is_fit)?).into())
        },
        _ => return None,
    })
}

/// The literal by which a taxonomy operator is asked of the dataset.
fn question(operator: &NamedNode, terms: &[Term]) -> Option<Term> {
    let [term, concept] = terms else { return None };
    let mut text = String::new();
    write_term(&mut text, term);
    let length = text.len();
    write_term(&mut text, concept);
    Some(Literal::new_typed_literal(format!("{length} {text}"), operator.clone()).into())
}

// --- The dataset ----------------------------------------------------------------------------------

/// What the dataset cannot do.
#[derive(Debug)]
struct Fault(&'static str);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Fault {}

/// The publication's graph, by the name that conditions have for it.
const SELF: Id = ANY - 1;

/// What a private property stands for.
#[derive(Clone, Copy)]
enum Role {
    /// An attribute, seen by name.
    Attribute(Id),
    /// From each node of an attribute's triples to itself.
    Nodes(Id),
}

/// Terms that are not the publication's or the dictionary's.
#[derive(Default)]
struct Scratch {
    terms: LocalTerms,
    text: String,
    roles: Vec<(Id, Role)>,
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
        let mut data = Self { of, first, graph: SELF, scratch: RefCell::default() };
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
        write_term(&mut text, &term);
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
            if scratch.terms.len() >= (SELF - self.first) as usize {
                exceed(Exceeded::Text);
            }
        }
        self.first + id
    }

    /// The id of a private name.
    fn private(&self, name: &NamedNode) -> Id {
        if name.as_str() == PUBLICATION {
            return SELF;
        }
        let id = self.intern(name.clone().into());
        let real = |name: &str| self.intern(NamedNode::new_unchecked(name).into());
        let role = if let Some(name) = name.as_str().strip_prefix(ATTRIBUTE) {
            Role::Attribute(real(name))
        } else if let Some(name) = name.as_str().strip_prefix(NODES) {
            Role::Nodes(real(name))
        } else {
            return id;
        };
        let roles = &mut self.scratch.borrow_mut().roles;
        if !roles.iter().any(|(other, _)| *other == id) {
            roles.push((id, role));
        }
        id
    }

    fn role(&self, property: Id) -> Option<Role> {
        let scratch = self.scratch.borrow();
        scratch.roles.iter().find(|(id, _)| *id == property).map(|(_, role)| *role)
    }

    fn term(&self, id: Id) -> Result<Term, Fault> {
        let read = |text: &[u8]| std::str::from_utf8(text).ok().and_then(read_term);
        if id < self.first {
            read(&self.of.terms.text(id))
        } else if id < SELF {
            read(self.scratch.borrow().terms.text(id - self.first + LOCAL))
        } else {
            None
        }
        .ok_or(Fault("a term cannot be read"))
    }

    /// The answer to a [`question`].
    fn is_a(&self, operator: TaxonomyOperator, question: &str) -> Option<bool> {
        let (length, terms) = question.split_once(' ')?;
        let (term, concept) = terms.split_at_checked(length.parse().ok()?)?;
        Some(match (self.find(term), self.find(concept)) {
            (Some(term), Some(concept)) => (self.of.is_a)(operator, term, concept),
            _ => operator != TaxonomyOperator::Child && term == concept,
        })
    }

    /// The triples that an access pattern finds.
    fn found(
        &self,
        subject: Option<&Handle>,
        predicate: Option<&Handle>,
        object: Option<&Handle>,
        graph_name: Option<Option<&Handle>>,
    ) -> Found<'a> {
        let of = self.of;
        let graph = match graph_name {
            Some(None) => None,
            None => Some(self.graph),
            Some(Some(name)) => Some(name.id()),
        };
        let id = |handle: Option<&Handle>| handle.map_or(ANY, Handle::id);
        let mut key = [id(subject), id(predicate), id(object)];
        let (mut property, mut attributes) = (None, false);
        if graph.is_some_and(|name| name != self.graph && name != SELF) {
            return Found { graph, property, triples: Box::new(std::iter::empty()) };
        }
        match self.role(key[1]) {
            None => {}
            Some(Role::Attribute(real)) => {
                property = Some(key[1]);
                key[1] = real;
                attributes = true;
            }
            Some(Role::Nodes(real)) => {
                let triples = Box::new(self.nodes(real, key).into_iter());
                return Found { graph, property, triples };
            }
        }
        if key.iter().all(|&term| term != ANY) {
            let holds = of.publication.contains(key)
                || graph.is_none() && of.background.contains(key)
                || attributes && of.attributes.contains(key);
            let triples = Box::new(holds.then_some(key).into_iter());
            return Found { graph, property, triples };
        }
        // nothing is looked for before what stands before it was read
        let more = attributes.then_some(of.attributes);
        let sources = std::iter::once(of.publication).chain(more);
        let own = sources.flat_map(move |source| source.matching(key));
        let triples: Box<dyn Iterator<Item = [Id; 3]> + 'a> = if graph.is_some() {
            Box::new(own)
        } else {
            let new = own.filter(|&triple| !of.background.contains(triple));
            Box::new(of.background.matching(key).chain(new))
        };
        Found { graph, property, triples }
    }

    /// Triples from each node of an attribute's triples to itself.
    fn nodes(&self, property: Id, key: [Id; 3]) -> Vec<[Id; 3]> {
        let mut nodes: Vec<Id> = self
            .of
            .attributes
            .matching([ANY, property, ANY])
            .flat_map(|[subject, _, object]| [subject, object])
            .filter(|&node| [key[0], key[2]].iter().all(|&end| end == ANY || end == node))
            .collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes.into_iter().map(|node| [node, key[1], node]).collect()
    }
}

/// The triples that an access pattern finds, each once.
struct Found<'a> {
    graph: Option<Id>,
    /// What the property is called where it has a private name.
    property: Option<Id>,
    triples: Box<dyn Iterator<Item = [Id; 3]> + 'a>,
}

impl Iterator for Found<'_> {
    type Item = Result<InternalQuad<Handle>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        let [subject, property, object] = self.triples.next()?;
        Some(Ok(InternalQuad {
            subject: Handle::new(subject),
            predicate: Handle::new(self.property.unwrap_or(property)),
            object: Handle::new(object),
            graph_name: self.graph.map(Handle::new),
        }))
    }
}

impl<'a> QueryableDataset<'a> for Data<'a> {
    type InternalTerm = Handle;
    type Error = Fault;

    fn internal_quads_for_pattern(
        &self,
        subject: Option<&Handle>,
        predicate: Option<&Handle>,
        object: Option<&Handle>,
        graph_name: Option<Option<&Handle>>,
    ) -> impl Iterator<Item = Result<InternalQuad<Handle>, Fault>> + use<'a> {
        self.found(subject, predicate, object, graph_name)
    }

    fn internal_named_graphs(&self) -> impl Iterator<Item = Result<Handle, Fault>> + use<'a> {
        std::iter::once(Ok(Handle::new(self.graph)))
    }

    fn contains_internal_graph_name(&self, graph_name: &Handle) -> Result<bool, Fault> {
        Ok([self.graph, SELF].contains(&graph_name.id()))
    }

    fn internalize_term(&self, term: Term) -> Result<Handle, Fault> {
        Ok(Handle::new(match &term {
            Term::NamedNode(name) if name.as_str().starts_with(PRIVATE) => self.private(name),
            _ => self.intern(term),
        }))
    }

    fn externalize_term(&self, term: Handle) -> Result<Term, Fault> {
        self.term(term.id())
    }

    fn externalize_expression_term(&self, term: Handle) -> Result<ExpressionTerm, Fault> {
        let exact = bounded::wants_term();
        Ok(match self.term(term.id())? {
            Term::Literal(literal) if exact => Term::from(marked(literal)).into(),
            term @ Term::Triple(_) => within_triple(term),
            term => term.into(),
        })
    }

    fn internalize_expression_term(&self, term: ExpressionTerm) -> Result<Handle, Fault> {
        if let ExpressionTerm::OtherTypedLiteral { value, datatype } = &term {
            if let Some(operator) = rewrite::operator(datatype.as_str()) {
                let holds = self.is_a(operator, value).ok_or(Fault("a question cannot be read"))?;
                return Ok(Handle::new(self.intern(Literal::from(holds).into())));
            }
        }
        Ok(Handle::new(self.intern(term.into())))
    }
}

/// A term of a triple term for the evaluator, so that it comes back as it is written.
fn within_triple(term: Term) -> ExpressionTerm {
    match term {
        Term::Triple(triple) => ExpressionTerm::Triple(Box::new(ExpressionTriple {
            subject: triple.subject.clone(),
            predicate: triple.predicate.clone(),
            object: within_triple(triple.object.clone()),
        })),
        Term::Literal(literal) => {
            let value = ExpressionTerm::from(Term::from(literal.clone()));
            let same = Term::from(value.clone()) == Term::from(literal.clone());
            if same { value } else { Term::from(marked(literal)).into() }
        }
        term => term.into(),
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
pub(crate) mod tests;
