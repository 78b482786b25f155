//! Queries as templates with constants.
//!
//! A [`Template`] is what queries that differ in constants only have in common: the branches of
//! patterns and filters that every solution satisfies, and why these may not be the whole query.
//! It is made once for each skeleton by a complete SPARQL parser; [`Template::filled`] puts the
//! constants of one query in, and decides what these decide.
//!
//! A template keeps no algebra: it is parsed again from the skeleton where it is needed
//! ([`Template::substituted`], [`Template::uses`]).
//!
//! Memory: some 300 bytes, the skeleton, and 24 bytes for each triple pattern. Of most templates
//! only what a snapshot has is kept: the skeleton, the names of variables, and some 3 bytes for each
//! triple pattern ([`crate::templates`]).

use crate::cut::{self, Cut, Cutter, quote, slot_of_literal};
use crate::dictionary::{ANY, Dictionary, Id};
use crate::necessary::{
    Analysis, Draft, GM, Misuse, OPEN, Places, VARIABLE, comparison_of, may_be_empty, mirrored,
    operands_mut, parts_mut,
};
use crate::pattern::{
    Branch, Comparison, Filter, Folding, Node, Pattern, TaxonomyOperator, TextOperator, View,
};
use crate::regex::required_parts;
use crate::rest::{Resting, body, pattern_of, pattern_of_mut};
use crate::snapshot::{Loader, Saver, SnapshotError, Stored, damaged, stored};
use crate::values::{self, is_comparable};
use hashbrown::{HashMap, HashSet};
use oxrdf::{Literal, NamedNode};
use spargebra::algebra::{Expression, Function, GraphPattern};
use spargebra::{Query, SparqlParser};
use std::borrow::Cow;

/// The stack on which deep queries are parsed and analysed.
const STACK: usize = 64 << 20;

/// Bounds on what one query may cost; each error that they cause names the limit.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// How many bytes a query may have.
    pub document_bytes: usize,
    /// How deep brackets may nest.
    pub nesting: usize,
    /// How many keywords, functions and operators there may be (`subscription_operators`).
    pub operators: usize,
    /// How many branches there may be before only what they share is used
    /// (`subscription_branches`).
    pub branches: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { document_bytes: 256 << 20, nesting: 256, operators: 1000, branches: 16 }
    }
}

/// Why a text is no subscription, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
    /// The line, from 1, where it is known.
    pub line: Option<usize>,
    /// The column in characters, from 1, where it is known.
    pub column: Option<usize>,
}

impl QueryError {
    pub(crate) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into(), line: None, column: None }
    }

    /// Adds the place of an offset into the text; none where it is beyond the text.
    pub(crate) fn at(mut self, text: &str, offset: usize) -> Self {
        if let Some(before) = text.get(..offset) {
            self.line = Some(before.bytes().filter(|byte| *byte == b'\n').count() + 1);
            let line = before.rsplit('\n').next().unwrap_or_default();
            self.column = Some(line.chars().count() + 1);
        }
        self
    }

    pub(crate) fn out_of_place(text: &str, offset: usize) -> Self {
        let rest = text.get(offset..).and_then(|rest| rest.split_whitespace().next());
        let what = match rest {
            Some(word) => {
                format!("“{}” is out of place", word.chars().take(40).collect::<String>())
            }
            None => "it ends too early".to_owned(),
        };
        let remedy = "Correct the query there, or just before.";
        Self::new(format!("not SPARQL: {what}"), remedy).at(text, offset)
    }

    /// Says where a query stops being SPARQL, and what stands there, by the parser's message: what
    /// that would have expected instead is a list that helps nobody.
    pub(crate) fn unreadable(text: &str, message: &str) -> Self {
        match place(text, message) {
            Some((offset, _)) => Self::out_of_place(text, offset),
            None => Self::new(format!("not SPARQL: {message}"), "Correct the query."),
        }
    }

    /// What the parser says of a query that is SPARQL and makes no sense, if it does.
    pub(crate) fn senseless(text: &str, message: &str) -> Option<Self> {
        let (offset, reason) = place(text, message)?;
        let reasons = reason.strip_prefix("one of ").unwrap_or(reason);
        let mut reasons = reasons.split(", ");
        let reason = reasons.find(|one| REASONS.iter().any(|known| one.starts_with(known)))?;
        let remedy = if reason.contains("that is unbound") {
            "Name it in GROUP BY, put it into an aggregate, or leave it out."
        } else {
            "Correct the query."
        };
        Some(Self::new(format!("not SPARQL: {reason}"), remedy).at(text, offset))
    }
}

