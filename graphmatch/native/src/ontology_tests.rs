//! The rules against a fixpoint over all pairs of triples, on small generated graphs.

use crate::attribute_names;
use crate::branch::{Node, TaxonomyOperator};
use crate::demand::Demand;
use crate::dictionary::{ANY, Dictionary, Id, Kind, LocalTerms, Terms};
use crate::graph::Graph as Publication;
use crate::limits::Budget;
use crate::materialize::MaterializationCache;
use crate::ontology::build::OntologyInput;
use crate::ontology::{Ontology, ROOTS, RULES};
use crate::rules::{Rule, Vocabulary, rules};
use crate::taxonomy::Walk;
use crate::triples::{Triple, has};
use std::collections::{BTreeMap, BTreeSet};

type Graph = BTreeSet<Triple>;

/// Numbers that look random, and are the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) as usize % end
    }

    fn of(&mut self, ids: &[Id]) -> Id {
        ids[self.below(ids.len())]
    }
}

/// A dictionary, and prefixes to write terms with.
struct Known {
    dictionary: Dictionary,
    local: LocalTerms,
}

const PREFIXES: [(&str, &str); 6] = [
    ("rdf:", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs:", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl:", "http://www.w3.org/2002/07/owl#"),
    ("skos:", "http://www.w3.org/2004/02/skos/core#"),
    ("attribute:", "urn:graphmatch:attribute:"),
    ("isa:", "urn:graphmatch:isa:"),
];

impl Known {
    fn new() -> Self {
        Self { dictionary: Dictionary::default(), local: LocalTerms::default() }
    }

    /// The text of a term: `:a` is `<urn:e:a>`, `a` is `rdf:type`.
    fn text(term: &str) -> String {
        if term.starts_with(['"', '_', '<']) {
            return term.to_owned();
        }
        if term == "a" {
            return Self::text("rdf:type");
        }
        let known = PREFIXES.iter().find(|(prefix, _)| term.starts_with(prefix));
        match known {
            Some((prefix, iri)) => format!("<{iri}{}>", &term[prefix.len()..]),
            None => format!("<urn:e{term}>"),
        }
    }

    fn id(&mut self, term: &str) -> Id {
        self.dictionary.intern(Self::text(term).as_bytes())
    }

    fn ids(&mut self, terms: &str) -> Vec<Id> {
        terms.split_whitespace().map(|term| self.id(term)).collect()
    }

    /// A term of a publication, which need not be mentioned.
    fn own(&mut self, term: &str) -> Id {
        let text = Self::text(term);
        let hash = crate::dictionary::hash(text.as_bytes());
        let known = self.dictionary.get_hashed(text.as_bytes(), hash);
        known.unwrap_or_else(|| self.local.intern_hashed(text.as_bytes(), hash))
    }

    fn triples(&mut self, triples: &str) -> Vec<Triple> {
        read(triples).map(|triple| triple.map(|term| self.id(term))).collect()
    }

    fn publication(&mut self, triples: &str) -> Vec<Triple> {
        read(triples).map(|triple| triple.map(|term| self.own(term))).collect()
    }

    fn ontology(&mut self, triples: &str) -> Ontology {
        let triples = self.triples(triples);
        Ontology::new(
            &mut self.dictionary,
            OntologyInput { triples: &triples, ..OntologyInput::default() },
        )
    }

    fn terms(&self) -> Terms<'_> {
        Terms { dictionary: &self.dictionary, local: &self.local }
    }

    fn demand(&self, demand: &[(Id, Id)]) -> Demand {
        let mut found = Demand::default();
        for &(property, object) in demand {
            let text = if property == ANY {
                &b""[..]
            } else {
                attribute_names::text(self.terms(), property)
            };
            found.count((property, object), 1, text);
        }
        found
    }

    fn shown(&self, triples: impl IntoIterator<Item = Triple>) -> BTreeSet<String> {
        let text = |id| String::from_utf8_lossy(&self.terms().text(id)).into_owned();
        triples.into_iter().map(|triple| triple.map(text).join(" ")).collect()
    }
}

