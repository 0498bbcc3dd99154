#!/usr/bin/env bash
# Shows the page for operators on an example: some orders are parked, and you repair them with the mouse.
#
# Usage: examples/page.sh [OPTION OF txinbox serve]...
#   examples/page.sh --listen 127.0.0.1:9000
#
# Installs missing packages of Debian 12 (as root; later runs need no root), builds the command in build/example, and
# makes a new database in a temporary folder. Ctrl-C ends it and removes the database.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
examples=$root/examples
# shellcheck source=examples/build_command.sh
. "$examples/build_command.sh"
case ${1:-} in --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;; esac

build_command build

work=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-page.XXXXXX")
running=()
end() {
  if [ ${#running[@]} -gt 0 ]; then
    kill "${running[@]}" 2>/dev/null || true
    wait "${running[@]}" 2>/dev/null || true
  fi
  rm -rf "$work"
}
trap end EXIT
trap exit INT TERM
cd "$work"
cp "$examples/orders.sql" "$examples/data/orders.jsonl" .

# One product is not in the inventory yet, and a trigger refuses its orders.
sqlite3 orders.db <"$examples/orders_schema.sql"
sqlite3 orders.db "DELETE FROM t_inventory WHERE sku = 'whisk';
  CREATE TRIGGER known_sku BEFORE INSERT ON t_order
  WHEN NOT EXISTS (SELECT 1 FROM t_inventory WHERE sku = NEW.sku) BEGIN SELECT raise(ABORT, 'unknown sku'); END"
txinbox migrate --db sqlite:orders.db >/dev/null

# deliver: a broker that delivers all orders. Those that were consumed before are duplicates.
deliver() {
  txinbox consume --db sqlite:orders.db --consumer order-service --key /order/no --message-id /id \
    --bind no=/order/no --bind customer=/order/customer --sql-file orders.sql --max-attempts 1 --keep-payload \
    orders.jsonl >>consume.log 2>&1 || true
}
deliver
sqlite3 orders.db "INSERT INTO t_inventory (sku, stock) VALUES ('whisk', 100)"
while sleep 2; do deliver; done &
running+=($!)

parked=$(sqlite3 orders.db "SELECT count(*) FROM txinbox_consumed_message WHERE state = 'parked'")
echo "$parked orders of a product were parked, because the inventory did not have it. Now it does. Open the page below,"
echo "sign in with any name, choose Failed, and press Retry: the order runs at its next delivery, within two seconds."
echo
txinbox serve --db sqlite:orders.db --write "$@" &
running+=($!)
wait $!
