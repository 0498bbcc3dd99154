-- Changes two columns of the tables of a txinbox from before 0.1.0, and forgets the old version numbers. All rows stay.
--
-- Stop the services. Apply with:
--   mariadb orders < upgrade_to_0.1.0.sql
-- Then run `txinbox migrate`. The script may be applied again, also if it was interrupted.
--
-- Before version 6 of the old numbers, the server copies txinbox_consumed_message, which can take hours. Purge it first.

SET @txinbox_change = IF(
  (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND
     TABLE_NAME = 'txinbox_consumed_message' AND COLUMN_NAME = 'result' AND DATA_TYPE = 'blob') = 1,
  'ALTER TABLE txinbox_consumed_message MODIFY result MEDIUMBLOB NULL COMMENT ''what the handler stored''',
  'DO 0');
PREPARE txinbox_change FROM @txinbox_change;
EXECUTE txinbox_change;

SET @txinbox_change = IF(
  (SELECT COUNT(*) FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND
     TABLE_NAME = 'txinbox_failed_message' AND COLUMN_NAME = 'deaths') = 1,
  'ALTER TABLE txinbox_failed_message RENAME COLUMN deaths TO crashes',
  'DO 0');
PREPARE txinbox_change FROM @txinbox_change;
EXECUTE txinbox_change;
DEALLOCATE PREPARE txinbox_change;

DELETE FROM txinbox_schema
WHERE name IN ('consumed_message', 'failed_message', 'conflicting_message', 'consumer', 'guard', 'large_results',
               'procedures', 'outbox_database') OR (version = 7 AND name = 'outbox');
