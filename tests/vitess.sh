#!/usr/bin/env bash
# Tests txinbox on Vitess: a database that is not sharded, one that is resharded from one shard to two under load, and
# then its two shards. Messages one by one and in batches, failed messages, purges, and a storm for each kind of work,
# while vtgate and the tablets are killed (SIGKILL) and started again.
#
# Usage: tests/vitess.sh [--seconds N] [--kills N] BUILD_FOLDER
#   --seconds N  how long the storm of transactions lasts on each database; 45 by default. The others last half as long
#   --kills N    the minimum number of kills in that storm, even if it lasts longer then; 10 by default
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
# shellcheck source=tests/storms.sh
. "$root/tests/storms.sh"
seconds=45 kills=10
take_arguments "$@"

# shellcheck source=tests/private_server.sh
. "$root/tests/private_server.sh"
# shellcheck source=tests/vitess_cluster.sh
. "$root/tests/vitess_cluster.sh"

url() { echo "mysql://service@127.0.0.1:$vtgate_port/$1"; }

accepted_connections() {
  python3 - "http://127.0.0.1:$vtgate_http_port/debug/vars" <<'END'
import json, sys, urllib.request
print(json.load(urllib.request.urlopen(sys.argv[1], timeout=10))["MysqlServerConnAccepted"])
END
}

# test_consume DATABASE
test_consume() {
  local before opened
  export TXINBOX_DB
  TXINBOX_DB=$(url "$1")
  query "$1" "create table t_order(no varchar(20) not null, consumer varchar(20) not null)"
  write_orders
  before=$(accepted_connections)
  consume alone 1
  opened=$(($(accepted_connections) - before))
  # A connection whose settings cannot be restored is closed: that was one for each message.
  [ "$opened" -le 10 ] || fail "300 messages opened $opened connections"
  consume batches 100
  consume alone 1
  consume batches 100
  check "the orders" "$(query "$1" "select count(*) from t_order")" 600
  echo "count: 600 keys"
  echo "count: 600 duplicates"
}

# storm KIND SECONDS KILLS: on `database`, with the options `transfers`.
storm() {
  "$torture" --db "$(url "$database")" --kind "$1" --duration "$2s" --command "$folder/restart-$database" \
    --command-every 2s --command-at-least "$3" "${transfers[@]}" | with_counts
}

# refused WHAT COMMAND...: the command must say that it works in one shard.
refused() {
  local what=$1 said
  if said=$("${@:2}" 2>&1); then fail "$what was not refused"; fi
  [[ $said == *"the database is sharded"*"connect to orders:"* ]] || fail "$what: $said"
}

test_plain() {
  vtctl CreateKeyspace plain >/dev/null
  start_tablet 1 plain 0
  start_vtgate
  wait_until "plain cannot be read" answers plain
  "$txinbox" migrate --db "$(url plain)"
  test_consume plain
  restart_script restart-plain plain vtgate tablet1
  database=plain transfers=()
  storms
}

make_sharded() {
  python3 - "$root/ops/vitess/vschema.json" "$root/tests/vitess/tables.json" >"$folder/vschema.json" <<'END'
import json, sys
vschema, more = (json.load(open(name)) for name in sys.argv[1:])
for part in more:
    vschema[part].update(more[part])
print(json.dumps(vschema))
END
  vtctl CreateKeyspace orders >/dev/null
  vtctl ApplyVSchema --vschema-file "$folder/vschema.json" orders >/dev/null
  start_tablet 2 orders 0
  wait_until "orders cannot be read" answers orders:0
  refused "migrate" "$txinbox" migrate --db "$(url orders)"
  "$txinbox" migrate --db "$(url orders:0)"
  check "errors of doctor" "$("$txinbox" doctor --db "$(url orders)" --json | grep -c '"severity":"error"' || true)" 0
}

