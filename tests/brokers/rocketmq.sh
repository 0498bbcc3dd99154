#!/usr/bin/env bash
# A private RocketMQ 5 for tests: a name server, and a broker with its gRPC proxy. It listens on the loopback.
#
# Usage: rocketmq.sh install             fetches the jars, once, into the cache
#        rocketmq.sh fetch --update      the same, and writes their checksums anew
#        rocketmq.sh start DIR PORT      starts it and prints 127.0.0.1:PORT (gRPC) when it answers. If it is started
#                                        again in the same DIR, it still has its topics and messages
#        rocketmq.sh stop DIR            ends it with SIGTERM
#        rocketmq.sh kill DIR            ends it with SIGKILL
#        rocketmq.sh topic DIR NAME [TYPE]     makes a topic: NORMAL (default) or FIFO
#        rocketmq.sh group DIR NAME [ORDERLY]  makes a consumer group; ORDERLY is true for a FIFO topic
#        rocketmq.sh count DIR TOPIC           prints how many messages a topic has got since it was created
#        rocketmq.sh admin DIR ARGUMENT...     runs mqadmin on it
#
# The proxy listens on all addresses, and no setting changes this. So both processes run in a separate network
# namespace, and socat forwards 127.0.0.1:PORT to it. This needs root, or a kernel on which users may create namespaces.
# The port accepts unencrypted connections, and also TLS if DIR/tls has server.pem and server.key, which brokers.sh
# makes. If the file DIR/secret exists at the start, clients must authenticate as the user orders with this secret, and
# mqadmin has no access. Needs mvn, a Java runtime (version 8 or later), socat and util-linux.
set -euo pipefail

version=5.3.3
jars=${TXINBOX_BROKER_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/txinbox-brokers}/rocketmq-$version

checksums=$(cd "$(dirname "$0")" && pwd)/rocketmq.sha256
artifacts=()
for part in namesrv broker proxy tools; do artifacts+=("org.apache.rocketmq:rocketmq-$part:$version"); done
# shellcheck source=tests/brokers/fetch_jars.sh
. "$(dirname "$0")/fetch_jars.sh"

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

# Inside the namespace, these ports are the same for each broker. The proxy listens on PORT, because it reports its own
# port to clients.
names=9876 remoting=8080 broker=10911 ha=10912

settings() { folder=$(realpath "$1") port=$(cat "$1/port"); }

if [ "$(id -u)" = 0 ]; then
  own=(--net) flags=(--net)
else
  own=(--user --map-root-user --net) flags=(--user --net --preserve-credentials)
fi

enter() { exec nsenter --target "$(cat "$folder/namespace.pid")" "${flags[@]}" "$@"; }
inside() { (enter "$@"); }

write_config() {
  cat >"$folder/conf/namesrv.conf" <<CONF
listenPort=$names
bindAddress=127.0.0.1
CONF
  # The broker flushes each message at once. So a confirmed message still exists after SIGKILL.
  cat >"$folder/conf/broker.conf" <<CONF
brokerClusterName=DefaultCluster
brokerName=broker-a
brokerId=0
namesrvAddr=127.0.0.1:$names
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
bindAddress=127.0.0.1
listenPort=$broker
haListenPort=$ha
storePathRootDir=$folder/store
storePathCommitLog=$folder/store/commitlog
autoCreateTopicEnable=false
autoCreateSubscriptionGroup=false
brokerRole=ASYNC_MASTER
flushDiskType=ASYNC_FLUSH
mappedFileSizeCommitLog=67108864
mappedFileSizeConsumeQueue=600000
enablePopLog=false
maxMessageSize=4194304
CONF
  local tls='"tlsTestModeEnable": true' users=
  if [ -e "$folder/secret" ]; then
    local provider=org.apache.rocketmq.auth.authentication.provider secret
    secret=$(cat "$folder/secret")
    cat >>"$folder/conf/broker.conf" <<CONF
authenticationEnabled=true
authenticationProvider=$provider.DefaultAuthenticationProvider
authenticationMetadataProvider=$provider.LocalAuthenticationMetadataProvider
initAuthenticationUser={"username":"orders","password":"$secret"}
innerClientAuthenticationCredentials={"accessKey":"orders","secretKey":"$secret"}
CONF
    users="\"authenticationEnabled\": true, \"authenticationProvider\": \"$provider.DefaultAuthenticationProvider\",
      \"authenticationMetadataProvider\": \"org.apache.rocketmq.proxy.auth.ProxyAuthenticationMetadataProvider\",
      \"innerClientAuthenticationCredentials\": \"{\\\"accessKey\\\":\\\"orders\\\",\\\"secretKey\\\":\\\"$secret\\\"}\","
  fi
  if [ -e "$folder/tls/server.pem" ]; then
    tls="\"tlsTestModeEnable\": false, \"tlsKeyPath\": \"$folder/tls/server.key\", \"tlsCertPath\": \"$folder/tls/server.pem\""
  fi
  cat >"$folder/conf/rmq-proxy.json" <<CONF
{ "rocketMQClusterName": "DefaultCluster", "proxyMode": "local", "namesrvAddr": "127.0.0.1:$names",
  "grpcServerPort": $port, "remotingListenPort": $remoting, "enableTopicMessageTypeCheck": true,
  "useEndpointPortFromRequest": true, "localServeAddr": "127.0.0.1", $users $tls }
CONF
  cat >"$folder/logback.xml" <<CONF
<configuration>
  <appender name="A" class="org.apache.rocketmq.logging.ch.qos.logback.core.ConsoleAppender">
    <encoder> <pattern>%d{HH:mm:ss.SSS} %-5p %c{1} %m%n</pattern> </encoder>
  </appender>
  <root level="WARN"> <appender-ref ref="A"/> </root>
</configuration>
CONF
}