/// Triples `s p o . s p o`; a literal has no spaces.
fn read(triples: &str) -> impl Iterator<Item = [&str; 3]> {
    let parts = triples.split(" . ").map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| {
        let mut terms = part.split_whitespace();
        [(); 3].map(|()| terms.next().expect("three terms"))
    })
}

// -- the reference --------------------------------------------------------------------------

struct Naive<'a> {
    v: Vocabulary,
    terms: Terms<'a>,
    names: BTreeMap<Id, Vec<Id>>,
}

impl Naive<'_> {
    fn is_literal(&self, id: Id) -> bool {
        self.terms.kind(id) == Kind::Literal
    }

    fn is_reserved(&self, id: Id) -> bool {
        attribute_names::is_reserved(attribute_names::text(self.terms, id))
    }

    fn of_one(&self, [c, p, d]: Triple, is_heard: bool) -> Vec<Triple> {
        let v = &self.v;
        let mut found = Vec::new();
        if !self.is_reserved(p) {
            found.extend(self.names.get(&d).into_iter().flatten().map(|&term| [c, p, term]));
        }
        if self.is_literal(d) {
            return found;
        }
        if p == v.narrower {
            found.push([d, v.broader, c]);
        }
        if p == v.broader {
            found.extend([[d, v.narrower, c], [c, v.broader_transitive, d]]);
        }
        if is_heard && p == v.equivalent_class {
            found.extend([[c, v.sub_class, d], [d, v.sub_class, c]]);
        }
        if is_heard && p == v.equivalent_property {
            found.extend([[c, v.sub_property, d], [d, v.sub_property, c]]);
        }
        found
    }

    fn of_two(&self, [a, says, b]: Triple, [x, p, y]: Triple, is_heard: bool) -> Vec<Triple> {
        let v = &self.v;
        let mut found = Vec::new();
        if self.is_literal(b) {
            return found;
        }
        if says == v.domain && p == a {
            found.push([x, v.type_, b]);
        }
        if says == v.range && p == a {
            found.push([y, v.type_, b]);
        }
        if says == v.sub_property && p == a {
            found.push([x, b, y]);
        }
        if says == v.sub_class && p == v.type_ && y == a {
            found.push([x, p, b]);
        }
        if v.hierarchies().contains(&says) && p == says && x == b && !self.is_literal(y) {
            found.push([a, says, y]);
        }
        if says == v.inverse_of {
            if p == a {
                found.push([y, b, x]);
            }
            if p == b {
                found.push([y, a, x]);
            }
        }
        if says == v.broader_transitive && y == a && !self.is_reserved(p) {
            found.push([x, p, b]);
        }
        if is_heard && says == v.same_as && a != b {
            for (one, other) in [(a, b), (b, a)] {
                if x == one {
                    found.push([other, p, y]);
                }
                if y == one {
                    found.push([x, p, other]);
                }
            }
        }
        if is_heard && says == v.same_as {
            found.push([b, says, a]);
        }
        found
    }

    fn saturate(&self, mut known: Graph, background: Option<&Graph>) -> Graph {
        loop {
            let mut new = Vec::new();
            let empty = Graph::new();
            for &first in &known {
                new.extend(self.of_one(first, background.is_some()));
                for &second in known.iter().chain(background.unwrap_or(&empty)) {
                    new.extend(self.of_two(first, second, background.is_some()));
                    let is_own = known.contains(&second) && background.is_some();
                    new.extend(self.of_two(second, first, is_own));
                }
            }
            let before = known.len();
            known.extend(
                new.into_iter()
                    .filter(|&[s, p, _]| !self.is_literal(s) && self.terms.kind(p) == Kind::Iri),
            );
            if known.len() == before {
                return known;
            }
        }
    }
}

// -- what is generated ----------------------------------------------------------------------

/// Terms of the places of ontologies and publications, and what ontologies rarely say.
struct Pool {
    terms: Vec<Id>,
    own: Vec<Id>,
    said: Vec<Id>,
    heard: Vec<Id>,
    resources: Vec<Id>,
    literals: Vec<Id>,
    meta: Vec<Triple>,
}

