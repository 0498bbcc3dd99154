-- txinbox, schema version 2, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V2__outbox.sql
-- or with `txinbox migrate`. These databases commit each DDL statement by itself: if a run was interrupted, run the file
-- again.

-- One row for each message that waits to be published. The names id, aggregatetype, aggregateid, type and payload are
-- those of Debezium's outbox event router.
CREATE TABLE IF NOT EXISTS txinbox_outbox_message (
  seq           BIGINT         NOT NULL AUTO_INCREMENT COMMENT 'the order of insertion',
  id            VARBINARY(36)  NOT NULL COMMENT 'the message id, a UUID as text, by which receivers recognize a message that comes again',
  aggregatetype VARBINARY(255) NOT NULL COMMENT 'the topic',
  aggregateid   VARBINARY(255) NOT NULL COMMENT 'the key: messages of one key are published in order; empty: no order',
  type          VARBINARY(255) NOT NULL,
  payload       LONGBLOB       NOT NULL,
  headers       BLOB           NULL COMMENT 'a JSON object of strings',
  part          INT            NOT NULL COMMENT '0 to 63; one relay publishes a part at a time; equal for equal keys',
  attempts      INT            NOT NULL DEFAULT 0 COMMENT 'how often the broker did not take it',
  last_error    BLOB           NULL,
  parked_at     DATETIME(6)    NULL COMMENT 'UTC; a parked message is not published until it is retried',
  created_at    DATETIME(6)    NOT NULL COMMENT 'UTC',
  PRIMARY KEY (seq),
  UNIQUE KEY txinbox_outbox_message_id (id),
  KEY txinbox_outbox_message_aggregateid (aggregateid, seq)
) ENGINE = InnoDB;

-- One row for each relay that runs.
CREATE TABLE IF NOT EXISTS txinbox_outbox_relay (
  token            VARBINARY(16) NOT NULL,
  name             VARBINARY(64) NOT NULL,
  started_at       DATETIME(6)   NOT NULL COMMENT 'UTC',
  lease_expires_at DATETIME(6)   NOT NULL COMMENT 'UTC',
  PRIMARY KEY (token)
) ENGINE = InnoDB;

-- One row for each part.
CREATE TABLE IF NOT EXISTS txinbox_outbox_part (
  part  INT           NOT NULL,
  owner VARBINARY(16) NULL COMMENT 'the token of the relay that publishes the part',
  PRIMARY KEY (part)
) ENGINE = InnoDB;

INSERT INTO txinbox_outbox_part (part) VALUES
  (0), (1), (2), (3), (4), (5), (6), (7), (8), (9), (10), (11), (12), (13), (14), (15),
  (16), (17), (18), (19), (20), (21), (22), (23), (24), (25), (26), (27), (28), (29), (30), (31),
  (32), (33), (34), (35), (36), (37), (38), (39), (40), (41), (42), (43), (44), (45), (46), (47),
  (48), (49), (50), (51), (52), (53), (54), (55), (56), (57), (58), (59), (60), (61), (62), (63)
ON DUPLICATE KEY UPDATE owner = owner;

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
VALUES (2, 'outbox', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
