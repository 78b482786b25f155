PRAGMA application_id = 1735222884;
PRAGMA user_version = 3;
BEGIN TRANSACTION;
CREATE TABLE feed_items (feed INTEGER NOT NULL, item BLOB NOT NULL,
  version BLOB NOT NULL, at BIGINT NOT NULL, PRIMARY KEY (feed, item, version));
INSERT INTO "feed_items" VALUES(1,X'67756964',X'76657273696F6E',1768392000000);
CREATE TABLE feeds (id INTEGER PRIMARY KEY, url TEXT NOT NULL UNIQUE,
  state JSON NOT NULL, created_at BIGINT NOT NULL);
INSERT INTO "feeds" VALUES(1,'https://e.org/feed','{"url":"https://e.org/feed","validators":{"If-None-Match":"\"1\""},"next_poll_at":"2026-01-14T12:00:00Z"}',1768392000000);
COMMIT;
