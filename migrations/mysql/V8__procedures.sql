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