impl Pool {
    fn new(known: &mut Known) -> Self {
        let said = "rdfs:subClassOf rdfs:subPropertyOf skos:broader skos:narrower a owl:inverseOf \
                    rdfs:domain rdfs:range skos:broaderTransitive";
        Self {
            terms: known.ids(":A :B :C :D :c :d :e :x :y :p :q _:o"),
            own: known.ids(":p :q :r :kind :over :isa"),
            said: known.ids(said),
            heard: known.ids("owl:sameAs owl:equivalentClass owl:equivalentProperty"),
            resources: known.ids(":x :y _:b :z"),
            literals: known.ids("\"A\" \"B\"@en \"5\"^^<http://www.w3.org/2001/XMLSchema#integer>"),
            meta: known.triples(
                ":kind rdfs:subPropertyOf rdfs:subClassOf . :kind rdfs:subPropertyOf skos:broader . \
                 :kind rdfs:subPropertyOf :p . :p rdfs:subPropertyOf :kind . \
                 :over owl:inverseOf rdfs:subClassOf . :over owl:inverseOf :kind . \
                 skos:broader rdfs:subPropertyOf skos:broaderTransitive . \
                 rdfs:subClassOf rdfs:subPropertyOf :q . :q rdfs:subPropertyOf rdfs:subPropertyOf . \
                 :isa rdfs:subPropertyOf a . a rdfs:subPropertyOf :r . a rdfs:range :A . \
                 skos:broaderTransitive rdfs:subPropertyOf rdfs:subClassOf . \
                 :kind rdfs:subPropertyOf rdfs:domain . :p rdfs:range :A . \
                 rdfs:subClassOf rdfs:domain :A . rdfs:subClassOf rdfs:range :B . \
                 skos:broaderTransitive owl:inverseOf :r . skos:narrower owl:inverseOf skos:broader . \
                 :same rdfs:subPropertyOf owl:sameAs",
            ),
        }
    }

    fn ontology(&self, random: &mut Random) -> Vec<Triple> {
        let mut found = Vec::new();
        if random.below(2) == 0 {
            for _ in 0..random.below(4) {
                found.push(self.meta[random.below(self.meta.len())]);
            }
        }
        for _ in 0..random.below(9) {
            let own = random.below(4) == 0;
            let property = random.of(if own { &self.own } else { &self.said });
            let literal = random.below(12) == 0;
            let object = random.of(if literal { &self.literals } else { &self.terms });
            found.push([random.of(&self.terms), property, object]);
        }
        graph_of(&found).triples
    }

    fn publication(&self, random: &mut Random) -> Vec<Triple> {
        let says_schema = random.below(3) == 0;
        let mut found = Vec::new();
        for _ in 0..1 + random.below(4) {
            let property = match random.below(if says_schema { 6 } else { 4 }) {
                0 => self.said[4],
                5 => random.of(&self.heard),
                4 => random.of(&self.said),
                _ => random.of(&self.own),
            };
            let literal = random.below(6) == 0;
            let object = random.of(if literal { &self.literals } else { &self.terms });
            let subject = random.of(if says_schema { &self.terms } else { &self.resources });
            // A blank node between two properties is left out: no triple has it as its property.
            let is_between = [self.said[1], self.heard[2]].contains(&property);
            if !is_between || ![subject, object].contains(&self.terms[11]) {
                found.push([subject, property, object]);
            }
        }
        graph_of(&found).triples
    }

    fn demand(&self, random: &mut Random) -> Vec<(Id, Id)> {
        let mut found = Vec::new();
        for _ in 0..random.below(5) {
            let properties = [&self.own[..], &self.said].concat();
            let property = random.of(&properties);
            let object = if random.below(3) == 0 { ANY } else { random.of(&self.terms) };
            found.push((property, object));
        }
        found
    }
}

fn is_asked([_, p, o]: Triple, demand: &[(Id, Id)]) -> bool {
    demand.iter().any(|&(property, object)| has([p, o, ANY], [property, object, ANY]))
}

fn graph_of(triples: &[Triple]) -> Publication {
    let mut graph = Publication::default();
    triples.iter().for_each(|&triple| _ = graph.push(triple));
    graph
}