/// The offset that a parser's message names, and what it expected there.
fn place<'a>(text: &str, message: &'a str) -> Option<(usize, &'a str)> {
    let (place, reason) = message.strip_prefix("error at ")?.split_once(": expected ")?;
    let (line, column) = place.split_once(':')?;
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    let before: usize = lines.map(str::len).sum();
    let rest = &text[before..];
    let within = rest.char_indices().nth(column.saturating_sub(1));
    Some((before + within.map_or(rest.len(), |(at, _)| at), reason))
}

/// How the parser's sentences about queries begin that are SPARQL but for their meaning.
const REASONS: [&str; 13] = [
    "BIND is",
    "The SELECT",
    "SELECT *",
    "Duplicated",
    "Repeated",
    "The VALUES",
    "Already used",
    "Unexpected aggregate",
    "Reifiers",
    "The query limit",
    "The query offset",
    "Literals or triple terms",
    "the only base directions",
];

/// The query forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `SELECT`
    Select,
    /// `ASK`
    Ask,
    /// `CONSTRUCT`
    Construct,
    /// `DESCRIBE`
    Describe,
}

/// A test of one variable before constants are put in; these are given by their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// As [`Filter::Compare`].
    Compare {
        /// The comparison, with the variable on its left.
        operator: Comparison,
        /// The constant on its right.
        constant: u32,
    },
    /// As [`Filter::Text`].
    Text {
        /// How the texts are compared.
        operator: TextOperator,
        /// Which text of the variable's term.
        view: View,
        /// What is done with its case.
        folding: Folding,
        /// The constant.
        argument: u32,
        /// What the query does with the constant's case.
        argument_folding: Folding,
    },
    /// `REGEX`, of which what every match contains is used.
    Regex {
        /// Which text of the variable's term.
        view: View,
        /// What is done with its case.
        folding: Folding,
        /// The expression.
        pattern: u32,
        /// Its flags.
        flags: Option<u32>,
    },
    /// As [`Filter::Taxonomy`].
    Taxonomy {
        /// The operator.
        operator: TaxonomyOperator,
        /// The concept.
        concept: u32,
    },
    /// At least one of these holds.
    Any {
        /// Whether it is written with `IN`, not with `||`.
        list: bool,
        /// The tests, none of them of this kind.
        tests: Box<[Test]>,
    },
}

impl Test {
    /// Its operator or function, as the remainder names it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Compare { operator, .. } => operator.sign(),
            Self::Text { operator: TextOperator::Contains, .. } => "CONTAINS",
            Self::Text { operator: TextOperator::Starts, .. } => "STRSTARTS",
            Self::Text { operator: TextOperator::Ends, .. } => "STRENDS",
            Self::Text { operator: TextOperator::Equals, .. } => "=",
            Self::Text { operator: TextOperator::Matches, .. } => "LANGMATCHES",
            Self::Regex { .. } => "REGEX",
            Self::Taxonomy { operator: TaxonomyOperator::Descendant, .. } => {
                "<urn:graphmatch:descendantOf>"
            }
            Self::Taxonomy { operator: TaxonomyOperator::Ancestor, .. } => {
                "<urn:graphmatch:ancestorOf>"
            }
            Self::Taxonomy { operator: TaxonomyOperator::Child, .. } => "<urn:graphmatch:childOf>",
            Self::Any { list: true, .. } => "IN",
            Self::Any { .. } => "||",
        }
    }
}

/// A use of a constant: the property whose value it is, or is compared with, and the properties
/// beside that one, by the numbers of constants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// The constant.
    pub constant: u32,
    /// The property.
    pub attribute: u32,
    /// The properties of the same subject, each with a constant that it has or is equal to.
    pub siblings: Vec<(u32, Option<u32>)>,
}

/// A query's branches and what belongs to them, with its constants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filled {
    /// Every solution satisfies one of these.
    pub branches: Vec<Branch>,
    /// The patterns that a solution can rest on, optional ones too, each with its own variables;
    /// for a property path, any triple with one of its properties.
    pub supports: Vec<Pattern>,
    /// Why the branches are not the whole query; empty where the one branch is.
    pub remainder: Vec<Cow<'static, str>>,
    /// Texts that are new, and mentioned by this query in the dictionary.
    pub interned: Vec<Id>,
    /// The branches and filters that are written with `IN`.
    pub lists: Vec<(usize, usize)>,
}

/// What queries that differ in constants only have in common.
pub struct Template {
    skeleton: Box<str>,
    branches: Box<[Part]>,
    /// The projected variables, each with a line break behind it.
    projection: Box<str>,
    more: Option<Box<More>>,
    slots: u32,
    form: Form,
    distinct: bool,
    resting: Resting,
    deep: bool,
}

