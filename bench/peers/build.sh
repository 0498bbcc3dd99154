#!/usr/bin/env bash
# Builds the adapters of the peers in build/peers. For bench/peers/run.sh.
#
# Usage: build.sh LANGUAGE...     c++, java, go or node
# If the tools or packages of a language are not available, it prints a message, and the driver omits these peers.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/peers
mkdir -p "$build"

left_out() { echo "bench/peers: without the peers in $1: $2" >&2; }

# install COMMAND PACKAGE...: installs the packages of Debian if the command is missing.
install() {
  local command=$1
  shift
  if command -v "$command" >/dev/null; then return; fi
  [ "$(id -u)" = 0 ] || return 1
  apt-get -q update >"$build/apt.log" 2>&1 &&
    DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "$@" >>"$build/apt.log" 2>&1
}

build_cpp() {
  cmake --preset release -S "$root" >"$build/cmake.log" 2>&1 &&
    cmake --build "$root/build/release" --target txinbox_bench_peer >&2
}

build_java() {
  install javac default-jdk-headless && install mvn maven || { left_out Java "no JDK or no Maven"; return; }
  # The class path is written last. Without it, the driver omits these peers.
  rm -f "$build/java/classpath"
  mvn -q -B -f "$here/java/pom.xml" -Dpeers.build="$build/java" compile dependency:build-classpath \
    -Dmdep.outputFile="$build/java/new-classpath" >"$build/java.log" 2>&1 &&
    mv "$build/java/new-classpath" "$build/java/classpath" || left_out Java "see $build/java.log"
}

build_go() {
  install go golang-go || { left_out Go "no Go"; return; }
  rm -f "$build/go-adapter"
  (cd "$here/go" && go build -o "$build/go-adapter" .) >"$build/go.log" 2>&1 || left_out Go "see $build/go.log"
}

build_node() {
  install node nodejs && install npm npm || { left_out Node.js "no Node.js or no npm"; return; }
  mkdir -p "$build/node"
  cp "$here"/node/*.js* "$build/node/"
  (cd "$build/node" && npm install --omit=dev --no-package-lock --no-audit --no-fund) >"$build/node.log" 2>&1 ||
    left_out Node.js "see $build/node.log"
}

for language in "$@"; do
  case $language in
    c++) build_cpp ;;
    java) build_java ;;
    go) build_go ;;
    node) build_node ;;
    *) echo "build.sh: unknown language $language" >&2; exit 2 ;;
  esac
done
