#!/usr/bin/env bash
# A duplicate must not be answered on the word of a row that a crash can still take away: without its binary
# log, MariaDB shows a commit before it has written InnoDB's log.
#
# Usage: tests/late_log.sh BUILD_FOLDER     (from storm.sh, on a server with late_log.cpp loaded)
set -euo pipefail

txinbox=$1/src/cli/txinbox
fail() { echo "late_log.sh: $*" >&2; exit 1; }
part() { sed -n 's|^[a-z]*://txinbox:\([^@]*\)@127.0.0.1:\([0-9]*\)/.*$|\'"$1"'|p' <<<"$TXINBOX_DB"; }
ask() { MYSQL_PWD=$(part 1) mariadb --no-defaults -h 127.0.0.1 -P "$(part 2)" -u txinbox -N -e "$1" mysql; }
rows() { ask "select count(*) from txinbox_consumed_message where consumer = 'late-log' and business_key = '$key'"; }

# deliver ARGUMENT...: becomes the command, so that it can be killed.
deliver() { exec "$txinbox" consume --consumer late-log --key /no --json --sql 'select 1' "$@" <<<"{\"no\":\"$key\"}"; }

# Whether the key's first delivery was seen to commit while the log was held. The server's own threads can get in its
# way: they write pages, and wait for the log with the page in hand.
holds_commit() {
  key=held-$1
  ask "set global innodb_max_dirty_pages_pct = 0"
  for ((i = 0; i < 50; i++)); do
    if [ "$(ask "select variable_value from information_schema.global_status where \
      variable_name = 'innodb_buffer_pool_pages_dirty'")" = 0 ]; then break; fi
    sleep 0.1
  done
  ask "set global innodb_max_dirty_pages_pct = 90"
  : >"$hold"
  deliver >/dev/null 2>&1 &
  first=$!
  for ((i = 0; i < 30; i++)); do
    if [ "$(rows)" = 1 ]; then kill -0 $first; return; fi
    sleep 0.1
  done
  rm "$hold"
  wait $first
  return 1
}

"$txinbox" migrate >/dev/null
answer=$(mktemp)
hold=$TXINBOX_HOLD_LOG.$(cat "$(ask 'select @@pid_file')")
trap 'rm -f "$hold" "$answer"' EXIT
for batch in 1 100; do
  hold=$TXINBOX_HOLD_LOG.$(cat "$(ask 'select @@pid_file')")
  held=
  for ((try = 0; try < 10; try++)); do
    if holds_commit "$batch-$try"; then held=1; break; fi
  done
  [ -n "$held" ] || fail "no row was seen before it was on the disk: the case was not reached"
  deliver --batch "$batch" >"$answer" 2>/dev/null &
  second=$!
  sleep 1  # for an answer that ought not to come yet
  kill -KILL $first $second 2>/dev/null || true
  wait $first $second 2>/dev/null || true
  "$TXINBOX_TEST_MARIADB_RESTART"
  rm "$hold"
  if grep -q '"outcome":"already_consumed"' "$answer" && [ "$(rows)" = 0 ]; then
    fail "a delivery was told already_consumed, and the row is gone"
  fi
done
ask "delete from txinbox_consumed_message where consumer = 'late-log'"
