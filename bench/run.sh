#!/usr/bin/env bash
# Measures what the inbox costs on SQLite, MariaDB and PostgreSQL, and writes a report with plots.
#
# Usage: bench/run.sh [OPTION]...
#   --quick          fewer rounds and smaller tables: about three minutes, and not for publishing
#   --database NAME  sqlite3, mariadb, mysql or postgresql only; may be repeated. Without it, all but MySQL
#   --only SECTION   transactions, round-trip, instructions, threads, sizes, purge, page, http, redis,
#                    kafka, rabbitmq, rocketmq, loop, growth, outbox, redeliveries, command, memory or slow-disk only;
#                    may be repeated
#   --rows LIST      the sizes of the tables in the section sizes, for example 1000,10000000,100000000. Each million
#                    rows take 0.3 GB of disk and about 10 s
#   --compare REVISION
#                    instead of a report: also builds this revision, runs both in turns, and prints the ratios of their
#                    times with their spread. Takes about 5 minutes after the builds
#   --output FOLDER  where benchmarks.md and the folder benchmarks/ go; build/bench by default
#   --help
#
# Installs missing packages of Debian 12 (as root; later runs need no root), builds in build/release, starts its own
# servers and ends them. A full run takes about 40 minutes after the build, and needs two CPUs and 10 GB of disk in
# $TMPDIR (or /tmp). Do not use the machine during this time. `bench/run.sh --output docs` makes docs/benchmarks.md.
#
# Exit status: 0 if everything was measured; 1 if something failed, which the report names; 2 for wrong arguments.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
quick='' output=$root/build/bench compare=''
databases=() sections=()

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "bench/run.sh: $* (try --help)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --quick) quick=1 ;;
    --database)
      case ${2:-} in
        sqlite3 | mariadb | mysql | postgresql) databases+=("$2") ;;
        *) wrong "unknown database '${2:-}'" ;;
      esac
      shift
      ;;
    --only)
      case ${2:-} in
        transactions | round-trip | instructions | threads | sizes | purge | page | http | redis | kafka | rabbitmq | \
          rocketmq | loop | growth | outbox | redeliveries | command | memory | slow-disk) sections+=("$2") ;;
        *) wrong "unknown section '${2:-}'" ;;
      esac
      shift
      ;;
    --rows) [[ ${2:-} =~ ^[0-9]+(,[0-9]+)*$ ]] || wrong "--rows needs numbers with commas"; export TXINBOX_BENCH_ROWS=$2; shift ;;
    --compare) [ -n "${2:-}" ] || wrong "--compare needs a revision"; compare=$2; shift ;;
    --output) [ -n "${2:-}" ] || wrong "--output needs a folder"; output=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
[ ${#databases[@]} -gt 0 ] || databases=(sqlite3 mariadb postgresql)
only=("${sections[@]}")
[ ${#sections[@]} -gt 0 ] || sections=(transactions round-trip instructions threads sizes purge page http redis kafka rabbitmq
  rocketmq loop growth outbox redeliveries command memory slow-disk)

step() { printf '== [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*" >&2; }

if [ -n "$compare" ]; then
  [ ${#only[@]} = 0 ] || wrong "--compare and --only are two runs"
  compared=$(git -C "$root" rev-parse --verify --quiet --short "$compare^{commit}") || wrong "no revision '$compare'"
fi

step "Install missing packages"
"$root/tests/install-packages.sh" bench

step "Build (release)"
build=$root/build/release
mkdir -p "$build" "$output"
cd "$root"
cmake --preset release >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
cmake --build --preset release --target txinbox-cli txinbox_bench txinbox_fsync_delay \
  txinbox_consume_by_hand_sqlite3 txinbox_consume_by_hand_mysql txinbox_consume_by_hand_postgresql \
  txinbox_bench_http txinbox_bench_page txinbox_bench_redis txinbox_bench_kafka txinbox_bench_rabbitmq txinbox_bench_rocketmq >&2

# The first two CPUs that this process may use. Without pinning, the figures can be wrong by a factor of five.
read -r TXINBOX_BENCH_CPU_0 TXINBOX_BENCH_CPU_1 < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2])')
[ -n "$TXINBOX_BENCH_CPU_1" ] || { echo "bench/run.sh: two CPUs are needed" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/raw"
export TXINBOX_BENCH_CPU_0 TXINBOX_BENCH_CPU_1
export TXINBOX_BENCH_BUILD=$build TXINBOX_BENCH_WORK=$work TXINBOX_BENCH_QUICK=$quick
export TXINBOX_BENCH_DATABASES="${databases[*]}"

# The servers get memory for their tables, as in production: a quarter of the machine's memory, at most 3 GiB.
memory=$(awk '/^MemTotal/ { kib = $2 / 4; max = 3 * 1024 * 1024; printf "%d", (kib < max ? kib : max) / 1024 }' /proc/meminfo)
servers=("$root/tests/servers.sh" --cpus "$TXINBOX_BENCH_CPU_0"
  --mariadb-option "--innodb-buffer-pool-size=${memory}M" --mariadb-option --innodb-log-file-size=1G
  --postgresql-option "shared_buffers=${memory}MB" --postgresql-option max_wal_size=8GB)
wanted=
for database in "${databases[@]}"; do
  if [ "$database" != sqlite3 ]; then servers+=("--$database") wanted=1; fi
done
# with_servers OPTION... -- COMMAND...: runs the command with the servers of the selected databases.
with_servers() {
  if [ -n "$wanted" ]; then
    "${servers[@]}" "$@"
  else
    while [ "$1" != -- ]; do shift; done
    "${@:2}"
  fi
}

if [ -n "$compare" ]; then
  step "Build $compared (release)"
  other=$root/build/compare/$compared
  mkdir -p "$other/source"
  git -C "$root" archive "$compared" | tar -x -C "$other/source"
  cmake -S "$other/source" -B "$other/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTXINBOX_BUILD_TESTS=OFF \
    -DTXINBOX_BUILD_EXAMPLES=OFF -DTXINBOX_BUILD_CLI=OFF >"$other/configure.log" 2>&1 ||
    { cat "$other/configure.log" >&2; exit 1; }
  cmake --build "$other/build" --target txinbox_bench >&2
  step "Compare"
  with_servers -- "$root/bench/compare.sh" "$other/build/bench/txinbox_bench"
  python3 -B "$root/bench/report/compare.py" "$work/rounds.jsonl" "$compared"
  exit
fi

SECONDS=0
fast=()
slow=
for section in "${sections[@]}"; do
  if [ "$section" = slow-disk ]; then slow=1; else fast+=("$section"); fi
done
status=0
with_servers -- "$root/bench/measure.sh" describe "${fast[@]}" || status=1
if [ -n "$slow" ]; then
  # In this order: the delay must apply to the servers, and to the client only on SQLite.
  export TXINBOX_FSYNC_DELAY_US=2000
  with_servers --preload "$build/bench/libtxinbox_fsync_delay.so" -- "$root/bench/measure.sh" slow-disk || status=1
fi
took=$SECONDS

step "Report"
cat "$work"/raw/*.json >"$work/results.jsonl"
touch "$work/failures"
python3 -B "$root/bench/report" --results "$work/results.jsonl" --failures "$work/failures" --output "$output" \
  --seconds "$took" ${quick:+--quick}
step "Measured in $took seconds: $output/benchmarks.md"
if [ -s "$work/failures" ] || [ $status != 0 ]; then
  sed 's/^/bench\/run.sh: failed: /' "$work/failures" >&2
  exit 1
fi
