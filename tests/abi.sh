#!/usr/bin/env bash
# Checks the binary interface of the shared libraries: that they export what the public headers declare and nothing of
# other libraries, and that it is compatible with that of the last release.
#
# Usage: tests/abi.sh BUILD_FOLDER [REVISION]
#   REVISION  what to compare with; by default the last tag
#
# A break is right only with a new MINOR, because the name of a shared library has it (docs/internals/releasing.md). The
# script also breaks the interface in a copy, and fails if abidiff does not find that. It takes about 15 minutes.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
[ $# = 1 ] || [ $# = 2 ] || { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
mkdir -p "$1/abi"
build=$(cd "$1/abi" && pwd)
revision=${2:-$(git -C "$root" describe --tags --abbrev=0 2>/dev/null || true)}

step() { printf '== [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }
fail() { echo "abi.sh: $*" >&2; exit 1; }

# build_libraries NAME SOURCE TARGET...: builds shared libraries with what abidiff reads, in $build/NAME.
build_libraries() {
  cmake -S "$2" -B "$build/$1" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS=-Og -DBUILD_SHARED_LIBS=ON \
    -DTXINBOX_BUILD_TESTS=OFF -DTXINBOX_BUILD_EXAMPLES=OFF -DTXINBOX_BUILD_BENCHMARKS=OFF -DTXINBOX_BUILD_CLI=OFF \
    -DTXINBOX_WITH_OPENTELEMETRY=OFF \
    -DCMAKE_CXX_COMPILER_LAUNCHER="$(command -v ccache || true)" >"$build/$1.log" 2>&1 &&
    cmake --build "$build/$1" --target "${@:3}" >>"$build/$1.log" 2>&1 ||
    { tail -20 "$build/$1.log" >&2; fail "the libraries of $1 do not build: $build/$1.log"; }
}

# compare OLD NEW LIBRARY: prints what has changed in a library, except what was added. Fails if that is anything. Only
# types of public headers count. Both sides have the same names of headers, so those of this checkout do for both.
compare() {
  local status=0 folder headers=()
  for folder in "$root"/include "$root"/components/*/include; do
    headers+=(--headers-dir1 "$folder" --headers-dir2 "$folder")
  done
  abidiff --no-added-syms --no-show-locs --suppressions "$root/tests/abi.abignore" "${headers[@]}" "$1" "$2" \
    >"$build/$3.diff" 2>&1 || status=$?
  cat "$build/$3.diff"
  # The bits 1 and 2 are an error of the program, or of its use.
  [ $((status & 3)) = 0 ] || fail "abidiff failed with status $status"
  return $((status == 0 ? 0 : 1))
}

components=(http kafka rabbitmq redis rocketmq)
libraries=(txinbox_core txinbox)
for component in "${components[@]}"; do libraries+=("txinbox_$component"); done

step "Build the shared libraries"
build_libraries now "$root" "${libraries[@]}"

step "What they export"
for library in "${libraries[@]}"; do
  file=$(find "$build/now" -name "lib$library.so")
  symbols=$(nm -DC --defined-only "$file" | cut -d' ' -f3-)
  foreign=$(grep -vE '^((vtable|typeinfo|typeinfo name|guard variable|VTT) for )?txinbox::|^txinbox_|^$' <<<"$symbols" || true)
  [ -z "$foreign" ] || fail "lib$library.so exports what is not of txinbox: $foreign"
  printf '  %-22s %5d symbols\n' "lib$library.so" "$(wc -l <<<"$symbols")"
done

if [ -n "$revision" ]; then
  step "Compare with $revision"
  mkdir -p "$build/before.source"
  git -C "$root" archive "$revision" | tar -x -C "$build/before.source"
  build_libraries before "$build/before.source" "${libraries[@]}"
  changed=
  for library in "${libraries[@]}"; do
    compare "$(find "$build/before" -name "lib$library.so")" "$(find "$build/now" -name "lib$library.so")" "$library" ||
      changed+=" lib$library.so"
  done
  minor() { sed -n 's/^#define TXINBOX_VERSION_MINOR *//p' "$1/include/txinbox/version.hpp"; }
  if [ -n "$changed" ]; then
    [ "$(minor "$build/before.source")" != "$(minor "$root")" ] ||
      fail "a program of $revision does not run with these libraries: $changed; a break needs a new MINOR"
    echo "The MINOR is a new one, so the breaks are right."
  fi
else
  echo "There is no tag, so there is no release to compare with."
fi

# seed NAME LIBRARY FILE SED_PROGRAM: a copy of the source with a change, and a library of it.
seed() {
  "$root/tests/copy_source.sh" "$build/$1.source"
  sed -i "$4" "$build/$1.source/$3"
  ! cmp -s "$root/$3" "$build/$1.source/$3" || fail "the change $1 changes nothing in $3"
  build_libraries "$1" "$build/$1.source" "$2"
}
# library NAME LIBRARY: its file in the build NAME.
library() { find "$build/$1" -name "lib$2.so"; }

step "A break: a new first member of a public struct"
seed public txinbox_core include/txinbox/message.hpp 's/^struct Message {$/struct Message {\n  long new_member = 0;/'
if compare "$(library now txinbox_core)" "$(library public txinbox_core)" public; then fail "abidiff does not find the break"; fi

step "A break: a new first member of a public struct of a component"
seed component txinbox_redis components/redis/include/txinbox/redis.hpp 's/^struct RedisOptions {$/struct RedisOptions {\n  long new_member = 0;/'
if compare "$(library now txinbox_redis)" "$(library component txinbox_redis)" component; then fail "abidiff does not find the break"; fi

step "No break: a new member of a class that is not public"
seed internal txinbox_core src/pool/pool_state.hpp 's/^class PoolState {$/class PoolState {\n  long new_member_ = 0;/'
compare "$(library now txinbox_core)" "$(library internal txinbox_core)" internal || fail "abidiff reports a class that is not public"
step "The interface is as it should be"
echo "count: ${#libraries[@]} shared libraries"
echo "count: 2 seeded breaks found"
