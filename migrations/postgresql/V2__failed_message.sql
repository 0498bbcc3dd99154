-- txinbox, schema version 2, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V2__failed_message.sql
-- or with `txinbox migrate`. The table goes into the first schema of the search_path: that of the others.

-- One row for each message that has failed; of one that is parked, its row of txinbox_consumed_message says so.
CREATE TABLE IF NOT EXISTS txinbox_failed_message (
  consumer        text COLLATE "C" NOT NULL,
  business_key    text COLLATE "C" NOT NULL,
  message_id      text COLLATE "C",
  attempts        integer NOT NULL DEFAULT 0,
  deaths          integer NOT NULL DEFAULT 0,
  first_error     text COLLATE "C",
  first_failed_at timestamptz,
  last_error      text COLLATE "C",
  last_failed_at  timestamptz,
  error_text      text COLLATE "C",
  payload         bytea,
  running_token   uuid,
  running_since   timestamptz,
  running_alone   integer,
  CONSTRAINT txinbox_failed_message_pkey PRIMARY KEY (consumer, business_key)
);

COMMENT ON COLUMN txinbox_failed_message.message_id IS 'the broker''s id of the last delivery that failed';
COMMENT ON COLUMN txinbox_failed_message.attempts IS 'deliveries that failed, since the last retry';
COMMENT ON COLUMN txinbox_failed_message.deaths IS 'of them, those whose process died with this message alone in flight';
COMMENT ON COLUMN txinbox_failed_message.first_error IS 'the error''s class';
COMMENT ON COLUMN txinbox_failed_message.error_text IS 'of the last error, if it was asked for: it can hold values';
COMMENT ON COLUMN txinbox_failed_message.payload IS 'of the message, if it was given';
COMMENT ON COLUMN txinbox_failed_message.running_token IS 'the process in which an attempt has begun and not ended';
COMMENT ON COLUMN txinbox_failed_message.running_alone IS '1 while that process has no other attempt in flight';

-- For retention.
CREATE INDEX IF NOT EXISTS txinbox_failed_message_last_failed_at ON txinbox_failed_message (last_failed_at);

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (2, 'failed_message', '0.1.0')
ON CONFLICT (version) DO NOTHING;
