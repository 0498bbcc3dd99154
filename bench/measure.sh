#!/usr/bin/env bash
# Measures sections. The servers must be running. For bench/run.sh, which sets TXINBOX_BENCH_*.
#
# Usage: measure.sh SECTION...
# Each measurement writes a line of JSON to a file in $TXINBOX_BENCH_WORK/raw. If a measurement fails, its name is
# appended to $TXINBOX_BENCH_WORK/failures, and the next measurement follows.
set -uo pipefail

folder=$(cd "$(dirname "$0")" && pwd)
build=$TXINBOX_BENCH_BUILD work=$TXINBOX_BENCH_WORK quick=$TXINBOX_BENCH_QUICK
program=$build/bench/txinbox_bench
read -r -a databases <<<"$TXINBOX_BENCH_DATABASES"
status=0

# either QUICK FULL: prints QUICK in a quick run, otherwise FULL.
either() { if [ -n "$quick" ]; then echo "$1"; else echo "$2"; fi; }

# measure SECTION DATABASE PLACEMENT DURABILITY SUBCOMMAND [ARGUMENT]...
#   PLACEMENT   two-cpus: the client and the servers have different CPUs; one-cpu: they share a CPU
#   DURABILITY  durable or relaxed
measure() {
  local section=$1 database=$2 placement=$3 durability=$4 cpu=$TXINBOX_BENCH_CPU_1 result relaxed=()
  shift 4
  if [ "$placement" = one-cpu ]; then cpu=$TXINBOX_BENCH_CPU_0; fi
  if [ "$durability" = relaxed ]; then relaxed=(--relaxed); fi
  printf '== [%d:%02d] %s: %s, %s, %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$section" "$database" "$placement" \
    "$durability" >&2
  local command=("$program" "$@")
  case $section in
    kafka | rabbitmq | rocketmq | http | page) command=("$build/bench/txinbox_bench_$section" "$@") ;;
    instructions) command=("$@") ;;
  esac
  if result=$(taskset -c "$cpu" "${command[@]}" --database "$database" --folder "$work" "${relaxed[@]}"); then
    printf '{"section":"%s","database":"%s","placement":"%s","durability":"%s","result":%s}\n' \
      "$section" "$database" "$placement" "$durability" "$result" \
      >"$work/raw/$section-$database-$placement-$durability.json"
  else
    echo "$section on $database ($placement, $durability)" >>"$work/failures"
    status=1
  fi
}

# measure_redis PLACEMENT DURABILITY
measure_redis() {
  local placement=$1 durability=$2 cpu=$TXINBOX_BENCH_CPU_1 result relaxed=()
  if [ "$placement" = one-cpu ]; then cpu=$TXINBOX_BENCH_CPU_0; fi
  if [ "$durability" = relaxed ]; then relaxed=(--relaxed); fi
  printf '== [%d:%02d] redis: %s, %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$placement" "$durability" >&2
  if result=$(taskset -c "$cpu" "$build/bench/txinbox_bench_redis" --port "$redis_port" "${relaxed[@]}" \
    --rounds "$(either 3 41)" --slot-ms "$(either 20 100)"); then
    printf '{"section":"redis","database":"redis","placement":"%s","durability":"%s","result":%s}\n' \
      "$placement" "$durability" "$result" >"$work/raw/redis-$placement-$durability.json"
  else
    echo "redis ($placement, $durability)" >>"$work/failures"
    status=1
  fi
}

