#!/usr/bin/env bash
# Checks the model of LeaseConsumer's protocol (tests/model) with spin. The check is exhaustive: each property in each
# variant of the protocol. It also checks mutations of the protocol. In each of them, spin must find the error.
#
# Usage: tests/model.sh [OPTION]...
#   --only TEXT   only the variants whose name contains TEXT
#   --trace       also print the shortest counterexample
#   --jobs N      check N variants at once; 2 by default
#   --help
#
# docs/internals/lease-model.md explains. Needs spin and a C compiler.
set -euo pipefail

command -v spin >/dev/null || { echo "tests/model.sh: skipped: spin is not installed"; exit 77; }
model=$(cd "$(dirname "$0")" && pwd)/model
only= trace= jobs=2

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "tests/model.sh: $* (try --help)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --only) [ -n "${2:-}" ] || wrong "--only needs a text"; only=$2; shift ;;
    --trace) trace=1 ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--jobs needs a number"; jobs=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done

# The faults that can occur in a run, and how often: a crash, a lost reply, a handler that throws, a lease that expires
# although its holder is alive.
faults="CRASHES=1 LOSSES=1 THROWS=1 OUTLIVES=1"

# One variant in each line: its name, the expected result ("holds", or the properties that may fail first), and its
# definitions. With COVERED, the search must reach each statement of the model.
variants() {
  cat <<END
Two workers                                     | holds              | COVERED OVERLAPS_CHECKED SECOND_RUNS_CHECKED PARKS RENEWS=1 $faults
More of everything, and redeliveries            | holds              | OVERLAPS_CHECKED SECOND_RUNS_CHECKED CRASHES=2 LOSSES=2 THROWS=1 OUTLIVES=2 REDELIVERIES=1
The row is forgotten                            | holds              | FORGETS=1 REDELIVERIES=1 $faults
Given-up statements arrive late                 | holds              | COVERED OVERLAPS_CHECKED SECOND_RUNS_CHECKED LATE RENEWS=1 $faults
The same, and the row is forgotten              | holds              | LATE FORGETS=1 CRASHES=1 LOSSES=1 OUTLIVES=1
TxConsumer has the message, too                 | holds              | TX $faults
The same, and the row is forgotten              | holds              | TX FORGETS=1 CRASHES=1 OUTLIVES=1
The clock steps back                            | holds              | CLOCK_BACKWARD RENEWS=1 $faults
It is acknowledged in the end                   | holds              | LIVENESS RENEWS=1 $faults
The same, with TxConsumer                       | holds              | LIVENESS TX CRASHES=1 LOSSES=1 OUTLIVES=1

What it does not promise
The service ignores fences                      | effects_in_order   | UNFENCED $faults
Coarse clock, and the row is forgotten          | fences_grow        | CLOCK_COARSE FORGETS=1 $faults
Clock stepping back, and the row is forgotten   | fences_grow        | CLOCK_BACKWARD FORGETS=1 $faults
  all but the fences                            | holds              | CLOCK_BACKWARD FENCES_UNCHECKED FORGETS=1 CRASHES=1 THROWS=1 OUTLIVES=1
Clock read before the row was free, forgotten   | fences_grow        | CLOCK_READ_EARLY FORGETS=1 $faults
  not forgotten                                 | holds              | CLOCK_READ_EARLY CRASHES=1 LOSSES=1 OUTLIVES=1
The clock jumps forward                         | deadline_kept      | JUMPS=1 RENEWS=1 $faults
  all but the deadline                          | holds              | JUMPS=1 DEADLINE_UNCHECKED RENEWS=1 CRASHES=1 LOSSES=1 THROWS=1

The store forgets
It evicts the row                               | holds              | COVERED EVICTIONS=1 RENEWS=1 $faults
  given-up statements arrive late               | holds              | LATE EVICTIONS=1 CRASHES=1 LOSSES=1 OUTLIVES=1
  it is acknowledged in the end                 | holds              | LIVENESS EVICTIONS=1 $faults
  one handler at a time                         | no_overlap         | OVERLAPS_CHECKED EVICTIONS=1
  no run after the acknowledgement              | no_second_run      | SECOND_RUNS_CHECKED EVICTIONS=1 REDELIVERIES=1
  the service ignores fences                    | effects_in_order   | UNFENCED EVICTIONS=1
A replica that is behind takes over             | holds              | FAILOVERS=1 REDELIVERIES=1 REFUSALS_UNCHECKED CRASHES=1 THROWS=1 OUTLIVES=1
  a renewal can be lost                         | holds              | COVERED FAILOVERS=1 RENEWS=1 REFUSALS_UNCHECKED DEADLINE_UNCHECKED $faults
  it is acknowledged in the end                 | holds              | LIVENESS FAILOVERS=1 REFUSALS_UNCHECKED CRASHES=1 LOSSES=1 OUTLIVES=1
  one handler at a time                         | no_overlap         | OVERLAPS_CHECKED FAILOVERS=1
  no run after the acknowledgement              | no_second_run      | SECOND_RUNS_CHECKED FAILOVERS=1 REDELIVERIES=1
  a renewed lease lasts                         | deadline_kept      | FAILOVERS=1 RENEWS=1 REFUSALS_UNCHECKED
  the service takes the holder's calls          | holder_not_refused | FAILOVERS=1 OUTLIVES=1
  the replica's clock is behind                 | fences_grow        | CLOCK_BACKWARD FAILOVERS=1 REFUSALS_UNCHECKED CRASHES=1

Mutations
Completes without token and fence               | own_lease_only     | COMPLETE_UNCHECKED $faults
Renews without                                  | own_lease_only     | RENEW_UNCHECKED RENEWS=1 $faults
Releases without                                | own_lease_only     | RELEASE_UNCHECKED $faults
Parks without                                   | own_lease_only     | PARK_UNCHECKED PARKS $faults
By fence alone; coarse clock, forgotten         | own_lease_only     | OWNER_BY_FENCE CLOCK_COARSE FENCES_UNCHECKED FORGETS=1 $faults
By token alone; late, forgotten                 | own_lease_only     | OWNER_BY_TOKEN LATE FORGETS=1 CRASHES=1 LOSSES=1 THROWS=1
A token for each worker, not for each call      | deadline_kept      | TOKEN_PER_WORKER LATE RENEWS=1 $faults
Takes over whatever the state                   | one_completion     | TAKEOVER_WITHOUT_STATE $faults
Takes over what was renewed meanwhile           | deadline_kept      | TAKEOVER_WITHOUT_EXPIRY RENEWS=1 $faults
Takes over what another took over               | fences_grow        | TAKEOVER_WITHOUT_COMPARE CLOCK_BACKWARD RENEWS=1 $faults
Takes over blindly                              | deadline_kept      | TAKEOVER_WITHOUT_EXPIRY TAKEOVER_WITHOUT_COMPARE $faults
Takes over never                                | delivered          | NO_TAKEOVER LIVENESS $faults
TxConsumer does not count the rows it took over | one_completion     | TX_IGNORES_ROW_COUNT TX $faults
Nor a worker those it completed                 | own_completion     | COMPLETE_IGNORES_ROW_COUNT $faults
Any completion is its own                       | own_completion     | ANY_COMPLETION_IS_OWN $faults
A row that vanished after the insert: consumed  | justified          | VANISHED_IS_CONSUMED FORGETS=1 $faults
A row that vanished before the completion: too  | justified          | VANISHED_IS_COMPLETED FORGETS=1 $faults
Deadline counted from the reply                 | deadline_kept      | DEADLINE_FROM_REPLY $faults
Deadline counted from the repeated claim        | deadline_kept      | DEADLINE_FROM_REPEATED_CLAIM $faults
Fence from the clock alone; coarse              | fences_grow        | FENCE_FROM_CLOCK_ALONE CLOCK_COARSE $faults
Fence from 1 on; forgotten                      | fences_grow        | FENCE_FROM_ONE FORGETS=1 $faults
END
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# check FOLDER EXPECTED DEFINE...: writes the result and the figures into the folder.
check() {
  local folder=$1 expected=$2 covered= search=() compile=(-O1) defines=()
  shift 2
  for define; do
    case $define in
      COVERED) covered=1 ;;
      *) defines+=("-D$define") ;;
    esac
  done
  case " $* " in
    *" LIVENESS "*) search=(-a -f) ;;
    *) compile+=(-DSAFETY -DNOCLAIM) ;;
  esac
  # A variant that fails does so early, so the compiler need not optimize it.
  if [ "$expected" != holds ]; then compile[0]=-O0; fi

  cd "$folder"
  cp "$model"/*.pml .
  : >pan.log
  spin -a "${defines[@]}" lease.pml >spin.log 2>&1 && cc -w "${compile[@]}" -DMEMLIM=900 -o pan pan.c &&
    ./pan -m20000 "${search[@]}" >pan.log 2>&1 || true

  local found
  found=$(sed -n 's/.*assertion violated .*(\([a-z_]*\)!=0.*/\1/p' pan.log | head -n 1)
  if [ -z "$found" ]; then
    if grep -q 'acceptance cycle (at' pan.log; then found=delivered
    elif grep -q 'invalid end state (at' pan.log; then found="stuck"
    elif grep -qE 'too small|out of memory|Search not completed' pan.log; then found="not exhaustive"
    elif grep -q 'errors: 0' pan.log; then found=holds
    else found="no verdict"
    fi
  fi
  if [ -n "$covered" ] && [ "$found" = holds ]; then
    if grep -E '\.pml:[0-9]+, state' pan.log | grep -v '"-end-"' >unreached.log; then found="not reached"; fi
  fi
  echo "$found" >found
  if [ -s lease.pml.trail ] && { [ -n "$trace" ] || [ "$found" != "$expected" ]; }; then explain; fi
  sed -n 's/^ *\([0-9.e+]*\) states, stored.*/\1/p' pan.log >states
  sed -n 's/.*depth reached \([0-9]*\),.*/\1/p' pan.log >depth
}

