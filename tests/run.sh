#!/usr/bin/env bash
# Runs every test on SQLite, MariaDB, PostgreSQL and MySQL. It starts private servers.
#
# Usage: tests/run.sh [OPTION]...
#   --database NAME  sqlite3, mariadb, postgresql or mysql only; may be repeated
#   --galera         instead of these, on a private Galera cluster of three nodes: the tests of MariaDB on one
#                    node, then those of the cluster, which kill and separate nodes
#   --failover       instead of these, or with --galera: primaries that are killed and replaced by their replicas,
#                    and PgBouncer
#   --brokers        instead of these: the components for brokers, each on a private broker, with 200 kills. They
#                    run on SQLite. The tests that kill also run on MariaDB and PostgreSQL, and kill these servers
#   --test FILTER    only the test cases with such a name, for example "*rolled-back*"
#   --quick          only the tests with the label "quick", which take less than three minutes and need no server;
#                    with --database: the conformance tests and those of the command, on that database
#   --asan           with AddressSanitizer and UndefinedBehaviorSanitizer
#   --tsan           with ThreadSanitizer
#   --clang          built with clang
#   --no-lint        without clang-format, clang-tidy and Doxygen
#   --long           all tests, including those that take long: every fault after a handler's misbehaviour, storms
#                    of ten minutes instead of half a minute, more fuzzing, the sanitizers on every database, and
#                    servers that wait for the disk (otherwise only the storm's servers do)
#   --jobs N         build with N processes; by default, one for each processor
#   --help
#
# Installs missing packages of Debian 12 (as root; later runs need no root), builds in build/<preset>, starts the
# servers and ends them. A run without --database and --test also runs a storm on each database (tests/storm.sh).
# Without a sanitizer and --clang, it also checks the format (clang-format), makes the pages of the API
# (tests/api_docs.sh) and lints (clang-tidy). Every run tries the inputs that fuzzing has found. --long tries more
# inputs (tests/fuzz.sh), in a separate build.
#
# Debian 12 has no MySQL server. The first run gets it from Debian unstable, and keeps it in a cache folder
# (tests/get_mysql.sh). If TXINBOX_TEST_MYSQL_URL names a MySQL server (mysql://user:password@host:port/mysql; a user
# who may do everything), the tests run there instead.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
preset=dev lint=1 long= quick= galera= failover= brokers= jobs=$(nproc) filter=
databases=()

# The additional steps with --long. Each starts the servers that it needs.
long_steps=(
  "tests/fuzz.sh --seconds 60"
  "tests/valgrind.sh"
  "tests/soak.sh --minutes 1"
  "tests/run.sh --galera --failover"
  "tests/run.sh --brokers"
  "tests/run.sh --asan"
  "tests/run.sh --tsan"
)

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "tests/run.sh: $* (try --help)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --database)
      case ${2:-} in
        sqlite3 | mariadb | postgresql | mysql) ;;
        *) wrong "unknown database '${2:-}'" ;;
      esac
      databases+=("$2")
      lint=
      shift
      ;;
    --galera) galera=1 lint= ;;
    --failover) failover=1 lint= ;;
    --brokers) brokers=1 lint= ;;
    --test) [ -n "${2:-}" ] || wrong "--test needs a name"; filter=$2 lint=; shift ;;
    --asan | --tsan | --clang)
      [ $preset = dev ] || wrong "one of --asan, --tsan and --clang"
      preset=${1#--} lint=
      ;;
    --quick) quick=1 lint= ;;
    --no-lint) lint= ;;
    --long) long=1 ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--jobs needs a number"; jobs=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
