#!/usr/bin/env bash
# Gets seekdb: OceanBase's engine in a server of one node. Prints the path of the program.
#
# Usage: tests/get_oceanbase.sh
#
# The program is in a package for Python 3.11, which is pinned by its checksum. The script installs nothing. It keeps the
# program in the cache folder: $XDG_CACHE_HOME or ~/.cache, and /var/cache for root.
#
# Exit status: 77 if the package cannot be fetched.
set -euo pipefail

package=pylibseekdb==1.4.0.post1
checksum=7c1c1e13148189af1332f69b896a818b674db3a4615c7caf1c9db05055738ad6
if [ "$(id -u)" = 0 ]; then cache=/var/cache; else cache=${XDG_CACHE_HOME:-$HOME/.cache}; fi
cache=$cache/txinbox
folder=$cache/oceanbase-${checksum:0:12}

mkdir -p "$cache"
exec 9>"$cache/oceanbase.lock"
flock 9
if [ ! -d "$folder" ]; then
  new=$(mktemp -d "$cache/oceanbase-XXXXXX")
  trap 'rm -rf "$new"' EXIT
  echo "$package --hash=sha256:$checksum" >"$new/requirements.txt"
  if ! python3 -m pip --quiet download --no-deps --only-binary :all: --python-version 3.11 --require-hashes \
    --dest "$new" --requirement "$new/requirements.txt" >&2; then
    echo "skipped: get_oceanbase.sh: the package $package cannot be fetched" >&2
    exit 77
  fi
  python3 -m zipfile -e "$new"/*.whl "$new"
  chmod 755 "$new" "$new/pylibseekdb/seekdb"
  rm -f "$new"/*.whl "$new/requirements.txt"
  mv "$new" "$folder"
fi
echo "$folder/pylibseekdb/seekdb"