/// A test and the number of its variable, constants by their numbers.
pub type TestedPlace = (u16, Test);

/// A branch before constants are put in; these are given by their numbers.
struct Part {
    patterns: Box<[Pattern]>,
    /// The names of variables, each with a line break behind it; `>` and a number for a fresh one,
    /// the same in each branch.
    names: Box<str>,
    filters: Box<[(u16, Test)]>,
}

impl Part {
    /// Whether its variables are among its names.
    fn is_sound(&self) -> bool {
        let count = self.names.split_terminator('\n').count();
        let is_there = |&number: &u16| usize::from(number) < count;
        let is_node = |node: &Node| match node {
            Node::Variable(number) => is_there(number),
            Node::Constant(_) => true,
        };
        count <= usize::from(u16::MAX)
            && self.patterns.iter().flatten().all(is_node)
            && self.filters.iter().all(|(number, _)| is_there(number))
    }

    /// A branch, its variables numbered in order of occurrence; nothing where there are too many.
    fn new(draft: &Draft, variables: &[Option<&str>]) -> Option<Self> {
        let mut numbers: HashMap<u32, u16> = HashMap::new();
        let mut names = String::new();
        let mut patterns = Vec::with_capacity(draft.patterns.len());
        for places in &draft.patterns {
            patterns.push(places.map(|place| match node(place) {
                Node::Variable(_) => {
                    let next = numbers.len() as u16;
                    Node::Variable(*numbers.entry(place).or_insert_with(|| {
                        let (before, rest) = variables.split_at((place & !VARIABLE) as usize);
                        match rest.first().copied().flatten() {
                            Some(name) => names.push_str(name),
                            None => {
                                let fresh = before.iter().filter(|name| name.is_none()).count();
                                names.push_str(&format!(">{fresh}"));
                            }
                        }
                        names.push('\n');
                        next
                    }))
                }
                constant => constant,
            }));
        }
        let filters = draft.filters.iter();
        let filters =
            filters.filter_map(|(place, test)| Some((*numbers.get(place)?, test.clone())));
        let fits = numbers.len() <= usize::from(u16::MAX);
        let filters = filters.collect();
        fits.then(|| Self { patterns: patterns.into(), names: names.into(), filters })
    }
}

/// What a query of triple patterns and filters alone does not have.
#[derive(Default)]
struct More {
    remainder: Box<[Cow<'static, str>]>,
    supports: Box<[Places]>,
    mentions: Box<[[u32; 2]]>,
    kept: Box<[u32]>,
    fixed: Box<[Box<str>]>,
}

stored!(
    enum Form {
        Select,
        Ask,
        Construct,
        Describe,
    }
);
stored!(
    enum Resting {
        Solutions,
        Pattern,
        Whole,
        Both,
    }
);
stored!(Template { skeleton, branches, projection, more, slots, form, distinct, resting, deep });
stored!(Part { patterns, names, filters });
stored!(More { remainder, supports, mentions, kept, fixed });

impl Stored for Test {
    fn save(&self, to: &mut Saver) {
        match self {
            Self::Compare { operator, constant } => (0_u8, *operator, *constant).save(to),
            Self::Text { operator, view, folding, argument, argument_folding } => {
                (1_u8, *operator, *view).save(to);
                (*folding, *argument, *argument_folding).save(to);
            }
            Self::Regex { view, folding, pattern, flags } => {
                (2_u8, *view, *folding).save(to);
                (*pattern, *flags).save(to);
            }
            Self::Taxonomy { operator, concept } => (3_u8, *operator, *concept).save(to),
            Self::Any { list, tests } => {
                (4_u8, *list).save(to);
                tests.save(to);
            }
        }
    }

