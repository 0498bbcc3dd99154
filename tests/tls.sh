#!/usr/bin/env bash
# Runs a command with three private servers of one kind: one with a certificate for 127.0.0.1, one with a certificate
# for another host, and one without TLS. Stops the servers when the command ends.
#
# Usage: tests/tls.sh KIND COMMAND [ARGUMENT]...
#   KIND  mariadb, postgresql or mysql
#
# The command finds in its environment:
#   TXINBOX_TEST_DATABASE            mysql or postgresql
#   TXINBOX_TEST_URL                 the first server: mysql://txinbox:PASSWORD@127.0.0.1:PORT/mysql, for instance
#   TXINBOX_TEST_OTHER_HOST_URL      the second server
#   TXINBOX_TEST_UNENCRYPTED_URL     the third server
#   TXINBOX_TEST_CERTIFICATES        a folder: ca.pem has signed the servers' certificates and client.pem, other-ca.pem
#                                    has signed nothing
# If TXINBOX_TEST_CASE is set, the command gets it as an argument: doctest's filter. The users may do everything. The
# data and the certificates are in a temporary folder. The servers listen on the loopback.
set -euo pipefail

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
case ${1:-} in
  mariadb | postgresql | mysql) kind=$1 ;;
  --help | -h) usage; exit 0 ;;
  *) usage >&2; exit 2 ;;
esac
shift
[ $# -gt 0 ] || { usage >&2; exit 2; }

if [ -n "${TXINBOX_TEST_CASE:-}" ]; then
  set -- "$@" "--test-case=$TXINBOX_TEST_CASE"
  # Do not start servers if the filter selects no test.
  if "$@" --no-colors --count | grep -q 'filters: 0$'; then exit 0; fi
fi

here=$PWD
tests=$(cd "$(dirname "$0")" && pwd)
if [ "$kind" = mysql ]; then mysqld=$("$tests/get_newer.sh" mysql)/mysqld; fi
. "$tests/private_server.sh"
prepare tls
kill_servers_at_exit

# quietly COMMAND...: shows the command's output only if the command fails.
quietly() { "$@" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }; }

# authority NAME: makes NAME.pem and NAME.key.
authority() {
  quietly openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" -keyout "$1.key" -out "$1.pem"
}

# certificate NAME ALTERNATIVE_NAMES: makes NAME.pem and NAME.key, signed by ca.pem.
certificate() {
  quietly openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
  printf 'subjectAltName=%s\n' "$2" >"$1.extensions"
  quietly openssl x509 -req -days 2 -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -extfile "$1.extensions" \
    -out "$1.pem"
}

certificates=$folder/certificates
"${as_user[@]}" mkdir "$certificates"
cd "$certificates"
authority ca
authority other-ca
certificate host IP:127.0.0.1
certificate other-host DNS:elsewhere.example
certificate client DNS:client.example
# The servers run as the user nobody, who must be able to read these files. PostgreSQL and libpq refuse keys that other
# users can read.
if [ "$(id -u)" = 0 ]; then chown nobody host.key other-host.key host.pem other-host.pem; fi
chmod 600 ./*.key
chmod 644 ./*.pem
cd /

# wait_until NAME COMMAND...: waits until COMMAND succeeds, at most a minute.
wait_until() {
  local name=$1 i
  shift
  for ((i = 0; i < 600; i++)); do
    if "$@"; then return; fi
    sleep 0.1
  done
  echo "tls.sh: a server did not start; its log ends:" >&2
  tail -n 20 "$folder/$name.log" >&2
  return 1
}

# start_NAME: replaces this process by the server, with `data`, `port` and `certificate` (host, other-host or nothing).
start_mariadb() {
  local tls=(--ssl-cert="$certificates/$certificate.pem" --ssl-key="$certificates/$certificate.key"
    --ssl-ca="$certificates/ca.pem")
  if [ -z "$certificate" ]; then tls=(); fi
  exec "${as_user[@]}" mariadbd --no-defaults --datadir="$data" --socket="$data.sock" --port="$port" \
    --pid-file="$data.pid" --tmpdir="$data-tmp" --bind-address=127.0.0.1 --skip-name-resolve --init-file="$folder/init.sql" \
    "${tls[@]}"
}

start_mysql() {
  local places tls=(--ssl-cert="$certificates/$certificate.pem" --ssl-key="$certificates/$certificate.key"
    --ssl-ca="$certificates/ca.pem")
  if [ -z "$certificate" ]; then tls=(--tls-version=); fi
  mysql_places
  exec "${as_user[@]}" "$mysqld" "${places[@]}" --datadir="$data" --tmpdir="$data-tmp" --socket="$data.sock" \
    --port="$port" --mysqlx=OFF --pid-file="$data.pid" --bind-address=127.0.0.1 --skip-name-resolve \
    --init-file="$folder/init.sql" --skip-log-bin "${tls[@]}"
}

postgresql_program() {
  command -v "$1" || find /usr/lib/postgresql -path "*/bin/$1" 2>/dev/null | sort -V | tail -n 1
}

