#!/usr/bin/env bash
# Shows that messages change a SQLite database exactly once, although some of them are delivered two or three times.
# First it consumes generated orders, then transfers while it kills the command repeatedly, then a week of real
# earthquakes.
#
# Usage: examples/run.sh
#
# Installs missing packages of Debian 12 (as root; later runs need no root), builds the command in build/example, and
# makes a new database each time.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
examples=$root/examples
# shellcheck source=examples/build_command.sh
. "$examples/build_command.sh"

if [ $# -gt 0 ]; then
  sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
  case $1 in --help | -h) exit 0 ;; *) exit 2 ;; esac
fi

heading() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
if [ ! -t 1 ]; then heading() { printf '\n== %s\n' "$*"; }; fi
show() { printf '\n$ %s\n' "$1"; }
fail() { printf 'examples/run.sh: %s\n' "$*" >&2; exit 1; }

# query DATABASE SQL: prints a table.
query() {
  show "sqlite3 ${1##*/} \"$2\""
  sqlite3 -column -header "$1" "$2"
}
# one DATABASE SQL: prints a single value.
one() { sqlite3 -batch -cmd ".timeout 10000" "$1" "$2"; }
# For so few messages, the rate has no meaning.
without_rate() { sed 's/  ([0-9,]* messages.s)//'; }

heading "Install missing packages, and build the command"
build_command build

work=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-example.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"
cp "$examples"/*.sql "$examples"/data/*.jsonl .

heading "Orders: 30 of them, in 50 deliveries"
echo "The business tables, and those of txinbox:"
show "sqlite3 orders.db < orders_schema.sql"
sqlite3 orders.db <orders_schema.sql
show "txinbox migrate --db sqlite:orders.db"
txinbox migrate --db sqlite:orders.db
echo
echo "The SQL that each order runs:"
grep -v '^--' orders.sql | sed 's/^/    /'
echo "A message that arrives three times:"
busiest=$(sed 's/.*"no":"\([^"]*\)".*/\1/' orders.jsonl | sort | uniq -c | sort -k1,1nr -k2 | awk 'NR == 1 { print $2 }')
grep -n "\"$busiest\"" orders.jsonl | sed 's/^\([0-9]*\):/    line \1: /'

consume_orders() {
  txinbox consume --db sqlite:orders.db --consumer order-service --key /order/no --message-id /id \
    --bind no=/order/no --bind customer=/order/customer --sql-file orders.sql orders.jsonl
}
show "txinbox consume --db sqlite:orders.db --consumer order-service --key /order/no --message-id /id \\
    --bind no=/order/no --bind customer=/order/customer --sql-file orders.sql orders.jsonl"
consume_orders | without_rate

# Compares with the stream: every order once, and the stock reduced once by each order.
check_orders() {
  local wrong
  wrong=$(sqlite3 -batch orders.db <<'SQL'
CREATE TEMP TABLE stream (line TEXT NOT NULL);
.mode ascii
.separator "\037" "\n"
.import --schema temp orders.jsonl stream
CREATE TEMP VIEW expected AS
SELECT DISTINCT json_extract(line, '$.order.no') AS order_no, json_extract(line, '$.order.customer') AS customer,
                json_extract(line, '$.sku') AS sku, json_extract(line, '$.quantity') AS quantity
FROM stream;
.mode list
SELECT (SELECT count(*) FROM (SELECT * FROM expected EXCEPT SELECT * FROM t_order)) +
       abs((SELECT count(*) FROM expected) - (SELECT count(*) FROM t_order)) +
       (SELECT count(*) FROM t_inventory i
        WHERE stock <> 100 - (SELECT coalesce(sum(quantity), 0) FROM expected e WHERE e.sku = i.sku));
SQL
  )
  [ "$wrong" = 0 ] || fail "$wrong differences between the orders in the stream and the tables"
}
query orders.db "SELECT count(*) AS orders, count(DISTINCT order_no) AS distinct_orders, sum(quantity) AS items FROM t_order"
query orders.db "SELECT i.sku, 100 - stock AS taken, sum(quantity) AS ordered FROM t_inventory i JOIN t_order o USING (sku) GROUP BY i.sku"
check_orders
echo
echo "Each order took effect once: 30 rows for 50 deliveries, and the stock agrees."

