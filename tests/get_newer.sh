#!/usr/bin/env bash
# Gets what Debian 12 does not have from a newer Debian, and prints the folder that has it.
#
# Usage: tests/get_newer.sh NAME           gets the pinned version: the files of tests/NAME-<architecture>.debs, with their
#                                          checksums
#        tests/get_newer.sh NAME --newer   says whether Debian has another version than the pinned one
#        tests/get_newer.sh NAME --update  pins the version that Debian has
#   NAME  mysql          FOLDER/mysqld is the server, from Debian unstable
#         opentelemetry  FOLDER/root/usr has the headers and the libraries of OpenTelemetry C++, from Debian 13.
#                        FOLDER/run PROGRAM... runs a program with these libraries
#
# The script installs nothing and needs no root. It fetches the packages and their libraries from the Debian mirror of this
# machine. A mirror has only the newest files. If it does not have the pinned ones any more, the script fetches them from
# TXINBOX_DEBIAN_ARCHIVE, which is the address of Debian's archive of old packages, without the date.
#
# It unpacks them into a cache folder: $XDG_CACHE_HOME or ~/.cache. For root, the folder is /var/cache, because the user
# of the servers must be able to read it. Later runs use this folder.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0" >&2; exit 2; }
name=${1:-}
case $name in
  mysql)
    what=MySQL
    packages=(mysql-server-core)
    suite=sid
    debian="Debian unstable"
    needless='/(lib)?perl'  # only scripts need perl, not the server
    without="to test on your own MySQL server, set TXINBOX_TEST_MYSQL_URL; tests/run.sh without options needs no MySQL"
    ;;
  opentelemetry)
    what=OpenTelemetry
    packages=(opentelemetry-cpp-dev libabsl-dev)
    suite=trixie
    debian="Debian 13"
    needless=/libgtest
    without="only the step tracing of tests/run.sh needs OpenTelemetry"
    ;;
  *) usage ;;
esac
architecture=$(dpkg --print-architecture)
pins=$root/tests/$name-$architecture.debs
if [ "$(id -u)" = 0 ]; then cache=/var/cache; else cache=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=$cache/txinbox
mkdir -p "$cache"

new=$(mktemp -d "$cache/$name-XXXXXX")
trap 'rm -rf "$new"' EXIT
chmod 755 "$new"

fail() {
  printf 'get_newer.sh: %s\n' "$1" >&2
  if [ -s "$new/log" ]; then tail -n 20 "$new/log" >&2; fi
  echo "get_newer.sh: $without" >&2
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

# Makes apt read the list of the newer Debian, with the machine's configuration of apt, for example its proxies, but
# without the commands that run after an update.
read_lists() {
  mkdir -p "$new"/{state/lists/partial,cache/archives/partial}
  : >"$new/state/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $uri $suite main" >"$new/sources.list"
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
    fail "$debian cannot be reached at $uri:"
}

pinned_version() { sed -n "s|.*/${packages[0]}_\(.*\)_[^_]*\.deb$|\1|p" "$pins"; }

case ${2:-} in
  --update)
    read_lists
    # Each line of apt: 'URI' FILE SIZE SHA256:CHECKSUM
    APT_CONFIG=$new/apt.conf apt-get -qq -y --no-install-recommends \
      -o Acquire::ForceHash=SHA256 --print-uris install "${packages[@]}" >"$new/uris" 2>"$new/log" ||
      fail "${packages[*]} cannot be installed from $debian at $uri:"
    {
      echo "# ${packages[*]} and the packages that they need, from $debian, and when it had them."
      echo "# tests/get_newer.sh $name --update writes this file."
      date -u +'at %Y%m%dT%H0000Z'
      sed -nE "s|^'$uri/([^']*)' [^ ]+ [0-9]+ SHA256:([0-9a-f]+)\$|\2 \1|p" "$new/uris" | grep -vE "$needless" | sort -k 2
    } >"$new/pins"
    mv "$new/pins" "$pins"
    echo "pinned: ${packages[0]} $(pinned_version)"
    exit
    ;;
  --newer)
    (read_lists) 2>/dev/null || { echo "note: $debian cannot be asked for a newer $what at $uri"; exit; }
    newest=$(APT_CONFIG=$new/apt.conf apt-cache madison "${packages[0]}" | awk '{ print $3; exit }')
    [ "$newest" = "$(pinned_version)" ] ||
      echo "note: $debian has $what $newest, and the tests use $(pinned_version) (tests/get_newer.sh $name --update)"
    exit
    ;;
  "") ;;
  *) usage ;;
esac

[ -f "$pins" ] || fail "no version is pinned for $architecture; run tests/get_newer.sh $name --update"
folder=$cache/$name-$(grep -v "^#" "$pins" | sha256sum | cut -c 1-12)

# Whether what was unpacked works on this machine.
works() {
  case $name in
    mysql) [ -n "$("$folder/mysqld" --no-defaults --version)" ] ;;
    opentelemetry) "$folder/run" /bin/true && [ -f "$folder/root/usr/include/opentelemetry/version.h" ] ;;
  esac
} 2>/dev/null

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
    fail "$file cannot be fetched from ${places[*]}. If $debian has a newer version now, pin that
  (tests/get_newer.sh $name --update), or set TXINBOX_DEBIAN_ARCHIVE:"
  done < <(grep -vE '^(#|at )' "$pins")
}

unpack() {
  local deb
  mkdir "$new/root"
  for deb in "$new"/debs/*.deb; do
    dpkg-deb --fsys-tarfile "$deb" 2>>"$new/log" | tar -x -C "$new/root" 2>>"$new/log" || fail "$deb cannot be unpacked:"
  done
  rm -rf "$new/debs" "$new/root/usr/share/doc"
  case $name in
    mysql) start_with_libraries mysqld '"$root/usr/sbin/mysqld"' ;;
    opentelemetry)
      start_with_libraries run
      # pkg-config must find the headers and the libraries in this folder.
      sed -i -E "s|^prefix=.*|prefix=$folder/root/usr|; s|=/usr/|=$folder/root/usr/|" "$new"/root/usr/lib/*/pkgconfig/*.pc
      ;;
  esac
}

# start_with_libraries FILE [PROGRAM]: writes a script that runs a program with the loader and the libraries for which it
# was built. The libraries of this machine come after them.
start_with_libraries() {
  cat >"$new/$1" <<END
#!/bin/sh
root=\${0%/*}/root
for loader in "\$root"/usr/lib/*/ld-linux*.so.*; do :; done
libraries=\${loader%/*}
exec "\$loader" --library-path "\$libraries:/usr/lib/\${libraries##*/}" ${2:-} "\$@"
END
  chmod 755 "$new/$1"
}

exec 9>"$cache/$name.lock"
flock 9
if ! works; then
  echo "Fetching $what $(pinned_version) from $debian" >&2
  : >"$new/log"
  fetch
  unpack
  rm -rf "$folder"
  mv "$new" "$folder"
  if ! works; then
    new=$folder
    fail "$what $(pinned_version) does not work on this machine"
  fi
fi
echo "$folder"