# Starts a private Redis server, on the CPU of the servers.
measure_all_redis() {
  local redis=$folder/../tests/brokers/redis.sh server=$work/redis placement durability port
  mkdir -p "$server/tls"
  (umask 077 && od -An -N16 -tx1 /dev/urandom | tr -d ' \n' >"$server/tls/password")
  TXINBOX_REDIS_PASSWORD=$(cat "$server/tls/password")
  export TXINBOX_REDIS_PASSWORD
  # shellcheck source=tests/private_server.sh
  . "$folder/../tests/private_server.sh"
  take_ports
  redis_port=$port
  if taskset -c "$TXINBOX_BENCH_CPU_0" "$redis" start "$server" "$redis_port" >&2; then
    for durability in durable relaxed; do
      for placement in two-cpus one-cpu; do measure_redis "$placement" "$durability"; done
    done
  else
    echo "redis: the server does not start" >>"$work/failures"
    status=1
  fi
  "$redis" kill "$server"
}

# measure_broker BROKER PROGRAM_ARGUMENT...: starts a private broker, on the CPU of the servers.
measure_broker() {
  local name=$1 script=$folder/../tests/brokers/$1.sh broker=$work/$1 port database
  shift
  mkdir -p "$broker"
  # shellcheck source=tests/private_server.sh
  . "$folder/../tests/private_server.sh"
  take_ports
  if TXINBOX_BROKER_JVM='' taskset -c "$TXINBOX_BENCH_CPU_0" "$script" start "$broker" "$port" >&2; then
    for database in "${databases[@]}"; do
      # In RocketMQ, a topic and its group are made before they are used.
      if [ "$name" = rocketmq ] && ! { "$script" topic "$broker" "bench-$database" >&2 &&
        "$script" group "$broker" "bench-$database" >&2; }; then
        echo "$name on $database: there is no topic" >>"$work/failures"
        status=1
        continue
      fi
      measure "$name" "$database" "$(apart "$database")" durable --port "$port" "$@"
    done
  else
    echo "$name: the broker does not start" >>"$work/failures"
    status=1
  fi
  "$script" kill "$broker"
}

# SQLite has no server, so only the client uses a CPU.
placements() { if [ "$1" = sqlite3 ]; then echo one-cpu; else echo two-cpus one-cpu; fi; }
# The placement for a section that measures only one: the client has its own CPU.
apart() { if [ "$1" = sqlite3 ]; then echo one-cpu; else echo two-cpus; fi; }

