-- txinbox, schema version 1, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V1__inbox.sql" "COMMIT"
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

-- One row for each message that has failed; of one that is parked, its row of txinbox_consumed_message says so.
CREATE TABLE IF NOT EXISTS txinbox_failed_message (
  consumer        TEXT    NOT NULL,
  business_key    TEXT    NOT NULL,
  message_id      TEXT,                        -- the broker's id of the last delivery that failed
  attempts        INTEGER NOT NULL DEFAULT 0,  -- deliveries that failed, since the last retry
  crashes         INTEGER NOT NULL DEFAULT 0,  -- of them, those whose process died with this message alone in flight
  first_error     TEXT,                        -- the error's class
  first_failed_at TEXT,                        -- UTC
  last_error      TEXT,
  last_failed_at  TEXT,                        -- UTC
  error_text      TEXT,                        -- of the last error, if it was asked for: it can hold values
  payload         BLOB,                        -- of the message, if it was given
  running_token   BLOB,                        -- the process in which an attempt has begun and not ended
  running_since   TEXT,                        -- UTC
  running_alone   INTEGER,                     -- 1 while that process has no other attempt in flight
  PRIMARY KEY (consumer, business_key)
) WITHOUT ROWID;

-- For retention.
CREATE INDEX IF NOT EXISTS txinbox_failed_message_last_failed_at ON txinbox_failed_message (last_failed_at);

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
VALUES (1, 'inbox', '0.1.0')
ON CONFLICT (version) DO NOTHING;