# Searches for a shorter way to the error, and prints its steps.
explain() {
  if [ ${#search[@]} = 0 ]; then
    rm -f lease.pml.trail
    cc -w "${compile[@]}" -DREACH -DMEMLIM=900 -o pan pan.c && ./pan -m1000 -i >/dev/null 2>&1 || true
  fi
  spin -t -B -T -k lease.pml.trail "${defines[@]}" lease.pml 2>&1 |
    sed -nE '/^ *(  the reply|  lease|worker|TxConsumer|a tick|the |late_|  late_|<<<)/{s/^ */    /;p}' >trace || true
}

variants >"$work/variants"
number=0
while IFS='|' read -r name expected defines; do
  number=$((number + 1))
  if [ -z "$expected" ] || { [ -n "$only" ] && [[ $name != *"$only"* ]]; }; then continue; fi
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n || true; done
  mkdir "$work/$number"
  # shellcheck disable=SC2086  # words
  (check "$work/$number" ${expected// /} $defines) &
done <"$work/variants"
wait
[ -n "$(ls -d "$work"/[0-9]* 2>/dev/null)" ] || wrong "no variant is named '$only'"

printf '%-47s %9s %6s  %-18s %s\n' "" states depth expected found
status=0 number=0
while IFS= read -r line; do
  IFS='|' read -r name expected defines <<<"$line"
  number=$((number + 1)) expected=${expected// /}
  if [ -z "$expected" ]; then
    if [ -z "$only" ]; then echo "$line"; fi
    continue
  fi
  [ -d "$work/$number" ] || continue
  cd "$work/$number"
  found=$(cat found) verdict=
  if [ "$found" != "$expected" ]; then status=1 verdict="  WRONG"; fi
  printf '%s %9s %6s  %-18s %s\n' "${line%%|*}" "$(cut -d. -f1 states)" "$(cat depth)" "$expected" "$found$verdict"
  if [ -n "$trace$verdict" ]; then cat trace 2>/dev/null || true; fi
  if [ -n "$verdict" ]; then cat spin.log unreached.log 2>/dev/null || true; fi
done <"$work/variants"
echo "count: $(find "$work" -mindepth 2 -maxdepth 2 -name found | wc -l) variants of the protocol"
exit $status
