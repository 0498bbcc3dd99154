-- txinbox, schema version 3, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V3__operations.sql" "COMMIT"
-- or with `txinbox migrate`.

-- One row for each consumer that an operator has paused. A row whose resumes_at is over has no effect.
CREATE TABLE IF NOT EXISTS txinbox_pause (
  consumer   TEXT NOT NULL PRIMARY KEY,
  paused_at  TEXT NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),  -- UTC
  resumes_at TEXT,           -- UTC; NULL: until somebody resumes it
  reason     TEXT NOT NULL,
  actor      TEXT NOT NULL   -- who has paused it
) WITHOUT ROWID;

-- One row for each change that an operator has made. Nothing reads it but people.
CREATE TABLE IF NOT EXISTS txinbox_audit (
  id           INTEGER PRIMARY KEY AUTOINCREMENT,
  at           TEXT    NOT NULL DEFAULT (strftime('%Y-%m-%d %H:%M:%f', 'now')),  -- UTC
  actor        TEXT    NOT NULL,  -- who made the change
  action       TEXT    NOT NULL,  -- such as pause
  consumer     TEXT,
  business_key TEXT,              -- compared byte for byte
  messages     INTEGER NOT NULL,  -- how many rows it changed
  reason       TEXT
);

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (3, 'operations', '0.1.0')
ON CONFLICT (version) DO NOTHING;
