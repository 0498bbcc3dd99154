-- txinbox, schema version 8, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V8__procedures.sql
-- or with `txinbox migrate`.

-- Only MySQL gets something new, two procedures. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (8, 'procedures', '0.1.0')
ON CONFLICT (version) DO NOTHING;
