#!/usr/bin/env bash
# Runs a command with private MariaDB, PostgreSQL and MySQL servers. Stops the servers when the command ends.
#
# Usage: tests/servers.sh [OPTION]... [--] [COMMAND [ARGUMENT]...]
#   --mariadb, --postgresql, --mysql  only these servers; without such an option MariaDB and PostgreSQL.
#                              If MySQL is missing, it is fetched first (get_newer.sh)
#   --cpus LIST                pins the servers to these CPUs, as taskset takes them
#   --preload LIBRARY          loads the library into the servers (LD_PRELOAD)
#   --mariadb-option OPTION    an additional option for mariadbd; may be repeated
#   --postgresql-option A=B    an additional setting for postgres; may be repeated
#   --restartable              gives the command a script for each server, which kills it with SIGKILL
#                              and returns when it is up again, on the same port and data
#   Without a command, it prints the variables to set, and waits for Ctrl-C.
#
# The command finds in its environment:
#   TXINBOX_TEST_MARIADB_URL     mysql://txinbox:PASSWORD@127.0.0.1:PORT/mysql
#   TXINBOX_TEST_POSTGRESQL_URL  postgresql://txinbox:PASSWORD@127.0.0.1:PORT/postgres
#   TXINBOX_TEST_MYSQL_URL       mysql://txinbox:PASSWORD@127.0.0.1:PORT/mysql
# The users may do everything, also create users and databases. With --restartable:
#   TXINBOX_TEST_MARIADB_RESTART, TXINBOX_TEST_POSTGRESQL_RESTART, TXINBOX_TEST_MYSQL_RESTART   the scripts
#
# The data is in a temporary folder. The servers listen on the loopback, with a password that is new each time. They are
# as durable as in production, so that a test of a commit tests a durable commit.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
mariadb= postgresql= mysql=
cpus= preload= restartable=
mariadb_options=() postgresql_options=()
while [ $# -gt 0 ]; do
  case $1 in
    --mariadb) mariadb=1 ;;
    --postgresql) postgresql=1 ;;
    --mysql) mysql=1 ;;
    --restartable) restartable=1 ;;
    --cpus | --preload | --mariadb-option | --postgresql-option)
      [ $# -gt 1 ] || { echo "servers.sh: $1 needs a value" >&2; exit 2; }
      case $1 in
        --cpus) cpus=$2 ;;
        --preload) preload=$2 ;;
        --mariadb-option) mariadb_options+=("$2") ;;
        --postgresql-option) postgresql_options+=(-c "$2") ;;
      esac
      shift
      ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --) shift; break ;;
    -*) echo "servers.sh: unknown option $1 (try --help)" >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done
if [ -z "$mariadb$postgresql$mysql" ]; then mariadb=1 postgresql=1; fi
if [ -n "$mysql" ]; then mysqld=$("$root/tests/get_newer.sh" mysql)/mysqld; fi

. "$root/tests/private_server.sh"
prepare servers
mariadb_pid= postgresql_pid= mysql_pid=

# The prefix of the command that starts a server. It is not used for the installation.
start=("${as_user[@]}")
if [ -n "$cpus" ]; then start+=(taskset -c "$cpus"); fi
if [ -n "$preload" ]; then
  # The server's user may not be able to read the original file.
  install -m 755 "$preload" "$folder/preload.so"
  start+=(env LD_PRELOAD="$folder/preload.so")
fi

say() { echo "servers: $*" >&2; }

# signal_server SIGNAL NAME PID: sends the signal to the server. With --restartable, PID is not the server's process.
signal_server() { kill "-$1" "$(cat "$folder/$2.current" 2>/dev/null || echo "$3")" 2>/dev/null || true; }

# wait_for SIGNAL NAME PID: repeats the signal, because the server may have been restarted just now.
wait_for() {
  while [ -n "$restartable" ] && kill -0 "$3" 2>/dev/null; do
    signal_server "$@"
    sleep 0.1
  done
  wait "$3" 2>/dev/null || true
}

