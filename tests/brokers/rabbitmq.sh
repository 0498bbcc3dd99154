#!/usr/bin/env bash
# A private RabbitMQ broker for tests. It listens on the loopback, and comes from Debian's package rabbitmq-server.
#
# Usage: rabbitmq.sh install           checks that the package is installed
#        rabbitmq.sh start DIR PORT    starts it and prints 127.0.0.1:PORT when it answers. If it is started again in
#                                      the same DIR, it still has its queues and messages
#        rabbitmq.sh stop DIR          ends it with SIGTERM
#        rabbitmq.sh kill DIR          ends it with SIGKILL
#        rabbitmq.sh ctl DIR ARGUMENT...   runs rabbitmqctl on it
#
# PORT + 1 is for Erlang. PORT + 2 is for TLS, if DIR/tls has ca.pem, server.pem and server.key. PORT + 3 is for a
# separate port mapper, so that several brokers share nothing. User and password are guest. A message has at most
# 2,000,000 bytes.
set -euo pipefail

PATH=$PATH:/usr/sbin
lib=/usr/lib/rabbitmq/lib

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

install() {
  compgen -G "$lib/rabbitmq_server-*/sbin/rabbitmq-server" >/dev/null && return
  echo "rabbitmq.sh: the package rabbitmq-server is missing" >&2
  return 1
}

tool() { echo "$lib"/rabbitmq_server-*/sbin/"$1"; }

settings() {
  folder=$(realpath "$1") port=$2
  export HOME=$folder  # Erlang's cookie is here
  export RABBITMQ_NODENAME=txinbox$port@localhost RABBITMQ_DIST_PORT=$((port + 1))
  export RABBITMQ_MNESIA_BASE=$folder/data RABBITMQ_LOG_BASE=$folder/logs RABBITMQ_PID_FILE=$folder/pid
  export RABBITMQ_CONFIG_FILE=$folder/rabbitmq.conf RABBITMQ_ADVANCED_CONFIG_FILE=$folder/none
  export RABBITMQ_CONF_ENV_FILE=$folder/none RABBITMQ_ENABLED_PLUGINS_FILE=$folder/plugins
  export ERL_EPMD_ADDRESS=127.0.0.1 ERL_EPMD_PORT=$((port + 3))
  export RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="+S 2:2 +sbwt none -kernel inet_dist_use_interface {127,0,0,1}"
}

listens() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

start() {
  install
  mkdir -p "$1"
  settings "$1" "$2"
  echo "$port" >"$folder/port"
  echo '[].' >"$folder/plugins"
  cat >"$folder/rabbitmq.conf" <<CONF
listeners.tcp.1 = 127.0.0.1:$port
vm_memory_high_watermark.absolute = 512MB
disk_free_limit.absolute = 50MB
max_message_size = 2000000
log.file.level = warning
CONF
  if [ -e "$folder/tls/server.pem" ]; then
    cat >>"$folder/rabbitmq.conf" <<CONF
listeners.ssl.1 = 127.0.0.1:$((port + 2))
ssl_options.cacertfile = $folder/tls/ca.pem
ssl_options.certfile = $folder/tls/server.pem
ssl_options.keyfile = $folder/tls/server.key
ssl_options.verify = verify_none
CONF
  fi
  rm -f "$folder/pid"
  (cd "$folder" && exec setsid "$(tool rabbitmq-server)") >>"$folder/log" 2>&1 </dev/null &
  disown
  for _ in $(seq 600); do
    if [ -s "$folder/pid" ] && ! kill -0 "$(cat "$folder/pid")" 2>/dev/null; then
      echo "rabbitmq.sh: the broker has ended:" >&2
      tail -n 20 "$folder/log" >&2
      exit 1
    fi
    # The broker starts its listeners last.
    if listens "$port"; then
      echo "127.0.0.1:$port"
      return
    fi
    sleep 0.1
  done
  echo "rabbitmq.sh: the broker does not answer: $folder/log" >&2
  exit 1
}

end() {
  local pid
  [ -e "$1/port" ] || return 0
  settings "$1" "$(cat "$1/port")"
  if pid=$(cat "$folder/pid" 2>/dev/null); then
    kill "-$2" "$pid" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    rm -f "$folder/pid"
  fi
  epmd -port "$ERL_EPMD_PORT" -kill >/dev/null 2>&1 || true
}

case ${1:-} in
  install) install ;;
  start) start "$2" "$3" ;;
  stop) end "$2" TERM ;;
  kill) end "$2" KILL ;;
  ctl)
    settings "$2" "$(cat "$2/port")"
    shift 2
    exec "$(tool rabbitmqctl)" -n "$RABBITMQ_NODENAME" "$@"
    ;;
  *) usage >&2; exit 2 ;;
esac
