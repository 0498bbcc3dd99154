#!/usr/bin/env bash
# Runs the conformance tests under Valgrind's memcheck on SQLite, MariaDB and PostgreSQL, and the logic tests on SQLite.
# Fails if Valgrind finds an error or a definite leak.
#
# Usage: tests/valgrind.sh [OPTION]...
#   --database NAME  sqlite3, mariadb or postgresql only; may be repeated
#   --test FILTER    only the test cases with such a name, for example "*rolled-back*"
#   --jobs N         build with N processes, and run N processes of tests; by default, one for each processor
#   --help
#
# Builds in build/dev, and starts its own servers (tests/servers.sh). Each folder of tests/conformance and of
# tests/logic is a process of its own, because Valgrind runs only one thread of a process at a time. tests/valgrind.supp
# lists the errors of other libraries, which are ignored. A child of fork() is not searched for leaks. All test cases run
# except one, which moves 24 MiB through hexadecimal text: under Valgrind this takes longer than the test waits.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
jobs=$(nproc) filter="*"
databases=() servers=()

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "tests/valgrind.sh: $* (try --help)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --database)
      case ${2:-} in
        sqlite3 | mariadb | postgresql) databases+=("$2") ;;
        *) wrong "unknown database '${2:-}'" ;;
      esac
      shift
      ;;
    --test) [ -n "${2:-}" ] || wrong "--test needs a name"; filter=$2; shift ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--jobs needs a number"; jobs=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
if [ ${#databases[@]} = 0 ]; then databases=(sqlite3 mariadb postgresql); fi
build=$root/build/dev

# Runs the tests of one folder of a program on one database, whose server runs. Prints all of the output if they fail.
check() {
  local name=$1 program=$2 module=$3 url= log status=0
  case $name in
    mariadb) name=mysql url=$TXINBOX_TEST_MARIADB_URL ;;
    postgresql) url=$TXINBOX_TEST_POSTGRESQL_URL ;;
  esac
  log=$(mktemp)
  TXINBOX_TEST_DATABASE=$name TXINBOX_TEST_URL=$url \
    valgrind --quiet --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite \
    --error-exitcode=9 --num-callers=40 --suppressions="$root/tests/valgrind.supp" \
    "$build/tests/txinbox_$program" --source-file="*/$program/$module/*" --test-case="$filter" \
    --test-case-exclude="*bounded number of bytes*" >"$log" 2>&1 || status=$?
  if [ $status != 0 ]; then
    echo "tests/valgrind.sh: $program/$module on $1 failed" >&2
    cat "$log" >&2
  fi
  grep '^\[doctest\] test cases:' "$log" || true
  rm -f "$log"
  return $status
}

# This part runs inside tests/servers.sh, which sets the URLs.
if [ -n "${TXINBOX_VALGRIND_CHECKS:-}" ]; then
  cd "$build"
  export root build filter
  export -f check
  modules=(consume) # the one that takes longest is the first
  for folder in "$root"/tests/conformance/*/; do
    module=$(basename "$folder")
    if [ "$module" != consume ]; then modules+=("$module"); fi
  done
  {
    for module in "${modules[@]}"; do
      for database in "${databases[@]}"; do printf '%s conformance %s\n' "$database" "$module"; done
    done
    if [[ " ${databases[*]} " == *" sqlite3 "* ]]; then
      for folder in "$root"/tests/logic/*/; do printf 'sqlite3 logic %s\n' "$(basename "$folder")"; done
    fi
  } | xargs -L 1 -P "$jobs" bash -c 'check "$@"' check
  exit
fi

cd "$root"
mkdir -p "$build"
cmake --preset dev >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
cmake --build --preset dev -j "$jobs" --target txinbox_conformance txinbox_logic >"$build/build.log" 2>&1 ||
  { cat "$build/build.log" >&2; exit 1; }

arguments=(--test "$filter" --jobs "$jobs")
for database in "${databases[@]}"; do
  arguments+=(--database "$database")
  if [ "$database" != sqlite3 ]; then servers+=("--$database"); fi
done
export TXINBOX_VALGRIND_CHECKS=1
run=("$root/tests/valgrind.sh" "${arguments[@]}")
if [ ${#servers[@]} -gt 0 ]; then run=("$root/tests/servers.sh" "${servers[@]}" -- "${run[@]}"); fi
exec "${run[@]}"
