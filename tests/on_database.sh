#!/bin/sh
# Runs a test program on one database. ctest uses it, because ctest cannot pass a URL that is known only when the tests
# run.
#
# Usage: on_database.sh DATABASE URL_VARIABLE PROGRAM [ARGUMENT]...
#   DATABASE      sqlite3, mysql or postgresql; none for a program that needs no database
#   URL_VARIABLE  the environment variable that names the server; - where there is no server
#
# The program gets TXINBOX_TEST_DATABASE and TXINBOX_TEST_URL, and TXINBOX_TEST_RESTART, a script that kills the server
# and starts it again, if servers.sh has made one.
#
# TXINBOX_TEST_CASE and TXINBOX_TEST_EXCLUDE are doctest's filters, if they are set. Status 77 means skipped.
set -eu

database=$1 url_variable=$2
shift 2

url= restart=
if [ "$url_variable" != - ]; then
  eval "url=\${$url_variable:-}"
  if [ -z "$url" ]; then
    echo "skipped: $url_variable is not set (tests/run.sh starts the servers)"
    exit 77
  fi
  eval "restart=\${${url_variable%_URL}_RESTART:-}"
fi

TXINBOX_TEST_DATABASE=$database TXINBOX_TEST_URL=$url TXINBOX_TEST_RESTART=$restart
export TXINBOX_TEST_DATABASE TXINBOX_TEST_URL TXINBOX_TEST_RESTART
if [ -n "${TXINBOX_TEST_CASE:-}" ]; then set -- "$@" "--test-case=$TXINBOX_TEST_CASE"; fi
if [ -n "${TXINBOX_TEST_EXCLUDE:-}" ]; then set -- "$@" "--test-case-exclude=$TXINBOX_TEST_EXCLUDE"; fi
case $1 in
  *.sh) ;;  # brokers.sh, which counts by itself
  *)
    . "$(dirname "$0")/count_skipped.sh"
    count_skipped "$@"
    ;;
esac
exec "$@"
