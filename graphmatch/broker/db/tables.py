"""The tables of the broker's store.

Times are milliseconds since 1970, in UTC. Publications, matches and deliveries are numbered by
`sequences`, in the order of their commits. A transaction holds the row of a sequence until it ends,
so if a number is visible, no lower number appears later.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy import JSON, BigInteger, Boolean, Column, ForeignKey, Integer, LargeBinary, Text

# SQLite numbers rows of the type INTEGER only.
_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")

metadata = sa.MetaData()


def _table(name: str, *columns: Column[Any]) -> sa.Table:
    return sa.Table(name, metadata, *columns)


def _partial_index(name: str, condition: str, *columns: Column[Any]) -> None:
    """Create an index of the rows that satisfy a condition."""
    where = sa.text(condition)
    sa.Index(name, *columns, sqlite_where=where, postgresql_where=where)


# Counters, see `COUNTERS`.
sequences = _table(
    "sequences",
    Column("key", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
# Keys of `sequences`; `change` counts the changes of subscriptions.
COUNTERS = ("publication", "match", "delivery", "change")

owners = _table(
    "owners",
    Column("id", _SEQUENCE, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
)

# API tokens. `hash` is the SHA-256 of the token; spaces separate the scopes.
tokens = _table(
    "tokens",
    Column("id", _SEQUENCE, primary_key=True),
    Column("owner", ForeignKey("owners.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("scopes", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
)

# Usage of each owner; 0 stands for all clients without a token.
#
# `subscriptions` is the number of those that have not ended. `stored_bytes` is the size of the
# stored publications that came over HTTP.
usage = _table(
    "usage",
    Column("owner", BigInteger, primary_key=True, autoincrement=False),
    Column("subscriptions", BigInteger, nullable=False),
    Column("stored_bytes", BigInteger, nullable=False),
)

# Sessions of the web page. `hash` is the SHA-256 of the session's random id.
sessions = _table(
    "sessions",
    Column("hash", LargeBinary, primary_key=True),
    Column("token", ForeignKey("tokens.id"), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)

# Subscriptions, including those that have ended.
#
# `definition` is the request (SPARQL, attributes, or topics and words) and `query` its SPARQL.
#
# `ticket` is the SHA-256 of the ticket. `state` is `active`, `paused`, `unconfirmed`
# (email) or `ended`. `confirmation` is the random key in the link that confirms an email sink.
# `change` is the value of the counter at the last change. Engines use it to catch up. A
# subscription does not see publications up to `after_publication`.
subscriptions = _table(
    "subscriptions",
    Column("number", _SEQUENCE, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("owner", ForeignKey("owners.id"), index=True),
    Column("name", Text, nullable=False),
    Column("definition", JSON, nullable=False),
    Column("query", Text, nullable=False),
    Column("ticket", LargeBinary, nullable=False),
    Column("sink", JSON, nullable=False),
    Column("digest", JSON),
    Column("quiet_hours", JSON),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("confirmation", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, index=True),
    Column("announced_at", BigInteger),
    Column("generation", Integer, nullable=False),
    Column("change", BigInteger, nullable=False, index=True),
    Column("after_publication", BigInteger, nullable=False),
)

# The log of acknowledged publications. `data` is N-Triples. `story` and `story_too` are digests of
# the names of a feed item's story (`Publication.story`).
publications = _table(
    "publications",
    Column("seq", _SEQUENCE, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False, index=True),
    Column("data", LargeBinary, nullable=False),
    Column("title", Text),
    Column("link", Text),
    Column("summary", Text),
    Column("story", LargeBinary),
    Column("story_too", LargeBinary),
    Column("source", Text, nullable=False),
    Column("owner", ForeignKey("owners.id")),
    Column("received_at", BigInteger, nullable=False, index=True),
    Column("claimed_until", BigInteger),
    Column("matched_at", BigInteger),
    Column("problem", Text),
)
_partial_index("publications_story", "story IS NOT NULL", publications.c.story)
_partial_index("publications_story_too", "story_too IS NOT NULL", publications.c.story_too)
_partial_index("publications_unmatched", "matched_at IS NULL", publications.c.seq)

# Responses to requests with an `Idempotency-Key`.
idempotency_keys = _table(
    "idempotency_keys",
    Column("owner", BigInteger, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
    Column("response", JSON, nullable=False),
    Column("at", BigInteger, nullable=False, index=True),
)

# Matches.
#
# `solutions` is JSON with terms in N-Triples. `truncated` means that some of them are missing.
# `sources` are the sources of the publication and of its copies, one a line.
matches = _table(
    "matches",
    Column("seq", _SEQUENCE, primary_key=True),
    Column("subscription", ForeignKey("subscriptions.number"), nullable=False),
    Column("publication", ForeignKey("publications.seq"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("solutions", Text, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("sources", Text, nullable=False),
    Column("ontology_version", BigInteger, nullable=False),
    Column("matched_at", BigInteger, nullable=False),
    Column("delivery", ForeignKey("deliveries.id")),
)
sa.Index("matches_publication", matches.c.publication, matches.c.subscription, unique=True)
sa.Index("matches_subscription", matches.c.subscription, matches.c.seq)
_partial_index("matches_delivery", "delivery IS NOT NULL", matches.c.delivery)

# The outbox.
#
# `kind` is `match`, `digest`, `confirmation`, `expiring`, `expired` or `disabled`;
# `state` is `waiting`, `delivered` or `failed`. `callback` is the receiver of a delivery of
# the WebSub hub.
deliveries = _table(
    "deliveries",
    Column("id", _SEQUENCE, primary_key=True),
    Column("subscription", ForeignKey("subscriptions.number"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("claimed_until", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("callback", ForeignKey("websub_callbacks.id")),
    Column("done_at", BigInteger),
    Column("status", Integer),
    Column("error", Text),
)
# Written out: SQLite uses the indexes below for a value that it sees, not for a parameter.
WAITING = deliveries.c.state == sa.literal_column("'waiting'")
_partial_index("deliveries_due", "state = 'waiting'", deliveries.c.host, deliveries.c.due_at)
_partial_index("deliveries_open", "state = 'waiting'", deliveries.c.subscription)
sa.Index("deliveries_subscription", deliveries.c.subscription, deliveries.c.id)
_partial_index("deliveries_callback", "callback IS NOT NULL", deliveries.c.callback)

# Callbacks to which the WebSub hub sends match feeds.
#
# `key` is a digest of topic and callback, which are too long for an index. `version` is the
# version of the feed that was sent last, and `pending` a request that is not yet verified.
websub_callbacks = _table(
    "websub_callbacks",
    Column("id", _SEQUENCE, primary_key=True),
    Column("subscription", ForeignKey("subscriptions.number"), nullable=False, index=True),
    Column("topic", Text, nullable=False),
    Column("callback", Text, nullable=False),
    Column("key", LargeBinary, nullable=False, unique=True),
    Column("secret", Text),
    Column("expires_at", BigInteger),
    Column("version", BigInteger),
)

# One circuit breaker for each host.
circuit_breakers = _table(
    "circuit_breakers",
    Column("host", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("open_until", BigInteger),
    Column("last_at", BigInteger, nullable=False),
)

# Polled feeds. `state` is a `graphmatch.broker.feeds.feed_store.Feed` in JSON.
feeds = _table(
    "feeds",
    Column("id", _SEQUENCE, primary_key=True),
    Column("url", Text, nullable=False, unique=True),
    Column("owner", ForeignKey("owners.id")),
    Column("state", JSON, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

# Versions of items that were published, and when the feed last contained them.
feed_items = _table(
    "feed_items",
    Column("feed", ForeignKey("feeds.id"), primary_key=True),
    Column("item", LargeBinary, primary_key=True),
    Column("version", LargeBinary, primary_key=True),
    Column("at", BigInteger, nullable=False),
)

# Administrative actions, refusals and failures.
audit = _table(
    "audit",
    Column("seq", _SEQUENCE, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text),
    Column("actor", Text),
)

# Items that an owner has read on the web page.
read_items = _table(
    "read_items",
    Column("publication", ForeignKey("publications.seq", ondelete="CASCADE"), primary_key=True),
    Column("owner", ForeignKey("owners.id"), primary_key=True),
)

# Records that a background task could not process in three attempts.
dead_letters = _table(
    "dead_letters",
    Column("id", _SEQUENCE, primary_key=True),
    Column("task", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("at", BigInteger, nullable=False, index=True),
)

# The next offset to read of each Kafka partition.
kafka_offsets = _table(
    "kafka_offsets",
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("offset", BigInteger, nullable=False),
)
