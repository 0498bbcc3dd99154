#!/usr/bin/env bash
# Builds the Debian packages in a fresh Debian 12, and tests them in a second one: lintian, install, the programs of
# debian/tests, upgrade and purge. autopkgtest runs the programs in a third one.
#
# Usage: tests/debian.sh OUTPUT_FOLDER [--debs]
#   OUTPUT_FOLDER  the packages go there, with the log of their build
#   --debs         take the packages that are there already, instead of building them
#
# Needs root. It takes about 25 minutes, most of it the build. The systems are folders in $TMPDIR (or /tmp), 4 GB
# together.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; exit 2; }
[ $# = 1 ] || { [ $# = 2 ] && [ "$2" = --debs ]; } || usage
mkdir -p "$1"
output=$(cd "$1" && pwd) built=${2:-}
[ "$(id -u)" = 0 ] || { echo "debian.sh: only root can make a Debian system" >&2; exit 1; }

work=$(mktemp -d "${TMPDIR:-/tmp}/txinbox-packages.XXXXXX")
trap 'rm -rf "$work"' EXIT

step() { printf '== [%d:%02d] %s\n' $((SECONDS / 60)) $((SECONDS % 60)) "$*"; }
fail() { echo "debian.sh: $*" >&2; exit 1; }

# The version that version.hpp has.
version=$(sed -n 's/^#define TXINBOX_VERSION_\(MAJOR\|MINOR\|PATCH\) *\([0-9]*\)$/\2/p' "$root/include/txinbox/version.hpp" |
  paste -sd .)
grep -q "^txinbox ($version)" "$root/debian/changelog" ||
  fail "debian/changelog does not begin with version $version, which include/txinbox/version.hpp has"

# new_system NAME PACKAGE...: a fresh Debian 12 with these packages, from the mirror that this machine uses.
new_system() {
  local include
  include=$(IFS=,; echo "${*:2}")
  mmdebstrap --quiet --variant=apt --components=main --include="ca-certificates${include:+,$include}" \
    bookworm "$work/$1" >"$output/$1.log" 2>&1 || { tail -20 "$output/$1.log" >&2; fail "no Debian 12 for $1"; }
}

# in_system NAME COMMAND: runs a shell's command as root of this system. The mounts end with it.
in_system() {
  unshare --mount --propagation private sh -ec '
    mount -t proc proc "$1/proc"
    mkdir -p "$1/packages"
    mount --bind "$2" "$1/packages"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 \
      chroot "$1" sh -ec "$3"' sh "$work/$1" "$output" "$2"
}

if [ -z "$built" ]; then
  step "A fresh Debian 12 with the packages that the build needs"
  rm -f "$output"/*.deb "$output"/*.changes "$output"/*.buildinfo
  dependencies=$(sed -n '/^Build-Depends:/,/^$/p' "$root/debian/control" | sed -n 's/^ \([a-z0-9+.-]*\).*/\1/p; s/^Build-Depends: *//p' |
    sed 's/^debhelper-compat$/debhelper/')
  # shellcheck disable=SC2086  # a list of packages
  new_system build build-essential lintian $dependencies
  "$root/tests/copy_source.sh" "$work/build/source"
  step "Build"
  in_system build "cd /source && dpkg-buildpackage --build=binary --no-sign -j$(nproc) &&
    cp ../txinbox*.deb ../libtxinbox*.deb ../*.changes ../*.buildinfo /packages" >"$output/dpkg-buildpackage.log" 2>&1 ||
    { tail -30 "$output/dpkg-buildpackage.log" >&2; fail "the build failed: $output/dpkg-buildpackage.log"; }
  step "lintian"
  # The owner has not chosen an address for mail yet.
  in_system build "lintian --allow-root --fail-on error,warning \
    --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog /packages/*.changes"
fi
(cd "$output" && ls -1 ./*.deb)

# repository FOLDER: makes a folder of packages one that apt can use.
repository() { (cd "$1" && dpkg-scanpackages --multiversion . >Packages 2>"$output/repository.log"); }
repository "$output"

step "Install in a fresh Debian 12"
new_system user
cp -r "$root/debian/tests" "$work/user/tests"
echo 'deb [trusted=yes] file:/packages ./' >"$work/user/etc/apt/sources.list.d/txinbox.list"
install() { in_system user "apt-get -q update && apt-get -q -y install --no-install-recommends $*" >>"$output/user.log" 2>&1 ||
  { tail -20 "$output/user.log" >&2; fail "apt-get install $* failed"; }; }
# The command of docs/operations/building.md. Later, the packages come from the folder, as from a mirror.
install sqlite3 "/packages/txinbox_*.deb /packages/libtxinbox0.1_*.deb /packages/libtxinbox-http0.1_*.deb" \
  "/packages/libtxinbox-redis0.1_*.deb"
echo "The command depends on $(in_system user "ldd /usr/bin/txinbox | wc -l") shared objects."
if in_system user "dpkg -l" | grep -E 'grpc|protobuf|librdkafka|librabbitmq'; then
  fail "the package txinbox pulls a broker's client library"
fi
for test in consume no-plugin; do
  step "$test"
  in_system user "/tests/$test"
done
in_system user "man -w txinbox txinbox-torture >/dev/null 2>&1 || test -e /usr/share/man/man1/txinbox-torture.1.gz"
install txinbox-kafka txinbox-rabbitmq txinbox-rocketmq
step plugins
in_system user /tests/plugins
step "Plugins that are no plugins"
plugin=$(in_system user "dpkg -L txinbox-kafka | grep '[.]so$'")
# refused_plugin TEXT: the command must not consume with the changed plugin, and say this.
refused_plugin() {
  local text status=0
  text=$(in_system user "txinbox consume --db sqlite:/tmp/inbox.db --from 'kafka://127.0.0.1:9/orders?group=g' --dead-letters d \
    --consumer c --key /id --sql 'SELECT 1'" 2>&1) || status=$?
  echo "$text"
  [[ $status != 0 && $text = *"$1"* ]] || fail "status $status and not \"$1\""
}
cp "$work/user$plugin" "$work/plugin"
sed -i "s/${version//./[.]}/9.9.9/" "$work/user$plugin"
refused_plugin "has version 9.9.9, but this is txinbox $version"
echo nothing >"$work/user$plugin"
refused_plugin "cannot be loaded"
cp "$work/plugin" "$work/user$plugin"
install libtxinbox-dev libtxinbox-kafka-dev g++ make cmake pkg-config txinbox-doc
step compile
in_system user /tests/compile
step "The users' programs of tests/package"
install libtxinbox-rabbitmq-dev libtxinbox-redis-dev libtxinbox-rocketmq-dev
cp -r "$root/tests/package" "$work/user/package"
for program in find_package core find_brokers; do
  in_system user "cmake -S /package/$program -B /tmp/$program && cmake --build /tmp/$program && /tmp/$program/consumer" \
    >>"$output/user.log" 2>&1 || { tail -20 "$output/user.log" >&2; fail "tests/package/$program failed"; }
done
rm -r "$work/user/package" "$work"/user/tmp/*
in_system user "test -e /usr/share/doc/txinbox/docs/operations/migrations.md"

step "autopkgtest in a third Debian 12"
new_system autopkgtest autopkgtest
echo 'deb [trusted=yes] file:/packages ./' >"$work/autopkgtest/etc/apt/sources.list.d/txinbox.list"
mkdir -p "$work/autopkgtest/source"
cp -r "$root/debian" "$work/autopkgtest/source/debian"
in_system autopkgtest "apt-get -q update && autopkgtest --no-built-binaries --summary-file=/summary /source -- null" \
  >"$output/autopkgtest.log" 2>&1 || { tail -30 "$output/autopkgtest.log" >&2; fail "autopkgtest: $output/autopkgtest.log"; }
cat "$work/autopkgtest/summary"
rm -rf "$work/autopkgtest"

step "Upgrade to the next version"
# The same contents under the next version's number.
next=${version%.*}.$((${version##*.} + 1))
mkdir "$work/next"
for file in "$output"/*.deb; do
  dpkg-deb -R "$file" "$work/content"
  sed -i "s/^Version: .*/Version: $next/; s/(= $version)/(= $next)/g" "$work/content/DEBIAN/control"
  dpkg-deb --root-owner-group -b "$work/content" "$work/next/$(basename "$file" | sed "s/_${version}_/_${next}_/")" >/dev/null
  rm -r "$work/content"
