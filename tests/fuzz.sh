#!/usr/bin/env bash
# Runs the fuzz targets (tests/fuzz): each over its committed corpus, then over random inputs.
#
# Usage: tests/fuzz.sh [OPTION]...
#   --seconds N     try different random inputs for N seconds on each target; by default 3000 inputs, always the same
#   --target NAME   only this target; may be repeated
#   --keep FOLDER   also use the inputs in this folder, and store new inputs there that cover more
#   --jobs N        run N targets at once; by default, one for each processor
#   --help
#
# Needs clang's libFuzzer (libclang-rt-14-dev); builds in build/fuzz. Inputs on which a target fails are stored in
# build/fuzz/findings, with the log.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
seconds= keep= jobs=$(nproc)
targets=()

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
wrong() { echo "tests/fuzz.sh: $* (try --help)" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--seconds needs a number"; seconds=$2; shift ;;
    --target) [ -f "$root/tests/fuzz/${2:-}.cpp" ] || wrong "there is no target '${2:-}'"; targets+=("$2"); shift ;;
    --keep) [ -n "${2:-}" ] || wrong "--keep needs a folder"; keep=$2; shift ;;
    --jobs) [[ ${2:-} =~ ^[1-9][0-9]*$ ]] || wrong "--jobs needs a number"; jobs=$2; shift ;;
    --help | -h) usage; exit 0 ;;
    *) wrong "unknown option $1" ;;
  esac
  shift
done
cd "$root"
if [ ${#targets[@]} = 0 ]; then mapfile -t targets < <(ls tests/fuzz/corpus); fi

build=$root/build/fuzz
mkdir -p "$build"
cmake --preset fuzz >"$build/configure.log" 2>&1 || { cat "$build/configure.log" >&2; exit 1; }
cmake --build --preset fuzz -j "$jobs" --target "${targets[@]/#/txinbox_fuzz_}" >"$build/build.log" 2>&1 || { cat "$build/build.log" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$build/findings"

# The options of libFuzzer for a target. There are none if its inputs are arbitrary bytes.
dictionary() {
  case $1 in
    sql_*) echo sql ;;
    url) echo url ;;
    http_*) echo http ;;
    text | duration) ;;
    *) echo json ;;
  esac
}

fuzz() {
  local target=$1 seeds=$root/tests/fuzz/corpus/$1 log=$work/$1.log new=${keep:-$work/new}/$1 words
  local options=(-timeout=10 -print_final_stats=1 -artifact_prefix="$build/findings/$target-")
  # A run of all tests must always try the same inputs.
  if [ -n "$seconds" ]; then options+=(-max_total_time="$seconds"); else options+=(-seed=1 -runs=3000); fi
  words=$(dictionary "$target")
  if [ -n "$words" ]; then options+=(-dict="$root/tests/fuzz/dictionaries/$words.txt"); fi
  mkdir -p "$new"
  if ! "$build/tests/fuzz/$target" "${options[@]}" "$new" "$seeds" >"$log" 2>&1; then
    cp "$log" "$build/findings/$target.log"
    grep -aE 'claim broken|ERROR|runtime error|terminate|Test unit' "$log" | sed "s/^/$target: /" >&2
    return 1
  fi
  sed -nE 's/^#([0-9]+)[[:space:]]+DONE .*/count: \1 inputs of random bytes/p' "$log"
  echo "count: 1 fuzz targets"
  # The last figures that it printed: "#1234 DONE cov: 56 ft: 78 …".
  sed -nE "s/^#([0-9]+)[[:space:]]+DONE +cov: ([0-9]+) ft: ([0-9]+) .*/$target: $(ls "$seeds" | wc -l) seeds, \1 runs, \2 edges, \3 features/p" "$log"
}

# At most `jobs` targets at a time.
status=0 running=0
for target in "${targets[@]}"; do
  if [ $running -ge "$jobs" ]; then wait -n || status=1; running=$((running - 1)); fi
  fuzz "$target" &
  running=$((running + 1))
done
while [ $running -gt 0 ]; do wait -n || status=1; running=$((running - 1)); done
exit $status
