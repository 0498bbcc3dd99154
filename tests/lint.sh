#!/usr/bin/env bash
# Runs clang-tidy on the library, the command and the components.
#
# Usage: lint.sh BUILD_FOLDER [FILE]...
#   FILE  a source of the build; by default, all of them
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1
shift
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cd "$root"
files=("^$root/(src|tools|components/[^/]+/src)/")
if [ $# -gt 0 ]; then files=("${@/#/^$root/}") && files=("${files[@]/%/\$}"); fi
if ! run-clang-tidy-14 -quiet -j "$(nproc)" -p "$folder" "${files[@]}" >"$log" 2>&1; then
  # Removes the commands and the number of suppressed warnings from the output.
  sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -vE '^(clang-tidy-14|\[[0-9]+/[0-9]+\]) |warnings generated|^$'
  exit 1
fi
echo "count: $(grep -c '^clang-tidy-14' "$log" || true) files without a finding"
