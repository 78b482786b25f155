"""The tables of the broker's store.

Times are milliseconds since 1970, in UTC. Publications, matches and deliveries are numbered by
counters (`meta`), in the order of their commits: whoever counts holds the counter's row until then.
So a number that can be read has no lower one that comes after it.
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
    func,
    literal_column,
    select,
    text,
)

_SEQUENCE = BigInteger().with_variant(Integer, "sqlite")
"""SQLite numbers rows of the type INTEGER only."""

metadata = MetaData()

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", BigInteger, nullable=False),
)
"""Counters: ``publication``, ``match``, ``delivery``, ``change`` (of subscriptions), ``engine``."""

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
    Column("revoked_at", BigInteger),
)
"""API tokens: only SHA-256 of each is kept; scopes are parted by spaces."""

subscriptions = Table(
    "subscriptions",
    metadata,
    Column("number", _SEQUENCE, primary_key=True),
    Column("id", Text, nullable=False, unique=True),
    Column("owner", ForeignKey("owners.id")),
    Column("name", Text, nullable=False),
    Column("given", JSON, nullable=False),
    Column("query", Text, nullable=False),
    Column("ticket", LargeBinary, nullable=False),
    Column("sink", JSON, nullable=False),
    Column("digest", JSON),
    Column("quiet", JSON),
    Column("state", Text, nullable=False),
    Column("reason", Text),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger),
    Column("announced_at", BigInteger),
    Column("generation", Integer, nullable=False),
    Column("change", BigInteger, nullable=False),
    Column("after", BigInteger, nullable=False),
)
"""Subscriptions, also those that have ended.

``given`` is what was asked for (SPARQL, attributes, topics and words), ``query`` its SPARQL;
``ticket`` SHA-256 of the ticket; ``after`` the last publication that it does not see; ``change``
the counter when it was last changed, by which engines catch up.
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
    Column("source", Text, nullable=False),
    Column("owner", ForeignKey("owners.id")),
    Column("received_at", BigInteger, nullable=False),
    Column("claimed_until", BigInteger),
    Column("matched_at", BigInteger),
    Column("problem", Text),
)
"""The log: what was acknowledged. ``data`` is N-Triples; ``hash`` is of the data."""
Index(
    "publications_waiting",
    publications.c.seq,
    sqlite_where=text("matched_at IS NULL"),
    postgresql_where=text("matched_at IS NULL"),
)
Index("publications_id", publications.c.id)
Index("publications_received", publications.c.received_at)

requests = Table(
    "requests",
    metadata,
    Column("owner", BigInteger, primary_key=True),
    Column("key", Text, primary_key=True),
    Column("hash", LargeBinary, nullable=False),
    Column("said", JSON, nullable=False),
    Column("at", BigInteger, nullable=False),
)
"""What was answered to requests with an Idempotency-Key."""
Index("requests_at", requests.c.at)

matches = Table(
    "matches",
    metadata,
    Column("seq", _SEQUENCE, primary_key=True),
    Column("subscription", ForeignKey("subscriptions.number"), nullable=False),
    Column("publication", ForeignKey("publications.seq"), nullable=False),
    Column("generation", Integer, nullable=False),
    Column("solutions", Text, nullable=False),
    Column("cut", Boolean, nullable=False),
    Column("engine", BigInteger, nullable=False),
    Column("at", BigInteger, nullable=False),
    Column("delivery", ForeignKey("deliveries.id")),
)
"""``solutions`` is JSON, of terms as N-Triples; ``cut`` says that there are more."""
Index("matches_subscription", matches.c.subscription, matches.c.seq)
Index("matches_publication", matches.c.publication)
Index(
    "matches_delivery",
    matches.c.delivery,
    sqlite_where=text("delivery IS NOT NULL"),
    postgresql_where=text("delivery IS NOT NULL"),
)

_THEIRS = matches.c.subscription == subscriptions.c.number
_SOME = select(matches.c.seq).where(_THEIRS).limit(10_000).correlate(subscriptions).subquery()
_NEWEST = select(matches).where(_THEIRS).order_by(matches.c.seq.desc()).limit(1)
MATCHED_AT = (
    _NEWEST.with_only_columns(matches.c.at)
    .correlate(subscriptions)
    .scalar_subquery()
    .label("matched_at")
)
"""When a subscription matched last."""
WITH_MATCHES = select(
    subscriptions,
    select(func.count()).select_from(_SOME).scalar_subquery().label("matched"),
    MATCHED_AT,
)
"""Subscriptions, with how many matches are kept of each, 10,000 at most, and when the last was."""

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

hosts = Table(
    "hosts",
    metadata,
    Column("host", Text, primary_key=True),
    Column("failures", Integer, nullable=False),
    Column("open_until", BigInteger),
    Column("last_at", BigInteger, nullable=False),
)
"""Breakers, a host each."""

feeds = Table(
    "feeds",
    metadata,
    Column("id", _SEQUENCE, primary_key=True),
    Column("url", Text, nullable=False, unique=True),
    Column("owner", ForeignKey("owners.id")),
    Column("state", JSON, nullable=False),
    Column("next_at", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)
"""``state`` is what the poller knows of a feed (`graphmatch.broker.feeds`)."""
Index("feeds_next", feeds.c.next_at)

feed_items = Table(
    "feed_items",
    metadata,
    Column("feed", ForeignKey("feeds.id"), primary_key=True),
    Column("item", LargeBinary, primary_key=True),
    Column("version", LargeBinary, primary_key=True),
    Column("at", BigInteger, nullable=False),
)
"""Which items of a feed were taken in, in which versions, and when they were last in it."""

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
    Column("what", Text, nullable=False),
    Column("subject", Text),
    Column("who", Text),
)

consumed = Table(
    "consumed",
    metadata,
    Column("topic", Text, primary_key=True),
    Column("partition", Integer, primary_key=True),
    Column("offset", BigInteger, nullable=False),
)
"""The next offset of Kafka's partitions that were read."""
