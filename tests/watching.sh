#!/usr/bin/env bash
# Tests ops/alerts.yml with promtool, and runs each expression of the alerts and of ops/grafana.json on a private
# Prometheus that scrapes a service whose metrics all move.
#
# Usage: tests/watching.sh BUILD_FOLDER [PICTURE]
#   PICTURE  an SVG file: the dashboard's data, such as docs/operations/dashboard.svg
#
# prometheus and gnuplot-nox must be installed: tests/install-packages.sh watching.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
picture=${2:-}
seconds=45  # the longest window of an expression that needs two scrapes is 15 s, and the purge begins within 10 s

promtool check rules "$root/ops/alerts.yml"
promtool test rules "$root/ops/alerts_test.yml"

echo "count: $(grep -c -- '- alert: ' "$root/ops/alerts.yml") alerts with series for which they fire"
# Each alert has a test.
for alert in $(sed -n 's/^ *- alert: //p' "$root/ops/alerts.yml"); do
  if ! grep -A2 "alertname: $alert$" "$root/ops/alerts_test.yml" | grep -q exp_labels; then
    echo "tests/watching.sh: ops/alerts_test.yml has no series for which $alert fires" >&2
    exit 1
  fi
done

# shellcheck source=tests/private_server.sh
. "$root/tests/private_server.sh"
prepare watching
kill_servers_at_exit
take_ports
cat >"$folder/prometheus.yml" <<CONFIG
global: {scrape_interval: 1s, evaluation_interval: 5s}
rule_files: [$root/ops/alerts.yml]
scrape_configs:
  - job_name: service
    static_configs: [{targets: ["127.0.0.1:$port"]}]
CONFIG
mkfifo "$folder/input"
"$build/tests/txinbox_watched_service" "sqlite:$folder/service.db" "$port" <"$folder/input" &
pids+=($!)
exec 3>"$folder/input"
prometheus --config.file="$folder/prometheus.yml" --storage.tsdb.path="$folder/data" \
  --web.listen-address="127.0.0.1:$((port + 1))" --log.level=warn >"$folder/prometheus.log" 2>&1 &
pids+=($!)
for ((i = 0; i < seconds; i++)); do
  for pid in "${pids[@]}"; do
    if ! kill -0 "$pid" 2>/dev/null; then
      cat "$folder/prometheus.log" >&2
      echo "tests/watching.sh: the service or Prometheus has ended" >&2
      exit 1
    fi
  done
  sleep 1
done
"$root/tests/watching/dashboard.py" "http://127.0.0.1:$((port + 1))" "$seconds" ${picture:+"$picture"}
