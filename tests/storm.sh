#!/usr/bin/env bash
# Runs txinbox-torture on SQLite, MariaDB with and without its binary log, PostgreSQL and MySQL, all at the same
# time, while the servers are killed (SIGKILL) and started again.
#
# Usage: tests/storm.sh [OPTION]... BUILD_FOLDER
#   --seconds N    how long each storm lasts; 30 by default. A storm with leases, on the outbox or on redrive lasts half
#                  as long
#   --restarts N   the minimum number of kills of each server, even if the storm lasts longer then; 5 by default, and 3
#                  with leases, on the outbox and on redrive
#   --database NAME  sqlite3, mariadb, mariadb-no-binlog, postgresql or mysql only; may be repeated
#
# Afterwards, no database may have a prepared transaction, a lock or an open transaction. On each database, the checker
# must also find the errors of a deliberately broken consumer. On MariaDB without the binary log, late_log.sh also runs.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
seconds=30 restarts=5 on_server=
databases=()
while [ $# -gt 1 ]; do
  case $1 in
    --seconds) seconds=$2 ;;
    --restarts) restarts=$2 ;;
    --database) databases+=("$2") ;;
    --on-server) on_server=$2 ;;
    *) echo "storm.sh: unknown option $1" >&2; exit 2 ;;
  esac
  shift 2
