//! A query by itself, as Python sees it: branches of patterns and filters, constants, demand.
//!
//! [`Query`] is for those who look at queries (published algorithms, explanations, mapping
//! functions, units); the engine keeps subscriptions in another way. Cost: that of
//! [`Template::new`], and a Python object for each term and pattern that is asked for.

use super::bad_query;
use super::terms::{object_of, variable_object, write_text};
use super::{List, Object, Tuple};
use crate::branch::{Branch, Comparison, Filter, Folding, Node, Pattern, TermPart, TextOperator};
use crate::dictionary::{ANY, Dictionary, Id};
use crate::engine::{Engine, branch_of};
use crate::fault::Fault;
use crate::limits::Limits;
use crate::operators::Operator;
use crate::parameterize::Parameterizer;
use crate::query::{FilledTemplate, Template};
use crate::query_analysis::MeasurablePattern;
use crate::scan::on_stack;
use crate::subscriptions::Number;
use crate::writer::filled;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};
use spargebra::SparqlParser;
use spargebra::term::{TermPattern, TriplePattern};
use std::borrow::Cow;
use std::sync::Arc;

/// The names of variables in patterns that have their own.
const PLACES: [&str; 3] = ["subject", "predicate", "object"];

/// Analyses the texts of queries.
#[pyclass(frozen, module = "graphmatch._native")]
pub struct Parser {
    parameterizer: Parameterizer,
}

#[pymethods]
impl Parser {
    /// `prefixes` hold without being declared; operators may be called.
    #[new]
    #[pyo3(signature = (prefixes, limits, operators = Vec::new()))]
    fn new(
        prefixes: Vec<(String, String)>,
        limits: Limits,
        operators: Vec<Operator>,
    ) -> PyResult<Self> {
        let parameterizer = Parameterizer::new(&prefixes, limits, operators).map_err(bad_query)?;
        Ok(Self { parameterizer })
    }

    /// Analyses a query.
    fn parse(&self, py: Python<'_>, text: &str) -> PyResult<Query> {
        py.detach(|| Query::parse(&self.parameterizer, text)).map_err(bad_query)
    }
}

/// A query that was analysed.
#[pyclass(frozen, eq, hash, module = "graphmatch._native")]
pub struct Query {
    pub(super) template: Arc<Template>,
    constants: Vec<String>,
}

impl PartialEq for Query {
    fn eq(&self, other: &Self) -> bool {
        self.template.text == other.template.text && self.constants == other.constants
    }
}

impl std::hash::Hash for Query {
    fn hash<H: std::hash::Hasher>(&self, engine: &mut H) {
        self.template.text.hash(engine);
        self.constants.hash(engine);
    }
}

impl Query {
    fn parse(parameterizer: &Parameterizer, text: &str) -> Result<Self, Fault> {
        let query = parameterizer.parameterize(text)?;
        let template = Arc::new(Template::new(&query, parameterizer)?);
        let constants = query.constants.into_iter().chain(template.operators()).collect();
        Ok(Self { template, constants })
    }

    /// The algebra, constants put in.
    pub fn algebra(&self) -> Result<spargebra::Query, Fault> {
        self.template.substituted(&self.constants)
    }

    /// The query of a stored subscription, with root terms and in base units.
    pub fn stored(engine: &Engine, number: Number) -> Option<Self> {
        let template = engine.subscriptions.get(number).template;
        Self::of(engine, engine.templates.get(template), &engine.constants(number)[1])
    }

    /// The query of a template with constants.
    pub fn of(engine: &Engine, template: Option<Arc<Template>>, constants: &[Id]) -> Option<Self> {
        let text = |&id: &Id| String::from_utf8_lossy(&engine.dictionary.text(id)).into_owned();
        Some(Self { template: template?, constants: constants.iter().map(text).collect() })
    }

    fn ids(&self) -> (Dictionary, Vec<Id>) {
        let mut dictionary = Dictionary::default();
        let ids = self.constants.iter().map(|text| dictionary.intern(text.as_bytes())).collect();
        (dictionary, ids)
    }

    /// The branches, with ids of a dictionary of its own.
    pub fn filled(&self) -> (Dictionary, FilledTemplate) {
        let (mut dictionary, ids) = self.ids();
        let filled = self.template.filled(&ids, &mut dictionary);
        (dictionary, filled)
    }

