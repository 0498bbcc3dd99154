#!/usr/bin/env bash
# Tests that a service can move to another PostgreSQL database by logical replication: the claims are replicated with the
# business rows, and the new database answers each redelivery as a duplicate.
#
# Usage: tests/logical_replication.sh BUILD_FOLDER
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
if [ -z "${TXINBOX_TEST_POSTGRESQL_URL:-}" ]; then
  exec "$root/tests/servers.sh" --postgresql -- "$0" "$1"
fi
txinbox=$(cd "$1" && pwd)/tools/cli/txinbox
server=${TXINBOX_TEST_POSTGRESQL_URL%/*}
folder=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-logical.XXXXXX")
trap 'rm -rf "$folder"' EXIT

fail() {
  echo "logical_replication.sh: $*" >&2
  exit 1
}

# query DATABASE SQL
query() { psql -qAtX -v ON_ERROR_STOP=1 -c "$2" "$server/$1"; }

check() {
  [ "$2" = "$3" ] || fail "$1: $2 instead of $3"
}

# consume DATABASE FIRST LAST: consumes these orders, and prints the counts.
consume() {
  local i
  for ((i = $2; i <= $3; i++)); do echo "{\"no\": \"order$i\"}"; done >"$folder/orders.jsonl"
  TXINBOX_DB=$server/$1 "$txinbox" consume --consumer service --key /no --sql 'insert into t_order(no) values (:no)' \
    "$folder/orders.jsonl" 2>&1 | grep -o '^consumed [0-9]*, already consumed [0-9]*'
}

# The tables that are replicated. The others belong to each database: txinbox_schema, txinbox_outbox_database,
# txinbox_outbox_part and txinbox_outbox_relay.
tables="t_order, txinbox_consumed_message, txinbox_failed_message, txinbox_conflicting_message, txinbox_consumer"
tables+=", txinbox_outbox_message, txinbox_pause, txinbox_audit"

for database in old_service new_service; do
  query postgres "CREATE DATABASE $database"
  query "$database" "CREATE TABLE t_order (no text NOT NULL, id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY)"
  TXINBOX_DB=$server/$database "$txinbox" migrate >/dev/null
done
query old_service "CREATE PUBLICATION service FOR TABLE $tables"
check "the first orders" "$(consume old_service 1 100)" "consumed 100, already consumed 0"

# On one server, the slot must exist before the subscription.
query old_service "SELECT pg_create_logical_replication_slot('service', 'pgoutput')" >/dev/null
query new_service "CREATE SUBSCRIPTION service CONNECTION '$server/old_service' PUBLICATION service
  WITH (create_slot = false, slot_name = 'service')"
check "more orders" "$(consume old_service 1 200)" "consumed 100, already consumed 100"
query old_service "INSERT INTO txinbox_outbox_message (id, aggregatetype, aggregateid, type, payload, part, created_at)
  VALUES (gen_random_uuid(), 'orders', 'order1', 'Placed', 'x', 0, now())"

# The service stops here, and the new database catches up.
end=$(query old_service "SELECT pg_current_wal_lsn()")
is_copied="SELECT count(*) = 0 FROM pg_subscription_rel WHERE srsubstate <> 'r'"
has_arrived="SELECT confirmed_flush_lsn >= '$end' FROM pg_replication_slots WHERE slot_name = 'service'"
for ((i = 0; i < 600; i++)); do
  if [ "$(query new_service "$is_copied")" = t ] && [ "$(query old_service "$has_arrived")" = t ]; then break; fi
  sleep 0.1
done
[ $i -lt 600 ] || fail "the new database does not catch up"
query new_service "ALTER SUBSCRIPTION service DISABLE"
for ((i = 0; i < 100; i++)); do
  if [ "$(query old_service "SELECT active FROM pg_replication_slots WHERE slot_name = 'service'")" = f ]; then break; fi
  sleep 0.1
done
query new_service "ALTER SUBSCRIPTION service SET (slot_name = NONE)"
query new_service "DROP SUBSCRIPTION service"
query old_service "SELECT pg_drop_replication_slot('service')" >/dev/null

check "the claims" "$(query new_service "SELECT count(*) FROM txinbox_consumed_message")" 200
check "the orders" "$(query new_service "SELECT count(*) FROM t_order")" 200

# Logical replication does not replicate sequences.
findings=$(TXINBOX_DB=$server/new_service "$txinbox" doctor || true)
[[ $findings == *setval* ]] || fail "doctor does not report that the sequence of the outbox is behind: $findings"
for table in txinbox_outbox_message:seq txinbox_audit:id t_order:id; do
  query new_service "SELECT setval(pg_get_serial_sequence('${table%:*}', '${table#*:}'),
    (SELECT coalesce(max(${table#*:}), 0) + 1 FROM ${table%:*}), false)" >/dev/null
done
TXINBOX_DB=$server/new_service "$txinbox" doctor || fail "doctor finds something in the new database"

check "redeliveries" "$(consume new_service 1 250)" "consumed 50, already consumed 200"
check "the orders" "$(query new_service "SELECT count(DISTINCT no) || ' of ' || count(*) FROM t_order")" "250 of 250"
echo "count: 250 keys"
echo "count: 300 duplicates"
