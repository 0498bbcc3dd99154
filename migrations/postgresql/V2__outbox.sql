-- txinbox, schema version 2, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V2__outbox.sql
-- or with `txinbox migrate`. The tables go into the first schema of the search_path: that of the inbox.

-- One row for each message that waits to be published. The names id, aggregatetype, aggregateid, type and payload are
-- those of Debezium's outbox event router.
CREATE TABLE IF NOT EXISTS txinbox_outbox_message (
  seq           bigint GENERATED ALWAYS AS IDENTITY,
  id            uuid NOT NULL,
  aggregatetype text COLLATE "C" NOT NULL,
  aggregateid   text COLLATE "C" NOT NULL,
  type          text COLLATE "C" NOT NULL,
  payload       bytea NOT NULL,
  headers       text,
  part          integer NOT NULL,
  attempts      integer NOT NULL DEFAULT 0,
  last_error    text,
  parked_at     timestamptz,
  created_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
  CONSTRAINT txinbox_outbox_message_pkey PRIMARY KEY (seq),
  CONSTRAINT txinbox_outbox_message_id_key UNIQUE (id)
);
CREATE INDEX IF NOT EXISTS txinbox_outbox_message_aggregateid ON txinbox_outbox_message (aggregateid, seq);

COMMENT ON COLUMN txinbox_outbox_message.seq IS 'the order of insertion';
COMMENT ON COLUMN txinbox_outbox_message.id IS 'the message id, by which receivers recognize a message that comes again';
COMMENT ON COLUMN txinbox_outbox_message.aggregatetype IS 'the topic';
COMMENT ON COLUMN txinbox_outbox_message.aggregateid IS 'the key: messages of one key are published in order; empty: no order';
COMMENT ON COLUMN txinbox_outbox_message.headers IS 'a JSON object of strings';
COMMENT ON COLUMN txinbox_outbox_message.part IS '0 to 63; one relay publishes a part at a time; equal for equal keys';
COMMENT ON COLUMN txinbox_outbox_message.attempts IS 'how often the broker did not take it';
COMMENT ON COLUMN txinbox_outbox_message.parked_at IS 'a parked message is not published until it is retried';

-- One row for each relay that runs.
CREATE TABLE IF NOT EXISTS txinbox_outbox_relay (
  token            uuid NOT NULL,
  name             text COLLATE "C" NOT NULL,
  started_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
  lease_expires_at timestamptz NOT NULL,
  CONSTRAINT txinbox_outbox_relay_pkey PRIMARY KEY (token)
);

-- One row for each part.
CREATE TABLE IF NOT EXISTS txinbox_outbox_part (
  part  integer NOT NULL,
  owner uuid,
  CONSTRAINT txinbox_outbox_part_pkey PRIMARY KEY (part)
);

COMMENT ON COLUMN txinbox_outbox_part.owner IS 'the token of the relay that publishes the part';

INSERT INTO txinbox_outbox_part (part)
SELECT n FROM generate_series(0, 63) AS n
ON CONFLICT (part) DO NOTHING;

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
VALUES (2, 'outbox', '0.1.0')
ON CONFLICT (version) DO NOTHING;
