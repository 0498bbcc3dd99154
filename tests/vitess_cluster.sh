# A private Vitess: etcd, vtctld, one MySQL server for each tablet, and vtgate. To be sourced by bash, after private_server.sh.
# shellcheck shell=bash
#
# vttablet and vtgate are started again whenever they end, so a test can kill them.

vitess=$("$root/tests/get_vitess.sh")
mysqld=$("$root/tests/get_newer.sh" mysql)/mysqld
prepare vitess
kill_servers_at_exit
take_ports
etcd_port=$port vtgate_port=$((port + 2)) vtgate_http_port=$((port + 3)) vtctld_port=$((port + 5))
take_ports
tablet_ports=$port
topology=(--topo-implementation etcd2 --topo-global-server-address "127.0.0.1:$etcd_port" --topo-global-root /vitess/global)

fail() {
  echo "vitess.sh: $*" >&2
  tail -qn 2 "$folder"/*.log | cut -c 1-400 >&2
  exit 1
}

# wait_until WHAT COMMAND...: repeats the command until it succeeds, for about a minute.
wait_until() {
  local end=$((SECONDS + 60))
  until "${@:2}"; do
    [ $SECONDS -lt $end ] || fail "$1"
    sleep 0.1
  done
}

vtctl() { timeout 60 "$vitess/vtctldclient" --server "127.0.0.1:$vtctld_port" "$@" 2>>"$folder/vtctl.log"; }

# keep_running NAME: runs the script start-NAME, and runs it again whenever it ends, until there is a file NAME.ending.
keep_running() {
  local pid
  while [ ! -e "$folder/$1.ending" ]; do
    "$folder/start-$1" >>"$folder/$1.log" 2>&1 &
    pid=$!
    echo "$pid" >"$folder/$1.pid"
    wait "$pid" 2>/dev/null || true
    sleep 0.2
  done
}

# end NAME: ends a program of keep_running.
end() {
  : >"$folder/$1.ending"
  kill -KILL "$(cat "$folder/$1.pid")"
}

# start_script NAME COMMAND...: writes the script start-NAME.
start_script() {
  { echo '#!/usr/bin/env bash'; printf 'exec '; printf '%q ' "${as_user[@]}" "${@:2}"; echo; } >"$folder/start-$1"
  chmod 755 "$folder/start-$1"
}

start_etcd() {
  local url=http://127.0.0.1:$etcd_port peer=http://127.0.0.1:$((etcd_port + 1))
  "${as_user[@]}" etcd --data-dir "$folder/etcd" --listen-client-urls "$url" --advertise-client-urls "$url" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
    >"$folder/etcd.log" 2>&1 &
  pids+=($!)
  wait_until "etcd does not start" listens "$etcd_port"
}

start_vtctld() {
  start_script vtctld "$vitess/vtctld" "${topology[@]}" --bind-address 127.0.0.1 --port "$((vtctld_port + 1))" \
    --grpc-bind-address 127.0.0.1 --grpc-port "$vtctld_port" --service-map grpc-vtctld
  keep_running vtctld &
  pids+=($!)
  wait_until "vtctld does not start" listens "$vtctld_port"
  vtctl AddCellInfo --root /vitess/zone --server-address "127.0.0.1:$etcd_port" zone >/dev/null
}

# start_mysql NUMBER
start_mysql() {
  local data=$folder/mysql$1 user places
  mysql_places
  places+=(--datadir="$data" --tmpdir="$data-tmp")
  "${as_user[@]}" mkdir "$data" "$data-tmp"
  "${as_user[@]}" "$mysqld" "${places[@]}" --initialize-insecure >"$data.log" 2>&1 || fail "MySQL cannot make its data"
  # The users of a tablet. Only the socket in the private folder accepts connections.
  for user in app appdebug allprivs dba filtered repl clone; do
    echo "CREATE USER vt_$user@localhost; GRANT ALL ON *.* TO vt_$user@localhost WITH GRANT OPTION;"
  done >"$folder/users.sql"
  "${as_user[@]}" "$mysqld" "${places[@]}" --socket="$data.sock" --skip-networking --mysqlx=OFF --pid-file="$data.pid" \
    --init-file="$folder/users.sql" --gtid-mode=ON --enforce-gtid-consistency=ON --log-bin="$data/binlog" \
    --server-id="$1" --max-connections=500 --performance-schema=OFF --innodb-buffer-pool-size=128M \
    --sync-binlog=1 --innodb-flush-log-at-trx-commit=1 >>"$data.log" 2>&1 &
  pids+=($!)
  wait_until "MySQL does not start" test -S "$data.sock"
}

# start_tablet NUMBER KEYSPACE SHARD: starts the primary of a shard.
start_tablet() {
  local grpc=$((tablet_ports + 2 * $1))
  start_mysql "$1"
  "${as_user[@]}" mkdir "$folder/vt$1"
  start_script "tablet$1" env VTDATAROOT="$folder/vt$1" "$vitess/vttablet" "${topology[@]}" --tablet-path "zone-$1" \
    --init-keyspace "$2" --init-shard "$3" --init-tablet-type replica --db-socket "$folder/mysql$1.sock" \
    --db-charset utf8mb4 --mycnf-server-id "$1" --mycnf-socket-file "$folder/mysql$1.sock" \
    --mycnf-data-dir "$folder/mysql$1" --mycnf-pid-file "$folder/mysql$1.pid" --mycnf-mysql-port "$((20000 + $1))" \
    --tablet-hostname 127.0.0.1 --bind-address 127.0.0.1 --port "$((grpc + 1))" --grpc-bind-address 127.0.0.1 \
    --grpc-port "$grpc" --service-map grpc-queryservice,grpc-tabletmanager,grpc-updatestream
  keep_running "tablet$1" &
  pids+=($!)
  wait_until "the tablet does not start" listens "$grpc"
  wait_until "the shard $2/$3 has no primary" vtctl PlannedReparentShard "$2/$3" --new-primary "zone-$1" >/dev/null
}

start_vtgate() {
  start_script vtgate "$vitess/vtgate" "${topology[@]}" --cell zone --cells-to-watch zone --tablet-types-to-wait PRIMARY \
    --tablet-refresh-interval 1s \
    --mysql-server-port "$vtgate_port" --mysql-server-bind-address 127.0.0.1 --mysql-auth-server-impl none \
    --bind-address 127.0.0.1 --port "$vtgate_http_port" --grpc-bind-address 127.0.0.1 --grpc-port "$((etcd_port + 4))" \
    --service-map grpc-vtgateservice
  keep_running vtgate &
  pids+=($!)
  wait_until "vtgate does not start" listens "$vtgate_port"
}

# query DATABASE SQL
query() { mysql -h 127.0.0.1 -P "$vtgate_port" -u service --connect-timeout=5 -N -e "$2" "$1"; }

# answers DATABASE
answers() { query "$1" "select 1" >/dev/null 2>&1; }

# restart_script NAME DATABASE PROGRAM...: writes a script that kills one of the programs, in turn, and waits until the
# database can be read again.
restart_script() {
  cat >"$folder/$1" <<END
#!/usr/bin/env bash
set -u
programs=(${@:3})
turn=\$(cat "$folder/turn" 2>/dev/null || echo 0)
echo \$((turn + 1)) >"$folder/turn"
kill -KILL "\$(cat "$folder/\${programs[turn % \${#programs[@]}]}.pid")" 2>/dev/null
sleep 0.3
for ((i = 0; i < 300; i++)); do
  if mysql -h 127.0.0.1 -P $vtgate_port -u service --connect-timeout=2 \\
    -e "select count(*) from txinbox_consumed_message" "$2" >/dev/null 2>&1; then exit 0; fi
  sleep 0.1
done
exit 1
END
  chmod 755 "$folder/$1"
}
