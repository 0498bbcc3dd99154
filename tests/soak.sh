#!/usr/bin/env bash
# Consumes for a long time on SQLite, MariaDB and PostgreSQL at the same time, in every way, with failures, lost
# connections and torn transactions. Fails if memory, connections, prepared statements or file descriptors grow, or if
# the effects are wrong (tests/soak).
#
# Usage: tests/soak.sh [OPTION]...
#   --minutes N      how long it runs; 30 by default
#   --database NAME  sqlite3, mariadb or postgresql only; may be repeated
#   --jobs N         build with N processes; by default, one for each processor
#   --help
#
# Builds in build/release, and starts its own servers (tests/servers.sh).
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
minutes=30 jobs=$(nproc)
databases=() servers=()

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "tests/soak.sh: $* (try --help)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --minutes) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--minutes needs a number"; minutes=$2; shift ;;
    --database)
      case ${2:-} in
        sqlite3 | mariadb | postgresql) databases+=("$2") ;;
        *) wrong "unknown database '${2:-}'" ;;
      esac
      shift
      ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--jobs needs a number"; jobs=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
if [ ${#databases[@]} = 0 ]; then databases=(sqlite3 mariadb postgresql); fi
cd "$root"

# This part runs inside tests/servers.sh, which sets the URLs of the servers.
if [ -n "${TXINBOX_SOAK_PROGRAM:-}" ]; then
  pids=() status=0
  for database in "${databases[@]}"; do
    name=$database url=
    case $database in
      mariadb) name=mysql url=$TXINBOX_TEST_MARIADB_URL ;;
      # Otherwise PostgreSQL would print a notice for every table that is dropped.
      postgresql) url="$TXINBOX_TEST_POSTGRESQL_URL" PGOPTIONS="-c client_min_messages=warning"; export PGOPTIONS ;;
    esac
    TXINBOX_TEST_DATABASE=$name TXINBOX_TEST_URL=$url "$TXINBOX_SOAK_PROGRAM" $((minutes * 60)) &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  exit $status
fi

build=$root/build/release
mkdir -p "$build"
cmake --preset release >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
cmake --build --preset release -j "$jobs" --target txinbox_soak >"$build/build.log" 2>&1 ||
  { cat "$build/build.log" >&2; exit 1; }

arguments=(--minutes "$minutes")
for database in "${databases[@]}"; do
  arguments+=(--database "$database")
  if [ "$database" != sqlite3 ]; then servers+=("--$database"); fi
done
export TXINBOX_SOAK_PROGRAM=$build/tests/soak/txinbox_soak
run=("$root/tests/soak.sh" "${arguments[@]}")
if [ ${#servers[@]} -gt 0 ]; then run=("$root/tests/servers.sh" "${servers[@]}" -- "${run[@]}"); fi
exec "${run[@]}"