# A broker of the tests lives for minutes, so the fast compiler is enough. The benchmark sets the variable to nothing.
# shellcheck disable=SC2086
run_java() {
  exec java -XX:+UseSerialGC ${TXINBOX_BROKER_JVM--XX:TieredStopAtLevel=1} -Xshare:auto "-Duser.home=$folder" \
    "-Drmq.logback.configurationFile=$folder/logback.xml" -Drocketmq.broker.diskSpaceWarningLevelRatio=0.99 \
    -Drocketmq.broker.diskSpaceCleanForciblyRatio=0.98 --add-opens=java.base/java.nio=ALL-UNNAMED \
    --add-exports=java.base/jdk.internal.ref=ALL-UNNAMED --add-opens=java.base/sun.nio.ch=ALL-UNNAMED \
    -cp "$folder/conf:$jars/*" "$@"
}

# launch NAME COMMAND...: runs COMMAND in the background and in the namespace. Its process id is in DIR/NAME.pid.
launch() {
  local name=$1
  shift
  (
    cd "$folder"
    export ROCKETMQ_HOME=$folder
    enter "$@"  # its process id is that of the subshell
  ) >>"$folder/log" 2>&1 </dev/null &
  disown
  echo $! >"$folder/$name.pid"
}

# await NAME PORT: waits until the process listens.
await() {
  for _ in $(seq 1200); do
    kill -0 "$(cat "$folder/$1.pid")" 2>/dev/null || break
    inside bash -c "exec 3<>/dev/tcp/127.0.0.1/$2" 2>/dev/null && return
    sleep 0.1
  done
  echo "rocketmq.sh: the $1 has ended or does not answer:" >&2
  tail -n 20 "$folder/log" >&2
  exit 1
}

export -f run_java

start() {
  install
  mkdir -p "$1/conf"
  echo "$2" >"$1/port"
  settings "$1"
  write_config
  export folder jars
  setsid unshare "${own[@]}" bash -c 'ip link set lo up && exec sleep infinity' >/dev/null 2>&1 </dev/null &
  disown
  echo $! >"$folder/namespace.pid"
  # Until the process has its own namespace, it is in that of this script, in which the loopback is up, too.
  until [ "$(readlink "/proc/$!/ns/net")" != "$(readlink /proc/self/ns/net)" ] &&
    inside ip link show lo 2>/dev/null | grep LOOPBACK,UP >/dev/null; do sleep 0.05; done
  # The broker looks for the name server only when it starts.
  launch namesrv bash -c "run_java -Xmx128m -XX:MaxDirectMemorySize=64m org.apache.rocketmq.namesrv.NamesrvStartup \
    -c '$folder/conf/namesrv.conf'"
  await namesrv $names
  launch proxy bash -c "run_java -Xmx512m -XX:MaxDirectMemorySize=512m org.apache.rocketmq.proxy.ProxyStartup \
    -n 127.0.0.1:$names -pm local -bc '$folder/conf/broker.conf' -pc '$folder/conf/rmq-proxy.json'"
  await proxy $broker
  await proxy "$port"
  setsid socat "TCP-LISTEN:$port,bind=127.0.0.1,reuseaddr,fork" \
    "EXEC:nsenter --target $(cat "$folder/namespace.pid") ${flags[*]} socat STDIO TCP\:127.0.0.1\:$port" \
    >/dev/null 2>&1 </dev/null &
  disown
  echo $! >"$folder/socat.pid"
  until (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; do
    kill -0 "$(cat "$folder/socat.pid")" || { echo "rocketmq.sh: port $port is not free" >&2; exit 1; }
    sleep 0.05
  done
  echo "127.0.0.1:$port"
}

# end DIR SIGNAL: sends the signal to all processes.
end() {
  local name pid
  for name in socat proxy namesrv namespace; do
    pid=$(cat "$1/$name.pid" 2>/dev/null) || continue
    # socat and the processes of its connections are one process group.
    kill "-$2" -- "$([ $name = socat ] && echo "-$pid" || echo "$pid")" 2>/dev/null || true
    while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
    rm -f "$1/$name.pid"
  done
}

admin() {
  export ROCKETMQ_HOME=$folder folder jars
  inside bash -c 'run_java -Xmx128m org.apache.rocketmq.tools.command.MQAdminStartup "$@"' bash "$@"
}

# create ARGUMENT...: repeats mqadmin until it has reached the broker. A broker that has just started is not registered
# yet, and mqadmin without a broker ends with status 0.
create() {
  for _ in $(seq 60); do
    admin "$@" -n "127.0.0.1:$names" -c DefaultCluster >"$folder/admin.log" 2>&1
    ! grep success "$folder/admin.log" >/dev/null || return 0
    sleep 1
  done
  cat "$folder/admin.log" >&2
  exit 1
}

case ${1:-} in
  install) install ;;
  fetch) fetch "${2:-}" ;;
  start) start "$2" "$3" ;;
  stop) end "$2" TERM ;;
  kill) end "$2" KILL ;;
  topic)
    settings "$2"
    create updateTopic -t "$3" -r 4 -w 4 -a "+message.type=${4:-NORMAL}"
    ;;
  group)
    settings "$2"
    create updateSubGroup -g "$3" -o "${4:-false}"
    ;;
  count)
    settings "$2"
    # Broker, queue, first offset, last offset, time
    admin topicStatus -n "127.0.0.1:$names" -t "$3" 2>/dev/null | awk '$2 ~ /^[0-9]+$/ { sum += $4 } END { print sum + 0 }'
    ;;
  admin)
    settings "$2"
    shift 2
    admin "$@"
    ;;
  *) usage >&2; exit 2 ;;
esac
