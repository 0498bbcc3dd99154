-- txinbox, schema version 4, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V4__consumer.sql
-- or with `txinbox migrate`.

-- What is known of each consumer as a whole. The row with an empty name is about all of them.
CREATE TABLE IF NOT EXISTS txinbox_consumer (
  consumer            VARBINARY(64) NOT NULL,
  duplicates          BIGINT        NOT NULL DEFAULT 0 COMMENT 'caught so far, written now and then',
  oldest_duplicate    BIGINT        NULL COMMENT 'milliseconds: the greatest age of an original when its duplicate came',
  oldest_duplicate_at DATETIME(6)   NULL COMMENT 'UTC; when that was',
  retention           BIGINT        NULL COMMENT 'seconds: what the last purge kept',
  purged              BIGINT        NOT NULL DEFAULT 0 COMMENT 'rows purged so far',
  purged_at           DATETIME(6)   NULL COMMENT 'UTC',
  PRIMARY KEY (consumer)
) ENGINE = InnoDB;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (4, 'consumer', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
