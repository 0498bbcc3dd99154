#!/usr/bin/env bash
# Counts the instructions that the client runs for one message, and prints them as JSON. For bench/measure.sh.
#
# Usage: instructions.sh PROGRAM MESSAGES VARIANT... -- ARGUMENT...
#   PROGRAM    is txinbox_bench
#   MESSAGES   in the shorter of two runs; the other has twice as many
#   ARGUMENT   of the program: the database and its folder
#
# The difference of two runs is the cost of the messages alone, without what starts the process and opens connections.
# Valgrind counts, so the result does not depend on what else the machine does. It is the work of the client: SQLite's
# is in it, that of a server is not. The allocator keeps all small blocks that are freed by their size. Otherwise a count
# depends by up to 2 % on which blocks happen to lie beside each other.
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
