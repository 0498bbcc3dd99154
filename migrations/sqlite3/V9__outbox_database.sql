-- txinbox, schema version 9, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V9__outbox_database.sql" "COMMIT"
-- or with `txinbox migrate`.

-- One row: the id of this database. The ids of messages that handlers add to the outbox are derived from it. So two
-- databases, for example of two tenants, never derive the same id.
CREATE TABLE IF NOT EXISTS txinbox_outbox_database (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  id  BLOB    NOT NULL  -- 16 random bytes
) WITHOUT ROWID;

INSERT INTO txinbox_outbox_database (one, id) VALUES (1, randomblob(16)) ON CONFLICT (one) DO NOTHING;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (9, 'outbox_database', '0.1.0')
ON CONFLICT (version) DO NOTHING;