    fn load(from: &mut Loader) -> Result<Self, SnapshotError> {
        let kind = u8::load(from)?;
        if kind != 4 {
            return Self::load_simple(kind, from);
        }
        let (list, count) = <(bool, usize)>::load(from)?;
        let mut tests = Vec::new();
        for _ in 0..count {
            let kind = u8::load(from)?;
            tests.push(Self::load_simple(kind, from)?);
        }
        Ok(Self::Any { list, tests: tests.into() })
    }
}

impl Test {
    /// Reads a test that is no disjunction.
    fn load_simple(kind: u8, from: &mut Loader) -> Result<Self, SnapshotError> {
        Ok(match kind {
            0 => Self::Compare { operator: Stored::load(from)?, constant: Stored::load(from)? },
            1 => Self::Text {
                operator: Stored::load(from)?,
                view: Stored::load(from)?,
                folding: Stored::load(from)?,
                argument: Stored::load(from)?,
                argument_folding: Stored::load(from)?,
            },
            2 => Self::Regex {
                view: Stored::load(from)?,
                folding: Stored::load(from)?,
                pattern: Stored::load(from)?,
                flags: Stored::load(from)?,
            },
            3 => Self::Taxonomy { operator: Stored::load(from)?, concept: Stored::load(from)? },
            _ => return damaged("a test that there is not"),
        })
    }
}

impl Template {
    /// Whether a template that was read is one.
    pub fn is_sound(&self, cutter: &Cutter, cut: &mut Cut) -> bool {
        cutter.cut(&cut::expanded(&self.skeleton), cut) == Ok(self.deep)
            && cut.len() == self.slots()
            && !self.branches.is_empty()
            && self.branches.iter().all(Part::is_sound)
    }

    /// Makes the template of a text that was cut.
    ///
    /// A text that parses only as it is, not cut, is written again by the parser: the cut has
    /// another skeleton and other constants then.
    pub fn new(cutter: &Cutter, text: &str, cut: &mut Cut) -> Result<Self, QueryError> {
        let deep = cutter.cut(text, cut)?;
        on_stack(deep, || {
            let query = match parse(&cut::expanded(cut.skeleton())) {
                Ok(query) => query,
                Err(error) => {
                    let whole = cutter.parse(text)?;
                    let written = whole.to_string();
                    if parse(&written)? != whole {
                        return Err(error);
                    }
                    cutter.cut(&written, cut)?;
                    parse(&cut::expanded(cut.skeleton()))?
                }
            };
            Self::analysed(&query, cut, cutter.limits.branches, deep).map_err(
                |(error, constant)| match constant.and_then(|constant| cut.offset(constant)) {
                    Some(offset) => error.at(text, offset),
                    None => error,
                },
            )
        })
    }

    fn analysed(
        query: &Query,
        cut: &Cut,
        most: usize,
        deep: bool,
    ) -> Result<Self, (QueryError, Option<u32>)> {
        let skeleton = cut.skeleton();
        let refused = |what: &str, remedy: &str| Err((QueryError::new(what, remedy), None));
        let pattern = pattern_of(query);
        let form = match query {
            Query::Select { .. } => Form::Select,
            Query::Ask { .. } => Form::Ask,
            Query::Construct { .. } => Form::Construct,
            Query::Describe { .. } => Form::Describe,
        };
        let slots = u32::try_from(cut.len()).unwrap_or(u32::MAX);
        let mut analysis = Analysis::new(slots, most, form == Form::Describe);
        let drafts = analysis.query(pattern);
        match form {
            Form::Construct => analysis.leave_open("CONSTRUCT"),
            Form::Describe => {
                analysis.leave_open("DESCRIBE");
                analysis.mention(OPEN, OPEN);
            }
            _ => {}
        }
        if let Query::Construct { template, .. } = query {
            analysis.template(template);
        }
        match analysis.misuse {
            None => {}
            Some(Misuse::Quantity(number)) => {
                let what = "a quantity can only be compared with a variable";
                let remedy = "Write it as in ?size >= \"40 GB\"^^cdt:ucum.";
                return Err((QueryError::new(what, remedy), Some(number)));
            }
            Some(Misuse::Function(name)) => {
                let what = format!("The custom function {name} is not supported");
                return refused(&what, "Use SPARQL 1.1's functions or those of gm:.");
            }
        }
        if form == Form::Describe && !skeleton.contains('{') {
            return refused("it has no WHERE", "Say which triples it waits for: WHERE { … }.");
        }
        if may_be_empty(body(pattern), true) {
            return refused(
                "its pattern can be met by nothing at all, so it would match every publication",
                "Add a triple pattern that is not optional.",
            );
        }
        let mut distinct = false;
        let mut projection: Vec<&str> = Vec::new();
        if form == Form::Select {
            let mut outer = pattern;
            loop {
                outer = match outer {
                    GraphPattern::Slice { inner, .. } | GraphPattern::Reduced { inner } => inner,
                    GraphPattern::Distinct { inner } => {
                        distinct = true;
                        inner
                    }
                    GraphPattern::Project { variables, .. } => {
                        projection = variables.iter().map(|one| one.as_str()).collect();
                        break;
                    }
                    _ => break,
                }
            }
            if selects_all(skeleton) {
                let order = first_occurrences(skeleton);
                projection.sort_by_key(|name| order.get(name).copied().unwrap_or(usize::MAX));
            }
        }
        let parts = drafts.iter().map(|draft| Part::new(draft, &analysis.variables));
        let Some(branches) = parts.collect() else {
            let what = format!("more than {} variables", u16::MAX);
            return refused(&what, "Split it into several subscriptions.");
        };
        let is_exact = analysis.remainder.is_empty();
        let more = More {
            remainder: analysis.remainder.into(),
            supports: if is_exact { Box::default() } else { analysis.supports.into() },
            mentions: if is_exact { Box::default() } else { analysis.mentions.into() },
            kept: analysis.kept.into(),
            fixed: analysis.constants.fixed.into_iter().map(Into::into).collect(),
        };
        let is_plain = is_exact && more.kept.is_empty() && more.fixed.is_empty();
        Ok(Self {
            skeleton: skeleton.into(),
            branches,
            projection: projection.iter().flat_map(|name| [name, "\n"]).collect::<String>().into(),
            more: (!is_plain).then(|| Box::new(more)),
            slots,
            form,
            distinct,
            resting: Resting::of(query),
            deep,
        })
    }

