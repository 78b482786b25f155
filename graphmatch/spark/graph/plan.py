"""Patterns that span one big graph: matched by joins, and the plan of these explained.

1. *Stage 1.* Each triple, and what follows from it, is looked up under the gate keys of all
   subscriptions; what it gives are rows of binding tables (`tables`).
2. *Stage 2.* The tables are joined, smallest first, once a shape; what shapes have in common at
   their beginning is joined once for all of them (`steps`, `joining`).

Source: access patterns and templates are as in the index (docs/decisions/index.md), where a
publication is small; the rules are those of docs/reference/semantics.md.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from pyoxigraph import Variable

from graphmatch.engine import Engine
from graphmatch.knowledge import Entailment, Knowledge
from graphmatch.spark.graph import joining_here
from graphmatch.spark.graph.asked import Question, asked_of, refusal
from graphmatch.spark.graph.atoms import Atoms, asks_taxonomy
from graphmatch.spark.graph.batch import PLACES
from graphmatch.spark.graph.joining import joined
from graphmatch.spark.graph.probing import Probe
from graphmatch.spark.graph.schema import with_schema
from graphmatch.spark.graph.steps import Node, Steps, Way
from graphmatch.spark.graph.tables import BindingTables, binding_tables
from graphmatch.spark.graph.taxonomy import is_mixed, narrowed
from graphmatch.spark.java import SparkError
from graphmatch.subscription import Subscription
from semantic.errors import GraphMatchError, OnProblem, warn_problem
from semantic.ontology.ontology import Ontology
from semantic.pattern import Branch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Subscriptions = Engine | Iterable[Subscription | tuple[str, str]]
_SHOWN = 20
"""So many keys and joins are explained one by one."""


class GraphPlan:
    """Subscriptions, ready to be answered over one graph: its binding tables are there.

    `plan_graph` makes one. It keeps tables in Spark's memory until `close`; it is a context
    manager, which closes it.

    Parameters
    ----------
    tables
        The binding tables.
    atoms
        Whose they are.
    questions
        What can be answered.
    ways
        The branches of the questions.
    refused
        Why other subscriptions cannot.
    prefixes
        For showing terms.
    """

    def __init__(
        self,
        tables: BindingTables,
        atoms: Atoms,
        questions: Sequence[Question],
        ways: Sequence[Way],
        refused: Sequence[GraphMatchError],
        prefixes: Mapping[str, str],
    ) -> None:
        self._tables = tables
        self._atoms = atoms.all
        self._questions = questions
        self._ways = ways
        self._prefixes = prefixes
        self._kept: list[DataFrame] = [tables.rows]
        self.refused = tuple(refused)
        """Why some subscriptions are not answered, in their order."""
        counts = tables.counts
        self.steps = Steps((way for way in ways if _has_rows(way, counts)), counts)
        """The joins."""

    def answers(self) -> DataFrame:
        """Return the solutions: columns ``subscription`` and ``solution``, a map of texts.

        A solution of ASK is an empty map. Terms are written as N-Triples writes them.
        """
        if self._is_small and (here := self._joined_here()) is not None:
            return here
        made = joined(self._tables, self.steps, self._questions)
        self._kept += made.kept
        return made.answers

    @property
    def _is_small(self) -> bool:
        return sum(self._tables.counts.values()) <= joining_here.FEW

    def _joined_here(self) -> DataFrame | None:
        found = joining_here.joined_here(self._tables, self.steps, self._questions)
        return None if found is None else self._tables.rows.sparkSession.createDataFrame(found)

    def close(self) -> None:
        """Let Spark forget the tables; answers that were not looked at yet are made again."""
        while self._kept:
            self._kept.pop().unpersist()

    def __enter__(self) -> GraphPlan:
        """Return the plan itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # -- why --------------------------------------------------------------------------------

    def explain(self) -> str:
        """Say in plain lines which tables there are, and how they are joined."""
        return "\n".join([*self._about_questions(), *self._about_keys(), *self._about_joins()])

    def _about_questions(self) -> Iterator[str]:
        yield (
            f"subscriptions: {len(self._questions):,} answered by joins, "
            f"{len(self.refused):,} refused"
        )
        yield from (f"  refused: {error}" for error in self.refused)
        empty = sum(not _has_rows(way, self._tables.counts) for way in self._ways)
        if empty:
            yield f"  not joined, for a table is empty: {_branches(empty)}"

    def _about_keys(self) -> Iterator[str]:
        counts = self._tables.counts
        yield f"stage 1: {len(self._atoms):,} keys, {_rows(sum(counts.values()))}"
        largest = sorted(range(len(self._atoms)), key=lambda n: -counts.get(n, 0))
        for number in largest[:_SHOWN]:
            known = ", some of the ontology" if number in self._tables.known else ""
            atom = self._atoms[number].write(self._prefixes)
            yield f"  {_rows(counts.get(number, 0))}{known}: {atom}"
        if len(largest) > _SHOWN:
            yield f"  and {len(largest) - _SHOWN:,} smaller ones"

    def _about_joins(self) -> Iterator[str]:
        nodes = list(self.steps)
        shapes = sum(bool(node.ends) for node in nodes)
        branches = sum(len(node.ends) for node in nodes)
        joins = sum(node.depth > 1 for node in nodes)
        alone = sum(len(node.ends) * (node.depth - 1) for node in nodes)
        yield (
            f"stage 2: {_branches(branches)} of {shapes:,} shapes; joins: {joins:,}, "
            f"one by one {alone:,}"
        )
        if self._is_small:
            yield "  in this process, by Arrow: there are few rows"
        below = _branches_below(nodes)
        for node in sorted(nodes, key=lambda node: (-below[node.number], node.number))[:_SHOWN]:
            kept = ", kept" if node.depth > 1 and node.uses > 1 else ""
            yield f"  {_written(node)}: {_branches(below[node.number])}{kept}"
        if len(nodes) > _SHOWN:
            yield f"  and {len(nodes) - _SHOWN:,} more"


