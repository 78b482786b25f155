//! Query templates: branches of patterns and filters with slots for constants.
//!
//! Queries that differ in constants only share a [`Template`]. It has the branches that every
//! solution satisfies, and the reasons why these may not be the whole query. [`Template::filled`]
//! puts the constants of one query in. A template stores no algebra: [`Template::algebra`] parses
//! its text again.
//!
//! A template takes about 300 bytes, its text, and 24 bytes for each triple pattern. Most templates
//! are stored encoded, with 6 bytes for each triple pattern ([`crate::templates`]).

use crate::algebra::{
    Part, body, comparison_of, either, group, is_distinct, pattern_of, pattern_of_mut,
    projection as projected, substitute, visit,
};
use crate::branch::{
    Branch, Comparison, Filter, Folding, GM, Node, Pattern, Slot, TermPart, Tested, TextOperator,
};
use crate::dictionary::{ANY, Dictionary, Id};
use crate::fault::Fault;
use crate::lexical::{LiteralParts, quote, read_term, string};
use crate::operators::{Operators, check_calls};
use crate::parameterize::{ParameterizedQuery, Parameterizer};
use crate::push_new;
use crate::query_analysis::{
    COMPOSED, Draft, MeasurablePattern, OPEN, QueryAnalyzer, all_steps, alone, is_quantity,
    may_be_empty,
};
use crate::regex::required_parts;
use crate::scan::on_stack;
use crate::values::is_comparable;
use crate::writer::filled;
use hashbrown::{HashMap, HashSet};
use oxrdf::{Literal, NamedNode};
use serde::{Deserialize, Serialize};
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::{Query, SparqlParser};
use std::borrow::Cow;

/// A query's branches and what belongs to them, with its constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilledTemplate {
    /// Every solution satisfies one of these.
    pub branches: Vec<Branch>,
    /// The patterns that a solution can rest on, optional ones too, each with its own variables;
    /// for a property path, any triple with one of its properties.
    pub supports: Vec<Pattern>,
    /// Why the branches are not the whole query; empty where the one branch is.
    pub residual: Vec<Cow<'static, str>>,
    /// Texts that are new, and mentioned by this query in the dictionary.
    pub interned: Vec<Id>,
}

/// A query without its constants.
#[derive(Serialize, Deserialize)]
pub struct Template {
    /// The text, with markers for constants: see [`filled`]. It is not encoded.
    #[serde(skip)]
    pub text: Box<str>,
    branches: Box<[BranchTemplate]>,
    /// The projected variables, each with a line break behind it.
    projection: Box<str>,
    /// Why the branches are not the whole query; constants may add reasons.
    pub residual: Box<[Cow<'static, str>]>,
    supports: Box<[Pattern]>,
    demanded: Box<[[Node; 2]]>,
    kept: Box<[u32]>,
    operators: Box<[Box<str>]>,
    composed: Box<[Box<[u32]>]>,
    /// Whether it calls operators.
    pub calls: bool,
    slots: u32,
    /// SELECT, ASK, CONSTRUCT or DESCRIBE.
    pub form: Cow<'static, str>,
    /// Whether equal solutions count once.
    pub distinct: bool,
    /// Whether its rows are computed over all solutions of its pattern.
    pub aggregates: bool,
    /// Whether recursion over the query needs a large stack.
    pub is_deep: bool,
}

/// A branch before constants are put in; these are given by their numbers.
#[derive(Serialize, Deserialize)]
struct BranchTemplate {
    patterns: Box<[Pattern]>,
    /// The names of variables, each followed by a line break. Names of fresh variables differ from
    /// those of the query.
    names: Box<str>,
    filters: Box<[Tested<Slot>]>,
}

impl BranchTemplate {
    /// A branch, its variables numbered in order of occurrence.
    fn new(draft: Draft, variables: &[Cow<str>]) -> Self {
        let mut numbers: HashMap<u16, u16> = HashMap::new();
        let mut names = String::new();
        let mut number = |node: Node| {
            let Node::Variable(variable) = node else { return node };
            let next = numbers.len() as u16;
            Node::Variable(*numbers.entry(variable).or_insert_with(|| {
                names.push_str(&variables[usize::from(variable)]);
                names.push('\n');
                next
            }))
        };
        let patterns = draft.patterns.into_iter().map(|pattern| pattern.map(&mut number)).collect();
        let filters = draft.filters.into_iter();
        let filters = filters.filter_map(|(variable, test)| Some((*numbers.get(&variable)?, test)));
        Self { patterns, filters: filters.collect(), names: names.into() }
    }
}

/// A parsed query, and its template if that is new.
pub type ParsedQuery = (ParameterizedQuery, Option<Template>);

impl Template {
    /// Analyses a query.
    pub fn new(query: &ParameterizedQuery, parser: &Parameterizer) -> Result<Self, Fault> {
        let most = parser.limits.subscription_patterns;
        on_stack(query.is_deep, || {
            if triple_patterns(&query.query) > most {
                let remedy = "Split it into several subscriptions, or raise the limit.";
                let what = format!("the query exceeds the limit `subscription_patterns` ({most})");
                return Err(Fault::new(what, remedy));
            }
            Self::analyzed(query, parser)
        })
    }

