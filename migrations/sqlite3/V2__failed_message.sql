-- txinbox, schema version 2, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V2__failed_message.sql" "COMMIT"
-- or with `txinbox migrate`.

-- One row for each message that has failed; of one that is parked, its row of txinbox_consumed_message says so.
CREATE TABLE IF NOT EXISTS txinbox_failed_message (
  consumer        TEXT    NOT NULL,
  business_key    TEXT    NOT NULL,
  message_id      TEXT,                        -- the broker's id of the last delivery that failed
  attempts        INTEGER NOT NULL DEFAULT 0,  -- deliveries that failed, since the last retry
  deaths          INTEGER NOT NULL DEFAULT 0,  -- of them, those whose process died with this message alone in flight
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

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (2, 'failed_message', '0.1.0')
ON CONFLICT (version) DO NOTHING;