def _branches(number: int) -> str:
    return f"{number:,} branch{'es' * (number != 1)}"


def _rows(number: int) -> str:
    return f"{number:,} row{'s' * (number != 1)}"


def _written(node: Node) -> str:
    """Write a node as the variables of the tables that are joined."""
    before = "" if node.above is None else f"{_written(node.above)} ⋈ "
    return f"{before}({' '.join(f'?{variable}' for variable in node.step)})"


def _branches_below(nodes: Sequence[Node]) -> Mapping[int, int]:
    """Return how many branches pass through each node, by its number."""
    below: Counter[int] = Counter()
    for node in reversed(nodes):
        below[node.number] += len(node.ends)
        if node.above is not None:
            below[node.above.number] += below[node.number]
    return below


def _has_rows(way: Way, counts: Mapping[int, int]) -> bool:
    return all(part.atom in counts for part in way.parts)


def plan_graph(
    triples: DataFrame,
    subscriptions: Subscriptions,
    ontology: Ontology | None = None,
    *,
    entailment: Entailment | str = Entailment.RDFS,
    on_problem: OnProblem = warn_problem,
) -> GraphPlan:
    """Do stage 1, and say how stage 2 will go.

    Parameters and errors are those of `match_graph`; subscriptions that cannot be answered are in
    `GraphPlan.refused`.
    """
    for place in PLACES:
        if place not in triples.columns:
            what = f"the graph has no column {place!r}"
            raise SparkError(what, "<graph>", f"The columns are {', '.join(PLACES)}.")
    if isinstance(subscriptions, Engine) and ontology is None:
        ontology = subscriptions.ontology
    ontology = ontology or Ontology()
    if (rdfs := Entailment(entailment) is Entailment.RDFS) and ontology.mapping:
        names = ", ".join(function.name for function in ontology.mapping)
        remedy = "Match without them; or run them on publications, and add what they give."
        raise SparkError(f"mapping functions cannot run over a graph: {names}", "<graph>", remedy)
    knowledge = Knowledge(ontology, Entailment(entailment))
    asked = asked_of(subscriptions, knowledge)
    hierarchies = [p for p in ontology.schema.hierarchies if asked.mentions.asks_for(p)]
    background = ontology.inference.background(hierarchies) if rdfs else ontology.stated
    atoms, refused = Atoms(), list(asked.refused)
    questions: list[Question] = []
    ways: list[Way] = []
    for question in asked.questions:
        if why := _undecided(question, knowledge):
            refused.append(refusal(question.id, why))
        else:
            ways += _ways(question, len(questions), atoms)
            questions.append(question)
    probe = Probe(ontology, atoms.all, asked.mentions, rdfs)
    probe = with_schema(triples, probe) if rdfs else probe
    tables = binding_tables(triples, probe, background, on_problem)
    tables = narrowed(tables, triples, probe)
    return GraphPlan(tables, atoms, questions, ways, refused, ontology.prefixes)