    fn analyzed(of: &ParameterizedQuery, parser: &Parameterizer) -> Result<Self, Fault> {
        let query = &of.query;
        let refused = |what: &str, remedy: &str| Err(Fault::new(what, remedy));
        let pattern = pattern_of(query);
        let form = match query {
            Query::Select { .. } => "SELECT",
            Query::Ask { .. } => "ASK",
            Query::Construct { .. } => "CONSTRUCT",
            Query::Describe { .. } => "DESCRIBE",
        };
        let slots = u32::try_from(of.constants.len()).unwrap_or(u32::MAX);
        let (most, operators) = (parser.limits.subscription_branches, &parser.operators);
        let mut analysis = QueryAnalyzer::new(slots, most, form == "DESCRIBE", operators.clone());
        let drafts = analysis.query(pattern);
        match form {
            "CONSTRUCT" => analysis.add_residual("CONSTRUCT"),
            "DESCRIBE" => {
                analysis.add_residual("DESCRIBE");
                analysis.retain_constants(OPEN, OPEN);
            }
            _ => {}
        }
        if let Query::Construct { template, .. } = query {
            analysis.template(template);
        }
        if let Some(number) = analysis.misplaced_quantity {
            let quantity = of.constants.get(number as usize).map_or("", String::as_str);
            let what = format!("the quantity {quantity} can only be compared with a variable");
            return refused(&what, "Write it as in ?size >= \"40 GB\"^^cdt:ucum.");
        }
        if let Some(name) = analysis.unknown_function {
            let what = format!("the function {name} is not supported");
            return refused(&what, "Use SPARQL 1.1's functions or those of gm:.");
        }
        let calls = check_calls(pattern, operators)?;
        if may_be_empty(body(pattern), true) {
            return refused(
                "it matches an empty graph, so it would match every publication",
                "Add a triple pattern that is not optional.",
            );
        }
        let mut projection: Vec<&str> = Vec::new();
        if form == "SELECT" {
            let variables = projected(pattern).into_iter().flatten();
            projection.extend(variables.map(|variable| variable.as_str()));
        }
        if analysis.variables.len() > usize::from(u16::MAX) {
            let what = format!("more than {} variables", u16::MAX);
            return refused(&what, "Split it into several subscriptions.");
        }
        let names = labels(&analysis.variables, &projection, &drafts);
        let branches = drafts.into_iter().map(|draft| BranchTemplate::new(draft, &names)).collect();
        let is_exact = analysis.residual.is_empty();
        Ok(Self {
            text: of.text.as_str().into(),
            branches,
            projection: projection.iter().flat_map(|name| [name, "\n"]).collect::<String>().into(),
            residual: analysis.residual.into(),
            supports: analysis.supports.into_iter().filter(|_| !is_exact).collect(),
            demanded: analysis.demanded.into_iter().filter(|_| !is_exact).collect(),
            kept: analysis.kept.into(),
            operators: analysis.constants.fixed.into_iter().map(Into::into).collect(),
            composed: analysis.composed.into(),
            calls,
            slots,
            form: form.into(),
            distinct: form == "SELECT" && is_distinct(pattern),
            aggregates: group(body(pattern)).is_some(),
            is_deep: of.is_deep,
        })
    }

    /// The constants that follow those of the slots: operators that have an index.
    pub fn operators(&self) -> impl Iterator<Item = String> {
        self.operators.iter().map(|iri| iri.to_string())
    }

    /// Whether synonyms replace a constant that is a literal; IRIs are always replaced.
    pub fn rewritten(&self, constant: usize) -> bool {
        self.kept.iter().all(|kept| *kept as usize != constant)
    }

    /// The projected variables, in the order of the SELECT clause.
    pub fn projection(&self) -> impl Iterator<Item = &str> {
        self.projection.split_terminator('\n')
    }

