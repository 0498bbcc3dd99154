-- txinbox, schema version 3, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V3__conflicting_message.sql
-- or with `txinbox migrate`.

-- One row for each other content that has come under a business key.
CREATE TABLE IF NOT EXISTS txinbox_conflicting_message (
  consumer            VARBINARY(64)  NOT NULL,
  business_key        VARBINARY(255) NOT NULL,
  content_hash        VARBINARY(32)  NOT NULL COMMENT 'of the delivery that was refused',
  original_hash       VARBINARY(32)  NOT NULL COMMENT 'of the delivery that has the key',
  message_id          VARBINARY(255) NULL COMMENT 'the broker''s id of the last delivery that was refused',
  original_message_id VARBINARY(255) NULL,
  reason              VARBINARY(64)  NOT NULL COMMENT 'what the key''s row was: consumed, consuming, parked, torn, discarded',
  deliveries          INT            NOT NULL COMMENT 'how many were refused',
  first_at            DATETIME(6)    NOT NULL COMMENT 'UTC',
  last_at             DATETIME(6)    NOT NULL COMMENT 'UTC',
  PRIMARY KEY (consumer, business_key, content_hash),
  KEY txinbox_conflicting_message_last_at (last_at)
) ENGINE = InnoDB;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (3, 'conflicting_message', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
