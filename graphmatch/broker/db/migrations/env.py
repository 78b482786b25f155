"""The environment of Alembic; `graphmatch.broker.db.store` provides the connection."""

from __future__ import annotations

from alembic import context

from graphmatch.broker.db.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
