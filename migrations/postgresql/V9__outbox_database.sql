-- txinbox, schema version 9, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V9__outbox_database.sql
-- or with `txinbox migrate`. The table goes into the first schema of the search_path: that of the others.

-- One row: the id of this database. The ids of messages that handlers add to the outbox are derived from it. So two
-- databases or schemas, for example of two tenants, never derive the same id.
CREATE TABLE IF NOT EXISTS txinbox_outbox_database (
  one integer NOT NULL,
  id  uuid     NOT NULL,
  CONSTRAINT txinbox_outbox_database_pkey PRIMARY KEY (one),
  CONSTRAINT txinbox_outbox_database_one CHECK (one = 1)
);

COMMENT ON COLUMN txinbox_outbox_database.id IS 'random';

-- gen_random_uuid() needs PostgreSQL 13.
INSERT INTO txinbox_outbox_database (one, id)
VALUES (1, md5(random()::text || clock_timestamp()::text || pg_backend_pid()::text)::uuid)
ON CONFLICT (one) DO NOTHING;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (9, 'outbox_database', '0.1.0')
ON CONFLICT (version) DO NOTHING;