fn closed(
    ontology: &Ontology,
    publication: &[Triple],
    known: &Known,
    demand: &Demand,
    cache: &mut MaterializationCache,
) -> Graph {
    let mut triples = graph_of(publication);
    let given = triples.triples.len();
    let watch = Budget::default().watch();
    ontology.materialize(&mut triples, known.terms(), demand, cache, usize::MAX, &watch);
    let origins = &triples.origins;
    assert_eq!(origins.len(), triples.triples.len() - given);
    assert!(origins.iter().all(|(.., premise)| triples.triples.contains(premise)));
    triples.triples.into_iter().collect()
}

#[test]
fn rules_against_a_fixpoint() {
    let mut random = Random(7);
    let (mut with_schema, mut with_derived) = (0, 0);
    let everything = Demand::of_everything();
    for round in 0..4_000 {
        let mut known = Known::new();
        let pool = Pool::new(&mut known);
        let stated = pool.ontology(&mut random);
        let names: Vec<(Id, Id)> = if random.below(4) == 0 {
            vec![(pool.literals[0], pool.terms[4]), (pool.literals[0], pool.terms[0])]
        } else {
            Vec::new()
        };
        let made = OntologyInput { triples: &stated, names: &names, ..OntologyInput::default() };
        let ontology = Ontology::new(&mut known.dictionary, made);
        let mut naive_names: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
        for &(text, term) in &names {
            naive_names.entry(text).or_default().push(term);
        }
        let v = ontology.schema.vocabulary;
        let rules = rules(&v, false);
        let is_schema = |property| {
            rules.iter().any(|rule: &Rule| rule.premises[0][1] == Node::Constant(property))
        };
        let naive = Naive { v, terms: known.terms(), names: naive_names };
        let background = naive.saturate(stated.iter().copied().collect(), None);

        let all: Vec<Triple> = ontology.matching([ANY; 3]).collect();
        let found: Graph = all.iter().copied().collect();
        assert_eq!(found.len(), all.len(), "each once");
        assert_eq!(known.shown(found), known.shown(background.iter().copied()), "C(O) {round}");
        for _ in 0..8 {
            let mut key = [random.of(&pool.terms), random.of(&pool.said), random.of(&pool.terms)];
            for place in &mut key {
                if random.below(2) == 0 {
                    *place = ANY;
                }
            }
            let mut found: Vec<Triple> = ontology.matching(key).collect();
            found.sort_unstable();
            let expected: Vec<Triple> =
                background.iter().copied().filter(|&triple| has(triple, key)).collect();
            assert_eq!(found, expected);
            assert_eq!(ontology.has_match(key), !expected.is_empty());
        }

        let publication = pool.publication(&mut random);
        let expected = naive.saturate(publication.iter().copied().collect(), Some(&background));
        let mut cache = MaterializationCache::default();
        let full = closed(&ontology, &publication, &known, &everything, &mut cache);
        assert_eq!(
            known.shown(full.iter().copied()),
            known.shown(expected.iter().copied()),
            "E(P) {round} of {:?} under {:?}",
            known.shown(publication.iter().copied()),
            known.shown(stated.iter().copied())
        );
        with_schema += usize::from(full.iter().any(|triple| is_schema(triple[1])));
        with_derived += usize::from(full.len() > publication.len());

        let mentioned = pool.demand(&mut random);
        let mut demand = known.demand(&mentioned);
        for step in 0..=mentioned.len() {
            let asked = &mentioned[step..];
            let some = closed(&ontology, &publication, &known, &demand, &mut cache);
            assert!(some.is_subset(&full));
            let missing: Vec<Triple> =
                full.difference(&some).copied().filter(|&triple| is_asked(triple, asked)).collect();
            assert_eq!(
                known.shown(missing),
                BTreeSet::new(),
                "{round} of {:?} under {:?} asked {:?}",
                known.shown(publication.iter().copied()),
                known.shown(stated.iter().copied()),
                known.shown(asked.iter().filter(|m| m.1 != ANY).map(|&(p, o)| [p, p, o]))
            );
            if let Some(&(property, object)) = mentioned.get(step) {
                demand.count(
                    (property, object),
                    -1,
                    attribute_names::text(known.terms(), property),
                );
            }
        }
    }
    assert!(with_schema > 500 && with_derived > 1_000, "{with_schema} {with_derived}");
}

// -- examples -------------------------------------------------------------------------------

