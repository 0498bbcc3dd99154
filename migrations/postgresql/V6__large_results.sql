-- txinbox, schema version 6, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V6__large_results.sql
-- or with `txinbox migrate`.

-- Only MariaDB and MySQL get something new, a longer type. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (6, 'large_results', '0.1.0')
ON CONFLICT (version) DO NOTHING;
