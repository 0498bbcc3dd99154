#!/usr/bin/env bash
# Kills, starts, stops and continues nodes of the cluster that tests/galera.sh has started.
#
# Usage: tests/galera_node.sh bootstrap|start|wait|kill|freeze|thaw NODE...
#   bootstrap  starts a node as the first of a new cluster
#   start      starts a node, on the data that it has, and waits until it has joined
#   wait       waits until a node is synced
#   kill       SIGKILL
#   freeze     SIGSTOP: it does not answer, so the other nodes exclude it
#   thaw       SIGCONT
#   Nodes are numbers from 1.
set -euo pipefail

folder=${TXINBOX_TEST_GALERA_FOLDER:?is set by galera.sh}
act=${1:?an action (see the head of this file)}
shift
PATH=$PATH:/usr/sbin:/sbin
if [ -d "$folder/package" ]; then PATH=$PATH:$folder/package/usr/bin; fi

as_user=()
if [ "$(id -u)" = 0 ]; then
  account=$(stat -c %U "$folder")
  as_user=(setpriv --reuid="$account" --regid="$(id -gn "$account")" --clear-groups)
fi

pid_of() { cat "$folder/node$1/pid" 2>/dev/null; }
runs() { kill -0 "$(pid_of "$1")" 2>/dev/null; }

ask() {
  local port
  port=$(sed -n 's/^port=//p' "$folder/node$1/my.cnf")
  mariadb --defaults-file="$folder/client.cnf" --port="$port" --connect-timeout=2 -N -B -e "$2" 2>/dev/null
}

# A node that is outside the cluster answers SHOW, but has no such state.
synced() { [ "$(ask "$1" "SHOW STATUS LIKE 'wsrep_local_state_comment'")" = $'wsrep_local_state_comment\tSynced' ]; }

wait_until_synced() {
  local i
  for ((i = 0; i < 600; i++)); do
    if ! runs "$1"; then break; fi
    if synced "$1"; then return; fi
    sleep 0.1
  done
  echo "galera: node $1 has not joined; its log ends:" >&2
  tail -n 40 "$folder/node$1/log.err" >&2
  return 1
}

# The node has its own session, so that Ctrl-C ends the tests first.
launch() {
  local home=$folder/node$1
  shift
  cd /
  setsid "${as_user[@]}" mariadbd --defaults-file="$home/my.cnf" "$@" >>"$home/output" 2>&1 </dev/null &
  echo $! >"$home/pid"
}

# The node's position in the log when it was killed. Without this position, the others would send all of their data
# instead of the missing part.
position_of() {
  local home=$folder/node$1
  if [ ! -e "$home/data/ibdata1" ]; then return; fi
  cd /
  "${as_user[@]}" mariadbd --defaults-file="$home/my.cnf" --wsrep-recover --log-error="$home/recovery.err" >/dev/null 2>&1
  sed -n 's/.*WSREP: Recovered position: *//p' "$home/recovery.err" | tail -n 1
}

for node in "$@"; do
  case $act in
    bootstrap)
      launch "$node" --wsrep-new-cluster --init-file="$folder/init.sql"
      wait_until_synced "$node"
      ;;
    start)
      position=$(position_of "$node")
      launch "$node" ${position:+"--wsrep-start-position=$position"}
      wait_until_synced "$node"
      ;;
    wait) wait_until_synced "$node" ;;
    kill)
      if ! runs "$node"; then continue; fi
      kill -KILL "$(pid_of "$node")"
      while runs "$node"; do sleep 0.05; done
      ;;
    freeze) kill -STOP "$(pid_of "$node")" ;;
    thaw) kill -CONT "$(pid_of "$node")" ;;
    *) echo "galera_node.sh: unknown action $act" >&2; exit 2 ;;
  esac
done
