#!/usr/bin/env bash
# Builds the programs of Vitess: vtgate, vttablet, vtctld and vtctldclient. Prints the folder of the programs.
#
# Usage: tests/get_vitess.sh
#
# tests/vitess/go.mod and go.sum pin Vitess and what it needs. The script installs nothing. It needs the Go compiler that
# go.mod names, which Debian 12 does not have, and about seven minutes of two CPUs the first time. It keeps the programs
# in the cache folder: $XDG_CACHE_HOME or ~/.cache. For root, the folder is /var/cache, because the user of the servers
# must be able to run them.
#
# Exit status: 77 if there is no such compiler, or the modules cannot be fetched.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
module=$root/tests/vitess
if [ "$(id -u)" = 0 ]; then cache=/var/cache; else cache=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=$cache/txinbox
programs=$cache/vitess-$(cat "$module/go.mod" "$module/go.sum" | sha256sum | cut -c 1-12)

skip() {
  echo "skipped: get_vitess.sh: $1" >&2
  exit 77
}

mkdir -p "$cache"
exec 9>"$cache/vitess.lock"
flock 9
if [ ! -d "$programs" ]; then
  wanted=$(sed -n 's/^go //p' "$module/go.mod")
  export GOTOOLCHAIN=local GOFLAGS=-mod=readonly
  command -v go >/dev/null || skip "there is no Go; Vitess needs Go $wanted"
  (cd "$module" && go list -m >/dev/null 2>&1) || skip "$(go version) is older than Go $wanted"
  echo "Building Vitess $(sed -n 's/.*vitess.io\/vitess v//p' "$module/go.mod"): about seven minutes" >&2
  (cd "$module" && go mod download >&2) || skip "the modules cannot be fetched"
  rm -rf "$programs.new"
  for program in vtctld vtctldclient vtgate vttablet; do
    (cd "$module" && go build -o "$programs.new/$program" "vitess.io/vitess/go/cmd/$program" >&2)
  done
  mv "$programs.new" "$programs"
fi
echo "$programs"
