#!/usr/bin/env bash
# Runs the services of examples/clients. Each delivers orders twice, and is killed in the middle of one. On a server,
# its handler then waits for a lock until the time-out, is the victim of a deadlock, and loses its connection. On
# SQLite, it gets SQLITE_BUSY. At the end, each order must be booked once. ctest runs this script.
#
# Usage: clients.sh sqlite3|postgresql|mysql FOLDER BUSY_ONCE
#   FOLDER     has the programs of the build
#   BUSY_ONCE  is the library of busy_once.cpp, for sqlite3
#
# The servers are those of TXINBOX_TEST_POSTGRESQL_URL and TXINBOX_TEST_MARIADB_URL. Status 77 means skipped.
set -euo pipefail

database=$1 folder=$2 busy_once=${3:-}
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
  db=${BASH_REMATCH[5]} schema=clients_$$_$RANDOM
  export PGPASSWORD=$password DB_PASSWORD=$password
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
    postgresql) psql -qAtX -h "$host" -p "$port" -U "$user" -d "$db" -v ON_ERROR_STOP=1 -c "$1" ;;
    mysql) mariadb --defaults-file="$work/my.cnf" --delimiter=// -N -e "$1" ;;
  esac
}

service() { "$folder/$program" "${arguments[@]}" "$@" >"$work/out" 2>"$work/err"; }

expect() { # OUTCOME... : the expected outcomes of the orders of the last run
  diff <(sed 's/.*: //' "$work/out") <(printf '%s\n' "$@") >/dev/null || fail "expected $*"
}
expect_again() { grep -q "^$1: runs again after $2\$" "$work/err" || fail "$1 did not run again after $2"; }

# For hold and lock_rows: a client that reads SQL, and its command that creates a file.
use_client() {
  case $database in
    postgresql) client=(psql -qAtX -h "$host" -p "$port" -U "$user" -d "$db") touch="\\! touch" ;;
    mysql) client=(mariadb --defaults-file="$work/my.cnf") touch="system touch" ;;
  esac
}

# Inserts the order that the service wants to insert, creates the file `held`, and keeps the transaction open until the
# file `free` exists.
hold() {
  local client touch
  use_client
  {
    echo "begin; insert into t_order values ('order5');"
    echo "$touch $work/held"
    until [ -e "$work/free" ] || [ ! -d "$work" ]; do sleep 0.05; done
    echo "rollback;"
  } | "${client[@]}" >/dev/null
}

meet_a_lock() { # the handler waits for a lock
  rm -f "$work/held" "$work/free"
  hold &
  until [ -e "$work/held" ]; do sleep 0.05; done
  service order5 &
  local running=$!
  until grep -q "runs again" "$work/err" || ! kill -0 $running 2>/dev/null; do sleep 0.05; done
  touch "$work/free"
  wait $running || fail "the service failed because of a lock"
  expect consumed
  expect_again order5 lock_timeout
  wait
}

# Locks row 2, and row 1 as soon as the service has locked it. Creates the file `held` in between.
lock_rows() {
  local client touch locked
  use_client
  case $database in
    postgresql) locked="select is_called::int from row_1_locked" ;;
    mysql) locked="select next_not_cached_value > 1 from row_1_locked" ;;
  esac
  {
    # This transaction changes more rows than the service's, because InnoDB ends the smaller transaction.
    echo "begin; update t_row set changes = changes + 1 where no >= 2;"
    echo "$touch $work/held"
    until [ "$(sql "$locked")" = 1 ] || [ ! -d "$work" ]; do sleep 0.05; done
    echo "update t_row set changes = changes + 1 where no = 1; commit;"
  } | "${client[@]}" >/dev/null
}

# The handler locks row 1, waits until the other transaction waits for it, and wants row 2. The service must be the
# victim, also on a slow machine. On PostgreSQL, only the service's session looks for deadlocks. On MariaDB, the service
# has changed fewer rows. A sequence, which no rollback resets, makes this happen only once.
be_a_victim() {
  rm -f "$work/held"
  sql "create sequence deadlocks"
  sql "create sequence row_1_locked"
  sql "create table t_row (no integer primary key, changes integer not null)"
  case $database in
    postgresql)
      sql "insert into t_row select no, 0 from generate_series(1, 2) no"
      sql "create function meet() returns trigger language plpgsql as \$\$ begin
             if nextval('deadlocks') = 1 then
               update t_row set changes = changes + 1 where no = 1;
               perform nextval('row_1_locked');
               while not exists (select from pg_stat_activity where application_name = 'other$$' and wait_event_type = 'Lock')
                 loop perform pg_sleep(0.02), pg_stat_clear_snapshot(); end loop;
               update t_row set changes = changes + 1 where no = 2;
             end if; return new; end \$\$"
      sql "create trigger meet before insert on t_order for each row execute function meet()"
      PGAPPNAME=other$$ PGOPTIONS="$PGOPTIONS -c deadlock_timeout=1h" lock_rows &
      ;;
    mysql)
      # InnoDB updates these tables only if nobody has read them for 0.1 seconds.
      sql "insert into t_row select seq, 0 from seq_1_to_1000"
      sql "create trigger meet before insert on t_order for each row begin
             if nextval(deadlocks) = 1 then
               update t_row set changes = changes + 1 where no = 1;
               do nextval(row_1_locked);
               while not exists (select 1 from information_schema.innodb_lock_waits
                                 join information_schema.innodb_trx on trx_id = blocking_trx_id
                                 where trx_mysql_thread_id = connection_id()) do do sleep(0.2); end while;
               update t_row set changes = changes + 1 where no = 2;
             end if; end"
      lock_rows &
      ;;
  esac
  local other=$!
  until [ -e "$work/held" ]; do sleep 0.05; done
  PGOPTIONS="${PGOPTIONS:-} -c deadlock_timeout=10ms" service order7 || fail "the service failed because of a deadlock"
  expect consumed
  expect_again order7 deadlock
  wait $other || fail "the other transaction was the victim"
  [ "$(sql "select changes from t_row where no = 1")" = 1 ] || fail "the victim's changes were not rolled back"
  sql "drop trigger meet$([ "$database" = mysql ] || echo " on t_order")"
}

