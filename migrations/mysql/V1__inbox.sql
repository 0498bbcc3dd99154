-- txinbox, schema version 1, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V1__inbox.sql
-- or with `txinbox migrate`. These databases commit each DDL statement by itself: if a run was interrupted, run the file
-- again. On MySQL, the user needs the privilege CREATE ROUTINE.

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
  result           MEDIUMBLOB     NULL COMMENT 'what the handler stored',
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

-- One row for each message that has failed; of one that is parked, its row of txinbox_consumed_message says so.
CREATE TABLE IF NOT EXISTS txinbox_failed_message (
  consumer        VARBINARY(64)  NOT NULL,
  business_key    VARBINARY(255) NOT NULL,
  message_id      VARBINARY(255) NULL COMMENT 'the broker''s id of the last delivery that failed',
  attempts        INT            NOT NULL DEFAULT 0 COMMENT 'deliveries that failed, since the last retry',
  crashes         INT            NOT NULL DEFAULT 0 COMMENT 'of them, those whose process died with this message alone in flight',
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
VALUES (1, 'inbox', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
