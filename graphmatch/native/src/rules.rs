//! The rules of `docs/reference/semantics.md`, applied until nothing is new.
//!
//! By these the ontology is closed, once; and publications that state schema of their own, which is
//! a premise of rules whose other premise may be anywhere, in the publication or the ontology. Each
//! triple is taken once, as any premise, with the other looked up among the triples that are there
//! so far and in the ontology: semi-naive evaluation. Other publications are closed by tables of
//! the ontology: [`crate::closing`].
//!
//! The pairs of a hierarchy that only its being transitive gives (of a chain of n classes n²/2) are
//! derived where somebody asks for them or rules say more of them, and are no premises: the links
//! that they were made of lead as far, step by step.
//!
//! Cost: some twenty hash look-ups a triple.

use crate::dictionary::{ANY, Id, Kind, Terms, inline};
use crate::graph::{ALL, Graph};
use crate::hierarchy::Map;
use crate::ontology::{OWN, Ontology};
use crate::pattern::{Node, Pattern};
use crate::schema::{Vocabulary, is_reserved, is_resource};
use crate::triples::Triple;

const NONE: u32 = u32::MAX;

const A: Node = Node::Variable(0);
const B: Node = Node::Variable(1);
const X: Node = Node::Variable(2);
const Y: Node = Node::Variable(3);
/// The terms of the four variables, [`ANY`] for those that are not known.
type Bound = [Id; 4];

/// If two premises hold, a conclusion does; some rules have one premise only.
///
/// Each rule is there once for each premise as the `first`, which a new triple meets. A premise
/// with a property of schema takes no literal as its object.
struct Rule {
    first: Pattern,
    second: Option<Pattern>,
    conclusion: Pattern,
    /// Whether the ontology's triples count as the second premise, too.
    is_everywhere: bool,
    when: Condition,
    /// Whether the second premise is the data, and the first says something of its terms.
    is_schema: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Condition {
    Always,
    /// Pairs of this hierarchy are wanted: the rule says that it is transitive.
    Pairs(usize),
    /// The data's property belongs to no vocabulary of ontologies.
    Unreserved,
    Different,
}

fn rules(v: &Vocabulary, is_publication: bool) -> Vec<Rule> {
    use Condition::{Always, Different, Pairs, Unreserved};
    let is = Node::Constant;
    let [type_, below, broader] = [v.type_, v.sub_class, v.broader].map(is);
    let [under, narrower, topic] = [v.sub_property, v.narrower, v.broader_transitive].map(is);
    let [class, property, same] = [v.equivalent_class, v.equivalent_property, v.same_as].map(is);
    let data = Some([X, A, Y]);
    let rules = [
        ([A, is(v.domain), B], data, [X, type_, B], Always),
        ([A, is(v.range), B], data, [Y, type_, B], Always),
        ([A, under, B], data, [X, B, Y], Always),
        ([A, below, B], Some([X, type_, A]), [X, type_, B], Always),
        ([A, is(v.inverse_of), B], data, [Y, B, X], Always),
        ([A, is(v.inverse_of), B], Some([X, B, Y]), [Y, A, X], Always),
        ([A, narrower, B], None, [B, broader, A], Always),
        ([A, broader, B], None, [B, narrower, A], Always),
        ([A, broader, B], None, [A, topic, B], Always),
        ([A, topic, B], Some([X, Y, A]), [X, Y, B], Unreserved),
        ([A, below, B], Some([X, below, A]), [X, below, B], Pairs(0)),
        ([A, under, B], Some([X, under, A]), [X, under, B], Pairs(1)),
        ([A, topic, B], Some([X, topic, A]), [X, topic, B], Pairs(2)),
    ];
    // What the ontology says of these kinds are its roots.
    let heard = [
        ([A, class, B], None, [A, below, B], Always),
        ([A, class, B], None, [B, below, A], Always),
        ([A, property, B], None, [A, under, B], Always),
        ([A, property, B], None, [B, under, A], Always),
        ([A, same, B], None, [B, same, A], Always),
        ([A, same, B], Some([A, X, Y]), [B, X, Y], Different),
        ([A, same, B], Some([X, Y, A]), [X, Y, B], Different),
    ];
    let mut found = Vec::new();
    for (first, second, conclusion, when) in
        rules.into_iter().chain(heard.into_iter().filter(|_| is_publication))
    {
        let is_everywhere = is_publication;
        found.push(Rule { first, second, conclusion, is_everywhere, when, is_schema: true });
        if let Some(second) = second {
            let is_everywhere = is_publication && when != Different;
            let (first, second) = (second, Some(first));
            found.push(Rule { first, second, conclusion, is_everywhere, when, is_schema: false });
        }
    }
    found
}

/// Whether a triple meets a pattern; its terms are noted.
fn bind(pattern: Pattern, triple: Triple, bound: &mut Bound) -> bool {
    pattern.into_iter().zip(triple).all(|(node, term)| match node {
        Node::Constant(known) => known == term,
        Node::Variable(number) => {
            let known = std::mem::replace(&mut bound[number as usize], term);
            known == ANY || known == term
        }
    })
}

fn filled(pattern: Pattern, bound: &Bound) -> Triple {
    pattern.map(|node| match node {
        Node::Constant(known) => known,
        Node::Variable(number) => bound[number as usize],
    })
}

/// Triples by their terms: chains through all that have the same.
#[derive(Default)]
struct Chains {
    heads: Map<Triple, u32>,
    /// Of each entry the number of its triple, and the entry before it in the chain of each key; see
    /// [`keys`].
    entries: Vec<(u32, [u32; 5])>,
}

/// The keys by which a triple is found: its terms one by one, and what joins ask for.
fn keys([s, p, o]: Triple) -> [Triple; 5] {
    [[s, ANY, ANY], [ANY, p, ANY], [ANY, ANY, o], [s, p, ANY], [ANY, p, o]]
}

impl Chains {
    fn push(&mut self, triple: Triple, number: u32) {
        let entry = self.entries.len() as u32;
        let before = keys(triple).map(|key| self.heads.insert(key, entry).unwrap_or(NONE));
        self.entries.push((number, before));
    }

