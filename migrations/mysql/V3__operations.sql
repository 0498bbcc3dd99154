-- txinbox, schema version 3, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V3__operations.sql
-- or with `txinbox migrate`. These databases commit each DDL statement by itself: if a run was interrupted, run the file
-- again.

-- One row for each consumer that an operator has paused. A row whose resumes_at is over has no effect.
CREATE TABLE IF NOT EXISTS txinbox_pause (
  consumer   VARBINARY(64)  NOT NULL,
  paused_at  DATETIME(6)    NOT NULL COMMENT 'UTC',
  resumes_at DATETIME(6)    NULL COMMENT 'UTC; NULL: until somebody resumes it',
  reason     BLOB           NOT NULL,
  actor      VARBINARY(255) NOT NULL COMMENT 'who has paused it',
  PRIMARY KEY (consumer)
) ENGINE = InnoDB;

-- One row for each change that an operator has made. Nothing reads it but people.
CREATE TABLE IF NOT EXISTS txinbox_audit (
  id           BIGINT         NOT NULL AUTO_INCREMENT,
  at           DATETIME(6)    NOT NULL COMMENT 'UTC',
  actor        VARBINARY(255) NOT NULL COMMENT 'who made the change',
  action       VARBINARY(64)  NOT NULL COMMENT 'such as pause',
  consumer     VARBINARY(64)  NULL,
  business_key VARBINARY(255) NULL COMMENT 'compared byte for byte',
  messages     BIGINT         NOT NULL COMMENT 'how many rows it changed',
  reason       BLOB           NULL,
  PRIMARY KEY (id)
) ENGINE = InnoDB;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (3, 'operations', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
