#!/usr/bin/env bash
# Gets a MySQL server, which Debian 12 does not have, from Debian unstable. Prints the path of the server program.
#
# Usage: tests/get_mysql.sh           gets the pinned version: the files of tests/mysql-<architecture>.debs, with their
#                                     checksums
#        tests/get_mysql.sh --newer   says whether Debian unstable has another version than the pinned one
#        tests/get_mysql.sh --update  pins the version that Debian unstable has
#
# The script installs nothing and needs no root. It fetches the server and its libraries from the Debian mirror of this
# machine. A mirror has only the newest files of Debian unstable. If it does not have the pinned ones any more, the script
# fetches them from TXINBOX_DEBIAN_ARCHIVE, which is the address of Debian's archive of old packages, without the date.
#
# It unpacks them into a cache folder: $XDG_CACHE_HOME or ~/.cache. For root, the folder is /var/cache, because the user
# of the servers must be able to read it. Later runs use the server in this folder.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
package=mysql-server-core
architecture=$(dpkg --print-architecture)
pins=$root/tests/mysql-$architecture.debs
if [ "$(id -u)" = 0 ]; then cache=/var/cache; else cache=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=$cache/txinbox
mkdir -p "$cache"

new=$(mktemp -d "$cache/mysql-XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"

fail() {
  printf 'get_mysql.sh: %s\n' "$1" >&2
  if [ -s "$new/log" ]; then tail -n 20 "$new/log" >&2; fi
  echo "get_mysql.sh: to test on your own MySQL server, set TXINBOX_TEST_MYSQL_URL; tests/run.sh without options" \
    "needs no MySQL" >&2
  exit 1
}

# The mirror that apt uses on this machine.
mirror() {
  local codename
  codename=$(. /etc/os-release && echo "${VERSION_CODENAME:-}")
  # If apt has not fetched the lists yet, it does not know the origin, and prints $(ORIGIN) unchanged.
  # shellcheck disable=SC2016  # apt expands them
  apt-get indextargets --format '$(RELEASE) $(ORIGIN) $(REPO_URI)' 'Created-By: Packages' 'Component: main' |
    awk -v name="$codename" '($1 == name || $1 ~ /^(old)*stable$/) && ($2 == "Debian" || $2 !~ /^[A-Z]/) { print $3; exit }'
}

uri=$(mirror 2>"$new/log")
uri=${uri%/}
[ -n "$uri" ] || fail "apt's configuration has no source of Debian 12"

# Makes apt read the list of Debian unstable, with the machine's configuration of apt, for example its proxies, but
# without the commands that run after an update.
read_unstable() {
  mkdir -p "$new"/{state/lists/partial,cache/archives/partial}
  : >"$new/state/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri sid main" >"$new/sources.list"
  {
    apt-config dump | sed -E '/^(APT::Update|DPkg)::(Pre|Post)-/d'
    cat <<END
Dir::Etc::main "/dev/null";
Dir::Etc::parts "/dev/null";
Dir::Etc::sourcelist "$new/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$new/state";
Dir::State::status "$new/state/status";
Dir::Cache "$new/cache";
Dir::Cache::archives "archives";
Acquire::Check-Valid-Until "false";  // a mirror may be an old one
APT::Sandbox::User "root";           // whoever runs this
END
  } >"$new/apt.conf"
  # Without this option, an update that cannot reach the mirror ends with status 0.
  APT_CONFIG=$new/apt.conf apt-get -q -o APT::Update::Error-Mode=any update >"$new/log" 2>&1 ||
    fail "Debian unstable cannot be reached at $uri:"
}

pinned_version() { sed -n "s|.*/${package}_\(.*\)_[^_]*\.deb$|\1|p" "$pins"; }

case ${1:-} in
  --update)
    read_unstable
    # Each line of apt: 'URI' FILE SIZE SHA256:CHECKSUM
    APT_CONFIG=$new/apt.conf apt-get -qq -y --no-install-recommends \
      -o Acquire::ForceHash=SHA256 --print-uris install $package >"$new/uris" 2>"$new/log" ||
      fail "$package cannot be installed from Debian unstable at $uri:"
    {
      echo "# $package and what it needs, from Debian unstable, and when it had them. tests/get_mysql.sh --update writes this"
      echo "# file."
      date -u +'at %Y%m%dT%H0000Z'
      # Only scripts need perl, not the server.
      sed -nE "s|^'$uri/([^']*)' [^ ]+ [0-9]+ SHA256:([0-9a-f]+)\$|\2 \1|p" "$new/uris" | grep -vE '/(lib)?perl' | sort -k 2
    } >"$new/pins"
    mv "$new/pins" "$pins"
    echo "pinned: $package $(pinned_version)"
    exit
    ;;
  --newer)
    (read_unstable) 2>/dev/null || { echo "note: Debian unstable cannot be asked for a newer MySQL at $uri"; exit; }
    newest=$(APT_CONFIG=$new/apt.conf apt-cache madison $package | awk '{ print $3; exit }')
    [ "$newest" = "$(pinned_version)" ] ||
      echo "note: Debian unstable has MySQL $newest, and the tests use $(pinned_version) (tests/get_mysql.sh --update)"
    exit
    ;;
  "") ;;
  *) sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2 ;;
esac

[ -f "$pins" ] || fail "no version is pinned for $architecture; run tests/get_mysql.sh --update"
folder=$cache/mysql-$(sha256sum "$pins" | cut -c 1-12)
server=$folder/mysqld

works() { [ -n "$("$server" --no-defaults --version 2>/dev/null)" ]; } 2>/dev/null

fetch() {
  local checksum file from places=("$uri")
  if [ -n "${TXINBOX_DEBIAN_ARCHIVE:-}" ]; then places+=("$TXINBOX_DEBIAN_ARCHIVE/$(sed -n 's/^at //p' "$pins")"); fi
  mkdir "$new/debs"
  while read -r checksum file; do
    # apt-helper verifies the checksum.
    for from in "${places[@]}"; do
      if /usr/lib/apt/apt-helper -o APT::Sandbox::User=root download-file "$from/$file" "$new/debs/${file##*/}" \
          "SHA256:$checksum" >>"$new/log" 2>&1; then
        continue 2
      fi
    done
    fail "$file cannot be fetched from ${places[*]}. If Debian unstable has a newer version now, pin that
  (tests/get_mysql.sh --update), or set TXINBOX_DEBIAN_ARCHIVE:"
  done < <(grep -vE '^(#|at )' "$pins")
}

unpack() {
  local deb
  mkdir "$new/root"
  for deb in "$new"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" 2>>"$new/log" | tar -x -C "$new/root" 2>>"$new/log" || fail "$deb cannot be unpacked:"
  done
  # Starts the server with the libraries and the loader for which it was built.
  cat >"$new/mysqld" <<'END'
#!/bin/sh
root=${0%/*}/root
for loader in "$root"/usr/lib/*/ld-linux*.so.*; do :; done
exec "$loader" --library-path "${loader%/*}" "$root/usr/sbin/mysqld" "$@"
END
  chmod 755 "$new/mysqld"
  rm -r "$new/debs" "$new/root/usr/share/doc"
}

exec 9>"$cache/mysql.lock"
flock 9
if ! works; then
  echo "Fetching MySQL $(pinned_version) from Debian unstable" >&2
  : >"$new/log"
  fetch
  unpack
  rm -rf "$folder"
  mv "$new" "$folder"
  if ! works; then
    "$server" --no-defaults --version >"$folder/log" 2>&1 || true
    new=$folder
    fail "the server does not start:"
  fi
fi
echo "$server"