    /// The projected variables that the first branch binds, with their numbers there.
    pub fn projected(&self) -> Vec<(String, usize)> {
        let numbers: HashMap<&str, usize> = self.names(0).into_iter().zip(0..).collect();
        self.projection().filter_map(|name| Some((name.to_owned(), *numbers.get(name)?))).collect()
    }

    /// The names of a branch's variables by their numbers; of fresh ones made up, and of no variable
    /// of the query.
    pub fn names(&self, branch: usize) -> Vec<&str> {
        self.branches[branch].names.split_terminator('\n').collect()
    }

    /// The properties and objects that the patterns of a query ask for, those under MINUS and
    /// EXISTS included; [`ANY`] for any.
    pub fn demanded<'a>(&'a self, constants: &'a [Id]) -> impl Iterator<Item = (Id, Id)> + 'a {
        let open = move |node: Node| match node {
            Node::Constant(number) => constants.get(number as usize).copied().unwrap_or(ANY),
            Node::Variable(_) => ANY,
        };
        let plain = self.residual.is_empty().then(|| {
            let patterns = self.branches[0].patterns.iter();
            patterns.map(move |&[_, property, object]| match open(property) {
                ANY => (ANY, ANY),
                property => (property, open(object)),
            })
        });
        let stored = self.demanded.iter().map(move |&[p, o]| (open(p), open(o)));
        plain.into_iter().flatten().chain(stored)
    }

    /// The constants of a query that has this branch only; `None` if the branch lacks some.
    pub fn constants_in(&self, branch: &Branch) -> Option<Vec<Id>> {
        let [part] = &*self.branches else { return None };
        let (mut slots, mut ids) = (Vec::new(), Vec::new());
        for node in part.patterns.iter().flatten() {
            slots.extend(if let Node::Constant(slot) = node { Some(*slot) } else { None });
        }
        for (_, filter) in &part.filters {
            filter.each_constant(&mut |slot| {
                slots.push(if let Slot::Constant(slot) = slot { *slot } else { u32::MAX });
            });
        }
        branch.each_constant(&mut |id| ids.push(id));
        let mut constants = vec![None; self.slots as usize + self.operators.len()];
        for (slot, id) in slots.into_iter().zip(ids) {
            *constants.get_mut(slot as usize)? = Some(id);
        }
        constants.into_iter().collect()
    }

    /// The branches of a query with these constants.
    pub fn filled(&self, constants: &[Id], dictionary: &mut Dictionary) -> FilledTemplate {
        let mut filled =
            FilledTemplate { residual: self.residual.to_vec(), ..FilledTemplate::default() };
        let composed = self.composed.iter();
        let composed: Vec<Id> =
            composed.map(|numbers| composed_of(numbers, constants, dictionary)).collect();
        filled.interned.extend(&composed);
        let put = |node: Node| match node {
            Node::Constant(number) => Node::Constant(match number & COMPOSED {
                0 => constants.get(number as usize).copied().unwrap_or(ANY),
                _ => composed.get((number ^ COMPOSED) as usize).copied().unwrap_or(ANY),
            }),
            variable => variable,
        };
        for part in &self.branches {
            let mut seen = HashSet::with_capacity(part.patterns.len());
            let patterns = part.patterns.iter().map(|pattern| pattern.map(put));
            let patterns = patterns.filter(|pattern| seen.insert(*pattern)).collect();
            let variables = part.names.matches('\n').count() as u16;
            let mut branch = Branch { patterns, variables, filters: Vec::new() };
            for &(variable, ref test) in &part.filters {
                let mark = filled.interned.len();
                let mut filling =
                    ConstantFiller { constants, dictionary, interned: &mut filled.interned };
                let mut found = Vec::new();
                if filling.filter(test, &mut found).is_some() {
                    let mut seen = HashSet::new();
                    found.retain(|one| seen.insert(one.clone()));
                    let filter = match (test, found.len()) {
                        (Filter::Any(_), _) | (_, 0 | 2..) => Filter::Any(found.into()),
                        _ => found.swap_remove(0),
                    };
                    push_new(&mut branch.filters, (variable, filter));
                    continue;
                }
                for id in filled.interned.drain(mark..) {
                    dictionary.release(id);
                }
                let name = match test {
                    Filter::Compare { operator, .. } => operator.name(),
                    Filter::Text { argument: Slot::Regex { .. }, .. } => "REGEX",
                    Filter::Text { operator, .. } => operator.name(),
                    Filter::Taxonomy { operator, .. } => operator.name(),
                    Filter::Any(_) => "||",
                };
                push_new(&mut filled.residual, format!("FILTER {name}").into());
            }
            filled.branches.push(branch);
        }
        filled.supports = match self.residual.is_empty() {
            true => filled.branches[0].patterns.iter().map(|pattern| alone(*pattern)).collect(),
            false => self.supports.iter().map(|pattern| pattern.map(put)).collect(),
        };
        filled
    }

