#!/usr/bin/env bash
# Counts the instructions that the client runs for one message, and prints them as JSON. For bench/measure.sh.
#
# Usage: instructions.sh PROGRAM MESSAGES VARIANT... -- ARGUMENT...
#   PROGRAM    is txinbox_bench
#   MESSAGES   the number of messages in the shorter of two runs; the other run has twice as many
#   ARGUMENT   an argument of the program: the database and its folder
#
# The difference of two runs is the cost of the messages alone, without the start of the process and its connections.
# Valgrind counts, so other work of the machine does not change the result. The count includes the client and SQLite,
# but not a server. The allocator keeps all freed small blocks in lists by their size. Otherwise the count varies by up
# to 2 % with the layout of the heap.
set -euo pipefail

program=$1 messages=$2
shift 2
variants=()
while [ "$1" != -- ]; do variants+=("$1"); shift; done
shift

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export GLIBC_TUNABLES=glibc.malloc.tcache_count=60000

instructions() { # VARIANT MESSAGES ARGUMENT...
  valgrind --quiet --tool=callgrind --callgrind-out-file="$work/counts" \
    "$program" variant --name "$1" --messages "$2" "${@:3}" >/dev/null
  sed -n 's/^totals: //p' "$work/counts"
}

result=
for variant in "${variants[@]}"; do
  once=$(instructions "$variant" "$messages" "$@")
  twice=$(instructions "$variant" $((2 * messages)) "$@")
  result+="${result:+,}\"$variant\":$(((twice - once) / messages))"
done
printf '{"instructions":{%s}}\n' "$result"
