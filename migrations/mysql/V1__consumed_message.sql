-- txinbox, schema version 1, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V1__consumed_message.sql
-- or with `txinbox migrate`. These databases commit each DDL statement by itself; a run that was
-- interrupted is completed by running the file again.

-- One row for each (consumer, business key) that was claimed. VARBINARY: no collation merges keys.
CREATE TABLE IF NOT EXISTS txinbox_consumed_message (
  consumer         VARBINARY(64)  NOT NULL COMMENT 'the consumer group''s name',
  business_key     VARBINARY(255) NOT NULL COMMENT 'compared byte for byte',
  message_id       VARBINARY(255) NULL COMMENT 'the broker''s id of the delivery that claimed it',
  content_hash     VARBINARY(32)  NULL COMMENT 'of the bytes that must be equal in every delivery',
  state            VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'consumed, consuming, parked, torn',
  attempt_token    VARBINARY(16)  NOT NULL COMMENT 'the run that wrote the row',
  lease_owner      VARBINARY(64)  NULL,
  lease_fence      BIGINT         NULL,
  lease_expires_at DATETIME(6)    NULL COMMENT 'UTC',
  attempts         INT            NULL,
  result           BLOB           NULL COMMENT 'what the handler stored',
  consumed_at      DATETIME(6)    NOT NULL COMMENT 'UTC; since when in this state',
  PRIMARY KEY (consumer, business_key),
  KEY txinbox_consumed_message_consumed_at (consumed_at)
) ENGINE = InnoDB;

-- One row for each migration that was applied.
CREATE TABLE IF NOT EXISTS txinbox_schema (
  version        INT NOT NULL PRIMARY KEY,
  name           VARCHAR(100) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  oldest_library VARCHAR(20) CHARACTER SET ascii COLLATE ascii_bin NOT NULL COMMENT 'the oldest txinbox that can work with this version',
  applied_at     DATETIME(6) NOT NULL
) ENGINE = InnoDB;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (1, 'consumed_message', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
