#!/bin/sh
# Runs each example as its comment describes, on a separate SQLite database.
#
# Usage: run_examples.sh ORDER_SERVICE README BROKER_LOOP BATCH_CONSUMER IDEMPOTENT_HANDLER METRICS
#                        FAILED_MESSAGES STOPPING_SERVICE LEASE_CONSUMER TRACING
#                        NATIVE_CLIENT FOLDER_CONSUMER BATCH_HANDLER MESSAGE_ID_FIRST OUTBOX BUSINESS_GUARDS
#        (the programs)
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

fail() { echo "run_examples.sh: $*" >&2; exit 1; }

"$2" || fail "the README's program does not consume its message"
if "$2"; then fail "the README's program consumes its message twice"; fi
rm orders.db

[ "$("$1" | tail -n 1)" = "sold: 3 tea, 1 cup" ] || fail "order_service does not sell each order once"
[ "$("$1" | tail -n 1)" = "sold: 3 tea, 1 cup" ] || fail "order_service sells an order again"
rm orders.db

actions=$("$3" | cut -d ' ' -f 2 | tr '\n' ' ')
[ "$actions" = "acknowledge acknowledge acknowledge dead_letter " ] || fail "the broker loop says: $actions"
rm orders.db

"$4" >/dev/null || fail "batch_consumer does not consume its batch once"
"$4" >/dev/null || fail "batch_consumer consumes its batch again"

actions=$("$5" | tr '\n' ' ')
[ "$actions" = "consumed: acknowledge consumed: acknowledge already_consumed: acknowledge \
consumed: acknowledge already_consumed: acknowledge conflict: dead_letter failed: dead_letter 200 cents, 1 event " ] ||
  fail "idempotent_handler says: $actions"
[ "$("$5" | tail -n 1)" = "200 cents, 1 event" ] || fail "idempotent_handler handles a message again"
rm -f orders.db

"$6" | grep -qx 'txinbox_messages_total{consumer="order-service",outcome="already_consumed"} 1' ||
  fail "metrics does not count its duplicate"
rm -f orders.db

actions=$("$7" | tr '\n' ' ')
[ "$actions" = "order1: redeliver order2: redeliver order1: acknowledge order2: redeliver order1: acknowledge \
order2: redeliver order1: acknowledge order2: dead_letter order1: acknowledge order2: dead_letter order2: failed 3 times, std::invalid_argument \
published again: {\"no\":\"order2\"} order1: acknowledge order2: acknowledge " ] ||
  fail "failed_messages says: $actions"
rm -f orders.db

"$8" >stopping.txt &
service=$!
while ! grep -qx running stopping.txt && kill -0 $service; do sleep 0.1; done
kill -TERM $service
wait $service || fail "stopping_service does not end by itself"
grep -qx stopped stopping.txt || fail "stopping_service does not print that it has stopped"
rm -f orders.db

outcomes=$("$9" | tr '\n' ' ')
[ "$outcomes" = "consumed: receipt for charge123 already_consumed: receipt for charge123 " ] ||
  fail "lease_consumer says: $outcomes"
rm -f orders.db

shift 9
scopes=$("$1" | sed 's/: .*//' | tr -s '\n ' ' ')
[ "$scopes" = " handler attempt consume attempt consume " ] || fail "tracing says: $scopes"
rm -f orders.db

outcomes=$("$2" | tr '\n' ' ')
[ "$outcomes" = "consumed already_consumed " ] || fail "native_client says: $outcomes"
rm -f orders.db

published=$("$6" | sort | tr '\n' ' ')
[ "$published" = "stock order1 OrderBooked {} stock order2 OrderBooked {} " ] || fail "outbox publishes: $published"
[ -z "$("$6")" ] || fail "outbox publishes again"
rm -f orders.db

"$7" >guards.txt || fail "business_guards fails"
[ "$(grep -c 'wrong$' guards.txt) $(grep -c '| 0 wrong$' guards.txt)" = "5 5" ] ||
  fail "business_guards says: $(cat guards.txt)"

mkdir inbox
for n in 1 2 3; do echo "{\"no\": \"order$n\", \"sku\": \"tea\"}" >inbox/$n.json; done
echo '{"no": "order3", "sku": "tea"}' >inbox/again.json
echo '{"no": "order4"}' >inbox/no-sku.json
echo 'no JSON' >inbox/broken.json
[ "$("$3" inbox)" = "3 orders, 1 duplicates, 2 dead letters" ] || fail "folder_consumer does not consume its folder"
[ "$(ls inbox inbox/failed | tr '\n' ' ')" = "inbox: failed  inbox/failed: broken.json no-sku.json " ] ||
  fail "folder_consumer leaves: $(ls -R inbox)"
rm -f orders.db

outcomes=$("$4" | sed 's/.*: //' | tr '\n' ' ')
[ "$outcomes" = "consumed consumed parked consumed already_consumed 1300 " ] || fail "batch_handler says: $outcomes"
[ "$("$4" | tail -n 1)" = "alice: 1300" ] || fail "batch_handler adds a payment again"
rm -f orders.db

outcomes=$("$5" | tr '\n' ' ')
[ "$outcomes" = "claimed already_consumed already_consumed 1 order " ] || fail "message_id_first says: $outcomes"
rm -f orders.db