fn follows(ontology: &str, publication: &str, more: &str) {
    let mut known = Known::new();
    let made = known.ontology(ontology);
    let stated = known.publication(publication);
    let mut triples = graph_of(&stated);
    let everything = Demand::of_everything();
    let mut cache = MaterializationCache::default();
    let watch = Budget::default().watch();
    made.materialize(&mut triples, known.terms(), &everything, &mut cache, usize::MAX, &watch);
    let found = triples.triples.into_iter().filter(|triple| !stated.contains(triple));
    let expected = known.publication(more);
    assert_eq!(known.shown(found), known.shown(expected), "{ontology} | {publication}");
}

#[test]
fn rules_by_example() {
    follows(
        ":A rdfs:subClassOf :B . :A rdfs:subClassOf :C . :B rdfs:subClassOf :D",
        ":x a :A",
        ":x a :B . :x a :C . :x a :D",
    );
    follows(":p owl:inverseOf :q", ":x :p :y . :z :q \"1\"", ":y :q :x");
    follows(":a skos:broader :b . :c skos:narrower :b", ":x :p :a", ":x :p :b . :x :p :c");
    follows(":a skos:broader :b", ":x rdfs:seeAlso :a", "");
    follows(":kind rdfs:subPropertyOf rdfs:subClassOf . :A :kind :B", ":x a :A", ":x a :B");
    follows(":sup owl:inverseOf rdfs:subClassOf . :B :sup :A", ":x a :A", ":x a :B");
    follows(
        ":B rdfs:subClassOf :C",
        ":A rdfs:subClassOf :B . :x a :A",
        ":A rdfs:subClassOf :C . :x a :B . :x a :C",
    );
    follows(":x a :A", ":A rdfs:subClassOf :B", ":x a :B");
    follows(
        "",
        ":x owl:sameAs :y . :x :p \"1\"",
        ":y owl:sameAs :x . :y owl:sameAs :y . :x owl:sameAs :x . :y :p \"1\"",
    );
    follows(":x :q \"2\"", ":x owl:sameAs :x . :x :p \"1\"", "");
    follows(":x owl:sameAs _:b", ":x :p \"1\"", "");
}

#[test]
fn chains_and_cycles_of_any_length() {
    const LENGTH: usize = 100_000;
    let mut known = Known::new();
    let links = ["rdfs:subClassOf", "rdfs:subPropertyOf", "skos:broader", "a"];
    let mut stated = String::new();
    for link in links {
        for number in 0..LENGTH {
            let next = if link == "skos:broader" { (number + 1) % LENGTH } else { number + 1 };
            stated.push_str(&format!(":{link}{number} {link} :{link}{next} . "));
        }
    }
    stated.push_str(":rdfs:subPropertyOf99999 rdfs:domain :rdfs:subClassOf0");
    let ontology = known.ontology(&stated);
    let pairs = ontology.matching([ANY, known.id("rdfs:subClassOf"), known.id(":none")]);
    assert_eq!(pairs.count(), 0);
    let asked = known.ids("a :rdfs:subClassOf99999 :p :skos:broader4 :rdfs:subPropertyOf99990");
    let publication = known
        .publication(":x a :rdfs:subClassOf0 . :x :p :skos:broader5 . :x :rdfs:subPropertyOf7 :y");
    let demand = known.demand(&[(asked[0], asked[1]), (asked[2], asked[3]), (asked[4], ANY)]);
    let mut cache = MaterializationCache::default();
    let found = closed(&ontology, &publication, &known, &demand, &mut cache);
    let more = ":x a :rdfs:subClassOf99999 . :x :p :skos:broader4 . \
                :x :rdfs:subPropertyOf99990 :y . :x :rdfs:subPropertyOf99999 :y";
    let expected = [publication, known.publication(more)].concat();
    assert_eq!(known.shown(found), known.shown(expected));
    let mut walk = Walk::default();
    walk.begin(&ontology, std::iter::empty(), known.terms());
    let ends = known.ids(":a0 :a100000 :skos:broader7 :skos:broader6");
    for [low, high] in [[ends[0], ends[1]], [ends[2], ends[3]], [ends[3], ends[2]]] {
        let operator = TaxonomyOperator::Descendant;
        assert!(walk.holds(&ontology, operator, low, high, known.terms()));
    }
    assert!(
        ontology
            .has_match(known.triples(":rdfs:subClassOf3 rdfs:subClassOf :rdfs:subClassOf99")[0])
    );

    // A publication's own chain, whose pairs are not demanded.
    let own: String =
        (0..LENGTH).map(|n| format!(":own{n} rdfs:subClassOf :own{} . ", n + 1)).collect();
    let empty = known.ontology("");
    let publication = known.publication(&(own + ":x a :own99990"));
    let found = closed(&empty, &publication, &known, &demand, &mut cache);
    assert_eq!(found.len(), publication.len() + 10);
}

