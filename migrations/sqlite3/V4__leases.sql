-- txinbox, schema version 4, for SQLite 3.35 or later.
--
-- Apply in one transaction:
--   sqlite3 -bail orders.db "BEGIN IMMEDIATE" ".read V4__leases.sql" "COMMIT"
-- or with `txinbox migrate`. It reads txinbox_consumed_message once; consumers wait for it.

-- For the list of leases. Only the row of a lease that is held or has expired has an owner, so the index is small. A
-- claim without a lease does not write to it.
CREATE INDEX IF NOT EXISTS txinbox_consumed_message_lease ON txinbox_consumed_message (consumed_at)
WHERE lease_owner IS NOT NULL;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (4, 'leases', '0.1.0')
ON CONFLICT (version) DO NOTHING;
