"""GraphFrames: a large graph split into publications, and the papers' baselines in bulk.

`pip` installs the Python part only. The Java part is a Maven package, which Spark must load when it
starts: ``session(packages=[coordinate()])``, a local jar (``GRAPHFRAMES_JAR``,
``session(jars=frames_jars(os.environ))``), or the class path of a cluster.

*Parts.* Two triples are connected if they share a subject or object that is an IRI or a blank node,
as in `semantic.reading`. The object of ``rdf:type`` is shared and connects nothing. GraphFrames'
`randomized_contraction` is not used, because it gave wrong results in a trial.

*Motifs.* Every node of a subscription is a variable of the motif, including constants, as in OPS.
Constants are tested afterwards. MIC expands a subscription by all descendants of its terms: here a
constant may be itself or a descendant. Cost: one self-join of all edges for each pattern, one
subscription after the other, as expected of a baseline. Two nodes of a motif may be one vertex, as
in SPARQL. Only the rules of sub-classes, sub-properties and roots are applied.

Sources: Wang, Jin, Li: OPS, as described by Petrovic, Liu, Jacobsen, "G-ToPSS", WWW 2005, section
5. MIC (multidimensional index matching count) as described by the paper on CTPS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import reduce
from importlib import import_module
from importlib.metadata import version
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyoxigraph import Variable
from pyspark.sql import functions as sql

from graphmatch import _native
from graphmatch.spark.java import SparkError
from graphmatch.spark.snapshots import is_connect
from graphmatch.subscription import Subscription
from semantic.branch import Branch, Filter, QueryForm
from semantic.errors import Place, Problem, SubscriptionError
from semantic.filter_evaluation import holds
from semantic.ontology.ontology import Ontology
from semantic.terms import Node, Term
from semantic.vocabulary import TYPE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

JAR = "GRAPHFRAMES_JAR"
JAVA_CLASS = "org.graphframes.GraphFrame"
_PLACES = ("subject", "predicate", "object")


def coordinate() -> str:
    """Return the Maven coordinate of GraphFrames for its installed Python part.

    Examples
    --------
    >>> coordinate().rpartition(":")[0]
    'io.graphframes:graphframes-spark4_2.13'
    """
    return f"io.graphframes:graphframes-spark4_2.13:{version('graphframes-py')}"


def frames_jars(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the jars named in an environment, for `session`.

    Examples
    --------
    >>> frames_jars({"GRAPHFRAMES_JAR": "/opt/frames.jar"})[0].name, frames_jars({})
    ('frames.jar', ())
    """
    return (Path(environment[JAR]),) if environment.get(JAR) else ()


def require_frames(spark: SparkSession) -> None:
    """Make sure that a session has both parts of GraphFrames.

    Raises
    ------
    SparkError
        If the Java part is missing, or the session is one of Spark Connect.
    """
    if is_connect(spark):
        what = "GraphFrames' functions need a session in this process"
        remedy = "Run them where Spark's driver is."
        raise SparkError(what, "Spark Connect", remedy)
    jvm: Any = spark.sparkContext._jvm
    try:
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(JAVA_CLASS)
    except import_module("py4j.protocol").Py4JJavaError as error:
        remedy = (
            f"Start Spark with session(packages=[{coordinate()!r}]), or name a jar of it in {JAR} "
            "and start it with session(jars=frames_jars(os.environ))."
        )
        raise SparkError("GraphFrames is not in this session", JAVA_CLASS, remedy) from error


def graph_frame(triples: DataFrame) -> Any:
    """Return triples as a graph: terms are vertices (``id``), properties are ``relationship``.

    Parameters
    ----------
    triples
        Columns ``subject``, ``predicate`` and ``object``.

    Raises
    ------
    SparkError
        If GraphFrames is missing.
    """
    distinct = triples.select(*_PLACES).distinct()
    edges = distinct.select(
        sql.col("subject").alias("src"),
        sql.col("object").alias("dst"),
        sql.col("predicate").alias("relationship"),
    )
    ends = edges.select(sql.col("src").alias("id"))
    vertices = ends.unionAll(edges.select(sql.col("dst").alias("id"))).distinct()
    return frame_of(vertices, edges)


def frame_of(vertices: DataFrame, edges: DataFrame) -> Any:
    """Return a GraphFrame of `vertices` (``id``) and `edges` (``src`` and ``dst``).

    Raises
    ------
    SparkError
        If GraphFrames is missing.
    """
    require_frames(vertices.sparkSession)
    return import_module("graphframes").GraphFrame(vertices, edges)


def connected_components(triples: DataFrame) -> DataFrame:
    """Return triples with their connected component as a column ``publication``.

    Parameters
    ----------
    triples
        Columns ``subject``, ``predicate`` and ``object``: terms as N-Triples.

    Returns
    -------
    publications
        Distinct triples. The name of a component is its first subject in lexical order.

    Raises
    ------
    SparkError
        If GraphFrames is missing.
    """
    distinct = triples.select(*_PLACES).distinct()
    connecting = (sql.col("predicate") != str(TYPE)) & ~sql.col("object").startswith('"')
    edges = distinct.where(connecting).select(
        sql.col("subject").alias("src"), sql.col("object").alias("dst")
    )
    ids = distinct.select(sql.col("subject").alias("id"))
    vertices = ids.unionAll(edges.select(sql.col("dst").alias("id"))).distinct()
    found = frame_of(vertices, edges).connectedComponents(
        algorithm="graphframes", use_local_checkpoints=True
    )
    named = distinct.join(found, distinct["subject"] == found["id"])
    first = named.groupBy("component").agg(sql.min("subject").alias("publication"))
    return named.join(first, "component").select("publication", *_PLACES)


def motif(branch: Branch) -> str:
    """Return a branch's patterns as a motif of GraphFrames.

    Examples
    --------
    >>> from pyoxigraph import NamedNode
    >>> from semantic.branch import TriplePattern
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
        Columns ``subject``, ``predicate``, ``object``: N-Triples, with one spelling per term.
    subscription
        A query with one branch and without a residual.
    ontology
        Constants also match their descendants: MIC. Without it, they match themselves: OPS.

    Returns
    -------
    answers
        Columns ``subscription`` and ``solution``: variables to terms as N-Triples.

    Raises
    ------
    SparkError
        If GraphFrames is missing.
    SubscriptionError
        If the query is more than patterns and filters of one branch, or a variable is both a
        property and a node.
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
    """Yield a term and its descendants, under each of their names."""
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
    chosen = rows.select(*names) if subscription.form is QueryForm.SELECT else rows.limit(1)
    if subscription.distinct:
        chosen = chosen.distinct()
    pairs = [sql.struct(sql.lit(n).alias("key"), sql.col(n).alias("value")) for n in names]
    empty = sql.create_map().cast("map<string,string>")
    solution = sql.map_from_entries(sql.array(*pairs)) if pairs else empty
    return chosen.select(sql.lit(subscription.id).alias("subscription"), solution.alias("solution"))
