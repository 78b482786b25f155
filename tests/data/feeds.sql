PRAGMA application_id = 1735222884;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE feeds (url TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "feeds" VALUES('https://e.org/feed','{"url": "https://e.org/feed", "etag": "\"1\"", "next_at": "2026-01-14T12:00:00+00:00", "ttl": 60, "skip_hours": [1, 2]}');
CREATE TABLE items (
  feed TEXT NOT NULL, guid BLOB NOT NULL, version BLOB NOT NULL, day INTEGER NOT NULL,
  PRIMARY KEY (feed, guid, version)
) WITHOUT ROWID;
INSERT INTO "items" VALUES('https://e.org/feed',X'67756964',X'76657273696F6E',739630);
COMMIT;
