#!/usr/bin/env bash
# Runs a command with a primary and its replica, or with a pooler in front of a server. Stops the servers when the
# command ends.
#
# Usage: tests/failover.sh KIND COMMAND [ARGUMENT]...
#   KIND  mariadb            an asynchronous replica
#         mariadb-semi-sync  a commit waits until the replica has it
#         postgresql         an asynchronous standby
#         postgresql-sync    a commit waits until the standby has it
#         pgbouncer          PgBouncer in transaction mode in front of PostgreSQL
#
# The command finds in its environment:
#   TXINBOX_TEST_DATABASE     mysql or postgresql
#   TXINBOX_TEST_URL          the primary: mysql://txinbox:PASSWORD@127.0.0.1:PORT/mysql, for instance
#   TXINBOX_TEST_REPLICA_URL  the replica, which is read-only until it is promoted
#   TXINBOX_TEST_PRIMARY_PID  the primary's process id, so that the command can kill it
#   TXINBOX_TEST_POOLER_URL   PgBouncer
# If TXINBOX_TEST_CASE is set, the command gets it as an argument: doctest's filter. The users may do everything. The
# data is in a temporary folder. All servers listen on the loopback, with a password that is new each time, and are as
# durable as in production.
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
case ${1:-} in
  mariadb | mariadb-semi-sync | postgresql | postgresql-sync | pgbouncer) kind=$1 ;;
  --help | -h) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
