-- txinbox, schema version 4, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V4__consumer.sql" "COMMIT"
-- or with `txinbox migrate`.

-- What is known of each consumer as a whole. The row with an empty name is about all of them.
CREATE TABLE IF NOT EXISTS txinbox_consumer (
  consumer            TEXT    NOT NULL PRIMARY KEY,
  duplicates          INTEGER NOT NULL DEFAULT 0,  -- caught so far, written now and then
  oldest_duplicate    INTEGER,                     -- milliseconds: the greatest age of an original when its duplicate came
  oldest_duplicate_at TEXT,                        -- UTC; when that was
  retention           INTEGER,                     -- seconds: what the last purge kept
  purged              INTEGER NOT NULL DEFAULT 0,  -- rows purged so far
  purged_at           TEXT                         -- UTC
) WITHOUT ROWID;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (4, 'consumer', '0.1.0')
ON CONFLICT (version) DO NOTHING;
