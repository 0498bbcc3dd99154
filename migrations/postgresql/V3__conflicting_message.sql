-- txinbox, schema version 3, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V3__conflicting_message.sql
-- or with `txinbox migrate`. The table goes into the first schema of the search_path: that of the others.

-- One row for each other content that has come under a business key.
CREATE TABLE IF NOT EXISTS txinbox_conflicting_message (
  consumer            text COLLATE "C" NOT NULL,
  business_key        text COLLATE "C" NOT NULL,
  content_hash        bytea NOT NULL,
  original_hash       bytea NOT NULL,
  message_id          text COLLATE "C",
  original_message_id text COLLATE "C",
  reason              text COLLATE "C" NOT NULL,
  deliveries          integer NOT NULL,
  first_at            timestamptz NOT NULL,
  last_at             timestamptz NOT NULL,
  CONSTRAINT txinbox_conflicting_message_pkey PRIMARY KEY (consumer, business_key, content_hash)
);

COMMENT ON COLUMN txinbox_conflicting_message.content_hash IS 'of the delivery that was refused';
COMMENT ON COLUMN txinbox_conflicting_message.original_hash IS 'of the delivery that has the key';
COMMENT ON COLUMN txinbox_conflicting_message.message_id IS 'the broker''s id of the last delivery that was refused';
COMMENT ON COLUMN txinbox_conflicting_message.reason IS 'what the key''s row was: consumed, consuming, parked, torn, discarded';
COMMENT ON COLUMN txinbox_conflicting_message.deliveries IS 'how many were refused';

-- For retention.
CREATE INDEX IF NOT EXISTS txinbox_conflicting_message_last_at ON txinbox_conflicting_message (last_at);

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (3, 'conflicting_message', '0.1.0')
ON CONFLICT (version) DO NOTHING;
