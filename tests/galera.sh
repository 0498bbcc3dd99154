#!/usr/bin/env bash
# Runs a command with a private Galera cluster of three MariaDB nodes. Stops the nodes when the command ends.
#
# Usage: tests/galera.sh [OPTION]... [--] [COMMAND [ARGUMENT]...]
#   --option OPTION    an additional line for each node's option file, for example "wsrep_slave_threads=8"; may be
#                      repeated
#   Without a command, it prints the variables to set, and waits for Ctrl-C.
#
# The command finds in its environment:
#   TXINBOX_TEST_GALERA_URLS  the three nodes: mysql://txinbox:PASSWORD@127.0.0.1:PORT/mysql, with
#                             spaces between them. The user may do everything.
#   TXINBOX_TEST_GALERA_URL   the first of them
#   TXINBOX_TEST_GALERA_NODE  a program that kills, starts, stops and continues one of them
#                             (tests/galera_node.sh), with TXINBOX_TEST_GALERA_FOLDER, which it reads
#
# The data is in a temporary folder. Everything listens on the loopback, the servers with a password that is new each
# time. Each node is as durable as a single server in production. The cluster excludes a node that does not answer for
# two seconds. This is less than the default, so that tests are short.
set -euo pipefail

tests=$(cd "$(dirname "$0")" && pwd)
options=()
while [ $# -gt 0 ]; do
  case $1 in
    --option)
      [ $# -gt 1 ] || { echo "galera.sh: $1 needs a value" >&2; exit 2; }
      options+=("$2")
      shift
      ;;
    --help | -h) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 0 ;;
    --) shift; break ;;
    -*) echo "galera.sh: unknown option $1 (try --help)" >&2; exit 2 ;;
    *) break ;;
  esac
  shift
done

. "$tests/private_server.sh"
prepare galera
nodes=(1 2 3)
export TXINBOX_TEST_GALERA_FOLDER=$folder TXINBOX_TEST_GALERA_NODE=$tests/galera_node.sh

stop() {
  status=$?
  trap - EXIT
  if [ -n "${waiter:-}" ]; then kill "$waiter"; fi
  "$TXINBOX_TEST_GALERA_NODE" kill "${nodes[@]}" || true
  rm -rf "$folder"
  exit "$status"
}
trap stop EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# Debian's package mariadb-server has the scripts of the state transfer, but it would install a system-wide server. So
# only the scripts are extracted from the package.
if ! command -v wsrep_sst_rsync >/dev/null; then
  "${as_user[@]}" mkdir "$folder/package"
  if ! (cd "$folder/package" && apt-get -q -o APT::Sandbox::User=root download mariadb-server &&
    dpkg-deb --extract mariadb-server_*.deb .) >"$folder/package.log" 2>&1; then
    cat "$folder/package.log" >&2
    echo "galera.sh: wsrep_sst_rsync is missing, and Debian's package mariadb-server with it cannot be fetched" >&2
    exit 1
  fi
  PATH=$PATH:$folder/package/usr/bin
fi

# Each node has four ports: for clients, for the group, and for the two kinds of state transfer.
ports=()
for node in "${nodes[@]}"; do
  take_ports
  ports+=("$port")
done
group=gcomm://$(for port in "${ports[@]}"; do printf '127.0.0.1:%s,' $((port + 1)); done | sed 's/,$//')
urls=()
for node in "${nodes[@]}"; do
  port=${ports[node - 1]}
  home=$folder/node$node
  # A server that starts removes all temporary tables from its folder, also those of another server.
  "${as_user[@]}" mkdir "$home" "$home/data" "$home/tmp"
  cat >"$home/my.cnf" <<END
[mysqld]
datadir=$home/data
tmpdir=$home/tmp
socket=$home/socket
pid_file=$home/server.pid
log_error=$home/log.err
port=$port
bind_address=127.0.0.1
skip_name_resolve
max_connections=300
innodb_flush_log_at_trx_commit=1
innodb_buffer_pool_size=64M
binlog_format=ROW
default_storage_engine=InnoDB
innodb_autoinc_lock_mode=2
wsrep_on=ON
wsrep_provider=/usr/lib/galera/libgalera_smm.so
wsrep_cluster_name=txinbox
wsrep_cluster_address=$group
wsrep_node_name=node$node
wsrep_node_address=127.0.0.1
wsrep_node_incoming_address=127.0.0.1:$port
wsrep_sst_method=rsync
wsrep_sst_receive_address=127.0.0.1:$((port + 3))
wsrep_slave_threads=2
wsrep_provider_options="gmcast.listen_addr=tcp://127.0.0.1:$((port + 1));ist.recv_addr=127.0.0.1:$((port + 2));gcache.size=32M;evs.keepalive_period=PT0.5S;evs.inactive_check_period=PT0.25S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT5S;evs.install_timeout=PT5S"
END
  if [ ${#options[@]} -gt 0 ]; then printf '%s\n' "${options[@]}" >>"$home/my.cnf"; fi
  urls+=("mysql://txinbox:$password@127.0.0.1:$port/mysql")
done
export TXINBOX_TEST_GALERA_URLS=${urls[*]} TXINBOX_TEST_GALERA_URL=${urls[0]}
printf '[client]\nuser=txinbox\npassword=%s\nhost=127.0.0.1\n' "$password" >"$folder/client.cnf"
printf '%s\n' "CREATE USER txinbox@127.0.0.1 IDENTIFIED BY '$password';" \
  "GRANT ALL ON *.* TO txinbox@127.0.0.1 WITH GRANT OPTION;" >"$folder/init.sql"
chmod 644 "$folder/init.sql"

cd /
if ! "${as_user[@]}" mariadb-install-db --no-defaults --datadir="$folder/node1/data" --tmpdir="$folder/node1/tmp" --skip-test-db \
    --auth-root-authentication-method=normal >"$folder/install.log" 2>&1; then
  cat "$folder/install.log" >&2
  exit 1
fi
"$TXINBOX_TEST_GALERA_NODE" bootstrap 1
"$TXINBOX_TEST_GALERA_NODE" start 2
"$TXINBOX_TEST_GALERA_NODE" start 3
cd - >/dev/null
echo "galera: three nodes on ports ${ports[*]}" >&2

if [ $# -gt 0 ]; then
  "$@"
else
  for name in URLS URL NODE FOLDER; do
    name=TXINBOX_TEST_GALERA_$name
    printf 'export %s=%q\n' "$name" "${!name}"
  done
  echo "galera: running until Ctrl-C" >&2
  sleep infinity &  # bash reacts to a signal at once while it waits for a job
  waiter=$!
  wait "$waiter"
fi
