"""An ontology: what the operator knows, put in the form that matching needs.

Building goes through these steps: stated triples → roots of equivalent terms →
triples with roots put in → taxonomies of classes, properties and concepts →
compiled schema. What is only sometimes needed (the closure, the labels) is made
when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from pyoxigraph import Literal, NamedNode

from semantic.annotation.annotate import Label
from semantic.errors import OnProblem, Place, Problem, Severity, warn_problem
from semantic.limits import DEFAULT_LIMITS, Limits
from semantic.mapping import MappingFunction
from semantic.ontology.building import (
    by_predicate,
    compiled,
    edges_of,
    link_properties,
    members_of,
    report_circles,
    report_literals,
    rooted,
)
from semantic.ontology.inference import Inference
from semantic.ontology.names import LABELS, Names, Said, ShownNames, TermNames, said_by
from semantic.ontology.synonym_rows import settle
from semantic.ontology.synonyms import DEFAULT_SYNONYM_OPTIONS, SynonymOptions, SynonymPairs
from semantic.ontology.taxonomy import Taxonomy
from semantic.ontology.walks import Walks
from semantic.publication import Publication
from semantic.terms import Term, Triple, compact
from semantic.units.numbers import UnitError
from semantic.units.registry import Registry
from semantic.units.units import Units
from semantic.units.vocabulary import BASE_UNIT, UNIT_ATTRIBUTE
from semantic.vocabulary import GM, OWL, PREFIXES, RDFS, SKOS, TYPE

_NO_TOPICS = frozenset({OWL["Ontology"], SKOS["ConceptScheme"], RDFS["Datatype"]})


class Ontology(Walks):
    """Taxonomies, synonyms, labels and entailment.

    Parameters
    ----------
    triples
        What the ontology states; blank nodes must not be shared with publications.
    synonyms
        Pairs of a synonym file.
    prefixes
        Those of the files that it was read from, for showing terms.
    options
        Which texts are the same.
    mapping
        Mapping functions, in their order.
    on_problem
        Called with each thing that is mended (a cycle) or ignored (a literal for a class).
    known
        Problems that were reported before.
    registry
        What is known of units already, of an ontology that this one follows.

    Examples
    --------
    >>> from semantic.vocabulary import SUBCLASS
    >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
    >>> ontology = Ontology([(laptop, SUBCLASS, computer)])
    >>> ontology.is_a(laptop, computer)
    True
    >>> item = NamedNode("urn:item")
    >>> enriched = ontology.enrich(Publication.of("p", [(item, TYPE, laptop)]))
    >>> (item, TYPE, computer) in enriched.derived
    True
    """

    def __init__(
        self,
        triples: Iterable[Triple] = (),
        synonyms: SynonymPairs | None = None,
        *,
        prefixes: Mapping[str, str] | None = None,
        options: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
        mapping: Iterable[MappingFunction] = (),
        on_problem: OnProblem = warn_problem,
        known: Iterable[Problem] = (),
        registry: Registry | None = None,
    ) -> None:
        self.prefixes: Mapping[str, str] = {**(prefixes or {}), **PREFIXES}
        self.stated = tuple(dict.fromkeys(triples))
        self.problems: list[Problem] = []
        self._known = frozenset(known)
        self._on_problem = on_problem
        self.pairs = synonyms or SynonymPairs()
        pairs = settle(self.pairs, options, self.stated, self._hear)
        found = rooted(self.stated, pairs, options, self._report)
        self.roots, self.triples, self.groups = found
        self._names = Names(pairs, self.roots)
        self.schema = compiled(self.groups)
        self.linking = link_properties(self.schema)
        report_literals(self.groups, self.linking, self._report)
        edges, kinds = edges_of(self.links_stated()), members_of(self.of(TYPE))
        self.classes = Taxonomy(edges["classes"], kinds["classes"])
        self.properties = Taxonomy(edges["properties"], kinds["properties"])
        self.concepts = Taxonomy(edges["concepts"], kinds["concepts"])
        trees = {"classes": self.classes, "properties": self.properties, "concepts": self.concepts}
        report_circles(trees.items(), self._report)
        declaring = self.of(BASE_UNIT, UNIT_ATTRIBUTE)
        self.units = Units.of(declaring, self.properties, self._hear, registry=registry)
        if (normal := self.units.normal_triples(self.triples, self._mismeasured)) is not None:
            self.triples = tuple(normal.triples)
            self.groups = by_predicate(self.triples)
        self.mapping = tuple(mapping)
        self.inference = Inference(self.triples, self.schema, self._names)

    @classmethod
    def load(
        cls,
        *paths: str | Path,
        imports: str | Path | None = None,
        fetch: bool = False,
        reason: str | None = None,
        cache: str | Path | bool | None = None,
        taxonomies: Iterable[NamedNode] = (),
        synonyms: SynonymOptions = DEFAULT_SYNONYM_OPTIONS,
        on_problem: OnProblem = warn_problem,
        limits: Limits = DEFAULT_LIMITS,
    ) -> Ontology:
        """Load one ontology from RDF, OWL/XML, synonym files (``.csv``, ``.json``) and rules.

        Parameters
        ----------
        imports
            A folder, or an XML catalogue, in which ``owl:imports`` are looked for.
        fetch
            Whether imports that are not there are fetched over http or https.
        reason
            ``"hermit"`` or ``"pellet"``: what that reasoner infers is taken as stated.
        cache
            The folder of compiled ontologies; ``None`` for the user's own, ``False`` for none.
        taxonomies
            Properties that make a taxonomy, as if a file said that they are a ``gm:Taxonomy``.
        synonyms
            How names are compared.

        Raises
        ------
        OntologyError
            When a file cannot be read, or reasoning fails.
        """
        from semantic.ontology.reading.load import loading, read_sources

        options = loading(imports, fetch, reason, cache)
        read = read_sources([Path(p) for p in paths], on_problem, limits, options)
        declared = ((property_, TYPE, GM["Taxonomy"]) for property_ in taxonomies)
        return cls(
            (*read.triples, *declared),
            read.synonyms,
            prefixes=read.prefixes,
            options=synonyms,
            mapping=(MappingFunction(path.stem, text, str(path)) for path, text in read.rules),
            on_problem=on_problem,
        )

    # -- building ---------------------------------------------------------------------------

    def _report(self, what: str, remedy: str) -> None:
        self._hear(Problem(what, Place("ontology"), remedy, Severity.WARNING))

    def _mismeasured(self, attribute: Term, error: UnitError) -> None:
        self._report(f"{compact(attribute)}: {error.what}", error.remedy)

    def _hear(self, problem: Problem) -> None:
        self.problems.append(problem)
        if problem not in self._known:
            self._on_problem(problem)

    def update(self, added: Iterable[Triple] = (), removed: Iterable[Triple] = ()) -> Ontology:
        """Return the ontology amended: a new one, while this one stays as it is.

        Whoever matches by this one is not disturbed; `Engine.update_ontology` goes over to the
        new one between two publications. Problems that this one has are not reported again.

        Parameters
        ----------
        added, removed
            Triples as files state them, not what follows. One in both is there afterwards.

        Examples
        --------
        >>> from semantic.vocabulary import SUBCLASS
        >>> laptop, computer = NamedNode("urn:laptop"), NamedNode("urn:computer")
        >>> old = Ontology()
        >>> new = old.update(added=[(laptop, SUBCLASS, computer)])
        >>> new.is_a(laptop, computer), old.is_a(laptop, computer)
        (True, False)
        """
        gone = frozenset(removed)
        for triple in gone.difference(self.stated):
            what = f"not stated, so it cannot be removed: {' '.join(map(compact, triple))}"
            remedy = "Only what the ontology's files state can be removed, not what follows."
            self._on_problem(Problem(what, Place("ontology"), remedy, Severity.WARNING))
        return Ontology(
            (*(triple for triple in self.stated if triple not in gone), *added),
            self.pairs,
            prefixes=self.prefixes,
            options=self.roots.options,
            mapping=self.mapping,
            on_problem=self._on_problem,
            known=self.problems,
            registry=self.units.registry,
        )

    # -- what is known ----------------------------------------------------------------------

    @property
    def closure(self) -> frozenset[Triple]:
        """Everything that follows from the ontology alone: C(O)."""
        return self.inference.closure

    def labels(self) -> list[Label]:
        """Return every name that text may use for a class, a concept or an instance.

        These are ``rdfs:label``, ``skos:prefLabel``, ``altLabel`` and ``hiddenLabel`` in every
        language, the texts that synonym files give for a term, and those they give for one of
        its labels. Properties have no part in it: no text is about a property.
        """
        return list(self._names.labels(self._said, self._is_topic))

    @cached_property
    def shown_names(self) -> ShownNames:
        """What terms are called when they are shown."""
        return ShownNames(self.of(*LABELS), self.prefixes)

    @cached_property
    def _said(self) -> list[Said]:
        return said_by(self.of(*LABELS))

    def _is_topic(self, term: Term) -> bool:
        if not isinstance(term, NamedNode) or term in self.properties:
            return False
        return not _NO_TOPICS.intersection(self.types.get(term, ()))

    def root(self, term: Term) -> Term:
        """Return the term that stands for this one and its synonyms."""
        return self.roots.root(term)

    def taxonomy(self, property_: NamedNode) -> Taxonomy:
        """Return the taxonomy that one property makes, sub-properties included.

        Any property may be asked for. Only of those that are declared as a ``gm:Taxonomy``, and
        of RDFS's and SKOS's own, do subscriptions follow the links.
        """
        root = self.root(property_)
        wanted = {root, *self.properties.descendants(root)}
        edges = ((s, o) for s, _, o in self.of(*wanted) if not isinstance(o, Literal))
        return Taxonomy(edges)

    @cached_property
    def value_names(self) -> TermNames:
        """What classes and concepts are called."""
        trees = [tree for tree in (self.classes, self.concepts) if len(tree)]
        names = (name for tree in trees for name in self._names.called(tree, self._said))
        return TermNames(trees, names, self.root)

    # -- publications -----------------------------------------------------------------------

    def rewrite(self, publication: Publication) -> Publication:
        """Return the publication with every term replaced by its root."""
        return publication.with_triples(
            tuple(self.roots.rewrite(publication.triples)),
            frozenset(self.roots.rewrite(publication.derived)),
        )

    def enrich(self, publication: Publication) -> Publication:
        """Return the publication with roots put in and all that follows by the rules."""
        rooted = self.rewrite(publication)
        closed = self.inference.follow(rooted.triples)
        stated = frozenset(rooted.triples)
        derived = rooted.derived.union(t for t in closed if t not in stated)
        return rooted.with_triples(tuple(closed), derived)
