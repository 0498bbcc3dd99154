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

-- txinbox, schema version 5, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V5__guard.sql
-- or with `txinbox migrate`.

-- Only PostgreSQL gets something new, a trigger. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (5, 'guard', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;

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

-- txinbox, schema version 7, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V7__outbox.sql
-- or with `txinbox migrate`.

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

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (7, 'outbox', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;

-- txinbox, schema version 8, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V8__procedures.sql
-- or with `txinbox migrate`. The user needs the privilege CREATE ROUTINE on MySQL.

-- MySQL gets two procedures, which save round trips. The first begins the transaction of a message, the second commits
-- it. The service's user needs EXECUTE on both. Without it, the service sends the same statements one by one.
--
-- MariaDB gets nothing: it has compound statements. It ignores the comments for MySQL 8. On other servers, such as
-- Vitess, `txinbox migrate` leaves the two CREATE statements out; leave them out if you apply the file by hand.
--
-- A procedure keeps the sql_mode that its creator had.
SET @txinbox_sql_mode = @@sql_mode, sql_mode = 'STRICT_ALL_TABLES';

DELIMITER //

-- Begins a transaction and inserts a claim. If the key exists, it returns the row and ends the transaction.
/*M! DO 0 */ /*!80000 CREATE PROCEDURE */ /*!80029 IF NOT EXISTS */ /*!80000 txinbox_begin_and_claim(
  a_consumer VARBINARY(64), a_business_key VARBINARY(255), a_message_id VARBINARY(255), a_content_hash VARBINARY(32),
  an_attempt_token VARBINARY(16))
  MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  DECLARE EXIT HANDLER FOR 1062
  BEGIN
    SELECT state, attempt_token, content_hash, result,
           TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), lease_expires_at) DIV 1000,
           COALESCE(lease_fence, 0), TIMESTAMPDIFF(MICROSECOND, consumed_at, UTC_TIMESTAMP(6)) DIV 1000
    FROM txinbox_consumed_message
    WHERE consumer = a_consumer AND business_key = a_business_key;
    ROLLBACK;
    SET autocommit = 1;
  END;
  SET autocommit = 0;
  SAVEPOINT txinbox_message;
  INSERT INTO txinbox_consumed_message
    (consumer, business_key, message_id, content_hash, state, attempt_token, consumed_at)
  VALUES (a_consumer, a_business_key, a_message_id, a_content_hash, 'torn', an_attempt_token, UTC_TIMESTAMP(6));
END */ //

-- Confirms the claim and commits. If the transaction is not the one that txinbox_begin_and_claim has begun, its savepoint
-- is gone: then this fails with error 1305 and commits nothing.
/*M! DO 0 */ /*!80000 CREATE PROCEDURE */ /*!80029 IF NOT EXISTS */ /*!80000 txinbox_confirm_and_commit(
  a_result LONGBLOB, a_consumer VARBINARY(64), a_business_key VARBINARY(255), an_attempt_token VARBINARY(16))
  MODIFIES SQL DATA SQL SECURITY INVOKER
BEGIN
  RELEASE SAVEPOINT txinbox_message;
  UPDATE txinbox_consumed_message SET state = 'consumed', result = a_result
  WHERE consumer = a_consumer AND business_key = a_business_key AND attempt_token = an_attempt_token;
  IF ROW_COUNT() <> 1 THEN SIGNAL SQLSTATE '42000' SET MYSQL_ERRNO = 1305; END IF;
  COMMIT;
  SET autocommit = 1;
END */ //

DELIMITER ;

SET sql_mode = @txinbox_sql_mode, @txinbox_sql_mode = NULL;

INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (8, 'procedures', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;

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