#[test]
fn roots_of_terms_and_texts() {
    let mut known = Known::new();
    let ids = known.ids(":old :new \"US\" \"USA\" \"us\" :usa");
    let roots = [(ids[0], ids[1]), (ids[2], ids[3])];
    let names = [(ids[3], ids[5])];
    let made = OntologyInput { roots: &roots, names: &names, ..OntologyInput::default() };
    let ontology = Ontology::new(&mut known.dictionary, made);
    for (term, root) in [
        (":old", ":new"),
        (":new", ":new"),
        ("\"US\"", "\"USA\""),
        ("\"US\"@en", "\"USA\""),
        ("\"us\"", "\"us\""),
        ("\"US\"^^<urn:t>", "\"US\"^^<urn:t>"),
    ] {
        let (term, root) = (known.own(term), known.own(root));
        assert_eq!(ontology.root(term, known.terms()), root);
    }
    assert_eq!(ontology.always, ROOTS | RULES);
    ontology.release(&mut known.dictionary);

    let folded = [(ids[4], ids[3])];
    let folding = (true, false);
    let made = OntologyInput { roots: &folded, folding: Some(folding), ..OntologyInput::default() };
    let ontology = Ontology::new(&mut known.dictionary, made);
    for text in ["\"US\"", "\"uS\"@en", "\"us\""] {
        let text = known.own(text);
        assert_eq!(ontology.root(text, known.terms()), ids[3]);
    }
    let without = OntologyInput { roots: &roots, plain: Some(&[]), ..OntologyInput::default() };
    let without = Ontology::new(&mut known.dictionary, without);
    assert_eq!(without.root(ids[0], known.terms()), ids[0]);
    let mut walk = Walk::default();
    walk.begin(&without, std::iter::empty(), known.terms());
    let is_same = walk.holds(&without, TaxonomyOperator::Descendant, ids[0], ids[1], known.terms());
    assert!(is_same, "operators follow roots");
}

#[test]
fn names_count_in_the_ontology_too() {
    let mut known = Known::new();
    let triples =
        known.triples(":in rdfs:subPropertyOf skos:broader . :paris :in \"France\" . :x :p :paris");
    let names = known.ids("\"France\" :france");
    let names = [(names[0], names[1])];
    let stated = OntologyInput { triples: &triples, names: &names, ..OntologyInput::default() };
    let ontology = Ontology::new(&mut known.dictionary, stated);
    let pairs = ":paris skos:broaderTransitive :france . :x :p :france";
    assert!(known.triples(pairs).into_iter().all(|triple| ontology.has_match(triple)));
    let publication = known.publication(":y :q :paris");
    let everything = Demand::of_everything();
    let found =
        closed(&ontology, &publication, &known, &everything, &mut MaterializationCache::default());
    let expected = known.publication(":y :q :paris . :y :q :france");
    assert_eq!(known.shown(found), known.shown(expected));
}

#[test]
fn terms_go_with_the_ontology() {
    let mut known = Known::new();
    let triples = known.triples(":A rdfs:subClassOf :B . :x :p \"1\" . :x :p \"1\"");
    let ontology = Ontology::new(
        &mut known.dictionary,
        OntologyInput { triples: &triples, ..OntologyInput::default() },
    );
    triples.iter().flatten().for_each(|&id| known.dictionary.release(id));
    assert!(known.dictionary.get(b"<urn:e:A>").is_some());
    ontology.release(&mut known.dictionary);
    assert!(known.dictionary.get(b"<urn:e:A>").is_none());
    let type_ = Known::text("rdf:type");
    assert!(known.dictionary.get(type_.as_bytes()).is_none());
}
