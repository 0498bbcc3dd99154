-- txinbox, schema version 2, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V2__failed_message.sql
-- or with `txinbox migrate`.

-- One row for each message that has failed; of one that is parked, its row of txinbox_consumed_message says so.
CREATE TABLE IF NOT EXISTS txinbox_failed_message (
  consumer        VARBINARY(64)  NOT NULL,
  business_key    VARBINARY(255) NOT NULL,
  message_id      VARBINARY(255) NULL COMMENT 'the broker''s id of the last delivery that failed',
  attempts        INT            NOT NULL DEFAULT 0 COMMENT 'deliveries that failed, since the last retry',
  deaths          INT            NOT NULL DEFAULT 0 COMMENT 'of them, those whose process died with this message alone in flight',
  first_error     VARBINARY(255) NULL COMMENT 'the error''s class',
  first_failed_at DATETIME(6)    NULL COMMENT 'UTC',
  last_error      VARBINARY(255) NULL,
  last_failed_at  DATETIME(6)    NULL COMMENT 'UTC',
  error_text      BLOB           NULL COMMENT 'of the last error, if it was asked for: it can hold values',
  payload         LONGBLOB       NULL COMMENT 'of the message, if it was given',
  running_token   VARBINARY(16)  NULL COMMENT 'the process in which an attempt has begun and not ended',
  running_since   DATETIME(6)    NULL COMMENT 'UTC',
  running_alone   INT            NULL COMMENT '1 while that process has no other attempt in flight',
  PRIMARY KEY (consumer, business_key),
  KEY txinbox_failed_message_last_failed_at (last_failed_at)
) ENGINE = InnoDB;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (2, 'failed_message', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