special=$galera$failover$brokers
[ -z "$special" ] || [ ${#databases[@]} = 0 ] || wrong "--galera, --failover and --brokers exclude --database"
[ -z "$special" ] || [ -z "$quick" ] || wrong "--galera, --failover and --brokers exclude --quick"

# `everything`: no option limits the run. `all`: in addition, there is no sanitizer and no --clang.
everything= all=
if [ -z "$filter$special$quick" ] && [ ${#databases[@]} = 0 ]; then everything=1; fi
if [ -n "$everything" ] && [ $preset = dev ]; then all=1; fi
if [ -n "$long" ]; then
  [ -n "$all" ] || wrong "--long works only for a run of all tests"
  export TXINBOX_TEST_LONG=1
fi

step() { printf '\n== [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

step "Install missing packages"
"$root/tests/install-packages.sh" "$([ -n "$galera$failover" ] && echo cluster || echo test)"

cd "$root"
build=$root/build/$preset
mkdir -p "$build"
[ -w "$build" ] || { echo "tests/run.sh: $build belongs to another user: remove it" >&2; exit 1; }
if [ -n "$lint" ]; then
  step "Check the format"
  find include src tools components tests examples bench -name '*.[ch]pp' -print0 | xargs -0 clang-format-14 --dry-run -Werror
  step "Make the pages of the API"
  "$root/tests/api_docs.sh" "$build"
fi

step "Build ($preset)"
cmake --preset "$preset" >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
targets=()
if [ -n "$quick" ]; then
  targets=(--target txinbox_unit_tests txinbox_conformance)
  # With ThreadSanitizer: the command consumes on threads of the library. The other tests cover these.
  [ $preset = tsan ] || targets+=(txinbox_cli_tests)
fi
cmake --build --preset $preset -j "$jobs" "${targets[@]}"

# The tests for ctest, by label. A test runs if it has one of `labels`, none of `excluded` and, with --quick, a label
# that matches `kinds`.
labels=()
excluded=(failover package)
[ "$quick$preset" != 1tsan ] || excluded+=(cli)
kinds=
servers=()
if [ -n "$special" ]; then
  labels+=(${galera:+galera} ${failover:+failover} ${brokers:+brokers})
  excluded=()
  if [ -n "$brokers" ]; then
    export TXINBOX_BROKER_KILLS=${TXINBOX_BROKER_KILLS:-200} TXINBOX_BROKER_MESSAGES=${TXINBOX_BROKER_MESSAGES:-1000000}
    servers+=(--mariadb --postgresql --restartable)
  fi
elif [ -n "$quick" ] && [ ${#databases[@]} = 0 ]; then
  labels+=(quick)
elif [ ${#databases[@]} = 0 ]; then
  databases=(sqlite3 mariadb postgresql mysql)
  labels+=(unit source headers fuzz)
  # Builds of a user's project, and the model of the lease protocol. Their results do not depend on the database or the
  # sanitizer.
  if [ -n "$all" ]; then
    labels+=(package model)
    excluded=(failover)
  fi
elif [ -n "$quick" ]; then
  kinds='^(conformance|cli)$'
fi
for database in "${databases[@]}"; do
  case $database in
    sqlite3) ;;
    mysql) if [ -z "${TXINBOX_TEST_MYSQL_URL:-}" ]; then servers+=(--mysql); fi ;;
    *) servers+=("--$database") ;;
  esac
  labels+=("$database")
done
one_of() { local IFS='|'; echo "^($*)\$"; }

if [ -n "$filter" ]; then
  # Without this check, a filter that selects no test would pass. With --brokers alone, only tests of components run.
  found=0
  programs=("$build"/tests/component_*/txinbox_*_tests)
  if [ -z "$brokers" ] || [ "$special" != 1 ]; then
    programs+=("$build"/tests/txinbox_{conformance,faults,*_tests})
  fi
  for program in "${programs[@]}"; do
    [ -x "$program" ] || continue
    count=$("$program" --no-colors --list-test-cases --test-case="$filter" | sed -n 's/.*passing the current filters: \([0-9]*\).*/\1/p')
    found=$((found + ${count:-0}))
  done
  [ $found -gt 0 ] || { echo "tests/run.sh: no test case is named '$filter'" >&2; exit 1; }
  export TXINBOX_TEST_CASE=$filter
fi

export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1:suppressions=$root/tests/tsan.supp}

step "Test: ${labels[*]}"
# Four at a time, because most tests wait for a server or a broker most of the time.
run=(ctest --preset "$preset" --output-on-failure --no-tests=error --parallel 4 -L "$(one_of "${labels[@]}")")
if [ ${#excluded[@]} -gt 0 ]; then run+=(-LE "$(one_of "${excluded[@]}")"); fi
if [ -n "$kinds" ]; then run+=(-L "$kinds"); fi
# The tests of TLS start their own servers.
if [ -n "${TXINBOX_TEST_MYSQL_URL:-}" ]; then run+=(-E '^tls_mysql$'); fi
# Tests on a server spent most of their time waiting for the disk. These servers do not wait for it: the tests kill
# processes, not the machine. The servers of the storms wait for the disk as usual.
if [ -z "${TXINBOX_TEST_LONG:-}$brokers" ] && [ ${#servers[@]} -gt 0 ]; then
  servers+=(--preload "$(/sbin/ldconfig -p | awk '/libeatmydata\.so\.1 / && !found++ { print $NF }')")
fi
if [ ${#servers[@]} -gt 0 ]; then run=("$root/tests/servers.sh" "${servers[@]}" -- "${run[@]}"); fi
if [ -n "$galera" ]; then run=("$root/tests/galera.sh" -- "${run[@]}"); fi
log=$(mktemp)
storm_pid=
# The storm runs in the background, where Ctrl-C does not reach it.
stop() {
  trap - EXIT
  if [ -n "$storm_pid" ] && kill -TERM "$storm_pid" 2>/dev/null; then wait "$storm_pid" || true; fi
  rm -f "$log"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
status=0
"${run[@]}" 2>&1 | tee "$log" || status=$?

# How many test cases each program ran, because ctest counts programs.
sed -n -e 's/^[0-9]*\/[0-9]* Testing: //p' -e 's/^\[doctest\] \(test cases.*\)/    \1/p' "$build/Testing/Temporary/LastTest.log"
if grep -qE '\*\*\*(Skipped|Not Run)' "$log"; then
  echo "tests/run.sh: a test that should have run was skipped" >&2
  status=1
fi
[ $status = 0 ] || { step "FAILED"; exit $status; }

# The storm waits for disks and for servers that restart. Meanwhile the linter uses the processors.
if [ -n "$everything" ]; then
  step "Storm${lint:+, and lint (clang-tidy) meanwhile}"
  run=("$root/tests/storm.sh")
  if [ -n "$long" ]; then run+=(--seconds 600); fi
  # The test must not kill a server of the user.
  if [ -n "${TXINBOX_TEST_MYSQL_URL:-}" ]; then
    for database in sqlite3 mariadb mariadb-no-binlog postgresql; do run+=(--database "$database"); done
  fi
  # With a sanitizer, the code is slower, so fewer messages are consumed in the same time.
  case $preset in asan | tsan) if [ -z "$long" ]; then run+=(--seconds 10 --restarts 2); fi ;; esac
  "${run[@]}" "$build" >"$log" 2>&1 &
  storm_pid=$!
elif [ -n "$lint" ]; then
  step "Lint (clang-tidy)"
fi
if [ -n "$lint" ]; then "$root/tests/lint.sh" "$build" "$jobs" || status=$?; fi
if [ -n "$everything" ]; then
  wait "$storm_pid" || status=$?
  storm_pid=
  cat "$log"
fi
[ $status = 0 ] || { step "FAILED"; exit $status; }

if [ -n "$long" ]; then
  for each in "${long_steps[@]}"; do
    step "Long: $each"
    # shellcheck disable=SC2086  # words
    $each
  done
fi

step "All passed"