heading "The same stream again: all duplicates"
before=$(one orders.db "SELECT group_concat(sku || stock) FROM t_inventory")
show "txinbox consume ... orders.jsonl"
consume_orders | without_rate
[ "$(one orders.db "SELECT group_concat(sku || stock) FROM t_inventory")" = "$before" ] || fail "a duplicate changed the stock"
check_orders
show "txinbox show --db sqlite:orders.db --consumer order-service $busiest"
txinbox show --db sqlite:orders.db --consumer order-service "$busiest"

heading "Killed repeatedly: 30,000 transfers between 100 accounts, in 40,000 deliveries"
# Every third transfer comes again later. The stream is the same each time, because the generator has a fixed seed.
awk 'function next_of(n) { seed = (seed * 16807) % 2147483647; return seed % n }
  function line(no) {
    printf "{\"no\":\"t%d\",\"from\":%d,\"to\":%d,\"amount\":%d}\n", no, from[no], to[no], amount[no]
  }
  BEGIN {
    seed = 42
    for (no = 1; no <= 30000; no++) {
      from[no] = 1 + next_of(100); to[no] = 1 + next_of(100); amount[no] = 1 + next_of(500)
      line(no)
      if (no % 3 == 0) line(1 + next_of(no))
    }
  }' >transfers.jsonl
sqlite3 accounts.db <accounts_schema.sql
txinbox migrate --db sqlite:accounts.db >migrated.txt
echo "What each transfer does:"
grep -v '^--' accounts.sql | sed 's/^/    /'
show "txinbox consume --db sqlite:accounts.db --consumer bank --key /no --sql-file accounts.sql transfers.jsonl"
transfers=(txinbox consume --db sqlite:accounts.db --consumer bank --key /no --sql-file accounts.sql transfers.jsonl)
kills=0
for target in 5000 10000 15000 20000 25000; do
  "${transfers[@]}" >consume.txt 2>consume.err &
  consumer=$!
  # The number of transfers that are done decides when it is killed, not the time.
  while kill -0 $consumer 2>/dev/null &&
    [ "$(one accounts.db "SELECT count(*) FROM txinbox_consumed_message" 2>/dev/null || echo 0)" -lt $target ]; do :; done
  kill -KILL $consumer 2>/dev/null || true
  status=0
  wait $consumer 2>/dev/null || status=$?
  case $status in
    137) kills=$((kills + 1)) ;;
    0) break ;; # this machine is too fast for the rest
    *) cat consume.err >&2; fail "the command ended with status $status" ;;
  esac
  done_now=$(one accounts.db "SELECT count(*) FROM t_transfer")
  inbox_now=$(one accounts.db "SELECT count(*) FROM txinbox_consumed_message")
  money_now=$(one accounts.db "SELECT sum(balance) FROM t_account")
  echo "kill -9: $done_now transfers are done, the inbox has $inbox_now, the sum of the accounts is $money_now"
  [ "$done_now $money_now" = "$inbox_now 100000000" ] || fail "a kill has torn a transfer from its key, or money is lost"
done
echo "Again on the whole file, to its end:"
"${transfers[@]}" | without_rate
# Compares with the stream: each transfer once, and the balances that awk computes.
awk -F '[:,}"]+' '!seen[$3]++ { balance[$5] -= $9; balance[$7] += $9 }
  END { for (id = 1; id <= 100; id++) print id "|" 1000000 + balance[id] }' transfers.jsonl >expected.txt