    /// The patterns and filters of a branch by its number, or of a pattern by itself.
    pub fn branch<'py>(
        &self,
        py: Python<'py>,
        dictionary: &Dictionary,
        number: Option<usize>,
        branch: &Branch,
    ) -> PyResult<BranchRow<'py>> {
        let place = |number| branch.patterns[0].iter().position(|&n| n == Node::Variable(number));
        let names = match number {
            Some(number) => self.template.names(number),
            None => (0..branch.variables).filter_map(place).map(|place| PLACES[place]).collect(),
        };
        let variables = names.iter().map(|name| variable_object(py, name));
        let variables = variables.collect::<PyResult<Vec<_>>>()?;
        let of = Objects { py, dictionary, variables: &variables };
        let patterns = branch.patterns.iter().map(|pattern| of.pattern(*pattern));
        let filters = branch.filters.iter();
        let filters =
            filters.map(|(variable, filter)| of.filter(&variables[usize::from(*variable)], filter));
        Ok((patterns.collect::<PyResult<_>>()?, filters.collect::<PyResult<_>>()?))
    }
}

#[pymethods]
impl Query {
    /// SELECT, ASK, CONSTRUCT or DESCRIBE.
    #[getter]
    fn form(&self) -> &str {
        &self.template.form
    }

    /// Whether equal solutions count once.
    #[getter]
    fn distinct(&self) -> bool {
        self.template.distinct
    }

    /// The text, but for white space and prefixes.
    #[getter]
    fn text(&self) -> String {
        filled(&self.template.text, |number, text| {
            text.push_str(self.constants.get(number).map_or("", |constant| constant));
            false
        })
    }

    /// The algebra as an S-expression (see <https://jena.apache.org/documentation/notes/sse.html>).
    #[pyo3(name = "algebra")]
    fn algebra_text(&self, py: Python<'_>) -> PyResult<String> {
        let written = || -> Result<_, Fault> {
            let query = SparqlParser::new().parse_query(&self.text());
            Ok(query.map_err(|error| Fault::unreadable("", &error.to_string()))?.to_sse())
        };
        py.detach(|| on_stack(self.template.is_deep, written)).map_err(bad_query)
    }

    /// The parameterised text of a query.
    #[getter]
    fn skeleton(&self) -> &str {
        &self.template.text
    }

    /// The projected variables, in order.
    fn projection<'py>(&self, py: Python<'py>) -> PyResult<List<'py>> {
        let all = self.template.projection().map(|name| variable_object(py, name));
        PyList::new(py, all.collect::<PyResult<Vec<_>>>()?)
    }

    /// The constants, each with whether synonyms replace it.
    fn constants<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Object<'py>, bool)>> {
        let one = |(place, text): (usize, &String)| {
            let rewritten = text.starts_with('<') || self.template.rewritten(place);
            Ok((object_of(py, text.as_bytes())?, rewritten))
        };
        self.constants.iter().enumerate().map(one).collect()
    }

    /// The patterns that decide the units of constants: see [`MeasurablePattern`].
    fn measurable(&self, py: Python<'_>) -> PyResult<Vec<MeasurablePattern>> {
        py.detach(|| self.template.measurable()).map_err(bad_query)
    }

    /// The same query with other constants, as many.
    fn with_constants(&self, terms: Vec<Object<'_>>) -> PyResult<Self> {
        if terms.len() != self.constants.len() {
            return Err(PyValueError::new_err("wrong number of constants"));
        }
        let text = |term: &Object<'_>| {
            let mut text = Vec::new();
            write_text(term, &mut text)?;
            Ok(String::from_utf8_lossy(&text).into_owned())
        };
        let constants = terms.iter().map(text).collect::<PyResult<_>>()?;
        Ok(Self { template: Arc::clone(&self.template), constants })
    }

    /// The branches (patterns and filters), the patterns that solutions can rest on, and why the
    /// branches are not the whole query. Calls that an index decides are not among the patterns.
    fn view<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Vec<BranchRow<'py>>, Vec<Tuple<'py>>, Vec<Cow<'static, str>>)> {
        let (dictionary, filled) = self.filled();
        let FilledTemplate { mut branches, mut supports, mut residual, .. } = filled;
        for operator in self.template.operators() {
            let id = dictionary.get(operator.as_bytes()).map(Node::Constant);
            branches.iter_mut().for_each(|one| one.patterns.retain(|p| Some(p[1]) != id));
            supports.retain(|pattern| Some(pattern[1]) != id);
            residual.push(format!("FILTER {operator}").into());
        }
        let branches = branches.iter().enumerate();
        let branches = branches.map(|(n, branch)| self.branch(py, &dictionary, Some(n), branch));
        let branches = branches.collect::<PyResult<_>>()?;
        let supports = supports.iter().map(|&pattern| {
            self.branch(py, &dictionary, None, &branch_of(pattern)).map(|(patterns, _)| patterns)
        });
        let supports = supports.collect::<PyResult<Vec<_>>>()?.concat();
        Ok((branches, supports, residual))
    }

    /// The properties and objects that patterns ask for, `None` for any.
    fn demanded<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<Vec<(Option<Object<'py>>, Option<Object<'py>>)>> {
        let (dictionary, ids) = self.ids();
        let object = |id: Id| match id {
            ANY => Ok(None),
            id => object_of(py, &dictionary.text(id)).map(Some),
        };
        self.template.demanded(&ids).map(|(p, o)| Ok((object(p)?, object(o)?))).collect()
    }

    /// The triples of a CONSTRUCT, with variables and blank nodes; nothing for another form.
    fn template<'py>(&self, py: Python<'py>) -> PyResult<List<'py>> {
        let query = py.detach(|| self.algebra()).map_err(bad_query)?;
        let triples = match &query {
            spargebra::Query::Construct { template, .. } => template.as_slice(),
            _ => &[],
        };
        let made = triples.iter().map(|TriplePattern { subject, predicate, object }| {
            let nodes = [subject, &predicate.clone().into(), object];
            let nodes = nodes.map(|node| pattern_object(py, node));
            PyTuple::new(py, nodes.into_iter().collect::<PyResult<Vec<_>>>()?)
        });
        PyList::new(py, made.collect::<PyResult<Vec<_>>>()?)
    }
}

