-- txinbox, schema version 5, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V5__guard.sql
-- or with `txinbox migrate`. The function goes into the first schema of the search_path: that of the tables.

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
VALUES (5, 'guard', '0.1.0')
ON CONFLICT (version) DO NOTHING;