one accounts.db "SELECT id, balance FROM t_account ORDER BY id" >balances.txt
cmp -s expected.txt balances.txt || fail "balances differ from those of the stream"
query accounts.db "SELECT count(*) AS transfers, (SELECT sum(balance) FROM t_account) AS money FROM t_transfer"
echo
echo "Killed $kills times with SIGKILL, and all 100 balances are correct, as if each transfer had come once."

heading "Real data: a week of earthquakes, from a poller that sees most of them four times"
# Every six hours, the poller gets the events of the past day. So each event comes several times.
sqlite3 -batch feed.db <<'SQL' >quakes.jsonl
CREATE TABLE feed (line TEXT NOT NULL);
.mode ascii
.separator "\037" "\n"
.import usgs-week.jsonl feed
CREATE TABLE quake AS
SELECT line,
       json_extract(line, '$.id') AS id,
       json_extract(line, '$.properties.time') AS time,
       json_extract(line, '$.properties.net') AS network,
       date(json_extract(line, '$.properties.time') / 1000, 'unixepoch') AS day,
       json_extract(line, '$.properties.mag') AS magnitude
FROM feed;
.mode list
WITH RECURSIVE poll(at) AS (
  SELECT min(time) + 6 * 3600000 FROM quake
  UNION ALL
  SELECT at + 6 * 3600000 FROM poll WHERE at < (SELECT max(time) FROM quake)
)
SELECT line FROM poll JOIN quake ON time > at - 24 * 3600000 AND time <= at ORDER BY at, time;
SQL
echo "$(wc -l <quakes.jsonl) deliveries of $(one feed.db "SELECT count(DISTINCT id) FROM quake") earthquakes (USGS, public domain)."

sqlite3 quakes.db <quakes_schema.sql
txinbox migrate --db sqlite:quakes.db
show "txinbox consume --db sqlite:quakes.db --consumer quake-counter --key /id --bind net=/properties/net \\
    --bind time=/properties/time --bind mag=/properties/mag --sql-file quakes.sql quakes.jsonl"
txinbox consume --db sqlite:quakes.db --consumer quake-counter --key /id --bind net=/properties/net \
  --bind time=/properties/time --bind mag=/properties/mag --sql-file quakes.sql quakes.jsonl | without_rate
query quakes.db "SELECT network, sum(quakes) AS quakes, max(strongest) AS strongest FROM t_quake_day GROUP BY network ORDER BY 2 DESC LIMIT 5"

# Compares in both directions, to find missing and additional rows.
differences=$(sqlite3 -batch quakes.db <<'SQL'
ATTACH 'feed.db' AS feed;
CREATE TEMP VIEW counted AS
SELECT network, day, count(*) AS quakes, max(magnitude) AS strongest FROM feed.quake GROUP BY network, day;
SELECT (SELECT count(*) FROM (SELECT * FROM counted EXCEPT SELECT * FROM t_quake_day)) +
       (SELECT count(*) FROM (SELECT * FROM t_quake_day EXCEPT SELECT * FROM counted));
SQL
)
days=$(one quakes.db "SELECT count(*) FROM t_quake_day")
[ "$differences" = 0 ] || fail "$differences rows differ from a direct count"
echo
echo "All $days rows by network and day equal a direct count of the $(one feed.db "SELECT count(*) FROM quake") earthquakes."

heading "What to try next"
cat <<NEXT
- The command itself, on these files or yours:
    PATH=$command_folder:\$PATH; cd $examples
    txinbox --help
    sqlite3 /tmp/orders.db < orders_schema.sql && txinbox migrate --db sqlite:/tmp/orders.db
- The same on MariaDB, MySQL or PostgreSQL: TXINBOX_DB=postgresql://user:password@host/db
- What makes a database unsafe or slow: txinbox doctor --db sqlite:/tmp/orders.db
- The same in C++: examples/order_service.cpp
- Every test, on SQLite, MariaDB and PostgreSQL: tests/run.sh
NEXT
