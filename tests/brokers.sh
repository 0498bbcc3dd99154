#!/usr/bin/env bash
# Starts a private broker, runs a test program or a script on it, and ends the broker.
#
# Usage: brokers.sh BROKER PROGRAM [ARGUMENT]...
#   BROKER   a script of tests/brokers/ without .sh: kafka, rabbitmq, redis or rocketmq
#   PROGRAM  gets TXINBOX_BROKER_PORT, and TXINBOX_BROKER_SCRIPT and TXINBOX_BROKER_FOLDER to kill and start the broker
#
# The database is SQLite, unless TXINBOX_TEST_DATABASE and TXINBOX_TEST_URL name another (on_database.sh).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/private_server.sh
. "$here/private_server.sh"

broker=$1
shift
script=$here/brokers/$broker.sh
[ -x "$script" ] || { echo "brokers.sh: there is no broker '$broker'" >&2; exit 2; }

if ! "$script" install; then
  echo "skipped: $broker cannot be fetched" >&2
  exit 77
fi

folder=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-$broker.XXXXXX")
finish() {
  local status=$?
  trap - EXIT
  "$script" kill "$folder/broker" || true
  if [ $status -ne 0 ]; then tail -n 30 "$folder/broker/log" 2>/dev/null || true; fi
  rm -rf "$folder"
  exit $status
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Makes a CA, the broker's certificate, a certificate for another host, another CA, and a password, for brokers with TLS
# and users.
make_certificates() {
  local tls=$folder/broker/tls
  mkdir -p "$tls"
  local name
  for name in ca other; do
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$name" -keyout "$tls/$name.key" -out "$tls/$name.pem"
  done
  for name in server elsewhere; do
    local hosts=DNS:localhost,IP:127.0.0.1
    if [ $name = elsewhere ]; then hosts=DNS:elsewhere.example; fi
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$tls/$name.key" -out "$tls/$name.csr"
    openssl x509 -req -in "$tls/$name.csr" -CA "$tls/ca.pem" -CAkey "$tls/ca.key" -CAcreateserial -days 2 \
      -extfile <(echo "subjectAltName=$hosts") -out "$tls/$name.pem"
  done
  (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$tls/password")
}
make_certificates >/dev/null 2>&1

take_ports
"$script" start "$folder/broker" "$port"
export TXINBOX_BROKER_SCRIPT=$script TXINBOX_BROKER_FOLDER=$folder/broker TXINBOX_BROKER_PORT=$port
# shellcheck source=tests/count_skipped.sh
. "$here/count_skipped.sh"
case $1 in *.py) ;; *) count_skipped "$@" ;; esac
"$@"