# On SQLite the transaction has the lock before the handler runs. So a trigger makes the handler's last statement fail.
meet_busy() { # CLASS: the class of the error, as the listener gets it
  sql "create trigger busy after insert on t_event begin select busy_once(); end"
  LD_PRELOAD=$busy_once ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 service order5 ||
    fail "the service failed because of SQLITE_BUSY"
  sql "drop trigger busy"
  expect consumed
  expect_again order5 "$1"
}

# The server ends the connection inside the handler. A sequence, which no rollback resets, makes this happen only once.
lose_connection() {
  sql "create sequence losses"
  case $database in
    postgresql)
      sql "create function lose() returns trigger language plpgsql as \$\$ begin
             if nextval('losses') = 1 then perform pg_terminate_backend(pg_backend_pid()); end if; return new; end \$\$"
      sql "create trigger lose before insert on t_order for each row execute function lose()"
      ;;
    mysql)
      sql "create trigger lose before insert on t_order for each row
             begin if nextval(losses) = 1 then kill connection_id(); end if; end"
      ;;
  esac
  if service order6 order6; then fail "the service did not notice that its connection was lost"; fi
  grep -q "^order6: " "$work/out" || fail "the service ended together with its connection"
  [ "$(tail -n 1 "$work/out")" = "order6: consumed" ] || fail "the service did not connect again"
}

set_up() {
  case $database in
    postgresql)
      unset PGOPTIONS
      sql "create schema ${schema}_$program"
      export PGOPTIONS="-c search_path=${schema}_$program -c client_min_messages=error"
      ;;
    mysql)
      (umask 077; printf '[client]\nhost=%s\nport=%s\nuser=%s\npassword=%s\n' "$host" "$port" "$user" "$password" >"$work/my.cnf")
      sql "create database ${schema}_$program"
      echo "database=${schema}_$program" >>"$work/my.cnf"
      ;;
  esac
}

tear_down() {
  case $database in
    postgresql) sql "drop schema ${schema}_$program cascade" ;;
    mysql) sql "drop database ${schema}_$program" ;;
  esac
}

try_service() { # PROGRAM BUSY_CLASS ARGUMENT...
  program=$1 arguments=("${@:3}")
  if [ ! -x "$folder/$program" ]; then
    echo "$program: not built, because its library is missing"
    return
  fi
  set_up

  service order1 order2 order3 order1 order2 order3 || fail "the service failed"
  expect consumed consumed consumed already_consumed already_consumed already_consumed

  if CRASH_AT=order4 service order4; then fail "the service was not killed"; fi
  [ "$(sql "select count(*) from t_order where no = 'order4'")" = 0 ] || fail "the order of the crash is half booked"
  service order4 order4 || fail "the service failed after the crash"
  expect consumed already_consumed

  local orders=5
  if [ "$database" = sqlite3 ]; then
    meet_busy "$2"
  else
    meet_a_lock
    be_a_victim
    lose_connection
    orders=7
  fi

  [ "$(sql "select count(*) from t_order")" = $orders ] || fail "there are not $orders orders"
  [ "$(sql "select count(distinct text) from t_event")" = $orders ] || fail "there are not $orders different events"
  [ "$(sql "select count(*) from t_event")" = $orders ] || fail "an event was written twice"
  [ "$(sql "select count(*) from txinbox_failed_message")" = 0 ] || fail "a transient error was counted as a failure"
  tear_down
  echo "$program: $orders orders booked once"
}

case $database in
  sqlite3)
    try_service sqlite3 lock_timeout "$work/sqlite3.db"
    try_service sqlitecpp SQLite::Exception "$work/sqlitecpp.db"
    try_service qt_sql lock_timeout "sqlite:$work/qt_sql.db"
    ;;
  postgresql)
    try_service libpq "" "host=$host port=$port user=$user dbname=$db"
    try_service libpqxx "" "host=$host port=$port user=$user dbname=$db"
    try_service qt_sql "" "postgresql://$user@$host:$port/$db"
    ;;
  mysql)
    try_service mariadb "" "$work/my.cnf"
    try_service qt_sql "" "mysql://$user@$host:$port/${schema}_qt_sql"
    ;;
esac
