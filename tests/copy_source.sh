#!/usr/bin/env bash
# Copies the files of the checkout that Git knows, with their changes, into a new folder. A folder that is there is
# replaced. So a test can build a changed copy, or run a tool that writes beside the sources.
#
# Usage: tests/copy_source.sh FOLDER
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
rm -rf "$1"
mkdir "$1"
git -C "$root" ls-files -z | tar -C "$root" --null -T - -c | tar -C "$1" -x
