#!/usr/bin/env bash
# A private Kafka broker for tests. It has one node and listens on the loopback.
#
# Usage: kafka.sh install           fetches the broker's jars, once, into the cache
#        kafka.sh fetch --update    the same, and writes their checksums anew
#        kafka.sh start DIR PORT    starts it and prints 127.0.0.1:PORT when it answers. If it is started again in the
#                                   same DIR, it still has its topics and offsets
#        kafka.sh stop DIR          ends it with SIGTERM
#        kafka.sh kill DIR          ends it with SIGKILL
#
# PORT + 1 is for the controller. The first use of a topic creates it, with 4 partitions. Needs mvn, a Java runtime
# (version 11 or later) and kcat.
#
# If DIR/tls exists, which brokers.sh makes, PORT + 2 requires TLS and SASL/PLAIN. The user orders may do everything,
# and the user guest nothing. Their password is in DIR/tls/password. PORT + 3 is the same, but its certificate is for
# another host.
set -euo pipefail

version=3.9.1
jars=${TXINBOX_BROKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/txinbox-brokers}/kafka-$version

checksums=$(cd "$(dirname "$0")" && pwd)/kafka.sha256
artifacts=("org.apache.kafka:kafka_2.13:$version")
# shellcheck source=tests/brokers/fetch_jars.sh
. "$(dirname "$0")/fetch_jars.sh"

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

# A broker of the tests lives for minutes, so the fast compiler is enough. The benchmark sets the variable to nothing.
# shellcheck disable=SC2086
run_java() { exec java -Xms64m -Xmx256m -XX:+UseSerialGC ${TXINBOX_BROKER_JVM--XX:TieredStopAtLevel=1} -cp "$jars/*" "$@"; }

write_config() {
  cat <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,ELSEWHERE:SASL_SSL
log.dirs=$folder/data
num.partitions=4
auto.create.topics.enable=true
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
PROPERTIES
  local open=PLAINTEXT://127.0.0.1:$port
  [ ! -e "$folder/tls/password" ] || write_security
  echo "advertised.listeners=$open"
  echo "listeners=$open,CONTROLLER://127.0.0.1:$((port + 1))"
}

write_security() {
  local password name
  password=$(cat "$folder/tls/password")
  open+=,SECURE://127.0.0.1:$((port + 2)),ELSEWHERE://127.0.0.1:$((port + 3))
  cat <<PROPERTIES
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:orders
sasl.enabled.mechanisms=PLAIN
ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=$folder/tls/server.store
listener.name.elsewhere.ssl.keystore.location=$folder/tls/elsewhere.store
PROPERTIES
  for name in server elsewhere; do
    cat "$folder/tls/$name.key" "$folder/tls/$name.pem" >"$folder/tls/$name.store"
  done
  for name in secure elsewhere; do
    echo "listener.name.$name.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule" \
      "required user_orders=\"$password\" user_guest=\"$password\";"
  done
}

start() {
  install
  mkdir -p "$1"
  folder=$(realpath "$1") port=$2
  (umask 077 && write_config >"$folder/server.properties")
  if [ ! -e "$folder/data/meta.properties" ]; then
    (run_java kafka.tools.StorageTool format -t dHhpbmJveC10ZXN0LTAwMA -c "$folder/server.properties") >"$folder/format.log" 2>&1 ||
      { cat "$folder/format.log" >&2; exit 1; }
  fi
  (
    cd "$folder"
    export LOG_DIR=$folder
    run_java kafka.Kafka "$folder/server.properties"
  ) >>"$folder/log" 2>&1 </dev/null &
  local pid=$!
  disown
  echo $pid >"$folder/pid"
  for _ in $(seq 600); do
    if ! kill -0 $pid 2>/dev/null; then
      echo "kafka.sh: the broker has ended:" >&2
      tail -n 20 "$folder/log" >&2
      exit 1
    fi
    # The broker accepts connections before it can answer requests.
    if timeout 5 kcat -b "127.0.0.1:$port" -L -m 1 >/dev/null 2>&1; then
      echo "127.0.0.1:$port"
      return
    fi
    sleep 0.1
  done
  echo "kafka.sh: the broker does not answer: $folder/log" >&2
  exit 1
}

end() {
  local pid
  pid=$(cat "$1/pid" 2>/dev/null) || return 0
  kill "-$2" "$pid" 2>/dev/null || true
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
  rm -f "$1/pid"
}

case ${1:-} in
  install) install ;;
  fetch) fetch "${2:-}" ;;
  start) start "$2" "$3" ;;
  stop) end "$2" TERM ;;
  kill) end "$2" KILL ;;
  *) usage >&2; exit 2 ;;
esac