    /// The text without constants.
    pub fn skeleton(&self) -> &str {
        &self.skeleton
    }

    /// SELECT, ASK, CONSTRUCT or DESCRIBE.
    pub fn form(&self) -> Form {
        self.form
    }

    /// Whether equal solutions count once.
    pub fn distinct(&self) -> bool {
        self.distinct
    }

    /// What the condition that a solution rests on the publication is put to.
    pub fn resting(&self) -> Resting {
        self.resting
    }

    /// Why the branches are not the whole query; constants may add reasons.
    pub fn remainder(&self) -> &[Cow<'static, str>] {
        self.more.as_ref().map_or(&[], |more| &more.remainder)
    }

    /// How many constants a query of this template has in its text.
    pub fn slots(&self) -> usize {
        self.slots as usize
    }

    /// The constants that every query of this template has behind those of its text, of RDF's own
    /// vocabulary.
    pub fn fixed(&self) -> &[Box<str>] {
        self.more.as_ref().map_or(&[], |more| &more.fixed)
    }

    /// Whether synonyms replace a constant that is a literal; IRIs are always replaced.
    pub fn rewritten(&self, constant: usize) -> bool {
        self.more
            .as_ref()
            .is_none_or(|more| more.kept.iter().all(|kept| *kept as usize != constant))
    }

    /// The projected variables, in the order of the SELECT clause.
    pub fn projection(&self) -> impl Iterator<Item = &str> {
        self.projection.split_terminator('\n')
    }

    /// The projected variables that the first branch binds, with their numbers there.
    pub fn projected(&self) -> impl Iterator<Item = (&str, u16)> {
        let numbers: HashMap<Option<&str>, u16> = self.names(0).into_iter().zip(0..).collect();
        self.projection().filter_map(move |name| Some((name, *numbers.get(&Some(name))?)))
    }

    /// The names of a branch's variables by their numbers; none for fresh ones.
    pub fn names(&self, branch: usize) -> Vec<Option<&str>> {
        let names = self.branches[branch].names.split_terminator('\n');
        names.map(|name| Some(name).filter(|name| !name.starts_with('>'))).collect()
    }

    /// The names of a branch's variables by their numbers; of fresh ones made up, and of no variable
    /// of the query.
    pub fn labels(&self, branch: usize) -> Vec<Cow<'_, str>> {
        let is_taken = |label: &str| {
            let all = self.branches.iter().flat_map(|one| one.names.split_terminator('\n'));
            all.chain(self.projection()).any(|name| name == label)
        };
        let mut fresh = 0;
        let label = |name: Option<&_>| match name {
            Some(name) => Cow::Borrowed(*name),
            None => {
                let mut label = format!("_{fresh}");
                fresh += 1;
                while is_taken(&label) {
                    label.insert(0, '_');
                }
                Cow::Owned(label)
            }
        };
        self.names(branch).iter().map(Option::as_ref).map(label).collect()
    }

    /// The properties and objects that the patterns of a query ask for, those under MINUS and
    /// EXISTS included; [`ANY`] for any.
    pub fn mentions<'a>(&'a self, constants: &'a [Id]) -> impl Iterator<Item = (Id, Id)> + 'a {
        let put = move |place: u32| constants.get(place as usize).copied().unwrap_or(ANY);
        let open = move |node: Node| match node {
            Node::Constant(number) => put(number),
            Node::Variable(_) => ANY,
        };
        let plain = self.remainder().is_empty().then(|| {
            let patterns = self.branches[0].patterns.iter();
            patterns.map(move |&[_, property, object]| match open(property) {
                ANY => (ANY, ANY),
                property => (property, open(object)),
            })
        });
        let mentions: &[[u32; 2]] = self.more.as_ref().map_or(&[], |more| &more.mentions);
        let stored = mentions.iter().map(move |[p, o]| (put(*p), put(*o)));
        plain.into_iter().flatten().chain(stored)
    }

