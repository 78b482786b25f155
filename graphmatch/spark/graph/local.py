"""Small tables of Python's as DataFrames that Spark plans with: no job reads them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Values: TypeAlias = (
    Sequence[int] | Sequence[str] | Sequence[Sequence[int]] | Sequence[Sequence[str]]
)
INT, TEXT = pa.int32(), pa.string()
INTS, TEXTS = pa.list_(INT), pa.list_(TEXT)


def local(
    spark: SparkSession, schema: Mapping[str, pa.DataType], columns: Sequence[Values]
) -> DataFrame:
    """Return a DataFrame of some columns.

    Lists of Python's own would become a distributed collection, which takes a job to read; what
    comes from Arrow is a part of the plan, as long as it is small.

    Parameters
    ----------
    schema
        The names and types of the columns.
    columns
        Their values.
    """
    arrays = [pa.array(v, kind) for v, kind in zip(columns, schema.values(), strict=True)]
    return spark.createDataFrame(pa.table(arrays, names=list(schema)))
