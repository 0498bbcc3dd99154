#!/usr/bin/env bash
# Runs every test on SQLite, MariaDB, PostgreSQL and MySQL, each server private and started for it.
#
# Usage: tests/run.sh [OPTION]...
#   --database NAME  sqlite3, mariadb, postgresql or mysql only; may be repeated
#   --galera         instead of these, on a Galera cluster of three nodes started for it: the tests of MariaDB
#                    on one node, then those of the cluster, whose nodes are killed and cut off
#   --failover       instead of these, or with --galera: primaries that die, whose replicas take over, and
#                    PgBouncer
#   --brokers        instead of these: the components for brokers, each on a broker started for it, with 200 kills:
#                    on SQLite, and what is killed on MariaDB and PostgreSQL too, whose servers die as well
#   --test FILTER    only the test cases with such a name, as "*rolled-back*"
#   --quick          only what takes less than three minutes and needs no server (the tests with the label "quick"); or,
#                    on what --database names, the conformance tests and those of the command
#   --asan           with AddressSanitizer and UndefinedBehaviorSanitizer
#   --tsan           with ThreadSanitizer
#   --clang          built with clang
#   --no-lint        without clang-format, clang-tidy and Doxygen
#   --long           with what takes long: every fault behind a handler's misbehaviour, storms of ten
#                    minutes instead of half a minute, more fuzzing, the sanitizers on every database, and servers
#                    that wait for the disk (without it, only the storm's servers do)
#   --jobs N         build with N processes; as many as there are processors by default
#   --help
#
# Installs what is missing from Debian 12 (as root; later runs need no root), builds in build/<preset>,
# starts the servers and ends them. A run of everything, which --database and --test limit, also lets a
# storm rage on each database (tests/storm.sh); without a sanitizer and --clang it checks the format
# (clang-format), makes the pages of the API (tests/api_docs.sh) and lints (clang-tidy) besides. What fuzzing has
# found is tried in every run; --long tries more (tests/fuzz.sh), in a build of its own.
#
# Debian 12 has no MySQL server: it is fetched from Debian unstable once, and stays in a cache folder
# (tests/get_mysql.sh). If TXINBOX_TEST_MYSQL_URL names a MySQL server (mysql://user:password@host:port/mysql; a user
# who may do everything), the tests run there instead.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
preset=dev lint=1 long= quick= galera= failover= brokers= jobs=$(nproc) filter=
databases=()

# With --long, one a line; each starts what it needs.
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
[ -z "$special" ] || [ ${#databases[@]} = 0 ] || wrong "--galera, --failover or --brokers, and --database, are two runs"
[ -z "$special" ] || [ -z "$quick" ] || wrong "--galera, --failover or --brokers, and --quick, are two runs"

# Whether everything is wanted; and whether it is wanted as one who changed the code runs it.
everything= all=
if [ -z "$filter$special$quick" ] && [ ${#databases[@]} = 0 ]; then everything=1; fi
if [ -n "$everything" ] && [ $preset = dev ]; then all=1; fi
if [ -n "$long" ]; then
  [ -n "$all" ] || wrong "--long goes with a run of everything"
  export TXINBOX_TEST_LONG=1
fi

step() { printf '\n== [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

step "Install what is missing"
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
  # The command's threads are the library's, which the other tests run.
  [ $preset = tsan ] || targets+=(txinbox_cli_tests)
fi
cmake --build --preset $preset -j "$jobs" "${targets[@]}"

# What ctest is to run, by label: a test runs that has one of these, none of `excluded` and, with --quick, what
# `kinds` says.
labels=()
excluded=(failover package)
[ "$quick$preset" != 1tsan ] || excluded+=(cli)
kinds=
servers=()
if [ -n "$special" ]; then
  labels+=(${galera:+galera} ${failover:+failover} ${brokers:+brokers})
  excluded=()
  if [ -n "$brokers" ]; then
    export TXINBOX_BROKER_KILLS=${TXINBOX_BROKER_KILLS:-200}
    servers+=(--mariadb --postgresql --restartable)
  fi
elif [ -n "$quick" ] && [ ${#databases[@]} = 0 ]; then
  labels+=(quick)
elif [ ${#databases[@]} = 0 ]; then
  databases=(sqlite3 mariadb postgresql mysql)
  labels+=(unit source headers fuzz)
  # A user's builds, and the model of a protocol: neither a database nor a sanitizer changes them.
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
  # A filter that fits nothing would pass.
  found=0
  for program in "$build"/tests/txinbox_{unit_tests,torture_tests,conformance,faults,cli_tests,stopping_tests,tls_tests,cluster_tests,failover_tests}; do
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
# Four at a time: most of a test is waiting for a server, or for a broker.
run=(ctest --preset "$preset" --output-on-failure --no-tests=error --parallel 4 -L "$(one_of "${labels[@]}")")
if [ ${#excluded[@]} -gt 0 ]; then run+=(-LE "$(one_of "${excluded[@]}")"); fi
if [ -n "$kinds" ]; then run+=(-L "$kinds"); fi
# Of TLS, which needs servers of its own.
if [ -n "${TXINBOX_TEST_MYSQL_URL:-}" ]; then run+=(-E '^tls_mysql$'); fi
# Most of the time of a test on a server was a wait for the disk. What survives a crash of the machine is the server's
# affair: the tests kill processes, and the storms' servers wait as usual.
if [ -z "${TXINBOX_TEST_LONG:-}$brokers" ] && [ ${#servers[@]} -gt 0 ]; then
  servers+=(--preload "$(/sbin/ldconfig -p | awk '/libeatmydata\.so\.1 / && !found++ { print $NF }')")
fi
if [ ${#servers[@]} -gt 0 ]; then run=("$root/tests/servers.sh" "${servers[@]}" -- "${run[@]}"); fi
if [ -n "$galera" ]; then run=("$root/tests/galera.sh" -- "${run[@]}"); fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"${run[@]}" 2>&1 | tee "$log" || status=$?

# How many test cases each of them was; ctest counts programs.
sed -n -e 's/^[0-9]*\/[0-9]* Testing: //p' -e 's/^\[doctest\] \(test cases.*\)/    \1/p' "$build/Testing/Temporary/LastTest.log"
if grep -qE '\*\*\*(Skipped|Not Run)' "$log"; then
  echo "tests/run.sh: a test that should have run was skipped" >&2
  status=1
fi
[ $status = 0 ] || { step "FAILED"; exit $status; }

# The storm waits for disks and servers that restart; the linter needs the processors meanwhile.
if [ -n "$everything" ]; then
  step "Storm${lint:+, and lint (clang-tidy) meanwhile}"
  run=("$root/tests/storm.sh")
  if [ -n "$long" ]; then run+=(--seconds 600); fi
  # A server of the user's is not to be killed.
  if [ -n "${TXINBOX_TEST_MYSQL_URL:-}" ]; then
    for database in sqlite3 mariadb mariadb-no-binlog postgresql; do run+=(--database "$database"); done
  fi
  # Under a sanitizer less happens in the same time.
  case $preset in asan | tsan) if [ -z "$long" ]; then run+=(--seconds 10 --restarts 2); fi ;; esac
  "${run[@]}" "$build" >"$log" 2>&1 &
  storm_pid=$!
elif [ -n "$lint" ]; then
  step "Lint (clang-tidy)"
fi
if [ -n "$lint" ]; then "$root/tests/lint.sh" "$build" "$jobs" || status=$?; fi
if [ -n "$everything" ]; then
  wait "$storm_pid" || status=$?
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
