#!/usr/bin/env bash
# Gets a MySQL server, which Debian 12 does not have, from Debian unstable. Prints the path of the server program.
#
# Usage: tests/get_mysql.sh
#
# The script installs nothing and needs no root. apt fetches the server and its libraries from the machine's own Debian
# mirror. The script unpacks them into a cache folder: $XDG_CACHE_HOME or ~/.cache. For root, the folder is /var/cache,
# because the user of the servers must be able to read it. Later runs use the server in this folder. If that server does
# not run, it is fetched again.
set -euo pipefail

package=mysql-server-core
if [ "$(id -u)" = 0 ]; then cache=/var/cache; else cache=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=$cache/txinbox
folder=$cache/mysql
server=$folder/mysqld

works() { [ -n "$("$server" --no-defaults --version 2>/dev/null)" ]; } 2>/dev/null

fail() {
  printf 'get_mysql.sh: %s; it says:\n' "$1" >&2
  tail -n 20 "$new/log" >&2
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

# The machine's configuration of apt, for example its proxies, without the commands that run after an update.
settings() {
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
}

fetch() {
  local uri
  mkdir -p "$new"/{state/lists/partial,cache/archives/partial,root}
  : >"$new/state/status"
  uri=$(mirror 2>"$new/log")
  [ -n "$uri" ] || { echo "no source of Debian 12 in apt's configuration" >>"$new/log"; fail "no mirror"; }
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri sid main" >"$new/sources.list"
  settings >"$new/apt.conf"
  export APT_CONFIG=$new/apt.conf
  # Without this option, an update that cannot reach the mirror ends with status 0.
  apt-get -q -o APT::Update::Error-Mode=any update >"$new/log" 2>&1 || fail "Debian unstable cannot be reached at $uri"
  apt-get -q -y --no-install-recommends --download-only install $package >"$new/log" 2>&1 ||
    fail "$package cannot be fetched from Debian unstable at $uri"
}

unpack() {
  local deb
  for deb in "$new"/cache/archives/*.deb; do
    case ${deb##*/} in perl* | libperl*) continue ;; esac  # only scripts need perl, not the server
    dpkg-deb --fsys-tarfile "$deb" 2>>"$new/log" | tar -x -C "$new/root" 2>>"$new/log" || fail "$deb cannot be unpacked"
  done
  # Starts the server with the libraries and the loader for which it was built.
  cat >"$new/mysqld" <<'END'
#!/bin/sh
root=${0%/*}/root
for loader in "$root"/usr/lib/*/ld-linux*.so.*; do :; done
exec "$loader" --library-path "${loader%/*}" "$root/usr/sbin/mysqld" "$@"
END
  chmod 755 "$new/mysqld"
  rm -r "$new/cache" "$new/state" "$new/root/usr/share/doc"
}

mkdir -p "$cache"
exec 9>"$cache/mysql.lock"
flock 9
if ! works; then
  new=$(mktemp -d "$cache/mysql-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  chmod 755 "$new"
  echo "Fetching MySQL from Debian unstable" >&2
  fetch
  unpack
  rm -rf "$folder"
  mv "$new" "$folder"
  if ! works; then
    "$server" --no-defaults --version >"$folder/log" 2>&1 || true
    new=$folder
    fail "the server does not start"
  fi
fi
echo "$server"
