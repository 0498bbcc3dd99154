#!/usr/bin/env bash
# Runs a command with a private Galera cluster of three MariaDB nodes, and ends them with it.
#
# Usage: tests/galera.sh [OPTION]... [--] [COMMAND [ARGUMENT]...]
#   --option OPTION    a line more for each node's option file, as in "wsrep_slave_threads=8"; may be
#                      repeated
#   Without a command it prints what to set, and waits for Ctrl-C.
#
# The command finds in its environment:
#   TXINBOX_TEST_GALERA_URLS  the three nodes: mysql://txinbox:PASSWORD@127.0.0.1:PORT/mysql, with
#                             spaces between them. The user may do everything.
#   TXINBOX_TEST_GALERA_URL   the first of them
#   TXINBOX_TEST_GALERA_NODE  a program that kills, starts, stops and continues one of them
#                             (tests/galera_node.sh), with TXINBOX_TEST_GALERA_FOLDER, which it reads
#
# The data lives in a temporary folder. Everything listens on the loopback, the servers with a password
# that is new each time. Each node is as durable as a server of its own would be in production. A node
# that is silent for two seconds is taken for gone: less than by default, so that tests are short.
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

# Debian has the state transfer's scripts in mariadb-server, which would install a server for the whole
# system: they are taken out of the package instead.
if ! command -v wsrep_sst_rsync >/dev/null; then
  "${as_user[@]}" mkdir "$folder/package"
  if ! (cd "$folder/package" && apt-get -q -o APT::Sandbox::User=root download mariadb-server &&
    dpkg-deb --extract mariadb-server_*.deb .) >"$folder/package.log" 2>&1; then
    cat "$folder/package.log" >&2
    echo "galera.sh: there is no wsrep_sst_rsync, and Debian's mariadb-server, which has it, cannot be fetched" >&2
    exit 1
  fi
  PATH=$PATH:$folder/package/usr/bin
fi

# For each node: clients, the group, and the two kinds of state transfer.
ports=()
for node in "${nodes[@]}"; do
  port=$(free_ports 4)
  while [[ " ${ports[*]} " == *" $port "* ]]; do port=$(free_ports 4); done
  ports+=("$port")
done
group=gcomm://$(for port in "${ports[@]}"; do printf '127.0.0.1:%s,' $((port + 1)); done | sed 's/,$//')
urls=()
for node in "${nodes[@]}"; do
  port=${ports[node - 1]}
  home=$folder/node$node
  # A starting server clears its folder of temporary tables, another server's included.
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
  sleep infinity &  # bash hears a signal at once while it waits for a job
  waiter=$!
  wait "$waiter"
fi
