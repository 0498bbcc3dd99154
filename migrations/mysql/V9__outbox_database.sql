-- txinbox, schema version 9, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V9__outbox_database.sql
-- or with `txinbox migrate`.

-- One row: the id of this database. The ids of messages that handlers add to the outbox are derived from it. So two
-- databases, for example of two tenants, never derive the same id.
CREATE TABLE IF NOT EXISTS txinbox_outbox_database (
  one INT        NOT NULL,
  id  BINARY(16) NOT NULL COMMENT 'a UUID',
  PRIMARY KEY (one),
  CONSTRAINT txinbox_outbox_database_one CHECK (one = 1)
) ENGINE = InnoDB;

INSERT INTO txinbox_outbox_database (one, id) VALUES (1, UNHEX(REPLACE(UUID(), '-', '')))
ON DUPLICATE KEY UPDATE one = one;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (9, 'outbox_database', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