    /// Adds the triples with the terms of a key, which is one of [`keys`].
    fn find(&self, triples: &[Triple], key: Triple, found: &mut Vec<Triple>) {
        let which = keys(key).iter().position(|&known| known == key).unwrap_or(0);
        let mut entry = self.heads.get(&key).copied().unwrap_or(NONE);
        while entry != NONE {
            let (number, before) = self.entries[entry as usize];
            found.push(triples[number as usize]);
            entry = before[which];
        }
    }
}

/// One graph's way through the rules.
struct Step<'a> {
    ontology: &'a Ontology,
    terms: Terms<'a>,
    rules: Vec<Rule>,
    chains: Chains,
    /// Those of `chains` that not only transitivity gave.
    links: Chains,
    /// Of each triple, whether it is no link.
    is_pair: Vec<bool>,
    others: Vec<Triple>,
    /// What follows, whether only transitivity gave it, and the premise that it is told to follow
    /// from: of a triple of data and one of schema the former.
    found: Vec<(Triple, bool, Triple)>,
}

/// Adds to triples all that follows with one of them as a premise, but none where there are `most`.
///
/// They are a publication's, and the other premises may be in the ontology, or they are the
/// ontology's own. `pairs` says of which hierarchies all pairs are asked for.
pub(crate) fn extend(
    ontology: &Ontology,
    is_publication: bool,
    graph: &mut Graph,
    terms: Terms,
    mut pairs: [bool; 3],
    most: usize,
) {
    let v = &ontology.schema.vocabulary;
    let mut step = Step {
        ontology,
        terms,
        rules: rules(v, is_publication),
        chains: Chains::default(),
        links: Chains::default(),
        is_pair: Vec::new(),
        others: Vec::new(),
        found: Vec::new(),
    };
    graph.triples.iter().for_each(|&triple| step.push(triple, false));
    loop {
        let (mut next, mut again) = (0, Vec::new());
        while graph.triples.len() < most {
            let number = match again.pop() {
                Some(number) => number,
                None if next < graph.triples.len() => {
                    next += 1;
                    next - 1
                }
                None => break,
            };
            step.take(&graph.triples, number, pairs);
            let mut found = std::mem::take(&mut step.found);
            for (following, is_pair, premise) in found.drain(..) {
                let [s, p, _] = following;
                let is_triple = is_resource(s, terms) && terms.kind(p) == Kind::Iri;
                if !is_triple || graph.triples.len() >= most {
                    continue;
                }
                // Some premises are the ontology's.
                let from = Some(graph.first(ALL, premise)).filter(|&from| from != ANY);
                if graph.derive(following, from.map_or(number, |from| from as usize)) {
                    step.push(following, is_pair);
                } else if !is_pair && p == v.same_as {
                    // A pair that is a link, after all: more follows from it.
                    again.extend(step.make_link(graph.first(ALL, following) as usize, following));
                }
            }
            step.found = found;
        }
        // Where more than transitivity follows from pairs, all are taken once more, with them.
        let wanted = v.hierarchies().map(|property| step.says_more(&graph.triples, property, v));
        if (0..3).all(|number| pairs[number] || !wanted[number]) {
            return;
        }
        (0..3).for_each(|number| pairs[number] |= wanted[number]);
    }
}

