-- txinbox, schema version 1, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V1__consumed_message.sql
-- or with `txinbox migrate`. The tables go into the first schema of the search_path.

-- One row for each (consumer, business key) that was claimed. COLLATE "C": compared byte for byte.
CREATE TABLE IF NOT EXISTS txinbox_consumed_message (
  consumer         text COLLATE "C" NOT NULL,
  business_key     text COLLATE "C" NOT NULL,
  message_id       text COLLATE "C",
  content_hash     bytea,
  state            text COLLATE "C" NOT NULL,
  attempt_token    uuid NOT NULL,
  lease_owner      text COLLATE "C",
  lease_fence      bigint,
  lease_expires_at timestamptz,
  attempts         integer,
  result           bytea,
  consumed_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT txinbox_consumed_message_pkey PRIMARY KEY (consumer, business_key)
);

COMMENT ON COLUMN txinbox_consumed_message.consumer IS 'the consumer group''s name';
COMMENT ON COLUMN txinbox_consumed_message.message_id IS 'the broker''s id of the delivery that claimed it';
COMMENT ON COLUMN txinbox_consumed_message.content_hash IS 'of the bytes that must be equal in every delivery';
COMMENT ON COLUMN txinbox_consumed_message.state IS 'consumed, consuming, parked, torn';
COMMENT ON COLUMN txinbox_consumed_message.attempt_token IS 'the run that wrote the row';
COMMENT ON COLUMN txinbox_consumed_message.result IS 'what the handler stored';
COMMENT ON COLUMN txinbox_consumed_message.consumed_at IS 'since when in this state';

-- For retention.
CREATE INDEX IF NOT EXISTS txinbox_consumed_message_consumed_at ON txinbox_consumed_message (consumed_at);

-- One row for each migration that was applied.
CREATE TABLE IF NOT EXISTS txinbox_schema (
  version        integer NOT NULL PRIMARY KEY,
  name           text NOT NULL,
  oldest_library text NOT NULL,
  applied_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

COMMENT ON COLUMN txinbox_schema.oldest_library IS 'the oldest txinbox that can work with this version';

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (1, 'consumed_message', '0.1.0')
ON CONFLICT (version) DO NOTHING;
