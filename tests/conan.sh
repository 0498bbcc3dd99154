#!/usr/bin/env bash
# Makes the Conan package in four variants with the client libraries of this machine, and builds and runs a user's program
# with each: static, shared, without SOCI, with all components.
#
# Usage: tests/conan.sh BUILD_FOLDER
#
# Conan comes from Python's package index into BUILD_FOLDER/conan. Its cache is there, too. It takes about 12 minutes.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
mkdir -p "$1/conan"
folder=$(cd "$1/conan" && pwd)
export CONAN_HOME=$folder/home
if command -v ccache >/dev/null; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi

step() { printf '== [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }

if [ ! -x "$folder/venv/bin/conan" ]; then
  step "Install Conan"
  python3 -m venv "$folder/venv"
  "$folder/venv/bin/pip" install --quiet 'conan==2.34.0'
fi
conan=$folder/venv/bin/conan
"$conan" profile detect --force >"$folder/profile.log" 2>&1

# A copy, because Conan writes into the folder of the test package.
"$root/tests/copy_source.sh" "$folder/source"

# create NAME OPTION...
create() {
  local options=()
  for option in "${@:2}"; do options+=(-o "&:$option"); done
  step "$1"
  "$conan" create "$folder/source/packaging/conan" --no-remote --build=missing -s compiler.cppstd=20 -o '&:dependencies=system' \
    "${options[@]}" >"$folder/$1.log" 2>&1 || { tail -30 "$folder/$1.log" >&2; echo "conan.sh: $1 failed: $folder/$1.log" >&2; exit 1; }
  # The user's program prints its outcomes. The one without SOCI prints nothing.
  grep -E '^0\.[0-9.]+: consumed, already_consumed, 1 effect$' "$folder/$1.log" || [ "$1" = without-soci ]
}
create static
create shared shared=True
create without-soci soci=False
create components shared=True http=True kafka=True rabbitmq=True redis=True rocketmq=True
step "All variants"
echo "count: 4 variants"
