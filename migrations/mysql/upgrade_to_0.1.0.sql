-- Prepares the tables of a txinbox from before 0.1.0 for version 1 and 2 of the schema.
--
-- Stop the services. Apply with:
--   mariadb orders < upgrade_to_0.1.0.sql
-- Then run `txinbox migrate`, or apply V1 and V2. They create what is missing. All rows stay. If a run was interrupted,
-- run the file again.

-- If the schema has version 6 or later, this copies nothing.
ALTER TABLE txinbox_consumed_message
  MODIFY result MEDIUMBLOB NULL COMMENT 'what the handler stored';

DELETE FROM txinbox_schema;

ALTER TABLE txinbox_failed_message RENAME COLUMN deaths TO crashes;
