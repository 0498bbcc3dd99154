#!/usr/bin/env bash
# Without its binary log, MariaDB shows a commit before it has written InnoDB's log, so a crash can still remove the
# row. This test checks that txinbox does not report a duplicate or a lease's completion because of such a row.
#
# Usage: tests/late_log.sh BUILD_FOLDER     (from storm.sh, on a server with late_log.cpp loaded)
set -euo pipefail

txinbox=$1/tools/cli/txinbox late_lease=$1/tests/txinbox_late_lease
fail() { echo "late_log.sh: $*" >&2; exit 1; }
part() { sed -n 's|^[a-z]*://txinbox:\([^@]*\)@127.0.0.1:\([0-9]*\)/.*$|\'"$1"'|p' <<<"$TXINBOX_DB"; }
# A query gets no answer if it waits for a lock that is not released while the log is held.
ask() { MYSQL_PWD=$(part 1) timeout 10 mariadb --no-defaults -h 127.0.0.1 -P "$(part 2)" -u txinbox -N -e "$1" mysql; }
rows() { ask "select count(*) from txinbox_consumed_message where consumer = 'late-log' and business_key = '$key'$*"; }

# deliver ARGUMENT...: replaces this process by the command, so that it can be killed.
deliver() { exec "$txinbox" consume --consumer late-log --key /no --json --sql 'select 1' "$@" <<<"{\"no\":\"$key\"}"; }

# The server's own threads can disturb the test. They write pages and statistics of the tables, and keep locks on them
# while they wait for the log.
write_pages() {
  ask "set global innodb_stats_persistent = 0, global innodb_max_dirty_pages_pct = 0"
  for ((i = 0; i < 50; i++)); do
    if [ "$(ask "select variable_value from information_schema.global_status where \
      variable_name = 'innodb_buffer_pool_pages_dirty'")" = 0 ]; then break; fi
    sleep 0.1
  done
  ask "set global innodb_max_dirty_pages_pct = 90"
}

# is_seen CONDITION: whether the key's row meets the condition within ten seconds.
is_seen() {
  local i found
  for ((i = 0; i < 100; i++)); do
    found=$(rows "$1") || return 1
    if [ "$found" = 1 ]; then return; fi
    sleep 0.1
  done
  return 1
}

# Whether the key's first delivery was seen to commit while the log was held.
holds_commit() {
  key=held-$1
  write_pages
  : >"$hold"
  deliver >/dev/null 2>&1 &
  first=$!
  if is_seen ""; then kill -0 $first; return; fi
  rm "$hold"
  wait $first
  return 1
}

# Whether the lease's completion was seen while the log was held.
holds_completion() {
  key=lease-$1
  write_pages
  "$late_lease" "$key" "$hold" >"$answer" 2>/dev/null &
  first=$!
  if is_seen " and state = 'consumed'"; then [ -e "$hold" ]; return; fi
  rm -f "$hold"
  wait $first
  return 1
}

# reach CASE NAME: tries up to ten times to hold the log of the current server at the right moment.
reach() {
  local try
  hold=$TXINBOX_HOLD_LOG.$(cat "$(ask 'select @@pid_file')")
  for ((try = 0; try < 10; try++)); do
    if "$1" "$2-$try"; then return; fi
  done
  fail "no row was visible before it was on the disk: $1 was not reached"
}

"$txinbox" migrate >/dev/null
answer=$(mktemp) hold=
trap 'rm -f "$hold" "$answer"' EXIT
for batch in 1 100; do
  reach holds_commit "$batch"
  deliver --batch "$batch" >"$answer" 2>/dev/null &
  second=$!
  sleep 1  # there must be no answer yet
  kill -KILL $first $second 2>/dev/null || true
  wait $first $second 2>/dev/null || true
  "$TXINBOX_TEST_MARIADB_RESTART"
  rm "$hold"
  if grep -q '"outcome":"already_consumed"' "$answer" && [ "$(rows)" = 0 ]; then
    fail "a delivery got already_consumed, and the row is lost"
  fi
done

# The completion's reply is lost. The next try finds a row that is not on the disk yet.
reach holds_completion once
for id in $(ask "select id from information_schema.processlist where user = 'txinbox' and id <> connection_id()"); do
  ask "kill connection $id" || true  # it may have ended
done
sleep 1  # there must be no answer yet
{ kill -KILL $first && wait $first; } 2>/dev/null || true
"$TXINBOX_TEST_MARIADB_RESTART"
rm "$hold"
if grep -qx consumed "$answer" && [ "$(rows " and state = 'consumed'")" = 0 ]; then
  fail "a lease was reported as completed, and its row is not"
fi
ask "delete from txinbox_consumed_message where consumer = 'late-log'"
