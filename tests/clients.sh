#!/usr/bin/env bash
# Tries the services of examples/clients: each delivers orders twice, dies in the middle of one, and meets a lock that
# another session holds for longer than its time-out. In the end each order must be booked once. For ctest.
#
# Usage: clients.sh sqlite3|postgresql|mysql FOLDER
#   FOLDER  has the programs of the build
#
# The servers are those of TXINBOX_TEST_POSTGRESQL_URL and TXINBOX_TEST_MARIADB_URL. Status 77 means skipped.
set -euo pipefail

database=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

case $database in
  sqlite3) url=file ;;
  postgresql) url=${TXINBOX_TEST_POSTGRESQL_URL:-} ;;
  mysql) url=${TXINBOX_TEST_MARIADB_URL:-} ;;
esac
if [ -z "$url" ]; then
  echo "skipped: the URL of the server is not set (tests/run.sh starts the servers)"
  exit 77
fi
if [ "$database" != sqlite3 ]; then
  [[ $url =~ ^[a-z]+://([^:]+):([^@]+)@([^:]+):([0-9]+)/(.*)$ ]]
  user=${BASH_REMATCH[1]} password=${BASH_REMATCH[2]} host=${BASH_REMATCH[3]} port=${BASH_REMATCH[4]}
  schema=clients_$$_$RANDOM
fi

fail() {
  echo "$program: $*" >&2
  cat "$work/out" "$work/err" >&2
  exit 1
}

# Runs SQL, and prints what it returns.
sql() {
  case $database in
    sqlite3) sqlite3 "$work/$program.db" "$1" ;;
    postgresql) psql -qAtX -v ON_ERROR_STOP=1 -c "$1" ;;
    mysql) mariadb --defaults-file="$work/my.cnf" -N -e "$1" ;;
  esac
}

# Holds a lock that the service wants, and says when it has it.
hold() {
  case $database in
    sqlite3)
      { echo "begin immediate;"; echo ".shell touch $work/held"; sleep 2; echo "commit;"; } |
        sqlite3 "$work/$program.db"
      ;;
    postgresql)
      psql -qAtX -c "begin; update t_account set orders = orders" -c "\! touch $work/held" -c "select pg_sleep(1.5)" \
        -c commit >/dev/null
      ;;
    mysql)
      { echo "begin; update t_account set orders = orders;"; echo "system touch $work/held"; echo "select sleep(2.5);"
        echo "commit;"; } | mariadb --defaults-file="$work/my.cnf" >/dev/null
      ;;
  esac
}

service() { "$folder/$program" "${arguments[@]}" "$@" >"$work/out" 2>"$work/err"; }

expect() { # OUTCOME... : of the orders of the last run
  diff <(sed 's/.*: //' "$work/out") <(printf '%s\n' "$@") >/dev/null || fail "expected $*"
}

try_service() {
  program=$1 arguments=("${@:2}")
  if [ ! -x "$folder/$program" ]; then
    echo "$program: not built, its library is not there"
    return
  fi
  case $database in
    postgresql)
      PGHOST=$host PGPORT=$port PGUSER=$user PGPASSWORD=$password PGDATABASE=${url##*/}
      export PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE
      sql "create schema ${schema}_$program"
      export PGOPTIONS="-c search_path=${schema}_$program -c lock_timeout=300ms -c client_min_messages=error"
      ;;
    mysql)
      umask 077
      printf '[client]\nhost=%s\nport=%s\nuser=%s\npassword=%s\n' "$host" "$port" "$user" "$password" >"$work/my.cnf"
      sql "create database ${schema}_$program"
      echo "database=${schema}_$program" >>"$work/my.cnf"
      ;;
  esac
  sql "create table t_order (no varchar(100) primary key)"
  sql "create table t_account (name varchar(10), orders integer not null)"
  sql "insert into t_account values ('open', 0)"

  service order1 order2 order3 order1 order2 order3 || fail "it failed"
  expect consumed consumed consumed already_consumed already_consumed already_consumed

  if CRASH_AT=order4 service order4; then fail "it did not die"; fi
  [ "$(sql "select count(*) from t_order where no = 'order4'")" = 0 ] || fail "the order of the crash is half booked"
  service order4 order4 || fail "it failed after the crash"
  expect consumed already_consumed

  rm -f "$work/held"
  hold &
  until [ -e "$work/held" ]; do sleep 0.05; done
  service order5 || fail "it gave up at a lock"
  expect consumed
  wait

  [ "$(sql "select count(*) from t_order")" = 5 ] || fail "there are not 5 orders"
  [ "$(sql "select orders from t_account")" = 5 ] || fail "the account has not counted 5 orders"
  [ "$(sql "select count(*) from txinbox_failed_message")" = 0 ] || fail "a lock was counted as a failure"
  case $database in
    postgresql) sql "drop schema ${schema}_$program cascade" ;;
    mysql) sql "drop database ${schema}_$program" ;;
  esac
  echo "$program: 5 orders booked once"
}

case $database in
  sqlite3)
    try_service sqlite3 "$work/sqlite3.db"
    try_service sqlitecpp "$work/sqlitecpp.db"
    try_service qt_sql QSQLITE "$work/qt_sql.db"
    ;;
  postgresql)
    try_service libpq
    try_service libpqxx
    try_service qt_sql QPSQL ''
    ;;
  mysql) try_service mariadb "$work/my.cnf" ;;
esac
