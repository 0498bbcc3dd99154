-- txinbox, schema version 5, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V5__guard.sql" "COMMIT"
-- or with `txinbox migrate`.

-- Only PostgreSQL gets something new, a trigger. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (5, 'guard', '0.1.0')
ON CONFLICT (version) DO NOTHING;
