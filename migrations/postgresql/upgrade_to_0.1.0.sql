-- Renames a column of the tables of a txinbox from before 0.1.0, and forgets the old version numbers. All rows stay.
--
-- Stop the services. Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f upgrade_to_0.1.0.sql
-- Then run `txinbox migrate`. The script may be applied again.

DO $$
BEGIN
  IF EXISTS (SELECT FROM pg_catalog.pg_attribute
             WHERE attrelid = pg_catalog.to_regclass('txinbox_failed_message') AND attname = 'deaths') THEN
    ALTER TABLE txinbox_failed_message RENAME COLUMN deaths TO crashes;
  END IF;
END
$$;

DELETE FROM txinbox_schema
WHERE name IN ('consumed_message', 'failed_message', 'conflicting_message', 'consumer', 'guard', 'large_results',
               'procedures', 'outbox_database') OR (version = 7 AND name = 'outbox');