start_postgresql() {
  local tls=(-c ssl=on -c ssl_cert_file="$certificates/$certificate.pem" -c ssl_key_file="$certificates/$certificate.key"
    -c ssl_ca_file="$certificates/ca.pem")
  if [ -z "$certificate" ]; then tls=(); fi
  exec "${as_user[@]}" "$(postgresql_program postgres)" -D "$data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= "${tls[@]}"
}

postgresql_answers() {
  PGPASSWORD=$password PGCONNECT_TIMEOUT=2 psql -X -q -h 127.0.0.1 -p "$1" -U txinbox -c "" postgres 2>/dev/null
}

# Makes the data folder that each server gets a copy of.
case $kind in
  mariadb | mysql)
    printf '%s\n' "CREATE USER IF NOT EXISTS txinbox@127.0.0.1 IDENTIFIED BY '$password';" \
      "GRANT ALL ON *.* TO txinbox@127.0.0.1 WITH GRANT OPTION;" >"$folder/init.sql"
    "${as_user[@]}" mkdir "$folder/data" "$folder/data-tmp"
    if [ "$kind" = mariadb ]; then
      quietly "${as_user[@]}" mariadb-install-db --no-defaults --datadir="$folder/data" --tmpdir="$folder/data-tmp" \
        --skip-test-db --auth-root-authentication-method=normal
    else
      mysql_places
      quietly "${as_user[@]}" "$mysqld" "${places[@]}" --datadir="$folder/data" --tmpdir="$folder/data-tmp" \
        --initialize-insecure
      rm "$folder/data/auto.cnf"
    fi
    export TXINBOX_TEST_DATABASE=mysql
    scheme=mysql database=mysql
    ready=listens
    ;;
  postgresql)
    printf '%s\n' "$password" >"$folder/password"
    chmod 644 "$folder/password"
    quietly "${as_user[@]}" "$(postgresql_program initdb)" --pgdata="$folder/data" --username=txinbox \
      --pwfile="$folder/password" --auth=scram-sha-256 --encoding=UTF8 --locale=C --no-sync
    rm "$folder/password"
    export TXINBOX_TEST_DATABASE=postgresql
    scheme=postgresql database=postgres
    ready=postgresql_answers
    ;;
esac

take_ports
first=$port
for certificate in host other-host ""; do
  data=$folder/data${certificate:+-}$certificate
  if [ -n "$certificate" ]; then "${as_user[@]}" cp -r "$folder/data" "$data"; fi
  "${as_user[@]}" mkdir -p "$data-tmp"
  "start_$kind" >"$data.log" 2>&1 &
  pids+=($!)
  port=$((port + 1))
done
url() { echo "$scheme://txinbox:$password@127.0.0.1:$1/$database"; }
wait_until data-host "$ready" "$first"
wait_until data-other-host "$ready" $((first + 1))
wait_until data "$ready" $((first + 2))
TXINBOX_TEST_URL=$(url "$first")
TXINBOX_TEST_OTHER_HOST_URL=$(url $((first + 1)))
TXINBOX_TEST_UNENCRYPTED_URL=$(url $((first + 2)))
export TXINBOX_TEST_URL TXINBOX_TEST_OTHER_HOST_URL TXINBOX_TEST_UNENCRYPTED_URL TXINBOX_TEST_CERTIFICATES=$certificates

cd "$here"
"$@"