    /// The patterns and the filters of the only branch, constants by their numbers; nothing where
    /// there are several.
    pub fn only_branch(&self) -> Option<(&[Pattern], &[TestedPlace])> {
        match &self.branches[..] {
            [part] => Some((&part.patterns, &part.filters)),
            _ => None,
        }
    }

    /// The branches of a query with these constants: those of its text, and behind them
    /// [`Template::fixed`].
    pub fn filled(&self, constants: &[Id], dictionary: &mut Dictionary) -> Filled {
        let mut filled = Filled { remainder: self.remainder().to_vec(), ..Filled::default() };
        let put = |node: Node| match node {
            Node::Constant(number) => {
                Node::Constant(constants.get(number as usize).copied().unwrap_or(ANY))
            }
            variable => variable,
        };
        for part in &self.branches {
            let mut branch = Branch::default();
            let mut seen = HashSet::new();
            for pattern in part.patterns.iter().map(|pattern| pattern.map(put)) {
                let is_new = match branch.patterns.len() {
                    0..32 => !branch.patterns.contains(&pattern),
                    32 => {
                        seen.extend(branch.patterns.iter().copied());
                        seen.insert(pattern)
                    }
                    _ => seen.insert(pattern),
                };
                if is_new {
                    let variables = pattern.iter().filter_map(|node| match node {
                        Node::Variable(variable) => Some(variable + 1),
                        Node::Constant(_) => None,
                    });
                    branch.variables = variables.fold(branch.variables, u16::max);
                    branch.patterns.push(pattern);
                }
            }
            for &(variable, ref test) in &part.filters {
                let mark = filled.interned.len();
                let mut filling = Filling { constants, dictionary, interned: &mut filled.interned };
                let mut found = Vec::new();
                if filling.test(test, &mut found).is_some() {
                    let filter = match (test, found.len()) {
                        (Test::Any { .. }, _) | (_, 0 | 2..) => Filter::Any(found.into()),
                        _ => found.swap_remove(0),
                    };
                    if !branch.filters.iter().any(|known| *known == (variable, filter.clone())) {
                        if matches!(test, Test::Any { list: true, .. }) {
                            filled.lists.push((filled.branches.len(), branch.filters.len()));
                        }
                        branch.filters.push((variable, filter));
                    }
                    continue;
                }
                for id in filled.interned.drain(mark..) {
                    dictionary.release(id);
                }
                let reason = Cow::from(format!("FILTER {}", test.word()));
                if !filled.remainder.contains(&reason) {
                    filled.remainder.push(reason);
                }
            }
            filled.branches.push(branch);
        }
        filled.supports = match &self.more {
            Some(more) if !self.remainder().is_empty() => {
                more.supports.iter().map(|places| places.map(node).map(put)).collect()
            }
            _ => filled.branches[0].patterns.iter().map(|pattern| alone(*pattern)).collect(),
        };
        filled
    }

    /// The algebra of a query with these constants, as N-Triples texts. Comparisons with quantities
    /// are calls of `gm:compare(left, "operator", right)`.
    pub fn substituted(&self, constants: &[impl AsRef<str>]) -> Result<Query, QueryError> {
        let (mut quantities, mut measured) = (Vec::new(), false);
        let text = cut::filled(&self.skeleton, |number, is_quantity, text| {
            let constant = constants.get(number).map(AsRef::as_ref).unwrap_or_default();
            let literal = if is_quantity { constant.parse().ok() } else { None };
            measured |= literal.is_some();
            if literal.is_none() {
                text.push_str(constant);
                text.push(' '); // a language tag would run into a name
            }
            quantities.push(literal);
            is_quantity && quantities.last().is_some_and(Option::is_some)
        });
        on_stack(self.deep, || {
            let mut query = parse(&text)?;
            if measured {
                Calls { quantities: &quantities }.pattern(pattern_of_mut(&mut query));
            }
            Ok(query)
        })
    }

    /// Which values of which properties the constants of a query are: what their units depend on.
    pub fn uses(&self) -> Result<Vec<Use>, QueryError> {
        on_stack(self.deep, || {
            let query = parse(&cut::expanded(&self.skeleton))?;
            let mut analysis = Analysis::new(self.slots, 1, false);
            analysis.query(pattern_of(&query));
            Ok(uses_among(&analysis.stated, &analysis.compared))
        })
    }
}

