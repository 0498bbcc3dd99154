-- txinbox, schema version 6, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V6__large_results.sql" "COMMIT"
-- or with `txinbox migrate`.

-- Only MariaDB and MySQL get something new, a longer type. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (6, 'large_results', '0.1.0')
ON CONFLICT (version) DO NOTHING;
