-- txinbox, schema version 3, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V3__operations.sql
-- or with `txinbox migrate`. The tables go into the first schema of the search_path: that of the inbox.

-- One row for each consumer that an operator has paused. A row whose resumes_at is over has no effect.
CREATE TABLE IF NOT EXISTS txinbox_pause (
  consumer   text COLLATE "C" NOT NULL,
  paused_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
  resumes_at timestamptz,
  reason     text NOT NULL,
  actor      text COLLATE "C" NOT NULL,
  CONSTRAINT txinbox_pause_pkey PRIMARY KEY (consumer)
);

COMMENT ON COLUMN txinbox_pause.resumes_at IS 'NULL: until somebody resumes it';
COMMENT ON COLUMN txinbox_pause.actor IS 'who has paused it';

-- One row for each change that an operator has made. Nothing reads it but people.
CREATE TABLE IF NOT EXISTS txinbox_audit (
  id           bigint GENERATED ALWAYS AS IDENTITY,
  at           timestamptz NOT NULL DEFAULT clock_timestamp(),
  actor        text COLLATE "C" NOT NULL,
  action       text COLLATE "C" NOT NULL,
  consumer     text COLLATE "C",
  business_key text COLLATE "C",
  messages     bigint NOT NULL,
  reason       text,
  CONSTRAINT txinbox_audit_pkey PRIMARY KEY (id)
);

COMMENT ON COLUMN txinbox_audit.actor IS 'who made the change';
COMMENT ON COLUMN txinbox_audit.action IS 'such as pause';
COMMENT ON COLUMN txinbox_audit.messages IS 'how many rows it changed';

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (3, 'operations', '0.1.0')
ON CONFLICT (version) DO NOTHING;