# is_copied: whether the new shards have all rows, and follow the old shard. Vitess switches the traffic before the copy
# has begun, if it is asked to.
is_copied() {
  local state
  state=$(vtctl Reshard --workflow split --target-keyspace orders status)
  [[ $state == *"VStream Lag"* && $state != *Copying* && $state != *"has not started"* ]]
}

# Splits the shard while a storm writes to it.
reshard_under_load() {
  local storm
  "$torture" --db "$(url orders)" --shards 2 --duration 45s --grace 90s >"$folder/split.txt" 2>&1 &
  storm=$!
  pids+=("$storm")
  start_tablet 3 orders -80
  start_tablet 4 orders 80-
  vtctl Reshard --workflow split --target-keyspace orders create --source-shards 0 --target-shards=-80,80- >/dev/null
  wait_until "the rows are not copied" is_copied
  kill -0 "$storm" 2>/dev/null || fail "the storm ended before the traffic was switched"
  vtctl Reshard --workflow split --target-keyspace orders switchtraffic >/dev/null || fail "the traffic is not switched"
  wait "$storm" || { cat "$folder/split.txt"; fail "the storm does not balance"; }
  with_counts <"$folder/split.txt"
  vtctl Reshard --workflow split --target-keyspace orders complete >/dev/null
  end tablet2
  check "the shards" "$(query orders "show vitess_shards" | grep -c '^orders/.*80')" 2
}

test_two_shards() {
  local shard key
  for shard in -80 80-; do "$txinbox" migrate --db "$(url "orders:$shard")"; done
  test_consume orders
  for shard in -80 80-; do
    [ "$(query "orders:$shard" "select count(*) from t_order")" -gt 100 ] || fail "the shard $shard has too few orders"
  done
  # A message whose rows lie in two shards fails, and changes nothing.
  if "$txinbox" consume --consumer crossing --key /no --sql "insert into t_order(no, consumer) values ('a', ''), ('b', '')" \
    "$folder/alone.jsonl" >/dev/null 2>&1; then fail "a message changed two shards"; fi
  check "the orders" "$(query orders "select count(*) from t_order")" 600
  # Operators work in one shard at a time.
  "$txinbox" consume --consumer failing --key /no --max-attempts 1 --sql "insert into nowhere values (1)" \
    "$folder/alone.jsonl" >/dev/null 2>&1 || true
  key=$(query orders:80- "select business_key from txinbox_failed_message where consumer = 'failing' limit 1")
  [ -n "$key" ] || fail "no message failed"
  refused "retry" "$txinbox" failed retry --db "$(url orders)" --consumer failing "$key"
  "$txinbox" failed retry --db "$(url orders:80-)" --consumer failing "$key"
  "$txinbox" pause --db "$(url orders)" --consumer alone --reason test
  "$txinbox" resume --db "$(url orders)" --consumer alone
  if "$txinbox" pause --db "$(url orders:80-)" --consumer alone --reason test 2>/dev/null; then fail "a pause of one shard"; fi
  # On one shard, a claim would stay there, whatever its key is.
  if "$txinbox" consume --db "$(url orders:80-)" --consumer one_shard --key /no --sql "select 1" "$folder/alone.jsonl" \
    >/dev/null 2>&1; then fail "a consumer on one shard"; fi
  check "its claims" "$(query orders "select count(*) from txinbox_consumed_message where consumer = 'one_shard'")" 0
  refused "purge of a tablet type" "$txinbox" purge --db "$(url orders%40primary)" --older-than 1s
  refused "purge" "$txinbox" purge --db "$(url orders)" --older-than 1s
  sleep 1
  for shard in -80 80-; do "$txinbox" purge --db "$(url "orders:$shard")" --older-than 1s; done
  check "the rows after the purges" "$(query orders "select count(*) from txinbox_consumed_message where state = 'consumed'")" 0
  restart_script restart-orders orders vtgate tablet3 tablet4
  database=orders transfers=(--shards 2)
  storms
}

start_etcd
start_vtctld
test_plain
make_sharded
reshard_under_load
test_two_shards
for program in vtctld vtgate tablet1 tablet3 tablet4; do end "$program"; done