def _ways(question: Question, number: int, atoms: Atoms) -> Iterator[Way]:
    for branch in question.branches:
        names = frozenset(branch.names)
        visible = names - question.hidden
        parts = atoms.parts(branch)
        yield Way(number, parts, question.names, visible, question.is_distinct)


def _undecided(question: Question, knowledge: Knowledge) -> str:
    """Return what of a question joins do not decide; nothing for most."""
    for branch in question.branches:
        if any(is_mixed(f) for f in branch.filters if asks_taxonomy(f)):
            return "joins cannot decide a taxonomy operator beside other tests in one filter"
    if len(question.branches) > 1 and any(
        _all_met(branch, knowledge) for branch in question.branches
    ):
        return "the ontology alone may meet one branch of its UNION"
    return ""


def _all_met(branch: Branch, knowledge: Knowledge) -> bool:
    return all(
        knowledge.meets(None if isinstance(n, Variable) else n for n in pattern)
        for pattern in branch.patterns
    )


def match_graph(
    triples: DataFrame,
    subscriptions: Subscriptions,
    ontology: Ontology | None = None,
    *,
    entailment: Entailment | str = Entailment.RDFS,
    on_problem: OnProblem = warn_problem,
) -> DataFrame:
    """Answer subscriptions over one graph of any size, as if it were one publication.

    What cannot be answered by joins (OPTIONAL, MINUS, aggregates, paths of any length, …) is
    reported, and the rest goes on. Texts are not looked through for concepts, and attributes are
    not found: that is done to publications.

    Parameters
    ----------
    triples
        Columns ``subject``, ``predicate`` and ``object``: terms as N-Triples writes them; others
        are ignored. A blank node's name means one node in all rows.
    subscriptions
        Those of an engine; or parsed ones, or ids with SPARQL texts.
    ontology
        What is known; that of the engine by default.
    entailment
        ``"rdfs"``, or ``"none"`` to take the graph as it is.
    on_problem
        Told of rows that are no triples, and of subscriptions that are refused.

    Returns
    -------
    answers
        Columns ``subscription`` and ``solution``, a map from variables to terms, as N-Triples
        writes them; an empty one for ASK. Tables stay in Spark's memory as long as the session:
        `plan_graph` makes plans that can be closed.

    Raises
    ------
    SparkError
        When a column is missing; when the ontology has mapping functions; when the graph states
        units in triples of their own, or a very large schema.
    """
    plan = plan_graph(
        triples, subscriptions, ontology, entailment=entailment, on_problem=on_problem
    )
    for error in plan.refused:
        on_problem(error.problem)
    return plan.answers()


def explain_graph(
    triples: DataFrame,
    subscriptions: Subscriptions,
    ontology: Ontology | None = None,
    *,
    entailment: Entailment | str = Entailment.RDFS,
    on_problem: OnProblem = warn_problem,
) -> str:
    """Say in plain lines how `match_graph` goes: keys, tables, shapes, joins that are shared."""
    with plan_graph(
        triples, subscriptions, ontology, entailment=entailment, on_problem=on_problem
    ) as plan:
        return plan.explain()
