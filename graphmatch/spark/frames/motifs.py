"""OPS and MIC in bulk: a subscription as a motif, found by GraphFrames in a whole graph.

Every node of the pattern is a variable of the motif, constants too, as OPS has it; that a node is a
constant is looked at afterwards. MIC expands a subscription by all descendants of its terms: here a
constant may be itself or anything below it, so the graph need not be closed under the taxonomy.

Cost: one self-join of all edges for each pattern, whatever the constants, one subscription after
the other. That is the point of a baseline.

Source: Wang, Jin, Li: OPS, as Petrovic, Liu, Jacobsen, "G-ToPSS", WWW 2005, section 5, describes
it; MIC (multidimensional index matching count) as the paper on CTPS describes it.

Notes
-----
- Two nodes of a motif may be one vertex, as in SPARQL, and not as in a subgraph isomorphism.
- Of the rules only those of sub-classes, sub-properties and roots are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyoxigraph import Variable
from pyspark.sql import functions as sql

from graphmatch import _native
from graphmatch.spark.frames.library import graph_frame
from graphmatch.subscription import Subscription
from semantic.errors import Place, Problem, SubscriptionError
from semantic.filter_evaluation import holds
from semantic.ontology.ontology import Ontology
from semantic.pattern import Branch, Filter, Form
from semantic.terms import Node, Term
from semantic.vocabulary import TYPE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def motif(branch: Branch) -> str:
    """Return a branch's patterns as a motif: a picture of it.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.pattern import TriplePattern
    >>> x, y, c = Variable("x"), Variable("y"), NamedNode("urn:C")
    >>> patterns = (TriplePattern(x, NamedNode("urn:p"), y), TriplePattern(y, TYPE, c))
    >>> motif(Branch(patterns))
    '(n0)-[e0]->(n1); (n1)-[e1]->(n2)'
    """
    names = _names(branch)
    return "; ".join(
        f"({names[p.subject]})-[e{n}]->({names[p.object]})" for n, p in enumerate(branch.patterns)
    )


def _names(branch: Branch) -> dict[Node, str]:
    nodes = dict.fromkeys(n for p in branch.patterns for n in (p.subject, p.object))
    return {node: f"n{number}" for number, node in enumerate(nodes)}


def match_motif(
    triples: DataFrame, subscription: Subscription, ontology: Ontology | None = None
) -> DataFrame:
    """Return a subscription's solutions in one graph, found as a motif.

    Parameters
    ----------
    triples
        Columns ``subject``, ``predicate``, ``object``: as N-Triples writes terms, each in one way.
    subscription
        One branch that is the whole query.
    ontology
        Constants may be what is below them, too: MIC. Without it they are themselves: OPS.

    Returns
    -------
    answers
        Columns ``subscription`` and ``solution``: variables to terms as N-Triples writes them.

    Raises
    ------
    SparkError
        When GraphFrames is not there.
    SubscriptionError
        When there is more to the query than patterns and filters of one branch, or a variable
        stands for a property and for a node.
    """
    branch = _branch(subscription)
    names = _names(branch)
    columns: dict[Node, Column] = {node: sql.col(f"{name}.id") for node, name in names.items()}
    conditions: list[Column] = []
    for number, pattern in enumerate(branch.patterns):
        label = sql.col(f"e{number}.relationship")
        if isinstance(pattern.predicate, Variable):
            if pattern.predicate in columns:
                conditions.append(columns[pattern.predicate] == label)
            columns.setdefault(pattern.predicate, label)
        else:
            conditions.append(_is(label, _below(pattern.predicate, ontology)))
        is_type = pattern.predicate == TYPE
        for node in (pattern.subject, pattern.object):
            if not isinstance(node, Variable):
                below = ontology if is_type and node is pattern.object else None
                conditions.append(_is(columns[node], _below(node, below)))
    conditions += (_test(filter_)(columns[filter_.variable]) for filter_ in branch.filters)
    found = graph_frame(triples).find(motif(branch)).where(reduce(and_, conditions, sql.lit(True)))
    variables = {n.value: column for n, column in columns.items() if isinstance(n, Variable)}
    rows = found.select(*(column.alias(name) for name, column in variables.items())).distinct()
    return _answers(rows, subscription)


def _branch(subscription: Subscription) -> Branch:
    if not subscription.exact:
        what = f"a motif cannot say {', '.join(subscription.remainder)}"
        remedy = "Ask for patterns with filters of one variable each."
        raise SubscriptionError(Problem(what, Place(subscription.id), remedy))
    return subscription.branches[0]


def _below(term: Term, ontology: Ontology | None) -> Iterator[Term]:
    """Yield a term and all below it, under each of their names."""
    yield term
    if ontology is not None:
        root = ontology.root(term)
        taxonomies = (ontology.classes, ontology.properties)
        for below in (root, *(t for tree in taxonomies for t in tree.descendants(root))):
            yield from (below, *ontology.roots.names(below))


def _is(column: Column, terms: Iterable[Term]) -> Column:
    return column.isin(sorted({str(term) for term in terms}))


def _test(filter_: Filter) -> Callable[[Column], Column]:
    def passes(text: str) -> bool:
        return holds(filter_, _native.term(text))

    decided: Callable[[Column], Column] = sql.udf(passes, "boolean", useArrow=True)
    return decided


def _answers(rows: DataFrame, subscription: Subscription) -> DataFrame:
    names = [v.value for v in subscription.projection if v.value in rows.columns]
    chosen = rows.select(*names) if subscription.form is Form.SELECT else rows.limit(1)
    if subscription.distinct:
        chosen = chosen.distinct()
    pairs = [sql.struct(sql.lit(n).alias("key"), sql.col(n).alias("value")) for n in names]
    empty = sql.create_map().cast("map<string,string>")
    solution = sql.map_from_entries(sql.array(*pairs)) if pairs else empty
    return chosen.select(sql.lit(subscription.id).alias("subscription"), solution.alias("solution"))
