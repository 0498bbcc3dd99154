#!/usr/bin/env bash
# Runs the benchmark of two revisions in turns. The servers must be running. For bench/run.sh, which sets
# TXINBOX_BENCH_*.
#
# Usage: compare.sh OTHER_PROGRAM
#   OTHER_PROGRAM  txinbox_bench of the other revision; TXINBOX_BENCH_BUILD has that of this revision
#
# Each round appends one line of JSON for each program to $TXINBOX_BENCH_WORK/rounds.jsonl. In each round, the other
# program begins.
set -euo pipefail

other=$1 this=$TXINBOX_BENCH_BUILD/bench/txinbox_bench work=$TXINBOX_BENCH_WORK
read -r -a databases <<<"$TXINBOX_BENCH_DATABASES"
rounds=15
if [ -n "$TXINBOX_BENCH_QUICK" ]; then rounds=3; fi

# measure REVISION PROGRAM ROUND: runs the program for three of its rounds, and records their median.
measure() {
  local result
  result=$(taskset -c "$TXINBOX_BENCH_CPU_1" "$2" transactions --database "$database" --folder "$work" --rounds 3 \
    --slot-ms 50 --variants by_hand,consume,consume_soci_handler,batch_100)
  printf '{"database":"%s","revision":"%s","round":%d,"result":%s}\n' "$database" "$1" "$3" "$result" \
    >>"$work/rounds.jsonl"
}

for database in "${databases[@]}"; do
  for ((round = 0; round < rounds; round++)); do
    printf '== [%d:%02d] %s: round %d of %d\n' $((SECONDS / 60)) $((SECONDS % 60)) "$database" $((round + 1)) "$rounds" >&2
    if [ $((round % 2)) = 0 ]; then
      measure other "$other" "$round"
      measure this "$this" "$round"
    else
      measure this "$this" "$round"
      measure other "$other" "$round"
    fi
  done
done
