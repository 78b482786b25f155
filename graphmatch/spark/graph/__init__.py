"""One big graph: patterns that span a graph of any size, by joins of DataFrames."""
