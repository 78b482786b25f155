"""How Alembic gets at the store: `graphmatch.broker.store` hands it a connection."""

from __future__ import annotations

from alembic import context

from graphmatch.broker.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    render_as_batch=True,
)
context.run_migrations()
