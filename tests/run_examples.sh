#!/usr/bin/env bash
# Runs examples as their comments describe, each on a separate SQLite database. business_guards also runs on servers.
#
# Usage: run_examples.sh FOLDER NAME...
#   FOLDER  has the programs of the build
#   NAME    an example: a function of this file
set -euo pipefail

folder=$1
shift
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

fail() { echo "run_examples.sh: $*" >&2; exit 1; }
in_one_line() { tr '\n' ' '; }

# run NAME [ARGUMENT]...: runs the program of an example.
run() { "$folder/$1" "${@:2}"; }

readme() {
  run readme || fail "the README's program does not consume its message"
  if run readme; then fail "the README's program consumes its message twice"; fi
}

order_service() {
  [ "$(run order_service | tail -n 1)" = "sold: 3 tea, 1 cup" ] || fail "order_service does not sell each order once"
  [ "$(run order_service | tail -n 1)" = "sold: 3 tea, 1 cup" ] || fail "order_service sells an order again"
}

broker_loop() {
  actions=$(run broker_loop | cut -d ' ' -f 2 | in_one_line)
  [ "$actions" = "acknowledge acknowledge acknowledge dead_letter " ] || fail "the broker loop says: $actions"
}

testing_handler() {
  run testing_handler >testing.txt || fail "testing_handler does not find what it must find: $(in_one_line <testing.txt)"
  grep -q '^broken: a delivery after a rollback has the same effects$' testing.txt || fail "testing_handler misses a defect"
}

async_service() {
  actions=$(run async_service | cut -d ' ' -f 2 | sort | uniq -c | in_one_line)
  [ "$(tr -s ' ' <<<"$actions")" = " 20 acknowledge 1 orders " ] || fail "async_service says: $actions"
}

batch_consumer() {
  run batch_consumer >/dev/null || fail "batch_consumer does not consume its batch once"
  run batch_consumer >/dev/null || fail "batch_consumer consumes its batch again"
}

idempotent_handler() {
  actions=$(run idempotent_handler | in_one_line)
  [ "$actions" = "consumed: acknowledge consumed: acknowledge already_consumed: acknowledge \
consumed: acknowledge already_consumed: acknowledge conflict: dead_letter failed: dead_letter 200 cents, 1 event " ] ||
    fail "idempotent_handler says: $actions"
  [ "$(run idempotent_handler | tail -n 1)" = "200 cents, 1 event" ] || fail "idempotent_handler handles a message again"
}

metrics() {
  run metrics >metrics.txt
  grep -qx 'txinbox_messages_total{consumer="order-service",outcome="already_consumed"} 1' metrics.txt ||
    fail "metrics does not count its duplicate"
}

failed_messages() {
  actions=$(run failed_messages | in_one_line)
  [ "$actions" = "order1: redeliver order2: redeliver order1: acknowledge order2: redeliver order1: acknowledge \
order2: redeliver order1: acknowledge order2: dead_letter order1: acknowledge order2: dead_letter order2: failed 3 times, std::invalid_argument \
published again: {\"no\":\"order2\"} order1: acknowledge order2: acknowledge " ] ||
    fail "failed_messages says: $actions"
}

personal_data() {
  lines=$(run personal_data | in_one_line)
  [ "$lines" = "consumed 1 not erased already_consumed " ] || fail "personal_data says: $lines"
}

stopping_service() {
  "$folder/stopping_service" >stopping.txt & # not run, whose process would be a shell
  service=$!
  while ! grep -qx running stopping.txt && kill -0 $service; do sleep 0.1; done
  kill -TERM $service
  wait $service || fail "stopping_service does not end by itself"
  grep -qx stopped stopping.txt || fail "stopping_service does not print that it has stopped"
}

lease_consumer() {
  outcomes=$(run lease_consumer | in_one_line)
  [ "$outcomes" = "consumed: receipt for charge123 already_consumed: receipt for charge123 " ] ||
    fail "lease_consumer says: $outcomes"
}

tracing() {
  scopes=$(run tracing | sed 's/: .*//' | tr -s '\n ' ' ')
  [ "$scopes" = " handler attempt consume attempt consume " ] || fail "tracing says: $scopes"
}

native_client() {
  outcomes=$(run native_client | in_one_line)
  [ "$outcomes" = "consumed already_consumed " ] || fail "native_client says: $outcomes"
}

folder_consumer() {
  mkdir inbox
  for n in 1 2 3; do echo "{\"no\": \"order$n\", \"sku\": \"tea\"}" >inbox/$n.json; done
  echo '{"no": "order3", "sku": "tea"}' >inbox/again.json
  echo '{"no": "order4"}' >inbox/no-sku.json
  echo 'no JSON' >inbox/broken.json
  [ "$(run brokers/folder_consumer inbox)" = "3 orders, 1 duplicates, 2 dead letters" ] ||
    fail "folder_consumer does not consume its folder"
  [ "$(ls inbox inbox/failed | in_one_line)" = "inbox: failed  inbox/failed: broken.json no-sku.json " ] ||
    fail "folder_consumer leaves: $(ls -R inbox)"
}

batch_handler() {
  outcomes=$(run batch_handler | sed 's/.*: //' | in_one_line)
  [ "$outcomes" = "consumed consumed parked consumed already_consumed 1300 " ] || fail "batch_handler says: $outcomes"
  [ "$(run batch_handler | tail -n 1)" = "alice: 1300" ] || fail "batch_handler adds a payment again"
}

message_id_first() {
  outcomes=$(run message_id_first | in_one_line)
  [ "$outcomes" = "claimed already_consumed already_consumed 1 order " ] || fail "message_id_first says: $outcomes"
}

outbox() {
  published=$(run outbox | sort | in_one_line)
  [ "$published" = "stock order1 OrderBooked {} stock order2 OrderBooked {} " ] || fail "outbox publishes: $published"
  [ -z "$(run outbox)" ] || fail "outbox publishes again"
}

# On the server of TXINBOX_TEST_URL, if it is set.
business_guards() {
  [ -z "${TXINBOX_TEST_URL:-}" ] || export BUSINESS_GUARDS_URL=$TXINBOX_TEST_URL
  run business_guards >guards.txt || fail "business_guards fails"
  [ "$(grep -c 'wrong$' guards.txt) $(grep -c '| 0 wrong$' guards.txt)" = "6 6" ] ||
    fail "business_guards says: $(cat guards.txt)"
}

for example in "$@"; do
  mkdir "$work/$example"
  cd "$work/$example"
  "$example"
done
echo "count: $# examples"
