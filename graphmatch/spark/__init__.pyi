"""The public names of `graphmatch.spark`, with the modules that define them."""

from graphmatch.spark.documents import publications as publications
from graphmatch.spark.graphs import connected_components as connected_components
from graphmatch.spark.graphs import frames_jars as frames_jars
from graphmatch.spark.graphs import match_motif as match_motif
from graphmatch.spark.graphs import motif as motif
from graphmatch.spark.matching import matches as matches
from graphmatch.spark.source import register as register
from graphmatch.spark.spark_session import session as session
