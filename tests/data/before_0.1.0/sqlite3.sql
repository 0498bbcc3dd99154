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

-- txinbox, schema version 5, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V5__guard.sql" "COMMIT"
-- or with `txinbox migrate`.

-- Only PostgreSQL gets something new, a trigger. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (5, 'guard', '0.1.0')
ON CONFLICT (version) DO NOTHING;

-- txinbox, schema version 6, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V6__large_results.sql" "COMMIT"
-- or with `txinbox migrate`.

-- Only MariaDB and MySQL get something new, a longer type. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (6, 'large_results', '0.1.0')
ON CONFLICT (version) DO NOTHING;

-- txinbox, schema version 7, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V7__outbox.sql" "COMMIT"
-- or with `txinbox migrate`.

-- One row for each message that waits to be published. The names id, aggregatetype, aggregateid, type and payload are
-- those of Debezium's outbox event router.
CREATE TABLE IF NOT EXISTS txinbox_outbox_message (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,  -- the order of insertion
  id            TEXT    NOT NULL UNIQUE,            -- the message id, a UUID, by which receivers recognize a message that comes again
  aggregatetype TEXT    NOT NULL,                   -- the topic
  aggregateid   TEXT    NOT NULL,                   -- the key: messages of one key are published in order; empty: no order
  type          TEXT    NOT NULL,
  payload       BLOB    NOT NULL,
  headers       TEXT,                               -- a JSON object of strings
  part          INTEGER NOT NULL,                   -- 0 to 63; one relay publishes a part at a time; equal for equal keys
  attempts      INTEGER NOT NULL DEFAULT 0,         -- how often the broker did not take it
  last_error    TEXT,
  parked_at     TEXT,                               -- UTC; a parked message is not published until it is retried
  created_at    TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now'))
);
CREATE INDEX IF NOT EXISTS txinbox_outbox_message_aggregateid ON txinbox_outbox_message (aggregateid, seq);

-- One row for each relay that runs.
CREATE TABLE IF NOT EXISTS txinbox_outbox_relay (
  token            BLOB NOT NULL PRIMARY KEY,
  name             TEXT NOT NULL,
  started_at       TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),
  lease_expires_at TEXT NOT NULL
) WITHOUT ROWID;

-- One row for each part.
CREATE TABLE IF NOT EXISTS txinbox_outbox_part (
  part  INTEGER NOT NULL PRIMARY KEY,
  owner BLOB                                        -- the token of the relay that publishes the part
) WITHOUT ROWID;

INSERT INTO txinbox_outbox_part (part) VALUES
  (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
  (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31),
  (32), (33), (34), (35), (36), (37), (38), (39), (40), (41), (42), (43), (44), (45), (46), (47),
  (48), (49), (50), (51), (52), (53), (54), (55), (56), (57), (58), (59), (60), (61), (62), (63)
ON CONFLICT (part) DO NOTHING;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (7, 'outbox', '0.1.0')
ON CONFLICT (version) DO NOTHING;

-- txinbox, schema version 8, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V8__procedures.sql" "COMMIT"
-- or with `txinbox migrate`.

-- Only MySQL gets something new, two procedures. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (8, 'procedures', '0.1.0')
ON CONFLICT (version) DO NOTHING;

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
