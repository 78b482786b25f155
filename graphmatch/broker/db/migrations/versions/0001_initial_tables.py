"""Create the tables of the first release.

Until that release, this migration creates whatever `graphmatch.broker.db.tables` defines.
"""

from __future__ import annotations

from alembic import op

from graphmatch.broker.db.tables import metadata

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create all tables and indexes."""
    metadata.create_all(op.get_bind())