fn parse(text: &str) -> Result<Query, QueryError> {
    let parsed = SparqlParser::new().parse_query(text);
    parsed.map_err(|error| QueryError::unreadable(text, &error.to_string()))
}

/// Runs what is recursive over a query, on a stack that is large enough.
pub(crate) fn on_stack<T: Send>(
    deep: bool,
    run: impl FnOnce() -> Result<T, QueryError> + Send,
) -> Result<T, QueryError> {
    if !deep {
        return run();
    }
    let too_deep = || QueryError::new("nested too deeply", "Nest fewer brackets.");
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.map_err(|_| too_deep())?.join().map_err(|_| too_deep())?
    })
}

fn node(place: u32) -> Node {
    match place & VARIABLE {
        0 => Node::Constant(place),
        _ => Node::Variable((place & !VARIABLE) as u16),
    }
}

/// A pattern with variables of its own, numbered from 0.
fn alone(pattern: Pattern) -> Pattern {
    let mut found: Vec<Node> = Vec::with_capacity(3);
    pattern.map(|node| {
        let Node::Variable(_) = node else { return node };
        let number = found.iter().position(|known| *known == node).unwrap_or_else(|| {
            found.push(node);
            found.len() - 1
        });
        Node::Variable(number as u16)
    })
}

/// Whether a skeleton is a `SELECT *`.
fn selects_all(skeleton: &str) -> bool {
    let body = match skeleton.strip_prefix("BASE <") {
        Some(rest) => rest.split_once("> ").map_or("", |(_, body)| body),
        None => skeleton,
    };
    let head = body.split(['{', '(', '?']).next().unwrap_or_default();
    head.split(' ').take(3).any(|word| word == "*")
}

/// Where each variable occurs first in a skeleton.
fn first_occurrences(skeleton: &str) -> HashMap<&str, usize> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_' || !c.is_ascii();
    let mut found = HashMap::new();
    for (at, _) in skeleton.match_indices('?') {
        let rest = &skeleton[at + 1..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        found.entry(&rest[..end]).or_insert(at);
    }
    found
}

// --- Constants in filters -----------------------------------------------------------------------

struct Filling<'a> {
    constants: &'a [Id],
    dictionary: &'a mut Dictionary,
    interned: &'a mut Vec<Id>,
}

impl Filling<'_> {
    fn constant(&self, number: u32) -> Option<Id> {
        self.constants.get(number as usize).copied().filter(|id| *id != ANY)
    }

    /// Adds a test with its constants; nothing where an index cannot take it then.
    fn test(&mut self, test: &Test, found: &mut Vec<Filter>) -> Option<()> {
        let mut add = |filter: Filter| {
            if !found.contains(&filter) {
                found.push(filter);
            }
        };
        match test {
            Test::Any { tests, .. } => {
                for test in tests {
                    self.test(test, found)?;
                }
            }
            Test::Taxonomy { operator, concept } => {
                add(Filter::Taxonomy { operator: *operator, concept: self.constant(*concept)? });
            }
            Test::Compare { operator, constant } => {
                let constant = self.constant(*constant)?;
                let text = self.dictionary.text(constant);
                let language = string_of(&text).is_some_and(|(_, tag)| tag.is_some());
                if *operator == Comparison::Equal && language {
                    let (operator, view) = (TextOperator::Equals, View::Term);
                    let folding = Folding::None;
                    add(Filter::Text { operator, view, folding, argument: constant });
                } else if *operator == Comparison::Unequal && !is_comparable(&text) {
                    return None;
                } else {
                    add(Filter::Compare { operator: *operator, constant });
                }
            }
            Test::Text { operator, view, folding, argument, argument_folding } => {
                let mut argument = self.constant(*argument)?;
                let literal = self.dictionary.text(argument).into_owned();
                let (text, tag) = string_of(&literal)?;
                let folded = match argument_folding {
                    Folding::Lower => text.to_lowercase(),
                    Folding::Upper => text.to_uppercase(),
                    _ => text.clone(),
                };
                if folded != text {
                    argument = self.intern(&folded, tag);
                }
                let (operator, view, folding) = (*operator, *view, *folding);
                add(Filter::Text { operator, view, folding, argument });
            }
            Test::Regex { view, folding, pattern, flags } => {
                let plain = |number: u32| {
                    let literal = self.dictionary.text(self.constant(number)?);
                    string_of(&literal).filter(|(_, tag)| tag.is_none()).map(|(text, _)| text)
                };
                let flags = flags.map_or(Some(String::new()), plain)?;
                let parts = required_parts(&plain(*pattern)?, &flags, *folding == Folding::None)?;
                let folding = if parts.caseless { Folding::Caseless } else { *folding };
                for part in parts.texts {
                    let argument = self.intern(&part, None);
                    let (operator, view) = (TextOperator::Contains, *view);
                    add(Filter::Text { operator, view, folding, argument });
                }
            }
        }
        Some(())
    }

    fn intern(&mut self, text: &str, tag: Option<&[u8]>) -> Id {
        let mut literal = Vec::with_capacity(text.len() + 2);
        quote(text, &mut literal);
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
    let literal = values::Literal::of(literal).filter(|literal| literal.datatype.is_none())?;
    let text = String::from_utf8_lossy(&literal.plain()).into_owned();
    (literal.language() == literal.tag).then_some((text, literal.tag))
}

