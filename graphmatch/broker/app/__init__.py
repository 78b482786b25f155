"""Assembly of the broker, its supervisor, its errors and its security."""

ROLES = ("match", "deliver", "feeds", "api")
"""The roles of processes, see `graphmatch.broker.app.assembly`."""
