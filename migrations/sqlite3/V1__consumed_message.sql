-- txinbox, schema version 1, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V1__consumed_message.sql" "COMMIT"
-- or with `txinbox migrate`.

-- One row for each (consumer, business key) that was claimed.
CREATE TABLE IF NOT EXISTS txinbox_consumed_message (
  consumer         TEXT    NOT NULL,  -- the consumer group's name
  business_key     TEXT    NOT NULL,  -- compared byte for byte
  message_id       TEXT,              -- the broker's id of the delivery that claimed it
  content_hash     BLOB,              -- of the bytes that must be equal in every delivery
  state            TEXT    NOT NULL,  -- consumed, consuming, parked, torn
  attempt_token    BLOB    NOT NULL,  -- the run that wrote the row
  lease_owner      TEXT,
  lease_fence      INTEGER,
  lease_expires_at TEXT,              -- UTC
  attempts         INTEGER,
  result           BLOB,              -- what the handler stored
  consumed_at      TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),  -- UTC; since when in this state
  PRIMARY KEY (consumer, business_key)
) WITHOUT ROWID;

-- For retention.
CREATE INDEX IF NOT EXISTS txinbox_consumed_message_consumed_at ON txinbox_consumed_message (consumed_at);

-- One row for each migration that was applied.
CREATE TABLE IF NOT EXISTS txinbox_schema (
  version        INTEGER NOT NULL PRIMARY KEY,
  name           TEXT    NOT NULL,
  oldest_library TEXT    NOT NULL,  -- the oldest txinbox that can work with this version
  applied_at     TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (1, 'consumed_message', '0.1.0')
ON CONFLICT (version) DO NOTHING;