impl Step<'_> {
    fn push(&mut self, triple: Triple, is_pair: bool) {
        let number = self.is_pair.len() as u32;
        self.chains.push(triple, number);
        if !is_pair {
            self.links.push(triple, number);
        }
        self.is_pair.push(is_pair);
    }

    /// Makes a triple a link; gives its number if it was none.
    fn make_link(&mut self, number: usize, triple: Triple) -> Option<usize> {
        if !std::mem::replace(&mut self.is_pair[number], false) {
            return None;
        }
        self.links.push(triple, number as u32);
        Some(number)
    }

    /// Finds what follows from a triple.
    fn take(&mut self, triples: &[Triple], number: usize, pairs: [bool; 3]) {
        let (triple, is_pair) = (triples[number], self.is_pair[number]);
        let vocabulary = &self.ontology.schema.vocabulary;
        let (hierarchies, same) = (vocabulary.hierarchies(), vocabulary.same_as);
        let is_linking = |p: Id| p == same || hierarchies.contains(&p);
        let is_link = |premise: Pattern| {
            premise[0] == A && matches!(premise[1], Node::Constant(p) if is_linking(p))
        };
        let is_literal = self.terms.kind(triple[2]) == Kind::Literal;
        for &Rule { first, second, conclusion, is_everywhere, when, is_schema } in &self.rules {
            let is_out = match first[1] {
                Node::Constant(property) => {
                    property != triple[1] || is_literal || is_pair && is_link(first)
                }
                Node::Variable(_) => false,
            };
            let mut bound = [ANY; 4];
            if is_out || !bind(first, triple, &mut bound) {
                continue;
            }
            if matches!(when, Condition::Pairs(hierarchy) if !pairs[hierarchy]) {
                continue;
            }
            let Some(second) = second else {
                self.found.push((filled(conclusion, &bound), false, triple));
                continue;
            };
            let key = filled(second, &bound);
            self.others.clear();
            let chains = if is_link(second) { &self.links } else { &self.chains };
            chains.find(triples, key, &mut self.others);
            if is_everywhere && self.is_known(key) {
                self.others.extend(self.ontology.matching(key));
            }
            for &other in &self.others {
                let is_data = matches!(second[1], Node::Variable(_));
                if !is_data && self.terms.kind(other[2]) == Kind::Literal {
                    continue;
                }
                let mut bound = bound;
                let follows = bind(second, other, &mut bound)
                    && match when {
                        Condition::Always | Condition::Pairs(_) => true,
                        Condition::Unreserved => !is_reserved(bound[3], self.terms),
                        Condition::Different => bound[0] != bound[1],
                    };
                if follows {
                    let following = filled(conclusion, &bound);
                    let is_pair = match when {
                        Condition::Pairs(_) => true,
                        // What holds of one holds of all, link by link.
                        Condition::Different => following[1] == same,
                        _ => false,
                    };
                    let premise = if is_schema { other } else { triple };
                    self.found.push((following, is_pair, premise));
                }
            }
        }
        let [s, p, o] = triple;
        let names = self.ontology.names_of(o, self.terms);
        if !names.is_empty() && !is_reserved(p, self.terms) {
            self.found.extend(names.iter().map(|&term| ([s, p, term], false, triple)));
        }
    }

    /// Whether the ontology may have triples with a key.
    fn is_known(&self, key: Triple) -> bool {
        let is_known = |id| self.ontology.flags(id) & OWN != 0 || inline::is_inline(id);
        key.into_iter().all(|id| id == ANY || is_known(id))
    }

    /// Whether anything but its being transitive follows from a hierarchy's triples. (What a domain
    /// or a range gives, the links give as well.)
    fn says_more(&mut self, triples: &[Triple], property: Id, v: &Vocabulary) -> bool {
        let above = [property, v.sub_property, ANY];
        let others = [above, [property, v.inverse_of, ANY], [ANY, v.inverse_of, property]];
        self.others.clear();
        for key in others {
            self.chains.find(triples, key, &mut self.others);
            self.others.extend(self.ontology.matching(key));
        }
        self.others.iter().any(|&triple| triple != [property, v.sub_property, property])
    }
}
