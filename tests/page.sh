#!/usr/bin/env bash
# Uses the operators' page in Chromium, on SQLite, MariaDB and PostgreSQL.
#
# Usage: tests/page.sh BUILD_FOLDER [TEST]...
#   TEST  such as PageTest.test_mouse; without it, all tests
#
# The pictures of the pages are in BUILD_FOLDER/page. chromium, chromium-driver and python3-selenium must be installed.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
if [ "${1:-}" = --on-servers ]; then
  shift
  mysql_url=${TXINBOX_TEST_MARIADB_URL%/*}
  authority=${mysql_url#*://}
  user=${authority%%:*} rest=${authority#*:}
  MYSQL_PWD=${rest%%@*} mariadb -h 127.0.0.1 -P "${authority##*:}" -u "$user" \
    -e 'create database page_test; create table page_test.page_order (no varchar(255) not null)'
  psql -q "$TXINBOX_TEST_POSTGRESQL_URL" -c 'create database page_test'
  postgresql_url=${TXINBOX_TEST_POSTGRESQL_URL%/*}/page_test
  psql -q "$postgresql_url" -c 'create table page_order (no varchar(255) not null)'
  echo "== MariaDB"
  TXINBOX_TEST_URL=$mysql_url/page_test TXINBOX_TEST_RESTART=$TXINBOX_TEST_MARIADB_RESTART \
    "$root/tests/page/page_test.py" "$@"
  echo "== PostgreSQL"
  TXINBOX_TEST_URL=$postgresql_url TXINBOX_TEST_RESTART=$TXINBOX_TEST_POSTGRESQL_RESTART \
    "$root/tests/page/page_test.py" "$@"
  exit
fi

folder=$(cd "$1" && pwd)
shift
export TXINBOX_COMMAND=$folder/tools/cli/txinbox
mkdir -p "$folder/page"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
sqlite3 "$scratch/page.db" 'create table page_order (no text not null)'
echo "== SQLite"
TXINBOX_TEST_URL=sqlite:$scratch/page.db TXINBOX_TEST_SCREENSHOTS=$folder/page "$root/tests/page/page_test.py" "$@"
"$root/tests/servers.sh" --restartable --mariadb --postgresql -- "$0" --on-servers "$@"