done
mkdir -p "$output/next"
rm -f "$output/next/"*
mv "$work"/next/*.deb "$output/next/"
repository "$output"
in_system user "apt-get -q update && apt-get -q -y dist-upgrade" >>"$output/user.log" 2>&1 || fail "the upgrade failed: $output/user.log"
in_system user "dpkg-query -W '*txinbox*'"
old=$(in_system user "dpkg-query -W -f '\${Package} \${Version} \${db:Status-Status}\n' '*txinbox*'" | awk -v v="$next" '$3 == "installed" && $2 != v')
[ -z "$old" ] || fail "these packages were not upgraded: $old"
in_system user /tests/consume
rm -r "$output/next"

step Purge
in_system user "apt-get -q -y purge '*txinbox*'" >>"$output/user.log" 2>&1 || fail "the purge failed: $output/user.log"
left=$(in_system user "find / -xdev -name '*txinbox*' ! -path '/proc/*' ! -path '/packages*' ! -path '/tests*' ! -path '/var/lib/apt/*' \
  ! -path '/var/cache/*' ! -path '/etc/apt/*' ! -path '/var/log/*'")
[ -z "$left" ] || fail "the purge left: $left"
rm -f "$output/Packages"
step "The packages are in $output"
echo "count: $(find "$output" -name '*.deb' ! -name '*-dbgsym_*' | wc -l) packages"
echo "count: 7 programs with them"