    /// The algebra with slots for constants. Comparisons with quantities are calls of
    /// `gm:compare(left, "operator", right)`.
    pub fn algebra(&self) -> Result<Query, Fault> {
        on_stack(self.is_deep, || {
            let mut query = parse(&filled(&self.text, |_, _| true))?;
            compare_by_calls(pattern_of_mut(&mut query));
            Ok(query)
        })
    }

    /// The algebra of a query with these constants, as N-Triples texts.
    pub fn substituted(&self, constants: &[impl AsRef<str>]) -> Result<Query, Fault> {
        let constants: Option<Vec<_>> =
            constants.iter().map(|text| read_term(text.as_ref())).collect();
        let mut query = self.algebra()?;
        constants
            .and_then(|all| substitute(&mut query, &|slot| all.get(slot as usize).cloned()))
            .ok_or_else(|| Fault::new("a constant is not valid in its place", "Replace it."))?;
        Ok(query)
    }

    /// The patterns whose properties and constants units may change.
    pub fn measurable(&self) -> Result<Vec<MeasurablePattern>, Fault> {
        on_stack(self.is_deep, || {
            let query = parse(&filled(&self.text, |_, _| true))?;
            let mut analysis = QueryAnalyzer::new(self.slots, 1, false, Operators::default());
            analysis.query(pattern_of(&query));
            Ok(analysis.measurable())
        })
    }
}

fn parse(text: &str) -> Result<Query, Fault> {
    let parsed = SparqlParser::new().parse_query(text);
    parsed.map_err(|error| Fault::unreadable(text, &error.to_string()))
}

/// How many triple patterns and steps of property paths a query has, those inside EXISTS and of a
/// template included.
fn triple_patterns(query: &Query) -> usize {
    let mut count = match query {
        Query::Construct { template, .. } => template.len(),
        _ => 0,
    };
    visit(&mut pattern_of(query).clone(), &mut |part| match part {
        Part::Pattern(GraphPattern::Bgp { patterns }) => count += patterns.len(),
        Part::Pattern(GraphPattern::Path { path, .. }) => count += all_steps(path).len(),
        _ => {}
    });
    count
}

/// The names of variables; those of fresh ones are made up, and of no variable of the query.
fn labels<'a>(
    variables: &[Option<&'a str>],
    projection: &[&str],
    drafts: &[Draft],
) -> Vec<Cow<'a, str>> {
    let is_taken = |prefix: &str| {
        variables.iter().flatten().chain(projection).any(|name| name.starts_with(prefix))
    };
    let mut prefix = "_".to_owned();
    while is_taken(&prefix) {
        prefix.push('_');
    }
    let mut names: Vec<Cow<str>> =
        variables.iter().map(|name| name.unwrap_or_default().into()).collect();
    let mut fresh = 0;
    for node in drafts.iter().flat_map(|draft| draft.patterns.iter().flatten()) {
        if let Node::Variable(variable) = *node
            && names[usize::from(variable)].is_empty()
        {
            names[usize::from(variable)] = format!("{prefix}{fresh}").into();
            fresh += 1;
        }
    }
    names
}

/// The datatype of the text that stands for several constants: a line each.
pub(crate) const COMPOSITION: &str = "urn:graphmatch:constants";

/// A term that stands for several constants, mentioned once more.
fn composed_of(numbers: &[u32], constants: &[Id], dictionary: &mut Dictionary) -> Id {
    let text = |&number: &u32| {
        let id = constants.get(number as usize);
        id.map_or(Vec::new(), |&id| dictionary.text(id).into_owned())
    };
    let lines = numbers.iter().map(text).collect::<Vec<_>>().join(&b'\n');
    let text = quote(&String::from_utf8_lossy(&lines));
    dictionary.intern(format!("{text}^^<{COMPOSITION}>").as_bytes())
}

// --- Constants in filters -----------------------------------------------------------------------

struct ConstantFiller<'a> {
    constants: &'a [Id],
    dictionary: &'a mut Dictionary,
    interned: &'a mut Vec<Id>,
}

