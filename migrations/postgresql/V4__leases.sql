-- txinbox, schema version 4, for PostgreSQL 12 or later.
--
-- Apply in one transaction:
--   psql --single-transaction -v ON_ERROR_STOP=1 -f V4__leases.sql
-- or with `txinbox migrate`. It reads txinbox_consumed_message once; consumers wait for it. To let consumers run
-- meanwhile, create the index with CREATE INDEX CONCURRENTLY before, with the same name.

-- For the list of leases. Only the row of a lease that is held or has expired has an owner, so the index is small. A
-- claim without a lease does not write to it.
CREATE INDEX IF NOT EXISTS txinbox_consumed_message_lease ON txinbox_consumed_message (consumed_at)
WHERE lease_owner IS NOT NULL;

INSERT INTO txinbox_schema (version, name, oldest_library)
VALUES (4, 'leases', '0.1.0')
ON CONFLICT (version) DO NOTHING;
