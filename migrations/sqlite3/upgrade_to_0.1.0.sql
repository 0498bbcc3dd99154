-- Renames a column of the tables of a txinbox from before 0.1.0, and forgets the old version numbers. All rows stay.
--
-- Stop the services. Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read upgrade_to_0.1.0.sql" "COMMIT"
-- Then run `txinbox migrate`. If the script was already applied, it fails and changes nothing.

ALTER TABLE txinbox_failed_message RENAME COLUMN deaths TO crashes;

DELETE FROM txinbox_schema
WHERE name IN ('consumed_message', 'failed_message', 'conflicting_message', 'consumer', 'guard', 'large_results',
               'procedures', 'outbox_database') OR (version = 7 AND name = 'outbox');