stop() {
  status=$?
  trap - EXIT
  : >"$folder/ending"  # from now on no server is restarted
  # INT is a fast shutdown of PostgreSQL. TERM is a clean shutdown of MariaDB and MySQL.
  if [ -n "$postgresql_pid" ]; then signal_server INT postgresql "$postgresql_pid"; fi
  if [ -n "$mariadb_pid" ]; then signal_server TERM mariadb "$mariadb_pid"; fi
  if [ -n "$mysql_pid" ]; then signal_server TERM mysql "$mysql_pid"; fi
  if [ -n "$postgresql_pid" ]; then wait_for INT postgresql "$postgresql_pid"; fi
  if [ -n "$mariadb_pid" ]; then wait_for TERM mariadb "$mariadb_pid"; fi
  if [ -n "$mysql_pid" ]; then wait_for TERM mysql "$mysql_pid"; fi
  rm -rf "$folder"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# run NAME COMMAND...: replaces this process by the server. With --restartable, restarts the server when it ends.
run() {
  local name=$1 pid
  shift
  if [ -z "$restartable" ]; then exec "$@"; fi
  while [ ! -e "$folder/ending" ]; do
    "$@" &
    pid=$!
    echo "$pid" >"$folder/$name.current"
    wait "$pid" || true
    while [ -e "$folder/$name.away" ] && [ ! -e "$folder/ending" ]; do sleep 0.1; done
    sleep 0.1  # the next start fails while the previous process still has its locks
  done
}

# restart_script NAME READY...: prints the name of a script. The script kills all processes of the server at once, and
# waits until the command READY succeeds. Its optional argument is the number of seconds before the server restarts.
restart_script() {
  local name=$1 script=$folder/restart-$1
  shift
  cat >"$script" <<END
#!/usr/bin/env bash
set -u
pid=\$(cat "$folder/$name.current")
if [ \$# -gt 0 ]; then : >"$folder/$name.away"; fi
read -ra children <"/proc/\$pid/task/\$pid/children" || true
kill -KILL "\$pid" "\${children[@]}"
if [ \$# -gt 0 ]; then sleep "\$1"; rm "$folder/$name.away"; fi
listens() { (exec 3<>"/dev/tcp/127.0.0.1/\$1") 2>/dev/null; }
for ((i = 0; i < 600; i++)); do
  if [ "\$(cat "$folder/$name.current")" != "\$pid" ] && $*; then exit 0; fi
  sleep 0.1
done
echo "$name did not come back" >&2
exit 1
END
  chmod +x "$script"
  echo "$script"
}

# wait_until_ready NAME PID LOG COMMAND...: waits until COMMAND succeeds, at most a minute.
wait_until_ready() {
  local name=$1 pid=$2 log=$3 i
  shift 3
  for ((i = 0; i < 600; i++)); do
    if ! kill -0 "$pid" 2>/dev/null; then break; fi
    if "$@"; then return; fi
    sleep 0.1
  done
  say "$name did not start; its log ends:"
  tail -n 20 "$log" >&2
  return 1
}

start_mariadb() {
  local port data=$folder/mariadb init=$folder/mariadb.sql
  take_ports
  printf '%s\n' "CREATE USER IF NOT EXISTS txinbox@127.0.0.1 IDENTIFIED BY '$password';" \
    "GRANT ALL ON *.* TO txinbox@127.0.0.1 WITH GRANT OPTION;" >"$init"
  # A server that starts removes all temporary tables from its folder, also those of another server.
  "${as_user[@]}" mkdir "$data" "$folder/mariadb-tmp"
  if ! "${as_user[@]}" mariadb-install-db --no-defaults --datadir="$data" --tmpdir="$folder/mariadb-tmp" --skip-test-db \
      --auth-root-authentication-method=normal >"$folder/mariadb-install.log" 2>&1; then
    cat "$folder/mariadb-install.log" >&2
    return 1
  fi
  # The binary log is on, as in production. With it, each commit has two phases.
  run mariadb "${start[@]}" mariadbd --no-defaults --datadir="$data" --socket="$folder/mariadb.sock" --port="$port" \
    --pid-file="$folder/mariadb.pid" --tmpdir="$folder/mariadb-tmp" --bind-address=127.0.0.1 --skip-name-resolve --init-file="$init" \
    --innodb-flush-log-at-trx-commit=1 --log-bin="$data/binlog" --binlog-format=ROW --sync-binlog=1 \
    --server-id=1 --max-connections=300 "${mariadb_options[@]}" >"$folder/mariadb.log" 2>&1 &
  mariadb_pid=$!
  wait_until_ready MariaDB "$mariadb_pid" "$folder/mariadb.log" listens "$port"
  export TXINBOX_TEST_MARIADB_URL="mysql://txinbox:$password@127.0.0.1:$port/mysql"
  if [ -n "$restartable" ]; then
    TXINBOX_TEST_MARIADB_RESTART=$(restart_script mariadb listens "$port")
    export TXINBOX_TEST_MARIADB_RESTART
  fi
  say "MariaDB on port $port"
}

start_mysql() {
  local port data=$folder/mysql init=$folder/mysql.sql
  local places
  mysql_places
  places+=(--datadir="$data" --tmpdir="$folder/mysql-tmp")
  take_ports
  printf '%s\n' "CREATE USER IF NOT EXISTS txinbox@127.0.0.1 IDENTIFIED BY '$password';" \
    "GRANT ALL ON *.* TO txinbox@127.0.0.1 WITH GRANT OPTION;" >"$init"
  "${as_user[@]}" mkdir "$data" "$folder/mysql-tmp"
  if ! "${as_user[@]}" "$mysqld" "${places[@]}" --initialize-insecure >"$folder/mysql-install.log" 2>&1; then
    cat "$folder/mysql-install.log" >&2
    return 1
  fi
  # The same durability as MariaDB.
  run mysql "${start[@]}" "$mysqld" "${places[@]}" --socket="$folder/mysql.sock" --port="$port" --mysqlx=OFF \
    --pid-file="$folder/mysql.pid" --bind-address=127.0.0.1 --skip-name-resolve --init-file="$init" \
    --innodb-flush-log-at-trx-commit=1 --log-bin="$data/binlog" --sync-binlog=1 --server-id=1 --max-connections=300 \
    >"$folder/mysql.log" 2>&1 &
  mysql_pid=$!
  wait_until_ready MySQL "$mysql_pid" "$folder/mysql.log" listens "$port"
  export TXINBOX_TEST_MYSQL_URL="mysql://txinbox:$password@127.0.0.1:$port/mysql"
  if [ -n "$restartable" ]; then
    TXINBOX_TEST_MYSQL_RESTART=$(restart_script mysql listens "$port")
    export TXINBOX_TEST_MYSQL_RESTART
  fi
  say "MySQL on port $port"
}

postgresql_program() {
  if command -v "$1" >/dev/null; then
    command -v "$1"
  else
    # On Debian, the server's programs are not on the path. Each version has a folder.
    find /usr/lib/postgresql -path "*/bin/$1" 2>/dev/null | sort -V | tail -n 1
  fi
}

postgresql_answers() { PGPASSWORD=$password PGCONNECT_TIMEOUT=2 psql -X -q -h 127.0.0.1 -p "$1" -U txinbox -c "" postgres 2>/dev/null; }

start_postgresql() {
  local port data=$folder/postgresql initdb postgres
  initdb=$(postgresql_program initdb)
  postgres=$(postgresql_program postgres)
  take_ports
  printf '%s\n' "$password" >"$folder/password"
  chmod 644 "$folder/password"
  if ! "${as_user[@]}" "$initdb" --pgdata="$data" --username=txinbox --pwfile="$folder/password" --auth=scram-sha-256 \
      --encoding=UTF8 --locale=C >"$folder/initdb.log" 2>&1; then
    cat "$folder/initdb.log" >&2
    return 1
  fi
  rm "$folder/password"
  run postgresql "${start[@]}" "$postgres" -D "$data" -p "$port" -c listen_addresses=127.0.0.1 -c unix_socket_directories= \
    -c max_connections=300 -c max_prepared_transactions=10 -c wal_level=logical "${postgresql_options[@]}" >"$folder/postgresql.log" 2>&1 &
  postgresql_pid=$!
  wait_until_ready PostgreSQL "$postgresql_pid" "$folder/postgresql.log" postgresql_answers "$port"
  export TXINBOX_TEST_POSTGRESQL_URL="postgresql://txinbox:$password@127.0.0.1:$port/postgres"
  if [ -n "$restartable" ]; then
    TXINBOX_TEST_POSTGRESQL_RESTART=$(restart_script postgresql pg_isready -q -h 127.0.0.1 -p "$port")
    export TXINBOX_TEST_POSTGRESQL_RESTART
  fi
  say "PostgreSQL on port $port"
}

cd /
if [ -n "$mariadb" ]; then start_mariadb; fi
if [ -n "$postgresql" ]; then start_postgresql; fi
if [ -n "$mysql" ]; then start_mysql; fi
cd - >/dev/null

if [ $# -gt 0 ]; then
  "$@"
else
  env | grep '^TXINBOX_TEST_.*_\(URL\|RESTART\)=' | sed 's/^/export /'
  say "running until Ctrl-C"
  while sleep 3600; do :; done
fi
