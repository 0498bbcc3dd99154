-- txinbox, schema version 2, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V2__outbox.sql" "COMMIT"
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

-- One row: the id of this database. The ids of messages that handlers add to the outbox are derived from it. So two
-- databases, for example of two tenants, never derive the same id.
CREATE TABLE IF NOT EXISTS txinbox_outbox_database (
  one INTEGER NOT NULL PRIMARY KEY CHECK (one = 1),
  id  BLOB    NOT NULL  -- 16 random bytes
) WITHOUT ROWID;

INSERT INTO txinbox_outbox_database (one, id) VALUES (1, randomblob(16)) ON CONFLICT (one) DO NOTHING;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (2, 'outbox', '0.1.0')
ON CONFLICT (version) DO NOTHING;
