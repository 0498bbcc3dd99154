#!/usr/bin/env bash
# Tests txinbox on OceanBase's engine: messages, failed messages and purges, conformance cases, faults at every packet,
# and a storm for each kind of work, while the server is killed (SIGKILL) and started again.
#
# Usage: tests/oceanbase.sh [--seconds N] [--kills N] BUILD_FOLDER
#   --seconds N  how long the storm of transactions lasts; 60 by default. The others last half as long. Recovery takes
#                half a minute after each kill
#   --kills N    the minimum number of kills in that storm, even if it lasts longer then; 6 by default
#
# The server listens on every interface and looks for one that is not the loopback. So everything runs in a network
# namespace of its own, which needs root. The server's time zone is +08:00, its default.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
if [ "${1:-}" != --in-namespace ]; then
  [ "$(id -u)" = 0 ] || { echo "skipped: oceanbase.sh needs root, for a network namespace" >&2; exit 77; }
  server=$("$root/tests/get_oceanbase.sh")
  exec unshare --net -- "$0" --in-namespace "$server" "$@"
fi
server=$2
shift 2
# shellcheck source=tests/storms.sh
. "$root/tests/storms.sh"
seconds=60 kills=6
take_arguments "$@"

ip link set lo up
ip link add outside type veth peer name inside
ip address add 10.77.0.1/24 dev inside
ip link set outside up
ip link set inside up

# shellcheck source=tests/private_server.sh
. "$root/tests/private_server.sh"
prepare oceanbase
kill_servers_at_exit
port=2881
export TELEMETRY_ENABLED=false TXINBOX_DB=mysql://root@127.0.0.1:$port/test

fail() {
  echo "oceanbase.sh: $*" >&2
  tail -n 5 "$folder/server.log" >&2
  exit 1
}

query() { mysql -h 127.0.0.1 -P $port -u root --connect-timeout=2 -N -e "$1" test; }

# The server runs as root. It starts again whenever it ends.
keep_running() {
  local pid
  while [ ! -e "$folder/ending" ]; do
    "$server" --nodaemon -P $port --base-dir="$folder/data" --parameter memory_budget=3G --parameter log_disk_size=4G \
      >>"$folder/server.log" 2>&1 &
    pid=$!
    echo "$pid" >"$folder/pid"
    wait "$pid" 2>/dev/null || true
    sleep 0.2
  done
}

cat >"$folder/restart" <<END
#!/usr/bin/env bash
set -u
kill -KILL "\$(cat "$folder/pid")" 2>/dev/null
sleep 0.3
for ((i = 0; i < 1200; i++)); do
  if mysql -h 127.0.0.1 -P $port -u root --connect-timeout=2 -e "select 1 from txinbox_schema" test >/dev/null 2>&1; then
    exit 0
  fi
  sleep 0.1
done
exit 1
END
chmod 755 "$folder/restart"

test_consume() {
  local i
  query "create table t_order(no varchar(20) not null, consumer varchar(20) not null)"
  write_orders
  for i in 1 2; do
    consume alone 1
    consume batches 100
  done
  check "the orders" "$(query "select count(*) from t_order")" 600
  echo "count: 600 keys"
  echo "count: 600 duplicates"
  "$txinbox" consume --consumer failing --key /no --max-attempts 1 --sql "insert into t_order(no) values ('a')" \
    "$folder/alone.jsonl" >/dev/null 2>&1 || true
  check "parked messages" "$(query "select count(*) from txinbox_failed_message where consumer = 'failing'")" 300
  "$txinbox" failed retry --consumer failing order7
  sleep 1
  "$txinbox" purge --older-than 1s
  check "the rows after the purge" "$(query "select count(*) from txinbox_consumed_message where state = 'consumed'")" 0
}

# The cases of these files need nothing that OceanBase lacks, such as latin1 or COMMIT AND CHAIN.
test_conformance() {
  local files='*/consume_test.cpp,*/duplicate_counter_test.cpp,*/conflict_record_test.cpp'
  files+=',*/lease_test.cpp,*/purge_test.cpp'
  TXINBOX_TEST_DATABASE=mysql TXINBOX_TEST_URL=$TXINBOX_DB timeout 600 "$build/tests/txinbox_conformance" \
    --source-file="$files" --test-suite-exclude=timed,long >"$folder/conformance.txt" ||
    { grep -A 3 'ERROR' "$folder/conformance.txt" | head -n 40 >&2 || true; fail "conformance"; }
  echo "count: $(sed -n 's/.*test cases: *[0-9]* *| *\([0-9]*\) passed.*/\1/p' "$folder/conformance.txt") cases"
}

# Faults at every packet of a delivery. Without the case of statements that wait until their time is over: OceanBase's
# time-outs count as failures of the message.
test_faults() {
  TXINBOX_TEST_DATABASE=mysql TXINBOX_TEST_URL=$TXINBOX_DB timeout 1200 "$build/tests/txinbox_faults" \
    --test-suite-exclude=two_faults --test-case-exclude='*until its time is over*' >"$folder/faults.txt" ||
    { grep -A 3 'ERROR' "$folder/faults.txt" | head -n 40 >&2 || true; fail "faults"; }
  grep '^count: ' "$folder/faults.txt"
}

# storm KIND SECONDS KILLS
storm() {
  "$torture" --kind "$1" --duration "$2s" --command "$folder/restart" --command-every 8s --command-at-least "$3" \
    --grace 180s | with_counts
}

keep_running &
pids+=($!)
for ((i = 0; i < 600; i++)); do
  if query "select 1" >/dev/null 2>&1; then break; fi
  sleep 0.1
done
query "select 1" >/dev/null || fail "the server does not start"
"$txinbox" migrate || fail "migrate"
"$txinbox" doctor || true
test_consume
test_conformance
test_faults
storms
: >"$folder/ending"
kill -KILL "$(cat "$folder/pid")"