impl ConstantFiller<'_> {
    fn constant(&self, slot: &Slot) -> Option<Id> {
        let (Slot::Constant(number) | Slot::Folded(number, _)) = slot else { return None };
        self.constants.get(*number as usize).copied().filter(|id| *id != ANY)
    }

    /// Adds a filter with its constants; nothing where an index cannot take it then.
    fn filter(&mut self, filter: &Filter<Slot>, found: &mut Vec<Filter>) -> Option<()> {
        let text =
            |operator, view, folding, argument| Filter::Text { operator, view, folding, argument };
        let filled = match *filter {
            Filter::Any(ref filters) => {
                return filters.iter().try_for_each(|filter| self.filter(filter, found));
            }
            Filter::Text { view, folding, argument: Slot::Regex { pattern, flags }, .. } => {
                let (texts, caseless) = self.parts(pattern, flags, folding == Folding::None)?;
                let folding = if caseless { Folding::Caseless } else { folding };
                let texts = texts.iter().map(|part| self.intern(part, None));
                texts.map(|id| text(TextOperator::Contains, view, folding, id)).collect()
            }
            Filter::Text { operator, view, folding, ref argument } => {
                vec![text(operator, view, folding, self.string(argument)?)]
            }
            Filter::Taxonomy { operator, ref concept } => {
                vec![Filter::Taxonomy { operator, concept: self.constant(concept)? }]
            }
            Filter::Compare { operator, ref constant } => {
                let constant = self.constant(constant)?;
                let literal = self.dictionary.text(constant);
                let has_language = string_of(&literal).is_some_and(|(_, tag)| tag.is_some());
                if operator == Comparison::Equal && has_language {
                    vec![text(TextOperator::Equals, TermPart::Term, Folding::None, constant)]
                } else if !is_comparable(operator, &literal) {
                    return None;
                } else {
                    vec![Filter::Compare { operator, constant }]
                }
            }
        };
        found.extend(filled);
        Some(())
    }

    /// A constant that is a string, its case changed.
    fn string(&mut self, slot: &Slot) -> Option<Id> {
        let id = self.constant(slot)?;
        let literal = self.dictionary.text(id).into_owned();
        let (text, tag) = string_of(&literal)?;
        let folded = match slot {
            Slot::Folded(_, Folding::Lower) => text.to_lowercase(),
            Slot::Folded(_, Folding::Upper) => text.to_uppercase(),
            _ => return Some(id),
        };
        Some(if folded == text { id } else { self.intern(&folded, tag) })
    }

    fn parts(&self, pattern: u32, flags: Option<u32>, fold: bool) -> Option<(Vec<String>, bool)> {
        let plain = |number: u32| {
            let literal = self.dictionary.text(self.constant(&Slot::Constant(number))?);
            string_of(&literal).filter(|(_, tag)| tag.is_none()).map(|(text, _)| text)
        };
        let flags = flags.map_or(Some(String::new()), plain)?;
        required_parts(&plain(pattern)?, &flags, fold)
    }

    fn intern(&mut self, text: &str, tag: Option<&[u8]>) -> Id {
        let mut literal = quote(text).into_bytes();
        if let Some(tag) = tag {
            literal.push(b'@');
            literal.extend_from_slice(tag);
        }
        let id = self.dictionary.intern(&literal);
        self.interned.push(id);
        id
    }
}

/// The text of a string, and its language tag; nothing of a tag with a direction.
fn string_of(literal: &[u8]) -> Option<(String, Option<&[u8]>)> {
    Some((string(literal)?.into_owned(), LiteralParts::of(literal)?.tag))
}

// --- Comparisons with quantities ----------------------------------------------------------------

/// Replaces comparisons with quantities by calls of `gm:compare`.
fn compare_by_calls(pattern: &mut GraphPattern) {
    visit(pattern, &mut |part| {
        let Part::Expression(expression) = part else { return };
        if let Some(call) = compare_call(expression) {
            *expression = call;
        }
    });
}

fn compare_call(expression: &Expression) -> Option<Expression> {
    let is_measured =
        |one: &&Expression| matches!(one, Expression::Literal(one) if is_quantity(one));
    if let Expression::In(value, list) = expression {
        list.iter().find(is_measured)?;
        let equal = |one: &Expression| Expression::Equal(value.clone(), one.clone().into());
        return either(list.iter().map(equal).collect()); // `visit` shows the comparisons next.
    }
    let (operator, value, quantity) = comparison_of(expression)?;
    if !is_measured(&quantity) {
        return None;
    }
    let compare = Function::Custom(NamedNode::new_unchecked(format!("{GM}compare")));
    let sign = Literal::new_simple_literal(operator.name()).into();
    Some(Expression::FunctionCall(compare, vec![value.clone(), sign, quantity.clone()]))
}

#[cfg(test)]
mod tests;
