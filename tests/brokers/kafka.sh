#!/usr/bin/env bash
# A private Kafka broker of one node on the loopback, for tests.
#
# Usage: kafka.sh install           fetches the broker's jars, once, into the cache
#        kafka.sh start DIR PORT    starts it and prints 127.0.0.1:PORT when it answers. A second start in the same
#                                   DIR keeps its topics and offsets
#        kafka.sh stop DIR          ends it with SIGTERM
#        kafka.sh kill DIR          ends it with SIGKILL
#
# PORT + 1 is the controller's. PORT + 2 wants TLS and SASL/PLAIN: its certificate, for 127.0.0.1, is signed by
# DIR/certificates/ca.pem, and DIR/password is the password of the users orders, who may do everything, and guest, who
# may do nothing. PORT + 3 is the same with a certificate for another host. DIR/certificates/other-ca.pem has signed
# nothing. A topic is made by its first use, with 4 partitions. Needs mvn, a Java runtime from 11 on, openssl and kcat.
set -euo pipefail

version=3.9.1
jars=${TXINBOX_BROKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/txinbox-brokers}/kafka-$version

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

install() {
  [ ! -e "$jars/complete" ] || return 0
  mkdir -p "$jars"
  cat >"$jars/pom.xml" <<XML
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>txinbox</groupId> <artifactId>broker</artifactId> <version>1</version>
  <dependencies>
    <dependency> <groupId>org.apache.kafka</groupId> <artifactId>kafka_2.13</artifactId> <version>$version</version> </dependency>
  </dependencies>
</project>
XML
  mvn --batch-mode --quiet --file "$jars/pom.xml" dependency:copy-dependencies -DincludeScope=runtime \
    -DoutputDirectory="$jars" >&2
  touch "$jars/complete"
}

# authority NAME: makes NAME.pem and NAME.key.
authority() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" \
    -keyout "$1.key" -out "$1.pem"
}

# certificate NAME ALTERNATIVE_NAMES: makes NAME.store, a key and its certificate, signed by ca.pem, for Java.
certificate() {
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
  printf 'subjectAltName=%s\n' "$2" >"$1.extensions"
  openssl x509 -req -days 2 -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -extfile "$1.extensions" -out "$1.pem"
  cat "$1.key" "$1.pem" >"$1.store"
}

make_secrets() {
  (
    umask 077
    od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >password
    mkdir certificates
    cd certificates
    authority ca
    authority other-ca
    certificate host IP:127.0.0.1
    certificate other-host DNS:elsewhere.example
  ) >"secrets.log" 2>&1 || { cat "secrets.log" >&2; exit 1; }
}

run_java() { exec java -Xms64m -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$jars/*" "$@"; }

write_config() {
  local password listener
  password=$(cat "$folder/password")
  (umask 077 && : >"$folder/server.properties")
  cat >"$folder/server.properties" <<PROPERTIES
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:$((port + 1))
listeners=PLAINTEXT://127.0.0.1:$port,CONTROLLER://127.0.0.1:$((port + 1)),SECURE://127.0.0.1:$((port + 2)),ELSEWHERE://127.0.0.1:$((port + 3))
advertised.listeners=PLAINTEXT://127.0.0.1:$port,SECURE://127.0.0.1:$((port + 2)),ELSEWHERE://127.0.0.1:$((port + 3))
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,ELSEWHERE:SASL_SSL
controller.listener.names=CONTROLLER
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
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:orders
sasl.enabled.mechanisms=PLAIN
ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location=$folder/certificates/host.store
listener.name.elsewhere.ssl.keystore.location=$folder/certificates/other-host.store
PROPERTIES
  for listener in secure elsewhere; do
    echo "listener.name.$listener.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule" \
      "required user_orders=\"$password\" user_guest=\"$password\";" >>"$folder/server.properties"
  done
}

start() {
  install
  mkdir -p "$1"
  folder=$(realpath "$1") port=$2
  [ -e "$folder/certificates/other-host.store" ] || (cd "$folder" && make_secrets)
  write_config
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
    # It accepts connections before it can serve.
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
  start) start "$2" "$3" ;;
  stop) end "$2" TERM ;;
  kill) end "$2" KILL ;;
  *) usage >&2; exit 2 ;;
esac
