#!/usr/bin/env bash
# Runs clang-tidy on the library, the command and the components.
#
# Usage: lint.sh BUILD_FOLDER [JOBS]
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
folder=$1 jobs=${2:-$(nproc)}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

cd "$root"
if ! run-clang-tidy-14 -quiet -j "$jobs" -p "$folder" "^$root/(src|tools|components/[^/]+/src)/" >"$log" 2>&1; then
  # Removes the commands and the number of suppressed warnings from the output.
  sed 's/\x1b\[[0-9;]*m//g' "$log" | grep -vE '^(clang-tidy-14|\[[0-9]+/[0-9]+\]) |warnings generated|^$'
  exit 1
fi
echo "clang-tidy: $(grep -c '^clang-tidy-14' "$log" || true) files, nothing found"
