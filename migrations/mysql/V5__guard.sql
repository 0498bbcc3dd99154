-- txinbox, schema version 5, for MariaDB 10.5 or later and MySQL 8.0 or later.
--
-- Apply with:
--   mariadb orders < V5__guard.sql
-- or with `txinbox migrate`.

-- Only PostgreSQL gets something new, a trigger. The versions have the same numbers on all databases.
INSERT INTO txinbox_schema (version, name, oldest_library, applied_at)
VALUES (5, 'guard', '0.1.0', UTC_TIMESTAMP(6))
ON DUPLICATE KEY UPDATE version = version;
