-- Prepares the tables of a txinbox from before 0.1.0 for version 1 and 2 of the schema.
--
-- Stop the services. Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f upgrade_to_0.1.0.sql
-- Then run `txinbox migrate`, or apply V1 and V2. They create what is missing. All rows stay.

ALTER TABLE txinbox_failed_message RENAME COLUMN deaths TO crashes;

DELETE FROM txinbox_schema;