done
[ $# = 1 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
build=$(cd "$1" && pwd)
[ ${#databases[@]} -gt 0 ] || databases=(sqlite3 mariadb mariadb-no-binlog postgresql mysql)
txinbox=$build/tools/cli/txinbox torture=$build/tools/torture/txinbox-torture

fail() { echo "storm.sh: $*" >&2; exit 1; }

# shellcheck source=tests/storms.sh
. "$root/tests/storms.sh"

# storm [COMMAND]: runs a storm of each kind on the database that TXINBOX_DB names. Storms with leases, on the outbox
# and on redrive take half the time. COMMAND kills the server and starts it again.
storm() {
  local kind status lasts=$seconds least=$restarts killing relays
  "$txinbox" migrate >/dev/null
  for kind in tx lease outbox redrive; do
    killing=()
    [ $# = 0 ] || killing=(--command "$1" --command-every 3s --command-at-least "$least")
    relays=()
    [ $kind != outbox ] || relays=(--relays 4)
    status=0
    "$torture" --kind $kind --duration "${lasts}s" "${relays[@]}" "${killing[@]}" | with_counts || status=$?
    [ $status = 0 ] || fail "the storm of $kind ended with status $status"
    lasts=$(((seconds + 1) / 2)) least=$(((restarts + 1) / 2))
  done
}

# The checker must find each deliberate defect, and must report this defect and no other. With this seed, and without
# kills, each of them always occurs (torture_test.cpp).
find_out_broken() {
  local kind what status report kept
  kept=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-storm.XXXXXX")  # the storm keeps its files in this folder
  for kind in dedup acknowledge fence delete order early; do
    what=effects status=0
    case $kind in
      fence) what="an older effect after a newer one" ;;
      delete) what="a message was lost" ;;
      order) what="an older message after a newer one" ;;
    esac
    report=$(TMPDIR=$kept "$torture" --seed 329 --keys 40 --kill-every 0s --break $kind --json 2>/dev/null) || status=$?
    if [ $status != 1 ] || ! [[ $report =~ \"what\":\"$what\" ]]; then
      echo "$report" >&2
      fail "the checker does not find what --break $kind does (status $status)"
    fi
    "$torture" --remove-leftovers >/dev/null
  done
  rm -rf "$kept"
}

# Prints a part of a URL of servers.sh, for the database's own client. The password must not be an argument of the
# client.
part() { sed -n 's|^[a-z]*://txinbox:\([^@]*\)@127.0.0.1:\([0-9]*\)/\(.*\)$|\'"$1"'|p' <<<"$TXINBOX_DB"; }

ask_mariadb() {
  MYSQL_PWD=$(part 1) mariadb --no-defaults -h 127.0.0.1 -P "$(part 2)" -u txinbox --batch --skip-column-names -e "$1"
}

ask_postgresql() { PGPASSWORD=$(part 1) psql -X -q -A -t -h 127.0.0.1 -p "$(part 2)" -U txinbox -c "$1" postgres; }

# nothing_left WHAT CLIENT QUERY: fails if the query finds a row.
nothing_left() {
  local found
  found=$("$2" "$3") || fail "the server does not answer the query for $1"
  [ -z "$found" ] || fail "left on the server: $1: $found"
}

others="backend_type = 'client backend' and pid <> pg_backend_pid()"

case $on_server in
  mariadb | mariadb-no-binlog)
    export TXINBOX_DB=$TXINBOX_TEST_MARIADB_URL
    [ "$(ask_mariadb 'select @@log_bin')" = "$([ "$on_server" = mariadb ] && echo 1 || echo 0)" ] || fail "binary log"
    storm "$TXINBOX_TEST_MARIADB_RESTART"
    nothing_left "prepared transactions" ask_mariadb "xa recover"
    nothing_left "open transactions" ask_mariadb "select * from information_schema.innodb_trx"
    nothing_left "locks" ask_mariadb "select * from information_schema.innodb_locks"
    find_out_broken
    if [ "$on_server" = mariadb-no-binlog ]; then "$root/tests/late_log.sh" "$build"; fi
    exit
    ;;
  mysql)
    export TXINBOX_DB=$TXINBOX_TEST_MYSQL_URL
    storm "$TXINBOX_TEST_MYSQL_RESTART"
    nothing_left "prepared transactions" ask_mariadb "xa recover"
    nothing_left "open transactions" ask_mariadb "select * from information_schema.innodb_trx"
    nothing_left "locks" ask_mariadb "select * from performance_schema.data_locks"
    find_out_broken
    exit
    ;;
  postgresql)
    export TXINBOX_DB=$TXINBOX_TEST_POSTGRESQL_URL
    storm "$TXINBOX_TEST_POSTGRESQL_RESTART"
    nothing_left "prepared transactions" ask_postgresql "select * from pg_prepared_xacts"
    nothing_left "open transactions" ask_postgresql \
      "select * from pg_stat_activity where $others and xact_start is not null"
    nothing_left "locks" ask_postgresql \
      "select * from pg_locks where pid in (select pid from pg_stat_activity where $others)"
    find_out_broken
    exit
    ;;
esac

folder=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-storm.XXXXXX")
chmod 755 "$folder"  # the servers run as other users

pids=()
# In the background, bash makes commands ignore SIGINT, and the processes of a storm start other processes. So each
# storm is a process group, and this function ends the whole group. The servers need a moment to end.
stop() {
  local pid
  trap - EXIT
  for pid in "${pids[@]}"; do kill -TERM -- "-$pid" 2>/dev/null || true; done
  for pid in "${pids[@]}"; do
    for _ in {1..300}; do
      kill -0 -- "-$pid" 2>/dev/null || break
      sleep 0.1
    done
  done
  rm -rf "$folder"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# The storm on one database, from the start of its server to the end.
run() {
  local again=("$0" --seconds "$seconds" --restarts "$restarts" --on-server "$1" "$build")
  case $1 in
    sqlite3)
      export TXINBOX_DB=sqlite://$folder/storm.db
      storm
      find_out_broken
      ;;
    mariadb) "$root/tests/servers.sh" --mariadb --restartable -- "${again[@]}" ;;
    mysql) "$root/tests/servers.sh" --mysql --restartable -- "${again[@]}" ;;
    mariadb-no-binlog)
      mkdir -m 755 "$folder/hold"
      TXINBOX_HOLD_LOG=$folder/hold/log "$root/tests/servers.sh" --mariadb --restartable \
        --mariadb-option --skip-log-bin --preload "$build/tests/libtxinbox_late_log.so" -- "${again[@]}"
      ;;
    # By default, PostgreSQL looks for deadlocks after a second. During this time little else happens.
    postgresql)
      "$root/tests/servers.sh" --postgresql --restartable --postgresql-option deadlock_timeout=100ms \
        --postgresql-option max_prepared_transactions=10 -- "${again[@]}"
      ;;
    *) fail "unknown database $1" ;;
  esac
}

set -m
for database in "${databases[@]}"; do
  run "$database" >"$folder/$database.log" 2>&1 &
  pids+=($!)
done
set +m
status=0
for i in "${!databases[@]}"; do
  ended=0
  wait "${pids[$i]}" || ended=$?
  printf '\n-- %s\n' "${databases[$i]}"
  cat "$folder/${databases[$i]}.log"
  [ $ended = 0 ] || status=1
done
pids=()
exit $status
