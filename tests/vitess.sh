#!/usr/bin/env bash
# Tests txinbox on Vitess with one keyspace that is not sharded: messages one by one and in batches, and a storm for each
# kind of work, while vtgate and its tablet are killed (SIGKILL) and started again.
#
# Usage: tests/vitess.sh [--seconds N] [--kills N] BUILD_FOLDER
#   --seconds N  how long the first storm lasts; 60 by default. The others last half as long
#   --kills N    the minimum number of kills in the first storm, even if it lasts longer then; 10 by default
#
# Vitess runs as one process (vtcombo), on the MySQL server of tests/get_newer.sh.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
seconds=60 kills=10
while [ $# -gt 1 ]; do
  case $1 in
    --seconds) seconds=$2 ;;
    --kills) kills=$2 ;;
    *) echo "vitess.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ $# = 1 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
build=$(cd "$1" && pwd)
txinbox=$build/tools/cli/txinbox torture=$build/tools/torture/txinbox-torture

vtcombo=$("$root/tests/get_vitess.sh")
mysqld=$("$root/tests/get_newer.sh" mysql)/mysqld
# shellcheck source=tests/private_server.sh
. "$root/tests/private_server.sh"
prepare vitess
kill_servers_at_exit
take_ports
mysql_port=$((port + 1)) http_port=$((port + 2))

fail() {
  echo "vitess.sh: $*" >&2
  tail -n 5 "$folder/vtcombo.log" | cut -c 1-500 >&2
  exit 1
}

# wait_until WHAT COMMAND...: waits until the command succeeds, at most a minute.
wait_until() {
  local i
  for ((i = 0; i < 600; i++)); do
    if "${@:2}"; then return; fi
    sleep 0.1
  done
  fail "$1"
}

start_mysql() {
  local data=$folder/mysql user
  local places
  mysql_places
  places+=(--datadir="$data" --tmpdir="$folder/mysql-tmp")
  "${as_user[@]}" mkdir "$data" "$folder/mysql-tmp" "$folder/vt"
  "${as_user[@]}" "$mysqld" "${places[@]}" --initialize-insecure >"$folder/mysql.log" 2>&1 || fail "$(cat "$folder/mysql.log")"
  # The users of a tablet. Only the socket in the private folder accepts connections.
  for user in app appdebug allprivs dba filtered repl; do
    echo "CREATE USER vt_$user@localhost; GRANT ALL ON *.* TO vt_$user@localhost WITH GRANT OPTION;"
  done >"$folder/mysql.sql"
  echo "CREATE DATABASE orders;" >>"$folder/mysql.sql"
  "${as_user[@]}" "$mysqld" "${places[@]}" --socket="$folder/mysql.sock" --skip-networking --mysqlx=OFF \
    --pid-file="$folder/mysql.pid" --init-file="$folder/mysql.sql" --gtid-mode=ON --enforce-gtid-consistency=ON \
    --log-bin="$data/binlog" --sync-binlog=1 --innodb-flush-log-at-trx-commit=1 --server-id=1 --max-connections=500 \
    >>"$folder/mysql.log" 2>&1 &
  pids+=($!)
  wait_until "MySQL does not start" test -S "$folder/mysql.sock"
}

