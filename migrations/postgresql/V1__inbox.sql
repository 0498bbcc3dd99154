-- txinbox, schema version 1, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V1__inbox.sql
-- or with `txinbox migrate`. The tables and the function go into the first schema of the search_path.

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

-- One row for each message that has failed; of one that is parked, its row of txinbox_consumed_message says so.
CREATE TABLE IF NOT EXISTS txinbox_failed_message (
  consumer        text COLLATE "C" NOT NULL,
  business_key    text COLLATE "C" NOT NULL,
  message_id      text COLLATE "C",
  attempts        integer NOT NULL DEFAULT 0,
  crashes         integer NOT NULL DEFAULT 0,
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
COMMENT ON COLUMN txinbox_failed_message.crashes IS 'of them, those whose process died with this message alone in flight';
COMMENT ON COLUMN txinbox_failed_message.first_error IS 'the error''s class';
COMMENT ON COLUMN txinbox_failed_message.error_text IS 'of the last error, if it was asked for: it can hold values';
COMMENT ON COLUMN txinbox_failed_message.payload IS 'of the message, if it was given';
COMMENT ON COLUMN txinbox_failed_message.running_token IS 'the process in which an attempt has begun and not ended';
COMMENT ON COLUMN txinbox_failed_message.running_alone IS '1 while that process has no other attempt in flight';

-- For retention.
CREATE INDEX IF NOT EXISTS txinbox_failed_message_last_failed_at ON txinbox_failed_message (last_failed_at);

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

-- Refuses every commit of a claim that does not come from txinbox: a COMMIT in a message's SQL fails, and undoes the
-- claim with all of that SQL. txinbox announces a claim in txinbox.claim_token while it inserts it, and its own commit
-- in txinbox.commit_token. Rows that are written without the announcement are not subject to it: those of leases, of
-- older libraries, of a dump that is restored.
CREATE OR REPLACE FUNCTION txinbox_refuse_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF pg_catalog.current_setting('txinbox.commit_token', true) IS DISTINCT FROM NEW.attempt_token::text THEN
    RAISE EXCEPTION USING
      ERRCODE = 'TXI01',
      MESSAGE = 'this transaction is txinbox''s to commit',
      DETAIL = 'It holds the claim of a message whose SQL has run COMMIT, PREPARE TRANSACTION or SET CONSTRAINTS ALL IMMEDIATE.',
      HINT = 'Take that statement out of the message''s SQL. Name the constraints that SET CONSTRAINTS is to check.';
  END IF;
  RETURN NULL;
END
$$;

DO $$
BEGIN
  IF NOT EXISTS (SELECT FROM pg_catalog.pg_trigger
                 WHERE tgrelid = 'txinbox_consumed_message'::pg_catalog.regclass AND tgname = 'txinbox_guard') THEN
    CREATE CONSTRAINT TRIGGER txinbox_guard AFTER INSERT OR UPDATE ON txinbox_consumed_message
      DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
      WHEN (pg_catalog.current_setting('txinbox.claim_token', true) <> '')
      EXECUTE FUNCTION txinbox_refuse_commit();
  END IF;
END
$$;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (1, 'inbox', '0.1.0')
ON CONFLICT (version) DO NOTHING;
