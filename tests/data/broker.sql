BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE audit (
	seq INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	what TEXT NOT NULL, 
	subject TEXT, 
	who TEXT, 
	PRIMARY KEY (seq)
);
CREATE TABLE consumed (
	topic TEXT NOT NULL, 
	partition INTEGER NOT NULL, 
	"offset" BIGINT NOT NULL, 
	PRIMARY KEY (topic, partition)
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
	done_at BIGINT, 
	status INTEGER, 
	error TEXT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(subscription) REFERENCES subscriptions (number)
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
	next_at BIGINT NOT NULL, 
	created_at BIGINT NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(owner) REFERENCES owners (id), 
	UNIQUE (url)
);
CREATE TABLE hosts (
	host TEXT NOT NULL, 
	failures INTEGER NOT NULL, 
	open_until BIGINT, 
	last_at BIGINT NOT NULL, 
	PRIMARY KEY (host)
);
CREATE TABLE matches (
	seq INTEGER NOT NULL, 
	subscription INTEGER NOT NULL, 
	publication INTEGER NOT NULL, 
	generation INTEGER NOT NULL, 
	solutions TEXT NOT NULL, 
	cut BOOLEAN NOT NULL, 
	engine BIGINT NOT NULL, 
	at BIGINT NOT NULL, 
	delivery INTEGER, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(delivery) REFERENCES deliveries (id), 
	FOREIGN KEY(publication) REFERENCES publications (seq), 
	FOREIGN KEY(subscription) REFERENCES subscriptions (number)
);
INSERT INTO "matches" VALUES(1,1,1,1,'[{}]',0,0,1768392000000,NULL);
CREATE TABLE meta (
	"key" TEXT NOT NULL, 
	value BIGINT NOT NULL, 
	PRIMARY KEY ("key")
);
INSERT INTO "meta" VALUES('change',1);
INSERT INTO "meta" VALUES('publication',1);
INSERT INTO "meta" VALUES('match',1);
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
	hash BLOB NOT NULL, 
	data BLOB NOT NULL, 
	title TEXT, 
	link TEXT, 
	source TEXT NOT NULL, 
	owner INTEGER, 
	received_at BIGINT NOT NULL, 
	claimed_until BIGINT, 
	matched_at BIGINT, 
	problem TEXT, 
	PRIMARY KEY (seq), 
	FOREIGN KEY(owner) REFERENCES owners (id)
);
INSERT INTO "publications" VALUES(1,'urn:old',X'A3DEE0965135DF0E8E34F29E6A841CFDB60570A6E51745254FBFDF168267F770',X'3C75726E3A783E203C687474703A2F2F7777772E77332E6F72672F313939392F30322F32322D7264662D73796E7461782D6E7323747970653E203C75726E3A433E202E0A',NULL,NULL,'http',NULL,1768392000000,NULL,1768392000000,NULL);
CREATE TABLE requests (
	owner BIGINT NOT NULL, 
	"key" TEXT NOT NULL, 
	hash BLOB NOT NULL, 
	said JSON NOT NULL, 
	at BIGINT NOT NULL, 
	PRIMARY KEY (owner, "key")
);
CREATE TABLE subscriptions (
	number INTEGER NOT NULL, 
	id TEXT NOT NULL, 
	owner INTEGER, 
	name TEXT NOT NULL, 
	given JSON NOT NULL, 
	"query" TEXT NOT NULL, 
	ticket BLOB NOT NULL, 
	sink JSON NOT NULL, 
	digest JSON, 
	quiet JSON, 
	state TEXT NOT NULL, 
	reason TEXT, 
	created_at BIGINT NOT NULL, 
	expires_at BIGINT, 
	announced_at BIGINT, 
	generation INTEGER NOT NULL, 
	change BIGINT NOT NULL, 
	"after" BIGINT NOT NULL, 
	PRIMARY KEY (number), 
	FOREIGN KEY(owner) REFERENCES owners (id), 
	UNIQUE (id)
);
INSERT INTO "subscriptions" VALUES(1,'sub_6df3e018491d05d9',NULL,'subscription','{"query": "ASK { ?x a <urn:C> }"}','ASK { ?x a <urn:C> }',X'450A3500798CD54EA002D1D6819A9D7C7467415B1662DE372D8D33265D295ACF','{"kind": "sse"}','null','null','active',NULL,1768392000000,1768478400000,NULL,1,1,0);
CREATE TABLE tokens (
	id INTEGER NOT NULL, 
	owner INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	hash BLOB NOT NULL, 
	scopes TEXT NOT NULL, 
	created_at BIGINT NOT NULL, 
	revoked_at BIGINT, 
	PRIMARY KEY (id), 
	FOREIGN KEY(owner) REFERENCES owners (id), 
	UNIQUE (hash)
);
CREATE TABLE websub (
	kind TEXT NOT NULL, 
	"key" BLOB NOT NULL, 
	state JSON NOT NULL, 
	PRIMARY KEY (kind, "key")
);
CREATE INDEX requests_at ON requests (at);
CREATE INDEX feeds_next ON feeds (next_at);
CREATE INDEX publications_id ON publications (id);
CREATE INDEX publications_received ON publications (received_at);
CREATE INDEX publications_waiting ON publications (seq) WHERE matched_at IS NULL;
CREATE INDEX subscriptions_change ON subscriptions (change);
CREATE INDEX subscriptions_expires ON subscriptions (expires_at);
CREATE INDEX subscriptions_owner ON subscriptions (owner);
CREATE INDEX deliveries_due ON deliveries (host, due_at) WHERE state = 'waiting';
CREATE INDEX deliveries_open ON deliveries (subscription) WHERE state = 'waiting';
CREATE INDEX deliveries_subscription ON deliveries (subscription, id);
CREATE INDEX matches_delivery ON matches (delivery) WHERE delivery IS NOT NULL;
CREATE INDEX matches_publication ON matches (publication);
CREATE INDEX matches_subscription ON matches (subscription, seq);
COMMIT;
