#!/usr/bin/env bash
# Runs conformance tests on private MariaDB servers that report an unknown version: one calls itself TiDB, and one calls
# itself MySQL, as a proxy can do. Stops the servers afterwards.
#
# Usage: tests/unknown_server.sh PROGRAM
#   PROGRAM  txinbox_conformance
set -euo pipefail

program=$(realpath "$1")
tests=$(cd "$(dirname "$0")" && pwd)

# The test files for a consumer, a batch, a lease, a purge and the guard.
files=unknown_server,consume,key,duplicate_counter,guard,torn,unconfirmed_claim,batch_guard,batch_isolation,batch_torn,conflict_record
files+=,lease,lease_takeover,leaked_settings,purge,purge_condition,purge_other,session_state

# doctest does not report it if a name in its filter matches no file.
for file in ${files//,/ }; do
  if ! compgen -G "$tests/conformance/*/${file}_test.cpp" >/dev/null; then
    echo "unknown_server.sh: there is no ${file}_test.cpp" >&2
    exit 1
  fi
done

# run VERSION ARGUMENT...: runs the program on a server that reports this version.
run() {
  local version=$1
  shift
  TXINBOX_TEST_DATABASE=mysql "$tests/servers.sh" --mariadb --mariadb-option "--version=$version" -- \
    bash -c 'TXINBOX_TEST_URL=$TXINBOX_TEST_MARIADB_URL exec "$@"' bash "$program" "$@"
}

run 8.0.11-TiDB-v7.5.0 "--source-file=*/${files//,/_test.cpp,*\/}_test.cpp"
run 8.0.36 "--test-case=unknown server: a pool*"
