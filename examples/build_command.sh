# Installs missing packages and builds the command, for the scripts of this folder. To be sourced by bash.
# shellcheck shell=bash

# build_command PACKAGES: PACKAGES is a group of tests/install-packages.sh. Afterwards `txinbox` is on the
# PATH, and `command_folder` is its folder. With TXINBOX_EXAMPLE_COMMAND, the command is there already, in this folder.
build_command() {
  local root build
  if [ -n "${TXINBOX_EXAMPLE_COMMAND:-}" ]; then
    command_folder=$TXINBOX_EXAMPLE_COMMAND
    PATH=$command_folder:$PATH
    return
  fi
  root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  build=${TXINBOX_EXAMPLE_BUILD:-$root/build/example}
  "$root/tests/install-packages.sh" "$1"
  mkdir -p "$build"
  if [ ! -w "$build" ]; then
    echo "$build belongs to another user: remove it, or set TXINBOX_EXAMPLE_BUILD to one of your folders" >&2
    exit 1
  fi
  if ! cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DTXINBOX_BUILD_TESTS=OFF \
    -DTXINBOX_BUILD_EXAMPLES=OFF -DTXINBOX_BUILD_BENCHMARKS=OFF >"$build/configure.log" 2>&1; then
    cat "$build/configure.log" >&2
    exit 1
  fi
  echo "Building in $build (a few minutes the first time)"
  NINJA_STATUS="[%f/%t] " cmake --build "$build" --target txinbox-cli
  command_folder=$build/tools/cli
  PATH=$command_folder:$PATH
}
