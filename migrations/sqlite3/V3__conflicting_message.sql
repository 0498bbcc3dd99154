-- txinbox, schema version 3, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V3__conflicting_message.sql" "COMMIT"
-- or with `txinbox migrate`.

-- One row for each other content that has come under a business key.
CREATE TABLE IF NOT EXISTS txinbox_conflicting_message (
  consumer            TEXT    NOT NULL,
  business_key        TEXT    NOT NULL,
  content_hash        BLOB    NOT NULL,  -- of the delivery that was refused
  original_hash       BLOB    NOT NULL,  -- of the delivery that has the key
  message_id          TEXT,              -- the broker's id of the last delivery that was refused
  original_message_id TEXT,
  reason              TEXT    NOT NULL,  -- what the key's row was: consumed, consuming, parked, torn, discarded
  deliveries          INTEGER NOT NULL,  -- how many were refused
  first_at            TEXT    NOT NULL,  -- UTC
  last_at             TEXT    NOT NULL,  -- UTC
  PRIMARY KEY (consumer, business_key, content_hash)
) WITHOUT ROWID;

-- For retention.
CREATE INDEX IF NOT EXISTS txinbox_conflicting_message_last_at ON txinbox_conflicting_message (last_at);

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (3, 'conflicting_message', '0.1.0')
ON CONFLICT (version) DO NOTHING;
