"""The HTTP interface of the broker."""
