-- txinbox, schema version 4, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V4__consumer.sql
-- or with `txinbox migrate`. The table goes into the first schema of the search_path: that of the others.

-- What is known of each consumer as a whole. The row with an empty name is about all of them.
CREATE TABLE IF NOT EXISTS txinbox_consumer (
  consumer            text COLLATE "C" NOT NULL,
  duplicates          bigint NOT NULL DEFAULT 0,
  oldest_duplicate    bigint,
  oldest_duplicate_at timestamptz,
  retention           bigint,
  purged              bigint NOT NULL DEFAULT 0,
  purged_at           timestamptz,
  CONSTRAINT txinbox_consumer_pkey PRIMARY KEY (consumer)
);

COMMENT ON COLUMN txinbox_consumer.duplicates IS 'caught so far, written now and then';
COMMENT ON COLUMN txinbox_consumer.oldest_duplicate IS 'milliseconds: the greatest age of an original when its duplicate came';
COMMENT ON COLUMN txinbox_consumer.retention IS 'seconds: what the last purge kept';
COMMENT ON COLUMN txinbox_consumer.purged IS 'rows purged so far';

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (4, 'consumer', '0.1.0')
ON CONFLICT (version) DO NOTHING;
