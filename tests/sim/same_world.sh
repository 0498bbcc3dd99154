#!/bin/sh
# A seed gives the same world each time, in every process: otherwise, no failure could be repeated.
# same_world.sh TXINBOX_SIM
set -eu

world() { "$1" --first 1 --count 6 | sed 's/ in [0-9]* s$//'; }

first=$(world "$1")
second=$(world "$1")
if [ "$first" != "$second" ]; then
  printf 'The same seeds gave two worlds:\n%s\n%s\n' "$first" "$second" >&2
  exit 1
fi
printf '%s\n' "$first"
