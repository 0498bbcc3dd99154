-- txinbox, schema version 4, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V4__leases.sql
-- or with `txinbox migrate`. It reads txinbox_consumed_message once; consumers run meanwhile. The script may be applied
-- again, also if it was interrupted.

-- For the list of leases. Only the row of a lease that is held or has expired has an owner. These databases have no
-- index on a part of the rows, so a claim without a lease writes to the index, too. Therefore consumed_at is its second
-- column: the rows without an owner are in the order in which they were inserted, and each claim writes to the same
-- page as the one before. An index on the owner alone would write to a page anywhere.
SET @txinbox_change = IF(
  (SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() AND
     TABLE_NAME = 'txinbox_consumed_message' AND INDEX_NAME = 'txinbox_consumed_message_lease') = 0,
  'CREATE INDEX txinbox_consumed_message_lease ON txinbox_consumed_message (lease_owner, consumed_at)',
  'DO 0');
PREPARE txinbox_change FROM @txinbox_change;
EXECUTE txinbox_change;
DEALLOCATE PREPARE txinbox_change;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (4, 'leases', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
