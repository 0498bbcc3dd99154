#!/usr/bin/env bash
# Builds the component opentelemetry with OpenTelemetry C++ of Debian 13, which Debian 12 does not have. Runs its tests,
# and follows 1,000 orders through the services of examples/chain, on a private Kafka broker.
#
# Usage: tests/tracing.sh [--cost | --mutations]
#   --cost       measures instead what the spans cost. Nothing else should run on the machine
#   --mutations  tries instead the mutations of the component
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
otel=$("$root/tests/get_newer.sh" opentelemetry)
modules=("$otel"/root/usr/lib/*/pkgconfig)
export PKG_CONFIG_PATH=${modules[0]}${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}

# build PRESET TARGET...
build() {
  cd "$root"
  build=$root/build/tracing-$1
  mkdir -p "$build"
  # RocketMQ's client needs the Abseil of this system. What the newer libraries need is there when the programs run.
  cmake --preset "$1" -B "$build" -DTXINBOX_WITH_OPENTELEMETRY=ON -DTXINBOX_WITH_KAFKA=ON -DTXINBOX_WITH_ROCKETMQ=OFF \
    -DTXINBOX_BUILD_BENCHMARKS=OFF -DCMAKE_EXE_LINKER_FLAGS=-Wl,--allow-shlib-undefined >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
  cmake --build "$build" --target "${@:2}"
}

if [ "${1:-}" = --cost ]; then
  build release txinbox_tracing_cost
  exec "$otel/run" "$build/tests/component_opentelemetry/txinbox_tracing_cost"
fi
if [ "${1:-}" = --mutations ]; then
  TXINBOX_RUN_WITH_OPENTELEMETRY=$otel/run exec "$root/tests/mutations.py" --only opentelemetry
fi
build dev txinbox_opentelemetry_unit_tests txinbox_traced_orders txinbox_chain_orders txinbox_chain_stock txinbox-cli
tests=$build/tests/component_opentelemetry
"$otel/run" "$tests/txinbox_opentelemetry_unit_tests"
"$root/tests/brokers.sh" kafka "$root/tests/tracing/chain.py" "$build" "$otel/run"
