# For scripts that run storms on servers which they kill. To be sourced by bash.
# shellcheck shell=bash

# take_arguments ARGUMENT...: reads [--seconds N] [--kills N] BUILD_FOLDER. It sets `seconds` and `kills`, whose defaults
# the script has set, `build`, `txinbox` and `torture`.
take_arguments() {
  while [ $# -gt 1 ]; do
    case $1 in
      --seconds) seconds=$2 ;;
      --kills) kills=$2 ;;
      *) echo "${0##*/}: unknown option $1" >&2; exit 2 ;;
    esac
    shift 2
  done
  [ $# = 1 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
  build=$(cd "$1" && pwd)
  # shellcheck disable=SC2034  # the script's
  txinbox=$build/tools/cli/txinbox torture=$build/tools/torture/txinbox-torture
}

# check WHAT FOUND WANTED
check() {
  [ "$2" = "$3" ] || fail "$1: $2 instead of $3"
}

# write_orders: writes 300 orders for each of the consumers `alone` and `batches`.
write_orders() {
  local consumer i
  for consumer in alone batches; do
    for ((i = 0; i < 300; i++)); do echo "{\"consumer\": \"$consumer\", \"no\": \"order$i\"}"; done >"$folder/$consumer.jsonl"
  done
}

# consume CONSUMER BATCH: consumes the 300 orders of write_orders.
consume() {
  "$txinbox" consume --consumer "$1" --key /no --batch "$2" \
    --sql 'insert into t_order(no, consumer) values (:no, :consumer)' "$folder/$1.jsonl" || fail "consume of $1"
}

# Adds a line "count: N WHAT" for the rows of a storm's table that a step of tests/run.sh adds up.
with_counts() {
  local names='keys|deliveries|effects|messages|dead letters|redriven|kills before acknowledgement|commands run'
  awk -v row="^($names|(workers|relays|operators) killed) +[0-9,]+\$" '{ print }
    match($0, row) {
      number = $NF; gsub(",", "", number); $NF = ""; sub(/ +$/, "")
      print "count: " number " " ($0 == "commands run" ? "servers killed" : $0)
    }'
}

# storms: calls `storm KIND SECONDS KILLS` of the script for each kind. The storm of transactions lasts `seconds`.
storms() {
  storm tx "$seconds" "$kills"
  storm lease $(((seconds + 1) / 2)) $(((kills + 1) / 2))
  storm outbox $(((seconds + 1) / 2)) $(((kills + 1) / 2))
}