/// The patterns and filters of a branch.
pub type BranchRow<'py> = (Vec<Tuple<'py>>, Vec<Tuple<'py>>);

fn pattern_object<'py>(py: Python<'py>, node: &TermPattern) -> PyResult<Object<'py>> {
    match node {
        TermPattern::Variable(variable) => variable_object(py, variable.as_str()),
        TermPattern::Triple(_) => variable_object(py, "_triple"),
        constant => object_of(py, constant.to_string().as_bytes()),
    }
}

/// Makes Python's objects of ids.
struct Objects<'a, 'py> {
    py: Python<'py>,
    dictionary: &'a Dictionary,
    variables: &'a [Object<'py>],
}

impl<'py> Objects<'_, 'py> {
    fn term(&self, id: Id) -> PyResult<Object<'py>> {
        object_of(self.py, &self.dictionary.text(id))
    }

    fn node(&self, node: Node) -> PyResult<Object<'py>> {
        match node {
            Node::Constant(id) => self.term(id),
            Node::Variable(number) => Ok(self.variables[usize::from(number)].clone()),
        }
    }

    fn pattern(&self, [subject, predicate, object]: Pattern) -> PyResult<Tuple<'py>> {
        let nodes = [self.node(subject)?, self.node(predicate)?, self.node(object)?];
        PyTuple::new(self.py, nodes)
    }

    /// A filter as kind, variable and what it is made of.
    fn filter(&self, variable: &Object<'py>, filter: &Filter) -> PyResult<Tuple<'py>> {
        match filter {
            Filter::Compare { operator, constant } => {
                ("compare", variable, operator.name(), self.term(*constant)?).into_pyobject(self.py)
            }
            Filter::Taxonomy { operator, concept } => {
                ("taxonomy", variable, operator.name(), self.term(*concept)?).into_pyobject(self.py)
            }
            Filter::Text { operator, view, folding, argument } => {
                let argument = self.term(*argument)?;
                ("text", variable, operator.name(), argument, view.name(), folding.name())
                    .into_pyobject(self.py)
            }
            Filter::Any(filters) => {
                let tests = filters.iter().map(|one| self.filter(variable, one));
                let tests = PyTuple::new(self.py, tests.collect::<PyResult<Vec<_>>>()?)?;
                let word = if filters.iter().all(is_equality) { "IN" } else { "||" };
                ("any", variable, word, tests).into_pyobject(self.py)
            }
        }
    }
}

/// Whether a filter is one of those that `IN` is made of.
fn is_equality(filter: &Filter) -> bool {
    match filter {
        Filter::Compare { operator, .. } => *operator == Comparison::Equal,
        Filter::Text { operator, view, folding, .. } => {
            (*operator, *view, *folding) == (TextOperator::Equals, TermPart::Term, Folding::None)
        }
        Filter::Taxonomy { .. } | Filter::Any(_) => false,
    }
}
