#!/usr/bin/env bash
# A private Redis server for tests. It listens on the loopback, and comes from Debian's package redis-server.
#
# Usage: redis.sh install           checks that the package is installed
#        redis.sh start DIR PORT    starts it and prints 127.0.0.1:PORT when it answers. If it is started again in the
#                                   same DIR, it still has its keys: it syncs each command to the disk before it answers
#        redis.sh stop DIR          ends it with SIGTERM
#        redis.sh kill DIR          ends it with SIGKILL
#
# The password is in DIR/tls/password, where brokers.sh writes it.
set -euo pipefail

PATH=$PATH:/usr/sbin

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

install() {
  command -v redis-server >/dev/null && return
  echo "redis.sh: the package redis-server is missing" >&2
  return 1
}

start() {
  install
  mkdir -p "$1"
  local folder port=$2
  folder=$(realpath "$1")
  cat >"$folder/redis.conf" <<CONF
bind 127.0.0.1
port $port
dir $folder
pidfile $folder/pid
appendonly yes
appendfsync always
save ""
requirepass $(cat "$folder/tls/password")
CONF
  rm -f "$folder/pid"
  (cd "$folder" && exec setsid redis-server redis.conf) >>"$folder/log" 2>&1 </dev/null &
  local pid=$!
  disown
  for _ in $(seq 600); do
    if ! kill -0 "$pid" 2>/dev/null; then
      echo "redis.sh: the server has ended:" >&2
      tail -n 20 "$folder/log" >&2
      exit 1
    fi
    # The server listens before it has loaded its file. During this time it answers LOADING.
    if answers "$folder" "$port"; then
      echo "127.0.0.1:$port"
      return
    fi
    sleep 0.05
  done
  echo "redis.sh: the server does not answer: $folder/log" >&2
  exit 1
}

answers() {
  [ -s "$1/pid" ] || return 1
  REDISCLI_AUTH=$(cat "$1/tls/password") redis-cli -h 127.0.0.1 -p "$2" ping 2>/dev/null | grep -qx PONG
}

end() {
  local pid
  [ -s "$1/pid" ] || return 0
  pid=$(cat "$1/pid")
  kill "-$2" "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.02; done
  rm -f "$1/pid"
}

case ${1:-} in
  install) install ;;
  start) start "$2" "$3" ;;
  stop) end "$2" TERM ;;
  kill) end "$2" KILL ;;
  *) usage >&2; exit 2 ;;
esac