// --- Comparisons with quantities ----------------------------------------------------------------

/// Makes calls of comparisons with quantities, which the evaluator knows nothing of, and puts the
/// quantities in.
struct Calls<'a> {
    quantities: &'a [Option<Literal>],
}

impl Calls<'_> {
    fn pattern(&self, pattern: &mut GraphPattern) {
        let (patterns, expressions) = parts_mut(pattern);
        patterns.into_iter().for_each(|inner| self.pattern(inner));
        expressions.into_iter().for_each(|inner| self.expression(inner));
    }

    fn quantity(&self, expression: &Expression) -> Option<Expression> {
        let Expression::Literal(literal) = expression else { return None };
        let (number, _) = slot_of_literal(literal)?;
        self.quantities.get(number as usize)?.clone().map(Expression::Literal)
    }

    fn expression(&self, expression: &mut Expression) {
        if let Some(quantity) = self.quantity(expression) {
            *expression = quantity;
        } else if let Some(call) = self.call(expression) {
            *expression = call;
        } else if let Expression::Exists(pattern) = expression {
            self.pattern(pattern);
        } else {
            operands_mut(expression).into_iter().for_each(|inner| self.expression(inner));
        }
    }

    fn call(&self, expression: &Expression) -> Option<Expression> {
        if let Expression::In(value, list) = expression {
            list.iter().find_map(|one| self.quantity(one))?;
            let equal = |one: &Expression| {
                let equal = Expression::Equal(value.clone(), Box::new(one.clone()));
                self.call(&equal).unwrap_or(equal)
            };
            let either = |a, b| Expression::Or(Box::new(a), Box::new(b));
            return list.iter().map(equal).reduce(either);
        }
        let (operator, left, right) = comparison_of(expression)?;
        let (operator, value, quantity) = match self.quantity(right) {
            Some(quantity) => (operator, left, quantity),
            None => (mirrored(operator), right, self.quantity(left)?),
        };
        let compare = Function::Custom(NamedNode::new_unchecked(format!("{GM}compare")));
        let sign = Literal::new_simple_literal(operator.sign()).into();
        Some(Expression::FunctionCall(compare, vec![value.clone(), sign, quantity]))
    }
}

// --- Units --------------------------------------------------------------------------------------

fn uses_among(stated: &[[u32; 4]], compared: &[(u32, u32, bool)]) -> Vec<Use> {
    let mut equal: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut partners: HashMap<u32, Vec<u32>> = HashMap::new();
    for (variable, constant, same) in compared {
        partners.entry(*variable).or_default().push(*constant);
        if *same {
            equal.entry(*variable).or_default().push(*constant);
        }
    }
    // the constant that an object is, or those that it is compared with
    let among = |known: &HashMap<u32, Vec<u32>>, object: u32, own: u32| match own {
        OPEN => known.get(&object).cloned().unwrap_or_default(),
        own => vec![own],
    };
    let mut siblings: HashMap<u32, Vec<(u32, Option<u32>)>> = HashMap::new();
    for [subject, attribute, object, own] in stated {
        let beside = siblings.entry(*subject).or_default();
        let mut known: Vec<_> = among(&equal, *object, *own).into_iter().map(Some).collect();
        if known.is_empty() {
            known.push(None);
        }
        for one in known {
            if !beside.contains(&(*attribute, one)) {
                beside.push((*attribute, one));
            }
        }
    }
    let mut found: Vec<Use> = Vec::new();
    for [subject, attribute, object, own] in stated {
        for constant in among(&partners, *object, *own) {
            let siblings = siblings.get(subject).cloned().unwrap_or_default();
            let one = Use { constant, attribute: *attribute, siblings };
            if !found.contains(&one) {
                found.push(one);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
