BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE audit (
	seq INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	action TEXT NOT NULL, 
	target TEXT, 
	actor TEXT, 
	PRIMARY KEY (seq)
);
CREATE TABLE circuit_breakers (
	host TEXT NOT NULL, 
	failures INTEGER NOT NULL, 
	open_until BIGINT, 
	last_at BIGINT NOT NULL, 
	PRIMARY KEY (host)
);
CREATE TABLE dead_letters (
	id INTEGER NOT NULL, 
	task TEXT NOT NULL, 
	record TEXT NOT NULL, 
	error TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE deliveries (
	id INTEGER NOT NULL, 
	subscription INTEGER NOT NULL, 
	kind TEXT NOT NULL, 
	host TEXT NOT NULL, 
	state TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	due_at BIGINT NOT NULL, 
	claimed_until BIGINT, 
	created_at BIGINT NOT NULL, 
	callback INTEGER, 
	done_at BIGINT, 
	status INTEGER, 
	error TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(subscription) REFERENCES subscriptions (number), 
	FOREIGN KEY(callback) REFERENCES websub_callbacks (id)
);
CREATE TABLE feed_items (
	feed INTEGER NOT NULL, 
	item BLOB NOT NULL, 
	version BLOB NOT NULL, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (feed, item, version), 
	FOREIGN KEY(feed) REFERENCES feeds (id)
);
CREATE TABLE feeds (
	id INTEGER NOT NULL, 
	url TEXT NOT NULL, 
	owner INTEGER, 
	state JSON NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (url), 
	FOREIGN KEY(owner) REFERENCES owners (id)
);
CREATE TABLE idempotency_keys (
	owner BIGINT NOT NULL, 
	"key" TEXT NOT NULL, 
	hash BLOB NOT NULL, 
	response JSON NOT NULL, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (owner, "key")
);
CREATE TABLE kafka_offsets (
	topic TEXT NOT NULL, 
	partition INTEGER NOT NULL, 
	"offset" BIGINT NOT NULL, 
	PRIMARY KEY (topic, partition)
);
CREATE TABLE matches (
	seq INTEGER NOT NULL, 
	subscription INTEGER NOT NULL, 
	publication INTEGER NOT NULL, 
	generation INTEGER NOT NULL, 
	solutions TEXT NOT NULL, 
	truncated BOOLEAN NOT NULL, 
	sources TEXT NOT NULL, 
	ontology_version BIGINT NOT NULL, 
	matched_at BIGINT NOT NULL, 
	delivery INTEGER, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(subscription) REFERENCES subscriptions (number), 
	FOREIGN KEY(publication) REFERENCES publications (seq), 
	FOREIGN KEY(delivery) REFERENCES deliveries (id)
);
INSERT INTO "matches" VALUES(1,1,1,1,'[{}]',0,'http',0,1768392000000,NULL);
CREATE TABLE owners (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
CREATE TABLE publications (
	seq INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	data BLOB NOT NULL, 
	title TEXT, 
	link TEXT, 
	summary TEXT, 
	story BLOB, 
	story_too BLOB, 
	source TEXT NOT NULL, 
	owner INTEGER, 
	received_at BIGINT NOT NULL, 
	claimed_until BIGINT, 
	matched_at BIGINT, 
	problem TEXT, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(owner) REFERENCES owners (id)
);
INSERT INTO "publications" VALUES(1,'urn:old',X'3C75726E3A783E203C687474703A2F2F7777772E77332E6F72672F313939392F30322F32322D7264662D73796E7461782D6E7323747970653E203C75726E3A433E202E0A',NULL,NULL,NULL,NULL,NULL,'http',NULL,1768392000000,NULL,1768392000000,NULL);
CREATE TABLE read_items (
	publication INTEGER NOT NULL, 
	owner INTEGER NOT NULL, 
	PRIMARY KEY (publication, owner), 
	FOREIGN KEY(publication) REFERENCES publications (seq) ON DELETE CASCADE, 
	FOREIGN KEY(owner) REFERENCES owners (id)
);
CREATE TABLE sequences (
	"key" TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "sequences" VALUES('change',1);
INSERT INTO "sequences" VALUES('publication',1);
INSERT INTO "sequences" VALUES('match',1);
CREATE TABLE sessions (
	hash BLOB NOT NULL, 
	token INTEGER NOT NULL, 
	expires_at BIGINT NOT NULL, 
	PRIMARY KEY (hash), 
	FOREIGN KEY(token) REFERENCES tokens (id)
);
CREATE TABLE subscriptions (
	number INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	owner INTEGER, 
	name TEXT NOT NULL, 
	definition JSON NOT NULL, 
	"query" TEXT NOT NULL, 
	ticket BLOB NOT NULL, 
	sink JSON NOT NULL, 
	digest JSON, 
	quiet_hours JSON, 
	state TEXT NOT NULL, 
	reason TEXT, 
	confirmation TEXT, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	announced_at BIGINT, 
	generation INTEGER NOT NULL, 
	change BIGINT NOT NULL, 
	after_publication BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	UNIQUE (id), 
	FOREIGN KEY(owner) REFERENCES owners (id)
);
INSERT INTO "subscriptions" VALUES(1,'sub_d4d167d131a750e9',NULL,'subscription','{"query": "ASK { ?x a <urn:C> }"}','ASK { ?x a <urn:C> }',X'6101C62F3F8D28CE24342A32AE30B9E79B38A65AB926D4DE2FE0B22B1FB0F4EE','{"kind": "sse"}','null','null','active',NULL,NULL,1768392000000,1770984000000,NULL,1,1,0);
CREATE TABLE tokens (
	id INTEGER NOT NULL, 
	owner INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	hash BLOB NOT NULL, 
	scopes TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	revoked_at BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(owner) REFERENCES owners (id), 
	UNIQUE (hash)
);
CREATE TABLE usage (
	owner BIGINT NOT NULL, 
	subscriptions BIGINT NOT NULL, 
	stored_bytes BIGINT NOT NULL, 
	PRIMARY KEY (owner)
);
INSERT INTO "usage" VALUES(0,1,68);
CREATE TABLE websub_callbacks (
	id INTEGER NOT NULL, 
	subscription INTEGER NOT NULL, 
	topic TEXT NOT NULL, 
	callback TEXT NOT NULL, 
	"key" BLOB NOT NULL, 
	secret TEXT, 
	expires_at BIGINT, 
	version BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(subscription) REFERENCES subscriptions (number), 
	UNIQUE ("key")
);
CREATE INDEX ix_idempotency_keys_at ON idempotency_keys (at);
CREATE INDEX ix_dead_letters_at ON dead_letters (at);
CREATE INDEX ix_subscriptions_expires_at ON subscriptions (expires_at);
CREATE INDEX ix_subscriptions_change ON subscriptions (change);
CREATE INDEX ix_subscriptions_owner ON subscriptions (owner);
CREATE INDEX publications_story_too ON publications (story_too) WHERE story_too IS NOT NULL;
CREATE INDEX ix_publications_received_at ON publications (received_at);
CREATE INDEX publications_unmatched ON publications (seq) WHERE matched_at IS NULL;
CREATE INDEX ix_publications_id ON publications (id);
CREATE INDEX publications_story ON publications (story) WHERE story IS NOT NULL;
CREATE INDEX ix_websub_callbacks_subscription ON websub_callbacks (subscription);
CREATE INDEX deliveries_subscription ON deliveries (subscription, id);
CREATE INDEX deliveries_due ON deliveries (host, due_at) WHERE state = 'waiting';
CREATE INDEX deliveries_open ON deliveries (subscription) WHERE state = 'waiting';
CREATE INDEX deliveries_callback ON deliveries (callback) WHERE callback IS NOT NULL;
CREATE UNIQUE INDEX matches_publication ON matches (publication, subscription);
CREATE INDEX matches_subscription ON matches (subscription, seq);
CREATE INDEX matches_delivery ON matches (delivery) WHERE delivery IS NOT NULL;
COMMIT;
