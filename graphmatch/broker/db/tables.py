"""The tables of the broker's store.

Times are milliseconds since 1970, in UTC. Publications, matches and deliveries are numbered by
`sequences`, in the order of their commits. A transaction holds the row of a sequence until it ends,
so if a number is visible, no lower number appears later.
"""

from __future__ import annotations

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    literal_column,
    text,
)

_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows of the type INTEGER only."""

metadata = MetaData()

sequences = Table(
    "sequences",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""Counters ``publication``, ``match``, ``delivery`` and ``change`` (of subscriptions)."""

owners = Table(
    "owners",
    metadata,
    Column("id", _SEQUENCE, primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("created_at", BigInteger, nullable=False),
)

tokens = Table(
    "tokens",
    metadata,
    Column("id", _SEQUENCE, primary_key=True),
    Column("owner", ForeignKey("owners.id"), nullable=False),
    Column("name", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False, unique=True),
    Column("scopes", Text, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("revoked_at", BigInteger),
)
"""API tokens. ``hash`` is the SHA-256 of the token; spaces separate the scopes."""

sessions = Table(
    "sessions",
    metadata,
    Column("hash", LargeBinary, primary_key=True),
    Column("token", ForeignKey("tokens.id"), nullable=False),
    Column("expires_at", BigInteger, nullable=False),
)
"""Sessions of the web page. ``hash`` is the SHA-256 of the session's random id."""

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("number", _SEQUENCE, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("owner", ForeignKey("owners.id")),
    Column("name", Text, nullable=False),
    Column("definition", JSON, nullable=False),
    Column("query", Text, nullable=False),
    Column("ticket", LargeBinary, nullable=False),
    Column("sink", JSON, nullable=False),
    Column("digest", JSON),
    Column("quiet_hours", JSON),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("announced_at", BigInteger),
    Column("generation", Integer, nullable=False),
    Column("change", BigInteger, nullable=False),
    Column("after_publication", BigInteger, nullable=False),
)
"""Subscriptions, including those that have ended.

``definition`` is the request (SPARQL, attributes, or topics and words) and ``query`` its SPARQL.
``ticket`` is the SHA-256 of the ticket. ``state`` is ``active``, ``paused``, ``unconfirmed`` (email)
or ``ended``. ``change`` is the value of the counter at the last change; engines use it to catch up.
A subscription does not see publications up to ``after_publication``.
"""
Index("subscriptions_change", subscriptions.c.change)
Index("subscriptions_expires", subscriptions.c.expires_at)
Index("subscriptions_owner", subscriptions.c.owner)

publications = Table(
    "publications",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True, autoincrement=False),
    Column("id", Text, nullable=False),
    Column("hash", LargeBinary, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Column("title", Text),
    Column("link", Text),
    Column("summary", Text),
    Column("source", Text, nullable=False),
    Column("owner", ForeignKey("owners.id")),
    Column("received_at", BigInteger, nullable=False),
    Column("claimed_until", BigInteger),
    Column("matched_at", BigInteger),
    Column("problem", Text),
)
"""The log of acknowledged publications. ``data`` is N-Triples, ``hash`` its SHA-256."""
Index(
    "publications_unmatched",
    publications.c.seq,
    sqlite_where=text("matched_at IS NULL"),
    postgresql_where=text("matched_at IS NULL"),
)
Index("publications_id", publications.c.id)
Index("publications_received", publications.c.received_at)

idempotency_keys = Table(
    "idempotency_keys",
    metadata,
    Column("owner", BigInteger, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
    Column("response", JSON, nullable=False),
    Column("at", BigInteger, nullable=False),
)
"""Responses to requests with an ``Idempotency-Key``."""
Index("idempotency_keys_at", idempotency_keys.c.at)

matches = Table(
    "matches",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("subscription", ForeignKey("subscriptions.number"), nullable=False),
    Column("publication", ForeignKey("publications.seq"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("solutions", Text, nullable=False),
    Column("truncated", Boolean, nullable=False),
    Column("ontology_version", BigInteger, nullable=False),
    Column("matched_at", BigInteger, nullable=False),
    Column("delivery", ForeignKey("deliveries.id")),
)
"""Matches. ``solutions`` is JSON with terms in N-Triples; ``truncated`` says that some are missing."""
Index("matches_subscription", matches.c.subscription, matches.c.seq)
Index("matches_publication", matches.c.publication)
Index(
    "matches_delivery",
    matches.c.delivery,
    sqlite_where=text("delivery IS NOT NULL"),
    postgresql_where=text("delivery IS NOT NULL"),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("id", _SEQUENCE, primary_key=True),
    Column("subscription", ForeignKey("subscriptions.number"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("host", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("due_at", BigInteger, nullable=False),
    Column("claimed_until", BigInteger),
    Column("created_at", BigInteger, nullable=False),
    Column("done_at", BigInteger),
    Column("status", Integer),
    Column("error", Text),
)
"""The outbox.

``kind`` is ``match``, ``digest``, ``expiring``, ``expired`` or ``disabled``; ``state`` is
``waiting``, ``delivered`` or ``failed``.
"""
WAITING = deliveries.c.state == literal_column("'waiting'")
"""Written out: SQLite uses the indexes below for a value that it sees, not for a parameter."""
Index(
    "deliveries_due",
    deliveries.c.host,
    deliveries.c.due_at,
    sqlite_where=text("state = 'waiting'"),
    postgresql_where=text("state = 'waiting'"),
)
Index(
    "deliveries_open",
    deliveries.c.subscription,
    sqlite_where=text("state = 'waiting'"),
    postgresql_where=text("state = 'waiting'"),
)
Index("deliveries_subscription", deliveries.c.subscription, deliveries.c.id)

circuit_breakers = Table(
    "circuit_breakers",
    metadata,
    Column("host", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("open_until", BigInteger),
    Column("last_at", BigInteger, nullable=False),
)
"""One circuit breaker for each host."""

feeds = Table(
    "feeds",
    metadata,
    Column("id", _SEQUENCE, primary_key=True),
    Column("url", Text, nullable=False, unique=True),
    Column("owner", ForeignKey("owners.id")),
    Column("state", JSON, nullable=False),
    Column("next_poll_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)
"""Polled feeds. ``state`` is a `graphmatch.broker.feeds.feed_store.Feed` in JSON."""
Index("feeds_next_poll", feeds.c.next_poll_at)

feed_items = Table(
    "feed_items",
    metadata,
    Column("feed", ForeignKey("feeds.id"), primary_key=True),
    Column("item", LargeBinary, primary_key=True),
    Column("version", LargeBinary, primary_key=True),
    Column("at", BigInteger, nullable=False),
)
"""Versions of items that were published, and when the feed last contained them."""

websub = Table(
    "websub",
    metadata,
    Column("kind", Text, primary_key=True),
    Column("key", LargeBinary, primary_key=True),
    Column("state", JSON, nullable=False),
)
"""WebSub: ``lease``, a feed that a hub sends us; ``callback``, who subscribed to a match feed, and
``delivery``, what they were sent. ``key`` is a digest: two addresses are too long for an index.
"""

audit = Table(
    "audit",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text),
    Column("actor", Text),
)
"""Administrative actions, refusals and failures."""

read_items = Table(
    "read_items",
    metadata,
    Column("owner", ForeignKey("owners.id"), primary_key=True),
    Column("publication", ForeignKey("publications.seq"), primary_key=True),
)
"""Items that an owner has read on the web page."""

dead_letters = Table(
    "dead_letters",
    metadata,
    Column("id", _SEQUENCE, primary_key=True),
    Column("task", Text, nullable=False),
    Column("record", Text, nullable=False),
    Column("error", Text, nullable=False),
    Column("at", BigInteger, nullable=False),
)
"""Records that a background task could not process in three attempts."""
Index("dead_letters_at", dead_letters.c.at)

kafka_offsets = Table(
    "kafka_offsets",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("offset", BigInteger, nullable=False),
)
"""The next offset to read of each Kafka partition."""
