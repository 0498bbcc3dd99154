-- txinbox, schema version 8, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V8__procedures.sql" "COMMIT"
-- or with `txinbox migrate`.

-- Only MySQL gets something new, two procedures. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (8, 'procedures', '0.1.0')
ON CONFLICT (version) DO NOTHING;
