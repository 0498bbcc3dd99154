#!/usr/bin/env bash
# Shows that orders from a real broker take effect exactly once: some come twice, consumers and the broker are killed,
# and the sums are correct.
#
# Usage: examples/brokers/demo.sh kafka|rabbitmq
#
# Installs missing packages of Debian 12 (as root; later runs need no root), builds the command in build/example, starts
# a private broker on the loopback, and makes a new SQLite database each time.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
# shellcheck source=examples/build_command.sh
. "$root/examples/build_command.sh"
# shellcheck source=tests/private_server.sh
. "$root/tests/private_server.sh"

case ${1:-} in
  kafka | rabbitmq) broker=$1 ;;
  *)
    sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"
    case ${1:-} in --help | -h) exit 0 ;; *) exit 2 ;; esac
    ;;
esac

heading() { printf '\n== %s\n' "$*"; }
one() { sqlite3 -batch -cmd ".timeout 10000" "$work/orders.db" "$1"; }
orders=10000

heading "Install missing packages, and build the command"
build_command brokers

work=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-demo.XXXXXX")
script=$root/tests/brokers/$broker.sh
consumers=()
finish() {
  trap - EXIT
  for pid in "${consumers[@]}"; do kill -KILL "$pid" 2>/dev/null || true; done
  "$script" kill "$work/broker" || true
  rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

heading "Start $broker on the loopback"
"$script" install
take_ports
address=$("$script" start "$work/broker" "$port")
echo "$broker answers on $address"
case $broker in
  kafka)
    for topic in orders orders.dead; do
      until kcat -b "$address" -L -t $topic -X allow.auto.create.topics=true 2>/dev/null | grep -q "topic \"$topic\" with 4"; do
        sleep 0.2
      done
    done
    from="kafka://$address/orders?group=order-service&session.timeout.ms=6000"
    send() { kcat -b "$address" -P -t orders; }
    ;;
  rabbitmq)
    for queue in orders orders.dead; do
      amqp-declare-queue --url "amqp://guest:guest@$address" --durable --queue $queue >/dev/null
    done
    from="amqp://guest@$address/%2F/orders"
    export TXINBOX_RABBITMQ_PASSWORD=guest  # of this private broker
    send() { amqp-publish --url "amqp://guest:guest@$address" --routing-key orders --persistent --line-buffered; }
    ;;
esac

heading "Send $orders orders. Every third one is sent twice, and two messages cannot be read"
awk -v n=$orders 'BEGIN {
  for (i = 1; i <= n; i++) {
    line = sprintf("{\"no\":\"o%d\",\"sku\":\"s%d\",\"quantity\":%d}", i, i % 7, 1 + i % 5)
    print line
    if (i % 3 == 0) print line
  }
  print "this is no JSON"
  print "{\"sku\":\"s1\",\"quantity\":1}"
}' | send
expected=$(awk -v n=$orders 'BEGIN { for (i = 1; i <= n; i++) sum += 1 + i % 5; print sum }')

sqlite3 "$work/orders.db" "create table t_order (no text not null, sku text not null, quantity integer not null)"
export TXINBOX_DB=sqlite:$work/orders.db
txinbox migrate >/dev/null

consume=(txinbox consume --from "$from" --dead-letters orders.dead --consumer order-service --key /no --batch 20
  --sql 'insert into t_order values (:no, :sku, :quantity)')
printf '\n$'
printf ' %q' "${consume[@]}"
printf '\n'

start_consumer() {
  "${consume[@]}" >>"$work/out" 2>>"$work/err" &
  consumers+=($!)
}
# The number of orders decides when something is killed, not the time.
wait_for() {
  while [ "$(one 'select count(*) from t_order')" -lt "$1" ]; do sleep 0.05; done
}

heading "Two consumers; one is killed with SIGKILL again and again, and the broker once"
start_consumer
start_consumer
for target in 1000 2000 3000 4000 5000; do
  wait_for $target
  victim=${consumers[0]}
  consumers=("${consumers[@]:1}")
  kill -KILL "$victim"
  { wait "$victim"; } 2>/dev/null || true
  echo "at $(one 'select count(*) from t_order') orders: consumer $victim is killed, and another one starts"
  start_consumer
done
wait_for 6000
"$script" kill "$work/broker"
echo "at $(one 'select count(*) from t_order') orders: the broker is killed"
"$script" start "$work/broker" "$port" >/dev/null
echo "the broker has started again; the consumers connect to it by themselves"
wait_for $orders
for pid in "${consumers[@]}"; do kill -TERM "$pid"; done
for pid in "${consumers[@]}"; do { wait "$pid"; } 2>/dev/null || true; done
consumers=()

heading "What is left at the broker"
status=0
"${consume[@]}" --idle-exit 8s || status=$?
[ $status -le 1 ] || { echo "demo.sh: the command ended with $status" >&2; exit 1; }

heading "The sums"
sqlite3 -column -header "$work/orders.db" \
  "select count(*) as orders, count(distinct no) as keys, sum(quantity) as items from t_order"
echo "sent: $orders orders with $expected items"
[ "$(one 'select count(*) || " " || count(distinct no) || " " || sum(quantity) from t_order')" = "$orders $orders $expected" ] ||
  { echo "demo.sh: the sums differ" >&2; exit 1; }
echo
echo "Each order took effect once."