for section in "$@"; do
  case $section in
    redis)
      measure_all_redis
      continue
      ;;
    kafka)
      measure_broker kafka --rounds "$(either 1 7)" --slot-ms "$(either 200 2000)" --messages "$(either 20000 300000)"
      continue
      ;;
    rabbitmq)
      measure_broker rabbitmq --rounds "$(either 1 5)" --slot-ms "$(either 200 1000)" \
        --messages "$(either 20000 200000)"
      continue
      ;;
    rocketmq)
      measure_broker rocketmq --rounds "$(either 1 7)" --slot-ms "$(either 300 1000)" --messages "$(either 5000 20000)"
      continue
      ;;
  esac
  for database in "${databases[@]}"; do
    case $section in
      describe) measure describe "$database" "$(apart "$database")" durable describe ;;
      transactions)
        for placement in $(placements "$database"); do
          for durability in durable relaxed; do
            measure transactions "$database" "$placement" "$durability" transactions --rounds "$(either 2 21)" \
              --slot-ms "$(either 10 25)" --at-most "$(either 2 15)"
          done
        done
        ;;
      round-trip)
        [ "$database" != sqlite3 ] || continue
        measure round-trip "$database" two-cpus durable transactions --variants by_hand,consume,batch_100_at_once --round-trip-us 1000 \
          --rounds "$(either 3 21)" --slot-ms "$(either 50 100)" --at-most "$(either 2 15)"
        ;;
      instructions)
        # Durability changes the work of the disk, but not the work of the client.
        measure instructions "$database" "$(apart "$database")" relaxed "$folder/instructions.sh" "$program" \
          "$(either 200 1000)" by_hand consume consume_session consume_native --
        ;;
      threads)
        measure threads "$database" "$(apart "$database")" durable threads --threads "$(either 1,4,16 1,2,4,8,16)" \
          --rounds "$(either 1 5)" --slot-ms "$(either 80 150)"
        ;;
      sizes)
        # On SQLite, this is enough for a checkpoint of the log in each round.
        messages=200
        [ "$database" != sqlite3 ] || messages=400
        measure sizes "$database" "$(apart "$database")" durable sizes \
          --rows "${TXINBOX_BENCH_ROWS:-$(either 1000,100000 1000,1000000,10000000)}" --rounds "$(either 3 21)" \
          --messages "$(either 100 "$messages")" --at-most "$(either 2 20)"
        ;;
      purge)
        # The purge's thread and the consuming thread have different CPUs.
        other_cpu=$TXINBOX_BENCH_CPU_0
        [ "$database" != sqlite3 ] || other_cpu=$TXINBOX_BENCH_CPU_1
        measure purge "$database" "$(apart "$database")" durable purge --rows "$(either 300000 10000000)" \
          --rounds "$(either 1 7)" --slot-ms "$(either 300 2000)" --rest-ms "$(either 100 1000)" --purge-cpu "$other_cpu"
        ;;
      page)
        measure page "$database" "$(apart "$database")" durable --rows "$(either 200000 10000000)" \
          --views "$(either 3 11)" --rounds "$(either 1 5)" --slot-ms "$(either 1000 30000)"
        ;;
      http)
        measure http "$database" "$(apart "$database")" durable --rounds "$(either 2 9)" --slot-ms "$(either 200 1000)"
        ;;
      outbox)
        measure outbox "$database" "$(apart "$database")" durable outbox --rounds "$(either 2 21)" \
          --slot-ms "$(either 20 100)" --backlog "$(either 10000 1000000)" --deleted "$(either 10000 200000)" \
          --delays "$(either 1 5)"
        ;;
      loop)
        # A commit that does not wait for the disk hides less of the loop's own time.
        measure loop "$database" "$(apart "$database")" relaxed loop --rounds "$(either 2 7)" \
          --messages "$(either 5000 50000)" --slot-ms "$(either 200 2000)"
        ;;
      growth)
        measure growth "$database" "$(apart "$database")" durable growth --rounds "$(either 1 7)" \
          --slot-ms "$(either 30 200)" --outbox "$(either 5000,30000 5000,30000,200000,1000000)"
        ;;
      redeliveries)
        measure redeliveries "$database" "$(apart "$database")" durable redeliveries --rounds "$(either 2 7)" \
          --messages "$(either 300 1000)"
        ;;
      memory)
        # Durability changes the time of the run, but not the memory.
        # The warm-up fills SQLite's page cache.
        messages=1000000 warm_up=20000
        if [ "$database" != sqlite3 ]; then messages=30000 warm_up=2000; fi
        if [ -n "$quick" ]; then messages=$((messages / 20)); fi
        measure memory "$database" "$(apart "$database")" relaxed memory --messages "$messages" --warm-up "$warm_up"
        ;;
      command)
        client=$database
        [ "$database" != mariadb ] || client=mysql
        measure command "$database" "$(apart "$database")" durable command --lines "$(either 20000 1000000)" \
          --rounds "$(either 1 3)" --command "$build/tools/cli/txinbox" \
          --by-hand "$build/bench/txinbox_consume_by_hand_$client"
        ;;
      slow-disk)
        # The servers were started with the library. On SQLite, the client itself writes.
        preload=
        [ "$database" != sqlite3 ] || preload=$build/bench/libtxinbox_fsync_delay.so
        for placement in $(either one-cpu "$(placements "$database")"); do
          LD_PRELOAD=$preload measure slow-disk "$database" "$placement" durable transactions --new-only \
            --variants consume,batch_100,by_hand_batch_100,batch_100_at_once,by_hand_batch_100_at_once --at-least-us 2000 --rounds "$(either 1 21)" \
            --at-most "$(either 2 7)"
        done
        ;;
    esac
  done
done
exit $status
