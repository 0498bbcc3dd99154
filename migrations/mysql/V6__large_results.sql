-- txinbox, schema version 6, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V6__large_results.sql
-- or with `txinbox migrate`.

-- Results of more than 65,535 bytes. The server copies the table; writes to it wait until the copy is there. If the
-- column has the type already, nothing is copied.
ALTER TABLE txinbox_consumed_message
  MODIFY result MEDIUMBLOB NULL COMMENT 'what the handler stored';

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (6, 'large_results', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