# The script starts Vitess in place of itself. Who kills it starts it anew.
write_start_script() {
  mkdir -p "$folder/schema/orders"
  echo '{"tables": {}}' >"$folder/schema/orders/vschema.json"
  local topology='{"keyspaces": [{"name": "orders", "shards": [{"name": "0", "dbNameOverride": "orders"}]}], "cells": ["test"]}'
  cat >"$folder/start" <<END
#!/usr/bin/env bash
exec ${as_user[*]} env VTDATAROOT="$folder/vt" "$vtcombo" --json-topo '$topology' --schema-dir "$folder/schema" \\
  --db-socket "$folder/mysql.sock" --mysql-server-port $mysql_port --mysql-server-bind-address 127.0.0.1 \\
  --mysql-auth-server-impl none --port $http_port --bind-address 127.0.0.1 --grpc-port $((port + 3)) \\
  --grpc-bind-address 127.0.0.1 --transaction-mode SINGLE --db-charset utf8mb4 >>"$folder/vtcombo.log" 2>&1
END
  # vtcombo must be up for some seconds before the next kill, or nothing is ever consumed.
  cat >"$folder/restart" <<END
#!/usr/bin/env bash
set -u
kill -KILL "\$(cat "$folder/vtcombo.pid")" 2>/dev/null
listens() { (exec 3<>"/dev/tcp/127.0.0.1/$mysql_port") 2>/dev/null; }
while listens; do sleep 0.1; done
for ((i = 0; i < 600; i++)); do
  if listens; then exit 0; fi
  sleep 0.1
done
exit 1
END
  chmod 755 "$folder/start" "$folder/restart"
  chmod -R a+rX "$folder/schema"
}

# Starts Vitess, and starts it again whenever it ends.
keep_running() {
  local pid
  while [ ! -e "$folder/ending" ]; do
    "$folder/start" &
    pid=$!
    echo "$pid" >"$folder/vtcombo.pid"
    wait "$pid" 2>/dev/null || true
    sleep 0.2
  done
}

accepted_connections() {
  python3 - "http://127.0.0.1:$http_port/debug/vars" <<'END'
import json, sys, urllib.request
print(json.load(urllib.request.urlopen(sys.argv[1], timeout=10))["MysqlServerConnAccepted"])
END
}

query() { mysql -h 127.0.0.1 -P "$mysql_port" -u service -N -e "$1" orders; }

check() {
  local what=$1 found=$2 wanted=$3
  [ "$found" = "$wanted" ] || fail "$what: $found instead of $wanted"
}

# consume CONSUMER BATCH: consumes 300 orders.
consume() {
  "$txinbox" consume --consumer "$1" --key /no --batch "$2" \
    --sql 'insert into t_order(consumer, no) values (:consumer, :no)' "$folder/$1.jsonl" || fail "consume of $1"
}

test_consume() {
  local consumer i before opened
  query "create table t_order(consumer varchar(20) not null, no varchar(20) not null)"
  for consumer in alone batches; do
    for ((i = 0; i < 300; i++)); do echo "{\"consumer\": \"$consumer\", \"no\": \"order$i\"}"; done >"$folder/$consumer.jsonl"
  done
  before=$(accepted_connections)
  consume alone 1
  opened=$(($(accepted_connections) - before))
  # A connection whose settings cannot be restored is closed: that was one for each message.
  [ "$opened" -le 10 ] || fail "300 messages opened $opened connections"
  consume batches 100
  consume alone 1
  consume batches 100
  check "the orders" "$(query "select count(*) from t_order")" 600
  echo "count: 600 keys"
  echo "count: 600 duplicates"
}

# storm KIND SECONDS KILLS
storm() {
  "$torture" --kind "$1" --duration "$2s" --command "$folder/restart" --command-every 4s --command-at-least "$3" |
    awk '{ print } match($0, /^(keys|deliveries|workers killed|relays killed|commands run) +[0-9,]+$/) {
      number = $NF; gsub(",", "", number); $NF = ""; sub(/ +$/, "")
      print "count: " number " " ($0 == "commands run" ? "servers killed" : $0)
    }'
}

start_mysql
write_start_script
keep_running &
pids+=($!)
wait_until "Vitess does not start" listens "$mysql_port"
export TXINBOX_DB=mysql://service@127.0.0.1:$mysql_port/orders
wait_until "Vitess has no tablet" query "select 1" >/dev/null 2>&1
"$txinbox" migrate
test_consume
storm tx "$seconds" "$kills"
storm lease $(((seconds + 1) / 2)) $(((kills + 1) / 2))
storm outbox $(((seconds + 1) / 2)) $(((kills + 1) / 2))
: >"$folder/ending"
kill -KILL "$(cat "$folder/vtcombo.pid")"