shift
[ $# -gt 0 ] || { usage >&2; exit 2; }

. "$(dirname "$0")/private_server.sh"
prepare failover
kill_servers_at_exit

# wait_until LOG COMMAND...: waits until COMMAND succeeds, at most a minute.
wait_until() {
  local log=$1 i
  shift
  for ((i = 0; i < 600; i++)); do
    if "$@"; then return; fi
    sleep 0.1
  done
  echo "failover.sh: a server did not start; its log ends:" >&2
  tail -n 20 "$log" >&2
  return 1
}

# quietly LOG COMMAND...: shows the command's output only if the command fails.
quietly() {
  local log=$1
  shift
  "${as_user[@]}" "$@" >"$log" 2>&1 || { cat "$log" >&2; return 1; }
}

mariadb_ask() { MYSQL_PWD=$password mariadb --no-defaults -h 127.0.0.1 -P "$1" -u txinbox -N -B -e "$2" 2>/dev/null; }

# mariadb_start NAME PORT OPTION...: sets `pid`.
mariadb_start() {
  local home=$folder/$1 port=$2
  shift 2
  "${as_user[@]}" mkdir "$home/tmp"
  "${as_user[@]}" mariadbd --no-defaults --datadir="$home/data" --tmpdir="$home/tmp" --socket="$home/socket" \
    --pid-file="$home/server.pid" --port="$port" --bind-address=127.0.0.1 --skip-name-resolve \
    --init-file="$folder/init.sql" --innodb-flush-log-at-trx-commit=1 --log-bin="$home/data/binlog" \
    --binlog-format=ROW --sync-binlog=1 --max-connections=300 "$@" >"$home/log" 2>&1 &
  pid=$!
  pids+=("$pid")
  wait_until "$home/log" mariadb_ask "$port" "SELECT 1" >/dev/null
}

start_mariadb() {
  local primary replica port semi_sync=()
  take_ports
  primary=$port replica=$((port + 1))
  # Not in the binary log, because both servers get the statement.
  printf '%s\n' "SET SESSION sql_log_bin = 0;" \
    "CREATE USER IF NOT EXISTS txinbox@127.0.0.1 IDENTIFIED BY '$password';" \
    "GRANT ALL ON *.* TO txinbox@127.0.0.1 WITH GRANT OPTION;" >"$folder/init.sql"
  chmod 644 "$folder/init.sql"
  "${as_user[@]}" mkdir "$folder/primary" "$folder/replica" "$folder/tmp"
  quietly "$folder/install.log" mariadb-install-db --no-defaults --datadir="$folder/primary/data" \
    --tmpdir="$folder/tmp" --skip-test-db --auth-root-authentication-method=normal
  "${as_user[@]}" cp -r "$folder/primary/data" "$folder/replica/data"
  if [ "$kind" = mariadb-semi-sync ]; then
    # Longer than any test waits. After this time, the primary would continue without the replica.
    semi_sync=(--rpl-semi-sync-master-enabled=1 --rpl-semi-sync-slave-enabled=1 --rpl-semi-sync-master-timeout=60000
      --rpl-semi-sync-master-wait-point=AFTER_SYNC)
  fi
  mariadb_start primary "$primary" --server-id=1 "${semi_sync[@]}"
  export TXINBOX_TEST_PRIMARY_PID=$pid
  mariadb_start replica "$replica" --server-id=2 --read-only=1 "${semi_sync[@]}"
  mariadb_ask "$replica" "CHANGE MASTER TO master_host = '127.0.0.1', master_port = $primary, master_user = 'txinbox',
    master_password = '$password', master_use_gtid = slave_pos; START SLAVE"
  export TXINBOX_TEST_DATABASE=mysql TXINBOX_TEST_URL="mysql://txinbox:$password@127.0.0.1:$primary/mysql"
  export TXINBOX_TEST_REPLICA_URL="mysql://txinbox:$password@127.0.0.1:$replica/mysql"
}

postgresql_ask() { PGPASSWORD=$password PGCONNECT_TIMEOUT=2 psql -X -q -A -t -h 127.0.0.1 -p "$1" -U txinbox -c "$2" postgres 2>/dev/null; }

# postgresql_start NAME PORT SETTING...: sets `pid`.
postgresql_start() {
  local home=$folder/$1 port=$2 each options=()
  shift 2
  for each in listen_addresses=127.0.0.1 unix_socket_directories= max_connections=100 "$@"; do
    options+=(-c "$each")
  done
  "${as_user[@]}" "$bin/postgres" -D "$home" -p "$port" "${options[@]}" >"$folder/$(basename "$home").log" 2>&1 &
  pid=$!
  pids+=("$pid")
  wait_until "$folder/$(basename "$home").log" postgresql_ask "$port" "SELECT 1" >/dev/null
}

start_postgresql() {
  local primary standby port bin
  # On Debian, the server's programs are not on the path. Each version has a folder.
  bin=$(dirname "$(find /usr/lib/postgresql -path '*/bin/initdb' | sort -V | tail -n 1)")
  take_ports
  primary=$port standby=$((port + 1))
  printf '%s\n' "$password" >"$folder/password"
  chmod 644 "$folder/password"
  quietly "$folder/initdb.log" "$bin/initdb" --pgdata="$folder/primary" --username=txinbox --pwfile="$folder/password" \
    --auth=scram-sha-256 --encoding=UTF8 --locale=C
  postgresql_start primary "$primary"
  export TXINBOX_TEST_PRIMARY_PID=$pid
  export TXINBOX_TEST_DATABASE=postgresql TXINBOX_TEST_URL="postgresql://txinbox:$password@127.0.0.1:$primary/postgres"
  if [ "$kind" = pgbouncer ]; then return; fi

  PGPASSWORD=$password quietly "$folder/basebackup.log" "$bin/pg_basebackup" --checkpoint=fast --write-recovery-conf \
    --pgdata="$folder/standby" --dbname="host=127.0.0.1 port=$primary user=txinbox application_name=standby"
  printf '%s\n' "127.0.0.1:*:*:txinbox:$password" >"$folder/standby/passfile"
  postgresql_start standby "$standby"
  export TXINBOX_TEST_REPLICA_URL="postgresql://txinbox:$password@127.0.0.1:$standby/postgres"
  if [ "$kind" = postgresql-sync ]; then
    postgresql_ask "$primary" "ALTER SYSTEM SET synchronous_standby_names = 'standby'"
    postgresql_ask "$primary" "SELECT pg_reload_conf()" >/dev/null
  fi
}

start_pgbouncer() {
  local port server=${TXINBOX_TEST_URL##*:}
  take_ports
  "${as_user[@]}" mkdir "$folder/pooler"
  # PgBouncer has fewer connections to the server than a test has to PgBouncer, so that clients share them.
  cat >"$folder/pooler/pgbouncer.ini" <<END
[databases]
* = host=127.0.0.1 port=${server%%/*}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = scram-sha-256
auth_file = $folder/pooler/users
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
END
  printf '"txinbox" "%s"\n' "$password" >"$folder/pooler/users"
  "${as_user[@]}" pgbouncer "$folder/pooler/pgbouncer.ini" >"$folder/pooler.log" 2>&1 &
  pids+=($!)
  wait_until "$folder/pooler.log" postgresql_ask "$port" "SELECT 1" >/dev/null
  export TXINBOX_TEST_POOLER_URL="postgresql://txinbox:$password@127.0.0.1:$port/postgres"
}

case $kind in
  mariadb*) start_mariadb ;;
  postgresql*) start_postgresql ;;
  pgbouncer) start_postgresql && start_pgbouncer ;;
esac
if [ -n "${TXINBOX_TEST_CASE:-}" ]; then set -- "$@" "--test-case=$TXINBOX_TEST_CASE"; fi
"$@"
